"""Run a sweep: read the points that are stored, compute those missing, store each at once.

A worker computes a point and records the provenance of the result. An exception is caught there and
becomes a :class:`~rmsim.sweep.definition.Failed`, so that all backends treat it alike and the other
points continue. :class:`Serial` evaluates the points in this process, :class:`Local` in several;
:class:`Dask` sends them to a cluster.

On a cluster the client, which is the process that the user started, submits the points, fetches
each result as soon as it is there and writes the file. Workers therefore need no file system in
common with it, and all that a run leaves is in one place; what travels is a few kilobytes per
point. A worker that is lost costs the points it was working on: the scheduler hands them to others,
and gives up on a point only when several workers have died of it, which then counts as a failure of
that point. If the scheduler is lost the run ends with a message; the finished points are kept.
"""

from __future__ import annotations

import logging
import os
import platform
import queue
import socket
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, Protocol

from rmsim.sweep.definition import (
    RESERVED,
    Answer,
    BadValueError,
    Failed,
    Measured,
    Sweep,
    Task,
    encode,
    load_compute,
    load_compute_of_many,
    takes_device,
)
from rmsim.sweep.directory import Directory
from rmtheory.base.errors import InvalidInputError, RMError, UnreadableDataError, counted, duration
from rmtheory.runtime.processes import TaskResult, as_finished, available_cores
from rmtheory.runtime.progress import counting
from rmtheory.runtime.provenance import git_state, package_versions
from rmtheory.runtime.untrusted import MALFORMED, read_json


def evaluate(task: Task) -> Answer:
    """Compute one point."""
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        function = load_compute(task.compute)
        returned = function(dict(task.point), task.seed, **_where(task, function))
        return _measured(task, returned, time.perf_counter() - wall, time.process_time() - cpu)
    except Exception as problem:
        return Failed(type(problem).__name__, str(problem), traceback.format_exc())


def evaluate_together(tasks: Sequence[Task], threads: int) -> list[Answer]:
    """Compute several points of one sweep, together if the computation can, else one by one.

    On a CPU they share `threads` threads. Times are divided evenly among them.
    """
    wall, cpu = time.perf_counter(), time.process_time()
    function = load_compute_of_many(tasks[0].compute) if len(tasks) > 1 else None
    if function is not None:
        where = _where(tasks[0], function)
        points, seeds = [dict(task.point) for task in tasks], [task.seed for task in tasks]
        with suppress(Exception):  # of one of them, which is found when they are computed alone
            returned = function(points, seeds, threads=threads, **where)
            spent = time.perf_counter() - wall, time.process_time() - cpu
            share = [x / len(tasks) for x in spent]
            return [_measured(*each, *share) for each in zip(tasks, returned, strict=True)]
    return [evaluate(task) for task in tasks]


def _where(task: Task, function: Callable[..., object]) -> dict[str, str]:
    placed = task.device is not None and takes_device(function)
    return {"device": str(task.device)} if placed else {}


def _measured(task: Task, returned: object, wall_time: float, cpu_time: float) -> Measured:
    """Return what a computation returned with where it comes from."""
    if not isinstance(returned, Mapping):
        raise BadValueError(f"{task.compute} must return a dict, got {returned!r}")
    values = dict(returned)
    device = str(values.pop("device", "cpu"))
    return Measured(
        encode(values, (*task.point, *RESERVED)),
        {
            **environment(),
            "device": device,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "wall_time": wall_time,
            "cpu_time": cpu_time,
        },
    )


@cache
def environment() -> dict[str, Any]:
    """Return versions, commit and host of this process, determined once: git takes its time."""
    commit, dirty = git_state()
    return {
        "versions": package_versions(),
        "python": platform.python_version(),
        "git_commit": commit,
        "git_dirty": dirty,
        "host": socket.gethostname(),
    }


#: Pairs of the position of a task and its answer, in the order in which they are there.
Answers = Iterator[tuple[int, Answer]]

#: Seconds from which the time of a run is estimated before it starts.
_WORTH_SAYING = 2.0

