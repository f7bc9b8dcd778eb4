"""A sweep: one function, evaluated at many points, each with a seed of its own.

The key of a point is the hash of its parameters and of the version of the sweep; its seed is a
hash of the parameters and of the seed of the sweep. Both depend on the point alone: not on the
order of work, on the number of workers, or on which other points there are. That is what lets a
killed run go on, and a finished one be extended.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rmsim.sweep.grid import Grid, point_key
from rmtheory import checks
from rmtheory.errors import InvalidInputError

#: What a sweep evaluates: (parameters of a point, seed) -> named numbers, texts and arrays.
Compute = Callable[[dict[str, Any], int], Mapping[str, Any]]

#: Seeds are stored as signed 64-bit integers.
_MOST_SEED = 2**63 - 1


@dataclass(frozen=True)
class Task:
    """One point as it is sent to a worker."""

    sweep: str
    version: int
    compute: str
    point: dict[str, Any]
    key: str
    seed: int


@dataclass(frozen=True)
class Sweep:
    """What is to be computed, where in the space of parameters, and from which seed.

    Parameters
    ----------
    name : str
        Name of the sweep, in messages and files.
    version : int
        Raised when the meaning of a point changes; stored points of another version are not used.
    compute : str
        The function as ``module:function``, so that any process can import it. It gets the
        parameters of a point and a seed, and returns a dict of numbers, texts, lists or arrays.
        A text named ``device`` goes to the provenance.
    grid : Grid
        The points.
    seed : int
        From which the seed of every point derives.
    paired : tuple of str
        Parameters that do not enter the seed: points that differ only in these draw the same
        random numbers, so their difference is known better than either of them.
    cost : callable, optional
        Rough work of a point, in any unit: the longest are done first, and the time left follows.

    Examples
    --------
    >>> grid = Grid.product({"n": (100, 200)}, {"jd": 0.5})
    >>> sweep = Sweep("demo", 1, "math:sqrt", grid, seed=3)
    >>> [task.point for task in sweep.tasks()]
    [{'jd': 0.5, 'n': 100}, {'jd': 0.5, 'n': 200}]
    >>> sweep.point_seed({"jd": 0.5, "n": 100}) == sweep.tasks()[0].seed
    True
    """

    name: str
    version: int
    compute: str
    grid: Grid
    seed: int = 0
    paired: tuple[str, ...] = ()
    cost: Callable[[dict[str, Any]], float] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        checks.integer("version", self.version, 0)
        object.__setattr__(self, "seed", checks.integer("seed", self.seed, 0, _MOST_SEED))
        load_compute(self.compute)
        known = {*self.grid.axes, *self.grid.fixed}
        if not set(self.paired) <= known:
            raise InvalidInputError("paired", self.paired, f"among {', '.join(sorted(known))}")

    def identity(self) -> dict[str, Any]:
        """What makes it this sweep and no other; the values along the axes are free to grow."""
        return {
            "name": self.name,
            "version": self.version,
            "seed": self.seed,
            "axes": list(self.grid.axes),
            "fixed": dict(self.grid.fixed),
            "paired": sorted(self.paired),
        }

    def point_seed(self, point: Mapping[str, Any]) -> int:
        """Return the seed of a point."""
        entering = {name: value for name, value in point.items() if name not in self.paired}
        text = f"{self.seed}\n{point_key(entering)}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) & _MOST_SEED

    def tasks(self) -> list[Task]:
        """Return the work of all points, in the order of the grid."""
        return [
            Task(
                sweep=self.name,
                version=self.version,
                compute=self.compute,
                point=point,
                key=point_key(point, self.version),
                seed=self.point_seed(point),
            )
            for point in self.grid.points()
        ]

    def cost_of(self, point: dict[str, Any]) -> float:
        """Return the rough work of a point; all the same if there is no hint."""
        return 1.0 if self.cost is None else max(float(self.cost(point)), 0.0)


def load_compute(path: str) -> Compute:
    """Import the function ``module:function``."""
    module, _, name = path.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as problem:
        allowed = f"module:function that can be imported ({problem})"
        raise InvalidInputError("compute", path, allowed) from problem
    if not callable(function):
        raise InvalidInputError("compute", path, "module:function, and a function")
    return function  # type: ignore[no-any-return]  # the name does not tell its type
