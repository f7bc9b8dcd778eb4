r"""Robustness of attractors: how far the dynamics ends from where noise has kicked it off.

.. math:: \Delta = d(s^*, \tilde s^*), \qquad \tilde s^* = \text{the attractor reached from } s^*
    \text{ with every spin flipped with probability } p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from rmsim.landscape.inputs import Evolve, hamming
from rmtheory.errors import InvalidInputError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Displacement:
    """Displacements (noises, patterns) in steps of 1/N, with their quantiles over patterns."""

    noises: Array
    values: Array
    step: float

    def quantile(self, level: float) -> tuple[Array, Array]:
        """Return a quantile over patterns for every noise, and its error.

        The number of values below a quantile is binomial: the ranks one standard deviation to each
        side enclose it. Where all values between them agree, the error is half a step, not 0; only
        without noise nothing can move.
        """
        spread = math.sqrt(level * (1 - level) / self.values.shape[1])
        levels = np.clip([level - spread, level, level + spread], 0, 1)
        low, middle, high = np.quantile(self.values, levels, axis=1)
        error = (high - low) / 2
        return middle, np.where((error == 0) & (self.noises > 0), self.step / 2, error)


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
