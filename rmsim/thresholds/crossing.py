"""The coupling at which half of the samples succeed, with its error, or why there is none.

A logistic curve (:mod:`rmsim.thresholds.logistic`) is fitted to the counts; its middle is the
answer only if the counts themselves, made monotone, pass 1/2 inside the grid. The error is that of
a bootstrap: counts are drawn anew from the fitted curve and fitted again. A curve that fits poorly
(a deviance that few of its own resamples have) has an error larger by the root of the ratio. Where
it does not fit at all, as where some samples never succeed, the monotone counts are interpolated
instead, and drawn anew themselves. A curve that is not symmetric about its middle moves the fit
away from the interpolation: by what the two differ more than they do in the resamples, the error
grows in quadrature.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, stats

from rmsim.thresholds import logistic
from rmtheory import checks
from rmtheory.errors import InvalidInputError

Array = NDArray[np.float64]

#: Largest share of resamples without a crossing inside the grid.
_MOST_OUTSIDE = 0.05

#: Chances of a larger deviance below which a curve fits poorly, and not at all.
_POOR_FIT, _NO_FIT = 0.1, 0.005


class CrossingStatus(StrEnum):
    """Whether half of the samples succeed somewhere in the grid; the text says what to do."""

    FOUND = "found"
    COARSE = "found, but the grid is coarser than the transition: add values between"
    ABOVE = "none: less than half succeed everywhere, add larger values"
    BELOW = "none: more than half succeed everywhere, add smaller values"
    FALLING = "none: success falls through one half"
    TOUCHING = "none: success is one half somewhere but does not pass it, add values or samples"
    NOT_MONOTONE = "none: success is on both sides of one half, in no order, add values or samples"
    UNRESOLVED = "none: too uncertain, add samples or a wider grid"


@dataclass(frozen=True)
class Crossing:
    """The 50 % point.

    Parameters
    ----------
    status : CrossingStatus
        Whether there is one.
    value, error : float or None
        Where, and its standard error; None if there is none.
    width, width_error : float or None
        Width w of the logistic curve: from 27 % to 73 % it takes 2 w.
    p_value : float or None
        Share of resamples that the curve fits worse than the data.
    method : str
        ``logistic`` or ``interpolation``, which has no width; empty if there is no 50 % point.
    """

    status: CrossingStatus
    value: float | None = None
    error: float | None = None
    width: float | None = None
    width_error: float | None = None
    p_value: float | None = None
    method: Literal["logistic", "interpolation", ""] = ""


def crossing(
    x: ArrayLike,
    successes: ArrayLike,
    trials: ArrayLike,
    *,
    seed: int | tuple[int, ...] = 0,
    resamples: int = 1000,
) -> Crossing:
    """Return where the probability of success passes 1/2 as `x` grows.

    Parameters
    ----------
    x : array_like
        Couplings, strictly increasing.
    successes, trials : array_like of int
        Counts k <= m at each; the samples are independent.
    seed : int or tuple of int
        Of the bootstrap.
    resamples : int
        Bootstrap resamples, at least 100.

    Examples
    --------
    >>> found = crossing([0.4, 0.5, 0.6, 0.7, 0.8], [0, 6, 21, 35, 40], [40] * 5)
    >>> print(found.status, f"{found.value:.3f} {found.error:.3f}")
    found 0.595 0.011
    >>> crossing([0.4, 0.5], [0, 6], [40, 40]).status.name
    'ABOVE'
    """
    points, k, m = _checked(x, successes, trials)
    count = checks.integer("resamples", resamples, 100)
    rising = _monotone(k, m, increasing=True)
    if not rising[0] < 0.5 < rising[-1]:
        return Crossing(_reason(k, m))
    if not _agrees(k, m, rising):
        return Crossing(CrossingStatus.NOT_MONOTONE)
    best = logistic.fit(points, k, m)
    if not best.converged[0]:
        return Crossing(CrossingStatus.UNRESOLVED)
    centre, slope = float(best.centre[0]), float(best.slope[0])
    if slope <= 0 or not points[0] <= centre <= points[-1]:
        return Crossing(CrossingStatus.UNRESOLVED)
    generator = np.random.default_rng(np.random.SeedSequence(seed))
    drawn = _drawn(generator, logistic.curve(points, centre, slope), m, count)
    again = logistic.fit(points, drawn, m)
    if not again.converged.all():
        # Of these it is not known whether they cross, nor how well the curve fits them.
        return Crossing(CrossingStatus.UNRESOLVED)
    inside = (again.slope > 0) & (again.centre >= points[0]) & (again.centre <= points[-1])
    if inside.mean() < 1 - _MOST_OUTSIDE:
        return Crossing(CrossingStatus.UNRESOLVED)
    centres, widths = again.centre[inside], 1 / again.slope[inside]
    p_value = float(np.mean(again.deviance >= best.deviance[0]))
    if p_value < _NO_FIT:
        return _interpolated(points, rising, m, _drawn(generator, k / m, m, count), p_value)
    misfit = 1.0
    if p_value < _POOR_FIT:
        misfit = float(np.sqrt(best.deviance[0] / again.deviance.mean()))
    apart = _passage(points, rising)[0] - centre
    excess = _excess(apart, _differences(points, drawn[inside], m, centres))
    error = float(np.hypot(misfit * _half_width(centres), excess))
    status = CrossingStatus.FOUND
    if np.count_nonzero((k > 0) & (k < m)) < 2:
        # Nothing tells where between two values the curve rises: anywhere there.
        status = CrossingStatus.COARSE
        error = float(np.hypot(error, _step_around(points, centre) / np.sqrt(12)))
    return Crossing(
        status,
        centre,
        error,
        1 / slope,
        misfit * _half_width(widths),
        p_value,
        "logistic",
    )


def _monotone(k: Array, m: Array, *, increasing: bool) -> Array:
    """The monotone fractions nearest to k/m."""
    return np.asarray(optimize.isotonic_regression(k / m, weights=m, increasing=increasing).x)


def _agrees(k: Array, m: Array, monotone: Array) -> bool:
    """Whether the counts differ from monotone fractions by no more than chance.

    Pearson's sum is at most about a chi^2 with one degree of freedom fewer than points, which it
    is if all are alike; where success changes there is less to pool.
    """
    variance = m * monotone * (1 - monotone)
    there = variance > 0  # fractions of 0 and 1 are those of the counts
    total = float(np.sum((k - m * monotone)[there] ** 2 / variance[there]))
    return bool(stats.chi2.sf(total, len(k) - 1) >= _NO_FIT)


def _reason(k: Array, m: Array) -> CrossingStatus:
    """Why success does not rise through one half."""
    if np.all(2 * k < m):
        return CrossingStatus.ABOVE
    if np.all(2 * k > m):
        return CrossingStatus.BELOW
    if np.all(2 * k <= m) or np.all(2 * k >= m):
        return CrossingStatus.TOUCHING
    falling = _monotone(k, m, increasing=False)
    if falling[0] > 0.5 > falling[-1] and _agrees(k, m, falling):
        return CrossingStatus.FALLING
    return CrossingStatus.NOT_MONOTONE


def _differences(x: Array, drawn: Array, m: Array, centres: Array) -> Array:
    """Interpolation less logistic centre, of the resamples whose monotone counts pass 1/2."""
    return np.array(
        [
            _passage(x, monotone)[0] - centre
            for row, centre in zip(drawn, centres, strict=True)
            if (monotone := _monotone(row, m, increasing=True))[0] < 0.5 < monotone[-1]
        ]
    )


def _excess(apart: float, usual: Array) -> float:
    """By how much `apart` is beyond the `usual` differences, which the curve itself would give."""
    return float(np.sqrt(max(0.0, (apart - usual.mean()) ** 2 - usual.var())))


def _drawn(generator: np.random.Generator, p: Array, m: Array, count: int) -> Array:
    """Counts as another measurement might have given them, (count, points)."""
    return generator.binomial(m.astype(np.int64), p, (count, len(m))).astype(float)


def _interpolated(x: Array, rising: Array, m: Array, drawn: Array, p_value: float) -> Crossing:
    """Return where straight lines between the monotone fractions `rising` pass 1/2."""
    value, step, jump = _passage(x, rising)
    again = [
        _passage(x, monotone)[0]
        for row in drawn
        if (monotone := _monotone(row, m, increasing=True))[0] < 0.5 < monotone[-1]
    ]
    if len(again) < (1 - _MOST_OUTSIDE) * len(drawn):
        return Crossing(CrossingStatus.UNRESOLVED)
    # How the curve runs between two values is not known: it may jump anywhere there.
    error = float(np.hypot(_half_width(np.array(again)), step * jump / np.sqrt(12)))
    return Crossing(CrossingStatus.FOUND, value, error, p_value=p_value, method="interpolation")


def _passage(x: Array, rising: Array) -> tuple[float, float, float]:
    """Return where 1/2 is passed, and by which step of x and of the fraction."""
    low = int(np.flatnonzero(rising < 0.5)[-1])
    high = int(np.flatnonzero(rising > 0.5)[0])
    step, jump = float(x[high] - x[low]), float(rising[high] - rising[low])
    if high > low + 1:  # exactly one half in between
        return float(x[low + 1] + x[high - 1]) / 2, step, jump
    return float(x[low] + step * (0.5 - rising[low]) / jump), step, jump


def _half_width(values: Array) -> float:
    """Half the central interval of one standard deviation: outliers do not stretch it."""
    low, high = np.quantile(values, (0.15865525, 0.84134475))
    return float(high - low) / 2


def _step_around(points: Array, centre: float) -> float:
    """The longest step of the grid that `centre` lies in or at the end of."""
    steps = np.diff(points)
    near = (points[:-1] - 0.05 * steps <= centre) & (centre <= points[1:] + 0.05 * steps)
    return float(steps[near].max())


def _checked(x: ArrayLike, successes: ArrayLike, trials: ArrayLike) -> tuple[Array, Array, Array]:
    points, k, m = (np.asarray(a, dtype=float) for a in (x, successes, trials))
    if points.ndim != 1 or not points.shape == k.shape == m.shape or points.size < 1:
        raise InvalidInputError("x", points.shape, "as many couplings as successes and trials")
    if not np.all(np.isfinite(points)) or np.any(np.diff(points) <= 0):
        raise InvalidInputError("x", points.tolist(), "finite and strictly increasing")
    if np.any(m < 1) or np.any(k < 0) or np.any(k > m) or np.any((k % 1 != 0) | (m % 1 != 0)):
        raise InvalidInputError("successes", k.tolist(), f"counts up to {m.tolist()}, at least 1")
    return points, k, m
