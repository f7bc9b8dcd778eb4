"""Honest errors: against finer rules and more digits the true error is below the one reported.

At random points: a few dozen of each kind, 25 times as many with --hypothesis-profile=thorough.
"""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import settings

from rmtheory import Chain
from rmtheory.base.arithmetic import have_flint
from rmtheory.local_entropies.functional import Moments, Refined
from rmtheory.local_entropies.precise import precise_point, precise_ystar
from rmtheory.local_entropies.quadrature import FINEST
from rmtheory.local_entropies.solve import (
    CurveTracker,
    functional,
    guess_qhat,
    refine_saddle,
    refine_ystar,
    solve_saddle,
    solve_ystar,
)

pytestmark = pytest.mark.numerical

POINT = ("phi", "internal", "external", "qhat")
STAR = ("phi", "y", "slope", "qhat")


def many(few: int) -> int:
    """Return how many random points are tried where the suite tries a `few`."""
    return few * settings().max_examples // 40


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def excess(solved: Refined, reference: Moments, names: tuple[str, ...]) -> dict[str, float]:
    """Return the quantities whose true error is above the reported one, with the ratio."""
    ratios = {}
    for name in names:
        true = np.abs(getattr(solved.moments, name) - getattr(reference, name))
        ratios[name] = float(np.max(true / getattr(solved, f"{name}_error")))
    return {name: ratio for name, ratio in ratios.items() if ratio > 1}


def core_points(count: int, seed: int) -> Iterator[tuple[float, float, float]]:
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield (
            float(rng.uniform(0, 1)),
            log_uniform(rng, 5e-4, 0.48),
            log_uniform(rng, 0.3, 40),
        )


@pytest.mark.parametrize("tol", [1e-11, 1e-6])
def test_points_of_the_core(tol: float) -> None:
    for jd, d, y in core_points(many(60), 1):
        model = functional(Chain(1, jd))
        solved = refine_saddle(model, d, y, guess_qhat(model, d, y), tol)
        finer = solve_saddle(model, d, y, solved.moments.qhat, FINEST, solved.inverse).moments
        assert not excess(solved, finer, POINT), (jd, d, y, solved.level)


@pytest.mark.parametrize("tol", [1e-11, 1e-6])
def test_y_star_of_the_core(tol: float) -> None:
    rng = np.random.default_rng(2)
    for _ in range(many(25)):
        jd, d = float(rng.uniform(0, 0.4)), log_uniform(rng, 1e-3, 0.48)
        model = functional(Chain(1, jd))
        solved = CurveTracker(model).solve(d, tol)
        moments = solved.moments
        finer = solve_ystar(model, d, moments.y, moments.qhat, FINEST, solved.inverse).moments
        assert not excess(solved, finer, STAR), (jd, d, solved.level)


@pytest.mark.skipif(not have_flint(), reason="slow without python-flint")
def test_points_of_the_core_against_more_digits() -> None:
    # Where the finer rule shares a fault with the coarser, the rule for many digits does not.
    for jd, d, y in core_points(many(6), 3):
        y = max(y, 1.0)
        model = functional(Chain(1, jd))
        solved = refine_saddle(model, d, y, guess_qhat(model, d, y), 1e-11)
        exact = precise_point(jd, d, y, 16)
        for name in ("phi", "internal", "external"):
            true = abs(getattr(solved.moments, name) - float(getattr(exact, name)))
            assert true <= getattr(solved, f"{name}_error"), (name, jd, d, y)
        assert abs(solved.moments.qhat[0] - float(exact.qhat)) <= solved.qhat_error[0], (jd, d, y)


@pytest.mark.skipif(not have_flint(), reason="slow without python-flint")
def test_y_star_of_the_core_against_more_digits() -> None:
    rng = np.random.default_rng(4)
    for _ in range(many(4)):
        jd, d = float(rng.uniform(0, 0.4)), log_uniform(rng, 2e-3, 0.48)
        solved = CurveTracker(functional(Chain(1, jd))).solve(d, 1e-11)
        exact = precise_ystar(jd, d, 16)
        assert abs(solved.moments.phi - float(exact.internal)) <= solved.phi_error, (jd, d)
        assert abs(solved.moments.y - float(exact.y_star)) <= solved.y_error, (jd, d)
        assert abs(solved.moments.slope - float(exact.slope)) <= solved.slope_error, (jd, d)


