r"""The binarised perceptron with two hidden layers, trained by straight-through gradients (SM-D).

.. math:: s_1 = \mathrm{sgn}(\tanh W_1 x), \qquad s_2 = \mathrm{sgn}(\tanh W_2 s_1), \qquad
    o = W_3 s_2,

no biases, sgn(0) = +1, cross-entropy loss, Adam. Gradients ignore the sign: those of s are passed
on to tanh as they are. Weights start uniform in :math:`\pm 1/\sqrt{\text{fan-in}}`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch

from rmsim.randomness import checked_seed, generator
from rmsim.readout import Features, Score
from rmsim.readout.linear import checked_rate, demand_finite, score
from rmtheory import checks


@dataclass(frozen=True)
class MlpParameters:
    """How the perceptron is built and trained.

    Parameters
    ----------
    width : int
        Neurons H of each hidden layer.
    eta : float
        Rate of Adam.
    batch : int
        Samples a batch.
    epochs : int
        Passes over the samples.
    """

    width: int
    eta: float = 0.003
    batch: int = 64
    epochs: int = 20

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", checked_rate("eta", self.eta))
        for name in ("width", "batch", "epochs"):
            object.__setattr__(self, name, checks.integer(name, getattr(self, name), 1))

    def to_dict(self) -> dict[str, object]:
        """Return the parameters as JSON values."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Mlp:
    """The weights W_1 (H, D), W_2 (H, H) and W_3 (C, H)."""

    weights: tuple[torch.Tensor, torch.Tensor, torch.Tensor]

    def outputs(self, x: torch.Tensor) -> torch.Tensor:
        """Return o for inputs (samples, D); differentiable, straight through the signs."""
        first, second, third = self.weights
        s = _straight_sign(torch.tanh(x @ first.T))
        s = _straight_sign(torch.tanh(s @ second.T))
        return s @ third.T

    @torch.no_grad()
    def score(self, samples: Features) -> Score:
        """Return accuracy and loss on `samples`."""
        return score(self.outputs, samples)


@dataclass(frozen=True)
class MlpFit:
    """A trained perceptron.

    Parameters
    ----------
    network : Mlp
        The weights after the last epoch.
    losses : tuple of float
        Mean loss over the samples of each epoch, as they were met.
    tests : tuple of float
        Test accuracy after each epoch.
    train, test : Score
        After the last epoch.
    parameters : MlpParameters
        How it was trained.
    seed : int
        Seed of the weights and the orders.
    """

    network: Mlp
    losses: tuple[float, ...]
    tests: tuple[float, ...]
    train: Score
    test: Score
    parameters: MlpParameters
    seed: int


def draw_mlp(parameters: MlpParameters, inputs: int, classes: int, seed: int) -> Mlp:
    """Return the perceptron before training; matrix k is drawn from the stream k of the seed."""
    width = parameters.width

    def uniform(stream: int, rows: int, columns: int) -> torch.Tensor:
        drawn = torch.rand((rows, columns), generator=generator(seed, stream))
        return (2 * drawn - 1) / math.sqrt(columns)

    return Mlp((uniform(0, width, inputs), uniform(1, width, width), uniform(2, classes, width)))


def fit_mlp(
    train: Features,
    test: Features,
    parameters: MlpParameters,
    seed: int = 0,
    progress: Callable[[int], None] = lambda epochs: None,
) -> MlpFit:
    """Train the perceptron.

    Parameters
    ----------
    train, test : Features
        Inputs with their labels; see `rmsim.readout.checked_features`.
    parameters : MlpParameters
        Width and training.
    seed : int
        Seed of the weights and of the order of the samples.
    progress : callable
        Told how many epochs are done.
    """
    seed = checked_seed(seed)
    drawn = draw_mlp(parameters, train.width, train.classes, seed)
    first, second, third = (
        matrix.to(train.device).requires_grad_(True) for matrix in drawn.weights
    )
    network = Mlp((first, second, third))
    optimiser = torch.optim.Adam(network.weights, lr=parameters.eta)
    losses, tests = [], []
    for epoch in range(parameters.epochs):
        total = torch.zeros((), device=train.device, dtype=torch.float64)
        for x, labels in train.batches(parameters.batch, seed, epoch):
            loss = torch.nn.functional.cross_entropy(network.outputs(x), labels)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            total += loss.detach() * len(labels)
        for matrix in network.weights:
            demand_finite(matrix, epoch, parameters.eta)
        losses.append(float(total) / len(train))
        tests.append(network.score(test).accuracy)
        progress(epoch + 1)
    first, second, third = (matrix.detach() for matrix in network.weights)
    network = Mlp((first, second, third))
    scores = network.score(train), network.score(test)
    return MlpFit(network, tuple(losses), tuple(tests), *scores, parameters, seed)


def _straight_sign(a: torch.Tensor) -> torch.Tensor:
    """Return sgn(a), with the gradient of a itself."""
    return torch.where(a < 0, -1.0, 1.0) + (a - a.detach())  # the bracket is exactly 0
