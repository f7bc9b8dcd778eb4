"""Where figures compute: in processes on this machine or on a Dask cluster, as the user chose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from figures.figure import JOBS

if TYPE_CHECKING:  # the list of figures needs none of it
    from rmsim.sweep import Backend

_chosen: ContextVar[tuple[int, str | None]] = ContextVar("workers", default=(JOBS, None))


@contextmanager
def computing_with(jobs: int = JOBS, dask: str | None = None) -> Iterator[None]:
    """Let figures compute in `jobs` processes; their sweeps at the scheduler `dask`, if given."""
    token = _chosen.set((jobs, dask))
    try:
        yield
    finally:
        _chosen.reset(token)


def jobs() -> int:
    """Return how many processes to use on this machine."""
    return _chosen.get()[0]


def backend() -> Backend:
    """Return where the points of a sweep are computed."""
    from rmsim.sweep import Dask, Local

    count, dask = _chosen.get()
    return Local(count) if dask is None else Dask(dask)
