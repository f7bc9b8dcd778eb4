r"""The two-layer chain (L = 2) in float64: its tilted averages, and the stability of q0 = 0.

**Nodes.** Each node (t, x) of a site stands for one row U of four numbers, one for each state
(s_1, s_2) (:mod:`rmtheory.local_entropies.pair_sites`).

**Averages.** The two sites meet only through their spins: on all pairs of nodes

.. math:: \zeta_{ij} = \sum_{s_1 s_2} U_i(s_1, s_2)\, U'_j(s_1, s_2)

is a product of rank four, followed by a logarithm and an exponential of each entry. Averages are
sums over pairs (i, j) of weights times products of forms :math:`a_i \cdot v_j` in the four numbers
v of a node of the second site. A product of two forms is linear in the ten products v_a v_b, a
product of four in the 35 of fourth degree: the weights are multiplied by these once, and all
averages follow from the result. The derivatives in y and qhat need the Gram matrix of the
observables

.. math:: 1, \quad \log\zeta, \quad 1 - m_1^2, \quad 1 - m_2^2, \quad
    \chi = \langle s_1 s_2\rangle - m_1 m_2, \quad m_1 m_2, \quad \partial_{x_l}\log\zeta

under the tilted measure. All but the logarithm are forms of second degree in the numbers of a node
of the second site, divided by zeta or zeta^2.

**Stability of q0 = 0.** With one overlap q0_l between clusters for each layer, the expansion of
:mod:`rmtheory.local_entropies.core` becomes, A, K and Gamma being matrices in the layers whose
entries are squared one by one,

.. math::
    L y(\phi - \phi_0) &= \tfrac{y^2}{2}\hat q_0\cdot q_0 - \tfrac14\big[\hat q_0 A^2 \hat q_0
        + 2\hat q_0 K^2 q_0 + q_0 \Gamma^2 q_0\big], \\
    A_{lm} &= F_{h_l h_m}/F, \quad K_{lm} = F_{h_l x_m}/F, \quad \Gamma_{lm} = F_{x_l x_m}/F,

where F is the integral of zeta^y as a function of the centres of its Gaussians. With qhat0
eliminated it is q0.M0.q0/4,

.. math:: M_0 = (y^2 - K^2)^T (A^2)^{-1} (y^2 - K^2) - \Gamma^2 ,

and q0 = 0 is stable where the least eigenvalue of M0 is positive. At y = 1 this is the
replica-symmetric M; without coupling it is diagonal, with the M0 of one layer twice. The
derivatives need only the second moments of the fields u = (h_1, h_2, x_1, x_2) under the tilted
measure: by parts, V being the diagonal matrix of the variances (qhat_1, qhat_2, q1, q1),

.. math:: F_{ab}/F = \big(V^{-1} \langle u u^T\rangle_y V^{-1} - V^{-1}\big)_{ab} .

Averages of two layers with t of the second site integrated beforehand.

For where the pairs of nodes (:mod:`rmtheory.local_entropies.pair`) are too many: at large y, and at
y < 1, where nothing is pruned. At given fields of the first site and x of the second the integral
over t of the second depends on a single number, and is tabulated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, product

import numpy as np
from numpy.typing import NDArray

from rmtheory.base.chain import Chain
from rmtheory.base.errors import NotConvergedError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.base.gaussian import Array, P, n
from rmtheory.local_entropies.functional import Functional, Moments, Refined, Tangent
from rmtheory.local_entropies.pair_sites import (
    DROPPED,
    FIRST,
    SECOND,
    Site,
    Sites,
    blocks,
    make_sites,
    one_thread,
    powers,
)
from rmtheory.local_entropies.quadrature import (
    REACH,
    STEPS,
    check_size,
    field_nodes,
    field_step,
    tilt_windows,
)

#: Most pairs of nodes that are summed one by one; beyond, t of the second site is done first.
MOST_PAIRS = 30_000_000


class PairFunctional(Functional):
    """Two layers, integrated on pairs of nodes."""

    label = "trapezoid quadrature, two resolutions"
    coarse = 1
    curve_tol = 1e-9
    curve_seconds = 1.2
    scan_y = 300.0
    plateau_y = 2e4
    largest_y = 1e5
    gas_y = 300.0
    broken_tol = 1e-7
    loss_tol = 1e-5
    loss_y = 15.0
    in_reach = "two layers can be computed up to y = 100000"

    @property
    def unknowns(self) -> int:
        """One qhat where the layers are mirror images, otherwise two."""
        return 1 if self.chain.uniform else 2

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
        chain = self.chain
        lams = chain.lam_left, chain.lam_right
        return pair_moments(chain.jd, *lams, d, y, qhat, level, tangent, nodes_y)

    def dropped(self, level: int) -> float:
        """Share of the integral that pruning leaves out at the two sites."""
        return 2 * DROPPED[level]

    def least_step(self, y: float) -> float:
        """Least step: at large y it may be that y* runs away to infinity, and steps take long."""
        return 0.05 if y > 1e3 else super().least_step(y)

    def q0_stability(self, point: Refined) -> Estimate | None:
        """Least eigenvalue of M0 at a solved point."""
        try:
            return pair_q0_at(self.chain, point)
        except NotConvergedError:  # too many pairs
            return None


def pair_moments(
    jd: float,
    lam_left: float,
    lam_right: float,
    d: float,
    y: float,
    qhat: Array,
    level: int,
    tangent: bool = False,
    nodes_y: float | None = None,
) -> Moments:
    """Averages of the two-layer chain at (d, y, qhat).

    With lam_left = lam_right the layers are mirror images, and `qhat` may have a single entry
    that stands for both; otherwise it has two.
    """
    with one_thread():
        frozen = nodes_y or y
        sites = make_sites(jd, lam_left, lam_right, d, y, qhat, level, frozen)
        if len(sites.one.rows) * len(sites.two.rows) <= MOST_PAIRS:
            averages = tangent_averages if tangent else _averages
            return averages(sites, d, y, qhat)
        here = nested_averages(sites, d, y, qhat, level, frozen)
        if not tangent:
            return here

        def at(y: float, qhat: Array) -> Moments:
            sites = make_sites(jd, lam_left, lam_right, d, y, qhat, level, frozen)
            return nested_averages(sites, d, y, qhat, level, frozen)

        return replace(here, tangent=differences(at, here))


# Products of linear forms in the four numbers of a node.


def _monomials(degree: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Exponents of the distinct monomials, and where each ordered product stands among them."""
    distinct = list(combinations_with_replacement(range(4), degree))
    places = {key: index for index, key in enumerate(distinct)}
    ordered = [places[tuple(sorted(key))] for key in product(range(4), repeat=degree)]
    return np.array(distinct), np.array(ordered)


