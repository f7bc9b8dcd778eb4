"""Quick pictures: legends cover nothing and promise nothing that is not drawn."""

import math
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from rmtheory import Chain, plots


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    figures: list[Figure] = []

    def keep(figure: Figure, _path: Path) -> None:
        figure.draw_without_rendering()  # lays it out
        figures.append(figure)

    monkeypatch.setattr(plots, "_save", keep)
    return figures


def _curve(low: float, high: float) -> xr.Dataset:
    d = np.geomspace(low, high, 12)
    return xr.Dataset({"internal": ("d", d), "y_star": ("d", 4 + 0.06 / d)}, coords={"d": d})


@pytest.mark.parametrize("low", [1e-5, 1e-3, 2.9e-3])
def test_the_limit_in_the_legend_is_a_line_that_can_be_seen(
    low: float, drawn: list[Figure]
) -> None:
    plots.plot_curve(_curve(low, 0.45), Chain(2, 0, 0.45), Path("unused"))
    left = drawn[0].axes[0]
    lines = {line.get_label(): line for line in left.get_lines()}
    legend = left.get_legend()
    assert legend is not None
    (name,) = (text.get_text() for text in legend.get_texts() if "limit" in text.get_text())
    seen = lines[name].get_window_extent()
    assert seen.width > 0.1 * left.get_window_extent().width


@pytest.mark.parametrize(
    ("chain", "low"), [(Chain(2, 0, 0.45), 0.01), (Chain(3, 0, 0.4), 1e-3), (Chain(1, 0.8), 1e-3)]
)
def test_no_limit_no_legend(chain: Chain, low: float, drawn: list[Figure]) -> None:
    plots.plot_curve(_curve(low, 0.45), chain, Path("unused"))
    assert drawn[0].axes[0].get_legend() is None


@pytest.mark.parametrize("lost", [0, 4, 12])
def test_points_on_an_unstable_saddle_are_hollow(lost: int, drawn: list[Figure]) -> None:
    data = _curve(0.01, 0.45)
    stability = np.where(np.arange(12) < 12 - lost, 0.1, -0.1)
    plots.plot_curve(data.assign(q0_stability=("d", stability)), Chain(1, 0.1), Path("unused"))
    for axes in drawn[0].axes:
        hollow = [x for x in axes.get_lines() if "unstable" in str(x.get_label())]
        assert [len(x.get_xdata()) for x in hollow] == ([lost] if lost else [])  # type: ignore[arg-type]
    assert (drawn[0].axes[0].get_legend() is not None) == bool(lost)


@pytest.mark.parametrize(("low", "high"), [(1e-6, 0.45), (1e-3, 0.45), (0.1, 0.4), (0.2, 0.21)])
def test_logarithmic_axes_have_plain_labels(low: float, high: float, drawn: list[Figure]) -> None:
    plots.plot_curve(_curve(low, high), Chain(1, 0.1), Path("unused"))
    for axes in drawn[0].axes:
        span = axes.get_xlim()
        minor = [label.get_text() for label in axes.xaxis.get_ticklabels(minor=True)]
        assert not any(minor)
        places = [x for x in axes.xaxis.get_majorticklocs() if span[0] <= x <= span[1]]
        assert 2 <= len(places) <= 8
        if high / low < 1e4:
            labels = [label.get_text() for label in axes.xaxis.get_ticklabels()]
            assert all("times" not in label and "10^" not in label for label in labels)


@pytest.mark.parametrize("layers", [2, 3, math.inf])
def test_the_legend_of_the_phase_diagram_covers_nothing(layers: float, drawn: list[Figure]) -> None:
    theta = np.linspace(0, math.pi / 2, 9)
    radius = np.array([[1.0], [0.85]])
    data = xr.Dataset(
        {
            "jd": (("kind", "ray"), 0.073 * radius * np.cos(theta)),
            "lam": (("kind", "ray"), 0.9 / min(layers, 3) * radius * np.sin(theta)),
            "jd_error": (("kind", "ray"), 1e-4 * radius * np.cos(theta)),
            "lam_error": (("kind", "ray"), 1e-4 * radius * np.sin(theta)),
        },
        coords={"kind": ["rm", "gap"]},
    )
    plots.plot_phase_diagram(data, layers, Path("unused"))
    (figure,) = drawn
    assert figure.get_figwidth() * 2.54 == pytest.approx(8.6)
    (axes,), (legend,) = figure.axes, figure.legends
    box, page = legend.get_window_extent(), figure.bbox
    assert not box.overlaps(axes.get_tightbbox())
    assert page.x0 <= box.x0 < box.x1 <= page.x1
    assert page.y0 <= box.y0 < box.y1 <= page.y1
    assert axes.get_window_extent().height > 0.4 * page.height
