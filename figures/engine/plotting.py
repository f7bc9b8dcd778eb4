"""What the plots share: panels, curves with their error, success with its fit, axes, colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray

from rmsim.studies import success_curves
from rmtheory.base.statistics import interval

#: Widths in inches of one and of two columns of a paper.
COLUMN, DOUBLE = 3.4, 7.0

#: Style of error bars.
BARS: dict[str, Any] = {"markersize": 3, "linewidth": 0.9, "capsize": 1.5, "capthick": 0.7}


def panels(count: int, width: float = DOUBLE, height: float = 2.5) -> tuple[Picture, list[Axes]]:
    """Return a picture with `count` panels in a row, lettered (a), (b), ..."""
    picture = Picture(figsize=(width, height), layout="constrained")
    axes = picture.subplots(1, count, squeeze=False)[0].tolist()
    for letter, axis in zip("abcdefgh", axes, strict=False):
        axis.set_title(f"({letter})", loc="left", fontweight="bold")
    return picture, axes


def curve(axis: Axes, data: xr.DataArray, error: xr.DataArray, **style: Any) -> Any:
    """Plot a one-dimensional `data` against its coordinate, with its error as a band."""
    (dim,) = data.dims
    x, y, e = (np.asarray(a.values, dtype=float) for a in (data[dim], data, error))
    (line,) = axis.plot(x, y, **style)
    # Where theory is exact to double precision the band is thinner than the line, and is drawn
    # all the same: the reader need not ask whether it was left out.
    axis.fill_between(x, y - e, y + e, color=line.get_color(), alpha=0.25, linewidth=0)
    return line


def curves(
    axis: Axes, data: xr.Dataset, name: str, along: str, colours: Sequence[Any] | None = None
) -> None:
    """Plot variable `name` with its error, one curve per value of the coordinate `along`."""
    for index, value in enumerate(data[along].values):
        picked = data.isel({along: index})
        style = {} if colours is None else {"color": colours[index]}
        curve(axis, picked[name], picked[f"{name}_error"], label=number(value), **style)


def number(x: float) -> str:
    """Return a label for `x`: the infinity sign, or as few digits as say it."""
    return r"$\infty$" if math.isinf(x) else f"{x:g}"


def label_axes(axis: Axes, x: str, y: str) -> None:
    """Label both axes."""
    axis.set_xlabel(x)
    axis.set_ylabel(y)


def chance_line(axis: Axes, share: float = 0.1) -> None:
    """Draw what guessing among ten classes reaches, and say so at its left end."""
    axis.axhline(share, color="0.3", linewidth=0.8, linestyle=":")
    axis.annotate(
        "chance",
        (0.01, share),
        (0, 1),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        fontsize=6,
        color="0.3",
    )


def shades(colormap: str, count: int) -> Sequence[Any]:
    """Return `count` colours of an ordered family, avoiding the palest end."""
    import matplotlib

    return [matplotlib.colormaps[colormap](x) for x in np.linspace(0.0, 0.88, count)]


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
        **BARS,
    )
    axis.axhline(0.5, color="0.8", linewidth=0.6, zorder=0)
    axis.set_ylim(-0.03, 1.03)


def draw_fit(
    axis: Axes, x: NDArray[np.float64], centre: xr.DataArray, width: xr.DataArray, colour: Any
) -> None:
    """Draw the fitted curve, where one fits."""
    if np.isfinite(width):
        fine = np.linspace(x.min(), x.max(), 400)
        axis.plot(
            fine,
            success_curves.curve(fine, float(centre), 1 / float(width)),
            color=colour,
            linewidth=0.9,
        )


def log_sizes(axis: Axes, sizes: NDArray[Any]) -> None:
    """A logarithmic axis with a tick at every size."""
    axis.set_xscale("log")
    plain_ticks(axis.xaxis, list(sizes))


def plain_ticks(direction: Any, ticks: list[float]) -> None:
    """Ticks at these numbers only, written without exponents."""
    direction.set_major_locator(FixedLocator(ticks))
    direction.set_minor_locator(NullLocator())
    direction.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
