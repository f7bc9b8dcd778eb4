"""Numbers of the paper that the presets must give: q_dyn, and accuracies on real data."""

import os
from pathlib import Path
from statistics import fmean

import pytest
from numpy.testing import assert_allclose

from rmsim.data import load
from rmsim.learning import accuracy, initialise, measure, train_epoch
from rmsim.learning.presets import preset
from rmsim.learning.readout import ProbeParameters
from rmsim.learning.run_folder import Folder, Plan
from rmsim.learning.training import Metrics, train, train_probe

pytestmark = pytest.mark.numerical

#: Overlaps at initialisation (SM-H): J_D, lambda_x, lambda_y, and the median with its quartiles.
OVERLAPS = [
    (0.5, 5.0, 0.9, (0.930, 0.921, 0.938)),
    (0.5, 5.0, 0.5, (0.975, 0.970, 0.980)),
    (0.5, 2.0, 0.9, (0.761, 0.744, 0.779)),
    (0.5, 2.0, 0.5, (0.892, 0.877, 0.907)),
    (0.0, 5.0, 0.9, (0.862, 0.852, 0.871)),
    (0.0, 5.0, 0.5, (0.915, 0.907, 0.922)),
    (0.0, 2.0, 0.9, (0.649, 0.634, 0.664)),
    (0.0, 2.0, 0.5, (0.748, 0.734, 0.761)),
]


@pytest.mark.parametrize(("jd", "lambda_x", "lambda_y", "paper"), OVERLAPS)
def test_overlaps_at_initialisation(
    jd: float, lambda_x: float, lambda_y: float, paper: tuple[float, float, float]
) -> None:
    """Median over samples, mean over networks; at J_D = 0 nothing converges, and 20 sweeps do."""
    few = {} if jd else {"clamped": 20, "free": 20}
    wanted = preset("overlaps").parameters(jd=jd, lambda_x=lambda_x, lambda_y=lambda_y, **few)
    data = load("entangled-mnist").train.first(400)
    result = []
    for seed in range(3):
        state = initialise(wanted, 100, 10, seed)
        q_dyn = measure(wanted, state, *data.tensors()).q_dyn
        result.append((q_dyn.median, q_dyn.q25, q_dyn.q75))
    median, *quartiles = (fmean(column) for column in zip(*result, strict=True))
    assert median == pytest.approx(paper[0], abs=0.003)
    assert_allclose(quartiles, paper[1:], atol=0.005)  # and not 5-95 %, as the caption says


def test_dense_recipe_learns_and_the_printed_one_does_not() -> None:
    data = load("entangled-mnist").first(20_000, 10_000)
    scores = {}
    for name, others in (
        ("entangled-mnist-dense", {}),
        ("entangled-mnist-dense", {"kappa_in": 3.0}),
        ("entangled-mnist-dense-printed", {}),
    ):
        parameters = preset(name).parameters(400, **others)
        state = initialise(parameters, 100, 10, 0)
        state = train_epoch(parameters, state, data.train.inputs, data.train.labels)
        score = accuracy(parameters, state, data.test.inputs, data.test.labels)
        scores[name, *others] = score
    recipe, kappa, printed = scores.values()
    assert recipe > 0.74
    assert kappa < 0.4
    assert printed < 0.3


@pytest.mark.skipif(
    "RMSIM_DATA" not in os.environ, reason="RMSIM_DATA names no folder with the files of MNIST"
)
def test_mnist_after_three_epochs_and_the_probe(tmp_path: Path) -> None:
    data = load("mnist", download=False)
    plan = Plan.of_preset("mnist-sparse", 1000, seed=0)
    outcome = train(plan, data, 3, out=tmp_path, probe=0, device="cpu", metrics=Metrics(500, 500))
    epochs = preset("mnist-sparse").probe_epochs(3)
    probe = train_probe(Folder(tmp_path), outcome.checkpoint, data, ProbeParameters(epochs=epochs))
    assert probe.accuracies["test_accuracy"] >= 0.95
