"""The curve y*(d): continuation, slope, both ends, verdicts, and what happens when it is lost."""

import math
from dataclasses import replace

import numpy as np
import pytest

from rmtheory import Chain, InvalidInputError, NotConvergedError, OutsideValidityError
from rmtheory.annealed import entropy_array
from rmtheory.base.gaussian import P
from rmtheory.local_entropies import points as results
from rmtheory.local_entropies.curves import CurveStoppedError, Verdict, curve, monotonicity
from rmtheory.local_entropies.dilute_gas import (
    SmearedGas,
    gas_of,
    small_distance,
    smeared_gas,
)
from rmtheory.local_entropies.functional import Refined
from rmtheory.local_entropies.points import ystar
from rmtheory.local_entropies.solve import (
    CurveTracker,
    check_physical,
    count_zeros,
    follow,
    functional,
)

pytestmark = pytest.mark.numerical

CORE = Chain(1, 0.1)


# --- the data set


def test_a_curve_is_its_points() -> None:
    distances = [0.3, 0.003, 0.05]
    counts: list[int] = []
    data = curve(CORE, distances, progress=counts.append)
    assert counts == [1, 2, 3]
    assert data.d.values.tolist() == sorted(distances)
    for d in distances:
        alone, point = ystar(CORE, d), data.sel(d=d)
        for name in ("y_star", "internal", "slope", "q0_stability"):
            estimate = getattr(alone, name)
            error = float(point[f"{name}_error"]) + estimate.error
            assert abs(float(point[name]) - estimate.value) <= error, name
        assert float(point.residual) < 1e-12
        assert float(point.qhat[0]) == pytest.approx(alone.qhat[0].value, rel=1e-10)
    assert np.all(data.internal_error.values < 1e-11)
    assert data.qhat.dims == ("d", "layer")
    assert np.isfinite(data.gas_internal.sel(d=0.003))


def test_the_start_of_the_curve_does_not_matter() -> None:
    model = functional(Chain(1, 0.05))
    down = [p.moments for p in follow(model, [0.45, 0.2, 0.05, 0.01, 0.002], 1e-11)]
    up = [p.moments for p in follow(model, [0.002, 0.01, 0.05, 0.2, 0.45], 1e-11)][::-1]
    for a, b in zip(down, up, strict=True):
        assert a.phi == pytest.approx(b.phi, abs=1e-12)
        assert a.y == pytest.approx(b.y, rel=1e-8)


def test_y_star_grows_towards_both_ends() -> None:
    y = curve(Chain(1, 0.05), np.geomspace(5e-4, 0.48, 16).tolist()).y_star.values
    least = int(np.argmin(y))
    assert 0 < least < 15
    assert np.all(np.diff(y[: least + 1]) < 0)
    assert np.all(np.diff(y[least:]) > 0)
    assert ystar(Chain(1, 0.05), 0.002).y_star.value == pytest.approx(8, abs=0.5)
    assert ystar(CORE, 0.002).y_star.value == pytest.approx(35, abs=1)


# --- the slope is the derivative


@pytest.mark.parametrize(("jd", "d"), [(0.1, 0.1), (0.07, 0.005), (0.05, 0.02), (0.3, 0.4)])
def test_the_slope_of_the_core(jd: float, d: float) -> None:
    tracker, step = CurveTracker(functional(Chain(1, jd))), 2e-3 * d
    far, near = (
        tracker.solve(d + k * step, 1e-12).moments.phi
        - tracker.solve(d - k * step, 1e-12).moments.phi
        for k in (2, 1)
    )
    difference = (8 * near - far) / (12 * step)
    assert difference == pytest.approx(tracker.solve(d, 1e-11).moments.slope, abs=2e-8)


@pytest.mark.parametrize(
    "chain", [Chain(2, 0, 0.45), Chain(2, 0.05, lam_left=0.4, lam_right=0.2)], ids=str
)
def test_the_slope_of_two_layers(chain: Chain) -> None:
    tracker, d, step = CurveTracker(functional(chain)), 0.05, 2e-3
    above, below = (tracker.solve(d + k * step, 1e-9).moments.phi for k in (1, -1))
    slope = tracker.solve(d, 1e-9).moments.slope
    assert (above - below) / (2 * step) == pytest.approx(slope, abs=3e-4)
    far, further = (tracker.solve(d + 2 * k * step, 1e-9).moments.phi for k in (1, -1))
    better = (8 * (above - below) - (far - further)) / (12 * step)
    assert better == pytest.approx(slope, abs=3e-6)


# --- d -> 0: the dilute gas of flips


