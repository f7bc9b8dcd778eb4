r"""Replica-symmetric functional, and its expansion about q = qhat = 0 (paper, Entropy_RS_general).

.. math:: L\,S_{rs} = \mathrm{Extr}\Big[\tfrac12\sum_l \hat q_l (q_l - 1)
    + \int \prod_l Dt_l Dz_l \log\zeta\Big],\qquad
    \zeta = \sum_{s_1\ldots s_L} \prod_l e^{\sqrt{\hat q_l}\, t_l s_l}
    P\Big(\frac{v_l + s_l z_l\sqrt{q_l}}{\sqrt{1-q_l}}\Big).

**Annealed measure.** A column s has probability prod_l P(v_l)/z. By the gauge symmetry it depends
on tau_l = s^l s^{l+1} only: weight w(tau)/2, and v_l, r_l = n(v_l)/P(v_l) depend on the one or two
tau's beside layer l.

**Second order.** q_l and qhat_l are of order eps^2, so sqrt(q) z and sqrt(qhat) t are of order eps
and log zeta is needed to eps^4, the sqrt(1-q) of the denominator included. Divided by z, zeta is an
average over the annealed measure,

.. math:: \frac{\zeta}{z} = \Big\langle \prod_l e^{\sqrt{\hat q_l} t_l s_l}
    \frac{P\big((v_l + s_l z_l \sqrt{q_l})/\sqrt{1-q_l}\big)}{P(v_l)} \Big\rangle ,

in which only the weights w of the gauge configurations and, layer by layer, v and r = n(v)/P(v)
occur. With these as independent symbols everything is a polynomial, and the result is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise, product
from math import factorial
from typing import Any

import sympy as sp

from rmtheory.symbolic import definitions
from rmtheory.symbolic.annealed import gauge_weight
from rmtheory.symbolic.definitions import (
    Expr,
    J,
    P,
    gauge_symbols,
    lambda_L,
    lambda_R,
    layered,
    moment,
    n,
    q,
    qhat,
    replicas,
    spin_symbols,
    stabilities,
    v,
)

# From the replicated count to the functional.

#: zeta is written out as a sum over the 2^L columns; beyond this it fills pages.
MOST_LAYERS_EXPLICIT = 4


@dataclass(frozen=True)
class OrderParameters:
    """Overlaps q_l and qhat_l, and the Gaussian fields z_l and t_l, one of each a layer."""

    q: tuple[Expr, ...]
    qhat: tuple[Expr, ...]
    t: tuple[Expr, ...]
    z: tuple[Expr, ...]


@cache
def order_parameters(layers: int) -> OrderParameters:
    """Return the symbols of the replica-symmetric Ansatz."""
    return OrderParameters(
        layered("q", layers, positive=True),
        layered("qhat", layers, positive=True),
        layered("t", layers, real=True),
        layered("z", layers, real=True),
    )


def replica_weight(layers: int, spins: tuple[Expr, ...]) -> Expr:
    r"""Weight of one column of one replica at fixed t and z.

    Given z the fields of the replicas are independent, h_a = sqrt(q) z + sqrt(1-q) x_a, so each
    theta(s h_a + v) averages to P((v + s sqrt(q) z)/sqrt(1-q)).
    """
    at = order_parameters(layers)
    factors = [
        sp.exp(sp.sqrt(at.qhat[k]) * at.t[k] * spins[k])
        * P((x + spins[k] * at.z[k] * sp.sqrt(at.q[k])) / sp.sqrt(1 - at.q[k]))
        for k, x in enumerate(stabilities(spins))
    ]
    return sp.Mul(*factors)


@cache
def zeta(layers: int) -> Expr:
    """Sum the weight of one replica over all columns.

    Examples
    --------
    >>> zeta(1).subs({s: 0 for s in (*order_parameters(1).q, *order_parameters(1).qhat)})
    2*P(J_D)
    """
    spins = spin_symbols(layers)
    weight = replica_weight(layers, spins)
    return sp.Add(
        *(
            weight.subs(dict(zip(spins, values, strict=True)))
            for values in product((1, -1), repeat=layers)
        )
    )


def replicated_sum(layers: int, count: int) -> Expr:
    """Sum over the columns of `count` replicas at once, before any factoring: it is zeta^count."""
    columns = tuple(product((1, -1), repeat=layers))
    return sp.Add(
        *(
            sp.Mul(*(replica_weight(layers, column) for column in chosen))
            for chosen in product(columns, repeat=count)
        )
    )


def coupling_exponent(count: int) -> tuple[Expr, Expr, Expr]:
    r"""Return qhat sum_{a<b} s_a s_b, and the exponent that :math:`\int Dt` linearises.

    The second is (1/2) (sqrt(qhat) sum_a s_a)^2 - n qhat/2, so that
    e^(first) = e^(-n qhat/2) int Dt e^(sqrt(qhat) t sum_a s_a); the third is the second expanded
    with s_a^2 = 1, which is the first.

    Examples
    --------
    >>> pairs, square, expanded = coupling_exponent(3)
    >>> sp.expand(pairs - expanded)
    0
    """
    spins = layered("s", count, integer=True)
    pairs = qhat * sp.Add(*(x * y for x, y in combinations(spins, 2)))
    square = qhat * sp.Add(*spins) ** 2 / 2 - count * qhat / 2
    expanded = sp.expand(square)
    for s in spins:
        expanded = expanded.subs(s**2, 1)
    return pairs, square, expanded


@cache
def energy_per_layer() -> Expr:
    r"""Replica limit of the terms outside the column sum, for one layer.

    e^{-N sum_{a<b} qhat q} gives -n(n-1)/2 qhat q, linearising the coupling gives -n qhat/2.

    Examples
    --------
    >>> sp.factor(energy_per_layer())
    qhat*(q - 1)/2
    """
    pairs = replicas * (replicas - 1) / 2
    return sp.limit((-pairs * qhat * q - replicas * qhat / 2) / replicas, replicas, 0)


def replica_limit() -> tuple[Expr, Expr]:
    r"""Return (1/n) log <zeta^n> for an average over two values, and its limit <log zeta>.

    Two values with arbitrary weights stand for the Gaussian average: both sides are linear in
    the measure at first order in n, so they show the rule for every measure.
    """
    w, one, two = sp.symbols("w zeta_1 zeta_2", positive=True)
    average = w * one**replicas + (1 - w) * two**replicas
    expression = sp.log(average) / replicas
    return expression, sp.expand(sp.limit(expression, replicas, 0))


@cache
def energy(layers: int) -> Expr:
    """Return (1/2) sum_l qhat_l (q_l - 1)."""
    at = order_parameters(layers)
    per_layer = sp.factor(energy_per_layer())
    return sp.Add(*(per_layer.subs({q: at.q[k], qhat: at.qhat[k]}) for k in range(layers)))


def uniform(layers: int) -> dict[Expr, Expr]:
    """Return the substitution q_l -> q, qhat_l -> qhat."""
    at = order_parameters(layers)
    return dict.fromkeys(at.q, q) | dict.fromkeys(at.qhat, qhat)


# The annealed measure of one column.

Signs = tuple[int, ...]


@dataclass(frozen=True)
class ChainMeasure:
    """Annealed measure of a column of `layers` spins.

    `weight` maps (tau_1 ... tau_{L-1}) to its probability, the last one written as 1 minus the
    others; `field` and `ratio` map (layer from 0, tau's beside it) to the symbols of v and r.
    """

    layers: int
    weight: dict[Signs, Expr]
    field: dict[tuple[int, Signs], Expr]
    ratio: dict[tuple[int, Signs], Expr]

    def symbols(self) -> list[Expr]:
        """All independent symbols: weights but the last, fields, ratios."""
        weights = [w for w in self.weight.values() if w.is_Symbol]
        return [*weights, *self.field.values(), *self.ratio.values()]

    def columns(self) -> list[tuple[Signs, Signs]]:
        """All 2^L pairs (spins, gauge configuration)."""
        return [
            (spins, tuple(x * y for x, y in pairwise(spins)))
            for spins in product((1, -1), repeat=self.layers)
        ]

    def key(self, layer: int, taus: Signs) -> tuple[int, Signs]:
        """What v and r of `layer` depend on: the gauge variables beside it."""
        return layer, taus[max(layer - 1, 0) : layer + 1]

    def average(self, observable: Callable[[Signs, Signs], Expr]) -> Expr:
        """Average a function of (spins, taus) over the measure."""
        return sp.Add(
            *(self.weight[taus] / 2 * observable(spins, taus) for spins, taus in self.columns())
        )

    def values(self) -> dict[Expr, Expr]:
        """What the symbols stand for: w = prod P / sum, v, and r = n(v)/P(v)."""
        taus = gauge_symbols(self.layers)
        product_of_P = gauge_weight(self.layers)
        raw = {at: product_of_P.subs(dict(zip(taus, at, strict=True))) for at in self.weight}
        total = sp.Add(*raw.values())
        result = {w: raw[at] / total for at, w in self.weight.items() if w.is_Symbol}
        for (layer, near), symbol in self.field.items():
            beside = iter(near)
            left = lambda_L * next(beside) if layer > 0 else 0
            right = lambda_R * next(beside) if layer < self.layers - 1 else 0
            x = J + left + right
            result[symbol] = x
            result[self.ratio[layer, near]] = n(x) / P(x)
        return result


@cache
def chain_measure(layers: int) -> ChainMeasure:
    """Return the measure of L layers with a symbol for every weight, field and ratio.

    Examples
    --------
    >>> chain_measure(2).symbols()
    [w_+, v_1+, v_1-, v_2+, v_2-, r_1+, r_1-, r_2+, r_2-]
    """
    configurations = list(product((1, -1), repeat=layers - 1))
    free = [sp.Symbol(f"w_{_name(at)}", positive=True) for at in configurations[:-1]]
    weight = dict(zip(configurations, (*free, 1 - sp.Add(*free)), strict=True))
    measure = ChainMeasure(layers, weight, {}, {})
    for layer in range(layers):
        for taus in configurations:
            _, near = measure.key(layer, taus)
            label = f"{layer + 1}{_name(near)}"
            measure.field[layer, near] = sp.Symbol(f"v_{label}", real=True)
            measure.ratio[layer, near] = sp.Symbol(f"r_{label}", positive=True)
    return measure


def _name(signs: Signs) -> str:
    return "".join("+" if x > 0 else "-" for x in signs)


# Expansion to second order.

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

    def site(layer: int, near: tuple[int, ...], spin: int) -> definitions.Series:
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
        return definitions.multiply(
            definitions.split(ring.from_expr(boltzmann), grading, _ORDER),
            definitions.split(ring.from_expr(probability), grading, _ORDER),
        )

    x: definitions.Series = [ring.zero] * (_ORDER + 1)
    for spins, taus in measure.columns():
        column = [ring.one] + [ring.zero] * _ORDER
        for layer, spin in enumerate(spins):
            _, near = measure.key(layer, taus)
            column = definitions.multiply(column, site(layer, near, spin))
        # The weights sum to 1, so the constant term is taken out column by column.
        column[0] -= 1
        weight = ring.from_expr(sp.expand(measure.weight[taus] / 2))
        x = [total + weight * part for total, part in zip(x, column, strict=True)]
    return _gaussian_average(sum(definitions.logarithm(x)), layers)


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
