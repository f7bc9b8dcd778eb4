"""Theory against simulation: the number of fixed points, enumerated and exact at finite N.

All fixed points of many networks are enumerated by branch and bound. Mean count, second moment
and the distances between fixed points have exact averages at every N, with J_D and lambda divided
by sigma_N = sqrt((N-1)/N); with sigma = 1, as printed in the paper, they are rejected.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from figures.engine.figure import Context, Figure, Parameters, Scale, grid, swept
from figures.engine.plotting import DOUBLE, label_axes
from rmtheory.base.chain import Chain

SEED = 0

#: Layers, neurons per layer, lambda: as many neurons in all.
_NETWORKS = ((1, 20, 0.0), (2, 10, 0.5))

#: J_D at which distances between fixed points are shown.
_SHOWN = 0.4

#: Of what is said of both networks.
_GREY = "0.4"


def _parameters(points: int, samples: int) -> Parameters:
    return {
        "networks": [list(network) for network in _NETWORKS],
        "jd_range": [0.0, 1.0],
        "points": points,
        "samples": samples,
    }


def measure(point: dict[str, Any], seed: int) -> dict[str, Any]:
    """Enumerate the samples of one network; called by name in other processes."""
    from rmsim.enumeration.exhaustive import enumerate_samples
    from rmsim.network import Network
    from rmsim.studies import compare
    from rmtheory.base import statistics

    chain = Chain(point["layers"], point["jd"], point["lam"])
    network = Network(point["n"], chain)
    # The pairs grow with the square of the count: they are sorted at one J_D only.
    shown = point["jd"] == _SHOWN
    enumerated = enumerate_samples(network, point["samples"], seed, histogram=shown)
    count = statistics.mean(enumerated.counts)
    ratio = statistics.second_moment_ratio(enumerated.counts)
    theory_ratio = compare.second_moment_ratio(chain, network.n)
    if ratio is None or theory_ratio is None:
        raise ValueError(f"no second moment for {network}")
    pairs = pairs_error = theory_pairs = np.array([])
    if enumerated.histograms is not None:
        pairs, pairs_error = statistics.mean_of_rows(enumerated.histograms)
        exact = compare.pairs(chain, network.n)
        assert exact is not None  # twenty spins are few
        theory_pairs = exact
    return {
        "count": count.value,
        "count_error": count.error,
        "theory_count": compare.mean_count(chain, network.n),
        "unit_count": compare.mean_count_unit_variance(chain, network.n),
        "ratio": ratio.value,
        "ratio_error": ratio.error,
        "theory_ratio": theory_ratio,
        "pairs": pairs,
        "pairs_error": pairs_error,
        "theory_pairs": theory_pairs,
        "device": "cpu",  # branch and bound has no other
    }


#: Name -> meaning and unit.
_MEANING = {
    "count": "mean number of fixed points, enumerated",
    "theory_count": "the same, exact",
    "unit_count": "the same with sigma = 1, wrong at finite N",
    "ratio": "second moment over squared mean, enumerated",
    "theory_ratio": "the same, exact",
    "pairs": "ordered pairs of fixed points at a distance, enumerated",
    "theory_pairs": "the same, exact",
}


def compute(parameters: Parameters, context: Context) -> xr.Dataset:
    """Enumerate all networks, every point kept once it is finished."""
    from rmsim.sweep.definition import Grid, Sweep
    from rmsim.sweep.directory import collect

    jds = grid(parameters["jd_range"], parameters["points"]).tolist()
    rows = tuple((layers, n, lam, jd) for layers, n, lam in parameters["networks"] for jd in jds)
    sweep = Sweep(
        "counts",
        1,
        "figures.paper.counts:measure",
        Grid(("layers", "n", "lam", "jd"), rows, {"samples": parameters["samples"]}),
        SEED,
        cost=lambda point: 1 + float(point["jd"]),
    )
    with swept({"counts": sweep}, context) as folders:
        measured = collect(folders["counts"], sweep, dims=dict.fromkeys(_PAIRS, ("distance",)))
    # One entry for each network, not for each combination of layers, n and lambda.
    parts = [
        measured.sel(layers=layers, n=n, lam=lam, drop=True)
        for layers, n, lam in parameters["networks"]
    ]
    names = [name + suffix for name in _MEANING for suffix in ("", "_error")]
    data = xr.concat(parts, "network", join="exact")[[name for name in names if name in parts[0]]]
    data = data.assign_coords(
        layers=("network", [row[0] for row in parameters["networks"]]),
        n=("network", [row[1] for row in parameters["networks"]]),
        lam=("network", [row[2] for row in parameters["networks"]]),
        distance=np.arange(data.sizes["distance"]),
    )
    for name, meaning in _MEANING.items():
        data[name].attrs["long_name"] = meaning
        if f"{name}_error" not in data:  # exact up to rounding, which 1e-12 covers
            data[f"{name}_error"] = 1e-12 * abs(data[name])
    data.attrs.clear()
    return data


_PAIRS = ("pairs", "pairs_error", "theory_pairs")


def plot(data: xr.Dataset) -> Picture:
    """Draw counts, their ratio to theory, second moments and distances."""
    picture = Picture(figsize=(DOUBLE, 4.6), layout="constrained")
    axes = picture.subplots(2, 2)
    for letter, axis in zip("abcd", axes.flat, strict=True):
        axis.set_title(f"({letter})", loc="left", fontweight="bold")
    (counts, ratios), (moments, distances) = axes
    for index, (colour, marker) in enumerate((("C0", "o"), ("C1", "s"))):
        one = data.isel(network=index)
        label = f"$L={int(one.layers)}$, $N={int(one.n)}$"
        if int(one.layers) > 1:
            label += rf", $\lambda={float(one.lam):g}$"
        style = {"color": colour, "marker": marker, "label": label}
        _against(counts, one, "count", "theory_count", style)
        _against(moments, one, "ratio", "theory_ratio", style)
        exact = one["theory_count"]
        _points(ratios, one.jd, one["count"] / exact, one["count_error"] / exact, style)
        ratios.plot(one.jd, one["unit_count"] / exact, color=colour, linestyle=":")
        _distances(distances, one, style)
    ratios.axhline(1, color=_GREY, linewidth=1)
    counts.set_yscale("log")
    label_axes(counts, r"$J_D$", r"mean number of fixed points $\langle Z\rangle$")
    label_axes(ratios, r"$J_D$", r"$\langle Z\rangle$ / exact")
    label_axes(moments, r"$J_D$", r"$\langle Z^2\rangle/\langle Z\rangle^2$")
    label_axes(distances, "Hamming distance (spins)", "pairs of fixed points")
    distances.set_yscale("log")
    distances.xaxis.set_major_locator(MaxNLocator(integer=True))
    # Lines of both colours mean the same: in the legend they have none.
    exact_line = Line2D([], [], color=_GREY, linewidth=1, label="exact at this $N$")
    unit_line = Line2D([], [], color=_GREY, linestyle=":", label=r"$\sigma=1$, for $N\to\infty$")
    for axis, lines, columns in (
        (counts, [exact_line], 1),
        (ratios, [exact_line, unit_line], 2),
        (moments, [exact_line], 1),
        (distances, [exact_line], 1),
    ):
        handles = [*axis.get_legend_handles_labels()[0], *lines]
        axis.legend(handles=handles, ncols=columns, columnspacing=1)
    bottom, top = ratios.get_ylim()
    ratios.set_ylim(bottom, top + 0.25 * (top - bottom))  # there are points everywhere else
    ratios.legend_.set_loc("upper right")
    distances.legend_.set_title(f"$J_D={_SHOWN:g}$")
    return picture


def _points(
    axis: Axes, x: xr.DataArray, y: xr.DataArray, error: xr.DataArray, style: dict[str, Any]
) -> None:
    axis.errorbar(x, y, error, linestyle="none", markersize=3.5, capsize=2, **style)


def _against(axis: Axes, one: xr.Dataset, name: str, theory: str, style: dict[str, Any]) -> None:
    """Measured points with errors, and the exact curve."""
    axis.plot(one.jd, one[theory], color=style["color"], linewidth=1)
    _points(axis, one.jd, one[name], one[f"{name}_error"], style)


def _distances(axis: Axes, one: xr.Dataset, style: dict[str, Any]) -> None:
    """Pairs of different fixed points by their distance, at one J_D."""
    at = one.sel(jd=_SHOWN).isel(distance=slice(1, None))
    there = at.where(at["theory_pairs"] > 0, drop=True)
    axis.plot(there.distance, there["theory_pairs"], color=style["color"], linewidth=1)
    seen = there.where(there["pairs"] > 0, drop=True)
    _points(axis, seen.distance, seen["pairs"], seen["pairs_error"], style)


FIGURE = Figure(
    name="counts",
    title="Fixed points enumerated, against theory at finite N",
    caption=(
        "All fixed points of random networks of 20 neurons, one layer and two, against the exact "
        "averages (lines). (a) Mean number. (b) The same over the exact value; dotted, the formula "
        "with sigma = 1, which holds only as N grows. (c) Second moment. (d) Ordered pairs of "
        "different fixed points at each distance, J_D = 0.4. Error bars: one standard error."
    ),
    parameters={
        Scale.TINY: _parameters(6, 60),
        Scale.QUICK: _parameters(11, 1000),
        Scale.PAPER: _parameters(21, 20_000),
    },
    compute=compute,
    plot=plot,
    version=2,
    seed=SEED,
    core_hours={Scale.PAPER: 0.7},
    earlier=("2-751a69d69021", "2-523b94ec77ab", "2-b76481f176f5"),
)
