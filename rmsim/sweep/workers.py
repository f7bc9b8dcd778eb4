"""The evaluation of a point by a worker, and the backends on this machine.

A worker computes a point and records the provenance of the result. An exception is caught there and
becomes a :class:`Failed`, so that all backends treat it alike and the other points continue.
:class:`Serial` evaluates the points in this process, :class:`Local` in several;
:class:`rmsim.sweep.cluster.Dask` sends them to a cluster.
"""

from __future__ import annotations

import platform
import socket
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, Protocol

from rmsim.sweep.definition import BadValueError, Task, encode, load_compute, takes_device
from rmtheory.runtime.processes import as_finished, available_cores
from rmtheory.runtime.provenance import git_state, package_versions

#: Names that the collection of a sweep needs for itself.
RESERVED = ("finished", "asked", "wall_time", "cpu_time", "point_seed")


@dataclass(frozen=True)
class Measured:
    """A finished point: encoded values, and where they come from."""

    values: dict[str, Any]
    provenance: dict[str, Any]


@dataclass(frozen=True)
class Failed:
    """A point that raised an exception, or whose worker died."""

    kind: str
    message: str
    details: str = ""


Answer = Measured | Failed


def evaluate(task: Task) -> Answer:
    """Compute one point."""
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        function = load_compute(task.compute)
        placed = task.device is not None and takes_device(function)
        where = {"device": task.device} if placed else {}
        returned = function(dict(task.point), task.seed, **where)
        if not isinstance(returned, Mapping):
            raise BadValueError(f"{task.compute} must return a dict, got {returned!r}")
        values = dict(returned)
        device = str(values.pop("device", "cpu"))
        encoded = encode(values, (*task.point, *RESERVED))
    except Exception as problem:
        return Failed(type(problem).__name__, str(problem), traceback.format_exc())
    return Measured(
        encoded,
        {
            **environment(),
            "device": device,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "wall_time": time.perf_counter() - wall,
            "cpu_time": time.process_time() - cpu,
        },
    )


@cache
def environment() -> dict[str, Any]:
    """Return versions, commit and host of this process, determined once: git takes its time."""
    commit, dirty = git_state()
    return {
        "versions": package_versions(),
        "python": platform.python_version(),
        "git_commit": commit,
        "git_dirty": dirty,
        "host": socket.gethostname(),
    }


#: Pairs of the position of a task and its answer, in the order in which they are there.
Answers = Iterator[tuple[int, Answer]]

#: Takes a sentence that the user should see.
Note = Callable[[str], None]


def placed(tasks: Sequence[Task], device: str | None) -> list[Task]:
    """Return the tasks, each with the device that it is computed on, if one is given."""
    return [task if device is None else replace(task, device=device) for task in tasks]


class Backend(Protocol):
    """Something that evaluates tasks; leaving the block stops what still runs."""

    def answers(self, tasks: Sequence[Task], note: Note) -> AbstractContextManager[Answers]:
        """Give the results of all `tasks`, begun in their order, each as soon as it is there."""


@dataclass(frozen=True)
class Serial:
    """In this process, one point after the other, with all its threads: for debugging.

    With a `device`, points are computed there and not where the sweep says.

    Examples
    --------
    >>> import rmsim as rs
    >>> result = rs.thresholds(20, jd=[0.2, 1.0], samples=10, backend=rs.Serial())
    >>> int(result.data.trials.sum())
    20
    """

    device: str | None = None

    @contextmanager
    def answers(self, tasks: Sequence[Task], note: Note) -> Iterator[Answers]:
        """Evaluate one task after the other."""
        yield ((index, evaluate(task)) for index, task in enumerate(placed(tasks, self.device)))


@dataclass(frozen=True)
class Local:
    """Processes on this machine, `jobs` at a time; None for as many as there are cores, or GPUs.

    Each has one thread, also if there is only one process: sums of floats depend on the number of
    threads, and a result should not depend on the number of jobs.

    With a `device`, points are computed there and not where the sweep says. Points on GPUs have one
    process for each GPU, which sees no other; more `jobs` share them evenly.

    Examples
    --------
    >>> import rmsim as rs
    >>> rs.Local(jobs=4)
    Local(jobs=4, device=None)
    """

    jobs: int | None = None
    device: str | None = None

    @contextmanager
    def answers(self, tasks: Sequence[Task], note: Note) -> Iterator[Answers]:
        """Evaluate the tasks in processes."""
        work = placed(tasks, self.device)
        environments = environments_of(work)
        jobs = self.jobs or len(environments) or available_cores()
        with as_finished(
            evaluate, [(task,) for task in work], jobs=jobs, environments=environments or [{}]
        ) as outcomes:
            yield (
                (
                    outcome.index,
                    outcome.result()
                    if outcome.error is None
                    else Failed(type(outcome.error).__name__, str(outcome.error), outcome.details),
                )
                for outcome in outcomes
            )


def environments_of(tasks: Sequence[Task]) -> list[dict[str, str]]:
    """Return one environment for each GPU that the tasks are to use; none if they use the CPU."""
    places = {(task.compute, str(task.device or task.point.get("device", "cpu"))) for task in tasks}
    environments: list[dict[str, str]] = []
    for compute, device in sorted(places):
        if device != "cpu" and takes_device(load_compute(compute)):
            from rmsim.tensors import gpu_environments  # torch, which other sweeps do without

            environments += [one for one in gpu_environments(device) if one not in environments]
    return environments
