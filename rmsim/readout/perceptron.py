r"""The one-vs-all perceptron, trained online on frozen features (paper, eq. plasticity_rule-wout).

.. math:: \Delta W_{cj} = \frac{\eta}{\sqrt{N B}} \sum_b y^b_c\,s^b_j\, 1[y^b_c o^b_c \le \kappa],
    \qquad o = W s, \qquad W \sim \mathcal N(0, 1/N),

with y = +1 for the class of the sample and -1 for the others, over batches of B samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch

from rmsim.randomness import checked_seed, fill_normal_, generator
from rmsim.readout.features import Features
from rmsim.readout.linear import LinearReadout, Score, checked_rate, demand_finite
from rmtheory import checks

#: Of the streams of random numbers under a seed, that of W_out, as of a network that learns.
_WEIGHTS = (0, 5)


@dataclass(frozen=True)
class PerceptronParameters:
    """How the perceptrons are trained; the defaults are those of the paper's baselines.

    Parameters
    ----------
    eta : float
        Rate.
    kappa : float
        Margin asked for.
    batch : int
        Samples a batch.
    epochs : int
        Passes over the samples.
    """

    eta: float = 0.03
    kappa: float = 3.0
    batch: int = 16
    epochs: int = 20

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", checked_rate("eta", self.eta))
        object.__setattr__(self, "kappa", float(checks.exact_real("kappa", self.kappa)))
        object.__setattr__(self, "batch", checks.integer("batch", self.batch, 1))
        object.__setattr__(self, "epochs", checks.integer("epochs", self.epochs, 1))

    def to_dict(self) -> dict[str, object]:
        """Return the parameters as JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class PerceptronFit:
    """Trained perceptrons: the readout, its scores on both sets, and how it was trained.

    The loss of a score has no meaning here: the outputs are no logarithms of probabilities.
    """

    readout: LinearReadout
    train: Score
    test: Score | None
    parameters: PerceptronParameters
    seed: int


def fit_perceptron(
    train: Features,
    test: Features | None = None,
    parameters: PerceptronParameters | None = None,
    seed: int = 0,
    progress: Callable[[int], None] = lambda epochs: None,
) -> PerceptronFit:
    """Train one perceptron a class on frozen features; arguments as of `fit_probe`."""
    parameters, seed = parameters or PerceptronParameters(), checked_seed(seed)
    weights = torch.empty((train.classes, train.width))
    fill_normal_(weights, 1 / math.sqrt(train.width), generator(seed, *_WEIGHTS))
    weights = weights.to(train.device)
    for epoch in range(parameters.epochs):
        for values, labels in train.batches(parameters.batch, seed, epoch):
            rate = parameters.eta / math.sqrt(train.width * len(labels))
            signs = torch.full((len(labels), train.classes), -1.0, device=train.device)
            signs.scatter_(1, labels.unsqueeze(1), 1.0)
            margin = signs * (values @ weights.T)
            weights.addmm_((signs * (margin <= parameters.kappa)).T, values, alpha=rate)
        demand_finite(weights, epoch, parameters.eta)
        progress(epoch + 1)
    readout = LinearReadout(weights)
    tested = None if test is None else readout.score(test)
    return PerceptronFit(readout, readout.score(train), tested, parameters, seed)
