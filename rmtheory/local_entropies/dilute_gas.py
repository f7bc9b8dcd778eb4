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
J_D = 0 no single flip is possible, and S_I*/L is half as large. This limit
(:func:`small_distance`) leaves out terms of relative order sqrt(d log 1/d) and sqrt(2d)/J_D.

**Smeared windows.** A spin flips alone if its field lies in a window of width 2 J_D, whose edges
two points at distance d see smeared by sigma = sqrt(2d), and the lower edge moves by
sigma sqrt(2 log y) since all y points have to be satisfied: the windows are sharp only for
d << J_D^2. Nothing of this needs an expansion. With t = y sqrt(qhat) + e, exactly

.. math:: \int\!Dt\, \zeta^y = e^{y^2\hat q/2} \int\!De\, B(\rho\, e^{-2\sqrt{\hat q}\,e})^y, \qquad
    \rho = e^{-2y\hat q},

for h > 0, half of the integral (h < 0 is its mirror image), B being zeta e^{-h}: the sum over the
moves k of a column that starts aligned with its h_l,

.. math:: B = \sum_k \prod_{l\in k}\rho_l \prod_l P\Big(\frac{v_l^{(k)} \pm x_l}{\sigma}\Big),

the lower sign for layers in k, and v^(k) the couplings after the move. As d -> 0 at fixed d/J_D^2,
y grows like 1/d and qhat = -log(rho)/(2y) vanishes like d log(1/d): e drops out, and

.. math:: L\,y\,\phi = \log Z - \tfrac12 (y-1)\,d \sum_l\log\rho_l, \qquad
    Z = 2\sum_{\tau} \int\prod_l Dx_l\, B^y ,

x_l of variance q1 and tau the bonds from which the column starts, stationary in rho_l and y: the
gas with smeared windows (:func:`smeared_gas`), one integral per layer in place of two. For
d << J_D^2 P is 0 or 1, B^y = exp(w.f), and Z is that above. The average over e acts on B^y as
exp(2 qhat (d/d log rho)^2), so that the next order is

.. math:: L\,\delta\phi = \frac{2}{y} \sum_l \hat q_l \Big\langle y^2 n_l^2 + y\,n_l(1-n_l)
    \Big\rangle ,

n_l being the share of flipped spins at given x. It is added; what is left is of second order in
qhat, uniformly in d/J_D^2. The slope is (1/L) sum_l (y-1)[-log(rho_l)/(2y) - <(d log B/dx_l)^2>],
the envelope slope of the full functional, plus the derivative of the first order in d.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from typing import Any, ClassVar

import numpy as np

from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError, OutsideValidityError
from rmtheory.base.estimate import Estimate
from rmtheory.base.gaussian import Array, P, n
from rmtheory.local_entropies.deep_gas import BEYOND, DeepGasSolver, find_deep_gas
from rmtheory.local_entropies.quadrature import STEPS, Nodes, field_nodes

# Sharp windows: the limit d -> 0.


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
    #: log rho_l; a single one where all layers are alike.
    log_rho: tuple[float, ...]


def small_distance(chain: Chain, d: float) -> SmallDistance:
    """Solve the dilute gas of flips at distance `d`.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> limit = small_distance(Chain(1, 0.1), 1e-5)
    >>> f"{limit.internal:.4e} {limit.y_star:.4g} {limit.slope:.4f}"
    '6.0041e-05 5.526e+04 5.5041'
    """
    gas = gas_of(chain).sharp()
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
    kept = np.log(rhos if not chain.uniform else rhos[:1])
    return SmallDistance(
        chain, d, y, internal, slope, tuple(map(float, allowed)), tuple(map(float, kept))
    )


