"""Message passing asks its device for news only every `check_every` iterations, and loses nothing.

There is no GPU in CI: what would stall one is counted on the CPU, where the shortcuts that ask
(cheap there) are told apart by what they are.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rmsim.couplings import DenseChain, draw_dense
from rmsim.messages import reinforced, signs, site, underway
from rmsim.messages.amp import belief_propagation
from rmsim.messages.focusing import focus
from rmsim.messages.likelihood import optimise
from rmsim.messages.outcome import Outcome
from rmsim.messages.reinforced import reinforce
from rmsim.messages.step import random_fields
from rmsim.network import Network
from rmtheory import Chain


def couplings_of(jd: float, samples: int = 6, n: int = 60) -> DenseChain:
    """In float64: products of other batches round otherwise, by less than any tolerance here."""
    return draw_dense(Network(n, Chain(2, jd, 0.3)), 5, range(samples), dtype=torch.float64)


@pytest.mark.parametrize("jd", [-0.6, 0.2, 0.8])
def test_beliefs_do_not_depend_on_the_questions(jd: float) -> None:
    couplings = couplings_of(jd)
    start = random_fields(1, range(6), 2, 60)
    field = 0.1 * random_fields(2, range(6), 2, 60)
    often, rarely = (
        belief_propagation(couplings, start=start, field=field, check_every=k, max_iterations=300)
        for k in (1, 7)
    )
    for name in ("status", "iterations", "period"):
        assert torch.equal(getattr(often, name), getattr(rarely, name)), name
    assert torch.allclose(often.residual, rarely.residual, rtol=1e-3)
    assert torch.allclose(often.m, rarely.m, atol=1e-12)
    assert torch.allclose(often.free_entropy, rarely.free_entropy, rtol=1e-12)


def test_beliefs_end_at_different_iterations_and_in_different_ways() -> None:
    """Otherwise the test above would prove nothing."""
    for jd, name in ((0.2, "iterations"), (-0.6, "status")):
        found = belief_propagation(
            couplings_of(jd),
            start=random_fields(1, range(6), 2, 60),
            field=0.1 * random_fields(2, range(6), 2, 60),
            max_iterations=300,
        )
        assert len(getattr(found, name).unique()) > 1


@pytest.mark.parametrize(("search", "jd"), [(reinforce, 0.15), (optimise, 0.4)])
def test_searches_do_not_depend_on_the_questions(search: Callable[..., Any], jd: float) -> None:
    """Near the threshold, where reinforced signs may leave a fixed point again."""
    couplings = draw_dense(Network(80, Chain(1, jd)), 5, range(12), dtype=torch.float64)
    often, rarely = (search(couplings, check_every=k, max_iterations=240) for k in (1, 9))
    assert 0 < int(often.solved.sum()) < 12
    for name in ("status", "iterations", "state"):
        assert torch.equal(getattr(often, name), getattr(rarely, name)), name


def test_a_state_that_only_seemed_fixed_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Margins that are positive in float32 only: the search is thawed, and no solution reported."""
    monkeypatch.setattr(signs, "least_margins", lambda c, s, *a, **k: -torch.ones(s.shape[:2]))
    for search in (reinforce, optimise):
        found = search(couplings_of(0.8, samples=3), check_every=5, max_iterations=60)
        assert not bool(found.solved.any())


def test_focusing_does_not_depend_on_the_questions() -> None:
    couplings = couplings_of(0.8, samples=1)
    often, rarely = (focus(couplings, 4, 0.8, check_every=k, seed=1) for k in (1, 7))
    assert often.point is not None
    assert (often.status, often.iterations) == (rarely.status, rarely.iterations)
    assert often.point == rarely.point
    assert torch.equal(often.state, rarely.state)


class Questions(TorchDispatchMode):
    """Counts what would make the processor wait for a GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        name = str(function)
        boolean = "aten.index" in name and any(
            torch.is_tensor(index) and index.dtype == torch.bool
            for index in (args[1] if isinstance(args[1], list | tuple) else [])
        )
        if boolean or any(x in name for x in ("_local_scalar_dense", "nonzero", "masked_select")):
            self.asked.append(name)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("what", ["bp", "rbp", "likelihood", "fbp"])
def test_iterations_between_questions_ask_nothing(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty iterations more, and no question more: the shortcuts of the CPU are switched off."""
    for module in (site, underway, reinforced):
        monkeypatch.setattr(module, "cheap_to_ask", lambda device: False)
    copies: list[str] = []
    for name in ("tolist", "cpu", "numpy"):  # not seen by the dispatcher
        plain = getattr(torch.Tensor, name)
        monkeypatch.setattr(
            torch.Tensor, name, lambda x, plain=plain: (copies.append("copy"), plain(x))[1]
        )
    couplings = couplings_of(0.05, samples=3)
    counts = []
    for cap in (20, 60):
        with Questions() as questions:
            if what == "bp":
                start = random_fields(1, range(3), 2, 60)
                found = belief_propagation(
                    couplings, start=start, check_every=1000, max_iterations=cap, tolerance=1e-30
                )
                assert bool((found.status == Outcome.UNCONVERGED).all())
            elif what == "fbp":
                focus(couplings_of(0.05, samples=1), 4, 0.8, check_every=1000, max_iterations=cap)
            else:
                search: Callable[..., Any] = reinforce if what == "rbp" else optimise
                search(couplings, check_every=1000, max_iterations=cap)
        counts.append(len(questions.asked) + len(copies))
        copies.clear()
    assert counts[0] == counts[1] < 80
