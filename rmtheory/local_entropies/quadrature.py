r"""Quadrature nodes for the two Gaussian fields t and z of one site.

Everywhere x = sqrt(q1) z is used in place of z. In x the integrand changes at the points where
P((v + s x)/sigma), sigma = sqrt(1 - q1), switches on, on the scale sigma = O(sqrt d): the nodes
are equidistant in a variable u(x) whose density grows towards these points,

.. math:: \frac{du}{dx} = \frac{1}{\sqrt{q_1}} + \sum_k \frac{1}{\sqrt{\sigma^2 + (x - x_k)^2}} ,

and the trapezoid rule in u converges exponentially, because u(x) is analytic as far as the
integrand is. In t the integrand changes on the scale 1/sqrt(qhat), and zeta^y tilts the Gaussian
as far as +-y sqrt(qhat), so that the box grows with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rmtheory.base.errors import NotConvergedError
from rmtheory.base.gaussian import Array, log_P

#: A Gaussian beyond this many standard deviations weighs less than 1e-17 of the whole.
REACH = 8.6

#: Standard deviations more, where the size of the whole is known only roughly.
_MARGIN = 3.0

#: Half-width of a window in standard deviations: exp(-45) of the peak at its ends.
_WINDOW = 9.5

#: Where two peaks are integrated one by one, the other is that many standard deviations of the
#: partition away: what is left of it is less than exp(-84), and outside the window of any peak
#: that counts.
_PARTITION = 13.0

#: Step of the trapezoid rules by level, in units of the scale of the integrand. Errors fall
#: exponentially in 1/step: about 1e-4, 1e-8, 1e-12 for levels 0, 1, 2.
STEPS = (0.8, 0.56, 0.4, 0.3, 0.22, 0.16, 0.12)

FINEST = len(STEPS) - 1

#: More nodes in one direction are needed only where an iteration has run away.
MOST_NODES = 50_000

#: Step of the coarse evaluation that only tells which nodes matter.
COARSEST = 1.1


def field_step(level: int, y: float) -> float:
    """Step in u for a level: zeta^y sharpens with y, measured to go like y^(-1/4) beyond 10."""
    # Rounded to a few values, so that neighbouring y share their nodes.
    sharpening = max(0.0, 0.27 * math.log(y / 10))
    return STEPS[level] * math.exp(-math.ceil(sharpening / 0.1) * 0.1)


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes of a one-dimensional rule and the logarithms of their weights."""

    at: Array
    log_weight: Array


@lru_cache(maxsize=64)
def field_nodes(q1: float, transitions: tuple[float, ...], step: float) -> Nodes:
    """Nodes in x for the Gaussian of variance q1, symmetric about 0.

    Parameters
    ----------
    q1 : float
        Overlap; sigma = sqrt(1 - q1).
    transitions : tuple of float
        The points x_k where the integrand changes on the scale sigma; -x_k is understood.
    step : float
        Distance of the nodes in u.
    """
    scale, sigma = math.sqrt(q1), math.sqrt(1 - q1)
    reach = REACH * scale
    centres = _distinct(transitions, sigma)[:, None]

    def coordinate(x: Array) -> Array:
        return np.asarray(x / scale + np.arcsinh((x - centres) / sigma).sum(axis=0))

    def density(x: Array) -> Array:
        return np.asarray(1 / scale + (1 / np.hypot(sigma, x - centres)).sum(axis=0))

    end = float(coordinate(np.array([reach]))[0])
    count = _count(end / step)
    x = _invert(coordinate, density, np.linspace(0.0, end, count + 1), reach)
    log_weight = math.log(end / count) - np.log(density(x)) - 0.5 * (x / scale) ** 2
    log_weight -= 0.5 * math.log(2 * math.pi * q1)
    return Nodes(np.concatenate([-x[:0:-1], x]), np.concatenate([log_weight[:0:-1], log_weight]))


@dataclass(frozen=True, eq=False)
class TiltNodes(Nodes):
    """Nodes in t, seen from the two peaks at |t| = y sqrt(qhat) that the tilt makes."""

    #: |t| - y sqrt(qhat)
    excess: Array
    #: The logarithms of the weights with -excess^2/2 in place of -t^2/2.
    log_peak: Array


def tilt_nodes(qhat: float, y: float, step: float) -> TiltNodes:
    """Nodes in t for a standard Gaussian under the tilt zeta^y, symmetric about 0."""
    centre = y * math.sqrt(qhat)
    reach = REACH + centre
    # A fixed distance, whatever the number of nodes: the sum is then a smooth function of y and
    # qhat, of which Newton's method can find a zero.
    apart = step * min(2.0, 1 / math.sqrt(qhat))
    count = _count(reach / apart)
    t = apart * np.arange(-count, count + 1)
    unit = math.log(apart) - 0.5 * math.log(2 * math.pi)
    excess = np.abs(t) - centre
    # zeta <= e^|h| (1 + e^(-2|h|)), which the best x nearly reach: far from the peaks there is
    # nothing once y is large.
    bound = y * np.log1p(np.exp(-2 * math.sqrt(qhat) * np.abs(t))) - 0.5 * excess * excess
    kept = bound > -0.5 * (REACH + _MARGIN) ** 2
    t, excess = t[kept], excess[kept]
    return TiltNodes(t, unit - 0.5 * t * t, excess, unit - 0.5 * excess * excess)


