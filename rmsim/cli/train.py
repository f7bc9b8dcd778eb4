"""``rmsim train``, ``rmsim evaluate`` and ``rmsim presets``: learning from data sets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmsim.cli.baseline import DatasetOption, TestOption, TrainOption
from rmsim.cli.data import DataOption, read_dataset, show_rows
from rmsim.cli.options import DeviceOption, SeedOption
from rmtheory import checks
from rmtheory.cli import output as io
from rmtheory.cli.run import if_interrupted
from rmtheory.errors import InvalidInputError
from rmtheory.files import write_text
from rmtheory.wording import counted

if TYPE_CHECKING:  # torch takes seconds to import
    import torch

    from rmsim.data import Dataset
    from rmsim.training import Checkpoint

_MEANING = {
    "epoch": "epochs done",
    "train_accuracy": "of the perceptrons, on samples trained on (none: no perceptrons)",
    "test_accuracy": "of the perceptrons, on others; errors are binomial",
    "probe_train_accuracy": "of the softmax probe, on samples trained on",
    "probe_test_accuracy": "of the softmax probe, on others",
    "q_dyn": "overlap of s' and s*: median and quartiles, samples trained on",
    "margin": "least s h of a sample: median and quartiles",
    "symmetry": "of J: 1 symmetric, 0 independent, -1 antisymmetric (none: J = 0)",
    "unstable_free": "fraction of samples whose s* is no fixed point",
    "below_kappa": "fraction of neurons that the next step would update",
    "device": "where it ran",
    "folder": "weights and measurements",
    "wall_time": "seconds",
}


def _option(*names: str, metavar: str, text: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=text)


FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of 'rmsim train'.")]


def train_command(
    preset: Annotated[
        str | None, _option("--preset", metavar="NAME", text="As in 'rmsim presets'.")
    ] = None,
    n: Annotated[
        str | None, _option("--n", metavar="N", text="Neurons; by default as in the paper.")
    ] = None,
    epochs: Annotated[
        str | None,
        _option("--epochs", metavar="COUNT", text="Epochs in all; by default as in the paper."),
    ] = None,
    seed: SeedOption = "0",
    out: Annotated[
        Path | None,
        _option("--out", metavar="DIR", text="Folder of the run; run again, and it goes on."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        _option("--set", metavar="KEY=VALUE", text="Another value of a parameter; repeatable."),
    ] = None,
    probe: Annotated[
        str | None,
        _option(
            "--probe",
            metavar="COUNT",
            text="Epochs of the softmax probe afterwards, 0: none; by default as many as before, "
            "at least 10, where the paper has one.",
        ),
    ] = None,
    dataset: DatasetOption = None,
    data: DataOption = None,
    train: TrainOption = None,
    test: TestOption = None,
    watch: Annotated[
        str, _option("--watch", metavar="COUNT", text="Samples of which q_dyn is measured.")
    ] = "2000",
    dtype: Annotated[
        str, _option("--dtype", metavar="TYPE", text="float32 or float64.")
    ] = "float32",
    device: DeviceOption = "auto",
    json: io.JsonOption = False,
) -> None:
    """Train a network, and measure it after every epoch.

    The weights are stored after every epoch: a run that was killed goes on from there with the same
    command, and more --epochs continue it. DIR/log.jsonl can be read while it runs.

    Example: rmsim train --preset entangled-mnist-dense --n 400 --epochs 2 --seed 0 --out DIR
    """
    import time

    from rmsim.cli.train_progress import following
    from rmsim.learning.presets import parse_settings
    from rmsim.learning.presets import preset as preset_named
    from rmsim.readout import ProbeParameters
    from rmsim.training import Folder, Plan, Watch, by_probe, load_probe, run, train_probe
    from rmtheory.cli.progress import counting

    started = time.perf_counter()
    if preset is None:
        raise InvalidInputError("preset", "nothing", "given (--preset NAME, see 'rmsim presets')")
    if out is None:
        raise InvalidInputError("out", "nothing", "given (--out DIR, where the run is kept)")
    chosen = preset_named(preset)
    others = parse_settings(settings or [])
    width = chosen.width(n)
    asked = chosen.epochs_at(width) if epochs is None else checks.integer("epochs", epochs, 0)
    probing = chosen.probe_epochs(asked) if probe is None else checks.integer("probe", probe, 0)
    watching = Watch(phases=checks.integer("watch", watch, 1))
    chosen.parameters(width, **others)  # what is wrong is said before data are fetched
    found = read_dataset(chosen.dataset if dataset is None else dataset, data)
    plan = Plan.of_preset(
        preset,
        width,
        seed=checks.integer("seed", seed, 0),
        dataset=found.name,
        classes=found.classes,
        train_samples=None
        if train is None
        else checks.integer("train", train, 1, len(found.train)),
        test_samples=None if test is None else checks.integer("test", test, 1, len(found.test)),
        dtype=dtype,
        **others,
    )
    kept = f"finished epochs are kept in {out}; the same command goes on from there"
    with if_interrupted(lambda: kept), following() as follow:
        outcome = run(plan, found, out, asked, device=device, watch=watching, follow=follow)
    moment, answer = outcome.checkpoint, dict(outcome.records[-1])
    stage = load_probe(Folder(out), moment) if probing else None
    # A longer run keeps the probe that it has, unless another is asked for.
    due = probing and moment.epoch and (probe is not None or moment.epoch == asked)
    if outcome.idle and (not due or (stage is not None and probe is None)):
        done = f"{counted(moment.epoch, 'epoch')} already (asked for: {asked})"
        typer.echo(f"rmsim: nothing to train: {out} has {done}", err=True)
    if due:
        with counting("epochs of the probe", probing) as progress:
            stage = train_probe(
                Folder(out), moment, found, ProbeParameters(epochs=probing), progress
            )
    if stage is not None:
        answer |= by_probe(stage.accuracies)
    _show(
        f"{preset} with N = {width} after {counted(moment.epoch, 'epoch')}",
        {
            "preset": preset,
            "dataset": found.name,
            "parameters": plan.parameters.to_dict(),
            **answer,
            "folder": str(out),
            "seed": plan.seed,
            "dtype": plan.dtype,
            "wall_time": time.perf_counter() - started,
        },
        json,
    )


def read_run(
    folder: Path, data: Path | None, device: torch.device | str
) -> tuple[Checkpoint, Dataset]:
    """Return the last checkpoint of the run in `folder`, and the data that it was trained on."""
    from rmsim.training import Folder, Plan, load_checkpoint
    from rmsim.training.checkpoint import demand_same

    run = Folder(folder)
    identity = run.identity()
    moment = load_checkpoint(run.checkpoint, device)
    demand_same(run.checkpoint, moment, Plan.from_dict(identity["plan"]), identity["data"])
    dataset = read_dataset(moment.plan.dataset, data)
    if moment.plan.data(dataset).checksum != moment.data:
        where = f"{dataset.source}, whose content differs"
        raise InvalidInputError("data", where, "the data that the run was trained on")
    return moment, dataset


def evaluate_command(
    folder: FolderArgument,
    samples: Annotated[
        str | None,
        _option("--samples", metavar="COUNT", text="At most so many samples of each set."),
    ] = None,
    data: DataOption = None,
    device: DeviceOption = "auto",
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Measure a trained network over all samples: accuracies, q_dyn, symmetry, stability.

    test_accuracy is that of the perceptrons, probe_test_accuracy that of the softmax probe.

    Example: rmsim evaluate DIR --json
    """
    import time

    from rmsim.device import choose_device
    from rmsim.training import Folder, evaluate, load_probe

    started = time.perf_counter()
    place = choose_device(device)
    most = None if samples is None else checks.integer("samples", samples, 1)
    moment, dataset = read_run(folder, data, place)
    answer = {
        "preset": moment.plan.preset,
        "dataset": dataset.name,
        "parameters": moment.plan.parameters.to_dict(),
        **evaluate(moment, dataset, load_probe(Folder(folder), moment), most),
        "seed": moment.plan.seed,
        "device": str(place),
        "dtype": moment.plan.dtype,
        "wall_time": time.perf_counter() - started,
    }
    title = f"{moment.plan.preset} after {counted(moment.epoch, 'epoch')}, {folder}"
    _show(title, answer, json, out)


def presets_command(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Only this one.")] = None,
    n: Annotated[str | None, _option("--n", metavar="N", text="Its numbers at this width.")] = None,
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
    typer.echo(f"{name}: {chosen.dataset}, recipe {chosen.recipe}, N = {parameters.n}")
    typer.echo(f"the paper: {chosen.paper}")
    typer.echo(f"changed: {chosen.changed}")
    rows = [{"key": key, "value": value} for key, value in parameters.to_dict().items()]
    show_rows(rows, False, {"key": "parameter", "value": "value"})


def _show(title: str, document: dict[str, Any], json: bool, out: Path | None = None) -> None:
    """Print JSON as it is, and a table with quantiles in one cell."""
    from rmsim.cli.report import SimulationReport

    if out is not None:
        write_text(out, SimulationReport(title, document).to_json() + "\n")
    shown = dict(document)
    for name in ("q_dyn", "margin"):
        quantiles = document[name]
        shown[name] = "{median:.3f} [{q25:.3f}, {q75:.3f}]".format(**quantiles)
    SimulationReport(title, document if json else shown, _MEANING).show(json, None)
