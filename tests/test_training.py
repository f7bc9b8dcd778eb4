"""Training in a folder: what is written, what is refused, and that nothing is ever lost."""

import errno
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

from rmsim.data import Dataset, load, synthetic
from rmsim.learning import State, epoch_order, initialise, train
from rmsim.readout import ProbeParameters
from rmsim.training import (
    Folder,
    Outcome,
    Plan,
    Progress,
    StorageError,
    Watch,
    evaluate,
    load_checkpoint,
    load_probe,
    run,
    train_probe,
)
from rmtheory.errors import InvalidInputError, NotConvergedError, UnreadableDataError

DATA = synthetic()
WATCH = Watch(phases=100, accuracy=200)


def plan(preset: str = "entangled-mnist-dense", n: int = 60, **others: Any) -> Plan:
    few = {"train_samples": 400, "test_samples": 200, "dataset": "synthetic"}
    return Plan.of_preset(preset, n, **{**few, **others})


def trained(folder: Path, epochs: int, wanted: Plan | None = None, **more: Any) -> Outcome:
    wanted = plan() if wanted is None else wanted
    return run(wanted, DATA, folder, epochs, device="cpu", watch=WATCH, **more)


def same(one: State, two: State) -> bool:
    a, b = one.tensors(), two.tensors()
    return (one.step, one.seed, a.keys()) == (two.step, two.seed, b.keys()) and all(
        torch.equal(a[name], b[name]) for name in a
    )


def timeless(records: Any) -> list[dict[str, Any]]:
    clocks = ("seconds", "samples_per_second", "date")
    return [{key: r[key] for key in r if key not in clocks} for r in records]


@pytest.mark.parametrize("preset", ["entangled-mnist-dense", "entangled-mnist-sparse"])
def test_the_trainer_is_the_functional_core(preset: str, tmp_path: Path) -> None:
    wanted = plan(preset, seed=3)
    outcome = trained(tmp_path / "run", 2, wanted)
    x, y = (torch.tensor(values[:400]) for values in (DATA.train.inputs, DATA.train.labels))
    state = initialise(wanted.parameters, 100, 10, 3)
    for epoch in range(2):
        state = train(wanted.parameters, state, x, y, epoch_order(3, epoch, 400))
    assert same(outcome.state, state)
    assert same(load_checkpoint(tmp_path / "run" / "checkpoint.npz").state, state)


def test_the_log_says_what_was_measured(tmp_path: Path) -> None:
    told: list[Progress] = []
    outcome = trained(tmp_path, 2, follow=told.append)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
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
    again = trained(tmp_path / "steps", 2)  # more is there already
    assert same(again.state, whole.state)
    assert timeless(again.records) == timeless(whole.records)
    sessions = Folder(tmp_path / "steps").identity()["sessions"]
    assert [session["from_epoch"] for session in sessions] == ["0", "1", "3"]


_COMMAND = [
    *(sys.executable, "-m", "rmsim", "train", "--preset", "entangled-mnist-dense", "--n", "60"),
    *("--dataset", "synthetic", "--train", "400", "--test", "200", "--watch", "100"),
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
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines) + lines[-1].replace('"epoch": 1', '"epoch": 2') + lines[0][:40])
    assert len(Folder(tmp_path / "run").records()) == 3  # half a line is no record
    resumed = trained(tmp_path / "run", 2)
    assert timeless(resumed.records) == timeless(trained(tmp_path / "whole", 2).records)
    assert timeless(Folder(tmp_path / "run").records()) == timeless(resumed.records)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (plan(seed=1), "seed = 0, not 1"),
        (plan(eta_j=0.01), "eta_j = 0.005, not 0.01"),
        (plan(n=61), "n = 60, not 61"),
        (plan("role-of-jd"), "preset = entangled-mnist-dense, not role-of-jd"),
        (plan(train_samples=300), "train_samples = 400, not 300"),
    ],
)
def test_the_folder_of_another_run_is_refused(other: Plan, words: str, tmp_path: Path) -> None:
    before = trained(tmp_path, 1)
    with pytest.raises(InvalidInputError, match=words):
        trained(tmp_path, 2, other)
    assert same(load_checkpoint(tmp_path / "checkpoint.npz").state, before.state)


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    trained(tmp_path / "one", 1)
    trained(tmp_path / "two", 1, plan(n=61))
    stolen = (tmp_path / "two" / "checkpoint.npz").read_bytes()
    (tmp_path / "one" / "checkpoint.npz").write_bytes(stolen)
    with pytest.raises(InvalidInputError, match=r"checkpoint must be .* n = 61, not 60"):
        trained(tmp_path / "one", 2)
    (tmp_path / "one" / "run.json").unlink()
    with pytest.raises(InvalidInputError, match=r"without run\.json"):
        trained(tmp_path / "one", 2)


