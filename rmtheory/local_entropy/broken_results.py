"""The branch q0 > 0 at one point, and along y*(d): the functions a user calls (L = 1).

Where no saddle with q0 > 0 lies below that of q0 = 0, the latter is returned. The onset along y*(d)
is continuous for small J_D: q0 grows from 0 like the distance from the d where M0 = 0, and phi
falls like its third power. For J_D above 1/3 or so it is discontinuous, and comes before M0 = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from rmtheory import checks
from rmtheory.chain import Chain
from rmtheory.errors import InvalidInputError
from rmtheory.estimate import Estimate, Tier
from rmtheory.local_entropy.broken_solve import (
    LARGEST_Y,
    BrokenRefined,
    find_saddle,
    find_ystar,
    refine,
)
from rmtheory.local_entropy.results import SINGLE_TOL, LocalEntropy, YStar, local_entropy, ystar

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

    @property
    def broken(self) -> bool:
        """Whether q0 > 0."""
        return float(self.q0) > 0


def broken_entropy(chain: Chain, d: checks.RealLike, y: checks.RealLike) -> BrokenPoint:
    """Evaluate phi, S_I and S_E for given distance and y, with an overlap q0 between clusters.

    Parameters
    ----------
    chain : Chain
        One layer.
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
    _check_layers(chain)
    if not 1 <= checks.exact_real("y", y) <= LARGEST_Y:
        raise InvalidInputError("y", y, f"from 1 to {LARGEST_Y:g} for the branch q0 > 0")
    symmetric = local_entropy(chain, d, y)
    at = symmetric.y
    m0 = symmetric.q0_stability
    assert m0 is not None
    saddle = find_saddle(chain.jd, symmetric.d, at, float(symmetric.qhat[0]), float(m0))
    if saddle is None:
        return _unbroken(symmetric, Estimate.exactly(at, "given"), m0)
    found = _point(chain, refine(chain.jd, saddle, SINGLE_TOL), symmetric.phi, m0, False)
    if float(found.change) > 0:
        return _unbroken(symmetric, Estimate.exactly(at, "given"), m0)
    return found


def broken_ystar(chain: Chain, d: checks.RealLike) -> BrokenPoint:
    """Find y* at distance `d`, with an overlap q0 between clusters.

    Parameters
    ----------
    chain : Chain
        One layer, J_D >= 0.
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
    _check_layers(chain)
    symmetric = ystar(chain, d)
    m0 = symmetric.q0_stability
    assert m0 is not None
    y, qhat = float(symmetric.y_star), float(symmetric.qhat[0])
    saddle = find_saddle(chain.jd, symmetric.d, y, qhat, float(m0))
    if saddle is None:
        return _unbroken(symmetric, symmetric.y_star, m0)
    solved = find_ystar(chain.jd, symmetric.d, saddle)
    found = _point(chain, refine(chain.jd, solved, SINGLE_TOL), symmetric.internal, m0, True)
    if float(found.change) > 0:
        return _unbroken(symmetric, symmetric.y_star, m0)
    return found


def _check_layers(chain: Chain) -> None:
    if chain.layers != 1:
        raise InvalidInputError("layers", chain.layers, "1 for the branch q0 > 0")


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
    )
