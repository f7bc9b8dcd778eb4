r"""Inference: the state under the input alone, and its class :math:`\arg\max_c (W^{out} s)_c`."""

from __future__ import annotations

import torch

from rmsim.learning import sparse
from rmsim.learning.data import Array, checked_inputs, checked_labels
from rmsim.learning.fit import demand_fields, demand_fit
from rmsim.learning.flips import by_columns
from rmsim.learning.parameters import Parameters
from rmsim.learning.phases import infer_batch
from rmsim.learning.state import State
from rmtheory.errors import InvalidInputError

#: Samples relaxed together; the result does not depend on it unless neurons are masked.
_TOGETHER = 512


def infer(
    parameters: Parameters,
    state: State,
    inputs: Array,
    *,
    together: int = _TOGETHER,
    compiled: bool = True,
) -> torch.Tensor:
    """Return the states at inference as int8, (samples, layers, n), on the device of the weights.

    Parameters
    ----------
    parameters, state
        The protocol and the weights.
    inputs : array, (samples, D)
        Inputs.
    together : int
        Samples relaxed together.
    compiled : bool
        Take the compiled routes of a CPU where they apply.
    """
    demand_fit(parameters, state)
    x = checked_inputs(state, inputs)
    demand_fields(parameters, state, x)
    if compiled and sparse.has_inference_kernel(parameters, state):
        return sparse.infer_compiled(parameters, state, x)
    if compiled:
        state = by_columns(state)
    shape = (len(x), parameters.layers, parameters.n)
    found = torch.empty(shape, dtype=torch.int8, device=state.device)
    for number, first in enumerate(range(0, len(x), together)):
        part = slice(first, first + together)
        batch = x[part].to(dtype=state.dtype, device=state.device)
        found[part] = infer_batch(parameters, state, batch, number).s.to(torch.int8)
    return found


def outputs(state: State, s: torch.Tensor) -> torch.Tensor:
    """Return W_out s of the neurons that are read, (samples, C)."""
    if not len(state.w_out):
        raise InvalidInputError("readout", "none", "perceptron if classes are asked for")
    return (s.flatten(1).to(state.dtype) * state.a_out) @ state.w_out.T


def predict(parameters: Parameters, state: State, inputs: Array) -> torch.Tensor:
    """Return the predicted class numbers."""
    x = checked_inputs(state, inputs)
    s = infer(parameters, state, x)
    found = torch.empty(len(x), dtype=torch.int64, device=state.device)
    for first in range(0, len(x), _TOGETHER):
        part = slice(first, first + _TOGETHER)
        found[part] = outputs(state, s[part]).argmax(1)
    return found


def accuracy(parameters: Parameters, state: State, inputs: Array, labels: Array) -> float:
    """Return the fraction of samples whose class is predicted."""
    predicted = predict(parameters, state, inputs)
    y = checked_labels(state, labels, len(predicted)).to(predicted.device)
    if y.dim() == 2:
        raise InvalidInputError("labels", "label codes", "class numbers, to compare with")
    if not len(y):
        raise InvalidInputError("inputs", "no sample", "at least one sample")
    return float((predicted == y).double().mean())