def test_the_gas_of_the_core_in_closed_form() -> None:
    jd, d = 0.1, 1e-5
    limit = small_distance(Chain(1, jd), d)
    C = limit.allowed[0]
    p = 2 * float(P(jd)) - 1
    sigma = -C * math.log(C) - (1 - C) * math.log1p(-C)
    sigma += C * math.log(2 * p) + (1 - C) * math.log1p(-p)
    assert sigma == pytest.approx(0, abs=1e-12)
    assert 2 * p / (1 + p) < C
    assert limit.internal == pytest.approx(d / 2 * math.log(2 * math.e * C / d), rel=1e-12)
    w = math.log(C * (1 - p) / (2 * p * (1 - C)))
    assert limit.y_star == pytest.approx(2 * C * w / d, rel=1e-12)


@pytest.mark.parametrize("jd", [0.1, 0.3])
def test_the_curve_tends_to_the_gas(jd: float) -> None:
    distances = [5e-5, 1e-4, 3e-4, 1e-3] if jd < 0.2 else [5e-4, 1e-3, 3e-3, 1e-2]
    data = curve(Chain(1, jd), distances)
    off = np.abs(data.internal.values / data.gas_internal.values - 1)
    share = off / np.sqrt(data.d.values * np.log(1 / data.d.values))
    # It shrinks at least like sqrt(d log 1/d), to a constant.
    assert np.all(np.diff(share) > 0)
    assert share[0] < 2
    assert np.all(np.diff(np.abs(data.slope.values - data.gas_slope.values)) > 0)
    gas = [small_distance(Chain(1, jd), d).y_star for d in distances]
    assert np.all(np.diff(np.abs(data.y_star.values / gas - 1)) > 0)


def test_the_gas_slope_is_the_derivative_of_its_entropy() -> None:
    for chain in (CORE, Chain(2, 0.05, 0.3), Chain(2, 0.05, lam_left=0.4, lam_right=0.2)):
        d, step = 1e-4, 1e-7
        above, below = (small_distance(chain, d + k * step).internal for k in (1, -1))
        slope = small_distance(chain, d).slope
        assert (above - below) / (2 * step) == pytest.approx(slope, rel=1e-5), chain


def test_the_gas_of_two_layers() -> None:
    # No lambda: two cores, up to the flips of both spins of a column, of relative order d.
    one, two = small_distance(CORE, 1e-6), small_distance(Chain(2, 0.1, 0), 1e-6)
    assert two.internal == pytest.approx(one.internal, rel=1e-6)
    assert two.y_star == pytest.approx(one.y_star, rel=1e-5)
    # No J_D: only both spins can flip together.
    both = small_distance(Chain(2, 0, 0.5), 1e-4)
    assert both.allowed[0] == both.allowed[1] == 0
    assert both.internal == pytest.approx(
        0.5 * 1e-4 / 2 * math.log(2 * math.e * both.allowed[2] / 1e-4), rel=1e-10
    )
    # The classes of columns add up to the annealed entropy.
    for chain in (CORE, Chain(2, 0.2, 0.5), Chain(2, 0.3, lam_left=0.1, lam_right=-0.6)):
        total = math.log(sum(gas_of(chain).sharp().class_weights.values())) / chain.finite_layers
        value, _ = entropy_array(chain.layers, chain.jd, chain.lam_left, chain.lam_right)
        assert total == pytest.approx(float(value), abs=1e-12), chain


def test_outside_the_gas() -> None:
    with pytest.raises(OutsideValidityError, match="beyond the dilute regime"):
        small_distance(Chain(1, 0.02), 0.4)
    with pytest.raises(OutsideValidityError, match=r"y\* is not of order 1/d"):
        small_distance(Chain(1, 0.7), 1e-4)  # above J = .6745
    # Without self-coupling every fixed point is isolated; at 1e-300 it is so in double precision.
    for chain in (Chain(1, 0), Chain(1, 1e-300), Chain(2, 0, 0), Chain(2, 0, 1e-300)):
        with pytest.raises(OutsideValidityError, match="no flip leaves a column satisfied"):
            small_distance(chain, 1e-4)
    with pytest.raises(InvalidInputError, match="layers must be 1 or 2"):
        small_distance(Chain(3, 0.1, 0.1), 1e-4)


# --- windows smeared by sqrt(2d)


def beside_the_gas(chain: Chain, d: float, tol: float) -> tuple[Refined, SmearedGas]:
    model = functional(chain)
    point = CurveTracker(model).solve(d, tol)
    gas = model.gas(point)
    assert gas is not None
    return point, gas


@pytest.mark.parametrize(
    ("jd", "distances"),
    [(0.005, (1e-6, 5e-7)), (0.03, (1e-4, 1e-5)), (0.1, (1e-3, 1e-4)), (0.3, (1e-2, 1e-3))],
)
def test_smeared_windows_hold_uniformly_in_d_over_jd_squared(
    jd: float, distances: tuple[float, float]
) -> None:
    """The full solution is off by the first order in qhat, and beyond it by the second."""
    for d in distances:
        point, gas = beside_the_gas(Chain(1, jd), d, 1e-13)
        phi, leading = point.moments.phi, gas.internal - gas.correction
        assert gas.qhat < 0.05
        off, left = phi - leading, phi - gas.internal
        assert abs(off / gas.correction - 1) < 1.5 * gas.qhat + point.phi_error / gas.correction
        assert abs(left) <= gas.error + point.phi_error
        assert abs(point.moments.slope - gas.slope) <= gas.slope_error + point.slope_error


