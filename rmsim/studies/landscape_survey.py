r"""Attractors between two inputs: path curvature, trajectories, and displacement by noise (SM-G).

**Inputs between two inputs** lie at a given fraction of their Hamming distance,

.. math:: x_\tau:\quad d(x_\tau, x^\mu) = \tau\, d(x^\mu, x^\nu).

The paper draws from all x at that distance from :math:`x^\mu`. Taken literally these include points
off every path, and at :math:`\tau=1` almost never :math:`x^\nu` itself; here only sites at which
the two inputs differ are flipped, so that :math:`x_\tau` lies on a shortest path between them.

**Path curvature** is how far attractors of intermediate inputs lie off the shortest paths,

.. math::
    C(\tau) = \frac{d(s^\mu, s_\tau) + d(s_\tau, s^\nu)}{d(s^\mu, s^\nu)} \ge 1, \qquad
    \kappa = \max_{0<\tau<1} \overline{C(\tau)},

the average over resamplings of the input :math:`x_\tau`. C = 1 where the attractor lies on a
shortest path. The maximum of averages that are noisy is biased upwards, the less so the more
resamplings there are.

**Trajectories** are the distances between the attractors along one random shortest path,

.. math:: D(\tau_1, \tau_2) = d(s_{\tau_1}, s_{\tau_2}) / d(s^\mu, s^\nu),

which is |tau_1 - tau_2| where the attractors move as far as the inputs do.

**Displacement** is the robustness of attractors to noise,

.. math:: \Delta = d(s^*, \tilde s^*), \qquad \tilde s^* = \text{the attractor reached from } s^*
    \text{ with every spin flipped with probability } p.

The landscape of attractors of one network before and after it learns (paper, SM-G and SM-H).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rmsim.data.dataset import Dataset, Samples
from rmsim.dynamics.sweeps import synchronous
from rmsim.learning.parameters import Parameters
from rmsim.learning.protocol import infer
from rmsim.learning.run_folder import Checkpoint, Plan, initial_state
from rmsim.learning.state import State
from rmsim.studies.trained_networks import accuracies_of, measured_of_many
from rmsim.tensors import (
    checked_states,
    checked_sync_interval,
    generator,
)
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError, NotConvergedError, counted
from rmtheory.base.statistics import quantile_error, standard_error
from rmtheory.runtime.files import replacing

Array = NDArray[np.float64]

#: Inputs (..., D) -> the states (..., N) that they lead to, on a device of its choice.
Relax = Callable[[torch.Tensor], torch.Tensor]

#: States (..., N) to start from and inputs (..., D) -> the states reached.
Evolve = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def hamming(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the share of sites, along the last dimension, at which two spin tensors differ.

    Examples
    --------
    >>> hamming(torch.tensor([1.0, 1, 1, -1]), torch.tensor([1.0, -1, 1, 1])).item()
    0.5
    """
    return (a != b).double().mean(dim=-1)


# Inputs between two inputs.


def intermediate(
    start: torch.Tensor, end: torch.Tensor, tau: float, draw: torch.Generator
) -> torch.Tensor:
    """Return inputs at the fraction `tau` of the way from `start` to `end`, drawn uniformly.

    Parameters
    ----------
    start, end : Tensor (..., D)
        Pairs of inputs of spins.
    tau : float
        From 0, which gives `start`, to 1, which gives `end`; the number of flips is rounded.
    draw : torch.Generator
        Where the choice of sites comes from.

    Examples
    --------
    >>> a, b = torch.ones(10), torch.cat([torch.ones(4), -torch.ones(6)])
    >>> x = intermediate(a, b, 0.5, torch.Generator().manual_seed(0))
    >>> int((x != a).sum()), int((x != b).sum())
    (3, 3)
    """
    return path(start, end, [tau], draw).squeeze(0)


def path(
    start: torch.Tensor, end: torch.Tensor, taus: list[float], draw: torch.Generator
) -> torch.Tensor:
    """Return one random shortest path for every pair: inputs (taus, ..., D)."""
    _check(start, end, taus)
    differ = start != end
    # A random rank among the sites that differ; those that agree come last, and are never flipped.
    order = torch.rand(start.shape, generator=draw).to(start.device)
    order = torch.where(differ, order, torch.full_like(order, 2.0))
    rank = order.argsort(dim=-1).argsort(dim=-1)
    count = differ.sum(dim=-1, keepdim=True)
    fractions = torch.tensor(taus, dtype=torch.float64, device=start.device)
    flips = (fractions.reshape(-1, *(1 for _ in start.shape)) * count).round()
    return torch.where(rank < flips, end, start)


