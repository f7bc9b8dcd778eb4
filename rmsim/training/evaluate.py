"""What a trained network can do, over all samples."""

from __future__ import annotations

import math
from typing import Any

from rmsim.data import Dataset
from rmsim.learning import measure
from rmsim.training.checkpoint import Checkpoint
from rmsim.training.look import accuracies, binomial_error
from rmsim.training.probe import StoredProbe, features_of, probe_accuracies
from rmtheory import checks


def evaluate(
    moment: Checkpoint,
    dataset: Dataset,
    probe: StoredProbe | None = None,
    samples: int | None = None,
) -> dict[str, Any]:
    """Return accuracies, q_dyn, symmetry and stability as JSON values, with errors.

    Parameters
    ----------
    moment : Checkpoint
        The weights.
    dataset : Dataset
        The data set of the run.
    probe : StoredProbe, optional
        If there is one, it is the readout; the accuracies of the perceptron rule then are
        ``perceptron_train_accuracy`` and ``perceptron_test_accuracy``.
    samples : int, optional
        At most so many samples of each set; all of them by default.
    """
    data = moment.plan.data(dataset)
    most = math.inf if samples is None else checks.integer("samples", samples, 1)
    train, test = (part.first(int(min(most, len(part)))) for part in (data.train, data.test))
    parameters, state = moment.plan.parameters, moment.state
    found: dict[str, Any] = {"epoch": moment.epoch, "readout": parameters.readout}
    rule = accuracies(parameters, state, train, test)
    if probe is None:
        found |= rule
    else:
        found["readout"] = "probe"
        features = (features_of(moment, part, data.classes) for part in (train, test))
        found |= probe_accuracies(probe.readout, *features)
        found |= {f"perceptron_{name}": value for name, value in rule.items()}
    seen = measure(parameters, state, *train.tensors(state.dtype)).to_dict()
    del seen["samples"]
    found |= {**seen, "train_samples": len(train), "test_samples": len(test)}
    for name in ("unstable_clamped", "unstable_free"):
        found[f"{name}_error"] = binomial_error(found[name], len(train))
    return found
