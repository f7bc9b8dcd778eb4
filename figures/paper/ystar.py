"""y*(d), the largest y with S_E >= 0, for the nine couplings of the paper."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure as Picture
from matplotlib.lines import Line2D
from scipy.interpolate import PchipInterpolator

from figures.engine.figure import Figure
from figures.engine.plotting import label_axes, panels
from figures.paper import local_curves
from figures.paper.local_curves import family_legend, styled


def plot(data: xr.Dataset) -> Picture:
    """Draw one panel per family, with the limit of dilute flips."""
    picture, axes = panels(3, height=2.6)
    curves = list(styled(data))
    for curve in curves:
        axis = axes[curve.family]
        log_d, log_y = np.log(curve.data["d"].values), np.log(curve.data["y_star"].values)
        x = np.linspace(log_d[0], log_d[-1], 400)
        axis.plot(np.exp(x), np.exp(PchipInterpolator(log_d, log_y)(x)), color=curve.colour)
        gas_d, limit = curve.data["gas_d"].values, curve.data["gas_y_star"].values
        axis.plot(gas_d, limit, color=curve.colour, linestyle="--", linewidth=0.8)
        loss = _loss(curve.data)
        if loss is not None:
            axis.plot(*loss, marker=".", color="black", zorder=5)
    gas = Line2D([], [], color="0.4", linestyle="--", linewidth=0.8, label=r"dilute, $\sim 1/d$")
    lost = Line2D([], [], color="black", marker=".", linestyle="none", label=r"$M_0=0$")
    for family, axis in enumerate(axes):
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlim(1e-6, 0.5)
        axis.set_ylim(3, 1e6)
        label_axes(axis, r"distance $d$", r"$y^*$")
        chosen = [curve for curve in curves if curve.family == family]
        family_legend(axis, chosen, family, gas, lost, loc="upper right")
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


FIGURE = Figure(
    name="ystar",
    title="y*(d), where the external entropy vanishes",
    caption=(
        "The largest y with non-negative external entropy, for the nine couplings of the paper: "
        "(a) core module, (b, c) two layers. Dashed, the dilute gas of flips, y* = 2Cw/d for one "
        "layer, up to the last point. Dots: M0 = 0, beyond which q0 = 0 "
        "is unstable."
    ),
    parameters=local_curves.PARAMETERS,
    compute=local_curves.compute,
    plot=plot,
    version=2,
    data="local_curves",
    earlier=("2-0390aede6d5a",),
)
