"""Planted fixed points: are they, and how many neighbours do they have?"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rmsim.enumeration import distances_from, enumerate_fixed_points
from rmsim.network import Network
from rmsim.search.neighbours import neighbours_at
from rmsim.search.planted import pair_flips, plant, single_flips
from rmsim.studies import compare
from rmsim.tensors import generator
from rmtheory.base import statistics
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError

pytestmark = pytest.mark.numerical


@st.composite
def networks(draw: st.DrawFn, most: int) -> Network:
    layers = draw(st.integers(1, 4))
    n = draw(st.integers(2, most // layers))
    jd = draw(st.integers(-5, 12)) / 10
    left, right = (draw(st.integers(-10, 10)) / 10 for _ in range(2))
    return Network(n, Chain.at_depth(layers, jd, lam_left=left, lam_right=right))


@given(networks(most=200), st.integers(0, 10**6))
def test_planted_state_is_a_fixed_point(network: Network, seed: int) -> None:
    sample = plant(network, generator(seed, 0, 0))
    s = sample.state.astype(float)
    h = np.einsum("lij,lj->li", sample.J, s) + network.jd * s
    h[1:] += network.lam_left * s[:-1]
    h[:-1] += network.lam_right * s[1:]
    assert np.all(s * h > 0)
    assert np.all(np.einsum("lii->li", sample.J) == 0)


@given(networks(most=14), st.integers(0, 10**6))
def test_neighbours_are_those_of_the_enumeration(network: Network, seed: int) -> None:
    sample = plant(network, generator(seed, 0, 0))
    couplings = (network.jd, network.lam_left, network.lam_right)
    result = enumerate_fixed_points(sample.J, *couplings, keep_states=True)
    counts = distances_from(result, sample.state)
    assert counts[0] == 1
    assert (single_flips(sample), pair_flips(sample)) == (counts[1], counts[2])
    other = result.states[-1]
    near = distances_from(result, other)
    for distance in (1, 2):
        assert neighbours_at(sample.J, other, network, distance) == near[distance]


@pytest.mark.parametrize(
    ("chain", "n"),
    [
        (Chain(1, 0.4), 30),
        (Chain(1, 0.8), 100),
        (Chain(2, 0.3, lam_left=0.5, lam_right=-0.2), 20),
        (Chain(3, 0.5, lam_left=0.2, lam_right=0.6), 10),
    ],
    ids=str,
)
def test_single_flips_and_pairs_against_theory(chain: Chain, n: int) -> None:
    samples = [plant(Network(n, chain), generator(7, k, 0)) for k in range(1500)]
    for distance, count in ((1, single_flips), (2, pair_flips)):
        measured = statistics.mean([count(sample) for sample in samples])
        theory = compare.neighbours(chain, n, distance)
        assert abs(measured.z_score(theory) or np.inf) < 4
        assert measured.error < 0.06 * theory  # enough samples to mean something


def orthant(a: float, b: float, rho: float) -> float:
    """P(x > -a, y > -b) by scipy, a route of its own."""
    return float(stats.multivariate_normal([0, 0], [[1, rho], [rho, 1]]).cdf([a, b]))


@pytest.mark.parametrize(("jd", "n"), [(0.3, 12), (0.9, 150)])
def test_theory_of_the_core_written_out(jd: float, n: int) -> None:
    """One flip changes a row's field by 2 J s s'; that of the flipped spin changes its sign."""
    a = jd / np.sqrt((n - 1) / n)
    P = stats.norm.cdf(a)
    own = (2 * P - 1) / P  # |x| < a given x > -a
    others = (orthant(a, a, (n - 3) / (n - 1)) / P) ** (n - 1)
    assert compare.neighbours(Chain(1, jd), n, 1) == pytest.approx(n * own * others, rel=1e-5)
    both = (orthant(a, a, -(n - 3) / (n - 1)) / P) ** 2
    others = (orthant(a, a, (n - 5) / (n - 1)) / P) ** (n - 2)
    pairs = n * (n - 1) / 2 * both * others
    assert compare.neighbours(Chain(1, jd), n, 2) == pytest.approx(pairs, rel=1e-5)


def test_theory_of_two_layers_written_out() -> None:
    """A flip in layer 1, then one in layer 2, summed over the column tau = s_1 s_2."""
    n, jd, left, right = 15, 0.4, 0.7, -0.3
    sigma, P = np.sqrt((n - 1) / n), stats.norm.cdf
    rho = (n - 3) / (n - 1)
    total = 0.0
    for here, there in ((right, left), (left, right)):  # lambda seen by the flipped layer
        v = {tau: (jd + here * tau) / sigma for tau in (1, -1)}
        w = {tau: (jd + there * tau) / sigma for tau in (1, -1)}
        norm = sum(P(v[tau]) * P(w[tau]) for tau in (1, -1))
        # The flipped spin needs -v(tau) < x < v(-tau), its neighbour both w(tau) and w(-tau).
        column = sum(max(0.0, P(v[-tau]) - P(-v[tau])) for tau in (1, -1)) * P(min(w.values()))
        rest = sum(orthant(v[tau], v[tau], rho) * P(w[tau]) for tau in (1, -1))
        total += n * column / norm * (rest / norm) ** (n - 1)
    chain = Chain(2, jd, lam_left=left, lam_right=right)
    assert compare.neighbours(chain, n, 1) == pytest.approx(total, rel=1e-5)


def test_margins_follow_the_truncated_normal() -> None:
    n, jd = 400, 0.3
    sample = plant(Network(n, Chain(1, jd)), generator(3, 0, 0))
    s = sample.state[0]
    sigma = np.sqrt((n - 1) / n)
    x = s * (sample.J[0] @ s) / sigma
    assert stats.kstest(x, stats.truncnorm(-jd / sigma, np.inf).cdf).pvalue > 1e-3
    # Across the state the couplings stay free: variance 1/N.
    free = sample.J[0] @ np.roll(s * np.where(np.arange(n) % 2, 1, -1), 1)
    assert stats.kstest(free / sigma, "norm").pvalue > 1e-3


def test_columns_are_drawn_from_their_weights() -> None:
    """Neighbouring layers of a typical fixed point agree as the enumerated ones do."""
    network = Network(5, Chain(3, 0.2, lam_left=0.9, lam_right=-0.1))
    planted, weights, agreements = [], [], []
    for k in range(2000):
        sample = plant(network, generator(11, k, 0))
        planted.append((sample.state[:-1] * sample.state[1:]).mean())
        J = np.random.default_rng(k).normal(size=(3, 5, 5)) / np.sqrt(5)
        J[:, np.arange(5), np.arange(5)] = 0
        states = enumerate_fixed_points(J, 0.2, 0.9, -0.1, keep_states=True).states
        weights.append(len(states))
        agreements.append((states[:, :-1] * states[:, 1:]).mean(axis=(1, 2)).sum())
    typical = statistics.mean(planted)
    excess = statistics.mean(np.array(agreements) - typical.value * np.array(weights))
    scale = np.mean(weights)
    difference = excess.value / scale
    assert abs(difference) < 4 * np.hypot(excess.error / scale, typical.error)
    assert typical.value > 0.1


def test_large_planted_networks() -> None:
    sample = plant(Network(1500, Chain(1, 2.5)), generator(0, 0, 0))
    assert single_flips(sample) > 0
    assert pair_flips(sample) > 0


def test_bad_input() -> None:
    chain = Chain(1, 0.4)
    for network in (Network(5, chain, rho=0.5), Network(5, chain, symmetric=True)):
        with pytest.raises(InvalidInputError, match="dense and not symmetric"):
            plant(network, generator(0, 0, 0))
    J = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    with pytest.raises(InvalidInputError, match="a fixed point"):
        neighbours_at(J, [1, -1], Network(2, chain), 1)
    with pytest.raises(InvalidInputError, match="distance"):
        neighbours_at(J, [1, 1], Network(2, chain), 3)
