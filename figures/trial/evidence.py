"""Stored runs as the data sets that claims read, and what they say of each claim.

One function per data set: which runs its cells are (:mod:`figures.trial.designs`), and what is read
of them; those of the central claim are in :mod:`figures.trial.benchmarks`, those of claims without
data in :mod:`figures.trial.without_data`. Means and errors are those of
:mod:`figures.trial.tables`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from figures.claims.claim import Claim, Ours, judge
from figures.claims.performance import AS_OURS
from figures.trial import benchmarks, designs, without_data
from figures.trial.runs import Run
from figures.trial.store import without_seed
from figures.trial.tables import (
    Cells,
    Latest,
    Number,
    StoredRuns,
    Table,
    merged_tables,
)
from rmtheory.runtime.provenance import parameters_hash


class Stored(StoredRuns):
    """The results of a store, the data sets that they make, and what they say of claims."""

    @cached_property
    def data(self) -> dict[str, xr.Dataset]:
        """Data sets by the names that claims know, as far as there are runs."""
        made = {name: build(self) for name, build in _BUILDERS.items()}
        return {name: one for name, one in made.items() if one is not None}

    def number(self, claim: Claim) -> Ours | None:
        """Return what the stored runs say of a claim, with the runs that it comes from.

        Claims that no question of the trial is about read other variables of their figure.
        """
        if not designs.questions_of(claim.id):
            return None
        ours = judge(claim, self.data.get(claim.data)).ours
        return None if ours is None else replace(ours, stored=self.origin(ours.runs))

    def latest(self, data: str, cells: Cells) -> Latest:
        """Return cells of a data set; those of complete second experiments have their runs."""
        again = {
            cell: self._second[key]
            for cell, runs in cells.items()
            if (key := (data, *_cell(runs[0]))) in self._second
        }
        return Latest({**cells, **again}, cells, frozenset(again))

    @cached_property
    def _second(self) -> dict[tuple[str, str, int], tuple[Run, ...]]:
        """Data set and cell of complete second experiments -> their runs.

        They serve all questions about the data set, so that it has one number for a cell.
        """
        cells: dict[tuple[str, str, int], tuple[Run, ...]] = {}
        for question in designs.questions():
            if all(map(self.covers, question.second)):
                for run in question.second:
                    key = (question.data, *_cell(run))
                    cells[key] = (*cells.get(key, ()), run)
        return cells

    def indicative(self, claim: Claim) -> Ours | None:
        """Return what too few runs say: one network each, without the error of their spread."""
        data = self.data.get(claim.data)
        if data is None or not designs.questions_of(claim.id):
            return None
        known = {
            name: data[name].fillna(0.0)
            for name in map(str, data.data_vars)
            if name.endswith(("_error", "_spread"))
        }
        ours = judge(claim, data.assign(known)).ours
        if ours is None:
            return None
        return replace(ours, at="one network; its spread is not known")

    def moves(self) -> dict[str, Ours]:
        """Return what moves the central claim (:func:`figures.trial.benchmarks.moves_of`)."""
        return benchmarks.moves_of(self, self.data.get("performance_benchmarks"))


def _cell(run: Run) -> tuple[str, int]:
    """Return what the networks of a cell have in common: all but the seed, and the last epoch."""
    return parameters_hash(without_seed(run.identity)), run.epochs[-1]


def _benchmarks(stored: Stored) -> xr.Dataset | None:
    ours, theirs = (
        stored.latest("performance_benchmarks", cells) for cells in benchmarks.by_width()
    )
    return benchmarks.accuracies_by_width(stored, ours, theirs)


def _phase(*path: str) -> Number:
    """Return the reader of a number of the phases, with its error."""

    def read(row: Mapping[str, Any]) -> tuple[float, float] | None:
        name, *rest = path
        value, error = row["phases"].get(name), row["phases"].get(f"{name}_error")
        for part in rest:
            value, error = value[part], error[part]
        return None if value is None or error is None else (float(value), float(error))

    return read


_LEVELS = ("median", "q25", "q75", "q05", "q95")


def _overlaps(stored: Stored) -> xr.Dataset | None:
    parts: list[xr.Dataset | None] = []
    seeds = [seed for stage in designs.INITIAL_SEEDS for seed in stage]
    for epoch in (0, 1, 20):
        latest = stored.latest(
            "qdyn_table",
            {
                (*row, epoch): [designs.overlap_network(row, seed, (epoch,)) for seed in seeds]
                for row in designs.ROWS
            },
        )
        dims = ("jd", "lambda_x", "lambda_y", "epoch")
        # The spread of networks depends on all three couplings before they are trained.
        table = latest.table(dims, epoch, lambda cell: cell if cell[3] == 0 else cell[0])
        rows = [
            table.number(stored, f"qdyn_{one}", _phase("q_dyn", one), step=2 / designs.OVERLAP_N)
            for one in _LEVELS
        ]
        rows += [
            table.number(stored, "sweeps", _phase("sweeps_clamped")),
            table.number(stored, "sweeps_free", _phase("sweeps_free")),
            table.accuracy(stored, "training_accuracy", "train_correct", "training"),
            table.accuracy(stored, "test_accuracy", "test_correct", "test"),
        ]
        parts += rows
    return merged_tables(parts, n=designs.OVERLAP_N)


def _symmetry(row: Mapping[str, Any]) -> tuple[float, float] | None:
    level = row["phases"]["symmetry"]
    return None if level is None else (float(level), 1e-6)


def _rules(stored: Stored) -> xr.Dataset | None:
    every = [
        (rule, scheme, jd)
        for rule in designs.RULES
        for scheme in designs.SCHEMES
        for jd in (0.5, 0.0)
    ]
    latest = stored.latest(
        "symmetric_rules",
        {
            cell: [designs.rules_network(*cell, seed) for seed in designs.ALL_SEEDS]
            for cell in every
        },
    )

    def levels(epoch: int) -> Table:
        # Rules that keep symmetry exactly have no spread; others do.
        return latest.along(epoch).table((*dims, "epoch"), epoch, lambda cell: cell[0])

    dims, last = ("rule", "scheme", "jd"), designs.RULES_EPOCHS
    # Without self-coupling the full scheme is chaotic, and networks differ by several percent.
    table = latest.table(dims, last, lambda cell: cell[1:])
    parts = [
        table.accuracy(stored, "training_accuracy", "train_correct", "training"),
        table.accuracy(stored, "test_accuracy", "test_correct", "test"),
        *(levels(epoch).number(stored, "symmetry", _symmetry) for epoch in (0, last)),
    ]
    return merged_tables(parts, n=designs.RULES_N, epochs=last)


def _roles(stored: Stored) -> xr.Dataset | None:
    sizes = [("full", n, jd) for n in (100, 1600) for jd in (0.05, 0.2, 0.5, 0.9)]
    sizes += [(scheme, 400, jd) for scheme in designs.SCHEMES for jd in (0.5, 0.1)]
    sizes += [(scheme, n, 0.5) for scheme in designs.SCHEMES for n in (1600, 3200)]
    sizes.append(("full", 1600, 0.0))
    cells: Cells = {
        cell: [designs.role_network(*cell, seed) for seed in designs.ALL_SEEDS]
        for cell in dict.fromkeys(sizes)
    }

    def regime(cell: tuple[Any, ...]) -> Hashable:
        """Return J_D where the full scheme has too little to settle, at any size; else None.

        Networks that do not settle differ the more, the less J_D they have.
        """
        scheme, _, jd = cell
        return jd if scheme == "full" and jd < designs.SETTLED_JD else None

    dims = ("scheme", "n", "jd")
    table = Table(dims, cells, designs.ROLE_EPOCHS, regime)
    first = Table((*dims, "epoch"), {(*cell, 0): runs for cell, runs in cells.items()}, 0, _weak)
    parts = [
        table.accuracy(stored, "training_accuracy", "train_correct", "training"),
        table.accuracy(stored, "test_accuracy", "test_correct", "test"),
        first.number(stored, "unsettled", _unsettled),
    ]
    return merged_tables(parts, epochs=designs.ROLE_EPOCHS)


def _weak(cell: tuple[Any, ...]) -> bool:
    """Return whether the self-coupling is too weak for phases to settle before training."""
    return bool(cell[2] < designs.SETTLED_JD)


def _unsettled(row: Mapping[str, Any]) -> tuple[float, float]:
    """Return the share of samples whose free phase has not settled when it ends."""
    share, samples = float(row["phases"]["unstable_free"]), int(row["phases"]["samples"])
    return share, math.sqrt(max(share * (1 - share), 1 / samples) / samples)


def _features(stored: Stored) -> xr.Dataset | None:
    cells: Cells = {
        (model, n): [designs.feature_runs(model, n, seed) for seed in designs.ALL_SEEDS]
        for model in (
            "ours",
            *(f"{name}{end}" for name in designs.BASELINES for end in ("", AS_OURS)),
        )
        for n in designs.FEATURE_WIDTHS
    }
    table = Table(("model", "n"), cells, designs.FEATURE_EPOCHS, lambda cell: cell[0])
    parts = [
        table.accuracy(stored, "training_accuracy", "train_correct", "training"),
        table.accuracy(stored, "test_accuracy", "test_correct", "test"),
    ]
    return merged_tables(parts, epochs=designs.FEATURE_EPOCHS)


def _duality(stored: Stored) -> xr.Dataset | None:
    parts = []
    for axis, values in (("jd", designs.PAIR_JD), ("lam", designs.PAIR_LAM)):
        cells: Cells = {
            (value,): [
                designs.pair_network(*((value, 0.0) if axis == "jd" else (0.0, value)), seed)
                for seed in designs.ALL_SEEDS
            ]
            for value in values
        }
        table = Table((axis,), cells, designs.PAIR_EPOCHS)
        for part, images in (("train", "training"), ("test", "test")):
            name = f"{images}_accuracy_{axis}"
            parts.append(table.accuracy(stored, name, f"{part}_correct", images))
    return merged_tables(parts, n=designs.PAIR_N, epochs=designs.PAIR_EPOCHS)


def _spots(stored: Stored) -> xr.Dataset | None:
    seeds = designs.ALL_SEEDS
    variants: Cells = {
        ("ours",): [designs.spot_network(seed) for seed in seeds],
        ("feedback",): [designs.spot_network(seed, eta_back=designs.ETA_BACK) for seed in seeds],
        ("strong",): [designs.spot_network(seed, jd=designs.STRONG) for seed in seeds],
        ("random",): [designs.spot_random(seed) for seed in seeds],
    }
    offline: Cells = {("offline",): [designs.offline_network(seed) for seed in seeds]}
    topology = stored.latest(
        "spot_checks",
        {
            (skip, one): [designs.block_network(seed, learns=one, skip=skip) for seed in seeds]
            for skip in (False, True)
            for one in (True, False)
        },
    )
    table = {("table", 0.0): [designs.tuned_network(seed) for seed in benchmarks.SEEDS]}
    tuned: Cells = table | {
        (name, value): [designs.tuned_network(seed, **{name: value}) for seed in benchmarks.SEEDS]
        for name, values in designs.OTHER_SETTINGS.items()
        for value in values
    }
    changed = stored.latest("spot_checks", variants)
    grid = stored.latest(
        "spot_checks",
        {cell: [designs.grid_network(*cell, seed) for seed in seeds] for cell in designs.SPOT_GRID},
    )
    last = designs.SPOT_EPOCHS
    parts = [
        # Where W_back learns, learning fails, by an amount that differs from seed to seed.
        changed.table(("variant",), last, lambda cell: cell[0] == "feedback").accuracy(
            stored, "variant_accuracy", "test_correct", "test"
        ),
        Table(("readout",), offline, last).gain(
            stored, "readout_gain", "offline_test_correct", "test_correct"
        ),
        # Networks without skip connections gain a little or fall to guessing, by their seed: a pool
        # of their own, chosen when three had been seen.
        topology.table(("skip", "learns"), last, lambda cell: cell == (False, True)).accuracy(
            stored, "topology_accuracy", "test_correct", "test"
        ),
        Table(("setting", "other"), tuned, benchmarks.EPOCHS).accuracy(
            stored, "tuned_accuracy", "probe_test_correct", "test"
        ),
        # Cells that settle and cells that do not are two pools, as those of the role of J_D are;
        # split after runs had been seen: of three networks each, the deviations of the 24 cells
        # that settle are 0.0006 to 0.010, of the three others 0.012 to 0.035.
        grid.table(("lambda_x", "jd", "lambda_y"), last, _settled).accuracy(
            stored, "test_accuracy", "test_correct", "test"
        ),
    ]
    return merged_tables(parts, n=designs.SPOT_N, epochs=last)


def _settled(cell: tuple[Any, ...]) -> bool:
    """Return whether a network with this lambda_x, J_D and lambda_y is held by input or itself."""
    lambda_x, jd, _ = cell
    return bool(jd >= designs.SETTLED_JD or lambda_x >= designs.LANDSCAPE_LAMBDA_X[0])


def _stages(stored: Stored) -> xr.Dataset | None:
    """Return the surveys of the landscape before and after training, means over networks."""
    seeds = [seed for stage in designs.LANDSCAPE_SEEDS for seed in stage]
    networks = stored.latest(
        "landscape",
        {
            (lam,): [designs.landscape_network(lam, seed) for seed in seeds]
            for lam in designs.LANDSCAPE_LAMBDA_X
        },
    )
    parts = []
    for stage, epoch in (("before", 0), ("after", designs.LANDSCAPE_EPOCHS)):
        table = networks.along(stage).table(("lambda_x", "stage"), epoch, lambda cell: cell[0])
        parts += [table.array(stored, name, "survey", dims) for name, dims in _SURVEYED.items()]
    last = networks.table(("lambda_x",), designs.LANDSCAPE_EPOCHS, lambda cell: cell[0])
    parts += [
        *(last.change(stored, f"change_of_{name}", 0, read) for name, read in _CHANGED.items()),
        last.accuracy(stored, "training_accuracy", "train_correct", "training"),
        last.accuracy(stored, "test_accuracy", "test_correct", "test"),
    ]
    steps = designs.LANDSCAPE_SURVEY["steps"]
    taus = np.arange(steps + 1) / steps
    data = merged_tables(parts, n=designs.LANDSCAPE_N, epochs=designs.LANDSCAPE_EPOCHS)
    if data is None or "noise" not in data.dims:
        return None
    noises = designs.LANDSCAPE_SURVEY["noises"]
    return data.assign_coords(noise=noises, tau=taus, other_tau=taus)


def _length(row: Mapping[str, Any]) -> float:
    """Sum of the distances of successive attractors along a path, over that of its ends."""
    return float(np.diagonal(np.array(row["survey"]["trajectory"]), 1).sum())


#: What training changes in a network: name -> how it is read off the survey.
_CHANGED: dict[str, Callable[[Mapping[str, Any]], float]] = {
    "curvature": lambda row: float(row["survey"]["curvature_mean"]),
    "length": _length,
    "displacement": lambda row: float(row["survey"]["displacement_median"][-1]),
    "similarity": lambda row: float(row["survey"]["similarity_mean"]),
    "clustering": lambda row: float(
        row["survey"]["similarity_within"] - row["survey"]["similarity_between"]
    ),
}

#: What a survey of the landscape has with an error -> its dimensions besides network and stage.
_SURVEYED: dict[str, tuple[str, ...]] = {
    "curvature_mean": (),
    "curvature_sd": (),
    "trajectory": ("tau", "other_tau"),
    **{f"displacement_{level}": ("noise",) for level in ("q25", "median", "q75")},
    **{f"similarity_{part}": () for part in ("mean", "within", "between")},
}


_BUILDERS: dict[str, Callable[[Stored], xr.Dataset | None]] = {
    "performance_benchmarks": _benchmarks,
    "qdyn_table": _overlaps,
    "symmetric_rules": _rules,
    "self_coupling": _roles,
    "feature_learning": _features,
    "jd_lambda_duality": _duality,
    "spot_checks": _spots,
    "landscape": _stages,
    "clusters": without_data.clusters_of,
    "capacity": without_data.associations_of,
    "searches": without_data.unreachable_of,
    "dynamics_threshold": without_data.dynamics_of,
    "thresholds": without_data.algorithms_of,
}

#: Data sets that runs of the trial give; of one figure only a share of networks.
TRIED = frozenset(_BUILDERS)
