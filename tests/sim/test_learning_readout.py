"""Readouts of frozen features: gradients, optimisers and rules against independent ones."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from rmsim.data import synthetic
from rmsim.learning.readout import (
    Features,
    LinearReadout,
    PerceptronParameters,
    ProbeParameters,
    checked_features,
    fit_perceptron,
    fit_probe,
)
from rmsim.tensors import generator
from rmtheory.base.errors import InvalidInputError, NotConvergedError

pytestmark = pytest.mark.numerical


def _features(samples: int = 50, width: int = 6, classes: int = 3, seed: int = 0) -> Features:
    """Noisy classes that no hyperplane separates, so that the best probe is finite."""
    data = synthetic(classes, width, samples, 3, flips=0.3, seed=seed)
    return checked_features(data.train.inputs, data.train.labels, classes)


@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
def test_probe_takes_the_steps_of_torch(optimiser: str) -> None:
    train = _features()
    parameters = ProbeParameters(optimiser, 0.05, 16, 4)  # type: ignore[arg-type]
    weights = torch.zeros((3, 6), requires_grad=True)
    kind = torch.optim.Adam if optimiser == "adam" else torch.optim.SGD
    steps = kind([weights], lr=0.05)
    losses = []
    for epoch in range(4):
        total = 0.0
        for values, labels in train.batches(16, 7, epoch):
            loss = torch.nn.functional.cross_entropy(values @ weights.T, labels)
            steps.zero_grad()
            loss.backward()
            steps.step()
            total += float(loss.detach()) * len(labels)
        losses.append(total / 50)
    fit = fit_probe(train, parameters=parameters, seed=7)
    torch.testing.assert_close(fit.readout.weights, weights.detach(), rtol=1e-5, atol=1e-6)
    assert fit.losses == pytest.approx(losses, rel=1e-5)


def test_probe_comes_to_the_minimum_of_the_convex_loss() -> None:
    train = _features()
    x, y = train.values.double().numpy(), train.labels.numpy()

    def loss(flat: np.ndarray) -> float:
        outputs = x @ flat.reshape(3, 6).T
        logs = outputs - np.logaddexp.reduce(outputs, axis=1, keepdims=True)
        return float(-logs[np.arange(len(y)), y].mean())

    best = minimize(loss, np.zeros(18), tol=1e-9)
    fit = fit_probe(train, parameters=ProbeParameters("sgd", 0.3, 50, 600))  # whole gradients
    assert fit.train.loss == pytest.approx(best.fun, abs=1e-5)
    assert fit.train.loss >= best.fun - 1e-7


def test_the_last_short_batch_counts_all_its_samples() -> None:
    train = _features(samples=50)
    sizes = [len(labels) for _, labels in train.batches(16, 0, 0)]
    assert sizes == [16, 16, 16, 2]
    first = torch.cat([labels for _, labels in train.batches(16, 0, 0)])
    second = torch.cat([labels for _, labels in train.batches(16, 0, 1)])
    assert not torch.equal(first, second)
    assert torch.equal(first.sort().values, second.sort().values)


def test_perceptron_with_batches_of_one_is_the_online_rule() -> None:
    train, kappa, eta = _features(20), 0.5, 0.3
    weights = torch.empty((3, 6)).normal_(0, 6**-0.5, generator=generator(4, 0, 5)).numpy().copy()
    for values, labels in train.batches(1, 4, 0):
        s, y = values[0].numpy(), np.where(np.arange(3) == int(labels[0]), 1, -1)
        for c in range(3):
            if y[c] * (weights[c] @ s) <= kappa:
                weights[c] += eta / np.sqrt(6) * y[c] * s
    fit = fit_perceptron(train, None, PerceptronParameters(eta, kappa, 1, 1), 4)
    np.testing.assert_allclose(fit.readout.weights.numpy(), weights, rtol=1e-5, atol=1e-6)


def test_perceptron_stops_learning_when_all_margins_are_there() -> None:
    data = synthetic(3, 50, 60, 3, flips=0, seed=1)
    train = checked_features(data.train.inputs, data.train.labels, 3)
    short, long = (
        fit_perceptron(train, None, PerceptronParameters(0.5, 1.0, 16, epochs))
        for epochs in (60, 70)
    )
    assert short.train.accuracy == 1
    assert torch.equal(short.readout.weights, long.readout.weights)


def test_permuted_features_permute_the_probe() -> None:
    train = _features()
    order = torch.tensor([3, 1, 5, 0, 2, 4])
    other = checked_features(train.values[:, order], train.labels, 3)
    weights = fit_probe(train).readout.weights[:, order]
    torch.testing.assert_close(fit_probe(other).readout.weights, weights)


def test_int8_and_float_features_give_the_same_and_seeds_count() -> None:
    train = _features()
    single = checked_features(train.values.numpy().astype(np.float64), train.labels.numpy(), 3)
    fits = [fit_perceptron(features, seed=3).readout.weights for features in (train, single)]
    assert torch.equal(*fits)
    assert torch.equal(fits[0], fit_perceptron(train, seed=3).readout.weights)
    assert not torch.equal(fits[0], fit_perceptron(train, seed=4).readout.weights)


def test_scores_are_counts_with_their_error() -> None:
    values = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    features = checked_features(values, torch.tensor([0, 1, 0, 0]), 2)
    score = LinearReadout(torch.eye(2)).score(features)
    assert score.accuracy == 0.75
    # Wilson: the ends p of the interval solve |0.75 - p| = sqrt(p (1 - p)/4).
    ends = np.roots([1 + 1 / 4, -2 * 0.75 - 1 / 4, 0.75**2])
    assert score.error == pytest.approx(abs(ends[0] - ends[1]) / 2)
    right, wrong = np.log1p(np.exp(-1.0)), np.log1p(np.exp(1.0))
    assert score.loss == pytest.approx((3 * right + wrong) / 4)
    with pytest.raises(InvalidInputError, match="features must be of 2 classes and width 2"):
        LinearReadout(torch.eye(2)).score(_features())


@pytest.mark.parametrize(
    ("values", "labels", "message"),
    [
        (np.zeros(3), np.zeros(3, int), "features must be of shape"),
        (np.array([[np.nan]]), np.zeros(1, int), "features must be finite numbers"),
        (np.zeros((2, 1), complex), np.zeros(2, int), "features must be real"),
        (np.zeros((2, 1)), np.zeros(3, int), "labels must be one class number for each of 2"),
        (np.zeros((2, 1)), np.zeros(2), "labels must be integers, got torch.float64"),
        (np.zeros((2, 1)), np.array([0, 2]), "labels must be class numbers from 0 to 1, got 2"),
        (np.zeros((2, 1)), np.array([0, -1]), "from 0 to 1, got -1"),
    ],
)
def test_wrong_features_are_refused(values: np.ndarray, labels: np.ndarray, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        checked_features(values, labels, 2)


def test_wrong_parameters_and_divergence_are_told() -> None:
    with pytest.raises(InvalidInputError, match="optimiser must be adam or sgd, got lbfgs"):
        ProbeParameters("lbfgs")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="eta must be from 1e-30 to 1e30, got 0"):
        PerceptronParameters(eta=0)
    with pytest.raises(InvalidInputError, match="epochs must be an integer >= 1, got 0"):
        ProbeParameters(epochs=0)
    huge = checked_features(np.full((4, 2), 3e38), np.array([0, 1, 1, 1]), 2)
    with pytest.raises(NotConvergedError, match=r"no longer finite in epoch 2: lower eta = 0\.005"):
        fit_probe(huge, parameters=ProbeParameters.sgd(3))
