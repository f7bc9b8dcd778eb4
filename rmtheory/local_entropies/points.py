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
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError, OutsideValidityError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.base.gaussian import Array
from rmtheory.local_entropies.deep_gas import DeepGas, DeepGasSolver, find_deep_gas
from rmtheory.local_entropies.dilute_gas import (
    MOST_QHAT,
    MOST_RHO,
    SECOND_ORDER,
    SmearedGas,
    gas_at,
    smeared_gas,
)
from rmtheory.local_entropies.functional import Functional, Refined
from rmtheory.local_entropies.precise import precise_point, precise_ystar
from rmtheory.local_entropies.replicated import replicated_entropy, replicated_internal
from rmtheory.local_entropies.solve import (
    CurveTracker,
    count_zeros,
    functional,
    guess_qhat,
    refine_saddle,
)

if TYPE_CHECKING:
    from scipy.interpolate import KroghInterpolator

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
        answer = _gas_first(model, float(exact_d), tracker)
        if answer is not None:
            return answer
    try:
        solved = tracker.solve(float(exact_d), tol or _tolerance(model, digits))
    except NotConvergedError as problem:
        if precise:
            raise
        # Which of them are worked out depends on the depth; the others say nothing.
        for other in (_extrapolated, _unbounded, _diluted):
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


#: Least y d of an expansion in 1/y.
_LEAST_FLIPS = 0.2

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


#: y at which phi and S_E are computed where y* is beyond the largest y of the transfer operator.
_LADDER = (8.0, 12.0, 18.0, 27.0)


def _extrapolated(model: Functional, d: float) -> YStar | None:
    r"""Continue phi to large y as a polynomial in u = 1/y; None where that is too uncertain.

    Once y d is large phi is an expansion in 1/y, and :math:`d\phi/du = S_E`: at each of a few y the
    saddle gives the polynomial's value and its slope. S_I* is its least value for u >= 0. The error
    is what leaving out the least or the largest y changes, whichever is more, and a part of how far
    the polynomial is followed.
    """
    if d * _LADDER[-1] < _LEAST_FLIPS or model.plateau_y < math.inf:
        return None
    solved: list[Refined] = []
    start: Array | None = None
    for y in _LADDER:
        guess = guess_qhat(model, d, y) if start is None else start
        try:
            point = refine_saddle(model, d, y, guess, 1e-7)
        except NotConvergedError:
            return None
        if point.moments.external <= 0:
            return None  # y* is in reach: what failed is something else
        solved.append(point)
        start = point.moments.qhat * (y / (1.5 * y)) ** 0.8

    full = _at_least_phi(solved)
    parts = [_at_least_phi(solved[1:]), _at_least_phi(solved[:-1])]
    own = _noise(solved, full[0])
    last = solved[-1].moments
    # The tails of the fields, felt at log y = O(J_D^2/4d), are not a power of 1/y: far from the y
    # computed the polynomial may be wrong by a part of what it adds.
    far = (1 - last.y * full[0]) ** 2
    internal_error = max(abs(part[1] - full[1]) for part in parts) + own
    internal_error += 0.5 * far * abs(last.phi - full[1])
    if internal_error > _MOST_UNCERTAIN * abs(full[1]) or full[1] > math.log(2.0):
        return None
    slope_error = max(abs(part[2] - full[2]) for part in parts)
    slopes = [point.moments.slope for point in solved]
    slope_error += max(point.slope_error for point in solved)
    slope_error += 0.5 * math.sqrt(far) * (max(slopes) - min(slopes)) + 0.03 * far * abs(full[2])
    label = f"{model.label}, continued in 1/y"
    # Without a zero of S_E at finite y, y* is only known to be larger than the y computed.
    bound = full[0] == 0 or any(part[0] == 0 for part in parts)
    if bound:
        y_star = _lower_bound(last.y, label)
        conjugates = _upper_bounds(model.spread(last.qhat), label)
    else:
        y_error = max(abs(1 / part[0] - 1 / full[0]) for part in parts)
        y_star = Estimate(1 / full[0], y_error, Tier.ESTIMATED, label)
        # qhat falls like 1/y.
        ratio = last.y / float(y_star)
        conjugates = tuple(
            Estimate(float(q), abs(1 - ratio) * float(q), Tier.ESTIMATED, label)
            for q in model.spread(last.qhat) * ratio
        )
    return YStar(
        model.chain,
        d,
        y_star,
        Estimate(full[1], internal_error, Tier.ESTIMATED, label),
        Estimate(full[2], slope_error, Tier.ESTIMATED, label),
        conjugates,
        max(point.residual for point in solved),
        None,
        y_star_is_bound=bound,
    )


