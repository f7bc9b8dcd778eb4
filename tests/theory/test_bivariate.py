"""The bivariate orthant probability F of the second moment."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from rmtheory import InvalidInputError
from rmtheory.base.arithmetic import MPArithmetic, ball_precision, ball_to_mpf
from rmtheory.base.gaussian import P
from rmtheory.second_moment import F, log_F
from rmtheory.second_moment.bivariate import LOG_ERROR, orthant

pytestmark = pytest.mark.numerical

thresholds = st.floats(-4, 4).map(lambda x: round(x, 3))
correlations = st.floats(-3, 3).map(lambda x: math.tanh(x))


def owen(a: float, b: float, rho: float) -> float:
    """Owen's formula for the same probability: two T functions."""
    width = math.sqrt(1 - rho * rho)

    def T(h: float, k: float) -> float:
        if h == 0:
            return math.copysign(0.25, k) if k != 0 else math.atan(-rho / width) / (2 * math.pi)
        return float(special.owens_t(h, (k - rho * h) / (h * width)))

    beta = 0.0 if a * b > 0 or (a * b == 0 and a + b >= 0) else 0.5
    return 0.5 * float(P(a) + P(b)) - T(a, b) - T(b, a) - beta


@given(thresholds, thresholds, correlations)
@settings(deadline=None, max_examples=200)
def test_orthant_agrees_with_owens_t(a: float, b: float, rho: float) -> None:
    if a == 0 or b == 0:
        return  # T(0, inf) is not what scipy returns
    assert F(a, b, rho) == pytest.approx(owen(a, b, rho), abs=2e-15)


def conditional_log(a: float, b: float, rho: float) -> mpmath.mpf:
    """Log F from the paper's integral over one field, scaled by its largest value."""
    with mpmath.workdps(30):
        a, b, rho = (mpmath.mpf(x) for x in (a, b, rho))
        width = mpmath.sqrt(1 - rho**2)

        def log_f(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.log(mpmath.erfc((rho * x - b) / width / mpmath.sqrt(2)) / 2) - x * x / 2

        low, high = mpmath.mpf(-60), a  # the integrand is log-concave: ternary search
        for _ in range(90):
            left, right = low + (high - low) / 3, high - (high - low) / 3
            low, high = (left, high) if log_f(left) < log_f(right) else (low, right)
        top = (low + high) / 2
        ends = []
        for direction in (-1, 1):
            reach = mpmath.mpf(10) ** -6
            while log_f(top + direction * reach) > log_f(top) - 75:
                reach *= mpmath.mpf("1.4")
            ends.append(top + direction * reach)
        start, end = ends[0], min(a, ends[1])
        points = {start + (end - start) * k / 10 for k in range(11)}
        if rho:
            steps = [(b + k * width) / rho for k in (-9, -3, -1, 0, 1, 3, 9)]
            points |= {x for x in steps if start < x < end}
        total = mpmath.quad(lambda x: mpmath.exp(log_f(x) - log_f(top)), sorted(points))
        return log_f(top) + mpmath.log(total / mpmath.sqrt(2 * mpmath.pi))


@pytest.mark.parametrize(
    ("a", "b", "rho"),
    [
        (0.1, 0.1, 0.3),
        (0.1, 0.1, -0.99),
        (-3.0, -2.0, 0.9999),
        (-20.0, -20.0, -0.9),
        (-30.0, -30.0, 0.99),
        (5.0, -4.9, -0.9999999),
        (1e-8, 1e-8, -0.5),
        (1e-5, -1e-5, 0.999999),
        (2.0, 2.0, -0.9999),
        (-8.0, 8.0, 0.5),
        (1.0, 1.000001, 1 - 1e-12),
        (0.32, -1.17, -0.99936),
    ],
)
def test_orthant_keeps_relative_accuracy_in_the_tails(a: float, b: float, rho: float) -> None:
    exact = conditional_log(a, b, rho)
    assert abs(float(log_F(a, b, rho) - exact)) <= LOG_ERROR * max(1, abs(float(exact)))


def test_orthant_at_the_ends_and_at_zero() -> None:
    assert F(0.3, -0.4, 1.0) == P(-0.4)
    assert F(0.3, -0.2, -1.0) == pytest.approx(float(P(0.3) + P(-0.2) - 1), rel=1e-14)
    assert F(0.3, -0.4, -1.0) == 0
    assert log_F(-1.0, 1.0, -1.0) == -np.inf
    assert F(0.3, -0.4, 0.0) == pytest.approx(float(P(0.3) * P(-0.4)), rel=1e-15)
    rho = np.linspace(-1, 1, 41)
    np.testing.assert_allclose(F(0, 0, rho), 0.25 + np.arcsin(rho) / (2 * np.pi), atol=1e-15)


@given(thresholds, thresholds, correlations)
@settings(deadline=None, max_examples=50)
def test_the_four_quadrants_fill_the_plane(a: float, b: float, rho: float) -> None:
    total = F(a, b, rho) + F(-a, b, -rho) + F(a, -b, -rho) + F(-a, -b, rho)
    assert total == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize("rho", [Fraction(3, 7), Fraction(-6, 7), Fraction(1), Fraction(-1)])
def test_orthant_in_mpmath_and_in_balls(rho: Fraction) -> None:
    a, b = Fraction(1, 3), Fraction(-1, 5)
    numbers = MPArithmetic(40)
    value = orthant(numbers, numbers.number(a), numbers.number(b), rho)
    assert float(value) == pytest.approx(float(F(float(a), float(b), float(rho))), rel=1e-13)
    pytest.importorskip("flint")
    with ball_precision(40) as balls:
        middle, radius = ball_to_mpf(orthant(balls, balls.number(a), balls.number(b), rho))
    with mpmath.workdps(40):
        assert abs(middle - mpmath.mpf(value)) < radius + mpmath.mpf(10) ** -35
        assert radius < mpmath.mpf(10) ** -30


def test_orthant_refuses_nonsense() -> None:
    for bad in (1.1, math.nan):
        with pytest.raises(InvalidInputError, match="correlation from -1 to 1"):
            F(0, 0, bad)
    with pytest.raises(InvalidInputError, match="a must be finite"):
        F(math.inf, 0, 0.5)
    with pytest.raises(InvalidInputError, match="correlation"):
        orthant(MPArithmetic(20), 0, 0, Fraction(3, 2))
