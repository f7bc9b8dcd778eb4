"""Curvature, displacement and representations, before and after training (SM-G, SM-H)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from figures.claims.claim import Claim, Ours, Relation
from figures.claims.read import At, Minus, at, ours, select

_TEXT, _EPOCHS = "SM-G, text", 30

#: Both are shown: the table of the paper prints 2, its text elsewhere 5.
_LAMBDAS = (5.0, 2.0)

_NOTES = {
    5.0: "At λ_x = 5, the value of the paper elsewhere, chosen by these numbers; the table has 2.",
    2.0: "At λ_x = 2, as the table of the paper prints.",
}
_WHY = {5.0: "", 2.0: "Compare the row at λ_x = 5, the value of the paper elsewhere."}
_BIAS = (
    "Maxima of means over few resamples are biased upwards; the error is over pairs of one network."
)


def _network(stage: str, lam: float) -> dict[str, object]:
    where: dict[str, object] = {"stage": stage, "n": 1600, "lambda_x": lam}
    return where | ({"epochs": _EPOCHS} if stage == "after" else {})


def _accuracy(part: str, printed: str, lam: float) -> Claim:
    return Claim(
        f"landscape {part} accuracy {lam:g}",
        f"{part} accuracy of the network of the landscape analysis, λ_x = {lam:g}, 30 epochs",
        f"{float(printed):.2%}".replace("%", " %"),
        "SM-G, table of hyperparameters",
        printed,
        "landscape",
        at(f"{part}_accuracy", n=1600, lambda_x=lam, epochs=_EPOCHS),
        # One network on 10000 images: its accuracy is known to about 0.35 %, and the paper's too.
        tolerance=0.005,
        why=_WHY[lam],
        note=_NOTES[lam],
    )


def _curvature(
    stage: str, moment: str, printed: str, spread: str, lam: float
) -> tuple[Claim, Claim]:
    mean = Claim(
        f"curvature {stage} {lam:g}",
        f"mean of the largest path curvature κ, {moment}, λ_x = {lam:g}",
        printed,
        "SM-G, figure of the curvature",
        printed,
        "landscape",
        At("curvature_mean", _network(stage, lam)),
        # Networks and pairs are other ones than the paper's.
        tolerance=0.01,
        why=_WHY[lam],
        note=f"{_NOTES[lam]} {_BIAS}",
        headline=True,
    )
    deviation = Claim(
        f"curvature spread {stage} {lam:g}",
        f"standard deviation of κ over pairs, {moment}, λ_x = {lam:g}",
        f"s.d. {spread}",
        "SM-G, figure of the curvature",
        spread,
        "landscape",
        At("curvature_sd", _network(stage, lam)),
        tolerance=0.005,
        why=_WHY[lam],
        note=_NOTES[lam],
    )
    return mean, deviation


@dataclass(frozen=True)
class _Worst:
    """Largest upper quartile of the displacement over all noises, before training."""

    lam: float

    def __call__(self, data: xr.Dataset) -> Ours | None:
        one = select(data, _network("before", self.lam))
        if one is None:
            return None
        worst = one.isel(noise=int(np.argmax(one["displacement_q75"].values)))
        return ours(worst["displacement_q75"], worst["displacement_q75_error"])


def _displacement(lam: float) -> tuple[Claim, Claim]:
    half = Claim(
        f"displacement of the median {lam:g}",
        "median attractor displacement at initialisation, half of the neurons flipped, "
        f"λ_x = {lam:g}",
        "only a few percent",
        "main text, geometry of fixed points",
        "0.05",
        "landscape",
        At("displacement_median", {**_network("before", lam), "noise": 0.5}),
        headline=True,
        note=f"'A few' is taken as five. {_NOTES[lam]}",
        relation=Relation.BELOW,
        why=_WHY[lam],
    )
    most = Claim(
        f"displacement before training {lam:g}",
        "upper quartile of the displacement at initialisation, largest over all noises, "
        f"λ_x = {lam:g}",
        "< 5 %",
        _TEXT,
        "0.05",
        "landscape",
        _Worst(lam),
        note=_NOTES[lam],
        relation=Relation.BELOW,
        why=_WHY[lam],
    )
    return half, most


@dataclass(frozen=True)
class _Length:
    """Sum of the distances of successive attractors along a path, over that of its ends."""

    stage: str
    lam: float

    def __call__(self, data: xr.Dataset) -> Ours | None:
        one = select(data, {**_network(self.stage, self.lam), "epochs": _EPOCHS})
        if one is None:
            return None
        value, error = (one[name].values for name in ("trajectory", "trajectory_error"))
        steps = np.arange(len(value) - 1)
        # Steps of the same paths are not independent: their errors are added.
        return ours(float(value[steps, steps + 1].sum()), float(error[steps, steps + 1].sum()))


@dataclass(frozen=True)
class _Clustering:
    """Similarity within labels minus between labels."""

    stage: str
    lam: float

    def __call__(self, data: xr.Dataset) -> Ours | None:
        one = select(data, {**_network(self.stage, self.lam), "epochs": _EPOCHS})
        if one is None:
            return None
        names = ("similarity_within", "similarity_between")
        gap = float(one[names[0]]) - float(one[names[1]])
        return ours(gap, math.hypot(*(float(one[f"{name}_error"]) for name in names)))


def _at(name: str, stage: str, lam: float, **where: float) -> At:
    """Read something of the network that is trained in the end, before or after."""
    return At(name, {**_network(stage, lam), "epochs": _EPOCHS, **where})


def _trained(lam: float) -> tuple[Claim, ...]:
    """What training does: differences that the paper says are positive."""
    rows = (
        (
            "curvature shrinks",
            "mean of κ before minus after training",
            "training reduces typical curvature",
            "SM-G, figure of the curvature",
            Minus(*(_at("curvature_mean", stage, lam) for stage in ("before", "after"))),
        ),
        (
            "trajectories shorten",
            "length of the path of attractors over the distance of its ends, before minus after",
            "reduced length",
            _TEXT,
            Minus(_Length("before", lam), _Length("after", lam)),
        ),
        (
            "displacement shrinks",
            "median displacement before minus after training, half of the neurons flipped",
            "shifts toward smaller values",
            "SM-G, figure of the displacement",
            Minus(
                _at("displacement_median", "before", lam, noise=0.5),
                _at("displacement_median", "after", lam, noise=0.5),
            ),
        ),
        (
            "similarity grows",
            "mean similarity of 300 representations, after minus before training",
            "closer together",
            "SM-H, heat map",
            Minus(*(_at("similarity_mean", stage, lam) for stage in ("after", "before"))),
        ),
        (
            "labels cluster",
            "similarity within labels minus between labels, after minus before training",
            "strongly clustered based on label",
            "SM-H, heat map",
            Minus(_Clustering("after", lam), _Clustering("before", lam)),
        ),
    )
    return tuple(
        Claim(
            f"{key} {lam:g}",
            f"{quantity}, λ_x = {lam:g}, N = 1600, 30 epochs",
            *(printed, where, "0", "landscape", read),
            relation=Relation.ABOVE,
            note=_NOTES[lam],
        )
        for key, quantity, printed, where, read in rows
    )


LANDSCAPE = tuple(
    claim
    for lam in _LAMBDAS
    for claim in (
        _accuracy("training", "0.8854", lam),
        _accuracy("test", "0.8592", lam),
        *_curvature("before", "at initialisation", "1.367", "0.027", lam),
        *_curvature("after", "after training", "1.222", "0.055", lam),
        *_displacement(lam),
        *_trained(lam),
    )
)