def tilt_windows(qhat: float, y: float, shift: Array, step: float) -> TiltNodes:
    """Nodes in t around the peaks of exp(-t^2/2) cosh(h + D)^y alone, for each D of `shift`.

    The arrays have a column for each D. At large y the peaks, |t| = y sqrt(qhat) |m|, are narrow
    against the range over which they move with D, so that one rule for all D would be mostly empty.
    Two peaks far apart are integrated one by one, with a partition of unity between them.
    """
    root = math.sqrt(qhat)
    m = _spontaneous(y * qhat)
    width = 1 / math.sqrt(1 - y * qhat * (1 - m * m)) if m > 0 else math.inf
    apart = y * root * m
    # The partition has to change slowly against the peaks, and to leave nothing at the other one.
    split = apart > 2.5 * _WINDOW * width
    signs = (1.0, -1.0) if split else (0.0,)
    parts = []
    for sign in signs:

        def exponent(t: Array, sign: float = sign) -> Array:
            u = np.abs(root * t + shift)
            excess = np.abs(t) - y * root
            value = y * (u - root * np.abs(t) + np.log1p(np.exp(-2 * u))) - 0.5 * excess * excess
            return np.asarray(value + log_P(sign * _PARTITION / apart * t) if sign else value)

        reach = y * root + REACH
        low, high = hull(exponent, np.full_like(shift, -reach), np.full_like(shift, reach))
        # A window is about 25 standard deviations of its peak, or of two with what is between.
        count = math.ceil((25 if split else 80) / step)
        t = low + (high - low) * np.linspace(0.0, 1.0, count + 1)[:, None]
        unit = np.log((high - low) / count) - 0.5 * math.log(2 * math.pi)
        if sign:
            unit = unit + log_P(sign * _PARTITION / apart * t)
        parts.append((t, unit + 0 * t))
    t, unit = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    excess = np.abs(t) - y * root
    return TiltNodes(t, unit - 0.5 * t * t, excess, unit - 0.5 * excess * excess)


def hull(
    exponent: Callable[[Array], Array], low: Array, high: Array, points: int = 33
) -> tuple[Array, Array]:
    """Narrow intervals, one for each column, to where `exponent` is within REACH of its maximum."""
    share = np.linspace(0.0, 1.0, points)[:, None]
    columns = np.arange(low.size)
    for _ in range(60):
        values = exponent(low + (high - low) * share)
        kept = values > values.max(axis=0) - 0.5 * _WINDOW**2
        first = np.maximum(kept.argmax(axis=0) - 1, 0)
        last = np.minimum(points - kept[::-1].argmax(axis=0), points - 1)
        span = high - low
        low, high = low + span * share[first, 0], low + span * share[last, 0]
        if np.all(last - first > points // 3):
            return low, high
    raise NotConvergedError(f"no peak was found in the tilt t for {columns.size} fields x")


def _spontaneous(k: float) -> float:
    """Return the root m > 0 of m = tanh(k m), 0 if there is none."""
    if k <= 1:
        return 0.0
    m = 1.0
    for _ in range(200):
        new = math.tanh(k * m)
        if abs(new - m) < 1e-12:
            break
        m = new
    return m


def check_size(points: float, most: float) -> None:
    """Stop an iteration that has run away before it fills the memory or takes for ever."""
    if not points <= most:
        raise NotConvergedError(
            f"the quadrature would need {points:.1g} points, more than {most:g}"
        )


def _count(nodes: float) -> int:
    check_size(nodes, MOST_NODES)
    return math.ceil(nodes)


def _distinct(transitions: tuple[float, ...], sigma: float) -> Array:
    """Return +-x_k sorted, one for each group closer together than sigma."""
    kept: list[float] = []
    for x in sorted({abs(x) for x in transitions}):
        if not kept or x - kept[-1] > sigma:
            kept.append(x)
    if kept[0] < sigma / 2:
        kept[0] = 0.0
    return np.array(sorted({*kept, *(-x for x in kept)}))


def _invert(
    coordinate: Callable[[Array], Array],
    density: Callable[[Array], Array],
    target: Array,
    reach: float,
) -> Array:
    """Solve u(x) = target on [0, reach] by Newton kept inside a shrinking bracket."""
    low, high = np.zeros_like(target), np.full_like(target, reach)
    x = reach * target / target[-1]
    before = np.full_like(target, reach)
    for _ in range(100):
        excess = coordinate(x) - target
        low, high = np.where(excess < 0, x, low), np.where(excess > 0, x, high)
        new = x - excess / density(x)
        # Newton may run to and fro about an inflection: bisect unless it halves the step.
        slow = np.abs(new - x) > 0.5 * before
        new = np.where(slow | (new < low) | (new > high), 0.5 * (low + high), new)
        before, x = np.abs(new - x), new
        if np.max(before) < 1e-6 * reach:
            break
    for _ in range(3):  # close enough for Newton alone
        x = x - (coordinate(x) - target) / density(x)
    x[0], x[-1] = 0.0, reach
    return np.asarray(x)
