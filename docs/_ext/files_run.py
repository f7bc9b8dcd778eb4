"""Which files of ours a command runs: ``python docs/_ext/files_run.py rmtheory critical``.

Counted are files in which at least one function is called. What runs only because a module is
imported (class bodies, tables, decorators) is left out: nobody reads it to follow the command.
"""

from __future__ import annotations

import importlib
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DISTRIBUTIONS = tuple(str(ROOT / name) + "/" for name in ("rmtheory", "rmsim", "figures"))

#: What every command has in common: neither physics nor a step of an algorithm.
COMMON = ("rmtheory/base/", "rmtheory/runtime/")


def files_run(call: Callable[[], Any]) -> list[str]:
    """Return the files of ours of which `call` runs functions, in the order of the first call."""
    seen: dict[str, None] = {}
    known: dict[CodeType, str | None] = {}
    importing = threading.local()

    def note(frame: FrameType, _event: str, _argument: object) -> Any:
        code = frame.f_code
        if code.co_name == "<module>":
            importing.depth = getattr(importing, "depth", 0) + 1
            frame.f_trace_lines = False
            return leave
        if code not in known:
            ours = code.co_filename.startswith(DISTRIBUTIONS)
            known[code] = code.co_filename[len(str(ROOT)) + 1 :] if ours else None
        if (name := known[code]) is not None and not getattr(importing, "depth", 0):
            seen[name] = None
        return None

    def leave(_frame: FrameType, event: str, _argument: object) -> Any:
        if event == "return":
            importing.depth -= 1
        return leave

    # A trace is told of Python's functions alone; a profiler of every call into C, too, which takes
    # half as long again.
    previous, of_threads = sys.gettrace(), threading.gettrace()
    threading.settrace(note)
    sys.settrace(note)
    try:
        call()
    finally:
        sys.settrace(previous)
        threading.settrace(of_threads)
    return list(seen)


def common(heading: str) -> set[str]:
    """Return the files of base and runtime that the page lists below a heading."""
    section = _section(heading)
    item = section.split("\n- Common: ")[1].split("\n\n")[0]
    folders = re.split(r"`(rmtheory/\w+/)`", item)[1:]
    return {
        folder + name
        for folder, names in zip(folders[::2], folders[1::2], strict=True)
        for name in re.findall(r"`(\w+\.py)`", names)
    }


def counts() -> dict[str, tuple[int, int]]:
    """Return both counts of each command from the table of the page."""
    rows = re.findall(r"^\| `([^`]+)` \| (\d+) \| (\d+) \|", _page(), re.M)
    return {command: (int(own), int(every)) for command, own, every in rows}


def own(files: list[str]) -> list[str]:
    """Return `files` without those that all commands have in common."""
    return [name for name in files if not name.startswith(COMMON)]


def listed(heading: str) -> set[str]:
    """Return the files that the page of the architecture lists below a heading."""
    return set(re.findall(r"`((?:rmtheory|rmsim|figures)/[\w/]+\.py)`", _section(heading)))


def _page() -> str:
    return (ROOT / "docs" / "architecture.md").read_text("utf-8")


def _section(heading: str) -> str:
    return _page().split(f"### `{heading}")[1].split("\n#")[0]


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    command = importlib.import_module(f"{sys.argv[1]}.cli").run
    names = files_run(lambda: command(sys.argv[2:]))
    print(*names, sep="\n")
    print(f"{len(names)} files, {len(own(names))} of them not in base or runtime")
