"""``python -m figures``: which figures, at what scale, on what, into which folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError
from rmtheory.runtime.command import fail, if_interrupted, run_app

if TYPE_CHECKING:  # the command line answers before it imports
    from figures.engine.figure import Context
    from figures.trial.runner import Trial
    from figures.trial.store import Store

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
            metavar="NAME...",
            help="Figures by name, all; report; list; claims; publish; plan; decide; verify.",
        ),
    ],
    scale: Annotated[
        str,
        typer.Option(
            metavar="tiny|quick|paper",
            help="How much work to put in; plan, decide and verify have one of their own, decide.",
        ),
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
        str | None,
        typer.Option("--id", metavar="ID", help="With claims, decide and verify: this claim."),
    ] = None,
    hours: Annotated[
        str | None,
        typer.Option("--hours", metavar="HOURS", help="With decide: for how long at most; 2."),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(
            "--store", metavar="DIR", help="Stored runs, if not those in figures/data/trained."
        ),
    ] = None,
) -> int:
    """Compute, store and plot figures; what is stored and up to date is not made again.

    The name report, alone or after others, writes report.html: all figures, and every number of
    the paper against ours. The name publish also brings the tables of README and docs up to date.
    The name claims lists every claim of the paper with our number and the verdict: those of the
    figures in --out, those of stored runs, and the published ones where there are none.

    The trial of what the paper says of learning: plan lists the runs that decide its claims, with
    their cost on this machine and what is done; decide goes on with them for --hours, those that
    decide most claims per hour first, and survives being killed; verify repeats the stored runs of
    one claim and compares.

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
        return _claims(out, json, claim, store)
    if len(names) == 1 and names[0] in _TRIAL:
        return _trial(names[0], scale, out, store, claim, hours)
    misplaced = (
        ("json", json or None, "name claims"),
        ("id", claim, "names claims, plan, decide and verify"),
        ("hours", hours, "name decide"),
    )
    for option, value, owner in misplaced:
        if value is not None:
            raise InvalidInputError(option, str(value), f"an option of the {owner} alone")
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
            code = max(code, _report(folder, "publish" in names, store))
    return code


def _context(jobs: str | None, dask: str | None, device: str) -> Context:
    """Return where to compute, from the options as typed."""
    from figures.engine.figure import JOBS, Context

    count = JOBS if jobs is None else checks.integer("jobs", jobs, 1)
    if dask is None and device != "cpu":  # workers of a cluster have their own
        from rmsim.tensors import choose_device

        device = str(choose_device(device))
    if dask is not None:
        from rmsim.sweep.running import Dask

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
    """Make the figures and print what came of each; 1 if one failed."""
    from figures.engine.figure import Failure, hours_ahead, make_all
    from figures.paper.registry import parse_scale, select
    from rmtheory.runtime.progress import counting

    chosen, wanted = select(names), parse_scale(scale)
    for name, hours in hours_ahead(chosen, wanted, folder, recompute=recompute).items():
        here = f", {hours / context.jobs:.2g} h in {context.jobs} processes"
        print(
            f"{NAME}: {name} at {scale} scale takes about {hours:.2g} core-hours"
            f"{here if context.dask is None else ''}; a killed run resumes where it stopped",
            file=sys.stderr,
        )
    display = partial(counting, before=None, transient=True)
    code = 0
    for figure, made in make_all(chosen, wanted, folder, context, display, recompute=recompute):
        if isinstance(made, Failure):
            print(made.traceback, end="", file=sys.stderr)
            code = fail(NAME, f"{figure.name} failed: {made.message}", 1)
            continue
        if made.note:
            print(f"{NAME}: {made.note}", file=sys.stderr)
        files = ", ".join(path.name for path in made.files)
        what = f"{made.data} data" if made.drawn else "unchanged"
        typer.echo(f"{figure.name}: {what}, {made.seconds:.1f} s, {folder}: {files}")
    return code


#: Names that concern the trial, each alone.
_TRIAL = ("plan", "decide", "verify")


