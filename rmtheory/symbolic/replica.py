r"""Replica-symmetric functional, from the replicated count to zeta (paper, Entropy_RS_general).

.. math:: L\,S_{rs} = \mathrm{Extr}\Big[\tfrac12\sum_l \hat q_l (q_l - 1)
    + \int \prod_l Dt_l Dz_l \log\zeta\Big],\qquad
    \zeta = \sum_{s_1\ldots s_L} \prod_l e^{\sqrt{\hat q_l}\, t_l s_l}
    P\Big(\frac{v_l + s_l z_l\sqrt{q_l}}{\sqrt{1-q_l}}\Big).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations, product

import sympy as sp

from rmtheory.symbolic.definitions import (
    Expr,
    P,
    layered,
    q,
    qhat,
    replicas,
    spin_symbols,
    stabilities,
)

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
