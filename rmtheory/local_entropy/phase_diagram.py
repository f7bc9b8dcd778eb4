"""Phase diagram of two layers or more in the plane (J_D, lambda), resumable.

Both boundaries, of the representation manifold (rm) and of the gap, run from the J_D axis, where
the layers are independent cores, to the lambda axis. They are cut by rays

    (J_D, lambda) = R (J_c cos theta, lambda_c sin theta),

J_c, lambda_c being rough scales, and R is bracketed on each ray, starting from the neighbour. Every
finished point is a small JSON file of its own, so that a killed run goes on where it was.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from rmtheory import checks
from rmtheory.chain import Chain
from rmtheory.errors import InvalidInputError, NotConvergedError
from rmtheory.files import write_text
from rmtheory.local_entropy.bracket import Bracket, Kind, Seed, bracket
from rmtheory.local_entropy.critical import axis_guess, deep_radius, deep_rate, deep_seed
from rmtheory.processes import in_order
from rmtheory.provenance import canonical_json, parameters_hash
from rmtheory.wording import counted

#: Rough ends of the two boundaries on the axes for two layers: they only set the rays.
SCALE: dict[Kind, tuple[float, float]] = {"rm": (0.0731, 0.4524), "gap": (0.0601, 0.4161)}


def scale(kind: Kind, layers: int | float) -> tuple[float, float]:
    """Return the rough ends of a boundary on the axes of J_D and lambda."""
    jd, pair = SCALE[kind]
    return jd, pair if layers == 2 else axis_guess(layers, kind)


KINDS: tuple[Kind, ...] = ("rm", "gap")

#: Raised when the meaning of a stored point changes.
VERSION = 3

#: File among the finished points that says what they belong to.
_STAMP = "request.json"


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


def ray(kind: Kind, layers: int | float, theta: float, radius: float) -> Chain:
    """Return the chain at distance `radius` on a ray."""
    jc, lc = scale(kind, layers)
    # The ends lie on the axes exactly.
    cos = 0.0 if theta > math.pi / 2 - 1e-9 else math.cos(theta)
    sin = 0.0 if theta < 1e-9 else math.sin(theta)
    # Without a coupling all layers are cores; the transfer operator is not needed for these.
    count = 1 if layers > 2 and sin == 0 else layers
    return Chain(count, radius * jc * cos, radius * lc * sin)


def boundary_point(
    kind: Kind, theta: float, request: Request, neighbour: BoundaryPoint | None
) -> BoundaryPoint:
    """Bracket the boundary on one ray."""
    seed, guess = None, 1.0
    if request.layers > 2 and theta > 0:
        # What is known of the shape of the boundary is closer than a neighbour on another ray.
        guess = deep_radius(request.layers, theta)
        seed = deep_seed(ray(kind, request.layers, theta, guess), kind)
        if seed is not None and kind == "rm":
            seed = replace(seed, rate=deep_rate(request.layers, theta, guess))
    elif neighbour is not None:
        seed = Seed(neighbour.d, neighbour.y_star, neighbour.qhat, neighbour.rate)
        jc, lc = scale(kind, request.layers)
        guess = math.hypot(neighbour.jd / jc, neighbour.lam / lc)
    elif theta == 0:
        # Layers without a coupling are core modules, whose threshold takes no time.
        core = bracket(lambda r: Chain(1, r * SCALE[kind][0]), kind, 1.0, request.width, 1e-9)
        seed, guess = core.seed, core.value
    tol = min(1e-7, 1e-3 * request.width)
    family = partial(ray, kind, request.layers, theta)
    try:
        found = bracket(family, kind, guess, request.width, tol, seed)
    except NotConvergedError:
        if seed is None:
            raise
        # The neighbour was too far away to start from: find the minimum by a scan.
        found = bracket(family, kind, guess, request.width, tol)
    low, high = family(found.low), family(found.high)
    return BoundaryPoint(
        kind,
        theta,
        jd=0.5 * (low.jd + high.jd),
        lam=0.5 * (low.lam_left + high.lam_left),
        jd_error=0.5 * (high.jd - low.jd),
        lam_error=0.5 * (high.lam_left - low.lam_left),
        **_touching(found),
        qhat=tuple(map(float, found.at_high.point.moments.qhat)),
        rate=found.seed.rate,
        key=request.key,
    )


def _touching(found: Bracket) -> dict[str, float]:
    """Values and errors of d, y* and S_I* where the boundary is touched."""
    estimates = {"d": found.d, "y_star": found.y_star, "internal": found.internal}
    values = {name: float(estimate.value) for name, estimate in estimates.items()}
    return values | {f"{name}_error": float(e.error) for name, e in estimates.items()}


def phase_diagram(
    request: Request,
    parts: Path,
    *,
    jobs: int = 1,
    on_point: Callable[[int], None] | None = None,
) -> xr.Dataset:
    """Compute both boundaries, keeping every finished point in the folder `parts`.

    Parameters
    ----------
    request : Request
        Number of points and width of the brackets.
    parts : Path
        Folder of the finished points; made if needed, and left for the caller to remove.
    jobs : int
        Processes.
    on_point : callable, optional
        Called with the number of points finished so far.

    Raises
    ------
    InvalidInputError
        If `parts` holds points of another request, which would be lost.
    """
    if jobs < 1:
        raise InvalidInputError("jobs", jobs, "an integer >= 1")
    _claim(request, parts)
    segments = [
        (kind, chunk.tolist())
        for kind in KINDS
        for chunk in np.array_split(np.array(request.angles()), max(1, jobs // 2))
    ]
    report = on_point or (lambda _count: None)
    if jobs == 1:
        for kind, angles in segments:
            _segment(kind, angles, request, parts, report)
    else:
        work = [(kind, angles, request, parts, _silent) for kind, angles in segments]
        in_order(_segment, work, jobs=jobs, on_wait=lambda: report(finished(request, parts)))
    return collect(request, parts)


def _claim(request: Request, parts: Path) -> None:
    """Make the folder of the finished points, and write into it what they belong to."""
    found = others(request, parts)
    if found is not None:
        raise InvalidInputError("parts", str(parts), f"a folder without {found}")
    try:
        parts.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        reason = f"in a folder that can be written ({problem.strerror})"
        raise InvalidInputError("out", str(parts), reason) from None
    stamp = canonical_json({**request.parameters(), "version": VERSION})
    path = parts / _STAMP
    if not path.exists() or path.read_text("utf-8", errors="replace") != stamp:
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
        stamp = json.loads((parts / _STAMP).read_text("utf-8"))
        whose = f"layers = {stamp['layers']}, points = {stamp['points']}, width = {stamp['width']}"
        if stamp["version"] != VERSION:
            whose += " by another version of rmtheory"
    except (OSError, ValueError, TypeError, KeyError):
        whose = "another request"
    return f"{counted(count, 'finished point')} of {whose}"


def _segment(
    kind: Kind,
    angles: list[float],
    request: Request,
    parts: Path,
    report: Callable[[int], None],
) -> None:
    """Walk along a boundary, skipping the points that are already there."""
    neighbour: BoundaryPoint | None = None
    for theta in angles:
        point = load_point(kind, theta, request, parts)
        if point is None:
            point = boundary_point(kind, theta, request, neighbour)
            write_text(_path(kind, theta, parts), json.dumps(asdict(point), indent=1))
        neighbour = point
        report(finished(request, parts))


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
        stored = json.loads(path.read_text("utf-8"))
        return BoundaryPoint(**{**stored, "qhat": tuple(stored["qhat"])})
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError, KeyError):
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
        variables, coords={"kind": list(KINDS), "theta": ("ray", np.array(request.angles()))}
    )


def _path(kind: Kind, theta: float, parts: Path) -> Path:
    return parts / f"{kind}-{theta:.9f}.json"
