r"""Second-order expansion of the replica-symmetric functional about q = qhat = 0.

q_l and qhat_l are of order eps^2, so sqrt(q) z and sqrt(qhat) t are of order eps and log zeta is
needed to eps^4, the sqrt(1-q) of the denominator included. Divided by z, zeta is an average over
the annealed chain measure,

.. math:: \frac{\zeta}{z} = \Big\langle \prod_l e^{\sqrt{\hat q_l} t_l s_l}
    \frac{P\big((v_l + s_l z_l \sqrt{q_l})/\sqrt{1-q_l}\big)}{P(v_l)} \Big\rangle ,

in which only the weights w of the gauge configurations and, layer by layer, v and r = n(v)/P(v)
occur. With these as independent symbols everything is a polynomial, and the result is exact.
"""

from __future__ import annotations

from functools import cache
from math import factorial
from typing import Any

import sympy as sp

from rmtheory.symbolic import graded
from rmtheory.symbolic.definitions import Expr, P, moment, n, v
from rmtheory.symbolic.measure import chain_measure
from rmtheory.symbolic.replica import energy, order_parameters

#: Truncation: second order in q and qhat is fourth order in eps.
_ORDER = 4


@cache
def taylor_of_P() -> tuple[Expr, tuple[Expr, Expr], Expr]:
    r"""Expand P((v + b)/sqrt(1 - q))/P(v), b = s sqrt(q) z, to fourth order in eps.

    Returns the polynomial, its variables (b, q), of order eps and eps^2, and the symbol r that
    stands for n(v)/P(v). By n' = -v n the coefficients are r times polynomials in v.

    Examples
    --------
    >>> polynomial, (b, q), r = taylor_of_P()
    >>> polynomial.subs(q, 0)
    -b**4*r*v**3/24 + b**4*r*v/8 + b**3*r*v**2/6 - b**3*r/6 - b**2*r*v/2 + b*r + 1
    """
    eps, b, overlap, r = sp.symbols("eps b q r", real=True)
    function = P((v + eps * b) / sp.sqrt(1 - eps**2 * overlap))
    polynomial = sp.S.Zero
    for order in range(_ORDER + 1):
        term = function if order == 0 else sp.diff(function, eps, order)
        polynomial += term.subs(eps, 0) / factorial(order)
    return sp.expand((polynomial / P(v)).subs(n(v), r * P(v))), (b, overlap), r


@cache
def averaged_log(layers: int) -> Expr:
    r"""Average log(zeta/z) over all t_l, z_l, to second order in q_l and qhat_l.

    Examples
    --------
    >>> averaged_log(1)
    -q_1**2*r_1**2*v_1**2/4 - q_1*qhat_1*r_1**2/2 - qhat_1**2/4 + qhat_1/2
    """
    measure, at = chain_measure(layers), order_parameters(layers)
    # a_l = sqrt(qhat_l) t_l and b_l = sqrt(q_l) z_l are of order eps, q_l of order eps^2.
    a = tuple(sp.Symbol(f"a_{k}") for k in range(layers))
    b = tuple(sp.Symbol(f"b_{k}") for k in range(layers))
    ring = sp.QQ[(*a, *b, *at.q, *measure.symbols())].ring
    grading = (1,) * (2 * layers) + (2,) * layers

    def site(layer: int, near: tuple[int, ...], spin: int) -> graded.Series:
        """Factor of one layer, e^(a s) P((v + s b)/sqrt(1-q))/P(v)."""
        taylor, (b_symbol, q_symbol), r_symbol = taylor_of_P()
        values = {
            b_symbol: spin * b[layer],
            q_symbol: at.q[layer],
            v: measure.field[layer, near],
            r_symbol: measure.ratio[layer, near],
        }
        boltzmann = sp.Add(*((spin * a[layer]) ** k / factorial(k) for k in range(_ORDER + 1)))
        probability = taylor.subs(values, simultaneous=True)
        return graded.multiply(
            graded.split(ring.from_expr(boltzmann), grading, _ORDER),
            graded.split(ring.from_expr(probability), grading, _ORDER),
        )

    x: graded.Series = [ring.zero] * (_ORDER + 1)
    for spins, taus in measure.columns():
        column = [ring.one] + [ring.zero] * _ORDER
        for layer, spin in enumerate(spins):
            _, near = measure.key(layer, taus)
            column = graded.multiply(column, site(layer, near, spin))
        # The weights sum to 1, so the constant term is taken out column by column.
        column[0] -= 1
        weight = ring.from_expr(sp.expand(measure.weight[taus] / 2))
        x = [total + weight * part for total, part in zip(x, column, strict=True)]
    return _gaussian_average(sum(graded.logarithm(x)), layers)


def _gaussian_average(polynomial: Any, layers: int) -> Expr:
    """Replace a_l^k, b_l^k by their Gaussian moments: E[t^k] qhat_l^(k/2), E[z^k] q_l^(k/2)."""
    at = order_parameters(layers)
    variance = (*at.qhat, *at.q)
    rest = polynomial.ring.symbols[2 * layers :]
    terms = []
    for monomial, coefficient in polynomial.terms():
        powers, others = monomial[: 2 * layers], monomial[2 * layers :]
        factor = sp.Mul(*(moment(k) for k in powers))
        if factor:
            average = sp.Mul(*(x ** (k // 2) for x, k in zip(variance, powers, strict=True)))
            tail = sp.Mul(*(x**k for x, k in zip(rest, others, strict=True)))
            terms.append(sp.QQ.to_sympy(coefficient) * factor * average * tail)
    return sp.Add(*terms)


@cache
def quadratic_form(layers: int) -> Expr:
    r"""Return L S_rs - log z to second order, a quadratic form in q_l and qhat_l.

    The energy (1/2) sum qhat_l (q_l - 1) is added: its linear part cancels that of the average.

    Examples
    --------
    >>> quadratic_form(1)
    -q_1**2*r_1**2*v_1**2/4 - q_1*qhat_1*r_1**2/2 + q_1*qhat_1/2 - qhat_1**2/4
    """
    return sp.expand(averaged_log(layers) + energy(layers))
