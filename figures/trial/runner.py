"""Hold the trial: which run is next, what it costs, and whether it can be repeated.

The value of a stage of a question is the number of its claims that are still open over the cost
of the runs that it lacks; the stage with the highest value is run next. A run that is killed goes
on from its last checkpoint; results are stored one by one.

What a run costs on this machine in CPU-seconds is said best by one of the same kind and size that
it has stored. Otherwise a piece of the run is timed: some batches of its epoch, after a first round
that compiles, and inference on some samples; the rest follows by the number of batches, of epochs
and of those at which it is measured. :func:`outlook` says it for readers of the report, from the
runs of all machines.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from figures.claims import DECIDED, claim_named
from figures.claims.claim import Judged
from figures.engine.figure import ROOT
from figures.trial import designs
from figures.trial.evidence import Stored
from figures.trial.runs import Question, Run, Search, merged
from figures.trial.store import Metrics, Result, Store, machine, unpack, without_seed
from rmtheory.base import checks
from rmtheory.base.errors import (
    InvalidInputError,
    RMError,
    UnreadableDataError,
    counted,
    duration,
)
from rmtheory.base.statistics import sample_error
from rmtheory.runtime.files import write_text
from rmtheory.runtime.progress import Progress, silent
from rmtheory.runtime.provenance import parameters_hash
from rmtheory.runtime.run_store import RunStore

#: Where killed runs leave what they have.
WORK = ROOT / "figures" / "out" / ".trial"


def judged(claim: str, stored: Stored) -> Judged:
    """Return the verdict of the stored runs alone on the claim with this id."""
    known = claim_named(claim)
    return Judged(known, stored.number(known))


def perform(run: Run, folder: Path | None = None) -> tuple[str, Metrics, float]:
    """Execute `run` on its data; return the checksum of these, the metrics and the CPU-seconds.

    What was spent before a run was killed is counted too, if it goes on from there.
    """
    began = time.process_time()
    spent = _spent(folder)
    data = data_of(run)

    def progress(epoch: int) -> None:
        if folder is not None:
            text = json.dumps(spent + time.process_time() - began)
            write_text(folder / "spent", text)

    metrics = run.execute(data, folder, progress)
    checksum = data.checksum if run.dataset else ""
    return checksum, metrics, spent + time.process_time() - began


def data_of(run: Run) -> Any:
    """Return the part of the data set that `run` takes; None if it needs no data."""
    from rmsim.data.catalogue import load

    if not run.dataset:
        return None
    whole = load(run.dataset, download=False)
    return run.part(whole)


def _spent(folder: Path | None) -> float:
    if folder is None or not (folder / "checkpoint.npz").exists():
        return 0.0
    try:
        return float(json.loads((folder / "spent").read_text()))
    except (OSError, ValueError):
        return 0.0


@dataclass(frozen=True)
class Step:
    """A stage of a question, with what it lacks.

    Parameters
    ----------
    question : Question
        What it is about.
    stage : int
        Its number, from 0.
    missing : tuple of runs
        What has to be run.
    open : tuple of str
        Claims that the stages before it have not decided.
    cost : float
        CPU-seconds of what is missing on this machine.
    """

    question: Question
    stage: int
    missing: tuple[Run, ...]
    open: tuple[str, ...]
    cost: float

    @property
    def value(self) -> float:
        """Open claims per core-hour."""
        return 3600 * len(self.open) / self.cost if self.cost else math.inf


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread of torch: the last bits of results depend on their number."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@dataclass(frozen=True)
class Trial:
    """The questions, the store, and where the work is done."""

    store: Store = field(default_factory=Store)
    work: Path = WORK
    questions: tuple[Question, ...] = field(default_factory=designs.questions)

    def costs(self, progress: Progress = silent) -> Costs:
        """Return what runs cost on this machine; sizes that are left and not known are timed."""
        costs = Costs.of_machine(self.store, self.work)
        stored = Stored.of(self.store)
        left = [run for one in self.questions for run in self._left(one, stored)]
        sizes = list({size_key(run): run for run in left if not costs.knows(run)}.values())
        for done, run in enumerate(sizes):
            progress(done, len(sizes))
            costs.of(run)
        if sizes:
            progress(len(sizes))
        return costs

    def _left(self, question: Question, stored: Stored) -> list[Run]:
        """Return the runs of a question that may still be made."""
        asked = bool(self._open(question, stored))
        return [
            run
            for stage, runs in enumerate(question.stages)
            for run in runs
            if (asked or not stage) and not stored.covers(run)
        ]

    def steps(self, costs: Costs) -> list[Step]:
        """Return the next stage of every question that is not answered, highest value first."""
        stored = Stored.of(self.store)
        steps = []
        for question in self.questions:
            step = self._step(question, stored, costs)
            if step is not None:
                steps.append(step)
        return sorted(steps, key=lambda step: -step.value)  # stable: order of the questions

    def _step(self, question: Question, stored: Stored, costs: Costs) -> Step | None:
        for stage, runs in enumerate(question.stages):
            missing = tuple(run for run in runs if not stored.covers(run))
            if missing:
                open_claims = self._open(question, stored)
                if not open_claims and stage:
                    return None
                cost = sum(costs.of(run) for run in missing)
                return Step(question, stage, missing, open_claims, cost)
        return None

    def _open(self, question: Question, stored: Stored) -> tuple[str, ...]:
        return tuple(
            claim for claim in question.claims if judged(claim, stored).verdict not in DECIDED
        )

    def hold(
        self,
        hours: float,
        say: Callable[[str], None] = lambda sentence: None,
        clock: Callable[[], float] = time.monotonic,
        costs: Costs | None = None,
    ) -> Iterator[Result]:
        """Run what is next for at most `hours`, and give the results as they are stored.

        A run that would end later than that is not begun. Costs are those of :meth:`costs`.
        """
        end = clock() + 3600 * checked_hours(hours)
        costs = self.costs() if costs is None else costs
        failed: set[str] = set()
        with RunStore(self.work).at_work():
            while True:
                step = self._next(costs, end - clock(), failed)
                if step is None:
                    return
                for run in step.missing:
                    if clock() + costs.of(run) > end:
                        break
                    say(
                        f"{step.question.name}, {step.question.stage_name(step.stage)}: "
                        f"{run.title}, about {costs.of(run):.0f} s"
                    )
                    try:
                        result = self.run(run)
                        costs.learn(result)
                        yield result
                    except RMError as problem:
                        failed.add(run.key)
                        say(f"{run.title} failed: {problem}")
                        break

    def _next(self, costs: Costs, left: float, failed: set[str]) -> Step | None:
        """Return the step of highest value of which at least one run fits into the time left."""
        for step in self.steps(costs):
            ready = [run for run in step.missing if run.key not in failed]
            if ready and costs.of(ready[0]) <= left:
                return replace(step, missing=tuple(ready))
        return None

    @one_thread()
    def run(self, run: Run) -> Result:
        """Execute a run, with all epochs at which a question needs it, and store its result."""
        wanted = self._in_full(run)
        folder = self.work / wanted.key[:16]
        folder.mkdir(parents=True, exist_ok=True)
        result = self.store.add(wanted, *perform(wanted, folder))
        shutil.rmtree(folder, ignore_errors=True)
        return result

    def _in_full(self, run: Run) -> Run:
        """Return `run` with the epochs of other questions that it passes on its way."""
        last = run.epochs[-1]
        same = [
            replace(other, epochs=epochs)
            for question in self.questions
            for other in question.runs
            if other.key == run.key and (epochs := tuple(e for e in other.epochs if e <= last))
        ]
        return merged([run, *same])[0]

    def about(self, claim: str) -> Trial:
        """Return the trial of one claim alone, by its id.

        Raises
        ------
        InvalidInputError
            If there is no such claim, or no runs decide it.
        """
        known = claim_named(claim)
        chosen = designs.questions_of(claim)
        if not chosen:
            way = designs.command(known) or "no command of ours"
            allowed = f"a claim that runs of the trial decide; this one: {way}"
            raise InvalidInputError("id", claim, allowed)
        return replace(self, questions=chosen)

    def verify(self) -> Iterator[Comparison]:
        """Repeat the stored runs one by one, and compare."""
        runs = all_runs(self.questions)
        there = [(run, held) for run in runs if (held := self.store.get(run)) is not None]
        if not there:
            name = ", ".join(question.name for question in self.questions)
            raise InvalidInputError("id", name, "a claim with stored runs: 'make decide' first")
        for run, result in there:
            epochs = tuple(epoch for epoch in run.epochs if epoch in result.metrics)
            yield compare(replace(run, epochs=epochs), result)

    def plan(self, costs: Costs | None = None) -> Iterator[str]:
        """Give the plan line by line: every run, its cost, what is done and what is left.

        What is left costs so much on this machine, by :meth:`costs`; what is done has taken so much
        on that which made it.
        """
        costs = self.costs() if costs is None else costs
        stored = Stored.of(self.store)
        seconds: dict[str, dict[str, float]] = {"done": {}, "left": {}}
        order = {step.question.name: step.value for step in self.steps(costs)}
        for question in sorted(self.questions, key=lambda one: -order.get(one.name, -1.0)):
            still = self._open(question, stored)
            left = {run.key for run in self._left(question, stored)}
            of = counted(len(question.claims), "claim")
            state = f"{len(still)} of {of} open" if question.claims else "decides no claim"
            value = order.get(question.name)
            worth = "" if value is None else f", {value:.2g} per core-hour"
            yield f"{question.name} ({question.data}): {state}{worth}"
            for stage, runs in enumerate(question.stages, 1):
                for run in runs:
                    if stored.covers(run):
                        mark, cost = "done", stored.results[run.key].cpu_seconds
                    elif run.key in left:
                        mark, cost = "left", costs.of(run)
                    else:
                        mark, cost = "not needed", math.nan
                    if math.isfinite(cost):
                        seconds[mark][run.key] = cost
                    yield f"  {stage} {mark:10} {_price(cost)}  {run.title}, {_epochs(run)}"
        done, ahead = (sum(each.values()) / 3600 for each in seconds.values())
        yield (
            f"{done:.1f} core-hours done, {ahead:.1f} left on this machine if every stage is "
            f"needed; {self.summary()}"
        )

    def summary(self) -> str:
        """Say how many claims are decided by stored runs."""
        stored = Stored.of(self.store)
        claims = dict.fromkeys(claim for one in self.questions for claim in one.claims)
        decided = sum(judged(claim, stored).verdict in DECIDED for claim in claims)
        return f"{decided} of {counted(len(claims), 'claim')} decided"


def _price(seconds: float) -> str:
    """Return what a run costs, ten characters: infinite without its data, NaN if not asked."""
    if math.isnan(seconds):
        return " " * 10
    return f"{seconds:8.0f} s" if math.isfinite(seconds) else "no data here"


def _epochs(run: Run) -> str:
    return f"epochs {', '.join(map(str, run.epochs))}"


@dataclass(frozen=True)
class Comparison:
    """A run that was repeated.

    Parameters
    ----------
    title : str
        Of the run.
    identical : bool
        Whether all metrics are the same to the bit.
    same : bool
        Whether they are but for the rounding of numbers: fields are sums in single precision, whose
        order may change with the code (:data:`_ROUNDING`). Images and networks are the same then.
    same_machine : bool
        Whether processor and threads are those of the stored run, so that they have to be.
    largest : float, optional
        Largest difference of shares of images or of networks, in units of its error. None if
        nothing that was measured has an error of its own, so that only equality says anything.
    cpu_seconds : float
        Of the repetition.
    """

    title: str
    identical: bool
    same: bool
    same_machine: bool
    largest: float | None
    cpu_seconds: float

    @property
    def passed(self) -> bool:
        """The same but for rounding, or on another machine within three errors."""
        within = self.largest is not None and self.largest <= 3.0
        return self.same or (not self.same_machine and within)


@one_thread()
def compare(run: Run, result: Result) -> Comparison:
    """Repeat `run` and compare with the stored result, bit by bit."""
    data, metrics, seconds = perform(run)
    here = machine()
    there = all(result.provenance.get(name) == value for name, value in here.items())
    identical = same = data == result.data
    gaps = []
    for epoch, row in metrics.items():
        stored = result.metrics[epoch]
        identical &= stored == row
        same &= _same(stored, row)
        for name, value in row.items():
            if isinstance(value, Mapping) and "bits" in value:
                gap = unpack(value).astype(float) - unpack(stored[name])
                # One image at least: without any change the deviation vanishes.
                error = max(sample_error(gap), 1 / len(gap))
                gaps.append(abs(float(gap.mean())) / error)
    return Comparison(run.title, identical, same, there, max(gaps, default=None), seconds)


#: How far metrics may be from each other that differ by rounding, for numbers of order 1.
_ROUNDING = 1e-5


def _same(one: object, other: object) -> bool:
    """Return whether JSON values are the same but for the rounding of numbers.

    Examples
    --------
    >>> _same({"margin": [0.5, 1]}, {"margin": [0.5000001, 1]}), _same([1], [1, 2])
    (True, False)
    """
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= _ROUNDING * max(1.0, abs(one))
    return one == other


def checked_hours(hours: object) -> float:
    """Return a number of hours above 0."""
    value = float(checks.exact_real("hours", hours))
    if not 0 < value <= 10_000:
        raise InvalidInputError("hours", hours, "above 0 and at most 10000")
    return value


def all_runs(questions: Sequence[Question]) -> list[Run]:
    """Return every run of the trial once, with all epochs at which it is measured."""
    return merged([run for question in questions for run in question.runs])


_FILE = "calibration.json"


def size_key(run: Run) -> str:
    """Return a hash of all that a cost depends on: the run without its seed.

    Searches cost much the same along a curve of success: J_D is left out of theirs.
    """
    return _size(run.identity, run.epochs[-1])


def _size(identity: Mapping[str, Any], last: int) -> str:
    parts = without_seed(identity)
    if identity["kind"] == Search.kind:
        del parts["jd"]
    # A network that does not learn costs its metrics alone.
    return parameters_hash({**parts, "learns": last > 0})


@dataclass
class Costs:
    """Costs that are known: hash of the size -> CPU-seconds of an epoch, and of the metrics."""

    known: dict[str, float] = field(default_factory=dict)
    file: Path | None = None
    calibrate: bool = True

    @classmethod
    def of_machine(cls, store: Store, work: Path, *, calibrate: bool = True) -> Costs:
        """Return what this machine's stored runs and earlier calibrations say."""
        here = machine()["machine"]
        known = _load(work, here)
        costs = cls(known, work / _FILE, calibrate)
        for result in store.results():
            if result.machine == here:
                costs.learn(result)
        return costs

    def learn(self, result: Result) -> None:
        """Take the cost of a run that this machine has made."""
        last = max(result.metrics)
        self.known[_size(result.identity, last)] = result.cpu_seconds / (last or 1)

    def knows(self, run: Run) -> bool:
        """Return whether the cost is known without timing a piece of the run."""
        return size_key(run) in self.known

    def of(self, run: Run) -> float:
        """Return the CPU-seconds of `run`; infinity if its data are not on this machine."""
        key = size_key(run)
        if key not in self.known:
            if not self.calibrate:
                return math.nan
            with one_thread():
                self.known[key] = run.seconds_per_epoch()
            self._save()
        return self.known[key] * (run.epochs[-1] or 1)

    def _save(self) -> None:
        if self.file is None:
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        finite = {key: value for key, value in self.known.items() if math.isfinite(value)}
        content = {"machine": machine()["machine"], "seconds": finite}
        RunStore(self.file.parent).save(self.file.name, content)


