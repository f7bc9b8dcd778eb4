r"""All fixed points of one sample by branch and bound, on one core.

Spins are assigned one by one. A partial assignment is dropped as soon as an assigned spin t can
no longer have a positive margin whatever the free spins are,

.. math:: s_t \sum_{u\ \mathrm{assigned}} K_{tu} s_u + J_D
    + \sum_{u\ \mathrm{free}} |K_{tu}| \le 0 .

The first spin is +1: the flip of a fixed point is one. Every depth keeps its own row of fields,
so that going back restores them to the bit, and no error builds up. The bound is loosened by more
than the rounding, and a complete assignment with a margin within rounding of zero is judged with
twice the digits (:func:`fixed_point`). The loop stops after a budget of nodes or with a full buffer
and can be resumed, so that Python can react to Ctrl-C and enlarge the buffer.

**The order of the spins.** After d spins, a random assignment leaves spin t a chance while

.. math:: s_t \sum_{u\ \mathrm{assigned}} K_{tu} s_u + R_t > 0, \qquad
    R_t = J_D + \sum_{u\ \mathrm{free}} |K_{tu}| .

The first sum is about Gaussian, of variance V_t = sum of K_tu^2 over the assigned spins, so that
about 2^d prod_t Phi(R_t/sqrt(V_t)) assignments survive. Each next spin is the one that makes this
smallest. At N = 28, J_D = 0.4 the natural order visits 2.4 times as many nodes; at L = 2, N = 14,
J_D = 0.1, lambda = 0.5 layers taken in turns visit 15 times as many (``make bench``).

**The cost.** The nodes are forecast by Knuth's random descents: the product of the numbers of
living children on the way down is an unbiased estimate of the nodes at each depth.

All compiled loops of the enumeration are in this file, because a compiled function contains those
it calls and is built again only when its own file changes.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rmsim.compiled_loops import compiled
from rmsim.enumeration.overlaps import Array, Packed
from rmtheory.base.errors import RMError

#: A margin below this fraction of the sum of its terms' sizes is computed again; the rounding of
#: at most a few thousand float64 additions stays below it.
CLOSE = 1e-12

#: Nodes between two returns to Python, which checks for Ctrl-C: about half a second.
_BUDGET = 20_000_000

# Entries of the position of the search.
_DEPTH, _COUNT, _NODES, _CLOSE = range(4)


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
        Order of assignment, by default :func:`greedy_order`.

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
    kept = np.empty(min(1024, places) if keep else 0, dtype=np.uint64)
    if spins == 1:
        # Nothing is left to branch on.
        good, close = fixed_point(sorted_K, jd, state, tolerance)
        position[:] = (0, int(good), 1, int(close))
        kept[:1] = words[:1]
    while position[_DEPTH] > 0:
        walk(
            sorted_K, columns, bounds, fields, state, choice, position, words, kept,
            jd, tolerance, _BUDGET, keep,
        )  # fmt: skip
        if keep and position[_COUNT] == kept.size:
            if kept.size == places:
                raise TooManyStatesError(
                    f"more than {most_states} fixed points; count them without keeping them, or "
                    "raise most_states"
                )
            more = min(kept.size, places - kept.size)
            kept = np.concatenate([kept, np.empty(more, dtype=np.uint64)])
    count = int(position[_COUNT])
    states = None
    if keep:
        everything = np.uint64((1 << spins) - 1)
        states = np.concatenate([kept[:count], kept[:count] ^ everything])
    return 2 * count, states, int(position[_NODES]), int(position[_CLOSE])


def _bounds(K: Array, jd: float, tolerance: Array) -> Array:
    """J_D + sum of |K| over the free spins after every depth; inf for spins still free."""
    spins = K.shape[0]
    size = np.abs(K)
    later = np.zeros((spins + 1, spins))
    later[:-1] = np.cumsum(size.T[::-1], axis=0)[::-1]
    assigned = np.arange(spins) < np.arange(spins + 1)[:, None]
    return np.where(assigned, later + jd + tolerance, np.inf)


def tolerances(K: Array, jd: float) -> Array:
    """Return for every spin the size below which a margin in float64 has no certain sign."""
    return np.asarray(CLOSE * (np.abs(K).sum(axis=1) + abs(jd)))


# The compiled loops.


@compiled
def walk(
    K: Array,
    columns: Array,
    bounds: Array,
    fields: Array,
    state: Array,
    choice: NDArray[np.int64],
    position: NDArray[np.int64],
    words: Packed,
    kept: Packed,
    jd: float,
    tolerance: Array,
    budget: int,
    keep: bool,
) -> None:
    """Visit nodes depth first until the tree, the budget or the buffer ends."""
    spins = state.size
    depth, count, close = position[0], position[1], position[3]
    nodes = 0
    while depth > 0 and nodes < budget and (not keep or count < kept.size):
        if choice[depth] == 2:
            depth -= 1
            continue
        spin = 1.0 - 2.0 * choice[depth]
        choice[depth] += 1
        nodes += 1
        bound = bounds[depth + 1]
        here = fields[depth]
        if spin * here[depth] + bound[depth] <= 0.0:
            continue
        state[depth] = spin
        column = columns[depth]
        below = fields[depth + 1]
        dead = 0
        # No early exit: the loop without branches runs in vector registers.
        for t in range(spins):
            field = here[t] + spin * column[t]
            below[t] = field
            dead |= field * state[t] + bound[t] <= 0.0
        if dead:
            continue
        if depth + 1 < spins:
            depth += 1
            choice[depth] = 0
            continue
        near = False
        for t in range(spins):
            near |= below[t] * state[t] + jd <= tolerance[t]
        good = True
        if near:
            good, near = fixed_point(K, jd, state, tolerance)
            close += near
        if good:
            if keep:
                word = np.uint64(0)
                for t in range(spins):
                    if state[t] > 0.0:
                        word |= words[t]
                kept[count] = word
            count += 1
    position[0], position[1], position[3] = depth, count, close
    position[2] += nodes


@compiled
def fixed_point(K: Array, jd: float, spins: Array, tolerance: Array) -> tuple[bool, bool]:
    """Whether every margin is positive, and whether one had to be computed again."""
    close = False
    for t in range(spins.size):
        total = 0.0
        for u in range(spins.size):
            total += K[t, u] * spins[u]
        margin = jd + spins[t] * total
        if abs(margin) <= tolerance[t]:
            close = True
            margin = accurate_margin(K[t], spins, t, jd)
        if margin <= 0.0:
            return False, close
    return True, close


@compiled
def accurate_margin(row: Array, spins: Array, t: int, jd: float) -> float:
    """J_D + s_t sum_u K_tu s_u by compensated sums (Knuth's two-sum): about 30 digits.

    A margin that vanishes exactly comes out as exactly zero unless terms span 30 orders of
    magnitude.
    """
    high, low = jd, 0.0
    for u in range(row.size):
        term = row[u] * spins[u] * spins[t]
        total = high + term
        back = total - high
        low += (high - (total - back)) + (term - back)
        high = total
    return high + low


@compiled
def judge(K: Array, jd: float, words: Packed, tolerance: Array) -> tuple[NDArray[np.bool_], int]:
    """Which packed states are fixed points, in float64, and how many were close to a tie."""
    spins = K.shape[0]
    good = np.empty(words.size, np.bool_)
    state = np.empty(spins)
    near_ties = 0
    for k in range(words.size):
        for t in range(spins):
            bit = (words[k] >> np.uint64(t)) & np.uint64(1)
            state[t] = 2.0 * bit - 1.0
        good[k], close = fixed_point(K, jd, state, tolerance)
        near_ties += close
    return good, near_ties


# Order of the spins and forecast of the nodes.


@compiled
def greedy_order(K: Array, jd: float) -> NDArray[np.int64]:
    """Return the spins in the order that keeps the fewest assignments alive."""
    spins = K.shape[0]
    order = np.empty(spins, np.int64)
    used = np.zeros(spins, np.bool_)
    slack = np.full(spins, jd)
    variance = np.zeros(spins)
    for t in range(spins):
        for u in range(spins):
            slack[t] += abs(K[t, u])
    for depth in range(spins):
        best, chosen = math.inf, -1
        for u in range(spins):
            if used[u]:
                continue
            total = 0.0
            for t in range(spins):
                if used[t] or t == u:
                    v = variance[t] + K[t, u] * K[t, u]
                    r = slack[t] - abs(K[t, u])
                    if v > 0.0:
                        # erfc may underflow: such a spin ends the branch, marked by -700.
                        total += math.log(max(0.5 * math.erfc(-r / math.sqrt(2 * v)), 1e-304))
                    elif r <= 0.0:
                        total -= 700.0
            if total < best or chosen < 0:
                best, chosen = total, u
        order[depth] = chosen
        used[chosen] = True
        for t in range(spins):
            variance[t] += K[t, chosen] * K[t, chosen]
            slack[t] -= abs(K[t, chosen])
    return order


@compiled
def forecast_nodes(K: Array, jd: float, order: NDArray[np.int64], descents: int) -> float:
    """Estimate the nodes of the search in this order, the first spin fixed.

    The descents are pseudo-random but always the same, so that a size is refused today as it was
    yesterday.
    """
    spins = order.size
    fields, bound = np.empty(spins), np.empty(spins)
    state = np.empty(spins)
    alive = np.empty(2, np.bool_)
    random = np.uint64(0x9E3779B97F4A7C15)
    total = 0.0
    for _ in range(descents):
        weight = 1.0
        for t in range(spins):
            fields[t] = K[t, order[0]]
            bound[t] = jd
            for u in range(1, spins):
                bound[t] += abs(K[t, order[u]])
        state[order[0]] = 1.0
        for depth in range(1, spins):
            new = order[depth]
            total += 2.0 * weight
            for option in range(2):
                spin = 1.0 - 2.0 * option
                alive[option] = spin * fields[new] + bound[new] > 0.0
                for earlier in range(depth):
                    t = order[earlier]
                    field = fields[t] + spin * K[t, new]
                    if state[t] * field + bound[t] - abs(K[t, new]) <= 0.0:
                        alive[option] = False
                        break
            children = int(alive[0]) + int(alive[1])
            if children == 0:
                break
            weight *= children
            # xorshift: three shifts are random enough for a choice of branches.
            random ^= random << np.uint64(13)
            random ^= random >> np.uint64(7)
            random ^= random << np.uint64(17)
            option = 1 - int(alive[0]) if children == 1 else int(random >> np.uint64(63))
            state[new] = 1.0 - 2.0 * option
            for t in range(spins):
                fields[t] += state[new] * K[t, new]
                bound[t] -= abs(K[t, new])
    return total / descents
