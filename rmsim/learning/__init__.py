r"""Learning in the representation manifold (paper, Algorithm 1): a functional core.

Four kinds of things, and nothing else:

* :class:`Parameters`, frozen: every choice of the protocol. :mod:`rmsim.learning.recipes` has the
  ones that reproduce the paper; ``Parameters.from_dict`` refuses unknown names.
* :class:`State`, frozen: the weights J, W_in, W_back, W_out of one network, the seed, and the
  number of batches learnt. ``state.tensors()`` and :func:`state_of` are for files.
* Pure functions from state to state: :func:`batch_step` learns one batch, :func:`train` a whole
  epoch in batches; both leave the state they were given alone.
* Pure functions that only look: :func:`phases`, :func:`infer`, :func:`predict`, :func:`accuracy`,
  :func:`measure`.

:func:`batch_step` and :func:`phases` are tensor operations, the same on every device. On a CPU
:func:`train`, :func:`infer` and :func:`measure` take compiled routes: sparse networks in rows
(:mod:`rmsim.learning.sparse`), dense ones by their flips (:mod:`rmsim.learning.flips`). The results
are the same up to rounding, which now and then decides the sign of a field near zero.

Inputs are arrays (samples, D) of any real type, labels class numbers (samples); states of neurons
have shape (samples, layers, n).

>>> import torch
>>> from rmsim.learning.recipes import dense_recipe
>>> draw = torch.Generator().manual_seed(0)
>>> prototypes = torch.randn(3, 20, generator=draw)
>>> labels = torch.randint(3, (300,), generator=draw)
>>> inputs = (prototypes[labels] + 0.5 * torch.randn(300, 20, generator=draw)).sign()
>>> parameters = dense_recipe(100, classes=3)
>>> state = initialise(parameters, inputs=20, classes=3, seed=0)
>>> for epoch in range(2):
...     state = train(parameters, state, inputs, labels, epoch_order(0, epoch, 300))
>>> state.step, accuracy(parameters, state, inputs, labels) > 0.95
(38, True)
"""

from __future__ import annotations

from rmsim.learning.inference import accuracy, infer, outputs, predict
from rmsim.learning.measures import (
    Measurement,
    QuantileErrors,
    Quantiles,
    measure,
    symmetry_level,
)
from rmsim.learning.parameters import Parameters
from rmsim.learning.phases import Phases, Relaxed, phases
from rmsim.learning.state import State, Wiring, initialise, state_of
from rmsim.learning.step import batch_step, epoch_order, train

__all__ = [
    "Measurement",
    "Parameters",
    "Phases",
    "QuantileErrors",
    "Quantiles",
    "Relaxed",
    "State",
    "Wiring",
    "accuracy",
    "batch_step",
    "epoch_order",
    "infer",
    "initialise",
    "measure",
    "outputs",
    "phases",
    "predict",
    "state_of",
    "symmetry_level",
    "train",
]
