"""Baselines: widths of the paper, straight-through gradients, frozen features, the commands."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from rmsim.cli import run
from rmsim.data import CATALOGUE, synthetic
from rmsim.learning import baselines, initialise
from rmsim.learning.baselines import (
    Mlp,
    MlpParameters,
    baseline_preset,
    core_parameters,
    draw_mlp,
    fit_mlp,
    frozen_features,
    matched_width,
    mlp_parameters,
    reservoir_parameters,
)
from rmsim.learning.presets import PRESETS
from rmsim.learning.readout import Features, checked_features
from rmtheory.base.errors import NotConvergedError

pytestmark = pytest.mark.numerical

# Widths


def _sizes(inputs: int, classes: int, widths: list[int]) -> list[float]:
    """N with P_core(N) = P_MLP(H), from the root of the quadratic equation."""
    slope = 0.1 * inputs + classes - 0.01
    counts = [mlp_parameters(width, inputs, classes) for width in widths]
    return [(-slope + (slope**2 + 0.04 * count) ** 0.5) / 0.02 for count in counts]


def test_sizes_of_the_tiny_imagenet_table_are_matched_without_biases() -> None:
    # rho_in = .1, although the table prints .99: with a density of .01 or .99 nothing fits.
    result = _sizes(512, 200, [300, 400, 500, 600, 700, 800])
    assert [int(n) for n in result] == [1155, 1660, 2216, 2817, 3458, 4134]


@pytest.mark.parametrize(
    ("inputs", "printed"),
    [(784, [109, 214, 319, 422, 525, 626]), (100, [126, 233, 336, 438, 540, 640])],
)
def test_widths_of_the_other_tables_are_within_one(inputs: int, printed: list[int]) -> None:
    for n, width in zip(range(1000, 7000, 1000), printed, strict=True):
        result = matched_width(core_parameters(n, inputs, 10), inputs, 10)
        assert abs(result.width - width) <= 1
        assert abs(result.mismatch) < 0.005
        assert mlp_parameters(width, inputs, 10) == pytest.approx(
            core_parameters(n, inputs, 10), rel=0.01
        )


@pytest.mark.parametrize("parameters", [12, 98_390, 215_712, 1e7])
def test_no_other_width_is_nearer(parameters: float) -> None:
    result = matched_width(parameters, 784, 10)
    counts = [abs(mlp_parameters(h, 784, 10) - parameters) for h in range(1, 4000)]
    assert result.width == 1 + int(np.argmin(counts))
    assert result.parameters == mlp_parameters(result.width, 784, 10)


def test_parameters_are_those_of_the_masks_that_are_drawn() -> None:
    parameters = reservoir_parameters(400, rho_j=0.05, rho_in=0.1)
    state = initialise(parameters, 100, 10, seed=0)
    drawn = state.j.numel() + state.w_in.values.numel() + 400 * 10
    mean = core_parameters(400, 100, 10, 0.05, 0.1)
    deviation = (400 * 399 * 0.05 * 0.95 + 400 * 100 * 0.1 * 0.9) ** 0.5
    assert abs(drawn - mean) < 5 * deviation


# The perceptron with hidden layers


def _toy(flips: float = 0.2, train: int = 400) -> tuple[Features, Features]:
    data = synthetic(4, 30, train, 200, flips, seed=2)
    first, second = (checked_features(s.inputs, s.labels, 4) for s in (data.train, data.test))
    return first, second


def test_gradients_are_those_of_the_network_with_the_signs_ignored() -> None:
    train, _ = _toy()
    x, labels = train.values[:5].double(), train.labels[:5]
    drawn = draw_mlp(MlpParameters(7), 30, 4, 0)
    w1, w2, w3 = (w.double().requires_grad_(True) for w in drawn.weights)
    torch.nn.functional.cross_entropy(Mlp((w1, w2, w3)).outputs(x), labels).backward()
    # By hand, layer after layer, in numpy.
    a, b, c = (w.detach().numpy() for w in (w1, w2, w3))
    inputs, y = x.numpy(), labels.numpy()
    t1 = np.tanh(inputs @ a.T)
    s1 = np.where(t1 < 0, -1, 1)
    t2 = np.tanh(s1 @ b.T)
    s2 = np.where(t2 < 0, -1, 1)
    outputs = s2 @ c.T
    p = np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True)
    p[np.arange(5), y] -= 1
    p /= 5
    d2 = (p @ c) * (1 - t2**2)
    d1 = (d2 @ b) * (1 - t1**2)
    for matrix, gradient in ((w3, p.T @ s2), (w2, d2.T @ s1), (w1, d1.T @ inputs)):
        np.testing.assert_allclose(matrix.grad.numpy(), gradient, rtol=1e-10, atol=1e-14)


def test_hidden_neurons_are_binary_and_zero_is_plus_one() -> None:
    network = Mlp((torch.zeros(2, 3), torch.eye(2), torch.eye(2)))
    assert network.outputs(torch.ones(1, 3)).tolist() == [[1.0, 1.0]]


def test_training_learns_and_is_reproducible() -> None:
    train, test = _toy()
    parameters = MlpParameters(20, epochs=10, batch=32, eta=0.01)
    fit = fit_mlp(train, test, parameters, seed=1)
    assert fit.test.accuracy > 0.9
    assert fit.losses[-1] < 0.5 * fit.losses[0]
    assert fit.tests[-1] == fit.test.accuracy
    again = fit_mlp(train, test, parameters, seed=1)
    assert all(map(torch.equal, fit.network.weights, again.network.weights))
    other = fit_mlp(train, test, parameters, seed=2)
    assert not torch.equal(fit.network.weights[0], other.network.weights[0])


def test_weights_that_are_not_finite_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = _toy(train=20)

    def draw(*arguments: object) -> Mlp:
        return Mlp((torch.zeros(5, 30), torch.eye(5), torch.full((4, 5), torch.nan)))

    monkeypatch.setattr(baselines, "draw_mlp", draw)
    with pytest.raises(NotConvergedError, match="no longer finite in epoch 1"):
        fit_mlp(train, test, MlpParameters(5))


# Frozen features


def test_random_features_are_signs_of_a_projection_and_reservoirs_relax() -> None:
    data = synthetic(3, 20, 50, 10, seed=3)
    parameters = reservoir_parameters(40, sweeps=1, jd=0.5)
    state = initialise(parameters, 20, 3, seed=6)
    train, test = frozen_features(parameters, data, 6)
    fields = data.train.inputs @ state.w_in.to_dense().numpy().T
    assert (train.values.numpy() == np.where(fields < 0, -1, 1)).all()
    assert len(test) == 10
    # Five sweeps, written out.
    j, s = state.dense_j()[0].numpy(), np.zeros((50, 40))
    for _ in range(5):
        s = np.where(s @ j.T + 0.5 * s + fields < 0, -1, 1)
    relaxed, _ = frozen_features(reservoir_parameters(40, jd=0.5), data, 6)
    assert (relaxed.values.numpy() == s).all()


def _run(*words: str) -> int:
    return run(["baseline", *words, "--dataset", "synthetic", "--seed", "3"])


def test_commands_write_what_was_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mlp.json"
    assert _run("mlp", "--n", "300", "--epochs", "3", "--eta", ".01", "--out", str(path)) == 0
    document = json.loads(path.read_text())
    wanted = core_parameters(300, 100, 10)
    assert document["parameters"]["width"] == matched_width(wanted, 100, 10).width
    assert document["trainable_parameters"] / wanted - 1 == document["mismatch"]
    assert document["test_accuracy"] > 0.9
    assert document["test_accuracies"][-1] == document["test_accuracy"]
    assert document["seed"] == 3
    capsys.readouterr()
    for name in ("random-features", "reservoir"):
        assert _run(name, "--n", "100", "--epochs", "3", "--probe-epochs", "3", "--json") == 0
        document = json.loads(capsys.readouterr().out)
        assert document["trainable_parameters"] == 1000
        assert document["test_accuracy"] > 0.8
        assert document["probe_test_accuracy"] > 0.8
        assert ("jd" in document["parameters"]) == (name == "reservoir")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mlp", "--preset", "cifar"], "preset must be one of entangled-mnist-dense"),
        (["mlp", "--epochs", "0"], "must be an integer >= 1, got 0"),
        (["mlp", "--eta", "-1"], "eta must be from 1e-30"),
        (["mlp", "--width", "many"], "width must be an integer >= 1, got many"),
        (["mlp", "--rho-j", "2"], "rho_j must be a density above 0 and at most 1"),
        (["mlp", "--train", "9999"], "train must be an integer from 1 to 2000"),
        (["reservoir", "--n", "5"], "n must be at least the 10 classes"),
        (["reservoir", "--sweeps", "0"], "sweeps must be an integer >= 1"),
        (["reservoir", "--seed", "x"], "seed must be an integer"),
    ],
)
def test_wrong_options_are_told(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["baseline", *words[:1], "--dataset", "synthetic", *words[1:]]) == 2
    assert message in capsys.readouterr().err


def test_every_preset_of_training_has_baselines() -> None:
    for name, chosen in PRESETS.items():
        numbers = baseline_preset(name)
        assert numbers.dataset in CATALOGUE
        assert numbers.rho_j == chosen.parameters().couplings.rho
        assert numbers.n == chosen.widths[0]
    assert baseline_preset("mnist-sparse", "2000").n == 2000
    assert baseline_preset("reservoir").sweeps == 5
    assert baseline_preset("fashion-mnist-sparse").eta_mlp == 0.003
