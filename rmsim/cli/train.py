"""``rmsim train``, ``rmsim evaluate`` and ``rmsim presets``: learning from data sets.

Progress is shown as one live line on a terminal, and as one line per epoch elsewhere.
"""

from __future__ import annotations

import csv
import io as io_module
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmsim.cli.options import (
    DatasetOption,
    DeviceOption,
    DtypeOption,
    LabelOption,
    OverwriteOption,
    OwnDataOption,
    OwnTestOption,
    SeedOption,
    SimulationReport,
    TrainOption,
    option,
    read_dataset,
    read_own_or_named,
    show_rows,
)
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError, counted
from rmtheory.runtime import report as io
from rmtheory.runtime.command import check_new, if_interrupted
from rmtheory.runtime.files import write_text
from rmtheory.runtime.progress import Progress, counting

if TYPE_CHECKING:  # torch takes seconds to import
    import torch

    from rmsim.data.dataset import Dataset
    from rmsim.learning.run_folder import Checkpoint
    from rmsim.learning.training import TrainingProgress

_MEANING = {
    "epoch": "epochs done",
    "train_accuracy": "of the perceptrons, on samples trained on (none: no perceptrons)",
    "test_accuracy": "of the perceptrons, on others; errors are binomial",
    "probe_train_accuracy": "of the softmax probe, on samples trained on",
    "probe_test_accuracy": "of the softmax probe, on others",
    "q_dyn": "overlap of s' and s*: median and quartiles, samples trained on",
    "margin": "least s h of a sample: median and quartiles",
    "symmetry": "of J: 1 symmetric, 0 independent, -1 antisymmetric (none: J = 0)",
    "unstable_free": "fraction of samples whose s* is not a fixed point",
    "below_kappa": "fraction of neurons that the next step would update",
    "device": "where it ran",
    "folder": "weights and measurements",
    "wall_time": "seconds",
}


#: Defaults for data of one's own.
OWN_PRESET, OWN_NEURONS, OWN_EPOCHS = "entangled-mnist-dense", "400", "5"

FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of 'rmsim train'.")]


