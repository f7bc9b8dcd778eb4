"""Solve for the saddle point and for y*: Newton's method, finer quadrature, continuation in d.

The equations are <m_l^2>_y = q1 for qhat at given (d, y), together with S_E = 0 for y*.

- **Newton at one resolution.** All unknowns are positive, so they are iterated as logarithms, with
  steps of at most a factor two. The derivatives come from explicit integrals at a coarse
  resolution, which suffices to converge.
- **First guesses** come from a bisection in qhat, and for y* from raising y until S_E changes sign.
- **Resolution.** The quadrature is refined until the solved point no longer changes. The error of a
  trapezoid rule falls like exp(-c/step). If the step shrinks by a factor k and the value changes by
  Delta, which is the error of the coarser rule, that of the finer is Delta^k. The error reported is
  three times this, but no less than Delta/8, since the law may set in late; for the transfer
  operator it is a multiple of Delta (:func:`rmtheory.local_entropies.transfer_steps.left_over`).
  The errors oscillate with the step, and one number may agree by accident while the others change:
  the largest relative change of the unknowns counts for all of them. The share of the dropped
  nodes, the rounding of the equations amplified by the inverse Jacobian, and the last Newton step
  are added. The tests compare the errors with finer rules and more digits.
- **Continuation.** y*(d) is followed from one d to the next by a predictor and Newton in log y, log
  qhat. The parameter is log d - log(1/2 - d), in which both ends of the curve are smooth: y* grows
  like a power of 1/d at one and like 1/q1 at the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from rmtheory.base.chain import Chain
from rmtheory.base.errors import NotConvergedError
from rmtheory.base.gaussian import Array
from rmtheory.local_entropies.core import CoreFunctional
from rmtheory.local_entropies.functional import Functional, Moments, Refined
from rmtheory.local_entropies.pair import PairFunctional
from rmtheory.local_entropies.transfer_operator import transfer_functional

# Newton's method at one resolution.

#: Relative step at which the iteration ends, at the coarse level and at the finer ones.
_ROUGH, _FINE = 1e-8, 1e-12

#: Relative rounding of the averages: the sums over the nodes gather a few units.
ROUNDING = 16 * float(np.finfo(float).eps)

#: Range of y and qhat; y* grows beyond it at very small d, and for large J_D at small d.
_LEAST_UNKNOWN, _LARGEST_UNKNOWN = 1e-12, 1e8

_MOST_NEWTON_STEPS = 60

_LARGEST_NEWTON_STEP = math.log(2.0)

#: How far in log y a solve for y* may go from its guess: beyond, evaluations only take longer.
_LARGEST_MOVE = math.log(2.5)

#: How far in log y nodes serve, and how often one solve may choose them.
_NODES_RANGE, _NODES_CHANGES = 0.1, 12


@dataclass(frozen=True, eq=False)
class Solution:
    """A solved point: the averages there and the inverse of the Jacobian in (y, qhat) or qhat."""

    moments: Moments
    inverse: Array
    #: Largest relative change of the unknowns in the last step.
    last_step: float


def solve_saddle(
    model: Functional, d: float, y: float, qhat: Array, level: int, inverse: Array | None = None
) -> Solution:
    """Solve <m_l^2>_y = q1 for qhat at fixed (d, y), from a guess."""

    def residual(moments: Moments) -> Array:
        return moments.saddle_residual

    def evaluate(unknowns: Array, at: int, tangent: bool) -> Moments:
        return model.moments(d, y, unknowns, at, tangent)

    return _newton(
        evaluate,
        residual,
        Moments.saddle_jacobian,
        qhat,
        (level, model.coarse),
        inverse,
        f"d = {d:.10g}, y = {y:g}",
    )


def solve_ystar(
    model: Functional, d: float, y: float, qhat: Array, level: int, inverse: Array | None = None
) -> Solution:
    """Solve <m_l^2>_y = q1 and S_E = 0 for (y, qhat) at fixed d, from a guess."""

    def residual(moments: Moments) -> Array:
        return np.append(moments.saddle_residual, moments.layers * moments.external)

    kept, first = _KeptNodes(), y

    def evaluate(unknowns: Array, at: int, tangent: bool) -> Moments:
        y = float(unknowns[0])
        if abs(math.log(y / first)) > _LARGEST_MOVE:
            raise NotConvergedError(
                f"Newton ran away from y = {first:.4g} to {y:.4g} at d = {d:.10g}"
            )
        return model.moments(d, y, unknowns[1:], at, tangent, kept.nodes_y(y))

    guess = np.append(y, qhat)
    return _newton(
        evaluate,
        residual,
        Moments.ystar_jacobian,
        guess,
        (level, model.coarse),
        inverse,
        f"d = {d:.10g}, y = y*",
    )


class _KeptNodes:
    """The y whose nodes one Newton solve uses.

    Nodes chosen anew at every iterate jump between two sets where y* is close to a change of
    their number, and the iteration cycles. They are chosen again only if y has moved far, and a few
    times only.
    """

    def __init__(self) -> None:
        self._y = 0.0
        self._changes = 0

    def nodes_y(self, y: float) -> float:
        """Return the y of the nodes for an iterate at `y`."""
        far = self._y == 0 or abs(math.log(y / self._y)) > _NODES_RANGE
        if far and self._changes < _NODES_CHANGES:
            self._y = y
            self._changes += 1
        return self._y


def _newton(
    evaluate: Callable[[Array, int, bool], Moments],
    residual: Callable[[Moments], Array],
    jacobian: Callable[[Moments], Array],
    unknowns: Array,
    levels: tuple[int, int],
    inverse: Array | None,
    where: str,
) -> Solution:
    """Iterate until the unknowns move by rounding only.

    At the coarse level every step renews the Jacobian; at finer ones the given inverse is kept
    (the chord method), since it is the same function up to the error of the coarse quadrature.
    """
    level, coarse = levels
    chord = level > coarse
    if chord and inverse is None:
        start = _newton(evaluate, residual, jacobian, unknowns, (coarse, coarse), None, where)
        unknowns = np.append(start.moments.y, start.moments.qhat)[-unknowns.size :]
        inverse = start.inverse
    steps: list[float] = []
    for _ in range(_MOST_NEWTON_STEPS):
        # A runaway iterate overflows; the step is then not finite, which is caught below.
        with np.errstate(all="ignore"):
            moments = evaluate(unknowns, level, not chord)
        if not chord:
            inverse = _inverse(jacobian(moments), where)
        assert inverse is not None
        step = -(inverse @ residual(moments)) / unknowns
        if not np.all(np.isfinite(step)):
            raise NotConvergedError(f"the saddle point was lost at {where}: no finite Newton step")
        size = float(np.abs(step).max())
        steps.append(size)
        # The coarse quadrature is not worth more digits; at the fine ones rounding is reached when
        # a small step no longer shrinks. At small d the terms of S_E are large and cancel.
        noise = np.full(unknowns.size, ROUNDING)
        if unknowns.size > moments.qhat.size:  # the last equation is S_E = 0
            noise[-1] *= moments.terms
        shake = float((np.abs(inverse) @ noise / unknowns).max())
        stalled = size < max(1e-6, 3 * shake) and len(steps) > 1 and size > 0.3 * steps[-2]
        if size < (_FINE if chord else _ROUGH) or stalled:
            return Solution(moments, inverse, size)
        unknowns = unknowns * np.exp(step * min(1.0, _LARGEST_NEWTON_STEP / size))
        if unknowns.max() > _LARGEST_UNKNOWN or unknowns.min() < _LEAST_UNKNOWN:
            raise NotConvergedError(
                f"y or qhat left the range {_LEAST_UNKNOWN:g} to {_LARGEST_UNKNOWN:g} at {where}"
            )
    raise NotConvergedError(
        f"Newton did not converge to a saddle point at {where}: the last of {len(steps)} steps is "
        f"{steps[-1]:.1e}"
    )


def _inverse(jacobian: Array, where: str) -> Array:
    try:
        return np.asarray(np.linalg.inv(jacobian))
    except np.linalg.LinAlgError:
        raise NotConvergedError(
            f"the Jacobian of the saddle point is singular at {where}"
        ) from None


# First guesses, where no neighbouring point is known, and the zeros of S_E.

#: qhat is searched for between these; <m^2> rises with it from its value at 0 to 1.
_LEAST_QHAT, _LARGEST_QHAT = 1e-9, 1e4

#: y is raised by this factor until S_E turns negative, by more once it is large, where qhat y
#: hardly changes; up to a largest y.
_GROWTH, _FAST_GROWTH, _FAST = 1.35, 3.0, 1e3

_LARGEST_GUESS = 1e8

#: y from which on the trend of S_E tells whether y* is in reach.
_TREND = 12.0

#: Least step in log y of a scan.
_LEAST_SCAN_STEP = 0.05


def guess_qhat(model: Functional, d: float, y: float) -> Array:
    """Bisect log qhat, the same in all layers, until <m^2>_y = q1 holds to a few per cent."""
    low, high = np.log(_LEAST_QHAT), np.log(_LARGEST_QHAT)

    def excess(log_qhat: float) -> float:
        qhat = np.full(model.unknowns, np.exp(log_qhat))
        return float(model.moments(d, y, qhat, 0).saddle_residual.mean())

    # From below: a large qhat takes a very long quadrature.
    top = np.log(0.05)
    while excess(top) < 0:
        low, top = top, top + np.log(3.0)
        if top > high:
            raise NotConvergedError(
                f"no qhat below {_LARGEST_QHAT:g} solves the saddle at d = {d:.10g}, y={y:g}"
            )
    while top - low > 0.05:
        middle = 0.5 * (low + top)
        if low == np.log(_LEAST_QHAT):
            middle = max(middle, top - np.log(5.0))
        if excess(middle) < 0:
            low = middle
        else:
            top = middle
        if top < np.log(2 * _LEAST_QHAT):
            raise NotConvergedError(
                f"no qhat > 0 solves the saddle point at d = {d:.10g}, y = {y:g}"
            )
    return np.full(model.unknowns, np.exp(0.5 * (low + top)))


def guess_ystar(model: Functional, d: float) -> Moments:
    """Raise y from 1 until S_E changes sign; return the saddle next to the root."""
    y = 1.1
    moments = solve_saddle(model, d, y, guess_qhat(model, d, y), model.coarse).moments
    if moments.external <= 0:
        raise NotConvergedError(
            f"S_E = {moments.external:.2e} <= 0 at y = {y:g}, d = {d:.10g}: no y* > 1 exists"
        )
    while True:
        before = moments
        y = min(y * (_GROWTH if y < _FAST else _FAST_GROWTH), model.largest_y)
        if y <= before.y:
            raise NotConvergedError(
                f"S_E is still positive at y = {before.y:.3g}, d = {d:.10g}, so that y* is larger: "
                + model.in_reach
            )
        if y > _LARGEST_GUESS:
            raise NotConvergedError(f"S_E stays positive up to y = {before.y:g} at d = {d:.10g}")
        moments = _walk(model, before, y)
        if moments.external <= 0:
            break
        _check_trend(model, before, moments)
    return before if before.external < -moments.external else moments


def _check_trend(model: Functional, before: Moments, here: Moments) -> None:
    """Stop where S_E, a straight line in 1/y, is positive far beyond the largest y in reach."""
    if here.y < _TREND or model.plateau_y < math.inf:
        return
    slope = (here.external - before.external) / (1 / here.y - 1 / before.y)
    if here.external + slope * (1 / (1.5 * model.largest_y) - 1 / here.y) > 0:
        raise NotConvergedError(
            f"S_E is {here.external:.2g} at y = {here.y:.3g}, d = {here.d:.10g}, and its trend in "
            f"1/y is positive up to y = {1.5 * model.largest_y:g}: {model.in_reach}"
        )


def count_zeros(model: Functional, root: Moments, reach: float = 4.0, points: int = 12) -> int:
    """Count the sign changes of S_E between y = 1 and `reach` times the root.

    One is what the definition of y* (the largest y with S_E >= 0) presumes. The scan is of `points`
    values of y; it ends early where the saddle is lost, as it may be far beyond the root.
    """
    grid = np.geomspace(1.02, reach * root.y, points)
    below = _signs(model, root, grid[grid < root.y][::-1])
    above = _signs(model, root, grid[grid > root.y])
    # The root itself lies between: S_E changes there from what is below it to what is above.
    return int(np.count_nonzero(np.diff(below[::-1] + above)))


def _signs(model: Functional, start: Moments, grid: Array) -> list[bool]:
    """Signs of S_E at the y of `grid`, followed from `start`."""
    signs: list[bool] = []
    moments = start
    for y in grid:
        try:
            moments = _walk(model, moments, float(y))
        except NotConvergedError:
            break
        signs.append(moments.external > 0)
    return signs


def _walk(model: Functional, moments: Moments, y: float) -> Moments:
    """Solve the saddle at `y` from that of another y, in smaller steps where one is too long."""
    try:
        return solve_saddle(model, moments.d, y, _follow(moments, y), model.coarse).moments
    except NotConvergedError:
        if abs(math.log(y / moments.y)) < _LEAST_SCAN_STEP:
            raise
    return _walk(model, _walk(model, moments, math.sqrt(y * moments.y)), y)


def _follow(moments: Moments, y: float) -> Array:
    """Return a guess: qhat falls roughly like 1/y at fixed d."""
    return np.asarray(moments.qhat * (moments.y / y) ** 0.8)


# Finer quadrature, until the solved point no longer changes.


def refine_saddle(model: Functional, d: float, y: float, qhat: Array, tol: float) -> Refined:
    """Solve the saddle at fixed (d, y) to `tol` in S_I."""

    def solve(guess: Moments | None, level: int, inverse: Array | None) -> Solution:
        return solve_saddle(model, d, y, qhat if guess is None else guess.qhat, level, inverse)

    return _refine(solve, model, y, tol, math.inf, False, f"d = {d:.10g}, y = {y:g}")


def refine_ystar(
    model: Functional, d: float, y: float, qhat: Array, tol: float, slope_tol: float = math.inf
) -> Refined:
    """Solve for y* at d to `tol` in S_I* = phi(y*), and to `slope_tol` in its slope."""

    def solve(guess: Moments | None, level: int, inverse: Array | None) -> Solution:
        if guess is None:
            return solve_ystar(model, d, y, qhat, level, inverse)
        return solve_ystar(model, d, guess.y, guess.qhat, level, inverse)

    refined = _refine(solve, model, y, tol, slope_tol, True, f"d = {d:.10g}, y = y*")
    check_physical(refined.moments, d)
    return refined


def check_physical(moments: Moments, d: float) -> None:
    """Refuse the spurious roots to which Newton may converge."""
    if moments.y < 1:
        raise NotConvergedError(f"a root with y = {moments.y:g} < 1 at d = {d:.10g} is spurious")
    if moments.internal > np.log(2.0):
        raise NotConvergedError(f"a root with S_I above log 2 at d = {d:.10g} is spurious")


def _refine(
    solve: Callable[[Moments | None, int, Array | None], Solution],
    model: Functional,
    y: float,
    tol: float,
    slope_tol: float,
    at_ystar: bool,
    where: str,
) -> Refined:
    levels = range(model.coarse + 1, model.finest(y) + 1)
    if not levels:
        raise NotConvergedError(f"y = {y:.4g} is too large at {where}: {model.in_reach}")
    before = solve(None, model.coarse, None)
    for level in levels:
        now = solve(before.moments, level, before.inverse)
        refined = _errors(model, before, now, level, at_ystar)
        # At y* phi is stationary in y and in qhat, and equals S_I*: nothing else is needed.
        settled = refined.phi_error <= tol and (
            at_ystar or refined.internal_error <= model.internal_tol(tol)
        )
        if settled and refined.slope_error <= slope_tol:
            return refined
        before = now
    if refined.phi_error > 1e3 * tol:
        raise NotConvergedError(
            f"the quadrature reaches {refined.phi_error:.0e} in phi at {where}, not {tol:.0e}"
        )
    return refined  # rounding is reached: its errors say so


def _unknowns(solution: Solution, at_ystar: bool) -> Array:
    """Return (y, qhat) or qhat, moved by the last Newton step, which was small and not taken.

    The coarse level ends with a step of 1e-8 or less. If it starts from a finer solution it may
    take none, and would seem to agree with it.
    """
    moments = solution.moments
    residual = moments.saddle_residual
    if not at_ystar:
        return np.asarray(moments.qhat - solution.inverse @ residual)
    residual = np.append(residual, moments.layers * moments.external)
    return np.asarray(np.append(moments.y, moments.qhat) - solution.inverse @ residual)


def _errors(
    model: Functional, coarse: Solution, now: Solution, level: int, at_ystar: bool
) -> Refined:
    before, moments, step = coarse.moments, now.moments, now.last_step
    y, size = moments.y, moments.terms
    # The terms of S_E and of y phi are rounded, and the sum over the nodes gathers a few units.
    # With two layers the nodes dropped at either site weigh a known share.
    unit = ROUNDING + model.dropped(level)
    rounding = unit * size / moments.layers

    def finer(change: float) -> float:
        return model.remaining(change, level, y)

    def change(name: str) -> float:
        return finer(abs(getattr(moments, name) - getattr(before, name)))

    # Rounding of the equations solved: of order one for the overlaps, of `size` for S_E.
    noise = np.full(len(now.inverse), unit)
    if at_ystar:
        noise[-1] = unit * size
    amplified = np.abs(now.inverse) @ noise
    new, old = _unknowns(now, at_ystar), _unknowns(coarse, at_ystar)
    internal_change = abs(moments.internal - before.internal)
    moved = finer(max(float(np.abs(new / old - 1).max()), internal_change))
    qhat_error = amplified[-moments.qhat.size :] + moments.qhat * (moved + step)
    y_error = float(amplified[0]) + y * (moved + step) if at_ystar else 0.0
    # phi does not move with qhat, S_I by y(y-1)/2 d<m^2>/dy, so not at y = 1, and S_E y times that.
    sensitive = min(0.5 + y, y * abs(y - 1))
    drift = sensitive * float(qhat_error.sum()) * moments.multiplicity / moments.layers
    slope_drift = (y - 1) * float(qhat_error.sum()) + abs(moments.slope) * y_error / max(
        y - 1, 1e-3
    )
    return Refined(
        moments,
        now.inverse,
        level,
        phi_error=max(change("phi"), model.least_error(internal_change, level))
        + rounding / y
        + step**2,
        internal_error=change("internal") + rounding / y + drift,
        external_error=change("external") + rounding + y * drift,
        slope_error=change("slope") + model.slope_rounding(moments) * rounding + abs(slope_drift),
        y_error=y_error,
        qhat_error=qhat_error,
        residual=float(
            max(np.abs(moments.saddle_residual).max(), abs(moments.external) if at_ystar else 0.0)
        ),
    )


# Continuation of y*(d).

#: Where a curve is started: y* is a few units there, for all couplings of interest.
ANCHOR = 0.08

_FIRST_STRIDE, _LARGEST_STRIDE = 0.25, 0.7

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
    """Coarse continuation of y*(d) that keeps the points solved so far.

    It gives starting guesses only; every value that is reported is solved again at full resolution
    from the nearest waypoint.
    """

    def __init__(self, model: Functional, like: CurveTracker | None = None) -> None:
        self.model = model
        # A curve at slightly different couplings gives as good guesses as the curve itself.
        self._known: list[Waypoint] = [] if like is None else list(like._known)
        #: Whether all known points are of other curves, or rough, and which is only rough.
        self._foreign = True
        self._rough: Waypoint | None = None

    def start_from(self, d: float, y: float, qhat: Array) -> None:
        """Start from a rough point, dropped once one is solved, in place of other curves."""
        if self._foreign:
            self._known = []
        self._keep(d, y, qhat)
        self._rough = self._nearest(_parameter(d))

    def add(self, d: float, y: float, qhat: Array) -> None:
        """Keep a solved point of this curve."""
        self._keep(d, y, qhat)
        self._foreign = False

    def _keep(self, d: float, y: float, qhat: Array) -> None:
        point = Waypoint(_parameter(d), np.log(np.append(y, qhat)))
        self._known = [w for w in self._known if abs(w.parameter - point.parameter) > 1e-12]
        self._known.append(point)
        self._known.sort(key=lambda waypoint: waypoint.parameter)

    def expected(self, d: float) -> tuple[float, Array] | None:
        """Return y and qhat at `d` extrapolated from the points of this curve, None if unknown."""
        if self._foreign or not self._known:
            return None
        y, *qhat = np.exp(self._predict(_parameter(d)))
        return float(y), np.array(qhat)

    def solve(self, d: float, tol: float, slope_tol: float = math.inf) -> Refined:
        """Solve for y* at `d` to `tol` in S_I*, continuing from the nearest known point.

        If that is one of another curve and Newton's method fails from there, the curve is started
        anew where it is safe.
        """
        try:
            refined = self._solve(d, tol, slope_tol)
        except NotConvergedError:
            if not (self._foreign and self._known):
                raise
            self._known, self._rough = [], None
            refined = self._solve(d, tol, slope_tol)
        if self._rough is not None:
            self._known = [w for w in self._known if w is not self._rough]
        self.add(d, refined.moments.y, refined.moments.qhat)
        self._rough = None
        return refined

    def _solve(self, d: float, tol: float, slope_tol: float) -> Refined:
        self._reach(d)
        unknowns = np.exp(self._nearest(_parameter(d)).unknowns)
        y, qhat = float(unknowns[0]), unknowns[1:]
        if self._foreign:  # a saddle at this y first: Newton in all unknowns is then close
            qhat = solve_saddle(self.model, d, y, qhat, self.model.coarse).moments.qhat
        refined = refine_ystar(self.model, d, y, qhat, tol, slope_tol)
        if abs(math.log(refined.moments.y / unknowns[0])) > _LARGEST_JUMP:
            raise NotConvergedError(
                f"the branch y*(d) was lost at d = {d:.10g}: y jumped from {unknowns[0]:.4g} to "
                f"{refined.moments.y:.4g} when the quadrature was refined"
            )
        return refined

    def _reach(self, d: float) -> None:
        """Walk to `d`, with steps that keep the prediction good."""
        target = _parameter(d)
        if not self._known:
            # Start where Newton is safe: near the anchor, or at d itself if that is easier still.
            first = min(max(d, ANCHOR), self.model.largest_start)
            start = guess_ystar(self.model, first)
            solved = solve_ystar(self.model, first, start.y, start.qhat, self.model.coarse).moments
            check_physical(solved, first)
            self._keep(first, solved.y, solved.qhat)
        here, step = self._nearest(target).parameter, _FIRST_STRIDE
        while abs(target - here) > 1e-12:
            there = here + math.copysign(min(step, abs(target - here)), target - here)
            self._check_reach(here, there, target)
            try:
                miss = self._advance(there)
            except NotConvergedError as problem:
                step /= 2
                if step < self.model.least_step(math.exp(self._nearest(here).unknowns[0])):
                    raise NotConvergedError(
                        f"the continuation of y*(d) from d = {_d(here):.10g} towards d = {d:.10g} "
                        f"stopped at d = {_d(there):.10g}: {problem}"
                    ) from None
                continue
            here = there
            step *= 1.5 if miss < _GOOD_MISS else 0.7 if miss > 4 * _GOOD_MISS else 1.0
            step = min(step, _LARGEST_STRIDE)

    def _check_reach(self, here: float, there: float, target: float) -> None:
        """Refuse a walk that ends where y* is beyond reach, before it gets there.

        log y* is a convex function of the parameter wherever we looked, so that its extrapolation
        from two points is a lower bound.
        """
        now = float(self._nearest(here).unknowns[0])
        most = math.log(self.model.largest_y)
        for aim in (there, target):
            ahead = float(self._predict(aim)[0])
            if ahead > most and ahead > now:
                share = max(0.0, (most - now) / (ahead - now))
                last = _d(here + min(share, 1.0) * (aim - here))
                raise NotConvergedError(
                    f"y* is {math.exp(now):.3g} at d = {_d(here):.2g} and passes "
                    f"{self.model.largest_y:g} at d = {last:.2g} or earlier on the way to "
                    f"d = {_d(target):.3g}: {self.model.in_reach}"
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
            raise NotConvergedError("the root is far from its prediction")
        self._keep(d, solved.y, solved.qhat)
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


def follow(model: Functional, distances: Iterable[float], tol: float) -> Iterator[Refined]:
    """Yield the solved points of y*(d) at `distances`, in their order."""
    tracker = CurveTracker(model)
    for d in distances:
        yield tracker.solve(float(d), tol)


def _parameter(d: float) -> float:
    return math.log(d) - math.log(0.5 - d)


def _d(parameter: float) -> float:
    return 0.5 / (1 + math.exp(-parameter))


# The functional of a chain: the only place that depends on the depth.

_TYPES: dict[int | float, type[Functional]] = {1: CoreFunctional, 2: PairFunctional}


def functional(chain: Chain) -> Functional:
    """Return the local-entropy functional of a chain.

    One and two layers are integrated on nodes, more by the transfer operator.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> functional(Chain(1, 0.1)).label, functional(Chain("inf", 0.1, 0.3)).label
    ('trapezoid quadrature, two resolutions', 'transfer operator, two grids')
    """
    return _TYPES.get(chain.layers, transfer_functional)(chain)
