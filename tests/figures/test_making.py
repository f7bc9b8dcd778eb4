"""Every figure: data with provenance, both pictures, replotting, damage, bad input."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from files_run import files_run, listed, own
from matplotlib.figure import Figure as Picture

from figures.cli import run
from figures.engine import figure as engine
from figures.engine.figure import Context, Figure, Scale, partial_results, swept
from figures.paper import phase_diagram_complete as complete
from figures.paper.registry import FIGURES
from rmsim.sweep import Backend, Dask, Local, Serial
from rmsim.sweep.definition import Task
from rmsim.sweep.running import Answers, Note
from rmtheory import NotConvergedError
from rmtheory.runtime import netcdf
from tests import sweep_points


def _no_progress(done: int, total: int) -> None:
    assert 0 <= done <= total


class Here(Context):
    """Points in this process: in others, whose work is tested elsewhere, torch is loaded anew."""

    def backend(self) -> Backend:
        return Serial(self.device)


class Untraced(Serial):
    """Points that are not traced, as if in a process of their own."""

    @contextmanager
    def answers(self, tasks: Sequence[Task], note: Note) -> Iterator[Answers]:
        def each(answers: Answers) -> Answers:
            while True:
                tracer = sys.gettrace()
                sys.settrace(None)
                try:
                    answer = next(answers)
                except StopIteration:
                    return
                finally:
                    sys.settrace(tracer)
                yield answer

        with super().answers(tasks, note) as answers:
            yield each(iter(answers))


class Traced(Here):
    """Where the files that are run are counted: those of the workers are not."""

    def backend(self) -> Backend:
        return Untraced(self.device)


def _make(
    figure: Figure, folder: Path, where: type[Context] = Here, **options: bool
) -> engine.Made:
    return engine.make(figure, Scale.TINY, folder, where(_no_progress, jobs=1), **options)


def _demand_the_way_of_the_page(files: list[str]) -> None:
    """Compare with the list of the page, of which two files are those of the command."""
    commands = {"figures/cli.py", "figures/paper/registry.py"}
    assert {*own(files), *commands} == listed("python -m figures")
    assert len({*own(files), *commands}) <= 20


@pytest.fixture(scope="module", params=FIGURES)
def name(request: pytest.FixtureRequest) -> str:
    """Each figure in turn; all tests of one figure come together."""
    return str(request.param)


#: The pictures that were drawn, so that no test draws them once more to look at them.
DRAWN: dict[str, Picture] = {}


def _keeping(figure: Figure) -> Figure:
    """Return `figure`, whose pictures are kept here when they are drawn."""

    def plot(data: xr.Dataset) -> Picture:
        DRAWN[figure.name] = figure.plot(data)
        return DRAWN[figure.name]

    return replace(figure, plot=plot)


@pytest.fixture(scope="module")
def folder(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the figure was made once, together with those that share its data."""
    figure = _keeping(FIGURES[name])
    made_in = tmp_path_factory.getbasetemp() / figure.data_file.removesuffix(".nc")
    there = made_in.exists()
    made_in.mkdir(exist_ok=True)
    made: list[engine.Made] = []
    if name == "thresholds":  # the way that docs/architecture.md describes, measured in passing
        way = files_run(lambda: made.append(_make(figure, made_in, Traced)))
        _demand_the_way_of_the_page(way)
    else:
        made.append(_make(figure, made_in))
    assert made[0].data == ("stored" if there else "computed")
    assert not (made_in / ".parts").exists()
    return made_in


def test_data_carry_provenance_and_errors(name: str, folder: Path) -> None:
    figure = FIGURES[name]
    data = netcdf.load(folder / figure.data_file)
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
    picture = DRAWN[name]
    assert picture.get_figwidth() in (3.4, 7.0)
    # Panels may share a bar of colours: the same map of the same range.
    bars = {
        (one.get_cmap().name, one.get_clim())
        for axis in picture.axes
        for one in (*axis.images, *axis.collections)
        if one.colorbar is not None
    }
    for axis in picture.axes:
        if axis.get_label() == "<colorbar>":  # the legend of its panel
            assert axis.get_ylabel()
            continue
        if axis.axison:  # a drawing has no axes to label
            assert axis.get_xlabel()
            assert axis.get_ylabel()
        maps = [*axis.images, *axis.collections]
        coloured = any((m.get_cmap().name, m.get_clim()) in bars for m in maps)
        assert axis.get_legend() is not None or picture.legends or coloured


