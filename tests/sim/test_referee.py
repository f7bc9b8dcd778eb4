"""What a referee of the simulator broke, and what holds since."""

import json

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rmsim.cli import run
from rmsim.couplings import draw_diluted
from rmsim.couplings.rows import Part
from rmsim.dynamics import random_starts
from rmsim.dynamics.relaxation import fraction
from rmsim.enumeration import draw_couplings, enumerate_samples, forecast
from rmsim.network import Network
from rmsim.studies import compare
from rmtheory import Chain, OutsideValidityError
from rmtheory.base import statistics
from rmtheory.base.statistics import median_of_ranks as median

pytestmark = pytest.mark.numerical


class ScalarReads(TorchDispatchMode):
    """Counts the numbers fetched from a device, each of which a GPU would wait for."""

    count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.count += "_local_scalar_dense" in str(function)
        return function(*args, **(kwargs or {}))


def test_the_gpu_route_of_diluted_products_waits_for_nothing() -> None:
    network = Network(60, Chain(2, 0.3, 0.2), rho=0.2)
    rows = draw_diluted(network, 0, range(4)).rows
    s = random_starts(0, range(4), 3, 2, 60).float()
    fast, route = torch.empty_like(s), torch.empty_like(s)
    rows.multiply(s, fast, None)
    rows.multiply_torch(s, route, Part(range(4), 0, (0, 60)), 0.0)  # makes the blocks
    assert route == pytest.approx(fast, abs=1e-5)
    with ScalarReads() as reads:
        rows.multiply_torch(s, route, Part(range(4), 0, (0, 60)), 0.0)
    assert reads.count == 0


def test_cheap_enumerations_are_not_refused() -> None:
    """2^24 states of 1500 samples are many, the nodes of the search are not."""
    network = Network(24, Chain(1, 0.4))
    J = draw_couplings(network, 0, 0)
    assert 1e5 < forecast(J, 0.4) < 1e6
    assert enumerate_samples(Network(12, Chain(1, 0.4)), 3, 0).counts.size == 3


def test_two_samples_have_no_error_of_the_second_moment() -> None:
    assert statistics.second_moment_ratio([2, 800]) is None
    assert statistics.second_moment_ratio([2, 800, 3]) is not None


def test_one_network_says_nothing_about_the_others() -> None:
    assert median(torch.tensor([7.0])) == (7.0, None)
    value, error = fraction(torch.ones((1, 50), dtype=torch.bool))
    assert value == 1
    assert error > 0.2


def test_starts_in_one_network_are_not_independent() -> None:
    """Equal starts say as much as one of them; independent ones as much as that many."""
    single = fraction(torch.ones((3, 1), dtype=torch.bool))
    assert fraction(torch.ones((3, 50), dtype=torch.bool)) == pytest.approx(single)
    random = torch.Generator().manual_seed(1)
    many = torch.rand((400, 50), generator=random) < 0.3
    assert fraction(many)[1] == pytest.approx((0.3 * 0.7 / 20000) ** 0.5, rel=0.15)
    sweeps = torch.arange(10.0).repeat_interleave(30)
    assert median(sweeps, 0.5, 10) == pytest.approx(median(torch.arange(10.0), 0.5), abs=0.6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--n", "10", "--rho", "1e-320"], "rho must be at least 1e-12"),
        (["--n", "1000000000", "--rho", "1e-18"], "n must be an integer from 2 to 100000000"),
        (["--n", "10000000", "--rho", ".5"], "n must be small enough"),
        (["--n", "1000000"], "n must be small enough"),
        (["--n", "10", "--starts", "1000000000000"], "n must be small enough"),
    ],
)
def test_sizes_beyond_the_machine(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["relax", "--jd", ".5", "--samples", "1", "--json", *options])
    captured = capsys.readouterr()
    assert code == 2
    assert words in captured.err
    assert "Traceback" not in captured.err


def test_no_fixed_points_at_all(capsys: pytest.CaptureFixture[str]) -> None:
    """The theoretical ratio overflows there; the counts are reported all the same."""
    assert run(["enumerate", "--n", "10", "--jd", "-50", "--samples", "3", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["mean_count"] == 0
    assert document["theory_ratio"] is None
    assert document["parameters"]["jd"] == -50


def test_large_counts_are_told_by_their_logarithm() -> None:
    chain = Chain(1, 0.8)
    with pytest.raises(OutsideValidityError, match="log_mean_count"):
        compare.mean_count(chain, 5000)
    assert np.isfinite(compare.log_mean_count(chain, 5000))
