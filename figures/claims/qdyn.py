"""The table of overlaps q_dyn between s' and s* (SM-H): eight rows, three epochs, three numbers."""

from __future__ import annotations

from figures.claims.claim import Claim
from figures.claims.read import at

#: J_D, lambda_x, lambda_y, then (median, lower, upper) at initialisation, epoch 1 and epoch 20.
_TABLE = (
    ("0.5", "5.0", "0.9", "0.930 0.921 0.938", "0.991 0.987 0.995", "0.996 0.993 0.999"),
    ("0.5", "5.0", "0.5", "0.975 0.970 0.980", "0.998 0.996 0.999", "0.999 0.999 1.000"),
    ("0.5", "2.0", "0.9", "0.761 0.744 0.779", "0.995 0.991 0.998", "0.999 0.996 1.000"),
    ("0.5", "2.0", "0.5", "0.892 0.877 0.907", "0.999 0.998 1.000", "1.000 0.999 1.000"),
    ("0.0", "5.0", "0.9", "0.862 0.852 0.871", "1.000 0.999 1.000", "1.000 1.000 1.000"),
    ("0.0", "5.0", "0.5", "0.915 0.907 0.922", "1.000 1.000 1.000", "1.000 1.000 1.000"),
    ("0.0", "2.0", "0.9", "0.649 0.634 0.664", "1.000 1.000 1.000", "1.000 1.000 1.000"),
    ("0.0", "2.0", "0.5", "0.748 0.734 0.761", "1.000 1.000 1.000", "1.000 1.000 1.000"),
)

_EPOCHS = {0: "initialisation", 1: "epoch 1", 20: "epoch 20"}

#: What is printed -> the variable of ours: the brackets are quartiles, not 5-95 %.
_NUMBERS = {"median": "qdyn_median", "lower end": "qdyn_q25", "upper end": "qdyn_q75"}

_BRACKETS = "Called 5-95 % in the caption; the printed brackets are quartiles, and so are ours."


def _cells() -> tuple[Claim, ...]:
    claims = []
    for jd, lambda_x, lambda_y, *cells in _TABLE:
        row = f"J_D = {jd}, λ_x = {lambda_x}, λ_y = {lambda_y}"
        for (epoch, moment), cell in zip(_EPOCHS.items(), cells, strict=True):
            for (part, variable), printed in zip(_NUMBERS.items(), cell.split(), strict=True):
                claims.append(
                    Claim(
                        f"qdyn {jd} {lambda_x} {lambda_y} {epoch} {part}",
                        f"q_dyn, {part}, {moment}, {row}",
                        printed,
                        "SM-H, table of q_dyn",
                        printed,
                        "qdyn_table",
                        at(
                            variable,
                            n=1600,
                            jd=float(jd),
                            lambda_x=float(lambda_x),
                            lambda_y=float(lambda_y),
                            epoch=epoch,
                        ),
                        # Two networks differ by about 0.002 at initialisation.
                        tolerance=0.0025,
                        note="" if part == "median" else _BRACKETS,
                        headline=part == "median" and epoch == 0 and row.startswith("J_D = 0.5"),
                    )
                )
    return tuple(claims)


def _accuracy(part: str, printed: str, jd: float, why: str = "") -> Claim:
    return Claim(
        f"accuracy {part} {jd:g}",
        f"{part} accuracy after 20 epochs, J_D = {jd:g}, λ_x = 5, λ_y = 0.9",
        printed,
        "SM-H, text",
        str(float(printed.strip("~ %")) / (100 if "%" in printed else 1)),
        "qdyn_table",
        at(f"{part}_accuracy", n=1600, jd=jd, lambda_x=5.0, lambda_y=0.9, epoch=20),
        tolerance=0.005 if "%" in printed else 0.05,
        why=why,
        headline=jd > 0,
    )


_COLLAPSE = "Without self-coupling accuracy falls during training; how far depends on the epochs."

QDYN = (
    *_cells(),
    _accuracy("training", "91 %", 0.5),
    _accuracy("test", "87 %", 0.5),
    _accuracy("training", "~ 0.1", 0.0, why=_COLLAPSE),
    _accuracy("test", "~ 0.1", 0.0, why=_COLLAPSE),
)
