r"""Search for replica-symmetric saddles other than q = qhat = 0, L = 1 and 2.

The paper reports none; this tests the claim and reports the region searched. For given
overlaps q the equation qhat_l = E[(d log zeta/dx_l)^2] is solved for qhat. It always has a
solution: the right-hand side is continuous and bounded for all qhat (by
:func:`rmtheory.replica.symmetric.force_bound`), hence maps a box into itself. What is left,

.. math:: R_l(q) = q_l - E[m_l^2] ,

vanishes at a saddle; it is linear in q near 0 and at most 1 - q near 1, so the distance from a
saddle is measured by |R|/(q(1-q)). At L = 1 every qhat up to the bound is scanned and every sign
change of R along q refined. At L = 2 every cell of a grid in (q_1, q_2) where both components
change sign starts a Newton iteration, and so do the points of closest approach.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.base.gaussian import Array
from rmtheory.base.wording import counted
from rmtheory.replica.symmetric import (
    Averages,
    RSPoint,
    averages,
    checked_layers,
    force_bound,
    functional,
)

#: Fineness of the quadrature in the scan (error about 1e-5) and in the refinement (1e-9).
_SCAN, _REFINE = 1.5, 1.0

#: A root whose saddle equations hold to less than this is rejected.
_RESIDUAL = 1e-7

#: Points of closest approach that start an iteration even without a sign change.
_EXTRA_STARTS = 4

#: Largest |R_l|/(q_l(1-q_l)) over the layers, and the overlaps.
Approach = tuple[float, tuple[float, ...]]


@dataclass(frozen=True)
class SaddleSearch:
    """The result of a search, and the region searched."""

    chain: Chain
    #: Saddles other than q = 0, each with its residual; empty if there are none.
    saddles: tuple[RSPoint, ...]
    #: Overlaps searched, every layer: smallest and largest.
    q_range: tuple[float, float]
    #: Largest conjugate considered, which bounds those of any saddle in the range.
    qhat_bound: float
    #: Overlaps at which qhat was eliminated, and at how many of them that failed (L = 2).
    points: int
    unsolved: int
    #: Gaussian averages computed.
    evaluations: int
    #: Smallest over the grid of the largest |R_l|/(q_l(1-q_l)), and where it occurs.
    closest: float
    closest_q: tuple[float, ...]

    @property
    def region(self) -> str:
        """The region searched, in words."""
        low, high = self.q_range
        layers = self.chain.finite_layers
        text = f"q in [{low:g}, {high:g}]"
        if layers > 1:
            text += f" in each of {layers} layers"
        text += f", {self.points} points, qhat from 0 to {self.qhat_bound:.3g}"
        if self.unsolved:
            text += f" ({counted(self.unsolved, 'point')} without a qhat)"
        where = ", ".join(f"{x:.3g}" for x in self.closest_q)
        return text + f"; closest approach |R|/(q(1-q)) = {self.closest:.3g} at q = {where}"


class _Counter:
    """Gaussian averages of one chain, counted."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.count = 0

    def __call__(self, q: Array, qhat: Array, fineness: float) -> Averages:
        self.count += 1
        return averages(self.chain, q.tolist(), qhat.tolist(), fineness)


def search_saddles(
    chain: Chain,
    *,
    q_range: tuple[float, float] | None = None,
    points: int | None = None,
) -> SaddleSearch:
    """Search for saddles with q != 0.

    Parameters
    ----------
    chain : Chain
        One or two layers.
    q_range : (float, float), optional
        Smallest and largest overlap, within (0, 1); default (0.002, 0.99) for one layer and
        (0.01, 0.8) for two.
    points : int, optional
        Grid points per axis, uniform in log(q/(1-q)): default 48 for one layer and 10 for two.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> search_saddles(Chain(1, jd=0.5), points=12).saddles
    ()
    """
    layers = checked_layers(chain)
    low, high = q_range or ((0.002, 0.99) if layers == 1 else (0.01, 0.8))
    if not 0 < low < high < 1:
        raise InvalidInputError("q_range", (low, high), "two increasing numbers in (0, 1)")
    default = 48 if layers == 1 else 10
    count = checks.integer("points", default if points is None else points, 4, 1000)
    logit = np.linspace(math.log(low / (1 - low)), math.log(high / (1 - high)), count)
    axis = 1 / (1 + np.exp(-logit))
    axis[0], axis[-1] = low, high
    scan = _scan_one if layers == 1 else _scan_two
    return scan(chain, axis)


