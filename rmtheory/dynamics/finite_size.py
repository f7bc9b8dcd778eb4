r"""When a network of N neurons stops by chance below the freezing point.

A network is at a fixed point as soon as one sweep flips no neuron. Below the freezing
point (:mod:`rmtheory.dynamics.freezing`) this happens by chance when few neurons flip per sweep:
:math:`n = N f_\infty` of order 10. A neuron flips where its field, which moves by
:math:`2\sqrt{n(t)/N}` per sweep, meets its barrier.
With the distance to the barrier measured in units of :math:`2/\sqrt N` all neurons near a barrier
are walkers on the half-line y > 0, with steps of the same variance n(t) for all; those
that come to y < 0 are the n(t+1) neurons that flip, and leave. Since c'(0) = -2f, their density has
the slope 2 far from the barrier, :math:`2(y + b)`, and a stationary rate n needs
:math:`b = \rho\sqrt n`. Nothing else is left of N and :math:`J_D`: the chance to stop in a sweep is
a universal function :math:`w(n)`, and

.. math:: \mathrm{Prob}(\text{fixed point within } T) = 1 - e^{-\sum_{t \le T} w(N f(t))}, \qquad
    J_{50}(N) = J_{dyn} - 2\rho\sqrt{n_{50}(T)/N} + O(1/N), \quad T\, w(n_{50}) = \ln 2 .

:math:`w(n) \simeq e^{-\alpha - \beta n}`. A Poisson number of flips would give :math:`\beta = 1`;
:math:`\beta` is near 0.12 because n(t) sets the size of the next steps and with it n(t+1).

Corrections are of relative order :math:`N^{-1/2}`: the steps :math:`2\sqrt f` of a field are not
small against the way :math:`2J_D` to its other barrier, neurons that have flipped are soon back at
a barrier, and the network stops less easily. The first one is a multiple of
:math:`\sqrt f/J_D` (:func:`counted_flips`):

.. math:: n = N f\,\Big(1 + \frac{2\rho\sqrt f}{J_D}\Big) \simeq N f\,\frac{J_{dyn}}{J_D} .

Its coefficient is not derived. It was chosen, near the 1.1(1) that networks of N = 200 to 2000
need at their 50 % points, after seeing them; networks of N = 120, 300 and 700, measured afterwards,
stop at the same n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.base.statistics import weighted_fit
from rmtheory.dynamics.freezing import FlipRateCurve, fitted_curve, overshoot_slope
from rmtheory.dynamics.stationary_state import overshoot
from rmtheory.runtime.untrusted import read_json

Floats = NDArray[np.float64]

#: Mean numbers of flips per sweep at which the chance to stop is measured.
#: Below 8 the logarithm of w falls faster than linearly (the range was chosen after seeing this).
_MEASURED_FLIPS = (10.0, 16.0, 22.0, 28.0, 34.0)

#: Beyond the range that was measured the slope of log w may differ by this part of itself.
_SLOPE_BEYOND = 0.5

#: States and law that were solved for once, with their provenance (figures.paper.shipped).
STORED = Path(__file__).with_name("stored.json")


@dataclass(frozen=True)
class StoppingLaw:
    r"""The chance that a chaotic network stops in a sweep, :math:`w(n) = e^{-\alpha-\beta n}`.

    Parameters
    ----------
    alpha, beta : Estimate
        The fit; n is :math:`N f_\infty`.
    covariance : float
        Of alpha and beta.
    least, most : float
        The range of n in which w was measured.

    Examples
    --------
    >>> alpha, beta = (Estimate(x, 0.01, Tier.ESTIMATED, "given") for x in (3.6, 0.12))
    >>> print(StoppingLaw(alpha, beta, 0.0).flips_at(1000))
    31 ± 3e0
    """

    alpha: Estimate
    beta: Estimate
    covariance: float
    least: float = _MEASURED_FLIPS[0]
    most: float = _MEASURED_FLIPS[-1]

    def rate(self, n: float) -> Estimate:
        """Return w(n), for n in the range that was measured."""
        if not self.least <= n <= self.most:
            raise InvalidInputError("n", n, f"from {self.least:g} to {self.most:g}, as measured")
        value = math.exp(self._logarithm(n))
        error = value * math.sqrt(self._variance(n))
        return Estimate(value, error, Tier.ESTIMATED, self.alpha.method)

    def _logarithm(self, n: float) -> float:
        return -float(self.alpha.value) - float(self.beta.value) * n

    def _variance(self, n: float) -> float:
        """Variance of log w; outside of the range also for a slope that may change there."""
        square = float(self.alpha.error) ** 2 + (n * float(self.beta.error)) ** 2
        beyond = max(self.least - n, n - self.most, 0.0)
        systematic = (_SLOPE_BEYOND * float(self.beta.value) * beyond) ** 2
        return max(square + 2 * n * self.covariance, 0.0) + systematic

    def flips_at(self, sweeps: float, probability: float = 0.5) -> Estimate:
        """Return n at which a network stops within `sweeps` with this probability."""
        logarithm = math.log(sweeps / -math.log1p(-probability))
        value = (logarithm - float(self.alpha.value)) / float(self.beta.value)
        if not self.least <= value <= self.most:
            low, high = (
                math.ceil(-math.log1p(-probability) * math.exp(-self._logarithm(n)))
                for n in (self.least, self.most)
            )
            raise InvalidInputError(
                "sweeps", sweeps, f"from {low} to {high}: at others the law was not measured"
            )
        error = math.sqrt(self._variance(value)) / float(self.beta.value)
        return Estimate(value, error, Tier.ESTIMATED, self.alpha.method)

    def probability(self, flips: Floats) -> Estimate:
        """Return Prob(fixed point) after sweeps with these n(t) (:func:`counted_flips`).

        Sweeps whose n is outside the range measured enlarge the error: above it the slope of
        log w may differ by half, below it w may be anything up to 1.
        """
        flips = np.asarray(flips, dtype=np.float64)
        weights = np.exp(np.minimum([self._logarithm(float(n)) for n in flips], 0.0))
        hazard = float(weights.sum())
        # The mean number of flips that weighs in the sum.
        typical = float(weights @ flips) / hazard if hazard > 0 else 0.0
        error = hazard * math.exp(-hazard) * math.sqrt(self._variance(max(typical, self.least)))
        largest = float(np.where(flips < self.least, 1.0, weights).sum())
        error = math.hypot(error, math.exp(-hazard) - math.exp(-largest))
        return Estimate(-math.expm1(-hazard), error + 1e-12, Tier.ESTIMATED, self.alpha.method)


def stopping_law(p: float = 1.0, seed: int = 0, repetitions: int = 40) -> StoppingLaw:
    """Measure w(n) on the half-line of walkers and fit its exponential law; some CPU-minutes.

    Raises
    ------
    NotConvergedError
        If no walk stops at one of the n.
    """
    if p != 1:
        raise InvalidInputError("p", p, "1: masked networks are not covered by the law")
    generator = np.random.default_rng(checks.integer("seed", seed, 0))
    checks.integer("repetitions", repetitions, 4)
    logarithms, errors = [], []
    for n in _MEASURED_FLIPS:
        runs = [stopping_time(n, _LONGEST_WALK, generator) for _ in range(repetitions)]
        stopped = sum(one for _, one in runs)
        if not stopped:
            raise NotConvergedError(
                f"none of {repetitions} walks with {n:g} flips per sweep stopped within "
                f"{_LONGEST_WALK} sweeps: more repetitions are needed"
            )
        logarithms.append(-math.log(stopped / sum(t for t, _ in runs)))
        # The rate of exponential times, k of which ended, has the relative error k^(-1/2).
        errors.append(1 / math.sqrt(stopped))
    fit = weighted_fit([1.0, np.array(_MEASURED_FLIPS)], logarithms, errors)
    method = f"walkers on the half-line, {len(_MEASURED_FLIPS)} x {repetitions} runs"
    alpha, beta = (
        Estimate(float(value), fit.scale * float(error), Tier.ESTIMATED, method)
        for value, error in zip(fit.coefficients, fit.errors, strict=True)
    )
    return StoppingLaw(alpha, beta, fit.scale**2 * float(fit.covariance[0, 1]))


#: Runs that are still active after so many sweeps end.
_LONGEST_WALK = 6000

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


def counted_flips(size: int, flip_rate: float, jd: float) -> float:
    r"""Return n, the argument of the stopping law: :math:`N f (1 + 2\rho\sqrt f/J_D)`.

    Examples
    --------
    >>> round(counted_flips(1000, 0.0229, 0.637), 1)  # at the 50 % point of 1000 sweeps
    29.2
    """
    checks.integer("size", size, 1)
    if not jd > 0:
        raise InvalidInputError("jd", jd, "positive")
    if not 0 <= flip_rate <= 1:
        raise InvalidInputError("flip_rate", flip_rate, "a probability")
    return size * flip_rate * (1 + overshoot_slope() * math.sqrt(flip_rate) / jd)


@cache
def stored_theory() -> tuple[FlipRateCurve, StoppingLaw]:
    r"""Return f_inf(J_D) and the stopping law from what is stored: minutes of computing time.

    The curve goes through stationary states at five rates, and through :math:`J_{dyn}` by the
    second route, the relay that sees its path at all times. One layer, p = 1.

    Examples
    --------
    >>> curve, law = stored_theory()
    >>> bool(abs(curve.freezing.value - 0.8145) < 0.002)
    True
    """
    tables = {key: piece["result"] for key, piece in read_json(STORED).items()}

    def estimate(pair: list[float]) -> Estimate:
        return Estimate(pair[0], pair[1], Tier.ESTIMATED, "rmtheory/dynamics/stored.json")

    states, law = tables["curve"], tables["law"]
    curve = fitted_curve(
        states["rates"],
        [estimate(pair) for pair in states["couplings"]],
        limit=estimate(tables["relay"]["jd"]),
    )
    return curve, StoppingLaw(estimate(law["alpha"]), estimate(law["beta"]), law["covariance"])


def half_point(
    size: int,
    sweeps: int,
    curve: FlipRateCurve | None = None,
    law: StoppingLaw | None = None,
) -> Estimate:
    r"""Return J_50(N): half of the networks stop within `sweeps`, :math:`n = n_{50}`.

    It counts all sweeps as stationary ones; for N -> infinity it tends to J_dyn. The error has
    that of the curve and of the law, and a correction of n of the relative size
    :math:`f/J_D^2`, the square of the one that is known.

    Parameters
    ----------
    size, sweeps : int
        N, and the sweeps within which a network has to stop.
    curve, law : optional
        Those of :func:`stored_theory` unless given.

    Examples
    --------
    >>> print(half_point(4000, 1000))  # networks: 0.725 ± 0.007
    0.720 ± 3e-3
    """
    size = checks.integer("size", size, 2)
    if curve is None or law is None:
        stored = stored_theory()
        curve, law = curve or stored[0], law or stored[1]
    flips = law.flips_at(checks.integer("sweeps", sweeps, 1))
    wanted = float(flips.value)
    largest = math.sqrt(max(curve.rates)) * (1 - 1e-12)

    def excess(root: float) -> float:
        rate = root * root
        return counted_flips(1, rate, float(curve.coupling(rate).value)) - wanted / size

    if excess(largest) < 0:
        least = math.ceil(wanted / (excess(largest) + wanted / size))
        raise InvalidInputError("size", size, f"at least {least} for this many sweeps")
    root = float(optimize.brentq(excess, 0.0, largest))
    at = curve.coupling(root * root)
    slope = overshoot_slope(curve.p)
    # J_D = J_dyn - k sqrt(f) and n is proportional to f (1 + k sqrt(f)/J_D) at fixed N.
    response = slope / (2 / root + slope / float(at.value))
    relative = math.hypot(float(flips.error) / wanted, (root / float(at.value)) ** 2)
    error = math.hypot(float(at.error), response * relative)
    return Estimate(at.value, error, Tier.ESTIMATED, "stopping law and stationary flip rates")
