"""Where a long computation keeps its finished parts, so that a killed run goes on where it was."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

import rmtheory
from rmtheory.files import write_text

#: File that says which computation the parts are of.
_KEY = "key"

#: Folder and key of the computation under way.
_place: ContextVar[tuple[Path, str] | None] = ContextVar("place of finished parts", default=None)


@contextmanager
def keeping_parts(folder: Path, key: str) -> Iterator[None]:
    """Let a computation keep its parts in `folder`, removed once all is done.

    Parts left there by other parameters, or by another version of the packages, are not used.
    """
    token = _place.set((folder, key))
    try:
        yield
    finally:
        _place.reset(token)
    _discard(folder)


def discard_finished(folder: Path, key: str, data: Path) -> None:
    """Remove parts that a run left because it was killed after it had stored the `data`.

    Parts begun later than the file `data` are of a run that computes it again.
    """
    stamp = folder / _KEY
    with suppress(FileNotFoundError):
        older = stamp.stat().st_mtime_ns < data.stat().st_mtime_ns
        if older and stamp.read_text("utf-8").startswith(f"{key} "):
            _discard(folder)


def _discard(folder: Path) -> None:
    """Remove the parts, the key last: if this is interrupted, the rest is still known."""
    for path in folder.glob("*"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != _KEY:
            path.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # parts of others may be there
        folder.parent.rmdir()


@contextmanager
def parts_folder() -> Iterator[Path]:
    """Give the folder set by :func:`keeping_parts`, or one that lasts no longer than the block."""
    place = _place.get()
    if place is None:
        with tempfile.TemporaryDirectory() as temporary:
            yield Path(temporary)
        return
    folder, key = place
    key = f"{key} {source_hash('rmtheory', 'rmsim')}"
    stamp = folder / _KEY
    if not stamp.exists() or stamp.read_text("utf-8") != key:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write_text(stamp, key)
    yield folder


def source_hash(*packages: str) -> str:
    """Return a hash of the sources of `packages`, among them the style of the pictures."""
    root = Path(rmtheory.__file__).parents[1]
    digest = hashlib.sha256()
    for package in packages:
        for path in sorted((root / package).rglob("*")):
            if path.suffix in (".py", ".mplstyle"):
                digest.update(path.relative_to(root).as_posix().encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
