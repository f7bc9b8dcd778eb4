"""How fast: ``make bench``; the ordinary tests skip these."""

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture

from rmtheory import Chain
from rmtheory.annealed import entropy, entropy_array
from rmtheory.replica.eigenvalues import stability


def test_million_couplings_at_fifty_layers(benchmark: BenchmarkFixture) -> None:
    rng = np.random.default_rng(0)
    jd, lam = rng.uniform(-3, 3, (2, 1_000_000))
    value, _ = benchmark.pedantic(entropy_array, (50, jd, lam), rounds=3)
    assert np.all(np.isfinite(value))


def test_forty_certified_digits(benchmark: BenchmarkFixture) -> None:
    chain = Chain(5, jd=0.2, lam_left=0.9, lam_right=0.3)
    assert benchmark(entropy, chain, 40).digits >= 40


def test_stability_of_eight_layers(benchmark: BenchmarkFixture) -> None:
    assert benchmark(stability, Chain(8, jd=0.3, lam=0.5), 10).stable
