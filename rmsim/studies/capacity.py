r"""Hetero-association: chains of one shape learn random pairs x -> y (paper, SM-D).

.. math::
    h^l = J^l s^l + \lambda s^{l-1} + \lambda s^{l+1}, \qquad
    J^l_{ij} \mathrel{+}= \eta \sum_\mu s_i s_j\, 1[s_i \tilde h_i \le \kappa],
    \quad \eta = \frac{\eta_0}{\sqrt{N B}},

with :math:`\lambda_x x` in the place of :math:`\lambda s^0` and, while the target is shown,
:math:`\lambda_y y` in the place of :math:`\lambda s^{L+1}`; J_ii = J_D is never changed. The
capacity is that of the last layer, whose state is compared with y.

The paper gives no settings for this task. Two protocols are named here:

``printed``
    The paper's words: the target is removed and a free phase follows, the rule stabilises what it
    ends in, in the whole field, and at inference all layers act on each other. Neurons are updated
    with probability p, as the paper does in chains.
``reconstruction``
    What shows the paper's growth of capacity with depth: no free phase, and the field from the
    right, :math:`\lambda s^{l+1}`, is left out of :math:`\tilde h` and of inference.

Several trials, each with its own number P of pairs, are computed at once: states have the shape
(trials, layers, patterns, n), couplings (trials, layers, n, n). Trials that have learnt their pairs
are dropped.

Three routes have the same results up to rounding. :class:`Motion` makes every product, on any
device; on a CPU only what changes is multiplied (:class:`Flips`); and there, in float32 and without
masks, whole epochs are compiled loops (:mod:`rmsim.studies.capacity_tables`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rmsim.compiled_loops import compiled, run_parts, shares, thread_count
from rmsim.dynamics.active import ActiveSet, Index, PerNetwork, Search
from rmsim.dynamics.flips import add_columns
from rmsim.studies.capacity_tables import PairTables, has_tables
from rmsim.tensors import checked_sync_interval, fill_normal_, generator, sign_or_neutral
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError

Array = NDArray[np.float64]

#: The share of the patterns that need not be recalled.
LEVEL = 0.05


@dataclass(frozen=True)
class PairCouplings:
    """Couplings of the layers, of the input and of the target, and the self-coupling."""

    lam: float = 1.5
    lam_x: float = 2.0
    lam_y: float = 4.0
    jd: float = 0.1


@dataclass(frozen=True)
class PairPhases:
    """Sweeps of a presentation and of inference.

    Parameters
    ----------
    right_at_inference : bool
        Whether the field from the right acts at inference.
    free_sweeps : int
        Sweeps without target after those with it; 0 for no free phase.
    p : float
        Chance of a neuron to be updated in a sweep.
    clamped_sweeps, inference_sweeps : int
        Most sweeps with target, and at inference, where L more are made.
    """

    right_at_inference: bool
    free_sweeps: int
    p: float = 1.0
    clamped_sweeps: int = 12
    inference_sweeps: int = 36

    def __post_init__(self) -> None:
        _demand_integers(self, free_sweeps=0, clamped_sweeps=1, inference_sweeps=1)
        if not 0 < self.p <= 1:
            raise InvalidInputError("p", self.p, "a probability above 0, at most 1")


@dataclass(frozen=True)
class PairRule:
    """The rule: whether the field from the right counts, margin, rate before scaling, batch."""

    right_in_rule: bool
    kappa: float = 1.5
    eta: float = 0.03
    batch: int = 16

    def __post_init__(self) -> None:
        _demand_integers(self, batch=1)


@dataclass(frozen=True)
class Stopping:
    """When training ends.

    Parameters
    ----------
    check_every, max_epochs : int
        Epochs between two measurements of the overlaps, and at most.
    enough : float
        Training ends once the 5th percentile of the overlaps reaches it.
    """

    check_every: int = 10
    max_epochs: int = 300
    enough: float = 0.99

    def __post_init__(self) -> None:
        _demand_integers(self, check_every=1, max_epochs=1)


def _demand_integers(group: object, **least: int) -> None:
    for name, bound in least.items():
        checks.integer(name, getattr(group, name), bound)


@dataclass(frozen=True)
class Protocol:
    """All choices of the protocol.

    Parameters
    ----------
    name : str
        Its name.
    phases : PairPhases
        Sweeps.
    rule : PairRule
        What learns.
    couplings : PairCouplings
        What acts on a layer besides J.
    stopping : Stopping
        Epochs.

    Examples
    --------
    >>> protocol_named("printed").with_settings(p=1.0, max_epochs=3).stopping.max_epochs
    3
    """

    name: str
    phases: PairPhases
    rule: PairRule
    couplings: PairCouplings = field(default_factory=PairCouplings)
    stopping: Stopping = field(default_factory=Stopping)

    def with_settings(self, **settings: Any) -> Protocol:
        """Return the protocol with these settings, by their names without groups."""
        groups = {name: getattr(self, name) for name in ("phases", "rule", "couplings", "stopping")}
        homes = {one.name: group for group, part in groups.items() for one in fields(part)}
        for name, value in settings.items():
            if name not in homes:
                raise InvalidInputError("setting", name, f"one of {', '.join(homes)}")
            groups[homes[name]] = replace(groups[homes[name]], **{name: value})
        return replace(self, **groups)


RECONSTRUCTION = Protocol(
    "reconstruction",
    PairPhases(right_at_inference=False, free_sweeps=0),
    PairRule(right_in_rule=False),
)
PRINTED = Protocol(
    "printed",
    PairPhases(right_at_inference=True, free_sweeps=12, p=0.8),
    PairRule(right_in_rule=True),
)

PROTOCOLS = {protocol.name: protocol for protocol in (RECONSTRUCTION, PRINTED)}


def protocol_named(name: str) -> Protocol:
    """Return the protocol called `name`."""
    if name not in PROTOCOLS:
        raise InvalidInputError("protocol", name, f"one of {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]


# Dynamics and rule.


def local_field(
    protocol: Protocol, j: torch.Tensor, s: torch.Tensor, x: torch.Tensor, *, right: bool
) -> torch.Tensor:
    """Return J s with J_D on the diagonal, the field from the left, and that from the right.

    Parameters
    ----------
    j, s, x : Tensor
        Couplings (trials, layers, n, n), states (trials, layers, patterns, n) and inputs (trials,
        patterns, n).
    right : bool
        Whether the next layer acts back.
    """
    return add_neighbours(protocol, s @ j.transpose(-1, -2), s, x, right=right)


def add_neighbours(
    protocol: Protocol, h: torch.Tensor, s: torch.Tensor, x: torch.Tensor, *, right: bool
) -> torch.Tensor:
    """Add to the products `h` what layers get from the input and from each other."""
    h[:, 0] += protocol.couplings.lam_x * x
    h[:, 1:] += protocol.couplings.lam * s[:, :-1]
    if right:
        h[:, :-1] += protocol.couplings.lam * s[:, 1:]
    return h


def neutral(j: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return the state s = 0 of all layers for the inputs `x`."""
    trials, layers, n = j.shape[:3]
    return torch.zeros(trials, layers, x.shape[1], n, dtype=j.dtype, device=j.device)


