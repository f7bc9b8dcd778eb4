r"""The step over the field x of one layer.

A layer takes the message f(a, s) to

.. math:: g(s, b) = \sum_a f(a, s)\,
    P\Big(\frac{J_D + \lambda_L a s + \lambda_R s b + s x}{\sigma}\Big),

b being the spin of the next layer, and the function V of the message g to the average over x of
V(g). On the grid this is a matrix; the first layer has no a and one row, the last no b and one
variable, u. Derivatives in y put powers of log C under the average, C = g_{++} + g_{--}.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rmtheory.gaussian import Array, log_P, r
from rmtheory.local_entropy.deep import chebyshev
from rmtheory.local_entropy.deep.message import fields_step, make_grid
from rmtheory.local_entropy.nodes import field_nodes

#: Rows handled at once times nodes in x: the interpolation of a block stays near the cache.
_BLOCK = 4096

_SPINS = (1, -1)

#: A layer with neighbours on both sides, without a left or a right one, without any.
Layer = Literal["bulk", "first", "last", "only"]


@dataclass(frozen=True, eq=False)
class Images:
    """Where the nodes x send a block of messages, one row for each of them.

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
        self, jd: float, lam_left: float, lam_right: float, d: float, y: float, level: int
    ) -> None:
        # The sign of both couplings does not matter.
        sign = -1.0 if lam_right < 0 else 1.0
        self._jd, self._left, self._right = jd, sign * lam_left, sign * lam_right
        self._q1, self._variance, self.y = 1 - 2 * d, 2 * d, y
        transitions = {
            abs(jd + a * lam_left + b * lam_right) for a in (1, 0, -1) for b in (1, 0, -1)
        }
        nodes = field_nodes(self._q1, tuple(sorted(transitions)), fields_step(level, y))
        self._x, self._log_weight = nodes.at, nodes.log_weight
        lowest = min(
            float((self._log_p(s, a, -s) - self._log_p(s, a, s)).min())
            for s in _SPINS
            for a in _SPINS
        )
        self.grid = make_grid(y, level, float(np.exp(lowest)))
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

    def force(self, layer: Layer, left: Array, right: Array) -> float:
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
        found: list[Array] = []
        for block, images in blocks:
            plus, minus = self._in_ratios(images)
            basis = (plus[..., :, None] * minus[..., None, :]).reshape(*plus.shape[:-1], -1)
            in_u = chebyshev.cardinal(images.u, self.grid.n_u)
            weight = np.exp(self.y * images.log_c + self._log_weight)
            stacked = [in_u * (weight * images.log_c**k)[..., None] for k in range(order + 1)]
            product = np.concatenate(stacked, axis=-1).swapaxes(-1, -2) @ basis
            for k in range(order + 1):
                part = product[:, k * self.grid.n_u : (k + 1) * self.grid.n_u]
                folded = self._fold(part)
                if len(found) <= k:
                    found.append(np.empty((rows, folded.shape[1])))
                found[k][block] = folded
        return found

    def _in_ratios(self, images: Images) -> tuple[Array, Array]:
        """Cardinal functions in r_+ and in r_-."""
        if images.ratios is None:
            one = np.ones((*images.u.shape, 1))
            return one, one
        plus, minus = (
            chebyshev.cardinal(self.grid.scaled(ratio), self.grid.n_r) for ratio in images.ratios
        )
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
        in_u = chebyshev.cardinal(images.u, self.grid.n_u)
        slope_u = in_u @ chebyshev.differentiation(self.grid.n_u)
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
            slope = chebyshev.differentiation(self.grid.n_r) * (2 / (1 - self.grid.r_min))
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
