r"""The three phases of a presentation (paper, Algorithm 1), for all samples of a batch at once.

.. math:: s = 0 \;\to\; \text{warm-up: input} \;\to\; \text{clamped: input and label} \to s'
    \;\to\; \text{free: input} \to s^*

States have shape (samples, layers, n). A sweep is that of :mod:`rmsim.dynamics.step`, sgn(0) = +1.
From s = 0 the first synchronous sweep needs no product. A masked sweep leaves a neuron that was
never updated at 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from rmsim.couplings import AdjacencyCouplings
from rmsim.dynamics.masks import fill_mask, mask_keys
from rmsim.dynamics.step import masked, sequential, sign, synchronous
from rmsim.learning.parameters import Parameters
from rmsim.learning.state import Internal, State

#: The mask of one sweep, by its number; None updates every neuron.
Masks = Callable[[int], torch.Tensor] | None


@dataclass(frozen=True, eq=False)
class Relaxed:
    """Where a phase ended.

    Parameters
    ----------
    s : Tensor, (samples, layers, n)
        States.
    sweeps : Tensor of int, (samples)
        Sweeps until nothing changed any more; those done, if it was not watched.
    converged : Tensor of bool, (samples), optional
        Whether the states are fixed points; None if it was not watched.
    """

    s: torch.Tensor
    sweeps: torch.Tensor
    converged: torch.Tensor | None


@dataclass(frozen=True, eq=False)
class Phases:
    """The ends of the clamped and of the free phase, and the field of the input.

    Parameters
    ----------
    clamped, free : Relaxed
        s' and s* with their sweeps.
    input_field, label_field : Tensor, (samples, layers, n)
        What input and label add to h.
    """

    clamped: Relaxed
    free: Relaxed
    input_field: torch.Tensor
    label_field: torch.Tensor

    @property
    def s_prime(self) -> torch.Tensor:
        """s', the end of the clamped phase."""
        return self.clamped.s

    @property
    def s_star(self) -> torch.Tensor:
        """s*, the end of the free phase."""
        return self.free.s


def phases(
    parameters: Parameters, state: State, x: torch.Tensor, code: torch.Tensor, number: int = 0
) -> Phases:
    """Return s' and s* for a batch.

    Parameters
    ----------
    parameters, state
        The protocol and the weights.
    x : Tensor, (samples, D)
        Inputs.
    code : Tensor, (samples, C)
        Label codes, as :func:`rmsim.learning.data.label_code` makes them.
    number : int
        Number of the batch: another one, other masks (if p < 1).
    """
    shape = (len(x), parameters.layers, parameters.n)
    input_field = state.w_in.field(x).view(shape)
    label_field = state.w_back.field(code).view(shape)
    masks = _masks(parameters, state, len(x), number)
    couplings = state.couplings
    fixed = replace(parameters, stop="fixed")
    warm = relax(fixed, couplings, None, input_field, parameters.warmup, masks)
    both = input_field + label_field
    done = parameters.warmup
    clamped = relax(parameters, couplings, warm.s, both, parameters.clamped, masks, done)
    if parameters.scheme == "approximate":
        return Phases(clamped, clamped, input_field, label_field)
    done += parameters.clamped
    free = relax(parameters, couplings, clamped.s, input_field, parameters.free, masks, done)
    return Phases(clamped, free, input_field, label_field)


def infer_batch(parameters: Parameters, state: State, x: torch.Tensor, number: int = 0) -> Relaxed:
    """Return the states under the input alone, from s = 0."""
    field = state.w_in.field(x).view(len(x), parameters.layers, parameters.n)
    couplings = state.couplings
    if not parameters.right_in_inference:
        couplings = without(couplings, right=True)
    masks = _masks(parameters, state, len(x), number)
    return relax(parameters, couplings, None, field, parameters.inference, masks)


def without(couplings: Internal, *, jd: bool = False, right: bool = False) -> Internal:
    """Return the couplings without J_D, or without the coupling to the next layer."""
    if jd:
        couplings = replace(couplings, jd=0.0)
    if right and not isinstance(couplings, AdjacencyCouplings):
        couplings = replace(couplings, lam_right=0.0)
    return couplings


def relax(
    parameters: Parameters,
    couplings: Internal,
    s: torch.Tensor | None,
    field: torch.Tensor,
    sweeps: int,
    masks: Masks,
    done: int = 0,
) -> Relaxed:
    """Do at most `sweeps` sweeps from `s` (None: from 0) under the external `field`.

    If the parameters say ``converged``, stop when all states are fixed points. The states that
    are wait for the others: a fixed point does not change.
    """
    watch = parameters.stop == "converged"
    external, current = field.unsqueeze(0), None if s is None else s.unsqueeze(0)
    used = torch.zeros(len(field), dtype=torch.int64, device=field.device)
    stable = torch.zeros(len(field), dtype=torch.bool, device=field.device)
    for sweep in range(sweeps):
        mask = None if masks is None else masks(done + sweep)
        before, current = current, _sweep(parameters, couplings, current, external, mask)
        if watch:
            stable = _stable(parameters, couplings, before, current, external)
            if bool(stable.all()):
                break
            used += ~stable
        else:
            used += 1
    if current is None:
        current = torch.zeros_like(external)
    if watch and not bool(stable.all()):
        stable = is_fixed(couplings, current[0], field)
    return Relaxed(current[0], used, stable if watch else None)


def is_fixed(couplings: Internal, s: torch.Tensor, field: torch.Tensor) -> torch.Tensor:
    """Return which states `s` agree with their full field, mask or no mask."""
    return _agree(synchronous(couplings, s.unsqueeze(0), field.unsqueeze(0)), s.unsqueeze(0))


def _stable(
    parameters: Parameters,
    couplings: Internal,
    before: torch.Tensor | None,
    after: torch.Tensor,
    external: torch.Tensor,
) -> torch.Tensor:
    """Return which states had reached a fixed point before the sweep (after it, under a mask)."""
    if parameters.p < 1:
        return is_fixed(couplings, after[0], external[0])
    if before is None:
        return torch.zeros(external.shape[1], dtype=torch.bool, device=external.device)
    return _agree(before, after)


def _agree(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
    return (one == two).flatten(2).all(-1)[0]


def _sweep(
    parameters: Parameters,
    couplings: Internal,
    s: torch.Tensor | None,
    external: torch.Tensor,
    mask: torch.Tensor | None,
) -> torch.Tensor:
    if s is None:
        if parameters.update == "synchronous":
            new = sign(external)
            return new if mask is None else new * mask
        s = torch.zeros_like(external)
    if mask is not None:
        return masked(couplings, s, mask, external, parameters.update)
    if parameters.update == "synchronous":
        return synchronous(couplings, s, external)
    return sequential(couplings, s, external)


def _masks(parameters: Parameters, state: State, samples: int, number: int) -> Masks:
    if parameters.p == 1:
        return None
    keys = mask_keys(state.seed, range(number + 1, number + 2), samples).to(state.device)
    shape = (1, samples, parameters.layers, parameters.n)

    def mask(sweep: int) -> torch.Tensor:
        out = torch.empty(shape, dtype=torch.bool, device=state.device)
        fill_mask(keys, sweep, parameters.p, out)
        return out

    return mask
