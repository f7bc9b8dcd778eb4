"""Phase diagram of the two-layer chain in the plane (J_D, lambda).

Two boundaries: above the upper one S_I*(d) increases with d, the paper's criterion for a
representation manifold; below the lower one S_I* is negative at some distances, a gap.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from figures.engine.figure import Context, Figure, Parameters, Scale
from figures.engine.plotting import COLUMN, label_axes
from rmtheory.local_entropies.boundaries import KINDS
from rmtheory.local_entropies.diagram import (
    BoundaryPoint,
    Request,
    boundary_point,
    compute_phase_diagram,
)

_MEANING = {
    "jd": "self-coupling J_D on the boundary",
    "lam": "coupling between layers on the boundary",
    "touching_d": "distance at which slope (rm) or S_I* (gap) is 0",
    "y_star": "y* there",
    "internal": "S_I* per neuron there (nat)",
}

#: Where the paper puts the ends of the boundary: J_Dc about 0.07, lambda_c below about 0.45.
PAPER_JD, PAPER_LAM = 0.07, 0.45

_MANIFOLD, _BUMPY, _GAP = "#DCEBF5", "#FBEBD3", "#F3D5D0"


def _parameters(points: int, width: float, rays: int | None = None) -> Parameters:
    return {"layers": 2, "points": points, "width": width, "rays": rays or points}


def compute(parameters: Parameters, context: Context) -> xr.Dataset:
    """Bracket both boundaries on rays from the origin, keeping every finished point."""
    request = Request(parameters["points"], parameters["width"])
    total = len(KINDS) * request.points
    context.progress(0, total)
    if parameters["rays"] < request.points:
        data = first_rays(request, parameters["rays"])
    else:
        with context.parts_folder() as folder:
            data = compute_phase_diagram(
                request,
                folder / "diagram",
                jobs=context.jobs,
                progress=lambda count: context.progress(count, total),
            )
    for name, meaning in _MEANING.items():
        data[name].attrs["long_name"] = meaning
        data[f"{name}_error"].attrs["long_name"] = f"error of {name}"
    return data


def first_rays(request: Request, rays: int) -> xr.Dataset:
    """Return the boundaries on the rays next to the J_D axis only: a corner of the plane."""
    boundaries: list[list[BoundaryPoint]] = []
    for kind in KINDS:
        points: list[BoundaryPoint] = []
        for theta in request.angles()[:rays]:
            points.append(boundary_point(kind, theta, request, points[-1] if points else None))
        boundaries.append(points)
    names = {
        name + suffix: name.removeprefix("touching_") + suffix
        for name in _MEANING
        for suffix in ("", "_error")
    }
    return xr.Dataset(
        {
            name: (
                ("kind", "ray"),
                [[getattr(point, field) for point in row] for row in boundaries],
            )
            for name, field in names.items()
        },
        coords={"kind": list(KINDS), "theta": ("ray", request.angles()[:rays])},
    )


def plot(data: xr.Dataset) -> Picture:
    """Draw both boundaries and the phases they separate."""
    picture = Picture(figsize=(COLUMN, 3.1), layout="constrained")
    axis = picture.subplots()
    right, top = 0.09, 0.54
    rm, gap = (data.sel(kind=kind) for kind in KINDS)
    axis.set_facecolor(_MANIFOLD)
    axis.fill_between(*_region(rm), color=_BUMPY, linewidth=0, zorder=0.5)
    axis.fill_between(*_region(gap), color=_GAP, linewidth=0, zorder=0.6)
    axis.plot(rm["jd"], rm["lam"], color="C0", marker=".", label="RM boundary", clip_on=False)
    axis.plot(gap["jd"], gap["lam"], color="C1", marker=".", label="gap boundary", clip_on=False)
    _paper(axis)
    places = (
        (0.069, 0.36, "representation\nmanifold:\n" r"$S_I^*(d)$ increases"),
        (0.0515, 0.222, "not monotone"),
        (0.022, 0.15, "gap:\n" r"$S_I^*<0$ at some $d$"),
    )
    for x, y, text in places:
        angle = -48 if text == "not monotone" else 0
        axis.text(x, y, text, ha="center", va="center", fontsize=7.5, rotation=angle, zorder=4)
    axis.set_xlim(0, right)
    axis.set_ylim(0, top)
    axis.grid(False)
    label_axes(axis, r"self-coupling $J_D$", r"coupling between layers $\lambda$")
    axis.legend(loc="upper right")
    return picture


def _region(boundary: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Abscissae and upper limit of what lies below a boundary."""
    ascending = boundary.isel(ray=slice(None, None, -1))
    return ascending["jd"].values, ascending["lam"].values


def _paper(axis: Axes) -> None:
    """Mark the two critical couplings that the paper quotes."""
    axis.plot(
        [PAPER_JD, 0],
        [0, PAPER_LAM],
        marker="D",
        markersize=4.5,
        markerfacecolor="white",
        color="black",
        linestyle="none",
        clip_on=False,
        zorder=6,
        label="paper",
    )
    for text, place, shift, side in (
        (r"$J_{Dc}\simeq0.07$", (PAPER_JD, 0.0), (10, 5), "left"),
        (r"$\lambda_c\lesssim0.45$", (0.0, PAPER_LAM), (6, 6), "left"),
    ):
        axis.annotate(text, place, shift, textcoords="offset points", ha=side, fontsize=7)


FIGURE = Figure(
    name="phase_diagram",
    title="Phase diagram of two layers in the plane of J_D and λ",
    caption=(
        "Phases of the two-layer chain. Above the upper boundary the internal entropy S_I* "
        "increases with the distance d, the paper's criterion for a representation manifold; "
        "below it S_I* has a maximum at small d, and below the lower boundary it is negative at "
        "some distances. Brackets are smaller than the markers. Diamonds: the paper's values."
    ),
    parameters={
        # Rays further apart are not neighbours of each other: a few close ones instead.
        Scale.TINY: _parameters(25, 1e-2, rays=2),
        Scale.QUICK: _parameters(13, 1e-3),
        Scale.PAPER: _parameters(49, 1e-5),
    },
    compute=compute,
    plot=plot,
    core_hours={Scale.PAPER: 0.3},
    earlier=("1-b7b34ce99af2", "1-3bbee3f79f17"),
)