_PAIRS, PAIR_PLACES = _monomials(2)

_QUADRUPLES, QUADRUPLE_PLACES = _monomials(4)


def pair_products(rows: Array) -> Array:
    """The ten products v_a v_b of each row."""
    return np.asarray(rows[:, _PAIRS].prod(axis=2))


def quadruple_products(rows: Array) -> Array:
    """The 35 products of four of each row."""
    return np.asarray(rows[:, _QUADRUPLES].prod(axis=2))


def outer(a: Array, b: Array) -> Array:
    """a_k b_l of each row, sixteen numbers: the coefficients of (a.v)(b.v)."""
    return np.asarray((a[:, :, None] * b[:, None, :]).reshape(len(a), 16))


# Averages without derivatives.


def _averages(sites: Sites, d: float, y: float, qhat: Array) -> Moments:
    r"""Averages without derivatives: one logarithm and one exponential of each pair.

    All squares are of the form :math:`(a_i \cdot v_j)^2/\zeta_{ij}^2`, so the matrix
    :math:`\zeta^{y-2}` is multiplied once by the products v v of the second site.
    """
    one, two, log_scale = sites.one, sites.two, sites.log_scale
    layers = range(qhat.size)
    # One site is divided by the scale, so that powers of zeta stay in range.
    columns = two.rows.T * math.exp(-log_scale)
    products = pair_products(two.rows)
    if 1 in layers:
        products = np.hstack([products, pair_products(two.slopes)])
    products *= two.weight[:, None] * math.exp(-2 * log_scale)
    missing = two.weight * two.missing
    square = np.empty((len(one.rows), products.shape[1]))
    # Sums over j of zeta^y times what is missing in its logarithm.
    line = np.empty(len(one.rows))
    total_log = 0.0
    apart = y < 1  # some weights are not folded in
    for block in blocks(len(one.rows), len(two.rows)):
        zeta = one.rows[block] @ columns
        log_zeta = np.log(zeta)
        weight = log_zeta * (y - 2)
        np.exp(weight, out=weight)
        np.matmul(weight, products, out=square[block])
        weight *= zeta
        weight *= zeta
        np.matmul(weight, missing, out=line[block])
        if apart:
            weight *= one.weight[block, None] * two.weight
        total_log += float(np.vdot(weight, log_zeta))
    square *= one.weight[:, None]
    # Sums over j of zeta^y itself: zeta is a form of the same kind, that of the rows.
    whole = (square[:, PAIR_PLACES] * outer(one.rows, one.rows)).sum(axis=1)
    total = float(whole.sum())
    mean_log = total_log + log_scale * total + float(line @ one.weight) + float(whole @ one.missing)

    def mean_product(a: Array, b: Array, which: int = 0) -> float:
        """Average of (a_i.v_j) (b_i.v_j)/zeta^2, v being rows (0) or slopes (1)."""
        part = square[:, 10 * which : 10 * which + 10][:, PAIR_PLACES]
        return float(np.vdot(part, outer(a, b))) / total

    def one_minus_m2(k: int) -> float:
        """<1 - m_k^2>, 1 - m^2 being four times the product of the chances of s_k = 1 and -1."""
        up = (FIRST, SECOND)[k] > 0
        return 4 * mean_product(one.rows * up, one.rows * ~up)

    def force(k: int) -> float:
        rows = (one.slopes, one.rows)[k]
        return mean_product(rows, rows, which=k)

    return Moments(
        d=d,
        y=y,
        qhat=np.array(qhat, dtype=float),
        layers=2,
        log_norm=math.log(total) + y * (log_scale + one.shift + two.shift),
        mean_log=mean_log / total,
        one_minus_m2=np.array([one_minus_m2(k) for k in layers]),
        force=np.array([force(k) for k in layers]),
        size=len(one.rows) * len(two.rows),
    )


