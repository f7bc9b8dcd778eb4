"""Gather what is in a folder of figures: pictures, provenance, failures, numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import xarray as xr

from figures.claims import CLAIMS
from figures.failures import failures
from figures.figure import Figure, Scale
from figures.report.results import Results, Run
from rmtheory import store
from rmtheory.provenance import git_state


class State(StrEnum):
    """What became of a figure."""

    MADE = "made"
    #: Made, by another version of the code or of its parameters.
    OUTDATED = "outdated"
    FAILED = "failed"
    #: Nobody asked for it yet.
    MISSING = "not made"


@dataclass(frozen=True)
class Entry:
    """One figure of the report."""

    figure: Figure
    state: State
    message: str = ""
    details: str = ""
    run: Run | None = None
    parameters: Mapping[str, Any] | None = None
    versions: Mapping[str, str] | None = None
    picture: bytes = b""


@dataclass(frozen=True)
class Report:
    """All figures and all numbers."""

    entries: tuple[Entry, ...]
    results: Results
    commit: str

    @property
    def failed(self) -> tuple[Entry, ...]:
        """The figures that could not be made."""
        return tuple(entry for entry in self.entries if entry.state is State.FAILED)


def gather(folder: Path, figures: Mapping[str, Figure]) -> Report:
    """Return the report on what is in `folder`; a figure that failed lends no numbers."""
    failed = failures(folder)
    entries = tuple(_entry(figure, folder, failed.get(name)) for name, figure in figures.items())
    unusable = {
        entry.figure.data_file for entry in entries if entry.state in (State.FAILED, State.OUTDATED)
    }
    data = {}
    for name in dict.fromkeys(claim.data for claim in CLAIMS if claim.data):
        if f"{name}.nc" not in unusable and (found := _load(folder / f"{name}.nc")) is not None:
            data[name] = found
    return Report(entries, Results.of(data), git_state()[0])


def _load(path: Path) -> xr.Dataset | None:
    try:
        return store.load(path)
    except (FileNotFoundError, store.UnreadableDataError):
        return None


def _entry(figure: Figure, folder: Path, failure: Any) -> Entry:
    if failure is not None:
        return Entry(
            figure, State.FAILED, f"{failure.message} (scale {failure.scale})", failure.traceback
        )
    picture = folder / f"{figure.name}.png"
    try:
        data = store.load(folder / figure.data_file)
        image = picture.read_bytes()
    except FileNotFoundError:
        return Entry(figure, State.MISSING, f"python -m figures {figure.name} makes it")
    except store.UnreadableDataError as problem:
        return Entry(figure, State.FAILED, str(problem))
    run = Run.of(data)
    current = run.scale in list(Scale) and (
        data.attrs.get("parameters_hash") == figure.key(Scale(run.scale))
    )
    return Entry(
        figure,
        State.MADE if current else State.OUTDATED,
        "" if current else "Made by another version of the code: its numbers are not used.",
        run=run,
        parameters=json.loads(data.attrs.get("parameters", "{}")),
        versions=json.loads(data.attrs.get("versions", "{}")),
        picture=image,
    )
