"""Runs by their keys, and their results: one small file each, in figures/data/trained.

The key of a run is a hash of what is trained, without the epochs at which it is measured: figures
that measure one network at different epochs share it. The same key and the same kind of machine
give the same numbers.

A file is written whole or not at all, ends with a checksum, and is refused if it was cut off or
altered, if its name is not that of what it says it holds, or if another version of the training
made it. Weights are not stored: :func:`figures.trial.runner.verify` trains again and compares.
A network that is killed while it learns leaves a checkpoint and its metrics, and resumes there.
"""

from __future__ import annotations

import base64
import math
import platform
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from figures.engine.figure import ROOT
from rmtheory.base.errors import RMError, UnreadableDataError
from rmtheory.runtime.provenance import attributes, parameters_hash
from rmtheory.runtime.run_store import RunStore
from rmtheory.runtime.untrusted import MALFORMED

if TYPE_CHECKING:
    from figures.trial.runs import Network, Run
    from rmsim.data.dataset import Dataset
    from rmsim.learning.run_folder import Plan
    from rmsim.learning.state import State

#: To be raised when training gives other numbers, beyond rounding: stored results are refused then.
VERSION = 1

Bits = NDArray[np.bool_]

#: Epoch -> what is measured then, as JSON values.
Metrics = dict[int, dict[str, Any]]

#: Key of the metrics in stored results, and name of the file of a killed run: that of 0.2.
STORED_METRICS = "looks"

#: Where the results of the repository are.
TRAINED = ROOT / "figures" / "data" / "trained"

#: Digits of the key in the name of a file.
_DIGITS = 10

#: What stored results record of where they were made.
_PROVENANCE = ("git_commit", "git_dirty", "versions", "python", "date")


def pack(correct: Bits) -> dict[str, Any]:
    """Return bits as JSON values.

    Examples
    --------
    >>> unpack(pack(np.array([True, False, True]))).tolist()
    [True, False, True]
    """
    packed = zlib.compress(np.packbits(correct).tobytes(), 9)
    return {"count": len(correct), "bits": base64.b64encode(packed).decode()}


