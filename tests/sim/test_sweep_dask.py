"""A real scheduler and workers on loopback: what is lost with them, and what is not."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from rmsim.cli.options import run_from_command
from rmsim.sweep import Dask, Serial, SweepProgress, run_sweep
from rmsim.sweep.running import _compare_versions, environment
from rmtheory import InvalidInputError
from tests.sim.test_sweep import ROOT, evaluated, points, running
from tests.sweep_points import sweep
from tests.waiting import until

distributed = pytest.importorskip("distributed", reason="the extra [cluster] is not installed")

# Sockets that distributed leaves to the garbage collector when the other side dies under it.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@contextmanager
def _process(log: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a dask command in a process of its own, its output in `log`."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli." + words[0], *words[1:]],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            yield process
        finally:
            process.terminate()  # a nanny takes its worker along
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def _scheduler(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A scheduler at a port of its own choice: one that we chose might be taken meanwhile."""
    told = folder / "scheduler.json"
    told.unlink(missing_ok=True)
    options = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show")
    where = ("--scheduler-file", str(told))
    with _process(folder / "scheduler.log", "dask_scheduler", *options, *where) as process:
        until(lambda: _address(told) != "" or process.poll() is not None)
        assert process.poll() is None, (folder / "scheduler.log").read_text()
        yield _address(told), process


def _address(told: Path) -> str:
    """The address in the scheduler's file, empty while that is not there or not whole."""
    with suppress(FileNotFoundError, ValueError):
        return str(json.loads(told.read_text())["address"])
    return ""


@contextmanager
def _worker(
    address: str, folder: Path, name: str, nanny: str = "--no-nanny"
) -> Iterator[subprocess.Popen[bytes]]:
    """A worker; without nanny it stays dead when killed, a nanny starts it again."""
    space = folder / f"space-{name}"
    options = ("--nthreads", "1", nanny, "--no-dashboard", "--host", "127.0.0.1")
    where = ("--local-directory", str(space), "--name", name)
    with _process(folder / f"{name}.log", "dask_worker", address, *options, *where) as process:
        yield process


def _tasks(address: str) -> int:
    """How many points the scheduler still keeps, running or finished."""
    with distributed.Client(address, set_as_default=False) as client:
        return int(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))


def _sweep(folder: Path) -> Any:
    return sweep(range(5), log=str(folder / "log"), gate=str(folder / "gate"))


def _reference(folder: Path) -> dict[str, Any]:
    (folder / "gate").touch()
    run_sweep(_sweep(folder), folder / "serial", Serial())
    return points(folder / "serial")


def test_killing_a_worker_in_mid_run_loses_nothing(tmp_path: Path) -> None:
    log, killed = tmp_path / "log", []
    with (
        _scheduler(tmp_path) as (address, _),
        _worker(address, tmp_path, "one") as one,
        _worker(address, tmp_path, "two") as two,
    ):

        def kill_one(progress: SweepProgress) -> None:
            if progress.done == 6 and not killed:
                # Both workers now wait at the gate, in the middle of a point.
                until(lambda: sum(evaluated(log).values()) >= 8 and _tasks(address) == 4)
                pids = {int(line.split()[2]) for line in log.read_text().splitlines()}
                assert {one.pid, two.pid} == pids
                one.send_signal(signal.SIGKILL)
                one.wait()
                killed.append(one.pid)
                (tmp_path / "gate").touch()

        report = run_sweep(_sweep(tmp_path), tmp_path / "out", Dask(address), progress=kill_one)
    assert killed
    assert (report.asked, report.computed, report.failures) == (10, 10, ())
    counts = evaluated(log)
    assert sum(counts.values()) == 11  # the point in flight on the dead worker, begun twice
    assert len(counts) == 10
    assert points(tmp_path / "out") == _reference(tmp_path)


