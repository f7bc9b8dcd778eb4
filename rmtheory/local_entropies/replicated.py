r"""Integer y: the replicated transfer matrix, exact but for one-dimensional integrals.

The power zeta^y is a sum over y replicas of the chain. The integral over t of a layer gives
exp(qhat M^2/2), M being the sum of the spins of its replicas; that over x couples the replicas
through their common field. By the permutation symmetry of the replicas the state of two
neighbouring layers is four numbers n(a, s), the replicas with spins (a, s), which sum to y:
(y+3)(y+2)(y+1)/6 states in place of 4^y. The step from n(a, s) to n'(s, b) keeps
m = n(+, +) + n(-, +) = n'(+, +) + n'(+, -), the replicas with s = +1, and is a product of two
factors under the integral over x,

.. math:: X_{nn'} &= \int Dz\ B^+_m(n_{++}; n'_{++})\, B^-_{y-m}(n_{+-}; n'_{-+}), \\
    B^s_m(i; j) &= [w^i]\,\big(P^s_{-+} + w P^s_{++}\big)^j \big(P^s_{--} + wP^s_{+-}\big)^{m-j},

with :math:`P^s_{ab} = P((J_D + \lambda_L as + \lambda_R sb + sx)/\sigma)` and [w^i] the coefficient
of w^i. Nothing is interpolated, and all terms are positive: an independent check of the transfer
operator.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rmtheory.annealed.mean_number import entropy as annealed_entropy
from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.base.gaussian import Array, P
from rmtheory.local_entropies.quadrature import field_nodes, field_step

#: The number of states grows like y^3/6, the work like y^5.
MOST_REPLICAS = 40

_METHOD = "replicated transfer matrix, two resolutions"


@dataclass(frozen=True)
class Replicated:
    """phi and the conjugate overlaps at integer y, per neuron."""

    chain: Chain
    d: float
    y: int
    phi: Estimate
    qhat: tuple[Estimate, ...]


def replicated_internal(point: Replicated) -> Estimate:
    """S_I = phi + dphi/dlog y from the exact values at the integers around, and at y = 1.

    The derivative is that of the polynomial in log y through them; its error is three times what
    leaving out the last changes, since at small y the next one may change as much again.
    """
    reach = 9
    near = range(max(1, point.y - reach), min(MOST_REPLICAS, point.y + reach) + 1)
    values = {
        1: float(annealed_entropy(point.chain).value),
        point.y: float(point.phi.value),
    }
    for y in near:
        if y not in values:
            values[y] = float(replicated_entropy(point.chain, point.d, y).phi.value)

    def slope(integers: list[int]) -> float:
        known = np.array([values[y] for y in integers])
        return _derivative(np.log(integers), known, math.log(point.y)) + values[point.y]

    best, shorter = slope(list(near)), slope(list(near)[:-1])
    return Estimate(best, 3 * abs(best - shorter) + 1e-12, Tier.ESTIMATED, _METHOD)


def _derivative(x: Array, values: Array, at: float) -> float:
    """Derivative at `at` of the polynomial through all points, by the barycentric formula.

    That of scipy shuffles the points, so that the last digits differ from call to call.
    """
    apart = x[:, None] - x + np.eye(x.size)
    weights = 1 / apart.prod(axis=1)
    node = np.flatnonzero(x == at)
    if node.size:
        here, others = node[0], x != at
        shares = weights[others] / weights[here] / (at - x[others])
        return float(shares @ (values[others] - values[here]))
    shares = weights / (at - x)
    shares /= shares.sum()
    return float(shares @ ((shares @ values - values) / (at - x)))


def replicated_entropy(chain: Chain, d: checks.RealLike, y: float) -> Replicated:
    """Solve the saddle at integer `y` by the replicated transfer matrix, any L and infinity.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> phi = replicated_entropy(Chain(3, 0.05, 0.3), 0.1, 2).phi
    >>> print(f"{phi.value:.11f}", phi.error < 1e-12)
    0.03388500027 True
    """
    distance = float(checks.exact_real("d", d))
    if not 0 < distance < 0.5:
        raise InvalidInputError("d", d, "strictly between 0 and 1/2")
    if not (isinstance(y, int) and 2 <= y <= MOST_REPLICAS):
        raise InvalidInputError("y", y, f"an integer from 2 to {MOST_REPLICAS} for this method")
    coarse, fine = (replicated_chain(chain, distance, y, level) for level in (3, 4))
    qhat = fine.saddle()
    phi, rough = fine.phi(qhat), coarse.phi(qhat)
    error = abs(phi - rough) + 1e-14
    # The gradient of phi vanishes at the saddle; its rounding and that of the rule move qhat.
    moved = abs(qhat - coarse.saddle(qhat)) + 1e-9 * qhat
    return Replicated(
        chain,
        distance,
        y,
        Estimate(phi, error, Tier.ESTIMATED, _METHOD),
        tuple(
            Estimate(float(q), float(e), Tier.ESTIMATED, _METHOD)
            for q, e in zip(qhat, moved, strict=True)
        ),
    )


# phi at all y, from integers.

#: Integers at which phi is solved, how many of the last phi is taken through, and its derivative in
#: d; the level of the quadrature, which is at rounding.
_REPLICAS = (2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 22, 27, 33, 40)
_TAKEN, _SLOPES, _LEVEL = 10, 7, 3

#: Least distance at which phi is taken from integers: at smaller ones y* is larger, and the rule in
#: x has more nodes.
LEAST_D = 1e-3

#: Step of the derivative in d, relative to d and to 1/2 - d; its relative error is of its square.
_STEP = 1e-3


@dataclass(frozen=True)
class LadderStar:
    """The point y* of one distance by integer y."""

    y: float
    y_error: float
    #: Whether y* is only known to be larger than `y`, the largest integer.
    bound: bool
    phi: float
    phi_error: float
    slope: float
    slope_error: float
    #: Whether phi was continued beyond the largest integer.
    continued: bool


@dataclass(frozen=True, eq=False)
class Ladder:
    r"""Phi at one distance and integer y, and the polynomial in u = 1/y through them.

    Once y d is large phi is an expansion in 1/y, and :math:`d\phi/du = S_E`: S_I* is the least
    value of the polynomial on the way from the least y to u = 0. Up to the largest y it
    interpolates exact values; beyond, it is continued.
    """

    chain: Chain
    d: float
    y: tuple[int, ...]
    phi: Array
    #: Error of phi: what a coarser rule changes.
    error: Array
    #: Conjugate overlaps at each y, and the matrices of the last few.
    qhat: tuple[Array, ...]
    models: tuple[ReplicatedChain, ...]

    @property
    def u(self) -> Array:
        """The places 1/y."""
        return 1 / np.array(self.y, dtype=float)

    def star(self) -> LadderStar:
        """Return y*, S_I* and its slope.

        The error is what leaving out the first or the last integer changes, whichever is more, the
        errors of phi amplified by the polynomial, and a part of how far it is continued: the tails
        of the fields, felt at log y = O(J_D^2/4d), are no power of 1/y. For one layer, at 60 random
        J_D from 0.2 to 2 and d from 0.004 to 0.49 with y* > 33, S_I* was off by less than half of
        it.
        """
        u, phi = self.least()
        parts = [self.least(drop) for drop in (0, -1)]
        far = max(0.0, 1 - self.y[-1] * u) ** 2
        slope, slope_error = self.slope(u)
        # phi is stationary at y*, its slope in d is not.
        slope_error += max(abs(self.slope(part)[0] - slope) for part, _ in parts)
        slope_error += 0.5 * math.sqrt(far) * float(np.ptp(self.slopes)) + 0.03 * far * abs(slope)
        bound = u == 0 or any(part == 0 for part, _ in parts)
        return LadderStar(
            y=self.y[-1] if bound else 1 / u,
            y_error=self.y[-1] if bound else max(abs(1 / part - 1 / u) for part, _ in parts),
            bound=bound,
            phi=phi,
            phi_error=self.phi_error(),
            slope=slope,
            slope_error=slope_error,
            continued=far > 0,
        )

    def phi_error(self) -> float:
        """Return the error of S_I* (:meth:`star`), which takes no time."""
        u, phi = self.least()
        far = max(0.0, 1 - self.y[-1] * u) ** 2
        error = max(abs(self.least(drop)[1] - phi) for drop in (0, -1)) + self.noise(u)
        return float(error + 0.5 * far * abs(self.phi[-1] - phi))

    def near(self, y: float) -> tuple[Array, float]:
        """Return the conjugate overlaps at a y, and how far it is from the nearest integer solved.

        They fall like 1/y; the distance, relative, bounds what that misses.
        """
        k = int(np.argmin(np.abs(np.log(np.array(self.y) / y))))
        return np.asarray(self.qhat[k] * self.y[k] / y), abs(1 - self.y[k] / y)

    def least(self, drop: int | None = None) -> tuple[float, float]:
        """Return u = 1/y of the zero of S_E around the least phi, or beyond it, and phi there.

        u is 0 where S_E has none. The first (0) or the last (-1) integer may be left out.
        """
        from scipy.interpolate import KroghInterpolator

        u, values = (x if drop is None else np.delete(x, drop) for x in (self.u, self.phi))
        phi = KroghInterpolator(u, values)
        lowest = int(np.argmin(values))
        end = u[lowest + 1] if lowest + 1 < u.size else 0.0
        grid = np.linspace(u[max(0, lowest - 1)], end, 601)
        external = phi.derivative(grid)
        crossed = np.flatnonzero(external[1:] <= 0)
        least = 0.0
        if crossed.size:
            k = int(crossed[0])
            share = external[k] / (external[k] - external[k + 1])
            least = float(grid[k] + share * (grid[k + 1] - grid[k]))
        return least, float(phi(least))

    @property
    def in_reach(self) -> bool:
        """Whether phi falls, then rises: y* is between the integers."""
        return 0 < int(np.argmin(self.phi)) < len(self.y) - 1

    def noise(self, u: float) -> float:
        """Errors of all phi, amplified by the polynomial at `u`."""
        return float(np.abs(_lagrange(self.u, u)) @ self.error)

    @cached_property
    def slopes(self) -> Array:
        """Derivative of phi in d at fixed y, at the last few integers."""
        conjugates = self.qhat[-len(self.models) :]
        return np.array([m.slope(q) for m, q in zip(self.models, conjugates, strict=True)])

    def slope(self, u: float) -> tuple[float, float]:
        """Return the slope at u = 1/y, and what leaving out the first or the last y changes."""
        places, values = self.u[-len(self.models) :], self.slopes
        full = float(_lagrange(places, u) @ values)
        parts = [float(_lagrange(np.delete(places, k), u) @ np.delete(values, k)) for k in (0, -1)]
        noise = float(np.abs(_lagrange(places, u)) @ np.abs(values)) * _STEP**2
        return full, max(abs(part - full) for part in parts) + noise


def replicated_ladder(chain: Chain, d: float) -> Ladder:
    """Solve the saddle at integer y, each from the one before, until phi has risen three times."""
    models: list[ReplicatedChain] = []
    phi: list[float] = []
    conjugates: list[Array] = []
    for y in _REPLICAS:
        model = replicated_chain(chain, d, y, _LEVEL)
        # qhat falls like 1/y.
        start = conjugates[-1] * models[-1].y / y if y > 4 else None
        conjugates.append(model.saddle(start))
        models.append(model)
        phi.append(model.phi(conjugates[-1]))
        if len(phi) > 3 and phi[-1] > phi[-2] > phi[-3] > phi[-4]:
            break
    # The rule is chosen for each y and equally good at all of them.
    rough = replicated_chain(chain, d, models[-1].y, _LEVEL - 1).phi(conjugates[-1])
    values, places = np.array(phi[-_TAKEN:]), tuple(m.y for m in models[-_TAKEN:])
    error = np.full(values.size, abs(rough - phi[-1]) + 1e-14)
    last = tuple(models[-_SLOPES:])
    return Ladder(chain, d, places, values, error, tuple(conjugates[-_TAKEN:]), last)


def _lagrange(nodes: Array, at: float) -> Array:
    """Weights of the values at `nodes` in the polynomial through them, at one place."""
    return np.array([np.prod([(at - b) / (a - b) for b in nodes if b != a]) for a in nodes])


# The matrix.


class ReplicatedChain(ABC):
    """G'(qhat) = log int zeta^y - y^2 Q/2 of a chain at one (d, y)."""

    def __init__(self, chain: Chain, d: float, y: int, level: int) -> None:
        self.chain, self.d, self.y = chain, d, y
        jd, left, right = chain.jd, chain.lam_left, chain.lam_right
        transitions = {abs(jd + a * left + b * right) for a in (1, 0, -1) for b in (1, 0, -1)}
        nodes = field_nodes(1 - 2 * d, tuple(sorted(transitions)), field_step(level, y))
        self._x, self._weight = nodes.at, np.exp(nodes.log_weight)
        count = y + 1
        self._size = count**3
        # States (n_++, n_+-, n_-+) as one index, sorted by the replicas m with first spin +1, and
        # by those with second spin +1.
        self._by_first = [
            np.array(
                [[(i * count + m - i) * count + j for j in range(count - m)] for i in range(m + 1)]
            )
            for m in range(count)
        ]
        self._by_second = [
            np.array(
                [[(i * count + j) * count + m - i for j in range(count - m)] for i in range(m + 1)]
            )
            for m in range(count)
        ]
        #: (n_+ - n_-)^2/2 - y^2/2 of the first spin
        self._square = np.zeros(self._size)
        for m, states in enumerate(self._by_first):
            self._square[states] = 0.5 * ((2 * m - y) ** 2 - y * y)

    @property
    @abstractmethod
    def unknowns(self) -> int:
        """Number of qhat: one for each layer, a single one for the infinite chain."""

    @abstractmethod
    def norm(self, qhat: Array) -> tuple[float, Array]:
        """G' and its derivatives in the qhat; per layer for the infinite chain."""

    def _p(self, s: int, a: int, b: int) -> Array:
        chain = self.chain
        v = chain.jd + chain.lam_left * a * s + chain.lam_right * s * b + s * self._x
        return P(v / math.sqrt(2 * self.d))

    def phi(self, qhat: Array) -> float:
        """Free entropy per neuron."""
        norm, _ = self.norm(qhat)
        return (norm / self.y + (self.y - 1) * self.d * float(qhat.sum())) / qhat.size

    def slope(self, qhat: Array) -> float:
        """Return dphi/dd at fixed y and `qhat`, by a central difference of G'.

        At the saddle qhat may be held fixed, since phi is stationary in it.
        """
        step = _STEP * min(self.d, 0.5 - self.d)
        ends = [
            self.norm_beside(
                replicated_chain(self.chain, self.d + sign * step, self.y, _LEVEL), qhat
            )
            for sign in (1, -1)
        ]
        explicit = (self.y - 1) * float(qhat.sum())
        return ((ends[0] - ends[1]) / (2 * step * self.y) + explicit) / qhat.size

    def norm_beside(self, other: ReplicatedChain, qhat: Array) -> float:
        """G' of the same chain at a distance next to this one."""
        return other.norm(qhat)[0]

    def saddle(self, start: Array | None = None) -> Array:
        """Solve <m_l^2> = q1 for the qhat."""
        from scipy import optimize

        pairs = self.y * (self.y - 1)

        def residual(log_qhat: Array) -> Array:
            return np.asarray(2 * self.d + 2 * self.norm(np.exp(log_qhat))[1] / pairs)

        if start is None:
            low, high = (math.log(q) for q in (1e-6, 1e2))
            uniform = optimize.brentq(
                lambda q: float(residual(np.full(self.unknowns, q)).mean()), low, high, xtol=1e-3
            )
            start = np.exp(np.full(self.unknowns, uniform))
        solution = optimize.root(residual, np.log(start), tol=1e-13)
        if np.abs(residual(solution.x)).max() > 1e-11:
            raise NotConvergedError(f"the saddle did not converge at d = {self.d:g}, y = {self.y}")
        return np.asarray(np.exp(solution.x))


