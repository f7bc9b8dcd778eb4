"""How fast message passing is, against its products measured in the same run: ``make bench``.

What is compared is stored in ``extra_info`` of every benchmark, and printed with ``-s``. The two
sides take turns on one thread, and CPU time counts: other processes do not.
"""

import math
import time
from collections.abc import Callable

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from rmsim.couplings import draw_dense
from rmsim.network import Network
from rmsim.search.amp import (
    Messages,
    Products,
    first_messages,
    random_fields,
    step,
)
from rmsim.search.methods import find_fixed_point
from rmtheory import Chain


def note(benchmark: BenchmarkFixture, **values: float) -> None:
    benchmark.extra_info.update({name: float(f"{value:.4g}") for name, value in values.items()})
    print("", *(f"{name} = {value:.4g}" for name, value in values.items()))


def in_turn(*works: Callable[[], object], rounds: int = 50) -> list[float]:
    """Least CPU time of each work, over rounds in which every one has its turn."""
    least = [math.inf] * len(works)
    for _ in range(rounds + 1):
        for index, work in enumerate(works):
            start = time.process_time()
            work()
            least[index] = min(least[index], time.process_time() - start)
    return least


def warmed(n: int, layers: int, samples: int) -> tuple[Products, Messages]:
    """Networks with messages some reinforced iterations from the start."""
    network = Network(n, Chain.at_depth(layers, 0.35, 0.3))
    products = Products(draw_dense(network, 0, range(samples)))
    messages = first_messages(random_fields(0, range(samples), layers, n))
    for _ in range(10):
        messages = step(products, messages, 0.3 * messages.h)
    return products, messages


@pytest.mark.parametrize(
    ("n", "layers", "samples"), [(4000, 1, 1), (4000, 2, 1), (1000, 1, 16), (200, 1, 64)]
)
def test_iteration_against_its_products(
    benchmark: BenchmarkFixture, n: int, layers: int, samples: int
) -> None:
    """An iteration, against J m and J^T g by the fastest of the ways that torch has."""
    products, messages = warmed(n, layers, samples)
    m, g, pull = messages.m, messages.g, 0.3 * messages.h
    matrices = products.couplings.matrices.view(-1, n, n)
    rows, sides = m.view(-1, 1, n), g.view(-1, 1, n)

    def batched() -> None:
        torch.bmm(rows, matrices.transpose(1, 2))
        torch.bmm(sides, matrices)

    def one_by_one() -> None:
        for matrix, x, y in zip(matrices, rows[:, 0], sides[:, 0], strict=True):
            torch.mv(matrix, x)
            torch.mv(matrix.T, y)

    benchmark(step, products, messages, pull)
    whole, *ways = in_turn(lambda: step(products, messages, pull), batched, one_by_one)
    note(benchmark, seconds=whole, products=min(ways), ratio=whole / min(ways))
    if n == 4000:  # small networks spend as long on their sites, and are noted
        assert whole / min(ways) <= 1.5


def test_batch_against_single_networks(benchmark: BenchmarkFixture) -> None:
    """An iteration of 64 networks of 200 neurons together, and of one after another."""
    products, messages = warmed(200, 1, 64)
    pull = 0.3 * messages.h
    every = torch.arange(64)
    parts = [(k, messages.pick(every[k : k + 1])) for k in range(64)]

    def singles() -> None:
        for k, one in parts:
            step(products, one, pull[k : k + 1], active=[k])

    benchmark(step, products, messages, pull)
    together, apart = in_turn(lambda: step(products, messages, pull), singles)
    note(benchmark, together=together, apart=apart, times_faster=apart / together)
    assert apart / together > 2


def test_reinforced_at_the_coupling_of_the_paper(benchmark: BenchmarkFixture) -> None:
    """N = 4000, J_D = 0.35, dr = 0.01: at least 9 seeds of 10 in fewer than 250 iterations."""
    network = Network(4000, Chain(1, 0.35))
    result = benchmark.pedantic(find_fixed_point, (network, "rbp"), {"samples": 10}, rounds=1)
    quick = result.solved & (result.iterations < 250)
    note(
        benchmark,
        solved=float(quick.sum()),
        most_iterations=float(result.iterations.max()),
        mean_iterations=float(result.iterations.double().mean()),
    )
    assert int(quick.sum()) >= 9
