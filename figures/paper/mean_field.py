"""The dynamics for N -> infinity against networks: flip rates, freezing, chance stops, overlaps.

Theory is the effective process of one site (docs: Theory of the dynamics); of it one coefficient,
that of the correction in 1/sqrt(N) to the law of chance stops, was chosen by networks. Its
stationary flip rate f_inf(J_D) vanishes at J_dyn, the freezing point.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from figures.claims.landscape import QDYN
from figures.engine.figure import Context, Figure, Parameters, Scale, grid, swept
from figures.engine.plotting import BARS, DOUBLE, draw_success, label_axes, shades
from figures.paper.dynamics_threshold import PAPER_JD
from figures.paper.shipped import (
    FOLDER,
    OVERLAP_ROWS,
    overlap,
    overlap_key,
    path_of,
    random_settings,
    stored_numbers,
)
from figures.paper.trained_networks import TINY_DATA, gathered, training
from rmsim.learning.presets import MEASURED_AT
from rmtheory.base.chain import Chain
from rmtheory.base.estimate import Estimate
from rmtheory.base.statistics import mean_of_rows
from rmtheory.dynamics.averages import mean_field
from rmtheory.dynamics.finite_size import (
    StoppingLaw,
    counted_flips,
    half_point,
    stopping_law,
    stored_theory,
)
from rmtheory.dynamics.freezing import FlipRateCurve, fitted_curve, flip_rate_curve, freezing_point
from rmtheory.runtime.provenance import parameters_hash
from rmtheory.runtime.untrusted import read_json

_SEED = 6


def _parameters(
    rates: dict[str, Any],
    windows: dict[str, list[float]],
    samples: int,
    overlaps: dict[str, Any],
    solve: dict[str, Any],
) -> Parameters:
    return {
        "seed": _SEED,
        "rates": rates,
        # N -> first and last J_D and number of values about the 50 % point.
        "windows": windows,
        "samples": samples,
        "max_sweeps": 1000,
        "overlaps": overlaps,
        # How f_inf(J_D) and the stopping law are solved for, or the hash of those shipped.
        "solve": solve,
        "pair_lam": 1.6,
    }


def compute(parameters: Parameters, context: Context) -> xr.Dataset:
    """Solve the theory and measure the networks; sweeps resume, the rest takes a minute."""
    seed = parameters["seed"]
    curve, law = theory_of(parameters["solve"])
    parts = [
        _rates(parameters["rates"], seed),
        _curve(curve),
        _pair(parameters["pair_lam"], seed),
        _stops(parameters, curve, law, context),
        _overlaps(parameters["overlaps"], seed, context),
        _corrections(),
        _half_points(),
    ]
    return xr.merge(parts)


def theory_of(solve: dict[str, Any]) -> tuple[FlipRateCurve, StoppingLaw]:
    """f_inf(J_D) and the stopping law: those shipped, or solved for anew."""
    if "shipped" in solve:
        return stored_theory()
    curve = flip_rate_curve(**solve["curve"])
    relay = freezing_point(1, continuous=True, **solve["relay"]).point
    joint = fitted_curve(curve.rates, curve.couplings, limit=relay)
    return joint, stopping_law(**solve["law"])


def _put(
    data: xr.Dataset, name: str, dims: tuple[str, ...], value: Any, error: Any, text: str
) -> None:
    """Store a quantity and its error beside it."""
    data[name] = (dims, np.asarray(value, dtype=float), {"long_name": text})
    data[f"{name}_error"] = (dims, np.asarray(error, dtype=float))


def _numbers(estimates: list[Estimate]) -> tuple[list[float], list[float]]:
    return [float(e.value) for e in estimates], [float(e.error) for e in estimates]


def _rates(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """f(t) of theory and networks, and its late mean in those that are still active."""
    from rmsim.network import Network
    from rmsim.studies.compare import network_averages

    sweeps, values = settings["sweeps"], settings["jd"]
    shape = (len(values), sweeps)
    theory, networks = ((np.empty(shape), np.empty(shape)) for _ in range(2))
    late = np.full((2, len(values)), np.nan)
    for k, jd in enumerate(values):
        chain = Chain(1, jd)
        averages = mean_field(chain, sweeps, trajectories=settings["trajectories"], seed=seed)
        theory[0][k], theory[1][k] = averages.flip_rate.value, averages.flip_rate.error
        rates = network_averages(
            Network(settings["n"], chain),
            sweeps,
            samples=settings["networks"],
            starts=settings["starts"],
            seed=seed,
        ).flip_rate
        networks[0][k], networks[1][k] = mean_of_rows(rates.mean(axis=1))
        # A network that stopped by chance says nothing of the stationary state.
        going = rates[..., -1].min(axis=1) > 0
        if going.sum() > 1:
            tails = rates[going].mean(axis=1)[:, sweeps // 2 :].mean(axis=1)
            value, error = mean_of_rows(tails[:, None])
            late[:, k] = value[0], error[0]
    data = xr.Dataset(coords={"jd": values, "sweep": np.arange(1, sweeps + 1)})
    data = data.assign_coords(rates_n=settings["n"])
    at = ("jd", "sweep")
    _put(data, "flip_rate", at, *theory, "flip rate f(t), theory")
    _put(data, "flip_rate_networks", at, *networks, "flip rate f(t), networks")
    text = "flip rate at late times, networks that did not stop"
    _put(data, "late_rate", ("jd",), late[0], late[1], text)
    return data


def _curve(curve: FlipRateCurve) -> xr.Dataset:
    """The stationary states that were solved for, the curve through them, and its zero."""
    data = xr.Dataset(coords={"solved_rate": list(curve.rates)})
    solved = _numbers(list(curve.couplings))
    _put(data, "solved_jd", ("solved_rate",), *solved, "J_D at which neurons flip at this rate")
    zero = curve.freezing
    _put(data, "jd_dyn", (), zero.value, zero.error, "J_dyn, where f_inf vanishes")
    largest = max(curve.rates)
    rates = np.minimum(np.linspace(0, math.sqrt(largest), 60) ** 2, largest)
    fitted = _numbers([curve.coupling(float(rate)) for rate in rates])
    data = data.assign_coords(curve_rate=rates)
    _put(data, "curve_jd", ("curve_rate",), *fitted, "the same, fitted")
    return data


def _pair(lam: float, seed: int) -> xr.Dataset:
    """Two layers without self-coupling, all neurons updated at once: flips at late times."""
    late = mean_field(Chain(2, 0.0, lam), 60, trajectories=20_000, seed=seed).flip_rate_late
    data = xr.Dataset(coords={"pair_lam": lam})
    value, error = (math.nan, math.nan) if late is None else (late.value, late.error)
    _put(data, "pair_flip_rate", (), value, error, "flip rate of two layers at J_D = 0, p = 1")
    return data


def _stops(
    parameters: Parameters, curve: FlipRateCurve, law: StoppingLaw, context: Context
) -> xr.Dataset:
    """Share of networks at a fixed point within the cap, against N f_inf."""
    from rmsim.studies.convergence import gather, summarise, sweep_of
    from rmsim.studies.threshold_design import Design

    cap = parameters["max_sweeps"]
    designs = tuple(
        Design.of(
            (int(size),),
            "jd",
            tuple(grid([low, high], int(count)).tolist()),
            parameters["samples"],
            max_sweeps=cap,
            device="cpu",  # part of the seeds
        )
        for size, (low, high, count) in parameters["windows"].items()
    )
    sweep = sweep_of(designs, parameters["seed"])
    with swept({"stops": sweep}, context) as folders:
        shares = summarise(gather(folders["stops"], sweep), "jd").rename(jd="stop_jd")
    data = shares[["success", "success_error"]].assign_coords(trials=shares["trials"])
    values = data["stop_jd"].values
    rates, errors = _numbers([curve.rate(float(jd)) for jd in values])
    _put(data, "stop_rate", ("stop_jd",), rates, errors, "f_inf at these J_D, theory")
    # Per neuron, with the first correction in 1/sqrt(N); its relative error is that of f_inf.
    counted = [counted_flips(1, f, float(jd)) for f, jd in zip(rates, values, strict=True)]
    relative = np.array(errors) / np.maximum(rates, 1e-12)
    text = "flips per neuron that the law of chance stops counts"
    _put(data, "counted_rate", ("stop_jd",), counted, relative * counted, text)
    flips = np.linspace(0, 60, 121)
    data = data.assign_coords(flips=flips, cap=cap)
    chances = _numbers([law.probability(np.full(cap, n)) for n in flips])
    _put(data, "stop_law", ("flips",), *chances, "chance of a fixed point within the cap, theory")
    return data.drop_vars("period", errors="ignore")


def _corrections() -> xr.Dataset:
    """N times the difference of f(t) between networks and theory, mean over t <= 50, as stored."""
    count, sizes = len(random_settings()), (2000, 4000)
    pieces = {
        n: [stored_numbers("mean_field_networks", f"networks {k} N={n}") for k in range(count)]
        for n in sizes
    }
    data = xr.Dataset(coords={"setting": np.arange(1, count + 1), "pair_n": list(sizes)})
    value, error = np.empty((2, count, len(sizes)))
    for column, (n, rows) in enumerate(pieces.items()):
        for k, row in enumerate(rows):
            f = {name: np.array(numbers) for name, numbers in row["flip_rate"].items()}
            value[k, column] = n * np.mean(f["networks"] - f["theory"])
            # Sweeps of one network are not independent: their errors are added.
            error[k, column] = n * np.mean(np.hypot(f["networks_error"], f["theory_error"]))
    text = "N (f of networks - f of theory), mean over 50 sweeps"
    _put(data, "correction", ("setting", "pair_n"), value, error, text)
    return data


def _half_points() -> xr.Dataset:
    """J_50(N) of theory and networks within 1000 sweeps."""
    from rmsim.studies.success_curves import crossing

    rows = read_json(FOLDER / "phase_diagram_complete.json")["threshold"]
    own = {row["n"]: row for row in rows if row["search"] == "dynamics" and row["layers"] == 1}
    measured = {n: (row["jd"], row["jd_error"]) for n, row in own.items()}
    for piece in read_json(path_of("chance_stops")).values():
        settings = piece["settings"]
        column = settings["caps"].index(1000)
        stopped = np.array([row[column] for row in piece["result"]["stopped"]])
        trials = np.full(stopped.size, settings["samples"])
        point = crossing(np.array(settings["jd"]), stopped, trials, seed=(_SEED, settings["n"]))
        measured[settings["n"]] = (float(point.value or math.nan), float(point.error or math.nan))
    sizes = sorted(measured)
    data = xr.Dataset(coords={"half_n": sizes})
    value, error = np.array([measured[n] for n in sizes]).T
    _put(data, "half_networks", ("half_n",), value, error, "50 % point of networks, 1000 sweeps")
    theory = _numbers([half_point(n, 1000) for n in sizes])
    _put(data, "half_theory", ("half_n",), *theory, "50 % point of theory, 1000 sweeps")
    return data


def _overlaps(settings: dict[str, Any], seed: int, context: Context) -> xr.Dataset:
    """The eight cells of the table at initialisation: theory, also at finite N, and networks."""
    shape = tuple(len(values) for values in OVERLAP_ROWS.values())
    size = settings["networks"]["n"]
    cells = [_cell(settings["theory"], size, row, seed) for row in product(*OVERLAP_ROWS.values())]
    fixed = {"preset": "overlaps", MEASURED_AT: [0], **settings["networks"]}
    sweep = training(
        "overlaps",
        OVERLAP_ROWS,
        fixed,
        seed,
        replicas=settings["count"],
        paired=tuple(OVERLAP_ROWS),
    )
    meaning = {"qdyn_median": "median of q_dyn over samples, networks"}
    measured = gathered({"overlaps": sweep}, meaning, context)["overlaps"].isel(epoch=0, drop=True)
    # Sweeps come in ascending order of their axes.
    measured = measured.sel(OVERLAP_ROWS).transpose(*OVERLAP_ROWS)
    data = xr.Dataset(coords={f"phase_{name}": values for name, values in OVERLAP_ROWS.items()})
    data = data.assign_coords(phase_n=size)
    at = tuple(f"phase_{name}" for name in OVERLAP_ROWS)
    for name, column, text in (
        ("q_theory", [cell["limit"] for cell in cells], "N → ∞"),
        ("q_theory_n", [cell[f"N={size}"]["median"] for cell in cells], "median for N neurons"),
    ):
        value, error = (np.reshape(part, shape) for part in zip(*column, strict=True))
        _put(data, name, at, value, error, f"q_dyn at initialisation, theory, {text}")
    networks = measured["qdyn_median"].values, measured["qdyn_median_error"].values
    _put(data, "q_networks", at, *networks, "q_dyn at initialisation, networks")
    return data


def _cell(theory: dict[str, Any], size: int, row: tuple[float, ...], seed: int) -> dict[str, Any]:
    """The limit of a cell and its quantiles at N = `size`: as stored, or computed anew."""
    if "shipped" in theory:
        return dict(stored_numbers("overlaps", overlap_key(*row)))
    settings = dict(zip(OVERLAP_ROWS, row, strict=True))
    return overlap(**settings, trajectories=theory["trajectories"], neurons=[size], seed=seed)


# The panels.


def plot(data: xr.Dataset) -> Picture:
    """Draw the six panels."""
    picture = Picture(figsize=(DOUBLE, 7.6), layout="constrained")
    # The long labels of the last panel would otherwise narrow those above it.
    parts: Any = picture.subfigures(2, 1, height_ratios=[2, 1.12])
    above, below = parts
    axes = [*above.subplots(2, 2).ravel(), *below.subplots(1, 2, width_ratios=[1, 0.9])]
    draws = (
        *(_rate_panel, _freezing_panel, _stop_panel),
        *(_half_panel, _correction_panel, _overlap_panel),
    )
    for letter, axis, draw in zip("abcdef", axes, draws, strict=True):
        axis.set_title(f"({letter})", loc="left", fontweight="bold")
        draw(axis, data)
    return picture


def _rate_panel(axis: Axes, data: xr.Dataset) -> None:
    """f(t): lines are theory, points networks."""
    sweeps = data["sweep"].values
    shown = np.unique(np.geomspace(1, sweeps[-1], 16).astype(int)) - 1
    size = int(data["rates_n"])
    for colour, jd in zip(shades("viridis", data.sizes["jd"]), data["jd"].values, strict=True):
        row = data.sel(jd=jd)
        value, error = row["flip_rate"].values, row["flip_rate_error"].values
        # Copies that all stopped have no rate to draw on a logarithmic axis.
        there = value > 0
        axis.plot(sweeps[there], value[there], color=colour, label=f"{jd:g}")
        low = np.maximum(value - error, 1e-6)
        axis.fill_between(
            sweeps[there], low[there], (value + error)[there], color=colour, alpha=0.25, linewidth=0
        )
        y, bar = (row[name].values[shown] for name in _NETWORKS)
        # Below one flip per sweep in all networks together an average means little.
        enough = y > 2 * bar
        axis.errorbar(sweeps[shown][enough], y[enough], bar[enough], fmt="o", color=colour, **BARS)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_ylim(5e-5, 0.6)
    axis.legend(title=rf"$J_D$ (points: $N={size}$)", loc="lower left", ncols=2)
    label_axes(axis, r"sweep $t$", r"flip rate $f(t)$")


_NETWORKS = ("flip_rate_networks", "flip_rate_networks_error")


def _freezing_panel(axis: Axes, data: xr.Dataset) -> None:
    """The root of f_inf against J_D: straight, with its zero at J_dyn."""
    jd, error = data["curve_jd"].values, data["curve_jd_error"].values
    root = np.sqrt(data["curve_rate"].values)
    axis.fill_betweenx(root, jd - error, jd + error, color="C0", alpha=0.25, linewidth=0)
    axis.plot(jd, root, color="C0", label="theory")
    axis.errorbar(
        data["solved_jd"],
        np.sqrt(data["solved_rate"]),
        xerr=data["solved_jd_error"],
        fmt="s",
        color="C0",
        markerfacecolor="white",
        label="stationary states",
        **BARS,
    )
    late, bar = data["late_rate"].values, data["late_rate_error"].values
    axis.errorbar(
        data["jd"].values,
        np.sqrt(late),
        bar / (2 * np.sqrt(late)),
        fmt="o",
        color="C1",
        zorder=4,
        label=f"networks, $N={int(data['rates_n'])}$",
        **BARS,
    )
    zero, its = float(data["jd_dyn"]), float(data["jd_dyn_error"])
    axis.axvline(PAPER_JD, color="0.45", linewidth=0.9, linestyle=":", label="paper, 0.8")
    decimals = max(1, -math.floor(math.log10(its)))
    text = f"$J_{{dyn}}={zero:.{decimals}f}\\pm{its:.{decimals}f}$"
    axis.annotate(
        text,
        (zero, 0),
        (0.04, 0.09),
        textcoords="axes fraction",
        ha="left",
        fontsize=7,
        arrowprops={"arrowstyle": "-", "linewidth": 0.6},
    )
    axis.set_ylim(0, None)
    axis.set_xlim(None, 0.9)
    axis.legend(loc="upper right", facecolor="white", frameon=True, edgecolor="none", framealpha=1)
    label_axes(axis, r"$J_D$", r"$\sqrt{f_\infty}$")


def _stop_panel(axis: Axes, data: xr.Dataset) -> None:
    """Success of all sizes against the flips that count, with the law of chance stops."""
    flips = data["flips"].values
    law, error = data["stop_law"].values, data["stop_law_error"].values
    axis.fill_between(flips, law - error, law + error, color="0.3", alpha=0.2, linewidth=0)
    axis.plot(flips, law, color="0.2", label="theory")
    sizes = data["n"].values
    for colour, n, marker in zip(shades("viridis", sizes.size), sizes, "osD^vP", strict=False):
        row = data.sel(n=n)
        draw_success(
            axis,
            n * data["counted_rate"],
            row["success"],
            row["trials"],
            colour,
            marker,
            f"$N={n}$",
        )
    axis.set_xlim(-1, 60)
    axis.legend(loc="upper right")
    label_axes(
        axis,
        r"$n=N f_\infty\,(1+2\rho\sqrt{f_\infty}/J_D)$",
        f"P(fixed point in {int(data['cap'])})",
    )


def _half_panel(axis: Axes, data: xr.Dataset) -> None:
    """J_50 against 1/sqrt(N), with J_dyn as its limit."""
    x = 1 / np.sqrt(data["half_n"].values)
    theory = np.append(data["half_theory"].values, float(data["jd_dyn"]))
    error = np.append(data["half_theory_error"].values, float(data["jd_dyn_error"]))
    at, order = np.append(x, 0.0), np.argsort(np.append(x, 0.0))
    low, high = (theory + sign * error for sign in (-1, 1))
    axis.fill_between(at[order], low[order], high[order], color="C0", alpha=0.2, linewidth=0)
    axis.plot(at[order], theory[order], color="C0", label="theory")
    axis.errorbar(
        x,
        data["half_networks"],
        data["half_networks_error"],
        fmt="o",
        color="C1",
        label="networks",
        **BARS,
    )
    axis.plot(0, float(data["jd_dyn"]), "s", color="C0", clip_on=False, label="$J_{dyn}$")
    axis.set_xlim(0, None)
    axis.legend(loc="lower left")
    shown = [n for n in data["half_n"].values if n in (120, 300, 1000, 8000)]
    axis.set_xticks([0, *(1 / math.sqrt(n) for n in shown)], [r"$\infty$", *map(str, shown)])
    label_axes(axis, r"$N$   (scale of $N^{-1/2}$)", r"$J_{50}(N)$, 1000 sweeps")


def _correction_panel(axis: Axes, data: xr.Dataset) -> None:
    """The finite-size correction of f(t): N times it is the same at both sizes."""
    place = data["setting"].values
    for n, marker, face, shift in ((2000, "o", "white", -0.12), (4000, "s", "C1", 0.12)):
        row = data.sel(pair_n=n)
        axis.errorbar(
            place + shift,
            row["correction"],
            row["correction_error"],
            fmt=marker,
            color="C1",
            markerfacecolor=face,
            label=f"$N={n}$",
            **BARS,
        )
    axis.axhline(0, color="0.45", linewidth=0.8)
    axis.set_xticks(place)
    axis.legend(loc="best")
    label_axes(axis, "random setting", r"$N\,\langle f_N(t)-f(t)\rangle_{t\leq50}$")


def _overlap_panel(axis: Axes, data: xr.Dataset) -> None:
    """Theory and networks less the paper's medians; the labels have these."""
    rows = list(product(*OVERLAP_ROWS.values()))
    printed = {claim.key: claim.number for claim in QDYN}
    paper = np.array([printed[f"qdyn {jd} {lx} {ly} 0 median"] for jd, lx, ly in rows])
    place = np.arange(len(rows))
    axis.axvspan(-0.5, 0.5, color="0.88", linewidth=0, label="rounding of the paper")
    size = int(data["phase_n"])
    for name, marker, colour, shift, label in (
        ("q_theory", "s", "C0", -0.2, r"theory, $N\to\infty$"),
        ("q_theory_n", "D", "C2", 0.0, f"theory, $N={size}$"),
        ("q_networks", "o", "C1", 0.2, f"networks, $N={size}$"),
    ):
        value = data[name].values.ravel()
        axis.errorbar(
            1e3 * (value - paper),
            place + shift,
            xerr=1e3 * data[f"{name}_error"].values.ravel(),
            fmt=marker,
            color=colour,
            label=label,
            **BARS,
        )
    theory = data["q_theory"].values.ravel()
    names = [
        f"{jd:g}, {lx:g}, {ly:g}:  {q:.3f}  {t:.4f}"
        for (jd, lx, ly), q, t in zip(rows, paper, theory, strict=True)
    ]
    axis.set_yticks(place, names)
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    most = 1.15 * max(6.0, *np.abs(axis.get_xlim()))
    axis.set_xlim(-most, most)
    axis.legend(loc="upper center", bbox_to_anchor=(0.1, -0.22), ncols=2, columnspacing=0.8)
    label_axes(
        axis,
        r"$10^3\,(q_{dyn}-$ paper$)$",
        r"$J_D,\ \lambda_x,\ \lambda_y$:   paper,  theory",
    )


