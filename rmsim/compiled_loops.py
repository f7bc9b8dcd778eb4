"""Loops compiled to machine code, and the threads that run them side by side.

:func:`compiled` is the one decorator of every hot loop that is not a tensor product. The machine
code is kept on disk beside the source and built at the first call only. A compiled function may
call compiled functions of its own file only: it contains their code, and is not built again when
another file changes.

The loops hold no Python object and release the interpreter lock, so that threads run them side by
side: as many as torch would use, and ``torch.set_num_threads`` governs all of the simulator. Unlike
the parallel loops of numba these may be entered from several threads at once, as on a Dask worker.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, ParamSpec, TypeVar, cast

import numba
import torch

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` by numba; rounding stays that of IEEE 754 (no fast-math)."""
    return cast(Callable[P, R], numba.njit(cache=True, nogil=True)(function))


def compiled_part(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only compiled functions of its file call.

    It has no entry from Python, whose code for many arrays takes longer to build than the loop, and
    is kept on disk as part of its callers alone.
    """
    options: Any = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(Callable[P, R], numba.njit(**options)(function))


def thread_count(work: float, grain: float) -> int:
    """Return how many threads are worth it, if each should have `grain` operations or more."""
    return int(max(1, min(torch.get_num_threads(), work // grain)))


def shares(total: int, parts: int) -> list[tuple[int, int]]:
    """Cut ``range(total)`` into ranges of nearly equal length.

    Examples
    --------
    >>> shares(7, 3)
    [(0, 2), (2, 4), (4, 7)]
    """
    return [(total * k // parts, total * (k + 1) // parts) for k in range(parts)]


def run_parts(function: Callable[..., object], parts: Sequence[tuple[Any, ...]]) -> None:
    """Call `function` with each tuple of arguments, the first one in this thread."""
    waiting = [_pool(os.getpid()).submit(function, *part) for part in parts[1:]]
    function(*parts[0])
    for future in waiting:
        future.result()


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Return the threads of this process; a forked child must not wait for its parent's."""
    return ThreadPoolExecutor(max_workers=os.cpu_count(), thread_name_prefix="rmsim")
