"""Train a network for some epochs, in a folder: start, go on, be watched, be killed.

Epoch e takes the samples in the order ``epoch_order(seed, e, P)``, and nothing else is random
after the initialisation. The weights after an epoch therefore depend on the plan alone, and a run
that is resumed equals one that was not interrupted, to the bit on the same device with the same
number of threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from rmsim.data import Dataset, Samples
from rmsim.device import choose_device, choose_dtype
from rmsim.learning import Parameters, State, epoch_order, initialise, train
from rmsim.training import log
from rmsim.training.checkpoint import Checkpoint, demand_same, load_checkpoint, save_checkpoint
from rmsim.training.folder import Folder
from rmsim.training.look import Watch, look
from rmsim.training.plan import Plan
from rmtheory import checks
from rmtheory.errors import NotConvergedError
from rmtheory.provenance import attributes

#: Times that a follower hears of an epoch.
_TOLD = 100


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
        The epochs were all done before: nothing was learnt, and nothing written.
    """

    checkpoint: Checkpoint
    records: tuple[dict[str, Any], ...]
    idle: bool = False

    @property
    def state(self) -> State:
        """The weights."""
        return self.checkpoint.state


def learn_epoch(
    parameters: Parameters, state: State, samples: Samples, seed: int, epoch: int
) -> Iterator[tuple[State, int]]:
    """Learn all samples once, and give the weights and the number of samples now and then.

    Parameters
    ----------
    parameters, state
        As for :func:`rmsim.learning.train`.
    samples : Samples
        What to learn.
    seed, epoch : int
        Of the order of the samples; epochs count from 0.
    """
    order = epoch_order(seed, epoch, len(samples))
    inputs, labels = torch.tensor(samples.inputs), torch.tensor(samples.labels)
    batches = -(-len(order) // parameters.batch)
    stride = max(1, batches // _TOLD) * parameters.batch  # whole batches: the same numbers
    for first in range(0, len(order), stride):
        chosen = order[first : first + stride]
        state = train(parameters, state, inputs[chosen], labels[chosen])
        yield state, first + len(chosen)


def run(
    plan: Plan,
    dataset: Dataset,
    out: str | Path,
    epochs: int,
    *,
    device: str | torch.device = "auto",
    watch: Watch | None = None,
    follow: Follow = lambda progress: None,
) -> Outcome:
    """Train until `epochs` epochs are done in all, starting or going on in the folder `out`.

    Parameters
    ----------
    plan : Plan
        What to train.
    dataset : Dataset
        The data set that the plan names.
    out : path
        Folder of the run; if it holds the same run, that goes on from its last epoch.
    epochs : int
        Epochs in all; 0 initialises and measures. If they are done already, the folder stays as it
        is, and the outcome is `idle`.
    device : str
        auto, cpu, cuda, ...
    watch : Watch, optional
        How many samples are measured after each epoch.
    follow : callable
        Told the progress, about a hundred times an epoch.

    Raises
    ------
    InvalidInputError
        If the folder holds another run.
    StorageError
        If results cannot be written; the last whole epoch is kept.
    NotConvergedError
        If weights are no longer finite; the epoch before is kept.
    """
    epochs = checks.integer("epochs", epochs, 0)
    watch = watch or Watch()
    place = choose_device(device)
    data = plan.data(dataset)
    folder = Folder(Path(out))
    folder.claim(plan, data.checksum)
    with folder.locked():
        held, records = _held(folder, plan, data, place)
        if held is not None and held.epoch >= epochs and _is_measured(held, records):
            return Outcome(held, tuple(records), idle=True)
        moment = _begin(folder, plan, data, place, watch, held)
        records = folder.records()
        session = _Session(moment.epoch, epochs, len(data.train), follow)
        session.tell(moment.epoch, 0, records[-1])
        for epoch in range(moment.epoch, epochs):
            started, state = time.perf_counter(), moment.state
            learning = learn_epoch(plan.parameters, moment.state, data.train, plan.seed, epoch)
            try:
                for state, done in learning:  # noqa: B007  # the last state is the result
                    session.tell(epoch, done, records[-1])
            except NotConvergedError as problem:
                raise NotConvergedError(
                    f"{problem} (in epoch {epoch + 1}; the epoch before is kept in {folder.path})"
                ) from None
            seconds = time.perf_counter() - started
            moment = replace(moment, epoch=epoch + 1, state=state)
            records.append(_record(moment, data, watch, seconds))
            _store(folder, moment, records[-1])
            session.tell(epoch + 1, 0, records[-1])
    return Outcome(moment, tuple(records))


def _held(
    folder: Folder, plan: Plan, data: Dataset, device: torch.device
) -> tuple[Checkpoint | None, list[dict[str, Any]]]:
    """Return the last whole epoch, None if there is none, and the measurements up to it.

    A line of the log whose weights were not saved any more is none of them.
    """
    if not folder.checkpoint.exists():
        return None, []
    moment = load_checkpoint(folder.checkpoint, device)
    demand_same(folder.checkpoint, moment, plan, data.checksum)
    return moment, [record for record in folder.records() if record["epoch"] <= moment.epoch]


def _is_measured(moment: Checkpoint, records: list[dict[str, Any]]) -> bool:
    return bool(records) and records[-1]["epoch"] == moment.epoch


def _begin(
    folder: Folder,
    plan: Plan,
    data: Dataset,
    device: torch.device,
    watch: Watch,
    held: Checkpoint | None,
) -> Checkpoint:
    """Return the last whole epoch, or the initialisation, measured and stored."""
    if held is not None:
        moment = held
    else:
        state = initialise(
            plan.parameters,
            data.width,
            data.classes,
            plan.seed,
            dtype=choose_dtype(plan.dtype),
            device=device,
        )
        moment = Checkpoint(plan, data.checksum, 0, state)
    session = attributes(plan.to_dict(), seed=plan.seed) | {
        "device": str(device),
        "threads": str(torch.get_num_threads()),
        "from_epoch": str(moment.epoch),
    }
    folder.add_session(plan, data.checksum, session)
    with folder.writing("log.jsonl"):
        log.keep(folder.log, -1 if held is None else moment.epoch)
    if not _is_measured(moment, folder.records()):
        _store(folder, moment, _record(moment, data, watch, 0.0))
    return moment


def _record(moment: Checkpoint, data: Dataset, watch: Watch, seconds: float) -> dict[str, Any]:
    """Return the line of the log for this moment."""
    seen = look(moment.plan.parameters, moment.state, data.train, data.test, watch)
    return {
        "epoch": moment.epoch,
        "step": moment.state.step,
        **seen,
        "seconds": seconds,
        "samples_per_second": len(data.train) / seconds if seconds > 0 else None,
        "device": str(moment.state.device),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _store(folder: Folder, moment: Checkpoint, record: dict[str, Any]) -> None:
    """Write the line first: one too many is dropped later, one too few could not be made up."""
    with folder.writing("log.jsonl"):
        log.append(folder.log, record)
    with folder.writing("checkpoint.npz"):
        save_checkpoint(folder.checkpoint, moment)


class _Session:
    """Counts samples and seconds for the follower."""

    def __init__(self, first: int, epochs: int, samples: int, follow: Follow) -> None:
        self.first, self.epochs, self.samples, self.follow = first, epochs, samples, follow
        self.started = time.perf_counter()

    def tell(self, epoch: int, done: int, record: dict[str, Any]) -> None:
        learnt = (epoch - self.first) * self.samples + done
        total = max(0, self.epochs - self.first) * self.samples
        seconds = time.perf_counter() - self.started
        self.follow(Progress(epoch, self.epochs, learnt, total, seconds, record))
