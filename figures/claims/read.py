"""Readers: how a claim finds its number in a data set."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import xarray as xr

from figures.claims.claim import Ours

#: Coordinates that are the same number within this are the same.
_SAME = 1e-9


@dataclass(frozen=True)
class At:
    """Variable `name`, with its error NAME_error, where the coordinates have the values `where`.

    A coordinate may be a dimension or a single number that holds for the whole data set. Where the
    data do not reach, at a smaller scale say, there is no number.
    """

    name: str
    where: Mapping[str, Any] = field(default_factory=dict)
    #: Coordinates that are one number in the data, and that the report is to name.
    shown: tuple[str, ...] = ()

    def __call__(self, data: xr.Dataset) -> Ours | None:
        """Return the number and its error."""
        if self.name not in data:
            return None
        chosen = select(data[[self.name, f"{self.name}_error"]], self.where)
        if chosen is None:
            return None
        sizes = sizes_of(**{name: float(chosen[name]) for name in self.shown})
        return ours(chosen[self.name], chosen[f"{self.name}_error"], sizes)

    def __str__(self) -> str:
        inside = ", ".join(f"{name}={value}" for name, value in self.where.items())
        return f"{self.name}[{inside}]" if inside else self.name


def at(name: str, **where: Any) -> At:
    """Return the reader of variable `name` at the coordinates `where`."""
    return At(name, where)


def select(data: xr.Dataset, where: Mapping[str, Any]) -> xr.Dataset | None:
    """Return the part of `data` at the coordinates `where`, None if it has no such part."""
    for name, value in where.items():
        if name not in data.coords:
            return None
        coordinate = data[name]
        if coordinate.ndim > 1:
            raise ValueError(f"{name} is no plain coordinate")
        values = np.atleast_1d(coordinate.values)
        if isinstance(value, str):
            found = np.flatnonzero(values == value)
        else:
            found = np.flatnonzero(np.abs(values.astype(float) - value) < _SAME)
        if found.size == 0:
            return None
        if coordinate.ndim == 1:
            data = data.isel({str(coordinate.dims[0]): int(found[0])})
    return data


#: Coordinate -> its symbol in the report.
_SYMBOLS = {"n": "N", "jd": "J_D", "lam": "λ", "layers": "L", "large_n": "N"}


def sizes_of(**sizes: float) -> str:
    """Return the sizes at which a number was found, in words.

    Examples
    --------
    >>> sizes_of(n=4000, samples=50)
    'N = 4000, 50 samples'
    """
    return ", ".join(
        f"{_SYMBOLS[name]} = {value:g}" if name in _SYMBOLS else f"{value:g} {name}"
        for name, value in sizes.items()
    )


def ours(value: xr.DataArray | float, error: xr.DataArray | float, sizes: str = "") -> Ours | None:
    """Return one number and its error; None where there is none."""
    number, deviation = (float(np.asarray(part).item()) for part in (value, error))
    if math.isnan(number) or math.isnan(deviation):
        return None
    return Ours(number, deviation, sizes)


def difference(first: Ours | None, second: Ours | None) -> Ours | None:
    """Return first - second of two independent numbers."""
    if first is None or second is None:
        return None
    return Ours(first.value - second.value, math.hypot(first.error, second.error), first.at)


def least(found: Iterable[Ours | None]) -> Ours | None:
    """Return the least of some numbers, None if one of them is not there."""
    every = list(found)
    there = [one for one in every if one is not None]
    if not every or len(there) < len(every):
        return None
    return min(there, key=lambda one: one.value)


class Reading(Protocol):
    """A reader that can be named."""

    def __call__(self, data: xr.Dataset) -> Ours | None:
        """Return our number, None where the data do not hold it."""


@dataclass(frozen=True)
class Minus:
    """The difference of two readings."""

    first: Reading
    second: Reading

    def __call__(self, data: xr.Dataset) -> Ours | None:
        """Return the difference, its error that of independent numbers."""
        return difference(self.first(data), self.second(data))

    def __str__(self) -> str:
        return f"{self.first} - {self.second}"


@dataclass(frozen=True)
class Least:
    """The least of several readings, all of which must be there."""

    parts: tuple[Reading, ...]

    def __call__(self, data: xr.Dataset) -> Ours | None:
        """Return the least with its own error."""
        return least(part(data) for part in self.parts)

    def __str__(self) -> str:
        return f"least of {', '.join(map(str, self.parts))}"
