"""``rmsim capacity`` and ``rmsim overlaps``: hetero-association of random pairs (paper, SM-D)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmsim.cli.options import (
    SimulationReport,
    SweepOptions,
    integers,
    option,
    results_directory,
    run_from_command,
    shown,
)
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError
from rmtheory.base.wording import counted
from rmtheory.runtime import report as io
from rmtheory.runtime.command import bundled

if TYPE_CHECKING:
    import xarray as xr

    from rmsim.studies.capacity_sweep import Design

#: Files in the results directory, beside the points of the sweep.
CAPACITY, OVERLAPS = "capacity", "overlaps"


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
    from rmsim.studies.capacity_sweep import analyse
    from rmsim.sweep.directory import Directory
    from rmtheory.runtime import netcdf

    design = _design(layers, n, trials, trial, options)
    raw, number, folder = _run(design, options)
    data = analyse(raw, seed=number).assign_attrs(raw.attrs)
    with Directory(folder).at_work():
        netcdf.save(data, folder / f"{CAPACITY}.nc")
        if trial.plot:
            from rmsim.studies.plots import plot_capacity

            plot_capacity(data, raw, folder / f"{CAPACITY}.png")
    answer = _document(design, data) | {"seed": number, "file": str(folder / f"{CAPACITY}.nc")}
    _show(_title("Capacity", design), answer, ("rows", "slopes"), options.json)


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
    from rmsim.studies.capacity_sweep import overlaps_by_layer
    from rmsim.sweep.directory import Directory
    from rmtheory.runtime import netcdf

    design = _design(layers, n, trials, trial, options)
    if len(design.layers) > 1 or len(design.sizes) > 1:
        raise InvalidInputError("layers, n", f"{layers}, {n}", "one value each")
    checks.integer("trials", trials, 2)  # for an error bar
    raw, number, folder = _run(design, options)
    (depth,), (size,) = design.layers, design.sizes
    data = overlaps_by_layer(raw, design.protocol, depth, size, seed=number).assign_attrs(raw.attrs)
    with Directory(folder).at_work():
        netcdf.save(data, folder / f"{OVERLAPS}.nc")
        if trial.plot:
            from rmsim.studies.plots import plot_overlaps

            plot_overlaps(data, folder / f"{OVERLAPS}.png")
    rows = [
        {"layer": int(layer), **_numbers(data.sel(layer=layer), _BY_LAYER)}
        for layer in data["layer"].values
    ]
    answer = {
        "parameters": _parameters(design),
        "rows": rows,
        "trials_used": int(data["overlap_trials"]),
        "patterns": [float(data["patterns_low"]), float(data["patterns_high"])],
        "seed": number,
        "file": str(folder / f"{OVERLAPS}.nc"),
    }
    _show(_title("Overlap with the target", design), answer, ("rows",), options.json)


_BY_LAYER = ("overlap_median", "overlap_low", "overlap_high")


def _design(
    layers: str | None,
    n: str | None,
    trials: str,
    trial: TrialOptions,
    options: SweepOptions,
) -> Design:
    """Build the design from the options as typed."""
    from rmsim.studies.capacity_sweep import Design

    for name, value in (("layers", layers), ("n", n)):
        if value is None:
            raise InvalidInputError(name, "nothing", f"given (--{name} VALUES)")
    options.demand_place()
    low, separator, high = trial.loads.partition(":")
    if not separator:
        raise InvalidInputError("loads", trial.loads, "two numbers, as in 0.5:1")
    return Design(
        integers("layers", str(layers), 1),
        integers("n", str(n), 2),
        checks.integer("trials", trials, 1),
        trial.protocol,
        (float(checks.exact_real("loads", low)), float(checks.exact_real("loads", high))),
        checks.integer("max_epochs", trial.max_epochs, 1),
        options.dtype,
        options.device,
        checks.integer("batch", trial.batch, 1),
    )


def _run(design: Design, options: SweepOptions) -> tuple[xr.Dataset, int, Path]:
    from rmsim.studies.capacity_sweep import gather, sweep_of
    from rmsim.tensors import checked_seed

    number = checked_seed(options.seed)
    folder = results_directory(options.out)
    sweep = sweep_of(design, number)
    run_from_command(sweep, folder, options.jobs, options.dask)
    return gather(folder, sweep), number, folder


def _numbers(row: xr.Dataset, names: tuple[str, ...]) -> dict[str, float | None]:
    """Return values and errors; None where there is none."""
    values: dict[str, float | None] = {}
    for name in names:
        for key in (name, f"{name}_error"):
            number = float(row[key])
            values[key] = None if math.isnan(number) else number
    return values


def _parameters(design: Design) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(design)


def _document(design: Design, data: xr.Dataset) -> dict[str, Any]:
    part = data.sel(protocol=design.protocol)
    rows = []
    for depth in design.layers:
        for size in design.sizes:
            one = part.sel(layers=depth, n=size)
            rows.append(
                {
                    "layers": depth,
                    "n": size,
                    **_numbers(one, ("p_max",)),
                    "status": str(one["status"].item()),
                    "trials": int(one["trials"]),
                }
            )
    slopes = [
        {"layers": depth, **_numbers(part.sel(layers=depth), ("slope", "intercept"))}
        for depth in design.layers
    ]
    return {"parameters": _parameters(design), "rows": rows, "slopes": slopes}


def _title(what: str, design: Design) -> str:
    low, high = design.loads
    return (
        f"{what}, {design.protocol} protocol: {counted(design.trials, 'trial')} with P "
        f"from {low:g} N to {high:g} N, at most {counted(design.max_epochs, 'epoch')}"
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
