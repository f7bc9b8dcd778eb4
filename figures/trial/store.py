"""Results of runs: one small file each, with where it comes from, in figures/data/trained.

A file is written whole or not at all, ends with a checksum, and is refused if it was cut off or
altered, if its name is not that of what it says it holds, or if another version of the training
made it. Weights are not stored: :func:`figures.trial.runner.verify` trains again and compares.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from figures.engine.figure import ROOT
from figures.trial.runs import STORED_METRICS, VERSION, Metrics, Run, as_json, from_json
from rmtheory.base.errors import UnreadableDataError
from rmtheory.runtime.provenance import attributes, parameters_hash
from rmtheory.runtime.run_store import RunStore
from rmtheory.runtime.untrusted import MALFORMED

#: Where the results of the repository are.
TRAINED = ROOT / "figures" / "data" / "trained"

#: Digits of the key in the name of a file.
_DIGITS = 10

#: What stored results record of where they were made.
_PROVENANCE = ("git_commit", "git_dirty", "versions", "python", "date")


@dataclass(frozen=True)
class Result:
    """What a run gave.

    Parameters
    ----------
    key : str
        Of the run.
    title : str
        What was trained, for readers.
    identity : mapping
        The same for the machine: whatever the numbers depend on, but for the epochs.
    data : str
        sha256 of the data set.
    metrics : dict
        Epoch -> what was measured.
    cpu_seconds : float
        Time of a core.
    provenance : mapping
        Commit, versions, date, machine.
    """

    key: str
    title: str
    identity: Mapping[str, Any]
    data: str
    metrics: Metrics
    cpu_seconds: float
    provenance: Mapping[str, str]

    @property
    def commit(self) -> str:
        """The commit that made it, shortened; a star if files differed from it."""
        changed = "*" if self.provenance.get("git_dirty") == "yes" else ""
        return f"{self.provenance.get('git_commit', 'unknown')[:9]}{changed}"

    @property
    def machine(self) -> str:
        """The processor on which it ran."""
        return self.provenance.get("machine", "unknown")

    def covers(self, run: Run) -> bool:
        """Return whether it has the metrics of all epochs of `run`."""
        return self.key == run.key and all(epoch in self.metrics for epoch in run.epochs)


@dataclass(frozen=True)
class Store:
    """The folder of the results."""

    path: Path = field(default=TRAINED)

    def file(self, run: Run) -> Path:
        """Return the file of the result of `run`."""
        return self.path / f"{run.title}_{run.key[:_DIGITS]}.json"

    def add(self, run: Run, data: str, metrics: Metrics, cpu_seconds: float) -> Result:
        """Write the result of a run; metrics of an earlier one of the same key stay in it."""
        earlier = self.get(run)
        if earlier is not None and earlier.data == data:
            metrics = {**earlier.metrics, **metrics}
        stamped = attributes(run.identity, version=VERSION)
        provenance = {name: stamped[name] for name in _PROVENANCE} | machine()
        content = {
            "format": 1,
            "version": VERSION,
            "key": run.key,
            "title": run.title,
            "run": run.identity,
            "data": data,
            "cpu_seconds": round(cpu_seconds, 2),
            "provenance": provenance,
            STORED_METRICS: as_json(dict(sorted(metrics.items()))),
        }
        self.path.mkdir(parents=True, exist_ok=True)
        RunStore(self.path).save(self.file(run).name, content)
        return _result(content, self.file(run))

    def get(self, run: Run) -> Result | None:
        """Return the result of a run, whatever its epochs; None if there is none.

        Raises
        ------
        UnreadableDataError
            If the file is damaged or was made by other code, naming it and what to do.
        """
        try:
            return self._load(self.file(run).name)
        except FileNotFoundError:
            return None

    def has(self, run: Run) -> bool:
        """Return whether the metrics of all epochs of `run` are there."""
        held = self.get(run)
        return held is not None and held.covers(run)

    def results(self) -> list[Result]:
        """Return all results, by their file names.

        Raises
        ------
        UnreadableDataError
            As :meth:`get`.
        """
        names = sorted(path.name for path in self.path.glob("*.json"))
        return [self._load(name) for name in names]

    def _load(self, name: str) -> Result:
        again = "restore it by 'git checkout', or remove it and 'make decide' runs it again"
        try:
            content = RunStore(self.path).load(name)
        except UnreadableDataError as problem:
            raise UnreadableDataError(f"{problem}: {again}") from None
        file = self.path / name
        version = content.get("version"), content.get("format")
        if version != (VERSION, 1):
            raise UnreadableDataError(
                f"{file} was made by other code: training version {version[0]}, file format "
                f"{version[1]}, where this is {VERSION} and 1: {again}"
            )
        return _result(content, file, again)


def _result(content: Mapping[str, Any], file: Path, again: str = "") -> Result:
    try:
        result = Result(
            key=content["key"],
            title=content["title"],
            identity=content["run"],
            data=content["data"],
            metrics=from_json(content[STORED_METRICS]),
            cpu_seconds=float(content["cpu_seconds"]),
            provenance=content["provenance"],
        )
    except MALFORMED as problem:
        raise UnreadableDataError(f"{file} holds no result of a run ({problem}): {again}") from None
    same = parameters_hash(result.identity, VERSION) == result.key
    if not same or not file.stem.endswith(result.key[:_DIGITS]):
        raise UnreadableDataError(f"{file} is not named after what it holds: {again}")
    return result


def machine() -> dict[str, str]:
    """Return the processor and its threads: what rounding depends on."""
    import torch

    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        pass  # other systems
    return {"machine": name, "threads": str(torch.get_num_threads()), "device": "cpu"}
