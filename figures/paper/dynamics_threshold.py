"""Where the dynamics begins to find fixed points, and what it does below (measured).

Success within a cap of sweeps against J_D for one layer and against lambda for two, sweeps to the
fixed point and 50 % point against N, and the cycles that small networks fall into.

The data of the figure on the dynamics: three sweeps, and their samples taken together.

The panels of the figure on the dynamics, one function each.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from matplotlib.lines import Line2D

from figures.engine.figure import Context, Figure, Parameters, Scale, grid, swept
from figures.engine.plotting import (
    BARS,
    DOUBLE,
    draw_fit,
    draw_success,
    label_axes,
    log_sizes,
    plain_ticks,
    shades,
)
from rmsim.studies.compare import convergence_bound
from rmsim.studies.convergence import analyse, gather, summarise, sweep_of
from rmsim.studies.success_curves import REJECTED, fit_trends
from rmsim.studies.threshold_design import Design
from rmtheory.base.statistics import fraction

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


def compute(parameters: Parameters, context: Context) -> xr.Dataset:
    """Measure; what it calls imports torch, which the list of figures does without."""
    return measured(parameters, context)


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
        "two caps; lines are fits of the law of the dynamics, a + b/sqrt N + c/N, unless chi^2 "
        "rejects it. (d) Two layers without self-coupling against λ; p is the chance of a neuron "
        "to be updated in a sweep, 1 without masks, when none of them stops. Points are shifted "
        "sideways by less than a fifth of their step so as not to cover each other. "
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
                "100": [0.26, 0.50, 7],
                "200": [0.40, 0.54, 6],
                "400": [0.49, 0.61, 5],
                "800": [0.575, 0.655, 5],
            },
            40,
            1000,
            ([100, 200], 7, 30),
            ([10, 15, 20, 25, 30], 100, 10_000),
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
    version=2,
    seed=_SEED,
    core_hours={Scale.PAPER: 144.0},
    earlier=("2-9c5f51ac12f1",),
)


#: In the definition of the sweeps, part of the seeds; where it runs is said by --device.
_DEVICE = "cpu"


def measured(parameters: Parameters, context: Context) -> xr.Dataset:
    """Run the three sweeps, keeping every finished point, and take their samples together."""
    seed = parameters["seed"]
    sweeps = {
        "core": sweep_of(_core(parameters), seed),
        "small": sweep_of(_small(parameters), seed),
        "chain": sweep_of(_chain(parameters), seed),
    }
    with swept(sweeps, context) as folders:
        raw = {name: gather(folders[name], sweep) for name, sweep in sweeps.items()}
    data = _core_data(raw["core"], parameters).merge(_small_data(raw["small"]))
    return data.merge(_chain_data(raw["chain"], parameters))


def _core(parameters: Parameters) -> tuple[Design, ...]:
    """One layer: a window about the 50 % point of every size, and the J_D of the sweeps."""
    designs = []
    for size, (low, high, count) in parameters["windows"].items():
        values = {*grid([low, high], int(count)).tolist(), *parameters["sweeps_jd"]}
        designs.append(
            Design.of(
                (int(size),),
                "jd",
                tuple(sorted(values)),
                parameters["samples"],
                max_sweeps=parameters["max_sweeps"],
                device=_DEVICE,
            )
        )
    return tuple(designs)


def _small(parameters: Parameters) -> Design:
    """One layer of few neurons, with a cap that lets their cycles close."""
    return Design.of(
        tuple(parameters["small_n"]),
        "jd",
        tuple(parameters["small_jd"]),
        parameters["small_samples"],
        max_sweeps=parameters["small_max_sweeps"],
        device=_DEVICE,
        batch=500,  # small networks are quick together
    )


def _chain(parameters: Parameters) -> tuple[Design, ...]:
    """Two layers without self-coupling, for every p."""
    low, high, count = parameters["chain_lam"]
    return tuple(
        Design.of(
            tuple(parameters["chain_n"]),
            "lam",
            tuple(grid([low, high], count).tolist()),
            parameters["chain_samples"],
            layers=2,
            p=p,
            max_sweeps=parameters["max_sweeps"],
            device=_DEVICE,
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


#: Where the paper puts the threshold of the dynamics.
PAPER_JD = 0.8


def success_panel(axis: Axes, data: xr.Dataset) -> None:
    """Success of one layer against J_D, for every size."""
    top = float(data["cap"].max())
    for colour, n in zip(shades("viridis", data.sizes["n"]), data["n"].values, strict=True):
        row = data.sel(n=n)
        draw_success(axis, row["jd"], row["success"], row["trials"], colour, "o", f"{n}")
        draw_fit(axis, row["jd"].values, row["threshold"].sel(cap=top), row["width"], colour)
    axis.axvline(PAPER_JD, color="0.45", linewidth=0.8, linestyle=":")
    axis.legend(title=r"$N$", loc="lower right", handletextpad=0.3)
    label_axes(axis, r"$J_D$", rf"$P$(fixed point in {top:g} sweeps)")


def sweeps_panel(axis: Axes, data: xr.Dataset) -> None:
    """Sweeps to the fixed point against N."""
    for index, jd in enumerate(data["sweeps_jd"].values):
        row = data.sel(sweeps_jd=jd)
        x, low, high = (row[name].values for name in ("n", "sweeps_q25", "sweeps_q75"))
        axis.fill_between(x, low, high, color=f"C{index}", alpha=0.15, linewidth=0)
        axis.errorbar(
            x,
            row["sweeps_median"],
            row["sweeps_median_error"],
            fmt="o-",
            color=f"C{index}",
            label=f"{jd:g}",
            **BARS,
        )
    log_sizes(axis, data["n"].values)
    axis.set_yscale("log")
    plain_ticks(axis.yaxis, [5, 10, 20, 50, 100, 200])
    axis.legend(title=r"$J_D$", loc="upper left")
    label_axes(axis, r"$N$", "sweeps to the fixed point")


def threshold_panel(axis: Axes, data: xr.Dataset) -> None:
    """The 50 % point against N, for two caps, with trends, the paper's value and the bound."""
    n = data["n"].values.astype(float)
    sizes = np.geomspace(n[0], n[-1], 100)
    for index, cap in enumerate(data["cap"].values):
        row = data.sel(cap=cap)
        axis.errorbar(
            n,
            row["threshold"],
            row["threshold_error"],
            fmt="os"[index],
            color=f"C{index}",
            label=f"{cap} sweeps",
            zorder=4,
            **BARS,
        )
        there = np.isfinite(row["threshold"].values)
        points, errors = (row[x].values[there] for x in ("threshold", "threshold_error"))
        for trend in fit_trends(n[there], points, errors, law=True):
            if trend.p_value >= REJECTED:
                axis.plot(sizes, trend(sizes), color=f"C{index}", linewidth=0.8)
    axis.axhline(PAPER_JD, color="0.45", linewidth=0.8, linestyle=":", label="paper, 0.8")
    axis.plot(n, data["bound"], color="black", linewidth=1.0, label=r"$\sqrt{2\ln N}$")
    axis.set_yscale("log")
    log_sizes(axis, n)
    plain_ticks(axis.yaxis, [0.2, 0.3, 0.4, 0.6, 0.8, 1, 2, 3, 4])
    axis.legend(loc="center", bbox_to_anchor=(0.5, 0.66), ncols=2, columnspacing=0.8)
    label_axes(axis, r"$N$", r"$J_D$ at $P=\frac{1}{2}$")


