r"""The global maximum of the second-moment exponent over all overlaps, L = 1 and 2.

The slope of Psi towards a corner q_l -> ±1 diverges like (1 - |q_l|)^(-1/2), faster than that of
the entropy, so every corner is a local maximum, behind a barrier whose width can be as small as
e^{-J_D^2}. The grid is therefore uniform in arctanh q, with the ends q = ±1 themselves added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy import optimize

from rmtheory import checks
from rmtheory.chain import Chain
from rmtheory.errors import InvalidInputError
from rmtheory.estimate import Estimate, Tier
from rmtheory.gaussian import Array
from rmtheory.second_moment.bivariate import LOG_ERROR
from rmtheory.second_moment.exponent import exponent, exponent_atanh, exponent_grid

#: The grid reaches 1 - |q| = 2 e^(-2 _REACH) = 8e-11 before the end point itself.
_REACH = 12.0

#: Maxima closer than this in every arctanh(q_l) are one, and so are a corner and what is left of
#: it beyond arctanh q = _CORNER, where Psi is flat to rounding.
_SAME, _CORNER = 0.05, 10.0

#: A free layer that climbs beyond q = tanh 3 = 0.995 belongs to the next face.
_FREE = 3.0

#: Local maxima of the grid that are polished, the highest first.
_POLISHED = 12

#: Values closer than this cannot be ordered in double precision.
_TIE = 1e-12


@dataclass(frozen=True)
class Maximum:
    """The largest exponent and the overlaps where it is reached.

    The pairs (s, s') and (s, -s') have opposite overlaps and equal weight, so that every maximum
    other than q = 0 comes twice; the one with the first non-zero overlap positive is reported.
    """

    chain: Chain
    #: Psi at the maximiser, per site of the whole chain.
    value: Estimate
    #: Overlap of every layer.
    q: tuple[float, ...]
    #: Whether q = 0: then E[Z^2] and E[Z]^2 have the same exponential order.
    at_zero: bool
    #: Psi(q) minus the best local maximum elsewhere; 0 within rounding where two maxima tie.
    margin: float
    #: That other local maximum.
    runner_up: tuple[float, ...]
    #: What was searched, in words.
    searched: str


def maximum(chain: Chain, points: int | None = None) -> Maximum:
    """Search [-1, 1]^L for the global maximum of Psi.

    Parameters
    ----------
    chain : Chain
        One or two layers.
    points : int, optional
        Grid points on each half axis (default 400 for L = 1, 120 for L = 2).

    Examples
    --------
    >>> from rmtheory import Chain
    >>> maximum(Chain(1, jd=0.5)).at_zero
    True
    >>> maximum(Chain(1, jd=-0.05)).q  # fewer than one fixed point on average
    (1.0,)
    """
    layers = chain.finite_layers
    if layers > 2:
        raise InvalidInputError("layers", layers, "1 or 2 for the search of the global maximum")
    half = checks.integer(
        "points", points if points is not None else (400 if layers == 1 else 120), 20, 2000
    )
    step = _REACH / half
    axis = np.concatenate([[-np.inf], step * np.arange(-half, half + 1), [np.inf]])
    values = exponent_atanh(chain, *np.meshgrid(*[axis] * layers, indexing="ij", sparse=True))
    peaks = [
        index
        for index in _local_maxima(values)
        # Next to a face where Psi jumps (J_D < 0) the grid ends on a slope, not on a maximum.
        if not any(i in (1, 2 * half + 1) for i in index)
    ]
    peaks.sort(key=lambda index: -float(values[index]))
    candidates = [
        _polish(chain, tuple(float(axis[i]) for i in index), step) for index in peaks[:_POLISHED]
    ]
    zero = (0.0,) * layers
    # 0 is stationary by symmetry, and stays a candidate where the grid sees a neighbour above it
    # only through rounding.
    candidates.append((float(exponent_grid(chain, *zero)), zero))
    # So do the corners s' = s in every layer, which strong couplings hide on a flat ridge.
    candidates.append((float(exponent_grid(chain, *(1.0,) * layers)), (math.inf,) * layers))
    ranked = _distinct(candidates)
    (value, place), (second, other) = ranked[0], ranked[1]
    q = tuple(math.tanh(x) for x in place)
    error = 3 * LOG_ERROR * layers * max(1.0, abs(value)) + 1e-14
    return Maximum(
        chain=chain,
        value=Estimate(value, error, Tier.ESTIMATED, "grid search and polish in float64"),
        q=q,
        at_zero=q == zero,
        margin=max(value - second, 0.0),
        runner_up=tuple(math.tanh(x) for x in other),
        searched=(
            f"q in [-1, 1]^{layers}: {2 * half + 1} points an axis uniform in arctanh q, spacing "
            f"{step:.3g}, up to 1 - |q| = {1 - np.tanh(_REACH):.1g}, and q = ±1"
        ),
    )


def face_maximum(
    chain: Chain, clamped: tuple[int, ...], starts: Sequence[float] = (1e-3,)
) -> tuple[float, tuple[float, ...]]:
    """Largest Psi with some layers at q = ±1 and the others free, climbing from given overlaps.

    Parameters
    ----------
    clamped : tuple of int
        ±1 for a clamped layer, 0 for a free one.
    starts : sequence of float
        Moduli of arctanh q from which the free layers climb, with every choice of signs.

    Notes
    -----
    Coupled to a clamped layer, a free one prefers q != 0: the corner with zeros elsewhere is not
    stationary, and its exponent is only a lower bound.
    """
    free = [k for k, sign in enumerate(clamped) if sign == 0]
    fixed = np.array(clamped, dtype=float)

    def place(x: Array) -> tuple[float, ...]:
        q = fixed.copy()
        q[free] = np.tanh(x)
        return tuple(q.tolist())

    def loss(x: Array) -> float:
        return -float(exponent(chain, place(x)).value)

    if not free:
        return float(exponent(chain, clamped).value), place(np.zeros(0))
    found = []
    for size, signs in product(starts, product((1.0, -1.0), repeat=len(free))):
        if size < _SAME and min(signs) < 0:
            continue  # next to 0 one choice of signs is enough
        start: Array = size * np.array(signs)
        bounds = [(-_FREE, _FREE)] * len(free)
        # The default stops at a relative change of 2e-9 in Psi, a digit short of what is compared.
        result = optimize.minimize(
            loss, start, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-14, "gtol": 1e-8}
        )
        found.append((-float(result.fun), place(result.x)))
    return max(found)


def _local_maxima(values: Array) -> list[tuple[int, ...]]:
    """Grid points not below any neighbour, diagonal ones included."""
    padded = np.pad(values, 1, constant_values=-np.inf)
    highest = np.ones(values.shape, dtype=bool)
    for shift in product((-1, 0, 1), repeat=values.ndim):
        if any(shift):
            window = tuple(
                slice(1 + k, 1 + k + size) for k, size in zip(shift, values.shape, strict=True)
            )
            highest &= values >= padded[window]
    return [tuple(int(i) for i in index) for index in np.argwhere(highest)]


def _polish(chain: Chain, start: tuple[float, ...], step: float) -> tuple[float, tuple[float, ...]]:
    """Climb from a grid point, within two spacings, in the layers that are not at q = ±1.

    `start` and the result are arctanh q.
    """
    free = [k for k, x in enumerate(start) if math.isfinite(x)]
    best = float(exponent_atanh(chain, *map(np.asarray, start)))
    if not free or not any(start):
        return best, start
    centre: Array = np.array([start[k] for k in free])

    def place(y: Array) -> tuple[float, ...]:
        x = list(start)
        for k, value in zip(free, y, strict=True):
            x[k] = float(value)
        return tuple(x)

    def loss(y: Array) -> float:
        return -float(exponent_atanh(chain, *map(np.asarray, place(y))))

    result = optimize.minimize(
        loss,
        centre,
        method="Nelder-Mead",
        bounds=[(float(c) - 2 * step, float(c) + 2 * step) for c in centre],
        tol=1e-10,
    )
    if -result.fun >= best:
        return -float(result.fun), place(result.x)
    return best, start


def _distinct(
    candidates: list[tuple[float, tuple[float, ...]]],
) -> list[tuple[float, tuple[float, ...]]]:
    """Sort by value, best first, one of each pair ±x; x = 0 first among ties."""
    kept: list[tuple[float, tuple[float, ...]]] = []
    for value, x in sorted(candidates, reverse=True):
        first = next((y for y in x if abs(y) > 1e-6), 0.0)
        # Psi is even: the polish leaves a layer that belongs at 0 within rounding of it.
        upright = tuple(0.0 if abs(y) < 1e-6 else math.copysign(1.0, first) * y for y in x)
        if not any(_same(upright, other) for _, other in kept):
            kept.append((value, upright))
    top = kept[0][0]
    zero = [item for item in kept if not any(item[1])]
    if zero and top - zero[0][0] <= _TIE:
        kept.remove(zero[0])
        kept.insert(0, zero[0])
    return kept


def _same(p: tuple[float, ...], q: tuple[float, ...]) -> bool:
    return all(
        abs(min(max(x, -_CORNER), _CORNER) - min(max(y, -_CORNER), _CORNER)) < _SAME
        for x, y in zip(p, q, strict=True)
    )
