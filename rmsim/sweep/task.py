"""What a worker does with a point, wherever the worker is: compute it and say how.

An exception does not travel: it is caught here and becomes a :class:`Failed`, so that all backends
treat it alike and the other points go on.
"""

from __future__ import annotations

import platform
import socket
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from rmsim.sweep.definition import Task, load_compute
from rmsim.sweep.values import BadValueError, encode
from rmtheory.provenance import git_state, package_versions

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
        returned = load_compute(task.compute)(dict(task.point), task.seed)
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
    """Return versions, commit and host of this process, found once: asking git takes its time."""
    commit, dirty = git_state()
    return {
        "versions": package_versions(),
        "python": platform.python_version(),
        "git_commit": commit,
        "git_dirty": dirty,
        "host": socket.gethostname(),
    }