# Averages with their derivatives in y and qhat.

#: Rows of the Gram matrix; 1 - m^2 and the forces have one row for each layer.
_ONE, _LOG, _ONE_MINUS_M2, _CHI, _PRODUCT, _FORCE = 0, 1, 2, 4, 5, 6

_OBSERVABLES = 8


def tangent_averages(sites: Sites, d: float, y: float, qhat: Array) -> Moments:
    """Averages over all pairs of nodes, for the layers that have a qhat, with derivatives."""
    one, two, log_scale = sites.one, sites.two, sites.log_scale
    kept = list(range(qhat.size))
    gram = _gram(one, two, y, log_scale, 1 in kept)
    total = float(gram[_ONE, _ONE])
    gram /= total
    shift = log_scale + one.shift + two.shift
    one_minus_m2 = gram[_ONE, _ONE_MINUS_M2 : _ONE_MINUS_M2 + 2]
    force = np.diag(gram)[_FORCE : _FORCE + 2]
    return Moments(
        d=d,
        y=y,
        qhat=np.array(qhat, dtype=float),
        layers=2,
        log_norm=math.log(total) + y * shift,
        mean_log=float(gram[_ONE, _LOG]),
        one_minus_m2=one_minus_m2[kept],
        force=force[kept],
        size=len(one.rows) * len(two.rows),
        tangent=_tangent(gram, y, kept),
    )


