r"""The limit of E[Z^2]/E[Z]^2 as N -> infinity, any finite L.

Expanding the exponent and the finite-N correlations around q = 0 leaves a Gaussian sum over the
overlaps of the two copies,

.. math:: \frac{E[Z^2]}{E[Z]^2} \to \frac{e^{-\mathrm{tr} D}}{\sqrt{\det C\, \det M}},

with the matrices of the replica-symmetric expansion (:mod:`rmtheory.replica.stability`); at L = 1
it is e^{-r^2}/sqrt((1-r^2)^2 - J_D^2 r^2), r = n(J_D)/P(J_D). It exceeds 1: the number of fixed
points is not self-averaging, contrary to the paper (errata 7). Where E[Z] stays finite, J_D = 0
and independent layers, the pairs s' = ±s of a layer add 2 to the factor of that layer.

The formula holds where q = 0 is the global maximum of the exponent Psi; elsewhere the ratio
diverges, like 1/E[Z] at J_D < 0, L = 1.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from rmtheory import checks
from rmtheory.annealed import entropy_array
from rmtheory.arithmetic import Arithmetic, evaluate
from rmtheory.chain import Chain
from rmtheory.errors import OutsideValidityError
from rmtheory.estimate import Estimate, Tier
from rmtheory.replica.linear import determinant
from rmtheory.replica.stability import matrices, stability
from rmtheory.second_moment.corners import block_corners
from rmtheory.second_moment.maximiser import face_maximum, maximum

#: All faces of the cube of overlaps are climbed up to here; beyond, blocks of layers are clamped.
_ALL_FACES = 3

#: Margin, per site, below which q = 0 is not told from a competitor.
_MARGIN = 1e-9


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
            f"equal exponent (by {-margin:.3g} a site), so the ratio has no such limit"
        )


def _best_competitor(chain: Chain, at_zero: float) -> tuple[float, str]:
    """Psi(0) minus the largest exponent found elsewhere, and where that is."""
    layers = chain.finite_layers
    if layers <= 2:
        found = maximum(chain)
        if not found.at_zero:
            return -found.margin, _shown(found.q)
        return found.margin, _shown(found.runner_up)
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


def _gaussian_sum(chain: Chain, arithmetic: Arithmetic) -> Any:
    forms = matrices(chain, arithmetic)
    trace = sum(forms.D[k][k] for k in range(len(forms.D)))
    return arithmetic.exp(-trace) / arithmetic.sqrt(forms.det_C * determinant(forms.M))
