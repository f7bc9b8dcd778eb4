"""``rmsim baseline``: the baselines of learning (:mod:`rmsim.learning.baselines`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from rmsim.cli.options import (
    DataOption,
    DatasetOption,
    DeviceOption,
    SeedOption,
    SimulationReport,
    TestOption,
    TrainOption,
    option,
    read_dataset,
)
from rmtheory.runtime import report as io
from rmtheory.runtime.command import bundled

if TYPE_CHECKING:
    from rmsim.data.dataset import Dataset
    from rmsim.learning.baselines import BaselinePreset, BaselineResult

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
    option(
        "--preset", "NAME", "Of training (rmsim presets); the other options replace its numbers."
    ),
]
SizeOption = Annotated[str | None, option("--n", "N", "Neurons of the network compared with.")]
RhoJOption = Annotated[str | None, option("--rho-j", "DENSITY", "Density of its J.")]
RhoInOption = Annotated[str | None, option("--rho-in", "DENSITY", "Density of its W_in.")]
EpochsOption = Annotated[str | None, option("--epochs", "COUNT", "Passes over the samples.")]
EtaOption = Annotated[str | None, option("--eta", "RATE", "Learning rate.")]
JdOption = Annotated[str | None, option("--jd", "NUMBER", "Self-coupling J_D.")]
LambdaOption = Annotated[str | None, option("--lambda-x", "NUMBER", "Strength of the input.")]
KappaOption = Annotated[str | None, option("--kappa", "NUMBER", "Margin of the perceptrons.")]
ProbeOption = Annotated[
    str, option("--probe-epochs", "COUNT", "Passes of the softmax probe (Adam).")
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
    """Options of every baseline: seed, data, device, and form of the result."""

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


def _inputs(
    preset: str, n: str | None, changes: dict[str, str | None], options: TaskOptions
) -> tuple[BaselinePreset, Dataset]:
    """Return the numbers of the preset with `changes`, and the samples chosen of its data."""
    from rmsim.learning.baselines import baseline_preset
    from rmsim.tensors import checked_seed, choose_device

    numbers = baseline_preset(preset, n).with_changes(**changes)
    choose_device(options.device), checked_seed(options.seed)  # errors come before a download
    data = read_dataset(numbers.dataset, options.data)
    return numbers, data.first(options.train, options.test)


def _show(result: BaselineResult, options: TaskOptions) -> None:
    report = SimulationReport(result.title, result.document(), _MEANING)
    report.show(options.json, options.out)


@baseline_app.command("mlp")
@bundled
def mlp_command(
    preset: PresetOption = "entangled-mnist-sparse",
    dataset: DatasetOption = None,
    n: SizeOption = None,
    rho_j: RhoJOption = None,
    rho_in: RhoInOption = None,
    width: Annotated[
        str | None, option("--width", "H", "Hidden neurons; by default as many as match --n.")
    ] = None,
    epochs: EpochsOption = None,
    eta: EtaOption = None,
    batch: Annotated[str, option("--batch", "COUNT", "Samples per batch.")] = "64",
    *,
    options: TaskOptions,
) -> None:
    """Train the binarised perceptron with two hidden layers, by straight-through gradients.

    Example: rmsim baseline mlp --preset mnist-sparse --n 1000 --epochs 20 --seed 0 --json
    """
    from rmsim.learning.baselines import run_mlp
    from rmtheory.runtime.progress import counting

    changes = {"dataset": dataset, "rho_j": rho_j, "rho_in": rho_in}
    changes |= {"epochs_mlp": epochs, "eta_mlp": eta}
    numbers, samples = _inputs(preset, n, changes, options)
    result = run_mlp(
        numbers,
        samples,
        width=width,
        batch=batch,
        seed=options.seed,
        device=options.device,
        stage=counting,
    )
    _show(result, options)


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
    from rmsim.learning.baselines import run_random_features

    changes = {"dataset": dataset, "rho_in": rho_in}
    _fit_readouts(run_random_features, preset, n, changes, readout, options)


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
    sweeps: Annotated[str | None, option("--sweeps", "COUNT", "Sweeps from s = 0.")] = None,
    *,
    readout: ReadoutOptions,
    options: TaskOptions,
) -> None:
    """Train readouts of an untrained core module: online perceptrons, and a softmax probe.

    Example: rmsim baseline reservoir --n 400 --jd .5 --epochs 20 --seed 0 --json
    """
    from rmsim.learning.baselines import run_reservoir

    changes = {"dataset": dataset, "jd": jd, "lambda_x": lambda_x}
    changes |= {"rho_j": rho_j, "rho_in": rho_in, "sweeps": sweeps}
    _fit_readouts(run_reservoir, preset, n, changes, readout, options)


def _fit_readouts(
    run: Callable[..., BaselineResult],
    preset: str,
    n: str | None,
    changes: dict[str, str | None],
    readout: ReadoutOptions,
    options: TaskOptions,
) -> None:
    """Train both readouts of frozen states and print the result."""
    from rmtheory.runtime.progress import counting

    numbers, samples = _inputs(preset, n, changes | readout.changes(), options)
    result = run(
        numbers,
        samples,
        probe_epochs=readout.probe_epochs,
        seed=options.seed,
        device=options.device,
        stage=counting,
    )
    _show(result, options)
