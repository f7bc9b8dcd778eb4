r"""Errors of measured numbers: one definition of each, for theory, simulation and figures.

*Means* of m independent samples have the standard error :math:`s/\sqrt m`, with the deviation s of
m - 1 degrees of freedom. Where m is large, as for the images of a data set, the sample error has
the deviation of m degrees of freedom instead. The ratio R = <Z^2>/<Z>^2 is not a mean, and its
error is that of the jackknife: with R_k the ratio without sample k,

.. math:: \sigma_R^2 = \frac{m-1}{m} \sum_k (R_k - \bar R)^2 .

*Fractions* f of m samples have Wilson's interval, all P with
:math:`|f - P| \le z \sqrt{P (1 - P)/m}`. Its half width,

.. math:: \frac{z}{1 + z^2/m} \sqrt{\frac{f (1 - f)}{m} + \frac{z^2}{4 m^2}} ,

is not zero at f = 0 or 1, where a naive error vanishes. Clopper and Pearson's interval covers at
least what it says, and is longer.

*Quantiles* at level p: the number of values below is binomial, so the quantiles at
:math:`p \pm \sqrt{p(1-p)/m}` enclose it with one standard deviation.

*Linear fits* of measured values :math:`y_i \pm \sigma_i` by columns :math:`f_k` minimise

.. math:: \chi^2 = \sum_i \Big(\frac{y_i - \sum_k c_k f_{ki}}{\sigma_i}\Big)^2 ,
          \qquad \mathrm{cov}(c) = (A^T A)^{-1}, \quad A_{ik} = f_{ki}/\sigma_i .
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from rmtheory.base.errors import InvalidInputError

__all__ = [
    "LinearFit",
    "Measurement",
    "QuantileErrors",
    "Quantiles",
    "binomial_error",
    "central_half_width",
    "fraction",
    "interval",
    "mean",
    "mean_of_rows",
    "median_of_ranks",
    "naive_half_width",
    "quantile_error",
    "sample_error",
    "second_moment_ratio",
    "standard_error",
    "weighted_fit",
    "wilson_half_width",
]

Array = NDArray[np.float64]

#: Confidence of one standard deviation.
ONE_SIGMA = float(special.erf(np.sqrt(0.5)))

#: Intervals of a fraction.
Method = Literal["wilson", "exact"]

#: What the resolution of the values does to the error of their quantile: it is its least value, it
#: takes the place of an error of 0, or it is added in quadrature.
Floor = Literal["least", "instead of zero", "quadrature"]


@dataclass(frozen=True)
class Measurement:
    """A measured number with its standard error."""

    value: float
    error: float

    def z_score(self, theory: float) -> float | None:
        """Deviation from `theory` in standard errors; None where the error is zero."""
        return (self.value - theory) / self.error if self.error > 0 else None


def standard_error(values: ArrayLike, axis: int = 0) -> Array:
    """Return the standard error of the mean of independent samples along `axis`.

    Examples
    --------
    >>> print(standard_error([1, 3]))
    1.0
    """
    samples = np.asarray(values, dtype=float)
    return np.asarray(samples.std(axis=axis, ddof=1) / math.sqrt(samples.shape[axis]))


def sample_error(values: ArrayLike) -> float:
    r"""Return :math:`\sqrt{\sum_i (x_i - \bar x)^2}/m`, the error of a mean over many samples.

    It is zero for one sample, and :func:`standard_error` times :math:`\sqrt{1 - 1/m}` for more.

    Examples
    --------
    >>> sample_error([0, 0, 1, 1])
    0.25
    """
    samples = np.asarray(values)
    return float(samples.std()) / math.sqrt(samples.size)


def mean(values: ArrayLike) -> Measurement:
    """Mean over samples and its standard error.

    Examples
    --------
    >>> mean([1, 3])
    Measurement(value=2.0, error=1.0)
    """
    samples = _samples(values)
    return Measurement(float(samples.mean()), float(standard_error(samples)))


def mean_of_rows(values: ArrayLike) -> tuple[Array, Array]:
    """Mean and standard error of every column of an array (samples, ...), as a histogram has."""
    rows = np.asarray(values, dtype=float)
    if rows.ndim < 1 or rows.shape[0] < 2:
        raise InvalidInputError("samples", rows.shape[:1], "at least 2")
    return rows.mean(axis=0), standard_error(rows)


def second_moment_ratio(counts: ArrayLike) -> Measurement | None:
    """<Z^2>/<Z>^2 with its jackknife error; None below three samples or if all but one vanish.

    The jackknife of two samples is always 0.

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


