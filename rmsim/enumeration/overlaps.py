r"""States of a chain as the bits of an integer, and the overlaps between fixed points.

A chain is one network of M = N L spins: spin (l, i) has the index t = l N + i. With the couplings
of neuron to neuron, lambda included, in one matrix K of zero diagonal, a state is a fixed point
when every margin is positive,

.. math:: m_t = s_t h_t = J_D + s_t \sum_{u \ne t} K_{tu} s_u > 0 .

Bit t of a packed state is 1 where s_t = +1. All pairs of an enumeration are compared by exclusive
or and bit counts,

.. math:: q^l(s, s') = \frac1N \sum_i s^l_i s'^l_i = 1 - \frac{2 d^l}{N},

d^l the number of sites of layer l where the two states differ. All ordered pairs are counted, a
state with itself included, so that a histogram sums to Z^2 and its mean over the disorder is the
second moment resolved by distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmsim.compiled_loops import compiled
from rmsim.given import checked_matrices
from rmsim.tensors import Numbers, checked_states, tensor_of
from rmtheory.base.errors import InvalidInputError, UnreadableDataError
from rmtheory.runtime.untrusted import MALFORMED

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]
Packed = NDArray[np.uint64]
Spins = NDArray[np.int8]

Counts = NDArray[np.int64]

#: Spins that fit the packed states.
MOST_SPINS = 64

#: Beyond this the sum of couplings could overflow.
LARGEST = 1e100


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
        The states as bits (see :func:`pack`), if they were kept; every state
        is there together with its flip.
    nodes : int
        Assignments tested: partial ones by branch and bound, complete ones by the dense path.
    near_ties : int
        States one of whose margins was too close to zero for float64 and was computed with twice
        the digits.
    method : str
        How they were enumerated.
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
        """Return the packed states, or refuse if they were not kept."""
        if self.packed is None:
            raise InvalidInputError("keep_states", False, "True to have the states, not the count")
        return self.packed

    def to_xarray(self) -> xr.Dataset:
        """Return the states as a data set over fixed point, layer and neuron."""
        import xarray as xr  # here, because workers import this module and do without

        meaning = {"long_name": "fixed points"}
        states = (("fixed_point", "layer", "neuron"), self.states, meaning)
        about = ("nodes", "near_ties", "method", "seconds")
        return xr.Dataset({"states": states}, attrs={name: getattr(self, name) for name in about})

    @classmethod
    def from_xarray(cls, data: xr.Dataset) -> FixedPoints:
        """Return the fixed points that :meth:`to_xarray` made into a data set, also after a file.

        Raises
        ------
        UnreadableDataError
            If it is another data set: naming what is missing or does not fit.

        Examples
        --------
        >>> import rmsim as rs
        >>> network = rs.Network(10, rs.Chain(1, jd=0.5))
        >>> result = rs.enumerate_fixed_points(network, keep_states=True)
        >>> again = FixedPoints.from_xarray(result.to_xarray())
        >>> again.count == result.count, bool((again.states == result.states).all())
        (True, True)
        """
        try:
            states = data["states"]
            if states.dims != ("fixed_point", "layer", "neuron"):
                raise ValueError(f"states are over {', '.join(map(str, states.dims))}")
            spins = np.asarray(states.values)
            if not bool((np.abs(spins) == 1).all()):
                raise ValueError("states have entries that are not +1 or -1")
            count, layers, n = spins.shape
            return cls(
                *(n, layers, count, pack(spins.astype(np.int8))),
                *(int(data.attrs["nodes"]), int(data.attrs["near_ties"])),
                *(str(data.attrs["method"]), float(data.attrs["seconds"])),
            )
        except (*MALFORMED, InvalidInputError) as problem:
            raise UnreadableDataError(f"the data set is not fixed points: {problem}") from None


# The chain as one network.


def checked_couplings(J: Numbers) -> Array:
    """Return the couplings of one sample as (layers, n, n) in float64, diagonal zero."""
    return checked_matrices("J", tensor_of("J", J), LARGEST).double().cpu().numpy()


def coupling_matrix(J: ArrayLike, lam_left: float = 0.0, lam_right: float = 0.0) -> Array:
    """Return K: the blocks of `J` on the diagonal, the lambdas next to them.

    Examples
    --------
    >>> coupling_matrix(np.zeros((2, 1, 1)), lam_left=3.0, lam_right=5.0)
    array([[0., 5.],
           [3., 0.]])
    """
    return blocks(checked_couplings(J), lam_left, lam_right)


def blocks(couplings: Array, lam_left: float, lam_right: float) -> Array:
    """Return K of couplings (layers, n, n) that are checked."""
    layers, n, _ = couplings.shape
    K = np.zeros((layers, n, layers, n))
    site = np.arange(n)
    for layer in range(layers):
        K[layer, :, layer, :] = couplings[layer]
        if layer > 0:
            K[layer, site, layer - 1, site] = lam_left
        if layer + 1 < layers:
            K[layer, site, layer + 1, site] = lam_right
    return K.reshape(layers * n, layers * n)


def scaled_up(K: Array, jd: float) -> tuple[Array, float]:
    """Return K and J_D times the power of two that brings the largest of them to 1/2 at least.

    The signs of the margins are the same. A power of two changes no digit, and without it squares
    of small couplings would be lost below the least float64; large ones, below 1e100, are safe.

    Examples
    --------
    >>> scaled_up(np.array([[0.0, 2.0**-200], [2.0**-201, 0.0]]), 0.0)
    (array([[0.  , 0.5 ],
           [0.25, 0.  ]]), 0.0)
    """
    _, exponent = np.frexp(max(float(np.abs(K).max()), abs(jd)))
    up = max(0, -int(exponent))
    return np.ldexp(K, up), float(np.ldexp(jd, up))


def pack(states: ArrayLike) -> Packed:
    """Pack states (..., layers, n) of entries ±1 into integers.

    Examples
    --------
    >>> pack([[[1, -1]], [[1, 1]]]).tolist()
    [1, 3]
    """
    array = np.asarray(states)
    spins = array.shape[-2] * array.shape[-1]
    if spins > MOST_SPINS:
        raise InvalidInputError("states", f"{spins} spins", f"of at most {MOST_SPINS} spins")
    bits = (array > 0).reshape(*array.shape[:-2], spins).astype(np.uint64)
    return np.asarray((bits << np.arange(spins, dtype=np.uint64)).sum(axis=-1, dtype=np.uint64))


def unpack(packed: ArrayLike, layers: int, n: int) -> Spins:
    """Return packed states as an array (..., layers, n) of entries ±1.

    Examples
    --------
    >>> unpack([1, 3], 1, 2).tolist()
    [[[1, -1]], [[1, 1]]]
    """
    words = np.asarray(packed, dtype=np.uint64)
    bits = (words[..., None] >> np.arange(layers * n, dtype=np.uint64)) & np.uint64(1)
    return (2 * bits.astype(np.int8) - 1).reshape(*words.shape, layers, n)


# Pairs of fixed points.


def distance_histogram(points: FixedPoints) -> Counts:
    """Ordered pairs of fixed points at every Hamming distance 0 ... N L of the whole network."""
    spins = points.n * points.layers
    return _pair_histogram(_half(points), _mask(spins), spins)


def layer_histograms(points: FixedPoints) -> Counts:
    """Ordered pairs at every distance 0 ... N within a layer: an array (layers, n + 1)."""
    half = _half(points)
    # The flip acts on all layers: within one, pairs at distance d and n - d are equally many.
    rows = []
    for layer in range(points.layers):
        mask = np.uint64(int(_mask(points.n)) << (layer * points.n))
        rows.append(_pair_histogram(half, mask, points.n))
    return np.stack(rows)


def distances_from(points: FixedPoints, state: ArrayLike) -> Counts:
    """Number of fixed points at every Hamming distance 0 ... N L from `state`.

    Parameters
    ----------
    points : FixedPoints
        With its states.
    state : array_like
        A state (layers, n) of entries ±1, or (n,) for one layer; it counts itself if it is a
        fixed point.
    """
    one_layer = points.layers == 1 and np.ndim(state) == 1
    shape = (points.n,) if one_layer else (points.layers, points.n)
    array = checked_states("state", state, shape).cpu().numpy().reshape(points.layers, points.n)
    return _distances(points.kept(), np.uint64(pack(array)), points.n * points.layers)


def overlap_moments(histogram: ArrayLike, powers: tuple[int, ...] = (2, 4)) -> Array:
    """Moments of the overlap, averaged over the pairs of a histogram over distances 0 ... n."""
    counts = np.asarray(histogram, dtype=float)
    total = counts.sum()
    if total <= 0:
        raise InvalidInputError("histogram", "no pairs", "of at least one pair")
    size = counts.size - 1
    q = 1 - 2 * np.arange(size + 1) / size
    return np.array([(counts * q**power).sum() / total for power in powers])


def _half(points: FixedPoints) -> Packed:
    """One state of every pair s, -s."""
    packed = points.kept()
    return np.ascontiguousarray(packed[(packed & np.uint64(1)) == 1])


def _mask(spins: int) -> np.uint64:
    return np.uint64((1 << spins) - 1)


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
