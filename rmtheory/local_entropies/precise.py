r"""Entropies of the core module (L = 1) to many digits: at given (d, y), and at y*(d).

**Averages.** The integral of :mod:`rmtheory.local_entropies.core`, written without cancellation as

.. math:: \zeta = e^{h} P(a_+) + e^{-h} P(a_-), \qquad a_\pm = \frac{J_D \pm x}{\sigma},
    \qquad m = \big[e^{h} P(a_+) - e^{-h} P(a_-)\big]/\zeta ,

by trapezoid rules whose steps and limits follow from the digits wanted: an error exp(-nats).

- In t the integrand is analytic up to cos(Im h) = 0, and |zeta| only falls off the real axis, so
  a strip of half-width a < pi/(2 sqrt qhat) gives a relative error 2 exp(a^2/2 - 2 pi a/step).
- In x the nodes are equidistant in the variable u(x) of :mod:`rmtheory.local_entropies.quadrature`,
  solved for to working precision; the error is about exp(-10/step), which callers check by
  repeating the sum with another step.
- Since zeta <= 2 exp|h|, the contribution of large t or x is below a Gaussian tail; nodes whose
  exponent in float64 is too small to contribute are left out.

Numbers go in and come out as exact fractions, so that no precision is shared between calls.

**Saddle.** The equations <m^2>_y = q1 (and S_E = 0 for y*) are solved by the chord method: the
float64 solver gives the start and the inverse Jacobian, right to ten digits or so, and every
evaluation to many digits gains as many. Coarser rules serve the first steps. The point is then
solved twice, the second time with other steps, wider limits and more digits; the error reported is
the change plus the effect of the last Newton step, and the float64 solution must agree within its
own error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from rmtheory.base import checks
from rmtheory.base.arithmetic import (
    Arithmetic,
    BallArithmetic,
    MPArithmetic,
    ball_precision,
    ball_to_mpf,
    have_flint,
)
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError, counted
from rmtheory.base.estimate import Estimate, Tier, fraction_from, mpf_from
from rmtheory.base.gaussian import Array, log_P
from rmtheory.local_entropies.functional import Refined
from rmtheory.local_entropies.solve import CurveTracker, functional, guess_qhat, refine_saddle

# Results.

#: Largest number of digits: a hundred take half a minute with python-flint, an hour without.
MAX_DIGITS = 100

_METHOD = "trapezoid rules at two resolutions, float64 as a check"


@dataclass(frozen=True)
class PrecisePoint:
    """The saddle at given (jd, d, y)."""

    #: phi = -Phi
    phi: Estimate
    #: S_I
    internal: Estimate
    #: S_E
    external: Estimate
    #: (y - 1)[qhat - <(d log zeta/dx)^2>_y] = d phi/dd at fixed y
    slope: Estimate
    qhat: Estimate


@dataclass(frozen=True)
class PreciseYStar:
    """The point S_E = 0 at given (jd, d)."""

    y_star: Estimate
    #: S_I* = phi(y*)
    internal: Estimate
    qhat: Estimate
    #: dS_I*/dd
    slope: Estimate
    #: The largest of |S_E| and |<m^2>_y - q1| that the solution leaves, which should be 0.
    residual: Estimate


def precise_point(
    jd: checks.RealLike, d: checks.RealLike, y: checks.RealLike, digits: int
) -> PrecisePoint:
    """Return phi, S_I, S_E, the slope and qhat of the core module at distance d and given y.

    Parameters
    ----------
    jd, d, y : real
        Self-coupling, distance 0 < d < 1/2 and y > 0, exactly as typed.
    digits : int
        Significant digits wanted, up to 100; a number that is nearly 0 may get fewer, with an
        error below 10^-(digits + 2).

    Examples
    --------
    >>> print(precise_point("0.1", "0.1", 2, 25).phi.rounded(20))
    0.041686875328429457600 ± 6e-22
    """
    coupling, distance, digits = _arguments(jd, d, digits)
    exponent = checks.exact_real("y", y)
    if exponent <= 0:
        raise InvalidInputError("y", y, "a number > 0")
    model = functional(Chain(1, coupling))
    at, power = float(distance), float(exponent)
    start = refine_saddle(model, at, power, guess_qhat(model, at, power), _START_TOL)

    def evaluate(unknowns: list[Fraction], rule: Rule) -> Averages:
        return precise_averages(coupling, distance, exponent, unknowns[0], rule)

    def residuals(averages: Averages) -> list[Fraction]:
        return [averages.saddle_residual]

    for coarse, fine in _attempts(evaluate, residuals, start, digits, fixed_y=True):
        names = ("phi", "internal", "external", "slope", "qhat")
        point = PrecisePoint(**{name: _estimate(coarse, fine, name, digits) for name in names})
        if all(_enough(getattr(point, name), digits) for name in names):
            _check_start(start, fine.averages)
            return PrecisePoint(**{name: getattr(point, name).rounded(digits) for name in names})
    raise _too_few(digits, f"d = {at:g}, y = {power:g}")


def precise_ystar(jd: checks.RealLike, d: checks.RealLike, digits: int) -> PreciseYStar:
    """Return y*, S_I*, qhat and the slope dS_I*/dd of the core module at distance d.

    Parameters
    ----------
    jd, d : real
        Self-coupling and distance 0 < d < 1/2, exactly as typed.
    digits : int
        Significant digits wanted, up to 100; a number that is nearly 0 may get fewer, with an
        error below 10^-(digits + 2).

    Examples
    --------
    >>> print(precise_ystar("0.1", "0.1", 20).y_star)
    5.6650062801102215586 ± 6e-20
    """
    coupling, distance, digits = _arguments(jd, d, digits)
    at = float(distance)
    start = CurveTracker(functional(Chain(1, coupling))).solve(at, _START_TOL)

    def evaluate(unknowns: list[Fraction], rule: Rule) -> Averages:
        return precise_averages(coupling, distance, unknowns[0], unknowns[1], rule)

    for coarse, fine in _attempts(evaluate, _ystar_residuals, start, digits, fixed_y=False):
        estimates = {
            "y_star": _estimate(coarse, fine, "y", digits),
            # phi is S_I at y*, and the only one stationary in both unknowns.
            "internal": _estimate(coarse, fine, "phi", digits),
            "qhat": _estimate(coarse, fine, "qhat", digits),
            "slope": _estimate(coarse, fine, "slope", digits),
        }
        if all(_enough(estimate, digits) for estimate in estimates.values()):
            _check_start(start, fine.averages)
            return PreciseYStar(
                **{name: estimate.rounded(digits) for name, estimate in estimates.items()},
                residual=_residual(coarse, fine),
            )
    raise _too_few(digits, f"d = {at:g}, y = y*")


def _arguments(
    jd: checks.RealLike, d: checks.RealLike, digits: int
) -> tuple[Fraction, Fraction, int]:
    coupling, distance = checks.exact_real("jd", jd), checks.exact_real("d", d)
    if not 0 < distance < Fraction(1, 2):
        raise InvalidInputError("d", d, "a distance strictly between 0 and 1/2")
    return coupling, distance, checks.integer("digits", digits, 1, MAX_DIGITS)


# The chord method, and errors.

#: Accuracy asked of the float64 solver for the start.
_START_TOL = 1e-11

#: Digits of the first evaluation, and how many more every further one takes.
_FIRST_DIGITS, _GAIN = 26, 12

#: Relative disagreement with float64 that is put down to rounding there.
_AGREEMENT = 1e-8

_MOST_STEPS = 16

_MOST_ATTEMPTS = 4


@dataclass(frozen=True)
class _Solved:
    averages: Averages
    #: Size of the Newton step that was not taken, relative to the unknowns.
    step: Fraction


def _attempts(
    evaluate: Callable[[list[Fraction], Rule], Averages],
    residuals: Callable[[Averages], list[Fraction]],
    start: Refined,
    digits: int,
    fixed_y: bool,
) -> Iterator[tuple[_Solved, _Solved]]:
    """Yield the point solved twice, each time finer than the last, as often as the caller needs."""
    moments = start.moments
    unknowns = [Fraction(float(moments.qhat[0]))]
    if not fixed_y:
        unknowns.insert(0, Fraction(moments.y))
    # Digits lost between the integrals and what is reported.
    lost = math.ceil(math.log10(1 + abs(start.inverse).max())) + math.ceil(
        2 * math.log10(1 + moments.y)
    )
    wanted, fineness = digits + lost + 6, 1.0
    # Steps this small do not matter to any number reported: see _estimate.
    small = Fraction(1, 10 ** (digits + 3 + math.ceil(math.log10(_reaction(moments)))))
    ladder = [Rule(n) for n in range(_FIRST_DIGITS, wanted, _GAIN)]
    coarse = _chord(evaluate, residuals, unknowns, start, [*ladder, Rule(wanted)], small)
    for _ in range(_MOST_ATTEMPTS):
        unknowns = _unknowns(coarse.averages, fixed_y)
        wanted, fineness = wanted + 6, 0.8 * fineness
        fine = _chord(evaluate, residuals, unknowns, start, [Rule(wanted, fineness)], small)
        yield coarse, fine
        coarse = fine


def _chord(
    evaluate: Callable[[list[Fraction], Rule], Averages],
    residuals: Callable[[Averages], list[Fraction]],
    unknowns: list[Fraction],
    start: Refined,
    rules: list[Rule],
    small: Fraction,
) -> _Solved:
    """Chord steps with the float64 inverse: one for each rule, then with the last until done."""
    sizes: list[Fraction] = []
    for number in range(_MOST_STEPS):
        rule = rules[min(number, len(rules) - 1)]
        averages = evaluate(unknowns, rule)
        steps = _newton_step(start.inverse, residuals(averages))
        sizes.append(max(abs(s / u) for s, u in zip(steps, unknowns, strict=True)))
        if number >= len(rules) - 1 and sizes[-1] < small:
            return _Solved(averages, sizes[-1])
        if sizes[-1] > 1e-3 or (number > 1 and sizes[-1] > sizes[-2] > sizes[-3]):
            break
        unit = 10**rule.working
        unknowns = [
            Fraction(round((u + s) * unit), unit) for u, s in zip(unknowns, steps, strict=True)
        ]
    raise NotConvergedError(
        f"the chord method stopped at steps of {float(sizes[-1]):.1e} relative to the unknowns at "
        f"d = {(1 - start.moments.q1) / 2:g}"
    )


def _newton_step(inverse: Array, residual: list[Fraction]) -> list[Fraction]:
    return [
        -sum((Fraction(float(c)) * r for c, r in zip(row, residual, strict=True)), Fraction(0))
        for row in inverse
    ]


def _ystar_residuals(averages: Averages) -> list[Fraction]:
    return [averages.saddle_residual, averages.external]


def _unknowns(averages: Averages, fixed_y: bool) -> list[Fraction]:
    return [averages.qhat] if fixed_y else [averages.y, averages.qhat]


def _reaction(point: Any) -> float:
    """Bound of what a relative change of y and qhat does to y, qhat and the entropies.

    Their derivatives are covariances of log zeta and m^2 times at most y^2 qhat, y or 1.
    """
    y, qhat = float(point.y), float(point.qhat if isinstance(point, Averages) else point.qhat[0])
    return (1 + y) ** 2 * (1 + qhat)


def _estimate(coarse: _Solved, fine: _Solved, name: str, digits: int) -> Estimate:
    """Return the finer value; its error is the change plus the steps left over and rounding."""
    value, before = getattr(fine.averages, name), getattr(coarse.averages, name)
    reaction = Fraction(_reaction(fine.averages))
    error = abs(value - before) + reaction * (fine.step + Fraction(1, 10 ** (digits + 10)))
    return _as_estimate(value, error, digits)


def _as_estimate(value: Fraction, error: Fraction, digits: int) -> Estimate:
    numbers = MPArithmetic(digits + 30)
    return Estimate(
        mpf_from(numbers.number(value)), mpf_from(numbers.number(error)), Tier.VERIFIED, _METHOD
    )


def _residual(coarse: _Solved, fine: _Solved) -> Estimate:
    """Size of the equations' residual; its error is the change between the resolutions."""
    sizes = [max(map(abs, _ystar_residuals(solved.averages))) for solved in (fine, coarse)]
    return _as_estimate(sizes[0], sizes[0] + sizes[1], 10)


