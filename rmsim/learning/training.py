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
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from rmsim.data import Dataset, Encoding, Samples, load
from rmsim.data.own_files import read_table
from rmsim.learning import (
    Parameters,
    State,
    accuracy,
    infer,
    initialise,
    measure,
)
from rmsim.learning.presets import preset as preset_named
from rmsim.learning.protocol import learning_of, predict, run_epochs
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
    keep_records,
    load_arrays,
    load_checkpoint,
    save_arrays,
    save_checkpoint,
)
from rmsim.tensors import choose_device, choose_dtype
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError, NotConvergedError, UnreadableDataError
from rmtheory.base.statistics import wilson_half_width
from rmtheory.runtime.provenance import attributes
from rmtheory.runtime.untrusted import MALFORMED

#: Reports of progress per epoch.
_REPORTS = 100


@dataclass(frozen=True)
class Progress:
    """Where a run is.

    Parameters
    ----------
    epoch, epochs : int
        Epochs done, and asked for.
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


Follow = Callable[[Progress], None]


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
    follow: Follow = lambda progress: None,
    follow_probe: FollowProbe = lambda done, epochs: None,
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
    follow, follow_probe : callable
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
    if isinstance(plan, str):
        known = preset_named(plan)
        name, classes = (known.dataset, None) if data is None else (data.name, data.classes)
        plan = Plan.of_preset(plan, dataset=name, classes=classes)
    source = None if plan.preset == "none" else preset_named(plan.preset)
    if epochs is None:
        if source is None:
            raise InvalidInputError("epochs", "nothing", "given, as the plan is of no preset")
        epochs = source.epochs_at(plan.parameters.couplings.n)
    epochs = checks.integer("epochs", epochs, 0)
    if probe is None:
        probing = 0 if source is None else source.probe_epochs(epochs)
    else:
        probing = checks.integer("probe", probe, 0)
    dataset = load(plan.dataset) if data is None else data
    metrics = Metrics() if metrics is None else metrics
    with tempfile.TemporaryDirectory() if out is None else nullcontext(out) as place:
        folder = Folder(Path(place))
        kept = "" if out is None else f"; the epoch before is kept in {out}"
        outcome = _train_network(plan, dataset, folder, epochs, device, metrics, follow, kept)
        if not probing:
            return outcome
        checkpoint, parameters = outcome.checkpoint, ProbeParameters(epochs=probing)
        held = load_probe(folder, checkpoint)
        due = checkpoint.epoch and (probe is not None or checkpoint.epoch == epochs)
        if not due or (held is not None and held.parameters == parameters):
            return replace(outcome, probe=held)
        follow_probe(0, probing)
        stage = train_probe(
            folder, checkpoint, dataset, parameters, lambda done: follow_probe(done, probing)
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


def predict_file(
    folder: str | Path, data: str | Path, *, device: str | torch.device = "auto"
) -> list[int | str]:
    """Return the label of each sample of a file, by the probe of a run or else its perceptrons.

    Parameters
    ----------
    folder : path
        Of the run.
    data : path
        Inputs, as for :func:`rmsim.data.own_files.read_table`; labels in it are ignored. They are
        scaled as the inputs that the run was trained on, if these were data of your own.
    device : str
        Where to compute.
    """
    run = Folder(Path(folder))
    checkpoint = load_checkpoint(run.checkpoint, choose_device(device))
    state, parameters = checkpoint.state, checkpoint.plan.parameters
    encoding = Encoding.load(run.labels) if run.labels.exists() else None
    table = read_table(data, "y" if encoding is None else encoding.files[2])
    inputs = table.inputs if encoding is None else encoding.inputs(table, data)
    probe = load_probe(run, checkpoint)
    if probe is None:
        numbers = predict(parameters, state, torch.as_tensor(inputs)).tolist()
    else:
        s = infer(parameters, state, torch.as_tensor(inputs)).flatten(1)[:, state.a_out]
        numbers = probe.readout.outputs(s).argmax(1).tolist()
    return numbers if encoding is None else [encoding.labels[number] for number in numbers]


# The epochs of the network.


def _train_network(
    plan: Plan,
    dataset: Dataset,
    folder: Folder,
    epochs: int,
    device: str | torch.device,
    metrics: Metrics,
    follow: Follow,
    kept: str,
) -> Outcome:
    """Start or resume the run in a folder; if learning diverges, say what is `kept`."""
    place = choose_device(device)
    data = plan.data(dataset)
    with folder.claimed(plan, data.checksum):
        held, records = _held(folder, plan, data, place)
        if held is not None and held.epoch >= epochs and _is_measured(held, records):
            return Outcome(held, tuple(records), idle=True)
        checkpoint = _begin(folder, plan, data, place, metrics, held)
        records = folder.records()
        session = _Session(checkpoint.epoch, epochs, len(data.train), follow)
        session.report(checkpoint.epoch, 0, records[-1])
        samples = data.train.inputs, data.train.labels
        learn = learning_of(plan.parameters, *samples, plan.seed, parts=_REPORTS)

        def report(epoch: int, done: int) -> None:
            session.report(epoch, done, records[-1])

        try:
            for epoch in run_epochs(learn, checkpoint.state, checkpoint.epoch, epochs, report):
                checkpoint = replace(checkpoint, epoch=epoch.number, state=epoch.state)
                records.append(_record(checkpoint, data, metrics, epoch.seconds))
                _store(folder, checkpoint, records[-1])
                session.report(epoch.number, 0, records[-1])
        except NotConvergedError as problem:
            number = checkpoint.epoch + 1
            raise NotConvergedError(f"{problem} (in epoch {number}{kept})") from None
    return Outcome(checkpoint, tuple(records))


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
        state = initialise(
            plan.parameters,
            data.width,
            data.classes,
            plan.seed,
            dtype=choose_dtype(plan.dtype),
            device=device,
        )
        checkpoint = Checkpoint(plan, data.checksum, 0, state)
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

    def __init__(self, first: int, epochs: int, samples: int, follow: Follow) -> None:
        self.first, self.epochs, self.samples, self.follow = first, epochs, samples, follow
        self.started = time.perf_counter()

    def report(self, epoch: int, done: int, record: dict[str, Any]) -> None:
        learnt = (epoch - self.first) * self.samples + done
        total = max(0, self.epochs - self.first) * self.samples
        seconds = time.perf_counter() - self.started
        self.follow(Progress(epoch, self.epochs, learnt, total, seconds, record))


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


def binomial_error(fraction: float, samples: int) -> float:
    """Return the standard error of a `fraction` of `samples`; it does not vanish at 0 and 1.

    Examples
    --------
    >>> round(binomial_error(0.9, 10000), 4), round(binomial_error(1.0, 100), 4)
    (0.003, 0.005)
    """
    return float(wilson_half_width(fraction, samples))


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
