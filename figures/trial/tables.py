r"""Means of stored runs over networks, with errors of comparisons image by image.

A variable X of accuracies has beside its mean over networks and X_error

* X_images: the share of networks that are right, for every image;
* X_spread: the error of the mean from the spread :math:`s` of networks, :math:`s/\sqrt R`, with
  :math:`s^2` pooled over all cells of the variable that have the same `pool`:
  :math:`s^2 = \sum_{c}\sum_r (x_{cr} - \bar x_c)^2 / \sum_c (R_c - 1)`. A cell of at least
  :data:`OWN` networks has a spread of its own; one of fewer borrows it from the others, but for
  those of second experiments (`alone`). In a pool with fewer than :data:`LEAST_FREEDOM` degrees of
  freedom there is no error, and so no number that a claim could read. (Pools were narrowed on 18
  November 2026, after some of the runs: cells in which the free phase is chaotic and cells in which
  it settles had been one. Until 19 November a pool without a spread had that of all cells, which
  lent to chaotic cells what quiet ones had.)
  Since the spread is estimated, it is multiplied by Student's factor (:func:`student`), so that
  three errors mean what they say;
* X_networks: R, and X_runs: the keys of these R runs, with blanks between them.

.. math:: \sigma^2 = s^2/R + \mathrm{var}_i(c_i)/n,

and the difference of two variables on the same n images has the variance of the differences
:math:`c_i - c'_i` instead (:class:`figures.claims.claim.Imagewise`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy import special

from figures.claims.claim import RUNS, SIGNIFICANCE, Keys, Origin
from figures.trial.runs import Run
from figures.trial.store import Result, Store, unpack
from rmtheory.base.statistics import interval, sample_error

#: Degrees of freedom below which the spread of networks is not known.
LEAST_FREEDOM = 2

#: Networks from which on a cell has a spread of its own: Student's factor is 2.2 then, and cells do
#: differ. (Added on 18 November 2026, when six accuracies of the first row of the overlaps had had
#: a deviation of 0.003 and three of another row in its pool one of 0.019.)
OWN = 5

#: Coordinates of a cell -> the runs of its networks.
Cells = Mapping[tuple[Any, ...], Sequence[Run]]

#: Reads one number with its own error from what was measured at an epoch; None if it is not there.
Number = Callable[[Mapping[str, Any]], tuple[float, float] | None]


@dataclass(frozen=True)
class StoredRuns:
    """The results of a store, read once."""

    results: Mapping[str, Result]

    @classmethod
    def of(cls, store: Store) -> Self:
        """Read all of a store."""
        return cls({result.key: result for result in store.results()})

    def metrics(self, run: Run, epoch: int) -> Mapping[str, Any] | None:
        """Return what was measured of `run` after `epoch` epochs, None if it was not."""
        held = self.results.get(run.key)
        return None if held is None else held.metrics.get(epoch)

    def rows(self, runs: Iterable[Run], epoch: int) -> dict[str, Mapping[str, Any]]:
        """Return what was measured after `epoch` epochs of the runs that are stored, by key."""
        rows = {run.key: self.metrics(run, epoch) for run in runs}
        return {key: row for key, row in rows.items() if row is not None}

    def covers(self, run: Run) -> bool:
        """Return whether the metrics of all epochs of `run` are there."""
        held = self.results.get(run.key)
        return held is not None and held.covers(run)

    def origin(self, keys: Keys) -> Origin:
        """Return where runs come from."""
        held = [self.results[key] for key in keys]
        return Origin.of(map(_seed, held), (one.commit for one in held), len(held))


def _seed(result: Result) -> int:
    identity = result.identity
    return int(identity["plan"]["seed"] if "plan" in identity else identity["seed"])


def share_error(hits: ArrayLike) -> float:
    """Return the error of a share of which three reach the end of its 99.7 % interval.

    Verdicts are at three errors. Of few samples that all succeed, three times the error at one
    standard deviation would promise too much.

    Examples
    --------
    >>> print(f"{share_error([True] * 20):.3f} {share_error([True] * 120):.3f}")
    0.103 0.023
    """
    known = np.asarray(hits, dtype=bool)
    low, high = interval(known.sum(), len(known), math.erf(SIGNIFICANCE / math.sqrt(2)))
    share = float(known.mean())
    return max(share - float(low), float(high) - share) / SIGNIFICANCE


def student(freedom: int) -> float:
    """Return how much larger an error is whose spread has so many degrees of freedom.

    Three of it then have the chance of three standard errors that are known (Student's t).

    Examples
    --------
    >>> print(" ".join(f"{student(freedom):.2f}" for freedom in (2, 4, 8, 30)))
    6.40 2.21 1.43 1.09
    """
    if freedom < LEAST_FREEDOM:
        return math.nan
    chance = 0.5 + 0.5 * math.erf(SIGNIFICANCE / math.sqrt(2))
    return float(special.stdtrit(freedom, chance)) / SIGNIFICANCE


@dataclass(frozen=True)
class Table:
    """Cells of runs along some dimensions.

    Parameters
    ----------
    dims : tuple of str
        Names of the coordinates.
    cells : mapping
        Coordinates -> runs, one for each network.
    epoch : int
        When they are measured.
    pool : callable
        Coordinates -> what cells must have in common for their spread to be pooled.
    alone : collection of tuples
        Coordinates of cells that lend their spread to no other: those of second experiments, whose
        many networks would decide what is said of cells with one.
    first : mapping, optional
        Cells as they were before second experiments, whose networks go on lending: a cell that is
        not asked again keeps its error.
    """

    dims: tuple[str, ...]
    cells: Cells
    epoch: int
    pool: Callable[[tuple[Any, ...]], Hashable] = lambda cell: None
    alone: Collection[tuple[Any, ...]] = ()
    first: Cells | None = None

    def accuracy(
        self, stored: StoredRuns, name: str, quantity: str, images: str
    ) -> xr.Dataset | None:
        """Return the share of images that are right, `quantity` of the metrics, as variable `name`.

        `images` says which images they are: only variables of the same images are compared image
        by image.
        """
        rows = self._metrics(stored, quantity)
        bits = {cell: np.array([unpack(one) for one in own.values()]) for cell, own in rows.items()}
        if not bits:
            return None
        count = min(one.shape[1] for one in bits.values())
        bits = {cell: one for cell, one in bits.items() if one.shape[1] == count}
        means = {cell: one.mean(axis=1) for cell, one in bits.items()}
        spread = self._spread(means)
        by_image = {cell: one.mean(axis=0) for cell, one in bits.items()}
        share = {
            cell: math.hypot(spread[cell], sample_error(one)) for cell, one in by_image.items()
        }
        data = self._dataset(
            {
                name: {cell: float(one.mean()) for cell, one in means.items()},
                f"{name}_error": share,
                f"{name}_spread": spread,
                f"{name}_networks": {cell: float(len(one)) for cell, one in means.items()},
            }
        )
        data[f"{name}{RUNS}"] = self._keys({cell: rows[cell] for cell in means})
        data[f"{name}_images"] = self._vectors(by_image, count, f"image_{images}")
        data[name].attrs["images"] = images
        return self._kept(data, lambda table: table.accuracy(stored, name, quantity, images))

    def gain(self, stored: StoredRuns, name: str, new: str, old: str) -> xr.Dataset | None:
        """Return the gain in accuracy of one readout over another of the same networks.

        Both read the same network on the same images, so that neither the spread of networks nor
        that of images enters, only those of the differences.
        """
        rows, others = self._metrics(stored, new), self._metrics(stored, old)
        gaps = {
            cell: np.array(
                [unpack(one).astype(float) - unpack(others[cell][key]) for key, one in own.items()]
            )
            for cell, own in rows.items()
        }
        if not gaps:
            return None
        means = {cell: one.mean(axis=1) for cell, one in gaps.items()}
        spread = self._spread(means)
        errors = {
            cell: math.hypot(spread[cell], sample_error(one.mean(axis=0)))
            for cell, one in gaps.items()
        }
        values = {cell: float(one.mean()) for cell, one in means.items()}
        data = self._dataset({name: values, f"{name}_error": errors})
        data[f"{name}{RUNS}"] = self._keys(rows)
        return self._kept(data, lambda table: table.gain(stored, name, new, old))

    def number(
        self, stored: StoredRuns, name: str, read: Number, *, step: float = 0.0
    ) -> xr.Dataset | None:
        """Return a number with its error, mean over networks, as variable `name`.

        A number that takes values in steps has a variance of step^2/12 at least, even if those of
        some networks are the same.
        """
        values: dict[tuple[Any, ...], NDArray[np.float64]] = {}
        own: dict[tuple[Any, ...], float] = {}
        keys: dict[tuple[Any, ...], Iterable[str]] = {}
        for cell, runs in self.cells.items():
            rows = stored.rows(runs, self.epoch)
            pairs = {key: pair for key, row in rows.items() if (pair := read(row))}
            if pairs:
                keys[cell] = pairs
                values[cell] = np.array([value for value, _ in pairs.values()])
                # Networks are measured on the same samples: their errors do not average out.
                own[cell] = float(np.mean([error for _, error in pairs.values()]))
        if not values:
            return None
        spread = self._spread(values, step**2 / 12)
        data = self._dataset(
            {
                name: {cell: float(one.mean()) for cell, one in values.items()},
                f"{name}_error": {cell: math.hypot(spread[cell], own[cell]) for cell in values},
                f"{name}_networks": {cell: float(len(one)) for cell, one in values.items()},
            }
        )
        data[f"{name}{RUNS}"] = self._keys(keys)
        return self._kept(data, lambda table: table.number(stored, name, read, step=step))

    def array(
        self, stored: StoredRuns, name: str, part: str, dims: tuple[str, ...]
    ) -> xr.Dataset | None:
        """Return the array `name` of a `part` of the metrics, mean over networks and error.

        Every network is measured on pairs and patterns of its own, so that the spread of networks
        holds the error of each.
        """
        rows = self._metrics(stored, part)
        if not rows:
            return None
        values = {
            cell: np.array([one[name] for one in parts.values()]) for cell, parts in rows.items()
        }
        axes, shape = self._axes(), next(iter(values.values())).shape[1:]
        full = {end: np.full((*map(len, axes.values()), *shape), np.nan) for end in ("", "_error")}
        spread = np.empty((len(values), *shape))
        for place in np.ndindex(*shape):  # each element is a number with a spread of its own
            one = {cell: value[(slice(None), *place)] for cell, value in values.items()}
            spread[(slice(None), *place)] = list(self._spread(one).values())
        for row, (cell, value) in enumerate(values.items()):
            full[""][self._place(cell, axes)] = value.mean(axis=0)
            full["_error"][self._place(cell, axes)] = spread[row]
        data = xr.Dataset(
            {f"{name}{end}": ((*self.dims, *dims), one) for end, one in full.items()}, coords=axes
        )
        data[f"{name}{RUNS}"] = self._keys(rows)
        return self._kept(data, lambda table: table.array(stored, name, part, dims))

    def change(
        self, stored: StoredRuns, name: str, since: int, read: Callable[[Mapping[str, Any]], float]
    ) -> xr.Dataset | None:
        """Return how much a number gains since an epoch, network by network, with its error.

        The spread of networks, which both epochs share, is no error of the gain.
        """
        gains: dict[tuple[Any, ...], NDArray[np.float64]] = {}
        keys: dict[tuple[Any, ...], Iterable[str]] = {}
        for cell, runs in self.cells.items():
            old, new = (stored.rows(runs, epoch) for epoch in (since, self.epoch))
            both = [key for key in old if key in new]
            if both:
                keys[cell] = both
                gains[cell] = np.array([read(new[key]) - read(old[key]) for key in both])
        if not gains:
            return None
        means = {cell: float(one.mean()) for cell, one in gains.items()}
        data = self._dataset({name: means, f"{name}_error": self._spread(gains)})
        data[f"{name}{RUNS}"] = self._keys(keys)
        return self._kept(data, lambda table: table.change(stored, name, since, read))

    def _kept(self, data: xr.Dataset, made: Callable[[Table], xr.Dataset | None]) -> xr.Dataset:
        """Return `data` with the errors that cells had before others were asked again."""
        if self.first is None or not self.alone:
            return data
        before = made(replace(self, cells=self.first, alone=(), first=None))
        if before is None:
            return data
        axes = self._axes()
        again = xr.DataArray(np.zeros(tuple(map(len, axes.values())), dtype=bool), dims=self.dims)
        for cell in self.alone:
            again[self._place(cell, axes)] = True
        names = [name for name in data.data_vars if str(name).endswith(("_error", "_spread"))]
        return data.assign({name: data[name].where(again, before[name]) for name in names})

    def _metrics(self, stored: StoredRuns, quantity: str) -> dict[tuple[Any, ...], dict[str, Any]]:
        """Return a quantity of the stored runs of each cell, by their keys."""
        cells = {}
        for cell, runs in self.cells.items():
            rows = stored.rows(runs, self.epoch)
            there = {key: row[quantity] for key, row in rows.items() if quantity in row}
            if there:
                cells[cell] = there
        return cells

    def _spread(
        self, values: Mapping[tuple[Any, ...], NDArray[np.float64]], least: float = 0.0
    ) -> dict[tuple[Any, ...], float]:
        """Return the error of the means from the spread of networks, pooled; NaN if unknown.

        The variance of networks is not below `least`.
        """
        sums = {
            cell: (float(((one - one.mean()) ** 2).sum()), len(one) - 1)
            for cell, one in values.items()
        }

        def error(cell: tuple[Any, ...]) -> float:
            size, pool = len(values[cell]), self.pool(cell)
            group = [other for other in sums if self.pool(other) == pool if other not in self.alone]
            lent = [cell] if size >= OWN or cell in self.alone else group
            squares, freedom = map(sum, zip(*(sums[one] for one in lent), strict=True))
            if freedom < LEAST_FREEDOM:
                return math.nan
            return student(freedom) * math.sqrt(max(least, squares / freedom) / size)

        return {cell: error(cell) for cell in values}

    def _axes(self) -> dict[str, list[Any]]:
        return {
            dim: list(dict.fromkeys(cell[k] for cell in self.cells))
            for k, dim in enumerate(self.dims)
        }

    def _dataset(self, columns: Mapping[str, Mapping[tuple[Any, ...], float]]) -> xr.Dataset:
        axes = self._axes()
        shape = tuple(map(len, axes.values()))
        data = xr.Dataset(coords=axes)
        for name, column in columns.items():
            values = np.full(shape, np.nan)
            for cell, value in column.items():
                values[self._place(cell, axes)] = value
            data[name] = (self.dims, values)
        return data

    def _keys(self, cells: Mapping[tuple[Any, ...], Iterable[str]]) -> xr.DataArray:
        axes = self._axes()
        values = np.full(tuple(map(len, axes.values())), np.nan, dtype=object)
        for cell, keys in cells.items():
            values[self._place(cell, axes)] = " ".join(keys)
        return xr.DataArray(values, dims=self.dims)

    def _vectors(
        self, rows: Mapping[tuple[Any, ...], NDArray[np.float64]], count: int, dim: str
    ) -> xr.DataArray:
        axes = self._axes()
        values = np.full((*map(len, axes.values()), count), np.nan, dtype=np.float32)
        for cell, row in rows.items():
            values[self._place(cell, axes)] = row
        return xr.DataArray(values, dims=(*self.dims, dim))

    def _place(self, cell: tuple[Any, ...], axes: Mapping[str, list[Any]]) -> tuple[int, ...]:
        return tuple(axis.index(part) for part, axis in zip(cell, axes.values(), strict=True))


@dataclass(frozen=True)
class Latest:
    """Cells of the first experiment, or of the second where that is complete.

    Parameters
    ----------
    cells : mapping
        Coordinates -> runs.
    first : mapping
        The same before any second experiment.
    alone : set of tuples
        Coordinates of those of second experiments, which lend their spread to no other.
    """

    cells: Cells
    first: Cells
    alone: frozenset[tuple[Any, ...]] = frozenset()

    @classmethod
    def of(cls, cells: Cells) -> Latest:
        """Return cells without a second experiment."""
        return cls(cells, cells)

    def along(self, value: Hashable) -> Latest:
        """Return the cells with one coordinate more."""
        cells, first = (
            {(*cell, value): runs for cell, runs in one.items()} for one in (self.cells, self.first)
        )
        return Latest(cells, first, frozenset((*cell, value) for cell in self.alone))

    def beside(self, cells: Cells) -> Latest:
        """Return these cells and others without a second experiment."""
        return replace(self, cells={**self.cells, **cells}, first={**self.first, **cells})

    def table(
        self,
        dims: tuple[str, ...],
        epoch: int,
        pool: Callable[[tuple[Any, ...]], Hashable] = lambda cell: None,
    ) -> Table:
        """Return their table."""
        return Table(dims, self.cells, epoch, pool, self.alone, self.first)


def merged_tables(parts: Sequence[xr.Dataset | None], **scalars: Any) -> xr.Dataset | None:
    """Return what is there of some tables as one, with scalar coordinates; None if nothing is."""
    there = [part for part in parts if part is not None]
    if not there:
        return None
    return xr.merge(there, compat="no_conflicts", join="outer").assign_coords(**scalars)
