"""How fast the dynamics is, against a product measured in the same run: ``make bench``.

What is compared is stored in ``extra_info`` of every benchmark, and printed with ``-s``. The two
sides take turns on one thread, and CPU time counts: other processes do not.
"""

import itertools
import math
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from rmsim.couplings import draw_dense, draw_diluted
from rmsim.dynamics import random_starts, relax
from rmsim.dynamics.relaxation import Relaxing
from rmsim.network import Network
from rmtheory import Chain


def note(benchmark: BenchmarkFixture, **values: float) -> None:
    benchmark.extra_info.update({name: float(f"{value:.4g}") for name, value in values.items()})
    print("", *(f"{name} = {value:.4g}" for name, value in values.items()))


def in_turn(*works: Callable[[], object], rounds: int = 15) -> list[float]:
    """Least CPU time of each work, over rounds in which every one has its turn."""
    least = [math.inf] * len(works)
    for _ in range(rounds + 1):  # the first one warms up, and counts if it is best
        for index, work in enumerate(works):
            start = time.process_time()
            work()
            least[index] = min(least[index], time.process_time() - start)
    return least


def test_dense_dynamics_against_sgemm(benchmark: BenchmarkFixture) -> None:
    """N = 2000, 512 states: a sweep with flips, fixed points and cycles watched."""
    n, starts = 2000, 512
    couplings = draw_dense(Network(n, Chain(1, 0.3)), 0, range(1))
    search = Relaxing(
        couplings, random_starts(0, range(1), starts, 1, n), None, None, 1.0, "synchronous"
    )
    states, out = search.active.here.up.view(starts, n) * 2.0 - 1, torch.empty(starts, n)
    sweeps = itertools.count(1)

    def advance() -> None:
        search.advance(next(sweeps), sync=True)

    matrix = couplings.matrices[0, 0]
    square, result = torch.randn(n, n), torch.empty(n, n)
    benchmark(advance)
    sweep, product, full = in_turn(
        advance,
        lambda: torch.mm(states, matrix.T, out=out),
        lambda: torch.mm(square, matrix, out=result),
    )
    rate, work = 2e-9 * n * n * starts, 2e-9 * n**3
    note(
        benchmark,
        gigaflops=rate / sweep,
        sgemm_same_shape=rate / product,
        sgemm_square=work / full,
        share_of_same_shape=product / sweep,
        share_of_square=rate / sweep / (work / full),
    )
    assert product / sweep > 0.7


@pytest.mark.parametrize("starts", [1, 16, 64, 512])
def test_diluted_field_against_dense(benchmark: BenchmarkFixture, starts: int) -> None:
    n, chain = 5000, Chain(1, 0.8)
    diluted = draw_diluted(Network(n, chain, rho=0.01), 0, range(1))
    dense = draw_dense(Network(n, chain), 0, range(1))
    s = random_starts(0, range(1), starts, 1, n).float()
    out = torch.empty_like(s)
    benchmark(lambda: diluted.field(s, out=out))
    fast, slow = in_turn(lambda: diluted.field(s, out=out), lambda: dense.field(s, out=out))
    note(benchmark, dense_seconds=slow, diluted_seconds=fast, times_faster=slow / fast)
    if starts == 512:  # small batches are noted, and too short to be judged on a busy machine
        assert slow / fast > 10


def test_diluted_dynamics_against_dense(benchmark: BenchmarkFixture) -> None:
    """Twenty sweeps of 512 states and the margins in float64, not the field alone."""
    n, chain, starts = 5000, Chain(1, 0.3), 512
    start = random_starts(0, range(1), starts, 1, n)
    diluted = draw_diluted(Network(n, chain, rho=0.01), 0, range(1))
    dense = draw_dense(Network(n, chain), 0, range(1))
    benchmark.pedantic(relax, (diluted, start), {"max_sweeps": 20}, rounds=3)
    fast, slow = in_turn(
        lambda: relax(diluted, start, max_sweeps=20),
        lambda: relax(dense, start, max_sweeps=20),
        rounds=2,
    )
    note(benchmark, dense_seconds=slow, diluted_seconds=fast, times_faster=slow / fast)
    assert slow / fast > 10


def test_many_networks(benchmark: BenchmarkFixture) -> None:
    """``rmsim relax --n 1000 --jd .8 --samples 20``: every sweep reads the couplings once."""
    network = Network(1000, Chain(1, 0.8))
    result = benchmark.pedantic(relax, (network,), {"samples": 20}, rounds=3, warmup_rounds=1)
    read = float(result.iterations.sum()) * 4e6
    note(benchmark, gigabytes_a_second=read / benchmark.stats.stats.min / 1e9)


MEMORY = """
import sys
from rmsim.dynamics import relax
from rmsim.network import Network
from rmtheory import Chain
def kilobytes(name):
    words = open("/proc/self/status").read().split()
    return int(words[words.index(name) + 1])
n, layers, starts, rho, p = (float(x) for x in sys.argv[1:])
def run(size, count):
    chain = Chain.at_depth(int(layers), .8, .1)
    relax(Network(size, chain, rho=rho), samples=1, starts=count, p=p, max_sweeps=100)
run(600, 300)  # libraries and compiled code are loaded: 3 MB of couplings and states
open("/proc/self/clear_refs", "w").write("5")  # the peak starts anew; a child inherits ru_maxrss
before = kilobytes("VmRSS:")
run(int(n), int(starts))
print(1024 * (kilobytes("VmHWM:") - before))
"""


@pytest.mark.parametrize(
    ("n", "layers", "starts", "rho", "p"),
    [
        (2000, 1, 512, 1, 1),
        (4000, 1, 512, 1, 1),
        (4000, 1, 1, 1, 1),
        (2000, 2, 512, 1, 0.8),
        (500, 1, 10_000, 1, 1),
        (10_000, 1, 512, 0.02, 1),
    ],
)
def test_memory_of_relax(
    benchmark: BenchmarkFixture, n: int, layers: int, starts: int, rho: float, p: float
) -> None:
    """Peak of a fresh process beyond what it took before, over couplings plus states."""
    entry = 4 if rho == 1 else 8
    needed = layers * n * n * rho * entry + starts * layers * n * 4
    arguments = [sys.executable, "-c", MEMORY, *map(str, (n, layers, starts, rho, p))]

    def measure() -> float:
        done = subprocess.run(arguments, capture_output=True, text=True, check=True)
        return float(done.stdout)

    peak = benchmark.pedantic(measure, rounds=1)
    note(benchmark, needed_megabytes=needed / 1e6, peak_megabytes=peak / 1e6, ratio=peak / needed)
    assert peak < 1.5 * needed
