"""Critical couplings as brackets, and the values of the phase diagram."""

import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rmtheory import Chain, InvalidInputError, NotConvergedError, OutsideValidityError
from rmtheory.local_entropies import boundaries
from rmtheory.local_entropies.boundaries import KINDS, Gap, RepresentationManifold, Seed
from rmtheory.local_entropies.curves import Monotonicity, Verdict, monotonicity
from rmtheory.local_entropies.diagram import (
    BoundaryPoint,
    Request,
    boundary_point,
    compute_phase_diagram,
    ray,
)
from rmtheory.local_entropies.points import ystar
from rmtheory.local_entropies.thresholds import Critical, bracket, critical_coupling

pytestmark = pytest.mark.numerical

CORE_RM, CORE_GAP = 0.073107699, 0.060099202


def assert_opposite(found: Critical) -> None:
    assert found.at_low.value < -found.at_low.error < 0
    assert found.at_high.value > found.at_high.error > 0


# --- the core


@pytest.fixture(scope="module")
def core() -> Critical:
    """The threshold with its verdicts, which take seconds."""
    return critical_coupling(1, "jd")


def test_the_core(core: Critical) -> None:
    found = core
    assert found.low <= CORE_RM <= found.high
    assert 0 < found.high - found.low <= 1e-9
    assert_opposite(found)
    # The verdicts are opposite, by the route that scans all distances.
    assert found.checked
    assert found.verdicts == ("not monotone", "monotone")
    assert monotonicity(Chain(1, found.low)).verdict is Verdict.NOT_MONOTONE
    assert monotonicity(Chain(1, found.high)).verdict is Verdict.MONOTONE
    # The touching point lies on the curve.
    at = ystar(Chain(1, found.high), found.d.value)
    assert abs(at.slope.value) < 1e-6
    assert abs(at.internal.value - found.internal.value) <= found.internal.error
    assert abs(at.y_star.value - found.y_star.value) <= found.y_star.error
    # It is a minimum of the slope.
    for factor in (0.8, 1.25):
        assert ystar(Chain(1, found.high), factor * found.d.value).slope.value > 1e-3


def test_the_least_slopes_of_the_core_to_more_digits(core: Critical) -> None:
    """Float64 leaves half of each slope uncertain; more digits settle the signs, and agree."""
    found = core
    for end, least in ((found.low, found.at_low), (found.high, found.at_high)):
        slope = ystar(Chain(1, end), found.d.value, 15).slope
        assert abs(slope.value - least.value) <= least.error + slope.error
        assert slope.error < 1e-15 < abs(slope.value)


def test_the_gap_of_the_core() -> None:
    found = critical_coupling(1, "jd", kind="gap")
    assert found.low <= CORE_GAP <= found.high
    assert 0 < found.high - found.low <= 1e-9
    assert_opposite(found)
    d = found.d.value
    assert ystar(Chain(1, found.low), d).internal.value < 0
    for factor in (0.8, 1, 1.25):
        assert ystar(Chain(1, found.high), factor * d).internal.value > 0
    assert abs(ystar(Chain(1, found.high), d).slope.value) < 1e-4
    assert abs(found.internal.value) <= found.internal.error


def test_the_bracket_does_not_depend_on_the_guess() -> None:
    for guess in (0.07, 0.08):
        found = bracket(lambda x: Chain(1, x), RepresentationManifold(), guess, 1e-6, 1e-11)
        assert found.low < CORE_RM < found.high
        assert found.value == pytest.approx(CORE_RM, abs=1e-7)
    seed = found.seed
    again = bracket(lambda x: Chain(1, x), RepresentationManifold(), 0.0735, 1e-6, 1e-11, seed)
    assert again.low < CORE_RM < again.high
    assert seed.rate > 0


def test_a_bracket_says_whether_its_curves_were_judged() -> None:
    quick = critical_coupling(1, "jd", width=1e-4, verdicts=False)
    assert not quick.checked
    assert quick.verdicts == ("unchecked", "unchecked")
    # The gap is defined by the least S_I* alone.
    assert not critical_coupling(1, "jd", kind="gap", width=1e-4).checked


