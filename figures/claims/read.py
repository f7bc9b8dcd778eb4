"""Readers: how a claim finds its number in a data set."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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

    def __call__(self, data: xr.Dataset) -> Ours | None:
        """Return the number and its error."""
        if self.name not in data:
            return None
        chosen = select(data[[self.name, f"{self.name}_error"]], self.where)
        if chosen is None:
            return None
        return ours(chosen[self.name], chosen[f"{self.name}_error"])

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


def ours(value: xr.DataArray | float, error: xr.DataArray | float) -> Ours | None:
    """Return one number and its error; None where there is none."""
    number, deviation = (float(np.asarray(part).item()) for part in (value, error))
    if math.isnan(number) or math.isnan(deviation):
        return None
    return Ours(number, deviation)


def difference(first: Ours | None, second: Ours | None) -> Ours | None:
    """Return first - second of two independent numbers."""
    if first is None or second is None:
        return None
    return Ours(first.value - second.value, math.hypot(first.error, second.error))


@dataclass(frozen=True)
class Minus:
    """The difference of two readings."""

    first: At
    second: At

    def __call__(self, data: xr.Dataset) -> Ours | None:
        """Return the difference, its error that of independent numbers."""
        return difference(self.first(data), self.second(data))

    def __str__(self) -> str:
        return f"{self.first} - {self.second}"
