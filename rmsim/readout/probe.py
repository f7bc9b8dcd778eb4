r"""The softmax probe: what frozen features tell about the class (paper, SM-D, second stage).

.. math:: \min_W\ -\frac1P \sum_\mu \log \frac{e^{o^\mu_{y^\mu}}}{\sum_c e^{o^\mu_c}}, \qquad
    o^\mu = W s^\mu,

without bias, from W = 0, by stochastic gradients. The problem is convex, so that the seed, which
only orders the samples, hardly matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal, get_args

import torch

from rmsim.randomness import checked_seed
from rmsim.readout.features import Features
from rmsim.readout.linear import LinearReadout, Score, checked_rate, demand_finite
from rmtheory import checks
from rmtheory.errors import InvalidInputError

Optimiser = Literal["adam", "sgd"]

#: Usual constants of Adam.
_FIRST, _SECOND, _SMALL = 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class ProbeParameters:
    """How the probe is trained; the defaults are for Adam, `sgd` has the others.

    Parameters
    ----------
    optimiser : str
        ``adam`` or ``sgd``.
    eta : float
        Rate.
    batch : int
        Samples a batch.
    epochs : int
        Passes over the samples.
    """

    optimiser: Optimiser = "adam"
    eta: float = 1e-3
    batch: int = 256
    epochs: int = 20

    def __post_init__(self) -> None:
        if self.optimiser not in get_args(Optimiser):
            raise InvalidInputError("optimiser", self.optimiser, "adam or sgd")
        object.__setattr__(self, "eta", checked_rate("eta", self.eta))
        object.__setattr__(self, "batch", checks.integer("batch", self.batch, 1))
        object.__setattr__(self, "epochs", checks.integer("epochs", self.epochs, 1))

    @classmethod
    def sgd(cls, epochs: int = 20) -> ProbeParameters:
        """Return plain gradient descent as in the paper: rate .005, batches of 16.

        Examples
        --------
        >>> ProbeParameters.sgd(3)
        ProbeParameters(optimiser='sgd', eta=0.005, batch=16, epochs=3)
        """
        return cls("sgd", 0.005, 16, epochs)

    def to_dict(self) -> dict[str, object]:
        """Return the parameters as JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class ProbeFit:
    """A trained probe.

    Parameters
    ----------
    readout : LinearReadout
        The weights.
    losses : tuple of float
        Mean loss over the samples of each epoch, as they were met.
    train : Score
        On the samples it was trained on, after training.
    test : Score, optional
        On others.
    parameters : ProbeParameters
        How it was trained.
    seed : int
        Seed of the orders.
    """

    readout: LinearReadout
    losses: tuple[float, ...]
    train: Score
    test: Score | None
    parameters: ProbeParameters
    seed: int


def fit_probe(
    train: Features,
    test: Features | None = None,
    parameters: ProbeParameters | None = None,
    seed: int = 0,
    progress: Callable[[int], None] = lambda epochs: None,
) -> ProbeFit:
    """Train a softmax probe on frozen features.

    Parameters
    ----------
    train, test : Features
        To train on, and to test on if given; see `checked_features`.
    parameters : ProbeParameters
        How to train.
    seed : int
        Seed of the order of the samples.
    progress : callable
        Told how many epochs are done.

    Examples
    --------
    >>> from rmsim.readout import checked_features
    >>> x = torch.tensor([[1, 1], [1, -1], [-1, 1], [-1, -1]], dtype=torch.int8)
    >>> features = checked_features(x, torch.tensor([0, 0, 1, 1]), 2)
    >>> fit_probe(features, parameters=ProbeParameters("sgd", eta=1, epochs=5)).train.accuracy
    1.0
    """
    parameters, seed = parameters or ProbeParameters(), checked_seed(seed)
    weights = torch.zeros((train.classes, train.width), device=train.device)
    step = _Adam(weights, parameters.eta) if parameters.optimiser == "adam" else None
    losses = []
    for epoch in range(parameters.epochs):
        total = torch.zeros((), device=train.device, dtype=torch.float64)
        for values, labels in train.batches(parameters.batch, seed, epoch):
            gradient, loss = _gradient(weights, values, labels)
            total += loss
            if step is None:
                weights.sub_(gradient, alpha=parameters.eta)
            else:
                step(gradient)
        demand_finite(weights, epoch, parameters.eta)
        losses.append(float(total) / len(train))
        progress(epoch + 1)
    readout = LinearReadout(weights)
    tested = None if test is None else readout.score(test)
    return ProbeFit(readout, tuple(losses), readout.score(train), tested, parameters, seed)


def _gradient(
    weights: torch.Tensor, values: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    r"""Return the gradient of the mean loss, (p - e_y) s^T averaged, and the sum of the losses."""
    logs = torch.log_softmax(values @ weights.T, 1)
    loss = -logs.gather(1, labels.unsqueeze(1)).sum()
    residual = logs.exp_()
    residual.scatter_add_(1, labels.unsqueeze(1), -torch.ones_like(residual[:, :1]))
    return residual.T @ values / len(labels), loss


class _Adam:
    """Adam on one matrix, in place."""

    def __init__(self, weights: torch.Tensor, eta: float) -> None:
        self.weights, self.eta, self.steps = weights, eta, 0
        self.first, self.second = torch.zeros_like(weights), torch.zeros_like(weights)

    def __call__(self, gradient: torch.Tensor) -> None:
        self.steps += 1
        self.first.lerp_(gradient, 1 - _FIRST)
        self.second.mul_(_SECOND).addcmul_(gradient, gradient, value=1 - _SECOND)
        scale = math.sqrt(1 - _SECOND**self.steps)
        size = self.second.sqrt().div_(scale).add_(_SMALL)
        self.weights.addcdiv_(self.first, size, value=-self.eta / (1 - _FIRST**self.steps))
