r"""Entropies of the core module (L = 1) to many digits: at given (d, y), and at y*(d).

The equations <m^2>_y = q1 (and S_E = 0 for y*) are solved by the chord method: the float64 solver
gives the start and the inverse Jacobian, right to ten digits or so, and every evaluation to many
digits gains as many. Coarser rules serve the first steps. The point is then solved twice, the
second time with other steps, wider limits and more digits; the error reported is the change plus
what the last Newton step may do, and the float64 solution must agree within its own error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rmtheory import checks
from rmtheory.arithmetic import MPArithmetic
from rmtheory.chain import Chain
from rmtheory.errors import InvalidInputError, NotConvergedError
from rmtheory.estimate import Estimate, Tier, mpf_from
from rmtheory.gaussian import Array
from rmtheory.local_entropy.continuation import CurveTracker
from rmtheory.local_entropy.model import LocalModel
from rmtheory.local_entropy.precise_rule import Averages, Rule, precise_averages
from rmtheory.local_entropy.refine import Refined, refine_saddle
from rmtheory.local_entropy.start import guess_qhat
from rmtheory.wording import counted

#: Most digits offered: a hundred take half a minute with python-flint, an hour without.
MAX_DIGITS = 100

#: Accuracy asked of the float64 solver for the start.
_START_TOL = 1e-11

#: Digits of the first evaluation, and how many more every further one takes.
_FIRST_DIGITS, _GAIN = 26, 12

#: Relative disagreement with float64 that is put down to rounding there.
_AGREEMENT = 1e-8

_MOST_STEPS = 16
_MOST_ATTEMPTS = 4

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


@dataclass(frozen=True)
class _Solved:
    averages: Averages
    #: Size of the Newton step that was not taken, relative to the unknowns.
    step: Fraction


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
    model = LocalModel(Chain(1, coupling))
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
    start = CurveTracker(LocalModel(Chain(1, coupling))).solve(at, _START_TOL)

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


def _attempts(
    evaluate: Callable[[list[Fraction], Rule], Averages],
    residuals: Callable[[Averages], list[Fraction]],
    start: Refined,
    digits: int,
    fixed_y: bool,
) -> Iterator[tuple[_Solved, _Solved]]:
    """Yield the point solved twice, each time finer than the last, until the caller is content."""
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
