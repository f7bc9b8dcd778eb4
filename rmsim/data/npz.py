"""Read arrays from npz files; nothing is ever unpickled."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rmtheory.errors import UnreadableDataError


def read_npz(
    path: str | os.PathLike[str], names: Sequence[str] | None = None
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays `names` of the file at `path`; all of them by default.

    Raises
    ------
    UnreadableDataError
        If the file is missing, damaged, holds pickled objects or lacks one of the arrays.
    """
    if Path(path).is_file() and not zipfile.is_zipfile(path):
        raise UnreadableDataError(f"{path} is no npz archive, or its end is missing")
    try:
        with np.load(path, allow_pickle=False) as file:
            names = file.files if names is None else names
            if not set(names) <= set(file.files):
                there = ", ".join(file.files) or "none"
                raise UnreadableDataError(
                    f"{path} must hold the arrays {', '.join(names)}; found {there}"
                )
            return {name: file[name] for name in names}
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error) as problem:
        strerror = problem.strerror if isinstance(problem, OSError) else None
        reason = strerror or " ".join(str(problem).split())
        raise UnreadableDataError(f"{path} cannot be read: {reason}") from None
