"""Accuracy against the number of features: learnt, random, and of a reservoir (SM-D)."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from figures.claims.performance import AS_OURS
from figures.engine.figure import Context, Figure, Parameters, Scale
from figures.engine.plotting import label_axes, panels
from figures.paper.trained_networks import (
    ALL,
    FEW,
    STORED,
    TINY_DATA,
    gathered,
    of_trial,
    trained_for,
    trained_on,
    training,
)
from rmsim.learning.presets import MEASURED_AT

_SEED = 6

#: Preset -> name and label of the curve.
_MODELS = {
    "feature-learning": ("ours", "ours"),
    "random-features": ("random_features", "random features"),
    "reservoir": ("reservoir", "reservoir"),
}
_MEANING = {
    "training_accuracy": "accuracy on the training set",
    "test_accuracy": "accuracy on the test set",
}


def _parameters(n: list[int], networks: int, epochs: int, data: dict[str, Any]) -> Parameters:
    return {
        "seed": _SEED,
        "n": n,
        "networks": networks,
        "fixed": {MEASURED_AT: [epochs], "watched": FEW, **data},
    }


def compute(parameters: Parameters, context: Context) -> xr.Dataset:
    """Train ours, and the readouts of the two networks that do not learn."""
    sweep = training(
        "feature_learning",
        {"preset": list(_MODELS), "n": parameters["n"]},
        parameters["fixed"],
        parameters["seed"],
        replicas=parameters["networks"],
        paired=("preset",),
    )
    data = gathered({"all": sweep}, _MEANING, context)["all"]
    data = data.isel(epoch=-1).rename(epoch="epochs", preset="model")
    return data.assign_coords(model=[_MODELS[str(name)][0] for name in data["model"].values])


def plot(data: xr.Dataset) -> Picture:
    """Draw training and test accuracy against N."""
    picture, axes = panels(2)
    for axis, part in zip(axes, ("training", "test"), strict=True):
        shown = _shown(data, f"{part}_accuracy")
        for k, (model, label) in enumerate(_MODELS.values()):
            one = shown.sel(model=model)
            one = one.isel(n=np.flatnonzero(np.isfinite(one[f"{part}_accuracy"].values)))
            axis.errorbar(
                one["n"],
                one[f"{part}_accuracy"],
                one[f"{part}_accuracy_error"],
                marker="os^"[k],
                capsize=2,
                label=label,
            )
            _draw_rate_of_ours(axis, shown, part, model, f"{label}{_RATE}", k)
        axis.set_xscale("log")
        axis.set_xticks(shown["n"].values, [str(n) for n in shown["n"].values])
        axis.minorticks_off()
        label_axes(axis, "features $N$", f"{part} accuracy")
        handles, labels = axis.get_legend_handles_labels()
        order = sorted(range(len(labels)), key=lambda k: labels[k].endswith(_RATE))  # stable
        axis.legend(
            [handles[k] for k in order],
            [labels[k] for k in order],
            title=trained_for(shown, f"{part}_accuracy"),
        )
    return picture


#: Ends the label of a baseline whose readout learns at the rate of ours.
_RATE = ", rate 0.1"


def _draw_rate_of_ours(
    axis: Axes, shown: xr.Dataset, part: str, model: str, label: str, k: int
) -> None:
    """Draw a baseline whose readout learns at the rate of ours, where stored runs have it."""
    name = f"{model}{AS_OURS}"
    if name not in shown["model"].values:
        return
    one = shown.sel(model=name)[f"{part}_accuracy"]
    there = one.isel(n=np.flatnonzero(np.isfinite(one.values)))
    axis.plot(
        *(there["n"], there, "--"),
        color=f"C{k}",
        marker="os^"[k],
        markerfacecolor="white",
        linewidth=0.7,
        label=label,
    )


def _shown(data: xr.Dataset, name: str) -> xr.Dataset:
    """Return the stored runs of the sizes that all three models have, if there are three."""
    stored = of_trial(data, "feature_learning", name)
    if stored is data:
        return data
    models = [model for model, _ in _MODELS.values()]
    there = np.flatnonzero(stored[name].sel(model=models).notnull().all("model").values)
    return stored.isel(n=there) if there.size >= 3 else data


_SCALES = {
    Scale.TINY: _parameters([40, 80], 2, 1, TINY_DATA),
    Scale.QUICK: _parameters(
        [100, 200, 400], 2, 4, {"train_samples": 10_000, "test_samples": 4000}
    ),
    Scale.PAPER: _parameters([100, 200, 400, 800, 1600, 3200], 3, 200, ALL),
}

FIGURE = Figure(
    name="feature_learning",
    title="Learnt features against random ones and a reservoir",
    caption=(
        "Accuracy on (a) the training and (b) the test set of Entangled MNIST against the number "
        "N of features: one layer that learns, random features sgn(W x), and the same layer "
        "untrained (reservoir); all readouts by the perceptron rule, at a rate of 0.1 for ours and "
        "of 0.03 for the others, of stored runs at 0.1, too (open markers, dashed). "
        f"{trained_on(_SCALES)} {STORED} Error bars: spread "
        "over networks and size of the test set, one standard deviation."
    ),
    parameters=_SCALES,
    compute=compute,
    plot=plot,
    seed=_SEED,
    # 3 networks, 200 epochs of 180 s for all widths of ours, and two baselines of half as much.
    core_hours={Scale.PAPER: 60.0},
    earlier=("1-4d84d4a4ff92",),
)
