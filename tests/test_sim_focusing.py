"""Focusing BP: its field, its entropies as derivatives, the reference point, failures, command."""

import json
import math
from itertools import product

import numpy as np
import pytest
import torch

from rmsim.cli import run
from rmsim.couplings import DenseChain, draw_dense
from rmsim.messages.focusing import FocusedPoint, Focusing, focus, pull_of_replicas
from rmsim.messages.outcome import Outcome
from rmsim.network import Network
from rmtheory.chain import Chain
from rmtheory.errors import InvalidInputError


def network(n: int, jd: float, k: int = 0) -> DenseChain:
    return draw_dense(Network(n, Chain(1, jd)), 0, range(k, k + 1), dtype=torch.float64)


def point_of(found: Focusing) -> FocusedPoint:
    assert found.status in (Outcome.CONVERGED, Outcome.SOLVED)
    assert found.point is not None
    return found.point


@pytest.mark.parametrize(("y", "gamma"), [(2, 0.3), (4, 0.9), (3, 2.5)])
def test_pull_is_the_sum_over_the_other_replicas(y: int, gamma: float) -> None:
    """Centre and y - 1 spins with the cavity field h, summed state by state."""
    for h in (-1.3, 0.2, 4.0):
        weight = {1: 0.0, -1: 0.0}
        for spin in (1, -1):
            for centre, *others in product((1, -1), repeat=y):
                exponent = sum((gamma * centre + h) * s for s in others)
                weight[spin] += math.exp(gamma * centre * spin + exponent)
        expected = 0.5 * math.log(weight[1] / weight[-1])
        cavity = torch.tensor([h], dtype=torch.float64)
        assert float(pull_of_replicas(cavity, y, gamma)) == pytest.approx(expected, abs=1e-12)


def test_strong_coupling_is_reinforcement() -> None:
    """gamma -> infinity: b = (1 - 1/y) h, finite where tanh gamma rounds to 1."""
    h = torch.linspace(-8, 8, 9, dtype=torch.float64)
    for y in (1.0, 2.5, 5.0):
        torch.testing.assert_close(pull_of_replicas(h / y, y, 20.0), (1 - 1 / y) * h)


def test_reference_point() -> None:
    """N = 300, J_D = 0.4, y = 5: (d, S_I, S_E) = (.032, .072, .066) in a prototype, one sample.

    Three samples at the gamma of that d; S_I is .077 there, and varies by .002.
    """
    points = [point_of(focus(network(300, 0.4, k), 5, 0.87, sample=k)) for k in range(3)]
    d, internal, external = np.mean([(p.d, p.internal, p.external) for p in points], axis=0)
    assert d == pytest.approx(0.032, abs=0.001)
    assert internal == pytest.approx(0.072, abs=0.008)
    assert external == pytest.approx(0.066, abs=0.004)


@pytest.mark.parametrize("variances", ["exact", "rank-one"])
def test_entropies_are_derivatives(variances: str) -> None:
    """dF/dy = N (S_I + gamma q) and dF/dgamma = N y q along a solution: F is stationary."""
    couplings, y, gamma, step = network(100, 0.4), 5.0, 0.6, 0.005

    def point(y: float, gamma: float) -> FocusedPoint:
        return point_of(focus(couplings, y, gamma, variances=variances))

    here = point(y, gamma)
    q = 1 - 2 * here.d
    by_y = (point(y + step, gamma).free_entropy - point(y - step, gamma).free_entropy) / (2 * step)
    assert by_y == pytest.approx(here.internal + gamma * q, abs=1e-4)
    by_gamma = point(y, gamma + step).free_entropy - point(y, gamma - step).free_entropy
    assert by_gamma / (2 * step) == pytest.approx(y * q, abs=2e-4)
    total = here.external + y * (here.internal + gamma * q)
    assert here.free_entropy == pytest.approx(total, abs=1e-12)


def test_more_coupling_is_closer_and_more_replicas_choose_better_centres() -> None:
    couplings = network(200, 0.5)
    weak, strong = (point_of(focus(couplings, 5, gamma)) for gamma in (0.6, 0.9))
    assert strong.d < weak.d
    assert 0 < strong.internal < weak.internal
    assert 0 < strong.external < weak.external
    many = point_of(focus(couplings, 8, 0.6))
    assert many.external < weak.external


def test_signs_may_be_a_fixed_point() -> None:
    couplings = network(200, 0.5)
    found = focus(couplings, 6, 1.0)
    assert found.status == Outcome.SOLVED
    s = found.state[0].double()
    margin = float((s * (couplings.matrices[0, 0] @ s) + 0.5).min())
    assert margin > 0
    assert found.min_margin == pytest.approx(margin, abs=1e-12)


def test_without_convergence_there_are_no_numbers() -> None:
    couplings = network(100, 0.4)
    short = focus(couplings, 5, 0.6, max_iterations=1)
    assert (short.status, short.point) == (Outcome.UNCONVERGED, None)
    alone = focus(couplings, 1, 0.6)
    assert (alone.status, alone.point) == (Outcome.PARAMAGNET, None)
    hard = focus(network(100, -0.5), 2, 4.0, max_iterations=100)
    # Which of these it is depends on rounding; none of them gives numbers.
    failures = (Outcome.UNCONVERGED, Outcome.PARAMAGNET, Outcome.DIVERGED, Outcome.POLARISED)
    assert hard.status in failures
    assert hard.point is None
    assert math.isfinite(hard.min_margin)


def test_bad_input() -> None:
    couplings = network(20, 0.4)
    for y, gamma, name in ((0.5, 1, "y"), (math.nan, 1, "y"), (3, 0, "gamma"), (3, 21, "gamma")):
        with pytest.raises(InvalidInputError) as caught:
            focus(couplings, y, gamma)
        assert caught.value.argument == name
    two = draw_dense(Network(20, Chain(2, 0.4, lam=0.1)), 0, range(1))
    with pytest.raises(InvalidInputError, match="a single sample of one layer"):
        focus(two, 3, 1)


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["solve", "--algorithm", "fbp", "--n", "200", "--jd", ".5", "--dtype", "float64"]
    assert run([*command, "--y", "6", "--gamma", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["solved"]
    assert found["status"] == "solved"
    assert 0 < found["distance"] < 0.05
    assert found["internal_entropy"] > 0
    assert found["external_entropy"] > 0
    assert found["parameters"]["gamma"] == 1
    assert run([*command, "--max-iterations", "1", "--json"]) == 0
    lost = json.loads(capsys.readouterr().out)
    assert lost["status"] == "unconverged"
    assert lost["distance"] is None
    assert lost["internal_entropy"] is None
    assert run([*command, "--y", "0"]) == 2
    assert "y must be from 1 to 1000, got 0" in capsys.readouterr().err
    assert run([*command, "--layers", "2", "--lam", ".1"]) == 2
    assert "layers must be 1 for the algorithm fbp" in capsys.readouterr().err
