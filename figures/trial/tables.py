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
* X_networks: R.

.. math:: \sigma^2 = s^2/R + \mathrm{var}_i(c_i)/n,

and the difference of two variables on the same n images has the variance of the differences
:math:`c_i - c'_i` instead (:class:`figures.claims.claim.Imagewise`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy import special

from figures.claims.claim import SIGNIFICANCE
from figures.trial.runs import Run
from figures.trial.store import Result, Store, unpack
from rmtheory.base.errors import counted
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

    def covers(self, run: Run) -> bool:
        """Return whether the metrics of all epochs of `run` are there."""
        held = self.results.get(run.key)
        return held is not None and held.covers(run)

    def sources(self, runs: Sequence[Run]) -> str:
        """Say how many runs have all their epochs, of which seeds, and which commits made them."""
        held = list({run.key: self.results[run.key] for run in runs if self.covers(run)}.values())
        if not held:
            return "stored runs"
        commits = sorted({one.commit for one in held})
        seeds = sorted({_seed(one) for one in held})
        return f"{counted(len(held), 'stored run')}, {_spans(seeds)}, commit {', '.join(commits)}"


def _spans(seeds: Sequence[int]) -> str:
    """Return whole numbers in order, runs of three or more by their ends.

    Examples
    --------
    >>> _spans([0]), _spans([0, 1, 2, 100, 102])
    ('seed 0', 'seeds 0 to 2, 100, 102')
    """
    runs: list[list[int]] = []
    for seed in seeds:
        if runs and runs[-1][-1] == seed - 1:
            runs[-1].append(seed)
        else:
            runs.append([seed])
    texts = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(texts)}"


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
    """

    dims: tuple[str, ...]
    cells: Cells
    epoch: int
    pool: Callable[[tuple[Any, ...]], Hashable] = lambda cell: None
    alone: Collection[tuple[Any, ...]] = ()

    def accuracy(
        self, stored: StoredRuns, name: str, quantity: str, images: str
    ) -> xr.Dataset | None:
        """Return the share of images that are right, `quantity` of the metrics, as variable `name`.

        `images` says which images they are: only variables of the same images are compared image
        by image.
        """
        rows = self._metrics(stored, quantity)
        bits = {cell: np.array([unpack(one) for one in own]) for cell, own in rows.items()}
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
        data[f"{name}_images"] = self._vectors(by_image, count, f"image_{images}")
        data[name].attrs["images"] = images
        return data

    def gain(self, stored: StoredRuns, name: str, new: str, old: str) -> xr.Dataset | None:
        """Return the gain in accuracy of one readout over another of the same networks.

        Both read the same network on the same images, so that neither the spread of networks nor
        that of images enters, only those of the differences.
        """
        rows, others = self._metrics(stored, new), self._metrics(stored, old)
        gaps = {
            cell: np.array(
                [
                    unpack(a).astype(float) - unpack(b)
                    for a, b in zip(own, others[cell], strict=True)
                ]
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
        return self._dataset({name: values, f"{name}_error": errors})

    def number(
        self, stored: StoredRuns, name: str, read: Number, *, step: float = 0.0
    ) -> xr.Dataset | None:
        """Return a number with its error, mean over networks, as variable `name`.

        A number that takes values in steps has a variance of step^2/12 at least, even if those of
        some networks are the same.
        """
        values: dict[tuple[Any, ...], NDArray[np.float64]] = {}
        own: dict[tuple[Any, ...], float] = {}
        for cell, runs in self.cells.items():
            rows = [stored.metrics(run, self.epoch) for run in runs]
            pairs = [pair for row in rows if row is not None and (pair := read(row))]
            if pairs:
                values[cell] = np.array([value for value, _ in pairs])
                # Networks are measured on the same samples: their errors do not average out.
                own[cell] = float(np.mean([error for _, error in pairs]))
        if not values:
            return None
        spread = self._spread(values, step**2 / 12)
        return self._dataset(
            {
                name: {cell: float(one.mean()) for cell, one in values.items()},
                f"{name}_error": {cell: math.hypot(spread[cell], own[cell]) for cell in values},
                f"{name}_networks": {cell: float(len(one)) for cell, one in values.items()},
            }
        )

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
        values = {cell: np.array([one[name] for one in parts]) for cell, parts in rows.items()}
        axes, shape = self._axes(), next(iter(values.values())).shape[1:]
        full = {end: np.full((*map(len, axes.values()), *shape), np.nan) for end in ("", "_error")}
        spread = np.empty((len(values), *shape))
        for place in np.ndindex(*shape):  # each element is a number with a spread of its own
            one = {cell: value[(slice(None), *place)] for cell, value in values.items()}
            spread[(slice(None), *place)] = list(self._spread(one).values())
        for row, (cell, value) in enumerate(values.items()):
            full[""][self._place(cell, axes)] = value.mean(axis=0)
            full["_error"][self._place(cell, axes)] = spread[row]
        data = {f"{name}{end}": ((*self.dims, *dims), one) for end, one in full.items()}
        return xr.Dataset(data, coords=axes)

    def change(
        self, stored: StoredRuns, name: str, since: int, read: Callable[[Mapping[str, Any]], float]
    ) -> xr.Dataset | None:
        """Return how much a number gains since an epoch, network by network, with its error.

        The spread of networks, which both epochs share, is no error of the gain.
        """
        gains: dict[tuple[Any, ...], NDArray[np.float64]] = {}
        for cell, runs in self.cells.items():
            rows = [[stored.metrics(run, epoch) for epoch in (since, self.epoch)] for run in runs]
            both = [(old, new) for old, new in rows if old is not None and new is not None]
            if both:
                gains[cell] = np.array([read(new) - read(old) for old, new in both])
        if not gains:
            return None
        means = {cell: float(one.mean()) for cell, one in gains.items()}
        return self._dataset({name: means, f"{name}_error": self._spread(gains)})

    def _metrics(self, stored: StoredRuns, quantity: str) -> dict[tuple[Any, ...], list[Any]]:
        cells = {}
        for cell, runs in self.cells.items():
            rows = [stored.metrics(run, self.epoch) for run in runs]
            there = [row[quantity] for row in rows if row is not None and quantity in row]
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


def merged_tables(parts: Sequence[xr.Dataset | None], **scalars: Any) -> xr.Dataset | None:
    """Return what is there of some tables as one, with scalar coordinates; None if nothing is."""
    there = [part for part in parts if part is not None]
    if not there:
        return None
    return xr.merge(there, compat="no_conflicts", join="outer").assign_coords(**scalars)
