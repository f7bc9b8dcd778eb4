"""How fast the local entropy is, against a baseline run beside it: ``make bench``.

What is compared is stored in ``extra_info`` of every benchmark, and printed with ``-s``.
"""

import math
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from scipy.integrate import dblquad
from scipy.special import log_ndtr

from rmtheory import Chain
from rmtheory.local_entropies import core as core_module
from rmtheory.local_entropies import pair
from rmtheory.local_entropies.core import core_moments
from rmtheory.local_entropies.curves import curve
from rmtheory.local_entropies.functional import Moments
from rmtheory.local_entropies.pair import pair_moments
from rmtheory.local_entropies.pair_sites import Site, Sites, blocks
from rmtheory.local_entropies.points import ystar
from rmtheory.local_entropies.quadrature import FINEST
from rmtheory.local_entropies.solve import functional
from rmtheory.local_entropies.thresholds import critical_coupling


def note(benchmark: BenchmarkFixture, **values: float) -> None:
    benchmark.extra_info.update({name: float(f"{value:.4g}") for name, value in values.items()})
    print("", *(f"{name} = {value:.4g}" for name, value in values.items()))


def seconds(work: Callable[[], object], rounds: int = 1) -> float:
    """Least CPU time of several rounds."""
    least = math.inf
    for _ in range(rounds):
        start = time.process_time()
        work()
        least = min(least, time.process_time() - start)
    return least


def test_core_evaluation_against_dblquad(benchmark: BenchmarkFixture) -> None:
    """(phi, S_I, S_E) to 1e-10 at a given saddle; dblquad does two integrals, G and <log zeta>."""
    jd, d, y, qhat = 0.1, 0.1, 3.0, np.array([0.3])
    q1, sigma, root = 1 - 2 * d, math.sqrt(2 * d), math.sqrt(0.3)
    level, names = 2, ("phi", "internal", "external")
    exact = core_moments(jd, d, y, qhat, FINEST)

    def ours() -> Moments:
        return core_moments(jd, d, y, qhat, level)

    moments = benchmark(ours)
    error = max(abs(getattr(moments, name) - getattr(exact, name)) for name in names)
    assert error < 1e-10

    def integrand(z: float, t: float, with_log: bool) -> float:
        x, h = math.sqrt(q1) * z, root * t
        plus, minus = h + log_ndtr((jd + x) / sigma), -h + log_ndtr((jd - x) / sigma)
        log_zeta = float(np.logaddexp(plus, minus))
        value = math.exp(y * log_zeta - 0.5 * (t * t + z * z)) / (2 * math.pi)
        return value * log_zeta if with_log else value

    results: list[float] = []

    def baseline() -> None:
        for with_log in (False, True):
            value, _ = dblquad(
                integrand, -10, 10, -8, 8, args=(with_log,), epsabs=1e-10, epsrel=1e-10
            )
            results.append(value)

    slow = seconds(baseline)
    norm, weighted = results
    # Moments keeps both without their large parts, y^2 qhat/2 and y qhat.
    large = y * float(qhat[0])
    assert math.log(norm) == pytest.approx(exact.log_norm + y * large / 2, abs=1e-9)
    assert weighted / norm == pytest.approx(exact.mean_log + large, abs=1e-9)
    fast = seconds(ours, 50)
    note(benchmark, dblquad_seconds=slow, our_seconds=fast, times_faster=slow / fast)
    assert slow / fast > 500


def test_core_curve(benchmark: BenchmarkFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """50 points from d = 1e-4 to .45; the work in units of one grid good for 1e-10."""
    chain, distances = Chain(1, 0.1), np.geomspace(1e-4, 0.45, 50).tolist()
    data = benchmark.pedantic(curve, (chain, distances), rounds=3, warmup_rounds=1)
    sizes: list[int] = []

    def counting(*arguments: object) -> Moments:
        moments = core_moments(*arguments)  # type: ignore[arg-type]
        sizes.append(moments.size)
        return moments

    monkeypatch.setattr(core_module, "core_moments", counting)
    curve(chain, distances)
    model = functional(chain)
    grids = [
        model.moments(float(p.d), float(p.y_star), p.qhat.values[:1], 3).size
        for p in (data.isel(d=k) for k in range(50))
    ]
    evaluations = len(sizes) - len(grids)
    worth = sum(sizes[:evaluations]) / float(np.mean(grids))
    note(benchmark, evaluations=evaluations, grids_worth=worth)
    assert worth < 4000
    assert float(data.internal_error.max()) < 1e-10


def test_pair_evaluation_against_its_bare_cost(
    benchmark: BenchmarkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Level 2, good for 1e-9, against matmul, log and exp over the same pairs of nodes."""
    star = ystar(Chain(2, 0, 0.5), 0.1, 9, check_zeros=False)
    y, qhat = float(star.y_star), np.array([float(star.qhat[0])])
    arguments = (0.0, 0.5, 0.5, 0.1, y, qhat, 2)
    moments = benchmark(pair_moments, *arguments)
    finer = pair_moments(*arguments[:-1], 4)
    error = max(abs(getattr(moments, name) - getattr(finer, name)) for name in ("phi", "internal"))
    kept: list[Site] = []

    def catch(sites: Sites, *_others: object) -> None:
        kept.extend((sites.one, sites.two))

    with monkeypatch.context() as patch:
        patch.setattr(pair, "_averages", catch)
        around = seconds(lambda: pair_moments(*arguments), 5)
    one, two = kept[:2]
    columns = two.rows.T.copy()
    pieces = blocks(len(one.rows), len(two.rows))

    def bare() -> float:
        total = 0.0
        for block in pieces:
            zeta = one.rows[block] @ columns
            np.log(zeta, out=zeta)
            zeta *= y
            np.exp(zeta, out=zeta)
            total += float(zeta.sum())
        return total

    # In turn, so that a busy machine slows both.
    turns = [(seconds(lambda: pair_moments(*arguments)), seconds(bare)) for _ in range(20)]
    ours, least = (min(times) for times in zip(*turns, strict=True))
    note(
        benchmark,
        pairs=len(one.rows) * len(two.rows),
        error=error,
        our_seconds=ours,
        bare_seconds=least,
        ratio=ours / least,
        nodes_and_pruning_share=around / ours,
    )
    assert error < 1e-9
    assert ours / least < 3


def test_pair_memory(benchmark: BenchmarkFixture) -> None:
    chain = Chain(2, 0, 0.45)
    benchmark.pedantic(ystar, (chain, 0.01), kwargs={"check_zeros": False}, rounds=1)
    tracemalloc.start()
    try:
        ystar(chain, 0.01, check_zeros=False)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    note(benchmark, peak_megabytes=peak / 1e6)
    assert peak < 1e9


def test_pair_curve(benchmark: BenchmarkFixture) -> None:
    distances = np.geomspace(2e-3, 0.45, 20).tolist()
    data = benchmark.pedantic(curve, (Chain(2, 0, 0.45), distances), rounds=1)
    note(benchmark, seconds=benchmark.stats.stats.min, worst=float(data.internal_error.max()))


def test_lambda_c(benchmark: BenchmarkFixture) -> None:
    result = benchmark.pedantic(
        critical_coupling, (2, "lam"), kwargs={"jd": 0.0, "width": 1e-4}, rounds=1
    )
    note(benchmark, seconds=benchmark.stats.stats.min, width=result.high - result.low)
    assert result.low < 0.452424 < result.high
