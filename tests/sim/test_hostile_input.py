"""Input that once ended in bare errors or warnings of numpy: refused in one sentence, or taken."""

from __future__ import annotations

import contextlib
import io
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

import rmsim as rs
from rmsim.cli import run
from rmsim.data import synthetic
from rmsim.learning import dense_recipe, infer, initialise, measure, predict
from rmsim.learning.protocol import epoch_order
from rmsim.studies.landscape_survey import Survey, survey
from rmsim.sweep.definition import Failed, Task
from rmsim.sweep.running import evaluate
from rmtheory.base.errors import InvalidInputError
from tests.learning_cases import task

_INPUTS, _LABELS = task(12, 20, 3)
_PARAMETERS = dense_recipe(30, classes=3)


def _refused(*words: str) -> str:
    """Run a command that must exit with 2, and return its one sentence."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(list(words))
    assert code == 2, (code, err.getvalue())
    assert "Traceback" not in err.getvalue()
    return " ".join(err.getvalue().split())


@pytest.mark.parametrize("patterns", [2, 3, 4])
@pytest.mark.parametrize("pairs", [2, 3])
def test_a_survey_of_few_patterns_is_refused_or_has_no_warning(pairs: int, patterns: int) -> None:
    samples = synthetic(classes=3, width=20, train=60, test=30).train
    state = initialise(_PARAMETERS, 20, 3, 0)
    wanted = Survey(pairs=pairs, steps=2, resamples=2, patterns=patterns, noises=(0.1,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values: dict[str, Any] = {}
        refused = None
        try:
            values = survey(_PARAMETERS, state, samples, wanted, 0)
        except InvalidInputError as problem:
            refused = problem.argument
    assert refused in (None, "patterns")
    assert all(torch.as_tensor(x).isfinite().all() for x in values.values())


def test_the_command_names_the_patterns(tmp_path: Path) -> None:
    few: dict[str, Any] = {"dataset": "synthetic", "train_samples": 40, "test_samples": 20}
    plan = rs.Plan.of_preset("entangled-mnist-dense", 30, **few)
    rs.train(plan, epochs=0, probe=0, out=tmp_path / "run", device="cpu")
    counts = ("--pairs", "2", "--patterns", "2", "--steps", "2", "--resamples", "2")
    sentence = _refused("landscape", "--from", str(tmp_path / "run"), *counts)
    assert "patterns must be so many that" in sentence


@pytest.mark.parametrize("samples", [range(-2, 1), range(-1), range(3, 0), -1, 0])
def test_samples_are_numbers_from_0_on(samples: Any) -> None:
    network = rs.Network(10, rs.Chain(1, 0.8))
    for call in (
        lambda: rs.relax(network, samples=samples),
        lambda: rs.draw(network, samples=samples),
        lambda: rs.belief_propagation(network, samples=samples),
        lambda: rs.find_fixed_point(network, "rbp", samples=samples),
    ):
        with pytest.raises(InvalidInputError, match="samples must be"):
            call()


def test_a_point_of_a_sweep_with_negative_samples_says_so() -> None:
    point = {"n": 10, "layers": 1, "jd": 0.8, "lam": 0.0, "rho": 1.0, "symmetric": False}
    how = {"algorithm": "dynamics", "update": "synchronous", "p": 1.0, "max_sweeps": 4}
    where = {"dtype": "float32", "device": "cpu", "samples": "-3:2"}
    whole = {**point, **how, **where}
    answer = evaluate(Task("test", 1, "rmsim.studies.convergence:measure", whole, "key", 0))
    assert isinstance(answer, Failed)
    assert "samples must be" in answer.message


def test_epochs_are_numbers_from_0_on(tmp_path: Path) -> None:
    few: dict[str, Any] = {"dataset": "synthetic", "train_samples": 40, "test_samples": 20}
    plan = rs.Plan.of_preset("overlaps", 30, **few)
    with pytest.raises(InvalidInputError, match="epochs must be"):
        rs.train(plan, epochs=-1, device="cpu")
    with pytest.raises(InvalidInputError, match="epoch must be"):
        epoch_order(0, -1, 10)
    options = ("--dataset", "synthetic", "--n", "30", "--out", str(tmp_path / "run"))
    sentence = _refused("train", "--preset", "overlaps", *options, "--epochs", "-1")
    assert "epochs must be" in sentence
    assert not (tmp_path / "run").exists()


def test_tensors_with_gradients_are_taken_as_their_numbers() -> None:
    state = initialise(_PARAMETERS, 20, 3, 0)
    x = _INPUTS.float()
    wanted = x.clone().requires_grad_()
    assert torch.equal(infer(_PARAMETERS, state, wanted), infer(_PARAMETERS, state, x))
    assert torch.equal(predict(_PARAMETERS, state, wanted), predict(_PARAMETERS, state, x))
    measured = [measure(_PARAMETERS, state, inputs, _LABELS).q_dyn for inputs in (wanted, x)]
    assert measured[0] == measured[1]
    J = torch.randn(10, 10, generator=torch.Generator().manual_seed(0)).fill_diagonal_(0)
    J.requires_grad_()
    network = rs.Network.from_array(J, 0.8)
    start = torch.ones(1, 1, 1, 10).requires_grad_()
    field = torch.zeros(10).requires_grad_()
    ends = [
        rs.relax(network, start=begin, external=external).state
        for begin, external in ((start, field), (start.detach(), field.detach()))
    ]
    assert torch.equal(*ends)
