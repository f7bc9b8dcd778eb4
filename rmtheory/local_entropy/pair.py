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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rmtheory.gaussian import Array, log_P, n
from rmtheory.local_entropy.moments import Moments, Tangent
from rmtheory.local_entropy.nodes import (
    COARSEST,
    STEPS,
    check_size,
    field_nodes,
    field_step,
    tilt_nodes,
)

#: Columns of U: the four states (s_1, s_2).
FIRST = np.array([1.0, 1.0, -1.0, -1.0])
SECOND = np.array([1.0, -1.0, 1.0, -1.0])

#: Share of the total that pruning may drop, by level.
DROPPED = (1e-6, 1e-8, 1e-11, 1e-13, 1e-15, 1e-16, 1e-16)

#: Share of a sparse rule that is left out when it judges the nodes of the other site.
UNJUDGED = 1e-4

#: Pairs handled at once: a few arrays of this size stay in the cache.
BLOCK = 1 << 15


@dataclass(frozen=True, eq=False)
class Site:
    """Rows of one site, its weights folded in as w^{1/y} exp(-shift)."""

    #: U, one row for each node
    rows: Array
    #: its derivative in x
    slopes: Array
    #: log of the folded factor, so that log zeta = log(U U') - folded - folded'
    folded: Array
    shift: float

    def take(self, kept: NDArray[np.bool_]) -> Site:
        """Return the nodes selected by the boolean array `kept`."""
        return Site(self.rows[kept], self.slopes[kept], self.folded[kept], self.shift)


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
    q1 = 1 - 2 * d
    lams, qhats = (lam_right, lam_left), (float(qhat[0]), float(qhat[-1]))

    def site(which: int, step: float, tilt_step: float) -> Site:
        return _site(which, jd, lams[which], q1, y, qhats[which], step, tilt_step)

    # Sparse rules tell which nodes matter: first each other's, then those of the full rules.
    sparse = [site(which, COARSEST, COARSEST) for which in (0, 1)]
    judges = [_prune(sparse[which], sparse[1 - which], y, UNJUDGED) for which in (0, 1)]
    one, two = (
        _prune(
            site(which, field_step(level, y), STEPS[level]), judges[1 - which], y, DROPPED[level]
        )
        for which in (0, 1)
    )
    check_size(len(one.rows) * len(two.rows), 400_000_000)
    layers = (0,) if qhat.size == 1 else (0, 1)
    return _averages(one, two, q1, y, qhat, layers, tangent)


