r"""The saddle with an overlap q0 > 0 between clusters: its equations, and y* from it.

With <.> the average inside I, tilted by zeta^y (:mod:`rmtheory.local_entropies.broken_averages`),
m = d log zeta/dh and g = d log zeta/dx of one layer, integration by parts gives, per layer,

.. math::
    2\,\partial\phi/\partial\hat q_1 &= (y-1)\,(E\langle m^2\rangle - q_1), &
    2\,\partial\phi/\partial\hat q_0 &= y\,(q_0 - E\langle m\rangle^2), \\
    2\,\partial\phi/\partial q_1 &= (y-1)\,(E\langle g^2\rangle - \hat q_1), &
    2\,\partial\phi/\partial q_0 &= y\,(\hat q_0 - E\langle g\rangle^2),

and S_I = d(y phi)/dy, S_E = y (phi - S_I) as for q0 = 0
(:mod:`rmtheory.local_entropies.functional`). At y = 1, for all q1 and qhat1, phi is the
replica-symmetric functional at (q0, qhat0).

**Saddle.** Unknowns are (qhat1, q0, qhat0) and y, iterated as log qhat1, logit(q0/q1),
logit(qhat0/qhat1) and log y, which keeps 0 < q0 < q1 and 0 < qhat0 < qhat1. The root q0 = 0 is
divided out of the equations: E<m>^2 = q0 and E<g>^2 = qhat0 are solved as ratios. For a first
solution q0 is held fixed, (qhat1, qhat0) solve the two other equations, and

.. math:: f(q_0) = E\langle m\rangle^2/q_0 - 1

is followed from q0 close to q1, where it is negative, towards 0, where its sign is that of -M0. The
first zero is the saddle: there phi has a minimum over q0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rmtheory.base.chain import Chain
from rmtheory.base.errors import NotConvergedError
from rmtheory.base.gaussian import Array
from rmtheory.local_entropies.broken_averages import (
    BrokenMoments,
    broken_moments,
    finest_broken,
)
from rmtheory.local_entropies.solve import ROUNDING

# The saddle from a guess: Newton's method.

#: Step of the differences that make the Jacobian; only the speed of Newton depends on it.
_DIFFERENCE = 1e-5

_MOST_STEPS, _LARGEST_STEP, _SMALL_STEP = 40, 0.7, 1e-11

Evaluate = Callable[[Array, int], BrokenMoments]

Residual = Callable[[BrokenMoments], Array]


@dataclass(frozen=True, eq=False)
class BrokenSolution:
    """A saddle at one resolution: the unknowns, the averages and the inverse Jacobian there."""

    unknowns: Array
    moments: BrokenMoments
    inverse: Array
    last_step: float
    level: int


def solve_saddle(chain: Chain, d: float, y: float, start: Array, level: int) -> BrokenSolution:
    """Solve for (qhat1, q0, qhat0) at fixed (d, y) from a guess of the unknowns."""

    def evaluate(u: Array, at: int) -> BrokenMoments:
        return broken_moments(chain, d, y, *_order_parameters(u, 1 - 2 * d), at)

    return _newton(evaluate, lambda m: m.saddle_residual, start, level, f"d = {d:.10g}, y = {y:g}")


def solve_ystar(chain: Chain, d: float, start: Array, level: int) -> BrokenSolution:
    """Solve for (qhat1, q0, qhat0, y) with S_E = 0 at fixed d from a guess of the unknowns."""

    def evaluate(u: Array, at: int) -> BrokenMoments:
        return broken_moments(chain, d, math.exp(u[3]), *_order_parameters(u, 1 - 2 * d), at)

    return _newton(evaluate, _with_external, start, level, f"d = {d:.10g}, y = y*")


def solve_distance(chain: Chain, y: float, start: Array, level: int) -> BrokenSolution:
    """Solve for (qhat1, q0, qhat0, d) with S_E = 0 at fixed y; the last unknown is logit(2d)."""

    def evaluate(u: Array, at: int) -> BrokenMoments:
        d = 0.5 * share_of(u[3])
        return broken_moments(chain, d, y, *_order_parameters(u, 1 - 2 * d), at)

    return _newton(evaluate, _with_external, start, level, f"y = {y:g}, d = d*")


def _with_external(moments: BrokenMoments) -> Array:
    return np.append(moments.saddle_residual, moments.external)


def _newton(
    evaluate: Evaluate, residual: Residual, start: Array, level: int, where: str
) -> BrokenSolution:
    """Newton's method; the Jacobian is of the coarsest rule once the steps are small."""
    unknowns = np.array(start, dtype=float)
    inverse: Array | None = None
    steps: list[float] = []
    for _ in range(_MOST_STEPS):
        moments = evaluate(unknowns, level)
        if inverse is None or steps[-1] > 1e-3:
            inverse = _inverse(lambda u: residual(evaluate(u, 0)), unknowns, where)
        step = -(inverse @ residual(moments))
        size = float(np.abs(step).max())
        if not math.isfinite(size):
            raise NotConvergedError(f"the saddle q0 > 0 was lost at {where}: no finite step")
        stalled = len(steps) > 1 and size < 1e-7 and size > 0.3 * steps[-1]
        steps.append(size)
        if size < _SMALL_STEP or stalled:
            return BrokenSolution(unknowns, moments, inverse, size, level)
        unknowns = unknowns + step * min(1.0, _LARGEST_STEP / size)
    raise NotConvergedError(
        f"Newton did not converge to a saddle with q0 > 0 at {where}: last step {steps[-1]:.1e}"
    )


