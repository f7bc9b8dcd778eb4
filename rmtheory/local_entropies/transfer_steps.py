r"""One layer of a deep chain as a step on functions of the message.

**Message.** Summing the spins of zeta from the left leaves a message f(a, s), the partial sum at
given last two spins (a, s). The integral over the layers to the right is a function V(f),
homogeneous of degree y,

.. math:: V(f) = (f_{++} + f_{--})^y\, v(u, r_+, r_-), \qquad
    u = \frac{f_{++} - f_{--}}{f_{++} + f_{--}}, \quad r_a = \frac{f_{a,-a}}{f_{a,a}},

and v is interpolated through Chebyshev points of the first kind. With lambda_R >= 0 equal spins are
favoured and 0 < r <= 1. At integer y, V is a polynomial of degree y in f and v one in u and both r
each: the interpolation is then exact once the grid exceeds y. At large y it is essential to divide
by the aligned components instead of the sum of all four: v then hardly depends on r. The flip of
all spins, which reverses u and exchanges the two r, leaves V unchanged: only u > 0 is kept.

**Step over the field x.** A layer takes the message f(a, s) to

.. math:: g(s, b) = \sum_a f(a, s)\,
    P\Big(\frac{J_D + \lambda_L a s + \lambda_R s b + s x}{\sigma}\Big),

b being the spin of the next layer, and the function V of the message g to the average over x of
V(g). On the grid this is a matrix X; the first layer has no a and one row, the last no b and one
variable, u. Derivatives in y put powers of log C under the average, C = g_{++} + g_{--}.

**Step over the tilt t.** The factor e^{hs} of a layer multiplies the message g(s, b) by a number
for each s, which shifts u = tanh(gamma) to tanh(gamma + h) and leaves the ratios r unchanged: a
small matrix T along u. It is scaled by exp(-y^2 qhat/2), since G' = G - y^2 Q/2 is wanted
(:mod:`rmtheory.local_entropies.functional`). Derivatives in qhat are those of the density of h,
whose logarithm is s_0 = (t^2 - 1)/(2 qhat) at first order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.polynomial import chebyshev

from rmtheory.base.errors import NotConvergedError
from rmtheory.base.gaussian import Array, log_P, r
from rmtheory.local_entropies.quadrature import field_nodes, tilt_nodes

# The whole step of a layer.


@dataclass(eq=False)
class Step:
    """A = scale X T, and its derivatives: functions behind the layer to functions before it."""

    #: X and its derivatives in y
    fields: list[Array]
    #: T and its derivatives by name
    tilts: dict[str, Tilt]
    scale: float = 1.0

    def __call__(self, function: Array, name: str = "1") -> Array:
        """Apply A, or the derivative `name` (y, q, yy, yq, qq); functions along the last axis."""
        result: Array | None = None
        for weight, order, inner in _LEIBNIZ[name]:
            part = self.tilts[inner](function) @ self.fields[order].T
            result = weight * part if result is None else result + weight * part
        assert result is not None
        return np.asarray(self.scale * result)

    def tilted(self, function: Array) -> Array:
        """Apply T alone."""
        return self.tilts["1"](function)

    def transposed(self, row: Array) -> Array:
        """Multiply by a row from the left."""
        return np.asarray(self.scale * self.tilts["1"].transposed(row @ self.fields[0]))


#: Product rule for X T, X depending on y only: (weight, order in y of X, name of T).
_LEIBNIZ: dict[str, tuple[tuple[int, int, str], ...]] = {
    "1": ((1, 0, "1"),),
    "y": ((1, 1, "1"), (1, 0, "y")),
    "q": ((1, 0, "q"),),
    "yy": ((1, 2, "1"), (2, 1, "y"), (1, 0, "yy")),
    "yq": ((1, 1, "q"), (1, 0, "yq")),
    "qq": ((1, 0, "qq"),),
}


@dataclass(frozen=True, eq=False)
class Derivatives:
    """G' of a chain, or of one layer of the infinite chain, at one (d, y, qhat)."""

    log_norm: float
    #: Derivatives in (y, qhat).
    gradient: Array
    #: Computes the derivative in q1.
    by_q1: Callable[[], float]
    #: Second derivatives in (y, qhat).
    hessian: Array | None = None


# The grid on which functions of the message are known.

#: Points in u beyond y, points in r beyond 2.6 sqrt(y), and step of the rule in x, by level.
_LEVELS = (
    (2, 0, 0.8),
    (2, 1, 0.7),
    (4, 2, 0.56),
    (8, 4, 0.5),
    (12, 6, 0.4),
    (16, 8, 0.4),
    (20, 10, 0.3),
)

