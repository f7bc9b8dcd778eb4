"""Progress on standard error: a bar where somebody watches, now and then a line in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rmtheory.wording import duration

#: Seconds of the past from which the time left is told: a step may take minutes.
_REMEMBERED = 3600.0

#: Of the whole work, as the bar counts it.
_PARTS = 1_000_000

#: A log gets a line when so much more is done or so many seconds have passed, and not before so
#: many: what takes no longer says nothing.
_SHARE, _LONG, _SHORT = 0.1, 60.0, 5.0


@contextmanager
def counting(label: str, total: int, before: int = 0) -> Iterator[Callable[[int], None]]:
    """Give a function that is told how many of `total` steps are done, `before` of them earlier."""
    with weighing(label, total) as advance:

        def count(done: int) -> None:
            advance(done, done / total if total else 1.0)

        count(before)
        yield count


@contextmanager
def weighing(label: str, total: int) -> Iterator[Callable[[int, float], None]]:
    """Give a function that is told how many of `total` steps are done, and their share of the work.

    The bar and the time left go by the share, so steps may differ in length. What the first call
    tells was there before and says nothing about the speed.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(label, total)
        return
    columns = (
        TextColumn(label),
        BarColumn(),
        TextColumn("{task.fields[done]}/{task.fields[steps]}"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=console, speed_estimate_period=_REMEMBERED) as progress:

        def advance(done: int, share: float) -> None:
            parts = round(share * _PARTS)
            if not progress.tasks:
                progress.add_task(label, total=_PARTS, completed=parts, done=done, steps=total)
            else:
                progress.update(progress.task_ids[0], completed=parts, done=done)

        yield advance


def _lines(label: str, total: int) -> Callable[[int, float], None]:
    """Return a function that tells of the progress in a few lines without control characters."""
    begun = last = time.monotonic()
    told: float | None = None

    def advance(done: int, share: float) -> None:
        nonlocal last, told
        now = time.monotonic()
        if told is None:
            told = share
        elif (
            told < share < 1  # what is finished is told by the result
            and now - last >= _SHORT
            and (share - told >= _SHARE or now - last >= _LONG)
        ):
            line = f"{label}: {done} of {total} done after {duration(now - begun)}"
            print(line, file=sys.stderr, flush=True)
            last, told = now, share

    return advance
