r"""The nodes of the two layers of a pair, and which of them are kept.

Each node (t, x) of a site stands for one row of four numbers, one for each state
(s_1, s_2); for the first site

.. math:: U_i = w_i^{1/y} e^{s_1 h_i - |h_i|}
    P\Big(\frac{J_D + \lambda_R s_1 s_2 + s_1 x_i}{\sigma}\Big) .

The weight w of the node is folded in; it contains exp(-e^2/2) in place of exp(-t^2/2),
e = |t| - y sqrt(qhat), since exp(y |h| - t^2/2) = exp(y^2 qhat/2 - e^2/2). Nodes whose share of a
coarse evaluation is negligible are dropped beforehand, and the flip of all spins halves the first
site.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from rmtheory.base.gaussian import Array, P, n
from rmtheory.local_entropies.quadrature import (
    COARSEST,
    STEPS,
    check_size,
    field_nodes,
    field_step,
    tilt_nodes,
)

#: Share of the total that pruning may drop, by level.
DROPPED = (1e-6, 1e-8, 1e-11, 1e-13, 1e-15, 1e-16, 1e-16)

#: Share of a sparse rule that is left out when it judges the nodes of the other site.
DROPPED_SPARSE = 1e-4

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
        chosen = np.flatnonzero(kept)  # once for all, and faster than booleans each time
        rows, slopes, missing, weight, fields = (
            each.take(chosen, axis=0)
            for each in (self.rows, self.slopes, self.missing, self.weight, self.fields)
        )
        return Site(rows, slopes, missing, weight, fields, self.shift)


@dataclass(frozen=True, eq=False)
class Sites:
    """Both sites of the chain."""

    one: Site
    two: Site
    #: Logarithm of the scale of zeta, which keeps its powers in range.
    log_scale: float
    #: J_D and lambda_L of the second site.
    couplings: tuple[float, float]


def make_sites(
    jd: float,
    lam_left: float,
    lam_right: float,
    d: float,
    y: float,
    qhat: Array,
    level: int,
    nodes_y: float | None = None,
) -> Sites:
    """Return the nodes of both sites that are kept, and the logarithm of the scale of zeta."""
    lams, qhats = (lam_right, lam_left), (float(qhat[0]), float(qhat[-1]))

    def site(which: int, step: float, tilt_step: float) -> Site:
        return make_site(which, jd, lams[which], d, y, qhats[which], step, tilt_step)

    # Sparse rules give the share of each node: first each other's, then those of the full rules.
    sparse = [site(which, COARSEST, COARSEST) for which in (0, 1)]
    # They come close to the largest zeta, whose power sets the scale of the weights.
    zeta = sparse[0].rows @ sparse[1].rows.T
    log_scale = math.log(float(zeta.max()))
    shares = powers(zeta, y, log_scale)
    shares *= np.outer(sparse[0].weight, sparse[1].weight)
    judges = [sparse[k].take(heavy(shares.sum(axis=1 - k), DROPPED_SPARSE)) for k in (0, 1)]
    one, two = (
        prune(
            site(which, field_step(level, nodes_y or y), STEPS[level]),
            judges[1 - which],
            y,
            log_scale,
            DROPPED[level],
        )
        for which in (0, 1)
    )
    return Sites(one, two, log_scale, (jd, lam_left))


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
    check_size(fields.at.size * tilts.at.size, 4_000_000)
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
    both = np.empty((h.size, x.size, 2))
    both[..., 0], both[..., 1] = h[:, None], x
    return Site(rows, slopes, missing.reshape(-1), apart, both.reshape(-1, 2), shift)


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


def heavy(share: Array, dropped: float) -> NDArray[np.bool_]:
    """Mark all nodes but the least ones that together have less than a fraction `dropped`."""
    order = np.argsort(share)
    gathered = np.cumsum(share[order])
    kept = np.ones(len(share), dtype=bool)
    kept[order[: int(np.searchsorted(gathered, dropped * gathered[-1]))]] = False
    return kept


def powers(
    zeta: NDArray[np.floating[Any]], y: float, log_scale: float
) -> NDArray[np.floating[Any]]:
    """Replace zeta by (zeta/scale)^y."""
    with np.errstate(divide="ignore"):  # a far node may underflow to 0, and weighs nothing
        np.log(zeta, out=zeta)
    zeta -= log_scale
    zeta *= y
    return np.asarray(np.exp(zeta, out=zeta))


def blocks(rows: int, columns: int) -> list[slice]:
    """Cut the rows of a matrix into pieces of about BLOCK entries."""
    step = max(1, BLOCK // columns)
    return [slice(start, start + step) for start in range(0, rows, step)]


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit the linear algebra to one thread: for thin matrices more are slower."""
    with _linear_algebra().limit(limits=1):
        yield


@lru_cache(maxsize=1)
def _linear_algebra() -> ThreadpoolController:
    return ThreadpoolController()
