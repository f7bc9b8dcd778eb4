"""Processes: results stream, failures are named, deaths cost one piece, none is left behind."""

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rmtheory import InvalidInputError
from rmtheory.runtime.processes import (
    THREAD_VARIABLES,
    ProcessDiedError,
    RemoteError,
    as_finished,
    in_order,
)
from tests.waiting import alive, until

ROOT = Path(__file__).resolve().parents[2]


def kill_at(value: int, fatal: int) -> int:
    if value == fatal:
        os.kill(os.getpid(), signal.SIGKILL)
    return value * value


def refuse(value: int) -> int:
    if value == 2:
        raise InvalidInputError("value", value, "anything else")
    return value


class StubbornError(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def stubborn() -> None:
    raise StubbornError(1, 2)


def cannot_be_sent() -> object:
    return lambda: None


def variables() -> dict[str, str | None]:
    return {name: os.environ.get(name) for name in THREAD_VARIABLES}


def whoami(folder: Path, count: int) -> str:
    """Return the place of this process once `count` processes are here; die if it is 0."""
    if not count:
        os.kill(os.getpid(), signal.SIGKILL)
    (folder / str(os.getpid())).touch()
    while len(list(folder.iterdir())) < count:
        time.sleep(0.01)
    return os.environ["RM_PLACE"]


@pytest.mark.parametrize(("counts", "found"), [((3, 3, 3), "aab"), ((0, 2, 2), "ab")])
def test_environments_are_dealt_out_in_turn(
    tmp_path: Path, counts: tuple[int, ...], found: str
) -> None:
    """A process that takes the place of a dead one has its environment."""
    places = [{"RM_PLACE": name} for name in "ab"]
    work = [(tmp_path, count) for count in counts]
    with as_finished(whoami, work, jobs=max(counts), environments=places) as outcomes:
        assert sorted(outcome.value or "" for outcome in outcomes if not outcome.error) == [*found]
    assert "RM_PLACE" not in os.environ


def test_results_come_in_order_and_are_counted() -> None:
    counts: list[int] = []
    assert in_order(math.sqrt, [(x * x,) for x in range(6)], jobs=2, progress=counts.append) == [
        *range(6)
    ]
    assert counts == [1, 2, 3, 4, 5, 6]
    assert in_order(math.sqrt, [], jobs=2) == []


def test_a_dead_process_costs_its_own_piece_only() -> None:
    with as_finished(kill_at, [(x, 1) for x in range(4)], jobs=2) as outcomes:
        measured = {outcome.index: outcome for outcome in outcomes}
    assert [measured[x].result() for x in (0, 2, 3)] == [0, 4, 9]
    with pytest.raises(ProcessDiedError, match="signal 9, as the system does when the memory"):
        measured[1].result()


def test_the_exception_keeps_its_type_and_names_the_arguments() -> None:
    with pytest.raises(InvalidInputError, match="value must be anything else, got 2") as caught:
        in_order(refuse, [(1,), (2,)], jobs=1)
    assert caught.value.allowed == "anything else"
    assert caught.value.__notes__[0] == "while computing refuse(2)"
    assert "line" in caught.value.__notes__[1]


def test_what_cannot_be_pickled_arrives_as_text() -> None:
    with pytest.raises(RemoteError, match="StubbornError: 1 and 2"):
        in_order(stubborn, [()], jobs=1)
    with pytest.raises(RemoteError, match="cannot be sent"):
        in_order(cannot_be_sent, [()], jobs=1)


def test_children_have_one_thread_and_the_parent_keeps_its_own() -> None:
    before = variables()
    assert in_order(variables, [()], jobs=1) == [dict.fromkeys(THREAD_VARIABLES, "1")]
    assert variables() == before


def test_a_process_that_cannot_start_is_no_endless_loop(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import math, os, sys\n"
        "from rmtheory.runtime.processes import in_order\n"
        "if __name__ != '__main__':\n"
        "    os._exit(3)\n"
        "in_order(math.sqrt, [(1.0,)] * 5, jobs=2)\n"
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=120, check=False, cwd=ROOT
    )
    assert done.returncode == 1
    assert "ended with code 3 before it could start" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_children_end_with_the_parent(number: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, pathlib, sys\n"
        "from rmtheory.runtime.processes import in_order\n"
        "from tests.waiting import until_ended\n"
        "def work(name):\n"
        "    pathlib.Path(name).write_text(str(os.getpid()))\n"
        "    until_ended()\n"
        "if __name__ == '__main__':\n"
        "    in_order(work, [(name,) for name in sys.argv[1:]], jobs=2)\n"
    )
    names = [tmp_path / "one", tmp_path / "two"]
    parent = subprocess.Popen(
        [sys.executable, script, *names],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: all(name.exists() and name.read_text() for name in names))
        children = [int(name.read_text()) for name in names]
        parent.send_signal(number)
        _, errors = parent.communicate(timeout=300)
        until(lambda: not any(alive(child) for child in children))
    finally:
        parent.kill()
        parent.communicate()
    assert errors.count("Traceback") == (number == signal.SIGINT)
