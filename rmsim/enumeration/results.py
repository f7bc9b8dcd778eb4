"""What an enumeration answers."""

from __future__ import annotations

from dataclasses import dataclass

from rmsim.enumeration.spins import Packed, Spins, unpack
from rmtheory.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class FixedPoints:
    """All fixed points of one sample.

    Parameters
    ----------
    n, layers : int
        Size of the network.
    count : int
        Number of fixed points, exact.
    packed : ndarray of uint64 or None
        The states as bits (see :mod:`rmsim.enumeration.spins`), if they were kept; every state
        is there together with its flip.
    nodes : int
        Assignments tested: partial ones by branch and bound, complete ones by the dense path.
    near_ties : int
        States one of whose margins was too close to zero for float64 and was computed with twice
        the digits.
    method : str
        How they were found.
    seconds : float
        Time taken.
    """

    n: int
    layers: int
    count: int
    packed: Packed | None
    nodes: int
    near_ties: int
    method: str
    seconds: float

    @property
    def states(self) -> Spins:
        """The states, an array (count, layers, n) of entries ±1."""
        return unpack(self.kept(), self.layers, self.n)

    def kept(self) -> Packed:
        """Return the packed states, or say that they were not kept."""
        if self.packed is None:
            raise InvalidInputError("keep_states", False, "True to have the states, not the count")
        return self.packed
