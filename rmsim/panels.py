"""Panels of pictures that have nothing to show: they say why."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping

from matplotlib.axes import Axes

#: Letters a line, for panels half the width of a picture.
_WIDTH = 46


def explain(axis: Axes, what: str, reasons: Mapping[str, str]) -> None:
    """Write into a panel without data what is missing, and why, instead of empty axes.

    Parameters
    ----------
    axis : Axes
        The panel.
    what : str
        What it would have shown.
    reasons : mapping
        Case (such as ``N = 20``) -> why there is nothing; cases of one reason share a line.
    """
    lines = [f"no {what}", ""]
    for reason in dict.fromkeys(reasons.values()):
        cases = together(case for case, why in reasons.items() if why == reason)
        tied = cases.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
        lines += textwrap.wrap(f"{tied}: {reason}", _WIDTH)
    axis.set_axis_off()
    axis.text(
        0.5, 0.5, "\n".join(lines), transform=axis.transAxes, ha="center", va="center", size=8
    )


def together(cases: Iterable[str]) -> str:
    """Return cases in one line; those that begin alike say it once.

    Examples
    --------
    >>> together(["N = 20", "N = 40"]), together(["L = 2, N = 20", "L = 3, N = 20"])
    ('N = 20, 40', 'L = 2, N = 20; L = 3, N = 20')
    """
    every = list(cases)
    heads = {case.rpartition(" ")[0] for case in every}
    if len(heads) == 1:
        return f"{heads.pop()} {', '.join(case.rpartition(' ')[2] for case in every)}".strip()
    return "; ".join(every)