#: The transfer matrix of this many functions and its two derivatives in y fill 0.9 GB.
MOST_FUNCTIONS = 6_000

#: Largest y at which two grids are affordable, so that there is an error: 20 x 17 x 17 functions.
LARGEST_Y = 33.0

#: The message beyond it.
IN_REACH = (
    f"three layers or more can be computed up to y = {LARGEST_Y:g}, integer y up to 40 by the "
    "replicated matrix (--method replicated)"
)

#: Where the couplings hardly matter r is close to 1; the box keeps at least this width.
_LEAST_WIDTH = 1e-6


@dataclass(frozen=True, eq=False)
class Grid:
    """Chebyshev points in u and both r, those with u > 0."""

    #: Points in u on the whole interval, even.
    n_u: int
    n_r: int
    #: r lies between this and 1.
    r_min: float

    @property
    def half(self) -> int:
        """Points with u > 0."""
        return self.n_u // 2

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of a function on the grid."""
        return self.half, self.n_r, self.n_r

    @property
    def size(self) -> int:
        """Number of basis functions."""
        return self.half * self.n_r * self.n_r

    @property
    def u(self) -> Array:
        """Points u > 0."""
        return points(self.n_u)[: self.half]

    @property
    def r(self) -> Array:
        """Points in r."""
        return np.asarray(self.r_min + 0.5 * (1 - self.r_min) * (1 + points(self.n_r)))

    def scaled(self, r: Array) -> Array:
        """Map r to [-1, 1]."""
        return np.asarray(np.clip((2 * r - 1 - self.r_min) / (1 - self.r_min), -1.0, 1.0))

    def log_messages(self) -> dict[tuple[int, int], Array]:
        """Logarithms of the messages f(a, s) at the points, f_{++} + f_{--} being 1."""
        u, plus, minus = (
            v.reshape(-1, 1) for v in np.meshgrid(self.u, self.r, self.r, indexing="ij")
        )
        log_up, log_down = np.log1p(u) - math.log(2.0), np.log1p(-u) - math.log(2.0)
        return {
            (1, 1): log_up,
            (1, -1): log_up + np.log(plus),
            (-1, -1): log_down,
            (-1, 1): log_down + np.log(minus),
        }


def make_grid(y: float, level: int, r_min: float) -> Grid:
    """Return the grid of a level for this y."""
    grid = _grid(y, level, r_min)
    if grid.size > MOST_FUNCTIONS:
        raise NotConvergedError(
            f"the transfer operator at y = {y:.3g} would need {grid.size} functions, more than "
            f"{MOST_FUNCTIONS}: {IN_REACH}"
        )
    return grid


def _grid(y: float, level: int, r_min: float) -> Grid:
    in_u, in_r, _ = _LEVELS[level]
    width = max(1 - r_min, _LEAST_WIDTH)
    # A narrow box needs fewer points.
    narrow = min(1.0, 1.2 * width) ** 0.25
    return Grid(
        n_u=2 * math.ceil((y + 1) / 2) + in_u,
        n_r=2 + math.ceil(narrow * (max(6.0, 2.6 * math.sqrt(y)) - 2 + in_r)),
        r_min=1 - width,
    )


def finest_level(y: float) -> int:
    """Return the finest level whose grid is not too large, -1 if there is none."""
    fits = [k for k in range(len(_LEVELS)) if _grid(y, k, 0.0).size <= MOST_FUNCTIONS]
    return max(fits, default=-1)


def left_over(y: float) -> float:
    """Error of a grid in units of its change from the one below, at worst.

    Against the replicated matrix a quarter of the change was left at most between y = 6 and 17, but
    up to 1.2 times the change outside: at small y the functions have branch points close to the
    box, and the error only halves from one level to the next; at large y n_r hardly grows.
    """
    return 0.5 if 6 <= y <= 17 else 1.5


def fields_step(level: int, y: float) -> float:
    """Step of the rule in x: zeta^y sharpens with y (see quadrature.field_step)."""
    return _LEVELS[level][2] * math.exp(-math.ceil(max(0.0, 2.7 * math.log(y / 10))) * 0.1)


# Interpolation through Chebyshev points.


def points(n: int) -> Array:
    """Return the zeros of T_n, descending, symmetric about 0."""
    return np.asarray(np.cos(np.pi * (np.arange(n) + 0.5) / n))


@lru_cache(maxsize=64)
def _coefficients(n: int) -> Array:
    """Matrix from the Chebyshev polynomials to the cardinal functions of the points."""
    matrix = 2 / n * chebyshev.chebvander(points(n), n - 1).T
    matrix[0] /= 2
    return np.asarray(matrix)


def cardinal(x: Array, n: int) -> Array:
    """Values at x of the n cardinal functions, along a new last axis."""
    return np.asarray(chebyshev.chebvander(x, n - 1) @ _coefficients(n))


@lru_cache(maxsize=64)
def differentiation(n: int) -> Array:
    """Matrix from the values at the points to those of the derivative there."""
    if n == 1:
        return np.zeros((1, 1))
    slopes = chebyshev.chebder(_coefficients(n), axis=0)
    return np.asarray(chebyshev.chebvander(points(n), n - 2) @ slopes)


# The step over the tilt t.

#: Largest step in h, and in t: the integrand has its first singularity at Im h = pi/2.
_TILT_STEP = 0.3


@dataclass(frozen=True, eq=False)
class Tilt:
    """Matrices along u: from points u > 0 and u < 0 (mirrored) to points u > 0."""

    same: Array
    mirrored: Array

    def __call__(self, function: Array) -> Array:
        """Apply to functions on the grid, or of u alone; the last axis runs over the grid."""
        return self._contract(function, "ij,ajkl->aikl", "ij,ajlk->aikl")

    def transposed(self, row: Array) -> Array:
        """Multiply rows from the right: row T."""
        return self._contract(row, "ij,aikl->ajkl", "ij,aikl->ajlk")

    def _contract(self, functions: Array, same: str, mirrored: str) -> Array:
        """Sum over u, the indices of (u, r_+, r_-) being exchanged where u is mirrored."""
        half = len(self.same)
        n = round((functions.shape[-1] / half) ** 0.5)
        values = functions.reshape(-1, half, n, n)
        result = np.einsum(same, self.same, values, optimize=True)
        result += np.einsum(mirrored, self.mirrored, values, optimize=True)
        return np.asarray(result.reshape(functions.shape))


#: The derivatives of a tilt step, by name: q is qhat.
NAMES = ("1", "y", "q", "yy", "yq", "qq")


def tilts(grid: Grid, y: float, qhat: float) -> dict[str, Tilt]:
    """Return the scaled step over t at (y, qhat), and its derivatives, by their names."""
    nodes = tilt_nodes(qhat, y, _TILT_STEP)
    t, h = nodes.at, math.sqrt(qhat) * nodes.at
    u = grid.u[:, None]
    gamma = np.arctanh(u)
    # log(cosh h + u sinh h) - |h|
    lower = np.where(h > 0, -u, u)
    near = np.log1p(0.5 * (1 + lower) * np.expm1(-2 * np.abs(h)))
    weight = np.exp(nodes.log_peak + y * near)
    log_c = near + math.sqrt(qhat) * nodes.excess  # log C - y qhat
    score = (nodes.excess**2 - 1) / (2 * qhat) + y * nodes.excess / math.sqrt(qhat)
    factors = {
        "1": np.ones_like(near),
        "y": log_c,
        "q": score + 0 * near,
        "yy": log_c**2 - qhat,
        "yq": score * log_c - y,
        "qq": score**2 + (0.5 - t * t) / qhat**2 + 0 * near,
    }
    images = cardinal(np.tanh(gamma + h), grid.n_u)
    steps = {}
    for name in NAMES:
        matrix = ((weight * factors[name])[:, None, :] @ images)[:, 0]
        steps[name] = Tilt(matrix[:, : grid.half], matrix[:, : grid.half - 1 : -1])
    return steps


# The step over the field x.

#: Rows handled at once times nodes in x: the interpolation of a block stays near the cache.
_BLOCK = 4096

_SPINS = (1, -1)

#: A layer with neighbours on both sides, without a left or a right one, without any.
Layer = Literal["bulk", "first", "last", "only"]


@dataclass(frozen=True, eq=False)
class Images:
    """Images of a block of messages under the nodes x, one row for each message.

    The derivatives are those with respect to q1 at fixed x/sqrt(q1).
    """

    log_c: Array
    u: Array
    #: None where there is no next spin.
    ratios: tuple[Array, Array] | None
    log_c_q1: Array | None = None
    u_q1: Array | None = None
    ratios_q1: tuple[Array, Array] | None = None


class Fields:
    """The x integrals of all layers at one (d, y)."""

    def __init__(
        self,
        jd: float,
        lam_left: float,
        lam_right: float,
        d: float,
        y: float,
        level: int,
        nodes_y: float | None = None,
    ) -> None:
        # The sign of both couplings does not matter.
        sign = -1.0 if lam_right < 0 else 1.0
        self._jd, self._left, self._right = jd, sign * lam_left, sign * lam_right
        self._q1, self._variance, self.y = 1 - 2 * d, 2 * d, y
        transitions = {
            abs(jd + a * lam_left + b * lam_right) for a in (1, 0, -1) for b in (1, 0, -1)
        }
        nodes = field_nodes(self._q1, tuple(sorted(transitions)), fields_step(level, nodes_y or y))
        self._x, self._log_weight = nodes.at, nodes.log_weight
        lowest = min(
            float((self._log_p(s, a, -s) - self._log_p(s, a, s)).min())
            for s in _SPINS
            for a in _SPINS
        )
        self.grid = make_grid(nodes_y or y, level, float(np.exp(lowest)))
        self._kept: dict[Layer, list[Array]] = {}

    def matrices(self, layer: Layer, order: int) -> list[Array]:
        """Matrix of a layer and its derivatives in y up to `order`.

        The rows run over the grid, but for the first layer there is a single one; the columns run
        over the grid, or over u alone for the last layer.
        """
        if len(self._kept.get(layer, ())) <= order:
            rows = self.grid.size if layer in ("bulk", "last") else 1
            self._kept[layer] = self._matrices(self._images(layer), rows, order)
        return self._kept[layer]

    def without_matrices(self) -> Fields:
        """Return a copy that takes no memory."""
        light = copy(self)
        light._kept = {}
        return light

    def by_q1(self, layer: Layer, left: Array, right: Array) -> float:
        r"""Contract d/dq1 of the matrix of a layer with left (.., rows) and right (.., columns).

        It is :math:`\tfrac12y(y-1)\langle(\partial_x\log\zeta)^2\rangle` up to the norm.
        """
        return sum(
            self._contract(images, left[:, rows].T @ right)
            for rows, images in self._images(layer, derivatives=True)
        )

    # Images of the messages.

    def _log_p(self, s: int, a: int, b: int) -> Array:
        return log_P(self._argument(s, a, b))

    def _argument(self, s: int, a: int, b: int) -> Array:
        v = self._jd + self._left * a * s + self._right * s * b + s * self._x
        return np.asarray(v / np.sqrt(self._variance))

    def _log_p_q1(self, s: int, a: int, b: int) -> Array:
        """Return d log P/dq1 at fixed x/sqrt(q1)."""
        argument, sigma = self._argument(s, a, b), np.sqrt(self._variance)
        change = s * self._x / (2 * self._q1 * sigma) + argument / (2 * self._variance)
        return np.asarray(r(argument) * change)

    def _images(self, layer: Layer, derivatives: bool = False) -> Iterator[tuple[slice, Images]]:
        """Images of the messages of the grid, block by block; of the one before the first layer."""
        after = (0,) if layer in ("last", "only") else _SPINS
        states = [(s, b) for s in _SPINS for b in after]
        if layer in ("bulk", "last"):
            yield from self._blocks(states, derivatives)
            return
        logs = {(s, b): self._log_p(s, 0, b)[None] for s, b in states}
        slopes = {(s, b): self._log_p_q1(s, 0, b)[None] for s, b in states}
        yield slice(0, 1), _images(logs, slopes if derivatives else None)

    def _blocks(
        self, states: list[tuple[int, int]], derivatives: bool
    ) -> Iterator[tuple[slice, Images]]:
        messages = self.grid.log_messages()
        factors = {(s, a, b): self._log_p(s, a, b) for s, b in states for a in _SPINS}
        changes = {(s, a, b): self._log_p_q1(s, a, b) for s, b in states for a in _SPINS}
        step = max(1, _BLOCK // self._x.size)
        for start in range(0, self.grid.size, step):
            rows = slice(start, min(start + step, self.grid.size))
            logs, slopes = {}, {}
            for s, b in states:
                up, down = (messages[a, s][rows] + factors[s, a, b] for a in _SPINS)
                logs[s, b] = np.logaddexp(up, down)
                if derivatives:
                    share = np.exp(up - logs[s, b])
                    slopes[s, b] = share * changes[s, 1, b] + (1 - share) * changes[s, -1, b]
            yield rows, _images(logs, slopes if derivatives else None)

    # Interpolation.

    def _matrices(
        self, blocks: Iterator[tuple[slice, Images]], rows: int, order: int
    ) -> list[Array]:
        matrices: list[Array] = []
        for block, images in blocks:
            plus, minus = self._in_ratios(images)
            basis = (plus[..., :, None] * minus[..., None, :]).reshape(*plus.shape[:-1], -1)
            in_u = cardinal(images.u, self.grid.n_u)
            weight = np.exp(self.y * images.log_c + self._log_weight)
            stacked = [in_u * (weight * images.log_c**k)[..., None] for k in range(order + 1)]
            product = np.concatenate(stacked, axis=-1).swapaxes(-1, -2) @ basis
            for k in range(order + 1):
                part = product[:, k * self.grid.n_u : (k + 1) * self.grid.n_u]
                folded = self._fold(part)
                if len(matrices) <= k:
                    matrices.append(np.empty((rows, folded.shape[1])))
                matrices[k][block] = folded
        return matrices

    def _in_ratios(self, images: Images) -> tuple[Array, Array]:
        """Cardinal functions in r_+ and in r_-."""
        if images.ratios is None:
            one = np.ones((*images.u.shape, 1))
            return one, one
        plus, minus = (cardinal(self.grid.scaled(ratio), self.grid.n_r) for ratio in images.ratios)
        return plus, minus

    def _fold(self, product: Array) -> Array:
        """Fold columns u < 0 onto u > 0 by the flip of all spins, r_+ <-> r_-."""
        half = self.grid.half
        n = round(product.shape[-1] ** 0.5)
        full = product.reshape(len(product), self.grid.n_u, n, n)
        folded = full[:, :half] + full[:, : half - 1 : -1].swapaxes(2, 3)
        return np.asarray(folded.reshape(len(product), -1))

    def _unfold(self, functions: Array) -> Array:
        """Values on the whole grid in u, from those at u > 0; rows are functions."""
        n = round((functions.shape[-1] / self.grid.half) ** 0.5)
        upper = functions.reshape(len(functions), self.grid.half, n, n)
        lower = upper[:, ::-1].swapaxes(2, 3)
        return np.concatenate([upper, lower], axis=1).reshape(len(functions), self.grid.n_u, -1)

    def _contract(self, images: Images, functions: Array) -> float:
        """Sum over rows and nodes of the derivative in q1 of C^y v(image), v of each row."""
        assert images.log_c_q1 is not None
        assert images.u_q1 is not None
        in_u = cardinal(images.u, self.grid.n_u)
        slope_u = in_u @ differentiation(self.grid.n_u)
        plus, minus = self._in_ratios(images)
        shape = (*images.u.shape, plus.shape[-1], minus.shape[-1])
        values = self._unfold(functions)
        # Of the three interpolations that in u comes first, that in r_- last but one.
        at_u = (in_u @ values).reshape(shape)
        at_minus = (at_u @ minus[..., None])[..., 0]
        sloping = ((slope_u @ values).reshape(shape) @ minus[..., None])[..., 0]
        change = self.y * images.log_c_q1 * (at_minus * plus).sum(-1)
        change += images.u_q1 * (sloping * plus).sum(-1)
        if images.ratios_q1 is not None:
            slope = differentiation(self.grid.n_r) * (2 / (1 - self.grid.r_min))
            in_plus, in_minus = images.ratios_q1
            change += in_plus * (at_minus * (plus @ slope)).sum(-1)
            steep = (at_u @ (minus @ slope)[..., None])[..., 0]
            change += in_minus * (steep * plus).sum(-1)
        return float((np.exp(self.y * images.log_c + self._log_weight) * change).sum())


def _images(logs: dict[tuple[int, int], Array], q1: dict[tuple[int, int], Array] | None) -> Images:
    """Coordinates of messages given by their logarithms, and derivatives in q1."""
    ends = (1, 1), (-1, -1)
    if (1, 0) in logs:  # the last layer: one spin
        ends = (1, 0), (-1, 0)
    up, down = (logs[end] for end in ends)
    log_c, u = np.logaddexp(up, down), np.tanh(0.5 * (up - down))
    ratios = None
    if (1, 1) in logs:
        ratios = np.exp(logs[1, -1] - up), np.exp(logs[-1, 1] - down)
    if q1 is None:
        return Images(log_c, u, ratios)
    up_q1, down_q1 = (q1[end] for end in ends)
    share = 0.5 * (1 + u)
    ratios_q1 = None
    if ratios is not None:
        ratios_q1 = ratios[0] * (q1[1, -1] - up_q1), ratios[1] * (q1[-1, 1] - down_q1)
    return Images(
        log_c,
        u,
        ratios,
        share * up_q1 + (1 - share) * down_q1,
        0.5 * (1 - u * u) * (up_q1 - down_q1),
        ratios_q1,
    )
