"""How fast the transfer operator is: against its grid, the depth, and direct quadrature."""

import math
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from scipy.special import ndtr

from rmtheory import Chain
from rmtheory.local_entropies.curves import curve
from rmtheory.local_entropies.replicated import replicated_entropy
from rmtheory.local_entropies.transfer_operator import _fields, transfer_functional


def seconds(work: Callable[[], object], rounds: int = 2) -> float:
    """Least processor time of several rounds."""
    least = math.inf
    for _ in range(rounds):
        start = time.process_time()
        work()
        least = min(least, time.process_time() - start)
    return least


def evaluate(layers: int | str, level: int, y: float = 8.3) -> float:
    _fields.cache_clear()
    size = 1 if layers == "inf" else int(layers)
    return (
        transfer_functional(Chain(layers, 0.05, 0.3))
        .moments(0.05, y, np.full(size, 0.2), level)
        .phi
    )


@pytest.mark.parametrize("level", [1, 2, 3])
def test_grid(benchmark: BenchmarkFixture, level: int) -> None:
    benchmark.pedantic(evaluate, ("inf", level), rounds=2)


def test_largest_evaluation_of_the_infinite_chain(benchmark: BenchmarkFixture) -> None:
    """At the largest y in reach: under ten seconds and two gigabytes, in a process of its own."""
    program = (
        "import time, numpy as np\n"
        "from rmtheory import Chain\n"
        "from rmtheory.local_entropies.transfer_steps import LARGEST_Y\n"
        "from rmtheory.local_entropies.transfer_operator import transfer_functional\n"
        "start = time.process_time()\n"
        "model = transfer_functional(Chain('inf', 0.05, 0.3))\n"
        "model.moments(0.35, LARGEST_Y, np.array([0.006]), 2).slope\n"
        "print(time.process_time() - start)\n"
        # Of this process alone: a child inherits ru_maxrss.
        "words = open('/proc/self/status').read().split()\n"
        "print(int(words[words.index('VmHWM:') + 1]) / 2**20)\n"
    )

    def run() -> tuple[float, float]:
        words = [sys.executable, "-c", program]
        answer = subprocess.run(words, check=True, capture_output=True, text=True)
        spent, memory = map(float, answer.stdout.split())
        return spent, memory

    spent, memory = benchmark.pedantic(run, rounds=1)
    benchmark.extra_info.update(seconds=spent, gigabytes=memory)
    print(f" y = 33: {spent:.1f} s of one core, {memory:.2f} GB")
    assert spent < 20  # ten seconds on two cores
    assert memory < 2


def test_curve_of_twelve_points(benchmark: BenchmarkFixture) -> None:
    """S_I*(d) of the infinite chain, as the command makes it, in under ten minutes."""
    chain, distances = Chain("inf", 0.0, 0.42), np.geomspace(0.006, 0.25, 12).tolist()
    spent = seconds(lambda: benchmark.pedantic(curve, (chain, distances), rounds=1), rounds=1)
    print(f" 12 points: {spent:.0f} s of one core")
    assert spent < 600


def test_cost_is_linear_in_depth(benchmark: BenchmarkFixture) -> None:
    """Ten times the layers cost far less than ten times as much: the matrix is made once."""
    benchmark.pedantic(evaluate, (40, 1), rounds=2)
    short, long = (seconds(lambda n=n: evaluate(n, 1)) for n in (4, 40))
    benchmark.extra_info["ratio"] = long / short
    print(f" 40 layers / 4 layers = {long / short:.2f}")
    assert long < 10 * short


def test_against_direct_quadrature_in_six_dimensions(benchmark: BenchmarkFixture) -> None:
    """Three layers, y = 2, where the exact value is known; both to 1e-6 in G.

    The direct rule has n points in each of six dimensions; its cost is extrapolated from one slice
    of the first two, as all slices cost the same.
    """
    chain, d, y = Chain(3, 0.05, 0.3), 0.1, 2
    qhat = np.array([float(q.value) for q in replicated_entropy(chain, d, y).qhat])
    exact = float(replicated_entropy(chain, d, y).phi.value)

    def operator() -> float:
        _fields.cache_clear()
        return transfer_functional(chain).moments(d, float(y), qhat, 1).phi

    assert benchmark.pedantic(operator, rounds=2) == pytest.approx(exact, abs=1e-6)
    ours = seconds(operator)

    def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
        """Factors of the three sites at all nodes (t, x), and the weights."""
        z, w = np.polynomial.hermite_e.hermegauss(n)
        w = w / w.sum()
        t = z[:, None] + 0 * z
        x = math.sqrt(1 - 2 * d) * z[None, :] + 0 * t
        result = np.empty((3, 8, n * n))
        for k, spins in enumerate(product((1, -1), repeat=3)):
            padded = (0, *spins, 0)
            for site in range(3):
                a, s, b = padded[site : site + 3]
                v = chain.jd + s * (chain.lam_left * a + chain.lam_right * b)
                factor = ndtr((v + s * x) / math.sqrt(2 * d))
                result[site, k] = (np.exp(math.sqrt(qhat[site]) * s * t) * factor).ravel()
        return result, np.multiply.outer(w, w).ravel()

    def slice_of(n: int) -> float:
        (first, second, third), weight = rows(n)
        zeta = (first[:, :1] * second).T @ third
        return float(weight @ zeta**y @ weight)

    def direct_at_two(n: int) -> float:
        """The same rule, summed exactly for y = 2, to see which n reaches 1e-6."""
        sites, weight = rows(n)
        squares = [(site * weight) @ site.T for site in sites]
        norm = math.log(float((squares[0] * squares[1] * squares[2]).sum()))
        total = float(qhat.sum())
        return (norm / y - 0.5 * y * total + (y - 1) * d * total) / 3

    n = next(n for n in range(6, 60, 2) if abs(direct_at_two(n) - exact) < 1e-6)
    theirs = seconds(lambda: slice_of(n)) * n * n
    benchmark.extra_info["ratio"] = theirs / ours
    print(f" direct, {n} points a dimension: {theirs:.3g} s; operator {ours:.3g} s")
    assert theirs > 50 * ours
