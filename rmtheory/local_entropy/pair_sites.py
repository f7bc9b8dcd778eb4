r"""The nodes of the two sites of a two-layer chain, and which of them matter.

One row of four numbers stands for each node (t, x) of a site, one for each state (s_1, s_2),

.. math:: U = w^{1/y} e^{s_1 h - |h|} P\Big(\frac{J_D + \lambda_R s_1 s_2 + s_1 x}{\sigma}\Big)

for the first site. The weight w of the node is folded in; it contains exp(-e^2/2) in place of
exp(-t^2/2), e = |t| - y sqrt(qhat), since exp(y |h| - t^2/2) = exp(y^2 qhat/2 - e^2/2).
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
    """Rows of one site, times exp(-shift), with the weights folded in as w^{1/y} if y >= 1.

    Below that w^{1/y} would underflow, and the weights are kept apart.
    """

    #: U, one row for each node
    rows: Array
    #: its derivative in x
    slopes: Array
    #: What is missing in log(U U') of log zeta - y (qhat_1 + qhat_2): the sum over both sites.
    missing: Array
    #: Weights that are not folded in, ones if y >= 1.
    weight: Array
    shift: float

    def take(self, kept: NDArray[np.bool_]) -> Site:
        """Return the nodes selected by the boolean array `kept`."""
        rows, slopes = self.rows[kept], self.slopes[kept]
        return Site(rows, slopes, self.missing[kept], self.weight[kept], self.shift)


def make_site(
    which: int,
    jd: float,
    lam: float,
    d: float,
    y: float,
    qhat: float,
    step: float,
    tilt_step: float,
) -> Site:
    """All nodes of the first (0) or second (1) site."""
    own, sigma = (FIRST, SECOND)[which], math.sqrt(2 * d)
    fields = field_nodes(1 - 2 * d, (jd + lam, jd - lam), step)
    tilts = tilt_nodes(qhat, y, tilt_step)
    check_size(fields.at.size * tilts.at.size, 2_000_000)
    x, weight = fields.at, fields.log_weight
    if which == 0:
        # The flip of all spins and fields: keep x >= 0 and count x > 0 twice.
        x, weight = x[x.size // 2 :], weight[x.size // 2 :] + math.log(2.0)
        weight[0] -= math.log(2.0)
    argument = (jd + lam * FIRST * SECOND + own * x[:, None]) / sigma
    h = math.sqrt(qhat) * tilts.at
    tilt = h[:, None] * own - np.abs(h)[:, None]
    log_rows = tilt[:, None, :] + log_P(argument)
    # The derivative keeps its own exponential, since P may underflow where n does not matter.
    slopes = np.exp(tilt)[:, None, :] * (own * n(argument) / sigma)
    log_weight = tilts.log_peak[:, None] + weight
    folded = log_weight / y if y >= 1 else np.zeros_like(log_weight)
    shift = float((folded + log_rows.max(axis=2)).max())
    folded -= shift
    missing = (math.sqrt(qhat) * tilts.excess)[:, None] - folded
    factor = np.exp(folded).reshape(-1, 1)
    rows = np.exp(log_rows).reshape(-1, 4) * factor
    apart = np.exp(log_weight - y * (folded + shift)).reshape(-1)
    return Site(rows, slopes.reshape(-1, 4) * factor, missing.reshape(-1), apart, shift)


def prune(site: Site, judge: Site, y: float, log_scale: float, dropped: float) -> Site:
    """Drop the nodes whose share of the integral, summed over a coarse `judge`, is negligible."""
    share = np.empty(len(site.rows))
    for block in blocks(len(site.rows), len(judge.rows)):
        share[block] = weights(site.rows[block], judge.rows, y, log_scale) @ judge.weight
    return site.take(heavy(share * site.weight, dropped))


def weights(one: Array, two: Array, y: float, log_scale: float) -> Array:
    """Return (zeta/scale)^y for all pairs of rows, without the weights kept apart."""
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
