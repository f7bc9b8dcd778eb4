"""The panels of the figure on the dynamics, one function each."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray

from figures.plotting import label_axes, shades
from rmsim.thresholds import fit_trends, interval
from rmsim.thresholds.logistic import curve
from rmsim.thresholds.trend import REJECTED

#: Where the paper puts the threshold of the dynamics.
PAPER_JD = 0.8

_BARS: dict[str, Any] = {"markersize": 3, "linewidth": 0.9, "capsize": 1.5, "capthick": 0.7}


def success_panel(axis: Axes, data: xr.Dataset) -> None:
    """Success of one layer against J_D, for every size."""
    top = float(data["cap"].max())
    for colour, n in zip(shades("viridis", data.sizes["n"]), data["n"].values, strict=True):
        row = data.sel(n=n)
        draw_success(axis, row["jd"], row["success"], row["trials"], colour, "o", f"{n}")
        draw_fit(axis, row["jd"].values, row["threshold"].sel(cap=top), row["width"], colour)
    axis.axvline(PAPER_JD, color="0.45", linewidth=0.8, linestyle=":")
    axis.legend(title=r"$N$", loc="lower right", handletextpad=0.3)
    label_axes(axis, r"$J_D$", rf"$P$(fixed point in {top:g} sweeps)")


def sweeps_panel(axis: Axes, data: xr.Dataset) -> None:
    """Sweeps to the fixed point against N."""
    for index, jd in enumerate(data["sweeps_jd"].values):
        row = data.sel(sweeps_jd=jd)
        x, low, high = (row[name].values for name in ("n", "sweeps_q25", "sweeps_q75"))
        axis.fill_between(x, low, high, color=f"C{index}", alpha=0.15, linewidth=0)
        axis.errorbar(
            x,
            row["sweeps_median"],
            row["sweeps_median_error"],
            fmt="o-",
            color=f"C{index}",
            label=f"{jd:g}",
            **_BARS,
        )
    log_sizes(axis, data["n"].values)
    axis.set_yscale("log")
    plain_ticks(axis.yaxis, [5, 10, 20, 50, 100, 200])
    axis.legend(title=r"$J_D$", loc="upper left")
    label_axes(axis, r"$N$", "sweeps to the fixed point")


def threshold_panel(axis: Axes, data: xr.Dataset) -> None:
    """The 50 % point against N, for two caps, with trends, the paper's value and the bound."""
    n = data["n"].values.astype(float)
    sizes = np.geomspace(n[0], n[-1], 100)
    for index, cap in enumerate(data["cap"].values):
        row = data.sel(cap=cap)
        axis.errorbar(
            n,
            row["threshold"],
            row["threshold_error"],
            fmt="os"[index],
            color=f"C{index}",
            label=f"{cap} sweeps",
            zorder=4,
            **_BARS,
        )
        there = np.isfinite(row["threshold"].values)
        trends = fit_trends(
            n[there], row["threshold"].values[there], row["threshold_error"].values[there]
        )
        for trend, dash in zip(trends, ("-.", (0, (1, 1)), "--", "-"), strict=False):
            if trend.p_value >= REJECTED:
                axis.plot(sizes, trend(sizes), color=f"C{index}", linewidth=0.8, linestyle=dash)
    axis.axhline(PAPER_JD, color="0.45", linewidth=0.8, linestyle=":", label="paper, 0.8")
    axis.plot(n, data["bound"], color="black", linewidth=1.0, label=r"$\sqrt{2\ln N}$")
    axis.set_yscale("log")
    log_sizes(axis, n)
    plain_ticks(axis.yaxis, [0.2, 0.3, 0.4, 0.6, 0.8, 1, 2, 3, 4])
    axis.legend(loc="center", bbox_to_anchor=(0.5, 0.66), ncols=2, columnspacing=0.8)
    label_axes(axis, r"$N$", r"$J_D$ at $P=\frac{1}{2}$")


