r"""Four routes to the partition function of one site, z = E[N_fp]^(1/N) (paper, SM-A).

With h ~ N(0, 1) a site of layer l is satisfied with probability P(v_l),
v_l = J_D + lambda_L s^{l-1} s^l + lambda_R s^l s^{l+1}, so

.. math:: z = \sum_{s^1 \ldots s^L} \prod_{l=1}^{L} P(v_l) .

Each route is written for any kind of number (floats, mpmath, balls, sympy expressions): it needs
only the function P and, for the eigenvalues, a square root.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product
from math import prod
from typing import Any

from rmtheory.base.arithmetic import Arithmetic

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
