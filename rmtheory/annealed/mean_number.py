r"""The annealed entropy and the exact mean number of fixed points (paper, SM-A).

With h ~ N(0, 1) a site of layer l is satisfied with probability P(v_l),
v_l = J_D + lambda_L s^{l-1} s^l + lambda_R s^l s^{l+1}. A column of L spins therefore contributes

.. math:: z = \sum_{s^1 \ldots s^L} \prod_{l=1}^{L} P(v_l)

to the mean number of fixed points:

.. math:: S_a = \frac1L \log z(J_D, \lambda_L, \lambda_R), \qquad
    E[Z] = z\big(J_D/\sigma_N, \lambda_L/\sigma_N, \lambda_R/\sigma_N\big)^N, \qquad
    \sigma_N^2 = \frac{N-1}{N},

both to any number of digits; for the infinite chain log z/L is the logarithm of the leading
eigenvalue mu_+.

**Four routes to z**, each written for any kind of number (floats, mpmath, balls, sympy
expressions): it needs only the function P and, for the eigenvalues, a square root.

**Limits**, evaluated independently of the full formula. For lambda_L = lambda_R -> infinity only
columns of aligned pairs survive: a -> (1, 0), b -> (1, 0) and K -> [[1, p], [p, 0]], p = P(J_D), so
that z -> 2 (K^{L-2})_{++}: (1/2) log 2, (1/3) log 2, (1/4) log[2(1+p^2)] for L = 2, 3, 4, and
log[1/2 + sqrt(1/4 + p^2)] for the infinite chain. For small lambda

.. math:: S_a = \log 2P(J) + \frac{L-1}{L}\left[r^2\lambda_L\lambda_R
    - \tfrac12 r J(\lambda_L^2+\lambda_R^2)\right] + O(\lambda^4), \qquad r = n(J)/P(J):

uniform lambda lowers the entropy near 0 once r(J) < J, contrary to the paper's statement that S_fp
increases with lambda.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from math import prod
from typing import Any, Literal, get_args

from rmtheory.base import checks
from rmtheory.base.arithmetic import (
    GUARD_DIGITS,
    Arithmetic,
    MPArithmetic,
    evaluate,
)
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.base.estimate import Estimate, Tier, mpf_from

# Four routes to the partition function of one column.

Function = Callable[[Any], Any]
Matrix = tuple[tuple[Any, ...], ...]


def bonds(spins: tuple[int, ...]) -> tuple[int, ...]:
    """Products s^l s^{l+1} along a column, with 0 for the missing neighbours of the two ends."""
    return (0, *(a * b for a, b in pairwise(spins)), 0)


def site_fields(spins: tuple[int, ...], jd: Any, lam_left: Any, lam_right: Any) -> list[Any]:
    """v_l of every layer for one column of spins."""
    return [jd + lam_left * left + lam_right * right for left, right in pairwise(bonds(spins))]


def brute_force(layers: int, jd: Any, lam_left: Any, lam_right: Any, P: Function) -> Any:
    """Sum the weights of all 2^L columns of spins: the definition."""

    @cache
    def weight(left: int, right: int) -> Any:
        """P(v_l) by its two bonds: few values occur, and P is what costs."""
        return P(jd + lam_left * left + lam_right * right)

    total: Any = 0
    for spins in product((-1, 1), repeat=layers):
        total = total + prod(weight(left, right) for left, right in pairwise(bonds(spins)))
    return total


def transfer_4x4(layers: int, jd: Any, lam_left: Any, lam_right: Any, P: Function) -> Any:
    """Paper's recursion on f_k(s^k, s^{k+1}), s^1 = +1 fixed, its 4 x 4 matrix; needs L >= 2.

    States are ordered (--, -+, +-, ++) and H_{ab} = P(J_D - a lambda_L - b lambda_R) as in the
    paper, whose matrix is right (its general f_k, which sums over s^1 as well, counts twice).
    """
    if layers == 1:
        return 2 * P(jd)

    def H(a: int, b: int) -> Any:
        return P(jd - a * lam_left - b * lam_right)

    zero = 0 * jd
    M: Matrix = (
        (H(-1, -1), zero, H(1, -1), zero),
        (H(-1, 1), zero, H(1, 1), zero),
        (zero, H(1, 1), zero, H(-1, 1)),
        (zero, H(1, -1), zero, H(-1, -1)),
    )
    f = (zero, zero, P(jd - lam_right), P(jd + lam_right))
    for _ in range(layers - 2):
        f = tuple(sum(m * x for m, x in zip(row, f, strict=True)) for row in M)
    last = (P(jd + lam_left), P(jd - lam_left), P(jd - lam_left), P(jd + lam_left))
    return 2 * sum(x * y for x, y in zip(f, last, strict=True))


@dataclass(frozen=True)
class GaugeForm:
    """z = 2 a^T K^(L-2) b in the gauge variables tau_l = s^l s^{l+1} = +1, -1 (in this order)."""

    a: tuple[Any, Any]
    K: Matrix
    b: tuple[Any, Any]


def gauge_form(jd: Any, lam_left: Any, lam_right: Any, P: Function) -> GaugeForm:
    """Weights of the first layer (a), of an inner layer (K) and of the last layer (b)."""
    return GaugeForm(
        a=(P(jd + lam_right), P(jd - lam_right)),
        K=(
            (P(jd + lam_left + lam_right), P(jd + lam_left - lam_right)),
            (P(jd - lam_left + lam_right), P(jd - lam_left - lam_right)),
        ),
        b=(P(jd + lam_left), P(jd - lam_left)),
    )


def transfer_2x2(layers: int, jd: Any, lam_left: Any, lam_right: Any, P: Function) -> Any:
    """Gauge-reduced matrix, its power by repeated squaring: every term positive, O(log L)."""
    if layers == 1:
        return 2 * P(jd)
    form = gauge_form(jd, lam_left, lam_right, P)
    (a0, a1), (b0, b1) = form.a, form.b
    if layers == 2:
        return 2 * (a0 * b0 + a1 * b1)
    (k00, k01), (k10, k11) = matrix_power(form.K, layers - 2)
    return 2 * (a0 * (k00 * b0 + k01 * b1) + a1 * (k10 * b0 + k11 * b1))


def matrix_power(K: Matrix, exponent: int) -> Matrix:
    """Power of a 2 x 2 matrix, exponent >= 1, by repeated squaring."""
    result: Matrix | None = None
    while True:
        if exponent & 1:
            result = K if result is None else _times(result, K)
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        K = _times(K, K)


def integer_power(x: Any, exponent: int) -> Any:
    """Power by squaring: a ball around 0 keeps its sign freedom, where exp(n log x) fails."""
    result: Any = 1
    while exponent:
        if exponent & 1:
            result = result * x
        x, exponent = x * x, exponent >> 1
    return result


def _times(X: Matrix, Y: Matrix) -> Matrix:
    return tuple(tuple(sum(X[i][k] * Y[k][j] for k in (0, 1)) for j in (0, 1)) for i in (0, 1))


@dataclass(frozen=True)
class Spectrum:
    r"""Eigenvalues of K: mu_± = (A+D)/2 ± R, R = sqrt(((A-D)/2)^2 + BC)."""

    plus: Any
    minus: Any
    #: R, half their distance.
    radius: Any
    #: A - mu_- and D - mu_-, both positive; the smaller is BC over the larger.
    above: tuple[Any, Any]


def spectrum(K: Matrix, arithmetic: Arithmetic) -> Spectrum:
    """Eigenvalues of the 2 x 2 matrix without subtracting nearly equal numbers."""
    (A, B), (C, D) = K
    half = (A - D) / 2
    radius = arithmetic.sqrt(half * half + B * C)
    plus = (A + D) / 2 + radius
    if arithmetic.negative(half):
        larger = radius - half
        above = (B * C / larger, larger)
    else:
        larger = radius + half
        above = (larger, B * C / larger)
    return Spectrum(plus, (A * D - B * C) / plus, radius, above)


def eigenvalues(layers: int, jd: Any, lam_left: Any, lam_right: Any, arithmetic: Arithmetic) -> Any:
    r"""Closed form, at a cost that does not grow with L.

    K^n = p_n (K - mu_-) + mu_-^n with p_n = (mu_+^n - mu_-^n)/(mu_+ - mu_-): all terms are
    positive but mu_-^n, and where mu_- < 0 its modulus is below 0.382 mu_+, so that nothing
    cancels.
    """
    P = arithmetic.P
    if layers == 1:
        return 2 * P(jd)
    form = gauge_form(jd, lam_left, lam_right, P)
    (a0, a1), (b0, b1) = form.a, form.b
    direct = a0 * b0 + a1 * b1
    if layers == 2:
        return 2 * direct
    n = layers - 2
    mu = spectrum(form.K, arithmetic)
    gap = 2 * mu.radius / mu.plus  # 1 - mu_-/mu_+
    # 1 - (mu_-/mu_+)^n: by expm1 where the eigenvalues are close, by the power where mu_- ~< 0.
    if arithmetic.negative(mu.minus / mu.plus - arithmetic.number(1) / 2):
        numerator = 1 - integer_power(mu.minus / mu.plus, n)
    else:
        numerator = -arithmetic.expm1(n * arithmetic.log1p(-gap))
    p_n = mu.plus ** (n - 1) * numerator / gap
    (_, B), (C, _) = form.K
    inner = a0 * (mu.above[0] * b0 + B * b1) + a1 * (C * b0 + mu.above[1] * b1)
    return 2 * (p_n * inner + integer_power(mu.minus, n) * direct)


def log_leading_eigenvalue(jd: Any, lam_left: Any, lam_right: Any, arithmetic: Arithmetic) -> Any:
    """S_a of the infinite chain: log mu_+."""
    form = gauge_form(jd, lam_left, lam_right, arithmetic.P)
    return arithmetic.log(spectrum(form.K, arithmetic).plus)


# Entropy and mean number of fixed points.

Route = Literal["eigenvalues", "transfer-2x2", "transfer-4x4", "brute-force"]

#: Brute force visits 2^L columns; the 4 x 4 recursion takes L steps.
_MOST_LAYERS: dict[Route, int] = {"brute-force": 20, "transfer-4x4": 100_000}

_METHOD: dict[Route, str] = {
    "eigenvalues": "closed form by eigenvalues",
    "transfer-2x2": "2x2 transfer matrix",
    "transfer-4x4": "4x4 transfer matrix",
    "brute-force": "sum over all columns",
}


def entropy(
    chain: Chain,
    digits: int = 15,
    *,
    route: Route = "eigenvalues",
    tier: Tier | None = None,
) -> Estimate:
    r"""Annealed entropy per neuron of the fixed points, S_a = (1/L) log z.

    Parameters
    ----------
    chain : Chain
        The model; any number of layers, infinity included.
    digits : int
        Significant digits wanted.
    route : {"eigenvalues", "transfer-2x2", "transfer-4x4", "brute-force"}
        Which of the four equivalent expressions to evaluate.
    tier : Tier, optional
        ``certified`` by balls (needs python-flint; the default where it is installed) or
        ``verified`` by two routes in mpmath.

    Examples
    --------
    >>> import rmtheory as rt
    >>> print(rt.entropy(rt.Chain(2, jd="0.3", lam_left="0.7", lam_right="0.4"), digits=30))
    0.232706065291064486117149244354 ± 6e-31
    """
    digits = checks.digits(digits)
    _check_route(chain, route)
    if math.isinf(chain.layers):
        method, second = "log of the leading eigenvalue", None
    else:
        method = _METHOD[route]
        second = _per_layer(chain, "eigenvalues" if route == "transfer-2x2" else "transfer-2x2")
    return evaluate(_per_layer(chain, route), second, digits, method, tier)


def mean_count(chain: Chain, n: int, digits: int = 15, *, tier: Tier | None = None) -> Estimate:
    """Mean number of fixed points over dense Gaussian couplings, `n` neurons per layer.

    It is z^N with (J_D, lambda)/sigma_N, sigma_N^2 = (N-1)/N, exactly and for every N >= 2.

    Examples
    --------
    >>> import rmtheory as rt
    >>> print(rt.mean_count(rt.Chain(1, 0.4), n=16, digits=6))
    85.4494 ± 6e-5
    """
    return _mean(chain, n, digits, tier, logarithm=False)


def log_mean_count(chain: Chain, n: int, digits: int = 15, *, tier: Tier | None = None) -> Estimate:
    """Logarithm of the mean number of fixed points with `n` neurons per layer, N log z(sigma_N)."""
    return _mean(chain, n, digits, tier, logarithm=True)


def log_partition(
    chain: Chain, arithmetic: Arithmetic, route: Route = "eigenvalues", n: int | None = None
) -> Any:
    """Return log z (log mu_+ if L is infinite) in the given arithmetic.

    With `n` neurons per layer the fields have variance (n-1)/n instead of 1: the couplings are
    divided by sigma_n = sqrt((n-1)/n).
    """
    couplings = [arithmetic.number(x) for x in chain.exact]
    if n is not None:
        sigma = arithmetic.sqrt(arithmetic.number(n - 1) / n)
        couplings = [x / sigma for x in couplings]
    jd, lam_left, lam_right = couplings
    if math.isinf(chain.layers):
        return log_leading_eigenvalue(jd, lam_left, lam_right, arithmetic)
    layers = chain.finite_layers
    if route == "eigenvalues":
        return arithmetic.log(eigenvalues(layers, jd, lam_left, lam_right, arithmetic))
    summation = {
        "brute-force": brute_force,
        "transfer-4x4": transfer_4x4,
        "transfer-2x2": transfer_2x2,
    }[route]
    return arithmetic.log(summation(layers, jd, lam_left, lam_right, arithmetic.P))


def _mean(chain: Chain, n: int, digits: int, tier: Tier | None, logarithm: bool) -> Estimate:
    digits = checks.digits(digits)
    size = checks.integer("n", n, 2, 10**15)
    if math.isinf(chain.layers):
        raise InvalidInputError("layers", "inf", "finite for a mean count")

    def quantity(route: Route) -> Callable[[Arithmetic], Any]:
        def formula(arithmetic: Arithmetic) -> Any:
            log_mean = size * log_partition(chain, arithmetic, route, size)
            return log_mean if logarithm else arithmetic.exp(log_mean)

        return formula

    method = "closed form by eigenvalues at finite N"
    return evaluate(quantity("eigenvalues"), quantity("transfer-2x2"), digits, method, tier)


def _per_layer(chain: Chain, route: Route) -> Callable[[Arithmetic], Any]:
    def formula(arithmetic: Arithmetic) -> Any:
        log_z = log_partition(chain, arithmetic, route)
        return log_z if math.isinf(chain.layers) else log_z / chain.finite_layers

    return formula


def _check_route(chain: Chain, route: Route) -> None:
    if route not in get_args(Route):
        raise InvalidInputError("route", route, "one of " + ", ".join(get_args(Route)))
    if math.isinf(chain.layers):
        if route != "eigenvalues":
            raise InvalidInputError("route", route, "eigenvalues for infinitely many layers")
    elif chain.layers > _MOST_LAYERS.get(route, math.inf):
        raise InvalidInputError(
            "layers", chain.layers, f"at most {_MOST_LAYERS[route]} with route {route}"
        )


# Limits of large and of small lambda.


def large_lam_entropy(
    layers: int | float, jd: checks.RealLike, digits: int = 15, *, tier: Tier | None = None
) -> Estimate:
    """Limit of S_a for uniform lambda -> infinity, L >= 2.

    Examples
    --------
    >>> print(large_lam_entropy(2, jd=0.25, digits=10))  # (1/2) log 2 for all J_D
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