#: Seconds that a new process takes on a free machine until it computes, most of them for torch.
_START = 2.5

#: Takes a sentence that the user should see.
Note = Callable[[str], None]


def placed(tasks: Sequence[Task], device: str | None) -> list[Task]:
    """Return the tasks, each with the device that it is computed on, if one is given."""
    return [task if device is None else replace(task, device=device) for task in tasks]


class Backend(Protocol):
    """Something that evaluates tasks; leaving the block stops what still runs."""

    def answers(self, tasks: Sequence[Task], note: Note) -> AbstractContextManager[Answers]:
        """Give the results of all `tasks`, begun in their order, each as soon as it is there."""

    def at_once(self, tasks: Sequence[Task]) -> int | None:
        """Return how many of the tasks are computed at a time; None if that is not known."""

    def seconds_to_start(self) -> float:
        """Return how long it takes until the first task is begun."""


@dataclass(frozen=True)
class Serial:
    """In this process, one point after the other, with all its threads: for debugging.

    With a `device`, points are computed there and not where the sweep says.

    Examples
    --------
    >>> import rmsim as rs
    >>> result = rs.thresholds(20, jd=[0.2, 1.0], samples=10, backend=rs.Serial())
    >>> int(result.data.trials.sum())
    20
    """

    device: str | None = None

    @contextmanager
    def answers(self, tasks: Sequence[Task], note: Note) -> Iterator[Answers]:
        """Evaluate one task after the other."""
        yield ((index, evaluate(task)) for index, task in enumerate(placed(tasks, self.device)))

    def at_once(self, tasks: Sequence[Task]) -> int:
        """One."""
        return 1

    def seconds_to_start(self) -> float:
        """None: it is this process."""
        return 0.0


@dataclass(frozen=True)
class Local:
    """Processes on this machine, `jobs` at a time; None for as many as there are cores, or GPUs.

    Each has one thread, also if there is only one process: sums of floats depend on the number of
    threads, and a result should not depend on the number of jobs. Networks that are trained side by
    side (:func:`rmsim.train_many`) are as many threads of one process instead.

    With a `device`, points are computed there and not where the sweep says. Points on GPUs have one
    process for each GPU, which sees no other; more `jobs` share them evenly.

    Examples
    --------
    >>> import rmsim as rs
    >>> rs.Local(jobs=4)
    Local(jobs=4, device=None)
    """

    jobs: int | None = None
    device: str | None = None

    @contextmanager
    def answers(self, tasks: Sequence[Task], note: Note) -> Iterator[Answers]:
        """Evaluate the tasks in processes."""
        work = placed(tasks, self.device)
        environments = environments_of(work)
        jobs = self._jobs(len(environments))
        bundles, threads = [[index] for index in range(len(work))], 1
        if work and load_compute_of_many(work[0].compute) is not None:
            # Networks that learn side by side: in threads of one process, or on each GPU.
            size = _ON_A_GPU if environments else jobs
            bundles = [
                [*range(first, min(first + size, len(work)))] for first in range(0, len(work), size)
            ]
            jobs, threads = (jobs, 1) if environments else (1, jobs)
        arguments = [([work[index] for index in bundle], threads) for bundle in bundles]
        with as_finished(
            evaluate_together, arguments, jobs=jobs, environments=environments or [{}]
        ) as outcomes:
            yield (
                (index, answer)
                for outcome in outcomes
                for index, answer in zip(
                    bundles[outcome.index], _answers(outcome, bundles), strict=True
                )
            )

    def _jobs(self, gpus: int) -> int:
        return self.jobs or gpus or available_cores()

    def at_once(self, tasks: Sequence[Task]) -> int:
        """Processes, or threads of networks that learn side by side, no more than tasks."""
        gpus = len(environments_of(placed(tasks, self.device)))
        return min(self._jobs(gpus), len(tasks))

    def seconds_to_start(self) -> float:
        """Those of processes that start side by side."""
        return _START


#: Points that a GPU computes together, if the computation can.
_ON_A_GPU = 16