def relax(
    protocol: Protocol,
    j: torch.Tensor,
    s: torch.Tensor,
    x: torch.Tensor,
    sweeps: int,
    *,
    right: bool = True,
    y: torch.Tensor | None = None,
    draw: torch.Generator | None = None,
) -> torch.Tensor:
    """Return the states after at most `sweeps` sweeps, fewer where no state changes any more.

    A neuron without any field stays at 0, so that a layer is neutral until the input reaches it: if
    it went to +1 instead, the inner layers of a deep chain would hold each other there, and chains
    of more than three layers would learn nothing.

    With p < 1 each neuron is updated with that probability, drawn from `draw`; a sweep in which
    nothing moves then proves no fixed point, and all sweeps are made. The masks of all sweeps are
    drawn on the CPU, where `draw` is, and moved together: the same on every device, for one wait.
    """
    kept = kept_neurons(protocol, s, sweeps, draw)
    every = checked_sync_interval(s.device)  # a fixed point stays: testing for it late is no loss
    for sweep in range(sweeps):
        h = local_field(protocol, j, s, x, right=right)
        if y is not None:
            h[:, -1] += protocol.couplings.lam_y * y
        new = sign_or_neutral(h)
        if kept is not None:
            new = torch.where(kept[sweep] & (s != 0), s, new)
        elif (sweep + 1) % every == 0 and torch.equal(new, s):
            break
        s = new
    return s


