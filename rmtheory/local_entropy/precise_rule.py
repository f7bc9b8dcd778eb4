r"""Tilted averages of the core module (L = 1) to any number of digits.

The integral of :mod:`rmtheory.local_entropy.core`, written without cancellation as

.. math:: \zeta = e^{h} P(a_+) + e^{-h} P(a_-), \qquad a_\pm = \frac{J_D \pm x}{\sigma},
    \qquad m = \big[e^{h} P(a_+) - e^{-h} P(a_-)\big]/\zeta ,

by trapezoid rules whose steps and limits follow from the digits wanted: an error exp(-nats).

- In t the integrand is analytic up to cos(Im h) = 0, and |zeta| only falls off the real axis, so
  a strip of half-width a < pi/(2 sqrt qhat) gives a relative error 2 exp(a^2/2 - 2 pi a/step).
- In x the nodes are equidistant in the variable u(x) of :mod:`rmtheory.local_entropy.nodes`,
  solved for to working precision; the error is about exp(-10/step), which callers check by
  repeating the sum with another step.
- Since zeta <= 2 exp|h|, what lies beyond t or x is below a Gaussian tail; nodes that cannot
  contribute are left out after a look at the exponent in float64.

Numbers go in and come out as exact fractions, so that no precision is shared between calls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from rmtheory.arithmetic import (
    Arithmetic,
    BallArithmetic,
    MPArithmetic,
    ball_precision,
    ball_to_mpf,
    have_flint,
)
from rmtheory.errors import NotConvergedError
from rmtheory.estimate import fraction_from
from rmtheory.gaussian import Array, log_P

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
    At y = 1 phi is log 2P(J), whatever qhat.

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
    fields, weights = _field_nodes(numbers, jd, d, rule, float(y), reach_x)
    tilt_step = Fraction(rule.tilt_step(float(qhat)))
    count = math.ceil(reach_t / float(tilt_step))

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
    """Mask of the nodes (t, x) that can matter."""
    if t.size * plus.size > MOST_POINTS:
        raise NotConvergedError(
            f"the quadrature needs {t.size * plus.size:.1e} points at y = {y:g}; ask for fewer "
            "digits or a smaller y"
        )
    exponent = _exponent(plus, minus, cost, t, y, qhat)
    # What is left out together is at most its number times the threshold.
    return exponent > exponent.max() - nats - math.log(exponent.size)


def _field_nodes(
    numbers: Arithmetic, jd: Fraction, d: Fraction, rule: Rule, y: float, reach: float
) -> tuple[list[Any], list[Any]]:
    """Nodes x >= 0 with u(x) = 0, step, 2 step, ... and their weights, x > 0 counted twice."""
    variance, square = numbers.number(1 - 2 * d), numbers.number(2 * d)
    scale, sigma = numbers.sqrt(variance), numbers.sqrt(square)
    near = abs(float(jd)) < math.sqrt(2 * float(d)) / 2
    centres = [numbers.number(c) for c in ((Fraction(0),) if near else (jd, -jd))]
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