def wilson_half_width(
    f: ArrayLike, m: ArrayLike, z: float = 1.0, variance: ArrayLike | None = None
) -> Array:
    """Return half the length of Wilson's interval at z standard deviations, for f of m samples.

    The `variance` of a sample is f(1 - f) unless given.

    Examples
    --------
    >>> print(wilson_half_width([0.75, 1], 4))
    [0.2 0.1]
    """
    share, size = np.asarray(f, dtype=float), np.asarray(m, dtype=float)
    spread = share * (1 - share) if variance is None else np.asarray(variance, dtype=float)
    root = np.sqrt(spread / size + (z / (2 * size)) ** 2)
    return np.asarray(z * root / (1 + z * z / size))


def naive_half_width(f: float, m: int) -> float:
    """Return sqrt(f(1 - f)/m), which is 0 at f = 0 and 1: for numbers published with it only."""
    return math.sqrt(max(f * (1 - f), 0) / m)


def interval(
    successes: ArrayLike,
    trials: ArrayLike,
    confidence: float = ONE_SIGMA,
    method: Method = "wilson",
) -> tuple[Array, Array]:
    """Return the ends of the interval of a probability, arrays of the common shape.

    Parameters
    ----------
    successes, trials : array_like of int
        Numbers k <= m, m >= 1.
    confidence : float
        Between 0 and 1; one standard deviation if not given.
    method : str
        ``wilson``, or ``exact`` for Clopper and Pearson.

    Examples
    --------
    >>> low, high = interval(0, 10, 0.95, "exact")
    >>> print(f"{low:.4f} {high:.4f}")
    0.0000 0.3085
    """
    if not 0 < confidence < 1:
        raise InvalidInputError("confidence", confidence, "strictly between 0 and 1")
    k, m = (np.asarray(a) for a in np.broadcast_arrays(successes, trials))
    if np.any(m < 1) or np.any(k < 0) or np.any(k > m):
        raise InvalidInputError("successes", "k and m", "counts with 0 <= k <= m and m >= 1")
    if method == "exact":
        from scipy import stats  # here, because it is slow to import

        # Quantiles of the beta distribution; the ends at k = 0 and k = m are 0 and 1.
        tail = (1 - confidence) / 2
        low = np.where(k > 0, stats.beta.ppf(tail, np.maximum(k, 1), m - k + 1), 0.0)
        high = np.where(k < m, stats.beta.isf(tail, k + 1, np.maximum(m - k, 1)), 1.0)
        return low, high
    z = float(special.ndtri((1 + confidence) / 2))
    centre = (k + z * z / 2) / (m + z * z)
    half = wilson_half_width(k / m, m, z)
    # Rounding must not push the ends beyond what was measured at k = 0 and k = m.
    return np.where(k > 0, centre - half, 0.0), np.where(k < m, centre + half, 1.0)


def binomial_error(fraction: float, samples: int) -> float:
    """Return the standard error of a `fraction` of `samples`; it does not vanish at 0 and 1.

    Examples
    --------
    >>> round(binomial_error(0.9, 10000), 4), round(binomial_error(1.0, 100), 4)
    (0.003, 0.005)
    """
    return float(wilson_half_width(fraction, samples))


def fraction(successes: ArrayLike, trials: ArrayLike) -> tuple[Array, Array]:
    """Return k/m and half the length of Wilson's interval of one standard deviation.

    Examples
    --------
    >>> value, error = fraction(3, 4)
    >>> print(f"{value:.2f} {error:.2f}")
    0.75 0.20
    """
    low, high = interval(successes, trials)
    return np.asarray(np.asarray(successes) / np.asarray(trials)), (high - low) / 2


