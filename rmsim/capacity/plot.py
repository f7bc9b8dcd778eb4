"""Panels of capacities and of overlaps by layer, and quick pictures of them."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rmsim.capacity.crossing import smooth
from rmsim.panels import explain
from rmtheory.files import replacing


def capacity_panel(axis: Axes, data: xr.Dataset, protocol: str, marker: str = "o") -> None:
    """Draw P_max against N for every depth, with the fitted lines."""
    part = data.sel(protocol=protocol)
    for colour, depth in zip(_colours(part.sizes["layers"]), part["layers"].values, strict=True):
        row = part.sel(layers=depth)
        there = np.isfinite(row["p_max"].values)
        if not there.any():
            continue
        n = row["n"].values.astype(float)
        label = f"{int(depth)}"
        if np.isfinite(row["slope"]):
            label += f":  {float(row['slope']):.2f} ± {float(row['slope_error']):.2f}"
            ends = np.array([n[there].min(), n[there].max()])
            line = float(row["intercept"]) + float(row["slope"]) * ends
            axis.plot(ends, line, color=colour, linewidth=1)
        axis.errorbar(
            n[there],
            row["p_max"].values[there],
            row["p_max_error"].values[there],
            fmt=marker,
            markersize=3.5,
            capsize=2,
            color=colour,
            label=label,
        )
    axis.set(xlabel="$N$", ylabel=r"$P_\mathrm{max}$")
    if axis.get_legend_handles_labels()[0]:
        axis.legend(title=r"$L$:  slope $\alpha$")


def overlap_panel(axis: Axes, data: xr.Dataset) -> None:
    """Draw the overlap with the target by layer: median with error, 5-95 % as a band."""
    x = data["layer"].values
    axis.fill_between(
        x, data["overlap_low"], data["overlap_high"], color="C0", alpha=0.2, linewidth=0
    )
    axis.errorbar(
        x,
        data["overlap_median"],
        data["overlap_median_error"],
        fmt="o-",
        markersize=3.5,
        capsize=2,
        color="C0",
        label="median, 5-95 %",
    )
    axis.set(xlabel="layer $l$", ylabel="overlap with the target", xticks=x)
    axis.legend(loc="upper left")


def plot_capacity(data: xr.Dataset, raw: xr.Dataset, path: Path) -> None:
    """Draw P_max(N), and the trials of the largest N that it was read from."""
    figure = Figure(figsize=(7.0, 2.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    protocol = str(data["protocol"].values[0])
    if np.isfinite(data["p_max"].sel(protocol=protocol)).any():
        capacity_panel(left, data, protocol)
        left.xaxis.set_major_locator(MaxNLocator(integer=True))
    else:
        explain(left, r"$P_\mathrm{max}$", _reasons(data.sel(protocol=protocol)))
    largest = int(data["n"].max())
    for colour, depth in zip(_colours(data.sizes["layers"]), data["layers"].values, strict=True):
        same = (raw["layers"] == depth) & (raw["n"] == largest)
        one = raw.isel(trial=np.flatnonzero(same.values))
        p, values = (np.asarray(one[name].values, dtype=float) for name in ("patterns", "o5"))
        right.plot(p, values, ".", color=colour, label=f"{int(depth)}")
        if np.unique(p).size >= 5:
            right.plot(*smooth(p, values), color=colour, linewidth=1)
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    right.axhline(0.95, color="0.5", linewidth=0.8)
    right.set(xlabel="$P$", ylabel=rf"5th percentile of overlaps, $N={largest}$")
    right.legend(title="$L$", fontsize=7, title_fontsize=7)
    _save(figure, path)


def _reasons(data: xr.Dataset) -> dict[str, str]:
    """Return why each depth and size has no P_max."""
    return {
        f"L = {depth}, N = {n}": str(data["status"].sel(layers=depth, n=n).item())
        for depth in data["layers"].values
        for n in data["n"].values
    }


def plot_overlaps(data: xr.Dataset, path: Path) -> None:
    """Draw the overlap with the target by layer."""
    figure = Figure(figsize=(3.6, 2.7), layout="constrained")
    overlap_panel(figure.subplots(), data)
    _save(figure, path)


def _colours(count: int) -> list[tuple[float, ...]]:
    return [tuple(c) for c in matplotlib.colormaps["viridis"](np.linspace(0, 0.88, count))]


def _save(figure: Figure, path: Path) -> None:
    with replacing(path, "plot") as temporary:
        figure.savefig(temporary, dpi=200)