def test_verdicts_that_are_not_opposite_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = boundaries.monotonicity

    def undecided(chain: Chain, **options: Any) -> Monotonicity:
        return replace(judge(chain, **options), verdict=Verdict.UNDECIDED)

    monkeypatch.setattr(boundaries, "monotonicity", undecided)
    with pytest.raises(NotConvergedError, match=r"verdicts on .*0\.07.* undecided and und"):
        critical_coupling(1, "jd", width=1e-4)


def test_a_width_below_the_errors_is_refused() -> None:
    with pytest.raises(NotConvergedError, match="is not resolved to 1e-12"):
        bracket(lambda jd: Chain(1, jd), boundaries.boundary_of("rm"), 0.0731, 1e-12, 1e-11)
    with pytest.raises(InvalidInputError, match=r"width must be between 1e-10 and 0\.01"):
        critical_coupling(1, "jd", width=1e-12)


# --- two layers


def test_lambda_c_without_self_coupling() -> None:
    found = critical_coupling(2, "lam", jd=0.0, width=1e-4, verdicts=False)
    assert found.low < 0.452424 < found.high
    assert 0.45238 <= found.low < found.high <= 0.45247
    assert_opposite(found)
    assert found.d.value == pytest.approx(0.0059, abs=1e-4)


def test_verdicts_at_a_small_self_coupling() -> None:
    """Where windows of width J_D are smeared by sqrt(2d), which sharp ones do not describe."""
    result = monotonicity(Chain(2, 0.01, 0.43), d_max=0.01)  # the threshold is 0.42577
    assert result.verdict is Verdict.MONOTONE
    assert result.least_slope.value > result.least_slope.error
    assert abs(result.difference) < 1e-2


def test_a_known_negative_slope_settles_the_verdict() -> None:
    found = bracket(lambda x: Chain(1, x), RepresentationManifold(), 0.0731, 1e-6, 1e-11)
    result = monotonicity(Chain(1, found.low), dip=found.at_low)
    assert result.verdict is Verdict.NOT_MONOTONE
    assert result.d_join is None
    assert "not needed: the slope is negative" in result.join
    # A dip that is not the deepest of the curve is not believed.
    elsewhere = replace(found.at_high, d=0.05, value=1.0)
    assert monotonicity(Chain(1, 0.07), dip=elsewhere).verdict is Verdict.NOT_MONOTONE


def test_a_refusal_prints_the_digits_it_has() -> None:
    """Half the width of the bracket is the error of its middle: .45243, not .452465."""
    with pytest.raises(OutsideValidityError, match=r"threshold 0\.0731\d+ ± \de-10 at lam = 0"):
        critical_coupling(2, "lam", jd=0.0735)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layers": 0, "coupling": "jd"}, "layers must be an integer >= 1 or inf"),
        ({"layers": 1, "coupling": "lam"}, "coupling must be jd for one layer"),
        ({"layers": 1, "coupling": "jd", "lam": 0.2}, "lam must be absent for one layer"),
        ({"layers": 1, "coupling": "jd", "width": 0.1}, "width must be between 1e-10 and 0.01"),
        ({"layers": 2, "coupling": "jd"}, "lam must be given when jd is sought"),
        ({"layers": 2, "coupling": "lam"}, "jd must be given when lam is sought"),
        ({"layers": 2, "coupling": "lam", "jd": -0.1}, "jd must be at least 0"),
        ({"layers": 2, "coupling": "mu", "jd": 0.1}, "coupling must be jd or lam"),
        ({"layers": 1, "coupling": "jd", "kind": "mu"}, "kind must be rm or gap"),
    ],
)
def test_bad_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        critical_coupling(**arguments)  # type: ignore[arg-type]


# --- the phase diagram


