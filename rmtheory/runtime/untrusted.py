"""Read files that somebody else may have cut off, altered or put there: all readers go this way.

Whatever a file holds, reading it ends, takes bounded memory, and either gives what was stored or
raises :class:`~rmtheory.base.errors.UnreadableDataError` in one sentence. A pipe or a device is
refused before a byte is read, sizes are compared with what a header announces before memory is
taken, and nothing is unpickled. A file that is not there raises FileNotFoundError, which is no
damage.
"""

from __future__ import annotations

import errno
import gzip
import json
import math
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt

from rmtheory.base.errors import StorageError, UnreadableDataError

AnyPath = str | os.PathLike[str]


class Readable(Protocol):
    """What bytes can be read from: a file, or what a gzip file unpacks to."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""


#: Bytes that a file may have, or unpack to: more than any data set of this project.
MOST_BYTES = 4_000_000_000

#: Bytes and values of a JSON text; a value takes about 100 bytes of memory.
MOST_JSON_BYTES = 256_000_000
MOST_JSON_VALUES = 4_000_000

#: What goes wrong in code that takes values out of a document of another shape than expected.
MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

#: Lists within lists of a JSON text, and decimal digits of an integer.
_MOST_DEPTH = 64
_MOST_DIGITS = 100

#: Arrays of an npz archive, and characters of the header of one.
_MOST_ARRAYS = 1000
_MOST_HEADER = 10_000

_GZIP = b"\x1f\x8b"
_BLOCK = 1 << 20

_WHAT = {
    stat.S_ISDIR: "a folder",
    stat.S_ISFIFO: "a pipe",
    stat.S_ISSOCK: "a socket",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
}


def _flag(name: str) -> int:
    return int(getattr(os, name, 0))  # not every system has all of them


@contextmanager
def opened(path: AnyPath) -> Iterator[BinaryIO]:
    """Open a regular file to read bytes; links are followed, nothing is waited for.

    Raises
    ------
    FileNotFoundError
        If it is not there.
    UnreadableDataError
        If it is a pipe, a device or a folder, or must not be read; also if reading it fails later.
    """
    # A pipe without a writer would block here; a terminal must not become that of the process.
    flags = os.O_RDONLY | _flag("O_NONBLOCK") | _flag("O_NOCTTY") | _flag("O_BINARY")
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            _demand_regular(path, file)
            yield file
    except NotADirectoryError as problem:
        raise FileNotFoundError(problem.errno, problem.strerror, os.fspath(path)) from None
    except FileNotFoundError:
        raise
    except OSError as problem:
        raise UnreadableDataError(f"{path} cannot be read: {_reason(problem)}") from None
    except ValueError as problem:
        if "null byte" not in str(problem):
            raise
        raise UnreadableDataError(f"{str(path)!r} cannot be the name of a file") from None


@contextmanager
def opened_to_append(path: AnyPath) -> Iterator[BinaryIO]:
    """Open a regular file to append bytes, unbuffered; it is made if need be, never emptied.

    Raises
    ------
    StorageError
        If it is a link (what it points to is left alone), a pipe, a device or a folder.
    OSError
        If the system refuses for another reason, such as a full disk.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | _flag("O_NOFOLLOW") | _flag("O_NONBLOCK")
    try:
        descriptor = os.open(path, flags | _flag("O_NOCTTY") | _flag("O_BINARY"), 0o666)
    except OSError as problem:
        what = _kind(path)
        if what is None:
            raise
        raise StorageError(_refusal(path, what)) from problem
    with os.fdopen(descriptor, "ab", buffering=0) as file:
        what = _other_than_regular(os.fstat(file.fileno()).st_mode)
        if what is not None:
            raise StorageError(_refusal(path, what))
        yield file


def write_all(file: IO[bytes], content: bytes) -> None:
    """Write all of `content` to an unbuffered file, which may take it in pieces."""
    written = 0
    while written < len(content):
        written += file.write(content[written:]) or 0


