r"""The nodes of the two sites of a two-layer chain, and which of them matter.

One row of four numbers stands for each node (t, x) of a site, one for each state (s_1, s_2),

.. math:: U = w^{1/y} e^{s_1 h} P\Big(\frac{J_D + \lambda_R s_1 s_2 + s_1 x}{\sigma}\Big)

for the first site, with the weight w of the node folded in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rmtheory.gaussian import Array, log_P, n
from rmtheory.local_entropy.nodes import check_size, field_nodes, tilt_nodes

#: Columns of U: the four states (s_1, s_2).
FIRST = np.array([1.0, 1.0, -1.0, -1.0])
SECOND = np.array([1.0, -1.0, 1.0, -1.0])

#: Pairs handled at once: a few arrays of this size stay in the cache.
BLOCK = 1 << 14


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


def make_site(
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


def prune(site: Site, judge: Site, y: float, log_scale: float, dropped: float) -> Site:
    """Drop the nodes whose share of the integral, summed over a coarse `judge`, is negligible."""
    share = np.empty(len(site.rows))
    for block in blocks(len(site.rows), len(judge.rows)):
        share[block] = weights(site.rows[block], judge.rows, y, log_scale).sum(axis=1)
    return site.take(heavy(share, dropped))


def weights(one: Array, two: Array, y: float, log_scale: float) -> Array:
    """Return (zeta/scale)^y for all pairs of rows."""
    weight = one @ two.T
    with np.errstate(divide="ignore"):  # a far node may underflow to 0, and weighs nothing
        np.log(weight, out=weight)
    weight -= log_scale
    weight *= y
    return np.asarray(np.exp(weight, out=weight))


def heavy(share: Array, dropped: float) -> NDArray[np.bool_]:
    """Mark all nodes but the least ones that together have less than a fraction `dropped`."""
    order = np.argsort(share)
    gathered = np.cumsum(share[order])
    kept = np.ones(len(share), dtype=bool)
    kept[order[: int(np.searchsorted(gathered, dropped * gathered[-1]))]] = False
    return kept


def blocks(rows: int, columns: int) -> list[slice]:
    """Cut the rows of a matrix into pieces of about BLOCK entries."""
    step = max(1, BLOCK // columns)
    return [slice(start, start + step) for start in range(0, rows, step)]
