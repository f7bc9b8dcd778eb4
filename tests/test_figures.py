"""Every figure: data with provenance, both pictures, replotting, damage, bad input."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure as Picture

from figures import make as making
from figures.cli import run
from figures.figure import Figure, Scale
from figures.registry import FIGURES
from figures.unfinished import keeping_parts, parts_folder
from rmtheory import NotConvergedError, store


def _no_progress(done: int, total: int) -> None:
    assert 0 <= done <= total


def _make(figure: Figure, folder: Path, **options: bool) -> making.Made:
    return making.make(figure, Scale.TINY, folder, _no_progress, **options)


@pytest.fixture(scope="module", params=FIGURES)
def name(request: pytest.FixtureRequest) -> str:
    """Each figure in turn; all tests of one figure come together."""
    return str(request.param)


@pytest.fixture(scope="module")
def folder(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the figure was made once, together with those that share its data."""
    figure = FIGURES[name]
    made_in = tmp_path_factory.getbasetemp() / figure.data_file.removesuffix(".nc")
    there = made_in.exists()
    made_in.mkdir(exist_ok=True)
    assert _make(figure, made_in).data == ("stored" if there else "computed")
    assert not (made_in / ".parts").exists()
    return made_in


def test_data_carry_provenance_and_errors(name: str, folder: Path) -> None:
    figure = FIGURES[name]
    data = store.load(folder / figure.data_file)
    assert json.loads(data.attrs["parameters"]) == figure.parameters[Scale.TINY]
    assert data.attrs["parameters_hash"] == figure.key(Scale.TINY)
    assert data.attrs["scale"] == "tiny"
    assert data.attrs["seed"] == ("none" if figure.seed is None else str(figure.seed))
    assert float(data.attrs["wall_time_seconds"]) > 0
    assert json.loads(data.attrs["versions"])["numpy"] == np.__version__
    for attribute in ("git_commit", "git_dirty", "python", "date", "title"):
        assert data.attrs[attribute]
    values = [str(v) for v in data.data_vars if not str(v).endswith("_error")]
    assert values
    for value in values:
        error = data[f"{value}_error"]
        assert error.dims == data[value].dims
        assert bool((error.fillna(0) >= 0).all())
        assert data[value].attrs["long_name"]


