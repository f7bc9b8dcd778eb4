"""Figures that could not be made are remembered beside those that could, for the report."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from rmtheory.files import write_text

#: Name of the file.
FILE = ".failures.json"


@dataclass(frozen=True)
class Failure:
    """Why a figure could not be made: scale, message and, if it was unexpected, the traceback."""

    scale: str
    message: str
    traceback: str = ""


def failures(folder: Path) -> dict[str, Failure]:
    """Return the failures that are remembered in `folder`, by the name of the figure."""
    try:
        stored = json.loads((folder / FILE).read_text("utf-8"))
        return {name: Failure(**entry) for name, entry in stored.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def remember(folder: Path, name: str, failure: Failure | None) -> None:
    """Remember that figure `name` failed, or with None that it did not."""
    known = failures(folder)
    changed = {key: value for key, value in known.items() if key != name}
    if failure is not None:
        changed[name] = failure
    if changed == known:
        return
    if changed:
        write_text(folder / FILE, json.dumps({k: asdict(v) for k, v in changed.items()}, indent=1))
    else:
        (folder / FILE).unlink(missing_ok=True)
