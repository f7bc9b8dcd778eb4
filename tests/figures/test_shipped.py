"""The numbers in figures/data: what they say of theory and networks, and how they are computed."""

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from figures.claims.claim import claim_id
from figures.claims.landscape import QDYN_TABLE
from figures.paper import shipped
from figures.paper.phase_diagram_complete import shipped_tables
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.base.statistics import weighted_fit
from rmtheory.dynamics.finite_size import counted_flips, half_point, stored_theory
from rmtheory.dynamics.freezing import fitted_curve

SIZES = (2000, 4000)

PUBLISHED = json.loads(
    (Path(__file__).resolve().parents[2] / "docs" / "claims.json").read_text("utf-8")
)


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
    assert len(pairs) == 10
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
    # 1.6/N is the largest seen; none of them beyond 3 errors by more.
    assert max(sizes) < 4 / SIZES[1]


#: 50 % points of networks, 1000 sweeps (docs: algorithms), which chose one coefficient.
MEASURED = {
    200: (0.469, 0.003),
    500: (0.575, 0.003),
    1000: (0.637, 0.003),
    2000: (0.683, 0.003),
    4000: (0.725, 0.007),
    8000: (0.745, 0.011),
}


def test_both_routes_to_the_freezing_point_agree_within_a_thousandth() -> None:
    """A path seen once per sweep and its overshoot; a relay that sees it at all times."""
    states, relay = (shipped.stored_numbers("mean_field", key) for key in ("curve", "relay"))
    couplings = [Estimate(*pair, Tier.ESTIMATED, "stored") for pair in states["couplings"]]
    once = fitted_curve(states["rates"], couplings).freezing
    always = Estimate(*relay["jd"], Tier.ESTIMATED, "stored")
    assert once.error < 1e-3
    assert always.error < 1e-3
    assert abs(once.value - always.value) < 2 * math.hypot(once.error, always.error)
    joint = stored_theory()[0].freezing
    assert joint.error < min(once.error, always.error)
    assert min(once.value, always.value) < joint.value < max(once.value, always.value)


def test_the_freezing_point_is_one_number_everywhere() -> None:
    joint = stored_theory()[0].freezing
    text = f"{joint.value:.4f}({round(1e4 * float(joint.error))})"
    root = Path(__file__).resolve().parents[2]
    for page in ("README.md", "docs/mean-field.md", "docs/figures.md"):
        assert text in (root / page).read_text("utf-8"), (page, text)
    (row,) = [row for row in shipped_tables()["freezing"] if row["layers"] == 1]
    assert (row["jd"], row["jd_error"]) == (joint.value, joint.error)


def test_half_points_of_networks_are_those_of_the_theory() -> None:
    """J_50 of networks, 1000 sweeps; all sizes stop at the same n."""
    curve, law = stored_theory()
    wanted = law.flips_at(1000)
    for size, (value, error) in MEASURED.items():
        point = half_point(size, 1000)
        # The stated error, and a narrower one that the coefficient was chosen for.
        assert abs(float(point.value) - value) < 2 * math.hypot(float(point.error), error), size
        assert abs(float(point.value) - value) < 2 * math.hypot(0.003, error), size
        rate = float(curve.rate(value).value)
        n = counted_flips(size, rate, value)
        of_n = 2 * n * error / (curve.freezing.value - value)
        assert abs(n - float(wanted.value)) < 2 * math.hypot(of_n, float(wanted.error)), size


def test_networks_of_other_sizes_stop_as_the_law_says() -> None:
    """N = 120, 300 and 700, from which nothing was read: all shares at 1000 sweeps."""
    curve, law = stored_theory()
    stored = json.loads((shipped.FOLDER / "chance_stops.json").read_text("utf-8"))
    scores, plain = [], []
    for piece in stored.values():
        settings = piece["settings"]
        last = settings["caps"].index(1000)
        for jd, row in zip(settings["jd"], piece["result"]["stopped"], strict=True):
            if jd < float(curve.couplings[0].value):
                continue
            f = float(curve.rate(jd).value)
            n = counted_flips(settings["n"], f, jd)
            if not law.least <= n <= law.most:
                continue
            # log w = log(-log(1 - P)/T): an error of P/(T w) ... by the delta method.
            share = (row[last] + 0.5) / (settings["samples"] + 1)
            spread = math.sqrt(share / ((1 - share) * settings["samples"])) / -math.log1p(-share)
            measured = math.log(-math.log1p(-share) / 1000)
            error = math.hypot(spread, float(law.rate(n).error) / float(law.rate(n).value))
            scores.append((measured - math.log(float(law.rate(n).value))) / error)
            bare = settings["n"] * f
            plain.append((measured + float(law.alpha.value) + float(law.beta.value) * bare) / error)
    assert len(scores) >= 6
    assert np.max(np.abs(scores)) < 3.5
    # Without the correction in 1/sqrt(N) the law is many errors away.
    assert np.sqrt(np.mean(np.square(plain))) > 3 * np.sqrt(np.mean(np.square(scores)))


