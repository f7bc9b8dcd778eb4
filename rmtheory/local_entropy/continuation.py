"""Follow y*(d) from one d to the next: predictor and Newton in log y, log qhat.

The parameter is log d - log(1/2 - d), in which both ends of the curve are gentle: y* grows like a
power of 1/d at one and like 1/q1 at the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from rmtheory.errors import NotConvergedError
from rmtheory.gaussian import Array
from rmtheory.local_entropy.deep.message import IN_REACH, LARGEST_Y
from rmtheory.local_entropy.model import LocalModel
from rmtheory.local_entropy.newton import solve_ystar
from rmtheory.local_entropy.refine import Refined, check_physical, refine_ystar
from rmtheory.local_entropy.start import guess_ystar

#: Where a curve is started: y* is a few units there, for all couplings of interest.
ANCHOR = 0.08

_FIRST_STEP, _LARGEST_STEP, _LEAST_STEP = 0.25, 0.7, 1e-3

#: A step of a deep chain takes seconds at large y, and fails there because the grid is too coarse.
_SLOW_Y, _LEAST_SLOW_STEP = 18.0, 0.05

#: A root further than this factor from its prediction is another branch.
_LARGEST_JUMP = math.log(1.6)

#: Steps grow while the prediction misses log y and log qhat by less than this.
_GOOD_MISS = 0.04


@dataclass(frozen=True, eq=False)
class Waypoint:
    """A coarse solution on the curve: the parameter and (log y, log qhat)."""

    parameter: float
    unknowns: Array


class CurveTracker:
    """Coarse continuation of y*(d) that remembers where it has been.

    Only starting guesses come from it; every value that is reported is solved again at full
    resolution from the nearest waypoint.
    """

    def __init__(self, model: LocalModel, like: CurveTracker | None = None) -> None:
        self.model = model
        # A curve at slightly different couplings gives as good guesses as the curve itself.
        self._known: list[Waypoint] = [] if like is None else list(like._known)

    def add(self, d: float, y: float, qhat: Array) -> None:
        """Remember a solved point."""
        point = Waypoint(_parameter(d), np.log(np.append(y, qhat)))
        self._known = [w for w in self._known if abs(w.parameter - point.parameter) > 1e-12]
        self._known.append(point)
        self._known.sort(key=lambda waypoint: waypoint.parameter)

    def solve(self, d: float, tol: float, slope_tol: float = math.inf) -> Refined:
        """Solve for y* at `d` to `tol` in S_I*, continuing from the nearest known point."""
        self._reach(d)
        unknowns = np.exp(self._nearest(_parameter(d)).unknowns)
        refined = refine_ystar(self.model, d, float(unknowns[0]), unknowns[1:], tol, slope_tol)
        if abs(math.log(refined.moments.y / unknowns[0])) > _LARGEST_JUMP:
            raise NotConvergedError(
                f"the branch y*(d) was lost at d = {d:.10g}: y jumped from {unknowns[0]:.4g} to "
                f"{refined.moments.y:.4g} when the quadrature was refined"
            )
        self.add(d, refined.moments.y, refined.moments.qhat)
        return refined

    def _reach(self, d: float) -> None:
        """Walk to `d`, with steps that keep the prediction good."""
        target = _parameter(d)
        if not self._known:
            # Start where Newton is safe: near the anchor, or at d itself if that is easier still.
            first = min(max(d, ANCHOR), 0.15 if self.model.deep else 0.4)
            start = guess_ystar(self.model, first)
            solved = solve_ystar(self.model, first, start.y, start.qhat, self.model.coarse).moments
            check_physical(solved, first)
            self.add(first, solved.y, solved.qhat)
        here, step = self._nearest(target).parameter, _FIRST_STEP
        while abs(target - here) > 1e-12:
            there = here + math.copysign(min(step, abs(target - here)), target - here)
            self._check_reach(here, there, target)
            try:
                miss = self._advance(there)
            except NotConvergedError as problem:
                step /= 2
                if step < self._least_step(here):
                    raise NotConvergedError(
                        f"the continuation of y*(d) from d = {_d(here):.10g} towards d = {d:.10g} "
                        f"stopped at d = {_d(there):.10g}: {problem}"
                    ) from None
                continue
            here = there
            step *= 1.5 if miss < _GOOD_MISS else 0.7 if miss > 4 * _GOOD_MISS else 1.0
            step = min(step, _LARGEST_STEP)

    def _least_step(self, here: float) -> float:
        slow = self.model.deep and self._nearest(here).unknowns[0] > math.log(_SLOW_Y)
        return _LEAST_SLOW_STEP if slow else _LEAST_STEP

    def _check_reach(self, here: float, there: float, target: float) -> None:
        """Refuse a walk that ends where y* is beyond the transfer operator, before it gets there.

        log y* is a convex function of the parameter wherever we looked, so that its extrapolation
        from two points is a lower bound.
        """
        if not self.model.deep:
            return
        now = float(self._nearest(here).unknowns[0])
        most = math.log(LARGEST_Y)
        for aim in (there, target):
            ahead = float(self._predict(aim)[0])
            if ahead > most and ahead > now:
                share = max(0.0, (most - now) / (ahead - now))
                last = _d(here + min(share, 1.0) * (aim - here))
                raise NotConvergedError(
                    f"y* is {math.exp(now):.3g} at d = {_d(here):.2g} and passes {LARGEST_Y:g} at "
                    f"d = {last:.2g} or earlier on the way to d = {_d(target):.3g}: {IN_REACH}"
                )

    def _advance(self, parameter: float) -> float:
        """Solve coarsely at `parameter`; return how far the prediction was off."""
        predicted = self._predict(parameter)
        y, *qhat = np.exp(predicted)
        d = _d(parameter)
        solved = solve_ystar(self.model, d, float(y), np.array(qhat), self.model.coarse).moments
        check_physical(solved, d)
        miss = float(np.abs(np.log(np.append(solved.y, solved.qhat)) - predicted).max())
        if miss > _LARGEST_JUMP:
            raise NotConvergedError("the root found is far from its prediction")
        self.add(d, solved.y, solved.qhat)
        return miss

    def _nearest(self, parameter: float) -> Waypoint:
        return min(self._known, key=lambda waypoint: abs(waypoint.parameter - parameter))

    def _predict(self, parameter: float) -> Array:
        """Extrapolate (log y, log qhat) linearly through two points nearby."""
        a = self._nearest(parameter)
        # Closer pairs would extrapolate their rounding, or the change of couplings between them.
        apart = [w for w in self._known if abs(w.parameter - a.parameter) > 0.03]
        if not apart or abs(a.parameter - parameter) < 1e-12:
            return a.unknowns
        b = min(apart, key=lambda waypoint: abs(waypoint.parameter - parameter))
        share = (parameter - a.parameter) / (b.parameter - a.parameter)
        return a.unknowns + max(-2.0, min(2.0, share)) * (b.unknowns - a.unknowns)


def follow(model: LocalModel, distances: Iterable[float], tol: float) -> Iterator[Refined]:
    """Yield the solved points of y*(d) at `distances`, in their order."""
    tracker = CurveTracker(model)
    for d in distances:
        yield tracker.solve(float(d), tol)


def _parameter(d: float) -> float:
    return math.log(d) - math.log(0.5 - d)


def _d(parameter: float) -> float:
    return 0.5 / (1 + math.exp(-parameter))
