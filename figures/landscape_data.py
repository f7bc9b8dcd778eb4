"""The data of the figures on landscape and representations: one network, before and after."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from figures.figure import Parameters, Progress, Scale
from figures.sweeps import swept
from figures.training import ALL, TINY_DATA, training

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
            "looks": [0, epochs],
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


def compute(parameters: Parameters, progress: Progress) -> xr.Dataset:
    """Train and survey one network for each lambda_x."""
    from rmsim.sweep import collect

    sweep = training(
        "landscape",
        {"lambda_x": parameters["lambda_x"]},
        parameters["fixed"],
        parameters["seed"],
        replicas=1,
        paired=("lambda_x",),
        compute="rmsim.experiments.landscape:landscape",
    )
    names = {f"{name}{end}" for name in (*_MEANING, "labels") for end in ("", "_error")}
    dims = {name: ("stage", *_DIMS.get(name.removesuffix("_error"), ())) for name in names}
    with swept({"landscape": sweep}, progress) as folders:
        found = collect(folders["landscape"], sweep, dims=dims).isel(replica=0, drop=True)
    data = found[[f"{name}{end}" for name in _MEANING for end in ("", "_error")]]
    for name in ("training_accuracy", "test_accuracy"):  # those of the trained network
        for end in ("", "_error"):
            data[f"{name}{end}"] = data[f"{name}{end}"].isel(stage=-1, drop=True)
    for name, text in _MEANING.items():
        data[name].attrs["long_name"] = text
    data.attrs.clear()
    fixed = parameters["fixed"]
    steps = fixed["survey"]["steps"]
    taus = np.arange(steps + 1) / steps
    labels = found["labels"].isel(lambda_x=0, stage=0, drop=True).astype(int)
    return data.assign_coords(
        stage=list(STAGES),
        n=fixed["n"],
        epochs=fixed["looks"][-1],
        noise=fixed["survey"]["noises"],
        tau=taus,
        other_tau=taus,
        label=("pattern", labels.values),
    )