def _enough(estimate: Estimate, digits: int) -> bool:
    return estimate.digits >= digits or bool(
        estimate.error < MPArithmetic(20).number(Fraction(1, 10 ** (digits + 2)))
    )


def _check_start(start: Refined, averages: Averages) -> None:
    """Compare with the float64 solution, an independent implementation."""
    moments = start.moments
    pairs = (
        (moments.phi, averages.phi, start.phi_error),
        (moments.y, averages.y, start.y_error),
        (float(moments.qhat[0]), averages.qhat, float(start.qhat_error[0])),
    )
    for double, precise, error in pairs:
        # Errors of float64 are estimates, and its inputs are rounded: hence the margin.
        if abs(Fraction(double) - precise) > 100 * error + _AGREEMENT * max(abs(double), 1e-3):
            raise NotConvergedError(
                f"float64 gives {double:.16g} ± {error:.0e} and the quadrature to many digits "
                f"{float(precise):.16g} at d = {(1 - moments.q1) / 2:g}"
            )


def _too_few(digits: int, where: str) -> NotConvergedError:
    return NotConvergedError(f"{counted(digits, 'digit')} not reached at {where}; ask for fewer")


# Averages to many digits.

#: Decay of the error of the trapezoid rule in u: exp(-DECAY/step), measured.
DECAY = 10.0