class Gas(ABC):
    """The dilute gas of flips of a chain: a type for each way to sum over its columns."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain

    @abstractmethod
    def leading_order(self, d: float, y: float, log_rho: Array) -> SmearedGas:
        """Solve from a guess; S_I* to first order in qhat, the slope to leading order."""

    @abstractmethod
    def start(self, d: float) -> tuple[float, Array]:
        """Return (y*, log rho) at `d` without a guess."""

    @abstractmethod
    def answer(
        self, d: float, least_y: float, start: tuple[float, Array] | None
    ) -> GasAnswer | None:
        """Return y* and S_I* at `d`; None if flips are not dilute or y* < `least_y`.

        Where S_E > 0 as far as y is followed, every flip may be allowed at once: S_I* is then
        known to S_E/y, and y* is a lower bound.
        """

    def sharp(self) -> FieldGas:
        """Return the gas with sharp windows, where it is worked out."""
        raise InvalidInputError("layers", self.chain.layers, "1 or 2 for the dilute gas of flips")


class FieldGas(Gas):
    """One layer or two: all fields of a column at once.

    Columns are sorted by the moves they allow (sharp windows), or weighed by B^y (smeared ones).
    """

    #: Layers flipped by each move.
    moves: ClassVar[Array]

    def sharp(self) -> FieldGas:
        """Return the gas itself."""
        return self

    @property
    def layers(self) -> int:
        """Number of layers."""
        return int(self.moves.shape[1])

    # Sharp windows.

    @cached_property
    def class_weights(self) -> dict[tuple[bool, ...], float]:
        """Weight p_f of the satisfied columns by the moves they allow, summed over their spins."""
        weights: dict[tuple[bool, ...], float] = {}
        for moves, weight in self._columns():
            if weight > 0:
                weights[moves] = weights.get(moves, 0.0) + weight
        return weights

    @cached_property
    def classes(self) -> Array:
        """The moves that each class of columns allows."""
        return np.array(list(self.class_weights), dtype=float)

    @cached_property
    def log_weight(self) -> Array:
        """Logarithms of the weights p_f of the classes."""
        return np.asarray(np.log(list(self.class_weights.values())))

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

    # Smeared windows.

    def leading_order(self, d: float, y: float, log_rho: Array) -> SmearedGas:
        """Solve from a guess; S_I* to first order in qhat, the slope to leading order."""
        return self._collected(d, *self._solve(d, y, log_rho))

    def start(self, d: float) -> tuple[float, Array]:
        """Follow the gas to `d` from a distance so small that the windows are sharp."""
        limit = small_distance(self.chain, d)
        try:
            return self._solve(d, limit.y_star, np.array(limit.log_rho))
        except NotConvergedError:
            if d < _LEAST_START:
                raise
        y, log_rho = self.start(d / 3)
        return self._solve(d, y / 3, log_rho + math.log(3) / 2)

    def answer(
        self, d: float, least_y: float, start: tuple[float, Array] | None
    ) -> GasAnswer | None:
        """Return y* and S_I* at `d`.

        Where every move can be allowed at once, S_E is positive up to y d of several tens: S_I* is
        read at y d = 40, or 20 or 10, where S_E > 0 still.
        """
        with suppress(OutsideValidityError):
            gas = smeared_gas(self.chain, d, start)
            return None if gas.y_star < least_y else self._answer(gas, 0.0)
        if self.chain.uniform:
            for y in (_PLATEAU / d, 0.5 * _PLATEAU / d, 0.25 * _PLATEAU / d):
                gas, external = self.at(d, y)
                if external >= 0:
                    return self._answer(gas, external)
            return None
        return MessageGas(self.chain, _BEYOND_PAIR).answer(d, least_y, start)

    def _answer(self, gas: SmearedGas, external: float) -> GasAnswer | None:
        """Turn the gas into an answer; where S_E = `external` > 0 its y is a lower bound of y*."""
        if not gas.dilute:
            return None
        left, moved = external / gas.y_star, _Y_MOVES * gas.qhat
        return GasAnswer(
            y=gas.y_star,
            y_error=moved * gas.y_star,
            y_is_bound=external > 0,
            internal=gas.internal - left,
            internal_error=gas.error + left,
            slope=gas.slope,
            slope_error=gas.slope_error + left / gas.d,
            qhat=-np.broadcast_to(np.array(gas.log_rho), (self.layers,)) / (2 * gas.y_star),
        )

    def at(self, d: float, y: float) -> tuple[SmearedGas, float]:
        """Return the gas of one layer or two mirror images at given y, and S_E per neuron there."""
        from scipy import optimize

        def excess(log_rho: float) -> float:
            flipped = self.columns(d, y, np.array([log_rho])).flipped
            return y * float(flipped[0]) - 0.5 * (y - 1) * d

        low, high = math.log(d) - 5, math.log(MOST_RHO)
        if excess(low) > 0 or excess(high) < 0:
            raise NotConvergedError(
                f"flips of {self.chain} are not dilute at d = {d:.10g}, y = {y:g}"
            )
        log_rho = np.array([optimize.brentq(excess, low, high, xtol=1e-10)])
        columns, total = self.columns(d, y, log_rho), self.layers * float(log_rho[0])
        external = (columns.log_z - y * columns.log_b + 0.5 * d * total) / self.layers
        return self._collected(d, y, log_rho), external

    def _collected(self, d: float, y: float, log_rho: Array) -> SmearedGas:
        """Return S_I* to first order in qhat and the slope to leading order at a solution."""
        columns = self.columns(d, y, log_rho)
        shared = np.broadcast_to(log_rho, (self.layers,))
        phi = (columns.log_z - 0.5 * (y - 1) * d * float(shared.sum())) / (y * self.layers)
        slope = (y - 1) * float((-0.5 * shared / y - columns.force).mean())
        correction = columns.first_order(y, shared)
        kept = tuple(map(float, log_rho))
        return SmearedGas(self.chain, d, y, phi + correction, correction, slope, None, kept)

    def _solve(self, d: float, y: float, log_rho: Array) -> tuple[float, Array]:
        """Solve <n_l>_y = (1 - 1/y) d/2 and S_E = 0 for (y, log rho) by Newton's method."""
        size = log_rho.size
        fold = np.ones((self.layers, 1)) if size == 1 else np.eye(size)
        for _ in range(_MOST_STEPS):
            at = self.columns(d, y, log_rho)
            flipped, total = at.flipped, float((fold @ log_rho).sum())
            covariance = at.square - np.outer(flipped, flipped)
            with_log = at.flipped_log - flipped * at.log_b
            residual = np.append(
                (y * flipped - 0.5 * (y - 1) * d)[:size], at.log_z - y * at.log_b + 0.5 * d * total
            )
            jacobian = np.empty((size + 1, size + 1))
            moved = y * (y * covariance + at.together - at.square) @ fold
            jacobian[:size, 1:] = moved[:size]
            jacobian[:size, 0] = (y * (flipped + y * with_log - 0.5 * d))[:size]
            jacobian[size, 1:] = (0.5 * d - y * y * with_log) @ fold
            jacobian[size, 0] = -y * y * (at.log_square - at.log_b**2)
            try:
                step = -np.linalg.solve(jacobian, residual)
            except np.linalg.LinAlgError:
                step = np.full(size + 1, math.nan)
            largest = float(np.abs(step).max())
            if not math.isfinite(largest):
                break
            step *= min(1.0, _LARGEST_STEP / largest)
            y, log_rho = y * math.exp(step[0]), log_rho + step[1:]
            if largest < max(_ACCURACY, 1e-15 * y):  # rounding of y log B
                return y, log_rho
            if not (1 < y < 1e15 and float(log_rho.max()) < 0):
                break
        raise NotConvergedError(
            f"the gas of flips of {self.chain} did not converge at d = {d:.10g}"
        )

    def columns(self, d: float, y: float, log_rho: Array) -> _Columns:
        """Integrate over the fields of a column, and sum over the spins it starts from."""
        moves = np.vstack([np.zeros(self.layers), self.moves])  # to stay is one
        log_factor = moves @ np.broadcast_to(log_rho, (self.layers,))
        parts = [
            _sector(sites, y, moves, log_factor)
            for sites in self._sectors(d, y, np.exp(log_factor))
        ]
        log_z = float(np.logaddexp.reduce([part.log_z for part in parts]))
        shares = [math.exp(part.log_z - log_z) for part in parts]

        def mean(name: str) -> Any:
            return sum(
                share * getattr(part, name) for share, part in zip(shares, parts, strict=True)
            )

        names = ("log_b", "log_square", "flipped", "flipped_log", "square", "together", "force")
        # A flip of all spins and fields doubles the columns.
        return _Columns(log_z + math.log(2.0), *(mean(name) for name in names))

    @abstractmethod
    def _sectors(self, d: float, y: float, factor: Array) -> Iterator[list[_Windows]]:
        """Yield the windows of the layers, in turn for all bonds from which a column starts."""


