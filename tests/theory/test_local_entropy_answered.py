"""The records of what the theory answers: what they say, and a few of their rows once more."""

import importlib.util
from types import ModuleType

import pytest

from tests.critical_settings import SETTINGS

pytestmark = pytest.mark.numerical


@pytest.fixture(scope="module")
def answered() -> ModuleType:
    spec = importlib.util.spec_from_file_location("answered", "docs/_ext/answered.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_critical_couplings_are_brackets_with_opposite_verdicts(answered: ModuleType) -> None:
    assert len(SETTINGS) == 60
    table = answered.TABLES["critical"]
    rows = table.rows()
    assert len(rows) == len(table.questions()) == 60
    for row in rows:
        assert SETTINGS[int(row["number"])] == tuple(
            row[name] for name in ("layers", "coupling", "kind", "other")
        )
        assert float(row["seconds"]) < 60
        if row["answer"] == "none exists":
            assert "beyond the threshold" in row["reason"]
            continue
        assert row["answer"] == "bracket", row
        assert float(row["low"]) < float(row["high"])
        assert float(row["at_low"]) + float(row["at_low_error"]) < 0
        assert float(row["at_high"]) - float(row["at_high_error"]) > 0
        verdicts = (row["verdict_low"], row["verdict_high"])
        assert verdicts == (
            ("not monotone", "monotone") if row["kind"] == "rm" else ("unchecked", "unchecked")
        )


@pytest.mark.parametrize("name", ["points", "critical", "broken", "rule"])
def test_the_page_says_what_the_record_holds(answered: ModuleType, name: str) -> None:
    table = answered.TABLES[name]
    page = (answered.ROOT / "docs" / table.page).read_text("utf-8")
    assert table.block() in page, f"python docs/_ext/answered.py {name}"


def test_the_branch_of_two_layers_changes_no_verdict(answered: ModuleType) -> None:
    """It begins beyond all touching points, its slope is positive, and it breaks further."""
    table = answered.TABLES["broken"]
    rows = table.rows()
    assert len(rows) == len(table.questions())
    critical = answered.TABLES["critical"].rows()
    touching = max(float(row["d"]) for row in critical if row["layers"] == "2" and row["d"])
    for row in rows:
        if row["at"] == "onset":
            assert float(row["d"]) > 3 * touching
            continue
        assert float(row["slope"]) > 10 * float(row["slope_error"])
        assert float(row["change"]) < -10 * float(row["change_error"])
        assert float(row["m0"]) < 0
        assert float(row["replicon"]) < -10 * float(row["replicon_error"])


@pytest.mark.parametrize("number", [0, 1, 15])
def test_critical_couplings_again(answered: ModuleType, number: int) -> None:
    """One layer, and two layers where no threshold exists."""
    table = answered.TABLES["critical"]
    (row,) = (row for row in table.rows() if row["number"] == str(number))
    again = table.answer(table.questions()[number])
    assert again["answer"] == row["answer"]
    if row["low"]:
        width = float(row["high"]) - float(row["low"])
        assert float(again["low"]) == pytest.approx(float(row["low"]), abs=0.2 * width)


def test_points_are_answered_or_refused_at_once(answered: ModuleType) -> None:
    table = answered.TABLES["points"]
    rows = table.rows()
    asked = table.questions()
    refused = [row for row in rows if row["answer"] == "refused"]
    assert len(rows) == len(asked) == 300
    assert len(refused) <= 0.03 * len(rows)
    for row in refused:
        assert float(row["seconds"]) < 10
        assert row["reason"]
    for row in rows:
        assert asked[int(row["number"])]["d"] == float(row["d"])
        if row["answer"] != "refused":
            assert 0 < float(row["internal_error"]) <= 0.1 * abs(float(row["internal"]))
            assert 0 < float(row["slope_error"]) <= 0.2 * abs(float(row["slope"]))


def test_the_independent_rule_agrees_at_all_its_points(answered: ModuleType) -> None:
    """All are of tier 'estimated': one number in a hundred may be beyond three errors."""
    table = answered.TABLES["rule"]
    rows = table.rows()
    assert len(rows) == len(table.questions()) == 200
    assert {row["answer"] for row in rows} == {"compared"}
    apart = [
        float(row[f"{name}_errors_apart"])
        for row in rows
        for name in ("phi", "internal")
        if row[f"{name}_errors_apart"]
    ]
    assert sum(each > 3 for each in apart) <= 0.01 * len(apart)
