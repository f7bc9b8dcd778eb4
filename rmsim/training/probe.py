"""The second stage (paper, SM-D): a softmax probe on the states at inference, weights frozen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch

from rmsim.data import Dataset, Samples
from rmsim.learning import infer
from rmsim.readout import Features, LinearReadout, ProbeParameters, checked_features, fit_probe
from rmsim.training.checkpoint import Checkpoint, load_arrays, save_arrays
from rmsim.training.folder import Folder
from rmsim.training.look import binomial_error
from rmtheory.errors import UnreadableDataError


@dataclass(frozen=True, eq=False)
class StoredProbe:
    """A probe of the states after `epoch` epochs, trained with `parameters`.

    `accuracies` are train_accuracy and test_accuracy over all samples, with NAME_error.
    """

    epoch: int
    parameters: ProbeParameters
    readout: LinearReadout
    accuracies: Mapping[str, float]


def features_of(moment: Checkpoint, samples: Samples, classes: int) -> Features:
    """Return the states at inference of the neurons that are read, with the labels."""
    state = moment.state
    s = infer(moment.plan.parameters, state, torch.tensor(samples.inputs)).flatten(1)
    return checked_features(s[:, state.a_out], torch.tensor(samples.labels), classes, state.device)


def train_probe(
    folder: Folder,
    moment: Checkpoint,
    dataset: Dataset,
    parameters: ProbeParameters,
    progress: Callable[[int], None] = lambda epochs: None,
) -> StoredProbe:
    """Train a probe of the states at this moment, and store it; nothing is done twice.

    Parameters
    ----------
    folder : Folder
        Of the run.
    moment : Checkpoint
        Its weights.
    dataset : Dataset
        Its data; the training samples are used.
    parameters : ProbeParameters
        How to train.
    progress : callable
        Told how many epochs are done.
    """
    held = load_probe(folder, moment)
    if held is not None and held.parameters == parameters:
        return held
    data = moment.plan.data(dataset)
    train, test = (features_of(moment, part, data.classes) for part in (data.train, data.test))
    readout = fit_probe(train, None, parameters, moment.plan.seed, progress).readout
    accuracies = probe_accuracies(readout, train, test)
    header = {
        "format": 1,
        "plan": moment.plan.to_dict(),
        "data": moment.data,
        "epoch": moment.epoch,
        "probe": asdict(parameters),
        "accuracies": accuracies,
    }
    with folder.locked(), folder.writing("probe.npz"):
        save_arrays(folder.probe, header, {"w_out": readout.weights.cpu().numpy()})
    return StoredProbe(moment.epoch, parameters, readout, accuracies)


def probe_accuracies(readout: LinearReadout, train: Features, test: Features) -> dict[str, float]:
    """Return train_accuracy and test_accuracy of a readout, with binomial errors."""
    found = {}
    for name, part in (("train_accuracy", train), ("test_accuracy", test)):
        found[name] = readout.score(part).accuracy
        found[f"{name}_error"] = binomial_error(found[name], len(part))
    return found


def by_probe(accuracies: Mapping[str, float]) -> dict[str, float]:
    """Return the accuracies of a probe by the names that they have beside those of the network.

    Examples
    --------
    >>> by_probe({"test_accuracy": 0.88})
    {'probe_test_accuracy': 0.88}
    """
    return {f"probe_{name}": value for name, value in accuracies.items()}


def load_probe(folder: Folder, moment: Checkpoint) -> StoredProbe | None:
    """Return the probe of this moment of the run; None if there is none, or one of another."""
    if not folder.probe.exists():
        return None
    again = "remove it, and 'rmsim train' trains it again"
    try:
        header, arrays = load_arrays(folder.probe)
    except UnreadableDataError as problem:
        raise UnreadableDataError(f"{problem}: {again}") from None
    try:
        mine: dict[str, Any] = {"plan": moment.plan.to_dict(), "data": moment.data}
        if any(header[name] != value for name, value in mine.items()):
            return None
        if header["epoch"] != moment.epoch:
            return None
        weights = torch.tensor(arrays["w_out"], device=moment.state.device)
        shape = (moment.state.classes, int(moment.state.a_out.sum()))
        if tuple(weights.shape) != shape or not bool(weights.isfinite().all()):
            raise ValueError(
                f"w_out has shape {tuple(weights.shape)}, not {shape}, or is not finite"
            )
        parameters = ProbeParameters(**header["probe"])
        accuracies = dict(header["accuracies"])
    except (KeyError, TypeError, ValueError) as problem:
        reason = f"{folder.probe} is no probe of a run: {problem}"
        raise UnreadableDataError(f"{reason}: {again}") from None
    return StoredProbe(moment.epoch, parameters, LinearReadout(weights), accuracies)