def test_other_data_are_refused(tmp_path: Path) -> None:
    trained(tmp_path, 0)
    with pytest.raises(InvalidInputError, match="data = "):
        run(plan(), synthetic(seed=1), tmp_path, 1, device="cpu")
    with pytest.raises(InvalidInputError, match="synthetic, as planned"):
        run(plan(), load("entangled-mnist"), tmp_path, 1, device="cpu")
    with pytest.raises(InvalidInputError, match="train_samples must be"):
        run(plan(train_samples=4000), DATA, tmp_path / "x", 1, device="cpu")
    with pytest.raises(InvalidInputError, match="such that 10 classes fit"):
        trained(tmp_path / "small", 1, plan(n=9))
    assert not (tmp_path / "small").exists()


@pytest.mark.parametrize("damage", ["cut", "flipped", "pickle", "text", "headless"])
def test_damaged_checkpoints(damage: str, tmp_path: Path) -> None:
    trained(tmp_path, 0)
    file = tmp_path / "checkpoint.npz"
    content = bytearray(file.read_bytes())
    if damage == "cut":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    elif damage == "pickle":
        np.savez(file, header=np.array([{}], dtype=object))
    elif damage == "text":
        file.write_text("weights")
    else:
        np.savez(file, j=np.zeros(3))
    with pytest.raises(UnreadableDataError, match=r"checkpoint\.npz .* remove it, and .* starts"):
        trained(tmp_path, 1)
    file.unlink()
    assert trained(tmp_path, 0).checkpoint.epoch == 0  # as it says


ALTERED: dict[str, tuple[str, Any]] = {
    "j": ("j", lambda a: a[:-1]),
    "nan": ("w_in", lambda a: a * np.nan),
    "type": ("w_out", lambda a: a.astype("f8")),
    "mask": ("a_out", lambda a: a.astype("f4")),
    "columns": ("j_columns", lambda a: a + 1000),
    "bounds": ("w_in_bounds", lambda a: a[::-1]),
    "rows": ("w_back_shape", lambda a: a + 1),
    "scalar": ("w_in_shape", lambda a: a[0]),
}


@pytest.mark.parametrize("name", ALTERED)
def test_checkpoints_that_are_no_network(name: str, tmp_path: Path) -> None:
    """The compiled sweeps would read and write out of bounds."""
    wanted = plan("entangled-mnist-sparse", rho_j=0.1)
    trained(tmp_path, 0, wanted)
    file = tmp_path / "checkpoint.npz"
    with np.load(file) as held:
        arrays = dict(held)
    array, alter = ALTERED[name]
    np.savez(file, **{**arrays, array: alter(arrays[array])})
    with pytest.raises(UnreadableDataError, match=r"checkpoint\.npz is no checkpoint"):
        trained(tmp_path, 1, wanted)


def test_a_diagonal_in_a_checkpoint_is_refused(tmp_path: Path) -> None:
    trained(tmp_path, 0)
    file = tmp_path / "checkpoint.npz"
    with np.load(file) as held:
        arrays = dict(held)
    np.savez(file, **{**arrays, "j": arrays["j"] + np.eye(60, dtype="f4")})
    with pytest.raises(UnreadableDataError, match="diagonal"):
        load_checkpoint(file)


def test_damaged_manifest_and_log(tmp_path: Path) -> None:
    trained(tmp_path / "a", 1)
    lines = (tmp_path / "a" / "log.jsonl").read_text()
    (tmp_path / "a" / "log.jsonl").write_text("x" + lines)
    with pytest.raises(UnreadableDataError, match=r"line 1 of .*log\.jsonl"):
        trained(tmp_path / "a", 2)
    manifest = tmp_path / "a" / "run.json"
    content = json.loads(manifest.read_text())
    for altered in (
        '{"plan": ',
        "[]",
        json.dumps(content | {"plan": None}),
        json.dumps(content | {"sessions": 3}),
        json.dumps(content | {"data": None}),
        json.dumps(content | {"plan": content["plan"] | {"parameters": 7}}),
        json.dumps(content | {"plan": content["plan"] | {"preset": 7}}),
        json.dumps(content | {"plan": content["plan"] | {"seed": "x"}}),
    ):
        manifest.write_text(altered)
        with pytest.raises(UnreadableDataError, match=r"run\.json was altered .* put back a copy"):
            trained(tmp_path / "a", 2)
        with pytest.raises(UnreadableDataError, match=r"run\.json was altered"):
            Folder(tmp_path / "a").identity()


def test_a_sweep_is_not_trained_in(tmp_path: Path) -> None:
    (tmp_path / "sweep.json").write_text("{}")
    with pytest.raises(InvalidInputError, match=r"which holds a sweep \(sweep\.json\)"):
        trained(tmp_path, 0)
    assert [file.name for file in tmp_path.iterdir()] == ["sweep.json"]


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.ENOSPC, "kept: make room and"), (errno.EACCES, "kept: allow access")],
)
def test_what_to_do_depends_on_what_is_wrong(number: int, words: str, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=words), Folder(tmp_path).writing("log.jsonl"):
        raise OSError(number, "no")


