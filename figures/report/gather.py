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
    # Each file is read once: figures share data, and claims read them too.
    names = [figure.data_file for figure in figures.values()]
    names += [f"{claim.data}.nc" for claim in CLAIMS if claim.data]
    found = {name: _load(folder / name) for name in dict.fromkeys(names)}
    entries = tuple(
        _entry(figure, folder, found[figure.data_file], failed.get(name))
        for name, figure in figures.items()
    )
    unusable = {
        entry.figure.data_file for entry in entries if entry.state in (State.FAILED, State.OUTDATED)
    }
    data = {
        claim.data: one
        for claim in CLAIMS
        if f"{claim.data}.nc" not in unusable
        and isinstance(one := found.get(f"{claim.data}.nc"), xr.Dataset)
    }
    return Report(entries, Results.of(data), git_state()[0])


def _load(path: Path) -> xr.Dataset | str | None:
    """Return the data, what is wrong with them, or None if there are none."""
    try:
        return store.load(path)
    except FileNotFoundError:
        return None
    except store.UnreadableDataError as problem:
        return str(problem)


def _entry(figure: Figure, folder: Path, data: xr.Dataset | str | None, failure: Any) -> Entry:
    if failure is not None:
        return Entry(
            figure, State.FAILED, f"{failure.message} (scale {failure.scale})", failure.traceback
        )
    picture = folder / f"{figure.name}.png"
    if isinstance(data, str):
        return Entry(figure, State.FAILED, data)
    if data is None or not picture.exists():
        return Entry(figure, State.MISSING, f"python -m figures {figure.name} makes it")
    image = picture.read_bytes()
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
