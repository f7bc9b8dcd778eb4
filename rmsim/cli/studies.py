"""Commands of studies: ``rmsim thresholds``, ``capacity``, ``overlaps``, ``landscape``, ``sweep``.

Each gives a document of all numbers (``--json``), or a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmsim.cli.options import (
    DataOption,
    DeviceOption,
    DrOption,
    EtaOption,
    R0Option,
    ResultsOption,
    RhoOption,
    SeedOption,
    SimulationReport,
    SweepOptions,
    SymmetricOption,
    UpdateOption,
    choose_backend,
    integers,
    numbers,
    option,
    results_directory,
    run_from_command,
    shown,
)
from rmsim.cli.train import read_run
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError, counted
from rmtheory.runtime import report as io
from rmtheory.runtime.command import bundled, check_earlier, check_picture
from rmtheory.runtime.files import replacing

if TYPE_CHECKING:  # --help needs none of these, and they are slow to import
    from rmsim.studies.capacity_sweep import Design as CapacityDesign
    from rmsim.studies.threshold_design import Design


def _drawing(name: str) -> Any:
    """Return a function of :mod:`rmsim.studies.plots`, which is slow to import."""
    from rmsim.studies import plots

    return getattr(plots, name)


# Thresholds.


@bundled
def thresholds_command(
    algorithm: Annotated[
        str, option("--algorithm", "NAME", "What searches: dynamics, rbp or likelihood.")
    ] = "dynamics",
    n: Annotated[
        str | None, option("--n", "VALUES", "Neurons per layer: 200,500 or start:stop:count.")
    ] = None,
    layers: Annotated[str, option("--layers", "L", "Number of core modules.")] = "1",
    jd: Annotated[
        str | None, option("--jd", "VALUES", "Self-coupling: .4,.5 or start:stop:count.")
    ] = None,
    lam: Annotated[
        str | None,
        option("--lam", "VALUES", "Coupling to both neighbours; several values sweep over it."),
    ] = None,
    lam_left: io.LamLeftOption = None,
    lam_right: io.LamRightOption = None,
    rho: RhoOption = "1",
    symmetric: SymmetricOption = False,
    update: UpdateOption = "synchronous",
    p: Annotated[str, option("--p", "PROBABILITY", "Chance of a neuron to be updated.")] = "1",
    samples: Annotated[str, option("--samples", "COUNT", "Disorder samples per point.")] = "100",
    max_sweeps: Annotated[
        str | None,
        option(
            "--max-sweeps",
            "COUNT",
            "The cap, on which the threshold depends: 1000 by default, for rbp until r is .95.",
        ),
    ] = None,
    dr: DrOption = None,
    r0: R0Option = None,
    eta: EtaOption = None,
    batch: Annotated[
        str, option("--batch", "COUNT", "Samples computed as one piece of work.")
    ] = "25",
    plot: Annotated[bool, typer.Option("--plot", help="Also draw DIR/thresholds.png.")] = False,
    *,
    options: SweepOptions,
) -> None:
    """Measure the probability to reach a fixed point, and the coupling at which it is 1/2.

    One of --jd and --lam takes several values. Results are kept in DIR: run again, and only what
    is missing is computed; add sizes, values or samples, and only those are.

    Example: rmsim thresholds --n 200,500,1000 --jd .4:1.0:13 --samples 100 --out DIR --plot
    """
    import time

    from rmsim.studies.convergence import DATA, measured_thresholds
    from rmsim.tensors import checked_seed

    started = time.perf_counter()
    options.demand_place()
    own = {"dr": dr, "r0": r0, "eta": eta}
    design = _design(
        (n, layers, jd, lam, lam_left, lam_right),
        algorithm,
        {name: value for name, value in own.items() if value is not None},
        rho=float(checks.exact_real("rho", rho)),
        symmetric=symmetric,
        update=update,
        p=p,
        samples=checks.integer("samples", samples, 1),
        max_sweeps=None if max_sweeps is None else checks.integer("max_sweeps", max_sweeps, 1),
        dtype=options.dtype,
        device=options.device,
        batch=checks.integer("batch", batch, 1),
    )
    seed, folder = checked_seed(options.seed), results_directory(options.out)
    draw = _drawing("plot_thresholds") if plot else None
    result, report = measured_thresholds(design, folder, seed, options.run, draw)
    answer = result.to_dict() | {
        "points_kept": report.kept,
        "points_computed": report.computed,
        "file": str(folder / DATA),
        "seed": seed,
        "device": result.data.attrs["device"],
        "dtype": options.dtype,
        "wall_time": time.perf_counter() - started,
    }
    if options.json:
        SimulationReport(str(design), answer).show(as_json=True, out=None)
    else:
        print_table(design, answer)


def _design(
    typed: tuple[str | None, ...], algorithm: str, own: Mapping[str, str], **settings: Any
) -> Design:
    """Build the design from the options as typed; exactly one coupling may have several values."""
    from rmsim.dynamics.relaxation import checked_p
    from rmsim.dynamics.sweeps import checked_update
    from rmsim.studies.threshold_design import design_of, refuse_settings_of_others

    refuse_settings_of_others(algorithm, own)
    settings |= {name: float(checks.exact_real(name, value)) for name, value in own.items()}
    settings |= {"update": checked_update(settings["update"]), "p": checked_p(settings["p"])}
    n, layers, jd, lam, lam_left, lam_right = typed
    for name, value in (("n", n), ("jd", jd)):
        if value is None:
            raise InvalidInputError(name, "nothing", f"given (--{name} VALUES)")
    io.refuse_lambda_of_one_layer(str(layers), lam=lam, lam_left=lam_left, lam_right=lam_right)
    return design_of(
        integers("n", str(n), 2),
        numbers("jd", str(jd)),
        None if lam is None else numbers("lam", lam),
        layers=str(layers),
        lam_left=lam_left,
        lam_right=lam_right,
        algorithm=algorithm,
        **settings,
    )


def print_table(design: Design, answer: Mapping[str, Any]) -> None:
    """Print one row for each size, the trends, and where the data are."""
    symbol = {"jd": "J_D", "lam": "lambda"}[design.control]
    rows = answer["thresholds"]
    last = f"{symbol} = {design.values[-1]:g}"
    columns = ["N", f"50 % point in {symbol}", f"{design.search.unit}s at {last}"]
    bounded = any(row["bound"] is not None for row in rows)
    predicted = any(row["theory_threshold"] is not None for row in rows)
    if predicted:
        columns.insert(2, "theory")
    cells = [
        [
            str(row["n"]),
            shown(row["threshold"], row["threshold_error"]),
            *([shown(row["theory_threshold"], row["theory_threshold_error"])] if predicted else []),
            shown(row["sweeps_median"], row["sweeps_median_error"]),
            *([f"{row['bound']:.3f}"] if bounded else []),
            row["status"],
        ]
        for row in rows
    ]
    io.print_rows([*columns, *(["sqrt(2 ln N)"] if bounded else []), "status"], cells, str(design))
    for trend in answer["trends"]:
        coefficients = ", ".join(
            f"{x} = {shown(trend[x], trend[f'{x}_error'])}" for x in "abc" if trend[x] is not None
        )
        typer.echo(
            f"trend {trend['form']}: {coefficients}, "
            f"chi^2 = {trend['chi2']:.1f} for {counted(trend['dof'], 'degree')} of freedom"
        )
    limit = answer["limit"]
    value = "" if limit["value"] is None else f"{shown(limit['value'], limit['error'])}, "
    typer.echo(f"limit of infinite N: {value}{limit['verdict']}")
    typer.echo(f"data: {answer['file']}")


# Capacity of hetero-association (paper, SM-D).


@dataclass(frozen=True)
class TrialOptions:
    """How pairs are learnt, and how trials are cut into pieces of work."""

    protocol: Annotated[
        str, option("--protocol", "NAME", "How the chain learns: reconstruction or printed.")
    ] = "reconstruction"
    loads: Annotated[
        str, option("--loads", "LOW:HIGH", "P is uniform between these times N; the paper's .5:1.")
    ] = "0.5:1"
    max_epochs: Annotated[str, option("--max-epochs", "COUNT", "Epochs at most.")] = "300"
    batch: Annotated[str, option("--batch", "COUNT", "Trials computed as one piece of work.")] = "5"
    plot: Annotated[bool, typer.Option("--plot", help="Also draw a picture into DIR.")] = False


@bundled
def capacity_command(
    layers: Annotated[
        str | None, option("--layers", "VALUES", "Core modules L: 2,3,5 or start:stop:count.")
    ] = None,
    n: Annotated[
        str | None, option("--n", "VALUES", "Neurons per layer: 60,100 or start:stop:count.")
    ] = None,
    trials: Annotated[str, option("--trials", "COUNT", "Trials of each depth and size.")] = "20",
    *,
    trial: TrialOptions,
    options: SweepOptions,
) -> None:
    """Measure how many random pairs x -> y a chain learns, and how that grows with N.

    P_max is where the 5th percentile of the overlaps with the target falls below 0.95. Results are
    kept in DIR: run again, and only what is missing is computed.

    Example: rmsim capacity --layers 2,3,5 --n 60,80,100 --loads .1:.9 --out DIR --plot
    """
    from rmsim.studies.capacity_sweep import CAPACITY, capacity_rows, measured_capacity
    from rmsim.tensors import checked_seed

    design = _trials(layers, n, trials, trial, options)
    seed, folder = checked_seed(options.seed), results_directory(options.out)
    draw = _drawing("plot_capacity") if trial.plot else None
    data = measured_capacity(design, folder, seed, options.run, draw)
    answer = capacity_rows(design, data) | {"seed": seed, "file": str(folder / f"{CAPACITY}.nc")}
    _show(f"Capacity, {design}", answer, ("rows", "slopes"), options.json)


@bundled
def overlaps_command(
    layers: Annotated[str | None, option("--layers", "L", "Number of core modules.")] = None,
    n: Annotated[str | None, option("--n", "N", "Neurons per layer.")] = None,
    trials: Annotated[str, option("--trials", "COUNT", "Trials.")] = "20",
    *,
    trial: TrialOptions,
    options: SweepOptions,
) -> None:
    """Measure the overlap of every layer with the target, over the 10 trials nearest to P_max.

    The trials are those of rmsim capacity, and the same DIR serves both.

    Example: rmsim overlaps --layers 5 --n 100 --loads .5:.9 --trials 10 --out DIR --plot
    """
    from rmsim.studies.capacity_sweep import OVERLAPS, measured_overlaps, overlap_rows
    from rmsim.tensors import checked_seed

    design = _trials(layers, n, trials, trial, options)
    seed, folder = checked_seed(options.seed), results_directory(options.out)
    draw = _drawing("plot_overlaps") if trial.plot else None
    data = measured_overlaps(design, folder, seed, options.run, draw)
    answer = overlap_rows(design, data) | {"seed": seed, "file": str(folder / f"{OVERLAPS}.nc")}
    _show(f"Overlap with the target, {design}", answer, ("rows",), options.json)


def _trials(
    layers: str | None, n: str | None, trials: str, trial: TrialOptions, options: SweepOptions
) -> CapacityDesign:
    """Build the design from the options as typed."""
    from rmsim.studies.capacity_sweep import Design

    for name, value in (("layers", layers), ("n", n)):
        if value is None:
            raise InvalidInputError(name, "nothing", f"given (--{name} VALUES)")
    options.demand_place()
    low, *rest = trial.loads.split(":")
    if len(rest) != 1:
        raise InvalidInputError("loads", trial.loads, "two numbers, as in 0.5:1")
    return Design(
        integers("layers", str(layers), 1),
        integers("n", str(n), 2),
        checks.integer("trials", trials, 1),
        trial.protocol,
        (float(checks.exact_real("loads", low)), float(checks.exact_real("loads", rest[0]))),
        checks.integer("max_epochs", trial.max_epochs, 1),
        options.dtype,
        options.device,
        checks.integer("batch", trial.batch, 1),
    )


def _show(title: str, answer: dict[str, Any], tables: tuple[str, ...], as_json: bool) -> None:
    if as_json:
        SimulationReport(title, answer).show(as_json=True, out=None)
        return
    typer.echo(title)
    for name in tables:
        rows = answer[name]
        columns = [key for key in rows[0] if not key.endswith("_error")]
        cells = [[shown(row[key], row.get(f"{key}_error")) for key in columns] for row in rows]
        io.print_rows(columns, cells)
    typer.echo(f"data: {answer['file']}")


# Landscape of a trained network (paper, SM-G).

_MEANING = {
    "curvature_mean": "mean of the largest path curvature over pairs; 1 is a shortest path",
    "curvature_sd": "its standard deviation over pairs",
    "displacement_median": "median distance after flips, for every noise",
    "similarity_mean": "mean similarity of the attractors of different samples",
    "similarity_within": "of samples with the same label",
    "similarity_between": "of samples with different labels",
}


def landscape_command(
    folder: Annotated[Path | None, option("--from", "DIR", "Folder of 'rmsim train'.")] = None,
    pairs: Annotated[str, option("--pairs", "COUNT", "Pairs of inputs.")] = "100",
    steps: Annotated[str, option("--steps", "COUNT", "Steps along a path.")] = "10",
    resamples: Annotated[str, option("--resamples", "COUNT", "Inputs at each step.")] = "10",
    patterns: Annotated[str, option("--patterns", "COUNT", "Attractors to kick.")] = "300",
    seed: SeedOption = "0",
    data: DataOption = None,
    device: DeviceOption = "auto",
    json: io.JsonOption = False,
    out: io.OutOption = None,
    plot: Annotated[Path | None, option("--plot", "FILE", "Draw a picture: png or pdf.")] = None,
) -> None:
    """Measure the landscape of a network before training and now (paper, SM-G).

    For one layer and inputs of spins. The network before is drawn again from the seed of the run.

    Example: rmsim landscape --from DIR --pairs 200 --plot landscape.png --json
    """
    import time

    from rmsim.studies.landscape_survey import Survey, plot_survey, summary, survey_of_run
    from rmsim.tensors import choose_device

    started = time.perf_counter()
    if folder is None:
        raise InvalidInputError("from", "nothing", "the folder of a run (--from DIR)")
    if plot is not None and plot.suffix not in (".png", ".pdf"):
        raise InvalidInputError("plot", str(plot), "a file that ends in .png or .pdf")
    counts = {"pairs": pairs, "steps": steps, "resamples": resamples, "patterns": patterns}
    sizes: dict[str, Any] = {name: checks.integer(name, x, 2) for name, x in counts.items()}
    wanted = Survey(**sizes)
    place, number = choose_device(device), checks.integer("seed", seed, 0)
    checkpoint, dataset = read_run(folder, data, place)
    surveys = survey_of_run(checkpoint, dataset, wanted, number)
    if plot is not None:
        plot_survey(surveys, wanted.noises, plot)
    document: dict[str, Any] = {
        "preset": checkpoint.plan.preset,
        "dataset": dataset.name,
        "epoch": checkpoint.epoch,
        "survey": wanted.to_dict(),
        **{
            f"{stage}_{name}": x for stage in surveys for name, x in summary(surveys[stage]).items()
        },
        "seed": number,
        "device": str(place),
        "wall_time": time.perf_counter() - started,
    }
    meaning = {f"{stage}_{name}": text for name, text in _MEANING.items() for stage in surveys}
    title = f"Landscape of {folder}, before training and after {counted(checkpoint.epoch, 'epoch')}"
    SimulationReport(title, document, meaning).show(json, out)


# Any parameters over a grid.

_SWEPT = "Values of a parameter, repeatable: KEY=a,b,c or KEY=start:stop:count."


def sweep_command(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="train, relax or solve.")],
    settings: Annotated[list[str] | None, option("--set", "KEY=VALUES", _SWEPT)] = None,
    preset: Annotated[
        str | None, option("--preset", "NAME", "As in 'rmsim presets' (train).")
    ] = None,
    n: Annotated[str | None, option("--n", "N", "Neurons, unless they are swept.")] = None,
    epochs: Annotated[
        str | None, option("--epochs", "COUNT", "Epochs (train); by default as in the paper.")
    ] = None,
    dataset: Annotated[
        str | None, option("--dataset", "NAME", "Data set, as in 'rmsim data list' (train).")
    ] = None,
    train: Annotated[
        str | None, option("--train", "COUNT", "Only the first training samples (train).")
    ] = None,
    test: Annotated[
        str | None, option("--test", "COUNT", "Only the first test samples (train).")
    ] = None,
    algorithm: Annotated[
        str | None, option("--algorithm", "NAME", "As for 'rmsim solve' (solve); rbp by default.")
    ] = None,
    samples: Annotated[
        str | None, option("--samples", "COUNT", "Networks of a point (relax, solve); 100.")
    ] = None,
    seeds: Annotated[str, option("--seeds", "COUNT", "Repetitions with other seeds.")] = "1",
    seed: Annotated[str, option("--seed", "SEED", "From which all seeds derive.")] = "0",
    out: ResultsOption = None,
    jobs: Annotated[str | None, option("--jobs", "COUNT", "Processes at a time.")] = None,
    dask: Annotated[
        str | None, option("--dask", "ADDRESS", "Scheduler of a Dask cluster instead.")
    ] = None,
    table: Annotated[
        Path | None,
        option("--table", "FILE", "One row per point: .csv, .parquet; or .nc (netCDF)."),
    ] = None,
    plot: io.PictureOption = None,
    json: io.JsonOption = False,
) -> None:
    """Compute all combinations of some parameters, each with several seeds.

    Finished points are kept in OUT: after Ctrl-C the same command resumes, and with more values or
    seeds it computes only the new points.

    Example: rmsim sweep train --preset entangled-mnist-dense --n 200 --set jd=.1:.9:9 --seeds 5
    --jobs 2 --out runs/jd --table jd.csv --plot jd.png
    """
    from rmsim.studies import grid_sweeps
    from rmsim.sweep.directory import collect

    folder = results_directory(out)
    choose_backend(jobs, dask)
    if table is not None:
        if table.suffix.lower() not in grid_sweeps.TABLES:
            allowed = f"a file ending in {', '.join(grid_sweeps.TABLES)}"
            raise InvalidInputError("table", str(table), allowed)
        check_earlier("table", table, grid_sweeps.MARKS)
    check_picture(plot, table or folder)
    fixed = grid_sweeps.fixed_of(
        kind,
        {
            "preset": preset,
            "epochs": epochs,
            "dataset": dataset,
            "train_samples": train,
            "test_samples": test,
            "algorithm": algorithm,
            "samples": samples,
        },
    )
    if n is not None:
        fixed["n"] = checks.integer("n", n, 2)
    sweep = grid_sweeps.sweep_of(
        kind,
        settings or [],
        fixed,
        seeds=checks.integer("seeds", seeds, 1),
        seed=checks.integer("seed", seed, 0),
    )
    run_from_command(sweep, folder, jobs, dask)
    points = collect(folder, sweep)
    means = grid_sweeps.averages(kind, points)
    title = f"Sweep of {kind}, {counted(int(points.sizes['replica']), 'seed')} per point"
    if table is not None:
        grid_sweeps.write_table(kind, points, table)
    if plot is not None:
        with replacing(plot, "plot") as temporary:
            picture = grid_sweeps.plot_sweep(kind, means, title)
            picture.savefig(temporary, dpi=200, format=plot.suffix[1:].lower())
    rows = grid_sweeps.rows_of(kind, means)
    if json:
        document = {"parameters": dict(sweep.grid.fixed), "rows": rows, "seed": sweep.seed}
        SimulationReport(title, document).show(as_json=True, out=None)
        return
    names = [name for name in rows[0] if not name.endswith("_error")]
    cells = [[shown(row[name], row.get(f"{name}_error")) for name in names] for row in rows]
    io.print_rows(names, cells, title)
