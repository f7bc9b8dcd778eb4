"""The command line ``rmtheory``.

Bad input ends in one line on standard error and exit code 2; a solver without an answer it can
defend ends in one line and exit code 1.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rmtheory.cli.counting import annealed, convergence_bound, derive, second_moment, stability
from rmtheory.cli.local_entropies import (
    critical,
    curve,
    explore,
    local_entropy,
    phase_diagram,
    ystar,
)
from rmtheory.cli.mean_field import mean_field_command
from rmtheory.runtime.command import application, run_app

app = application(
    "rmtheory",
    "Entropies, stability and phase diagrams of the fixed points of asymmetric networks.",
)
app.command()(annealed)
app.command("second-moment")(second_moment)
app.command()(stability)
app.command("convergence-bound")(convergence_bound)
app.command("local-entropy")(local_entropy)
app.command()(ystar)
app.command()(curve)
app.command()(critical)
app.command("phase-diagram")(phase_diagram)
app.command("mean-field")(mean_field_command)
app.command()(derive)
app.command()(explore)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return run_app(app, "rmtheory", arguments)


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run())
