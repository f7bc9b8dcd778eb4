"""The core module to many digits: exact identities, the float64 solver, other resolutions."""

from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest

from rmtheory import Chain, InvalidInputError, NotConvergedError, Tier
from rmtheory.base.arithmetic import MPArithmetic, have_flint
from rmtheory.base.estimate import Estimate, fraction_from
from rmtheory.local_entropies import precise
from rmtheory.local_entropies.core import core_moments
from rmtheory.local_entropies.precise import (
    PreciseYStar,
    Rule,
    precise_averages,
    precise_point,
    precise_ystar,
)
from rmtheory.local_entropies.solve import (
    ROUNDING,
    CurveTracker,
    functional,
    guess_qhat,
    refine_saddle,
)
from rmtheory.second_moment.bivariate import orthant

fast = pytest.mark.skipif(not have_flint(), reason="slow without python-flint")


def reference(formula: Any, digits: int = 50) -> Fraction:
    return fraction_from(formula(MPArithmetic(digits)))


def close(estimate: Estimate, exact: Fraction, digits: int) -> bool:
    difference = abs(fraction_from(mpmath.mpmathify(estimate.value)) - exact)
    error = fraction_from(mpmath.mpmathify(estimate.error))
    return difference <= error <= Fraction(1, 10**digits)


@cache
def star(jd: str, d: str, digits: int) -> PreciseYStar:
    """Solve at y* once for all tests."""
    return precise_ystar(jd, d, digits)


# --- identities


@fast
@pytest.mark.parametrize(
    ("jd", "d", "digits"), [("0.1", "0.2", 30), ("0.5", "0.01", 18), ("-0.1", "0.4", 30)]
)
def test_y_1_is_the_annealed_entropy(jd: str, d: str, digits: int) -> None:
    exact = reference(lambda a: a.log(2 * a.P(a.number(Fraction(jd)))))
    point = precise_point(jd, d, 1, digits)
    assert close(point.phi, exact, digits)
    assert point.slope.contains(0)
    rule = Rule(digits + 4)
    for qhat in (Fraction(1, 7), Fraction(3, 2)):
        phi = precise_averages(Fraction(jd), Fraction(d), Fraction(1), qhat, rule).phi
        assert abs(phi - exact) < Fraction(1, 10 ** (digits + 3))


@fast
@pytest.mark.parametrize(("jd", "d"), [("0.1", "0.1"), ("0.3", "0.02"), ("0.05", "0.4")])
def test_y_2_is_the_second_moment(jd: str, d: str) -> None:
    q = 1 - 2 * Fraction(d)

    def exponent(a: MPArithmetic) -> Any:
        J = a.number(Fraction(jd))
        same, other = a.number((1 + q) / 2), a.number((1 - q) / 2)
        mixing = -same * a.log(same) - other * a.log(other)
        return (
            a.log(a.number(2))
            + mixing
            + same * a.log(orthant(a, J, J, q))
            + other * a.log(orthant(a, J, J, -q))
        )

    exact = reference(exponent)
    point = precise_point(jd, d, 2, 30)
    assert point.phi.tier is Tier.VERIFIED
    assert close(point.phi.scaled(2), exact, 29)
    # y phi = y S_I + S_E
    parts = fraction_from(point.internal.value) * 2 + fraction_from(point.external.value)
    assert abs(parts - exact) < Fraction(1, 10**29)


@fast
def test_at_y_star_the_external_entropy_vanishes() -> None:
    known = star("0.1", "0.1", 60)
    assert known.residual.contains(0)
    assert known.residual.error < 1e-60
    point = precise_point("0.1", "0.1", fraction_from(known.y_star.value), 20)
    assert point.external.contains(0)
    assert point.external.error < 1e-22
    for name in ("phi", "internal"):
        assert getattr(point, name).contains(known.internal.value)
    assert point.qhat.contains(known.qhat.value)
    assert point.slope.contains(known.slope.value)


@fast
def test_the_slope_is_the_derivative_along_y_star() -> None:
    step = Fraction(1, 10**6)
    values = [
        fraction_from(precise_ystar("0.1", Fraction(1, 10) + k * step, 30).internal.value)
        for k in (-2, -1, 1, 2)
    ]
    difference = (8 * (values[2] - values[1]) - (values[3] - values[0])) / (12 * step)
    slope = fraction_from(star("0.1", "0.1", 30).slope.value)
    assert abs(difference - slope) < Fraction(1, 10**18)


# --- other resolutions, arithmetics, implementations