@pytest.mark.parametrize(
    "chain",
    [
        Chain(2, 0.005, 0.43),
        Chain(2, 0.05, lam_left=0.4, lam_right=0.2),
    ],
)
def test_smeared_windows_of_two_layers(chain: Chain) -> None:
    point, gas = beside_the_gas(chain, 1.5e-3, 1e-7)
    assert gas.dilute
    assert abs(point.moments.phi - gas.internal) <= gas.error
    assert gas.error < 0.02 * gas.internal
    assert abs(point.moments.slope - gas.slope) <= gas.slope_error
    # The limit with sharp windows is far off.
    assert abs(point.moments.phi / small_distance(chain, 1.5e-3).internal - 1) > 0.1


def test_smeared_windows_become_sharp() -> None:
    distances = (1e-6, 1e-8)
    sharp = [small_distance(CORE, d).internal for d in distances]
    off = [abs(smeared_gas(CORE, distances[k]).internal / sharp[k] - 1) for k in (0, 1)]
    # Like sqrt(d log 1/d).
    assert off[1] < 0.2 * off[0] < 0.01


def test_the_slope_of_the_smeared_gas_is_the_derivative_of_its_entropy() -> None:
    for chain, guess in ((CORE, 102.0), (Chain(2, 0.05, 0.3), 50.0)):
        d, step = 1e-3, 1e-6
        gas = smeared_gas(chain, d, (guess, np.array([-4.0])))
        start = gas.y_star, np.array(gas.log_rho)
        above, below = (smeared_gas(chain, d + k * step, start).internal for k in (1, -1))
        assert (above - below) / (2 * step) == pytest.approx(gas.slope, rel=1e-5), chain


def test_two_layers_without_coupling_are_two_cores() -> None:
    one, two = smeared_gas(CORE, 1e-4), smeared_gas(Chain(2, 0.1, 0), 1e-4)
    assert two.internal == pytest.approx(one.internal, rel=1e-6)
    assert two.y_star == pytest.approx(one.y_star, rel=1e-5)


def test_a_gas_whose_slope_turns_negative_does_not_rise() -> None:
    """At J_D = .005 few columns allow a flip until d is below 1e-5."""
    gas = smeared_gas(Chain(1, 0.005), 1e-6)
    assert gas.rises()
    low = smeared_gas(Chain(1, 0.005), 1e-5, (11.5, np.array([-6.5])))
    assert low.slope < 0
    assert not low.rises()


# --- d -> 1/2: independent configurations


def far_end(chain: Chain, power: int, distances: list[float], tol: float) -> None:
    """S_I* tends to the annealed entropy linearly in q1, and y* q1^power to a constant."""
    points = [point.moments for point in follow(functional(chain), distances, tol)]
    value, _ = entropy_array(chain.layers, chain.jd, chain.lam_left, chain.lam_right)
    lost = np.array([float(value) - m.phi for m in points])
    assert np.all(lost > 0)
    assert lost[:-1] / lost[1:] == pytest.approx(2, abs=0.1)
    constant = np.array([m.y * m.q1**power for m in points])
    limits = 2 * constant[1:] - constant[:-1]  # q1 halves from one to the next
    assert limits == pytest.approx(limits[-1], rel=3e-3)
    assert np.abs(constant[1:] / limits - 1).max() < 0.05


@pytest.mark.parametrize("jd", [0.0731, 0.1])
def test_the_far_end(jd: float) -> None:
    far_end(Chain(1, jd), 1, [0.48, 0.49, 0.495, 0.4975], 1e-9)


@pytest.mark.parametrize("jd", [0.3, 0.4])
def test_the_far_end_at_strong_self_coupling(jd: float) -> None:
    """S_E is still positive when y q1 is large: y* then grows like 1/q1^2."""
    far_end(Chain(1, jd), 2, [0.48, 0.49, 0.495], 1e-9)


def test_the_far_end_of_two_layers() -> None:
    far_end(Chain(2, 0, 0.5), 1, [0.47, 0.485, 0.4925], 1e-7)


# --- lost, or not unique


