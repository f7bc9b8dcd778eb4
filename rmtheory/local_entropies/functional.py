r"""The local-entropy functional of a chain: its averages, its entropies, its numerical properties.

With x_l = sqrt(q1) z_l, h_l = sqrt(qhat_l) t_l and

.. math:: \zeta = \sum_{s} e^{\sum_l h_l s_l} \prod_l P\Big(\frac{v_l + s_l x_l}{\sqrt{1-q_1}}\Big)

every quantity is an average <.>_y over the Gaussians tilted by zeta^y, G = log int zeta^y (paper,
SM-B):

.. math::
    y\phi &= \sum_l\Big[-\tfrac{y}{2}\hat q_l + \tfrac{y(1-y)}{2}\hat q_l q_1\Big] + G, \\
    S_I &= \sum_l\Big[-\tfrac12\hat q_l + \tfrac{1-2y}{2}\hat q_l q_1\Big]
        + \langle\log\zeta\rangle_y, \\
    S_E &= G - y\langle\log\zeta\rangle_y + \tfrac12 y^2 q_1\sum_l\hat q_l,

at the saddle <m_l^2>_y = q1, m_l = d log zeta/d h_l; all divided by L. (The paper prints -y Phi
where -Phi = phi is meant; y = 2 decides, where y phi is the exponent of the second moment.)

At small d y is in the thousands, and terms of order y^2 qhat cancel. They are taken out before the
averages are formed: with Q = sum_l qhat_l, G' = G - y^2 Q/2 and l' = <log zeta>_y - y Q,

.. math:: y\phi = G' + y(y-1)\,d\,Q, \qquad S_I = l' + (2y-1)\,d\,Q, \qquad
    S_E = G' - y\,l' - y^2 d\,Q .

Chains of one, two, more and infinitely many layers differ in how the tilted averages are
integrated, in how the errors fall with the resolution, and in what is known of the limit d -> 0.
Each is a type derived from :class:`Functional` (in :mod:`~rmtheory.local_entropies.core`,
:mod:`~rmtheory.local_entropies.pair` and :mod:`~rmtheory.local_entropies.transfer_operator`),
chosen by :func:`rmtheory.local_entropies.solve.functional`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np

from rmtheory.base.chain import Chain
from rmtheory.base.errors import NotConvergedError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.base.gaussian import Array
from rmtheory.local_entropies.dilute_gas import SmearedGas, smeared_gas
from rmtheory.local_entropies.quadrature import FINEST, STEPS
from rmtheory.local_entropies.replicated import Ladder

# Averages at one point (d, y, qhat).


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
    one_minus_m2: Array
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
        return 2 * self.d - self.one_minus_m2

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
class Refined:
    """A solved point at the final resolution, with the errors of its quantities."""

    moments: Moments
    inverse: Array
    level: int
    phi_error: float
    internal_error: float
    external_error: float
    slope_error: float
    y_error: float
    qhat_error: Array
    #: Largest residual of the equations solved.
    residual: float


@dataclass(frozen=True, eq=False)
class Scanned:
    """A point of a scan over d: y*, the slope with its error, the solved point if there is one."""

    d: float
    y: float
    slope: float
    slope_error: float
    point: Refined | None = None


# The functional of a chain.

#: y* from which on the dilute gas is tried: below it the flips are not dilute.
_GAS_Y = 20.0


@dataclass(frozen=True)
class Functional(ABC):
    """The functional y phi(d, y, qhat) of a chain, and the numerical properties of its averages."""

    chain: Chain

    #: The method named in the estimates.
    label: ClassVar[str]
    #: Level of the quadrature that Newton starts with: finer where it costs nothing.
    coarse: ClassVar[int]
    #: Default accuracy of S_I* along a curve.
    curve_tol: ClassVar[float]
    #: CPU-seconds of a point of a curve, within a factor of three.
    curve_seconds: ClassVar[float]
    #: That of a single point: nine significant digits of an entropy of a few hundredths.
    point_tol: ClassVar[float] = 1e-11
    #: Largest y at which the averages can be computed with an error, and the message beyond it.
    largest_y: ClassVar[float] = math.inf
    in_reach: ClassVar[str] = "there is no finer quadrature"
    #: Largest distance at which a curve y*(d) is started, and up to which monotonicity is decided.
    largest_start: ClassVar[float] = 0.4
    d_max: ClassVar[float] = 0.45
    #: y* at which a scan towards d = 0 ends.
    scan_y: ClassVar[float]
    #: Whether the dilute gas of flips is worked out for the limit d -> 0.
    gas_known: ClassVar[bool] = True
    #: Where S_E > 0 at this y, y* is not searched for: S_I* is known to 1/y. Infinite where no y so
    #: large is in reach.
    plateau_y: ClassVar[float] = 3e7
    #: y* from which on the gas of flips is tried first at small d: beyond, it is faster.
    gas_y: ClassVar[float] = math.inf
    #: Whether an evaluation takes milliseconds, so that every point of a curve can be scanned in y.
    fast: ClassVar[bool] = False
    #: Whether arbitrary precision is implemented.
    any_digits: ClassVar[bool] = False
    #: Accuracy of the entropies where q0 > 0, and of the distance where M0 = 0; the y* beyond which
    #: that distance is not searched for: the quadrature becomes slow. None where q0 is not worked
    #: out.
    broken_tol: ClassVar[float | None] = None
    loss_tol: ClassVar[float | None] = None
    loss_y: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        self.chain.refuse_beyond(1e100)

    @property
    @abstractmethod
    def unknowns(self) -> int:
        """Number of independent qhat: one where all layers are equivalent."""

    @abstractmethod
    def moments(
        self,
        d: float,
        y: float,
        qhat: Array,
        level: int,
        tangent: bool = False,
        nodes_y: float | None = None,
    ) -> Moments:
        """Tilted averages at (d, y, qhat), with derivatives if `tangent`.

        The nodes are those for y, or for a `nodes_y` next to it: their number jumps as y grows,
        and with it the averages by the error of the level. An iteration in y keeps it.
        """

    def spread(self, qhat: Array) -> Array:
        """Return one qhat per layer, a single one for the infinite chain."""
        return np.repeat(qhat, self.chain.finite_layers // qhat.size)

    # The resolution, and how errors fall with it.

    def finest(self, y: float) -> int:
        """Finest level there is at this y."""
        return FINEST

    def remaining(self, change: float, level: int, y: float) -> float:
        """Error left at a level whose value differs by `change` from the one below.

        Trapezoid rules follow the exponential law Delta^k, never better than Delta/8.
        """
        shrink = STEPS[level - 1] / STEPS[level]
        return float(min(change, max(3 * change**shrink, change / 8)))

    def least_error(self, internal_change: float, level: int) -> float:
        """Least error of phi where S_I has changed by this: phi may agree by accident."""
        shrink = STEPS[level - 1] / STEPS[level]
        return float(min(internal_change, 3 * internal_change**shrink))

    def dropped(self, level: int) -> float:
        """Share of the integral that is left out."""
        return 0.0

    def slope_rounding(self, moments: Moments) -> float:
        """Return what the slope is rounded by, in units of the rounding of S_E."""
        return moments.y

    def internal_tol(self, tol: float) -> float:
        """How well S_I is to be known where phi is wanted to `tol`."""
        return tol

    # The range of y.

    def least_step(self, y: float) -> float:
        """Least step of the continuation, in log d - log(1/2 - d), where y* is about `y`."""
        return 1e-3

    def zeros_reach(self, y: float) -> float:
        """Up to which multiple of y* other zeros of S_E are searched for."""
        return 4.0

    def ladder(self, d: float) -> Ladder | None:
        """Return phi at integer y, where that is faster than the averages, else None."""
        return None

    # The limit d -> 0.

    def gas(self, point: Refined) -> SmearedGas | None:
        """Return the dilute gas of flips at a solved point, None where there is none."""
        moments = point.moments
        try:
            return smeared_gas(self.chain, moments.d, (moments.y, -2 * moments.y * moments.qhat))
        except NotConvergedError:
            return None

    def scan_ends(self, scan: Sequence[Scanned]) -> bool:
        """Whether a scan towards d = 0 has reached the gas, or where it becomes too slow."""
        y = scan[-1].y
        return y > self.scan_y or (y > _GAS_Y and self.in_gas(scan[-1].point) is not None)

    def in_gas(self, point: Refined | None) -> SmearedGas | None:
        """Return the gas if it agrees with a solved point in S_I* and its slope."""
        if point is None:
            return None
        gas = self.gas(point)
        internal = self.estimate(point.moments.phi, point.phi_error)
        slope = self.estimate(point.moments.slope, point.slope_error)
        return gas if gas is not None and gas.agrees(internal, slope) else None

    def limit_reached(self, scan: Sequence[Scanned]) -> bool:
        """Whether the slope is known to stay positive from the last point of a scan to d = 0.

        It has to be positive and to rise there, and the gas of flips has to agree with the last
        point and to have a positive slope at all smaller distances.
        """
        gas = self.in_gas(scan[-1].point)
        return rising(scan) and gas is not None and gas.rises()

    # Results at a solved point.

    def estimate(self, value: float, error: float) -> Estimate:
        """Return a value of this functional with its error."""
        return Estimate(value, error, Tier.ESTIMATED, self.label)

    def free_entropy(self, point: Refined) -> Estimate:
        """Free entropy phi at a solved saddle."""
        return self.estimate(point.moments.phi, point.phi_error)

    def q0_stability(self, point: Refined) -> Estimate | None:
        """M0 at a solved point, its least eigenvalue for two layers; None if not worked out."""
        return None


def rising(scan: Sequence[Scanned], steps: int = 1) -> bool:
    """Whether the slope is positive at the end of a scan and rose over its last `steps`."""
    slopes = [point.slope for point in scan[-steps - 1 :]]
    return (
        len(slopes) > steps
        and slopes[-1] > 0
        and all(after > before for before, after in pairwise(slopes))
    )
