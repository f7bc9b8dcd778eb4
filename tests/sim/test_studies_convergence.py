"""Thresholds: intervals, the 50 % point with its error, the trend, batches."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from rmsim.dynamics import Status
from rmsim.studies import compare
from rmsim.studies.convergence import (
    analyse,
    gather,
    measure,
    sweep_of,
)
from rmsim.studies.success_curves import (
    REJECTED,
    CrossingStatus,
    crossing,
    fit_trends,
    limit_of,
)
from rmsim.studies.threshold_design import Design
from rmsim.sweep import Local, Serial, run_sweep
from rmsim.sweep.definition import batches, sample_range
from rmtheory import InvalidInputError
from rmtheory.base.statistics import Method, interval

pytestmark = pytest.mark.numerical

GRID = np.linspace(0.4, 1.0, 13)


def small(**changes: object) -> Design:
    settings = {"sizes": (24, 48), "control": "jd", "values": (0.0, 0.3, 0.9), "samples": 12}
    settings |= {"max_sweeps": 200, "device": "cpu", "batch": 5}
    return Design.of(**(settings | changes))  # type: ignore[arg-type]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """As in the processes of a sweep, and faster for networks as small as these."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# Intervals


def test_intervals_against_closed_forms() -> None:
    low, high = interval(0, 10, 0.95, "exact")  # 1 - (alpha/2)^(1/m)
    assert (low, high) == (0, pytest.approx(1 - 0.025**0.1, abs=1e-12))
    low, high = interval(3, 20, 0.9)
    z = stats.norm.ppf(0.95)
    centre, half = (
        (3 + z * z / 2) / (20 + z * z),
        z * np.sqrt(3 * 17 / 20 + z * z / 4) / (20 + z * z),
    )
    assert [low, high] == pytest.approx([centre - half, centre + half], abs=1e-12)
    assert low <= 3 / 20 <= high
    with pytest.raises(InvalidInputError, match="successes"):
        interval(3, 2)


@pytest.mark.parametrize("method", ["wilson", "exact"])
def test_intervals_against_scipy(method: Method) -> None:
    for k, m in ((0, 7), (7, 7), (1, 7), (400, 1000)):
        low, high = interval(k, m, 0.8, method)
        wanted = stats.binomtest(k, m).proportion_ci(0.8, method)
        assert [low, high] == pytest.approx([wanted.low, wanted.high], abs=1e-9)


@given(m=st.integers(1, 60), p=st.floats(0.01, 0.99))
def test_exact_interval_covers_at_least_what_it_says(m: int, p: float) -> None:
    k = np.arange(m + 1)
    low, high = interval(k, m, 0.9, "exact")
    covered = (low <= p) & (p <= high)
    assert stats.binom.pmf(k, m, p)[covered].sum() >= 0.9 - 1e-12


# The 50 % point


def test_crossing_is_unbiased_and_its_error_is_the_scatter() -> None:
    generator = np.random.default_rng(7)
    true, repeats = 0.618, 150
    p = special.expit((GRID - true) / 0.03)
    found = [
        crossing(GRID, generator.binomial(60, p), np.full(13, 60), seed=k, resamples=200)
        for k in range(repeats)
    ]
    assert {c.status for c in found} == {CrossingStatus.FOUND}
    value = np.array([c.value for c in found], dtype=float)
    error = np.array([c.error for c in found], dtype=float)
    assert abs(value.mean() - true) < 4 * value.std() / np.sqrt(repeats)
    # What the logistic and the interpolated middle differ by chance makes it a little larger.
    assert 0.9 < error.mean() / value.std() < 1.35
    pulls = np.abs(value - true) / error
    assert 0.55 < np.mean(pulls < 1) < 0.8
    assert np.mean(np.array([c.p_value for c in found]) < 0.1) < 0.2


