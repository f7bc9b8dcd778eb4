"""Raise the resolution of the quadrature until a solved point stands still.

The error of a trapezoid rule falls like exp(-c/step). If the step shrinks by a factor k and the
value changes by Delta, which is the error of the coarser rule, that of the finer is Delta^k. The
error reported is three times this, but no less than Delta/8, since the law may set in late; for
the transfer operator of three layers or more it is a multiple of Delta (left_over). The errors
oscillate with the step, and one number may stand still by accident while the others move: the
largest relative change of the unknowns counts for all of them. What the pruned nodes weigh and the
rounding of the equations, amplified by the inverse Jacobian, and the last Newton step are added.
The tests hold it against finer rules and more digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rmtheory.errors import NotConvergedError
from rmtheory.gaussian import Array
from rmtheory.local_entropy.deep.message import IN_REACH
from rmtheory.local_entropy.model import LocalModel
from rmtheory.local_entropy.moments import Moments
from rmtheory.local_entropy.newton import ROUNDING, Solution, solve_saddle, solve_ystar


@dataclass(frozen=True, eq=False)
class Refined:
    """A solved point at the final resolution, with errors of what is read off it."""

    moments: Moments
    inverse: Array
    level: int
    phi_error: float
    internal_error: float
    external_error: float
    slope_error: float
    y_error: float
    qhat_error: Array
    #: Largest residual of the equations solved.
    residual: float


def refine_saddle(model: LocalModel, d: float, y: float, qhat: Array, tol: float) -> Refined:
    """Solve the saddle at fixed (d, y) to `tol` in S_I."""

    def solve(guess: Moments | None, level: int, inverse: Array | None) -> Solution:
        return solve_saddle(model, d, y, qhat if guess is None else guess.qhat, level, inverse)

    return _refine(solve, model, y, tol, math.inf, False, f"d = {d:.10g}, y = {y:g}")


def refine_ystar(
    model: LocalModel, d: float, y: float, qhat: Array, tol: float, slope_tol: float = math.inf
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
    """Refuse the spurious roots that Newton may fall on."""
    if moments.y < 1:
        raise NotConvergedError(f"a root with y = {moments.y:g} < 1 at d = {d:.10g} is spurious")
    if moments.internal > np.log(2.0):
        raise NotConvergedError(f"a root with S_I above log 2 at d = {d:.10g} is spurious")


def _refine(
    solve: Callable[[Moments | None, int, Array | None], Solution],
    model: LocalModel,
    y: float,
    tol: float,
    slope_tol: float,
    at_ystar: bool,
    where: str,
) -> Refined:
    levels = range(model.coarse + 1, model.finest(y) + 1)
    if not levels:
        raise NotConvergedError(f"y = {y:.4g} is too large at {where}: {IN_REACH}")
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
    """Return (y, qhat) or qhat, moved by the Newton step that was found small and not taken.

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
    model: LocalModel, coarse: Solution, now: Solution, level: int, at_ystar: bool
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
        slope_error=change("slope") + y * rounding + abs(slope_drift),
        y_error=y_error,
        qhat_error=qhat_error,
        residual=float(
            max(np.abs(moments.saddle_residual).max(), abs(moments.external) if at_ystar else 0.0)
        ),
    )
