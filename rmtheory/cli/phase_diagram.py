"""``rmtheory phase-diagram``: both boundaries in the plane (J_D, lambda), resumable."""

from __future__ import annotations

import shutil
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rmtheory import checks
from rmtheory.cli import output as io
from rmtheory.cli.curve import check_folder, check_picture
from rmtheory.cli.local_entropy import required
from rmtheory.cli.progress import counting
from rmtheory.errors import InvalidInputError


def phase_diagram(
    layers: io.LayersOption = "2",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="netCDF file to write.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Picture to draw (png, pdf).")
    ] = None,
    points: Annotated[
        str, typer.Option("--points", metavar="COUNT", help="Points on each boundary.")
    ] = "25",
    width: Annotated[
        str, typer.Option("--width", metavar="NUMBER", help="Relative width of the brackets.")
    ] = "1e-4",
    jobs: Annotated[str, typer.Option("--jobs", metavar="COUNT", help="Processes.")] = "1",
) -> None:
    """Compute the boundaries of the representation manifold and of the gap, two layers or more.

    Finished points are kept in the folder OUT.parts until all are done: run again, it goes on.

    Example: rmtheory phase-diagram --layers 2 --out pd.nc --plot pd.png --jobs 2
    """
    from rmtheory import provenance, store
    from rmtheory.local_entropy.phase_diagram import KINDS, Request
    from rmtheory.local_entropy.phase_diagram import phase_diagram as compute

    count = checks.layers(layers)
    if count < 2:
        raise InvalidInputError("layers", layers, "at least 2 for the phase diagram")
    target = Path(required("out", None if out is None else str(out)))
    check_folder("out", target)
    check_picture(plot)
    request = Request(
        checks.integer("points", points, 3, 1000), float(checks.exact_real("width", width)), count
    )
    workers = checks.integer("jobs", jobs, 1, 256)
    parts = target.with_name(target.name + ".parts")
    begun = time.perf_counter()
    with counting("phase diagram", len(KINDS) * request.points) as progress:
        data = compute(request, parts, jobs=workers, on_point=progress)
    attributes = provenance.attributes(
        {**asdict(request), "layers": str(layers)}, wall_time=time.perf_counter() - begun
    )
    store.save(data.assign_attrs(attributes), target)
    shutil.rmtree(parts)
    if plot is not None:
        from rmtheory.plots import plot_phase_diagram

        plot_phase_diagram(data, plot)
    typer.echo(f"{request.points} points a boundary in {target}" + (f" and {plot}" if plot else ""))
