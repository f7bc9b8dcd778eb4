"""The branch q0 > 0 (L = 1, 2): at one point, along y*(d), and where it begins and ends.

Where no saddle with q0 > 0 (:mod:`rmtheory.local_entropies.broken`) has a lower phi than that of
q0 = 0, the latter is returned.

**Onset.** The branch begins at the distance where the stability M0 of q0 = 0
(:mod:`rmtheory.local_entropies.core`) passes 0 along y*(d). For small J_D the onset is continuous:
q0 grows from 0 linearly with the distance from this d, and phi falls like its third power. For J_D
above about 1/3 it is discontinuous, and comes before M0 = 0.

**Divergence of y*.** Along the branch q0 approaches q1 and y* grows; y*(q1 - q0) and y*(qhat1 -
qhat0) tend to constants, and 1/y* vanishes linearly at a distance below 1/2. Beyond it S_E stays
positive for all y: phi falls with y, and S_I* is its limit y -> infinity. The distance d*(y) at
which S_E = 0 for given y is a power series in 1/y, from which the limit is extrapolated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import xarray as xr

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.checks import RealLike
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.base.gaussian import Array
from rmtheory.local_entropies.broken import (
    LARGEST_Y,
    BrokenRefined,
    BrokenSolution,
    find_saddle,
    find_ystar,
    logit_of,
    refine,
    share_of,
    solve_distance,
)
from rmtheory.local_entropies.broken_averages import check_broken
from rmtheory.local_entropies.functional import Functional
from rmtheory.local_entropies.points import (
    LocalEntropy,
    YStar,
    local_entropy,
    ystar,
)
from rmtheory.local_entropies.solve import ANCHOR, CurveTracker, functional

# One point.

_METHOD = "nested trapezoid quadrature, two resolutions"


@dataclass(frozen=True)
class BrokenPoint:
    """The saddle with the lowest phi, q0 = 0 or not, and how far it is from that of q0 = 0."""

    chain: Chain
    d: float
    y: Estimate
    phi: Estimate
    #: S_I and S_E; at y* S_E = 0 and S_I = phi.
    internal: Estimate
    external: Estimate
    #: dS_I*/dd by the envelope theorem; None at given y.
    slope: Estimate | None
    qhat1: Estimate
    q0: Estimate
    qhat0: Estimate
    #: phi minus that of the saddle q0 = 0: at the same y, or each at its own y*.
    change: Estimate
    #: M0 of the saddle q0 = 0.
    q0_stability: Estimate
    #: Largest residual of the equations solved; None at given y where q0 = 0.
    residual: float | None
    #: Least eigenvalue of M_r at this saddle, negative where it is unstable against further
    #: breaking; M0 where q0 = 0.
    replicon: Estimate

    @property
    def broken(self) -> bool:
        """Whether q0 > 0."""
        return float(self.q0) > 0


def broken_entropy(chain: Chain, d: checks.RealLike, y: checks.RealLike) -> BrokenPoint:
    """Evaluate phi, S_I and S_E for given distance and y, with an overlap q0 between clusters.

    Parameters
    ----------
    chain : Chain
        One layer, or two with lam_left = lam_right.
    d : real
        Distance, 0 < d < 1/2.
    y : real
        Number of replicas, from 1 to 300.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> point = broken_entropy(Chain(1, 0.1), d=0.1, y=6)
    >>> print(point.q0.rounded(8), point.change.rounded(4))
    0.18060970 ± 6e-9 -0.00003657 ± 6e-9
    """
    check_broken(chain)
    if not 1 <= checks.exact_real("y", y) <= LARGEST_Y:
        raise InvalidInputError("y", y, f"from 1 to {LARGEST_Y:g} for the branch q0 > 0")
    symmetric = local_entropy(chain, d, y)
    at = symmetric.y
    m0 = symmetric.q0_stability
    assert m0 is not None
    saddle = find_saddle(chain, symmetric.d, at, float(symmetric.qhat[0]), float(m0))
    if saddle is None:
        return _unbroken(symmetric, Estimate.exactly(at, "given"), m0)
    point = _point(chain, _refined(chain, saddle), symmetric.phi, m0, False)
    if float(point.change) > 0:
        return _unbroken(symmetric, Estimate.exactly(at, "given"), m0)
    return point


def broken_ystar(chain: Chain, d: checks.RealLike) -> BrokenPoint:
    """Return y* at distance `d`, with an overlap q0 between clusters.

    Parameters
    ----------
    chain : Chain
        One layer, or two with lam_left = lam_right; J_D >= 0.
    d : real
        Distance, 0 < d < 1/2.

    Raises
    ------
    NotConvergedError
        Where S_E stays positive up to y = 300: on the branch q0 > 0 y* diverges at a finite d.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> point = broken_ystar(Chain(1, 0.1), d=0.1)
    >>> print(point.y.rounded(8), point.q0.rounded(8), point.change.rounded(4))
    5.7494301 ± 6e-8 0.16443130 ± 6e-9 -0.00002670 ± 6e-9
    """
    check_broken(chain)
    symmetric = ystar(chain, d)
    m0 = symmetric.q0_stability
    if symmetric.y_star_is_bound or m0 is None:
        raise NotConvergedError(
            f"y* at d = {symmetric.d:.10g} is beyond {float(symmetric.y_star):.3g}, where the "
            "branch q0 > 0 cannot be computed: take a larger d or a smaller jd"
        )
    y, qhat = float(symmetric.y_star), float(symmetric.qhat[0])
    saddle = find_saddle(chain, symmetric.d, y, qhat, float(m0))
    if saddle is None:
        return _unbroken(symmetric, symmetric.y_star, m0)
    solved = find_ystar(chain, symmetric.d, saddle)
    point = _point(chain, _refined(chain, solved), symmetric.internal, m0, True)
    if float(point.change) > 0:
        return _unbroken(symmetric, symmetric.y_star, m0)
    return point


def _refined(chain: Chain, solution: BrokenSolution) -> BrokenRefined:
    """Solve on finer rules to the accuracy of the depth."""
    tol = functional(chain).broken_tol
    assert tol is not None
    return refine(chain, solution, tol)


def _point(
    chain: Chain, solved: BrokenRefined, symmetric: Estimate, m0: Estimate, at_ystar: bool
) -> BrokenPoint:
    moments = solved.moments

    def estimate(value: float, error: float) -> Estimate:
        return Estimate(value, error, Tier.ESTIMATED, _METHOD)

    phi = estimate(moments.phi, solved.phi_error)
    return BrokenPoint(
        chain,
        moments.d,
        estimate(moments.y, solved.y_error) if at_ystar else Estimate.exactly(moments.y, "given"),
        phi,
        # At y* phi is S_I*, and stationary in all unknowns: the better of the two to read.
        phi if at_ystar else estimate(moments.internal, solved.internal_error),
        estimate(moments.external, solved.external_error),
        estimate(moments.slope, solved.slope_error) if at_ystar else None,
        estimate(moments.qhat1, solved.qhat1_error),
        estimate(moments.q0, solved.q0_error),
        estimate(moments.qhat0, solved.qhat0_error),
        estimate(moments.phi - float(symmetric), solved.phi_error + float(symmetric.error)),
        m0,
        solved.residual,
        estimate(solved.replicon, solved.replicon_error),
    )


def _unbroken(symmetric: LocalEntropy | YStar, y: Estimate, m0: Estimate) -> BrokenPoint:
    """The saddle q0 = 0 itself."""
    zero = Estimate.exactly(0.0, "q0 = 0 is the saddle with the lowest phi")
    slope: Estimate | None = None
    residual: float | None = None
    if isinstance(symmetric, YStar):
        slope, residual = symmetric.slope, symmetric.residual
        phi = internal = symmetric.internal
        external = Estimate(0.0, residual, Tier.ESTIMATED, "S_E = 0 defines y*")
    else:
        phi, internal, external = symmetric.phi, symmetric.internal, symmetric.external
    return BrokenPoint(
        symmetric.chain,
        symmetric.d,
        y,
        phi,
        internal,
        external,
        slope,
        symmetric.qhat[0],
        zero,
        zero,
        zero,
        m0,
        residual,
        m0,
    )


# Where q0 = 0 becomes unstable.

#: Range of q0_loss, and number of points at which M0 is computed.
LEAST_D, MOST_D = 1e-3, 0.45

_SCAN = 16


def q0_loss(chain: Chain | RealLike, tol: float | None = None) -> Estimate:
    """Return the distance d along y*(d) beyond which q0 = 0 is unstable, to `tol`.

    `chain` has one layer or two; a number is the J_D of one layer. `tol` is 1e-8 for one layer and
    1e-5 for two if not given. The distance is searched for between d = 0.001 and 0.45, at 16
    points, and down to where y* exceeds 400 (15 for two layers), beyond which M0 did not change
    sign in any case computed. Where stability is lost more than once the smallest such d is
    returned.

    Examples
    --------
    >>> print(q0_loss(0.1).rounded(6))
    0.0503148 ± 6e-8
    """
    from scipy.optimize import brentq

    if not isinstance(chain, Chain):
        chain = Chain(1, chain)
    model = functional(chain)
    if model.loss_tol is None:
        raise InvalidInputError("layers", chain.layers, "1 or 2 for the stability of q0 = 0")
    tol = model.loss_tol if tol is None else tol
    if not tol > 0:
        raise InvalidInputError("tol", tol, "positive")
    tracker = CurveTracker(model)

    def at(d: float) -> tuple[Estimate, float]:
        point = tracker.solve(d, model.curve_tol)
        stability = model.q0_stability(point)
        if stability is None:
            raise NotConvergedError(f"M0 of {chain} at d = {d:.10g} needs too many nodes")
        return stability, point.moments.y

    def m0(d: float) -> Estimate:
        return at(d)[0]

    def value(d: float) -> float:
        return float(m0(d).value)

    low, high = _bracket(model, at)
    root = float(brentq(value, low, high, xtol=tol / 2, rtol=4 * float(np.finfo(float).eps)))
    width = 1e-3 * root
    slope = (value(root + width) - value(root - width)) / (2 * width)
    error = tol / 2 + (abs(value(root)) + float(m0(root).error)) / abs(slope)
    return Estimate(root, error, Tier.ESTIMATED, "sign change of the q0 stability along y*")


def _bracket(
    model: Functional, at: Callable[[float], tuple[Estimate, float]]
) -> tuple[float, float]:
    """Neighbouring d of the scan with M0 > 0 at the first and M0 < 0 at the second."""
    change: tuple[float, float] | None = None
    above, positive_above = math.nan, True
    least = MOST_D
    for d in np.geomspace(MOST_D, LEAST_D, _SCAN).tolist():
        try:
            stability, y = at(d)
        except NotConvergedError:
            if change is None and d < ANCHOR:
                raise
            if change is None:  # y* is beyond reach at large distances
                continue
            break
        positive = float(stability) > 0
        if positive and not positive_above:
            change = (d, above)
        above, positive_above, least = d, positive, d
        if d < ANCHOR and y > model.loss_y:
            break
    if change is None:
        sign = "positive" if positive_above else "negative"
        raise NotConvergedError(
            f"M0 is {sign} along y*(d) and does not pass from positive to negative between "
            f"d = {least:.2g} and {MOST_D:g} of {model.chain}"
        )
    return change


def q0_loss_along(chain: Chain, curve: xr.Dataset) -> Estimate | None:
    """Return the first distance of a `curve` beyond which q0 = 0 is unstable; None if it is stable.

    Where evaluations take milliseconds this is :func:`q0_loss`; elsewhere the middle between the
    two points of the curve with M0 > 0 and M0 < 0, half their distance being the error. Points at
    which M0 was not computed say nothing.

    Parameters
    ----------
    chain : Chain
        The chain of the curve.
    curve : xarray.Dataset
        The result of :func:`rmtheory.local_entropies.curves.curve`.

    Examples
    --------
    >>> import rmtheory as rt
    >>> chain = rt.Chain(2, 0.05, 0.3)
    >>> print(q0_loss_along(chain, rt.curve(chain, [0.05, 0.07])))
    0.06 ± 1e-2
    """
    if functional(chain).fast:
        try:
            return q0_loss(chain)
        except NotConvergedError:
            return None
    known = curve.dropna("d", subset=["q0_stability"])
    d, stable = known["d"].values, known["q0_stability"].values > 0
    for k in range(len(d) - 1):
        if stable[k] and not stable[k + 1]:
            middle, half = 0.5 * (d[k] + d[k + 1]), 0.5 * (d[k + 1] - d[k])
            return Estimate(float(middle), float(half), Tier.ESTIMATED, "sign change of M0")
    return None


# Where y* diverges.

#: Values of y from which d*(y) is extrapolated, and the steps in log y that lead to them.
_LADDER = (75.0, 120.0, 190.0, 300.0)

_LADDER_STEP = 0.12

#: Largest J_D: above, the series in 1/y converges too slowly for y <= 300.
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
    distances = []
    for y in _LADDER:
        log_y, end = path[-1][0], math.log(y)
        count = max(1, math.ceil((end - log_y) / _LADDER_STEP))
        for target in np.linspace(log_y, end, count + 1)[1:].tolist():
            (a, before), (b, here) = path[-2:]
            start = here + (target - b) / (b - a) * (here - before)
            path.append((target, solve_distance(chain, math.exp(target), start, 1).unknowns))
        distances.append(0.5 * share_of(solve_distance(chain, y, path[-1][1], 2).unknowns[3]))
    limit = _to_zero(_LADDER, distances)
    # The extrapolation without the last y is the less accurate one of the two.
    error = abs(limit - _to_zero(_LADDER[:-1], distances[:-1]))
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
