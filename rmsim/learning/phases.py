r"""The three phases of a presentation (paper, Algorithm 1), for all samples of a batch at once.

.. math:: s = 0 \;\to\; \text{warm-up: input} \;\to\; \text{clamped: input and label} \to s'
    \;\to\; \text{free: input} \to s^*

States have shape (samples, layers, n). A sweep is that of :mod:`rmsim.dynamics.sweeps`, sgn(0) =
+1. From s = 0 the first synchronous sweep needs no product. A masked sweep leaves a neuron that was
never updated at 0.

Dense networks on the CPU multiply only what flips (:class:`Flips`). After the first sweep few
neurons flip, 1 in 30 and then fewer. So the field of a state is not recomputed but corrected,

.. math:: (Js)_i \leftarrow (Js)_i + \sum_{j\ \text{flipped}} J_{ij}\,(s^{new}_j - s^{old}_j),

column by column; a sweep in which many flip takes the matrix product instead. Columns have to be
contiguous: :func:`by_columns` stores J that way. The field differs from that of the product by
rounding, some 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch

from rmsim.compiled_loops import compiled, compiled_part, run_parts, shares, thread_count
from rmsim.couplings.base import PlasticCouplings
from rmsim.dynamics.flips import add_columns
from rmsim.dynamics.sweeps import STREAM, fill_mask, mask_keys
from rmsim.learning.parameters import Parameters
from rmsim.learning.state import State
from rmsim.tensors import checked_sync_interval, is_up, sign

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
        Sweeps until nothing changed any more; those done, if it was not tested.
    converged : Tensor of bool, (samples), optional
        Whether the states are fixed points; None if it was not tested.
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
    every = checked_sync_interval(field.device)
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
    states = s.unsqueeze(0)
    return _agree(sign(couplings.field(states, field.unsqueeze(0))), states)


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


#: Neurons worth a thread of their own.
_GRAIN = 2**18
#: Share of the neurons above which their flips cost more than a product.
_MANY = 0.25


def by_columns(state: State) -> State:
    """Return the same state with the columns of a dense J contiguous; for the CPU only."""
    return replace(state, couplings=state.couplings.by_columns())


def by_rows(state: State) -> State:
    """Return the same state with its weights in the usual order of memory."""
    return replace(state, couplings=state.couplings.by_rows())


class Flips:
    """States of a batch under one dense network, from s = 0, with their fields J s.

    Parameters
    ----------
    couplings : PlasticCouplings
        One network, its columns contiguous.
    samples : int
        States.
    sequential : bool
        Update layer after layer.
    """

    def __init__(self, couplings: PlasticCouplings, samples: int, sequential: bool) -> None:
        self.couplings = couplings
        layers = couplings.layers
        self._groups = [(k, k + 1) for k in range(layers)] if sequential else [(0, layers)]
        shape = (samples, couplings.layers, couplings.n)
        columns = couplings.columns
        assert columns is not None
        self.columns = columns
        self.s = torch.zeros(shape, dtype=couplings.dtype)
        self.product = torch.zeros(shape, dtype=couplings.dtype)
        self._new = torch.empty(shape, dtype=couplings.dtype)
        kind = self.columns.numpy().dtype.type
        chain = (couplings.jd, *(couplings.homologous.get(step, 0.0) for step in (-1, 1)))
        self._chain = tuple(kind(x) for x in chain)
        self._most = int(_MANY * samples * couplings.n)
        #: Whether sweeps of all neurons can be done by :meth:`run`.
        self.synchronous = not sequential or layers == 1
        self._rest = True

    def run(self, external: torch.Tensor, sweeps: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Do at most `sweeps` synchronous sweeps of all neurons, each sample until it is fixed.

        Returns
        -------
        Tensor of int, (samples)
            Sweeps that began at a state that was not a fixed point.
        Tensor of bool, (samples)
            Whether the state is a fixed point.
        """
        samples = len(self.s)
        used = torch.zeros(samples, dtype=torch.int64)
        fixed = torch.zeros(samples, dtype=torch.bool)
        if self._rest and sweeps > 0:  # from s = 0 all neurons change: one product
            self.sweep(external, None)
            used += 1
            sweeps -= 1
        arrays = (self.columns.reshape(-1), self.product, self.s, external.contiguous())
        given = (*(x.numpy() for x in arrays), self._chain, sweeps, used.numpy(), fixed.numpy())
        parts = shares(samples, min(samples, thread_count(self.s.numel() * (sweeps + 1), _GRAIN)))
        run_parts(_run, [(*given, part) for part in parts])
        return used, fixed

    def sweep(self, external: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Do one sweep; see :class:`rmsim.learning.phases.Motion`."""
        self._rest = False
        samples = len(self.s)
        unstable = torch.zeros(samples, dtype=torch.bool)
        flips = np.zeros((samples, self.s.shape[1]), np.int64)
        product, s, new = self.product.numpy(), self.s.numpy(), self._new.numpy()
        columns, field = self.columns.reshape(-1).numpy(), external.contiguous().numpy()
        allowed = (unstable.view(-1, 1, 1) if mask is None else mask).numpy()
        masked, against = mask is not None, unstable.numpy()
        parts = shares(samples, min(samples, thread_count(s.size, _GRAIN)))
        for group in self._groups:
            states = (product, s, new, field, self._chain, allowed, masked, group, against, flips)
            run_parts(_follow, [(*states, part) for part in parts])
            for layer in range(*group):
                if flips[:, layer].sum() <= self._most:
                    run_parts(_flip, [(columns, product, s, new, layer, part) for part in parts])
                    continue
                self.s[:, layer] = self._new[:, layer]
                torch.mm(self.s[:, layer], self.columns[layer], out=self.product[:, layer])
        return unstable


@compiled
def _run(
    columns: Any,
    product: Any,
    s: Any,
    external: Any,
    chain: Any,
    sweeps: int,
    used: Any,
    fixed: Any,
    part: Any,
) -> None:
    """Sweep the samples of a part one by one: state and product of a sample stay in the cache."""
    layers, n = s.shape[1], s.shape[2]
    new = np.empty((1, layers, n), s.dtype)
    chosen, changes = np.empty(n, np.int64), np.empty(n, s.dtype)
    for b in range(part[0], part[1]):
        for sweep in range(sweeps + 1):
            flips = 0
            for layer in range(layers):
                flips += _write_signs(product, s, external, chain, b, layer, new, 0)
            if flips == 0:
                fixed[b] = True
                break
            if sweep == sweeps:  # this one only checked
                break
            used[b] += 1
            for layer in range(layers):
                _follow_changes(columns, product, s, new, 0, b, layer, chosen, changes)


@compiled_part
def _write_signs(
    product: Any, s: Any, external: Any, chain: Any, b: int, layer: int, new: Any, there: int
) -> int:
    """Write the signs of the fields of a layer into ``new[there]``; return how many disagree."""
    jd, left, right = chain
    one, last = s.dtype.type(1), s.shape[1] - 1
    here, signs = s[b, layer], new[there, layer]
    total, field = product[b, layer], external[b, layer]
    before, after = s[b, max(layer - 1, 0)], s[b, min(layer + 1, last)]
    from_left = left if layer > 0 else left * 0
    from_right = right if layer < last else right * 0
    for i in range(len(here)):
        h = total[i] + jd * here[i]
        h = h + from_left * before[i] + from_right * after[i] + field[i]
        signs[i] = one if is_up(h) else -one
    disagree = 0
    for i in range(len(here)):
        disagree += signs[i] != here[i]
    return disagree


@compiled_part
def _follow_changes(
    columns: Any,
    product: Any,
    s: Any,
    new: Any,
    there: int,
    b: int,
    layer: int,
    chosen: Any,
    changes: Any,
) -> None:
    """Let the neurons of a layer go to ``new[there]``, and correct their product."""
    here, then, count = s[b, layer], new[there, layer], 0
    for j in range(len(here)):
        if then[j] != here[j]:
            chosen[count], changes[count] = j, then[j] - here[j]
            here[j] = then[j]
            count += 1
    add_columns(columns, layer * len(here), chosen, changes, count, product[b, layer])


@compiled
def _follow(
    product: Any,
    s: Any,
    new: Any,
    external: Any,
    chain: Any,
    mask: Any,
    masked: bool,
    group: Any,
    unstable: Any,
    flips: Any,
    part: Any,
) -> None:
    """Write the states after a sweep of some layers into `new`, for a part of the samples.

    Adds to `unstable` which states disagree with their field, and sets the number of `flips`,
    (samples, layers).
    """
    for b in range(part[0], part[1]):
        for layer in range(group[0], group[1]):
            count = _write_signs(product, s, external, chain, b, layer, new, b)
            unstable[b] |= count > 0
            if masked:
                count = 0
                for i in range(s.shape[2]):
                    if not mask[b, layer, i]:
                        new[b, layer, i] = s[b, layer, i]
                    count += new[b, layer, i] != s[b, layer, i]
            flips[b, layer] = count


@compiled
def _flip(columns: Any, product: Any, s: Any, new: Any, layer: int, part: Any) -> None:
    """Let the neurons of a layer flip, and correct the products of a part of the samples."""
    n = s.shape[2]
    chosen, changes = np.empty(n, np.int64), np.empty(n, s.dtype)
    for b in range(part[0], part[1]):
        _follow_changes(columns, product, s, new, b, b, layer, chosen, changes)