class _ReplicatedCore(ReplicatedChain):
    """One layer: no transfer."""

    @property
    def unknowns(self) -> int:
        """One qhat."""
        return 1

    def norm(self, qhat: Array) -> tuple[float, Array]:
        """G' and its derivative in qhat: a sum over the number m of replicas with spin +1."""
        m, y = np.arange(self.y + 1), self.y
        square = 0.5 * ((2 * m - y) ** 2 - y * y)
        up, down = (_powers(self._p(s, 0, 0), y) for s in (1, -1))
        terms = (
            self._weight @ (up * down[:, ::-1]) * _binomials(y) * np.exp(float(qhat[0]) * square)
        )
        total = float(terms.sum())
        return math.log(total), np.array([float(terms @ square) / total])


class _Transfer(ReplicatedChain):
    """The step from one layer to the next."""

    @cached_property
    def _steps(self) -> list[Array]:
        """Blocks of X, by m."""
        factors = {
            s: _products(
                self._p(s, -1, 1), self._p(s, 1, 1), self._p(s, -1, -1), self._p(s, 1, -1), self.y
            )
            for s in (1, -1)
        }
        steps = []
        for m in range(self.y + 1):
            up, down = factors[1][m], factors[-1][self.y - m]
            a, b = m + 1, self.y - m + 1
            pairs = (up * self._weight[:, None, None]).reshape(-1, a * a).T @ down.reshape(
                -1, b * b
            )
            # from (i, i', j, j') to (i, j), (i', j')
            steps.append(pairs.reshape(a, a, b, b).swapaxes(1, 2).reshape(a * b, a * b))
        return steps

    def _apply(self, vector: Array, transposed: bool = False) -> Array:
        result = np.zeros(self._size)
        for step, first, second in zip(self._steps, self._by_first, self._by_second, strict=True):
            if transposed:
                result[first.ravel()] = vector[second.ravel()] @ step
            else:
                result[second.ravel()] = step @ vector[first.ravel()]
        return result


