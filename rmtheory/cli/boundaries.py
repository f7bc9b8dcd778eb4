"""``rmtheory critical`` and ``rmtheory phase-diagram``: boundaries of the manifold and of the gap.

A critical coupling is a bracket with opposite verdicts at its ends; a phase diagram has both
boundaries in the plane (J_D, lambda), resumable.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal

import typer

from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError
from rmtheory.base.wording import counted
from rmtheory.cli.local_entropies import required
from rmtheory.runtime import report as io
from rmtheory.runtime.command import check_folder, check_picture, if_interrupted
from rmtheory.runtime.progress import counting


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


def phase_diagram(
    layers: Annotated[
        str,
        typer.Option(
            "--layers", "-L", metavar="L", help="Number of core modules: 2, 3, ... or inf."
        ),
    ] = "2",
    out: io.DataOption = None,
    plot: io.PictureOption = None,
    points: Annotated[
        str, typer.Option("--points", metavar="COUNT", help="Points on each boundary.")
    ] = "25",
    width: Annotated[
        str, typer.Option("--width", metavar="NUMBER", help="Relative width of the brackets.")
    ] = "1e-4",
    jobs: Annotated[str, typer.Option("--jobs", metavar="COUNT", help="Processes.")] = "1",
) -> None:
    """Compute the boundaries of the representation manifold and of the gap, two layers or more.

    Finished points are kept in the folder OUT.parts until all are done: the same command resumes.
    If OUT already holds this diagram, it is only drawn.

    Example: rmtheory phase-diagram --layers 2 --out pd.nc --plot pd.png --jobs 2
    """
    from rmtheory.local_entropies.boundaries import KINDS
    from rmtheory.local_entropies.diagram import (
        Request,
        finished,
        parts_of,
        stored_phase_diagram,
    )
    from rmtheory.runtime.run_store import RunStore

    depth = checks.layers(layers)
    if depth < 2:
        raise InvalidInputError("layers", layers, "an integer >= 2 or inf for the phase diagram")
    target = Path(required("out", None if out is None else str(out)))
    check_folder("out", target)
    check_picture(plot, target)
    request = Request(
        checks.integer("points", points, 3, 1000),
        float(checks.exact_real("width", width)),
        depth,
    )
    workers = checks.integer("jobs", jobs, 1, 256)
    total, parts = len(KINDS) * request.points, parts_of(target)
    with (
        if_interrupted(
            lambda: RunStore(parts).kept(f"{finished(request, parts)} of {total} points")
        ),
        counting("phase diagram", total, None) as count,
    ):
        diagram = stored_phase_diagram(
            request, target, jobs=workers, on_begin=count, on_point=count, note=_say
        )
    if not diagram.computed:
        _say(f"{target} holds this diagram already, nothing is computed")
    if plot is not None:
        from rmtheory.plots import plot_phase_diagram

        plot_phase_diagram(diagram.data, depth, plot)
    typer.echo(
        f"{request.points} points per boundary in {target}" + (f" and {plot}" if plot else "")
    )


def _say(sentence: str) -> None:
    typer.echo(f"rmtheory: {sentence}", err=True)
