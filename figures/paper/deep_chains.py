"""Beyond two layers: phase diagram, internal entropy and critical coupling of deep chains.

Thresholds and curves of chains of three layers or more, computed in parallel and kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from scipy.interpolate import PchipInterpolator

from figures.engine.figure import Context, Figure, Parameters, Scale, kept_rows
from figures.engine.plotting import label_axes, number, panels, shades
from figures.paper.local_entropies import Values, smooth
from figures.paper.shipped import path_of
from rmtheory.base.chain import Chain
from rmtheory.local_entropies.diagram import BoundaryPoint, Request, boundary_point
from rmtheory.local_entropies.points import ystar
from rmtheory.local_entropies.solve import CurveTracker, functional
from rmtheory.local_entropies.thresholds import critical_coupling
from rmtheory.runtime.processes import in_order
from rmtheory.runtime.provenance import parameters_hash
from rmtheory.runtime.untrusted import read_json

#: One piece of work: what it is, the number of layers as text, and its numbers.
Work = tuple[str, str, dict[str, Any]]


def compute(parameters: Parameters, context: Context) -> xr.Dataset:
    """Bracket the thresholds and follow the curves, keeping every finished piece of work."""
    rays, width = parameters["rays"], parameters["width"]
    boundaries: list[Work] = [
        ("boundary", layers, {"rays": rays, "width": width, "first": parameters["first"]})
        for layers in parameters["boundaries"]
    ]
    others = [layers for layers in parameters["depths"] if layers not in parameters["boundaries"]]
    ends: list[Work] = [("threshold", layers, {"width": width}) for layers in others]
    curves: list[Work] = [
        ("curve", layers, dict(parameters["curve"])) for layers in parameters["curve_layers"]
    ]
    # The slow ones first, so that no process is left with one of them at the end.
    work = [*reversed(boundaries), *ends, *curves]
    context.progress(0, len(work))
    with context.parts_folder() as folder:
        solved = in_order(
            part,
            [(*one, folder) for one in work],
            jobs=context.jobs,
            progress=lambda count: context.progress(count, len(work)),
        )
    results = {(one[0], one[1]): rows for one, rows in zip(work, solved, strict=True)}
    thresholds = [
        results["boundary", layers][-1:]
        if layers in parameters["boundaries"]
        else results["threshold", layers]
        for layers in parameters["depths"]
    ]
    data = xr.merge(
        [
            _table([results["boundary", x] for x in parameters["boundaries"]], "boundary", "ray"),
            _table(thresholds, "depth", "").rename(
                {name: f"end_{name}" for name in thresholds[0][0]}
            ),
            _table(
                [results["curve", x] for x in parameters["curve_layers"]], "curve", "point"
            ).rename({name: f"curve_{name}" for name in results[curves[0][:2]][0]}),
        ]
    ).assign_coords(
        boundary=[float(x) for x in parameters["boundaries"]],
        depth=[float(x) for x in parameters["depths"]],
        curve=[float(x) for x in parameters["curve_layers"]],
    )
    return data.set_coords("curve_d")  # chosen, not computed


def part(what: str, layers: str, numbers: dict[str, Any], folder: Path) -> list[dict[str, float]]:
    """Return one piece of work, from `folder` if it is there, and leave it there."""
    name = f"{what}-{layers}-{parameters_hash(numbers)[:12]}"
    return kept_rows(folder, name, lambda: _KINDS[what](float(layers), **numbers))


def boundary(layers: float, rays: int, width: float, first: int) -> list[dict[str, float]]:
    """Points of the boundary of the representation manifold on the first rays from the J_D axis."""
    request = Request(rays, width, math.inf if math.isinf(layers) else int(layers))
    points: list[BoundaryPoint] = []
    for theta in request.angles()[:first]:
        points.append(boundary_point("rm", theta, request, points[-1] if points else None))
    names = ("jd", "lam", "d", "y_star", "internal")
    return [
        {
            name + suffix: getattr(point, name + suffix)
            for name in names
            for suffix in ("", "_error")
        }
        for point in points
    ]


def threshold(layers: float, width: float) -> list[dict[str, float]]:
    """Return lambda_c at J_D = 0, as the last point of a boundary would say it.

    As on the boundaries, the whole curves at the two ends are unchecked here: judging them takes
    longer than the bracket (`rmtheory critical` does it).
    """
    critical = critical_coupling(layers, "lam", jd=0.0, width=0.4 * width, verdicts=False)
    middle, half = critical.bracket.value, 0.5 * (critical.high - critical.low)
    row = {"jd": 0.0, "jd_error": 0.0, "lam": middle, "lam_error": half}
    for name in ("d", "y_star", "internal"):
        estimate = getattr(critical, name)
        row |= {name: float(estimate.value), f"{name}_error": float(estimate.error)}
    return [row]


def curve(
    layers: float, jd: float, lam: float, d: Sequence[float], points: int
) -> list[dict[str, float]]:
    """Follow S_I*(d), from large distances to small ones."""
    chain = Chain(layers, jd, lam)
    tracker = CurveTracker(functional(chain))
    rows: list[dict[str, float]] = []
    for distance in np.geomspace(d[1], d[0], points):
        point = ystar(chain, float(distance), tol=1e-7, tracker=tracker, check_zeros=False)
        row = {"d": float(distance)}
        for name in ("internal", "slope", "y_star"):
            estimate = getattr(point, name)
            row |= {name: float(estimate.value), f"{name}_error": float(estimate.error)}
        rows.append(row)
    return rows[::-1]


_KINDS: dict[str, Callable[..., list[dict[str, float]]]] = {
    "boundary": boundary,
    "threshold": threshold,
    "curve": curve,
}

_MEANING = {
    "jd": "self-coupling J_D on the boundary",
    "lam": "coupling between layers on the boundary",
    "d": "distance",
    "y_star": "y* there",
    "internal": "S_I* per neuron (nat)",
    "slope": "dS_I*/dd per neuron",
}


def _table(rows: list[list[dict[str, float]]], first: str, second: str) -> xr.Dataset:
    """Put rows of numbers into arrays over one or two dimensions."""
    data: dict[str, Any] = {}
    for name in rows[0][0]:
        values = np.array([[row[name] for row in line] for line in rows])
        meaning = _MEANING.get(name) or f"error of {name.removesuffix('_error')}"
        dims = (first, second) if second else (first,)
        data[name] = (dims, values if second else values[:, 0], {"long_name": meaning})
    return xr.Dataset(data)


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
        own, stored = data.sel(boundary=depth), stored_boundary(depth)
        # What is stored has narrower brackets: the line goes through it, if there is any.
        jd, lam = (stored[0], stored[1]) if stored.size else (own["jd"], own["lam"])
        axis.plot(*between(np.asarray(jd), np.asarray(lam)), color=colour)
        if stored.size:
            jd, lam, jd_error, lam_error = stored
            bars = {"xerr": jd_error, "yerr": lam_error, "label": number(depth)}
            axis.errorbar(jd, lam, fmt=".", color=colour, clip_on=False, **bars)
        axis.errorbar(
            own["jd"],
            own["lam"],
            xerr=own["jd_error"],
            yerr=own["lam_error"],
            fmt="o",
            color=colour,
            markersize=5,
            markerfacecolor="white" if stored.size else colour,
            zorder=1.5,
            label=None if stored.size else number(depth),
            clip_on=False,
        )
    axis.set_xlim(0, 0.09)
    axis.set_ylim(0, 0.52)
    label_axes(axis, r"self-coupling $J_D$", r"coupling between layers $\lambda$")
    axis.legend(title="layers", loc="lower left", handlelength=1.2)


def stored_boundary(layers: float) -> Values:
    """Return J_D, lambda and their errors on the boundary, by growing lambda; none if not stored.

    Examples
    --------
    >>> jd, lam, _, _ = stored_boundary(3)
    >>> len(jd) > 5, bool(np.all(np.diff(jd) < 0) and np.all(np.diff(lam) > 0))
    (True, True)
    """
    names = ("jd", "lam", "jd_error", "lam_error")
    rows = [
        [row[name] for name in names]
        for row in read_json(path_of("phase_diagram_complete"))["boundary"]
        if float(row["layers"]) == layers and row["kind"] == "rm"
    ]
    return np.array(sorted(rows, key=lambda row: float(row[1]))).T


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
    title="Beyond two layers: phase diagram, S_I*(d) and λ_c against depth",
    caption=(
        "Chains of 1 to infinitely many layers. (a) Boundary of the representation manifold: to "
        "its upper right S_I*(d) increases with d. Dots are stored critical couplings (rmtheory "
        "critical), open circles points on rays that this figure computes with wider brackets, "
        "lines a monotone interpolation of J_D in λ² through the dots. (b) Internal entropy at "
        "fixed couplings, which becomes monotone as layers are added. (c) Critical coupling at "
        "J_D = 0 against 1/L, with its infinite limit. Error bars are the brackets and are "
        "smaller than the markers."
    ),
    parameters={
        # Rays further apart are not neighbours of each other: two close ones instead.
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
    earlier=("2-8274f2c954d8", "2-f9b25074c22f", "2-f286918522ed"),
)
