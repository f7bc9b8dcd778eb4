"""Sweeps: points depend on themselves alone, nothing finished is lost, whatever ends a run."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

from rmsim.cli.options import FailedPointsError, choose_backend, run_from_command
from rmsim.sweep import (
    Dask,
    Grid,
    Local,
    Serial,
    Sweep,
    collect,
    run_sweep,
)
from rmsim.sweep.definition import BadValueError, decode, encode
from rmsim.sweep.directory import Directory
from rmsim.sweep.running import environments_of, placed
from rmtheory import InvalidInputError
from rmtheory.base.errors import RMError, StorageError
from rmtheory.runtime import netcdf
from rmtheory.runtime.run_store import digest
from tests.sweep_points import sweep
from tests.waiting import alive, until

ROOT = Path(__file__).resolve().parents[2]


def points(directory: Path) -> dict[str, Any]:
    """Parameters, seeds and values of the files, without times and hosts."""
    result = {}
    for file in (directory / "points").iterdir():
        content = json.loads(file.read_text())["content"]
        result[file.name] = content["parameters"], content["seed"], content["values"]
    return result


def evaluated(log: Path) -> Counter[tuple[str, str]]:
    lines = log.read_text().splitlines() if log.exists() else []
    return Counter((line.split()[0], line.split()[1]) for line in lines)


def test_result_depends_neither_on_order_nor_on_workers_nor_on_other_points(tmp_path: Path) -> None:
    run_sweep(sweep(), tmp_path / "serial", Serial())
    run_sweep(sweep(), tmp_path / "processes", Local(2))
    for xs in ((2,), (1,), (0,)):
        run_sweep(sweep(xs), tmp_path / "pieces", Serial())
    assert len(points(tmp_path / "serial")) == 6
    assert points(tmp_path / "processes") == points(tmp_path / "serial")
    assert points(tmp_path / "pieces") == points(tmp_path / "serial")
    seeds = {seed for _, seed, _ in points(tmp_path / "serial").values()}
    assert len(seeds) == 6


def test_longest_first_and_paired_seeds(tmp_path: Path) -> None:
    grid = Grid.product({"x": range(4), "y": (0.5, 1.5)}, {"log": str(tmp_path / "log")})
    paired = Sweep(
        "test",
        1,
        "tests.sweep_points:measure",
        grid,
        paired=("y",),
        cost=lambda point: 2 * point["x"] + point["y"],
    )
    shares: list[float] = []
    run_sweep(paired, tmp_path / "out", Serial(), progress=lambda p: shares.append(p.share))
    order = [line.split()[:2] for line in (tmp_path / "log").read_text().splitlines()]
    assert [x for x, _ in order] == ["3", "3", "2", "2", "1", "1", "0", "0"]
    assert shares[0] == 0
    assert shares[1] == pytest.approx(7.5 / 32)
    assert shares[-1] == pytest.approx(1)
    data = collect(tmp_path / "out")
    assert (data.point_seed.sel(y=0.5) == data.point_seed.sel(y=1.5)).all()
    assert len(np.unique(data.point_seed)) == 4


def test_estimates_before_the_start_leave_out_what_processes_took_to_start(tmp_path: Path) -> None:
    grid = Grid.product({"x": range(20), "y": (0.5, 1.5)})
    known = Sweep("test", 1, "tests.sweep_points:measure", grid, cost=lambda _: 1.0, unit=1.0)
    notes: list[str] = []
    run_sweep(known, tmp_path / "out", Serial(), note=notes.append)
    assert notes == ["40 points to compute, about 40 s on a free machine"]
    # A third is stored, each in 5 s but for the first of its process, in 100.
    files = sorted((tmp_path / "out" / "points").iterdir())
    for file in files[13:]:
        file.unlink()
    for file in files[:13]:
        stored = json.loads(file.read_text())
        stored["content"]["provenance"]["cpu_time"] = 100.0 if file == files[0] else 5.0
        file.write_text(json.dumps(stored | {"sha256": digest(stored["content"])}))
    run_sweep(known, tmp_path / "out", Serial(), note=notes.append)
    assert notes[1:] == ["27 points to compute, about 2 min on a free machine"]
    run_sweep(known, tmp_path / "out", Serial(), note=notes.append)
    assert len(notes) == 2  # nothing to compute, nothing to estimate


def test_estimates_of_a_small_sweep_contain_the_start_of_its_processes(tmp_path: Path) -> None:
    grid = Grid.product({"x": range(2), "y": (0.5,)})
    small = Sweep("test", 1, "tests.sweep_points:measure", grid, cost=lambda _: 0.01, unit=1.0)
    notes: list[str] = []
    run_sweep(small, tmp_path / "here", Serial(), note=notes.append)
    assert not notes
    run_sweep(small, tmp_path / "processes", Local(2), note=notes.append)
    assert notes == ["2 points to compute, about 3 s on a free machine"]


def test_extension_computes_only_what_is_new(tmp_path: Path) -> None:
    log = tmp_path / "log"
    run_sweep(sweep((0, 2), log=str(log)), tmp_path / "out", Serial())
    report = run_sweep(sweep((0, 1, 2.0), log=str(log)), tmp_path / "out", Serial())
    assert (report.asked, report.kept, report.computed) == (6, 4, 2)
    assert set(evaluated(log).values()) == {1}
    assert collect(tmp_path / "out").sizes == {"x": 3, "y": 2, "draws_0": 3}
    again = run_sweep(sweep(log=str(log)), tmp_path / "out", Serial())
    assert (again.kept, again.computed, again.complete) == (6, 0, True)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"seed": 6}, "seed = 5, not 6"),
        ({"note": "b"}, "note = a, not b"),
        ({"more": 1}, "more = nothing, not 1"),
    ],
)
def test_directory_of_another_sweep_is_refused(
    other: dict[str, Any], told: str, tmp_path: Path
) -> None:
    run_sweep(sweep(note="a"), tmp_path, Serial())
    before = points(tmp_path)
    for damage in (False, True):
        if damage:
            (tmp_path / "sweep.json").write_text("")
        with pytest.raises(InvalidInputError, match="holds the sweep 'test'") as caught:
            run_sweep(sweep(**{"note": "a", **other}), tmp_path, Serial())
        assert told in str(caught.value)
        assert str(tmp_path) in str(caught.value)
        assert points(tmp_path) == before
    assert run_sweep(sweep(note="a"), tmp_path, Serial()).kept == 6
    assert collect(tmp_path).attrs["complete"] == "yes"


def _truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-40])


def _empty(file: Path) -> None:
    file.write_bytes(b"")


def _alter(file: Path) -> None:
    file.write_text(file.read_text().replace('"total": ', '"total": 1'))


def _swap(file: Path) -> None:
    file.write_bytes(next(f for f in file.parent.iterdir() if f != file).read_bytes())


@pytest.mark.parametrize("damage", [_truncate, _empty, _alter, _swap])
def test_damaged_file_is_named_and_computed_again(
    damage: Callable[[Path], None], tmp_path: Path
) -> None:
    run_sweep(sweep(), tmp_path, Serial())
    good = points(tmp_path)
    victim = sorted((tmp_path / "points").iterdir())[2]
    damage(victim)
    seen = collect(tmp_path)
    assert (seen.attrs["complete"], seen.attrs["damaged"]) == ("no", victim.name)
    assert int(seen.finished.sum()) == 5
    told: list[str] = []
    report = run_sweep(sweep(), tmp_path, Serial(), note=told.append)
    assert (report.kept, report.computed) == (5, 1)
    assert len(told) == len(report.damaged) == 1
    assert str(victim) in told[0]
    assert points(tmp_path) == good


def test_damaged_request_is_named_and_made_up_from_the_points(tmp_path: Path) -> None:
    run_sweep(sweep((0, 1)), tmp_path, Serial())
    run_sweep(sweep((2,)), tmp_path, Serial())
    whole = collect(tmp_path)
    victim = sorted((tmp_path / "asked").iterdir())[0]
    _truncate(victim)
    seen = collect(tmp_path)
    assert (seen.attrs["complete"], seen.attrs["damaged"]) == ("no", f"asked/{victim.name}")
    xr.testing.assert_identical(seen.drop_attrs(), whole.drop_attrs())
    for xs in ((0, 1), (2,)):
        run_sweep(sweep(xs), tmp_path, Serial())
    xr.testing.assert_identical(collect(tmp_path), whole)


def test_folder_of_a_training_run_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(InvalidInputError, match=r"which holds a training run \(run\.json\)"):
        run_sweep(sweep(), tmp_path, Serial())
    assert [file.name for file in tmp_path.iterdir()] == ["run.json"]


def test_full_disk_says_what_is_kept_and_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: Path, text: str, argument: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(file))

    monkeypatch.setattr("rmtheory.runtime.run_store.write_text", full)
    words = r"cannot write .*sweep\.json: No space .*; 0 of 6 points are done.*: make room and run"
    with pytest.raises(StorageError, match=words):
        run_from_command(sweep(), tmp_path / "out", "1")


def test_files_of_killed_runs_go_and_those_of_runs_at_work_stay(tmp_path: Path) -> None:
    run_sweep(sweep(), tmp_path, Serial())
    point = next((tmp_path / "points").iterdir()).name
    names = (".sweep.json.abcd_123.json", f"points/.{point}.abcd_123.json", ".all.nc.0a1b2c3d.nc")
    files = [tmp_path / name for name in names]
    mine = tmp_path / ".notes.md.abcd_123.md"
    for file in (*files, mine):
        file.write_text("{")
    with Directory(tmp_path).at_work():  # the first finds nobody else
        assert not any(file.exists() for file in files)
        for file in files:
            file.write_text("{")
        assert run_sweep(sweep(), tmp_path, Serial()).kept == 6
        assert all(file.exists() for file in files)
    assert run_sweep(sweep(), tmp_path, Serial()).kept == 6
    assert not any(file.exists() for file in files)
    assert mine.exists()
    assert collect(tmp_path).attrs["complete"] == "yes"


@pytest.mark.parametrize(
    ("trouble", "kind"), [("raise", "ArithmeticError"), ("die", "ProcessDiedError")]
)
def test_failing_points_are_told_and_tried_again(
    trouble: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    switch, log, out = tmp_path / "switch", tmp_path / "log", tmp_path / "out"
    switch.write_text(trouble)
    failing = sweep(log=str(log), trouble=str(switch))
    with pytest.raises(FailedPointsError, match="2 of 6 points failed"):
        run_from_command(failing, out, "2")
    told = capsys.readouterr().err
    assert told.count(f"failed: {kind}: ") == 2
    assert "x=1, y=0.5" in told
    assert len(list((out / "failed").iterdir())) == 2
    data = collect(out)
    assert data.attrs["complete"] == "no"
    assert np.isnan(data.total.sel(x=1)).all()
    assert not data.finished.sel(x=1).any()
    switch.write_text("")
    report = run_from_command(failing, out, "2")
    assert (report.kept, report.computed) == (4, 2)
    assert not list((out / "failed").iterdir())
    assert collect(out).attrs["complete"] == "yes"


def test_collection_has_the_axes_the_values_and_their_provenance(tmp_path: Path) -> None:
    run_sweep(sweep(note="a"), tmp_path / "out", Serial())
    data = collect(tmp_path / "out", dims={"draws": ("draw",)})
    np.testing.assert_array_equal(data.total, [[0.5, 1.5], [10.5, 11.5], [20.5, 21.5]])
    assert data.draws.dims == ("x", "y", "draw")
    assert data.draws.dtype == np.float32
    np.testing.assert_allclose(data.draws.mean("draw"), data["mean"], rtol=1e-6)
    assert data.label.values[2, 0] == "x2"
    assert np.isnan(data.nothing).all()
    assert data.finished.all()
    assert "device" not in data
    attributes = data.attrs
    assert json.loads(attributes["parameters"]) == {"note": "a"}
    assert json.loads(attributes["versions"])["numpy"] == np.__version__
    assert {"torch", "numba", "dask"} <= json.loads(attributes["versions"]).keys()
    assert (attributes["seed"], attributes["device"]) == ("5", "cpu")
    assert (attributes["complete"], attributes["points_finished"]) == ("yes", "6")
    assert attributes["host"]
    assert attributes["git_commit"]
    assert float(attributes["wall_time_seconds"]) == pytest.approx(
        float(data.wall_time.sum()), abs=1e-3
    )
    assert float(attributes["cpu_time_seconds"]) >= 0
    netcdf.save(data, tmp_path / "all.nc")
    xr.testing.assert_identical(netcdf.load(tmp_path / "all.nc").drop_attrs(), data.drop_attrs())
    part = collect(tmp_path / "out", sweep((1,), note="a"))
    assert part.sizes["x"] == 1
    with pytest.raises(InvalidInputError, match="which holds the sweep 'test'"):
        collect(tmp_path / "out", sweep(note="b"))
    with pytest.raises(InvalidInputError, match=r"a results directory \(with sweep.json\)"):
        collect(tmp_path)


def test_arrays_of_different_length_and_grids_with_holes(tmp_path: Path) -> None:
    grid = Grid(("x", "y"), ((1, "a"), (3, "b")))
    run_sweep(Sweep("r", 1, "tests.sweep_points:ragged", grid), tmp_path, Serial())
    data = collect(tmp_path)
    np.testing.assert_array_equal(data.counts.sel(x=1, y="a"), [0, np.nan, np.nan])
    np.testing.assert_array_equal(data.counts.sel(x=3, y="b"), [0, 1, 2])
    assert data.counts_shape.sel(x=1, y="a") == 1
    assert data.attrs["complete"] == "yes"
    np.testing.assert_array_equal(data.asked, [[True, False], [False, True]])


def test_values_survive_to_the_last_bit() -> None:
    values = {
        "tiny": 5e-324,
        "count": 2**62 + 1,
        "truth": True,
        "infinite": -np.inf,
        "words": ["ä", "b"],
        "big": np.arange(6, dtype=">i2").reshape(2, 3),
        "odd": np.array([np.nan, -0.0, 1 / 3], dtype=np.float32),
    }
    back = decode(json.loads(json.dumps(encode(values), allow_nan=False)))
    for name, value in values.items():
        np.testing.assert_array_equal(back[name], value)
        assert back[name].dtype.kind == np.asarray(value).dtype.kind
    assert np.signbit(back["odd"][1])
    for bad in (None, object(), [[1], [1, 2]], 1j):
        with pytest.raises(BadValueError, match="bad"):
            encode({"bad": bad})
    with pytest.raises(BadValueError, match="the name is taken"):
        encode({"jd": 1}, taken=("jd",))


@pytest.mark.parametrize(
    ("device", "visible", "gpus"),
    [
        ("cuda", "", {"0", "1", "2"}),
        ("auto", "4,GPU-a7,6", {"4", "GPU-a7", "6"}),
        ("cuda:1", "", {""}),
        ("cpu", "", {""}),
    ],
)
def test_gpus_are_dealt_out_to_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, visible: str, gpus: set[str]
) -> None:
    """One process for each GPU, which sees that one alone, however many cores there are."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    here = tmp_path / "here"
    here.mkdir()
    grid = Grid.product({"x": range(3)}, {"folder": str(here), "processes": len(gpus)})
    wanted = Sweep("place", 1, "tests.sweep_points:place", grid)
    run_sweep(wanted, tmp_path / "out", Local(1 if device == "cpu" else None, device))
    result = collect(tmp_path / "out", wanted)
    assert {*result["gpu"].values.tolist()} == gpus
    assert {*result["where"].values.tolist()} == {device}
    assert len({*result["process"].values.tolist()}) == len(gpus)
    assert result.attrs["device"] == device


