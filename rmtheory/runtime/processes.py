"""Independent pieces of work in processes of one thread each.

A small pool of its own instead of :class:`concurrent.futures.ProcessPoolExecutor`, for four
things that a run of many hours needs: a process killed by the system (out of memory) costs only
the piece it was working on, and that piece is named; Ctrl-C ends the processes at once, not after
their current piece; they also end when the parent is killed without a chance to say so; and an
exception that cannot be pickled arrives as a message instead of breaking the pool.

Processes are spawned, not forked: a child then reads the number of threads anew, and a GPU or a
thread of the parent does no harm. What runs in them must therefore be importable by name.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, resource_tracker
from multiprocessing.context import SpawnProcess
from typing import Any, Generic, Literal, TypeVar

from rmtheory.base import checks
from rmtheory.base.errors import RMError
from rmtheory.runtime.signals import ENDING

T = TypeVar("T")

#: Read by the libraries that start threads of their own, torch and numba among them.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)

#: Seconds a process is given to go before it is killed.
_PATIENCE = 5.0

_STARTING: Literal["starting"] = "starting"
_IDLE: Literal["idle"] = "idle"


class ProcessDiedError(RMError):
    """A process ended while it was working, most often because the memory was full."""


class RemoteError(RMError):
    """Stands for an exception that could not be sent from the process where it was raised."""


@dataclass(frozen=True)
class TaskResult(Generic[T]):
    """What became of one piece of work.

    Parameters
    ----------
    index : int
        Position among the arguments.
    value : object
        What the function returned; None if it failed.
    error : Exception, optional
        What it raised, or a :class:`ProcessDiedError`.
    details : str
        The traceback in the process, empty if there is none.
    """

    index: int
    value: T | None = None
    error: Exception | None = None
    details: str = ""

    def result(self) -> T:
        """Return the value, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]  # T may itself be None


@dataclass
class _Worker:
    """A process, its place among `jobs`, the pipe, and what it works on, if anything."""

    process: SpawnProcess
    place: int
    pipe: connection.Connection
    state: int | Literal["starting", "idle"] = _STARTING


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def as_finished(
    function: Callable[..., T],
    arguments: Iterable[tuple[Any, ...]],
    *,
    jobs: int,
    threads: int = 1,
    environments: Sequence[Mapping[str, str]] = ({},),
    on_wait: Callable[[], None] | None = None,
    interval: float = 0.5,
) -> Iterator[Iterator[TaskResult[T]]]:
    """Give the outcomes of ``function(*a)`` for all `arguments`, each as soon as it is there.

    Failures are outcomes too, so the others continue. Leaving the block ends the processes.

    Parameters
    ----------
    function : callable
        Importable by name.
    arguments : iterable of tuples
        Handed out one by one, in this order, when a process is free.
    jobs : int
        Processes at a time.
    threads : int
        Threads of the linear algebra in each process.
    environments : sequence of mappings
        Variables of the environment, dealt out in turn to the processes at work, such as one that
        names a GPU; a process that takes the place of a dead one has the same.
    on_wait : callable, optional
        Called at least every `interval` seconds while waiting.

    Examples
    --------
    >>> import math
    >>> with as_finished(math.sqrt, [(4.0,), (9.0,)], jobs=1) as outcomes:
    ...     [(outcome.index, outcome.result()) for outcome in outcomes]
    [(0, 2.0), (1, 3.0)]
    """
    checks.integer("jobs", jobs, 1)
    checks.integer("threads", threads, 1)
    workers: list[_Worker] = []
    try:
        yield _outcomes(
            function, arguments, jobs, threads, environments, workers, on_wait, interval
        )
    finally:
        with _interrupts_blocked(signal.SIGINT, *ENDING):
            _end(workers)


def in_order(
    function: Callable[..., T],
    arguments: Iterable[tuple[Any, ...]],
    *,
    jobs: int,
    threads: int = 1,
    progress: Callable[[int], None] | None = None,
    on_wait: Callable[[], None] | None = None,
) -> list[T]:
    """Return ``function(*a)`` for all `arguments`, in their order; the first failure is raised.

    The failure carries a note that says which arguments it belongs to. `progress` is called with
    the number of those finished.
    """
    work = list(arguments)
    values: dict[int, T] = {}
    with as_finished(function, work, jobs=jobs, threads=threads, on_wait=on_wait) as outcomes:
        for outcome in outcomes:
            if outcome.error is not None:
                outcome.error.add_note(f"while computing {_call(function, work[outcome.index])}")
                if outcome.details:
                    outcome.error.add_note(outcome.details)
                raise outcome.error
            values[outcome.index] = outcome.result()
            if progress is not None:
                progress(len(values))
    return [values[index] for index in range(len(work))]


