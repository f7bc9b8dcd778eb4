r"""Averages of the two-layer chain together with their derivatives in y and qhat.

The derivatives need averages of products of two of the observables

.. math:: 1, \quad \log\zeta, \quad m_1^2, \quad m_2^2, \quad p = \langle s_1 s_2\rangle, \quad
    m_1 m_2, \quad \partial_{x_l}\log\zeta ,

that is, the Gram matrix of these under the tilted measure.
"""

from __future__ import annotations

import math

import numpy as np

from rmtheory.gaussian import Array
from rmtheory.local_entropy.moments import Moments, Tangent
from rmtheory.local_entropy.pair_sites import FIRST, SECOND, Site, blocks

#: Rows of the Gram matrix; the squares and the forces have one row for each layer.
_ONE, _LOG, _SQUARE, _PAIR, _PRODUCT, _FORCE = 0, 1, 2, 4, 5, 6
_OBSERVABLES = 8


def tangent_averages(
    one: Site,
    two: Site,
    q1: float,
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
    overlap = gram[_ONE, _SQUARE : _SQUARE + 2]
    force = np.diag(gram)[_FORCE : _FORCE + 2]
    kept = list(layers)
    return Moments(
        q1=q1,
        y=y,
        qhat=np.array(qhat, dtype=float),
        layers=2,
        log_norm=math.log(total) + y * shift,
        mean_log=float(gram[_ONE, _LOG]),
        overlap=overlap[kept],
        force=force[kept],
        size=len(one.rows) * len(two.rows),
        tangent=_tangent(gram, y, kept),
    )


def _gram(one: Site, two: Site, y: float, log_scale: float) -> Array:
    """Sum the products of observables over the pairs, with the weight (zeta/scale)^y."""
    columns, slopes = two.rows.T.copy(), two.slopes.T.copy()
    gram = np.zeros((_OBSERVABLES, _OBSERVABLES))
    for block in blocks(len(one.rows), _OBSERVABLES * len(two.rows)):
        rows = one.rows[block]
        zeta = rows @ columns
        log_zeta = np.log(zeta)
        root = np.exp((0.5 * y) * (log_zeta - log_scale))
        inverse = root / zeta
        observables = np.empty((_OBSERVABLES, *zeta.shape))
        first = ((rows * FIRST) @ columns) / zeta
        second = ((rows * SECOND) @ columns) / zeta
        observables[_ONE] = root
        observables[_LOG] = (log_zeta - one.folded[block, None] - two.folded) * root
        observables[_SQUARE] = first * first * root
        observables[_SQUARE + 1] = second * second * root
        observables[_PAIR] = ((rows * (FIRST * SECOND)) @ columns) * inverse
        observables[_PRODUCT] = first * second * root
        observables[_FORCE] = (one.slopes[block] @ columns) * inverse
        observables[_FORCE + 1] = (rows @ slopes) * inverse
        flat = observables.reshape(_OBSERVABLES, -1)
        gram += flat @ flat.T
    return gram


def _tangent(gram: Array, y: float, layers: list[int]) -> Tangent:
    """Assemble the derivatives from the averages of products."""
    mean_log = float(gram[_ONE, _LOG])
    square = gram[_ONE, _SQUARE : _SQUARE + 2]
    square_log = gram[_LOG, _SQUARE : _SQUARE + 2]
    # (zeta^y)''/zeta^y = y^2 m_k^2 + y (1 - m_k^2), the derivatives being in h_k.
    curved = y * y * square + y * (1 - square)
    curved_log = y * y * square_log + y * (mean_log - square_log)
    log_curved = curved_log + 2 * y * square + 1 - square
    overlap_curved = np.empty((2, 2))
    for layer in (0, 1):
        for k in (0, 1):
            both = gram[_SQUARE + layer, _SQUARE + k]
            if layer == k:
                # chi = dm_k/dh_k = 1 - m_k^2
                product_chi = square[k] - both
                chi_chi = 1 - 2 * square[k] + both
            else:
                # chi = dm_1/dh_2 = p - m_1 m_2
                product_chi = gram[_PAIR, _PRODUCT] - both
                chi_chi = gram[_PAIR, _PAIR] - 2 * gram[_PAIR, _PRODUCT] + both
            # The second derivative of m_layer^2 is 2 chi^2 - 4 m_layer m_k chi.
            curvature_square = y * y * both + y * (square[layer] - both)
            overlap_curved[layer, k] = curvature_square + 4 * (y - 1) * product_chi + 2 * chi_chi
    # One entry that stands for both layers moves both qhat at once.
    fold = np.ones((2, 1)) if len(layers) == 1 else np.eye(2)
    overlap_q = 0.5 * (overlap_curved - np.outer(square, curved)) @ fold
    return Tangent(
        mean_log_y=float(gram[_LOG, _LOG]) - mean_log**2,
        mean_log_q=0.5 * (log_curved - mean_log * curved) @ fold,
        log_norm_q=0.5 * curved @ fold,
        overlap_y=(square_log - square * mean_log)[layers],
        overlap_q=overlap_q[layers],
    )
