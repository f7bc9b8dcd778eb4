"""Learning, batch by batch: pure functions from state to state.

:func:`batch_step` copies the weights and learns one batch; :func:`train` copies them once and
learns many, which is how to train.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from rmsim.learning import sparse
from rmsim.learning.data import Array, checked_inputs, checked_labels, label_code, label_signs
from rmsim.learning.fit import demand_fields, demand_fit, demand_learnt
from rmsim.learning.flips import by_columns, by_rows
from rmsim.learning.parameters import Parameters
from rmsim.learning.phases import Phases, phases
from rmsim.learning.plasticity import learn_, learn_readout_
from rmsim.learning.state import State
from rmsim.randomness import generator
from rmtheory.errors import InvalidInputError


def epoch_order(seed: int, epoch: int, samples: int) -> torch.Tensor:
    """Return the order of the samples in an epoch, from the stream ``(0, 6, epoch)``.

    Examples
    --------
    >>> sorted(epoch_order(0, 1, 4).tolist())
    [0, 1, 2, 3]
    """
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
    demand_fit(parameters, state)
    x = checked_inputs(state, inputs)
    y = checked_labels(state, labels, len(x))
    if not len(x):
        raise InvalidInputError("inputs", "no sample", "at least one sample")
    demand_fields(parameters, state, x, y)
    state = state.copy()
    ends = _learn_batch_(parameters, state, x, y)
    demand_learnt(parameters, state, x, y)
    return replace(state, step=state.step + 1), ends


def train(
    parameters: Parameters,
    state: State,
    inputs: Array,
    labels: Array,
    order: torch.Tensor | None = None,
    *,
    compiled: bool = True,
) -> State:
    """Learn all samples once, in batches of ``parameters.batch``; the last may be smaller.

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
    demand_fit(parameters, state)
    x = checked_inputs(state, inputs)
    y = checked_labels(state, labels, len(x))
    demand_fields(parameters, state, x, y)
    order = torch.arange(len(x)) if order is None else checked_order(order, len(x))
    state = state.copy()
    if compiled and y.dim() == 1 and sparse.has_kernel(parameters, state):
        sparse.learn_compiled_(parameters, state, x, y, order)
        demand_learnt(parameters, state, x, y)
        batches = -(-len(order) // parameters.batch)
        return replace(state, step=state.step + batches)
    if compiled:
        state = by_columns(state)
    for first in range(0, len(order), parameters.batch):
        chosen = order[first : first + parameters.batch]
        _learn_batch_(parameters, state, x[chosen], y[chosen])
        state = replace(state, step=state.step + 1)
    state = by_rows(state)
    demand_learnt(parameters, state, x, y)
    return state


def _learn_batch_(parameters: Parameters, state: State, x: torch.Tensor, y: torch.Tensor) -> Phases:
    """Learn one batch in place."""
    x = x.to(dtype=state.dtype, device=state.device)
    code = label_code(parameters, state, y)
    ends = phases(parameters, state, x, code, state.step)
    learn_(parameters, state, ends, x, code)
    if len(state.w_out) and parameters.eta_out > 0:
        learn_readout_(parameters, state, ends.s_star, label_signs(state, y))
    return ends
