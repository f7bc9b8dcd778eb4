"""Neighbours of a fixed point: branch and bound and estimates against lists of all fixed points."""

import numpy as np
import pytest

from rmsim.enumeration import distances_from, enumerate_fixed_points
from rmsim.enumeration.exhaustive import draw_couplings
from rmsim.network import Network
from rmsim.search import count_neighbours, neighbours_at
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError

pytestmark = pytest.mark.numerical

NETWORKS = [
    Network(20, Chain(1, 0.7)),
    Network(9, Chain(2, 0.5, lam_left=0.6, lam_right=-0.3)),
    Network(16, Chain(1, 1.2)),
]


@pytest.mark.parametrize("network", NETWORKS)
def test_counts_are_those_of_the_enumeration(network: Network) -> None:
    """At every distance, up to the flip of all neurons."""
    J = draw_couplings(network, 1, 0)
    points = enumerate_fixed_points(network, seed=1, keep_states=True)
    assert points.count > 8
    spins = network.n * network.layers
    for state in points.states[:: points.count // 3][:3]:
        expected = distances_from(points, state)
        counted = count_neighbours(J, state, network, spins)
        assert all(one.exact for one in counted)
        assert [one.count for one in counted] == expected[1:].tolist()


@pytest.mark.parametrize("distance", [2, 5])
def test_estimates_agree_with_counts(distance: int) -> None:
    """Within 5 standard errors, with errors of a few per cent; the seed is fixed."""
    network = Network(22, Chain(1, 1.0))
    J = draw_couplings(network, 2, 0)
    points = enumerate_fixed_points(network, seed=2, keep_states=True)
    state = points.states[0]
    expected = int(distances_from(points, state)[distance])
    estimate = count_neighbours(J, state, network, distance, most_sets=0)[-1]
    assert not estimate.exact
    assert estimate.count is not None
    assert estimate.error is not None
    assert 0 < estimate.error < 0.3 * expected
    assert abs(estimate.count - expected) < 5 * estimate.error


def test_bad_input() -> None:
    network = Network(4, Chain(1, 0.5))
    J, up = np.zeros((4, 4)), np.ones(4)
    assert neighbours_at(J, up, network, 2) == 6
    assert count_neighbours(J, up, network, 4)[-1].count == 1
    with pytest.raises(InvalidInputError, match=r"^most must be an integer from 1 to 4"):
        count_neighbours(J, up, network, 5)
    with pytest.raises(InvalidInputError, match=r"^distance must be smaller: more than 3 sets"):
        neighbours_at(J, up, network, 2, most_sets=3)
    with pytest.raises(InvalidInputError, match=r"^J must be of shape \(1, 4, 4\)"):
        neighbours_at(np.zeros((3, 3)), up, network, 1)
    with pytest.raises(InvalidInputError, match=r"^J must be zero on its diagonal"):
        neighbours_at(np.eye(4), up, network, 1)
    with pytest.raises(InvalidInputError, match=r"^state must be"):
        neighbours_at(J, 0.5 * up, network, 1)
    with pytest.raises(InvalidInputError, match=r"^state must be of shape"):
        neighbours_at(J, np.ones(5), network, 1)
