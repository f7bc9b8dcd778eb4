"""What ``rmsim thresholds`` answers: the document of all numbers, and a table a reader can use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import typer
import xarray as xr

from rmsim import compare
from rmsim.cli.report import shown
from rmsim.thresholds import Design, Limit, Trend
from rmtheory.wording import counted

_AT_THRESHOLD = ("threshold", "threshold_error", "width", "width_error", "fit_p_value")
_AT_POINT = (
    *("success", "success_error", "success_low", "success_high"),
    *(f"sweeps_{x}{suffix}" for x in ("median", "q25", "q75") for suffix in ("", "_error")),
)
_COUNTS = (
    *("trials", "fixed_points", "cycles", "capped", "marginal"),
    *("paramagnets", "polarised", "diverged", "settled"),
)


def document(
    design: Design, data: xr.Dataset, trends: tuple[Trend, ...], limit: Limit
) -> dict[str, Any]:
    """Return all numbers as JSON values; None where there is none, and the status says why."""
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
        "trends": [asdict(trend) for trend in trends],
        "limit": asdict(limit),
        "points": [
            _point(data.sel({"n": n, design.control: x}), n, design.control, x)
            for n in sizes
            for x in values
        ],
    }


def _threshold(design: Design, row: xr.Dataset) -> dict[str, Any]:
    n = int(row["n"])
    last = row.isel({design.control: -1})
    # The bound is one on J_D for the dynamics of a single layer.
    bounded = design.algorithm == "dynamics" and design.layers == 1 and design.control == "jd"
    return {
        "n": n,
        **{name: _number(row[name]) for name in _AT_THRESHOLD},
        "status": str(row["threshold_status"].item()),
        "method": str(row["threshold_method"].item()),
        "bound": compare.convergence_bound(n) if bounded else None,
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
    number = float(np.asarray(value))
    return None if math.isnan(number) else number


def print_table(title: str, design: Design, answer: Mapping[str, Any]) -> None:
    """Print one row for each size, the trends, and where the data are."""
    from rich.console import Console
    from rich.table import Table

    symbol = {"jd": "J_D", "lam": "lambda"}[design.control]
    rows = answer["thresholds"]
    table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
    last = f"{symbol} = {design.values[-1]:g}"
    columns = ["N", f"50 % point in {symbol}", f"{design.unit}s at {last}"]
    bounded = any(row["bound"] is not None for row in rows)
    for name in (*columns, *(["sqrt(2 ln N)"] if bounded else []), "status"):
        table.add_column(name, no_wrap=True)
    for row in rows:
        cells = [
            str(row["n"]),
            shown(row["threshold"], row["threshold_error"]),
            shown(row["sweeps_median"], row["sweeps_median_error"]),
            *([f"{row['bound']:.3f}"] if bounded else []),
            row["status"],
        ]
        table.add_row(*cells)
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=500)  # a pipe has no width: never fold a number
    console.print(table)
    for trend in answer["trends"]:
        a, b = shown(trend["a"], trend["a_error"]), shown(trend["b"], trend["b_error"])
        typer.echo(
            f"trend {trend['form']}: a = {a}, b = {b}, "
            f"chi^2 = {trend['chi2']:.1f} for {counted(trend['dof'], 'degree')} of freedom"
        )
    limit = answer["limit"]
    value = "" if limit["value"] is None else f"{shown(limit['value'], limit['error'])}, "
    typer.echo(f"limit of infinite N: {value}{limit['verdict']}")
    typer.echo(f"data: {answer['file']}")