def _outcomes(
    function: Callable[..., T],
    arguments: Iterable[tuple[Any, ...]],
    jobs: int,
    threads: int,
    environments: Sequence[Mapping[str, str]],
    workers: list[_Worker],
    on_wait: Callable[[], None] | None,
    interval: float,
) -> Iterator[TaskResult[T]]:
    waiting = deque(enumerate(arguments))
    left = len(waiting)
    while left:
        while len(workers) < min(jobs, left):
            place = min(set(range(jobs)) - {worker.place for worker in workers})
            variables = dict.fromkeys(THREAD_VARIABLES, str(threads))
            _start(
                function, variables | dict(environments[place % len(environments)]), place, workers
            )
        for worker in workers:
            if worker.state == _IDLE and waiting:
                # A process that died while idle is noticed when its pipe is read.
                with suppress(BrokenPipeError, ConnectionResetError):
                    worker.pipe.send(waiting[0])
                    worker.state = waiting.popleft()[0]
        ready = connection.wait([worker.pipe for worker in workers], interval)
        for worker in [w for w in workers if w.pipe in ready]:
            try:
                outcome: TaskResult[T] | None = worker.pipe.recv()
                worker.state = _IDLE
            except (EOFError, ConnectionResetError):
                workers.remove(worker)
                outcome = _death(worker)
            if outcome is not None:
                left -= 1
                yield outcome
        if on_wait is not None:
            on_wait()


def _start(
    function: Callable[..., T], variables: dict[str, str], place: int, workers: list[_Worker]
) -> None:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    # A daemon dies with an interpreter that leaves in disorder.
    process = context.Process(target=_serve, args=(function, there), daemon=True)
    resource_tracker.ensure_running()  # its start would lift the block of the next line
    # A Ctrl-C while the child starts would make it print a traceback of its own.
    with (
        _interrupts_blocked(signal.SIGINT),
        _environment(variables),
    ):
        process.start()
        there.close()  # else the end of the process could not be seen
        workers.append(_Worker(process, place, here))


def _death(worker: _Worker) -> TaskResult[Any] | None:
    """Say what became of the work of a dead process, if it had any."""
    worker.process.join(_PATIENCE)
    code = worker.process.exitcode
    worker.pipe.close()
    if worker.state == _STARTING:
        raise ProcessDiedError(
            f"a worker process ended with code {code} before it could start; what it printed says "
            "why (a script that starts processes needs 'if __name__ == \"__main__\"')"
        )
    if worker.state == _IDLE:
        return None
    reason = f"the process ended with code {code}"
    if code is not None and code < 0:
        reason = f"the process was ended by signal {-code}"
        if -code == signal.SIGKILL:
            reason += ", as the system does when the memory is full"
    return TaskResult(worker.state, error=ProcessDiedError(reason))


def _end(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.pipe.close()
        worker.process.terminate()
    for worker in workers:
        worker.process.join(_PATIENCE)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        worker.process.close()


def _serve(function: Callable[..., T], pipe: connection.Connection) -> None:
    """Work until the parent closes the pipe or dies."""
    # The parent gets the Ctrl-C of the terminal too, and decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        pipe.send(None)  # ready
        while True:
            index, arguments = pipe.recv()
            outcome = _evaluate(function, index, arguments)
            try:
                pipe.send(outcome)
            except (pickle.PicklingError, TypeError, AttributeError) as problem:
                pipe.send(TaskResult[T](index, error=RemoteError(f"cannot be sent: {problem}")))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # nobody is left to hear a result


def _evaluate(function: Callable[..., T], index: int, arguments: tuple[Any, ...]) -> TaskResult[T]:
    try:
        return TaskResult(index, function(*arguments))
    except Exception as problem:
        return TaskResult(index, error=_portable(problem), details=traceback.format_exc())


def _portable(problem: Exception) -> Exception:
    """Return `problem` if it survives the way to the parent, otherwise its text."""
    try:
        copy = pickle.loads(pickle.dumps(problem))
    except Exception:  # an __init__ or __reduce__ of anybody's making
        copy = None
    if type(copy) is type(problem):
        return problem
    return RemoteError(f"{type(problem).__name__}: {problem}")


def _call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    return f"{function.__name__}({', '.join(map(repr, arguments))})"


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _interrupts_blocked(*signals: signal.Signals) -> Iterator[None]:
    """Hold `signals` back until the block is left; children started in it begin deaf to them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
