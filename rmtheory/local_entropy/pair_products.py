r"""Sums over one site of products of linear forms, as one product of matrices.

Averages of the two-layer chain are sums over pairs of nodes (i, j) of weights times products of
forms :math:`a_i \cdot v_j` in the four numbers v of a node of the second site. A product of two
forms is linear in the ten products v_a v_b, a product of four in the 35 of fourth degree: the
weights are multiplied by these once, and all averages are read off the result.
"""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np
from numpy.typing import NDArray

from rmtheory.gaussian import Array


def _monomials(degree: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Exponents of the distinct monomials, and where each ordered product stands among them."""
    distinct = list(combinations_with_replacement(range(4), degree))
    places = {key: index for index, key in enumerate(distinct)}
    ordered = [places[tuple(sorted(key))] for key in product(range(4), repeat=degree)]
    return np.array(distinct), np.array(ordered)


_PAIRS, PAIR_PLACES = _monomials(2)
_QUADRUPLES, QUADRUPLE_PLACES = _monomials(4)


def pair_products(rows: Array) -> Array:
    """The ten products v_a v_b of each row."""
    return np.asarray(rows[:, _PAIRS].prod(axis=2))


def quadruple_products(rows: Array) -> Array:
    """The 35 products of four of each row."""
    return np.asarray(rows[:, _QUADRUPLES].prod(axis=2))


def outer(a: Array, b: Array) -> Array:
    """a_k b_l of each row, sixteen numbers: the coefficients of (a.v)(b.v)."""
    return np.asarray((a[:, :, None] * b[:, None, :]).reshape(len(a), 16))
