"""Paths of single flips between fixed points: all of small networks, against the whole graph."""

from __future__ import annotations

import numpy as np
import pytest

import rmsim as rs
from rmsim.search.paths import FlipPath, count_joined, flip_path, walk_towards
from rmtheory.base.errors import InvalidInputError


def components(points: np.ndarray) -> np.ndarray:
    """Return the number of the component of each state, neighbours at one flip being joined."""
    label = np.arange(len(points))
    near = (points[:, None, :] != points[None, :, :]).sum(-1) == 1
    while True:
        lowest = np.array([min(label[k], *label[near[k]], label[k]) for k in range(len(points))])
        if np.array_equal(lowest, label):
            return label
        label = lowest


@pytest.mark.parametrize(
    ("layers", "n", "jd", "lam", "seed"),
    [(1, 12, 0.6, 0.0, 0), (1, 12, 0.3, 0.0, 1), (2, 6, 0.4, 0.5, 0)],
)
def test_joined_are_those_of_one_component(
    layers: int, n: int, jd: float, lam: float, seed: int
) -> None:
    network = rs.Network(n, rs.Chain(layers, jd, lam) if layers > 1 else rs.Chain(1, jd))
    J = rs.draw(network, seed=seed, samples=range(1), dtype="float64").to_dense()[0].numpy()
    points = rs.enumerate_fixed_points(
        J, network.jd, lam_left=lam, lam_right=lam, keep_states=True
    ).states
    flat = np.asarray(points).reshape(len(points), -1)
    label = components(flat)
    assert len(set(label.tolist())) > 1  # else the test shows nothing
    for end in range(1, len(flat)):
        path = flip_path(J, flat[0], flat[end], network)
        assert path.joined == (label[0] == label[end])
        assert path.joined or path.exhausted
        check(path, flat, flat[0], flat[end])


def test_a_walk_ends_where_no_flip_comes_nearer() -> None:
    """Against all fixed points: of each walk at least the number of those where it may end."""
    network = rs.Network(12, rs.Chain(1, 0.6))
    J = rs.draw(network, seed=0, samples=range(1), dtype="float64").to_dense()[0].numpy()
    points = rs.enumerate_fixed_points(J, network.jd, keep_states=True).states.reshape(-1, 12)
    known, start = {tuple(point) for point in points.tolist()}, points[0]
    arrived = 0
    for end in points[1:]:
        # All states that flips which come nearer reach; where there is none: distance and ways on.
        reached, ends = {tuple(start.tolist())}, set()
        waiting = list(reached)
        while waiting:
            state = waiting.pop()
            near = [(*state[:k], -state[k], *state[k + 1 :]) for k in range(12)]
            nearer = [one for k, one in enumerate(near) if state[k] != end[k] and one in known]
            if not nearer:
                on = sum(one in known and state[k] == start[k] for k, one in enumerate(near))
                ends.add((int((np.array(state) != end).sum()), on))
            waiting += set(nearer) - reached
            reached |= set(nearer)
        walks = [walk_towards(J, start, end, network, seed=seed) for seed in range(40)]
        assert {(walk.distance, walk.onward) for walk in walks} <= ends
        assert all(walk.steps + walk.distance == (start != end).sum() for walk in walks)
        tips = {walk.tip for walk in walks}
        assert tips <= {distance > 0 and on == 0 for distance, on in ends}
        seen = {walk.distance for walk in walks}
        assert (0 in seen) <= flip_path(J, start, end, network).joined
        only = {distance for distance, _ in ends} == {0}
        arrived += only
        assert not only or seen == {0}
    assert arrived  # neighbours at least
    flips = np.where(np.eye(12) > 0, -1, 1)
    other = next(state for state in start * flips if tuple(state.tolist()) not in known)
    with pytest.raises(InvalidInputError, match="end"):
        walk_towards(J, start, other, network)


def check(path: FlipPath, points: np.ndarray, start: np.ndarray, end: np.ndarray) -> None:
    """Walk along the path: every state must be one of the fixed points."""
    known = {tuple(point) for point in points.tolist()}
    state = start.copy()
    for neuron in path.flips or ():
        state[neuron] *= -1
        assert tuple(state.tolist()) in known
    if path.joined:
        assert np.array_equal(state, end)


def test_counts_of_joined_fixed_points_against_the_graph() -> None:
    network = rs.Network(12, rs.Chain(1, 0.8))
    J = rs.draw(network, seed=3, samples=range(1), dtype="float64").to_dense()[0].numpy()
    every = rs.enumerate_fixed_points(J, network.jd, keep_states=True)
    points = np.asarray(every.states).reshape(-1, 12)
    near = (points[:, None, :] != points[None, :, :]).sum(-1) == 1
    reference = int(near.sum(1).argmax())
    away = (points != points[reference]).sum(1)
    level = {reference}
    expected = []
    for distance in range(1, 5):
        at = np.flatnonzero(away == distance)
        level = {int(k) for k in at if near[k, sorted(level)].any()} if level else set()
        expected.append(len(level))
    assert expected[0] > 1
    assert count_joined(J, points[reference], network, 4) == tuple(expected)


def test_a_fixed_point_is_joined_to_itself() -> None:
    network = rs.Network.from_array(np.zeros((3, 3)), jd=1.0)
    path = flip_path(np.zeros((3, 3)), [1, 1, 1], [1, 1, 1], network)
    assert path == FlipPath((), 0, 0, 0, exhausted=False)


def test_without_couplings_every_state_is_a_fixed_point() -> None:
    """J = 0, J_D = 1: a path is a shortest one, and distances count binomially."""
    network = rs.Network.from_array(np.zeros((6, 6)), jd=1.0)
    path = flip_path(np.zeros((6, 6)), [1] * 6, [-1] * 6, network)
    assert path.joined
    assert sorted(path.flips or ()) == list(range(6))
    assert count_joined(np.zeros((6, 6)), [1] * 6, network, 3) == (6, 15, 20)


def test_bad_input_names_the_argument() -> None:
    network = rs.Network.from_array(np.zeros((3, 3)), jd=1.0)
    zero = np.zeros((3, 3))
    with pytest.raises(InvalidInputError, match="end"):
        flip_path(zero, [1, 1, 1], [1, 1, 0], network)
    with pytest.raises(InvalidInputError, match="most_states"):
        flip_path(zero, [1, 1, 1], [1, 1, -1], network, most_states=0)
    frozen = rs.Network.from_array(np.zeros((3, 3)), jd=-1.0)
    with pytest.raises(InvalidInputError, match="start"):
        flip_path(zero, [1, 1, 1], [1, 1, -1], frozen)
    with pytest.raises(InvalidInputError, match="most"):
        count_joined(zero, [1, 1, 1], network, 3, most_joined=2)
