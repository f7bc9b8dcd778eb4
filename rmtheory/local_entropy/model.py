"""One chain seen by the solvers: its tilted averages, whatever the number of layers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rmtheory.chain import Chain
from rmtheory.gaussian import Array
from rmtheory.local_entropy.core import core_moments
from rmtheory.local_entropy.deep.message import finest_level, left_over
from rmtheory.local_entropy.deep.operator import NEAR_ONE, deep_moments
from rmtheory.local_entropy.moments import Moments
from rmtheory.local_entropy.nodes import FINEST, STEPS
from rmtheory.local_entropy.pair import DROPPED, pair_moments


@dataclass(frozen=True)
class LocalModel:
    """The local-entropy functional of a chain.

    One and two layers are integrated on nodes, more by the transfer operator (:mod:`deep`).
    """

    chain: Chain

    def __post_init__(self) -> None:
        self.chain.refuse_beyond(1e100)

    @property
    def deep(self) -> bool:
        """Whether the transfer operator is used: three layers or more."""
        return self.chain.layers > 2

    @property
    def unknowns(self) -> int:
        """Number of independent qhat: one where all layers are equivalent."""
        if self.chain.layers == math.inf:
            return 1
        if self.deep:
            return int(self.chain.layers)
        return 1 if self.chain.layers == 1 or self.chain.uniform else 2

    @property
    def coarse(self) -> int:
        """Level of the quadrature that Newton starts with: finer where it costs nothing."""
        return 2 if self.chain.layers == 1 else 1

    def finest(self, y: float) -> int:
        """Finest level there is; grids of the transfer operator grow with y.

        At y = 1 the operator is needed at five y for every evaluation, and S_I converges slowly:
        two levels more would take a minute.
        """
        if not self.deep:
            return FINEST
        return min(4 if abs(y - 1) < NEAR_ONE else FINEST, finest_level(y))

    def moments(
        self, d: float, y: float, qhat: Array, level: int, tangent: bool = False
    ) -> Moments:
        """Tilted averages at (d, y, qhat), with derivatives if `tangent`."""
        chain = self.chain
        if self.deep:
            return deep_moments(chain, d, y, qhat, level, tangent)
        if chain.layers == 1:
            return core_moments(chain.jd, d, y, qhat, level, tangent)
        return pair_moments(chain.jd, chain.lam_left, chain.lam_right, d, y, qhat, level, tangent)

    def spread(self, qhat: Array) -> Array:
        """Return one qhat per layer, a single one for the infinite chain."""
        if self.chain.layers == math.inf:
            return qhat
        return np.repeat(qhat, int(self.chain.layers) // qhat.size)

    # How errors fall with the level.

    def remaining(self, change: float, level: int, y: float) -> float:
        """Error left at a level whose value differs by `change` from the one below.

        Trapezoid rules follow the exponential law Delta^k, never better than Delta/8. For the
        transfer operator (:func:`deep.message.left_over`) it depends on y.
        """
        if self.deep:
            return left_over(y) * change
        shrink = STEPS[level - 1] / STEPS[level]
        return float(min(change, max(3 * change**shrink, change / 8)))

    def least_error(self, internal_change: float, level: int) -> float:
        """Least error of phi where S_I has moved by this: phi may stand still by accident."""
        if self.deep:
            return 0.01 * internal_change
        shrink = STEPS[level - 1] / STEPS[level]
        return float(min(internal_change, 3 * internal_change**shrink))

    def dropped(self, level: int) -> float:
        """Share of the integral left out on purpose."""
        return 2 * DROPPED[level] if self.chain.layers == 2 else 0.0

    def internal_tol(self, tol: float) -> float:
        """How well S_I is to be known where phi is wanted to `tol`."""
        return 100 * tol if self.deep else tol
