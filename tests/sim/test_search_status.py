"""The status of searches: its numbers in stored sweeps, its names, its remedies."""

import pytest
import torch

from rmsim.couplings import draw_dense
from rmsim.dynamics import Status, margins, relax
from rmsim.network import Network
from rmsim.search.reinforced import reinforce
from rmtheory.base.chain import Chain

pytestmark = pytest.mark.numerical


def test_numbers_are_those_of_sweeps_stored_by_version_0_1() -> None:
    stored = "fixed_point cycle cap marginal paramagnet polarised diverged settled"
    assert [int(Status(name)) for name in stored.split()] == list(range(8))
    solve = "solved converged paramagnet unconverged cycling diverged polarised marginal"
    assert [int(Status(name)) for name in solve.split()] == [0, 7, 4, 2, 1, 6, 5, 3]
    assert [Status(int(status)).label for status in Status] == [s.label for s in Status]
    with pytest.raises(ValueError, match="magic"):
        Status("magic")


def test_every_status_has_a_remedy_of_one_sentence() -> None:
    for status in Status:
        assert status.remedy[0].isupper()
        assert status.remedy.endswith(".")
        assert status.remedy.count(". ") == 0


def test_unsatisfied_neurons_are_counted() -> None:
    network = Network(60, Chain(2, 0.1, 0.3))
    relaxed = relax(network, samples=4, starts=3, max_sweeps=20)
    couplings = draw_dense(network, 0, range(4))
    searched = reinforce(couplings, max_iterations=40)
    for state, result in (
        (relaxed.state, relaxed),
        (searched.state.unsqueeze(1), searched),
    ):
        wrong = (margins(couplings, state.double()) <= 0).flatten(2).sum(-1)
        assert torch.equal(result.unsatisfied, wrong.view(result.unsatisfied.shape))
        assert torch.equal(result.unsatisfied == 0, result.min_margin > 0)
    assert int(searched.unsatisfied.max()) > 0
