"""Where files of data sets are looked for: a folder given, RMSIM_DATA, the system, the cache."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

#: A folder given by the user, None if none was.
Folder = str | os.PathLike[str] | None

#: Variable of the environment that names a folder of data sets.
VARIABLE = "RMSIM_DATA"


def cache_folder() -> Path:
    """Return the folder of downloaded data: XDG_CACHE_HOME/rmsim, by default ~/.cache/rmsim."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # A relative path is to be ignored, says the XDG specification.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "rmsim"


def roots(folder: Folder, system: Sequence[Path] = ()) -> list[Path]:
    """Return the folders to look in: `folder` and no other if given, else all, best first."""
    if folder is not None:
        return [Path(folder)]
    variable = os.environ.get(VARIABLE)
    return [*([Path(variable)] if variable else []), *system, cache_folder()]


def looked_in(folder: Folder, system: Sequence[Path] = ()) -> str:
    """Say where `roots` looks, for the user who was told that nothing is there."""
    unset = "" if folder is not None or os.environ.get(VARIABLE) else f", {VARIABLE} is not set"
    return "looked in " + ", ".join(map(str, roots(folder, system))) + unset
