"""``rmsim baseline``: what learning is compared with, trained and measured."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmsim.cli.data import DataOption, read_dataset
from rmsim.cli.options import DeviceOption, SeedOption, bundled
from rmsim.cli.options import option as _option
from rmtheory import checks
from rmtheory.cli import output as io
from rmtheory.errors import InvalidInputError

if TYPE_CHECKING:
    import torch

    from rmsim.baselines import BaselinePreset
    from rmsim.data import Dataset

baseline_app = typer.Typer(
    help="Baselines: what learning is compared with, trained and measured.",
    invoke_without_command=True,
    rich_markup_mode=None,
)


@baseline_app.callback()
def _baseline(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


PresetOption = Annotated[
    str,
    _option(
        "--preset", "NAME", "Of training (rmsim presets); the other options replace its numbers."
    ),
]
DatasetOption = Annotated[
    str | None, _option("--dataset", "NAME", "Data set, as in 'rmsim data list'.")
]
SizeOption = Annotated[str | None, _option("--n", "N", "Neurons of the network compared with.")]
RhoJOption = Annotated[str | None, _option("--rho-j", "DENSITY", "Density of its J.")]
RhoInOption = Annotated[str | None, _option("--rho-in", "DENSITY", "Density of its W_in.")]
EpochsOption = Annotated[str | None, _option("--epochs", "COUNT", "Passes over the samples.")]
EtaOption = Annotated[str | None, _option("--eta", "RATE", "Learning rate.")]
TrainOption = Annotated[str | None, _option("--train", "COUNT", "Only the first training samples.")]
TestOption = Annotated[str | None, _option("--test", "COUNT", "Only the first test samples.")]
JdOption = Annotated[str | None, _option("--jd", "NUMBER", "Self-coupling J_D.")]
LambdaOption = Annotated[str | None, _option("--lambda-x", "NUMBER", "Strength of the input.")]
KappaOption = Annotated[str | None, _option("--kappa", "NUMBER", "Margin of the perceptrons.")]
ProbeOption = Annotated[
    str, _option("--probe-epochs", "COUNT", "Passes of the softmax probe (Adam).")
]

_MEANING = {
    "train_accuracy": "on the samples trained on",
    "test_accuracy": "on others; errors are those of the number of samples",
    "probe_train_accuracy": "by the softmax probe",
    "probe_test_accuracy": "by the softmax probe",
    "trainable_parameters": "numbers that are learnt",
    "core_parameters": "those of the network compared with, on average over its masks",
    "mismatch": "trainable_parameters/core_parameters - 1",
    "device": "where it ran",
    "wall_time": "seconds",
}


@dataclass(frozen=True)
class TaskOptions:
    """What every baseline is asked: seed, data, place, and how to answer."""

    seed: SeedOption = "0"
    train: TrainOption = None
    test: TestOption = None
    data: DataOption = None
    device: DeviceOption = "auto"
    json: io.JsonOption = False
    out: io.OutOption = None


@dataclass(frozen=True)
class ReadoutOptions:
    """How readouts of frozen states are trained."""

    epochs: EpochsOption = None
    eta: EtaOption = None
    kappa: KappaOption = None
    probe_epochs: ProbeOption = "20"

    def changes(self) -> dict[str, str | None]:
        """Return the numbers that replace those of a preset."""
        return {"epochs_out": self.epochs, "eta_out": self.eta, "kappa_out": self.kappa}


@dataclass(frozen=True)
class _Task:
    """What all baselines share: numbers, data, seed, device and the clock."""

    preset: BaselinePreset
    data: Dataset
    seed: int
    device: torch.device
    started: float

    def document(self, parameters: dict[str, Any], results: dict[str, Any]) -> dict[str, Any]:
        """Return the answer as JSON values."""
        data = self.data.summary()
        return {
            "parameters": parameters,
            **results,
            "data": {name: data[name] for name in ("name", "train", "test", "sha256")},
            "seed": self.seed,
            "device": str(self.device),
            "dtype": "float32",
            "wall_time": time.perf_counter() - self.started,
        }


def _task(
    preset: str,
    n: str | None,
    changes: dict[str, str | None],
    options: TaskOptions,
) -> _Task:
    """Read options and data; `changes` replace numbers of the preset, each by its own type."""
    from rmsim.baselines import baseline_preset
    from rmsim.device import choose_device
    from rmsim.randomness import checked_seed

    started = time.perf_counter()
    numbers = baseline_preset(preset, n)
    values: dict[str, Any] = {}
    for name, text in changes.items():
        if text is None:
            continue
        kind = type(getattr(numbers, name))
        if kind is int:
            values[name] = checks.integer(_option_of(name), text, 1)
        else:
            values[name] = text if kind is str else float(checks.exact_real(_option_of(name), text))
    numbers = replace(numbers, **values)
    place, number = choose_device(options.device), checked_seed(options.seed)
    found = read_dataset(numbers.dataset, options.data)
    train, test = options.train, options.test
    if train is not None or test is not None:
        found = found.first(
            checks.integer("train", train or len(found.train), 1, len(found.train)),
            checks.integer("test", test or len(found.test), 1, len(found.test)),
        )
    return _Task(numbers, found, number, place, started)


def _option_of(name: str) -> str:
    """Return the option that replaces the number `name` of a preset, as users write it."""
    return name.removesuffix("_mlp").removesuffix("_out")


@baseline_app.command("mlp")
@bundled
def mlp_command(
    preset: PresetOption = "entangled-mnist-sparse",
    dataset: DatasetOption = None,
    n: SizeOption = None,
    rho_j: RhoJOption = None,
    rho_in: RhoInOption = None,
    width: Annotated[
        str | None, _option("--width", "H", "Hidden neurons; by default as many as match --n.")
    ] = None,
    epochs: EpochsOption = None,
    eta: EtaOption = None,
    batch: Annotated[str, _option("--batch", "COUNT", "Samples a batch.")] = "64",
    *,
    options: TaskOptions,
) -> None:
    """Train the binarised perceptron with two hidden layers, by straight-through gradients.

    Example: rmsim baseline mlp --preset mnist-sparse --n 1000 --epochs 20 --seed 0 --json
    """
    from rmsim.baselines import MlpParameters, core_parameters, fit_mlp, matched_width
    from rmsim.baselines import mlp_parameters as count_parameters
    from rmsim.cli.report import SimulationReport
    from rmsim.readout import checked_features
    from rmtheory.cli.progress import counting

    changes = {"dataset": dataset, "rho_j": rho_j, "rho_in": rho_in}
    changes |= {"epochs_mlp": epochs, "eta_mlp": eta}
    task = _task(preset, n, changes, options)
    numbers, inputs, classes = task.preset, task.data.width, task.data.classes
    wanted = core_parameters(numbers.n, inputs, classes, numbers.rho_j, numbers.rho_in)
    hidden = (
        matched_width(wanted, inputs, classes).width
        if width is None
        else checks.integer("width", width, 1)
    )
    parameters = MlpParameters(
        hidden, numbers.eta_mlp, checks.integer("batch", batch, 1), numbers.epochs_mlp
    )
    parts = [
        checked_features(part.inputs, part.labels, classes, task.device)
        for part in (task.data.train, task.data.test)
    ]
    with counting("epochs", parameters.epochs) as progress:
        fit = fit_mlp(parts[0], parts[1], parameters, task.seed, progress)
    count = count_parameters(hidden, inputs, classes)
    document = task.document(
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
    title = f"Perceptron {inputs}-{hidden}-{hidden}-{classes} on {task.data.name}"
    SimulationReport(title, document, _MEANING).show(options.json, options.out)


@baseline_app.command("random-features")
@bundled
def random_features_command(
    preset: PresetOption = "random-features",
    dataset: DatasetOption = None,
    n: SizeOption = None,
    rho_in: RhoInOption = None,
    *,
    readout: ReadoutOptions,
    options: TaskOptions,
) -> None:
    """Train readouts of random features sgn(W_in x): online perceptrons, and a softmax probe.

    Example: rmsim baseline random-features --n 400 --epochs 20 --seed 0 --json
    """
    changes = {"dataset": dataset, "rho_in": rho_in}
    changes |= readout.changes()
    task = _task(preset, n, changes, options)
    _frozen("random-features", task, 1, readout.probe_epochs, options)


@baseline_app.command("reservoir")
@bundled
def reservoir_command(
    preset: PresetOption = "reservoir",
    dataset: DatasetOption = None,
    n: SizeOption = None,
    jd: JdOption = None,
    lambda_x: LambdaOption = None,
    rho_j: RhoJOption = None,
    rho_in: RhoInOption = None,
    sweeps: Annotated[str | None, _option("--sweeps", "COUNT", "Sweeps from s = 0.")] = None,
    *,
    readout: ReadoutOptions,
    options: TaskOptions,
) -> None:
    """Train readouts of an untrained core module: online perceptrons, and a softmax probe.

    Example: rmsim baseline reservoir --n 400 --jd .5 --epochs 20 --seed 0 --json
    """
    changes = {"dataset": dataset, "jd": jd, "lambda_x": lambda_x}
    changes |= {"rho_j": rho_j, "rho_in": rho_in, "sweeps": sweeps}
    changes |= readout.changes()
    task = _task(preset, n, changes, options)
    _frozen("reservoir", task, task.preset.sweeps, readout.probe_epochs, options)


def _frozen(name: str, task: _Task, sweeps: int, probe_epochs: str, options: TaskOptions) -> None:
    """Compute the states once, train both readouts on them, and report."""
    from rmsim.baselines import frozen_features, reservoir_parameters
    from rmsim.cli.report import SimulationReport
    from rmsim.readout import PerceptronParameters, ProbeParameters, fit_perceptron, fit_probe
    from rmtheory.cli.progress import counting

    numbers = task.preset
    network: dict[str, Any] = {"lambda_x": numbers.lambda_x, "rho_in": numbers.rho_in}
    if sweeps > 1:
        network |= {"jd": numbers.jd, "rho_j": numbers.rho_j}
    rule = PerceptronParameters(numbers.eta_out, numbers.kappa_out, epochs=numbers.epochs_out)
    probing = ProbeParameters(epochs=checks.integer("probe_epochs", probe_epochs, 1))
    core = reservoir_parameters(numbers.n, sweeps, **network)
    if numbers.n < task.data.classes:
        raise InvalidInputError("n", numbers.n, f"at least the {task.data.classes} classes")
    with counting("samples", len(task.data.train) + len(task.data.test)) as progress:
        features = frozen_features(core, task.data, task.seed, task.device, progress)
    with counting("epochs", rule.epochs) as progress:
        online = fit_perceptron(*features, rule, task.seed, progress)
    with counting("epochs of the probe", probing.epochs) as progress:
        probe = fit_probe(*features, probing, task.seed, progress)
    assert online.test is not None  # both were given test samples
    assert probe.test is not None
    document = task.document(
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
            "trainable_parameters": numbers.n * task.data.classes,
        },
    )
    title = f"Readout of {name} with N = {numbers.n} on {task.data.name}"
    SimulationReport(title, document, _MEANING).show(options.json, options.out)
