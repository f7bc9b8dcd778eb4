"""A number with its error, how it was obtained, and how far to trust it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

import mpmath
from mpmath import libmp

from rmtheory.errors import NotConvergedError

#: A float, or an mpmath number where more than sixteen digits are known.
Real = Any


class Tier(StrEnum):
    """How far a number can be trusted."""

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
    >>> s = Estimate(0.3242007652712889, 4e-11, Tier.VERIFIED, "closed form")
    >>> print(s)
    0.3242007653 ± 4e-11
    >>> s.digits
    10
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
        """Significant digits whose last is off by at most one unit (0 if none is known)."""
        value, error = abs(_mpf(self.value)), _mpf(self.error)
        if error == 0:
            return max(17, _decimal_length(value))
        if value <= error:
            return 0
        return max(0, _floor_log10(value) - _ceil_log10(error) + 1)

    def rounded(self, digits: int) -> Estimate:
        """Return the estimate with at most `digits` digits, the rounding added to its error."""
        if self.digits <= digits or self.error == 0:
            return self
        value = _mpf(self.value)
        context = mpmath.mp.clone()
        context.prec = libmp.dps_to_prec(digits + 20)
        short = _from_string(libmp.to_str(value._mpf_, digits))
        half_unit = context.mpf(10) ** (_floor_log10(abs(value)) - digits + 1) / 2
        return Estimate(short, _mpf(context.mpf(self.error) + half_unit), self.tier, self.method)

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
        return {
            "value": self._value_string(extra=2),
            "error": _round_up(_mpf(self.error), 2),
            "tier": str(self.tier),
            "method": self.method,
        }

    def _value_string(self, extra: int = 0) -> str:
        value = _mpf(self.value)
        if self.error == 0:
            return _plain(value, self.digits)
        if self.digits == 0:
            # Nothing is known beyond the size of the error.
            return "0" if extra == 0 else _plain(value, 3)
        return _plain(value, self.digits + extra)

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        if self.error == 0:
            return f"{self._value_string()} (exact)"
        return f"{self._value_string()} ± {_round_up(_mpf(self.error), 1)}"


def mpf_from(number: Any) -> Any:
    """Return any mpmath number, of whatever context, as one of the default context, unrounded."""
    return mpmath.mp.make_mpf(number._mpf_)


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
    """Exponent of the leading decimal digit of x > 0."""
    return int(libmp.libmpf.to_digits_exp(x._mpf_, 30)[2])


def _ceil_log10(x: Any) -> int:
    _, digits, exponent = libmp.libmpf.to_digits_exp(x._mpf_, 30)
    return int(exponent) + (0 if digits.rstrip("0") == "1" else 1)


def _plain(x: Any, digits: int) -> str:
    """`digits` significant decimals, in positional notation unless very large or small."""
    return str(libmp.to_str(x._mpf_, digits, strip_zeros=False, min_fixed=-6, max_fixed=21))


def _round_up(x: Any, digits: int) -> str:
    """Decimal string of `digits` digits that is not below x >= 0."""
    if x == 0:
        return "0"
    exponent = _floor_log10(x) - digits + 1
    context = mpmath.mp.clone()
    context.dps = digits + 30
    mantissa = int(context.ceil(context.mpf(x) / context.mpf(10) ** exponent))
    while mantissa >= 10**digits:
        mantissa, exponent = -(-mantissa // 10), exponent + 1
    if digits == 1:
        return f"{mantissa}e{exponent}"
    text = str(mantissa)
    return f"{text[0]}.{text[1:]}e{exponent + len(text) - 1}"
