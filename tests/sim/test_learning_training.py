"""Training in a folder: what is computed and written, and how a run resumes."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rmsim.data import Dataset
from rmsim.learning import epoch_order, initialise, train_epoch
from rmsim.learning.readout import ProbeParameters
from rmsim.learning.run_folder import Folder, Plan, append_record, load_checkpoint
from rmsim.learning.training import TrainingProgress, evaluate, load_probe, train, train_probe
from rmtheory.base.errors import InvalidInputError, NotConvergedError, UnreadableDataError
from tests.training_runs import DATA, METRICS, plan, same, timeless, trained

pytestmark = pytest.mark.numerical


@pytest.mark.parametrize("preset", ["entangled-mnist-dense", "entangled-mnist-sparse"])
def test_the_trainer_is_the_functional_core(preset: str, tmp_path: Path) -> None:
    wanted = plan(preset, seed=3)
    outcome = trained(tmp_path / "run", 2, wanted)
    x, y = (torch.tensor(values[:400]) for values in (DATA.train.inputs, DATA.train.labels))
    state = initialise(wanted.parameters, 100, 10, 3)
    for epoch in range(2):
        state = train_epoch(wanted.parameters, state, x, y, epoch_order(3, epoch, 400))
    assert same(outcome.state, state)
    assert same(load_checkpoint(tmp_path / "run" / "checkpoint.npz").state, state)


def test_the_log_says_what_was_measured(tmp_path: Path) -> None:
    told: list[TrainingProgress] = []
    outcome = trained(tmp_path, 2, progress=told.append)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    checksums = [line.pop("sha256") for line in lines]
    assert len({*checksums}) == 3
    assert lines == list(outcome.records)
    assert [line["epoch"] for line in lines] == [0, 1, 2]
    last = lines[-1]
    assert last["test_accuracy"] > 0.8 > 0.3 > lines[0]["test_accuracy"]
    assert 0 < last["test_accuracy_error"] < 0.03
    assert last["q_dyn"]["q05"] <= last["q_dyn"]["q25"] <= last["q_dyn"]["median"] <= 1
    for name in ("margin", "symmetry", "sweeps_free", "unstable_free", "unstable_free_error"):
        assert name in last
    assert (told[0].samples, told[-1].samples, told[-1].total) == (0, 800, 800)
    assert told[0].seconds_left is None
    assert told[-1].seconds_left == 0
    assert all(a.samples <= b.samples for a, b in itertools.pairwise(told))
    manifest = json.loads((tmp_path / "run.json").read_text())
    (session,) = manifest["sessions"]
    assert session["seed"] == "0"
    assert session["device"] == "cpu"
    assert "torch" in json.loads(session["versions"])
    assert Plan.from_dict(manifest["plan"]) == plan()


def test_more_epochs_continue_and_fewer_change_nothing(tmp_path: Path) -> None:
    trained(tmp_path / "steps", 1)
    trained(tmp_path / "steps", 3)
    whole = trained(tmp_path / "whole", 3)
    assert not whole.idle
    sessions = Folder(tmp_path / "steps").identity()["sessions"]
    assert [session["from_epoch"] for session in sessions] == ["0", "1"]
    before = contents(tmp_path / "steps")
    for fewer in (2, 3, 0):  # more is there already
        told: list[TrainingProgress] = []
        again = trained(tmp_path / "steps", fewer, progress=told.append)
        assert again.idle
        assert not told
        assert same(again.state, whole.state)
        assert timeless(again.records) == timeless(whole.records)
    assert contents(tmp_path / "steps") == before


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_an_epoch_that_lost_its_measurements_is_measured_again(tmp_path: Path) -> None:
    whole = trained(tmp_path, 2)
    log = tmp_path / "log.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:2]))
    again = trained(tmp_path, 1)
    assert not again.idle
    assert [record["epoch"] for record in again.records] == [0, 1, 2]
    assert timeless(again.records) == timeless(whole.records)


_COMMAND = [
    *(sys.executable, "-m", "rmsim", "train", "--preset", "entangled-mnist-dense", "--n", "60"),
    *("--dataset", "synthetic", "--train", "400", "--test", "200", "--metrics", "100"),
    *("--device", "cpu", "--epochs"),
]


def test_a_killed_run_loses_at_most_one_epoch_and_goes_on_to_the_bit(tmp_path: Path) -> None:
    environment = os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())}
    folder = Folder(tmp_path / "killed")
    process = subprocess.Popen(
        [*_COMMAND, "100000", "--out", str(folder.path)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while len(folder.records()) < 4:
            assert process.poll() is None
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    logged = folder.records()[-1]["epoch"]
    kept = load_checkpoint(folder.checkpoint).epoch
    assert kept in (logged - 1, logged)
    resumed = trained(folder.path, kept + 1)
    whole = trained(tmp_path / "whole", kept + 1)
    assert same(resumed.state, whole.state)
    differ = {"samples", "train_accuracy", "train_accuracy_error"}  # the command watches more
    for one, two in zip(timeless(resumed.records), timeless(whole.records), strict=True):
        assert {k: one[k] for k in one.keys() - differ} == {k: two[k] for k in two.keys() - differ}


def test_what_a_killed_run_wrote_too_much_is_dropped(tmp_path: Path) -> None:
    trained(tmp_path / "run", 1)
    log = tmp_path / "run" / "log.jsonl"
    append_record(log, Folder(tmp_path / "run").records()[-1] | {"epoch": 2})
    log.write_text(log.read_text() + log.read_text()[:40])
    assert len(Folder(tmp_path / "run").records()) == 3  # half a line is no record
    resumed = trained(tmp_path / "run", 2)
    assert timeless(resumed.records) == timeless(trained(tmp_path / "whole", 2).records)
    assert timeless(Folder(tmp_path / "run").records()) == timeless(resumed.records)


def test_weights_that_diverge_are_told(tmp_path: Path) -> None:
    # W_back is one of them: a checkpoint that cannot be read again must not replace the last one
    wild = plan(eta_back=1e30, label_true=1e9, shared_back=False)
    with pytest.raises(NotConvergedError, match=r"no longer finite.*in epoch 1; the epoch before"):
        trained(tmp_path, 2, wild)
    assert load_checkpoint(tmp_path / "checkpoint.npz").epoch == 0


@pytest.mark.parametrize(
    "rates", [{"decay_j": 1e9}, {"eta_in": 1e30, "lambda_x": 1e12}, {"decay_in": 1e4}], ids=str
)
def test_rates_out_of_range_are_refused_before_a_folder_is_made(
    rates: dict[str, float], tmp_path: Path
) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(rates))):
        trained(tmp_path / "run", 1, plan(**rates))
    assert not (tmp_path / "run").exists()


def test_probe_and_evaluation(tmp_path: Path) -> None:
    outcome = trained(tmp_path, 1, plan("entangled-mnist-sparse", 100))
    folder, checkpoint = Folder(tmp_path), outcome.checkpoint
    assert load_probe(folder, checkpoint) is None
    bare = evaluate(checkpoint, DATA)
    assert (bare["train_samples"], bare["test_samples"]) == (400, 200)
    assert "probe_test_accuracy" not in bare
    assert bare["test_accuracy"] == outcome.records[-1]["test_accuracy"]
    parameters = ProbeParameters(epochs=5)
    probe = train_probe(folder, checkpoint, DATA, parameters)
    stored = load_probe(folder, checkpoint)
    assert stored is not None
    assert torch.equal(stored.readout.weights, probe.readout.weights)
    assert train_probe(folder, checkpoint, DATA, parameters, _never).accuracies == probe.accuracies
    result = evaluate(checkpoint, DATA, stored)
    for name in ("train_accuracy", "test_accuracy", "test_accuracy_error"):
        assert result[name] == bare[name]  # the same name is the same readout
    assert result["probe_test_accuracy"] == probe.accuracies["test_accuracy"] > 0.9
    assert result["probe_test_accuracy_error"] == probe.accuracies["test_accuracy_error"]
    assert result["q_dyn_error"]["median"] >= 1 / 100  # half a step
    few = evaluate(checkpoint, DATA, samples=50)
    assert (few["train_samples"], few["test_samples"]) == (50, 50)
    later = trained(tmp_path, 2, plan("entangled-mnist-sparse", 100))
    assert load_probe(folder, later.checkpoint) is None  # it was of the epoch before


def _never(*epochs: int) -> None:
    raise AssertionError("the probe was there")


def test_a_probe_of_another_network_is_refused(tmp_path: Path) -> None:
    folder, checkpoint = Folder(tmp_path), trained(tmp_path, 0).checkpoint
    train_probe(folder, checkpoint, DATA, ProbeParameters(epochs=1))
    with np.load(folder.probe) as held:
        arrays = dict(held)
    np.savez(folder.probe, **{**arrays, "w_out": arrays["w_out"][:, 1:]})
    with pytest.raises(UnreadableDataError, match=r"probe\.npz is not a probe"):
        load_probe(folder, checkpoint)


def test_everything_in_float64_and_with_masks(tmp_path: Path) -> None:
    wanted = plan(dtype="float64", p=0.8, layers=2, lam_left=0.5, lam_right=0.5, n=30)
    trained(tmp_path / "steps", 1, wanted)
    steps = trained(tmp_path / "steps", 2, wanted)
    assert steps.state.dtype == torch.float64
    assert same(steps.state, trained(tmp_path / "whole", 2, wanted).state)


def test_data_sets_keep_their_name() -> None:
    data: Dataset = plan().data(DATA)
    assert (data.name, len(data.train), len(data.test)) == ("synthetic", 400, 200)


def test_with_and_without_a_folder_the_same_network_and_probe(tmp_path: Path) -> None:
    wanted = plan("entangled-mnist-sparse")
    settings: dict[str, Any] = {"device": "cpu", "metrics": METRICS}
    reported: list[tuple[int, int]] = []
    kept = train(
        wanted,
        DATA,
        1,
        out=tmp_path,
        probe_progress=lambda *done: reported.append(done),
        **settings,
    )
    bare = train(wanted, DATA, 1, **settings)
    assert same(kept.state, bare.state)
    assert kept.probe is not None
    assert bare.probe is not None
    assert kept.probe.accuracies == bare.probe.accuracies
    assert reported == [(k, 10) for k in range(11)]  # the preset has a probe of 10 epochs
    summary = kept.summary()
    assert summary["probe_test_accuracy"] == kept.probe.accuracies["test_accuracy"]
    assert evaluate(tmp_path, DATA, device="cpu") == evaluate(bare, DATA)
    again = train(wanted, DATA, 1, out=tmp_path, probe_progress=_never, **settings)
    assert again.idle
    assert again.summary()["probe_test_accuracy"] == summary["probe_test_accuracy"]
    with pytest.raises(
        InvalidInputError, match="epochs must be given, as the plan is of no preset"
    ):
        train(Plan(wanted.parameters, "synthetic"), DATA)