def test_loss_of_the_scheduler_is_told_and_the_finished_points_stay(tmp_path: Path) -> None:
    log, files = tmp_path / "log", tmp_path / "out" / "points"
    with (
        _scheduler(tmp_path) as (address, scheduler),
        _worker(address, tmp_path, "one"),
        running(tmp_path, f"dask={address}") as client,
    ):
        until(lambda: sum(evaluated(log).values()) >= 7 and len(list(files.glob("[!.]*"))) == 6)
        scheduler.kill()
        _, told = client.communicate(timeout=300)
        (tmp_path / "gate").touch()  # lets the worker go
    assert client.returncode == 1
    assert told.splitlines()[-1].startswith(
        f"rmsim: error: the scheduler at {address} was lost; the finished points are kept"
    )
    assert "Traceback" not in told
    assert len(points(tmp_path / "out")) == 6
    with _scheduler(tmp_path) as (address, _), _worker(address, tmp_path, "one"):
        report = run_from_command(_sweep(tmp_path), tmp_path / "out", dask=address)
    assert (report.kept, report.computed) == (6, 4)
    assert points(tmp_path / "out") == _reference(tmp_path)


def test_failing_points_and_a_worker_that_comes_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One death is enough for the scheduler to give a point up: the default of four takes long.
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    switch, told = tmp_path / "switch", []
    switch.write_text("raise")
    failing = sweep(range(3), trouble=str(switch))
    with _scheduler(tmp_path) as (address, _), ExitStack() as stack:

        def hear(sentence: str) -> None:
            if not told:
                stack.enter_context(_worker(address, tmp_path, "late", "--nanny"))
            told.append(sentence)

        report = run_sweep(failing, tmp_path / "out", Dask(address), note=hear)
        switch.write_text("die")
        deadly = run_sweep(failing, tmp_path / "out", Dask(address), note=hear)
    assert told[0] == f"no worker is at {address} yet; waiting for the first"
    assert report.computed == 4
    assert [failure.failure.kind for failure in report.failures] == ["ArithmeticError"] * 2
    assert [failure.point["x"] for failure in report.failures] == [1, 1]
    assert (deadly.kept, deadly.computed) == (4, 0)
    assert [failure.failure.kind for failure in deadly.failures] == ["KilledWorker"] * 2


def test_unreachable_schedulers_are_told_in_one_sentence(tmp_path: Path) -> None:
    allowed = "dask must be the address of a Dask scheduler that answers within 1 s, got "
    with socket.socket() as deaf:  # nobody else can listen at its port meanwhile
        deaf.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{deaf.getsockname()[1]}"
        for wrong in (address, "nonsense://x", str(tmp_path / "scheduler.json")):
            with pytest.raises(InvalidInputError) as caught:
                run_sweep(sweep(), tmp_path / "out", Dask(wrong, timeout=1.0))
            assert str(caught.value) == allowed + wrong
    assert run_sweep(sweep(), tmp_path / "out", Serial()).computed == 6


def test_missing_package_is_told_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        InvalidInputError, match=r"pip install 'representation-manifold\[cluster\]'"
    ):
        run_sweep(sweep(), tmp_path, Dask("tcp://127.0.0.1:1"))


class _Workers:
    """Stands for a client whose one worker answers what it is told to."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def run(self, _function: object, on_error: str) -> dict[str, object]:
        assert on_error == "return"
        return {"tcp://w:1": self._answer}


def test_workers_with_other_versions() -> None:
    told: list[str] = []
    ours = environment()

    def other(**versions: str) -> dict[str, Any]:
        return {**ours, "versions": {**ours["versions"], **versions}}

    _compare_versions(_Workers(ours), told.append)
    assert told == []
    _compare_versions(_Workers(other(numpy="1.0")), told.append)
    assert len(told) == 1
    assert told[0].startswith("the worker tcp://w:1 has numpy 1.0, here ")
    with pytest.raises(InvalidInputError, match=r"distributed 0\.1 at tcp://w:1"):
        _compare_versions(_Workers(other(distributed="0.1")), told.append)
    with pytest.raises(InvalidInputError, match=r"python 3\.1\.0 at tcp://w:1"):
        _compare_versions(_Workers({**ours, "python": "3.1.0"}), told.append)
    with pytest.raises(InvalidInputError, match="workers can import rmsim"):
        _compare_versions(_Workers(ModuleNotFoundError("no rmsim")), told.append)
