"""The landscape of attractors before and after training (SM-G)."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from figures.figure import Figure
from figures.landscape_data import HOURS, PARAMETERS, SEED, STAGES, compute
from figures.plotting import DOUBLE, label_axes
from rmtheory.wording import counted

_COLOURS = {"before": "C2", "after": "C0"}


def plot(data: xr.Dataset) -> Picture:
    """Draw curvature and displacement for both lambda_x, and distances along the paths."""
    picture = Picture(figsize=(DOUBLE, 4.4), layout="constrained")
    rows = picture.subplots(2, 3)
    for letter, axis in zip("abcdef", rows.flat, strict=True):
        axis.set_title(f"({letter})", loc="left", fontweight="bold")
    for (bend, kick, _), lam in zip(rows, (5.0, 2.0), strict=True):
        one = data.sel(lambda_x=lam)
        _histogram(bend, one)
        _displacement(kick, one)
        bend.legend(title=rf"$\lambda_x={lam:g}$, {_epochs(data)}")
        kick.legend(title=rf"$\lambda_x={lam:g}$")
    for axis, stage in zip(rows[:, 2], STAGES, strict=True):
        _trajectory(picture, axis, data.sel(lambda_x=5.0, stage=stage))
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
    for stage, found in values.items():
        mean = float(data["curvature_mean"].sel(stage=stage))
        deviation = float(data["curvature_sd"].sel(stage=stage))
        label = f"{stage}: {mean:.3f} ({deviation:.3f})"
        known = found[np.isfinite(found)]
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


def _trajectory(picture: Picture, axis: Axes, data: xr.Dataset) -> None:
    shown = axis.pcolormesh(
        data["tau"], data["other_tau"], data["trajectory"], cmap="viridis", vmin=0, vmax=1
    )
    axis.set_aspect("equal")
    axis.grid(visible=False)
    label_axes(axis, r"$\tau_1$", r"$\tau_2$")
    axis.set_title(rf"{_name(str(data['stage'].values), data)}, $\lambda_x=5$")
    picture.colorbar(shown, ax=axis, label=r"distance $D(\tau_1,\tau_2)$")


FIGURE = Figure(
    name="landscape",
    title="Landscape of attractors before and after training",
    caption=(
        "One layer before and after training on Entangled MNIST. (a, d) Largest curvature of the "
        "path of attractors between two inputs, over pairs; 1 is a shortest path; mean (standard "
        "deviation) in the legend. (b, e) Distance "
        "between an attractor and the one reached after flips of its neurons: median with its "
        "error, quartiles as a band. (c, f) Distances between attractors along a path over that "
        "of its ends, mean over pairs, before (c) and after (f) training. (a, b, c, f) have "
        "lambda_x = 5, the value of the paper elsewhere; (d, e) have lambda_x = 2, as its table "
        "prints. One network each, after the epochs in the legends; the paper trains 30."
    ),
    parameters=PARAMETERS,
    compute=compute,
    plot=plot,
    version=2,
    seed=SEED,
    core_hours=HOURS,
)
