"""Landscape: maps whose curvature, trajectories and displacement are known."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from rmsim.studies.landscape_survey import (
    Displacement,
    curvature,
    displacement,
    flipped,
    hamming,
    intermediate,
    path,
    trajectory_distances,
)
from rmsim.tensors import generator
from rmtheory import InvalidInputError, NotConvergedError

pytestmark = pytest.mark.numerical

TAUS = [0.1, 0.3, 0.5, 0.7, 0.9]


def _pairs(pairs: int, d: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    spins = 2.0 * torch.randint(2, (2, pairs, d), generator=generator(seed)) - 1.0
    return spins[0], spins[1]


def _identity(x: torch.Tensor) -> torch.Tensor:
    return x


def _scrambled(x: torch.Tensor) -> torch.Tensor:
    """A map without any structure: nearby inputs lead to unrelated states."""
    words = torch.randn(x.shape[-1], 400, generator=generator(7), dtype=torch.float64)
    return torch.where(torch.sin(1e4 * x.double() @ words) >= 0, 1.0, -1.0)


def test_intermediate_inputs_are_at_the_asked_distance_on_a_shortest_path() -> None:
    start, end = _pairs(20, 101)
    total = (start != end).sum(-1)
    for tau in (0.0, 0.25, 0.6, 1.0):
        x = intermediate(start, end, tau, generator(1))
        there, back = (x != start).sum(-1), (x != end).sum(-1)
        assert torch.equal(there + back, total)
        assert torch.equal(there, (tau * total.double()).round().long())
    # Every site that differs is as likely as any other.
    x = intermediate(start[0].expand(4000, -1), end[0].expand(4000, -1), 0.5, generator(2))
    share = (x != start[0]).double().mean(0)
    differ = start[0] != end[0]
    flips = (0.5 * total[0].double()).round() / total[0]
    assert bool((share[~differ] == 0).all())
    deviation = float((flips * (1 - flips) / 4000).sqrt())
    assert float((share[differ] - flips).abs().max()) < 5 * deviation


def test_a_path_adds_flips_to_flips() -> None:
    start, end = _pairs(5, 60)
    steps = path(start, end, [0.0, 0.2, 0.5, 1.0], generator(3))
    assert torch.equal(steps[0], start)
    assert torch.equal(steps[-1], end)
    for earlier, later in pairwise(steps):
        assert bool(((earlier == start) | (later != start)).all())


def test_identity_has_curvature_one_everywhere() -> None:
    result = curvature(_identity, *_pairs(30, 80), TAUS, 3, generator(4))
    assert np.allclose(result.mean, 1, atol=1e-12)
    assert np.allclose(result.error, 0, atol=1e-12)
    assert result.kappa_mean == (pytest.approx(1.0), pytest.approx(0.0, abs=1e-12))
    assert result.skipped == 0


def test_threshold_map_jumps_once_and_stays_on_the_path() -> None:
    """All neurons follow the majority: every attractor is one of the two ends."""

    def majority(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x.sum(-1, keepdim=True) >= 0, 1.0, -1.0).expand(*x.shape[:-1], 50)

    start, end = _pairs(60, 81)
    same = hamming(majority(start), majority(end)) == 0
    result = curvature(majority, start, end, TAUS, 4, generator(5))
    assert result.skipped == int(same.sum()) > 0  # one attractor for both: no path
    assert np.allclose(result.mean, 1)


def test_scrambling_map_has_curvature_two() -> None:
    """Unrelated states are at distance 1/2: C = (1/2 + 1/2)/(1/2)."""
    result = curvature(_scrambled, *_pairs(40, 60), [0.25, 0.5, 0.75], 8, generator(6))
    mean, error = result.mean.mean(), result.mean.std() / np.sqrt(result.mean.size)
    # The ratio of a mean to a fluctuating distance is biased by its relative variance, 1/400.
    assert abs(mean - 2) < 4 * error + 2 / 400
    kappa, _ = result.kappa_mean
    assert kappa > mean  # a maximum of noisy averages is biased upwards
    assert result.kappa_deviation > 0


def test_constant_map_has_no_paths() -> None:
    def constant(x: torch.Tensor) -> torch.Tensor:
        return torch.ones(*x.shape[:-1], 10)

    with pytest.raises(NotConvergedError, match="different attractors"):
        curvature(constant, *_pairs(10, 40), TAUS, 2, generator(0))
    with pytest.raises(NotConvergedError, match="same attractor"):
        trajectory_distances(constant, *_pairs(10, 40), TAUS, generator(0))


def test_trajectory_of_the_identity_is_straight() -> None:
    start, end = _pairs(6, 100)
    end = torch.where(torch.arange(100) < 60, -start, start)  # 60 sites differ: whole flips
    taus = [0.0, 0.25, 0.5, 1.0]
    result = trajectory_distances(_identity, start, end, taus, generator(8)).numpy()
    wanted = np.abs(np.subtract.outer(taus, taus))
    assert result.shape == (6, 4, 4)
    assert np.allclose(result, wanted, atol=1e-12)
    scrambled = trajectory_distances(_scrambled, start, end, taus, generator(9)).numpy()
    assert np.allclose(np.diagonal(scrambled, axis1=1, axis2=2), 0)
    assert np.allclose(scrambled, scrambled.transpose(0, 2, 1))
    off = scrambled[:, ~np.eye(4, dtype=bool)]
    assert abs(off.mean() - 1) < 0.05


def test_displacement_of_known_dynamics() -> None:
    states, inputs = _pairs(300, 400)
    noises = [0.0, 0.1, 0.5]

    def returns(_: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return states  # one attractor for every input

    def stays(s: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return s  # every state is a fixed point

    assert (displacement(returns, states, inputs, noises, generator(1)).values == 0).all()
    result = displacement(stays, states, inputs, noises, generator(1))
    assert (result.values[0] == 0).all()
    for noise, row in zip(noises, result.values, strict=True):
        assert abs(row.mean() - noise) <= 5 * np.sqrt(noise * (1 - noise) / row.size / 400)
    median, error = result.quantile(0.5)
    assert abs(median[1] - 0.1) < 5 * error[1] + 1 / 800


def test_error_of_a_quantile_is_that_of_its_ranks() -> None:
    draws = np.random.default_rng(0).normal(size=(400, 500))
    median, error = Displacement(np.zeros(400), draws, 0.01).quantile(0.5)
    assert np.std(median) == pytest.approx(np.sqrt(np.pi / 2 / 500), rel=0.15)
    assert np.mean(error) == pytest.approx(np.std(median), rel=0.15)


def test_values_that_agree_have_the_error_of_half_a_step() -> None:
    none = Displacement(np.array([0.0, 0.1]), np.zeros((2, 50)), 1 / 80)
    assert none.quantile(0.5)[1].tolist() == [0.0, 1 / 160]  # without noise nothing can move


def test_bad_input_is_named() -> None:
    start, end = _pairs(3, 10)
    for call, words in (
        (lambda: intermediate(start, end[:2], 0.5, generator(0)), "end must be of the shape"),
        (lambda: intermediate(0.5 * start, end, 0.5, generator(0)), "start must be .1 or -1"),
        (lambda: intermediate(start, end, 1.5, generator(0)), "tau must be a number from 0 to 1"),
        (lambda: path(start, end, [], generator(0)), "taus must be at least one"),
        (lambda: flipped(start, -0.1, generator(0)), "noise must be a probability"),
        (lambda: curvature(_identity, start, end, [1.0], 2, generator(0)), "between 0 and 1"),
        (lambda: curvature(_identity, start, end, [0.5], 1, generator(0)), "resamples"),
        (lambda: displacement(lambda s, x: s, start[0], end, [0.1], generator(0)), "states"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            call()
