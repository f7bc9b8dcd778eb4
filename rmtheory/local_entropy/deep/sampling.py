r"""A stochastic check: randomised quasi-Monte-Carlo with the planted tilt.

Points (t, x) are drawn from a density in which the replicas sit in one planted state, but for a few
of them (:mod:`planted`), and weighted by what zeta^y is in units of this density. No transfer, no
interpolation and no grid are shared with the transfer operator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import qmc

from rmtheory import checks
from rmtheory.chain import Chain
from rmtheory.errors import InvalidInputError, NotConvergedError
from rmtheory.estimate import Estimate, Tier
from rmtheory.gaussian import Array
from rmtheory.local_entropy.deep.planted import Planted

#: A point that carries more than this of an average makes its error meaningless.
_LARGEST_SHARE = 0.1

#: States of a column are enumerated.
MOST_LAYERS = 8


@dataclass(frozen=True)
class Sampled:
    """phi, S_I per neuron and <1 - m_l^2> at given qhat, with statistical errors."""

    chain: Chain
    d: float
    y: float
    phi: Estimate
    internal: Estimate
    rest: tuple[Estimate, ...]
    seed: int
    #: Largest share of a single point in the average of its scrambling.
    largest_share: float


def sample(
    chain: Chain,
    d: checks.RealLike,
    y: checks.RealLike,
    qhat: Array,
    *,
    seed: int,
    points: int = 2**12,
    scrambles: int = 16,
) -> Sampled:
    """Average over scrambled Sobol points, `scrambles` times independently; errors from these.

    Parameters
    ----------
    chain : Chain
        One to eight layers.
    d, y : real
        Distance, 0 < d < 1/2, and number of replicas, y >= 1.
    qhat : array of float
        One conjugate overlap > 0 for each layer.
    seed : int
        Seed of the scramblings, 0 or more.
    points : int
        Points of one scrambling, a power of two.
    scrambles : int
        Independent repetitions, two or more.
    """
    if not 1 <= chain.layers <= MOST_LAYERS:
        raise InvalidInputError("layers", chain.layers, f"at most {MOST_LAYERS} for sampling")
    layers = int(chain.layers)
    distance, replicas = (float(checks.exact_real(n, v)) for n, v in (("d", d), ("y", y)))
    if not 0 < distance < 0.5:
        raise InvalidInputError("d", d, "strictly between 0 and 1/2")
    if replicas < 1:
        raise InvalidInputError("y", y, "a number >= 1 for sampling")
    conjugate = np.asarray(qhat, dtype=float)
    if conjugate.shape != (layers,):
        raise InvalidInputError("qhat", qhat, f"{layers} numbers, one for each layer")
    if not (np.isfinite(conjugate) & (conjugate > 0)).all():
        raise InvalidInputError("qhat", conjugate.tolist(), "finite numbers > 0")
    count = checks.integer("points", points, 2)
    if count & (count - 1):
        raise InvalidInputError("points", points, "a power of two")
    repeats, start = checks.integer("scrambles", scrambles, 2), checks.integer("seed", seed, 0)
    planted = Planted(chain, distance, replicas, conjugate)
    rng = np.random.default_rng(start)
    found = [
        planted.averages(qmc.Sobol(2 * layers + 1, seed=rng).random(count)) for _ in range(repeats)
    ]
    values = np.array([averages for averages, _ in found])
    mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(repeats)
    method = f"scrambled Sobol points with the planted tilt, seed {start}"
    phi, internal, *rest = (
        Estimate(float(m), float(e), Tier.ESTIMATED, method)
        for m, e in zip(mean, error, strict=True)
    )
    largest = max(share for _, share in found)
    if largest > max(_LARGEST_SHARE, 10 / count):
        raise NotConvergedError(
            f"one of {count} points carries {largest:.0%} of an average at d = {distance:g}, "
            f"y = {replicas:g}: the scatter says nothing of the error; more points may help, the "
            "replicated matrix does at integer y"
        )
    return Sampled(chain, distance, replicas, phi, internal, tuple(rest), start, largest)
