"""What several commands share: options, the data set that they name, the sweep, the report.

:func:`numbers` and :func:`integers` read several values from one option, ``a,b,c`` and
``start:stop:count``, also mixed. :func:`run_from_command` runs a sweep over a grid with its
progress and its summary on standard error. A :class:`SimulationReport` prints plain numbers, each
measured one with NAME_error beside it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmtheory.base import checks
from rmtheory.base.errors import (
    InvalidInputError,
    NotConvergedError,
    RMError,
    StorageError,
    counted,
)
from rmtheory.runtime import report as io
from rmtheory.runtime.command import check_new, if_interrupted
from rmtheory.runtime.files import describe, remedy, replacing
from rmtheory.runtime.progress import counting

if TYPE_CHECKING:  # slow to import, and --help needs none of it
    import numpy.typing as npt

    from rmsim.data.dataset import Dataset
    from rmsim.data.own_files import Encoding
    from rmsim.network import Network
    from rmsim.sweep.definition import Sweep
    from rmsim.sweep.running import Backend, SweepReport


def option(name: str, metavar: str, text: str) -> Any:
    """Return an option with its help."""
    return typer.Option(name, metavar=metavar, help=text)


SeedOption = Annotated[str, option("--seed", "SEED", "Seed of all random numbers.")]
DeviceOption = Annotated[str, option("--device", "NAME", "auto, cpu, cuda or cuda:0.")]
DtypeOption = Annotated[str, option("--dtype", "TYPE", "float32 or float64.")]
RhoOption = Annotated[str, option("--rho", "DENSITY", "Density of the couplings.")]
SymmetricOption = Annotated[
    bool, typer.Option("--symmetric", help="Symmetric couplings (J + J^T)/sqrt(2).")
]
UpdateOption = Annotated[
    str, option("--update", "ORDER", "synchronous, or sequential (layer after layer).")
]
DrOption = Annotated[
    str | None, option("--dr", "SPEED", "Growth of the reinforcement (rbp), .01 by default.")
]
R0Option = Annotated[
    str | None, option("--r0", "NUMBER", "First reinforcement (rbp), 0 by default.")
]
EtaOption = Annotated[
    str | None, option("--eta", "STEP", "Size of the steps (likelihood), .3 by default.")
]
DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="DIR", help="Folder of the files, instead of RMSIM_DATA and the cache."
    ),
]
OwnDataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="FILE|DIR",
        help="Training samples of your own (.npz with X and y, .csv, .parquet); or the folder of "
        "the files of a named data set.",
    ),
]
LabelOption = Annotated[
    str, option("--label", "NAME", "Array or column of the labels in files of your own.")
]
DatasetOption = Annotated[
    str | None, option("--dataset", "NAME", "Data set, as in 'rmsim data list'.")
]
TrainOption = Annotated[str | None, option("--train", "COUNT", "Only the first training samples.")]
TestOption = Annotated[str | None, option("--test", "COUNT", "Only the first test samples.")]
OwnTestOption = Annotated[
    str | None,
    option("--test", "FILE|COUNT", "Test samples of your own; or only the first test samples."),
]


# Several values in one option.

#: Values in one option; more are a typing error.
_MOST = 10_000

_ALLOWED = "numbers a,b,c or a range start:stop:count"


CouplingsOption = Annotated[
    Path | None,
    option(
        "--couplings",
        "FILE",
        "Couplings of your own instead of --n: .npy, .npz or .mtx, n x n or layers x n x n.",
    ),
]
StatesOption = Annotated[
    Path | None,
    option("--states", "FILE", "Also write the fixed points as .npy: (count, layers, n), +1, -1."),
]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Replace the output file if it exists.")
]


def make_network(
    n: str | None,
    model: io.FiniteChainOptions,
    *,
    rho: str = "1",
    symmetric: bool = False,
    couplings: Path | None = None,
) -> Network:
    """Return the network that a command was given: drawn, or with couplings of a file."""
    from rmsim.network import Network

    if couplings is None:
        if n is None:
            raise InvalidInputError("n", "nothing", "given (--n NEURONS), or --couplings FILE")
        density = float(checks.exact_real("rho", rho))
        return Network(checks.integer("n", n, 2), model.chain(), density, symmetric)
    for name, value, default in (
        ("n", n, None),
        ("rho", rho, "1"),
        ("symmetric", symmetric, False),
    ):
        if value != default:
            raise InvalidInputError(name, value, "absent with --couplings, whose file has it")
    from rmsim.given import given_couplings

    try:
        given = given_couplings(couplings)
    except InvalidInputError as problem:  # by the name that the user typed
        raise InvalidInputError("couplings", problem.value, problem.allowed) from None
    if model.layers != "1" and checks.layers(model.layers) != given.layers:
        raise InvalidInputError("layers", model.layers, f"{given.layers}, that of {couplings}")
    chain = replace(model, layers=str(given.layers)).chain()
    return Network(given.n, chain, given.rho, given.symmetric, given)


def check_states(
    path: Path | None,
    out: Path | None,
    couplings: Path | None = None,
    name: str = "states",
    *,
    overwrite: bool = False,
) -> None:
    """Refuse a file of states that cannot be written, or in place of results or couplings."""
    if path is None:
        return
    if path.suffix != ".npy":
        raise InvalidInputError(name, str(path), "a file ending in .npy")
    if out is not None and path.resolve() == out.resolve():
        raise InvalidInputError(name, str(path), "another file than that of --out")
    if couplings is not None and path.resolve() == couplings.resolve():
        raise InvalidInputError(name, str(path), "another file than that of --couplings")
    check_new(name, path, overwrite)


def write_states(path: Path | None, states: npt.ArrayLike) -> None:
    """Write the states that were reached as bytes +1 and -1, shape (count, layers, n)."""
    import numpy as np

    if path is None:
        return
    with replacing(path, "states") as temporary, temporary.open("wb") as file:
        np.save(file, np.asarray(states).astype(np.int8), allow_pickle=False)


def numbers(argument: str, text: str) -> tuple[float, ...]:
    """Return the numbers that `text` lists, ascending and each once.

    Values between are exact fractions before they become floats: .4:1:13 contains .45 and not
    .45000000000000001, so that a finer grid contains the points that are stored.

    Examples
    --------
    >>> numbers("jd", ".4:.6:5")
    (0.4, 0.45, 0.5, 0.55, 0.6)
    >>> numbers("jd", "1,.2:.3:2")
    (0.2, 0.3, 1.0)
    """
    return tuple(float(value) for value in _values(argument, text))


def integers(argument: str, text: str, least: int) -> tuple[int, ...]:
    """Return the integers >= `least` that `text` lists, ascending and each once.

    Examples
    --------
    >>> integers("n", "200,100:300:3", 2)
    (100, 200, 300)
    """
    values = []
    for value in _values(argument, text):
        if value.denominator != 1 or value < least:
            raise InvalidInputError(argument, text, f"integers >= {least}, {_ALLOWED[8:]}")
        values.append(int(value))
    return tuple(values)


def _values(argument: str, text: str) -> list[Fraction]:
    values: set[Fraction] = set()
    for part in text.split(","):
        values.update(
            _range(argument, text, part) if ":" in part else [_number(argument, text, part)]
        )
    if len(values) > _MOST:
        raise InvalidInputError(argument, text, f"at most {_MOST} values")
    return sorted(values)


def _range(argument: str, text: str, part: str) -> list[Fraction]:
    pieces = part.split(":")
    if len(pieces) != 3:
        raise InvalidInputError(argument, text, _ALLOWED)
    start, stop = (_number(argument, text, piece) for piece in pieces[:2])
    try:
        count = checks.integer(argument, pieces[2].strip(), 2, _MOST)
    except InvalidInputError:
        allowed = f"start:stop:count with a count from 2 to {_MOST}"
        raise InvalidInputError(argument, text, allowed) from None
    if start >= stop:
        raise InvalidInputError(argument, text, "start:stop:count with start below stop")
    return [start + (stop - start) * k / (count - 1) for k in range(count)]


def _number(argument: str, text: str, part: str) -> Fraction:
    try:
        return checks.exact_real(argument, part.strip())
    except InvalidInputError:
        raise InvalidInputError(argument, text, _ALLOWED) from None


# Commands that sweep over a grid.

ResultsOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Results directory; the same command resumes it."),
]
JobsOption = Annotated[
    str | None,
    typer.Option(
        "--jobs",
        metavar="COUNT",
        help="Processes at a time; by default one for each GPU used, else for each core.",
    ),
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
    """Options of every command that sweeps: seed, precision, device, and where results go."""

    seed: SeedOption = "0"
    dtype: DtypeOption = "float32"
    device: DeviceOption = "auto"
    out: ResultsOption = None
    jobs: JobsOption = None
    dask: DaskOption = None
    json: io.JsonOption = False

    def demand_place(self) -> None:
        """Refuse a type or a device that is not available; workers of a cluster have their own."""
        from rmsim.tensors import choose_device, choose_dtype

        choose_dtype(self.dtype)
        if self.dask is None:
            choose_device(self.device)

    def run(self, sweep: Sweep, folder: Path) -> SweepReport:
        """Run `sweep` in `folder` with these processes or workers; see :func:`run_from_command`."""
        return run_from_command(sweep, folder, self.jobs, self.dask)


class FailedPointsError(RMError):
    """Some points of a sweep could not be computed; the others are there."""


def choose_backend(jobs: str | None = None, dask: str | None = None) -> Backend:
    """Return where to compute, from the options as typed."""
    from rmsim.sweep.running import Dask, Local

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
) -> SweepReport:
    """Run `sweep` with a progress bar, and close with a summary on standard error.

    Standard output stays free for the results. After Ctrl-C it says how to continue.

    Raises
    ------
    FailedPointsError
        If points failed, after all others are done; each is named on standard error.
    StorageError
        If results cannot be written; what was finished is kept.
    """
    from rmsim.sweep.directory import Directory
    from rmsim.sweep.running import SweepProgress, run_sweep

    directory = results_directory(out)
    backend = choose_backend(jobs, dask)
    last = SweepProgress(0, len(sweep.grid), 0.0)

    def kept() -> str:
        return Directory(directory).store.kept(f"{last.done} of {counted(last.asked, 'point')}")

    with if_interrupted(kept), counting(sweep.name, len(sweep.grid), None) as report_progress:

        def follow(state: SweepProgress) -> None:
            nonlocal last
            last = state
            report_progress(state.done, share=state.share)

        try:
            report = run_sweep(sweep, directory, backend, progress=follow, note=_say)
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


def read_dataset(name: str, folder: Path | None) -> Dataset:
    """Return the data set `name` as any command reads it: with a bar if it is downloaded."""
    from rmsim.data import catalogue
    from rmtheory.runtime.progress import counting

    entry = catalogue.entry(name)
    if entry.locate(folder) is not None:
        return entry.load(folder, False, lambda share: None)
    with counting(f"download of {name}, %", 100, None) as report:
        return entry.load(folder, True, lambda share: report(int(100 * share), share=share))


def read_own_or_named(
    name: str, data: Path | None, test: str | None, label: str = "y"
) -> tuple[Dataset, Encoding | None, str | None]:
    """Return the data set, how data of the user's own are encoded, and `test` if it is a count.

    How data of the user's own are split and scaled is printed on standard error.
    """
    from rmsim.data.own_files import ENDINGS, own_dataset

    if data is None or data.suffix.lower() not in ENDINGS:
        return read_dataset(name, data), None, test
    file = test if test is not None and Path(test).suffix.lower() in ENDINGS else None
    dataset, encoding = own_dataset(data, file, label)
    held = "" if file else ", the last fifth of the file held out"
    samples = counted(len(dataset.train), "sample")
    _say(
        f"{samples} to train on, {len(dataset.test)} to test on{held}; "
        f"{dataset.classes} classes, {dataset.width} inputs, scaling: {encoding.scaling}"
    )
    return dataset, encoding, None if file else test


@dataclass(frozen=True)
class SimulationReport(io.CommandResult):
    """The answer of one command.

    Parameters
    ----------
    title : str
        What was simulated.
    document : mapping
        Name -> JSON value: parameters, results, seed, time. None stands for a number that does
        not exist, and its meaning says why.
    meaning : mapping
        Name -> what it means in a few words; the table shows these names only.
    """

    title: str
    document: Mapping[str, Any]
    meaning: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the document; a number that is not finite is a mistake of ours, not an answer."""
        try:
            return json.dumps(self.document, indent=2, ensure_ascii=False, allow_nan=False)
        except ValueError:
            raise NotConvergedError("a result is not a finite number") from None

    def print_table(self) -> None:
        """Print the quantities that have a meaning, with their errors."""
        document = self.document
        rows = [
            (name, _rounded(name, document[name], document.get(f"{name}_error")), meaning)
            for name, meaning in self.meaning.items()
            if name in document
        ]
        io.print_quantities(self.title, ("value",), rows)


