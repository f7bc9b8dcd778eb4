"""``rmtheory phase-diagram``: both boundaries in the plane (J_D, lambda), resumable."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rmtheory import checks
from rmtheory.cli.local_entropy import required
from rmtheory.cli.progress import counting
from rmtheory.cli.run import if_interrupted
from rmtheory.cli.targets import check_folder, check_picture
from rmtheory.errors import InvalidInputError, UnreadableDataError

if TYPE_CHECKING:
    import xarray as xr

    from rmtheory.local_entropy.phase_diagram import Request


def phase_diagram(
    layers: Annotated[
        str,
        typer.Option(
            "--layers", "-L", metavar="L", help="Number of core modules: 2, 3, ... or inf."
        ),
    ] = "2",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="netCDF file to write.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Picture to draw (png, pdf, svg).")
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
    If OUT holds this very diagram, it is only drawn.

    Example: rmtheory phase-diagram --layers 2 --out pd.nc --plot pd.png --jobs 2
    """
    from rmtheory.local_entropy.phase_diagram import Request

    count = checks.layers(layers)
    if count < 2:
        raise InvalidInputError("layers", layers, "an integer >= 2 or inf for the phase diagram")
    target = Path(required("out", None if out is None else str(out)))
    check_folder("out", target)
    check_picture(plot, target)
    request = Request(
        checks.integer("points", points, 3, 1000), float(checks.exact_real("width", width)), count
    )
    workers = checks.integer("jobs", jobs, 1, 256)
    data = _stored(request, target)
    if data is None:
        data = _compute(request, target, workers)
    else:
        _say(f"{target} holds this diagram already, nothing is computed")
    if plot is not None:
        from rmtheory.plots import plot_phase_diagram

        plot_phase_diagram(data, count, plot)
    typer.echo(f"{request.points} points a boundary in {target}" + (f" and {plot}" if plot else ""))


def _stored(request: Request, target: Path) -> xr.Dataset | None:
    """Return the diagram in `target`, None if there is none or another one."""
    from rmtheory import store

    if not target.exists():
        return None
    try:
        data = store.load(target)
    except UnreadableDataError:
        data = None
    if data is not None and data.attrs.get("parameters_hash") == request.key:
        return data
    _say(f"{target} holds something else, which is replaced once this diagram is done")
    return None


def _compute(request: Request, target: Path, workers: int) -> xr.Dataset:
    """Compute the diagram and store it, going on from what an earlier run has left."""
    from rmtheory import provenance, store
    from rmtheory.local_entropy.phase_diagram import KINDS, VERSION, finished, others
    from rmtheory.local_entropy.phase_diagram import phase_diagram as compute

    parts = target.with_name(target.name + ".parts")
    found = others(request, parts)
    if found is not None:
        raise InvalidInputError(
            "out",
            str(target),
            f"another file, because {parts} keeps {found} (run that again to finish it, or remove "
            "the folder)",
        )
    total = len(KINDS) * request.points
    done = finished(request, parts)
    if done:
        _say(f"{done} of {total} points are there already, in {parts}")
    begun = time.perf_counter()
    with (
        if_interrupted(
            lambda: (
                f"{finished(request, parts)} of {total} points are kept in {parts}; "
                "the same command goes on from there"
            )
        ),
        counting("phase diagram", total, done) as progress,
    ):
        data = compute(request, parts, jobs=workers, on_point=progress)
    attributes = provenance.attributes(
        request.parameters(), version=VERSION, wall_time=time.perf_counter() - begun
    )
    data = data.assign_attrs(attributes)
    store.save(data, target)
    shutil.rmtree(parts)
    return data


def _say(sentence: str) -> None:
    typer.echo(f"rmtheory: {sentence}", err=True)
