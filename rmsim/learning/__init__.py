r"""Learning in the representation manifold (paper, Algorithm 1): a functional core.

Four kinds of things, and nothing else:

* :class:`Parameters`, frozen, in groups: every choice of the protocol.
  :func:`preset` has the ones that reproduce the paper; ``Parameters.of`` takes
  settings by their flat names.
* :class:`State`, frozen: the weights J, W_in, W_back, W_out of one network, the seed, and the
  number of batches learnt. ``state.tensors()`` and :func:`state_of` are for files,
  :func:`state_of_matrices` for weights of your own.
* Pure functions from state to state: :func:`batch_step` learns one batch, :func:`train_epoch`
  all samples in batches; both leave the state they were given alone.
* Pure functions that only measure: :func:`present`, :func:`infer`, :func:`predict`,
  :func:`accuracy`, :func:`measure`.

:func:`batch_step` and :func:`present` are tensor operations, the same on every device. On a CPU
:func:`train_epoch`, :func:`infer` and :func:`measure` take compiled routes: sparse networks in rows
(``rmsim.learning.plasticity``), dense ones by their flips (``rmsim.learning.phases``). The results
are the same up to rounding, which now and then decides the sign of a field near zero.

Inputs are arrays (samples, D) of any real type, labels class numbers (samples); states of neurons
have shape (samples, layers, n).

>>> import torch
>>> from rmsim.learning import accuracy, dense_recipe, epoch_order, initialise, train_epoch
>>> draw = torch.Generator().manual_seed(0)
>>> prototypes = torch.randn(3, 20, generator=draw)
>>> labels = torch.randint(3, (300,), generator=draw)
>>> inputs = (prototypes[labels] + 0.5 * torch.randn(300, 20, generator=draw)).sign()
>>> parameters = dense_recipe(100, classes=3)
>>> state = initialise(parameters, inputs=20, classes=3, seed=0)
>>> for epoch in range(2):
...     state = train_epoch(parameters, state, inputs, labels, epoch_order(0, epoch, 300))
>>> state.step, accuracy(parameters, state, inputs, labels) > 0.95
(38, True)
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmsim.learning.baselines import (
        BaselinePreset,
        Matched,
        Mlp,
        MlpFit,
        MlpParameters,
        baseline_preset,
        core_parameters,
        fit_mlp,
        frozen_features,
        matched_width,
        reservoir_parameters,
    )
    from rmsim.learning.estimator import RMClassifier
    from rmsim.learning.parameters import (
        BatchParameters,
        CouplingParameters,
        InputParameters,
        InternalPlasticity,
        LabelParameters,
        Parameters,
        PhaseParameters,
        ReadoutParameters,
        RuleParameters,
    )
    from rmsim.learning.phases import Phases, Relaxed, present
    from rmsim.learning.presets import (
        Preset,
        dense_recipe,
        literal_recipe,
        overlap_recipe,
        preset,
        sparse_recipe,
    )
    from rmsim.learning.protocol import (
        Measurement,
        accuracy,
        batch_step,
        epoch_order,
        infer,
        measure,
        outputs,
        predict,
        symmetry_level,
        train_epoch,
        train_epoch_of_many,
    )
    from rmsim.learning.readout import (
        Features,
        LinearReadout,
        PerceptronFit,
        PerceptronParameters,
        ProbeFit,
        ProbeParameters,
        Score,
        fit_perceptron,
        fit_probe,
    )
    from rmsim.learning.run_folder import Checkpoint, Folder, Plan
    from rmsim.learning.state import State, Wiring, initialise, state_of, state_of_matrices
    from rmsim.learning.trained import Trained, TrainedModule, predict_file
    from rmsim.learning.training import (
        Metrics,
        Outcome,
        StoredProbe,
        TrainingProgress,
        evaluate,
        load_run,
        train,
        train_many,
    )
    from rmtheory.base.statistics import QuantileErrors, Quantiles
else:
    from rmtheory.base.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "rmtheory.base.statistics": ["QuantileErrors", "Quantiles"],
            ".baselines": [
                "BaselinePreset",
                "Matched",
                "Mlp",
                "MlpFit",
                "MlpParameters",
                "baseline_preset",
                "core_parameters",
                "fit_mlp",
                "frozen_features",
                "matched_width",
                "reservoir_parameters",
            ],
            ".estimator": ["RMClassifier"],
            ".parameters": [
                "BatchParameters",
                "CouplingParameters",
                "InputParameters",
                "InternalPlasticity",
                "LabelParameters",
                "Parameters",
                "PhaseParameters",
                "ReadoutParameters",
                "RuleParameters",
            ],
            ".phases": ["Phases", "Relaxed", "present"],
            ".presets": [
                "Preset",
                "dense_recipe",
                "literal_recipe",
                "overlap_recipe",
                "preset",
                "sparse_recipe",
            ],
            ".protocol": [
                "Measurement",
                "accuracy",
                "batch_step",
                "epoch_order",
                "infer",
                "measure",
                "outputs",
                "predict",
                "symmetry_level",
                "train_epoch",
                "train_epoch_of_many",
            ],
            ".readout": [
                "Features",
                "LinearReadout",
                "PerceptronFit",
                "PerceptronParameters",
                "ProbeFit",
                "ProbeParameters",
                "Score",
                "fit_perceptron",
                "fit_probe",
            ],
            ".run_folder": ["Checkpoint", "Folder", "Plan"],
            ".state": ["State", "Wiring", "initialise", "state_of", "state_of_matrices"],
            ".trained": ["Trained", "TrainedModule", "predict_file"],
            ".training": [
                "Metrics",
                "Outcome",
                "TrainingProgress",
                "StoredProbe",
                "evaluate",
                "load_run",
                "train",
                "train_many",
            ],
        },
    )

__all__ = [
    "BaselinePreset",
    "BatchParameters",
    "Checkpoint",
    "CouplingParameters",
    "Features",
    "Folder",
    "InputParameters",
    "InternalPlasticity",
    "LabelParameters",
    "LinearReadout",
    "Matched",
    "Measurement",
    "Metrics",
    "Mlp",
    "MlpFit",
    "MlpParameters",
    "Outcome",
    "Parameters",
    "PerceptronFit",
    "PerceptronParameters",
    "PhaseParameters",
    "Phases",
    "Plan",
    "Preset",
    "ProbeFit",
    "ProbeParameters",
    "QuantileErrors",
    "Quantiles",
    "RMClassifier",
    "ReadoutParameters",
    "Relaxed",
    "RuleParameters",
    "Score",
    "State",
    "StoredProbe",
    "Trained",
    "TrainedModule",
    "TrainingProgress",
    "Wiring",
    "accuracy",
    "baseline_preset",
    "batch_step",
    "core_parameters",
    "dense_recipe",
    "epoch_order",
    "evaluate",
    "fit_mlp",
    "fit_perceptron",
    "fit_probe",
    "frozen_features",
    "infer",
    "initialise",
    "literal_recipe",
    "load_run",
    "matched_width",
    "measure",
    "outputs",
    "overlap_recipe",
    "predict",
    "predict_file",
    "present",
    "preset",
    "reservoir_parameters",
    "sparse_recipe",
    "state_of",
    "state_of_matrices",
    "symmetry_level",
    "train",
    "train_epoch",
    "train_epoch_of_many",
    "train_many",
]
