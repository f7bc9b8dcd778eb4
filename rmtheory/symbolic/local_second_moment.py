r"""The functional at y = 1 and y = 2, where its integrals are done exactly.

At y = 2 the square of zeta is expanded and integrated term by term:
E e^{k h} = e^{qhat k^2/2} and E_x[P((a + s x)/sigma) P((b + s' x)/sigma)] = F(a, b; s s' q1), the
probability that two unit Gaussians of correlation s s' q1 exceed -a and -b. The result,

.. math:: y\phi = \log\sum_\sigma e^{\hat q\cdot\sigma} W_\sigma - q_1\sum_l\hat q_l, \qquad
    W_\sigma = \sum_s\prod_l F(v_l(s), v_l(s\sigma); \sigma_l q_1),

is the exponent of E[Z^2] at overlap q1 before its minimisation over the fields, which are qhat:
that fixes the factor y of the paper's functional (erratum 14).
"""

from __future__ import annotations

from functools import cache
from itertools import product

import sympy as sp

from rmtheory.symbolic.definitions import Expr, J, P, stabilities
from rmtheory.symbolic.exact import identical
from rmtheory.symbolic.local_functional import (
    conjugates,
    evaluated,
    fields,
    free_entropy,
    log_norm,
    q1,
    same,
    y,
    zeta,
)


class F(sp.Function):  # type: ignore[misc]
    """F(a, b, rho): probability that unit Gaussians of correlation rho exceed -a and -b."""

    nargs = 3

    @classmethod
    def eval(cls, a: Expr, b: Expr, rho: Expr) -> Expr | None:
        """Order the two arguments, in which F is symmetric."""
        first, second = sorted((a, b), key=sp.default_sort_key)
        return None if (first, second) == (a, b) else cls(first, second, rho)


@cache
def joint_density() -> tuple[Expr, Expr]:
    r"""Density of two fields h = x + sigma xi that share x ~ N(0, q1): integrated, and expected.

    The integral over x is that of e^{-A x^2/2 + B x}; the second form is the bivariate normal
    density of unit variances and correlation q1.
    """
    one, two, x, B = sp.symbols("h_1 h_2 x B", real=True)
    A = sp.Symbol("A", positive=True)
    integral = sp.simplify(sp.integrate(sp.exp(-A * x**2 / 2 + B * x), (x, -sp.oo, sp.oo)))
    noise = 1 - q1
    exponent = -((one - x) ** 2 + (two - x) ** 2) / (2 * noise) - x**2 / (2 * q1)
    powers = sp.Poly(sp.expand(exponent), x)
    norm = sp.sqrt(2 * sp.pi) ** 3 * noise * sp.sqrt(q1)
    shared = integral.subs(
        {A: sp.factor(-2 * powers.coeff_monomial(x**2)), B: powers.coeff_monomial(x)}
    )
    integrated = shared * sp.exp(powers.coeff_monomial(1)) / norm
    quadratic = (one**2 - 2 * q1 * one * two + two**2) / (1 - q1**2)
    return integrated, sp.exp(-quadratic / 2) / (2 * sp.pi * sp.sqrt(1 - q1**2))


def same_density() -> bool:
    """Whether the two forms of :func:`joint_density` agree; as both are positive, their squares."""

    def rational(density: Expr) -> Expr:
        in_odds = (density**2).subs(odds())
        return in_odds.replace(sp.exp, lambda x: sp.exp(sp.expand(sp.cancel(x))))

    left, right = joint_density()
    return identical(rational(left), rational(right))


def odds() -> dict[Expr, Expr]:
    """Substitution q1 = (a - b)/(a + b): what stands under a logarithm or root is positive."""
    a, b = sp.symbols("a b", positive=True)
    return {q1: (a - b) / (a + b)}


def same_exponential(left: Expr, right: Expr) -> bool:
    """Whether e^left and e^right are identical, hence left and right; frees sums from logs."""
    return same(sp.exp(sp.expand(left)), sp.exp(sp.expand(right)))


def same_at_saddle(left: Expr, right: Expr) -> bool:
    """Whether two sums of logarithms of q1 and of the F's are identical."""
    names = {F(J, J, sign * q1): sp.Symbol(f"F_{sign}", positive=True) for sign in (1, -1)}
    return identical(left.xreplace(names).subs(odds()), right.xreplace(names).subs(odds()))


def _linear(argument: Expr, x: tuple[Expr, ...]) -> tuple[int, int, Expr]:
    """Return the layer, the spin s and the stability v of P((v + s x_l)/sigma)."""
    scaled = sp.expand(argument * sp.sqrt(1 - q1))
    (layer,) = (k for k, each in enumerate(x) if scaled.has(each))
    spin = scaled.coeff(x[layer])
    return layer, int(spin), sp.expand(scaled - spin * x[layer])


