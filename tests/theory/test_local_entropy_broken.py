"""The branch q0 > 0: functional, limits, saddle and y*, against plain quadrature and limits."""

import json
import math

import numpy as np
import pytest
import sympy

from rmtheory import Chain, InvalidInputError, NotConvergedError
from rmtheory.base.gaussian import P
from rmtheory.cli import run
from rmtheory.local_entropies.broken import find_saddle
from rmtheory.local_entropies.broken_averages import broken_moments
from rmtheory.local_entropies.broken_branch import (
    broken_entropy,
    broken_ystar,
    q0_loss,
    ystar_divergence,
)
from rmtheory.local_entropies.core import core_moments
from rmtheory.local_entropies.points import local_entropy, ystar
from rmtheory.replica.symmetric import functional

pytestmark = pytest.mark.numerical

#: jd, d, y, qhat1, q0, qhat0
POINTS = [
    (0.1, 0.1, 5.7, 0.137, 0.164, 0.0017),
    (0.3, 0.25, 2.5, 0.6, 0.3, 0.2),
    (-0.2, 0.2, 3.0, 0.9, 0.15, 0.2),
]


def plain(jd: float, d: float, y: float, qhat1: float, q0: float, qhat0: float) -> list[float]:
    """phi, E<log zeta>, E<m^2> and E<m>^2 by Gauss-Hermite nodes in all four dimensions."""
    q1 = 1 - 2 * d
    z, w = np.polynomial.hermite_e.hermegauss(60)
    w = w / w.sum()
    outer, wo = np.polynomial.hermite_e.hermegauss(30)
    wo = wo / wo.sum()
    h1 = math.sqrt(qhat1 - qhat0) * z[:, None]
    x1 = math.sqrt(q1 - q0) * z
    total = np.zeros(4)
    for t0, wt in zip(outer, wo, strict=True):
        for z0, wz in zip(outer, wo, strict=True):
            h, x = math.sqrt(qhat0) * t0 + h1, math.sqrt(q0) * z0 + x1
            up = np.exp(h) * P((jd + x) / math.sqrt(1 - q1))
            down = np.exp(-h) * P((jd - x) / math.sqrt(1 - q1))
            zeta, m = up + down, (up - down) / (up + down)
            weight = np.outer(w, w) * zeta**y
            norm = weight.sum()
            mean = (weight * m).sum() / norm
            total += (
                wt
                * wz
                * np.array(
                    [
                        math.log(norm),
                        (weight * np.log(zeta)).sum() / norm,
                        (weight * m * m).sum() / norm,
                        mean**2,
                    ]
                )
            )
    phi = -qhat1 / 2 + (1 - y) * qhat1 * q1 / 2 + y * qhat0 * q0 / 2 + total[0] / y
    return [phi, *total[1:]]


@pytest.mark.parametrize("point", POINTS)
def test_it_is_the_four_fold_integral(point: tuple[float, ...]) -> None:
    result = broken_moments(Chain(1, point[0]), *point[1:], 2)
    values = [result.phi, result.mean_log, result.overlap1, result.overlap0]
    assert values == pytest.approx(plain(*point), abs=3e-7)


@pytest.mark.parametrize("point", POINTS)
def test_the_stated_derivatives_are_those_of_phi(point: tuple[float, ...]) -> None:
    _jd, d, y, qhat1, q0, qhat0 = point
    result = broken_moments(Chain(1, point[0]), *point[1:], 2)

    def slope(place: int) -> float:
        step = 1e-4 * point[place]
        values = []
        for k in (-2, -1, 1, 2):
            moved = list(point)
            moved[place] += k * step
            values.append(broken_moments(Chain(1, moved[0]), *moved[1:], 2).phi)
        a, b, c, e = values
        return (a - 8 * b + 8 * c - e) / (12 * step)

    q1 = 1 - 2 * d
    assert slope(3) == pytest.approx((y - 1) / 2 * (result.overlap1 - q1), abs=1e-9)
    assert slope(5) == pytest.approx(y / 2 * (q0 - result.overlap0), abs=1e-8)
    assert slope(4) == pytest.approx(y / 2 * (qhat0 - result.force0), abs=1e-9)
    assert slope(1) == pytest.approx((y - 1) * (qhat1 - result.force1), abs=1e-8)
    assert slope(1) == pytest.approx(result.slope, abs=1e-8)
    # S_E = -y^2 d phi/dy and S_I = phi - S_E/y
    assert -y * y * slope(2) == pytest.approx(result.external, abs=1e-7)
    assert result.internal == pytest.approx(result.phi - result.external / y, abs=1e-12)


def test_without_q0_it_is_the_functional_of_q0_zero() -> None:
    for jd, d, y, qhat1, *_ in POINTS:
        broken = broken_moments(Chain(1, jd), d, y, qhat1, 0.0, 0.0, 2)
        known = core_moments(jd, d, y, np.array([qhat1]), 4)
        assert broken.phi == pytest.approx(known.phi, abs=1e-12)
        assert broken.external == pytest.approx(known.external, abs=1e-11)
        assert broken.slope == pytest.approx(known.slope, abs=1e-11)


