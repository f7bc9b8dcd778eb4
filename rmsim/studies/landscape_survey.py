"""The landscape of attractors of one network before and after it learns (paper, SM-G and SM-H)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rmsim.data import Dataset, Samples
from rmsim.dynamics.sweeps import synchronous
from rmsim.learning import Parameters, State, infer
from rmsim.learning.run_folder import Plan
from rmsim.learning.training import accuracies
from rmsim.studies.attractor_paths import (
    Evolve,
    Relax,
    curvature,
    displacement,
    hamming,
    trajectory_distances,
)
from rmsim.studies.trained_networks import looks_at_many, work_of_points
from rmsim.tensors import checked_sync_interval, choose_device, generator
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError
from rmtheory.base.statistics import standard_error
from rmtheory.base.wording import counted
from rmtheory.runtime.files import replacing

Array = NDArray[np.float64]

#: Stream of random numbers under the seed of a network, beside those of its weights.
_STREAM = 11


#: Sweeps after which a state counts as the attractor, fixed point or not.
MOST_SWEEPS = 200

#: Inputs relaxed together.
_TOGETHER = 512


@dataclass(frozen=True)
class Survey:
    """How much is measured.

    Parameters
    ----------
    pairs : int
        Pairs of inputs, between which the curvature is measured.
    steps : int
        The paths are measured at tau = 1/steps, 2/steps, ...
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


