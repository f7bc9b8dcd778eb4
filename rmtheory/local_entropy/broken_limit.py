"""Where y* diverges on the branch q0 > 0 (L = 1).

Along the branch q0 approaches q1 and y* grows; y*(q1 - q0) and y*(qhat1 - qhat0) tend to constants,
and 1/y* vanishes linearly at a distance below 1/2. Beyond it S_E stays positive for all y: phi
falls with y to the end, and S_I* is its limit y -> infinity. The distance d*(y) at which S_E = 0
for given y is a power series in 1/y, from which the limit is extrapolated.
"""

from __future__ import annotations

import math

import numpy as np

from rmtheory.chain import Chain
from rmtheory.checks import RealLike
from rmtheory.errors import InvalidInputError
from rmtheory.estimate import Estimate, Tier
from rmtheory.gaussian import Array
from rmtheory.local_entropy.broken_results import BrokenPoint, broken_ystar
from rmtheory.local_entropy.broken_solve import logit_of, share_of, solve_distance
from rmtheory.local_entropy.q0 import q0_loss

#: Values of y from which d*(y) is extrapolated, and the steps in log y that lead to them.
_LADDER = (75.0, 120.0, 190.0, 300.0)
_STEP = 0.12

#: Largest J_D: above, the series in 1/y converges too slowly for what y <= 300 can tell.
_LARGEST_JD = 0.15


def ystar_divergence(jd: RealLike) -> Estimate:
    """Return the distance at which y* diverges on the branch q0 > 0, for 0 <= J_D <= 0.15.

    Examples
    --------
    >>> print(ystar_divergence(0.1).rounded(4))
    0.3025 ± 6e-5
    """
    chain = Chain(1, jd)
    if not 0 <= chain.jd <= _LARGEST_JD:
        raise InvalidInputError("jd", jd, f"between 0 and {_LARGEST_JD:g}")
    # Far enough from the onset for y* to grow with d; two points, to extrapolate from.
    least = max(0.2, 1.4 * float(q0_loss(jd, 1e-6)))
    path = [_unknowns(broken_ystar(chain, d)) for d in (least, least + 0.005)]
    found = []
    for y in _LADDER:
        log_y, end = path[-1][0], math.log(y)
        count = max(1, math.ceil((end - log_y) / _STEP))
        for target in np.linspace(log_y, end, count + 1)[1:].tolist():
            (a, before), (b, here) = path[-2:]
            start = here + (target - b) / (b - a) * (here - before)
            path.append((target, solve_distance(chain.jd, math.exp(target), start, 1).unknowns))
        found.append(0.5 * share_of(solve_distance(chain.jd, y, path[-1][1], 2).unknowns[3]))
    limit = _to_zero(_LADDER, found)
    # Without the last one the extrapolation is a good deal worse.
    error = abs(limit - _to_zero(_LADDER[:-1], found[:-1]))
    method = "d at which S_E = 0 for given y, extrapolated to 1/y = 0"
    return Estimate(limit, error, Tier.ESTIMATED, method)


def _unknowns(point: BrokenPoint) -> tuple[float, Array]:
    """Return log y, and the unknowns of solve_distance."""
    qhat1 = float(point.qhat1)
    shares = (float(point.q0) / (1 - 2 * point.d), float(point.qhat0) / qhat1, 2 * point.d)
    unknowns = np.array([math.log(qhat1), *(logit_of(share) for share in shares)])
    return math.log(float(point.y)), unknowns


def _to_zero(y: tuple[float, ...], values: list[float]) -> float:
    """Value at 1/y = 0 of the polynomial in 1/y through all points."""
    x = 1 / np.array(y)
    weights = [math.prod(-b / (a - b) for b in np.delete(x, k)) for k, a in enumerate(x)]
    return float(np.dot(weights, values))
