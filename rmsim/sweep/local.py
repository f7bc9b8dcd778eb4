"""Backends on this machine: one process after the other points, or several at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from rmsim.sweep.definition import Task
from rmsim.sweep.task import Answer, Failed, evaluate
from rmtheory.processes import as_finished, available_cores

#: Pairs of the position of a task and its answer, in the order in which they are there.
Answers = Iterator[tuple[int, Answer]]

#: Takes a sentence that the user should see.
Note = Callable[[str], None]


class Backend(Protocol):
    """Something that evaluates tasks; leaving the block stops what is still going on."""

    def answers(self, tasks: Sequence[Task], note: Note) -> AbstractContextManager[Answers]:
        """Give the answers to all `tasks`, begun in their order, each as soon as it is there."""


@dataclass(frozen=True)
class Serial:
    """In this process, one point after the other, with all its threads: for debugging."""

    @contextmanager
    def answers(self, tasks: Sequence[Task], note: Note) -> Iterator[Answers]:
        """Evaluate one task after the other."""
        yield ((index, evaluate(task)) for index, task in enumerate(tasks))


@dataclass(frozen=True)
class Local:
    """Processes on this machine, `jobs` at a time; None for as many as there are cores.

    Each has one thread, also if there is only one process: sums of floats depend on the number of
    threads, and a result should not depend on the number of jobs.
    """

    jobs: int | None = None

    @contextmanager
    def answers(self, tasks: Sequence[Task], note: Note) -> Iterator[Answers]:
        """Evaluate the tasks in processes."""
        jobs = available_cores() if self.jobs is None else self.jobs
        with as_finished(evaluate, [(task,) for task in tasks], jobs=jobs) as outcomes:
            yield (
                (
                    outcome.index,
                    outcome.result()
                    if outcome.error is None
                    else Failed(type(outcome.error).__name__, str(outcome.error), outcome.details),
                )
                for outcome in outcomes
            )
