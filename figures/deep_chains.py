"""Beyond two layers: phase diagram, internal entropy and critical coupling of deep chains."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from scipy.interpolate import PchipInterpolator

from figures.deep_data import compute
from figures.figure import Figure, Parameters, Scale
from figures.local_style import Values, smooth
from figures.plotting import label_axes, number, panels, shades

#: J_Dc of the core module: without a coupling, every chain is made of cores.
_JD, _LAM = 0.0, 0.42


def _parameters(
    rays: int,
    first: int,
    width: float,
    boundaries: list[str],
    depths: list[str],
    curves: list[str],
    distances: list[float],
    points: int,
) -> Parameters:
    return {
        "rays": rays,
        "first": first,
        "width": width,
        "boundaries": boundaries,
        "depths": depths,
        "curve_layers": curves,
        "curve": {"jd": _JD, "lam": _LAM, "d": distances, "points": points},
    }


def plot(data: xr.Dataset) -> Picture:
    """Draw the three panels."""
    picture, axes = panels(3, height=2.6)
    _diagram(axes[0], data)
    _curves(axes[1], data)
    _depths(axes[2], data)
    return picture


def _diagram(axis: Axes, data: xr.Dataset) -> None:
    """Boundaries in the plane; one layer has no lambda, its boundary is a vertical line."""
    depths = data["boundary"].values
    core = float(data["jd"].isel(boundary=0, ray=0))
    axis.axvline(core, color="0.55", linestyle=":", label="1")
    for colour, depth in zip(shades("viridis", len(depths)), depths, strict=True):
        line = data.sel(boundary=depth)
        axis.plot(*between(line["jd"].values, line["lam"].values), color=colour)
        axis.errorbar(
            line["jd"],
            line["lam"],
            xerr=line["jd_error"],
            yerr=line["lam_error"],
            color=colour,
            marker=".",
            linestyle="none",
            label=number(depth),
            clip_on=False,
        )
    axis.set_xlim(0, 0.09)
    axis.set_ylim(0, 0.52)
    label_axes(axis, r"self-coupling $J_D$", r"coupling between layers $\lambda$")
    axis.legend(title="layers", loc="lower left", handlelength=1.2)


def between(jd: Values, lam: Values) -> tuple[Values, Values]:
    """Return a monotone curve through points of a boundary: J_D is nearly linear in lambda^2."""
    fine = np.linspace(lam[0], lam[-1], 200)
    return np.asarray(PchipInterpolator(lam**2, jd)(fine**2)), fine


def _curves(axis: Axes, data: xr.Dataset) -> None:
    depths = data["curve"].values
    for colour, depth in zip(shades("viridis", len(depths)), depths, strict=True):
        line = data.sel(curve=depth)
        one = xr.Dataset(
            {name: ("point", line[f"curve_{name}"].values) for name in ("d", "internal", "slope")}
        )
        axis.plot(*smooth(one), color=colour, linewidth=1.0)
        axis.errorbar(
            one["d"],
            one["internal"],
            yerr=line["curve_internal_error"].values,
            color=colour,
            marker=".",
            linestyle="none",
            label=number(depth),
        )
    axis.set_xscale("log")
    axis.set_yscale("log")
    label_axes(axis, r"distance $d$", r"$S_I^*$ (nat per neuron)")
    axis.legend(title=rf"layers, $\lambda={_LAM:g}$", loc="upper left", handlelength=1.2)


def _depths(axis: Axes, data: xr.Dataset) -> None:
    inverse = 1 / data["depth"].values
    axis.errorbar(
        inverse,
        data["end_lam"],
        yerr=data["end_lam_error"],
        marker="o",
        markersize=3.5,
        linestyle="none",
        color="C0",
        label=r"$\lambda_c$ at $J_D=0$",
        clip_on=False,
    )
    limit = float(data["end_lam"].values[np.argmin(inverse)])
    axis.axhline(limit, color="0.55", linestyle=":", label=r"$L=\infty$")
    axis.set_xlim(0, None)
    label_axes(axis, r"$1/L$", r"critical coupling $\lambda_c$")
    axis.legend(loc="upper left", handlelength=1.2)


FIGURE = Figure(
    name="deep_chains",
    title="Beyond two layers: phase diagram, S_I*(d) and lambda_c against depth",
    caption=(
        "Chains of 1 to infinitely many layers. (a) Boundary of the representation manifold: to "
        "its upper right S_I*(d) increases with d. Markers are computed, lines a monotone "
        "interpolation of J_D in lambda^2 through them. (b) Internal entropy at fixed couplings, "
        "which becomes monotone as layers are added. (c) Critical coupling at J_D = 0 against 1/L, "
        "with its infinite limit. Error bars are the brackets and are smaller than the markers."
    ),
    parameters={
        # Rays further apart are no neighbours to each other: two close ones instead.
        Scale.TINY: _parameters(25, 2, 1e-2, ["2"], ["2"], ["2"], [0.1, 0.2], 2),
        Scale.QUICK: _parameters(
            3,
            3,
            6e-3,
            ["2", "3", "inf"],
            ["2", "3", "4", "5", "8", "inf"],
            ["2", "3", "inf"],
            [0.008, 0.25],
            6,
        ),
        Scale.PAPER: _parameters(
            9,
            9,
            2e-4,
            ["2", "3", "5", "inf"],
            ["2", "3", "4", "5", "6", "8", "12", "16", "inf"],
            ["2", "3", "5", "8", "inf"],
            [0.004, 0.3],
            20,
        ),
    },
    compute=compute,
    plot=plot,
    version=2,
    core_hours={Scale.PAPER: 0.8},
)
