r"""The dilute gas of flips of three layers or more: log Z by messages between the layers.

The gas with smeared windows (:mod:`rmtheory.local_entropies.dilute_gas`) needs

.. math:: Z = 2\sum_\tau \int\prod_l Dx_l\, B^y, \qquad
    B = \sum_k \prod_l \rho_l^{k_l}
    P\Big(\frac{v_l(\tau, k) + (-1)^{k_l} x_l}{\sigma}\Big),

k_l = 1 where layer l is flipped and tau_l the bonds from which a column starts. B is a sum along
the chain: with f(a, c) the part of the layers before l at k_{l-1} = a and k_l = c, a layer gives

.. math:: g(c, b) = \rho_l^c \sum_a f(a, c)\,
    P\Big(\frac{J_D + \lambda_L\tau_{l-1}(-1)^{a+c} + \lambda_R\tau_l(-1)^{c+b} + (-1)^c x_l}
    {\sigma}\Big) .

The integral over the layers behind is homogeneous of degree y in f,

.. math:: V_\tau(f) = f(0,0)^y\, v_\tau(R_1, R_2, R_3), \qquad
    R_1 = \frac{f(0,1)}{f(0,0)}, \quad R_2 = \frac{f(1,0)}{\rho f(0,0)}, \quad
    R_3 = \frac{f(1,1)}{\rho f(0,0)},

rho being that of the layer before. All R are chances relative to no flip, of order one, and v is a
sum of exponentials of y rho R: it is interpolated through a few Chebyshev points in each R, however
large y is. A finite chain is a product of such steps, the infinite one the leading eigenvalue. As
rho enters through rho R alone, one matrix at a largest rho serves all layers: for a smaller one v
is interpolated at smaller R. Derivatives are differences at fixed nodes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rmtheory.base.chain import Chain
from rmtheory.base.errors import NotConvergedError
from rmtheory.base.gaussian import Array, log_P
from rmtheory.local_entropies.quadrature import field_nodes
from rmtheory.local_entropies.transfer_steps import cardinal, points

#: What a node may weigh and still be left out, as a logarithm, and the same for ratios R out of the
#: box.
_NEGLIGIBLE, _OUTSIDE = -45.0, 20.0

#: Far from the windows P underflows; what is there weighs nothing.
_LEAST = 1e-200

#: Rows handled at once times nodes.
_BLOCK = 1 << 12

#: Step of the rule in x by level. What it misses of log Z is divided by y.
_FIELD_STEP = (0.9, 0.6)

_FLIPS = (0, 1)

#: Most steps kept, of a few megabytes each, and most messages: dilute flips need less than 1000.
_MOST_KEPT, _MOST_MESSAGES = 24, 2000


@dataclass(frozen=True, eq=False)
class GasGrid:
    """Nodes in x and the box of the messages, kept while y and rho change a little."""

    chain: Chain
    d: float
    #: The y for which they are chosen, and the largest rho that the box has room for.
    y: float
    rho: float
    #: 0 or 1, the finer one.
    level: int

    @cached_property
    def largest(self) -> float:
        """Largest R: a column that needs a flip to be satisfied weighs R^-y."""
        return math.exp(min(1.5, _OUTSIDE / self.y)) * 1.02

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Points in R_1, R_2 and R_3; exp(k R) needs about k/2 of them, and a few."""
        more = (0, 2)[self.level]
        single = self.y * self.rho * self.largest
        double = single * self.rho * self.largest
        n = min(22, math.ceil(4 + more + 0.35 * single + 1.6 * math.sqrt(single)))
        return n, n, min(14, math.ceil(2 + more / 2 + 0.35 * double + 1.6 * math.sqrt(double)))

    @property
    def size(self) -> int:
        """Functions of the message, of one bond."""
        return math.prod(self.shape)

    @cached_property
    def axes(self) -> list[Array]:
        """The points in R_1, R_2 and R_3."""
        return [0.5 * self.largest * (1 + points(n)) for n in self.shape]

    @cached_property
    def messages(self) -> tuple[Array, Array, Array]:
        """R_1, R_2 and R_3 at the points of the grid, each as a column."""
        axes = np.meshgrid(*self.axes, indexing="ij")
        first, second, third = (axis.reshape(-1, 1) for axis in axes)
        return first, second, third

    def at_rho(self, values: Array, rho: float) -> Array:
        """Return functions of the message for a layer with another `rho` before it.

        `values` are those at the points of the grid, of both bonds along the first axis.
        """
        share = rho / self.rho
        if share > 1 + 1e-9:
            raise ValueError(f"rho = {rho:g} is beyond {self.rho:g}, that of the grid")
        second, third = (self.cardinal(share * self.axes[k], k) for k in (1, 2))
        boxes = np.moveaxis(values.reshape(2, *self.shape, -1), -1, 0)
        scaled = second @ (boxes @ third.T)
        return np.moveaxis(scaled, 0, -1).reshape(values.shape)

    @cached_property
    def nodes(self) -> tuple[Array, Array]:
        """Nodes in x and the logarithms of their weights, those that may count."""
        chain, sigma = self.chain, math.sqrt(2 * self.d)
        ends = {
            abs(chain.jd + a * chain.lam_left + b * chain.lam_right)
            for a in (-1, 0, 1)
            for b in (-1, 0, 1)
        }
        # P^y changes over sigma/u at u sigma below an edge, where u^2 = 2 log y.
        step = _FIELD_STEP[self.level] * min(1.0, 2.6 / math.log(max(self.y, 2.0)))
        nodes = field_nodes(1 - 2 * self.d, tuple(sorted(ends)), step)
        best = self.y * log_P(
            (chain.jd + abs(chain.lam_left) + abs(chain.lam_right) + nodes.at) / sigma
        )
        weight = best + nodes.log_weight
        kept = weight > weight.max() + _NEGLIGIBLE
        return nodes.at[kept], nodes.log_weight[kept]

    def cardinal(self, ratio: Array, k: int) -> Array:
        """Cardinal functions in one of the R, along a new last axis."""
        return cardinal(np.clip(2 * ratio / self.largest - 1, -1.0, 1.0), self.shape[k])

    def basis(self, ratios: Sequence[Array]) -> Array:
        """Cardinal functions of all points at messages, along a new last axis."""
        first, second, third = (self.cardinal(ratio, k) for k, ratio in enumerate(ratios))
        both = first[..., :, None] * second[..., None, :]
        both = both.reshape(*both.shape[:-2], -1)
        return np.asarray((both[..., :, None] * third[..., None, :]).reshape(*both.shape[:-1], -1))