def _gram(one: Site, two: Site, y: float, log_scale: float, both: bool) -> Array:
    """Average the products of observables that are needed; the force of layer 2 if `both`."""
    pairs, with_log, with_slopes, fourth, log_square = _sums(one, two, y, log_scale, both)
    rows, n = one.rows, len(one.rows)
    up, right = FIRST > 0, SECOND > 0
    # 1 - m^2 is four times the product of the chances of both signs; the connected correlation is
    # 4 (p_++ p_-- - p_+- p_-+).
    connected = np.zeros((n, 16))
    connected[:, 3] = 4 * rows[:, 0] * rows[:, 3]
    connected[:, 6] = -4 * rows[:, 1] * rows[:, 2]
    forms = {
        _ONE_MINUS_M2: 4 * outer(rows * up, rows * ~up),
        _ONE_MINUS_M2 + 1: 4 * outer(rows * right, rows * ~right),
        _CHI: connected,
        _PRODUCT: outer(rows * FIRST, rows * SECOND),
    }
    stacked = np.stack(list(forms.values()), axis=1)
    halves = (stacked @ fourth[:, QUADRUPLE_PLACES].reshape(n, 16, 16), stacked)
    left, right_half = (x.transpose(1, 0, 2).reshape(len(forms), -1) for x in halves)
    gram = np.zeros((_OBSERVABLES, _OBSERVABLES))
    gram[np.ix_(list(forms), list(forms))] = left @ right_half.T
    whole = outer(rows, rows)
    for place, form in ((_ONE, whole), *forms.items()):
        gram[_ONE, place] = np.vdot(pairs[:, PAIR_PLACES], form)
        gram[_LOG, place] = np.vdot(with_log[:, PAIR_PLACES], form)
    gram[_ONE, _LOG], gram[_LOG, _LOG] = gram[_LOG, _ONE], log_square
    gram[_FORCE, _FORCE] = np.vdot(pairs[:, PAIR_PLACES], outer(one.slopes, one.slopes))
    if both:
        gram[_FORCE + 1, _FORCE + 1] = np.vdot(with_slopes[:, PAIR_PLACES], whole)
    return gram


def _sums(
    one: Site, two: Site, y: float, log_scale: float, both: bool
) -> tuple[Array, Array, Array, Array, float]:
    r"""Sums over the second site, one row for each node of the first.

    :math:`\zeta^{y-2}` times vv, the same times log zeta, times the products of the slopes,
    :math:`\zeta^{y-4}` times vvvv; and the sum of zeta^y log^2 zeta over all pairs.
    """
    columns, n = two.rows.T.copy(), len(one.rows)
    second = pair_products(two.rows)
    third = pair_products(two.slopes) if both else second[:, :0]
    products, fourth_products = np.hstack([second, third]), quadruple_products(two.rows)
    pairs, with_log = np.empty((n, products.shape[1])), np.empty((n, 10))
    fourth = np.empty((n, fourth_products.shape[1]))
    log_square = 0.0
    for block in blocks(n, len(two.rows)):
        zeta = one.rows[block] @ columns
        log_zeta = np.log(zeta)
        weight = log_zeta * (y - 4)
        weight -= y * log_scale
        np.exp(weight, out=weight)
        if y < 1:
            weight *= one.weight[block, None] * two.weight
        np.matmul(weight, fourth_products, out=fourth[block])
        zeta *= zeta
        weight *= zeta
        np.matmul(weight, products, out=pairs[block])
        log_zeta += one.missing[block, None]
        log_zeta += two.missing
        weight *= log_zeta
        np.matmul(weight, second, out=with_log[block])
        weight *= zeta
        log_square += float(np.vdot(weight, log_zeta))
    return pairs[:, :10], with_log, pairs[:, 10:], fourth, log_square


