r"""Stored runs as the data sets that claims read, with errors of comparisons image by image.

A variable X of accuracies has beside its mean over networks and X_error

* X_images: the share of networks that are right, for every image;
* X_spread: the error of the mean from the spread :math:`s` of networks, :math:`s/\sqrt R`, with
  :math:`s^2` pooled over all cells of the variable that have the same `pool`:
  :math:`s^2 = \sum_{c}\sum_r (x_{cr} - \bar x_c)^2 / \sum_c (R_c - 1)`. A cell of one network
  borrows it from the others, and a pool with fewer than :data:`LEAST_FREEDOM` degrees of freedom
  from all cells of the variable; where these have fewer, too, there is no error, and so no number
  that a claim could read;
* X_networks: R.

.. math:: \sigma^2 = s^2/R + \mathrm{var}_i(c_i)/n,

and the difference of two variables on the same n images has the variance of the differences
:math:`c_i - c'_i` instead (:class:`figures.claims.claim.Imagewise`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from figures.claims import Claim, Ours, judge
from figures.trial import designs
from figures.trial.runs import Result, Run, Store, merged, unpack
from rmtheory.base.statistics import wilson_half_width
from rmtheory.base.wording import counted

#: Degrees of freedom below which the spread of networks is not known.
LEAST_FREEDOM = 2

#: Coordinates of a cell -> the runs of its networks.
Cells = Mapping[tuple[Any, ...], Sequence[Run]]

#: Reads one number with its own error from what was measured at a look; None if it is not there.
Number = Callable[[Mapping[str, Any]], tuple[float, float] | None]


@dataclass(frozen=True)
class Stored:
    """The results of a store, read once."""

    results: Mapping[str, Result]

    @classmethod
    def of(cls, store: Store) -> Stored:
        """Read all of a store."""
        return cls({result.key: result for result in store.results()})

    def look(self, run: Run, epoch: int) -> Mapping[str, Any] | None:
        """Return what was measured of `run` after `epoch` epochs, None if it was not."""
        held = self.results.get(run.key)
        return None if held is None else held.looks.get(epoch)

    @cached_property
    def data(self) -> dict[str, xr.Dataset]:
        """Data sets by the names that claims know, as far as there are runs."""
        made = {name: build(self) for name, build in _BUILDERS.items()}
        return {name: one for name, one in made.items() if one is not None}

    def number(self, claim: Claim) -> Ours | None:
        """Return what the stored runs say of a claim, with the runs that it comes from.

        Claims that no question of the trial is about read other variables of their figure.
        """
        if claim.id not in self._questions:
            return None
        found = judge(claim, self.data.get(claim.data)).ours
        if found is None:
            return None
        runs = merged([run for one in self._questions[claim.id] for run in one.runs])
        return replace(found, stored=self.sources(runs))

    def indicative(self, claim: Claim) -> Ours | None:
        """Return what too few runs say: one network each, without the error of their spread."""
        data = self.data.get(claim.data)
        if data is None or claim.id not in self._questions:
            return None
        known = {
            name: data[name].fillna(0.0)
            for name in map(str, data.data_vars)
            if name.endswith(("_error", "_spread"))
        }
        found = judge(claim, data.assign(known)).ours
        if found is None:
            return None
        return replace(found, at="one network; its spread is not known")

    @cached_property
    def _questions(self) -> dict[str, list[designs.Question]]:
        by_claim: dict[str, list[designs.Question]] = {}
        for question in designs.questions():
            for claim in question.claims:
                by_claim.setdefault(claim, []).append(question)
        return by_claim

    def sources(self, runs: Sequence[Run]) -> str:
        """Say how many runs there are, of which seeds, and which commits made them."""
        held = [self.results[run.key] for run in runs if run.key in self.results]
        if not held:
            return "stored runs"
        commits = sorted({one.commit for one in held})
        seeds = sorted({_seed(one) for one in held})
        return (
            f"{counted(len(held), 'stored run')}, seed {', '.join(map(str, seeds))}, commit "
            f"{', '.join(commits)}"
        )


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
        When they are looked at.
    pool : callable
        Coordinates -> what cells must have in common for their spread to be pooled.
    """

    dims: tuple[str, ...]
    cells: Cells
    epoch: int
    pool: Callable[[tuple[Any, ...]], Hashable] = lambda cell: None

    def accuracy(self, stored: Stored, name: str, quantity: str, images: str) -> xr.Dataset | None:
        """Return the share of images that are right, `quantity` at the look, as variable `name`.

        `images` says which images they are: only variables of the same images are compared image
        by image.
        """
        rows = self._looks(stored, quantity)
        bits = {cell: np.array([unpack(look) for look in looks]) for cell, looks in rows.items()}
        if not bits:
            return None
        count = min(one.shape[1] for one in bits.values())
        bits = {cell: one for cell, one in bits.items() if one.shape[1] == count}
        means = {cell: one.mean(axis=1) for cell, one in bits.items()}
        spread = self._spread(means)
        by_image = {cell: one.mean(axis=0) for cell, one in bits.items()}
        share = {
            cell: math.hypot(spread[cell], float(one.std()) / math.sqrt(count))
            for cell, one in by_image.items()
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

    def number(self, stored: Stored, name: str, read: Number) -> xr.Dataset | None:
        """Return a number with its error, mean over networks, as variable `name`."""
        values: dict[tuple[Any, ...], NDArray[np.float64]] = {}
        own: dict[tuple[Any, ...], float] = {}
        for cell, runs in self.cells.items():
            looks = [stored.look(run, self.epoch) for run in runs]
            found = [pair for look in looks if look is not None and (pair := read(look))]
            if found:
                values[cell] = np.array([value for value, _ in found])
                # Networks are measured on the same samples: their errors do not average out.
                own[cell] = float(np.mean([error for _, error in found]))
        if not values:
            return None
        spread = self._spread(values)
        return self._dataset(
            {
                name: {cell: float(one.mean()) for cell, one in values.items()},
                f"{name}_error": {cell: math.hypot(spread[cell], own[cell]) for cell in values},
                f"{name}_networks": {cell: float(len(one)) for cell, one in values.items()},
            }
        )

    def _looks(self, stored: Stored, quantity: str) -> dict[tuple[Any, ...], list[Any]]:
        rows = {}
        for cell, runs in self.cells.items():
            looks = [stored.look(run, self.epoch) for run in runs]
            there = [look[quantity] for look in looks if look is not None and quantity in look]
            if there:
                rows[cell] = there
        return rows

    def _spread(
        self, values: Mapping[tuple[Any, ...], NDArray[np.float64]]
    ) -> dict[tuple[Any, ...], float]:
        """Return the error of the means from the spread of networks, pooled; NaN if unknown."""
        squares: dict[Hashable, float] = {}
        freedom: dict[Hashable, int] = {}
        for cell, one in values.items():
            group = self.pool(cell)
            squares[group] = squares.get(group, 0.0) + float(((one - one.mean()) ** 2).sum())
            freedom[group] = freedom.get(group, 0) + len(one) - 1

        def variance(group: Hashable) -> float:
            if freedom[group] >= LEAST_FREEDOM:
                return squares[group] / freedom[group]
            every = sum(freedom.values())
            if every < LEAST_FREEDOM:
                return math.nan
            # The cells of the group have too few networks: the largest that is known of all.
            own = squares[group] / freedom[group] if freedom[group] else 0.0
            return max(own, sum(squares.values()) / every)

        return {
            cell: math.sqrt(variance(self.pool(cell)) / len(one)) for cell, one in values.items()
        }

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


def _merged(parts: Sequence[xr.Dataset | None], **scalars: Any) -> xr.Dataset | None:
    there = [part for part in parts if part is not None]
    if not there:
        return None
    return xr.merge(there, compat="no_conflicts", join="outer").assign_coords(**scalars)


def _benchmarks(stored: Stored) -> xr.Dataset | None:
    sizes = [(name, n) for name in designs.BENCHMARKS for n in designs.WIDTHS]
    ours: Cells = {
        cell: [designs.benchmark_network(*cell, seed) for seed in designs.SEEDS] for cell in sizes
    }
    theirs: Cells = {
        cell: [designs.benchmark_perceptron(*cell, seed) for seed in designs.SEEDS]
        for cell in sizes
    }
    parts = []
    for epoch, end in ((designs.EPOCHS, ""), (designs.SHORTER, "_shorter")):
        # Spreads are pooled over the widths of a data set.
        for name, cells, quantity in (
            ("accuracy", ours, "probe_test_correct"),
            ("own_accuracy", ours, "test_correct"),
            ("mlp_accuracy", theirs, "test_correct"),
        ):
            table = Table(("dataset", "n"), cells, epoch, lambda cell: cell[0])
            parts.append(table.accuracy(stored, f"{name}{end}", quantity, "test"))
    parts.append(_class_counts(stored))
    linear = stored.look(designs.linear_classifier(), designs.EPOCHS)
    data = _merged(parts, epochs=designs.EPOCHS)
    if data is not None and linear is not None:
        right = unpack(linear["test_correct"])
        data["linear_accuracy"] = xr.DataArray(right.mean(), attrs={"images": "test"})
        # The problem is convex: the seed, which orders the samples, hardly matters.
        data["linear_accuracy_spread"] = xr.DataArray(0.0)
        data["linear_accuracy_error"] = xr.DataArray(right.std() / math.sqrt(len(right)))
        data["linear_accuracy_images"] = ("image_test", right.astype(np.float32))
    return data


def _class_counts(stored: Stored) -> xr.Dataset | None:
    """Return the largest class minus the least, over their mean."""
    names = [name for name in designs.BENCHMARKS if stored.look(designs.classes(name), 0)]
    if not names:
        return None
    spans = []
    for name in names:
        look = stored.look(designs.classes(name), 0)
        counts = np.array((look or {})["classes"], dtype=float)
        spans.append((counts.max() - counts.min()) / counts.mean())
    data = xr.Dataset({"class_span": ("dataset", spans)}, {"dataset": names})
    return data.assign(class_span_error=data["class_span"] * 0.0)


def _phase(*path: str) -> Number:
    """Return the reader of a number of the phases, with its error."""

    def read(look: Mapping[str, Any]) -> tuple[float, float] | None:
        name, *rest = path
        value, error = look["phases"].get(name), look["phases"].get(f"{name}_error")
        for part in rest:
            value, error = value[part], error[part]
        return None if value is None or error is None else (float(value), float(error))

    return read


_LEVELS = ("median", "q25", "q75", "q05", "q95")


def _overlaps(stored: Stored) -> xr.Dataset | None:
    parts: list[xr.Dataset | None] = []
    seeds = [seed for stage in designs.INITIAL_SEEDS for seed in stage]
    for epoch in (0, 1, 20):
        cells: Cells = {
            (*row, epoch): [designs.overlap_network(row, seed, (epoch,)) for seed in seeds]
            for row in designs.ROWS
        }
        dims = ("jd", "lambda_x", "lambda_y", "epoch")
        # The spread of networks depends on all three couplings before they are trained.
        table = Table(dims, cells, epoch, lambda cell: cell if cell[3] == 0 else cell[0])
        rows = [table.number(stored, f"qdyn_{one}", _phase("q_dyn", one)) for one in _LEVELS]
        rows += [
            table.number(stored, "sweeps", _phase("sweeps_clamped")),
            table.number(stored, "sweeps_free", _phase("sweeps_free")),
            table.accuracy(stored, "training_accuracy", "train_correct", "training"),
            table.accuracy(stored, "test_accuracy", "test_correct", "test"),
        ]
        parts += rows
    return _merged(parts, n=1600)


def _symmetry(look: Mapping[str, Any]) -> tuple[float, float] | None:
    level = look["phases"]["symmetry"]
    return None if level is None else (float(level), 1e-6)


def _rules(stored: Stored) -> xr.Dataset | None:
    def cells(*epoch: int) -> Cells:
        return {
            (rule, scheme, jd, *epoch): [
                designs.rules_network(rule, scheme, jd, seed) for seed in designs.DENSE_SEEDS
            ]
            for rule in designs.RULES
            for scheme in designs.SCHEMES
            for jd in (0.5, 0.0)
        }

    dims, last = ("rule", "scheme", "jd"), designs.RULES_EPOCHS
    table = Table(dims, cells(), last, lambda cell: cell[2])
    parts = [
        table.accuracy(stored, "training_accuracy", "train_correct", "training"),
        table.accuracy(stored, "test_accuracy", "test_correct", "test"),
        *(
            Table((*dims, "epoch"), cells(epoch), epoch).number(stored, "symmetry", _symmetry)
            for epoch in (0, last)
        ),
    ]
    return _merged(parts, n=designs.RULES_N, epochs=last)


def _roles(stored: Stored) -> xr.Dataset | None:
    sizes = [("full", n, jd) for n in (100, 1600) for jd in (0.05, 0.2, 0.5, 0.9)]
    sizes += [(scheme, 400, jd) for scheme in designs.SCHEMES for jd in (0.5, 0.1)]
    sizes += [(scheme, n, 0.5) for scheme in designs.SCHEMES for n in (1600, 3200)]
    cells: Cells = {
        cell: [designs.role_network(*cell, seed) for seed in designs.DENSE_SEEDS]
        for cell in dict.fromkeys(sizes)
    }
    table = Table(("scheme", "n", "jd"), cells, designs.ROLE_EPOCHS, lambda cell: cell[1])
    parts = [
        table.accuracy(stored, "training_accuracy", "train_correct", "training"),
        table.accuracy(stored, "test_accuracy", "test_correct", "test"),
    ]
    return _merged(parts, epochs=designs.ROLE_EPOCHS)


def _features(stored: Stored) -> xr.Dataset | None:
    cells: Cells = {
        (model, n): [designs.feature_runs(model, n, seed) for seed in designs.DENSE_SEEDS]
        for model in ("ours", "random_features", "reservoir")
        for n in designs.FEATURE_WIDTHS
    }
    table = Table(("model", "n"), cells, designs.FEATURE_EPOCHS, lambda cell: cell[0])
    parts = [
        table.accuracy(stored, "training_accuracy", "train_correct", "training"),
        table.accuracy(stored, "test_accuracy", "test_correct", "test"),
    ]
    return _merged(parts, epochs=designs.FEATURE_EPOCHS)


def _duality(stored: Stored) -> xr.Dataset | None:
    parts = []
    for axis, values in (("jd", designs.PAIR_JD), ("lam", designs.PAIR_LAM)):
        cells: Cells = {
            (value,): [
                designs.pair_network(*((value, 0.0) if axis == "jd" else (0.0, value)), seed)
                for seed in designs.DENSE_SEEDS
            ]
            for value in values
        }
        table = Table((axis,), cells, designs.PAIR_EPOCHS)
        for part, images in (("train", "training"), ("test", "test")):
            name = f"{images}_accuracy_{axis}"
            parts.append(table.accuracy(stored, name, f"{part}_correct", images))
    return _merged(parts, n=designs.PAIR_N, epochs=designs.PAIR_EPOCHS)


def _spots(stored: Stored) -> xr.Dataset | None:
    seeds = designs.DENSE_SEEDS
    variants: Cells = {
        ("ours",): [designs.spot_network(seed) for seed in seeds],
        ("feedback",): [designs.spot_network(seed, eta_back=designs.ETA_BACK) for seed in seeds],
        ("strong",): [designs.spot_network(seed, jd=designs.STRONG) for seed in seeds],
        ("random",): [designs.spot_random(seed) for seed in seeds],
        ("online",): [designs.offline_network(seed) for seed in seeds],
    }
    offline: Cells = {("offline",): [designs.offline_network(seed) for seed in seeds]}
    grid: Cells = {
        (lx, jd, ly): [
            designs.spot_network(seed, lambda_x=lx, jd=jd, lambda_y=ly) for seed in seeds
        ]
        for lx in designs.SPOT_LAMBDA_X
        for jd in designs.SPOT_JD
        for ly in designs.SPOT_LAMBDA_Y
    }
    last = designs.SPOT_EPOCHS
    parts = [
        Table(("variant",), variants, last).accuracy(
            stored, "variant_accuracy", "test_correct", "test"
        ),
        Table(("readout",), offline, last).accuracy(
            stored, "readout_accuracy", "offline_test_correct", "test"
        ),
        Table(("lambda_x", "jd", "lambda_y"), grid, last).accuracy(
            stored, "test_accuracy", "test_correct", "test"
        ),
    ]
    return _merged(parts, n=designs.SPOT_N, epochs=last)


def _reinforced(stored: Stored) -> xr.Dataset | None:
    """Return the share that reinforced BP solves, as the one point of one series."""
    found = _reached(stored, designs.REINFORCED, "rbp")
    if found is None:
        return None
    n, jd, _ = designs.REINFORCED
    names = ("success", "success_error", "trials")
    data = {name: (("series", "point"), found[name].values) for name in names}
    return xr.Dataset(data).assign_coords(
        group=("series", ["core"]),
        search=("series", ["rbp .01"]),
        n=("series", [n]),
        coupling=(("series", "point"), [[jd]]),
    )


def _reached(
    stored: Stored, cell: tuple[int, float, int], method: str = "dynamics"
) -> xr.Dataset | None:
    """Return the share of networks that reach a fixed point, at one N and J_D."""
    looks = [stored.look(designs.search(cell, seed, method), 0) for seed in designs.SEEDS]
    bits = [unpack(look["reached"]) for look in looks if look is not None]
    if not bits:
        return None
    reached = np.concatenate(bits)
    share, (n, jd, _) = float(reached.mean()), cell
    dims, error = ("n", "jd"), float(wilson_half_width(share, len(reached)))
    return xr.Dataset(
        {"success": (dims, [[share]]), "success_error": (dims, [[error]])},
        {"n": [n], "jd": [jd], "trials": (dims, [[float(len(reached))]])},
    )


def _seed(result: Result) -> int:
    identity = result.identity
    return int(identity["plan"]["seed"] if "plan" in identity else identity["seed"])


_BUILDERS: dict[str, Callable[[Stored], xr.Dataset | None]] = {
    "performance_benchmarks": _benchmarks,
    "qdyn_table": _overlaps,
    "symmetric_rules": _rules,
    "self_coupling": _roles,
    "feature_learning": _features,
    "jd_lambda_duality": _duality,
    "spot_checks": _spots,
    "searches": lambda stored: _reached(stored, designs.UNREACHABLE),
    "dynamics_threshold": lambda stored: _reached(stored, designs.REACHABLE),
    "thresholds": _reinforced,
}

#: Data sets that runs of the trial give; of one figure only a share of networks.
TRIED = frozenset(_BUILDERS)
