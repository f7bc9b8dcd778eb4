r"""Averages of the two-layer chain together with their derivatives in y and qhat.

The derivatives need averages of products of two of the observables

.. math:: 1, \quad \log\zeta, \quad 1 - m_1^2, \quad 1 - m_2^2, \quad
    \chi = \langle s_1 s_2\rangle - m_1 m_2, \quad m_1 m_2, \quad \partial_{x_l}\log\zeta ,

that is, the Gram matrix of these under the tilted measure. All but the logarithm are forms of
second degree in the numbers of a node of the second site, divided by zeta or zeta^2.
"""

from __future__ import annotations

import math

import numpy as np

from rmtheory.gaussian import Array
from rmtheory.local_entropy.moments import Moments, Tangent
from rmtheory.local_entropy.pair_products import (
    PAIR_PLACES,
    QUADRUPLE_PLACES,
    outer,
    pair_products,
    quadruple_products,
)
from rmtheory.local_entropy.pair_sites import FIRST, SECOND, Site, blocks

#: Rows of the Gram matrix; 1 - m^2 and the forces have one row for each layer.
_ONE, _LOG, _REST, _CHI, _PRODUCT, _FORCE = 0, 1, 2, 4, 5, 6
_OBSERVABLES = 8


def tangent_averages(
    one: Site,
    two: Site,
    d: float,
    y: float,
    qhat: Array,
    layers: tuple[int, ...],
    log_scale: float,
) -> Moments:
    """Averages over all pairs of nodes, for the given layers, with derivatives."""
    gram = _gram(one, two, y, log_scale, 1 in layers)
    total = float(gram[_ONE, _ONE])
    gram /= total
    shift = log_scale + one.shift + two.shift
    rest = gram[_ONE, _REST : _REST + 2]
    force = np.diag(gram)[_FORCE : _FORCE + 2]
    kept = list(layers)
    return Moments(
        d=d,
        y=y,
        qhat=np.array(qhat, dtype=float),
        layers=2,
        log_norm=math.log(total) + y * shift,
        mean_log=float(gram[_ONE, _LOG]),
        rest=rest[kept],
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
        _REST: 4 * outer(rows * up, rows * ~up),
        _REST + 1: 4 * outer(rows * right, rows * ~right),
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
    rest = gram[_ONE, _REST : _REST + 2]
    rest_log = gram[_LOG, _REST : _REST + 2]
    # (zeta^y)''/zeta^y = y^2 m_k^2 + y (1 - m_k^2), the derivatives being in h_k; the constant
    # part y^2 drops out of all covariances.
    bend = y - y * y
    curved = bend * rest
    log_curved = bend * rest_log + 2 * y * (1 - rest) + rest
    rest_curved = np.empty((2, 2))
    for layer in (0, 1):
        for k in (0, 1):
            both = gram[_REST + layer, _REST + k]
            if layer == k:
                # dm_k/dh_k = 1 - m_k^2
                product_chi, chi_chi = rest[k] - both, both
            else:
                product_chi, chi_chi = gram[_CHI, _PRODUCT], gram[_CHI, _CHI]
            # The second derivative of m_layer^2 is 2 chi^2 - 4 m_layer m_k chi.
            rest_curved[layer, k] = bend * both - 4 * (y - 1) * product_chi - 2 * chi_chi
    # One entry that stands for both layers moves both qhat at once.
    fold = np.ones((2, 1)) if len(layers) == 1 else np.eye(2)
    overlap_q = 0.5 * (np.outer(rest, curved) - rest_curved) @ fold
    return Tangent(
        mean_log_y=float(gram[_LOG, _LOG]) - mean_log**2,
        mean_log_q=0.5 * (log_curved - mean_log * curved) @ fold,
        log_norm_q=0.5 * (y * y + curved) @ fold,
        overlap_y=(rest * mean_log - rest_log)[layers],
        overlap_q=overlap_q[layers],
    )
