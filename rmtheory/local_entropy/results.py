"""Local entropy at one point, and y* at one distance: the functions a user calls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from rmtheory import checks
from rmtheory.annealed import entropy as annealed_entropy
from rmtheory.chain import Chain
from rmtheory.errors import InvalidInputError, NotConvergedError
from rmtheory.estimate import Estimate, Tier
from rmtheory.local_entropy.continuation import CurveTracker
from rmtheory.local_entropy.deep.message import IN_REACH, LARGEST_Y
from rmtheory.local_entropy.deep.replicated import replicated_entropy, replicated_internal
from rmtheory.local_entropy.model import LocalModel
from rmtheory.local_entropy.precise import precise_point, precise_ystar
from rmtheory.local_entropy.q0 import q0_at
from rmtheory.local_entropy.q0_pair import pair_q0_at
from rmtheory.local_entropy.refine import Refined, refine_saddle
from rmtheory.local_entropy.start import count_zeros, guess_qhat
from rmtheory.local_entropy.verdict import default_tol

_QUADRATURE = "trapezoid quadrature, two resolutions"
_OPERATOR = "transfer operator, two grids"

Method = Literal["integral", "replicated"]

#: Digits that the float64 quadrature can give; more are computed for one layer only.
FLOAT_DIGITS = 12

#: Least distance: y* is beyond all bounds long before.
LEAST_D = 1e-12

#: Accuracy of a single point when none is asked for; curves of two layers aim at 1e-9.
SINGLE_TOL = 1e-11


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
    y_star: Estimate
    internal: Estimate
    #: dS_I*/dd by the envelope theorem.
    slope: Estimate
    qhat: tuple[Estimate, ...]
    #: Largest residual of <m_l^2> = q1 and S_E = 0.
    residual: float
    q0_stability: Estimate | None


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
    >>> from rmtheory import Chain
    >>> point = local_entropy(Chain(1, 0.1), d=0.1, y=3)
    >>> print(point.phi.rounded(10), point.internal.rounded(10))
    0.03282716839 ± 6e-12 0.01875642059 ± 6e-12
    """
    exact_d, exact_y = distance(d), _replicas(y)
    if method == "replicated":
        return _replicated(chain, exact_d, exact_y, digits)
    if method != "integral":
        raise InvalidInputError("method", method, "integral or replicated")
    model, precise = LocalModel(chain), _wants_precise(chain, digits)
    float_d, float_y = float(exact_d), float(exact_y)
    if model.deep and float_y > LARGEST_Y:
        raise NotConvergedError(
            f"y = {float_y:g} is too large for the transfer operator: {IN_REACH}"
        )
    start = guess_qhat(model, float_d, float_y)
    solved = refine_saddle(model, float_d, float_y, start, _tolerance(model, digits))
    moments, q0 = solved.moments, _q0(chain, solved)
    if precise:
        assert digits is not None
        point = precise_point(chain.exact.jd, exact_d, exact_y, digits)
        entropies = (point.phi, point.internal, point.external)
        qhat: tuple[Estimate, ...] = (point.qhat,)
    else:
        entropies = (
            # One replica: phi is the annealed entropy, known to far more digits.
            annealed_entropy(chain)
            if model.deep and exact_y == 1
            else _estimate(model, moments.phi, solved.phi_error),
            _estimate(model, moments.internal, solved.internal_error),
            _estimate(model, moments.external, solved.external_error),
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
    >>> from rmtheory import Chain
    >>> point = ystar(Chain(1, 0.1), d=0.1)
    >>> print(point.y_star.rounded(8), point.internal.rounded(10))
    5.6650063 ± 6e-8 0.02904414440 ± 6e-12
    """
    exact_d = distance(d)
    _check_curve(chain)
    model, precise = LocalModel(chain), _wants_precise(chain, digits)
    tracker = CurveTracker(model) if tracker is None else tracker
    solved = tracker.solve(float(exact_d), tol or _tolerance(model, digits))
    if check_zeros:
        zeros = count_zeros(model, solved.moments, _reach(model, solved.moments.y))
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
    moments, model = solved.moments, LocalModel(chain)
    return YStar(
        chain,
        d,
        _estimate(model, moments.y, solved.y_error),
        # At y* phi is S_I*, and stationary in y and qhat: the better of the two to read.
        _estimate(model, moments.phi, solved.phi_error),
        _estimate(model, moments.slope, solved.slope_error),
        _conjugates(model, solved),
        solved.residual,
        _q0(chain, solved),
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


def _wants_precise(chain: Chain, digits: int | None) -> bool:
    if digits is None or digits <= FLOAT_DIGITS:
        return False
    if chain.layers != 1:
        raise InvalidInputError("digits", digits, f"at most {FLOAT_DIGITS} for two layers or more")
    return True


def _tolerance(model: LocalModel, digits: int | None) -> float:
    if digits is None:
        # Nine significant digits of an entropy of a few hundredths.
        return default_tol(model) if model.deep else min(default_tol(model), SINGLE_TOL)
    return float(10.0 ** -min(checks.digits(digits), FLOAT_DIGITS))


def _reach(model: LocalModel, y: float) -> float:
    """How far above y* other zeros of S_E are looked for: the transfer operator ends near 30."""
    return min(4.0, max(1.25, 16 / y)) if model.deep else 4.0


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


def _estimate(model: LocalModel, value: float, error: float) -> Estimate:
    return Estimate(value, error, Tier.ESTIMATED, _OPERATOR if model.deep else _QUADRATURE)


def _conjugates(model: LocalModel, solved: Refined) -> tuple[Estimate, ...]:
    values = model.spread(solved.moments.qhat)
    errors = model.spread(solved.qhat_error)
    return tuple(_estimate(model, float(v), float(e)) for v, e in zip(values, errors, strict=True))


def _q0(chain: Chain, solved: Refined) -> Estimate | None:
    if chain.layers == 1:
        return q0_at(chain.jd, solved)
    return pair_q0_at(chain, solved) if chain.layers == 2 else None
