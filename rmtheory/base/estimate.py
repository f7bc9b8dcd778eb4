"""A number with its error, how it was obtained, and how far to trust it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Decimal, localcontext
from enum import StrEnum
from fractions import Fraction
from typing import Any

import mpmath
from mpmath import libmp

from rmtheory.base.errors import NotConvergedError

#: A float, or an mpmath number where more than sixteen digits are known.
Real = Any


class Tier(StrEnum):
    """How far a number can be trusted.

    Examples
    --------
    >>> import rmtheory as rt
    >>> rt.entropy(rt.Chain(1, jd=0.4), tier=rt.Tier.VERIFIED).tier.value
    'verified'
    """

    #: Ball arithmetic encloses it: rounding, truncation and tails included.
    CERTIFIED = "certified"
    #: Two independent methods, or two precisions, agree within the error.
    VERIFIED = "verified"
    #: The error is an estimate: a refinement difference, a residual, a standard error.
    ESTIMATED = "estimated"


@dataclass(frozen=True)
class Estimate:
    """A value known to within `error`.

    Parameters
    ----------
    value, error : float or mpmath.mpf
        The number and a bound (certified), or an honest estimate, of its absolute error.
    tier : Tier
        What kind of statement the error is.
    method : str
        How the value was obtained, in a few words.

    Examples
    --------
    >>> import rmtheory as rt
    >>> s = rt.Estimate(0.3242007652712889, 4e-11, rt.Tier.VERIFIED, "closed form")
    >>> print(s)
    0.32420076527 ± 5e-11
    >>> s.digits
    11
    """

    value: Real
    error: Real
    tier: Tier
    method: str

    def __post_init__(self) -> None:
        value, error = _mpf(self.value), _mpf(self.error)
        if not (mpmath.isfinite(value) and mpmath.isfinite(error) and error >= 0):
            raise NotConvergedError(
                f"{self.method} gave {mpmath.nstr(value, 6)} with error "
                f"{mpmath.nstr(error, 3)}, which is not a finite number"
            )

    @classmethod
    def exactly(cls, value: Real, method: str) -> Estimate:
        """Return an exact number, e.g. one fixed by symmetry."""
        return cls(value, 0.0, Tier.CERTIFIED, method)

    @property
    def digits(self) -> int:
        """Significant digits that the error allows (0 if it exceeds the value).

        The last one counts units of at most twice the error, so that rounding to it never adds
        more than the error itself.
        """
        value, error = abs(_mpf(self.value)), _mpf(self.error)
        if error == 0:
            return max(17, _decimal_length(value))
        if value <= error:
            return 0
        return max(1, _floor_log10(value) - _floor_log10(2 * error) + 1)

    def rounded(self, digits: int) -> Estimate:
        """Return the estimate with at most `digits` digits, the rounding added to its error."""
        if self.digits <= digits or self.error == 0:
            return self
        value = _mpf(self.value)
        context = mpmath.mp.clone()
        context.prec = libmp.dps_to_prec(digits + 20)
        unit = _floor_log10(abs(value)) - digits + 1
        short = _from_string(str(_at_unit(value, unit)))
        half_unit = context.mpf(10) ** unit / 2
        # The last factor pays for the tolerance with which errors are printed.
        error = (context.mpf(self.error) + half_unit) * (1 + context.mpf(10) ** -9)
        return Estimate(short, _mpf(error), self.tier, self.method)

    def contains(self, number: Real) -> bool:
        """Whether `number` lies within the error of the value."""
        context = mpmath.mp.clone()
        context.prec = max(_bits(self.value), _bits(number), _bits(self.error)) + 20
        return bool(abs(context.mpf(number) - context.mpf(self.value)) <= context.mpf(self.error))

    def scaled(self, factor: float | int | Fraction) -> Estimate:
        """Return the estimate times an exact `factor`."""
        context = mpmath.mp.clone()
        context.prec = _bits(self.value) + 64
        by = context.mpf(Fraction(factor).numerator) / Fraction(factor).denominator
        value, error = by * context.mpf(self.value), abs(by) * context.mpf(self.error)
        if isinstance(self.value, float):
            # The product is rounded back to a float: half a unit in its last place is lost.
            return Estimate(
                float(value),
                float(error * (1 + 2**-50)) + math.ulp(float(value)) / 2,
                self.tier,
                self.method,
            )
        margin = 1 + context.mpf(2) ** -50
        return Estimate(_mpf(value), _mpf(error * margin), self.tier, self.method)

    def to_json(self) -> dict[str, str]:
        """Return the JSON object {value, error, tier, method}, numbers as decimal strings."""
        text = self._value_string(extra=2)
        return {
            "value": text,
            "error": _round_up(self._error_of(text), 2),
            "tier": str(self.tier),
            "method": self.method,
        }

    def _value_string(self, extra: int = 0) -> str:
        """Decimal text down to the unit the error allows, `extra` digits more if they are not 0."""
        value = _mpf(self.value)
        if self.error == 0:
            return _text(Decimal(_shortest(value)))
        if self.digits == 0:
            # Nothing is known beyond the size of the error.
            unit = _floor_log10(_mpf(self.error))
        else:
            unit = _floor_log10(2 * _mpf(self.error))
        short, long = _at_unit(value, unit), _at_unit(value, unit - extra)
        return _text(short if short == long else long)

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        if self.error == 0:
            return f"{self._value_string()} (exact)"
        text = self._value_string()
        return f"{text} ± {_round_up(self._error_of(text), 1)}"

    def _error_of(self, text: str) -> Any:
        """The error of the value as printed: its rounding is added."""
        if self.error == 0:
            return _mpf(0)
        context = mpmath.mp.clone()
        context.prec = max(_bits(self.value), 53) + 64
        rounding = abs(context.mpf(_from_string(text)) - context.mpf(_mpf(self.value)))
        return _mpf(context.mpf(_mpf(self.error)) + rounding)


def mpf_from(number: Any) -> Any:
    """Return any mpmath number, of any context, as one of the default context, unrounded."""
    return mpmath.mp.make_mpf(number._mpf_)


def fraction_from(number: Any) -> Fraction:
    """Return a finite mpmath number as the exact fraction it is."""
    sign, mantissa, exponent, _ = number._mpf_
    magnitude = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    return -magnitude if sign else magnitude


def _mpf(number: Real) -> Any:
    if hasattr(number, "_mpf_"):
        return mpf_from(number)
    return mpmath.mp.make_mpf(libmp.from_float(float(number)))


def _bits(number: Real) -> int:
    return int(_mpf(number)._mpf_[3]) if _mpf(number) else 53


def _from_string(text: str) -> Any:
    precision = libmp.dps_to_prec(len(text) + 10)
    return mpmath.mp.make_mpf(libmp.from_str(text, precision, "n"))


def _decimal_length(value: Any) -> int:
    return int(libmp.prec_to_dps(_bits(value)))


def _floor_log10(x: Any) -> int:
    """Exponent of the leading decimal digit of x > 0; 9.99999999999 counts as 10."""
    return int(libmp.libmpf.to_digits_exp(x._mpf_, 11)[2])


def _shortest(x: Any) -> str:
    """All decimals of an exact number, at least those a float would print."""
    if x == int(x) and abs(x) < 10**21:
        return str(int(x))
    return repr(float(x)) if float(x) == x else str(libmp.to_str(x._mpf_, _decimal_length(x) + 2))


def _at_unit(x: Any, unit: int) -> Decimal:
    """`x` rounded to a multiple of 10**unit."""
    if x == 0:
        return Decimal(0)
    digits = max(_floor_log10(abs(x)) - unit, 0) + 12
    sign, mantissa, exponent = libmp.libmpf.to_digits_exp(x._mpf_, digits)
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = digits + 20, MAX_EMAX, MIN_EMIN
        number = Decimal(f"{'-' if sign else ''}{mantissa}")
        number = number.scaleb(int(exponent) - len(mantissa) + 1)
        return number.quantize(Decimal(1).scaleb(unit), rounding=ROUND_HALF_EVEN)


def _text(number: Decimal) -> str:
    """Positional notation unless very large or small."""
    if not number:
        return f"{number:f}"
    if -6 <= number.adjusted() <= 21:
        return f"{number:f}"
    return f"{number:e}".replace("e+", "e")


def _round_up(x: Any, digits: int) -> str:
    """Decimal string of `digits` digits, not below x >= 0 (up to 1e-10: 4e-5 is not 4.1e-5)."""
    if x == 0:
        return "0"
    exponent = _floor_log10(x) - digits + 1
    context = mpmath.mp.clone()
    context.dps = digits + 30
    scaled = context.mpf(x) / context.mpf(10) ** exponent
    mantissa = int(context.ceil(scaled * (1 - context.mpf(10) ** -10)))
    if mantissa >= 10**digits:
        mantissa, exponent = mantissa // 10, exponent + 1
    text = str(mantissa)
    return f"{text[0]}{'.' if text[1:] else ''}{text[1:]}e{exponent + len(text) - 1}"
