"""One chain seen by the solvers: its tilted averages, whatever the number of layers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rmtheory.chain import Chain
from rmtheory.errors import InvalidInputError
from rmtheory.gaussian import Array
from rmtheory.local_entropy.core import core_moments
from rmtheory.local_entropy.moments import Moments
from rmtheory.local_entropy.pair import pair_moments


@dataclass(frozen=True)
class LocalModel:
    """The local-entropy functional of a chain of one or two layers."""

    chain: Chain

    def __post_init__(self) -> None:
        if self.chain.layers not in (1, 2):
            raise InvalidInputError("layers", self.chain.layers, "1 or 2 for the local entropy")

    @property
    def unknowns(self) -> int:
        """Number of independent qhat: one where all layers are equivalent by reflection."""
        return 1 if self.chain.layers == 1 or self.chain.uniform else 2

    @property
    def coarse(self) -> int:
        """Level of the quadrature that Newton starts with: finer where it costs nothing."""
        return 2 if self.chain.layers == 1 else 1

    def moments(
        self, d: float, y: float, qhat: Array, level: int, tangent: bool = False
    ) -> Moments:
        """Tilted averages at (d, y, qhat), with derivatives if `tangent`."""
        chain = self.chain
        if chain.layers == 1:
            return core_moments(chain.jd, d, y, qhat, level, tangent)
        return pair_moments(chain.jd, chain.lam_left, chain.lam_right, d, y, qhat, level, tangent)

    def spread(self, qhat: Array) -> Array:
        """Return one qhat per layer."""
        return np.repeat(qhat, int(self.chain.layers) // qhat.size)
