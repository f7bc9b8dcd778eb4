r"""Logistic curves through binomial data, many data sets at a time.

.. math:: P(x) = \frac{1}{1 + e^{-(x - x_{1/2})/w}}

is fitted by maximum likelihood with Firth's correction: the likelihood is multiplied by the root of
the determinant of its information. This removes the bias of first order, and gives a finite width
where plain likelihood has no maximum (all failures below some x, all successes above).

Steps of Fisher's scoring overshoot where there are few trials, for the information leaves out the
curvature of the correction. So a step is halved as long as the corrected likelihood falls, or its
slope along the step turns round by more than half: near the maximum only the slope tells.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]

_TOLERANCE = 1e-9
_MOST_STEPS = 500
#: Longest step, in units of the exponent: far from the maximum they overshoot.
_LONGEST = 1.0
#: Relative rounding of the likelihood, by which it may seem to fall.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Fits:
    """Fits of some data sets, arrays of one dimension.

    `slope` is 1/w and may be negative; `centre` is x_{1/2}, wherever it lies (NaN or infinite for a
    slope of 0); `converged` says whether the equations are solved; `deviance` is -2 log of the
    likelihood ratio to the data.
    """

    centre: Array
    slope: Array
    deviance: Array
    converged: NDArray[np.bool_]


@dataclass(frozen=True)
class _Local:
    """At exponents a + b z: the corrected log-likelihood, its gradient, the step of scoring."""

    value: Array
    ua: Array
    ub: Array
    da: Array
    db: Array


def fit(x: Array, successes: Array, trials: Array) -> Fits:
    """Fit one curve to each row of `successes`, (sets, points), at the same x and trials."""
    middle, scale = x.mean(), x.std()
    z = (x - middle) / scale
    k, m = np.atleast_2d(successes).astype(float), np.asarray(trials, dtype=float)
    a, b, damping = np.zeros(len(k)), np.ones(len(k)), np.ones(len(k))
    here = _local(z, k, m, a, b)
    converged = np.zeros(len(k), dtype=bool)
    for _ in range(_MOST_STEPS):
        length = np.maximum(np.abs(here.da), np.abs(here.db))
        converged = length < _TOLERANCE * (1 + np.abs(a) + np.abs(b))
        if converged.all():
            break
        longest = _LONGEST * (1 + np.abs(b)) / np.maximum(length, 1e-300)
        share = np.where(converged, 0.0, np.minimum(damping, longest))
        new_a, new_b = a + share * here.da, b + share * here.db
        there = _local(z, k, m, new_a, new_b)
        before = here.ua * here.da + here.ub * here.db
        after = there.ua * here.da + there.ub * here.db
        rises = there.value >= here.value - _ROUNDING * (1 + np.abs(here.value))
        accepted = rises & (after >= -before / 2) & ~converged
        a, b = np.where(accepted, new_a, a), np.where(accepted, new_b, b)
        here = _Local(
            *(
                np.where(accepted, new, old)
                for new, old in zip(astuple(there), astuple(here), strict=True)
            )
        )
        damping = np.where(accepted, np.minimum(1.0, 2 * share), share / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = middle - scale * a / b
    return Fits(centre, b / scale, _deviance(z, k, m, a, b), converged)


def curve(x: Array, centre: float, slope: float) -> Array:
    """Return P at `x`."""
    return np.asarray(special.expit((x - centre) * slope))


def _local(z: Array, k: Array, m: Array, a: Array, b: Array) -> _Local:
    exponent = a[:, None] + b[:, None] * z
    p = special.expit(exponent)
    weight = m * p * special.expit(-exponent)
    # Where all weights underflow the likelihood is NaN, and such a step is not accepted.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        total = weight.sum(1)
        mean = weight @ z / total
        apart = z - mean[:, None]
        spread = (weight * apart**2).sum(1)
        leverage = weight * (1 / total[:, None] + apart**2 / spread[:, None])
        residual = k - m * p + leverage * (0.5 - p)
        logs = k * special.log_expit(exponent) + (m - k) * special.log_expit(-exponent)
        value = logs.sum(1) + (np.log(total) + np.log(spread)) / 2
        db = (residual * apart).sum(1) / spread
        da = residual.sum(1) / total - mean * db
    return _Local(value, residual.sum(1), residual @ z, da, db)


def _deviance(z: Array, k: Array, m: Array, a: Array, b: Array) -> Array:
    p = special.expit(a[:, None] + b[:, None] * z)
    terms = special.rel_entr(k, m * p) + special.rel_entr(m - k, m * (1 - p))
    return np.asarray(2 * terms.sum(1))