def test_which_points_use_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    # A sweep may name the device itself, as those of the commands do.
    wanted = Sweep("place", 1, "tests.sweep_points:place", Grid.product({"device": ("auto",)}))
    assert [*environments_of(wanted.tasks())] == [
        {"CUDA_VISIBLE_DEVICES": "0"},
        {"CUDA_VISIBLE_DEVICES": "1"},
    ]
    # A function without an argument for it computes on the CPU, whatever is asked for.
    assert environments_of(placed(sweep().tasks(), "cuda")) == []
    assert run_sweep(sweep(), tmp_path, Serial("cuda")).complete


def test_bad_input_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="axes must be"):
        Grid.product({"x": (1,)}, {"x": 2})
    with pytest.raises(InvalidInputError, match="x must be a finite number"):
        Grid.product({"x": (np.nan,)})
    with pytest.raises(InvalidInputError, match="module:function"):
        Sweep("s", 1, "rmsim.sweep:nothing", Grid.product({"x": (1,)}))
    with pytest.raises(InvalidInputError, match="paired must be among x"):
        Sweep("s", 1, "tests.sweep_points:measure", Grid.product({"x": (1,)}), paired=("z",))
    with pytest.raises(InvalidInputError, match="jobs must be left out with --dask"):
        choose_backend("2", "tcp://localhost:1")
    with pytest.raises(InvalidInputError, match="jobs must be an integer >= 1"):
        choose_backend("0")
    assert choose_backend(None, "tcp://localhost:1") == Dask("tcp://localhost:1")
    with pytest.raises(InvalidInputError, match="out must be given"):
        run_from_command(sweep(), None)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInputError, match="out must be a folder that can be written"):
        run_sweep(sweep(), tmp_path / "file", Serial())
    run_sweep(sweep((0,)), tmp_path / "out", Serial())
    mixed = Sweep("test", 1, "tests.sweep_points:ragged", sweep((1,)).grid, seed=5)
    run_sweep(mixed, tmp_path / "out", Serial())
    with pytest.raises(RMError, match="only some points have a value for"):
        collect(tmp_path / "out")


