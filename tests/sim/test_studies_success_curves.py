"""Thresholds from few or odd counts: fits that do not overshoot, true reasons, honest errors."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from numpy.typing import NDArray
from scipy import optimize, special

from rmsim import dynamics
from rmsim.cli import run
from rmsim.dynamics.relaxation import fraction as fraction_of_states
from rmsim.studies import success_curves
from rmsim.studies.convergence import analyse, summarise
from rmsim.studies.success_curves import CrossingStatus, crossing
from rmtheory.base.statistics import fraction

pytestmark = pytest.mark.numerical

GRID = np.linspace(0.4, 1.0, 13)
FEW = [
    ([0, 1], [1, 1]),
    ([0, 3], [1, 3]),
    ([1, 0, 3], [1, 3, 3]),
    ([0, 2, 0], [2, 2, 1]),
]


def couplings(count: int) -> NDArray[np.float64]:
    return np.array([0.4, 0.5, 0.6, 0.7])[:count]


def corrected(parameters: NDArray[np.float64], x: object, k: object, m: object) -> float:
    """Minus the log-likelihood with Firth's correction, of (centre, slope)."""
    points, successes, trials = (np.asarray(a, dtype=float) for a in (x, k, m))
    exponent = (points - parameters[0]) * parameters[1]
    weight = trials * special.expit(exponent) * special.expit(-exponent)
    determinant = weight.sum() * (weight @ points**2) - (weight @ points) ** 2
    logs = successes * special.log_expit(exponent)
    logs += (trials - successes) * special.log_expit(-exponent)
    return -float(logs.sum() + np.log(determinant) / 2)


# The fit


@pytest.mark.parametrize(("successes", "trials"), FEW)
def test_fit_of_few_trials_is_the_maximum(successes: list[int], trials: list[int]) -> None:
    x = couplings(len(trials))
    result = success_curves.fit(x, np.array(successes), np.array(trials))
    assert result.converged.all()
    wanted = optimize.minimize(
        corrected,
        [0.5, 10],
        (x, successes, trials),
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 2000},
    )
    assert [result.centre[0], result.slope[0]] == pytest.approx(wanted.x, rel=1e-4)


def test_every_fit_of_up_to_three_trials_converges() -> None:
    for size in (2, 3, 4):
        for trials in itertools.product((1, 2, 3), repeat=size):
            k = np.array(list(itertools.product(*(range(m + 1) for m in trials))))
            assert success_curves.fit(couplings(size), k, np.array(trials)).converged.all()


@pytest.mark.parametrize(("successes", "trials"), FEW)
def test_few_trials_give_a_status(successes: list[int], trials: list[int]) -> None:
    result = crossing(couplings(len(trials)), successes, trials)
    assert result.value is None
    assert str(result.status).startswith("none: ")


@pytest.mark.parametrize("failing", ["data", "resample"])
def test_a_fit_that_fails_is_unresolved(failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = success_curves.fit

    def lame(x: NDArray[np.float64], k: NDArray[np.float64], m: NDArray[np.float64]) -> object:
        result = fit(x, k, m)
        converged = result.converged.copy()
        if (len(converged) > 1) == (failing == "resample"):
            converged[0] = False
        return replace(result, converged=converged)

    counts = np.round(60 * special.expit((GRID - 0.6) / 0.05))
    assert crossing(GRID, counts, np.full(13, 60)).status is CrossingStatus.FOUND
    monkeypatch.setattr(success_curves, "fit", lame)
    result = crossing(GRID, counts, np.full(13, 60))
    assert result.status is CrossingStatus.UNRESOLVED
    assert result.value is None


@pytest.mark.usefixtures("points_here")
def test_command_with_one_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["thresholds", "--n", "20,40", "--jd", ".1,.9", "--samples", "1", "--jobs", "1"]
    assert run([*arguments, "--device", "cpu", "--out", str(tmp_path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [row["status"].split(":")[0] for row in answer["thresholds"]] == ["none", "none"]
    succeeded = [point for point in answer["points"] if point["fixed_points"] == 1]
    assert succeeded
    for point in succeeded:
        assert point["sweeps_median"] is not None
        assert point["sweeps_median_error"] is None


# Reasons


@pytest.mark.parametrize(
    ("successes", "status"),
    [
        ([100, 0, 100], CrossingStatus.NOT_MONOTONE),
        ([100, 0, 95], CrossingStatus.NOT_MONOTONE),
        ([100, 0, 0, 100], CrossingStatus.NOT_MONOTONE),
        ([30, 60, 20], CrossingStatus.NOT_MONOTONE),
        ([0, 50], CrossingStatus.TOUCHING),
        ([50, 50, 50], CrossingStatus.TOUCHING),
        ([50, 100], CrossingStatus.TOUCHING),
        ([90, 52, 55, 5], CrossingStatus.FALLING),
        ([0, 49], CrossingStatus.ABOVE),
        ([51, 100], CrossingStatus.BELOW),
    ],
)
def test_the_reason_is_true(successes: list[int], status: CrossingStatus) -> None:
    size = len(successes)
    assert crossing(couplings(size), successes, [100] * size).status is status


# Errors


def test_the_error_covers_the_bias_of_a_curve_that_is_not_symmetric() -> None:
    # 1 - 2^(-exp((x - 0.618)/w)) is 1/2 at 0.618, but its logistic fit has another middle.
    p = 1 - np.exp2(-np.exp((GRID - 0.618) / 0.05))
    generator = np.random.default_rng(1)
    result = [crossing(GRID, generator.binomial(100, p), np.full(13, 100)) for _ in range(60)]
    value = np.array([c.value for c in result], dtype=float)
    error = np.array([c.error for c in result], dtype=float)
    assert np.mean(np.abs(value - 0.618) < 2 * error) > 0.75


def outcomes(sweeps: list[int]) -> xr.Dataset:
    """Samples at one size and coupling, all of which reached a fixed point."""
    dims = ("n", "jd", "member")
    status = np.full(len(sweeps), int(dynamics.Status.FIXED_POINT))
    columns = {"status": status, "sweeps": sweeps, "period": np.ones(len(sweeps))}
    return xr.Dataset(
        {name: (dims, np.array(column)[None, None]) for name, column in columns.items()},
        coords={"n": [10], "jd": [0.5]},
    )


def test_one_success_has_a_median_without_an_error() -> None:
    one, two = summarise(outcomes([7]), "jd"), summarise(outcomes([7, 9]), "jd")
    for level in ("median", "q25", "q75"):
        assert one[f"sweeps_{level}"].item() == 7
        assert np.isnan(one[f"sweeps_{level}_error"].item())
        assert two[f"sweeps_{level}_error"].item() > 0
    assert analyse(outcomes([7]), "jd", seed=0)["threshold_status"].item() == CrossingStatus.BELOW


def test_fractions_of_states_and_of_counts_have_one_error() -> None:
    for k, m in ((0, 1), (1, 1), (3, 20), (20, 20)):
        result = torch.arange(m)[:, None] < k
        value, error = fraction(k, m)
        assert fraction_of_states(result) == pytest.approx((float(value), float(error)), abs=1e-14)
