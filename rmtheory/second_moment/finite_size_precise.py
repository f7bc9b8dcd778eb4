r"""E[Z^2]/E[Z]^2 at finite N to any number of digits, certified by balls where flint is there.

The sum is that of :mod:`rmtheory.second_moment.finite_size`, term by term in exact counts and
exact correlations; only F is a quadrature, rigorous in ball arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

from rmtheory import checks
from rmtheory.annealed.routes import integer_power, transfer_2x2
from rmtheory.arithmetic import Arithmetic, MPArithmetic, evaluate
from rmtheory.chain import Chain
from rmtheory.estimate import Estimate, Tier
from rmtheory.second_moment.bivariate_precise import orthant, orthant_conditional
from rmtheory.second_moment.counts import checked_size, compositions, number_of_terms
from rmtheory.second_moment.patterns import Signs, patterns, site_fields

#: Each term is a product of many-digit powers: about ten seconds.
MOST_TERMS = 20_000

Orthant = Callable[[Any, Any, Any, Fraction], Any]


def precise_ratio(chain: Chain, n: int, digits: int = 30, *, tier: Tier | None = None) -> Estimate:
    """Return E[Z^2]/E[Z]^2 with `n` neurons a layer, to `digits` digits.

    Parameters
    ----------
    chain : Chain
        One layer with N up to 20000, or more layers where the sum has at most 20000 terms
        (N = 47 at L = 2, N = 8 at L = 3).
    n : int
        Neurons a layer, at least 2.
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
    layers, size = checked_size(chain, n, MOST_TERMS)

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
