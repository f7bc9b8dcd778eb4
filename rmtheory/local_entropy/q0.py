r"""Stability of q0 = 0, overlap zero between clusters, for the core module (L = 1).

The functional of one-step replica symmetry breaking with overlaps q1 inside a cluster of y
replicas and q0 between clusters, conjugate to qhat1 and qhat0, is

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

q0 = 0 is a minimum in q0, as the replica method asks for, where M0 > 0. At y = 1 this is the
stability of the replica-symmetric q = 0, (1 - r^2)^2 - J_D^2 r^2, whatever q1.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from rmtheory.chain import Chain
from rmtheory.checks import RealLike
from rmtheory.errors import InvalidInputError, NotConvergedError
from rmtheory.estimate import Estimate, Tier
from rmtheory.gaussian import log_P, r
from rmtheory.local_entropy.continuation import ANCHOR, CurveTracker
from rmtheory.local_entropy.model import LocalModel
from rmtheory.local_entropy.nodes import FINEST, STEPS, field_nodes, field_step, tilt_nodes
from rmtheory.local_entropy.refine import Refined

#: Where q0_loss looks, and at how many points it looks for the change of sign.
LEAST_D, MOST_D = 1e-3, 0.45
_SCAN = 16

#: The scan towards small d ends where y* grows beyond this: the quadrature becomes slow.
_LARGEST_Y = 400.0

#: Accuracy of the points on the curve y*(d), in S_I*.
_POINT_TOL = 1e-11


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
        rounding. It does not know how well `qhat` was solved for.

    Examples
    --------
    >>> print(q0_stability(0.1, 0.1, 5.665006280110, 0.137342331321, 3))
    -0.053313072953 ± 2e-12
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


def q0_loss(jd: RealLike, tol: float = 1e-8) -> Estimate:
    """Return the distance d along y*(d) beyond which q0 = 0 is unstable, to `tol`.

    It is looked for between d = 0.001 and 0.45, at 16 points, and down to where y* exceeds 400,
    beyond which M0 was never seen to change sign. Where stability is lost more than once the
    smallest such d is returned.

    Examples
    --------
    >>> print(q0_loss(0.1).rounded(6))
    0.0503148 ± 6e-8
    """
    if not tol > 0:
        raise InvalidInputError("tol", tol, "positive")
    chain = Chain(1, jd)
    tracker = CurveTracker(LocalModel(chain))

    def m0(d: float) -> Estimate:
        return q0_at(chain.jd, tracker.solve(d, _POINT_TOL))

    def value(d: float) -> float:
        return float(m0(d).value)

    low, high = _bracket(chain, tracker)
    root = float(brentq(value, low, high, xtol=tol / 2, rtol=4 * float(np.finfo(float).eps)))
    width = 1e-3 * root
    slope = (value(root + width) - value(root - width)) / (2 * width)
    error = tol / 2 + (abs(value(root)) + m0(root).error) / abs(slope)
    return Estimate(root, error, Tier.ESTIMATED, "sign change of the q0 stability along y*")


def _bracket(chain: Chain, tracker: CurveTracker) -> tuple[float, float]:
    """Neighbouring d of the scan with M0 > 0 at the first and M0 < 0 at the second."""
    found: tuple[float, float] | None = None
    above, positive_above = math.nan, True
    least = MOST_D
    for d in np.geomspace(MOST_D, LEAST_D, _SCAN).tolist():
        try:
            point = tracker.solve(d, _POINT_TOL)
        except NotConvergedError:
            if found is None:
                raise
            break
        positive = float(q0_at(chain.jd, point).value) > 0
        if positive and not positive_above:
            found = (d, above)
        above, positive_above, least = d, positive, d
        if d < ANCHOR and point.moments.y > _LARGEST_Y:
            break
    if found is None:
        sign = "positive" if positive_above else "negative"
        raise NotConvergedError(
            f"M0 is {sign} along y*(d) and does not pass from positive to negative between "
            f"d = {least:.2g} and {MOST_D:g} at jd = {chain.jd:g}"
        )
    return found


def _m0(jd: float, d: float, y: float, qhat: float, level: int) -> tuple[float, float]:
    """M0 and the size of the terms that cancel in it."""
    q1, sigma = 1 - 2 * d, math.sqrt(2 * d)
    fields = field_nodes(q1, (jd,), field_step(level, y))
    tilts = tilt_nodes(qhat, y, STEPS[level])
    plus, minus = (jd + fields.at) / sigma, (jd - fields.at) / sigma
    h = math.sqrt(qhat) * tilts.at[:, None]
    log_plus, log_minus = h + log_P(plus), log_P(minus) - h
    log_zeta = np.logaddexp(log_plus, log_minus)
    m = np.tanh(0.5 * (log_plus - log_minus))
    exponent = y * log_zeta + tilts.log_weight[:, None] + fields.log_weight
    weight = np.exp(exponent - exponent.max())
    weight /= weight.sum()
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