class _ReplicatedFinite(_Transfer):
    """Two layers or more: products of steps from both ends."""

    @property
    def unknowns(self) -> int:
        """One qhat for each layer."""
        return self.chain.finite_layers

    @cached_property
    def _first(self) -> Array:
        """Row of the first layer."""
        row = np.zeros(self._size)
        y = self.y
        powers = {(s, b): _powers(self._p(s, 0, b), y) for s in (1, -1) for b in (1, -1)}
        for m, states in enumerate(self._by_first):
            up = powers[1, 1][:, : m + 1] * powers[1, -1][:, m::-1]
            down = powers[-1, 1][:, : y - m + 1] * powers[-1, -1][:, y - m :: -1]
            row[states] = (up * self._weight[:, None]).T @ down
        return row

    @cached_property
    def _last(self) -> tuple[Array, Array]:
        """Vector of the last layer without its tilt, and the exponent that qhat multiplies."""
        vector, exponent = np.zeros(self._size), np.zeros(self._size)
        y = self.y
        powers = {(s, a): _powers(self._p(s, a, 0), y) for s in (1, -1) for a in (1, -1)}
        for m, states in enumerate(self._by_second):
            exponent[states] = 0.5 * ((2 * m - y) ** 2 - y * y)
            up = powers[1, 1][:, : m + 1] * powers[1, -1][:, m::-1] * _binomials(m)
            down = (
                powers[-1, 1][:, : y - m + 1] * powers[-1, -1][:, y - m :: -1] * _binomials(y - m)
            )
            vector[states] = (up * self._weight[:, None]).T @ down
            vector[states] *= math.comb(y, m)
        return vector, exponent

    def norm(self, qhat: Array) -> tuple[float, Array]:
        """G' and its derivatives in the qhat, by vectors from both ends."""
        tilts = [np.exp(q * self._square) for q in qhat]
        untilted, exponent = self._last
        vector = untilted * np.exp(float(qhat[-1]) * exponent)
        right, log_norm = [vector], 0.0
        for tilt in reversed(tilts[1:-1]):
            image = self._apply(tilt * right[0])
            scale = float(image.max())
            log_norm += math.log(scale)
            right.insert(0, image / scale)
        left = self._first
        total = float(left @ (tilts[0] * right[0]))
        gradient = np.empty(qhat.size)
        for k, tilt in enumerate(tilts[:-1]):
            tilted = left * tilt
            gradient[k] = tilted @ (self._square * right[k]) / (tilted @ right[k])
            if k < qhat.size - 2:
                left = self._apply(tilted, transposed=True)
        gradient[-1] = tilted @ (exponent * vector) / (tilted @ vector)
        return math.log(total) + log_norm, gradient


