r"""Save and load labelled arrays as netCDF files, which any tool can read; nothing is pickled.

The last line of a file is ``rmtheory sha256`` and the checksum of all bytes before that line,
attributes included. HDF5 stores where its data end and reads no further, so every tool reads
such a file as before (a user block at the beginning is legal HDF5 too, but hides from xarray and
others what kind of file it is). The line is compared before HDF5 sees a byte: on damaged files that
library can loop for ever, deaf to signals.

Files of version 0.1 have no such line, only a checksum of their numbers as an attribute. They are
read by another process first, which is ended if it does not come to an end.

:func:`computed_once` computes what such a file lacks; the finished points of a long computation are
kept beside it until all are there.
"""

from __future__ import annotations

import glob
import hashlib
import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr

from rmtheory.base.errors import InvalidInputError, StorageError, UnreadableDataError
from rmtheory.runtime import provenance
from rmtheory.runtime.files import SEAL, leftovers, remedy, write_bytes
from rmtheory.runtime.run_store import Lock, RunStore
from rmtheory.runtime.untrusted import MOST_BYTES, read_bytes

_ENGINE: Literal["h5netcdf"] = "h5netcdf"
_CHECKSUM = "data_sha256"

#: Attribute that says that there is a last line, so that its loss is seen.
_SEALED = "file_sha256"
_WHERE = "in the last line of the file, of all bytes before that line"

_LINE = re.compile(rb"%b([0-9a-f]{64})\n\Z" % SEAL)
_LENGTH = len(SEAL) + 64 + 1

#: Seconds that a file without a checksum may take to be read.
_PATIENCE = 60

#: Reads standard input as :func:`_decoded` does. The limit of the processor's time holds even if
#: the process that waits for it is killed.
_TRIAL = """
import io, sys
most, seconds = map(int, sys.argv[1:])
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except ImportError:
    pass
import xarray as xr
try:
    content = io.BytesIO(sys.stdin.buffer.read())
    with xr.open_dataset(content, engine="h5netcdf") as file:
        if file.nbytes > most:
            sys.exit(f"its arrays have {file.nbytes} bytes, more than the {most} allowed")
        file.load()
except Exception as problem:
    sys.exit(" ".join(str(problem).split())[:300] or type(problem).__name__)
"""


def save(dataset: xr.Dataset, path: str | os.PathLike[str], argument: str = "out") -> None:
    """Write `dataset` to `path` at once or not at all, with checksums of its numbers and bytes.

    Raises
    ------
    InvalidInputError
        If there can be no such file, naming `argument`.
    StorageError
        If it cannot be written, for example because the disk is full; what was there is kept.
    """
    stamped = dataset.assign_attrs({_CHECKSUM: checksum(dataset), _SEALED: _WHERE})
    # In memory first: HDF5 does not survive a full disk.
    content = bytes(stamped.to_netcdf(None, engine=_ENGINE))
    line = b"%b%b\n" % (SEAL, hashlib.sha256(content).hexdigest().encode())
    try:
        write_bytes(path, content + line, argument)
    except OSError as problem:
        raise StorageError(
            f"{path} could not be written ({problem.strerror or problem}), and what was there "
            f"before is kept: {remedy(problem)} and run the same command again"
        ) from problem


def load(path: str | os.PathLike[str]) -> xr.Dataset:
    """Read a dataset into memory and check that it is what was written.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    UnreadableDataError
        If the file is damaged, naming it.
    """
    content = read_bytes(path)
    sealed = _LINE.search(content, max(0, len(content) - _LENGTH))
    if sealed is None:
        if _SEALED.encode() in content:  # the name of the attribute: at once, without HDF5
            raise UnreadableDataError(
                f"{path} was altered: the checksum in its last line is missing (a program that "
                "saves the file again drops it: compute it again, or read it with xarray)"
            )
        _demand_that_it_ends(path, content)
    elif hashlib.sha256(memoryview(content)[: sealed.start()]).hexdigest() != sealed[1].decode():
        raise UnreadableDataError(f"{path} was altered: its checksum does not match its bytes")
    dataset = _decoded(path, content)
    if dataset.attrs.get(_CHECKSUM) != checksum(dataset):
        raise UnreadableDataError(f"{path} was altered: its checksum does not match its numbers")
    return dataset


