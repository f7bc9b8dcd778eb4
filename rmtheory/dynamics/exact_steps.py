r"""The first sweeps exactly, to any number of digits.

C(1,0), C(2,0) and C(2,1) are sums of bivariate normal orthants.
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

The J_D at which the dynamics stops at once is that of the convergence bound of SM-A.
From a random state the local fields are Gaussian, and none flips its neuron if all |h_i| < J_D.
The paper bounds the probability of the contrary by 2 N exp(-J_D^2/2) and reads off
J_D = sqrt(2 ln N). At that J_D the bound is 2 for all N and excludes nothing. The probability that
it bounds, for independent fields,

.. math:: p(N, J_D) = 1 - [1 - 2 P(-J_D)]^N ,

vanishes as 1/sqrt(pi ln N), and its inverse gives the J_D needed for a wanted p.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from rmtheory.base import checks
from rmtheory.base.arithmetic import GUARD_DIGITS, Arithmetic, MPArithmetic, evaluate
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.base.estimate import Estimate, Tier, mpf_from
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


# The J_D at which the dynamics stops at once.


@dataclass(frozen=True)
class ConvergenceBound:
    """The bound sqrt(2 ln N) and the probabilities behind it."""

    n: int
    #: J_D = sqrt(2 ln N), the paper's bound.
    jd: Estimate
    #: The paper's union bound 2 N exp(-J_D^2/2) at that J_D: it is 2 for all N.
    union_bound: Estimate
    #: p(N, J_D) = 1 - [1 - 2 P(-J_D)]^N at that J_D: some field exceeds J_D in modulus.
    exceedance: Estimate
    #: 1 - P(J_D)^N: some field flips its neuron (one-sided).
    flip: Estimate


def convergence_bound(n: int, digits: int = 15, *, tier: Tier | None = None) -> ConvergenceBound:
    """Return J_D = sqrt(2 ln N) and the exact probabilities behind the union bound.

    Examples
    --------
    >>> bound = convergence_bound(1000, digits=6)
    >>> print(bound.jd, bound.exceedance)
    3.71692 ± 6e-6 0.182648 ± 6e-7
    """
    digits = checks.digits(digits)
    size = checks.integer("n", n, 2)

    def at_bound(
        probability: Callable[[int, Any, Arithmetic], Any],
    ) -> Callable[[Arithmetic], Any]:
        return lambda numbers: probability(
            size, numbers.sqrt(2 * numbers.log(numbers.number(size))), numbers
        )

    def quantity(formula: Callable[[int, Any, Arithmetic], Any], name: str) -> Estimate:
        return evaluate(at_bound(formula), None, digits, name, tier)

    return ConvergenceBound(
        size,
        jd=quantity(lambda _n, J, _numbers: J, "sqrt(2 ln N)"),
        union_bound=Estimate.exactly(2.0, "2 N exp(-J_D^2/2) at J_D = sqrt(2 ln N)"),
        exceedance=quantity(exceedance_probability, "1 - [1 - 2 P(-J_D)]^N"),
        flip=quantity(flip_probability, "1 - P(J_D)^N"),
    )


def exceedance_probability(n: int, jd: Any, numbers: Arithmetic) -> Any:
    """Return 1 - [1 - 2 P(-J)]^N: some of N independent standard fields exceeds J in modulus."""
    return -numbers.expm1(n * numbers.log1p(-2 * numbers.P(-jd)))


def flip_probability(n: int, jd: Any, numbers: Arithmetic) -> Any:
    """Return 1 - P(J)^N: some of N independent neurons is flipped, s h < -J."""
    return -numbers.expm1(n * numbers.log1p(-numbers.P(-jd)))


def jd_for_failure(n: int, failure: checks.RealLike, digits: int = 15) -> Estimate:
    """Return the J_D at which the exceedance probability of `n` fields equals `failure`.

    Inverts p(N, J) in closed form, 2 P(-J) = 1 - (1 - p)^{1/N}, and solves for J by Newton; the
    answer is accepted only where the probability passes `failure` within the stated error.

    Examples
    --------
    >>> print(jd_for_failure(1000, 0.01, digits=8))
    4.4160887 ± 6e-8
    """
    digits = checks.digits(digits)
    size = checks.integer("n", n, 2)
    p = checks.probability("failure", failure)
    arithmetic = MPArithmetic(digits + GUARD_DIGITS)
    context = arithmetic.context
    tail = -context.expm1(context.log1p(-arithmetic.number(p)) / size) / 2
    # Newton on log P(-J) = log tail: concave and decreasing, so it converges from the left.
    jd = context.mpf(0)
    for _ in range(200):
        ratio = arithmetic.n(jd) / arithmetic.P(-jd)
        step = (arithmetic.log(arithmetic.P(-jd)) - arithmetic.log(tail)) / ratio
        jd += step
        if abs(step) < context.mpf(10) ** (-digits - GUARD_DIGITS // 2):
            break
    else:
        raise NotConvergedError(
            f"Newton's method for J_D did not converge at n = {size}, failure = {failure}"
        )

    width = Fraction(1, 10 ** (digits + 1))
    _check_passage(size, p, jd, width, digits)
    method = "inverse of 1 - [1 - 2 P(-J_D)]^N, passage checked on both sides"
    return Estimate(
        mpf_from(jd), mpf_from(arithmetic.number(width)), Tier.VERIFIED, method
    ).rounded(digits)


def _check_passage(n: int, p: Fraction, jd: Any, width: Fraction, digits: int) -> None:
    """Raise unless the probability passes p between jd - width and jd + width."""
    finer = MPArithmetic(2 * digits + 2 * GUARD_DIGITS)
    target, half = finer.number(p), finer.number(width)
    centre = finer.context.mpf(jd)
    below = exceedance_probability(n, centre - half, finer)
    above = exceedance_probability(n, centre + half, finer)
    if not below > target > above:
        raise NotConvergedError(f"the probability does not pass {p} at J_D = {jd}")
