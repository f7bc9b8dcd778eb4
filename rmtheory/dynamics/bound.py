r"""The J_D at which the dynamics stops at once (paper, SM-A, 'Convergence bound').

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
from typing import Any

from rmtheory.base import checks
from rmtheory.base.arithmetic import (
    GUARD_DIGITS,
    Arithmetic,
    MPArithmetic,
    evaluate,
)
from rmtheory.base.errors import NotConvergedError
from rmtheory.base.estimate import Estimate, Tier, mpf_from


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
