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
    key = f"{key} {source_hash()}"
    stamp = folder / "key"
    if not stamp.exists() or stamp.read_text("utf-8") != key:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write_text(stamp, key)
    yield folder


def source_hash() -> str:
    """Return a hash of the sources of `rmtheory` and `rmsim`."""
    root = Path(rmtheory.__file__).parents[1]
    digest = hashlib.sha256()
    for package in ("rmtheory", "rmsim"):
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