@pytest.mark.parametrize(("jd", "d"), [(0.004216088138856455, 0.011299339141581209), (0.02, 0.014)])
def test_a_start_at_the_solution_does_not_hide_the_error(jd: float, d: float) -> None:
    """The coarse level then takes no step; it must not be taken to agree with the fine one."""
    model = functional(Chain(1, jd))
    first = CurveTracker(model).solve(d, 1e-6)
    again = refine_ystar(model, d, first.moments.y, first.moments.qhat, 1e-6)
    exact = solve_ystar(model, d, first.moments.y, first.moments.qhat, FINEST, first.inverse)
    assert not excess(again, exact.moments, STAR)
    assert again.y_error > 0.3 * first.y_error


@pytest.mark.parametrize(
    ("jd", "d", "y"),
    [
        (1.0129342207192225, 0.0002704865084843246, 0.8198307239605122),
        (0.9880629361057787, 0.0005515649692940847, 0.3244276489578583),
        (0.6282326606315056, 0.001290058644228201, 0.4319355955423731),
        (1.3844819299136852, 0.00013420932859140817, 0.30887127299597494),
        (-0.011355066860993857, 0.0008331624353905994, 16.27170502960283),
    ],
)
def test_a_number_that_stands_still_by_accident(jd: float, d: float, y: float) -> None:
    """Here qhat or phi hardly moves from one level to the next, but the others do."""
    model = functional(Chain(1, jd))
    solved = refine_saddle(model, d, y, guess_qhat(model, d, y), 1e-6)
    finer = solve_saddle(model, d, y, solved.moments.qhat, FINEST, solved.inverse).moments
    assert not excess(solved, finer, POINT)


def pair_chain(rng: np.random.Generator) -> Chain:
    jd, left, right = float(rng.uniform(0, 0.2)), *map(float, rng.uniform(0.1, 0.7, 2))
    if rng.random() < 0.6:
        return Chain(2, jd, left)
    return Chain(2, jd, lam_left=left, lam_right=right)


def test_points_of_two_layers() -> None:
    rng = np.random.default_rng(5)
    for _ in range(many(8)):
        chain, d, y = pair_chain(rng), log_uniform(rng, 0.02, 0.45), log_uniform(rng, 0.8, 8)
        model = functional(chain)
        solved = refine_saddle(model, d, y, guess_qhat(model, d, y), 1e-7)
        qhat, level = solved.moments.qhat, solved.level + 1
        finer = solve_saddle(model, d, y, qhat, level, solved.inverse).moments
        assert not excess(solved, finer, POINT), (chain, d, y, solved.level)


def test_nine_digits_of_two_layers() -> None:
    rng = np.random.default_rng(6)
    for _ in range(many(2)):
        chain, d, y = Chain(2, 0.05, 0.4), log_uniform(rng, 0.05, 0.4), log_uniform(rng, 1, 4)
        model = functional(chain)
        solved = refine_saddle(model, d, y, guess_qhat(model, d, y), 1e-9)
        qhat, level = solved.moments.qhat, solved.level + 1
        finer = solve_saddle(model, d, y, qhat, level, solved.inverse).moments
        assert not excess(solved, finer, POINT), (chain, d, y, solved.level)


def test_y_star_of_two_layers() -> None:
    rng = np.random.default_rng(7)
    for _ in range(many(4)):
        chain, d = pair_chain(rng), log_uniform(rng, 0.02, 0.45)
        model = functional(chain)
        solved = CurveTracker(model).solve(d, 1e-7)
        moments, level = solved.moments, solved.level + 1
        finer = solve_ystar(model, d, moments.y, moments.qhat, level, solved.inverse).moments
        assert not excess(solved, finer, STAR), (chain, d, solved.level)


def test_the_errors_are_not_blown_up() -> None:
    """An error can also be dishonest by being huge."""
    model = functional(Chain(1, 0.1))
    solved = refine_saddle(model, 0.1, 3.0, guess_qhat(model, 0.1, 3.0), 1e-11)
    assert solved.phi_error < 1e-13
    assert solved.internal_error < 1e-11
    assert solved.external_error < 1e-11
    star = CurveTracker(model).solve(0.1, 1e-11)
    assert star.phi_error < 1e-13
    assert star.y_error < 1e-9
    assert star.slope_error < 1e-10