def _inverse(residual: Callable[[Array], Array], unknowns: Array, where: str) -> Array:
    """Return the inverse of the Jacobian by central differences."""
    columns = [
        (residual(unknowns + e) - residual(unknowns - e)) / (2 * _DIFFERENCE)
        for e in _DIFFERENCE * np.eye(unknowns.size)
    ]
    try:
        return np.asarray(np.linalg.inv(np.array(columns).T))
    except np.linalg.LinAlgError:
        raise NotConvergedError(f"the Jacobian of the saddle is singular at {where}") from None


def _order_parameters(unknowns: Array, q1: float) -> tuple[float, float, float]:
    """Return (qhat1, q0, qhat0)."""
    qhat1 = math.exp(unknowns[0])
    return qhat1, q1 * share_of(unknowns[1]), qhat1 * share_of(unknowns[2])


def share_of(logit: float) -> float:
    """Return the number in (0, 1) of given logit."""
    return 1 / (1 + math.exp(-logit))


def logit_of(share: float) -> float:
    """Return log(share/(1 - share))."""
    return math.log(share / (1 - share))


# The saddle without a guess, and y* from a saddle.

#: q0/q1 is searched for between these, in steps of its logit.
_LEAST_SHARE, _LARGEST_SHARE, _LADDER = 1e-9, 0.95, 0.5

#: Largest y* that is searched for: beyond, powers of zeta leave the range of floating point.
LARGEST_Y = 300.0

#: A root this close in all unknowns continues the saddle.
_NEAR = 0.3

#: Steps in log y: the first, the largest and the least one.
_WALK, _LARGEST_WALK, _LEAST_WALK = 0.1, 0.3, 1e-3


@dataclass(frozen=True, eq=False)
class Rung:
    """A step of the search: logit(q0/q1), (log qhat1, logit(qhat0/qhat1)) and f there."""

    place: float
    unknowns: Array
    f: float


