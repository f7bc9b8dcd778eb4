r"""The replica-symmetric functional of the number of fixed points, L = 1 and 2, by quadrature.

Per neuron (paper, SM-A, eq. result_RS),

.. math:: S_{rs}(q, \hat q) = \frac1L\Big[\tfrac12\sum_l \hat q_l (q_l - 1)
    + \int \prod_l Dt_l Dz_l\, \log\zeta\Big], \qquad
    \zeta = \sum_s e^{\sum_l h_l s_l} \prod_l P\Big(\frac{v_l + s_l x_l}{\sqrt{1-q_l}}\Big),

h = sqrt(qhat) t, x = sqrt(q) z. Integrating by parts, with d^2 log zeta/dh^2 = 1 - m^2 and the heat
equation d zeta/dq = -(1/2) d^2 zeta/dx^2 at fixed x,

.. math:: 2 L \frac{\partial S}{\partial \hat q_l} = q_l - E[m_l^2], \qquad
    2 L \frac{\partial S}{\partial q_l} = \hat q_l - E[(\partial_{x_l}\log\zeta)^2],

so the saddle equations are q = E[m^2] and qhat = E[(d log zeta/dx)^2].

Quadrature: the trapezoid rule converges like exp(-2 pi d/step) where the integrand is analytic in
a strip of half-width d. In t that is pi/(2 sqrt qhat), in z a multiple of sqrt((1-q)/q): the steps
scale with them, where Gauss-Hermite nodes do not and lose their digits as q -> 1.

**Other saddles than q = qhat = 0.** The paper reports none; :func:`search_saddles` tests the claim
and reports the region searched. For given overlaps q the equation qhat_l = E[(d log zeta/dx_l)^2]
is solved for qhat. It always has a solution: the right-hand side is continuous and bounded for all
qhat (by :func:`force_bound`), hence maps a box into itself. What is left,

.. math:: R_l(q) = q_l - E[m_l^2] ,

vanishes at a saddle; it is linear in q near 0 and at most 1 - q near 1, so the distance from a
saddle is measured by |R|/(q(1-q)). At L = 1 every qhat up to the bound is scanned and every sign
change of R along q refined. At L = 2 every cell of a grid in (q_1, q_2) where both components
change sign starts a Newton iteration, and so do the points of closest approach.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy import optimize

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError, counted
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.base.gaussian import Array, log_P, r

#: Nodes reach this many standard deviations.
_REACH = 8.5

#: Steps at fineness 1: for the Gaussian alone, and in units of the width of the integrand.
_STEP, _STEP_T, _STEP_Z = 0.65, 0.5, 0.4

#: Largest number of node pairs (a few seconds) and of nodes of one layer (memory).
MOST_NODES, _MOST_SITE_NODES = 40_000_000, 4_000_000

_BLOCK = 1 << 17


@dataclass(frozen=True)
class Averages:
    """Gaussian averages over t and z of one quadrature rule."""

    log_zeta: float
    #: E[m_l^2] of every layer.
    overlap: Array
    #: E[(d log zeta/dx_l)^2] of every layer.
    force: Array
    nodes: int


@dataclass(frozen=True)
class RSPoint:
    """The functional and its gradient at one (q, qhat)."""

    chain: Chain
    q: tuple[float, ...]
    qhat: tuple[float, ...]
    #: S_rs per neuron.
    value: Estimate
    #: E[m_l^2], to be q_l at a saddle.
    overlap: tuple[Estimate, ...]
    #: E[(d log zeta/dx_l)^2], to be qhat_l at a saddle.
    force: tuple[Estimate, ...]

    @property
    def residual(self) -> float:
        """Largest violation of the saddle equations, relative to 1 + qhat for the second."""
        first = [abs(float(m) - x) for m, x in zip(self.overlap, self.q, strict=True)]
        second = [abs(float(g) - y) / (1 + y) for g, y in zip(self.force, self.qhat, strict=True)]
        return max(first + second)


def functional(
    chain: Chain,
    q: float | Sequence[float],
    qhat: float | Sequence[float],
    *,
    tolerance: float | None = None,
) -> RSPoint:
    """S_rs and its saddle equations at given order parameters.

    Parameters
    ----------
    chain : Chain
        One or two layers.
    q, qhat : float or sequence of float
        Overlaps in [0, 1) and conjugates >= 0, one per layer; one number stands for all layers.
    tolerance : float, optional
        Refine until two rules agree to this in S_rs and in both averages (relative to
        1 + average); default 1e-11 for one layer and 1e-9 for two.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> point = functional(Chain(1, jd=0.5), q=0.3, qhat=0.4)
    >>> print(f"{float(point.value):.10f}")
    0.3432566530
    """
    layers = checked_layers(chain)
    overlaps = order_parameter("q", q, layers, below=1.0)
    conjugates = order_parameter("qhat", qhat, layers, below=math.inf)
    goal = (1e-11 if layers == 1 else 1e-9) if tolerance is None else tolerance
    fineness = 1.6
    coarse = averages(chain, overlaps, conjugates, fineness)
    while True:
        fineness *= 0.7
        fine = averages(chain, overlaps, conjugates, fineness)
        gaps = _gaps(coarse, fine)
        if gaps.max() <= goal:
            break
        coarse = fine
    method = f"trapezoid rule on {fine.nodes} nodes, against one of {coarse.nodes}"

    def estimate(value: float, scale: float, gap: float) -> Estimate:
        return Estimate(value, (gap + 1e-14) * scale, Tier.ESTIMATED, method)

    trace = 0.5 * sum(y * (x - 1) for x, y in zip(overlaps, conjugates, strict=True))
    value = (trace + fine.log_zeta) / layers
    return RSPoint(
        chain=chain,
        q=overlaps,
        qhat=conjugates,
        value=estimate(value, 1 + abs(fine.log_zeta) + abs(trace), float(gaps[0])),
        overlap=tuple(estimate(float(m), 1.0, float(gaps[1])) for m in fine.overlap),
        force=tuple(estimate(float(g), 1 + float(g), float(gaps[2])) for g in fine.force),
    )


def averages(
    chain: Chain, q: Sequence[float], qhat: Sequence[float], fineness: float = 1.0
) -> Averages:
    """One trapezoid rule; steps are `fineness` times the ones that give about 1e-9."""
    layers = checked_layers(chain)
    spins = np.array(list(product((1, -1), repeat=layers)), dtype=float)
    bond = spins[:, 0] * spins[:, -1] if layers == 2 else np.zeros(len(spins))
    sites = []
    for k, lam in enumerate((chain.lam_right, chain.lam_left)[:layers]):
        t, z, weight = _nodes(q[k], qhat[k], fineness, half=k == 0)
        width = math.sqrt(1 - q[k])
        argument = (chain.jd + lam * bond + spins[:, k] * math.sqrt(q[k]) * z[:, None]) / width
        log_weight = spins[:, k] * math.sqrt(qhat[k]) * t[:, None] + log_P(argument)
        sites.append((weight, log_weight, spins[:, k] * r(argument) / width))
    if layers == 1:
        # A second site with one node and nothing to say.
        sites.append((np.ones(1), np.zeros((1, 2)), np.zeros((1, 2))))
    first, second = sites
    pairs = len(first[0]) * len(second[0])
    if pairs > MOST_NODES:
        raise NotConvergedError(
            f"the quadrature at q = {tuple(q)}, qhat = {tuple(qhat)} would need {pairs:.1e} nodes; "
            f"move q away from 1 or ask for a larger tolerance"
        )
    total = np.zeros(1 + 2 * layers)
    rows = max(1, _BLOCK // len(second[0]))
    for start in range(0, len(first[0]), rows):
        part = slice(start, start + rows)
        block = (first[0][part], first[1][part], first[2][part])
        total += _pair_sums(block, second, spins, layers)
    return Averages(float(total[0]), total[1 : 1 + layers], total[1 + layers :], pairs)


def force_bound(chain: Chain, q: Sequence[float]) -> tuple[float, ...]:
    """Bound on E[(d log zeta/dx_l)^2] for every qhat: the search need not go further.

    d log zeta/dx_l is an average over spins of ± r/sqrt(1-q_l), at most its largest modulus.
    """
    layers = checked_layers(chain)
    bounds = []
    for k, lam in enumerate((chain.lam_right, chain.lam_left)[:layers]):
        _, z, weight = _nodes(q[k], 0.0, 1.0, half=False)
        # r decreases: the least argument has the largest ratio.
        least = chain.jd - (abs(lam) if layers == 2 else 0.0) - math.sqrt(q[k]) * np.abs(z)
        slope = r(least / math.sqrt(1 - q[k]))
        bounds.append(float(weight @ slope**2) / (1 - q[k]))
    return tuple(bounds)


def checked_layers(chain: Chain) -> int:
    """Return the number of layers, 1 or 2."""
    layers = chain.finite_layers
    if layers > 2:
        raise InvalidInputError("layers", layers, "1 or 2 for the replica-symmetric functional")
    return layers


def order_parameter(
    name: str, value: float | Sequence[float], layers: int, below: float
) -> tuple[float, ...]:
    """Return one finite number in [0, below) a layer."""
    values = np.atleast_1d(np.asarray(value, dtype=float))
    if values.size == 1:
        values = np.repeat(values, layers)
    allowed = "finite and >= 0" if math.isinf(below) else f"at least 0 and below {below:g}"
    if values.shape != (layers,):
        raise InvalidInputError(name, tuple(values.tolist()), f"one number for each of {layers}")
    for x in values:
        if not (0 <= x < below and math.isfinite(x)):
            raise InvalidInputError(name, float(x), allowed)
    return tuple(float(x) for x in values)


def _gaps(coarse: Averages, fine: Averages) -> Array:
    """Relative differences of log zeta, of the overlaps and of the forces."""
    return np.array(
        [
            abs(fine.log_zeta - coarse.log_zeta) / (1 + abs(fine.log_zeta)),
            np.max(np.abs(fine.overlap - coarse.overlap)),
            np.max(np.abs(fine.force - coarse.force) / (1 + fine.force)),
        ]
    )


def _nodes(q: float, qhat: float, fineness: float, half: bool) -> tuple[Array, Array, Array]:
    """Nodes (t, z) of one layer in a disc, and their weights.

    With `half` only one of each pair ±(t, z) is kept, with both weights: the integrand is even
    under the flip of everything.
    """
    t_step = fineness * min(_STEP, _STEP_T / math.sqrt(qhat)) if qhat > 0 else 0.0
    z_step = fineness * min(_STEP, _STEP_Z * math.sqrt((1 - q) / q)) if q > 0 else 0.0
    lines = [2 * _REACH / step if step else 1.0 for step in (t_step, z_step)]
    if lines[0] * lines[1] > _MOST_SITE_NODES:
        raise NotConvergedError(
            f"the quadrature at q = {q:.6g}, qhat = {qhat:.3g} needs too many nodes; "
            f"move q away from 1"
        )
    t = midpoints(t_step, half)
    z = midpoints(z_step, half and qhat == 0)
    radius = t[:, None] ** 2 + z**2
    inside = radius <= _REACH**2
    weight = np.exp(-0.5 * radius[inside])
    return (
        np.broadcast_to(t[:, None], radius.shape)[inside],
        np.broadcast_to(z, radius.shape)[inside],
        weight / weight.sum(),
    )


def midpoints(step: float, half: bool) -> Array:
    """Midpoints ±step/2, ±3 step/2, ..., or the positive ones; the origin for no step."""
    if step == 0:
        return np.zeros(1)
    positive = step * (np.arange(max(1, math.ceil(_REACH / step))) + 0.5)
    return np.asarray(positive if half else np.concatenate([-positive[::-1], positive]))


def _pair_sums(
    first: tuple[Array, Array, Array],
    second: tuple[Array, Array, Array],
    spins: Array,
    layers: int,
) -> Array:
    """Weighted sums of log zeta, m_l^2 and (d log zeta/dx_l)^2 over pairs of nodes."""
    (w1, log1, slope1), (w2, log2, slope2) = first, second
    terms = [log1[:, k, None] + log2[:, k] for k in range(len(spins))]
    top = terms[0]
    for term in terms[1:]:
        top = np.maximum(top, term)
    boltzmann = [np.exp(term - top) for term in terms]
    zeta = boltzmann[0] + sum(boltzmann[1:])
    result = [w1 @ (top + np.log(zeta)) @ w2]
    magnetisations, forces = [], []
    for layer in range(layers):
        slope = slope1[:, :, None] if layer == 0 else slope2.T[None, :, :]
        m = sum(spins[k, layer] * boltzmann[k] for k in range(len(spins))) / zeta
        g = sum(boltzmann[k] * slope[:, k] for k in range(len(spins))) / zeta
        magnetisations.append(w1 @ (m * m) @ w2)
        forces.append(w1 @ (g * g) @ w2)
    return np.array(result + magnetisations + forces)


# Search for saddles other than q = qhat = 0.

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
    def overlaps(self) -> tuple[Estimate, ...]:
        """Overlaps of all saddles, layer by layer, with errors.

        The residual R(q) of a saddle vanishes with a slope of order 0.1: 100 R bounds the error.
        """
        return tuple(
            Estimate(
                q, 100 * saddle.residual + 1e-9, Tier.ESTIMATED, "root of the saddle equations"
            )
            for saddle in self.saddles
            for q in saddle.q
        )

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