#: Stored data are those of one version of the tables.
_STORED = {
    "shipped": parameters_hash(
        {
            name: read_json(path_of(name))
            for name in ("mean_field", "mean_field_networks", "chance_stops", "overlaps")
        }
    )
}

FIGURE = Figure(
    name="mean_field",
    title="The dynamics for infinite N: flip rates, freezing, chance stops, overlaps",
    caption=(
        "Theory of the dynamics for N -> infinity against networks of one layer; but for one "
        "coefficient in (c) nothing is fitted to them. (a) Fraction of neurons that sweep t flips, "
        "from random starts: theory (lines, "
        "bands) and networks (points). (b) Root of the stationary flip rate: fit of theory through "
        "stationary states solved for at given rates (squares), with the exact slope at its zero "
        "J_dyn, and networks that did not stop. (c) Share of networks that reach a fixed point, "
        "against the flips per sweep that count, N f_inf with the first correction in 1/sqrt(N) "
        "(2 rho = 1.165; its coefficient was chosen after seeing 50 % points of networks): all "
        "sizes on one curve, the law of chance stops; beyond 34 flips, where it was not measured, "
        "its band allows for half of its slope. (d) J_D at which half of the networks stop within "
        "1000 sweeps, theory and networks; the band of the theory contains the square of the "
        "correction. (e) N times the difference between the flip rates of networks and theory, "
        "mean over 50 sweeps, at ten random settings of one to three layers: a correction of order "
        "1/N is the same at both sizes. (f) Overlap of clamped "
        "and free phase at initialisation, less the paper's medians, for the eight rows of its "
        "table (labels: paper, theory for N -> infinity): theory for N -> infinity, its median for "
        "networks of N neurons, and ours. The size of the labels, which the paper does not print, "
        "one constant for eight numbers, was chosen by this column. Error bars and bands: "
        "one standard deviation."
    ),
    parameters={
        Scale.TINY: _parameters(
            {
                "jd": [0.5, 0.9],
                "sweeps": 20,
                "trajectories": 2000,
                "n": 60,
                "networks": 3,
                "starts": 2,
            },
            {"40": [0.4, 0.6, 2], "60": [0.4, 0.6, 2]},
            6,
            {
                "theory": {"trajectories": 1000},
                "networks": {"n": 60, "watched": 50, **TINY_DATA},
                "count": 2,
            },
            _STORED,
        ),
        Scale.QUICK: _parameters(
            {
                "jd": [0.5, 0.6, 0.7, 0.8, 0.9],
                "sweeps": 120,
                "trajectories": 40_000,
                "n": 1000,
                "networks": 5,
                "starts": 4,
            },
            {"200": [0.40, 0.56, 5], "400": [0.49, 0.61, 5], "800": [0.56, 0.68, 5]},
            24,
            {
                "theory": _STORED,
                "networks": {"n": 1600, "watched": 50, "train_samples": 400, "test_samples": 200},
                "count": 2,
            },
            _STORED,
        ),
        Scale.PAPER: _parameters(
            {
                "jd": [0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0],
                "sweeps": 400,
                "trajectories": 400_000,
                "n": 4000,
                "networks": 20,
                "starts": 4,
            },
            {
                "200": [0.38, 0.60, 12],
                "500": [0.48, 0.70, 12],
                "1000": [0.55, 0.74, 11],
                "2000": [0.60, 0.77, 10],
                "4000": [0.65, 0.79, 8],
            },
            200,
            {
                "theory": {"trajectories": 1_600_000},
                "networks": {"n": 1600, "watched": 2000, "train_samples": None},
                "count": 10,
            },
            {
                "curve": {"repetitions": 12, "iterations": 24},
                "relay": {"repetitions": 12, "seed": 1},
                "law": {"repetitions": 400},
            },
        ),
    },
    compute=compute,
    plot=plot,
    seed=_SEED,
    core_hours={Scale.PAPER: 12.0},
)
