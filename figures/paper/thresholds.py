"""Where algorithms begin to find fixed points: dynamics, likelihood, reinforced BP (measured).

The paper says that reinforced BP finds them down to J_D = 0.35, likelihood optimisation down to 0.5
and the dynamics to 0.8. Here the probability of success is measured against J_D, with the size, the
speed dr of the reinforcement, and in chains without self-coupling against lambda.

The panels of the figure on the thresholds of all algorithms, one function each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from matplotlib.lines import Line2D

from figures.engine.figure import Context, Figure, Parameters, Scale, swept
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
from rmsim.sweep.definition import Grid, Sweep
from rmtheory.local_entropies.thresholds import critical_coupling

_SEED = 1

#: Settings of the searches that are compared; the J_D at which iterations are compared comes last
#: in every series.
_SEARCHES: dict[str, dict[str, Any]] = {
    "dynamics": {"algorithm": "dynamics"},
    "likelihood": {"algorithm": "likelihood", "max_sweeps": 500},
    "rbp .01": {"algorithm": "rbp", "dr": 0.01},
    "rbp .003": {"algorithm": "rbp", "dr": 0.003},
}
_REFERENCE = {"dynamics": 0.8, "likelihood": 0.55, "rbp .01": 0.35, "rbp .003": 0.35}

#: (first, last, number of values) of J_D or lambda.
_Window = tuple[float, float, int]


def _series(
    group: str, name: str, n: int, window: _Window, samples: int, **settings: Any
) -> dict[str, Any]:
    """One curve of success: all that defines it, as JSON values."""
    values = np.round(np.linspace(*window), 12).tolist()
    control = "lam" if group == "chain" else "jd"
    if group == "core":
        values.append(_REFERENCE[name])
    return {
        "group": group,
        "name": name,
        "n": n,
        "control": control,
        "values": values,
        "samples": samples,
        # Large networks one by one: a killed run loses one of them only.
        "batch": 25 if n < 2000 else 1,
        "settings": {**_SEARCHES[name], **settings},
    }


def _core(sizes: dict[int, tuple[int, int]], windows: dict[str, dict[int, _Window]]) -> list[Any]:
    """One layer; the samples of a size are those of most searches, and of the slow one."""
    return [
        _series("core", name, n, windows[name][n], samples[name == "rbp .003"])
        for n, samples in sizes.items()
        for name in _SEARCHES
    ]


def _speeds(n: int, samples: int, windows: dict[float, _Window]) -> list[Any]:
    """Reinforced BP at several speeds, with a cap that lets the slowest finish."""
    return [
        _series("speed", "rbp .01", n, window, samples, dr=dr, max_sweeps=4000)
        for dr, window in windows.items()
    ]


def _chains(samples: int, rows: list[tuple[str, int, int, _Window]]) -> list[Any]:
    """Chains without self-coupling."""
    masked = {"dynamics": {"p": 0.8}}
    return [
        _series("chain", name, n, window, samples, layers=layers, **masked.get(name, {}))
        for name, layers, n, window in rows
    ]


#: What varies from point to point of the sweep; the samples come in batches.
_AXES = ("algorithm", "layers", "n", "jd", "lam", "p", "dr", "max_sweeps", "samples")

#: What all points have in common.
_FIXED = {
    "rho": 1.0,
    "symmetric": False,
    "update": "synchronous",
    "r0": 0.0,
    "eta": 0.3,
    "dtype": "float32",
    "device": "cpu",  # part of the seeds; where it runs is said by --device
}

_DEFAULTS: dict[str, Any] = {"layers": 1, "p": 1.0, "dr": 0.0, "max_sweeps": 1000}


def sweep_over(series: list[dict[str, Any]], seed: int) -> Sweep:
    """Return one sweep over some series: processes are started once for all of them."""
    from rmsim.sweep.definition import batches

    rows: list[tuple[Any, ...]] = []
    for one in series:
        point = {**_DEFAULTS, **one["settings"], "n": one["n"], "jd": 0.0, "lam": 0.0}
        for value in one["values"]:
            for samples in batches(one["samples"], one["batch"]):
                here = {**point, one["control"]: value, "samples": samples}
                rows.append(tuple(here[axis] for axis in _AXES))
    return Sweep(
        "thresholds",
        1,
        "rmsim.studies.convergence:measure",
        Grid(_AXES, tuple(rows), _FIXED),
        seed,
        paired=("samples",),
        cost=_cost,
    )


def _cost(point: dict[str, Any]) -> float:
    """Couplings read in an iteration, times samples."""
    first, _, last = str(point["samples"]).partition(":")
    return float(point["layers"]) * float(point["n"]) ** 2 * (int(last) - int(first))


def compute(parameters: Parameters, context: Context) -> xr.Dataset:
    """Measure all series in one sweep, every batch kept once it is there."""
    from rmsim.studies.convergence import analyse, gather

    series, seed = parameters["series"], parameters["seed"]
    with swept({"thresholds": sweep_over(series, seed)}, context) as folders:
        raws = [gather(folders["thresholds"], sweep_over([one], seed)) for one in series]
    analyses = [
        analyse(raw, one["control"], seed=seed).isel(n=0)
        for raw, one in zip(raws, series, strict=True)
    ]
    return _together(series, analyses).merge(_theory(parameters["lam_width"]))


_POINTS = {
    "success": "fraction of samples that reached a fixed point",
    "sweeps_median": "median of the iterations to the fixed point",
}
_CROSSINGS = {
    "threshold": "coupling at which half of the samples succeed",
    "width": "width of the logistic curve",
}


def _together(series: list[dict[str, Any]], analyses: list[xr.Dataset]) -> xr.Dataset:
    """All series as rows, as long as the longest of them."""
    longest = max(len(one["values"]) for one in series)
    data = xr.Dataset()
    for name, meaning in _POINTS.items():
        for suffix in ("", "_error"):
            rows = np.full((len(series), longest), np.nan)
            for row, one in zip(rows, analyses, strict=True):
                row[: one[name].size] = one[f"{name}{suffix}"].values
            data[f"{name}{suffix}"] = (("series", "point"), rows)
        data[name].attrs["long_name"] = meaning
    for name, meaning in _CROSSINGS.items():
        for suffix in ("", "_error"):
            values = np.array([float(one[f"{name}{suffix}"]) for one in analyses])
            data[f"{name}{suffix}"] = ("series", values)
        data[name].attrs["long_name"] = meaning
    coupling = np.full((len(series), longest), np.nan)
    trials = np.zeros((len(series), longest), dtype=np.int64)
    for row, counts, about, part in zip(coupling, trials, series, analyses, strict=True):
        row[: len(about["values"])] = part[about["control"]].values
        counts[: len(about["values"])] = part["trials"].values
    return data.assign_coords(
        coupling=(("series", "point"), coupling),
        trials=(("series", "point"), trials),
        status=("series", [str(part["threshold_status"].values) for part in analyses]),
        group=("series", [one["group"] for one in series]),
        search=("series", [one["name"] for one in series]),
        n=("series", [one["n"] for one in series]),
        layers=("series", [one["settings"].get("layers", 1) for one in series]),
        dr=("series", [one["settings"].get("dr", np.nan) for one in series]),
    )


def _theory(width: float) -> xr.Dataset:
    """Where the representation manifold begins: J_D of one layer, lambda of two at J_D = 0."""
    data = xr.Dataset()
    core = critical_coupling(1, "jd")
    # Judging the whole curves of two layers takes minutes: at the paper's width only.
    pair = critical_coupling(2, "lam", jd=0.0, width=width, verdicts=width <= 1e-4)
    for name, bracket, meaning in (
        ("jd_critical", core, "J_D above which S_I*(d) increases, one layer"),
        ("lam_critical", pair, "lambda above which S_I*(d) increases, two layers at J_D = 0"),
    ):
        verdicts = " / ".join(bracket.verdicts)
        data[name] = (
            (),
            (bracket.low + bracket.high) / 2,
            {"long_name": meaning, "verdicts": verdicts},
        )
        data[f"{name}_error"] = ((), (bracket.high - bracket.low) / 2)
    return data


def plot(data: xr.Dataset) -> Picture:
    """Draw the five panels."""
    picture = Picture(figsize=(DOUBLE, 5.2), layout="constrained")
    axes = picture.subplot_mosaic("aab;cde")
    drawers = (success_panel, sizes_panel, iterations_panel, speed_panel, chain_panel)
    for letter, draw in zip("abcde", drawers, strict=True):
        axes[letter].set_title(f"({letter})", loc="left", fontweight="bold")
        draw(axes[letter], data)
    return picture


def _parameters(series: list[Any], lam_width: float) -> Parameters:
    return {"seed": _SEED, "series": series, "lam_width": lam_width}


#: With a cap that a failing search reaches soon.
_TINY = [
    {**one, "settings": {**one["settings"], "max_sweeps": 30}}
    for one in (
        *_core(
            {16: (6, 6), 24: (6, 6)},
            {
                "dynamics": dict.fromkeys((16, 24), (0.0, 0.6, 3)),
                "likelihood": dict.fromkeys((16, 24), (0.0, 0.45, 3)),
                "rbp .01": dict.fromkeys((16, 24), (-0.2, 0.3, 3)),
                "rbp .003": dict.fromkeys((16, 24), (-0.2, 0.3, 3)),
            },
        ),
        *_speeds(16, 6, {0.1: (-0.2, 0.4, 3), 0.01: (-0.2, 0.4, 3)}),
        *_chains(6, [("rbp .01", 2, 16, (0.2, 1.0, 3)), ("dynamics", 2, 16, (0.4, 1.4, 3))]),
    )
]

_QUICK = [
    *_core(
        {100: (30, 16), 200: (30, 16), 400: (20, 10)},
        {
            "dynamics": {100: (0.26, 0.50, 5), 200: (0.40, 0.54, 5), 400: (0.50, 0.60, 5)},
            "likelihood": {100: (0.20, 0.50, 5), 200: (0.30, 0.50, 5), 400: (0.34, 0.50, 5)},
            "rbp .01": {100: (0.0, 0.28, 5), 200: (0.08, 0.28, 5), 400: (0.12, 0.26, 5)},
            "rbp .003": {100: (0.0, 0.24, 5), 200: (0.08, 0.24, 5), 400: (0.08, 0.22, 5)},
        },
    ),
    *_speeds(
        100,
        25,
        {0.1: (0.1, 0.4, 5), 0.03: (0.05, 0.35, 5), 0.01: (0.0, 0.3, 5), 0.003: (0.0, 0.25, 5)},
    ),
    *_chains(
        15,
        [
            ("rbp .01", 2, 100, (0.5, 0.9, 5)),
            ("rbp .01", 2, 200, (0.6, 0.9, 5)),
            ("rbp .01", 3, 100, (0.5, 1.1, 5)),
            ("dynamics", 2, 100, (0.7, 1.2, 5)),
            ("dynamics", 2, 200, (0.95, 1.25, 5)),
        ],
    ),
]

# About twenty hours of one core, two thirds of them at N = 8000.
_PAPER = [
    *_core(
        {200: (400, 400), 500: (400, 400), 1000: (200, 200), 2000: (100, 60)}
        | {4000: (50, 30), 8000: (30, 20)},
        {
            "dynamics": {200: (0.40, 0.54, 8), 500: (0.52, 0.64, 7), 1000: (0.58, 0.68, 6)}
            | {2000: (0.63, 0.72, 6), 4000: (0.66, 0.74, 5), 8000: (0.68, 0.76, 5)},
            "likelihood": {200: (0.32, 0.50, 7), 500: (0.36, 0.51, 6), 1000: (0.38, 0.50, 5)}
            | {2000: (0.40, 0.50, 5), 4000: (0.41, 0.49, 5), 8000: (0.42, 0.48, 5)},
            "rbp .01": {200: (0.10, 0.28, 7), 500: (0.12, 0.24, 7), 1000: (0.14, 0.22, 5)}
            | {2000: (0.15, 0.21, 5), 4000: (0.15, 0.21, 5), 8000: (0.15, 0.21, 5)},
            "rbp .003": {200: (0.08, 0.23, 6), 500: (0.10, 0.22, 5), 1000: (0.12, 0.20, 5)}
            | {2000: (0.12, 0.18, 5), 4000: (0.12, 0.18, 5), 8000: (0.12, 0.18, 5)},
        },
    ),
    *_speeds(
        1000,
        100,
        {0.1: (0.2, 0.4, 9), 0.03: (0.15, 0.3, 7)}
        | dict.fromkeys((0.01, 0.003, 0.001), (0.1, 0.24, 8)),
    ),
    *_chains(
        100,
        [
            *(("rbp .01", 2, n, (0.6, 0.9, 7)) for n in (200, 500, 1000, 2000)),
            *(("rbp .01", layers, 200, (0.6, 1.2, 7)) for layers in (3, 5)),
            ("rbp .01", 3, 1000, (0.7, 1.2, 6)),
            *(("rbp .003", 2, n, (0.55, 0.85, 7)) for n in (200, 500, 1000)),
            *(("dynamics", 2, n, (0.9, 1.5, 13)) for n in (200, 500, 1000)),
            *(("likelihood", 2, n, (1.5, 4.0, 6)) for n in (200, 500)),
        ],
    ),
]

FIGURE = Figure(
    name="thresholds",
    title="Where dynamics, likelihood optimisation and reinforced BP find fixed points",
    caption=(
        "(a) Fraction of samples of one layer in which a fixed point was found, darker for larger "
        "N, with logistic fits; dotted, the paper's 0.35, 0.5 and 0.8; dashed, the theoretical "
        "J_Dc of the representation manifold. (b) J_D at which half of the samples succeed, "
        "colours as in (c). "
        "(c) Iterations to the fixed point at fixed J_D, median. (d) The 50 % point of reinforced "
        "BP against its speed dr. (e) Chains without self-coupling against λ; dashed, the "
        "theoretical λ_c of two layers. Error bars: Wilson's intervals for fractions, "
        "bootstrap for 50 % points, one standard deviation."
    ),
    parameters={
        Scale.TINY: _parameters(_TINY, 1e-2),
        Scale.QUICK: _parameters(_QUICK, 1e-3),
        Scale.PAPER: _parameters(_PAPER, 1e-4),
    },
    compute=compute,
    plot=plot,
    version=2,
    seed=_SEED,
    core_hours={Scale.PAPER: 20.0},
    earlier=("2-84705f034a00", "2-06ad5ba3136d"),
)


#: Search -> name in legends, colours of growing N, the one colour, the paper's threshold in J_D.
_DRAWN_AS: dict[str, tuple[str, str, str, float]] = {
    "dynamics": ("dynamics", "Blues_r", "C0", 0.8),
    "likelihood": ("likelihood", "Oranges_r", "C1", 0.5),
    "rbp .01": ("rBP, $dr=0.01$", "Greens_r", "C2", 0.35),
    "rbp .003": ("rBP, $dr=0.003$", "Purples_r", "C3", 0.35),
}


def _rows(data: xr.Dataset, group: str, search: str) -> Iterator[xr.Dataset]:
    """Give the series of a group and search in turn, without the padding."""
    chosen = (data["group"].values == group) & (data["search"].values == search)
    for index in np.flatnonzero(chosen):
        row = data.isel(series=index)
        yield row.isel(point=np.flatnonzero(row["trials"].values > 0))


def success_panel(axis: Axes, data: xr.Dataset) -> None:
    """Success against J_D: three algorithms, all sizes."""
    handles = []
    for search in ("rbp .01", "likelihood", "dynamics"):
        name, family, _, paper = _DRAWN_AS[search]
        rows = list(_rows(data, "core", search))
        for colour, row in zip(shades(family, len(rows) + 1)[-2::-1], rows, strict=True):
            draw_success(axis, row["coupling"], row["success"], row["trials"], colour, "o", "")
            draw_fit(axis, row["coupling"].values, row["threshold"], row["width"], colour)
        handles.append(Line2D([], [], color=colour, marker="o", markersize=3, label=name))
        axis.axvline(paper, color=colour, linewidth=0.9, linestyle=":")
    critical = float(data["jd_critical"])
    axis.axvline(critical, color="0.2", linewidth=0.9, linestyle="--")
    handles.append(Line2D([], [], color="0.2", linestyle="--", label=f"$J_{{Dc}}={critical:.3f}$"))
    handles.append(Line2D([], [], color="0.4", linestyle=":", label="paper"))
    sizes = sorted({int(n) for n in data["n"].values[data["group"].values == "core"]})
    title = f"$N={sizes[0]}$ (pale)\nto {sizes[-1]} (dark)"
    axis.set_xlim(right=0.98)  # room for the legend, to the right of the paper's 0.8
    cover = {"frameon": True, "facecolor": "white", "edgecolor": "none", "framealpha": 0.9}
    axis.legend(handles=handles, title=title, loc="lower right", handlelength=1.2, **cover)
    label_axes(axis, r"$J_D$", "fraction of samples solved")


def sizes_panel(axis: Axes, data: xr.Dataset) -> None:
    """The 50 % point against N, with the paper's values."""
    for (search, (name, _, colour, paper)), marker in zip(_DRAWN_AS.items(), "osD^", strict=True):
        known = [row for row in _rows(data, "core", search) if np.isfinite(row["threshold"])]
        axis.axhline(paper, color=colour, linewidth=0.8, linestyle=":")
        axis.errorbar(
            [int(row["n"]) for row in known],
            [float(row["threshold"]) for row in known],
            [float(row["threshold_error"]) for row in known],
            fmt=f"{marker}-",
            color=colour,
            label=name,
            **BARS,
        )
    axis.axhline(float(data["jd_critical"]), color="0.2", linewidth=0.9, linestyle="--")
    log_sizes(axis, np.unique(data["n"].values[data["group"].values == "core"]))
    axis.set_ylim(0, 0.88)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24), fontsize=6.5)
    label_axes(axis, r"$N$", r"$J_D$ at $P=\frac{1}{2}$")


