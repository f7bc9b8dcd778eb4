r"""The core module (L = 1) in float64: its tilted averages, and the stability of q0 = 0.

**Averages.** With a_± = (J_D ± x)/sigma, D = (log P(a_+) - log P(a_-))/2 and
S = (log P(a_+) + log P(a_-))/2,

.. math:: \log\zeta = S(x) + \log 2\cosh(h + D(x)), \qquad m = \tanh(h + D(x)),

so that the special functions are needed only on the nodes in x. Seen from the peaks of the tilt,
|t| = y sqrt(qhat) + e, with h D > 0 or |h| > |D|,

.. math:: \log\zeta - y\hat q = S + \mathrm{sgn}(t)\,D + \log(1 + e^{-2|h + D|}) + \sqrt{\hat q}\,e

and the Gaussian exp(-t^2/2) leaves exp(-e^2/2) once exp(y^2 qhat/2) is taken out.

**Stability of q0 = 0**, overlap zero between clusters. The functional of one-step replica symmetry
breaking with overlaps q1 inside a cluster of y replicas and q0 between clusters, conjugate to qhat1
and qhat0, is

.. math::
    \phi = -\tfrac12\hat q_1 + \tfrac{1-y}{2}\hat q_1 q_1 + \tfrac y2 \hat q_0 q_0
        + \frac1y \int Dt_0 Dz_0 \log \int Dt_1 Dz_1\, \zeta(h, x)^y, \\
    h = \sqrt{\hat q_0}\,t_0 + \sqrt{\hat q_1 - \hat q_0}\,t_1, \qquad
    x = \sqrt{q_0}\,z_0 + \sqrt{q_1 - q_0}\,z_1 .

The terms of first order vanish by the flip symmetry, and those of second order are

.. math::
    y(\phi - \phi_0) &= \tfrac{y^2}{2}\hat q_0 q_0
        - \tfrac14\big[A^2 \hat q_0^2 + 2 K^2 \hat q_0 q_0 + \Gamma^2 q_0^2\big], \\
    A &= y\langle\zeta_{hh}/\zeta + (y-1)(\zeta_h/\zeta)^2\rangle_y = y + y(y-1) q_1, \\
    K &= y\langle\zeta_{hx}/\zeta + (y-1)\zeta_h\zeta_x/\zeta^2\rangle_y, \\
    \Gamma &= y\langle\zeta_{xx}/\zeta + (y-1)(\zeta_x/\zeta)^2\rangle_y ,

so that with qhat0 = (y^2 - K^2) q0/A^2 eliminated

.. math:: \phi = \phi_0 + \frac{M_0}{4y} q_0^2, \qquad
    M_0 = \frac{(y^2 - K^2)^2}{A^2} - \Gamma^2 .

q0 = 0 is a minimum in q0, as the replica method requires, where M0 > 0. At y = 1 this is the
stability of the replica-symmetric q = 0, (1 - r^2)^2 - J_D^2 r^2, for all q1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmtheory.base.errors import InvalidInputError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.base.gaussian import Array, log_P, r
from rmtheory.local_entropies.functional import Functional, Moments, Refined, Tangent
from rmtheory.local_entropies.quadrature import (
    FINEST,
    MOST_NODES,
    REACH,
    STEPS,
    TiltNodes,
    field_nodes,
    field_step,
    tilt_nodes,
    tilt_windows,
)

#: Most points of the rule with the same t for all x; beyond, each x has its own.
_DENSE = 100_000


class CoreFunctional(Functional):
    """One layer, integrated on nodes in t and x."""

    label = "trapezoid quadrature, two resolutions"
    coarse = 2
    curve_tol = 1e-11
    curve_seconds = 0.05
    scan_y = 1000.0
    fast = True
    any_digits = True
    broken_tol = Functional.point_tol
    loss_tol = 1e-8
    loss_y = 400.0

    @property
    def unknowns(self) -> int:
        """One qhat."""
        return 1

    def moments(
        self,
        d: float,
        y: float,
        qhat: Array,
        level: int,
        tangent: bool = False,
        nodes_y: float | None = None,
    ) -> Moments:
        """Tilted averages at (d, y, qhat), with derivatives if `tangent`."""
        return core_moments(self.chain.jd, d, y, qhat, level, tangent, nodes_y)

    def least_step(self, y: float) -> float:
        """Least step: at large y it may be that y* runs away to infinity, which is soon clear."""
        return 0.02 if y > 1e4 else super().least_step(y)

    def slope_rounding(self, moments: Moments) -> float:
        """Slope (y-1) [qhat - <g^2>]: <g^2> is rounded relative to itself, and of order 1/y.

        The rounding of qhat is that of the equations solved.
        """
        return min(moments.y, 1 + moments.y * float(moments.forces.sum()))

    def q0_stability(self, point: Refined) -> Estimate:
        """M0 at a solved point."""
        return q0_at(self.chain.jd, point)


# Tilted averages.


def core_moments(
    jd: float,
    d: float,
    y: float,
    qhat: Array,
    level: int,
    tangent: bool = False,
    nodes_y: float | None = None,
) -> Moments:
    """Averages of the core module at (d, y, qhat) by the trapezoid rule of the given level."""
    qh = float(qhat[0])
    tilted = _tilted_measure(jd, d, y, qh, level, nodes_y)
    weight, m, one_minus_m2, log_zeta = (
        tilted.weight,
        tilted.m,
        tilted.one_minus_m2,
        tilted.log_zeta,
    )

    def mean(values: Array) -> float:
        return float((weight * values).sum())

    mean_log, mean_one_minus_m2 = mean(log_zeta), mean(one_minus_m2)
    r_plus, r_minus = r(tilted.plus), r(tilted.minus)
    force = (0.5 * (1 + m) * r_plus - 0.5 * (1 - m) * r_minus) / math.sqrt(2 * d)
    return Moments(
        d=d,
        y=y,
        qhat=np.array([qh]),
        layers=1,
        log_norm=tilted.log_norm,
        mean_log=mean_log,
        one_minus_m2=np.array([mean_one_minus_m2]),
        force=np.array([mean(force * force)]),
        size=weight.size,
        tangent=_tangent(mean, y, log_zeta, one_minus_m2, mean_log, mean_one_minus_m2)
        if tangent
        else None,
    )


@dataclass(frozen=True, eq=False)
class _Tilted:
    """The measure tilted by zeta^y on its nodes: rows run over t, columns over x >= 0."""

    #: Arguments of P at the nodes in x
    plus: Array
    minus: Array
    #: Shares of the nodes, which sum to one
    weight: Array
    m: Array
    one_minus_m2: Array
    #: log zeta - y qhat
    log_zeta: Array
    #: G'
    log_norm: float


def _tilted_measure(
    jd: float, d: float, y: float, qh: float, level: int, nodes_y: float | None = None
) -> _Tilted:
    sigma = math.sqrt(2 * d)
    fields = field_nodes(1 - 2 * d, (jd,), field_step(level, nodes_y or y))
    # The flip (t, z) -> (-t, -z) leaves zeta as it is: keep x >= 0 and count x > 0 twice.
    half = fields.at.size // 2
    x, log_weight = fields.at[half:], fields.log_weight[half:] + math.log(2.0)
    log_weight[0] -= math.log(2.0)

    plus, minus = (jd + x) / sigma, (jd - x) / sigma
    log_plus, log_minus = log_P(plus), log_P(minus)
    half_sum, half_difference = 0.5 * (log_plus + log_minus), 0.5 * (log_plus - log_minus)
    tilts, kept = _tilts(qh, y, level, half_sum, half_difference, log_weight)
    log_weight, plus, minus, half_sum, half_difference = (
        values[kept] for values in (log_weight, plus, minus, half_sum, half_difference)
    )
    h = math.sqrt(qh) * tilts.at
    u = h + half_difference
    decay = np.exp(-2 * np.abs(u))
    m = np.copysign((1 - decay) / (1 + decay), u)
    one_minus_m2 = 4 * decay / (1 + decay) ** 2
    # |u| - |h|, without subtracting the one from the other.
    side = np.copysign(1.0, tilts.at) * half_difference
    side = np.where(u * h >= 0, side, -side - 2 * np.abs(h))
    near = half_sum + side + np.log1p(decay)

    exponent = y * near + (tilts.log_peak + log_weight)
    largest = float(exponent.max())
    weight = np.exp(exponent - largest)
    total = float(weight.sum())
    weight /= total
    log_zeta = near + math.sqrt(qh) * tilts.excess
    return _Tilted(plus, minus, weight, m, one_minus_m2, log_zeta, math.log(total) + largest)


def _tilts(
    qhat: float, y: float, level: int, half_sum: Array, half_difference: Array, log_weight: Array
) -> tuple[TiltNodes, NDArray[np.intp] | slice]:
    """Nodes in t with a column for each x, or for all of them, and the x that are kept."""
    root = math.sqrt(qhat)
    tilts = None
    if (y * root + REACH) * max(0.5, root) < MOST_NODES * STEPS[level]:
        tilts = tilt_nodes(qhat, y, STEPS[level])
    if tilts is not None and tilts.at.size * half_sum.size <= _DENSE:
        nodes = (tilts.at, tilts.log_weight, tilts.excess, tilts.log_peak)
        return TiltNodes(*(values[:, None] for values in nodes)), slice(None)
    # The largest exponent over t at each x, which is at t = y sqrt(qhat) m.
    m = np.ones_like(half_difference)
    for _ in range(50):
        m = np.tanh(y * qhat * m + half_difference)
    decay = np.exp(-2 * (y * qhat * m + half_difference))
    peak = half_sum + half_difference + np.log1p(decay)
    best = y * peak - 0.5 * y * y * qhat * (1 - m) ** 2 + log_weight
    kept = np.flatnonzero(best > best.max() - 0.5 * (REACH + 1) ** 2)
    return tilt_windows(qhat, y, half_difference[kept], STEPS[level]), kept


def _tangent(
    mean: Callable[[Array], float],
    y: float,
    log_zeta: Array,
    dm: Array,
    mean_log: float,
    mean_dm: float,
) -> Tangent:
    """Derivatives of the averages; primes below are derivatives in h: m' = 1 - m^2 = dm."""
    square = 1 - dm
    # (zeta^y)''/zeta^y = y^2 m^2 + y m', whose constant part y^2 drops out of all covariances.
    curvature = (y - y * y) * dm
    curved = (y - y * y) * mean_dm
    # (zeta^y O)''/zeta^y = curvature O + 2 y m O' + O'' for O = log zeta and O = m^2
    log_curved = mean(curvature * log_zeta + 2 * y * square + dm)
    dm_curved = mean(curvature * dm - 4 * y * square * dm - 2 * dm * (3 * dm - 2))
    return Tangent(
        mean_log_y=mean(log_zeta * log_zeta) - mean_log**2,
        mean_log_q=np.array([0.5 * (log_curved - mean_log * curved)]),
        log_norm_q=np.array([0.5 * (y * y + curved)]),
        overlap_y=np.array([mean_dm * mean_log - mean(dm * log_zeta)]),
        overlap_q=np.array([[0.5 * (mean_dm * curved - dm_curved)]]),
    )


