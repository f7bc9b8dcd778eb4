"""A quick picture of measured thresholds; the figure of the paper is made by ``figures``."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rmsim.panels import explain, together
from rmsim.thresholds.analysis import trends_of
from rmsim.thresholds.logistic import curve
from rmsim.thresholds.trend import REJECTED
from rmtheory.files import replacing

SYMBOLS = {"jd": "$J_D$", "lam": r"$\lambda$"}


def plot_thresholds(data: xr.Dataset, control: str, title: str, path: Path) -> None:
    """Draw success against the coupling with its fits, and the 50 % point against N."""
    figure = Figure(figsize=(7.0, 2.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    success_panel(left, data, control)
    left.set_title(title, loc="left", fontsize=8)
    threshold_panel(right, data, control)
    with replacing(path, "plot") as temporary:
        figure.savefig(temporary, dpi=200)


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
    found = data.isel(n=np.flatnonzero(there))
    sizes = found["n"].values
    axis.errorbar(
        sizes, found["threshold"], found["threshold_error"], fmt="o", ms=4, capsize=2, color="k"
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
