"""The zero of a minimum over d along a family of chains, as a bracket with opposite verdicts.

The minimum over d of the slope dS_I*/dd, or of S_I* itself, is a function of one coupling. Its zero
is found by a secant whose every point starts from the last, and returned as two couplings at which
the minimum is below and above zero by more than its error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rmtheory.chain import Chain
from rmtheory.errors import NotConvergedError, OutsideValidityError
from rmtheory.estimate import Estimate, Tier
from rmtheory.local_entropy.continuation import CurveTracker
from rmtheory.local_entropy.extrema import Minimum, least_entropy, least_slope
from rmtheory.local_entropy.model import LocalModel

Kind = Literal["rm", "gap"]

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
    """Two values of a parameter with opposite verdicts, and the touching points there."""

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
        #: Minima found so far, by coupling.
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
            f"the {self.kind} threshold was not found: stopped at {x1:.8g}, minimum {f1:.1e}"
        )

    def _check_begin(self) -> None:
        """Refuse if there is no threshold because its far side reaches down to coupling 0."""
        if self.minimum(0.0).value > 0:
            what = "S_I* is monotone" if self.kind == "rm" else "there is no gap"
            raise OutsideValidityError(
                f"there is no threshold at a coupling > 0: {what} already for {self.chain_at(0.0)}"
            )

    def _tracker(self, x: float) -> CurveTracker:
        model = LocalModel(self.chain_at(x))
        if self.tracker is None:
            self.tracker = CurveTracker(model)
            if self.seed is not None and len(self.seed.qhat) == model.unknowns:
                self.tracker.add(self.seed.d, self.seed.y, np.array(self.seed.qhat))
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
