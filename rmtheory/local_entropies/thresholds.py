r"""Critical couplings: zeros of a minimum over d, as brackets with opposite signs and verdicts.

.. math:: f(J_-) + \delta f < 0 < f(J_+) - \delta f, \qquad
    f(J) = \min_d \frac{dS_I^*}{dd} \ \text{or}\ \min_d S_I^*,

for the representation manifold or the gap (:mod:`rmtheory.local_entropies.boundaries`), with J one
coupling, J_D or lambda, and the other given. A secant search, every point of which starts from the
last, gives its zero, which is returned as two couplings at which the minimum is below and above
zero by more than its error. For the representation manifold the whole curve is judged at both of
them as well (:func:`rmtheory.local_entropies.curves.monotonicity`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError, OutsideValidityError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.local_entropies.boundaries import (
    Boundary,
    Coupling,
    Kind,
    RoughBoundary,
    Seed,
    rough_boundary,
)
from rmtheory.local_entropies.curves import Minimum, Monotonicity
from rmtheory.local_entropies.solve import CurveTracker, functional

# The bracket and its search.

_MOST_STEPS = 25


@dataclass(frozen=True, eq=False)
class Bracket:
    """Two values of a parameter with minima of opposite sign, and the touching points there."""

    boundary: Boundary
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
        low, high = self.at_low.solved.moments, self.at_high.solved.moments
        return self._touching(low.y, high.y, 1e-4 * high.y)

    @property
    def internal(self) -> Estimate:
        """S_I* of the touching point, per neuron."""
        low, high = self.at_low.solved, self.at_high.solved
        # d S_I* = slope dd, and the slope is close to 0 at either threshold.
        own = high.phi_error + 1e-4 * abs(high.moments.slope)
        return self._touching(low.moments.phi, high.moments.phi, own)

    def _touching(self, low: float, high: float, own: float) -> Estimate:
        method = "touching point at the upper end of the bracket; the error is its move across"
        return Estimate(high, abs(high - low) + own, Tier.ESTIMATED, method)

    @property
    def seed(self) -> Seed:
        """The touching point, to start a neighbouring search from."""
        moments = self.at_high.solved.moments
        rate = (self.at_high.value - self.at_low.value) / (self.high - self.low)
        return Seed(self.at_high.d, moments.y, tuple(map(float, moments.qhat)), rate)


def bracket(
    chain_at: Callable[[float], Chain],
    boundary: Boundary,
    guess: float,
    width: float,
    tol: float,
    seed: Seed | None = None,
) -> Bracket:
    """Bracket the zero of the minimum over d along any one-parameter family of chains."""
    search = _Search(chain_at, boundary, tol, width, seed)
    root = search.root(guess, 0.05 * width)
    low, high = root - 0.4 * width, root + 0.4 * width
    at_low, at_high = search.beside(low), search.beside(high)
    if not at_low.value < -at_low.error or not at_high.value > at_high.error:
        raise NotConvergedError(
            f"the {boundary.kind} threshold near {chain_at(root)} is not resolved to {width:g}: "
            f"the minima over d are {at_low.value:.1e} and {at_high.value:.1e}, with errors "
            f"{at_low.error:.0e} and {at_high.error:.0e}"
        )
    return Bracket(boundary, low, high, at_low, at_high)


class _Search:
    """Root of the minimum over d as a function of the coupling."""

    def __init__(
        self,
        chain_at: Callable[[float], Chain],
        boundary: Boundary,
        tol: float,
        width: float,
        seed: Seed | None,
    ) -> None:
        self.chain_at, self.boundary, self.tol, self.seed = chain_at, boundary, tol, seed
        self.width = width
        self.tracker: CurveTracker | None = None
        #: Minima computed so far, by coupling.
        self.known: dict[float, Minimum] = {}

    def minimum(self, x: float) -> Minimum:
        """Minimum over d at coupling x, started from the last one."""
        self.known[x] = self.boundary.minimum(
            self._tracker(x), self._near(x), self.tol, self._slope_tol(x)
        )
        return self.known[x]

    def _slope_tol(self, x: float) -> float:
        """How well slopes are to be known: a fraction of the change across half the bracket."""
        if len(self.known) < 2:
            return math.inf
        a, b = sorted(self.known, key=lambda known: abs(known - x))[:2]
        rate = abs((self.known[b].value - self.known[a].value) / (b - a))
        # Near an axis the minimum hardly depends on the coupling between two distant points.
        return self.boundary.slope_tol(max(0.05 * self.width * rate, 1e-9))

    def beside(self, x: float) -> Minimum:
        """Minimum at a coupling next to known ones, from the single point where it must be.

        The value there is above the minimum by no more than its error says: the place is
        extrapolated, and the curve is flat.
        """
        d = self._near(x)
        assert d is not None
        point = self._tracker(x).solve(d, self.tol, self._slope_tol(x))
        nearest = self.known[min(self.known, key=lambda known: abs(known - x))]
        shift = 0.1 * abs(math.log(d / nearest.d)) + 1e-4
        return self.boundary.at(point, shift, nearest.curvature)

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
            f"the search for the {self.boundary.kind} threshold did not converge: it stopped at "
            f"{x1:.8g}, where the minimum is {f1:.1e}"
        )

    def _check_begin(self) -> None:
        """Refuse if there is no threshold because its far side reaches down to coupling 0."""
        if self.minimum(0.0).value > 0:
            raise OutsideValidityError(
                f"there is no threshold at a coupling > 0: {self.boundary.beyond} already for "
                f"{self.chain_at(0.0)}"
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


# Critical couplings.

#: Least and largest width of a bracket.
LEAST_WIDTH, MOST_WIDTH = 1e-10, 1e-2


@dataclass(frozen=True, eq=False)
class Critical:
    """A critical coupling between `low` and `high`, where the minimum over d has opposite signs."""

    coupling: Coupling
    bracket: Bracket
    #: The whole curve at the lower and at the upper end; None if it was not judged, and for the
    #: gap, which the minimum alone defines.
    judged: tuple[Monotonicity, Monotonicity] | None = None

    @property
    def kind(self) -> Kind:
        """Which threshold."""
        return self.bracket.boundary.kind

    @property
    def checked(self) -> bool:
        """Whether the whole curve was judged at both ends, not only the touching point."""
        return self.judged is not None

    @property
    def verdicts(self) -> tuple[str, str]:
        """Verdicts on the curve at the lower and at the upper end, or ``unchecked`` twice."""
        if self.judged is None:
            return "unchecked", "unchecked"
        low, high = self.judged
        return str(low.verdict), str(high.verdict)

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
        name = self.bracket.boundary.minimised
        return Estimate(minimum.value, minimum.error, Tier.ESTIMATED, name)


def critical_coupling(
    layers: int | float | str,
    coupling: Coupling,
    *,
    jd: float | None = None,
    lam: float | None = None,
    kind: Kind = "rm",
    width: float | None = None,
    verdicts: bool = True,
) -> Critical:
    """Bracket the critical `coupling`, the other one being given.

    Parameters
    ----------
    layers : int or math.inf
        1 (where only ``jd`` can be critical) or more.
    coupling : {"jd", "lam"}
        The coupling to be bracketed.
    jd, lam : float, optional
        The other coupling: `lam` when ``jd`` is sought (not for one layer), `jd` when ``lam`` is.
    kind : {"rm", "gap"}
        Which threshold.
    width : float, optional
        Width of the bracket, 1e-10 to 0.01; 1e-9 for the core module, 1e-5 for two layers, 1e-4 for
        more.
    verdicts : bool
        Judge the whole curve at both ends, which takes about as long again as the search; otherwise
        the result is ``unchecked``. The gap needs none.

    Raises
    ------
    NotConvergedError
        If the verdicts at the two ends are not opposite.

    Examples
    --------
    >>> import rmtheory as rt
    >>> core = rt.critical_coupling(1, "jd")
    >>> f"{core.low:.10f} {core.high:.10f}", core.verdicts
    ('0.0731076986 0.0731076994', ('not monotone', 'monotone'))
    """
    rough = rough_boundary(checks.layers(layers), kind)
    chain_at = rough.family(coupling, jd, lam)
    width = rough.width if width is None else width
    if not LEAST_WIDTH <= width <= MOST_WIDTH:
        raise InvalidInputError("width", width, f"between {LEAST_WIDTH:g} and {MOST_WIDTH:g}")
    other = jd if coupling == "lam" else lam
    if other is not None:
        _check_exists(rough, coupling, other)
    guess = rough.guess(coupling, other)
    seed = rough.seed(chain_at(guess), coupling)
    interval = bracket(chain_at, rough.boundary, guess, width, rough.tol(width), seed)
    judged = None
    if verdicts:
        ends, minima = (interval.low, interval.high), (interval.at_low, interval.at_high)
        judged = rough.boundary.judge(chain_at, ends, minima)
    return Critical(coupling, interval, judged)


def _check_exists(rough: RoughBoundary, coupling: Coupling, other: float) -> None:
    """Refuse where the given coupling alone is beyond the threshold: there is none then."""
    kind = rough.boundary.kind
    # The thresholds on the axes; near them only, since that of lambda takes a while.
    if coupling == "lam":
        if other < 0.99 * rough.core:
            return
        end = critical_coupling(1, "jd", kind=kind, verdicts=False)
    else:
        if abs(other) < 0.99 * rough.axis:
            return
        end = critical_coupling(rough.layers, "lam", jd=0.0, kind=kind, width=1e-4, verdicts=False)
    if abs(other) > end.low:
        given = "jd" if coupling == "lam" else "lam"
        raise OutsideValidityError(
            f"there is no critical {coupling} at {given} = {other:g}, which is beyond the "
            f"threshold {_middle(end)} at {coupling} = 0: {rough.boundary.beyond} for every "
            f"{coupling} > 0"
        )


def _middle(critical: Critical) -> str:
    """Return the middle of a bracket with the digits that half its width leaves."""
    middle, half = 0.5 * (critical.low + critical.high), 0.5 * (critical.high - critical.low)
    return str(Estimate(middle, half, Tier.ESTIMATED, "bracket"))
