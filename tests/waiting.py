"""How tests wait for other processes, and how the other processes wait to be ended.

Nothing here waits in one long system call. Python notices a signal between two of its
instructions: one that arrives after the last look and before ``sleep(600)`` begins is noticed
ten minutes later.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path


def until(condition: Callable[[], bool], patience: float = 300.0) -> None:
    """Return when `condition` holds; fail if it does not within `patience` seconds."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


def until_ended(patience: float = 600.0) -> None:
    """Wait for a signal; a process that nobody ends goes by itself."""
    until(lambda: False, patience)


def alive(pid: int) -> bool:
    """Return whether the process runs; a dead one that nobody has collected does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        state = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:  # it has gone since, or the system has no /proc
        return not Path("/proc/self/stat").exists()
    except ProcessLookupError:
        return False
    return state.rsplit(")", 1)[1].split()[0] != "Z"
