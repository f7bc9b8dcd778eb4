r"""Overlap q_dyn of clamped and free phase before any learning (paper, SM-H), N -> infinity.

A presentation starts at s = 0 and has three phases (paper, Algorithm 1): a warm-up under the input,
a clamped phase under input and label that ends in s', a free phase under the input that ends in s*.
At initialisation input and label reach a neuron as independent Gaussian fields,

.. math:: b_{in} = \lambda_x u, \qquad b_{label} = \lambda_y\, \kappa\, v, \qquad u, v \sim N(0, 1),
    \qquad \kappa^2 = \frac{1}{C}\sum_c y_c^2,

with the entries :math:`y_c` of the label's code. They are constant in time and enter the effective
process as they are (:mod:`rmtheory.dynamics.process`); :math:`q_{dyn} = \langle s' s^* \rangle`.
From s = 0 the first sweep sees the input alone.

Distance after a perturbation of a fixed point (paper, SM-G, attractor displacement).

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
from rmtheory.base.statistics import mean, mean_of_rows
from rmtheory.dynamics.averages import (
    BATCHES,
    LEAST_TRAJECTORIES,
    Series,
    quarter_of,
)
from rmtheory.dynamics.process import NumpyArrays, Process, Spins


@dataclass(frozen=True)
class Presentation:
    """The protocol of one presentation; the defaults are those of the preset ``overlaps``.

    Parameters
    ----------
    jd, lambda_x, lambda_y : float
        Self-coupling, and the strengths of input and label.
    warmup, clamped, free : int
        Sweeps of the three phases.
    label_on, label_off : float
        The code of a label: one entry for the class, the others.
    classes : int
        Number of classes C.
    """

    jd: float
    lambda_x: float
    lambda_y: float
    warmup: int = 1
    clamped: int = 100
    free: int = 100
    label_on: float = 2.5
    label_off: float = -math.sqrt(10) / 4
    classes: int = 10

    def __post_init__(self) -> None:
        for name in ("jd", "lambda_x", "lambda_y", "label_on", "label_off"):
            object.__setattr__(self, name, float(checks.exact_real(name, getattr(self, name))))
        if self.lambda_x == 0:
            raise InvalidInputError("lambda_x", 0, "different from 0: from s = 0 the input decides")
        checks.integer("warmup", self.warmup, 1, 4000)
        checks.integer("clamped", self.clamped, 1, 4000)
        checks.integer("free", self.free, 1, 4000)
        checks.integer("classes", self.classes, 2)

    @property
    def finite_size_power(self) -> float:
        """The power of 1/N by which networks of N neurons differ from the limit.

        Phases that end in a fixed point end early, by chance, in a small network: 1/2 (docs: Theory
        of the dynamics). Without J_D they never end: 1.
        """
        return 0.5 if self.jd > 0 else 1.0

    @property
    def label_deviation(self) -> float:
        """Standard deviation of the label's field over neurons."""
        square = self.label_on**2 + (self.classes - 1) * self.label_off**2
        return abs(self.lambda_y) * math.sqrt(square / self.classes)


def overlap_of_phases(
    presentation: Presentation,
    *,
    trajectories: int = 100_000,
    neurons: int | None = None,
    seed: int = 0,
) -> Estimate:
    """Return q_dyn at initialisation, for N -> infinity or the mean over networks of N neurons.

    Parameters
    ----------
    presentation : Presentation
        The protocol.
    trajectories : int
        Copies of the effective process in all.
    neurons : int, optional
        N: copies that measure their own correlation in batches of N have the law of networks of N
        neurons. Without it eight large batches stand for N -> infinity; the error then contains
        their bias, seen in batches of a quarter of the size.
    seed : int
        The same seed gives the same numbers.

    Examples
    --------
    >>> q = overlap_of_phases(
    ...     Presentation(jd=0.5, lambda_x=5, lambda_y=0.9, clamped=20, free=20), trajectories=16_000
    ... )
    >>> abs(q.value - 0.9305) < 0.01  # the paper: 0.930
    True
    """
    trajectories = checks.integer("trajectories", trajectories, 1000)
    size = math.ceil(trajectories / BATCHES)
    if neurons is not None:
        size = checks.integer("neurons", neurons, 2, trajectories // 2)
    batches = math.ceil(trajectories / size)
    sequence = np.random.SeedSequence(checks.integer("seed", seed, 0))
    method = f"effective process of both phases, {batches} x {size} trajectories"
    whole = overlaps_of_batches(presentation, size, batches, sequence)
    average = mean(whole)
    if neurons is None:
        quarters = overlaps_of_batches(presentation, quarter_of(size), batches, sequence)
        bias = (float(quarters.mean()) - average.value) / (4**presentation.finite_size_power - 1)
        error = math.hypot(average.error, bias) + 1e-12
        return Estimate(average.value, error, Tier.ESTIMATED, method)
    # No error is exactly 0, not even where all batches agree.
    return Estimate(average.value, average.error + 1e-12, Tier.ESTIMATED, method)


def overlaps_of_batches(
    presentation: Presentation, size: int, count: int, seed: int | np.random.SeedSequence = 0
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return q_dyn of `count` independent batches of `size` copies: of networks of that size.

    Their spread is that over networks, inputs and labels. A sequence that is given again goes on
    with other random numbers.

    Examples
    --------
    >>> few = overlaps_of_batches(Presentation(0.5, 5, 0.9, clamped=9, free=9), 400, 3)
    >>> few.shape, bool(np.all(few > 0.8))
    ((3,), True)
    """
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    children = sequence.spawn(count)
    return np.array(
        [_present(presentation, size, np.random.default_rng(child)) for child in children]
    )


def _present(protocol: Presentation, size: int, generator: np.random.Generator) -> float:
    source = np.float32(protocol.lambda_x) * generator.standard_normal((1, size), dtype=np.float32)
    label = np.float32(protocol.label_deviation) * generator.standard_normal(
        (1, size), dtype=np.float32
    )
    # The first sweep, from s = 0, sees the input alone.
    start = np.where(source >= 0, 1, -1).astype(np.int8)
    sweeps = protocol.warmup - 1 + protocol.clamped + protocol.free
    process = Process(protocol.jd, 0.0, 0.0, start, sweeps, NumpyArrays(generator))
    for _ in range(protocol.warmup - 1):
        process.sweep(source)
    for _ in range(protocol.clamped):
        if not process.sweep(source + label).any():
            break
    clamped = process.s
    for _ in range(protocol.free):
        if not process.sweep(source).any():
            break
    return float((clamped * process.s).mean(dtype=np.float64))


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
    size = math.ceil(checks.integer("trajectories", trajectories, LEAST_TRAJECTORIES) / BATCHES)
    children = np.random.SeedSequence(checks.integer("seed", seed, 0)).spawn(BATCHES)
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
    method = f"effective process of both relaxations, {BATCHES} x {size} trajectories"
    # One copy in all is the least that could have been seen.
    least = 1 / (BATCHES * size * layers)
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
    process = Process(
        chain.jd, chain.lam_left, chain.lam_right, start, 2 * sweeps, NumpyArrays(generator)
    )
    rest, active = _frozen(process, source, sweeps)
    distances = []
    for noise, child in zip(noises, others, strict=True):
        again = copy.deepcopy(process)
        kicks = np.random.default_rng(child)
        again.reseed(NumpyArrays(kicks))
        turned = kicks.random(rest.shape) < noise
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
