"""``rmtheory critical``: thresholds of the representation manifold and of the gap, as brackets."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import typer

from rmtheory import checks
from rmtheory.cli import output as io
from rmtheory.errors import InvalidInputError, NotConvergedError
from rmtheory.wording import counted


def critical(
    layers: io.LayersOption = "1",
    jd: Annotated[
        str | None, typer.Option("--jd", metavar="NUMBER", help="Given: solve for lambda (L >= 2).")
    ] = None,
    lam: Annotated[
        str | None, typer.Option("--lam", metavar="NUMBER", help="Given: solve for J_D (L >= 2).")
    ] = None,
    gap: Annotated[
        bool, typer.Option("--gap", help="The lower threshold, where min S_I* turns negative.")
    ] = False,
    width: Annotated[
        str | None,
        typer.Option("--width", metavar="NUMBER", help="Width of the bracket (1e-9; 1e-5; 1e-4)."),
    ] = None,
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Bracket a critical coupling: opposite verdicts at the two ends.

    For one layer J_Dc; for more layers lambda_c at given --jd, or J_Dc at given --lam.

    Example: rmtheory critical --layers 1 --json
    """
    from rmtheory.chain import Chain
    from rmtheory.local_entropy.continuation import CurveTracker
    from rmtheory.local_entropy.critical import critical_coupling
    from rmtheory.local_entropy.model import LocalModel
    from rmtheory.local_entropy.verdict import Verdict, monotonicity

    count = checks.layers(layers)
    if count == 1 and (jd is not None or lam is not None):
        raise InvalidInputError(
            "jd" if jd is not None else "lam", jd or lam, "absent for one layer"
        )
    if count > 1 and (jd is None) == (lam is None):
        given = "both" if jd is not None else "neither"
        raise InvalidInputError(
            "jd and lam", given, "one given and one sought for two layers or more"
        )
    coupling: Literal["jd", "lam"] = "lam" if jd is not None else "jd"
    fixed = {name: _number(name, text) for name, text in (("jd", jd), ("lam", lam)) if text}
    wide = None if width is None else _number("width", width)
    if wide is not None and not 1e-10 <= wide <= 1e-2:
        raise InvalidInputError("width", width, "between 1e-10 and 1e-2")
    found = critical_coupling(count, coupling, kind="gap" if gap else "rm", width=wide, **fixed)
    quantities: dict[str, io.Quantity] = {
        f"{coupling}_low": _decimal(found.low),
        f"{coupling}_high": _decimal(found.high),
        "d": found.d,
        "y_star": found.y_star,
        "internal": found.internal,
        "minimum_low": found.at_low,
        "minimum_high": found.at_high,
    }
    d_max = ""
    if not gap:
        # The whole curve at both ends, not only the touching point.
        verdicts = []
        tracker: CurveTracker | None = None
        for end in (found.low, found.high):
            model = LocalModel(Chain(count, **{**fixed, coupling: end}))
            tracker = CurveTracker(model, tracker)  # the curves are next to each other
            near = float(found.d.value)
            judged = monotonicity(model.chain, tracker=tracker, near=near)
            verdicts.append(judged.verdict)
        if verdicts != [Verdict.NOT_MONOTONE, Verdict.MONOTONE]:
            raise NotConvergedError(
                f"the verdicts at {coupling} = {found.low:.9g} and {found.high:.9g} are "
                f"{verdicts[0]} and {verdicts[1]}"
            )
        quantities["verdict_low"], quantities["verdict_high"] = map(str, verdicts)
        quantities["verdict_join"] = f"d = {judged.d_join:.2g}, " + (
            "the least distance computed; the slope rises towards d = 0"
            if judged.difference is None
            else f"where S_I* differs from the dilute gas by {judged.difference:.1%}"
        )
        d_max = f"{judged.d_max:g}"
    name = "the gap" if gap else "the representation manifold"
    io.Report(
        f"Threshold of {name}, {counted(count, 'layer')}",
        {
            "layers": str(count) if count == math.inf else int(count),
            "gap": gap,
            **{k: repr(v) for k, v in fixed.items()},
        },
        quantities,
        {
            f"{coupling}_low": "lower end of the bracket",
            f"{coupling}_high": "upper end of the bracket",
            "d": "distance of the touching point",
            "y_star": "y* there",
            "internal": "S_I* there, per neuron",
            "minimum_low": "least " + ("S_I*" if gap else "slope") + " over d at the lower end",
            "minimum_high": "and at the upper end",
            "verdict_low": f"S_I*(d) on 0 < d <= {d_max} at the lower end",
            "verdict_high": "and at the upper end",
            "verdict_join": "where the limit d -> 0 takes over",
        },
    ).show(json, out)


def _number(name: str, text: str | None) -> float:
    return float(checks.exact_real(name, text))


def _decimal(x: float) -> str:
    return f"{x:.11f}"