@pytest.mark.parametrize("jd", [-0.3, 0.1, 0.5])
def test_at_y_1_it_is_the_replica_symmetric_functional(jd: float) -> None:
    for q0, qhat0 in ((0.3, 0.4), (0.05, 0.01)):
        known = functional(Chain(1, jd), q0, qhat0)
        for d, qhat1 in ((0.1, 0.6), (0.3, 0.45)):
            broken = broken_moments(Chain(1, jd), d, 1.0, qhat1, q0, qhat0, 2)
            assert broken.phi == pytest.approx(float(known.value), abs=1e-11)
            assert broken.overlap0 == pytest.approx(float(known.overlap[0]), abs=1e-11)
            assert broken.force0 == pytest.approx(float(known.force[0]), abs=1e-11)


def test_strong_self_coupling_counts_all_configurations() -> None:
    # J -> infinity: P = 1, free spins in the fields h alone.
    d, y, qhat1, qhat0, q0 = 0.2, 3.0, 0.7, 0.3, 0.1
    result = broken_moments(Chain(1, 60.0), d, y, qhat1, q0, qhat0, 2)
    t = np.arange(-14, 14, 0.05)
    w = np.exp(-0.5 * t * t)
    w = w / w.sum()
    inner = np.log(
        (2 * np.cosh(math.sqrt(qhat0) * t[:, None] + math.sqrt(qhat1 - qhat0) * t)) ** y @ w
    )
    expected = -qhat1 * d - y / 2 * (qhat1 * (1 - 2 * d) - qhat0 * q0) + float(w @ inner) / y
    assert result.phi == pytest.approx(expected, abs=1e-12)
    assert result.force0 == pytest.approx(0.0, abs=1e-12)


def test_the_saddle_at_a_tenth() -> None:
    point = broken_ystar(Chain(1, 0.1), 0.1)
    assert point.broken
    assert float(point.q0) == pytest.approx(0.164431, abs=1e-6)
    assert float(point.change) == pytest.approx(-2.670e-5, abs=1e-8)
    assert point.residual is not None
    assert point.residual < 1e-11
    # Independent of the solver: phi by plain rules is stationary and equals S_I* = phi.
    at = (0.1, 0.1, *(float(x) for x in (point.y, point.qhat1, point.q0, point.qhat0)))
    middle = plain(*at)
    assert middle[0] == pytest.approx(float(point.phi), abs=1e-7)
    for place in (2, 3, 4, 5):
        step = 0.05 * at[place]
        low, high = (plain(*at[:place], at[place] + k * step, *at[place + 1 :])[0] for k in (-1, 1))
        # second order only: the first would be of the order of the terms, 0.05
        assert abs(high - low) < 4e-6
    assert float(point.slope or 0) == pytest.approx(0.20319, abs=1e-5)


def test_the_slope_is_that_of_the_curve() -> None:
    chain, d, e = Chain(1, 0.2), 0.15, 1e-3
    values = [float(broken_ystar(chain, d + k * e).internal) for k in (-2, -1, 1, 2)]
    a, b, c, f = values
    slope = broken_ystar(chain, d).slope
    assert slope is not None
    assert (a - 8 * b + 8 * c - f) / (12 * e) == pytest.approx(float(slope), abs=1e-9)


def test_the_onset_is_continuous_and_of_third_order() -> None:
    chain = Chain(1, 0.1)
    onset = float(q0_loss(0.1))
    assert not broken_ystar(chain, onset * 0.999).broken
    near, far = (broken_ystar(chain, onset * (1 + e)) for e in (1e-3, 2e-3))
    assert float(far.q0) / float(near.q0) == pytest.approx(2, rel=2e-3)
    tiny, small = (broken_ystar(chain, onset * (1 + e)) for e in (0.01, 0.02))
    assert float(small.change) / float(tiny.change) == pytest.approx(8, rel=0.02)


def test_the_correction_is_minus_m0_cubed() -> None:
    """Near the onset phi = phi_0 + M0 q0^2/(4y) + c q0^3, so that change = M0 q0^2/(12 y)."""
    onset = float(q0_loss(0.1))
    d, y = onset * 1.005, float(ystar(Chain(1, 0.1), onset * 1.005).y_star)
    point = broken_entropy(Chain(1, 0.1), d, y)
    expected = float(point.q0_stability) * float(point.q0) ** 2 / (12 * y)
    assert float(point.change) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(("jd", "d"), [(0.0731077, 0.005653), (0.0600992, 0.015864), (0.1, 0.04)])
def test_there_is_no_such_saddle_at_the_thresholds(jd: float, d: float) -> None:
    point = broken_ystar(Chain(1, jd), d)
    assert not point.broken
    assert float(point.q0_stability) > 0.01
    known = ystar(Chain(1, jd), d)
    assert point.phi == known.internal
    assert point.slope == known.slope
    assert float(point.change) == 0


