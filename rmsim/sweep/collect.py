"""All finished points of a results directory as one data set, with where they come from."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsim.sweep.definition import Sweep
from rmsim.sweep.directory import Directory, Stored
from rmsim.sweep.grid import Grid, Scalar, point_key
from rmsim.sweep.values import Array, decode
from rmtheory.errors import InvalidInputError, RMError, UnreadableDataError
from rmtheory.provenance import canonical_json

if TYPE_CHECKING:
    import xarray as xr

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
        Gather its points only; otherwise all that were ever asked for there.
    dims : mapping, optional
        Names of the dimensions of values that are arrays; NAME_0, NAME_1, ... if not given.

    Returns
    -------
    xarray.Dataset
        One variable for each value; ``wall_time`` and ``cpu_time`` in seconds and ``point_seed``;
        the masks ``asked`` and ``finished``. The attribute ``complete`` is ``yes`` if all points
        asked for are finished. Otherwise, and where the grid is no full product, numbers are NaN
        and texts empty outside ``finished`` (integers and truth values become floats). Arrays of
        different length are padded in the same way, their shapes are in NAME_shape. Points with a
        damaged file count as missing; the attribute ``damaged`` names the files. If what was
        asked for is itself in a damaged file, the finished points are gathered.

    Raises
    ------
    InvalidInputError
        If it is no results directory, or of another sweep.
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
    found, damaged, asked = _load(results, identity, grid, axes, shape)
    finished = np.zeros(shape, dtype=bool)
    for position in found:
        finished[position] = True
    variables: dict[str, tuple[tuple[str, ...], Array]] = {
        "asked": (grid.axes, asked),
        "finished": (grid.axes, finished),
        **_bookkeeping(found, grid.axes, shape),
        **_values(found, grid.axes, shape, dims or {}),
    }
    attributes = {
        "sweep": str(identity["name"]),
        "sweep_version": str(identity["version"]),
        "seed": str(identity["seed"]),
        "parameters": canonical_json(identity["fixed"]),
        "complete": "yes" if finished[asked].all() and not unknown else "no",
        "points_asked": str(int(asked.sum())),
        "points_finished": str(len(found)),
        "damaged": ", ".join([*unknown, *damaged]),
        **_provenance([stored.provenance for stored in found.values()]),
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
    found: dict[Position, Stored] = {}
    damaged: list[str] = []
    asked = np.zeros(shape, dtype=bool)
    for row, point in zip(grid.rows, grid.points(), strict=True):
        position = tuple(places[name][value] for name, value in zip(grid.axes, row, strict=True))
        asked[position] = True
        key = point_key(point, identity["version"])
        try:
            found[position] = results.load(key, identity)
        except FileNotFoundError:
            continue
        except UnreadableDataError:
            damaged.append(results.point_file(key).name)
    return found, damaged, asked


def _bookkeeping(
    found: Mapping[Position, Stored], axes: tuple[str, ...], shape: Position
) -> dict[str, tuple[tuple[str, ...], Array]]:
    wall, cpu = np.full(shape, np.nan), np.full(shape, np.nan)
    seeds = np.full(shape, -1, dtype=np.int64)
    for position, stored in found.items():
        wall[position] = stored.provenance["wall_time"]
        cpu[position] = stored.provenance["cpu_time"]
        seeds[position] = stored.seed
    return {"wall_time": (axes, wall), "cpu_time": (axes, cpu), "point_seed": (axes, seeds)}


def _values(
    found: Mapping[Position, Stored],
    axes: tuple[str, ...],
    shape: Position,
    dims: Mapping[str, Sequence[str]],
) -> dict[str, tuple[tuple[str, ...], Array]]:
    decoded = {position: decode(stored.values) for position, stored in found.items()}
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
        variables[name] = ((*axes, *inner), _stack(column, shape))
        if len({array.shape for array in column.values()}) > 1:
            sizes = {position: np.asarray(array.shape) for position, array in column.items()}
            variables[f"{name}_shape"] = ((*axes, f"{name}_dimension"), _stack(sizes, shape))
    return variables


def _stack(column: Mapping[Position, Array], shape: Position) -> Array:
    """Put arrays at their positions into one, filled where there is none."""
    shapes = [array.shape for array in column.values()]
    inner = tuple(max(lengths) for lengths in zip(*shapes, strict=True))
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


def _provenance(found: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Merge the provenance of the points: every different value once."""
    merged = {
        name: ", ".join(sorted({str(entry[name]) for entry in found}))
        for name in ("python", "git_commit", "git_dirty", "host", "device")
    }
    packages = sorted({package for entry in found for package in entry["versions"]})
    versions = {
        package: ", ".join(
            sorted({entry["versions"].get(package, "not installed") for entry in found})
        )
        for package in packages
    }
    dates = sorted(entry["date"] for entry in found)
    return {
        **merged,
        "versions": canonical_json(versions),
        "date": f"{dates[0]} to {dates[-1]}" if dates else "",
        "wall_time_seconds": f"{sum(entry['wall_time'] for entry in found):.3f}",
        "cpu_time_seconds": f"{sum(entry['cpu_time'] for entry in found):.3f}",
    }
