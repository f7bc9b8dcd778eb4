r"""Tilted averages of the core module (L = 1), in float64.

With a_± = (J_D ± x)/sigma, D = (log P(a_+) - log P(a_-))/2 and S = (log P(a_+) + log P(a_-))/2,

.. math:: \log\zeta = S(x) + \log 2\cosh(h + D(x)), \qquad m = \tanh(h + D(x)),

so that the special functions are needed only on the nodes in x. Seen from the peaks of the tilt,
|t| = y sqrt(qhat) + e, with h D > 0 or |h| > |D|,

.. math:: \log\zeta - y\hat q = S + \mathrm{sgn}(t)\,D + \log(1 + e^{-2|h + D|}) + \sqrt{\hat q}\,e

and the Gaussian exp(-t^2/2) leaves exp(-e^2/2) once exp(y^2 qhat/2) is taken out.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rmtheory.gaussian import Array, log_P, r
from rmtheory.local_entropy.moments import Moments, Tangent
from rmtheory.local_entropy.nodes import STEPS, check_size, field_nodes, field_step, tilt_nodes


def core_moments(
    jd: float, d: float, y: float, qhat: Array, level: int, tangent: bool = False
) -> Moments:
    """Averages of the core module at (d, y, qhat) by the trapezoid rule of the given level."""
    q1, sigma, qh = 1 - 2 * d, math.sqrt(2 * d), float(qhat[0])
    fields = field_nodes(q1, (jd,), field_step(level, y))
    tilts = tilt_nodes(qh, y, STEPS[level])
    check_size(fields.at.size * tilts.at.size, 3_000_000)
    # The flip (t, z) -> (-t, -z) leaves zeta as it is: keep x >= 0 and count x > 0 twice.
    half = fields.at.size // 2
    x, log_weight = fields.at[half:], fields.log_weight[half:] + math.log(2.0)
    log_weight[0] -= math.log(2.0)

    plus, minus = (jd + x) / sigma, (jd - x) / sigma
    log_plus, log_minus = log_P(plus), log_P(minus)
    half_sum, half_difference = 0.5 * (log_plus + log_minus), 0.5 * (log_plus - log_minus)
    h = (math.sqrt(qh) * tilts.at)[:, None]
    u = h + half_difference
    decay = np.exp(-2 * np.abs(u))
    m = np.copysign((1 - decay) / (1 + decay), u)
    rest = 4 * decay / (1 + decay) ** 2
    # |u| - |h|, without subtracting the one from the other.
    side = np.copysign(1.0, tilts.at)[:, None] * half_difference
    side = np.where(u * h >= 0, side, -side - 2 * np.abs(h))
    near = half_sum + side + np.log1p(decay)

    exponent = y * near + (tilts.log_peak[:, None] + log_weight)
    largest = float(exponent.max())
    weight = np.exp(exponent - largest)
    total = float(weight.sum())
    weight /= total

    def mean(values: Array) -> float:
        return float((weight * values).sum())

    log_zeta = near + (math.sqrt(qh) * tilts.excess)[:, None]
    mean_log, mean_rest = mean(log_zeta), mean(rest)
    force = (0.5 * (1 + m) * r(plus) - 0.5 * (1 - m) * r(minus)) / sigma
    return Moments(
        d=d,
        y=y,
        qhat=np.array([qh]),
        layers=1,
        log_norm=math.log(total) + largest,
        mean_log=mean_log,
        rest=np.array([mean_rest]),
        force=np.array([mean(force * force)]),
        size=weight.size,
        tangent=_tangent(mean, y, log_zeta, rest, mean_log, mean_rest) if tangent else None,
    )


def _tangent(
    mean: Callable[[Array], float],
    y: float,
    log_zeta: Array,
    rest: Array,
    mean_log: float,
    mean_rest: float,
) -> Tangent:
    """Derivatives of the averages; primes below are derivatives in h: m' = 1 - m^2 = rest."""
    square = 1 - rest
    # (zeta^y)''/zeta^y = y^2 m^2 + y m', whose constant part y^2 drops out of all covariances.
    curvature = (y - y * y) * rest
    curved = (y - y * y) * mean_rest
    # (zeta^y O)''/zeta^y = curvature O + 2 y m O' + O'' for O = log zeta and O = m^2
    log_curved = mean(curvature * log_zeta + 2 * y * square + rest)
    rest_curved = mean(curvature * rest - 4 * y * square * rest - 2 * rest * (3 * rest - 2))
    return Tangent(
        mean_log_y=mean(log_zeta * log_zeta) - mean_log**2,
        mean_log_q=np.array([0.5 * (log_curved - mean_log * curved)]),
        log_norm_q=np.array([0.5 * (y * y + curved)]),
        overlap_y=np.array([mean_rest * mean_log - mean(rest * log_zeta)]),
        overlap_q=np.array([[0.5 * (mean_rest * curved - rest_curved)]]),
    )
