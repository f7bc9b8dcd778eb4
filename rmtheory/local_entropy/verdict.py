"""Is S_I*(d) monotone? The paper's criterion for the representation manifold.

The sign of the envelope slope decides, without differences: it is computed from d_max down to a
distance where the dilute gas of flips (:mod:`asymptotics`) describes the curve, and its least
value is refined. Below that distance the slope grows like log(1/d): the curve is handed over to the
gas only if the two agree within a few times the order of the corrections, sqrt(d log(1/d)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from rmtheory import checks
from rmtheory.chain import Chain
from rmtheory.errors import InvalidInputError, NotConvergedError, OutsideValidityError
from rmtheory.estimate import Estimate, Tier
from rmtheory.local_entropy.asymptotics import SmallDistance, small_distance
from rmtheory.local_entropy.continuation import CurveTracker
from rmtheory.local_entropy.extrema import SCAN_TOL, least_slope
from rmtheory.local_entropy.model import LocalModel
from rmtheory.local_entropy.refine import Refined

#: How many times the order of its corrections the gas may be off where the curve is handed over.
_CORRECTION = 4.0


class Verdict(StrEnum):
    """What the sign of the slope says."""

    MONOTONE = "monotone"
    NOT_MONOTONE = "not monotone"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Monotonicity:
    """The verdict on 0 < d <= d_max and what it rests on."""

    chain: Chain
    verdict: Verdict
    d_max: float
    #: The least slope found and where.
    least_slope: Estimate
    d_least: float
    #: Where the numerical curve hands over to the dilute gas of flips.
    d_join: float
    #: Slope there, numerical and of the gas, and the relative difference of S_I*; None where the
    #: gas does not describe the limit, as for J_D above 0.6745, and for more than two layers.
    slope_join: float
    slope_gas: float | None
    difference: float | None


def monotonicity(
    chain: Chain,
    d_max: float | None = None,
    tol: float | None = None,
    tracker: CurveTracker | None = None,
    near: float | None = None,
) -> Monotonicity:
    """Decide whether S_I*(d) increases on 0 < d <= d_max.

    `d_max` is 0.45 if not given, and 0.25 for three layers or more, where y* at larger distances is
    beyond the transfer operator. For these the dilute gas is not known either: monotone then means
    that the slope is positive down to the least distance reached and rises there, towards d = 0.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> print(monotonicity(Chain(1, 0.1)).verdict, "/", monotonicity(Chain(1, 0.06)).verdict)
    monotone / not monotone
    """
    model = LocalModel(chain)
    d_max = (0.25 if model.deep else 0.45) if d_max is None else d_max
    if not 0 < checks.exact_real("d_max", d_max) < 0.5:
        raise InvalidInputError("d_max", d_max, "strictly between 0 and 1/2")
    tol = default_tol(model) if tol is None else tol
    tracker = CurveTracker(model) if tracker is None else tracker
    scan = _scan(tracker, d_max)
    slopes = [point.moments.slope for point in scan]
    # A dip of the slope between two points of the scan would show as a local minimum.
    dips = [k for k in range(1, len(scan) - 1) if slopes[k - 1] >= slopes[k] <= slopes[k + 1]]
    end = tracker.solve(d_max, tol)
    value, error, d_least = end.moments.slope, end.slope_error, d_max
    if dips:
        deepest = min(dips, key=lambda k: slopes[k])
        dip = least_slope(tracker, scan[deepest].moments.d if near is None else near, tol)
        if dip.value < value:
            value, error, d_least = dip.value, dip.error, dip.d
    join = scan[-1]
    gas = _gas(chain, join.moments.d)
    difference = _difference(gas, join)
    rising = len(slopes) > 1 and join.moments.slope > 0 and slopes[-1] > slopes[-2]
    if model.deep:
        joined = rising and len(slopes) > 2 and slopes[-2] > slopes[-3]
    else:
        joined = rising and gas is not None and gas.slope > 0 and _agrees(difference, join)
    if value < -error:
        verdict = Verdict.NOT_MONOTONE
    elif value > error and joined:
        verdict = Verdict.MONOTONE
    else:
        verdict = Verdict.UNDECIDED
    return Monotonicity(
        chain,
        verdict,
        d_max,
        Estimate(value, error, Tier.ESTIMATED, "least envelope slope along y*(d)"),
        d_least,
        d_join=join.moments.d,
        slope_join=join.moments.slope,
        slope_gas=None if gas is None else gas.slope,
        difference=difference,
    )


def gas_correction(d: float) -> float:
    """Relative order sqrt(d log(1/d)) of what the dilute gas leaves out."""
    return math.sqrt(d * math.log(1 / d))


def _gas(chain: Chain, d: float) -> SmallDistance | None:
    if chain.layers > 2:
        return None
    try:
        return small_distance(chain, d)
    except OutsideValidityError:
        return None


def default_tol(model: LocalModel) -> float:
    """Accuracy of S_I* aimed at when none is asked for."""
    if model.deep:
        return 1e-8
    return 1e-11 if model.chain.layers == 1 else 1e-9


def _scan(tracker: CurveTracker, d_max: float) -> list[Refined]:
    """Points from d_max downwards, until the flips are dilute or y* too large to go on."""
    model = tracker.model
    largest_y = 13.0 if model.deep else 1000.0 if model.chain.layers == 1 else 100.0
    points: list[Refined] = []
    for d in d_max * 0.72 ** np.arange(60):
        try:
            point = tracker.solve(float(d), SCAN_TOL)
        except NotConvergedError:
            if not points:
                raise
            break  # y* has grown too large: the last point has to agree with the limit d -> 0
        points.append(point)
        if point.moments.y > largest_y and d < 0.02:
            # Two layers reach the gas late where both couplings matter: they go on for longer.
            if model.chain.layers != 2 or point.moments.y > 10 * largest_y:
                break
            if _agrees(_difference(_gas(model.chain, point.moments.d), point), point):
                break
    return points


def _difference(gas: SmallDistance | None, point: Refined) -> float | None:
    """Relative difference of S_I* from that of the dilute gas."""
    return None if gas is None else point.moments.phi / gas.internal - 1


def _agrees(difference: float | None, point: Refined) -> bool:
    """Whether the dilute gas is off by no more than a few times the order of its corrections."""
    if difference is None:
        return False
    return abs(difference) < _CORRECTION * gas_correction(point.moments.d)
