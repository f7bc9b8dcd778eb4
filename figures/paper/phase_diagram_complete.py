"""What exists and what can be found: all boundaries in the plane (J_D, lambda), all depths.

Local entropy says where dense clusters of fixed points are connected, the theory of the dynamics
where the network freezes, measured thresholds where searches begin to succeed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from matplotlib.lines import Line2D

from figures.engine.figure import Context, Figure, Parameters, Scale, kept_rows, swept
from figures.engine.plotting import DOUBLE, label_axes, number, plain_ticks
from figures.paper.deep_chains import between
from figures.paper.local_entropies import Values
from figures.paper.shipped import path_of
from figures.paper.thresholds import sweep_over
from rmtheory.dynamics.finite_size import stored_theory
from rmtheory.dynamics.freezing import freezing_point
from rmtheory.local_entropies.boundaries import KINDS
from rmtheory.local_entropies.diagram import BoundaryPoint, Request, boundary_point
from rmtheory.runtime.provenance import parameters_hash
from rmtheory.runtime.untrusted import read_json

#: Boundaries and thresholds that take hours, with the commands that gave them. Freezing points are
#: those of :mod:`figures.paper.shipped`.
SHIPPED = Path(__file__).resolve().parents[1] / "data" / "phase_diagram_complete.json"

_SEED = 7

#: Freezing points that are not known to this are left out.
_LARGEST_ERROR = 0.1

#: One row of a table: names, numbers, and X_error beside X.
Row = dict[str, Any]

#: Table -> what it is made of; the rest of a row are coordinates.
_TABLES = {"boundary": ("jd", "lam"), "freezing": ("jd", "lam"), "threshold": ("jd", "lam")}

_MEANING = {
    "boundary": "{} on the boundary of the gap or of the representation manifold",
    "freezing": "{} at which the dynamics freezes for N -> infinity",
    "threshold": "{} at which half of the networks are solved",
}
_SYMBOL = {"jd": "self-coupling J_D", "lam": "coupling lambda between layers"}


def compute(parameters: Parameters, context: Context) -> xr.Dataset:
    """Take the tables that are shipped, or compute them."""
    tables = shipped_tables() if parameters["shipped"] else _solved(parameters, context)
    data = xr.Dataset()
    for name, values in _TABLES.items():
        rows = [row for row in tables[name] if row["layers"] in parameters["layers"]]
        coords = [key for key in rows[0] if key.removesuffix("_error") not in values]
        data = data.assign_coords(
            {f"{name}_{key}": (name, [_plain(row[key]) for row in rows]) for key in coords}
        )
        for value in values:
            numbers = [float(row[value]) for row in rows]
            meaning = _MEANING[name].format(_SYMBOL[value])
            data[f"{name}_{value}"] = (name, numbers, {"long_name": meaning})
            errors = [float(row[f"{value}_error"]) for row in rows]
            data[f"{name}_{value}_error"] = (name, errors)
    return data


def _plain(value: Any) -> Any:
    return math.inf if value == "inf" else value


def shipped_tables() -> dict[str, Any]:
    """Return the tables that are stored, with their provenance."""
    tables: dict[str, Any] = read_json(SHIPPED)
    return {**tables, "freezing": _freezing_rows()}


def _freezing_rows() -> list[Row]:
    """J_dyn of one layer, which does not depend on p, and the freezing points of chains."""
    core = stored_theory()[0].freezing
    rows = [_freezing_row(1, 1.0, "jd", [float(core.value), float(core.error)], 0.0)]
    for piece in read_json(path_of("freezing_points")).values():
        settings, result = piece["settings"], piece["result"]
        control = "jd" if "jd" in result else "lam"
        # A point with a larger error is anywhere in the picture.
        if result[control][1] < _LARGEST_ERROR:
            fixed = settings["lam" if control == "jd" else "jd"]
            at = settings["layers"], settings["p"]
            rows.append(_freezing_row(*at, control, result[control], fixed))
    return rows


def _freezing_row(layers: int, p: float, control: str, solved: list[float], fixed: float) -> Row:
    other = "lam" if control == "jd" else "jd"
    point = {control: solved[0], f"{control}_error": solved[1]}
    return {"layers": layers, "p": p, **point, other: fixed, f"{other}_error": 0.0}


def _solved(parameters: Parameters, context: Context) -> dict[str, list[Row]]:
    """Solve for every boundary and measure every threshold; finished pieces are kept."""
    with context.parts_folder() as folder:
        boundaries = [
            row
            for layers in parameters["layers"][1:]
            for kind in KINDS
            for row in _kept(folder, _boundary, layers, kind, **parameters["boundary"])
        ]
        freezing = [
            row for point in parameters["freezing"] for row in _kept(folder, _freezing, **point)
        ]
    return {
        "boundary": boundaries,
        "freezing": freezing,
        "threshold": _thresholds(parameters["series"], context),
    }


def _kept(folder: Path, solve: Any, *args: Any, **settings: Any) -> list[Row]:
    """Return rows from `folder` if they are there; solve for them and leave them there."""
    name = f"{solve.__name__}-{parameters_hash({'args': args, **settings})[:12]}"
    return kept_rows(folder, name, lambda: solve(*args, **settings))


def _boundary(layers: int | str, kind: Any, rays: int, width: float) -> list[Row]:
    request = Request(rays, width, math.inf if layers == "inf" else int(layers))
    points: list[BoundaryPoint] = []
    for theta in request.angles():
        points.append(boundary_point(kind, theta, request, points[-1] if points else None))
    names = ("jd", "lam", "jd_error", "lam_error")
    return [
        {"layers": layers, "kind": kind} | {name: getattr(point, name) for name in names}
        for point in points
    ]


def _freezing(layers: int, p: float, lam: float, repetitions: int) -> list[Row]:
    fixed = None if layers == 1 else lam
    point = freezing_point(layers, lam=fixed, p=p, repetitions=repetitions).point
    return [_freezing_row(layers, p, "jd", [float(point.value), float(point.error)], lam)]


def _thresholds(series: list[dict[str, Any]], context: Context) -> list[Row]:
    """Measure the 50 % points of all series; those without one are left out."""
    from rmsim.studies.convergence import analyse, gather

    with swept({"thresholds": sweep_over(series, _SEED)}, context) as folders:
        raws = [gather(folders["thresholds"], sweep_over([one], _SEED)) for one in series]
    rows = []
    for raw, one in zip(raws, series, strict=True):
        analysed = analyse(raw, one["control"], seed=_SEED).isel(n=0)
        value, error = float(analysed["threshold"]), float(analysed["threshold_error"])
        if not math.isfinite(value):
            continue
        other = "lam" if one["control"] == "jd" else "jd"
        rows.append(
            {
                "search": one["name"],
                "layers": one["settings"].get("layers", 1),
                "n": one["n"],
                "samples": one["samples"],
                one["control"]: value,
                f"{one['control']}_error": error,
                other: 0.0,
                f"{other}_error": 0.0,
            }
        )
    return rows


# The panels.

_GAP, _BUMPY, _MANIFOLD, _FROZEN = "#F3D5D0", "#FBEBD3", "#FFFFFF", "#DCEBF5"

#: Largest J_D of panel (a): room for a word beyond the last line.
_RIGHT = 1.06

#: Search -> name, marker, colour.
_SEARCHES = {
    "rbp .003": ("rBP, $dr=0.003$", "^", "C3"),
    "rbp .01": ("rBP, $dr=0.01$", "D", "C2"),
    "likelihood": ("likelihood", "s", "C1"),
    "dynamics": ("dynamics", "o", "C0"),
}

_DASHES: dict[float, Any] = {1.0: (0, (3, 1.5)), 0.8: "-"}


def plot(data: xr.Dataset) -> Picture:
    """Draw the three panels."""
    picture = Picture(figsize=(DOUBLE, 3.5), layout="constrained")
    axes = picture.subplots(1, 3)
    for letter, axis, draw in zip("abc", axes, (_core, _plane, _corner), strict=True):
        axis.set_title(f"({letter})", loc="left", fontweight="bold")
        axis.grid(False)
        draw(axis, data)
    return picture


def _line(data: xr.Dataset, table: str, **where: Any) -> tuple[Values, Values]:
    """Return J_D and lambda of the rows of a table with these coordinates, by growing lambda."""
    chosen = np.ones(data.sizes[table], dtype=bool)
    for key, value in where.items():
        chosen &= data[f"{table}_{key}"].values == value
    jd, lam = (data[f"{table}_{name}"].values[chosen] for name in ("jd", "lam"))
    order = np.argsort(lam)
    return jd[order], lam[order]


def _depths(data: xr.Dataset, table: str, **where: Any) -> list[float]:
    chosen = np.ones(data.sizes[table], dtype=bool)
    for key, value in where.items():
        chosen &= data[f"{table}_{key}"].values == value
    return sorted({float(x) for x in data[f"{table}_layers"].values[chosen]})


def _points(data: xr.Dataset, **where: Any) -> Iterator[tuple[str, xr.Dataset]]:
    """Give each search with its thresholds."""
    for search in _SEARCHES:
        chosen = data["threshold_search"].values == search
        for key, value in where.items():
            chosen &= data[f"threshold_{key}"].values == value
        if chosen.any():
            yield search, data.isel(threshold=np.flatnonzero(chosen))


def _core(axis: Axes, data: xr.Dataset) -> None:
    """One layer: thresholds of all sizes between the boundaries of theory."""
    gap, manifold = (_line(data, "boundary", layers=2.0, kind=kind)[0][0] for kind in ("gap", "rm"))
    frozen = float(_line(data, "freezing", layers=1)[0][0])
    axis.axvspan(0, gap, color=_GAP, linewidth=0)
    axis.axvspan(gap, manifold, color=_BUMPY, linewidth=0)
    axis.axvspan(frozen, _RIGHT, color=_FROZEN, linewidth=0)
    axis.axvline(manifold, color="black", linewidth=1.1)
    axis.axvline(frozen, color="C0", linewidth=1.1)
    handles = []
    for search, rows in _points(data, layers=1):
        name, marker, colour = _SEARCHES[search]
        axis.errorbar(
            rows["threshold_jd"],
            rows["threshold_n"],
            xerr=rows["threshold_jd_error"],
            fmt=marker,
            color=colour,
            markersize=3.5,
            linewidth=0.9,
            capsize=1.5,
        )
        handles.append(Line2D([], [], color=colour, marker=marker, linestyle="none", label=name))
    axis.set_yscale("log")
    sizes = np.unique(data["threshold_n"].values[data["threshold_layers"].values == 1])
    plain_ticks(axis.yaxis, sizes.tolist())
    axis.set_ylim(sizes[0] / 1.6, sizes[-1] * 2.2)
    axis.set_xlim(0, _RIGHT)
    top = sizes[-1] * 1.75
    axis.text(manifold + 0.015, top, "manifold exists", fontsize=6.5, va="center")
    axis.text(frozen + 0.01, top, "freezes", fontsize=6.5, va="center")
    axis.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.45, -0.17), ncols=2)
    label_axes(axis, r"self-coupling $J_D$   ($L=1$)", r"$N$")


def _shade(index: int) -> str:
    return ("C0", "#004B76", "C5")[index]


def _plane(axis: Axes, data: xr.Dataset) -> None:
    """All depths: freezing of the dynamics, and the manifold of two layers in the corner."""
    jd, lam = between(*_line(data, "boundary", layers=2.0, kind="rm"))
    axis.fill_betweenx(lam, 0, jd, color=_BUMPY, linewidth=0)
    axis.plot(jd, lam, color="black", linewidth=1.1)
    handles = [Line2D([], [], color="black", label="manifold, $L=2$")]
    start = _line(data, "freezing", layers=1)[0][:1]
    for k, depth in enumerate(d for d in _depths(data, "freezing", p=0.8) if d > 1):
        for p in (0.8, 1.0):
            x, y = _line(data, "freezing", layers=depth, p=p)
            x, y = np.append(start, x), np.append(0.0, y)
            # The masks hardly matter: open markers beneath leave both to be seen.
            axis.plot(
                x,
                y,
                color=_shade(k),
                # A line guides the eye through three points or more, not through two.
                linestyle=_DASHES[p] if x.size > 2 else "none",
                marker="o" if p == 1 else ".",
                markersize=4 if p < 1 else 6,
                markerfacecolor=_shade(k) if p < 1 else "white",
                zorder=3 if p < 1 else 2.5,
            )
            own = (data["freezing_layers"].values == depth) & (data["freezing_p"].values == p)
            axis.errorbar(
                data["freezing_jd"].values[own],
                data["freezing_lam"].values[own],
                xerr=data["freezing_jd_error"].values[own],
                yerr=data["freezing_lam_error"].values[own],
                color=_shade(k),
                linestyle="none",
                linewidth=0.8,
            )
        handles.append(
            Line2D(
                [],
                [],
                color=_shade(k),
                marker=".",
                linestyle="none",
                label=f"freezes, $L=${number(depth)}",
            )
        )
    handles += [
        Line2D([], [], color="0.3", marker=".", linestyle="none", label="$p=0.8$"),
        Line2D(
            [],
            [],
            color="0.3",
            marker="o",
            markersize=6,
            markerfacecolor="white",
            linestyle="none",
            label="$p=1$",
        ),
    ]
    # Two neurons of a column exchange their states under static fields |phi| < lambda - J_D.
    diagonal = np.array([0.68, 1.1])
    axis.plot(diagonal, diagonal, color="0.3", linestyle=":", linewidth=1.1)
    axis.text(0.63, 1.22, "$p=1$: layers can cycle\nabove the dotted line", fontsize=6.5)
    axis.text(0.2, 0.25, "active\nfor $N\\to\\infty$", fontsize=6.5)
    axis.text(0.85, 0.2, "freezes", fontsize=6.5)
    for search, rows in _points(data):
        _, marker, colour = _SEARCHES[search]
        for depth in _depths(rows, "threshold"):
            some = rows.isel(threshold=np.flatnonzero(rows["threshold_layers"].values == depth))
            last = some.isel(threshold=int(np.argmax(some["threshold_n"].values)))
            axis.errorbar(
                float(last["threshold_jd"]),
                float(last["threshold_lam"]),
                xerr=float(last["threshold_jd_error"]),
                yerr=float(last["threshold_lam_error"]),
                fmt=marker,
                color=colour,
                markerfacecolor=colour if depth < 3 else "white",
                markersize=4,
                clip_on=False,
                zorder=5,
            )
    axis.set_xlim(0, 1.1)
    axis.set_ylim(0, 1.75)
    axis.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.45, -0.17), ncols=2)
    label_axes(axis, r"self-coupling $J_D$", r"coupling between layers $\lambda$")


def _corner(axis: Axes, data: xr.Dataset) -> None:
    """Boundaries of the representation manifold and of the gap at all depths."""
    colours = ("C4", "black", "C0", "C3")
    core: dict[str, float] = {
        kind: _line(data, "boundary", layers=2.0, kind=kind)[0][0] for kind in KINDS
    }
    handles = [Line2D([], [], color=colours[0], label="$L=1$")]
    for kind, dash in (("rm", "-"), ("gap", (0, (1, 1)))):
        axis.axvline(core[kind], color=colours[0], linestyle=dash, linewidth=1.0)
    for colour, depth in zip(colours[1:], _depths(data, "boundary"), strict=False):
        for kind, dash in (("rm", "-"), ("gap", (0, (1, 1)))):
            jd, lam = _line(data, "boundary", layers=depth, kind=kind)
            if jd.size == 0:
                continue
            axis.plot(*between(jd, lam), color=colour, linestyle=dash)
            axis.plot(jd, lam, ".", color=colour, markersize=4, clip_on=False)
        handles.append(Line2D([], [], color=colour, label=f"$L=${number(depth)}"))
    handles += [
        Line2D([], [], color="0.3", label="manifold"),
        Line2D([], [], color="0.3", linestyle=(0, (1, 1)), label="gap closes"),
    ]
    axis.set_xlim(0, 0.09)
    axis.set_ylim(0, 0.5)
    axis.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.45, -0.17), ncols=3)
    label_axes(axis, r"self-coupling $J_D$", r"coupling between layers $\lambda$")


def _series(
    name: str, n: int, samples: int, window: tuple[float, float, int], **settings: Any
) -> dict[str, Any]:
    """One curve of success, as :func:`figures.paper.thresholds.sweep_over` takes it."""
    algorithm, _, speed = name.partition(" ")
    own = {"dr": float(speed)} if speed else {}
    return {
        "name": name,
        "n": n,
        "control": "lam" if settings.get("layers", 1) > 1 else "jd",
        "values": np.round(np.linspace(*window), 12).tolist(),
        "samples": samples,
        "batch": 25 if n < 2000 else 1,
        "settings": {"algorithm": algorithm, **own, **settings},
    }


_SERIES = [
    *(_series("rbp .003", n, 60, (0.10, 0.22, 5)) for n in (500, 1000, 2000)),
    _series("rbp .003", 4000, 30, (0.12, 0.18, 5)),
    *(_series("rbp .01", n, 60, (0.12, 0.26, 6)) for n in (200, 500, 1000, 2000)),
    _series("rbp .01", 4000, 30, (0.15, 0.21, 5)),
    *(
        _series("likelihood", n, 60, (0.34, 0.52, 6), max_sweeps=500)
        for n in (200, 500, 1000, 2000)
    ),
    _series("dynamics", 200, 400, (0.40, 0.54, 8)),
    _series("dynamics", 500, 400, (0.52, 0.64, 7)),
    _series("dynamics", 1000, 200, (0.58, 0.68, 6)),
    _series("dynamics", 2000, 100, (0.63, 0.72, 6)),
    _series("dynamics", 4000, 50, (0.66, 0.78, 6)),
    _series("dynamics", 8000, 30, (0.70, 0.80, 6)),
    _series("rbp .01", 2000, 40, (0.65, 0.90, 6), layers=2),
    _series("rbp .01", 1000, 40, (0.70, 1.00, 6), layers=3),
    _series("dynamics", 1000, 60, (1.0, 1.5, 8), layers=2, p=0.8),
]

_FREEZING = [
    {"layers": 1, "p": 1.0, "lam": 0.0, "repetitions": 12},
    *(
        {"layers": layers, "p": p, "lam": lam, "repetitions": 6}
        for layers in (2, 3)
        for p, couplings in ((0.8, (0.3, 0.6, 0.8, 1.1, 1.4)), (1.0, (0.3, 0.5)))
        for lam in couplings
    ),
]


def _file_hash() -> str:
    """Return a hash of the shipped tables: stored data are those of one version of them."""
    return parameters_hash(shipped_tables())


FIGURE = Figure(
    name="phase_diagram_complete",
    title="What exists, what can be found, by what: phase diagram of chains",
    caption=(
        "What exists, what can be found, and by what. (a) One layer. Left of the black line the "
        "local entropy is not monotone (tan) or has a gap (red): no representation manifold. Blue: "
        "the dynamics freezes for N → ∞. Points: J_D at which half of the networks "
        "of N neurons are solved by reinforced BP, likelihood optimisation (500 steps) and the "
        "dynamics (1000 sweeps). (b) Chains in the plane of J_D and λ: boundary of the "
        "representation manifold of two layers, and where the dynamics freezes, neurons being "
        "updated with probability p. Updated all at once (p = 1), two neurons of a column can "
        "exchange their states in cycles of two sweeps if λ > J_D (dotted; an argument for static "
        "fields); the freezing line "
        "for p = 1 (open circles) is computed below it. Points as in (a), the largest "
        "N measured, at the axes: filled one and two layers, open three layers. (c) The corner of "
        "(b): boundaries of the manifold (full) and of the gap (dotted) for all depths. Error "
        "bars: one standard deviation; lines between the points of (b) guide the eye; freezing "
        "points with an error above 0.1 are left out (three layers at J_D = 0); at J_D = 0 single "
        "neurons flicker for ever, and the point is where the chaotic part of the flips vanishes; "
        "freezing of infinite chains is not computed; brackets of the local entropy are below the "
        "line width."
    ),
    parameters={
        Scale.TINY: {"shipped": _file_hash(), "layers": [1, 2, 3]},
        Scale.QUICK: {"shipped": _file_hash(), "layers": [1, 2, 3, "inf"]},
        Scale.PAPER: {
            "shipped": "",
            "layers": [1, 2, 3, "inf"],
            "boundary": {"rays": 9, "width": 2e-4},
            "freezing": _FREEZING,
            "series": _SERIES,
        },
    },
    compute=compute,
    plot=plot,
    seed=_SEED,
    core_hours={Scale.PAPER: 24.0},
)
