"""``rmtheory critical``: thresholds of the representation manifold and of the gap, as brackets."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import typer

from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError
from rmtheory.base.wording import counted
from rmtheory.runtime import report as io


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
    from rmtheory.local_entropies.thresholds import critical_coupling

    count = checks.layers(layers)
    if count == 1 and (jd is not None or lam is not None):
        raise InvalidInputError(
            "jd" if jd is not None else "lam", jd or lam, "absent for one layer"
        )
    if count > 1 and (jd is None) == (lam is None):
        which = "both" if jd is not None else "neither"
        raise InvalidInputError(
            "jd and lam", which, "one given and one sought for two layers or more"
        )
    coupling: Literal["jd", "lam"] = "lam" if jd is not None else "jd"
    given = {"jd": _number("jd", jd), "lam": _number("lam", lam)}
    wide = _number("width", width)
    if wide is not None and not 1e-10 <= wide <= 1e-2:
        raise InvalidInputError("width", width, "between 1e-10 and 1e-2")
    threshold = critical_coupling(
        count, coupling, jd=given["jd"], lam=given["lam"], kind="gap" if gap else "rm", width=wide
    )
    quantities: dict[str, io.Quantity] = {
        f"{coupling}_low": _decimal(threshold.low),
        f"{coupling}_high": _decimal(threshold.high),
        "d": threshold.d,
        "y_star": threshold.y_star,
        "internal": threshold.internal,
        "minimum_low": threshold.at_low,
        "minimum_high": threshold.at_high,
    }
    d_max = ""
    if threshold.judged is not None:
        quantities["verdict_low"], quantities["verdict_high"] = threshold.verdicts
        upper = threshold.judged[1]
        quantities["verdict_join"] = upper.join
        d_max = f"{upper.d_max:g}"
    name = "the gap" if gap else "the representation manifold"
    io.Report(
        f"Threshold of {name}, {counted(count, 'layer')}",
        {
            "layers": str(count) if count == math.inf else int(count),
            "gap": gap,
            **{k: repr(v) for k, v in given.items() if v is not None},
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


def _number(name: str, text: str | None) -> float | None:
    return None if text is None else float(checks.exact_real(name, text))


def _decimal(x: float) -> str:
    return f"{x:.11f}"
