"""All trials of a sweep taken together: P_max of every depth and size, slopes, overlaps."""

from __future__ import annotations

import os

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rmsim.capacity.crossing import CapacityStatus, p_max, slope
from rmsim.sweep import Sweep, collect
from rmtheory.errors import InvalidInputError

#: Trials nearest to P_max over which overlaps by layer are averaged, as in the paper.
NEAREST = 10

Array = NDArray[np.float64]


def gather(folder: str | os.PathLike[str], sweep: Sweep) -> xr.Dataset:
    """Return every trial: its P, O_5, epochs and overlaps, along the dimension ``trial``.

    The coordinates of a trial are its protocol, layers and n.
    """
    scalars, layered = ("patterns", "o5", "epochs"), ("median", "low", "high")
    dims: dict[str, tuple[str, ...]] = dict.fromkeys(scalars, ("member",))
    dims |= {f"overlap_{name}": ("member", "layer") for name in layered}
    found = collect(folder, sweep, dims=dims)
    wanted = [*scalars, *(f"overlap_{name}" for name in layered)]
    flat = found[wanted].stack(trial=("protocol", "loads", "layers", "n", "trials", "member"))
    flat = flat.reset_index("trial").isel(trial=np.flatnonzero(np.isfinite(flat["o5"].values)))
    flat = flat.drop_vars(["loads", "trials", "member"], errors="ignore")
    return flat.transpose("trial", "layer").assign_attrs(found.attrs)


def analyse(raw: xr.Dataset, *, epsilon: float = 0.05, seed: int = 0) -> xr.Dataset:
    """Return P_max on (protocol, layers, n) with errors and status, and slopes with errors."""
    protocols, layers, sizes = (
        list(dict.fromkeys(raw[name].values.tolist())) for name in ("protocol", "layers", "n")
    )
    layers, sizes = sorted(layers), sorted(sizes)
    shape = (len(protocols), len(layers), len(sizes))
    value, error = np.full(shape, np.nan), np.full(shape, np.nan)
    status = np.full(shape, "", dtype="U80")
    trials = np.zeros(shape, dtype=np.int64)
    slopes = np.full((5, *shape[:2]), np.nan)
    for a, protocol in enumerate(protocols):
        for b, depth in enumerate(layers):
            for c, n in enumerate(sizes):
                one = _of(raw, protocol, depth, n)
                trials[a, b, c] = one.sizes["trial"]
                if not one.sizes["trial"]:
                    continue
                found = p_max(one["patterns"].values, one["o5"].values, epsilon=epsilon, seed=seed)
                value[a, b, c], error[a, b, c] = found.value, found.error
                status[a, b, c] = str(found.status)
            line = slope(sizes, value[a, b], error[a, b])
            if line is not None:
                slopes[:, a, b] = (
                    *(line.alpha, line.alpha_error, line.intercept, line.intercept_error),
                    line.chi2,
                )
    dims = ("protocol", "layers", "n")
    data = xr.Dataset(
        {
            "p_max": (dims, value, {"long_name": "capacity P_max, in pairs"}),
            "p_max_error": (dims, error, {"long_name": "bootstrap error of p_max"}),
        },
        coords={
            "protocol": protocols,
            "layers": layers,
            "n": sizes,
            "status": (dims, status),
            "trials": (dims, trials),
            "chi2": (dims[:2], slopes[4]),
        },
    )
    meanings = {"slope": "slope alpha of P_max(N)", "intercept": "intercept of P_max(N)"}
    for place, (name, meaning) in enumerate(meanings.items()):
        data[name] = (dims[:2], slopes[2 * place], {"long_name": meaning})
        data[f"{name}_error"] = (dims[:2], slopes[2 * place + 1], {"long_name": f"error of {name}"})
    return data


def overlaps_by_layer(
    raw: xr.Dataset, protocol: str, layers: int, n: int, *, nearest: int = NEAREST, seed: int = 0
) -> xr.Dataset:
    """Return the overlap with the target in each layer, over the trials nearest to P_max.

    Median, 5th and 95th percentile over patterns are averaged over these trials; the errors are
    the standard errors of these averages. The trials are those nearest to P_max if it is found,
    else those whose O_5 is nearest to 1 - epsilon.
    """
    one = _of(raw, protocol, layers, n)
    if one.sizes["trial"] < 2:
        raise InvalidInputError("trials", one.sizes["trial"], "at least 2, for an error bar")
    found = p_max(one["patterns"].values, one["o5"].values, seed=seed)
    if found.status is CapacityStatus.FOUND:
        distance = np.abs(one["patterns"].values - found.value)
    else:
        distance = np.abs(one["o5"].values - 0.95)
    near = one.isel(trial=np.argsort(distance, kind="stable")[:nearest], layer=slice(0, layers))
    count = near.sizes["trial"]
    data = xr.Dataset(
        coords={
            "layer": np.arange(1, layers + 1),
            "patterns_low": float(near["patterns"].min()),
            "patterns_high": float(near["patterns"].max()),
            "overlap_trials": count,
        }
    )
    meanings = {"median": "median", "low": "5th percentile", "high": "95th percentile"}
    for part, meaning in meanings.items():
        values = np.asarray(near[f"overlap_{part}"].values, dtype=float)
        text = f"overlap with the target, {meaning} over patterns"
        data[f"overlap_{part}"] = ("layer", values.mean(axis=0), {"long_name": text})
        # One spin of one trial would move the mean by this: the error is not below.
        step = 2 / (n * count)
        spread = np.maximum(values.std(axis=0, ddof=1) / np.sqrt(count), step)
        data[f"overlap_{part}_error"] = ("layer", spread, {"long_name": "standard error"})
    return data


def _of(raw: xr.Dataset, protocol: str, layers: int, n: int) -> xr.Dataset:
    same = (raw["protocol"] == protocol) & (raw["layers"] == layers) & (raw["n"] == n)
    return raw.isel(trial=np.flatnonzero(same.values))
