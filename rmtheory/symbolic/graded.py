"""Power series cut at a given order, as lists of homogeneous polynomials.

Part g of a series holds its terms of order eps^g. Products then never form a term that would be
thrown away, which makes three layers cost seconds instead of minutes.
"""

from __future__ import annotations

from typing import Any

from sympy import QQ

#: Polynomials of one ring, the parts of order 0, 1, 2 ...
Series = list[Any]


def split(polynomial: Any, grading: tuple[int, ...], order: int) -> Series:
    """Sort the terms of `polynomial` by their order; the first generators have orders `grading`."""
    parts: list[dict[tuple[int, ...], Any]] = [{} for _ in range(order + 1)]
    for monomial, coefficient in polynomial.terms():
        total = sum(g * e for g, e in zip(grading, monomial, strict=False))
        if total <= order:
            parts[total][monomial] = coefficient
    return [polynomial.ring.from_dict(part) for part in parts]


def multiply(left: Series, right: Series) -> Series:
    """Return the product, cut at the common order."""
    return [sum(left[k] * right[order - k] for k in range(order + 1)) for order in range(len(left))]


def logarithm(x: Series) -> Series:
    """Return log(1 + x) = x - x^2/2 + x^3/3 - ..., for a series x without a constant part.

    Examples
    --------
    >>> from sympy import ring
    >>> R, t = ring("t", QQ)
    >>> sum(logarithm(split(t, (1,), 3)))
    1/3*t**3 - 1/2*t**2 + t
    """
    if x[0] != 0:
        raise ValueError("the logarithm is expanded about 1: x must have no constant part")
    power, total = x, list(x)
    for order in range(2, len(x)):
        power = multiply(power, x)
        sign = QQ((-1) ** (order - 1), order)
        total = [t + p * sign for t, p in zip(total, power, strict=True)]
    return total
