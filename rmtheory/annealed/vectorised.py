r"""The annealed entropy in float64 for whole arrays of couplings.

Everything is kept as a logarithm, because at J_D = -40 the weights P(v) span e^{-3200} to 1, and
no common scale keeps them all. The closed form is that of :func:`routes.eigenvalues`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError
from rmtheory.base.gaussian import Array, log_P

#: Units in the last place by which a result may be off; the tests hold it against mpmath.
_ULPS = 12

_CHUNK = 65_536

#: Beyond this the square of a coupling overflows.
_LARGEST = 1e150


def entropy_array(
    layers: int | float,
    jd: ArrayLike,
    lam_left: ArrayLike = 0.0,
    lam_right: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Annealed entropy for arrays of couplings, broadcast against each other.

    Parameters
    ----------
    layers : int or math.inf
        Number of layers, one for all.
    jd, lam_left, lam_right : array_like
        Couplings; `lam_right` defaults to `lam_left`.

    Returns
    -------
    value, error : ndarray
        S_a and a bound on its absolute error: 12 units of double rounding at max(|S_a|, 1/2), and
        the rounding of the sums of couplings; held against mpmath in the tests.

    Examples
    --------
    >>> import rmtheory as rt
    >>> value, error = rt.entropy_array(2, jd=0.0, lam_left=[0.0, 0.5])
    >>> [f"{v:.12f}" for v in value]
    ['0.000000000000', '0.068414255211']
    """
    count = checks.layers(layers)
    right = lam_left if lam_right is None else lam_right
    given = (("jd", jd), ("lam_left", lam_left), ("lam_right", right))
    arrays = [_finite(name, values) for name, values in given]
    J, left, right_ = (np.asarray(x) for x in np.broadcast_arrays(*arrays))
    value = np.empty(J.shape)
    flat_value, flat = value.reshape(-1), [x.reshape(-1) for x in (J, left, right_)]
    # Chunks stay in the cache: three times faster than whole arrays at a million points.
    for start in range(0, flat_value.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        flat_value[part] = _entropy(count, *(x[part] for x in flat))
    eps = np.finfo(float).eps
    error = _ULPS * eps * np.maximum(np.abs(value), 0.5)
    # The arguments J + lambda_L + lambda_R are rounded too; dS_a/dv is at most about r(v) ~ |v|,
    # and S_a ~ -v^2/2 where that is large.
    size = np.abs(J) + np.abs(left) + np.abs(right_)
    error += 2 * eps * size * (1 + np.sqrt(2 * np.abs(value)))
    return value, error


def _entropy(layers: int | float, jd: Array, lam_left: Array, lam_right: Array) -> Array:
    if layers == 1:
        return np.asarray(math.log(2.0) + log_P(jd))
    # log P at the corners of the gauge form; up/down is the sign of tau.
    if layers == 2:
        return np.asarray(0.5 * (math.log(2.0) + _log_direct(jd, lam_left, lam_right)))
    sum_, difference = lam_left + lam_right, lam_left - lam_right
    A, D = log_P(jd + sum_), log_P(jd - sum_)
    B, C = log_P(jd + difference), log_P(jd - difference)
    log_plus, log_radius, upper = _log_spectrum(A, B, C, D)
    if math.isinf(layers):
        return log_plus
    n = int(layers) - 2
    lower = B + C - upper
    first = A >= D
    above_A, above_D = np.where(first, upper, lower), np.where(first, lower, upper)

    a = log_P(jd + lam_right), log_P(jd - lam_right)
    b = log_P(jd + lam_left), log_P(jd - lam_left)
    direct = np.logaddexp(a[0] + b[0], a[1] + b[1])
    inner = np.logaddexp(
        np.logaddexp(a[0] + above_A + b[0], a[0] + B + b[1]),
        np.logaddexp(a[1] + C + b[0], a[1] + above_D + b[1]),
    )
    # In units of mu_+: gap = 1 - mu_-/mu_+ in (0, 1.382], ratio = mu_-/mu_+.
    log_gap = np.minimum(math.log(2.0) + log_radius - log_plus, math.log(1.5))
    gap = np.exp(log_gap)
    ratio = 1.0 - gap
    # log of p_n/mu_+^(n-1) = (1 - ratio^n)/gap: by expm1 where the eigenvalues are close, and
    # its limit n(1 - (n-1) gap/2) where they coincide to double precision.
    merged, close = n * gap < 1e-9, ratio > 0.5
    safe = np.where(merged | ~close, 0.5, gap)
    numerator = np.where(close, -np.expm1(n * np.log1p(-safe)), 1.0 - ratio**n)
    log_p = np.where(
        merged,
        math.log(n) - 0.5 * (n - 1) * gap,
        np.log(np.where(merged, 1.0, numerator)) - log_gap,
    )
    # z/2 = mu_+^(n-1) [p inner + ratio^n mu_+ direct]
    main = log_p + inner
    rest = ratio**n * np.exp(np.minimum(log_plus + direct - main, 700.0))
    total = main + np.log1p(rest)
    small_main = log_plus + direct - main > 700.0
    if np.any(small_main):
        tail = n * np.log(np.where(small_main, ratio, 1.0)) + log_plus + direct
        total = np.where(small_main, np.logaddexp(main, tail), total)
    return np.asarray((math.log(2.0) + (n - 1) * log_plus + total) / layers)


def _log_direct(jd: Array, lam_left: Array, lam_right: Array) -> Array:
    """Return log(a.b), the weight of two layers facing each other."""
    return np.asarray(
        np.logaddexp(
            log_P(jd + lam_right) + log_P(jd + lam_left),
            log_P(jd - lam_right) + log_P(jd - lam_left),
        )
    )


def _log_spectrum(A: Array, B: Array, C: Array, D: Array) -> tuple[Array, Array, Array]:
    """Logs of mu_+, of R, and of max(A, D) - mu_-, from the logs of A, B, C, D."""
    high, low = np.maximum(A, D), np.minimum(A, D)
    log_difference = np.full_like(high, -np.inf)  # log(1 - e^(low - high)), log 0 where equal
    np.log(-np.expm1(low - high), where=low < high, out=log_difference)
    half_difference = high + log_difference - math.log(2.0)
    half_sum = np.logaddexp(high, low) - math.log(2.0)
    log_radius = 0.5 * np.logaddexp(2 * half_difference, B + C)
    return (
        np.logaddexp(half_sum, log_radius),
        log_radius,
        np.logaddexp(log_radius, half_difference),
    )


def _finite(argument: str, values: ArrayLike) -> Array:
    array = np.asarray(values, dtype=float)
    fine = np.abs(array) <= _LARGEST  # false for nan
    if not np.all(fine):
        bad = float(array[~fine].flat[0])
        raise InvalidInputError(argument, bad, f"finite and at most {_LARGEST:g} everywhere")
    return array