def _load(work: Path, here: str) -> dict[str, float]:
    try:
        held = RunStore(work).load(_FILE)
    except (FileNotFoundError, UnreadableDataError):
        return {}
    if held.get("machine") != here or not isinstance(held.get("seconds"), dict):
        return {}
    return {str(key): float(value) for key, value in held["seconds"].items()}


# What would decide the claims that are open, for readers of the report.


#: Said of a claim that all its runs leave open.
NO_MORE = "stays open: all stages of its runs are done"


def outlook(stored: Stored, questions: Sequence[Question] | None = None) -> dict[str, str]:
    """Say of every claim that stored runs leave open which runs are next, and what they cost.

    Costs are those of stored runs of the same kind and size on any machine, per epoch; of a network
    of a size that no run has, that of the largest smaller one, times the square of their ratio.
    """
    asked = designs.questions() if questions is None else questions
    paces = _Paces.of(stored)
    said: dict[str, list[str]] = {}
    for question in asked:
        missing = [[run for run in runs if not stored.covers(run)] for runs in question.stages]
        following = next((stage for stage, runs in enumerate(missing) if runs), None)
        for claim in question.claims:
            if judged(claim, stored).verdict in DECIDED:
                continue
            if following is None:
                sentence = NO_MORE
            else:
                sentence = f"{question.stage_name(following)} is next: "
                sentence += _effort(missing[following], paces)
            said.setdefault(claim, []).append(sentence)
    return {claim: _together(sentences) for claim, sentences in said.items()}