def _check(start: torch.Tensor, end: torch.Tensor, taus: list[float]) -> None:
    if start.shape != end.shape:
        raise InvalidInputError("end", tuple(end.shape), f"of the shape {tuple(start.shape)}")
    for name, spins in (("start", start), ("end", end)):
        checked_states(name, spins)
    if not taus:
        raise InvalidInputError("taus", taus, "at least one number")
    for tau in taus:
        if not 0 <= tau <= 1:
            raise InvalidInputError("tau", tau, "a number from 0 to 1")


# Path curvature.


@dataclass(frozen=True)
class Curvature:
    """Curvature of the paths between pairs of attractors.

    Parameters
    ----------
    taus : array (taus)
        Where it was measured.
    mean, error : array (pairs, taus)
        C(tau) averaged over resamplings, and the standard error of that average.
    kappa : array (pairs)
        Its maximum over tau.
    skipped : int
        Pairs left out, because both inputs lead to the same attractor.
    """

    taus: Array
    mean: Array
    error: Array
    kappa: Array
    skipped: int

    @property
    def kappa_mean(self) -> tuple[float, float]:
        """The mean of kappa over pairs and its standard error."""
        return float(self.kappa.mean()), float(standard_error(self.kappa))

    @property
    def kappa_deviation(self) -> float:
        """The standard deviation of kappa over pairs."""
        return float(self.kappa.std(ddof=1))


