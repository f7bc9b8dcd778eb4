"""How a run that learns is followed: one live line on a terminal, a line an epoch elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rmsim.training import Progress
    from rmsim.training.trainer import Follow


@contextmanager
def following() -> Iterator[Follow]:
    """Give a function that shows the progress on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines()
        return
    columns = (TextColumn("{task.fields[epoch]}"), BarColumn(10), TextColumn("{task.fields[text]}"))
    with Bar(*columns, console=console) as bar:

        def show(progress: Progress) -> None:
            if not bar.tasks:  # not before there is something to do
                bar.add_task("train", total=1.0, epoch="", text="")
            done = progress.samples / progress.total if progress.total else 1.0
            epoch = f"epoch {progress.epoch}/{progress.epochs}"
            text = _text(progress, short=True)
            bar.update(bar.task_ids[0], completed=done, epoch=epoch, text=text)

        yield show


class _Lines:
    """Prints a line when an epoch is done."""

    def __init__(self) -> None:
        self.shown: int | None = None

    def __call__(self, progress: Progress) -> None:
        if progress.epoch != self.shown:
            self.shown = progress.epoch
            line = f"epoch {progress.epoch}/{progress.epochs}: {_text(progress)}"
            typer.echo(line, err=True)


def _text(progress: Progress, short: bool = False) -> str:
    """Say how far it is; `short` enough for a terminal of 80 columns."""
    parts = [] if progress.record is None else [_measured(progress.record, short)]
    if progress.samples_per_second is not None:
        parts.append(f"{progress.samples_per_second:.0f} samples/s")
    if progress.seconds_left:
        parts.append(f"{clock(progress.seconds_left)} left")
    return ", ".join(parts)


def _measured(record: dict[str, Any], short: bool) -> str:
    q_dyn = f"q_dyn {record['q_dyn']['median']:.3f}"
    if record["test_accuracy"] is None:
        return q_dyn
    train = "" if short else f"train {record['train_accuracy']:.4f}, "
    return f"test {record['test_accuracy']:.4f}, {train}{q_dyn}"


def clock(seconds: float) -> str:
    """Print a duration.

    Examples
    --------
    >>> clock(75), clock(7322)
    ('1:15', '2:02:02')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