#: Digits of rounding allowed for: sums over some 1e5 nodes, powers y log zeta.
_ROUNDING_DIGITS = 8

#: Largest grid (t, x): more would fill the memory, and take an hour.
MOST_POINTS = 15_000_000


@dataclass(frozen=True)
class Rule:
    """How finely to integrate.

    Parameters
    ----------
    digits : int
        Relative error 10^-digits wanted of the integrals.
    fineness : float
        Factor on the steps in t and u; below 1 is finer than the digits seem to need.
    """

    digits: int
    fineness: float = 1.0

    @property
    def nats(self) -> float:
        """The error as exp(-nats)."""
        return self.digits * math.log(10)

    @property
    def working(self) -> int:
        """Digits of the arithmetic."""
        return self.digits + _ROUNDING_DIGITS

    def tilt_step(self, qhat: float) -> float:
        """Step in t, from the width of the strip where zeta has no zero."""
        strip = min(0.95 * math.pi / (2 * math.sqrt(qhat)), math.sqrt(2 * self.nats))
        return self.fineness * 2 * math.pi * strip / (self.nats + strip**2 / 2)

    def field_step(self, y: float) -> float:
        """Step in u: zeta^y sharpens with y, measured to go like y^(-1/4)."""
        return self.fineness * DECAY / self.nats * min(1.0, math.sqrt(math.sqrt(8 / y)))


