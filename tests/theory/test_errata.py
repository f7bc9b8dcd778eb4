"""One decisive check for each misprint of SM-A and SM-B; the page 'Errata' of the docs names them.

The referee is always the definition: enumerated fixed points of sampled networks, a sum or an
integral written out, or a case small enough for a closed form.
"""

import math
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from rmtheory import Chain
from rmtheory.annealed import entropy, lam_turning_jd, log_mean_count, mean_count
from rmtheory.annealed.mean_number import brute_force, site_fields, transfer_4x4
from rmtheory.base.gaussian import P, n
from rmtheory.dynamics.exact_steps import convergence_bound
from rmtheory.local_entropies.broken_branch import q0_loss
from rmtheory.local_entropies.points import local_entropy, ystar
from rmtheory.second_moment import finite_ratio, ratio_limit
from rmtheory.second_moment.overlap_exponent import exponent

Counts = NDArray[np.float64]


def _count_fixed_points(chain: Chain, n: int, samples: int, seed: int) -> Counts:
    """Number of fixed points of each of `samples` networks, all states tried one by one."""
    rng = np.random.default_rng(seed)
    L = chain.finite_layers
    J = rng.normal(0, 1 / math.sqrt(n), (samples, L, n, n)) * (1 - np.eye(n))
    states = np.array(list(product((-1, 1), repeat=n)))
    total = np.zeros(samples)
    for choice in product(range(len(states)), repeat=L):
        s = states[list(choice)]
        padded = np.vstack([np.zeros((1, n)), s, np.zeros((1, n))])
        drive = chain.jd + s * (chain.lam_left * padded[:-2] + chain.lam_right * padded[2:])
        field = s * np.einsum("slij,lj->sli", J, s) + drive
        total += np.all(field > 0, axis=(1, 2))
    return total


def _mean_and_error(values: Counts) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


def _p(x: float) -> float:
    return float(P(x))


def test_erratum_1_products_end_at_L() -> None:
    chain, size = Chain(2, jd=0.3, lam_left=0.7, lam_right=0.4), 3
    counted, error = _mean_and_error(_count_fixed_points(chain, size, 4000, seed=1))
    sigma = math.sqrt((size - 1) / size)
    couplings = (chain.jd / sigma, chain.lam_left / sigma, chain.lam_right / sigma)
    printed = sum(  # the product of the paper stops before the last layer
        math.prod(_p(v) for v in site_fields(s, *couplings)[:-1])
        for s in product((-1, 1), repeat=2)
    )
    assert abs(counted - float(mean_count(chain, size))) < 4 * error
    assert abs(counted - printed**size) > 20 * error


@pytest.mark.parametrize("layers", [2, 3, 6])
def test_erratum_2_either_log_2_or_the_sum_over_the_first_spin(layers: int) -> None:
    couplings = (0.1, 0.5, 0.2)
    z = brute_force(layers, *couplings, _p)
    weights = {
        s: math.prod(_p(v) for v in site_fields(s, *couplings))
        for s in product((-1, 1), repeat=layers)
    }
    first_up = sum(weight for s, weight in weights.items() if s[0] == 1)
    assert 2 * first_up == pytest.approx(z, rel=1e-14)  # the printed f_1
    assert 2 * sum(weights.values()) == pytest.approx(2 * z, rel=1e-14)  # the printed f_k
    assert transfer_4x4(layers, *couplings, _p) == pytest.approx(z, rel=1e-14)


@pytest.mark.parametrize("layers", [2, 3, 10, math.inf])
def test_erratum_3_entropy_can_decrease_with_lambda(layers: float) -> None:
    without, coupled = (entropy(Chain(layers, jd=1, lam=lam)) for lam in (0, "0.5"))
    assert coupled.value + coupled.error < without.value - without.error
    # ... from the smallest lambda on once J_D exceeds 0.506, and not below it
    turning = lam_turning_jd().value
    for side in (-1, 1):
        jd = float(turning) + side * 0.01
        change = (
            entropy(Chain(layers, jd, lam="0.001"), 20).value
            - entropy(Chain(layers, jd, lam=0), 20).value
        )
        assert math.copysign(1, change) == -side


