r"""E[Z^2]/E[Z]^2, exactly at finite N and in the limit: dense Gaussian couplings, no diagonal in J.

**Finite N.** With k_l agreeing sites in layer l the fields s h and s' h' of a site, of variance
(N-1)/N, have the correlation (N q - 1)/(N - 1) where the copies agree and -(N q + 1)/(N - 1) where
they do not, q = (2 k_l - N)/N; the paper prints ±q. Sites are independent given the overlaps, so

.. math:: E[Z^2] = \sum_{\{n_\sigma\}} \frac{N!}{\prod_\sigma n_\sigma!}
    \prod_\sigma W_\sigma(k)^{n_\sigma}, \qquad k_l = \sum_{\sigma: \sigma_l = 1} n_\sigma,

with the couplings divided by sigma_N = sqrt((N-1)/N) (errata 5 and 6). Every term is positive.

The sum is evaluated in float64, or to any number of digits term by term in exact counts and exact
correlations; only F is then a quadrature, rigorous in ball arithmetic.

**N -> infinity**, any finite L. Expanding the exponent and the finite-N correlations around q = 0
leaves a Gaussian sum over the overlaps of the two copies,

.. math:: \frac{E[Z^2]}{E[Z]^2} \to \frac{e^{-\mathrm{tr} D}}{\sqrt{\det C\, \det M}},

with the matrices of the replica-symmetric expansion (:mod:`rmtheory.replica.eigenvalues`); at L = 1
it is e^{-r^2}/sqrt((1-r^2)^2 - J_D^2 r^2), r = n(J_D)/P(J_D). It exceeds 1: the number of fixed
points is not self-averaging, contrary to the paper (errata 7). Where E[Z] stays finite, J_D = 0
and independent layers, the pairs s' = ±s of a layer add 2 to the factor of that layer.

The formula holds where q = 0 is the global maximum of the exponent Psi
(:mod:`rmtheory.second_moment.overlap_exponent`); elsewhere the ratio diverges, like 1/E[Z] at J_D <
0, L = 1. For long chains q = 0 is compared with pairs of configurations that coincide in a block of
adjacent layers. Clamping s' = s in layers i to j and leaving the fields of the other layers
independent gives

.. math:: \Psi \le \log \sum_{s, s': s'_l = s_l\ (i \le l \le j)} \prod_l F(v_l, v'_l; \rho_l),

rho = 1 inside the block and 0 outside: the exponent at overlaps (0..0, 1..1, 0..0) with the
agreement of the free layers unconstrained. A transfer matrix over (s_l, s'_l, s_{l+1}, s'_{l+1})
sums it for any number of layers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import mpmath
import numpy as np
from scipy import special

from rmtheory.annealed.mean_number import integer_power, transfer_2x2
from rmtheory.annealed.vectorised import entropy_array
from rmtheory.base import checks
from rmtheory.base.arithmetic import Arithmetic, MPArithmetic, determinant, evaluate
from rmtheory.base.chain import Chain
from rmtheory.base.errors import OutsideValidityError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.base.gaussian import Array, log_P
from rmtheory.replica.eigenvalues import matrices, stability
from rmtheory.second_moment.agreement import (
    Signs,
    checked_size,
    compositions,
    log_weights,
    number_of_terms,
    patterns,
    site_fields,
)
from rmtheory.second_moment.bivariate import LOG_ERROR, orthant, orthant_conditional
from rmtheory.second_moment.overlap_exponent import face_maximum, maximum

# At finite N, in float64.

#: Largest number of terms of the sum: about a minute.
MOST_TERMS = 200_000_000

_BLOCK = 1 << 18


def finite_ratio(
    chain: Chain, n: int, digits: int | None = None, *, tier: Tier | None = None
) -> Estimate:
    """Return E[Z^2]/E[Z]^2 with `n` neurons per layer.

    Parameters
    ----------
    chain : Chain
        Any number of layers for which the sum has at most 2e8 terms: N = 1000 at L = 2, N = 40 at
        L = 3.
    n : int
        Neurons per layer, at least 2.
    digits : int, optional
        Evaluate to so many digits instead of in float64; the sum may then have 20000 terms.
    tier : Tier, optional
        With `digits`: ``certified`` by balls or ``verified`` by two routes.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> print(finite_ratio(Chain(1, jd=0.1), 100))
    1.305634937313 ± 3e-12
    >>> print(finite_ratio(Chain(1, jd="0.1"), 10, digits=25))
    1.941145056928984620931946 ± 6e-25
    """
    if digits is not None or tier is not None:
        return precise_ratio(chain, n, 15 if digits is None else digits, tier=tier)
    layers, size = checked_size(chain, n, MOST_TERMS)
    log_W = _tables(chain, size)
    log_second = _log_sum_of_terms(log_W, layers, size)
    scale = math.sqrt(size / (size - 1))
    couplings = [scale * x for x in (chain.jd, chain.lam_left, chain.lam_right)]
    entropy, _ = entropy_array(layers, *couplings)
    log_first = size * layers * float(entropy)
    log_ratio = log_second - 2 * log_first
    # N L factors F and as many P, log-factorials, and the magnitude of what is subtracted.
    error = size * layers * (4 * LOG_ERROR + 4e-16 * abs(float(entropy)))
    error += 4e-16 * (4 * special.gammaln(size + 1) + 2 * abs(log_second) + 4 * abs(log_first))
    method = f"exact sum over {number_of_terms(layers, size)} agreement counts, float64"
    if abs(log_ratio) < 700:
        value = math.exp(log_ratio)
        return Estimate(value, value * math.expm1(error), Tier.ESTIMATED, method)
    large = mpmath.exp(mpmath.mpf(log_ratio))
    return Estimate(large, large * mpmath.expm1(error), Tier.ESTIMATED, method)


def _tables(chain: Chain, n: int) -> list[Array]:
    """Log W of every pattern on the grid of agreeing counts (k_1, ..., k_L)."""
    layers = chain.finite_layers
    scale = math.sqrt(n / (n - 1))
    k = np.arange(n + 1, dtype=float)
    # (1 + rho)/(1 - rho), exact ratios; absent sites (k = 0, or k = N) get any legal value.
    agreeing = np.maximum(k - 1, 0) / np.where(k < n, n - k, 1)
    agreeing[n] = np.inf
    disagreeing = np.maximum(n - k - 1, 0) / np.where(k > 0, k, 1)
    disagreeing[0] = np.inf
    axes = [tuple(-1 if j == m else 1 for j in range(layers)) for m in range(layers)]
    couplings = (scale * chain.jd, scale * chain.lam_left, scale * chain.lam_right)
    tables = log_weights(
        couplings,
        [agreeing.reshape(axis) for axis in axes],
        [disagreeing.reshape(axis) for axis in axes],
    )
    # A pattern of weight 0 (fields of correlation -1, J_D < 0) keeps a finite logarithm, so that
    # 0 sites of it count as a factor 1.
    return [np.maximum(np.broadcast_to(t, (n + 1,) * layers), -1e200) for t in tables]


def _log_sum_of_terms(log_W: list[Array], layers: int, n: int) -> float:
    """Log of the sum over all counts, by blocks with k_1 fixed.

    Flipping s' exchanges k with N - k: only k_1 >= N/2 is visited, and k_1 > N/2 counts twice.
    """
    half = 2 ** (layers - 1)
    log_factorial = special.gammaln(np.arange(n + 1) + 1.0)
    # Patterns with sigma_1 = +1 come first; the agreeing counts of the other layers are sums.
    later = np.array(patterns(layers))[:half, 1:] > 0
    flat = [t.reshape(-1) for t in log_W]
    strides = np.array([(n + 1) ** (layers - 1 - m) for m in range(1, layers)], dtype=np.int64)
    totals = []
    for k in range((n + 1) // 2, n + 1):
        upper, lower = compositions(k, half), compositions(n - k, half)
        lower_weight = -log_factorial[lower].sum(axis=1)
        lower_place = (lower @ later) @ strides
        rows = max(1, _BLOCK // len(lower))
        twice = math.log(2.0) if 2 * k > n else 0.0
        for start in range(0, len(upper), rows):
            block = upper[start : start + rows]
            place = ((block @ later) @ strides + k * (n + 1) ** (layers - 1))[:, None] + lower_place
            term = -log_factorial[block].sum(axis=1)[:, None] + lower_weight
            for m in range(half):
                term += block[:, m, None] * flat[m][place]
                term += lower[:, m] * flat[half + m][place]
            totals.append(float(special.logsumexp(term)) + twice)
    return float(special.logsumexp(totals) + log_factorial[n])


# To any number of digits.

#: Each term is a product of many-digit powers: about ten seconds.
MOST_TERMS_PRECISE = 20_000

Orthant = Callable[[Any, Any, Any, Fraction], Any]


def precise_ratio(chain: Chain, n: int, digits: int = 30, *, tier: Tier | None = None) -> Estimate:
    """Return E[Z^2]/E[Z]^2 with `n` neurons per layer, to `digits` digits.

    Parameters
    ----------
    chain : Chain
        One layer with N up to 20000, or more layers where the sum has at most 20000 terms
        (N = 47 at L = 2, N = 8 at L = 3).
    n : int
        Neurons per layer, at least 2.
    digits : int
        Significant digits wanted.
    tier : Tier, optional
        ``certified`` by balls, or ``verified`` by a second route to F.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> print(precise_ratio(Chain(1, jd="0.1"), 10, digits=25))
    1.941145056928984620931946 ± 6e-25
    """
    wanted = checks.digits(digits)
    layers, size = checked_size(chain, n, MOST_TERMS_PRECISE)

    def route(orthant_: Orthant) -> Callable[[Arithmetic], Any]:
        return lambda arithmetic: _ratio(chain, layers, size, arithmetic, orthant_)

    def conditional(arithmetic: Any, a: Any, b: Any, rho: Fraction) -> Any:
        assert isinstance(arithmetic, MPArithmetic)
        return orthant_conditional(arithmetic, a, b, rho)

    method = f"exact sum over {number_of_terms(layers, size)} agreement counts"
    return evaluate(route(orthant), route(conditional), wanted, method, tier)


def _ratio(chain: Chain, layers: int, n: int, arithmetic: Arithmetic, orthant_: Orthant) -> Any:
    sigma_n = arithmetic.sqrt(arithmetic.number(Fraction(n - 1, n)))
    jd, left, right = (arithmetic.number(x) / sigma_n for x in chain.exact)
    tables: dict[tuple[Any, ...], Any] = {}

    def factor(bonds: tuple[int, ...], sign: int, k: int) -> Any:
        """F of one layer by its products of neighbours in both copies, cached."""
        first, second = sorted([bonds[:2], bonds[2:]])
        rho = Fraction(2 * k - n - 1, n - 1) if sign > 0 else Fraction(n - 1 - 2 * k, n - 1)
        key = (first, second, rho)
        if key not in tables:
            a, b = (jd + left * x + right * y for x, y in (first, second))
            tables[key] = orthant_(arithmetic, a, b, rho)
        return tables[key]

    columns = [(1, *rest) for rest in product((1, -1), repeat=layers - 1)]
    signs = patterns(layers)
    weights: dict[tuple[Signs, tuple[int, ...]], Any] = {}

    def weight(sigma: Signs, k: tuple[int, ...]) -> Any:
        if (sigma, k) not in weights:
            total: Any = 0
            for s in columns:
                copy = tuple(x * y for x, y in zip(s, sigma, strict=True))
                bonds = zip(_bonds(s), _bonds(copy), strict=True)
                total = total + math.prod(
                    factor((*x, *y), sigma[m], k[m]) for m, (x, y) in enumerate(bonds)
                )
            weights[sigma, k] = 2 * total
        return weights[sigma, k]

    second: Any = 0
    for counts in compositions(n, len(signs)).tolist():
        k = tuple(
            sum(c for c, sigma in zip(counts, signs, strict=True) if sigma[m] > 0)
            for m in range(layers)
        )
        ways = math.factorial(n) // math.prod(map(math.factorial, counts))
        second = second + ways * math.prod(
            integer_power(weight(sigma, k), c) for c, sigma in zip(counts, signs, strict=True) if c
        )
    z = transfer_2x2(layers, jd, left, right, arithmetic.P)
    return second / integer_power(z, 2 * n)


def _bonds(s: Signs) -> list[tuple[int, int]]:
    """Products with the previous and the next spin of every layer; 0 beyond the ends."""
    left = site_fields(s, 0, 1, 0)
    right = site_fields(s, 0, 0, 1)
    return list(zip(left, right, strict=True))


# The limit N -> infinity.

# The limit.


def ratio_limit(
    chain: Chain, digits: int = 15, *, tier: Tier | None = None, check: bool = True
) -> Estimate:
    """Limit of E[Z^2]/E[Z]^2 for N -> infinity.

    Parameters
    ----------
    chain : Chain
        Any finite number of layers.
    digits : int
        Significant digits wanted.
    tier : Tier, optional
        How the formula is evaluated. That q = 0 is the global maximum is searched for in float64
        by :func:`check_zero_dominates`, so for coupled layers the answer is ``verified`` at best.
    check : bool
        Whether to check it; without, the formula is evaluated wherever it is finite.

    Raises
    ------
    OutsideValidityError
        Where another overlap dominates E[Z^2], or ties with q = 0 in coupled layers.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> print(ratio_limit(Chain(1, jd="0.1"), digits=17))
    1.2844753050570673 ± 6e-17
    >>> print(ratio_limit(Chain(1, jd=0)))  # 2 + e^(-2/pi)/(1 - 2/pi)
    3.45598953392404 ± 6e-15
    """
    wanted = checks.digits(digits)
    layers = chain.finite_layers
    jd, lam_left, lam_right = chain.exact
    decoupled = lam_left == 0 == lam_right
    single = Chain(1, jd) if decoupled else chain
    if check and not (decoupled and jd == 0):
        check_zero_dominates(single)
    power = layers if decoupled else 1
    boundary = 2 if decoupled and jd == 0 else 0

    def formula(arithmetic: Arithmetic) -> Any:
        value = _gaussian_sum(single, arithmetic) + boundary
        total = value
        for _ in range(power - 1):
            total = total * value
        return total

    value = evaluate(formula, None, wanted, "Gaussian sum over overlaps around q = 0", tier)
    if not check or single.layers == 1:
        return value
    # The digits are those of the formula; that it applies rests on a search, not on a proof.
    method = f"{value.method}; that q = 0 dominates was searched for in float64"
    return Estimate(value.value, value.error, Tier.VERIFIED, method)


def second_moment_ratio(
    chain: Chain, n: int | None = None, digits: int | None = None, *, tier: Tier | None = None
) -> Estimate:
    r"""Return E[Z^2]/E[Z]^2 of the number Z of fixed points, for N neurons per layer or N -> inf.

    The ratio says whether Z is self-averaging: it exceeds 1 also as N -> infinity.

    Parameters
    ----------
    chain : Chain
        Any finite number of layers; at finite N the sum may have at most 2e8 terms (N = 1000 for
        two layers, N = 40 for three).
    n : int, optional
        Neurons per layer, N >= 2; the limit N -> infinity by default.
    digits : int, optional
        Significant digits wanted; by default 15 for the limit, and float64 at finite N.
    tier : Tier, optional
        ``certified`` by balls or ``verified`` by two routes.

    Raises
    ------
    OutsideValidityError
        For the limit, where another overlap than q = 0 dominates E[Z^2]: the ratio diverges there.

    See Also
    --------
    rmtheory.second_moment.finite_ratio, rmtheory.second_moment.ratio_limit

    Examples
    --------
    >>> import rmtheory as rt
    >>> print(rt.second_moment_ratio(rt.Chain(1, jd=0.1), n=100))
    1.305634937313 ± 3e-12
    >>> print(rt.second_moment_ratio(rt.Chain(1, jd="0.1")))
    1.28447530505707 ± 6e-15
    """
    if n is None:
        return ratio_limit(chain, 15 if digits is None else digits, tier=tier)
    return finite_ratio(chain, n, digits, tier=tier)


def _gaussian_sum(chain: Chain, arithmetic: Arithmetic) -> Any:
    forms = matrices(chain, arithmetic)
    trace = sum(forms.D[k][k] for k in range(len(forms.D)))
    return arithmetic.exp(-trace) / arithmetic.sqrt(forms.det_C * determinant(forms.M))


# Is q = 0 the global maximum of the exponent?

#: All faces of the cube of overlaps are climbed up to here; beyond, blocks of layers are clamped.
_ALL_FACES = 3

#: Margin, per site, below which q = 0 cannot be distinguished from a competitor.
_MARGIN = 1e-9


def check_zero_dominates(chain: Chain) -> None:
    """Raise OutsideValidityError unless q = 0 is the global maximum of the exponent.

    S_a > 0 (against s' = ±s) and M > 0 (against small overlaps) do not suffice: with couplings of
    opposite signs a maximum at large overlaps can win where both hold, e.g. at (0.91, 1) for
    L = 2, J_D = 0.2546, lambda_L = 0.3, lambda_R = -2. Checked besides: for L <= 2 a grid over all
    overlaps; for L = 3 the faces with some layers at q = ±1 and the others climbing, from 0 and,
    with opposite signs, also from large overlaps and without a clamped layer; for larger L and
    couplings of one sign all blocks of adjacent layers at q = 1, independent layers elsewhere.
    """
    layers = chain.finite_layers
    entropy, error = entropy_array(layers, chain.jd, chain.lam_left, chain.lam_right)
    if not entropy > error + _MARGIN:
        raise OutsideValidityError(
            f"the ratio E[Z^2]/E[Z]^2 has this limit only where the annealed entropy is positive; "
            f"{chain} has S_a = {float(entropy):.3g}, and pairs s' = ±s are not negligible"
        )
    least = float(stability(chain, 6).eigenvalues[0])
    if not least > 0:
        raise OutsideValidityError(
            f"q = 0 is not a maximum of the second-moment exponent of {chain}: the least "
            f"eigenvalue of M is {least:.3g}"
        )
    margin, where = _best_competitor(chain, 2 * layers * float(entropy))
    if not margin > _MARGIN:
        raise OutsideValidityError(
            f"E[Z^2] of {chain} is not dominated by q = 0: overlaps {where} have the larger or "
            f"equal exponent (by {-margin:.3g} per site), so the ratio has no such limit"
        )


def _best_competitor(chain: Chain, at_zero: float) -> tuple[float, str]:
    """Psi(0) minus the largest exponent elsewhere, and where that is."""
    layers = chain.finite_layers
    if layers <= 2:
        largest = maximum(chain)
        if not largest.at_zero:
            return -largest.margin, _shown(largest.q)
        return largest.margin, _shown(largest.runner_up)
    frustrated = chain.lam_left * chain.lam_right < 0
    if layers > _ALL_FACES and frustrated:
        raise OutsideValidityError(
            f"whether q = 0 dominates E[Z^2] is not known for {layers} layers with couplings of "
            f"opposite signs; check=False evaluates the formula all the same"
        )
    if layers > _ALL_FACES:
        value, block = block_corners(chain)
        return at_zero - value, f"1 in layers {block[0]} to {block[1]}"
    faces = [
        signs
        for signs in product((0, 1, -1), repeat=layers)
        # One of each pair ±q.
        if next((s for s in signs if s), 0) > 0
    ]
    starts = (1e-3, 0.8) if frustrated else (1e-3,)
    climbs = [face_maximum(chain, face, starts) for face in faces]
    if frustrated:
        inside = face_maximum(chain, (0,) * layers, starts=(0.8,))
        if max(map(abs, inside[1])) > 1e-2:  # else it fell back to 0
            climbs.append(inside)
    value, q = max(climbs)
    return at_zero - value, _shown(q)


def _shown(q: tuple[float, ...]) -> str:
    return "(" + ", ".join(f"{x:.3g}" for x in q) + ")"


# Pairs that coincide in a block of layers.


def block_corners(chain: Chain) -> tuple[float, tuple[int, int]]:
    """Largest exponent over all blocks shorter than the chain, and the block (from 1)."""
    layers = chain.finite_layers
    best, where = -np.inf, (1, 1)
    for first in range(1, layers + 1):
        for last in range(first, layers + 1):
            if last - first + 1 < layers:
                value = block_exponent(chain, first, last)
                if value > best:
                    best, where = value, (first, last)
    return best, where


def block_exponent(chain: Chain, first: int, last: int) -> float:
    """Exponent of pairs that coincide in layers `first` to `last`, counted from 1."""
    layers = chain.finite_layers
    inside = [first <= k <= last for k in range(1, layers + 1)]
    tau = np.array([1.0, -1.0])
    # message[s s', tau, tau'] of everything up to layer l, given sigma_{l+1} and the bond to it;
    # layer 1 has no left neighbour.
    sigma = 0  # index 0: sigma = +1, index 1: sigma = -1
    message = np.full((2, 2, 2), -np.inf)
    for sigma in (0, 1):
        if inside[0] and sigma == 1:
            continue
        log_f = _log_factor(chain, inside[0], np.zeros(1), _ends(tau, layers == 1))
        message[sigma] = log_f[0, 0]
    for k in range(1, layers):
        final = k == layers - 1
        log_f = _log_factor(chain, inside[k], tau, _ends(tau, final))
        new = np.full((2, *log_f.shape[2:]), -np.inf)
        for sigma in (0, 1):
            if inside[k] and sigma == 1:
                continue
            for left in (0, 1):
                for left_copy in (0, 1):
                    # sigma_l = sigma_{l-1} tau tau'
                    previous = sigma ^ left ^ left_copy
                    new[sigma] = np.logaddexp(
                        new[sigma], message[previous, left, left_copy] + log_f[left, left_copy]
                    )
        message = new
    return float(np.log(2.0) + np.logaddexp.reduce(message.reshape(-1)))


def _ends(tau: Array, final: bool) -> Array:
    return np.zeros(1) if final else tau


def _log_factor(chain: Chain, clamped: bool, left: Array, right: Array) -> Array:
    """Log F of one layer, indexed by (left bond, its copy, right bond, its copy)."""
    v = chain.jd + chain.lam_left * left[:, None] + chain.lam_right * right
    first, second = v[:, None, :, None], v[None, :, None, :]
    if clamped:
        return log_P(np.minimum(first, second))
    return np.asarray(log_P(first) + log_P(second))