def test_what_was_found_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    solve = CurveTracker.solve

    def fragile(self: CurveTracker, d: float, tol: float) -> Refined:
        if d < 0.02:
            raise NotConvergedError(f"the branch was lost at d = {d:g}")
        return solve(self, d, tol)

    whole = curve(CORE, [0.1, 0.05])
    monkeypatch.setattr(CurveTracker, "solve", fragile)
    with pytest.raises(CurveStoppedError, match=r"lost at d = 0\.01") as caught:
        curve(CORE, [0.001, 0.1, 0.01, 0.05])
    found = caught.value.solved
    assert found.d.values.tolist() == [0.05, 0.1]
    assert found.internal.values.tolist() == whole.internal.values.tolist()
    # Nothing found, nothing to keep.
    with pytest.raises(NotConvergedError, match=r"lost at d = 0\.01") as caught_plain:
        curve(CORE, [0.01, 0.001])
    assert not isinstance(caught_plain.value, CurveStoppedError)


def test_the_continuation_says_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    advance = CurveTracker._advance

    def fragile(self: CurveTracker, parameter: float) -> float:
        if parameter < math.log(0.01 / 0.49):
            raise NotConvergedError("no root")
        return advance(self, parameter)

    monkeypatch.setattr(CurveTracker, "_advance", fragile)
    with pytest.raises(NotConvergedError, match=r"towards d = 0\.001 stopped at d = 0\.0(1|09)"):
        CurveTracker(functional(CORE)).solve(0.001, 1e-8)


def test_no_y_star() -> None:
    # Opposite couplings at J_D = 0: S_a is far below 0.
    with pytest.raises(NotConvergedError, match=r"S_E = -0?.* no y\* > 1 exists"):
        ystar(Chain(2, 0, lam_left=1, lam_right=-1), 0.1)


def test_several_zeros_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "count_zeros", lambda model, root, reach: 3)
    with pytest.raises(NotConvergedError, match=r"3 zeros in y at d = 0\.1"):
        ystar(CORE, 0.1)
    assert ystar(CORE, 0.1, check_zeros=False).y_star.value == pytest.approx(5.665006)


def test_the_zeros_are_counted() -> None:
    model = functional(CORE)
    star = CurveTracker(model).solve(0.1, 1e-9).moments
    assert count_zeros(model, star) == 1
    # Looking only below the zero one finds none.
    low = replace(star, y=1.5)
    assert count_zeros(model, low, reach=2.0) == 0


def test_spurious_roots_are_refused() -> None:
    moments = CurveTracker(functional(CORE)).solve(0.1, 1e-9).moments
    check_physical(moments, 0.1)
    with pytest.raises(NotConvergedError, match=r"y = 0\.5 < 1 at d = 0\.1 is spurious"):
        check_physical(replace(moments, y=0.5), 0.1)
    with pytest.raises(NotConvergedError, match="above log 2"):
        check_physical(replace(moments, mean_log=moments.mean_log + 0.7), 0.1)


# --- verdicts


@pytest.mark.parametrize(
    ("jd", "verdict"),
    [
        (0.1, Verdict.MONOTONE),
        (0.0732, Verdict.MONOTONE),
        (0.07, Verdict.NOT_MONOTONE),
        (0.05, Verdict.NOT_MONOTONE),
    ],
)
def test_verdicts_on_the_core(jd: float, verdict: Verdict) -> None:
    result = monotonicity(Chain(1, jd))
    assert result.verdict is verdict
    assert (result.least_slope.value > 0) is (verdict is Verdict.MONOTONE)
    assert abs(result.least_slope.value) > result.least_slope.error
    # The numbers themselves, by brute force.
    data = curve(Chain(1, jd), np.geomspace(1e-3, 0.45, 20).tolist())
    assert np.all(np.diff(data.internal.values) > 0) == (verdict is Verdict.MONOTONE)
    assert data.slope.values.min() >= result.least_slope.value - result.least_slope.error
    # The two forms are joined where they come together.
    assert result.d_join < 3e-3
    assert abs(result.difference) < 1e-2
    assert result.slope_gas == pytest.approx(result.slope_join, abs=0.05)


def test_the_verdict_depends_on_the_interval() -> None:
    # At J = .07 the slope is negative near d = .005 only.
    assert monotonicity(Chain(1, 0.07), d_max=0.002).verdict is Verdict.MONOTONE


def test_the_verdict_on_two_layers() -> None:
    result = monotonicity(Chain(2, 0, 0.44))
    assert result.verdict is Verdict.NOT_MONOTONE
    assert result.least_slope.value == pytest.approx(-0.0621871, abs=1e-5)
    assert result.d_least == pytest.approx(0.00499, abs=1e-4)
    # The gas with smeared windows takes over.
    assert abs(result.difference) < 1e-2
    assert result.slope_gas == pytest.approx(result.slope_join, abs=0.05)


@pytest.mark.parametrize("d_max", [0, 0.5, -1, float("nan")])
def test_bad_intervals(d_max: float) -> None:
    with pytest.raises(InvalidInputError, match="d_max must be"):
        monotonicity(CORE, d_max)
