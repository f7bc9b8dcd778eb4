"""The branch q0 > 0 of one layer along y*(d): q0, the change of S_I*, and y*."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure as Picture
from matplotlib.lines import Line2D

from figures.engine.figure import Context, Figure, Parameters, Scale
from figures.engine.plotting import label_axes, number, panels, shades
from rmtheory.base.chain import Chain
from rmtheory.local_entropies.broken_branch import broken_ystar, q0_loss
from rmtheory.local_entropies.points import ystar
from rmtheory.runtime.processes import in_order

#: J_D and the largest d, below the one where y* diverges.
_CURVES = ((0.06, 0.295), (0.1, 0.285), (0.2, 0.255), (0.3, 0.27))

_STORED = {
    "q0": "overlap q0 between clusters",
    "change": "S_I* minus that of q0 = 0, per neuron (nat)",
    "y_star": "y* with q0",
    "y_star_symmetric": "y* with q0 = 0",
    "slope": "dS_I*/dd with q0, per neuron",
}


def _parameters(points: int, curves: int) -> Parameters:
    rows = [{"jd": jd, "top_d": top} for jd, top in _CURVES[:curves]]
    return {"curves": rows, "points": points}


def compute(parameters: Parameters, context: Context) -> xr.Dataset:
    """Follow the branch from its onset, one process for each coupling."""
    rows, points = parameters["curves"], parameters["points"]
    context.progress(0, len(rows))
    curves = in_order(
        one_curve,
        [(row["jd"], row["top_d"], points) for row in rows],
        jobs=context.jobs,
        progress=lambda count: context.progress(count, len(rows)),
    )
    return xr.concat(curves, "curve", join="exact", combine_attrs="drop_conflicts")


def one_curve(jd: float, top: float, points: int) -> xr.Dataset:
    """Evaluate one coupling at distances that are dense at the onset."""
    onset = q0_loss(jd, 1e-8)
    start = float(onset)
    distances = start + (top - start) * np.linspace(0, 1, points + 1)[1:] ** 2
    chain = Chain(1, jd)
    values: dict[str, list[tuple[float, float]]] = {name: [] for name in _STORED}
    for d in distances.tolist():
        point, symmetric = broken_ystar(chain, d), ystar(chain, d)
        assert point.slope is not None
        for name, estimate in zip(
            _STORED,
            (point.q0, point.change, point.y, symmetric.y_star, point.slope),
            strict=True,
        ):
            values[name].append((float(estimate.value), float(estimate.error)))
    data: dict[str, Any] = {
        "onset": ((), start, {"long_name": "distance where M0 = 0"}),
        "onset_error": ((), float(onset.error), {"long_name": "error of onset"}),
    }
    for name, meaning in _STORED.items():
        pairs = np.array(values[name])
        data[name] = ("point", pairs[:, 0], {"long_name": meaning})
        data[f"{name}_error"] = ("point", pairs[:, 1], {"long_name": f"error of {name}"})
    coordinates = {"jd": jd, "d": ("point", distances, {"long_name": "distance d"})}
    return xr.Dataset(data, coords=coordinates)


def plot(data: xr.Dataset) -> Picture:
    """Draw q0, the change of S_I* and y*."""
    picture, (left, middle, right) = panels(3, height=2.6)
    colours = shades("viridis", data.sizes["curve"])
    top = float(data["d"].max())
    left.plot([0, top], [1, 1 - 2 * top], color="0.4", linestyle=":", label=r"$q_1$")
    for index, colour in enumerate(colours):
        one = data.isel(curve=index)
        d, onset = one["d"].values, float(one["onset"])
        label = number(float(one["jd"]))
        left.plot([onset, *d], [0, *one["q0"].values], color=colour, label=label)
        left.plot([onset], [0], marker=".", color=colour, clip_on=False, zorder=5)
        middle.plot(d - onset, -one["change"].values, color=colour, label=label)
        right.plot(d, 1 / one["y_star"].values, color=colour, label=label)
        symmetric = 1 / one["y_star_symmetric"].values
        right.plot(d, symmetric, color=colour, linestyle="--", linewidth=0.8)
    x = np.array([3e-3, 2e-2])
    (guide,) = middle.plot(x, 3e-8 * (x / x[0]) ** 3, color="0.4", linestyle=":")
    guide.set_label(r"$\sim(d-d_0)^3$")
    middle.set_xscale("log")
    middle.set_yscale("log")
    middle.set_ylim(1e-10, 3e-3)
    middle.set_xlim(1e-3, 0.4)
    right.set_ylim(0, 0.26)
    left.set_xlim(0, 0.32)
    left.set_ylim(0, 1)
    right.set_xlim(0, 0.32)
    label_axes(left, r"distance $d$", r"overlap $q_0$")
    label_axes(middle, r"$d-d_0$", r"$-\Delta S_I^*$")
    label_axes(right, r"distance $d$", r"$1/y^*$")
    left.legend(title=r"$J_D=$", loc="upper right")
    middle.legend(handles=[guide], loc="lower right")
    zero = Line2D([], [], color="0.4", linestyle="--", linewidth=0.8, label=r"$q_0=0$")
    broken = Line2D([], [], color="0.4", label=r"$q_0>0$")
    right.legend(handles=[broken, zero], loc="lower left")
    return picture


FIGURE = Figure(
    name="broken_symmetry",
    title="The branch q0 > 0 of one layer along y*(d)",
    caption=(
        "One layer with an overlap q0 between clusters, along y*(d) for four self-couplings. (a) "
        "q0 from its onset d0, where M0 = 0 (dots), towards q1. (b) By how much it lowers the "
        "internal entropy: the third power of the distance from the onset. (c) 1/y*, which reaches "
        "0 at a finite distance, where q0 reaches q1; dashed, with q0 = 0."
    ),
    parameters={
        Scale.TINY: _parameters(2, 1),
        Scale.QUICK: _parameters(14, 4),
        Scale.PAPER: _parameters(60, 4),
    },
    compute=compute,
    plot=plot,
    earlier=("1-21bcab572929", "1-b7b672e1ad8e", "1-d8b7555a5dbf"),
)