def overlaps(s: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the overlap with targets (or inputs) `y`: (trials, layers, patterns)."""
    return (s * y[:, None]).mean(dim=-1)


def kept_neurons(
    protocol: Protocol, s: torch.Tensor, sweeps: int, draw: torch.Generator | None
) -> torch.Tensor | None:
    """Return which neurons keep their state, (sweeps, ...); None if all are updated."""
    if protocol.phases.p == 1 or draw is None:
        return None
    kept = torch.empty((sweeps, *s.shape), dtype=torch.bool)
    for mask in kept:
        torch.ge(torch.rand(s.shape, generator=draw), protocol.phases.p, out=mask)
    return kept.to(s.device)


class Motion:
    """States of a batch of patterns under the couplings of several trials, from s = 0.

    Parameters
    ----------
    protocol : Protocol
        The couplings between layers.
    j, x : Tensor
        Couplings (trials, layers, n, n) and inputs (trials, patterns, n).
    """

    def __init__(self, protocol: Protocol, j: torch.Tensor, x: torch.Tensor) -> None:
        self.protocol, self.j, self.x = protocol, j, x
        self.s = neutral(j, x)

    def relax(
        self,
        sweeps: int,
        *,
        right: bool = True,
        y: torch.Tensor | None = None,
        draw: torch.Generator | None = None,
    ) -> None:
        """Make at most `sweeps` sweeps; see :func:`relax`."""
        arguments = (self.protocol, self.j, self.s, self.x, sweeps)
        self.s = relax(*arguments, right=right, y=y, draw=draw)

    def field(self, *, right: bool) -> torch.Tensor:
        """Return the field; see :func:`local_field`."""
        return local_field(self.protocol, self.j, self.s, self.x, right=right)


class Flips(Motion):
    """The same on a CPU: the products J s are kept, and corrected by what has changed.

    A layer that is still neutral, or has not changed, needs no product; where few neurons change,
    their columns are added; else the product of that layer is made anew.
    """

    def __init__(self, protocol: Protocol, j: torch.Tensor, x: torch.Tensor) -> None:
        super().__init__(protocol, j, x)
        self.product = torch.zeros_like(self.s)
        self._new = torch.empty_like(self.s)

    def relax(
        self,
        sweeps: int,
        *,
        right: bool = True,
        y: torch.Tensor | None = None,
        draw: torch.Generator | None = None,
    ) -> None:
        """Make at most `sweeps` sweeps; see :func:`relax`."""
        s, product, new = self.s, self.product, self._new
        kept = kept_neurons(self.protocol, s, sweeps, draw)
        columns = self.j.transpose(-1, -2)
        flips = columns.is_contiguous()
        targets = np.zeros((1, 0, 0), self.x.numpy().dtype) if y is None else y.numpy()
        couplings = self.protocol.couplings
        chain = (couplings.lam_x, couplings.lam, couplings.lam_y)
        arrays = (product.numpy(), s.numpy(), self.x.numpy(), targets)
        numbers = tuple(arrays[0].dtype.type(value) for value in (*chain, right))
        changes = np.zeros(s.shape[:2], np.int64)
        many = _MANY * s.shape[2] * s.shape[3]
        tasks = len(s) * s.shape[1]
        parts = shares(tasks, min(tasks, thread_count(s.numel(), _GRAIN)))
        for sweep in range(sweeps):
            run_parts(_new_states, [(*arrays, numbers, new.numpy(), part) for part in parts])
            if kept is not None:
                new.copy_(torch.where(kept[sweep] & (s != 0), s, new))
            run_parts(_count_changes, [(s.numpy(), new.numpy(), changes, part) for part in parts])
            if not changes.any():
                if kept is not None:
                    continue
                break
            for trial, layer in zip(*np.nonzero(changes), strict=True):
                place = (int(trial), int(layer))
                if flips and changes[place] < many:
                    states = (product[place].numpy(), s[place].numpy(), new[place].numpy())
                    count = s.shape[2]
                    threads = min(count, thread_count(changes[place] * s.shape[3], _GRAIN))
                    run_parts(
                        _correct,
                        [
                            (columns[place].reshape(-1).numpy(), *states, part)
                            for part in shares(count, threads)
                        ],
                    )
                else:
                    torch.mm(new[place], columns[place], out=product[place])
            s.copy_(new)

    def field(self, *, right: bool) -> torch.Tensor:
        """Return the field from the products that are known."""
        return add_neighbours(self.protocol, self.product.clone(), self.s, self.x, right=right)


#: Share of changing neurons above which the product of a layer costs less than their columns.
_MANY = 0.3
#: Operations worth a thread of their own.
_GRAIN = 2**18


@compiled
def _new_states(product: Any, s: Any, x: Any, y: Any, couplings: Any, new: Any, part: Any) -> None:
    """Write the signs of the fields, 0 where there is none, of some layers of all trials."""
    lam_x, lam, lam_y, right = couplings
    layers, patterns, n = s.shape[1:]
    zero, one = s.dtype.type(0), s.dtype.type(1)
    for task in range(part[0], part[1]):
        k, layer = task // layers, task % layers
        from_left = lam_x if layer == 0 else lam
        from_right = lam * right if layer + 1 < layers else lam_y if y.shape[2] else zero
        for b in range(patterns):
            left = x[k, b] if layer == 0 else s[k, layer - 1, b]
            after = left
            if layer + 1 < layers:
                after = s[k, layer + 1, b]
            elif y.shape[2]:
                after = y[k, b]
            total, out = product[k, layer, b], new[k, layer, b]
            for i in range(n):
                h = total[i] + from_left * left[i] + from_right * after[i]
                out[i] = one if h > zero else -one if h < zero else zero


@compiled
def _count_changes(s: Any, new: Any, changes: Any, part: Any) -> None:
    """Count the neurons of some layers that change, over all patterns."""
    layers, patterns, n = s.shape[1:]
    for task in range(part[0], part[1]):
        k, layer = task // layers, task % layers
        count = 0
        for b in range(patterns):
            before, after = s[k, layer, b], new[k, layer, b]
            for i in range(n):
                count += before[i] != after[i]
        changes[k, layer] = count


@compiled
def _correct(columns: Any, product: Any, s: Any, new: Any, part: Any) -> None:
    """Add the columns of the neurons that change to the products of some patterns of a layer."""
    n = s.shape[1]
    chosen, changes = np.empty(n, np.int64), np.empty(n, s.dtype)
    for b in range(part[0], part[1]):
        before, after, count = s[b], new[b], 0
        for j in range(n):
            if before[j] != after[j]:
                chosen[count], changes[count] = j, after[j] - before[j]
                count += 1
        add_columns(columns, 0, chosen, changes, count, product[b])


def moving(protocol: Protocol, j: torch.Tensor, x: torch.Tensor) -> Motion:
    """Return the states of the inputs `x` at s = 0: by flips on a CPU, else by products."""
    return (Flips if j.device.type == "cpu" else Motion)(protocol, j, x.contiguous())


def learn_batch(
    protocol: Protocol,
    j: torch.Tensor,
    x: torch.Tensor,
    y: torch.Tensor,
    weight: torch.Tensor,
    draw: torch.Generator,
) -> None:
    """Show the pairs (trials, patterns, n), relax, and change `j` in place by the rule.

    `weight` (trials, patterns) is 0 for pairs that only fill the batch.
    """
    layers, n = j.shape[1], j.shape[-1]
    motion = moving(protocol, j, x)
    motion.relax(layers, draw=draw)
    motion.relax(protocol.phases.clamped_sweeps, y=y.contiguous(), draw=draw)
    if protocol.phases.free_sweeps:
        motion.relax(protocol.phases.free_sweeps, draw=draw)
    s, h = motion.s, motion.field(right=protocol.rule.right_in_rule)
    weak = s * (s * h <= protocol.rule.kappa) * weight[:, None, :, None]
    rate = protocol.rule.eta / math.sqrt(n * protocol.rule.batch)
    j.flatten(0, 1).baddbmm_(weak.flatten(0, 1).transpose(-1, -2), s.flatten(0, 1), alpha=rate)
    _self_couple(j, protocol.couplings.jd)


def by_columns(j: torch.Tensor) -> torch.Tensor:
    """Return the same couplings with contiguous columns, for :class:`Flips`; on the CPU only."""
    if j.device.type != "cpu":
        return j
    return j.transpose(-1, -2).contiguous().transpose(-1, -2)


def _self_couple(j: torch.Tensor, jd: float) -> None:
    j.diagonal(dim1=-2, dim2=-1).fill_(jd)


# Trials.


@dataclass(frozen=True)
class Trials:
    """The trials, each at the measurement with the best 5th percentile.

    Parameters
    ----------
    patterns : array (trials)
        P, the number of pairs.
    o5 : array (trials)
        5th percentile over patterns of the overlap of the last layer with the target.
    epochs : array (trials)
        Epochs trained until then.
    median, low, high : array (trials, layers)
        Overlap with the target by layer: median, 5th and 95th percentile over patterns.
    input_median, input_low, input_high : array (trials, layers)
        The same of the overlap with the input.
    """

    patterns: NDArray[np.int64]
    o5: Array
    epochs: NDArray[np.int64]
    median: Array
    low: Array
    high: Array
    input_median: Array
    input_low: Array
    input_high: Array


def run_trials(
    protocol: Protocol,
    layers: int,
    n: int,
    trials: Iterable[int],
    seed: int,
    *,
    loads: tuple[float, float] = (0.5, 1.0),
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Trials:
    """Train the trials with the numbers `trials`, P uniform between the `loads` times N.

    Trial k draws everything from its own stream: it is the same whatever it is computed with. Where
    neurons are masked (p < 1) the trials therefore run one after the other.
    """
    checks.integer("layers", layers, 1)
    checks.integer("n", n, 2)
    low, high = loads
    if not 0 < low <= high:
        raise InvalidInputError("loads", loads, "two positive numbers in ascending order")
    chosen = list(trials)
    if not chosen:
        raise InvalidInputError("trials", "none", "at least one")
    if protocol.phases.p < 1 and len(chosen) > 1:
        one_by_one = [
            run_trials(protocol, layers, n, [k], seed, loads=loads, device=device, dtype=dtype)
            for k in chosen
        ]
        return _together(one_by_one)
    streams = [generator(seed, k) for k in chosen]
    least, most = max(1, math.ceil(low * n)), max(1, math.floor(high * n))
    sizes = [int(torch.randint(least, max(least, most) + 1, (1,), generator=g)) for g in streams]
    top = max(sizes)
    j = torch.empty(len(chosen), layers, n, n, dtype=dtype)
    pairs = torch.zeros(len(chosen), 2, top, n, dtype=dtype)
    for k, (stream, size) in enumerate(zip(streams, sizes, strict=True)):
        fill_normal_(j[k], 1 / math.sqrt(n), stream)
        drawn = torch.randint(2, (2, size, n), generator=stream)
        pairs[k, :, :size] = 2.0 * drawn - 1.0
    _self_couple(j, protocol.couplings.jd)
    pairs = pairs.to(device)
    kind = _TableLearning if has_tables(protocol, pairs) else _Learning
    learning = kind(protocol, j.to(device), pairs[:, 0], pairs[:, 1], sizes, streams)
    learning.run(protocol.stopping.max_epochs, protocol.stopping.check_every)
    return learning.best


@dataclass(frozen=True, eq=False)
class _Couplings(PerNetwork):
    """Couplings of the trials, (trials, layers, n, n), which learn in place."""

    j: torch.Tensor


class _Learning(Search[_Couplings]):
    """The epochs of several trials, each until it has learnt enough.

    Parameters
    ----------
    protocol : Protocol
        How they learn.
    j : Tensor, (trials, layers, n, n)
        Couplings at the start.
    x, y : Tensor, (trials, patterns, n)
        Inputs and targets; trials with fewer pairs than others have zeros at the end.
    sizes : list of int
        Pairs P of each trial.
    streams : list of torch.Generator
        Random numbers of each trial.
    """

    def __init__(
        self,
        protocol: Protocol,
        j: torch.Tensor,
        x: torch.Tensor,
        y: torch.Tensor,
        sizes: list[int],
        streams: list[torch.Generator],
    ) -> None:
        self.protocol, self.x, self.y = protocol, x, y
        self.sizes, self.streams = sizes, streams
        count, layers = j.shape[:2]
        self.active: ActiveSet[_Couplings] = ActiveSet(_Couplings(self._stored(j)))
        self.best = Trials(
            np.array(sizes),
            np.full(count, -np.inf),
            np.zeros(count, dtype=np.int64),
            *(np.full((count, layers), np.nan) for _ in range(6)),
        )
        self._measure(0)

    def advance(self, iteration: int, sync: bool) -> None:
        """Do one epoch; measure the overlaps when the device may be read."""
        self._learn_all()
        if sync:
            learnt = self._measure(iteration)
            self.active.ended = torch.tensor(learnt, device=self.active.ended.device)

    def keep(self, stay: Index) -> None:
        """Reduce the pairs to those of the trials that stay, in as little memory as they need."""
        numbers = torch.as_tensor(stay).tolist()
        self.sizes = [self.sizes[k] for k in numbers]
        self.streams = [self.streams[k] for k in numbers]
        most = max(self.sizes)
        self.x, self.y = (pairs[stay][:, :most] for pairs in (self.x, self.y))
        self._settle()

    def _stored(self, j: torch.Tensor) -> torch.Tensor:
        """Return the couplings as they are kept meanwhile."""
        return by_columns(j)

    def _settle(self) -> None:
        """Bring the couplings of the trials that stay into the order in which they are kept."""
        self.active.here = _Couplings(by_columns(self.active.here.j))

    def _learn_all(self) -> None:
        """Learn all pairs once, each trial in an order of its own."""
        j, size = self.active.here.j, self.protocol.rule.batch
        batches = math.ceil(max(self.sizes) / size)
        order = torch.zeros(len(self.sizes), batches * size, dtype=torch.long)
        weight = torch.zeros(order.shape, dtype=j.dtype)
        for k, (count, stream) in enumerate(zip(self.sizes, self.streams, strict=True)):
            order[k, :count] = torch.randperm(count, generator=stream)
            weight[k, :count] = 1.0  # trials with fewer pairs learn nothing in the last batches
        order, weight = order.to(j.device), weight.to(j.device)
        rows = torch.arange(len(self.sizes), device=j.device)[:, None]
        for first in range(0, batches * size, size):
            chosen = order[:, first : first + size]
            learn_batch(
                self.protocol,
                j,
                self.x[rows, chosen],
                self.y[rows, chosen],
                weight[:, first : first + size],
                self.streams[0],
            )

    def _measure(self, epoch: int) -> list[bool]:
        """Measure the overlaps without target, keep the best; return who has learnt enough."""
        best, recalled = self.best, self._recall().double().cpu().numpy()
        numbers = self.active.networks or range(len(self.sizes))
        learnt = []
        for trial, size, both in zip(numbers, self.sizes, recalled, strict=True):
            low, median, high = np.quantile(both[..., :size], [LEVEL, 0.5, 1 - LEVEL], axis=-1)
            o5 = low[0, -1]
            if o5 > best.o5[trial]:
                best.o5[trial], best.epochs[trial] = o5, epoch
                best.median[trial], best.input_median[trial] = median
                best.low[trial], best.input_low[trial] = low
                best.high[trial], best.input_high[trial] = high
            learnt.append(bool(o5 >= self.protocol.stopping.enough))
        return learnt

    def _recall(self) -> torch.Tensor:
        """Return the overlaps with target and input, (trials, 2, layers, patterns), without y."""
        j = self.active.here.j
        motion = moving(self.protocol, j, self.x)
        motion.relax(
            self.protocol.phases.inference_sweeps + j.shape[1],
            right=self.protocol.phases.right_at_inference,
            draw=self.streams[0],
        )
        return torch.stack([overlaps(motion.s, pairs) for pairs in (self.y, self.x)], 1)


class _TableLearning(_Learning):
    """The same by tables, one trial after the other; couplings are kept in panels."""

    def _stored(self, j: torch.Tensor) -> torch.Tensor:
        self.tables = PairTables(self.protocol, *j.shape[1:3])
        return self.tables.panelled(j)

    def _settle(self) -> None:
        """Do nothing: panels keep their order."""

    def _learn_all(self) -> None:
        for k, (count, stream) in enumerate(zip(self.sizes, self.streams, strict=True)):
            order = torch.randperm(count, generator=stream)
            self.tables.learn(self.active.here.j[k], self.x[k], self.y[k], order)

    def _recall(self) -> torch.Tensor:
        both = []
        for j, x, y in zip(self.active.here.j, self.x, self.y, strict=True):
            s = self.tables.recall(j, x)[None]
            both.append(torch.cat([overlaps(s, pairs[None]) for pairs in (y, x)]))
        return torch.stack(both)


def _together(parts: Sequence[Trials]) -> Trials:
    return Trials(
        *(
            np.concatenate([getattr(part, field.name) for part in parts])
            for field in dataclasses.fields(Trials)
        )
    )
