"""Reinforced BP: what it solves, how its failures are named, and the commands that run it."""

import json
from typing import Any

import numpy as np
import pytest
import torch

from rmsim.cli import run
from rmsim.couplings import DenseChain, draw_dense
from rmsim.dynamics.status import SearchResult, Status
from rmsim.enumeration import enumerate_samples
from rmsim.network import Network
from rmsim.search.amp import random_fields
from rmsim.search.methods import METHODS, find_fixed_point, layer_overlaps
from rmsim.search.reinforced import Schedule, reinforce
from rmsim.studies.convergence import measure
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError

pytestmark = pytest.mark.numerical


def reinforce_samples(
    network: Network, samples: int, seed: int = 0, schedule: Schedule | None = None, **more: Any
) -> SearchResult:
    """Reinforced BP by the function that has all methods."""
    plan = Schedule() if schedule is None else schedule
    return find_fixed_point(
        network, "rbp", samples=samples, seed=seed, r0=plan.r0, dr=plan.dr, **more
    )


def least_margin(couplings: DenseChain, found: SearchResult, k: int) -> float:
    """Least s h of the state found in network k, in float64, spelled out."""
    J = couplings.matrices[k].double().numpy()
    s = found.state[k].numpy().astype(float)
    h = np.einsum("lij,lj->li", J, s) + couplings.jd * s
    h[1:] += couplings.lam_left * s[:-1]
    h[:-1] += couplings.lam_right * s[1:]
    return float((s * h).min())


def test_solves_the_coupling_of_the_paper() -> None:
    """J_D = 0.35 at N = 1000: all of 6 seeds (the benchmark has N = 4000)."""
    network = Network(1000, Chain(1, 0.35))
    result = reinforce_samples(network, 6, seed=0)
    assert bool(result.solved.all())
    assert int(result.iterations.max()) < 250
    assert set(result.attempts.tolist()) == {1}
    couplings = draw_dense(network, 0, range(6))
    for k in range(6):
        margin = least_margin(couplings, result, k)
        assert margin > 0
        assert margin == pytest.approx(float(result.min_margin[k]), abs=1e-12)


def test_slower_is_better() -> None:
    """At J_D = 0.15, N = 200: none at dr = 0.1, more at 0.003 than at 0.02."""
    network = Network(200, Chain(1, 0.15))
    solved = [
        int(reinforce_samples(network, 8, seed=2, schedule=Schedule(dr=dr)).solved.sum())
        for dr in (0.1, 0.02, 0.003)
    ]
    assert solved[0] == 0
    assert solved[0] <= solved[1] < solved[2]


@pytest.mark.parametrize(
    ("chain", "r0"),
    [
        (Chain(2, 0.0, lam=0.9), 0.0),
        (Chain(2, 0.2, lam_left=0.9, lam_right=0.1), 0.0),
        (Chain(3, 0.1, lam=0.7), 0.3),
    ],
)
def test_solves_chains(chain: Chain, r0: float) -> None:
    network = Network(200, chain)
    result = reinforce_samples(network, 3, schedule=Schedule(r0, 0.01), restarts=1)
    assert int(result.solved.sum()) >= 2
    couplings = draw_dense(network, 0, range(3))
    for k in range(3):
        assert (least_margin(couplings, result, k) > 0) == bool(result.solved[k])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_slow_reinforcement_at_large_self_coupling_does_not_collapse(dtype: str) -> None:
    """The messages shrink by (1e-1)^100 before r is large enough: they are scaled up."""
    schedule = Schedule(dr=0.003)
    result = reinforce_samples(Network(300, Chain(1, 1.0)), 4, schedule=schedule, dtype=dtype)
    assert bool(result.solved.all())


def test_external_field_and_field_on_the_spins() -> None:
    """Fixed points of the network in an external field; and those that look like a given state."""
    network = Network(400, Chain(1, 0.8))
    couplings = draw_dense(network, 0, range(2))
    external = random_fields(3, range(2), 1, 400, scale=1.0)
    result = reinforce(couplings, external=external)
    assert bool(result.solved.all())
    for k in range(2):
        s = result.state[k, 0].double()
        h = couplings.matrices[k, 0].double() @ s + 0.8 * s + external[k, 0].double()
        assert float((s * h).min()) == pytest.approx(float(result.min_margin[k]), abs=1e-12)
        assert float((s * h).min()) > 0
    target = torch.where(external >= 0, 1.0, -1.0)
    pulled = reinforce(couplings, field=0.3 * target)
    plain = reinforce(couplings)
    overlaps = [float((x.state * target).mean()) for x in (plain, pulled)]
    assert bool(pulled.solved.all())
    assert abs(overlaps[0]) < 0.2 < 0.4 < overlaps[1]


