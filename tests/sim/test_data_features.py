"""Features of Tiny ImageNet, from files of the published schema and from others."""

import os
from pathlib import Path

import numpy as np
import pytest

from rmsim.data import features, load
from rmsim.data.download import VARIABLE
from rmtheory.base.errors import UnreadableDataError

pa = pytest.importorskip("pyarrow", reason="the extra 'parquet' is not installed")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test finds the data of this machine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(VARIABLE, raising=False)


def _parts(count: int = 6) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(0)
    return {
        part: (random.random((count, 512), np.float32), np.arange(count) * 199 // (count - 1))
        for part in ("train", "validation")
    }


def _write_parquet(
    path: Path, x: np.ndarray, y: np.ndarray, names: tuple[str, str] = ("x", "y")
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(dict(zip(names, (list(x), y), strict=True))), path)


def test_features_from_npz_and_from_parquet_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "npz" / features.NAME, tmp_path / "hub" / "tinyimagenet-features"
    first.mkdir(parents=True)
    for part, (x, y) in _parts().items():
        np.savez(first / f"{part}.npz", x=x, y=y)
        _write_parquet(second / "data" / f"{part}-00000-of-00002.parquet", x[:4], y[:4])
        _write_parquet(second / "data" / f"{part}-00001-of-00002.parquet", x[4:], y[4:])
    data = load(features.NAME, tmp_path / "npz")
    assert (data.width, data.classes) == (512, 200)
    assert (data.train.inputs == _parts()["train"][0]).all()
    monkeypatch.setenv(VARIABLE, str(tmp_path / "hub"))
    assert load(features.NAME).checksum == data.checksum


def test_features_of_another_schema_are_refused(tmp_path: Path) -> None:
    (x, y), path = _parts()["train"], tmp_path / "train.parquet"
    _write_parquet(tmp_path / "validation.parquet", x, y)

    def refused(message: str) -> None:
        with pytest.raises(UnreadableDataError, match=message) as caught:
            load(features.NAME, tmp_path)
        assert str(path) in str(caught.value)

    _write_parquet(path, x, y, ("features", "label"))
    refused("must have the columns x, y; it has features, label")
    _write_parquet(path, x[:, :100], y)
    refused(r"x must be rows of 512 numbers, got \(6, 100\)")
    _write_parquet(path, x, y + 1)
    refused("labels y must be from 0 to 199, got 1 to 200")
    _write_parquet(path, np.where(x == x[0, 0], np.nan, x), y)
    refused("inputs must be finite numbers, got NaN or infinity in sample 0")
    pq.write_table(pa.table({"x": [[1.0], [1.0, 2.0]], "y": [0, 1]}), path)
    refused("rows of x have different lengths")
    pq.write_table(pa.table({"x": [[1.0, None]], "y": [0]}), path)
    refused("has missing values")
    pq.write_table(pa.table({"x": [1.0], "y": [0]}), path)
    refused("x must be lists of numbers, got double")
    path.write_bytes(b"PAR1 and nothing more")
    refused("cannot be read")


def test_features_nowhere_say_what_to_do() -> None:
    with pytest.raises(UnreadableDataError, match=r"nowhere .*huggingface.*train\.npz"):
        load(features.NAME)


@pytest.mark.parametrize("what", ["pipe", "folder", "cut", "flipped"])
def test_parquet_files_that_are_none(what: str, tmp_path: Path) -> None:
    (x, y), path = _parts()["train"], tmp_path / "train.parquet"
    _write_parquet(path, x, y)
    _write_parquet(tmp_path / "validation.parquet", x, y)
    content = path.read_bytes()
    path.unlink()
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    else:
        path.write_bytes(content[:-20] if what == "cut" else content[:-12] + bytes(12))
    with pytest.raises(UnreadableDataError, match=r"train\.parquet cannot be read: "):
        features.load_features(tmp_path)
