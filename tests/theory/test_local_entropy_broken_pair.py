"""The branch q0 > 0 of two layers: against one layer, q0 = 0, its own derivatives, and M0."""

import math

import numpy as np
import pytest

from rmtheory import Chain
from rmtheory.local_entropies.broken import solve_ystar
from rmtheory.local_entropies.broken_averages import BrokenMoments, broken_moments
from rmtheory.local_entropies.pair import pair_m0, pair_moments

pytestmark = pytest.mark.numerical

#: d, y, qhat1, q0, qhat0
POINT = (0.1, 5.2, 0.14, 0.134, 0.0015)


def test_without_a_coupling_it_is_two_cores() -> None:
    core = broken_moments(Chain(1, 0.1), *POINT, 2)
    pair = broken_moments(Chain(2, 0.1, 0.0), *POINT, 1)
    for name in ("phi", "internal", "external", "slope", "overlap1", "overlap0", "force0"):
        assert getattr(pair, name) == pytest.approx(getattr(core, name), abs=1e-5), name
    assert pair.replicon() == pytest.approx(core.replicon(), abs=1e-5)


def test_without_q0_it_is_the_functional_of_q0_zero() -> None:
    chain, (d, y, qhat1, *_) = Chain(2, 0.05, 0.3), POINT
    broken = broken_moments(chain, d, y, qhat1, 0.0, 0.0, 2)
    known = pair_moments(chain.jd, 0.3, 0.3, d, y, np.array([qhat1]), 3)
    assert broken.phi == pytest.approx(known.phi, abs=1e-7)
    assert broken.external == pytest.approx(known.external, abs=1e-6)
    assert broken.slope == pytest.approx(known.slope, abs=1e-6)


def test_without_q0_the_replicon_is_m0() -> None:
    """At the saddle, where M0 is defined."""
    chain, d, y, qhat1 = Chain(2, 0.05, 0.3), 0.1, 5.0, 0.0
    low, high = 0.05, 0.5
    for _ in range(40):  # <m^2> = q1
        qhat1 = 0.5 * (low + high)
        moments = pair_moments(chain.jd, 0.3, 0.3, d, y, np.array([qhat1]), 2)
        low, high = (qhat1, high) if moments.saddle_residual[0] < 0 else (low, qhat1)
    matrix, _ = pair_m0(chain, d, y, np.array([qhat1]), 2)
    least = float(np.linalg.eigvalsh(matrix)[0])
    # Overlaps of both layers grow together.
    assert np.linalg.eigh(matrix)[1][:, 0] == pytest.approx(
        [math.sqrt(0.5)] * 2, abs=1e-6
    ) or np.linalg.eigh(matrix)[1][:, 0] == pytest.approx([-math.sqrt(0.5)] * 2, abs=1e-6)
    replicon = broken_moments(chain, d, y, qhat1, 0.0, 0.0, 1).replicon()
    assert replicon == pytest.approx(least, abs=1e-5)


def test_the_stated_derivatives_are_those_of_phi() -> None:
    chain, (d, y, qhat1, q0, qhat0) = Chain(2, 0.05, 0.3), POINT
    result = broken_moments(chain, *POINT, 0)

    def slope(place: int) -> float:
        step = 1e-3 * POINT[place]
        ends = []
        for sign in (1, -1):
            moved = list(POINT)
            moved[place] += sign * step
            ends.append(broken_moments(chain, *moved, 0).phi)
        return (ends[0] - ends[1]) / (2 * step)

    # The coarse rule misses the slopes by its error, some 1e-5 of phi.
    assert slope(2) == pytest.approx((y - 1) / 2 * (result.overlap1 - (1 - 2 * d)), abs=3e-3)
    assert slope(4) == pytest.approx(y / 2 * (q0 - result.overlap0), abs=3e-3)
    assert slope(3) == pytest.approx(y / 2 * (qhat0 - result.force0), abs=1e-3)
    assert -y * y * slope(1) == pytest.approx(result.external, abs=3e-3)
    assert qhat1 > qhat0


def test_y_star_of_two_layers() -> None:
    """J_D = 0, lambda = 1/2, d = .1: q0 lowers S_I* by 1.796e-5, and breaks further."""
    start = np.array([math.log(0.143), math.log(0.167 / 0.833), math.log(0.0103), math.log(5.18)])
    solved: BrokenMoments = solve_ystar(Chain(2, 0.0, 0.5), 0.1, start, 1).moments
    assert solved.q0 == pytest.approx(0.13364, abs=2e-4)
    assert solved.y == pytest.approx(5.1833, abs=2e-3)
    assert solved.phi - 0.0218732663 == pytest.approx(-1.796e-5, abs=1e-6)
    assert solved.slope > 0.1
    assert solved.replicon() == pytest.approx(-0.0243, abs=1e-3)
