r"""The step over the tilt t of one layer.

The factor e^{hs} of a layer multiplies the message g(s, b) by a number for each s, which shifts
u = tanh(gamma) to tanh(gamma + h) and leaves the ratios r as they are: a small matrix along u. It
is scaled by exp(-y^2 qhat/2), as G' = G - y^2 Q/2 is wanted (:mod:`moments`). Derivatives in qhat
are those of the density of h, whose logarithm is s_0 = (t^2 - 1)/(2 qhat) at first order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rmtheory.gaussian import Array
from rmtheory.local_entropy.deep import chebyshev
from rmtheory.local_entropy.deep.message import Grid
from rmtheory.local_entropy.nodes import tilt_nodes

#: Largest step in h, and in t: the integrand has its first singularity at Im h = pi/2.
_STEP = 0.3


@dataclass(frozen=True, eq=False)
class Tilt:
    """Matrices along u: from points u > 0 and u < 0 (mirrored) to points u > 0."""

    same: Array
    mirrored: Array

    def __call__(self, function: Array) -> Array:
        """Apply to functions on the grid, or of u alone; the last axis runs over the grid."""
        half = len(self.same)
        n = round((function.shape[-1] / half) ** 0.5)
        values = function.reshape(-1, half, n, n)
        result = np.einsum("ij,ajkl->aikl", self.same, values, optimize=True)
        result += np.einsum("ij,ajlk->aikl", self.mirrored, values, optimize=True)
        return np.asarray(result.reshape(function.shape))

    def transposed(self, row: Array) -> Array:
        """Multiply rows from the right: row T."""
        half = len(self.same)
        n = round((row.shape[-1] / half) ** 0.5)
        values = row.reshape(-1, half, n, n)
        result = np.einsum("ij,aikl->ajkl", self.same, values, optimize=True)
        result += np.einsum("ij,aikl->ajlk", self.mirrored, values, optimize=True)
        return np.asarray(result.reshape(row.shape))


#: The derivatives of a tilt step, by name: q is qhat.
NAMES = ("1", "y", "q", "yy", "yq", "qq")


def tilts(grid: Grid, y: float, qhat: float) -> dict[str, Tilt]:
    """Return the scaled step over t at (y, qhat), and its derivatives, by their names."""
    nodes = tilt_nodes(qhat, y, _STEP)
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
    images = chebyshev.cardinal(np.tanh(gamma + h), grid.n_u)
    found = {}
    for name in NAMES:
        matrix = ((weight * factors[name])[:, None, :] @ images)[:, 0]
        found[name] = Tilt(matrix[:, : grid.half], matrix[:, : grid.half - 1 : -1])
    return found
