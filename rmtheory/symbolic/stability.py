r"""Elimination of qhat, and the stability of the saddle q = qhat = 0 (paper, SM-A).

To second order L S_rs = log z + Q(q, qhat) with the quadratic form of
:func:`rmtheory.symbolic.replica.quadratic_form`; it is concave in qhat, so the stationary qhat is a
linear function of q and L S_rs = log z + (1/4) q^T M q. The saddle is stable where M > 0. For any L

.. math:: M = (1-D)^T C^{-1} (1-D) - E,\qquad C_{lm} = \langle s_l s_m\rangle^2,\quad
    D_{lm} = \langle s_l s_m r_m\rangle^2,\quad
    E_{lm} = \langle s_l s_m r_l r_m\rangle^2\ (l\ne m),\quad E_{ll} = \langle v_l r_l\rangle^2 .

For display and code the form is written with averages over the annealed measure: each coefficient
of the expanded form is minus the square of an average such as <tau r> = w_+ r_+ - w_- r_-.
Factoring brings the averages back, and restoring w_- = 1 - w_+ makes them readable and free of
cancellation when evaluated.

The formulas that the paper prints are transcribed term by term at the end, to be compared with the
derived ones; no derivation uses them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import sympy as sp

from rmtheory.symbolic.definitions import (
    Expr,
    H,
    J,
    Matrix,
    P,
    lam,
    lambda_L,
    lambda_R,
    n,
    q,
    qhat,
)
from rmtheory.symbolic.replica import (
    Signs,
    chain_measure,
    order_parameters,
    quadratic_form,
    uniform,
)

# Elimination of qhat.


@dataclass(frozen=True)
class Eliminated:
    """Stationary qhat, and the quadratic form at it."""

    qhat: tuple[Expr, ...]
    form: Expr


@cache
def eliminate(layers: int) -> Eliminated:
    r"""Solve dQ/dqhat_l = 0, linear, for all layers; return the solution and Q there.

    Examples
    --------
    >>> eliminate(1).qhat
    (-q_1*(r_1 - 1)*(r_1 + 1),)
    """
    at, form = order_parameters(layers), quadratic_form(layers)
    equations = [sp.diff(form, x) for x in at.qhat]
    (solution,) = sp.linsolve(equations, at.qhat)
    solution = tuple(sp.factor(x) for x in solution)
    value = form.subs(dict(zip(at.qhat, solution, strict=True)))
    return Eliminated(solution, value)


@cache
def eliminate_uniform(layers: int) -> Eliminated:
    """Set q_l = q, qhat_l = qhat first, as the paper does, then solve the one equation."""
    form = sp.expand(quadratic_form(layers).subs(uniform(layers)))
    (solution,) = sp.solve(sp.diff(form, qhat), qhat)
    return Eliminated((sp.factor(solution),), form.subs(qhat, solution))


@dataclass(frozen=True)
class GeneralMatrices:
    """C, D and E of the formula for any L."""

    C: Matrix
    D: Matrix
    E: Matrix

    def form(self, layers: int) -> Expr:
        """(1/2) qhat.q - (1/2) [(1/2) qhat C qhat + qhat D q + (1/2) q E q]."""
        at = order_parameters(layers)
        x, y = sp.Matrix(at.q), sp.Matrix(at.qhat)
        bracket = y.T * self.C * y / 2 + y.T * self.D * x + x.T * self.E * x / 2
        return ((y.T * x - bracket) / 2)[0, 0]

    def M(self) -> Matrix:
        """(1 - D)^T C^-1 (1 - D) - E."""
        rest = sp.eye(self.C.rows) - self.D
        return rest.T * self.C.inv() * rest - self.E


@cache
def general_matrices(layers: int) -> GeneralMatrices:
    """Averages over the annealed chain measure, for any L (second moment and RS stability)."""
    measure = chain_measure(layers)

    def r(layer: int, taus: Signs) -> Expr:
        return measure.ratio[measure.key(layer, taus)]

    def field(layer: int, taus: Signs) -> Expr:
        return measure.field[measure.key(layer, taus)]

    def squared(k: int, m: int, kind: str) -> Expr:
        def observable(spins: Signs, taus: Signs) -> Expr:
            if kind == "E" and k == m:
                return field(k, taus) * r(k, taus)
            pair = sp.Integer(spins[k] * spins[m])
            if kind == "C":
                return pair
            return pair * r(m, taus) * (r(k, taus) if kind == "E" else 1)

        return measure.average(observable) ** 2

    def matrix(kind: str) -> Matrix:
        return sp.Matrix(layers, layers, lambda k, m: squared(k, m, kind))

    return GeneralMatrices(matrix("C"), matrix("D"), matrix("E"))


def in_couplings(expression: Expr, layers: int, *, same_lambda: bool = False) -> Expr:
    """Put in what the symbols of the measure stand for: P, n and the couplings."""
    result = expression.subs(chain_measure(layers).values())
    return result.subs({lambda_L: lam, lambda_R: lam}) if same_lambda else result


def coefficient_L1() -> Expr:
    """Coefficient of q^2 in S_rs for L = 1, in r = n(J)/P(J): (1/4)[(1-r^2)^2 - J^2 r^2].

    Examples
    --------
    >>> coefficient_L1()
    (-J_D*r + r**2 - 1)*(J_D*r + r**2 - 1)/4
    """
    measure = chain_measure(1)
    form = eliminate_uniform(1).form.subs({measure.field[0, ()]: J})
    return sp.factor((form / q**2).subs(measure.ratio[0, ()], sp.Symbol("r", positive=True)))


def coefficient(layers: int) -> Expr:
    """Coefficient of q^2 in S_rs = (1/L) log z + coefficient q^2, uniform q, L = 1 or 2.

    For L = 2 lambda_L = lambda_R = lambda: the two layers are equivalent only then.
    """
    form = eliminate_uniform(layers).form
    return in_couplings(form, layers, same_lambda=True) / (layers * q**2)


# The form in averages over the annealed measure.

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


# The formulas printed in the paper (SM-A).


def second_order_L1() -> Expr:
    """S_rs^(2) of L = 1 before the elimination of qhat."""
    density = sp.exp(-(J**2))
    return (
        qhat * (q - 1) / 2
        + sp.log(2 * H(-J))
        + qhat / 2
        - qhat**2 / 4
        - qhat * q * density / (4 * sp.pi * H(-J) ** 2)
        - q**2 * J**2 * density / (8 * sp.pi * H(-J) ** 2)
    )


def saddle_L1() -> Expr:
    """Value of qhat at which S_rs^(2) of L = 1 is extremal (a maximum; printed: a minimum)."""
    return q * (-2 * sp.exp(-(J**2)) + 4 * sp.pi * H(-J) ** 2) / (4 * sp.pi * H(-J) ** 2)


def eliminated_L1(*, corrected: bool = True) -> Expr:
    """S_rs^(2) of L = 1 after the elimination of qhat.

    As printed the whole bracket lacks its factor q^2 (erratum 10); `corrected` restores it.
    """
    bracket = (
        sp.Rational(1, 4)
        + sp.exp(-2 * J**2) / (16 * sp.pi**2 * H(-J) ** 4)
        - (2 + J**2) * sp.exp(-(J**2)) / (8 * sp.pi * H(-J) ** 2)
    )
    return sp.log(2 * H(-J)) + (q**2 if corrected else 1) * bracket


def A_terms() -> tuple[Expr, ...]:
    """Return the 34 printed terms of A(J_D, lambda), L = 2, in their printed order."""
    H_minus, H_plus = H(-J - lam), H(lam - J)
    return (
        2 * sp.pi**2 * H_minus**8,
        8 * sp.pi**2 * H_plus**2 * H_minus**6,
        -4 * sp.exp(-((J + lam) ** 2)) * sp.pi * H_minus**6,
        -2 * sp.exp(-((J + lam) ** 2)) * J**2 * sp.pi * H_minus**6,
        -2 * sp.exp(-((J + lam) ** 2)) * lam**2 * sp.pi * H_minus**6,
        -4 * sp.exp(-((J + lam) ** 2)) * J * lam * sp.pi * H_minus**6,
        -4
        * sp.exp(3 * J**2 + 8 * lam * J + 3 * lam**2 - 4 * (J + lam) ** 2)
        * J**2
        * sp.pi
        * H_plus
        * H_minus**5,
        4
        * sp.exp(3 * J**2 + 8 * lam * J + 3 * lam**2 - 4 * (J + lam) ** 2)
        * lam**2
        * sp.pi
        * H_plus
        * H_minus**5,
        sp.exp(-2 * (J + lam) ** 2) * H_minus**4,
        2 * sp.exp(4 * J * lam - 2 * (J + lam) ** 2) * H_minus**4,
        -sp.exp(8 * J * lam - 2 * (J + lam) ** 2) * H_minus**4,
        12 * sp.pi**2 * H_plus**4 * H_minus**4,
        -8 * sp.exp(-((J + lam) ** 2)) * sp.pi * H_plus**2 * H_minus**4,
        -4 * sp.exp(4 * J * lam - (J + lam) ** 2) * sp.pi * H_plus**2 * H_minus**4,
        -2 * sp.exp(4 * J * lam - (J + lam) ** 2) * J**2 * sp.pi * H_plus**2 * H_minus**4,
        -2 * sp.exp(4 * J * lam - (J + lam) ** 2) * lam**2 * sp.pi * H_plus**2 * H_minus**4,
        4 * sp.exp(4 * J * lam - (J + lam) ** 2) * J * lam * sp.pi * H_plus**2 * H_minus**4,
        8 * sp.pi**2 * H_plus**6 * H_minus**2,
        -4 * sp.exp(-((J + lam) ** 2)) * sp.pi * H_plus**4 * H_minus**2,
        -8 * sp.exp(4 * J * lam - (J + lam) ** 2) * sp.pi * H_plus**4 * H_minus**2,
        -2 * sp.exp(-((J + lam) ** 2)) * J**2 * sp.pi * H_plus**4 * H_minus**2,
        -2 * sp.exp(-((J + lam) ** 2)) * lam**2 * sp.pi * H_plus**4 * H_minus**2,
        -4 * sp.exp(-((J + lam) ** 2)) * J * lam * sp.pi * H_plus**4 * H_minus**2,
        4 * sp.exp(2 * (J**2 + 4 * lam * J + lam**2) - 4 * (J + lam) ** 2) * H_plus**2 * H_minus**2,
        -4
        * sp.exp(3 * J**2 + 8 * lam * J + 3 * lam**2 - 4 * (J + lam) ** 2)
        * J**2
        * sp.pi
        * H_plus**5
        * H_minus,
        4
        * sp.exp(3 * J**2 + 8 * lam * J + 3 * lam**2 - 4 * (J + lam) ** 2)
        * lam**2
        * sp.pi
        * H_plus**5
        * H_minus,
        2 * sp.pi**2 * H_plus**8,
        -4 * sp.exp(J**2 + 6 * lam * J + lam**2 - 2 * (J + lam) ** 2) * sp.pi * H_plus**6,
        -2 * sp.exp(J**2 + 6 * lam * J + lam**2 - 2 * (J + lam) ** 2) * J**2 * sp.pi * H_plus**6,
        -2 * sp.exp(J**2 + 6 * lam * J + lam**2 - 2 * (J + lam) ** 2) * lam**2 * sp.pi * H_plus**6,
        4 * sp.exp(J**2 + 6 * lam * J + lam**2 - 2 * (J + lam) ** 2) * J * lam * sp.pi * H_plus**6,
        -sp.exp(-2 * (J + lam) ** 2) * H_plus**4,
        2 * sp.exp(4 * J * lam - 2 * (J + lam) ** 2) * H_plus**4,
        sp.exp(8 * J * lam - 2 * (J + lam) ** 2) * H_plus**4,
    )


def A() -> Expr:
    """Numerator A(J_D, lambda) of the coefficient of q^2 for L = 2."""
    return sp.Add(*A_terms())


def B() -> Expr:
    """Denominator B(J_D, lambda) of the coefficient of q^2 for L = 2."""
    H_minus, H_plus = H(-J - lam), H(lam - J)
    return 16 * sp.pi**2 * (H_minus**2 + H_plus**2) ** 2 * (H_minus**4 + H_plus**4)


def eliminated_L2() -> Expr:
    """S_rs^(2) of L = 2, lambda_L = lambda_R = lambda, after the elimination of qhat."""
    weights = H(-J - lam) ** 2 + H(-J + lam) ** 2
    return (sp.log(2) + sp.log(weights)) / 2 + A() / B() * q**2
