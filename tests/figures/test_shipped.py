"""The numbers in figures/data: what they say of theory and networks, and how they are computed."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from figures.paper import shipped
from figures.paper.mean_field import theory_of
from rmtheory.dynamics.finite_size import half_point

SIZES = (2000, 4000)


def _pairs() -> dict[int, tuple[dict[str, Any], dict[str, Any]]]:
    """Random settings measured at both sizes."""
    stored = json.loads((shipped.FOLDER / "mean_field_networks.json").read_text("utf-8"))
    keys = {
        k: [f"networks {k} N={n}" for n in SIZES] for k in range(len(shipped.random_settings()))
    }
    return {
        k: (stored[one]["result"], stored[two]["result"])
        for k, (one, two) in keys.items()
        if one in stored and two in stored
    }


@pytest.mark.parametrize("quantity", ["flip_rate", "overlap_with_start", "margins"])
def test_networks_follow_the_theory_up_to_a_correction_of_order_one_over_n(quantity: str) -> None:
    """Differences at N = 2000 are twice those at 4000 within errors, t <= 50."""
    pairs = _pairs()
    assert len(pairs) >= 2
    scores, sizes = [], []
    for small, large in pairs.values():
        one, two = small[quantity], large[quantity]
        assert one["theory"] == two["theory"]
        theory, at_small, at_large = (
            np.array(x) for x in (one["theory"], one["networks"], two["networks"])
        )
        errors = [np.array(x) for x in (one["networks_error"], two["networks_error"])]
        own = np.array(one["theory_error"])
        difference = (at_small - theory) - 2 * (at_large - theory)
        score = difference / np.sqrt(errors[0] ** 2 + 4 * errors[1] ** 2 + own**2)
        # Hardly a flip in 80 runs has no Gaussian error: hundred are enough.
        seen = np.ones(theory.shape, dtype=bool)
        if quantity == "flip_rate":
            seen = np.minimum(theory, at_small) * 80 * SIZES[0] > 100
        scores.append(score[seen])
        # The correction itself: of order 1/N, not larger.
        sizes.append(np.max(abs(at_large - theory)[seen] - 3 * np.hypot(errors[1], own)[seen]))
    assert np.sqrt(np.mean(np.concatenate(scores) ** 2)) < 1.3
    assert np.max(np.abs(np.concatenate(scores))) < 4.5
    assert max(sizes) < 20 / SIZES[1]


def test_half_points_of_networks_are_within_the_stated_error() -> None:
    """J_50 of networks, 1000 sweeps (docs: Theory of the dynamics), against theory alone."""
    curve, law = theory_of({"shipped": True})
    assert abs(float(curve.freezing.value) - 0.8141) < 2 * float(curve.freezing.error)
    assert float(curve.freezing.error) < 0.001
    measured = {200: 0.469, 500: 0.575, 1000: 0.637, 2000: 0.683, 4000: 0.725, 8000: 0.745}
    for size, value in measured.items():
        point = half_point(size, 1000, curve, law)
        assert abs(float(point.value) - value) < 2 * math.hypot(float(point.error), 0.003), size


def test_a_table_is_computed_piece_by_piece_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def square(x: int) -> int:
        calls.append(x)
        if x == 3 and calls.count(3) == 1:
            raise KeyboardInterrupt
        return x * x

    pieces = [shipped.Piece(f"x={x}", square, {"x": x}) for x in (2, 3)]
    monkeypatch.setitem(shipped.TABLES, "squares", pieces)
    file = tmp_path / "squares.json"
    with pytest.raises(KeyboardInterrupt):
        shipped.ship("squares", file)
    assert shipped.ship("squares", file) == ["x=3"]
    assert calls == [2, 3, 3]
    held = json.loads(file.read_text("utf-8"))
    assert held["x=3"]["result"] == 9
    assert {"settings", "commit", "date", "cpu_seconds", "call"} <= set(held["x=2"])
    # Other settings are another computation.
    monkeypatch.setitem(shipped.TABLES, "squares", [shipped.Piece("x=2", square, {"x": 4})])
    assert shipped.ship("squares", file) == ["x=2"]


def test_networks_of_a_small_piece() -> None:
    """The function behind the table, at small cost."""
    found = shipped.networks(
        layers=2,
        jd=0.6,
        lam=0.3,
        p=0.5,
        n=200,
        samples=10,
        starts=2,
        sweeps=6,
        trajectories=8000,
        seed=1,
    )
    for name in ("flip_rate", "overlap_with_start", "never_moved", "margins"):
        one = {key: np.array(value) for key, value in found[name].items()}
        error = np.hypot(one["networks_error"], one["theory_error"])
        assert np.all(abs(one["networks"] - one["theory"]) < 4.5 * error + 2 / 200), name
