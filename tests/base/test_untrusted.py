"""Files that somebody else altered or put there: reading them ends, in one sentence."""

import gzip
import io
import os
import resource
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rmsim.data import mnist
from rmtheory.base.errors import StorageError, UnreadableDataError
from rmtheory.runtime import untrusted
from rmtheory.runtime.untrusted import (
    opened_to_append,
    parse_json,
    read_bytes,
    read_json,
    read_npz,
    read_text,
)

Reader = Callable[[Path], Any]

READERS: dict[str, Reader] = {
    "bytes": read_bytes,
    "text": read_text,
    "json": read_json,
    "npz": read_npz,
    "idx": lambda path: mnist.read_idx(path, 1),
}


# What is no regular file


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "link to a pipe", "unreadable"])
def test_what_is_no_regular_file_is_refused_at_once(kind: str, reader: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path = Path("/dev/zero")
    elif kind == "link to a pipe":
        os.mkfifo(tmp_path / "pipe")
        path.symlink_to(tmp_path / "pipe")
    else:
        path.symlink_to(path)  # a loop: root may read everything else
    with pytest.raises(UnreadableDataError, match=f"{path} cannot be read: "):
        READERS[reader](path)


@pytest.mark.parametrize("reader", ["bytes", "text", "json"])
def test_a_file_that_is_not_there_is_no_damage(reader: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("1")
    for path in (tmp_path / "nothing", tmp_path / "file" / "below"):
        with pytest.raises(FileNotFoundError):
            READERS[reader](path)


def test_links_to_regular_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[1]")
    (tmp_path / "b.json").symlink_to("a.json")
    assert read_json(tmp_path / "b.json") == [1]


@pytest.mark.parametrize("dangling", [False, True])
def test_nothing_is_appended_through_a_link(dangling: bool, tmp_path: Path) -> None:
    target, path = tmp_path / "precious", tmp_path / "link"
    if not dangling:
        target.write_text("kept")
    path.symlink_to(target)
    with (
        pytest.raises(StorageError, match="link is a symbolic link and is not written to"),
        opened_to_append(path),
    ):
        pass
    assert target.exists() is not dangling
    assert dangling or target.read_text() == "kept"


@pytest.mark.parametrize("kind", ["a pipe", "a folder"])
def test_nothing_is_appended_to_what_is_no_file(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    if kind == "a pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(StorageError, match=f"file is {kind} and"), opened_to_append(path):
        pass


def test_appending_keeps_what_is_there(tmp_path: Path) -> None:
    for content in (b"one", b"two"):
        with opened_to_append(tmp_path / "file") as file:
            untrusted.write_all(file, content)
    assert (tmp_path / "file").read_bytes() == b"onetwo"


def test_long_files_are_refused_before_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "long"
    with path.open("wb") as file:
        file.truncate(1 << 42)  # takes no room on the disk
    for reader in READERS.values():
        with pytest.raises(UnreadableDataError, match="long"):
            reader(path)


# JSON


STRICT = {
    "": "it is not JSON",
    '{"a": ': r"it is not JSON \(.* at line 1, column 7\)",
    "NaN": "it holds NaN",
    '{"a": -Infinity}': "it holds -Infinity",
    "1e999": "it holds 1e999, which is beyond",
    "1" * 101: "it holds an integer of 101 digits",
    "1" * 5000: "it holds an integer of 5000 digits",
    "[" * 100_000: "its lists are nested too deeply",
    "[" * 100 + "]" * 100: "its lists are nested too deeply",
    '{"a":' * 100_000 + "1" + "}" * 100_000: "its lists are nested too deeply",
    '{"a": 1, "a": 2}': "it holds 'a' twice",
    r'"\ud800"': "it holds half a character",
    "[" + "0," * 4_000_000 + "0]": "it holds more than 4000000 values",
}


@pytest.mark.parametrize(("text", "words"), STRICT.items(), ids=range(len(STRICT)))
def test_json_is_read_strictly(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(UnreadableDataError, match=rf"a\.json was altered or is cut off: {words}"):
        read_json(path)


def test_json_that_is_allowed() -> None:
    assert parse_json("[" * 64 + "]" * 64)
    assert parse_json("[NaN, Infinity, 1e999]", constants=True)[1:] == [np.inf, np.inf]
    assert parse_json(r'{"\u03bb": [1.5, null, true, "\ud83d\ude00"]}') == {
        "λ": [1.5, None, True, "😀"]
    }


# npz


def _npy(shape: object, dtype: str = "<f8", data: bytes = b"") -> bytes:
    """Return an array whose header says what it likes."""
    text = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


def _zip(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _bomb(length: int) -> bytes:
    """Return an archive of zeros; a thousand times smaller than what it announces."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("x.npy", "w", force_zip64=True) as file,
    ):
        file.write(_npy((length,), "|u1"))
        for _ in range(length >> 20):
            file.write(bytes(1 << 20))
    return buffer.getvalue()


def _encrypted() -> bytes:
    content = bytearray(_zip({"x.npy": _npy((1,), data=bytes(8))}))
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


HOSTILE: dict[str, bytes] = {
    "4 PB": _zip({"x.npy": _npy((1 << 49,))}),
    "beyond 64 bits": _zip({"x.npy": _npy((1 << 62, 1 << 62))}),
    "negative": _zip({"x.npy": _npy((-1,), data=bytes(8))}),
    "no tuple": _zip({"x.npy": _npy("'shape'")}),
    "truth value": _zip({"x.npy": _npy("(True,)", data=bytes(8))}),
    "nested header": _zip({"x.npy": _npy("(" * 4000 + ")" * 4000)}),
    "no type": _zip({"x.npy": _npy((1,), "x99")}),
    "object": _zip({"x.npy": _npy((1,), "|O", bytes(8))}),
    "version 9": _zip({"x.npy": b"\x93NUMPY\x09\x00" + bytes(80)}),
    "empty member": _zip({"x.npy": b""}),
    "long member": _zip({"x.npy": _npy((1,), data=bytes(9))}),
    "bzip2": _zip({"x.npy": _npy((1,), data=bytes(8))}, zipfile.ZIP_BZIP2),
    "encrypted": _encrypted(),
    "empty": b"",
    "text": b"PK\x03\x04 no archive",
    "many": _zip({f"{i}.npy": b"" for i in range(1001)}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(HOSTILE[name])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UnreadableDataError, match=r"a\.npz "):
        read_npz(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


def test_bombs_are_refused_by_their_header(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    content = bytearray(_bomb(8 << 20))
    path.write_bytes(content)
    with pytest.raises(UnreadableDataError, match="8388608 bytes, more than the 1000000 allowed"):
        read_npz(path, most=1_000_000)
    # What the archive says of a length bounds what is unpacked: a lie is seen as such.
    place = content.index(b"PK\x01\x02") + 24
    content[place : place + 4] = struct.pack("<L", 1000)
    path.write_bytes(content)
    with pytest.raises(UnreadableDataError, match=r"a\.npz cannot be read: "):
        read_npz(path, most=1_000_000)


def test_two_arrays_of_one_name(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("x", _npy((1,), data=bytes(8)))
        archive.writestr("x.npy", _npy((1,), data=bytes(8)))
    (tmp_path / "a.npz").write_bytes(buffer.getvalue())
    with pytest.raises(UnreadableDataError, match="two arrays of the same name"):
        read_npz(tmp_path / "a.npz")


def test_archives_come_back(tmp_path: Path) -> None:
    arrays = {
        "a": np.arange(6.0).reshape(2, 3),
        "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "text": np.array("λ"),
        "none": np.zeros((0, 3), np.int8),
        "truth": np.array([True, False]),
    }
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", **arrays)  # type: ignore[operator]
        result = read_npz(tmp_path / "a.npz")
        assert list(result) == list(arrays)
        for name, array in arrays.items():
            assert result[name].dtype == array.dtype
            assert (result[name] == array).all()


# gzip


def test_gzip_bombs_stop_at_what_the_header_announces(tmp_path: Path) -> None:
    path = tmp_path / "labels.gz"
    zeros = gzip.compress(bytes(30 << 20), 1)
    for header in (b"\0\0\x08\x01\0\0\0\x05", b"\0\0\x08\x01\xff\xff\xff\xff", b"\0\0\x0d\x01"):
        path.write_bytes(gzip.compress(header) + zeros)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(UnreadableDataError, match=r"labels\.gz "):
            mnist.read_idx(path, 1)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kB


def test_many_names_one_of_them_twice_are_refused_in_a_moment(tmp_path: Path) -> None:
    names = [f'"n{k}": 1' for k in range(200_000)]
    (tmp_path / "x.json").write_text("{" + ", ".join([*names, names[-1]]) + "}")
    start = time.process_time()
    with pytest.raises(UnreadableDataError, match="'n199999' twice"):
        read_json(tmp_path / "x.json")
    assert time.process_time() - start < 20  # counting every name would take an hour


@pytest.mark.parametrize("kind", ["|V0", "<U0"])
def test_arrays_of_items_without_bytes_are_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.npz"
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': (10**17,), }}"
    text = header.replace("10**17", str(10**17)).ljust(117) + "\n"
    content = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", content)
    with pytest.raises(UnreadableDataError, match="without bytes"):
        read_npz(path, ["x"])