@fast
@pytest.mark.parametrize(("jd", "d"), [("0.1", "0.1"), ("0.05", "0.4")])
def test_more_digits_stay_within_the_error(jd: str, d: str) -> None:
    few, many = star(jd, d, 30), star(jd, d, 60)
    for name in ("y_star", "internal", "qhat", "slope"):
        rough, fine = getattr(few, name), getattr(many, name)
        assert rough.contains(fine.value)
        assert rough.digits >= 30
        assert fine.digits >= 60


def test_reference_values() -> None:
    known = precise_ystar(0.1, 0.1, 12)
    assert float(known.internal) == pytest.approx(0.029044144399105, abs=1e-14)
    assert float(known.y_star) == pytest.approx(5.665006280110, abs=1e-10)
    assert float(precise_ystar(0.1, 0.01, 10).internal) == pytest.approx(0.0082910549, abs=6e-11)


@fast
def test_known_digits() -> None:
    known = star("0.1", "0.1", 30)
    assert str(known.y_star).startswith("5.66500628011022155860312413742 ")
    assert str(known.internal).startswith("0.0290441443991050556295999963143 ")


@fast
def test_float64_lies_within_its_errors() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        jd = round(rng.uniform(0.02, 0.5), 3)
        d = round(rng.uniform(0.005, 0.45), 3)
        y = round(rng.uniform(1, 15), 2)
        model = functional(Chain(1, jd))
        double = refine_saddle(model, d, y, guess_qhat(model, d, y), 1e-11)
        point = precise_point(jd, d, y, 16)
        for name in ("phi", "internal", "external", "slope"):
            error = getattr(double, f"{name}_error")
            assert abs(getattr(double.moments, name) - float(getattr(point, name))) <= error, name
        assert abs(double.moments.qhat[0] - float(point.qhat)) <= double.qhat_error[0]


@fast
@pytest.mark.parametrize(("jd", "d"), [(0.1, 0.002), (0.2, 0.05), (0.05, 0.45), (0.4, 0.2)])
def test_float64_y_star_lies_within_its_errors(jd: float, d: float) -> None:
    double = CurveTracker(functional(Chain(1, jd))).solve(d, 1e-11)
    known = precise_ystar(jd, d, 16)
    assert abs(double.moments.phi - float(known.internal)) <= double.phi_error
    # The residuals are rounded, and the inverse Jacobian amplifies that.
    rounding = ROUNDING * float(np.abs(double.inverse[0]).sum()) * double.moments.y
    assert abs(double.moments.y - float(known.y_star)) <= double.y_error + rounding
    assert abs(double.moments.slope - float(known.slope)) <= double.slope_error


def test_mpmath_and_flint_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = (Fraction(3, 10), Fraction(1, 20), Fraction(7, 2), Fraction(2, 5), Rule(15))
    first = precise_averages(*arguments)
    monkeypatch.setattr(precise, "have_flint", lambda: False)
    second = precise_averages(*arguments)
    assert first.size == second.size
    for name in ("log_norm", "mean_log", "overlap", "force"):
        assert abs(getattr(first, name) - getattr(second, name)) < Fraction(1, 10**20)


def test_without_flint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precise, "have_flint", lambda: False)
    point = precise_point("0.1", "0.3", 3, 10)
    double = core_moments(0.1, 0.3, 3.0, np.array([float(point.qhat)]), 4)
    assert point.phi.contains(double.phi)
    assert point.phi.digits >= 10


def test_finer_rules_agree() -> None:
    arguments = (Fraction(1, 2), Fraction(1, 200), Fraction(15), Fraction(1, 5))
    rough, fine = (precise_averages(*arguments, rule) for rule in (Rule(18), Rule(24, 0.7)))
    for name in ("log_norm", "mean_log", "overlap", "force"):
        assert abs(getattr(rough, name) - getattr(fine, name)) < Fraction(1, 10**15)


def test_a_grid_beyond_the_memory_is_refused() -> None:
    with pytest.raises(NotConvergedError, match="points"):
        precise_averages(Fraction(1, 10), Fraction(1, 10), Fraction(10**6), Fraction(1), Rule(20))


# --- arguments


def test_the_input_is_exact() -> None:
    assert precise_point(0.1, "1/4", 2, 18).phi == precise_point("0.1", 0.25, 2, 18).phi


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("0.1", "0.5", 2, 20), "d"),
        (("0.1", 0, 2, 20), "d"),
        (("0.1", "0.1", 0, 20), "y"),
        (("0.1", "0.1", 2, 101), "digits"),
        (("nan", "0.1", 2, 20), "jd"),
    ],
)
def test_bad_arguments(arguments: tuple[Any, ...], name: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        precise_point(*arguments)
    assert caught.value.argument == name
