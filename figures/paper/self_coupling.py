"""Accuracy against J_D for several N, for the full and the approximate scheme (SM-C, SM-G).

One set of trained networks, two figures: the role of J_D, and the two schemes side by side.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from figures.engine.figure import Context, Figure, Parameters, Scale
from figures.engine.plotting import DOUBLE, chance_line, label_axes, panels, shades
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

_SEED = 4

_MEANING = {
    "training_accuracy": "accuracy on the training set",
    "test_accuracy": "accuracy on the test set",
}
_LABELS = {"training_accuracy": "training accuracy", "test_accuracy": "test accuracy"}


def _parameters(
    n: list[int], jd: list[float], networks: int, epochs: int, data: dict[str, Any]
) -> Parameters:
    return {
        "seed": _SEED,
        "n": n,
        "jd": jd,
        "networks": networks,
        "fixed": {"preset": "role-of-jd", MEASURED_AT: [epochs], "watched": FEW, **data},
    }


def compute(parameters: Parameters, context: Context) -> xr.Dataset:
    """Train all networks by both schemes."""
    sweep = training(
        "self_coupling",
        {"scheme": ["full", "approximate"], "n": parameters["n"], "jd": parameters["jd"]},
        parameters["fixed"],
        parameters["seed"],
        replicas=parameters["networks"],
        paired=("scheme", "jd"),
    )
    data = gathered({"all": sweep}, _MEANING, context)["all"]
    return data.isel(epoch=-1).rename(epoch="epochs")


def plot_role(data: xr.Dataset) -> Picture:
    """Draw training and test accuracy of the full scheme against J_D."""
    picture, axes = panels(2)
    for axis, name in zip(axes, _LABELS, strict=True):
        shown = _shown(data, name, ("full",))
        sizes = shown["n"].values.tolist()
        for n, colour in zip(sizes, shades("viridis", len(sizes)), strict=True):
            _curve(axis, shown.sel(scheme="full", n=n), name, color=colour, label=f"$N={n}$")
        label_axes(axis, r"self-coupling $J_D$", _LABELS[name])
        axis.set_ylim(0, 1)
        chance_line(axis)
        title = trained_for(shown.sel(scheme="full"), name)
        axis.legend(title=title, loc="lower right", bbox_to_anchor=(1, 0.12))
    return picture


def plot_schemes(data: xr.Dataset) -> Picture:
    """Draw test accuracy of both schemes against J_D, a panel for each N of the paper's figure."""
    name = "test_accuracy"
    shown = _shown(data, name, ("full", "approximate"))
    sizes = shown["n"].values.tolist()
    chosen = [n for n in (400, 1600) if n in sizes] if len(sizes) > 3 else sizes
    picture, axes = panels(len(chosen), DOUBLE)
    for axis, n in zip(axes, chosen, strict=True):
        for k, scheme in enumerate(shown["scheme"].values.tolist()):
            one = shown.sel(scheme=scheme, n=n)
            _curve(axis, one, name, color=f"C{k}", marker="os"[k], label=scheme)
        label_axes(axis, r"self-coupling $J_D$", "test accuracy")
        axis.set_ylim(0, 1)
        chance_line(axis)
        title = f"$N={n}$, {trained_for(shown.sel(n=n), name)}"
        axis.legend(title=title, loc="lower right", bbox_to_anchor=(1, 0.12))
    return picture


def _shown(data: xr.Dataset, name: str, schemes: tuple[str, ...]) -> xr.Dataset:
    """Return the stored runs of the sizes with three points of each scheme, else `data`."""
    stored = of_trial(data, "self_coupling", name)
    if stored is data:
        return data
    points = stored[name].sel(scheme=list(schemes)).notnull().sum("jd").min("scheme").values
    there = np.flatnonzero(points >= 3)
    return stored.isel(n=there).sortby("jd") if there.size else data


def _curve(axis: Axes, data: xr.Dataset, name: str, **style: Any) -> None:
    there = np.flatnonzero(np.isfinite(data[name].values))
    one = data.isel(jd=there)
    axis.errorbar(one["jd"], one[name], one[f"{name}_error"], capsize=2, **{"marker": "o", **style})


_SCALES = {
    Scale.TINY: _parameters([40, 60], [0.1, 0.5], 2, 1, TINY_DATA),
    Scale.QUICK: _parameters(
        [100, 400],
        [0.05, 0.2, 0.35, 0.5, 0.7, 0.9],
        2,
        3,
        {"train_samples": 10_000, "test_samples": 4000},
    ),
    Scale.PAPER: _parameters(
        [100, 200, 400, 800, 1600, 3200],
        [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
        3,
        100,
        ALL,
    ),
}

#: 10 values of J_D, 3 networks, 2 schemes, 100 epochs of 5 + 5 + 7 + 12 + 30 + 120 s.
_HOURS = {Scale.PAPER: 280.0}

ROLE_OF_JD = Figure(
    name="role_of_jd",
    title="Accuracy against the self-coupling, several sizes",
    caption=(
        "One layer trained on Entangled MNIST by the full scheme, accuracy on (a) the training "
        f"and (b) the test set against J_D. {trained_on(_SCALES)} {STORED} Error bars: "
        "spread over networks and size of the test set, one standard deviation."
    ),
    parameters=_SCALES,
    compute=compute,
    plot=plot_role,
    seed=_SEED,
    data="self_coupling",
    core_hours=_HOURS,
    earlier=("1-8633bec8355b",),
)

SINGLE_DOUBLE = replace(
    ROLE_OF_JD,
    name="single_double",
    title="The full and the approximate training scheme",
    caption=(
        "Test accuracy against J_D for the full scheme (clamped, then free phase) and the "
        "approximate one (s* = s', no free phase). The networks are those of role_of_jd. Error "
        "bars: one standard deviation."
    ),
    plot=plot_schemes,
)
