"""Several values in one option: ``a,b,c`` and ``start:stop:count``, also mixed."""

from __future__ import annotations

from fractions import Fraction

from rmtheory import checks
from rmtheory.errors import InvalidInputError

#: Values in one option; more are a slip of the keyboard.
_MOST = 10_000

_ALLOWED = "numbers a,b,c or a range start:stop:count"


def numbers(argument: str, text: str) -> tuple[float, ...]:
    """Return the numbers that `text` lists, ascending and each once.

    Values between are exact fractions before they become floats: .4:1:13 contains .45 and not
    .45000000000000001, so that a finer grid finds the points that are there.

    Examples
    --------
    >>> numbers("jd", ".4:.6:5")
    (0.4, 0.45, 0.5, 0.55, 0.6)
    >>> numbers("jd", "1,.2:.3:2")
    (0.2, 0.3, 1.0)
    """
    return tuple(float(value) for value in _values(argument, text))


def integers(argument: str, text: str, least: int) -> tuple[int, ...]:
    """Return the integers >= `least` that `text` lists, ascending and each once.

    Examples
    --------
    >>> integers("n", "200,100:300:3", 2)
    (100, 200, 300)
    """
    found = []
    for value in _values(argument, text):
        if value.denominator != 1 or value < least:
            raise InvalidInputError(argument, text, f"integers >= {least}, {_ALLOWED[8:]}")
        found.append(int(value))
    return tuple(found)


def _values(argument: str, text: str) -> list[Fraction]:
    found: set[Fraction] = set()
    for part in text.split(","):
        found.update(
            _range(argument, text, part) if ":" in part else [_number(argument, text, part)]
        )
    if len(found) > _MOST:
        raise InvalidInputError(argument, text, f"at most {_MOST} values")
    return sorted(found)


def _range(argument: str, text: str, part: str) -> list[Fraction]:
    pieces = part.split(":")
    if len(pieces) != 3:
        raise InvalidInputError(argument, text, _ALLOWED)
    start, stop = (_number(argument, text, piece) for piece in pieces[:2])
    try:
        count = checks.integer(argument, pieces[2].strip(), 2, _MOST)
    except InvalidInputError:
        allowed = f"start:stop:count with a count from 2 to {_MOST}"
        raise InvalidInputError(argument, text, allowed) from None
    if start >= stop:
        raise InvalidInputError(argument, text, "start:stop:count with start below stop")
    return [start + (stop - start) * k / (count - 1) for k in range(count)]


def _number(argument: str, text: str, part: str) -> Fraction:
    try:
        return checks.exact_real(argument, part.strip())
    except InvalidInputError:
        raise InvalidInputError(argument, text, _ALLOWED) from None
