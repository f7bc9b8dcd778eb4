"""Options and the run of commands that sweep over a grid: where to, on what, with which summary."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rmsim.cli.options import DeviceOption, DtypeOption, SeedOption
from rmtheory import checks
from rmtheory.cli import output as io
from rmtheory.cli.progress import weighing
from rmtheory.cli.run import if_interrupted
from rmtheory.errors import InvalidInputError, RMError, StorageError
from rmtheory.files import describe, remedy
from rmtheory.wording import counted

if TYPE_CHECKING:  # xarray takes its time to import, and --help needs none of it
    from rmsim.sweep import Backend, Report, Sweep

ResultsOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Results directory; run again, and it goes on."),
]
JobsOption = Annotated[
    str | None,
    typer.Option("--jobs", metavar="COUNT", help="Processes at a time; all cores by default."),
]
DaskOption = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        help="Run on the Dask cluster with this scheduler (tcp://host:8786 or its file.json).",
    ),
]


@dataclass(frozen=True)
class SweepOptions:
    """What every command that sweeps is asked: seed, precision, place, and where results go."""

    seed: SeedOption = "0"
    dtype: DtypeOption = "float32"
    device: DeviceOption = "auto"
    out: ResultsOption = None
    jobs: JobsOption = None
    dask: DaskOption = None
    json: io.JsonOption = False

    def demand_place(self) -> None:
        """Refuse a type or a device that is not there; workers of a cluster have their own."""
        from rmsim.device import choose_device, choose_dtype

        choose_dtype(self.dtype)
        if self.dask is None:
            choose_device(self.device)


class FailedPointsError(RMError):
    """Some points of a sweep could not be computed; the others are there."""


def choose_backend(jobs: str | None = None, dask: str | None = None) -> Backend:
    """Return where to compute, from the options as typed."""
    from rmsim.sweep import Dask, Local

    if dask is None:
        return Local(None if jobs is None else checks.integer("jobs", jobs, 1))
    if jobs is not None:
        raise InvalidInputError("jobs", jobs, "left out with --dask: the cluster has its workers")
    if not dask.strip():
        raise InvalidInputError("dask", dask, "the address of a Dask scheduler")
    return Dask(dask)


def results_directory(out: Path | None) -> Path:
    """Return the results directory, which a sweep must have."""
    if out is None:
        raise InvalidInputError("out", "nothing", "given (--out DIR, where the results are kept)")
    return out


def run_from_command(
    sweep: Sweep, out: Path | None, jobs: str | None = None, dask: str | None = None
) -> Report:
    """Run `sweep` with a progress bar, and close with a summary on standard error.

    Standard output stays free for the results. Ctrl-C says how to go on.

    Raises
    ------
    FailedPointsError
        If points failed, after all others are done; each is named on standard error.
    StorageError
        If results cannot be written; what was finished is kept.
    """
    from rmsim.sweep import Progress, run_sweep

    directory = results_directory(out)
    backend = choose_backend(jobs, dask)
    last = Progress(0, len(sweep.grid), 0.0)

    def kept() -> str:
        done = f"{last.done} of {counted(last.asked, 'point')} are kept in {directory}"
        return f"{done}; the same command goes on from there"

    with if_interrupted(kept), weighing(sweep.name, len(sweep.grid)) as advance:

        def follow(progress: Progress) -> None:
            nonlocal last
            last = progress
            advance(progress.done, progress.share)

        try:
            report = run_sweep(sweep, directory, backend, on_progress=follow, note=_say)
        except OSError as problem:
            raise StorageError(
                f"{describe(problem)}; {last.done} of {last.asked} points are done and kept in "
                f"{directory}: {remedy(problem)} and run the same command again"
            ) from problem
    for failure in report.failures:
        _say(str(failure))
    _say(str(report))
    if report.failures:
        raise FailedPointsError(
            f"{len(report.failures)} of {counted(report.asked, 'point')} failed; "
            "run the same command again to retry only those"
        )
    return report


def _say(sentence: str) -> None:
    typer.echo(f"rmsim: {sentence}", err=True)