#: Paper, SM-H, column 'Initialization': median and quartiles.
PRINTED = {tuple(map(float, row[:3])): tuple(map(float, row[3].split())) for row in QDYN_TABLE}


@pytest.mark.parametrize("row", PRINTED, ids=str)
def test_overlaps_at_initialisation_are_those_of_paper_and_networks(
    row: tuple[float, float, float],
) -> None:
    """Theory within .006 of the paper, and within 2 errors + O(N^(-1/2)) of our networks."""
    stored = shipped.stored_numbers("overlaps", shipped.overlap_key(*row))
    finite = stored["N=1600"]
    for name, printed in zip(("median", "q25", "q75"), PRINTED[row], strict=True):
        value, error = finite[name]
        assert error < 0.003
        assert abs(value - printed) < 0.003, name
    limit, its = stored["limit"]
    assert its < 0.003
    # The limit itself: the paper's network has N = 1600, which at lambda_x = 2, J_D = .5 is far
    # from it, by some .4 N^(-1/2) (next test).
    far = row[:2] == (0.5, 2.0)
    assert abs(limit - PRINTED[row][0]) < (0.4 / 40 + 2 * its if far else 0.006)
    # Ours, N = 1600, as stored in the published claims.
    key = claim_id("qdyn {} {} {} 0 median".format(*row))
    (ours,) = [one for one in PUBLISHED if one["id"] == key]
    error = math.hypot(ours["error"], finite["median"][1])
    assert abs(ours["value"] - finite["median"][0]) < 2 * error
    assert abs(ours["value"] - limit) < 2 * math.hypot(ours["error"], its) + 0.4 / 40


def test_overlaps_of_frozen_networks_approach_the_limit_as_a_root() -> None:
    """J_D = .5: a + b N^(-1/2) + c/N from N = 400 on goes through the limit of large batches."""
    for row in PRINTED:
        if row[0] == 0:
            continue
        stored = shipped.stored_numbers("overlaps", shipped.overlap_key(*row))
        sizes = np.array([400.0, 800, 1600, 3200, 400_000])
        value, error = np.array([stored[f"N={n:.0f}"]["mean"] for n in sizes]).T
        root = weighted_fit([1, sizes**-0.5, 1 / sizes], value, error)
        assert root.p_value > 0.01
        assert root.coefficients[0] == pytest.approx(stored["limit"][0], abs=1e-5)
        if row[1] == 2:
            plain = weighted_fit([1, 1 / sizes], value, error)
            assert plain.p_value < 1e-4
            assert 0.3 < root.coefficients[1] < 0.6


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
    # Out of time: nothing is begun.
    monkeypatch.setitem(shipped.TABLES, "squares", [shipped.Piece("x=2", square, {"x": 5})])
    assert shipped.ship("squares", file, minutes=-1) == []


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


def test_boundaries_are_the_critical_couplings_on_record() -> None:
    """Every row is in a bracket of docs/_static/answered_critical.csv, or in one of one layer."""
    file = Path(__file__).resolve().parents[2] / "docs" / "_static" / "answered_critical.csv"
    with file.open(newline="") as text:
        records = [row for row in csv.DictReader(text) if row["answer"] == "bracket"]
    core = {row["kind"]: row for row in records if row["layers"] == "1"}
    by_place = {
        (row["layers"], row["kind"], row["coupling"], float(row["other"] or 0)): row
        for row in records
    }
    rows = shipped_tables()["boundary"]
    for row in rows:
        coupling, other = ("jd", "lam") if row["lam_error"] == 0 else ("lam", "jd")
        place = (str(row["layers"]), row["kind"], coupling, float(row[other]))
        record = core[row["kind"]] if row["lam"] == 0 else by_place[place]
        low, high = float(record["low"]), float(record["high"])
        assert low <= row[coupling] <= high, row
        assert row[f"{coupling}_error"] >= 0.45 * (high - low), row
    # Enough for a smooth line at every depth.
    for layers in (2, 3, "inf"):
        assert sum(r["layers"] == layers and r["kind"] == "rm" for r in rows) >= 8


def test_the_dip_of_the_duality_comes_with_the_margin() -> None:
    """Without self-coupling, three epochs: a margin of 0.9 + lambda costs what 1.9 costs at 0."""
    stored = json.loads((shipped.FOLDER / "duality_margins.json").read_text("utf-8"))
    mean = {
        key: float(np.mean([row[-1] for row in piece["result"]["test_accuracy"]]))
        for key, piece in stored.items()
    }
    assert len(mean) == len(shipped.TABLES["duality_margins"])
    assert mean["lam=1 kappa=1.9"] < 0.5 * mean["lam=0 kappa=0.9"]
    assert abs(mean["lam=0 kappa=1.9"] - mean["lam=1 kappa=1.9"]) < 0.05
    assert mean["lam=1 kappa=0.9"] > 0.9 * mean["lam=0 kappa=0.9"]
