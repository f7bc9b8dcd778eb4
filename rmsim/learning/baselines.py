r"""What learning is compared with: a binarised perceptron by backpropagation, frozen features.

**The perceptron** has two hidden layers and is trained by straight-through gradients (SM-D),

.. math:: s_1 = \mathrm{sgn}(\tanh W_1 x), \qquad s_2 = \mathrm{sgn}(\tanh W_2 s_1), \qquad
    o = W_3 s_2,

no biases, sgn(0) = +1, cross-entropy loss, Adam. Gradients ignore the sign: those of s are passed
on to tanh as they are. Weights start uniform in :math:`\pm 1/\sqrt{\text{fan-in}}`.

**Its width** H gives it the parameters of the network: the core module with Bernoulli masks learns
J, W_in and W_out, a layer of width H three matrices without biases:

.. math:: P_{core} = \rho_J N (N-1) + \rho_{in} N D + N C, \qquad P_{MLP}(H) = H D + H^2 + H C .

This is the paper's count: with rho_J = .01 and rho_in = .1 all six pairs of its table for Tiny
ImageNet are :math:`N = \lfloor P_{core}^{-1}(P_{MLP}(H)) \rfloor`. Its widths for the other sets
are within one of ours, as if masks had been drawn and counted: a mask has
:math:`\sqrt{\rho(1-\rho)}` times the root of its size more or fewer couplings, up to half a width.

**Random features and the reservoir** are the core module with nothing learnt but the readout
(SM-D): the network before training, eta_J = eta_in = lambda_y = 0, in the state after some sweeps
from s = 0 under the input. One sweep gives random features, s = sgn(W_in x), whatever J is; more
make a reservoir. As nothing in front of the readout changes, every state is computed once.

The rates of the perceptron are those of the paper's tables mnist, fmnist, emnist and timg (SM-D);
rate and margin of the readout of frozen features those of its table on feature learning.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

import torch

from rmsim.data.dataset import Dataset, Samples
from rmsim.learning.parameters import Parameters
from rmsim.learning.presets import preset
from rmsim.learning.protocol import infer
from rmsim.learning.readout import (
    Features,
    PerceptronParameters,
    ProbeParameters,
    Score,
    checked_features,
    checked_rate,
    fit_epochs,
    fit_perceptron,
    fit_probe,
    score,
)
from rmsim.learning.state import initialise
from rmsim.tensors import checked_seed, choose_device, generator, sign
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError

__all__ = [
    "BaselinePreset",
    "BaselineResult",
    "Mlp",
    "MlpFit",
    "MlpParameters",
    "baseline_preset",
    "core_parameters",
    "fit_mlp",
    "frozen_features",
    "matched_width",
    "mlp_parameters",
    "reservoir_parameters",
    "run_mlp",
    "run_random_features",
    "run_reservoir",
]


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
        Samples per batch.
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
    after_epoch: Callable[[int, Mlp], None] = lambda epochs, network: None,
) -> MlpFit:
    """Train the perceptron.

    Parameters
    ----------
    train, test : Features
        Inputs with their labels; see `rmsim.learning.readout.checked_features`.
    parameters : MlpParameters
        Width and training.
    seed : int
        Seed of the weights and of the order of the samples.
    progress : callable
        Called with the number of epochs done.
    after_epoch : callable
        Called with the number of epochs done and the weights so far.
    """
    seed = checked_seed(seed)
    drawn = draw_mlp(parameters, train.width, train.classes, seed)
    first, second, third = (
        matrix.to(train.device).requires_grad_(True) for matrix in drawn.weights
    )
    network = Mlp((first, second, third))
    optimiser = torch.optim.Adam(network.weights, lr=parameters.eta)

    def update(x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        loss = torch.nn.functional.cross_entropy(network.outputs(x), labels)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        return loss.detach() * len(labels)

    losses, tests = [], []
    for loss in fit_epochs(train, parameters, seed, network.weights, update):
        losses.append(loss)
        tests.append(network.score(test).accuracy)
        progress(len(losses))
        after_epoch(len(losses), network)
    first, second, third = (matrix.detach() for matrix in network.weights)
    network = Mlp((first, second, third))
    scores = network.score(train), network.score(test)
    return MlpFit(network, tuple(losses), tuple(tests), *scores, parameters, seed)


def _straight_sign(a: torch.Tensor) -> torch.Tensor:
    """Return sgn(a), with the gradient of a itself."""
    return sign(a.detach()) + (a - a.detach())  # the bracket is exactly 0


def core_parameters(
    n: int, inputs: int, classes: int, rho_j: float = 0.01, rho_in: float = 0.1
) -> float:
    """Return the mean number of parameters that a core module of `n` neurons learns.

    Examples
    --------
    >>> round(core_parameters(1000, 784, 10))
    98390
    """
    n, inputs, classes = _sizes(n=n, inputs=inputs, classes=classes)
    for name, rho in (("rho_j", rho_j), ("rho_in", rho_in)):
        if not 0 < rho <= 1:
            raise InvalidInputError(name, rho, "a density above 0 and at most 1")
    return rho_j * n * (n - 1) + rho_in * n * inputs + n * classes


def mlp_parameters(width: int, inputs: int, classes: int) -> int:
    """Return the number of parameters of the perceptron with two hidden layers of `width`.

    Examples
    --------
    >>> mlp_parameters(109, 784, 10)
    98427
    """
    width, inputs, classes = _sizes(width=width, inputs=inputs, classes=classes)
    return width * (inputs + width + classes)


@dataclass(frozen=True)
class Matched:
    """A width, its number of parameters, and by which part that differs from the one wanted."""

    width: int
    parameters: int
    mismatch: float


def matched_width(parameters: float, inputs: int, classes: int) -> Matched:
    """Return the width H whose number of parameters is nearest to `parameters`.

    Examples
    --------
    >>> matched_width(core_parameters(1000, 784, 10), 784, 10).width
    109
    """
    if not parameters >= 1:
        raise InvalidInputError("parameters", parameters, "at least 1")
    half = (inputs + classes) / 2
    low = max(1, math.floor(math.sqrt(half * half + parameters) - half))
    width = min((low, low + 1), key=lambda h: abs(mlp_parameters(h, inputs, classes) - parameters))
    count = mlp_parameters(width, inputs, classes)
    return Matched(width, count, count / parameters - 1)


def _sizes(**sizes: int) -> tuple[int, int, int]:
    first, second, third = (checks.integer(name, value, 1) for name, value in sizes.items())
    return first, second, third


#: Samples relaxed between two reports of progress.
_TOGETHER = 2048


def reservoir_parameters(n: int, sweeps: int = 5, **others: Any) -> Parameters:
    """Return the core module of `n` neurons without learning, `sweeps` of them at inference.

    `others` are parameters of the network: jd, lambda_x, rho_j, rho_in.

    Examples
    --------
    >>> reservoir_parameters(400, jd=0.5).w_back.strength
    0.0
    """
    frozen = {"eta_j": 0.0, "eta_in": 0.0, "eta_out": 0.0, "lambda_y": 0.0, "readout": "none"}
    return Parameters.from_dict({"n": n, "inference": sweeps, **others, **frozen})


def frozen_features(
    parameters: Parameters,
    data: Dataset,
    seed: int,
    device: torch.device | str = "cpu",
    progress: Callable[[int], None] = lambda samples: None,
) -> tuple[Features, Features]:
    """Return the states of the untrained network under the training and the test inputs.

    Parameters
    ----------
    parameters : Parameters
        See `reservoir_parameters`.
    data : Dataset
        Inputs and labels.
    seed : int
        Seed of the weights, the same as those of a network that learns.
    device : optional
        Where to compute.
    progress : callable
        Called with the number of samples done, of both parts together.
    """
    state = initialise(parameters, data.width, data.classes, seed, device=device)

    def states(samples: Samples, before: int) -> Features:
        inputs, labels = samples.tensors(state.dtype)
        spins = torch.empty((len(samples), parameters.neurons), dtype=torch.int8)
        for first in range(0, len(samples), _TOGETHER):
            part = slice(first, first + _TOGETHER)
            spins[part] = infer(parameters, state, inputs[part]).flatten(1).cpu()
            progress(before + min(first + _TOGETHER, len(samples)))
        return checked_features(spins, labels, data.classes, device)

    return states(data.train, 0), states(data.test, len(data.train))


#: Data set -> rate of Adam for the perceptron with hidden layers.
ETA_MLP: Mapping[str, float] = MappingProxyType(
    {
        "mnist": 0.003,
        "fashion-mnist": 0.003,
        "entangled-mnist": 0.005,
        "tiny-imagenet-features": 0.005,
    }
)


@dataclass(frozen=True)
class BaselinePreset:
    """What a baseline is compared with, and how it is trained.

    Parameters
    ----------
    dataset : str
        Name of the data set.
    n, rho_j, rho_in, jd, lambda_x : number
        Of the network that it is a baseline of.
    sweeps : int
        Sweeps of the reservoir.
    eta_mlp, epochs_mlp : number
        Rate and epochs of the perceptron with hidden layers.
    epochs_out : int
        Epochs of the readout of frozen features.
    eta_out, kappa_out : float
        Its rate and margin.
    """

    dataset: str
    n: int
    rho_j: float
    rho_in: float
    jd: float
    lambda_x: float
    sweeps: int
    eta_mlp: float
    epochs_mlp: int
    epochs_out: int
    eta_out: float = 0.03
    kappa_out: float = 3.0

    def with_changes(self, **changes: object) -> BaselinePreset:
        """Return the preset with other numbers, each read as the type of the one it replaces.

        A change that is None leaves the number as it is. An error names the number as the option of
        the command does: without the ending that says of which baseline it is.

        Examples
        --------
        >>> baseline_preset("mnist-sparse").with_changes(epochs_mlp="3", rho_j=None).epochs_mlp
        3
        """
        values: dict[str, Any] = {}
        for name, value in changes.items():
            if value is None:
                continue
            argument = name.removesuffix("_mlp").removesuffix("_out")
            kind = type(getattr(self, name))
            if kind is int:
                values[name] = checks.integer(argument, value, 1)
            else:
                values[name] = value if kind is str else float(checks.exact_real(argument, value))
        return replace(self, **values)


def baseline_preset(name: str, n: object = None) -> BaselinePreset:
    """Return the baselines of the preset `name` of training, at width `n` or that of the paper.

    Examples
    --------
    >>> baseline_preset("mnist-sparse").eta_mlp, baseline_preset("mnist-sparse").n
    (0.003, 1000)
    """
    chosen = preset(name)
    width = chosen.width(n)
    network = chosen.parameters(width)
    epochs = chosen.epochs_at(width)
    return BaselinePreset(
        dataset=chosen.dataset,
        n=width,
        rho_j=network.couplings.rho,
        rho_in=network.w_in.rho,
        jd=network.couplings.jd,
        lambda_x=network.w_in.strength,
        sweeps=network.phases.inference,
        eta_mlp=ETA_MLP[chosen.dataset],
        epochs_mlp=epochs,
        epochs_out=epochs,
    )


#: Opens the display of one stage of the work, from its name and its number of steps.
Stage = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


def _silent(label: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
    return nullcontext(lambda done: None)


@dataclass(frozen=True)
class BaselineResult:
    """A baseline, trained and measured.

    Parameters
    ----------
    title : str
        What was trained, on which data.
    parameters : mapping
        How, as JSON values.
    results : mapping
        Accuracies with NAME_error beside each NAME, losses, numbers of parameters.
    data : mapping
        Name, numbers of samples and checksum of the data.
    seed : int
        Seed of weights and orders.
    device : str
        Where it ran.
    wall_time : float
        Seconds.
    """

    title: str
    parameters: Mapping[str, Any]
    results: Mapping[str, Any]
    data: Mapping[str, Any]
    seed: int
    device: str
    wall_time: float

    def document(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "parameters": dict(self.parameters),
            **self.results,
            "data": dict(self.data),
            "seed": self.seed,
            "device": self.device,
            "dtype": "float32",
            "wall_time": self.wall_time,
        }


@dataclass(frozen=True)
class _Clock:
    """What every baseline records beside its results."""

    data: Dataset
    seed: int
    device: torch.device
    started: float = field(default_factory=time.perf_counter)

    def result(
        self, title: str, parameters: dict[str, Any], results: dict[str, Any]
    ) -> BaselineResult:
        summary = self.data.summary()
        return BaselineResult(
            f"{title} on {self.data.name}",
            parameters,
            results,
            {name: summary[name] for name in ("name", "train", "test", "sha256")},
            self.seed,
            str(self.device),
            time.perf_counter() - self.started,
        )


def run_mlp(
    numbers: BaselinePreset,
    data: Dataset,
    *,
    width: object = None,
    batch: object = 64,
    seed: object = 0,
    device: str | torch.device = "auto",
    stage: Stage = _silent,
) -> BaselineResult:
    """Train the binarised perceptron with two hidden layers, and measure it.

    Parameters
    ----------
    numbers : BaselinePreset
        Rate, epochs, and the network that it is compared with.
    data : Dataset
        Samples to train on and to test on.
    width : int, optional
        Hidden neurons; by default as many as give it the parameters of the network.
    batch : int
        Samples per batch.
    seed : int
        Seed of weights and orders.
    device : str or torch.device
        Where to compute.
    stage : callable
        Opens the display of progress (:func:`rmtheory.runtime.progress.counting`).
    """
    clock = _Clock(data, checked_seed(seed), choose_device(device))
    inputs, classes = data.width, data.classes
    wanted = core_parameters(numbers.n, inputs, classes, numbers.rho_j, numbers.rho_in)
    if width is None:
        hidden = matched_width(wanted, inputs, classes).width
    else:
        hidden = checks.integer("width", width, 1)
    size = checks.integer("batch", batch, 1)
    parameters = MlpParameters(hidden, numbers.eta_mlp, size, numbers.epochs_mlp)
    train, test = (
        checked_features(part.inputs, part.labels, classes, clock.device)
        for part in (data.train, data.test)
    )
    with stage("epochs", parameters.epochs) as progress:
        fit = fit_mlp(train, test, parameters, clock.seed, progress)
    count = mlp_parameters(hidden, inputs, classes)
    return clock.result(
        f"Perceptron {inputs}-{hidden}-{hidden}-{classes}",
        {
            "baseline": "mlp",
            **parameters.to_dict(),
            "n": numbers.n,
            "rho_j": numbers.rho_j,
            "rho_in": numbers.rho_in,
        },
        {
            "train_accuracy": fit.train.accuracy,
            "train_accuracy_error": fit.train.error,
            "train_loss": fit.train.loss,
            "test_accuracy": fit.test.accuracy,
            "test_accuracy_error": fit.test.error,
            "test_loss": fit.test.loss,
            "test_accuracies": list(fit.tests),
            "losses": list(fit.losses),
            "trainable_parameters": count,
            "core_parameters": wanted,
            "mismatch": count / wanted - 1,
        },
    )


def run_random_features(
    numbers: BaselinePreset,
    data: Dataset,
    *,
    probe_epochs: object = 20,
    seed: object = 0,
    device: str | torch.device = "auto",
    stage: Stage = _silent,
) -> BaselineResult:
    """Train online perceptrons and a softmax probe on random features s = sgn(W_in x).

    Parameters
    ----------
    numbers : BaselinePreset
        Size and density of W_in, rate, margin and epochs of the perceptrons.
    data : Dataset
        Samples to train on and to test on.
    probe_epochs : int
        Epochs of the probe.
    seed, device, stage
        As for :func:`run_mlp`.
    """
    network = {"lambda_x": numbers.lambda_x, "rho_in": numbers.rho_in}
    clock = _Clock(data, checked_seed(seed), choose_device(device))
    return _fit_readouts("random-features", numbers, clock, 1, network, probe_epochs, stage)


def run_reservoir(
    numbers: BaselinePreset,
    data: Dataset,
    *,
    probe_epochs: object = 20,
    seed: object = 0,
    device: str | torch.device = "auto",
    stage: Stage = _silent,
) -> BaselineResult:
    """Train online perceptrons and a softmax probe on the states of an untrained core module.

    Parameters
    ----------
    numbers : BaselinePreset
        The module and its sweeps, rate, margin and epochs of the perceptrons.
    data, probe_epochs, seed, device, stage
        As for :func:`run_random_features`.
    """
    network = {"lambda_x": numbers.lambda_x, "rho_in": numbers.rho_in}
    if numbers.sweeps > 1:  # J has no effect in the first sweep from s = 0
        network |= {"jd": numbers.jd, "rho_j": numbers.rho_j}
    clock = _Clock(data, checked_seed(seed), choose_device(device))
    return _fit_readouts("reservoir", numbers, clock, numbers.sweeps, network, probe_epochs, stage)


def _fit_readouts(
    name: str,
    numbers: BaselinePreset,
    clock: _Clock,
    sweeps: int,
    network: dict[str, float],
    probe_epochs: object,
    stage: Stage,
) -> BaselineResult:
    """Compute the frozen states once, and train both readouts on them."""
    data, seed = clock.data, clock.seed
    rule = PerceptronParameters(numbers.eta_out, numbers.kappa_out, epochs=numbers.epochs_out)
    probing = ProbeParameters(epochs=checks.integer("probe_epochs", probe_epochs, 1))
    core = reservoir_parameters(numbers.n, sweeps, **network)
    if numbers.n < data.classes:
        raise InvalidInputError("n", numbers.n, f"at least the {data.classes} classes")
    with stage("samples", len(data.train) + len(data.test)) as progress:
        features = frozen_features(core, data, seed, clock.device, progress)
    with stage("epochs", rule.epochs) as progress:
        online = fit_perceptron(*features, rule, seed, progress)
    with stage("epochs of the probe", probing.epochs) as progress:
        probe = fit_probe(*features, probing, seed, progress)
    assert online.test is not None  # both were given test samples
    assert probe.test is not None
    return clock.result(
        f"Readout of {name} with N = {numbers.n}",
        {"baseline": name, "n": numbers.n, "sweeps": sweeps, **network}
        | {"readout": rule.to_dict(), "probe": probing.to_dict()},
        {
            "train_accuracy": online.train.accuracy,
            "train_accuracy_error": online.train.error,
            "test_accuracy": online.test.accuracy,
            "test_accuracy_error": online.test.error,
            "probe_train_accuracy": probe.train.accuracy,
            "probe_train_accuracy_error": probe.train.error,
            "probe_train_loss": probe.train.loss,
            "probe_test_accuracy": probe.test.accuracy,
            "probe_test_accuracy_error": probe.test.error,
            "probe_test_loss": probe.test.loss,
            "trainable_parameters": numbers.n * data.classes,
        },
    )
