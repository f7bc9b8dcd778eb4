"""First guesses: where Newton can start when no neighbouring point is known."""

from __future__ import annotations

import math

import numpy as np

from rmtheory.errors import NotConvergedError
from rmtheory.gaussian import Array
from rmtheory.local_entropy.deep.message import IN_REACH, LARGEST_Y
from rmtheory.local_entropy.model import LocalModel
from rmtheory.local_entropy.moments import Moments
from rmtheory.local_entropy.newton import solve_saddle

#: qhat is looked for between these; <m^2> rises with it from its value at 0 to 1.
_LEAST, _MOST = 1e-9, 1e4

#: y is raised by this factor until S_E turns negative.
_GROWTH = 1.35
_LARGEST_Y = 1e5

#: Least step in log y of a scan.
_LEAST_STEP = 0.05


def guess_qhat(model: LocalModel, d: float, y: float) -> Array:
    """Bisect log qhat, the same in all layers, until <m^2>_y = q1 holds to a few per cent."""
    low, high = np.log(_LEAST), np.log(_MOST)

    def excess(log_qhat: float) -> float:
        qhat = np.full(model.unknowns, np.exp(log_qhat))
        return float(model.moments(d, y, qhat, 0).saddle_residual.mean())

    # From below: large qhat would ask for a very long quadrature before it is needed.
    top = np.log(0.05)
    while excess(top) < 0:
        low, top = top, top + np.log(3.0)
        if top > high:
            raise NotConvergedError(
                f"no qhat below {_MOST:g} solves the saddle at d = {d:.10g}, y={y:g}"
            )
    while top - low > 0.05:
        middle = 0.5 * (low + top)
        if low == np.log(_LEAST):
            middle = max(middle, top - np.log(5.0))
        if excess(middle) < 0:
            low = middle
        else:
            top = middle
        if top < np.log(2 * _LEAST):
            raise NotConvergedError(
                f"no qhat > 0 solves the saddle point at d = {d:.10g}, y = {y:g}"
            )
    return np.full(model.unknowns, np.exp(0.5 * (low + top)))


def guess_ystar(model: LocalModel, d: float) -> Moments:
    """Raise y from 1 until S_E changes sign; return the saddle next to the root."""
    y = 1.1
    moments = solve_saddle(model, d, y, guess_qhat(model, d, y), model.coarse).moments
    if moments.external <= 0:
        raise NotConvergedError(
            f"S_E = {moments.external:.2e} <= 0 at y = {y:g}, d = {d:.10g}: no y* > 1 exists"
        )
    while True:
        before = moments
        y = min(y * _GROWTH, LARGEST_Y) if model.deep else y * _GROWTH
        if y <= before.y:
            raise NotConvergedError(
                f"S_E is still positive at y = {before.y:.3g}, d = {d:.10g}, so that y* is larger: "
                + IN_REACH
            )
        if y > _LARGEST_Y:
            raise NotConvergedError(f"S_E stays positive up to y = {before.y:g} at d = {d:.10g}")
        moments = solve_saddle(model, d, y, _follow(before, y), model.coarse).moments
        if moments.external <= 0:
            break
    return before if before.external < -moments.external else moments


def count_zeros(model: LocalModel, root: Moments, reach: float = 4.0, points: int = 12) -> int:
    """Count the sign changes of S_E between y = 1 and `reach` times the root found.

    One is what the definition of y* (the largest y with S_E >= 0) presumes. The scan is of `points`
    values of y; it ends early where the saddle is lost, as it may be far beyond the root.
    """
    grid = np.geomspace(1.02, reach * root.y, points)
    below = _signs(model, root, grid[grid < root.y][::-1])
    above = _signs(model, root, grid[grid > root.y])
    # The root itself lies between: S_E changes there from what is below it to what is above.
    return int(np.count_nonzero(np.diff(below[::-1] + above)))


def _signs(model: LocalModel, start: Moments, grid: Array) -> list[bool]:
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


def _walk(model: LocalModel, moments: Moments, y: float) -> Moments:
    """Solve the saddle at `y` from that of another y, in smaller steps where one is too long."""
    try:
        return solve_saddle(model, moments.d, y, _follow(moments, y), model.coarse).moments
    except NotConvergedError:
        if abs(math.log(y / moments.y)) < _LEAST_STEP:
            raise
    return _walk(model, _walk(model, moments, math.sqrt(y * moments.y)), y)


def _follow(moments: Moments, y: float) -> Array:
    """Return a guess: qhat falls roughly like 1/y at fixed d."""
    return np.asarray(moments.qhat * (moments.y / y) ** 0.8)
