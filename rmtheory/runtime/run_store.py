"""A folder that belongs to one computation, which may be killed and resumes where it stopped.

    run.json, ...     the manifest: which computation it is
    .lock             held by those at work in the folder
    ...               finished results, each of them replaced as a whole

Trainings, sweeps, phase diagrams and figures keep their results in such folders. A run makes the
folder its own, or finds that it is; a folder of another computation is refused in a sentence that
says what differs. A run that must be alone (a training) holds the lock exclusively; runs that may
share the work (a sweep, whose points do not depend on who computes them) hold it together.

The lock is an advisory one of the system (flock), which forgets a process that ends, however it
ends: a killed run leaves no lock behind. Whoever finds nobody else at work removes the temporary
files of killed runs. Where the system or the file system has no such locks (Windows, some network
file systems) nothing is refused, and temporary files are removed when they are an hour old.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from rmtheory.base.errors import InvalidInputError, StorageError, UnreadableDataError
from rmtheory.runtime.files import leftovers, make_folder, remedy, try_lock, write_text
from rmtheory.runtime.provenance import canonical_json
from rmtheory.runtime.untrusted import opened_to_append, read_json

#: Manifests of all computations that keep a folder, and what the folder holds.
MANIFESTS = {
    "run.json": "a training run",
    "sweep.json": "a sweep",
    "request.json": "points of a phase diagram",
    "curve.json": "points of a curve",
}

#: Name of the file that is locked. It is never read, and stays.
LOCK = ".lock"

#: Seconds after which a temporary file is taken for one of a killed run, without a lock to tell.
STRAY_AGE = 3600.0

#: Seconds for which a run that shares the folder waits for one that claims it.
_PATIENCE = 10.0


class Lock:
    """The lock of a folder while a run is at work in it."""

    def __init__(self, file: BinaryIO | None, alone: bool) -> None:
        self._file = file
        #: Whether nobody else was at work when the lock was taken.
        self.alone = alone

    def share(self) -> None:
        """Let others in that also share."""
        self._change("LOCK_SH")

    def exclude(self) -> bool:
        """Try to keep all others out; whether that is so, or nobody can know."""
        return self._change("LOCK_EX")

    def release(self) -> None:
        """Give it back; also for processes that were started meanwhile, which have it too."""
        self._change("LOCK_UN")

    def _change(self, how: str) -> bool:
        return self._file is None or try_lock(self._file, how) is not False


@dataclass(frozen=True)
class RunStore:
    """A folder of one computation.

    Parameters
    ----------
    path : Path
        The folder.
    manifest : str, optional
        Name of the file that says which computation it is, if one does.
    files : tuple of str
        Patterns of the names of all files written there, below `path`.
    target : Path, optional
        The file for which the folder keeps finished parts, if that is what the user named.
    argument : str
        What the user calls it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = RunStore(Path(folder), files=("point.json",))
    ...     with store.at_work():
    ...         store.save("point.json", {"jd": 0.5})
    ...     store.load("point.json")
    {'jd': 0.5}
    """

    path: Path
    manifest: str | None = None
    files: tuple[str, ...] = ()
    target: Path | None = None
    argument: str = "out"

    @contextmanager
    def at_work(
        self, claim: Callable[[Lock], None] = lambda lock: None, *, shared: bool = False
    ) -> Iterator[Lock]:
        """Make the folder if need be, and hold its lock; what killed runs left is removed.

        Parameters
        ----------
        claim : callable
            Makes the folder that of the computation or refuses; nobody else claims it meanwhile.
        shared : bool
            Whether others that also share may be at work in it.

        Raises
        ------
        InvalidInputError
            If the folder is of another kind, cannot be made, or another run is at work in it.
        StorageError
            If the lock is a link, a pipe or a device, or cannot be written.
        """
        self._demand_kind()
        with self._acquired(shared) as lock:
            try:
                claim(lock)
                self._remove_leftovers(lock.alone)
                if shared:
                    lock.share()
                yield lock
            finally:
                lock.release()

    def demand_same(self, held: Mapping[str, Any], wanted: Mapping[str, Any], label: str) -> None:
        """Refuse the folder if it holds another computation, called `label`; say what differs."""
        if held != wanted:
            where = f"{self.path}, which holds {label}: {'; '.join(differences(held, wanted))}"
            raise InvalidInputError(self.argument, where, "a new folder or that of the same run")

    def save(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a JSON document with its checksum, at once or not at all."""
        sealed = {"sha256": digest(content), "content": content}
        write_text(self.path / name, json.dumps(sealed, ensure_ascii=False) + "\n", self.argument)

    def load(self, name: str) -> dict[str, Any]:
        """Read what :meth:`save` wrote.

        Raises
        ------
        FileNotFoundError
            If it is not there.
        UnreadableDataError
            If it was cut off or altered, naming the file.
        """
        file = self.path / name
        sealed = read_json(file, constants=True)
        content = sealed.get("content") if isinstance(sealed, dict) else None
        if not isinstance(content, dict):
            raise UnreadableDataError(f"{file} cannot be read: it is cut off or altered")
        if sealed.get("sha256") != digest(content):
            raise UnreadableDataError(f"{file} was altered: its checksum does not match")
        return content

    def kept(self, what: str) -> str:
        """Say what is kept when a run is interrupted, and how to resume.

        Examples
        --------
        >>> RunStore(Path("out")).kept("3 of 5 points")
        '3 of 5 points are kept in out; the same command resumes from there'
        """
        return f"{what} are kept in {self.path}; the same command resumes from there"

    @contextmanager
    def writing(self, what: str, kept: str) -> Iterator[None]:
        """Turn the failure to write `what` into a sentence: what is `kept`, and what to do."""
        try:
            yield
        except OSError as problem:
            raise StorageError(
                f"{what} of {self.path} could not be written ({problem.strerror or problem}); "
                f"{kept} is kept: {remedy(problem)} and run the same command again"
            ) from problem

    def empty(self) -> None:
        """Remove all but the lock, the manifest last: if interrupted, the rest is still known."""
        last = (self.manifest, LOCK)
        for path in self.path.glob("*"):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name not in last:
                path.unlink(missing_ok=True)
        if self.manifest is not None:
            (self.path / self.manifest).unlink(missing_ok=True)

    def remove(self, lock: Lock) -> bool:
        """Remove the folder unless others are at work in it; whether it is gone."""
        if not lock.exclude():
            return False
        self.empty()
        shutil.rmtree(self.path, ignore_errors=True)
        return True

    def _demand_kind(self) -> None:
        for name, kind in MANIFESTS.items():
            if name != self.manifest and (self.path / name).exists():
                where = f"{self.path}, which holds {kind} ({name})"
                raise InvalidInputError(
                    self.argument, where, "a new folder or that of the same run"
                )

    def _make(self) -> None:
        obstacle = make_folder(self.path)
        if obstacle:
            allowed = f"a folder that can be written ({obstacle})"
            if self.target is not None:
                allowed = f"in {allowed}"
            raise InvalidInputError(self.argument, str(self.target or self.path), allowed)

    @contextmanager
    def _acquired(self, shared: bool) -> Iterator[Lock]:
        """Give the lock, exclusive if nobody else is at work."""
        self._make()
        end = time.monotonic() + _PATIENCE
        while True:
            with ExitStack() as stack:
                lock = self._tried(stack, shared)
                held = stack.pop_all()
            with held:
                if lock is not None:
                    yield lock
                    return
            if time.monotonic() >= end:
                raise self._busy()
            time.sleep(0.05)

    def _tried(self, stack: ExitStack, shared: bool) -> Lock | None:
        """Return the lock, its file open as long as `stack`; None if it is to be tried again."""
        try:
            with self.writing(LOCK, "what was finished"):
                file = stack.enter_context(opened_to_append(self.path / LOCK))
        except StorageError as problem:
            if not isinstance(problem.__cause__, FileNotFoundError):
                raise
            self._make()  # a run has just finished and removed the folder
            return None
        gained = try_lock(file, "LOCK_EX")
        alone = gained is True
        if gained is False:
            if not shared:
                raise self._busy()
            gained = try_lock(file, "LOCK_SH")
        if gained is None:
            return Lock(None, alone=False)
        # What was removed before it was locked keeps nobody out.
        return Lock(file, alone) if gained and self._is_current(file) else None

    def _is_current(self, file: BinaryIO) -> bool:
        with suppress(FileNotFoundError):
            there, mine = os.stat(self.path / LOCK), os.fstat(file.fileno())
            return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)
        return False

    def _busy(self) -> InvalidInputError:
        if self.target is not None:
            allowed = f"another file, because another run is at work on it (in {self.path})"
            return InvalidInputError(self.argument, str(self.target), allowed)
        allowed = "a folder in which no other run is at work"
        return InvalidInputError(self.argument, str(self.path), allowed)

    def _remove_leftovers(self, alone: bool) -> None:
        """Remove temporary files; only old ones, if those of runs at work may be among them."""
        limit = time.time() - STRAY_AGE
        for pattern in self.files:
            for file in leftovers(self.path, pattern):
                with suppress(OSError):  # somebody else was quicker, or it is not ours
                    if alone or file.stat().st_mtime < limit:
                        file.unlink()


class _Nothing:
    """Stands for a value that is not there, which None may be."""

    def __str__(self) -> str:
        return "nothing"


_NOTHING = _Nothing()


def parts_of(target: Path) -> Path:
    """Return the folder that keeps the finished points of the file `target`."""
    return target.with_name(target.name + ".parts")


def digest(document: Mapping[str, Any]) -> str:
    """Return the checksum of a document."""
    return hashlib.sha256(canonical_json(document).encode()).hexdigest()


def differences(held: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Say in which values two identities (as JSON values) differ, those of groups one by one.

    Examples
    --------
    >>> differences({"seed": 0, "fixed": {"n": 2}}, {"seed": 1, "fixed": {"n": 2}})
    ['seed = 0, not 1']
    >>> differences({"fixed": {"n": 2}}, {"fixed": {"n": 3, "jd": 0.5}})
    ['n = 2, not 3', 'jd = nothing, not 0.5']
    """
    changes = []
    for name in {**held, **wanted}:
        one, two = held.get(name, _NOTHING), wanted.get(name, _NOTHING)
        if isinstance(one, Mapping) and isinstance(two, Mapping):
            changes += differences(one, two)
        elif one != two:
            changes.append(f"{name} = {one}, not {two}")
    return changes