@dataclass(frozen=True)
class Averages:
    """Averages at one (d, y, qhat), and the entropies made of them (see Moments), exactly."""

    q1: Fraction
    y: Fraction
    qhat: Fraction
    #: G = log int zeta^y
    log_norm: Fraction
    #: <log zeta>_y
    mean_log: Fraction
    #: <m^2>_y
    overlap: Fraction
    #: <(d log zeta/dx)^2>_y
    force: Fraction
    #: Number of quadrature points used.
    size: int

    @property
    def phi(self) -> Fraction:
        """Free entropy."""
        return self.log_norm / self.y - self.qhat * (1 + (self.y - 1) * self.q1) / 2

    @property
    def internal(self) -> Fraction:
        """Internal entropy S_I."""
        return self.mean_log - self.qhat * (1 + (2 * self.y - 1) * self.q1) / 2

    @property
    def external(self) -> Fraction:
        """External entropy S_E."""
        return self.log_norm - self.y * self.mean_log + self.y**2 * self.q1 * self.qhat / 2

    @property
    def slope(self) -> Fraction:
        """(y - 1)[qhat - <(d log zeta/dx)^2>_y], the slope dS_I*/dd where S_E = 0."""
        return (self.y - 1) * (self.qhat - self.force)

    @property
    def saddle_residual(self) -> Fraction:
        """<m^2>_y - q1."""
        return self.overlap - self.q1


def precise_averages(
    jd: Fraction, d: Fraction, y: Fraction, qhat: Fraction, rule: Rule
) -> Averages:
    """Averages at exact (jd, d, y, qhat): python-flint where it is installed, else mpmath.

    Examples
    --------
    At y = 1 phi is log 2P(J), for all qhat.

    >>> jd, d, qhat = Fraction(1, 10), Fraction(1, 5), Fraction(2, 3)
    >>> phi = precise_averages(jd, d, Fraction(1), qhat, Rule(25)).phi
    >>> annealed = MPArithmetic(40)
    >>> exact = annealed.log(2 * annealed.P(annealed.number(jd)))
    >>> bool(abs(annealed.number(phi) - exact) < 1e-24)
    True
    """
    if not have_flint():
        return _averages(MPArithmetic(rule.working), jd, d, y, qhat, rule)
    with ball_precision(rule.working) as balls:
        return _averages(balls, jd, d, y, qhat, rule)