def near_the_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take rays close together, where a point costs a few seconds."""
    monkeypatch.setattr(Request, "angles", lambda self: [0.0, 0.1, 0.2])


def test_rays(tmp_path: Path) -> None:
    assert ray("rm", 2, math.pi / 2, 1.0).jd == 0
    assert ray("gap", 2, 0.0, 1.0).lam_left == 0
    assert Request(5, 1e-3).angles() == pytest.approx(np.linspace(0, math.pi / 2, 5))
    for points, width in ((2, 1e-3), (5, 1e-7), (5, 0.1)):
        with pytest.raises(InvalidInputError):
            Request(points, width)
    with pytest.raises(InvalidInputError, match="jobs must be an integer >= 1"):
        compute_phase_diagram(Request(3, 1e-3), tmp_path / "parts", jobs=0)
    assert not (tmp_path / "parts").exists()


def test_the_phase_diagram(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    near_the_axis(monkeypatch)
    request, counts = Request(3, 1e-2), []
    whole = compute_phase_diagram(request, tmp_path / "a", progress=counts.append)
    assert counts == [1, 2, 3, 4, 5, 6]
    # On the J_D axis the pair code must find what the core code finds.
    for kind, core in (("rm", CORE_RM), ("gap", CORE_GAP)):
        end = whole.sel(kind=kind).isel(ray=0)
        assert float(end.lam) == 0
        assert abs(float(end.jd) - core) < float(end.jd_error)
        assert float(end.jd) == pytest.approx(core, abs=1e-5)
    assert np.all(np.diff(whole.jd.values) < 0)
    assert np.all(np.diff(whole.lam.values) > 0)
    assert np.all(whole.jd.sel(kind="gap") < whole.jd.sel(kind="rm"))
    # Killed before the last points: two processes go on to the same result.
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    parts = sorted((tmp_path / "b").glob("*-*.json"))
    assert len(parts) == 6
    for kind in KINDS:
        (tmp_path / "b" / f"{kind}-0.200000000.json").unlink()
    kept = {path: path.stat().st_mtime_ns for path in parts if path.exists()}
    assert len(kept) == 4
    counts.clear()
    again = compute_phase_diagram(request, tmp_path / "b", jobs=2, progress=counts.append)
    assert counts[-1] == 6
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    for name in whole.data_vars:
        assert again[name].values == pytest.approx(whole[name].values, rel=1e-6), name


def test_a_distant_neighbour_does_no_harm() -> None:
    """With three points half a right angle lies between neighbours."""
    request = Request(3, 1e-2)
    first = BoundaryPoint(
        kind="rm",
        theta=0.0,
        jd=0.0731077,
        lam=0.0,
        jd_error=2.9e-4,
        lam_error=0.0,
        d=0.00565852,
        d_error=1e-6,
        y_star=7.62036,
        y_star_error=1e-3,
        internal=0.00318026,
        internal_error=1e-6,
        qhat=(0.237488,),
        rate=1.13309,
        key=request.key,
    )
    point = boundary_point("rm", math.pi / 4, request, first)
    assert abs(point.jd - 0.0471537) < point.jd_error
    assert abs(point.lam - 0.2918238) < point.lam_error


def test_seeds_carry_over_between_couplings() -> None:
    """A seed for another number of unknowns is not used."""
    found = bracket(lambda x: Chain(1, x), Gap(), 0.06, 1e-5, 1e-10, Seed(0.0159, 4.66, (0.1, 0.2)))
    assert found.low < CORE_GAP < found.high


# --- three layers and more


def test_rays_of_deep_chains_begin_at_the_core() -> None:
    assert ray("rm", math.inf, 0.0, 1.0) == Chain(1, 0.0731)
    assert ray("rm", 3, math.pi / 2, 1.0).layers == 3
    assert Request(5, 1e-3, 3).key != Request(5, 1e-3).key
    with pytest.raises(InvalidInputError, match="layers must be at least 2"):
        Request(5, 1e-3, 1)
    with pytest.raises(InvalidInputError, match="jd must be given when lam is sought"):
        critical_coupling("inf", "lam")


def test_lambda_c_of_the_infinite_chain() -> None:
    """Between the values of a finer bracket, below that of two layers."""
    found = critical_coupling("inf", "lam", jd=0.0, width=1e-2, verdicts=False)
    assert found.low < 0.3526 < found.high
    assert_opposite(found)
    assert found.y_star.contains(8.27)
    assert found.d.value == pytest.approx(0.00726, abs=1e-4)


def test_critical_jd_of_three_layers() -> None:
    """Around the value that the replicated matrix confirms (test_deep_referee)."""
    found = critical_coupling(3, "jd", lam=0.2, width=1e-2, verdicts=False)
    assert found.low < 0.05837 < found.high
    assert_opposite(found)
    assert 0.5 * (found.low + found.high) == pytest.approx(0.05837, abs=1e-4)
