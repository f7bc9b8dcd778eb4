"""Interpolation through Chebyshev points of the first kind on [-1, 1]."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev

from rmtheory.gaussian import Array


def points(n: int) -> Array:
    """Return the zeros of T_n, descending, symmetric about 0."""
    return np.asarray(np.cos(np.pi * (np.arange(n) + 0.5) / n))


@lru_cache(maxsize=64)
def _coefficients(n: int) -> Array:
    """Matrix from the Chebyshev polynomials to the cardinal functions of the points."""
    matrix = 2 / n * chebyshev.chebvander(points(n), n - 1).T
    matrix[0] /= 2
    return np.asarray(matrix)


def cardinal(x: Array, n: int) -> Array:
    """Values at x of the n cardinal functions, along a new last axis."""
    return np.asarray(chebyshev.chebvander(x, n - 1) @ _coefficients(n))


@lru_cache(maxsize=64)
def differentiation(n: int) -> Array:
    """Matrix from the values at the points to those of the derivative there."""
    if n == 1:
        return np.zeros((1, 1))
    slopes = chebyshev.chebder(_coefficients(n), axis=0)
    return np.asarray(chebyshev.chebvander(points(n), n - 2) @ slopes)
