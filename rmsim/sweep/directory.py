"""A results directory: one small file for each finished point.

    sweep.json          which sweep it is
    asked/HASH.json     the points of a run, one file for each different request
    points/KEY.json     a finished point: parameters, seed, values, provenance
    failed/KEY.txt      the traceback of a point that failed, until it succeeds

All files are written beside their place and renamed, so a killed run leaves whole files only.
Several runs may be at work in one directory: at worst they compute a point twice, with the same
numbers. The points are JSON with a checksum rather than netCDF: a grid has thousands of points of a
few numbers, an HDF5 file takes a hundred times longer to open, and a JSON file can be read by eye.
:func:`collect` gathers all finished points into one data set, with their provenance.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsim.sweep.definition import (
    RESERVED,
    Array,
    Failed,
    Grid,
    Measured,
    Scalar,
    Sweep,
    Task,
    decode,
    point_key,
)
from rmtheory.base.errors import InvalidInputError, RMError, UnreadableDataError
from rmtheory.runtime.files import write_text
from rmtheory.runtime.provenance import canonical_json
from rmtheory.runtime.run_store import Lock, RunStore, digest
from rmtheory.runtime.untrusted import MALFORMED

if TYPE_CHECKING:
    import xarray as xr

#: Patterns of all files in a results directory: those above, and what commands make of the points.
_FILES = ("sweep.json", "asked/*.json", "points/*.json", "failed/*.txt", "*.nc", "*.png")


@dataclass(frozen=True)
class Stored:
    """A finished point as read from its file."""

    point: dict[str, Any]
    seed: int
    values: dict[str, Any]
    provenance: dict[str, Any]

    @classmethod
    def of(cls, file: Path, document: Mapping[str, Any]) -> Stored:
        """Return the point in the document of a `file`, whose checksum anybody can make.

        Raises
        ------
        UnreadableDataError
            If no computation can have returned it, naming the file.
        """
        try:
            stored = cls(
                document["parameters"], document["seed"], document["values"], document["provenance"]
            )
            _demand_point(stored)
        except MALFORMED as problem:
            raise UnreadableDataError(f"{file} was altered: {problem}") from None
        return stored


@dataclass(frozen=True)
class Directory:
    """Reads and writes the files of a results directory."""

    path: Path

    @property
    def store(self) -> RunStore:
        """The directory as that of one computation."""
        return RunStore(self.path, "sweep.json", _FILES)

    @property
    def manifest(self) -> Path:
        """File that says which sweep this is."""
        return self.path / "sweep.json"

    def point_file(self, key: str) -> Path:
        """File of the point `key`."""
        return self.path / "points" / f"{key}.json"

    def failure_file(self, key: str) -> Path:
        """File of the traceback of the point `key`."""
        return self.path / "failed" / f"{key}.txt"

    def claimed(self, sweep: Sweep) -> AbstractContextManager[Lock]:
        """Claim the directory for `sweep`, or confirm that it is its own; record the request.

        Other runs of the same sweep may be at work in it.

        Raises
        ------
        InvalidInputError
            If it holds another sweep, or cannot be written.
        """
        return self.store.at_work(lambda lock: self._claim(sweep), shared=True)

    def at_work(self) -> AbstractContextManager[Lock]:
        """Lock the directory while other files are written to it."""
        return self.store.at_work(shared=True)

    def identity(self) -> dict[str, Any]:
        """Return which sweep this is.

        Raises
        ------
        InvalidInputError
            If it is not a results directory.
        UnreadableDataError
            If the manifest is damaged.
        """
        if not self.manifest.exists():
            raise InvalidInputError("out", str(self.path), "a results directory (with sweep.json)")
        return _identity(self.manifest, self.store.load("sweep.json"))

    def asked(self) -> tuple[Grid, list[str]]:
        """Return all points that were ever requested here, and the names of damaged requests.

        The finished points stand in for a request that cannot be read; points of it that were
        never finished are not known any more.
        """
        identity = self.identity()
        axes: tuple[str, ...] = tuple(identity["axes"])
        rows: list[tuple[Any, ...]] = []
        damaged = []
        for file in sorted((self.path / "asked").glob("[!.]*.json")):
            try:
                request = self.store.load(f"asked/{file.name}")["rows"]
                rows += Grid(axes, tuple(tuple(row) for row in request)).rows
            except (UnreadableDataError, *MALFORMED):
                damaged.append(f"asked/{file.name}")
        if damaged:
            for file in sorted((self.path / "points").glob("[!.]*.json")):
                with suppress(UnreadableDataError, *MALFORMED):
                    point = self.store.load(f"points/{file.name}")["parameters"]
                    rows += Grid(axes, (tuple(point[name] for name in axes),)).rows
        return Grid(axes, tuple(rows), identity["fixed"]), damaged

    def load(self, key: str, identity: Mapping[str, Any]) -> Stored:
        """Read the finished point `key` of the sweep `identity`.

        Raises
        ------
        FileNotFoundError
            If it is not there.
        UnreadableDataError
            If the file is damaged or of another sweep, naming it.
        """
        file, document = self.point_file(key), self.store.load(f"points/{key}.json")
        if document.get("sweep") != identity or document.get("key") != key:
            raise UnreadableDataError(f"{file} is not the point that its name says")
        return Stored.of(file, document)

    def save(self, task: Task, identity: Mapping[str, Any], answer: Measured) -> None:
        """Write a finished point, and remove the record of a failure."""
        document = {
            "sweep": identity,
            "key": task.key,
            "parameters": task.point,
            "seed": task.seed,
            "values": answer.values,
            "provenance": answer.provenance,
        }
        self.store.save(f"points/{task.key}.json", document)
        self.failure_file(task.key).unlink(missing_ok=True)

    def save_failure(self, task: Task, failure: Failed) -> None:
        """Keep the traceback of a point that failed."""
        text = f"{canonical_json(task.point)}\n{failure.kind}: {failure.message}\n"
        write_text(self.failure_file(task.key), text + failure.details)

    def _claim(self, sweep: Sweep) -> None:
        identity = sweep.identity()
        held = self._held()
        if held is not None:
            name, version, seed = (held.get(key) for key in ("name", "version", "seed"))
            label = f"the sweep {name!r} (version {version}, seed {seed})"
            self.store.demand_same(held, identity, label)
        for folder in ("points", "asked", "failed"):
            (self.path / folder).mkdir(exist_ok=True)
        self._write_unless_there("sweep.json", identity)
        request = {"axes": list(sweep.grid.axes), "rows": [list(row) for row in sweep.grid.rows]}
        self._write_unless_there(f"asked/{digest(request)}.json", request)

    def _write_unless_there(self, name: str, content: Mapping[str, Any]) -> None:
        with suppress(FileNotFoundError, UnreadableDataError):
            if self.store.load(name) == content:
                return
        self.store.save(name, content)

    def _held(self) -> dict[str, Any] | None:
        """Return which sweep is here, None if nothing is; every point knows, if need be."""
        with suppress(FileNotFoundError, UnreadableDataError, InvalidInputError):
            return self.identity()
        for file in (self.path / "points").glob("[!.]*.json"):
            with suppress(FileNotFoundError, UnreadableDataError, *MALFORMED):
                return _identity(file, self.store.load(f"points/{file.name}")["sweep"])
        return None


def _identity(file: Path, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return which sweep a `file` says it is of; raise UnreadableDataError if it does not say."""
    kinds = {"name": str, "version": int, "seed": int, "axes": list, "fixed": dict, "paired": list}
    for name, kind in kinds.items():
        if not isinstance(document.get(name), kind):
            raise UnreadableDataError(f"{file} was altered: it does not say the {name} of a sweep")
    try:
        Grid(tuple(document["axes"]), (), document["fixed"])
    except MALFORMED as problem:
        raise UnreadableDataError(f"{file} was altered: {problem}") from None
    return dict(document)


