"""``rmtheory derive``: the formulas, derived by sympy from the definition of the count."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rmtheory import checks
from rmtheory.cli import output as io
from rmtheory.cli.targets import check_out
from rmtheory.files import write_text


def derive(
    topic: Annotated[str, typer.Argument(help="annealed, rs, stability or local-entropy.")],
    layers: io.LayersOption = "1",
    format: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="latex, text or python.")
    ] = "text",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Write to this file instead.", callback=check_out
        ),
    ] = None,
) -> None:
    """Derive the formulas symbolically, from the definition of the count, and print every step.

    The python format is a module without dependencies that evaluates the result.

    Example: rmtheory derive stability --layers 2 --format latex
    """
    from rmtheory import symbolic

    text = symbolic.render(symbolic.derive(topic, checks.layers(layers)), format)
    if out is None:
        typer.echo(text.rstrip("\n"))
    else:
        write_text(out, text.rstrip("\n") + "\n")
