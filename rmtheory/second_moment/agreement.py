r"""Agreement patterns of two copies of the chain: their weights and their counts.

Two configurations s, s' of the whole network agree on the pattern sigma_l = s_l s'_l at a site.
Summing over the column at fixed pattern,

.. math:: W_\sigma = \sum_{s} \prod_l F(v_l(s), v_l(s\sigma); \rho^{\sigma}_l),

where rho_l is the correlation of the two fields, signed by the pattern: sigma_l q_l as N -> inf.
All of the second moment follows from these 2^L numbers (paper, SM-A, 'Tightness'). The exact sums
at finite N run over the counts n_sigma, the numbers of sites with each pattern.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, counted
from rmtheory.base.gaussian import Array
from rmtheory.second_moment.bivariate import log_F_odds

# Weights of the patterns.

#: Patterns and columns are enumerated: 4^L / 2 products.
MOST_LAYERS = 6

Signs = tuple[int, ...]


def patterns(layers: int) -> list[Signs]:
    """All agreement patterns, (+1, ..., +1) first."""
    return list(product((1, -1), repeat=layers))


def site_fields(spins: Signs, jd: Any, lam_left: Any, lam_right: Any) -> list[Any]:
    """v_l of every layer for one column of spins; the missing neighbours of the ends count 0."""
    padded = (0, *spins, 0)
    return [
        jd + lam_left * (padded[k - 1] * padded[k]) + lam_right * (padded[k] * padded[k + 1])
        for k in range(1, len(spins) + 1)
    ]


def log_weights(
    couplings: tuple[float, float, float],
    agreeing: Sequence[Array],
    disagreeing: Sequence[Array],
) -> list[Array]:
    """Log W of every pattern, in the order of :func:`patterns`.

    Parameters
    ----------
    couplings : tuple
        (J_D, lambda_L, lambda_R), already divided by sigma_N at finite N.
    agreeing, disagreeing : sequence of ndarray
        For every layer the odds (1 + rho)/(1 - rho) of the correlation rho of s h with s' h', at
        sites where the copies agree and where they do not. Arrays of different layers broadcast
        against each other: a grid of overlaps costs one call of F per layer and pair of fields,
        not one per grid point.
    """
    layers = len(agreeing)
    # F depends on s and s' through products of neighbours only: s_1 = +1 stands for both signs.
    columns = [(1, *rest) for rest in product((1, -1), repeat=layers - 1)]
    fields = {s: site_fields(s, *couplings) for s in product((1, -1), repeat=layers)}
    # Which pairs of fields each layer meets with each sign; F is symmetric in them.
    needed: dict[tuple[int, int], dict[tuple[float, float], None]] = {}
    terms: list[list[list[tuple[float, float]]]] = []
    for sigma in patterns(layers):
        terms.append([])
        for s in columns:
            copy = fields[tuple(x * y for x, y in zip(s, sigma, strict=True))]
            pairs = [(min(v, w), max(v, w)) for v, w in zip(fields[s], copy, strict=True)]
            terms[-1].append(pairs)
            for layer, pair in enumerate(pairs):
                needed.setdefault((layer, sigma[layer]), {})[pair] = None
    tables: dict[tuple[int, int], dict[tuple[float, float], Array]] = {}
    for (layer, sign), keys in needed.items():
        odds = np.asarray((agreeing if sign > 0 else disagreeing)[layer])
        v, w = (np.array(x).reshape((-1,) + (1,) * odds.ndim) for x in zip(*keys, strict=True))
        tables[layer, sign] = dict(zip(keys, log_F_odds(v, w, odds), strict=True))
    result = []
    for sigma, columns_of in zip(patterns(layers), terms, strict=True):
        total: Any = -np.inf
        for pairs in columns_of:
            factors = [tables[k, sigma[k]][pair] for k, pair in enumerate(pairs)]
            total = np.logaddexp(total, sum(factors[1:], start=factors[0]))
        result.append(np.asarray(total + math.log(2.0)))
    return result


# Counts of the patterns.

Counts = NDArray[np.int64]


def number_of_terms(layers: int, n: int) -> int:
    """Ways to distribute N sites over the 2^L agreement patterns."""
    return math.comb(n + 2**layers - 1, 2**layers - 1)


def checked_size(chain: Chain, n: int, most_terms: int) -> tuple[int, int]:
    """Return (L, N); refuse a sum with more than `most_terms` terms."""
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
    """All ways to write `total` as an ordered sum of `parts` counts, one per row.

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
