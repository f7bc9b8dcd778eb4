"""A figure: parameters at each scale, data computed from them, a plot of the data.

The key of the data is a hash of the parameters and of the source of ``compute``: stored data are
used again as long as their key is current. :func:`swept` runs the sweeps of a figure.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import xarray as xr
from matplotlib.figure import Figure as Picture
from numpy.typing import NDArray

from rmtheory.base.errors import NotConvergedError
from rmtheory.base.wording import counted
from rmtheory.runtime.provenance import parameters_hash

if TYPE_CHECKING:  # the list of figures needs none of it
    from rmsim.sweep import Backend, Sweep
    from rmsim.sweep import Progress as SweepProgress

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


class Progress(Protocol):
    """Called by a computation as it advances."""

    def __call__(self, done: int, total: int) -> None:
        """Say that `done` of `total` pieces of work are finished."""


def silent(done: int, total: int) -> None:
    """Report nothing."""


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
        from rmsim.sweep import Dask, Local

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
        ``plot(dataset)`` draws the stored data and nothing else.
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
    from rmsim.sweep import run_sweep

    total, before = sum(len(sweep.grid) for sweep in sweeps.values()), 0
    with context.parts_folder() as folder:
        for name, sweep in sweeps.items():
            follow = partial(_follow, context.progress, before, total)
            report = run_sweep(
                sweep, folder / name, context.backend(), on_progress=follow, note=_say
            )
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
