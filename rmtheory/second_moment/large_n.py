r"""The limit of E[Z^2]/E[Z]^2 as N -> infinity, any finite L.

Expanding the exponent and the finite-N correlations around q = 0 leaves a Gaussian sum over the
overlaps of the two copies,

.. math:: \frac{E[Z^2]}{E[Z]^2} \to \frac{e^{-\mathrm{tr} D}}{\sqrt{\det C\, \det M}},

with the matrices of the replica-symmetric expansion (:mod:`rmtheory.replica.eigenvalues`); at L = 1
it is e^{-r^2}/sqrt((1-r^2)^2 - J_D^2 r^2), r = n(J_D)/P(J_D). It exceeds 1: the number of fixed
points is not self-averaging, contrary to the paper (errata 7). Where E[Z] stays finite, J_D = 0
and independent layers, the pairs s' = ±s of a layer add 2 to the factor of that layer.

The formula holds where q = 0 is the global maximum of the exponent Psi
(:mod:`rmtheory.second_moment.maximum`); elsewhere the ratio diverges, like 1/E[Z] at J_D < 0, L =
1. For long chains q = 0 is compared with pairs of configurations that coincide in a block of
adjacent layers. Clamping s' = s in layers i to j and leaving the fields of the other layers
independent gives

.. math:: \Psi \le \log \sum_{s, s': s'_l = s_l\ (i \le l \le j)} \prod_l F(v_l, v'_l; \rho_l),

rho = 1 inside the block and 0 outside: the exponent at overlaps (0..0, 1..1, 0..0) with the
agreement of the free layers unconstrained. A transfer matrix over (s_l, s'_l, s_{l+1}, s'_{l+1})
sums it for any number of layers.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from rmtheory.annealed import entropy_array
from rmtheory.base import checks
from rmtheory.base.arithmetic import Arithmetic, determinant, evaluate
from rmtheory.base.chain import Chain
from rmtheory.base.errors import OutsideValidityError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.base.gaussian import Array, log_P
from rmtheory.replica.eigenvalues import matrices, stability
from rmtheory.second_moment.finite_size import finite_ratio
from rmtheory.second_moment.overlap_exponent import face_maximum, maximum

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
