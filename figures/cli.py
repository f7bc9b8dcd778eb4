"""``python -m figures``: which figures, at what scale, on what, into which folder."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from rmtheory import checks
from rmtheory.cli.run import fail, if_interrupted, run_app
from rmtheory.errors import InvalidInputError, RMError

NAME = "figures"

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.command()
def figures(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="Figures by name, all; report; list; publish."),
    ],
    scale: Annotated[
        str, typer.Option(metavar="tiny|quick|paper", help="How much work to put in.")
    ] = "quick",
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where data and pictures go.")] = Path(
        "figures/out"
    ),
    recompute: Annotated[
        bool, typer.Option("--recompute", help="Compute even if the data are stored.")
    ] = False,
    jobs: Annotated[
        str | None,
        typer.Option("--jobs", metavar="COUNT", help="Processes at a time on this machine; 2."),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            "--dask",
            metavar="ADDRESS",
            help="Run sweeps on the Dask cluster with this scheduler (tcp://host:8786 or its "
            "file.json); figures that are no sweeps use processes here.",
        ),
    ] = None,
) -> int:
    """Compute, store and plot figures; what is stored and up to date is not made again.

    The name report, alone or after others, writes report.html: all figures, and every number of
    the paper against ours. The name publish also brings the tables of README and docs up to date.

    Example: python -m figures annealed report --scale paper --out /tmp/figures
    """
    from figures.occupied import occupied
    from figures.registry import FIGURES, parse_scale, select

    if names == ["list"]:
        width = max(map(len, FIGURES))
        for figure in FIGURES.values():
            typer.echo(f"{figure.name:{width}}  {figure.title}")
        return 0
    wanted = [name for name in names if name not in ("report", "publish")]
    chosen = [figure.name for figure in select(wanted)]
    parse_scale(scale)
    workers = _workers(jobs, dask) if chosen else None
    folder, code = _writable(out), 0
    go_on = if_interrupted(lambda: "the same command goes on where it was")
    with occupied(folder, _files(folder)), go_on:
        if workers:
            code = _make_all(chosen, scale, folder, recompute, workers)
        if len(wanted) < len(names):
            code = max(code, _report(folder, "publish" in names))
    return code


def _workers(jobs: str | None, dask: str | None) -> tuple[int, str | None]:
    """Return processes and scheduler, as typed."""
    from figures.figure import JOBS

    count = JOBS if jobs is None else checks.integer("jobs", jobs, 1)
    if dask is not None:
        from rmsim.sweep import Dask

        if not dask.strip():
            raise InvalidInputError("dask", dask, "the address of a Dask scheduler")
        Dask(dask).check()
    return count, dask


def _make_all(
    names: Sequence[str],
    scale: str,
    folder: Path,
    recompute: bool,
    workers: tuple[int, str | None],
) -> int:
    """Make the figures one by one; one that fails does not stop the others."""
    from figures.display import display
    from figures.failures import Failure, remember
    from figures.make import make
    from figures.registry import FIGURES, parse_scale
    from figures.workers import computing_with

    _announce(names, scale, folder, recompute, workers)
    failed = 0
    for name in names:
        try:
            with computing_with(*workers), display(name) as progress:
                made = make(
                    FIGURES[name], parse_scale(scale), folder, progress, recompute=recompute
                )
        except Exception as problem:  # whatever it is, the other figures are still wanted
            failed += 1
            details = "" if isinstance(problem, RMError) else traceback.format_exc()
            message = str(problem) or type(problem).__name__
            print(details, end="", file=sys.stderr)
            fail(NAME, f"{name} failed: {message}", 1)
            remember(folder, name, Failure(scale, " ".join(message.split()), details))
            continue
        remember(folder, name, None)
        if made.note:
            print(f"{NAME}: {made.note}", file=sys.stderr)
        files = ", ".join(path.name for path in made.files)
        what = f"{made.data} data" if made.drawn else "unchanged"
        typer.echo(f"{name}: {what}, {made.seconds:.1f} s, {folder}: {files}")
    return 1 if failed else 0


def _announce(
    names: Sequence[str], scale: str, folder: Path, recompute: bool, workers: tuple[int, str | None]
) -> None:
    """Say how long the figures that take hours will take, before they start."""
    from figures.make import is_stored
    from figures.registry import FIGURES, parse_scale

    jobs, dask = workers
    chosen = parse_scale(scale)
    files: set[str] = set()
    for name in names:
        figure = FIGURES[name]
        hours = figure.core_hours.get(chosen, 0.0)
        if not hours or figure.data_file in files:
            continue
        if not recompute and is_stored(figure, chosen, folder):
            continue
        files.add(figure.data_file)
        time = "" if dask else f", {hours / jobs:.2g} h in {jobs} processes"
        print(
            f"{NAME}: {name} at {scale} scale takes about {hours:.2g} core-hours"
            f"{time}; a killed run goes on where it was",
            file=sys.stderr,
        )


def _report(folder: Path, publish: bool) -> int:
    """Write the report; 1 if a figure failed, since the page then lacks something."""
    from figures.figure import Scale
    from figures.registry import FIGURES
    from figures.report import gather, write

    report = gather(folder, FIGURES)
    files = write(report, folder)
    typer.echo(f"report: {', '.join(str(path) for path in files)}")
    if publish:
        from figures.report.publish import publish as write_pages

        current = {figure.key(scale) for figure in FIGURES.values() for scale in Scale}
        paths, dropped = write_pages(report.results, current)
        for path in paths:
            typer.echo(f"published: {path}")
        for name in dropped:
            print(f"{NAME}: {name} is not published: make it again", file=sys.stderr)
    for entry in report.failed:
        fail(NAME, f"{entry.figure.name} failed: {entry.message}", 1)
    return 1 if report.failed else 0


def _files(folder: Path) -> list[Path]:
    """Return all files that the command writes into `folder`, but for parts."""
    from figures import drawn, failures
    from figures.registry import FIGURES
    from figures.report.write import FILES

    found = [folder / name for name in (failures.FILE, *FILES)]
    for figure in FIGURES.values():
        found += [*drawn.files(figure, folder), drawn.stamp_file(figure, folder)]
    return found


def _writable(out: Path) -> Path:
    """Return the folder `out`, made if need be."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        reason = f"a folder that can be written ({problem.strerror})"
        raise InvalidInputError("out", str(out), reason) from None
    if not os.access(out, os.W_OK | os.X_OK):
        raise InvalidInputError("out", str(out), "a folder that can be written")
    return out


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return run_app(app, NAME, arguments)
