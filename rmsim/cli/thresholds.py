"""``rmsim thresholds``: the coupling at which an algorithm begins to find fixed points.

The result is a document of all numbers (``--json``), or a table with one row for each size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmsim.cli.options import (
    DrOption,
    EtaOption,
    R0Option,
    RhoOption,
    SimulationReport,
    SweepOptions,
    SymmetricOption,
    UpdateOption,
    integers,
    numbers,
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

if TYPE_CHECKING:  # --help needs none of these, and they are slow to import
    import xarray as xr

    from rmsim.studies.convergence import Design, Thresholds

#: The picture in the results directory, beside the data.
PICTURE = "thresholds.png"


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
    plot: Annotated[bool, typer.Option("--plot", help=f"Also draw DIR/{PICTURE}.")] = False,
    *,
    options: SweepOptions,
) -> None:
    """Measure the probability to reach a fixed point, and the coupling at which it is 1/2.

    One of --jd and --lam takes several values. Results are kept in DIR: run again, and only what
    is missing is computed; add sizes, values or samples, and only those are.

    Example: rmsim thresholds --n 200,500,1000 --jd .4:1.0:13 --samples 100 --out DIR --plot
    """
    import time

    from rmsim.dynamics.relaxation import checked_p
    from rmsim.dynamics.sweeps import checked_update
    from rmsim.studies.convergence import DATA, analysed, sweep_of
    from rmsim.sweep.directory import Directory
    from rmsim.tensors import checked_seed
    from rmtheory.runtime import netcdf

    started = time.perf_counter()
    options.demand_place()
    design = _design(
        (n, layers, jd, lam, lam_left, lam_right),
        algorithm=algorithm,
        rho=float(checks.exact_real("rho", rho)),
        symmetric=symmetric,
        update=checked_update(update),
        p=checked_p(p),
        samples=checks.integer("samples", samples, 1),
        max_sweeps=None if max_sweeps is None else checks.integer("max_sweeps", max_sweeps, 1),
        **_own_settings(algorithm, {"dr": dr, "r0": r0, "eta": eta}),
        dtype=options.dtype,
        device=options.device,
        batch=checks.integer("batch", batch, 1),
    )
    number = checked_seed(options.seed)
    sweep = sweep_of(design, number)
    folder = results_directory(options.out)
    report = run_from_command(sweep, folder, options.jobs, options.dask)
    result = analysed(folder, sweep, design)
    data = result.data
    with Directory(folder).at_work():
        netcdf.save(data, folder / DATA)
        if plot:
            from rmsim.studies.plots import plot_thresholds

            plot_thresholds(data, design.control, _title(design), folder / PICTURE)
    answer = document(result) | {
        "points_kept": report.kept,
        "points_computed": report.computed,
        "file": str(folder / DATA),
        "seed": number,
        "device": data.attrs["device"],
        "dtype": options.dtype,
        "wall_time": time.perf_counter() - started,
    }
    if options.json:
        SimulationReport(_title(design), answer).show(as_json=True, out=None)
    else:
        print_table(_title(design), design, answer)


def _own_settings(algorithm: str, typed: dict[str, str | None]) -> dict[str, float]:
    """Return the settings that were given; refuse those that the algorithm does not have."""
    from rmsim.studies.convergence import OWN_SETTINGS, checked_algorithm

    own = OWN_SETTINGS[checked_algorithm(algorithm)]
    given = {name: value for name, value in typed.items() if value is not None}
    for name, value in given.items():
        if name not in own:
            users = " or ".join(user for user, names in OWN_SETTINGS.items() if name in names)
            raise InvalidInputError(name, value, f"left out: only {users} has it, not {algorithm}")
    return {name: float(checks.exact_real(name, value)) for name, value in given.items()}


def _design(typed: tuple[str | None, ...], **settings: Any) -> Design:
    """Build the design from the options as typed; exactly one coupling may have several values."""
    from rmsim.studies.convergence import design_of

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
        **settings,
    )


def _title(design: Design) -> str:
    names = {
        "dynamics": "the dynamics",
        "rbp": "reinforced BP",
        "likelihood": "likelihood optimisation",
    }
    layers = "one layer" if design.layers == 1 else f"{design.layers} layers"
    masked = f", p = {design.p:g}" if design.p < 1 else ""
    stepped = f", eta = {design.eta:g}" if design.algorithm == "likelihood" else ""
    reinforced = f", r0 = {design.r0:g}, dr = {design.dr:g}" if design.algorithm == "rbp" else ""
    return (
        f"Success of {names[design.algorithm]} within "
        f"{counted(design.cap, design.unit)}: {layers}"
        f"{masked}{reinforced}{stepped}, {counted(design.samples, 'sample')}"
    )


_AT_THRESHOLD = ("threshold", "threshold_error", "width", "width_error", "fit_p_value")
_AT_POINT = (
    *("success", "success_error", "success_low", "success_high"),
    *(f"sweeps_{x}{suffix}" for x in ("median", "q25", "q75") for suffix in ("", "_error")),
)
_COUNTS = (
    *("trials", "fixed_points", "cycles", "capped", "marginal"),
    *("paramagnets", "polarised", "diverged", "settled"),
)


def document(result: Thresholds) -> dict[str, Any]:
    """Return all numbers as JSON values; None where there is none, and the status says why."""
    design, data = result.design, result.data
    sizes, values = list(design.sizes), list(design.values)
    return {
        "parameters": {
            **design.fixed(),
            "n": sizes,
            design.control: values,
            "p": design.p,
            "samples": design.samples,
        },
        "control": design.control,
        "thresholds": [_threshold(design, data.sel(n=n)) for n in sizes],
        "trends": [asdict(trend) for trend in result.trends],
        "limit": asdict(result.limit),
        "points": [
            _point(data.sel({"n": n, design.control: x}), n, design.control, x)
            for n in sizes
            for x in values
        ],
    }


def _threshold(design: Design, row: xr.Dataset) -> dict[str, Any]:
    from rmsim.studies.compare import convergence_bound

    n = int(row["n"])
    last = row.isel({design.control: -1})
    # The bound is one on J_D for the dynamics of a single layer.
    bounded = design.algorithm == "dynamics" and design.layers == 1 and design.control == "jd"
    return {
        "n": n,
        **{name: _number(row[name]) for name in _AT_THRESHOLD},
        "status": str(row["threshold_status"].item()),
        "method": str(row["threshold_method"].item()),
        "bound": convergence_bound(n) if bounded else None,
        "sweeps_median": _number(last["sweeps_median"]),
        "sweeps_median_error": _number(last["sweeps_median_error"]),
    }


def _point(row: xr.Dataset, n: int, control: str, value: float) -> dict[str, Any]:
    counts = {int(p): int(c) for p, c in zip(row["period"], row["period_counts"], strict=True)}
    return {
        "n": n,
        control: value,
        **{name: int(row[name]) for name in _COUNTS},
        **{name: _number(row[name]) for name in _AT_POINT},
        "periods": {str(period): count for period, count in counts.items() if count},
    }


def _number(value: xr.DataArray) -> float | None:
    number = float(value)
    return None if math.isnan(number) else number


def print_table(title: str, design: Design, answer: Mapping[str, Any]) -> None:
    """Print one row for each size, the trends, and where the data are."""
    symbol = {"jd": "J_D", "lam": "lambda"}[design.control]
    rows = answer["thresholds"]
    last = f"{symbol} = {design.values[-1]:g}"
    columns = ["N", f"50 % point in {symbol}", f"{design.unit}s at {last}"]
    bounded = any(row["bound"] is not None for row in rows)
    cells = [
        [
            str(row["n"]),
            shown(row["threshold"], row["threshold_error"]),
            shown(row["sweeps_median"], row["sweeps_median_error"]),
            *([f"{row['bound']:.3f}"] if bounded else []),
            row["status"],
        ]
        for row in rows
    ]
    io.print_rows([*columns, *(["sqrt(2 ln N)"] if bounded else []), "status"], cells, title)
    for trend in answer["trends"]:
        found = ", ".join(
            f"{x} = {shown(trend[x], trend[f'{x}_error'])}" for x in "abc" if trend[x] is not None
        )
        typer.echo(
            f"trend {trend['form']}: {found}, "
            f"chi^2 = {trend['chi2']:.1f} for {counted(trend['dof'], 'degree')} of freedom"
        )
    limit = answer["limit"]
    value = "" if limit["value"] is None else f"{shown(limit['value'], limit['error'])}, "
    typer.echo(f"limit of infinite N: {value}{limit['verdict']}")
    typer.echo(f"data: {answer['file']}")