def test_erratum_4_log_2_needs_jd_beyond_lambda() -> None:
    def limit(layers: int, jd: int, lam: int) -> float:
        return float(entropy(Chain(layers, jd, lam)))

    log2 = math.log(2)
    assert limit(2, 40, 40) == pytest.approx(math.log(5 / 2) / 2, abs=1e-12)  # not log 2
    assert limit(2, 50, 40) == pytest.approx(log2, abs=1e-12)
    assert limit(3, 50, 40) == pytest.approx(math.log(6) / 3, abs=1e-12)  # J - 2 lambda < 0
    assert limit(3, 90, 40) == pytest.approx(log2, abs=1e-12)


@pytest.mark.parametrize("jd", [-0.5, 0.1, 1.0])
def test_erratum_5_mean_count_keeps_a_finite_factor(jd: float) -> None:
    size = 10**7
    chain = Chain(1, jd)
    excess = log_mean_count(chain, size, 30).value - size * entropy(chain, 30).value
    assert float(excess) == pytest.approx(jd * float(n(jd)) / _p(jd) / 2, rel=1e-5)


def test_erratum_6_second_moment_at_finite_n() -> None:
    # Two neurons: Z = 2 [J12, J21 > -J] + 2 [J12, J21 < J], so E Z^2 = 8 [p^2 + (2p - 1)^2].
    for jd in (0.0, 0.3, 1.2):
        p = _p(jd * math.sqrt(2))
        exact = 8 * (p**2 + (2 * p - 1) ** 2)
        assert float(finite_ratio(Chain(1, jd), 2)) * (2 * p) ** 4 == pytest.approx(
            exact, rel=1e-10
        )
        # The printed sum: overlaps q = -1, 0, 1 with F(J, 1) = P(J), F(J, 0) = P(J)^2.
        printed = 8 * (_p(jd) ** 2 + _p(jd) ** 4)
        assert abs(printed / exact - 1) > 0.005
    assert 8 * (0.5**2 + 0.5**4) == 2.5  # printed at J = 0, where exactly 2 is right
    counts = _count_fixed_points(Chain(1, 0.3), 5, 20_000, seed=6)
    second, error = _mean_and_error(counts**2)
    mean = float(mean_count(Chain(1, 0.3), 5))
    assert abs(second - float(finite_ratio(Chain(1, 0.3), 5)) * mean**2) < 4 * error


def test_erratum_7_relative_variance_stays_finite() -> None:
    jd = 0.1
    r = float(n(jd)) / _p(jd)
    limit = math.exp(-(r**2)) / math.sqrt((1 - r**2) ** 2 - (jd * r) ** 2)
    assert limit == pytest.approx(1.2844753050570673, rel=1e-14)
    assert float(ratio_limit(Chain(1, jd))) == pytest.approx(limit, rel=1e-13)
    distances = [abs(float(finite_ratio(Chain(1, jd), size)) - limit) for size in (200, 400, 800)]
    assert distances[-1] < 0.01  # and far from 1
    assert distances[0] > distances[1] > distances[2]


def test_erratum_8_fixed_points_at_zero_self_coupling() -> None:
    for size in (2, 5, 100):
        assert float(mean_count(Chain(1, 0), size)) == pytest.approx(1, rel=1e-14)
    # Two neurons have fixed points when J12 and J21 agree in sign: half of the networks.
    for size in (2, 4, 8):
        counts = _count_fixed_points(Chain(1, 0), size, 2000, seed=8)
        mean, error = _mean_and_error(counts)
        assert abs(mean - 1) < 4 * error
        some = np.mean(counts > 0)
        assert some > 0.3
        if size == 2:
            assert abs(some - 0.5) < 4 * math.sqrt(0.25 / 2000)