def chain_panel(axis: Axes, data: xr.Dataset) -> None:
    """Success of two layers against lambda: a colour per mask, paler for smaller networks."""
    sizes, masks = data["chain_n"].values, data["p"].values
    handles = []
    for index, p in enumerate(masks):
        colours = shades(("Blues_r", "Oranges_r", "Greens_r")[index % 3], len(sizes) + 1)
        for place, n in enumerate(sizes):
            row = data.sel(p=p, chain_n=n)
            colour = colours[len(sizes) - 1 - place]
            # Points of different series side by side, within a tenth of the step.
            step = float(row["lam"][1] - row["lam"][0])
            shift = 0.06 * step * (index * len(sizes) + place - len(masks) * len(sizes) / 2)
            x = row["lam"] + shift
            axis.plot(x, row["chain_success"], color=colour, linewidth=0.7)
            draw_success(
                axis, x, row["chain_success"], row["chain_trials"], colour, "os^D"[index], ""
            )
        label = f"$p={p:g}$" + ("" if p < 1 else ", all at once")
        handles.append(Line2D([], [], color=colour, marker="os^D"[index], label=label))
    title = f"$N={sizes[0]}$ (pale) to {sizes[-1]}" if len(sizes) > 1 else f"$N={sizes[0]}$"
    axis.legend(handles=handles, title=title, loc="center right", bbox_to_anchor=(1.02, 0.42))
    label_axes(axis, r"$\lambda\quad(L=2,\ J_D=0)$", r"$P$(fixed point)")


def cycle_panel(axis: Axes, data: xr.Dataset) -> None:
    """How many small networks of one layer end in a cycle."""
    for index, jd in enumerate(data["small_jd"].values):
        row = data.sel(small_jd=jd)
        axis.errorbar(
            row["small_n"],
            row["cycle_fraction"],
            row["cycle_fraction_error"],
            fmt="o-",
            color=f"C{index}",
            label=f"{jd:g}",
            **BARS,
        )
    axis.set_ylim(-0.03, 1.03)
    axis.legend(
        title=r"$L=1,\ J_D=$",
        loc="center",
        bbox_to_anchor=(0.55, 0.44),
        ncols=3,
        columnspacing=1.0,
    )
    label_axes(axis, r"$N$", "fraction that ends in a cycle")


def period_panel(axis: Axes, data: xr.Dataset) -> None:
    """Periods of these cycles: medians, and quartiles as bars."""
    step = float(np.diff(data["small_n"].values).min())
    for index, jd in enumerate(data["small_jd"].values):
        row = data.sel(small_jd=jd)
        x = row["small_n"].values + 0.1 * step * (index - 1)  # side by side
        middle = row["period_median"].values
        bars = np.stack([middle - row["period_q25"].values, row["period_q75"].values - middle])
        axis.errorbar(x, middle, bars, fmt="o-", color=f"C{index}", label=f"{jd:g}", **BARS)
    axis.set_yscale("log")
    axis.legend(title=r"$L=1,\ J_D=$", loc="upper left")
    label_axes(axis, r"$N$", "period of the cycle (sweeps)")
