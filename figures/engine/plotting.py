"""Small helpers shared by the plots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

#: Widths in inches of one and of two columns of a paper.
COLUMN, DOUBLE = 3.4, 7.0


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
