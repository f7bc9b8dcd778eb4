r"""Fractions and medians of a relaxation over disorder, with their errors.

A fraction f of m samples has Wilson's 68 % half width (z = 1),

.. math:: \frac{1}{1 + 1/m} \sqrt{\frac{f (1 - f)}{m} + \frac{1}{4 m^2}} ,

which is not zero at f = 0 or 1. Several starts in one network are not independent: the error is
then the larger of this, over all states, and the standard error over networks.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from rmsim.dynamics.result import Relaxation, Status

#: Half a step of numbers of sweeps, and of periods: no error of theirs is below.
HALF_A_SWEEP = 0.5


def wilson_half_width(
    f: ArrayLike, m: ArrayLike, z: float = 1.0, variance: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Return half the length of Wilson's interval at z standard deviations, for f of m samples.

    The `variance` of a sample is f(1 - f) unless given.

    Examples
    --------
    >>> print(wilson_half_width([0.75, 1], 4))
    [0.2 0.1]
    """
    share, size = np.asarray(f, dtype=float), np.asarray(m, dtype=float)
    spread = share * (1 - share) if variance is None else np.asarray(variance, dtype=float)
    root = np.sqrt(spread / size + (z / (2 * size)) ** 2)
    return np.asarray(z * root / (1 + z * z / size))


def fraction(found: torch.Tensor) -> tuple[float, float]:
    """Return the fraction of `found`, booleans (samples, starts), and its error.

    Starts in one network are not independent, networks are. The half width is Wilson's for as many
    samples as there are networks, with the variance between networks in the place of f(1 - f),
    which it is for single starts. Starts that all agree in few networks leave it large.

    Examples
    --------
    >>> fraction(torch.tensor([[True], [False], [True], [True]]))
    (0.75, 0.2)
    >>> fraction(torch.ones((4, 100), dtype=torch.bool))
    (1.0, 0.1)
    """
    samples = len(found)
    by_network = found.double().mean(1)
    f = float(by_network.mean())
    # One network says nothing about the others.
    variance = float(by_network.var(correction=0)) if samples > 1 else None
    return f, float(wilson_half_width(f, samples, variance=variance))


def median(
    values: torch.Tensor, resolution: float = 0.0, independent: int | None = None
) -> tuple[float, float | None] | None:
    """Return the median and half the 68 % interval of order statistics; None if empty.

    A single value has no error. That of several is not below the `resolution`, half a step of the
    values: some that agree do not prove that all others do.

    The rank of the true median is binomial, so the interval runs over the ranks
    m/2 -+ sqrt(m)/2. If only k of the m values are `independent`, starts in k networks, it is
    m/2 -+ m/(2 sqrt(k)): at most too long.

    Examples
    --------
    >>> median(torch.tensor([5.0, 1.0, 3.0, 2.0, 4.0]))
    (3.0, 1.0)
    >>> median(torch.tensor([3.0, 3.0]), HALF_A_SWEEP)
    (3.0, 0.5)
    """
    m = values.numel()
    if m == 0:
        return None
    ordered = values.flatten().double().sort().values
    k = m if independent is None else independent
    low = max(0, math.floor((m - m / math.sqrt(k)) / 2))
    high = min(m - 1, math.ceil((m + m / math.sqrt(k)) / 2) - 1)
    middle = float(ordered[(m - 1) // 2] + ordered[m // 2]) / 2
    if k == 1:
        return middle, None
    return middle, max(float(ordered[high] - ordered[low]) / 2, resolution)


def summary(result: Relaxation) -> dict[str, object]:
    """Return the numbers of a relaxation as JSON values, NAME_error beside each NAME."""
    document: dict[str, object] = {}
    for name, status in (
        ("fixed_point", Status.FIXED_POINT),
        ("cycle", Status.CYCLE),
        ("capped", Status.CAP),
        ("marginal", Status.MARGINAL),
    ):
        value, error = fraction(result.ended(status))
        document[f"{name}_fraction"] = value
        document[f"{name}_fraction_error"] = error
    periods = Counter(result.period[result.ended(Status.CYCLE)].tolist())
    document["periods"] = {str(period): periods[period] for period in sorted(periods)}
    fixed = result.ended(Status.FIXED_POINT)
    networks = int(fixed.any(1).sum())
    middle = median(result.sweeps[fixed], HALF_A_SWEEP, networks)
    document["sweeps_median"] = None if middle is None else middle[0]
    document["sweeps_median_error"] = None if middle is None else middle[1]
    margins = result.min_margin[fixed]
    document["min_margin"] = float(margins.min()) if margins.numel() else None
    return document
