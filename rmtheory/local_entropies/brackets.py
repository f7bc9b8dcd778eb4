"""The zero of a minimum over d along a family of chains, as a bracket with opposite signs.

The minimum over d of the slope dS_I*/dd, or of S_I* itself, is a function of one coupling. A secant
search, every point of which starts from the last, gives its zero, which is returned as two
couplings at which the minimum is below and above zero by more than its error.

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
from rmtheory.base.errors import InvalidInputError, NotConvergedError, OutsideValidityError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.local_entropies.curves import Minimum, least_entropy, least_slope
from rmtheory.local_entropies.functionals import functional
from rmtheory.local_entropies.solve import CurveTracker

Kind = Literal["rm", "gap"]

Coupling = Literal["jd", "lam"]


# The bracket and its search.

_MOST_STEPS = 25


@dataclass(frozen=True, eq=False)
class Seed:
    """A point of a neighbouring curve: where a search can start."""

    d: float
    y: float
    qhat: tuple[float, ...]
    #: Rate at which the minimum over d grows with the parameter, 0 if not known.
    rate: float = 0.0


@dataclass(frozen=True, eq=False)
class Bracket:
    """Two values of a parameter with minima of opposite sign, and the touching points there."""

    kind: Kind
    low: float
    high: float
    at_low: Minimum
    at_high: Minimum

    @property
    def value(self) -> float:
        """The middle of the bracket."""
        return 0.5 * (self.low + self.high)

    @property
    def d(self) -> Estimate:
        """Distance of the touching point."""
        low, high = self.at_low, self.at_high
        return self._touching(low.d, high.d, 1e-4 * high.d)

    @property
    def y_star(self) -> Estimate:
        """y* of the touching point."""
        low, high = self.at_low.point.moments, self.at_high.point.moments
        return self._touching(low.y, high.y, 1e-4 * high.y)

    @property
    def internal(self) -> Estimate:
        """S_I* of the touching point, per neuron."""
        low, high = self.at_low.point, self.at_high.point
        # d S_I* = slope dd, and the slope is close to 0 at either threshold.
        own = high.phi_error + 1e-4 * abs(high.moments.slope)
        return self._touching(low.moments.phi, high.moments.phi, own)

    def _touching(self, low: float, high: float, own: float) -> Estimate:
        method = "touching point at the upper end of the bracket; the error is its move across"
        return Estimate(high, abs(high - low) + own, Tier.ESTIMATED, method)

    @property
    def seed(self) -> Seed:
        """The touching point, to start a neighbouring search from."""
        moments = self.at_high.point.moments
        rate = (self.at_high.value - self.at_low.value) / (self.high - self.low)
        return Seed(self.at_high.d, moments.y, tuple(map(float, moments.qhat)), rate)


def bracket(
    chain_at: Callable[[float], Chain],
    kind: Kind,
    guess: float,
    width: float,
    tol: float,
    seed: Seed | None = None,
) -> Bracket:
    """Bracket the zero of the minimum over d along any one-parameter family of chains."""
    search = _Search(chain_at, kind, tol, width, seed)
    root = search.root(guess, 0.05 * width)
    low, high = root - 0.4 * width, root + 0.4 * width
    at_low, at_high = search.beside(low), search.beside(high)
    if not at_low.value < -at_low.error or not at_high.value > at_high.error:
        raise NotConvergedError(
            f"the {kind} threshold near {chain_at(root)} is not resolved to {width:g}: the minima "
            f"over d are {at_low.value:.1e} and {at_high.value:.1e}, with errors "
            f"{at_low.error:.0e} and {at_high.error:.0e}"
        )
    return Bracket(kind, low, high, at_low, at_high)


class _Search:
    """Root of the minimum over d as a function of the coupling."""

    def __init__(
        self,
        chain_at: Callable[[float], Chain],
        kind: Kind,
        tol: float,
        width: float,
        seed: Seed | None,
    ) -> None:
        self.chain_at, self.kind, self.tol, self.seed = chain_at, kind, tol, seed
        self.width = width
        self.tracker: CurveTracker | None = None
        #: Minima computed so far, by coupling.
        self.known: dict[float, Minimum] = {}

    def minimum(self, x: float) -> Minimum:
        """Minimum over d at coupling x, started from the last one."""
        tracker = self._tracker(x)
        near = self._near(x)
        if self.kind == "rm":
            self.known[x] = least_slope(tracker, near, self.tol, self._slope_tol(x))
        else:
            self.known[x] = least_entropy(tracker, near, self.tol)
        return self.known[x]

    def _slope_tol(self, x: float) -> float:
        """How well the slope is to be known: a fraction of its change across half the bracket."""
        if len(self.known) < 2:
            return math.inf
        a, b = sorted(self.known, key=lambda known: abs(known - x))[:2]
        rate = abs((self.known[b].value - self.known[a].value) / (b - a))
        # Near an axis the minimum hardly depends on the coupling between two distant points.
        return max(0.05 * self.width * rate, 1e-9)

    def beside(self, x: float) -> Minimum:
        """Minimum at a coupling next to known ones, from the single point where it must be.

        The value there is above the minimum by no more than its error says: the place is
        extrapolated, and the curve is flat.
        """
        d = self._near(x)
        assert d is not None
        slope_tol = self._slope_tol(x) if self.kind == "rm" else math.inf
        point = self._tracker(x).solve(d, self.tol, slope_tol)
        nearest = min(self.known, key=lambda known: abs(known - x))
        shift = 0.1 * abs(math.log(d / self.known[nearest].d)) + 1e-4
        if self.kind == "rm":
            curvature = self.known[nearest].curvature
            error = point.slope_error + 0.5 * curvature * shift**2
            return Minimum(d, point.moments.slope, error, point, curvature)
        error = point.phi_error + abs(point.moments.slope) * d * shift
        return Minimum(d, point.moments.phi, error, point)

    def root(self, guess: float, accuracy: float) -> float:
        """Secant, kept inside a bracket once there is one."""
        x0, f0 = guess, self.minimum(guess).value
        rate = self.seed.rate if self.seed is not None else 0.0
        x1 = x0 - f0 / rate if rate > 0 else x0 * 1.01 + 1e-4
        f1 = self.minimum(x1).value if x1 != x0 else f0
        low, high = -math.inf, math.inf
        for _ in range(_MOST_STEPS):
            for x, f in ((x0, f0), (x1, f1)):
                low = max(low, x) if f < 0 else low
                high = min(high, x) if f > 0 else high
            x2 = x1 - f1 * (x1 - x0) / (f1 - f0) if f1 != f0 else 0.5 * (x0 + x1)
            x2 = max(min(max(x2, x1 - 0.05), x1 + 0.05), 0.0)
            if x2 == 0 and low == -math.inf:
                self._check_begin()
                low = 0.0
            if not low < x2 < high:
                x2 = 0.5 * (low + high)
            x0, f0, x1 = x1, f1, x2
            if abs(x1 - x0) < accuracy:
                return x1
            f1 = self.minimum(x1).value
        raise NotConvergedError(
            f"the search for the {self.kind} threshold did not converge: it stopped at {x1:.8g}, "
            f"where the minimum is {f1:.1e}"
        )

    def _check_begin(self) -> None:
        """Refuse if there is no threshold because its far side reaches down to coupling 0."""
        if self.minimum(0.0).value > 0:
            what = "S_I* is monotone" if self.kind == "rm" else "there is no gap"
            raise OutsideValidityError(
                f"there is no threshold at a coupling > 0: {what} already for {self.chain_at(0.0)}"
            )

    def _tracker(self, x: float) -> CurveTracker:
        model = functional(self.chain_at(x))
        if self.tracker is None:
            self.tracker = CurveTracker(model)
            if self.seed is not None and len(self.seed.qhat) == model.unknowns:
                self.tracker.start_from(self.seed.d, self.seed.y, np.array(self.seed.qhat))
        else:
            self.tracker = CurveTracker(model, self.tracker)
        return self.tracker

    def _near(self, x: float) -> float | None:
        """Place of the minimum at x, extrapolated from the known ones."""
        if not self.known:
            return None if self.seed is None else self.seed.d
        nearest = sorted(self.known, key=lambda known: abs(known - x))[:2]
        a = nearest[0]
        if len(nearest) == 1 or abs(nearest[1] - a) < 1e-12:
            return self.known[a].d
        b = nearest[1]
        share = max(-2.0, min(2.0, (x - a) / (b - a)))
        return float(self.known[a].d * (self.known[b].d / self.known[a].d) ** share)


# Rough thresholds, from which searches start.

#: Thresholds of the core module, and at J_D = 0 those of chains as polynomials in 1/L.
_CORE: dict[Kind, float] = {"rm": 0.0731, "gap": 0.0601}

_CHAIN: dict[Kind, tuple[float, ...]] = {
    "rm": (0.3526, 0.1498, 0.2189, -0.2381),
    "gap": (0.3199, 0.192, 0.0),
}

#: Ends of the boundaries of two layers on the lambda axis; they set the rays of phase diagrams.
_PAIR_SCALE: dict[Kind, float] = {"rm": 0.4524, "gap": 0.4161}

#: How far qhat is from its value inside, at J_D = 0, one and two layers from an end; from there on
#: each layer has this share of the one before, of opposite sign.
_AT_END, _NEXT, _DAMPING = -0.0245, 0.0265, -0.48

#: Rate at which the least slope grows with either coupling.
_RATE: dict[Coupling, float] = {"jd": 13.0, "lam": 4.4}


@dataclass(frozen=True)
class RoughBoundary(ABC):
    """Rough thresholds of chains with `layers` layers."""

    layers: int | float

    #: Default width of a bracket.
    width: ClassVar[float]
    #: Largest tolerance of S_I* in a search.
    largest_tol: ClassVar[float]

    def tol(self, width: float) -> float:
        """Accuracy of S_I* in the search for a bracket of this width."""
        return min(self.largest_tol, width * 1e-3)

    @staticmethod
    def core(kind: Kind) -> float:
        """Threshold of J_D without a coupling between the layers."""
        return _CORE[kind]

    def axis(self, kind: Kind) -> float:
        """Threshold of lambda at J_D = 0."""
        return float(np.polynomial.polynomial.polyval(1 / self.layers, _CHAIN[kind]))

    def scale(self, kind: Kind) -> tuple[float, float]:
        """Ends of a boundary on the axes of J_D and lambda, in units of which rays are drawn."""
        return self.core(kind), self.axis(kind)

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
    def guess(self, coupling: Coupling, kind: Kind, other: float | None) -> float:
        """Threshold of `coupling` where the other one has the value `other`."""

    def seed(self, chain: Chain, kind: Kind, coupling: Coupling) -> Seed | None:
        """Touching point of a chain at its threshold in `coupling`, None if a scan is needed."""
        return None

    def on_ray(
        self, kind: Kind, theta: float, chain_at: Callable[[float], Chain]
    ) -> tuple[float, Seed] | None:
        """Radius and touching point where a ray meets the boundary.

        None if they come from a neighbour. The ray is (J_D/J_c, lambda/lambda_c) = R (cos theta,
        sin theta), `chain_at` its chains.
        """
        return None


class CoreBoundary(RoughBoundary):
    """One layer: a threshold of J_D."""

    width = 1e-9
    largest_tol = 1e-11

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

    def guess(self, coupling: Coupling, kind: Kind, other: float | None) -> float:
        """Threshold of J_D."""
        return self.core(kind)


class PairBoundary(RoughBoundary):
    """Two layers: the boundary is roughly a parabola, J_D/J_c = 1 - (lambda/lambda_c)^2."""

    width = 1e-5
    largest_tol = 1e-8

    def scale(self, kind: Kind) -> tuple[float, float]:
        """Ends of a boundary on the axes of J_D and lambda."""
        return self.core(kind), _PAIR_SCALE[kind]

    def guess(self, coupling: Coupling, kind: Kind, other: float | None) -> float:
        """Threshold of `coupling` where the other one has the value `other`."""
        core, end = self.core(kind), self.axis(kind)
        if coupling == "lam":
            share = 1 - min(abs(other or 0.0) / core, 0.999)
            return end * math.sqrt(share)
        share = 1 - min(abs(other or 0.0) / end, 0.999) ** 2
        return core * share


class DeepBoundary(RoughBoundary):
    """Three layers or more, infinity included: J_D/J_c = 1 - (lambda/lambda_c)^p."""

    width = 1e-4
    largest_tol = 1e-7

    @property
    def shape(self) -> float:
        """The exponent p."""
        return 2.11 + 0.22 / self.layers

    def uncoupled(self, jd: float) -> Chain:
        """Return the core module: all layers are alike, and no transfer operator is needed."""
        return Chain(1, jd)

    def guess(self, coupling: Coupling, kind: Kind, other: float | None) -> float:
        """Threshold of `coupling` where the other one has the value `other`."""
        core, end = self.core(kind), self.axis(kind)
        given = abs(other or 0.0) / (core if coupling == "lam" else end)
        given = min(given, 0.999)
        if coupling == "lam":
            return float(end * (1 - given) ** (1 / self.shape))
        return float(core * (1 - given**self.shape))

    def seed(self, chain: Chain, kind: Kind, coupling: Coupling) -> Seed:
        """Touching point of a chain at its threshold in `coupling`."""
        seed = self._touching(chain, kind)
        return replace(seed, rate=_RATE[coupling]) if kind == "rm" else seed

    def on_ray(
        self, kind: Kind, theta: float, chain_at: Callable[[float], Chain]
    ) -> tuple[float, Seed] | None:
        """Radius and touching point where a ray meets the boundary.

        The rough shape is closer than a neighbour on another ray; on the J_D axis the
        layers are cores.
        """
        if theta <= 0:
            return None
        radius = self._radius(theta)
        seed = self._touching(chain_at(radius), kind)
        if kind == "rm":
            seed = replace(seed, rate=self._rate(theta, radius))
        return radius, seed

    def _touching(self, chain: Chain, kind: Kind) -> Seed:
        """Between the axes d, y* and qhat pass from those of the core to those at J_D = 0."""
        share = min(1.0, abs(chain.lam_right) / self.axis(kind)) ** 2
        core, inside = 0.238, np.array([0.147])
        if math.isfinite(self.layers):
            from_end = np.arange(int(self.layers))
            away = np.where(from_end == 0, _AT_END, _NEXT * _DAMPING ** np.maximum(from_end - 1, 0))
            inside = inside + away + away[::-1]
        qhat = (1 - share) * core + share * inside
        if kind == "rm":
            d = (1 - share) * 0.00565 + share * (0.00726 - 0.0021 / self.layers)
            return Seed(d, 8.5, tuple(map(float, qhat)))
        d = 0.016 + 0.002 * share * (1 - 2 / self.layers)
        return Seed(d, 5.2, tuple(map(float, 1.6 * qhat)))

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
        return float(_RATE["jd"] * self.core("rm") * along)


_TYPES: dict[int | float, type[RoughBoundary]] = {1: CoreBoundary, 2: PairBoundary}


def rough_boundary(layers: int | float) -> RoughBoundary:
    """Return the rough thresholds of chains of this depth.

    Examples
    --------
    >>> f"{rough_boundary(3).guess('lam', 'rm', 0.0):.3f}"
    '0.418'
    """
    return _TYPES.get(layers, DeepBoundary)(layers)
