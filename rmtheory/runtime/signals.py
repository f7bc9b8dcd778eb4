"""The signals by which the system, a scheduler or a closed terminal ends a program."""

from __future__ import annotations

import os
import signal
import sys
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


#: Seconds after which an interruption that was dropped is sent again.
_AGAIN = 0.05


@contextmanager
def insisting() -> Iterator[Callable[[], None]]:
    """Let no interruption be lost in the block; gives what is to be called when one comes.

    Python drops what is raised in a finaliser, Ctrl-C among it: it is sent again. Objects that an
    interruption leaves half made may complain in their finalisers; that is not shown.
    """
    usual, interrupted = sys.unraisablehook, threading.Event()

    def hook(problem: sys.UnraisableHookArgs) -> None:
        if issubclass(problem.exc_type, KeyboardInterrupt):
            number = getattr(problem.exc_value, "number", signal.SIGINT)
            again = threading.Timer(_AGAIN, os.kill, (os.getpid(), number))
            again.daemon = True
            again.start()
        elif not interrupted.is_set():
            usual(problem)

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupted.set()
        signal.default_int_handler(number, frame)

    main = threading.current_thread() is threading.main_thread()
    mine = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if mine:
        signal.signal(signal.SIGINT, interrupt)
    sys.unraisablehook = hook
    try:
        yield interrupted.set
    finally:
        sys.unraisablehook = usual
        if mine:
            signal.signal(signal.SIGINT, signal.default_int_handler)
