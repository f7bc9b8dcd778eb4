r"""Large-N exponent of E[Z^2] as a function of the overlaps between the two copies.

Pairs of configurations with overlap q_l in layer l contribute exp(N Psi(q)) to E[Z^2],

.. math:: \Psi(q) = \min_h \Big[\log \sum_\sigma e^{h\cdot\sigma} W_\sigma(q) - h\cdot q\Big]
    = \max_{p: \langle\sigma_l\rangle = q_l} \Big[-\sum_\sigma p_\sigma \log p_\sigma
    + \sum_\sigma p_\sigma \log W_\sigma(q)\Big],

with W of :mod:`rmtheory.second_moment.patterns` at correlations sigma_l q_l. Psi is per site of
the whole chain (not divided by L): Psi(0) = 2 log z = 2 L S_a and Psi(±1, ..., ±1) = log z. At
L = 1 it is the paper's log 2 + H_b((1+q)/2) + (1+q)/2 log F(J_D, q) + (1-q)/2 log F(J_D, -q).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rmtheory.chain import Chain
from rmtheory.errors import InvalidInputError, NotConvergedError
from rmtheory.estimate import Estimate, Tier
from rmtheory.gaussian import Array
from rmtheory.second_moment import patterns
from rmtheory.second_moment.bivariate import LOG_ERROR

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
    """Psi for arrays of overlaps, one array a layer, broadcast against each other; L = 1 or 2.

    No minimisation is left: at L = 1 the pattern is fixed by q, and at L = 2 the odds ratio
    p_{++}p_{--}/(p_{+-}p_{-+}) = W_{++}W_{--}/(W_{+-}W_{-+}) with given marginals is a quadratic
    equation.
    """
    layers = checked_layers(chain)
    if layers > 2 or len(q) != layers:
        raise InvalidInputError("q", f"{len(q)} arrays", "one array a layer, for one or two layers")
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
    sigma = np.array(patterns.patterns(layers), dtype=float)
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
        f"the fields of Psi at q = {tuple(map(float, overlaps))} did not settle: move q off ±1"
    )


def checked_layers(chain: Chain) -> int:
    """Return the number of layers, refused where the patterns cannot be enumerated."""
    layers = chain.finite_layers
    if layers > patterns.MOST_LAYERS:
        raise InvalidInputError(
            "layers", layers, f"at most {patterns.MOST_LAYERS} for the second-moment exponent"
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
    return patterns.log_weights(couplings, agreeing, disagreeing)


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
