"""Errors of measured numbers: each formula against one written out, and how often it holds."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rmtheory.base import statistics
from rmtheory.base.errors import InvalidInputError

LISTS = st.lists(st.integers(0, 30), min_size=2, max_size=60)


@given(values=LISTS, level=st.sampled_from([0.05, 0.25, 0.5, 0.75, 0.95]))
def test_quantile_errors_written_out(values: list[int], level: float) -> None:
    """The one formula, and the three ways in which the resolution of the values counts."""
    ordered, m = sorted(values), len(values)

    def quantile(p: float) -> float:
        place = min(max(p, 0.0), 1.0) * (m - 1)
        low = math.floor(place)
        high = min(low + 1, m - 1)
        return ordered[low] + (place - low) * (ordered[high] - ordered[low])

    spread = math.sqrt(level * (1 - level) / m)
    half = (quantile(level + spread) - quantile(level - spread)) / 2
    close = {"rel": 1e-12, "abs": 1e-12}
    assert statistics.quantile_error(values, level) == pytest.approx(half, **close)
    for floor, expected in (
        ("least", max(half, 0.5)),
        ("quadrature", math.hypot(half, 0.5)),
        ("instead of zero", half if half > 1e-9 else 0.5),
    ):
        result = statistics.quantile_error(values, level, resolution=0.5, floor=floor)  # type: ignore[arg-type]
        assert result == pytest.approx(expected, **close)
    known = not math.isnan(statistics.quantile_error(values, level, unbounded="nan"))
    assert known == (level - spread >= 0 and level + spread <= 1)


def test_quantile_errors_along_an_axis() -> None:
    values = np.random.default_rng(0).normal(size=(4, 50, 3))
    result = statistics.quantile_error(values, 0.25, axis=1, resolution=[0.0, 0.1, 10.0])
    assert result.shape == (4, 3)
    one = statistics.quantile_error(values[2, :, 1], 0.25, resolution=0.1)
    assert result[2, 1] == pytest.approx(one)
    assert (result[:, 2] == 10).all()
    unknown = statistics.quantile_error(values[:, :2], 0.25, axis=1, unbounded="nan")
    assert unknown.shape == (4, 3)
    assert np.isnan(unknown).all()


@given(values=LISTS)
def test_medians_of_whole_ranks(values: list[int]) -> None:
    result = statistics.median_of_ranks(values)
    assert result is not None
    middle, error = result
    assert middle == np.median(values)
    assert error is not None
    ordered, m = sorted(values), len(values)
    high = math.ceil((m + math.sqrt(m)) / 2 - 1e-9) - 1
    assert error == (ordered[high] - ordered[m - 1 - high]) / 2
    independent = statistics.median_of_ranks(values, independent=max(1, len(values) // 2))
    assert independent is not None
    assert independent[1] is None or independent[1] >= error


def test_medians_without_an_error() -> None:
    assert statistics.median_of_ranks([]) is None
    assert statistics.median_of_ranks([3.0]) == (3.0, None)
    assert statistics.median_of_ranks([1, 2, 3], independent=1) == (2.0, None)


@pytest.mark.parametrize("level", [0.25, 0.5, 0.95])
def test_quantiles_hold_the_truth_two_times_in_three(level: float) -> None:
    draw = np.random.default_rng(1)
    samples = draw.random((2000, 2000))
    values = np.quantile(samples, level, axis=1)
    error = statistics.quantile_error(samples, level)
    share = float((np.abs(values - level) <= error).mean())
    assert share == pytest.approx(statistics.ONE_SIGMA, abs=0.04)


def test_standard_error_of_means_and_of_a_fraction() -> None:
    values = np.random.default_rng(2).normal(size=(100, 3))
    for column in range(3):
        measured = statistics.mean(values[:, column])
        assert measured.error == pytest.approx(statistics.standard_error(values)[column])
        assert measured.error == pytest.approx(np.std(values[:, column], ddof=1) / 10)
    assert statistics.standard_error(values.T, axis=1) == pytest.approx(
        statistics.standard_error(values)
    )
    assert statistics.naive_half_width(0.25, 12) == 0.125
    assert statistics.naive_half_width(1.0, 12) == 0
    assert statistics.wilson_half_width(1.0, 12) > 0


def test_central_interval_ignores_outliers() -> None:
    values = np.random.default_rng(3).normal(size=20_001)
    assert statistics.central_half_width(values) == pytest.approx(1, abs=0.02)
    values[:20] = 1e9
    assert statistics.central_half_width(values) == pytest.approx(1, abs=0.03)


def test_weighted_fit_against_numpy_and_written_out() -> None:
    """Coefficients and covariance of polyfit; errors as each value is moved by its own error."""
    rng = np.random.default_rng(5)
    x, error = rng.uniform(1, 3, 9), rng.uniform(0.1, 2, 9)
    y = 2 - x + 0.5 * x**2 + error * rng.normal(size=9)
    fit = statistics.weighted_fit([1, x, x**2], y, error)
    expected, covariance = np.polyfit(x, y, 2, w=1 / error, cov="unscaled")
    np.testing.assert_allclose(fit.coefficients, expected[::-1], rtol=1e-9)
    np.testing.assert_allclose(fit.covariance, covariance[::-1, ::-1], rtol=1e-8)
    moved = [
        statistics.weighted_fit([1, x, x**2], y + error * (np.arange(9) == i), error).coefficients
        for i in range(9)
    ]
    np.testing.assert_allclose(
        fit.errors**2, np.sum((np.array(moved) - fit.coefficients) ** 2, axis=0), rtol=1e-8
    )
    model = sum(c * x**k for k, c in enumerate(fit.coefficients))
    chi2 = float(np.sum(((y - model) / error) ** 2))
    assert (fit.chi2, fit.dof) == (pytest.approx(chi2), 6)
    assert fit.p_value == pytest.approx(float(stats.chi2.sf(chi2, 6)))
    # Errors stated too small by 10: the fit is the same, chi^2 100 times larger, and the factor
    # of the errors takes it back, where they were right to begin with.
    small = statistics.weighted_fit([1, x, x**2], y, error / 10)
    assert small.scale * small.errors == pytest.approx(np.sqrt(chi2 / 6) * fit.errors)
    # Units of a column change its coefficient alone, over many orders of magnitude.
    far = statistics.weighted_fit([1, 1e12 * x, x**2], y, error)
    assert far.coefficients * [1, 1e12, 1] == pytest.approx(fit.coefficients)


@pytest.mark.parametrize(
    ("columns", "values", "errors", "name"),
    [
        ([1, [1, 1, 1]], [1, 2, 3], 1, "columns"),
        ([1, [1, 2]], [1, 2], [1, 0], "errors"),
        ([1, [1, 2]], [1, math.nan], 1, "values"),
        ([1, [1, 2], [1, 4]], [1, 2], 1, "columns"),
    ],
)
def test_what_no_fit_determines_is_refused(
    columns: list[Any], values: list[float], errors: Any, name: str
) -> None:
    with pytest.raises(InvalidInputError, match=name):
        statistics.weighted_fit(columns, values, errors)
