r"""Overlap q_dyn of clamped and free phase before any learning (paper, SM-H), N -> infinity.

A presentation starts at s = 0 and has three phases (paper, Algorithm 1): a warm-up under the input,
a clamped phase under input and label that ends in s', a free phase under the input that ends in s*.
At initialisation input and label reach a neuron as independent Gaussian fields,

.. math:: b_{in} = \lambda_x u, \qquad b_{label} = \lambda_y\, \kappa\, v, \qquad u, v \sim N(0, 1),
    \qquad \kappa^2 = \frac{1}{C}\sum_c y_c^2,

with the entries :math:`y_c` of the label's code. They are constant in time and enter the effective
process as they are (:mod:`rmtheory.dynamics.process`); :math:`q_{dyn} = \langle s' s^* \rangle`.
From s = 0 the first sweep sees the input alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.base.statistics import mean
from rmtheory.dynamics.process import Process

_BATCHES = 8


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
        neurons. Without it eight large batches stand for N -> infinity.
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
    size = math.ceil(trajectories / _BATCHES)
    if neurons is not None:
        size = checks.integer("neurons", neurons, 2, trajectories // 2)
    batches = math.ceil(trajectories / size)
    children = np.random.SeedSequence(checks.integer("seed", seed, 0)).spawn(batches)
    overlaps = [_present(presentation, size, np.random.default_rng(child)) for child in children]
    found = mean(overlaps)
    method = f"effective process of both phases, {batches} x {size} trajectories"
    # No error is exactly 0, not even where all batches agree.
    return Estimate(found.value, found.error + 1e-12, Tier.ESTIMATED, method)


def _present(protocol: Presentation, size: int, generator: np.random.Generator) -> float:
    source = np.float32(protocol.lambda_x) * generator.standard_normal((1, size), dtype=np.float32)
    label = np.float32(protocol.label_deviation) * generator.standard_normal(
        (1, size), dtype=np.float32
    )
    # The first sweep, from s = 0, sees the input alone.
    start = np.where(source >= 0, 1, -1).astype(np.int8)
    sweeps = protocol.warmup - 1 + protocol.clamped + protocol.free
    process = Process(protocol.jd, 0.0, 0.0, start, sweeps, generator)
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
