"""Folders of runs: what is refused, and what damaged files and full disks do not destroy."""

import errno
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rmsim.data import load, synthetic
from rmsim.learning.run_folder import Folder, Plan, load_checkpoint
from rmsim.learning.training import TrainingProgress, train
from rmtheory.base.errors import InvalidInputError, StorageError, UnreadableDataError
from tests.forked import in_child
from tests.training_runs import DATA, plan, same, trained


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
        train(plan(), synthetic(seed=1), 1, out=tmp_path, device="cpu")
    with pytest.raises(InvalidInputError, match="synthetic, as planned"):
        train(plan(), load("entangled-mnist"), 1, out=tmp_path, device="cpu")
    with pytest.raises(InvalidInputError, match="train_samples must be"):
        train(plan(train_samples=4000), DATA, 1, out=tmp_path / "x", device="cpu")
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
    with pytest.raises(UnreadableDataError, match=r"checkpoint\.npz is not a checkpoint"):
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


def _full(folder: Path, most: int) -> str:
    """Train with a limit to the size of files; return what the run said."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    try:
        trained(folder, 3)
    except StorageError as problem:
        return str(problem)
    return "it was written"


@pytest.mark.parametrize("what", ["checkpoint.npz", "log.jsonl"])
def test_a_full_disk_is_told_and_nothing_is_lost(what: str, tmp_path: Path) -> None:
    pytest.importorskip("resource")  # limits the size of files, as a full disk would
    before = trained(tmp_path / "run", 1)
    size = {"checkpoint.npz": 20_000, "log.jsonl": 4_000}[what]
    if what == "log.jsonl":  # filled by records, so that it is the first file to hit the limit
        size = (tmp_path / "run" / "log.jsonl").stat().st_size + 100
    content = (tmp_path / "run" / "log.jsonl").read_text()
    answer = in_child(_full, tmp_path / "run", size)
    assert "could not be written" in answer
    assert "run the same command again" in answer
    assert same(load_checkpoint(tmp_path / "run" / "checkpoint.npz").state, before.state)
    assert not list((tmp_path / "run").glob(".checkpoint*"))
    resumed = trained(tmp_path / "run", 2)
    assert same(resumed.state, trained(tmp_path / "whole", 2).state)
    assert (tmp_path / "run" / "log.jsonl").read_text().startswith(content)


def test_two_runs_in_one_folder(tmp_path: Path) -> None:
    def intrude(progress: TrainingProgress) -> None:
        with pytest.raises(InvalidInputError, match="no other run"):
            trained(tmp_path, 1)

    trained(tmp_path, 0, progress=intrude)