class CoreGas(FieldGas):
    """One layer: its spin can flip."""

    moves = np.array([[1.0]])

    def _columns(self) -> Iterator[tuple[tuple[bool, ...], float]]:
        for mass, _, _, flips in _cells(self.chain.jd, self.chain.jd):
            yield (flips,), 2 * mass

    def _sectors(self, d: float, y: float, factor: Array) -> Iterator[list[_Windows]]:
        jd, sigma = self.chain.jd, math.sqrt(2 * d)
        nodes = field_nodes(1 - 2 * d, (jd,), _step(4, y))
        yield [_windows(np.array([jd, jd]), np.array([1, -1]), nodes, sigma, y, factor)]


class PairGas(FieldGas):
    """Two layers: s_1 can flip, or s_2, or both."""

    moves = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])

    def _columns(self) -> Iterator[tuple[tuple[bool, ...], float]]:
        jd, lams = self.chain.jd, (self.chain.lam_right, self.chain.lam_left)
        for tau in (1, -1):
            sides = [_cells(jd + lam * tau, jd - lam * tau) for lam in lams]
            for (p1, stays1, alone1, both1), (p2, stays2, alone2, both2) in product(*sides):
                yield (alone1 and stays2, alone2 and stays1, both1 and both2), 2 * p1 * p2

    def _sectors(self, d: float, y: float, factor: Array) -> Iterator[list[_Windows]]:
        jd, sigma = self.chain.jd, math.sqrt(2 * d)
        reverses = np.array([1, -1, -1, 1])  # a flip of one spin reverses the bond
        flips = np.vstack([np.zeros(2), self.moves])
        for tau in (1, -1):
            yield [
                _windows(
                    jd + lam * tau * reverses,
                    1 - 2 * flips[:, layer],
                    field_nodes(1 - 2 * d, (abs(jd + lam), abs(jd - lam)), _step(2, y)),
                    sigma,
                    y,
                    factor,
                )
                for layer, lam in enumerate((self.chain.lam_right, self.chain.lam_left))
            ]


