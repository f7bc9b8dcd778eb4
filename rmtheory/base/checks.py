"""Turn what users type into exact numbers, or say in one sentence why not."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Integral, Rational

from rmtheory.base.errors import InvalidInputError

#: What is accepted wherever a coupling is expected.
RealLike = float | int | str | Decimal | Fraction

#: Largest precision offered: Python itself refuses to print integers of more than 4300 digits.
MAX_DIGITS = 4_000

#: Decimal exponents allowed: all floats, but no 1e1000000000, whose fraction fills the memory.
_LEAST_EXPONENT, _MOST_EXPONENT = -400, 300
_SIZES = f"a finite real number of size 0 or 1e{_LEAST_EXPONENT} to 1e{_MOST_EXPONENT}"


def exact_real(argument: str, value: object) -> Fraction:
    """Return the finite real `value` as an exact fraction.

    A float stands for the shortest decimal that denotes it, so that ``0.1`` means one tenth to
    any number of digits, as it does on the command line; ``float(exact_real(x)) == x`` still
    holds for every float.

    Examples
    --------
    >>> exact_real("jd", 0.1)
    Fraction(1, 10)
    >>> exact_real("jd", "1/3")
    Fraction(1, 3)
    """
    allowed = "a finite real number"
    if isinstance(value, bool) or value is None:
        raise InvalidInputError(argument, value, allowed)
    if isinstance(value, Rational):  # int, Fraction, numpy integers
        exact = Fraction(int(value.numerator), int(value.denominator))
    else:
        if isinstance(value, (str, Decimal)):
            text = str(value).strip()
        else:
            try:
                text = repr(float(value))  # type: ignore[arg-type]  # anything else raises here
            except (TypeError, ValueError, OverflowError):
                raise InvalidInputError(argument, value, allowed) from None
        exact = _fraction(argument, value, text)
    if exact:
        size = math.log10(abs(exact.numerator)) - math.log10(exact.denominator)
        if not _LEAST_EXPONENT <= size <= _MOST_EXPONENT:
            raise InvalidInputError(argument, value, _SIZES)
    return exact


def _fraction(argument: str, value: object, text: str) -> Fraction:
    allowed = "a finite real number"
    try:
        if "/" in text:
            return Fraction(text)
        decimal = Decimal(text)
    except (ValueError, InvalidOperation, ZeroDivisionError):
        raise InvalidInputError(argument, value, allowed) from None
    if not decimal.is_finite():
        raise InvalidInputError(argument, value, allowed)
    if decimal and not _LEAST_EXPONENT <= decimal.adjusted() <= _MOST_EXPONENT:
        raise InvalidInputError(argument, value, _SIZES)  # before the conversion fills the memory
    return Fraction(decimal)


def integer(argument: str, value: object, least: int, most: int | None = None) -> int:
    """Return `value` as an integer in ``[least, most]``."""
    allowed = f"an integer >= {least}" if most is None else f"an integer from {least} to {most}"
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            raise InvalidInputError(argument, value, allowed) from None
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise InvalidInputError(argument, value, allowed)
    number = int(value)
    if number < least or (most is not None and number > most):
        raise InvalidInputError(argument, value, allowed)
    return number


def digits(value: object) -> int:
    """Return the requested number of decimal digits, checked."""
    return integer("digits", value, 1, MAX_DIGITS)


def layers(value: object) -> int | float:
    """Return a number of layers: an integer >= 1, or ``math.inf``.

    Examples
    --------
    >>> layers("inf"), layers(3.0)
    (inf, 3)
    """
    allowed = "an integer >= 1 or inf"
    number: object = value
    if isinstance(value, str):
        if value.strip().lower() in ("inf", "infinity", "+inf"):
            return math.inf
        try:
            exact = exact_real("layers", value)
        except InvalidInputError:
            raise InvalidInputError("layers", value, allowed) from None
        if exact.denominator != 1:
            raise InvalidInputError("layers", value, allowed)
        number = exact.numerator
    if isinstance(number, bool) or not isinstance(number, (Integral, float)):
        raise InvalidInputError("layers", value, allowed)
    if isinstance(number, float):
        if number == math.inf:
            return math.inf
        if not number.is_integer():  # also catches nan and -inf
            raise InvalidInputError("layers", value, allowed)
    count = int(number)
    if count < 1:
        raise InvalidInputError("layers", value, allowed)
    return count


def probability(argument: str, value: object) -> Fraction:
    """Return a probability strictly between 0 and 1."""
    exact = exact_real(argument, value)
    if not 0 < exact < 1:
        raise InvalidInputError(argument, value, "a probability strictly between 0 and 1")
    return exact


#: Largest coupling of a simulated network: its sums stay within float32.
MOST_COUPLING = 1e30


def coupling(argument: str, value: object) -> float:
    """Return J_D or a lambda of a simulated network as a float; refuse what would overflow.

    Examples
    --------
    >>> coupling("jd", "1/2")
    0.5
    """
    number = float(exact_real(argument, value))
    if abs(number) > MOST_COUPLING:
        raise InvalidInputError(argument, value, f"at most {MOST_COUPLING:g} in size")
    return number
