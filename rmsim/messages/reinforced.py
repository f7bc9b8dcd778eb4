r"""Reinforced belief propagation: a fixed point is found by making BP believe itself.

The log odds h of every spin are fed back as a field on it (Braunstein and Zecchina 2006),

.. math:: b = f + r\,h_\text{old}, \qquad 1 - r \leftarrow (1 - r)(1 - \Delta r),

so that the messages polarise, slowly, towards one of the many solutions. It stops when the signs of
h are a fixed point: margins are computed in the type of the couplings where J m says that they may
be positive, and then in float64. What is found depends on the speed: quote dr with any threshold.

While r is small the messages may shrink towards m = 0, which is stable; the equations are linear
there, so that vanishing messages are scaled up, and grow again once r is large enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from rmsim.couplings.dense import DenseChain
from rmsim.device import cheap_to_ask, question_interval
from rmsim.messages.amp import fitted
from rmsim.messages.outcome import Outcome
from rmsim.messages.products import Products
from rmsim.messages.search import Search
from rmsim.messages.signs import (
    PARAMAGNET,
    are_fixed_point,
    magnetisation,
    search_result,
    seem_fixed_point,
)
from rmsim.messages.site import LEAST_VARIANCE
from rmsim.messages.step import Messages, first_messages, random_fields, step
from rmsim.messages.underway import Underway
from rmsim.randomness import checked_seed
from rmtheory import checks
from rmtheory.errors import InvalidInputError

#: Fields below are scaled up by their factor: the equations are linear to 1e-8 there.
_SMALL_FIELD, _SCALE = 1e-4, 10.0

#: By default a run goes on until r is this large.
_LAST_R = 0.95


@dataclass(frozen=True)
class Schedule:
    """How fast BP is reinforced: r starts at `r0`, and 1 - r shrinks by 1 - `dr` an iteration.

    Parameters
    ----------
    r0 : float
        First r, 0 <= r0 < 1. About 0.6 saves time for J_D above 0.5.
    dr : float
        Speed, 0 < dr < 1; 0.01 is usual, less finds more, 0.1 is too fast.

    Examples
    --------
    >>> Schedule(dr=0.01).iterations
    299
    """

    r0: float = 0.0
    dr: float = 0.01

    def __post_init__(self) -> None:
        for name, lowest in (("r0", "at least 0"), ("dr", "above 0")):
            value = float(checks.exact_real(name, getattr(self, name)))
            if not 0 <= value < 1 or (name == "dr" and value == 0):
                raise InvalidInputError(name, getattr(self, name), f"{lowest} and below 1")
            object.__setattr__(self, name, value)

    @property
    def iterations(self) -> int:
        """Iterations until r is 0.95, the default cap."""
        done = math.log1p(-max(self.r0, 0.0))
        return max(50, math.ceil((math.log1p(-_LAST_R) - done) / math.log1p(-self.dr)))

    def r(self, iteration: int) -> float:
        """Return r in an iteration, counted from 0."""
        return 1 - (1 - self.r0) * (1 - self.dr) ** iteration


def reinforce(
    couplings: DenseChain,
    schedule: Schedule | None = None,
    *,
    restarts: int = 0,
    max_iterations: int | None = None,
    field: torch.Tensor | None = None,
    external: torch.Tensor | None = None,
    variances: str = "rank-one",
    check_every: int | None = None,
    seed: int = 0,
    first_sample: int = 0,
) -> Search:
    """Search a fixed point in every network.

    Parameters
    ----------
    couplings : DenseChain
        The networks; J_ij and J_ji independent.
    schedule : Schedule, optional
        How r grows; ``Schedule()`` by default.
    restarts : int
        New random starts for networks in which the search has failed.
    max_iterations : int, optional
        The cap of an attempt; by default it ends when r is 0.95.
    field : Tensor, optional
        Field on the spins in the measure, broadcastable to (samples, layers, n): it chooses
        among the fixed points.
    external : Tensor, optional
        External field of the dynamics, which moves the fixed points.
    variances : str
        ``rank-one`` or ``exact``, see :mod:`rmsim.messages.products`.
    check_every : int, optional
        Iterations between two looks at which networks have ended; 1 on a CPU, 16 on a GPU. The
        result does not depend on it: what seems to be a fixed point waits, frozen.
    seed, first_sample : int
        Starts are ``random_fields(seed, range(first_sample, ...))``.
    """
    plan = Schedule() if schedule is None else schedule
    cap = plan.iterations if max_iterations is None else max_iterations
    cap = checks.integer("max_iterations", cap, 1)
    more = checks.integer("restarts", restarts, 0)
    shape = (couplings.samples, couplings.layers, couplings.n)
    zero = torch.zeros(shape, dtype=couplings.dtype, device=couplings.device)
    pull = None if field is None else fitted("field", field, zero)
    shift = None if external is None else fitted("external", external, zero)
    every = question_interval(couplings.device, check_every)
    run = _Run(Products(couplings, variances), plan, pull, shift, every)
    samples = range(first_sample, first_sample + couplings.samples)
    for attempt in range(more + 1):
        rows = (run.status != Outcome.SOLVED).nonzero()[:, 0]
        if len(rows):
            h = random_fields(
                checked_seed(seed),
                samples,
                *shape[1:],
                attempt=attempt,
                dtype=zero.dtype,
                device=zero.device,
            )
            run.attempt(rows, h, cap)
    return search_result(couplings, run.status, run.iterations, run.attempts, run.h, seed, shift)


class _Run:
    """Searches under way, and how they ended."""

    def __init__(
        self,
        products: Products,
        schedule: Schedule,
        pull: torch.Tensor | None,
        external: torch.Tensor | None,
        every: int,
    ) -> None:
        self.products, self.couplings, self.schedule = products, products.couplings, schedule
        self.pull, self.external, self.every = pull, external, every
        samples, device = self.couplings.samples, self.couplings.device
        self.status = torch.full(
            (samples,), int(Outcome.UNCONVERGED), dtype=torch.int8, device=device
        )
        self.iterations, self.attempts = torch.zeros(
            (2, samples), dtype=torch.int64, device=device
        ).unbind(0)
        self.h = torch.zeros(0)

    def attempt(self, rows: torch.Tensor, h: torch.Tensor, cap: int) -> None:
        """Search in the networks `rows` from the fields h; the last fields of the others stay."""
        if len(self.h):
            h = self.h.index_copy(0, rows, h[rows])
        underway = Underway(first_messages(h), rows)
        signs = _Signs(h >= 0)
        self.attempts[rows] += 1
        self.status[rows] = int(Outcome.UNCONVERGED)
        for iteration in range(cap):
            ask = (iteration + 1) % self.every == 0 or iteration + 1 == cap
            self._iterate(underway, self.schedule.r(iteration), ask)
            signs.compare(underway.rows, underway.here.h >= 0, iteration + 1)
            if ask and bool(underway.ended.any()):
                underway.leave()
            if not len(underway.rows):
                break
        left = underway.rows
        self.status[left] = int(Outcome.UNCONVERGED)
        self.status[left[signs.period[left] > 0]] = int(Outcome.CYCLING)
        self.status[left[magnetisation(underway.here.h) < PARAMAGNET]] = int(Outcome.PARAMAGNET)
        underway.ended = torch.ones_like(underway.ended)
        underway.leave()
        self.h = underway.final.h

    def _iterate(self, underway: Underway, r: float, ask: bool) -> None:
        """Do one iteration; freeze what diverges and, if the device is asked, what has ended."""
        old = _revived(underway.here)
        pull = r * old.h if self.pull is None else torch.add(underway.of(self.pull), old.h, alpha=r)
        shift = None if self.external is None else underway.of(self.external)
        fine = underway.take(step(self.products, old, pull, shift, active=underway.names))
        self.iterations[underway.rows] += ~underway.ended
        here, runs = underway.here, ~underway.ended & fine
        jm = here.omega + here.v * old.g  # of the last m: good enough to tell who may be solved
        underway.write(self.status, ~fine & ~underway.ended, int(Outcome.DIVERGED))
        if ask:
            waits = self.status[underway.rows] == int(Outcome.SOLVED)
            solved = are_fixed_point(self.couplings, here.h, jm, underway.names, shift, waits)
            solved &= runs | waits
            underway.write(self.status, waits & ~solved, int(Outcome.UNCONVERGED))
            underway.ended = underway.ended & ~(waits & ~solved)
        else:
            solved = seem_fixed_point(self.couplings, here.h, jm, underway.names, shift) & runs
        certain = (here.v.flatten(1).amax(1) < LEAST_VARIANCE) & runs & ~solved
        underway.write(self.status, solved, int(Outcome.SOLVED))
        underway.write(self.status, certain, int(Outcome.POLARISED))
        underway.ended = underway.ended | ~fine | solved | certain


class _Signs:
    """Watches the signs: do they return, after a change, to where they were at a power of two?"""

    def __init__(self, up: torch.Tensor) -> None:
        self.anchor, self.anchored = up, 0
        self.moved = torch.zeros(len(up), dtype=torch.bool, device=up.device)
        self.period = torch.zeros(len(up), dtype=torch.int64, device=up.device)

    def compare(self, rows: torch.Tensor, up: torch.Tensor, iteration: int) -> None:
        same = (up == self.anchor[rows]).flatten(1).all(1)
        back = same & self.moved[rows] & (self.period[rows] == 0)
        self.period[rows] += back * (iteration - self.anchored)
        self.moved[rows] |= ~same
        if iteration & (iteration - 1) == 0:
            self.anchor = self.anchor.index_copy(0, rows, up)
            self.anchored = iteration
            self.moved[rows], self.period[rows] = False, 0


def _revived(messages: Messages) -> Messages:
    """Scale up messages that are about to vanish."""
    small = messages.h.flatten(1).abs().amax(1) < _SMALL_FIELD
    if cheap_to_ask(small.device) and not bool(small.any()):
        return messages
    factor = torch.where(small, _SCALE, 1.0).to(messages.h.dtype)
    return messages.scaled(factor)
