r"""The bivariate normal orthant to any number of digits, in mpmath or in certified balls.

The same identity as in :mod:`rmtheory.second_moment.bivariate`, integrated from rho = 0,

.. math:: F = P(a)P(b) + \frac{e^{-(a^2+b^2)/4}}{\pi} \int_1^{t}
    e^{-[(a+b)^2/u^2 + (a-b)^2 u^2]/8} \frac{du}{1+u^2}, \qquad t^2 = \frac{1+\rho}{1-\rho},

whose integrand is analytic around the path, as a rigorous quadrature needs. The terms cancel for
rho < 0 deep in the tails, which costs working digits and is seen by :func:`arithmetic.evaluate`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from rmtheory.arithmetic import Arithmetic, BallArithmetic, MPArithmetic
from rmtheory.errors import InvalidInputError


def orthant(arithmetic: Arithmetic, a: Any, b: Any, rho: Fraction) -> Any:
    """F(a, b; rho) for numbers `a`, `b` of the arithmetic and an exact correlation.

    Examples
    --------
    >>> from mpmath import nstr
    >>> numbers = MPArithmetic(30)
    >>> nstr(orthant(numbers, numbers.number(0), numbers.number(0), Fraction(1, 2)), 25)
    '0.3333333333333333333333333'
    """
    if not -1 <= rho <= 1:
        raise InvalidInputError("rho", str(rho), "a correlation from -1 to 1")
    if rho == 1:
        # P(min(a, b)), written so that balls that overlap enclose it too.
        return arithmetic.P((a + b - abs(a - b)) / 2)
    if rho == -1:
        # max(0, P(a) + P(b) - 1); where a ball a + b contains 0, so does the difference.
        if arithmetic.negative(a + b):
            return arithmetic.number(0)
        return arithmetic.P(a) - arithmetic.P(-b)
    independent = arithmetic.P(a) * arithmetic.P(b)
    if rho == 0:
        return independent
    end = arithmetic.sqrt(arithmetic.number((1 + rho) / (1 - rho)))
    S2, D2 = (a + b) * (a + b) / 8, (a - b) * (a - b) / 8
    return independent + arithmetic.exp(-S2 - D2) * _integral(arithmetic, S2, D2, end)


def orthant_conditional(arithmetic: MPArithmetic, a: Any, b: Any, rho: Fraction) -> Any:
    r"""Return F as the paper writes it, an integral over one of the two fields.

    .. math:: F = \int_{-\infty}^{a} n(x)\, P\big((b - \rho x)/\sqrt{1-\rho^2}\big)\, dx

    An independent route for checks: half of its cost is P, and it has no elementary limit.
    """
    if rho in (-1, 0, 1):
        return orthant(arithmetic, a, b, rho)
    context = arithmetic.context
    correlation = arithmetic.number(rho)
    width = arithmetic.sqrt(1 - correlation * correlation)
    reach = context.sqrt(2 * context.dps * context.log(10)) + 2
    points = {min(a, -reach), a, max(min(a, context.mpf(0)), -reach)}
    points |= {x for x in ((b + k * width) / correlation for k in (-4, 0, 4)) if -reach < x < a}
    return context.quad(
        lambda x: arithmetic.n(x) * arithmetic.P((b - correlation * x) / width), sorted(points)
    )


def _integral(arithmetic: Arithmetic, S2: Any, D2: Any, end: Any) -> Any:
    if isinstance(arithmetic, BallArithmetic):
        from flint import acb, arb

        value = acb.integral(
            lambda u, _: (-(acb(S2) / (u * u) + acb(D2) * u * u)).exp() / (1 + u * u),
            acb(1),
            acb(end),
        )
        return value.real / arb.pi()
    assert isinstance(arithmetic, MPArithmetic)
    context = arithmetic.context
    # Panels doubling in u: the integrand has its singularity at u = 0.
    points, reach = [context.mpf(1)], abs(context.log(end, 2))
    for k in range(1, int(reach) + 1):
        points.append(context.mpf(2) ** (k if end > 1 else -k))
    if points[-1] != end:
        points.append(end)
    return (
        context.quad(lambda u: context.exp(-S2 / (u * u) - D2 * u * u) / (1 + u * u), points)
        / context.pi
    )
