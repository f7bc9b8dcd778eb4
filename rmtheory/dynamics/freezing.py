r"""Where the network freezes: the coupling at which the stationary flip rate vanishes.

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
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.dynamics.averages import mean_field, update_probability
from rmtheory.dynamics.stationary_state import Family, overshoot, stationary

#: Flip rates at which the coupling is solved for.
_RATES = (0.03, 0.01, 0.004, 0.002)

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
    repetitions: int = 6,
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

    Raises
    ------
    NotConvergedError
        If the network does not freeze at any coupling, saying at which rate its neurons flip.
    """
    layers = checks.integer("layers", layers, 1, 8)
    rate = update_probability(p)
    checks.integer("repetitions", repetitions, 2)
    control, family = _family(layers, jd, lam)
    guess = _first_guess(layers, family, rate, seed)
    sequence = np.random.SeedSequence(checks.integer("seed", seed, 0))
    states = []
    for flips, child in zip(_RATES, sequence.spawn(len(_RATES)), strict=True):
        state = stationary(
            flips, family, guess, layers=layers, p=rate, seed=child, repetitions=repetitions
        )
        states.append(state)
        guess = state.coupling.value + 0.5 * 1.2 * math.sqrt(flips)
    slope = 2 * overshoot(rate) / math.sqrt(rate) if layers == 1 else None
    point = _extrapolated(_RATES, [state.coupling for state in states], slope)
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
        _RATES,
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
        return 0.81 - 2 * overshoot(p) * math.sqrt(_RATES[0] / p)

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
        columns = [np.ones_like(f), f]
        if slope is None:
            columns.append(-np.sqrt(f))
        else:
            x = x + slope * np.sqrt(f)
        matrix = np.stack(columns, axis=1) / sigma[:, None]
        covariance = np.linalg.inv(matrix.T @ matrix)
        solution = covariance @ matrix.T @ (x / sigma)
        return float(solution[0]), math.sqrt(float(covariance[0, 0]))

    value, error = fit(0)
    shift = fit(1)[0] - value
    method = "stationary flip rates extrapolated to 0, x = x_dyn - k sqrt(f) + a f"
    return Estimate(value, math.hypot(error, shift / 2), Tier.ESTIMATED, method)
