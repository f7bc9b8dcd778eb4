"""The nine curves y*(d), S_I*(d) of the paper, and two figures of them: S_I* against d, and y*(d).

The paper shows d above 0.01 or so. Here those of one layer go down to d = 1e-5, those of two to
where y* is several tens, and the dilute gas of flips
(:mod:`rmtheory.local_entropies.dilute_gas`) carries them on to d = 0.

The first is the paper's fig. local_entropies. The curves have the same style in all figures that
show them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline, PchipInterpolator

from figures.engine.figure import Context, Figure, Parameters, Scale
from figures.engine.plotting import label_axes, panels
from rmtheory.annealed.mean_number import entropy
from rmtheory.base.chain import Chain
from rmtheory.base.errors import UnreadableDataError
from rmtheory.local_entropies.curves import curve, least_slope
from rmtheory.local_entropies.dilute_gas import small_distance
from rmtheory.local_entropies.points import local_entropy
from rmtheory.local_entropies.solve import CurveTracker, functional
from rmtheory.runtime import netcdf
from rmtheory.runtime.processes import in_order
from rmtheory.runtime.provenance import parameters_hash


class _Curve(NamedTuple):
    """A curve of the paper, and the least d at every scale."""

    layers: int
    jd: float
    lam: float
    tiny: float
    quick: float
    paper: float

    def row(self, scale: Scale) -> Parameters:
        """Return it as a parameter of the figure."""
        least = {Scale.TINY: self.tiny, Scale.QUICK: self.quick, Scale.PAPER: self.paper}
        return {"layers": self.layers, "jd": self.jd, "lam": self.lam, "least_d": least[scale]}


#: For two layers the least d is where y* reaches some tens, and the quadrature in four dimensions
#: becomes slow.
_CURVES = (
    _Curve(1, 0.05, 0.0, tiny=1e-2, quick=1e-5, paper=1e-6),
    _Curve(1, 0.07, 0.0, tiny=1e-2, quick=1e-5, paper=1e-6),
    _Curve(1, 0.1, 0.0, tiny=1e-2, quick=1e-5, paper=1e-6),
    _Curve(2, 0.05, 0.2, tiny=1e-1, quick=1e-3, paper=5e-4),
    _Curve(2, 0.05, 0.3, tiny=1e-1, quick=2e-3, paper=1e-3),
    _Curve(2, 0.05, 0.4, tiny=1e-1, quick=3.5e-3, paper=2e-3),
    _Curve(2, 0.0, 0.4, tiny=1e-1, quick=5e-4, paper=3e-4),
    _Curve(2, 0.0, 0.45, tiny=1e-1, quick=8e-4, paper=5e-4),
    _Curve(2, 0.0, 0.5, tiny=1e-1, quick=1.5e-3, paper=1e-3),
)

_TOP, _GAS_LEAST = 0.49, 1e-8

_STORED = {
    "y_star": "largest y with S_E >= 0",
    "internal": "internal entropy S_I* per neuron (nat)",
    "slope": "dS_I*/dd per neuron",
    "q0_stability": "M0 (least eigenvalue), positive where q0 = 0 is stable",
}


def _parameters(
    scale: Scale, core_points: int, pair_points: int, gas_points: int, *, every: int = 1
) -> Parameters:
    rows = [one.row(scale) for one in _CURVES[every // 2 :: every]]
    return {
        "curves": rows,
        "top_d": _TOP,
        "points": {"1": core_points, "2": pair_points},
        "gas_least_d": _GAS_LEAST,
        "gas_points": gas_points,
        # Where erratum 17 is seen.
        "by_y": {"jd": 0.05, "d": 0.3, "y": [1.0, 2.0]},
    }


PARAMETERS = {
    Scale.TINY: _parameters(Scale.TINY, 3, 2, 3, every=3),  # one of each family
    Scale.QUICK: _parameters(Scale.QUICK, 48, 18, 41),
    Scale.PAPER: _parameters(Scale.PAPER, 120, 48, 121),
}


def compute(parameters: Parameters, context: Context) -> xr.Dataset:
    """Follow the curves in parallel, keeping every finished one."""
    rows = parameters["curves"]
    most = max(parameters["points"].values())
    # The slow ones first, so that no process is left with one of them at the end.
    order = sorted(range(len(rows)), key=lambda k: -rows[k]["layers"])
    context.progress(0, len(rows))
    with context.parts_folder() as folder:
        results = in_order(
            part,
            [(rows[k], dict(parameters), folder) for k in order],
            jobs=context.jobs,
            progress=lambda count: context.progress(count, len(rows)),
        )
    parts = [one for _, one in sorted(zip(order, results, strict=True), key=lambda pair: pair[0])]
    padded = [one.pad(point=(0, most - one.sizes["point"])) for one in parts]
    data = xr.concat(padded, "curve", combine_attrs="drop_conflicts", join="exact")
    return data.merge(_by_y(parameters["by_y"]))


def _by_y(point: dict[str, Any]) -> xr.Dataset:
    """S_I and S_E at one point for two y: does one grow with y and the other fall?"""
    chain = Chain(1, point["jd"])
    points = [local_entropy(chain, point["d"], y) for y in point["y"]]
    data = xr.Dataset(coords={"y": point["y"], "by_y_jd": point["jd"], "by_y_d": point["d"]})
    for name in ("internal", "external"):
        values = [getattr(one, name) for one in points]
        meaning = f"{name} entropy per neuron against y (nat)"
        data[f"{name}_by_y"] = ("y", [float(x) for x in values], {"long_name": meaning})
        data[f"{name}_by_y_error"] = ("y", [float(x.error) for x in values])
    return data


def part(row: dict[str, Any], parameters: dict[str, Any], folder: Path) -> xr.Dataset:
    """Return one curve, from `folder` if it is there, and leave it there."""
    path = folder / f"curve-{parameters_hash(row)[:12]}.nc"
    try:
        return netcdf.load(path)
    except (FileNotFoundError, UnreadableDataError):
        pass
    dataset = one_curve(row, parameters)
    netcdf.save(dataset, path)
    return dataset


def one_curve(row: dict[str, Any], parameters: dict[str, Any]) -> xr.Dataset:
    """Follow one curve and its continuation to d = 0."""
    layers = row["layers"]
    chain = Chain(1, row["jd"]) if layers == 1 else Chain(2, row["jd"], row["lam"])
    distances = _spaced(row["least_d"], parameters["top_d"], parameters["points"][str(layers)])
    solved = curve(chain, distances)
    data: dict[str, Any] = {}
    nowhere = np.full(len(distances), np.nan)
    for name, meaning in _STORED.items():
        for key, text in ((name, meaning), (f"{name}_error", f"error of {name}")):
            values = solved[key].values if key in solved else nowhere
            data[key] = ("point", values, {"long_name": text})
    gas_d = np.geomspace(parameters["gas_least_d"], row["least_d"], parameters["gas_points"])
    gas = [small_distance(chain, float(d)) for d in gas_d]
    # Corrections to S_I* are of relative order sqrt(d log 1/d); the join gives the factor. Those to
    # y* need not be small at the join, and no better is known of them further down.
    order = np.sqrt(-gas_d * np.log(gas_d))
    for name, decay in (("internal", order / order[-1]), ("y_star", np.ones_like(order))):
        limits = np.array([getattr(limit, name) for limit in gas])
        error = abs(1 - float(solved[name][0]) / limits[-1]) * decay * limits
        data[f"gas_{name}"] = ("gas", limits, {"long_name": f"{_STORED[name]}, limit d -> 0"})
        data[f"gas_{name}_error"] = ("gas", error, {"long_name": "estimate from the join"})
    typical = entropy(chain)
    data["annealed"] = ((), float(typical), {"long_name": "annealed entropy S_a per neuron (nat)"})
    data["annealed_error"] = ((), float(typical.error), {"long_name": "error of annealed"})
    slope, error = _least_slope(chain, solved)
    data["least_slope"] = ((), slope, {"long_name": "least dS_I*/dd over d"})
    data["least_slope_error"] = ((), error, {"long_name": "error of least_slope"})
    coordinates = {
        "layers": layers,
        "jd": row["jd"],
        "lam": row["lam"],
        "d": ("point", solved["d"].values, {"long_name": "distance d"}),
        "gas_d": ("gas", gas_d, {"long_name": "distance d"}),
    }
    return xr.Dataset(data, coords=coordinates)


def _least_slope(chain: Chain, solved: xr.Dataset) -> tuple[float, float]:
    """Return the least slope: of an inner minimum, or at the largest d."""
    slopes = solved["slope"].values
    dips = [k for k in range(1, len(slopes) - 1) if slopes[k - 1] > slopes[k] < slopes[k + 1]]
    end = float(slopes[-1]), float(solved["slope_error"][-1])
    if not dips:
        return end
    deepest = min(dips, key=lambda k: float(slopes[k]))
    tracker = CurveTracker(functional(chain))
    tracker.add(
        float(solved["d"][deepest]),
        float(solved["y_star"][deepest]),
        solved["qhat"].values[deepest, :1],
    )
    dip = least_slope(tracker, float(solved["d"][deepest]), 1e-7)
    return min(end, (dip.value, dip.error))


def _spaced(least: float, top: float, points: int) -> list[float]:
    """Distances from `least` to `top`: even in log d below, even in d towards 1/2."""
    low, high = np.log(least / (0.5 - least)), np.log(top / (0.5 - top))
    x = np.linspace(low, high, points)
    return [float(d) for d in 0.5 / (1 + np.exp(-x))]


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
    """Yield the curves in the order of the paper, a family after the other."""
    each = data.sizes["curve"] // len(FAMILIES)
    for index in range(data.sizes["curve"]):
        one = data.isel(curve=index)
        one = one.isel(point=np.isfinite(one["d"].values))
        family, place = divmod(index, each)
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


def continuation(
    axis: Axes, curve: Styled, name: str = "internal", scale: float = 1.0, power: int = 0
) -> None:
    """Draw a quantity below the last point: the dilute gas with its correction, joined to it.

    The correction is of relative order sqrt(d log 1/d) and has the size that joins the last point;
    the band reaches to the gas without it. Both are multiplied by `scale` and by d^`power`.
    """
    d, limit = curve.data["gas_d"].values, curve.data[f"gas_{name}"].values
    order = np.sqrt(-d * np.log(d))
    miss = float(curve.data[name][0]) / limit[-1] - 1
    joined = limit * (1 + miss * order / order[-1])
    factor = scale * d**power
    axis.plot(d, factor * joined, color=curve.colour, linestyle="--", linewidth=0.8)
    axis.fill_between(
        d, factor * joined, factor * limit, color=curve.colour, alpha=0.12, linewidth=0
    )


def legend_below(picture: Picture, curves: list[Styled], *more: Any) -> None:
    """Put one legend of all panels below them, a column per family and one for `more`."""
    columns = []
    for family, (_, title, _) in enumerate(FAMILIES):
        chosen = [curve for curve in curves if curve.family == family]
        lines = [Line2D([], [], **style_of(curve), label=curve.label) for curve in chosen]
        columns.append([Line2D([], [], linestyle="none", label=title), *lines])
    columns.append(list(more))
    height = max(map(len, columns))
    blank = [Line2D([], [], linestyle="none", label=" ")]
    handles = [one for column in columns for one in column + blank * (height - len(column))]
    picture.legend(
        handles=handles, loc="outside lower center", ncols=len(columns), columnspacing=2.0
    )


def style_of(curve: Styled) -> dict[str, Any]:
    """Return the style in a legend: with a circle if the curve is not monotone."""
    circle = {} if curve.monotone else {"marker": "o", "markerfacecolor": "white"}
    return {"color": curve.colour, **circle}


def plot_entropies(data: xr.Dataset) -> Picture:
    """Draw the curves against d, against log d, and divided by d."""
    picture, (linear, logarithmic, scaled) = panels(3, height=3.4)
    curves = list(styled(data))
    for one in curves:
        d, entropy = smooth(one.data)
        linear.plot(d, entropy, color=one.colour)
        logarithmic.plot(d, 1e3 * entropy, color=one.colour)
        scaled.plot(d, entropy / d, color=one.colour)
        continuation(logarithmic, one, scale=1e3)
        continuation(scaled, one, power=-1)
        top = None if one.monotone else bump(one.data)
        if top is not None:
            logarithmic.plot(top[0], 1e3 * top[1], zorder=5, **style_of(one))
    gas = Line2D([], [], color="0.4", linestyle="--", linewidth=0.8, label="dilute gas of flips")
    top_of_bump = Line2D(
        [],
        [],
        color="0.4",
        marker="o",
        markerfacecolor="white",
        linestyle="none",
        label="not monotone",
    )
    for axis in (linear, logarithmic, scaled):
        axis.axhline(0, color="0.3", linewidth=0.7)
    legend_below(picture, curves, gas, top_of_bump)
    linear.set_xlim(0, 0.5)
    for axis in (logarithmic, scaled):
        axis.set_xscale("log")
        axis.set_xlim(1e-6, 0.5)
    logarithmic.set_ylim(-3.5, 6)
    scaled.set_ylim(-0.4, 7.6)
    distance = r"distance $d$"
    label_axes(linear, distance, r"$S_I^*$ (nat per neuron)")
    label_axes(logarithmic, distance, r"$10^3\,S_I^*$ (nat per neuron)")
    label_axes(scaled, distance, r"$S_I^*/d$ (nat per neuron)")
    return picture


LOCAL_ENTROPIES = Figure(
    name="local_entropies",
    title="Internal entropy of the densest regions against their size",
    caption=(
        "Internal entropy S_I* per neuron at y*(d) for the nine couplings of the paper; circles: "
        "not monotone, in (b) at the maximum. (a) Linear axis, as in the paper. (b) Small "
        "distances. (c) S_I*/d. Dashed, below the last computed point, the dilute gas of flips "
        "with its correction, of relative order sqrt(d log 1/d) and joined to that point; the band "
        "reaches to the gas without the correction. All have q0 = 0, which is unstable beyond "
        "d = 0.048 to 0.063; the saddle q0 > 0, itself unstable, lowers S_I* by less than 0.001 "
        "and changes none of the nine verdicts."
    ),
    parameters=PARAMETERS,
    compute=compute,
    plot=plot_entropies,
    version=2,
    data="local_curves",
    earlier=("2-0390aede6d5a", "2-511d944c30ea", "2-c23eacb0b589"),
)


def plot_ystar(data: xr.Dataset) -> Picture:
    """Draw one panel per family, with the limit of dilute flips."""
    picture, axes = panels(3, height=3.2)
    curves = list(styled(data))
    for one in curves:
        axis = axes[one.family]
        log_d, log_y = np.log(one.data["d"].values), np.log(one.data["y_star"].values)
        x = np.linspace(log_d[0], log_d[-1], 400)
        axis.plot(np.exp(x), np.exp(PchipInterpolator(log_d, log_y)(x)), color=one.colour)
        continuation(axis, one, "y_star")
        loss = _loss(one.data)
        if loss is not None:
            axis.plot(*loss, marker=".", color="black", zorder=5)
    gas = Line2D([], [], color="0.4", linestyle="--", linewidth=0.8, label="dilute gas of flips")
    lost = Line2D([], [], color="black", marker=".", linestyle="none", label=r"$M_0=0$")
    for axis in axes:
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlim(1e-6, 0.5)
        axis.set_ylim(3, 1e6)
        label_axes(axis, r"distance $d$", r"$y^*$")
    circle = Line2D(
        [], [], color="0.4", marker="o", markerfacecolor="white", label=r"$S_I^*$ not monotone"
    )
    legend_below(picture, curves, gas, lost, circle)
    return picture


def _loss(one: xr.Dataset) -> tuple[float, float] | None:
    """Return d and y* where q0 = 0 loses stability, None if it does not."""
    m0, d, y = one["q0_stability"].values, one["d"].values, one["y_star"].values
    lost = np.flatnonzero((m0[:-1] > 0) & (m0[1:] <= 0))
    if lost.size == 0:
        return None
    k = int(lost[0])
    share = m0[k] / (m0[k] - m0[k + 1])
    lost_d, lost_y = (
        float(np.exp((1 - share) * np.log(values[k]) + share * np.log(values[k + 1])))
        for values in (d, y)
    )
    return lost_d, lost_y


YSTAR = replace(
    LOCAL_ENTROPIES,
    name="ystar",
    title="y*(d), where the external entropy vanishes",
    caption=(
        "The largest y with non-negative external entropy, for the nine couplings of the paper: "
        "(a) core module, (b, c) two layers. Dashed, below the last computed point, the dilute gas "
        "of flips, y* = 2Cw/d for one layer, with a correction of relative order "
        "sqrt(d log 1/d) joined to that point; the band reaches to the gas without it. Dots: "
        "M0 = 0, beyond which q0 = 0 is unstable. No printed verdict changes on the branch q0 > 0, "
        "which is unstable as well: its least eigenvalue is -0.02 to -0.03 at d = 0.1."
    ),
    plot=plot_ystar,
)
