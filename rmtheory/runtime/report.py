"""The report of a command, shown as a table or written as JSON, and the options commands share."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError
from rmtheory.base.estimate import Estimate
from rmtheory.runtime.command import check_json_out
from rmtheory.runtime.files import write_text

if TYPE_CHECKING:  # only a table needs it
    from rich.console import Console
    from rich.table import Table

#: None stands for a quantity that does not exist; its meaning says why.
Quantity = Estimate | list[Estimate] | list[int] | bool | str | int | None

# Numbers are read as text, so that .1 is one tenth to any number of digits.
LayersOption = Annotated[
    str,
    typer.Option("--layers", "-L", metavar="L", help="Number of core modules: 1, 2, ... or inf."),
]
FiniteLayersOption = Annotated[
    str, typer.Option("--layers", "-L", metavar="L", help="Number of core modules: 1, 2, ...")
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
        "--out", metavar="FILE", help="Also write the JSON to this file.", callback=check_json_out
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


class CommandResult(ABC):
    """What a command prints, as a table or as JSON, and writes to a file."""

    @abstractmethod
    def to_json(self) -> str:
        """Return the JSON document."""

    @abstractmethod
    def print_table(self) -> None:
        """Print the table."""

    def show(self, as_json: bool, out: Path | None) -> None:
        """Print the result, and write it to `out` if given (first, so that a failure is seen)."""
        text = self.to_json()
        if out is not None:
            write_text(out, text + "\n")
        if as_json:
            typer.echo(text)
        else:
            self.print_table()


@dataclass(frozen=True)
class Report(CommandResult):
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

    def print_table(self) -> None:
        """Print every quantity with its error, its tier and what it means."""
        rows = []
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
                rows.append((label, shown, trust, self.meaning.get(name, "") if label else ""))
        print_quantities(self.title, ("value", "trust"), rows)


#: A column of meanings that has less room than this, and cannot have its longest line, goes below
#: the numbers.
_ROOM = 40

#: Numbers stand beside their names where this is left for them; what is longer is folded there.
_LEAST = 24


def print_quantities(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print quantities with their meanings: beside the numbers if there is room, else below them.

    Parameters
    ----------
    title : str
        What was computed.
    columns : sequence of str
        Headings of the numbers.
    rows : sequence of sequences of str
        Name, one text for each of the columns, meaning.
    """
    table = _table(("quantity", *columns, "meaning"), rows, title)
    table.columns[0].style = "bold"
    console = _console()
    numbers = [
        max(map(len, texts))
        for texts in zip(("quantity", *columns), *(row[:-1] for row in rows), strict=True)
    ]
    left = console.width - sum(number + 3 for number in numbers)
    if left < min(_ROOM, max((len(row[-1]) for row in rows), default=0)):
        _print_below(console, title, rows)
        return
    table.columns[-1].no_wrap = False
    console.print(table)


def _print_below(console: Console, title: str, rows: Sequence[Sequence[str]]) -> None:
    """Print the name and its numbers on a line, what they mean below; fold between words."""
    from rich.padding import Padding
    from rich.text import Text

    console.print(Text(title, style="italic"))
    wide = max((len(row[0]) for row in rows), default=0)
    longest = max((len(row[1]) for row in rows), default=0)
    beside = wide + 2 + min(longest, max(_LEAST, console.width // 2)) <= console.width
    for name, first, *others, meaning in rows:
        texts = "  ".join(text for text in (first, *others) if text)
        if beside:
            room = console.width - wide - 2
            folded = Text(_between_values(texts, room)).wrap(console, room)
            for index, line in enumerate(folded):
                head = Text((name if index == 0 else "").ljust(wide + 2), style="bold")
                console.print(head + line)
        else:
            if name:
                console.print(Text(name, style="bold"))
            whole = _between_values(texts, console.width - 2)
            console.print(Padding(Text(whole), (0, 0, 0, 2)))
        if meaning:
            console.print(Padding(Text(meaning, style="dim"), (0, 0, 0, 4)))


def _between_values(text: str, width: int) -> str:
    """Fold a list of numbers after its commas, so that an error stays with its number.

    >>> print(_between_values("0.153 ± 2e-08, 0.242 ± 7e-07, 0.352 ± 2e-07", 32))
    0.153 ± 2e-08, 0.242 ± 7e-07,
    0.352 ± 2e-07
    """
    if " ± " not in text:
        return text
    first, *others = text.split(", ")
    lines = [first]
    for value in others:
        if len(lines[-1]) + len(value) + 3 <= width:  # a comma before it, and one that may follow
            lines[-1] += f", {value}"
        else:
            lines.append(value)
    return ",\n".join(lines)


def print_rows(
    columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None
) -> None:
    """Print a table; where it is wider than the terminal, its rows one after another as a list.

    Parameters
    ----------
    columns : sequence of str
        Headings.
    rows : sequence of sequences of str
        A text for each of the columns.
    title : str, optional
        What it is, above the table.
    """
    from rich.measure import Measurement
    from rich.text import Text

    console = _console()
    table = _table(columns, rows, title)
    if (
        Measurement.get(console, console.options.update(max_width=10_000), table).maximum
        <= console.width
    ):
        console.print(table)
        return
    if title:
        console.print(Text(title, style="italic"))
    wide = min(max(map(len, columns), default=0), console.width // 2)
    for index, row in enumerate(rows):
        if index:
            console.print()
        for heading, text in zip(columns, row, strict=True):
            folded = Text(text).wrap(console, max(console.width - wide - 2, 1))
            heads = Text(heading, style="bold").wrap(console, wide)
            for k in range(max(len(folded), len(heads))):
                head = heads[k] if k < len(heads) else Text()
                head.align("left", wide + 2)
                console.print(head + folded[k] if k < len(folded) else head)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
    for name in columns:
        table.add_column(name, no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _console() -> Console:
    """Return standard output as wide as the terminal; a pipe has no width: nothing is folded."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=500)


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


@dataclass(frozen=True)
class FiniteChainOptions(ChainOptions):
    """The same for networks, which have a finite number of layers."""

    layers: FiniteLayersOption = "1"