@contextmanager
def running(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Run ten points in another process; those with x >= 3 wait for the file ``gate``."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.sweep_points", str(folder), "5", *options],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_goes_on_where_it_was(number: signal.Signals, tmp_path: Path) -> None:
    log, files = tmp_path / "log", tmp_path / "out" / "points"
    with running(tmp_path, "jobs=2") as process:
        until(lambda: sum(evaluated(log).values()) == 8 and len(list(files.glob("[!.]*"))) == 6)
        children = {int(line.split()[2]) for line in log.read_text().splitlines()}
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does
        else:
            process.send_signal(number)
        _, told = process.communicate(timeout=300)
        until(lambda: not any(alive(child) for child in children))
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert "interrupted: 6 of 10 points are kept" in told
        assert "Traceback" not in told
    interrupted = points(tmp_path / "out")
    assert len(interrupted) == 6
    (tmp_path / "gate").touch()
    with running(tmp_path, "jobs=2") as process:
        _, told = process.communicate(timeout=300)
        assert process.returncode == 0
    assert "10 points in" in told
    assert "6 kept, 4 computed" in told
    # The two in flight were begun twice, the rest once.
    assert sorted(evaluated(log).values()) == [1] * 8 + [2] * 2
    finished = points(tmp_path / "out")
    assert interrupted.items() <= finished.items()
    fixed = {"log": str(log), "gate": str(tmp_path / "gate")}
    run_sweep(sweep(range(5), **fixed), tmp_path / "again", Serial())
    assert points(tmp_path / "again") == finished


def test_two_runs_in_one_directory_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "gate").touch()
    with running(tmp_path, "jobs=1") as one, running(tmp_path, "jobs=1") as two:
        for process in (one, two):
            process.communicate(timeout=300)
            assert process.returncode == 0
    data = collect(tmp_path / "out")
    assert data.attrs["complete"] == "yes"
    np.testing.assert_array_equal(data.total, [[10 * x + 0.5, 10 * x + 1.5] for x in range(5)])