# Stability of q0 = 0.


def q0_stability(jd: float, d: float, y: float, qhat: ArrayLike, level: int) -> Estimate:
    """M0 at (jd, d, y) and the qhat1 of its saddle; q0 = 0 is stable where it is positive.

    Parameters
    ----------
    jd, d, y : float
        Self-coupling, distance and y.
    qhat : float, or array of one
        The solution of <m^2>_y = q1.
    level : int
        Level of the quadrature, from 1; the error is the change from the level before, plus
        rounding. The error of `qhat` is not included.

    Examples
    --------
    >>> print(q0_stability(0.1, 0.1, 5.665006280110, 0.137342331321, 3).rounded(10))
    -0.05331307295 ± 7e-12
    """
    if not 1 <= level <= FINEST:
        raise InvalidInputError("level", level, f"an integer from 1 to {FINEST}")
    conjugate = float(np.asarray(qhat, dtype=float).reshape(-1)[0])
    value, scale = _m0(jd, d, y, conjugate, level)
    before, _ = _m0(jd, d, y, conjugate, level - 1)
    error = abs(value - before) + 64 * float(np.finfo(float).eps) * scale
    return Estimate(value, error, Tier.ESTIMATED, "q0 stability, two levels of quadrature")


def q0_at(jd: float, point: Refined) -> Estimate:
    """M0 at a solved point, the errors of its y and qhat included."""
    moments = point.moments
    d, y, qhat = moments.d, moments.y, float(moments.qhat[0])
    here = q0_stability(jd, d, y, qhat, point.level)
    error = here.error
    for dy, dq in ((1e-5 * y, 0.0), (0.0, 1e-5 * qhat)):
        moved = _m0(jd, d, y + dy, qhat + dq, point.level)[0]
        known = point.y_error / (1e-5 * y) if dy else float(point.qhat_error[0]) / (1e-5 * qhat)
        error += abs(moved - here.value) * known
    return Estimate(here.value, error, here.tier, here.method)