class MessageGas(Gas):
    """Three layers or more, by messages; two as well where their couplings differ.

    y* is not searched for beyond y rho = `beyond`.
    """

    def __init__(self, chain: Chain, beyond: float = BEYOND) -> None:
        super().__init__(chain)
        self._beyond = beyond

    def leading_order(self, d: float, y: float, log_rho: Array) -> SmearedGas:
        """Solve from a guess, which may have a rho for every layer."""
        solver = DeepGasSolver(self.chain, d)
        gas = solver.ystar(y, np.asarray(log_rho)[: solver.fold.size])
        slope, changed = solver.slope(gas), solver.finer(gas)
        kept = tuple(map(float, gas.log_rho))
        internal = gas.phi + gas.correction
        return SmearedGas(
            self.chain, d, gas.y, internal, gas.correction, slope, None, kept, changed
        )

    def start(self, d: float) -> tuple[float, Array]:
        """Search for y* along y."""
        gas, bound = find_deep_gas(self.chain, d, self._beyond)
        if bound:
            raise OutsideValidityError(
                f"in {self.chain} every move can be allowed at once: y* is not of order 1/d"
            )
        return gas.y, gas.log_rho

    def answer(
        self, d: float, least_y: float, start: tuple[float, Array] | None
    ) -> GasAnswer | None:
        """Return y* and S_I* at `d`; `start` is not needed."""
        gas, bound = find_deep_gas(self.chain, d, self._beyond)
        if gas.y < least_y:
            return None
        solver = DeepGasSolver(self.chain, d)
        slope, rule = solver.slope(gas), solver.finer(gas)
        log_rho = solver.spread(gas.log_rho)
        qhat = -log_rho / (2 * gas.y)
        if not (float(qhat.max()) < MOST_QHAT and float(log_rho.max()) < math.log(MOST_RHO)):
            return None
        # S_I* has orders that go like d^2; for one layer and two the power was 1.0 to 3.2.
        slope += 2 * gas.correction / d
        left = gas.external / gas.y if bound else 0.0
        # The first order moves S_E by about y times what it adds to phi.
        moved = 2 * gas.softness * gas.layers * gas.y * abs(gas.correction)
        return GasAnswer(
            y=gas.y,
            y_error=gas.y * (moved + 1e-4),
            y_is_bound=bound,
            internal=gas.phi + gas.correction - left,
            internal_error=SECOND_ORDER * float(qhat.max()) * abs(gas.correction) + rule + left,
            slope=slope,
            slope_error=1.2 * abs(gas.correction) / d + 1e-4 * abs(slope) + 2 * rule / d + left / d,
            qhat=qhat,
            residual=0.0 if bound else abs(gas.external),
        )


