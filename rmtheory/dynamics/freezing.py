r"""Where the network freezes as N -> infinity, and when a network of N neurons stops by chance.

Below the freezing point the dynamics never ends for N -> infinity: a fraction
:math:`f_\infty > 0` of the neurons flips in every sweep. Above it, f(t) falls to 0.
The coupling at which the stationary state flips at the rate f
(:mod:`rmtheory.dynamics.stationary_state`) is

.. math:: x(f) = x_{dyn} - k \sqrt f + a f + O(f^{3/2}), \qquad k = 2\rho(p)/\sqrt p
    \quad\text{for one layer},

where the overshoot :math:`\rho` is known exactly. For chains k is fitted. The freezing point is
the fit at f = 0.

Let a field that changes as if neurons flipped at the rate f drive the site, and let its states flip
at the rate R f. Activity sustains itself if R > 1 and dies out if R < 1. Near the freezing point

.. math:: \log R(x) = \kappa\, (x_{dyn} - x), \qquad
    \kappa = -\partial \log f / \partial x \text{ at fixed fields},

with :math:`\kappa` measured on the paths of the smallest f. The result is given as a bracket of two
errors on either side of the estimate, with log R at its ends. These have the sign and the size of
the distance to the freezing point; they come from the same solutions and are no second method.

**Finite N.** A network is at a fixed point as soon as one sweep flips no neuron. Below the freezing
point this happens by chance when few neurons flip per sweep: :math:`n = N f_\infty` of order 10. A
neuron flips where its field, which moves by :math:`2\sqrt{n(t)/N}` per sweep, meets its barrier.
With the distance to the barrier measured in units of :math:`2/\sqrt N` all neurons near a barrier
are walkers on the half-line y > 0, with steps of the same variance n(t) for all; those
that come to y < 0 are the n(t+1) neurons that flip, and leave. Since c'(0) = -2f, their density has
the slope 2 far from the barrier, :math:`2(y + b)`, and a stationary rate n needs
:math:`b = \rho\sqrt n`. Nothing else is left of N and :math:`J_D`: the chance to stop in a sweep is
a universal function :math:`w(n)`, and

.. math:: \mathrm{Prob}(\text{fixed point within } T) = 1 - e^{-\sum_{t \le T} w(N f(t))}, \qquad
    J_{50}(N) = J_{dyn} - 2\rho\sqrt{n_{50}(T)/N} + O(1/N), \quad T\, w(n_{50}) = \ln 2 .

:math:`w(n) \simeq e^{-\alpha - \beta n}`. A Poisson number of flips would give :math:`\beta = 1`;
:math:`\beta` is near 0.14 because n(t) sets the size of the next steps and with it n(t+1).
Corrections to all this are of relative order :math:`N^{-1/2}`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.base.statistics import weighted_fit
from rmtheory.dynamics.averages import mean_field, update_probability
from rmtheory.dynamics.stationary_state import Family, Stationary, overshoot, stationary

Floats = NDArray[np.float64]

#: Flip rates at which the coupling is solved for: one layer, and chains.
_RATES_OF_ONE = (0.08, 0.04, 0.02, 0.01)
_RATES = (0.03, 0.015, 0.008, 0.004)

#: Iterations averaged at each; the extrapolation of chains has the larger error in any case.
_ITERATIONS_OF_ONE, _ITERATIONS = 20, 6

#: Couplings are searched up to this one.
_STRONGEST = 4.0

#: Errors that separate the ends of a bracket from the estimate.
_WIDTH = 2.0


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
    layers = checks.integer("layers", layers, 1, 8)
    rate = update_probability(p)
    checks.integer("repetitions", repetitions, 2)
    control, family = _family(layers, jd, lam)
    sequence = np.random.SeedSequence(checks.integer("seed", seed, 0))
    rates: tuple[float, ...] = _RATES_OF_ONE if layers == 1 else _RATES
    slope = overshoot_slope(rate) if layers == 1 else None
    if continuous:
        # No overshoot, no square root; the coarsest grid is not needed.
        rates, slope = _RATES_OF_ONE[1:], 0.0
    guess = 0.81 if continuous else _first_guess(layers, family, rate, seed)
    states: list[Stationary] = []
    for flips, child in zip(rates, sequence.spawn(len(rates)), strict=True):
        state = stationary(
            flips,
            family,
            guess,
            layers=layers,
            p=rate,
            seed=child,
            repetitions=repetitions,
            iterations=_ITERATIONS_OF_ONE if layers == 1 else _ITERATIONS,
            continuous=continuous,
        )
        states.append(state)
        guess = float(state.coupling.value)
        if not continuous:
            # The next rate is half of this one: k (1 - 2^(-1/2)) sqrt(f), k near 1.2.
            guess += 0.35 * math.sqrt(flips)
    point = _extrapolated(rates, [state.coupling for state in states], slope)
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
        control,
        low,
        high,
        point,
        sustained(low),
        sustained(high),
        rates,
        tuple(state.coupling for state in states),
    )


def _family(layers: int, jd: object, lam: object) -> tuple[str, Family]:
    if layers == 1:
        if lam is not None:
            raise InvalidInputError("lam", lam, "absent for one layer, which has no neighbours")
        if jd is not None:
            raise InvalidInputError("jd", jd, "absent for one layer, where it is solved for")
        return "jd", lambda x: (x, 0.0, 0.0)
    if (jd is None) == (lam is None):
        raise InvalidInputError(
            "jd", jd, "given, or lam, but not both: the other one is solved for"
        )
    if lam is None:
        self_coupling = float(checks.exact_real("jd", jd))
        return "lam", lambda x: (self_coupling, x, x)
    between = float(checks.exact_real("lam", lam))
    return "jd", lambda x: (x, between, between)


def _first_guess(layers: int, family: Family, p: float, seed: int) -> float:
    """Return a coupling at which neurons flip at about the largest of the rates."""
    if layers == 1:
        return 0.81 - overshoot_slope(p) * math.sqrt(_RATES_OF_ONE[0])

    def flips(x: float) -> float:
        jd, left, right = family(x)
        chain = Chain(layers, jd, lam_left=left, lam_right=right)
        rates = mean_field(chain, 60, p=p, trajectories=2000, seed=seed).flip_rate.value
        return float(rates[-10:].mean())

    active, frozen, wanted = 0.0, _STRONGEST, 1.5 * _RATES[0]
    rate = flips(frozen)
    if rate < wanted:
        for _ in range(6):
            middle = (active + frozen) / 2
            active, frozen = (active, middle) if flips(middle) < wanted else (middle, frozen)
        return frozen
    raise NotConvergedError(
        f"{layers} layers with update probability {p:g} do not freeze at couplings up to "
        f"{_STRONGEST:g}: there a neuron still flips with probability {rate:.3f} per sweep"
        + (" (cycles of two sweeps; an update probability below 1 ends them)" if p == 1 else "")
    )


def _extrapolated(
    rates: tuple[float, ...], couplings: list[Estimate], slope: float | None
) -> Estimate:
    """Fit x(f) = x_dyn - k sqrt(f) + a f; a known k is not fitted.

    The error has that of the fit and its change when the largest rate is left out.
    """

    def fit(first: int) -> tuple[float, float]:
        f = np.array(rates[first:])
        x = np.array([one.value for one in couplings[first:]])
        sigma = np.array([one.error for one in couplings[first:]])
        root = np.sqrt(f)
        if slope is None:
            fitted = weighted_fit([1, f, -root], x, sigma)
        else:
            fitted = weighted_fit([1, f], x + slope * root, sigma)
        return float(fitted.coefficients[0]), float(fitted.errors[0])

    value, error = fit(0)
    shift = fit(1)[0] - value
    method = "stationary flip rates extrapolated to 0, x = x_dyn - k sqrt(f) + a f"
    return Estimate(value, math.hypot(error, shift / 2), Tier.ESTIMATED, method)


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


def _row(rate: float) -> Floats:
    return np.array([1.0, rate, rate**1.5])


def flip_rate_curve(
    p: object = 1.0, *, seed: int = 0, repetitions: int = 3, iterations: int = 12
) -> FlipRateCurve:
    """Solve for the stationary states of one layer at several rates and fit f_inf(J_D).

    Some 40 CPU-seconds; the error of J_dyn is then near 0.001.
    """
    rate = update_probability(p)
    rates = (0.15, *_RATES_OF_ONE)
    sequence = np.random.SeedSequence(checks.integer("seed", seed, 0))
    slope = overshoot_slope(rate)
    couplings = [
        stationary(
            f,
            lambda x: (x, 0.0, 0.0),
            0.81 - slope * math.sqrt(f),
            p=rate,
            seed=child,
            repetitions=repetitions,
            iterations=iterations,
        ).coupling
        for f, child in zip(rates, sequence.spawn(len(rates)), strict=True)
    ]
    # Errors from few repetitions scatter: pool them, they grow as f^(-1/4) only.
    sigma = math.sqrt(np.mean([one.error**2 for one in couplings]))
    shifted = [x.value + slope * math.sqrt(f) for x, f in zip(couplings, rates, strict=True)]
    fit = weighted_fit(np.stack([_row(f) for f in rates], axis=1), shifted, sigma)
    return FlipRateCurve(rate, rates, tuple(couplings), fit.coefficients, fit.covariance)


#: Mean numbers of flips per sweep at which the chance to stop is measured.
#: Below 8 the logarithm of w falls faster than linearly.
_MEASURED_FLIPS = (10.0, 16.0, 22.0, 28.0)


@dataclass(frozen=True)
class StoppingLaw:
    r"""The chance that a chaotic network stops in a sweep, :math:`w(n) = e^{-\alpha-\beta n}`.

    Parameters
    ----------
    alpha, beta : Estimate
        The fit; n is :math:`N f_\infty`.
    covariance : float
        Of alpha and beta.

    Examples
    --------
    >>> alpha, beta = (Estimate(x, 0.01, Tier.ESTIMATED, "given") for x in (3.6, 0.12))
    >>> print(StoppingLaw(alpha, beta, 0.0).flips_at(1000))
    31 ± 3e0
    """

    alpha: Estimate
    beta: Estimate
    covariance: float

    def rate(self, n: float) -> Estimate:
        """Return w(n)."""
        value = math.exp(-float(self.alpha.value) - float(self.beta.value) * n)
        error = value * math.sqrt(self._variance(n))
        return Estimate(value, error, Tier.ESTIMATED, self.alpha.method)

    def _variance(self, n: float) -> float:
        square = float(self.alpha.error) ** 2 + (n * float(self.beta.error)) ** 2
        return max(square + 2 * n * self.covariance, 0.0)

    def flips_at(self, sweeps: float, probability: float = 0.5) -> Estimate:
        """Return n at which a network stops within `sweeps` with this probability."""
        logarithm = math.log(sweeps / -math.log1p(-probability))
        value = (logarithm - float(self.alpha.value)) / float(self.beta.value)
        error = math.sqrt(self._variance(value)) / float(self.beta.value)
        return Estimate(value, error, Tier.ESTIMATED, self.alpha.method)

    def probability(self, size: int, flip_rate: Floats) -> Estimate:
        """Return Prob(fixed point) of `size` neurons after sweeps of these rates f(t)."""
        checks.integer("size", size, 2)
        flips = size * np.asarray(flip_rate, dtype=np.float64)
        weights = np.exp(-float(self.alpha.value) - float(self.beta.value) * flips)
        hazard = float(weights.sum())
        # The mean number of flips that weighs in the sum.
        typical = float(weights @ flips) / hazard if hazard > 0 else 0.0
        error = hazard * math.exp(-hazard) * math.sqrt(self._variance(typical))
        return Estimate(-math.expm1(-hazard), error + 1e-12, Tier.ESTIMATED, self.alpha.method)


@cache
def stopping_law(p: float = 1.0, seed: int = 0, repetitions: int = 40) -> StoppingLaw:
    """Measure w(n) on the half-line of walkers and fit its exponential law; about a CPU-minute."""
    if p != 1:
        raise InvalidInputError("p", p, "1: masked networks are not covered by the law")
    generator = np.random.default_rng(checks.integer("seed", seed, 0))
    checks.integer("repetitions", repetitions, 4)
    logarithms = []
    for n in _MEASURED_FLIPS:
        runs = [stopping_time(n, _LONGEST_WALK, generator) for _ in range(repetitions)]
        stopped = sum(one for _, one in runs)
        logarithms.append(math.log(stopped / sum(t for t, _ in runs)))
    # R exponential times have a mean with the relative error R^(-1/2); nearly all walks stop.
    fit = weighted_fit([1, _MEASURED_FLIPS], logarithms, repetitions**-0.5)
    (alpha, beta), covariance = -fit.coefficients, fit.covariance
    method = f"walkers on the half-line, {len(_MEASURED_FLIPS)} x {repetitions} runs"

    def estimate(value: float, variance: float) -> Estimate:
        return Estimate(float(value), math.sqrt(float(variance)), Tier.ESTIMATED, method)

    return StoppingLaw(
        estimate(alpha, covariance[0, 0]), estimate(beta, covariance[1, 1]), float(covariance[0, 1])
    )


#: Runs that are still active after so many sweeps end.
_LONGEST_WALK = 4000

#: Depth of the half-line in units of the step sqrt(n): 6 * 2^4 steps, as far as 2000 sweeps see.
_SHELLS = 4
_FIRST_SHELL = 6.0


def stopping_time(n: float, most: int, generator: np.random.Generator) -> tuple[int, bool]:
    r"""Run the walkers on the half-line until a sweep without a flip, at most `most` sweeps.

    Walkers of density :math:`2(y + \rho\sqrt n)` on 0 < y < Y; beyond Y a reservoir of the same.
    Far walkers cannot reach 0 soon: they are kept in shells, each twice as far as the one before,
    and move when the variance they have gathered since their last step is a 25th of their
    distance squared. A shell then costs the same per sweep, however far it is.

    Returns
    -------
    tuple of int and bool
        The number of sweeps, and whether the last one flipped nothing.
    """
    step = math.sqrt(n)
    offset = overshoot() * step
    edges = np.array([0.0] + [_FIRST_SHELL * step * 2**k for k in range(1, _SHELLS + 1)])

    def fill(low: float, high: float) -> NDArray[np.float32]:
        total = (high - low) * (high + low + 2 * offset)
        u = generator.random(generator.poisson(total))
        return np.asarray(np.sqrt((offset + low) ** 2 + u * total) - offset, dtype=np.float32)

    shells = [fill(edges[k], edges[k + 1]) for k in range(_SHELLS)]
    due = (edges[:-1] / 5) ** 2
    variance = np.zeros(_SHELLS)
    flips = n
    for t in range(1, most + 1):
        variance += flips
        top = int(np.flatnonzero(variance >= due)[-1])
        if top == _SHELLS - 1:
            reach = edges[-1] + 5 * math.sqrt(variance[top])
            shells[top] = np.concatenate([shells[top], fill(edges[-1], reach)])
        for k in range(top + 1):
            moves = generator.standard_normal(len(shells[k]), dtype=np.float32)
            shells[k] = shells[k] + np.float32(math.sqrt(variance[k])) * moves
        variance[: top + 1] = 0
        flips = float(sum(np.count_nonzero(y < 0) for y in shells[: top + 1]))
        if flips == 0:
            return t, True
        walkers = np.concatenate(shells[: top + 1])
        walkers = walkers[walkers >= 0]
        if top == 0:
            shells[0] = walkers
            continue
        if top == _SHELLS - 1:
            walkers = walkers[walkers < edges[-1]]
        # Who has left for a shell that did not move now stays until that one moves.
        belongs = np.minimum(np.searchsorted(edges[1:], walkers, side="right"), top)
        shells[: top + 1] = [walkers[belongs == k] for k in range(top + 1)]
    return most, False


def half_point(size: int, sweeps: int, curve: FlipRateCurve, law: StoppingLaw) -> Estimate:
    r"""Return J_50(N): half of the networks stop within `sweeps`, :math:`N f_\infty = n_{50}`.

    It counts all sweeps as stationary ones and has corrections of relative order
    :math:`N^{-1/2}`; for N -> infinity it tends to J_dyn.

    Examples
    --------
    >>> import numpy as np
    >>> curve = FlipRateCurve(1.0, (0.1,), (), np.array([0.814, 0, 0]), 1e-6 * np.eye(3))
    >>> alpha, beta = (Estimate(x, 0.01, Tier.ESTIMATED, "given") for x in (3.6, 0.12))
    >>> print(half_point(4000, 1000, curve, StoppingLaw(alpha, beta, 0.0)))
    0.712 ± 5e-3
    """
    size = checks.integer("size", size, 2)
    flips = law.flips_at(checks.integer("sweeps", sweeps, 1))
    least = float(flips.value) / max(curve.rates)
    if size < least:
        raise InvalidInputError("size", size, f"at least {math.ceil(least)} for this many sweeps")
    at = curve.coupling(float(flips.value) / size)
    root = math.sqrt(float(flips.value) / size)
    from_law = overshoot_slope(curve.p) * root * float(flips.error) / (2 * float(flips.value))
    error = math.hypot(float(at.error), from_law)
    return Estimate(at.value, error, Tier.ESTIMATED, "stopping law and stationary flip rates")
