"""Data files: what is written comes back, damage is named, provenance is complete."""

import hashlib
import math
import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr

from rmtheory import InvalidInputError
from rmtheory.runtime import netcdf, provenance


def _dataset() -> xr.Dataset:
    return xr.Dataset(
        {
            "entropy": (("layers", "jd"), np.arange(6.0).reshape(3, 2)),
            "tier": ("layers", np.array(["certified", "verified", "estimated"])),
            "stable": ("layers", np.array([True, False, True])),
            "nothing": ("jd", np.full(2, np.nan)),
        },
        coords={"layers": [1.0, 2.0, math.inf], "jd": [0.1, 0.2]},
    )


def test_round_trip_keeps_everything(tmp_path: Path) -> None:
    attributes = provenance.attributes({"jd": 0.1, "label": "λ"}, seed=7, wall_time=1.5, note="x")
    dataset = _dataset().assign_attrs(attributes)
    netcdf.save(dataset, tmp_path / "a.nc")
    loaded = netcdf.load(tmp_path / "a.nc")
    xr.testing.assert_equal(loaded, dataset)
    assert attributes.items() <= loaded.attrs.items()
    assert loaded.attrs["seed"] == "7"
    assert loaded.attrs["note"] == "x"


def test_missing_and_unwritable_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        netcdf.load(tmp_path / "none.nc")
    with pytest.raises(InvalidInputError, match="out must be"):
        netcdf.save(_dataset(), tmp_path / "no" / "folder.nc")


def test_a_file_of_somebody_else_is_not_trusted(tmp_path: Path) -> None:
    _dataset().to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with pytest.raises(netcdf.UnreadableDataError, match=r"a\.nc was altered"):
        netcdf.load(tmp_path / "a.nc")


def _of_version_0_1(dataset: xr.Dataset, path: Path) -> None:
    stamped = dataset.assign_attrs(data_sha256=netcdf.checksum(dataset))
    stamped.to_netcdf(path, engine="h5netcdf")


def test_files_of_version_0_1_are_read(tmp_path: Path) -> None:
    _of_version_0_1(_dataset().assign_attrs(seed="7"), tmp_path / "a.nc")
    loaded = netcdf.load(tmp_path / "a.nc")
    xr.testing.assert_equal(loaded, _dataset())
    assert loaded.attrs["seed"] == "7"


def test_other_tools_read_our_files_and_version_0_1_would(tmp_path: Path) -> None:
    netcdf.save(_dataset().assign_attrs(seed="7"), tmp_path / "a.nc")
    with xr.open_dataset(tmp_path / "a.nc") as result:  # which kind of file it is, is found out
        xr.testing.assert_equal(result.load(), _dataset())
        assert result.attrs["data_sha256"] == netcdf.checksum(result)
    with h5py.File(tmp_path / "a.nc") as file:
        assert file.attrs["seed"] == "7"
    content = (tmp_path / "a.nc").read_bytes()
    body, line = content[:-82], content[-82:]
    assert line == b"\nrmtheory sha256 " + hashlib.sha256(body).hexdigest().encode() + b"\n"


def test_every_byte_counts_and_hdf5_sees_no_altered_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.nc"
    netcdf.save(_dataset().assign_attrs(title="entropy", versions="{}"), path)
    content = path.read_bytes()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("HDF5 has seen it")

    monkeypatch.setattr(xr, "open_dataset", refuse)
    generator = np.random.default_rng(1)
    places = [content.index(b"entropy"), *generator.integers(0, len(content) - 82, 300)]
    for place in places:
        altered = bytearray(content)
        altered[place] ^= 1 << int(generator.integers(8))
        path.write_bytes(altered)
        with pytest.raises(netcdf.UnreadableDataError, match=r"a\.nc was altered: its checksum"):
            netcdf.load(path)