_GASES: dict[int | float, type[Gas]] = {1: CoreGas, 2: PairGas}


def gas_of(chain: Chain) -> Gas:
    """Return the dilute gas of flips of a chain of any depth.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> type(gas_of(Chain(2, 0.1, 0.3))).__name__
    'PairGas'
    """
    return _GASES.get(chain.layers, MessageGas)(chain)


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


# Windows smeared by sqrt(2d): the gas uniformly in d/J_D^2.

#: Share of the integral that a dropped node may have, as a logarithm.
_NEGLIGIBLE = -45.0

#: Relative step at which Newton's method ends, the largest step of a logarithm, and how many.
_ACCURACY, _LARGEST_STEP, _MOST_STEPS = 1e-11, 0.7, 40

#: Second order in units of qhat times the first. It was 1.1 at most for one layer and two, J_D
#: from .005 to .3 and qhat below .2.
SECOND_ORDER = 3.0

#: Relative error of the slope by the rule in x; 5e-6 was found against finer steps.
_RULE = 2e-5

#: Distance down to which the gas is followed at most and at least, and in between in units of
#: J_D^2: windows are sharp where 2 d log y << J_D^2.
_LARGEST_SHARP, _LEAST_SHARP, _SHARP = 1e-7, 1e-11, 1e-3

#: Ratio of two distances on the way there, at most, and at least where Newton fails.
_RATIO, _LEAST_RATIO = 2.0, 1.02

#: Relative step of the difference that gives the slope of the first order.
_DIFFERENCE = 0.01

#: Largest qhat, and share of flipped spins rho, at which flips are called dilute.
MOST_QHAT, MOST_RHO = 0.25, 1 / 16

#: Distance at which the sharp windows have to do as a start.
_LEAST_START = 1e-14

#: What the first order moves y* by, relatively and in units of qhat: 5 to 10 for one layer.
_Y_MOVES = 15.0

#: y d at which the gas of two layers is read first where S_E stays positive, and y rho beyond which
#: y* is not searched for by messages: of two layers more is cheap.
_PLATEAU, _BEYOND_PAIR = 40.0, 16.0


@dataclass(frozen=True, eq=False)
class GasAnswer:
    """What the gas says of one distance; entropies per neuron."""

    y: float
    y_error: float
    #: Whether y* is only known to be larger.
    y_is_bound: bool
    internal: float
    internal_error: float
    slope: float
    slope_error: float
    #: One for each layer.
    qhat: Array
    residual: float = 0.0


