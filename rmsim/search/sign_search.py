r"""Searches by fields on the spins that end when their signs are a fixed point.

.. math:: s_i = \mathrm{sgn}\, h_i, \qquad s_i \Big(\sum_{j\ne i} J_{ij} s_j + J_D s_i + \lambda_L
    s^{l-1}_i + \lambda_R s^{l+1}_i\Big) > 0 \quad\text{for all } i,

h_i being the log odds of spin i (:mod:`rmsim.search.reinforced`) or the field that is optimised
(:mod:`rmsim.search.likelihood`).

Reinforced BP and the likelihood share this: attempts from random fields, the test of the signs,
the names of the failures, and the result. A :class:`SignSearch` tests the signs in float64 when the
device is read. In between, networks whose signs seem to be a fixed point in the type of the
couplings wait, frozen; one that fails the test continues from where it was, so that every network
does the same iterations whatever the interval.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, TypeVar

import torch

from rmsim.couplings.chains import DenseChain
from rmsim.dynamics.active import Callback, Index, PerNetwork, Search
from rmsim.dynamics.status import SearchResult, Status
from rmsim.dynamics.sweeps import check_margins, least_margins
from rmsim.search.amp import Products, random_fields
from rmsim.tensors import checked_seed, checked_sync_interval, sign
from rmtheory.base import checks

#: Margins that may be expected not to be positive: with more, all are with probability e^-20.
_UNSATISFIED = 20.0

#: Mean of m^2 below which a search that failed had no magnetisation.
PARAMAGNET = 1e-4

S = TypeVar("S", bound=PerNetwork)


class SearchOptions(TypedDict, total=False):
    """Options that all searches by signs have.

    Parameters
    ----------
    restarts : int
        New random starts for networks in which the search has failed; none by default.
    max_iterations : int, optional
        The cap of an attempt.
    variances : str
        ``rank-one`` (the default) or ``exact``, see :class:`rmsim.search.amp.Products`.
    sync_interval : int, optional
        Iterations between two readings of which networks have ended; 1 on a CPU, 16 on a GPU. The
        result does not depend on it: what seems to be a fixed point waits, frozen.
    compile : bool
        Let :func:`torch.compile` fuse the operations of an iteration of reinforced BP; not by
        default.
    seed, first_sample : int
        Starts are ``random_fields(seed, range(first_sample, ...))``; both 0 by default.
    callback : callable, optional
        Called at every reading with the number of iterations and of networks still active.
    """

    restarts: int
    max_iterations: int | None
    variances: str
    sync_interval: int | None
    compile: bool
    seed: int
    first_sample: int
    callback: Callback | None


class SignSearch(Search[S]):
    """Attempts in all networks, and how each ended.

    Parameters
    ----------
    products : Products
        The couplings.
    external : Tensor, (samples, layers, n), optional
        External field of the dynamics.

    Attributes
    ----------
    status, iterations, attempts : Tensor, (samples,)
        As in :class:`rmsim.dynamics.status.SearchResult`.
    h : Tensor, (samples, layers, n)
        Last fields.
    """

    #: Name of the method.
    method: str

    #: Failures that are called PARAMAGNET if no magnetisation is left.
    collapses: tuple[Status, ...]

    #: Deviation of the random fields at the start.
    scale: float

    def __init__(self, products: Products, external: torch.Tensor | None = None) -> None:
        self.products, self.couplings, self.external = products, products.couplings, external
        samples, device = self.couplings.samples, self.couplings.device
        self.status = torch.full((samples,), int(Status.CAP), dtype=torch.int8, device=device)
        self.iterations, self.attempts, self._made = torch.zeros(
            (3, samples), dtype=torch.int64, device=device
        ).unbind(0)
        shape = (samples, self.couplings.layers, self.couplings.n)
        self.h = torch.zeros(shape, dtype=self.couplings.dtype, device=device)

    def search(
        self, options: SearchOptions, cap: int, settings: Mapping[str, object]
    ) -> SearchResult:
        """Search from random fields, again where that failed, and return the result.

        Parameters
        ----------
        options : SearchOptions
            As the caller gave them.
        cap : int
            Iterations of an attempt, unless the options say otherwise.
        settings : mapping
            Settings of the method, for the result.
        """
        if unknown := sorted(options.keys() - SearchOptions.__annotations__):
            raise TypeError(f"{self.method} has no option {', '.join(unknown)}")
        wanted = options.get("max_iterations")
        cap = checks.integer("max_iterations", cap if wanted is None else wanted, 1)
        more = checks.integer("restarts", options.get("restarts", 0), 0)
        number, couplings = checked_seed(options.get("seed", 0)), self.couplings
        first, callback = options.get("first_sample", 0), options.get("callback")
        interval = checked_sync_interval(couplings.device, options.get("sync_interval"))
        samples = range(first, first + couplings.samples)
        for attempt in range(more + 1):
            rows = (self.status != Status.FIXED_POINT).nonzero()[:, 0]
            if len(rows):
                start = random_fields(
                    number,
                    samples,
                    couplings.layers,
                    couplings.n,
                    scale=self.scale,
                    attempt=attempt,
                    dtype=couplings.dtype,
                    device=couplings.device,
                )
                self._attempt(rows, start, cap, interval, callback)
        used = {**settings, "max_iterations": cap, "restarts": more}
        return self._result(number, used)

    def _attempt(
        self,
        rows: torch.Tensor,
        start: torch.Tensor,
        cap: int,
        sync_interval: int,
        callback: Callback | None,
    ) -> None:
        """Search in the networks `rows`; the last fields of the others stay."""
        self.attempts[rows] += 1
        self.status[rows] = int(Status.CAP)
        self._made[rows] = 0
        self._waiting = torch.zeros(len(rows), dtype=torch.bool, device=rows.device)
        self._delayed = False
        self.begin(start, rows)
        self.run(cap, sync_interval, callback)
        self.iterations[rows] += self._made[rows]
        self.h[rows] = self.fields(self.active.final)[rows]
        self.close(rows)
        quiet = magnetisation(self.h[rows]) < PARAMAGNET
        failed = self.status[rows]
        some = torch.zeros_like(quiet)
        for status in self.collapses:
            some |= failed == int(status)
        self.status[rows] = failed.masked_fill(quiet & some, int(Status.PARAMAGNET))

    @abstractmethod
    def begin(self, start: torch.Tensor, rows: torch.Tensor) -> None:
        """Set the active set: the networks `rows`, from the fields `start` of all networks."""

    @abstractmethod
    def fields(self, state: S) -> torch.Tensor:
        """Return h of a state."""

    def close(self, rows: torch.Tensor) -> None:
        """Name the failures of an attempt that only its end shows."""

    def frozen(self) -> torch.Tensor:
        """Return which active networks have ended or wait for the test in float64."""
        return self.active.ended | self._waiting

    def scheduled(self, value: Callable[[Any], Any], iteration: int) -> float | torch.Tensor:
        """Return a function of the iterations made before this one, for all networks or for each.

        Networks that have waited lag behind; until there is one, a single number does.
        """
        if not self._delayed:
            return float(value(iteration - 1))
        made = self.active.of(self._made)[:, None, None].to(torch.float64)
        return torch.as_tensor(value(made)).to(self.couplings.dtype)

    def counted(self, moved: torch.Tensor) -> None:
        """Count an iteration of the active networks in `moved`."""
        self._made[self.active.members] += moved

    def test_signs(
        self, h: torch.Tensor, jm: torch.Tensor, moved: torch.Tensor, sync: bool
    ) -> None:
        """End the networks whose signs are a fixed point, or let them wait for the test.

        Parameters
        ----------
        h, jm : Tensor
            As for :func:`are_fixed_point`.
        moved : Tensor of bool
            Networks that did an iteration; the others wait, or have ended.
        sync : bool
            Whether tensors may be read.
        """
        active = self.active
        shift = None if self.external is None else active.of(self.external)
        if not sync:
            seems = seem_fixed_point(self.couplings, h, jm, active.networks, shift)
            self._waiting = self._waiting | (seems & moved)
            return
        solved = are_fixed_point(self.couplings, h, jm, active.networks, shift, self._waiting)
        solved = solved & (moved | self._waiting)
        if not self._delayed:
            self._delayed = bool((self._waiting & ~solved).any())
        self._waiting = torch.zeros_like(self._waiting)
        active.end(self.status, solved, Status.FIXED_POINT)

    def end(self, mask: torch.Tensor, status: Status) -> None:
        """End the active networks in `mask` that are not frozen."""
        self.active.end(self.status, mask & ~self.frozen(), status)

    def expired(self, cap: int) -> torch.Tensor:
        """Return which networks have done all iterations; one that waited does more rounds."""
        return ~self._waiting & (self.active.of(self._made) >= cap)

    def keep(self, stay: Index) -> None:
        """Drop what has ended from the networks that wait."""
        self._waiting = self._waiting[stay]

    def _result(self, seed: int, settings: dict[str, object]) -> SearchResult:
        s = sign(self.h, torch.int8)
        field = None if self.external is None else self.external.unsqueeze(1)
        margin, unsatisfied = check_margins(self.couplings, s.unsqueeze(1), field)
        status = self.status.cpu()
        return SearchResult(
            method=self.method,
            settings=settings,
            status=status,
            iterations=self.iterations.cpu(),
            period=(status == Status.FIXED_POINT).to(torch.int64),
            attempts=self.attempts.cpu(),
            min_margin=margin[:, 0].cpu(),
            unsatisfied=unsatisfied[:, 0].cpu(),
            state=s.cpu(),
            seed=seed,
            device=str(self.couplings.device),
            quantities={"magnetisation": magnetisation(self.h).cpu()},
        )


def are_fixed_point(
    couplings: DenseChain,
    h: torch.Tensor,
    jm: torch.Tensor,
    names: Sequence[int] | None = None,
    external: torch.Tensor | None = None,
    waiting: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return for which networks the signs of h are a fixed point, every margin positive in float64.

    Reads the device: products are made for hopeful networks only, in the type of the couplings,
    and then in float64 for those that pass.

    Parameters
    ----------
    couplings : DenseChain
        The networks.
    h, jm : Tensor, (active samples, layers, n)
        Fields of the spins, m = tanh h, and J m, or J times the m of an iteration before.
    names : sequence of int, optional
        The networks of h; all by default.
    external : Tensor, optional
        External field of the dynamics, of the shape of h.
    waiting : Tensor of bool, optional
        Networks whose signs seemed to be a fixed point before, hopeful whatever `jm` is.
    """
    s = _signs(h)
    hopeful = _hopeful(couplings, s, h, jm, external)
    if waiting is not None:
        hopeful = hopeful | waiting
    for exact in (False, True):
        chosen = hopeful.nonzero()[:, 0]
        if not len(chosen):
            return hopeful
        some, active = s[chosen], chosen.tolist()
        if names is not None:
            active = [names[k] for k in active]
        field = None if external is None else external[chosen].unsqueeze(1)
        if exact:
            margin = least_margins(couplings, some, field, active=active)[:, 0]
        else:
            margin = (some * couplings.field(some, field, active=active)).flatten(1).amin(1)
        hopeful = hopeful.index_copy(0, chosen, margin > 0)
    return hopeful


