"""What a command answers: one report, shown as a table or written as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from rmtheory.chain import Chain
from rmtheory.cli.targets import check_out
from rmtheory.errors import InvalidInputError
from rmtheory.estimate import Estimate
from rmtheory.files import write_text

#: None stands for a quantity that does not exist; its meaning says why.
Quantity = Estimate | list[Estimate] | bool | str | int | None

# Numbers are read as text, so that .1 is one tenth to any number of digits.
LayersOption = Annotated[
    str,
    typer.Option("--layers", "-L", metavar="L", help="Number of core modules: 1, 2, ... or inf."),
]
JdOption = Annotated[str | None, typer.Option("--jd", metavar="NUMBER", help="Self-coupling J_D.")]
LamOption = Annotated[
    str | None, typer.Option("--lam", metavar="NUMBER", help="Coupling to both neighbours.")
]
LamLeftOption = Annotated[
    str | None,
    typer.Option("--lam-left", metavar="NUMBER", help="Coupling to the previous layer."),
]
LamRightOption = Annotated[
    str | None, typer.Option("--lam-right", metavar="NUMBER", help="Coupling to the next layer.")
]
DigitsOption = Annotated[
    str,
    typer.Option(
        "--digits", metavar="COUNT", help="Digits wanted (decimals where the value is small)."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="FILE", help="Also write the JSON to this file.", callback=check_out
    ),
]
SizeOption = Annotated[
    str | None, typer.Option("--n", metavar="N", help="Neurons a layer, for finite N.")
]


@dataclass(frozen=True)
class Report:
    """The answer of one command.

    Parameters
    ----------
    title : str
        What was computed.
    parameters : dict
        The numbers that define it, as JSON values.
    quantities : dict
        Name -> result; every theory quantity is an Estimate.
    meaning : dict
        Name -> what it means in a few words, for the table.
    """

    title: str
    parameters: dict[str, Any]
    quantities: dict[str, Quantity]
    meaning: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the JSON document: parameters beside the quantities."""
        document: dict[str, Any] = {"parameters": self.parameters}
        document.update({name: _json(value) for name, value in self.quantities.items()})
        return json.dumps(document, indent=2, ensure_ascii=False)

    def show(self, as_json: bool, out: Path | None) -> None:
        """Print the report, and write it to `out` if given (first, so that a failure is seen)."""
        if out is not None:
            write_text(out, self.to_json() + "\n")
        if as_json:
            typer.echo(self.to_json())
        else:
            self._print_table()

    def _print_table(self) -> None:
        from rich.console import Console
        from rich.table import Table

        table = Table(title=self.title, title_justify="left", show_edge=False, pad_edge=False)
        table.add_column("quantity", style="bold", no_wrap=True)
        table.add_column("value", no_wrap=True)
        table.add_column("trust", no_wrap=True)
        table.add_column("meaning", ratio=1)
        for name, value in self.quantities.items():
            items = value if isinstance(value, list) else [value]
            for index, item in enumerate(items):
                label = name if index == 0 else ""
                trust = str(item.tier) if isinstance(item, Estimate) else ""
                shown = str(item)
                if item is None or isinstance(item, bool):
                    shown = "none" if item is None else ("yes" if item else "no")
                table.add_row(label, shown, trust, self.meaning.get(name, "") if label else "")
        console = Console(highlight=False)
        if not console.is_terminal:
            # A pipe has no width: never fold a number.
            console = Console(highlight=False, width=500)
            table.expand = False
            table.columns[-1].ratio = None
        console.print(table)


def _json(value: Quantity) -> Any:
    if isinstance(value, Estimate):
        return value.to_json()
    if isinstance(value, list):
        return [item.to_json() for item in value]
    return value


def make_chain(
    layers: str, jd: str | None, lam: str | None, lam_left: str | None, lam_right: str | None
) -> Chain:
    """Build the chain from the options as typed."""
    if jd is None:
        raise InvalidInputError("jd", "nothing", "given (--jd NUMBER)")
    return Chain(layers, jd, lam, lam_left=lam_left, lam_right=lam_right)
