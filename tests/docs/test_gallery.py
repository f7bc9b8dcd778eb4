"""The scripts of the gallery run, each draws one picture, and none takes long."""

import runpy
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import pytest

matplotlib.use("Agg")
from matplotlib import pyplot as plt

SCRIPTS = sorted((Path(__file__).resolve().parents[2] / "docs" / "gallery").glob("plot_*.py"))


@pytest.fixture(autouse=True)
def _no_open_pictures() -> Iterator[None]:
    plt.close("all")
    yield
    plt.close("all")


def test_there_are_ten_short_scripts_with_one_idea_each() -> None:
    assert len(SCRIPTS) == 10
    for script in SCRIPTS:
        text = script.read_text("utf-8")
        assert len(text.splitlines()) <= 60, script.name
        assert text.count("plt.subplots(") == 1, script.name
        assert "import rmsim as rs" in text or "import rmtheory as rt" in text, script.name
        assert "from rm" not in text, script.name


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_draws_one_picture_with_labelled_axes(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plt, "show", lambda: None)
    runpy.run_path(str(script))
    assert len(plt.get_fignums()) == 1
    (axis,) = plt.gcf().axes
    assert axis.get_xlabel()
    assert axis.get_ylabel()
    assert axis.has_data()
