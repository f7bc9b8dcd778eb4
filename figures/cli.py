"""``python -m figures``: which figures, at what scale, on what, into which folder."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError, RMError
from rmtheory.runtime.command import fail, if_interrupted, run_app

if TYPE_CHECKING:  # the command line answers before it imports
    from figures.engine.figure import Context

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
        typer.Argument(
            metavar="NAME...", help="Figures by name, all; report; list; claims; publish."
        ),
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
            "file.json); figures that are not sweeps use processes here.",
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            "--device",
            metavar="NAME",
            help="Where simulations run: auto, cpu, cuda (one process for each GPU) or cuda:0.",
        ),
    ] = "cpu",
    json: Annotated[bool, typer.Option("--json", help="With claims: print them as JSON.")] = False,
    claim: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="With claims: this one, in full.")
    ] = None,
) -> int:
    """Compute, store and plot figures; what is stored and up to date is not made again.

    The name report, alone or after others, writes report.html: all figures, and every number of
    the paper against ours. The name publish also brings the tables of README and docs up to date.
    The name claims lists every claim of the paper with our number and the verdict: those of the
    figures in --out, and the published ones where there are none.

    Example: python -m figures annealed report --scale paper --out /tmp/figures
    """
    from figures.paper.registry import FIGURES, parse_scale, select
    from rmtheory.runtime.run_store import RunStore

    if names == ["list"]:
        width = max(map(len, FIGURES))
        for figure in FIGURES.values():
            typer.echo(f"{figure.name:{width}}  {figure.title}")
        return 0
    if names == ["claims"]:
        return _claims(out, json, claim)
    if json or claim is not None:
        option, value = ("json", "True") if json else ("id", str(claim))
        raise InvalidInputError(option, value, "an option of the name claims alone")
    wanted = [name for name in names if name not in ("report", "publish")]
    chosen = [figure.name for figure in select(wanted)]
    parse_scale(scale)
    context = _context(jobs, dask, device) if chosen else None
    folder, code = _writable(out), 0
    go_on = if_interrupted(lambda: "the same command resumes where it stopped")
    with RunStore(folder, files=_files()).at_work(shared=True), go_on:
        if context:
            code = _make_all(chosen, scale, folder, recompute, context)
        if len(wanted) < len(names):
            code = max(code, _report(folder, "publish" in names))
    return code


def _context(jobs: str | None, dask: str | None, device: str) -> Context:
    """Return where to compute, from the options as typed."""
    from figures.engine.figure import JOBS, Context

    count = JOBS if jobs is None else checks.integer("jobs", jobs, 1)
    if dask is None and device != "cpu":  # workers of a cluster have their own
        from rmsim.tensors import choose_device

        device = str(choose_device(device))
    if dask is not None:
        from rmsim.sweep import Dask

        if not dask.strip():
            raise InvalidInputError("dask", dask, "the address of a Dask scheduler")
        Dask(dask).check()
    return Context(jobs=count, dask=dask, device=device)


def _make_all(
    names: Sequence[str],
    scale: str,
    folder: Path,
    recompute: bool,
    context: Context,
) -> int:
    """Make the figures one by one; one that fails does not stop the others."""
    from figures.engine.making import Failure, make, store_failure
    from figures.paper.registry import FIGURES, parse_scale
    from rmtheory.runtime.progress import counting

    _announce(names, scale, folder, recompute, context)
    failed = 0
    for name in names:
        try:
            with counting(name, before=None, transient=True) as progress:
                made = make(
                    FIGURES[name],
                    parse_scale(scale),
                    folder,
                    replace(context, progress=progress),
                    recompute=recompute,
                )
        except Exception as problem:  # whatever it is, the other figures are still wanted
            failed += 1
            details = "" if isinstance(problem, RMError) else traceback.format_exc()
            message = str(problem) or type(problem).__name__
            print(details, end="", file=sys.stderr)
            fail(NAME, f"{name} failed: {message}", 1)
            store_failure(folder, name, Failure(scale, " ".join(message.split()), details))
            continue
        store_failure(folder, name, None)
        if made.note:
            print(f"{NAME}: {made.note}", file=sys.stderr)
        files = ", ".join(path.name for path in made.files)
        what = f"{made.data} data" if made.drawn else "unchanged"
        typer.echo(f"{name}: {what}, {made.seconds:.1f} s, {folder}: {files}")
    return 1 if failed else 0


def _announce(
    names: Sequence[str], scale: str, folder: Path, recompute: bool, context: Context
) -> None:
    """Say how long the figures that take hours will take, before they start."""
    from figures.engine.making import is_stored
    from figures.paper.registry import FIGURES, parse_scale

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
        time = (
            f", {hours / context.jobs:.2g} h in {context.jobs} processes"
            if context.dask is None
            else ""
        )
        print(
            f"{NAME}: {name} at {scale} scale takes about {hours:.2g} core-hours"
            f"{time}; a killed run resumes where it stopped",
            file=sys.stderr,
        )


def _claims(folder: Path, json: bool, wanted: str | None) -> int:
    """Print the claims, or all that is known of one."""
    from difflib import get_close_matches
    from json import dumps

    from figures.claims import CLAIMS
    from figures.paper.registry import FIGURES, current_keys
    from figures.report import gather
    from figures.report.publishing import published

    results = gather(folder, FIGURES).results.over(published(), current_keys())
    if wanted is not None:
        by_id = {claim.id: claim for claim in CLAIMS}
        if wanted not in by_id:
            near = get_close_matches(wanted, by_id, 3, 0.3)
            known = f"an id that 'python -m figures claims' lists, such as {', '.join(near)}"
            raise InvalidInputError("id", wanted, known if near else known.partition(", such")[0])
        one = results.described(by_id[wanted])
        if json:
            typer.echo(dumps(one, indent=1, ensure_ascii=False, allow_nan=False))
        else:
            for name, value in one.items():
                if value not in ("", None):
                    typer.echo(f"{name:9} {value}")
    elif json:
        typer.echo(results.claims_json(), nl=False)
    else:
        for claim in CLAIMS:
            judged = results.judged(claim)
            typer.echo(f"{claim.id}: {judged.text}{f' ({judged.ours})' if judged.ours else ''}")
    return 0


def _report(folder: Path, publish: bool) -> int:
    """Write the report; 1 if a figure failed, since the page then lacks something."""
    from figures.paper.registry import FIGURES, current_keys
    from figures.report import gather, write

    report = gather(folder, FIGURES)
    files = write(report, folder)
    typer.echo(f"report: {', '.join(str(path) for path in files)}")
    if publish:
        from figures.report.publishing import publish as write_pages

        paths, dropped = write_pages(report.results, current_keys())
        for path in paths:
            typer.echo(f"published: {path}")
        for name in dropped:
            print(f"{NAME}: {name} is not published: make it again", file=sys.stderr)
    for entry in report.failed:
        fail(NAME, f"{entry.figure.name} failed: {entry.message}", 1)
    return 1 if report.failed else 0


def _files() -> tuple[str, ...]:
    """Return the names of all files that the command writes, partial results excepted."""
    from figures.engine import making
    from figures.paper.registry import FIGURES
    from figures.report.publishing import FILES

    here = Path()
    paths = [here / name for name in (making.FAILURES, *FILES)]
    for figure in FIGURES.values():
        paths += [*making.figure_files(figure, here), making.hash_file(figure, here)]
    return tuple(str(path) for path in paths)


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