def quantile_error(
    values: ArrayLike,
    level: float,
    axis: int = -1,
    *,
    resolution: ArrayLike = 0.0,
    floor: Floor = "least",
    unbounded: Literal["ends", "nan"] = "ends",
) -> Array:
    r"""Return the error of the quantile at `level` of independent `values`.

    Half the distance of the quantiles at :math:`p \pm \sqrt{p(1-p)/m}`, by linear interpolation.

    Parameters
    ----------
    values : array_like
        Samples along `axis`.
    level : float
        p, from 0 to 1.
    axis : int
        Axis of the samples.
    resolution : array_like
        Half a step of the values, which some that agree do not resolve.
    floor : str
        How the `resolution` counts: ``least`` (the error is not below it), ``instead of zero`` or
        ``quadrature``.
    unbounded : str
        If p -+ the spread leaves the range from 0 to 1, no value of so few bounds the quantile:
        take the least or the largest value (``ends``), or no error (``nan``).

    Examples
    --------
    >>> print(f"{quantile_error(np.arange(10001), 0.5):.0f}")  # sqrt(10001)/2
    50
    >>> print(quantile_error(np.ones(10), 0.05, unbounded="nan"))
    nan
    """
    samples = np.asarray(values, dtype=float)
    spread = math.sqrt(level * (1 - level) / samples.shape[axis])
    ends = np.array([level - spread, level + spread])
    if unbounded == "nan" and (ends[0] < 0 or ends[1] > 1):
        return np.full(np.delete(samples.shape, axis), np.nan)
    low, high = np.quantile(samples, np.clip(ends, 0, 1), axis=axis)
    half, step = np.asarray(high - low) / 2, np.asarray(resolution, dtype=float)
    if floor == "least":
        return np.asarray(np.maximum(half, step))
    if floor == "quadrature":
        return np.asarray(np.hypot(half, step))
    return np.where(half == 0, step, half)


#: Levels of the quantiles that are stored.
_QUANTILES = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}


@dataclass(frozen=True)
class Quantiles:
    """Median, quartiles and 5-95 % range over the samples."""

    median: float
    q25: float
    q75: float
    q05: float
    q95: float

    @classmethod
    def of(cls, values: ArrayLike) -> Quantiles:
        """Return the quantiles of `values`.

        Examples
        --------
        >>> Quantiles.of(np.arange(101.0)).q25
        25.0
        """
        samples = np.asarray(values, dtype=float).ravel()
        return cls(**{name: float(np.quantile(samples, p)) for name, p in _QUANTILES.items()})


@dataclass(frozen=True)
class QuantileErrors:
    """Errors of :class:`Quantiles`; None where there are too few samples."""

    median: float | None
    q25: float | None
    q75: float | None
    q05: float | None
    q95: float | None

    @classmethod
    def of(cls, values: ArrayLike, resolution: float = 0.0) -> QuantileErrors:
        r"""Return the error of each quantile of independent `values`.

        That of :func:`quantile_error`, with the `resolution`, half a step
        of the values, in quadrature. Where no value of so few bounds the quantile, its error is not
        known.

        Examples
        --------
        >>> round(QuantileErrors.of(np.arange(10001.0)).median)  # sqrt(10001)/2
        50
        >>> QuantileErrors.of(np.ones(10), resolution=0.5)
        QuantileErrors(median=0.5, q25=0.5, q75=0.5, q05=None, q95=None)
        """
        errors: dict[str, float | None] = {}
        samples = np.asarray(values).ravel()
        for name, level in _QUANTILES.items():
            error = float(
                quantile_error(
                    samples, level, resolution=resolution, floor="quadrature", unbounded="nan"
                )
            )
            errors[name] = None if math.isnan(error) else error
        return cls(**errors)


