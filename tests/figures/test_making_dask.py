"""``python -m figures --dask`` at a real scheduler, with a worker that is killed in mid-run."""

import signal
from pathlib import Path
from typing import Any

import pytest

from figures.cli import run
from figures.engine import figure
from figures.engine.figure import Progress
from rmtheory.runtime import netcdf
from tests.gated_figures import gated_figures
from tests.sim.test_sweep import evaluated
from tests.sim.test_sweep_dask import _scheduler, _tasks, _worker
from tests.waiting import until

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def test_a_killed_worker_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "go").touch()
    monkeypatch.setattr("figures.paper.registry.FIGURES", gated_figures(tmp_path))
    log, killed = tmp_path / "log", []
    with (
        _scheduler(tmp_path) as (address, _),
        _worker(address, tmp_path, "one") as one,
        _worker(address, tmp_path, "two"),
    ):
        follow = figure._follow

        def kill_one(progress: Progress, before: int, total: int, state: Any) -> None:
            follow(progress, before, total, state)
            if state.done == 6 and not killed:
                # Both workers now wait at the gate, and the scheduler has let go of what was
                # fetched: it would compute again what the dead one still holds.
                until(lambda: sum(evaluated(log).values()) >= 8 and _tasks(address) == 4)
                one.send_signal(signal.SIGKILL)
                one.wait()
                killed.append(one.pid)
                (tmp_path / "gate").touch()

        monkeypatch.setattr(figure, "_follow", kill_one)
        arguments = ["all", "--scale", "tiny", "--dask", address, "--out", str(tmp_path / "out")]
        assert run(arguments) == 0
    captured = capsys.readouterr()
    assert killed
    assert "error" not in captured.err
    assert [line.split(",")[0] for line in captured.out.splitlines()] == [
        f"{name}: computed data" for name in ("small", "gated", "demo")
    ]
    counts = evaluated(log)
    assert (len(counts), sum(counts.values())) == (10, 11)  # one point was begun twice
    values = netcdf.load(tmp_path / "out" / "demo.nc")["total"]
    assert values.sel(y=0.5).values.tolist() == [0.5, 10.5, 20.5, 30.5, 40.5]
    assert not (tmp_path / "out" / ".parts").exists()


def test_an_address_without_scheduler_is_told_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for wrong in ("nonsense://x", "tcp://127.0.0.1"):
        out = tmp_path / "out"
        assert run(["models", "--scale", "tiny", "--dask", wrong, "--out", str(out)]) == 2
        captured = capsys.readouterr()
        sentence = "dask must be the address of a Dask scheduler that answers within 10 s, got "
        assert captured.err == f"figures: error: {sentence}{wrong}\n"
        assert not out.exists()
