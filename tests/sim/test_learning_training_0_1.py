"""Folders of runs that version 0.1 wrote: read as they are, and continued.

``tests/runs_0_1`` has one epoch of a dense chain of two layers and of a sparse network with its
probe, written at commit 66ec2c4.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from rmsim.data import load
from rmsim.learning import epoch_order, train_epoch
from rmsim.learning.run_folder import Folder, Plan, load_checkpoint
from rmsim.learning.training import evaluate, load_probe, train
from tests.training_runs import METRICS, same

RUNS = Path(__file__).parents[1] / "runs_0_1"


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_run_of_0_1_is_continued(kind: str, tmp_path: Path) -> None:
    folder = Folder(shutil.copytree(RUNS / kind, tmp_path / kind))
    manifest, log = folder.manifest.read_text(), folder.log.read_bytes()
    plan = Plan.from_dict(folder.identity()["plan"])
    before = load_checkpoint(folder.checkpoint)
    data = load("entangled-mnist")
    outcome = train(plan, data, 2, out=folder.path, probe=0, device="cpu", metrics=METRICS)
    used = plan.data(data).train
    order = epoch_order(plan.seed, 1, len(used))
    expected = train_epoch(plan.parameters, before.state, used.inputs, used.labels, order)
    assert before.epoch == 1
    assert same(outcome.state, expected)
    assert folder.log.read_bytes().startswith(log)  # the lines of 0.1 stay as they are
    assert [record["epoch"] for record in folder.records()] == [0, 1, 2]
    text = folder.manifest.read_text()
    assert len(json.loads(text)["sessions"]) == 2
    start = manifest.index('"sessions"')
    assert text[:start] == manifest[:start]  # plan and data, to the byte


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_plan_of_0_1_is_written_as_it_was(kind: str) -> None:
    with np.load(RUNS / kind / "checkpoint.npz") as arrays:
        header = str(arrays["header"])
    written = json.loads(header)
    assert json.dumps(Plan.from_dict(written["plan"]).to_dict()) == json.dumps(written["plan"])


def test_the_probe_of_0_1_is_read() -> None:
    folder = Folder(RUNS / "sparse")
    checkpoint = load_checkpoint(folder.checkpoint)
    probe = load_probe(folder, checkpoint)
    assert probe is not None
    assert probe.parameters.epochs == 2
    result = evaluate(checkpoint, load("entangled-mnist"), probe)
    for name in ("train_accuracy", "test_accuracy"):
        assert result[f"probe_{name}"] == pytest.approx(probe.accuracies[name], abs=0.05)
