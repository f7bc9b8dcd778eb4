"""The folder of a run.

    run.json          the plan, the data, and where every session of the run took place
    log.jsonl         one line of measurements an epoch, readable while the run goes on
    checkpoint.npz    the weights after the last whole epoch
    probe.npz         the softmax probe, if one was trained

All but the log are replaced as a whole; the log only grows. One run at a time works in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rmsim.training.log import read_log
from rmsim.training.plan import Plan, differences
from rmtheory.errors import InvalidInputError, StorageError, UnreadableDataError
from rmtheory.files import remedy, write_text


@dataclass(frozen=True)
class Folder:
    """Reads and writes the files of a run."""

    path: Path

    @property
    def manifest(self) -> Path:
        """What the run is."""
        return self.path / "run.json"

    @property
    def log(self) -> Path:
        """Measurements."""
        return self.path / "log.jsonl"

    @property
    def checkpoint(self) -> Path:
        """Weights."""
        return self.path / "checkpoint.npz"

    @property
    def probe(self) -> Path:
        """Weights of the probe."""
        return self.path / "probe.npz"

    def records(self) -> list[dict[str, Any]]:
        """Return the measurements so far."""
        return read_log(self.log)

    def claim(self, plan: Plan, data: str) -> None:
        """Make the folder that of the run `plan`, or find that it is.

        Raises
        ------
        InvalidInputError
            If it holds another run, naming what differs, or cannot be written.
        """
        if (self.path / "sweep.json").exists():
            where = f"{self.path}, which holds a sweep (sweep.json)"
            raise InvalidInputError("out", where, "a new folder or that of the same run")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            allowed = f"a folder that can be written ({problem.strerror})"
            raise InvalidInputError("out", str(self.path), allowed) from None
        if not self.manifest.exists():
            there = [file.name for file in (self.log, self.checkpoint) if file.exists()]
            if there:
                where = f"{self.path}, which holds {there[0]} without run.json"
                raise InvalidInputError("out", where, "a new folder or that of the same run")
            return
        held = self.identity()
        others = differences(held["plan"] | {"data": held["data"]}, plan.to_dict() | {"data": data})
        if others:
            where = f"{self.path}, which holds another run: {'; '.join(others)}"
            raise InvalidInputError("out", where, "a new folder or that of the same run")

    def add_session(self, plan: Plan, data: str, session: dict[str, Any]) -> None:
        """Write down where and with what the run starts or goes on."""
        sessions = self.identity()["sessions"] if self.manifest.exists() else []
        document = {"plan": plan.to_dict(), "data": data, "sessions": [*sessions, session]}
        with self.writing("run.json"):
            write_text(self.manifest, json.dumps(document, indent=2, ensure_ascii=False) + "\n")

    def identity(self) -> dict[str, Any]:
        """Return what run.json says: plan, data, sessions.

        Raises
        ------
        InvalidInputError
            If it is no folder of a run.
        UnreadableDataError
            If run.json is damaged.
        """
        try:
            found = json.loads(self.manifest.read_text(encoding="utf-8"))
            kinds = {"plan": dict, "data": str, "sessions": list}
            for name, kind in kinds.items():
                if not isinstance(found[name], kind):
                    raise TypeError(f"{name} is {found[name]}")
            Plan.from_dict(found["plan"])
        except (FileNotFoundError, NotADirectoryError):
            allowed = "the folder of a run (with run.json), as 'rmsim train' makes it"
            raise InvalidInputError("folder", str(self.path), allowed) from None
        except (ValueError, TypeError, LookupError, UnreadableDataError) as problem:
            raise UnreadableDataError(
                f"{self.manifest} was altered or is cut off ({problem}): put back a copy, or train "
                "in another folder"
            ) from None
        return dict(found)

    @contextmanager
    def writing(self, what: str) -> Iterator[None]:
        """Turn the failure to write `what` into a sentence that says what to do."""
        try:
            yield
        except OSError as problem:
            raise StorageError(
                f"{what} of {self.path} could not be written ({problem.strerror}); everything up "
                f"to the last whole epoch is kept: {remedy(problem)} and run the same command again"
            ) from problem

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs out of the folder, as far as the system can; it forgets killed ones."""
        try:
            import fcntl
        except ImportError:  # no such locks on Windows
            yield
            return
        with self.writing(".lock"):
            file = (self.path / ".lock").open("w")
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                allowed = "a folder in which no other run is going on"
                raise InvalidInputError("out", str(self.path), allowed) from None
            yield
