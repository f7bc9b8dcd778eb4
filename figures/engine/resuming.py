"""Partial results of a long computation: a run that was killed resumes from them.

They are in a folder with a lock (:class:`rmtheory.runtime.run_store.RunStore`), and are valid for
one key of the data and one state of the sources of rmtheory and rmsim.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from figures.engine.figure import source_hash
from rmtheory.base.errors import InvalidInputError, UnreadableDataError
from rmtheory.runtime.files import write_text
from rmtheory.runtime.run_store import Lock, RunStore
from rmtheory.runtime.untrusted import read_text

#: File with the identity of the computation: its key and the hash of the sources.
_KEY = "key"

#: Patterns of the files; sweeps have folders of their own.
_FILES = (_KEY, "*.json", "*.nc")


@contextmanager
def partial_results(folder: Path, key: str) -> Iterator[Path]:
    """Lock `folder` for the partial results of a computation; remove it once all is computed.

    Partial results of other parameters, or of another version of the packages, are removed first.
    Processes that compute the same share the folder; the last of them removes it.

    Parameters
    ----------
    folder : Path
        Folder of the partial results of one figure.
    key : str
        Hash of what is computed (:meth:`figures.engine.figure.Figure.key`).
    """
    store = RunStore(folder, _KEY, _FILES)
    identity = f"{key} {source_hash('rmtheory', 'rmsim')}"

    def claim(lock: Lock) -> None:
        if _stored_identity(folder) == identity:
            return
        if not lock.exclude():
            allowed = "a folder in which no other version is at work on this figure"
            raise InvalidInputError("out", str(folder), allowed)
        store.empty()
        write_text(folder / _KEY, identity)

    with store.at_work(claim, shared=True) as lock:
        try:
            yield folder
        except BaseException:
            if all(path.name == _KEY for path in folder.glob("[!.]*")):  # no partial result yet
                _discard(store, lock)
            raise
        _discard(store, lock)


def discard_finished(folder: Path, key: str, data: Path) -> None:
    """Remove partial results of a run that was killed after it had stored the file `data`.

    Partial results newer than `data` belong to a run that computes them again, and stay.
    """
    store = RunStore(folder, _KEY, _FILES)
    with suppress(FileNotFoundError):
        older = (folder / _KEY).stat().st_mtime_ns < data.stat().st_mtime_ns
        if older and _stored_identity(folder).startswith(f"{key} "):
            with store.at_work(shared=True) as lock:
                _discard(store, lock)


def _stored_identity(folder: Path) -> str:
    """Return key and sources of the computation in `folder`; empty if there is none."""
    try:
        return read_text(folder / _KEY)
    except (FileNotFoundError, UnreadableDataError):
        return ""


def _discard(store: RunStore, lock: Lock) -> None:
    """Remove the partial results, unless other processes hold the lock."""
    store.remove(lock)
    with suppress(OSError):  # partial results of other figures may be there
        store.path.parent.rmdir()
