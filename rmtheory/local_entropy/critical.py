"""Critical couplings as brackets: where the curve S_I*(d) changes its nature.

Two thresholds, each the zero of a minimum over d that grows with the coupling:

- the representation manifold (RM): the least slope dS_I*/dd passes 0, and S_I* becomes monotone;
- the gap: the least S_I* itself passes 0; below it no fixed points exist at some distances.

A threshold is returned as two couplings with opposite verdicts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy import optimize

from rmtheory import checks
from rmtheory.chain import Chain
from rmtheory.errors import InvalidInputError, OutsideValidityError
from rmtheory.estimate import Estimate, Tier
from rmtheory.local_entropy.bracket import Bracket, Kind, Seed, bracket
from rmtheory.local_entropy.extrema import Minimum

Coupling = Literal["jd", "lam"]

#: Thresholds of the core module, roughly, and at J_D = 0 those of chains as polynomials in 1/L:
#: first guesses.
_CORE_GUESS = {"rm": 0.0731, "gap": 0.0601}
_CHAIN_GUESS = {"rm": (0.3526, 0.1498, 0.2189, -0.2381), "gap": (0.3199, 0.192, 0.0)}


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
    seed = deep_seed(chain_at(guess), kind)
    if seed is not None and kind == "rm":
        seed = replace(seed, rate=_RATE[coupling])
    found = bracket(chain_at, kind, guess, width, tol, seed)
    return Critical(kind, coupling, found)


#: How far qhat is from its value inside, at J_D = 0, one and two layers from an end; from there on
#: each layer has this share of the one before, of opposite sign.
_AT_END, _NEXT, _DAMPING = -0.0245, 0.0265, -0.48

#: Rate at which the least slope grows with either coupling, roughly.
_RATE = {"jd": 13.0, "lam": 4.4}


def _shape(layers: int | float) -> float:
    """Return p of the boundary between its ends, J_D/J_c = 1 - (lambda/lambda_c)^p, roughly."""
    return 2.11 + 0.22 / layers


def deep_seed(chain: Chain, kind: Kind) -> Seed | None:
    """Return roughly where three layers or more touch: a scan of their curve would take longer.

    Between the axes d, y* and qhat pass from those of the core to those at J_D = 0.
    """
    if chain.layers <= 2:
        return None
    share = min(1.0, abs(chain.lam_right) / axis_guess(chain.layers, kind)) ** 2
    core, inside = 0.238, np.array([0.147])
    if math.isfinite(chain.layers):
        from_end = np.arange(int(chain.layers))
        away = np.where(from_end == 0, _AT_END, _NEXT * _DAMPING ** np.maximum(from_end - 1, 0))
        inside = inside + away + away[::-1]
    qhat = (1 - share) * core + share * inside
    if kind == "rm":
        d = (1 - share) * 0.00565 + share * (0.00726 - 0.0021 / chain.layers)
        return Seed(d, 8.5, tuple(map(float, qhat)))
    return Seed(0.016 + 0.002 * share * (1 - 2 / chain.layers), 5.2, tuple(map(float, 1.6 * qhat)))


def deep_radius(layers: int | float, theta: float) -> float:
    """Return where a ray (J_D/J_c, lambda/lambda_c) = R (cos, sin) meets the boundary, roughly."""
    return float(
        optimize.brentq(
            lambda r: r * math.cos(theta) + (r * math.sin(theta)) ** _shape(layers) - 1, 0.0, 2.0
        )
    )


def deep_rate(layers: int | float, theta: float, radius: float) -> float:
    """Return how fast the least slope grows with R along such a ray, roughly."""
    p = _shape(layers)
    along = math.cos(theta) + p * (radius * math.sin(theta)) ** (p - 1) * math.sin(theta)
    return float(_RATE["jd"] * _CORE_GUESS["rm"] * along)


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
            return float(end * (1 - given) ** (1 / _shape(layers)))
        return float(core * (1 - given ** _shape(layers)))
    if coupling == "lam":
        share = 1 - min(abs(other or 0.0) / core, 0.999)
        return end * math.sqrt(share)
    share = 1 - min(abs(other or 0.0) / end, 0.999) ** 2
    return core * share
