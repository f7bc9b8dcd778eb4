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
    family_legend,
    smooth,
    style_of,
    styled,
)


def plot_entropies(data: xr.Dataset) -> Picture:
    """Draw the curves against d, against log d, and divided by d."""
    picture, (linear, logarithmic, scaled) = panels(3, height=2.9)
    curves = list(styled(data))
    for curve in curves:
        d, entropy = smooth(curve.data)
        linear.plot(d, entropy, color=curve.colour)
        logarithmic.plot(d, 1e3 * entropy, color=curve.colour)
        scaled.plot(d, entropy / d, color=curve.colour)
        continuation(logarithmic, curve, 1e-3)
        continuation(scaled, curve, curve.data["gas_d"].values)
        top = None if curve.monotone else bump(curve.data)
        if top is not None:
            logarithmic.plot(top[0], 1e3 * top[1], zorder=5, **style_of(curve))
    gas = Line2D([], [], color="0.4", linestyle="--", linewidth=0.8, label="dilute flips")
    top_of_bump = Line2D(
        [], [], color="0.4", marker="o", markerfacecolor="white", linestyle="none", label="maximum"
    )
    for axis, family, more, place in (
        (linear, 0, (), "lower right"),
        (logarithmic, 1, (top_of_bump,), "upper left"),
        (scaled, 2, (gas,), "upper right"),
    ):
        axis.axhline(0, color="0.3", linewidth=0.7)
        chosen = [curve for curve in curves if curve.family == family]
        family_legend(axis, chosen, family, *more, loc=place)
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
        "Internal entropy S_I* per neuron at y*(d) for the nine couplings of the paper; circles in "
        "the legends: not monotone. (a) Linear axis, as in the paper. (b) Small distances, with "
        "the maxima of the curves that are not monotone. (c) S_I*/d. Dashed, the dilute gas of "
        "flips, which the curves approach as d -> 0; the band is its correction, of relative order "
        "sqrt(d log 1/d), matched to the last computed point."
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


YSTAR = replace(
    LOCAL_ENTROPIES,
    name="ystar",
    title="y*(d), where the external entropy vanishes",
    caption=(
        "The largest y with non-negative external entropy, for the nine couplings of the paper: "
        "(a) core module, (b, c) two layers. Dashed, the dilute gas of flips, y* = 2Cw/d for one "
        "layer, up to the last point. Dots: M0 = 0, beyond which q0 = 0 "
        "is unstable."
    ),
    plot=plot_ystar,
)