def _m0(jd: float, d: float, y: float, qhat: float, level: int) -> tuple[float, float]:
    """M0 and the size of the terms that cancel in it."""
    q1, sigma = 1 - 2 * d, math.sqrt(2 * d)
    tilted = _tilted_measure(jd, d, y, qhat, level)
    plus, minus, weight, m = tilted.plus, tilted.minus, tilted.weight, tilted.m
    # Every average is a function of x times 1, m or m^2.
    one, first, second = weight.sum(0), (weight * m).sum(0), (weight * m * m).sum(0)

    # zeta_x/zeta = c + e m, zeta_hx/zeta = e + c m, zeta_xx/zeta = -(f + g m)
    r_plus, r_minus = r(plus) / sigma, r(minus) / sigma
    c, e = (r_plus - r_minus) / 2, (r_plus + r_minus) / 2
    f = (plus * r_plus + minus * r_minus) / (2 * sigma)
    g = (plus * r_plus - minus * r_minus) / (2 * sigma)
    A = y + y * (y - 1) * q1
    K = y * float((e * one + c * first + (y - 1) * (c * first + e * second)).sum())
    force = c * c * one + 2 * c * e * first + e * e * second
    curved = f * one + g * first
    Gamma = y * float(((y - 1) * force - curved).sum())
    size = y * float(((y - 1) * force + np.abs(curved)).sum())
    value = (y * y - K * K) ** 2 / A**2 - Gamma**2
    return value, (y * y + K * K) ** 2 / A**2 + size**2