def _scan_one(chain: Chain, axis: Array) -> SaddleSearch:
    counter = _Counter(chain)
    bound = 0.0
    branches: list[list[tuple[float, float]]] = []
    for q in axis:
        limit = force_bound(chain, [float(q)])[0]
        bound = max(bound, limit)
        branches.append(_eliminate_one(counter, float(q), limit))
    starts: list[tuple[Array, Array]] = []
    for k in range(len(axis) - 1):
        left, right = branches[k], branches[k + 1]
        # Roots are ordered; where their number changes a branch starts or ends, and every root
        # of either side is tried.
        pairs = list(zip(left, right, strict=False))
        crossing = [p for p in pairs if p[0][1] * p[1][1] <= 0]
        if len(left) != len(right):
            crossing += [(root, root) for root in left + right]
        for (a, _), (b, _) in crossing:
            q = math.sqrt(axis[k] * axis[k + 1])
            starts.append((np.array([q]), np.array([math.sqrt(max(a, 1e-12) * max(b, 1e-12))])))
    approach: list[Approach] = [
        (abs(R) / float(q * (1 - q)), (float(q),))
        for q, roots in zip(axis, branches, strict=True)
        for _, R in roots
    ]
    unsolved = sum(not roots for roots in branches)
    return _finish(counter, axis, starts, approach, bound, len(axis), unsolved)


def _eliminate_one(counter: _Counter, q: float, limit: float) -> list[tuple[float, float]]:
    """All qhat in [0, limit] with qhat = E[(d log zeta/dx)^2], and R there."""
    overlap = np.array([q])

    def excess(log_qhat: float) -> float:
        averages = counter(overlap, np.array([math.exp(log_qhat)]), _SCAN)
        return math.log(averages.force[0]) - log_qhat

    # Below the force at qhat = 0 by a factor 1000 the excess is positive, at the bound
    # negative.
    least = 1e-3 * float(counter(overlap, np.zeros(1), _SCAN).force[0])
    grid = np.linspace(math.log(least), math.log(limit), 14)
    values = [excess(float(x)) for x in grid]
    roots = []
    for k in range(len(grid) - 1):
        if values[k] > 0 >= values[k + 1] or values[k] <= 0 < values[k + 1]:
            root = optimize.brentq(excess, grid[k], grid[k + 1], xtol=1e-9)
            qhat = math.exp(root)
            m2 = counter(overlap, np.array([qhat]), _SCAN).overlap
            roots.append((qhat, q - float(m2[0])))
    return roots


def _scan_two(chain: Chain, axis: Array) -> SaddleSearch:
    counter = _Counter(chain)
    size = len(axis)
    R = np.full((size, size, 2), np.nan)
    qhats = np.full((size, size, 2), np.nan)
    for i in range(size):
        for j in range(size):
            q = np.array([axis[i], axis[j]])
            near = [qhats[a, b] for a, b in ((i, j - 1), (i - 1, j)) if min(a, b) >= 0]
            solved = [x for x in near if np.all(np.isfinite(x))]
            qhat = _eliminate_two(counter, q, solved[0] if solved else None)
            if qhat is not None:
                qhats[i, j] = qhat
                R[i, j] = q - counter(q, qhat, _SCAN).overlap
    bound = max(max(force_bound(chain, [float(x), float(x)])) for x in axis)
    scale = axis * (1 - axis)
    distance = np.maximum(np.abs(R[:, :, 0]) / scale[:, None], np.abs(R[:, :, 1]) / scale)
    starts = []
    for i in range(size - 1):
        for j in range(size - 1):
            corner = R[i : i + 2, j : j + 2].reshape(4, 2)
            if (
                np.all(np.isfinite(corner))
                and np.all(corner.min(0) <= 0)
                and np.all(corner.max(0) >= 0)
            ):
                q = np.sqrt([axis[i] * axis[i + 1], axis[j] * axis[j + 1]])
                starts.append((q, qhats[i, j]))
    order = np.argsort(np.where(np.isfinite(distance), distance, np.inf), axis=None)
    approach: list[Approach] = []
    for flat in order[:_EXTRA_STARTS]:
        i, j = np.unravel_index(flat, distance.shape)
        if np.isfinite(distance[i, j]):
            starts.append((np.array([axis[i], axis[j]]), qhats[i, j]))
            approach.append((float(distance[i, j]), (float(axis[i]), float(axis[j]))))
    unsolved = int(np.sum(~np.isfinite(distance)))
    return _finish(counter, axis, starts, approach, bound, size * size, unsolved)


