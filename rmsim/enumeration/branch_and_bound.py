r"""All fixed points of one sample by branch and bound, on one core.

Spins are assigned one by one. A partial assignment is dropped as soon as an assigned spin t can
no longer have a positive margin whatever the free spins are,

.. math:: s_t \sum_{u\ \mathrm{assigned}} K_{tu} s_u + J_D
    + \sum_{u\ \mathrm{free}} |K_{tu}| \le 0 .

The first spin is +1: the flip of a fixed point is one. Every depth keeps its own row of fields,
so that going back restores them to the bit, and no error builds up. The bound is loosened by more
than the rounding, and a complete assignment with a margin within rounding of zero is judged by
:func:`kernels.fixed_point`.

The loop stops after a budget of nodes or with a full buffer and can be taken up again, so that
Python can answer Ctrl-C and enlarge the buffer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rmsim.enumeration.kernels import fixed_point, tolerances, walk
from rmsim.enumeration.order import greedy_order
from rmsim.enumeration.spins import Array, Packed
from rmtheory.errors import RMError

#: Nodes between two looks at the keyboard, about half a second.
_BUDGET = 20_000_000

# Entries of the position of the search.
_DEPTH, _FOUND, _NODES, _CLOSE = range(4)


class TooManyStatesError(RMError):
    """More fixed points than may be kept in memory; counting alone needs no memory."""


def search(
    K: Array, jd: float, keep: bool, most_states: int, order: NDArray[np.int64] | None = None
) -> tuple[int, Packed | None, int, int]:
    """Find all fixed points of the network K.

    Parameters
    ----------
    K : ndarray
        Couplings (M, M), diagonal zero, M <= 64.
    jd : float
        Self-coupling.
    keep : bool
        Return the states too; otherwise memory does not grow with their number.
    most_states : int
        Stop with an error if more states than this have to be kept.
    order : ndarray of int, optional
        Order of assignment, by default :func:`order.greedy_order`.

    Returns
    -------
    count, states, nodes, near_ties
        The number of fixed points; them, packed, or None; partial assignments tested; complete
        assignments with a margin too small for float64.
    """
    spins = K.shape[0]
    if order is None:
        order = greedy_order(K, jd)
    sorted_K = np.ascontiguousarray(K[np.ix_(order, order)])
    tolerance = tolerances(sorted_K, jd)
    columns = np.ascontiguousarray(sorted_K.T)
    bounds = _bounds(sorted_K, jd, tolerance)
    fields = np.zeros((spins + 1, spins))
    fields[1] = columns[0]
    state = np.ones(spins)
    choice = np.zeros(spins + 1, dtype=np.int64)
    position = np.array([1, 0, 0, 0], dtype=np.int64)
    words = np.uint64(1) << order.astype(np.uint64)
    # One place more than allowed: only when it is taken are there too many.
    places = most_states // 2 + 1
    found = np.empty(min(1024, places) if keep else 0, dtype=np.uint64)
    if spins == 1:
        # Nothing is left to branch on.
        good, close = fixed_point(sorted_K, jd, state, tolerance)
        position[:] = (0, int(good), 1, int(close))
        found[:1] = words[:1]
    while position[_DEPTH] > 0:
        walk(
            sorted_K, columns, bounds, fields, state, choice, position, words, found,
            jd, tolerance, _BUDGET, keep,
        )  # fmt: skip
        if keep and position[_FOUND] == found.size:
            if found.size == places:
                raise TooManyStatesError(
                    f"more than {most_states} fixed points; count them without keeping them, or "
                    "raise most_states"
                )
            more = min(found.size, places - found.size)
            found = np.concatenate([found, np.empty(more, dtype=np.uint64)])
    count = int(position[_FOUND])
    states = None
    if keep:
        everything = np.uint64((1 << spins) - 1)
        states = np.concatenate([found[:count], found[:count] ^ everything])
    return 2 * count, states, int(position[_NODES]), int(position[_CLOSE])


def _bounds(K: Array, jd: float, tolerance: Array) -> Array:
    """J_D + sum of |K| over the free spins after every depth; inf for spins still free."""
    spins = K.shape[0]
    size = np.abs(K)
    later = np.zeros((spins + 1, spins))
    later[:-1] = np.cumsum(size.T[::-1], axis=0)[::-1]
    assigned = np.arange(spins) < np.arange(spins + 1)[:, None]
    return np.where(assigned, later + jd + tolerance, np.inf)
