"""Progress where nobody watches: a few plain lines, none for what is quick."""

import pytest

from rmtheory.cli import progress


def _told(
    times: list[float], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    """Lines of a run whose steps end at `times`."""
    clock = iter([0.0, 0.0, *times])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.counting("work", len(times)) as advance:
        for done in range(1, len(times) + 1):
            advance(done)
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_a_line_for_every_tenth(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = _told([float(k) for k in range(1, 101)], monkeypatch, capsys)
    assert lines[0] == "work: 10 of 100 done after 10 s"
    assert lines[1] == "work: 20 of 100 done after 20 s"
    assert len(lines) == 9  # the last is told by the result


def test_a_line_a_minute_where_steps_are_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = _told([90.0 * k for k in range(1, 31)], monkeypatch, capsys)
    assert len(lines) == 29
    assert lines[2] == "work: 3 of 30 done after 4 min"


def test_quick_work_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _told([0.4 * k for k in range(1, 12)], monkeypatch, capsys) == []


def test_what_was_there_before_is_not_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 100.0, 200.0, 300.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.counting("work", 10, before=6) as advance:
        advance(6)
        advance(7)
    assert capsys.readouterr().err == "work: 7 of 10 done after 5 min\n"
