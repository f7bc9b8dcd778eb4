"""Local entropy around a fixed point: enumeration, exact counts, its slope, and the command."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from rmsim.cli import run
from rmsim.couplings import DenseChain, draw_dense
from rmsim.enumeration import enumerate_fixed_points
from rmsim.network import Network
from rmsim.search.neighbours import neighbours_at
from rmsim.search.planted import Planted, plant
from rmsim.search.tap_entropy import LocalEntropy, local_entropy_around, reference_point
from rmsim.tensors import generator
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError

pytestmark = pytest.mark.numerical


def planted(network: Network, seed: int, k: int = 0) -> tuple[Planted, DenseChain]:
    sample = plant(network, generator(seed, k, 0))
    matrices = torch.as_tensor(sample.J)[None]
    return sample, DenseChain(matrices, network.jd, network.lam_left, network.lam_right)


def reference(source: str, n: int, jd: float) -> tuple[DenseChain, torch.Tensor]:
    return reference_point(Network(n, Chain(1, jd)), source, device="cpu")


@pytest.mark.parametrize(
    ("chain", "n"), [(Chain(1, 0.8), 20), (Chain(1, 0.6), 24), (Chain(2, 0.4, lam=0.4), 10)]
)
def test_against_enumeration(chain: Chain, n: int) -> None:
    """Distances and entropy of the tilted measure over all fixed points of 12 planted networks.

    The means agree within 0.03 and every network within 0.12; with the sign of the field wrong d
    would be off by 0.3, without the term -gamma m the entropy by as much.
    """
    network, gammas = Network(n, chain), (0.2, 0.4, 0.7)
    differences = []
    for k in range(12):
        sample, couplings = planted(network, 1, k)
        result = local_entropy_around(couplings, sample.state, gammas, variances="exact")
        every = enumerate_fixed_points(
            sample.J, chain.jd, chain.lam_left, chain.lam_right, keep_states=True
        )
        size = sample.state.size
        overlaps = every.states.reshape(-1, size).astype(float) @ sample.state.reshape(-1)
        assert bool((result.mutual <= 2 * result.d * (1 - result.d) + 1e-12).all())
        columns = (result.gamma, result.d, result.entropy, result.mutual)
        for gamma, d, entropy, mutual in zip(*columns, strict=True):
            weight = np.exp(gamma * (overlaps - size))
            weight /= weight.sum()
            exact_d = (1 - weight @ overlaps / size) / 2
            exact_entropy = -(weight @ np.log(weight)) / size
            mean = weight @ every.states.reshape(-1, size)
            exact_mutual = (1 - np.square(mean).mean()) / 2
            differences.append((d - exact_d, entropy - exact_entropy, mutual - exact_mutual))
    table = np.array(differences)
    assert len(table) >= 30
    assert np.abs(table.mean(0)).max() < 0.03
    assert np.abs(table).max() < 0.12


@pytest.mark.parametrize(("chain", "n"), [(Chain(1, 0.9), 18), (Chain(2, 0.5, lam=0.6), 9)])
def test_counts_at_distance_1_and_2_are_exact(chain: Chain, n: int) -> None:
    """Around every fixed point of a sample, against all of them."""
    network = Network(n, chain)
    J = draw_dense(network, 4, range(1), dtype=torch.float64).matrices[0].numpy()
    every = enumerate_fixed_points(J, chain.jd, chain.lam_left, chain.lam_right, keep_states=True)
    states = every.states.reshape(every.count, -1).astype(int)
    assert every.count > 20
    for index in range(0, every.count, max(1, every.count // 15)):
        distances = (states != states[index]).sum(1)
        for distance in (1, 2):
            count = neighbours_at(J, states[index], network, distance)
            assert count == int((distances == distance).sum())


def test_large_fields_see_the_counts() -> None:
    """N d = (n1 x + 2 n2 x^2)/(1 + n1 x + n2 x^2), x = e^{-2 gamma}, with the counts n1 and n2.

    Around a fixed point of reinforced BP at gamma = 3, where others are 0.4 flips away on average;
    TAP and the higher orders differ by some percent there.
    """
    couplings, state = reference("rbp", 400, 0.8)
    J = couplings.matrices[0].double().numpy()
    one, two = (neighbours_at(J, state.numpy(), Network(400, Chain(1, 0.8)), k) for k in (1, 2))
    assert one > 100
    result = local_entropy_around(couplings, state, np.arange(0, 3.1, 0.25), variances="exact")
    assert result.gamma[-1] == pytest.approx(3)
    x = np.exp(-2 * result.gamma[-1])
    z = 1 + one * x + two * x**2
    flips = (one * x + 2 * two * x**2) / z
    assert 400 * result.d[-1] == pytest.approx(flips, rel=0.1)
    entropy = np.log(z) - np.log(x) * flips
    assert 400 * result.entropy[-1] == pytest.approx(entropy, rel=0.1)


@pytest.fixture(scope="module")
def typical() -> LocalEntropy:
    sample, couplings = planted(Network(400, Chain(1, 0.8)), 0)
    return local_entropy_around(couplings, sample.state, np.arange(0, 1.4, 0.05))


def test_slope_is_twice_the_field(typical: LocalEntropy) -> None:
    """An identity of the free entropy: dS/dd = 2 gamma; errors of differences are third order."""
    d, s, gamma = typical.d, typical.entropy, typical.gamma
    slope = np.diff(s) / np.diff(d)
    assert bool((np.diff(d) < 0).all())
    np.testing.assert_allclose(slope, gamma[1:] + gamma[:-1], atol=0.004)


def test_interpolation(typical: LocalEntropy) -> None:
    columns = (typical.gamma, typical.d, typical.entropy, typical.mutual)
    half = LocalEntropy(*(column[::2] for column in columns), ())
    middle = float(typical.d[5])
    assert half.at(middle) == pytest.approx(typical.entropy[5], abs=1e-4)
    assert typical.at(0.5 + 1e-3) is None
    assert typical.at(1e-6) is None


def test_fixed_points_of_algorithms_lie_in_denser_regions(typical: LocalEntropy) -> None:
    """At N = 400, J_D = 0.8: typical < dynamics < reinforced BP at d = 0.02, 0.05, 0.1."""
    curves = [typical]
    for source in ("dynamics", "rbp"):
        curves.append(local_entropy_around(*reference(source, 400, 0.8), np.arange(0, 2, 0.1)))
    for d, expected in ((0.02, (0.04, 0.07, 0.08)), (0.05, (0.11, 0.15, 0.16))):
        values = [curve.at(d) for curve in curves]
        np.testing.assert_allclose(np.array(values, dtype=float), expected, atol=0.011)
    ends = [curve.at(0.1) for curve in curves]
    assert ends[0] is not None
    assert ends[1] is not None
    assert ends[2] is not None
    assert ends[0] < ends[1] < ends[2]


def test_failures() -> None:
    sample, couplings = planted(Network(200, Chain(1, 0.3)), 0)
    # An isolated fixed point: the curve ends before the field does, and says so.
    result = local_entropy_around(couplings, sample.state, np.arange(0, 4, 0.25))
    assert result.failed
    assert all(why for _, why in result.failed)
    assert bool(np.isfinite(result.entropy).all())
    with pytest.raises(NotConvergedError, match="around the fixed point"):
        local_entropy_around(couplings, sample.state, [0.5], max_iterations=1)
    wrong = sample.state.copy()
    wrong[0, 0] *= -1
    with pytest.raises(InvalidInputError, match="state must be a fixed point"):
        local_entropy_around(couplings, wrong)
    with pytest.raises(InvalidInputError, match="gamma must be fields"):
        local_entropy_around(couplings, sample.state, [-1.0])
    with pytest.raises(InvalidInputError, match="state must be of shape"):
        local_entropy_around(couplings, sample.state[:, :-1])
    with pytest.raises(InvalidInputError, match="reference must be one of"):
        reference("magic", 50, 0.5)
    with pytest.raises(NotConvergedError, match="dynamics reached no fixed point"):
        reference("dynamics", 100, -0.5)


@pytest.mark.parametrize(("option", "source"), [("reference", "planted"), ("around", "likelihood")])
def test_command(
    option: str, source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "entropy.json"
    command = ["local-entropy", f"--{option}", source, "--n", "120", "--jd", ".9"]
    command += ["--gamma", "0:1:6", "--d", ".2,.3"]
    assert run([*command, "--out", str(out), "--plot", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result == json.loads(out.read_text())
    assert out.with_suffix(".png").read_bytes()[:4] == b"\x89PNG"
    assert result["parameters"]["reference"] == source
    assert result["min_margin"] > 0
    assert result["at_distance_2"] >= 0
    assert 0 < result["entropies"][0] < result["entropies"][1] < np.log(2)
    assert len(result["curve"]["d"]) == len(result["curve"]["entropy"]) == 6
    assert run(command) == 0
    assert "at_distance_1" in capsys.readouterr().out
    assert run([*command, "--plot"]) == 2
    assert "out must be given with --plot" in capsys.readouterr().err