def attractors_of(
    parameters: Parameters, state: State, most_sweeps: int = MOST_SWEEPS
) -> tuple[Relax, Evolve]:
    """Return the maps from inputs to attractors, from s = 0 and from given states.

    Parameters
    ----------
    parameters, state
        A network of one layer, its neurons updated together. States are returned on its device,
        wherever the inputs are.
    most_sweeps : int
        Where there is no fixed point, as without self-coupling, the state after so many sweeps.
    """
    layers, p = parameters.couplings.layers, parameters.phases.p
    if layers != 1 or p < 1:
        got = f"{counted(layers, 'layer')}, p = {p:g}"
        raise InvalidInputError("network", got, "one layer without masks")
    checks.integer("most_sweeps", most_sweeps, 1)
    until = parameters.with_settings(stop="converged", inference=most_sweeps)

    def relax(inputs: torch.Tensor) -> torch.Tensor:
        shape = inputs.shape[:-1]
        s = infer(until, state, inputs.reshape(-1, inputs.shape[-1]), together=_TOGETHER)
        return s.reshape(*shape, -1)

    def evolve(states: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        x = inputs.to(device=state.device, dtype=state.dtype)
        field = state.w_in.field(x).view(1, len(inputs), 1, -1)
        s = states.to(device=state.device, dtype=state.dtype, copy=True).view_as(field)
        moving = torch.arange(len(inputs), device=state.device)
        every = checked_sync_interval(state.device)  # states at rest wait until a GPU is read
        for sweep in range(most_sweeps):
            if not len(moving):
                break
            before = s[:, moving]
            after = synchronous(state.couplings, before, field[:, moving])
            s[:, moving] = after
            if (sweep + 1) % every == 0:
                moving = moving[(after != before).flatten(2).any(2)[0]]
        return s[0, :, 0].to(torch.int8)

    return relax, evolve


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
    start, end = (part.to(state.device) for part in _pairs(inputs, wanted.pairs, draw))
    taus = [k / wanted.steps for k in range(wanted.steps + 1)]
    bent = curvature(relax, start, end, taus[1:-1], wanted.resamples, draw)
    mean, error = bent.kappa_mean
    distances = trajectory_distances(relax, start, end, taus, draw).cpu().numpy()
    chosen = torch.randperm(len(inputs), generator=draw)[: wanted.patterns]
    chosen = chosen[torch.argsort(labels[chosen], stable=True)]
    classes = len(set(labels[chosen].tolist()))
    if not 1 < classes < len(chosen):
        allowed = "so many that some have the same label and some have different ones"
        raise InvalidInputError("patterns", wanted.patterns, allowed)
    patterns = inputs[chosen].to(state.device)
    states = relax(patterns)
    kicked = displacement(evolve, states, patterns, list(wanted.noises), draw)
    values: dict[str, Any] = {
        "curvature": bent.kappa,
        "curvature_error": bent.error[np.arange(len(bent.kappa)), bent.mean.argmax(axis=1)],
        "curvature_mean": mean,
        "curvature_mean_error": error,
        "curvature_sd": bent.kappa_deviation,
        "curvature_sd_error": bent.kappa_deviation / math.sqrt(2 * (len(bent.kappa) - 1)),
        "trajectory": distances.mean(axis=0),
        "trajectory_error": standard_error(distances),
        **similarities(states, labels[chosen]),
    }
    for name, level in (("q25", 0.25), ("median", 0.5), ("q75", 0.75)):
        values[f"displacement_{name}"], values[f"displacement_{name}_error"] = kicked.quantile(
            level
        )
    return values


def similarities(states: torch.Tensor, labels: torch.Tensor) -> dict[str, Any]:
    """Return the similarity 1 - d of `states` (patterns, N) and its means by label.

    The error of a mean is that of the means of single patterns, which share no other pattern.
    """
    matrix = 1 - torch.stack([hamming(one, states) for one in states]).cpu().numpy()
    labels = labels.cpu()
    same = (labels[:, None] == labels[None, :]).numpy()
    other = ~np.eye(len(matrix), dtype=bool)
    values: dict[str, Any] = {
        "similarity": matrix.astype(np.float32),
        "similarity_error": np.zeros_like(matrix, dtype=np.float32),  # counted, not estimated
        "labels": labels.numpy(),
    }
    for name, mask in (("mean", other), ("within", same & other), ("between", ~same)):
        each = np.array([row[m].mean() for row, m in zip(matrix, mask, strict=True) if m.any()])
        values[f"similarity_{name}"] = float(matrix[mask].mean())
        values[f"similarity_{name}_error"] = float(standard_error(each))
    return values


def landscape(
    point: dict[str, Any], seed: int, device: str | torch.device = "cpu"
) -> dict[str, Any]:
    """Train the network of `point`; return its survey at the epochs ``looks``, and accuracies.

    The point is that of :func:`rmsim.studies.trained_networks.trained`, with ``survey``.
    """
    (values,) = landscape_of_many([point], [seed], device)
    return values


def landscape_of_many(
    points: Sequence[dict[str, Any]],
    seeds: Sequence[int],
    device: str | torch.device = "cpu",
    threads: int | None = None,
) -> list[dict[str, Any]]:
    """Do what :func:`landscape` does for several points, whose networks learn side by side."""
    place = choose_device(device, work_of_points(points, seeds))
    rows = looks_at_many(points, seeds, place, threads, _look)
    return [_stacked(own) | {"device": str(place)} for own in rows]


def _look(plan: Plan, data: Dataset, point: Mapping[str, Any], state: State) -> dict[str, Any]:
    """Return the survey of one network, and its accuracies."""
    row = survey(plan.parameters, state, data.train, Survey(**point["survey"]), plan.seed)
    seen = data.train.first(min(len(data.test), len(data.train)))
    for name, value in accuracies(plan.parameters, state, seen, data.test).items():
        row[name.replace("train_", "training_")] = value
    return row


def _stacked(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Stack the surveys; curvatures may be fewer where ends of a path coincide."""
    stacked: dict[str, Any] = {}
    for name in rows[0]:
        parts = [np.asarray(row[name], dtype=float) for row in rows]
        if parts[0].ndim == 1:
            most = max(len(part) for part in parts)
            parts = [np.pad(part, (0, most - len(part)), constant_values=np.nan) for part in parts]
        stacked[name] = np.stack(parts)
    return stacked


def _pairs(
    inputs: torch.Tensor, pairs: int, draw: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return pairs of different samples."""
    count = checks.integer("pairs", pairs, 2, len(inputs) // 2)
    order = torch.randperm(len(inputs), generator=draw)
    return inputs[order[:count]], inputs[order[count : 2 * count]]


def summary(measured: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of a survey that fit on a page, as JSON values."""
    short = {name: value for name, value in measured.items() if np.ndim(value) == 0}
    for name, value in measured.items():
        if name.startswith("displacement"):
            short[name] = np.asarray(value).tolist()
    return short


def plot_survey(
    surveys: Mapping[str, Mapping[str, Any]], noises: Sequence[float], path: Path
) -> None:
    """Draw the surveys of some stages, as :func:`survey` returns them, into `path`."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(7.0, 2.6), layout="constrained")
    bend, kick = picture.subplots(1, 2)
    every = np.concatenate([one["curvature"] for one in surveys.values()])
    bins = np.linspace(every.min(), every.max() + 1e-9, 26).tolist()
    for stage, one in surveys.items():
        bend.hist(one["curvature"], bins, density=True, alpha=0.6, label=stage)
        middle, error = (100 * one[f"displacement_median{end}"] for end in ("", "_error"))
        line = kick.errorbar(noises, middle, error, marker="o", capsize=2, label=stage)
        low, high = (100 * one[f"displacement_{level}"] for level in ("q25", "q75"))
        kick.fill_between(noises, low, high, color=line[0].get_color(), alpha=0.25, linewidth=0)
    bend.set(xlabel=r"largest path curvature $\kappa$", ylabel="density")
    kick.set(xlabel="probability of a flip", ylabel="displacement (%)")
    for axis in (bend, kick):
        axis.legend()
    with replacing(path, "plot") as temporary:
        picture.savefig(temporary, format=path.suffix[1:], dpi=200)
