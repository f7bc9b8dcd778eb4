"""Run a typer application so that errors end in one line and an exit code, and check its files.

Bad input gives 2, a result that did not converge or cannot be trusted gives 1. An interruption
gives 130, and a signal that ends the program 128 plus its number (143 for SIGTERM), both after the
same cleaning up as for Ctrl-C: temporary files are removed, processes ended.

Files that cannot be written are refused before the work begins.

typer reads the options of a command from its signature. :func:`bundled` spells a dataclass of
options out in that signature, so that commands which share a dozen options name them once.
"""

from __future__ import annotations

import functools
import inspect
import io
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import FrameType
from typing import Any, get_type_hints

import typer

from rmtheory.base.errors import InvalidInputError, RMError
from rmtheory.runtime.files import SEAL, describe, linked
from rmtheory.runtime.signals import handled_by, insisting

_INTERRUPTED = 130

#: Modules that an extra of the package installs.
_EXTRAS = {
    "torch": "sim",
    "numba": "sim",
    "flint": "rigor",
    "dask": "cluster",
    "distributed": "cluster",
    "pyarrow": "parquet",
    "sklearn": "sklearn",
}


class Ended(KeyboardInterrupt):
    """A signal ends the program; code that handles Ctrl-C handles it too."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number, self.code = number, 128 + number


class Stopped(BaseException):
    """A run was interrupted; the text says what is kept and how to resume.

    Not a KeyboardInterrupt, of which typer would keep only the exit code.
    """

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.code = code


@contextmanager
def if_interrupted(sentence: Callable[[], str]) -> Iterator[None]:
    """Let an interruption of the block end the command with `sentence`, made when it happens."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise Stopped(sentence(), getattr(stop, "code", _INTERRUPTED)) from stop


def application(name: str, text: str) -> typer.Typer:
    """Return a command line that shows its help without a command, and has ``--version``."""
    app = typer.Typer(
        name=name,
        help=text,
        invoke_without_command=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )

    def show_version(wanted: bool) -> None:
        if wanted:
            from importlib.metadata import version  # --version alone needs it

            typer.echo(f"{name} {version('representation-manifold')}")
            raise typer.Exit

    @app.callback()
    def options(
        context: typer.Context,
        _version: bool = typer.Option(
            False, "--version", callback=show_version, is_eager=True, help="Print the version."
        ),
    ) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    return app


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


def run_app(app: typer.Typer, name: str, arguments: Sequence[str] | None = None) -> int:
    """Run `app` under the program name `name` and return its exit code."""
    _print_anything()
    with insisting() as note:
        return _run(app, name, arguments, note)


#: The help of typer is never narrower than this, whatever the terminal.
_LEAST_WIDTH = 52


def _narrow() -> dict[str, int]:
    """Return the width of the help on a terminal that is narrower than typer takes any for."""
    columns = shutil.get_terminal_size().columns
    return {"terminal_width": columns} if columns < _LEAST_WIDTH else {}


def _run(
    app: typer.Typer, name: str, arguments: Sequence[str] | None, note: Callable[[], None]
) -> int:
    ended: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        note()
        ended.append(128 + number)
        raise Ended(number)

    try:
        with handled_by(end):
            code = app(
                args=list(sys.argv[1:] if arguments is None else arguments),
                prog_name=name,
                standalone_mode=False,
                **_narrow(),
            )
    except Stopped as stop:
        return _say(name, f"interrupted: {stop}", stop.code)
    except typer.Exit as stop:
        return stop.exit_code
    except (typer.Abort, KeyboardInterrupt):
        code = _INTERRUPTED
    except typer.TyperException as problem:
        formatted = getattr(problem, "format_message", None)
        return fail(name, formatted() if formatted else str(problem), 2)
    except InvalidInputError as problem:
        return fail(name, str(problem), 2)
    except RMError as problem:
        return fail(name, str(problem), 1)
    except ModuleNotFoundError as problem:
        module = (problem.name or "").partition(".")[0]
        if module not in _EXTRAS:
            raise
        install = f"pip install 'representation-manifold[{_EXTRAS[module]}]'"
        return fail(name, f"this command needs {module}, which is not installed: {install}", 1)
    except OSError as problem:  # a full disk, a closed pipe, a file of somebody else
        return fail(name, describe(problem), 1)
    if code == _INTERRUPTED:  # typer turns a KeyboardInterrupt into this
        return _say(name, "interrupted", ended[0] if ended else code)
    return code if isinstance(code, int) else 0


