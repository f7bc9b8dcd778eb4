"""Tables of the commands: readable at 40 and 80 columns, nothing cut, never a word a line."""

import re

import pytest

from rmtheory.base.estimate import Estimate, Tier
from rmtheory.runtime.report import Report, print_quantities, print_rows

_MEANING = "fixed points of a sample, on average (no error: all samples have the same number)"
_LONG = ", ".join(f"{k / 64:.6f}" for k in range(12))


def _shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int | None
) -> list[str]:
    """Lines of a table with names, numbers and meanings, without colours."""
    if columns is not None:
        for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": str(columns)}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("NO_COLOR", raising=False)
    rows = [
        ("theory_overlap_with_start", "0.8123456(7)", "estimated", _MEANING),
        ("distances", _LONG, "", "distances per neuron"),
    ]
    print_quantities("Fixed points of one layer", ("value", "trust"), rows)
    text = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    return [line.rstrip() for line in text.splitlines()]


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_meanings_are_below_the_numbers_on_a_narrow_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = _shown(monkeypatch, capsys, columns)
    assert all(len(line) <= columns for line in lines)
    assert "…" not in "".join(lines)
    words = " ".join(" ".join(lines).split())
    assert _MEANING in words  # nothing but the meaning is on its lines
    assert _LONG in words.replace("distances ", "", 1) or _LONG in words
    assert sum(map(len, lines)) / len(lines) > columns / 3  # lines are filled


def test_meanings_are_beside_the_numbers_where_there_is_room(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = (x for x in _shown(monkeypatch, capsys, 300) if "0.8123456" in x)
    assert line.startswith("theory_overlap_with_start")
    assert line.endswith(_MEANING)


def test_a_pipe_folds_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = _shown(monkeypatch, capsys, None)
    assert len(lines) == 5  # title, headings, rule, two rows
    assert lines[-1].endswith("distances per neuron")


def test_rows_become_a_list_where_the_table_is_too_wide(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [("mnist", "hand-written digits [28 x 28]", "CC BY-SA 3.0"), ("parity", "spins", "-")]
    print_rows(("name", "content", "licence"), rows)
    wide = capsys.readouterr().out
    assert "hand-written digits [28 x 28] │ CC BY-SA 3.0" in wide
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "40"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    print_rows(("name", "content", "licence"), rows, "Data sets")
    text = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    lines = [line.rstrip() for line in text.splitlines()]
    assert lines == [
        "Data sets",
        "name     mnist",
        "content  hand-written digits [28 x 28]",
        "licence  CC BY-SA 3.0",
        "",
        "name     parity",
        "content  spins",
        "licence  -",
    ]


def test_estimates_keep_their_trust_below_a_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "40"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    entropy = Estimate("0.125", "0.001", Tier.ESTIMATED, "by hand")
    Report("Entropy", {}, {"entropy": entropy}, {"entropy": "S per neuron " * 5}).show(False, None)
    text = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert "entropy  0.125 ± 1e-3  estimated\n    S per neuron" in text


@pytest.mark.parametrize("columns", [40, 80])
def test_errors_stay_with_their_numbers(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": str(columns)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    # Folded at any space, the third is torn at 80 columns, the second at 40.
    numbers = ["0.076633929 ± 7.8e-08", "0.153022628 ± 7.6e-08", "0.24223090 ± 7.4e-07"]
    print_quantities("S", ("value",), [("entropies_by_tap", ", ".join(numbers), _MEANING)])
    text = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    lines = [line.rstrip() for line in text.splitlines()]
    assert all(len(line) <= columns for line in lines)
    for number in numbers:
        assert sum(number in line for line in lines) == 1