def test_pictures_are_labelled_and_fit_a_page(name: str, folder: Path) -> None:
    assert (folder / f"{name}.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert (folder / f"{name}.pdf").read_bytes()[:5] == b"%PDF-"
    picture = FIGURES[name].plot(store.load(folder / FIGURES[name].data_file))
    assert picture.get_figwidth() in (3.4, 7.0)
    for axis in picture.axes:
        assert axis.get_xlabel()
        assert axis.get_ylabel()
        assert axis.get_legend() is not None


def test_second_run_plots_stored_data_only(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (folder / f"{name}.png").read_bytes()

    def never(*_: object) -> xr.Dataset:
        raise AssertionError("computed although the data are stored")

    monkeypatch.setattr(making, "_computed", never)
    assert _make(FIGURES[name], folder).data == "stored"
    assert (folder / f"{name}.png").read_bytes() == before


def _small(compute_calls: list[int], version: int = 1) -> Figure:
    def compute(parameters: object, progress: object) -> xr.Dataset:
        compute_calls.append(1)
        return xr.Dataset({"y": ("x", np.arange(4.0)), "y_error": ("x", np.full(4, 1e-16))})

    scales = {scale: {"points": 4 * k} for k, scale in enumerate(Scale, start=1)}
    return Figure("small", "t", "c", scales, compute, lambda _: Picture(), version)


def test_other_scale_version_or_recompute_computes_again(tmp_path: Path) -> None:
    calls: list[int] = []
    _make(_small(calls), tmp_path)
    assert _make(_small(calls), tmp_path).data == "stored"
    _make(_small(calls, version=2), tmp_path)
    making.make(_small(calls, version=2), Scale.PAPER, tmp_path, _no_progress)
    making.make(_small(calls, version=2), Scale.PAPER, tmp_path, _no_progress, recompute=True)
    assert len(calls) == 4


def test_figures_with_the_same_data_share_them(tmp_path: Path) -> None:
    calls: list[int] = []
    first = replace(_small(calls), data="shared")
    second = replace(first, name="other")
    assert _make(first, tmp_path).data == "computed"
    assert _make(second, tmp_path).data == "stored"
    assert {path.name for path in tmp_path.glob("*.nc")} == {"shared.nc"}
    assert (tmp_path / "other.png").exists()


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    done: list[str] = []

    def compute(parameters: object, progress: object) -> xr.Dataset:
        with parts_folder() as parts:
            for part in "ab":
                if not (parts / part).exists():
                    done.append(part)
                    (parts / part).write_text("")
                if len(done) == 1:
                    raise KeyboardInterrupt
        return xr.Dataset({"y": ("x", np.arange(4.0)), "y_error": ("x", np.full(4, 1e-16))})

    figure = replace(_small([]), compute=compute)
    with pytest.raises(KeyboardInterrupt):
        _make(figure, tmp_path)
    done.append("interrupted")
    assert _make(figure, tmp_path).data == "computed"
    assert done == ["a", "interrupted", "b"]
    assert not (tmp_path / ".parts").exists()


def test_parts_of_another_computation_are_not_used(tmp_path: Path) -> None:
    def interrupted() -> None:
        with keeping_parts(tmp_path / "parts", "one"), parts_folder() as parts:
            (parts / "point").write_text("")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "parts" / "point").exists()
    with keeping_parts(tmp_path / "parts", "other"), parts_folder() as parts:
        assert not (parts / "point").exists()
    with parts_folder() as parts:
        assert parts.is_dir()
    assert not parts.exists()


@pytest.mark.parametrize("damage", ["truncated", "rewritten", "one number", "empty"])
def test_damaged_data_are_named_and_computed_again(damage: str, tmp_path: Path) -> None:
    calls: list[int] = []
    _make(_small(calls), tmp_path)
    path = tmp_path / "small.nc"
    content = path.read_bytes()
    if damage == "one number":
        place = content.index(np.arange(4.0).tobytes())
        path.write_bytes(content[: place + 15] + b"\x41" + content[place + 16 :])
    else:
        size = {"truncated": len(content) // 2, "rewritten": 0, "empty": 0}[damage]
        path.write_bytes(content[:size] + (b"no netCDF" if damage == "rewritten" else b""))
    made = _make(_small(calls), tmp_path)
    assert (made.data, len(calls)) == ("computed", 2)
    assert str(path) in made.note
    assert _make(_small(calls), tmp_path).data == "stored"


def test_list_names_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(FIGURES)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nosuch"], "figure must be all or one of annealed"),
        (["annealed", "--scale", "huge"], "scale must be one of tiny, quick, paper, got huge"),
        (["annealed", "--out", "FILE"], "out must be a folder that can be written"),
        (["annealed", "--out", "FILE/below"], "out must be a folder that can be written"),
        ([], "NAME"),
    ],
)
def test_bad_input_is_one_line_and_code_2(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert run([a.replace("FILE", str(file)) for a in arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert words in captured.err


def test_failing_figure_is_reported_and_the_others_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> xr.Dataset:
        raise NotConvergedError("no root near 0.3")

    calls: list[int] = []
    good = _small(calls)
    bad = Figure("bad", "t", "c", good.parameters, fails, good.plot)
    monkeypatch.setattr("figures.registry.FIGURES", {"bad": bad, "small": good})
    assert run(["all", "--out", str(tmp_path / "new" / "folder")]) == 1
    captured = capsys.readouterr()
    assert captured.err == "figures: error: bad failed: no root near 0.3\n"
    assert "small: computed data" in captured.out
    assert not list(tmp_path.rglob("bad*"))
