"""Test accuracy against the number of parameters: ours and the binarised perceptron (SM-D)."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from numpy.typing import NDArray

from figures.engine.figure import Context, Figure, Parameters, Scale
from figures.engine.plotting import COLUMN, DOUBLE, label_axes, panels
from figures.paper.trained_networks import (
    ALL,
    TINY_DATA,
    gathered,
    trained_for,
    training,
    trial_data,
)
from figures.trial.benchmarks import TUNED_RATE
from rmsim.learning.presets import MEASURED_AT
from rmtheory.base.statistics import sample_error

_SEED = 9

#: Name of the figure and of its data, those of the trial too.
DATA = "performance_benchmarks"

#: Stored runs alone: the perceptron at another rate, and how it is drawn.
_TUNED, _TUNED_LABEL = "tuned_mlp_accuracy", f"rate {TUNED_RATE:g}"
_HOLLOW: dict[str, Any] = {"markerfacecolor": "white", "linestyle": "--", "linewidth": 0.8}

#: Name here -> data set, preset, title, inputs, classes, widths of the paper.
_SIX = [1000, 2000, 3000, 4000, 5000, 6000]
_SETS: dict[str, tuple[str, str, str, int, int, list[int]]] = {
    "mnist": ("mnist", "mnist-sparse", "MNIST", 784, 10, _SIX),
    "fashion_mnist": ("fashion-mnist", "fashion-mnist-sparse", "Fashion-MNIST", 784, 10, _SIX),
    "entangled_mnist": (
        *("entangled-mnist", "entangled-mnist-sparse", "Entangled MNIST"),
        *(100, 10, _SIX),
    ),
    "tiny_imagenet": (
        *("tiny-imagenet-features", "tiny-imagenet-sparse", "Tiny ImageNet features"),
        *(512, 200, [1155, 1660, 2216, 2817, 3458, 4134]),
    ),
}

_MEANING = {
    "accuracy": "test accuracy of ours, softmax probe",
    "mlp_accuracy": "test accuracy of the perceptron with as many parameters",
}


def _parameters(
    sizes: dict[str, list[int]], networks: int, epochs: int, data: dict[str, Any]
) -> Parameters:
    return {"seed": _SEED, "n": sizes, "networks": networks, "epochs": epochs, "data": data}


def compute(parameters: Parameters, context: Context) -> xr.Dataset:
    """Train on the data sets that are on this machine; widths are there for all of the paper."""
    from rmsim.data.catalogue import CATALOGUE

    sweeps = {}
    for name, sizes in parameters["n"].items():
        dataset, preset = _SETS[name][:2]
        if CATALOGUE[dataset].locate(None) is None:
            continue
        sweeps[name] = training(
            f"benchmarks {name}",
            {"n": sizes},
            {"preset": preset, MEASURED_AT: [parameters["epochs"]], **parameters["data"]},
            parameters["seed"],
            replicas=parameters["networks"],
            compute="rmsim.studies.trained_networks:benchmark",
        )
    data = _widths(parameters["n"])
    for name, trained in gathered(sweeps, _MEANING, context).items():
        one = trained.isel(epoch=-1, drop=True).expand_dims(dataset=[name])
        data = data.combine_first(one)
    for name in (f"{value}{end}" for value in _MEANING for end in ("", "_error")):
        if name not in data:
            data[name] = data["mlp_width"] * np.nan
    for name, text in _MEANING.items():
        data[name].attrs["long_name"] = text
    data["linear_accuracy"], data["linear_accuracy_error"] = _linear(parameters, context)
    return data.sel(dataset=list(_SETS)).assign_coords(epochs=parameters["epochs"])


def _linear(parameters: Parameters, context: Context) -> tuple[xr.DataArray, xr.DataArray]:
    """Return the accuracy of a softmax classifier on the inputs of Entangled MNIST."""
    from rmsim.studies.trained_networks import linear_accuracy

    point = {"preset": _SETS["entangled_mnist"][1], "n": 100, **parameters["data"]}
    value, error = linear_accuracy(point, parameters["seed"], device=context.device)
    meaning = "test accuracy of a linear classifier on the inputs of Entangled MNIST"
    return xr.DataArray(value, attrs={"long_name": meaning}), xr.DataArray(error)


def _widths(others: dict[str, list[int]]) -> xr.Dataset:
    """Return parameters of ours and the width of the perceptron, at the widths of the paper."""
    from rmsim.learning.baselines import core_parameters, matched_width

    paper = [n for *_, sizes in _SETS.values() for n in sizes]
    columns = sorted({*paper, *(n for sizes in others.values() for n in sizes)})
    count, width = (np.full((len(_SETS), len(columns)), np.nan) for _ in range(2))
    for row, (name, (*_, inputs, classes, sizes)) in enumerate(_SETS.items()):
        for n in {*sizes, *others.get(name, [])}:
            wanted = core_parameters(n, inputs, classes)
            count[row, columns.index(n)] = wanted
            width[row, columns.index(n)] = matched_width(wanted, inputs, classes).width
    dims = ("dataset", "n")
    data = xr.Dataset(
        {
            "parameters": (dims, count, {"long_name": "parameters that ours learns, mean"}),
            "mlp_width": (dims, width, {"long_name": "width of the perceptron"}),
        },
        {"dataset": list(_SETS), "n": columns},
    )
    for name in ("parameters", "mlp_width"):
        data[f"{name}_error"] = data[name] * 0.0
    return data


def plot(data: xr.Dataset) -> Picture:
    """Draw one panel for every data set that was there."""
    shown = {name: _one(data, name) for name in _SETS}
    here = [name for name, one in shown.items() if np.isfinite(one["accuracy"].values).any()]
    if len(here) > 1 and all(np.isfinite(shown[x]["accuracy"].values).sum() == 1 for x in here):
        return _one_width({name: shown[name] for name in here})
    count = len(here) + (len(here) > 1)  # the last one is for the differences
    columns = min(2, count)
    rows = -(-count // columns)
    picture = Picture(
        figsize=(DOUBLE if columns == 2 else COLUMN, 0.4 + 2.2 * rows), layout="constrained"
    )
    axes = picture.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[count:]:
        axis.remove()
    for axis, name in zip(axes, here, strict=False):
        axis.set_title(_SETS[name][2])
        _panel(axis, shown[name])
    if count > len(here):
        _differences(axes[len(here)], {name: shown[name] for name in here})
    return picture


def _differences(axis: Axes, shown: dict[str, xr.Dataset]) -> None:
    """Draw ours minus the perceptron against N, all data sets."""
    axis.axhline(0, color="0.3", linewidth=0.8, linestyle=":")
    for k, (name, data) in enumerate(shown.items()):
        style: dict[str, Any] = {"marker": "D^v<"[k], "color": f"C{k + 2}", "capsize": 2}
        sizes, gaps, errors = _gaps(data, "mlp_accuracy", 40 * (k - 1))  # beside each other
        axis.errorbar(sizes, gaps, errors, label=_SETS[name][2], **style)
        sizes, gaps, errors = _gaps(data, _TUNED, 40 * (k - 1) + 130)
        if sizes.size:
            axis.errorbar(sizes, gaps, errors, **style, **_HOLLOW)
    if any(_TUNED in data for data in shown.values()):
        axis.errorbar([], [], [], marker="s", color="0.4", label=_TUNED_LABEL, **_HOLLOW)
    axis.set_title("ours minus the perceptron")
    axis.margins(0.05, 0.35)
    label_axes(axis, "neurons $N$", "difference of accuracies")
    axis.legend(loc="upper left")


def _gaps(
    data: xr.Dataset, theirs: str, shift: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return N, shifted, with ours minus a perceptron and the error, where both are known."""
    if theirs not in data:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    there = np.isfinite(data["accuracy"].values) & np.isfinite(data[theirs].values)
    one = data.isel(n=np.flatnonzero(there))
    gaps = [_difference(one.isel(n=place), theirs) for place in range(one.sizes["n"])]
    values, errors = np.array(gaps).reshape(-1, 2).T
    return one["n"].values + shift, values, errors


