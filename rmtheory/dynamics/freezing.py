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

Let a field that changes as if neurons flipped at the rate f drive the site, and let its states flip
at the rate R f. Activity sustains itself if R > 1 and dies out if R < 1. Near the freezing point

.. math:: \log R(x) = \kappa\, (x_{dyn} - x), \qquad
    \kappa = -\partial \log f / \partial x \text{ at fixed fields},

with :math:`\kappa` measured on the paths of the smallest f. The result is given as a bracket of two
errors on either side of the estimate, with log R at its ends. These have the sign and the size of
the distance to the freezing point; they come from the same solutions and are not a second method.
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
from rmtheory.dynamics.stationary_state import Stationary, overshoot, stationary

Floats = NDArray[np.float64]

#: Flip rates at which the coupling is solved for: one layer, and chains.
_RATES_OF_ONE = (0.15, 0.08, 0.04, 0.02, 0.01)
_RATES = (0.03, 0.015, 0.008, 0.004)

#: Couplings are searched up to this one.
_STRONGEST = 4.0

#: Errors that separate the ends of a bracket from the estimate.
_WIDTH = 2.0


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

    @abstractmethod
    def couplings(self, x: float) -> tuple[float, float, float]:
        """Return (J_D, lambda_L, lambda_R) at x."""

    @abstractmethod
    def slope(self, p: float) -> float | None:
        r"""Return k of :math:`x_{dyn} - k\sqrt f`; None if it is to be fitted."""

    @abstractmethod
    def first_guess(self, p: float, seed: int) -> float:
        """Return an x at which neurons flip at about the largest of the rates."""

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

        active, frozen, wanted = 0.0, _STRONGEST, 1.5 * self.rates[0]
        rate = flips(frozen)
        if rate >= wanted:
            why = " (cycles of two sweeps; an update probability below 1 ends them)"
            raise NotConvergedError(
                f"{self.layers} layers with update probability {p:g} do not freeze at couplings "
                f"up to {_STRONGEST:g}: there a neuron still flips with probability {rate:.3f} per "
                f"sweep" + (why if p == 1 else "")
            )
        for _ in range(6):
            middle = (active + frozen) / 2
            active, frozen = (active, middle) if flips(middle) < wanted else (middle, frozen)
        return frozen


@dataclass(frozen=True)
class FreezingPoint:
    """The coupling at which the network freezes, as a bracket with log R of opposite signs.

    Parameters
    ----------
    control : str
        Which coupling: ``jd`` or ``lam``.
    low, high : float
        The network stays active at `low` and freezes at `high`.
    point : Estimate
        The estimate between them.
    sustained_low, sustained_high : Estimate
        log R at the two ends: positive where activity sustains itself.
    rates, couplings : tuple
        The stationary states behind it: flip rates, and the coupling of each.
    """

    control: str
    low: float
    high: float
    point: Estimate
    sustained_low: Estimate
    sustained_high: Estimate
    rates: tuple[float, ...]
    couplings: tuple[Estimate, ...]


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
        If the network does not freeze at any coupling, saying at which rate its neurons flip.
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
    point = _extrapolated(line, [state.coupling for state in states], line.slope(rate))
    left = max(state.undecayed for state in states)
    if left:
        method = f"{point.method}; some correlations had not decayed, up to {left:.2g} was left"
        point = Estimate(point.value, point.error, point.tier, method)
    low, high = (point.value + side * _WIDTH * point.error for side in (-1, 1))
    response = states[-1].response

    def sustained(x: float) -> Estimate:
        return Estimate(
            response * (x - point.value),
            abs(response) * point.error,
            Tier.ESTIMATED,
            "rate of flips over the rate of their field, continuous time",
        )

    return FreezingPoint(
        line.control,
        low,
        high,
        point,
        sustained(low),
        sustained(high),
        line.rates,
        tuple(state.coupling for state in states),
    )


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


def _extrapolated(line: Line, couplings: list[Estimate], slope: float | None) -> Estimate:
    """Fit x(f) = x_dyn - k sqrt(f) + a f + ...; a known k is not fitted.

    The error has that of the fit, larger where the states scatter more than their errors say, and
    half of its change when the largest rate is left out.
    """

    def fit(first: int) -> Measurement:
        f = np.array(line.rates[first:])
        x = np.array([float(one.value) for one in couplings[first:]])
        columns = [np.ones_like(f), *(f**power for power in line.powers)]
        if slope is None:
            columns.append(-np.sqrt(f))
        else:
            x = x + slope * np.sqrt(f)
        found = weighted_fit(columns, x, pooled_errors(line.rates, couplings)[first:])
        return Measurement(float(found.coefficients[0]), found.scale * float(found.errors[0]))

    whole = fit(0)
    shift = fit(1).value - whole.value
    terms = " + ".join(f"a f^{power:g}" if power != 1 else "a f" for power in line.powers)
    method = f"stationary flip rates extrapolated to 0, x = x_dyn - k sqrt(f) + {terms}"
    method = method.replace("a f^1.5", "b f^1.5")
    return Estimate(whole.value, math.hypot(whole.error, shift / 2), Tier.ESTIMATED, method)


def pooled_errors(rates: Sequence[float], couplings: Sequence[Estimate]) -> Floats:
    r"""Return errors of stationary states that do not scatter as those of a few repetitions do.

    At equal work :math:`\propto f^{-1/2}`, since the number of flips seen is proportional to f; the
    coefficient is the mean over all rates.
    """
    f = np.array(rates)
    raw = np.array([float(one.error) for one in couplings])
    return np.asarray(np.sqrt(np.mean(raw**2 * f) / f))


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
    found = weighted_fit(np.stack(rows, axis=1), np.array(shifted), np.array(errors))
    covariance = found.scale**2 * found.covariance
    return FlipRateCurve(p, tuple(rates), tuple(couplings), found.coefficients, covariance)
