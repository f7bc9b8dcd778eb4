"""Write files so that a killed run leaves either the old file or the new one, never half."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rmtheory.errors import InvalidInputError


@contextmanager
def replacing(path: str | os.PathLike[str], argument: str = "out") -> Iterator[Path]:
    """Give a temporary path beside `path` and rename it onto `path` if all went well.

    Raises
    ------
    InvalidInputError
        If the folder does not exist or cannot be written, naming `argument`.
    """
    target = Path(path)
    if target.is_symlink():
        target = target.resolve()  # the link stays, what it points to is replaced
    if target.is_dir():
        raise InvalidInputError(argument, str(path), "a file that can be written, not a folder")
    if target.exists() and not target.is_file():
        # Renaming over a device or a pipe would destroy it.
        raise InvalidInputError(argument, str(path), "a regular file, not a device or a pipe")
    try:
        descriptor, name = tempfile.mkstemp(
            prefix=f".{target.name}.", suffix=target.suffix, dir=target.parent
        )
    except OSError as problem:
        reason = f"a file that can be written ({problem.strerror})"
        raise InvalidInputError(argument, str(path), reason) from None
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)  # mkstemp makes private files; results are to be shared
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: str | os.PathLike[str], text: str, argument: str = "out") -> None:
    """Write `text` to `path` atomically."""
    with replacing(path, argument) as temporary:
        temporary.write_text(text, encoding="utf-8")
