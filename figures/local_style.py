"""How the nine curves of the local entropy look, the same in all figures that show them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline

Values = NDArray[np.float64]

#: Colour map, heading and key of each family, after the colours of the paper.
FAMILIES = (
    ("Greens", r"core, $J_D=$", "jd"),
    ("Blues", r"$L=2$, $J_D=0.05$, $\lambda=$", "lam"),
    ("Oranges", r"$L=2$, $J_D=0$, $\lambda=$", "lam"),
)

_SHADES = (0.5, 0.72, 0.95)


class Styled(NamedTuple):
    """One curve without its padding, and how to draw it."""

    family: int
    colour: Any
    label: str
    monotone: bool
    data: xr.Dataset


def styled(data: xr.Dataset) -> Iterator[Styled]:
    """Yield the curves in the order of the paper, three to a family."""
    for index in range(data.sizes["curve"]):
        one = data.isel(curve=index)
        one = one.isel(point=np.isfinite(one["d"].values))
        family, place = divmod(index, 3)
        colour_map, _, key = FAMILIES[family]
        monotone = bool(one["least_slope"] > one["least_slope_error"])
        yield Styled(
            family,
            matplotlib.colormaps[colour_map](_SHADES[place]),
            f"{float(one[key]):g}",
            monotone,
            one,
        )


def smooth(one: xr.Dataset, points: int = 400) -> tuple[Values, Values]:
    """Return d and S_I* between the computed points, from their values and slopes."""
    d = one["d"].values
    spline = CubicHermiteSpline(np.log(d), one["internal"].values, d * one["slope"].values)
    x = np.linspace(np.log(d[0]), np.log(d[-1]), points)
    return np.exp(x), np.asarray(spline(x))


def bump(one: xr.Dataset) -> tuple[float, float] | None:
    """Place and height of the local maximum of S_I*, None if there is none."""
    d, entropy = smooth(one, 4000)
    falls = np.flatnonzero(np.diff(entropy) < 0)
    return None if falls.size == 0 else (float(d[falls[0]]), float(entropy[falls[0]]))


def continuation(axis: Axes, curve: Styled, divisor: Values | float) -> None:
    """Draw S_I* in the limit d -> 0, and its correction as a band down to the last point."""
    gas_d = curve.data["gas_d"].values
    limit = curve.data["gas_internal"].values / divisor
    lower = limit - curve.data["gas_internal_error"].values / divisor
    axis.plot(gas_d, limit, color=curve.colour, linestyle="--", linewidth=0.8)
    axis.fill_between(gas_d, lower, limit, color=curve.colour, alpha=0.12, linewidth=0)


def family_legend(axis: Axes, curves: list[Styled], family: int, *more: Any, **place: Any) -> None:
    """Put the legend of one family on a panel: three panels share the nine entries."""
    handles = [Line2D([], [], **look(curve), label=curve.label) for curve in curves]
    legend = axis.legend(handles=[*handles, *more], title=FAMILIES[family][1], **place)
    legend.set_alignment("left")


def look(curve: Styled) -> dict[str, Any]:
    """Return the style in a legend: with a circle if the curve is not monotone."""
    circle = {} if curve.monotone else {"marker": "o", "markerfacecolor": "white"}
    return {"color": curve.colour, **circle}
