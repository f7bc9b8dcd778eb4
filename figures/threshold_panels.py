"""The panels of the figure on the thresholds of all algorithms, one function each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from figures.dynamics_panels import draw_fit, draw_success, log_sizes, plain_ticks
from figures.plotting import label_axes, shades

#: Search -> name in legends, colours of growing N, the one colour, the paper's threshold in J_D.
_LOOK: dict[str, tuple[str, str, str, float]] = {
    "dynamics": ("dynamics", "Blues_r", "C0", 0.8),
    "likelihood": ("likelihood", "Oranges_r", "C1", 0.5),
    "rbp .01": ("rBP, $dr=.01$", "Greens_r", "C2", 0.35),
    "rbp .003": ("rBP, $dr=.003$", "Purples_r", "C3", 0.35),
}

_BARS: dict[str, Any] = {"markersize": 3, "linewidth": 0.9, "capsize": 1.5, "capthick": 0.7}


def _rows(data: xr.Dataset, group: str, search: str) -> Iterator[xr.Dataset]:
    """Give the series of a group and search in turn, without the padding."""
    chosen = (data["group"].values == group) & (data["search"].values == search)
    for index in np.flatnonzero(chosen):
        row = data.isel(series=index)
        yield row.isel(point=np.flatnonzero(row["trials"].values > 0))


def success_panel(axis: Axes, data: xr.Dataset) -> None:
    """Success against J_D: three algorithms, all sizes."""
    handles = []
    for search in ("rbp .01", "likelihood", "dynamics"):
        name, family, _, paper = _LOOK[search]
        rows = list(_rows(data, "core", search))
        for colour, row in zip(shades(family, len(rows) + 1)[-2::-1], rows, strict=True):
            draw_success(axis, row["coupling"], row["success"], row["trials"], colour, "o", "")
            draw_fit(axis, row["coupling"].values, row["threshold"], row["width"], colour)
        handles.append(Line2D([], [], color=colour, marker="o", markersize=3, label=name))
        axis.axvline(paper, color=colour, linewidth=0.9, linestyle=":")
    critical = float(data["jd_critical"])
    axis.axvline(critical, color="0.2", linewidth=0.9, linestyle="--")
    handles.append(Line2D([], [], color="0.2", linestyle="--", label=f"$J_{{Dc}}={critical:.3f}$"))
    handles.append(Line2D([], [], color="0.4", linestyle=":", label="paper"))
    sizes = sorted({int(n) for n in data["n"].values[data["group"].values == "core"]})
    axis.set_xlim(right=1.2)  # room for the legend
    title = f"$N={sizes[0]}$ (pale)\nto {sizes[-1]} (dark)"
    axis.legend(handles=handles, title=title, loc="center right")
    label_axes(axis, r"$J_D$", "fraction of samples solved")


def sizes_panel(axis: Axes, data: xr.Dataset) -> None:
    """The 50 % point against N, with the paper's values."""
    for (search, (name, _, colour, paper)), marker in zip(_LOOK.items(), "osD^", strict=True):
        found = [row for row in _rows(data, "core", search) if np.isfinite(row["threshold"])]
        axis.axhline(paper, color=colour, linewidth=0.8, linestyle=":")
        axis.errorbar(
            [int(row["n"]) for row in found],
            [float(row["threshold"]) for row in found],
            [float(row["threshold_error"]) for row in found],
            fmt=f"{marker}-",
            color=colour,
            label=name,
            **_BARS,
        )
    axis.axhline(float(data["jd_critical"]), color="0.2", linewidth=0.9, linestyle="--")
    log_sizes(axis, np.unique(data["n"].values[data["group"].values == "core"]))
    axis.set_ylim(0, 0.88)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2, columnspacing=0.8)
    label_axes(axis, r"$N$", r"$J_D$ at $P=\frac{1}{2}$")


def iterations_panel(axis: Axes, data: xr.Dataset) -> None:
    """Iterations to the fixed point against N, at the J_D that comes last in every series."""
    for (search, (name, _, colour, _)), marker in zip(_LOOK.items(), "osD^", strict=True):
        last = [row.isel(point=-1) for row in _rows(data, "core", search)]
        there = [row for row in last if np.isfinite(row["sweeps_median"])]
        if not there:
            continue
        axis.errorbar(
            [int(row["n"]) for row in there],
            [float(row["sweeps_median"]) for row in there],
            [np.nan_to_num(float(row["sweeps_median_error"])) for row in there],
            fmt=f"{marker}-",
            color=colour,
            label=f"{name}, $J_D={float(there[0]['coupling']):g}$",
            **_BARS,
        )
    log_sizes(axis, np.unique(data["n"].values[data["group"].values == "core"]))
    axis.set_yscale("log")
    plain_ticks(axis.yaxis, [5, 10, 20, 50, 100, 200, 500, 1000])
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24))
    label_axes(axis, r"$N$", "iterations (median)")


def speed_panel(axis: Axes, data: xr.Dataset) -> None:
    """The 50 % point of reinforced BP against its speed."""
    rows = list(_rows(data, "speed", "rbp .01"))
    found = [row for row in rows if np.isfinite(row["threshold"])]
    size = int(rows[0]["n"])
    axis.errorbar(
        [float(row["dr"]) for row in found],
        [float(row["threshold"]) for row in found],
        [float(row["threshold_error"]) for row in found],
        fmt="D-",
        color="C2",
        label=f"rBP, $N={size}$",
        **_BARS,
    )
    axis.axhline(0.35, color="0.4", linewidth=0.8, linestyle=":", label="paper, 0.35")
    critical = float(data["jd_critical"])
    axis.axhline(critical, color="0.2", linewidth=0.9, linestyle="--", label=r"$J_{Dc}$")
    axis.set_xscale("log")
    axis.set_ylim(0, 0.4)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24))
    label_axes(axis, r"$dr$", r"$J_D$ at $P=\frac{1}{2}$")


def chain_panel(axis: Axes, data: xr.Dataset) -> None:
    """Success of chains without self-coupling against lambda."""
    for search, (name, family, _, _) in _LOOK.items():
        rows = list(_rows(data, "chain", search))
        for colour, row in zip(shades(family, len(rows) + 1)[-2::-1], rows, strict=True):
            layers, n = int(row["layers"]), int(row["n"])
            marker = {2: "o", 3: "s", 5: "^"}.get(layers, "D")
            short = name.split(",")[0]
            label = f"{short} $L={layers}$, {n}"
            draw_success(
                axis, row["coupling"], row["success"], row["trials"], colour, marker, label
            )
            draw_fit(axis, row["coupling"].values, row["threshold"], row["width"], colour)
    critical = float(data["lam_critical"])
    label = rf"$\lambda_c={critical:.3f}$ ($L=2$)"
    axis.axvline(critical, color="0.2", linewidth=0.9, linestyle="--", label=label)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24), fontsize=6)
    label_axes(axis, r"$\lambda\quad(J_D=0)$", "fraction solved")