def _rounded(name: str, value: object, error: object) -> str:
    """Print times and differences in errors with three digits, others as :func:`shown` does."""
    if isinstance(value, float) and name.endswith(("wall_time", "z_score")):
        return f"{value:.3g}"
    return shown(value, error)


#: Errors below are written with an exponent: nobody counts their zeros.
_TINY = 1e-4
#: Values from here on too, if their last digits are beyond the error.
_LARGE = 1e7


def shown(value: object, error: object = None) -> str:
    """Print a value with the digits that its error allows.

    Examples
    --------
    >>> shown(85.4494, 0.7312), shown(0.25), shown(None), shown(1234567)
    ('85.45 ± 0.73', '0.25', 'none', '1234567')
    >>> shown([0.02, 0.1]), shown([0.0512345678, None])
    ('0.02, 0.1', '0.0512346, none')
    >>> shown(435600.0, 13674.0), shown(1.88e12, 7.6e10), shown(True)
    ('436000 ± 14000', '1.880e+12 ± 7.6e+10', 'yes')
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        errors = error if isinstance(error, list) else [error] * len(value)
        return ", ".join(shown(one, its) for one, its in zip(value, errors, strict=True))
    if isinstance(value, float) and isinstance(error, float) and error > 0:
        last = math.floor(math.log10(error)) - 1  # exponent of the last digit that is shown
        if last > 0 and abs(value) < _LARGE:
            return f"{round(value, -last):.0f} ± {round(error, -last):.0f}"
        if last > 0:
            digits = max(0, math.floor(math.log10(abs(value))) - last)
            return f"{value:.{digits}e} ± {error:.1e}"
        decimals = -last
        width = f"{error:.{decimals}f}" if error >= _TINY else f"{error:.2g}"
        return f"{value:.{decimals}f} ± {width}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def show_rows(rows: list[dict[str, Any]], as_json: bool, columns: dict[str, str]) -> None:
    """Print `rows` as a JSON list, or as a table of the `columns` (key -> heading)."""
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    cells = [["-" if row[key] is None else shown(row[key]) for key in columns] for row in rows]
    io.print_rows(list(columns.values()), cells)