def _refusal(path: AnyPath, what: str) -> str:
    return f"{path} is {what} and is not written to: remove it, and run the same command again"


def _kind(path: AnyPath) -> str | None:
    """Say what is at `path`, links not followed; None if a regular file or nothing."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return None
    return "a symbolic link" if stat.S_ISLNK(mode) else _other_than_regular(mode)


def _other_than_regular(mode: int) -> str | None:
    if stat.S_ISREG(mode):
        return None
    return next((what for test, what in _WHAT.items() if test(mode)), "no regular file")


def _demand_regular(path: AnyPath, file: IO[bytes]) -> None:
    what = _other_than_regular(os.fstat(file.fileno()).st_mode)
    if what is not None:
        raise UnreadableDataError(
            f"{path} cannot be read: it is {what}, not a regular file; remove it or name another"
        )


def _reason(problem: OSError) -> str:
    if problem.errno == errno.EISDIR:  # some systems refuse to open it
        return "it is a folder, not a regular file; remove it or name another"
    return problem.strerror or " ".join(str(problem).split()) or type(problem).__name__


def read_bytes(path: AnyPath, most: int = MOST_BYTES) -> bytes:
    """Return the content of a regular file of at most `most` bytes.

    Raises
    ------
    FileNotFoundError
        If it is not there.
    UnreadableDataError
        If it is longer, no regular file, or must not be read.
    """
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise UnreadableDataError(_too_long(path, size, most))
        content = at_most(path, file, most + 1)
    if len(content) > most:  # it grew, or the system does not know its size
        raise UnreadableDataError(_too_long(path, len(content), most))
    return content


def _too_long(path: AnyPath, size: int, most: int) -> str:
    return f"{path} has {size} bytes, more than the {most} that such a file may have"


def at_most(path: AnyPath, file: Readable, most: int) -> bytes:
    """Return up to `most` bytes of `file`, block by block: the memory follows what is there."""
    blocks, left = [], most
    try:
        while left and (block := file.read(min(_BLOCK, left))):
            blocks.append(block)
            left -= len(block)
        return b"".join(blocks)
    except MemoryError:
        raise UnreadableDataError(f"{path} does not fit into the memory") from None


def read_text(path: AnyPath, most: int = MOST_JSON_BYTES) -> str:
    """Return the content of a regular file in UTF-8; errors as of :func:`read_bytes`."""
    try:
        return read_bytes(path, most).decode("utf-8")
    except UnicodeDecodeError as problem:
        raise UnreadableDataError(
            f"{path} was altered or is cut off: byte {problem.start} is not UTF-8"
        ) from None


def read_json(path: AnyPath, *, constants: bool = False, most: int = MOST_JSON_BYTES) -> Any:
    """Return the JSON value in a file.

    Parameters
    ----------
    path : path
        The file.
    constants : bool
        Whether NaN, Infinity and -Infinity are allowed, which JSON itself does not know.
    most : int
        Bytes that the file may have.

    Raises
    ------
    FileNotFoundError
        If it is not there.
    UnreadableDataError
        If it is not such a file, or not strict JSON.
    """
    try:
        return parse_json(read_text(path, most), constants=constants)
    except ValueError as problem:
        raise UnreadableDataError(f"{path} was altered or is cut off: {problem}") from None


def parse_json(text: str, *, constants: bool = False) -> Any:
    """Return the JSON value of `text`; strict: each name once, numbers finite, depth bounded.

    Raises
    ------
    ValueError
        In words that end a sentence.

    Examples
    --------
    >>> parse_json('{"epoch": 3}')
    {'epoch': 3}
    >>> parse_json('{"epoch": Infinity}')
    Traceback (most recent call last):
    ...
    ValueError: it holds Infinity, which is not a number
    """
    if sum(map(text.count, ",[{")) > MOST_JSON_VALUES:
        raise ValueError(f"it holds more than {MOST_JSON_VALUES} values")

    def number(digits: str) -> float:
        value = float(digits)
        if not constants and not math.isfinite(value):
            raise ValueError(f"it holds {_short(digits)}, which is beyond all floats")
        return value

    def constant(name: str) -> float:
        if not constants:
            raise ValueError(f"it holds {name}, which is not a number")
        return float(name)

    try:
        value = json.loads(
            text,
            parse_float=number,
            parse_constant=constant,
            parse_int=_integer,
            object_pairs_hook=_without_repetition,
        )
    except json.JSONDecodeError as problem:
        where = f"line {problem.lineno}, column {problem.colno}"
        raise ValueError(f"it is not JSON ({problem.msg} at {where})") from None
    except RecursionError:
        raise ValueError("its lists are nested too deeply") from None
    except MemoryError:
        raise ValueError("it does not fit into the memory") from None
    _demand_shallow(value)
    if "\\u" in text:  # half a character, which cannot be written or printed again
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("it holds half a character") from None
    return value


def _integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"it holds an integer of {len(digits)} digits")
    return int(digits)


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"it holds {_short(repr(name))} twice")
            seen.add(name)
    return mapping


def _demand_shallow(value: Any) -> None:
    """Refuse what would exhaust the stack of those who walk through it."""
    level = [value]
    for _ in range(_MOST_DEPTH):
        inner = [part for part in level if isinstance(part, (list, dict))]
        if not inner:
            return
        level = [v for part in inner for v in (part.values() if isinstance(part, dict) else part)]
    if any(isinstance(part, (list, dict)) for part in level):
        raise ValueError("its lists are nested too deeply")


def _short(text: str, most: int = 40) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


@contextmanager
def opened_unpacked(path: AnyPath) -> Iterator[Readable]:
    """Open a plain or gzip file to read its content, unpacked as far as it is read.

    Raises
    ------
    UnreadableDataError
        If it is not there, no regular file or must not be read; also if it turns out to be damaged.
    """
    try:
        with opened(path) as file, _unpacking(path, file) as content:
            yield content
    except FileNotFoundError as problem:
        raise UnreadableDataError(f"{path} cannot be read: {problem.strerror}") from None


@contextmanager
def _unpacking(path: AnyPath, file: BinaryIO) -> Iterator[Readable]:
    packed = file.read(2) == _GZIP
    file.seek(0)
    if not packed:
        yield file
        return
    try:
        with gzip.GzipFile(fileobj=file) as content:
            yield content
    except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
        reason = str(problem) or "it ends too early"
        raise UnreadableDataError(f"{path} is a damaged gzip file: {reason}") from None


def read_npz(
    path: AnyPath, names: Sequence[str] | None = None, most: int = MOST_BYTES
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays `names` of the npz archive at `path`; all of them by default.

    Parameters
    ----------
    path : path
        The archive.
    names : sequence of str, optional
        Arrays that it must hold.
    most : int
        Bytes that the arrays may have together, or those of the file itself if these are more.

    Raises
    ------
    UnreadableDataError
        If the file is missing, damaged, holds pickled objects, more than `most` or lacks an array.
    """
    try:
        with opened(path) as file:
            return _arrays(path, file, names, most)
    except FileNotFoundError as problem:
        raise UnreadableDataError(f"{path} cannot be read: {problem.strerror}") from None


