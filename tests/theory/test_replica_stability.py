"""Replica-symmetric stability: M for any L against closed forms and brute-force averages."""

from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmtheory import Chain, InvalidInputError, NotConvergedError, Tier
from rmtheory.base.arithmetic import MPArithmetic
from rmtheory.replica import eigenvalues as theory
from rmtheory.replica.eigenvalues import chain_averages

pytestmark = pytest.mark.numerical

couplings = st.decimals(-3, 3, places=2).map(str)


@given(st.integers(1, 6), couplings, couplings, couplings)
@settings(max_examples=25)
def test_chain_averages_against_brute_force(layers: int, jd: str, left: str, right: str) -> None:
    chain = Chain.at_depth(layers, jd, lam_left=left, lam_right=right)
    numbers = MPArithmetic(30)
    result = chain_averages(chain, numbers)
    spins = np.array(list(product((1, -1), repeat=layers)))
    padded = np.pad(spins, ((0, 0), (1, 1)))
    with mpmath.workdps(30):
        v = [
            [
                mpmath.mpf(jd)
                + (layers > 1)
                * (
                    mpmath.mpf(left) * int(s[k] * s[k + 1])
                    + mpmath.mpf(right) * int(s[k + 1] * s[k + 2])
                )
                for k in range(layers)
            ]
            for s in padded
        ]
        weights = [mpmath.fprod(mpmath.ncdf(x) for x in row) for row in v]
        ratios = [[mpmath.npdf(x) / mpmath.ncdf(x) for x in row] for row in v]
        z = mpmath.fsum(weights)

        def mean(values: list[mpmath.mpf]) -> mpmath.mpf:
            return mpmath.fsum(w * x for w, x in zip(weights, values, strict=True)) / z

        for a in range(layers):
            for b in range(layers):
                pair = [int(s[a] * s[b]) for s in spins]
                assert abs(result.ss[a][b] - mean(pair)) < 1e-25
                one = [p * r[b] for p, r in zip(pair, ratios, strict=True)]
                assert abs(result.ssr[a][b] - mean(one)) < 1e-25
                if a == b:
                    two = [x[a] * r[a] for x, r in zip(v, ratios, strict=True)]
                else:
                    two = [p * r[a] * r[b] for p, r in zip(pair, ratios, strict=True)]
                assert abs(result.ssrr[a][b] - mean(two)) < 1e-25


def core_coefficient(J: mpmath.mpf) -> mpmath.mpf:
    """Coefficient of q^2 at L = 1 in closed form, (1/4) [(1 - r^2)^2 - J^2 r^2]."""
    r = mpmath.npdf(J) / mpmath.ncdf(J)
    return ((1 - r**2) ** 2 - J**2 * r**2) / 4


def pair_coefficient(J: mpmath.mpf, lam: mpmath.mpf) -> mpmath.mpf:
    """Coefficient of q^2 at L = 2 in the compact closed form of the symmetric mode."""
    v = {tau: J + lam * tau for tau in (1, -1)}
    w = {tau: mpmath.ncdf(x) ** 2 for tau, x in v.items()}
    r = {tau: mpmath.npdf(x) / mpmath.ncdf(x) for tau, x in v.items()}

    def mean(f: object) -> mpmath.mpf:
        return sum(w[t] * f(t) for t in (1, -1)) / (w[1] + w[-1])  # type: ignore[operator]

    return (
        (1 - mean(lambda t: r[t]) ** 2 - mean(lambda t: t * r[t]) ** 2) ** 2
        / (1 + mean(lambda t: t) ** 2)
        - mean(lambda t: v[t] * r[t]) ** 2
        - mean(lambda t: t * r[t] ** 2) ** 2
    ) / 4


@given(couplings, couplings)
def test_closed_forms_of_one_and_two_layers(jd: str, lam: str) -> None:
    with mpmath.workdps(40):
        J, x = mpmath.mpf(jd), mpmath.mpf(lam)
        one = theory.stability(Chain(1, jd), 25, tier=Tier.VERIFIED)
        two = theory.stability(Chain(2, jd, lam), 25, tier=Tier.VERIFIED)
        assert abs(one.coefficient.value - core_coefficient(J)) < mpmath.mpf(10) ** -24
        assert abs(two.coefficient.value - pair_coefficient(J, x)) < mpmath.mpf(10) ** -24


def test_reference_coefficient() -> None:
    # From the project's theory notes: two derivations of the L = 2 ratio A/B.
    result = theory.stability(Chain(2, "0.1", "0.5"), 25)
    assert str(result.coefficient).startswith("0.06790235895619553526494295 ±")
    assert result.stable


@given(st.integers(1, 7), couplings, couplings, couplings)
@settings(max_examples=15)
def test_certified_and_verified_eigenvalues_agree_with_numpy(
    layers: int, jd: str, left: str, right: str
) -> None:
    chain = Chain.at_depth(layers, jd, lam_left=left, lam_right=right)
    certified = theory.stability(chain, 20, tier=Tier.CERTIFIED)
    verified = theory.stability(chain, 20, tier=Tier.VERIFIED)
    M = np.array([[float(x) for x in row] for row in theory.matrices(chain, MPArithmetic(30)).M])
    for a, b, c in zip(
        certified.eigenvalues, verified.eigenvalues, np.linalg.eigvalsh(M), strict=True
    ):
        assert abs(a.value - b.value) <= a.error + b.error
        assert abs(a.value - c) < 1e-11 * (1 + np.abs(M).max())


def test_independent_layers_share_one_eigenvalue() -> None:
    result = theory.stability(Chain(4, "0.1", 0), 20).eigenvalues
    assert all(abs(e.value - result[0].value) <= e.error + result[0].error for e in result)


@pytest.mark.parametrize("tier", [Tier.CERTIFIED, Tier.VERIFIED])
def test_root_of_the_core_module(tier: Tier) -> None:
    root = theory.instability_root(30, tier=tier)
    assert str(root).split(" ")[0] == "-0.178357650045906098369685377933"
    with mpmath.workdps(40):
        r = mpmath.npdf(root.value) / mpmath.ncdf(root.value)
        assert abs(r * (r - root.value) - 1) < mpmath.mpf(10) ** -29
    assert theory.stability(Chain(1, "-0.1783"), 10).stable
    assert not theory.stability(Chain(1, "-0.1784"), 10).stable


def test_the_sign_is_never_guessed() -> None:
    at_root = str(theory.instability_root(60)).split(" ")[0]
    with pytest.raises(NotConvergedError, match="ask for more digits"):
        theory.stability(Chain(1, at_root), 3)


def test_bad_input() -> None:
    with pytest.raises(InvalidInputError, match="layers must be finite"):
        theory.stability(Chain("inf", 0.1, 0.1))
    with pytest.raises(InvalidInputError, match="layers must be at most 64"):
        theory.stability(Chain(65, 0.1, 0.1))


@pytest.mark.parametrize("lam", [8, 12, 40])
@pytest.mark.parametrize("tier", [Tier.CERTIFIED, Tier.VERIFIED])
def test_strong_couplings_keep_their_digits(lam: int, tier: Tier) -> None:
    # C is singular to hundreds of digits there; locked layers behave as one with M = 1/3 a mode.
    result = theory.stability(Chain(3, 0, lam), 15, tier=tier)
    assert all(eigenvalue.digits >= 15 for eigenvalue in result.eigenvalues)
    assert abs(result.eigenvalues[0].value - 1 / 3) < 1e-14
