"""Progress where nobody watches: a few plain lines, none for what is quick."""

import re

import pytest
import rich.progress  # noqa: F401  # before a test replaces the clock, which it takes along

from rmtheory.runtime import progress


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
    assert lines[0] == "work: 10 of 100 done after 10 s, 90 s left"
    assert lines[1] == "work: 20 of 100 done after 20 s, 80 s left"
    assert len(lines) == 9  # the last is told by the result


def test_a_line_a_minute_where_steps_are_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = _told([90.0 * k for k in range(1, 31)], monkeypatch, capsys)
    assert len(lines) == 29
    assert lines[2] == "work: 3 of 30 done after 4 min, 40 min left"


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
    assert capsys.readouterr().err == "work: 7 of 10 done after 5 min, 15 min left\n"


def test_a_line_for_every_label_with_a_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a training says how it is doing, epoch by epoch."""
    clock = iter([0.0, 0.0, 20.0, 30.0, 60.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.counting("train", before=None) as report:
        report(0, 2, share=0.0, label="epoch 0/2", text="test 0.1")
        report(0, 2, share=0.25, label="epoch 0/2", text="test 0.1")
        report(1, 2, share=0.5, label="epoch 1/2", text="test 0.8", short="0.8")
        report(2, 2, share=1.0, label="epoch 2/2", text="test 0.9")
    lines = ["epoch 0/2: test 0.1", "epoch 1/2: test 0.8, 30 s left", "epoch 2/2: test 0.9"]
    assert capsys.readouterr().err.splitlines() == lines


def test_a_bar_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "100"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    with progress.counting("work", before=None) as report:
        assert "work" not in capsys.readouterr().err  # nothing to do yet
        report(2, 7)
        report(3, label="more", share=0.5, short="q = 0.9", text="of a log")
    shown = capsys.readouterr().err
    assert "more" in shown
    assert "q = 0.9" in shown
    assert "of a log" not in shown


def _on_a_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": str(columns)}
    for name, value in terminal.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_the_bar_agrees_with_its_count(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of two steps is half a bar, though it was a tenth of the work; the time left knows."""
    _on_a_terminal(monkeypatch, 80)
    clock = iter([0.0, 0.0, 100.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.counting("work", 2, expected=500.0) as report:
        (shown,) = report.progress.tasks  # type: ignore[attr-defined]
        assert shown.fields["left"] == "about 8 min"
        report(1, share=0.1)
        (shown,) = report.progress.tasks  # type: ignore[attr-defined]
        assert shown.percentage == 50
        assert (shown.fields["text"], shown.fields["left"]) == ("1/2", "15 min left")
    assert "1/2" in capsys.readouterr().err


def test_a_log_has_the_estimate_before_it_starts(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.counting("work", 3, expected=500.0):
        assert capsys.readouterr().err == "work: about 8 min\n"
    with progress.counting("work", 3, expected=2.0):
        pass
    with progress.counting("work", 3, before=3, expected=500.0):
        pass
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (80, "epoch 2/5 ━━━━╸━━━━━ test 0.8512, q_dyn 0.997, 3807 samples/s about 12 s"),
        (40, "epoch 2/5 ━━╺━━ test 0.8512 about 12 s"),
    ],
)
def test_a_bar_leaves_out_of_its_text_what_does_not_fit(
    columns: int, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": str(columns)}.items():
        monkeypatch.setenv(name, value)
    with progress.counting("train", 5, before=None, expected=12.0, bar=10) as advance:
        text = "test 0.8512, q_dyn 0.997, 3807 samples/s"
        advance(2, label="epoch 2/5", share=0.45, text=text)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    lines = [one.strip() for one in shown.replace("\r", "\n").splitlines() if one.strip()]
    assert set(lines) == {line}
    assert len(line) <= columns