def _diluted(model: Functional, d: float) -> YStar | None:
    r"""Return what the dilute gas of flips says; None where flips are not dilute.

    Where S_E > 0 up to y rho = 4 every flip may be allowed at once: S_I* is then known to S_E/y,
    as in :func:`_unbounded`.
    """
    return None if model.gas_y == math.inf or d > _DILUTE else _by_gas(model.chain, d)


def _gas_first(model: Functional, d: float, tracker: CurveTracker) -> YStar | None:
    """Return the answer of the gas where the full functional would take long, or be out of reach.

    That is where y* is beyond `gas_y` of the functional, and the error of the gas is small.
    """
    if d > _DILUTE or model.gas_y == math.inf:
        return None
    expected = tracker.expected(d)
    if expected is not None and expected[0] < model.gas_y:
        return None
    answer = _by_gas(model.chain, d, model.gas_y, expected)
    if answer is None or float(answer.internal.error) > _SMALL * abs(float(answer.internal)):
        return None
    return answer


def _by_gas(
    chain: Chain,
    d: float,
    least_y: float = 0.0,
    expected: tuple[float, Array] | None = None,
) -> YStar | None:
    """Solve the gas, from a guess of y and qhat; None if there is none or y* < `least_y`."""
    start = None if expected is None else (expected[0], -2 * expected[0] * expected[1])
    try:
        if chain.layers == 2:  # all fields at once, whatever rho is
            with suppress(OutsideValidityError):
                pair = smeared_gas(chain, d, start)
                return None if pair.y_star < least_y else _from_pair_gas(pair)
            if chain.uniform:
                return _from_pair_gas(*gas_at(chain, d, _PLATEAU / d))
        gas, bound = find_deep_gas(chain, d)
    except NotConvergedError:
        return None
    return None if gas.y < least_y else _from_gas(gas, bound)


#: What the first order moves y* by, relatively and in units of qhat: 5 to 10 for one layer.
_Y_MOVES = 15.0


#: y d at which the gas of two layers is read where S_E > 0 at all y.
_PLATEAU = 40.0


def _from_pair_gas(gas: SmearedGas, external: float = 0.0) -> YStar | None:
    """Turn the gas of two layers into a result; None if it is too uncertain.

    Where S_E = `external` > 0 its y is a lower bound of y*.
    """
    if external < 0:
        return None
    bound, left = external > 0, external / gas.y_star
    error = gas.error + left
    if not gas.dilute or error > _MOST_UNCERTAIN * abs(gas.internal):
        return None
    label = "dilute gas of flips to first order in qhat"
    y, moved = gas.y_star, _Y_MOVES * gas.qhat
    qhat = -np.broadcast_to(np.array(gas.log_rho), (2,)) / (2 * y)
    conjugates = tuple(Estimate(float(q), float(q) * moved, Tier.ESTIMATED, label) for q in qhat)
    return YStar(
        gas.chain,
        gas.d,
        _lower_bound(y, label) if bound else Estimate(y, moved * y, Tier.ESTIMATED, label),
        Estimate(gas.internal - left, error, Tier.ESTIMATED, label),
        Estimate(gas.slope, gas.slope_error + left / gas.d, Tier.ESTIMATED, label),
        _upper_bounds(qhat, label) if bound else conjugates,
        0.0,
        None,
        y_star_is_bound=bound,
    )