def unpack(stored: Mapping[str, Any]) -> Bits:
    """Return the bits that :func:`pack` wrote."""
    try:
        count = int(stored["count"])
        unpacker = zlib.decompressobj()
        size = -(-count // 8)
        raw = unpacker.decompress(base64.b64decode(stored["bits"], validate=True), size + 1)
        bits = np.unpackbits(np.frombuffer(raw, np.uint8), count=count)
    except (KeyError, TypeError, ValueError, zlib.error) as problem:
        raise UnreadableDataError(f"not the bits of a run: {problem}") from None
    if len(raw) != size:
        raise UnreadableDataError(f"{len(raw)} bytes do not hold {count} bits")
    return bits.astype(bool)


def without_seed(identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is run, whatever its seed: what the networks of a cell have in common.

    Examples
    --------
    >>> without_seed({"kind": "network", "plan": {"dataset": "mnist", "seed": 3}, "probe": False})
    {'kind': 'network', 'plan': {'dataset': 'mnist'}, 'probe': False}
    """
    parts = {name: value for name, value in identity.items() if name != "seed"}
    if "plan" in parts:
        parts["plan"] = {name: value for name, value in parts["plan"].items() if name != "seed"}
    return parts


def as_json(metrics: Metrics) -> dict[str, Any]:
    """Return metrics with their epochs as text."""
    return {str(epoch): row for epoch, row in metrics.items()}


def from_json(stored: Mapping[str, Any]) -> Metrics:
    """Return what :func:`as_json` made."""
    return {int(epoch): dict(row) for epoch, row in stored.items()}


# A run, by its key; what it does is in figures.trial.runs.

#: Samples of the two pieces of a run that are timed.
PIECES = (320, 1600)

#: Called after an epoch, with the number of epochs done.
EpochProgress = Callable[[int], None]


def silent(epoch: int) -> None:
    """Report nothing."""


class Keyed(ABC):
    """A run with a key."""

    kind: ClassVar[str]

    if TYPE_CHECKING:

        @property
        def dataset(self) -> str:
            """Name of the data set; empty if it needs none."""

    @property
    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """What is done and how it is measured, without the epochs, as JSON values."""

    @cached_property  # the evidence of all claims asks for some ten thousand
    def key(self) -> str:
        """Hash of the identity."""
        return parameters_hash(self.identity, VERSION)

    @abstractmethod
    def execute(
        self, data: Any, folder: Path | None = None, progress: EpochProgress = silent
    ) -> Metrics:
        """Do it on the samples `data`; what is in `folder` of a killed run is not done again."""

    def part(self, whole: Dataset) -> Dataset:
        """Return the part of a data set that it takes."""
        return whole

    @abstractmethod
    def shortened(self) -> tuple[Keyed, float]:
        """Return a piece of this run that takes seconds, and how many of it one epoch takes."""

    def seconds_per_epoch(self) -> float:
        """Time a piece of this run, after a first time that compiles; return CPU-seconds."""
        piece, times = self.shortened()
        piece.execute(None)
        return timed(lambda: piece.execute(None)) * times


class OnSamples(Keyed):
    """A run on the samples of a data set: some of them are timed."""

    def seconds_per_epoch(self) -> float:
        """Time some samples; infinity if the data set is not on this machine."""
        from rmsim.data.catalogue import load

        try:
            whole = load(self.dataset, download=False)
        except RMError:
            return math.inf
        samples, tested = len(whole.train), len(whole.test)
        pieces = [whole.first(min(size, samples), min(PIECES[0], tested)) for size in PIECES]
        return self._seconds_on(pieces, samples, tested)

    def _seconds_on(self, pieces: Sequence[Dataset], samples: int, tested: int) -> float:
        """Return the CPU-seconds of an epoch of so many training samples."""
        short, times = self.shortened()
        short.execute(pieces[0])  # compiles
        return times * extrapolated(short.execute, pieces, samples)


@lru_cache(maxsize=None, typed=True)  # 0 and 0.0 are two settings: their runs have other keys
def plan_of(preset: str, n: int, seed: int, **settings: Any) -> Plan:
    """Return the plan of a preset; `settings` are parameters of the protocol by name.

    Each is checked once: the evidence of all claims asks for some thousand.
    """
    from rmsim.learning.run_folder import Plan

    return Plan.of_preset(preset, n, seed=seed, **settings)


class OfPlan(OnSamples):
    """A run of a plan on its data set."""

    plan: Plan

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        return self.plan.dataset

    def part(self, whole: Dataset) -> Dataset:
        """Return the samples that the plan takes."""
        return self.plan.data(whole)


@dataclass(frozen=True)
class Flat(Keyed):
    """A run whose identity is its fields."""

    @property
    def identity(self) -> dict[str, Any]:
        """Its kind and its fields, without the epochs, as JSON values."""
        values = asdict(self)
        del values["epochs"]
        return {"kind": self.kind, **values}


class WithoutData(Flat):
    """A run that reads no data set."""

    dataset: ClassVar[str] = ""


def timed(work: Callable[[], object]) -> float:
    """Return the CPU-seconds of `work`."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def extrapolated(
    work: Callable[[Dataset], object], pieces: Sequence[Dataset], samples: int
) -> float:
    """Return the CPU-seconds of `work` on so many training samples, from two pieces of them.

    What does not grow with the samples, such as drawing couplings, is counted once.
    """
    sizes = [len(piece.train) for piece in pieces]
    times = [timed(lambda piece=piece: work(piece)) for piece in pieces]  # type: ignore[misc]
    if sizes[-1] == sizes[0]:
        return times[0] * samples / sizes[0]
    slope = max(times[-1] - times[0], 0.0) / (sizes[-1] - sizes[0])
    return times[-1] + slope * (samples - sizes[-1])


@dataclass(frozen=True)
class Result:
    """What a run gave.

    Parameters
    ----------
    key : str
        Of the run.
    title : str
        What was trained, for readers.
    identity : mapping
        The same for the machine: whatever the numbers depend on, but for the epochs.
    data : str
        sha256 of the data set.
    metrics : dict
        Epoch -> what was measured.
    cpu_seconds : float
        Time of a core.
    provenance : mapping
        Commit, versions, date, machine.
    """

    key: str
    title: str
    identity: Mapping[str, Any]
    data: str
    metrics: Metrics
    cpu_seconds: float
    provenance: Mapping[str, str]

    @property
    def commit(self) -> str:
        """The commit that made it, shortened; a star if files differed from it."""
        changed = "*" if self.provenance.get("git_dirty") == "yes" else ""
        return f"{self.provenance.get('git_commit', 'unknown')[:9]}{changed}"

    @property
    def machine(self) -> str:
        """The processor on which it ran."""
        return self.provenance.get("machine", "unknown")

    def covers(self, run: Run) -> bool:
        """Return whether it has the metrics of all epochs of `run`."""
        return self.key == run.key and all(epoch in self.metrics for epoch in run.epochs)


@dataclass(frozen=True)
class Store:
    """The folder of the results."""

    path: Path = field(default=TRAINED)

    def file(self, run: Run) -> Path:
        """Return the file of the result of `run`."""
        return self.path / f"{run.title}_{run.key[:_DIGITS]}.json"

    def add(self, run: Run, data: str, metrics: Metrics, cpu_seconds: float) -> Result:
        """Write the result of a run; metrics of an earlier one of the same key stay in it."""
        earlier = self.get(run)
        if earlier is not None and earlier.data == data:
            metrics = {**earlier.metrics, **metrics}
        stamped = attributes(run.identity, version=VERSION)
        provenance = {name: stamped[name] for name in _PROVENANCE} | machine()
        content = {
            "format": 1,
            "version": VERSION,
            "key": run.key,
            "title": run.title,
            "run": run.identity,
            "data": data,
            "cpu_seconds": round(cpu_seconds, 2),
            "provenance": provenance,
            STORED_METRICS: as_json(dict(sorted(metrics.items()))),
        }
        self.path.mkdir(parents=True, exist_ok=True)
        RunStore(self.path).save(self.file(run).name, content)
        return _result(content, self.file(run))

    def get(self, run: Run) -> Result | None:
        """Return the result of a run, whatever its epochs; None if there is none.

        Raises
        ------
        UnreadableDataError
            If the file is damaged or was made by other code, naming it and what to do.
        """
        try:
            return self._load(self.file(run).name)
        except FileNotFoundError:
            return None

    def has(self, run: Run) -> bool:
        """Return whether the metrics of all epochs of `run` are there."""
        held = self.get(run)
        return held is not None and held.covers(run)

    def results(self) -> list[Result]:
        """Return all results, by their file names.

        Raises
        ------
        UnreadableDataError
            As :meth:`get`.
        """
        names = sorted(path.name for path in self.path.glob("*.json"))
        return [self._load(name) for name in names]

    def _load(self, name: str) -> Result:
        again = "restore it by 'git checkout', or remove it and 'make decide' runs it again"
        try:
            content = RunStore(self.path).load(name)
        except UnreadableDataError as problem:
            raise UnreadableDataError(f"{problem}: {again}") from None
        file = self.path / name
        version = content.get("version"), content.get("format")
        if version != (VERSION, 1):
            raise UnreadableDataError(
                f"{file} was made by other code: training version {version[0]}, file format "
                f"{version[1]}, where this is {VERSION} and 1: {again}"
            )
        return _result(content, file, again)


def _result(content: Mapping[str, Any], file: Path, again: str = "") -> Result:
    try:
        result = Result(
            key=content["key"],
            title=content["title"],
            identity=content["run"],
            data=content["data"],
            metrics=from_json(content[STORED_METRICS]),
            cpu_seconds=float(content["cpu_seconds"]),
            provenance=content["provenance"],
        )
    except MALFORMED as problem:
        raise UnreadableDataError(f"{file} holds no result of a run ({problem}): {again}") from None
    same = parameters_hash(result.identity, VERSION) == result.key
    if not same or not file.stem.endswith(result.key[:_DIGITS]):
        raise UnreadableDataError(f"{file} is not named after what it holds: {again}")
    return result


def machine() -> dict[str, str]:
    """Return the processor and its threads: what rounding depends on.

    Virtual machines name processors of several generations alike: the name that compilers have for
    it, which says what instructions there are, stands behind.
    """
    import torch
    from llvmlite.binding import get_host_cpu_name

    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        pass  # other systems
    name = f"{name} ({get_host_cpu_name()})"
    return {"machine": name, "threads": str(torch.get_num_threads()), "device": "cpu"}


# Networks that are killed go on from a checkpoint.

#: Seconds of a core between two checkpoints.
_BETWEEN = 60.0


def states_of(
    run: Network, data: Dataset, begun: tuple[int, State], folder: Path | None
) -> Iterator[tuple[int, State]]:
    """Give the weights after each epoch, those begun with included; store some."""
    from rmsim.learning.protocol import learning_of, run_epochs
    from rmsim.learning.run_folder import Checkpoint, save_checkpoint

    first, state = begun
    yield first, state
    samples = data.train.tensors(state.dtype)
    learn = learning_of(run.plan.parameters, *samples, run.plan.seed)
    saved = time.process_time()
    for epoch in run_epochs(learn, state, first, run.epochs[-1]):
        yield epoch.number, epoch.state
        due = epoch.number in run.epochs
        if folder is not None and (due or time.process_time() - saved > _BETWEEN):
            checkpoint = Checkpoint(run.plan, data.checksum, epoch.number, epoch.state)
            save_checkpoint(folder / "checkpoint.npz", checkpoint)
            saved = time.process_time()


def resumed(run: Network, data: Dataset, folder: Path | None) -> tuple[Metrics, tuple[int, State]]:
    """Return what is measured already, and the last weights; the initialisation if there are none.

    A checkpoint is stored after the metrics of its epoch: none is missing.
    """
    from rmsim.learning.run_folder import load_checkpoint

    if folder is not None and (folder / "checkpoint.npz").exists():
        try:
            checkpoint = load_checkpoint(folder / "checkpoint.npz")
            metrics = _load_metrics(folder, run.key)
        except (FileNotFoundError, UnreadableDataError):
            metrics = {}
        else:
            due = [epoch for epoch in run.epochs if epoch <= checkpoint.epoch]
            same = checkpoint.plan == run.plan and checkpoint.data == data.checksum
            if same and all(epoch in metrics for epoch in due):
                return metrics, (checkpoint.epoch, checkpoint.state)
    return {}, (0, initial_state(run, data))


def initial_state(run: Network, data: Dataset) -> State:
    """Return the weights before training, with the topology of `run`."""
    import torch

    from rmsim.learning import run_folder
    from rmsim.learning.state import Wiring

    plan, wiring = run.plan, None
    if run.blocks:
        layer = torch.arange(plan.parameters.neurons) * run.blocks // plan.parameters.neurons
        near = (layer[:, None] - layer[None, :]).abs() <= 1
        seen, last = (layer >= 0 if run.skip else layer == 0), layer == run.blocks - 1
        wiring = Wiring(near.fill_diagonal_(False), seen, last, last)
    return run_folder.initial_state(plan, data, wiring=wiring)


def save_metrics(folder: Path, key: str, metrics: Metrics) -> None:
    """Store the metrics of a run that is not at its end."""
    content = {"key": key, STORED_METRICS: as_json(metrics)}
    RunStore(folder).save(f"{STORED_METRICS}.json", content)


def _load_metrics(folder: Path, key: str) -> Metrics:
    held = RunStore(folder).load(f"{STORED_METRICS}.json")
    if held.get("key") != key:
        raise UnreadableDataError(f"{folder} is of another run")
    return from_json(held[STORED_METRICS])
