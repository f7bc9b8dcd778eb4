"""Runs that are killed: the next one resumes, and nothing of the dead stays behind."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from figures.engine.figure import discard_finished, partial_results
from rmtheory.runtime.files import leftovers, replacing
from rmtheory.runtime.run_store import RunStore
from tests.sim.test_sweep import ROOT, evaluated
from tests.waiting import until

NAMES = ("small", "gated", "demo")


def _start(base: Path) -> subprocess.Popen[str]:
    code = "from tests.gated_figures import main; main()"
    words = (str(base), *NAMES, "report", "--scale", "tiny", "--out", str(base / "out"))
    return subprocess.Popen(
        [sys.executable, "-c", code, *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _end(base: Path, when: Callable[[], bool], number: signal.Signals) -> tuple[int, str, str]:
    """Run the command until `when`, send it a signal; return its code and what it said."""
    with _start(base) as process:
        try:
            until(lambda: when() or process.poll() is not None)
            process.send_signal(number)
            said, told = process.communicate(timeout=300)
        finally:
            process.kill()
    return process.returncode, said, told


def _without_progress(told: str) -> str:
    """Leave out how far it is, and how long it will take, which a slow machine says."""
    lines = r"^\w+: (\d+ of \d+ done after .*|\d+ points to compute, about .*)\n"
    return re.sub(lines, "", told, flags=re.M)


def _data(folder: Path) -> dict[str, int]:
    """Inodes of the data files: a file that is computed again has another."""
    return {path.name: path.stat().st_ino for path in folder.glob("[!.]*.nc")}


def test_the_whole_command_goes_on_after_any_end(tmp_path: Path) -> None:
    out, log = tmp_path / "out", tmp_path / "log"
    points = out / ".parts" / "demo" / "demo" / "points"

    def begun(count: int) -> bool:
        """Whether the two processes wait at the gate, and what they did before is stored."""
        return sum(evaluated(log).values()) == count and len(list(points.glob("[!.]*.json"))) == 6

    moments: list[tuple[Callable[[], bool], signal.Signals, int]] = [
        ((tmp_path / "waiting").exists, signal.SIGKILL, -signal.SIGKILL),
        (lambda: begun(8), signal.SIGINT, 130),
        (lambda: begun(10), signal.SIGTERM, 143),
    ]
    before: dict[str, int] = {}
    for when, number, code in moments:
        found, _, told = _end(tmp_path, when, number)
        assert found == code, told
        sentence = "figures: interrupted: the same command resumes where it stopped\n"
        assert _without_progress(told) == ("" if number == signal.SIGKILL else sentence)
        data = _data(out)
        assert before.items() <= data.items()  # none of the finished was computed again
        assert set(data) == {"small.nc", "gated.nc"} - (
            {"gated.nc"} if number == signal.SIGKILL else set()
        )
        before = data
        if number != signal.SIGKILL:
            assert not [path for path in out.glob(".*.*") if path.is_file()]
        (tmp_path / "go").touch()
    (tmp_path / "gate").touch()
    (out / ".demo.nc.abcd_123.nc").write_text("of a run that was killed while it wrote")
    with _start(tmp_path) as process:
        said, told = process.communicate(timeout=300)
    assert (process.returncode, _without_progress(told)) == (0, "")
    assert "small: unchanged" in said
    assert "demo: computed" in said
    assert before.items() <= _data(out).items()
    # Each point was begun once, but for the two that were in flight at both ends.
    assert sorted(evaluated(log).values()) == [1] * 8 + [3] * 2
    files = {f"{name}.{kind}" for name in NAMES for kind in ("nc", "png", "pdf")}
    files |= {"report.html", "report.md", "report.json", "explorer.html", ".drawn", ".lock"}
    assert {path.name for path in out.iterdir()} == files
    assert {path.name for path in (out / ".drawn").iterdir()} == {f"{n}.sha256" for n in NAMES}


def test_files_of_a_run_at_work_are_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "small.nc"
    folder = RunStore(tmp_path, files=(target.name,))
    with folder.at_work(shared=True), replacing(target) as temporary:
        assert leftovers(tmp_path, target.name) == [temporary]
        with folder.at_work(shared=True):
            assert temporary.exists()
        temporary.write_text("whole")
    assert target.read_text() == "whole"
    stray = tmp_path / ".small.nc.abcd1234.nc"
    others = [tmp_path / name for name in (".small.nc", ".other.nc.abcd1234.nc", "small.nc.nc")]
    for path in (stray, *others):
        path.write_text("")
    with folder.at_work(shared=True):
        assert not stray.exists()
    assert all(path.exists() for path in others)


@pytest.mark.parametrize("later", [True, False])
def test_parts_of_finished_data_are_removed(later: bool, tmp_path: Path) -> None:
    parts, data = tmp_path / ".parts" / "small", tmp_path / "small.nc"

    def killed() -> None:
        with partial_results(parts, "key") as folder:
            (folder / "point").write_text("")
            data.write_text("")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        killed()
    begun = (parts / "key").stat().st_mtime
    os.utime(data, (begun, begun + (1 if later else -1)))
    discard_finished(parts, "other", data)
    assert (parts / "point").exists()
    discard_finished(parts, "key", data)
    assert (tmp_path / ".parts").exists() != later
