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
from rmsim.dynamics.masks import STREAM, fill_mask, mask_keys
from rmsim.dynamics.step import synchronous
from rmsim.learning.flips import Flips
from rmsim.learning.motion import Motion, motion_of
from rmsim.learning.parameters import Parameters
from rmsim.learning.state import Internal, State

#: Sweeps between two questions whether all states are fixed; each question stalls a GPU.
_CHECK_EVERY = {"cpu": 1}
_CHECK_ELSEWHERE = 8

#: Streams of the masks: those of learning, of inference, and of a measurement that learns nothing.
LEARNING, INFERENCE, MEASUREMENT = STREAM, 7, 8

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
    product : Tensor, (samples, layers, n), optional
        J s*, if it came with the sweeps.
    """

    clamped: Relaxed
    free: Relaxed
    input_field: torch.Tensor
    label_field: torch.Tensor
    product: torch.Tensor | None = None

    @property
    def s_prime(self) -> torch.Tensor:
        """s', the end of the clamped phase."""
        return self.clamped.s

    @property
    def s_star(self) -> torch.Tensor:
        """s*, the end of the free phase."""
        return self.free.s


def phases(
    parameters: Parameters,
    state: State,
    x: torch.Tensor,
    code: torch.Tensor,
    number: int = 0,
    *,
    stream: int = LEARNING,
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
    stream : int
        What the masks are for: another purpose, other masks.
    """
    shape = torch.Size((len(x), parameters.layers, parameters.n))
    input_field = state.w_in.field(x).view(shape)
    label_field = state.w_back.field(code).view(shape)
    masks = _masks(parameters, state, len(x), number, stream)
    motion = motion_of(parameters, state.couplings, shape)
    watch = parameters.stop == "converged"
    relax(motion, input_field, parameters.warmup, masks)
    both = input_field + label_field
    done = parameters.warmup
    clamped = relax(motion, both, parameters.clamped, masks, done, watch=watch)
    free = clamped
    if parameters.scheme == "full":
        done += parameters.clamped
        free = relax(motion, input_field, parameters.free, masks, done, watch=watch)
    return Phases(clamped, free, input_field, label_field, motion.product)


def infer_batch(parameters: Parameters, state: State, x: torch.Tensor, number: int = 0) -> Relaxed:
    """Return the states under the input alone, from s = 0."""
    field = state.w_in.field(x).view(len(x), parameters.layers, parameters.n)
    couplings = state.couplings
    if not parameters.right_in_inference:
        couplings = without(couplings, right=True)
    masks = _masks(parameters, state, len(x), number, INFERENCE)
    motion = motion_of(parameters, couplings, field.shape)
    watch = parameters.stop == "converged"
    return relax(motion, field, parameters.inference, masks, watch=watch)


def without(couplings: Internal, *, jd: bool = False, right: bool = False) -> Internal:
    """Return the couplings without J_D, or without the coupling to the next layer."""
    if jd:
        couplings = replace(couplings, jd=0.0)
    if right and not isinstance(couplings, AdjacencyCouplings):
        couplings = replace(couplings, lam_right=0.0)
    return couplings


def relax(
    motion: Motion,
    field: torch.Tensor,
    sweeps: int,
    masks: Masks,
    done: int = 0,
    *,
    watch: bool = False,
) -> Relaxed:
    """Do at most `sweeps` sweeps of a batch in motion under the external `field`.

    If one watches, they stop when all states are fixed points. The states that are wait for the
    others: a fixed point does not change.
    """
    if masks is None and isinstance(motion, Flips) and motion.synchronous:
        counted, fixed = motion.run(field, sweeps)
        used = counted if watch else torch.full_like(counted, sweeps)
        return Relaxed(motion.s.clone(), used, fixed if watch else None)
    every = _CHECK_EVERY.get(field.device.type, _CHECK_ELSEWHERE)
    used = torch.zeros(len(field), dtype=torch.int64, device=field.device)
    unstable = torch.ones(len(field), dtype=torch.bool, device=field.device)
    for sweep in range(sweeps):
        mask = None if masks is None else masks(done + sweep)
        unstable = motion.sweep(field, mask)
        if not watch:
            used += 1
            continue
        used += unstable  # nothing is added to states that are fixed: asking late changes no number
        if (sweep + 1) % every == 0 and not bool(unstable.any()):
            break
    if watch and bool(unstable.any()):
        unstable = ~is_fixed(motion.couplings, motion.s, field)
    return Relaxed(motion.s.clone(), used, ~unstable if watch else None)


def is_fixed(couplings: Internal, s: torch.Tensor, field: torch.Tensor) -> torch.Tensor:
    """Return which states `s` agree with their full field, mask or no mask."""
    return _agree(synchronous(couplings, s.unsqueeze(0), field.unsqueeze(0)), s.unsqueeze(0))


def _agree(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
    return (one == two).flatten(2).all(-1)[0]


def _masks(parameters: Parameters, state: State, samples: int, number: int, stream: int) -> Masks:
    if parameters.p == 1:
        return None
    keys = mask_keys(state.seed, range(number + 1, number + 2), samples, stream).to(state.device)
    shape = (samples, parameters.layers, parameters.n)

    def mask(sweep: int) -> torch.Tensor:
        out = torch.empty(shape, dtype=torch.bool, device=state.device)
        fill_mask(keys, sweep, parameters.p, out.unsqueeze(0))
        return out

    return mask