def _together(sentences: Sequence[str]) -> str:
    """Return what is next by any of the questions about a claim."""
    following = dict.fromkeys(one for one in sentences if one != NO_MORE)
    return "; ".join(following or [NO_MORE])


def _effort(runs: Sequence[Run], paces: _Paces) -> str:
    """Say how many runs these are and how long they take, as far as that is known."""
    times = [paces.seconds(run) for run in runs]
    known = [seconds for seconds in times if seconds is not None]
    text = counted(len(runs), "run")
    if known:
        text += f", {duration(float(f'{sum(known):.2g}'))} of a core"
    if len(known) < len(runs):
        text += f", {len(runs) - len(known)} of a size that is not timed"
    return text


@dataclass(frozen=True)
class _Paces:
    """CPU-seconds of an epoch of stored runs.

    Parameters
    ----------
    same : mapping
        Hash of all that a cost depends on -> those of the slowest run.
    alike : mapping
        What is run -> its N or width -> the same, whatever the other settings are.
    """

    same: Mapping[str, float]
    alike: Mapping[str, Mapping[int, float]]

    @classmethod
    def of(cls, stored: Stored) -> _Paces:
        """Return the paces of all stored runs, on any machine."""
        same: dict[str, float] = {}
        alike: dict[str, dict[int, float]] = {}
        for result in stored.results.values():
            name, size = _kind_and_size(result.title)
            last = max(result.metrics)
            pace = result.cpu_seconds / (last or 1)
            of_kind = alike.setdefault(name, {})
            of_kind[size] = max(of_kind.get(size, 0.0), pace)
            key = _size(result.identity, last)
            same[key] = max(same.get(key, 0.0), pace)
        return cls(same, alike)

    def seconds(self, run: Run) -> float | None:
        """Return the CPU-seconds of `run`; None if nothing like it is stored."""
        name, size = _kind_and_size(run.title)
        of_kind = self.alike.get(name, {})
        epochs = run.epochs[-1] or 1
        pace = self.same.get(size_key(run), of_kind.get(size))
        if pace is not None:
            return pace * epochs
        smaller = [known for known in of_kind if known < size]
        if not smaller or run.epochs[-1] == 0:
            return None
        return of_kind[max(smaller)] * (size / max(smaller)) ** 2 * epochs


def _kind_and_size(title: str) -> tuple[str, int]:
    """Return the title of a run without seed, J_D and rate, and its N or its width.

    Examples
    --------
    >>> _kind_and_size("role-of-jd_n400_jd0.5_s3")
    ('role-of-jd', 400)
    """
    kept = [part for part in title.split("_") if not re.fullmatch(r"(s|jd|eta)[\d.e-]+", part)]
    sizes = [part for part in kept if re.fullmatch(r"[nh]\d+", part)]
    name = "_".join(part for part in kept if part not in sizes)
    return name, int(sizes[0][1:]) if sizes else 0
