"""Runs of the phase diagram: killed, damaged, of other parameters, and the command."""

import json
import re
import shlex
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import rmtheory as rt
from rmtheory import InvalidInputError
from rmtheory.cli import run
from rmtheory.local_entropies import diagram as module
from rmtheory.local_entropies.boundaries import Kind
from rmtheory.local_entropies.diagram import (
    BoundaryPoint,
    Request,
    collect,
    compute_phase_diagram,
    finished,
    load_point,
    ray,
)
from rmtheory.runtime import netcdf

pytestmark = pytest.mark.numerical


class Instant:
    """Stands in for boundary_point, and counts."""

    def __init__(self, most: int = 1000) -> None:
        self.most = most
        self.calls: list[tuple[Kind, float, float | None]] = []

    def __call__(
        self, kind: Kind, theta: float, request: Request, neighbour: BoundaryPoint | None
    ) -> BoundaryPoint:
        if len(self.calls) >= self.most:
            raise KeyboardInterrupt
        self.calls.append((kind, theta, None if neighbour is None else neighbour.theta))
        chain = ray(kind, 2, theta, 1.0)
        return BoundaryPoint(
            kind,
            theta,
            chain.jd,
            chain.lam_left,
            jd_error=0.1,
            lam_error=0.1,
            d=0.01,
            d_error=1e-4,
            y_star=5.0,
            y_star_error=1e-3,
            internal=0.0,
            internal_error=1e-6,
            qhat=(0.2,),
            rate=1.0,
            key=request.key,
        )


def test_a_killed_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = Request(5, 1e-3)
    first = Instant(most=3)
    monkeypatch.setattr(module, "boundary_point", first)
    with pytest.raises(KeyboardInterrupt):
        compute_phase_diagram(request, tmp_path)
    assert finished(request, tmp_path) == 3
    half = collect(request, tmp_path)
    assert np.count_nonzero(np.isfinite(half.jd)) == 3
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    second = Instant()
    monkeypatch.setattr(module, "boundary_point", second)
    data = compute_phase_diagram(request, tmp_path)
    assert np.all(np.isfinite(data.jd))
    assert len(second.calls) == 7
    # The walk goes on from the last point of the killed run.
    angles = request.angles()
    assert second.calls[0] == ("rm", angles[3], angles[2])
    assert {path: path.stat().st_mtime_ns for path in before} == before
    third = Instant(most=0)
    monkeypatch.setattr(module, "boundary_point", third)
    assert compute_phase_diagram(request, tmp_path).identical(data)


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"kind": "rm"}', "null", "\x00\x01"])
def test_damaged_points_are_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    request, work = Request(3, 1e-3), Instant()
    monkeypatch.setattr(module, "boundary_point", work)
    whole = compute_phase_diagram(request, tmp_path)
    path = sorted(tmp_path.iterdir())[1]
    path.write_text(damage)
    work.calls.clear()
    assert finished(request, tmp_path) == 5
    assert compute_phase_diagram(request, tmp_path).identical(whole)
    assert len(work.calls) == 1
    assert json.loads(path.read_text())["key"] == request.key


@pytest.mark.parametrize(
    "change", [{"jd": "abc"}, {"theta": None}, {"qhat": ["x"]}, {"rate": True}, {"d": [1]}]
)
def test_points_of_wrong_kind_are_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, object]
) -> None:
    request, work = Request(3, 1e-3), Instant()
    monkeypatch.setattr(module, "boundary_point", work)
    whole = compute_phase_diagram(request, tmp_path)
    path = next(tmp_path.glob("rm-*.json"))
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert finished(request, tmp_path) == 5
    assert compute_phase_diagram(request, tmp_path).identical(whole)