def _one_width(shown: dict[str, xr.Dataset]) -> Picture:
    """Draw data sets side by side, and the difference: no curve goes through one point."""
    picture, (left, right) = panels(2)
    chosen = {
        name: one.isel(n=int(np.flatnonzero(np.isfinite(one["accuracy"].values))[0]))
        for name, one in shown.items()
    }
    places = np.arange(len(chosen))
    for k, (name, label) in enumerate((("accuracy", "ours"), ("mlp_accuracy", "perceptron"))):
        values, errors = (
            np.array([float(one[f"{name}{end}"]) for one in chosen.values()])
            for end in ("", "_error")
        )
        left.errorbar(
            places + 0.12 * (2 * k - 1), values, errors, linestyle="none", marker="os"[k],
            capsize=2, label=label,
        )  # fmt: skip
    differences = np.array([_difference(one) for one in chosen.values()])
    right.errorbar(
        places, differences[:, 0], differences[:, 1], linestyle="none", marker="D", color="C2",
        capsize=2, label="ours - perceptron",
    )  # fmt: skip
    right.axhline(0, color="0.3", linewidth=0.8, linestyle=":")
    names = [
        f"{_SETS[name][2]}\n$N={int(one['n'])}$, "
        + trained_for(one, "accuracy").replace(", ", ",\n", 1)
        for name, one in chosen.items()
    ]
    for axis, label in ((left, "test accuracy"), (right, "difference of accuracies")):
        axis.set_xticks(places, names, fontsize="x-small")
        axis.set_xlim(-0.6, len(places) - 0.4)
        axis.grid(axis="x", visible=False)
        axis.margins(y=0.15)
        label_axes(axis, "data set", label)
        axis.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return picture


