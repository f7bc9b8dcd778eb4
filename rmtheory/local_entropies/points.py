r"""Local entropy at one point, and y* at one distance: the functions a user calls.

At a distance d, the overlap being q1 = 1 - 2d, and y replicas the free entropy phi of
:mod:`rmtheory.local_entropies.functional` gives the number of fixed points in a region and the
number of such regions, per neuron,

.. math:: S_I = \frac{\partial (y\phi)}{\partial y}, \qquad S_E = y\,(\phi - S_I) .

The densest regions that exist are those at y*, beyond which S_E would be negative,

.. math:: S_E(d, y^*) = 0, \qquad S_I^*(d) = S_I\big(d, y^*(d)\big) = \phi\big(d, y^*(d)\big),
    \qquad \frac{dS_I^*}{dd} = \frac{\partial\phi}{\partial d}\Big|_{y^*},

the last because :math:`\partial\phi/\partial y = -S_E/y^2` vanishes there: the slope needs no
differences. Where y grows beyond all bounds before S_E vanishes, y* is a lower bound, and S_I* is
that of the dilute gas of flips, or continued in 1/y.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.base.gaussian import Array
from rmtheory.local_entropies.dilute_gas import gas_of
from rmtheory.local_entropies.functional import Functional, Refined
from rmtheory.local_entropies.precise import precise_point, precise_ystar
from rmtheory.local_entropies.replicated import Ladder, replicated_entropy, replicated_internal
from rmtheory.local_entropies.solve import (
    CurveTracker,
    count_zeros,
    functional,
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
    #: Where `y_star_is_bound`, a y up to which S_E > 0, with an error as large as itself.
    y_star: Estimate
    internal: Estimate
    #: dS_I*/dd by the envelope theorem.
    slope: Estimate
    #: Where `y_star_is_bound`, those at `y_star`, upper bounds with errors as large as themselves.
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
    if digits is None:
        for first in (_gas_first, _integers_first):
            answer = first(model, float(exact_d), tracker)
            if answer is not None:
                return answer
    try:
        solved = tracker.solve(float(exact_d), tol or _tolerance(model, digits))
    except NotConvergedError as problem:
        if precise:
            raise
        # Which of them are worked out depends on the depth; the others say nothing.
        for other in (_continued, _unbounded, _diluted):
            answer = other(model, float(exact_d))
            if answer is not None:
                return answer
        raise problem from None
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


#: Largest error, relative to S_I*, of what is said of S_I* where y* is not reached.
_MOST_UNCERTAIN = 0.1

#: Largest distance at which the gas of flips is asked, and its largest relative error where the
#: full functional might do better.
_DILUTE, _SMALL = 0.03, 0.02


def _unbounded(model: Functional, d: float) -> YStar | None:
    r"""Return S_I* where S_E > 0 up to a y so large that y* does not matter; None elsewhere.

    Once every site with a field of the right size may flip, S_E is a constant > 0 until the y
    replicas feel the tails of the fields, at :math:`\log y = O(J_D^2/4d)`. As
    :math:`d\phi/dy = -S_E/y^2`,

    .. math:: \phi(y) - \frac1y\max_{y' > y} S_E(y') \le S_I^* \le \phi(y) ,

    and S_I(y) = phi(y) - S_E(y)/y lies between them as long as S_E does not rise.
    """
    if model.plateau_y == math.inf:
        return None
    solved: list[Refined] = []
    # Without constraints m = tanh(y qhat m) at large y, and m^2 = q1.
    m = math.sqrt(1 - 2 * d)
    for y in (0.1 * model.plateau_y, model.plateau_y):
        guess = np.full(model.unknowns, math.atanh(m) / m / y)
        try:
            point = refine_saddle(model, d, y, guess, 1e-9)
        except NotConvergedError:
            return None
        if point.moments.external <= point.external_error:
            return None
        solved.append(point)
    before, here = (point.moments for point in solved)
    # S_E falls; should it rise instead, it is of order one all the same.
    left = (here.external if here.external <= before.external else 1.0) / here.y
    if left > _MOST_UNCERTAIN * abs(here.internal):
        return None
    slope_error = abs(here.slope - before.slope) + solved[-1].slope_error
    return YStar(
        model.chain,
        d,
        _lower_bound(here.y, model.label),
        model.estimate(here.internal, solved[-1].internal_error + left),
        model.estimate(here.slope, slope_error),
        _upper_bounds(model.spread(here.qhat), model.label),
        solved[-1].residual,
        None,
        y_star_is_bound=True,
    )


#: Least distance at which phi is continued in 1/y beyond the integers: at smaller ones, where the
#: gas of flips answers, its error was not tested.
_LEAST_CONTINUED = 0.004

#: y* up to which the integrals follow once the integers have found it.
_NEAR_LARGEST = 0.9


def _integers_first(model: Functional, d: float, tracker: CurveTracker) -> YStar | None:
    """Ask the integers where y* is: beyond the integrals they answer, else they start the curve."""
    expected = tracker.expected(d)
    most = _NEAR_LARGEST * model.largest_y
    if d < _LEAST_CONTINUED or (expected is not None and expected[0] < most):
        return None
    ladder = model.ladder(d)
    if ladder is None:
        return None
    y = 1 / (ladder.least()[0] or math.inf)
    if not (ladder.in_reach and y < most):
        answer = _from_ladder(model, ladder)
        if answer is None and not ladder.in_reach and y == 0:  # S_E > 0 at all y in reach
            raise NotConvergedError(
                f"y* is beyond {model.largest_y:g} at d = {d:.10g}, and integer y, continued in "
                f"1/y, leave S_I* uncertain by {ladder.phi_error():.0e}: take a smaller "
                "lambda or another d, or ask for integer y (--method replicated)"
            )
        return answer
    if expected is None:
        tracker.start_from(d, y, ladder.near(y)[0])
    return None


def _continued(model: Functional, d: float) -> YStar | None:
    """Return what the integers say where the integrals fail; None where there are none."""
    ladder = None if d < _LEAST_CONTINUED else model.ladder(d)
    return None if ladder is None else _from_ladder(model, ladder)


def _from_ladder(model: Functional, ladder: Ladder) -> YStar | None:
    """Turn phi at integer y into a result; None if it is too uncertain."""
    phi = ladder.least()[1]
    if ladder.phi_error() > _MOST_UNCERTAIN * abs(phi) or phi > math.log(2.0):
        return None
    star = ladder.star()
    label = "replicated transfer matrix at integer y"
    label += ", continued in 1/y" if star.continued else ""
    solved, away = ladder.near(star.y)
    qhat, uncertain = model.spread(solved), star.y_error / star.y + away
    return YStar(
        model.chain,
        ladder.d,
        _lower_bound(star.y, label)
        if star.bound
        else Estimate(star.y, star.y_error, Tier.ESTIMATED, label),
        Estimate(star.phi, star.phi_error, Tier.ESTIMATED, label),
        Estimate(star.slope, star.slope_error, Tier.ESTIMATED, label),
        _upper_bounds(qhat, label)
        if star.bound
        else tuple(Estimate(float(q), float(q) * uncertain, Tier.ESTIMATED, label) for q in qhat),
        0.0,
        None,
        y_star_is_bound=star.bound,
    )


def _diluted(model: Functional, d: float) -> YStar | None:
    """Return what the dilute gas of flips says; None where flips are not dilute."""
    return None if model.gas_y == math.inf or d > _DILUTE else _by_gas(model, d)


def _gas_first(model: Functional, d: float, tracker: CurveTracker) -> YStar | None:
    """Return the answer of the gas where the full functional would take long, or be out of reach.

    That is where y* is beyond `gas_y` of the functional, and the error of the gas is small.
    """
    if d > _DILUTE or model.gas_y == math.inf:
        return None
    expected = tracker.expected(d)
    if expected is not None and expected[0] < model.gas_y:
        return None
    answer = _by_gas(model, d, model.gas_y, expected)
    if answer is None or float(answer.internal.error) > _SMALL * abs(float(answer.internal)):
        return None
    return answer


def _by_gas(
    model: Functional,
    d: float,
    least_y: float = 0.0,
    expected: tuple[float, Array] | None = None,
) -> YStar | None:
    """Solve the gas, from a guess of y and qhat; None if it is too uncertain or y* < `least_y`."""
    start = None if expected is None else (expected[0], -2 * expected[0] * expected[1])
    try:
        gas = gas_of(model.chain).answer(d, least_y, start)
    except NotConvergedError:
        return None
    if gas is None or gas.internal_error > _MOST_UNCERTAIN * abs(gas.internal):
        return None
    label = "dilute gas of flips to first order in qhat"

    def estimate(value: float, error: float) -> Estimate:
        return Estimate(value, error, Tier.ESTIMATED, label)

    relative = gas.y_error / gas.y
    return YStar(
        model.chain,
        d,
        _lower_bound(gas.y, label) if gas.y_is_bound else estimate(gas.y, gas.y_error),
        estimate(gas.internal, gas.internal_error),
        estimate(gas.slope, gas.slope_error),
        _upper_bounds(gas.qhat, label)
        if gas.y_is_bound
        else tuple(estimate(float(q), float(q) * relative) for q in gas.qhat),
        gas.residual,
        None,
        y_star_is_bound=gas.y_is_bound,
    )


def _lower_bound(y: float, label: str) -> Estimate:
    """Return a y that y* exceeds; nothing else is known of y*."""
    return Estimate(y, y, Tier.ESTIMATED, f"lower bound of y*: S_E > 0 there, {label}")


def _upper_bounds(qhat: Array, label: str) -> tuple[Estimate, ...]:
    """Return the qhat at a lower bound of y*: they fall like 1/y."""
    method = f"upper bound of qhat at y*, {label}"
    return tuple(Estimate(float(q), float(q), Tier.ESTIMATED, method) for q in qhat)


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