@dataclass(frozen=True)
class SmearedGas:
    """The curve at one small d by the gas with smeared windows; entropies per neuron."""

    chain: Chain
    d: float
    y_star: float
    #: S_I* to first order in qhat, and what the first order adds.
    internal: float
    correction: float
    #: Slope dS_I*/dd, and what the first order adds to it, None where it was left out.
    slope: float
    slope_correction: float | None
    #: log rho_l; a single one where all layers are alike, those of half a deep chain.
    log_rho: tuple[float, ...]
    #: Error of S_I* by the rule in x and the grid of messages.
    rule_error: float = 0.0

    @property
    def qhat(self) -> float:
        """Largest conjugate overlap, -log(rho)/(2 y), in powers of which the gas is expanded."""
        return max(-a for a in self.log_rho) / (2 * self.y_star)

    @property
    def dilute(self) -> bool:
        """Whether flips are rare and the expansion in qhat makes sense."""
        return self.qhat < MOST_QHAT and max(self.log_rho) < math.log(MOST_RHO)

    @property
    def error(self) -> float:
        """Error of S_I*: the second order in qhat, and the rule."""
        return SECOND_ORDER * self.qhat * abs(self.correction) + self.rule_error

    @property
    def slope_error(self) -> float:
        """Error of the slope: S_I* has orders that go roughly like d^2 and d^3."""
        left = 3 * abs(self.correction) if self.slope_correction is None else 3 * self.error
        return left / self.d + _RULE * abs(self.slope)

    def difference(self, internal: float) -> float:
        """Relative difference of a computed S_I* from that of the gas."""
        return internal / self.internal - 1

    def agrees(self, internal: Estimate, slope: Estimate) -> bool:
        """Whether a computed S_I* and its slope are those of the gas, within both errors."""
        return (
            self.dilute
            and abs(internal.value - self.internal) <= self.error + internal.error
            and abs(slope.value - self.slope) <= self.slope_error + slope.error
        )

    def rises(self) -> bool:
        """Whether the slope of the gas is positive beyond its error from here down to d = 0.

        It is followed to a distance at which the windows are sharp; below, it grows like log(1/d).
        """
        gas, before, ratio = self, None, _RATIO
        end = _sharp_distance(self.chain)
        while gas.slope > gas.slope_error:
            if gas.d < end:
                return True
            try:
                start = gas._ahead(before, math.log(ratio))
                after = gas_of(gas.chain).leading_order(gas.d / ratio, *start)
            except NotConvergedError:
                ratio = math.sqrt(ratio)
                if ratio < _LEAST_RATIO:
                    return False
                continue
            before, gas, ratio = gas, after, min(_RATIO, ratio**1.5)
        return False

    def _ahead(self, before: SmearedGas | None, ahead: float) -> tuple[float, Array]:
        """Extrapolate (y, log rho) to a distance smaller by `ahead` in its logarithm."""
        log_rho = np.array(self.log_rho)
        if before is None:
            return self.y_star * math.exp(1.3 * ahead), log_rho - 0.5 * ahead
        share = ahead / math.log(before.d / self.d)
        log_y = math.log(self.y_star)
        moved = log_y + share * (log_y - math.log(before.y_star))
        return math.exp(moved), log_rho + share * (log_rho - np.array(before.log_rho))


def _sharp_distance(chain: Chain) -> float:
    """Return the distance at which a gas is as good as one with sharp windows.

    At J_D = 0 no spin flips alone, and windows are those of pairs, of the width of lambda.
    """
    width = chain.jd or min(abs(chain.lam_left), abs(chain.lam_right))
    return min(_LARGEST_SHARP, max(_LEAST_SHARP, _SHARP * width**2))


def smeared_gas(chain: Chain, d: float, start: tuple[float, Array] | None = None) -> SmearedGas:
    """Solve the gas with smeared windows at distance `d`.

    Parameters
    ----------
    chain : Chain
        Any number of layers.
    d : float
        A distance at which flips are dilute.
    start : (y, log rho), optional
        A guess; otherwise the limit d -> 0 is followed from smaller distances, and for three
        layers or more y is searched for.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> gas = smeared_gas(Chain(1, 0.1), 1e-4)  # the full solution is 4.670558e-04, y* = 3463
    >>> f"{gas.internal:.6e} {gas.error:.0e} {gas.y_star:.4g}"
    '4.670560e-04 8e-10 3436'
    """
    of_chain = gas_of(chain)
    if start is None:
        start = of_chain.start(d)
    gas = of_chain.leading_order(d, start[0], np.array(start[1], dtype=float))
    y, log_rho = gas.y_star, np.array(gas.log_rho)
    above, below = (
        of_chain.leading_order(factor * d, y, log_rho).correction
        for factor in (1 + _DIFFERENCE, 1 - _DIFFERENCE)
    )
    change = (above - below) / (2 * _DIFFERENCE * d)
    return replace(gas, slope=gas.slope + change, slope_correction=change)


