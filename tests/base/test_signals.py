"""Runs that are ended by a signal: nothing half-written is left, and one sentence says what is."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from rmtheory.runtime.command import if_interrupted, run_app
from rmtheory.runtime.signals import ENDING, handled_by

ROOT = Path(__file__).parents[2]

#: Writes half of a file and waits there, in three situations.
SCRIPT = """
import os, sys, typer
from rmtheory.runtime.command import run_app
from rmtheory.runtime.files import replacing
from rmtheory.runtime.processes import in_order
from tests.waiting import until_ended

def halfway(path):
    with replacing(path) as temporary:
        temporary.write_text("half")
        os.write(1, b"there\\n")  # in one piece: two workers have the same pipe
        until_ended()

app = typer.Typer()

@app.command()
def alone(path: str) -> None:
    halfway(path)

@app.command()
def workers(path: str) -> None:
    in_order(halfway, [(path,), (path + "2",)], jobs=2)

if __name__ == "__main__":
    if sys.argv[1] == "library":
        halfway(sys.argv[2])
    sys.exit(run_app(app, "rm", sys.argv[1:]))
"""


@contextlib.contextmanager
def halfway(how: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    script = folder / "script.py"
    script.write_text(SCRIPT)
    target = folder / "out" / "a.txt"
    target.parent.mkdir()
    target.write_text("old")
    process = subprocess.Popen(
        [sys.executable, script, how, target],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        for _ in range(2 if how == "workers" else 1):
            assert process.stdout.readline() == "there\n"
        assert len(list(target.parent.iterdir())) > 1
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", ENDING)
@pytest.mark.parametrize("how", ["library", "alone", "workers"])
def test_nothing_half_written_is_left(how: str, number: signal.Signals, tmp_path: Path) -> None:
    with halfway(how, tmp_path) as process:
        process.send_signal(number)
        _, told = process.communicate(timeout=120)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a.txt"]
    assert (tmp_path / "out" / "a.txt").read_text() == "old"
    # Without a command line the signal itself is what the program died of.
    assert process.returncode == (-number if how == "library" else 128 + number)
    assert told == ("" if how == "library" else "rm: interrupted\n")


def test_signals_of_others_are_left_alone() -> None:
    """Ignored as by nohup, or handled: both stay as they were."""
    seen: list[int] = []
    hangup, end = signal.SIGHUP, signal.SIGTERM
    before = {number: signal.getsignal(number) for number in (hangup, end)}
    try:
        signal.signal(hangup, signal.SIG_IGN)
        signal.signal(end, signal.SIG_DFL)
        with handled_by(lambda number, _frame: seen.append(number)):
            os.kill(os.getpid(), hangup)
            os.kill(os.getpid(), end)
            with handled_by(lambda _number, _frame: seen.append(0)):
                os.kill(os.getpid(), end)
            thread = threading.Thread(target=_in_a_thread)
            thread.start()
            thread.join()
        assert seen == [end, end]
        assert signal.getsignal(hangup) is signal.SIG_IGN
        assert signal.getsignal(end) is signal.SIG_DFL
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_a_thread() -> None:
    with handled_by(lambda _number, _frame: None):
        pass


@pytest.mark.parametrize("number", [signal.SIGINT, *ENDING])
def test_an_interruption_says_what_is_kept(
    number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    app = typer.Typer()
    done = 0

    @app.command()
    def work() -> None:
        nonlocal done
        with if_interrupted(lambda: f"{done} of 5 are kept"):
            done = 3
            os.kill(os.getpid(), number)

    assert run_app(app, "rm", []) == 128 + number
    assert capsys.readouterr().err == "rm: interrupted: 3 of 5 are kept\n"


@pytest.mark.parametrize("number", [signal.SIGINT, *ENDING])
def test_an_interruption_in_a_finaliser_is_not_lost(
    number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python drops what a finaliser raises; what others complain of afterwards is not shown."""

    class Struck:
        def __del__(self) -> None:
            os.kill(os.getpid(), number)
            time.sleep(0.01)

    class HalfMade:
        def __del__(self) -> None:
            raise AttributeError("_closed")

    app = typer.Typer()

    @app.command()
    def work() -> None:
        with if_interrupted(lambda: "all is kept"):
            half_made = HalfMade()
            struck = Struck()
            del struck
            for _ in range(500):
                time.sleep(0.01)
            del half_made

    assert run_app(app, "rm", []) == 128 + number
    gc.collect()
    assert capsys.readouterr().err == "rm: interrupted: all is kept\n"
