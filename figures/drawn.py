"""Pictures that need not be drawn again: same data, same code, and the files as they were left.

The stamp of a figure is one hash over the key of its data, the sources and versions that draw it,
and the content of its files. It therefore cannot be wrong: whatever was changed, cut off or taken
away, the hash is another one, and the figure is drawn again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from figures.figure import Figure, Scale
from figures.unfinished import source_hash
from rmtheory.files import write_text
from rmtheory.provenance import canonical_json, package_versions

#: Folder with the stamps, beside the pictures.
_FOLDER = ".drawn"

KINDS = ("png", "pdf")


def files(figure: Figure, folder: Path) -> tuple[Path, ...]:
    """Return the files of `figure`: data, then pictures."""
    return (folder / figure.data_file, *(folder / f"{figure.name}.{kind}" for kind in KINDS))


def stamp_file(figure: Figure, folder: Path) -> Path:
    """Return the file that holds the stamp of `figure`."""
    return folder / _FOLDER / f"{figure.name}.sha256"


def is_drawn(figure: Figure, scale: Scale, folder: Path) -> bool:
    """Return whether data and pictures of `figure` at `scale` are there and up to date."""
    try:
        stamp = stamp_file(figure, folder).read_bytes()
        found = [content_hash(path) for path in files(figure, folder)]
    except OSError:
        return False
    return stamp == _stamp(figure, scale, found).encode()


def remember(figure: Figure, scale: Scale, folder: Path, hashes: Iterable[str]) -> None:
    """Stamp `figure`, whose files had these `hashes` when they were read or written.

    They are not read again here: another run may have put its own files there since then.
    """
    file = stamp_file(figure, folder)
    file.parent.mkdir(exist_ok=True)
    write_text(file, _stamp(figure, scale, hashes))


def content_hash(path: Path) -> str:
    """Return a hash of the bytes of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _stamp(figure: Figure, scale: Scale, hashes: Iterable[str]) -> str:
    text = "\n".join((figure.key(scale), drawing_hash(), *hashes))
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def drawing_hash() -> str:
    """Return a hash of all that draws: sources, style, and the versions of other packages."""
    text = f"{source_hash('figures', 'rmtheory', 'rmsim')} {canonical_json(package_versions())}"
    return hashlib.sha256(text.encode()).hexdigest()
