"""Pictures of results that hold nothing to draw: no panel stays empty."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rmsim.cli import run
from rmsim.studies.plots import threshold_panel


def _data(thresholds: list[float]) -> xr.Dataset:
    status = ["found" if np.isfinite(x) else "none: add larger values" for x in thresholds]
    there = np.where(np.isfinite(thresholds), 0.01, np.nan)
    return xr.Dataset(
        {
            "threshold": ("n", np.array(thresholds)),
            "threshold_error": ("n", there),
            "threshold_status": ("n", status),
        },
        coords={"n": [20, 40, 80][: len(thresholds)]},
    )


@pytest.fixture
def axis() -> Axes:
    return Figure().subplots()


def test_a_panel_without_thresholds_says_why(axis: Axes) -> None:
    threshold_panel(axis, _data([np.nan, np.nan]), "jd")
    assert not axis.axison
    (text,) = axis.texts
    words = text.get_text().replace("\N{NO-BREAK SPACE}", " ").split("\n")
    assert words == ["no 50 % point in $J_D$", "", "N = 20, 40: add larger values"]


@pytest.mark.parametrize("thresholds", [[0.3], [0.3, np.nan, 0.4]])
def test_what_was_found_is_drawn_and_the_rest_is_named(axis: Axes, thresholds: list[float]) -> None:
    threshold_panel(axis, _data(thresholds), "jd")
    assert axis.axison
    (drawn,) = axis.containers
    assert len(drawn[0].get_xdata()) == np.isfinite(thresholds).sum()
    low, high = axis.get_xlim()
    assert low < 20 < (20 if len(thresholds) == 1 else 80) * 1.0001 < high
    assert axis.get_title() == ("" if len(thresholds) == 1 else "none at N = 40")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("local-entropy --n 20 --jd .8 --d -.1", "d must be distances from 0 to 1"),
        ("local-entropy --n 20 --jd .8 --d .1,2", "d must be distances from 0 to 1"),
        ("local-entropy --n 20 --jd .8 --plot", "out must be given with --plot"),
        ("overlaps --layers 2 --n 10 --trials 1 --out DIR", "trials must be an integer >= 2"),
    ],
)
def test_what_could_not_be_shown_is_refused_before_work(
    command: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert run(command.replace("DIR", str(out)).split()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"rmsim: error: {words}")
    assert "None" not in captured.err
    assert not out.exists()
