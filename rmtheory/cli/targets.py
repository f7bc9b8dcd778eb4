"""Files to be written, refused before the work begins if they cannot be."""

from __future__ import annotations

import os
from pathlib import Path

from rmtheory.errors import InvalidInputError

_PICTURES = (".png", ".pdf", ".svg")


def check_picture(path: Path | None, out: Path) -> None:
    """Refuse a picture that cannot be drawn or written, or in place of the data."""
    if path is None:
        return
    if path.resolve() == out.resolve():
        raise InvalidInputError("plot", str(path), "another file than that of --out")
    check_folder("plot", path)
    if path.suffix.lower() not in _PICTURES:
        raise InvalidInputError("plot", str(path), f"a file ending in {', '.join(_PICTURES)}")


def check_folder(argument: str, path: Path) -> None:
    """Refuse a target that cannot be written before the work begins."""
    if not path.parent.is_dir():
        raise InvalidInputError(
            argument, str(path), "a file that can be written, in a folder that exists"
        )
    if path.is_dir():
        raise InvalidInputError(argument, str(path), "a file that can be written, not a folder")
    if path.exists() and not path.is_file():
        raise InvalidInputError(argument, str(path), "a regular file, not a device or a pipe")
    if not os.access(path.parent, os.W_OK):
        raise InvalidInputError(
            argument, str(path), "a file that can be written, in a folder where you may"
        )


def check_out(path: Path | None) -> Path | None:
    """Refuse the file of the option ``--out`` if it cannot be written."""
    if path is not None:
        check_folder("out", path)
    return path
