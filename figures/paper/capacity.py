"""Hetero-association: capacity against width and depth, overlaps by layer (paper, fig. combined).

Measured twice: by the protocol as the paper prints it, and by a reconstruction that shows the
paper's growth with depth. The paper gives no settings for either
(:mod:`rmsim.studies.capacity`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure as Picture

from figures.engine.figure import Context, Figure, Parameters, Scale, swept
from figures.engine.plotting import DOUBLE
from figures.paper.trained_networks import trial_data

_SEED = 0

#: Depth -> loads P/N between which trials are drawn: those of shallow chains are lower.
_LOADS = {"1": [0.02, 0.3], "2": [0.02, 0.5], "3": [0.35, 0.9], "5": [0.4, 1.0], "7": [0.4, 1.0]}


def _parameters(
    series: dict[str, tuple[list[int], int]],
    printed: tuple[list[int], list[int], int],
    overlaps: tuple[int, int, int],
    max_epochs: int = 300,
) -> Parameters:
    return {
        "seed": _SEED,
        # Depth -> sizes and number of trials, reconstruction.
        "series": {layers: [sizes, trials] for layers, (sizes, trials) in series.items()},
        "loads": {layers: _LOADS[layers] for layers in series},
        # The protocol as printed: depths, sizes, trials, over all loads.
        "printed": [*printed],
        "printed_loads": [0.02, 1.0],
        # Depth and size whose overlaps are shown, and over how many trials nearest to P_max.
        "overlaps": [*overlaps],
        "max_epochs": max_epochs,
    }


def compute(parameters: Parameters, context: Context) -> xr.Dataset:
    """Train all chains, every finished batch of trials kept, and read the capacities."""
    from rmsim.studies.capacity_sweep import Design, analyse, gather, overlaps_by_layer, sweep_of

    # The device is part of the seeds; where it runs is said by the context.
    common: dict[str, Any] = {"max_epochs": parameters["max_epochs"], "device": "cpu", "batch": 3}
    designs = [
        Design((int(layers),), tuple(sizes), trials, loads=tuple(loads), **common)
        for (layers, (sizes, trials)), loads in zip(
            parameters["series"].items(), parameters["loads"].values(), strict=True
        )
    ]
    layers, sizes, trials = parameters["printed"]
    designs.append(
        Design(
            tuple(layers),
            tuple(sizes),
            trials,
            "printed",
            tuple(parameters["printed_loads"]),
            **common,
        )
    )
    sweep = sweep_of(designs, parameters["seed"])
    with swept({"capacity": sweep}, context) as folders:
        raw = gather(folders["capacity"], sweep)
    depth, size, nearest = parameters["overlaps"]
    data = analyse(raw, seed=parameters["seed"])
    by_layer = overlaps_by_layer(
        raw, "reconstruction", depth, size, nearest=nearest, seed=parameters["seed"]
    )
    data = data.merge(by_layer).assign_coords(
        overlap_protocol="reconstruction", overlap_layers=depth, overlap_n=size
    )
    best = raw["o5"].groupby(["protocol", "layers"]).max()
    data["best_o5"] = best.reindex(protocol=data["protocol"], layers=data["layers"])
    data["best_o5"].attrs["long_name"] = "largest 5th percentile of overlaps of all trials"
    # The largest of what was seen estimates nothing: beside it stands the deviation of all.
    data["best_o5_error"] = 0 * data["best_o5"] + float(raw["o5"].std())
    return data.drop_attrs(deep=False)


def plot(data: xr.Dataset) -> Picture:
    """Draw capacities against N, and overlaps by layer."""
    from rmsim.studies.plots import capacity_panel, overlap_panel

    picture = Picture(figsize=(DOUBLE, 2.7), layout="constrained")
    left, right = picture.subplots(1, 2)
    for letter, axis in zip("ab", (left, right), strict=True):
        axis.set_title(f"({letter})", loc="left", fontweight="bold")
    shown = _wider(data)
    capacity_panel(left, shown, "reconstruction")
    legend = left.get_legend()
    if legend is None:
        left.legend([], [], title="no capacity was found")
    elif shown is not data:
        legend.set_title(f"stored networks\n{legend.get_title().get_text()}")
    there = _found(shown).any("layers").values
    sizes = shown["n"].values[there] if there.any() else shown["n"].values
    n = np.array([float(sizes.min()), float(sizes.max())])
    left.plot(n, n, color="0.6", linewidth=0.8, linestyle=":")
    left.annotate("$P=N$", (n[1], n[1]), (4, 0), textcoords="offset points", va="center")
    chain = _larger_chain(data)
    overlap_panel(right, chain)
    low, high = (f"{float(chain[name]):g}" for name in ("patterns_low", "patterns_high"))
    loads = f"P={low}$" if low == high else f"P={low}$ to ${high}$"
    right.set_title(
        rf"$L={int(chain['overlap_layers'])},\ N={int(chain['overlap_n'])},\ {loads}", fontsize=7.5
    )
    right.set_ylim(-0.1, 1.05)
    return picture


def _found(data: xr.Dataset) -> xr.DataArray:
    """Return for which depths and widths the reconstruction has a capacity."""
    return data["p_max"].sel(protocol="reconstruction").notnull()


def _wider(data: xr.Dataset) -> xr.Dataset:
    """Return the stored networks, if they give the capacity at more depths and widths."""
    stored = trial_data().get("capacity")
    if stored is None or "p_max" not in stored or "reconstruction" not in stored["protocol"]:
        return data
    return stored if int(_found(stored).sum()) > int(_found(data).sum()) else data


def _larger_chain(data: xr.Dataset) -> xr.Dataset:
    """Return the overlaps by layer of the stored chain, if there is one and it is larger."""
    stored = trial_data().get("capacity")
    if stored is None or "overlap_n" not in stored.coords:
        return data
    return stored if float(stored["overlap_n"]) > float(data["overlap_n"]) else data


FIGURE = Figure(
    name="capacity",
    title="Hetero-association: capacity against width and depth, overlaps by layer",
    caption=(
        "Random pairs learnt by chains of L modules, by our reconstruction of the protocol. "
        "(a) P_max, where the 5th percentile of the overlaps with the target falls below 0.95, "
        "with bootstrap errors; lines and their slopes where three widths or more determine them; "
        "depths without a point have no such P in the range tried, or too few trials to tell. The "
        "loads P/N are drawn from a range of each depth, not from [1/2, 1] as in the "
        "paper. Stored runs (figures/data/trained), of wider networks, are drawn instead where "
        "they give more points: P_max is then what half of the trials learn, by bisection on one "
        "network or more, with the deviation of its posterior. The data hold the protocol as "
        "printed too. "
        "(b) Overlap with the target in each layer, over the trials nearest to P_max, or of three "
        "stored networks at P = 0.8 N: median with its standard error, and 5-95 % of the "
        "patterns (band)."
    ),
    parameters={
        Scale.TINY: _parameters(
            {"2": ([20, 30], 6), "3": ([20, 30], 6)}, ([2], [20], 2), (3, 30, 3), 20
        ),
        # Below N = 60 too few patterns are learnt to tell where learning ends.
        Scale.QUICK: _parameters(
            {
                "2": ([80], 6),
                "3": ([60, 80, 100], 9),
                "5": ([60, 80, 100], 9),
                "7": ([80], 6),
            },
            ([2, 3], [60], 3),
            (7, 80, 3),
        ),
        # Mostly L = 7, N = 2000: P L N^2 operations per sweep, 20 sweeps per batch, 300 epochs.
        Scale.PAPER: _parameters(
            {layers: ([200, 400, 800, 1200, 1600, 2000], 40) for layers in _LOADS},
            ([2, 3, 5], [200, 400, 800], 20),
            (7, 2000, 10),
        ),
    },
    compute=compute,
    plot=plot,
    version=2,
    seed=_SEED,
    # From the quick scale, whose cost grows like L N^3: 6 trials at L = 7, N = 100 take 24 s.
    core_hours={Scale.PAPER: 1500.0},
    earlier=("2-037583607f9a",),
)