@dataclass(frozen=True, eq=False)
class _Columns:
    """Averages over the columns in the measure B^y; arrays run over the layers."""

    log_z: float
    #: <log B>, <log^2 B>
    log_b: float
    log_square: float
    #: <n_l>, <n_l log B>
    flipped: Array
    flipped_log: Array
    #: <n_l n_m>, and the average chance that both are flipped
    square: Array
    together: Array
    #: <(d log B/dx_l)^2>
    force: Array

    def first_order(self, y: float, log_rho: Array) -> float:
        """First order in qhat of S_I*: exp(2 qhat (d/dlog rho)^2) acts on B^y."""
        square, together = np.diag(self.square), np.diag(self.together)
        curved = y * y * square + y * (together - square)
        return -float(log_rho @ curved) / (y * y * log_rho.size)


@dataclass(frozen=True, eq=False)
class _Windows:
    """Of one layer: P of its field after each move, at the nodes, and the derivative in x."""

    rows: Array
    slopes: Array
    log_weight: Array


def _step(level: int, y: float) -> float:
    """Step of the rule: P^y changes over sigma/u at x = -v + u sigma, where u^2 = 2 log y."""
    return STEPS[level] * min(1.0, 2.0 / math.log(max(y, 2.0)))


def _windows(
    v: Array, sign: Array, nodes: Nodes, sigma: float, y: float, factor: Array
) -> _Windows:
    argument = (v + sign * nodes.at[:, None]) / sigma
    rows = P(argument)
    # B is largest if the other layer is satisfied whatever it does, and larger than without flips:
    # far out nothing is left.
    with np.errstate(divide="ignore"):
        most, least = y * np.log(rows @ factor), y * np.log(rows[:, 0])
    kept = most + nodes.log_weight > (least + nodes.log_weight).max() + _NEGLIGIBLE
    return _Windows(
        rows[kept], (sign * n(argument) / sigma)[kept], np.asarray(nodes.log_weight[kept])
    )


def _sector(sites: list[_Windows], y: float, moves: Array, log_factor: Array) -> _Columns:
    """Averages over the fields of one or two layers; moves of the layers multiply."""
    first = sites[0].rows * np.exp(log_factor)
    if len(sites) == 1:
        second, other = np.ones((1, len(moves))), np.zeros(1)
    else:
        second, other = sites[1].rows, sites[1].log_weight
    b = first @ second.T
    log_b = np.log(b)
    exponent = y * log_b + (sites[0].log_weight[:, None] + other)
    largest = float(exponent.max())
    weight = np.exp(exponent - largest)
    total = float(weight.sum())
    weight /= total
    layers = range(moves.shape[1])
    flipped = [((first * moves[:, k]) @ second.T) / b for k in layers]
    weighted = [weight * share for share in flipped]

    def squared(left: Array, right: Array) -> float:
        return float((weight * ((left @ right.T) / b) ** 2).sum())

    together = np.diag([float(x.sum()) for x in weighted])
    force = [squared(sites[0].slopes * np.exp(log_factor), second)]
    if len(sites) > 1:
        pair = (first * moves.prod(axis=1)) @ second.T / b
        together[0, 1] = together[1, 0] = float(np.vdot(weight, pair))
        force.append(squared(first, sites[1].slopes))
    return _Columns(
        math.log(total) + largest,
        float(np.vdot(weight, log_b)),
        float(np.vdot(weight, log_b * log_b)),
        np.array([float(x.sum()) for x in weighted]),
        np.array([float(np.vdot(x, log_b)) for x in weighted]),
        np.array([[float(np.vdot(x, share)) for share in flipped] for x in weighted]),
        together,
        np.array(force),
    )
