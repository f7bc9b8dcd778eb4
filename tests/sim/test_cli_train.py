"""``rmsim train``, ``evaluate`` and ``presets``: answers, progress, one sentence for bad input."""

import json
from pathlib import Path
from typing import Any

import pytest

from rmsim.cli import run

TRAIN = [
    *("train", "--preset", "entangled-mnist-dense", "--n", "60", "--dataset", "synthetic"),
    *("--train", "400", "--test", "200", "--metrics", "100", "--device", "cpu"),
]


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(arguments) == 0
    result = json.loads(capsys.readouterr().out)
    assert isinstance(result, dict)
    return result


def test_train_and_evaluate(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = str(tmp_path / "run")
    assert run([*TRAIN, "--epochs", "2", "--out", folder, "--probe", "2"]) == 0
    captured = capsys.readouterr()
    assert [line[:9] for line in captured.err.splitlines()] == [f"epoch {k}/2" for k in range(3)]
    assert "samples/s" in captured.err
    assert "left" in captured.err.splitlines()[1]
    assert "probe_test_accuracy" in captured.out
    assert "±" in captured.out
    result = answer(capsys, "evaluate", folder, "--json")
    told = answer(capsys, *TRAIN, "--epochs", "2", "--out", folder, "--probe", "2", "--json")
    for name in ("train_accuracy", "test_accuracy", "probe_train_accuracy", "probe_test_accuracy"):
        assert 0.5 < result[name] <= 1
        assert 0 < result[f"{name}_error"] < 0.04
        assert result[name] == told[name]  # one name, one readout
    assert set(result["q_dyn"]) == {"median", "q25", "q75", "q05", "q95"}
    assert -1 <= result["symmetry"] <= 1
    assert (result["epoch"], result["seed"], result["device"]) == (2, 0, "cpu")
    file = tmp_path / "answer.json"
    assert run(["evaluate", folder, "--samples", "50", "--out", str(file)]) == 0
    assert "[" in capsys.readouterr().out  # quartiles
    assert json.loads(file.read_text())["test_samples"] == 50


def test_run_again_it_goes_on(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    train = [*TRAIN, "--set", "eta_j=.01", "--json", "--out"]
    answer(capsys, *train, str(tmp_path / "a"), "--epochs", "1")
    on = answer(capsys, *train, str(tmp_path / "a"), "--epochs", "2")
    whole = answer(capsys, *train, str(tmp_path / "b"), "--epochs", "2")
    assert on["parameters"]["eta_j"] == 0.01
    for name in ("test_accuracy", "q_dyn", "margin", "symmetry", "step"):
        assert on[name] == whole[name]


def test_fewer_epochs_than_there_are(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    train = [*TRAIN, "--out", str(tmp_path), "--epochs"]
    answer(capsys, *train, "2", "--probe", "3", "--json")
    files = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for epochs in ("0", "1", "2"):
        assert run([*train, epochs]) == 0
        captured = capsys.readouterr()
        done = f"{tmp_path} has 2 epochs already (requested: {epochs})"
        assert captured.err == f"rmsim: nothing to train: {done}\n"
        assert "after 2 epochs" in captured.out
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == files
    again = answer(capsys, *train, "1", "--probe", "1", "--json")  # a probe that is asked for
    assert again["epoch"] == 2
    assert "probe_test_accuracy" in again


def test_a_longer_run_keeps_its_probe(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    sparse = [*TRAIN, "--preset", "entangled-mnist-sparse", "--out", str(tmp_path), "--json"]
    longer = answer(capsys, *sparse, "--epochs", "1", "--probe", "2")
    probe = (tmp_path / "probe.npz").read_bytes()
    fewer = answer(capsys, *sparse, "--epochs", "0")
    assert (tmp_path / "probe.npz").read_bytes() == probe
    assert fewer["probe_test_accuracy"] == longer["probe_test_accuracy"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--preset", "nosuch"], "preset must be one of entangled-mnist-dense"),
        (["--n", "5"], "n must be such that 10 classes fit"),
        (["--n", "many"], "n must be an integer"),
        (["--epochs", "-1"], "epochs must be an integer >= 0"),
        (["--seed", "x"], "seed must be an integer"),
        (["--set", "eta=1"], "set must be a parameter that exists, such as eta_j or eta_in"),
        (["--set", "qq=1"], "set must be a parameter that exists ('rmsim presets NAME' lists all)"),
        (["--set", "eta_j=-1"], "eta_j must be at least 0"),
        (["--set", "symmetry=half"], "symmetry must be one of asym"),
        (["--set", "layers=2"], "lam_left must be given for 2 layers: the input has to reach"),
        (["--probe", "-1"], "probe must be an integer >= 0"),
        (["--train", "99999"], "train must be an integer from 1 to 2000"),
        (["--metrics", "0"], "metrics must be an integer >= 1"),
        (["--watch", "0"], "metrics must be an integer >= 1"),  # its name in version 0.1
        (["--dataset", "nosuch"], "dataset must be one of"),
        (["--device", "abacus"], "device must be"),
        (["--dtype", "float16"], "dtype must be"),
    ],
)
def test_bad_input(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, more: list[str], words: str
) -> None:
    assert run([*TRAIN, "--epochs", "1", "--out", str(tmp_path / "run"), *more]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"rmsim: error: {words}")
    assert captured.err.count("\n") == 1


def test_bad_folders(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(TRAIN) == 2
    assert "out must be given" in capsys.readouterr().err
    assert run(["train", "--out", str(tmp_path)]) == 2
    assert "preset must be given" in capsys.readouterr().err
    file = tmp_path / "file"
    file.write_text("")
    assert run([*TRAIN, "--out", str(file)]) == 2
    assert "out must be a folder" in capsys.readouterr().err
    assert run(["evaluate", str(tmp_path / "nothing")]) == 2
    assert "folder must be the folder of a run" in capsys.readouterr().err
    folder = tmp_path / "run"
    answer(capsys, *TRAIN, "--epochs", "0", "--json", "--out", str(folder))
    assert run([*TRAIN, "--epochs", "1", "--out", str(folder), "--seed", "1"]) == 2
    assert "which holds another run: seed = 0, not 1" in capsys.readouterr().err
    (folder / "checkpoint.npz").unlink()
    assert run(["evaluate", str(folder)]) == 1
    assert "checkpoint.npz" in capsys.readouterr().err


def test_presets(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["presets"]) == 0
    assert "tiny-imagenet-sparse-printed" in capsys.readouterr().out
    assert run(["presets", "--json"]) == 0
    assert "mnist-sparse" in [row["name"] for row in json.loads(capsys.readouterr().out)]
    result = answer(capsys, "presets", "mnist-sparse", "--n", "2000", "--json")
    assert result["parameters"]["lambda_y"] == 1.3
    assert run(["presets", "landscape"]) == 0
    out = capsys.readouterr().out
    assert "lambda_x = 2" in out
    assert "changed: lambda_x = 5" in out
    assert run(["presets", "nosuch"]) == 2
    assert run(["presets", "--n", "10"]) == 2
