r"""The message of a chain and the grid on which functions of it are known.

Summing the spins of zeta from the left leaves a message f(a, s), the partial sum at given last two
spins (a, s). What the layers to the right make of it is a function V(f), homogeneous of degree y,

.. math:: V(f) = (f_{++} + f_{--})^y\, v(u, r_+, r_-), \qquad
    u = \frac{f_{++} - f_{--}}{f_{++} + f_{--}}, \quad r_a = \frac{f_{a,-a}}{f_{a,a}},

and v is interpolated through Chebyshev points in the box. With lambda_R >= 0 the spins like to be
equal and 0 < r <= 1. At integer y, V is a polynomial of degree y in f and v one in u and both r
each: the interpolation is then exact once the grid exceeds y. Dividing by the aligned components,
not by the sum of all four, matters at large y: v hardly depends on r.

The flip of all spins, which reverses u and exchanges the two r, leaves V as it is: only u > 0 is
kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rmtheory.errors import NotConvergedError
from rmtheory.gaussian import Array
from rmtheory.local_entropy.deep import chebyshev

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

#: What a refusal says.
IN_REACH = (
    f"three layers or more are in reach up to y = {LARGEST_Y:g}, integer y up to 40 by the "
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
        return chebyshev.points(self.n_u)[: self.half]

    @property
    def r(self) -> Array:
        """Points in r."""
        return np.asarray(self.r_min + 0.5 * (1 - self.r_min) * (1 + chebyshev.points(self.n_r)))

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


def fields_step(level: int, y: float) -> float:
    """Step of the rule in x: zeta^y sharpens with y (nodes.field_step has the law)."""
    return _LEVELS[level][2] * math.exp(-math.ceil(max(0.0, 2.7 * math.log(y / 10))) * 0.1)


def make_grid(y: float, level: int, r_min: float) -> Grid:
    """Return the grid of a level for this y."""
    grid = _grid(y, level, r_min)
    if grid.size > MOST_FUNCTIONS:
        raise NotConvergedError(
            f"the transfer operator at y = {y:.3g} would need {grid.size} functions, more than "
            f"{MOST_FUNCTIONS}: {IN_REACH}"
        )
    return grid


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
