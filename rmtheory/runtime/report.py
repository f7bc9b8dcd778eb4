"""The report of a command, shown as a table or written as JSON, and the options commands share."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError
from rmtheory.base.estimate import Estimate
from rmtheory.runtime.command import check_out
from rmtheory.runtime.files import write_text

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
        from rich.console import Console
        from rich.table import Table

        table = Table(title=self.title, title_justify="left", show_edge=False, pad_edge=False)
        table.add_column("quantity", style="bold", no_wrap=True)
        table.add_column("value", no_wrap=True)
        table.add_column("trust", no_wrap=True)
        table.add_column("meaning", ratio=1)
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
        return [item.to_json() if isinstance(item, Estimate) else item for item in value]
    return value


def refuse_lambda_of_one_layer(layers: str, **lambdas: str | None) -> None:
    """Refuse a coupling between layers that is given for one layer, which would have no effect."""
    if checks.layers(layers) > 1:
        return
    for name, value in lambdas.items():
        if value is not None:
            raise InvalidInputError(name, value, "absent for one layer, it needs --layers >= 2")


def make_chain(
    layers: str, jd: str | None, lam: str | None, lam_left: str | None, lam_right: str | None
) -> Chain:
    """Build the chain from the options as typed; refuse couplings to neighbours of one layer."""
    if jd is None:
        raise InvalidInputError("jd", "nothing", "given (--jd NUMBER)")
    refuse_lambda_of_one_layer(layers, lam=lam, lam_left=lam_left, lam_right=lam_right)
    return Chain(layers, jd, lam, lam_left=lam_left, lam_right=lam_right)
