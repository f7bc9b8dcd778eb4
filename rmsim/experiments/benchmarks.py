"""A sparse network against the binarised perceptron with as many parameters (paper, SM-D)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rmsim.baselines import MlpParameters, baseline_preset, core_parameters, fit_mlp, matched_width
from rmsim.data import Samples, load
from rmsim.experiments.training import epochs_of, plan_of
from rmsim.learning import infer
from rmsim.learning.presets import preset
from rmsim.readout import Features, ProbeParameters, checked_features, fit_probe
from rmsim.training.look import binomial_error


def benchmark(point: dict[str, Any], seed: int) -> dict[str, Any]:
    """Train the network of `point` and its probe, and the perceptron, for as many epochs.

    The point is that of :func:`rmsim.experiments.training.trained`, with one look, at the end.
    """
    plan = plan_of(point, seed)
    data = plan.data(load(plan.dataset, download=False))
    (epochs,) = point["looks"]
    ((_, state),) = epochs_of(plan, data, [epochs])

    def seen(samples: Samples) -> Features:
        inputs, labels = samples.tensors(state.dtype)
        s = infer(plan.parameters, state, inputs).flatten(1)
        return checked_features(s, labels, data.classes)

    probe = ProbeParameters(epochs=preset(plan.preset).probe_epochs(epochs))
    ours = fit_probe(seen(data.train), seen(data.test), probe, seed).test
    assert ours is not None  # there are samples to test on
    sizes = data.width, data.classes
    core = core_parameters(plan.parameters.n, *sizes, plan.parameters.rho_j, plan.parameters.rho_in)
    rate = baseline_preset(plan.preset).eta_mlp
    settings = MlpParameters(matched_width(core, *sizes).width, eta=rate, epochs=epochs)
    train, test = (
        checked_features(*part.tensors(), data.classes) for part in (data.train, data.test)
    )
    other = fit_mlp(train, test, settings, seed).test
    found = {"accuracy": ours.accuracy, "mlp_accuracy": other.accuracy}
    errors = {f"{name}_error": binomial_error(x, len(data.test)) for name, x in found.items()}
    return {name: [x] for name, x in (found | errors).items()} | {"device": "cpu"}


def linear_accuracy(
    point: Mapping[str, Any], seed: int, *, epochs: int = 10
) -> tuple[float, float]:
    """Return the test accuracy of a softmax classifier on the inputs themselves, and its error.

    Parameters
    ----------
    point : mapping
        See :func:`rmsim.experiments.training.plan_of`: its data set and how much of it.
    seed : int
        Of the order of the samples.
    epochs : int
        Passes over the samples.
    """
    plan = plan_of(point, seed)
    data = plan.data(load(plan.dataset, download=False))
    train, test = (
        checked_features(*part.tensors(), data.classes) for part in (data.train, data.test)
    )
    found = fit_probe(train, test, ProbeParameters(epochs=epochs), seed).test
    assert found is not None  # there are samples to test on
    return found.accuracy, binomial_error(found.accuracy, len(data.test))
