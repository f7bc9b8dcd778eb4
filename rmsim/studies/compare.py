r"""Theory against simulation: the exact finite-N averages that measurements are held against.

Over dense Gaussian couplings of variance 1/N off the diagonal the fields have the variance
sigma_N^2 = (N-1)/N, and all averages are exact with J_D and lambda divided by sigma_N: E[Z] = z^N,
and pairs of fixed points that agree on the patterns n_sigma number on average

.. math:: \frac{N!}{\prod_\sigma n_\sigma!} \prod_\sigma W_\sigma(k)^{n_\sigma},
    \qquad k_l = \sum_{\sigma: \sigma_l = 1} n_\sigma .

Divided by E[Z], the pairs at a distance are the neighbours of a typical (planted) fixed point.
This is the only module of the simulator that calls the physics of :mod:`rmtheory`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import special

from rmtheory.annealed import entropy_array
from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, OutsideValidityError
from rmtheory.dynamics.bound import convergence_bound as theory_convergence_bound
from rmtheory.second_moment import finite_ratio
from rmtheory.second_moment.agreement import (
    MOST_LAYERS,
    Counts,
    compositions,
    log_weights,
    number_of_terms,
    patterns,
)

__all__ = [
    "annealed_entropy",
    "convergence_bound",
    "log_mean_count",
    "mean_count",
    "mean_count_unit_variance",
    "neighbours",
    "pairs",
    "second_moment_ratio",
]

Array = NDArray[np.float64]

#: Terms of the exact ratio that a command waits for: about a second.
_MOST_TERMS = 5_000_000

#: The same for the pairs at all distances, whose terms are all in memory.
_MOST_PAIR_TERMS = 300_000


def mean_count(chain: Chain, n: int) -> float:
    """E[Z] with `n` neurons per layer, exact: z^N with couplings divided by sigma_N.

    Examples
    --------
    >>> print(f"{mean_count(Chain(1, 0.4), 16):.2f}")
    85.45
    """
    return _exponential(log_mean_count(chain, n), "log_mean_count")


def annealed_entropy(chain: Chain, n: int) -> float:
    """Annealed entropy log E[Z] per neuron with `n` neurons per layer, exact.

    Examples
    --------
    >>> print(f"{annealed_entropy(Chain(1, 0.4), 2000):.6f}")
    0.270727
    """
    return log_mean_count(chain, n) / (n * chain.finite_layers)


def mean_count_unit_variance(chain: Chain, n: int) -> float:
    """z^N with sigma = 1, as the paper has it for N -> inf: wrong at finite N, for tests.

    Examples
    --------
    >>> print(f"{mean_count_unit_variance(Chain(1, 0.4), 16):.1f}")
    76.0
    """
    size = checks.integer("n", n, 2)
    entropy, _ = entropy_array(chain.finite_layers, chain.jd, chain.lam_left, chain.lam_right)
    return _exponential(size * chain.finite_layers * float(entropy), "a smaller n")


def second_moment_ratio(chain: Chain, n: int) -> float | None:
    """E[Z^2]/E[Z]^2 with `n` neurons per layer, exact; None if it is too long or overflows."""
    layers = chain.finite_layers
    if layers > MOST_LAYERS or number_of_terms(layers, n) > _MOST_TERMS:
        return None
    ratio = float(finite_ratio(chain, n).value)
    return ratio if math.isfinite(ratio) else None


def convergence_bound(n: int) -> float:
    """The paper's bound J_D = sqrt(2 ln N) for one layer to stop at once (SM-A).

    Examples
    --------
    >>> print(f"{convergence_bound(1000):.4f}")
    3.7169
    """
    return float(theory_convergence_bound(n, 15).jd.value)


def neighbours(chain: Chain, n: int, distance: int) -> float:
    """Mean number of fixed points at a Hamming distance from a typical one.

    Parameters
    ----------
    chain : Chain
        At most 6 layers.
    n : int
        Neurons per layer.
    distance : int
        Spins in which they differ, in any layers; 0 gives 1, the point itself.

    Examples
    --------
    >>> print(f"{neighbours(Chain(1, 0.8), 400, 1):.5f}")
    0.80539
    """
    log_neighbours = _log_pairs(chain, n, distance) - log_mean_count(chain, n)
    return _exponential(log_neighbours, "a smaller n or distance")


def pairs(chain: Chain, n: int) -> Array | None:
    """Mean number of ordered pairs of fixed points at every distance 0 ... N L; sums to E[Z^2].

    None where the sums have too many terms.

    Examples
    --------
    >>> chain = Chain(1, 0.4)
    >>> ratio = pairs(chain, 12).sum() / mean_count(chain, 12) ** 2
    >>> bool(abs(ratio / second_moment_ratio(chain, 12) - 1) < 1e-12)
    True
    """
    layers = chain.finite_layers
    if layers > MOST_LAYERS or number_of_terms(layers, n) > _MOST_PAIR_TERMS:
        return None
    counts = compositions(checks.integer("n", n, 2), 2**layers)
    log_terms = _log_terms(chain, n, counts, n)
    distance = counts @ (np.array(patterns(layers)) < 0).sum(axis=1)
    summed = np.bincount(distance, weights=np.exp(log_terms), minlength=n * layers + 1)
    return np.asarray(summed, dtype=np.float64)


def log_mean_count(chain: Chain, n: int) -> float:
    """Log E[Z] with `n` neurons per layer, exact at finite N, for any N."""
    layers = chain.finite_layers
    entropy, _ = entropy_array(layers, *_scaled(chain, n))
    return n * layers * float(entropy)


def _exponential(log: float, instead: str) -> float:
    try:
        return math.exp(log)
    except OverflowError:
        raise OutsideValidityError(f"e^{log:.4g} is not a float: use {instead}") from None


def _scaled(chain: Chain, n: int) -> tuple[float, float, float]:
    """(J_D, lambda_L, lambda_R) in units of sigma_N."""
    scale = math.sqrt(checks.integer("n", n, 2) / (n - 1))
    return scale * chain.jd, scale * chain.lam_left, scale * chain.lam_right


def _log_pairs(chain: Chain, n: int, distance: int) -> float:
    """Log of the mean number of ordered pairs at a distance, -inf where there are none."""
    layers = chain.finite_layers
    if layers > MOST_LAYERS:
        raise InvalidInputError("layers", layers, f"at most {MOST_LAYERS} for pairs")
    steps = checks.integer("distance", distance, 0, n * layers)
    signs = np.array(patterns(layers))
    differing = (signs < 0).sum(axis=1)
    # Sites without a difference (the first pattern) fill up to N.
    defects = np.array(list(_defects(differing[1:].tolist(), steps, n)), dtype=np.int64)
    counts = np.hstack([n - defects.sum(axis=1, keepdims=True), defects])
    return float(special.logsumexp(_log_terms(chain, n, counts, min(steps, n))))


def _log_terms(chain: Chain, n: int, counts: Counts, reach: int) -> Array:
    """Log of the mean number of pairs with these numbers of sites of every pattern, one per row.

    The weights depend on the agreeing sites of every layer alone, of which at most `reach` are
    missing: they are computed once on that grid.
    """
    layers = chain.finite_layers
    k = np.arange(n - reach, n + 1, dtype=float)
    # Odds (1 + rho)/(1 - rho) of the two fields of a site; absent sites get any legal value.
    with np.errstate(divide="ignore", invalid="ignore"):
        same = np.where(k < n, np.maximum(k - 1, 0) / (n - k), np.inf)
        other = np.where(k > 0, np.maximum(n - k - 1, 0) / k, np.inf)
    axes = [tuple(-1 if j == m else 1 for j in range(layers)) for m in range(layers)]
    grids = log_weights(
        _scaled(chain, n),
        [same.reshape(axis) for axis in axes],
        [other.reshape(axis) for axis in axes],
    )
    place = tuple((counts @ (np.array(patterns(layers)) > 0) - (n - reach)).T)
    total = special.gammaln(n + 1) - special.gammaln(counts + 1).sum(axis=1)
    for sites, grid in zip(counts.T, grids, strict=True):
        weights = np.broadcast_to(grid, (k.size,) * layers)[place]
        # 0 sites of a pattern of weight 0 count as a factor 1.
        total = total + np.where(sites > 0, sites * np.where(sites > 0, weights, 0.0), 0.0)
    return np.asarray(total)


def _defects(sizes: list[int], total: int, most: int) -> Iterator[tuple[int, ...]]:
    """Numbers of sites of every pattern, patterns of given sizes adding up to `total`."""
    if len(sizes) == 1:
        number, rest = divmod(total, sizes[0])
        if rest == 0 and number <= most:
            yield (number,)
        return
    for number in range(min(total // sizes[0], most) + 1):
        for others in _defects(sizes[1:], total - number * sizes[0], most - number):
            yield (number, *others)
