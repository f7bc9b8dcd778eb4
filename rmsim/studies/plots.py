"""Pictures of thresholds and capacities as commands draw them, and their panels.

The figures of the paper are made by ``figures`` from the same panels. A panel without data says
why (:func:`explain`).
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rmsim.studies.capacity_sweep import monotone_fit
from rmsim.studies.convergence import trends_of
from rmsim.studies.success_curves import REJECTED, curve
from rmtheory.runtime.files import replacing

__all__ = [
    "capacity_panel",
    "explain",
    "formula",
    "overlap_panel",
    "plot_capacity",
    "plot_overlaps",
    "plot_thresholds",
    "success_panel",
    "threshold_panel",
    "together",
]

SYMBOLS = {"jd": "$J_D$", "lam": r"$\lambda$"}


# Thresholds.


def plot_thresholds(data: xr.Dataset, control: str, title: str, path: Path) -> None:
    """Draw success against the coupling with its fits, and the 50 % point against N."""
    figure = Figure(figsize=(7.0, 2.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    success_panel(left, data, control)
    left.set_title(title, loc="left", fontsize=8)
    threshold_panel(right, data, control)
    _save(figure, path)


def success_panel(axis: Axes, data: xr.Dataset, control: str) -> None:
    """Draw the fraction of successes of every size with error bars, and the fitted curves."""
    colours = matplotlib.colormaps["viridis"](np.linspace(0, 0.88, data.sizes["n"]))
    for colour, n in zip(colours, data["n"].values, strict=True):
        row = data.sel(n=n).isel({control: np.flatnonzero(data.sel(n=n)["trials"] > 0)})
        x, y = row[control].values, row["success"].values
        bars = np.stack([y - row["success_low"].values, row["success_high"].values - y])
        axis.errorbar(
            x, y, np.maximum(bars, 0), fmt="o", ms=3, lw=0.9, color=colour, label=f"{int(n)}"
        )
        if np.isfinite(row["width"]):
            fine = np.linspace(x[0], x[-1], 300)
            fitted = curve(fine, float(row["threshold"]), 1 / float(row["width"]))
            axis.plot(fine, fitted, lw=1, color=colour)
    axis.axhline(0.5, color="0.6", lw=0.8)
    axis.set(xlabel=SYMBOLS[control], ylabel="P(fixed point)", ylim=(-0.03, 1.03))
    legend = axis.legend(title="$N$", fontsize=7, title_fontsize=7)
    legend.set_loc("lower right" if np.nanmax(data["success"].values) > 0.5 else "upper right")


def threshold_panel(axis: Axes, data: xr.Dataset, control: str) -> None:
    """Draw the 50 % point against N with its trends; where there is none, say why."""
    what = f"50 % point in {SYMBOLS[control]}"
    there = np.isfinite(data["threshold"].values)
    reasons = {
        f"N = {n}": str(data["threshold_status"].sel(n=n).item()).removeprefix("none: ")
        for n in data["n"].values[~there]
    }
    if not there.any():
        explain(axis, what, reasons)
        return
    crossing = data.isel(n=np.flatnonzero(there))
    sizes = crossing["n"].values
    axis.errorbar(
        sizes,
        crossing["threshold"],
        crossing["threshold_error"],
        fmt="o",
        ms=4,
        capsize=2,
        color="k",
    )
    fine = np.geomspace(float(sizes[0]), float(sizes[-1]), 100)
    for trend in trends_of(data)[0]:
        if trend.p_value >= REJECTED:
            axis.plot(fine, trend(fine), lw=1, label=formula(trend.form))
    axis.set(xscale="log", xlim=(sizes[0] / 1.2, sizes[-1] * 1.2))
    axis.set(xticks=sizes, xticklabels=[f"{n}" for n in sizes])
    axis.minorticks_off()
    axis.set(xlabel="$N$", ylabel=what)
    if reasons:
        axis.set_title(f"none at {together(reasons)}", fontsize=8)
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=7)


def formula(form: str) -> str:
    """Return the text of a form of the trend as a formula."""
    roots = form.replace("sqrt(ln N)", r"\sqrt{ln N}").replace("sqrt(N)", r"\sqrt{N}")
    return f"${roots.replace('ln ', chr(92) + 'ln ')}$"


# Capacities.


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
            x, fit, error = monotone_fit(p, values)
            right.plot(x, fit, color=colour, linewidth=1)
            right.fill_between(x, fit - error, fit + error, color=colour, alpha=0.2, linewidth=0)
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    right.axhline(0.95, color="0.5", linewidth=0.8)
    right.set(xlabel="$P$", ylabel=rf"5th percentile of overlaps, $N={largest}$")
    right.legend(title="$L$", fontsize=7, title_fontsize=7)
    _save(figure, path)


def capacity_panel(axis: Axes, data: xr.Dataset, protocol: str, marker: str = "o") -> None:
    """Draw P_max against N for every depth, with lines where three widths determine them."""
    part = data.sel(protocol=protocol)
    for colour, depth in zip(_colours(part.sizes["layers"]), part["layers"].values, strict=True):
        row = part.sel(layers=depth)
        there = np.isfinite(row["p_max"].values)
        if not there.any():
            continue
        n = row["n"].values.astype(float)
        label = f"{int(depth)}"
        if np.isfinite(row["slope"]) and there.sum() > 2:  # two points are on any line
            slope, error = float(row["slope"]), float(row["slope_error"])
            decimals = max(2, -math.floor(math.log10(error)))
            label += f":  {slope:.{decimals}f} ± {error:.{decimals}f}"
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


def plot_overlaps(data: xr.Dataset, path: Path) -> None:
    """Draw the overlap with the target by layer."""
    figure = Figure(figsize=(3.6, 2.7), layout="constrained")
    overlap_panel(figure.subplots(), data)
    _save(figure, path)


def overlap_panel(axis: Axes, data: xr.Dataset) -> None:
    """Draw the overlaps with the target by layer, median with error and 5-95 %; with the input."""
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
        label="with the target, median, 5-95 %",
    )
    both = "overlap_input_median" in data
    if both:
        axis.errorbar(
            x,
            data["overlap_input_median"],
            data["overlap_input_median_error"],
            fmt="s--",
            markersize=3,
            capsize=2,
            color="C1",
            label="with the input, median",
        )
    ylabel = "overlap" if both else "overlap with the target"
    axis.set(xlabel="layer $l$", ylabel=ylabel, xticks=x)
    axis.legend(loc="lower left" if both else "upper left")


def _reasons(data: xr.Dataset) -> dict[str, str]:
    """Return why each depth and size has no P_max."""
    return {
        f"L = {depth}, N = {n}": str(data["status"].sel(layers=depth, n=n).item())
        for depth in data["layers"].values
        for n in data["n"].values
    }


# Parts of all pictures.

#: Letters per line, for panels half the width of a picture.
_WIDTH = 46


def explain(axis: Axes, what: str, reasons: Mapping[str, str]) -> None:
    """Write into a panel without data what is missing, and why, instead of empty axes.

    Parameters
    ----------
    axis : Axes
        The panel.
    what : str
        What it would have shown.
    reasons : mapping
        Case (such as ``N = 20``) -> why there is nothing; cases of one reason share a line.
    """
    lines = [f"no {what}", ""]
    for reason in dict.fromkeys(reasons.values()):
        cases = together(case for case, why in reasons.items() if why == reason)
        tied = cases.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
        lines += textwrap.wrap(f"{tied}: {reason}", _WIDTH)
    axis.set_axis_off()
    axis.text(
        0.5, 0.5, "\n".join(lines), transform=axis.transAxes, ha="center", va="center", size=8
    )


def together(cases: Iterable[str]) -> str:
    """Return cases in one line; those that begin alike say it once.

    Examples
    --------
    >>> together(["N = 20", "N = 40"]), together(["L = 2, N = 20", "L = 3, N = 20"])
    ('N = 20, 40', 'L = 2, N = 20; L = 3, N = 20')
    """
    every = list(cases)
    heads = {case.rpartition(" ")[0] for case in every}
    if len(heads) == 1:
        return f"{heads.pop()} {', '.join(case.rpartition(' ')[2] for case in every)}".strip()
    return "; ".join(every)


def _colours(count: int) -> list[tuple[float, ...]]:
    return [tuple(c) for c in matplotlib.colormaps["viridis"](np.linspace(0, 0.88, count))]


def _save(figure: Figure, path: Path) -> None:
    with replacing(path, "plot") as temporary:
        figure.savefig(temporary, dpi=200)
