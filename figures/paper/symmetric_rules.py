"""Symmetric couplings and symmetric rules against asymmetric ones (SM-E, SM-F).

One set of trained networks, two figures: accuracies, and the symmetry level during training.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure as Picture
from matplotlib.ticker import MaxNLocator

from figures.engine.figure import Context, Figure, Parameters, Scale
from figures.engine.plotting import label_axes, panels
from figures.paper.trained_networks import (
    ALL,
    FEW,
    TINY_DATA,
    gathered,
    of_trial,
    trained_for,
    trained_on,
    training,
)
from rmsim.learning.presets import MEASURED_AT

_SEED = 7
_RULES = ("asym", "sym0", "sym1", "sym2")
_SCHEMES = ("full", "approximate")
_MEANING = {
    "training_accuracy": "accuracy on the training set",
    "test_accuracy": "accuracy on the test set",
    "symmetry_level": "symmetry level of J",
    "unstable_free": "share of samples whose free phase finds no fixed point",
}

#: Sweeps of a free phase after which a sample that has not settled is said never to do so.
_SETTLE = 200


def _parameters(n: int, networks: int, epochs: list[int], data: dict[str, Any]) -> Parameters:
    fixed = {"preset": "role-of-jd", "n": n, MEASURED_AT: epochs, "watched": FEW, "settle": _SETTLE}
    fixed |= data
    return {"seed": _SEED, "jd": [0.0, 0.5], "networks": networks, "fixed": fixed}


def compute(parameters: Parameters, context: Context) -> xr.Dataset:
    """Train by every rule and scheme, with and without self-coupling."""
    sweep = training(
        "symmetric_rules",
        {"symmetry": list(_RULES), "scheme": list(_SCHEMES), "jd": parameters["jd"]},
        parameters["fixed"],
        parameters["seed"],
        replicas=parameters["networks"],
        paired=("symmetry", "scheme", "jd"),
    )
    data = gathered({"all": sweep}, _MEANING, context)["all"]
    data = data.rename(symmetry="rule").rename(
        symmetry_level="symmetry", symmetry_level_error="symmetry_error"
    )
    last = data.isel(epoch=-1, drop=True)
    for name in ("training_accuracy", "test_accuracy"):
        data = data.rename({name: f"{name}_by_epoch", f"{name}_error": f"{name}_by_epoch_error"})
        data[name], data[f"{name}_error"] = last[name], last[f"{name}_error"]
    fixed = parameters["fixed"]
    return data.assign_coords(n=fixed["n"], epochs=fixed[MEASURED_AT][-1])


def plot_accuracy(data: xr.Dataset) -> Picture:
    """Draw test accuracy of the four rules with and without self-coupling, one panel per scheme."""
    picture, axes = panels(2)
    stored = of_trial(data, "symmetric_rules", "test_accuracy")
    for axis, scheme in zip(axes, _SCHEMES, strict=True):
        # Bars stand side by side: stored runs are drawn when there are those of all of them.
        whole = bool(np.isfinite(stored["test_accuracy"].sel(scheme=scheme).values).all())
        shown = stored if whole else data
        for k, jd in enumerate(sorted(shown["jd"].values.tolist())):
            one = shown.sel(scheme=scheme, jd=jd, rule=list(_RULES))
            place = np.arange(len(_RULES)) + 0.38 * (k - 0.5)
            axis.bar(place, one["test_accuracy"], 0.36, color=f"C{k}", label=f"$J_D={jd:g}$")
            axis.errorbar(
                place,
                one["test_accuracy"],
                one["test_accuracy_error"],
                linestyle="none",
                color="black",
                capsize=2,
            )
        axis.set_xticks(range(len(_RULES)), _RULES)
        axis.grid(axis="x", visible=False)
        axis.set_ylim(0, 1)
        axis.axhline(0.1, color="0.3", linewidth=0.8, linestyle=":", label="chance")
        label_axes(axis, "couplings and rule", "test accuracy")
        trained = trained_for(shown.sel(scheme=scheme), "test_accuracy")
        title = f"{scheme} scheme, $N={int(shown['n'])}$, {trained}"
        axis.legend(title=title, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return picture


def plot_symmetry(data: xr.Dataset) -> Picture:
    """Draw the symmetry level against epochs, a panel for each start."""
    picture, axes = panels(2)
    for axis, rule in zip(axes, ("asym", "sym0"), strict=True):
        for k, jd in enumerate(data["jd"].values.tolist()):
            for scheme, line in zip(_SCHEMES, ("-", "--"), strict=True):
                one = data.sel(rule=rule, scheme=scheme, jd=jd)
                axis.errorbar(
                    one["epoch"],
                    one["symmetry"],
                    one["symmetry_error"],
                    color=f"C{k}",
                    linestyle=line,
                    marker="o",
                    markersize=3,
                    label=f"$J_D={jd:g}$, {scheme}",
                )
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        label_axes(axis, "epoch", "symmetry level of $J$")
        start = "asymmetric" if rule == "asym" else "symmetric"
        if rule == "asym":  # lines climb to where the legend of this panel is
            low, high = axis.get_ylim()
            axis.set_ylim(low, high + 0.3 * (high - low))
        # Long enough for a dashed line to be one.
        axis.legend(
            loc="upper left" if rule == "asym" else "upper right",
            title=f"{start} start, $N={int(data['n'])}$",
            handlelength=3.5,
        )
    return picture


_SCALES = {
    Scale.TINY: _parameters(40, 2, [0, 1], TINY_DATA),
    Scale.QUICK: _parameters(200, 2, [0, 1, 2, 3], {"train_samples": 10_000, "test_samples": 4000}),
    # The paper gives no N: that of the trial (figures.trial.designs), which 16 cells can afford.
    Scale.PAPER: _parameters(400, 3, [0, 1, 2, 3, 5, 7, 10, 15, 20], ALL),
}

#: 3 networks, 4 rules, 2 x 2 cases, 20 epochs of 2 s, or 10 s where J stays symmetric.
_HOURS = {Scale.PAPER: 1.0}

SYMMETRIC_RULES = Figure(
    name="symmetric_rules",
    title="Symmetric and asymmetric couplings and rules",
    caption=(
        "Test accuracy on Entangled MNIST of one layer with asymmetric couplings (asym), with a "
        "symmetric start (sym0), and with rules that keep J symmetric (sym1: both neurons below "
        "the margin; sym2: the mean of both updates). (a) Full scheme, (b) approximate scheme. The "
        f"paper gives neither N nor epochs; these are ours. {trained_on(_SCALES)} Stored runs of "
        "the trial (figures/data/trained), which were trained for longer, are drawn instead in a "
        "panel if all its bars are stored; the legends say N, epochs and networks. Error bars: "
        "spread over networks and size of the test set, one standard deviation."
    ),
    parameters=_SCALES,
    compute=compute,
    plot=plot_accuracy,
    seed=_SEED,
    core_hours=_HOURS,
    earlier=("1-3157e470fcc8", "1-153a2aa156b8"),
)

SYMMETRY_EVOLUTION = replace(
    SYMMETRIC_RULES,
    name="symmetry_evolution",
    title="Symmetry level of the couplings during training",
    caption=(
        "Symmetry level (|S| - |A|)/(|S| + |A|) of J, of its symmetric and antisymmetric parts, "
        "over training: (a) asymmetric start, (b) symmetric start with the rule that does not "
        "keep it so. The networks are those of symmetric_rules."
    ),
    plot=plot_symmetry,
    data="symmetric_rules",
)
