"""The central claim: comparable to backpropagation, at every width and on every benchmark.

First which runs decide it, all of it fixed before these start, and those that say what moves it
(:mod:`figures.trial.designs` has the questions in order, and the second experiments); then what
stored runs say (:mod:`figures.trial.evidence`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from figures.claims.claim import RUNS, At, Imagewise, Minus, Ours
from figures.trial.runs import (
    Classes,
    Linear,
    Network,
    Perceptron,
    Question,
    Run,
    question,
)
from figures.trial.store import plan_of, unpack
from figures.trial.tables import Cells, Latest, StoredRuns, merged_tables
from rmtheory.base.statistics import sample_error

# Which runs decide it.

#: Data set of the claims -> data set, preset, length of inputs.
BENCHMARKS = {
    "mnist": ("mnist", "mnist-sparse", 784),
    "fashion_mnist": ("fashion-mnist", "fashion-mnist-sparse", 784),
    "entangled_mnist": ("entangled-mnist", "entangled-mnist-sparse", 100),
}

#: Widths of the benchmarks (SM-D).
WIDTHS = (1000, 2000, 3000, 4000, 5000, 6000)

#: Seeds of the benchmarks, one stage each.
SEEDS = (0, 1, 2, 3)

#: Epochs of network, probe and perceptron; the shorter ones for the first seeds only.
EPOCHS, SHORTER, SHORTER_SEEDS = 20, 10, 2

#: Rates of Adam besides that of the tables, at which the perceptron beside N = 1000 is tried.
OTHER_RATES = (0.001, 0.01)

#: The one of these that is tried beside every width: chosen when the rates of the tables had been
#: seen to lose accuracy with width, and 0.01 to be worse at N = 1000.
TUNED_RATE = 0.001


def benchmark_network(name: str, n: int, seed: int, **settings: Any) -> Network:
    """Return the sparse network of a benchmark, with its probe."""
    epochs = (SHORTER, EPOCHS) if seed < SHORTER_SEEDS else (EPOCHS,)
    plan = plan_of(BENCHMARKS[name][1], n, seed, **settings)
    return Network(plan, epochs, probe=True)


def benchmark_perceptron(name: str, n: int, seed: int, eta: float | None = None) -> Perceptron:
    """Return the perceptron with as many parameters as the network of a benchmark.

    Its rate is by default that of the paper's tables, as all numbers of the network are.
    """
    from rmsim.learning.baselines import ETA_MLP, core_parameters, matched_width

    dataset, _, inputs = BENCHMARKS[name]
    width = matched_width(core_parameters(n, inputs, 10), inputs, 10).width
    rate = ETA_MLP[dataset] if eta is None else eta
    return Perceptron(dataset, width, rate, seed, (SHORTER, EPOCHS))


def benchmark_pair(name: str, n: int, seed: int) -> tuple[Run, Run]:
    """Return the network of a benchmark and its perceptron."""
    return benchmark_network(name, n, seed), benchmark_perceptron(name, n, seed)


def second_benchmark(name: str, n: int, again: Mapping[str, range]) -> tuple[tuple[Run, Run], ...]:
    """Return networks and perceptrons of the second experiment on a benchmark, if there is one.

    `again` has the seeds of second experiments by their names.
    """
    return tuple(benchmark_pair(name, n, seed) for seed in again.get(f"{name}, N = {n}", ()))


def linear_classifier() -> Linear:
    """Return the softmax classifier on the inputs of Entangled MNIST."""
    return Linear("entangled-mnist", 0, (EPOCHS,))


def classes(name: str) -> Classes:
    """Return the count of the classes of a data set."""
    return Classes(BENCHMARKS[name][0])


def counted_classes() -> Question:
    """Ask whether classes are equally large."""
    names = ("mnist", "fashion_mnist")
    keys = tuple(f"classes of {name}" for name in names)
    return question(
        "classes", "performance_benchmarks", keys, tuple(classes(name) for name in names)
    )


def comparisons(again: Mapping[str, range]) -> list[Question]:
    """Ask the central claim; `again` has the seeds of second experiments by their names."""
    return [
        question(
            f"{name}, N = {n}",
            "performance_benchmarks",
            (f"comparable {name} {n}",),
            *(benchmark_pair(name, n, seed) for seed in SEEDS),
            second=tuple(run for pair in second_benchmark(name, n, again) for run in pair),
        )
        for n in WIDTHS
        for name in BENCHMARKS
    ]


#: What is changed of ours at N = 1000 to see what moves the central claim: batch, or factors of
#: the scale of the inputs and of the labels.
OTHER_OURS: dict[str, dict[str, float]] = {
    "batches of 8": {"batch": 8},
    "batches of 32": {"batch": 32},
    "inputs half as strong": {"lambda_x": 0.5},
    "inputs twice as strong": {"lambda_x": 2.0},
    "labels half as strong": {"lambda_y": 0.5},
    "labels twice as strong": {"lambda_y": 2.0},
}


def varied_network(name: str, change: str, seed: int) -> Network:
    """Return the network of N = 1000 of a benchmark with a change of :data:`OTHER_OURS`."""
    table = benchmark_network(name, 1000, seed).plan.parameters.to_dict()
    settings = {
        setting: int(value) if setting == "batch" else value * table[setting]
        for setting, value in OTHER_OURS[change].items()
    }
    return replace(benchmark_network(name, 1000, seed, **settings), epochs=(EPOCHS,))


def variants() -> list[Run]:
    """Return runs that decide no claim, and say what moves the central one, one seed each."""
    rates = [(1000, eta) for eta in OTHER_RATES] + [(n, TUNED_RATE) for n in WIDTHS[1:]]
    perceptrons = [benchmark_perceptron(name, n, 0, eta) for n, eta in rates for name in BENCHMARKS]
    ours = [varied_network(name, change, 0) for change in OTHER_OURS for name in BENCHMARKS]
    return [*perceptrons, *ours]


def against_linear() -> Question:
    """Ask whether a linear classifier is worse than the perceptron."""
    seeds = [benchmark_perceptron("entangled_mnist", 1000, seed) for seed in SEEDS]
    return question(
        "linear classifier",
        "performance_benchmarks",
        ("linear classifier",),
        *((linear_classifier(), one) for one in seeds),
    )


# What stored runs say.


def _accuracies(
    stored: StoredRuns,
    dims: tuple[str, ...],
    ours: Latest,
    theirs: Latest,
) -> list[xr.Dataset | None]:
    """Return accuracies of networks and perceptrons; spreads are pooled over a data set."""
    parts = []
    for epoch, end in ((EPOCHS, ""), (SHORTER, "_shorter")):
        for name, cells, quantity in (
            ("accuracy", ours, "probe_test_correct"),
            ("own_accuracy", ours, "test_correct"),
            ("mlp_accuracy", theirs, "test_correct"),
        ):
            table = cells.table(dims, epoch, lambda cell: cell[0])
            parts.append(table.accuracy(stored, f"{name}{end}", quantity, "test"))
    return parts


def by_width() -> tuple[Cells, Cells]:
    """Return networks and perceptrons by data set and width."""
    sizes = [(name, n) for name in BENCHMARKS for n in WIDTHS]
    ours, theirs = (
        {cell: [benchmark_pair(*cell, seed)[which] for seed in SEEDS] for cell in sizes}
        for which in (0, 1)
    )
    return ours, theirs


def accuracies_by_width(stored: StoredRuns, ours: Latest, theirs: Latest) -> xr.Dataset | None:
    """Return what is read of networks and perceptrons, of classes and of the linear classifier."""
    parts = _accuracies(stored, ("dataset", "n"), ours, theirs)
    parts += [_tuned_perceptrons(stored, theirs), _class_counts(stored)]
    linear = stored.metrics(linear_classifier(), EPOCHS)
    data = merged_tables(parts, epochs=EPOCHS)
    if data is not None and linear is not None:
        right = unpack(linear["test_correct"])
        data["linear_accuracy"] = xr.DataArray(right.mean(), attrs={"images": "test"})
        # The problem is convex: the seed, which orders the samples, hardly matters.
        data["linear_accuracy_spread"] = xr.DataArray(0.0)
        data["linear_accuracy_error"] = xr.DataArray(sample_error(right))
        data["linear_accuracy_images"] = ("image_test", right.astype(np.float32))
        data[f"linear_accuracy{RUNS}"] = xr.DataArray(linear_classifier().key)
    return data


def _tuned_perceptrons(stored: StoredRuns, theirs: Latest) -> xr.Dataset | None:
    """Return the accuracy at the tuned rate, whose spread is that of all perceptrons."""
    tuned = {
        (name, n, "tuned"): [benchmark_perceptron(name, n, 0, TUNED_RATE)]
        for name, n in theirs.cells
    }
    cells = theirs.along(_TABLES).beside(tuned)
    table = cells.table(("dataset", "n", "rate"), EPOCHS, lambda cell: cell[0])
    both = table.accuracy(stored, "tuned_mlp_accuracy", "test_correct", "test")
    return None if both is None else both.sel(rate="tuned", drop=True)


#: Name of what is not changed.
_TABLES = "tables"


def _readings_of(name: str) -> dict[str, Minus]:
    """Return what is read of a data set: ours minus the perceptron, then what changes add to it."""

    def at(variable: str, change: str = _TABLES) -> At:
        return At(variable, {"dataset": name, "change": change})

    gap = Minus(at("accuracy"), at("mlp_accuracy"))
    return {
        "nothing: ours minus the perceptron": gap,
        "10 + 10 epochs": Minus(Minus(at("accuracy_shorter"), at("mlp_accuracy_shorter")), gap),
        "readout by the perceptron rule, online": Minus(at("own_accuracy"), at("accuracy")),
        **{change: Minus(at("accuracy", change), at("accuracy")) for change in OTHER_OURS},
        **{
            f"perceptron at the rate {eta:g}": Minus(
                at("mlp_accuracy"), at("mlp_accuracy", f"rate {eta:g}")
            )
            for eta in OTHER_RATES
        },
    }


def _against_tuned(name: str) -> dict[str, Minus]:
    """Return ours minus the perceptron at the tuned rate, by width."""
    sizes = {n: {"dataset": name, "n": n} for n in WIDTHS}
    return {
        f"rate {TUNED_RATE:g}, N = {n}": Minus(
            At("accuracy", where), At("tuned_mlp_accuracy", where)
        )
        for n, where in sizes.items()
    }


#: What may be changed, in order, and the widths beside which the perceptron is tuned.
CHANGES, TUNED = tuple(_readings_of("")), tuple(_against_tuned(""))


def _changed() -> tuple[Latest, Latest]:
    """Return networks and perceptrons by data set and change; other widths give their spread."""
    changes = {n: _TABLES if n == 1000 else f"N = {n}" for n in WIDTHS}
    ours: dict[tuple[Any, ...], list[Run]] = {}
    theirs: dict[tuple[Any, ...], list[Run]] = {}
    for name in BENCHMARKS:
        for n, change in changes.items():
            cell = (name, change)
            ours[cell] = [benchmark_network(name, n, seed) for seed in SEEDS]
            theirs[cell] = [benchmark_perceptron(name, n, seed) for seed in SEEDS]
        for change in OTHER_OURS:
            ours[name, change] = [varied_network(name, change, 0)]
        for eta in OTHER_RATES:
            theirs[name, f"rate {eta:g}"] = [benchmark_perceptron(name, 1000, 0, eta)]
    return Latest.of(ours), Latest.of(theirs)


def moves_of(stored: StoredRuns, widths: xr.Dataset | None) -> dict[str, Ours]:
    """Return ours minus the perceptron at N = 1000, and by how much a change moves it.

    Then, by width, ours minus the perceptron at the tuned rate. Keys are the data set and what
    was changed, with ': ' between them. A network that was changed has one seed, and borrows
    the spread of all widths of its data set.
    """
    changed = merged_tables(_accuracies(stored, ("dataset", "change"), *_changed()))
    moved = {}
    for name in BENCHMARKS:
        for data, readings in ((changed, _readings_of(name)), (widths, _against_tuned(name))):
            for change, read in readings.items():
                number = None if data is None else read(data)
                if isinstance(number, Imagewise):
                    moved[f"{name}: {change}"] = number.plain
    return moved


def _class_counts(stored: StoredRuns) -> xr.Dataset | None:
    """Return the largest class minus the least, over their mean."""
    keys = {classes(name).key: name for name in BENCHMARKS}
    rows = stored.rows(map(classes, BENCHMARKS), 0)
    if not rows:
        return None
    counts = [np.array(row["classes"], dtype=float) for row in rows.values()]
    spans = [(one.max() - one.min()) / one.mean() for one in counts]
    columns = {"class_span": ("dataset", spans), f"class_span{RUNS}": ("dataset", list(rows))}
    data = xr.Dataset(columns, {"dataset": [keys[key] for key in rows]})
    return data.assign(class_span_error=data["class_span"] * 0.0)
