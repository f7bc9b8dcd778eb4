"""Options of several commands: single ones, and bundles that a command takes as one argument.

typer reads the options of a command from its signature. :func:`bundled` spells a dataclass of
options out in that signature, so that commands which share a dozen options name them once.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import typer


def option(name: str, metavar: str, text: str) -> Any:
    """Return an option with its help."""
    return typer.Option(name, metavar=metavar, help=text)


SeedOption = Annotated[str, option("--seed", "SEED", "Seed of all random numbers.")]
DeviceOption = Annotated[str, option("--device", "NAME", "auto, cpu, cuda or cuda:0.")]
DtypeOption = Annotated[str, option("--dtype", "TYPE", "float32 or float64.")]
DrOption = Annotated[
    str | None, option("--dr", "SPEED", "Growth of the reinforcement (rbp), .01 by default.")
]
R0Option = Annotated[
    str | None, option("--r0", "NUMBER", "First reinforcement (rbp), 0 by default.")
]
EtaOption = Annotated[
    str | None, option("--eta", "STEP", "Size of the steps (likelihood), .3 by default.")
]


def bundled(command: Callable[..., None]) -> Callable[..., None]:
    """Return `command` as typer wants it: the fields of its dataclasses are options like others.

    Parameters
    ----------
    command : callable
        A command; arguments whose type is a dataclass are keywords without a default, and their
        fields have types and defaults as options of a command have.
    """
    hints = get_type_hints(command, include_extras=True)
    given = inspect.signature(command).parameters.values()
    bundles = {one.name: hints[one.name] for one in given if is_dataclass(hints[one.name])}
    names = {name: [field.name for field in fields(kind)] for name, kind in bundles.items()}

    @functools.wraps(command)
    def spelt_out(**values: Any) -> None:
        for name, kind in bundles.items():
            values[name] = kind(**{field: values.pop(field) for field in names[name]})
        command(**values)

    parameters = []
    for one in given:
        if one.name not in bundles:
            own = one.replace(annotation=hints[one.name], kind=inspect.Parameter.KEYWORD_ONLY)
            parameters.append(own)
            continue
        inner = get_type_hints(bundles[one.name], include_extras=True)
        parameters += [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=inner[field.name],
            )
            for field in fields(bundles[one.name])
        ]
    spelt_out.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    spelt_out.__annotations__ = {one.name: one.annotation for one in parameters}
    return spelt_out