def test_second_run_draws_only_what_is_missing_and_the_same(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = folder / f"{name}.png"
    before = picture.read_bytes()

    def never(*_: object) -> xr.Dataset:
        raise AssertionError("computed although the data are stored")

    monkeypatch.setattr(engine, "_computed", never)
    made = _make(FIGURES[name], folder)
    assert (made.data, made.drawn) == ("stored", False)
    picture.unlink()
    monkeypatch.setattr(engine, "KINDS", ("png",))  # the other one takes twice the time
    made = _make(FIGURES[name], folder)
    assert (made.data, made.drawn) == ("stored", True)
    assert picture.read_bytes() == before


def _small(compute_calls: list[int], version: int = 1) -> Figure:
    def compute(parameters: object, context: Context) -> xr.Dataset:
        compute_calls.append(1)
        return xr.Dataset({"y": ("x", np.arange(4.0)), "y_error": ("x", np.full(4, 1e-16))})

    scales = {scale: {"points": 4 * k} for k, scale in enumerate(Scale, start=1)}
    return Figure("small", "t", "c", scales, compute, lambda _: Picture(), version)


def test_other_scale_version_or_recompute_computes_again(tmp_path: Path) -> None:
    calls: list[int] = []
    _make(_small(calls), tmp_path)
    assert _make(_small(calls), tmp_path).data == "stored"
    _make(_small(calls, version=2), tmp_path)
    for recompute in (False, True):
        figure, context = _small(calls, version=2), Context(_no_progress)
        engine.make(figure, Scale.PAPER, tmp_path, context, recompute=recompute)
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

    def compute(parameters: object, context: Context) -> xr.Dataset:
        with context.parts_folder() as parts:
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
        with partial_results(tmp_path / "parts", "one") as parts:
            (parts / "point").write_text("")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "parts" / "point").exists()
    with partial_results(tmp_path / "parts", "other") as parts:
        assert not (parts / "point").exists()
    with Context().parts_folder() as parts:
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
        (["nosuch"], "figure must be all or one of models"),
        (["annealed", "--scale", "huge"], "scale must be one of tiny, quick, paper, got huge"),
        (["annealed", "--out", "FILE"], "out must be a folder that can be written"),
        (["annealed", "--out", "FILE/below"], "out must be a folder that can be written"),
        (["annealed", "--jobs", "0"], "jobs must be an integer >= 1, got 0"),
        (["annealed", "--dask", " "], "dask must be the address of a Dask scheduler"),
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
    monkeypatch.setattr("figures.paper.registry.FIGURES", {"bad": bad, "small": good})
    assert run(["all", "--out", str(tmp_path / "new" / "folder")]) == 1
    captured = capsys.readouterr()
    assert captured.err == "figures: error: bad failed: no root near 0.3\n"
    assert "small: computed data" in captured.out
    assert not list(tmp_path.rglob("bad*"))


def test_the_list_does_without_torch() -> None:
    """It answers at once: torch alone takes seconds."""
    script = (
        "import sys; from figures.cli import run; run(['list']); "
        "assert not {'torch', 'numba', 'dask'} & set(sys.modules), 'imported'"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines()[0].startswith(next(iter(FIGURES)))


def test_hours_of_work_are_announced_before_they_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = replace(_small([]), core_hours={Scale.PAPER: 12.0})
    monkeypatch.setattr("figures.paper.registry.FIGURES", {"small": slow})
    for words in ("small at paper scale takes about 12 core-hours, 3 h in 4 processes", ""):
        assert run(["all", "--scale", "paper", "--jobs", "4", "--out", str(tmp_path)]) == 0
        error = capsys.readouterr().err
        assert words in error if words else error == ""  # stored data cost nothing


def test_the_user_chooses_processes_cluster_and_device() -> None:
    assert Context().backend() == Local(2, "cpu")
    assert Context(jobs=5).backend() == Local(5, "cpu")
    address = "tcp://host:8786"
    assert Context(jobs=5, dask=address).backend() == Dask(address, device="cpu")
    assert Context(jobs=5, device="cuda").backend() == Local(None, "cuda")  # one for each GPU


def test_a_device_that_is_not_there_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["counts", "--device", "cuda:77", "--out", str(tmp_path)]) == 2
    assert "device must be auto or one of" in capsys.readouterr().err


