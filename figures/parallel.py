"""Independent pieces of work in processes of one thread each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, TypeVar

T = TypeVar("T")

#: Processes at a time.
JOBS = 2


def in_parallel(
    function: Callable[..., T],
    arguments: Iterable[tuple[Any, ...]],
    on_done: Callable[[int], None],
) -> list[T]:
    """Return function(*a) for all `arguments`, in their order; the first failure is raised."""
    # Spawned, not forked: a child then reads the number of threads anew.
    with (
        _one_thread(),
        ProcessPoolExecutor(JOBS, mp_context=get_context("spawn")) as pool,
    ):
        futures: list[Future[T]] = [pool.submit(function, *a) for a in arguments]
        try:
            for count, future in enumerate(as_completed(futures), start=1):
                future.result()
                on_done(count)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [future.result() for future in futures]


@contextmanager
def _one_thread() -> Iterator[None]:
    """Start children with one thread for linear algebra: the matrices are thin."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
