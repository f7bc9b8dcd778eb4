r"""The nodes of the two sites of a two-layer chain, and which of them matter.

One row of four numbers stands for each node (t, x) of a site, one for each state (s_1, s_2),

.. math:: U = w^{1/y} e^{s_1 h - |h|} P\Big(\frac{J_D + \lambda_R s_1 s_2 + s_1 x}{\sigma}\Big)

for the first site. The weight w of the node is folded in; it contains exp(-e^2/2) in place of
exp(-t^2/2), e = |t| - y sqrt(qhat), since exp(y |h| - t^2/2) = exp(y^2 qhat/2 - e^2/2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rmtheory.gaussian import Array, P, n
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
    #: The fields h and x of each node
    fields: Array
    shift: float

    def take(self, kept: NDArray[np.bool_]) -> Site:
        """Return the nodes selected by the boolean array `kept`."""
        rows, slopes, fields = self.rows[kept], self.slopes[kept], self.fields[kept]
        return Site(rows, slopes, self.missing[kept], self.weight[kept], fields, self.shift)


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
    log_weight = tilts.log_peak[:, None] + weight
    # Everything is a product of a function of t and one of x, so the exponentials are few.
    parts = (tilts.log_peak / y, weight / y) if y >= 1 else (np.zeros_like(h), np.zeros_like(x))
    tops = [float(part.max()) for part in parts]
    at_t, at_x = (np.exp(part - top)[:, None] for part, top in zip(parts, tops, strict=True))
    at_t = at_t * np.exp(h[:, None] * own - np.abs(h)[:, None])
    rows, slopes = (
        (at_t[:, None, :] * (at_x * values)).reshape(-1, 4)
        for values in (P(argument), own * n(argument) / sigma)
    )
    largest = float(rows.max())
    rows /= largest
    slopes /= largest
    shift = sum(tops) + math.log(largest)
    folded = parts[0][:, None] + parts[1] - shift
    missing = (math.sqrt(qhat) * tilts.excess)[:, None] - folded
    apart = np.exp(log_weight - y * (folded + shift)).reshape(-1)
    both = np.stack([np.repeat(h, x.size), np.tile(x, h.size)], axis=1)
    return Site(rows, slopes, missing.reshape(-1), apart, both, shift)


def prune(site: Site, judge: Site, y: float, log_scale: float, dropped: float) -> Site:
    """Drop the nodes whose share of the integral, summed over a coarse `judge`, is negligible.

    Shares are wanted roughly, and single precision is several times faster. It is not for y < 1,
    where what underflows may weigh something, nor for y so large that zeta^y feels the rounding.
    """
    kind: type[np.floating[Any]] = np.float32 if 1 <= y < 1e5 else np.float64
    rows, columns = site.rows.astype(kind), judge.rows.T.astype(kind)
    judge_weight = judge.weight.astype(kind)
    share = np.empty(len(rows))
    for block in blocks(len(rows), len(judge_weight)):
        share[block] = powers(rows[block] @ columns, y, log_scale) @ judge_weight
    return site.take(heavy(share * site.weight, dropped))


def powers(
    zeta: NDArray[np.floating[Any]], y: float, log_scale: float
) -> NDArray[np.floating[Any]]:
    """Replace zeta by (zeta/scale)^y."""
    with np.errstate(divide="ignore"):  # a far node may underflow to 0, and weighs nothing
        np.log(zeta, out=zeta)
    zeta -= log_scale
    zeta *= y
    return np.asarray(np.exp(zeta, out=zeta))


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