def _demand_point(stored: Stored) -> None:
    """Raise what is in MALFORMED unless all that collections use is there and of its type."""
    decode(stored.values)
    if not isinstance(stored.point, dict):
        raise TypeError("its parameters are not names and values")
    taken = sorted({*stored.values} & {*stored.point, *RESERVED})
    if taken:
        raise ValueError(f"it has a value {taken[0]}, which is taken")
    if type(stored.seed) is not int or not 0 <= stored.seed < 1 << 63:
        raise ValueError(f"its seed is {str(stored.seed)[:40]}")
    provenance = stored.provenance
    for name in ("wall_time", "cpu_time"):
        if type(provenance[name]) not in (int, float) or not math.isfinite(provenance[name]):
            raise ValueError(f"its {name} is {str(provenance[name])[:40]}")
    texts = [
        provenance[name] for name in ("python", "git_commit", "git_dirty", "host", "device", "date")
    ]
    if not all(isinstance(text, str) for text in (*texts, *provenance["versions"].values())):
        raise TypeError("its provenance is not text")


Position = tuple[int, ...]


def collect(
    directory: str | os.PathLike[str],
    sweep: Sweep | None = None,
    *,
    dims: Mapping[str, Sequence[str]] | None = None,
) -> xr.Dataset:
    """Gather the finished points; the dimensions are the axes of the grid.

    Parameters
    ----------
    directory : path
        Results directory.
    sweep : Sweep, optional
        Gather its points only; otherwise all that were ever requested there.
    dims : mapping, optional
        Names of the dimensions of values that are arrays; NAME_0, NAME_1, ... if not given.

    Returns
    -------
    xarray.Dataset
        One variable for each value; ``wall_time`` and ``cpu_time`` in seconds and ``point_seed``;
        the masks ``asked`` and ``finished``. The attribute ``complete`` is ``yes`` if all points
        requested are finished. Otherwise, and where the grid is not a full product, numbers are NaN
        and texts empty outside ``finished`` (integers and truth values become floats). Arrays of
        different length are padded in the same way, their shapes are in NAME_shape. Points with a
        damaged file count as missing; the attribute ``damaged`` names the files. If what was
        requested is itself in a damaged file, the finished points are gathered.

    Raises
    ------
    InvalidInputError
        If it is not a results directory, or of another sweep.

    Examples
    --------
    >>> import tempfile
    >>> import rmsim as rs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = rs.thresholds(20, jd=[0.2, 1.0], samples=5, out=folder, backend=rs.Serial())
    ...     data = rs.collect(folder)
    >>> data.attrs["complete"], data["status"].shape  # n, jd, p, batches, samples of a batch
    ('yes', (1, 2, 1, 1, 5))
    """
    import xarray as xr  # here, because workers import this package and do without

    results = Directory(Path(directory))
    identity = results.identity()
    if sweep is not None and sweep.identity() != identity:
        held = f"{directory}, which holds the sweep {identity['name']!r}"
        raise InvalidInputError("out", held, f"a results directory of this sweep {sweep.name!r}")
    grid, unknown = results.asked() if sweep is None else (sweep.grid, [])
    axes = {name: grid.values(name) for name in grid.axes}
    shape = tuple(len(values) for values in axes.values())
    points, damaged, asked = _load(results, identity, grid, axes, shape)
    finished = np.zeros(shape, dtype=bool)
    for position in points:
        finished[position] = True
    variables: dict[str, tuple[tuple[str, ...], Array]] = {
        "asked": (grid.axes, asked),
        "finished": (grid.axes, finished),
        **_bookkeeping(points, grid.axes, shape),
        **_values(points, grid.axes, shape, dims or {}),
    }
    attributes = {
        "sweep": str(identity["name"]),
        "sweep_version": str(identity["version"]),
        "seed": str(identity["seed"]),
        "parameters": canonical_json(identity["fixed"]),
        "complete": "yes" if finished[asked].all() and not unknown else "no",
        "points_asked": str(int(asked.sum())),
        "points_finished": str(len(points)),
        "damaged": ", ".join([*unknown, *damaged]),
        **_provenance([stored.provenance for stored in points.values()]),
    }
    return xr.Dataset(variables, {name: np.asarray(v) for name, v in axes.items()}, attributes)


