"""The vectorised float64 entropy against mpmath, in the middle and in the far tails."""

import math

import mpmath
import numpy as np
import pytest

from rmtheory import Chain, InvalidInputError, Tier
from rmtheory.annealed import entropy, entropy_array

pytestmark = pytest.mark.numerical

EPS = np.finfo(float).eps


def sample(seed: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Couplings of every scale, with equal, opposite and zero pairs among them."""
    rng = np.random.default_rng(seed)
    jd = rng.normal(size=size) * rng.choice([0.1, 1, 5, 40], size)
    left = rng.normal(size=size) * rng.choice([0.01, 0.3, 1, 5, 40], size)
    right = rng.normal(size=size) * rng.choice([0.01, 0.3, 1, 5, 40], size)
    kind = rng.integers(0, 5, size)
    right = np.where(kind == 0, left, np.where(kind == 1, -left, np.where(kind == 2, 0, right)))
    # Sums that cancel, found by a referee: the rounding of J + lambda counts.
    jd[8:10], left[8:10], right[8:10] = [-40, 1000.3], [-8.000817166385655, -1000.1], [-32.4, 0.3]
    jd[:8] = [40, -40, 40, -40, -40, 40, 0, -40]
    left[:8] = [0.1, 20, 20, 0.5, -20, 40, 0, 0]
    right[:8] = [0.1, 20, -20, 0.3, 20, -40, 0, 0]
    return jd, left, right


@pytest.mark.parametrize("layers", [1, 2, 3, 4, 5, 7, 50, 1000, 10**7, math.inf])
def test_error_against_mpmath(layers: float) -> None:
    jd, left, right = sample(int(min(layers, 99)), 60)
    value, bound = entropy_array(layers, jd, left, right)
    for k in range(jd.size):
        chain = Chain.at_depth(layers, jd[k], lam_left=left[k], lam_right=right[k])
        exact = entropy(chain, 30, tier=Tier.VERIFIED).value
        error = abs(mpmath.mpf(value[k]) - exact)
        assert error <= bound[k], chain
        # Absolute 1e-14 wherever a double can hold it: S_a ~ -800 has a spacing of 1e-13.
        # At |J| = 1000 the sum J + lambda alone is rounded by 1e-13: only the bound holds there.
        modest = abs(jd[k]) < 1000
        if modest:
            assert error < max(1e-14, 4 * EPS * abs(value[k])), chain
        if modest and abs(value[k]) > 0.01:
            assert error < 1e-13 * abs(value[k]), chain


def test_a_million_points_without_a_warning() -> None:
    rng = np.random.default_rng(1)
    value, error = entropy_array(50, rng.normal(size=10**6) * 20, rng.normal(size=10**6) * 20)
    assert np.all(np.isfinite(value))
    assert np.all(value - error <= math.log(2))
    assert np.all(error < 1e-12 * (1 + np.abs(value)))


def test_broadcasts_and_keeps_shape() -> None:
    value, error = entropy_array(3, np.zeros((4, 1)), np.linspace(0, 1, 5), 0.3)
    assert value.shape == error.shape == (4, 5)
    assert entropy_array(2, 0.1, 0.2)[0].shape == ()


def test_uniform_by_default() -> None:
    assert entropy_array(4, 0.1, 0.7)[0] == entropy_array(4, 0.1, 0.7, 0.7)[0]


def test_refuses_nan() -> None:
    with pytest.raises(
        InvalidInputError, match=r"jd must be finite and at most 1e.150 everywhere, got nan"
    ):
        entropy_array(2, [0.0, np.nan], 0.1)
    with pytest.raises(
        InvalidInputError, match=r"lam_left must be finite and at most 1e.150 everywhere, got inf"
    ):
        entropy_array(2, [0.0, 1.0], np.inf)
    with pytest.raises(InvalidInputError, match="layers must be an integer"):
        entropy_array(0, 0.0)
