"""Pictures of results that hold nothing to draw: no panel stays empty."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rmsim.thresholds.plot import threshold_panel


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
