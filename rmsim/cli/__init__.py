"""The command line ``rmsim``; exit codes as those of ``rmtheory``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rmsim.cli.baseline import baseline_app
from rmsim.cli.machine import data_app, devices_command
from rmsim.cli.networks import (
    bp_command,
    check_command,
    enumerate_command,
    local_entropy_command,
    neighbours_command,
    relax_command,
    solve_command,
)
from rmsim.cli.studies import (
    capacity_command,
    landscape_command,
    overlaps_command,
    sweep_command,
    thresholds_command,
)
from rmsim.cli.train import (
    evaluate_command,
    predict_command,
    presets_command,
    train_command,
)
from rmtheory.runtime.command import application, run_app

app = application("rmsim", "Simulate asymmetric recurrent networks; compare them with the theory.")


app.add_typer(baseline_app, name="baseline")
app.add_typer(data_app, name="data")
app.command("bp")(bp_command)
app.command("capacity")(capacity_command)
app.command("check")(check_command)
app.command("devices")(devices_command)
app.command("enumerate")(enumerate_command)
app.command("evaluate")(evaluate_command)
app.command("landscape")(landscape_command)
app.command("local-entropy")(local_entropy_command)
app.command("neighbours")(neighbours_command)
app.command("predict")(predict_command)
app.command("presets")(presets_command)
app.command("overlaps")(overlaps_command)
app.command("relax")(relax_command)
app.command("solve")(solve_command)
app.command("sweep")(sweep_command)
app.command("thresholds")(thresholds_command)
app.command("train")(train_command)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return run_app(app, "rmsim", arguments)


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run())
