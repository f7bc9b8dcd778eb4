"""A folder in use: what killed runs left in it is removed, unless another run is at work in it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rmtheory.files import leftovers

try:
    import fcntl
except ImportError:  # a system without such locks keeps what killed runs left
    fcntl = None  # type: ignore[assignment]


@contextmanager
def occupied(folder: Path, files: Iterable[Path]) -> Iterator[None]:
    """Hold a lock on `folder`, after removing what killed runs left of `files`.

    The lock is that of the folder itself and shared by all runs in it. The system takes it back
    when a run ends, however it ends, so who can have it alone finds only files of the dead.
    """
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # others are at work, or the file system knows no locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for path in files:
                for leftover in leftovers(path):
                    leftover.unlink(missing_ok=True)
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)