def iterations_panel(axis: Axes, data: xr.Dataset) -> None:
    """Iterations to the fixed point against N, at the J_D that comes last in every series."""
    for (search, (name, _, colour, _)), marker in zip(_DRAWN_AS.items(), "osD^", strict=True):
        last = [row.isel(point=-1) for row in _rows(data, "core", search)]
        there = [row for row in last if np.isfinite(row["sweeps_median"])]
        if not there:
            continue
        axis.errorbar(
            [int(row["n"]) for row in there],
            [float(row["sweeps_median"]) for row in there],
            [np.nan_to_num(float(row["sweeps_median_error"])) for row in there],
            fmt=f"{marker}-",
            color=colour,
            label=f"{name} at $J_D={float(there[0]['coupling']):g}$",
            **BARS,
        )
    log_sizes(axis, np.unique(data["n"].values[data["group"].values == "core"]))
    axis.set_yscale("log")
    plain_ticks(axis.yaxis, [5, 10, 20, 50, 100, 200, 500, 1000])
    axis.legend(loc="upper center", bbox_to_anchor=(0.45, -0.24), fontsize=6.5)
    label_axes(axis, r"$N$", "iterations (median)")


def speed_panel(axis: Axes, data: xr.Dataset) -> None:
    """The 50 % point of reinforced BP against its speed."""
    rows = list(_rows(data, "speed", "rbp .01"))
    known = [row for row in rows if np.isfinite(row["threshold"])]
    size = int(rows[0]["n"])
    axis.errorbar(
        [float(row["dr"]) for row in known],
        [float(row["threshold"]) for row in known],
        [float(row["threshold_error"]) for row in known],
        fmt="D-",
        color="C2",
        label=f"rBP, $N={size}$",
        **BARS,
    )
    axis.axhline(0.35, color="0.4", linewidth=0.8, linestyle=":", label="paper, 0.35")
    critical = float(data["jd_critical"])
    axis.axhline(critical, color="0.2", linewidth=0.9, linestyle="--", label=r"$J_{Dc}$")
    axis.set_xscale("log")
    axis.set_ylim(0, 0.4)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24))
    label_axes(axis, r"$dr$", r"$J_D$ at $P=\frac{1}{2}$")


def chain_panel(axis: Axes, data: xr.Dataset) -> None:
    """Success of chains without self-coupling against lambda."""
    for search, (name, family, _, _) in _DRAWN_AS.items():
        rows = list(_rows(data, "chain", search))
        for colour, row in zip(shades(family, len(rows) + 1)[-2::-1], rows, strict=True):
            layers, n = int(row["layers"]), int(row["n"])
            marker = {2: "o", 3: "s", 5: "^"}.get(layers, "D")
            short = name.split(",")[0]
            label = f"{short}, $L={layers}$, $N={n}$"
            draw_success(
                axis, row["coupling"], row["success"], row["trials"], colour, marker, label
            )
            draw_fit(axis, row["coupling"].values, row["threshold"], row["width"], colour)
    critical = float(data["lam_critical"])
    label = rf"$\lambda_c={critical:.3f}$ ($L=2$)"
    axis.axvline(critical, color="0.2", linewidth=0.9, linestyle="--", label=label)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24), fontsize=6)
    label_axes(axis, r"$\lambda\quad(J_D=0)$", "fraction solved")
