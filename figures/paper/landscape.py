"""The landscape of attractors and their similarity before and after training (SM-G, SM-H).

Two figures of the same data: one network, before and after.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure as Picture

from figures.engine.figure import Context, Figure, Parameters, Scale, swept
from figures.engine.plotting import DOUBLE, label_axes, panels
from figures.paper.trained_networks import ALL, TINY_DATA, training
from rmsim.learning.presets import MEASURED_AT
from rmtheory.base.errors import counted

SEED = 5
STAGES = ("before", "after")

_MEANING = {
    "curvature": "largest path curvature of a pair",
    "curvature_mean": "mean of the largest path curvature over pairs",
    "curvature_sd": "its standard deviation over pairs",
    "trajectory": "distance of attractors along a path over that of its ends, mean over pairs",
    "displacement_q25": "lower quartile of the displacement",
    "displacement_median": "median displacement",
    "displacement_q75": "upper quartile of the displacement",
    "similarity": "similarity of two representations, ordered by label",
    "similarity_mean": "mean similarity of different patterns",
    "similarity_within": "mean similarity of patterns with the same label",
    "similarity_between": "mean similarity of patterns with different labels",
    "training_accuracy": "accuracy on the training set",
    "test_accuracy": "accuracy on the test set",
}

#: Dimensions of what is not one number for each stage.
_DIMS: dict[str, tuple[str, ...]] = {
    "curvature": ("pair",),
    "trajectory": ("tau", "other_tau"),
    **{f"displacement_{level}": ("noise",) for level in ("q25", "median", "q75")},
    "similarity": ("pattern", "other_pattern"),
    "labels": ("pattern",),
}


def _parameters(n: int, epochs: int, data: dict[str, Any], **survey: Any) -> Parameters:
    noises = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5]
    return {
        "seed": SEED,
        # The value of the paper elsewhere, and that of its table.
        "lambda_x": [5.0, 2.0],
        "fixed": {
            "preset": "landscape",
            "n": n,
            MEASURED_AT: [0, epochs],
            "survey": {"noises": noises, **survey},
            **data,
        },
    }


PARAMETERS = {
    Scale.TINY: _parameters(50, 1, TINY_DATA, pairs=20, steps=4, resamples=2, patterns=40),
    # The landscape at initialisation is that of the paper; training is one epoch, not thirty.
    Scale.QUICK: _parameters(1600, 1, ALL, pairs=100, steps=10, resamples=5, patterns=300),
    Scale.PAPER: _parameters(1600, 30, ALL, pairs=1000, steps=20, resamples=20, patterns=300),
}

#: Two networks, 30 epochs of 30 s, and 2 x 2 x 400 000 relaxations of 1 ms.
HOURS = {Scale.PAPER: 1.0}


def compute(parameters: Parameters, context: Context) -> xr.Dataset:
    """Train and survey one network for each lambda_x."""
    from rmsim.sweep.directory import collect

    sweep = training(
        "landscape",
        {"lambda_x": parameters["lambda_x"]},
        parameters["fixed"],
        parameters["seed"],
        replicas=1,
        paired=("lambda_x",),
        compute="rmsim.studies.landscape_survey:landscape",
    )
    names = {f"{name}{end}" for name in (*_MEANING, "labels") for end in ("", "_error")}
    dims = {name: ("stage", *_DIMS.get(name.removesuffix("_error"), ())) for name in names}
    with swept({"landscape": sweep}, context) as folders:
        survey = collect(folders["landscape"], sweep, dims=dims).isel(replica=0, drop=True)
    data = survey[[f"{name}{end}" for name in _MEANING for end in ("", "_error")]]
    for name in ("training_accuracy", "test_accuracy"):  # those of the trained network
        for end in ("", "_error"):
            data[f"{name}{end}"] = data[f"{name}{end}"].isel(stage=-1, drop=True)
    for name, text in _MEANING.items():
        data[name].attrs["long_name"] = text
    data.attrs.clear()
    fixed = parameters["fixed"]
    steps = fixed["survey"]["steps"]
    taus = np.arange(steps + 1) / steps
    labels = survey["labels"].isel(lambda_x=0, stage=0, drop=True).astype(int)
    return data.assign_coords(
        stage=list(STAGES),
        n=fixed["n"],
        epochs=fixed[MEASURED_AT][-1],
        noise=fixed["survey"]["noises"],
        tau=taus,
        other_tau=taus,
        label=("pattern", labels.values),
    )


_COLOURS = {"before": "C2", "after": "C0"}


def plot_landscape(data: xr.Dataset) -> Picture:
    """Draw a row for each lambda_x: curvature, displacement, distances before and after."""
    picture = Picture(figsize=(DOUBLE, 3.9), layout="constrained")
    rows = picture.subplots(2, 4, width_ratios=[1.25, 1.25, 1, 1])
    for letter, axis in zip("abcdefgh", rows.flat, strict=True):
        axis.set_title(f"({letter})", loc="left", fontweight="bold")
    for (bend, kick, *maps), lam in zip(rows, (5.0, 2.0), strict=True):
        one = data.sel(lambda_x=lam)
        _histogram(bend, one)
        _displacement(kick, one)
        bend.legend(title=rf"$\lambda_x={lam:g}$, {_epochs(data)}", fontsize=6, handlelength=1)
        kick.legend(title=rf"$\lambda_x={lam:g}$", fontsize=6)
        for axis, stage in zip(maps, STAGES, strict=True):
            shown = _trajectory(axis, one.sel(stage=stage))
            axis.set_title(_name(stage, data), loc="right", fontsize=7)
        picture.colorbar(shown, ax=maps, label=r"distance $D(\tau_1,\tau_2)$", shrink=0.75)
    return picture


def _name(stage: str, data: xr.Dataset) -> str:
    return "before" if stage == "before" else f"after {_epochs(data)}"


def _epochs(data: xr.Dataset) -> str:
    epochs = int(data["epochs"])
    return counted(epochs, "epoch")


def _histogram(axis: Axes, data: xr.Dataset) -> None:
    values = {stage: data["curvature"].sel(stage=stage).values for stage in STAGES}
    ends = np.nanmin([*values.values()]), np.nanmax([*values.values()])
    bins = np.linspace(ends[0], ends[1] + 1e-9, 26).tolist()
    for stage, distances in values.items():
        mean = float(data["curvature_mean"].sel(stage=stage))
        deviation = float(data["curvature_sd"].sel(stage=stage))
        label = f"{stage}: {mean:.3f} ({deviation:.3f})"
        known = distances[np.isfinite(distances)]
        axis.hist(known, bins, density=True, alpha=0.6, color=_COLOURS[stage], label=label)
    axis.set_ylim(top=axis.get_ylim()[1] * 1.5)  # room for the legend
    label_axes(axis, r"largest path curvature $\kappa$", "density")


def _displacement(axis: Axes, data: xr.Dataset) -> None:
    for stage in STAGES:
        one = 100 * data.sel(stage=stage)
        colour = _COLOURS[stage]
        axis.fill_between(
            data["noise"],
            one["displacement_q25"],
            one["displacement_q75"],
            color=colour,
            alpha=0.25,
            linewidth=0,
        )
        axis.errorbar(
            data["noise"],
            one["displacement_median"],
            one["displacement_median_error"],
            color=colour,
            marker="o",
            capsize=2,
            label=_name(stage, data),
        )
    axis.set_ylim(bottom=0)
    label_axes(axis, "probability of a flip", "displacement (%)")


def _trajectory(axis: Axes, data: xr.Dataset) -> QuadMesh:
    shown = axis.pcolormesh(
        data["tau"], data["other_tau"], data["trajectory"], cmap="viridis", vmin=0, vmax=1
    )
    axis.set_aspect("equal")
    axis.grid(visible=False)
    axis.set_xticks([0, 0.5, 1])
    axis.set_yticks([0, 0.5, 1])
    label_axes(axis, r"$\tau_1$", r"$\tau_2$")
    return shown


LANDSCAPE = Figure(
    name="landscape",
    title="Landscape of attractors before and after training",
    caption=(
        "One layer before and after training on Entangled MNIST, above with λ_x = 5, the value of "
        "the paper elsewhere, below with λ_x = 2, as its table prints. (a, e) Largest curvature of "
        "the path of attractors between two inputs, over pairs; 1 is a shortest path; mean "
        "(standard deviation) in the legend. (b, f) Distance between an attractor and the one "
        "reached after flips of its neurons: median with its error, quartiles as a band. (c, d, g, "
        "h) Distances between attractors along a path over that of its ends, mean over pairs. One "
        "network each, after the epochs in the legends; the paper trains 30."
    ),
    parameters=PARAMETERS,
    compute=compute,
    plot=plot_landscape,
    version=2,
    seed=SEED,
    core_hours=HOURS,
    earlier=("2-664c42e1a7c7", "2-7ecf85db586c", "2-308645e9c32d"),
)


#: The network shown.
_LAMBDA_X = 5.0


def plot_representations(data: xr.Dataset) -> Picture:
    """Draw both matrices with one scale of colours about their common mean."""
    picture, axes = panels(2, height=3.0)
    one = data.sel(lambda_x=_LAMBDA_X)
    shift = float(one["similarity_mean"].mean())
    values = {stage: one["similarity"].sel(stage=stage).values - shift for stage in STAGES}
    off = ~np.eye(len(one["pattern"]), dtype=bool)
    most = max(float(np.quantile(np.abs(matrix[off]), 0.995)) for matrix in values.values())
    labels = one["label"].values
    ends = np.flatnonzero(np.diff(labels)) + 1
    middles = [float(part.mean()) for part in np.split(np.arange(len(labels)), ends)]
    for axis, stage in zip(axes, STAGES, strict=True):
        # The similarity of a pattern with itself is 1 always, far beyond the scale: left out.
        values[stage][~off] = np.nan
        shown = axis.imshow(values[stage], cmap="RdBu_r", vmin=-most, vmax=most)
        axis.set_facecolor("0.6")
        axis.grid(visible=False)
        names = [str(label) for label in np.unique(labels)]
        axis.set_xticks(middles, names)
        axis.set_yticks(middles, names)
        label_axes(axis, "label of the pattern", "label of the pattern")
        mean = float(one["similarity_mean"].sel(stage=stage))
        epochs = int(one["epochs"])
        when = stage if stage == "before" else f"after {counted(epochs, 'epoch')}"
        axis.set_title(f"{when}: mean {mean:.3f}")
        picture.colorbar(shown, ax=axis, label=f"similarity $-$ {shift:.3f}")
    return picture


REPRESENTATIONS = replace(
    LANDSCAPE,
    name="representations",
    title="Similarity of representations before and after training",
    caption=(
        "Similarity (one minus the Hamming distance) of the attractors of random training patterns "
        "of Entangled MNIST, ordered by label, (a) before and (b) after training, less the mean of "
        "both; above each the mean over pairs as it is, and the epochs. The network is that of the "
        "landscape with λ_x = 5. Grey: the diagonal, where the similarity is 1."
    ),
    plot=plot_representations,
    data="landscape",
)
