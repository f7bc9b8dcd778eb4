"""Run a sweep: find what is there, compute what is missing, keep each point when it is done."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rmsim.sweep.definition import Sweep, Task
from rmsim.sweep.directory import Directory
from rmsim.sweep.local import Backend, Local, Note
from rmsim.sweep.task import Failed
from rmtheory.errors import UnreadableDataError
from rmtheory.wording import counted


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
    """What a run did: points kept from before, computed now, failed, found damaged."""

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

    A point that raises is reported at the end and tried again by the next run; the others go on.

    Parameters
    ----------
    sweep : Sweep
        What to compute.
    directory : path
        Results directory, made if needed.
    backend : Backend, optional
        Where to compute; processes on all cores if not given.
    on_progress : callable, optional
        Told how far the run is, first of all how much was there before.
    note : callable, optional
        Told, in a sentence, of damaged files and of troubles of a cluster.

    Raises
    ------
    InvalidInputError
        If the directory holds another sweep, or a cluster does not answer.
    ClusterLostError
        If a cluster is lost in mid-run; what was finished is kept.
    """
    start = time.perf_counter()
    tell = note or _say_nothing
    results, identity = Directory(Path(directory)), sweep.identity()
    results.claim(sweep)
    results.remove_strays()
    tasks = sweep.tasks()
    missing, damaged = _missing(results, identity, tasks)
    for message in damaged:
        tell(f"{message}; the point is computed again")
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
        with (backend or Local()).answers(missing, tell) as answers:
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
    """Nobody listens."""
