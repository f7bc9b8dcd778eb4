"""From the samples of a sweep to thresholds: success, 50 % points, their trend, the bound."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from rmsim.thresholds.crossing import Crossing, crossing
from rmsim.thresholds.summary import summarise
from rmsim.thresholds.trend import Limit, Trend, fit_trends, limit_of
from rmtheory.provenance import canonical_json

if TYPE_CHECKING:
    from rmsim.thresholds.design import Control

_MEANING = {
    "threshold": "coupling at which half of the samples succeed",
    "width": "width of the logistic curve",
    "fit_p_value": "share of resamples that the curve fits worse",
}


def analyse(raw: xr.Dataset, control: Control, *, seed: int, cap: int | None = None) -> xr.Dataset:
    """Return the summary of `raw` with the 50 % point at every size.

    Parameters
    ----------
    raw : Dataset
        Of :func:`rmsim.thresholds.summary.gather`.
    control : str
        The coupling that was swept.
    seed : int
        Of the bootstrap.
    cap : int, optional
        Count as success only what needed at most so many sweeps.

    Returns
    -------
    Dataset
        As of :func:`rmsim.thresholds.summary.summarise`, with ``threshold``, ``threshold_error``,
        ``threshold_status``, ``threshold_method``, ``width``, ``width_error`` and ``fit_p_value``
        for each n: NaN where the status says that there is none, and no width where the method is
        interpolation.
    """
    data = summarise(raw, control, cap)
    found = [_at(data.sel(n=n), control, (seed, int(n))) for n in data["n"].values]
    columns = {
        "threshold": [c.value for c in found],
        "threshold_error": [c.error for c in found],
        "width": [c.width for c in found],
        "width_error": [c.width_error for c in found],
        "fit_p_value": [c.p_value for c in found],
    }
    for name, column in columns.items():
        data[name] = ("n", np.array([np.nan if x is None else x for x in column]))
    data["threshold_status"] = ("n", np.array([str(c.status) for c in found]))
    data["threshold_method"] = ("n", np.array([str(c.method) for c in found]))
    for name, meaning in _MEANING.items():
        data[name].attrs["long_name"] = meaning
    return data


def _at(data: xr.Dataset, control: str, seed: tuple[int, int]) -> Crossing:
    measured = data.isel({control: np.flatnonzero(data["trials"].values > 0)})
    return crossing(
        measured[control].values, measured["fixed_points"], measured["trials"], seed=seed
    )


def trends_of(data: xr.Dataset) -> tuple[tuple[Trend, ...], Limit]:
    """Return the fits of the 50 % point against the size, and the limit they allow."""
    there = data.isel(n=np.flatnonzero(np.isfinite(data["threshold"].values)))
    trends = fit_trends(there["n"], there["threshold"], there["threshold_error"])
    return trends, limit_of(trends)


def trend_attributes(trends: tuple[Trend, ...], limit: Limit) -> dict[str, str]:
    """Return the fits as attributes of a data file."""
    fits: dict[str, Any] = {trend.form: asdict(trend) for trend in trends}
    return {"trends": canonical_json(fits), "limit": canonical_json(asdict(limit))}
