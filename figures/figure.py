"""What a figure is: parameters at each scale, data computed from them, a plot of the data."""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import numpy as np
import xarray as xr
from matplotlib.figure import Figure as Picture
from numpy.typing import NDArray

from rmtheory.provenance import parameters_hash

Parameters = Mapping[str, Any]

#: Processes that a figure computes in, unless the user says otherwise: see figures.workers.
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
        ``compute(parameters, progress)`` gives the data; a value X has its error in X_error.
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
    """

    name: str
    title: str
    caption: str
    parameters: Mapping[Scale, Parameters]
    compute: Callable[[Parameters, Progress], xr.Dataset]
    plot: Callable[[xr.Dataset], Picture]
    version: int = 1
    seed: int | None = None
    data: str = ""
    core_hours: Mapping[Scale, float] = field(default_factory=dict)

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
        """Return the hash that stored data must carry to be used again."""
        return parameters_hash(self.parameters[scale], self.source_version)
