r"""The curve y*(d) for d -> 0, one and two layers: a dilute gas of flips.

Close to a fixed point the fields stand still, and a column of spins can change by a move k if it
stays satisfied: for one layer the flip of its spin, for two layers the flip of s_1, of s_2, or of
both. Take a fixed point in which a fraction C_k of the columns allows move k and make a fraction
a_k of the moves. Two points so made are at distance d if every layer flips d/2, hence

.. math:: L S_I = \max_a \sum_k a_k \log\frac{e C_k}{a_k}, \quad \sum_{k\ni l} a_k = \frac d2
    \quad\Rightarrow\quad a_k = C_k \prod_{l\in k}\rho_l , \quad
    L S_I = \sum_k a_k - \frac d2 \sum_l \log\rho_l .

The number of such fixed points has the exponent Sigma(C), the entropy of the classes f of columns
by the moves they allow, p_f being the weight of the satisfied columns of that class:

.. math:: \Sigma = \log Z - \sum_k w_k C_k, \qquad Z(w) = \sum_f p_f e^{w\cdot f}, \qquad
    C_k = \partial_{w_k}\log Z .

At y* Sigma = 0, and maximising Sigma + y L S_I gives the prices w_k = y prod_l rho_l. The slope
dS_I*/dd is the mean of -(1/2) log rho_l. For one layer this is S_I* = (d/2) log(2 e C/d) and
y* = 2 C w/d with h_b(C) + C log(2 p) + (1-C) log(1-p) = 0, p = 2P(J) - 1; for two layers at
J_D = 0 no single flip is possible, and S_I*/L is half as large. Corrections are of relative order
sqrt(d log 1/d).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from typing import ClassVar

import numpy as np

from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError, OutsideValidityError
from rmtheory.base.gaussian import Array, P

#: How many times the order of its corrections the gas may be off where it describes the curve.
_CORRECTION = 4.0


@dataclass(frozen=True)
class SmallDistance:
    """Leading behaviour of the curve at one small d; entropies per neuron."""

    chain: Chain
    d: float
    y_star: float
    internal: float
    slope: float
    #: Fraction of columns that allow each move (flip of s_1; of s_2; of both).
    allowed: tuple[float, ...]

    def difference(self, internal: float) -> float:
        """Relative difference of a computed S_I* from that of the gas."""
        return internal / self.internal - 1

    def agrees(self, internal: float) -> bool:
        """Whether the gas is off by no more than a few times the order of its corrections."""
        return abs(self.difference(internal)) < _CORRECTION * correction_order(self.d)


def correction_order(d: float) -> float:
    """Relative order sqrt(d log(1/d)) of what the dilute gas leaves out."""
    return math.sqrt(d * math.log(1 / d))


def small_distance(chain: Chain, d: float) -> SmallDistance:
    """Solve the dilute gas of flips at distance `d`.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> limit = small_distance(Chain(1, 0.1), 1e-5)
    >>> f"{limit.internal:.4e} {limit.y_star:.4g} {limit.slope:.4f}"
    '6.0041e-05 5.526e+04 5.5041'
    """
    gas = _gas(chain)
    # d rises with rho; single flips give d ~ rho, double flips d ~ rho^2.
    low, high = -60.0, 0.0

    def distance(log_rho: float) -> float:
        return math.log(gas.distance(math.exp(log_rho))) - math.log(d)

    if distance(high) < 0:
        raise OutsideValidityError(f"d = {d:.10g} is beyond the dilute regime of {chain}")
    from scipy import optimize

    rho = math.exp(optimize.brentq(distance, low, high, xtol=1e-14))
    rhos = np.full(gas.layers, rho)
    y = gas.y_star(rhos)
    if not chain.uniform:
        y, rhos = gas.balance(d, y, rhos)
    allowed = gas.allowed(gas.prices(y, rhos))
    made = allowed * gas.factors(rhos)
    internal = (float(made.sum()) - 0.5 * d * float(np.log(rhos).sum())) / gas.layers
    slope = -0.5 * float(np.log(rhos).mean())
    return SmallDistance(chain, d, y, internal, slope, tuple(map(float, allowed)))


class _Gas(ABC):
    """Statistics of the columns by the moves they allow."""

    #: Layers flipped by each move.
    moves: ClassVar[Array]

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        weights = self.class_weights()
        self.classes = np.array(list(weights), dtype=float)
        self.log_weight = np.log(np.array(list(weights.values())))

    @property
    def layers(self) -> int:
        """Number of layers."""
        return int(self.moves.shape[1])

    def class_weights(self) -> dict[tuple[bool, ...], float]:
        """Weight p_f of the satisfied columns by the moves they allow, summed over their spins."""
        weights: dict[tuple[bool, ...], float] = {}
        for moves, weight in self._columns():
            if weight > 0:
                weights[moves] = weights.get(moves, 0.0) + weight
        return weights

    @abstractmethod
    def _columns(self) -> Iterator[tuple[tuple[bool, ...], float]]:
        """Yield the moves that satisfied columns allow, with their weights."""

    def factors(self, rhos: Array) -> Array:
        """Product of rho over the layers of each move."""
        return np.asarray(np.prod(np.where(self.moves > 0, rhos, 1.0), axis=1))

    def prices(self, y: float, rhos: Array) -> Array:
        """w_k = y prod rho."""
        return y * self.factors(rhos)

    def allowed(self, prices: Array) -> Array:
        """C_k, the fraction of columns that allow each move."""
        exponent = self.log_weight + self.classes @ prices
        share = np.exp(exponent - exponent.max())
        return np.asarray(share @ self.classes / share.sum())

    def sigma(self, prices: Array) -> float:
        """Exponent of the number of fixed points with these fractions."""
        exponent = self.log_weight + self.classes @ prices
        largest = float(exponent.max())
        log_z = math.log(float(np.exp(exponent - largest).sum())) + largest
        return log_z - float(prices @ self.allowed(prices))

    def y_star(self, rhos: Array) -> float:
        """Return y such that Sigma = 0; Sigma falls as all prices rise together."""
        from scipy import optimize

        factors = self.factors(rhos)
        occur = self.classes.any(axis=0)
        if not occur.any() or self.sigma(np.zeros(len(factors))) <= 0:
            raise OutsideValidityError(
                f"in {self.chain} no flip leaves a column satisfied: there is no gas of flips"
            )
        largest = float(factors[occur].max())
        top = 1.0
        while self.sigma(factors * (top / largest)) > 0:
            top *= 2
            if top > 1e6:
                raise OutsideValidityError(
                    f"in {self.chain} every move can be allowed at once: y* is not of order 1/d"
                )
        root = optimize.brentq(
            lambda x: self.sigma(factors * (x / largest)), 0.0, top, xtol=1e-15, rtol=1e-14
        )
        return float(root) / largest

    def distance(self, rho: float) -> float:
        """Return d of the gas with the same rho in all layers, averaged over the layers."""
        rhos = np.full(self.layers, rho)
        made = self.allowed(self.prices(self.y_star(rhos), rhos)) * self.factors(rhos)
        return 2 * float((made @ self.moves).mean())

    def balance(self, d: float, y: float, rhos: Array) -> tuple[float, Array]:
        """Solve for a rho of its own in each layer, each at distance d."""
        from scipy import optimize

        def equations(unknowns: Array) -> Array:
            rho = np.exp(unknowns[1:])
            prices = self.prices(math.exp(unknowns[0]), rho)
            made = self.allowed(prices) * self.factors(rho)
            return np.append(np.log(2 * (made @ self.moves) / d), self.sigma(prices))

        start = np.log(np.append(y, rhos))
        root, info, flag, _ = optimize.fsolve(equations, start, xtol=1e-13, full_output=True)
        if flag != 1 or float(np.abs(info["fvec"]).max()) > 1e-9:
            raise NotConvergedError(
                f"no balance between the layers of {self.chain} at d = {d:.10g}"
            )
        return math.exp(root[0]), np.exp(root[1:])


class _CoreGas(_Gas):
    """One layer: its spin can flip."""

    moves = np.array([[1.0]])

    def _columns(self) -> Iterator[tuple[tuple[bool, ...], float]]:
        for mass, _, _, flips in _cells(self.chain.jd, self.chain.jd):
            yield (flips,), 2 * mass


class _PairGas(_Gas):
    """Two layers: s_1 can flip, or s_2, or both."""

    moves = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])

    def _columns(self) -> Iterator[tuple[tuple[bool, ...], float]]:
        jd, lams = self.chain.jd, (self.chain.lam_right, self.chain.lam_left)
        for tau in (1, -1):
            sides = [_cells(jd + lam * tau, jd - lam * tau) for lam in lams]
            for (p1, stays1, alone1, both1), (p2, stays2, alone2, both2) in product(*sides):
                yield (alone1 and stays2, alone2 and stays1, both1 and both2), 2 * p1 * p2


_GASES: dict[int | float, type[_Gas]] = {1: _CoreGas, 2: _PairGas}


def _gas(chain: Chain) -> _Gas:
    if chain.layers not in _GASES:
        raise InvalidInputError("layers", chain.layers, "1 or 2 for the dilute gas of flips")
    return _GASES[chain.layers](chain)


def class_weights(chain: Chain) -> dict[tuple[bool, ...], float]:
    """Weight p_f of the satisfied columns by the moves they allow, summed over their spins."""
    return _gas(chain).class_weights()


def _cells(v: float, flipped: float) -> list[tuple[float, bool, bool, bool]]:
    """Split g = s h > -v by what it allows.

    Each cell is (probability, still satisfied when the neighbour flips: g > -flipped, can flip
    alone: g < flipped, can flip together with the neighbour: g < v).
    """
    cuts = sorted({x for x in (-flipped, flipped, v) if x > -v})
    cells = []
    for low, high in pairwise([-v, *cuts, math.inf]):
        inside = low + 1.0 if math.isinf(high) else 0.5 * (low + high)
        mass = float(P(-low) - P(-high))
        cells.append((mass, inside > -flipped, inside < flipped, inside < v))
    return cells