def _trial(
    name: str, scale: str, out: Path, store: Path | None, claim: str | None, hours: str | None
) -> int:
    """List, go on with or repeat the runs of the trial."""
    if scale not in ("quick", "decide"):  # the first is the default of the other names
        raise InvalidInputError("scale", scale, f"decide, or nothing, with {name}")
    if hours is not None and name != "decide":
        raise InvalidInputError("hours", hours, "an option of the name decide alone")
    from figures.trial.runner import Trial, checked_hours
    from rmtheory.runtime.progress import counting

    limit = checked_hours("2" if hours is None else hours)
    trial = Trial(_store(store), out / ".trial")
    if claim is not None:
        trial = trial.about(claim)
    elif name == "verify":
        raise InvalidInputError("id", "nothing", "the id of a claim that 'claims' lists")
    if name == "verify":
        return _verify(trial)
    with counting("sizes timed", before=None, transient=True) as progress:
        costs = trial.costs(progress)
    if name == "plan":
        for line in trial.plan(costs):
            typer.echo(line)
        return 0
    done = 0
    with if_interrupted(lambda: "the same command goes on where it was"):

        def say(sentence: str) -> None:
            print(f"{NAME}: {sentence}")

        for result in trial.hold(limit, say, costs=costs):
            done += 1
            typer.echo(f"{result.title}: {result.cpu_seconds:.0f} CPU-s, {trial.store.path}")
    typer.echo(f"{done} runs done; {trial.summary()}")
    return 0


def _verify(trial: Trial) -> int:
    """Repeat the stored runs of a claim; 1 if one is another."""
    failed = 0
    for one in trial.verify():
        if one.identical:
            same = "identical"
        elif one.same:
            same = "the same but for rounding"
        elif one.largest is None:
            same = "differs, and has no errors of its own"
        else:
            same = f"differs by at most {one.largest:.1f} errors"
        where = "the same machine" if one.same_machine else "another machine"
        verdict = "ok" if one.passed else "FAILED"
        failed += not one.passed
        typer.echo(f"{verdict}: {one.title}: {same}, {where}, {one.cpu_seconds:.0f} CPU-s")
    return 1 if failed else 0


def _store(path: Path | None) -> Store:
    from figures.trial.store import Store

    if path is None:
        return Store()
    if not path.is_dir():
        raise InvalidInputError("store", str(path), "a folder of stored runs")
    return Store(path)


def _claims(folder: Path, json: bool, wanted: str | None, store: Path | None) -> int:
    """Print the claims, or all that is known of one."""
    from json import dumps

    from figures.claims import CLAIMS, claim_named
    from figures.paper.registry import FIGURES, current_keys
    from figures.report.collecting import gather
    from figures.report.publishing import published

    asked = None if wanted is None else claim_named(wanted)  # before seconds are spent on results
    results = gather(folder, FIGURES, _store(store)).results.over(published(), current_keys())
    if asked is not None:
        one = results.described(asked)
        if json:
            typer.echo(dumps(one, indent=1, ensure_ascii=False, allow_nan=False))
        else:
            for name, value in one.items():
                if value not in ("", None, []):
                    typer.echo(f"{name:9} {value}")
    elif json:
        typer.echo(results.claims_json(), nl=False)
    else:
        for claim in CLAIMS:
            judged = results.judged(claim)
            typer.echo(f"{claim.id}: {judged.text}{f' ({judged.ours})' if judged.ours else ''}")
    return 0


def _report(folder: Path, publish: bool, store: Path | None) -> int:
    """Write the report; 1 if a figure failed, since the page then lacks something."""
    from figures.paper.registry import FIGURES, current_keys
    from figures.report.collecting import gather
    from figures.report.publishing import write

    report = gather(folder, FIGURES, _store(store))
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
    from figures.engine import figure as engine
    from figures.paper.registry import FIGURES
    from figures.report.publishing import FILES

    here = Path()
    paths = [here / name for name in (engine.FAILURES, *FILES)]
    for figure in FIGURES.values():
        paths += [*engine.figure_files(figure, here), engine.hash_file(figure, here)]
    return tuple(str(path) for path in paths)


def _writable(out: Path) -> Path:
    """Return the folder `out`, made if need be."""
    from rmtheory.runtime.files import make_folder

    obstacle = make_folder(out)
    if obstacle:
        raise InvalidInputError("out", str(out), f"a folder that can be written ({obstacle})")
    if not os.access(out, os.W_OK | os.X_OK):
        raise InvalidInputError("out", str(out), "a folder that can be written")
    return out


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return run_app(app, NAME, arguments)
