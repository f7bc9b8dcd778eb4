"""The points on a Dask cluster.

The client, which is the process that the user started, submits the points, fetches each result as
soon as it is there and writes the file. Workers therefore need no file system in common with it,
and all that a run leaves is in one place; what travels is a few kilobytes per point.

A worker that is lost costs the points it was working on: the scheduler hands them to others, and
gives up on a point only when several workers have died of it, which then counts as a failure of
that point. If the scheduler is lost the run ends with a message; the finished points are kept.
"""

from __future__ import annotations

import logging
import queue
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from rmsim.sweep.definition import Answer, Failed, Task
from rmsim.sweep.running import Answers, Note, environment, evaluate, placed
from rmtheory.base.errors import InvalidInputError, RMError, UnreadableDataError
from rmtheory.runtime.untrusted import MALFORMED, read_json

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