def test_failures_have_names() -> None:
    fast = reinforce_samples(Network(300, Chain(1, 0.05)), 5, schedule=Schedule(dr=0.02))
    assert set(fast.status.tolist()) <= {Status.POLARISED, Status.CAP, Status.CYCLE}
    assert Status.POLARISED in fast.status.tolist()
    assert bool((fast.min_margin <= 0).all())
    short = reinforce_samples(Network(300, Chain(1, 0.35)), 3, max_iterations=40)
    assert set(short.status.tolist()) == {int(Status.CAP)}
    assert short.iterations.tolist() == [40, 40, 40]
    slow = reinforce_samples(
        Network(300, Chain(1, 0.3)), 3, schedule=Schedule(dr=1e-6), max_iterations=60
    )
    assert set(slow.status.tolist()) == {int(Status.PARAMAGNET)}
    assert float(slow.quantities["magnetisation"].max()) < 1e-4
    tiny = reinforce_samples(
        Network(5, Chain(1, 0.0)), 60, schedule=Schedule(dr=0.001), max_iterations=200
    )
    named = {Status.FIXED_POINT, Status.PARAMAGNET, Status.CAP, Status.CYCLE}
    assert named <= {Status(int(status)) for status in tiny.status}
    counts = enumerate_samples(Network(5, Chain(1, 0.0)), 60, seed=0).counts
    assert 0 < int(tiny.solved.sum()) <= int((counts > 0).sum()) < 60


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_number_is_undefined(dtype: torch.dtype) -> None:
    for jd in (-1e30, -2.0, 0.0, 5.0, 1e30):
        couplings = draw_dense(Network(20, Chain(2, jd, lam=-1.0)), 0, range(3), dtype=dtype)
        result = reinforce(couplings, max_iterations=60)
        for tensor in (result.min_margin, result.quantities["magnetisation"]):
            assert bool(tensor.isfinite().all())
        assert bool(((result.min_margin > 0) == result.solved).all())
        assert bool((result.state.abs() == 1).all())


def test_restarts_only_where_needed_and_reproducibly() -> None:
    network, schedule = Network(100, Chain(1, 0.2)), Schedule(dr=0.02)
    once = reinforce_samples(network, 12, seed=1, schedule=schedule)
    failed = ~once.solved
    assert 0 < int(failed.sum()) < 12
    more = reinforce_samples(network, 12, seed=1, schedule=schedule, restarts=2)
    assert int(more.solved.sum()) > int(once.solved.sum())
    assert bool((more.attempts[~failed] == 1).all())
    assert bool((more.attempts[failed] > 1).all())
    assert bool((more.iterations[failed] > once.iterations[failed]).all())
    assert torch.equal(more.state[~failed], once.state[~failed])
    again = reinforce_samples(network, 12, seed=1, schedule=schedule, restarts=2)
    assert torch.equal(more.state, again.state)
    other = reinforce_samples(network, 12, seed=2, schedule=schedule)
    assert not torch.equal(once.state, other.state)


def test_a_network_does_not_depend_on_its_batch() -> None:
    """One network at a time has other products and the same search."""
    network = Network(200, Chain(1, 0.4))
    together, alone = (
        reinforce_samples(network, 4, dtype="float64", space=space) for space in (2**25, 1)
    )
    assert torch.equal(together.state, alone.state)
    assert torch.equal(together.iterations, alone.iterations)


def test_schedule() -> None:
    schedule = Schedule(0.2, 0.01)
    assert schedule.r(0) == pytest.approx(0.2)
    assert schedule.r(schedule.iterations) >= 0.95 > schedule.r(schedule.iterations - 2)
    for values, name in (((-0.1, 0.01), "r0"), ((1, 0.01), "r0"), ((0, 0), "dr"), ((0, 1), "dr")):
        with pytest.raises(InvalidInputError) as caught:
            Schedule(*values)
        assert caught.value.argument == name
    with pytest.raises(InvalidInputError, match="symmetric must be False"):
        reinforce_samples(Network(20, Chain(1, 0.5), symmetric=True), 1)
    with pytest.raises(InvalidInputError, match="rho must be 1"):
        reinforce_samples(Network(20, Chain(1, 0.5), rho=0.5), 1)
    with pytest.raises(InvalidInputError, match="samples must be"):
        reinforce_samples(Network(20, Chain(1, 0.5)), 0)