_FULL = """
import resource, sys
from rmsim.data import synthetic
from rmsim.training import Plan, StorageError, Watch, run
few = {"dataset": "synthetic", "train_samples": 400, "test_samples": 200}
plan = Plan.of_preset("entangled-mnist-dense", 60, **few)
most = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
try:
    run(plan, synthetic(), sys.argv[1], 3, device="cpu", watch=Watch(100, 200))
except StorageError as problem:
    print(problem)
"""


@pytest.mark.parametrize("what", ["checkpoint.npz", "log.jsonl"])
def test_a_full_disk_is_told_and_nothing_is_lost(what: str, tmp_path: Path) -> None:
    pytest.importorskip("resource")  # limits the size of files, as a full disk would
    before = trained(tmp_path / "run", 1)
    size = {"checkpoint.npz": 20_000, "log.jsonl": 4_000}[what]
    if what == "log.jsonl":  # filled by records, so that it is the first file to hit the limit
        size = (tmp_path / "run" / "log.jsonl").stat().st_size + 100
    content = (tmp_path / "run" / "log.jsonl").read_text()
    answer = subprocess.run(
        [sys.executable, "-c", _FULL, str(tmp_path / "run"), str(size)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "could not be written" in answer.stdout, answer
    assert "run the same command again" in answer.stdout
    assert same(load_checkpoint(tmp_path / "run" / "checkpoint.npz").state, before.state)
    assert not list((tmp_path / "run").glob(".checkpoint*"))
    resumed = trained(tmp_path / "run", 2)
    assert same(resumed.state, trained(tmp_path / "whole", 2).state)
    assert (tmp_path / "run" / "log.jsonl").read_text().startswith(content)


def test_two_runs_in_one_folder(tmp_path: Path) -> None:
    def intrude(progress: Progress) -> None:
        with pytest.raises(InvalidInputError, match="no other run"):
            trained(tmp_path, 1)

    trained(tmp_path, 0, follow=intrude)


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
    folder, moment = Folder(tmp_path), outcome.checkpoint
    assert load_probe(folder, moment) is None
    bare = evaluate(moment, DATA)
    assert (bare["readout"], bare["train_samples"], bare["test_samples"]) == (
        "perceptron",
        400,
        200,
    )
    assert bare["test_accuracy"] == outcome.records[-1]["test_accuracy"]
    parameters = ProbeParameters(epochs=5)
    probe = train_probe(folder, moment, DATA, parameters)
    stored = load_probe(folder, moment)
    assert stored is not None
    assert torch.equal(stored.readout.weights, probe.readout.weights)
    assert train_probe(folder, moment, DATA, parameters, _never).accuracies == probe.accuracies
    found = evaluate(moment, DATA, stored)
    assert found["readout"] == "probe"
    assert found["perceptron_test_accuracy"] == bare["test_accuracy"]
    assert found["test_accuracy"] == probe.accuracies["test_accuracy"] > 0.9
    assert found["q_dyn_error"]["median"] >= 0
    few = evaluate(moment, DATA, samples=50)
    assert (few["train_samples"], few["test_samples"]) == (50, 50)
    later = trained(tmp_path, 2, plan("entangled-mnist-sparse", 100))
    assert load_probe(folder, later.checkpoint) is None  # it was of the epoch before


def _never(epochs: int) -> None:
    raise AssertionError("the probe was there")


def test_a_probe_of_another_network_is_refused(tmp_path: Path) -> None:
    folder, moment = Folder(tmp_path), trained(tmp_path, 0).checkpoint
    train_probe(folder, moment, DATA, ProbeParameters(epochs=1))
    with np.load(folder.probe) as held:
        arrays = dict(held)
    np.savez(folder.probe, **{**arrays, "w_out": arrays["w_out"][:, 1:]})
    with pytest.raises(UnreadableDataError, match=r"probe\.npz is no probe"):
        load_probe(folder, moment)


def test_everything_in_float64_and_with_masks(tmp_path: Path) -> None:
    wanted = plan(dtype="float64", p=0.8, layers=2, lam_left=0.5, lam_right=0.5, n=30)
    trained(tmp_path / "steps", 1, wanted)
    steps = trained(tmp_path / "steps", 2, wanted)
    assert steps.state.dtype == torch.float64
    assert same(steps.state, trained(tmp_path / "whole", 2, wanted).state)


def test_data_sets_keep_their_name() -> None:
    data: Dataset = plan().data(DATA)
    assert (data.name, len(data.train), len(data.test)) == ("synthetic", 400, 200)
