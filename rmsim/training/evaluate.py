"""What a trained network can do, over all samples."""

from __future__ import annotations

import math
from typing import Any

from rmsim.data import Dataset
from rmsim.learning import measure
from rmsim.training.checkpoint import Checkpoint
from rmsim.training.look import accuracies, binomial_error
from rmsim.training.probe import StoredProbe, by_probe, features_of, probe_accuracies
from rmtheory import checks


def evaluate(
    moment: Checkpoint,
    dataset: Dataset,
    probe: StoredProbe | None = None,
    samples: int | None = None,
) -> dict[str, Any]:
    """Return accuracies, q_dyn, symmetry and stability as JSON values, with errors.

    Parameters
    ----------
    moment : Checkpoint
        The weights.
    dataset : Dataset
        The data set of the run.
    probe : StoredProbe, optional
        If there is one, its accuracies are ``probe_train_accuracy`` and ``probe_test_accuracy``;
        those without ``probe_`` are always the ones of the readout that the network learns itself.
    samples : int, optional
        At most so many samples of each set; all of them by default.
    """
    data = moment.plan.data(dataset)
    most = math.inf if samples is None else checks.integer("samples", samples, 1)
    train, test = (part.first(int(min(most, len(part)))) for part in (data.train, data.test))
    parameters, state = moment.plan.parameters, moment.state
    found: dict[str, Any] = {"epoch": moment.epoch, **accuracies(parameters, state, train, test)}
    if probe is not None:
        features = (features_of(moment, part, data.classes) for part in (train, test))
        found |= by_probe(probe_accuracies(probe.readout, *features))
    seen = measure(parameters, state, *train.tensors(state.dtype)).to_dict()
    del seen["samples"]
    found |= {**seen, "train_samples": len(train), "test_samples": len(test)}
    for name in ("unstable_clamped", "unstable_free"):
        found[f"{name}_error"] = binomial_error(found[name], len(train))
    return found
