r"""E[Z^2]/E[Z]^2 at finite N, exactly: dense Gaussian couplings, no self-interaction in J.

With k_l agreeing sites in layer l the fields s h and s' h' of a site, of variance (N-1)/N, have
the correlation (N q - 1)/(N - 1) where the copies agree and -(N q + 1)/(N - 1) where they do not,
q = (2 k_l - N)/N; the paper prints ±q. Sites are independent given the overlaps, so

.. math:: E[Z^2] = \sum_{\{n_\sigma\}} \frac{N!}{\prod_\sigma n_\sigma!}
    \prod_\sigma W_\sigma(k)^{n_\sigma}, \qquad k_l = \sum_{\sigma: \sigma_l = 1} n_\sigma,

with the couplings divided by sigma_N = sqrt((N-1)/N) (errata 5 and 6). Every term is positive.

The sum is evaluated in float64, or to any number of digits term by term in exact counts and exact
correlations; only F is then a quadrature, rigorous in ball arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import mpmath
import numpy as np
from scipy import special

from rmtheory.annealed import entropy_array
from rmtheory.annealed.partition import integer_power, transfer_2x2
from rmtheory.base import checks
from rmtheory.base.arithmetic import Arithmetic, MPArithmetic, evaluate
from rmtheory.base.chain import Chain
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.base.gaussian import Array
from rmtheory.second_moment.agreement import (
    Signs,
    checked_size,
    compositions,
    log_weights,
    number_of_terms,
    patterns,
    site_fields,
)
from rmtheory.second_moment.bivariate import LOG_ERROR, orthant, orthant_conditional

# In float64.

#: Largest number of terms of the sum: about a minute.
MOST_TERMS = 200_000_000

_BLOCK = 1 << 18


def finite_ratio(
    chain: Chain, n: int, digits: int | None = None, *, tier: Tier | None = None
) -> Estimate:
    """Return E[Z^2]/E[Z]^2 with `n` neurons per layer.

    Parameters
    ----------
    chain : Chain
        Any number of layers for which the sum has at most 2e8 terms: N = 1000 at L = 2, N = 40 at
        L = 3.
    n : int
        Neurons per layer, at least 2.
    digits : int, optional
        Evaluate to so many digits instead of in float64; the sum may then have 20000 terms.
    tier : Tier, optional
        With `digits`: ``certified`` by balls or ``verified`` by two routes.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> print(finite_ratio(Chain(1, jd=0.1), 100))
    1.305634937313 ± 3e-12
    >>> print(finite_ratio(Chain(1, jd="0.1"), 10, digits=25))
    1.941145056928984620931946 ± 6e-25
    """
    if digits is not None or tier is not None:
        return precise_ratio(chain, n, 15 if digits is None else digits, tier=tier)
    layers, size = checked_size(chain, n, MOST_TERMS)
    log_W = _tables(chain, size)
    log_second = _log_sum_of_terms(log_W, layers, size)
    scale = math.sqrt(size / (size - 1))
    couplings = [scale * x for x in (chain.jd, chain.lam_left, chain.lam_right)]
    entropy, _ = entropy_array(layers, *couplings)
    log_first = size * layers * float(entropy)
    log_ratio = log_second - 2 * log_first
    # N L factors F and as many P, log-factorials, and the magnitude of what is subtracted.
    error = size * layers * (4 * LOG_ERROR + 4e-16 * abs(float(entropy)))
    error += 4e-16 * (4 * special.gammaln(size + 1) + 2 * abs(log_second) + 4 * abs(log_first))
    method = f"exact sum over {number_of_terms(layers, size)} agreement counts, float64"
    if abs(log_ratio) < 700:
        value = math.exp(log_ratio)
        return Estimate(value, value * math.expm1(error), Tier.ESTIMATED, method)
    large = mpmath.exp(mpmath.mpf(log_ratio))
    return Estimate(large, large * mpmath.expm1(error), Tier.ESTIMATED, method)


def _tables(chain: Chain, n: int) -> list[Array]:
    """Log W of every pattern on the grid of agreeing counts (k_1, ..., k_L)."""
    layers = chain.finite_layers
    scale = math.sqrt(n / (n - 1))
    k = np.arange(n + 1, dtype=float)
    # (1 + rho)/(1 - rho), exact ratios; absent sites (k = 0, or k = N) get any legal value.
    agreeing = np.maximum(k - 1, 0) / np.where(k < n, n - k, 1)
    agreeing[n] = np.inf
    disagreeing = np.maximum(n - k - 1, 0) / np.where(k > 0, k, 1)
    disagreeing[0] = np.inf
    axes = [tuple(-1 if j == m else 1 for j in range(layers)) for m in range(layers)]
    couplings = (scale * chain.jd, scale * chain.lam_left, scale * chain.lam_right)
    tables = log_weights(
        couplings,
        [agreeing.reshape(axis) for axis in axes],
        [disagreeing.reshape(axis) for axis in axes],
    )
    # A pattern of weight 0 (fields of correlation -1, J_D < 0) keeps a finite logarithm, so that
    # 0 sites of it count as a factor 1.
    return [np.maximum(np.broadcast_to(t, (n + 1,) * layers), -1e200) for t in tables]


def _log_sum_of_terms(log_W: list[Array], layers: int, n: int) -> float:
    """Log of the sum over all counts, by blocks with k_1 fixed.

    Flipping s' exchanges k with N - k: only k_1 >= N/2 is visited, and k_1 > N/2 counts twice.
    """
    half = 2 ** (layers - 1)
    log_factorial = special.gammaln(np.arange(n + 1) + 1.0)
    # Patterns with sigma_1 = +1 come first; the agreeing counts of the other layers are sums.
    later = np.array(patterns(layers))[:half, 1:] > 0
    flat = [t.reshape(-1) for t in log_W]
    strides = np.array([(n + 1) ** (layers - 1 - m) for m in range(1, layers)], dtype=np.int64)
    totals = []
    for k in range((n + 1) // 2, n + 1):
        upper, lower = compositions(k, half), compositions(n - k, half)
        lower_weight = -log_factorial[lower].sum(axis=1)
        lower_place = (lower @ later) @ strides
        rows = max(1, _BLOCK // len(lower))
        twice = math.log(2.0) if 2 * k > n else 0.0
        for start in range(0, len(upper), rows):
            block = upper[start : start + rows]
            place = ((block @ later) @ strides + k * (n + 1) ** (layers - 1))[:, None] + lower_place
            term = -log_factorial[block].sum(axis=1)[:, None] + lower_weight
            for m in range(half):
                term += block[:, m, None] * flat[m][place]
                term += lower[:, m] * flat[half + m][place]
            totals.append(float(special.logsumexp(term)) + twice)
    return float(special.logsumexp(totals) + log_factorial[n])


# To any number of digits.

#: Each term is a product of many-digit powers: about ten seconds.
MOST_TERMS_PRECISE = 20_000

Orthant = Callable[[Any, Any, Any, Fraction], Any]


def precise_ratio(chain: Chain, n: int, digits: int = 30, *, tier: Tier | None = None) -> Estimate:
    """Return E[Z^2]/E[Z]^2 with `n` neurons per layer, to `digits` digits.

    Parameters
    ----------
    chain : Chain
        One layer with N up to 20000, or more layers where the sum has at most 20000 terms
        (N = 47 at L = 2, N = 8 at L = 3).
    n : int
        Neurons per layer, at least 2.
    digits : int
        Significant digits wanted.
    tier : Tier, optional
        ``certified`` by balls, or ``verified`` by a second route to F.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> print(precise_ratio(Chain(1, jd="0.1"), 10, digits=25))
    1.941145056928984620931946 ± 6e-25
    """
    wanted = checks.digits(digits)
    layers, size = checked_size(chain, n, MOST_TERMS_PRECISE)

    def route(orthant_: Orthant) -> Callable[[Arithmetic], Any]:
        return lambda arithmetic: _ratio(chain, layers, size, arithmetic, orthant_)

    def conditional(arithmetic: Any, a: Any, b: Any, rho: Fraction) -> Any:
        assert isinstance(arithmetic, MPArithmetic)
        return orthant_conditional(arithmetic, a, b, rho)

    method = f"exact sum over {number_of_terms(layers, size)} agreement counts"
    return evaluate(route(orthant), route(conditional), wanted, method, tier)


def _ratio(chain: Chain, layers: int, n: int, arithmetic: Arithmetic, orthant_: Orthant) -> Any:
    sigma_n = arithmetic.sqrt(arithmetic.number(Fraction(n - 1, n)))
    jd, left, right = (arithmetic.number(x) / sigma_n for x in chain.exact)
    tables: dict[tuple[Any, ...], Any] = {}

    def factor(bonds: tuple[int, ...], sign: int, k: int) -> Any:
        """F of one layer by its products of neighbours in both copies, cached."""
        first, second = sorted([bonds[:2], bonds[2:]])
        rho = Fraction(2 * k - n - 1, n - 1) if sign > 0 else Fraction(n - 1 - 2 * k, n - 1)
        key = (first, second, rho)
        if key not in tables:
            a, b = (jd + left * x + right * y for x, y in (first, second))
            tables[key] = orthant_(arithmetic, a, b, rho)
        return tables[key]

    columns = [(1, *rest) for rest in product((1, -1), repeat=layers - 1)]
    signs = patterns(layers)
    weights: dict[tuple[Signs, tuple[int, ...]], Any] = {}

    def weight(sigma: Signs, k: tuple[int, ...]) -> Any:
        if (sigma, k) not in weights:
            total: Any = 0
            for s in columns:
                copy = tuple(x * y for x, y in zip(s, sigma, strict=True))
                bonds = zip(_bonds(s), _bonds(copy), strict=True)
                total = total + math.prod(
                    factor((*x, *y), sigma[m], k[m]) for m, (x, y) in enumerate(bonds)
                )
            weights[sigma, k] = 2 * total
        return weights[sigma, k]

    second: Any = 0
    for counts in compositions(n, len(signs)).tolist():
        k = tuple(
            sum(c for c, sigma in zip(counts, signs, strict=True) if sigma[m] > 0)
            for m in range(layers)
        )
        ways = math.factorial(n) // math.prod(map(math.factorial, counts))
        second = second + ways * math.prod(
            integer_power(weight(sigma, k), c) for c, sigma in zip(counts, signs, strict=True) if c
        )
    z = transfer_2x2(layers, jd, left, right, arithmetic.P)
    return second / integer_power(z, 2 * n)


def _bonds(s: Signs) -> list[tuple[int, int]]:
    """Products with the previous and the next spin of every layer; 0 beyond the ends."""
    left = site_fields(s, 0, 1, 0)
    right = site_fields(s, 0, 0, 1)
    return list(zip(left, right, strict=True))
