"""The second run: what is there and up to date is left alone, everything else is made again."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure as Picture

from figures.cli import run
from figures.engine import figure as engine
from figures.engine.figure import Context, Figure, Made, Scale, make, source_hash
from figures.paper.registry import FIGURES
from figures.report.collecting import Results
from figures.report.publishing import RESULTS
from rmtheory.runtime import netcdf


def _compute(parameters: object, context: Context) -> xr.Dataset:
    return xr.Dataset({"y": ("x", np.arange(4.0)), "y_error": ("x", np.full(4, 1e-16))})


def _plot(data: xr.Dataset) -> Picture:
    picture = Picture()
    picture.subplots().plot(data["y"])
    return picture


SMALL = Figure("small", "t", "c", {s: {"points": str(s)} for s in Scale}, _compute, _plot)


def _make(folder: Path, figure: Figure = SMALL, scale: Scale = Scale.TINY) -> Made:
    return make(figure, scale, folder, Context())


def _state(folder: Path) -> dict[str, tuple[int, int]]:
    """Inode and time of each file: a file that is written again has others."""
    result = {path: path.stat() for path in folder.rglob("*") if path.is_file()}
    return {path.name: (stat.st_ino, stat.st_mtime_ns) for path, stat in result.items()}


def test_nothing_is_written_if_nothing_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("figures.paper.registry.FIGURES", {"small": SMALL})
    arguments = ["small", "--scale", "tiny", "--out", str(tmp_path)]
    assert run(arguments) == 0
    assert capsys.readouterr().out.startswith("small: computed data, ")
    before = _state(tmp_path)
    assert set(before) == {"small.nc", "small.png", "small.pdf", "small.sha256", ".lock"}
    assert run(arguments) == 0
    assert capsys.readouterr().out.startswith("small: unchanged, ")
    assert _state(tmp_path) == before


@pytest.mark.parametrize("kind", engine.KINDS)
@pytest.mark.parametrize("damage", ["deleted", "cut off", "empty", "one byte"])
def test_a_damaged_picture_is_drawn_again(damage: str, kind: str, tmp_path: Path) -> None:
    _make(tmp_path)
    picture = tmp_path / f"small.{kind}"
    whole = picture.read_bytes()
    middle = len(whole) // 2
    if damage == "deleted":
        picture.unlink()
    elif damage == "one byte":
        picture.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    else:
        picture.write_bytes(whole[: middle if damage == "cut off" else 0])
    made = _make(tmp_path)
    assert (made.data, made.drawn) == ("stored", True)
    assert picture.read_bytes() == whole
    assert not _make(tmp_path).drawn


def test_data_of_equal_earlier_code_are_used(tmp_path: Path) -> None:
    """A change of `compute` that changes no number costs no computation, unlike a new version."""
    _make(tmp_path)
    before = (tmp_path / "small.nc").read_bytes()

    def renamed(parameters: object, somewhere: Context) -> xr.Dataset:
        return _compute(parameters, somewhere)

    later = replace(SMALL, compute=renamed)
    equal = replace(later, earlier=(SMALL.source_version,))
    assert equal.key(Scale.TINY) != SMALL.key(Scale.TINY)
    assert _make(tmp_path, equal).data == "stored"
    assert (tmp_path / "small.nc").read_bytes() == before
    assert _make(tmp_path, replace(equal, version=2)).data == "computed"
    _make(tmp_path)
    assert _make(tmp_path, later).data == "computed"


def test_published_numbers_are_of_data_that_would_be_used_again() -> None:
    published = Results.from_json(RESULTS.read_text("utf-8")).runs.values()
    current = {key for figure in FIGURES.values() for s in Scale for key in figure.keys(s)}
    assert {run.key for run in published} <= current


def test_other_data_are_drawn(tmp_path: Path) -> None:
    _make(tmp_path)
    before = (tmp_path / "small.png").read_bytes()
    data = netcdf.load(tmp_path / "small.nc")
    netcdf.save(data.assign(y=data["y"] ** 2), tmp_path / "small.nc")
    made = _make(tmp_path)
    assert (made.data, made.drawn) == ("stored", True)
    assert (tmp_path / "small.png").read_bytes() != before


def test_data_of_another_scale_or_version_are_not_taken_for_these(tmp_path: Path) -> None:
    _make(tmp_path)
    assert _make(tmp_path, scale=Scale.QUICK).data == "computed"
    assert _make(tmp_path, replace(SMALL, version=2), Scale.QUICK).data == "computed"
    assert _make(tmp_path).data == "computed"


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that stands for that of the packages, with one module and one style."""
    for package in ("figures", "rmtheory", "rmsim"):
        (tmp_path / package / "part").mkdir(parents=True)
    (tmp_path / "figures" / "style.mplstyle").write_text("lines.linewidth: 1")
    (tmp_path / "rmsim" / "part" / "fit.py").write_text("degree = 2")
    monkeypatch.setattr("figures.engine.figure.ROOT", tmp_path)
    engine.drawing_hash.cache_clear()
    yield tmp_path
    engine.drawing_hash.cache_clear()


@pytest.mark.parametrize(
    ("file", "text"),
    [("figures/style.mplstyle", "lines.linewidth: 2"), ("rmsim/part/fit.py", "degree = 3")],
)
def test_changed_sources_draw_again(file: str, text: str, sources: Path) -> None:
    out = sources / "out"
    out.mkdir()
    _make(out)
    engine.drawing_hash.cache_clear()  # it holds for a process
    assert not _make(out).drawn
    (sources / file).write_text(text)
    engine.drawing_hash.cache_clear()
    made = _make(out)
    assert (made.data, made.drawn) == ("stored", True)


def test_another_matplotlib_draws_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _make(tmp_path)
    monkeypatch.setattr(engine, "package_versions", lambda: {"matplotlib": "1.0"})
    engine.drawing_hash.cache_clear()
    assert _make(tmp_path).drawn
    engine.drawing_hash.cache_clear()


def test_the_sources_are_found() -> None:
    every = source_hash("figures", "rmtheory", "rmsim")
    assert every not in (source_hash(), source_hash("rmtheory", "rmsim"))
