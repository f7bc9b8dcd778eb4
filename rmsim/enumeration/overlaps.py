r"""Overlaps between fixed points: all pairs of an enumeration, by exclusive or and bit counts.

.. math:: q^l(s, s') = \frac1N \sum_i s^l_i s'^l_i = 1 - \frac{2 d^l}{N},

d^l the number of sites of layer l where the two states differ. All ordered pairs are counted, a
state with itself included, so that a histogram sums to Z^2 and its mean over the disorder is the
second moment resolved by distance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmsim.compiled import compiled
from rmsim.enumeration.results import FixedPoints
from rmsim.enumeration.spins import Array, Packed, pack
from rmtheory.errors import InvalidInputError

Counts = NDArray[np.int64]


def distance_histogram(found: FixedPoints) -> Counts:
    """Ordered pairs of fixed points at every Hamming distance 0 ... N L of the whole network."""
    spins = found.n * found.layers
    return _pair_histogram(_half(found), _mask(spins), spins)


def layer_histograms(found: FixedPoints) -> Counts:
    """Ordered pairs at every distance 0 ... N within a layer: an array (layers, n + 1)."""
    half = _half(found)
    # The flip acts on all layers: within one, pairs at distance d and n - d are equally many.
    rows = []
    for layer in range(found.layers):
        mask = np.uint64(int(_mask(found.n)) << (layer * found.n))
        rows.append(_pair_histogram(half, mask, found.n))
    return np.stack(rows)


def distances_from(found: FixedPoints, state: ArrayLike) -> Counts:
    """Number of fixed points at every Hamming distance 0 ... N L from `state`.

    Parameters
    ----------
    found : FixedPoints
        With its states.
    state : array_like
        A state (layers, n) of entries ±1, or (n,) for one layer; it counts itself if it is a
        fixed point.
    """
    array = np.asarray(state)
    array = array[None] if array.ndim == 1 else array
    if array.shape != (found.layers, found.n) or not np.all(np.abs(array) == 1):
        allowed = f"an array ({found.layers}, {found.n}) of entries ±1"
        raise InvalidInputError("state", f"shape {array.shape}", allowed)
    spins = found.n * found.layers
    return _distances(found.kept(), np.uint64(pack(array)), spins)


def overlap_moments(histogram: ArrayLike, powers: tuple[int, ...] = (2, 4)) -> Array:
    """Moments of the overlap, averaged over the pairs of a histogram over distances 0 ... n."""
    counts = np.asarray(histogram, dtype=float)
    total = counts.sum()
    if total <= 0:
        raise InvalidInputError("histogram", "no pairs", "of at least one pair")
    size = counts.size - 1
    q = 1 - 2 * np.arange(size + 1) / size
    return np.array([(counts * q**power).sum() / total for power in powers])


def _mask(spins: int) -> np.uint64:
    return np.uint64((1 << spins) - 1)


def _half(found: FixedPoints) -> Packed:
    """One state of every pair s, -s."""
    packed = found.kept()
    return np.ascontiguousarray(packed[(packed & np.uint64(1)) == 1])


@compiled
def _bits(x: np.uint64) -> np.uint64:
    """Number of bits set, by sums of neighbouring fields (one instruction after compilation)."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)


@compiled
def _pair_histogram(half: Packed, mask: np.uint64, size: int) -> Counts:
    """Histogram of all ordered pairs, from those between one state of every flip pair."""
    counts = np.zeros(size + 1, np.int64)
    for a in range(half.size):
        for b in range(a):
            counts[_bits((half[a] ^ half[b]) & mask)] += 2
    counts[0] += half.size
    # (s, s'), (-s, -s') lie at d; (s, -s'), (-s, s') at size - d.
    return 2 * (counts + counts[::-1])


@compiled
def _distances(packed: Packed, state: np.uint64, size: int) -> Counts:
    counts = np.zeros(size + 1, np.int64)
    for k in range(packed.size):
        counts[_bits(packed[k] ^ state)] += 1
    return counts
