"""The command line ``rmsim``; exit codes as those of ``rmtheory``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version

import typer

from rmsim.cli.baseline import baseline_app
from rmsim.cli.capacity import capacity_command, overlaps_command
from rmsim.cli.data import data_app
from rmsim.cli.landscape import landscape_command
from rmsim.cli.networks import (
    enumerate_command,
    local_entropy_command,
    relax_command,
    solve_command,
)
from rmsim.cli.thresholds import thresholds_command
from rmsim.cli.train import evaluate_command, presets_command, train_command
from rmtheory.runtime.command import run_app

app = typer.Typer(
    name="rmsim",
    help="Simulate asymmetric recurrent networks and put the theory on trial.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rmsim {version('representation-manifold')}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    _version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Print the version."
    ),
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.add_typer(baseline_app, name="baseline")
app.add_typer(data_app, name="data")
app.command("capacity")(capacity_command)
app.command("enumerate")(enumerate_command)
app.command("evaluate")(evaluate_command)
app.command("landscape")(landscape_command)
app.command("local-entropy")(local_entropy_command)
app.command("presets")(presets_command)
app.command("overlaps")(overlaps_command)
app.command("relax")(relax_command)
app.command("solve")(solve_command)
app.command("thresholds")(thresholds_command)
app.command("train")(train_command)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return run_app(app, "rmsim", arguments)


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run())
