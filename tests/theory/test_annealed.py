"""Annealed entropy: four routes, two arithmetics, symmetries, monotonicity, limits."""

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmtheory import Chain, InvalidInputError, Tier
from rmtheory.annealed import (
    entropy,
    lam_turning_jd,
    large_lam_entropy,
    log_mean_count,
    mean_count,
    small_lam_expansion,
)

ROUTES = ("eigenvalues", "transfer-2x2", "transfer-4x4", "brute-force")

couplings = st.decimals(-4, 4, places=3).map(str)
depths = st.integers(1, 12)


def chain_of(layers: float, jd: str, left: str, right: str) -> Chain:
    return Chain.at_depth(layers, jd, lam_left=left, lam_right=right)


# Made with mpmath at 60 digits from the brute-force sum, and given in the project's theory notes.
@pytest.mark.parametrize(
    ("chain", "value"),
    [
        (Chain(1, "0.5"), "0.324200765271288916351616482415"),
        (chain_of(2, "0.3", "0.7", "0.4"), "0.232706065291064486117149244354"),
        (Chain(3, "0.1", "0.5"), "0.133864946609125896371927934769"),
    ],
)
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("tier", [Tier.CERTIFIED, Tier.VERIFIED])
def test_reference_values(chain: Chain, value: str, route: str, tier: Tier) -> None:
    result = entropy(chain, 30, route=route, tier=tier)  # type: ignore[arg-type]
    assert str(result).split(" ")[0] == value
    assert result.tier is tier


@given(depths, couplings, couplings, couplings)
def test_forty_digits_agree_between_all_routes_and_lie_in_the_balls(
    layers: int, jd: str, left: str, right: str
) -> None:
    chain = chain_of(layers, jd, left, right)
    precise = [entropy(chain, 60, route=route, tier=Tier.VERIFIED) for route in ROUTES]
    balls = [entropy(chain, 40, route=route, tier=Tier.CERTIFIED) for route in ROUTES]
    with mpmath.workdps(80):
        for a in precise:
            assert abs(a.value - precise[0].value) <= abs(a.value) * mpmath.mpf(10) ** -40
            for ball in balls:
                assert ball.contains(a.value)
                assert ball.digits >= 40 or ball.error < mpmath.mpf(10) ** -40


@given(depths | st.just(math.inf), couplings, couplings, couplings)
def test_symmetries(layers: float, jd: str, left: str, right: str) -> None:
    value = entropy(chain_of(layers, jd, left, right), 30)
    flipped = chain_of(layers, jd, str(-Fraction(left)), str(-Fraction(right)))
    swapped = chain_of(layers, jd, right, left)
    for other in (flipped, swapped):
        assert abs(entropy(other, 30).value - value.value) < mpmath.mpf(10) ** -27


def test_flipping_one_sign_is_not_a_symmetry() -> None:
    same = entropy(chain_of(2, "0.3", "0.7", "0.4"))
    opposite = entropy(chain_of(2, "0.3", "0.7", "-0.4"))
    assert same.value - opposite.value > 0.05


@given(depths | st.just(math.inf), couplings, st.integers(1, 2000), couplings, couplings)
def test_increases_with_jd(layers: float, jd: str, step: int, left: str, right: str) -> None:
    higher = str(Fraction(jd) + Fraction(step, 1000))
    low, high = (entropy(chain_of(layers, J, left, right), 30) for J in (jd, higher))
    assert high.value - low.value > high.error + low.error


@given(couplings, couplings, couplings)
def test_infinite_chain_is_the_limit_with_a_1_over_L_correction(
    jd: str, left: str, right: str
) -> None:
    infinite = entropy(chain_of(math.inf, jd, left, right), 30).value
    with mpmath.workdps(30):
        # L S_L = L log mu_+ + constant + exponentially small: two differences coincide.
        terms = [
            layers * (entropy(chain_of(layers, jd, left, right), 30).value - infinite)
            for layers in (2000, 4000)
        ]
    assert abs(terms[0] - terms[1]) < 1e-8 * (1 + abs(terms[0]))


def test_lam_zero_gives_independent_layers() -> None:
    assert entropy(Chain(7, "0.3", 0), 30).value == entropy(Chain(1, "0.3"), 30).value
    assert entropy(Chain(math.inf, "0.3", 0), 30).value == entropy(Chain(1, "0.3"), 30).value


def test_vanishes_without_couplings() -> None:
    assert entropy(Chain(1, 0), 40).contains(0.0)
    assert entropy(Chain(5, 0, 0), 40).contains(0.0)


@pytest.mark.parametrize("layers", [2, 3, 4, 5, 9, math.inf])
@pytest.mark.parametrize("jd", ["0", "0.25", "1.3"])
def test_large_lam_limit(layers: float, jd: str) -> None:
    limit = large_lam_entropy(layers, jd, 25)
    assert abs(entropy(Chain(layers, jd, 40), 25).value - limit.value) < mpmath.mpf(10) ** -24
    p = mpmath.ncdf(float(jd))
    closed = {
        2: mpmath.log(2) / 2,
        3: mpmath.log(2) / 3,
        4: mpmath.log(2 * (1 + p**2)) / 4,
        math.inf: mpmath.log(0.5 + mpmath.sqrt(0.25 + p**2)),
    }
    if layers in closed:
        assert abs(limit.value - closed[layers]) < 1e-14


