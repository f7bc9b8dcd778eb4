"""Local entropy at one point, and y* at one distance: the functions a user calls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.local_entropies.functional import Functional, Refined
from rmtheory.local_entropies.functionals import functional
from rmtheory.local_entropies.precise import precise_point, precise_ystar
from rmtheory.local_entropies.replicated import replicated_entropy, replicated_internal
from rmtheory.local_entropies.solve import (
    ROUNDING,
    CurveTracker,
    count_zeros,
    guess_qhat,
    refine_saddle,
)

Method = Literal["integral", "replicated"]

#: Digits that the float64 quadrature can give; more are computed for one layer only.
FLOAT_DIGITS = 12

#: Least distance: y* is beyond all bounds long before.
LEAST_D = 1e-12


@dataclass(frozen=True)
class LocalEntropy:
    """Free, internal and external entropy per neuron at given (d, y)."""

    chain: Chain
    d: float
    y: float
    phi: Estimate
    internal: Estimate
    external: Estimate
    #: One conjugate overlap per layer.
    qhat: tuple[Estimate, ...]
    #: M0 > 0, for two layers its least eigenvalue: the saddle q0 = 0 is stable.
    q0_stability: Estimate | None


@dataclass(frozen=True)
class YStar:
    """The point of the curve y*(d) at one distance; entropies per neuron."""

    chain: Chain
    d: float
    #: Where `y_star_is_bound`, a y up to which S_E > 0.
    y_star: Estimate
    internal: Estimate
    #: dS_I*/dd by the envelope theorem.
    slope: Estimate
    qhat: tuple[Estimate, ...]
    #: Largest residual of <m_l^2> = q1 and S_E = 0.
    residual: float
    q0_stability: Estimate | None
    #: Whether y* is not known but larger than `y_star`, which is so large that S_I* is known all
    #: the same.
    y_star_is_bound: bool = False


def local_entropy(
    chain: Chain,
    d: checks.RealLike,
    y: checks.RealLike,
    digits: int | None = None,
    *,
    method: Method = "integral",
) -> LocalEntropy:
    """Evaluate phi, S_I and S_E at the saddle point for given distance and y.

    Parameters
    ----------
    chain : Chain
        Any number of layers.
    d : real
        Half the normalised Hamming distance scale: q1 = 1 - 2d, 0 < d < 1/2.
    y : real
        Number of replicas, y > 0.
    digits : int, optional
        Decimal digits wanted; up to 12 for two layers or more, any number for one.
    method : {"integral", "replicated"}
        The integrals (by the transfer operator for three layers or more), or at integer y from 2
        to 40 the replicated transfer matrix.

    Examples
    --------
    >>> import rmtheory as rt
    >>> point = rt.local_entropy(rt.Chain(1, 0.1), d=0.1, y=3)
    >>> print(point.phi.rounded(10), point.internal.rounded(10))
    0.03282716839 ± 6e-12 0.01875642059 ± 6e-12
    """
    exact_d, exact_y = distance(d), _replicas(y)
    if method == "replicated":
        return _replicated(chain, exact_d, exact_y, digits)
    if method != "integral":
        raise InvalidInputError("method", method, "integral or replicated")
    model = functional(chain)
    precise = _wants_precise(model, digits)
    float_d, float_y = float(exact_d), float(exact_y)
    if float_y > model.largest_y:
        raise NotConvergedError(f"y = {float_y:g} is too large for this chain: {model.in_reach}")
    start = guess_qhat(model, float_d, float_y)
    solved = refine_saddle(model, float_d, float_y, start, _tolerance(model, digits))
    moments, q0 = solved.moments, model.q0_stability(solved)
    if precise:
        assert digits is not None
        point = precise_point(chain.exact.jd, exact_d, exact_y, digits)
        entropies = (point.phi, point.internal, point.external)
        qhat: tuple[Estimate, ...] = (point.qhat,)
    else:
        entropies = (
            model.free_entropy(solved),
            model.estimate(moments.internal, solved.internal_error),
            model.estimate(moments.external, solved.external_error),
        )
        qhat = _conjugates(model, solved)
    return LocalEntropy(chain, float_d, float_y, *entropies, qhat, q0)


def ystar(
    chain: Chain,
    d: checks.RealLike,
    digits: int | None = None,
    *,
    tol: float | None = None,
    tracker: CurveTracker | None = None,
    check_zeros: bool = True,
) -> YStar:
    """Find the largest y with S_E >= 0 at distance `d`, and S_I* there.

    Parameters
    ----------
    chain : Chain
        Any number of layers, J_D >= 0.
    d : real
        Distance, 0 < d < 1/2.
    digits : int, optional
        Decimal digits wanted; up to 12 for two layers or more, any number for one.
    tol : float, optional
        Accuracy of S_I* aimed at, in place of `digits`.
    tracker : CurveTracker, optional
        A curve already followed, to continue from.
    check_zeros : bool
        Verify on a grid of y that S_E has no other zero.

    Examples
    --------
    >>> import rmtheory as rt
    >>> point = rt.ystar(rt.Chain(1, 0.1), d=0.1)
    >>> print(point.y_star.rounded(8), point.internal.rounded(10))
    5.6650063 ± 6e-8 0.02904414440 ± 6e-12
    """
    exact_d = distance(d)
    _check_curve(chain)
    model = functional(chain)
    precise = _wants_precise(model, digits)
    tracker = CurveTracker(model) if tracker is None else tracker
    try:
        solved = tracker.solve(float(exact_d), tol or _tolerance(model, digits))
    except NotConvergedError as problem:
        if precise:
            raise
        unbounded = _unbounded(model, float(exact_d))
        if unbounded is None:
            raise problem from None
        return unbounded
    if check_zeros:
        zeros = count_zeros(model, solved.moments, model.zeros_reach(solved.moments.y))
        if zeros != 1:
            raise NotConvergedError(
                f"S_E has {zeros} zeros in y at d = {float(exact_d):.10g}, so y* is not settled"
            )
    result = ystar_from(chain, float(exact_d), solved)
    if not precise:
        return result
    assert digits is not None
    point = precise_ystar(chain.exact.jd, exact_d, digits)
    return replace(
        result,
        y_star=point.y_star,
        internal=point.internal,
        slope=point.slope,
        qhat=(point.qhat,),
        residual=float(point.residual),
    )


def ystar_from(chain: Chain, d: float, solved: Refined) -> YStar:
    """Turn a solved point of the curve into a result."""
    moments, model = solved.moments, functional(chain)
    return YStar(
        chain,
        d,
        model.estimate(moments.y, solved.y_error),
        # At y* phi is S_I*, and stationary in y and qhat: the better of the two to read.
        model.estimate(moments.phi, solved.phi_error),
        model.estimate(moments.slope, solved.slope_error),
        _conjugates(model, solved),
        solved.residual,
        model.q0_stability(solved),
    )


def _unbounded(model: Functional, d: float) -> YStar | None:
    r"""Return S_I* where S_E > 0 up to a y so large that y* does not matter; None elsewhere.

    Once every site with a field of the right size may flip, S_E is a constant > 0 until the y
    replicas feel the tails of the fields, at :math:`\log y = O(J_D^2/4d)`. As
    :math:`d\phi/dy = -S_E/y^2`,

    .. math:: \phi(y) - \frac1y\max_{y' > y} S_E(y') \le S_I^* \le \phi(y) ,

    and S_I(y) = phi(y) - S_E(y)/y lies between them as long as S_E does not rise.
    """
    solved: list[Refined] = []
    for y in (0.1 * model.plateau_y, model.plateau_y):
        try:
            point = refine_saddle(model, d, y, guess_qhat(model, d, y), 1e-9)
        except NotConvergedError:
            return None
        if point.moments.external <= point.external_error:
            return None
        solved.append(point)
    before, here = (point.moments for point in solved)
    # S_E falls; should it rise instead, it is of order one all the same.
    left = (here.external if here.external <= before.external else 1.0) / here.y
    slope_error = abs(here.slope - before.slope) + 64 * ROUNDING * here.y * float(here.qhat.sum())
    return YStar(
        model.chain,
        d,
        Estimate(here.y, 0.0, Tier.ESTIMATED, f"lower bound of y*: S_E > 0 there, {model.label}"),
        model.estimate(here.internal, solved[-1].internal_error + left),
        model.estimate(here.slope, slope_error),
        _conjugates(model, solved[-1]),
        solved[-1].residual,
        None,
        y_star_is_bound=True,
    )


def distance(d: checks.RealLike, argument: str = "d") -> Fraction:
    """Return a distance between clusters, checked."""
    exact = checks.exact_real(argument, d)
    if not 0 < 2 * exact < 1:
        raise InvalidInputError(argument, d, "strictly between 0 and 1/2")
    if float(exact) < LEAST_D:
        raise InvalidInputError(argument, d, f"at least {LEAST_D:g}")
    return exact


def _replicas(y: checks.RealLike) -> Fraction:
    exact = checks.exact_real("y", y)
    if exact <= 0:
        raise InvalidInputError("y", y, "a number > 0")
    return exact


def _check_curve(chain: Chain) -> None:
    if chain.jd < 0:
        raise InvalidInputError("jd", chain.jd, "at least 0 for the curve y*(d)")


def _wants_precise(model: Functional, digits: int | None) -> bool:
    if digits is None or digits <= FLOAT_DIGITS:
        return False
    if not model.any_digits:
        raise InvalidInputError("digits", digits, f"at most {FLOAT_DIGITS} for two layers or more")
    return True


def _tolerance(model: Functional, digits: int | None) -> float:
    if digits is None:
        return model.point_tol
    return float(10.0 ** -min(checks.digits(digits), FLOAT_DIGITS))


def _replicated(chain: Chain, d: Fraction, y: Fraction, digits: int | None) -> LocalEntropy:
    if digits is not None:
        raise InvalidInputError("digits", digits, "absent for the replicated matrix")
    point = replicated_entropy(chain, d, int(y) if y.denominator == 1 else float(y))
    phi, internal = point.phi, replicated_internal(point)
    external = Estimate(
        float(y) * (float(phi.value) - float(internal.value)),
        float(y) * (float(phi.error) + float(internal.error)),
        Tier.ESTIMATED,
        internal.method,
    )
    return LocalEntropy(chain, point.d, point.y, phi, internal, external, point.qhat, None)


def _conjugates(model: Functional, solved: Refined) -> tuple[Estimate, ...]:
    values = model.spread(solved.moments.qhat)
    errors = model.spread(solved.qhat_error)
    return tuple(model.estimate(float(v), float(e)) for v, e in zip(values, errors, strict=True))