def seem_fixed_point(
    couplings: DenseChain,
    h: torch.Tensor,
    jm: torch.Tensor,
    names: Sequence[int] | None = None,
    external: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the same in the type of the couplings, without reading the device."""
    s = _signs(h)
    field = None if external is None else external.unsqueeze(1)
    margin = (s * couplings.field(s, field, active=names)).flatten(1).amin(1)
    return _hopeful(couplings, s, h, jm, external) & (margin > 0)


def _signs(h: torch.Tensor) -> torch.Tensor:
    """Return the signs as states of one start each, (samples, 1, layers, n)."""
    return sign(h).unsqueeze(1)


def _hopeful(
    couplings: DenseChain,
    s: torch.Tensor,
    h: torch.Tensor,
    jm: torch.Tensor,
    external: torch.Tensor | None,
) -> torch.Tensor:
    """Return where J m, which the iteration has anyway, does not exclude a fixed point.

    J (s - m) has the deviation |s - m|, so that J m gives the probability of every margin to be
    positive. Half of the iterations of a reinforced search need no product of their own by this.
    """
    field = None if external is None else external.unsqueeze(1)
    near = (s * couplings.field_of_product(jm.unsqueeze(1), s, field)).flatten(1)
    doubt = (1 - h.tanh().abs()).square().mean(-1).amax(-1).sqrt() + 1e-3
    unsatisfied = torch.erfc(near / (math.sqrt(2) * doubt[:, None])).sum(1) / 2
    return unsatisfied < _UNSATISFIED


def magnetisation(h: torch.Tensor) -> torch.Tensor:
    """Return the mean of m^2 of every network."""
    return h.double().tanh().square().mean((-1, -2))
