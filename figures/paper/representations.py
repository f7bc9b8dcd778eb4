"""Similarity of the representations of 300 patterns before and after training (SM-H)."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure as Picture

from figures.engine.figure import Figure
from figures.engine.plotting import label_axes, panels
from figures.paper.landscape import (
    HOURS,
    PARAMETERS,
    SEED,
    STAGES,
    compute,
)
from rmtheory.base.wording import counted

#: The network shown.
_LAMBDA_X = 5.0


def plot(data: xr.Dataset) -> Picture:
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
        shown = axis.imshow(values[stage], cmap="RdBu_r", vmin=-most, vmax=most)
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


FIGURE = Figure(
    name="representations",
    title="Similarity of representations before and after training",
    caption=(
        "Similarity (one minus the Hamming distance) of the attractors of random training patterns "
        "of Entangled MNIST, ordered by label, (a) before and (b) after training, less the mean of "
        "both; above each the mean over pairs as it is, and the epochs. The network is that of the "
        "landscape with lambda_x = 5."
    ),
    parameters=PARAMETERS,
    compute=compute,
    plot=plot,
    version=2,
    seed=SEED,
    data="landscape",
    core_hours=HOURS,
    earlier=("2-664c42e1a7c7",),
)
