"""A curve y*(d) in its file, with the finished points kept beside it until all are there.

Every solved point is a small JSON file of its own in the folder ``OUT.parts``, so that a run that
was killed goes on where it was, as sweeps and phase diagrams do.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, UnreadableDataError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.local_entropies.curves import CurveStoppedError, curve
from rmtheory.local_entropies.points import YStar, distance
from rmtheory.runtime import netcdf, provenance
from rmtheory.runtime.provenance import parameters_hash
from rmtheory.runtime.run_store import Lock, RunStore
from rmtheory.runtime.untrusted import MALFORMED

#: Raised when the meaning of a stored point changes.
VERSION = 1

#: File among the finished points that says what they belong to.
STAMP = "curve.json"


@dataclass(frozen=True)
class CurveRequest:
    """Geometrically spaced distances on the curve of a chain."""

    chain: Chain
    d_min: float
    d_max: float
    points: int

    def __post_init__(self) -> None:
        for name in ("d_min", "d_max"):
            distance(getattr(self, name), name)
        if self.points < 2:
            raise InvalidInputError("points", self.points, "an integer >= 2")
        if self.d_min >= self.d_max:
            raise InvalidInputError("d_min", self.d_min, f"below d_max = {self.d_max:g}")

    @property
    def distances(self) -> list[float]:
        """Distances, ascending."""
        return [float(d) for d in np.geomspace(self.d_min, self.d_max, self.points)]

    def parameters(self, complete: bool = True) -> dict[str, Any]:
        """Return what was asked for as JSON values, and whether all of it is there."""
        numbers = {"d_min": self.d_min, "d_max": self.d_max, "points": self.points}
        return {**self.chain.parameters(), **numbers, "complete": complete}

    @property
    def key(self) -> str:
        """Name of this computation; points of another one are not taken for its own."""
        return parameters_hash(self.parameters(), VERSION)


def parts_of(target: Path) -> Path:
    """Return the folder that keeps the finished points of the file `target`."""
    return target.with_name(target.name + ".parts")


def curve_store(target: Path) -> RunStore:
    """Return the folder of the finished points."""
    return RunStore(parts_of(target), STAMP, (STAMP, "point-*.json"), target)


@dataclass(frozen=True)
class StoredCurve:
    """A curve in its file, and whether it had to be computed."""

    data: xr.Dataset
    computed: bool


def stored_curve(
    request: CurveRequest,
    target: Path,
    *,
    on_begin: Callable[[int], None] | None = None,
    on_point: Callable[[int], None] | None = None,
    note: Callable[[str], None] | None = None,
) -> StoredCurve:
    """Return the curve in the netCDF file `target`, computed and stored there if need be.

    Parameters
    ----------
    request : CurveRequest
        The chain and its distances.
    target : Path
        The file; another content of it is replaced once the curve is done.
    on_begin : callable, optional
        Called with the number of points that are there, if any has to be computed.
    on_point : callable, optional
        Called with the number of points solved so far.
    note : callable, optional
        Called with a sentence about what is there already.

    Raises
    ------
    InvalidInputError
        If another run is at work on `target`, or the folder keeps points of another curve.
    CurveStoppedError
        If the continuation is lost; the points before are then in `target`, as ``solved``.
    """
    tell = note or (lambda _sentence: None)
    data = _load(request, target)
    if data is not None:
        return StoredCurve(data, computed=False)
    store = curve_store(target)

    def claim(_lock: Lock) -> None:
        _claim(request, store)

    with store.at_work(claim) as lock:
        done = finished_points(request, target)
        if target.exists():
            tell(f"{target} holds something else, which is replaced once this curve is done")
        if done:
            tell(f"{len(done)} of {request.points} points are there already, in {store.path}")
        if on_begin is not None:
            on_begin(len(done))
        begun = time.perf_counter()

        def keep(point: YStar) -> None:
            store.save(_name(point.d), {**_to_json(point), "key": request.key})

        def write(solved: xr.Dataset, complete: bool) -> xr.Dataset:
            attributes = provenance.attributes(
                request.parameters(complete),
                version=VERSION,
                wall_time=time.perf_counter() - begun,
            )
            solved = solved.assign_attrs(attributes)
            netcdf.save(solved, target)
            store.remove(lock)
            return solved

        try:
            data = curve(
                request.chain, request.distances, on_point=on_point, known=done, on_solved=keep
            )
        except CurveStoppedError as stopped:
            write(stopped.solved, complete=False)
            raise
        return StoredCurve(write(data, complete=True), computed=True)


def finished_points(request: CurveRequest, target: Path) -> list[YStar]:
    """Return the points that are kept beside `target`."""
    store, points = curve_store(target), []
    for d in request.distances:
        with suppress(FileNotFoundError, UnreadableDataError, *MALFORMED):
            stored = store.load(_name(d))
            if stored["key"] == request.key:
                points.append(_from_json(request.chain, stored))
    return points


def _load(request: CurveRequest, target: Path) -> xr.Dataset | None:
    """Return the whole curve of `request` in the file `target`, None if it is not there."""
    try:
        data = netcdf.load(target)
    except (FileNotFoundError, UnreadableDataError):
        return None
    return data if data.attrs.get("parameters_hash") == request.key else None


def _claim(request: CurveRequest, store: RunStore) -> None:
    """Make the folder that of `request`; points of another one are refused, and not lost."""
    wanted = {**request.parameters(), "version": VERSION}
    try:
        held = store.load(STAMP)
    except (FileNotFoundError, UnreadableDataError):
        store.save(STAMP, wanted)
        return
    if held != wanted:
        raise InvalidInputError(
            "out",
            str(store.target),
            f"another file, because {store.path} keeps points of another curve (run that again to "
            "finish it, or remove the folder)",
        )


def _name(d: float) -> str:
    return f"point-{d:.12e}.json"


def _to_json(point: YStar) -> dict[str, Any]:
    """Return a point as JSON values; numbers are exact, being written with all their digits."""

    def numbers(estimate: Estimate | None) -> list[Any] | None:
        if estimate is None:
            return None
        return [float(estimate.value), float(estimate.error), str(estimate.tier), estimate.method]

    fields = {name: getattr(point, name) for name in _ESTIMATES}
    return {
        "d": point.d,
        **{name: numbers(value) for name, value in fields.items()},
        "qhat": [numbers(q) for q in point.qhat],
        "residual": point.residual,
        "y_star_is_bound": point.y_star_is_bound,
    }


_ESTIMATES = ("y_star", "internal", "slope", "q0_stability")


def _from_json(chain: Chain, stored: dict[str, Any]) -> YStar:
    def estimate(numbers: list[Any] | None) -> Estimate | None:
        if numbers is None:
            return None
        value, error, tier, method = numbers
        return Estimate(float(value), float(error), Tier(tier), str(method))

    y_star, internal, slope, q0 = (estimate(stored[name]) for name in _ESTIMATES)
    qhat = [estimate(numbers) for numbers in stored["qhat"]]
    known = [q for q in qhat if q is not None]
    if y_star is None or internal is None or slope is None or len(known) < len(qhat):
        raise ValueError("a number is missing")
    return YStar(
        chain,
        float(stored["d"]),
        y_star,
        internal,
        slope,
        tuple(known),
        float(stored["residual"]),
        q0,
        y_star_is_bound=bool(stored["y_star_is_bound"]),
    )