def _tangent(gram: Array, y: float, layers: list[int]) -> Tangent:
    """Assemble the derivatives from the averages of products."""
    mean_log = float(gram[_ONE, _LOG])
    one_minus_m2 = gram[_ONE, _ONE_MINUS_M2 : _ONE_MINUS_M2 + 2]
    one_minus_m2_log = gram[_LOG, _ONE_MINUS_M2 : _ONE_MINUS_M2 + 2]
    # (zeta^y)''/zeta^y = y^2 m_k^2 + y (1 - m_k^2), the derivatives being in h_k; the constant
    # part y^2 drops out of all covariances.
    bend = y - y * y
    curved = bend * one_minus_m2
    log_curved = bend * one_minus_m2_log + 2 * y * (1 - one_minus_m2) + one_minus_m2
    one_minus_m2_curved = np.empty((2, 2))
    for layer in (0, 1):
        for k in (0, 1):
            both = gram[_ONE_MINUS_M2 + layer, _ONE_MINUS_M2 + k]
            if layer == k:
                # dm_k/dh_k = 1 - m_k^2
                product_chi, chi_chi = one_minus_m2[k] - both, both
            else:
                product_chi, chi_chi = gram[_CHI, _PRODUCT], gram[_CHI, _CHI]
            # The second derivative of m_layer^2 is 2 chi^2 - 4 m_layer m_k chi.
            one_minus_m2_curved[layer, k] = bend * both - 4 * (y - 1) * product_chi - 2 * chi_chi
    # One entry that stands for both layers moves both qhat at once.
    fold = np.ones((2, 1)) if len(layers) == 1 else np.eye(2)
    overlap_q = 0.5 * (np.outer(one_minus_m2, curved) - one_minus_m2_curved) @ fold
    return Tangent(
        mean_log_y=float(gram[_LOG, _LOG]) - mean_log**2,
        mean_log_q=0.5 * (log_curved - mean_log * curved) @ fold,
        log_norm_q=0.5 * (y * y + curved) @ fold,
        overlap_y=(one_minus_m2 * mean_log - one_minus_m2_log)[layers],
        overlap_q=overlap_q[layers],
    )


# Stability of q0 = 0.

#: Relative step of the differences that give the derivatives of M0 in y and qhat.
_DIFFERENCE = 1e-5


def pair_q0_at(chain: Chain, point: Refined) -> Estimate:
    """Least eigenvalue of M0 at a solved point, the errors of its y and qhat included.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> from rmtheory.local_entropies.solve import CurveTracker
    >>> from rmtheory.local_entropies.solve import functional
    >>> chain = Chain(2, jd=0.05, lam=0.3)
    >>> point = CurveTracker(functional(chain)).solve(0.1, 1e-9)
    >>> print(pair_q0_at(chain, point).rounded(5))
    -0.044009 ± 6e-7
    """
    moments, coarse = point.moments, point.level - 1

    def least(y: float, qhat: Array, level: int) -> tuple[float, float]:
        matrix, error = pair_m0(chain, moments.d, y, qhat, level)
        return float(np.linalg.eigvalsh(matrix)[0]), 2 * error

    value, error = least(moments.y, moments.qhat, point.level)
    before, _ = least(moments.y, moments.qhat, coarse)
    error += abs(value - before)
    moved, _ = least(moments.y * (1 + _DIFFERENCE), moments.qhat, coarse)
    error += abs(moved - before) * point.y_error / (_DIFFERENCE * moments.y)
    for k, qhat_error in enumerate(point.qhat_error):
        qhat = moments.qhat.copy()
        qhat[k] *= 1 + _DIFFERENCE
        moved, _ = least(moments.y, qhat, coarse)
        error += abs(moved - before) * float(qhat_error) / (_DIFFERENCE * float(moments.qhat[k]))
    method = "least eigenvalue of the q0 stability, two levels of quadrature"
    return Estimate(value, error, Tier.ESTIMATED, method)


