r"""C(1,0), C(2,0) and C(2,1) exactly, to any number of digits: sums of bivariate normal orthants.

The first sweep sees :math:`\phi(0)`, the second :math:`\phi(0)` and :math:`\phi(1)`, whose
covariance C(1,0) is known by then. Let :math:`b^l(t) = J_D s^l(t) + \lambda_L s^{l-1}(t) +
\lambda_R s^{l+1}(t)`, P the normal distribution function and :math:`F(a, b; \rho) =
\mathrm{Prob}(g > -a, g' > -b)` for standard normal g, g' of covariance rho. A neuron ends in s
where :math:`s\,(\phi + b) > 0`. Given the start s(0), the layers make their first step
independently; given the first step of the neighbours as well, :math:`b^l(1)` is known for either
value of :math:`s^l(1)`, and

.. math:: \mathrm{Prob}\big(s^l(1)\,|\,s(0)\big) = P\big(s^l(1)\, b^l(0)\big), \qquad
    \mathrm{Prob}\big(s^l(1), s^l(2)\,|\,s(0), s^{l\pm1}(1)\big)
    = F\big(s^l(1)\, b^l(0),\; s^l(2)\, b^l(1);\; s^l(1) s^l(2)\, C_l(1,0)\big).

What is left is a sum over the histories of a column. For one layer it reads, with
:math:`c = 2P(J_D) - 1`,

.. math:: C(1,0) = c, \qquad
    C(2,0) = 2F(J_D, J_D; c) + 2F(-J_D, -J_D; -c) - 1, \qquad
    C(2,1) = 2F(J_D, J_D; c) - 2F(-J_D, -J_D; -c) + 2P(-J_D) - 1.

A neuron that a masked sweep does not update puts no condition on its field. From the third sweep
on, three fields and more enter; :mod:`rmtheory.dynamics.process` samples them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from rmtheory.base import checks
from rmtheory.base.arithmetic import Arithmetic, MPArithmetic, evaluate
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.second_moment.bivariate import orthant, orthant_conditional

#: The sum runs over 4^L histories.
MOST_LAYERS = 5

Orthant = Callable[[Arithmetic, Any, Any, Any], Any]


@dataclass(frozen=True)
class FirstSteps:
    """The correlations of the first two sweeps of one layer, each with its error."""

    c10: Estimate
    c20: Estimate
    c21: Estimate


def first_steps(
    chain: Chain, layer: int = 1, *, p: object = 1, digits: int = 15, tier: Tier | None = None
) -> FirstSteps:
    """Return C(1,0), C(2,0), C(2,1) of one `layer` from a random start.

    Parameters
    ----------
    chain : Chain
        The model, at most five layers.
    layer : int
        Which layer, from 1 to L.
    p : real
        Probability that a neuron is updated in a sweep.
    digits : int
        Significant digits wanted.
    tier : Tier, optional
        ``certified`` by balls (the default where python-flint is installed) or ``verified`` by two
        integral representations of the orthant in mpmath.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> steps = first_steps(Chain(1, jd="0.5"), digits=12)
    >>> print(steps.c10)
    0.382924922548 ± 6e-13
    """
    if chain.finite_layers > MOST_LAYERS:
        raise InvalidInputError("layers", chain.layers, f"at most {MOST_LAYERS} for exact steps")
    layer = checks.integer("layer", layer, 1, chain.finite_layers)
    digits = checks.digits(digits)
    rate = checks.exact_real("p", p)
    if not 0 < rate <= 1:
        raise InvalidInputError("p", p, "a probability above 0, at most 1")

    def quantity(which: int, how: Orthant) -> Callable[[Arithmetic], Any]:
        return lambda arithmetic: _correlations(chain, layer - 1, rate, arithmetic, how)[which]

    method = "sum over the histories of two sweeps"
    return FirstSteps(
        *(
            evaluate(quantity(k, orthant), quantity(k, _second_route), digits, method, tier)
            for k in range(3)
        )
    )


def _second_route(arithmetic: Arithmetic, a: Any, b: Any, rho: Any) -> Any:
    assert isinstance(arithmetic, MPArithmetic)
    return orthant_conditional(arithmetic, a, b, rho)


def _correlations(
    chain: Chain, layer: int, p: Fraction, arithmetic: Arithmetic, how: Orthant
) -> tuple[Any, Any, Any]:
    layers = chain.finite_layers
    jd, left, right = (arithmetic.number(x) for x in chain.exact)
    rate, stay = arithmetic.number(p), arithmetic.number(1 - p)
    columns = list(product((1, -1), repeat=layers))
    starts = [column for column in columns if column[0] == 1]  # the rest by s -> -s

    def bias(s: tuple[int, ...], site: int) -> Any:
        field = jd * s[site]
        if site > 0:
            field = field + left * s[site - 1]
        if site + 1 < layers:
            field = field + right * s[site + 1]
        return field

    def stepped(s: tuple[int, ...], site: int, new: int) -> Any:
        """Probability of s_site(1) = new given the column s(0)."""
        moved = rate * arithmetic.P(bias(s, site) * new)
        return moved + stay if s[site] == new else moved

    mean = arithmetic.number(Fraction(1, len(starts)))
    c10 = sum(s[layer] * new * stepped(s, layer, new) for s in starts for new in (1, -1)) * mean
    known: dict[tuple[Any, ...], Any] = {}

    def joint(s: tuple[int, ...], after: tuple[int, ...], last: int) -> Any:
        """Probability of s_layer(1), s_layer(2) = last, given the neighbours' histories."""
        one = after[layer]
        first, second = bias(s, layer) * one, bias(after, layer) * last
        key = (s[max(layer - 1, 0) : layer + 2], after[max(layer - 1, 0) : layer + 2], last)
        if key not in known:
            total = rate * rate * how(arithmetic, first, second, c10 * (one * last))
            if one == last:
                total = total + rate * stay * arithmetic.P(first)
            if s[layer] == one:
                total = total + stay * rate * arithmetic.P(second)
                if one == last:
                    total = total + stay * stay
            known[key] = total
        return known[key]

    c20 = c21 = arithmetic.number(0)
    for s in starts:
        for after in columns:
            weight = mean
            for site in range(layers):
                if site != layer:
                    weight = weight * stepped(s, site, after[site])
            for last in (1, -1):
                probability = weight * joint(s, after, last)
                c20 = c20 + s[layer] * last * probability
                c21 = c21 + after[layer] * last * probability
    return c10, c20, c21
