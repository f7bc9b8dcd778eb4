"""Critical couplings as brackets: where the curve S_I*(d) changes its nature.

Two thresholds, each the zero of a minimum over d that grows with the coupling:

- the representation manifold (RM): the least slope dS_I*/dd passes 0, and S_I* becomes monotone;
- the gap: the least S_I* itself passes 0; below it no fixed points exist at some distances.

A threshold is returned as two couplings with opposite verdicts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import optimize

from rmtheory import checks
from rmtheory.chain import Chain
from rmtheory.errors import InvalidInputError, NotConvergedError, OutsideValidityError
from rmtheory.estimate import Estimate, Tier
from rmtheory.local_entropy.continuation import CurveTracker
from rmtheory.local_entropy.extrema import Minimum, least_entropy, least_slope
from rmtheory.local_entropy.model import LocalModel

Kind = Literal["rm", "gap"]
Coupling = Literal["jd", "lam"]

#: Thresholds of the core module, roughly, and at J_D = 0 those of chains as polynomials in 1/L:
#: first guesses.
_CORE_GUESS = {"rm": 0.0731, "gap": 0.0601}
_CHAIN_GUESS = {"rm": (0.3526, 0.1907, 0.0179), "gap": (0.325, 0.18, 0.0)}

_MOST_STEPS = 25


@dataclass(frozen=True, eq=False)
class Critical:
    """A critical coupling between `low` and `high`, whose verdicts are opposite."""

    kind: Kind
    coupling: Coupling
    bracket: Bracket

    @property
    def low(self) -> float:
        """Lower end: not monotone, or a gap."""
        return self.bracket.low

    @property
    def high(self) -> float:
        """Upper end: monotone near the touching point, or no gap."""
        return self.bracket.high

    @property
    def at_low(self) -> Estimate:
        """The minimum over d at the lower end, negative."""
        return self._minimum(self.bracket.at_low)

    @property
    def at_high(self) -> Estimate:
        """The minimum over d at the upper end, positive."""
        return self._minimum(self.bracket.at_high)

    @property
    def d(self) -> Estimate:
        """Distance of the touching point."""
        return self.bracket.d

    @property
    def y_star(self) -> Estimate:
        """y* of the touching point."""
        return self.bracket.y_star

    @property
    def internal(self) -> Estimate:
        """S_I* of the touching point, per neuron."""
        return self.bracket.internal

    def _minimum(self, minimum: Minimum) -> Estimate:
        name = "least slope over d" if self.kind == "rm" else "least S_I* over d"
        return Estimate(minimum.value, minimum.error, Tier.ESTIMATED, name)


def critical_coupling(
    layers: int | float | str,
    coupling: Coupling,
    *,
    jd: float | None = None,
    lam: float | None = None,
    kind: Kind = "rm",
    width: float | None = None,
) -> Critical:
    """Bracket the critical `coupling`, the other one being given.

    Parameters
    ----------
    layers : int or math.inf
        1 (only ``jd`` is there to be critical) or more.
    coupling : {"jd", "lam"}
        The coupling to be found.
    jd, lam : float, optional
        The other coupling: `lam` when ``jd`` is sought (not for one layer), `jd` when ``lam`` is.
    kind : {"rm", "gap"}
        Which threshold.
    width : float, optional
        Width of the bracket; 1e-9 for the core module, 1e-5 for two layers, 1e-4 for more.

    Examples
    --------
    >>> core = critical_coupling(1, "jd")
    >>> f"{core.low:.10f} {core.high:.10f}"
    '0.0731076986 0.0731076994'
    """
    count = checks.layers(layers)
    chain_at = _family(count, coupling, jd, lam)
    width = {1: 1e-9, 2: 1e-5}.get(int(min(count, 3)), 1e-4) if width is None else width
    tol = 1e-11 if count == 1 else min(1e-8 if count == 2 else 1e-7, width * 1e-3)
    other = jd if coupling == "lam" else lam
    guess = _guess(count, coupling, kind, other)
    _check_exists(count, coupling, kind, other)
    found = bracket(chain_at, kind, guess, width, tol, deep_seed(chain_at(guess), kind))
    return Critical(kind, coupling, found)


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


#: Shape of the boundary between its ends: J_D/J_c = 1 - (lambda/lambda_c)^p, found for two layers.
_SHAPE = 2.36


def deep_seed(chain: Chain, kind: Kind) -> Seed | None:
    """Return roughly where three layers or more touch: a scan of their curve would take longer.

    Between the axes d, y* and qhat pass from those of the core to those at J_D = 0.
    """
    if chain.layers <= 2:
        return None
    share = min(1.0, abs(chain.lam_right) / axis_guess(chain.layers, kind)) ** 2
    core, inside, end = (0.238, 0.14 + 0.15 / chain.layers, 0.1)
    qhat = np.array([(1 - share) * core + share * inside])
    if math.isfinite(chain.layers):
        qhat = np.repeat(qhat, int(chain.layers))
        qhat[[0, -1]] = (1 - share) * core + share * end
    if kind == "rm":
        return Seed(0.0057 + 0.001 * share, 8.5, tuple(qhat))
    return Seed(0.016, 5.0, tuple(1.6 * qhat))


def deep_radius(theta: float) -> float:
    """Return where a ray (J_D/J_c, lambda/lambda_c) = R (cos, sin) meets the boundary, roughly."""
    return float(
        optimize.brentq(
            lambda r: r * math.cos(theta) + (r * math.sin(theta)) ** _SHAPE - 1, 0.0, 2.0
        )
    )


def _family(
    layers: int | float, coupling: Coupling, jd: float | None, lam: float | None
) -> Callable[[float], Chain]:
    """Return the chain as a function of the coupling sought."""
    if layers == 1:
        if coupling != "jd":
            raise InvalidInputError("coupling", coupling, "jd for one layer")
        return lambda x: Chain(1, x)
    if coupling == "jd":
        if lam is None:
            raise InvalidInputError("lam", "nothing", "given when jd is sought")
        return lambda x: Chain(layers, x, lam)
    if coupling == "lam":
        if jd is None:
            raise InvalidInputError("jd", "nothing", "given when lam is sought")
        if jd < 0:
            raise InvalidInputError("jd", jd, "at least 0 for a critical coupling")
        return lambda x: Chain(layers, jd, x)
    raise InvalidInputError("coupling", coupling, "jd or lam")


def _check_exists(layers: int | float, coupling: Coupling, kind: Kind, other: float | None) -> None:
    """Refuse where the given coupling alone is beyond the threshold: none is left to find."""
    if layers == 1 or other is None:
        return
    # The thresholds on the axes; near them only, since that of lambda takes a while.
    if coupling == "lam":
        if other < 0.99 * _CORE_GUESS[kind]:
            return
        end = critical_coupling(1, "jd", kind=kind)
    else:
        if abs(other) < 0.99 * axis_guess(layers, kind):
            return
        end = critical_coupling(layers, "lam", jd=0.0, kind=kind, width=1e-4)
    if abs(other) > end.low:
        what = "S_I* is monotone" if kind == "rm" else "there is no gap"
        given = "jd" if coupling == "lam" else "lam"
        raise OutsideValidityError(
            f"there is no critical {coupling} at {given} = {other:g}, which is beyond the "
            f"threshold {end.high:.6g} at {coupling} = 0: {what} for every {coupling} > 0"
        )


def axis_guess(layers: int | float, kind: Kind) -> float:
    """Rough threshold of lambda at J_D = 0."""
    return float(np.polynomial.polynomial.polyval(1 / layers, _CHAIN_GUESS[kind]))


def _guess(layers: int | float, coupling: Coupling, kind: Kind, other: float | None) -> float:
    """First guess: the boundary is roughly an arc between its two ends on the axes."""
    core = _CORE_GUESS[kind]
    if layers == 1:
        return core
    end = axis_guess(layers, kind)
    if layers > 2:
        given = abs(other or 0.0) / (core if coupling == "lam" else end)
        given = min(given, 0.999)
        if coupling == "lam":
            return float(end * (1 - given) ** (1 / _SHAPE))
        return float(core * (1 - given**_SHAPE))
    if coupling == "lam":
        share = 1 - min(abs(other or 0.0) / core, 0.999)
        return end * math.sqrt(share)
    share = 1 - min(abs(other or 0.0) / end, 0.999) ** 2
    return core * share


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
