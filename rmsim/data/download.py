"""Where files of data sets are searched for, and how they are downloaded.

The places are a folder given, that of RMSIM_DATA, those of the operating system, and the cache.

A downloaded file is there complete and checked, or not at all: the bytes go to NAME.*.part beside
the target, one for each address. A download that breaks off leaves it, and the next one continues
from there; it is checked before it gets its name.
"""

from __future__ import annotations

import os
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Sequence
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from rmtheory.base.errors import RMError, StorageError, UnreadableDataError
from rmtheory.runtime.files import wait_for_lock
from rmtheory.runtime.untrusted import opened_to_append, write_all

#: A folder given by the user, None if none was.
Folder = str | os.PathLike[str] | None

#: Variable of the environment that names a folder of data sets.
VARIABLE = "RMSIM_DATA"


def roots(folder: Folder, system: Sequence[Path] = ()) -> list[Path]:
    """Return the folders to search: `folder` and no other if given, else all, best first."""
    if folder is not None:
        return [Path(folder)]
    variable = os.environ.get(VARIABLE)
    return [*([Path(variable)] if variable else []), *system, cache_folder()]


def cache_folder() -> Path:
    """Return the folder of downloaded data: XDG_CACHE_HOME/rmsim, by default ~/.cache/rmsim."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # A relative path is to be ignored, says the XDG specification.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "rmsim"


def looked_in(folder: Folder, system: Sequence[Path] = ()) -> str:
    """Return the part of a message that says where `roots` searches."""
    unset = "" if folder is not None or os.environ.get(VARIABLE) else f", {VARIABLE} is not set"
    return "looked in " + ", ".join(map(str, roots(folder, system))) + unset


# Downloads.

#: Called with the share of the work that is done, from 0 to 1.
ShareProgress = Callable[[float], None]

#: Raises UnreadableDataError if the file at the path is not the one that is wanted.
Check = Callable[[Path], None]

#: Seconds without a byte after which a connection counts as broken.
_PATIENCE = 30.0
_BLOCK = 1 << 16

#: Bytes of a file, far more than any of ours: a server that never ends must not fill the disk.
_MOST_BYTES = 1_000_000_000


class DownloadError(RMError):
    """A file could not be downloaded; the text says from where and why."""


def fetch(
    url: str,
    target: Path,
    check: Check,
    progress: ShareProgress = lambda share: None,
    schemes: tuple[str, ...] = ("https",),
) -> None:
    """Download `url` to `target`, if it is not there yet; `check` sees it before it is.

    Raises
    ------
    DownloadError
        If the server cannot be reached, refuses, or breaks off; the next call resumes from there.
    UnreadableDataError
        If `check` refuses what came; it is deleted.
    """
    # Mirrors may have compressed the same content in different ways: their bytes do not mix.
    part = target.with_name(f"{target.name}.{zlib.crc32(url.encode()):08x}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        while not target.exists():
            _fetch_part(url, part, target, check, progress, schemes)
        for left in target.parent.glob(f"{target.name}.*.part"):
            left.unlink(missing_ok=True)
    except StorageError as problem:  # a link or a pipe where the part should be
        raise DownloadError(str(problem)) from None
    except OSError as problem:  # a full disk, a folder without permission
        reason = problem.strerror or str(problem)
        raise DownloadError(f"{target} cannot be written: {reason}") from None


def _fetch_part(
    url: str,
    part: Path,
    target: Path,
    check: Check,
    progress: ShareProgress,
    schemes: tuple[str, ...],
) -> None:
    with opened_to_append(part) as file:
        wait_for_lock(file)  # without locks, as on Windows, two downloads at once may disturb
        if not part.exists() or not os.path.samestat(os.fstat(file.fileno()), part.stat()):
            return  # another process finished with it while this one waited for the lock
        _complete(url, file, progress, schemes)
        os.fsync(file.fileno())
        try:
            check(part)
        except UnreadableDataError as problem:
            part.unlink()
            raise UnreadableDataError(f"what {url} sends is wrong: {problem}") from None
        part.replace(target)


def _complete(url: str, file: IO[bytes], progress: ShareProgress, schemes: tuple[str, ...]) -> None:
    """Append to `file` what it lacks of the content of `url`."""
    there = file.seek(0, os.SEEK_END)
    try:
        with _open(url, there, schemes) as answer:
            if there and answer.status != 206:  # the server sends all of it, again
                file.truncate(0)
                there = 0
            length = _announced(url, answer)
            total = None if length is None else there + length
            while block := answer.read(_BLOCK):
                there += len(block)
                if there > _MOST_BYTES:
                    raise DownloadError(f"{url} sends more than the {_MOST_BYTES} bytes allowed")
                write_all(file, block)
                progress(there / total if total else 0.0)
    except urllib.error.HTTPError as problem:
        problem.close()
        if problem.code == 416:  # there is nothing after what is there already
            return
        raise DownloadError(f"{url} answers {problem.code} {problem.reason}") from None
    except (HTTPException, urllib.error.URLError, TimeoutError, ConnectionError) as problem:
        reason = getattr(problem, "reason", None) or problem
        raise DownloadError(f"{url} cannot be downloaded: {reason}") from None
    if total is not None and there != total:
        raise DownloadError(f"{url} broke off after {there} of {total} bytes; try again")


def _announced(url: str, answer: HTTPResponse) -> int | None:
    """Return how many bytes the server says it sends, None if it does not say."""
    length = answer.headers.get("Content-Length")
    if length is None:
        return None
    if not (length.isascii() and length.isdigit() and len(length) < 20):
        raise DownloadError(
            f"{url} answers with Content-Length {length[:40]!r}, which is not a number of bytes; "
            "try again, or name another place by RMSIM_DATA"
        )
    return int(length)


def _open(url: str, start: int, schemes: tuple[str, ...]) -> HTTPResponse:
    class Redirections(urllib.request.HTTPRedirectHandler):
        def redirect_request(
            self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: str
        ) -> Any:
            _demand_scheme(newurl, schemes)
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    _demand_scheme(url, schemes)
    headers = {"Range": f"bytes={start}-"} if start else {}
    request = urllib.request.Request(url, headers={"User-Agent": "rmsim", **headers})
    opener = urllib.request.build_opener(Redirections)
    answer: HTTPResponse = opener.open(request, timeout=_PATIENCE)
    return answer


def _demand_scheme(url: str, schemes: tuple[str, ...]) -> None:
    if urlsplit(url).scheme not in schemes:
        raise DownloadError(f"{url} is not fetched: only {' or '.join(schemes)} is allowed")
