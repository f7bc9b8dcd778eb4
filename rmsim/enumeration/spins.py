r"""A chain as one network of M = N L spins, and its states as the bits of an integer.

Spin (l, i) has the index t = l N + i. With the couplings of neuron to neuron, lambda included, in
one matrix K of zero diagonal, a state is a fixed point when every margin is positive,

.. math:: m_t = s_t h_t = J_D + s_t \sum_{u \ne t} K_{tu} s_u > 0 .

Bit t of a packed state is 1 where s_t = +1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmtheory.errors import InvalidInputError

Array = NDArray[np.float64]
Packed = NDArray[np.uint64]
Spins = NDArray[np.int8]

#: Spins that fit the packed states.
MOST_SPINS = 64

#: Beyond this the sum of couplings could overflow.
_LARGEST = 1e100


def checked_couplings(J: ArrayLike) -> Array:
    """Return the couplings of one sample as (layers, n, n) in float64, diagonal zero."""
    couplings = np.asarray(J, dtype=np.float64)
    if couplings.ndim == 2:
        couplings = couplings[None]
    shape = couplings.shape
    if len(shape) != 3 or shape[1] != shape[2] or shape[0] < 1 or shape[1] < 1:
        raise InvalidInputError("J", f"shape {shape}", "an array (layers, n, n) or (n, n)")
    if not np.all(np.abs(couplings) <= _LARGEST):  # false for nan
        raise InvalidInputError("J", "a larger or undefined entry", f"at most {_LARGEST} in size")
    if np.any(np.einsum("lii->li", couplings)):
        raise InvalidInputError("J", "another diagonal", "zero on its diagonal (J_D is kept apart)")
    return couplings


def coupling_matrix(J: ArrayLike, lam_left: float = 0.0, lam_right: float = 0.0) -> Array:
    """Return K: the blocks of `J` on the diagonal, the lambdas next to them.

    Examples
    --------
    >>> coupling_matrix(np.zeros((2, 1, 1)), lam_left=3.0, lam_right=5.0)
    array([[0., 5.],
           [3., 0.]])
    """
    couplings = checked_couplings(J)
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