class _ReplicatedInfinite(_Transfer):
    """One layer of the infinite chain."""

    def __init__(self, chain: Chain, d: float, y: int, level: int) -> None:
        super().__init__(chain, d, y, level)
        everywhere = np.zeros(self._size)
        everywhere[np.concatenate([states.ravel() for states in self._by_first])] = 1.0
        #: Right and left eigenvector of the last qhat: those of the next one are close.
        self._vectors = everywhere, everywhere

    @property
    def unknowns(self) -> int:
        """One qhat."""
        return 1

    def norm(self, qhat: Array) -> tuple[float, Array]:
        """G' per layer and its derivative in qhat, by the leading eigenvalue."""
        tilt = np.exp(float(qhat[0]) * self._square)
        right, left = self._vectors
        mu = math.inf
        for _ in range(500):
            new, row = self._apply(tilt * right), tilt * self._apply(left, transposed=True)
            before, mu = mu, float(new.max())
            # The maximum of the right vector is 1, so that mu is its growth.
            change = max(np.abs(new / mu - right).max(), np.abs(row / row.max() - left).max())
            right, left = new / mu, row / row.max()
            if change < 1e-15 or (change < 1e-13 and abs(mu / before - 1) < 1e-15):
                slope = left @ self._apply(tilt * self._square * right) / (left @ right) / mu
                self._vectors = right, left
                return math.log(mu), np.array([slope])
        raise NotConvergedError(
            f"the leading eigenvalue did not converge at d = {self.d}, y = {self.y}"
        )

    def norm_beside(self, other: ReplicatedChain, qhat: Array) -> float:
        """G' per layer at a distance next to this one, to first order: no iteration is needed."""
        assert isinstance(other, _ReplicatedInfinite)
        self.norm(qhat)  # its vectors
        right, left = self._vectors
        image = other._apply(np.exp(float(qhat[0]) * self._square) * right)
        return math.log(float(left @ image) / float(left @ right))


