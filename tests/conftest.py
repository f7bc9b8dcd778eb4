"""Hypothesis profiles: the default is reproducible, ``--hypothesis-profile=thorough`` searches.

Tests that run side by side use one thread each: threads that wait for each other on a busy core
take several times the time of the test. They compile a loop once: the first one builds the machine
code, the others wait for it and load it, instead of building it, too.
"""

import os
import signal
from pathlib import Path
from typing import Any

from hypothesis import settings


def _compile_once() -> None:
    """Let one process at a time compile a function of the cache on disk."""
    try:
        import fcntl

        from numba.core.compiler_lock import global_compiler_lock
        from numba.core.dispatcher import Dispatcher
    except ImportError:  # no such locks, or no simulator
        return
    compile_here = Dispatcher.compile

    def compile_once(self: Dispatcher, signature: Any) -> Any:
        folder = self._cache.cache_path
        if folder is None:
            return compile_here(self, signature)
        # numba's own lock first, in the order of nested calls: threads must not wait for each other
        with global_compiler_lock:
            Path(folder).mkdir(parents=True, exist_ok=True)
            with open(Path(folder, f"{self.__module__}.{self.__qualname__}.lock"), "a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                return compile_here(self, signature)

    Dispatcher.compile = compile_once


if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    _compile_once()

# A suite started in the background ignores SIGINT, under nohup SIGHUP, and so would the children
# that tests interrupt.
for number, usual in (
    (signal.SIGINT, signal.default_int_handler),
    (getattr(signal, "SIGHUP", signal.SIGTERM), signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

settings.register_profile("default", derandomize=True, deadline=None, max_examples=40)
settings.register_profile("thorough", derandomize=False, deadline=None, max_examples=1000)
settings.load_profile("default")
