"""Large J_D, small d, y < 1 and y beyond the operator: answered, and right by an independent rule.

The rule is that of tests/local_entropy_rule.py. A few of its 200 random points are compared here,
all of them by ``python docs/_ext/answered.py rule``.
"""

import math

import numpy as np
import pytest
from scipy import special

from rmtheory import Chain, NotConvergedError
from rmtheory.local_entropies import core, pair
from rmtheory.local_entropies.broken_branch import broken_ystar
from rmtheory.local_entropies.core import core_moments
from rmtheory.local_entropies.pair import pair_moments
from rmtheory.local_entropies.points import ystar
from rmtheory.local_entropies.replicated import replicated_ladder
from rmtheory.local_entropies.solve import CurveTracker, functional
from tests.local_entropy_rule import Referee, compare

pytestmark = pytest.mark.numerical


def binary_entropy(p: float) -> float:
    return -p * math.log(p) - (1 - p) * math.log(1 - p)


# Random points.


def test_the_slope_keeps_its_digits_where_y_star_is_beyond_all_bounds() -> None:
    """Terms of order y^2 were once counted as its rounding: an error of 3 where 1e-5 is due."""
    d = 1e-3
    point = ystar(Chain(1, 1.5), d)
    assert point.y_star_is_bound
    free = math.atanh(math.sqrt(1 - 2 * d)) / math.sqrt(1 - 2 * d)
    assert abs(float(point.slope) - free) < float(point.slope.error) < 1e-4


def test_some_random_points_against_the_independent_rule() -> None:
    """Six of one layer, two of two and one of three; the record of all 200 is in the docs."""
    rng = np.random.default_rng(16)
    which = [int(k) for k in rng.choice(120, 6, replace=False)] + [121, 131, 173]
    far = [each for k in which for each in compare(k) if each.errors_apart > 3]
    assert far == []


# One layer at large J_D and small d.


