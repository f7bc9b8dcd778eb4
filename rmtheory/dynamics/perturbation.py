r"""Distance after a perturbation of a fixed point (paper, SM-G, attractor displacement).

The dynamics freezes in a state s*. Every neuron is flipped with probability q, independent of the
couplings, and the network freezes again, in s'. The displacement is the Hamming distance

.. math:: \Delta(q) = \frac{1 - \langle s^* s' \rangle}{2} .

The flips are one more external choice in the history of the effective process
(:mod:`rmtheory.dynamics.process`): its field remembers the path to s* through :math:`C(t,t')` and
goes on from the perturbed state. An input acts as a constant field :math:`\lambda_x u`,
:math:`u \sim N(0,1)`; without it the first state is random.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.base.statistics import mean_of_rows
from rmtheory.dynamics.averages import LEAST_TRAJECTORIES, Series
from rmtheory.dynamics.process import Process, Spins

_BATCHES = 8

#: A state in which more than this fraction of the neurons still flips is not a fixed point.
_FROZEN = 1e-3


@dataclass(frozen=True, eq=False)
class Displacement:
    """Distances after perturbations of every strength.

    Parameters
    ----------
    noises : tuple of float
        Probabilities q of a flip.
    distance : Series, (noises)
        The displacement.
    still_flipping : Estimate
        Fraction of neurons that the last sweeps flipped, the largest of all phases; the distance
        is known up to it.
    """

    noises: tuple[float, ...]
    distance: Series
    still_flipping: Estimate


def displacement(
    chain: Chain,
    noises: Sequence[float],
    *,
    lambda_x: float = 0.0,
    sweeps: int = 100,
    trajectories: int = 40_000,
    seed: int = 0,
) -> Displacement:
    """Return the distance between a fixed point and the one reached after a perturbation.

    Parameters
    ----------
    chain : Chain
        The model, a finite number of layers.
    noises : sequence of float
        Probabilities that a neuron is flipped.
    lambda_x : float
        Strength of the input, which acts on the first layer; 0 starts in a random state instead.
    sweeps : int
        T for each of the two relaxations.
    trajectories : int
        Copies of the effective process, at least 1000.
    seed : int
        The same seed gives the same numbers.

    Raises
    ------
    NotConvergedError
        If the network does not freeze within `sweeps`.

    Examples
    --------
    >>> moved = displacement(Chain(1, 0.5), [0.0, 0.5], lambda_x=5, sweeps=30, trajectories=8000)
    >>> [round(float(x), 2) for x in moved.distance.value]  # networks of 1600: 2.4 %
    [0.0, 0.02]
    """
    layers = chain.finite_layers
    strength = float(checks.exact_real("lambda_x", lambda_x))
    wanted = tuple(float(checks.exact_real("noises", one)) for one in noises)
    if not wanted or not all(0 <= one <= 1 for one in wanted):
        raise InvalidInputError("noises", list(noises), "probabilities from 0 to 1")
    sweeps = checks.integer("sweeps", sweeps, 1, 2000)
    size = math.ceil(checks.integer("trajectories", trajectories, LEAST_TRAJECTORIES) / _BATCHES)
    children = np.random.SeedSequence(checks.integer("seed", seed, 0)).spawn(_BATCHES)
    rows, active = [], []
    for child in children:
        distances, flipping = _batch(chain, layers, wanted, strength, sweeps, size, child)
        rows.append(distances)
        active.append(flipping)
    value, error = mean_of_rows(np.array(rows))
    left, its = mean_of_rows(np.array(active)[:, None])
    if left[0] > _FROZEN:
        raise NotConvergedError(
            f"{chain} with lambda_x = {strength:g} does not freeze within {sweeps} sweeps: a "
            f"fraction {left[0]:.2g} of its neurons still flips"
        )
    method = f"effective process of both relaxations, {_BATCHES} x {size} trajectories"
    # One copy in all is the least that could have been seen.
    least = 1 / (_BATCHES * size * layers)
    still = Estimate(float(left[0]), float(its[0]) + least, Tier.ESTIMATED, method)
    # What still flips may end either way.
    return Displacement(wanted, Series(value, np.hypot(error, left[0] + least), method), still)


def _batch(
    chain: Chain,
    layers: int,
    noises: tuple[float, ...],
    lambda_x: float,
    sweeps: int,
    size: int,
    sequence: np.random.SeedSequence,
) -> tuple[list[float], float]:
    """Return the distance for every noise, and the largest fraction that still flipped."""
    own, *others = sequence.spawn(1 + len(noises))
    generator = np.random.default_rng(own)
    source = np.zeros((layers, size), dtype=np.float32)
    source[0] = np.float32(lambda_x) * generator.standard_normal(size, dtype=np.float32)
    random = 2 * generator.integers(0, 2, (layers, size), dtype=np.int8) - 1
    # From s = 0 the first sweep sees the input alone.
    start = np.where(source == 0, random, np.where(source > 0, 1, -1)).astype(np.int8)
    process = Process(chain.jd, chain.lam_left, chain.lam_right, start, 2 * sweeps, generator)
    rest, active = _frozen(process, source, sweeps)
    distances = []
    for noise, child in zip(noises, others, strict=True):
        again = copy.deepcopy(process)
        again.reseed(np.random.default_rng(child))
        turned = again.generator.random(rest.shape) < noise
        again.s = np.where(turned, -rest, rest).astype(np.int8)
        after, left = _frozen(again, source, sweeps)
        active = max(active, left)
        distances.append(float((after != rest).mean()))
    return distances, active


def _frozen(
    process: Process, source: np.ndarray[tuple[int, ...], np.dtype[np.float32]], sweeps: int
) -> tuple[Spins, float]:
    """Sweep until nothing flips; return the state and the fraction that the last sweep flipped."""
    flipped = 0.0
    for _ in range(sweeps):
        flipped = float(process.sweep(source).mean())
        if flipped == 0:
            break
    return process.s, flipped