def _load(
    results: Directory,
    identity: Mapping[str, Any],
    grid: Grid,
    axes: Mapping[str, Sequence[Scalar]],
    shape: Position,
) -> tuple[dict[Position, Stored], list[str], Array]:
    """Read all points of `grid` that are there, by their position."""
    places = {name: {value: i for i, value in enumerate(axes[name])} for name in grid.axes}
    points: dict[Position, Stored] = {}
    damaged: list[str] = []
    asked = np.zeros(shape, dtype=bool)
    for row, point in zip(grid.rows, grid.points(), strict=True):
        position = tuple(places[name][value] for name, value in zip(grid.axes, row, strict=True))
        asked[position] = True
        key = point_key(point, identity["version"])
        try:
            points[position] = results.load(key, identity)
        except FileNotFoundError:
            continue
        except UnreadableDataError:
            damaged.append(results.point_file(key).name)
    return points, damaged, asked


def _bookkeeping(
    points: Mapping[Position, Stored], axes: tuple[str, ...], shape: Position
) -> dict[str, tuple[tuple[str, ...], Array]]:
    wall, cpu = np.full(shape, np.nan), np.full(shape, np.nan)
    seeds = np.full(shape, -1, dtype=np.int64)
    for position, stored in points.items():
        wall[position] = stored.provenance["wall_time"]
        cpu[position] = stored.provenance["cpu_time"]
        seeds[position] = stored.seed
    return {"wall_time": (axes, wall), "cpu_time": (axes, cpu), "point_seed": (axes, seeds)}


