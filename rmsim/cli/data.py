"""``rmsim data``: list the data sets, fetch one, check those that are here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmsim.cli.options import DataOption, SimulationReport, read_dataset, show_rows
from rmtheory.base.errors import InvalidInputError
from rmtheory.runtime import report as io

if TYPE_CHECKING:
    pass

data_app = typer.Typer(
    help="Data sets: list them, fetch one, check those that are here.",
    invoke_without_command=True,
    rich_markup_mode=None,
)


@data_app.callback()
def _data(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="As in 'rmsim data list'.")]
NamesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="All that are here by default.")
]

_MEANING = {
    "train": "samples to train on",
    "test": "samples to test on",
    "width": "numbers in an input",
    "classes": "number of classes",
    "source": "where it was read from",
    "licence": "who made it, and what is allowed",
    "sha256": "checksum of all inputs and labels",
}


def _demand_folder(folder: Path | None) -> None:
    if folder is not None and not folder.is_dir():
        raise InvalidInputError("data", str(folder), "a folder that exists")


@data_app.command("list")
def list_command(data: DataOption = None, json: io.JsonOption = False) -> None:
    """List the data sets, and where each is on this machine.

    Example: rmsim data list --json
    """
    from rmsim.data.catalogue import CATALOGUE

    _demand_folder(data)
    rows: list[dict[str, Any]] = []
    for entry in CATALOGUE.values():
        place = entry.locate(data)
        rows.append(
            {
                "name": entry.name,
                "what": entry.what,
                "origin": entry.origin,
                "path": None if place is None else str(place),
                "licence": entry.licence,
            }
        )
    show_rows(
        rows, json, {"name": "name", "what": "what", "origin": "comes from", "path": "is here"}
    )


@data_app.command("fetch")
def fetch_command(
    name: NameArgument,
    data: DataOption = None,
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Make sure that a data set is here, downloading it if need be, and check it.

    Example: rmsim data fetch mnist
    """
    summary = read_dataset(name, data).summary()
    SimulationReport(f"Data set {name}", summary, _MEANING).show(json, out)


@data_app.command("check")
def check_command(
    names: NamesArgument = None, data: DataOption = None, json: io.JsonOption = False
) -> None:
    """Read the data sets that are here and compare their checksums; exit code 1 if one is damaged.

    Example: rmsim data check entangled-mnist --json
    """
    from rmsim.data import catalogue
    from rmtheory.base.errors import RMError

    _demand_folder(data)
    rows: list[dict[str, Any]] = []
    for entry in [catalogue.entry(name) for name in names or catalogue.CATALOGUE]:
        row: dict[str, Any] = {"name": entry.name, "status": "ok", "sha256": None, "problem": None}
        if entry.locate(data) is None and not names:
            row["status"] = "not here"
        else:
            try:
                row["sha256"] = entry.load(data, False, lambda share: None).checksum
            except RMError as problem:
                row |= {"status": "damaged or missing", "problem": str(problem)}
        rows.append(row)
    shown = {"name": "name", "status": "status", "sha256": "sha256 of the numbers"}
    if any(row["problem"] for row in rows):
        shown["problem"] = "problem"
    show_rows(rows, json, shown)
    if any(row["problem"] for row in rows):
        raise typer.Exit(1)
