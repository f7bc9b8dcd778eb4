r"""The functional with an overlap q0 between clusters, for the core module (L = 1).

Replicas in groups of y, overlap q1 inside a group and q0 between groups, n -> 0 of them:

.. math::
    \phi = -\tfrac12\hat q_1 + \tfrac{1-y}{2}\hat q_1 q_1 + \tfrac y2 \hat q_0 q_0
        + \frac1y\, E \log I, \qquad I(h_0, x_0) = \int Dt_1 Dz_1\, \zeta(h, x)^y, \\
    h = h_0 + \sqrt{\hat q_1 - \hat q_0}\,t_1, \qquad x = x_0 + \sqrt{q_1 - q_0}\,z_1,

E averages over the common fields h0 = sqrt(qhat0) t0, x0 = sqrt(q0) z0. With <.> the average inside
I, tilted by zeta^y, m = d log zeta/dh and g = d log zeta/dx, integration by parts gives

.. math::
    2\,\partial\phi/\partial\hat q_1 &= (y-1)\,(E\langle m^2\rangle - q_1), &
    2\,\partial\phi/\partial\hat q_0 &= y\,(q_0 - E\langle m\rangle^2), \\
    2\,\partial\phi/\partial q_1 &= (y-1)\,(E\langle g^2\rangle - \hat q_1), &
    2\,\partial\phi/\partial q_0 &= y\,(\hat q_0 - E\langle g\rangle^2),

and S_I = d(y phi)/dy, S_E = y (phi - S_I) as ever. The branch q0 = 0 is that of
:mod:`rmtheory.local_entropy.moments`; at y = 1, whatever q1 and qhat1, phi is the replica-symmetric
functional at (q0, qhat0).

Quadrature: zeta is evaluated once, on a grid W of (h, x), and I at all nodes (h0, x0) is the
product A W B^T with the Gaussian matrices A = N(h - h0) and B = N(x - x0); so are the averages.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rmtheory.errors import NotConvergedError
from rmtheory.gaussian import Array, log_P, r
from rmtheory.local_entropy.nodes import REACH, STEPS, check_size, field_step
from rmtheory.replica.functional import midpoints

#: Steps of the trapezoid rules by level, relative to those that give about twelve digits.
FINENESS = (1.5, 1.0, 0.75, 0.55)

#: Steps in units of the width of the Gaussians, of the strip |Im h| < pi/2 in which zeta has no
#: zero, and of sigma.
_STEP, _STEP_H, _STEP_X = 0.75, 0.3, 0.3

#: The same for the outer fields, where the logarithm of I is smoother.
_OUTER_STEP, _OUTER_H, _OUTER_X = 0.65, 0.5, 0.4

#: Pairs of outer nodes with less weight than this are left out.
_NEGLIGIBLE = 1e-18

_MOST_NODES = 8_000_000


@dataclass(frozen=True)
class BrokenMoments:
    """Averages at one (d, y, qhat1, q0, qhat0)."""

    d: float
    y: float
    qhat1: float
    q0: float
    qhat0: float
    #: E log I
    log_norm: float
    #: E<log zeta>
    mean_log: float
    #: E<m^2> and E<m>^2
    overlap1: float
    overlap0: float
    #: E<g^2> and E<g>^2
    response1: float
    response0: float
    #: Number of nodes of the grid of (h, x).
    size: int

    @property
    def q1(self) -> float:
        """Overlap inside a cluster."""
        return 1 - 2 * self.d

    @property
    def _square(self) -> float:
        return self.qhat1 * self.q1 - self.qhat0 * self.q0

    @property
    def phi(self) -> float:
        """Free entropy phi = -Phi."""
        return (
            -0.5 * self.qhat1 * (1 - self.q1)
            - 0.5 * self.y * self._square
            + (self.log_norm / self.y)
        )

    @property
    def internal(self) -> float:
        """Internal entropy S_I = d(y phi)/dy."""
        return -0.5 * self.qhat1 * (1 - self.q1) - self.y * self._square + self.mean_log

    @property
    def external(self) -> float:
        """External entropy S_E = y (phi - S_I)."""
        y = self.y
        return self.log_norm - y * self.mean_log + 0.5 * y * y * self._square

    @property
    def slope(self) -> float:
        """Derivative of phi in d at fixed y; that of S_I*(d) at the saddle where S_E = 0."""
        return (self.y - 1) * (self.qhat1 - self.response1)

    @property
    def terms(self) -> float:
        """Sum of the sizes of the terms of S_E, each of which is rounded."""
        y = self.y
        return 1 + abs(self.log_norm) + y * abs(self.mean_log) + 0.5 * y * y * self._square

    @property
    def saddle_residual(self) -> Array:
        """What is to vanish at the saddle, relative to (q1, q0, qhat0)."""
        return np.array(
            [
                self.overlap1 / self.q1 - 1,
                self.overlap0 / self.q0 - 1,
                self.response0 / self.qhat0 - 1,
            ]
        )


def broken_moments(
    jd: float, d: float, y: float, qhat1: float, q0: float, qhat0: float, level: int
) -> BrokenMoments:
    """Averages by trapezoid rules of the given level; 0 <= q0 < q1 and 0 <= qhat0 < qhat1."""
    q1, sigma = 1 - 2 * d, math.sqrt(2 * d)
    if not (0 <= q0 < q1 and 0 <= qhat0 < qhat1 < math.inf):
        raise NotConvergedError(
            f"q0 = {q0:.3g} and qhat0 = {qhat0:.3g} left their range at d = {d:.10g}, y = {y:g}"
        )
    spread_h, spread_x = math.sqrt(qhat1 - qhat0), math.sqrt(q1 - q0)
    s = FINENESS[level]
    # The zeros of I lie at i pi/(2y) once zeta^y separates the signs of h, else at i pi/2.
    narrow = max(1.0, min(y, y * y * (qhat1 - qhat0)))
    h0, outer_h = _outer(math.sqrt(qhat0), s * _OUTER_H / narrow, s * _OUTER_STEP, half=False)
    # The flip of all fields leaves I as it is: half of the x0 suffice.
    x0, outer_x = _outer(math.sqrt(q0), s * _OUTER_X * sigma, s * _OUTER_STEP, half=True)

    h_step = s * min(_STEP * spread_h, _STEP_H)
    # zeta^y sharpens with y, as in field_step
    sharpening = field_step(level, y) / STEPS[level]
    x_step = s * min(_STEP * spread_x, _STEP_X * sigma) * sharpening
    h_end = (h0[-1] + REACH * spread_h + y * spread_h**2) / h_step
    x_ends = REACH * spread_x / x_step, (x0[-1] + REACH * spread_x) / x_step
    check_size(2 * h_end * sum(x_ends), _MOST_NODES)
    h = h_step * np.arange(-math.ceil(h_end), math.ceil(h_end) + 1)[:, None]
    x = x_step * np.arange(-math.ceil(x_ends[0]), math.ceil(x_ends[1]) + 1)

    plus, minus = (jd + x) / sigma, (jd - x) / sigma
    log_plus, log_minus = log_P(plus), log_P(minus)
    u = h + 0.5 * (log_plus - log_minus)
    decay = np.exp(-2 * np.abs(u))
    m = np.tanh(u)
    # log zeta - |h|, whose power stays in range; exp(y |h|) goes into the Gaussian in h.
    near = 0.5 * (log_plus + log_minus) + (np.abs(u) - np.abs(h)) + np.log1p(decay)
    g = (0.5 * (1 + m) * r(plus) - 0.5 * (1 - m) * r(minus)) / sigma
    weight = np.exp(y * near)  # at most 2^y

    exponent = y * np.abs(h[:, 0]) - 0.5 * ((h[:, 0] - h0[:, None]) / spread_h) ** 2
    largest = exponent.max(axis=1)
    A = np.exp(exponent - largest[:, None]) * (h_step / (math.sqrt(2 * math.pi) * spread_h))
    B = np.exp(-0.5 * ((x - x0[:, None]) / spread_x) ** 2)
    B *= x_step / (math.sqrt(2 * math.pi) * spread_x)

    def inner(values: Array) -> Array:
        return np.asarray(A @ (weight * values) @ B.T)

    # Far nodes weigh nothing, and I may underflow there when y is large.
    outer_weight = np.outer(outer_h, outer_x)
    far = outer_weight < _NEGLIGIBLE

    def outer(values: Array) -> float:
        return float((outer_weight * values).sum())

    norm = inner(np.ones_like(weight))
    norm[far] = 1.0
    if not (np.all(np.isfinite(norm)) and norm.min() > 0):
        raise NotConvergedError(
            f"the inner integral leaves the range of floating point at d = {d:.10g}, y = {y:g}"
        )
    return BrokenMoments(
        d=d,
        y=y,
        qhat1=qhat1,
        q0=q0,
        qhat0=qhat0,
        log_norm=outer(np.log(norm)) + float(outer_h @ largest),
        mean_log=outer(inner(near + np.abs(h)) / norm),
        overlap1=outer(inner(m * m) / norm),
        overlap0=outer((inner(m) / norm) ** 2),
        response1=outer(inner(g * g) / norm),
        response0=outer((inner(g) / norm) ** 2),
        size=weight.size,
    )


def _outer(scale: float, width: float, step: float, half: bool) -> tuple[Array, Array]:
    """Nodes of a common field of standard deviation `scale`, and their weights."""
    z = midpoints(min(step, width / scale) if scale > 0 else 0.0, half)
    weight = np.exp(-0.5 * z * z)
    return scale * z, weight / weight.sum()
