"""A progress bar on standard error, silent when nobody watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Seconds of the past from which the time left is told: a step may take minutes.
_REMEMBERED = 3600.0

#: Of the whole work, as the bar counts it.
_PARTS = 1_000_000


@contextmanager
def counting(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Give a function that is told how many of `total` steps are done."""
    with weighing(label, total) as advance:
        advance(0, 0.0)
        yield lambda done: advance(done, done / total if total else 1.0)


@contextmanager
def weighing(label: str, total: int) -> Iterator[Callable[[int, float], None]]:
    """Give a function that is told how many of `total` steps are done, and their share of the work.

    The bar and the time left go by the share, so steps may differ in length. What the first call
    tells was there before and says nothing about the speed.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn(label),
        BarColumn(),
        TextColumn("{task.fields[done]}/{task.fields[steps]}"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(
        *columns,
        console=console,
        disable=not console.is_terminal,
        speed_estimate_period=_REMEMBERED,
    ) as progress:

        def advance(done: int, share: float) -> None:
            parts = round(share * _PARTS)
            if not progress.tasks:
                progress.add_task(label, total=_PARTS, completed=parts, done=done, steps=total)
            else:
                progress.update(progress.task_ids[0], completed=parts, done=done)

        yield advance
