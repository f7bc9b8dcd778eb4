"""Train the network of a point, and look at it at chosen epochs.

The weights follow from the plan alone (:class:`rmsim.training.Plan`): two experiments that look at
the same network differently train the same one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from rmsim.data import Dataset, Samples, load
from rmsim.learning import Parameters, State, epoch_order, initialise, measure, train
from rmsim.training import Plan
from rmsim.training.look import accuracies, binomial_error
from rmtheory.errors import InvalidInputError

#: Of the symmetry level of one matrix of single precision, which is counted, not estimated.
_ROUNDING = 1e-6

#: What of a point is no parameter of the protocol.
_OTHERS = (
    "preset",
    "n",
    "replica",
    "train_samples",
    "test_samples",
    "dataset",
    "looks",
    "watched",
    "settle",
    "survey",
)


def plan_of(point: Mapping[str, Any], seed: int) -> Plan:
    """Return the plan of a point: ``preset``, ``n``, sizes of the data, parameters by name.

    Examples
    --------
    >>> plan_of({"preset": "overlaps", "n": 100, "jd": 0.0, "replica": 1}, 7).parameters.kappa_j
    0.9
    """
    data: dict[str, Any] = {
        name: point.get(name) for name in ("train_samples", "test_samples", "dataset")
    }
    settings = {name: value for name, value in point.items() if name not in _OTHERS}
    return Plan.of_preset(point["preset"], point["n"], seed=seed, **data, **settings)


def epochs_of(plan: Plan, data: Dataset, looks: Sequence[int]) -> Iterator[tuple[int, State]]:
    """Train, and give the weights after each number of epochs in `looks`, which increase.

    Parameters
    ----------
    plan : Plan
        What to train.
    data : Dataset
        The part of the data set that the plan takes.
    looks : sequence of int
        Numbers of epochs; 0 is the initialisation.
    """
    if not looks or list(looks) != sorted({*looks}) or looks[0] < 0:
        raise InvalidInputError("looks", list(looks), "numbers of epochs that increase from 0 on")
    state = initialise(plan.parameters, data.width, data.classes, plan.seed)
    inputs, labels = data.train.tensors(state.dtype)
    for epoch in range(looks[-1] + 1):
        if epoch in looks:
            yield epoch, state
        if epoch < looks[-1]:
            order = epoch_order(plan.seed, epoch, len(data.train))
            state = train(plan.parameters, state, inputs, labels, order)


def trained(point: dict[str, Any], seed: int) -> dict[str, Any]:
    """Train the network of `point`; return what is seen at the epochs ``looks``, as arrays.

    Parameters
    ----------
    point : dict
        See :func:`plan_of`; ``looks`` are the epochs, ``watched`` the training samples on which
        phases are measured. With ``settle``, phases of up to so many sweeps are tried too, whatever
        the protocol does: ``unstable_free`` is the share of samples that end in no fixed point.
    seed : int
        Of the weights and of the order of the samples.
    """
    plan = plan_of(point, seed)
    data = plan.data(load(plan.dataset, download=False))
    watched = data.train.first(min(point["watched"], len(data.train)))
    # As many training samples as there are test samples: both accuracies have the same error.
    predicted = data.train.first(min(len(data.test), len(data.train)))
    rows = []
    for _, state in epochs_of(plan, data, point["looks"]):
        seen = measure(plan.parameters, state, *watched.tensors(state.dtype))
        if seen.q_dyn_error is None or None in asdict(seen.q_dyn_error).values():
            allowed = "at least 19 samples, for the errors of all quantiles"
            raise InvalidInputError("watched", len(watched), allowed)
        row = {
            **{f"qdyn_{level}": value for level, value in asdict(seen.q_dyn).items()},
            **{f"qdyn_{level}_error": x for level, x in asdict(seen.q_dyn_error).items()},
            "sweeps": seen.sweeps_clamped,
            "sweeps_error": seen.sweeps_clamped_error,
            "sweeps_free": seen.sweeps_free,
            "sweeps_free_error": seen.sweeps_free_error,
            "symmetry_level": seen.symmetry,
            "symmetry_level_error": _ROUNDING,
        }
        if "settle" in point:
            row |= _settled(plan.parameters, state, watched, point["settle"])
        for name, value in accuracies(plan.parameters, state, predicted, data.test).items():
            row[name.replace("train_", "training_")] = value
        rows.append(row)
    return {name: [row[name] for row in rows] for name in rows[0]} | {"device": "cpu"}


def _settled(
    parameters: Parameters, state: State, samples: Samples, sweeps: int
) -> dict[str, float]:
    """Return the share of samples whose free phase finds no fixed point within `sweeps`."""
    longer = replace(parameters, scheme="full", stop="converged", clamped=sweeps, free=sweeps)
    share = measure(longer, state, *samples.tensors(state.dtype)).unstable_free
    return {
        "unstable_free": share,
        "unstable_free_error": binomial_error(share, len(samples)),
    }
