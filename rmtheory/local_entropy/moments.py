r"""Averages over the tilted measure, and the entropies assembled from them (paper, SM-B).

With x_l = sqrt(q1) z_l, h_l = sqrt(qhat_l) t_l and

.. math:: \zeta = \sum_{s} e^{\sum_l h_l s_l} \prod_l P\Big(\frac{v_l + s_l x_l}{\sqrt{1-q_1}}\Big)

every quantity is an average <.>_y over the Gaussians tilted by zeta^y, G = log int zeta^y:

.. math::
    y\phi &= \sum_l\Big[-\tfrac{y}{2}\hat q_l + \tfrac{y(1-y)}{2}\hat q_l q_1\Big] + G, \\
    S_I &= \sum_l\Big[-\tfrac12\hat q_l + \tfrac{1-2y}{2}\hat q_l q_1\Big]
        + \langle\log\zeta\rangle_y, \\
    S_E &= G - y\langle\log\zeta\rangle_y + \tfrac12 y^2 q_1\sum_l\hat q_l,

at the saddle <m_l^2>_y = q1, m_l = d log zeta/d h_l; all divided by L.

At small d y is in the thousands, and terms of order y^2 qhat cancel. They are taken out before the
averages are formed: with Q = sum_l qhat_l, G' = G - y^2 Q/2 and l' = <log zeta>_y - y Q,

.. math:: y\phi = G' + y(y-1)\,d\,Q, \qquad S_I = l' + (2y-1)\,d\,Q, \qquad
    S_E = G' - y\,l' - y^2 d\,Q .

(The paper prints -y Phi
where -Phi = phi is meant; y = 2 settles it, where y phi is the exponent of the second moment.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rmtheory.gaussian import Array


@dataclass(frozen=True, eq=False)
class Tangent:
    """Derivatives of the averages, from explicit integrals.

    d<O>/dy is the covariance with log zeta; d<O>/dqhat_k is half the average of the second
    h_k-derivative of zeta^y O, by the heat equation of the Gaussian.
    """

    mean_log_y: float
    mean_log_q: Array
    log_norm_q: Array
    overlap_y: Array
    #: d<m_l^2>/dqhat_k at [l, k]
    overlap_q: Array


@dataclass(frozen=True, eq=False)
class Moments:
    """Averages at one (d, y, qhat); arrays run over the layers.

    For a chain that its reflection maps onto itself the arrays have one entry, which stands for
    every layer, and `multiplicity` says how many.
    """

    d: float
    y: float
    qhat: Array
    layers: int
    #: G' = log int zeta^y - y^2 Q/2
    log_norm: float
    #: l' = <log zeta>_y - y Q
    mean_log: float
    #: <1 - m_l^2>_y
    rest: Array
    #: <(d log zeta/d x_l)^2>_y, or how to compute it where that takes as long as all the rest
    force: Array | Callable[[], Array]
    #: Number of quadrature points used.
    size: int
    tangent: Tangent | None = None

    @property
    def multiplicity(self) -> float:
        """How many layers each entry of the arrays stands for."""
        return self.layers / self.qhat.size

    @cached_property
    def forces(self) -> Array:
        """<(d log zeta/d x_l)^2>_y of the layers."""
        return self.force() if callable(self.force) else self.force

    def _sum(self, values: Array) -> float:
        return float(values.sum()) * self.multiplicity

    @property
    def q1(self) -> float:
        """Overlap inside a cluster."""
        return 1 - 2 * self.d

    @property
    def phi(self) -> float:
        """Free entropy phi = -Phi per neuron."""
        return (self.log_norm / self.y + (self.y - 1) * self.d * self._sum(self.qhat)) / self.layers

    @property
    def internal(self) -> float:
        """Internal entropy S_I per neuron."""
        return (self.mean_log + (2 * self.y - 1) * self.d * self._sum(self.qhat)) / self.layers

    @property
    def external(self) -> float:
        """External entropy S_E per neuron."""
        y, total = self.y, self._sum(self.qhat)
        return (self.log_norm - y * self.mean_log - y * y * self.d * total) / self.layers

    @property
    def slope(self) -> float:
        """Envelope slope dS_I*/dd = (y* - 1) sum_l [qhat_l - <(d log zeta/dx_l)^2>] per neuron.

        It is the derivative of S_I along y*(d) only where S_E = 0 and the saddle is solved.
        """
        return (self.y - 1) * self._sum(self.qhat - self.forces) / self.layers

    @property
    def saddle_residual(self) -> Array:
        """<m_l^2>_y - q1 = 2d - <1 - m_l^2>_y."""
        return 2 * self.d - self.rest

    @property
    def terms(self) -> float:
        """Sum of the sizes of the terms of L S_E, each of which is rounded.

        The integral itself is rounded too, which changes its logarithm however small that is.
        """
        y, total = self.y, self._sum(self.qhat)
        return 1 + abs(self.log_norm) + y * abs(self.mean_log) + y * y * self.d * total + y

    def saddle_jacobian(self) -> Array:
        """Derivatives of the saddle residuals with respect to qhat."""
        return self._tangent.overlap_q

    def ystar_jacobian(self) -> Array:
        """Derivatives of (saddle residuals, L S_E) with respect to (y, qhat)."""
        tangent, y = self._tangent, self.y
        size = self.qhat.size
        jacobian = np.empty((size + 1, size + 1))
        jacobian[:size, 0] = tangent.overlap_y
        jacobian[:size, 1:] = tangent.overlap_q
        jacobian[size, 0] = -y * tangent.mean_log_y + y * self.q1 * self._sum(self.qhat)
        jacobian[size, 1:] = (
            tangent.log_norm_q - y * tangent.mean_log_q + 0.5 * y * y * self.q1 * self.multiplicity
        )
        return jacobian

    def internal_gradient(self) -> Array:
        """Derivatives of S_I per neuron with respect to (y, qhat)."""
        tangent = self._tangent
        gradient = np.empty(self.qhat.size + 1)
        gradient[0] = tangent.mean_log_y - self.q1 * self._sum(self.qhat)
        gradient[1:] = tangent.mean_log_q + self.multiplicity * (
            -0.5 + (1 - 2 * self.y) * self.q1 / 2
        )
        return gradient / self.layers

    @property
    def _tangent(self) -> Tangent:
        if self.tangent is None:
            raise ValueError("these moments were computed without derivatives")
        return self.tangent
