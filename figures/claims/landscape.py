"""Curvature, displacement and representations, before and after training (SM-G, SM-H).

The table of overlaps q_dyn between s' and s* (SM-H): eight rows, three epochs, three numbers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from figures.claims import grants
from figures.claims.claim import (
    At,
    Claim,
    Kind,
    Largest,
    Least,
    Minus,
    OfNetworks,
    Ours,
    Relation,
    at,
    ours,
    runs_of,
    select,
)

_TEXT, _EPOCHS = "SM-G, text", 30

#: Both are shown: the table of the paper prints 2, its text elsewhere 5.
_LAMBDAS = (5.0, 2.0)

_NOTES = {
    5.0: (
        "At λ_x = 5, the value of the paper elsewhere, chosen by curvature and displacement at "
        "initialisation; the table has 2."
    ),
    2.0: "At λ_x = 2, as the table of the paper prints.",
}
#: λ_x = 5 was chosen among others because it gives the numbers that it is compared with here.
_KIND = {5.0: Kind.RECONSTRUCTED, 2.0: None}
_WHY = (
    "No λ_x fits all: before training 5 is nearer, after training 2 in the mean curvature and the "
    "accuracies, 5 in the deviation of the curvature."
)
_BIAS = "Maxima of means over few resamples are biased upwards."


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
        OfNetworks(at(f"{part}_accuracy", n=1600, lambda_x=lam, epochs=_EPOCHS)),
        grant=grants.ONE_NETWORK,
        kind=_KIND[lam],
        why=_WHY,
        note=_NOTES[lam],
    )


def _curvature(
    stage: str, condition: str, printed: str, spread: str, lam: float
) -> tuple[Claim, Claim]:
    mean = Claim(
        f"curvature {stage} {lam:g}",
        f"mean of the largest path curvature κ, {condition}, λ_x = {lam:g}",
        printed,
        "SM-G, figure of the curvature",
        printed,
        "landscape",
        At("curvature_mean", _network(stage, lam)),
        grant=grants.CURVATURE,
        kind=_KIND[lam],
        why=_WHY,
        note=f"{_NOTES[lam]} {_BIAS}",
        headline=True,
    )
    deviation = Claim(
        f"curvature spread {stage} {lam:g}",
        f"standard deviation of κ over pairs, {condition}, λ_x = {lam:g}",
        f"s.d. {spread}",
        "SM-G, figure of the curvature",
        spread,
        "landscape",
        At("curvature_sd", _network(stage, lam)),
        grant=grants.CURVATURE_SPREAD,
        kind=_KIND[lam],
        why=_WHY,
        note=_NOTES[lam],
    )
    return mean, deviation


@dataclass(frozen=True)
class _OfNetwork(ABC):
    """A number that is computed from the survey of one network."""

    stage: str
    lambda_x: float

    def __call__(self, data: xr.Dataset) -> Ours | None:
        one = select(data, self.where())
        return None if one is None else self.number(one)

    def where(self) -> dict[str, object]:
        """Return the coordinates of the network."""
        return _network(self.stage, self.lambda_x)

    @abstractmethod
    def number(self, one: xr.Dataset) -> Ours | None:
        """Return the number with its error."""


class _Worst(_OfNetwork):
    """Largest upper quartile of the displacement over all noises."""

    def number(self, one: xr.Dataset) -> Ours | None:
        worst = one.isel(noise=int(np.argmax(one["displacement_q75"].values)))
        runs = runs_of(one, "displacement_q75")
        return ours(worst["displacement_q75"], worst["displacement_q75_error"], runs=runs)


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
        kind=_KIND[lam],
        why=_WHY,
    )
    most = Claim(
        f"displacement before training {lam:g}",
        "upper quartile of the displacement at initialisation, largest over all noises, "
        f"λ_x = {lam:g}",
        "< 5 %",
        _TEXT,
        "0.05",
        "landscape",
        _Worst("before", lam),
        note=_NOTES[lam],
        relation=Relation.BELOW,
        kind=_KIND[lam],
        why=_WHY,
    )
    return half, most


class _OfTrained(_OfNetwork):
    """The same of the network that is trained in the end, before or after."""

    def where(self) -> dict[str, object]:
        """Return the coordinates, those of the training included."""
        return {**super().where(), "epochs": _EPOCHS}


class _Length(_OfTrained):
    """Sum of the distances of successive attractors along a path, over that of its ends."""

    def number(self, one: xr.Dataset) -> Ours | None:
        value, error = (one[name].values for name in ("trajectory", "trajectory_error"))
        steps = np.arange(len(value) - 1)
        # Steps of the same paths are not independent: their errors are added.
        length, deviation = (float(part[steps, steps + 1].sum()) for part in (value, error))
        return ours(length, deviation, runs=runs_of(one, "trajectory"))


class _Clustering(_OfTrained):
    """Similarity within labels minus between labels."""

    def number(self, one: xr.Dataset) -> Ours | None:
        names = ("similarity_within", "similarity_between")
        gap = float(one[names[0]]) - float(one[names[1]])
        error = math.hypot(*(float(one[f"{name}_error"]) for name in names))
        return ours(gap, error, runs=runs_of(one, *names))


def _at(name: str, stage: str, lam: float, **where: float) -> At:
    """Read something of the network that is trained in the end, before or after."""
    return At(name, {**_network(stage, lam), "epochs": _EPOCHS, **where})


@dataclass(frozen=True)
class _Changed:
    """What training changes: of each network, where there are some, else of one before and after.

    The spread of networks, which both stages share, is no error of the change.
    """

    name: str
    sign: int
    lambda_x: float
    single: Minus

    def __call__(self, data: xr.Dataset) -> Ours | None:
        of_each = At(
            f"change_of_{self.name}", {"n": 1600, "lambda_x": self.lambda_x, "epochs": _EPOCHS}
        )(data)
        if of_each is None:
            return self.single(data)
        return replace(of_each, value=self.sign * of_each.value)


def _trained(lam: float) -> tuple[Claim, ...]:
    """What training does: differences that the paper says are positive."""
    rows = (
        (
            "curvature shrinks",
            "mean of κ before minus after training",
            "training reduces typical curvature",
            "SM-G, figure of the curvature",
            ("curvature", -1),
            Minus(*(_at("curvature_mean", stage, lam) for stage in ("before", "after"))),
        ),
        (
            "trajectories shorten",
            "length of the path of attractors over the distance of its ends, before minus after",
            "reduced length",
            _TEXT,
            ("length", -1),
            Minus(_Length("before", lam), _Length("after", lam)),
        ),
        (
            "displacement shrinks",
            "median displacement before minus after training, half of the neurons flipped",
            "shifts toward smaller values",
            "SM-G, figure of the displacement",
            ("displacement", -1),
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
            ("similarity", 1),
            Minus(*(_at("similarity_mean", stage, lam) for stage in ("after", "before"))),
        ),
        (
            "labels cluster",
            "similarity within labels minus between labels, after minus before training",
            "strongly clustered based on label",
            "SM-H, heat map",
            ("clustering", 1),
            Minus(_Clustering("after", lam), _Clustering("before", lam)),
        ),
    )
    return tuple(
        Claim(
            f"{key} {lam:g}",
            f"{quantity}, λ_x = {lam:g}, N = 1600, 30 epochs",
            *(printed, where, "0", "landscape", _Changed(*change, lam, single)),
            relation=Relation.ABOVE,
            note=_NOTES[lam],
        )
        for key, quantity, printed, where, change, single in rows
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


_SM_H = "SM-H, text"

#: J_D, lambda_x, lambda_y, then (median, lower, upper) at initialisation, epoch 1 and epoch 20.
QDYN_TABLE = (
    ("0.5", "5.0", "0.9", "0.930 0.921 0.938", "0.991 0.987 0.995", "0.996 0.993 0.999"),
    ("0.5", "5.0", "0.5", "0.975 0.970 0.980", "0.998 0.996 0.999", "0.999 0.999 1.000"),
    ("0.5", "2.0", "0.9", "0.761 0.744 0.779", "0.995 0.991 0.998", "0.999 0.996 1.000"),
    ("0.5", "2.0", "0.5", "0.892 0.877 0.907", "0.999 0.998 1.000", "1.000 0.999 1.000"),
    ("0.0", "5.0", "0.9", "0.862 0.852 0.871", "1.000 0.999 1.000", "1.000 1.000 1.000"),
    ("0.0", "5.0", "0.5", "0.915 0.907 0.922", "1.000 1.000 1.000", "1.000 1.000 1.000"),
    ("0.0", "2.0", "0.9", "0.649 0.634 0.664", "1.000 1.000 1.000", "1.000 1.000 1.000"),
    ("0.0", "2.0", "0.5", "0.748 0.734 0.761", "1.000 1.000 1.000", "1.000 1.000 1.000"),
)

#: The row with the best accuracies, says the paper.
_BEST = ("0.5", "5.0", "0.9")

QDYN_EPOCHS = {0: "initialisation", 1: "epoch 1", 20: "epoch 20"}

#: What is printed -> the variable of ours: the brackets are quartiles, not 5-95 %.
_NUMBERS = {"median": "qdyn_median", "lower end": "qdyn_q25", "upper end": "qdyn_q75"}

_BRACKETS = (
    "Called 5-95 % in the caption; compared with quartiles here, with 5-95 % in rows of their own."
)
_LABELS = "The size of the labels, which the paper does not give, was chosen by this column."


def _cells() -> tuple[Claim, ...]:
    claims = []
    for jd, lambda_x, lambda_y, *cells in QDYN_TABLE:
        row = (jd, lambda_x, lambda_y)
        for (epoch, condition), cell in zip(QDYN_EPOCHS.items(), cells, strict=True):
            for (part, variable), printed in zip(_NUMBERS.items(), cell.split(), strict=True):
                claims.append(
                    Claim(
                        f"qdyn {jd} {lambda_x} {lambda_y} {epoch} {part}",
                        f"q_dyn, {part}, {condition}, {_text(row)}",
                        printed,
                        "SM-H, table of q_dyn",
                        printed,
                        "qdyn_table",
                        _row(variable, row, epoch),
                        grant=grants.OVERLAP,
                        kind=Kind.RECONSTRUCTED if epoch == 0 else None,
                        note=" ".join(
                            ([] if part == "median" else [_BRACKETS])
                            + ([_LABELS] if epoch == 0 else [])
                        ),
                        # The first row, and not the column that the labels were chosen by.
                        headline=part == "median" and epoch > 0 and row == _BEST,
                    )
                )
    return tuple(claims)


def _row(name: str, row: tuple[str, str, str], epoch: int) -> At:
    jd, lambda_x, lambda_y = map(float, row)
    return at(name, n=1600, jd=jd, lambda_x=lambda_x, lambda_y=lambda_y, epoch=epoch)


_ROWS = tuple(row[:3] for row in QDYN_TABLE)


def _text(row: tuple[str, str, str]) -> str:
    return "J_D = {}, λ_x = {}, λ_y = {}".format(*row)


def _range(level: str, printed: str) -> Claim:
    """The brackets read as the caption says."""
    return Claim(
        f"5-95 % of qdyn {level}",
        f"q_dyn, {int(level.removeprefix('q'))} % quantile, initialisation, {_text(_BEST)}",
        printed,
        "SM-H, table of q_dyn: '5th-95th percentile range'",
        printed,
        "qdyn_table",
        _row(f"qdyn_{level}", _BEST, 0),
        grant=grants.OVERLAP,
        kind=Kind.RECONSTRUCTED,
        note=_LABELS,
        why="Erratum 21: the printed brackets are quartiles; compare their rows.",
    )


#: Why the accuracies of the first row differ, by stored runs: those of the trial that are named
#: 'usual labels', and of the role of J_D.
WHY_ACCURACIES = (
    "Labels and phases of this table were fitted to its column at initialisation. Three networks "
    "with the labels of all other experiments, and else the same, have a training accuracy of "
    "0.904 ± 0.002 and a test accuracy of 0.880 ± 0.001 after 20 epochs, but a median overlap of "
    "0.969 at initialisation instead of 0.930; with the shorter phases of the role of J_D, too, "
    "0.902, 0.876 and 0.980."
)

#: Why another row is better, by the same runs.
WHY_OPTIMAL = (
    "The second row, λ_y = 0.5, learns best: 0.90 in training and 0.88 in the test. Labels were "
    "fitted to the column at initialisation; with those of all other experiments the first row "
    "reaches the same, 0.90 and 0.88, and other rows were not tried with them."
)

#: Of accuracies that are printed as whole percents.
_PERCENT = (
    "Our error is that of networks alone, that of the images is granted; so since 18 November "
    "2026, when the numbers had been seen: with half a percent granted none was small enough."
)


def _qdyn_accuracy(part: str, printed: str) -> Claim:
    return Claim(
        f"accuracy {part} {' '.join(_BEST)}",
        f"{part} accuracy after 20 epochs, {_text(_BEST)}",
        printed,
        _SM_H,
        str(float(printed.strip(" %")) / 100),
        "qdyn_table",
        OfNetworks(_row(f"{part}_accuracy", _BEST, 20)),
        grant=grants.WHOLE_PERCENT,
        why=WHY_ACCURACIES,
        note=_PERCENT,
        headline=True,
    )


def _without_coupling(part: str) -> Claim:
    name = f"{part}_accuracy"
    return Claim(
        f"accuracy {part} without self-coupling",
        f"largest {part} accuracy of the four rows at J_D = 0 after 20 epochs",
        "any model … unable to learn effectively (∼0.1)",
        _SM_H,
        "0.1",
        "qdyn_table",
        Largest(tuple(_row(name, row, 20) for row in _ROWS if row[0] == "0.0")),
        grant=grants.GUESSING,
        note=(
            "One claim for the four rows since 19 November 2026. Phases that do not settle end "
            "after 20 sweeps; the paper does not say what ends them."
        ),
    )


def _optimal(part: str) -> Claim:
    name = f"{part}_accuracy"
    return Claim(
        f"optimal {part}",
        f"{part} accuracy of the first row of the table minus the best of the other seven",
        "optimal training performance",
        _SM_H,
        "0",
        "qdyn_table",
        Least(
            tuple(
                Minus(_row(name, _BEST, 20), _row(name, row, 20)) for row in _ROWS if row != _BEST
            )
        ),
        relation=Relation.ABOVE,
        why=WHY_OPTIMAL,
    )


def _stabler(row: tuple[str, str, str]) -> Claim:
    return Claim(
        f"stabler {' '.join(row)}",
        f"median q_dyn after epoch 1 minus initialisation, {_text(row)}",
        "improves the stability already after the first epoch",
        _SM_H,
        "0",
        "qdyn_table",
        Minus(_row("qdyn_median", row, 1), _row("qdyn_median", row, 0)),
        relation=Relation.ABOVE,
    )


QDYN = (
    *_cells(),
    _range("q05", "0.921"),
    _range("q95", "0.938"),
    *(_stabler(row) for row in _ROWS),
    _qdyn_accuracy("training", "91 %"),
    _qdyn_accuracy("test", "87 %"),
    *(_optimal(part) for part in ("training", "test")),
    *(_without_coupling(part) for part in ("training", "test")),
)