def _decoded(path: str | os.PathLike[str], content: bytes) -> xr.Dataset:
    """Return the data set in the bytes of a file, which HDF5 is known to survive."""
    try:
        with xr.open_dataset(io.BytesIO(content), engine=_ENGINE) as file:
            if file.nbytes > MOST_BYTES:
                raise ValueError(f"its arrays have {file.nbytes} bytes, more than {MOST_BYTES}")
            return file.load()
    except Exception as problem:  # HDF5 raises a dozen kinds; all mean the same here
        reason = " ".join(str(problem).split()) or type(problem).__name__
        raise UnreadableDataError(f"{path} cannot be read: {reason}") from problem


def _demand_that_it_ends(path: str | os.PathLike[str], content: bytes) -> None:
    """Let another process read `content`, and refuse it if that fails, crashes or does not end."""
    if not content.startswith(b"\x89HDF\r\n\x1a\n"):
        raise UnreadableDataError(f"{path} cannot be read: it is not a netCDF file")
    # Without -P, a file xarray.py in the folder of the user would be imported.
    command = [sys.executable, "-P", "-c", _TRIAL, str(MOST_BYTES), str(_PATIENCE)]
    try:
        answer = subprocess.run(
            command, input=content, capture_output=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        reason = f"it is damaged so that reading it takes more than {_PATIENCE} s"
        raise UnreadableDataError(f"{path} cannot be read: {reason}") from None
    if answer.returncode < 0:
        raise UnreadableDataError(f"{path} cannot be read: it is damaged so that HDF5 fails")
    if answer.returncode:
        reason = " ".join(answer.stderr.decode(errors="replace").split())
        raise UnreadableDataError(f"{path} cannot be read: {reason}")


def checksum(dataset: xr.Dataset) -> str:
    """Return a hash of names, dimensions and numbers of all variables, coordinates included."""
    digest = hashlib.sha256()
    for name in sorted(str(key) for key in dataset.variables):
        values = np.ascontiguousarray(dataset[name].values)
        text = values.dtype.kind in "OSUT"
        kind = "text" if text else values.dtype.str  # a text may come back as another type
        digest.update(f"{name} {dataset[name].dims} {kind} {values.shape}\n".encode())
        digest.update("\n".join(map(str, values.flat)).encode() if text else values.tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Stored:
    """Data in their file, and whether they had to be computed."""

    data: xr.Dataset
    computed: bool


#: Stores data that were computed from these parameters, removes the finished points, and returns
#: the data with their provenance.
Save = Callable[[xr.Dataset, Mapping[str, Any]], xr.Dataset]


def load_current(path: Path, key: str) -> xr.Dataset | None:
    """Return the data in `path` if their parameters have the hash `key`, else None."""
    try:
        data = load(path)
    except (FileNotFoundError, UnreadableDataError):
        return None
    return data if data.attrs.get("parameters_hash") == key else None


def computed_once(
    store: RunStore,
    key: str,
    claim: Callable[[Lock], None],
    compute: Callable[[Save], xr.Dataset],
    *,
    what: str,
    version: int,
    note: Callable[[str], None] | None = None,
) -> Stored:
    """Return the data `key` in the target of `store`, computed and stored there if need be.

    One run at a time is at work on a file. Another content of it is replaced once the data are
    there. A run that was killed after that leaves finished points: they are removed.

    Parameters
    ----------
    store : RunStore
        The folder of the finished points (:func:`~rmtheory.runtime.run_store.parts_of`).
    key : str
        Hash of the parameters of complete data.
    claim : callable
        Makes the folder that of this computation, or refuses.
    compute : callable
        Given a function that saves, computes what is missing and returns the saved data.
    what : str
        What is computed, for sentences.
    version : int
        Enters the provenance.
    note : callable, optional
        Called with a sentence about what is there already.
    """
    target = store.target
    if target is None:
        raise ValueError("the store has no target")
    data = load_current(target, key)
    if data is not None:
        if store.path.is_dir():
            with suppress(InvalidInputError), store.at_work(claim) as lock:
                store.remove(lock)
        return Stored(data, computed=False)
    with store.at_work(claim) as lock:
        data = load_current(target, key)  # of a run that has ended just now
        if data is not None:
            store.remove(lock)
            return Stored(data, computed=False)
        for leftover in leftovers(target.parent, glob.escape(target.name)):
            leftover.unlink(missing_ok=True)
        if target.exists() and note is not None:
            note(f"{target} holds something else, which is replaced once this {what} is done")
        begun = time.perf_counter()

        def finish(data: xr.Dataset, parameters: Mapping[str, Any]) -> xr.Dataset:
            seconds = time.perf_counter() - begun
            origin = provenance.attributes(parameters, version=version, wall_time=seconds)
            data = data.assign_attrs(origin)
            save(data, target)
            store.remove(lock)
            return data

        return Stored(compute(finish), computed=True)
