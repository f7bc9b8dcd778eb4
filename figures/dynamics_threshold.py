"""Where the dynamics begins to find fixed points, and what it does below (measured).

Success within a cap of sweeps against J_D for one layer and against lambda for two, sweeps to the
fixed point and 50 % point against N, and the cycles that small networks fall into.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.figure import Figure as Picture

from figures.dynamics_panels import (
    chain_panel,
    cycle_panel,
    period_panel,
    success_panel,
    sweeps_panel,
    threshold_panel,
)
from figures.figure import JOBS, Figure, Parameters, Progress, Scale, grid
from figures.plotting import DOUBLE
from figures.unfinished import parts_folder
from rmsim.compare import convergence_bound
from rmsim.sweep import Local, Sweep, run_sweep
from rmsim.sweep import Progress as SweepProgress
from rmsim.thresholds import Design, analyse, fraction, gather, summarise, sweep_of
from rmtheory.errors import NotConvergedError

_SEED = 1


def _parameters(
    windows: dict[str, list[float]],
    samples: int,
    max_sweeps: int,
    chain: tuple[list[int], int, int],
    small: tuple[list[int], int, int],
) -> Parameters:
    return {
        "seed": _SEED,
        # N -> first and last J_D and number of values about the 50 % point.
        "windows": windows,
        "samples": samples,
        "max_sweeps": max_sweeps,
        "caps": [max_sweeps // 10, max_sweeps],
        "sweeps_jd": [0.8, 1.0],
        "chain_n": chain[0],
        "chain_p": [0.5, 0.8, 1.0],
        "chain_lam": [0.8, 1.6, chain[1]],
        "chain_samples": chain[2],
        "small_n": small[0],
        "small_jd": [0.0, 0.2, 0.4],
        "small_samples": small[1],
        "small_max_sweeps": small[2],
    }


def compute(parameters: Parameters, progress: Progress) -> xr.Dataset:
    """Run the three sweeps, keeping every finished point, and take their samples together."""
    seed = parameters["seed"]
    raw = _run(
        {
            "core": sweep_of(_core(parameters), seed),
            "small": sweep_of(_small(parameters), seed),
            "chain": sweep_of(_chain(parameters), seed),
        },
        progress,
    )
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


def _run(sweeps: dict[str, Sweep], progress: Progress) -> dict[str, xr.Dataset]:
    total, before = sum(len(sweep.grid) for sweep in sweeps.values()), 0
    found = {}
    with parts_folder() as folder:
        for name, sweep in sweeps.items():
            follow = partial(_follow, progress, before, total)
            report = run_sweep(sweep, folder / name, Local(JOBS), on_progress=follow)
            if report.failures:
                first = report.failures[0]
                raise NotConvergedError(f"{len(report.failures)} points failed, first: {first}")
            before += len(sweep.grid)
            found[name] = gather(folder / name, sweep)
    return found


def _follow(progress: Progress, before: int, total: int, state: SweepProgress) -> None:
    progress(before + state.done, total)


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


def plot(data: xr.Dataset) -> Picture:
    """Draw the six panels."""
    picture = Picture(figsize=(DOUBLE, 4.5), layout="constrained")
    axes = picture.subplots(2, 3).ravel()
    drawers = (
        success_panel,
        sweeps_panel,
        threshold_panel,
        chain_panel,
        cycle_panel,
        period_panel,
    )
    for letter, axis, draw in zip("abcdef", axes, drawers, strict=True):
        axis.set_title(f"({letter})", loc="left", fontweight="bold")
        draw(axis, data)
    return picture


FIGURE = Figure(
    name="dynamics_threshold",
    title="Convergence of the dynamics: success, sweeps, thresholds, cycles",
    caption=(
        "Synchronous dynamics from random starts. (a) Fraction of samples of one layer that reach "
        "a fixed point within the cap, with logistic fits. (b) Sweeps to the fixed point: median "
        "with its error, and quartiles (band). (c) J_D at which half of the samples succeed, for "
        "two caps, errors smaller than the markers; lines are the forms that chi^2 does not reject "
        "of a + b sqrt(ln N) (dash-dotted), a + b ln ln N (dotted), a + b/ln N (dashed) and "
        "a + b/sqrt N (full). (d) Two layers without self-coupling against lambda; p is the chance "
        "of a neuron to be updated, and without masks (p = 1) no sample reaches a fixed point. "
        "(e) Fraction of small networks of one layer that end in a cycle. (f) Their period: "
        "median, and quartiles (bars). Other error bars are one standard deviation (Wilson's "
        "interval for fractions, bootstrap for 50 % points)."
    ),
    parameters={
        Scale.TINY: _parameters(
            {"20": [0.0, 0.6, 4], "40": [0.1, 0.7, 4], "80": [0.1, 0.7, 4]},
            12,
            100,
            ([20], 4, 10),
            ([6, 10, 14], 20, 1000),
        ),
        Scale.QUICK: _parameters(
            {
                "100": [0.26, 0.50, 9],
                "200": [0.40, 0.54, 8],
                "400": [0.49, 0.61, 7],
                "800": [0.575, 0.655, 6],
            },
            40,
            1000,
            ([100, 200], 9, 40),
            ([10, 15, 20, 25, 30], 150, 10_000),
        ),
        # Six days of one core, nearly all of it at N = 8000, where 21 values x 1000 samples x 700
        # sweeps read 256 MB of couplings each; rmsim thresholds does the same on a cluster.
        Scale.PAPER: _parameters(
            {
                "200": [0.35, 0.60, 26],
                "500": [0.45, 0.70, 26],
                "1000": [0.52, 0.74, 23],
                "2000": [0.58, 0.78, 21],
                "4000": [0.62, 0.82, 21],
                "8000": [0.65, 0.85, 21],
            },
            1000,
            1000,
            ([200, 500, 1000], 25, 1000),
            ([10, 15, 20, 25, 30, 35, 40], 2000, 200_000),
        ),
    },
    compute=compute,
    plot=plot,
    seed=_SEED,
)
