"""Message passing reads its device only every `sync_interval` iterations, and loses nothing by it.

There is no GPU in CI: what would stall one is counted on the CPU, with the shortcuts that are cheap
there switched off.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rmsim.couplings import DenseChain, draw_dense
from rmsim.dynamics import active
from rmsim.dynamics.status import Status
from rmsim.network import Network
from rmsim.search import chain_site, reinforced, sign_search
from rmsim.search.amp import Beliefs, belief_propagation, random_fields
from rmsim.search.focusing import focus
from rmsim.search.likelihood import optimise
from rmsim.search.reinforced import reinforce
from rmtheory.base.chain import Chain

pytestmark = pytest.mark.numerical


def couplings_of(jd: float, samples: int = 6, n: int = 60) -> DenseChain:
    """In float64: products of other batches round differently, by less than any tolerance."""
    return draw_dense(Network(n, Chain(2, jd, 0.3)), 5, range(samples), dtype=torch.float64)


def different_statuses() -> tuple[DenseChain, torch.Tensor, torch.Tensor]:
    """Networks, starts and fields whose statuses no rounding decides; the cap is 86 iterations.

    The first has m = 0 from the start. The second and the last repeat with period 2: a field that
    no neighbour outweighs, against the self-couplings, and an antiferromagnet from a uniform start.
    The others converge by a factor of 0.8 per iteration, after 78 to 97 of them.
    """
    couplings = couplings_of(0.2)
    matrices = couplings.matrices.clone()
    matrices[5] = 0.1 * matrices[5] - 4.0 / 60
    matrices[5].diagonal(dim1=-2, dim2=-1).zero_()
    start = random_fields(1, range(6), 2, 60, dtype=torch.float64)
    field = 0.1 * random_fields(2, range(6), 2, 60, dtype=torch.float64)
    start[0], start[5] = 0.0, 1.0
    field[0], field[5] = 0.0, 0.0
    field[1] = 60 * field[1].sign()
    return replace(couplings, matrices=matrices), start, field


def assert_same_beliefs(often: Beliefs, rarely: Beliefs) -> None:
    for name in ("status", "iterations", "period"):
        assert torch.equal(getattr(often, name), getattr(rarely, name)), name
    assert torch.allclose(often.residual, rarely.residual, rtol=1e-3, atol=1e-13)
    assert torch.allclose(often.m, rarely.m, atol=1e-12)
    assert torch.allclose(often.free_entropy, rarely.free_entropy, rtol=1e-12)


@pytest.mark.parametrize("jd", [0.2, 0.8])
def test_beliefs_do_not_depend_on_the_interval(jd: float) -> None:
    couplings = couplings_of(jd)
    start = random_fields(1, range(6), 2, 60)
    field = 0.1 * random_fields(2, range(6), 2, 60)
    often, rarely = (
        belief_propagation(couplings, start=start, field=field, sync_interval=k, max_iterations=300)
        for k in (1, 7)
    )
    assert bool((often.status == Status.CONVERGED).all())
    assert len(often.iterations.unique()) > 1
    assert_same_beliefs(often, rarely)


def test_statuses_of_beliefs_do_not_depend_on_the_interval() -> None:
    couplings, start, field = different_statuses()
    often, rarely = (
        belief_propagation(couplings, start=start, field=field, sync_interval=k, max_iterations=86)
        for k in (1, 7)
    )
    statuses = (Status.PARAMAGNET, Status.CYCLE, Status.CONVERGED, Status.CAP)
    assert set(often.status.tolist()) == set(map(int, statuses))
    assert_same_beliefs(often, rarely)


@pytest.mark.parametrize(("search", "jd"), [(reinforce, 0.3), (optimise, 0.4)])
def test_searches_do_not_depend_on_the_interval(search: Callable[..., Any], jd: float) -> None:
    """Some networks are solved, others are not, each with a margin far above rounding."""
    couplings = draw_dense(Network(80, Chain(1, jd)), 5, range(12), dtype=torch.float64)
    often, rarely = (search(couplings, sync_interval=k, max_iterations=240) for k in (1, 9))
    assert 0 < int(often.solved.sum()) < 12
    for name in ("status", "iterations", "state"):
        assert torch.equal(getattr(often, name), getattr(rarely, name)), name


def test_a_state_that_only_seemed_fixed_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Margins that are positive in float32 only: the search is thawed, and no solution reported."""
    monkeypatch.setattr(
        sign_search, "least_margins", lambda c, s, *a, **k: -torch.ones(s.shape[:2])
    )
    for search in (reinforce, optimise):
        result = search(couplings_of(0.8, samples=3), sync_interval=5, max_iterations=60)
        assert not bool(result.solved.any())


def test_focusing_does_not_depend_on_the_interval() -> None:
    couplings = couplings_of(0.8, samples=1)
    often, rarely = (focus(couplings, 4, 0.8, sync_interval=k, seed=1) for k in (1, 7))
    for name in ("status", "iterations", "state"):
        assert torch.equal(getattr(often, name), getattr(rarely, name)), name
    assert often.quantities.keys() == rarely.quantities.keys() != set()
    for name, value in often.quantities.items():
        assert bool(torch.isfinite(value).all()), name
        assert torch.allclose(value, rarely.quantities[name], rtol=1e-9, atol=0), name


class Waits(TorchDispatchMode):
    """Counts what would make the processor wait for a GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        name = str(function)
        boolean = "aten.index" in name and any(
            torch.is_tensor(index) and index.dtype == torch.bool
            for index in (args[1] if isinstance(args[1], list | tuple) else [])
        )
        if boolean or any(x in name for x in ("_local_scalar_dense", "nonzero", "masked_select")):
            self.seen.append(name)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("what", ["bp", "rbp", "likelihood", "fbp"])
def test_iterations_between_syncs_do_not_wait(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty iterations more, and no wait more: the shortcuts of the CPU are switched off."""
    for module in (chain_site, active, reinforced):
        monkeypatch.setattr(module, "cheap_to_read", lambda device: False)
    copies: list[str] = []
    for name in ("tolist", "cpu", "numpy"):  # not seen by the dispatcher
        plain = getattr(torch.Tensor, name)
        monkeypatch.setattr(
            torch.Tensor, name, lambda x, plain=plain: (copies.append("copy"), plain(x))[1]
        )
    couplings = couplings_of(0.05, samples=3)
    counts = []
    # At the cap signs are tested by a product, which waits, where J m leaves a chance: there twice.
    for cap in (60, 100) if what == "rbp" else (20, 60):
        with Waits() as waits:
            if what == "bp":
                start = random_fields(1, range(3), 2, 60)
                result = belief_propagation(
                    couplings, start=start, sync_interval=1000, max_iterations=cap, tolerance=1e-30
                )
                assert bool((result.status == Status.CAP).all())
            elif what == "fbp":
                focus(couplings_of(0.05, samples=1), 4, 0.1, sync_interval=1000, max_iterations=cap)
            else:
                search: Callable[..., Any] = reinforce if what == "rbp" else optimise
                search(couplings, sync_interval=1000, max_iterations=cap)
        counts.append(len(waits.seen) + len(copies))
        copies.clear()
    assert counts[0] == counts[1] < 80
