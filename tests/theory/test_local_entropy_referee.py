"""What a referee of the local entropy broke, and what holds since."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from rmtheory import Chain, InvalidInputError, OutsideValidityError
from rmtheory.cli import run
from rmtheory.local_entropies.curves import Verdict, monotonicity
from rmtheory.local_entropies.points import local_entropy, ystar
from rmtheory.local_entropies.solve import count_zeros, functional, refine_ystar
from rmtheory.local_entropies.thresholds import critical_coupling

pytestmark = pytest.mark.numerical


@pytest.mark.parametrize("y", ["0.5", "0.01", "1e-3", "1e-5"])
def test_errors_are_honest_at_small_y(y: str) -> None:
    """log of the integral has an absolute error, which phi = G/y magnifies."""
    chain = Chain(1, "0.1")
    double, many = local_entropy(chain, "0.1", y), local_entropy(chain, "0.1", y, digits=18)
    for name in ("phi", "internal", "external"):
        here, there = getattr(double, name), getattr(many, name)
        assert abs(float(here.value) - float(there.value)) <= here.error, name


@pytest.mark.parametrize("y", ["0.05", "0.01"])
def test_two_layers_at_small_y_are_two_cores_without_coupling(y: str) -> None:
    two, one = local_entropy(Chain(2, "0.3", 0), "0.2", y), local_entropy(Chain(1, "0.3"), "0.2", y)
    for name in ("phi", "internal", "external"):
        here, there = getattr(two, name), getattr(one, name)
        assert abs(float(here.value) - float(there.value)) <= here.error + there.error, name


@pytest.mark.parametrize(("jd", "d"), [(1.0, 0.45), (0.3, 0.48), (2.0, 0.4)])
def test_the_scan_for_zeros_does_not_lose_a_solved_point(jd: float, d: float) -> None:
    chain = Chain(1, jd)
    point = ystar(chain, d)
    qhat = [float(q) for q in point.qhat]
    solved = refine_ystar(functional(chain), d, float(point.y_star), np.array(qhat), 1e-10)
    assert count_zeros(functional(chain), solved.moments) == 1


@pytest.mark.parametrize("d", ["1e-5", "1e-6"])
def test_the_core_curve_reaches_small_distances(d: str) -> None:
    """y* is several 1e5 there, and S_I* still has twelve digits."""
    point = ystar(Chain(1, "0.1"), d)
    assert float(point.internal.error) < 1e-12 * float(point.internal.value) + 1e-14
    assert float(point.y_star) > 1e4


def test_no_threshold_is_said_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OutsideValidityError, match=r"no critical lam at jd = 0\.08.*0\.073107699"):
        critical_coupling(2, "lam", jd=0.08)
    assert run(["critical", "--layers", "2", "--jd", ".08", "--gap"]) == 1
    assert "there is no gap for every lam > 0" in capsys.readouterr().err


def test_a_threshold_next_to_the_axis() -> None:
    """The width of the default. Verdicts on whole curves next to it: docs/_ext/answered.py."""
    critical = critical_coupling(2, "lam", jd=0.073, verdicts=False)
    assert critical.low < 0.02021 < critical.high
    assert critical.high - critical.low < 1e-5
    assert float(critical.at_low.value) < -critical.at_low.error
    assert float(critical.at_high.value) > critical.at_high.error


def test_the_verdict_is_open_where_the_limit_is_not_known() -> None:
    """Above J_D = .6745 the dilute gas fits at some distances, but has no limit d -> 0."""
    result = monotonicity(Chain(1, 0.8))
    assert result.verdict is Verdict.UNDECIDED
    assert result.slope_gas > 0
    assert abs(result.difference) < 1e-2


def test_a_picture_that_cannot_be_drawn_is_refused_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--jd", ".1", "--points", "3", "--out", str(tmp_path / "c.nc")]
    assert run(["curve", *arguments, "--plot", str(tmp_path / "c.xyz")]) == 2
    assert "ending in .png, .pdf, .svg" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("d", ["1e-400", "1e-13", Fraction(1, 10**20)])
def test_distances_too_small_for_floats(d: str | Fraction) -> None:
    with pytest.raises(InvalidInputError, match=r"^d must be at least 1e-12"):
        ystar(Chain(1, 0.1), d)


def test_small_y_prints_no_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    """A warning is an error here, as everywhere in the tests."""
    chain = ["--layers", "2", "--jd", "0", "--lam", ".5"]
    assert run(["local-entropy", *chain, "--d", ".2", "--y", ".2"]) == 0
    assert capsys.readouterr().err == ""
