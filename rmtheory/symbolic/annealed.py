r"""Partition sum of one column, from the count to the transfer matrix (paper, SM-A).

The count is N_fp = sum_s prod_{i,l} theta(u_i^l). At fixed s the fields h_i^l are independent
N(0, 1), so each theta averages to P(v_i^l) and the mean is a product over sites; summed over all
spins it is z^N with z the sum over one column. Every step is done by substitution or expansion, and
the tests show each one equal to the one before.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product

import sympy as sp

from rmtheory.symbolic.definitions import (
    Expr,
    J,
    Matrix,
    P,
    gauge_symbols,
    gaussian_mean,
    lambda_L,
    lambda_R,
    spin_symbols,
    stabilities,
)

#: Above this the partition sum is given by its transfer matrix, not written out.
MOST_LAYERS_EXPLICIT = 6


def field_covariance(sites: int) -> Matrix:
    r"""Covariance of the fields h_i = sum_{j != i} J_ij s_j at fixed spins, J_ij ~ N(0, 1/N).

    It is sigma_N^2 times the identity, sigma_N^2 = (N-1)/N -> 1: the fields are independent, and at
    finite N the couplings (J_D, lambda) are to be divided by sigma_N.

    Examples
    --------
    >>> field_covariance(3)
    Matrix([
    [2/3,   0,   0],
    [  0, 2/3,   0],
    [  0,   0, 2/3]])
    """
    spins = spin_symbols(sites)
    # J_ij = x_ij / sqrt(N) with x_ij ~ N(0, 1).
    x = [[sp.Symbol(f"x_{i}_{j}", real=True) for j in range(sites)] for i in range(sites)]
    fields = [
        sp.Add(*(x[i][j] * spins[j] for j in range(sites) if j != i)) / sp.sqrt(sites)
        for i in range(sites)
    ]
    variables = tuple(x[i][j] for i in range(sites) for j in range(sites) if j != i)
    return sp.Matrix(
        sites,
        sites,
        lambda i, k: _reduce_squares(gaussian_mean(fields[i] * fields[k], variables), spins),
    )


def column_weight(layers: int) -> Expr:
    """Mean of the product of thetas of one column at fixed spins: prod_l P(v_l).

    Examples
    --------
    >>> column_weight(2)
    P(J_D + lambda_L*s_1*s_2)*P(J_D + lambda_R*s_1*s_2)
    """
    return sp.Mul(*(P(x) for x in stabilities(spin_symbols(layers))))


@cache
def partition_sum(layers: int) -> Expr:
    """Sum the column weight over all 2^L columns: the definition of z.

    Examples
    --------
    >>> partition_sum(1)
    2*P(J_D)
    """
    spins = spin_symbols(layers)
    return _sum_over(column_weight(layers), spins)


def mean_count(layers: int, sites: int) -> Expr:
    """Sum the mean of prod theta over all 2^(L N) configurations of `sites` columns, no factoring.

    It equals partition_sum(L)^N: the interaction lies in the couplings, and these are averaged.
    """
    weight = column_weight(layers)
    spins = spin_symbols(layers)
    values = [weight.subs(_at(spins, column)) for column in product((-1, 1), repeat=layers)]
    return sp.Add(*(sp.Mul(*chosen) for chosen in product(values, repeat=sites)))


@cache
def gauge_weight(layers: int) -> Expr:
    r"""Substitute s^l = s^1 tau_1 ... tau_{l-1} in the column weight; s^1 must drop out.

    Examples
    --------
    >>> gauge_weight(3)
    P(J_D + lambda_L*tau_2)*P(J_D + lambda_R*tau_1)*P(J_D + lambda_L*tau_1 + lambda_R*tau_2)
    """
    spins, taus = spin_symbols(layers), gauge_symbols(layers)
    images = [spins[0]]
    for tau in taus:
        images.append(images[-1] * tau)
    factors = [
        P(_reduce_squares(sp.expand(x), (spins[0], *taus))) for x in stabilities(tuple(images))
    ]
    return sp.Mul(*factors)


@cache
def gauge_sum(layers: int) -> Expr:
    """Sum the gauge weight over s^1 (a factor 2, since it dropped out) and over the tau's."""
    spins, taus = spin_symbols(layers), gauge_symbols(layers)
    return _sum_over(gauge_weight(layers), (spins[0], *taus))


@dataclass(frozen=True)
class Transfer:
    """z = 2 a^T K^(L-2) b for L >= 2; rows and columns in the order tau = +1, -1."""

    a: Matrix
    K: Matrix
    b: Matrix

    def partition(self, layers: int) -> Expr:
        """Return z by the matrix power."""
        return 2 * (self.a.T * self.K ** (layers - 2) * self.b)[0, 0]


@cache
def transfer() -> Transfer:
    """Read the transfer matrix off the gauge weight of three layers.

    Its three factors depend on tau_1, on (tau_1, tau_2) and on tau_2: they are the first layer,
    an inner layer and the last layer of a chain of any length.
    """
    first, last = gauge_symbols(3)
    factors = {frozenset(f.free_symbols & {first, last}): f for f in gauge_weight(3).args}
    # Of the two end factors, the one in tau_1 is layer 1 and the one in tau_2 is layer L.
    inner = factors[frozenset({first, last})]
    left, right = factors[frozenset({first})], factors[frozenset({last})]
    signs = (1, -1)
    return Transfer(
        a=sp.Matrix([left.subs(first, s) for s in signs]),
        K=sp.Matrix([[inner.subs({first: s, last: t}) for t in signs] for s in signs]),
        b=sp.Matrix([right.subs(last, t) for t in signs]),
    )


def paper_transfer(layers: int) -> Expr:
    """Return z by the paper's recursion f_{k+1} = M f_k on pairs of spins, for L >= 2.

    M is built from the recursion itself, sum over s^k of f_k(s^k, s^{k+1}) P(v_{k+1}), with the
    printed initial vector (s^1 = +1 fixed) and the factor 2 for the other sign.
    """
    states = tuple(product((-1, 1), repeat=2))
    f = {(s, t): P(J + lambda_R * s * t) if s == 1 else sp.S.Zero for s, t in states}
    for _ in range(layers - 2):
        f = {
            (s, t): sum(f[r, s] * P(J + lambda_L * r * s + lambda_R * s * t) for r in (-1, 1))
            for s, t in states
        }
    return 2 * sp.Add(*(f[s, t] * P(J + lambda_L * s * t) for s, t in states))


def entropy(layers: int) -> Expr:
    """Annealed entropy S_a = (1/L) log z, z written out.

    Examples
    --------
    >>> entropy(1)
    log(2*P(J_D))
    """
    return sp.log(gauge_sum(layers)) / layers


def _at(variables: tuple[Expr, ...], values: tuple[int, ...]) -> dict[Expr, int]:
    return dict(zip(variables, values, strict=True))


def _sum_over(weight: Expr, variables: tuple[Expr, ...]) -> Expr:
    return sp.Add(
        *(weight.subs(_at(variables, values)) for values in product((1, -1), repeat=len(variables)))
    )


def _reduce_squares(expression: Expr, signs: tuple[Expr, ...]) -> Expr:
    """Use s^2 = 1 for every sign."""
    for s in signs:
        expression = expression.subs(s**2, 1)
    return expression
