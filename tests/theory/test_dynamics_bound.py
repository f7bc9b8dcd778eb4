"""The convergence bound against direct sampling and its own inverse."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rmtheory import InvalidInputError
from rmtheory.dynamics.exact_steps import convergence_bound, jd_for_failure

pytestmark = pytest.mark.numerical


@given(st.integers(2, 10**12))
def test_bound_and_probabilities(n: int) -> None:
    bound = convergence_bound(n)
    J = math.sqrt(2 * math.log(n))
    assert abs(bound.jd.value - J) < 1e-14 * J
    tail = stats.norm.sf(J)
    assert math.isclose(
        bound.exceedance.value, -math.expm1(n * math.log1p(-2 * tail)), rel_tol=1e-9
    )
    assert math.isclose(bound.flip.value, -math.expm1(n * math.log1p(-tail)), rel_tol=1e-9)
    # The union bound is vacuous there, the truth is not.
    assert math.isclose(2 * n * math.exp(-(J**2) / 2), bound.union_bound.value, rel_tol=1e-9)
    assert bound.exceedance.value < 0.5


def test_decays_like_one_over_the_root_of_pi_log_n() -> None:
    gaps = [
        abs(float(convergence_bound(10**k).exceedance) * math.sqrt(math.pi * k * math.log(10)) - 1)
        for k in (10, 100, 1000)
    ]
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.01


@given(st.integers(2, 10**9), st.floats(1e-200, 0.999))
def test_inverse(n: int, p: float) -> None:
    J = jd_for_failure(n, p, 25)
    with mpmath.workdps(60):
        tail = mpmath.ncdf(-J.value)
        result = -mpmath.expm1(n * mpmath.log1p(-2 * tail))
        slope = 2 * n * mpmath.npdf(J.value)
        assert abs(result - mpmath.mpf(repr(p))) <= 2 * slope * J.error


def test_exceedance_against_sampling() -> None:
    n, samples = 50, 20_000
    J = float(convergence_bound(n).jd)
    rng = np.random.default_rng(0)
    hits = int((np.abs(rng.normal(size=(samples, n))).max(axis=1) > J).sum())
    p = float(convergence_bound(n).exceedance)
    assert abs(hits - samples * p) < 4 * math.sqrt(samples * p * (1 - p))


@pytest.mark.parametrize("failure", [0, 1, -0.5, 2, math.nan, "x"])
def test_bad_failure(failure: object) -> None:
    with pytest.raises(InvalidInputError, match="failure must be a"):
        jd_for_failure(10, failure)  # type: ignore[arg-type]


def test_bad_n() -> None:
    with pytest.raises(InvalidInputError, match="n must be an integer >= 2, got 1"):
        convergence_bound(1)
