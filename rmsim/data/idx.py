"""Read IDX files, the format of MNIST: magic number, sizes, bytes (plain or gzip).

The magic number is 00 00 08 d for unsigned bytes in d dimensions; then d sizes as big-endian
32-bit integers; then exactly as many bytes as the sizes say.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rmtheory.errors import UnreadableDataError

_GZIP = b"\x1f\x8b"
_UNSIGNED_BYTE = 0x08

#: Bytes a file may unpack to, a hundred times the largest of MNIST: a gzip bomb stops here.
_MOST_BYTES = 5_000_000_000


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a plain or gzip file, uncompressed."""
    try:
        with Path(path).open("rb") as file:
            packed = file.read(2) == _GZIP
            file.seek(0)
            if not packed:
                return file.read()
            with gzip.GzipFile(fileobj=file) as unpacking:
                content = unpacking.read(_MOST_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
        reason = str(problem) or "it ends too early"
        raise UnreadableDataError(f"{path} is a damaged gzip file: {reason}") from None
    except OSError as problem:
        raise UnreadableDataError(f"{path} cannot be read: {problem.strerror}") from None
    if len(content) > _MOST_BYTES:
        raise UnreadableDataError(f"{path} unpacks to more than {_MOST_BYTES} bytes")
    return content


def parse(content: bytes, path: str | os.PathLike[str], dimensions: int) -> npt.NDArray[np.uint8]:
    """Return the array in `content`; `path` is its name in errors.

    Examples
    --------
    >>> parse(bytes([0, 0, 8, 1, 0, 0, 0, 2, 5, 7]), "labels", 1)
    array([5, 7], dtype=uint8)
    """
    header = 4 + 4 * dimensions
    magic = bytes((0, 0, _UNSIGNED_BYTE, dimensions))
    if content[:4] != magic:
        raise UnreadableDataError(
            f"{path} is no IDX file of bytes in {dimensions} dimensions: it begins with "
            f"{content[:4].hex(' ') or 'nothing'} instead of {magic.hex(' ')}"
        )
    if len(content) < header:
        raise UnreadableDataError(f"{path} is truncated: its header has {len(content)} bytes")
    shape = [int(size) for size in np.frombuffer(content, ">u4", dimensions, offset=4)]
    expected, found = math.prod(shape), len(content) - header
    if found != expected:
        sizes = " x ".join(map(str, shape))
        what = "is truncated" if found < expected else "has trailing bytes"
        raise UnreadableDataError(
            f"{path} {what}: {found} bytes for {sizes} = {expected} announced by its header"
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def read(
    path: str | os.PathLike[str], dimensions: int, sha256: str | None = None
) -> npt.NDArray[np.uint8]:
    """Read the file at `path`, whose uncompressed content has the checksum `sha256`, if given.

    Raises
    ------
    UnreadableDataError
        If the file is missing, truncated, too long, altered or of another kind; it is named.
    """
    content = read_bytes(path)
    values = parse(content, path, dimensions)
    if sha256 is not None:
        verify(content, path, sha256)
    return values


def verify(content: bytes, path: str | os.PathLike[str], sha256: str) -> None:
    """Raise unless the uncompressed `content` has the checksum `sha256`."""
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise UnreadableDataError(
            f"{path} is not the published file: sha256 of its content is {found}, not {sha256}"
        )
