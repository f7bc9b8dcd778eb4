"""``rmsim thresholds``: its JSON and table, resuming, one sentence for bad input."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
import typer

from rmsim.cli import options as ranges
from rmsim.cli import run
from rmsim.cli.options import SeedOption
from rmsim.studies.convergence import sweep_of
from rmsim.studies.threshold_design import Design
from rmsim.sweep import Serial, run_sweep
from rmtheory.runtime import netcdf
from rmtheory.runtime.command import bundled, run_app

COMMAND = ["thresholds", "--n", "24,40", "--jd", "0:1:5", "--samples", "10", "--batch", "5"]
COMMAND += ["--max-sweeps", "100", "--device", "cpu", "--jobs", "1"]


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert run([*arguments, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert isinstance(result, dict)
    return result


@pytest.mark.usefixtures("points_here")
def test_cap_in_force_is_the_one_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A schedule of reinforcement ends by itself, and is not cut before unless one asks for it."""
    for dr, most, cap in ((0.1, None, 50), (0.001, None, 2995), (0.001, 7, 7), (0.1, 1000, 50)):
        design = Design.of((10,), "jd", (0.5, 1.0), 2, algorithm="rbp", dr=dr, max_sweeps=most)
        (both,) = {point["max_sweeps"] for point in design.grid().points()}
        assert both == cap
    command = ["thresholds", "--algorithm", "rbp", "--n", "10", "--jd", ".5,1", "--samples", "2"]
    command += ["--dr", ".001", "--max-sweeps", "7", "--out", str(tmp_path), "--jobs", "1"]
    parameters = answer(capsys, *command)["parameters"]
    assert isinstance(parameters, dict)
    assert (parameters["dr"], parameters["max_sweeps"]) == (0.001, 7)


def test_command_resumes_and_writes_its_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = answer(capsys, *COMMAND, "--out", str(tmp_path))
    assert (first["points_kept"], first["points_computed"]) == (0, 20)
    points = {path: path.stat().st_mtime_ns for path in (tmp_path / "points").iterdir()}
    again = answer(capsys, *COMMAND, "--out", str(tmp_path))
    assert (again["points_kept"], again["points_computed"]) == (20, 0)
    assert {path: path.stat().st_mtime_ns for path in points} == points
    for name in ("thresholds", "points", "trends", "limit", "parameters", "seed", "device"):
        assert again[name] == first[name]
    assert not (tmp_path / "thresholds.png").exists()

    assert run([*COMMAND, "--out", str(tmp_path), "--plot"]) == 0
    table = capsys.readouterr().out
    assert "50 % point in J_D" in table
    assert "±" in table
    assert (tmp_path / "thresholds.png").read_bytes()[:4] == b"\x89PNG"
    data = netcdf.load(tmp_path / "thresholds.nc")
    assert data.attrs["complete"] == "yes"
    assert json.loads(data.attrs["versions"])["torch"]
    rows = first["thresholds"]
    assert isinstance(rows, list)
    for row in rows:
        assert row["status"] == data["threshold_status"].sel(n=row["n"]).item()
        assert row["threshold"] == float(data["threshold"].sel(n=row["n"]))
        assert row["threshold_error"] > 0
        assert row["bound"] == pytest.approx(np.sqrt(2 * np.log(row["n"])))
    listed = first["points"]
    assert isinstance(listed, list)
    assert [(point["n"], point["jd"]) for point in listed][:2] == [(24, 0.0), (24, 0.25)]
    assert sum(listed[0]["periods"].values()) == listed[0]["cycles"]


