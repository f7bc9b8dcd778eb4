"""Stability of q0 = 0: the formula against the full functional, and where it is lost."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from rmtheory import Chain, InvalidInputError, NotConvergedError
from rmtheory.base.gaussian import P, log_P, r
from rmtheory.local_entropies.broken_branch import q0_loss
from rmtheory.local_entropies.core import core_moments, q0_at, q0_stability
from rmtheory.local_entropies.solve import CurveTracker, functional, guess_qhat, solve_saddle

pytestmark = pytest.mark.numerical


def saddle(jd: float, d: float, y: float) -> float:
    model = functional(Chain(1, jd))
    return float(solve_saddle(model, d, y, guess_qhat(model, d, y), 4).moments.qhat[0])


def broken_functional(jd: float, d: float, y: float, qhat: float, q0: float, qhat0: float) -> float:
    """The functional with q0 and qhat0: Gauss-Hermite outside, plain trapezoid rules inside."""
    q1, sigma = 1 - 2 * d, math.sqrt(2 * d)
    nodes, weights = np.polynomial.hermite_e.hermegauss(8)
    weights = weights / weights.sum()
    t = np.arange(-12, 12.01, 0.3)[:, None]
    x = np.arange(-9, 9.01, 0.25 * sigma)[None, :]
    gauss = -0.5 * t * t - 0.5 * x * x / (q1 - q0)
    gauss = gauss - np.log(np.exp(gauss).sum())
    total = 0.0
    for t0, wt in zip(nodes, weights, strict=True):
        h = math.sqrt(qhat0) * t0 + math.sqrt(qhat - qhat0) * t
        for z0, wz in zip(nodes, weights, strict=True):
            field = math.sqrt(q0) * z0 + x
            log_zeta = np.logaddexp(
                h + log_P((jd + field) / sigma), log_P((jd - field) / sigma) - h
            )
            exponent = gauss + y * log_zeta
            largest = exponent.max()
            total += wt * wz * (largest + math.log(np.exp(exponent - largest).sum()))
    return -qhat / 2 + (1 - y) * qhat * q1 / 2 + y * qhat0 * q0 / 2 + total / y


@pytest.mark.parametrize(
    ("jd", "d", "y"), [(0.1, 0.1, 5.665006280110), (0.3, 0.05, 3.0), (0.05, 0.25, 1.5)]
)
def test_the_formula_is_the_second_order_of_the_full_functional(
    jd: float, d: float, y: float
) -> None:
    qhat = saddle(jd, d, y)
    zero = broken_functional(jd, d, y, qhat, 0.0, 0.0)
    assert zero == pytest.approx(core_moments(jd, d, y, np.array([qhat]), 4).phi, abs=1e-12)

    def coefficient(q0: float) -> float:
        best = minimize_scalar(  # qhat0/q0 makes phi largest
            lambda ratio: -broken_functional(jd, d, y, qhat, q0, ratio * q0),
            bounds=(1e-4, 2),
            method="bounded",
            options={"xatol": 1e-4},
        )
        a, b, c = (broken_functional(jd, d, y, qhat, q0, k * best.x * q0) for k in (0.8, 1, 1.2))
        top = b + (c - a) ** 2 / (8 * (2 * b - a - c))  # of the parabola through the three
        return float((top - zero) * 4 * y / q0**2)

    m0 = q0_stability(jd, d, y, qhat, 4)
    fine, coarse, coarsest = (coefficient(q0) for q0 in (0.004, 0.008, 0.016))
    limit = (8 * fine - 6 * coarse + coarsest) / 3
    assert limit == pytest.approx(float(m0), abs=2e-4 * (1 + abs(float(m0))))


@pytest.mark.parametrize("jd", [-0.1, 0.1, 0.4, 1.0])
def test_at_y_1_it_is_the_replica_symmetric_stability(jd: float) -> None:
    ratio = float(r(jd))
    expected = (1 - ratio**2) ** 2 - (jd * ratio) ** 2
    for d in (0.02, 0.1, 0.3):
        m0 = q0_stability(jd, d, 1.0, saddle(jd, d, 1.0), 4)
        assert m0.contains(expected)
        assert m0.error < 1e-10


def test_at_y_2_the_averages_are_those_of_two_replicas() -> None:
    # y = 2: int zeta^2 = 2 e^(2 qhat) F(J, q1) + 2 F(J, -q1) in the orthant F of two fields.
    jd, d = 0.2, 0.15
    qhat, q1 = saddle(jd, d, 2.0), 1 - 2 * d
    same, other = (orthant_average(jd, q, q1) for q in (1, -1))
    z = 2 * (math.exp(2 * qhat) * same[0] + other[0])
    K = 2 * 2 * math.exp(2 * qhat) * same[1] / z
    Gamma = 2 * (math.exp(2 * qhat) * same[2] + other[2]) / z
    A = 2 + 2 * q1
    expected = (4 - K * K) ** 2 / A**2 - Gamma**2
    assert float(q0_stability(jd, d, 2.0, [qhat], 4)) == pytest.approx(expected, abs=1e-11)


def orthant_average(jd: float, sign: int, q1: float) -> tuple[float, float, float]:
    """E_x of P(a) P(b), and of its first and second x-derivatives (a, b = (J ± x)/sigma)."""
    sigma = math.sqrt(1 - q1)
    x = np.linspace(-9, 9, 4001)
    weight = np.exp(-0.5 * x * x / q1)
    weight /= weight.sum()

    def at(shift: float) -> float:
        one, two = (jd + x + shift) / sigma, (jd + sign * (x + shift)) / sigma
        return float((weight * P(one) * P(two)).sum())

    e = 1e-3
    first = (8 * (at(e) - at(-e)) - (at(2 * e) - at(-2 * e))) / (12 * e)
    second = (16 * (at(e) + at(-e)) - at(2 * e) - at(-2 * e) - 30 * at(0)) / (12 * e * e)
    return at(0), first, second


def test_levels_agree_within_the_errors() -> None:
    for jd, d, y in [(0.1, 0.01, 8.6), (0.3, 0.2, 4.0), (0.05, 0.4, 12.0)]:
        qhat = saddle(jd, d, y)
        finest = q0_stability(jd, d, y, qhat, 6)
        for level in (2, 3, 4):
            assert q0_stability(jd, d, y, qhat, level).contains(finest.value)


def test_stability_is_lost_near_a_twentieth() -> None:
    for jd, near in [(0.02, 0.0487), (0.07, 0.0486), (0.1, 0.0503), (0.3, 0.18)]:
        loss = q0_loss(jd, 1e-7)
        assert float(loss) == pytest.approx(near, rel=0.02)
        assert loss.error < 1e-6
        tracker = CurveTracker(functional(Chain(1, jd)))
        below, above = (
            q0_at(jd, tracker.solve(float(loss) + k * float(loss.error), 1e-11)) for k in (-1, 1)
        )
        assert below.value > 0 > above.value


def test_two_tolerances_agree() -> None:
    rough, fine = q0_loss(0.15, 1e-5), q0_loss(0.15, 1e-9)
    assert rough.contains(fine.value)


def test_strong_couplings_keep_it() -> None:
    with pytest.raises(NotConvergedError, match="M0 is positive"):
        q0_loss(0.5)


def test_bad_arguments() -> None:
    with pytest.raises(InvalidInputError, match="level"):
        q0_stability(0.1, 0.1, 2.0, 0.5, 0)
    with pytest.raises(InvalidInputError, match="tol"):
        q0_loss(0.1, 0.0)
