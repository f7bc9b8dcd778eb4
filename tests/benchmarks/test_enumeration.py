"""How fast the enumeration is, against products over all states run beside it: ``make bench``.

What is compared is stored in ``extra_info`` of every benchmark, and printed with ``-s``.
"""

import math
import time
from collections.abc import Callable

import numpy as np
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from rmsim.enumeration import distance_histogram, draw_couplings, enumerate_fixed_points
from rmsim.enumeration.branch_and_bound import greedy_order, search
from rmsim.enumeration.overlaps import Array, coupling_matrix
from rmsim.network import Network
from rmsim.search.planted import pair_flips, plant, single_flips
from rmsim.tensors import generator
from rmtheory.base.chain import Chain


def note(benchmark: BenchmarkFixture, **values: float) -> None:
    benchmark.extra_info.update({name: float(f"{value:.4g}") for name, value in values.items()})
    print("", *(f"{name} = {value:.4g}" for name, value in values.items()))


def gemm_rates(K: Array, jd: float, states: int, bits: int = 16) -> tuple[float, float]:
    """States a second of a blocked product in float32 on one thread: with margins, and bare.

    The lower spins of a block are made once; each block then costs one product, one
    multiplication and one minimum, about the least that visiting every state can cost. The bare
    product does not even look at its result.
    """
    spins, block = K.shape[0], 1 << bits
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        state = 2.0 * ((torch.arange(block) >> torch.arange(spins)[:, None]) & 1) - 1.0
        couplings = torch.as_tensor(K, dtype=torch.float32)
        fields = torch.empty(spins, block)
        count = torch.zeros((), dtype=torch.int64)

        def with_margins() -> None:
            for start in range(0, states, block):
                upper = (torch.tensor(start >> bits) >> torch.arange(spins - bits)) & 1
                state[bits:] = 2.0 * upper[:, None] - 1.0
                torch.mm(couplings, state, out=fields)
                count.add_((fields.mul_(state).amin(dim=0) > -jd).sum())

        def bare() -> None:
            for _ in range(0, states, block):
                torch.mm(couplings, state, out=fields)

        rates = [states / seconds(work, 3) for work in (with_margins, bare)]
        return rates[0], rates[1]
    finally:
        torch.set_num_threads(threads)


def seconds(work: Callable[[], object], rounds: int) -> float:
    """Least CPU time of several rounds."""
    least = math.inf
    for _ in range(rounds):
        start = time.process_time()
        work()
        least = min(least, time.process_time() - start)
    return least


def test_branch_and_bound_against_all_states(benchmark: BenchmarkFixture) -> None:
    """N = 28, J_D = 0.4, one core; the product visits 2^22 states and is extrapolated to 2^28."""
    network = Network(28, Chain(1, 0.4))
    matrices = [coupling_matrix(draw_couplings(network, 0, k)) for k in range(8)]
    search(matrices[0][:8, :8].copy(), 0.4, False, 0)

    def ours() -> int:
        return sum(search(K, 0.4, False, 0)[2] for K in matrices)

    nodes = benchmark.pedantic(ours, rounds=5)
    each = benchmark.stats.stats.min / len(matrices)
    rate = nodes / benchmark.stats.stats.min
    gemm, bare = gemm_rates(matrices[0], 0.4, 1 << 22)
    note(
        benchmark,
        nodes_per_second=rate,
        seconds_per_sample=each,
        gemm_states_per_second=gemm,
        gemm_seconds_extrapolated=2**28 / gemm,
        times_faster=2**28 / gemm / each,
        # The flip symmetry, which ours uses, would halve the work of the product too.
        times_faster_than_half_the_states=2**27 / gemm / each,
        times_faster_than_the_bare_product=2**28 / bare / each,
    )
    assert rate > 5e6
    assert 2**28 / gemm / each > 50


def test_order_of_assignment(benchmark: BenchmarkFixture) -> None:
    """Nodes in our order against the natural one (L = 1) and layers in turns (L = 2)."""
    result = {}
    for name, network in (
        ("core", Network(26, Chain(1, 0.4))),
        ("chain", Network(14, Chain(2, 0.1, 0.5))),
    ):
        ratios = []
        for k in range(8):
            K = coupling_matrix(draw_couplings(network, 0, k), network.lam_left, network.lam_right)
            spins = np.arange(network.n * network.layers)
            plain = spins.reshape(network.layers, network.n).T.reshape(-1)
            nodes = [search(K, network.jd, False, 0, order)[2] for order in (None, plain)]
            ratios.append(nodes[1] / nodes[0])
        result[f"{name}_times_fewer_nodes"] = float(np.mean(ratios))
    benchmark(greedy_order, K, 0.1)
    note(benchmark, **result)


def test_dense_path(benchmark: BenchmarkFixture) -> None:
    """All 2^20 states of N = 20 up to the flip, with the exact recheck, on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    J = draw_couplings(Network(20, Chain(1, 0.4)), 0, 0)
    try:
        result = benchmark(enumerate_fixed_points, J, 0.4, method="dense")
    finally:
        torch.set_num_threads(threads)
    note(benchmark, states_per_second=result.nodes / benchmark.stats.stats.min)


def test_overlap_histogram(benchmark: BenchmarkFixture) -> None:
    """All pairs of the fixed points of a sample."""
    J = draw_couplings(Network(24, Chain(1, 0.8)), 0, 0)
    result = enumerate_fixed_points(J, 0.8, keep_states=True)
    histogram = benchmark(distance_histogram, result)
    note(benchmark, pairs_per_second=float(histogram.sum()) / benchmark.stats.stats.min)


def test_neighbours_of_a_planted_point(benchmark: BenchmarkFixture) -> None:
    """All single flips and pairs around a planted fixed point, N = 1000."""
    sample = plant(Network(1000, Chain(1, 0.8)), generator(0, 0, 0))
    benchmark(lambda: (single_flips(sample), pair_flips(sample)))
    pairs = 1000 * 999 / 2
    note(benchmark, pairs_per_second=pairs / benchmark.stats.stats.min)
