"""A results directory: one small file for each finished point.

    sweep.json          which sweep it is
    asked/HASH.json     the points that a run asked for, one file for each different request
    points/KEY.json     a finished point: parameters, seed, values, provenance
    failed/KEY.txt      the traceback of a point that failed, until it succeeds

All files are written beside their place and renamed, so a killed run leaves whole files only, and
two runs in one directory at worst compute a point twice, with the same numbers. JSON with a
checksum rather than netCDF: a grid has thousands of points of a few numbers, an HDF5 file takes a
hundred times longer to open, and one can look into a JSON file. The collection of all points is
netCDF.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rmsim.sweep.definition import Sweep, Task
from rmsim.sweep.grid import Grid
from rmsim.sweep.task import Failed, Measured
from rmtheory.errors import InvalidInputError, UnreadableDataError
from rmtheory.files import write_text
from rmtheory.provenance import canonical_json

#: Temporary files older than this, in seconds, belong to a run that was killed.
STRAY_AGE = 3600.0

_TEMPORARY = re.compile(r"\.([0-9a-f]{64}|sweep)\.(json|txt)\..+")


@dataclass(frozen=True)
class Stored:
    """A finished point as read from its file."""

    point: dict[str, Any]
    seed: int
    values: dict[str, Any]
    provenance: dict[str, Any]


@dataclass(frozen=True)
class Directory:
    """Reads and writes the files of a results directory."""

    path: Path

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

    def claim(self, sweep: Sweep) -> None:
        """Make the directory that of `sweep`, or find that it is; remember what is asked.

        Raises
        ------
        InvalidInputError
            If it holds another sweep, or cannot be written.
        """
        identity = sweep.identity()
        held = self._held()
        allowed = "a new directory or one of the same sweep"
        if (self.path / "run.json").exists():
            where = f"{self.path}, which holds a training run (run.json)"
            raise InvalidInputError("out", where, allowed)
        if held is not None and held != identity:
            where = f"{self.path}, which holds {_differences(held, identity)}"
            raise InvalidInputError("out", where, allowed)
        try:
            for folder in ("points", "asked", "failed"):
                (self.path / folder).mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            allowed = f"a directory that can be written ({problem.strerror})"
            raise InvalidInputError("out", str(self.path), allowed) from None
        if not _intact(self.manifest):
            _write(self.manifest, identity)
        request = {"axes": list(sweep.grid.axes), "rows": [list(row) for row in sweep.grid.rows]}
        file = self.path / "asked" / f"{_digest(request)}.json"
        if not _intact(file):
            _write(file, request)

    def identity(self) -> dict[str, Any]:
        """Return which sweep this is.

        Raises
        ------
        InvalidInputError
            If it is no results directory.
        UnreadableDataError
            If the manifest is damaged.
        """
        if not self.manifest.exists():
            raise InvalidInputError("out", str(self.path), "a results directory (with sweep.json)")
        return _read(self.manifest)

    def asked(self) -> tuple[Grid, list[str]]:
        """Return all points that were ever asked for here, and the names of damaged requests.

        The finished points stand in for a request that cannot be read; points of it that were
        never finished are not known any more.
        """
        identity = self.identity()
        axes: tuple[str, ...] = tuple(identity["axes"])
        rows: list[tuple[Any, ...]] = []
        damaged = []
        for file in sorted((self.path / "asked").glob("[!.]*.json")):
            try:
                rows += [tuple(row) for row in _read(file)["rows"]]
            except UnreadableDataError:
                damaged.append(f"asked/{file.name}")
        if damaged:
            for file in sorted((self.path / "points").glob("[!.]*.json")):
                with suppress(UnreadableDataError):
                    point = _read(file)["parameters"]
                    rows.append(tuple(point[name] for name in axes))
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
        file = self.point_file(key)
        found = _read(file)
        if found["sweep"] != identity or found["key"] != key:
            raise UnreadableDataError(f"{file} is not the point that its name says")
        return Stored(found["parameters"], found["seed"], found["values"], found["provenance"])

    def save(self, task: Task, identity: Mapping[str, Any], answer: Measured) -> None:
        """Write a finished point, and forget that it ever failed."""
        document = {
            "sweep": identity,
            "key": task.key,
            "parameters": task.point,
            "seed": task.seed,
            "values": answer.values,
            "provenance": answer.provenance,
        }
        _write(self.point_file(task.key), document)
        self.failure_file(task.key).unlink(missing_ok=True)

    def save_failure(self, task: Task, failure: Failed) -> None:
        """Keep the traceback of a point that failed."""
        text = f"{canonical_json(task.point)}\n{failure.kind}: {failure.message}\n"
        write_text(self.failure_file(task.key), text + failure.details)

    def remove_strays(self) -> None:
        """Remove temporary files of killed runs, old enough to be of no run that is going on."""
        limit = time.time() - STRAY_AGE
        for folder in (self.path, self.path / "points", self.path / "asked", self.path / "failed"):
            for file in folder.iterdir():
                if _TEMPORARY.fullmatch(file.name):
                    with suppress(FileNotFoundError):  # somebody else was quicker
                        if file.stat().st_mtime < limit:
                            file.unlink()

    def _held(self) -> Any:
        """Return which sweep is here, None if nothing is; every point knows, if need be."""
        with suppress(FileNotFoundError, NotADirectoryError, UnreadableDataError):
            return _read(self.manifest)
        for file in (self.path / "points").glob("[!.]*.json"):
            with suppress(FileNotFoundError, UnreadableDataError):
                return _read(file)["sweep"]
        return None


def _write(file: Path, document: Mapping[str, Any]) -> None:
    sealed = {"sha256": _digest(document), "content": document}
    write_text(file, json.dumps(sealed, ensure_ascii=False) + "\n")


def _read(file: Path) -> dict[str, Any]:
    """Read a file and check that it says what was written."""
    try:
        text = file.read_text(encoding="utf-8")
        sealed = json.loads(text)
        content: dict[str, Any] = sealed["content"]
        intact = sealed["sha256"] == _digest(content)
    except (ValueError, KeyError, TypeError) as problem:
        raise UnreadableDataError(f"{file} cannot be read: it is cut off or altered") from problem
    if not intact:
        raise UnreadableDataError(f"{file} was altered: its checksum does not match")
    return content


def _intact(file: Path) -> bool:
    try:
        _read(file)
    except (FileNotFoundError, UnreadableDataError):
        return False
    return True


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical_json(document).encode()).hexdigest()


def _differences(held: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """Say what a directory holds, and in which parameters that differs from what is wanted."""
    label = f"the sweep {held['name']!r} (version {held['version']}, seed {held['seed']})"
    names = [name for name in ("name", "version", "seed") if held[name] != wanted[name]]
    pairs = [(name, held[name], wanted[name]) for name in ("axes", "paired")]
    fixed = {**held["fixed"], **wanted["fixed"]}
    pairs += [(name, held["fixed"].get(name), wanted["fixed"].get(name)) for name in fixed]
    parts = [f"{name} = {one}, not {two}" for name, one, two in pairs if one != two]
    parts += [f"{name} {held[name]}, not {wanted[name]}" for name in names]
    return f"{label}: {'; '.join(parts)}"
