r"""The capacity P_max of chains and its slope in N (paper, SM-D), from trials of one sweep.

A :class:`Design` is swept over protocols, depths, sizes and batches of trials
(:mod:`rmsim.studies.capacity`). A smooth spline goes through the 5th percentiles :math:`O_5(P)` of
all trials; P_max is where it falls below :math:`1-\varepsilon`. The error is that of the bootstrap
over trials. The slope is that of a straight line through P_max(N), weighted by these errors.

P_max of one network is enclosed by bisection (:func:`bracket_capacity`), which takes five trials or
so; the P that half of the trials learn follows from all trials of some networks
(:func:`half_learnt`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy import special
from scipy.interpolate import CubicSpline

from rmsim.studies.capacity import Protocol, protocol_named, run_trials
from rmsim.studies.convergence import plain_numbers
from rmsim.sweep.definition import Grid, Sweep, batches, sample_range
from rmsim.sweep.directory import Directory, collect
from rmsim.tensors import choose_device, choose_dtype
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError, counted
from rmtheory.base.statistics import standard_error, weighted_fit
from rmtheory.runtime import netcdf

_VERSION = 1

#: Names of the files in the results directory, beside the points of the sweep.
CAPACITY, OVERLAPS = "capacity", "overlaps"


@dataclass(frozen=True)
class Design:
    """Trials of chains of some depths and sizes.

    Parameters
    ----------
    layers, sizes : tuple of int
        Depths L and neurons per layer N.
    trials : int
        Trials of each.
    protocol : str
        How they learn, by name.
    loads : pair of float
        P is uniform between these times N; the paper's are 1/2 and 1.
    max_epochs : int
        Epochs at most.
    batch : int
        Trials computed together, as one piece of work.
    """

    layers: tuple[int, ...]
    sizes: tuple[int, ...]
    trials: int
    protocol: str = "reconstruction"
    loads: tuple[float, float] = (0.5, 1.0)
    max_epochs: int = 300
    dtype: str = "float32"
    device: str = "auto"
    batch: int = 5

    def __post_init__(self) -> None:
        protocol_named(self.protocol)
        for depth in self.layers:
            checks.integer("layers", depth, 1)
        for size in self.sizes:
            checks.integer("n", size, 2)
        for name in ("trials", "max_epochs", "batch"):
            checks.integer(name, getattr(self, name), 1)
        low, high = self.loads
        if not 0 < low < high:
            raise InvalidInputError("loads", self.loads, "two positive numbers, the lower first")

    def grid(self) -> Grid:
        """Return the points of this design."""
        return Grid.product(
            {
                "protocol": (self.protocol,),
                "loads": (f"{self.loads[0]!r}:{self.loads[1]!r}",),
                "layers": self.layers,
                "n": self.sizes,
                "trials": batches(self.trials, self.batch),
            },
            {"max_epochs": self.max_epochs, "dtype": self.dtype, "device": self.device},
        )

    def __str__(self) -> str:
        low, high = self.loads
        return (
            f"{self.protocol} protocol: {counted(self.trials, 'trial')} with P "
            f"from {low:g} N to {high:g} N, at most {counted(self.max_epochs, 'epoch')}"
        )


def sweep_of(designs: Design | Sequence[Design], seed: int) -> Sweep:
    """Return the sweep over the points of all `designs`, which share epochs and precision."""
    first, *others = [designs] if isinstance(designs, Design) else designs
    grid = first.grid()
    for other in others:
        grid |= other.grid()
    # Trial k is the same chain in whichever piece it comes.
    return Sweep(
        "capacity",
        _VERSION,
        "rmsim.studies.capacity_sweep:measure",
        grid,
        seed,
        paired=("trials",),
        cost=lambda point: float(point["layers"]) * float(point["n"]) ** 3,
    )


def measure(point: Mapping[str, Any], seed: int, device: str | None = None) -> dict[str, Any]:
    """Train the trials of one point, on `device` or else that of the point.

    It is called by name in other processes.
    """
    low, _, high = str(point["loads"]).partition(":")
    numbers = sample_range(point["trials"])
    work = len(numbers) * point["layers"] * point["n"] ** 2
    place = choose_device(device or point["device"], work)
    trials = run_trials(
        protocol_named(point["protocol"]).with_settings(max_epochs=point["max_epochs"]),
        point["layers"],
        point["n"],
        numbers,
        seed,
        loads=(float(low), float(high)),
        device=place,
        dtype=choose_dtype(point["dtype"]),
    )
    return {
        "patterns": trials.patterns,
        "o5": trials.o5,
        "epochs": trials.epochs,
        "overlap_median": trials.median,
        "overlap_low": trials.low,
        "overlap_high": trials.high,
        "device": str(place),
    }


# All trials together.

#: Trials nearest to P_max over which overlaps by layer are averaged, as in the paper.
NEAREST = 10


#: Runs a sweep in a folder, and raises if points failed.
Run = Callable[[Sweep, Path], Any]


def measured_capacity(
    design: Design,
    folder: Path,
    seed: int,
    run: Run,
    draw: Callable[[xr.Dataset, xr.Dataset, Path], None] | None = None,
) -> xr.Dataset:
    """Run the trials of `design` in `folder`; return P_max and slopes, stored beside them.

    Parameters
    ----------
    design : Design
        The trials.
    folder : Path
        The results directory.
    seed : int
        Of the trials and of the bootstrap.
    run : callable
        Runs a sweep in a folder, and raises if points failed.
    draw : callable, optional
        Draws a picture, :func:`rmsim.studies.plots.plot_capacity`.
    """
    raw = _trials_of(design, folder, seed, run)
    data = analyse(raw, seed=seed).assign_attrs(raw.attrs)
    with Directory(folder).at_work():
        netcdf.save(data, folder / f"{CAPACITY}.nc")
        if draw is not None:
            draw(data, raw, folder / f"{CAPACITY}.png")
    return data


def measured_overlaps(
    design: Design,
    folder: Path,
    seed: int,
    run: Run,
    draw: Callable[[xr.Dataset, Path], None] | None = None,
) -> xr.Dataset:
    """Run the trials of one depth and size in `folder`; return overlaps by layer, stored there.

    See :func:`measured_capacity` for the arguments and :func:`overlaps_by_layer` for the result.
    """
    if len(design.layers) > 1 or len(design.sizes) > 1:
        asked = f"{', '.join(map(str, design.layers))}; {', '.join(map(str, design.sizes))}"
        raise InvalidInputError("layers, n", asked, "one value each")
    checks.integer("trials", design.trials, 2)  # for an error bar
    raw, layers, n = _trials_of(design, folder, seed, run), design.layers[0], design.sizes[0]
    data = overlaps_by_layer(raw, design.protocol, layers, n, seed=seed).assign_attrs(raw.attrs)
    with Directory(folder).at_work():
        netcdf.save(data, folder / f"{OVERLAPS}.nc")
        if draw is not None:
            draw(data, folder / f"{OVERLAPS}.png")
    return data


def _trials_of(design: Design, folder: Path, seed: int, run: Run) -> xr.Dataset:
    sweep = sweep_of(design, seed)
    run(sweep, folder)
    return gather(folder, sweep)


def capacity_rows(design: Design, data: xr.Dataset) -> dict[str, Any]:
    """Return P_max of each depth and size, and the slope of each depth, as JSON values."""
    part = data.sel(protocol=design.protocol)
    rows = []
    for depth in design.layers:
        for size in design.sizes:
            one = part.sel(layers=depth, n=size)
            status, trials = str(one["status"].item()), int(one["trials"])
            numbers = plain_numbers(one, with_errors("p_max"))
            rows.append({"layers": depth, "n": size, **numbers, "status": status, "trials": trials})
    lines = with_errors("slope", "intercept")
    slopes = [
        {"layers": depth, **plain_numbers(part.sel(layers=depth), lines)} for depth in design.layers
    ]
    return {"parameters": asdict(design), "rows": rows, "slopes": slopes}


def overlap_rows(design: Design, data: xr.Dataset) -> dict[str, Any]:
    """Return the overlaps by layer, and the trials that they are taken over, as JSON values."""
    names = with_errors("overlap_median", "overlap_low", "overlap_high")
    rows = [
        {"layer": int(layer), **plain_numbers(data.sel(layer=layer), names)}
        for layer in data["layer"].values
    ]
    return {
        "parameters": asdict(design),
        "rows": rows,
        "trials_used": int(data["overlap_trials"]),
        "patterns": [float(data["patterns_low"]), float(data["patterns_high"])],
    }


def with_errors(*names: str) -> tuple[str, ...]:
    """Return the names of values, each with that of its error.

    Examples
    --------
    >>> with_errors("slope")
    ('slope', 'slope_error')
    """
    return tuple(f"{name}{suffix}" for name in names for suffix in ("", "_error"))


def gather(folder: str | os.PathLike[str], sweep: Sweep) -> xr.Dataset:
    """Return every trial: its P, O_5, epochs and overlaps, along the dimension ``trial``.

    The coordinates of a trial are its protocol, layers and n.
    """
    scalars, layered = ("patterns", "o5", "epochs"), ("median", "low", "high")
    dims: dict[str, tuple[str, ...]] = dict.fromkeys(scalars, ("member",))
    dims |= {f"overlap_{name}": ("member", "layer") for name in layered}
    collected = collect(folder, sweep, dims=dims)
    wanted = [*scalars, *(f"overlap_{name}" for name in layered)]
    flat = collected[wanted].stack(trial=("protocol", "loads", "layers", "n", "trials", "member"))
    flat = flat.reset_index("trial").isel(trial=np.flatnonzero(np.isfinite(flat["o5"].values)))
    flat = flat.drop_vars(["loads", "trials", "member"], errors="ignore")
    return flat.transpose("trial", "layer").assign_attrs(collected.attrs)


def analyse(raw: xr.Dataset, *, epsilon: float = 0.05, seed: int = 0) -> xr.Dataset:
    """Return P_max on (protocol, layers, n) with errors and status, and slopes with errors."""
    protocols, layers, sizes = (
        list(dict.fromkeys(raw[name].values.tolist())) for name in ("protocol", "layers", "n")
    )
    layers, sizes = sorted(layers), sorted(sizes)
    shape = (len(protocols), len(layers), len(sizes))
    value, error = np.full(shape, np.nan), np.full(shape, np.nan)
    status = np.full(shape, "", dtype="U120")
    trials = np.zeros(shape, dtype=np.int64)
    for a, protocol in enumerate(protocols):
        for b, depth in enumerate(layers):
            for c, n in enumerate(sizes):
                one = _of(raw, protocol, depth, n)
                trials[a, b, c] = one.sizes["trial"]
                if not one.sizes["trial"]:
                    continue
                capacity = p_max(
                    one["patterns"].values, one["o5"].values, epsilon=epsilon, seed=seed
                )
                value[a, b, c], error[a, b, c] = capacity.value, capacity.error
                status[a, b, c] = str(capacity.status)
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
        },
    )
    return with_slopes(data)


def with_slopes(data: xr.Dataset) -> xr.Dataset:
    """Add the lines P_max(N), weighted by errors, to capacities on (protocol, layers, n)."""
    dims = ("protocol", "layers")
    value, error = (data[name].transpose(*dims, "n").values for name in ("p_max", "p_max_error"))
    slopes = np.full((5, *value.shape[:2]), np.nan)
    for a, b in np.ndindex(*value.shape[:2]):
        line = slope(data["n"].values, value[a, b], error[a, b])
        if line is not None:
            slopes[:, a, b] = (
                *(line.alpha, line.alpha_error, line.intercept, line.intercept_error),
                line.chi2,
            )
    data = data.assign_coords(chi2=(dims, slopes[4]))
    meanings = {"slope": "slope alpha of P_max(N)", "intercept": "intercept of P_max(N)"}
    for place, (name, meaning) in enumerate(meanings.items()):
        data[name] = (dims, slopes[2 * place], {"long_name": meaning})
        data[f"{name}_error"] = (dims, slopes[2 * place + 1], {"long_name": f"error of {name}"})
    return data


def overlaps_by_layer(
    raw: xr.Dataset, protocol: str, layers: int, n: int, *, nearest: int = NEAREST, seed: int = 0
) -> xr.Dataset:
    """Return the overlap with the target in each layer, over the trials nearest to P_max.

    Median, 5th and 95th percentile over patterns are averaged over these trials; the errors are
    the standard errors of these averages. The trials are those nearest to P_max if that is known,
    else those whose O_5 is nearest to 1 - epsilon.
    """
    one = _of(raw, protocol, layers, n)
    if one.sizes["trial"] < 2:
        raise InvalidInputError("trials", one.sizes["trial"], "at least 2, for an error bar")
    capacity = p_max(one["patterns"].values, one["o5"].values, seed=seed)
    if capacity.status is CapacityStatus.FOUND:
        distance = np.abs(one["patterns"].values - capacity.value)
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
        spread = np.maximum(standard_error(values), step)
        data[f"overlap_{part}_error"] = ("layer", spread, {"long_name": "standard error"})
    return data


def _of(raw: xr.Dataset, protocol: str, layers: int, n: int) -> xr.Dataset:
    same = (raw["protocol"] == protocol) & (raw["layers"] == layers) & (raw["n"] == n)
    return raw.isel(trial=np.flatnonzero(same.values))


# P_max and its slope.

Array = NDArray[np.float64]

#: Distinct P that a smoothing spline needs.
_LEAST = 5

#: Share of the bootstrap samples that must have a crossing for its error to mean something.
_RESOLVED = 0.8

_FINE = 801


class CapacityStatus(StrEnum):
    """What the trials say of P_max; the value is the sentence for the reader."""

    FOUND = "found"
    BELOW = "below all P tried: lower the loads"
    ABOVE = "above all P tried: raise the loads"
    FEW = "fewer than 5 different P: more trials"
    UNRESOLVED = "too noisy: many bootstrap samples have no crossing, more trials"
    UNDETERMINED = "not determined: O_5 does not fall with P, more trials over wider loads"


@dataclass(frozen=True)
class Capacity:
    """P_max with its bootstrap error; NaN unless the status is found."""

    value: float
    error: float
    status: CapacityStatus


#: Pairs per neuron beyond which no P_max is searched for: couplings that learn hold two at most.
_MOST_LOAD = 4


@dataclass(frozen=True)
class CapacityBracket:
    """P_max of one network, between what it learnt and what it did not.

    Parameters
    ----------
    learnt, failed : int
        The largest P that was learnt and the least that was not, of those tried.
    patterns : tuple of int
        Every P that was tried, in order.
    o5 : tuple of float
        5th percentile of the overlap of each.
    """

    learnt: int
    failed: int
    patterns: tuple[int, ...]
    o5: tuple[float, ...]

    @property
    def value(self) -> float:
        """The middle of the bracket."""
        return (self.learnt + self.failed) / 2


def bracket_capacity(
    protocol: Protocol,
    layers: int,
    n: int,
    trial: int,
    seed: int,
    *,
    start: float,
    step: float = 0.06,
    resolution: float = 0.015,
    epsilon: float = 0.05,
) -> CapacityBracket:
    """Enclose the P_max of one network: steps until one trial succeeds and one fails, then halves.

    Every trial starts from the same couplings, those of number `trial` of :func:`run_trials`. That
    P below one that is learnt are learnt, too, is taken for granted.

    Parameters
    ----------
    protocol, layers, n, trial, seed
        As for :func:`run_trials`.
    start, step, resolution : float
        Load P/N of the first trial, steps until P_max is enclosed, and how far apart the two ends
        are in the end, in units of N. Near P_max learning is a matter of luck, since targets are
        drawn anew for every P: at N = 200 brackets from other loads are up to 0.1 N away. So read
        all its trials by :func:`half_learnt`, with those of other networks.
    epsilon : float
        By how much the overlap of all but one pair in twenty may fall short of 1.

    Raises
    ------
    InvalidInputError
        If it does not learn a single pair, or learns more than 4 N.

    Examples
    --------
    >>> protocol = protocol_named("reconstruction")
    >>> one = bracket_capacity(protocol, 3, 80, 0, 0, start=0.5, step=0.1, resolution=0.05)
    >>> one.learnt < one.value < one.failed, one.failed - one.learnt <= 4
    (True, True)
    """
    for name, value in (("start", start), ("step", step), ("resolution", resolution)):
        if not checks.exact_real(name, value) > 0:
            raise InvalidInputError(name, value, "a positive number")
    tried: dict[int, float] = {}

    def learns(patterns: int) -> bool:
        loads = ((patterns - 0.25) / n, (patterns + 0.25) / n)  # one whole number, safely
        trials = run_trials(protocol, layers, n, [trial], seed, loads=loads)
        tried[patterns] = float(trials.o5[0])
        return tried[patterns] >= 1 - epsilon

    width, patterns = max(1, round(step * n)), max(1, round(start * n))
    learnt, failed = 0, 0
    while not (learnt and failed):
        if learns(patterns):
            learnt, patterns = patterns, patterns + width
            if patterns > _MOST_LOAD * n:
                allowed = f"neurons that do not learn {_MOST_LOAD} pairs each"
                raise InvalidInputError("n", n, allowed)
        else:
            if patterns == 1:
                raise InvalidInputError("n", n, "neurons that learn one pair at least")
            failed, patterns = patterns, max(1, patterns - width)
    while failed - learnt > max(1, int(resolution * n)):
        middle = (learnt + failed) // 2
        learnt, failed = (middle, failed) if learns(middle) else (learnt, middle)
    return CapacityBracket(learnt, failed, tuple(tried), tuple(tried.values()))


#: Widths of the curve of success that are thought possible, in units of N, and points of the grid.
_WIDTHS, _CENTRES, _AROUND = (0.002, 0.1), 801, 0.2


def half_learnt(load: ArrayLike, learnt: ArrayLike) -> tuple[float, float]:
    r"""Return the load P/N that half of the trials learn, with its error.

    Mean and deviation of c over its posterior for independent trials with

    .. math:: \mathrm{Prob}(\text{learnt}) = \frac{1}{1 + e^{(P/N - c)/w}},

    c uniform within 0.2 of the loads, log w uniform from 0.002 to 0.1. How the loads were chosen
    does not matter, as long as each followed from the results before: it is no part of the
    likelihood of c.

    Parameters
    ----------
    load, learnt : array_like
        P/N of every trial, and whether it was learnt; some must have been, others not.

    Examples
    --------
    >>> value, error = half_learnt([0.4, 0.46, 0.43, 0.42], [True, False, False, True])
    >>> 0.42 < value < 0.45, 0.005 < error < 0.05
    (True, True)
    """
    x, hits = np.asarray(load, dtype=float), np.asarray(learnt, dtype=bool)
    if x.ndim != 1 or x.shape != hits.shape or not np.isfinite(x).all():
        raise InvalidInputError("load", load, f"{hits.size} finite numbers, one for each trial")
    if hits.all() or not hits.any():
        raise InvalidInputError("learnt", learnt, "trials of which some were learnt, others not")
    low, high = _WIDTHS
    widths = np.geomspace(low, high, 60)[:, None, None]
    centres = np.linspace(x.min() - _AROUND, x.max() + _AROUND, _CENTRES)
    z = (x - centres[:, None]) / widths
    # log of 1/(1 + e^z) and of 1/(1 + e^-z), without overflow
    logs = -np.logaddexp(0, np.where(hits, z, -z)).sum(axis=-1)
    weights = np.exp(logs - logs.max()).sum(axis=0)
    weights /= weights.sum()
    value = float(weights @ centres)
    return value, math.sqrt(float(weights @ (centres - value) ** 2))


@dataclass(frozen=True)
class Slope:
    """P_max = intercept + alpha N, with the errors of a weighted fit."""

    alpha: float
    alpha_error: float
    intercept: float
    intercept_error: float
    chi2: float
    dof: int


def p_max(
    patterns: ArrayLike,
    o5: ArrayLike,
    *,
    epsilon: float = 0.05,
    bootstrap: int = 200,
    seed: int = 0,
) -> Capacity:
    """Return the capacity from trials with `patterns` pairs and 5th percentiles `o5`.

    It is where the fit of :func:`monotone_fit` falls below 1 - `epsilon`. If it lies below
    everywhere, all P tried are too large, provided that trials reach 1 - `epsilon` by luck only:
    their chance is below 1/2 with 95 % confidence (Clopper and Pearson; none of 5, one of 8, two of
    11). All are too small if trials fail so rarely. Otherwise the trials do not determine P_max.

    Examples
    --------
    >>> P = np.arange(40, 81)
    >>> capacity = p_max(P, np.where(P <= 60, 1.0, 1.0 - (P - 60) / 20))
    >>> round(capacity.value), str(capacity.status)
    (61, 'found')
    """
    p, values = (np.asarray(a, dtype=float) for a in (patterns, o5))
    if p.ndim != 1 or p.shape != values.shape:
        raise InvalidInputError("o5", values.shape, f"one number for each of {p.size} trials")
    if not (np.isfinite(p).all() and np.isfinite(values).all()):
        raise InvalidInputError("o5", "an undefined number", "finite")
    checks.integer("bootstrap", bootstrap, 2)
    target = 1 - epsilon
    if np.unique(p).size < _LEAST:
        return Capacity(math.nan, math.nan, CapacityStatus.FEW)
    # The smoothness is chosen once, by cross-validation on all trials: the bootstrap keeps to it.
    penalty = _penalty(p, values)
    value, status = _crossing(p, values, target, penalty)
    if status is not CapacityStatus.FOUND:
        agree = values < target if status is CapacityStatus.BELOW else values >= target
        if not _by_luck(int((~agree).sum()), p.size):
            status = CapacityStatus.UNDETERMINED
        return Capacity(math.nan, math.nan, status)
    draw = np.random.default_rng(seed)
    resampled = []
    for _ in range(bootstrap):
        chosen = draw.integers(0, p.size, p.size)
        if np.unique(p[chosen]).size < _LEAST:
            continue
        again, outcome = _crossing(p[chosen], values[chosen], target, penalty)
        if outcome is CapacityStatus.FOUND:
            resampled.append(again)
    if len(resampled) < _RESOLVED * bootstrap:
        return Capacity(math.nan, math.nan, CapacityStatus.UNRESOLVED)
    return Capacity(value, float(np.std(resampled, ddof=1)), CapacityStatus.FOUND)


def _by_luck(some: int, trials: int) -> bool:
    """Return whether what happened in `some` of the trials has a chance below 1/2, by 95 %.

    Examples
    --------
    >>> [trials for trials in range(1, 12) if _by_luck(1, trials)]
    [8, 9, 10, 11]
    """
    return bool(special.bdtr(some, trials, 0.5) < 0.05)


def _crossing(
    p: Array, values: Array, target: float, penalty: float
) -> tuple[float, CapacityStatus]:
    """Return where the decreasing fit falls below `target`."""
    x, fitted = _decreasing(p, values, penalty)
    below = np.flatnonzero(fitted < target)
    if below.size == 0:
        return math.nan, CapacityStatus.ABOVE
    k = int(below[0])
    if k == 0:
        return math.nan, CapacityStatus.BELOW
    share = (fitted[k - 1] - target) / (fitted[k - 1] - fitted[k])
    return float(x[k - 1] + share * (x[k] - x[k - 1])), CapacityStatus.FOUND


def _decreasing(p: Array, values: Array, penalty: float) -> tuple[Array, Array]:
    """Return the decreasing curve nearest to the smoothing spline, on a fine grid.

    More pairs are harder to learn: wiggles of the spline are levelled, so that there is one
    crossing, and none is favoured. O_5 is an overlap, at most 1.
    """
    x, wiggly = smooth(p, values, penalty)
    from scipy.optimize import isotonic_regression  # here, because it is slow to import

    return x, np.minimum(isotonic_regression(wiggly, increasing=False).x, 1.0)


def monotone_fit(
    patterns: ArrayLike, o5: ArrayLike, *, bootstrap: int = 200, seed: int = 0
) -> tuple[Array, Array, Array]:
    """Return P on a fine grid, the fit of O_5 there, which decreases and is at most 1, its error.

    The error is that of the bootstrap over trials.

    Parameters
    ----------
    patterns, o5 : array_like
        Pairs and 5th percentile of each trial; five different P or more.
    bootstrap, seed : int
        Number and seed of the bootstrap samples.

    Examples
    --------
    >>> P = np.arange(40, 81)
    >>> grid, fit, error = monotone_fit(P, np.where(P <= 60, 1.0, 1.0 - (P - 60) / 20))
    >>> bool((np.diff(fit) <= 0).all()), bool(fit.max() <= 1), bool((error >= 0).all())
    (True, True, True)
    """
    p, values = (np.asarray(a, dtype=float) for a in (patterns, o5))
    if p.shape != values.shape or np.unique(p).size < _LEAST:
        allowed = f"one for each trial, of {_LEAST} different P or more"
        raise InvalidInputError("patterns", f"of shape {p.shape}", allowed)
    penalty = _penalty(p, values)
    grid, fit = _decreasing(p, values, penalty)
    draw = np.random.default_rng(seed)
    curves = []
    for _ in range(checks.integer("bootstrap", bootstrap, 2)):
        chosen = draw.integers(0, p.size, p.size)
        if np.unique(p[chosen]).size >= _LEAST:
            x, again = _decreasing(p[chosen], values[chosen], penalty)
            curves.append(np.interp(grid, x, again))
    if len(curves) < 2:
        raise InvalidInputError("patterns", f"{p.size} trials", "enough for a bootstrap")
    return grid, fit, np.std(curves, axis=0, ddof=1)


def smooth(p: Array, values: Array, penalty: float | None = None) -> tuple[Array, Array]:
    """Return the smoothing spline on a fine grid; trials of the same P count together.

    It minimises sum w (y - g)^2 + `penalty` int g''^2; a penalty that is not given is chosen by
    cross-validation.
    """
    x, mean, weight = _by_patterns(p, values)
    lam = _penalty(p, values) if penalty is None else penalty
    fitted = np.linalg.solve(np.diag(weight) + lam * _roughness(x), weight * mean)
    fine = np.linspace(x[0], x[-1], _FINE)
    return fine, np.asarray(CubicSpline(x, fitted, bc_type="natural")(fine), dtype=np.float64)


def _by_patterns(p: Array, values: Array) -> tuple[Array, Array, Array]:
    """Return the distinct P, the mean value of the trials at each, and their number."""
    x, inverse, count = np.unique(p, return_inverse=True, return_counts=True)
    return x, np.bincount(inverse, values) / count, count.astype(np.float64)


def _roughness(x: Array) -> Array:
    """Return K with g.K.g = int g''^2 for the natural cubic spline through g at `x`.

    K = Q R^-1 Q^T (Green and Silverman, Nonparametric Regression, section 2.1).
    """
    h = np.diff(x)
    inner = np.arange(x.size - 2)
    q = np.zeros((x.size, x.size - 2))
    q[inner, inner], q[inner + 2, inner] = 1 / h[:-1], 1 / h[1:]
    q[inner + 1, inner] = -1 / h[:-1] - 1 / h[1:]
    r = np.diag((h[:-1] + h[1:]) / 3) + np.diag(h[1:-1] / 6, 1) + np.diag(h[1:-1] / 6, -1)
    return np.asarray(q @ np.linalg.solve(r, q.T), dtype=np.float64)


def _penalty(p: Array, values: Array) -> float:
    """Return the penalty of least generalised cross-validation score.

    With S the map from values to fit, the score is |y - S y|^2 / (1 - tr S / n)^2.
    """
    x, mean, weight = _by_patterns(p, values)
    roughness = _roughness(x)
    penalties = ((x[-1] - x[0]) / x.size) ** 3 * np.logspace(-3, 5, 65)
    scores = []
    for lam in penalties:
        hat = np.linalg.solve(np.diag(weight) + lam * roughness, np.diag(weight))
        left = 1 - np.trace(hat) / x.size
        scores.append((weight * (mean - hat @ mean) ** 2).sum() / left**2)
    return float(penalties[int(np.argmin(scores))])


def slope(n: ArrayLike, capacity: ArrayLike, error: ArrayLike) -> Slope | None:
    """Fit a line through P_max(N), each point weighted by its error; None below two points.

    Examples
    --------
    >>> fit = slope([100, 200, 300], [50.0, 120.0, 190.0], [1.0, 1.0, 1.0])
    >>> round(fit.alpha, 6), round(fit.intercept, 6), fit.dof
    (0.7, -20.0, 1)
    """
    x, y, e = (np.asarray(a, dtype=float) for a in (n, capacity, error))
    there = np.isfinite(y) & np.isfinite(e) & (e > 0)
    x, y, e = x[there], y[there], e[there]
    if np.unique(x).size < 2:
        return None
    line = weighted_fit([1, x], y, e)
    (intercept, alpha), (intercept_error, alpha_error) = line.coefficients, line.errors
    return Slope(
        float(alpha),
        float(alpha_error),
        float(intercept),
        float(intercept_error),
        line.chi2,
        line.dof,
    )
