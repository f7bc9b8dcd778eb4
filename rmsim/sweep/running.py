"""Run a sweep: read the points that are stored, compute those missing, store each at once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rmsim.sweep.definition import Sweep, Task
from rmsim.sweep.directory import Directory
from rmsim.sweep.workers import Backend, Failed, Local, Note
from rmtheory.base.errors import UnreadableDataError
from rmtheory.base.wording import counted


@dataclass(frozen=True)
class PointFailure:
    """A point that could not be computed, and where its traceback is."""

    point: dict[str, Any]
    failure: Failed
    file: Path

    def __str__(self) -> str:
        where = ", ".join(f"{name}={value}" for name, value in self.point.items())
        message = " ".join(self.failure.message.split())
        return f"point {where} failed: {self.failure.kind}: {message} ({self.file})"


@dataclass(frozen=True)
class Progress:
    """How far a run is: points done of those asked, and the share of the work behind it."""

    done: int
    asked: int
    share: float


@dataclass(frozen=True)
class Report:
    """Points that a run kept from before, computed, could not compute, or read as damaged."""

    directory: Path
    asked: int
    kept: int
    computed: int
    failures: tuple[PointFailure, ...]
    damaged: tuple[str, ...]
    wall_time: float
    cpu_time: float

    @property
    def complete(self) -> bool:
        """Whether all points that were asked for are there."""
        return self.kept + self.computed == self.asked

    def __str__(self) -> str:
        parts = [f"{self.kept} kept", f"{self.computed} computed in {self.wall_time:.1f} s"]
        parts[-1] += f" ({self.cpu_time:.1f} s CPU)"
        if self.failures:
            parts.append(f"{len(self.failures)} failed")
        return f"{counted(self.asked, 'point')} in {self.directory}: {', '.join(parts)}"


def run_sweep(
    sweep: Sweep,
    directory: str | os.PathLike[str],
    backend: Backend | None = None,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    note: Note | None = None,
) -> Report:
    """Compute the points of `sweep` that are not yet in `directory`.

    A point that raises is reported at the end and tried again by the next run; the others continue.

    Parameters
    ----------
    sweep : Sweep
        What to compute.
    directory : path
        Results directory, made if needed.
    backend : Backend, optional
        Where to compute; processes on all cores if not given.
    on_progress : callable, optional
        Called with the progress of the run, first with what was there before.
    note : callable, optional
        Called with a sentence about a damaged file or a problem of a cluster.

    Raises
    ------
    InvalidInputError
        If the directory holds another sweep, or a cluster does not answer.
    ClusterLostError
        If a cluster is lost in mid-run; what was finished is kept.

    Examples
    --------
    >>> import tempfile
    >>> import rmsim as rs
    >>> fixed = {"layers": 1, "lam": 0.0, "rho": 1.0, "symmetric": False, "samples": "0:5"}
    >>> how = {"algorithm": "dynamics", "update": "synchronous", "p": 1.0, "max_sweeps": 100}
    >>> where = {"dtype": "float32", "device": "cpu"}
    >>> grid = rs.Grid.product({"n": (20, 40), "jd": (2.0,)}, fixed | how | where)
    >>> sweep = rs.Sweep("demo", 1, "rmsim.studies.convergence:measure", grid, seed=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = rs.run_sweep(sweep, folder, rs.Serial())
    ...     again = rs.run_sweep(sweep, folder, rs.Serial())
    >>> first.computed, again.computed, again.kept
    (2, 0, 2)
    """
    results = Directory(Path(directory))
    with results.claimed(sweep):
        return _run(sweep, results, backend or Local(), on_progress, note or _say_nothing)


def _run(
    sweep: Sweep,
    results: Directory,
    backend: Backend,
    on_progress: Callable[[Progress], None] | None,
    note: Note,
) -> Report:
    """Compute what is missing of `sweep` in a directory that is its own."""
    start, identity, tasks = time.perf_counter(), sweep.identity(), sweep.tasks()
    missing, damaged = _missing(results, identity, tasks)
    for message in damaged:
        note(f"{message}; the point is computed again")
    if sweep.cost is not None:
        missing.sort(key=lambda task: -sweep.cost_of(task.point))
    kept, computed, cpu_time = len(tasks) - len(missing), 0, 0.0
    work = sum(sweep.cost_of(task.point) for task in tasks) or 1.0
    left = sum(sweep.cost_of(task.point) for task in missing)
    failures: list[PointFailure] = []

    def report_progress() -> None:
        if on_progress is not None:
            done = kept + computed + len(failures)
            on_progress(Progress(done, len(tasks), 1.0 - left / work))

    report_progress()
    if missing:
        with backend.answers(missing, note) as answers:
            for index, answer in answers:
                task = missing[index]
                if isinstance(answer, Failed):
                    results.save_failure(task, answer)
                    file = results.failure_file(task.key)
                    failures.append(PointFailure(task.point, answer, file))
                else:
                    results.save(task, identity, answer)
                    computed += 1
                    cpu_time += answer.provenance["cpu_time"]
                left -= sweep.cost_of(task.point)
                report_progress()
    wall_time = time.perf_counter() - start
    return Report(
        results.path,
        len(tasks),
        kept,
        computed,
        tuple(failures),
        tuple(damaged),
        wall_time,
        cpu_time,
    )


def _missing(
    results: Directory, identity: dict[str, Any], tasks: list[Task]
) -> tuple[list[Task], list[str]]:
    """Return the tasks to be done, and what is wrong with files that are there."""
    missing, damaged = [], []
    for task in tasks:
        try:
            results.load(task.key, identity)
        except FileNotFoundError:
            missing.append(task)
        except UnreadableDataError as problem:
            missing.append(task)
            damaged.append(str(problem))
    return missing, damaged


def _say_nothing(_sentence: str) -> None:
    """Ignore the notes."""
