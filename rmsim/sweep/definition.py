"""A sweep: one function, evaluated at the points of a grid, each with a seed of its own.

The key of a point is the hash of its parameters and of the version of the sweep; its seed is a
hash of the parameters and of the seed of the sweep. Both depend on the point alone: not on the
order of work, on the number of workers, or on which other points there are. Therefore a killed run
can be resumed, and a finished one extended.

Results are numbers, texts and arrays, stored as JSON to the last bit. A finite scalar is a plain
JSON value, so that a result file can be read by eye. An array, and a scalar that is not finite, is
its type, its shape and the base64 of its little-endian bytes: exact, compact, and readable in any
language. Nothing is pickled.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError, RMError
from rmtheory.runtime.provenance import parameters_hash
from rmtheory.runtime.untrusted import MALFORMED

#: A value along an axis.
Scalar = int | float | str | bool

#: What a sweep evaluates: (parameters of a point, seed) -> named numbers, texts and arrays.
Compute = Callable[[dict[str, Any], int], Mapping[str, Any]]

#: Seeds are stored as signed 64-bit integers.
_MOST_SEED = 2**63 - 1


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
        The function as ``module:function``, so that any process can import it. It takes the
        parameters of a point and a seed, and returns a dict of numbers, texts, lists or arrays.
        A text named ``device`` goes to the provenance. A function that can compute on a GPU has an
        argument ``device`` with a default: where to compute is a matter of the run, and changes
        neither point nor seed.
    grid : Grid
        The points.
    seed : int
        From which the seed of every point derives.
    paired : tuple of str
        Parameters that do not enter the seed: points that differ only in these draw the same
        random numbers, so their difference is known better than either of them.
    cost : callable, optional
        Rough work of a point, in any unit: the longest are done first, and the time left follows.
    unit : float, optional
        CPU-seconds of a unit of `cost`, if they are known: a run begins with an estimate of its
        time. Points that are stored say it better.

    Examples
    --------
    >>> import rmsim as rs
    >>> grid = rs.Grid.product({"n": (100, 200)}, {"jd": 0.5})
    >>> sweep = rs.Sweep("demo", 1, "math:sqrt", grid, seed=3)
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
    unit: float | None = field(default=None, compare=False)

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
        """Return the rough work of a point; all the same if no cost is given."""
        return 1.0 if self.cost is None else max(float(self.cost(point)), 0.0)


@dataclass(frozen=True)
class Task:
    """One point as it is sent to a worker, which computes it on `device` if that is given."""

    sweep: str
    version: int
    compute: str
    point: dict[str, Any]
    key: str
    seed: int
    device: str | None = None


def takes_device(function: Callable[..., object]) -> bool:
    """Return whether a function has an argument ``device``."""
    return "device" in inspect.signature(function).parameters


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
    return function  # type: ignore[no-any-return]  # the type is not known from the name


def load_compute_of_many(path: str) -> Callable[..., list[Mapping[str, object]]] | None:
    """Import the function that computes several points together, if there is one.

    It is called like the one that computes one, with ``_of_many`` at the end, in the same module,
    and takes lists of points and seeds, ``device`` if the other does, and ``threads``.
    """
    try:
        return load_compute(f"{path}_of_many")  # type: ignore[return-value]  # another signature
    except InvalidInputError:
        return None


# The points.


@dataclass(frozen=True)
class Grid:
    """A set of points in the plane of some named axes, with the other parameters fixed.

    Parameters
    ----------
    axes : tuple of str
        Names of the parameters that vary.
    rows : tuple of tuples
        One value for each axis, for each point; a point given twice counts once.
    fixed : mapping
        The other parameters, as JSON values, the same for all points.

    Examples
    --------
    >>> import rmsim as rs
    >>> grid = rs.Grid.product({"n": (200, 500), "jd": (0.4, 0.5)}, {"samples": 100})
    >>> len(grid), grid.points()[1]
    (4, {'samples': 100, 'n': 200, 'jd': 0.5})
    >>> len(grid | rs.Grid.product({"n": (1000,), "jd": (0.4,)}, {"samples": 100}))
    5
    """

    axes: tuple[str, ...]
    rows: tuple[tuple[Scalar, ...], ...]
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fixed = plain("fixed", dict(self.fixed))
        doubled = [name for name in self.axes if name in fixed or self.axes.count(name) > 1]
        if not self.axes or doubled:
            raise InvalidInputError(
                "axes", list(self.axes), "one or more names, each once and not among the fixed"
            )
        rows: dict[str, tuple[Scalar, ...]] = {}
        for row in self.rows:
            if len(row) != len(self.axes):
                raise InvalidInputError("rows", row, f"values of {', '.join(self.axes)}")
            values = tuple(_scalar(*pair) for pair in zip(self.axes, row, strict=True))
            rows.setdefault(point_key(dict(zip(self.axes, values, strict=True))), values)
        object.__setattr__(self, "axes", tuple(self.axes))
        object.__setattr__(self, "rows", tuple(rows.values()))
        object.__setattr__(self, "fixed", fixed)

    @classmethod
    def product(
        cls, axes: Mapping[str, Iterable[Scalar]], fixed: Mapping[str, Any] | None = None
    ) -> Grid:
        """Return all combinations of the values of `axes`; the last axis runs fastest."""
        return cls(tuple(axes), tuple(itertools.product(*axes.values())), fixed or {})

    def __or__(self, other: Grid) -> Grid:
        """Return the points of both; their axes and fixed parameters must be the same."""
        if (self.axes, self.fixed) != (other.axes, other.fixed):
            raise InvalidInputError("grid", other.axes, "of the same axes and fixed parameters")
        return Grid(self.axes, self.rows + other.rows, self.fixed)

    def __len__(self) -> int:
        return len(self.rows)

    def points(self) -> list[dict[str, Any]]:
        """Return the parameters of every point, the fixed ones included."""
        return [{**self.fixed, **dict(zip(self.axes, row, strict=True))} for row in self.rows]

    def values(self, axis: str) -> list[Scalar]:
        """Return the distinct values along `axis`: numbers sorted, anything else as it came."""
        column = [row[self.axes.index(axis)] for row in self.rows]
        distinct = list(dict.fromkeys(column))
        if all(isinstance(value, (int, float)) for value in distinct):
            return sorted(distinct)
        return distinct


#: Integers above this are not all floats, so a float there is not taken for an integer.
_EXACT_INTEGERS = 2**53


def point_key(point: Mapping[str, Any], version: int = 1) -> str:
    """Return the hash by which a point is known.

    A whole number is the same as integer and as float, as it is in JSON for most languages: J_D
    given as 1 and as 1.0 is one point.

    Examples
    --------
    >>> point_key({"jd": 1}) == point_key({"jd": 1.0})
    True
    >>> point_key({"jd": 1}) == point_key({"jd": 1}, version=2)
    False
    """
    whole: dict[str, Any] = _whole(dict(point))
    return parameters_hash(whole, version)


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_whole(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT_INTEGERS:
        return int(value)
    return value


def plain(name: str, value: object) -> Any:
    """Return `value` as what JSON gives back: plain numbers, text, lists and dicts."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        if math.isfinite(number):
            return number
    if isinstance(value, Mapping):
        return {str(key): plain(f"{name} {key}", item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [plain(name, item) for item in value]
    raise InvalidInputError(name, value, "a finite number, text, or lists and dicts of these")


def _scalar(axis: str, value: object) -> Scalar:
    if hasattr(value, "item") and not isinstance(value, (int, float, str)):
        value = value.item()  # a numpy scalar, bool among them
    result = plain(axis, value)
    if not isinstance(result, (int, float, str)):
        raise InvalidInputError(axis, value, "a number or text along an axis")
    return result


# Results as JSON.

Array = NDArray[Any]

_KINDS = "biufU"


class BadValueError(RMError, TypeError):
    """A computation returned something other than numbers, texts and arrays of these."""


def encode(values: Mapping[str, object], taken: Iterable[str] = ()) -> dict[str, Any]:
    """Return `values` as JSON; names in `taken` are refused.

    Examples
    --------
    >>> encode({"mean": 0.5, "kind": "dense"})
    {'mean': 0.5, 'kind': 'dense'}
    >>> encode({"counts": [1, 2]})
    {'counts': {'dtype': '<i8', 'shape': [2], 'base64': 'AQAAAAAAAAACAAAAAAAAAA=='}}
    """
    clashing = sorted({str(name) for name in values} & set(taken))
    if clashing:
        raise BadValueError(f"a computation cannot return {', '.join(clashing)}: the name is taken")
    return {str(name): _encode(str(name), value) for name, value in values.items()}


def decode(encoded: Mapping[str, Any]) -> dict[str, Array]:
    """Return what :func:`encode` was given, as arrays (scalars without dimensions).

    Raises
    ------
    ValueError
        If :func:`encode` cannot have written it, naming the value.
    """
    return {name: _decode(name, value) for name, value in encoded.items()}


def _encode(name: str, value: object) -> Any:
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as problem:  # ragged lists, tensors on a GPU
        raise BadValueError(f"{name} cannot be stored: {problem}") from problem
    if array.dtype.kind not in _KINDS:
        raise BadValueError(f"{name} must be numbers or text, not {type(value).__name__}")
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)  # the width of a long double is the machine's
    if array.dtype.kind == "U":
        return str(array) if array.ndim == 0 else {"dtype": "str", "text": array.tolist()}
    if array.ndim == 0 and (array.dtype.kind != "f" or np.isfinite(array)):
        return array.item()
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return {
        "dtype": little.dtype.str,
        "shape": list(array.shape),
        "base64": base64.b64encode(little.tobytes()).decode("ascii"),
    }


def _decode(name: str, value: Any) -> Array:
    try:
        if not isinstance(value, dict):
            return _json_scalar(value)
        if value["dtype"] == "str":
            return _text(value["text"])
        dtype = np.dtype(str(value["dtype"]))
        if dtype.kind not in _KINDS or dtype.itemsize > 8 or dtype.names or dtype.subdtype:
            raise ValueError(f"it is of type {dtype}")
        data = base64.b64decode(value["base64"], validate=True)
        shape = value["shape"]
        if not isinstance(shape, list) or any(type(n) is not int or n < 0 for n in shape):
            raise ValueError(f"it is of shape {shape}")
        return np.frombuffer(data, dtype).reshape(shape).copy()
    except MALFORMED as problem:
        raise ValueError(f"{name} is neither a number nor a text nor an array: {problem}") from None


def _json_scalar(value: Any) -> Array:
    array = np.asarray(value)
    if array.ndim or array.dtype.kind not in _KINDS:
        raise ValueError(f"it is {str(value)[:40]}")
    return array


def _text(value: Any) -> Array:
    array = np.asarray(value, dtype=np.str_)
    if not np.array_equal(array, np.asarray(value, dtype=object)):  # numbers are not text
        raise ValueError("its text holds something else")
    return array


#: Names that the collection of a sweep needs for itself.
RESERVED = ("finished", "asked", "wall_time", "cpu_time", "point_seed")


@dataclass(frozen=True)
class Measured:
    """A finished point: encoded values, and where they come from."""

    values: dict[str, Any]
    provenance: dict[str, Any]


@dataclass(frozen=True)
class Failed:
    """A point that raised an exception, or whose worker died."""

    kind: str
    message: str
    details: str = ""


Answer = Measured | Failed


def batches(samples: int, size: int) -> tuple[str, ...]:
    """Return the samples 0 ... `samples` - 1 as pieces ``first:last`` of `size`, last excluded.

    More samples are more pieces: those that are there are kept. Only a last piece that was not
    full is done again.

    Examples
    --------
    >>> batches(60, 25)
    ('0:25', '25:50', '50:60')
    """
    return tuple(f"{first}:{min(first + size, samples)}" for first in range(0, samples, size))


def sample_range(text: str) -> range:
    """Return the numbers of the samples of a piece.

    Examples
    --------
    >>> sample_range("25:50")
    range(25, 50)
    """
    first, _, last = str(text).partition(":")
    if not (first.isdecimal() and last.isdecimal() and int(first) < int(last)):
        raise InvalidInputError("samples", text, "first:last with first < last")
    return range(int(first), int(last))
