"""Second moment: the exponent, the exact finite-N sum, the limit of the ratio."""

import math
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from rmtheory import Chain, InvalidInputError, OutsideValidityError, Tier
from rmtheory.annealed import entropy, mean_count
from rmtheory.base.gaussian import P, r
from rmtheory.replica.eigenvalues import stability
from rmtheory.second_moment import (
    exponent,
    exponent_grid,
    finite_ratio,
    log_F,
    maximum,
    ratio_limit,
)
from rmtheory.second_moment.agreement import compositions, number_of_terms
from rmtheory.second_moment.overlap_exponent import dual_exponent, face_maximum
from rmtheory.second_moment.ratio import block_exponent

correlations = st.floats(-3, 3).map(lambda x: math.tanh(x))


# --- the exponent and its maximum


@pytest.mark.parametrize("q", [-0.7, 0.0, 0.2, 0.99])
def test_one_layer_exponent_is_the_papers(q: float) -> None:
    up = 0.5 * (1 + q)
    paper = math.log(2) - up * math.log(up) - (1 - up) * math.log(1 - up)
    paper += up * float(log_F(0.3, 0.3, q)) + (1 - up) * float(log_F(0.3, 0.3, -q))
    assert float(exponent(Chain(1, 0.3), q)) == pytest.approx(paper, abs=1e-14)


@given(
    st.floats(-0.6, 1), st.floats(-1, 1), st.floats(-1, 1), st.floats(-2, 2), st.floats(-2, 2)
)  # fmt: skip
@settings(deadline=None, max_examples=60)
def test_two_layer_closed_form_is_the_minimum_over_fields(
    jd: float, left: float, right: float, x: float, y: float
) -> None:
    chain = Chain(2, jd, lam_left=left, lam_right=right)
    q = (math.tanh(x), math.tanh(y))
    assert float(exponent(chain, q)) == pytest.approx(dual_exponent(chain, q), abs=1e-12)


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
def test_exponent_at_zero_and_at_the_corner(layers: int) -> None:
    chain = Chain.at_depth(layers, 0.2, lam_left=0.4, lam_right=0.7)
    log_z = layers * float(entropy(chain))
    assert float(exponent(chain, 0.0)) == pytest.approx(2 * log_z, abs=1e-13)
    assert float(exponent(chain, 1.0)) == pytest.approx(log_z, abs=1e-13)
    assert float(exponent(chain, -1.0)) == pytest.approx(log_z, abs=1e-13)


def test_decoupled_layers_add() -> None:
    chain, single = Chain(2, 0.2, 0), Chain(1, 0.2)
    both = float(exponent(chain, (0.3, -0.8)))
    assert both == pytest.approx(
        float(exponent(single, 0.3)) + float(exponent(single, 0.8)), abs=1e-13
    )


def test_zero_dominates_with_fixed_points_and_the_corner_without() -> None:
    for chain in (Chain(1, 0.5), Chain(1, 3), Chain(2, 0.1, 0.5)):
        result = maximum(chain)
        log_z = chain.finite_layers * float(entropy(chain))
        assert result.at_zero
        assert result.value.contains(2 * log_z)
        assert result.margin == pytest.approx(log_z, abs=1e-12)  # the corner s' = s
    for jd in (-0.05, -0.3, -1.0):
        result = maximum(Chain(1, jd))
        assert result.q == (1.0,)
        assert not result.at_zero
        assert result.value.contains(float(entropy(Chain(1, jd))))


def test_a_tie_is_reported_as_one() -> None:
    result = maximum(Chain(1, 0))
    assert result.at_zero
    assert result.margin < 1e-14
    assert result.runner_up == (1.0,)


def test_a_partial_corner_can_be_the_runner_up_and_is_not_at_zero_elsewhere() -> None:
    """With one layer clamped the other settles at q != 0, above the corner (0, 1)."""
    chain = Chain(2, 0.3, lam_left=0.4, lam_right=-0.6)
    result = maximum(chain)
    assert result.runner_up[1] == 1
    assert 0.3 < abs(result.runner_up[0]) < 0.6
    value, q = face_maximum(chain, (0, 1))
    assert value == pytest.approx(float(result.value) - result.margin, abs=1e-9)
    assert value > float(exponent(chain, (0, 1))) + 0.01
    assert abs(q[0]) == pytest.approx(abs(result.runner_up[0]), abs=1e-3)