def test_algorithm_of_the_thresholds() -> None:
    settings = {"r0": 0.0, "dr": 0.01, "max_sweeps": 1000, "dtype": "float32", "device": "cpu"}
    settings |= {"algorithm": "rbp", "n": 300, "layers": 1, "rho": 1.0, "symmetric": False}
    result = measure({**settings, "jd": 0.35, "samples": "2:6"}, 0)
    whole = reinforce_samples(Network(300, Chain(1, 0.35)), 6)
    solved = result["status"] == Status.FIXED_POINT
    assert solved.tolist() == whole.solved[2:].tolist()
    assert result["sweeps"].tolist() == whole.iterations[2:].tolist()
    assert result["period"].tolist() == solved.astype(int).tolist()
    below = measure({**settings, "jd": 0.0, "samples": "0:2"}, 0)
    assert bool((below["status"] != Status.FIXED_POINT).all())
    assert int(below["sweeps"].max()) <= 299


def solve(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert run(["solve", *options, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert isinstance(answer, dict)
    return answer


def test_solve_command(capsys: pytest.CaptureFixture[str]) -> None:
    common = ("--n", "400", "--seed", "3")
    result = solve(capsys, "--algorithm", "rbp", "--jd", ".35", "--dr", ".01", *common)
    assert result["solved"]
    assert result["status"] == "fixed_point"
    assert result["min_margin"] > 0
    assert result["overlap"] is None
    assert result["parameters"]["dr"] == 0.01
    assert result["parameters"]["max_iterations"] == 299
    plain = solve(capsys, "--algorithm", "bp", "--jd", ".35", "--dtype", "float64", *common)
    assert plain["status"] == "paramagnet"
    assert not plain["solved"]
    assert plain["bethe_entropy"] == pytest.approx(plain["theory_entropy"], abs=2e-3)
    failed = solve(capsys, "--algorithm", "bp", "--jd", "-1", *common)
    assert failed["status"] not in ("converged", "paramagnet")
    assert failed["bethe_entropy"] is None
    moved = solve(capsys, "--algorithm", "dynamics", "--jd", "1", "--restarts", "2", *common)
    assert moved["solved"]
    assert moved["parameters"]["p"] == 1
    chain = ("--jd", "0", "--layers", "2", "--lam", ".9", *common)
    pair = solve(capsys, "--algorithm", "rbp", *chain)
    assert pair["overlap"][0] > 0.9
    typical = solve(capsys, "--algorithm", "bp", *chain)
    assert 0.5 < typical["overlap"][0] < 1
    assert typical["bethe_entropy"] == pytest.approx(typical["theory_entropy"], abs=3e-3)
    lost = solve(capsys, "--jd", "0", "--n", "100", "--dr", ".05")
    assert not lost["solved"]
    assert lost["status"] in ("polarised", "cap", "cycle")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--algorithm", "magic"], "algorithm must be one of bp, rbp, dynamics"),
        (["--algorithm", "bp", "--dr", ".1"], "dr must be left out for the algorithm bp, got .1"),
        (["--dr", "2"], "dr must be above 0 and below 1, got 2"),
        (["--r0", "x"], "r0 must be a finite real number, got x"),
        (["--restarts", "-1"], "restarts must be an integer >= 0"),
        (["--max-iterations", "0"], "max_iterations must be an integer >= 1"),
        (["--algorithm", "dynamics", "--p", "0"], "p must be"),
        (["--layers", "inf", "--lam", "1"], "layers must be finite"),
    ],
)
def test_bad_options(options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["solve", "--n", "50", "--jd", ".3", *options]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_table_and_registry(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["solve", "--n", "100", "--jd", ".5"]) == 0
    assert "theory_entropy" in capsys.readouterr().out
    assert {"bp", "rbp", "dynamics"} <= set(METHODS)
    assert layer_overlaps(torch.ones(1, 5)) is None
    assert layer_overlaps(torch.tensor([[1, 1, -1, 1], [1, 1, 1, 1], [-1, -1, -1, -1]])) == [
        0.5,
        -1,
    ]
