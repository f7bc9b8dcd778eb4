"""Likelihood optimisation: its gradient, what it solves, how its failures are named, commands."""

import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from rmsim.cli import run
from rmsim.couplings import DenseChain, draw_dense
from rmsim.dynamics.status import SearchResult, Status
from rmsim.network import Network
from rmsim.search.amp import Products, bonds_of
from rmsim.search.likelihood import (
    Rate,
    gradient,
    log_likelihood,
    optimise,
)
from rmsim.search.methods import find_fixed_point
from rmsim.studies.convergence import measure
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError

pytestmark = pytest.mark.numerical

DOUBLE = torch.float64


def test_likelihood_of_one_layer_is_its_formula() -> None:
    """L = sum log sum_s (1 + s m)/2 P((J_D + s omega)/sqrt V), spelled out."""
    couplings = draw_dense(Network(20, Chain(1, 0.4)), 0, range(1), dtype=DOUBLE)
    J = couplings.matrices[0, 0].numpy()
    m = np.random.default_rng(0).uniform(-0.9, 0.9, 20)
    omega, v = J @ m, J**2 @ (1 - m**2)

    def p(a: float) -> float:
        return 0.5 * math.erfc(-a / math.sqrt(2))

    expected = sum(
        math.log(
            sum((1 + s * m[i]) / 2 * p((0.4 + s * omega[i]) / math.sqrt(v[i])) for s in (1, -1))
        )
        for i in range(20)
    )
    h, jm, spread = (torch.tensor(x)[None, None] for x in (np.arctanh(m), omega, v))
    assert float(log_likelihood(h, jm, spread, bonds_of(couplings))) == pytest.approx(expected)


@pytest.mark.parametrize("variances", ["exact", "rank-one"])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_gradient_is_that_of_autograd(variances: str, layers: int) -> None:
    chain = Chain(layers, 0.4, lam_left=0.5, lam_right=0.2) if layers > 1 else Chain(1, 0.4)
    couplings = draw_dense(Network(30, chain), 1, range(2), dtype=DOUBLE)
    squares = couplings.matrices.square()
    if variances == "rank-one":
        rows, columns = squares.sum(-1, keepdim=True), squares.sum(-2, keepdim=True)
        squares = rows * columns / squares.sum((-1, -2), keepdim=True)
    random = torch.Generator().manual_seed(0)
    m = torch.rand((2, layers, 30), generator=random, dtype=DOUBLE) * 1.98 - 0.99
    m.requires_grad_()
    jm = torch.einsum("klij,klj->kli", couplings.matrices, m)
    v = torch.einsum("klij,klj->kli", squares, 1 - m * m)
    h = m.atanh()
    value = log_likelihood(h, jm, v, bonds_of(couplings)).sum()
    (expected,) = torch.autograd.grad(value, m)
    result = gradient(Products(couplings, variances), h.detach(), jm.detach(), v.detach())
    torch.testing.assert_close(result, expected, rtol=1e-10, atol=1e-11)


def test_small_steps_climb() -> None:
    couplings = draw_dense(Network(50, Chain(1, 0.5)), 0, range(1), dtype=DOUBLE)
    products = Products(couplings, "exact")
    h = torch.randn((1, 1, 50), generator=torch.Generator().manual_seed(1), dtype=DOUBLE)
    values = []
    for _ in range(60):
        jm, v = products.forward(h.tanh()), products.spread(1 - h.tanh().square())
        values.append(float(log_likelihood(h, jm, v, bonds_of(couplings))))
        h = h + 0.02 * gradient(products, h, jm, v)
    assert all(b > a for a, b in pairwise(values))


def search(
    network: Network, samples: int, rate: Rate | None = None, **more: object
) -> SearchResult:
    cap = int(str(more.pop("cap", 250)))
    plan = Rate() if rate is None else rate
    return find_fixed_point(
        network,
        "likelihood",
        samples=samples,
        eta=plan.eta,
        decay=plan.decay,
        max_iterations=cap,
        **more,  # type: ignore[arg-type]
    )