def _answers(outcome: TaskResult[list[Answer]], bundles: list[list[int]]) -> list[Answer]:
    """Return the answers to a bundle of points; all have failed if the process died."""
    if outcome.error is None:
        return outcome.result()
    failure = Failed(type(outcome.error).__name__, str(outcome.error), outcome.details)
    return [failure] * len(bundles[outcome.index])


def environments_of(tasks: Sequence[Task]) -> list[dict[str, str]]:
    """Return one environment for each GPU that the tasks are to use; none if they use the CPU."""
    places = {(task.compute, str(task.device or task.point.get("device", "cpu"))) for task in tasks}
    environments: list[dict[str, str]] = []
    for compute, device in sorted(places):
        if device != "cpu" and takes_device(load_compute(compute)):
            from rmsim.tensors import gpu_environments  # torch, which other sweeps do without

            environments += [one for one in gpu_environments(device) if one not in environments]
    return environments


@dataclass(frozen=True)
class PointFailure:
    """A point that could not be computed, and where its traceback is."""

    point: dict[str, Any]
    failure: Failed
    file: Path

    def __str__(self) -> str:
        where = ", ".join(f"{name}={value}" for name, value in self.point.items())
        message = " ".join(self.failure.message.split())
        return f"point {where} failed: {self.failure.kind}: {message} ({self.file})"


@dataclass(frozen=True)
class SweepProgress:
    """How far a run is: points done of those requested, and the share of the work behind it."""

    done: int
    asked: int
    share: float


@dataclass(frozen=True)
class SweepReport:
    """Points that a run kept from before, computed, could not compute, or read as damaged."""

    directory: Path
    asked: int
    kept: int
    computed: int
    failures: tuple[PointFailure, ...]
    damaged: tuple[str, ...]
    wall_time: float
    cpu_time: float

    @property
    def complete(self) -> bool:
        """Whether all requested points are there."""
        return self.kept + self.computed == self.asked

    def __str__(self) -> str:
        parts = [f"{self.kept} kept", f"{self.computed} computed in {self.wall_time:.1f} s"]
        parts[-1] += f" ({self.cpu_time:.1f} s CPU)"
        if self.failures:
            parts.append(f"{len(self.failures)} failed")
        return f"{counted(self.asked, 'point')} in {self.directory}: {', '.join(parts)}"


def run_sweep(
    sweep: Sweep,
    directory: str | os.PathLike[str],
    backend: Backend | None = None,
    *,
    progress: Callable[[SweepProgress], None] | None = None,
    note: Note | None = None,
    show: bool = False,
) -> SweepReport:
    """Compute the points of `sweep` that are not yet in `directory`.

    A point that raises is reported at the end and tried again by the next run; the others continue.

    Parameters
    ----------
    sweep : Sweep
        What to compute.
    directory : path
        Results directory, made if needed.
    backend : Backend, optional
        Where to compute; processes on all cores if not given.
    progress : callable, optional
        Called with the progress of the run, first with what was there before.
    note : callable, optional
        Called with a sentence about a damaged file or a problem of a cluster.
    show : bool
        Show a bar with the time left on standard error. Ctrl-C then ends the run with a sentence
        instead of a traceback: what is returned has the points finished so far.

    Raises
    ------
    InvalidInputError
        If the directory holds another sweep, or a cluster does not answer.
    ClusterLostError
        If a cluster is lost in mid-run; what was finished is kept.

    Examples
    --------
    >>> import tempfile
    >>> import rmsim as rs
    >>> fixed = {"layers": 1, "lam": 0.0, "rho": 1.0, "symmetric": False, "samples": "0:5"}
    >>> how = {"algorithm": "dynamics", "update": "synchronous", "p": 1.0, "max_sweeps": 100}
    >>> where = {"dtype": "float32", "device": "cpu"}
    >>> grid = rs.Grid.product({"n": (20, 40), "jd": (2.0,)}, fixed | how | where)
    >>> sweep = rs.Sweep("demo", 1, "rmsim.studies.convergence:measure", grid, seed=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = rs.run_sweep(sweep, folder, rs.Serial())
    ...     again = rs.run_sweep(sweep, folder, rs.Serial())
    >>> first.computed, again.computed, again.kept
    (2, 0, 2)
    """
    results = Directory(Path(directory))
    chosen = backend or Local()
    if not show:
        with results.claimed(sweep):
            return _run(sweep, results, chosen, progress, note or _say_nothing)
    last, begun = SweepProgress(0, len(sweep.grid), 0.0), time.perf_counter()
    kept: int | None = None

    with counting(sweep.name, len(sweep.grid), None) as bar:

        def follow(state: SweepProgress) -> None:
            nonlocal last, kept
            last, kept = state, state.done if kept is None else kept
            bar(state.done, share=state.share)
            if progress is not None:
                progress(state)

        try:
            with results.claimed(sweep):
                return _run(sweep, results, chosen, follow, note or _say)
        except KeyboardInterrupt:
            _say(f"interrupted: {results.store.kept(f'{last.done} of {last.asked} points')}")
    return SweepReport(
        results.path,
        last.asked,
        kept or 0,
        last.done - (kept or 0),
        (),
        (),
        time.perf_counter() - begun,
        0.0,
    )


