"""Gaussian functions in float64, vectorised: P, log P, the density n and the ratio r = n/P."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Array = NDArray[np.float64]

_SQRT_2 = np.sqrt(2.0)
_LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)


def P(x: ArrayLike) -> Array:
    """Normal cumulative distribution, the paper's H(-x)."""
    return np.asarray(special.ndtr(np.asarray(x, dtype=float)))


def log_P(x: ArrayLike) -> Array:
    """Logarithm of P, without underflow in the left tail."""
    return np.asarray(special.log_ndtr(np.asarray(x, dtype=float)))


def n(x: ArrayLike) -> Array:
    """Normal density."""
    return np.asarray(np.exp(log_n(x)))


def log_n(x: ArrayLike) -> Array:
    """Logarithm of the normal density."""
    x = np.asarray(x, dtype=float)
    return np.asarray(-0.5 * x * x - _LOG_SQRT_2PI)


def r(x: ArrayLike) -> Array:
    """Return n(x)/P(x): about -x far to the left, 0 far to the right."""
    # P = exp(-x^2/2) erfcx(-x/sqrt 2)/2, so the exponentials cancel; erfcx overflows to inf
    # beyond x = 37, where r is 0 in double precision.
    return np.asarray(np.sqrt(2 / np.pi) / special.erfcx(-np.asarray(x, dtype=float) / _SQRT_2))
