r"""Relaxation: iterate the dynamics until a fixed point, a cycle, or the cap.

A state that no neuron's field contradicts in its last sweep is a fixed point, once its margins
are positive in float64 (a masked sweep computes the full field, so that this holds under masks
too).

Cycles of deterministic dynamics, :math:`s(t) = s(t - T)`, are detected whatever their period T, by
Brent's algorithm on all states at once: remember the state at sweeps 1, 2, 4, 8, ... and compare
every state with the one remembered, bit for bit. The first to agree gives the period itself, not a
multiple of it, and there are no false cycles as hashes would give. A cycle of period T entered
after m sweeps is detected by sweep max(T, 2m) + 2T at the latest.

On a CPU only what flips is multiplied (:func:`rmsim.dynamics.flips.follow_flips`), from the first
sweep on; or, where a network has so many starts that one product of matrices does all of them, once
few neurons flip. Sweeps, periods and final states are the same as by products.

The numbers of sweeps, the periods and the final states are exact whatever the interval at which
the device is read (:mod:`rmsim.dynamics.active`), because counters on the device keep them.

:func:`relaxation_summary` gives fractions and medians over the disorder, with the errors of
:mod:`rmtheory.base.statistics`. Several starts in one network are not independent: the error is
then the larger of this, over all states, and the standard error over networks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from rmsim.couplings.base import Couplings, aligned_external, demand_couplings
from rmsim.couplings.chains import draw, sample_numbers
from rmsim.dynamics.active import ActiveRectangle, Callback, Index, PerNetwork, Search
from rmsim.dynamics.flips import Followed, follow_flips
from rmsim.dynamics.status import SearchResult, Status, join_results
from rmsim.dynamics.sweeps import (
    Update,
    check_margins,
    checked_update,
    differ,
    fill_mask,
    mask_keys,
    sequential,
    sweep_,
    synchronous,
)
from rmsim.network import Network
from rmsim.tensors import (
    Numbers,
    checked_seed,
    checked_states,
    checked_sync_interval,
    choose_device,
    choose_dtype,
    generator,
    memory_of,
    tensor_of,
)
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError, counted
from rmtheory.base.statistics import median_of_ranks, wilson_half_width

#: Bytes of states worked on at a time, if the couplings are small: a cache, or a busy GPU.
_LEAST_SPACE = {"cpu": 2**21, "cuda": 2**28}
#: States come in multiples of this, the lanes of the compiled products.
_LANES = 32
#: Starts of a network up to which flips cost less than products whatever their share.
_FEW_STARTS = 4
#: Share of the neurons that flip in a sweep below which they do for any number of starts.
_FEW_FLIPS = 0.1
#: Sweeps between two counts of the flips.
_COUNTED = 4
#: Bytes of couplings at a time. On a CPU they should stay in the cache from sweep to sweep.
_SPACE = {"cpu": 2**25, "cuda": 2**31}


def relax(
    network: Network | Couplings,
    start: Numbers | None = None,
    *,
    samples: int | range | None = None,
    starts: int = 1,
    update: str = "synchronous",
    p: float = 1.0,
    external: Numbers | None = None,
    max_sweeps: int = 1000,
    seed: int = 0,
    first_sample: int = 0,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device = "auto",
    space: int | None = None,
    sync_interval: int | None = None,
    callback: Callback | None = None,
    progress: Callable[[int], None] | None = None,
) -> SearchResult:
    r"""Run the dynamics :math:`s_i \to \mathrm{sgn}(h_i)` from random states, or from your own.

    Every state is followed to a fixed point, a cycle, or the cap. Some networks go at a time, so
    that memory stays bounded; sample k is the same network, with the same starts and masks,
    however many go together.

    Parameters
    ----------
    network : Network or Couplings
        A network, whose couplings are drawn or your own (:meth:`Network.from_array`), or couplings
        (:func:`rmsim.draw`).
    start : array_like, Tensor or path of an .npy file, (samples, starts, layers, n), optional
        States at sweep 0, +-1, of any type (int8 is the smallest); leading dimensions may be left
        out where they are 1. Random states by default.
    samples : int or range, optional
        How many disorder samples of a network, or which ones: 1 by default, or as many as `start`
        has. Couplings have their own number.
    starts : int
        Random states per sample.
    update : str
        ``synchronous`` or ``sequential`` (layer after layer).
    p : float
        Probability that a neuron is updated in a sweep, 0 < p <= 1. Below 1 the dynamics is
        random, and cycles are not detected.
    external : array_like, Tensor or path, optional
        External field, real, broadcastable to the states; taken in the type of the couplings.
    max_sweeps : int
        The cap.
    seed : int
        Seed of couplings, starts and masks.
    first_sample : int
        Number of the first network, if couplings are given: masks of network k come from
        ``generator(seed, k, 2)``.
    dtype, device
        Precision and place of the couplings of a network.
    space : int, optional
        Bytes of couplings held at a time (one sample at least).
    sync_interval : int, optional
        Sweeps between two readings of which states have ended; 1 on a CPU, 16 on a GPU. The result
        does not depend on it.
    callback : callable, optional
        Called at every reading with the number of sweeps and of states that are still active.
    progress : callable, optional
        Called with the number of samples that are done.

    Returns
    -------
    SearchResult
        Tensors of shape (samples, starts); FIXED_POINT, CYCLE, CAP or MARGINAL.

    Examples
    --------
    >>> import rmsim as rs
    >>> network = rs.Network(200, rs.Chain(1, jd=2.0))
    >>> result = rs.relax(network, samples=3, starts=2)
    >>> result.solved.all().item(), tuple(result.state.shape)
    (True, (3, 2, 1, 200))
    >>> again = rs.relax(network, start=result.state)  # fixed points stay where they are
    >>> bool((again.state == result.state).all())
    True
    """
    number, probability, order = checked_seed(seed), checked_p(p), checked_update(update)
    cap = checks.integer("max_sweeps", max_sweeps, 1)
    count = checks.integer("starts", starts, 1)
    begin = None if start is None else _four_dimensions(tensor_of("start", start))
    if begin is not None:
        count = begin.shape[1]
    sets: Iterator[tuple[Couplings, range]]
    if isinstance(network, Network):
        if samples is None:
            samples = 1 if begin is None else begin.shape[0]
        chosen = sample_numbers(samples)
        sets = drawn_in_parts(
            network,
            chosen,
            number,
            starts=count,
            dtype=choose_dtype(dtype),
            device=choose_device(device, len(chosen) * count * network.entries),
            space=space,
            columns=True,
        )
    else:
        demand_couplings(network)
        if samples is not None:
            allowed = f"left out: these couplings are {counted(network.samples, 'sample')}"
            raise InvalidInputError("samples", str(samples), allowed)
        if not follows_flips(network) or count > _FEW_STARTS:  # otherwise each when its turn comes
            network.check()
        chosen = range(first_sample, first_sample + network.samples)
        sets = iter([(network, chosen)])
    shape = (len(chosen), "starts", network.layers, network.n)
    if begin is not None:
        begin = checked_states("start", begin, shape)
    field = None
    if external is not None:
        whole = torch.Size((len(chosen), count, network.layers, network.n))
        field = aligned_external(tensor_of("external", external), whole)
    parts: list[SearchResult] = []
    done = 0
    for couplings, some in sets:
        these = slice(done, done + len(some))
        parts.append(
            _relax(
                couplings,
                random_starts(number, some, count, network.layers, network.n, couplings.device)
                if begin is None
                else begin[these],
                _part(field, these),
                (order, probability, cap, number, some.start),
                checked_sync_interval(couplings.device, sync_interval),
                callback,
            )
        )
        done += len(some)
        if progress is not None:
            progress(done)
    return join_results(parts)


def _four_dimensions(states: torch.Tensor) -> torch.Tensor:
    """Return states as (samples, starts, layers, n); leading dimensions left out are 1."""
    missing = 4 - states.dim()
    return states if missing <= 0 else states.reshape(*[1] * missing, *states.shape)


def _part(field: torch.Tensor | None, part: slice, dim: int = 0) -> torch.Tensor | None:
    """Return the part of a field along one dimension, unless it is the same everywhere."""
    if field is None or field.shape[dim] == 1:
        return field
    return field[part] if dim == 0 else field[:, part]


def _relax(
    couplings: Couplings,
    start: torch.Tensor,
    external: torch.Tensor | None,
    settings: tuple[Update, float, int, int, int],
    every: int,
    callback: Callback | None,
) -> SearchResult:
    """Relax checked states in couplings that are there, some starts at a time."""
    order, p, cap, seed, first_sample = settings
    if external is not None:
        external = external.to(dtype=couplings.dtype, device=couplings.device)
        if not bool(external.isfinite().all()):
            raise InvalidInputError("external", "a number that is not finite", "finite")
    samples, starts = start.shape[:2]
    keys = None
    if p < 1:
        keys = mask_keys(seed, range(first_sample, first_sample + samples), starts)
    row = samples * couplings.layers * couplings.n * couplings.dtype.itemsize
    space = max(couplings.nbytes // 16, _LEAST_SPACE.get(couplings.device.type, 2**28))
    width = max(1, min(starts, space // row))
    if _LANES < width < starts:
        width -= width % _LANES
    named: dict[str, object] = {"update": order, "p": p, "max_iterations": cap}
    parts = []
    for left in range(0, starts, width):
        part = slice(left, left + width)
        field = _part(external, part, dim=1)
        some = None if keys is None else keys[:, part]
        limit = cap if follows_flips(couplings) else None
        search = Relaxing(couplings, start[:, part], field, some, p, order, limit)
        search.run(cap, every, callback)
        shape = (samples, min(width, starts - left))
        parts.append(_result(couplings, search.active.final, shape, field, named, seed))
        del search  # before the next: their states would be there at the same time
    return join_results(parts, dim=1)


def follows_flips(couplings: Couplings) -> bool:
    """Return whether the fields of these couplings are corrected by flips: by columns on a CPU."""
    copies = couplings.nbytes // max(1, couplings.samples) * torch.get_num_threads()
    there = memory_of(couplings.device)
    room = there is None or couplings.nbytes + copies < there / 2
    return couplings.device.type == "cpu" and couplings.has_columns and room


def checked_p(p: object) -> float:
    """Return the update probability, 0 < p <= 1."""
    value = checks.exact_real("p", p)
    if not 0 < value <= 1:
        raise InvalidInputError("p", p, "a probability above 0 and at most 1")
    return float(value)


@dataclass(frozen=True, eq=False)
class _States(PerNetwork):
    """States under relaxation, with the counters that say how each ended.

    Parameters
    ----------
    up : Tensor of bool, (samples, starts, layers, n)
        Which spins are +1.
    last_unstable : Tensor of int64, (samples, starts)
        Last sweep in which a neuron stood against its field.
    anchor : Tensor of bool
        The state remembered; without spins if cycles are not detected.
    period, closed : Tensor of int64, (samples, starts)
        Period, 0 if none is known yet, 1 for a fixed point; sweep at which the state came back.
    margin, unsatisfied : Tensor, (samples, starts)
        Least s_i h_i in float64 and how many are not positive; NaN and 0 where not known yet.
    """

    up: torch.Tensor
    last_unstable: torch.Tensor
    anchor: torch.Tensor
    period: torch.Tensor
    closed: torch.Tensor
    margin: torch.Tensor
    unsatisfied: torch.Tensor


class Relaxing(Search[_States]):
    """The sweeps of some states.

    Parameters
    ----------
    couplings : Couplings
        The networks.
    start : Tensor, (samples, starts, layers, n)
        States at sweep 0, +-1 in any type.
    external : Tensor, optional
        External field of four dimensions.
    keys : Tensor, optional
        Keys of the masks, (samples, starts, 2); without them every neuron is updated.
    p : float
        Probability that a neuron is updated.
    update : str
        Order of the updates.
    cap : int, optional
        The cap, needed to follow flips: without it every sweep is a product.
    """

    def __init__(
        self,
        couplings: Couplings,
        start: torch.Tensor,
        external: torch.Tensor | None,
        keys: torch.Tensor | None,
        p: float,
        update: Update,
        cap: int | None = None,
    ) -> None:
        self.couplings, self.external = couplings, external
        self.keys = None if keys is None else keys.to(couplings.device)
        self.p, self.update = p, update
        up = start.to(couplings.device) > 0
        anchor = up.clone() if keys is None else up[..., :0].clone()
        last, period, closed, unsatisfied = torch.zeros(
            (4, *up.shape[:2]), dtype=torch.int64, device=up.device
        ).unbind(0)
        margin = torch.full_like(last, math.nan, dtype=torch.float64)
        self.active: ActiveRectangle[_States] = ActiveRectangle(
            _States(up, last, anchor, period, closed, margin, unsatisfied)
        )
        self._anchored = 0
        self._cap, self._by_flips = cap, cap is not None and up.shape[1] <= _FEW_STARTS
        if not self._by_flips:
            self._make_space()

    def _make_space(self) -> None:
        """Allocate, once and not in every sweep, the states as numbers, the mask and the field."""
        up = self.active.here.up
        self._s = up.to(self.couplings.dtype).mul_(2).sub_(1)
        self._mask = None if self.keys is None else torch.empty_like(up)
        shape = list(up.shape)
        if self.update == "sequential":
            del shape[2]
        self._h = torch.empty(shape, dtype=self._s.dtype, device=up.device)

    def advance(self, iteration: int, sync: bool) -> None:
        """Do one sweep; or all that are left, once few neurons flip."""
        here = self.active.here
        if self._cap is not None and self._by_flips:
            if not bool(self.active.ended.all()):
                self._finish(iteration - 1, self._cap)
            return
        counted = self._cap is not None and iteration % _COUNTED == 0
        before = here.up.clone() if counted else here.up
        if self.keys is not None and self._mask is not None:
            fill_mask(self.keys, iteration, self.p, self._mask)
        unstable = sweep_(
            self.couplings,
            self._s,
            here.up,
            self._h,
            self.update,
            mask=self._mask,
            external=self.external,
            active=self.active.networks,
        )
        here.last_unstable.masked_fill_(unstable, iteration)
        if self.keys is None:
            self._compare(iteration)
        if sync:
            ended = (here.last_unstable < iteration).logical_or_(here.period)
            self.active.ended = self.active.ended | ended
        if counted:
            self._by_flips = float((before ^ here.up).float().mean()) < _FEW_FLIPS

    def _finish(self, done: int, cap: int) -> None:
        """Follow the flips of all active states to their end."""
        here, ended = self.active.here, self.active.ended
        counters = torch.stack(
            [here.last_unstable, here.period, here.closed, ended.to(torch.int64)], -1
        )
        follow_flips(
            self.couplings,
            Followed(here.up, here.anchor, counters, here.margin, here.unsatisfied),
            self.update,
            sweeps=(done, cap),
            networks=self.active.networks,
            external=self.external,
            keys=self.keys,
            p=self.p,
        )
        for index, tensor in enumerate((here.last_unstable, here.period, here.closed)):
            tensor.copy_(counters[..., index])
        self.active.ended = torch.ones_like(ended)

    def _compare(self, sweep: int) -> None:
        """Note which states have come back to the one remembered, and remember new ones."""
        here = self.active.here
        if here.up.device.type == "cpu":
            away = differ(here.up, here.anchor)
        else:
            away = (here.up ^ here.anchor).flatten(2).any(-1)
        back = ~away & (here.period == 0)
        here.period.masked_fill_(back, sweep - self._anchored)
        here.closed.masked_fill_(back, sweep)
        if sweep & (sweep - 1) == 0:
            # A state that came back keeps the one it came back to: its final state, whenever the
            # device is read.
            closed = (here.period > 0)[:, :, None, None]
            here.anchor.copy_(torch.where(closed, here.anchor, here.up))
            self._anchored = sweep

    def keep(self, stay: Index) -> None:
        """Reduce external field, masks and work space to the states that stay."""
        field = self.external
        if field is not None and field.shape[:2] != (1, 1):
            full = field.expand(self._s.shape[:2] + field.shape[2:])
            self.external = full[stay]
        del self._s, self._h, self._mask  # before the copies, so that memory does not peak
        if self.keys is not None:
            self.keys = self.keys[stay]
        self._make_space()


def _result(
    couplings: Couplings,
    final: _States,
    shape: tuple[int, int],
    external: torch.Tensor | None,
    settings: dict[str, object],
    seed: int,
) -> SearchResult:
    """Return how the states ended, from the counters and the margins in float64."""
    cap = int(str(settings["max_iterations"]))
    last, period, closed = (
        x.view(shape) for x in (final.last_unstable, final.period, final.closed)
    )
    cyclic = period > 1
    stable = ~cyclic & (last < cap)  # otherwise the last sweep had an unstable neuron
    up = final.up.view(*shape, couplings.layers, couplings.n)
    if final.anchor.shape == final.up.shape:
        up = torch.where(cyclic[:, :, None, None], final.anchor.view(up.shape), up)
    margin, unsatisfied = (x.view(shape) for x in (final.margin, final.unsatisfied))
    if bool(margin.isnan().any()):  # what ended before few neurons flipped
        margin, unsatisfied = check_margins(couplings, up, external)
    # At the cap a state may have become stable in the very last sweep: its margins decide.
    fixed = (margin > 0) & ~cyclic
    status = torch.full_like(last, int(Status.CAP), dtype=torch.int8)
    for mask, name in (
        (stable, Status.MARGINAL),
        (cyclic, Status.CYCLE),
        (fixed, Status.FIXED_POINT),
    ):
        status.masked_fill_(mask, int(name))
    iterations = torch.where(stable, last, torch.where(cyclic, closed, cap))
    return SearchResult(
        method="dynamics",
        settings=settings,
        status=status.cpu(),
        iterations=iterations.cpu(),
        period=torch.where(fixed, 1, torch.where(cyclic, period, 0)).cpu(),
        attempts=torch.ones(shape, dtype=torch.int64),
        min_margin=margin.cpu(),
        unsatisfied=unsatisfied.cpu(),
        state=up.cpu().to(torch.int8).mul_(2).sub_(1),
        seed=seed,
        device=str(couplings.device),
    )


def returns_after(
    couplings: Couplings,
    s: torch.Tensor,
    period: int,
    *,
    update: Update = "synchronous",
    external: torch.Tensor | None = None,
) -> torch.Tensor:
    """Step every state `period` times; return which came back then, and not before."""
    step = synchronous if update == "synchronous" else sequential
    early = torch.zeros(s.shape[:2], dtype=torch.bool, device=s.device)
    back, new = early, s
    for _ in range(period):
        early = early | back
        new = step(couplings, new, external)
        back = (new == s).flatten(2).all(-1)
    return back & ~early


# Many networks.


def drawn_in_parts(
    network: Network,
    samples: int | range,
    seed: int,
    *,
    starts: int,
    dtype: torch.dtype,
    device: torch.device,
    space: int | None = None,
    columns: bool = False,
) -> Iterator[tuple[Couplings, range]]:
    """Draw the disorder samples, as many together as there is room for; give their numbers too.

    Parameters
    ----------
    network, samples, seed, starts, space
        As for :func:`relax`.
    dtype, device
        Precision and place.
    columns : bool
        Give dense couplings with contiguous columns on a CPU, as flips want them.
    """
    chosen = sample_numbers(samples)
    room = _SPACE.get(device.type, 2**31) if space is None else checks.integer("space", space, 1)
    size = network.layers * network.n**2 * network.rho * (dtype.itemsize + 4 * (network.rho < 1))
    _check_memory(network, starts, size, device)
    count = max(1, int(room / max(size, 1.0)))
    for first in range(chosen.start, chosen.stop, count):
        some = range(first, min(chosen.stop, first + count))
        couplings = draw(network, seed, some, dtype=dtype, device=device)
        yield couplings.turned() if columns else couplings, some


def random_starts(
    seed: int,
    samples: Sequence[int],
    starts: int,
    layers: int,
    n: int,
    device: torch.device | str = "cpu",
) -> torch.Tensor:
    """Return uniform states, int8 of shape (samples, starts, layers, n); those of k from k only."""
    states = torch.empty((len(samples), starts, layers, n), dtype=torch.int8, device=device)
    for index, sample in enumerate(samples):
        states[index].random_(0, 2, generator=generator(seed, sample, 1, device=device))
    return states.mul_(2).sub_(1)


def _check_memory(network: Network, starts: int, couplings: float, device: torch.device) -> None:
    """Refuse one network, with its states, that this machine has no room for."""
    there = memory_of(device)
    if device.type != "cpu" or there is None:
        return  # the allocator of the device knows better
    neurons = network.layers * network.n
    needed = couplings + 8 * neurons + 12 * starts * neurons
    if needed > there:
        allowed = (
            f"small enough: one network with {counted(starts, 'start')} needs "
            f"{needed / 1e9:.3g} GB, and this machine has {there / 1e9:.3g}"
        )
        raise InvalidInputError("n", network.n, allowed)


# Summary over the disorder.

#: Half a step of numbers of sweeps, and of periods: no error of theirs is below.
HALF_A_SWEEP = 0.5


def relaxation_summary(result: SearchResult, *, of_starts: bool = False) -> dict[str, object]:
    """Return the numbers of a relaxation as JSON values, NAME_error beside each NAME.

    Parameters
    ----------
    result : SearchResult
        Of :func:`relax`.
    of_starts : bool
        Whether the errors are those over the starts, for the one network whose couplings are
        given; otherwise over networks.
    """
    document: dict[str, object] = {}
    for name, status in (
        ("fixed_point", Status.FIXED_POINT),
        ("cycle", Status.CYCLE),
        ("capped", Status.CAP),
        ("marginal", Status.MARGINAL),
    ):
        ended = result.ended(status)
        value, error = fraction(ended.reshape(-1, 1) if of_starts else ended)
        document[f"{name}_fraction"] = value
        document[f"{name}_fraction_error"] = error
    periods = Counter(result.period[result.ended(Status.CYCLE)].tolist())
    document["periods"] = {str(period): periods[period] for period in sorted(periods)}
    fixed = result.ended(Status.FIXED_POINT)
    independent = int((fixed if of_starts else fixed.any(1)).sum())
    middle = median_of_ranks(result.iterations[fixed].cpu(), HALF_A_SWEEP, independent)
    document["sweeps_median"] = None if middle is None else middle[0]
    document["sweeps_median_error"] = None if middle is None else middle[1]
    margins = result.min_margin[fixed]
    document["min_margin"] = float(margins.min()) if margins.numel() else None
    return document


def fraction(reached: torch.Tensor) -> tuple[float, float]:
    """Return the fraction of `reached`, booleans (samples, starts), and its error.

    Starts in one network are not independent, networks are. The half width is Wilson's for as many
    samples as there are networks, with the variance between networks in the place of f(1 - f),
    which it is for single starts. Starts that all agree in few networks leave it large.

    Examples
    --------
    >>> fraction(torch.tensor([[True], [False], [True], [True]]))
    (0.75, 0.2)
    >>> fraction(torch.ones((4, 100), dtype=torch.bool))
    (1.0, 0.1)
    """
    samples = len(reached)
    by_network = reached.double().mean(1)
    f = float(by_network.mean())
    # One network says nothing about the others.
    variance = float(by_network.var(correction=0)) if samples > 1 else None
    return f, float(wilson_half_width(f, samples, variance=variance))