def _from_gas(gas: DeepGas, bound: bool) -> YStar | None:
    """Turn the gas at one distance into a result; None if it is too uncertain."""
    chain, d = gas.chain, gas.d
    solver = DeepGasSolver(chain, d)
    try:
        slope, rule = solver.slope(gas), solver.finer(gas)
    except NotConvergedError:
        return None
    log_rho = solver.spread(gas.log_rho)
    qhat = -log_rho / (2 * gas.y)
    label = "dilute gas of flips to first order in qhat"
    error = SECOND_ORDER * float(qhat.max()) * abs(gas.correction) + rule
    internal = gas.phi + gas.correction
    # S_I* has orders that go like d^2; for one layer and two the power was between 1.0 and 3.2.
    slope += 2 * gas.correction / d
    slope_error = 1.2 * abs(gas.correction) / d + 1e-4 * abs(slope) + 2 * rule / d
    if bound:
        left = gas.external / gas.y
        internal, error = internal - left, error + left
        slope_error += left / d
    flips_dilute = float(qhat.max()) < MOST_QHAT and float(log_rho.max()) < math.log(MOST_RHO)
    if not flips_dilute or error > _MOST_UNCERTAIN * abs(internal):
        return None
    # The first order moves S_E by about y times what it adds to phi.
    moved = 2 * gas.softness * gas.layers * gas.y * abs(gas.correction)
    y_error = gas.y * (moved + 1e-4)
    return YStar(
        chain,
        d,
        _lower_bound(gas.y, label) if bound else Estimate(gas.y, y_error, Tier.ESTIMATED, label),
        Estimate(internal, error, Tier.ESTIMATED, label),
        Estimate(slope, slope_error, Tier.ESTIMATED, label),
        _upper_bounds(qhat, label)
        if bound
        else tuple(
            Estimate(float(q), float(q) * y_error / gas.y, Tier.ESTIMATED, label) for q in qhat
        ),
        abs(gas.external) if not bound else 0.0,
        None,
        y_star_is_bound=bound,
    )


def _lower_bound(y: float, label: str) -> Estimate:
    """Return a y that y* exceeds; nothing else is known of y*."""
    return Estimate(y, y, Tier.ESTIMATED, f"lower bound of y*: S_E > 0 there, {label}")


def _upper_bounds(qhat: Array, label: str) -> tuple[Estimate, ...]:
    """Return the qhat at a lower bound of y*: they fall like 1/y."""
    method = f"upper bound of qhat at y*, {label}"
    return tuple(Estimate(float(q), float(q), Tier.ESTIMATED, method) for q in qhat)


def _at_least_phi(solved: Sequence[Refined]) -> tuple[float, float, float]:
    """Return u = 1/y of the least phi of the polynomial in u, phi and the slope there."""
    from scipy.interpolate import KroghInterpolator

    moments = [point.moments for point in solved][::-1]
    u = np.array([1 / m.y for m in moments])
    phi = _hermite(u, [(m.phi, m.external) for m in moments])
    slope = KroghInterpolator(u, [m.slope for m in moments])
    # From the known end towards u = 0, to the first zero of S_E.
    grid = np.linspace(u[0], 0.0, 401)
    external = phi.derivative(grid)
    crossed = np.flatnonzero(external <= 0)
    if not crossed.size:
        return 0.0, float(phi(0.0)), float(slope(0.0))
    k = int(crossed[0])
    share = external[k - 1] / (external[k - 1] - external[k])
    least = float(grid[k - 1] + share * (grid[k] - grid[k - 1]))
    return least, float(phi(least)), float(slope(least))


def _hermite(u: ArrayLike, values: ArrayLike) -> KroghInterpolator:
    """Return the polynomial with given values and slopes at u = 1/y."""
    from scipy.interpolate import KroghInterpolator

    return KroghInterpolator(np.repeat(u, 2), np.ravel(values))


def _noise(solved: Sequence[Refined], u: float) -> float:
    """Errors of all phi and S_E, amplified by the polynomial at `u`."""
    total, places = 0.0, [1 / point.moments.y for point in solved]
    for k, point in enumerate(solved):
        for name, error in (("phi", point.phi_error), ("external", point.external_error)):
            values = np.zeros((len(solved), 2))
            values[k, ("phi", "external").index(name)] = error
            total += abs(float(_hermite(places, values)(u)))
    return total


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
