"""The table of overlaps q_dyn between s' and s* (SM-H): eight rows, three epochs, three numbers."""

from __future__ import annotations

from figures.claims.claim import Claim, Relation
from figures.claims.read import At, Least, Minus, at

_SM_H = "SM-H, text"

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

#: The row with the best accuracies, says the paper.
_BEST = ("0.5", "5.0", "0.9")

_EPOCHS = {0: "initialisation", 1: "epoch 1", 20: "epoch 20"}

#: What is printed -> the variable of ours: the brackets are quartiles, not 5-95 %.
_NUMBERS = {"median": "qdyn_median", "lower end": "qdyn_q25", "upper end": "qdyn_q75"}

_BRACKETS = (
    "Called 5-95 % in the caption; compared with quartiles here, with 5-95 % in rows of their own."
)
_LABELS = "The size of the labels, which the paper does not give, was chosen by this column."


def _cells() -> tuple[Claim, ...]:
    claims = []
    for jd, lambda_x, lambda_y, *cells in _TABLE:
        row = (jd, lambda_x, lambda_y)
        for (epoch, moment), cell in zip(_EPOCHS.items(), cells, strict=True):
            for (part, variable), printed in zip(_NUMBERS.items(), cell.split(), strict=True):
                claims.append(
                    Claim(
                        f"qdyn {jd} {lambda_x} {lambda_y} {epoch} {part}",
                        f"q_dyn, {part}, {moment}, {_text(row)}",
                        printed,
                        "SM-H, table of q_dyn",
                        printed,
                        "qdyn_table",
                        _row(variable, row, epoch),
                        # Two networks differ by about 0.002 at initialisation.
                        tolerance=0.0025,
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


_ROWS = tuple(row[:3] for row in _TABLE)


def _text(row: tuple[str, str, str]) -> str:
    return "J_D = {}, λ_x = {}, λ_y = {}".format(*row)


def _range(level: str, printed: str) -> Claim:
    """The brackets read as the caption says."""
    return Claim(
        f"5-95 % of qdyn {level}",
        f"q_dyn, {level.removeprefix('q')} % quantile, initialisation, {_text(_BEST)}",
        printed,
        "SM-H, table of q_dyn: '5th-95th percentile range'",
        printed,
        "qdyn_table",
        _row(f"qdyn_{level}", _BEST, 0),
        tolerance=0.0025,
        note=_LABELS,
        why="Erratum 21: the printed brackets are quartiles; compare their rows.",
    )


def _accuracy(part: str, printed: str, row: tuple[str, str, str]) -> Claim:
    return Claim(
        f"accuracy {part} {' '.join(row)}",
        f"{part} accuracy after 20 epochs, {_text(row)}",
        printed,
        _SM_H,
        str(float(printed.strip("~ %")) / (100 if "%" in printed else 1)),
        "qdyn_table",
        _row(f"{part}_accuracy", row, 20),
        tolerance=0.005 if "%" in printed else 0.05,
        headline=row == _BEST,
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
    _accuracy("training", "91 %", _BEST),
    _accuracy("test", "87 %", _BEST),
    *(_optimal(part) for part in ("training", "test")),
    *(
        _accuracy(part, "~ 0.1", row)
        for row in _ROWS
        if row[0] == "0.0"
        for part in ("training", "test")
    ),
)
