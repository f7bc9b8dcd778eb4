"""How far a computation is, on standard error: a bar on a terminal, now and then a line in a log.

All commands show it this way: those of rmtheory and rmsim, sweeps, trainings and figures. A
computation calls its report with the steps done; the display has the rest: how many there are,
what is going on, and how long it will take.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from rmtheory.base.wording import duration

if TYPE_CHECKING:  # only a terminal needs it
    from rich.progress import Progress

#: Seconds of the past from which the time left is estimated: a step may take minutes.
_REMEMBERED = 3600.0

#: Of the whole work, as the bar counts it.
_PARTS = 1_000_000

#: A log gets a line when so much more is done or so many seconds have passed, and not before so
#: many: what takes no longer says nothing.
_SHARE, _LONG, _SHORT = 0.1, 60.0, 5.0


class Report(Protocol):
    """Called by a computation as it advances. What the first call says was there before."""

    def __call__(
        self,
        done: int,
        total: int | None = None,
        *,
        share: float | None = None,
        label: str | None = None,
        text: str = "",
        short: str = "",
    ) -> None:
        """Say how far it is.

        Parameters
        ----------
        done : int
            Steps done.
        total : int, optional
            Steps in all, if that has changed.
        share : float, optional
            Share of the work that is done, where steps differ in length; done/total by default.
        label : str, optional
            What is going on, if that has changed; a log gets a line for each that has a `text`.
        text, short : str
            What is known so far instead of the steps, for a log and for one line of a terminal.
        """


@contextmanager
def counting(
    label: str, total: int = 0, before: int | None = 0, *, bar: int = 40, transient: bool = False
) -> Iterator[Report]:
    """Show how many of `total` steps are done, and how long the others will take.

    Parameters
    ----------
    label : str
        What is going on.
    total : int
        Steps in all; 0 if the computation reports it.
    before : int, optional
        Steps that were done earlier; None if the computation reports it.
    bar : int
        Width of the bar.
    transient : bool
        Whether the bar goes when all is done.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        report: Report = _Lines(label, total)
        if before is not None:
            report(before)
        yield report
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar),
        TextColumn("{task.fields[text]}"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(
        *columns, console=console, transient=transient, speed_estimate_period=_REMEMBERED
    ) as progress:
        show = _Bar(progress, label, total)
        if before is not None:
            show(before)
        yield show


def _share(done: int, total: int, share: float | None) -> float:
    if share is not None:
        return share
    return done / total if total else 1.0


class _Display:
    """What a bar and lines in a log have in common: how far the work is."""

    def __init__(self, label: str, total: int) -> None:
        self.label, self.total = label, total

    def __call__(
        self,
        done: int,
        total: int | None = None,
        *,
        share: float | None = None,
        label: str | None = None,
        text: str = "",
        short: str = "",
    ) -> None:
        """Show how far it is; see :class:`Report`."""
        self.total = self.total if total is None else total
        self.label = self.label if label is None else label
        self._show(done, _share(done, self.total, share), text, short)

    def _show(self, done: int, share: float, text: str, short: str) -> None:
        raise NotImplementedError


class _Bar(_Display):
    """A bar on a terminal."""

    def __init__(self, progress: Progress, label: str, total: int) -> None:
        super().__init__(label, total)
        self.progress = progress

    def _show(self, done: int, share: float, text: str, short: str) -> None:
        progress, parts = self.progress, round(share * _PARTS)
        shown = short or text or f"{done}/{self.total}"
        if not progress.tasks:  # not before there is something to do
            progress.add_task(self.label, total=_PARTS, completed=parts, text=shown)
        else:
            task = progress.task_ids[0]
            progress.update(task, description=self.label, completed=parts, text=shown)


class _Lines(_Display):
    """A few lines without control characters."""

    def __init__(self, label: str, total: int) -> None:
        super().__init__(label, total)
        self.begun = self.last = time.monotonic()
        self.first: float | None = None
        self.told = 0.0
        self.named: str | None = None

    def _show(self, done: int, share: float, text: str, short: str) -> None:
        """Print a line if it is time for one."""
        now = time.monotonic()
        if self.first is None:
            self.first = self.told = share
        if text:
            if self.label != self.named:
                self.named = self.label
                self._print(text, share, now)
        elif (
            self.told < share < 1  # the result itself shows the end
            and now - self.last >= _SHORT
            and (share - self.told >= _SHARE or now - self.last >= _LONG)
        ):
            done_text = f"{done} of {self.total} done after {duration(now - self.begun)}"
            self._print(done_text, share, now)

    def _print(self, text: str, share: float, now: float) -> None:
        begun = 0.0 if self.first is None else self.first
        if begun < share < 1:
            left = (now - self.begun) * (1 - share) / (share - begun)
            text += f", {duration(left)} left"
        print(f"{self.label}: {text}", file=sys.stderr, flush=True)
        self.last, self.told = now, share