def chain_panel(axis: Axes, data: xr.Dataset) -> None:
    """Success of two layers against lambda, for several masks."""
    for index, p in enumerate(data["p"].values):
        for n, marker in zip(data["chain_n"].values, "os^D", strict=False):
            row = data.sel(p=p, chain_n=n)
            axis.plot(row["lam"], row["chain_success"], color=f"C{index}", linewidth=0.7)
            draw_success(
                axis,
                row["lam"],
                row["chain_success"],
                row["chain_trials"],
                f"C{index}",
                marker,
                f"{p:g}, {n}",
            )
    axis.legend(
        title=r"$p,\ N$", loc="center right", bbox_to_anchor=(1.02, 0.42), handletextpad=0.3
    )
    label_axes(axis, r"$\lambda\quad(L=2,\ J_D=0)$", r"$P$(fixed point)")


def cycle_panel(axis: Axes, data: xr.Dataset) -> None:
    """How many small networks of one layer end in a cycle."""
    for index, jd in enumerate(data["small_jd"].values):
        row = data.sel(small_jd=jd)
        axis.errorbar(
            row["small_n"],
            row["cycle_fraction"],
            row["cycle_fraction_error"],
            fmt="o-",
            color=f"C{index}",
            label=f"{jd:g}",
            **_BARS,
        )
    axis.set_ylim(-0.03, 1.03)
    axis.legend(
        title=r"$L=1,\ J_D=$",
        loc="center",
        bbox_to_anchor=(0.55, 0.44),
        ncols=3,
        columnspacing=1.0,
    )
    label_axes(axis, r"$N$", "fraction that ends in a cycle")


def period_panel(axis: Axes, data: xr.Dataset) -> None:
    """Periods of these cycles: medians, and quartiles as bars."""
    step = float(np.diff(data["small_n"].values).min())
    for index, jd in enumerate(data["small_jd"].values):
        row = data.sel(small_jd=jd)
        x = row["small_n"].values + 0.1 * step * (index - 1)  # side by side
        middle = row["period_median"].values
        bars = np.stack([middle - row["period_q25"].values, row["period_q75"].values - middle])
        axis.errorbar(x, middle, bars, fmt="o-", color=f"C{index}", label=f"{jd:g}", **_BARS)
    axis.set_yscale("log")
    axis.legend(title=r"$L=1,\ J_D=$", loc="upper left")
    label_axes(axis, r"$N$", "period of the cycle (sweeps)")


def draw_success(
    axis: Axes,
    x: xr.DataArray,
    success: xr.DataArray,
    trials: xr.DataArray,
    colour: Any,
    marker: str,
    label: str,
) -> None:
    """Draw fractions with Wilson's intervals, where something was measured."""
    there = trials.values > 0
    y, m = success.values[there], trials.values[there]
    low, high = interval(np.round(y * m), m)
    axis.errorbar(
        x.values[there],
        y,
        np.stack([y - low, high - y]),
        fmt=marker,
        color=colour,
        label=label,
        **_BARS,
    )
    axis.axhline(0.5, color="0.8", linewidth=0.6, zorder=0)
    axis.set_ylim(-0.03, 1.03)


def draw_fit(
    axis: Axes, x: NDArray[np.float64], centre: xr.DataArray, width: xr.DataArray, colour: Any
) -> None:
    """Draw the fitted curve, where one fits."""
    if np.isfinite(width):
        fine = np.linspace(x.min(), x.max(), 400)
        axis.plot(fine, curve(fine, float(centre), 1 / float(width)), color=colour, linewidth=0.9)


def log_sizes(axis: Axes, sizes: NDArray[Any]) -> None:
    """A logarithmic axis with a tick at every size."""
    axis.set_xscale("log")
    plain_ticks(axis.xaxis, list(sizes))


def plain_ticks(direction: Any, ticks: list[float]) -> None:
    """Ticks at these numbers only, written without exponents."""
    direction.set_major_locator(FixedLocator(ticks))
    direction.set_minor_locator(NullLocator())
    direction.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
