r"""Averages of the two-layer chain together with their derivatives in y and qhat.

The derivatives need averages of products of two of the observables

.. math:: 1, \quad \log\zeta, \quad 1 - m_1^2, \quad 1 - m_2^2, \quad
    \chi = \langle s_1 s_2\rangle - m_1 m_2, \quad m_1 m_2, \quad \partial_{x_l}\log\zeta ,

that is, the Gram matrix of these under the tilted measure.
"""

from __future__ import annotations

import math

import numpy as np

from rmtheory.gaussian import Array
from rmtheory.local_entropy.moments import Moments, Tangent
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
    gram = _gram(one, two, y, log_scale)
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


def _gram(one: Site, two: Site, y: float, log_scale: float) -> Array:
    """Sum the products of observables over the pairs, with the weight (zeta/scale)^y."""
    columns, slopes = two.rows.T.copy(), two.slopes.T.copy()
    gram = np.zeros((_OBSERVABLES, _OBSERVABLES))
    for block in blocks(len(one.rows), _OBSERVABLES // 2 * len(two.rows)):
        rows = one.rows[block]
        zeta = rows @ columns
        log_zeta = np.log(zeta)
        root = np.exp((0.5 * y) * (log_zeta - log_scale))
        inverse = root / zeta
        observables = np.empty((_OBSERVABLES, *zeta.shape))
        up, down = ((rows * (sign == FIRST)) @ columns for sign in (1, -1))
        right, left = ((rows * (sign == SECOND)) @ columns for sign in (1, -1))
        observables[_ONE] = root
        observables[_LOG] = (log_zeta + one.missing[block, None] + two.missing) * root
        observables[_REST] = 4 * up * down / zeta * inverse
        observables[_REST + 1] = 4 * right * left / zeta * inverse
        # p_++ p_-- - p_+- p_-+ is a quarter of the connected correlation.
        states = [np.outer(rows[:, k], columns[k]) for k in range(4)]
        connected = states[0] * states[3] - states[1] * states[2]
        observables[_CHI] = 4 * connected / zeta * inverse
        observables[_PRODUCT] = (up - down) * (right - left) / zeta * inverse
        observables[_FORCE] = (one.slopes[block] @ columns) * inverse
        observables[_FORCE + 1] = (rows @ slopes) * inverse
        flat = observables.reshape(_OBSERVABLES, -1)
        gram += flat @ flat.T
    return gram


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
