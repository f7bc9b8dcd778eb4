"""Experiments with trained networks: points, averages, attractors, surveys, the command."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

from rmsim.cli import run
from rmsim.data import Samples, load
from rmsim.learning import initialise
from rmsim.learning.phases import is_fixed
from rmsim.learning.presets import MEASURED_AT, dense_recipe
from rmsim.studies.grid_sweeps import KINDS
from rmsim.studies.landscape_survey import (
    Survey,
    attractors_of,
    similarities,
    survey,
)
from rmsim.studies.trained_networks import (
    epochs_of,
    linear_accuracy,
    over_replicas,
    plan_of,
    trained,
    two_layers,
)
from rmsim.sweep.definition import load_compute, load_compute_of_many
from rmtheory.base.errors import InvalidInputError

pytestmark = pytest.mark.numerical

POINT: dict[str, Any] = {
    "preset": "role-of-jd",
    "n": 40,
    "jd": 0.5,
    "replica": 0,
    "train_samples": 200,
    "test_samples": 100,
    MEASURED_AT: [0, 1],
    "watched": 50,
}


def test_a_point_depends_on_itself_and_its_seed_alone() -> None:
    first, again, other = trained(POINT, 1), trained(POINT, 1), trained(POINT, 2)
    assert first == again
    assert first["test_accuracy"] != other["test_accuracy"]
    # The same network measured once, at the end.
    last = trained({**POINT, MEASURED_AT: [1]}, 1)
    assert last["test_accuracy"] == first["test_accuracy"][1:]
    assert last["qdyn_median"] == first["qdyn_median"][1:]


def test_a_sweep_trains_side_by_side_what_it_trains_alone() -> None:
    compute = KINDS["train"].compute
    one, many = load_compute(compute), load_compute_of_many(compute)
    assert many is not None
    common = {"preset": "role-of-jd", "n": 40, "train_samples": 200, "test_samples": 100}
    points = [
        {**common, "watched": 50, "jd": jd, "lambda_x": 2.0 + jd, "epochs": epochs}
        for jd, epochs in ((0.3, 1), (0.6, 1), (0.6, 2))
    ]
    seeds = [1, 2, 2]
    alone = [one(point, seed) for point, seed in zip(points, seeds, strict=True)]
    assert many(points, seeds, threads=2) == alone
    assert len({values["test_accuracy"] for values in alone}) > 1


def test_phases_that_settle_are_told_from_those_that_never_do() -> None:
    """Symmetric couplings updated all at once may end in a cycle of two, however long one waits."""
    point = {**POINT, "n": 200, MEASURED_AT: [0], "symmetry": "sym0"}
    share = {
        (jd, sweeps): trained({**point, "jd": jd, "settle": sweeps}, 3)["unstable_free"][0]
        for jd in (0.0, 0.5)
        for sweeps in (100, 400)
    }
    assert share[0.0, 100] == share[0.0, 400] > 0.1
    assert share[0.5, 100] == share[0.5, 400] == 0
    assert "unstable_free" not in trained(point, 3)


def test_what_is_no_parameter_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="parameter must be a parameter that exists"):
        trained({**POINT, "lambda_z": 1.0}, 0)
    plan = plan_of(POINT, 0)
    data = plan.data(load(plan.dataset))
    for epochs in ([], [1, 0], [1, 1], [-1]):
        with pytest.raises(InvalidInputError, match="epochs must be"):
            list(epochs_of(plan, data, epochs))


def test_uncoupled_layers_do_not_see_each_other() -> None:
    """At lambda = 0 two layers are two cores: kappa and couplings are those of one layer."""
    result = two_layers({**POINT, "lam": 0.0, MEASURED_AT: [0]}, 3)
    assert set(result) == set(trained({**POINT, MEASURED_AT: [0]}, 3))
    assert abs(result["symmetry_level"][0]) < 0.05
    with pytest.raises(KeyError):
        two_layers(POINT, 3)


def test_a_linear_classifier_on_the_inputs_agrees_with_another_one() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    sizes = {"train_samples": 4000, "test_samples": 2000}
    value, error = linear_accuracy({"preset": "entangled-mnist-sparse", "n": 100, **sizes}, 0)
    data = load("entangled-mnist", download=False)
    (x, y), (test_x, test_y) = (
        (part.tensors()[0].numpy(), part.tensors()[1].numpy())
        for part in (data.train.first(4000), data.test.first(2000))
    )
    other = linear_model.LogisticRegression(max_iter=500).fit(x, y).score(test_x, test_y)
    assert error == pytest.approx((value * (1 - value) / 2000) ** 0.5, rel=0.01)
    assert value == pytest.approx(other, abs=4 * error)


def test_the_mean_over_networks_has_the_error_of_spread_and_measurement() -> None:
    result = xr.Dataset(
        {
            "a": (("n", "replica"), [[1.0, 3.0], [5.0, np.nan]]),
            "a_error": (("n", "replica"), [[0.1, 0.3], [0.1, np.nan]]),
        },
        {"n": [10, 20], "replica": [0, 1]},
    )
    data = over_replicas(result, {"a": "something"})
    assert data["a"].values[0] == 2.0
    assert data["a_error"].values[0] == pytest.approx(np.hypot(1.0, 0.2))
    assert np.isnan(data["a"].values[1])  # a network that is missing is not left out in silence
    one = over_replicas(result.isel(replica=[0]), {"a": "something"})
    assert one["a_error"].values.tolist() == [0.1, 0.1]


def test_attractors_are_fixed_points_and_stay_where_they_are() -> None:
    parameters = dense_recipe(60, jd=1.5)
    state = initialise(parameters, 100, 10, 0)
    inputs = load("entangled-mnist").train.first(20).tensors()[0]
    relax, evolve = attractors_of(parameters, state)
    s = relax(inputs)
    field = state.w_in.field(inputs).view(20, 1, 60)
    fixed = is_fixed(state.couplings, s.float().view(20, 1, 60), field)
    assert bool(fixed.all())
    assert torch.equal(evolve(s, inputs), s)
    # From s = 0 both routes take the same way.
    assert torch.equal(evolve(torch.zeros(20, 60), inputs), s)
    chain = parameters.with_settings(layers=2)
    with pytest.raises(InvalidInputError, match="one layer"):
        attractors_of(chain, initialise(chain, 100, 10, 0))


def test_without_couplings_paths_are_straight_and_kicks_are_forgotten() -> None:
    """J_D = 0 and J = 0: the state is sgn(W x), whatever it was, so that noise moves nothing."""
    parameters = dense_recipe(50, jd=0.0)
    state = initialise(parameters, 100, 10, 0)
    state.couplings.matrices.zero_()  # type: ignore[union-attr]
    samples = load("entangled-mnist").train.first(200)
    result = survey(parameters, state, samples, Survey(10, 4, 2, 20, (0.5,)), 0)
    assert result["displacement_q75"].tolist() == [0.0]
    assert result["curvature"].min() >= 1
    assert np.allclose(np.diag(result["trajectory"]), 0)
    assert result["trajectory"][0, -1] == pytest.approx(1)


@pytest.mark.parametrize("labels", [range(10), [3] * 10])
def test_patterns_that_cannot_be_compared_by_label(labels: Sequence[int]) -> None:
    """A mean over no pair at all would be a warning of numpy and not a number."""
    parameters = dense_recipe(20)
    spins = np.random.default_rng(0).choice(np.array([-1, 1], np.float32), (10, 10))
    state = initialise(parameters, 10, 10, 0)
    with pytest.raises(InvalidInputError, match=r"patterns must be so many that .*, got 3"):
        survey(parameters, state, Samples(spins, np.array(labels)), Survey(2, 2, 2, 3), 0)


def test_similarities_of_two_labels() -> None:
    a, b = torch.ones(8), torch.cat([torch.ones(4), -torch.ones(4)])
    result = similarities(torch.stack([a, a, b, b]), torch.tensor([0, 0, 1, 1]))
    assert result["similarity_within"] == 1
    assert result["similarity_between"] == 0.5
    assert result["similarity_mean"] == pytest.approx((4 * 1 + 8 * 0.5) / 12)


def test_the_command_surveys_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    make = ["train", "--preset", "landscape", "--n", "40", "--epochs", "1", "--out", str(folder)]
    assert run([*make, "--train", "200", "--test", "100", "--device", "cpu"]) == 0
    capsys.readouterr()
    few = ["--pairs", "10", "--steps", "3", "--resamples", "2", "--patterns", "20"]
    picture = tmp_path / "picture.png"
    arguments = ["landscape", "--from", str(folder), *few, "--json", "--plot", str(picture)]
    assert run(arguments) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["epoch"] == 1
    assert result["before_curvature_mean"] >= 1
    assert result["before_curvature_mean"] != result["after_curvature_mean"]
    assert len(result["after_displacement_median"]) == 6
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert run(["landscape"]) == 2
    assert "from must be the folder of a run" in capsys.readouterr().err
    assert run(["landscape", "--from", str(tmp_path)]) == 2
    assert run([*arguments, "--pairs", "1"]) == 2