@pytest.mark.parametrize("damage", ["line", "signature", "empty", "half", "text"])
def test_files_without_their_last_line(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    netcdf.save(_dataset(), path)
    content = path.read_bytes()
    kept = {
        "line": content[:-82],
        "signature": b"\0" + content[1:-1],
        "empty": b"",
        "half": content[: len(content) // 2],
        "text": b"no data",
    }
    path.write_bytes(kept[damage])
    words = "cannot be read" if damage in ("empty", "text") else "last line is missing"
    with pytest.raises(netcdf.UnreadableDataError, match=rf"a\.nc .*{words}"):
        netcdf.load(path)


@pytest.mark.parametrize(
    ("trial", "seconds", "words"),
    [
        ("while True: pass", 1, "takes more than 1 s"),
        ("import signal\nsignal.signal(15, signal.SIG_IGN)\nwhile True: pass", 1, "than 1 s"),
        ("import os\nos.abort()", 60, "HDF5 fails"),
    ],
)
def test_reading_ends_whatever_hdf5_does(
    trial: str, seconds: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which bytes let HDF5 go on for ever depends on its version: here another process does."""
    _of_version_0_1(_dataset(), tmp_path / "a.nc")
    monkeypatch.setattr(netcdf, "_TRIAL", trial)
    monkeypatch.setattr(netcdf, "_PATIENCE", seconds)
    with pytest.raises(netcdf.UnreadableDataError, match=rf"a\.nc cannot be read: .*{words}"):
        netcdf.load(tmp_path / "a.nc")


def test_arrays_that_would_fill_the_memory_are_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.nc", "w") as file:  # a thousand bytes, most of them announced
        file.create_dataset("x", (1 << 40,), "f8", chunks=(1 << 20,), compression="gzip")
    with pytest.raises(netcdf.UnreadableDataError, match=r"a\.nc .* its arrays have 8796093022208"):
        netcdf.load(tmp_path / "a.nc")


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_file_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(netcdf.UnreadableDataError, match=rf"a\.nc cannot be read: it is a {kind}"):
        netcdf.load(path)


_FULL = """
import resource, sys
import numpy as np, xarray as xr
from rmtheory.base.errors import StorageError
from rmtheory.runtime import netcdf
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    netcdf.save(xr.Dataset({"x": ("i", np.random.default_rng(0).random(9000))}), sys.argv[1])
except StorageError as problem:
    print(problem)
"""


def test_a_full_disk_is_told_and_the_old_file_is_kept(tmp_path: Path) -> None:
    """HDF5 crashed when it could not write (exit 139)."""
    netcdf.save(_dataset(), tmp_path / "a.nc")
    answer = subprocess.run(
        [sys.executable, "-c", _FULL, str(tmp_path / "a.nc")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer
    assert "a.nc could not be written (File too large), and what was there before" in answer.stdout
    assert "make room and run the same command again" in answer.stdout
    assert answer.stderr == ""
    xr.testing.assert_equal(netcdf.load(tmp_path / "a.nc"), _dataset())
    assert [path.name for path in tmp_path.iterdir()] == ["a.nc"]


def test_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    netcdf.save(_dataset(), tmp_path / "a.nc")
    with pytest.raises(TypeError):
        netcdf.save(_dataset().assign_attrs(bad=object()), tmp_path / "a.nc")
    xr.testing.assert_equal(netcdf.load(tmp_path / "a.nc"), _dataset())
    assert [path.name for path in tmp_path.iterdir()] == ["a.nc"]


def test_commit_is_that_of_the_source_tree() -> None:
    root = Path(provenance.__file__).resolve().parents[2]
    commit, dirty = provenance.git_state()
    if not (root / ".git").exists():
        assert (commit, dirty) == ("unknown", "unknown")
        return
    head = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    )
    assert commit == head.stdout.strip()
    assert dirty in ("yes", "no")


def test_results_in_the_tree_are_not_changes_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "rmtheory" / "runtime" / "provenance.py"
    stored = tmp_path / provenance.RESULTS[0] / "run.json"
    for file in (source, stored):
        file.parent.mkdir(parents=True)
        file.write_text("first")

    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", str(tmp_path), *who, *arguments], check=True)

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "all")
    monkeypatch.setattr(provenance, "__file__", str(source))
    stored.write_text("more")
    assert provenance.git_state()[1] == "no"
    source.write_text("other")
    assert provenance.git_state()[1] == "yes"


def test_no_git_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert provenance.git_state() == ("unknown", "unknown")
