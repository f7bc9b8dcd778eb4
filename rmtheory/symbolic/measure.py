r"""Annealed measure of one column in independent symbols.

A column s has probability prod_l P(v_l)/z. By the gauge symmetry it depends on
tau_l = s^l s^{l+1} only: weight w(tau)/2, and v_l, r_l = n(v_l)/P(v_l) depend on the one or two
tau's beside layer l.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product

import sympy as sp

from rmtheory.symbolic.annealed import gauge_weight
from rmtheory.symbolic.definitions import Expr, J, P, gauge_symbols, lambda_L, lambda_R, n

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
