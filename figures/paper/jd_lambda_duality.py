"""Accuracy of two layers against J_D at lambda = 0 and against lambda at J_D = 0 (main text)."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from figures.engine.figure import Context, Figure, Parameters, Scale
from figures.engine.plotting import chance_line, label_axes, panels
from figures.paper.shipped import MARGIN_LAM, path_of
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
from rmtheory.base.statistics import standard_error
from rmtheory.runtime.untrusted import read_json

_SEED = 8
_MEANING = {
    "training_accuracy": "accuracy on the training set",
    "test_accuracy": "accuracy on the test set",
}


def _parameters(
    n: int,
    jd: list[float],
    lam: list[float],
    networks: int,
    epochs: int,
    data: dict[str, Any],
) -> Parameters:
    fixed = {"preset": "role-of-jd", "n": n, MEASURED_AT: [epochs], "watched": FEW, **data}
    return {"seed": _SEED, "jd": jd, "lam": lam, "networks": networks, "fixed": fixed}


def compute(parameters: Parameters, context: Context) -> xr.Dataset:
    """Train along both axes; the other coupling is 0."""
    axes = {
        "jd": {"jd": parameters["jd"], "lam": [0.0]},
        "lam": {"jd": [0.0], "lam": parameters["lam"]},
    }
    sweeps = {
        name: training(
            "duality",
            values,
            parameters["fixed"],
            parameters["seed"],
            replicas=parameters["networks"],
            paired=("jd", "lam"),
            compute="rmsim.studies.trained_networks:two_layers",
        )
        for name, values in axes.items()
    }
    parts = []
    for name, trained in gathered(sweeps, _MEANING, context).items():
        other = "lam" if name == "jd" else "jd"
        one = trained.isel({"epoch": -1, other: 0}, drop=True)
        parts.append(one.rename({str(v): _named(str(v), name) for v in one.data_vars}))
    fixed = parameters["fixed"]
    return xr.merge(parts).assign_coords(n=fixed["n"], epochs=fixed[MEASURED_AT][-1])


def _named(variable: str, axis: str) -> str:
    """Return accuracy -> accuracy_jd, accuracy_error -> accuracy_jd_error."""
    if variable.endswith("_error"):
        return f"{variable.removesuffix('_error')}_{axis}_error"
    return f"{variable}_{axis}"


def plot(data: xr.Dataset) -> Picture:
    """Draw training and test accuracy along both axes, and what the margin does."""
    picture, axes = panels(3)
    _margins(axes[2])
    names = {"jd": (r"$J_D$", r"$\lambda=0$"), "lam": (r"$\lambda$", "$J_D=0$")}
    for axis, (name, (label, fixed)) in zip(axes, names.items(), strict=False):
        one = of_trial(data, "jd_lambda_duality", f"test_accuracy_{name}")
        for k, part in enumerate(("test", "training")):
            values = one[f"{part}_accuracy_{name}"]
            there = np.flatnonzero(np.isfinite(values.values))
            axis.errorbar(
                one[name][there],
                values[there],
                one[f"{part}_accuracy_{name}_error"][there],
                marker="os"[k],
                capsize=2,
                label=part,
            )
        label_axes(axis, label, "accuracy")
        size = f"{fixed}, $N={int(one['n'])}$"
        _legend(axis, f"{size},\n{trained_for(one, f'test_accuracy_{name}')}")
    return picture


def _margins(axis: Axes) -> None:
    """Draw the stored accuracies at the margin of (b) and at one that does not grow with lambda."""
    stored = {
        (piece["settings"]["lam"], piece["settings"]["kappa"]): piece["result"]["test_accuracy"]
        for piece in read_json(path_of("duality_margins")).values()
    }
    for growth, label, marker, colour in (
        (1.0, r"$\kappa=0.9+\lambda$", "o", "C0"),
        (0.0, r"$\kappa=0.9$", "D", "C2"),
    ):
        rows = [np.array(stored[lam, round(0.9 + growth * lam, 6)])[:, -1] for lam in MARGIN_LAM]
        errors = [standard_error(row) for row in rows]
        means = [row.mean() for row in rows]
        axis.errorbar(
            MARGIN_LAM, means, errors, marker=marker, color=colour, capsize=2, label=label
        )
    other = np.array(stored[0.0, 1.9])[:, -1]
    axis.errorbar(
        [0.0], [other.mean()], [standard_error(other)], fmt="s", color="C3", capsize=2,
        label=r"$\kappa=1.9$",
    )  # fmt: skip
    label_axes(axis, r"$\lambda$", "test accuracy")
    _legend(axis, "$J_D=0$, $N=200$,\n3 epochs")


def _legend(axis: Axes, title: str) -> None:
    chance_line(axis)
    axis.set_ylim(0, 1.3)  # room for the legend
    axis.set_yticks(np.linspace(0, 1, 6))
    axis.legend(title=title, loc="upper left", ncols=2, columnspacing=1.0, handlelength=1.4)


_SCALES = {
    Scale.TINY: _parameters(30, [0.0, 0.5], [0.0, 5.0], 2, 1, TINY_DATA),
    Scale.QUICK: _parameters(
        200,
        [0.0, 0.25, 0.5],
        [0.0, 1.0, 3.0, 5.0],
        2,
        3,
        {"train_samples": 12_000, "test_samples": 4000},
    ),
    # The paper gives no N: that of the trial (figures.trial.designs).
    Scale.PAPER: _parameters(
        400,
        [0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9],
        [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0],
        3,
        20,
        ALL,
    ),
}

FIGURE = Figure(
    name="jd_lambda_duality",
    title="Accuracy of two layers against self-coupling and coupling between them",
    caption=(
        "Two layers of N neurons that both see input and label of Entangled MNIST: accuracy (a) "
        "against J_D with the layers uncoupled, (b) against λ without self-coupling. (c) The dip "
        "of (b) comes with the margin κ = 0.9 + λ: at κ = 0.9 for all λ there is none, and "
        "uncoupled layers with κ = 1.9 fall as deep (stored runs of three networks, error bars "
        "the standard error of their mean). The paper gives no "
        "settings: N, epochs, κ = 0.9 + J_D + λ and the chance p = 0.85 of a neuron to be "
        f"updated in a sweep are ours. {trained_on(_SCALES)} {STORED} Error bars: spread "
        "over networks and size of the test set, one standard deviation."
    ),
    parameters=_SCALES,
    compute=compute,
    plot=plot,
    seed=_SEED,
    # 17 couplings, 3 networks, 20 epochs of about 50 s.
    core_hours={Scale.PAPER: 15.0},
    earlier=("1-a5b48bc2638e", "1-6d7e92dcd8b6", "1-42fd546d6002"),
)