def _values(
    points: Mapping[Position, Stored],
    axes: tuple[str, ...],
    shape: Position,
    dims: Mapping[str, Sequence[str]],
) -> dict[str, tuple[tuple[str, ...], Array]]:
    decoded = {position: decode(stored.values) for position, stored in points.items()}
    names = {frozenset(values) for values in decoded.values()}
    if len(names) > 1:
        odd = sorted(frozenset.union(*names) - frozenset.intersection(*names))
        raise RMError(f"only some points have a value for {', '.join(odd)}: raise the version")
    variables: dict[str, tuple[tuple[str, ...], Array]] = {}
    for name in next(iter(decoded.values()), {}):
        column = {position: values[name] for position, values in decoded.items()}
        ranks = {array.ndim for array in column.values()}
        if len(ranks) > 1:
            raise RMError(f"{name} has {sorted(ranks)} dimensions at different points")
        inner = tuple(dims.get(name, [f"{name}_{i}" for i in range(ranks.pop())]))
        variables[name] = ((*axes, *inner), _stack(name, column, shape))
        if len({array.shape for array in column.values()}) > 1:
            sizes = {position: np.asarray(array.shape) for position, array in column.items()}
            variables[f"{name}_shape"] = ((*axes, f"{name}_dimension"), _stack(name, sizes, shape))
    return variables


def _stack(name: str, column: Mapping[Position, Array], shape: Position) -> Array:
    """Put arrays at their positions into one, filled where there is none."""
    shapes = [array.shape for array in column.values()]
    inner = tuple(max(lengths) for lengths in zip(*shapes, strict=True))
    if len({array.dtype.kind == "U" for array in column.values()}) > 1:
        raise RMError(f"{name} is text at some points and a number at others: raise the version")
    dtype = np.result_type(*column.values())
    gaps = len(column) < np.prod(shape) or len(set(shapes)) > 1
    if gaps and dtype.kind in "biu":
        dtype = np.dtype(np.float64)  # integers have no NaN
    stacked = np.zeros((*shape, *inner), dtype)
    if gaps and dtype.kind == "f":
        stacked[...] = np.nan
    for position, array in column.items():
        inside = tuple(slice(0, length) for length in array.shape)
        stacked[(*position, *inside)] = array  # type: ignore[index]  # integers, then slices
    return stacked


def _provenance(entries: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Merge the provenance of the points: every different value once."""
    merged = {
        name: ", ".join(sorted({str(entry[name]) for entry in entries}))
        for name in ("python", "git_commit", "git_dirty", "host", "device")
    }
    packages = sorted({package for entry in entries for package in entry["versions"]})
    versions = {
        package: ", ".join(
            sorted({entry["versions"].get(package, "not installed") for entry in entries})
        )
        for package in packages
    }
    dates = sorted(entry["date"] for entry in entries)
    return {
        **merged,
        "versions": canonical_json(versions),
        "date": f"{dates[0]} to {dates[-1]}" if dates else "",
        "wall_time_seconds": f"{sum(entry['wall_time'] for entry in entries):.3f}",
        "cpu_time_seconds": f"{sum(entry['cpu_time'] for entry in entries):.3f}",
    }
