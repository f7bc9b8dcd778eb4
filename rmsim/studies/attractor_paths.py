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
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from rmsim.tensors import checked_states
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.base.statistics import quantile_error, standard_error

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
