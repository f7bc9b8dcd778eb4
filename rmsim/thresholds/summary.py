"""All batches of a sweep taken together: what the samples at each size and coupling ended in."""

from __future__ import annotations

import os

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rmsim.dynamics.summary import HALF_A_SWEEP
from rmsim.sweep import Sweep, collect
from rmsim.thresholds.algorithms import Ending
from rmsim.thresholds.intervals import fraction, interval

_MEANING = {
    "trials": "disorder samples",
    "fixed_points": "samples that reached a fixed point",
    "cycles": "samples that ended in a cycle",
    "capped": "samples that ended in neither within the cap",
    "marginal": "samples whose fixed point has a margin <= 0 in float64",
    "paramagnets": "samples whose magnetisations fell to zero",
    "polarised": "samples with every spin certain, at no fixed point",
    "diverged": "samples in which a number left the range of its type",
    "settled": "samples at a maximum of the likelihood that is no fixed point",
    "success": "fraction of samples that reached a fixed point",
    "sweeps_median": "median of the sweeps to the fixed point, of those that reached one",
    "sweeps_q25": "lower quartile of the sweeps",
    "sweeps_q75": "upper quartile of the sweeps",
    "period_median": "median period of the cycles",
    "period_q25": "lower quartile of the periods",
    "period_q75": "upper quartile of the periods",
    "odd_periods": "cycles of odd period",
    "period_counts": "cycles of each period",
}

Array = NDArray[np.float64]


def gather(folder: str | os.PathLike[str], sweep: Sweep) -> xr.Dataset:
    """Return the outcomes of all samples of a sweep: status, sweeps and period, with provenance."""
    return collect(folder, sweep, dims=dict.fromkeys(("status", "sweeps", "period"), ("member",)))


def summarise(raw: xr.Dataset, control: str, cap: int | None = None) -> xr.Dataset:
    """Return counts, fractions and quartiles over samples, with errors, on (n, `control`).

    Parameters
    ----------
    raw : Dataset
        Of :func:`gather`: every sample, of one p.
    control : str
        The coupling that was swept.
    cap : int, optional
        Count as success only what needed at most so many sweeps.

    Returns
    -------
    Dataset
        Where no sample was measured, counts are 0 and everything else is NaN; so are quartiles
        where nothing succeeded, or no cycle was found, and their errors where only one was.
    """
    status, sweeps, period = (
        np.asarray(raw[name].transpose("n", control, ...).values, dtype=float)
        for name in ("status", "sweeps", "period")
    )
    shape = status.shape[:2]
    status, sweeps, period = (a.reshape(*shape, -1) for a in (status, sweeps, period))
    fixed = status == Ending.FIXED_POINT
    capped = status == Ending.CAP
    if cap is not None:
        late = fixed & (sweeps > cap)
        fixed, capped = fixed & ~late, capped | late
    cycle = status == Ending.CYCLE
    trials = (~np.isnan(status)).sum(-1)
    counts = {
        "trials": trials,
        "fixed_points": fixed.sum(-1),
        "cycles": cycle.sum(-1),
        "capped": capped.sum(-1),
        "marginal": (status == Ending.MARGINAL).sum(-1),
        "paramagnets": (status == Ending.PARAMAGNET).sum(-1),
        "polarised": (status == Ending.POLARISED).sum(-1),
        "diverged": (status == Ending.DIVERGED).sum(-1),
        "settled": (status == Ending.SETTLED).sum(-1),
        "odd_periods": (cycle & (period % 2 == 1)).sum(-1),
    }
    dims = ("n", control)
    data = xr.Dataset(
        {name: (dims, value) for name, value in counts.items()},
        coords={"n": raw["n"], control: raw[control]},
    )
    data = data.merge(_success(counts["fixed_points"], trials, dims))
    for name, values, chosen in (("sweeps", sweeps, fixed), ("period", period, cycle)):
        data = data.merge(_quartiles(name, values, chosen, dims))
    # 2-cycles are looked for by name, so that period has a coordinate also if there is no cycle.
    periods = np.unique(np.append(period[cycle], 2)).astype(np.int64)
    found = [(cycle & (period == value)).sum(-1) for value in periods]
    data["period_counts"] = ((*dims, "period"), np.stack(found, axis=-1))
    data = data.assign_coords(period=periods)
    for name, meaning in _MEANING.items():
        data[name].attrs["long_name"] = meaning
    return data


def _success(fixed: Array, trials: Array, dims: tuple[str, str]) -> xr.Dataset:
    there = trials > 0
    values = {
        name: np.full(trials.shape, np.nan)
        for name in ("success", "success_error", "success_low", "success_high")
    }
    k, m = fixed[there], trials[there]
    values["success"][there], values["success_error"][there] = fraction(k, m)
    values["success_low"][there], values["success_high"][there] = interval(k, m)
    return xr.Dataset({name: (dims, value) for name, value in values.items()})


def _quartiles(name: str, values: Array, chosen: Array, dims: tuple[str, str]) -> xr.Dataset:
    """Quartiles of the chosen `values`; the error of each is half the interval of its ranks.

    The number of values below the quantile q is binomial, so the ranks q m -+ sqrt(m q (1 - q))
    enclose it with one standard deviation. A single value has no spread: its error is NaN. Values
    are whole numbers, and no error is below half a step: some that agree do not prove that all do.
    """
    levels = {"q25": 0.25, "median": 0.5, "q75": 0.75}
    found = {
        f"{name}_{level}{suffix}": np.full(chosen.shape[:2], np.nan)
        for level in levels
        for suffix in ("", "_error")
    }
    for place in np.ndindex(*chosen.shape[:2]):
        ordered = np.sort(values[place][chosen[place]])
        if not ordered.size:
            continue
        for level, q in levels.items():
            spread = np.sqrt(q * (1 - q) / ordered.size)
            low, high = np.quantile(ordered, np.clip([q - spread, q + spread], 0, 1))
            found[f"{name}_{level}"][place] = np.quantile(ordered, q)
            if ordered.size > 1:
                found[f"{name}_{level}_error"][place] = max((high - low) / 2, HALF_A_SWEEP)
    return xr.Dataset({key: (dims, value) for key, value in found.items()})
