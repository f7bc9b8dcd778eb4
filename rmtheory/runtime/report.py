"""The report of a command, shown as a table or written as JSON, and the options commands share."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError
from rmtheory.base.estimate import Estimate
from rmtheory.runtime.command import check_out
from rmtheory.runtime.files import write_text

if TYPE_CHECKING:  # only a table needs it
    from rich.table import Table

#: None stands for a quantity that does not exist; its meaning says why.
Quantity = Estimate | list[Estimate] | list[int] | bool | str | int | None

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
DataOption = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="netCDF file to write.")
]
PictureOption = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Picture to draw (png, pdf, svg).")
]
SizeOption = Annotated[
    str | None, typer.Option("--n", metavar="N", help="Neurons per layer, for finite N.")
]


@dataclass(frozen=True)
class Report:
    """The result of one command.

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
    json_only : tuple of str
        Names of long lists, which the table leaves out.
    """

    title: str
    parameters: dict[str, Any]
    quantities: dict[str, Quantity]
    meaning: dict[str, str] = field(default_factory=dict)
    json_only: tuple[str, ...] = ()

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
        table = quantity_table(self.title, "value", "trust")
        for name, value in self.quantities.items():
            if name in self.json_only:
                continue
            items = value if isinstance(value, list) else [value]
            for index, item in enumerate(items):
                label = name if index == 0 else ""
                trust = str(item.tier) if isinstance(item, Estimate) else ""
                shown = str(item)
                if item is None or isinstance(item, bool):
                    shown = "none" if item is None else ("yes" if item else "no")
                table.add_row(label, shown, trust, self.meaning.get(name, "") if label else "")
        print_table(table)


def quantity_table(title: str, *columns: str) -> Table:
    """Return a table of quantities: name, `columns` that are never folded, and the meaning."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("quantity", style="bold", no_wrap=True)
    for name in columns:
        table.add_column(name, no_wrap=True)
    table.add_column("meaning", ratio=1)
    return table


def print_table(table: Table) -> None:
    """Print `table` as wide as the terminal; a pipe has no width, and nothing is folded there."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=500)
        for column in table.columns:
            column.ratio = None
    console.print(table)


def _json(value: Quantity) -> Any:
    if isinstance(value, Estimate):
        return value.to_json()
    if isinstance(value, list):
        return [item.to_json() if isinstance(item, Estimate) else item for item in value]
    return value


def refuse_lambda_of_one_layer(layers: str, **lambdas: str | None) -> None:
    """Refuse a coupling between layers that is given for one layer, which would have no effect."""
    if checks.layers(layers) > 1:
        return
    for name, value in lambdas.items():
        if value is not None:
            raise InvalidInputError(name, value, "absent for one layer, it needs --layers >= 2")


@dataclass(frozen=True)
class ChainOptions:
    """The options that define a chain, as typed (:func:`rmtheory.runtime.command.bundled`)."""

    layers: LayersOption = "1"
    jd: JdOption = None
    lam: LamOption = None
    lam_left: LamLeftOption = None
    lam_right: LamRightOption = None

    def chain(self) -> Chain:
        """Return the chain; refuse couplings to neighbours of one layer."""
        if self.jd is None:
            raise InvalidInputError("jd", "nothing", "given (--jd NUMBER)")
        lambdas = {"lam": self.lam, "lam_left": self.lam_left, "lam_right": self.lam_right}
        refuse_lambda_of_one_layer(self.layers, **lambdas)
        return Chain(self.layers, self.jd, **lambdas)
