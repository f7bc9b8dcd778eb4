"""Overlap q_dyn of the ends of the clamped and the free phase, over training (SM-H, table)."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from figures.claims.landscape import QDYN_EPOCHS, QDYN_TABLE
from figures.engine.figure import Context, Figure, Parameters, Scale
from figures.engine.plotting import COLUMN, label_axes
from figures.paper.trained_networks import (
    ALL,
    TINY_DATA,
    gathered,
    networks_of,
    training,
    trial_data,
)
from rmsim.learning.presets import MEASURED_AT
from rmtheory.base.errors import counted

_SEED = 3

_LEVELS = {"median": "median", "q25": "lower quartile", "q75": "upper quartile"}
_LEVELS |= {"q05": "5 % quantile", "q95": "95 % quantile"}

_MEANING = {f"qdyn_{level}": f"{text} of q_dyn over samples" for level, text in _LEVELS.items()}
_MEANING |= {
    "sweeps": "mean sweeps to the fixed point of the clamped phase",
    "sweeps_free": "the same of the free phase",
    "training_accuracy": "accuracy on the training set",
    "test_accuracy": "accuracy on the test set",
}

_ALL = {"jd": [0.5, 0.0], "lambda_x": [5.0, 2.0], "lambda_y": [0.9, 0.5]}
_FIRST = {"jd": [0.5], "lambda_x": [5.0], "lambda_y": [0.9]}


#: Accuracies are not what this is about: a part of the test set gives them to half a per cent.
_FEWER = {**ALL, "test_samples": 4000}


def _parameters(
    n: int, watched: int, data: dict[str, Any], *rows: tuple[dict[str, Any], Any, int]
) -> Parameters:
    fixed = {"preset": "overlaps", "n": n, "watched": watched, **data}
    # Each: values of J_D, lambda_x, lambda_y, epochs at which they are measured, networks.
    table = [
        {"axes": axes, MEASURED_AT: epochs, "networks": networks} for axes, epochs, networks in rows
    ]
    return {"seed": _SEED, "fixed": fixed, "rows": table}


def compute(parameters: Parameters, context: Context) -> xr.Dataset:
    """Train and measure all rows; where some are trained for longer, the others have gaps."""
    sweeps = {
        f"rows{k}": training(
            "qdyn",
            part["axes"],
            {**parameters["fixed"], MEASURED_AT: part[MEASURED_AT]},
            parameters["seed"],
            replicas=part["networks"],
            paired=("jd", "lambda_x", "lambda_y"),
        )
        for k, part in enumerate(parameters["rows"])
    }
    parts = list(gathered(sweeps, _MEANING, context).values())
    data = parts[0]
    for part in parts[1:]:
        data = data.combine_first(part)
    for name, text in _MEANING.items():
        data[name].attrs["long_name"] = text
    return data.assign_coords(n=parameters["fixed"]["n"])


def plot(data: xr.Dataset) -> Picture:
    """Draw one line for every row of the table: median, quartiles, 5-95 %."""
    data = _fuller(data)
    picture = Picture(figsize=(COLUMN, 3.6), layout="constrained")
    axis = picture.subplots()
    rows = [
        (jd, lx, ly)
        for jd in (0.5, 0.0)
        for lx in (5.0, 2.0)
        for ly in (0.9, 0.5)
        if jd in data["jd"] and lx in data["lambda_x"] and ly in data["lambda_y"]
    ]
    epochs = data["epoch"].values.tolist()
    for k, epoch in enumerate(epochs):
        at = [
            data.sel(jd=jd, lambda_x=lx, lambda_y=ly, epoch=epoch).reset_coords(drop=True)
            for jd, lx, ly in rows
        ]
        column = {level: np.array([float(one[f"qdyn_{level}"]) for one in at]) for level in _LEVELS}
        place = np.arange(len(rows)) + 0.24 * (k - (len(epochs) - 1) / 2)
        colour = f"C{k}"
        axis.hlines(place, column["q05"], column["q95"], color=colour, linewidth=0.8)
        axis.hlines(place, column["q25"], column["q75"], color=colour, linewidth=3, alpha=0.5)
        label = "initialisation" if epoch == 0 else f"after {counted(epoch, 'epoch')}"
        axis.plot(column["median"], place, "o", color=colour, markersize=3.5, label=label)
        there = np.isfinite(column["median"])
        shown = [row for row, ours in zip(rows, there, strict=True) if ours]
        _draw_paper(axis, shown, epoch, place[there] + 0.12, label="paper" if k == 0 else "")
    axis.set_yticks(range(len(rows)), [f"{jd:g}, {lx:g}, {ly:g}" for jd, lx, ly in rows])
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    label_axes(axis, r"overlap $q_{dyn}$ of $s'$ and $s^*$", r"$J_D,\ \lambda_x,\ \lambda_y$")
    title = f"$N={int(data['n'])}${networks_of(data, 'qdyn_median')}"
    picture.legend(loc="outside lower center", ncols=3, title=title, columnspacing=1.0)
    return picture


def _fuller(data: xr.Dataset) -> xr.Dataset:
    """Return the stored runs of the trial, if they have more rows and epochs than `data`."""
    stored = trial_data().get("qdyn_table")
    if stored is None or "qdyn_median" not in stored:
        return data
    counts = [int(np.isfinite(one["qdyn_median"].values).sum()) for one in (data, stored)]
    return stored if counts[1] > counts[0] else data


def _draw_paper(axis: Axes, rows: list[Any], epoch: int, place: Any, label: str) -> None:
    """Draw the medians and quartiles that the paper prints, just below ours."""
    printed = {
        tuple(map(float, row[:3])): row[3 + list(QDYN_EPOCHS).index(epoch)] for row in QDYN_TABLE
    }
    values = np.array([[float(x) for x in printed[row].split()] for row in rows])
    axis.hlines(place, values[:, 1], values[:, 2], color="0.35", linewidth=0.8)
    axis.plot(
        values[:, 0],
        place,
        "D",
        color="0.35",
        markerfacecolor="white",
        markersize=2.8,
        markeredgewidth=0.7,
        label=label or None,
    )


_SCALES = {
    Scale.TINY: _parameters(60, 100, TINY_DATA, (_ALL, [0], 2), (_FIRST, [0, 1], 1)),
    # The initialisation at the size of the paper costs little, an epoch more: the first row.
    Scale.QUICK: _parameters(1600, 400, _FEWER, (_ALL, [0], 3), (_FIRST, [0, 1], 1)),
    Scale.PAPER: _parameters(1600, 60_000, ALL, (_ALL, [0, 1, 20], 3)),
}

FIGURE = Figure(
    name="qdyn_table",
    title="Overlap of the ends of the clamped and the free phase over training",
    caption=(
        "Overlap of s' (end of the clamped phase) and s* (end of the free phase) over training "
        "samples of Entangled MNIST for the eight rows of the paper's table: median (dot), "
        "quartiles (thick bar), 5-95 % (thin line); white diamonds with a thin line, the paper's "
        "median and quartiles. The protocol, which the paper does not print: "
        "labels of 2.5 for the true class and -0.79 for the others, one warm-up sweep without "
        "label, phases until convergence. "
        f"At the quick scale {_SCALES[Scale.QUICK]['fixed']['watched']} samples per network. The "
        "data also hold accuracies and sweeps; rows that the scale does not train have the "
        "initialisation only. Stored runs of the trial (figures/data/trained) are drawn instead if "
        "they have more rows and epochs; the legend then says how many networks."
    ),
    parameters=_SCALES,
    compute=compute,
    plot=plot,
    version=2,
    seed=_SEED,
    # An epoch takes 40 s at J_D = 0.5 and five minutes at 0, where phases do not converge.
    core_hours={Scale.PAPER: 22.7},
    earlier=("2-0fee6cc4833b", "2-d2c7306155f8"),
)
