"""How fast is the theory of the dynamics: ``make bench``; the ordinary tests skip these."""

import math
import time
import tracemalloc

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture

from rmtheory import Chain
from rmtheory.base.estimate import Estimate
from rmtheory.dynamics.averages import MeanField, mean_field
from rmtheory.dynamics.freezing import stationary_rate


def test_flip_rate_to_one_percent(benchmark: BenchmarkFixture) -> None:
    """f_inf at J_D = .65 with an error of 1 %: at most 60 CPU-seconds and 2 GB.

    Against a plain loop that stores everything: the CPU time it would take to the same error, from
    the scatter of eight small runs, whose error falls as the root of the time.
    """
    chain = Chain(1, 0.65)
    tracemalloc.start()
    stationary_rate(chain, repetitions=2, iterations=1)
    peak = tracemalloc.get_traced_memory()[1]  # the same for any number of repetitions
    tracemalloc.stop()
    began = time.process_time()
    rate: Estimate = benchmark.pedantic(stationary_rate, (chain,), rounds=1)
    used = time.process_time() - began
    assert float(rate.error) < 0.01 * float(rate.value)
    assert used < 60
    assert peak < 2 * 2**30
    began = time.process_time()
    late = [
        float(np.mean(_plain(0.65, 200, 4000, np.random.default_rng(k))[100:])) for k in range(8)
    ]
    spent = time.process_time() - began
    error = np.std(late, ddof=1) / math.sqrt(len(late))
    # 4000 copies are a network of 4000 neurons: a correction of order 1/N besides.
    assert abs(np.mean(late) - rate.value) < 4 * math.hypot(error, float(rate.error)) + 2 / 4000
    needed = spent * (error / float(rate.error)) ** 2
    benchmark.extra_info["plain loop, CPU-seconds to the same error"] = needed
    assert needed > used


def test_against_a_loop_that_stores_everything(benchmark: BenchmarkFixture) -> None:
    """The same averages from all states and normal numbers in double precision."""
    sweeps, copies = 60, 96_000
    began = time.process_time()
    plain = _plain(0.65, sweeps, copies, np.random.default_rng(1))
    plain_time = time.process_time() - began
    began = time.process_time()
    result: MeanField = benchmark.pedantic(
        mean_field, (Chain(1, 0.65), sweeps), {"trajectories": copies}, rounds=1
    )
    # Smaller batches for the bias are half as many copies again.
    ours = time.process_time() - began
    assert abs(plain[-1] - result.flip_rate.value[-1]) < 6 * float(result.flip_rate.error[-1])
    benchmark.extra_info["ratio"] = plain_time / ours
    assert ours < plain_time


def _plain(jd: float, sweeps: int, copies: int, rng: np.random.Generator) -> list[float]:
    states = np.empty((sweeps + 1, copies))
    normal = np.empty((sweeps, copies))
    states[0] = rng.choice([-1.0, 1.0], copies)
    flips = []
    for t in range(sweeps):
        c = states[: t + 1] @ states[: t + 1].T / copies
        factor = np.linalg.cholesky(c + 1e-12 * np.eye(t + 1))
        normal[t] = rng.standard_normal(copies)
        states[t + 1] = np.where(factor[t] @ normal[: t + 1] + jd * states[t] >= 0, 1.0, -1.0)
        flips.append(float(np.mean(states[t + 1] != states[t])))
    assert math.isfinite(flips[-1])
    return flips
