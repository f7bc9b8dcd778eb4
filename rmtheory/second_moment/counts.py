"""How many sites carry each agreement pattern: the counts the exact sums run over."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rmtheory import checks
from rmtheory.chain import Chain
from rmtheory.errors import InvalidInputError
from rmtheory.second_moment.patterns import MOST_LAYERS
from rmtheory.wording import counted

Counts = NDArray[np.int64]


def number_of_terms(layers: int, n: int) -> int:
    """Ways to distribute N sites over the 2^L agreement patterns."""
    return math.comb(n + 2**layers - 1, 2**layers - 1)


def checked_size(chain: Chain, n: int, most_terms: int) -> tuple[int, int]:
    """Return (L, N), or say why the sum is out of reach."""
    layers = chain.finite_layers
    size = checks.integer("n", n, 2)
    if layers > MOST_LAYERS:
        raise InvalidInputError("layers", layers, f"at most {MOST_LAYERS} for the finite-N sum")
    terms = number_of_terms(layers, size)
    if terms > most_terms:
        raise InvalidInputError(
            "n",
            size,
            f"smaller: the sum over {counted(layers, 'layer')} would have {terms:.1e} terms, "
            f"more than the limit of {most_terms:.0e}",
        )
    return layers, size


def compositions(total: int, parts: int) -> Counts:
    """All ways to write `total` as an ordered sum of `parts` counts, one a row.

    Examples
    --------
    >>> compositions(2, 2).tolist()
    [[0, 2], [1, 1], [2, 0]]
    """
    rows = math.comb(total + parts - 1, parts - 1)
    # Stars and bars: the counts are the gaps between the bars.
    bars = np.array(list(combinations(range(total + parts - 1), parts - 1)), dtype=np.int64)
    bars = bars.reshape(rows, parts - 1)
    fences = np.hstack([np.full((rows, 1), -1), bars, np.full((rows, 1), total + parts - 1)])
    return np.asarray(np.diff(fences, axis=1) - 1)