@pytest.mark.parametrize("layers", [3, 5, math.inf])
def test_overshoots_its_large_lam_limit(layers: float) -> None:
    jd = "0.25"
    best = max(entropy(Chain(layers, jd, Fraction(k, 20))).value for k in range(81))
    assert best > large_lam_entropy(layers, jd).value + 1e-5


@given(st.integers(1, 9) | st.just(math.inf), couplings, couplings, couplings)
def test_small_lam_expansion_is_right_to_fourth_order(
    layers: float, jd: str, left: str, right: str
) -> None:
    coefficients = small_lam_expansion(layers, jd, 40)
    deviations = []
    with mpmath.workdps(40):
        for scale in (Fraction(1, 1000), Fraction(1, 2000)):
            a, b = Fraction(left) * scale, Fraction(right) * scale
            expansion = (
                coefficients.constant.value
                + coefficients.product.value * mpmath.mpf((a * b).numerator) / (a * b).denominator
                + coefficients.square.value
                * mpmath.mpf((a**2 + b**2).numerator)
                / (a**2 + b**2).denominator
            )
            exact = entropy(Chain.at_depth(layers, jd, lam_left=a, lam_right=b), 40).value
            deviations.append(exact - expansion)
    # Halving lambda divides an O(lambda^4) rest by 16.
    assert abs(deviations[0]) < 1e-7
    assert abs(deviations[0] - 16 * deviations[1]) <= 1e-3 * abs(deviations[0]) + 1e-30


def test_small_lam_lowers_the_entropy_beyond_the_turning_point() -> None:
    turning = lam_turning_jd()
    assert abs(turning.value - 0.506054468989) < 1e-11
    for jd, sign in ((Fraction("0.5"), 1), (Fraction("0.512"), -1)):
        change = entropy(Chain(2, jd, "0.01"), 20).value - entropy(Chain(2, jd, 0), 20).value
        assert change * sign > 0


@given(st.integers(1, 6), st.integers(2, 40), couplings, couplings, couplings)
@settings(max_examples=20)
def test_finite_size_mean_is_z_to_the_n(
    layers: int, n: int, jd: str, left: str, right: str
) -> None:
    chain = chain_of(layers, jd, left, right)
    with mpmath.workdps(40):
        sigma = mpmath.sqrt(mpmath.mpf(n - 1) / n)
        total = mpmath.mpf(0)
        for column in range(2**layers):
            spins = [0, *(1 - 2 * (column >> k & 1) for k in range(layers)), 0]
            weight = mpmath.mpf(1)
            for k in range(1, layers + 1):
                v = (
                    mpmath.mpf(jd)
                    + mpmath.mpf(left) * spins[k - 1] * spins[k] * (layers > 1)
                    + mpmath.mpf(right) * spins[k] * spins[k + 1] * (layers > 1)
                )
                weight *= mpmath.ncdf(v / sigma)
            total += weight
        assert abs(mean_count(chain, n, 30).value / total**n - 1) < mpmath.mpf(10) ** -28
        assert abs(log_mean_count(chain, n, 30).value - n * mpmath.log(total)) < 1e-25


def test_mean_count_of_sixteen_neurons() -> None:
    # Enumeration of thousands of samples gives 85.45; sigma = 1 would give 76.0.
    assert abs(mean_count(Chain(1, 0.4), 16).value - 85.4494463) < 1e-6
    assert abs(math.exp(16 * float(entropy(Chain(1, 0.4)))) - 76.0) < 0.05


def test_one_fixed_point_on_average_without_self_coupling() -> None:
    for n in (2, 5, 100):
        assert mean_count(Chain(1, 0), n, 30).contains(1.0)


def test_huge_depth_and_opposite_couplings() -> None:
    deep = entropy(Chain(10**9, "0.2", "0.5"), 40)
    assert deep.digits >= 40
    # lambda_L = -lambda_R: the two eigenvalues differ by 1e-1500 only.
    for tier in (Tier.CERTIFIED, Tier.VERIFIED):
        hard = chain_of(50, "-40", "20", "-20")
        a = entropy(hard, 40, tier=tier)
        b = entropy(hard, 40, tier=tier, route="transfer-2x2")
        assert abs(a.value - b.value) <= a.error + b.error


def test_bad_arguments() -> None:
    with pytest.raises(InvalidInputError, match="digits must be an integer from 1 to 4000, got 0"):
        entropy(Chain(1, 0.1), 0)
    with pytest.raises(InvalidInputError, match="digits must be an integer from 1 to 4000"):
        entropy(Chain(1, 0.1), 10**6)
    with pytest.raises(InvalidInputError, match="route must be one of"):
        entropy(Chain(1, 0.1), route="magic")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="at most 20 with route brute-force, got 21"):
        entropy(Chain(21, 0.1, 0.1), route="brute-force")
    with pytest.raises(InvalidInputError, match="route must be eigenvalues"):
        entropy(Chain(math.inf, 0.1, 0.1), route="transfer-2x2")
    with pytest.raises(
        InvalidInputError, match="n must be an integer from 2 to 1000000000000000, got 1"
    ):
        mean_count(Chain(1, 0.1), 1)
    with pytest.raises(InvalidInputError, match="layers must be finite for a mean count"):
        mean_count(Chain(math.inf, 0.1, 0.1), 10)
    with pytest.raises(InvalidInputError, match="tier must be certified or verified"):
        entropy(Chain(1, 0.1), tier=Tier.ESTIMATED)
    with pytest.raises(InvalidInputError, match="layers must be at least 2"):
        large_lam_entropy(1, 0.1)
