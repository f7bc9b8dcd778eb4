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

from rmtheory.annealed import entropy as annealed_entropy
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

    def _last(self, qhat: float) -> tuple[Array, Array]:
        """Vector of the last layer, and its derivative in qhat."""
        vector, slope = np.zeros(self._size), np.zeros(self._size)
        y = self.y
        powers = {(s, a): _powers(self._p(s, a, 0), y) for s in (1, -1) for a in (1, -1)}
        for m, states in enumerate(self._by_second):
            square = 0.5 * ((2 * m - y) ** 2 - y * y)
            up = powers[1, 1][:, : m + 1] * powers[1, -1][:, m::-1] * _binomials(m)
            down = (
                powers[-1, 1][:, : y - m + 1] * powers[-1, -1][:, y - m :: -1] * _binomials(y - m)
            )
            vector[states] = (up * self._weight[:, None]).T @ down
            vector[states] *= math.comb(y, m) * math.exp(qhat * square)
            slope[states] = square * vector[states]
        return vector, slope

    def norm(self, qhat: Array) -> tuple[float, Array]:
        """G' and its derivatives in the qhat, by vectors from both ends."""
        tilts = [np.exp(q * self._square) for q in qhat]
        vector, slope = self._last(float(qhat[-1]))
        right, log_norm = [vector], 0.0
        for tilt in reversed(tilts[1:-1]):
            image = self._apply(tilt * right[0])
            scale = float(image.max())
            log_norm += math.log(scale)
            right.insert(0, image / scale)
        left = self._first()
        total = float(left @ (tilts[0] * right[0]))
        gradient = np.empty(qhat.size)
        for k, tilt in enumerate(tilts[:-1]):
            tilted = left * tilt
            gradient[k] = tilted @ (self._square * right[k]) / (tilted @ right[k])
            if k < qhat.size - 2:
                left = self._apply(tilted, transposed=True)
        gradient[-1] = tilted @ slope / (tilted @ vector)
        return math.log(total) + log_norm, gradient


class _ReplicatedInfinite(_Transfer):
    """One layer of the infinite chain."""

    @property
    def unknowns(self) -> int:
        """One qhat."""
        return 1

    def norm(self, qhat: Array) -> tuple[float, Array]:
        """G' per layer and its derivative in qhat, by the leading eigenvalue."""
        tilt = np.exp(float(qhat[0]) * self._square)
        right = np.zeros(self._size)
        right[np.concatenate([states.ravel() for states in self._by_first])] = 1.0
        left = right.copy()
        mu = 0.0
        for _ in range(500):
            new, row = self._apply(tilt * right), tilt * self._apply(left, transposed=True)
            before, mu = mu, float(new.max())
            # The maximum of the right vector is 1, so that mu is its growth.
            change = max(np.abs(new / mu - right).max(), np.abs(row / row.max() - left).max())
            right, left = new / mu, row / row.max()
            if change < 1e-15 or (change < 1e-13 and abs(mu / before - 1) < 1e-15):
                slope = left @ self._apply(tilt * self._square * right) / (left @ right) / mu
                return math.log(mu), np.array([slope])
        raise NotConvergedError(
            f"the leading eigenvalue did not converge at d = {self.d}, y = {self.y}"
        )


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