def pair_m0(chain: Chain, d: float, y: float, qhat: Array, level: int) -> tuple[Array, float]:
    """Return the matrix M0, and the error of its entries by rounding and the nodes dropped.

    Parameters
    ----------
    chain : Chain
        Two layers.
    d, y : float
        Distance and y.
    qhat : array
        The solution of <m_l^2>_y = q1: two numbers, or one that stands for both layers.
    level : int
        Level of the quadrature.
    """
    A, K, Gamma = second_order(chain, d, y, qhat, level)
    cross = y * y * np.eye(2) - K**2
    stiff = np.linalg.solve(A**2, cross)
    # Relative errors of the moments are multiplied by the terms that cancel.
    cross_size = y * y + K**2
    size = cross_size.T @ np.abs(np.linalg.inv(A**2)) @ cross_size
    size += (np.abs(Gamma) + 1 / (1 - 2 * d)) ** 2
    unit = 64 * float(np.finfo(float).eps) + 2 * DROPPED[level]
    return np.asarray(cross.T @ stiff - Gamma**2), unit * float(size.max())


def second_order(
    chain: Chain, d: float, y: float, qhat: Array, level: int
) -> tuple[Array, Array, Array]:
    """Return A, K and Gamma from the second moments of the fields."""
    variance = np.array([qhat[0], qhat[-1], 1 - 2 * d, 1 - 2 * d])
    moments = field_moments(chain, d, y, qhat, level)
    second = moments / np.outer(variance, variance) - np.diag(1 / variance)
    return second[:2, :2], second[:2, 2:], second[2:, 2:]


def field_moments(chain: Chain, d: float, y: float, qhat: Array, level: int) -> Array:
    """Return <u u^T>_y of the fields u = (h_1, h_2, x_1, x_2)."""
    with one_thread():
        sites = make_sites(chain.jd, chain.lam_left, chain.lam_right, d, y, qhat, level)
        one, two, log_scale = sites.one, sites.two, sites.log_scale
        check_size(len(one.rows) * len(two.rows), 400_000_000)
        # Sums over the second site of 1, h, x and their products, for each node of the first.
        h, x = two.fields.T
        columns = np.stack([np.ones_like(h), h, x, h * h, h * x, x * x], axis=1)
        columns *= two.weight[:, None]
        sums = np.empty((len(one.rows), 6))
        for block in blocks(len(one.rows), len(two.rows)):
            sums[block] = powers(one.rows[block] @ two.rows.T, y, log_scale) @ columns
        sums *= one.weight[:, None]
    own = one.fields.T @ (sums[:, :1] * one.fields)
    cross = one.fields.T @ sums[:, 1:3]
    hh, hx, xx = sums[:, 3:].sum(axis=0)
    moments = np.array(
        [
            [own[0, 0], cross[0, 0], own[0, 1], cross[0, 1]],
            [cross[0, 0], hh, cross[1, 0], hx],
            [own[0, 1], cross[1, 0], own[1, 1], cross[1, 1]],
            [cross[0, 1], hx, cross[1, 1], xx],
        ]
    )
    return np.asarray(moments / sums[:, 0].sum())


#: Most pairs of a node of the first site and a node in x of the second.
MOST_NESTED = 200_000_000

#: Step of the table of these integrals, in the variable asinh(beta gamma).
_TABLE_STEP = 0.02