def _averages(
    numbers: Arithmetic, jd: Fraction, d: Fraction, y: Fraction, qhat: Fraction, rule: Rule
) -> Averages:
    q1 = 1 - 2 * d
    reach_t, reach_x = _reach(float(jd), float(d), float(y), float(qhat), rule.nats)
    tilt_step = Fraction(rule.tilt_step(float(qhat)))
    count = math.ceil(reach_t / float(tilt_step))
    # Before the nodes, of which more digits cost seconds.
    size = (2 * count + 1) * _field_count(jd, d, rule.field_step(float(y)), reach_x)
    if size > MOST_POINTS:
        raise NotConvergedError(
            f"the quadrature needs {size:.1e} points at y = {float(y):g}; ask for fewer digits or "
            "a smaller y"
        )
    fields, weights = _field_nodes(numbers, jd, d, rule, float(y), reach_x)

    sigma = numbers.sqrt(numbers.number(2 * d))
    coupling = numbers.number(jd)
    plus = [(coupling + x) / sigma for x in fields]
    minus = [(coupling - x) / sigma for x in fields]
    keep = _kept(
        np.array([float(a) for a in plus]),
        np.array([float(a) for a in minus]),
        np.array([float(x) for x in fields]) ** 2 / float(q1) / 2,
        np.arange(-count, count + 1, dtype=np.float64) * float(tilt_step),
        float(y),
        float(qhat),
        rule.nats,
    )

    # Gaussian weights and e^h on the nodes in t, for t = -count step, ..., count step
    step = numbers.number(tilt_step)
    gauss = [numbers.n(k * step) for k in range(count + 1)]
    growth = [numbers.exp(numbers.sqrt(numbers.number(qhat)) * step * k) for k in range(count + 1)]
    density = gauss[:0:-1] + gauss
    boost = [1 / e for e in growth[:0:-1]] + growth
    sums = _sums(numbers, numbers.number(y), (plus, minus, weights), (boost, density), keep, sigma)
    norm, log, square, force = sums
    return Averages(
        q1=q1,
        y=y,
        qhat=qhat,
        log_norm=_fraction(numbers, numbers.log(norm * step)),
        mean_log=_fraction(numbers, log / norm),
        overlap=_fraction(numbers, square / norm),
        force=_fraction(numbers, force / norm),
        size=int(keep.sum()),
    )


def _sums(
    numbers: Arithmetic,
    y: Any,
    fields: tuple[list[Any], list[Any], list[Any]],
    tilts: tuple[list[Any], list[Any]],
    keep: Any,
    sigma: Any,
) -> tuple[Any, Any, Any, Any]:
    """Sums of zeta^y times 1, log zeta, m^2 and (d log zeta/dx)^2 over the nodes kept."""
    exp, log, zero = numbers.exp, numbers.log, numbers.number(0)
    boost, density = tilts
    norm, logs, squares, forces = zero, zero, zero, zero
    for j, (a, b, weight) in enumerate(zip(*fields, strict=True)):
        P_plus, P_minus = numbers.P(a), numbers.P(b)
        one, first, second, mean_log = zero, zero, zero, zero
        for i in np.flatnonzero(keep[:, j]).tolist():
            up, down = boost[i] * P_plus, P_minus / boost[i]
            zeta = up + down
            log_zeta = log(zeta)
            w = density[i] * exp(y * log_zeta)
            m = (up - down) / zeta
            wm = w * m
            one += w
            first += wm
            second += wm * m
            mean_log += w * log_zeta
        # d log zeta/dx = (c + e m), linear in m
        r_plus, r_minus = numbers.n(a) / P_plus, numbers.n(b) / P_minus
        c, e = (r_plus - r_minus) / (2 * sigma), (r_plus + r_minus) / (2 * sigma)
        norm += weight * one
        logs += weight * mean_log
        squares += weight * second
        forces += weight * (c * c * one + 2 * c * e * first + e * e * second)
    return norm, logs, squares, forces


