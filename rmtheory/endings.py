"""The signals by which the system, a scheduler or a closed terminal ends a program."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

#: The second is not known to every system.
ENDING: tuple[signal.Signals, ...] = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
)


@contextmanager
def handled_by(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Let `handler` take those that would end the program at once, until the block is left.

    A signal that somebody else handles, or that is ignored (nohup), stays theirs. Outside of the
    main thread nothing happens: Python lets only that one set handlers.
    """
    main = threading.current_thread() is threading.main_thread()
    taken = [number for number in ENDING if main and signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
