"""Run a typer application so that errors end in one line and an exit code.

Bad input gives 2, an answer that could not be defended gives 1, an interruption 130.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from rmtheory.errors import InvalidInputError, RMError
from rmtheory.files import describe


def run_app(app: typer.Typer, name: str, arguments: Sequence[str] | None = None) -> int:
    """Run `app` under the program name `name` and return its exit code."""
    try:
        code = app(
            args=list(sys.argv[1:] if arguments is None else arguments),
            prog_name=name,
            standalone_mode=False,
        )
    except typer.Exit as stop:
        return stop.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return fail(name, "interrupted", 130)
    except typer.TyperException as problem:
        formatted = getattr(problem, "format_message", None)
        return fail(name, formatted() if formatted else str(problem), 2)
    except InvalidInputError as problem:
        return fail(name, str(problem), 2)
    except RMError as problem:
        return fail(name, str(problem), 1)
    except OSError as problem:  # a full disk, a closed pipe, a file of somebody else
        return fail(name, describe(problem), 1)
    return code if isinstance(code, int) else 0


def fail(name: str, message: str, code: int) -> int:
    """Print `message` as one line on standard error and return `code`."""
    print(f"{name}: error: {' '.join(message.split())}", file=sys.stderr)
    return code
