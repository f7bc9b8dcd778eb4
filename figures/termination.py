"""SIGTERM ends a run as Ctrl-C does: in order, with temporary files removed and processes ended."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ending_in_order(name: str) -> Iterator[None]:
    """Let SIGTERM unwind the block and end the program `name` with the usual code 143."""

    def end(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)  # the end is not to be interrupted
        print(f"{name}: error: terminated", file=sys.stderr)
        raise SystemExit(128 + number)

    try:
        before = signal.signal(signal.SIGTERM, end)
    except ValueError:  # only the main thread may
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
