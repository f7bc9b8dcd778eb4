r"""Large-N exponent of E[Z^2] as a function of the overlaps, and its global maximum.

Pairs of configurations with overlap q_l in layer l contribute exp(N Psi(q)) to E[Z^2],

.. math:: \Psi(q) = \min_h \Big[\log \sum_\sigma e^{h\cdot\sigma} W_\sigma(q) - h\cdot q\Big]
    = \max_{p: \langle\sigma_l\rangle = q_l} \Big[-\sum_\sigma p_\sigma \log p_\sigma
    + \sum_\sigma p_\sigma \log W_\sigma(q)\Big],

with W of :mod:`rmtheory.second_moment.agreement` at correlations sigma_l q_l. Psi is per site of
the whole chain (not divided by L): Psi(0) = 2 log z = 2 L S_a and Psi(±1, ..., ±1) = log z. At
L = 1 it is the paper's log 2 + H_b((1+q)/2) + (1+q)/2 log F(J_D, q) + (1-q)/2 log F(J_D, -q).

The global maximum is searched for at L = 1 and 2. The slope of Psi towards a corner q_l -> ±1
diverges like (1 - |q_l|)^(-1/2), faster than that of the entropy, so every corner is a local
maximum, behind a barrier whose width can be as small as e^{-J_D^2}. The grid is therefore uniform
in arctanh q, with the ends q = ±1 themselves added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.base.gaussian import Array
from rmtheory.second_moment import agreement
from rmtheory.second_moment.bivariate import LOG_ERROR

# The exponent.

_SWEEPS = 2000


def exponent(chain: Chain, q: float | Sequence[float]) -> Estimate:
    """Exponent Psi(q) of E[Z^2] at given overlaps, any finite L up to 6.

    Parameters
    ----------
    chain : Chain
        The model.
    q : float or sequence of float
        Overlap of every layer, in [-1, 1]; one number stands for all layers.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> print(exponent(Chain(1, jd=0.5), 1.0))  # the entropy log 2P(J_D) itself
    0.32420076527129 ± 8e-15
    """
    layers = checked_layers(chain)
    overlaps = _overlaps(q, layers)
    if layers <= 2:
        value = float(exponent_grid(chain, *(np.asarray(x) for x in overlaps)))
    else:
        value = dual_exponent(chain, overlaps)
    error = 3 * LOG_ERROR * layers * max(1.0, abs(value))
    return Estimate(value, error, Tier.ESTIMATED, "second-moment exponent in float64")


def exponent_grid(chain: Chain, *q: ArrayLike) -> Array:
    """Psi for arrays of overlaps, one array per layer, broadcast against each other; L = 1 or 2.

    No minimisation is left: at L = 1 the pattern is fixed by q, and at L = 2 the odds ratio
    p_{++}p_{--}/(p_{+-}p_{-+}) = W_{++}W_{--}/(W_{+-}W_{-+}) with given marginals is a quadratic
    equation.
    """
    layers = checked_layers(chain)
    if layers > 2 or len(q) != layers:
        raise InvalidInputError("q", f"{len(q)} arrays", "one array per layer, L = 1 or 2")
    overlaps = [np.asarray(x, dtype=float) for x in q]
    for x in overlaps:
        if not np.all(np.abs(x) <= 1):
            raise InvalidInputError(
                "q", float(x[~(np.abs(x) <= 1)].flat[0]), "overlaps from -1 to 1"
            )
    return exponent_atanh(chain, *(_atanh(x) for x in overlaps))


def exponent_atanh(chain: Chain, *x: Array) -> Array:
    """Psi as a function of x_l = arctanh q_l in [-inf, inf], L = 1 or 2.

    Near a corner Psi depends on 1 - |q|, of which q itself has lost the digits.
    """
    log_W = _log_weights(chain, x)
    if len(x) == 1:
        shares = [special.expit(2 * x[0]), special.expit(-2 * x[0])]
    else:
        shares = _two_layer_patterns(log_W, *x)
    return _entropy_and_energy(shares, log_W)


def dual_exponent(chain: Chain, q: Sequence[float]) -> float:
    """Psi by minimising over the fields h, any L: a route independent of the closed forms."""
    layers = checked_layers(chain)
    overlaps = np.asarray(_overlaps(q, layers))
    log_W = np.array(_log_weights(chain, [_atanh(np.asarray(x)) for x in overlaps]))
    sigma = np.array(agreement.patterns(layers), dtype=float)
    # A layer at q = ±1 has a single sign, and its field has run off to infinity.
    fixed = np.abs(overlaps) == 1
    kept = np.all(sigma[:, fixed] == overlaps[fixed], axis=1)
    sigma, log_W, target = sigma[kept][:, ~fixed], log_W[kept], overlaps[~fixed]
    h = np.zeros(target.shape)
    value, p = _dual(h, sigma, log_W, target)
    for _ in range(_SWEEPS):
        before = h.copy()
        h = _fit_marginals(h, sigma, log_W, target)
        value, p = _dual(h, sigma, log_W, target)
        # The sweeps always converge, but slowly where layers are strongly coupled; Newton's step
        # is taken where it helps.
        hessian = (sigma * p[:, None]).T @ sigma - np.outer(p @ sigma, p @ sigma)
        gradient = target - p @ sigma
        step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        if np.all(np.abs(h - before) < 1e-6) and abs(gradient @ step) < 1e-16:
            return value
        if np.all(np.abs(step) < 10) and (closer := _dual(h + step, sigma, log_W, target))[0] < (
            value - 1e-15 * abs(value)
        ):
            h, (value, p) = h + step, closer
    raise NotConvergedError(
        f"the fields of Psi at q = {tuple(map(float, overlaps))} did not converge: move q off ±1"
    )


def checked_layers(chain: Chain) -> int:
    """Return the number of layers, refused where the patterns cannot be enumerated."""
    layers = chain.finite_layers
    if layers > agreement.MOST_LAYERS:
        raise InvalidInputError(
            "layers", layers, f"at most {agreement.MOST_LAYERS} for the second-moment exponent"
        )
    return layers


def _overlaps(q: float | Sequence[float], layers: int) -> list[float]:
    values = np.atleast_1d(np.asarray(q, dtype=float))
    if values.size == 1:
        values = np.repeat(values, layers)
    if values.shape != (layers,):
        raise InvalidInputError("q", tuple(values.tolist()), f"one overlap for each of {layers}")
    for x in values:
        if not abs(x) <= 1:  # also catches nan
            raise InvalidInputError("q", float(x), "an overlap from -1 to 1")
    return [float(x) for x in values]


def _atanh(q: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.arctanh(q))


def _log_weights(chain: Chain, x: Sequence[Array]) -> list[Array]:
    couplings = (chain.jd, chain.lam_left, chain.lam_right)
    # (1 + q)/(1 - q) = e^(2x); the exponential over- or underflows to the corner itself.
    with np.errstate(over="ignore", under="ignore"):
        agreeing, disagreeing = [np.exp(2 * y) for y in x], [np.exp(-2 * y) for y in x]
    return agreement.log_weights(couplings, agreeing, disagreeing)


def _entropy_and_energy(p: Sequence[Array], log_W: Sequence[Array]) -> Array:
    total = np.zeros(np.broadcast_shapes(*(x.shape for x in (*p, *log_W))))
    for share, weight in zip(p, log_W, strict=True):
        # An absent pattern may have the weight 0 (rho = -1): 0 log 0 counts as 0.
        finite = np.where(share > 0, weight, 0.0)
        total = total + special.entr(share) + share * finite
    return total


def _two_layer_patterns(log_W: Sequence[Array], x1: Array, x2: Array) -> list[Array]:
    """Shares of the patterns ++, +-, -+, -- that maximise Psi at given marginals.

    With odds K and marginals a, b the share of ++ is 2 K a b/(S + R), S = 1 - (1-K)(a + b),
    R^2 = S^2 + 4 K (1-K) a b (Plackett's copula), and that of -+ is 2 (1-a) b/(T + R),
    T = K + (1-K)(1 - a + b).
    """
    with np.errstate(invalid="ignore"):
        log_odds = log_W[0] + log_W[3] - log_W[1] - log_W[2]
    # Not finite only where a marginal is 0 or 1 and fixes the shares by itself.
    log_odds = np.where(np.isfinite(log_odds), log_odds, 0.0)
    # Flip layer 2 so that K <= 1, then both layers so that a + b <= 1: all terms are positive.
    swap = log_odds > 0
    K = np.exp(-np.abs(log_odds))
    second = np.where(swap, -x2, x2)
    # Opposite infinities are the marginals 1 and 0: they sum to 1, no flip is needed.
    with np.errstate(invalid="ignore"):
        both = x1 + second > 0
    first, second = np.where(both, -x1, x1), np.where(both, -second, second)
    a, a_not = special.expit(2 * first), special.expit(-2 * first)
    b, b_not = special.expit(2 * second), special.expit(-2 * second)
    S = np.maximum(1 - (1 - K) * (a + b), 0.0)
    R = np.sqrt(S * S + 4 * K * (1 - K) * a * b)

    def share(numerator: Array, denominator: Array) -> Array:
        return np.divide(
            2 * numerator, denominator, out=np.zeros_like(denominator), where=numerator > 0
        )

    up_up = share(K * a * b, S + R)
    up_down = share(a * b_not, K + (1 - K) * (a + b_not) + R)
    down_up = share(a_not * b, K + (1 - K) * (a_not + b) + R)
    down_down = np.maximum(1 - up_up - up_down - down_up, 0.0)
    # Undo the flips, last first.
    up_up, down_down = np.where(both, down_down, up_up), np.where(both, up_up, down_down)
    up_down, down_up = np.where(both, down_up, up_down), np.where(both, up_down, down_up)
    return [
        np.where(swap, up_down, up_up),
        np.where(swap, up_up, up_down),
        np.where(swap, down_down, down_up),
        np.where(swap, down_up, down_down),
    ]


def _fit_marginals(h: Array, sigma: Array, log_W: Array, target: Array) -> Array:
    """One sweep that minimises over one field after the other, exactly."""
    h = h.copy()
    for k in range(h.size):
        exponents = log_W + sigma @ h
        up = _log_sum(exponents[sigma[:, k] > 0])
        down = _log_sum(exponents[sigma[:, k] < 0])
        h[k] += np.arctanh(target[k]) - 0.5 * (up - down)
    return h


def _dual(h: Array, sigma: Array, log_W: Array, target: Array) -> tuple[float, Array]:
    exponents = log_W + sigma @ h
    log_sum = _log_sum(exponents)
    return log_sum - float(h @ target), np.exp(exponents - log_sum)


def _log_sum(exponents: Array) -> float:
    # As scipy's logsumexp, whose overhead would dominate for these few terms.
    top = float(exponents.max())
    return top + math.log(float(np.exp(exponents - top).sum())) if top > -math.inf else top


# Its global maximum.

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
            f"q in [-1, 1]^{layers}: {2 * half + 1} points per axis uniform in arctanh q, spacing "
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
    climbs = []
    for size, signs in product(starts, product((1.0, -1.0), repeat=len(free))):
        if size < _SAME and min(signs) < 0:
            continue  # next to 0 one choice of signs is enough
        start: Array = size * np.array(signs)
        bounds = [(-_FREE, _FREE)] * len(free)
        # The default stops at a relative change of 2e-9 in Psi, a digit short of what is compared.
        result = optimize.minimize(
            loss, start, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-14, "gtol": 1e-8}
        )
        climbs.append((-float(result.fun), place(result.x)))
    return max(climbs)


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