def test_a_curve_that_fits_poorly_has_a_larger_error() -> None:
    # 1 - 2^(-exp((x - 0.6)/w)) is not symmetric about its middle.
    p = 1 - np.exp2(-np.exp((GRID - 0.6) / 0.05))
    trials = np.full(13, 150)
    found = crossing(GRID, np.round(p * trials), trials)
    symmetric = crossing(GRID, np.round(special.expit((GRID - 0.6) / 0.05) * trials), trials)
    assert found.method == symmetric.method == "logistic"
    assert found.error is not None
    assert symmetric.error is not None
    assert found.p_value is not None
    assert found.p_value < 0.1
    assert found.error > 1.2 * symmetric.error


def test_where_some_samples_never_succeed_counts_are_interpolated() -> None:
    generator = np.random.default_rng(3)
    true = 0.6 + 0.01 * special.logit(0.5 / 0.9)  # where 0.9 of a logistic curve is 1/2
    p = 0.9 * special.expit((GRID - 0.6) / 0.01)
    found = [crossing(GRID, generator.binomial(100, p), np.full(13, 100)) for _ in range(20)]
    assert {c.method for c in found} == {"interpolation"}
    for c in found:
        assert c.width is None
        assert c.value is not None
        assert c.error is not None
        assert abs(c.value - true) < 3 * c.error
        assert c.error < 0.02  # the step is 0.05


@pytest.mark.parametrize(
    ("successes", "status"),
    [
        ([0, 0, 1, 4, 9], CrossingStatus.ABOVE),
        ([11, 15, 20, 20, 20], CrossingStatus.BELOW),
        ([0, 0, 0, 0, 0], CrossingStatus.ABOVE),
        ([20, 20, 20, 20, 20], CrossingStatus.BELOW),
        ([20, 18, 9, 2, 0], CrossingStatus.FALLING),
        ([9, 11, 9, 10, 11], CrossingStatus.UNRESOLVED),
    ],
)
def test_no_crossing_gives_a_reason_and_no_number(
    successes: list[int], status: CrossingStatus
) -> None:
    found = crossing([0.1, 0.2, 0.3, 0.4, 0.5], successes, [20] * 5)
    assert found.status is status
    assert str(found.status).startswith("none: ")
    assert (found.value, found.error, found.width, found.p_value) == (None,) * 4
    assert found.method == ""


def test_a_coarse_grid_says_so_and_its_error_is_the_step() -> None:
    found = crossing([0.1, 0.2, 0.4, 0.5], [0, 0, 25, 25], [25] * 4)
    assert found.status is CrossingStatus.COARSE
    assert found.value == pytest.approx(0.3, abs=0.01)
    assert found.error is not None
    assert 0.2 / np.sqrt(12) <= found.error < 0.1


def test_one_value_cannot_cross() -> None:
    assert crossing([0.3], [2], [10]).status is CrossingStatus.ABOVE
    assert crossing([0.3], [8], [10]).status is CrossingStatus.BELOW


def test_crossing_is_deterministic_and_checks_its_input() -> None:
    data = (GRID, np.arange(13), np.full(13, 12))
    assert crossing(*data, seed=3) == crossing(*data, seed=3)
    assert crossing(*data, seed=3) != crossing(*data, seed=4)
    with pytest.raises(InvalidInputError, match="increasing"):
        crossing([0.2, 0.1], [1, 1], [2, 2])
    with pytest.raises(InvalidInputError, match="counts"):
        crossing([0.1, 0.2], [1, 3], [2, 2])


# The trend


def test_trend_finds_the_form_that_made_the_data() -> None:
    n = np.array([100, 200, 400, 800, 1600, 3200])
    sigma = np.full(6, 0.004)
    noise = np.random.default_rng(5).normal(0, 0.004, 6)
    trends = fit_trends(n, 0.8 - 3 / np.sqrt(n) + noise, sigma)
    by_form = {trend.form: trend for trend in trends}
    true = by_form["a + b / sqrt(N)"]
    assert true.p_value > 0.05
    assert abs(true.a - 0.8) < 4 * true.a_error
    assert abs(true.b + 3) < 4 * true.b_error
    assert by_form["a + b sqrt(ln N)"].p_value < 1e-6
    limit = limit_of(trends)
    assert limit.value is not None
    assert limit.error is not None
    assert abs(limit.value - 0.8) < 3 * limit.error


