"""What a simulation answers: plain numbers, each measured one with NAME_error beside it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from rmtheory.base.errors import NotConvergedError
from rmtheory.runtime.files import write_text


@dataclass(frozen=True)
class SimulationReport:
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

    def show(self, as_json: bool, out: Path | None) -> None:
        """Print the report, and write it to `out` if given (first, so that a failure is seen)."""
        text = self.to_json()
        if out is not None:
            write_text(out, text + "\n")
        if as_json:
            typer.echo(text)
        else:
            self._print_table()

    def _print_table(self) -> None:
        from rich.console import Console
        from rich.table import Table

        table = Table(title=self.title, title_justify="left", show_edge=False, pad_edge=False)
        table.add_column("quantity", style="bold", no_wrap=True)
        table.add_column("value", no_wrap=True)
        table.add_column("meaning", ratio=1)
        for name, meaning in self.meaning.items():
            if name in self.document:
                error = self.document.get(f"{name}_error")
                table.add_row(name, shown(self.document[name], error), meaning)
        console = Console(highlight=False)
        if not console.is_terminal:
            # A pipe has no width: never fold a number.
            console = Console(highlight=False, width=500)
            table.columns[-1].ratio = None
        console.print(table)


def shown(value: object, error: object = None) -> str:
    """Print a value with the digits that its error allows.

    Examples
    --------
    >>> shown(85.4494, 0.7312), shown(0.25), shown(None), shown(1234567)
    ('85.45 ± 0.73', '0.25', 'none', '1234567')
    >>> shown([0.02, 0.1]), shown([0.0512345678, None])
    ('0.02, 0.1', '0.0512346, none')
    """
    if value is None:
        return "none"
    if isinstance(value, list):
        errors = error if isinstance(error, list) else [error] * len(value)
        return ", ".join(shown(one, its) for one, its in zip(value, errors, strict=True))
    if isinstance(value, float) and isinstance(error, float) and error > 0:
        decimals = max(0, 1 - math.floor(math.log10(error)))
        return f"{value:.{decimals}f} ± {error:.{decimals}f}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
