"""The measurements of a run as JSON lines, one an epoch, each on the disk as soon as it is made.

A run that is killed may leave half a line at the end, or a line of an epoch whose weights were not
saved any more: readers leave out the first, and a run that goes on drops both.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rmtheory.errors import UnreadableDataError
from rmtheory.files import write_text


def read_log(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return all whole records, in their order; none if the file is not there.

    Raises
    ------
    UnreadableDataError
        If a line other than the last is no record, naming it.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as problem:
        raise UnreadableDataError(f"{path} cannot be read: {problem}") from None
    found = []
    for number, line in enumerate(lines[:-1], 1):  # what follows the last newline is not whole
        try:
            record = json.loads(line)
            int(record["epoch"])
        except (ValueError, TypeError, KeyError):
            message = f"line {number} of {path} was altered: it is no record of an epoch"
            raise UnreadableDataError(message) from None
        found.append(record)
    return found


def append(path: Path, record: Mapping[str, Any]) -> None:
    """Add a record, down to the disk; a failure leaves the file as it was."""
    line = (json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n").encode()
    with path.open("ab", buffering=0) as file:
        before = file.tell()
        try:
            written = 0
            while written < len(line):
                written += file.write(line[written:]) or 0
            os.fsync(file.fileno())
        except BaseException:
            file.truncate(before)
            raise


def keep(path: Path, last: int) -> None:
    """Drop what a killed run left behind: records after the epoch `last`, and half a line."""
    records = [record for record in read_log(path) if record["epoch"] <= last]
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    if path.exists() and path.read_text(encoding="utf-8") != text:
        write_text(path, text)