@pytest.mark.parametrize(
    ("chain", "q"),
    [
        (Chain(2, 0.2546, lam_left=0.3, lam_right=-2), (0.9084, 1.0)),
        (Chain(2, 0.4039, lam_left=1, lam_right=-1), (0.6206, 0.6206)),
    ],
)
def test_large_overlaps_can_win_with_positive_entropy_and_a_stable_zero(
    chain: Chain, q: tuple[float, float]
) -> None:
    assert float(entropy(chain)) > 0
    assert stability(chain).stable
    result = maximum(chain)
    assert not result.at_zero
    assert result.q == pytest.approx(q, abs=1e-3)
    with pytest.raises(OutsideValidityError, match="not dominated"):
        ratio_limit(chain)
    assert float(ratio_limit(chain, check=False)) > 1


def test_climbing_finds_the_maximum_of_the_grid() -> None:
    chain = Chain(2, 0.4039, lam_left=1, lam_right=-1)
    value, q = face_maximum(chain, (0, 0), starts=(0.8,))
    assert value == pytest.approx(float(maximum(chain).value), abs=1e-10)
    assert abs(q[0]) == pytest.approx(0.6206, abs=1e-3)


def test_there_the_exact_ratio_grows_exponentially() -> None:
    chain = Chain(2, 0.2546, lam_left=0.3, lam_right=-2)
    excess = float(maximum(chain).value) - 4 * float(entropy(chain))
    small, large = (math.log(float(finite_ratio(chain, n))) for n in (150, 300))
    assert (large - small) / 150 == pytest.approx(excess, abs=0.25 * excess)


@pytest.mark.parametrize("blocks", [(1, 1), (2, 2), (1, 2), (2, 3)])
def test_block_exponent_is_the_sum_over_clamped_pairs(blocks: tuple[int, int]) -> None:
    chain = Chain(3, 0.2, lam_left=0.4, lam_right=0.7)
    total = 0.0
    for s, copy in product(product((1, -1), repeat=3), repeat=2):
        if any(s[k] != copy[k] for k in range(blocks[0] - 1, blocks[1])):
            continue
        weight = 1.0
        for k in range(3):
            v, w = (
                0.2 + (0.4 * x[k - 1] * x[k] if k else 0) + (0.7 * x[k] * x[k + 1] if k < 2 else 0)
                for x in (s, copy)
            )
            clamped = blocks[0] - 1 <= k <= blocks[1] - 1
            weight *= float(P(min(v, w))) if clamped else float(P(v) * P(w))
        total += weight
    assert block_exponent(chain, *blocks) == pytest.approx(math.log(total), abs=1e-13)


def test_exponent_refuses_nonsense() -> None:
    with pytest.raises(InvalidInputError, match="overlap"):
        exponent(Chain(1, 0), 1.2)
    with pytest.raises(InvalidInputError, match="overlap"):
        exponent(Chain(2, 0, 1), (0, math.nan))
    with pytest.raises(InvalidInputError, match="one overlap for each of 2"):
        exponent(Chain(2, 0, 1), (0, 0, 0))
    with pytest.raises(InvalidInputError, match="layers"):
        exponent(Chain("inf", 0, 1), 0)
    with pytest.raises(InvalidInputError, match="at most 6"):
        exponent(Chain(7, 0, 1), 0)
    with pytest.raises(InvalidInputError, match="1 or 2"):
        maximum(Chain(3, 0, 1))
    with pytest.raises(InvalidInputError, match="overlaps"):
        exponent_grid(Chain(1, 0), [0, 2])


# --- finite N


@pytest.mark.parametrize("jd", [-0.4, 0.0, 0.3])
def test_two_neurons_by_hand(jd: float) -> None:
    """N = 2: s' = ±s, or one spin differs and both fields have correlation -1."""
    p = float(P(jd * math.sqrt(2)))
    by_hand = (8 * p**2 + 8 * max(0, 2 * p - 1) ** 2) / (2 * p) ** 4
    assert finite_ratio(Chain(1, jd), 2).contains(by_hand)