def test_the_law_of_the_dynamics_gives_the_freezing_point() -> None:
    """Our 50 % points of the dynamics (docs/algorithms.md) extrapolate to J_dyn, not to 1.18."""
    n = np.array([200, 500, 1000, 2000, 4000, 8000])
    points = np.array([0.469, 0.575, 0.637, 0.683, 0.725, 0.745])
    errors = np.array([0.003, 0.003, 0.003, 0.003, 0.007, 0.011])
    (law,) = fit_trends(n, points, errors, law=True)
    assert law.c is not None
    assert np.allclose(law(n), law.a + law.b / np.sqrt(n) + law.c / n)
    assert law.p_value > 0.3
    limit = limit_of((law,))
    assert limit.value == law.a
    assert "theory without networks: 0.81" in limit.verdict
    assert abs(law.a - 0.814) < 2 * law.a_error < 0.05
    # The leading coefficient is negative, as flips that are too many have to fall below n(T).
    assert law.b < -4 * law.b_error
    # A line in 1/sqrt(N) leaves out the next order, and data without the law are refused.
    line = {trend.form: trend for trend in fit_trends(n, points, errors)}["a + b / sqrt(N)"]
    assert line.p_value < REJECTED
    other = limit_of(fit_trends(n, np.log(n), np.full(6, 1e-3), law=True))
    assert other.value is None
    assert "does not fit" in other.verdict
    assert fit_trends(n[:3], points[:3], errors[:3], law=True) == ()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, True),
        ({"p": 0.8}, True),
        ({"algorithm": "rbp"}, False),
        ({"symmetric": True}, False),
        ({"layers": 2, "lam_left": 0.1, "lam_right": 0.1}, False),
    ],
)
def test_which_designs_follow_the_law(settings: dict[str, Any], expected: bool) -> None:
    assert Design.of((20,), "jd", (0.5, 0.6), 5, **settings).follows_law is expected


def test_no_limit_is_claimed_where_growth_is_not_rejected() -> None:
    n, sigma = np.array([100, 200, 400, 800]), np.full(4, 0.01)
    limit = limit_of(fit_trends(n, 0.3 * np.sqrt(np.log(n)), sigma))
    assert (limit.value, limit.error) == (None, None)
    assert "ln ln N" in limit.verdict or "sqrt(ln N)" in limit.verdict
    assert "four sizes" in limit_of(fit_trends(n[:3], [0.5, 0.6, 0.65], sigma[:3])).verdict
    assert fit_trends(n[:2], [0.5, 0.6], sigma[:2]) == ()


def test_bound() -> None:
    assert compare.convergence_bound(500) == pytest.approx(np.sqrt(2 * np.log(500)), abs=1e-14)


# The measurement


def test_batches_cover_all_samples_once() -> None:
    pieces = [sample_range(text) for text in batches(12, 5)]
    assert [k for piece in pieces for k in piece] == list(range(12))
    with pytest.raises(InvalidInputError, match="samples"):
        sample_range("5:5")


def test_result_does_not_depend_on_jobs_batches_or_order(tmp_path: Path) -> None:
    runs = {
        "one": (small(), Serial()),
        "two": (small(), Local(2)),
        "other batches": (small(batch=7, values=(0.9, 0.3, 0.0)), Serial()),
    }
    found = {}
    for name, (design, backend) in runs.items():
        sweep = sweep_of(design, seed=1)
        assert run_sweep(sweep, tmp_path / name, backend).complete
        found[name] = analyse(gather(tmp_path / name, sweep), "jd", seed=1)
    assert int(found["one"]["trials"].min()) == 12
    for name in ("two", "other batches"):
        assert found[name].identical(found["one"])
    other = sweep_of(small(), seed=2)
    run_sweep(other, tmp_path / "other seed", Serial())
    assert not gather(tmp_path / "other seed", other)["sweeps"].equals(
        gather(tmp_path / "one", sweep_of(small(), seed=1))["sweeps"]
    )


