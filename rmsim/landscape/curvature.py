r"""Path curvature: how far attractors of intermediate inputs lie off the way.

.. math::
    C(\tau) = \frac{d(s^\mu, s_\tau) + d(s_\tau, s^\nu)}{d(s^\mu, s^\nu)} \ge 1, \qquad
    \kappa = \max_{0<\tau<1} \overline{C(\tau)},

the average over resamplings of the input :math:`x_\tau`. C = 1 where the attractor lies on a
shortest path. The maximum of averages that are noisy is biased upwards, the less so the more
resamplings there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from rmsim.landscape.inputs import Relax, hamming, intermediate
from rmtheory import checks
from rmtheory.errors import InvalidInputError, NotConvergedError

Array = NDArray[np.float64]


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
        return float(self.kappa.mean()), self.kappa_deviation / math.sqrt(self.kappa.size)

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
    start, end, first, last = (part[apart] for part in (start, end, first, last))
    values = np.empty((len(taus), resamples, start.shape[0]))
    for k, tau in enumerate(taus):
        for again in range(resamples):
            between = relax(intermediate(start, end, tau, draw))
            values[k, again] = path_curvature(first, between, last).cpu().numpy()
    mean = values.mean(axis=1).T
    error = values.std(axis=1, ddof=1).T / math.sqrt(resamples)
    skipped = int((~apart).sum())
    return Curvature(np.array(taus, dtype=float), mean, error, mean.max(axis=1), skipped)