def count_fixed_points(
    chain: Chain, n: int, samples: int, seed: int
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Z of random networks by enumeration of all configurations: the definition."""
    rng = np.random.default_rng(seed)
    layers = chain.finite_layers
    couplings = rng.normal(size=(samples, layers, n, n)) / math.sqrt(n)
    couplings *= 1 - np.eye(n)
    counts = np.zeros(samples)
    for flat in product((1.0, -1.0), repeat=layers * n):
        s = np.array(flat).reshape(layers, n)
        fields = np.einsum("alij,lj->ali", couplings, s) + chain.jd * s
        fields[:, 1:] += chain.lam_left * s[:-1]
        fields[:, :-1] += chain.lam_right * s[1:]
        counts += np.all(fields * s > 0, axis=(1, 2))
    return counts


@pytest.mark.parametrize(
    ("chain", "n"),
    [
        (Chain(1, 0.2), 4),
        (Chain(1, -0.3), 3),
        (Chain(2, 0.2, lam_left=0.7, lam_right=-0.3), 3),
        (Chain(3, 0.1, lam_left=0.4, lam_right=0.8), 2),
    ],
)
def test_finite_ratio_is_that_of_enumerated_networks(chain: Chain, n: int) -> None:
    counts = count_fixed_points(chain, n, samples=60_000, seed=7)
    second = float(finite_ratio(chain, n)) * float(mean_count(chain, n)) ** 2
    for power, exact in ((1, float(mean_count(chain, n))), (2, second)):
        sample = counts**power
        sigma = sample.std() / math.sqrt(len(sample))
        assert abs(sample.mean() - exact) < 4 * sigma


def test_the_papers_finite_sum_is_not_that_of_networks() -> None:
    """Erratum 6: correlations ±q instead of (Nq-1)/(N-1) and -(Nq+1)/(N-1)."""
    chain, n = Chain(1, 0.2), 4
    counts = count_fixed_points(chain, n, samples=60_000, seed=7)
    k = np.arange(n + 1)
    q = (2 * k - n) / n
    logs = k * log_F(0.2, 0.2, q) + (n - k) * log_F(0.2, 0.2, -q)
    paper = float(np.sum(2.0**n * special.comb(n, k) * np.exp(logs)))
    sigma = (counts**2).std() / math.sqrt(len(counts))
    assert abs((counts**2).mean() - paper) > 20 * sigma


@pytest.mark.parametrize(
    ("chain", "n"),
    [
        (Chain(1, "0.1"), 60),
        (Chain(1, "-0.3"), 20),
        (Chain(2, "0.1", "0.5"), 8),
        (Chain(2, "0.2", lam_left="0.7", lam_right="-0.3"), 5),
        (Chain(3, "0.1", "0.5"), 3),
    ],
)
def test_float_sum_against_many_digits(chain: Chain, n: int) -> None:
    precise = finite_ratio(chain, n, digits=25)
    assert precise.digits >= 25
    assert finite_ratio(chain, n).contains(precise.value)


def test_two_routes_in_mpmath_and_balls_agree() -> None:
    verified = finite_ratio(Chain(1, "0.3"), 5, digits=20, tier=Tier.VERIFIED)
    assert verified.tier is Tier.VERIFIED
    pytest.importorskip("flint")
    certified = finite_ratio(Chain(1, "0.3"), 5, digits=20)
    assert certified.tier is Tier.CERTIFIED
    assert verified.contains(certified.value)


def test_at_zero_self_coupling_one_fixed_point_on_average() -> None:
    """J_D = 0: E[Z] = 1 for every N, so the ratio is E[Z^2] itself, an integer-valued mean > 1."""
    assert float(mean_count(Chain(1, 0), 50)) == pytest.approx(1, abs=1e-14)
    assert float(finite_ratio(Chain(1, 0), 50)) > 3


def test_a_huge_ratio_is_not_an_overflow() -> None:
    value = finite_ratio(Chain(1, -30), 1000)
    assert value.digits > 5
    assert mpmath.log(value.value) > 1e5


def test_compositions_and_the_limit_on_terms() -> None:
    table = compositions(4, 3)
    assert len(table) == number_of_terms(1, 4) * 3 == 15
    assert set(table.sum(axis=1).tolist()) == {4}
    assert len({tuple(row) for row in table.tolist()}) == 15
    with pytest.raises(InvalidInputError, match=r"smaller: the sum over 3 layers .* terms"):
        finite_ratio(Chain(3, 0, 1), 200)
    with pytest.raises(InvalidInputError, match="an integer >= 2"):
        finite_ratio(Chain(1, 0), 1)
    with pytest.raises(InvalidInputError, match="layers"):
        finite_ratio(Chain("inf", 0, 1), 10)
    with pytest.raises(InvalidInputError, match="at most 6"):
        finite_ratio(Chain(7, 0, 1), 2)


# --- the limit


def test_one_layer_limit_closed_form_and_reference() -> None:
    value = ratio_limit(Chain(1, "0.1"), digits=17)
    assert float(value) == 1.2844753050570673
    for jd in (0.05, 0.5, 2.0):
        x = float(r(jd)) ** 2
        closed = math.exp(-x) / math.sqrt((1 - x) ** 2 - jd**2 * x)
        assert float(ratio_limit(Chain(1, jd))) == pytest.approx(closed, rel=1e-14)


def test_limit_at_zero_self_coupling() -> None:
    x = 2 / math.pi
    single = 2 + math.exp(-x) / (1 - x)
    assert float(ratio_limit(Chain(1, 0))) == pytest.approx(single, rel=1e-14)
    assert float(ratio_limit(Chain(3, 0, 0))) == pytest.approx(single**3, rel=1e-14)
    coarse, fine = (float(finite_ratio(Chain(1, 0), n)) for n in (1000, 2000))
    assert 2 * fine - coarse == pytest.approx(single, abs=2e-4)


def test_decoupled_limit_is_a_product() -> None:
    single = float(ratio_limit(Chain(1, 0.2)))
    assert float(ratio_limit(Chain(4, 0.2, 0))) == pytest.approx(single**4, rel=1e-14)


@pytest.mark.parametrize(
    ("chain", "sizes"),
    [
        (Chain(1, 0.3), (200, 400, 800)),
        (Chain(2, 0.3, 0.5), (50, 100, 200)),
        (Chain(2, 0.3, lam_left=0.2, lam_right=0.6), (50, 100, 200)),
        (Chain(3, 1.0, 0.3), (8, 16, 32)),
    ],
)
def test_finite_ratio_tends_to_the_limit_like_1_over_n(
    chain: Chain, sizes: tuple[int, int, int]
) -> None:
    limit = float(ratio_limit(chain))
    coarse, middle, fine = (float(finite_ratio(chain, n)) for n in sizes)
    gaps = [abs(x - limit) for x in (coarse, middle, fine)]
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[1] / gaps[2] == pytest.approx(2, abs=0.25)
    # Richardson's extrapolation; the paper's limit 1 is excluded by far.
    extrapolated = 2 * fine - middle
    assert abs(extrapolated - limit) < 0.15 * gaps[2]
    assert abs(extrapolated - 1) > 20 * abs(extrapolated - limit)


def test_limit_to_many_digits_for_several_layers() -> None:
    value = ratio_limit(Chain(5, "0.1", "0.5"), digits=40)
    assert value.digits >= 40
    assert float(value) > 1


@pytest.mark.parametrize(
    ("chain", "reason"),
    [
        (Chain(1, -0.05), "annealed entropy"),
        (Chain(1, -0.5), "annealed entropy"),
        (Chain(2, 0, lam_left=0, lam_right=0.5), "annealed entropy"),
        (Chain(3, -0.02, lam_left=0, lam_right=0.5), "annealed entropy"),
        (Chain(2, 1.4259, lam_left=2, lam_right=-2), "least eigenvalue of M"),
        (Chain(4, 1, lam_left=0.3, lam_right=-0.2), "not known for 4 layers"),
    ],
)
def test_limit_refuses_where_zero_does_not_dominate(chain: Chain, reason: str) -> None:
    with pytest.raises(OutsideValidityError, match=reason):
        ratio_limit(chain)


def test_below_zero_the_ratio_diverges_like_one_over_the_mean() -> None:
    for n in (100, 200):
        product_ = float(finite_ratio(Chain(1, -0.3), n)) * float(mean_count(Chain(1, -0.3), n))
        assert product_ == pytest.approx(2, abs=0.1)  # s' = s and s' = -s


def test_limit_refuses_infinitely_many_layers() -> None:
    with pytest.raises(InvalidInputError, match="layers"):
        ratio_limit(Chain("inf", 0.1, 0.5))