@cache
def integrated_power(layers: int, power: int) -> Expr:
    """Integrate zeta^power over all fields, term by term, for power 1 or 2.

    E_x[P((v + s x)/sigma)] is P(v): one field x + sigma xi is a unit Gaussian.

    Examples
    --------
    >>> integrated_power(1, 1)
    2*exp(qhat_1/2)*P(J_D)
    """
    tilts, x = fields(layers)
    k = conjugates(layers)
    total = []
    for term in sp.Add.make_args(sp.expand(zeta(layers) ** power)):
        exponent, coefficient = sp.S.Zero, sp.S.One
        found: list[list[tuple[int, Expr]]] = [[] for _ in x]
        for factor in sp.Mul.make_args(term):
            base, times = factor.as_base_exp()
            if isinstance(factor, sp.exp):
                exponent += factor.exp
            elif isinstance(base, P):
                layer, spin, v = _linear(base.args[0], x)
                found[layer] += [(spin, v)] * int(times)
            else:
                coefficient *= factor
        value = coefficient
        for each, q, conditions in zip(tilts, k, found, strict=True):
            value *= sp.exp(q * sp.expand(exponent).coeff(each) ** 2 / 2)
            if len(conditions) == 1:
                value *= P(conditions[0][1])
            else:
                (s, a), (r, b) = conditions
                value *= F(a, b, s * r * q1)
        total.append(value)
    return sp.Add(*total)


@cache
def pattern_weight(pattern: tuple[int, ...]) -> Expr:
    """W_sigma of the second moment: both copies of a column, agreeing where sigma_l = 1.

    Examples
    --------
    >>> pattern_weight((-1,))
    2*F(J_D, J_D, -q1)
    """
    terms = []
    for s in product((1, -1), repeat=len(pattern)):
        copy = tuple(a * b for a, b in zip(s, pattern, strict=True))
        pairs = zip(stabilities(s), stabilities(copy), pattern, strict=True)
        terms.append(sp.Mul(*(F(a, b, sign * q1) for a, b, sign in pairs)))
    return sp.Add(*terms)


@cache
def second_moment_dual(layers: int) -> Expr:
    """Return the exponent of E[Z^2] at overlap q1 as a function of the fields, here qhat.

    Examples
    --------
    >>> second_moment_dual(1)
    -q1*qhat_1 + log(2*exp(qhat_1)*F(J_D, J_D, q1) + 2*exp(-qhat_1)*F(J_D, J_D, -q1))
    """
    k = conjugates(layers)
    total = sp.Add(
        *(
            sp.exp(sp.Add(*(a * b for a, b in zip(k, sigma, strict=True)))) * pattern_weight(sigma)
            for sigma in product((1, -1), repeat=layers)
        )
    )
    return sp.log(total) - q1 * sp.Add(*k)


def free_entropy_at(layers: int, power: int) -> Expr:
    """Return phi of all layers at y = 1 or 2, its integral done."""
    phi = evaluated(free_entropy(layers), layers)
    return phi.subs(y, power).subs(log_norm, sp.log(integrated_power(layers, power)))


def printed(layers: int) -> Expr:
    """Right-hand side that the paper equates with -y Phi (SM-B), L = 1 or 2, one qhat.

    What it is equal to is -Phi = phi.
    """
    k = conjugates(layers)[0]
    if layers == 1:
        return -k / 2 + (1 - y) / 2 * k * q1 + log_norm / y
    return -k + (1 - y) * k * q1 + log_norm / y


# --- one layer -------------------------------------------------------------------------------


def binary_entropy(p: Expr) -> Expr:
    """H_b(p) = -p log p - (1-p) log(1-p)."""
    return -p * sp.log(p) - (1 - p) * sp.log(1 - p)


def second_moment_core() -> Expr:
    """Paper's exponent of E[Z^2] at overlap q1 for L = 1."""
    up, down = (1 + q1) / 2, (1 - q1) / 2
    energy = up * sp.log(F(J, J, q1)) + down * sp.log(F(J, J, -q1))
    return sp.log(2) + binary_entropy(up) + energy


@cache
def saddle_core() -> Expr:
    """Solve d(y phi)/dqhat = 0 at y = 2, L = 1: the solution is unique.

    Examples
    --------
    >>> saddle_core()
    log((q1 + 1)*F(J_D, J_D, -q1)/((1 - q1)*F(J_D, J_D, q1)))/2
    """
    (k,) = conjugates(1)
    root = sp.Symbol("root", positive=True)
    gradient = sp.diff(2 * free_entropy_at(1, 2), k)
    # e^{2 qhat} is the unknown of a linear equation.
    equation = sp.numer(sp.together(gradient.subs(sp.exp(2 * k), root)))
    (solution,) = sp.solve(equation, root)
    numerator, denominator = sp.fraction(sp.factor(solution))
    return sp.log(-numerator / denominator.xreplace({q1 - 1: 1 - q1})) / 2


def at_saddle_core(factor: Expr) -> Expr:
    """Return `factor` times phi at y = 2 and its saddle, L = 1; the exponent is at factor 2."""
    (k,) = conjugates(1)
    value = factor * free_entropy_at(1, 2)
    return value.subs(sp.exp(2 * k), sp.exp(2 * saddle_core())).subs(k, saddle_core())


def strong_coupling_core(factor: Expr) -> Expr:
    """Return the same as J_D -> infinity, where both F are 1."""
    value = at_saddle_core(factor)
    return value.replace(F, lambda *_: sp.S.One)