def median_of_ranks(
    values: ArrayLike, resolution: float = 0.0, independent: int | None = None
) -> tuple[float, float | None] | None:
    r"""Return the median and half the interval between whole ranks; None if there is no value.

    The rank of the true median is binomial, so the interval runs over the ranks
    :math:`m/2 \mp \sqrt m/2`, without interpolation between values. If only k of the m values are
    `independent`, starts in k networks, it is :math:`m/2 \mp m/(2\sqrt k)`: at most too long.

    Parameters
    ----------
    values : array_like
        Samples.
    resolution : float
        Half a step of the values: the error is not below it.
    independent : int, optional
        Independent samples among them; all by default. A single one has no error.

    Examples
    --------
    >>> median_of_ranks([5, 1, 3, 2, 4])
    (3.0, 1.0)
    >>> median_of_ranks([3, 3], 0.5)
    (3.0, 0.5)
    """
    ordered = np.sort(np.asarray(values, dtype=float), axis=None)
    m = ordered.size
    if m == 0:
        return None
    k = m if independent is None else independent
    low = max(0, math.floor((m - m / math.sqrt(k)) / 2))
    high = min(m - 1, math.ceil((m + m / math.sqrt(k)) / 2) - 1)
    middle = float(ordered[(m - 1) // 2] + ordered[m // 2]) / 2
    if k == 1:
        return middle, None
    return middle, max(float(ordered[high] - ordered[low]) / 2, resolution)


def central_half_width(values: ArrayLike) -> float:
    """Return half the central interval of one standard deviation: outliers do not stretch it.

    For values drawn anew by a bootstrap.

    Examples
    --------
    >>> print(f"{central_half_width(np.arange(1001)):.1f}")
    341.3
    """
    low, high = np.quantile(np.asarray(values), (0.15865525, 0.84134475))
    return float(high - low) / 2


@dataclass(frozen=True, eq=False)
class LinearFit:
    """Coefficients of a weighted linear fit, with their covariance.

    Parameters
    ----------
    coefficients : array, (k,)
        c, in the order of the columns.
    covariance : array, (k, k)
        Of the coefficients, if the errors of the values are right.
    chi2 : float
        Sum of the squared deviations in units of the errors.
    dof : int
        Values minus coefficients.
    """

    coefficients: Array
    covariance: Array
    chi2: float
    dof: int

    @property
    def errors(self) -> Array:
        """Standard errors of the coefficients, if the errors of the values are right."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    @property
    def scale(self) -> float:
        """Factor max(1, chi^2/dof)^(1/2) of all errors, where values scatter more than stated."""
        return math.sqrt(max(1.0, self.chi2 / self.dof)) if self.dof > 0 else 1.0

    @property
    def p_value(self) -> float:
        """Probability of a larger chi^2, were the form and the errors right; 1 without freedom."""
        return float(special.chdtrc(self.dof, self.chi2)) if self.dof > 0 else 1.0

    def at(self, row: ArrayLike) -> Measurement:
        """Return the fitted value for one value of each column, and its error.

        Examples
        --------
        >>> line = weighted_fit([[1, 1], [0, 2]], [1.0, 3.0], 0.5)
        >>> print(f"{line.at([1, 1]).value:.3f} {line.at([1, 1]).error:.3f}")
        2.000 0.354
        """
        f = np.asarray(row, dtype=float)
        variance = float(f @ self.covariance @ f)
        return Measurement(float(f @ self.coefficients), math.sqrt(max(variance, 0.0)))


def weighted_fit(columns: Iterable[ArrayLike], values: ArrayLike, errors: ArrayLike) -> LinearFit:
    """Fit values y = sum_k c_k f_k by least squares, each weighted by its error.

    Parameters
    ----------
    columns : iterable of array_like
        f_k at every value; a number stands for a constant column.
    values, errors : array_like
        y and their standard errors, positive; a number is the error of all.

    Raises
    ------
    InvalidInputError
        If the columns do not determine the coefficients, or a number is not finite.

    Examples
    --------
    >>> n = np.array([1.0, 2.0, 3.0])
    >>> line = weighted_fit([1, n], [2.0, 4.0, 6.0], 0.1)
    >>> print(line.coefficients.round(9) + 0.0, f"{line.errors[1]:.4f}", line.dof)
    [0. 2.] 0.0707 1
    """
    y = np.asarray(values, dtype=float)
    if y.ndim != 1 or not np.all(np.isfinite(y)):
        raise InvalidInputError("values", y.tolist(), "a list of finite numbers")
    sigma = np.broadcast_to(np.asarray(errors, dtype=float), y.shape)
    if not np.all(np.isfinite(sigma) & (sigma > 0)):
        raise InvalidInputError("errors", sigma.tolist(), "positive finite numbers")
    f = [np.broadcast_to(np.asarray(column, dtype=float), y.shape) for column in columns]
    design = np.stack(f, axis=1) / sigma[:, None]
    if not np.all(np.isfinite(design)):
        raise InvalidInputError("columns", "an undefined number", "finite")
    # Columns of equal length: whether they are independent does not depend on their units.
    length = np.sqrt(np.sum(design**2, axis=0))
    if y.size < len(f) or np.any(length == 0) or np.linalg.matrix_rank(design / length) < len(f):
        allowed = f"{len(f)} that are linearly independent at {y.size} values"
        raise InvalidInputError("columns", len(f), allowed)
    q, r = np.linalg.qr(design / length)
    inverse = np.linalg.inv(r) / length[:, None]
    coefficients = inverse @ (q.T @ (y / sigma))
    residual = y / sigma - design @ coefficients
    covariance = inverse @ inverse.T
    return LinearFit(coefficients, covariance, float(residual @ residual), y.size - len(f))