class GasChain:
    """log Z of a chain at any y close to that of its grid, and any rho that it has room for."""

    def __init__(self, grid: GasGrid) -> None:
        self.grid = grid
        chain = grid.chain
        self._sigma = math.sqrt(2 * grid.d)
        self._x, self._log_weight = grid.nodes
        self._couplings = chain.jd, chain.lam_left, chain.lam_right
        #: Steps of layers inside by y, at the rho of the grid.
        self._steps: dict[float, Array] = {}
        #: Values of y whose steps are made together.
        self.together: tuple[float, ...] = ()

    def log_z(self, y: float, log_rho: Array) -> float:
        """Return log Z; per layer for the infinite chain, whose rho is a single one."""
        if self.grid.chain.layers == math.inf:
            return self._infinite(y, float(log_rho[0]))
        rhos = np.exp(log_rho)
        values = self._last(y, float(rhos[-2]), float(rhos[-1]))
        total = 0.0
        for rho in rhos[-3::-1]:
            values = self.grid.at_rho(self._step(y) @ values, float(rho))
            top = float(values.max())
            if not 0 < top < math.inf:
                raise NotConvergedError("the messages of the gas of flips broke down")
            values, total = values / top, total + math.log(top)
        whole = float(self._first(y) @ values)
        if not whole > 0:
            raise NotConvergedError("the messages of the gas of flips broke down")
        return total + math.log(2 * whole)

    # One layer.

    def _p(self, left: int, right: int, own: int) -> Array:
        """P of a layer whose bonds are `left`, `right` (0: none) and whose own flip is `own`."""
        jd, lam_left, lam_right = self._couplings
        v = jd + lam_left * left + lam_right * right + (1 - 2 * own) * self._x
        return np.exp(log_P(v / self._sigma))

    def _factors(self, before: int, behind: int) -> dict[tuple[int, int, int], Array]:
        """P by the flips (a, c, b) of the layer before, of the layer and of the one behind."""
        return {
            (a, c, b): self._p(
                before * (1 - 2 * a) * (1 - 2 * c), behind * (1 - 2 * c) * (1 - 2 * b), c
            )
            for a in _FLIPS
            for c in _FLIPS
            for b in _FLIPS
        }

    def _first(self, y: float) -> Array:
        """Row of the first layer, over both bonds behind it."""
        rows = []
        for behind in (1, -1):
            p = self._factors(0, behind)
            norm = np.maximum(p[0, 0, 0], _LEAST)
            ratios = [p[0, c, b] / norm for c, b in ((0, 1), (1, 0), (1, 1))]
            weight = np.exp(y * np.log(norm) + self._log_weight)
            rows.append(weight @ self.grid.basis(ratios))
        return np.concatenate(rows)

    def _step(self, y: float) -> Array:
        """Step of a layer inside, the layer before having the rho of the grid."""
        if y not in self._steps:
            if len(self._steps) > _MOST_KEPT:
                self._steps.clear()
            together = self.together if y in self.together else (y,)
            self._steps |= zip(together, self._matrices(together), strict=True)
        return self._steps[y]

    def _matrices(self, ys: Sequence[float]) -> list[Array]:
        """Steps at a few y: the images of the messages are the same for all of them."""
        rho, size, (n, *behind_shape) = self.grid.rho, self.grid.size, self.grid.shape
        if size > _MOST_MESSAGES:
            raise NotConvergedError(
                f"flips of {self.grid.chain} are not dilute at d = {self.grid.d:.10g}"
            )
        rest = math.prod(behind_shape)
        matrices = [np.empty((2 * size, 2 * size)) for _ in ys]
        first, second, third = self.grid.messages
        step = max(1, _BLOCK // self._x.size)
        for i, before in enumerate((1, -1)):
            for j, behind in enumerate((1, -1)):
                p = self._factors(before, behind)
                columns = slice(j * size, (j + 1) * size)
                for start in range(0, size, step):
                    rows = slice(start, min(start + step, size))
                    f1, f2, f3 = first[rows], rho * second[rows], rho * third[rows]
                    norm = np.maximum(p[0, 0, 0] + f2 * p[1, 0, 0], _LEAST)
                    one, two, three = (
                        self.grid.cardinal(part / norm, k)
                        for k, part in enumerate(
                            (
                                p[0, 0, 1] + f2 * p[1, 0, 1],
                                f1 * p[0, 1, 0] + f3 * p[1, 1, 0],
                                f1 * p[0, 1, 1] + f3 * p[1, 1, 1],
                            )
                        )
                    )
                    both = (two[..., :, None] * three[..., None, :]).reshape(*norm.shape, rest)
                    log_norm = np.log(norm)
                    weighted = [
                        one * np.exp(y * log_norm + self._log_weight)[..., None] for y in ys
                    ]
                    product = np.concatenate(weighted, axis=-1).swapaxes(-1, -2) @ both
                    place = slice(i * size + start, i * size + rows.stop)
                    for k, matrix in enumerate(matrices):
                        part = product[:, k * n : (k + 1) * n]
                        matrix[place, columns] = part.reshape(len(part), size)
        return matrices

    def _last(self, y: float, before_rho: float, rho: float) -> Array:
        """Function of the message before the last layer."""
        first, second, third = self.grid.messages
        columns = []
        for before in (1, -1):
            p = self._factors(before, 0)
            b = (
                p[0, 0, 0]
                + before_rho * second * p[1, 0, 0]
                + rho * (first * p[0, 1, 0] + before_rho * third * p[1, 1, 0])
            )
            b = np.maximum(b, _LEAST)
            columns.append(np.exp(y * np.log(b) + self._log_weight).sum(axis=1))
        return np.concatenate(columns)

    def _infinite(self, y: float, log_rho: float) -> float:
        """Leading eigenvalue by power iteration: the next one is a few tenths of it or less."""
        matrix = self.grid.at_rho(self._step(y), math.exp(log_rho))
        vector = np.ones(len(matrix))
        growth = 0.0
        for _ in range(400):
            image = matrix @ vector
            size = float(np.abs(image).max())
            if not 0 < size < math.inf:
                break
            vector = image / size
            if abs(size - growth) < 1e-14 * size:
                return math.log(size)
            growth = size
        raise NotConvergedError("the gas of flips of the infinite chain has no leading eigenvalue")


# The gas at one distance: stationary in rho, and in y where S_E = 0.

#: Relative step of the differences, and that of the first order, which is needed roughly.
_STEP, _WIDE = 3e-4, 0.02

#: Relative step of the difference in d.
_STEP_D = 1e-2

#: Newton's method: accuracy, most steps, largest step of a logarithm, and the step below which
#: mixed derivatives are kept.
_ACCURACY, _MOST_STEPS, _LARGEST_STEP, _SMALL = 2e-5, 25, 0.7, 0.1

#: How far in log y a grid serves; the room that is left for larger rho, the least, that of a
#: difference, and the most.
_SERVES = 0.25
_ROOM, _LEAST_ROOM, _MOST_ROOM = 0.1, 0.025, 0.5


@dataclass(frozen=True, eq=False)
class DeepGas:
    """The gas at (d, y): log Z, its derivatives, and what follows per neuron."""

    chain: Chain
    d: float
    y: float
    #: log rho of the independent layers, and how many layers each stands for.
    log_rho: Array
    fold: Array
    log_z: float
    #: d log Z / dy = <log B>
    mean_log: float
    #: d^2 log Z / d log rho^2 plus the square of the first, by layer
    curved: Array
    #: By how much log y* moves if L S_E does by one; 0 at given y.
    softness: float

    @property
    def layers(self) -> float:
        """Number of layers; one of the infinite chain."""
        return float(self.fold.sum())

    @property
    def total(self) -> float:
        """Sum of log rho over the layers."""
        return float(self.fold @ self.log_rho)

    @property
    def phi(self) -> float:
        """Free entropy per neuron."""
        return (self.log_z - 0.5 * (self.y - 1) * self.d * self.total) / (self.y * self.layers)

    @property
    def external(self) -> float:
        """S_E per neuron."""
        return (self.log_z - self.y * self.mean_log + 0.5 * self.d * self.total) / self.layers

    @property
    def correction(self) -> float:
        """First order in qhat of phi."""
        return -float(self.fold @ (self.log_rho * self.curved)) / (self.y**2 * self.layers)


class DeepGasSolver:
    """Newton's method for (log y, log rho) of a deep chain at one distance."""

    def __init__(self, chain: Chain, d: float, level: int = 0) -> None:
        self.chain, self.d, self.level = chain, d, level
        self._grid: GasChain | None = None
        layers = 1 if chain.layers == math.inf else chain.finite_layers
        half = (layers + 1) // 2 if chain.uniform else layers
        #: Layers that each independent rho stands for.
        self.fold = np.array([2.0 if k != layers - 1 - k else 1.0 for k in range(half)])
        if not chain.uniform:
            self.fold = np.ones(layers)
        self._layers = layers

    def spread(self, log_rho: Array) -> Array:
        """Return one log rho for each layer."""
        if len(log_rho) == self._layers:
            return log_rho
        return np.concatenate([log_rho, log_rho[: self._layers - len(log_rho)][::-1]])

    def at(self, y: float, log_rho: Array, accuracy: float = _ACCURACY) -> DeepGas:
        """Solve for rho at given y."""
        return self._newton(y, log_rho, True, accuracy)

    def ystar(self, y: float, log_rho: Array) -> DeepGas:
        """Solve for rho and y*."""
        return self._newton(y, log_rho, False, _ACCURACY)

    def slope(self, gas: DeepGas) -> float:
        """Return d phi/dd at fixed y and rho, per neuron: the envelope slope."""
        y, rhos = gas.y, self.spread(gas.log_rho)
        largest = math.exp(float(gas.log_rho.max()))
        ends = [
            GasChain(GasGrid(self.chain, self.d * (1 + k * _STEP_D), y, largest, 1)).log_z(y, rhos)
            for k in (1, -1)
        ]
        by_d = (ends[0] - ends[1]) / (2 * _STEP_D * self.d)
        return (by_d - 0.5 * (y - 1) * gas.total) / (y * gas.layers)

    def finer(self, gas: DeepGas) -> float:
        """Return by how much phi changes on a finer grid, where it is stationary."""
        y, rhos = gas.y, self.spread(gas.log_rho)
        grid = GasGrid(self.chain, self.d, y, math.exp(float(gas.log_rho.max())), 1)
        return abs(GasChain(grid).log_z(y, rhos) - gas.log_z) / (y * gas.layers)

    def _evaluate(self, y: float, log_rho: Array) -> float:
        assert self._grid is not None
        return self._grid.log_z(y, self.spread(log_rho))

    def _choose(self, y: float, log_rho: Array) -> None:
        """Keep the grid while it serves: with another one log Z changes by its error."""
        largest = math.exp(float(log_rho.max()))
        if self._grid is not None:
            grid = self._grid.grid
            room = math.log(grid.rho / largest)
            if abs(math.log(y / grid.y)) < _SERVES and _LEAST_ROOM < room < _MOST_ROOM:
                return
        rho = largest * math.exp(_ROOM)
        self._grid = GasChain(GasGrid(self.chain, self.d, y, rho, self.level))

    def _newton(self, y: float, log_rho: Array, fixed: bool, accuracy: float) -> DeepGas:
        log_rho = np.array(log_rho, dtype=float)
        kept: Array | None = None
        largest = math.inf
        for _ in range(_MOST_STEPS):
            self._choose(y, log_rho)
            value, gradient, hessian = self._derivatives(y, log_rho, kept, largest, fixed)
            kept = hessian
            total = float(self.fold @ log_rho)
            # Stationarity in log rho, and S_E = 0; derivatives are in (log y, log rho).
            residual = np.append(
                value - gradient[0] + 0.5 * self.d * total,
                gradient[1:] - 0.5 * (y - 1) * self.d * self.fold,
            )
            jacobian = hessian.copy()
            jacobian[0] = gradient - hessian[0]
            jacobian[0, 1:] += 0.5 * self.d * self.fold
            jacobian[1:, 0] -= 0.5 * y * self.d * self.fold
            used = slice(1, None) if fixed else slice(None)
            try:
                step = -np.linalg.solve(jacobian[used, used], residual[used])
            except np.linalg.LinAlgError:
                break
            largest = float(np.abs(step).max())
            if not math.isfinite(largest):
                break
            if largest < accuracy:
                curved = self._curved(y, log_rho, value)
                if fixed:
                    gradient[0] = self._by_log_y(y, log_rho)
                softness = 0.0 if fixed else float(np.abs(np.linalg.inv(jacobian)[0, 0]))
                return DeepGas(
                    chain=self.chain,
                    d=self.d,
                    y=y,
                    log_rho=log_rho,
                    fold=self.fold,
                    log_z=value,
                    mean_log=gradient[0] / y,
                    curved=curved,
                    softness=softness,
                )
            step = step * min(1.0, _LARGEST_STEP / largest)
            if fixed:
                step = np.append(0.0, step)
            y, log_rho = y * math.exp(step[0]), log_rho + step[1:]
            if not (1 < y < 1e12 and float(log_rho.max()) < 0):
                break
        raise NotConvergedError(
            f"the gas of flips of {self.chain} did not converge at d = {self.d:.10g}"
        )

    def _derivatives(
        self, y: float, log_rho: Array, kept: Array | None, last: float, fixed: bool
    ) -> tuple[float, Array, Array]:
        """Return log Z with its derivatives in (log y, log rho) by differences."""
        here = np.append(math.log(y), log_rho)
        count = here.size

        def at(*moves: tuple[int, int]) -> float:
            moved = here.copy()
            for k, sign in moves:
                moved[k] = here[k] + sign * _STEP
            return self._evaluate(math.exp(moved[0]), moved[1:])

        assert self._grid is not None
        first = 1 if fixed else 0
        moves = () if fixed else (0, 1, -1)
        self._grid.together = tuple(math.exp(here[0] + k * _STEP) for k in moves)
        value = at()
        # At given y its derivatives are left out.
        ends = [(value, value)] * first + [(at((k, 1)), at((k, -1))) for k in range(first, count)]
        gradient = np.array([(up - down) / (2 * _STEP) for up, down in ends])
        hessian = np.diag([(up - 2 * value + down) / _STEP**2 for up, down in ends])
        for i in range(first, count):
            for j in range(first, i):
                if kept is not None and last < _SMALL:
                    mixed = float(kept[i, j])
                else:
                    both = at((i, 1), (j, 1))
                    mixed = (both - ends[i][0] - ends[j][0] + value) / _STEP**2
                hessian[i, j] = hessian[j, i] = mixed
        return value, gradient, hessian

    def _by_log_y(self, y: float, log_rho: Array) -> float:
        assert self._grid is not None
        ys = tuple(y * math.exp(sign * _STEP) for sign in (1, -1))
        self._grid.together = ys
        up, down = (self._evaluate(other, log_rho) for other in ys)
        return (up - down) / (2 * _STEP)

    def _curved(self, y: float, log_rho: Array, value: float) -> Array:
        """(1/Z) d^2 Z/d(log rho_l)^2 of a single layer l, for each independent one."""
        rhos = self.spread(log_rho)
        assert self._grid is not None
        result = []
        for k in range(log_rho.size):
            ends = []
            for sign in (1, -1):
                moved = rhos.copy()
                moved[k] += sign * _WIDE
                ends.append(self._grid.log_z(y, moved))
            first = (ends[0] - ends[1]) / (2 * _WIDE)
            result.append((ends[0] - 2 * value + ends[1]) / _WIDE**2 + first**2)
        return np.array(result)


# Without a guess.

#: Factor by which y is changed until S_E changes sign.
_GROWTH = 1.8

#: y rho from which on y* is not searched for: S_I* is known to a part of S_E/y.
BEYOND = 4.0

#: How often the first y may be lowered.
_MOST_BEGINNINGS = 5

#: Accuracy of log rho on the way: phi is stationary in it.
_ROUGH = 3e-3


def find_deep_gas(chain: Chain, d: float, beyond: float = BEYOND) -> tuple[DeepGas, bool]:
    """Return the gas of a deep chain at `d`, and whether its y is only a lower bound of y*.

    y is changed until S_E changes sign. Where S_E > 0 up to y rho = `beyond`, every column may
    allow every flip, and y* does not matter.
    """
    solver = DeepGasSolver(chain, d)
    # Free flips have rho = d/2.
    log_rho = np.full(solver.fold.size, math.log(0.5 * d))
    gas = _begin(solver, beyond / (0.5 * d), log_rho)
    positive = gas.external > 0
    before = gas
    while (gas.external > 0) == positive:
        if positive and gas.y * math.exp(float(gas.log_rho.max())) > 0.9 * beyond:
            return gas, True
        factor = _GROWTH if positive else 1 / _GROWTH
        if gas.y * factor < 3:
            raise NotConvergedError(f"S_E < 0 in the gas of flips of {chain} at d = {d:.10g}")
        before, gas = gas, solver.at(gas.y * factor, gas.log_rho, _ROUGH)
    share = before.external / (before.external - gas.external)
    log_y = math.log(before.y) + share * math.log(gas.y / before.y)
    mixed = before.log_rho + share * (gas.log_rho - before.log_rho)
    return solver.ystar(math.exp(log_y), mixed), False


def _begin(solver: DeepGasSolver, y: float, log_rho: Array) -> DeepGas:
    """Solve at `y`, or at a smaller one where flips are many and y is far beyond y*."""
    for _ in range(_MOST_BEGINNINGS):
        try:
            return solver.at(y, log_rho, _ROUGH)
        except NotConvergedError:
            y, log_rho = y / 4, log_rho + 0.5
    raise NotConvergedError(
        f"no gas of flips of {solver.chain} was found at d = {solver.d:.10g}: take a larger d"
    )
