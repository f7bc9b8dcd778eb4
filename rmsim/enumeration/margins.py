"""The sign of a margin, beyond doubt: float64 where it is clear, twice the digits where not."""

from __future__ import annotations

import numpy as np

from rmsim.compiled import compiled
from rmsim.enumeration.spins import Array

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