def _run(
    sweep: Sweep,
    results: Directory,
    backend: Backend,
    progress: Callable[[SweepProgress], None] | None,
    note: Note,
) -> SweepReport:
    """Compute what is missing of `sweep` in a directory that is its own."""
    start, identity, tasks = time.perf_counter(), sweep.identity(), sweep.tasks()
    missing, damaged, rates = _missing(results, sweep, identity, tasks)
    for message in damaged:
        note(f"{message}; the point is computed again")
    if sweep.cost is not None:
        missing.sort(key=lambda task: -sweep.cost_of(task.point))
    kept, computed, cpu_time = len(tasks) - len(missing), 0, 0.0
    work = sum(sweep.cost_of(task.point) for task in tasks) or 1.0
    left = sum(sweep.cost_of(task.point) for task in missing)
    failures: list[PointFailure] = []

    def report_progress() -> None:
        if progress is not None:
            done = kept + computed + len(failures)
            progress(SweepProgress(done, len(tasks), 1.0 - left / work))

    expected = _expected(sweep, missing, rates)
    if expected is not None:
        at_once = backend.at_once(missing)
        where = "of CPU time" if at_once is None else "on a free machine"
        seconds = expected / (at_once or 1) + backend.seconds_to_start()
        if seconds >= _WORTH_SAYING:
            points = counted(len(missing), "point")
            note(f"{points} to compute, about {duration(seconds)} {where}")
    report_progress()
    if missing:
        with backend.answers(missing, note) as answers:
            for index, answer in answers:
                task = missing[index]
                if isinstance(answer, Failed):
                    results.save_failure(task, answer)
                    file = results.failure_file(task.key)
                    failures.append(PointFailure(task.point, answer, file))
                else:
                    results.save(task, identity, answer)
                    computed += 1
                    cpu_time += answer.provenance["cpu_time"]
                left -= sweep.cost_of(task.point)
                report_progress()
    wall_time = time.perf_counter() - start
    return SweepReport(
        results.path,
        len(tasks),
        kept,
        computed,
        tuple(failures),
        tuple(damaged),
        wall_time,
        cpu_time,
    )


def _expected(sweep: Sweep, missing: Sequence[Task], rates: Sequence[float]) -> float | None:
    """Return the CPU-seconds of the points that are missing; None if nothing is known of them.

    `rates` are the seconds per unit of work of the points that are stored. Their median leaves out
    those that were the first of a process and have its start in their time.
    """
    unit = median(rates) if rates else sweep.unit
    if unit is None or not missing:
        return None
    return unit * sum(sweep.cost_of(task.point) for task in missing)


