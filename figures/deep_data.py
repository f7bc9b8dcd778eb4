"""Thresholds and curves of chains of three layers or more, computed in parallel and kept."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from figures import workers
from figures.figure import Parameters, Progress
from figures.unfinished import parts_folder
from rmtheory import Chain
from rmtheory.files import write_text
from rmtheory.local_entropy.continuation import CurveTracker
from rmtheory.local_entropy.critical import critical_coupling
from rmtheory.local_entropy.model import LocalModel
from rmtheory.local_entropy.phase_diagram import BoundaryPoint, Request, boundary_point
from rmtheory.local_entropy.results import ystar
from rmtheory.processes import in_order
from rmtheory.provenance import parameters_hash

#: One piece of work: what it is, the number of layers as text, and its numbers.
Work = tuple[str, str, dict[str, Any]]


def compute(parameters: Parameters, progress: Progress) -> xr.Dataset:
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
    progress(0, len(work))
    with parts_folder() as folder:
        found = in_order(
            part,
            [(*one, folder) for one in work],
            jobs=workers.jobs(),
            on_done=lambda count: progress(count, len(work)),
        )
    results = {(one[0], one[1]): rows for one, rows in zip(work, found, strict=True)}
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
    return data.set_coords("curve_d")  # chosen, not found


def part(what: str, layers: str, numbers: dict[str, Any], folder: Path) -> list[dict[str, float]]:
    """Return one piece of work, from `folder` if it is there, and leave it there."""
    path = folder / f"{what}-{layers}-{parameters_hash(numbers)[:12]}.json"
    try:
        return list(json.loads(path.read_text("utf-8")))
    except (FileNotFoundError, ValueError):
        pass
    rows = _KINDS[what](float(layers), **numbers)
    write_text(path, json.dumps(rows))
    return rows


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
    """Return lambda_c at J_D = 0, as the last point of a boundary would say it."""
    found = critical_coupling(layers, "lam", jd=0.0, width=0.4 * width)
    middle, half = found.bracket.value, 0.5 * (found.high - found.low)
    row = {"jd": 0.0, "jd_error": 0.0, "lam": middle, "lam_error": half}
    for name in ("d", "y_star", "internal"):
        estimate = getattr(found, name)
        row |= {name: float(estimate.value), f"{name}_error": float(estimate.error)}
    return [row]


def curve(
    layers: float, jd: float, lam: float, d: Sequence[float], points: int
) -> list[dict[str, float]]:
    """Follow S_I*(d), from large distances to small ones."""
    chain = Chain(layers, jd, lam)
    tracker = CurveTracker(LocalModel(chain))
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
