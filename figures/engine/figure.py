"""A figure: parameters at each scale, data computed from them, a plot of the data; and making it.

The key of the data is a hash of the parameters and of the source of ``compute``: stored data are
used again as long as their key is current. :func:`swept` runs the sweeps of a figure.

:func:`make` loads the data or computes and stores them, then plots them if need be. Two caches save
work, and both are decided by hashes. Data are used again if the key they carry is current
(:meth:`Figure.keys`). Pictures are not drawn again if one hash over the key of the data, the
sources and package versions that draw, and the contents of all files of the figure is the one
stored when they were drawn: any change or damage gives another hash. A figure that fails leaves its
message in the folder, for the report.

A run that was killed resumes from its partial results. They are in a folder with a lock
(:class:`rmtheory.runtime.run_store.RunStore`), and are valid for one key of the data and one state
of the sources of rmtheory and rmsim.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import sys
import tempfile
import textwrap
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.style
import numpy as np
import xarray as xr
from matplotlib.figure import Figure as Picture
from numpy.typing import NDArray

from rmtheory.base.errors import (
    InvalidInputError,
    NotConvergedError,
    RMError,
    UnreadableDataError,
    counted,
)
from rmtheory.runtime import netcdf, provenance
from rmtheory.runtime.files import replacing, write_text
from rmtheory.runtime.progress import Progress, silent
from rmtheory.runtime.provenance import canonical_json, package_versions, parameters_hash
from rmtheory.runtime.run_store import Lock, RunStore
from rmtheory.runtime.untrusted import MALFORMED, read_bytes, read_json, read_text

if TYPE_CHECKING:  # the list of figures needs none of it
    from rmsim.sweep.definition import Sweep
    from rmsim.sweep.running import Backend, SweepProgress

Parameters = Mapping[str, Any]

#: Folder that contains rmtheory, rmsim and figures.
ROOT = Path(__file__).resolve().parents[2]

#: Processes that a figure computes in, unless the user says otherwise.
JOBS = 2


def grid(bounds: Sequence[float], points: int) -> NDArray[np.float64]:
    """Return `points` equidistant numbers between the two `bounds`.

    They are rounded to twelve decimals, so that 0.3 is three tenths and not a sum of steps.

    Examples
    --------
    >>> grid([0.0, 1.0], 11)[3].item()
    0.3
    """
    low, high = bounds
    return np.asarray(np.round(np.linspace(low, high, points), 12), dtype=np.float64)


class Scale(StrEnum):
    """How much work to put into a figure."""

    #: Seconds: a few points, to see that all of it works.
    TINY = "tiny"
    #: Minutes for all figures together on two cores.
    QUICK = "quick"
    #: The resolution of the paper.
    PAPER = "paper"


@dataclass(frozen=True)
class Context:
    """Where a figure is computed and where its partial results are; no number depends on it.

    Parameters
    ----------
    progress : Progress
        Called as the computation advances.
    jobs : int
        Processes on this machine.
    dask : str, optional
        Address of a Dask scheduler at which sweeps are computed instead.
    partial : Path, optional
        Folder of the partial results, from which a killed run resumes; by default none are stored.
    device : str
        Where simulations run, whatever device the definition of a sweep names: that one enters the
        seeds of its points and stays what it is. A GPU has random numbers of its own: published
        numbers are those of the CPU.
    """

    progress: Progress = silent
    jobs: int = JOBS
    dask: str | None = None
    partial: Path | None = None
    device: str = "cpu"

    def backend(self) -> Backend:
        """Return where the points of a sweep are computed; each GPU has one process."""
        from rmsim.sweep.running import Dask, Local

        if self.dask is not None:
            return Dask(self.dask, device=self.device)
        return Local(self.jobs if self.device == "cpu" else None, self.device)

    @contextmanager
    def parts_folder(self) -> Iterator[Path]:
        """Give the folder of the partial results, by default a temporary one.

        Stored data depend on the source of ``compute``, which calls this by its name of 0.1.
        """
        if self.partial is not None:
            yield self.partial
            return
        with tempfile.TemporaryDirectory() as temporary:
            yield Path(temporary)


@dataclass(frozen=True)
class Figure:
    """One figure.

    Parameters
    ----------
    name : str
        Name on the command line and of its files.
    title, caption : str
        One line for the list, and what the panels show.
    parameters : mapping
        For each scale all that defines the data, as JSON values: their hash decides whether
        stored data are used again.
    compute : callable
        ``compute(parameters, context)`` gives the data; a value X has its error in X_error.
    plot : callable
        ``plot(dataset)`` draws the stored data and, of networks that learn, the stored runs of the
        trial in place of shorter ones.
    version : int
        To be raised when something that `compute` calls changes its answer, so that stored data
        are not used again; changes of `compute` itself are noticed.
    seed : int, optional
        Seed of the generator, where one is used.
    data : str, optional
        Name of the data, if not that of the figure: figures with the same `compute` and parameters
        share them.
    core_hours : mapping
        For the scales that take long, how many hours of one core to expect.
    earlier : tuple of str
        Source versions of earlier code that computed the same numbers: their data stay valid as
        long as `version` is theirs.
    """

    name: str
    title: str
    caption: str
    parameters: Mapping[Scale, Parameters]
    compute: Callable[[Parameters, Context], xr.Dataset]
    plot: Callable[[xr.Dataset], Picture]
    version: int = 1
    seed: int | None = None
    data: str = ""
    core_hours: Mapping[Scale, float] = field(default_factory=dict)
    earlier: tuple[str, ...] = ()

    @property
    def data_file(self) -> str:
        """Name of the file with the data."""
        return f"{self.data or self.name}.nc"

    @property
    def source_version(self) -> str:
        """The version and a hash of `compute`, blind to comments and layout.

        Changes of what `compute` calls are not seen: raise `version` for them.
        """
        tree = ast.dump(ast.parse(textwrap.dedent(inspect.getsource(self.compute))))
        return f"{self.version}-{hashlib.sha256(tree.encode()).hexdigest()[:12]}"

    def key(self, scale: Scale) -> str:
        """Return the hash that data computed now carry."""
        return parameters_hash(self.parameters[scale], self.source_version)

    def keys(self, scale: Scale) -> frozenset[str]:
        """Return the hashes of data that are used again: ours, and those of equal earlier code."""
        same = [source for source in self.earlier if source.startswith(f"{self.version}-")]
        equal = (parameters_hash(self.parameters[scale], source) for source in same)
        return frozenset((self.key(scale), *equal))


def source_hash(*packages: str) -> str:
    """Return a hash of the sources of `packages` and of the matplotlib style among them."""
    digest = hashlib.sha256()
    for package in packages:
        for path in sorted((ROOT / package).rglob("*")):
            if path.suffix in (".py", ".mplstyle"):
                digest.update(path.relative_to(ROOT).as_posix().encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


@contextmanager
def swept(sweeps: Mapping[str, Sweep], context: Context) -> Iterator[dict[str, Path]]:
    """Compute what is missing of all `sweeps` and give the folders with their points.

    Raises
    ------
    NotConvergedError
        If points failed; the others are kept.
    """
    from rmsim.sweep.running import run_sweep

    total, before = sum(len(sweep.grid) for sweep in sweeps.values()), 0
    with context.parts_folder() as folder:
        for name, sweep in sweeps.items():
            follow = partial(_follow, context.progress, before, total)
            report = run_sweep(sweep, folder / name, context.backend(), progress=follow, note=_say)
            if report.failures:
                first = report.failures[0]
                raise NotConvergedError(
                    f"{counted(len(report.failures), 'point')} failed, first: {first}"
                )
            before += len(sweep.grid)
        yield {name: folder / name for name in sweeps}


def _follow(progress: Progress, before: int, total: int, state: SweepProgress) -> None:
    progress(before + state.done, total)


def _say(sentence: str) -> None:
    print(f"figures: {sentence}", file=sys.stderr)


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


#: Gives the callback of progress of the figure called by its first argument.
Display = Callable[[str], AbstractContextManager[Progress]]


def make_all(
    figures: Iterable[Figure],
    scale: Scale,
    folder: Path,
    context: Context,
    display: Display,
    *,
    recompute: bool = False,
) -> Iterator[tuple[Figure, Made | Failure]]:
    """Make the figures one by one and give what came of each; one that fails stops no other.

    Failures are stored in `folder` for the report.
    """
    for figure in figures:
        outcome: Made | Failure
        try:
            with display(figure.name) as progress:
                here = replace(context, progress=progress)
                outcome = make(figure, scale, folder, here, recompute=recompute)
        except Exception as problem:  # whatever it is, the other figures are still wanted
            details = "" if isinstance(problem, RMError) else traceback.format_exc()
            message = str(problem) or type(problem).__name__
            outcome = Failure(str(scale), " ".join(message.split()), details)
        store_failure(folder, figure.name, outcome if isinstance(outcome, Failure) else None)
        yield figure, outcome


def hours_ahead(
    figures: Iterable[Figure], scale: Scale, folder: Path, *, recompute: bool = False
) -> dict[str, float]:
    """Return the core-hours of figures that take long and are not stored, each data set once."""
    hours: dict[str, float] = {}
    files: set[str] = set()
    for figure in figures:
        cost = figure.core_hours.get(scale, 0.0)
        if not cost or figure.data_file in files:
            continue
        if recompute or not is_stored(figure, scale, folder):
            files.add(figure.data_file)
            hours[figure.name] = cost
    return hours


def is_stored(figure: Figure, scale: Scale, folder: Path) -> bool:
    """Return whether the data of `figure` at `scale` are in `folder`."""
    if is_current(figure, scale, folder):
        return True
    return _stored(figure, scale, folder / figure.data_file)[0] is not None


def draw(figure: Figure, dataset: xr.Dataset, folder: Path) -> tuple[str, ...]:
    """Plot `dataset` and save it as PNG and PDF; return the hashes of these files."""
    with matplotlib.style.context(STYLE):
        picture = figure.plot(dataset)
        # The layout is solved once, not again for each file. None, where the style does not ask for
        # a layout, leaves no placeholder as "none" does, for which everything is drawn twice; a
        # file that is saved sets it to that of the style again.
        picture.draw_without_rendering()
        with matplotlib.rc_context({"figure.constrained_layout.use": False}):
            picture.set_layout_engine(None)
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
    """Return a hash of all that pictures depend on besides their data.

    Sources, style, packages, and the stored runs that figures draw in place of shorter ones.
    """
    sources = source_hash("figures", "rmtheory", "rmsim")
    stored = sorted((ROOT / "figures" / "data" / "trained").glob("*.json"))
    contents = " ".join(f"{path.name} {content_hash(path)}" for path in stored)
    text = f"{sources} {canonical_json(package_versions())} {contents}"
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


def kept_rows(
    folder: Path, name: str, solve: Callable[[], list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Return the rows `name` among the partial results in `folder`; solve for them if need be.

    A file that was cut off or altered is computed again.
    """
    store = RunStore(folder)
    try:
        rows = store.load(f"{name}.json").get("rows")
        if isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows):
            return rows
    except (FileNotFoundError, UnreadableDataError):
        pass
    rows = solve()
    store.save(f"{name}.json", {"rows": rows})
    return rows


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