def find_saddle(chain: Chain, d: float, y: float, qhat1: float, m0: float) -> BrokenSolution | None:
    """Find the saddle with the largest q0 > 0; None if there is none.

    Parameters
    ----------
    chain : Chain
        One layer, or two that are mirror images.
    d, y : float
        Distance and y.
    qhat1, m0 : float
        Conjugate overlap and M0 of the saddle q0 = 0 at the same y. Where M0 < 0 is small, so is
        q0: the search goes down to a value in proportion.
    """
    place, step = logit_of(_LARGEST_SHARE), _LADDER
    last = logit_of(min(0.01, max(_LEAST_SHARE, 0.1 * abs(m0))))
    first = np.array([math.log(qhat1), 0.0])
    path: list[Rung] = []
    while True:
        try:
            rung = _at_share(chain, d, y, place, _predict(path, place, first))
        except NotConvergedError:
            step /= 2
            if not path or step < _LEAST_WALK:
                raise
            place = path[-1].place - step
            continue
        if rung.f >= 0 and not path:
            raise NotConvergedError(f"q0 is too close to q1 at d = {d:.10g}, y = {y:g}")
        if rung.f >= 0:
            above = path[-1]
            share = above.f / (above.f - rung.f)
            mixed = above.unknowns + share * (rung.unknowns - above.unknowns)
            between = above.place + share * (rung.place - above.place)
            return solve_saddle(chain, d, y, np.array([mixed[0], between, mixed[1]]), 1)
        if place <= last:
            return None
        path.append(rung)
        place = max(place - step, last)


def _at_share(chain: Chain, d: float, y: float, place: float, start: Array) -> Rung:
    """Solve for (qhat1, qhat0) at given logit(q0/q1)."""
    q0 = (1 - 2 * d) * share_of(place)

    def evaluate(u: Array, level: int) -> BrokenMoments:
        qhat1 = math.exp(u[0])
        return broken_moments(chain, d, y, qhat1, q0, qhat1 * share_of(u[1]), level)

    where = f"d = {d:.10g}, y = {y:g}, q0 = {q0:.3g}"
    solved = _newton(evaluate, lambda m: m.saddle_residual[[0, 2]], start, 0, where)
    return Rung(place, solved.unknowns, float(solved.moments.saddle_residual[1]))


def _predict(path: list[Rung], place: float, first: Array) -> Array:
    """Extrapolate (log qhat1, logit(qhat0/qhat1)) along the ladder."""
    if len(path) < 2:
        return path[-1].unknowns if path else first
    before, here = path[-2:]
    share = (place - here.place) / (here.place - before.place)
    return np.asarray(here.unknowns + share * (here.unknowns - before.unknowns))


def find_ystar(chain: Chain, d: float, saddle: BrokenSolution) -> BrokenSolution:
    """Solve for y* from a `saddle` at the y where S_E vanishes on the branch q0 = 0."""
    start = np.append(saddle.unknowns, math.log(saddle.moments.y))
    try:
        near = solve_ystar(chain, d, start, 1)
    except NotConvergedError:
        near = None
    # Further away it may be another root, or none that continues this one.
    if near is not None and float(np.abs(near.unknowns - start).max()) < _NEAR:
        return near
    # Walk along y until S_E changes sign, straight on in log y once two points are known.
    rising = saddle.moments.external > 0
    step = _WALK if rising else -_WALK
    before, now = saddle, saddle
    while (now.moments.external > 0) == rising:
        y = now.moments.y * math.exp(step)
        if y > LARGEST_Y:
            raise NotConvergedError(
                f"S_E = {now.moments.external:.2e} is still positive at y = {now.moments.y:.0f}, "
                f"d = {d:.10g}: with q0 > 0, y* is not finite, or larger than {LARGEST_Y:g}"
            )
        known = math.log(now.moments.y / before.moments.y)
        share = step / known if known else 0.0
        start = now.unknowns + share * (now.unknowns - before.unknowns)
        try:
            before, now = now, solve_saddle(chain, d, y, start, 1)
        except NotConvergedError:
            step /= 2
            if abs(step) < _LEAST_WALK:
                raise
        else:
            step = math.copysign(min(1.3 * abs(step), _LARGEST_WALK), step)
    one, two = before.moments.external, now.moments.external
    share = one / (one - two)
    points = [np.append(s.unknowns, math.log(s.moments.y)) for s in (before, now)]
    return solve_ystar(chain, d, points[0] + share * (points[1] - points[0]), 1)