def _eliminate_two(counter: _Counter, q: Array, start: Array | None) -> Array | None:
    """The qhat with qhat_l = E[(d log zeta/dx_l)^2] in both layers, None if not reached."""
    bound = np.log(force_bound(counter.chain, q.tolist()))

    def excess(log_qhat: Array) -> Array:
        qhat = np.exp(np.minimum(log_qhat, bound))
        return np.log(counter(q, qhat, _SCAN).force) - log_qhat

    guess = counter(q, np.zeros(2), _SCAN).force if start is None else start
    result = optimize.root(excess, np.log(guess), method="hybr", options={"xtol": 1e-6})
    if np.max(np.abs(result.fun)) > 1e-4:
        return None
    return np.asarray(np.exp(np.minimum(result.x, bound)))


def _finish(
    counter: _Counter,
    axis: Array,
    starts: list[tuple[Array, Array]],
    approach: list[Approach],
    bound: float,
    points: int,
    unsolved: int,
) -> SaddleSearch:
    if not approach:
        raise NotConvergedError(f"qhat could not be eliminated anywhere for {counter.chain}")
    closest, where = min(approach)
    saddles: list[RSPoint] = []
    for q, qhat in starts:
        saddle = _refine(counter, q, qhat)
        if saddle is not None and not any(_same(saddle, other) for other in saddles):
            saddles.append(saddle)
    low, high = float(axis[0]), float(axis[-1])
    inside = [s for s in saddles if all(low / 2 <= x <= high for x in s.q)]
    return SaddleSearch(
        chain=counter.chain,
        saddles=tuple(sorted(inside, key=lambda s: s.q)),
        q_range=(low, high),
        qhat_bound=bound,
        points=points,
        unsolved=unsolved,
        evaluations=counter.count,
        closest=closest,
        closest_q=where,
    )


def _refine(counter: _Counter, q: Array, qhat: Array) -> RSPoint | None:
    """Newton's method on all saddle equations; None unless it ends on a verified root q != 0."""
    size = len(q)

    def equations(x: Array) -> Array:
        y = np.clip(x, -14.0, 9.0)
        overlap, conjugate = 1 / (1 + np.exp(-y[:size])), np.exp(y[size:])
        overlap = np.minimum(overlap, 0.9995)
        averages = counter(overlap, conjugate, _REFINE)
        # Relative, so that q = 0 is not a root of everything.
        return np.concatenate([averages.overlap / overlap - 1, averages.force / conjugate - 1])

    start = np.concatenate([np.log(q / (1 - q)), np.log(np.maximum(qhat, 1e-12))])
    try:
        result = optimize.root(equations, start, method="hybr", options={"xtol": 1e-11})
        if np.max(np.abs(result.fun)) > _RESIDUAL:
            return None
        overlap = 1 / (1 + np.exp(-result.x[:size]))
        point = functional(
            counter.chain, tuple(overlap), tuple(np.exp(result.x[size:])), tolerance=1e-8
        )
    except NotConvergedError:
        return None
    return point if point.residual < _RESIDUAL else None


def _same(a: RSPoint, b: RSPoint) -> bool:
    return all(abs(x - y) < 1e-4 * max(x, y) for x, y in zip(a.q, b.q, strict=True))
