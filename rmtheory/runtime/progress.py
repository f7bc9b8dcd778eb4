"""How far a computation is, on standard error: a bar on a terminal, now and then a line in a log.

All commands show it this way: those of rmtheory and rmsim, sweeps, trainings and figures. A
computation calls its report with the steps done; the display has the rest: how many there are,
what is being computed, and how long it will take.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rmtheory.base.errors import counted, duration

if TYPE_CHECKING:  # only a terminal needs it
    from rich.progress import Progress as Bar

#: Of the whole work, as the bar counts it.
_PARTS = 1_000_000

#: A log gets a line when so much more is done or so many seconds have passed, and not before so
#: many: what takes no longer says nothing.
_SHARE, _LONG, _SHORT = 0.1, 60.0, 5.0

#: Computations that take longer than these seconds begin with an estimate of their time.
_WORTH_SAYING = 2.0


class Progress(Protocol):
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
            What is computed, if that has changed; a log gets a line for each that has a `text`.
        text, short : str
            What is known so far instead of the steps, for a log and for one line of a terminal.
        """


def silent(done: int, total: int | None = None, **_others: object) -> None:
    """Show nothing."""


def announce(
    done: int,
    total: int,
    seconds: float,
    *,
    kept_in: Path,
    note: Callable[[str], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Say what a computation that resumes has already, and about how long the rest will take.

    Parameters
    ----------
    done, total : int
        Points that are there already, and points in all.
    seconds : float
        What the others take on a free machine; said from two seconds on.
    kept_in : Path
        The folder of the finished points.
    note : callable, optional
        Called with each sentence.
    progress : callable, optional
        Called with `done`.

    Examples
    --------
    >>> announce(3, 10, 75.0, kept_in=Path("pd.nc.parts"), note=print)
    3 of 10 points are there already, in pd.nc.parts
    7 points to compute, about 75 s on a free machine
    """
    if note is not None and done:
        note(f"{done} of {total} points are there already, in {kept_in}")
    if note is not None and done < total and seconds >= _WORTH_SAYING:
        points = counted(total - done, "point")
        note(f"{points} to compute, about {duration(seconds)} on a free machine")
    if progress is not None:
        progress(done)


@contextmanager
def counting(
    label: str,
    total: int = 0,
    before: int | None = 0,
    *,
    expected: float | None = None,
    bar: int = 40,
    transient: bool = False,
) -> Iterator[Progress]:
    """Show how many of `total` steps are done, and how long the others will take.

    The bar shows the steps that are counted beside it. The time left follows the share of the work,
    where a computation says it, since its steps may differ in length.

    Parameters
    ----------
    label : str
        What is being computed.
    total : int
        Steps in all; 0 if the computation reports it.
    before : int, optional
        Steps that were done earlier; None if the computation reports it.
    expected : float, optional
        Seconds that it will take, if this is known before it starts.
    bar : int
        Greatest width of the bar; scaled down on terminals narrower than 80 columns.
    transient : bool
        Whether the bar goes when all is done.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        report: Progress = _Lines(label, total, expected)
        if before is not None:
            report(before)
        yield report
        return
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(_bar_width(bar, console.width)),
        TextColumn("{task.fields[text]}"),
        TextColumn("{task.fields[left]}", style="progress.remaining"),
    )
    with Bar(*columns, console=console, transient=transient) as progress:
        show = _Bar(progress, label, total, expected, _bar_width(bar, console.width))
        if before is not None:
            show(before)
        yield show


def _bar_width(bar: int, width: int) -> int:
    return max(min(bar * min(width, 80) // 80, width // 4), 5)


def _fitting(text: str, room: int) -> str:
    """Return as many parts of a text, from the first on, as there is room for; one at least.

    >>> _fitting("test 0.8512, q_dyn 0.997, 3807 samples/s", 30)
    'test 0.8512, q_dyn 0.997'
    """
    parts = text.split(", ")
    while len(parts) > 1 and len(", ".join(parts)) > room:
        parts.pop()
    return ", ".join(parts)


def _share(done: int, total: int, share: float | None) -> float:
    if share is not None:
        return share
    return done / total if total else 1.0


class _Display:
    """What a bar and lines in a log have in common: how far the work is, and how long the rest."""

    def __init__(self, label: str, total: int, expected: float | None) -> None:
        self.label, self.total, self.expected = label, total, expected
        self.begun = time.monotonic()
        self.first: float | None = None

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
        """Show how far it is; see :class:`Progress`."""
        self.total = self.total if total is None else total
        self.label = self.label if label is None else label
        share = _share(done, self.total, share)
        now = time.monotonic()
        if self.first is None:
            self.first = share
        self._show(done, share, text, short, now)

    def left(self, share: float, now: float) -> str:
        """Return how long the rest will take, in words; nothing if it is not known, or all done."""
        begun = 0.0 if self.first is None else self.first
        if share >= 1:
            return ""
        if share > begun:
            return f"{duration((now - self.begun) * (1 - share) / (share - begun))} left"
        return "" if self.expected is None else f"about {duration(self.expected)}"

    def _show(self, done: int, share: float, text: str, short: str, now: float) -> None:
        raise NotImplementedError


class _Bar(_Display):
    """A bar on a terminal."""

    def __init__(
        self, progress: Bar, label: str, total: int, expected: float | None, width: int
    ) -> None:
        super().__init__(label, total, expected)
        self.progress, self.width = progress, width

    def _show(self, done: int, share: float, text: str, short: str, now: float) -> None:
        progress, shown = self.progress, short or text
        # A bar beside a count shows that count.
        parts = round(_PARTS * (share if shown else _share(done, self.total, None)))
        shown = shown or f"{done}/{self.total}"
        left = self.left(share, now) or (duration(now - self.begun) if share >= 1 else "")
        # Label, bar, text and time left are three spaces apart from one another in all.
        others = len(self.label) + self.width + len(left) + 3
        shown = _fitting(shown, progress.console.width - others)
        if not progress.tasks:  # not before there is something to do
            progress.add_task(self.label, total=_PARTS, completed=parts, text=shown, left=left)
        else:
            task = progress.task_ids[0]
            known = {"completed": parts, "text": shown, "left": left}
            progress.update(task, description=self.label, **known)  # type: ignore[arg-type]


class _Lines(_Display):
    """A few lines without control characters."""

    def __init__(self, label: str, total: int, expected: float | None) -> None:
        super().__init__(label, total, expected)
        self.last = self.begun
        self.reported: float | None = None
        self.named: str | None = None

    def _show(self, done: int, share: float, text: str, short: str, now: float) -> None:
        """Print a line if it is time for one."""
        if self.reported is None:
            self.reported = share
            if (self.expected or 0.0) >= _SHORT and share < 1:
                print(f"{self.label}: {self.left(share, now)}", file=sys.stderr, flush=True)
        if text:
            if self.label != self.named:
                self.named = self.label
                self._print(text, share, now)
        elif (
            self.reported < share < 1  # the result itself shows the end
            and now - self.last >= _SHORT
            and (share - self.reported >= _SHARE or now - self.last >= _LONG)
        ):
            done_text = f"{done} of {self.total} done after {duration(now - self.begun)}"
            self._print(done_text, share, now)

    def _print(self, text: str, share: float, now: float) -> None:
        left = "" if share == self.first else self.left(share, now)
        print(f"{self.label}: {text}{left and ', ' + left}", file=sys.stderr, flush=True)
        self.last, self.reported = now, share
