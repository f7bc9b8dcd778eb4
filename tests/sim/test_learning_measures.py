"""What is measured of networks that learn where little is there: few samples, few couplings."""

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from rmsim.cli import run
from rmsim.learning import (
    QuantileErrors,
    State,
    Wiring,
    batch_step,
    infer,
    initialise,
    measure,
    present,
    symmetry_level,
)
from rmsim.learning.phases import Sweeps, label_code
from rmsim.learning.presets import dense_recipe, overlap_recipe, sparse_recipe
from tests.learning_cases import task

pytestmark = pytest.mark.numerical

INPUTS, LABELS = task(40, 20, 3)


def level_of(matrices: torch.Tensor) -> float:
    """The definition, with full matrices."""
    symmetric = float(((matrices + matrices.mT) / 2).norm())
    other = float(((matrices - matrices.mT) / 2).norm())
    return (symmetric - other) / (symmetric + other)


@pytest.mark.parametrize("symmetry", ["asym", "sym0"])
def test_symmetry_level_of_sparse_networks_needs_no_full_matrix(
    symmetry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = {"layers": 2, "lam_left": 1.0, "lam_right": 1.0}
    parameters = sparse_recipe(40, rho_j=0.2, symmetry=symmetry, **chain)
    state = initialise(parameters, 20, 10, seed=1)
    wanted = level_of(state.dense_j().double())
    adjacency = (torch.rand(40, 40, generator=torch.Generator().manual_seed(0)) < 0.3).float()
    adjacency.fill_diagonal_(0)
    ring = initialise(dense_recipe(40), 20, 10, 2, wiring=Wiring(adjacency))
    ring_wanted = level_of(ring.dense_j().double())

    def full(state: State) -> torch.Tensor:
        raise AssertionError("a full matrix was made")

    monkeypatch.setattr(State, "dense_j", full)
    assert symmetry_level(state) == pytest.approx(wanted, abs=1e-12)
    assert symmetry_level(ring) == pytest.approx(ring_wanted, abs=1e-12)


def test_a_network_without_couplings_has_no_symmetry_level_and_still_learns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", "--preset", "entangled-mnist-sparse", "--n", "11", "--dataset", "synthetic"]
    command += [
        "--train",
        "50",
        "--test",
        "50",
        "--metrics",
        "20",
        "--device",
        "cpu",
        "--probe",
        "0",
    ]
    command += ["--set", "rho_j=1e-9", "--epochs", "1", "--out", str(tmp_path / "run")]
    assert run([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["symmetry"] is None
    assert run(["evaluate", str(tmp_path / "run")]) == 0
    assert "none" in capsys.readouterr().out


def test_errors_are_not_zero_where_nothing_is_known() -> None:
    parameters = overlap_recipe(30, classes=3)
    state = initialise(parameters, 20, 3, seed=0)
    one = measure(parameters, state, INPUTS[:1], LABELS[:1])
    assert one.q_dyn_error is None
    assert one.sweeps_free_error is None
    strong = parameters.with_settings(jd=50.0)  # every state is fixed at once: no spread
    stiff = measure(strong, initialise(strong, 20, 3, seed=0), INPUTS, LABELS)
    assert stiff.sweeps_free_error == 1 / 40
    assert stiff.q_dyn_error == QuantileErrors(*[1 / 30] * 5)  # half a step, where all agree
    few = measure(strong, initialise(strong, 20, 3, seed=0), INPUTS[:10], LABELS[:10])
    assert few.q_dyn_error == QuantileErrors(*[1 / 30] * 3, None, None)  # 10 have no 5 %
    many = measure(parameters, state, INPUTS, LABELS)
    code = label_code(parameters, state, LABELS)
    sweeps = present(parameters, state, INPUTS.float(), code).free.sweeps.double()
    assert many.sweeps_free_error == pytest.approx(float(sweeps.std()) / 40**0.5)
    fixed = parameters.with_settings(stop="fixed")
    assert measure(fixed, state, INPUTS[:1], LABELS[:1]).sweeps_free_error == 0  # it is a setting


@pytest.mark.parametrize("p", [1.0, 0.7])
def test_asking_a_device_rarely_changes_no_number(
    p: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU every question whether all states are fixed stalls it."""
    parameters = overlap_recipe(30, classes=3, p=p, jd=1.0)
    state = initialise(parameters, 20, 3, seed=0)
    code = label_code(parameters, state, LABELS)
    often = present(parameters, state, INPUTS.float(), code)
    done = 0
    sweep_once = Sweeps.sweep

    def counted(motion: Sweeps, field: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        nonlocal done
        done += 1
        return sweep_once(motion, field, mask)

    module = importlib.import_module("rmsim.learning.phases")  # its function has the same name
    monkeypatch.setattr(module, "checked_sync_interval", lambda device: 7)
    monkeypatch.setattr(Sweeps, "sweep", counted)
    rarely = present(parameters, state, INPUTS.float(), code)
    assert (done - parameters.phases.warmup) % 7 == 0  # it went on to the next question, twice
    for one, two in ((often.clamped, rarely.clamped), (often.free, rarely.free)):
        assert torch.equal(one.s, two.s)
        assert torch.equal(one.sweeps, two.sweeps)
        assert one.converged is not None
        assert two.converged is not None
        assert torch.equal(one.converged, two.converged)


def test_inference_and_measurement_have_masks_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """With those of a batch that was learnt, a network would be tested where it was trained."""
    parameters = dense_recipe(30, classes=3, p=0.7)
    state = initialise(parameters, 20, 3, seed=0)
    seen: list[torch.Tensor] = []
    draw_keys = importlib.import_module("rmsim.dynamics.sweeps").mask_keys

    def watched(*arguments: Any) -> torch.Tensor:
        seen.append(draw_keys(*arguments))
        return seen[-1]

    for name in ("phases", "sign_tables"):
        monkeypatch.setattr(f"rmsim.learning.{name}.mask_keys", watched)
    batch_step(parameters, state, INPUTS, LABELS)
    infer(parameters, state, INPUTS)
    infer(parameters, state, INPUTS, compiled=False)
    measure(parameters, state, INPUTS, LABELS)
    learnt, inferred, again, measured = seen
    assert torch.equal(inferred, again)
    assert not (learnt == inferred).any()
    assert not (learnt == measured).any()
    assert not (inferred == measured).any()