def test_points_of_another_request_are_neither_taken_nor_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Instant()
    monkeypatch.setattr(module, "boundary_point", work)
    compute_phase_diagram(Request(3, 1e-2), tmp_path)
    assert len(work.calls) == 6
    kept = {path: path.read_bytes() for path in tmp_path.iterdir()}
    other = Request(3, 1e-3)
    assert other.key != Request(3, 1e-2).key
    assert finished(other, tmp_path) == 0
    whose = "6 finished points of layers = 2, points = 3, width = 0.01"
    with pytest.raises(InvalidInputError, match=f"^parts must be a folder without {whose}, got"):
        compute_phase_diagram(other, tmp_path)
    monkeypatch.setattr(module, "VERSION", module.VERSION + 1)
    with pytest.raises(InvalidInputError, match=f"{whose} by another version of rmtheory, got"):
        compute_phase_diagram(Request(3, 1e-2), tmp_path)
    monkeypatch.undo()
    (tmp_path / "request.json").write_text("{")
    with pytest.raises(InvalidInputError, match="6 finished points of another request, got"):
        compute_phase_diagram(other, tmp_path)
    assert {path: path.read_bytes() for path in kept} == {**kept, tmp_path / "request.json": b"{"}
    assert len(work.calls) == 6
    # A file under the wrong name is not taken either.
    mine = Request(3, 1e-2)
    point = load_point("rm", 0.0, mine, tmp_path)
    assert point is not None
    moved = tmp_path / f"rm-{0.5:.9f}.json"
    moved.write_text(json.dumps(asdict(point)))
    assert load_point("rm", 0.5, mine, tmp_path) is None


def test_a_request_that_finished_nothing_leaves_the_folder_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "boundary_point", Instant(most=0))
    with pytest.raises(KeyboardInterrupt):
        compute_phase_diagram(Request(5, 1e-2), tmp_path)
    monkeypatch.setattr(module, "boundary_point", Instant(most=2))
    with pytest.raises(KeyboardInterrupt):
        compute_phase_diagram(Request(3, 1e-2), tmp_path)
    monkeypatch.setattr(module, "boundary_point", Instant())
    with pytest.raises(InvalidInputError, match="2 finished points of layers = 2, points = 3,"):
        compute_phase_diagram(Request(5, 1e-2), tmp_path)


def _command(folder: Path, *more: str) -> int:
    return run(["phase-diagram", "--points", "5", "--out", str(folder / "pd.nc"), *more])


def test_the_command_goes_on_and_keeps_what_others_have_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target, parts = tmp_path / "pd.nc", tmp_path / "pd.nc.parts"
    monkeypatch.setattr(module, "boundary_point", Instant(most=3))
    assert _command(tmp_path) == 130
    told = capsys.readouterr().err
    assert told == (
        "rmtheory: 10 points to compute, about 86 s on a free machine\n"
        f"rmtheory: interrupted: 3 of 10 points are kept in {parts}; "
        "the same command resumes from there\n"
    )
    kept = {path: path.read_bytes() for path in parts.iterdir()}
    assert _command(tmp_path, "--width", "1e-3") == 2
    told = capsys.readouterr().err
    assert f"{parts} keeps 3 finished points of layers = 2, points = 5, width = 0.0001" in told
    assert told.count("\n") == 1
    assert {path: path.read_bytes() for path in parts.iterdir()} == kept
    work = Instant()
    monkeypatch.setattr(module, "boundary_point", work)
    assert _command(tmp_path) == 0
    captured = capsys.readouterr()
    assert captured.err == (
        f"rmtheory: 3 of 10 points are there already, in {parts}\n"
        "rmtheory: 7 points to compute, about 75 s on a free machine\n"
    )
    assert captured.out == f"5 points per boundary in {target}\n"
    assert len(work.calls) == 7
    assert [path.name for path in tmp_path.iterdir()] == ["pd.nc"]
    # The picture of what is there costs nothing.
    assert _command(tmp_path, "--plot", str(tmp_path / "pd.svg")) == 0
    captured = capsys.readouterr()
    assert "pd.nc holds this diagram already" in captured.err
    assert captured.out == f"5 points per boundary in {target} and {tmp_path / 'pd.svg'}\n"
    assert len(work.calls) == 7
    # Another one takes its place, which is said.
    assert _command(tmp_path, "--width", "1e-3") == 0
    assert "pd.nc holds something else, which is replaced once" in capsys.readouterr().err
    assert len(work.calls) == 17
    assert netcdf.load(target).attrs["parameters_hash"] == Request(5, 1e-3).key


