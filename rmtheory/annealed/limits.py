r"""Limits and expansions of the annealed entropy, evaluated independently of the full formula.

For lambda_L = lambda_R -> infinity only columns of aligned pairs survive: a -> (1, 0), b -> (1, 0)
and K -> [[1, p], [p, 0]], p = P(J_D), so that z -> 2 (K^{L-2})_{++}:
(1/2) log 2, (1/3) log 2, (1/4) log[2(1+p^2)] for L = 2, 3, 4, and log[1/2 + sqrt(1/4 + p^2)] for
the infinite chain. For small lambda

.. math:: S_a = \log 2P(J) + \frac{L-1}{L}\left[r^2\lambda_L\lambda_R
    - \tfrac12 r J(\lambda_L^2+\lambda_R^2)\right] + O(\lambda^4), \qquad r = n(J)/P(J):

uniform lambda lowers the entropy near 0 once r(J) < J, contrary to the paper's statement that S_fp
increases with lambda.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rmtheory import checks
from rmtheory.annealed.routes import matrix_power
from rmtheory.arithmetic import GUARD_DIGITS, Arithmetic, MPArithmetic, evaluate
from rmtheory.errors import InvalidInputError, NotConvergedError
from rmtheory.estimate import Estimate, Tier, mpf_from


def large_lam_entropy(
    layers: int | float, jd: checks.RealLike, digits: int = 15, *, tier: Tier | None = None
) -> Estimate:
    """Limit of S_a for uniform lambda -> infinity, L >= 2.

    Examples
    --------
    >>> print(large_lam_entropy(2, jd=0.25, digits=10))  # (1/2) log 2 whatever J_D
    0.3465735903 ± 6e-11
    """
    count = checks.layers(layers)
    if count == 1:
        raise InvalidInputError("layers", layers, "at least 2 for the limit of large lam")
    J = checks.exact_real("jd", jd)
    digits = checks.digits(digits)

    def formula(numbers: Arithmetic) -> Any:
        p = numbers.P(numbers.number(J))
        if math.isinf(count):
            half = numbers.number(Fraction(1, 2))
            return numbers.log(half + numbers.sqrt(half * half + p * p))
        one = numbers.number(1)
        n = int(count) - 2
        z = 2 * (matrix_power(((one, p), (p, 0 * p)), n)[0][0] if n else one)
        return numbers.log(z) / int(count)

    return evaluate(formula, None, digits, "limit of large lam", tier)


@dataclass(frozen=True)
class SmallLam:
    """S_a = constant + product lam_left lam_right + square (lam_left^2 + lam_right^2) + ..."""

    constant: Estimate
    product: Estimate
    square: Estimate


def small_lam_expansion(
    layers: int | float, jd: checks.RealLike, digits: int = 15, *, tier: Tier | None = None
) -> SmallLam:
    """Coefficients of the expansion of S_a to second order in lambda."""
    count = checks.layers(layers)
    J = checks.exact_real("jd", jd)
    digits = checks.digits(digits)
    weight = Fraction(1) if math.isinf(count) else Fraction(int(count) - 1, int(count))

    def constant(numbers: Arithmetic) -> Any:
        return numbers.log(2 * numbers.P(numbers.number(J)))

    def product(numbers: Arithmetic) -> Any:
        return numbers.number(weight) * _r(numbers, J) ** 2

    def square(numbers: Arithmetic) -> Any:
        return -numbers.number(weight * J / 2) * _r(numbers, J)

    def coefficient(formula: Any) -> Estimate:
        return evaluate(formula, None, digits, "expansion in small lam", tier)

    return SmallLam(coefficient(constant), coefficient(product), coefficient(square))


def lam_turning_jd(digits: int = 15) -> Estimate:
    """J_D above which a small uniform lambda lowers the entropy: the root of n(J) = J P(J).

    Examples
    --------
    >>> print(lam_turning_jd(digits=12))
    0.506054468989 ± 6e-13
    """
    digits = checks.digits(digits)
    numbers = MPArithmetic(digits + GUARD_DIGITS)

    def excess(J: Any) -> Any:
        return numbers.n(J) - J * numbers.P(J)

    root = numbers.context.findroot(excess, (Fraction(1, 2), Fraction(51, 100)), solver="anderson")
    step = numbers.context.mpf(10) ** (-digits - 2)
    if not excess(root - step) > 0 > excess(root + step):
        raise NotConvergedError(f"no sign change of n(J) - J P(J) around {root}")
    method = "root of n(J) = J P(J), sign change checked"
    return Estimate(mpf_from(root), mpf_from(step), Tier.VERIFIED, method).rounded(digits)


def _r(numbers: Arithmetic, J: Fraction) -> Any:
    x = numbers.number(J)
    return numbers.n(x) / numbers.P(x)