@pytest.mark.parametrize(
    ("jd", "d", "y", "qhat"),
    [(0.5, 0.001, 3000.0, 0.0015), (1.0, 0.2, 300.0, 0.006), (2.0, 0.3, 5e3, 2.6e-4)],
)
def test_windows_and_the_full_rule_agree(
    jd: float, d: float, y: float, qhat: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = []
    for most in (10**9, 0):
        monkeypatch.setattr(core, "_DENSE", most)
        both.append(core_moments(jd, d, y, np.array([qhat]), 3))
    full, windows = both
    for name in ("log_norm", "mean_log", "one_minus_m2", "forces"):
        expected = np.asarray(getattr(full, name))
        assert np.asarray(getattr(windows, name)) == pytest.approx(expected, rel=1e-10), name


def test_large_integer_y_is_a_sum_over_occupations() -> None:
    """Y replicas, m of them up: the integral over t is exp(qhat (2m - y)^2/2)."""
    jd, d, y, qhat = 1.2, 0.03, 4000, 8e-4
    rule = Referee(Chain(1, jd), d, y, 12)
    x, log_x = rule.fields(0.0)
    m = np.arange(y + 1.0)
    up, down = (special.log_ndtr((jd + s * x) / rule.sigma) for s in (1, -1))
    log_choose = special.gammaln(y + 1) - special.gammaln(m + 1) - special.gammaln(y - m + 1)
    tilt = 0.5 * qhat * ((2 * m - y) ** 2 - y**2) + log_choose
    norm = special.logsumexp(
        [
            special.logsumexp(tilt + m * a + (y - m) * b) + w
            for a, b, w in zip(up, down, log_x, strict=True)
        ]
    )
    ours = core_moments(jd, d, float(y), np.array([qhat]), 4).log_norm
    assert ours == pytest.approx(norm, rel=1e-10)


@pytest.mark.parametrize(("jd", "d"), [(2.0, 1e-3), (1.0, 2e-4)])
def test_where_every_site_may_flip_the_entropy_is_that_of_the_distance(jd: float, d: float) -> None:
    """y* is beyond all bounds, and S_I* the entropy around a centre at overlap sqrt(q1)."""
    point = ystar(Chain(1, jd), d)
    assert point.y_star_is_bound
    limit = binary_entropy(0.5 * (1 - math.sqrt(1 - 2 * d)))
    assert abs(float(point.internal.value) - limit) <= point.internal.error
    slope = math.atanh(math.sqrt(1 - 2 * d)) / math.sqrt(1 - 2 * d)
    assert abs(float(point.slope.value) - slope) <= 3 * float(point.slope.error)
    with pytest.raises(NotConvergedError, match="branch q0 > 0 cannot be computed"):
        broken_ystar(Chain(1, jd), d)


# Two layers.


@pytest.mark.parametrize(
    ("jd", "left", "right", "d", "y", "qhat"),
    [
        (0.3, 0.2, 0.4, 0.1, 3.3, [0.3, 0.35]),
        (0.3, 0.2, 0.2, 0.05, 0.6, [9.0]),
        (0.6, 0.3, 0.3, 0.02, 100.0, [0.018]),
    ],
)
def test_integrating_t_first_is_the_same(
    jd: float,
    left: float,
    right: float,
    d: float,
    y: float,
    qhat: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = []
    for most in (10**12, 0):
        monkeypatch.setattr(pair, "MOST_PAIRS", most)
        both.append(pair_moments(jd, left, right, d, y, np.array(qhat), 2, tangent=True))
    pairs, nested = both
    for name in ("log_norm", "mean_log", "one_minus_m2", "forces"):
        expected = np.asarray(getattr(pairs, name))
        assert np.asarray(getattr(nested, name)) == pytest.approx(expected, rel=3e-9), name
    jacobians = pairs.ystar_jacobian(), nested.ystar_jacobian()
    assert jacobians[1] == pytest.approx(jacobians[0], rel=0.02, abs=1e-3)


# Beyond the largest y of the transfer operator: integer y.


@pytest.mark.parametrize(
    ("jd", "d"), [(0.354, 0.2325), (0.5, 0.1), (0.5, 0.05), (1.0, 0.3), (0.27, 0.0082), (1.4, 0.01)]
)
def test_the_continuation_in_one_over_y_is_honest(jd: float, d: float) -> None:
    """One layer, where the integral gives any y*; the first, y* = 37, is between the integers."""
    chain = Chain(1, jd)
    there = replicated_ladder(chain, d).star()
    direct = ystar(chain, d, check_zeros=False)
    assert abs(there.phi - float(direct.internal.value)) <= there.phi_error
    assert abs(there.slope - float(direct.slope.value)) <= there.slope_error
    if not there.bound:
        assert abs(there.y - float(direct.y_star.value)) <= there.y_error


@pytest.mark.parametrize("chain", [Chain(1, 0.1), Chain(2, 0.0, 0.5), Chain(2, 0.05, 0.3)])
@pytest.mark.parametrize("d", [0.1, 0.01])
def test_integers_give_ystar_without_the_integral(chain: Chain, d: float) -> None:
    """Between the integers phi is interpolated: y*, S_I* and slope by sums alone."""
    there = replicated_ladder(chain, d).star()
    direct = CurveTracker(functional(chain)).solve(d, 1e-8).moments
    assert abs(there.y - direct.y) <= there.y_error
    assert abs(there.phi - direct.phi) <= there.phi_error < 1e-5
    assert abs(there.slope - direct.slope) <= there.slope_error + 1e-6


def test_beyond_the_operator_the_integers_answer() -> None:
    """Refused by version 0.1, y* = 39; the transfer operator up to y = 27 gave .09222(3)."""
    point = ystar(Chain(3, 0.1, 0.3), 0.4)
    assert float(point.internal) == pytest.approx(0.0922209, abs=1e-6)
    assert point.internal.error < 5e-6
    assert "integer y" in point.internal.method