def path_curvature(first: torch.Tensor, between: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
    """Return C of the attractors `between` for ends `first` and `last`, which must differ.

    Examples
    --------
    >>> a, b = torch.tensor([1.0, 1, 1, 1]), torch.tensor([1.0, 1, -1, -1])
    >>> path_curvature(a, torch.tensor([1.0, 1, 1, -1]), b).item()
    1.0
    >>> path_curvature(a, torch.tensor([1.0, -1, 1, 1]), b).item()
    2.0
    """
    length = hamming(first, last)
    if not bool((length > 0).all()):
        raise InvalidInputError("last", "equal to the first", "another attractor than the first")
    return (hamming(first, between) + hamming(between, last)) / length


def curvature(
    relax: Relax,
    start: torch.Tensor,
    end: torch.Tensor,
    taus: list[float],
    resamples: int,
    draw: torch.Generator,
) -> Curvature:
    """Measure the curvature between the attractors of pairs of inputs (pairs, D).

    Raises
    ------
    NotConvergedError
        If all pairs lead to one attractor each, as they do for a constant map.
    """
    checks.integer("resamples", resamples, 2)
    for tau in taus:
        if not 0 < tau < 1:
            raise InvalidInputError("tau", tau, "a number between 0 and 1")
    first, last = relax(start), relax(end)
    apart = hamming(first, last) > 0
    if int(apart.sum()) < 2:
        raise NotConvergedError("fewer than two pairs of inputs lead to different attractors")
    there = apart.to(start.device)  # a map may leave its states elsewhere than its inputs
    start, end, first, last = start[there], end[there], first[apart], last[apart]
    values = np.empty((len(taus), resamples, start.shape[0]))
    for k, tau in enumerate(taus):
        for again in range(resamples):
            between = relax(intermediate(start, end, tau, draw))
            values[k, again] = path_curvature(first, between, last).cpu().numpy()
    mean = values.mean(axis=1).T
    error = standard_error(values, axis=1).T
    skipped = int((~apart).sum())
    return Curvature(np.array(taus, dtype=float), mean, error, mean.max(axis=1), skipped)


# Trajectories.


def trajectory_distances(
    relax: Relax,
    start: torch.Tensor,
    end: torch.Tensor,
    taus: list[float],
    draw: torch.Generator,
) -> torch.Tensor:
    """Return D for every pair of inputs (pairs, D) and all pairs of `taus`: (pairs, taus, taus).

    Raises
    ------
    NotConvergedError
        If both inputs of a pair lead to the same attractor: there is no trajectory.
    """
    length = hamming(relax(start), relax(end))
    if not bool((length > 0).all()):
        raise NotConvergedError("both inputs of a pair lead to the same attractor")
    states = relax(path(start, end, taus, draw))
    return torch.stack(
        [hamming(states[k], states).transpose(0, -1) / length[..., None] for k in range(len(taus))],
        dim=-2,
    )


# Displacement by noise.


@dataclass(frozen=True)
class Displacement:
    """Displacements (noises, patterns) in steps of 1/N, with their quantiles over patterns."""

    noises: Array
    values: Array
    step: float

    def quantile(self, level: float) -> tuple[Array, Array]:
        """Return a quantile over patterns for every noise, and its error.

        Where all values between the ranks that enclose it agree, the error is half a step, not 0;
        only without noise nothing can move.
        """
        resolution = np.where(self.noises > 0, self.step / 2, 0.0)
        error = quantile_error(self.values, level, resolution=resolution, floor="instead of zero")
        return np.quantile(self.values, level, axis=1), error


def flipped(states: torch.Tensor, noise: float, draw: torch.Generator) -> torch.Tensor:
    """Return `states` with every spin flipped with probability `noise`.

    Examples
    --------
    >>> s = torch.ones(3)
    >>> flipped(s, 1.0, torch.Generator()).tolist(), flipped(s, 0.0, torch.Generator()).tolist()
    ([-1.0, -1.0, -1.0], [1.0, 1.0, 1.0])
    """
    if not 0 <= noise <= 1:
        raise InvalidInputError("noise", noise, "a probability from 0 to 1")
    turned = torch.rand(states.shape, generator=draw).to(states.device) < noise
    return torch.where(turned, -states, states)


def displacement(
    evolve: Evolve,
    states: torch.Tensor,
    inputs: torch.Tensor,
    noises: list[float],
    draw: torch.Generator,
) -> Displacement:
    """Measure the displacement of the attractors `states` (patterns, N) under each noise.

    `evolve` starts from the states it is given, under the inputs (patterns, D) of the attractors.
    """
    if states.ndim != 2 or states.shape[0] < 2:
        raise InvalidInputError("states", tuple(states.shape), "at least 2 states (patterns, N)")
    values = np.stack(
        [
            hamming(states, evolve(flipped(states, noise, draw), inputs)).cpu().numpy()
            for noise in noises
        ]
    )
    return Displacement(np.array(noises, dtype=float), values, 1 / states.shape[1])


#: Stream of random numbers under the seed of a network, beside those of its weights.
_STREAM = 11


#: Sweeps after which a state counts as the attractor, fixed point or not.
MOST_SWEEPS = 200

#: Inputs relaxed together.
_TOGETHER = 512


#: All pairs of patterns are compared: a matrix that has to fit into memory.
MOST_PATTERNS = 5000


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


def survey_of_run(
    checkpoint: Checkpoint, dataset: Dataset, wanted: Survey, seed: int
) -> dict[str, dict[str, Any]]:
    """Return the surveys of the network of a run ``before`` training and ``after``.

    The network before is drawn again from the seed of the run.

    Parameters
    ----------
    checkpoint : Checkpoint
        Of the run, of a network of one layer.
    dataset : Dataset
        The one it was trained on.
    wanted : Survey
        How much; at most :data:`MOST_PATTERNS` patterns.
    seed : int
        Of the choice of inputs and of the noise.
    """
    checks.integer("patterns", wanted.patterns, 2, MOST_PATTERNS)
    plan, used = checkpoint.plan, checkpoint.plan.data(dataset)
    untrained = initial_state(plan, used, checkpoint.state.device)
    stages = {"before": untrained, "after": checkpoint.state}
    return {
        stage: survey(plan.parameters, state, used.train, wanted, seed)
        for stage, state in stages.items()
    }


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
    """Train the network of `point`; return its survey and accuracies at its epochs.

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
    return measured_of_many(points, seeds, device, threads, _metrics, _stacked)


def _metrics(plan: Plan, data: Dataset, point: Mapping[str, Any], state: State) -> dict[str, Any]:
    """Return the survey of one network, and its accuracies."""
    row = survey(plan.parameters, state, data.train, Survey(**point["survey"]), plan.seed)
    return row | accuracies_of(plan, state, data)


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
