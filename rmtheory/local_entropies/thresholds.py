"""Critical couplings as brackets, and the verdict whether S_I*(d) is monotone.

Two thresholds, each the zero of a minimum over d that grows with the coupling:

- the representation manifold (RM): the least slope dS_I*/dd passes 0, and S_I* becomes monotone,
  the paper's criterion;
- the gap: the least S_I* itself passes 0; below it no fixed points exist at some distances.

A threshold is returned as two couplings with opposite signs of the minimum
(:mod:`rmtheory.local_entropies.brackets`); for the representation manifold the whole curve is
judged at both of them as well. The sign of the envelope slope decides, without differences: it is
computed from d_max down to a distance where the dilute gas of flips
(:mod:`rmtheory.local_entropies.dilute_gas`) describes the curve, and its least value is refined.
The gas takes over only if the two agree, S_I* and slope, within the error that the gas itself
states; from there to d = 0 its slope has to be positive.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError, OutsideValidityError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.local_entropies.brackets import (
    Bracket,
    Coupling,
    Kind,
    RoughBoundary,
    bracket,
    rough_boundary,
)
from rmtheory.local_entropies.curves import SCAN_TOL, Minimum, least_slope
from rmtheory.local_entropies.functional import Refined
from rmtheory.local_entropies.functionals import functional
from rmtheory.local_entropies.solve import CurveTracker

# Is S_I*(d) monotone?


class Verdict(StrEnum):
    """Whether S_I*(d) increases, by the sign of its slope."""

    MONOTONE = "monotone"
    NOT_MONOTONE = "not monotone"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Monotonicity:
    """The verdict on 0 < d <= d_max and the numbers behind it."""

    chain: Chain
    verdict: Verdict
    d_max: float
    #: The least slope, and where.
    least_slope: Estimate
    d_least: float
    #: Where the dilute gas of flips takes over from the numerical curve; None where a negative
    #: slope settled the verdict before the curve was followed.
    d_join: float | None = None
    #: Slope there, numerical and of the gas, and the relative difference of S_I*; None where the
    #: gas does not describe the limit, as for J_D above 0.6745, and for more than two layers.
    slope_join: float | None = None
    slope_gas: float | None = None
    difference: float | None = None

    @property
    def join(self) -> str:
        """Where the limit d -> 0 takes over, and how well it fits, in words."""
        if self.d_join is None:
            return f"not needed: the slope is negative at d = {self.d_least:.2g}"
        how = (
            "the least distance computed; the slope rises towards d = 0"
            if self.difference is None
            else f"where S_I* differs from the dilute gas by {self.difference:.2%}"
        )
        return f"d = {self.d_join:.2g}, {how}"


def monotonicity(
    chain: Chain,
    d_max: float | None = None,
    tol: float | None = None,
    tracker: CurveTracker | None = None,
    dip: Minimum | None = None,
) -> Monotonicity:
    """Decide whether S_I*(d) increases on 0 < d <= d_max.

    `d_max` is 0.45 if not given, and 0.25 for three layers or more, where y* at larger distances is
    beyond the transfer operator. For these the dilute gas is not known either: monotone then means
    that the slope is positive down to the least distance reached and rises there, towards d = 0.

    `dip` is the least slope if it is known already, as at the ends of a bracket. If it is negative
    the verdict is settled; otherwise the scan has to find its deepest dip there.

    Examples
    --------
    >>> import rmtheory as rt
    >>> for jd in (0.1, 0.06):
    ...     print(rt.monotonicity(rt.Chain(1, jd)).verdict)
    monotone
    not monotone
    """
    model = functional(chain)
    d_max = model.d_max if d_max is None else d_max
    if not 0 < checks.exact_real("d_max", d_max) < 0.5:
        raise InvalidInputError("d_max", d_max, "strictly between 0 and 1/2")
    tol = model.curve_tol if tol is None else tol
    if dip is not None and dip.value < -dip.error and dip.d <= d_max:
        return Monotonicity(chain, Verdict.NOT_MONOTONE, d_max, _least(dip.value, dip.error), dip.d)
    tracker = CurveTracker(model) if tracker is None else tracker
    scan = _scan(tracker, d_max)
    slopes = [point.moments.slope for point in scan]
    # A dip of the slope between two points of the scan would show as a local minimum.
    dips = [k for k in range(1, len(scan) - 1) if slopes[k - 1] >= slopes[k] <= slopes[k + 1]]
    deepest = min(dips, key=lambda k: slopes[k], default=None)
    if deepest is None:
        dip = None
    elif dip is None or abs(math.log(dip.d / scan[deepest].moments.d)) > -math.log(_RATIO):
        dip = least_slope(tracker, scan[deepest].moments.d, tol)
    end = scan[0]
    if dip is None or end.moments.slope - end.slope_error < dip.value:
        end = tracker.solve(d_max, tol)
    value, error, d_least = end.moments.slope, end.slope_error, d_max
    if dip is not None and dip.value < value:
        value, error, d_least = dip.value, dip.error, dip.d
    join = scan[-1]
    gas = model.gas(join)
    if value < -error:
        verdict = Verdict.NOT_MONOTONE
    elif value > error and model.limit_reached(scan):
        verdict = Verdict.MONOTONE
    else:
        verdict = Verdict.UNDECIDED
    return Monotonicity(
        chain,
        verdict,
        d_max,
        _least(value, error),
        d_least,
        d_join=join.moments.d,
        slope_join=join.moments.slope,
        slope_gas=None if gas is None else gas.slope,
        difference=None if gas is None else gas.difference(join.moments.phi),
    )


def _least(slope: float, error: float) -> Estimate:
    return Estimate(slope, error, Tier.ESTIMATED, "least envelope slope along y*(d)")


#: Ratio of neighbouring distances of a scan.
_RATIO = 0.72


def _scan(tracker: CurveTracker, d_max: float) -> list[Refined]:
    """Points from d_max downwards, until the flips are dilute or y* too large to go on."""
    points: list[Refined] = []
    for d in d_max * _RATIO ** np.arange(60):
        try:
            point = tracker.solve(float(d), SCAN_TOL)
        except NotConvergedError:
            if not points:
                raise
            break  # y* has grown too large: the last point has to agree with the limit d -> 0
        points.append(point)
        if d < 0.02 and tracker.model.scan_ends(points):
            break
    return points


# Critical couplings.

#: Largest width of a bracket.
MOST_WIDTH = 1e-2


@dataclass(frozen=True, eq=False)
class Critical:
    """A critical coupling between `low` and `high`, where the minimum over d has opposite signs."""

    kind: Kind
    coupling: Coupling
    bracket: Bracket
    #: The whole curve at the lower and at the upper end; None if it was not judged, and for the
    #: gap, which the minimum alone defines.
    judged: tuple[Monotonicity, Monotonicity] | None = None

    @property
    def checked(self) -> bool:
        """Whether the whole curve was judged at both ends, not only the touching point."""
        return self.judged is not None

    @property
    def verdicts(self) -> tuple[str, str]:
        """Verdicts on the curve at the lower and at the upper end, or ``unchecked`` twice."""
        if self.judged is None:
            return "unchecked", "unchecked"
        low, high = self.judged
        return str(low.verdict), str(high.verdict)

    @property
    def low(self) -> float:
        """Lower end: not monotone, or a gap."""
        return self.bracket.low

    @property
    def high(self) -> float:
        """Upper end: monotone near the touching point, or no gap."""
        return self.bracket.high

    @property
    def at_low(self) -> Estimate:
        """The minimum over d at the lower end, negative."""
        return self._minimum(self.bracket.at_low)

    @property
    def at_high(self) -> Estimate:
        """The minimum over d at the upper end, positive."""
        return self._minimum(self.bracket.at_high)

    @property
    def d(self) -> Estimate:
        """Distance of the touching point."""
        return self.bracket.d

    @property
    def y_star(self) -> Estimate:
        """y* of the touching point."""
        return self.bracket.y_star

    @property
    def internal(self) -> Estimate:
        """S_I* of the touching point, per neuron."""
        return self.bracket.internal

    def _minimum(self, minimum: Minimum) -> Estimate:
        name = "least slope over d" if self.kind == "rm" else "least S_I* over d"
        return Estimate(minimum.value, minimum.error, Tier.ESTIMATED, name)


def critical_coupling(
    layers: int | float | str,
    coupling: Coupling,
    *,
    jd: float | None = None,
    lam: float | None = None,
    kind: Kind = "rm",
    width: float | None = None,
    verdicts: bool = True,
) -> Critical:
    """Bracket the critical `coupling`, the other one being given.

    Parameters
    ----------
    layers : int or math.inf
        1 (where only ``jd`` can be critical) or more.
    coupling : {"jd", "lam"}
        The coupling to be bracketed.
    jd, lam : float, optional
        The other coupling: `lam` when ``jd`` is sought (not for one layer), `jd` when ``lam`` is.
    kind : {"rm", "gap"}
        Which threshold.
    width : float, optional
        Width of the bracket, at most 0.01; 1e-9 for the core module, 1e-5 for two layers, 1e-4 for
        more.
    verdicts : bool
        Judge the whole curve at both ends, which takes about as long again as the search; otherwise
        the result is ``unchecked``. The gap needs none.

    Raises
    ------
    NotConvergedError
        If the verdicts at the two ends are not opposite.

    Examples
    --------
    >>> import rmtheory as rt
    >>> core = rt.critical_coupling(1, "jd")
    >>> f"{core.low:.10f} {core.high:.10f}", core.verdicts
    ('0.0731076986 0.0731076994', ('not monotone', 'monotone'))
    """
    rough = rough_boundary(checks.layers(layers))
    chain_at = rough.family(coupling, jd, lam)
    width = rough.width if width is None else width
    if not 0 < width <= MOST_WIDTH:
        raise InvalidInputError("width", width, f"positive and at most {MOST_WIDTH:g}")
    other = jd if coupling == "lam" else lam
    if other is not None:
        _check_exists(rough, coupling, kind, other)
    guess = rough.guess(coupling, kind, other)
    seed = rough.seed(chain_at(guess), kind, coupling)
    interval = bracket(chain_at, kind, guess, width, rough.tol(width), seed)
    judged = _judge(chain_at, coupling, interval) if verdicts and kind == "rm" else None
    return Critical(kind, coupling, interval, judged)


def _judge(
    chain_at: Callable[[float], Chain], coupling: Coupling, interval: Bracket
) -> tuple[Monotonicity, Monotonicity]:
    """Judge the whole curve at both ends; refuse a bracket whose verdicts are not opposite."""
    low = monotonicity(chain_at(interval.low), dip=interval.at_low)
    # The search has followed the curve near the touching point.
    model, point = functional(chain_at(interval.high)), interval.at_high.point.moments
    tracker = CurveTracker(model)
    tracker.add(point.d, point.y, point.qhat)
    high = monotonicity(model.chain, tracker=tracker, dip=interval.at_high)
    if (low.verdict, high.verdict) != (Verdict.NOT_MONOTONE, Verdict.MONOTONE):
        raise NotConvergedError(
            f"the verdicts at {coupling} = {interval.low:.9g} and {interval.high:.9g} are "
            f"{low.verdict} and {high.verdict}"
        )
    return low, high


def _check_exists(rough: RoughBoundary, coupling: Coupling, kind: Kind, other: float) -> None:
    """Refuse where the given coupling alone is beyond the threshold: there is none then."""
    # The thresholds on the axes; near them only, since that of lambda takes a while.
    if coupling == "lam":
        if other < 0.99 * rough.core(kind):
            return
        end = critical_coupling(1, "jd", kind=kind, verdicts=False)
    else:
        if abs(other) < 0.99 * rough.axis(kind):
            return
        end = critical_coupling(rough.layers, "lam", jd=0.0, kind=kind, width=1e-4, verdicts=False)
    if abs(other) > end.low:
        what = "S_I* is monotone" if kind == "rm" else "there is no gap"
        given = "jd" if coupling == "lam" else "lam"
        raise OutsideValidityError(
            f"there is no critical {coupling} at {given} = {other:g}, which is beyond the "
            f"threshold {_middle(end)} at {coupling} = 0: {what} for every {coupling} > 0"
        )


def _middle(found: Critical) -> str:
    """Return the middle of a bracket with the digits that half its width leaves."""
    middle, half = 0.5 * (found.low + found.high), 0.5 * (found.high - found.low)
    return str(Estimate(middle, half, Tier.ESTIMATED, "bracket"))
