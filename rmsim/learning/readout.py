r"""Linear readouts of frozen features: the softmax probe and the online perceptron.

Both are without bias, o = W s, and the class is :math:`\arg\max_c o_c`. The probe (paper, SM-D,
second stage) measures what the features know of the class,

.. math:: \min_W\ -\frac1P \sum_\mu \log \frac{e^{o^\mu_{y^\mu}}}{\sum_c e^{o^\mu_c}}, \qquad
    o^\mu = W s^\mu,

from W = 0, by stochastic gradients. The problem is convex, so that the seed, which only orders the
samples, hardly matters. The one-vs-all perceptron learns online (paper, eq. plasticity_rule-wout),

.. math:: \Delta W_{cj} = \frac{\eta}{\sqrt{N B}} \sum_b y^b_c\,s^b_j\, 1[y^b_c o^b_c \le \kappa],
    \qquad W \sim \mathcal N(0, 1/N),

with y = +1 for the class of the sample and -1 for the others, over batches of B samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, get_args

import numpy as np
import torch

from rmsim.learning.protocol import run_epochs
from rmsim.tensors import checked_seed, fill_normal_, generator
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.base.statistics import wilson_half_width

__all__ = [
    "Features",
    "LinearReadout",
    "PerceptronFit",
    "PerceptronParameters",
    "ProbeFit",
    "ProbeParameters",
    "Score",
    "checked_features",
    "fit_perceptron",
    "fit_probe",
]

#: What is accepted as features and labels.
Array = torch.Tensor | np.ndarray[Any, Any]

#: Of the streams of random numbers under a seed, that of the orders.
_ORDERS = 7

#: Samples converted to floats at a time where all are used.
_TOGETHER = 4096


@dataclass(frozen=True, eq=False)
class Features:
    """Features (samples, N), of int8 or float, and labels (samples) from 0 to C - 1.

    Parameters
    ----------
    values : Tensor, (samples, N)
        States of neurons as int8, or any real numbers as float32.
    labels : Tensor of int64, (samples)
        Class numbers.
    classes : int
        Number C of classes.
    """

    values: torch.Tensor
    labels: torch.Tensor
    classes: int

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def width(self) -> int:
        """Number N of features."""
        return int(self.values.shape[1])

    @property
    def device(self) -> torch.device:
        """Where the numbers are."""
        return self.values.device

    def parts(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Give all samples in order, as floats, some thousands at a time."""
        for first in range(0, len(self), _TOGETHER):
            part = slice(first, first + _TOGETHER)
            yield self.values[part].float(), self.labels[part]

    def batches(
        self, size: int, seed: int, epoch: int
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Give all samples in the order of an epoch, `size` at a time; the last may be fewer."""
        order = torch.randperm(len(self), generator=generator(seed, _ORDERS, epoch))
        order = order.to(self.device)
        values, labels = self.values[order], self.labels[order]
        for first in range(0, len(self), size):
            part = slice(first, first + size)
            yield values[part].float(), labels[part]


def checked_features(
    values: Array, labels: Array, classes: int, device: torch.device | str | None = None
) -> Features:
    """Return features and labels that fit together, on `device` (where they are by default)."""
    x, y = _tensor(values), _tensor(labels)
    classes = checks.integer("classes", classes, 2)
    if x.dim() != 2 or 0 in x.shape:
        raise InvalidInputError("features", f"shape {tuple(x.shape)}", "of shape (samples, width)")
    if x.is_complex():
        raise InvalidInputError("features", str(x.dtype), "real")
    if x.dtype != torch.int8:
        x = x.float()
        if not bool(x.isfinite().all()):
            raise InvalidInputError("features", "NaN or infinity", "finite numbers")
    if tuple(y.shape) != (len(x),):
        allowed = f"one class number for each of {len(x)} samples"
        raise InvalidInputError("labels", f"shape {tuple(y.shape)}", allowed)
    if y.is_floating_point() or y.is_complex() or y.dtype == torch.bool:
        raise InvalidInputError("labels", str(y.dtype), "integers")
    least, most = int(y.min()), int(y.max())
    if least < 0 or most >= classes:
        wrong = least if least < 0 else most
        raise InvalidInputError("labels", wrong, f"class numbers from 0 to {classes - 1}")
    place = x.device if device is None else device
    return Features(x.to(place), y.to(device=place, dtype=torch.int64), classes)


def _tensor(values: Array) -> torch.Tensor:
    if isinstance(values, np.ndarray) and not values.flags.writeable:
        return torch.tensor(values)  # torch shares no read-only memory
    return torch.as_tensor(values)


@dataclass(frozen=True)
class Score:
    """How well samples are classified.

    Parameters
    ----------
    accuracy : float
        Fraction of the samples whose class is predicted.
    error : float
        Of the accuracy as an estimate for new samples: Wilson's 68 % half width.
    loss : float
        Mean cross-entropy -log softmax(o)_y, in nats.
    """

    accuracy: float
    error: float
    loss: float


@dataclass(frozen=True, eq=False)
class LinearReadout:
    """Weights W of shape (C, N)."""

    weights: torch.Tensor

    def outputs(self, values: torch.Tensor) -> torch.Tensor:
        """Return o = W s of features (samples, N)."""
        return values.to(self.weights.dtype) @ self.weights.T

    def score(self, features: Features) -> Score:
        """Return accuracy and loss on `features`."""
        if (features.classes, features.width) != tuple(self.weights.shape):
            there = f"{features.classes} classes and width {features.width}"
            allowed = "of {} classes and width {}".format(*self.weights.shape)
            raise InvalidInputError("features", there, allowed)
        return score(self.outputs, features)


def score(outputs: Callable[[torch.Tensor], torch.Tensor], features: Features) -> Score:
    """Return accuracy and loss on `features` of what `outputs` makes of them."""
    correct, loss = 0, 0.0
    for values, labels in features.parts():
        o = outputs(values)
        correct += int((o.argmax(1) == labels).sum())
        loss += float(torch.nn.functional.cross_entropy(o, labels, reduction="sum"))
    accuracy = correct / len(features)
    error = float(wilson_half_width(accuracy, len(features)))
    return Score(accuracy, error, loss / len(features))


def checked_rate(argument: str, value: object) -> float:
    """Return a learning rate that float32 can hold."""
    rate = float(checks.exact_real(argument, value))
    if not 1e-30 <= rate <= 1e30:
        raise InvalidInputError(argument, value, "from 1e-30 to 1e30")
    return rate


def demand_finite(weights: torch.Tensor, epoch: int, eta: float) -> None:
    """Raise if training diverged."""
    if not bool(weights.isfinite().all()):
        raise NotConvergedError(
            f"the weights are no longer finite in epoch {epoch + 1}: lower eta = {eta:g}"
        )


class Batched(Protocol):
    """How batches are learnt; parameters of readouts and perceptrons."""

    @property
    def eta(self) -> float:
        """Rate."""

    @property
    def batch(self) -> int:
        """Samples per batch."""

    @property
    def epochs(self) -> int:
        """Passes over the samples."""


def fit_epochs(
    train: Features,
    parameters: Batched,
    seed: int,
    weights: Sequence[torch.Tensor],
    update: Callable[[torch.Tensor, torch.Tensor], torch.Tensor | None],
) -> Iterator[float]:
    """Train the `weights` in place, and give the mean loss of each epoch, as samples were met.

    Parameters
    ----------
    train : Features
        What to learn.
    parameters : Batched
        Rate, size of a batch, epochs.
    seed : int
        Of the order of the samples.
    weights : sequence of Tensor
        What learns.
    update : callable
        Learns one batch, of features and labels, and returns the sum of its losses, if any.

    Raises
    ------
    NotConvergedError
        If weights are no longer finite.
    """

    def learn(total: torch.Tensor, epoch: int) -> Generator[int, None, torch.Tensor]:
        total = torch.zeros_like(total)
        for values, labels in train.batches(parameters.batch, seed, epoch):
            loss = update(values, labels)
            if loss is not None:
                total += loss
        for matrix in weights:
            demand_finite(matrix, epoch, parameters.eta)
        yield len(train)
        return total

    zero = torch.zeros((), device=train.device, dtype=torch.float64)
    for epoch in run_epochs(learn, zero, 0, parameters.epochs):
        yield float(epoch.state) / len(train)


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
        Samples per batch.
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
        Called with the number of epochs done.

    Examples
    --------
    >>> from rmsim.learning.readout import checked_features
    >>> x = torch.tensor([[1, 1], [1, -1], [-1, 1], [-1, -1]], dtype=torch.int8)
    >>> features = checked_features(x, torch.tensor([0, 0, 1, 1]), 2)
    >>> fit_probe(features, parameters=ProbeParameters("sgd", eta=1, epochs=5)).train.accuracy
    1.0
    """
    parameters, seed = parameters or ProbeParameters(), checked_seed(seed)
    weights = torch.zeros((train.classes, train.width), device=train.device)
    step = _Adam(weights, parameters.eta) if parameters.optimiser == "adam" else None

    def update(values: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        gradient, loss = _gradient(weights, values, labels)
        if step is None:
            weights.sub_(gradient, alpha=parameters.eta)
        else:
            step(gradient)
        return loss

    losses = []
    for loss in fit_epochs(train, parameters, seed, [weights], update):
        losses.append(loss)
        progress(len(losses))
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
        Required margin.
    batch : int
        Samples per batch.
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

    The loss of a score has no meaning here: the outputs are not logarithms of probabilities.
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
    after_epoch: Callable[[int, LinearReadout], None] = lambda epochs, readout: None,
) -> PerceptronFit:
    """Train one perceptron per class on frozen features; arguments as of `fit_probe`.

    `after_epoch` is called with the number of epochs done and the weights so far.
    """
    parameters, seed = parameters or PerceptronParameters(), checked_seed(seed)
    weights = torch.empty((train.classes, train.width))
    fill_normal_(weights, 1 / math.sqrt(train.width), generator(seed, *_WEIGHTS))
    weights = weights.to(train.device)

    def update(values: torch.Tensor, labels: torch.Tensor) -> None:
        rate = parameters.eta / math.sqrt(train.width * len(labels))
        signs = torch.full((len(labels), train.classes), -1.0, device=train.device)
        signs.scatter_(1, labels.unsqueeze(1), 1.0)
        margin = signs * (values @ weights.T)
        weights.addmm_((signs * (margin <= parameters.kappa)).T, values, alpha=rate)

    for done, _ in enumerate(fit_epochs(train, parameters, seed, [weights], update), 1):
        progress(done)
        after_epoch(done, LinearReadout(weights))
    readout = LinearReadout(weights)
    tested = None if test is None else readout.score(test)
    return PerceptronFit(readout, readout.score(train), tested, parameters, seed)
