r"""Reinforced belief propagation: BP that follows its own marginals to a fixed point.

The log odds h of every spin are fed back as a field on it (Braunstein and Zecchina 2006),

.. math:: b = f + r\,h_\text{old}, \qquad 1 - r \leftarrow (1 - r)(1 - \Delta r),

so that the messages polarise, slowly, towards one of the many solutions. It stops when the signs of
h are a fixed point: margins are computed in the type of the couplings where J m says that they may
be positive, and then in float64. The result depends on the speed: quote dr with any threshold.

While r is small the messages may shrink towards m = 0, which is stable; the equations are linear
there, so that vanishing messages are scaled up, and grow again once r is large enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar, Unpack

import torch

from rmsim.couplings.chains import DenseChain
from rmsim.dynamics.active import ActiveSet
from rmsim.dynamics.status import SearchResult, Status
from rmsim.search.amp import (
    Messages,
    Products,
    first_messages,
    fitted_fields,
    step,
)
from rmsim.search.chain_site import LEAST_VARIANCE
from rmsim.search.sign_search import SearchOptions, SignSearch
from rmsim.tensors import cheap_to_read, is_up
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError

#: Fields below are scaled up by their factor: the equations are linear to 1e-8 there.
_SMALL_FIELD, _SCALE = 1e-4, 10.0

#: An iteration, or those of several networks.
Number = TypeVar("Number", float, torch.Tensor)

#: By default a run continues until r is this large.
_LAST_R = 0.95


@dataclass(frozen=True)
class Schedule:
    """How fast BP is reinforced: r starts at `r0`, and 1 - r shrinks by 1 - `dr` per iteration.

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

    def r(self, iteration: Number) -> Number:
        """Return r in an iteration, counted from 0."""
        left: Number = (1 - self.dr) ** iteration
        return 1 - (1 - self.r0) * left


def reinforce(
    couplings: DenseChain,
    schedule: Schedule | None = None,
    *,
    field: torch.Tensor | None = None,
    external: torch.Tensor | None = None,
    **options: Unpack[SearchOptions],
) -> SearchResult:
    """Search a fixed point in every network.

    Parameters
    ----------
    couplings : DenseChain
        The networks; J_ij and J_ji independent.
    schedule : Schedule, optional
        How r grows; ``Schedule()`` by default.
    field : Tensor, optional
        Field on the spins in the measure, broadcastable to (samples, layers, n): it chooses
        among the fixed points.
    external : Tensor, optional
        External field of the dynamics, which moves the fixed points.
    **options
        `restarts`, `max_iterations` (an attempt ends when r is 0.95 by default), `variances`,
        `sync_interval`, `compile`, `seed`, `first_sample`, `callback`: see
        :class:`rmsim.search.SearchOptions`.
    """
    plan = Schedule() if schedule is None else schedule
    _, pull, shift = fitted_fields(couplings, None, field, external)
    products = Products(
        couplings, options.get("variances", "rank-one"), compile=options.get("compile", False)
    )
    search = _Reinforced(products, plan, None if field is None else pull, shift)
    return search.search(options, plan.iterations, {"r0": plan.r0, "dr": plan.dr})


class _Reinforced(SignSearch[Messages]):
    """Reinforced BP in all networks."""

    method = "rbp"
    collapses = (Status.CAP, Status.CYCLE)
    scale = 0.5

    def __init__(
        self,
        products: Products,
        schedule: Schedule,
        pull: torch.Tensor | None,
        external: torch.Tensor | None,
    ) -> None:
        super().__init__(products, external)
        self.schedule, self.pull = schedule, pull

    def begin(self, start: torch.Tensor, rows: torch.Tensor) -> None:
        """Start with messages that say h and nothing else."""
        self.active = ActiveSet(first_messages(start), rows)
        self._signs = _Signs(is_up(start))

    def fields(self, state: Messages) -> torch.Tensor:
        """Return h."""
        return state.h

    def advance(self, iteration: int, sync: bool) -> None:
        """Do one iteration of AMP under the pull r h."""
        active = self.active
        old = _revived(active.here)
        pull = self.scheduled(self.schedule.r, iteration) * old.h
        if self.pull is not None:
            pull = active.of(self.pull) + pull
        shift = None if self.external is None else active.of(self.external)
        frozen = self.frozen()
        fine = active.take(step(self.products, old, pull, shift, active=active.networks), frozen)
        self.counted(~frozen)
        self.end(~fine, Status.DIVERGED)
        here, moved = active.here, fine & ~frozen
        jm = here.omega + here.v * old.g  # of the last m: good enough to exclude most networks
        self.test_signs(here.h, jm, moved, sync)
        self.end(moved & (here.v.flatten(1).amax(1) < LEAST_VARIANCE), Status.POLARISED)
        renew = self._delayed or iteration & (iteration - 1) == 0
        self._signs.compare(active.members, is_up(here.h), active.of(self._made), renew)

    def close(self, rows: torch.Tensor) -> None:
        """Name the networks whose signs came back."""
        capped = (self.status[rows] == int(Status.CAP)) & (self._signs.period[rows] > 0)
        self.status[rows] = self.status[rows].masked_fill(capped, int(Status.CYCLE))


class _Signs:
    """Do the signs return, after a change, to where they were at a power of two?

    A network that waits is compared again, in the same state at the same iteration, which changes
    nothing.
    """

    def __init__(self, up: torch.Tensor) -> None:
        self._anchor = up
        self._anchored, self.period = torch.zeros(
            (2, len(up)), dtype=torch.int64, device=up.device
        ).unbind(0)
        self._moved = torch.zeros(len(up), dtype=torch.bool, device=up.device)

    def compare(
        self, rows: torch.Tensor, up: torch.Tensor, made: torch.Tensor, renew: bool
    ) -> None:
        """Compare the signs of the networks `rows` after `made` iterations of each.

        With `renew`, those at a power of two are remembered.
        """
        anchor = self._anchor[rows]
        same = (up == anchor).flatten(1).all(1)
        back = same & self._moved[rows] & (self.period[rows] == 0)
        self.period[rows] += back * (made - self._anchored[rows])
        self._moved[rows] |= ~same
        if renew:
            power = (made & (made - 1)) == 0
            anchor = torch.where(power[:, None, None], up, anchor)
            self._anchor = self._anchor.index_copy(0, rows, anchor)
            self._anchored[rows] = torch.where(power, made, self._anchored[rows])
            self._moved[rows] &= ~power
            self.period[rows] *= ~power


def _revived(messages: Messages) -> Messages:
    """Scale up messages that are about to vanish."""
    small = messages.h.flatten(1).abs().amax(1) < _SMALL_FIELD
    if cheap_to_read(small.device) and not bool(small.any()):
        return messages
    factor = torch.where(small, _SCALE, 1.0).to(messages.h.dtype)
    return messages.scaled(factor)
