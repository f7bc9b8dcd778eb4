"""``rmsim sweep train|relax|solve``: any parameters over a grid, with several seeds, resumable."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rmsim.cli.options import (
    ResultsOption,
    SimulationReport,
    choose_backend,
    option,
    results_directory,
    run_from_command,
    shown,
)
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError
from rmtheory.base.wording import counted
from rmtheory.runtime import report as io
from rmtheory.runtime.command import check_folder, check_picture
from rmtheory.runtime.files import replacing

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
        Path | None, option("--table", "FILE", "One row a point: .csv, .parquet; or .nc (netCDF).")
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
    from rmsim.sweep import collect

    folder = results_directory(out)
    choose_backend(jobs, dask)
    if table is not None:
        check_folder("table", table)
        if table.suffix.lower() not in grid_sweeps.TABLES:
            allowed = f"a file ending in {', '.join(grid_sweeps.TABLES)}"
            raise InvalidInputError("table", str(table), allowed)
    check_picture(plot, table or folder)
    fixed = _fixed(
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
    title = f"Sweep of {kind}, {counted(int(points.sizes['replica']), 'seed')} a point"
    if table is not None:
        grid_sweeps.write_table(kind, points, table)
    if plot is not None:
        with replacing(plot, "plot") as temporary:
            picture = grid_sweeps.plot_sweep(kind, means, title)
            picture.savefig(temporary, dpi=200, format=plot.suffix[1:].lower())
    rows = _rows(kind, means)
    if json:
        document = {"parameters": dict(sweep.grid.fixed), "rows": rows, "seed": sweep.seed}
        SimulationReport(title, document).show(as_json=True, out=None)
        return
    names = [name for name in rows[0] if not name.endswith("_error")]
    cells = [[shown(row[name], row.get(f"{name}_error")) for name in names] for row in rows]
    io.print_rows(names, cells, title)


#: Options of each kind, with what they are by default.
_OPTIONS: dict[str, dict[str, Any]] = {
    "train": {
        "preset": None,
        "epochs": None,
        "dataset": None,
        "train_samples": None,
        "test_samples": None,
    },
    "relax": {"samples": 100},
    "solve": {"samples": 100, "algorithm": "rbp"},
}


def _fixed(kind: str, given: dict[str, str | None]) -> dict[str, Any]:
    """Return the options of a kind as parameters of all points; refuse those of other kinds."""
    if kind not in _OPTIONS:
        raise InvalidInputError("kind", kind, f"one of {', '.join(_OPTIONS)}")
    known = _OPTIONS[kind]
    for name, text in given.items():
        if text is not None and name not in known:
            raise InvalidInputError(name.removesuffix("_samples"), text, f"absent for {kind}")
    fixed: dict[str, Any] = {}
    for name, usual in known.items():
        text = given[name]
        if name in ("preset", "dataset", "algorithm"):
            fixed[name] = usual if text is None else text
        else:
            least = 0 if name == "epochs" else 1
            fixed[name] = usual if text is None else checks.integer(name, text, least)
    if kind == "train":
        from rmsim.learning.presets import preset as preset_named

        if fixed["preset"] is None:
            raise InvalidInputError("preset", "nothing", "given (--preset NAME)")
        chosen = preset_named(fixed["preset"])
        fixed["watched"] = 200
        if fixed["epochs"] is None:
            fixed["epochs"] = chosen.epochs_at(chosen.width(None))
    return fixed


def _rows(kind: str, means: Any) -> list[dict[str, Any]]:
    """Return one row for each combination of parameters, means and errors as JSON values."""
    import math

    from rmsim.studies.grid_sweeps import KINDS

    frame = (
        means.to_dataframe().reset_index()
        if means.dims
        else means.expand_dims("point").to_dataframe().reset_index(drop=True)
    )
    wanted = {f"{name}{end}" for name in KINDS[kind].measured for end in ("", "_error")}
    columns = [c for c in frame.columns if c in wanted or c in means.dims]
    rows = []
    for record in frame[columns].to_dict("records"):
        rows.append(
            {
                name: None if isinstance(value, float) and math.isnan(value) else value
                for name, value in record.items()
            }
        )
    return rows
