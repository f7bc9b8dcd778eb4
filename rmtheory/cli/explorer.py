"""``rmtheory explore``: open the explorer, or compute its grids anew."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError
from rmtheory.runtime import report as io
from rmtheory.runtime.command import check_earlier, if_interrupted
from rmtheory.runtime.progress import counting


def explore(
    layers: Annotated[
        str | None,
        typer.Option("--layers", "-L", metavar="L", help="Depth to begin with: 1, 2, 3 or inf."),
    ] = None,
    jd: io.JdOption = None,
    lam: io.LamOption = None,
    d: Annotated[str | None, typer.Option("--d", metavar="NUMBER", help="Distance.")] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Where the page goes; a temporary file."),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
    compute: Annotated[
        Path | None,
        typer.Option(
            "--compute", metavar="DIR", help="Compute the grids anew; finished parts stay in DIR."
        ),
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option(
            "--tables",
            metavar="FILE",
            help="With --compute: boundaries, freezing points, thresholds; those of the package.",
        ),
    ] = None,
    grids: Annotated[
        Path | None,
        typer.Option("--grids", metavar="FILE", help="With --compute: write the grids here."),
    ] = None,
    jobs: Annotated[str, typer.Option("--jobs", metavar="COUNT", help="Processes.")] = "1",
) -> None:
    """Open the explorer: S_I*(d), y*(d), f(t) and phase diagrams behind sliders, in one page.

    The page needs neither a server nor a network. With --compute its grids are recomputed,
    about twenty CPU-minutes; a run that was killed resumes.

    Example: rmtheory explore --layers 2 --jd .3 --lam .4
    """
    import tempfile

    from rmtheory.explorer import grids as grid_files
    from rmtheory.explorer.grids import address, write_page

    workers = checks.integer("jobs", jobs, 1, 256)
    for name, value in (("tables", tables), ("grids", grids)):
        if value is not None and compute is None:
            raise InvalidInputError(name, str(value), "an option of --compute alone")
    depth = None if layers is None else checks.layers(layers)
    numbers = {
        name: None if typed is None else float(checks.exact_real(name, typed))
        for name, typed in (("jd", jd), ("lam", lam), ("d", d))
    }
    target = Path(tempfile.gettempdir(), "rmtheory-explorer.html") if out is None else out
    if target.suffix.lower() != ".html":
        raise InvalidInputError("out", str(target), "a file ending in .html")
    check_earlier("out", target, (b"<title>Explorer of the representation manifold",), "page")
    place = address(target, layers=depth, **numbers)
    document = None
    if compute is not None:
        total = grid_files.total_parts()
        with (
            if_interrupted(
                lambda: f"finished parts are kept in {compute}; the same command resumes"
            ),
            counting("grids", total, None) as count,
        ):
            grid_files.compute(compute, jobs=workers, on_part=count)
        document = grid_files.gather(compute, grid_files.read_tables(tables))
        if grids is not None:
            grid_files.write_grids(document, grids)
    write_page(target, document)
    if browser:
        webbrowser.open(place)
    typer.echo(place)