@dataclass(frozen=True, eq=False)
class _SecondTilt:
    r"""Averages over t of the second site as functions of gamma = log(g_+/g_-)/2.

    g_s is the sum over s_1 at s_2 = s, and the measure is exp(-t^2/2) cosh(gamma + h)^y: the
    logarithm of its norm without y^2 qhat/2, <log 2 cosh(gamma + h)> - y qhat, and the averages of
    m = tanh(gamma + h) and 1 - m^2.
    """

    y: float
    beta: float
    largest: float
    spline: Callable[[Array], Array]

    @classmethod
    def make(cls, qhat: float, y: float, level: int) -> _SecondTilt:
        """Tabulate the averages for all gamma up to where they no longer change."""
        root = math.sqrt(qhat)
        beta = max(y, 1.0)
        largest = root * (y * root + REACH) + 20.0
        s = np.linspace(0.0, math.asinh(beta * largest), 2)
        count = math.ceil(s[1] / (_TABLE_STEP * STEPS[level]))
        s = np.linspace(0.0, s[1], count + 1)
        gamma = np.sinh(s) / beta
        rows = []
        # A few hundred gamma at once, so that the arrays stay small.
        for part in np.array_split(gamma, math.ceil(gamma.size / 200)):
            nodes = tilt_windows(qhat, y, part, min(0.4, STEPS[level]) * min(1.0, 1.5 / root))
            u = root * nodes.at + part
            decay = np.exp(-2 * np.abs(u))
            near = np.abs(u) - root * np.abs(nodes.at) + np.log1p(decay)
            exponent = y * (near - part) + nodes.log_peak
            top = exponent.max(axis=0)
            weight = np.exp(exponent - top)
            total = weight.sum(axis=0)
            weight /= total
            below = np.copysign((1 - decay) / (1 + decay), u)
            rows.append(
                [
                    np.log(total) + top,
                    (weight * (near - part + root * nodes.excess)).sum(axis=0),
                    (weight * below).sum(axis=0),
                    (weight * 4 * decay / (1 + decay) ** 2).sum(axis=0),
                ]
            )
        values = np.concatenate([np.stack(row) for row in rows], axis=1)
        return cls(y, beta, largest, _even_spline(s, gamma, values, y, beta))

    def __call__(self, gamma: Array) -> tuple[Array, Array, Array, Array]:
        """Return the four averages at `gamma`."""
        size = np.minimum(np.abs(gamma), self.largest)
        beyond = np.abs(gamma) - size
        norm, log, odd, rest = np.moveaxis(self.spline(np.arcsinh(self.beta * size)), -1, 0)
        smooth = np.sqrt(size * size + self.beta**-2)
        norm = norm + self.y * (smooth + beyond)
        return norm, log + smooth + beyond, np.copysign(odd, gamma), rest


def _even_spline(
    s: Array, gamma: Array, values: Array, y: float, beta: float
) -> Callable[[Array], Array]:
    """Spline in s of the averages, without the part that grows with gamma."""
    from scipy.interpolate import make_interp_spline

    smooth = np.sqrt(gamma * gamma + beta**-2)
    # gamma - sqrt(gamma^2 + 1/beta^2), without subtracting the one from the other
    less = -(beta**-2) / (gamma + smooth)
    half = values + np.stack([y * less, less, 0 * less, 0 * less])
    parity = np.array([1.0, 1.0, -1.0, 1.0])[:, None]
    both = np.concatenate([parity * half[:, :0:-1], half], axis=1)
    line = np.concatenate([-s[:0:-1], s])
    spline: Callable[[Array], Array] = make_interp_spline(line, both.T, k=5)
    return spline