def train_command(
    preset: Annotated[str | None, option("--preset", "NAME", "As in 'rmsim presets'.")] = None,
    n: Annotated[str | None, option("--n", "N", "Neurons; by default as in the paper.")] = None,
    epochs: Annotated[
        str | None,
        option("--epochs", "COUNT", "Epochs in all; by default as in the paper."),
    ] = None,
    seed: SeedOption = "0",
    out: Annotated[
        Path | None,
        option("--out", "DIR", "Folder of the run; the same command resumes it."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        option("--set", "KEY=VALUE", "Another value of a parameter; repeatable."),
    ] = None,
    probe: Annotated[
        str | None,
        option(
            "--probe",
            "COUNT",
            "Epochs of the softmax probe afterwards, 0: none; by default as many as before, "
            "at least 10, where the paper has one.",
        ),
    ] = None,
    dataset: DatasetOption = None,
    data: OwnDataOption = None,
    train: TrainOption = None,
    test: OwnTestOption = None,
    label: LabelOption = "y",
    metrics: Annotated[
        str, option("--metrics", "COUNT", "Samples of which q_dyn is measured.")
    ] = "2000",
    compile: Annotated[
        bool,
        typer.Option("--compile", help="Fuse the operations of a GPU by torch.compile."),
    ] = False,
    watch: Annotated[str | None, typer.Option("--watch", hidden=True)] = None,
    dtype: DtypeOption = "float32",
    device: DeviceOption = "auto",
    json: io.JsonOption = False,
) -> None:
    """Train a network, and measure it after every epoch.

    The weights are stored after every epoch: a run that was killed resumes from there with the same
    command, and more --epochs continue it. DIR/log.jsonl can be read while it runs.

    Examples: rmsim train --preset entangled-mnist-dense --n 400 --epochs 2 --seed 0 --out DIR;
    rmsim train --data train.npz --test test.npz --out DIR
    """
    import time

    from rmsim.data.own_files import ENDINGS
    from rmsim.learning import training
    from rmsim.learning.parameters import parse_settings
    from rmsim.learning.presets import preset as preset_named
    from rmsim.learning.run_folder import Folder, Plan

    started = time.perf_counter()
    own = data is not None and data.suffix.lower() in ENDINGS
    if data is not None and not own and data.is_file():
        allowed = f"a file ending in {', '.join(ENDINGS)}, or a folder of data sets"
        raise InvalidInputError("data", str(data), allowed)
    if own and dataset is not None:
        raise InvalidInputError("dataset", dataset, "absent with --data FILE")
    if own:
        preset, n = preset or OWN_PRESET, n or OWN_NEURONS
        epochs = epochs or OWN_EPOCHS
    if preset is None:
        allowed = "given (--preset NAME, see 'rmsim presets'), or samples of your own (--data FILE)"
        raise InvalidInputError("preset", "nothing", allowed)
    if out is None:
        raise InvalidInputError("out", "nothing", "given (--out DIR, where the run is kept)")
    chosen = preset_named(preset)
    others = parse_settings(settings or [])
    width = chosen.width(n)
    asked = chosen.epochs_at(width) if epochs is None else checks.integer("epochs", epochs, 0)
    probing = None if probe is None else checks.integer("probe", probe, 0)
    measured = checks.integer("metrics", metrics if watch is None else watch, 1)
    chosen.parameters(width, **others)  # mistakes are reported before data are fetched
    samples, encoding, test = read_own_or_named(
        chosen.dataset if dataset is None else dataset, data, test, label
    )
    plan = Plan.of_preset(
        preset,
        width,
        seed=checks.integer("seed", seed, 0),
        dataset=samples.name,
        classes=samples.classes,
        train_samples=_at_most("train", train, len(samples.train)),
        test_samples=_at_most("test", test, len(samples.test)),
        dtype=dtype,
        **others,
    )
    kept = Folder(out).store.kept("finished epochs")
    with if_interrupted(lambda: kept), following() as display:
        outcome = training.train(
            plan,
            samples,
            asked,
            out=out,
            probe=probing,
            device=device,
            metrics=training.Metrics(phases=measured),
            compile=compile,
            progress=display.network,
            probe_progress=display.probe,
        )
    if encoding is not None:
        encoding.save(Folder(out).labels)
    epoch = outcome.checkpoint.epoch
    if outcome.idle:
        done = f"{counted(epoch, 'epoch')} already (requested: {asked})"
        typer.echo(f"rmsim: nothing to train: {out} has {done}", err=True)
    _show(
        f"{_trained(preset, samples)} with N = {width} after {counted(epoch, 'epoch')}",
        {
            "preset": preset,
            "dataset": samples.name,
            "parameters": plan.parameters.to_dict(),
            **outcome.summary(),
            "folder": str(out),
            "seed": plan.seed,
            "dtype": plan.dtype,
            "wall_time": time.perf_counter() - started,
        },
        json,
    )


def _trained(preset: str, samples: Dataset) -> str:
    """Return what was trained, for a title: the preset, or the file of the user's own samples."""
    from rmsim.data.own_files import OWN

    own = samples.name.removeprefix(OWN)
    return preset if own == samples.name else f"Your data {own}"


def _at_most(name: str, count: str | None, most: int) -> int | None:
    return None if count is None else checks.integer(name, count, 1, most)


def read_run(
    folder: Path,
    data: Path | None,
    device: torch.device | str,
    test: str | None = None,
) -> tuple[Checkpoint, Dataset]:
    """Return the last checkpoint of the run in `folder`, and the data that it was trained on."""
    from rmsim.data.own_files import Encoding
    from rmsim.learning.run_folder import Folder
    from rmsim.learning.training import load_run

    run = Folder(folder)
    name = run.identity()["plan"]["dataset"]
    if run.labels.exists():
        first, second, label = Encoding.load(run.labels).files
        if data is None:
            data, test = Path(first), None if second == first else second
        dataset, _, _ = read_own_or_named(name, data, test, label)
    else:
        dataset = read_dataset(name, data)
    return load_run(folder, dataset, device), dataset


def evaluate_command(
    folder: FolderArgument,
    samples: Annotated[
        str | None,
        option("--samples", "COUNT", "At most so many samples of each set."),
    ] = None,
    data: OwnDataOption = None,
    test: Annotated[
        str | None, option("--test", "FILE", "Test samples of your own, if they have moved.")
    ] = None,
    device: DeviceOption = "auto",
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Measure a trained network over all samples: accuracies, q_dyn, symmetry, stability.

    test_accuracy is that of the perceptrons, probe_test_accuracy that of the softmax probe.

    Example: rmsim evaluate DIR --json
    """
    import time

    from rmsim.learning.run_folder import Folder
    from rmsim.learning.training import evaluate, load_probe
    from rmsim.tensors import choose_device

    started = time.perf_counter()
    place = choose_device(device)
    most = None if samples is None else checks.integer("samples", samples, 1)
    checkpoint, dataset = read_run(folder, data, place, test)
    plan = checkpoint.plan
    answer = {
        "preset": plan.preset,
        "dataset": dataset.name,
        "parameters": plan.parameters.to_dict(),
        **evaluate(checkpoint, dataset, load_probe(Folder(folder), checkpoint), most),
        "seed": plan.seed,
        "device": str(place),
        "dtype": plan.dtype,
        "wall_time": time.perf_counter() - started,
    }
    trained = _trained(plan.preset, dataset)
    title = f"{trained} after {counted(checkpoint.epoch, 'epoch')}, {folder}"
    _show(title, answer, json, out)


def predict_command(
    folder: FolderArgument,
    data: Annotated[
        Path | None, option("--data", "FILE", "Inputs: .npz with X, .csv or .parquet.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE.csv", help="Labels, one line per sample.")
    ] = None,
    overwrite: OverwriteOption = False,
    device: DeviceOption = "auto",
) -> None:
    """Write the labels that a trained network gives to new samples, scaled as those trained on.

    Example: rmsim predict runs/mine --data new.npz --out labels.csv
    """
    from rmsim.learning.trained import predict_file

    for name, value in (("data", data), ("out", out)):
        if value is None:
            raise InvalidInputError(name, "nothing", f"given (--{name} FILE)")
    assert data is not None
    assert out is not None
    if out.suffix.lower() != ".csv":
        raise InvalidInputError("out", str(out), "a file ending in .csv")
    if out.resolve() == data.resolve():
        raise InvalidInputError("out", str(out), "another file than that of --data")
    check_new("out", out, overwrite)
    labels = predict_file(folder, data, device=device)
    text = io_module.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["label"])
    writer.writerows([label] for label in labels)
    write_text(out, text.getvalue())
    typer.echo(f"{counted(len(labels), 'label')} in {out}")


def presets_command(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Only this one.")] = None,
    n: Annotated[str | None, option("--n", "N", "Its numbers at this width.")] = None,
    json: io.JsonOption = False,
) -> None:
    """List the presets, or show all numbers of one, what the paper prints and what was changed.

    Example: rmsim presets mnist-sparse --n 2000
    """
    from rmsim.learning.presets import PRESETS, preset

    if name is None:
        if n is not None:
            raise InvalidInputError("n", n, "given with the name of a preset")
        rows = [chosen.to_dict() for chosen in PRESETS.values()]
        columns = {"name": "preset", "dataset": "data set", "recipe": "recipe", "widths": "N"}
        show_rows(rows, json, columns | {"epochs": "epochs", "probe": "probe"})
        return
    chosen = preset(name)
    parameters = chosen.parameters(None if n is None else checks.integer("n", n, 2))
    if json:
        import json as json_module

        document = {**chosen.to_dict(), "parameters": parameters.to_dict()}
        typer.echo(json_module.dumps(document, indent=2, ensure_ascii=False))
        return
    typer.echo(f"{name}: {chosen.dataset}, recipe {chosen.recipe}, N = {parameters.couplings.n}")
    typer.echo(f"the paper: {chosen.paper}")
    typer.echo(f"changed: {chosen.changed}")
    rows = [{"key": key, "value": value} for key, value in parameters.to_dict().items()]
    show_rows(rows, False, {"key": "parameter", "value": "value"})


def _show(title: str, document: dict[str, Any], json: bool, out: Path | None = None) -> None:
    """Print JSON as it is, and a table with quantiles in one cell."""
    if out is not None:
        write_text(out, SimulationReport(title, document).to_json() + "\n")
    shown = dict(document)
    for name in ("q_dyn", "margin"):
        quantiles = document[name]
        shown[name] = "{median:.3f} [{q25:.3f}, {q75:.3f}]".format(**quantiles)
    SimulationReport(title, document if json else shown, _MEANING).show(json, None)


class Display:
    """Shows how far the network is, then its probe."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._network: Progress = stack.enter_context(counting("train", before=None, bar=10))
        self._probe: Progress | None = None

    def network(self, progress: TrainingProgress) -> None:
        """Show where the run is."""
        self._network(
            progress.epoch,
            progress.epochs,
            share=progress.samples / progress.total if progress.total else 1.0,
            label=f"epoch {progress.epoch}/{progress.epochs}",
            text=_text(progress),
            short=_text(progress, short=True),
        )

    def probe(self, done: int, epochs: int) -> None:
        """Show how many epochs of the probe are done."""
        if self._probe is None:
            self._stack.close()  # one display at a time
            self._probe = self._stack.enter_context(counting("epochs of the probe", epochs))
        self._probe(done)


@contextmanager
def following() -> Iterator[Display]:
    """Give what shows the progress on standard error."""
    with ExitStack() as stack:
        yield Display(stack)


def _text(progress: TrainingProgress, short: bool = False) -> str:
    """Say what was measured; `short` enough for a terminal of 80 columns."""
    parts = [] if progress.record is None else [_measured(progress.record, short)]
    if progress.samples_per_second is not None:
        parts.append(f"{progress.samples_per_second:.0f} samples/s")
    return ", ".join(parts)


def _measured(record: dict[str, Any], short: bool) -> str:
    q_dyn = f"q_dyn {record['q_dyn']['median']:.3f}"
    if record["test_accuracy"] is None:
        return q_dyn
    train = "" if short else f"train {record['train_accuracy']:.4f}, "
    return f"test {record['test_accuracy']:.4f}, {train}{q_dyn}"
