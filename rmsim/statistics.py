r"""Moments of a count Z over independent disorder samples, with their errors.

The mean has its standard error; the ratio R = <Z^2>/<Z>^2 is no mean, and its error is that of
the jackknife: with R_k the ratio without sample k,

.. math:: \sigma_R^2 = \frac{S-1}{S} \sum_k (R_k - \bar R)^2 .
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmtheory.errors import InvalidInputError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Measurement:
    """A measured number with its standard error."""

    value: float
    error: float

    def z_score(self, theory: float) -> float | None:
        """Deviation from `theory` in standard errors; None where the error is zero."""
        return (self.value - theory) / self.error if self.error > 0 else None


def mean(values: ArrayLike) -> Measurement:
    """Mean over samples and its standard error.

    Examples
    --------
    >>> mean([1, 3])
    Measurement(value=2.0, error=1.0)
    """
    samples = _samples(values)
    return Measurement(float(samples.mean()), float(samples.std(ddof=1) / math.sqrt(samples.size)))


def mean_of_rows(values: ArrayLike) -> tuple[Array, Array]:
    """Mean and standard error of every column of an array (samples, ...), as a histogram has."""
    rows = np.asarray(values, dtype=float)
    if rows.ndim < 1 or rows.shape[0] < 2:
        raise InvalidInputError("samples", rows.shape[:1], "at least 2")
    return rows.mean(axis=0), rows.std(axis=0, ddof=1) / math.sqrt(rows.shape[0])


def second_moment_ratio(counts: ArrayLike) -> Measurement | None:
    """<Z^2>/<Z>^2 with its jackknife error; None below three samples or if all but one vanish.

    The jackknife of two samples is 0 whatever they are.

    Examples
    --------
    >>> second_moment_ratio([2, 2, 2])
    Measurement(value=1.0, error=0.0)
    """
    samples = _samples(counts)
    size = samples.size
    first, second = samples.sum(), (samples * samples).sum()
    if size < 3 or np.any(first - samples <= 0):
        return None
    ratio = size * second / first**2
    without = (size - 1) * (second - samples * samples) / (first - samples) ** 2
    variance = (size - 1) * np.mean((without - without.mean()) ** 2)
    return Measurement(float(ratio), float(math.sqrt(variance)))


def _samples(values: ArrayLike) -> Array:
    samples = np.asarray(values, dtype=float)
    if samples.ndim != 1 or samples.size < 2:
        raise InvalidInputError("samples", samples.size, "at least 2, for an error bar")
    if not np.all(np.isfinite(samples)):
        raise InvalidInputError("samples", "an undefined number", "finite")
    return samples
