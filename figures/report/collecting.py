"""Gather what is in a folder of figures: pictures, provenance, failures, numbers.

Our numbers for all claims and the runs they come from, as plain values that JSON can hold.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import xarray as xr

from figures.claims import CLAIMS, DECIDED, SECTIONS
from figures.claims.claim import Claim, Judged, Origin, Ours, Verdict, indicative, judge
from figures.engine.figure import Figure, Scale, failures
from figures.trial.designs import command, questions_of
from figures.trial.evidence import TRIED, Stored
from figures.trial.runner import outlook
from figures.trial.store import OfPlan, Store
from rmtheory.base.errors import UnreadableDataError
from rmtheory.runtime import netcdf
from rmtheory.runtime.provenance import git_state
from rmtheory.runtime.untrusted import MALFORMED, parse_json, read_bytes

#: What JSON gives for the fields of our numbers and runs.
_TYPES = {"float": (int, float), "int": (int,), "str": (str,)}

Made = TypeVar("Made", "Ours", "Origin", "Run")


@dataclass(frozen=True)
class Run:
    """What was run for one data set."""

    scale: str
    seed: str
    commit: str
    dirty: str
    date: str
    seconds: float
    #: Hash of parameters and version of the figure, see :meth:`figures.engine.figure.Figure.key`.
    key: str = ""

    @classmethod
    def of(cls, data: xr.Dataset) -> Run:
        """Read it off the provenance of a data set."""
        attributes = data.attrs
        texts = ("scale", "seed", "git_commit", "git_dirty", "date")
        scale, seed, commit, dirty, date = (str(attributes.get(name, "unknown")) for name in texts)
        seconds = float(attributes.get("wall_time_seconds", "nan"))
        key = str(attributes.get("parameters_hash", ""))
        return cls(scale, seed, commit, dirty, date, seconds, key)

    @property
    def source(self) -> str:
        """The commit in short, and whether the tree differed from it."""
        return self.commit[:10] + (" with changes" if self.dirty == "yes" else "")


@dataclass(frozen=True)
class Results:
    """Our number for every claim that has one, and the run of every data set."""

    numbers: Mapping[str, Ours]
    runs: Mapping[str, Run]
    #: For claims without a number: what smaller sizes or too few networks give; no verdict.
    indicative: Mapping[str, Ours] = field(default_factory=dict)
    #: Data set and change -> ours minus the perceptron: what moves the central claim.
    moves: Mapping[str, Ours] = field(default_factory=dict)
    #: Id of a claim that stored runs leave open -> which runs are next, and what they cost; None if
    #: they were not asked.
    outlook: Mapping[str, str] | None = None

    @classmethod
    def of(cls, data: Mapping[str, xr.Dataset], stored: Stored | None = None) -> Results:
        """Read all numbers off the data sets that are there, or off stored runs if there are some.

        Stored runs are those of the trial (:mod:`figures.trial`): they reach sizes, epochs and
        errors that figures at quick scale do not.
        """
        numbers, rough = {}, {}
        for claim in CLAIMS:
            number = judge(claim, data.get(claim.data)).ours
            held = None if stored is None else stored.number(claim)
            # Stored runs are of several networks; the error of a figure's one lacks their spread.
            if held is not None:
                number = held
            if number is not None:
                numbers[claim.key] = number
                continue
            hint = None if stored is None else stored.indicative(claim)
            if hint is None:
                hint = indicative(claim, data.get(claim.data))
            if hint is not None:
                rough[claim.key] = hint
        runs = {name: Run.of(one) for name, one in sorted(data.items())}
        moves = {} if stored is None else stored.moves()
        ahead = None if stored is None else outlook(stored)
        return cls(_rounded(numbers), runs, _rounded(rough), _rounded(moves), ahead)

    def judged(self, claim: Claim) -> Judged:
        """Return `claim` with our number and the verdict."""
        run = claim.data in self.runs or claim.data in TRIED
        return Judged(claim, self.numbers.get(claim.key), run=run)

    def counted(self, title: str) -> dict[Verdict, int]:
        """Return how many claims of a section have each verdict."""
        verdicts = [self.judged(claim).verdict for claim in SECTIONS[title]]
        return {verdict: verdicts.count(verdict) for verdict in Verdict}

    def over(self, earlier: Results, current: Collection[str]) -> Results:
        """Return these results, and the earlier ones of data sets that are not among these.

        Earlier ones are kept only if their key is `current`: what other parameters or another
        version of a figure gave is not our number any more.
        """
        kept = {
            name: run
            for name, run in earlier.runs.items()
            if name not in self.runs and run.key in current
        }
        numbers = {
            claim.key: earlier.numbers[claim.key]
            for claim in CLAIMS
            if claim.data in kept
            and claim.key in earlier.numbers
            and earlier.numbers[claim.key].stored is None  # else the store says it anew
        }
        numbers |= self.numbers
        rough = {
            claim.key: hint
            for claim in CLAIMS
            if claim.key not in numbers
            and (hint := self.indicative.get(claim.key) or earlier.indicative.get(claim.key))
        }
        runs = dict(sorted({**kept, **self.runs}.items()))
        ahead = earlier.outlook if self.outlook is None else self.outlook
        return Results(numbers, runs, rough, {**earlier.moves, **self.moves}, ahead)

    def described(self, claim: Claim) -> dict[str, Any]:
        """Return all that is known of a claim, as plain values that JSON can hold."""
        judged, hint = self.judged(claim), self.indicative.get(claim.key)
        ours = judged.ours
        return {
            "id": claim.id,
            "section": next(title for title, claims in SECTIONS.items() if claim in claims),
            "quantity": claim.quantity,
            "printed": claim.printed,
            "where": claim.where,
            "relation": str(claim.relation),
            "number": claim.number,
            "granted": claim.slack,
            "reason": claim.reason,
            "class": str(claim.sort),
            "needs": claim.needs,
            "command": command(claim),
            "value": None if ours is None else ours.value,
            "error": None if ours is None else ours.error,
            "at": "" if ours is None else ours.at,
            **_sizes(claim),
            **self._provenance(claim, ours),
            "indicative": None if hint is None else hint.value,
            "indicative_at": "" if hint is None else hint.at,
            "verdict": str(judged.verdict),
            "text": judged.text,
            "outlook": self.ahead(claim),
            "remark": judged.remark,
        }

    def ahead(self, claim: Claim) -> str:
        """Say what would decide a claim that is open; nothing of one that is decided."""
        verdict = self.judged(claim).verdict
        if verdict in DECIDED:
            return ""
        if verdict is Verdict.ABSENT:
            return "needs data that are not ours to distribute"
        if claim.read is None:  # its note says what it would take
            return claim.note or "no run of ours measures it"
        return (self.outlook or {}).get(claim.id) or command(claim)

    @property
    def open(self) -> tuple[Claim, ...]:
        """The claims without a verdict."""
        return tuple(claim for claim in CLAIMS if self.judged(claim).verdict not in DECIDED)

    def _provenance(self, claim: Claim, ours: Ours | None) -> dict[str, Any]:
        """Say which run gave our number; where there is none, which was there."""
        if ours is not None and ours.stored is not None:
            made = {"seed": ours.stored.seeds, "commit": ours.stored.commits, "date": ""}
            return {"scale": "decide", "runs": ours.stored.runs, **made}
        run = self.runs.get(claim.data)
        names = ("scale", "runs", "seed", "commit", "date")
        if run is None:
            return dict.fromkeys(names, "") | {"runs": 0}
        return {name: 1 if name == "runs" else getattr(run, name) for name in names}

    def claims_json(self) -> str:
        """Return all claims with their verdicts as JSON."""
        claims = [self.described(claim) for claim in CLAIMS]
        return json.dumps(claims, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def to_json(self) -> str:
        """Return the numbers and the runs as JSON."""
        document = {
            "numbers": _plain(self.numbers),
            "runs": {name: asdict(run) for name, run in self.runs.items()},
            "indicative": _plain(self.indicative),
            "moves": _plain(self.moves),
            "outlook": None if self.outlook is None else dict(self.outlook),
        }
        return json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Results:
        """Return what :meth:`to_json` wrote.

        Raises
        ------
        UnreadableDataError
            If it is something else.
        """
        try:
            document = parse_json(text)
            ahead = document.get("outlook")
            return cls(
                {key: _number(value) for key, value in document["numbers"].items()},
                {name: _run(value) for name, value in document["runs"].items()},
                {key: _number(value) for key, value in document.get("indicative", {}).items()},
                {key: _number(value) for key, value in document.get("moves", {}).items()},
                None if ahead is None else {str(key): str(one) for key, one in ahead.items()},
            )
        except MALFORMED as problem:
            raise UnreadableDataError(f"published results were altered: {problem}") from None


def _sizes(claim: Claim) -> dict[str, list[float]]:
    """Return N, of a layer, and the epochs: what the reader fixes, else those of the runs."""
    runs = [run for question in questions_of(claim.id) for stage in question.first for run in stage]
    widths = {
        run.plan.parameters.couplings.n if isinstance(run, OfPlan) else getattr(run, "n", 0)
        for run in runs
    }
    epochs = {run.epochs[-1] for run in runs if run.dataset}
    return {
        "n": claim.demanded("n") or sorted(widths - {0}),
        "epochs": claim.demanded("epochs", "epoch") or sorted(epochs),
    }


def _rounded(numbers: Mapping[str, Ours]) -> dict[str, Ours]:
    """Return numbers without the last bits, which differ from machine to machine."""
    return {
        key: replace(
            one,
            value=_digits(one.value, one.error),
            error=_digits(one.error, one.error),
            theirs=_digits(one.theirs, one.theirs),
        )
        for key, one in numbers.items()
    }


def _digits(value: float, error: float) -> float:
    """Return `value` to a ten-thousandth of its error: last bits, which differ by machine, go.

    Examples
    --------
    >>> _digits(0.0416770266316, 0.0367862732), _digits(2 / 3, 0.0)
    (0.041677, 0.666666666667)
    """
    if 0 < error < math.inf:
        return round(value, 4 - math.floor(math.log10(error)))
    return float(f"{value:.12g}")


def _plain(numbers: Mapping[str, Ours]) -> dict[str, dict[str, Any]]:
    """Return numbers as JSON values; those of no stored runs say nothing of them."""
    rows = {}
    for key, one in numbers.items():
        rows[key] = {"value": one.value, "error": one.error, "at": one.at}
        if one.theirs:
            rows[key]["theirs"] = one.theirs
        if one.stored is not None:
            rows[key]["stored"] = asdict(one.stored)
    return rows


def _number(values: Mapping[str, Any]) -> Ours:
    """Return what :func:`_plain` made of a number; raise TypeError if it is something else."""
    rest = {name: value for name, value in values.items() if name != "stored"}
    known = ("value", "error", "at", *(("theirs",) if "theirs" in values else ()))
    number = _made(Ours, rest, known)
    if "stored" not in values:
        return number
    names = tuple(one.name for one in fields(Origin))
    return replace(number, stored=_made(Origin, values["stored"], names))


def _run(values: Mapping[str, Any]) -> Run:
    """Return a run from its JSON values; raise TypeError if they are something else."""
    return _made(Run, values, tuple(one.name for one in fields(Run)))


def _made(kind: type[Made], values: Mapping[str, Any], names: tuple[str, ...]) -> Made:
    """Return something from the JSON values of its fields; raise TypeError if one is another."""
    made, types = kind(**values), {one.name: str(one.type) for one in fields(kind)}
    for name in names:
        value = getattr(made, name)
        if not isinstance(value, _TYPES[types[name]]):
            raise TypeError(f"{name} is {value!r}")
    return made


class State(StrEnum):
    """What became of a figure."""

    MADE = "made"
    #: Made, by another version of the code or of its parameters.
    OUTDATED = "outdated"
    FAILED = "failed"
    #: It was not requested yet.
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


def gather(folder: Path, figures: Mapping[str, Figure], store: Store | None = None) -> Report:
    """Return the report on what is in `folder`; a figure that failed lends no numbers.

    Parameters
    ----------
    folder : Path
        Where the figures are.
    figures : mapping
        All figures by name.
    store : Store, optional
        Stored runs of the trial; by default those of the repository.
    """
    failed = failures(folder)
    # Each file is read once: figures share data, and claims read them too.
    names = [figure.data_file for figure in figures.values()]
    names += [f"{claim.data}.nc" for claim in CLAIMS if claim.data]
    datasets = {name: _load(folder / name) for name in dict.fromkeys(names)}
    entries = tuple(
        _entry(figure, folder, datasets[figure.data_file], failed.get(name))
        for name, figure in figures.items()
    )
    unusable = {
        entry.figure.data_file for entry in entries if entry.state in (State.FAILED, State.OUTDATED)
    }
    data = {
        claim.data: one
        for claim in CLAIMS
        if f"{claim.data}.nc" not in unusable
        and isinstance(one := datasets.get(f"{claim.data}.nc"), xr.Dataset)
    }
    stored = Stored.of(Store() if store is None else store)
    return Report(entries, Results.of(data, stored), git_state()[0])


def _load(path: Path) -> xr.Dataset | str | None:
    """Return the data, what is wrong with them, or None if there are none."""
    try:
        data = netcdf.load(path)
        # Files of version 0.1 have no checksum of their attributes.
        Run.of(data)
        _document(data, "parameters")
        _document(data, "versions")
        return data
    except FileNotFoundError:
        return None
    except UnreadableDataError as problem:
        return str(problem)
    except MALFORMED as problem:
        return f"{path} was altered: its attributes are not ours ({problem})"


def _document(data: xr.Dataset, name: str) -> dict[str, Any]:
    """Return an attribute that is a JSON text of names and values."""
    return dict(parse_json(data.attrs.get(name, "{}"), constants=True))


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
    try:
        image = read_bytes(picture)
    except UnreadableDataError as problem:
        return Entry(figure, State.FAILED, str(problem))
    run = Run.of(data)
    current = run.scale in list(Scale) and (
        data.attrs.get("parameters_hash") in figure.keys(Scale(run.scale))
    )
    return Entry(
        figure,
        State.MADE if current else State.OUTDATED,
        "" if current else "Made by another version of the code: its numbers are not used.",
        run=run,
        parameters=_document(data, "parameters"),
        versions=_document(data, "versions"),
        picture=image,
    )
