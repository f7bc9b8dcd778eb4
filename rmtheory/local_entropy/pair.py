r"""Tilted averages of the two-layer chain (L = 2), in float64.

The two sites meet only through their spins: with one row of four numbers per node (t, x) of each
site,

.. math:: \zeta_{ij} = \sum_{s_1 s_2} U_i(s_1, s_2)\, U'_j(s_1, s_2), \qquad
    U_i = e^{s_1 h_i} P\Big(\frac{J_D + \lambda_R s_1 s_2 + s_1 x_i}{\sigma}\Big),

so zeta on all pairs of nodes is a product of rank four, followed by a logarithm and an exponential
of each entry; m_1, m_2 and the derivatives in x are further products of the same kind. The weights
are folded into U as w^{1/y}. Nodes that carry nothing are dropped beforehand, judged by their
share of a coarse evaluation, and the flip of all spins halves the first site.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import numpy as np
from threadpoolctl import ThreadpoolController

from rmtheory.gaussian import Array
from rmtheory.local_entropy.moments import Moments
from rmtheory.local_entropy.nodes import COARSEST, STEPS, check_size, field_step
from rmtheory.local_entropy.pair_products import PAIR_PLACES, outer, pair_products
from rmtheory.local_entropy.pair_sites import (
    FIRST,
    SECOND,
    Site,
    blocks,
    heavy,
    make_site,
    powers,
    prune,
)
from rmtheory.local_entropy.pair_tangent import tangent_averages

#: Share of the total that pruning may drop, by level.
DROPPED = (1e-6, 1e-8, 1e-11, 1e-13, 1e-15, 1e-16, 1e-16)

#: Share of a sparse rule that is left out when it judges the nodes of the other site.
UNJUDGED = 1e-4


def pair_moments(
    jd: float,
    lam_left: float,
    lam_right: float,
    d: float,
    y: float,
    qhat: Array,
    level: int,
    tangent: bool = False,
) -> Moments:
    """Averages of the two-layer chain at (d, y, qhat).

    With lam_left = lam_right the layers are mirror images, and `qhat` may have a single entry
    that stands for both; otherwise it has two.
    """
    with one_thread():
        one, two, log_scale = pair_sites(jd, lam_left, lam_right, d, y, qhat, level)
        layers = (0,) if qhat.size == 1 else (0, 1)
        averages = tangent_averages if tangent else _averages
        return averages(one, two, d, y, qhat, layers, log_scale)


def pair_sites(
    jd: float, lam_left: float, lam_right: float, d: float, y: float, qhat: Array, level: int
) -> tuple[Site, Site, float]:
    """Return the nodes of both sites that matter, and the logarithm of the scale of zeta."""
    lams, qhats = (lam_right, lam_left), (float(qhat[0]), float(qhat[-1]))

    def site(which: int, step: float, tilt_step: float) -> Site:
        return make_site(which, jd, lams[which], d, y, qhats[which], step, tilt_step)

    # Sparse rules tell which nodes matter: first each other's, then those of the full rules.
    sparse = [site(which, COARSEST, COARSEST) for which in (0, 1)]
    # They come close to the largest zeta, whose power sets the scale of the weights.
    zeta = sparse[0].rows @ sparse[1].rows.T
    log_scale = math.log(float(zeta.max()))
    shares = powers(zeta, y, log_scale)
    shares *= np.outer(sparse[0].weight, sparse[1].weight)
    judges = [sparse[k].take(heavy(shares.sum(axis=1 - k), UNJUDGED)) for k in (0, 1)]
    one, two = (
        prune(
            site(which, field_step(level, y), STEPS[level]),
            judges[1 - which],
            y,
            log_scale,
            DROPPED[level],
        )
        for which in (0, 1)
    )
    check_size(len(one.rows) * len(two.rows), 400_000_000)
    return one, two, log_scale


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit the linear algebra: for thin matrices threads would cost more than they bring."""
    with _linear_algebra().limit(limits=1):
        yield


@lru_cache(maxsize=1)
def _linear_algebra() -> ThreadpoolController:
    return ThreadpoolController()


def _averages(
    one: Site,
    two: Site,
    d: float,
    y: float,
    qhat: Array,
    layers: tuple[int, ...],
    log_scale: float,
) -> Moments:
    r"""Averages without derivatives: one logarithm and one exponential of each pair.

    All squares are of the form :math:`(a_i \cdot v_j)^2/\zeta_{ij}^2`, so the matrix
    :math:`\zeta^{y-2}` is multiplied once by the products v v of the second site.
    """
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

    def rest(k: int) -> float:
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
        rest=np.array([rest(k) for k in layers]),
        force=np.array([force(k) for k in layers]),
        size=len(one.rows) * len(two.rows),
    )
