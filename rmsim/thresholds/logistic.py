r"""Logistic curves through binomial data, many data sets at a time.

.. math:: P(x) = \frac{1}{1 + e^{-(x - x_{1/2})/w}}

is fitted by maximum likelihood with Firth's correction: the likelihood is multiplied by the root of
the determinant of its information. This removes the bias of first order, and gives a finite width
where plain likelihood has no maximum (all failures below some x, all successes above).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]

_TOLERANCE = 1e-9
_MOST_STEPS = 500
#: Longest Newton step, in units of the exponent: far from the maximum they overshoot.
_LONGEST = 1.0


@dataclass(frozen=True)
class Fits:
    """Fits of some data sets, arrays of one dimension.

    `slope` is 1/w and may be negative; `centre` is x_{1/2}, wherever it lies; `converged` says
    whether the equations are solved; `deviance` is -2 log of the likelihood ratio to the data.
    """

    centre: Array
    slope: Array
    deviance: Array
    converged: NDArray[np.bool_]


def fit(x: Array, successes: Array, trials: Array) -> Fits:
    """Fit one curve to each row of `successes`, (sets, points), at the same x and trials."""
    middle, scale = x.mean(), x.std()
    z = (x - middle) / scale
    k, m = np.atleast_2d(successes).astype(float), np.asarray(trials, dtype=float)
    a, b = np.zeros(len(k)), np.ones(len(k))
    converged = np.zeros(len(k), dtype=bool)
    for _ in range(_MOST_STEPS):
        da, db = _newton_step(z, k, m, a, b)
        length = np.maximum(np.abs(da), np.abs(db))
        converged = length < _TOLERANCE * (1 + np.abs(a) + np.abs(b))
        if converged.all():
            break
        shorter = np.minimum(1.0, _LONGEST * (1 + np.abs(b)) / np.maximum(length, 1e-300))
        a, b = a + shorter * da, b + shorter * db
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = middle - scale * a / b
    return Fits(centre, b / scale, _deviance(z, k, m, a, b), converged & (b != 0))


def curve(x: Array, centre: float, slope: float) -> Array:
    """Return P at `x`."""
    return np.asarray(special.expit((x - centre) * slope))


def _newton_step(z: Array, k: Array, m: Array, a: Array, b: Array) -> tuple[Array, Array]:
    p = special.expit(a[:, None] + b[:, None] * z)
    weight = m * p * (1 - p)
    s0, s1, s2 = weight.sum(1), weight @ z, weight @ (z * z)
    # Far out all weights underflow: a tiny floor keeps the step finite, and it is shortened.
    determinant = np.maximum(s0 * s2 - s1 * s1, 1e-280)
    leverage = weight * (s2[:, None] - 2 * s1[:, None] * z + s0[:, None] * z * z)
    residual = k - m * p + leverage / determinant[:, None] * (0.5 - p)
    u0, u1 = residual.sum(1), residual @ z
    return (s2 * u0 - s1 * u1) / determinant, (s0 * u1 - s1 * u0) / determinant


def _deviance(z: Array, k: Array, m: Array, a: Array, b: Array) -> Array:
    p = special.expit(a[:, None] + b[:, None] * z)
    terms = special.rel_entr(k, m * p) + special.rel_entr(m - k, m * (1 - p))
    return np.asarray(2 * terms.sum(1))