def read_npy(path: AnyPath, most: int = MOST_BYTES) -> npt.NDArray[Any]:
    """Return the array in the npy file at `path`.

    Parameters
    ----------
    path : path
        The file.
    most : int
        Bytes that the array may have.

    Raises
    ------
    UnreadableDataError
        If the file is missing, damaged, holds pickled objects or more than `most` bytes.
    """
    try:
        with opened(path) as file:
            shape, dtype, start = _header(file)
            size, announced = os.fstat(file.fileno()).st_size, math.prod(shape) * dtype.itemsize
            if announced > most:
                raise ValueError(f"its array has {announced} bytes, more than the {most} allowed")
            if announced != size - start:
                raise ValueError(
                    f"it must have {announced} bytes by its header, and has {size - start}"
                )
            file.seek(0)
            array: npt.NDArray[Any] = np.lib.format.read_array(
                file, allow_pickle=False, max_header_size=_MOST_HEADER
            )
    except FileNotFoundError as problem:
        raise UnreadableDataError(f"{path} cannot be read: {problem.strerror}") from None
    except (OSError, *MALFORMED) as problem:
        reason = " ".join(str(problem).split())
        raise UnreadableDataError(f"{path} cannot be read: {reason}") from None
    return array


def _arrays(
    path: AnyPath, file: BinaryIO, names: Sequence[str] | None, most: int
) -> dict[str, npt.NDArray[Any]]:
    size = os.fstat(file.fileno()).st_size
    try:
        if not zipfile.is_zipfile(file):
            raise UnreadableDataError(f"{path} is not an npz archive, or its end is missing")
        with zipfile.ZipFile(file) as archive:
            members = _members(archive)
            wanted = list(members) if names is None else list(names)
            if not set(wanted) <= set(members):
                there = ", ".join(members) or "none"
                raise UnreadableDataError(
                    f"{path} must hold the arrays {', '.join(wanted)}; it has {there}"
                )
            _demand_sizes(archive, members, wanted, max(most, size))
            return {name: _array(archive, members[name]) for name in wanted}
    except UnreadableDataError:
        raise
    except MemoryError:
        raise UnreadableDataError(f"{path} does not fit into the memory") from None
    except Exception as problem:  # zipfile and numpy raise a dozen kinds on damaged files
        reason = " ".join(str(problem).split()) or type(problem).__name__
        raise UnreadableDataError(f"{path} cannot be read: {_short(reason, 200)}") from None


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return the members of an archive by the names of their arrays."""
    infos = archive.infolist()
    if len(infos) > _MOST_ARRAYS:
        raise ValueError(f"it holds {len(infos)} arrays, more than {_MOST_ARRAYS}")
    members = {info.filename.removesuffix(".npy"): info for info in infos}
    if len(members) != len(infos):
        raise ValueError("it holds two arrays of the same name")
    for name, info in members.items():
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name} is packed in a way that numpy does not use")
    return members


def _demand_sizes(
    archive: zipfile.ZipFile,
    members: Mapping[str, zipfile.ZipInfo],
    wanted: Sequence[str],
    most: int,
) -> None:
    """Compare the arrays that the headers announce with the room they have, before they are read.

    An archive says how long a member is, and never unpacks more.
    """
    total = 0
    for name in wanted:
        info = members[name]
        with archive.open(info) as file:
            shape, dtype, start = _header(file)
        if dtype.itemsize == 0 and math.prod(shape) > 0:
            raise ValueError(f"{name} is of a type without bytes")
        announced = math.prod(shape) * dtype.itemsize
        if announced != info.file_size - start:
            raise ValueError(
                f"{name} must have {announced} bytes by its header, and has "
                f"{info.file_size - start}"
            )
        total += announced
    if total > most:
        raise ValueError(f"its arrays have {total} bytes, more than the {most} allowed")


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Return shape and type of an array, and where its numbers begin."""
    try:
        version = np.lib.format.read_magic(file)
    except ValueError:
        raise ValueError("it is not an array in numpy's format (.npy)") from None
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"it has the format {version} of arrays, which numpy does not write")
    shape, _, dtype = readers[version](file, max_header_size=_MOST_HEADER)
    if dtype.hasobject:
        raise ValueError("it holds a pickled object, and nothing is unpickled")
    if any(not isinstance(length, int) or length < 0 for length in shape):
        raise ValueError(f"it holds an array of shape {shape}")
    return tuple(shape), dtype, file.tell()


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> npt.NDArray[Any]:
    with archive.open(info) as file:
        array: npt.NDArray[Any] = np.lib.format.read_array(
            file, allow_pickle=False, max_header_size=_MOST_HEADER
        )
        if file.read(1):  # at its end the checksum is compared
            raise ValueError(f"{info.filename} has bytes after its array")
    return array