def _rs_functional(jd: float, q: float, qhat: float) -> float:
    """S_rs of one layer by Gauss-Hermite quadrature over t and z, as the paper defines it."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    t, z = nodes[:, None], nodes[None, :]
    weight = np.outer(weights, weights) / (2 * math.pi)
    root, width = math.sqrt(q), math.sqrt(1 - q)
    zeta = sum(np.exp(s * math.sqrt(qhat) * t) * P((jd + s * root * z) / width) for s in (-1, 1))
    return 0.5 * qhat * (q - 1) + float(np.sum(weight * np.log(zeta)))


@pytest.mark.parametrize("jd", [0.1, 0.5])
def test_errata_9_and_10_maximum_in_qhat_and_coefficient_of_q2(jd: float) -> None:
    q = 0.02
    r = float(n(jd)) / _p(jd)
    qhat = q * (1 - r**2)
    top = _rs_functional(jd, q, qhat)
    assert top > max(_rs_functional(jd, q, 0.8 * qhat), _rs_functional(jd, q, 1.2 * qhat))
    gain = top - math.log(2 * _p(jd))
    right = ((1 - r**2) ** 2 - (jd * r) ** 2) / 4 * q**2
    printed = 1 / 4 + r**4 / 4 - (2 + jd**2) * r**2 / 4  # no q^2
    assert gain == pytest.approx(right, rel=0.1)
    assert printed * q**2 == pytest.approx(right, rel=1e-12)  # with q^2 the printed one is right
    assert abs(gain - printed) > 100 * gain


def test_erratum_11_zeta_of_two_layers() -> None:
    jd, left, right = 0.3, 0.7, 0.4

    def zeta(second: float) -> float:
        """The four terms at q = qhat = 0, with the field of the first layer for s1 = -s2 = -1."""
        aligned = _p(jd + right) * _p(jd + left)
        return 2 * aligned + (second + _p(jd - right)) * _p(jd - left)

    z = brute_force(2, jd, left, right, _p)
    assert zeta(_p(jd - right)) == pytest.approx(z, rel=1e-14)
    assert abs(zeta(_p(jd / right)) - z) > 0.05  # "-J_D / lambda_R" as printed
    # One replica knows nothing of q: its field has variance 1, unless a Delta is left over.
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    q = 0.3
    for delta, variance in ((0.0, 1.0), (0.2, 1.2)):
        shifted = P((jd + math.sqrt(q + delta) * nodes) / math.sqrt(1 - q))
        average = float(np.sum(weights * shifted)) / math.sqrt(2 * math.pi)
        assert average == pytest.approx(_p(jd / math.sqrt(variance)), rel=1e-9)


@pytest.mark.parametrize("spins", [(1, 1), (1, -1)])
def test_erratum_12_pairs_of_replicas_are_counted_once(spins: tuple[int, int]) -> None:
    qhat = 0.4
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    integral = np.sum(weights * np.exp(math.sqrt(qhat) * nodes * sum(spins))) / math.sqrt(
        2 * math.pi
    )
    gaussian = math.exp(-len(spins) * qhat / 2) * float(integral)
    pair = qhat * spins[0] * spins[1]
    assert gaussian == pytest.approx(math.exp(pair), rel=1e-12)  # sum over a < b
    over_all = sum(qhat * a * b for a in spins for b in spins)
    assert abs(gaussian - math.exp(over_all)) > 0.1


def test_erratum_13_the_replica_limit_divides_by_n() -> None:
    counts = _count_fixed_points(Chain(1, 1.5), 5, 300, seed=13)
    counts = counts[counts > 0]
    quenched = float(np.mean(np.log(counts)))
    replicas = 1e-7
    log_moment = math.log(float(np.mean(counts**replicas)))
    assert log_moment / replicas == pytest.approx(quenched, rel=1e-5)
    assert abs(log_moment) < 1e-6 < quenched  # as printed, without 1/n, the limit is 0


@pytest.mark.parametrize(
    "chain",
    [Chain(1, 0.1), Chain(1, 0.5), Chain(2, 0.05, 0.3), Chain(2, 0.1, lam_left=0.6, lam_right=0.2)],
)
def test_erratum_14_the_formula_gives_phi_and_not_y_phi(chain: Chain) -> None:
    # Two replicas at overlap q1 are counted by E[Z^2], whose exponent knows nothing of all this.
    d, y = 0.1, 2
    pairs = float(exponent(chain, 1 - 2 * d)) / chain.finite_layers
    phi = float(local_entropy(chain, d, y).phi)
    assert y * phi == pytest.approx(pairs, rel=1e-9)
    assert abs(phi - pairs) > 0.01  # the printed left side: y phi in place of phi


def test_erratum_14_without_constraints() -> None:
    # J_D -> infinity: any pair of configurations at distance d counts.
    d = 0.15
    pairs = math.log(2) - d * math.log(d) - (1 - d) * math.log(1 - d)
    assert 2 * float(local_entropy(Chain(1, 40), d, 2).phi) == pytest.approx(pairs, rel=1e-10)


def test_erratum_15_the_internal_entropy_is_minus_the_energy() -> None:
    # One network of eight neurons, all references, neighbours at two flips: the definitions.
    size, y, step = 8, 1.7, 1e-5
    J = np.random.default_rng(15).normal(0, 1 / math.sqrt(size), (size, size))
    np.fill_diagonal(J, 1.0)
    states = np.array(list(product((-1, 1), repeat=size)))
    fixed = states[np.all(states * (states @ J.T) > 0, axis=1)]
    neighbours = np.sum(states @ fixed.T == size - 4, axis=1)
    energy = -np.log(neighbours[neighbours > 0]) / size

    def y_Phi(y: float) -> float:
        return -math.log(np.sum(np.exp(-y * size * energy))) / size

    internal = -(y_Phi(y + step) - y_Phi(y - step)) / (2 * step)  # as printed
    mean_energy = np.average(energy, weights=np.exp(-y * size * energy))
    assert len(set(neighbours)) > 3
    assert internal == pytest.approx(-mean_energy, rel=1e-7)  # "= <E>" would be negative
    assert internal > 0.1


@pytest.mark.parametrize("y", [1.5, 4.0])
def test_erratum_16_the_sign_of_lambda_is_a_gauge(y: float) -> None:
    plus, minus = (local_entropy(Chain(2, 0.1, lam), 0.1, y) for lam in (0.4, -0.4))
    for name in ("phi", "internal", "external"):
        one, other = getattr(plus, name), getattr(minus, name)
        assert abs(float(one) - float(other)) <= float(one.error) + float(other.error) + 1e-13
    # ... of both couplings together, not of one: s -> -s in one layer changes both.
    mixed = local_entropy(Chain(2, 0.1, lam_left=0.4, lam_right=-0.4), 0.1, y)
    assert abs(float(mixed.phi) - float(plus.phi)) > 1e-3


def test_erratum_17_the_entropies_are_not_monotone_in_y() -> None:
    one, two = (local_entropy(Chain(1, 0.05), 0.3, y) for y in (1, 2))
    assert float(two.internal) < float(one.internal) - 1e-3  # "S_I increases with y"
    assert float(two.external) > float(one.external) + 1e-3  # "S_E decreases with y"


def test_erratum_18_no_plateau_at_large_distance() -> None:
    chain = Chain(1, 0.1)
    points = [ystar(chain, d) for d in (0.48, 0.49, 0.499)]
    slopes = [float(point.slope) for point in points]
    left = [float(entropy(chain)) - float(point.internal) for point in points]
    assert all(x > 0.05 for x in slopes)
    # The last slope carries S_I* on to S_a at d = 1/2, and the slope itself has a limit.
    assert left[-1] / 0.001 == pytest.approx(slopes[-1], rel=5e-3)
    assert abs(slopes[2] - slopes[1]) < abs(slopes[1] - slopes[0])


@pytest.mark.parametrize(("jd", "place"), [(0.05, 0.0481), (0.07, 0.04847), (0.1, 0.0503)])
def test_erratum_19_q0_is_not_always_stable(jd: float, place: float) -> None:
    loss = float(q0_loss(jd, tol=1e-5))
    assert loss == pytest.approx(place, abs=6e-5)
    inside, outside = (ystar(Chain(1, jd), d).q0_stability for d in (0.9 * loss, 1.1 * loss))
    assert inside is not None
    assert outside is not None
    assert float(inside) > float(inside.error)
    assert float(outside) < -float(outside.error)


def test_convergence_bound_says_nothing_at_its_own_threshold() -> None:
    bounds = [convergence_bound(size) for size in (10, 10**3, 10**6, 10**12)]
    assert {float(bound.union_bound) for bound in bounds} == {2.0}
    exact = [float(bound.exceedance) for bound in bounds]
    assert exact == sorted(exact, reverse=True)
    assert exact[-1] < 0.11