def nested_averages(
    sites: Sites, d: float, y: float, qhat: Array, level: int, nodes_y: float
) -> Moments:
    r"""Averages with t of the second site done first, for where the pairs are too many.

    At given s_2 = s the first site and x of the second leave :math:`g_s = \sum_{s_1} U_i(s_1, s)
    P'(s_1, s)`; the rest depends on gamma alone. With m = tanh(gamma + h) the chance of s_2 = +-1
    is (1 +- m)/2, so that all averages without derivatives are of second degree in m.
    """
    one, layers = sites.one, range(qhat.size)
    jd, lam = sites.couplings
    sigma = math.sqrt(2 * d)
    fields = field_nodes(1 - 2 * d, (jd + lam, jd - lam), field_step(level, nodes_y))
    present = np.unique(sites.two.fields[:, 1])
    kept = np.isin(fields.at, present)
    x, log_weight = fields.at[kept], fields.log_weight[kept]
    argument = (jd + lam * FIRST * SECOND + SECOND * x[:, None]) / sigma
    columns, steep = P(argument).T, (SECOND * n(argument) / sigma).T
    tilt = _SecondTilt.make(float(qhat[-1]), y, level)
    check_size(len(one.rows) * x.size, MOST_NESTED)
    up, down = (0, 2), (1, 3)  # states with s_2 = 1 and s_2 = -1; s_1 = 1 comes first
    sums = np.zeros(6)
    largest = -math.inf
    with np.errstate(divide="ignore"):
        log_apart = np.log(one.weight)[:, None]
    for block in blocks(len(one.rows), x.size):
        rows, slopes = one.rows[block], one.slopes[block]
        parts = [[rows[:, [k]] * columns[k] for k in states] for states in (up, down)]
        g = [np.maximum(a + b, 1e-300) for a, b in parts]
        logs = [np.log(values) for values in g]
        gamma = 0.5 * (logs[0] - logs[1])
        norm, log, m, c = tilt(gamma)
        middle = 0.5 * (logs[0] + logs[1])
        exponent = y * middle + norm + log_weight + log_apart[block]
        top = float(exponent.max())
        if top > largest:
            sums *= math.exp(largest - top)
            largest = top
        weight = np.exp(exponent - largest)
        # <(1 +- m)^2>
        a, b = 2 * (1 + m) - c, 2 * (1 - m) - c
        share = [[part / whole for part in pair] for pair, whole in zip(parts, g, strict=True)]
        (plus_up, minus_up), (plus_down, minus_down) = share
        mixed = plus_up * minus_down + plus_down * minus_up
        first = a * plus_up * minus_up + b * plus_down * minus_down + c * mixed
        forces = []
        for which in layers:
            left, right = ((slopes, columns), (rows, steep))[which]
            f, f_down = (
                (left[:, [i]] * right[i] + left[:, [j]] * right[j]) / whole
                for (i, j), whole in zip((up, down), g, strict=True)
            )
            forces.append(0.25 * (a * f * f + b * f_down * f_down + 2 * c * f * f_down))
        log_zeta = middle + log + one.missing[block, None]
        values = [np.ones_like(c), log_zeta, first, c, *forces]
        for k, value in enumerate(values):
            sums[k] += float(np.vdot(weight, value))
    total = float(sums[0])
    mean = sums / total
    return Moments(
        d=d,
        y=y,
        qhat=np.array(qhat, dtype=float),
        layers=2,
        log_norm=math.log(total) + largest + y * one.shift,
        mean_log=float(mean[1]),
        one_minus_m2=mean[2 : 2 + qhat.size].copy(),
        force=mean[4 : 4 + qhat.size].copy(),
        size=len(one.rows) * x.size,
    )


#: Relative step of the differences that stand for derivatives where t is integrated beforehand.
_FORWARD = 1e-3


def differences(at: Callable[[float, Array], Moments], here: Moments) -> Tangent:
    """Derivatives by differences: good enough for Newton's method."""
    y, qhat, folded = here.y, here.qhat, here.multiplicity
    by_y = at(y * (1 + _FORWARD), qhat)
    step = y * _FORWARD
    mean_log_q, overlap_q = np.empty(qhat.size), np.empty((qhat.size, qhat.size))
    for k in range(qhat.size):
        moved = qhat.copy()
        moved[k] *= 1 + _FORWARD
        by_q = at(y, moved)
        change = float(moved[k] - qhat[k])
        mean_log_q[k] = (by_q.mean_log - here.mean_log) / change + y * folded
        overlap_q[:, k] = (here.one_minus_m2 - by_q.one_minus_m2) / change
    return Tangent(
        mean_log_y=(by_y.mean_log - here.mean_log) / step + float(qhat.sum()) * folded,
        mean_log_q=mean_log_q,
        log_norm_q=0.5 * folded * (y * y + (y - y * y) * here.one_minus_m2),
        overlap_y=(here.one_minus_m2 - by_y.one_minus_m2) / step,
        overlap_q=overlap_q,
    )
