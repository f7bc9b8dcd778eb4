"""Write files so that a killed run leaves either the old file or the new one, never half."""

from __future__ import annotations

import errno
import math
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO

from rmtheory.base.errors import InvalidInputError
from rmtheory.runtime.signals import handled_by

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: Failures that only a write can have, and among them those of a full disk.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_WRITING = (*_FULL, errno.EROFS, errno.EPIPE)

#: Before the checksum in the last line of our netCDF files: by it they are recognised.
SEAL = b"\nrmtheory sha256 "


def remedy(problem: OSError) -> str:
    """Say what lets a file be written that could not.

    Examples
    --------
    >>> remedy(OSError(errno.ENOSPC, "full")), remedy(OSError(errno.EACCES, "no"))
    ('make room', 'allow access')
    """
    return "make room" if problem.errno in _FULL else "allow access"


def describe(problem: OSError) -> str:
    """Say in one sentence what the system refused: whether to read or to write, and which file.

    Examples
    --------
    >>> describe(OSError(errno.ENOSPC, "No space left on device", "a.nc"))
    'cannot write a.nc: No space left on device'
    >>> describe(FileNotFoundError(errno.ENOENT, "No such file or directory", "no/such"))
    'cannot read no/such: No such file or directory'
    """
    file = problem.filename
    named = isinstance(file, (str, bytes, os.PathLike))
    if problem.errno in _WRITING:
        what = "write"
    elif named and not os.access(file, os.R_OK):
        what = "read"
    elif named and problem.errno in (errno.EACCES, errno.EPERM):
        what = "write"  # it can be read
    else:
        what = "read or write"
    where = f" {os.fsdecode(file)}" if named else ""
    return f"cannot {what}{where}: {problem.strerror or problem}"


#: Temporary files that are there now.
_temporaries: set[Path] = set()


def _remove_and_end(number: int, _frame: FrameType | None) -> None:
    """Remove the temporary files, then let the signal do what it would have done."""
    for temporary in tuple(_temporaries):
        temporary.unlink(missing_ok=True)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def linked(path: str | os.PathLike[str], argument: str = "out") -> Path:
    """Return `path`, or what it points to if it is a link.

    Raises
    ------
    InvalidInputError
        If the links go round in a circle, naming `argument`.
    """
    target = Path(path)
    try:
        return target.resolve() if target.is_symlink() else target
    except (RuntimeError, OSError):  # which of them depends on the version of Python
        allowed = "a file that can be written, not a link to itself"
        raise InvalidInputError(argument, str(path), allowed) from None


def make_folder(path: Path) -> str:
    """Make a folder with those above it; return why it cannot be, empty if it is there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        if not path.is_symlink():
            return "a file has its name"
        try:
            path.resolve(strict=True)
        except FileNotFoundError:
            return "a link to what does not exist has its name"
        except (RuntimeError, OSError):
            return "a link to itself has its name"
        return "a link to a file has its name"
    except OSError as problem:
        return str(problem.strerror)
    return ""


@contextmanager
def replacing(path: str | os.PathLike[str], argument: str = "out") -> Iterator[Path]:
    """Give a temporary path beside `path` and rename it onto `path` if all went well.

    Otherwise it is removed, also if a signal ends the program; only SIGKILL leaves it behind.

    Raises
    ------
    InvalidInputError
        If the folder does not exist or cannot be written, naming `argument`.
    """
    target = linked(path, argument)  # a link stays, what it points to is replaced
    if target.is_dir():
        raise InvalidInputError(argument, str(path), "a file that can be written, not a folder")
    if target.exists() and not target.is_file():
        # Renaming over a device or a pipe would destroy it.
        raise InvalidInputError(argument, str(path), "a regular file, not a device or a pipe")
    with handled_by(_remove_and_end):
        try:
            descriptor, name = tempfile.mkstemp(
                prefix=f".{target.name}.", suffix=target.suffix, dir=target.parent
            )
        except OSError as problem:
            reason = f"a file that can be written ({problem.strerror})"
            raise InvalidInputError(argument, str(path), reason) from None
        os.close(descriptor)
        temporary = Path(name)
        _temporaries.add(temporary)
        try:
            yield temporary
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)  # mkstemp makes private files; results are shared
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        finally:
            _temporaries.discard(temporary)


#: What flock says if another process has the lock.
_HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)


def try_lock(file: IO[bytes], how: str = "LOCK_EX") -> bool | None:
    """Change the lock of an open file without waiting.

    The lock is an advisory one of the system (flock), which ends with the process, however that
    ends.

    Parameters
    ----------
    file : file
        Opened for writing.
    how : str
        ``LOCK_EX`` to be alone, ``LOCK_SH`` to share, ``LOCK_UN`` to give it back.

    Returns
    -------
    bool or None
        Whether it succeeded; None if the system or the file system has no locks.
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, getattr(fcntl, how) | fcntl.LOCK_NB)
    except OSError as problem:
        return False if problem.errno in _HELD else None
    return True


def wait_for_lock(file: IO[bytes], seconds: float = math.inf) -> bool | None:
    """Wait until this process alone has the lock of `file`, or `seconds` have passed.

    Returns what :func:`try_lock` does.
    """
    end = time.monotonic() + seconds
    while (gained := try_lock(file)) is False and time.monotonic() < end:
        time.sleep(0.05)
    return gained


def leftovers(folder: Path, pattern: str) -> list[Path]:
    """Return the temporary files of all files `pattern` below `folder` that there are.

    They are of active runs, and of killed ones. Only the last part of the pattern may have
    wildcards.
    """
    path = Path(pattern)
    return sorted((folder / path.parent).glob(f".{path.name}.????????{path.suffix}"))


def write_text(path: str | os.PathLike[str], text: str, argument: str = "out") -> None:
    """Write `text` to `path` atomically."""
    with replacing(path, argument) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_bytes(path: str | os.PathLike[str], content: bytes, argument: str = "out") -> None:
    """Write `content` to `path` atomically and down to the disk."""
    with replacing(path, argument) as temporary, temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
