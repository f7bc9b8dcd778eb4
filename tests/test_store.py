"""Data files: what is written comes back, damage is named, provenance is complete."""

import math
import subprocess
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from rmtheory import InvalidInputError, provenance, store


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
    store.save(dataset, tmp_path / "a.nc")
    loaded = store.load(tmp_path / "a.nc")
    xr.testing.assert_equal(loaded, dataset)
    assert attributes.items() <= loaded.attrs.items()
    assert loaded.attrs["seed"] == "7"
    assert loaded.attrs["note"] == "x"


def test_missing_and_unwritable_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        store.load(tmp_path / "none.nc")
    with pytest.raises(InvalidInputError, match="out must be"):
        store.save(_dataset(), tmp_path / "no" / "folder.nc")


def test_a_file_of_somebody_else_is_not_trusted(tmp_path: Path) -> None:
    _dataset().to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with pytest.raises(store.UnreadableDataError, match=r"a\.nc was altered"):
        store.load(tmp_path / "a.nc")


def test_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    store.save(_dataset(), tmp_path / "a.nc")
    with pytest.raises(TypeError):
        store.save(_dataset().assign_attrs(bad=object()), tmp_path / "a.nc")
    xr.testing.assert_equal(store.load(tmp_path / "a.nc"), _dataset())
    assert [path.name for path in tmp_path.iterdir()] == ["a.nc"]


def test_commit_is_that_of_the_source_tree() -> None:
    root = Path(provenance.__file__).resolve().parents[1]
    commit, dirty = provenance.git_state()
    if not (root / ".git").exists():
        assert (commit, dirty) == ("unknown", "unknown")
        return
    head = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    )
    assert commit == head.stdout.strip()
    assert dirty in ("yes", "no")


def test_no_git_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert provenance.git_state() == ("unknown", "unknown")
