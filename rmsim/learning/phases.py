r"""The three phases of a presentation (paper, Algorithm 1), for all samples of a batch at once.

.. math:: s = 0 \;\to\; \text{warm-up: input} \;\to\; \text{clamped: input and label} \to s'
    \;\to\; \text{free: input} \to s^*

States have shape (samples, layers, n). A sweep is that of :mod:`rmsim.dynamics.sweeps`, sgn(0) =
+1. From s = 0 the first synchronous sweep needs no product. A masked sweep leaves a neuron that was
never updated at 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch

from rmsim.couplings import PlasticCouplings
from rmsim.dynamics.sweeps import STREAM, fill_mask, mask_keys, synchronous
from rmsim.learning.flips import Flips
from rmsim.learning.parameters import Parameters
from rmsim.learning.state import State
from rmsim.tensors import sign

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


class Motion(Protocol):
    """A batch of states under one network, from s = 0, sweep after sweep."""

    @property
    def couplings(self) -> PlasticCouplings:
        """The network."""

    @property
    def s(self) -> torch.Tensor:
        """States, (samples, layers, n)."""

    @property
    def product(self) -> torch.Tensor | None:
        """J s, if it is known."""

    def sweep(self, external: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Do one sweep under the field `external`, of the neurons where `mask` is True.

        Returns
        -------
        Tensor of bool, (samples)
            Which of the states it began with were not fixed points, mask or no mask.
        """


class Sweeps:
    """Every sweep by the products of the couplings: any kind of them, any device."""

    product = None

    def __init__(
        self, parameters: Parameters, couplings: PlasticCouplings, shape: torch.Size
    ) -> None:
        self.couplings = couplings
        self.s = torch.zeros(shape, dtype=couplings.dtype, device=couplings.device)
        self._rest = parameters.phases.update == "synchronous"  # at s = 0, which needs no product
        layers = shape[1]
        self._groups = (
            [slice(0, layers)] if self._rest else [slice(k, k + 1) for k in range(layers)]
        )

    def sweep(self, external: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Do one sweep; see :class:`Motion`."""
        before = self.s
        self.s = before.clone()
        unstable = torch.zeros(len(before), dtype=torch.bool, device=before.device)
        for group in self._groups:
            new = sign(self._field(external, group))
            unstable |= (new != before[:, group]).flatten(1).any(1)
            if mask is not None:
                new = torch.where(mask[:, group], new, before[:, group])
            self.s[:, group] = new
        self._rest = False
        return unstable

    def _field(self, external: torch.Tensor, group: slice) -> torch.Tensor:
        if self._rest:
            return external
        layer = None if len(self._groups) == 1 else group.start
        h = self.couplings.field(self.s.unsqueeze(0), external.unsqueeze(0), layer=layer)
        return h[0] if layer is None else h[0].unsqueeze(1)


def motion_of(parameters: Parameters, couplings: PlasticCouplings, shape: torch.Size) -> Motion:
    """Return a batch of that `shape` at s = 0; by its flips if the columns of J are at hand."""
    if couplings.columns is not None:
        return Flips(couplings, shape[0], parameters.phases.update == "sequential")
    return Sweeps(parameters, couplings, shape)


def label_code(parameters: Parameters, state: State, labels: torch.Tensor) -> torch.Tensor:
    """Return y of the field, (samples, C): `label_true` for the class, `label_other` else."""
    if labels.dim() == 2:
        return labels.to(dtype=state.dtype, device=state.device)
    labels = labels.to(state.device)
    code = torch.full(
        (len(labels), state.classes),
        parameters.w_back.label_other,
        dtype=state.dtype,
        device=state.device,
    )
    return code.scatter_(1, labels.unsqueeze(1), parameters.w_back.label_true)


def present(
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
        Label codes, as :func:`label_code` makes them.
    number : int
        Number of the batch: another one, other masks (if p < 1).
    stream : int
        What the masks are for: another purpose, other masks.
    """
    shape = torch.Size((len(x), *parameters.couplings.shape))
    input_field = state.w_in.field(x).view(shape)
    label_field = state.w_back.field(code).view(shape)
    masks = _masks(parameters, state, len(x), number, stream)
    motion = motion_of(parameters, state.couplings, shape)
    chosen = parameters.phases
    converge = chosen.stop == "converged"
    relax(motion, input_field, chosen.warmup, masks)
    both = input_field + label_field
    done = chosen.warmup
    clamped = relax(motion, both, chosen.clamped, masks, done, converge=converge)
    free = clamped
    if chosen.scheme == "full":
        done += chosen.clamped
        free = relax(motion, input_field, chosen.free, masks, done, converge=converge)
    return Phases(clamped, free, input_field, label_field, motion.product)


def infer_batch(parameters: Parameters, state: State, x: torch.Tensor, number: int = 0) -> Relaxed:
    """Return the states under the input alone, from s = 0."""
    field = state.w_in.field(x).view(len(x), *parameters.couplings.shape)
    couplings = state.couplings
    if not parameters.phases.right_in_inference:
        couplings = couplings.without(right=True)
    masks = _masks(parameters, state, len(x), number, INFERENCE)
    motion = motion_of(parameters, couplings, field.shape)
    converge = parameters.phases.stop == "converged"
    return relax(motion, field, parameters.phases.inference, masks, converge=converge)


def relax(
    motion: Motion,
    field: torch.Tensor,
    sweeps: int,
    masks: Masks,
    done: int = 0,
    *,
    converge: bool = False,
) -> Relaxed:
    """Do at most `sweeps` sweeps of a batch in motion under the external `field`.

    With `converge` they stop when all states are fixed points. States that are wait for the others:
    a fixed point does not change.
    """
    if masks is None and isinstance(motion, Flips) and motion.synchronous:
        counted, fixed = motion.run(field, sweeps)
        used = counted if converge else torch.full_like(counted, sweeps)
        return Relaxed(motion.s.clone(), used, fixed if converge else None)
    every = _CHECK_EVERY.get(field.device.type, _CHECK_ELSEWHERE)
    used = torch.zeros(len(field), dtype=torch.int64, device=field.device)
    unstable = torch.ones(len(field), dtype=torch.bool, device=field.device)
    for sweep in range(sweeps):
        mask = None if masks is None else masks(done + sweep)
        unstable = motion.sweep(field, mask)
        if not converge:
            used += 1
            continue
        used += (
            unstable  # nothing is added to states that are fixed: reading late changes no number
        )
        if (sweep + 1) % every == 0 and not bool(unstable.any()):
            break
    if converge and bool(unstable.any()):
        unstable = ~is_fixed(motion.couplings, motion.s, field)
    return Relaxed(motion.s.clone(), used, ~unstable if converge else None)


def is_fixed(couplings: PlasticCouplings, s: torch.Tensor, field: torch.Tensor) -> torch.Tensor:
    """Return which states `s` agree with their full field, mask or no mask."""
    return _agree(synchronous(couplings, s.unsqueeze(0), field.unsqueeze(0)), s.unsqueeze(0))


def _agree(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
    return (one == two).flatten(2).all(-1)[0]


def _masks(parameters: Parameters, state: State, samples: int, number: int, stream: int) -> Masks:
    if parameters.phases.p == 1:
        return None
    keys = mask_keys(state.seed, range(number + 1, number + 2), samples, stream).to(state.device)
    shape = (samples, *parameters.couplings.shape)

    def mask(sweep: int) -> torch.Tensor:
        out = torch.empty(shape, dtype=torch.bool, device=state.device)
        fill_mask(keys, sweep, parameters.phases.p, out.unsqueeze(0))
        return out

    return mask