def _difference(one: xr.Dataset, theirs: str = "mlp_accuracy") -> tuple[float, float]:
    """Return ours minus the perceptron, and its error: image by image where images are stored."""
    value = float(one["accuracy"] - one[theirs])
    if "accuracy_images" not in one or f"{theirs}_images" not in one:
        return value, float(np.hypot(one["accuracy_error"], one[f"{theirs}_error"]))
    each = one["accuracy_images"].values - one[f"{theirs}_images"].values
    spread = np.hypot(one["accuracy_spread"], one[f"{theirs}_spread"])
    return value, float(np.hypot(spread, sample_error(each)))


def _one(data: xr.Dataset, name: str) -> xr.Dataset:
    """Return one data set: its stored runs, if it has some that learnt for longer."""
    computed, stored = data.sel(dataset=name), trial_data().get(DATA)
    if stored is None or name not in stored["dataset"] or "accuracy" not in stored:
        return computed
    one = stored.sel(dataset=name)
    if int(one["epochs"]) <= int(data["epochs"]) or not np.isfinite(one["accuracy"].values).any():
        return computed
    return one.assign(parameters=computed["parameters"].reindex(n=one["n"]))


def _panel(axis: Axes, data: xr.Dataset) -> None:
    styles: dict[str, dict[str, Any]] = {
        "accuracy": {"marker": "o", "label": "ours"},
        "mlp_accuracy": {"marker": "s", "label": "perceptron"},
        _TUNED: {"marker": "s", "color": "C1", "label": _TUNED_LABEL, **_HOLLOW},
    }
    for name, style in styles.items():
        if name not in data:
            continue
        one = data.isel(n=np.flatnonzero(np.isfinite(data[name].values)))
        axis.errorbar(
            # In units of a thousand: whole powers of ten are few on so short an axis.
            one["parameters"] / 1000,
            one[name],
            one[f"{name}_error"],
            capsize=2,
            **style,
        )
    axis.margins(0.15, 0.25)
    low, high = axis.get_ylim()
    axis.set_ylim(low, high + 0.2 * (high - low))  # above all bars, for the legend
    label_axes(axis, "trainable parameters (thousands)", "test accuracy")
    axis.legend(
        title=trained_for(data, "accuracy"), ncols=3, loc="upper left", columnspacing=0.8,
        handletextpad=0.3, handlelength=1.6,
    )  # fmt: skip


FIGURE = Figure(
    name=DATA,
    title="Sparse networks against a perceptron with as many parameters",
    caption=(
        "Test accuracy against the number of trainable parameters: one sparse layer with a "
        "softmax probe, and the binarised perceptron with two hidden layers, trained by "
        "straight-through gradients, of the width that has as many. Layer and perceptron learn for "
        "the epochs in the legends, the probe for as many again, and at least ten. Data sets of "
        "which there are stored runs of the trial (figures/data/trained, seeds from 0) show these, "
        "the others what was trained now; those not on the machine are left out (--recompute when "
        "they are there). Dashed, open markers: the perceptron at another rate than that of the "
        "paper's tables, one network each. The last panel is "
        "the difference, with the error of differences image by "
        "image. Error bars: spread over networks and size of the "
        "test set, one standard deviation; none where one network does not tell the spread."
    ),
    parameters={
        Scale.TINY: _parameters({"entangled_mnist": [100, 200]}, 2, 1, TINY_DATA),
        Scale.QUICK: _parameters(
            {"mnist": [1000], "fashion_mnist": [1000], "entangled_mnist": [500, 1000]}, 2, 3, ALL
        ),
        Scale.PAPER: _parameters({name: entry[5] for name, entry in _SETS.items()}, 5, 20, ALL),
    },
    compute=compute,
    plot=plot,
    seed=_SEED,
    # 5 networks, 20 epochs of 1 to 20 s by width, the probe and the perceptron as long again.
    core_hours={Scale.PAPER: 20.0},
    earlier=("1-98211d1600df", "1-8e4535adc824", "1-d5d971f1edda", "1-7ddf39feb95d"),
)
