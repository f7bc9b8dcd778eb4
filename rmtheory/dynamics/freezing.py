r"""Where the network freezes as N -> infinity.

Below the freezing point the dynamics never ends for N -> infinity: a fraction
:math:`f_\infty > 0` of the neurons flips in every sweep. Above it, f(t) falls to 0.
The coupling at which the stationary state flips at the rate f
(:mod:`rmtheory.dynamics.stationary_state`) is

.. math:: x(f) = x_{dyn} - k \sqrt f + a f + b f^{3/2} + O(f^2), \qquad k = 2\rho(p)/\sqrt p
    \quad\text{for one layer},

where the overshoot :math:`\rho` is known exactly. a and b are fitted; for chains k and a are, and b
is left out. The freezing point is the fit at f = 0. (One layer without b: from f = 0.15 on the fit
is rejected, and from 0.08 on :math:`J_{dyn}` comes out 0.001 too small.)

**The bracket.** Whether activity lives or dies is measured at both ends with random numbers of
their own; an end without a clear verdict, two errors, moves outwards. Let a field that changes as
if neurons flipped at the rate f drive the site, whose states flip at the rate R f
(:func:`rmtheory.dynamics.stationary_state.sustained`): such activity grows if R > 1 and dies out if
R < 1.

- One layer: log R of the limit f -> 0 itself, a relay that sees its path at all times, on a grid of
  f = 0.01; what this grid shifts log R by is part of its error. The limit is the same for all p.
- Chains, whose estimate has the larger error: f(t) from random starts. It falls as 1/t at the
  freezing point, faster above it, so that a neuron flips a finite number of times, and settles
  below it: the sign of :math:`d\log(t f)/d\log t`, between sweeps 32 and 256, is the verdict. At
  the upper end the stationary rate is then below the rate left there; that it is 0 is the
  extrapolation. The lower end starts where a rate of 0.004 is stationary.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.base.statistics import Measurement, weighted_fit
from rmtheory.dynamics.averages import mean_field, update_probability
from rmtheory.dynamics.stationary_state import Stationary, overshoot, stationary, sustained

Floats = NDArray[np.float64]

#: Flip rates at which the coupling is solved for: one layer, and chains.
_RATES_OF_ONE = (0.15, 0.08, 0.04, 0.02, 0.01)
_RATES = (0.03, 0.015, 0.008, 0.004)

#: Couplings are searched up to this one.
_STRONGEST = 4.0

#: Errors that separate the ends of a bracket from the estimate, at least and at most.
_WIDTH, _WIDEST = 2, 8

#: Errors by which log R is told from 0 at an end.
_CLEAR = 2.0

#: Grid of the limit f -> 0, and by how much it may shift log R: J_dyn shifts by -0.03(2) f
#: (docs: Theory of the dynamics), log R by 1.2 as much.
_GRID = 0.01
_GRID_SHIFT = 0.06 * _GRID

#: Sweeps and copies by which a chain is seen to settle or to freeze.
_SWEEPS, _COPIES = 256, 80_000

#: J_D above this is more than the steps of the fields at the rates solved for.
_HYSTERESIS = 0.1

#: Correlations left after the longest memory by which the flips are those of single neurons that
#: return at once: no state of chaos is extrapolated from there. Chosen after seeing 0.07 for two
#: layers and 0.17 and more for three, J_D = 0, where they flicker (docs: Theory of the dynamics).
_FLICKER = 0.1


class Line(ABC):
    """A line in the space of couplings along which the network freezes; x is where on it."""

    #: Which coupling x is: ``jd`` or ``lam``.
    control: str
    layers: int
    #: Flip rates at which x is solved for, falling; iterations averaged at each.
    rates: tuple[float, ...]
    iterations: int
    #: Powers of f that are fitted besides the root.
    powers: tuple[float, ...] = (1.0,)
    #: Whether the relay sees its path at all times.
    continuous = False
    #: The stationary rate at which the search for the lower end starts.
    lower_rate = 0.0

    @abstractmethod
    def couplings(self, x: float) -> tuple[float, float, float]:
        """Return (J_D, lambda_L, lambda_R) at x."""

    @abstractmethod
    def slope(self, p: float) -> float | None:
        r"""Return k of :math:`x_{dyn} - k\sqrt f`; None if it is to be fitted."""

    @abstractmethod
    def first_guess(self, p: float, seed: int) -> float:
        """Return an x at which neurons flip at about the largest of the rates."""

    @abstractmethod
    def growth(self, x: float, p: float, seed: np.random.SeedSequence, work: int) -> Estimate:
        """Measure whether activity grows (> 0) or dies out (< 0) at x, by `work` repetitions."""

    def remark(self, x: float) -> str:
        """Return what a freezing point at x does not say; empty if it says all."""
        return ""

    def next_guess(self, x: float, flips: float) -> float:
        """Return x at half the rate: k (1 - 2^(-1/2)) sqrt(f) farther, k near 1.2."""
        return x + 0.35 * math.sqrt(flips)


class OneLayer(Line):
    """One layer, whose J_D varies: k is known."""

    control, layers, iterations = "jd", 1, 20
    rates: tuple[float, ...] = _RATES_OF_ONE
    powers: tuple[float, ...] = (1.0, 1.5)

    def couplings(self, x: float) -> tuple[float, float, float]:
        """Return J_D alone."""
        return x, 0.0, 0.0

    def slope(self, p: float) -> float | None:
        """Return the slope of the overshoot."""
        return overshoot_slope(p)

    def first_guess(self, p: float, seed: int) -> float:
        """Return what the law says with a freezing point near 0.81."""
        return 0.81 - overshoot_slope(p) * math.sqrt(self.rates[0])

    def growth(self, x: float, p: float, seed: np.random.SeedSequence, work: int) -> Estimate:
        """Measure log R of the limit f -> 0."""
        growth = sustained(_GRID, self.couplings(x), seed=seed, repetitions=work, continuous=True)
        error = math.hypot(float(growth.error), _GRID_SHIFT)
        return Estimate(growth.value, error, growth.tier, growth.method)


class RelayAtAllTimes(OneLayer):
    """The limit f -> 0 of one layer itself: no overshoot, so no square root."""

    # Coarser grids would need the next power.
    rates, powers, continuous = _RATES_OF_ONE[2:], (1.0,), True

    def slope(self, p: float) -> float | None:
        """Return 0."""
        return 0.0

    def first_guess(self, p: float, seed: int) -> float:
        """Return a number near the freezing point."""
        return 0.81

    def next_guess(self, x: float, flips: float) -> float:
        """Return the same x: it hardly depends on the spacing of the grid."""
        return x


@dataclass(frozen=True)
class ChainLine(Line):
    """Several layers, of which one of J_D and lambda is fixed and the other one varies."""

    layers: int
    control: str
    fixed: float

    rates = _RATES
    lower_rate = _RATES[-1]
    #: The extrapolation of chains has the larger error in any case.
    iterations = 6

    def couplings(self, x: float) -> tuple[float, float, float]:
        """Return x in the place of the coupling that varies."""
        jd, lam = (x, self.fixed) if self.control == "jd" else (self.fixed, x)
        return jd, lam, lam

    def slope(self, p: float) -> float | None:
        """Return None: a flip changes the fields of its neighbours, and no law is known."""
        return None

    def first_guess(self, p: float, seed: int) -> float:
        """Bisect the flip rate after sixty sweeps; raise if it is large at all couplings."""

        def flips(x: float) -> float:
            jd, left, right = self.couplings(x)
            chain = Chain(self.layers, jd, lam_left=left, lam_right=right)
            rates = mean_field(chain, 60, p=p, trajectories=2000, seed=seed).flip_rate.value
            return float(rates[-10:].mean())

        active, silent, wanted = 0.0, _STRONGEST, 1.5 * self.rates[0]
        rate = flips(silent)
        if rate >= wanted:
            why = " (cycles of two sweeps; an update probability below 1 ends them)"
            raise NotConvergedError(
                f"{self.layers} layers with update probability {p:g} do not freeze at couplings "
                f"up to {_STRONGEST:g}: there a neuron still flips with probability {rate:.3f} per "
                f"sweep" + (why if p == 1 else "")
            )
        for _ in range(6):
            middle = (active + silent) / 2
            active, silent = (active, middle) if flips(middle) < wanted else (middle, silent)
        return silent

    def growth(self, x: float, p: float, seed: np.random.SeedSequence, work: int) -> Estimate:
        """Measure d log(t f)/d log t from random starts, over a factor of four in time."""
        jd, left, right = self.couplings(x)
        chain = Chain(self.layers, jd, lam_left=left, lam_right=right)
        averages = mean_field(
            chain, _SWEEPS, p=p, trajectories=_COPIES, seed=int(seed.generate_state(1)[0])
        )
        flips, first = averages.flip_rate, _SWEEPS // 8
        windows = (slice(first, 2 * first), slice(4 * first, 8 * first))
        # Sweeps of a batch are not independent: the error of their mean is the mean of the errors.
        rates, errors = (
            [float(part[one].mean()) for one in windows] for part in (flips.value, flips.error)
        )
        text = f"d log(t f)/d log t of sweeps {first} to {_SWEEPS} from random starts"
        if rates[0] == 0:
            # Frozen before: f has fallen below that of one copy since the first sweep.
            bound = 1 + math.log(errors[0] / float(flips.value[0])) / math.log(first)
            return Estimate(bound, 0.0, Tier.ESTIMATED, f"{text}, at most: no flip in any of them")
        method = f"{text}, f = {rates[1]:.2g} at the end"
        times = averages.exponent_times
        if 2 * first in times:
            # Batch by batch; the two share a window with opposite signs, which is left out here.
            some = [times.index(first), times.index(2 * first)]
            value = 1 - float(averages.exponents.value[some].mean())
            error = math.hypot(*averages.exponents.error[some]) / 2
        else:
            # Few flips, none in some batches: the logarithm up to the upper ends of the errors.
            late = max(rates[1], errors[1])
            value = 1 + math.log(late / rates[0]) / math.log(4)
            ends = math.log1p(errors[0] / rates[0]), math.log((rates[1] + errors[1]) / late)
            error = math.hypot(*ends) / math.log(4)
        return Estimate(value, error, Tier.ESTIMATED, method)

    def remark(self, x: float) -> str:
        """Say that neurons without hysteresis flicker."""
        jd = self.couplings(x)[0]
        if jd > _HYSTERESIS:
            return ""
        if jd > 0:
            return f"single neurons flicker until f falls below J_D^2 = {jd * jd:.1g}"
        return "chaos ends here; single neurons, which have no hysteresis at J_D = 0, flicker on"


@dataclass(frozen=True)
class FreezingPoint:
    """The coupling at which the network freezes, in a bracket with opposite verdicts.

    Parameters
    ----------
    control : str
        Which coupling: ``jd`` or ``lam``.
    low, high : float
        The network stays active at `low` and freezes at `high`, as measured there.
    point : Estimate
        The estimate between them.
    sustained_low, sustained_high : Estimate
        Growth of activity at the two ends: positive where it sustains itself, negative where it
        dies out; the method says what was measured.
    rates, couplings : tuple
        The stationary states behind the estimate: flip rates, and the coupling of each.
    remark : str
        What freezing does not mean here; empty if nothing moves beyond this point.
    """

    control: str
    low: float
    high: float
    point: Estimate
    sustained_low: Estimate
    sustained_high: Estimate
    rates: tuple[float, ...]
    couplings: tuple[Estimate, ...]
    remark: str = ""

    @property
    def ends(self) -> tuple[Estimate, Estimate]:
        """Both ends; they are known to half a unit of their last digit."""
        half = _unit(self.point) / 2
        return (
            Estimate(self.low, half, Tier.ESTIMATED, "stays active, see sustained_low"),
            Estimate(self.high, half, Tier.ESTIMATED, "freezes, see sustained_high"),
        )


def _unit(point: Estimate) -> float:
    """Return the unit to which ends are rounded: a tenth of the error, or less."""
    return float(10.0 ** (math.floor(math.log10(float(point.error))) - 1))


def freezing_point(
    layers: int = 1,
    *,
    jd: object = None,
    lam: object = None,
    p: object = 1.0,
    seed: int = 0,
    repetitions: int = 4,
    continuous: bool = False,
) -> FreezingPoint:
    """Return where the network freezes, in J_D or in lambda, whichever is not given.

    Parameters
    ----------
    layers : int
        Length of the chain. One layer has only J_D to vary.
    jd, lam : real, optional
        The coupling that stays fixed; the other one is solved for.
    p : real
        Probability that a neuron is updated in a sweep.
    seed : int
        The same seed gives the same numbers.
    repetitions : int
        Independent solutions at every flip rate; the error falls as their square root.
    continuous : bool
        One layer, p = 1: solve the limit f -> 0 itself, a relay that sees its path at all times, in
        place of the law of the overshoot. An independent route to the same coupling.

    Raises
    ------
    NotConvergedError
        If the network does not freeze at any coupling, saying at which rate its neurons flip; if
        single neurons flicker at the rates solved for; if an end has no clear verdict.
    """
    line = _line(checks.integer("layers", layers, 1, 8), jd, lam, continuous)
    rate = update_probability(p)
    if continuous and rate < 1:
        raise InvalidInputError("continuous", "given", "absent for an update probability below 1")
    checks.integer("repetitions", repetitions, 2)
    sequence = np.random.SeedSequence(checks.integer("seed", seed, 0))
    guess = line.first_guess(rate, seed)
    states: list[Stationary] = []
    for flips, child in zip(line.rates, sequence.spawn(len(line.rates)), strict=True):
        state = stationary(
            flips,
            line.couplings,
            guess,
            layers=line.layers,
            p=rate,
            seed=child,
            repetitions=repetitions,
            iterations=line.iterations,
            continuous=line.continuous,
        )
        states.append(state)
        guess = line.next_guess(float(state.coupling.value), flips)
    left = max(states, key=lambda state: state.undecayed)
    if left.undecayed > _FLICKER:
        raise NotConvergedError(
            f"no freezing point is extrapolated for {line.layers} layers: at "
            f"{line.control} = {float(left.coupling.value):.2f} with the flip rate "
            f"{left.flip_rate:g} the correlation is still {left.undecayed:.2f} after 16/f sweeps; "
            f"single neurons flicker there and the others do not move"
        )
    point = _extrapolated(line, states, line.slope(rate))
    remark = line.remark(float(point.value))
    method = f"{point.method}; {remark}" if remark else point.method
    if left.undecayed:
        method += f"; some correlations had not decayed, up to {left.undecayed:.2g} was left"
    point = Estimate(point.value, point.error, point.tier, method)
    start = _extrapolated(line, states, line.slope(rate), line.lower_rate)
    numbers = np.random.SeedSequence([seed, 1])
    low, active = _end(line, start, -1, rate, numbers, repetitions, _unit(point))
    high, frozen = _end(line, point, 1, rate, numbers, repetitions, _unit(point))
    return FreezingPoint(
        line.control,
        low,
        high,
        point,
        active,
        frozen,
        line.rates,
        tuple(state.coupling for state in states),
        remark,
    )


def _end(
    line: Line,
    start: Estimate,
    side: int,
    p: float,
    numbers: np.random.SeedSequence,
    repetitions: int,
    unit: float,
) -> tuple[float, Estimate]:
    """Return the nearest end, in steps of the error from two errors on, that has a verdict."""
    tried = []
    for width in range(_WIDTH, _WIDEST + 1):
        x = float(start.value) + side * width * float(start.error)
        x = round(side * math.ceil(side * x / unit) * unit, 12)
        (child,) = numbers.spawn(1)
        growth = line.growth(x, p, child, repetitions)
        if -side * growth.value > _CLEAR * growth.error:
            return x, growth
        tried.append(f"{growth} at {x:g}")
    where = "above" if side > 0 else "below"
    raise NotConvergedError(f"no verdict {where} {start}: growth of activity " + ", ".join(tried))


def _line(layers: int, jd: object, lam: object, continuous: bool) -> Line:
    if layers == 1:
        if lam is not None:
            raise InvalidInputError("lam", lam, "absent for one layer, which has no neighbours")
        if jd is not None:
            raise InvalidInputError("jd", jd, "absent for one layer, where it is solved for")
        return RelayAtAllTimes() if continuous else OneLayer()
    if continuous:
        raise InvalidInputError("continuous", "given", "absent for several layers")
    if (jd is None) == (lam is None):
        raise InvalidInputError(
            "jd", jd, "given, or lam, but not both: the other one is solved for"
        )
    if lam is None:
        return ChainLine(layers, "lam", float(checks.exact_real("jd", jd)))
    return ChainLine(layers, "jd", float(checks.exact_real("lam", lam)))


def _extrapolated(
    line: Line, states: Sequence[Stationary], slope: float | None, rate: float = 0.0
) -> Estimate:
    """Fit x(f) = x_dyn - k sqrt(f) + a f + ...; return x at `rate`. A known k is not fitted.

    The error has that of the fit, larger where the states scatter more than their errors say, and
    half of its change when the largest rate is left out.
    """
    couplings = [state.coupling for state in states]
    errors = pooled_errors(line.rates, couplings, [state.systematic for state in states])

    def row(f: Floats) -> list[Floats]:
        columns = [np.ones_like(f), *(f**power for power in line.powers)]
        return columns if slope is not None else [*columns, -np.sqrt(f)]

    def fit(first: int) -> Measurement:
        f = np.array(line.rates[first:])
        x = np.array([float(one.value) for one in couplings[first:]])
        if slope is not None:
            x = x + slope * np.sqrt(f)
        fitted = weighted_fit(row(f), x, errors[first:])
        there = fitted.at([float(column[0]) for column in row(np.array([rate]))])
        known = slope * math.sqrt(rate) if slope is not None else 0.0
        return Measurement(there.value - known, fitted.scale * there.error)

    whole = fit(0)
    shift = fit(1).value - whole.value
    terms = " + ".join(f"a f^{power:g}" if power != 1 else "a f" for power in line.powers)
    method = f"stationary flip rates extrapolated to 0, x = x_dyn - k sqrt(f) + {terms}"
    method = method.replace("a f^1.5", "b f^1.5")
    return Estimate(whole.value, math.hypot(whole.error, shift / 2), Tier.ESTIMATED, method)


def pooled_errors(
    rates: Sequence[float], couplings: Sequence[Estimate], systematic: Sequence[float] | None = None
) -> Floats:
    r"""Return errors of stationary states that do not scatter as those of a few repetitions do.

    At equal work the statistical part is :math:`\propto f^{-1/2}`, since the number of flips seen
    is proportional to f; its coefficient is the mean over all rates. What of an error is
    `systematic` stays with its state.
    """
    f = np.array(rates)
    whole = np.array([float(one.error) for one in couplings])
    own = np.zeros_like(f) if systematic is None else np.array(systematic)
    statistical = np.maximum(whole**2 - own**2, 0)
    return np.asarray(np.sqrt(np.mean(statistical * f) / f + own**2))


def overshoot_slope(p: float = 1.0) -> float:
    r"""Return k of :math:`J_D = J_{dyn} - k\sqrt f + O(f)`, one layer: :math:`2\rho(p)/\sqrt p`."""
    return 2 * overshoot(p) / math.sqrt(p)


@dataclass(frozen=True, eq=False)
class FlipRateCurve:
    r"""The stationary flip rate of one layer as a function of J_D, and its zero J_dyn.

    .. math:: J_D = J_{dyn} - k\sqrt f + a f + b f^{3/2}, \qquad k = 2\rho(p)/\sqrt p .

    Parameters
    ----------
    p : float
        Update probability.
    rates, couplings : tuple
        Stationary states that were solved for.
    coefficients : array
        J_dyn, a, b.
    covariance : array, (3, 3)
        Their covariance.

    Examples
    --------
    >>> import numpy as np
    >>> curve = FlipRateCurve(1.0, (0.1,), (), np.array([0.814, 0, 0]), 1e-6 * np.eye(3))
    >>> print(curve.rate(0.7))
    0.0096 ± 2e-4
    """

    p: float
    rates: tuple[float, ...]
    couplings: tuple[Estimate, ...]
    coefficients: Floats
    covariance: Floats

    @property
    def freezing(self) -> Estimate:
        """J_dyn."""
        error = math.sqrt(float(self.covariance[0, 0]))
        return Estimate(float(self.coefficients[0]), error, Tier.ESTIMATED, self._method)

    @property
    def _method(self) -> str:
        return f"fit to {len(self.rates)} stationary states, square-root term known"

    def coupling(self, rate: float) -> Estimate:
        """Return J_D at which neurons flip at the rate f, from 0 to the largest rate solved for."""
        if not 0 <= rate <= max(self.rates):
            raise InvalidInputError("rate", rate, f"from 0 to {max(self.rates):g}")
        row = _row(rate)
        value = float(row @ self.coefficients) - overshoot_slope(self.p) * math.sqrt(rate)
        error = math.sqrt(float(row @ self.covariance @ row))
        return Estimate(value, error, Tier.ESTIMATED, self._method)

    def rate(self, jd: float) -> Estimate:
        """Return f_inf at J_D; 0, with the error of J_dyn turned into one of f, above J_dyn."""
        largest = max(self.rates)
        least = self.coupling(largest).value
        if not math.isfinite(jd) or jd < least:
            raise InvalidInputError("jd", jd, f"at least {least:.3f}, the range of the curve")
        if jd >= self.freezing.value:
            # Within the error the network may still be active.
            inside = max(self.freezing.value + 2 * self.freezing.error - jd, 0.0)
            error = (inside / overshoot_slope(self.p)) ** 2
            return Estimate(0.0, error + 1e-12, Tier.ESTIMATED, self._method)
        slope = overshoot_slope(self.p)
        root = optimize.brentq(
            lambda x: float(_row(x * x) @ self.coefficients) - slope * x - jd,
            0.0,
            math.sqrt(largest),
        )
        # dJ/d sqrt(f) = -k up to O(sqrt f); the square adds where f itself is within the error.
        shift = float(self.coupling(min(root * root, largest)).error) / slope
        error = 2 * root * shift + shift * shift
        return Estimate(root * root, error, Tier.ESTIMATED, self._method)


#: Flip rates between which a stationary state is solved for at one coupling.
_LEAST_RATE, _MOST_RATE = 0.002, 0.3


def stationary_rate(
    chain: Chain,
    *,
    p: object = 1.0,
    seed: int = 0,
    repetitions: int = 6,
    iterations: int = 20,
) -> Estimate:
    r"""Return f_inf at one coupling, by the stationary state there.

    The coupling is the well-conditioned side, :math:`x(f) = x_{dyn} - k\sqrt f + ...`, so
    :math:`\sqrt f` is corrected by Newton's method in two steps:
    :math:`\sqrt{f'} = \sqrt f + (x(f) - J_D)/k`. k is that of the overshoot for one layer; for
    chains it is the difference quotient of the two states solved for. An error e of the coupling
    is one of :math:`2 e \sqrt f/k` of f. Some 25 CPU-seconds for 1 % of f = 0.02.

    Parameters
    ----------
    chain : Chain
        The model, a finite number of layers.
    p : real
        Probability that a neuron is updated in a sweep.
    seed : int
        The same seed gives the same numbers.
    repetitions, iterations : int
        Independent solutions, and iterations averaged in each.

    Raises
    ------
    NotConvergedError
        If the flip rate is below 0.002, where the network may freeze, or above 0.3, where
        :func:`rmtheory.dynamics.averages.mean_field` settles within a few sweeps.

    Examples
    --------
    >>> print(stationary_rate(Chain(1, 0.3), repetitions=2, iterations=1).digits > 1)
    True
    """
    rate = update_probability(p)
    start = mean_field(chain, 60, p=rate, trajectories=4000, seed=seed).flip_rate.value[-20:]
    first = float(start.mean())
    if not _LEAST_RATE < first < _MOST_RATE:
        where = "below" if first <= _LEAST_RATE else "above"
        limit = _LEAST_RATE if first <= _LEAST_RATE else _MOST_RATE
        raise NotConvergedError(
            f"{chain} flips a fraction {first:.2g} of its neurons after 60 sweeps, {where} "
            f"{limit:g}: no stationary state is solved for there"
        )
    sequence = np.random.SeedSequence(checks.integer("seed", seed, 0))
    target = float(chain.jd)

    def state(root: float, child: np.random.SeedSequence, many: tuple[int, int]) -> Estimate:
        return stationary(
            root * root,
            lambda x: (x, float(chain.lam_left), float(chain.lam_right)),
            target,
            layers=chain.finite_layers,
            p=rate,
            seed=child,
            repetitions=many[0],
            iterations=many[1],
        ).coupling

    slope = overshoot_slope(rate)
    one, two = sequence.spawn(2)
    # Away from the answer, so that the two states give a slope.
    root = 1.15 * math.sqrt(first)
    rough = state(root, one, (2, max(2, iterations // 4)))
    corrected = root + (float(rough.value) - target) / slope
    there = min(max(corrected, 0.6 * root), 1.6 * root)
    fine = state(there, two, (repetitions, iterations))
    spread = 0.0
    if chain.finite_layers > 1 and abs(there - root) > 0.02 * root:
        quotient = (float(rough.value) - float(fine.value)) / (there - root)
        its = math.hypot(float(rough.error), float(fine.error)) / abs(there - root)
        # A quotient that its error does not determine says less than the law of one layer.
        if its < 0.5 * quotient:
            slope, spread = quotient, its / quotient
    step = (float(fine.value) - target) / slope
    root = there + step
    shift = math.hypot(float(fine.error) / slope, step * max(spread, 0.1))
    method = f"{fine.method}, at one coupling"
    return Estimate(root * root, 2 * root * shift + shift * shift, Tier.ESTIMATED, method)


def _row(rate: float) -> Floats:
    return np.array([1.0, rate, rate**1.5])


def flip_rate_curve(
    p: object = 1.0, *, seed: int = 0, repetitions: int = 3, iterations: int = 12
) -> FlipRateCurve:
    """Solve for the stationary states of one layer at several rates and fit f_inf(J_D).

    Some 40 CPU-seconds; the error of J_dyn is then near 0.001.
    """
    rate = update_probability(p)
    rates = OneLayer.rates
    sequence = np.random.SeedSequence(checks.integer("seed", seed, 0))
    slope = overshoot_slope(rate)
    couplings = [
        stationary(
            f,
            OneLayer().couplings,
            0.81 - slope * math.sqrt(f),
            p=rate,
            seed=child,
            repetitions=repetitions,
            iterations=iterations,
        ).coupling
        for f, child in zip(rates, sequence.spawn(len(rates)), strict=True)
    ]
    return fitted_curve(rates, couplings, rate)


def fitted_curve(
    rates: Sequence[float],
    couplings: Sequence[Estimate],
    p: float = 1.0,
    limit: Estimate | None = None,
) -> FlipRateCurve:
    """Fit f_inf(J_D) to stationary states of one layer that were solved for.

    Parameters
    ----------
    rates, couplings : sequence
        Flip rates, and the J_D at which neurons flip at each.
    p : float
        Update probability.
    limit : Estimate, optional
        J_dyn by an independent route, one more point of the fit, at f = 0.

    Examples
    --------
    >>> rates = (0.15, 0.08, 0.04, 0.02)
    >>> couplings = [
    ...     Estimate(0.814 - 1.1652 * f**0.5, 0.001, Tier.ESTIMATED, "given") for f in rates
    ... ]
    >>> print(fitted_curve(rates, couplings).freezing)
    0.814 ± 3e-3
    """
    shifted = [
        float(one.value) + overshoot_slope(p) * math.sqrt(f)
        for f, one in zip(rates, couplings, strict=True)
    ]
    rows = [_row(rate) for rate in rates]
    errors = pooled_errors(rates, couplings).tolist()
    if limit is not None:
        rows.append(_row(0.0))
        shifted.append(float(limit.value))
        errors.append(float(limit.error))
    fit = weighted_fit(np.stack(rows, axis=1), np.array(shifted), np.array(errors))
    covariance = fit.scale**2 * fit.covariance
    return FlipRateCurve(p, tuple(rates), tuple(couplings), fit.coefficients, covariance)