def _print_anything() -> None:
    """Let a terminal without a character, such as ± in plain ASCII, show a question mark."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def fail(name: str, message: str, code: int) -> int:
    """Print `message` as one line on standard error and return `code`."""
    return _say(name, f"error: {message}", code)


def _say(name: str, message: str, code: int) -> int:
    print(f"{name}: {' '.join(message.split())}", file=sys.stderr)
    return code


# Files to be written.

_PICTURES = (".png", ".pdf", ".svg")


def check_picture(path: Path | None, out: Path) -> None:
    """Refuse a picture that cannot be drawn or written, or in place of the data."""
    if path is None:
        return
    if linked(path, "plot").resolve() == linked(out).resolve():
        raise InvalidInputError("plot", str(path), "another file than that of --out")
    check_folder("plot", path)
    if path.suffix.lower() not in _PICTURES:
        raise InvalidInputError("plot", str(path), f"a file ending in {', '.join(_PICTURES)}")


def check_folder(argument: str, path: Path) -> None:
    """Refuse a target that cannot be written before the work begins."""
    linked(path, argument)
    if not path.parent.is_dir():
        raise InvalidInputError(
            argument, str(path), "a file that can be written, in a folder that exists"
        )
    if path.is_dir():
        raise InvalidInputError(argument, str(path), "a file that can be written, not a folder")
    if path.exists() and not path.is_file():
        raise InvalidInputError(argument, str(path), "a regular file, not a device or a pipe")
    if not os.access(path.parent, os.W_OK):
        raise InvalidInputError(
            argument, str(path), "a file that can be written, in a folder where you may write"
        )


def check_new(argument: str, path: Path, overwrite: bool) -> None:
    """Refuse a target that cannot be written, or that exists, unless it may be replaced.

    States and labels of ours look like those of anybody: only the user knows which may go.
    """
    check_folder(argument, path)
    if path.exists() and not overwrite:
        allowed = "a new file: it exists, and --overwrite replaces it"
        raise InvalidInputError(argument, str(path), allowed)


def check_earlier(argument: str, path: Path, marks: Sequence[bytes], what: str = "table") -> None:
    """Refuse a target that cannot be written, or that has none of the `marks` of our files.

    Parameters
    ----------
    argument : str
        The option by which it was given.
    path : Path
        The file.
    marks : sequence of bytes
        One of them is in the first or the last 64 kB of any earlier one.
    what : str
        What such a file is called.
    """
    check_folder(argument, path)
    if not (path.is_file() and os.access(path, os.R_OK)):
        return
    with path.open("rb") as file:
        ends = file.read(_ENDS)
        file.seek(max(path.stat().st_size - _ENDS, 0))
        ends += file.read()
    if ends and not any(mark in ends for mark in marks):
        allowed = f"a new file, or an earlier {what} of ours, which is replaced"
        raise InvalidInputError(argument, str(path), allowed)


#: Bytes at the start and at the end of a file in which it is recognised.
_ENDS = 65_536


def check_data(path: Path) -> None:
    """Refuse a netCDF file of ``--out`` that cannot be written, or one that is not ours."""
    if path.suffix.lower() != ".nc":
        raise InvalidInputError("out", str(path), "a file ending in .nc")
    check_earlier("out", path, (SEAL, b"parameters_hash"), "result")


def check_out(path: Path | None) -> Path | None:
    """Refuse the file of the option ``--out`` if it cannot be written."""
    if path is not None:
        check_folder("out", path)
    return path


def check_json_out(path: Path | None) -> Path | None:
    """Refuse a file of ``--out`` that cannot be written, or that holds something else than JSON.

    A result replaces an earlier one; couplings, states or samples that somebody named by mistake
    would be lost.
    """
    check_out(path)
    if path is not None and path.is_file() and os.access(path, os.R_OK):
        with path.open("rb") as file:
            start = file.read(64).lstrip()
        if start and not start.startswith(b"{"):
            allowed = "a new file, or one with an earlier result in JSON"
            raise InvalidInputError("out", str(path), f"{allowed}, which is replaced")
    return path