def test_more_samples_keep_full_batches(tmp_path: Path) -> None:
    run_sweep(sweep_of(small()), tmp_path, Serial())
    more = sweep_of(small(samples=17))
    report = run_sweep(more, tmp_path, Serial())
    # Of 0:5, 5:10, 10:12 the last was not full; 10:15 and 15:17 are new at 6 places.
    assert (report.kept, report.computed) == (12, 12)
    data = analyse(gather(tmp_path, more), "jd", seed=0)
    assert set(data["trials"].values.flat) == {17}


def test_every_ending_of_a_search_is_counted_by_its_name(tmp_path: Path) -> None:
    """Likelihood optimisation and fast reinforcement fail in several ways at small J_D."""
    for algorithm, own in (("rbp", {"dr": 0.1}), ("likelihood", {"eta": 0.3})):
        design = small(sizes=(24,), values=(-0.5, 0.1, 0.6), samples=20, algorithm=algorithm, **own)
        sweep = sweep_of(design, seed=0)
        run_sweep(sweep, tmp_path / algorithm, Serial())
        data = analyse(gather(tmp_path / algorithm, sweep), "jd", seed=0)
        failures = ("cycles", "capped", "marginal", "paramagnets", "polarised", "diverged")
        failures = (*failures, "settled")
        ends = sum((data[name] for name in failures), start=data["fixed_points"])
        assert ends.equals(data["trials"])
        others = sum(int(data[name].sum()) for name in ("polarised", "settled"))
        assert others > 0


def test_counts_add_up_and_trends_are_those_known(tmp_path: Path) -> None:
    design = small(sizes=(15, 120), values=(0.0, 0.2, 0.8, 1.2), samples=20, max_sweeps=300)
    sweep = sweep_of(design, seed=0)
    run_sweep(sweep, tmp_path, Serial())
    raw = gather(tmp_path, sweep)
    data = analyse(raw, "jd", seed=0)
    ends = data["fixed_points"] + data["cycles"] + data["capped"] + data["marginal"]
    assert ends.equals(data["trials"])
    assert data["period_counts"].sum("period").equals(data["cycles"])
    success = data["success"]
    assert bool((success.sel(jd=1.2) == 1).all())
    assert float(success.sel(n=120, jd=0.0)) < 0.1
    # Cycles of many periods at L = 1 and small N, which larger networks do not close in time.
    assert float(data["cycles"].sel(n=15, jd=0.0)) > 10
    assert data.sizes["period"] > 10
    assert float(data["cycles"].sel(n=120, jd=0.0)) == 0
    sweeps = data["sweeps_median"]
    assert float(sweeps.sel(n=120, jd=0.8)) > float(sweeps.sel(n=15, jd=0.8))
    assert float(sweeps.sel(n=120, jd=0.8)) > float(sweeps.sel(n=120, jd=1.2))
    assert bool((data["success_low"] <= success).all() & (success <= data["success_high"]).all())
    assert np.isnan(sweeps.sel(n=120, jd=0.0))  # nothing converged
    early = analyse(raw, "jd", seed=0, cap=5)
    assert bool((early["fixed_points"] <= data["fixed_points"]).all())
    assert float(early["sweeps_median"].max()) <= 5


@pytest.mark.parametrize(("p", "fixed", "cycles"), [(1.0, 0, 20), (0.5, 20, 0)])
def test_two_layers_cycle_unless_masked(p: float, fixed: int, cycles: int) -> None:
    point = small(control="lam", values=(1.6, 1.8), layers=2, max_sweeps=400).fixed()
    found = measure({**point, "n": 60, "lam": 1.8, "p": p, "samples": "0:20"}, 3)
    assert (found["status"] == Status.FIXED_POINT).sum() == fixed
    assert (found["status"] == Status.CYCLE).sum() == cycles
    assert set(found["period"]) == {2 if cycles else 1}


def test_unknown_algorithm_and_bad_designs_are_refused() -> None:
    for changes, name in (
        ({"algorithm": "magic"}, "algorithm"),
        ({"sizes": ()}, "n"),
        ({"sizes": (1,)}, "n"),
        ({"rho": 0.0}, "rho"),
        ({"control": "lam"}, "lam"),
        ({"batch": 0}, "batch"),
    ):
        with pytest.raises(InvalidInputError) as caught:
            small(**changes)
        assert caught.value.argument == name