def _reach(jd: float, d: float, y: float, qhat: float, nats: float) -> tuple[float, float]:
    """Limits of |t| and |x|, from y log zeta <= y (|h| + log 2) and a value near the maximum."""
    q1, sigma, root = 1 - 2 * d, math.sqrt(2 * d), math.sqrt(qhat)
    t = np.linspace(-1, 1, 401) * (y * root + 1)
    x = np.linspace(0, 1, 201) * (abs(jd) + 4 * sigma + math.sqrt(q1))
    exponent = _exponent((jd + x) / sigma, (jd - x) / sigma, x * x / q1 / 2, t, y, qhat)
    slack = y * y * qhat / 2 + y * math.log(2) - float(exponent.max())
    far = math.sqrt(2 * (nats + slack))
    return y * root + far, math.sqrt(q1) * far


def _exponent(plus: Array, minus: Array, cost: Array, t: Array, y: float, qhat: float) -> Array:
    """Logarithm of the integrand on a grid (t, x), in float64, without its norms."""
    h = math.sqrt(qhat) * t[:, None]
    log_zeta = np.logaddexp(h + log_P(plus), log_P(minus) - h)
    return np.asarray(y * log_zeta - 0.5 * t[:, None] ** 2 - cost)


def _kept(
    plus: Array, minus: Array, cost: Array, t: Array, y: float, qhat: float, nats: float
) -> Any:
    """Mask of the nodes (t, x) that can contribute."""
    exponent = _exponent(plus, minus, cost, t, y, qhat)
    # What is left out together is at most its number times the threshold.
    return exponent > exponent.max() - nats - math.log(exponent.size)


def _centres(jd: Fraction, d: Fraction) -> tuple[Fraction, ...]:
    """Where the coordinate u of the fields is stretched: at the steps of P, if they are apart."""
    near = abs(float(jd)) < math.sqrt(2 * float(d)) / 2
    return (Fraction(0),) if near else (jd, -jd)


def _field_count(jd: Fraction, d: Fraction, step: float, reach: float) -> int:
    """Return how many nodes :func:`_field_nodes` has, up to one."""
    sigma, scale = math.sqrt(2 * float(d)), math.sqrt(1 - 2 * float(d))
    stretched = sum(math.asinh((reach - float(centre)) / sigma) for centre in _centres(jd, d))
    return math.ceil((reach / scale + stretched) / step) + 1


def _field_nodes(
    numbers: Arithmetic, jd: Fraction, d: Fraction, rule: Rule, y: float, reach: float
) -> tuple[list[Any], list[Any]]:
    """Nodes x >= 0 with u(x) = 0, step, 2 step, ... and their weights, x > 0 counted twice."""
    variance, square = numbers.number(1 - 2 * d), numbers.number(2 * d)
    scale, sigma = numbers.sqrt(variance), numbers.sqrt(square)
    centres = [numbers.number(c) for c in _centres(jd, d)]
    step = numbers.number(Fraction(rule.field_step(y)))
    # A Newton step this small squares to less than the working precision.
    small = 10.0 ** (-0.5 * rule.working - 2)

    def coordinate(x: Any) -> tuple[Any, Any]:
        u, density = x / scale, 1 / scale
        for centre in centres:
            from_centre = x - centre
            distance = numbers.sqrt(from_centre * from_centre + square)
            # asinh, from the side where nothing cancels
            if numbers.negative(from_centre):
                u -= numbers.log((distance - from_centre) / sigma)
            else:
                u += numbers.log((distance + from_centre) / sigma)
            density += 1 / distance
        return u, density

    x = numbers.number(0)
    nodes: list[Any] = []
    weights: list[Any] = []
    slope = coordinate(x)[1]
    while True:
        factor = 1 if not nodes else 2
        nodes.append(x)
        weights.append(factor * step / slope * numbers.n(x / scale) / scale)
        if float(x) > reach:
            return nodes, weights
        target = step * len(nodes)
        x = _plain(x + step / slope)
        while True:
            u, slope = coordinate(x)
            change = (target - u) / slope
            x = _plain(x + change)
            if abs(float(change)) < small * float(x):
                break
        slope = coordinate(x)[1]


def _plain(number: Any) -> Any:
    """Drop the radius of a ball: Newton corrects its own errors, which a radius would add up."""
    return number.mid() if hasattr(number, "mid") else number


def _fraction(numbers: Arithmetic, number: Any) -> Fraction:
    if isinstance(numbers, BallArithmetic):
        number = ball_to_mpf(number)[0]
    value = fraction_from(number) if math.isfinite(float(number)) else None
    if value is None:
        raise NotConvergedError("the quadrature to many digits gave no finite number")
    return value
