"""``python -m figures``: which figures, at what scale, into which folder."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from rmtheory.cli.run import fail, run_app
from rmtheory.errors import InvalidInputError, RMError

NAME = "figures"

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.command()
def figures(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Figures by name; all; or list.")
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
) -> int:
    """Compute, store and plot figures; stored data are plotted again without computing.

    Example: python -m figures annealed --scale paper --out /tmp/figures
    """
    from figures.registry import FIGURES, parse_scale, select

    if names == ["list"]:
        width = max(map(len, FIGURES))
        for figure in FIGURES.values():
            typer.echo(f"{figure.name:{width}}  {figure.title}")
        return 0
    return _make_all([figure.name for figure in select(names)], parse_scale(scale), out, recompute)


def _make_all(names: Sequence[str], scale: str, out: Path, recompute: bool) -> int:
    """Make the figures one by one; one that fails does not stop the others."""
    from figures.display import display
    from figures.make import make
    from figures.registry import FIGURES, parse_scale

    folder = _writable(out)
    failed = 0
    for name in names:
        try:
            with display(name) as progress:
                made = make(
                    FIGURES[name], parse_scale(scale), folder, progress, recompute=recompute
                )
        except Exception as problem:  # whatever it is, the other figures are still wanted
            failed += 1
            if not isinstance(problem, RMError):
                traceback.print_exc()
            fail(NAME, f"{name} failed: {problem or type(problem).__name__}", 1)
            continue
        if made.note:
            print(f"{NAME}: {made.note}", file=sys.stderr)
        files = ", ".join(path.name for path in made.files)
        typer.echo(f"{name}: {made.data} data, {made.seconds:.1f} s, {folder}: {files}")
    return 1 if failed else 0


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
