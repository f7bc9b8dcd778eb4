"""The landscape of attractors of one network before and after it learns (paper, SM-G and SM-H)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rmsim.data import Samples, load
from rmsim.experiments.attractors import attractors_of
from rmsim.experiments.training import epochs_of, plan_of
from rmsim.landscape import curvature, displacement, hamming, trajectory_distances
from rmsim.learning import Parameters, State
from rmsim.randomness import generator
from rmsim.training.look import accuracies
from rmtheory import checks

Array = NDArray[np.float64]

#: Stream of random numbers under the seed of a network, beside those of its weights.
_STREAM = 11


@dataclass(frozen=True)
class Survey:
    """What is looked at.

    Parameters
    ----------
    pairs : int
        Pairs of inputs, between which the curvature is measured.
    steps : int
        The paths are looked at tau = 1/steps, 2/steps, ...
    resamples : int
        Inputs drawn for each tau.
    patterns : int
        Attractors that are kicked by noise, and whose similarity is taken.
    noises : tuple of float
        Probabilities of a flip.
    """

    pairs: int = 100
    steps: int = 10
    resamples: int = 10
    patterns: int = 300
    noises: tuple[float, ...] = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)

    def __post_init__(self) -> None:
        for name, least in (("pairs", 2), ("steps", 2), ("resamples", 2), ("patterns", 2)):
            object.__setattr__(self, name, checks.integer(name, getattr(self, name), least))
        object.__setattr__(self, "noises", tuple(float(noise) for noise in self.noises))

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON values."""
        return asdict(self)


def survey(
    parameters: Parameters, state: State, samples: Samples, wanted: Survey, seed: int
) -> dict[str, Any]:
    """Measure curvature, trajectories, displacement and similarity of a network.

    Parameters
    ----------
    parameters, state
        A network of one layer.
    samples : Samples
        Inputs of spins, from which pairs and patterns are drawn.
    wanted : Survey
        How much.
    seed : int
        Of the choice of inputs and of the noise: the same for two networks to be compared.

    Returns
    -------
    dict
        ``curvature`` (pairs), ``trajectory`` (tau, tau) averaged over pairs, ``displacement_LEVEL``
        (noises), ``similarity`` (patterns, patterns) ordered by ``labels``; with NAME_error, and
        ``curvature_mean``, ``curvature_sd``, ``similarity_mean``, ``_within``, ``_between``.
    """
    relax, evolve = attractors_of(parameters, state)
    draw = generator(seed, 0, _STREAM)
    inputs, labels = samples.tensors(state.dtype)
    start, end = _pairs(inputs, wanted.pairs, draw)
    taus = [k / wanted.steps for k in range(wanted.steps + 1)]
    bent = curvature(relax, start, end, taus[1:-1], wanted.resamples, draw)
    mean, error = bent.kappa_mean
    distances = trajectory_distances(relax, start, end, taus, draw).numpy()
    chosen = torch.randperm(len(inputs), generator=draw)[: wanted.patterns]
    chosen = chosen[torch.argsort(labels[chosen], stable=True)]
    states = relax(inputs[chosen])
    kicked = displacement(evolve, states, inputs[chosen], list(wanted.noises), draw)
    found: dict[str, Any] = {
        "curvature": bent.kappa,
        "curvature_error": bent.error[np.arange(len(bent.kappa)), bent.mean.argmax(axis=1)],
        "curvature_mean": mean,
        "curvature_mean_error": error,
        "curvature_sd": bent.kappa_deviation,
        "curvature_sd_error": bent.kappa_deviation / math.sqrt(2 * (len(bent.kappa) - 1)),
        "trajectory": distances.mean(axis=0),
        "trajectory_error": distances.std(axis=0, ddof=1) / math.sqrt(len(distances)),
        **similarities(states, labels[chosen]),
    }
    for name, level in (("q25", 0.25), ("median", 0.5), ("q75", 0.75)):
        found[f"displacement_{name}"], found[f"displacement_{name}_error"] = kicked.quantile(level)
    return found


def similarities(states: torch.Tensor, labels: torch.Tensor) -> dict[str, Any]:
    """Return the similarity 1 - d of `states` (patterns, N) and its means by label.

    The error of a mean is that of the means of single patterns, which share no other pattern.
    """
    matrix = 1 - torch.stack([hamming(one, states) for one in states]).numpy()
    same = (labels[:, None] == labels[None, :]).numpy()
    other = ~np.eye(len(matrix), dtype=bool)
    found: dict[str, Any] = {
        "similarity": matrix.astype(np.float32),
        "similarity_error": np.zeros_like(matrix, dtype=np.float32),  # counted, not estimated
        "labels": labels.numpy(),
    }
    for name, mask in (("mean", other), ("within", same & other), ("between", ~same)):
        each = np.array([row[m].mean() for row, m in zip(matrix, mask, strict=True) if m.any()])
        found[f"similarity_{name}"] = float(matrix[mask].mean())
        found[f"similarity_{name}_error"] = float(each.std(ddof=1) / math.sqrt(len(each)))
    return found


def landscape(point: dict[str, Any], seed: int) -> dict[str, Any]:
    """Train the network of `point`; return its survey at the epochs ``looks``, and accuracies.

    The point is that of :func:`rmsim.experiments.training.trained`, with ``survey``.
    """
    plan = plan_of(point, seed)
    data = plan.data(load(plan.dataset, download=False))
    wanted = Survey(**point["survey"])
    rows = []
    for _, state in epochs_of(plan, data, point["looks"]):
        row = survey(plan.parameters, state, data.train, wanted, seed)
        seen = data.train.first(min(len(data.test), len(data.train)))
        for name, value in accuracies(plan.parameters, state, seen, data.test).items():
            row[name.replace("train_", "training_")] = value
        rows.append(row)
    return _stacked(rows) | {"device": "cpu"}


def _stacked(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Put one look after the other; curvatures may be fewer where ends of a path coincide."""
    found: dict[str, Any] = {}
    for name in rows[0]:
        parts = [np.asarray(row[name], dtype=float) for row in rows]
        if parts[0].ndim == 1:
            most = max(len(part) for part in parts)
            parts = [np.pad(part, (0, most - len(part)), constant_values=np.nan) for part in parts]
        found[name] = np.stack(parts)
    return found


def _pairs(
    inputs: torch.Tensor, pairs: int, draw: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return pairs of different samples."""
    count = checks.integer("pairs", pairs, 2, len(inputs) // 2)
    order = torch.randperm(len(inputs), generator=draw)
    return inputs[order[:count]], inputs[order[count : 2 * count]]


def summary(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of a survey that fit on a page, as JSON values."""
    short = {name: value for name, value in found.items() if np.ndim(value) == 0}
    for name, value in found.items():
        if name.startswith("displacement"):
            short[name] = np.asarray(value).tolist()
    return short
