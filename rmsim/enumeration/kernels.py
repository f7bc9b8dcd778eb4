"""The compiled loops of the enumeration: the sign of a margin beyond doubt, and the search.

A margin is taken in float64 where it is clear, with twice the digits where it is not. The loops
share one file because a compiled function contains those it calls, and is built again only when
its own file changes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rmsim.compiled import compiled
from rmsim.enumeration.spins import Array, Packed

#: A margin below this fraction of the sum of its terms' sizes is computed again; the rounding of
#: at most a few thousand float64 additions stays below it.
CLOSE = 1e-12


def tolerances(K: Array, jd: float) -> Array:
    """Return for every spin the size below which a margin in float64 has no certain sign."""
    return np.asarray(CLOSE * (np.abs(K).sum(axis=1) + abs(jd)))


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
def walk(
    K: Array,
    columns: Array,
    bounds: Array,
    fields: Array,
    state: Array,
    choice: NDArray[np.int64],
    position: NDArray[np.int64],
    words: Packed,
    found: Packed,
    jd: float,
    tolerance: Array,
    budget: int,
    keep: bool,
) -> None:
    """Visit nodes depth first until the tree, the budget or the buffer ends."""
    spins = state.size
    depth, count, close = position[0], position[1], position[3]
    nodes = 0
    while depth > 0 and nodes < budget and (not keep or count < found.size):
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
                found[count] = word
            count += 1
    position[0], position[1], position[3] = depth, count, close
    position[2] += nodes


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
