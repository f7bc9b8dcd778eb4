"""Thresholds of convergence: the probability that an algorithm reaches a fixed point.

A :class:`~rmsim.studies.threshold_design.Design` is swept over sizes, values of one coupling and
batches of disorder samples; one point of the sweep is some samples at one size and one coupling
(:func:`measure`). The result of every sample is kept, not only their number: medians, quartiles and
histograms of several batches can then be taken together, and any cap below the one used be
evaluated.

:func:`summarise` gives counts and quartiles at each size and coupling, :func:`analyse` adds the
coupling at which half of the samples succeed (:mod:`rmsim.studies.success_curves`), and
:func:`trends_of` its dependence on the size.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rmsim.studies.success_curves import (
    LAW,
    Crossing,
    Limit,
    Trend,
    crossing,
    fit_trends,
    limit_of,
)
from rmsim.studies.threshold_design import (
    OWN_SETTINGS,
    Control,
    Design,
    checked_algorithm,
    design_of,
    network_of,
)
from rmsim.sweep.definition import Sweep, sample_range
from rmsim.sweep.directory import Directory, collect
from rmsim.sweep.running import run_sweep
from rmtheory.base import checks
from rmtheory.base.errors import RMError
from rmtheory.base.statistics import fraction, interval, quantile_error
from rmtheory.runtime import netcdf
from rmtheory.runtime.provenance import canonical_json

if TYPE_CHECKING:
    from rmsim.sweep.running import Backend, SweepReport

#: To be raised when the meaning of a point changes.
_VERSION = 2

#: File with the analysis in the results directory, beside the points of the sweep.
DATA = "thresholds.nc"

#: The picture beside it.
PICTURE = "thresholds.png"


def sweep_of(designs: Design | tuple[Design, ...], seed: int = 0) -> Sweep:
    """Return the sweep of a design, or of several that differ in its axes only.

    The axes are sizes, values of the coupling, p and samples.

    Batches do not enter the seed: sample k is the same network in whichever batch. The coupling
    does, so that points at different couplings are independent, as the errors assume.
    """
    some = designs if isinstance(designs, tuple) else (designs,)
    grid = some[0].grid()
    for design in some[1:]:
        grid = grid | design.grid()
    return Sweep(
        "thresholds",
        _VERSION,
        "rmsim.studies.convergence:measure",
        grid,
        seed,
        paired=("samples",),
        cost=_cost,
        unit=1.0,
    )


def _cost(point: dict[str, Any]) -> float:
    first, _, last = point["samples"].partition(":")
    return search_seconds(point | {"samples": int(last) - int(first)})


#: Nanoseconds per coupling: to draw it, and of an iteration by method (one thread; 2 GHz).
_DRAW, _ITERATION = 10.0, {"dynamics": 0.07, "rbp": 3.5, "likelihood": 6.0}


def search_seconds(point: Mapping[str, Any]) -> float:
    r"""Return about how many CPU-seconds a search in ``samples`` networks takes.

    It is :math:`L \rho N^2` couplings times the nanoseconds to draw one and of its iterations:
    for the dynamics those up to the cap below the J_D or lambda at which half of the networks
    freeze, some 0.81 - 0.35 (200/N)^0.43, and 40 beyond it. Right within a factor of some three,
    on a CPU.

    Examples
    --------
    >>> point = {"n": 1000, "jd": 0.3, "samples": 100, "algorithm": "dynamics"}
    >>> active, frozen = search_seconds(point), search_seconds(point | {"jd": 0.9})
    >>> 2 < active < 20, 0.3 < frozen < 3
    (True, True)
    """
    n, layers = float(point["n"]), float(point.get("layers", 1))
    algorithm = str(point.get("algorithm", "dynamics"))
    cap = float(point.get("max_sweeps") or point.get("max_iterations") or 1000)
    if algorithm == "dynamics":
        couplings = [float(point.get(name) or 0.0) for name in ("lam", "lam_left", "lam_right")]
        support = abs(float(point["jd"])) + 0.75 * max(map(abs, couplings))
        half = 0.81 - 0.35 * (200 / n) ** 0.43
        solved = 1 / (1 + math.exp(min((half - support) / 0.03, 50.0)))
        iterations = 40 * solved + cap * (1 - solved)
    elif "dr" in point:
        iterations = min(cap, 1 / float(point["dr"]))
    else:
        iterations = min(cap, 300.0)
    of_one = _ITERATION.get(algorithm, 5.0)
    couplings_drawn = layers * float(point.get("rho", 1.0)) * n**2 * float(point["samples"])
    return 1e-9 * couplings_drawn * (_DRAW + of_one * iterations) * float(point.get("starts", 1))


# One point.


def measure(point: Mapping[str, Any], seed: int, device: str | None = None) -> dict[str, Any]:
    """Return status, sweeps and period of the samples of `point`.

    Parameters
    ----------
    point : mapping
        n, layers, jd, lam (or lam_left and lam_right), rho, symmetric, algorithm with its
        settings, and samples as ``first:last`` (see :func:`batches`).
    seed : int
        Sample k is the same network whatever the batch it comes in.
    device : str, optional
        Where to compute, if not on the ``device`` of the point.
    """
    from rmsim.search.methods import find_fixed_point  # torch, which --help can do without
    from rmsim.search.reinforced import Schedule

    algorithm, cap = checked_algorithm(point["algorithm"]), point["max_sweeps"]
    own = OWN_SETTINGS[algorithm]
    if algorithm == "dynamics":
        own = ("update", "p")
    if algorithm == "rbp":  # the schedule ends by itself
        cap = min(cap, Schedule(point["r0"], point["dr"]).iterations)
    result = find_fixed_point(
        network_of(point),
        algorithm,
        samples=sample_range(point["samples"]),
        seed=seed,
        dtype=point["dtype"],
        device=point["device"] if device is None else device,
        max_iterations=cap,
        **{name: point[name] for name in own},
    )
    return {
        "status": result.status.numpy().astype(np.int64),
        "sweeps": result.iterations.numpy(),
        "period": result.period.numpy(),
        "device": result.device,
    }


# All points together.

Array = NDArray[np.float64]

_MEANING = {
    "trials": "disorder samples",
    "fixed_points": "samples that reached a fixed point",
    "cycles": "samples that ended in a cycle",
    "capped": "samples that ended in neither within the cap",
    "marginal": "samples whose fixed point has a margin <= 0 in float64",
    "paramagnets": "samples whose magnetisations fell to zero",
    "polarised": "samples with every spin certain, not at a fixed point",
    "diverged": "samples in which a number left the range of its type",
    "settled": "samples at a maximum of the likelihood that is not a fixed point",
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
        where nothing succeeded, or there was no cycle, and their errors where only one was.
    """
    from rmsim.dynamics.status import Status  # torch, which lists of figures do without

    status, sweeps, period = (
        np.asarray(raw[name].transpose("n", control, ...).values, dtype=float)
        for name in ("status", "sweeps", "period")
    )
    shape = status.shape[:2]
    status, sweeps, period = (a.reshape(*shape, -1) for a in (status, sweeps, period))
    fixed = status == Status.FIXED_POINT
    capped = status == Status.CAP
    if cap is not None:
        late = fixed & (sweeps > cap)
        fixed, capped = fixed & ~late, capped | late
    cycle = status == Status.CYCLE
    trials = (~np.isnan(status)).sum(-1)
    counts = {
        "trials": trials,
        "fixed_points": fixed.sum(-1),
        "cycles": cycle.sum(-1),
        "capped": capped.sum(-1),
        "marginal": (status == Status.MARGINAL).sum(-1),
        "paramagnets": (status == Status.PARAMAGNET).sum(-1),
        "polarised": (status == Status.POLARISED).sum(-1),
        "diverged": (status == Status.DIVERGED).sum(-1),
        "settled": (status == Status.CONVERGED).sum(-1),
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
    # 2-cycles are always counted, so that period has a coordinate also if there is no cycle.
    periods = np.unique(np.append(period[cycle], 2)).astype(np.int64)
    by_period = [(cycle & (period == value)).sum(-1) for value in periods]
    data["period_counts"] = ((*dims, "period"), np.stack(by_period, axis=-1))
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
    """Quartiles of the chosen `values`, with their
    :func:`~rmtheory.base.statistics.quantile_error`.

    A single value has no spread: its error is NaN. Values are whole numbers, and no error is below
    half a step: some that agree do not prove that all do.
    """
    from rmsim.dynamics.relaxation import HALF_A_SWEEP

    levels = {"q25": 0.25, "median": 0.5, "q75": 0.75}
    columns = {
        f"{name}_{level}{suffix}": np.full(chosen.shape[:2], np.nan)
        for level in levels
        for suffix in ("", "_error")
    }
    for place in np.ndindex(*chosen.shape[:2]):
        ordered = np.sort(values[place][chosen[place]])
        if not ordered.size:
            continue
        for level, q in levels.items():
            columns[f"{name}_{level}"][place] = np.quantile(ordered, q)
            if ordered.size > 1:
                error = quantile_error(ordered, q, resolution=HALF_A_SWEEP)
                columns[f"{name}_{level}_error"][place] = error
    return xr.Dataset({key: (dims, value) for key, value in columns.items()})


# Thresholds.

_THRESHOLD_MEANING = {
    "threshold": "coupling at which half of the samples succeed",
    "width": "width of the logistic curve",
    "fit_p_value": "share of resamples that the curve fits worse",
}


def analyse(raw: xr.Dataset, control: Control, *, seed: int, cap: int | None = None) -> xr.Dataset:
    """Return the summary of `raw` with the 50 % point at every size.

    Parameters
    ----------
    raw : Dataset
        Of :func:`gather`.
    control : str
        The coupling that was swept.
    seed : int
        Of the bootstrap.
    cap : int, optional
        Count as success only what needed at most so many sweeps.

    Returns
    -------
    Dataset
        As of :func:`summarise`, with ``threshold``,
        ``threshold_error``, ``threshold_status``, ``threshold_method``, ``width``, ``width_error``
        and ``fit_p_value`` for each n: NaN where the status says that there is none, and no width
        where the method is interpolation.
    """
    data = summarise(raw, control, cap)
    crossings = [_at(data.sel(n=n), control, (seed, int(n))) for n in data["n"].values]
    columns = {
        "threshold": [c.value for c in crossings],
        "threshold_error": [c.error for c in crossings],
        "width": [c.width for c in crossings],
        "width_error": [c.width_error for c in crossings],
        "fit_p_value": [c.p_value for c in crossings],
    }
    for name, column in columns.items():
        data[name] = ("n", np.array([np.nan if x is None else x for x in column]))
    data["threshold_status"] = ("n", np.array([str(c.status) for c in crossings]))
    data["threshold_method"] = ("n", np.array([str(c.method) for c in crossings]))
    for name, meaning in _THRESHOLD_MEANING.items():
        data[name].attrs["long_name"] = meaning
    return data


def _at(data: xr.Dataset, control: str, seed: tuple[int, int]) -> Crossing:
    measured = data.isel({control: np.flatnonzero(data["trials"].values > 0)})
    return crossing(
        measured[control].values, measured["fixed_points"], measured["trials"], seed=seed
    )


def trends_of(data: xr.Dataset) -> tuple[tuple[Trend, ...], Limit]:
    """Return the fits of the 50 % point against the size, and the limit they allow.

    The attribute ``trend`` says whether the law of the dynamics holds (:func:`analysed`).
    """
    there = data.isel(n=np.flatnonzero(np.isfinite(data["threshold"].values)))
    law = data.attrs.get("trend") == LAW
    trends = fit_trends(there["n"], there["threshold"], there["threshold_error"], law=law)
    return trends, limit_of(trends)


def trend_attributes(trends: tuple[Trend, ...], limit: Limit) -> dict[str, str]:
    """Return the fits as attributes of a data file."""
    fits: dict[str, Any] = {trend.form: asdict(trend) for trend in trends}
    return {"trends": canonical_json(fits), "limit": canonical_json(asdict(limit))}


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Success of a method against one coupling, and where it is 1/2, for several sizes.

    Parameters
    ----------
    design : Design
        What was measured.
    data : Dataset
        On (n, coupling): ``success`` with its error and interval, counts of every status, quartiles
        of the sweeps; on n: ``threshold``, ``threshold_error`` and ``threshold_status``.
    trends : tuple of Trend
        Fits of the threshold against N.
    limit : Limit
        What they allow to say about N -> infinity.
    """

    design: Design
    data: xr.Dataset
    trends: tuple[Trend, ...]
    limit: Limit

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as JSON values; None where there is none, and the status says why."""
        design, control = self.design, self.design.control
        return {
            "parameters": {
                **design.fixed(),
                "n": list(design.sizes),
                control: list(design.values),
                "p": design.search.p,
                "samples": design.samples,
            },
            "control": control,
            "thresholds": [_threshold(design, self.data.sel(n=n)) for n in design.sizes],
            "trends": [asdict(trend) for trend in self.trends],
            "limit": asdict(self.limit),
            "points": [
                {"n": n, control: x, **_point(self.data.sel({"n": n, control: x}))}
                for n in design.sizes
                for x in design.values
            ],
        }


_AT_THRESHOLD = ("threshold", "threshold_error", "width", "width_error", "fit_p_value")
_AT_POINT = (
    *("success", "success_error", "success_low", "success_high"),
    *(f"sweeps_{x}{suffix}" for x in ("median", "q25", "q75") for suffix in ("", "_error")),
)
_COUNTS = (
    *("trials", "fixed_points", "cycles", "capped", "marginal"),
    *("paramagnets", "polarised", "diverged", "settled"),
)


def _threshold(design: Design, row: xr.Dataset) -> dict[str, Any]:
    """Return the 50 % point of one size as JSON values."""
    from rmsim.studies.compare import convergence_bound

    n, last = int(row["n"]), row.isel({design.control: -1})
    return {
        "n": n,
        **plain_numbers(row, _AT_THRESHOLD),
        "status": str(row["threshold_status"].item()),
        "method": str(row["threshold_method"].item()),
        "bound": convergence_bound(n) if design.bounded else None,
        **plain_numbers(last, ("sweeps_median", "sweeps_median_error")),
        **_theory(row),
    }


def _theory(row: xr.Dataset) -> dict[str, float | None]:
    """The 50 % point of the theory, and the difference in errors of both; None without one."""
    names = ("theory_threshold", "theory_threshold_error")
    if not set(names) <= set(row):
        return dict.fromkeys((*names, "threshold_z_score"))
    numbers = plain_numbers(row, (*names, "threshold", "threshold_error"))
    theory, its, measured, error = numbers.values()
    score = None
    if theory is not None and its is not None and measured is not None and error is not None:
        score = (measured - theory) / math.hypot(error, its)
    return {names[0]: theory, names[1]: its, "threshold_z_score": score}


def _point(row: xr.Dataset) -> dict[str, Any]:
    """Return what was measured at one size and coupling as JSON values."""
    counts = {int(p): int(c) for p, c in zip(row["period"], row["period_counts"], strict=True)}
    return {
        **{name: int(row[name]) for name in _COUNTS},
        **plain_numbers(row, _AT_POINT),
        "periods": {str(period): count for period, count in counts.items() if count},
    }


def plain_numbers(row: xr.Dataset, names: Iterable[str]) -> dict[str, float | None]:
    """Return numbers of a data set as JSON values; None where there is none."""
    numbers = {name: float(row[name]) for name in names}
    return {name: None if math.isnan(number) else number for name, number in numbers.items()}


def analysed(folder: str | os.PathLike[str], sweep: Sweep, design: Design) -> Thresholds:
    """Return the thresholds of a sweep that has run in `folder`."""
    raw = gather(folder, sweep)
    data = analyse(raw, design.control, seed=sweep.seed)
    data.attrs["trend"] = LAW if design.follows_law else "unknown"
    if design.has_half_points:
        from rmsim.studies.compare import half_points

        value, error = half_points(design.sizes, design.search.cap)
        meaning = {"long_name": "50 % point, theory of the dynamics"}
        data["theory_threshold"] = ("n", value, meaning)
        data["theory_threshold_error"] = ("n", error)
    trends, limit = trends_of(data)
    attributes = raw.attrs | data.attrs | trend_attributes(trends, limit)
    return Thresholds(design, data.assign_attrs(attributes), trends, limit)


def thresholds(
    n: int | Sequence[int],
    jd: float | Sequence[float] = 0.0,
    lam: float | Sequence[float] | None = None,
    *,
    layers: int = 1,
    samples: int = 100,
    seed: int = 0,
    algorithm: str = "dynamics",
    out: str | os.PathLike[str] | None = None,
    backend: Backend | None = None,
    **settings: Any,
) -> Thresholds:
    r"""Measure the coupling at which a method begins to find fixed points.

    At every size N and every value of one coupling, independent networks are drawn and searched;
    the threshold :math:`x_{1/2}(N)` is where half of them succeed, by a logistic curve where one
    fits and by interpolation elsewhere, with its error by the bootstrap.

    Parameters
    ----------
    n : int or sequence of int
        Neurons per layer.
    jd, lam : float or sequence of float
        Self-coupling J_D and coupling lambda between layers. The one with several values is swept.
    layers : int
        Length of the chain.
    samples : int
        Disorder samples at every size and value.
    seed : int
        Seed of the networks, starts and masks, and of the bootstrap.
    algorithm : str
        ``dynamics``, ``rbp`` or ``likelihood``, as for :func:`find_fixed_point`.
    out : path, optional
        Folder that keeps the results: a run that was stopped resumes, and sizes, values or samples
        can be added. Without it nothing is kept but what is returned.
    backend : Backend, optional
        Where to compute: ``Local()``, processes on all cores, by default; ``Serial()`` is this
        process.
    **settings
        The other parameters of :class:`rmsim.studies.Design`: `lam_left` and `lam_right`, `rho`,
        `symmetric`, `update`, `p`, `max_sweeps` (the cap, on which thresholds depend), `r0`, `dr`,
        `eta`, `dtype`, `device`, `batch`.

    Returns
    -------
    Thresholds
        Data with errors, fits against N, and the limit they allow.

    Raises
    ------
    RMError
        If points failed; those that are done are kept in `out`.

    Examples
    --------
    >>> import rmsim as rs
    >>> result = rs.thresholds([20, 40], jd=[0.0, 0.3, 0.6], samples=25, backend=rs.Serial())
    >>> success = result.data.success.sel(n=40)
    >>> bool(success.sel(jd=0.6) > success.sel(jd=0.0))
    True
    >>> bool(((0 < result.data.threshold) & (result.data.threshold < 0.6)).all())
    True
    """
    design = design_of(n, jd, lam, layers=layers, samples=samples, algorithm=algorithm, **settings)

    def run(sweep: Sweep, folder: Path) -> SweepReport:
        report = run_sweep(sweep, folder, backend)
        if report.failures:
            first = report.failures[0]
            raise RMError(f"{len(report.failures)} of {report.asked} points failed; {first}")
        return report

    number = checks.integer("seed", seed, 0)
    if out is not None:
        return measured_thresholds(design, Path(out), number, run)[0]
    with tempfile.TemporaryDirectory() as place:
        return measured_thresholds(design, Path(place, "points"), number, run)[0]


def measured_thresholds(
    design: Design,
    folder: Path,
    seed: int,
    run: Callable[[Sweep, Path], SweepReport],
    draw: Callable[[xr.Dataset, str, str, Path], None] | None = None,
) -> tuple[Thresholds, SweepReport]:
    """Run the sweep of `design` in `folder`, analyse it, and store :data:`DATA` beside its points.

    Parameters
    ----------
    design : Design
        What is measured.
    folder : Path
        The results directory.
    seed : int
        Of the sweep and of the bootstrap.
    run : callable
        Runs a sweep in a folder, and raises if points failed.
    draw : callable, optional
        Draws :data:`PICTURE`, :func:`rmsim.studies.plots.plot_thresholds`.
    """
    sweep = sweep_of(design, seed)
    report = run(sweep, folder)
    result = analysed(folder, sweep, design)
    with Directory(folder).at_work():
        netcdf.save(result.data, folder / DATA)
        if draw is not None:
            draw(result.data, design.control, str(design), folder / PICTURE)
    return result, report