def _site(
    which: int,
    jd: float,
    lam: float,
    q1: float,
    y: float,
    qhat: float,
    step: float,
    tilt_step: float,
) -> Site:
    """All nodes of the first (0) or second (1) site."""
    own, sigma = (FIRST, SECOND)[which], math.sqrt(1 - q1)
    fields = field_nodes(q1, (jd + lam, jd - lam), step)
    tilts = tilt_nodes(qhat, y, tilt_step)
    check_size(fields.at.size * tilts.at.size, 2_000_000)
    x, weight = fields.at, fields.log_weight
    if which == 0:
        # The flip of all spins and fields: keep x >= 0 and count x > 0 twice.
        x, weight = x[x.size // 2 :], weight[x.size // 2 :] + math.log(2.0)
        weight[0] -= math.log(2.0)
    argument = (jd + lam * FIRST * SECOND + own * x[:, None]) / sigma
    h = math.sqrt(qhat) * tilts.at
    log_rows = (h[:, None] * own)[:, None, :] + log_P(argument)
    # The derivative keeps its own exponential, since P may underflow where n does not matter.
    boost = np.exp((h[:, None] * own)[:, None, :])
    slopes = boost * (own * n(argument) / sigma)
    folded = (tilts.log_weight[:, None] + weight) / y
    shift = float((folded + log_rows.max(axis=2)).max())
    folded = (folded - shift).reshape(-1)
    factor = np.exp(folded)[:, None]
    rows = np.exp(log_rows).reshape(-1, 4) * factor
    return Site(rows, slopes.reshape(-1, 4) * factor, folded, shift)


def _prune(site: Site, other: Site, y: float, dropped: float) -> Site:
    """Drop the nodes whose share of the integral, summed over a coarse `other`, is negligible."""
    share = np.zeros(len(site.rows))
    for block in _blocks(len(site.rows), len(other.rows)):
        with np.errstate(divide="ignore"):  # a far node may underflow to 0, and weighs nothing
            share[block] = np.exp(y * np.log(site.rows[block] @ other.rows.T)).sum(axis=1)
    order = np.argsort(share)
    kept = np.ones(len(share), dtype=bool)
    kept[order[np.cumsum(share[order]) < dropped * share.sum()]] = False
    return site.take(kept)


def _blocks(rows: int, columns: int) -> list[slice]:
    step = max(1, BLOCK // columns)
    return [slice(start, start + step) for start in range(0, rows, step)]


def _averages(
    one: Site, two: Site, q1: float, y: float, qhat: Array, layers: tuple[int, ...], tangent: bool
) -> Moments:
    columns, slopes = two.rows.T.copy(), two.slopes.T.copy()
    blocks = _blocks(len(one.rows), len(two.rows))
    # zeta^y is at most (max F)^y: scaling by it keeps the exponentials in range.
    largest = max(float((one.rows[block] @ columns).max()) for block in blocks)
    sums = _Sums(len(layers), tangent)
    for block in blocks:
        rows = one.rows[block]
        zeta = rows @ columns
        log_zeta = np.log(zeta)
        weight = np.exp(y * (log_zeta - math.log(largest)))
        log_zeta -= one.folded[block, None]
        log_zeta -= two.folded
        np.divide(1.0, zeta, out=zeta)
        signed = (0, 1) if tangent else layers
        m = [(rows * (FIRST, SECOND)[k]) @ columns * zeta for k in signed]
        forces = [(one.slopes[block] @ columns if k == 0 else rows @ slopes) * zeta for k in layers]
        pair = (rows * (FIRST * SECOND)) @ columns * zeta if tangent else None
        sums.add(y, weight, log_zeta, m, forces, pair)
    log_scale = y * (math.log(largest) + one.shift + two.shift)
    return sums.moments(q1, y, qhat, log_scale, len(one.rows) * len(two.rows))


class _Sums:
    """Running sums of the weighted observables over the blocks of pairs."""

    def __init__(self, layers: int, tangent: bool) -> None:
        self.layers = layers
        self.weight = self.log = 0.0
        self.overlap, self.force = np.zeros(layers), np.zeros(layers)
        self.tangent = tangent
        self.log_square = 0.0
        self.overlap_log = np.zeros(layers)
        self.curved, self.log_curved = np.zeros(2), np.zeros(2)
        self.overlap_curved = np.zeros((layers, 2))

    def add(
        self,
        y: float,
        weight: Array,
        log_zeta: Array,
        m: list[Array],
        forces: list[Array],
        pair: Array | None,
    ) -> None:
        """Add one block; all arrays have the shape of the block."""

        def total(values: Array) -> float:
            return float(np.einsum("ij,ij->", weight, values))

        self.weight += float(weight.sum())
        self.log += total(log_zeta)
        squares = [x * x for x in m]
        for k in range(self.layers):
            self.overlap[k] += total(squares[k])
            self.force[k] += total(forces[k] * forces[k])
        if pair is None:
            return
        self.log_square += total(log_zeta * log_zeta)
        mixed = pair - m[0] * m[1]
        for k in (0, 1):
            rest = 1 - squares[k]
            curvature = y * y * squares[k] + y * rest
            self.curved[k] += total(curvature)
            self.log_curved[k] += total(curvature * log_zeta + 2 * y * squares[k] + rest)
            for layer in range(self.layers):
                # chi = d m_layer/d h_k; the second derivative of m^2 is 2 chi^2 - 4 m m chi.
                chi = rest if layer == k else mixed
                product = m[k] * m[layer] * chi
                self.overlap_curved[layer, k] += total(
                    curvature * squares[layer] + 4 * (y - 1) * product + 2 * chi * chi
                )
        for layer in range(self.layers):
            self.overlap_log[layer] += total(squares[layer] * log_zeta)

    def moments(self, q1: float, y: float, qhat: Array, log_scale: float, size: int) -> Moments:
        """Turn the sums into averages."""
        overlap, mean_log = self.overlap / self.weight, self.log / self.weight
        tangent = None
        if self.tangent:
            curved = self.curved / self.weight
            # One entry that stands for both layers moves both qhat at once.
            fold = np.ones((2, 1)) if self.layers == 1 else np.eye(2)
            overlap_q = 0.5 * (self.overlap_curved / self.weight - np.outer(overlap, curved))
            tangent = Tangent(
                mean_log_y=self.log_square / self.weight - mean_log**2,
                mean_log_q=0.5 * (self.log_curved / self.weight - mean_log * curved) @ fold,
                log_norm_q=0.5 * curved @ fold,
                overlap_y=self.overlap_log / self.weight - overlap * mean_log,
                overlap_q=overlap_q @ fold,
            )
        return Moments(
            q1=q1,
            y=y,
            qhat=np.array(qhat, dtype=float),
            layers=2,
            log_norm=math.log(self.weight) + log_scale,
            mean_log=mean_log,
            overlap=overlap,
            force=self.force / self.weight,
            size=size,
            tangent=tangent,
        )