_TYPES: dict[int | float, type[ReplicatedChain]] = {
    1: _ReplicatedCore,
    math.inf: _ReplicatedInfinite,
}


def replicated_chain(chain: Chain, d: float, y: int, level: int) -> ReplicatedChain:
    """Return the replicated matrix of a chain at (d, y) at a level of the quadrature."""
    return _TYPES.get(chain.layers, _ReplicatedFinite)(chain, d, y, level)


def _powers(p: Array, y: int) -> Array:
    """p^0 .. p^y, along a new axis."""
    return np.asarray(p[:, None] ** np.arange(y + 1))


def _binomials(m: int) -> Array:
    return np.array([math.comb(m, i) for i in range(m + 1)], dtype=float)


def _products(p0: Array, p1: Array, r0: Array, r1: Array, y: int) -> list[Array]:
    """Coefficients of w^i in (p0 + w p1)^k (r0 + w r1)^(m-k) at [x, i, k], for m = 0 .. y."""

    def binomial_powers(a: Array, b: Array) -> list[Array]:
        return [_powers(a, k)[:, ::-1] * _powers(b, k) * _binomials(k) for k in range(y + 1)]

    first, second = binomial_powers(p0, p1), binomial_powers(r0, r1)
    tables = []
    for m in range(y + 1):
        table = np.zeros((p0.size, m + 1, m + 1))
        for k in range(m + 1):
            for i in range(k + 1):
                table[:, i : i + m - k + 1, k] += first[k][:, i, None] * second[m - k]
        tables.append(table)
    return tables
