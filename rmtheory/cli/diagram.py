"""``rmtheory phase-diagram``: both boundaries in the plane (J_D, lambda), resumable."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError
from rmtheory.cli.points import required
from rmtheory.runtime import report as io
from rmtheory.runtime.command import check_folder, check_picture, if_interrupted
from rmtheory.runtime.progress import counting


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
