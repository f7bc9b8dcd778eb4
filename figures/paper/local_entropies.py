"""Two figures of the same curves: S_I* of the densest regions against their size, and y*(d).

The first is the paper's fig. local_entropies.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr
from matplotlib.figure import Figure as Picture
from matplotlib.lines import Line2D
from scipy.interpolate import PchipInterpolator

from figures.engine.figure import Figure
from figures.engine.plotting import label_axes, panels
from figures.paper import local_curves
from figures.paper.local_curves import (
    bump,
    continuation,
    legend_below,
    smooth,
    style_of,
    styled,
)


def plot_entropies(data: xr.Dataset) -> Picture:
    """Draw the curves against d, against log d, and divided by d."""
    picture, (linear, logarithmic, scaled) = panels(3, height=3.4)
    curves = list(styled(data))
    for curve in curves:
        d, entropy = smooth(curve.data)
        linear.plot(d, entropy, color=curve.colour)
        logarithmic.plot(d, 1e3 * entropy, color=curve.colour)
        scaled.plot(d, entropy / d, color=curve.colour)
        continuation(logarithmic, curve, scale=1e3)
        continuation(scaled, curve, power=-1)
        top = None if curve.monotone else bump(curve.data)
        if top is not None:
            logarithmic.plot(top[0], 1e3 * top[1], zorder=5, **style_of(curve))
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
        "reaches to the gas without the correction."
    ),
    parameters=local_curves.PARAMETERS,
    compute=local_curves.compute,
    plot=plot_entropies,
    version=2,
    data="local_curves",
    earlier=("2-0390aede6d5a", "2-511d944c30ea"),
)


def plot_ystar(data: xr.Dataset) -> Picture:
    """Draw one panel per family, with the limit of dilute flips."""
    picture, axes = panels(3, height=3.2)
    curves = list(styled(data))
    for curve in curves:
        axis = axes[curve.family]
        log_d, log_y = np.log(curve.data["d"].values), np.log(curve.data["y_star"].values)
        x = np.linspace(log_d[0], log_d[-1], 400)
        axis.plot(np.exp(x), np.exp(PchipInterpolator(log_d, log_y)(x)), color=curve.colour)
        continuation(axis, curve, "y_star")
        loss = _loss(curve.data)
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
        "M0 = 0, beyond which q0 = 0 is unstable."
    ),
    plot=plot_ystar,
)
