r"""P_max from many trials, and its slope in N, as the paper does it (SM-D).

A smooth spline through the 5th percentiles :math:`O_5(P)` of all trials; P_max is where it falls
below :math:`1-\varepsilon`. The error is that of the bootstrap over trials. The slope is that of a
straight line through P_max(N), weighted by these errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline
from scipy.optimize import isotonic_regression

from rmtheory import checks
from rmtheory.errors import InvalidInputError

Array = NDArray[np.float64]

#: Distinct P that a smoothing spline needs.
_LEAST = 5

#: Share of the bootstrap samples that must have a crossing for its error to mean something.
_RESOLVED = 0.8

_FINE = 801


class CapacityStatus(StrEnum):
    """What the trials say of P_max; the value is the sentence for the reader."""

    FOUND = "found"
    BELOW = "below all P tried: lower the loads"
    ABOVE = "above all P tried: raise the loads"
    FEW = "fewer than 5 different P: more trials"
    UNRESOLVED = "too noisy: many bootstrap samples have no crossing, more trials"


@dataclass(frozen=True)
class Capacity:
    """P_max with its bootstrap error; NaN unless the status is found."""

    value: float
    error: float
    status: CapacityStatus


@dataclass(frozen=True)
class Slope:
    """P_max = intercept + alpha N, with the errors of a weighted fit."""

    alpha: float
    alpha_error: float
    intercept: float
    intercept_error: float
    chi2: float
    dof: int


def p_max(
    patterns: ArrayLike,
    o5: ArrayLike,
    *,
    epsilon: float = 0.05,
    bootstrap: int = 200,
    seed: int = 0,
) -> Capacity:
    """Return the capacity from trials with `patterns` pairs and 5th percentiles `o5`.

    Examples
    --------
    >>> P = np.arange(40, 81)
    >>> found = p_max(P, np.where(P <= 60, 1.0, 1.0 - (P - 60) / 20))
    >>> round(found.value), str(found.status)
    (61, 'found')
    """
    p, values = (np.asarray(a, dtype=float) for a in (patterns, o5))
    if p.ndim != 1 or p.shape != values.shape:
        raise InvalidInputError("o5", values.shape, f"one number for each of {p.size} trials")
    if not (np.isfinite(p).all() and np.isfinite(values).all()):
        raise InvalidInputError("o5", "an undefined number", "finite")
    checks.integer("bootstrap", bootstrap, 2)
    target = 1 - epsilon
    if np.unique(p).size < _LEAST:
        return Capacity(math.nan, math.nan, CapacityStatus.FEW)
    # How smooth, is decided once, by cross-validation on all trials: the bootstrap keeps to it.
    penalty = _penalty(p, values)
    value, status = _crossing(p, values, target, penalty)
    if status is not CapacityStatus.FOUND:
        return Capacity(math.nan, math.nan, status)
    draw = np.random.default_rng(seed)
    found = []
    for _ in range(bootstrap):
        chosen = draw.integers(0, p.size, p.size)
        if np.unique(p[chosen]).size < _LEAST:
            continue
        again, outcome = _crossing(p[chosen], values[chosen], target, penalty)
        if outcome is CapacityStatus.FOUND:
            found.append(again)
    if len(found) < _RESOLVED * bootstrap:
        return Capacity(math.nan, math.nan, CapacityStatus.UNRESOLVED)
    return Capacity(value, float(np.std(found, ddof=1)), CapacityStatus.FOUND)


def _crossing(
    p: Array, values: Array, target: float, penalty: float
) -> tuple[float, CapacityStatus]:
    """Return where the spline falls below `target`.

    More pairs are harder to learn: wiggles of the spline are levelled by the decreasing curve
    nearest to it, so that there is one crossing, and none is favoured.
    """
    x, wiggly = smooth(p, values, penalty)
    fitted = isotonic_regression(wiggly, increasing=False).x
    below = np.flatnonzero(fitted < target)
    if below.size == 0:
        return math.nan, CapacityStatus.ABOVE
    k = int(below[0])
    if k == 0:
        return math.nan, CapacityStatus.BELOW
    share = (fitted[k - 1] - target) / (fitted[k - 1] - fitted[k])
    return float(x[k - 1] + share * (x[k] - x[k - 1])), CapacityStatus.FOUND


def smooth(p: Array, values: Array, penalty: float | None = None) -> tuple[Array, Array]:
    """Return the smoothing spline on a fine grid; trials of the same P count together.

    It minimises sum w (y - g)^2 + `penalty` int g''^2; a penalty that is not given is found by
    cross-validation.
    """
    x, mean, weight = _by_patterns(p, values)
    lam = _penalty(p, values) if penalty is None else penalty
    fitted = np.linalg.solve(np.diag(weight) + lam * _roughness(x), weight * mean)
    fine = np.linspace(x[0], x[-1], _FINE)
    return fine, np.asarray(CubicSpline(x, fitted, bc_type="natural")(fine), dtype=np.float64)


def _by_patterns(p: Array, values: Array) -> tuple[Array, Array, Array]:
    """Return the distinct P, the mean value of the trials at each, and their number."""
    x, inverse, count = np.unique(p, return_inverse=True, return_counts=True)
    return x, np.bincount(inverse, values) / count, count.astype(np.float64)


def _roughness(x: Array) -> Array:
    """Return K with g.K.g = int g''^2 for the natural cubic spline through g at `x`.

    K = Q R^-1 Q^T (Green and Silverman, Nonparametric Regression, section 2.1).
    """
    h = np.diff(x)
    inner = np.arange(x.size - 2)
    q = np.zeros((x.size, x.size - 2))
    q[inner, inner], q[inner + 2, inner] = 1 / h[:-1], 1 / h[1:]
    q[inner + 1, inner] = -1 / h[:-1] - 1 / h[1:]
    r = np.diag((h[:-1] + h[1:]) / 3) + np.diag(h[1:-1] / 6, 1) + np.diag(h[1:-1] / 6, -1)
    return np.asarray(q @ np.linalg.solve(r, q.T), dtype=np.float64)


def _penalty(p: Array, values: Array) -> float:
    """Return the penalty of least generalised cross-validation score.

    With S the map from values to fit, the score is |y - S y|^2 / (1 - tr S / n)^2.
    """
    x, mean, weight = _by_patterns(p, values)
    roughness = _roughness(x)
    penalties = ((x[-1] - x[0]) / x.size) ** 3 * np.logspace(-3, 5, 65)
    scores = []
    for lam in penalties:
        hat = np.linalg.solve(np.diag(weight) + lam * roughness, np.diag(weight))
        left = 1 - np.trace(hat) / x.size
        scores.append((weight * (mean - hat @ mean) ** 2).sum() / left**2)
    return float(penalties[int(np.argmin(scores))])


def slope(n: ArrayLike, capacity: ArrayLike, error: ArrayLike) -> Slope | None:
    """Fit a line through P_max(N), each point weighted by its error; None below two points.

    Examples
    --------
    >>> fit = slope([100, 200, 300], [50.0, 120.0, 190.0], [1.0, 1.0, 1.0])
    >>> round(fit.alpha, 6), round(fit.intercept, 6), fit.dof
    (0.7, -20.0, 1)
    """
    x, y, e = (np.asarray(a, dtype=float) for a in (n, capacity, error))
    there = np.isfinite(y) & np.isfinite(e) & (e > 0)
    x, y, e = x[there], y[there], e[there]
    if np.unique(x).size < 2:
        return None
    design = np.stack([np.ones_like(x), x], axis=1) / e[:, None]
    covariance = np.linalg.inv(design.T @ design)
    intercept, alpha = covariance @ design.T @ (y / e)
    residual = (y - intercept - alpha * x) / e
    return Slope(
        float(alpha),
        float(math.sqrt(covariance[1, 1])),
        float(intercept),
        float(math.sqrt(covariance[0, 0])),
        float(residual @ residual),
        int(x.size - 2),
    )