@pytest.mark.usefixtures("points_here")
def test_command_over_lambda(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["thresholds", "--n", "30", "--layers", "2", "--jd", "0", "--lam", "0,1,2"]
    arguments += ["--p", ".5", "--samples", "8", "--max-sweeps", "200", "--jobs", "1"]
    result = answer(capsys, *arguments, "--out", str(tmp_path))
    assert result["control"] == "lam"
    rows = result["thresholds"]
    assert isinstance(rows, list)
    assert rows[0]["bound"] is None
    assert rows[0]["status"].startswith("found")
    assert 0 < rows[0]["threshold"] < 2


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--jd", ".4:1"], "jd must be numbers a,b,c or a range start:stop:count, got .4:1"),
        (["--jd", "1:.4:3"], "start below stop"),
        (["--jd", ".4:1:1"], "count from 2 to"),
        (["--jd", "x"], "jd must be numbers"),
        (["--n", "0"], "n must be integers >= 2"),
        (["--n", "10:15:3"], "n must be integers >= 2"),
        (["--layers", "2"], "lam must be given for two layers or more"),
        (["--layers", "2", "--lam", ".1:.5:3"], "lam must be one value if jd has several"),
        (["--jd", ".1", "--lam", ".1:.5:3"], "lam must be absent for one layer"),
        (["--lam-left", ".1"], "lam_left must be absent for one layer"),
        (["--layers", "inf", "--lam", "1"], "layers must be finite"),
        (["--algorithm", "magic"], "algorithm must be one of dynamics"),
        (["--dr", ".1"], "dr must be left out: only rbp has it, not dynamics, got .1"),
        (["--algorithm", "rbp", "--eta", ".1"], "eta must be left out: only likelihood has it"),
        (["--algorithm", "likelihood", "--r0", "0"], "r0 must be left out: only rbp has it"),
        (["--p", "0"], "p must be"),
        (["--rho", "1.5"], "rho must be"),
        (["--samples", "0"], "samples must be"),
        (["--update", "random"], "update must be"),
        (["--device", "tpu"], "device must be"),
        (["--dask", "tcp://127.0.0.1:1"], "jobs must be left out with --dask"),
        (["--seed", "9"], "which holds"),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(
    more: list[str], words: str, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*COMMAND, "--out", str(finished), *more]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert words in captured.err


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results directory of another seed than 9."""
    folder = tmp_path_factory.mktemp("finished")
    run_sweep(sweep_of(Design.of((10,), "jd", (1.0,), samples=1, device="cpu")), folder, Serial())
    return folder


@pytest.mark.usefixtures("points_here")
def test_the_half_point_of_theory_stands_beside_the_measured_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["thresholds", "--n", "20,150", "--jd", ".3,.44,.58", "--samples", "20"]
    command += ["--out", str(tmp_path), "--jobs", "1"]
    small, large = answer(capsys, *command)["thresholds"]  # type: ignore[misc]
    # 20 neurons are too few for the law of chance stops.
    assert small["theory_threshold"] is None
    assert small["threshold_z_score"] is None
    assert 0.40 < large["theory_threshold"] < 0.47
    assert abs(large["threshold_z_score"]) < 4
    assert run(command) == 0
    assert "theory" in capsys.readouterr().out
    # Masked networks have the same limit, but not this law.
    masked = answer(capsys, *command[:-4], "--p", ".8", *command[-4:])["thresholds"]
    assert all(row["theory_threshold"] is None for row in masked)  # type: ignore[attr-defined]


def test_out_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(COMMAND) == 2
    assert "out must be given" in capsys.readouterr().err


def test_ranges_are_exact() -> None:
    assert ranges.numbers("jd", ".4:1.0:13") == tuple(round(0.4 + 0.05 * k, 2) for k in range(13))
    assert ranges.integers("n", "500,200,200", 2) == (200, 500)


@dataclass(frozen=True)
class Bundle:
    seed: SeedOption = "0"
    loud: Annotated[bool, typer.Option("--loud")] = False


def test_options_that_commands_share_arrive_as_one_argument() -> None:
    seen: list[object] = []
    app = typer.Typer()

    @app.command()
    @bundled
    def command(n: Annotated[str, typer.Option("--n")] = "3", *, shared: Bundle) -> None:
        seen.append((n, shared))

    assert run_app(app, "x", ["--n", "5", "--seed", "7", "--loud"]) == 0
    assert run_app(app, "x", []) == 0
    assert run_app(app, "x", ["--shared", "1"]) == 2  # the bundle itself is no option
    assert seen == [("5", Bundle("7", True)), ("3", Bundle())]
