"""Enumerated counts against the exact finite-N averages, with statistics deciding."""

import json
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rmsim.cli import run
from rmsim.enumeration import SampleCounts, enumerate_samples
from rmsim.enumeration.overlaps import Counts
from rmsim.network import Network
from rmsim.studies import compare
from rmtheory.base import statistics
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError

pytestmark = pytest.mark.numerical

SAMPLES = 400


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """At most 14 spins, with some fixed points on average."""
    layers = draw(st.integers(1, 3))
    n = draw(st.integers(3 if layers > 1 else 6, 14 // layers))
    jd = draw(st.integers(-2, 10)) / 10
    left, right = (draw(st.integers(-10, 10)) / 10 for _ in range(2))
    return Network(n, Chain.at_depth(layers, jd, lam_left=left, lam_right=right))


@cache
def sixteen() -> SampleCounts:
    return enumerate_samples(Network(16, Chain(1, 0.4)), 4000, seed=0)


def test_mean_count_rejects_unit_variance() -> None:
    chain = Chain(1, 0.4)
    assert compare.mean_count(chain, 16) == pytest.approx(85.45, abs=0.005)
    assert compare.mean_count_unit_variance(chain, 16) == pytest.approx(76.0, abs=0.05)
    mean = statistics.mean(sixteen().counts)
    assert abs(mean.z_score(compare.mean_count(chain, 16)) or math.inf) < 4
    assert (mean.z_score(compare.mean_count_unit_variance(chain, 16)) or 0) > 10


def test_chain_rejects_unit_variance() -> None:
    chain = Chain(2, 0.3, lam_left=0.8, lam_right=0.3)
    mean = statistics.mean(enumerate_samples(Network(8, chain), 3000, seed=1).counts)
    assert abs(mean.z_score(compare.mean_count(chain, 8)) or math.inf) < 4
    assert abs(mean.z_score(compare.mean_count_unit_variance(chain, 8)) or 0) > 6


def test_second_moment_of_the_core() -> None:
    theory = compare.second_moment_ratio(Chain(1, 0.4), 16)
    ratio = statistics.second_moment_ratio(sixteen().counts)
    assert ratio is not None
    assert theory is not None
    assert ratio.error < 0.006
    assert abs(ratio.z_score(theory) or math.inf) < 4
    # The ratio for N -> inf lies lower, and 4000 samples see that.
    limit = compare.second_moment_ratio(Chain(1, 0.4), 2000)
    assert limit is not None
    assert abs(ratio.z_score(limit) or 0) > 4


@given(networks(), st.integers(0, 1000))
def test_first_two_moments(network: Network, seed: int) -> None:
    """Within 4 standard errors; one chance in 1e4 is given a second, fresh draw."""
    theory = compare.mean_count(network.chain, network.n)
    exact = compare.second_moment_ratio(network.chain, network.n)
    assert exact is not None
    assume(exact < 5)  # the mean of the samples is about normal
    error = theory * math.sqrt((exact - 1) / SAMPLES)  # exact, not estimated from the samples
    draws = (enumerate_samples(network, SAMPLES, k).counts for k in (seed, seed + 1001))
    for last, counts in zip((False, True), draws, strict=True):
        if _mean_agrees(network, counts, theory, error) and _ratio_agrees(counts, exact):
            break
        assert not last, "two draws are more than 4 standard errors off"


def _mean_agrees(network: Network, counts: Counts, theory: float, error: float) -> bool:
    mean = float(counts.mean())
    wrong = compare.mean_count_unit_variance(network.chain, network.n)
    seen = abs(wrong - theory) <= 9 * error or abs(mean - wrong) > 4 * error
    return abs(mean - theory) < 4 * error and seen


def _ratio_agrees(counts: Counts, theory: float) -> bool:
    if theory >= 2.5:  # beyond, rare samples make the jackknife error itself uncertain
        return True
    ratio = statistics.second_moment_ratio(counts)
    assert ratio is not None
    if ratio.error < 1e-12:  # the couplings hardly matter
        return ratio.value == pytest.approx(theory, abs=1e-6)
    return abs(ratio.z_score(theory) or 0) < 4


@pytest.mark.parametrize(
    ("chain", "n"),
    [
        (Chain(1, 0.5), 12),
        (Chain(2, 0.2, lam_left=0.6, lam_right=-0.2), 6),
        (Chain(3, 0.4, 0.3), 4),
    ],
)
def test_pairs_of_fixed_points_by_distance(chain: Chain, n: int) -> None:
    """The overlap distribution, every distance of it."""
    theory = compare.pairs(chain, n)
    result = enumerate_samples(Network(n, chain), 2000, seed=2, histogram=True)
    assert theory is not None
    assert result.histograms is not None
    assert np.array_equal(result.histograms.sum(axis=1), result.counts**2)
    value, error = statistics.mean_of_rows(result.histograms)
    assert np.all(np.abs(value - theory) <= 4 * error + 1e-9)


def test_pairs_sum_to_the_second_moment() -> None:
    for chain, n in ((Chain(1, -0.2), 9), (Chain(2, 0.1, 0.7), 7), (Chain(3, 0.3, -0.5), 4)):
        pairs, ratio = compare.pairs(chain, n), compare.second_moment_ratio(chain, n)
        assert pairs is not None
        assert pairs.sum() / compare.mean_count(chain, n) ** 2 == pytest.approx(ratio, rel=1e-11)
        assert compare.neighbours(chain, n, 0) == pytest.approx(1, rel=1e-12)
    assert compare.pairs(Chain(4, 0.3, 0.5), 30) is None
    assert compare.second_moment_ratio(Chain(7, 0.3, 0.5), 5) is None


def test_samples_do_not_depend_on_how_they_are_drawn() -> None:
    network = Network(9, Chain(2, 0.3, 0.4))
    alone = enumerate_samples(network, 6, seed=3, histogram=True)
    assert np.array_equal(enumerate_samples(network, 3, seed=3).counts, alone.counts[:3])
    done: list[int] = []
    spread = enumerate_samples(network, 6, seed=3, histogram=True, jobs=2, progress=done.append)
    assert np.array_equal(spread.counts, alone.counts)
    assert np.array_equal(spread.histograms, alone.histograms)  # type: ignore[arg-type]
    assert spread.nodes == alone.nodes
    assert done[-1] == 6
    assert not np.array_equal(enumerate_samples(network, 6, seed=4).counts, alone.counts)


def test_jackknife_is_the_error_of_the_ratio() -> None:
    """Against the spread of the ratio over many repetitions."""
    random = np.random.default_rng(0)
    draws = [random.gamma(4.0, size=200) for _ in range(400)]
    result = [statistics.second_moment_ratio(draw) for draw in draws]
    values = [ratio.value for ratio in result if ratio]
    errors = [ratio.error for ratio in result if ratio]
    assert np.mean(values) == pytest.approx(1.25, abs=0.005)
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.1)


def test_degenerate_samples() -> None:
    assert statistics.second_moment_ratio([0, 0, 3]) is None
    assert statistics.mean([2, 2]).z_score(3) is None
    for bad in ([1.0], [1.0, math.nan]):
        with pytest.raises(InvalidInputError, match="samples"):
            statistics.mean(bad)


def test_command(capsys: pytest.CaptureFixture[str], tmp_path: object) -> None:
    out = f"{tmp_path}/counts.json"
    arguments = f"enumerate --n 8 -L 2 --jd .3 --lam .4 --samples 60 --histogram --out {out} --json"
    assert run(arguments.split()) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    with open(out, encoding="utf-8") as file:
        assert json.load(file) == document
    counts = enumerate_samples(Network(8, Chain(2, 0.3, 0.4)), 60, seed=0).counts
    assert document["mean_count"] == counts.mean()
    assert document["theory_mean_count"] == compare.mean_count(Chain(2, 0.3, 0.4), 8)
    for name in ("mean_count_error", "second_moment_ratio", "second_moment_ratio_error"):
        assert document[name] > 0
    for name in ("z_score", "ratio_z_score"):
        assert abs(document[name]) < 5
    assert len(document["pairs_by_distance"]) == len(document["theory_pairs_by_distance"]) == 17
    assert (document["seed"], document["samples"]) == (0, 60)
    assert document["nodes_per_second"] > 0
    nothing = ["enumerate", "--n", "6", "--jd", "-3", "--samples", "5", "--histogram"]
    assert run(nothing) == 0
    assert "none" in capsys.readouterr().out
    assert run([*nothing, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["mean_count"], document["mean_count_error"]) == (0, None)  # not 0 +- 0
    assert document["pairs_by_distance_error"] == [None] * 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--jd .4", "n must be given"),
        ("--n 0 --jd .4", "n must be an integer >= 2"),
        ("--n 8 --jd .4 --samples 1", "samples must be"),
        ("--n 8 --jd .4 --seed -1", "seed must be"),
        ("--n 8 --jd .4 --jobs 0", "jobs must be"),
        ("--n 8 --jd .4 --layers inf --lam 1", "layers must be finite"),
        ("--n 50 --jd .8", "--force"),
        ("--n 65 --jd .4 --force", "at most 64"),
    ],
)
def test_command_refuses(arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["enumerate", *arguments.split()]) == 2
    assert message in capsys.readouterr().err
