"""The data of the figure on the dynamics: three sweeps, and their samples taken together."""

from __future__ import annotations

import numpy as np
import xarray as xr

from figures.figure import Parameters, Progress, grid
from figures.sweeps import swept
from rmsim.compare import convergence_bound
from rmsim.thresholds import Design, analyse, fraction, gather, summarise, sweep_of


def measured(parameters: Parameters, progress: Progress) -> xr.Dataset:
    """Run the three sweeps, keeping every finished point, and take their samples together."""
    seed = parameters["seed"]
    sweeps = {
        "core": sweep_of(_core(parameters), seed),
        "small": sweep_of(_small(parameters), seed),
        "chain": sweep_of(_chain(parameters), seed),
    }
    with swept(sweeps, progress) as folders:
        raw = {name: gather(folders[name], sweep) for name, sweep in sweeps.items()}
    data = _core_data(raw["core"], parameters).merge(_small_data(raw["small"]))
    return data.merge(_chain_data(raw["chain"], parameters))


def _core(parameters: Parameters) -> tuple[Design, ...]:
    """One layer: a window about the 50 % point of every size, and the J_D of the sweeps."""
    designs = []
    for size, (low, high, count) in parameters["windows"].items():
        values = {*grid([low, high], int(count)).tolist(), *parameters["sweeps_jd"]}
        designs.append(
            Design(
                (int(size),),
                "jd",
                tuple(sorted(values)),
                parameters["samples"],
                max_sweeps=parameters["max_sweeps"],
                device="cpu",
            )
        )
    return tuple(designs)


def _small(parameters: Parameters) -> Design:
    """One layer of few neurons, with a cap that lets their cycles close."""
    return Design(
        tuple(parameters["small_n"]),
        "jd",
        tuple(parameters["small_jd"]),
        parameters["small_samples"],
        max_sweeps=parameters["small_max_sweeps"],
        device="cpu",
        batch=500,  # small networks are quick together
    )


def _chain(parameters: Parameters) -> tuple[Design, ...]:
    """Two layers without self-coupling, for every p."""
    low, high, count = parameters["chain_lam"]
    return tuple(
        Design(
            tuple(parameters["chain_n"]),
            "lam",
            tuple(grid([low, high], count).tolist()),
            parameters["chain_samples"],
            layers=2,
            p=p,
            max_sweeps=parameters["max_sweeps"],
            device="cpu",
        )
        for p in parameters["chain_p"]
    )


def _core_data(raw: xr.Dataset, parameters: Parameters) -> xr.Dataset:
    full = analyse(raw, "jd", seed=parameters["seed"])
    by_cap = [analyse(raw, "jd", seed=parameters["seed"], cap=cap) for cap in parameters["caps"]]
    data = full[["success", "success_error", "width", "width_error"]]
    data = data.assign_coords(cap=parameters["caps"], trials=full["trials"])
    for name in ("threshold", "threshold_error"):
        data[name] = (("cap", "n"), np.stack([one[name].values for one in by_cap]))
    data["threshold"].attrs = full["threshold"].attrs
    at = full.sel(jd=parameters["sweeps_jd"]).rename(jd="sweeps_jd")
    names = [f"sweeps_{level}{end}" for level in ("q25", "median", "q75") for end in ("", "_error")]
    data = data.merge(at[names].drop_vars("period", errors="ignore"))
    bounds = np.array([convergence_bound(int(n)) for n in data["n"]])
    data["bound"] = ("n", bounds, {"long_name": "the paper's bound sqrt(2 ln N)"})
    data["bound_error"] = ("n", np.spacing(bounds))
    return data.drop_vars("period", errors="ignore")


def _small_data(raw: xr.Dataset) -> xr.Dataset:
    summary = summarise(raw, "jd")
    names = [f"period_{level}{end}" for level in ("q25", "median", "q75") for end in ("", "_error")]
    data = summary[names].drop_vars("period", errors="ignore")
    for name, counted, text in (
        ("cycle_fraction", summary["cycles"], "fraction of samples that end in a cycle"),
        ("capped_fraction", summary["capped"], "fraction of samples that end in neither"),
    ):
        value, error = fraction(counted.values, summary["trials"].values)
        data[name] = (counted.dims, value, {"long_name": text})
        data[f"{name}_error"] = (counted.dims, error)
    # The share of odd periods exists where there are cycles.
    cycles = summary["cycles"].values
    value, error = fraction(summary["odd_periods"].values, np.maximum(cycles, 1))
    data["odd_fraction"] = (
        summary["cycles"].dims,
        np.where(cycles > 0, value, np.nan),
        {"long_name": "fraction of the cycles with an odd period"},
    )
    data["odd_fraction_error"] = (summary["cycles"].dims, np.where(cycles > 0, error, np.nan))
    return data.rename(n="small_n", jd="small_jd")


def _chain_data(raw: xr.Dataset, parameters: Parameters) -> xr.Dataset:
    parts = [
        analyse(raw.sel(p=p), "lam", seed=parameters["seed"]).drop_vars("p")
        for p in parameters["chain_p"]
    ]
    names = ["success", "threshold"]
    names += [f"{name}_error" for name in names]
    data = xr.concat([part[names] for part in parts], dim="p", coords="minimal", compat="override")
    data = data.drop_vars("period", errors="ignore").assign_coords(p=parameters["chain_p"])
    data = data.rename({name: f"chain_{name}" for name in names} | {"n": "chain_n"})
    trials = xr.concat([part["trials"] for part in parts], dim="p")
    return data.assign_coords(chain_trials=(("p", "chain_n", "lam"), trials.values))
