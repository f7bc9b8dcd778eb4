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
from rmsim.messages import reinforced, site, underway
from rmsim.messages.amp import belief_propagation
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
    found = belief_propagation(
        couplings_of(0.2),
        start=random_fields(1, range(6), 2, 60),
        field=0.1 * random_fields(2, range(6), 2, 60),
        max_iterations=300,
    )
    assert len(found.iterations.unique()) > 1


@pytest.mark.parametrize(("search", "looks"), [(reinforce, 2), (optimise, 1)])
def test_searches_find_the_same_up_to_the_delay(search: Callable[..., Any], looks: int) -> None:
    """At the first look with a fixed point; reinforced signs may have left one in between."""
    couplings = couplings_of(0.5, samples=8, n=100)
    often, rarely = (search(couplings, check_every=k, max_iterations=240) for k in (1, 8))
    assert bool(often.solved.any())
    assert torch.equal(often.status, rarely.status)
    late = (rarely.iterations - often.iterations)[often.solved]
    assert bool((late >= 0).all())
    assert bool((late < 8 * looks).all())
    assert bool(((rarely.min_margin > 0) == rarely.solved).all())
    others = ~often.solved
    assert torch.equal(often.iterations[others], rarely.iterations[others])


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


@pytest.mark.parametrize("what", ["bp", "rbp", "likelihood"])
def test_iterations_between_questions_ask_nothing(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty iterations more, and no question more: the shortcuts of the CPU are switched off."""
    for module in (site, underway, reinforced):
        monkeypatch.setattr(module, "cheap_to_ask", lambda device: False)
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
            else:
                search: Callable[..., Any] = reinforce if what == "rbp" else optimise
                search(couplings, check_every=1000, max_iterations=cap)
        counts.append(len(questions.asked))
    assert counts[0] == counts[1] < 60