def test_at_strong_coupling_the_onset_jumps() -> None:
    # At J_D = 0.4 a saddle with large q0 lies below q0 = 0 although M0 > 0.
    symmetric = local_entropy(Chain(1, 0.4), 0.32, 73.0)
    point = broken_entropy(Chain(1, 0.4), 0.32, 73.0)
    assert float(point.q0_stability) > 0.02
    assert 0.6 * 0.36 < float(point.q0) < 0.36
    assert float(point.change) < -1e-5
    assert float(point.phi) == pytest.approx(float(symmetric.phi) + float(point.change))
    assert find_saddle(Chain(1, 0.4), 0.22, 40.0, 0.02, 0.07) is None


def test_beyond_a_finite_distance_y_star_is_not_found() -> None:
    assert float(broken_ystar(Chain(1, 0.1), 0.28).y) == pytest.approx(32.8752, abs=1e-3)
    with pytest.raises(NotConvergedError, match=r"S_E = .* is still positive"):
        broken_ystar(Chain(1, 0.1), 0.4)


def test_errors_hold_against_a_finer_rule() -> None:
    for jd, d in ((0.06, 0.24), (0.3, 0.24), (0.2, 0.1)):
        point = broken_ystar(Chain(1, jd), d)
        at = (d, *(float(x) for x in (point.y, point.qhat1, point.q0, point.qhat0)))
        finest = broken_moments(Chain(1, jd), *at, 3)
        assert point.phi.contains(finest.phi)
        residual = [finest.overlap1 - finest.q1, finest.overlap0 - finest.q0, finest.external]
        assert np.abs(residual).max() < 1e-7
        assert abs(finest.force0 / finest.qhat0 - 1) < 1e-6


def test_bad_arguments() -> None:
    with pytest.raises(InvalidInputError, match="layers must be 1 or 2 for the branch q0 > 0"):
        broken_ystar(Chain(3, 0.1, 0.2), 0.1)
    with pytest.raises(InvalidInputError, match="lam_left and lam_right must be equal for the br"):
        broken_ystar(Chain(2, 0.1, lam_left=0.2, lam_right=0.3), 0.1)
    with pytest.raises(InvalidInputError, match="y must be from 1 to 300"):
        broken_entropy(Chain(1, 0.1), 0.1, 0.5)
    with pytest.raises(InvalidInputError, match="d must be strictly between"):
        broken_ystar(Chain(1, 0.1), 0.5)


def test_the_command_line_has_the_branch(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ystar", "--jd", ".1", "--d", ".1", "--q0", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert float(result["q0"]["value"]) == pytest.approx(0.164431, abs=1e-6)
    assert result["change"].keys() == {"value", "error", "tier", "method"}
    assert run(["local-entropy", "--jd", ".1", "--d", ".1", "--y", "3", "--q0", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["q0"]["value"] == "0"
    assert float(result["phi"]["value"]) == pytest.approx(0.03282716839, abs=1e-10)
    for words in (["--digits", "20"], ["--layers", "3", "--lam", ".1"]):
        assert run(["ystar", "--jd", ".1", "--d", ".1", "--q0", *words]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_y_star_diverges_where_the_solved_points_lead() -> None:
    limit = ystar_divergence(0.1)
    assert limit.error < 1e-4
    # 1/y* is close to linear in d there: the line through two points of the branch
    a, b = (1 / float(broken_ystar(Chain(1, 0.1), d).y) for d in (0.285, 0.29))
    assert float(limit) == pytest.approx(0.29 + 0.005 * b / (a - b), abs=1e-3)
    with pytest.raises(InvalidInputError, match=r"jd must be between 0 and 0\.15"):
        ystar_divergence(0.2)


def test_the_second_order_coefficient_symbolically() -> None:
    """E log I = log F - (1/4) sum_ab V_a V_b (F_ab/F)^2 + O(V^3), for any even F(h, x).

    The inner Gaussians lose the variances V = (qhat0, q0) and the outer ones have them.
    """
    h, x, a, k, g = sympy.symbols("h x a k g")
    quartic = sympy.symbols("c0:5")
    F = 1 + (a * h**2 + 2 * k * h * x + g * x**2) / 2
    F += sum(c * h ** (4 - n) * x**n for n, c in enumerate(quartic))
    v, w = sympy.symbols("v w")

    def heat(f: sympy.Expr) -> sympy.Expr:
        """(v d_h^2 + w d_x^2)/2, whose exponential convolves with a Gaussian."""
        return (v * sympy.diff(f, h, 2) + w * sympy.diff(f, x, 2)) / 2

    once, twice = -heat(F), heat(heat(F)) / 2
    # log(F + e once + e^2 twice), order by order, and the outer convolution of each
    orders = [sympy.log(F), once / F, twice / F - (once / F) ** 2 / 2]
    zero = {h: 0, x: 0}
    first = (orders[1] + heat(orders[0])).subs(zero)
    second = (orders[2] + heat(orders[1]) + heat(heat(orders[0])) / 2).subs(zero)
    assert sympy.expand(first) == 0
    expected = -(a**2 * v**2 + 2 * k**2 * v * w + g**2 * w**2) / 4
    assert sympy.expand(second - expected) == 0
