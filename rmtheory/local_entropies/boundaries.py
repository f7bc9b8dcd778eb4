r"""The two boundaries of the phase diagram, and where a search for them starts.

A boundary is the zero, as a function of a coupling J (J_D or lambda), of a minimum over d:

.. math:: \min_d \frac{dS_I^*}{dd}(d; J_{RM}) = 0, \qquad \min_d S_I^*(d; J_{gap}) = 0 .

- the representation manifold (RM): above J_RM the least slope is positive, and S_I* monotone, the
  paper's criterion;
- the gap: below J_gap S_I* is negative at some distances, at which no fixed points exist.

Each is a type that says what is minimised, how well, and how a bracket is judged
(:mod:`rmtheory.local_entropies.thresholds` searches).

Searches start from rough thresholds by the depth of the chain. In the plane (J_D, lambda) a
boundary runs from the threshold of the core module on the J_D axis, which all depths share, to that
on the lambda axis. Of three layers or more its shape between the axes and the touching point are
known well enough to start from; a scan would take longer.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.local_entropies.curves import (
    Minimum,
    Monotonicity,
    Verdict,
    least_entropy,
    least_slope,
    least_slope_by_integers,
    monotonicity,
)
from rmtheory.local_entropies.functional import Refined
from rmtheory.local_entropies.solve import CurveTracker, functional

Kind = Literal["rm", "gap"]

Coupling = Literal["jd", "lam"]


@dataclass(frozen=True, eq=False)
class Seed:
    """A point of a neighbouring curve: where a search can start."""

    d: float
    y: float
    qhat: tuple[float, ...]
    #: Rate at which the minimum over d grows with the parameter, 0 if not known.
    rate: float = 0.0


# The minimum over d, by boundary.


class Boundary(ABC):
    """A minimum over d that passes 0 at the threshold."""

    kind: ClassVar[Kind]
    #: What is minimised, and what holds beyond the threshold.
    minimised: ClassVar[str]
    beyond: ClassVar[str]
    #: Rough threshold of the core module, that of chains at J_D = 0 as a polynomial in 1/L, and
    #: that of two layers, which sets the rays of phase diagrams.
    core: ClassVar[float]
    chain: ClassVar[tuple[float, ...]]
    pair: ClassVar[float]

    @abstractmethod
    def minimum(
        self, tracker: CurveTracker, near: float | None, tol: float, slope_tol: float
    ) -> Minimum:
        """Find the minimum over d, close to `near` or by a scan."""

    @abstractmethod
    def at(self, point: Refined, shift: float, curvature: float) -> Minimum:
        """Take a solved point for the minimum, which is off by at most `shift` in log d."""

    @abstractmethod
    def slope_tol(self, needed: float) -> float:
        """How well slopes are to be known where the minimum is needed to `needed`."""

    @abstractmethod
    def touching(self, share: float, layers: int | float, qhat: tuple[float, ...]) -> Seed:
        """Rough touching point of a deep chain, `share` of the way to J_D = 0 along the boundary.

        `qhat` are the conjugate overlaps at the touching point of the RM.
        """

    def rate(self, rate: float) -> float:
        """Rate at which the minimum grows with the coupling, if it does so as the least slope."""
        return 0.0

    def judge(
        self, chain_at: Callable[[float], Chain], ends: tuple[float, float], at_ends: Ends
    ) -> tuple[Monotonicity, Monotonicity] | None:
        """Judge the whole curve at both ends of a bracket, where the boundary is defined by it."""
        return None


#: Minima at the lower and at the upper end of a bracket.
Ends = tuple[Minimum, Minimum]


class RepresentationManifold(Boundary):
    """The least slope dS_I*/dd."""

    kind = "rm"
    minimised = "least slope over d"
    beyond = "S_I* is monotone"
    core = 0.0731
    chain = (0.3526, 0.1498, 0.2189, -0.2381)
    pair = 0.4524

    def minimum(
        self, tracker: CurveTracker, near: float | None, tol: float, slope_tol: float
    ) -> Minimum:
        """Find the least slope, by integer y where they are known well enough."""
        if near is not None:
            rough = least_slope_by_integers(tracker, near, slope_tol)
            if rough is not None:
                return rough
        return least_slope(tracker, near, tol, slope_tol)

    def at(self, point: Refined, shift: float, curvature: float) -> Minimum:
        """Return the slope at a point; its place is of second order."""
        error = point.slope_error + 0.5 * curvature * shift**2
        return Minimum(point.moments.d, point.moments.slope, error, point, curvature)

    def slope_tol(self, needed: float) -> float:
        """Slopes are what is minimised."""
        return needed

    def touching(self, share: float, layers: int | float, qhat: tuple[float, ...]) -> Seed:
        """Between the axes d passes from that of the core to that at J_D = 0."""
        d = (1 - share) * 0.00565 + share * (0.00726 - 0.0021 / layers)
        return Seed(d, 8.5, qhat)

    def rate(self, rate: float) -> float:
        """Return the rate itself."""
        return rate

    def judge(
        self, chain_at: Callable[[float], Chain], ends: tuple[float, float], at_ends: Ends
    ) -> tuple[Monotonicity, Monotonicity] | None:
        """Judge both curves; refuse a bracket whose verdicts are not opposite."""
        low = monotonicity(chain_at(ends[0]), dip=at_ends[0])
        # The search has followed the curve near the touching point.
        model, point = functional(chain_at(ends[1])), at_ends[1].solved.moments
        tracker = CurveTracker(model)
        tracker.add(point.d, point.y, point.qhat)
        high = monotonicity(model.chain, tracker=tracker, dip=at_ends[1])
        if (low.verdict, high.verdict) != (Verdict.NOT_MONOTONE, Verdict.MONOTONE):
            raise NotConvergedError(
                f"the verdicts on {low.chain} and {high.chain} are {low.verdict} and {high.verdict}"
            )
        return low, high


class Gap(Boundary):
    """The least S_I* itself, which needs no verdict on the curve."""

    kind = "gap"
    minimised = "least S_I* over d"
    beyond = "there is no gap"
    core = 0.0601
    chain = (0.3199, 0.192, 0.0)
    pair = 0.4161

    def minimum(
        self, tracker: CurveTracker, near: float | None, tol: float, slope_tol: float
    ) -> Minimum:
        """Find the least S_I*, where the slope vanishes."""
        return least_entropy(tracker, near, tol)

    def at(self, point: Refined, shift: float, curvature: float) -> Minimum:
        """Return S_I* at a point."""
        error = point.phi_error + abs(point.moments.slope) * point.moments.d * shift
        return Minimum(point.moments.d, point.moments.phi, error, point)

    def slope_tol(self, needed: float) -> float:
        """Slopes only place the minimum."""
        return math.inf

    def touching(self, share: float, layers: int | float, qhat: tuple[float, ...]) -> Seed:
        """Further out than the RM, with larger qhat."""
        d = 0.016 + 0.002 * share * (1 - 2 / layers)
        return Seed(d, 5.2, tuple(1.6 * q for q in qhat))


_BOUNDARIES: dict[str, Boundary] = {
    boundary.kind: boundary for boundary in (RepresentationManifold(), Gap())
}

KINDS: tuple[Kind, ...] = ("rm", "gap")


def boundary_of(kind: str) -> Boundary:
    """Return the boundary called `kind`.

    Examples
    --------
    >>> boundary_of("gap").beyond
    'there is no gap'
    """
    if kind not in _BOUNDARIES:
        raise InvalidInputError("kind", kind, "rm or gap")
    return _BOUNDARIES[kind]


# Rough thresholds, from which searches start.

#: How far qhat is from its value inside, at J_D = 0, one and two layers from an end; from there on
#: each layer has this share of the one before, of opposite sign.
_AT_END, _NEXT, _DAMPING = -0.0245, 0.0265, -0.48

#: Rate at which the least slope grows with either coupling.
_RATE: dict[Coupling, float] = {"jd": 13.0, "lam": 4.4}


@dataclass(frozen=True)
class RoughBoundary(ABC):
    """Rough thresholds of chains with `layers` layers for one boundary."""

    layers: int | float
    boundary: Boundary

    #: Default width of a bracket.
    width: ClassVar[float]
    #: Largest tolerance of S_I* in a search.
    largest_tol: ClassVar[float]
    #: CPU-seconds of a point of a boundary at a width of 1e-2.
    seconds: ClassVar[float]

    def tol(self, width: float) -> float:
        """Accuracy of S_I* in the search for a bracket of this width."""
        return min(self.largest_tol, width * 1e-3)

    @property
    def core(self) -> float:
        """Threshold of J_D without a coupling between the layers."""
        return self.boundary.core

    @property
    def axis(self) -> float:
        """Threshold of lambda at J_D = 0."""
        return float(np.polynomial.polynomial.polyval(1 / self.layers, self.boundary.chain))

    @property
    def scale(self) -> tuple[float, float]:
        """Ends of a boundary on the axes of J_D and lambda, in units of which rays are drawn."""
        return self.core, self.axis

    def family(
        self, coupling: Coupling, jd: float | None, lam: float | None
    ) -> Callable[[float], Chain]:
        """Return the chain as a function of the coupling sought, the other one being given."""
        if coupling == "jd":
            if lam is None:
                raise InvalidInputError("lam", "nothing", "given when jd is sought")
            return lambda x: Chain(self.layers, x, lam)
        if coupling == "lam":
            if jd is None:
                raise InvalidInputError("jd", "nothing", "given when lam is sought")
            if jd < 0:
                raise InvalidInputError("jd", jd, "at least 0 for a critical coupling")
            return lambda x: Chain(self.layers, jd, x)
        raise InvalidInputError("coupling", coupling, "jd or lam")

    def uncoupled(self, jd: float) -> Chain:
        """Return the chain at lambda = 0."""
        return Chain(self.layers, jd, 0.0)

    @abstractmethod
    def guess(self, coupling: Coupling, other: float | None) -> float:
        """Threshold of `coupling` where the other one has the value `other`."""

    def seed(self, chain: Chain, coupling: Coupling) -> Seed | None:
        """Touching point of a chain at its threshold in `coupling`, None if a scan is needed."""
        return None

    def on_ray(self, theta: float, chain_at: Callable[[float], Chain]) -> tuple[float, Seed] | None:
        """Radius and touching point where a ray meets the boundary.

        None if they come from a neighbour. The ray is (J_D/J_c, lambda/lambda_c) = R (cos theta,
        sin theta), `chain_at` its chains.
        """
        return None


class CoreBoundary(RoughBoundary):
    """One layer: a threshold of J_D."""

    width = 1e-9
    largest_tol = 1e-11
    seconds = 0.1

    def tol(self, width: float) -> float:
        """Accuracy of S_I* in the search, the same for all widths."""
        return self.largest_tol

    def family(
        self, coupling: Coupling, jd: float | None, lam: float | None
    ) -> Callable[[float], Chain]:
        """Return the chain as a function of J_D."""
        if coupling != "jd":
            raise InvalidInputError("coupling", coupling, "jd for one layer")
        for name, value in (("jd", jd), ("lam", lam)):
            if value is not None:
                raise InvalidInputError(name, value, "absent for one layer")
        return lambda x: Chain(1, x)

    def guess(self, coupling: Coupling, other: float | None) -> float:
        """Threshold of J_D."""
        return self.core


class PairBoundary(RoughBoundary):
    """Two layers: the boundary is roughly a parabola, J_D/J_c = 1 - (lambda/lambda_c)^2."""

    width = 1e-5
    largest_tol = 1e-8
    seconds = 6.0

    @property
    def scale(self) -> tuple[float, float]:
        """Ends of a boundary on the axes of J_D and lambda."""
        return self.core, self.boundary.pair

    def guess(self, coupling: Coupling, other: float | None) -> float:
        """Threshold of `coupling` where the other one has the value `other`."""
        core, end = self.core, self.axis
        if coupling == "lam":
            share = 1 - min(abs(other or 0.0) / core, 0.999)
            return end * math.sqrt(share)
        share = 1 - min(abs(other or 0.0) / end, 0.999) ** 2
        return core * share


class DeepBoundary(RoughBoundary):
    """Three layers or more, infinity included: J_D/J_c = 1 - (lambda/lambda_c)^p."""

    width = 1e-4
    largest_tol = 1e-7
    seconds = 22.0

    @property
    def shape(self) -> float:
        """The exponent p."""
        return 2.11 + 0.22 / self.layers

    def uncoupled(self, jd: float) -> Chain:
        """Return the core module: all layers are alike, and no transfer operator is needed."""
        return Chain(1, jd)

    def guess(self, coupling: Coupling, other: float | None) -> float:
        """Threshold of `coupling` where the other one has the value `other`."""
        core, end = self.core, self.axis
        given = abs(other or 0.0) / (core if coupling == "lam" else end)
        given = min(given, 0.999)
        if coupling == "lam":
            return float(end * (1 - given) ** (1 / self.shape))
        return float(core * (1 - given**self.shape))

    def seed(self, chain: Chain, coupling: Coupling) -> Seed:
        """Touching point of a chain at its threshold in `coupling`."""
        return replace(self._touching(chain), rate=self.boundary.rate(_RATE[coupling]))

    def on_ray(self, theta: float, chain_at: Callable[[float], Chain]) -> tuple[float, Seed] | None:
        """Radius and touching point where a ray meets the boundary.

        The rough shape is closer than a neighbour on another ray; on the J_D axis the
        layers are cores.
        """
        if theta <= 0:
            return None
        radius = self._radius(theta)
        rate = self.boundary.rate(self._rate(theta, radius))
        return radius, replace(self._touching(chain_at(radius)), rate=rate)

    def _touching(self, chain: Chain) -> Seed:
        """Between the axes d, y* and qhat pass from those of the core to those at J_D = 0."""
        share = min(1.0, abs(chain.lam_right) / self.axis) ** 2
        core, inside = 0.238, np.array([0.147])
        if math.isfinite(self.layers):
            from_end = np.arange(int(self.layers))
            away = np.where(from_end == 0, _AT_END, _NEXT * _DAMPING ** np.maximum(from_end - 1, 0))
            inside = inside + away + away[::-1]
        qhat = (1 - share) * core + share * inside
        return self.boundary.touching(share, self.layers, tuple(map(float, qhat)))

    def _radius(self, theta: float) -> float:
        from scipy import optimize

        return float(
            optimize.brentq(
                lambda r: r * math.cos(theta) + (r * math.sin(theta)) ** self.shape - 1, 0.0, 2.0
            )
        )

    def _rate(self, theta: float, radius: float) -> float:
        """Rate at which the least slope grows with R along a ray."""
        p = self.shape
        along = math.cos(theta) + p * (radius * math.sin(theta)) ** (p - 1) * math.sin(theta)
        return float(_RATE["jd"] * self.core * along)


_TYPES: dict[int | float, type[RoughBoundary]] = {1: CoreBoundary, 2: PairBoundary}


def rough_boundary(layers: int | float, kind: Kind) -> RoughBoundary:
    """Return the rough thresholds of chains of this depth.

    Examples
    --------
    >>> f"{rough_boundary(3, 'rm').guess('lam', 0.0):.3f}"
    '0.418'
    """
    return _TYPES.get(layers, DeepBoundary)(layers, boundary_of(kind))
