"""Devices of the machine: what 'auto' takes, and the calibration."""

from __future__ import annotations

import contextlib
import io
import json
import math

import pytest
import torch

import rmsim as rs
from rmsim.cli import run
from rmsim.learning.protocol import work_of
from rmsim.tensors import (
    CROSSOVER,
    CROSSOVER_VARIABLE,
    Speed,
    choose_device,
    crossover_between,
    measure_speed,
)
from rmtheory.base.errors import InvalidInputError
from tests.pretend_device import pretend_device


def test_auto_takes_a_gpu_from_the_crossover_on(monkeypatch: pytest.MonkeyPatch) -> None:
    least = CROSSOVER * torch.get_num_threads()
    assert choose_device("auto", math.inf).type == "cpu"  # there is no GPU
    with pretend_device():
        assert choose_device("auto").type == "cuda"
        assert choose_device("auto", least).type == "cuda"
        assert choose_device("auto", 0.99 * least).type == "cpu"
        assert choose_device("cuda", 0.0).type == "cuda"  # asked for
        monkeypatch.setenv(CROSSOVER_VARIABLE, "10")
        assert choose_device("auto", 10 * torch.get_num_threads()).type == "cuda"


@pytest.mark.parametrize("value", ["many", "-1", "nan"])
def test_a_crossover_that_is_no_number_is_refused(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CROSSOVER_VARIABLE, value)
    with pytest.raises(InvalidInputError, match=f"{CROSSOVER_VARIABLE} must be a number from 0"):
        choose_device("auto", 1.0)


def test_small_computations_stay_on_the_cpu() -> None:
    network = rs.Network(20, rs.Chain(1, 0.8))
    few = {"dataset": "synthetic", "train_samples": 40, "test_samples": 20}
    plan = rs.Plan.of_preset("mnist-sparse", 40, **few)
    with pretend_device():
        assert rs.relax(network, samples=2).device == "cpu"
        assert rs.find_fixed_point(network, "bp", max_iterations=1).device == "cpu"
        assert rs.train(plan, epochs=0, probe=0).state.device.type == "cpu"
    assert work_of([plan.parameters] * 3) == 3 * work_of([plan.parameters])


def test_the_crossover_is_where_both_take_as_long() -> None:
    cpu = Speed("cpu", "", None, launch=1e-6, wait=1e-6, rate=3e10)
    gpu = Speed("cuda:0", "", None, launch=7e-6, wait=2e-5, rate=5e12)
    work = crossover_between(cpu, gpu)
    assert work / cpu.rate == pytest.approx(gpu.launch + work / gpu.rate)
    assert crossover_between(cpu, gpu, threads=2) == work / 2


def test_a_device_is_measured() -> None:
    speed = measure_speed(torch.device("cpu"), 0.01)
    assert (speed.launch > 0, speed.wait > 0, speed.rate > 0) == (True, True, True)
    assert speed.device == "cpu"


def test_the_command_lists_devices_and_says_what_auto_takes() -> None:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        assert run(["devices", "--json"]) == 0
    document = json.loads(shown.getvalue())
    assert [one["device"] for one in document["devices"]] == ["cpu"]
    assert (document["auto"], document["crossover_source"]) == ("cpu", "estimated")
