r"""The second-order form written with averages over the annealed measure, for display and code.

Each coefficient of the expanded form is minus the square of an average such as
<tau r> = w_+ r_+ - w_- r_-. Factoring brings the averages back, and restoring w_- = 1 - w_+ makes
them readable, free of cancellation when evaluated, and recognisable.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import sympy as sp

from rmtheory.symbolic.definitions import Expr, J, Matrix, P, lam, n, q, qhat
from rmtheory.symbolic.expansion import quadratic_form
from rmtheory.symbolic.measure import chain_measure
from rmtheory.symbolic.replica import order_parameters, uniform
from rmtheory.symbolic.stability import general_matrices

#: The two weights of two layers, and the ratios where the layers share them.
w_plus, w_minus = sp.Symbol("w_+", positive=True), sp.Symbol("w_-", positive=True)
r_plus, r_minus = sp.Symbol("r_+", positive=True), sp.Symbol("r_-", positive=True)


def with_both_weights(expression: Expr) -> Expr:
    """Write every sum linear in w_+ as w_+ (...) + w_- (...), with w_- = 1 - w_+.

    Examples
    --------
    >>> with_both_weights((2 * w_plus - 1) ** 2)
    (w_+ - w_-)**2
    """

    def both(sum_: Expr) -> Expr:
        polynomial = sp.Poly(sum_, w_plus)
        rest, slope = polynomial.coeff_monomial(1), polynomial.coeff_monomial(w_plus)
        return sp.expand((rest + slope) * w_plus) + sp.expand(rest * w_minus)

    return expression.replace(
        lambda e: e.is_Add and e.is_polynomial(w_plus) and sp.degree(e, w_plus) == 1, both
    )


def factored(form: Expr, variables: tuple[Expr, ...]) -> Expr:
    """Write a polynomial in `variables` with each coefficient factored.

    Examples
    --------
    >>> x, y = sp.symbols("x y")
    >>> factored(sp.expand((1 + y) ** 2 * x), (x,))
    x*(y + 1)**2
    """
    polynomial = sp.Poly(form, *variables)
    return sp.Add(
        *(
            sp.factor(coefficient) * sp.Mul(*(x**k for x, k in zip(variables, at, strict=True)))
            for at, coefficient in polynomial.terms()
        )
    )


@cache
def form_in_averages(layers: int) -> Expr:
    """Return the quadratic form as (1/2) sum q_l qhat_l minus squares of averages, L = 1 or 2."""
    at = order_parameters(layers)
    energy = sp.Add(*(x * y for x, y in zip(at.q, at.qhat, strict=True))) / 2
    squares = factored(sp.expand(quadratic_form(layers) - energy), (*at.q, *at.qhat))
    return energy + with_both_weights(squares)


@dataclass(frozen=True)
class UniformForm:
    """Uniform form a qhat^2 + b qhat q + c q^2, its stationary qhat and coefficient of q^2.

    `coefficient` is that of S_rs, per layer: (c - b^2/(4a))/L.
    """

    qhat: Expr
    coefficient: Expr


@cache
def uniform_in_averages(layers: int) -> UniformForm:
    """Eliminate qhat from the uniform form, the squares of averages kept.

    For two layers lambda_L = lambda_R: only then are the layers equivalent.
    """
    form = form_in_averages(layers).subs(shared_names(layers)).subs(uniform(layers))
    parts: dict[tuple[int, int], list[Expr]] = {}
    for term in sp.Add.make_args(form):
        powers = term.as_powers_dict()
        at = int(powers[qhat]), int(powers[q])
        parts.setdefault(at, []).append(term / qhat ** at[0] / q ** at[1])
    minus_a = sp.Add(*(-x for x in parts[2, 0]))
    b, c = sp.Add(*parts[1, 1]), sp.Add(*parts[0, 2])
    # Common numerical factors cancel against each other: (1/2 - r^2/2)^2 is (1 - r^2)^2/4.
    top, bottom = sp.factor_terms(b), sp.factor_terms(minus_a)
    return UniformForm(q * top / (2 * bottom), c / layers + top**2 / (4 * layers * bottom))


def shared_names(layers: int) -> dict[Expr, Expr]:
    """Return the names v -> J_D (+- lambda), r -> r (r_+, r_-), the same for all layers."""
    measure = chain_measure(layers)
    if layers == 1:
        return {measure.field[0, ()]: J, measure.ratio[0, ()]: sp.Symbol("r", positive=True)}
    names: dict[Expr, Expr] = {}
    for layer in (0, 1):
        for sign, r in ((1, r_plus), (-1, r_minus)):
            names[measure.ratio[layer, (sign,)]] = r
            names[measure.field[layer, (sign,)]] = J + sign * lam
    return names


def shared_values(layers: int) -> dict[Expr, Expr]:
    """What w_+-, r and r_+- stand for where the layers share them."""
    if layers == 1:
        return {sp.Symbol("r", positive=True): n(J) / P(J)}
    up, down = P(J + lam), P(J - lam)
    total = up**2 + down**2
    return {
        w_plus: up**2 / total,
        w_minus: down**2 / total,
        r_plus: n(J + lam) / up,
        r_minus: n(J - lam) / down,
    }


@dataclass(frozen=True)
class MatricesInAverages:
    """C, D, E for two layers in averages, and M = (1-D)^T C^-1 (1-D) - E."""

    C: Matrix
    D: Matrix
    E: Matrix
    M: Matrix


@cache
def matrices_in_averages() -> MatricesInAverages:
    """Matrices of two layers; det C = 8 w_+ w_- (...) is factored, so that nothing cancels."""
    general = general_matrices(2)

    def displayed(x: Expr) -> Expr:
        return with_both_weights(sp.factor(x))

    C, D, E = (x.applyfunc(displayed) for x in (general.C, general.D, general.E))
    inverse = C.adjugate() / displayed(general.C.det())
    rest = sp.eye(2) - D
    return MatricesInAverages(C, D, E, rest.T * inverse * rest - E)


def values_L2() -> dict[Expr, Expr]:
    """What the symbols of two layers stand for, w_- included."""
    values = chain_measure(2).values()
    top, bottom = sp.fraction(values[w_plus])
    return values | {w_minus: (bottom - top) / bottom}