def _missing(
    results: Directory, sweep: Sweep, identity: dict[str, Any], tasks: list[Task]
) -> tuple[list[Task], list[str], list[float]]:
    """Return the tasks to be done, what is wrong with files, seconds per work of the others."""
    missing, damaged, rates = [], [], []
    for task in tasks:
        try:
            spent = float(results.load(task.key, identity).provenance["cpu_time"])
        except FileNotFoundError:
            missing.append(task)
        except UnreadableDataError as problem:
            missing.append(task)
            damaged.append(str(problem))
        else:
            if (work := sweep.cost_of(task.point)) > 0:
                rates.append(spent / work)
    return missing, damaged, rates


def _say(sentence: str) -> None:
    """Print a note."""
    print(f"rmsim: {sentence}", file=sys.stderr, flush=True)


def _say_nothing(_sentence: str) -> None:
    """Ignore the notes."""


# The points on a Dask cluster.

#: Seconds between two checks of the cluster while nothing arrives.
_INTERVAL = 1.0

#: Seconds to fetch a result; its worker may have died since it said that it was done.
_FETCH = 20.0

#: Another version of these computes something else, or has another protocol.
_MUST_AGREE = ("representation-manifold", "dask", "distributed")


class ClusterLostError(RMError):
    """The scheduler went away in mid-run."""


@dataclass(frozen=True)
class Dask:
    """Workers of the scheduler at `address`, or of that which wrote the scheduler file `address`.

    Parameters
    ----------
    address : str
        As in ``tcp://host:8786``, or a file that ends in ``.json``.
    timeout : float
        Seconds to wait for the scheduler.
    device : str, optional
        Where workers compute, if not where the sweep says; with several GPUs, give each worker one
        (CUDA_VISIBLE_DEVICES).
    """

    address: str
    timeout: float = 10.0
    device: str | None = None

    @contextmanager
    def answers(self, tasks: Sequence[Task], note: Note) -> Iterator[Answers]:
        """Evaluate the tasks on the cluster."""
        connect = self._import_client()  # first: the import sets up the log that is kept quiet
        with _quiet(), self._connected(connect) as client:
            _wait_for_workers(client, self.address, note)
            _compare_versions(client, note)
            yield self._stream(client, placed(tasks, self.device), note)

    def at_once(self, tasks: Sequence[Task]) -> None:
        """Not known: workers come and go."""

    def seconds_to_start(self) -> float:
        """None: the workers are there."""
        return 0.0

    def check(self) -> None:
        """Refuse an address where no scheduler answers, before anything is computed.

        Raises
        ------
        InvalidInputError
            If no scheduler answers, or the package for it is not installed.
        """
        connect = self._import_client()
        with _quiet(), self._connected(connect):
            pass

    def _import_client(self) -> Callable[..., Any]:
        try:
            import distributed
        except ImportError:
            allowed = (
                "left out where the package distributed is not installed "
                "(pip install 'representation-manifold[cluster]')"
            )
            raise InvalidInputError("dask", self.address, allowed) from None
        client: Callable[..., Any] = distributed.Client
        return client

    @contextmanager
    def _connected(self, connect: Callable[..., Any]) -> Iterator[Any]:
        try:
            address = _scheduler_address(self.address, self.timeout)
            _demand_address(address)
            client = connect(address, timeout=self.timeout, set_as_default=False)
        except (OSError, ImportError, UnreadableDataError, *MALFORMED) as problem:
            allowed = f"the address of a Dask scheduler that answers within {self.timeout:g} s"
            raise InvalidInputError("dask", self.address, allowed) from problem
        try:
            yield client
        finally:
            # What the scheduler holds for this client goes with it.
            with suppress(OSError, TimeoutError, CancelledError):
                client.close(timeout=_INTERVAL)

    def _stream(self, client: Any, tasks: Sequence[Task], note: Note) -> Answers:
        done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        pending: dict[str, tuple[int, Any]] = {}
        for position, task in enumerate(tasks):
            # By the key, two runs at one scheduler share a point instead of computing it twice.
            name = f"{task.sweep}-{task.version}-{task.seed:x}-{task.key}"
            future = client.submit(evaluate, task, key=name, priority=-position)
            pending[name] = position, future
            future.add_done_callback(done.put)
        alone = False
        while pending:
            try:
                future = done.get(timeout=_INTERVAL)
            except queue.Empty:
                alone = self._check_workers(client, alone, note)
                continue
            answer = self._fetch(future)
            if answer is None:
                future.add_done_callback(done.put)
                continue
            position, _ = pending.pop(future.key)
            # Else the scheduler would compute it again if the worker that holds it dies now.
            future.release()
            yield position, answer

    def _fetch(self, future: Any) -> Answer | None:
        """Return the answer of a future that was done, None if it was lost since then."""
        try:
            if future.status == "error":
                problem = future.exception(timeout=_FETCH)
                return Failed(type(problem).__name__, f"on the cluster: {problem}")
            answer: Answer = future.result(timeout=_FETCH)
        except TimeoutError:
            return None
        except (CancelledError, OSError) as problem:
            raise self._lost() from problem
        return answer

    def _check_workers(self, client: Any, alone: bool, note: Note) -> bool:
        """Return whether no worker is there, with a note when the last one goes."""
        try:
            none = client.status == "running" and not client.nthreads()
        except (OSError, CancelledError) as problem:
            raise self._lost() from problem
        if client.status not in ("running", "connecting"):
            raise self._lost()
        if none and not alone:
            note(f"no worker is left at {self.address}; waiting for one")
        return none

    def _lost(self) -> ClusterLostError:
        return ClusterLostError(
            f"the scheduler at {self.address} was lost; the finished points are kept, "
            "run the same command again to resume"
        )


