"""One function that looks for fixed points by any method: results, own couplings, input."""

import numpy as np
import pytest
import torch

from rmsim.couplings import draw, draw_dense
from rmsim.dynamics import Status
from rmsim.network import Network
from rmsim.search.methods import METHODS, find_fixed_point
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError

pytestmark = pytest.mark.numerical

SETTINGS = {"fbp": {"y": 6, "gamma": 1.0}, "dense_bp": {"max_iterations": 40}}


@pytest.mark.parametrize("method", METHODS)
def test_results_are_checked_by_hand_and_do_not_depend_on_the_batch(method: str) -> None:
    network = Network(40, Chain(1, 0.9))
    settings = SETTINGS.get(method, {})
    result = find_fixed_point(network, method, samples=3, dtype="float64", **settings)
    assert result.method == method
    assert result.state.shape == (3, 1, 40)
    s, J = result.state.double(), draw_dense(network, 0, range(3), dtype=torch.float64).matrices
    margins = s * (torch.einsum("klij,klj->kli", J, s) + 0.9 * s)
    torch.testing.assert_close(result.min_margin, margins.flatten(1).amin(1))
    assert torch.equal(result.unsatisfied, (margins <= 0).flatten(1).sum(1))
    assert torch.equal(result.solved, result.min_margin > 0)
    assert bool((result.attempts == 1).all())
    alone = find_fixed_point(network, method, samples=range(2, 3), dtype="float64", **settings)
    for name in ("status", "iterations", "state"):
        assert torch.equal(getattr(alone, name)[0], getattr(result, name)[2]), name


@pytest.mark.parametrize("method", ["dynamics", "rbp", "likelihood"])
def test_own_couplings_go_in_wherever_drawn_ones_do(method: str) -> None:
    network = Network(50, Chain(2, 0.6, lam=0.3))
    drawn = draw_dense(network, 0, range(1))
    wanted = find_fixed_point(network, method)
    own = Network.from_array(drawn.matrices[0].numpy(), 0.6, 0.3)
    tensor = Network.from_array(drawn.matrices[0], 0.6, 0.3)
    for given in (drawn, own, tensor):
        result = find_fixed_point(given, method)
        assert torch.equal(result.state, wanted.state)
        assert torch.equal(result.iterations, wanted.iterations)


def test_the_dynamics_takes_any_couplings_and_counts_its_attempts() -> None:
    diluted = Network(100, Chain(1, 0.3), rho=0.1)
    result = find_fixed_point(diluted, samples=4, restarts=5, max_iterations=30)
    given = find_fixed_point(draw(diluted, 0, range(4)), restarts=5, max_iterations=30)
    assert torch.equal(result.state, given.state)
    assert result.settings["restarts"] == 5
    failed = ~result.solved
    assert bool((result.attempts[failed] == 6).all())
    assert np.isin(result.status.numpy(), [Status.FIXED_POINT, Status.CYCLE, Status.CAP]).all()


def test_bad_input() -> None:
    network = Network(20, Chain(1, 0.5))
    for wrong, sentence in (
        ({"method": "magic"}, "method must be one of bp, rbp, dynamics"),
        ({"method": "bp", "dr": 0.1}, "dr must be left out for the algorithm bp"),
        ({"samples": 0}, "samples must be"),
        ({"p": 2}, "p must be"),
        ({"update": "magic"}, "update must be"),
    ):
        with pytest.raises(InvalidInputError, match=sentence):
            find_fixed_point(network, **wrong)  # type: ignore[arg-type]
    diluted = Network(20, Chain(1, 0.5), rho=0.5)
    with pytest.raises(InvalidInputError, match="rho must be 1"):
        find_fixed_point(diluted, "rbp")
    with pytest.raises(InvalidInputError, match=r"network must be dense \(rho = 1\) for rbp"):
        find_fixed_point(draw(diluted, 0, range(1)), "rbp")
    for method in ("rbp", "dynamics"):
        with pytest.raises(InvalidInputError, match="network must be a Network, or couplings"):
            find_fixed_point([[0.0]], method)  # type: ignore[arg-type]
