"""The points of a sweep: which parameters vary, over which values, and which stay fixed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

from rmtheory.errors import InvalidInputError
from rmtheory.provenance import parameters_hash

#: A value along an axis.
Scalar = int | float | str | bool

#: Integers above this are not all floats, so a float there is no integer in disguise.
_EXACT_INTEGERS = 2**53


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
    >>> grid = Grid.product({"n": (200, 500), "jd": (0.4, 0.5)}, {"samples": 100})
    >>> len(grid), grid.points()[1]
    (4, {'samples': 100, 'n': 200, 'jd': 0.5})
    >>> len(grid | Grid.product({"n": (1000,), "jd": (0.4,)}, {"samples": 100}))
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