def _scheduler_address(address: str, timeout: float) -> str:
    """Return the address, reading a scheduler file as soon as it is there."""
    if not address.endswith(".json"):
        return address
    deadline = time.monotonic() + timeout
    while True:
        try:
            return str(read_json(address)["address"])
        except (OSError, UnreadableDataError, *MALFORMED):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _demand_address(address: str) -> None:
    """Raise ValueError or OSError if `address` is not valid: a client made with it hangs."""
    from distributed.comm.addressing import resolve_address

    resolve_address(address)


def _wait_for_workers(client: Any, address: str, note: Note) -> None:
    """Wait for the first worker: a job of a cluster may stand in the queue for hours."""
    if client.nthreads():
        return
    note(f"no worker is at {address} yet; waiting for the first")
    client.wait_for_workers(1)


def _compare_versions(client: Any, note: Note) -> None:
    """Refuse workers that run other code, note differences that might matter."""
    ours = _flat(environment())
    for worker, answer in sorted(client.run(environment, on_error="return").items()):
        if isinstance(answer, Exception):
            allowed = f"a cluster whose workers can import rmsim ({worker}: {answer})"
            raise InvalidInputError("dask", worker, allowed)
        theirs = _flat(answer)
        different = {
            name: theirs[name]
            for name, version in ours.items()
            if theirs[name] != version and "unknown" not in (theirs[name], version)
        }
        grave = {name: different[name] for name in _MUST_AGREE if name in different}
        if theirs["python"].split(".")[:2] != ours["python"].split(".")[:2]:
            grave["python"] = theirs["python"]
        if grave:
            wanted = ", ".join(f"{name} {ours[name]}" for name in grave)
            got = ", ".join(f"{name} {version}" for name, version in grave.items())
            raise InvalidInputError("dask", f"{got} at {worker}", f"workers with {wanted}")
        if different:
            listed = ", ".join(
                f"{name} {value}, here {ours[name]}" for name, value in different.items()
            )
            note(f"the worker {worker} has {listed}")


def _flat(environment: Mapping[str, Any]) -> dict[str, str]:
    return {
        **environment["versions"],
        "python": environment["python"],
        "commit": environment["git_commit"],
    }


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the log of distributed and its version warning back: the notes say what matters."""
    logger = logging.getLogger("distributed")
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed.")]
    loggers = [logger, *map(logging.getLogger, names)]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Mismatched versions found")
            yield
    finally:
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)