def test_the_tutorial_draws_the_diagram_of_three_layers_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command and the Python lines; points take no time here, tests/benchmarks has them."""
    page = Path(__file__).resolve().parents[2] / "docs" / "couplings-to-phase-diagram.md"
    section = page.read_text("utf-8").partition("## 6. Three layers")[2]
    (command,) = re.findall(r"^rmtheory (phase-diagram .*)$", section, re.MULTILINE)
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    work = Instant()
    monkeypatch.setattr(module, "boundary_point", work)
    assert run(shlex.split(command)) == 0
    estimate = re.search(r"10 points to compute, about (\d+) (s|min)", capsys.readouterr().err)
    assert estimate is not None
    assert len(work.calls) == 10
    before = (tmp_path / "pd3.png").read_bytes()
    assert before.startswith(b"\x89PNG")
    (tmp_path / "pd3.png").unlink()
    exec(code, {})
    assert len(work.calls) == 10  # the file has the diagram
    assert "lam_error" in capsys.readouterr().out
    assert (tmp_path / "pd3.png").read_bytes().startswith(b"\x89PNG")


def test_targets_in_the_way_of_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = str(tmp_path / "a.png")
    for command in (["phase-diagram"], ["curve", "--jd", ".1"]):
        assert run([*command, "--out", same, "--plot", same]) == 2
        assert "plot must be another file than that of --out" in capsys.readouterr().err
    (tmp_path / "pd.nc.parts").write_text("a file of mine")
    assert _command(tmp_path) == 2
    told = capsys.readouterr().err
    assert "out must be in a folder that can be written (a file has its name)" in told
    assert [path.name for path in tmp_path.iterdir()] == ["pd.nc.parts"]


def test_one_layer_has_no_phase_diagram(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _command(tmp_path, "--layers", "1") == 2
    assert "layers must be an integer >= 2 or inf for the phase diagram, got 1" in (
        capsys.readouterr().err
    )
    assert run(["phase-diagram", "--help"]) == 0
    assert "2, 3, ... or inf" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["annealed", "curve", "phase-diagram"])
def test_links_in_a_circle_are_refused_at_once(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "one.nc", tmp_path / "two.nc"
    one.symlink_to(two)
    two.symlink_to(one)
    jd = [] if command == "phase-diagram" else ["--jd", ".1"]
    assert run([command, *jd, "--out", str(one)]) == 2
    allowed = "a file that can be written, not a link to itself"
    assert capsys.readouterr().err == f"rmtheory: error: out must be {allowed}, got {one}\n"
    if command != "annealed":
        target = str(tmp_path / "new.nc")
        assert run([command, *jd, "--out", target, "--plot", str(one)]) == 2
        assert f"plot must be {allowed}, got {one}" in capsys.readouterr().err


@pytest.mark.parametrize("chain", [["--jd", "0"], ["--layers", "2", "--jd", "0", "--lam", "0"]])
def test_a_curve_without_moves_has_no_limit_of_small_d(
    chain: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "x.nc"
    assert (
        run(
            [
                "curve",
                *chain,
                "--points",
                "2",
                "--d-min",
                ".1",
                "--d-max",
                ".2",
                "--out",
                str(target),
            ]
        )
        == 0
    )
    data = netcdf.load(target)
    assert np.isfinite(data["y_star"]).all()
    assert np.isnan(data["gas_internal"]).all()


def test_the_example_of_the_front_door(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its numbers are those of test_local_entropy_thresholds; here its call, in no time."""
    text = rt.phase_diagram.__doc__
    assert text is not None
    assert "0.07 0.45\n" in text
    assert f"{0.073107699:.2f} {0.452424:.2f}" == "0.07 0.45"
    (code,) = re.findall(r">>> diagram = (.*?)  #", text)
    work = Instant()
    monkeypatch.setattr(module, "boundary_point", work)
    diagram = eval(code, {"rt": rt})
    assert len(work.calls) == 6
    ends = diagram.sel(kind="rm")
    assert (float(ends.lam[0]), float(ends.jd[-1])) == pytest.approx((0.0, 0.0), abs=1e-12)