# Finer rules, and errors.


@dataclass(frozen=True, eq=False)
class BrokenRefined:
    """A saddle at two resolutions, with the errors of its quantities."""

    moments: BrokenMoments
    phi_error: float
    internal_error: float
    external_error: float
    slope_error: float
    y_error: float
    qhat1_error: float
    q0_error: float
    qhat0_error: float
    #: Largest residual of the equations solved.
    residual: float
    #: Least eigenvalue of M_r, and what the finer rule changed of it.
    replicon: float
    replicon_error: float


def refine(chain: Chain, solution: BrokenSolution, tol: float) -> BrokenRefined:
    """Solve again on finer rules until phi (and S_I at fixed y) changes by less than `tol`."""
    moments, at_ystar = solution.moments, solution.unknowns.size == 4
    refined: BrokenRefined | None = None
    for level in range(solution.level + 1, finest_broken(chain) + 1):
        before = solution
        if at_ystar:
            solution = solve_ystar(chain, moments.d, before.unknowns, level)
        else:
            solution = solve_saddle(chain, moments.d, moments.y, before.unknowns, level)
        refined = _errors(before, solution)
        if refined.phi_error <= tol and (at_ystar or refined.internal_error <= tol):
            break
    assert refined is not None
    if refined.phi_error > 1e3 * tol:
        raise NotConvergedError(
            f"the quadrature reaches {refined.phi_error:.0e} in phi at d = {moments.d:.10g}, "
            f"y = {moments.y:g}, not {tol:.0e}"
        )
    return refined


def _errors(before: BrokenSolution, now: BrokenSolution) -> BrokenRefined:
    """Errors: the change from the coarser rule, rounding amplified, and the last step."""
    old, new = before.moments, now.moments
    replicon = new.replicon()
    at_ystar = now.unknowns.size == 4
    rounding = ROUNDING * new.terms
    # <m> and <g> are rounded relative to m and g, not to their small averages.
    noise = [1.0, 1 / math.sqrt(new.q0), math.sqrt(new.force1 / new.qhat0)]
    noise += [new.terms] if at_ystar else []
    moved = np.abs(now.inverse) @ (ROUNDING * np.array(noise)) + now.last_step

    def change(name: str) -> float:
        return abs(float(getattr(new, name)) - float(getattr(old, name)))

    # d log q0 = (1 - q0/q1) d logit
    y_moved = float(moved[3]) if at_ystar else 0.0
    qhat1_error = change("qhat1") + new.qhat1 * float(moved[0])
    q0_error = change("q0") + new.q0 * float(moved[1])
    qhat0_error = change("qhat0") + new.qhat0 * float(moved[0] + moved[2])
    # S_I and S_E move with the order parameters, phi does not.
    drift = (0.5 + new.y) * (qhat1_error + qhat0_error) + new.y * new.qhat0 * q0_error
    return BrokenRefined(
        new,
        phi_error=change("phi") + rounding / new.y + now.last_step**2,
        internal_error=change("internal") + rounding / new.y + drift,
        external_error=change("external") + rounding + new.y * drift,
        slope_error=change("slope")
        + new.y * (rounding + qhat1_error + qhat0_error)
        + abs(new.slope) * (y_moved + float(moved[1])),
        y_error=change("y") + new.y * y_moved,
        qhat1_error=qhat1_error,
        q0_error=q0_error,
        qhat0_error=qhat0_error,
        residual=float(
            max(np.abs(new.saddle_residual).max(), abs(new.external) if at_ystar else 0.0)
        ),
        replicon=replicon,
        replicon_error=abs(replicon - old.replicon()),
    )
