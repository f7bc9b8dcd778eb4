"""Train a network for some epochs and evaluate it: runs that start, are resumed and are killed.

Epoch e takes the samples in the order ``epoch_order(seed, e, P)``, and nothing else is random
after the initialisation. The weights after an epoch therefore depend on the plan alone, and a run
that is resumed equals one that was not interrupted, to the bit on the same device with the same
number of threads.

After every epoch the metrics are written to the log: accuracies on the test set and on as many
samples of the training set; q_dyn, margins, sweeps and the fraction of unstable states on the first
samples of the training set (:class:`Metrics`).

The second stage (paper, SM-D) is a softmax probe on the states at inference, weights frozen.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from rmsim.compiled_loops import side_by_side
from rmsim.data.catalogue import load
from rmsim.data.dataset import Dataset, Samples
from rmsim.learning.parameters import Parameters
from rmsim.learning.presets import preset as preset_named
from rmsim.learning.protocol import (
    Epoch,
    accuracy,
    infer,
    learning_of_many,
    measure,
    run_epochs,
    work_of,
)
from rmsim.learning.readout import (
    Features,
    LinearReadout,
    ProbeParameters,
    checked_features,
    fit_probe,
)
from rmsim.learning.run_folder import (
    Checkpoint,
    Folder,
    Plan,
    append_record,
    demand_same,
    initial_state,
    keep_records,
    load_arrays,
    load_checkpoint,
    save_arrays,
    save_checkpoint,
)
from rmsim.learning.state import State
from rmsim.tensors import choose_device
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError, NotConvergedError, UnreadableDataError
from rmtheory.base.statistics import binomial_error
from rmtheory.runtime.provenance import attributes
from rmtheory.runtime.untrusted import MALFORMED

#: Reports of progress per epoch.
_REPORTS = 100


@dataclass(frozen=True)
class TrainingProgress:
    """Where a run is.

    Parameters
    ----------
    epoch, epochs : int
        Epochs done, and those requested.
    samples, total : int
        Samples learnt since this session began, and those it will learn.
    seconds : float
        Since it began to learn them, time for measurements included.
    record : dict, optional
        The latest line of the log.
    """

    epoch: int
    epochs: int
    samples: int
    total: int
    seconds: float
    record: dict[str, Any] | None

    @property
    def samples_per_second(self) -> float | None:
        """Speed so far; None before the first samples."""
        return self.samples / self.seconds if self.samples and self.seconds > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """Time left at this speed; None before the first samples."""
        speed = self.samples_per_second
        return None if speed is None else (self.total - self.samples) / speed


#: Called with the progress of the epochs.
Follow = Callable[[TrainingProgress], None]

#: Called with the epochs of the probe that are done, and all of them.
FollowProbe = Callable[[int, int], None]


@dataclass(frozen=True)
class Outcome:
    """A run after its last session.

    Parameters
    ----------
    checkpoint : Checkpoint
        The last one.
    records : tuple of dict
        All lines of the log.
    idle : bool
        The epochs were all done before, and so was the probe, if there is one: nothing was learnt,
        and nothing written.
    probe : StoredProbe, optional
        The softmax probe of the last checkpoint.
    """

    checkpoint: Checkpoint
    records: tuple[dict[str, Any], ...]
    idle: bool = False
    probe: StoredProbe | None = None

    @property
    def state(self) -> State:
        """The weights."""
        return self.checkpoint.state

    def summary(self) -> dict[str, Any]:
        """Return the last line of the log, with the accuracies of the probe beside it."""
        last = dict(self.records[-1])
        return last if self.probe is None else last | by_probe(self.probe.accuracies)


def train(
    plan: Plan | str,
    data: Dataset | None = None,
    epochs: int | None = None,
    *,
    out: str | Path | None = None,
    probe: int | None = None,
    device: str | torch.device = "auto",
    metrics: Metrics | None = None,
    compile: bool = False,
    progress: Follow = lambda state: None,
    probe_progress: FollowProbe = lambda done, epochs: None,
) -> Outcome:
    """Train until `epochs` epochs are done in all, then the softmax probe: what `rmsim train` does.

    Parameters
    ----------
    plan : Plan or str
        What to train; the name of a preset stands for its plan at the width of the paper.
    data : Dataset, optional
        The data set that the plan names; it is loaded by default.
    epochs : int, optional
        Epochs in all, those of the paper by default; 0 initialises and measures. If they are done
        already, the folder stays as it is, and the outcome is `idle`.
    out : path, optional
        Folder of the run; if it holds the same run, it resumes after its last epoch. Without it
        nothing is kept but what is returned.
    probe : int, optional
        Epochs of the probe, 0 for none; by default as many as of the network, at least 10, if the
        preset has one. A run that is longer than `epochs` keeps the probe that it has, unless
        epochs are given here.
    device : str
        auto, cpu, cuda, ...
    metrics : Metrics, optional
        How many samples are measured after each epoch.
    compile : bool
        See :func:`rmsim.learning.train_epoch`.
    progress, probe_progress : callable
        Called with the progress, about a hundred times per epoch, and after each epoch of the
        probe.

    Raises
    ------
    InvalidInputError
        If the folder holds another run.
    StorageError
        If results cannot be written; the last whole epoch is kept.
    NotConvergedError
        If weights are no longer finite; the epoch before is kept.

    Examples
    --------
    >>> import rmsim as rs
    >>> data = rs.load_data("synthetic")
    >>> few = {"dataset": data.name, "train_samples": 300, "test_samples": 100}
    >>> plan = rs.Plan.of_preset("entangled-mnist-sparse", 60, **few)
    >>> outcome = rs.train(plan, data, 1, probe=2, device="cpu")
    >>> [record["epoch"] for record in outcome.records], outcome.probe.epoch
    ([0, 1], 1)
    """
    chosen = _plan_of(plan, data)
    (outcome,) = train_many(
        [chosen],
        data,
        epochs,
        out=None if out is None else [out],
        probe=probe,
        device=device,
        metrics=metrics,
        compile=compile,
        progress=progress,
        probe_progress=probe_progress,
    )
    return outcome


def _plan_of(plan: Plan | str, data: Dataset | None) -> Plan:
    """Return the plan that a preset stands for."""
    if not isinstance(plan, str):
        return plan
    known = preset_named(plan)
    name, classes = (known.dataset, None) if data is None else (data.name, data.classes)
    return Plan.of_preset(plan, dataset=name, classes=classes)


def train_many(
    plans: Sequence[Plan | str],
    data: Dataset | None = None,
    epochs: int | None = None,
    *,
    out: Sequence[str | Path] | None = None,
    probe: int | None = None,
    device: str | torch.device = "auto",
    metrics: Metrics | None = None,
    threads: int | None = None,
    compile: bool = False,
    progress: Follow = lambda state: None,
    probe_progress: FollowProbe = lambda done, epochs: None,
) -> list[Outcome]:
    """Train many networks on the same samples side by side: see :func:`train`.

    Replicas have other seeds; networks with the same seed have the same random numbers, and take
    the samples in the same order, so that values of a setting are compared in pairs. Each network
    becomes what it becomes alone, to the bit on a CPU.

    Parameters
    ----------
    plans : sequence of Plan or str
        What to train; all of the same data set and the same numbers of samples.
    data, epochs, probe, device, metrics, progress, probe_progress
        As for :func:`train`. Progress counts the samples of one network.
    out : sequence of path, optional
        A folder for each; those that are behind are trained first.
    threads : int, optional
        Networks at a time on a CPU, each with one thread; as many as torch has by default.
    compile : bool
        See :func:`rmsim.learning.train_epoch`.

    Examples
    --------
    >>> import rmsim as rs
    >>> data = rs.load_data("synthetic")
    >>> few = {"dataset": data.name, "train_samples": 100, "test_samples": 50}
    >>> plans = [rs.Plan.of_preset("overlaps", 40, jd=jd, **few) for jd in (0.3, 0.5)]
    >>> outcomes = rs.train_many(plans, data, 1, device="cpu")
    >>> [outcome.checkpoint.plan.parameters.couplings.jd for outcome in outcomes]
    [0.3, 0.5]
    """
    chosen = [_plan_of(plan, data) for plan in plans]
    if not chosen or (out is not None and len(out) != len(chosen)):
        allowed = "at least one, with a folder for each"
        raise InvalidInputError("plans", len(chosen), allowed)
    sources = [None if plan.preset == "none" else preset_named(plan.preset) for plan in chosen]
    if epochs is None:
        usual = {
            None if source is None else source.epochs_at(plan.parameters.couplings.n)
            for source, plan in zip(sources, chosen, strict=True)
        }
        if len(usual) > 1 or None in usual:
            several = "plans are of no preset, or of several"
            allowed = f"given, as the {several if len(chosen) > 1 else 'plan is of no preset'}"
            raise InvalidInputError("epochs", "nothing", allowed)
        (epochs,) = usual
    epochs = checks.integer("epochs", epochs, 0)
    probing = [
        source.probe_epochs(epochs) if probe is None and source is not None else 0
        for source in sources
    ]
    if probe is not None:
        probing = [checks.integer("probe", probe, 0)] * len(chosen)
    dataset = load(chosen[0].dataset) if data is None else data
    metrics = Metrics() if metrics is None else metrics
    with ExitStack() as stack:
        places = (
            [stack.enter_context(tempfile.TemporaryDirectory()) for _ in chosen]
            if out is None
            else out
        )
        folders = [Folder(Path(place)) for place in places]
        kept = "" if out is None else "; the epoch before is kept in {}"
        work = work_of([plan.parameters for plan in chosen])
        run = _Runs(chosen, dataset, folders, choose_device(device, work), metrics)
        outcomes = run.train(epochs, progress, kept, threads, compile)
        return [
            _with_probe(outcome, folder, dataset, epochs, probe, stage, probe_progress)
            for outcome, folder, stage in zip(outcomes, folders, probing, strict=True)
        ]


def _with_probe(
    outcome: Outcome,
    folder: Folder,
    dataset: Dataset,
    epochs: int,
    asked: int | None,
    probing: int,
    probe_progress: FollowProbe,
) -> Outcome:
    """Return the run with its probe of `probing` epochs, trained now if it is due."""
    if not probing:
        return outcome
    checkpoint, parameters = outcome.checkpoint, ProbeParameters(epochs=probing)
    held = load_probe(folder, checkpoint)
    due = checkpoint.epoch and (asked is not None or checkpoint.epoch == epochs)
    if not due or (held is not None and held.parameters == parameters):
        return replace(outcome, probe=held)
    probe_progress(0, probing)
    stage = train_probe(
        folder, checkpoint, dataset, parameters, lambda done: probe_progress(done, probing)
    )
    return replace(outcome, idle=False, probe=stage)


def evaluate(
    trained: str | Path | Outcome | Checkpoint,
    data: Dataset | None = None,
    probe: StoredProbe | None = None,
    samples: int | None = None,
    *,
    device: str | torch.device = "auto",
) -> dict[str, Any]:
    """Return accuracies, q_dyn, symmetry and stability as JSON values, with errors.

    Parameters
    ----------
    trained : path, Outcome or Checkpoint
        The folder of a run, what :func:`train` returned, or the weights.
    data : Dataset, optional
        The data set of the run; it is loaded by default.
    probe : StoredProbe, optional
        If there is one, by default that of the folder or the outcome, its accuracies are
        ``probe_train_accuracy`` and ``probe_test_accuracy``; those without ``probe_`` are always
        the ones of the readout that the network learns itself.
    samples : int, optional
        At most so many samples of each set; all of them by default.
    device : str
        Where to compute, if the weights come from a folder.

    Examples
    --------
    >>> import rmsim as rs
    >>> few = {"dataset": "synthetic", "train_samples": 300, "test_samples": 100}
    >>> plan = rs.Plan.of_preset("entangled-mnist-dense", 60, **few)
    >>> measured = rs.evaluate(rs.train(plan, epochs=1, device="cpu"))
    >>> measured["epoch"], measured["test_samples"], 0 <= measured["test_accuracy"] <= 1
    (1, 100, True)
    """
    if isinstance(trained, Checkpoint):
        checkpoint = trained
    elif isinstance(trained, Outcome):
        checkpoint, probe = trained.checkpoint, trained.probe if probe is None else probe
    else:
        checkpoint = load_run(trained, data, device)
        probe = load_probe(Folder(Path(trained)), checkpoint) if probe is None else probe
    plan, state = checkpoint.plan, checkpoint.state
    used = plan.data(load(plan.dataset) if data is None else data)
    most = math.inf if samples is None else checks.integer("samples", samples, 1)
    first, test = (part.first(int(min(most, len(part)))) for part in (used.train, used.test))
    values: dict[str, Any] = {
        "epoch": checkpoint.epoch,
        **accuracies(plan.parameters, state, first, test),
    }
    if probe is not None:
        features = (features_of(checkpoint, part, used.classes) for part in (first, test))
        values |= by_probe(probe_accuracies(probe.readout, *features))
    seen = measure(plan.parameters, state, *first.tensors(state.dtype)).to_dict()
    del seen["samples"]
    values |= {**seen, "train_samples": len(first), "test_samples": len(test)}
    for name in ("unstable_clamped", "unstable_free"):
        values[f"{name}_error"] = binomial_error(values[name], len(first))
    return values


def load_run(
    folder: str | Path, data: Dataset | None = None, device: str | torch.device = "auto"
) -> Checkpoint:
    """Return the last checkpoint of the run in `folder`; refuse other data than it was trained on.

    Parameters
    ----------
    folder : path
        Of the run.
    data : Dataset, optional
        Its data set; it is loaded by default.
    device : str
        Where the weights are.
    """
    run = Folder(Path(folder))
    identity = run.identity()
    checkpoint = load_checkpoint(run.checkpoint, choose_device(device))
    demand_same(run.checkpoint, checkpoint, Plan.from_dict(identity["plan"]), identity["data"])
    dataset = load(checkpoint.plan.dataset) if data is None else data
    if checkpoint.plan.data(dataset).checksum != checkpoint.data:
        where = f"{dataset.source}, whose content differs"
        raise InvalidInputError("data", where, "the data that the run was trained on")
    return checkpoint


# The epochs of the network.


class _Runs:
    """Runs in their folders, on the same samples.

    Parameters
    ----------
    plans, folders : list
        What is trained where.
    dataset : Dataset
        The data set of all.
    device : torch.device
        Where to compute.
    metrics : Metrics
        How many samples are measured after each epoch.
    """

    def __init__(
        self,
        plans: list[Plan],
        dataset: Dataset,
        folders: list[Folder],
        device: torch.device,
        metrics: Metrics,
    ) -> None:
        self.plans, self.folders, self.device, self.metrics = plans, folders, device, metrics
        self.data = plans[0].data(dataset)
        for plan in plans[1:]:
            if plan.data(dataset).checksum != self.data.checksum:
                raise InvalidInputError("plans", "of several samples", "all of the same samples")
        self.checkpoints: dict[int, Checkpoint] = {}
        self.records: dict[int, list[dict[str, Any]]] = {}

    def train(
        self, epochs: int, progress: Follow, kept: str, threads: int | None, compile: bool
    ) -> list[Outcome]:
        """Start or resume all; if one diverges, say what is `kept` where."""
        data, idle = self.data, set()
        with ExitStack() as stack:
            for k, (plan, folder) in enumerate(zip(self.plans, self.folders, strict=True)):
                stack.enter_context(folder.claimed(plan, data.checksum))
                held, records = _held(folder, plan, data, self.device)
                if held is not None and held.epoch >= epochs and _is_measured(held, records):
                    self.checkpoints[k], self.records[k] = held, records
                    idle.add(k)
                    continue
                self.checkpoints[k] = _begin(folder, plan, data, self.device, self.metrics, held)
                self.records[k] = folder.records()
            active = [k for k in self.checkpoints if k not in idle]
            if active:
                self._train(active, epochs, progress, kept, threads, compile)
        return [
            Outcome(self.checkpoints[k], tuple(self.records[k]), idle=k in idle)
            for k in range(len(self.plans))
        ]

    def _train(
        self,
        active: list[int],
        epochs: int,
        progress: Follow,
        kept: str,
        threads: int | None,
        compile: bool,
    ) -> None:
        samples = self.data.train.inputs, self.data.train.labels
        done = sorted({self.checkpoints[k].epoch for k in active})
        session = _Session(done[0], epochs, len(self.data.train), progress)
        session.report(done[0], 0, self.records[active[0]][-1])

        def report(epoch: int, learnt: int) -> None:
            session.report(epoch, learnt, self.records[active[0]][-1])

        # Those that are behind, if a session was killed between two folders, are trained first.
        for first, last in pairwise([*done, max(epochs, done[-1])]):
            members = [k for k in active if self.checkpoints[k].epoch <= first]
            learn = learning_of_many(
                [self.plans[k].parameters for k in members],
                *samples,
                [self.plans[k].seed for k in members],
                _REPORTS,
                threads=threads,
                compile=compile,
            )
            states = [self.checkpoints[k].state for k in members]
            try:
                for epoch in run_epochs(learn, states, first, last, report):
                    self._store(members, epoch, threads)
                    report(epoch.number, 0)
            except NotConvergedError as problem:
                folder = self.folders[members[0]].path
                where = folder if len(self.plans) == 1 else "every folder"
                number = self.checkpoints[members[0]].epoch + 1
                text = f"{problem} (in epoch {number}{kept.format(where)})"
                raise NotConvergedError(text) from None

    def _store(self, members: list[int], epoch: Epoch[list[State]], threads: int | None) -> None:
        """Measure the networks after an epoch, and write their checkpoints."""
        for k, state in zip(members, epoch.state, strict=True):
            self.checkpoints[k] = replace(self.checkpoints[k], epoch=epoch.number, state=state)

        def measured(k: int) -> None:
            record = _record(self.checkpoints[k], self.data, self.metrics, epoch.seconds)
            self.records[k].append(record)

        on_cpu = self.device.type == "cpu"
        with side_by_side(len(members), threads if on_cpu else 1) as run:
            run(measured, [(k,) for k in members])
        for k in members:
            _store(self.folders[k], self.checkpoints[k], self.records[k][-1])


def _held(
    folder: Folder, plan: Plan, data: Dataset, device: torch.device
) -> tuple[Checkpoint | None, list[dict[str, Any]]]:
    """Return the last whole epoch, None if there is none, and the measurements up to it.

    A line of the log whose weights were not saved any more is none of them.
    """
    if not folder.checkpoint.exists():
        return None, []
    checkpoint = load_checkpoint(folder.checkpoint, device)
    demand_same(folder.checkpoint, checkpoint, plan, data.checksum)
    records = folder.records()
    if records and records[-1]["epoch"] < checkpoint.epoch - 1:
        raise UnreadableDataError(
            f"{folder.log} ends with epoch {records[-1]['epoch']}, and checkpoint.npz is of epoch "
            f"{checkpoint.epoch}: put back a copy of the log, or remove it, and the last epoch is "
            "measured again"
        )
    return checkpoint, [record for record in records if record["epoch"] <= checkpoint.epoch]


def _is_measured(checkpoint: Checkpoint, records: list[dict[str, Any]]) -> bool:
    return bool(records) and records[-1]["epoch"] == checkpoint.epoch


def _begin(
    folder: Folder,
    plan: Plan,
    data: Dataset,
    device: torch.device,
    metrics: Metrics,
    held: Checkpoint | None,
) -> Checkpoint:
    """Return the last whole epoch, or the initialisation, measured and stored."""
    if held is not None:
        checkpoint = held
    else:
        checkpoint = Checkpoint(plan, data.checksum, 0, initial_state(plan, data, device))
    session = attributes(plan.to_dict(), seed=plan.seed) | {
        "device": str(device),
        "threads": str(torch.get_num_threads()),
        "from_epoch": str(checkpoint.epoch),
    }
    folder.add_session(plan, data.checksum, session)
    with folder.writing("log.jsonl"):
        keep_records(folder.log, -1 if held is None else checkpoint.epoch)
    if not _is_measured(checkpoint, folder.records()):
        _store(folder, checkpoint, _record(checkpoint, data, metrics, 0.0))
    return checkpoint


def _record(
    checkpoint: Checkpoint, data: Dataset, metrics: Metrics, seconds: float
) -> dict[str, Any]:
    """Return the line of the log for this checkpoint."""
    seen = measured(checkpoint.plan.parameters, checkpoint.state, data.train, data.test, metrics)
    return {
        "epoch": checkpoint.epoch,
        "step": checkpoint.state.step,
        **seen,
        "seconds": seconds,
        "samples_per_second": len(data.train) / seconds if seconds > 0 else None,
        "device": str(checkpoint.state.device),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _store(folder: Folder, checkpoint: Checkpoint, record: dict[str, Any]) -> None:
    """Write the line first: one too many is dropped later, one too few could not be made up."""
    with folder.writing("log.jsonl"):
        append_record(folder.log, record)
    with folder.writing("checkpoint.npz"):
        save_checkpoint(folder.checkpoint, checkpoint)


class _Session:
    """Counts samples and seconds of a session."""

    def __init__(self, first: int, epochs: int, samples: int, progress: Follow) -> None:
        self.first, self.epochs, self.samples, self.progress = first, epochs, samples, progress
        self.started = time.perf_counter()

    def report(self, epoch: int, done: int, record: dict[str, Any]) -> None:
        learnt = (epoch - self.first) * self.samples + done
        total = max(0, self.epochs - self.first) * self.samples
        seconds = time.perf_counter() - self.started
        self.progress(TrainingProgress(epoch, self.epochs, learnt, total, seconds, record))


# Metrics after every epoch.


@dataclass(frozen=True)
class Metrics:
    """On how many samples a run is measured after every epoch.

    Parameters
    ----------
    phases : int
        Training samples that are presented to measure q_dyn, margins, sweeps, stability.
    accuracy : int
        Training samples whose class is predicted; the test set is always predicted in full.
    """

    phases: int = 2000
    accuracy: int = 10_000

    def __post_init__(self) -> None:
        checks.integer("phases", self.phases, 1)
        checks.integer("accuracy", self.accuracy, 1)


def measured(
    parameters: Parameters, state: State, train: Samples, test: Samples, metrics: Metrics
) -> dict[str, Any]:
    """Return what is measured of a network as JSON values, fractions with NAME_error.

    The error of a fraction is binomial (Wilson's), for new samples of the same kind.
    """
    presented = train.first(min(metrics.phases, len(train)))
    seen = measure(parameters, state, *presented.tensors(state.dtype))
    predicted = train.first(min(metrics.accuracy, len(train)))
    values = {**accuracies(parameters, state, predicted, test), **seen.to_dict()}
    for name in ("unstable_clamped", "unstable_free"):
        values[f"{name}_error"] = binomial_error(getattr(seen, name), seen.samples)
    return values


def accuracies(
    parameters: Parameters, state: State, train: Samples, test: Samples
) -> dict[str, float | None]:
    """Return train_accuracy and test_accuracy with their errors; None if nothing is read out."""
    fractions: dict[str, float | None] = {}
    for name, samples in (("train_accuracy", train), ("test_accuracy", test)):
        if not len(state.w_out):
            fractions |= {name: None, f"{name}_error": None}
            continue
        value = accuracy(parameters, state, *samples.tensors(state.dtype))
        fractions |= {name: value, f"{name}_error": binomial_error(value, len(samples))}
    return fractions


# The softmax probe.

_ACCURACIES = ("train_accuracy", "train_accuracy_error", "test_accuracy", "test_accuracy_error")


@dataclass(frozen=True, eq=False)
class StoredProbe:
    """A probe of the states after `epoch` epochs, trained with `parameters`.

    `accuracies` are train_accuracy and test_accuracy over all samples, with NAME_error.
    """

    epoch: int
    parameters: ProbeParameters
    readout: LinearReadout
    accuracies: Mapping[str, float]


def features_of(checkpoint: Checkpoint, samples: Samples, classes: int) -> Features:
    """Return the states at inference of the neurons that are read, with the labels."""
    state = checkpoint.state
    s = infer(checkpoint.plan.parameters, state, torch.tensor(samples.inputs)).flatten(1)
    return checked_features(s[:, state.a_out], torch.tensor(samples.labels), classes, state.device)


def train_probe(
    folder: Folder,
    checkpoint: Checkpoint,
    dataset: Dataset,
    parameters: ProbeParameters,
    progress: Callable[[int], None] = lambda epochs: None,
) -> StoredProbe:
    """Train a probe of the states at this checkpoint, and store it; nothing is done twice.

    Parameters
    ----------
    folder : Folder
        Of the run.
    checkpoint : Checkpoint
        Its weights.
    dataset : Dataset
        Its data; the training samples are used.
    parameters : ProbeParameters
        How to train.
    progress : callable
        Called with the number of epochs done.
    """
    held = load_probe(folder, checkpoint)
    if held is not None and held.parameters == parameters:
        return held
    data = checkpoint.plan.data(dataset)
    train, test = (features_of(checkpoint, part, data.classes) for part in (data.train, data.test))
    readout = fit_probe(train, None, parameters, checkpoint.plan.seed, progress).readout
    accuracies = probe_accuracies(readout, train, test)
    header = {
        "format": 1,
        "plan": checkpoint.plan.to_dict(),
        "data": checkpoint.data,
        "epoch": checkpoint.epoch,
        "probe": asdict(parameters),
        "accuracies": accuracies,
    }
    with folder.locked(), folder.writing("probe.npz"):
        save_arrays(folder.probe, header, {"w_out": readout.weights.cpu().numpy()})
    return StoredProbe(checkpoint.epoch, parameters, readout, accuracies)


def load_probe(folder: Folder, checkpoint: Checkpoint) -> StoredProbe | None:
    """Return the probe of this checkpoint of the run; None if there is none, or one of another."""
    if not folder.probe.exists():
        return None
    again = "remove it, and 'rmsim train' trains it again"
    try:
        header, arrays = load_arrays(folder.probe)
    except UnreadableDataError as problem:
        raise UnreadableDataError(f"{problem}: {again}") from None
    try:
        mine: dict[str, Any] = {"plan": checkpoint.plan.to_dict(), "data": checkpoint.data}
        if any(header[name] != value for name, value in mine.items()):
            return None
        if header["epoch"] != checkpoint.epoch:
            return None
        weights = torch.tensor(arrays["w_out"], device=checkpoint.state.device)
        shape = (checkpoint.state.classes, int(checkpoint.state.a_out.sum()))
        if tuple(weights.shape) != shape or not bool(weights.isfinite().all()):
            raise ValueError(
                f"w_out has shape {tuple(weights.shape)}, not {shape}, or is not finite"
            )
        parameters = ProbeParameters(**header["probe"])
        accuracies = {name: _fraction(name, header["accuracies"]) for name in _ACCURACIES}
    except (*MALFORMED, RuntimeError) as problem:
        reason = f"{folder.probe} is not a probe of a run: {problem}"
        raise UnreadableDataError(f"{reason}: {again}") from None
    return StoredProbe(checkpoint.epoch, parameters, LinearReadout(weights), accuracies)


def probe_accuracies(readout: LinearReadout, train: Features, test: Features) -> dict[str, float]:
    """Return train_accuracy and test_accuracy of a readout, with binomial errors."""
    accuracies = {}
    for name, part in (("train_accuracy", train), ("test_accuracy", test)):
        accuracies[name] = readout.score(part).accuracy
        accuracies[f"{name}_error"] = binomial_error(accuracies[name], len(part))
    return accuracies


def by_probe(accuracies: Mapping[str, float]) -> dict[str, float]:
    """Return the accuracies of a probe by the names that they have beside those of the network.

    Examples
    --------
    >>> by_probe({"test_accuracy": 0.88})
    {'probe_test_accuracy': 0.88}
    """
    return {f"probe_{name}": value for name, value in accuracies.items()}


def _fraction(name: str, accuracies: Mapping[str, Any]) -> float:
    value = accuracies[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError(f"{name} must be a number from 0 to 1, got {value!r}")
    return float(value)
