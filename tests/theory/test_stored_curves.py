"""Curves in their files: interrupted ones go on, finished ones are not computed again."""

import json
from pathlib import Path

import numpy as np
import pytest

from rmtheory import Chain, InvalidInputError
from rmtheory.cli import run
from rmtheory.local_entropies import curves
from rmtheory.local_entropies.curves import (
    CurveRequest,
    finished_points,
    stored_curve,
)
from rmtheory.runtime import netcdf
from rmtheory.runtime.run_store import parts_of

pytestmark = pytest.mark.numerical

REQUEST = CurveRequest(Chain(1, 0.1), 0.02, 0.3, 5)


def interrupt(after: int) -> object:
    def progress(count: int) -> None:
        if count == after:
            raise KeyboardInterrupt

    return progress


def test_an_interrupted_curve_goes_on(tmp_path: Path) -> None:
    target, counts = tmp_path / "a.nc", []
    with pytest.raises(KeyboardInterrupt):
        stored_curve(REQUEST, target, progress=interrupt(2))  # type: ignore[arg-type]
    assert not target.exists()
    assert [point.d for point in finished_points(REQUEST, target)] == REQUEST.distances[3:]
    notes: list[str] = []
    found = stored_curve(REQUEST, target, progress=counts.append, note=notes.append)
    assert counts == [2, 3, 4, 5]
    assert "2 of 5 points are there already" in notes[0]
    assert not parts_of(target).exists()
    # The same numbers as in one go, within their errors.
    whole = stored_curve(REQUEST, tmp_path / "b.nc").data
    for name in ("y_star", "internal", "slope"):
        apart = np.abs(found.data[name] - whole[name])
        assert np.all(apart <= found.data[f"{name}_error"] + whole[f"{name}_error"]), name
    # It is there now.
    assert not stored_curve(REQUEST, target, progress=interrupt(1)).computed  # type: ignore[arg-type]


def test_points_of_another_curve_are_not_lost(tmp_path: Path) -> None:
    target = tmp_path / "a.nc"
    with pytest.raises(KeyboardInterrupt):
        stored_curve(REQUEST, target, progress=interrupt(1))  # type: ignore[arg-type]
    other = CurveRequest(Chain(1, 0.2), 0.02, 0.3, 5)
    with pytest.raises(InvalidInputError, match=r"another curve, of jd = 0\.1, not 0\.2 "):
        stored_curve(other, target)
    # A damaged point is computed again.
    (kept,) = parts_of(target).glob("point-*.json")
    kept.write_text(json.dumps({"content": {}}))
    assert finished_points(REQUEST, target) == []
    assert len(stored_curve(REQUEST, target).data.d) == 5


def test_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = str(tmp_path / "c.nc")
    command = ["curve", "--jd", ".1", "--d", ".05:.2:3", "--out", target]
    real = curves.curve

    def stopped(*arguments: object, **options: object) -> object:
        options["progress"] = interrupt(1)
        return real(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(curves, "curve", stopped)
    assert run(command) != 0
    assert "1 of 3 points are kept in" in capsys.readouterr().err
    monkeypatch.setattr(curves, "curve", real)
    assert run(command) == 0
    assert "1 of 3 points are there already" in capsys.readouterr().err
    assert netcdf.load(target).d.values == pytest.approx([0.05, 0.1, 0.2])
    assert run(command) == 0
    assert "holds this curve already" in capsys.readouterr().err
    assert run(["curve", "--jd", ".1", "--d", ".05:.2", "--out", target]) == 2
    assert "d must be LOW:HIGH:COUNT, as .0001:.45:40, got .05:.2" in capsys.readouterr().err


def test_a_bound_of_y_star_is_no_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, picture = tmp_path / "b.nc", tmp_path / "b.png"
    command = ["curve", "--jd", "2", "--d", ".001:.3:3", "--out", str(target)]
    assert run([*command, "--plot", str(picture)]) == 0
    data = netcdf.load(target)
    assert bool(data.y_star_is_bound[0])
    assert np.isinf(data.y_star_error[0])
    assert np.isfinite(data.internal_error).all()
    assert picture.stat().st_size > 10_000
    capsys.readouterr()
    assert run(["ystar", "--jd", "2", "--d", ".001", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert float(answer["y_star_above"]) >= 1e7
    assert "y_star" not in answer
    assert "qhat" not in answer
