r"""Train the network of a point, measure it at chosen epochs, and average over networks.

The weights follow from the plan alone (:class:`rmsim.learning.run_folder.Plan`): two experiments
that measure the same network differently train the same one.

:func:`benchmark` compares a sparse network with the binarised perceptron that has as many
parameters (paper, SM-D). :func:`two_layers` trains two coupled layers that both see input and label
(paper, main text, duality of J_D and lambda),

.. math:: h^l_i = \sum_{j\ne i} J^l_{ij} s^l_j + J_D s^l_i + \lambda s^{3-l}_i + \dots, \qquad
    \kappa = 0.9 + J_D + \lambda .

The paper gives no settings for these. Neurons are updated with probability p = .85 in a sweep,
since two layers updated together fall into 2-cycles; the margin grows with the couplings that
stabilise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch

from rmsim.compiled_loops import side_by_side
from rmsim.data.catalogue import load
from rmsim.data.dataset import Dataset, Samples
from rmsim.learning.baselines import (
    MlpParameters,
    baseline_preset,
    core_parameters,
    fit_mlp,
    matched_width,
)
from rmsim.learning.parameters import Parameters
from rmsim.learning.presets import MEASURED_AT, preset
from rmsim.learning.protocol import infer, learning_of_many, measure, run_epochs, work_of
from rmsim.learning.readout import (
    Features,
    ProbeParameters,
    checked_features,
    fit_probe,
)
from rmsim.learning.run_folder import Plan
from rmsim.learning.state import State, initialise
from rmsim.learning.training import accuracies
from rmsim.tensors import choose_device
from rmtheory.base.errors import InvalidInputError
from rmtheory.base.statistics import binomial_error, standard_error

if TYPE_CHECKING:
    import xarray as xr

#: Of the symmetry level of one matrix of single precision, which is counted, not estimated.
_ROUNDING = 1e-6

#: Names in a point that are not parameters of the protocol.
_OTHERS = (
    "preset",
    "n",
    "replica",
    "train_samples",
    "test_samples",
    "dataset",
    MEASURED_AT,
    "watched",
    "settle",
    "survey",
)


def plan_of(point: Mapping[str, Any], seed: int) -> Plan:
    """Return the plan of a point: ``preset``, ``n``, sizes of the data, parameters by name.

    Examples
    --------
    >>> plan_of({"preset": "overlaps", "n": 100, "jd": 0.0, "replica": 1}, 7).parameters.j.kappa
    0.9
    """
    data: dict[str, Any] = {
        name: point.get(name) for name in ("train_samples", "test_samples", "dataset")
    }
    settings = {name: value for name, value in point.items() if name not in _OTHERS}
    return Plan.of_preset(point["preset"], point["n"], seed=seed, **data, **settings)


def epochs_of(
    plan: Plan, data: Dataset, epochs: Sequence[int], device: torch.device | str = "cpu"
) -> Iterator[tuple[int, State]]:
    """Train, and give the weights after each number of epochs in `epochs`, which increase.

    Parameters
    ----------
    plan : Plan
        What to train.
    data : Dataset
        The part of the data set that the plan takes.
    epochs : sequence of int
        Numbers of epochs; 0 is the initialisation.
    device : torch.device or str
        Where the weights are.
    """
    for number, (state,) in epochs_of_many([plan], data, epochs, device):
        yield number, state


def epochs_of_many(
    plans: Sequence[Plan],
    data: Dataset,
    epochs: Sequence[int],
    device: torch.device | str = "cpu",
    threads: int | None = None,
) -> Iterator[tuple[int, list[State]]]:
    """Train networks on the same samples side by side; give their weights as :func:`epochs_of`.

    Parameters
    ----------
    plans : sequence of Plan
        What to train.
    data, epochs, device
        As for :func:`epochs_of`.
    threads : int, optional
        Networks at a time on a CPU.
    """
    if not epochs or list(epochs) != sorted({*epochs}) or epochs[0] < 0:
        raise InvalidInputError("epochs", list(epochs), "numbers of epochs that increase from 0 on")
    states = [
        initialise(plan.parameters, data.width, data.classes, plan.seed, device=device)
        for plan in plans
    ]
    if epochs[0] == 0:
        yield 0, states
    parameters, seeds = [plan.parameters for plan in plans], [plan.seed for plan in plans]
    samples = data.train.tensors(states[0].dtype, device)
    learn = learning_of_many(parameters, *samples, seeds, threads=threads)
    for epoch in run_epochs(learn, states, 0, epochs[-1]):
        if epoch.number in epochs:
            yield epoch.number, epoch.state


def work_of_points(points: Sequence[Mapping[str, Any]], seeds: Sequence[int]) -> float:
    """Return the multiplications of a sweep of their networks side by side."""
    plans = (plan_of(point, seed) for point, seed in zip(points, seeds, strict=True))
    return work_of([plan.parameters for plan in plans])


#: Plan, its part of the data, point and state -> what is measured.
Metrics = Callable[[Plan, Dataset, Mapping[str, Any], State], dict[str, Any]]


def metrics_of_many(
    points: Sequence[Mapping[str, Any]],
    seeds: Sequence[int],
    device: torch.device,
    threads: int | None,
    metrics: Metrics,
) -> list[list[dict[str, Any]]]:
    """Train the networks of the points, side by side if they have the same samples and epochs.

    Parameters
    ----------
    points, seeds : sequence
        See :func:`plan_of`; :data:`MEASURED_AT` are the epochs.
    device : torch.device
        Where to compute.
    threads : int, optional
        Networks at a time on a CPU.
    metrics : callable
        Measures a network, after each of these epochs.

    Returns
    -------
    list
        For each point, what was measured at its epochs.
    """
    plans = [plan_of(point, seed) for point, seed in zip(points, seeds, strict=True)]
    together: dict[tuple[Any, ...], list[int]] = {}
    for k, (plan, point) in enumerate(zip(plans, points, strict=True)):
        kept = (plan.dataset, plan.train_samples, plan.test_samples, *point[MEASURED_AT])
        together.setdefault(kept, []).append(k)
    rows: list[list[dict[str, Any]]] = [[] for _ in points]
    for members in together.values():
        own = [plans[k] for k in members]
        data = own[0].data(load(own[0].dataset, download=False))
        epochs = points[members[0]][MEASURED_AT]
        workers = threads if device.type == "cpu" else 1
        with side_by_side(len(members), workers) as run:
            for _, states in epochs_of_many(own, data, epochs, device, threads):

                def measured(
                    k: int, state: State, data: Dataset = data, plans: Sequence[Plan] = plans
                ) -> None:
                    rows[k].append(metrics(plans[k], data, points[k], state))

                run(measured, list(zip(members, states, strict=True)))
    return rows


def trained(point: dict[str, Any], seed: int, device: str | torch.device = "cpu") -> dict[str, Any]:
    """Train the network of `point`; return what is measured at its epochs, as arrays.

    Parameters
    ----------
    point : dict
        See :func:`plan_of`; :data:`MEASURED_AT` are the epochs at which it is measured,
        ``watched`` the training samples on which phases are. With ``settle``, phases of up to so
        many sweeps are tried too, whatever the protocol does: ``unstable_free`` is the share of
        samples that reach no fixed point.
    seed : int
        Of the weights and of the order of the samples.
    device : str or torch.device
        Where to compute.
    """
    (values,) = trained_of_many([point], [seed], device)
    return values


def trained_of_many(
    points: Sequence[dict[str, Any]],
    seeds: Sequence[int],
    device: str | torch.device = "cpu",
    threads: int | None = None,
) -> list[dict[str, Any]]:
    """Do what :func:`trained` does for several points, whose networks learn side by side."""
    return measured_of_many(points, seeds, device, threads, _metrics, _as_lists)


def _as_lists(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def measured_of_many(
    points: Sequence[dict[str, Any]],
    seeds: Sequence[int],
    device: str | torch.device,
    threads: int | None,
    metrics: Metrics,
    stacked: Callable[[list[dict[str, Any]]], dict[str, Any]],
) -> list[dict[str, Any]]:
    """Train the networks of `points` side by side; return their `metrics` at their epochs.

    `stacked` makes one dictionary of those of all epochs; the device is added.
    """
    place = choose_device(device, work_of_points(points, seeds))
    rows = metrics_of_many(points, seeds, place, threads, metrics)
    return [stacked(own) | {"device": str(place)} for own in rows]


def accuracies_of(plan: Plan, state: State, data: Dataset) -> dict[str, float | None]:
    """Return accuracies on all test samples and on as many training samples.

    Both then have the same error.
    """
    seen = data.train.first(min(len(data.test), len(data.train)))
    values = accuracies(plan.parameters, state, seen, data.test)
    return {name.replace("train_", "training_"): value for name, value in values.items()}


def _metrics(plan: Plan, data: Dataset, point: Mapping[str, Any], state: State) -> dict[str, Any]:
    """Return what is measured of one network."""
    watched = data.train.first(min(point["watched"], len(data.train)))
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
    return row | accuracies_of(plan, state, data)


def _settled(
    parameters: Parameters, state: State, samples: Samples, sweeps: int
) -> dict[str, float]:
    """Return the share of samples whose free phase reaches no fixed point within `sweeps`."""
    longer = parameters.with_settings(scheme="full", stop="converged", clamped=sweeps, free=sweeps)
    share = measure(longer, state, *samples.tensors(state.dtype)).unstable_free
    return {
        "unstable_free": share,
        "unstable_free_error": binomial_error(share, len(samples)),
    }


def over_replicas(points: xr.Dataset, meaning: Mapping[str, str]) -> xr.Dataset:
    r"""Return the mean over ``replica`` of the variables named in `meaning`, with errors.

    .. math:: \sigma^2 = \frac{\mathrm{var}}{R} + \bar\epsilon^2,

    the spread of R networks, and the error :math:`\epsilon` of the measurement of one (NAME_error).
    The second is there because networks are tested on the same samples, and because the spread of
    two or three says little; with one network it is all there is.

    Parameters
    ----------
    points : xarray.Dataset
        As :func:`rmsim.sweep.collect` gives it.
    meaning : mapping
        Variables, and what they mean.
    """
    import xarray as xr  # here, because workers import this package and do without

    variables: dict[str, xr.DataArray] = {}
    count = points.sizes["replica"]
    for name, text in meaning.items():
        every = points[name].astype(float)
        own = points[f"{name}_error"].mean("replica", skipna=False)
        error = own
        if count > 1:
            spread = every.reduce(standard_error, "replica")
            error = (spread**2 + own**2) ** 0.5
        variables[name] = every.mean("replica", skipna=False).assign_attrs(long_name=text)
        variables[f"{name}_error"] = error
    return xr.Dataset(variables)


# A sparse network against a perceptron.


def benchmark(
    point: dict[str, Any], seed: int, device: str | torch.device = "cpu"
) -> dict[str, Any]:
    """Train the network of `point` and its probe, and the perceptron, for as many epochs.

    The point is that of :func:`trained`, measured once, at the end.
    """
    plan, place = plan_of(point, seed), choose_device(device)
    data = plan.data(load(plan.dataset, download=False))
    (epochs,) = point[MEASURED_AT]
    ((_, state),) = epochs_of(plan, data, [epochs], place)

    def seen(samples: Samples) -> Features:
        inputs, labels = samples.tensors(state.dtype)
        s = infer(plan.parameters, state, inputs).flatten(1)
        return checked_features(s, labels, data.classes, place)

    probe = ProbeParameters(epochs=preset(plan.preset).probe_epochs(epochs))
    ours = fit_probe(seen(data.train), seen(data.test), probe, seed).test
    assert ours is not None  # there are samples to test on
    sizes = data.width, data.classes
    couplings = plan.parameters.couplings
    core = core_parameters(couplings.n, *sizes, couplings.rho, plan.parameters.w_in.rho)
    rate = baseline_preset(plan.preset).eta_mlp
    settings = MlpParameters(matched_width(core, *sizes).width, eta=rate, epochs=epochs)
    train, test = (
        checked_features(*part.tensors(), data.classes, place) for part in (data.train, data.test)
    )
    other = fit_mlp(train, test, settings, seed).test
    fractions = {"accuracy": ours.accuracy, "mlp_accuracy": other.accuracy}
    errors = {f"{name}_error": binomial_error(x, len(data.test)) for name, x in fractions.items()}
    return {name: [x] for name, x in (fractions | errors).items()} | {"device": str(place)}


def linear_accuracy(
    point: Mapping[str, Any],
    seed: int,
    *,
    epochs: int = 10,
    device: str | torch.device = "cpu",
) -> tuple[float, float]:
    """Return the test accuracy of a softmax classifier on the inputs themselves, and its error.

    Parameters
    ----------
    point : mapping
        See :func:`plan_of`: its data set and how much of it.
    seed : int
        Of the order of the samples.
    epochs : int
        Passes over the samples.
    device : str or torch.device
        Where to compute.
    """
    plan, place = plan_of(point, seed), choose_device(device)
    data = plan.data(load(plan.dataset, download=False))
    train, test = (
        checked_features(*part.tensors(), data.classes, place) for part in (data.train, data.test)
    )
    score = fit_probe(train, test, ProbeParameters(epochs=epochs), seed).test
    assert score is not None  # there are samples to test on
    return score.accuracy, binomial_error(score.accuracy, len(data.test))


# Two coupled layers.

_PAIR: dict[str, Any] = {
    "layers": 2,
    "p": 0.85,
    "shared_back": True,
    "input_to": "all",
    "label_to": "all",
    "output_from": "all",
}


def pair_settings(jd: float, lam: float) -> dict[str, Any]:
    """Return the settings of two layers that both see input and label, coupled by `lam`.

    Examples
    --------
    >>> round(pair_settings(0.5, 1.0)["kappa_j"], 2)
    2.4
    """
    kappa = 0.9 + float(jd) + float(lam)
    couplings = {"lam_left": float(lam), "lam_right": float(lam)}
    return {**_PAIR, **couplings, "jd": jd, "kappa_j": kappa, "kappa_in": kappa}


def two_layers(
    point: dict[str, Any], seed: int, device: str | torch.device = "cpu"
) -> dict[str, Any]:
    """Train two layers with the ``jd`` and ``lam`` of `point`; see :func:`trained`."""
    return trained(_pair(point), seed, device)


def two_layers_of_many(
    points: Sequence[dict[str, Any]],
    seeds: Sequence[int],
    device: str | torch.device = "cpu",
    threads: int | None = None,
) -> list[dict[str, Any]]:
    """Do what :func:`two_layers` does for several points, whose networks learn side by side."""
    return trained_of_many([_pair(point) for point in points], seeds, device, threads)


def _pair(point: dict[str, Any]) -> dict[str, Any]:
    """Return the point with the settings of two layers."""
    rest = {name: value for name, value in point.items() if name != "lam"}
    return {**rest, **pair_settings(point["jd"], point["lam"])}