def test_solves_what_it_should_and_not_what_it_should_not() -> None:
    """N = 300: all of 6 at J_D = 0.7, none at 0.3; every solution holds in float64."""
    network = Network(300, Chain(1, 0.7))
    result = search(network, 6)
    assert bool(result.solved.all())
    J = draw_dense(network, 0, range(6)).matrices[:, 0].double()
    s = result.state[:, 0].double()
    margins = s * (torch.einsum("kij,kj->ki", J, s) + 0.7 * s)
    assert bool((margins > 0).all())
    torch.testing.assert_close(margins.amin(1), result.min_margin, rtol=0, atol=1e-12)
    below = search(Network(300, Chain(1, 0.2)), 2, cap=100)
    assert not bool(below.solved.any())
    assert bool((below.min_margin <= 0).all())
    allowed = {Status.CONVERGED, Status.CAP, Status.POLARISED}
    assert {Status(x) for x in below.status.tolist()} <= allowed


def test_solves_a_chain() -> None:
    result = search(Network(60, Chain(2, 0.5, lam=0.5)), 4, cap=200)
    assert int(result.solved.sum()) >= 3


def test_failures_have_names() -> None:
    short = search(Network(200, Chain(1, 0.5)), 2, cap=3)
    assert set(short.status.tolist()) == {int(Status.CAP)}
    assert short.iterations.tolist() == [3, 3]
    beyond = draw_dense(Network(30, Chain(1, 0.8)), 0, range(2))
    beyond.matrices[0] *= 1e30  # their squares are beyond float32
    assert optimise(beyond, max_iterations=5).status.tolist() == [
        int(Status.DIVERGED),
        int(Status.CAP),
    ]
    # Without couplings no variance is left, whatever the magnetisations.
    lost = optimise(DenseChain(torch.zeros(1, 1, 4, 4), -1.0), max_iterations=50)
    assert Status(int(lost.status)) == Status.POLARISED
    with pytest.raises(InvalidInputError, match="eta must be"):
        Rate(0.0)
    with pytest.raises(InvalidInputError, match="decay must be"):
        Rate(0.1, -1)
    assert Rate(0.4, 0.5).at(2) == pytest.approx(0.2)


@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
def test_no_number_is_undefined(dtype: torch.dtype) -> None:
    for jd in (-1e30, -2.0, 0.0, 5.0, 1e30):
        couplings = draw_dense(Network(20, Chain(2, jd, lam=-1.0)), 0, range(3), dtype=dtype)
        for eta in (0.3, 10.0):
            result = optimise(couplings, Rate(eta), max_iterations=60)
            assert bool(result.min_margin.isfinite().all())
            assert bool(result.quantities["magnetisation"].isfinite().all())
            assert bool(((result.min_margin > 0) == result.solved).all())


def test_batches_and_restarts() -> None:
    """A network does not depend on its batch; only failures start again."""
    network = Network(100, Chain(1, 0.5))
    together, alone = (search(network, 6, dtype="float64", space=x) for x in (2**25, 1))
    assert torch.equal(together.state, alone.state)
    assert torch.equal(together.iterations, alone.iterations)
    couplings = draw_dense(network, 0, range(6), dtype=DOUBLE)
    more = optimise(couplings, max_iterations=250, restarts=3)
    assert 0 < int(together.solved.sum()) < int(more.solved.sum())
    assert bool((more.attempts[together.solved] == 1).all())
    assert bool((more.attempts[~together.solved] > 1).all())
    assert torch.equal(more.state[together.solved], together.state[together.solved])


@pytest.mark.usefixtures("points_here")
def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--algorithm", "likelihood", "--n", "200", "--jd"]
    assert run(["solve", *options, ".8", "--eta", ".2", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["solved"]
    assert result["min_margin"] > 0
    assert result["parameters"]["eta"] == 0.2
    assert result["bethe_entropy"] is None
    assert run(["solve", *options, ".8", "--eta", "0"]) == 2
    assert "eta must be above 0" in capsys.readouterr().err
    settings = {"eta": 0.3, "max_sweeps": 300, "dtype": "float32", "device": "cpu"}
    settings |= {"n": 100, "layers": 1, "jd": 0.7, "rho": 1.0, "symmetric": False}
    some = measure({**settings, "algorithm": "likelihood", "samples": "1:4"}, 0)
    whole = search(Network(100, Chain(1, 0.7)), 4, cap=300)
    solved = whole.solved[1:].numpy()
    assert (some["status"] == Status.FIXED_POINT).tolist() == solved.tolist()
    assert some["sweeps"].tolist() == whole.iterations[1:].tolist()
    sweep = ["thresholds", "--algorithm", "likelihood", "--n", "50", "--jd", ".1,.5,.9"]
    sweep += ["--samples", "6", "--max-sweeps", "100", "--jobs", "1", "--out", str(tmp_path)]
    assert run([*sweep, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["points_computed"] == 3
    assert answer["thresholds"][0]["status"].startswith("found")
