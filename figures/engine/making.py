"""Make one figure: load its data or compute and store them, then plot them if need be.

Two caches save work, and both are decided by hashes. Data are used again if the key they carry is
current (:meth:`figures.engine.figure.Figure.keys`). Pictures are not drawn again if one hash over
the key of the data, the sources and package versions that draw, and the contents of all files of
the figure is the one stored when they were drawn: any change or damage gives another hash.

A figure that fails leaves its message in the folder, for the report.

Partial results of a long computation: a run that was killed resumes from them.

They are in a folder with a lock (:class:`rmtheory.runtime.run_store.RunStore`), and are valid for
one key of the data and one state of the sources of rmtheory and rmsim.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

import matplotlib.style
import xarray as xr
from matplotlib.figure import Figure as Picture

from figures.engine.figure import Context, Figure, Scale, source_hash
from rmtheory.base.errors import InvalidInputError, UnreadableDataError
from rmtheory.runtime import netcdf, provenance
from rmtheory.runtime.files import replacing, write_text
from rmtheory.runtime.provenance import canonical_json, package_versions
from rmtheory.runtime.run_store import Lock, RunStore
from rmtheory.runtime.untrusted import MALFORMED, read_bytes, read_json, read_text

STYLE = Path(__file__).with_name("style.mplstyle")

#: No date and no version: the same data give the same file.
_METADATA = {"png": {"Software": ""}, "pdf": {"CreationDate": None}}


@dataclass(frozen=True)
class Made:
    """What was done for one figure."""

    name: str
    #: ``computed`` or ``stored``: where the plotted data come from.
    data: str
    seconds: float
    files: tuple[Path, ...]
    #: Whether the pictures had to be drawn.
    drawn: bool = True
    #: Something the reader should know, such as a damaged file; empty otherwise.
    note: str = ""


def make(
    figure: Figure, scale: Scale, folder: Path, context: Context, *, recompute: bool = False
) -> Made:
    """Make `figure` in `folder`: its data as netCDF, NAME.png and NAME.pdf."""
    start = time.perf_counter()
    files = figure_files(figure, folder)
    path, partial = files[0], folder / ".parts" / files[0].stem
    discard_finished(partial, figure.key(scale), path)
    if not recompute and is_current(figure, scale, folder):
        return Made(figure.name, "stored", time.perf_counter() - start, files, drawn=False)
    dataset, content, note = (None, "", "") if recompute else _stored(figure, scale, path)
    origin = "stored"
    if dataset is None:
        origin = "computed"
        with partial_results(partial, figure.key(scale)) as results:
            netcdf.save(_computed(figure, scale, replace(context, partial=results)), path)
        content = content_hash(path)
        dataset = netcdf.load(path)
    store_hash(figure, scale, folder, (content, *draw(figure, dataset, folder)))
    return Made(figure.name, origin, time.perf_counter() - start, files, note=note)


def is_stored(figure: Figure, scale: Scale, folder: Path) -> bool:
    """Return whether the data of `figure` at `scale` are in `folder`."""
    if is_current(figure, scale, folder):
        return True
    return _stored(figure, scale, folder / figure.data_file)[0] is not None


def draw(figure: Figure, dataset: xr.Dataset, folder: Path) -> tuple[str, ...]:
    """Plot `dataset` and save it as PNG and PDF; return the hashes of these files."""
    with matplotlib.style.context(STYLE):
        picture = figure.plot(dataset)
        # The layout is solved once, not again for each file.
        picture.draw_without_rendering()
        picture.set_layout_engine("none")
        return tuple(_save(picture, path) for path in figure_files(figure, folder)[1:])


def _save(picture: Picture, path: Path) -> str:
    kind = path.suffix[1:]
    with replacing(path) as temporary:
        picture.savefig(temporary, format=kind, metadata=_METADATA[kind])
        return content_hash(temporary)


def _stored(figure: Figure, scale: Scale, path: Path) -> tuple[xr.Dataset | None, str, str]:
    """Return the stored data if they are those of `scale`, their hash, and what is wrong if so."""
    try:
        content = content_hash(path)  # first: it must not be that of later data
        dataset = netcdf.load(path)
    except FileNotFoundError:
        return None, "", ""
    except UnreadableDataError as problem:
        return None, "", f"{problem}; computed again"
    if dataset.attrs.get("parameters_hash") not in figure.keys(scale):
        return None, "", ""
    return dataset, content, ""


def _computed(figure: Figure, scale: Scale, context: Context) -> xr.Dataset:
    parameters = figure.parameters[scale]
    start = time.perf_counter()
    dataset = figure.compute(parameters, context)
    return dataset.assign_attrs(
        provenance.attributes(
            parameters,
            version=figure.source_version,
            seed=figure.seed,
            wall_time=time.perf_counter() - start,
            title=figure.title,
            scale=str(scale),
            figure=figure.name,
            device=context.device,
        )
    )


#: Folder of the hashes, beside the pictures; its name is that of version 0.1.
_FOLDER = ".drawn"

KINDS = ("png", "pdf")


def figure_files(figure: Figure, folder: Path) -> tuple[Path, ...]:
    """Return the files of `figure`: data, then pictures."""
    return (folder / figure.data_file, *(folder / f"{figure.name}.{kind}" for kind in KINDS))


def hash_file(figure: Figure, folder: Path) -> Path:
    """Return the file with the hash of `figure`."""
    return folder / _FOLDER / f"{figure.name}.sha256"


def is_current(figure: Figure, scale: Scale, folder: Path) -> bool:
    """Return whether data and pictures of `figure` at `scale` exist and are current."""
    try:
        stored = read_bytes(hash_file(figure, folder))
        contents = [content_hash(path) for path in figure_files(figure, folder)]
    except (FileNotFoundError, UnreadableDataError):
        return False
    return stored == _hash(figure, scale, contents).encode()


def store_hash(figure: Figure, scale: Scale, folder: Path, contents: Iterable[str]) -> None:
    """Store the hash of `figure`, given those of its files when they were read or written.

    The files are not read again here: another run may have replaced them since then.
    """
    file = hash_file(figure, folder)
    file.parent.mkdir(exist_ok=True)
    write_text(file, _hash(figure, scale, contents))


def content_hash(path: Path) -> str:
    """Return a hash of the bytes of a file."""
    return hashlib.sha256(read_bytes(path)).hexdigest()


def _hash(figure: Figure, scale: Scale, contents: Iterable[str]) -> str:
    text = "\n".join((figure.key(scale), drawing_hash(), *contents))
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def drawing_hash() -> str:
    """Return a hash of all that pictures depend on besides the data: sources, style, packages."""
    text = f"{source_hash('figures', 'rmtheory', 'rmsim')} {canonical_json(package_versions())}"
    return hashlib.sha256(text.encode()).hexdigest()


#: File with the failures, for the report.
FAILURES = ".failures.json"


@dataclass(frozen=True)
class Failure:
    """Why a figure could not be made: scale, message and, if it was unexpected, the traceback."""

    scale: str
    message: str
    traceback: str = ""


def failures(folder: Path) -> dict[str, Failure]:
    """Return the failures stored in `folder`, by the name of the figure."""
    try:
        stored = read_json(folder / FAILURES)
        by_name = {name: Failure(**entry) for name, entry in stored.items()}
        if not all(isinstance(text, str) for entry in stored.values() for text in entry.values()):
            raise ValueError("an entry that is not text")
        return by_name
    except (FileNotFoundError, UnreadableDataError, *MALFORMED):
        return {}


def store_failure(folder: Path, name: str, failure: Failure | None) -> None:
    """Store why figure `name` failed; None removes an earlier failure."""
    known = failures(folder)
    changed = {key: value for key, value in known.items() if key != name}
    if failure is not None:
        changed[name] = failure
    if changed == known:
        return
    if changed:
        write_text(
            folder / FAILURES, json.dumps({k: asdict(v) for k, v in changed.items()}, indent=1)
        )
    else:
        (folder / FAILURES).unlink(missing_ok=True)


#: File with the identity of the computation: its key and the hash of the sources.
_KEY = "key"

#: Patterns of the files; sweeps have folders of their own.
_FILES = (_KEY, "*.json", "*.nc")


@contextmanager
def partial_results(folder: Path, key: str) -> Iterator[Path]:
    """Lock `folder` for the partial results of a computation; remove it once all is computed.

    Partial results of other parameters, or of another version of the packages, are removed first.
    Processes that compute the same share the folder; the last of them removes it.

    Parameters
    ----------
    folder : Path
        Folder of the partial results of one figure.
    key : str
        Hash of what is computed (:meth:`figures.engine.figure.Figure.key`).
    """
    store = RunStore(folder, _KEY, _FILES)
    identity = f"{key} {source_hash('rmtheory', 'rmsim')}"

    def claim(lock: Lock) -> None:
        if _stored_identity(folder) == identity:
            return
        if not lock.exclude():
            allowed = "a folder in which no other version is at work on this figure"
            raise InvalidInputError("out", str(folder), allowed)
        store.empty()
        write_text(folder / _KEY, identity)

    with store.at_work(claim, shared=True) as lock:
        try:
            yield folder
        except BaseException:
            if all(path.name == _KEY for path in folder.glob("[!.]*")):  # no partial result yet
                _discard(store, lock)
            raise
        _discard(store, lock)


def discard_finished(folder: Path, key: str, data: Path) -> None:
    """Remove partial results of a run that was killed after it had stored the file `data`.

    Partial results newer than `data` belong to a run that computes them again, and stay.
    """
    store = RunStore(folder, _KEY, _FILES)
    with suppress(FileNotFoundError):
        older = (folder / _KEY).stat().st_mtime_ns < data.stat().st_mtime_ns
        if older and _stored_identity(folder).startswith(f"{key} "):
            with store.at_work(shared=True) as lock:
                _discard(store, lock)


def _stored_identity(folder: Path) -> str:
    """Return key and sources of the computation in `folder`; empty if there is none."""
    try:
        return read_text(folder / _KEY)
    except (FileNotFoundError, UnreadableDataError):
        return ""


def _discard(store: RunStore, lock: Lock) -> None:
    """Remove the partial results, unless other processes hold the lock."""
    store.remove(lock)
    with suppress(OSError):  # partial results of other figures may be there
        store.path.parent.rmdir()
