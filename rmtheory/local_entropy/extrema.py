"""Minima over d of the slope dS_I*/dd and of S_I* itself, along one curve y*(d)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from rmtheory.errors import NotConvergedError
from rmtheory.local_entropy.continuation import CurveTracker
from rmtheory.local_entropy.refine import Refined

#: Distances scanned for a minimum when nothing is known, from above, where Newton is safe.
SCAN = (0.25, 1e-4, 22)

#: Tolerance of the scan: signs and places are wanted, not values.
SCAN_TOL = 1e-6


@dataclass(frozen=True, eq=False)
class Minimum:
    """A minimum over d: where it is, its value with an error, and the solved point there."""

    d: float
    value: float
    error: float
    point: Refined
    #: Second derivative of the slope in log d, where it is the slope that was minimised.
    curvature: float = 0.0


def least_slope(
    tracker: CurveTracker, near: float | None, tol: float, slope_tol: float = math.inf
) -> Minimum:
    """Find the least slope dS_I*/dd over d, close to `near` or by a scan."""
    widths = [0.03, 0.006] if tol < 1e-9 else [0.03]
    if near is None:
        near = _scan(tracker, lambda point: point.moments.slope, "slope")
        widths.insert(0, 0.12)
    points: dict[float, Refined] = {}

    def slope(log_d: float) -> float:
        if log_d not in points:
            points[log_d] = tracker.solve(math.exp(log_d), tol, slope_tol)
        return points[log_d].moments.slope

    middle, moved = math.log(near), math.inf
    # Parabolas of decreasing width; the last is narrow enough to place the minimum, and still wide
    # against the noise of the slope.
    for width in widths:
        for _ in range(30):
            a, b, c = (slope(middle + k * width) for k in (-1, 0, 1))
            curvature = a - 2 * b + c
            if curvature > 0 and abs(a - c) < 3 * curvature:
                break
            middle += math.copysign(width, a - c)  # downhill until the minimum is inside
        else:
            raise NotConvergedError(f"no minimum of the slope was found near d = {near:g}")
        moved = 0.5 * width * (a - c) / curvature
        middle += moved
    value = slope(middle)
    point = points[middle]
    # What is left of the misplacement is small against the last move, or of second order in width.
    left = max(0.1 * abs(moved), width**2)
    misplaced = 0.5 * curvature * (left / width) ** 2
    error = point.slope_error + misplaced
    return Minimum(math.exp(middle), value, error, point, curvature / width**2)


def least_entropy(tracker: CurveTracker, near: float | None, tol: float) -> Minimum:
    """Find the interior minimum of S_I* over d, where the slope passes 0 from below."""
    if near is None:
        near = _scan(tracker, lambda point: point.moments.internal, "entropy")
    points: dict[float, Refined] = {}

    def slope(log_d: float) -> float:
        points[log_d] = tracker.solve(math.exp(log_d), tol)
        return points[log_d].moments.slope

    low = high = math.log(near)
    while slope(low) > 0:
        low -= 0.1
        if low < math.log(near) - 2:
            raise NotConvergedError(f"S_I* has no minimum near d = {near:g}")
    while slope(high) < 0:
        high += 0.1
        if high > math.log(0.4):
            raise NotConvergedError(f"S_I* still falls with d at d = {math.exp(high):g}")
    root = optimize.brentq(slope, low, high, xtol=1e-6)
    slope(root)
    point = points[root]
    return Minimum(math.exp(root), point.moments.phi, point.phi_error, point)


def _scan(tracker: CurveTracker, value: Callable[[Refined], float], what: str) -> float:
    """Return the d of the lowest interior local minimum of `value` over a coarse grid."""
    distances = np.geomspace(*SCAN)
    found: list[tuple[float, float]] = []
    for d in distances:
        found.append((float(d), value(tracker.solve(float(d), SCAN_TOL))))
        if _passed([value for _, value in found]):
            break
    inner = [
        (found[k][1], found[k][0])
        for k in range(1, len(found) - 1)
        if found[k - 1][1] >= found[k][1] <= found[k + 1][1]
    ]
    if not inner:
        raise NotConvergedError(
            f"the {what} of {tracker.model.chain} has no minimum between d = {found[-1][0]:.2g} "
            f"and {found[0][0]:.2g}"
        )
    return min(inner)[1]


def _passed(values: list[float]) -> bool:
    """Whether a minimum lies behind: the values fell, then rose twice (towards d = 0)."""
    if len(values) < 4:
        return False
    a, b, c, d = values[-4:]
    return a > b < c < d
