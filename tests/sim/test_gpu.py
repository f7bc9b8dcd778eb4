"""Every entry point on a pretend GPU: it runs there, equals the CPU, waits as often as stated.

The statement is the table of docs/gpu.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import astuple, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rmsim.couplings import draw_dense
from rmsim.dynamics import random_starts
from rmsim.dynamics.sweeps import check_margins
from rmsim.network import Network
from rmsim.tensors import checked_sync_interval, gpu_environments
from rmtheory import Chain
from tests.device_cases import CASES, INTERVAL, Case
from tests.pretend_device import CUDA, DeviceTensor, fetched, pretend_device

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "gpu.md"

#: Sums of a compiled route of the CPU and of the route of a GPU differ in their order.
_ROUNDING = {torch.float32: 1e-4, torch.float64: 1e-9}


def stated() -> dict[str, tuple[int, int]]:
    """Return the waits a + b k of every row of the table."""
    table = _PAGE.read_text("utf-8").partition("## When the host waits")[2]
    rows = re.findall(r"^\| (.+?) \| (\d+)(?: \+ (\d+) k)? \|", table, re.M)
    return {name: (int(constant), int(slope or 0)) for name, constant, slope in rows}


def assert_equal(cpu: Any, gpu: Any, where: str = "result") -> None:
    """Compare results as deep as they go: whole numbers to the last, others to the rounding."""
    if is_dataclass(cpu) and not isinstance(cpu, type):
        cpu, gpu = astuple(cpu), astuple(gpu)
    if isinstance(cpu, np.ndarray):
        cpu, gpu = torch.as_tensor(cpu), torch.as_tensor(gpu)
    if isinstance(cpu, Mapping):
        assert cpu.keys() == gpu.keys(), where
        for name in cpu:
            assert_equal(cpu[name], gpu[name], f"{where}, {name}")
    elif isinstance(cpu, (list, tuple)):
        assert len(cpu) == len(gpu), where
        for index, (one, other) in enumerate(zip(cpu, gpu, strict=True)):
            assert_equal(one, other, f"{where}, {index}")
    elif isinstance(cpu, torch.Tensor):
        assert cpu.shape == gpu.shape, where
        if cpu.is_floating_point():
            bound = _ROUNDING[cpu.dtype]
            assert torch.allclose(cpu, gpu, bound, bound, equal_nan=True), where
        else:
            assert torch.equal(cpu, gpu), where
    elif isinstance(cpu, float):
        assert gpu == pytest.approx(cpu, rel=1e-4, abs=1e-4, nan_ok=True), where
    else:
        assert cpu == gpu, where


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_runs_on_the_device_equals_the_cpu_and_waits_as_stated(case: Case) -> None:
    on_cpu = case.call("cpu")
    with pretend_device() as ledger:
        on_device = fetched(case.call("cuda"))
    assert_equal(on_cpu, on_device)
    constant, slope = stated()[case.row]
    assert ledger.waits.total() <= constant + slope * case.k, str(ledger)


def test_the_table_states_nothing_that_is_not_tried() -> None:
    assert {*stated()} == {case.row for case in CASES}


def test_the_interval_of_questions_is_that_of_the_table() -> None:
    assert checked_sync_interval(CUDA) == INTERVAL
    assert f"every {INTERVAL} " in _PAGE.read_text("utf-8")


def test_what_a_gpu_refuses_is_refused() -> None:
    with pretend_device() as ledger:
        there, here = torch.zeros(3, device="cuda"), torch.zeros(3)
        for mixed in (
            lambda: there + here,
            lambda: torch.stack([there, here]),
            lambda: here[there > 0],
            lambda: here.add_(there.sum()),
            lambda: there.index_put_((torch.tensor([0]),), here[:1]),
            lambda: torch.rand(2, generator=torch.Generator(), device="cuda"),
            lambda: there.normal_(generator=torch.Generator()),
        ):
            with pytest.raises(RuntimeError, match="device"):
                mixed()
        with pytest.raises(TypeError, match="numpy"):
            there.numpy()
        assert isinstance(there + torch.tensor(1.0), DeviceTensor)  # a number may come from here
        assert ledger.waits.total() == 1  # for the index


def test_waits_are_counted() -> None:
    with pretend_device() as ledger:
        x = torch.arange(4, device="cuda")
        y = (2 * x).double().view(2, 2).sum()
        assert ledger.waits.total() == 0
        assert ledger.launches.total() == 4
        asked = (
            *(lambda: float(y), lambda: bool(y > 0), lambda: x.cpu(), lambda: x.tolist()),
            *(lambda: x[x > 1], lambda: x.nonzero(), lambda: torch.equal(x, x)),
            *(lambda: x[[0, 1]], lambda: torch.tensor([1.0], device="cuda"), lambda: x.unique()),
            lambda: torch.zeros(2).to("cuda"),
        )
        for number, question in enumerate(asked, 1):
            question()
            assert ledger.waits.total() == number
        assert fetched(y).item() == 12.0


@pytest.mark.parametrize("chosen", [None, [*range(7), *range(20, 50)]], ids=["all", "some"])
def test_margins_of_many_networks_are_few_operations(
    chosen: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In float64: blocks of whole networks on a GPU; rows of one network after another on a CPU."""
    couplings = draw_dense(Network(40, Chain(2, 0.3, lam_left=0.2, lam_right=0.1)), 0, range(50))
    states = random_starts(0, range(50 if chosen is None else len(chosen)), 3, 2, 40)
    wanted = check_margins(couplings, states, active=chosen)
    for networks, most in (
        (50, 25),
        (10, 45),
    ):  # by rows: 200 and more
        monkeypatch.setattr(f"{draw_dense.__module__}._GPU_BLOCK", networks * 40**2)
        with pretend_device() as ledger:
            there = replace(couplings, matrices=couplings.matrices.to("cuda"))
            moved = states.to("cuda")
            ledger.launches.clear()
            ledger.waits.clear()
            found = check_margins(there, moved, active=chosen)
            assert ledger.waits.total() == 0
            assert ledger.launches.total() <= most
            least, unsatisfied = fetched(found)
        assert torch.allclose(least, wanted[0], rtol=0, atol=1e-13)
        assert torch.equal(unsatisfied, wanted[1])


def test_gpus_that_a_process_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    with pretend_device(count=2):
        for name in ("auto", "cuda"):
            names = [one["CUDA_VISIBLE_DEVICES"] for one in gpu_environments(name)]
            assert names == ["3", "5"]
        assert gpu_environments("cuda:1") == [{}]
        assert gpu_environments("cpu") == []
