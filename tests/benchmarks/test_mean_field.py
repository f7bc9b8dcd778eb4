"""How fast is the theory of the dynamics: ``make bench``; the ordinary tests skip these."""

import math
import time
import tracemalloc

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture

from rmtheory import Chain
from rmtheory.dynamics.averages import MeanField, mean_field


def test_flip_rate_to_one_percent(benchmark: BenchmarkFixture) -> None:
    """f_inf at J_D = .65 with an error of 1 %: at most 60 CPU-seconds and 2 GB."""
    tracemalloc.start()
    began = time.process_time()
    result: MeanField = benchmark.pedantic(
        mean_field, (Chain(1, 0.65), 400), {"trajectories": 200_000}, rounds=1
    )
    used, peak = time.process_time() - began, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    late = result.flip_rate_late
    assert late is not None, result.reason
    assert float(late.error) < 0.01 * float(late.value)
    assert used < 60
    assert peak < 2 * 2**30


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
    # Batches of half the size for the bias are half as many copies again.
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
