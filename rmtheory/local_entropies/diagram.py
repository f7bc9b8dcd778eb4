"""Phase diagram of two layers or more in the plane (J_D, lambda), resumable.

Both boundaries, of the representation manifold (rm) and of the gap, run from the J_D axis, where
the layers are independent cores, to the lambda axis. They are cut by rays

    (J_D, lambda) = R (J_c cos theta, lambda_c sin theta),

J_c, lambda_c being rough scales, and R is bracketed on each ray, starting from the neighbour. Every
finished point is a small JSON file of its own, so that a killed run resumes.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError, UnreadableDataError, counted
from rmtheory.local_entropies.boundaries import KINDS, Kind, Seed, rough_boundary
from rmtheory.local_entropies.thresholds import Bracket, bracket
from rmtheory.runtime import netcdf
from rmtheory.runtime.files import write_text
from rmtheory.runtime.processes import in_order
from rmtheory.runtime.progress import announce
from rmtheory.runtime.provenance import canonical_json, parameters_hash
from rmtheory.runtime.run_store import Lock, RunStore, parts_of
from rmtheory.runtime.untrusted import MALFORMED, read_json, read_text

#: Raised when the meaning of a stored point changes.
VERSION = 3

#: File among the finished points that says what they belong to, and patterns of all files there.
_STAMP = "request.json"
_FILES = (_STAMP, *(f"{kind}-*.json" for kind in KINDS))


@dataclass(frozen=True)
class BoundaryPoint:
    """One point of a boundary, with the half-width of its bracket and the touching point."""

    kind: Kind
    theta: float
    jd: float
    lam: float
    jd_error: float
    lam_error: float
    d: float
    d_error: float
    y_star: float
    y_star_error: float
    internal: float
    internal_error: float
    qhat: tuple[float, ...]
    #: Rate at which the minimum over d grows along the ray: where the next search starts.
    rate: float
    key: str


@dataclass(frozen=True)
class Request:
    """What is asked for: points on each boundary, relative bracket width, number of layers."""

    points: int
    width: float
    layers: int | float = 2

    def __post_init__(self) -> None:
        if self.points < 3:
            raise InvalidInputError("points", self.points, "an integer >= 3")
        if not 1e-6 <= self.width <= 1e-2:
            raise InvalidInputError("width", self.width, "between 1e-6 and 1e-2")
        if checks.layers(self.layers) < 2:
            raise InvalidInputError("layers", self.layers, "at least 2 for the phase diagram")

    @property
    def key(self) -> str:
        """Name of this computation; points of another one are not taken for its own."""
        return parameters_hash(self.parameters(), VERSION)

    def parameters(self) -> dict[str, Any]:
        """Return what was asked for as JSON values."""
        return {**asdict(self), "layers": str(self.layers)}

    def angles(self) -> list[float]:
        """Equidistant rays from the J_D axis to the lambda axis."""
        return [float(x) for x in np.linspace(0.0, math.pi / 2, self.points)]


#: What halving the width of the bracket adds.
_HALVING = 0.12


def expected_seconds(request: Request, points: int | None = None) -> float:
    """Return roughly how many CPU-seconds a diagram takes, or `points` points of it.

    Points on the axis of J_D are those of one layer, and take no time. Measured on one core of
    2 to 3 GHz; a factor of two either way is to be expected.

    Examples
    --------
    >>> round(expected_seconds(Request(points=25, width=1e-4, layers=2)) / 60)
    9
    """
    total = len(KINDS) * (request.points - 1)
    each = rough_boundary(request.layers, "rm").seconds
    finer = 1 + _HALVING * math.log2(1e-2 / request.width)
    return each * finer * (total if points is None else min(points, total))


def ray(kind: Kind, layers: int | float, theta: float, radius: float) -> Chain:
    """Return the chain at distance `radius` on a ray."""
    rough = rough_boundary(layers, kind)
    jc, lc = rough.scale
    # The ends lie on the axes exactly.
    cos = 0.0 if theta > math.pi / 2 - 1e-9 else math.cos(theta)
    if theta < 1e-9:
        return rough.uncoupled(radius * jc * cos)
    return Chain(layers, radius * jc * cos, radius * lc * math.sin(theta))


def boundary_point(
    kind: Kind, theta: float, request: Request, neighbour: BoundaryPoint | None
) -> BoundaryPoint:
    """Bracket the boundary on one ray; the verdicts on the whole curves are left unchecked."""
    rough = rough_boundary(request.layers, kind)
    family = partial(ray, kind, request.layers, theta)
    seed, guess = None, 1.0
    known = rough.on_ray(theta, family)
    if known is not None:
        guess, seed = known
    elif neighbour is not None:
        seed = Seed(neighbour.d, neighbour.y_star, neighbour.qhat, neighbour.rate)
        jc, lc = rough.scale
        guess = math.hypot(neighbour.jd / jc, neighbour.lam / lc)
    elif theta == 0:
        # Layers without a coupling are core modules, whose threshold takes no time.
        jc = rough.core
        core = bracket(lambda r: Chain(1, r * jc), rough.boundary, 1.0, request.width, 1e-9)
        seed, guess = core.seed, core.value
    tol = min(1e-7, 1e-3 * request.width)
    try:
        interval = bracket(family, rough.boundary, guess, request.width, tol, seed)
    except NotConvergedError:
        if seed is None:
            raise
        # The neighbour was too far away to start from: find the minimum by a scan.
        interval = bracket(family, rough.boundary, guess, request.width, tol)
    low, high = family(interval.low), family(interval.high)
    return BoundaryPoint(
        kind,
        theta,
        jd=0.5 * (low.jd + high.jd),
        lam=0.5 * (low.lam_left + high.lam_left),
        jd_error=0.5 * (high.jd - low.jd),
        lam_error=0.5 * (high.lam_left - low.lam_left),
        **_touching(interval),
        qhat=tuple(map(float, interval.at_high.solved.moments.qhat)),
        rate=interval.seed.rate,
        key=request.key,
    )


def _touching(interval: Bracket) -> dict[str, float]:
    """Values and errors of d, y* and S_I* where the boundary is touched."""
    estimates = {"d": interval.d, "y_star": interval.y_star, "internal": interval.internal}
    values = {name: float(estimate.value) for name, estimate in estimates.items()}
    return values | {f"{name}_error": float(e.error) for name, e in estimates.items()}


def phase_diagram(
    layers: int | float | str = 2,
    points: int = 25,
    width: float = 1e-4,
    *,
    out: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> xr.Dataset:
    r"""Compute the boundaries of the representation manifold and of the gap in J_D and lambda.

    Rays leave the origin at equidistant angles; on each ray a boundary is bracketed.

    Parameters
    ----------
    layers : int or math.inf
        Number of layers, at least 2.
    points : int
        Points on each boundary, at least 3.
    width : float
        Width of the brackets relative to the critical couplings, from 1e-6 to 1e-2.
    out : path, optional
        netCDF file that keeps the diagram; if it holds this very diagram, that is returned.
        Finished points are kept beside it until all are done, so that a run that was killed goes
        on. Without it nothing is kept but what is returned.
    jobs : int
        Processes.
    progress : callable, optional
        Called with the number of points finished so far.

    Returns
    -------
    xarray.Dataset
        ``jd`` and ``lam`` by boundary (``kind``: rm and gap) and ray, each with NAME_error, and
        ``touching_d``, ``y_star`` and ``internal`` at the distance where the boundary is reached.

    Examples
    --------
    >>> import rmtheory as rt
    >>> diagram = rt.phase_diagram(layers=2, points=3, width=1e-2)  # doctest: +SKIP
    >>> ends = diagram.sel(kind="rm")  # doctest: +SKIP
    >>> print(f"{float(ends.jd[0]):.2f} {float(ends.lam[-1]):.2f}")  # doctest: +SKIP
    0.07 0.45

    Critical J_D and critical lambda, after most of a minute.
    """
    request = Request(
        checks.integer("points", points, 3),
        float(checks.exact_real("width", width)),
        checks.layers(layers),
    )
    if out is not None:
        return stored_phase_diagram(request, Path(out), jobs=jobs, progress=progress).data
    with tempfile.TemporaryDirectory() as place:
        return compute_phase_diagram(request, Path(place, "points"), jobs=jobs, progress=progress)


def compute_phase_diagram(
    request: Request,
    parts: Path,
    *,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> xr.Dataset:
    """Compute both boundaries, keeping every finished point in the folder `parts`.

    Parameters
    ----------
    request : Request
        Number of points and width of the brackets.
    parts : Path
        Folder of the finished points; made if needed, and left for the caller to remove. Several
        runs may be at work in it: at worst they compute a point twice, with the same numbers.
    jobs : int
        Processes.
    progress : callable, optional
        Called with the number of points finished so far.

    Raises
    ------
    InvalidInputError
        If `parts` holds points of another request, which would be lost.
    """
    # Before a folder is made.
    checks.integer("jobs", jobs, 1)
    store = RunStore(parts, _STAMP, _FILES)
    with store.at_work(lambda lock: _claim(request, store), shared=True):
        return _boundaries(request, parts, jobs, progress or _silent)


def stored_phase_diagram(
    request: Request,
    target: Path,
    *,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
    note: Callable[[str], None] | None = None,
) -> netcdf.Stored:
    """Return the diagram in the netCDF file `target`, computed and stored there if need be.

    Finished points are kept beside it, in the folder ``TARGET.parts``, until all are
    done. One run at a time is at work on a file.

    Parameters
    ----------
    request : Request
        Number of points and width of the brackets.
    target : Path
        The file; another content of it is replaced once the diagram is done.
    jobs : int
        Processes.
    progress : callable, optional
        Called with the number of points finished so far, first with those that are there already.
    note : callable, optional
        Called with a sentence about what is there already.

    Raises
    ------
    InvalidInputError
        If another run is at work on `target`, or the folder keeps points of another request.
    """
    # Before a folder is made.
    checks.integer("jobs", jobs, 1)
    store = RunStore(parts_of(target), _STAMP, _FILES, target)

    def compute(save: netcdf.Save) -> xr.Dataset:
        done, total = finished(request, store.path), len(KINDS) * request.points
        seconds = expected_seconds(request, total - done) / jobs
        announce(done, total, seconds, kept_in=store.path, note=note, progress=progress)
        data = _boundaries(request, store.path, jobs, progress or _silent)
        return save(data, request.parameters())

    def claim(_lock: Lock) -> None:
        _claim(request, store)

    return netcdf.computed_once(
        store, request.key, claim, compute, what="diagram", version=VERSION, note=note
    )


def _boundaries(
    request: Request, parts: Path, jobs: int, progress: Callable[[int], None]
) -> xr.Dataset:
    """Compute the points that are missing in `parts`, and gather all."""
    segments = [
        (kind, chunk.tolist())
        for kind in KINDS
        for chunk in np.array_split(np.array(request.angles()), max(1, jobs // 2))
    ]
    if jobs == 1:
        for kind, angles in segments:
            _segment(kind, angles, request, parts, progress)
    else:
        work = [(kind, angles, request, parts, _silent) for kind, angles in segments]
        in_order(_segment, work, jobs=jobs, on_wait=lambda: progress(finished(request, parts)))
    return collect(request, parts)


def _claim(request: Request, store: RunStore) -> None:
    """Make the folder that of `request`; points of another one are refused, and not lost."""
    strangers = others(request, store.path)
    if strangers is not None and store.target is not None:
        raise InvalidInputError(
            "out",
            str(store.target),
            f"another file, because {store.path} keeps {strangers} (run that again to finish it, "
            "or remove the folder)",
        )
    if strangers is not None:
        raise InvalidInputError("parts", str(store.path), f"a folder without {strangers}")
    stamp = canonical_json({**request.parameters(), "version": VERSION})
    path = store.path / _STAMP
    with suppress(FileNotFoundError, UnreadableDataError):
        if read_text(path) == stamp:
            return
    write_text(path, stamp)


def others(request: Request, parts: Path) -> str | None:
    """Say which finished points of another request the folder `parts` holds, None if none."""
    count = 0
    for kind in KINDS:
        for path in parts.glob(f"{kind}-*.json"):
            stored = _read(path)
            count += stored is not None and stored.key != request.key
    if not count:
        return None
    try:
        stamp = read_json(parts / _STAMP)
        whose = f"layers = {stamp['layers']}, points = {stamp['points']}, width = {stamp['width']}"
        if stamp["version"] != VERSION:
            whose += " by another version of rmtheory"
    except (OSError, UnreadableDataError, TypeError, KeyError):
        whose = "another request"
    return f"{counted(count, 'finished point')} of {whose}"


def _segment(
    kind: Kind,
    angles: list[float],
    request: Request,
    parts: Path,
    progress: Callable[[int], None],
) -> None:
    """Walk along a boundary, skipping the points that are already there."""
    neighbour: BoundaryPoint | None = None
    for theta in angles:
        point = load_point(kind, theta, request, parts)
        if point is None:
            point = boundary_point(kind, theta, request, neighbour)
            write_text(_path(kind, theta, parts), json.dumps(asdict(point), indent=1))
        neighbour = point
        progress(finished(request, parts))


def _silent(_count: int) -> None:
    """Workers do not report; the parent counts files."""


def load_point(kind: Kind, theta: float, request: Request, parts: Path) -> BoundaryPoint | None:
    """Return a finished point, or None if it is missing, damaged or of another request."""
    point = _read(_path(kind, theta, parts))
    if point is None or point.key != request.key or abs(point.theta - theta) >= 1e-12:
        return None
    return point


def _read(path: Path) -> BoundaryPoint | None:
    """Return the point in a file, None if it is missing or damaged."""
    try:
        stored = read_json(path, constants=True)
        point = BoundaryPoint(**{**stored, "qhat": tuple(stored["qhat"])})
        texts, numbers = (point.kind, point.key), set(asdict(point)) - {"kind", "key", "qhat"}
        values = (*(getattr(point, name) for name in numbers), *point.qhat)
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("no text")
        if not all(type(value) in (int, float) for value in values):
            raise TypeError("no number")
        return point
    except (FileNotFoundError, UnreadableDataError, *MALFORMED):
        return None


def finished(request: Request, parts: Path) -> int:
    """Count the points that are done."""
    return sum(
        load_point(kind, theta, request, parts) is not None
        for kind in KINDS
        for theta in request.angles()
    )


def collect(request: Request, parts: Path) -> xr.Dataset:
    """Gather the finished points of both boundaries into a data set."""
    names = [
        f"{name}{suffix}"
        for name in ("jd", "lam", "d", "y_star", "internal")
        for suffix in ("", "_error")
    ]
    data = {name: np.full((len(KINDS), request.points), np.nan) for name in names}
    for i, kind in enumerate(KINDS):
        for j, theta in enumerate(request.angles()):
            point = load_point(kind, theta, request, parts)
            if point is not None:
                for name in names:
                    data[name][i, j] = getattr(point, name)
    # The name d is what other data sets call their coordinate.
    renamed = {"d": "touching_d", "d_error": "touching_d_error"}
    variables = {renamed.get(n, n): (("kind", "ray"), v) for n, v in data.items()}
    return xr.Dataset(
        variables,
        coords={"kind": list(KINDS), "theta": ("ray", np.array(request.angles()))},
        attrs={"verdicts": "unchecked: signs at the touching points, not the whole curves"},
    )


def _path(kind: Kind, theta: float, parts: Path) -> Path:
    return parts / f"{kind}-{theta:.9f}.json"
