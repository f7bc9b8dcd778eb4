r"""Learning and inference: pure functions of the protocol, the weights and samples.

:func:`batch_step` copies the weights and learns one batch; :func:`train_epoch` copies them once and
learns many, which is how to train. Inference gives the state under the input alone, and its class
:math:`\arg\max_c (W^{out} s)_c`.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from rmsim.learning import sparse
from rmsim.learning.flips import by_columns, by_rows
from rmsim.learning.parameters import Parameters
from rmsim.learning.phases import Phases, infer_batch, label_code, present
from rmsim.learning.plasticity import label_signs, learn_, learn_readout_
from rmsim.learning.state import State
from rmsim.learning.validation import (
    Array,
    checked_inputs,
    checked_labels,
    checked_samples,
    demand_fields,
    demand_fit,
    demand_learnt,
)
from rmsim.randomness import generator
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError

#: Samples relaxed together; the result does not depend on it unless neurons are masked.
_TOGETHER = 512


def epoch_order(seed: int, epoch: int, samples: int) -> torch.Tensor:
    """Return the order of the samples in an epoch, from the stream ``(0, 6, epoch)``.

    Examples
    --------
    >>> sorted(epoch_order(0, 1, 4).tolist())
    [0, 1, 2, 3]
    """
    epoch = checks.integer("epoch", epoch, 0)
    return torch.randperm(samples, generator=generator(seed, 0, 6, epoch))


def checked_order(order: torch.Tensor, samples: int) -> torch.Tensor:
    """Return the order as int64 on the CPU; refuse samples that do not exist."""
    order = torch.as_tensor(order)
    if order.is_floating_point() or order.is_complex() or order.dtype == torch.bool:
        raise InvalidInputError("order", str(order.dtype), "integers, the numbers of samples")
    order = order.to(device="cpu", dtype=torch.int64).contiguous()
    if order.dim() != 1 or (len(order) and not 0 <= int(order.min()) <= int(order.max()) < samples):
        raise InvalidInputError("order", "other numbers", f"samples from 0 to {samples - 1}")
    return order


def batch_step(
    parameters: Parameters, state: State, inputs: Array, labels: Array
) -> tuple[State, Phases]:
    """Learn one batch.

    Parameters
    ----------
    parameters, state
        The protocol and the weights, which stay as they are.
    inputs : array, (samples, D)
        Inputs; all samples make one batch, whatever its size.
    labels : array
        Class numbers (samples), or label codes (samples, C).

    Returns
    -------
    State, Phases
        The new weights, and the states s' and s* that they were learnt from.

    Raises
    ------
    NotConvergedError
        If the weights or their fields are no longer finite.
    """
    x, y = checked_samples(parameters, state, inputs, labels)
    state = state.copy()
    ends = _learn_batch_(parameters, state, x, y)
    demand_learnt(parameters, state, x, y)
    return replace(state, step=state.step + 1), ends


def train_epoch(
    parameters: Parameters,
    state: State,
    inputs: Array,
    labels: Array,
    order: torch.Tensor | None = None,
    *,
    compiled: bool = True,
) -> State:
    """Learn all samples once, in batches of ``parameters.batch.size``; the last may be smaller.

    Parameters
    ----------
    parameters, state, inputs, labels
        As for :func:`batch_step`.
    order : Tensor of int, optional
        Samples to take, in this order; as they come by default. See :func:`epoch_order`.
    compiled : bool
        Take the compiled routes of a CPU (:mod:`rmsim.learning.sparse` and
        :mod:`rmsim.learning.flips`) where they apply; False takes the route of a GPU everywhere.

    Raises
    ------
    NotConvergedError
        If the weights or their fields are no longer finite.
    """
    x, y = checked_samples(parameters, state, inputs, labels, least=0)
    order = torch.arange(len(x)) if order is None else checked_order(order, len(x))
    state = state.copy()
    if compiled and y.dim() == 1 and sparse.has_kernel(parameters, state):
        sparse.learn_compiled_(parameters, state, x, y, order)
        demand_learnt(parameters, state, x, y)
        batches = -(-len(order) // parameters.batch.size)
        return replace(state, step=state.step + batches)
    if compiled:
        state = by_columns(state)
    for first in range(0, len(order), parameters.batch.size):
        chosen = order[first : first + parameters.batch.size]
        _learn_batch_(parameters, state, x[chosen], y[chosen])
        state = replace(state, step=state.step + 1)
    state = by_rows(state)
    demand_learnt(parameters, state, x, y)
    return state


def _learn_batch_(parameters: Parameters, state: State, x: torch.Tensor, y: torch.Tensor) -> Phases:
    """Learn one batch in place."""
    x = x.to(dtype=state.dtype, device=state.device)
    code = label_code(parameters, state, y)
    ends = present(parameters, state, x, code, state.step)
    learn_(parameters, state, ends, x, code)
    if len(state.w_out) and parameters.readout.eta > 0:
        learn_readout_(parameters, state, ends.s_star, label_signs(state, y))
    return ends


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
    shape = (len(x), *parameters.couplings.shape)
    states = torch.empty(shape, dtype=torch.int8, device=state.device)
    for number, first in enumerate(range(0, len(x), together)):
        part = slice(first, first + together)
        batch = x[part].to(dtype=state.dtype, device=state.device)
        states[part] = infer_batch(parameters, state, batch, number).s.to(torch.int8)
    return states


def outputs(state: State, s: torch.Tensor) -> torch.Tensor:
    """Return W_out s of the neurons that are read, (samples, C)."""
    if not len(state.w_out):
        raise InvalidInputError("readout", "none", "perceptron if classes are asked for")
    return (s.flatten(1).to(state.dtype) * state.a_out) @ state.w_out.T


def predict(parameters: Parameters, state: State, inputs: Array) -> torch.Tensor:
    """Return the predicted class numbers."""
    x = checked_inputs(state, inputs)
    s = infer(parameters, state, x)
    predicted = torch.empty(len(x), dtype=torch.int64, device=state.device)
    for first in range(0, len(x), _TOGETHER):
        part = slice(first, first + _TOGETHER)
        predicted[part] = outputs(state, s[part]).argmax(1)
    return predicted


def accuracy(parameters: Parameters, state: State, inputs: Array, labels: Array) -> float:
    """Return the fraction of samples whose class is predicted."""
    predicted = predict(parameters, state, inputs)
    y = checked_labels(state, labels, len(predicted)).to(predicted.device)
    if y.dim() == 2:
        raise InvalidInputError("labels", "label codes", "class numbers, to compare with")
    if not len(y):
        raise InvalidInputError("inputs", "no sample", "at least one sample")
    return float((predicted == y).double().mean())
