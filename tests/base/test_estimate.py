import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmtheory import Estimate, NotConvergedError, Tier
from rmtheory.base.estimate import fraction_from


def make(value: object, error: object) -> Estimate:
    return Estimate(value, error, Tier.ESTIMATED, "test")


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.123456789, 4e-5, "0.12346 ± 5e-5"),
        (0.123456789, 6e-5, "0.1235 ± 2e-4"),
        (0.123456789, 1e-4, "0.1235 ± 2e-4"),
        (0.123456789, 1.01e-4, "0.1235 ± 2e-4"),
        (1234567.0, 30.0, "1234570 ± 4e1"),
        (-2.5, 0.01, "-2.50 ± 1e-2"),
        (9.9996, 0.01, "10.00 ± 2e-2"),
        (1e-20, 1e-22, "1.00e-20 ± 1e-22"),
        (1e-9, 1.0, "0 ± 2e0"),
        (2.0, 0.0, "2 (exact)"),
        (0.0, 0.0, "0 (exact)"),
        (0.25, 0.0, "0.25 (exact)"),
    ],
)
def test_prints_only_the_digits_it_has(value: float, error: float, text: str) -> None:
    assert str(make(value, error)) == text


@given(
    st.floats(1e-30, 1e30),
    st.floats(1e-16, 10),
)
def test_json_strings_stay_within_the_error(value: float, relative: float) -> None:
    estimate = make(value, value * relative)
    shown = estimate.to_json()
    assert Fraction(shown["error"]) * (1 + Fraction(1, 10**9)) >= Fraction(value * relative)
    # The printed interval contains the whole interval that is known.
    printed, error = Fraction(shown["value"]), Fraction(shown["error"])
    slack = 1 + Fraction(1, 10**9)
    assert abs(printed - Fraction(value)) + Fraction(value * relative) <= error * slack


@given(st.integers(1, 60), st.floats(-1e3, 1e3).filter(lambda x: abs(x) > 1e-6))
def test_rounding_is_added_to_the_error(digits: int, x: float) -> None:
    context = mpmath.mp.clone()
    context.dps = 80
    exact = context.sqrt(2) * x
    estimate = make(exact, context.mpf(10) ** -75).rounded(digits)
    assert estimate.contains(exact)
    assert estimate.digits >= digits
    shown = Decimal(str(estimate).split(" ")[0]).normalize()
    assert len(shown.as_tuple().digits) <= digits + 1


def test_nothing_non_finite_leaves() -> None:
    for value, error in ((math.nan, 1e-3), (math.inf, 1e-3), (1.0, math.nan), (1.0, -1.0)):
        with pytest.raises(NotConvergedError, match="not a finite number"):
            make(value, error)


def test_scaled_keeps_the_enclosure() -> None:
    third = Estimate(mpmath.mpf(1) / 3, mpmath.mpf(2) ** -54, Tier.CERTIFIED, "division")
    assert third.scaled(3).contains(1.0)
    assert make(0.1, 1e-18).scaled(Fraction(1, 3)).contains(mpmath.mpf("0.1") / 3)


def test_fraction_from_keeps_the_sign() -> None:
    assert fraction_from(mpmath.mpf(-0.75)) == Fraction(-3, 4)
