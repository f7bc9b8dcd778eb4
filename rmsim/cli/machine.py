"""What is on this machine: data sets (``rmsim data``) and devices (``rmsim devices``)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rmsim.cli.options import DataOption, SimulationReport, read_dataset, show_rows
from rmtheory.base.errors import InvalidInputError
from rmtheory.runtime import report as io

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


# Devices.


def devices_command(json: io.JsonOption = False, out: io.OutOption = None) -> None:
    """List the devices, measure them in a few seconds, and say from which work on a GPU wins.

    Other programs that run meanwhile make a device look slower than it is.

    Example: rmsim devices --json
    """
    import math

    import torch

    from rmsim.tensors import (
        CROSSOVER,
        CROSSOVER_VARIABLE,
        choose_device,
        crossover,
        crossover_between,
        devices_here,
        measure_speed,
    )

    threads, used = torch.get_num_threads(), crossover()
    speeds = [measure_speed(device) for device in devices_here()]
    document: dict[str, Any] = {
        "devices": [
            {
                "device": one.device,
                "name": one.name,
                "memory_bytes": one.memory,
                "launch_microseconds": 1e6 * one.launch,
                "wait_microseconds": 1e6 * one.wait,
                "multiplications_per_second": one.rate,
            }
            for one in speeds
        ],
        "threads": threads,
        "auto": str(choose_device("auto")),
        "crossover": used,
        "crossover_source": "estimated" if used == CROSSOVER else CROSSOVER_VARIABLE,
    }
    meaning: dict[str, str] = {}
    for one in speeds:
        kind = "cpu" if one.device == "cpu" else one.device.replace(":", "_")
        document |= {
            f"{kind}_launch": 1e6 * one.launch,
            f"{kind}_wait": 1e6 * one.wait,
            f"{kind}_rate": one.rate / 1e9,
        }
        meaning |= {
            f"{kind}_launch": f"microseconds for a small operation ({one.name})",
            f"{kind}_wait": "microseconds for a number that the host reads",
            f"{kind}_rate": "10^9 multiplications in a second, in products of matrices",
        }
    for gpu in speeds[1:]:
        kind = gpu.device.replace(":", "_")
        measured = crossover_between(speeds[0], gpu, threads)
        document[f"{kind}_crossover"] = measured if math.isfinite(measured) else None
        meaning[f"{kind}_crossover"] = (
            f"measured: set {CROSSOVER_VARIABLE} to it (none: the CPU is faster)"
        )
    meaning["crossover"] = (
        "multiplications of an operation, per thread, from which 'auto' takes a GPU"
    )
    meaning["crossover_source"] = "where that number comes from"
    title = f"Devices of this machine, {threads} thread{'s' if threads > 1 else ''}"
    SimulationReport(title, document, meaning).show(json, out)