def test_points_that_fail_are_told_and_the_others_kept(tmp_path: Path) -> None:
    trouble = tmp_path / "trouble"
    trouble.write_text("raise")
    sweep = sweep_points.sweep(trouble=str(trouble))

    def run_it() -> int:
        with (
            partial_results(tmp_path / "parts", "key") as parts,
            swept({"demo": sweep}, Here(_no_progress, partial=parts)) as found,
        ):
            return len(list(found["demo"].rglob("*.json")))

    with pytest.raises(NotConvergedError, match=r"points failed, first: point .*x=1"):
        run_it()
    kept = {path.name for path in (tmp_path / "parts").rglob("*.json")}
    trouble.write_text("")
    assert run_it() >= len(kept) > 0
    assert not (tmp_path / "parts").exists()


def test_shipped_boundaries_meet_where_layers_decouple() -> None:
    """At lambda = 0 chains of any depth are single layers; errors are there and small."""
    tables = json.loads(complete.SHIPPED.read_text("utf-8"))
    assert set(tables["provenance"]) >= {"boundary", "freezing", "threshold"}
    for kind, expected in (("rm", 0.0731077), ("gap", 0.0600992)):
        ends = [x for x in tables["boundary"] if x["kind"] == kind and x["lam"] == 0]
        assert ends
        assert all(abs(x["jd"] - expected) < 3 * x["jd_error"] + 1e-6 for x in ends)
    freezing = complete.shipped_tables()["freezing"]
    for p, layers in ((0.8, 2), (0.8, 3), (1.0, 2), (1.0, 3)):
        some = [x for x in freezing if x["layers"] == 1 or (x["p"], x["layers"]) == (p, layers)]
        jd = [x["jd"] for x in sorted(some, key=lambda x: float(x["lam"]))]
        assert len(jd) > 2
        assert jd == sorted(jd, reverse=True)
    # What is known worse than to 0.1 is not drawn.
    assert all(0 < x["jd_error"] + x["lam_error"] < 0.1 for x in freezing)
    assert all(x["jd_error"] + x["lam_error"] > 0 for x in tables["threshold"])


def test_thresholds_of_the_complete_diagram_are_measured(tmp_path: Path) -> None:
    series = [complete._series("dynamics", 20, 10, (0.0, 0.9, 4))]
    series.append(complete._series("rbp .01", 20, 10, (0.2, 1.4, 4), layers=2))
    rows = complete._thresholds(series, Here(_no_progress, jobs=1, partial=tmp_path))
    assert [(row["search"], row["layers"], row["n"]) for row in rows] == [
        ("dynamics", 1, 20),
        ("rbp .01", 2, 20),
    ]
    assert 0 < rows[0]["jd"] < 0.9
    assert rows[0]["lam"] == 0
    assert 0.2 < rows[1]["lam"] < 1.4
    assert rows[1]["lam_error"] > 0


def test_labels_have_no_gap_in_their_formulas() -> None:
    """Mathtext sets `=.01` as `= . 01`, and a text after `=$` and a space as `=  2`."""
    sources = sorted(Path(complete.__file__).parent.glob("*.py"))
    assert len(sources) > 20
    for source in sources:
        text = source.read_text("utf-8")
        assert not re.search(r"\$[^$\n]*=\.\d", text), source.name
        assert not re.search(r"=\$ \{", text), source.name
