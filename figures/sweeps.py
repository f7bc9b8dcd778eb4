"""Sweeps of a figure: run one after the other, every finished point kept."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from figures import workers
from figures.figure import Progress
from figures.unfinished import parts_folder
from rmtheory.errors import NotConvergedError
from rmtheory.wording import counted

if TYPE_CHECKING:
    from rmsim.sweep import Progress as SweepProgress
    from rmsim.sweep import Sweep


@contextmanager
def swept(sweeps: Mapping[str, Sweep], progress: Progress) -> Iterator[dict[str, Path]]:
    """Compute what is missing of all `sweeps` and give the folders with their points.

    Raises
    ------
    NotConvergedError
        If points failed; the others are kept.
    """
    from rmsim.sweep import run_sweep

    total, before = sum(len(sweep.grid) for sweep in sweeps.values()), 0
    with parts_folder() as folder:
        for name, sweep in sweeps.items():
            follow = partial(_follow, progress, before, total)
            report = run_sweep(
                sweep, folder / name, workers.backend(), on_progress=follow, note=_say
            )
            if report.failures:
                first = report.failures[0]
                raise NotConvergedError(
                    f"{counted(len(report.failures), 'point')} failed, first: {first}"
                )
            before += len(sweep.grid)
        yield {name: folder / name for name in sweeps}


def _follow(progress: Progress, before: int, total: int, state: SweepProgress) -> None:
    progress(before + state.done, total)


def _say(sentence: str) -> None:
    print(f"figures: {sentence}", file=sys.stderr)
