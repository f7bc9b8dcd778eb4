"""The scripts of the docs run: each is imported, and measures something small."""

import importlib
import math
from collections.abc import Callable
from pathlib import Path

import performance
import pytest

from rmsim.data import synthetic

SCRIPTS = sorted(path.stem for path in Path(performance.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_can_be_imported(script: str) -> None:
    assert importlib.import_module(script).__doc__


@pytest.mark.parametrize(
    ("measured", "columns"),
    [
        (lambda: performance.training(20), len(performance.TRAINED)),
        (lambda: performance.relaxation(20), 4),
        (lambda: performance.pair(20), 4),
        (lambda: performance.wired(21), 4),
        (lambda: performance.hetero_association(2, 16), 5),
    ],
    ids=["training", "relaxation", "pair", "wired", "hetero_association"],
)
def test_performance_measures_small_networks(
    measured: Callable[[], list[str]], columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_turn = performance.in_turn
    monkeypatch.setattr(performance, "in_turn", lambda *works, rounds: in_turn(*works, rounds=1))
    monkeypatch.setattr(performance, "load", lambda name: synthetic(train=1600, test=16))
    monkeypatch.setattr(performance, "whole_epoch", lambda n: 1.0)  # it needs a data set
    row = [float("inf" if cell == "-" else cell) for cell in measured()]
    assert len(row) == columns
    assert all(math.isfinite(number) and number > 0 for number in (row[0], row[-1]))
