r"""Averages of the functional with an overlap q0 > 0 between clusters, one layer and two.

With n -> 0 replicas in groups of y, in every layer overlap q1 inside a group and q0 between groups,

.. math::
    L\phi = \sum_l\Big[-\tfrac12\hat q_1 + \tfrac{1-y}{2}\hat q_1 q_1 + \tfrac y2 \hat q_0 q_0\Big]
        + \frac1y\, E \log I, \qquad I(h_0, x_0) = \int \prod_l Dt_l Dz_l\, \zeta(h, x)^y, \\
    h_l = h_{0l} + \sqrt{\hat q_1 - \hat q_0}\,t_l, \qquad x_l = x_{0l} + \sqrt{q_1 - q_0}\,z_l,

E averages over the common fields h_0l = sqrt(qhat0) t_0l, x_0l = sqrt(q0) z_0l, and zeta is that of
:mod:`rmtheory.local_entropies.functional`. Two layers are taken with lambda_L = lambda_R, so that
their order parameters are equal.

**Quadrature.** zeta is evaluated once, on a grid of the fields of all layers, and I at all nodes
(h0, x0) is the product with one Gaussian matrix for each field, N(h - h0) or N(x - x0); so are the
averages. For two layers zeta is a product of rank four on pairs of nodes (h_1, x_1), (h_2, x_2),
and the four matrices are applied one after the other.

**Further breaking.** Groups of groups, with overlaps q0 + delta inside and q0 between them, are the
replicon of the common fields. With psi = log I and a, b running over the fields (h_l; x_l), and the
average of the squares taken entry by entry,

.. math:: M_r = (y^2 - K)^T A^{-1} (y^2 - K) - \Gamma, \quad
    \begin{pmatrix} A & K \\ K^T & \Gamma \end{pmatrix}_{ab}
    = E\,\big(\partial_a\partial_b\psi\big)^2 ,

as for q0 = 0, where the fields vanish and it is M0 (:mod:`rmtheory.local_entropies.pair`). The
saddle is unstable where the least eigenvalue of M_r is negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.base.gaussian import Array, P, log_P, n, r
from rmtheory.local_entropies.pair_sites import FIRST, SECOND, one_thread
from rmtheory.local_entropies.quadrature import REACH, STEPS, check_size, field_step
from rmtheory.replica.symmetric import midpoints

# Results at one (d, y, qhat1, q0, qhat0).


@dataclass(frozen=True, eq=False)
class BrokenMoments:
    """Averages at one (d, y, qhat1, q0, qhat0), per neuron."""

    d: float
    y: float
    qhat1: float
    q0: float
    qhat0: float
    #: E log I and E<log zeta>, divided by the number of layers
    log_norm: float
    mean_log: float
    #: E<m^2> and E<m>^2
    overlap1: float
    overlap0: float
    #: E<g^2> and E<g>^2
    force1: float
    force0: float
    #: Number of nodes of the grid of the fields.
    size: int
    #: Computes E (d_a d_b log I)^2, a and b running over the h of all layers, then over their x.
    curvatures: Callable[[], Array]

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
        return (self.y - 1) * (self.qhat1 - self.force1)

    @property
    def terms(self) -> float:
        """Sum of the sizes of the terms of S_E, each of which is rounded."""
        y = self.y
        return 1 + abs(self.log_norm) + y * abs(self.mean_log) + 0.5 * y * y * self._square

    @property
    def saddle_residual(self) -> Array:
        """Residuals of the saddle equations, relative to (q1, q0, qhat0)."""
        return np.array(
            [
                self.overlap1 / self.q1 - 1,
                self.overlap0 / self.q0 - 1,
                self.force0 / self.qhat0 - 1,
            ]
        )

    def replicon(self) -> float:
        """Least eigenvalue of M_r, negative where the saddle breaks further."""
        squares = self.curvatures()
        layers = len(squares) // 2
        stiff, mixed, soft = (
            squares[:layers, :layers],
            squares[:layers, layers:],
            squares[layers:, layers:],
        )
        cross = self.y**2 * np.eye(layers) - mixed
        matrix = cross.T @ np.linalg.solve(stiff, cross) - soft
        return float(np.linalg.eigvalsh(0.5 * (matrix + matrix.T))[0])


# The fields and their nodes.


@dataclass(frozen=True)
class _Rule:
    """Steps of the trapezoid rules by level, and how far they reach in standard deviations."""

    #: Relative to the steps that give about twelve digits.
    fineness: tuple[float, ...]
    reach: float

    def end(self, common: float, rest: float) -> float:
        """How far a field reaches whose parts have these variances: as far as both of them."""
        return self.reach * (math.sqrt(common) + math.sqrt(rest))


class _ShortRule(_Rule):
    """A field reaches as far as a Gaussian of its whole variance.

    What both parts leave out is of the order of what their sum does.
    """

    def end(self, common: float, rest: float) -> float:
        """How far a field reaches whose parts have these variances."""
        return self.reach * math.sqrt(common + rest)


_RULES = {1: _Rule((1.5, 1.0, 0.75, 0.55), REACH), 2: _ShortRule((2.0, 1.5, 1.15, 0.9), 6.5)}

#: Steps in units of the width of the Gaussians, of the strip |Im h| < pi/2 in which zeta has no
#: zero, and of sigma.
_STEP, _STEP_H, _STEP_X = 0.75, 0.3, 0.3

#: The same for the outer fields, where the logarithm of I is smoother.
_OUTER_STEP, _OUTER_H, _OUTER_X = 0.65, 0.5, 0.4

_MOST_NODES = 30_000_000


def finest_broken(chain: Chain) -> int:
    """Return the finest level of the rules of a chain."""
    return len(_RULES[chain.finite_layers].fineness) - 1


@dataclass(frozen=True, eq=False)
class _Field:
    """One field: its nodes, its common part, and the Gaussian between them."""

    at: Array
    common: Array
    #: Weights of the common part.
    weight: Array
    #: N(at - common) times what the integrand leaves out, divided by exp(log_scale).
    matrix: Array
    log_scale: Array
    spread: float

    def derivative(self, order: int) -> Array:
        """Return the derivative of the matrix in the common field."""
        u = (self.at - self.common[:, None]) / self.spread
        factor = (np.ones_like(u), u / self.spread, (u * u - 1) / self.spread**2)[order]
        return np.asarray(factor * self.matrix)


def _field(
    nodes: Array,
    variances: tuple[float, float],
    width: float,
    rule: tuple[float, float],
    half: bool,
    tilt: float = 0.0,
) -> _Field:
    """Make a field: equidistant `nodes`, variances of the common part and of the rest.

    exp(tilt |h|) goes into the Gaussian, so that the rest of the integrand stays in range.
    """
    fineness, reach = rule
    scale, spread = (math.sqrt(variance) for variance in variances)
    step = min(fineness * _OUTER_STEP, fineness * width / scale) if scale > 0 else 0.0
    z = midpoints(step, half)
    z = z[np.abs(z) <= max(reach, step)]
    weight = np.exp(-0.5 * z * z)
    common = scale * z
    exponent = tilt * np.abs(nodes) - 0.5 * ((nodes - common[:, None]) / spread) ** 2
    largest = exponent.max(axis=1)
    matrix = np.exp(exponent - largest[:, None])
    matrix *= (nodes[1] - nodes[0]) / (math.sqrt(2 * math.pi) * spread)
    return _Field(nodes, common, weight / weight.sum(), matrix, largest, spread)


def _fields(
    layers: int, d: float, y: float, qhat1: float, q0: float, qhat0: float, level: int
) -> list[_Field]:
    """Return the fields h_1, x_1, h_2, ... of all layers."""
    rule = _RULES[layers]
    s, reach = rule.fineness[level], rule.reach
    q1, sigma = 1 - 2 * d, math.sqrt(2 * d)
    spread_h, spread_x = math.sqrt(qhat1 - qhat0), math.sqrt(q1 - q0)
    # The zeros of I lie at i pi/(2y) once zeta^y separates the signs of h, else at i pi/2.
    narrow = max(1.0, min(y, y * y * (qhat1 - qhat0)))
    h_step = s * min(_STEP * spread_h, _STEP_H)
    # zeta^y sharpens with y, as in field_step
    sharpening = field_step(level, y) / STEPS[level]
    x_step = s * min(_STEP * spread_x, _STEP_X * sigma) * sharpening
    h_end = (rule.end(qhat0, qhat1 - qhat0) + y * spread_h**2) / h_step
    x_end, x_less = rule.end(q0, q1 - q0) / x_step, reach * spread_x / x_step
    check_size((2 * h_end * 2 * x_end) ** layers, _MOST_NODES)
    h = h_step * np.arange(-math.ceil(h_end), math.ceil(h_end) + 1.0)
    fields = []
    for layer in range(layers):
        # The flip of all fields leaves I as it is: half of the x0 of one layer suffice.
        half = layer == 0
        low = math.ceil(min(x_less, x_end) if half else x_end)
        x = x_step * np.arange(-low, math.ceil(x_end) + 1.0)
        fields += [
            _field(h, (qhat0, qhat1 - qhat0), _OUTER_H / narrow, (s, reach), False, y),
            _field(x, (q0, q1 - q0), _OUTER_X * sigma, (s, reach), half),
        ]
    return fields


def _contract(values: Array, matrices: Sequence[Array]) -> Array:
    """Apply one matrix along each axis; those of x first, which shorten the array most."""
    for axis in (*range(1, values.ndim, 2)[::-1], *range(0, values.ndim, 2)[::-1]):
        if axis == values.ndim - 1:
            values = values @ matrices[axis].T
        else:
            values = np.moveaxis(np.tensordot(matrices[axis], values, (1, axis)), 0, axis)
    return values


# zeta on the grid, by depth.


@dataclass(frozen=True, eq=False)
class _Zeta:
    """log zeta - sum_l |h_l| on the grid of the fields, m and g of the first layer."""

    log: Array
    m: Array
    g: Array


def _core_zeta(chain: Chain, fields: Sequence[_Field], sigma: float) -> _Zeta:
    h, x = fields[0].at[:, None], fields[1].at
    plus, minus = (chain.jd + x) / sigma, (chain.jd - x) / sigma
    log_plus, log_minus = log_P(plus), log_P(minus)
    u = h + 0.5 * (log_plus - log_minus)
    m = np.tanh(u)
    log = 0.5 * (log_plus + log_minus) + (np.abs(u) - np.abs(h)) + np.log1p(np.exp(-2 * np.abs(u)))
    g = (0.5 * (1 + m) * r(plus) - 0.5 * (1 - m) * r(minus)) / sigma
    return _Zeta(log, m, g)


def _pair_zeta(chain: Chain, fields: Sequence[_Field], sigma: float) -> _Zeta:
    """A product of rank four: one row of the states (s_1, s_2) for each node of a layer."""
    rows = []
    for layer, own in enumerate((FIRST, SECOND)):
        h, x = fields[2 * layer].at, fields[2 * layer + 1].at
        argument = (chain.jd + chain.lam_right * FIRST * SECOND + own * x[:, None]) / sigma
        tilt = np.exp(h[:, None] * own - np.abs(h)[:, None])
        parts = (P(argument), own * n(argument) / sigma)
        rows.append([(tilt[:, None] * part).reshape(-1, 4) for part in parts])
    (one, steep), (two, _) = rows
    shape = [field.at.size for field in fields]
    with one_thread():
        zeta = one @ two.T
        m = ((one * FIRST) @ two.T) / zeta
        g = (steep @ two.T) / zeta
    return _Zeta(*(values.reshape(shape) for values in (np.log(zeta), m, g)))


_ZETA: dict[int, Callable[[Chain, Sequence[_Field], float], _Zeta]] = {1: _core_zeta, 2: _pair_zeta}

#: Common fields with less weight than this are left out: I may underflow there when y is large.
_NEGLIGIBLE = 1e-18


def check_broken(chain: Chain) -> None:
    """Refuse chains for which the functional with q0 > 0 is not worked out."""
    if chain.layers not in _ZETA:
        raise InvalidInputError("layers", chain.layers, "1 or 2 for the branch q0 > 0")
    if not chain.uniform:
        lams = f"{chain.lam_left:g} and {chain.lam_right:g}"
        raise InvalidInputError("lam_left and lam_right", lams, "equal for the branch q0 > 0")


def broken_moments(
    chain: Chain, d: float, y: float, qhat1: float, q0: float, qhat0: float, level: int
) -> BrokenMoments:
    """Averages by trapezoid rules of the given level; 0 <= q0 < q1 and 0 <= qhat0 < qhat1."""
    if not (0 <= q0 < 1 - 2 * d and 0 <= qhat0 < qhat1 < math.inf):
        raise NotConvergedError(
            f"q0 = {q0:.3g} and qhat0 = {qhat0:.3g} left their range at d = {d:.10g}, y = {y:g}"
        )
    layers = chain.finite_layers
    fields = _fields(layers, d, y, qhat1, q0, qhat0, level)
    zeta = _ZETA[layers](chain, fields, math.sqrt(2 * d))
    tilted = np.exp(y * zeta.log)  # at most 4^y
    matrices = [field.matrix for field in fields]
    weight = fields[0].weight
    for field in fields[1:]:
        weight = np.multiply.outer(weight, field.weight)
    far = weight < _NEGLIGIBLE
    norm = _contract(tilted, matrices)
    norm[far] = 1.0
    if not (np.all(np.isfinite(norm)) and norm.min() > 0):
        raise NotConvergedError(
            f"the inner integral leaves the range of floating point at d = {d:.10g}, y = {y:g}"
        )

    def inner(values: Array) -> Array:
        return np.asarray(_contract(tilted * values, matrices) / norm)

    def outer(values: Array) -> float:
        return float(np.vdot(weight, values))

    def curvatures() -> Array:
        return _curvatures(fields, tilted, norm, outer)

    scale = sum(float(field.weight @ field.log_scale) for field in fields)
    log_zeta = zeta.log.copy()
    for axis in range(0, log_zeta.ndim, 2):
        log_zeta += np.abs(fields[axis].at).reshape([-1] + [1] * (log_zeta.ndim - 1 - axis))
    return BrokenMoments(
        d=d,
        y=y,
        qhat1=qhat1,
        q0=q0,
        qhat0=qhat0,
        log_norm=(outer(np.log(norm)) + scale) / layers,
        mean_log=outer(inner(log_zeta)) / layers,
        overlap1=outer(inner(zeta.m**2)),
        overlap0=outer(inner(zeta.m) ** 2),
        force1=outer(inner(zeta.g**2)),
        force0=outer(inner(zeta.g) ** 2),
        size=tilted.size,
        curvatures=curvatures,
    )


def _curvatures(
    fields: Sequence[_Field], tilted: Array, norm: Array, outer: Callable[[Array], float]
) -> Array:
    """E (d_a d_b log I)^2, the derivatives being those of the Gaussian matrices."""
    # h of all layers first, then x
    order = [*range(0, len(fields), 2), *range(1, len(fields), 2)]

    def derivative(*by: int) -> Array:
        matrices = [field.derivative(by.count(k)) for k, field in enumerate(fields)]
        return np.asarray(_contract(tilted, matrices) / norm)

    first = [derivative(k) for k in order]
    squares = np.empty((len(order), len(order)))
    for i, a in enumerate(order):
        for j, b in enumerate(order[: i + 1]):
            squares[i, j] = outer((derivative(a, b) - first[i] * first[j]) ** 2)
            squares[j, i] = squares[i, j]
    return squares
