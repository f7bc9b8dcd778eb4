"""The curve y*(d), S_I*(d) of a chain: a data set, its minima, the verdict whether it is monotone.

Minima over d of the slope dS_I*/dd and of S_I* itself decide on the thresholds
(:mod:`rmtheory.local_entropies.thresholds`).

**Verdict.** The sign of the envelope slope decides, without differences: it is computed from d_max
down to a distance where the dilute gas of flips (:mod:`rmtheory.local_entropies.dilute_gas`)
describes the curve, and its least value is refined. The gas takes over only if the two agree, S_I*
and slope, within the error that the gas itself states; from there to d = 0 its slope has to be
positive.

**Storing.** :func:`stored_curve` keeps a curve in its file. Every solved point is a small JSON file
of its own in the folder ``OUT.parts`` until all are there, so that a run that was killed resumes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import (
    InvalidInputError,
    NotConvergedError,
    OutsideValidityError,
    RMError,
    UnreadableDataError,
)
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.local_entropies.dilute_gas import small_distance
from rmtheory.local_entropies.functional import Refined, Scanned
from rmtheory.local_entropies.points import YStar, distance, ystar
from rmtheory.local_entropies.replicated import Ladder, LadderStar
from rmtheory.local_entropies.solve import CurveTracker, functional
from rmtheory.runtime import netcdf
from rmtheory.runtime.progress import announce
from rmtheory.runtime.provenance import parameters_hash
from rmtheory.runtime.run_store import Lock, RunStore, differences, parts_of
from rmtheory.runtime.untrusted import MALFORMED

# The curve as a data set.


class CurveStoppedError(NotConvergedError):
    """The continuation was lost; `solved` is the data set of the points before."""

    def __init__(self, message: str, solved: xr.Dataset) -> None:
        super().__init__(message)
        self.solved = solved


def curve(
    chain: Chain,
    distances: Sequence[float],
    *,
    progress: Callable[[int], None] | None = None,
    known: Sequence[YStar] = (),
    on_solved: Callable[[YStar], None] | None = None,
) -> xr.Dataset:
    """Follow y*(d) through all `distances`.

    Parameters
    ----------
    chain : Chain
        Any number of layers, J_D >= 0.
    distances : sequence of float
        Distances in (0, 1/2), in any order.
    progress : callable, optional
        Called with the number of points solved so far.
    known : sequence of YStar, optional
        Points solved earlier, which are not solved again.
    on_solved : callable, optional
        Called with every point that was solved now.

    Returns
    -------
    xarray.Dataset
        Over the coordinate d, ascending: ``y_star``, ``internal``, ``slope``, ``qhat`` (by layer)
        and, for one layer and two, ``q0_stability``, each with NAME_error; for these also
        ``gas_internal``, ``gas_slope``, the limit d -> 0 (nan where d is beyond its range).

    Raises
    ------
    CurveStoppedError
        If the branch is lost; its attribute ``solved`` is the data set of the points before.

    Examples
    --------
    >>> import rmtheory as rt
    >>> data = rt.curve(rt.Chain(1, jd=0.1), [0.1, 0.2])
    >>> [f"{float(s):.6f}" for s in data.internal]  # S_I*(d)
    ['0.029044', '0.046876']
    """
    for d in distances:
        distance(d)
    if not len(distances):
        raise InvalidInputError("distances", "nothing", "at least one distance")
    model = functional(chain)
    tracker = CurveTracker(model)
    points: list[YStar] = []
    earlier = {point.d: point for point in known}
    # From the far end to d = 0: the continuation starts where Newton is safe.
    for d in sorted(map(float, distances), reverse=True):
        if d in earlier:
            points.append(earlier[d])
            if not points[-1].y_star_is_bound:
                qhat = np.array([float(q) for q in points[-1].qhat])
                tracker.add(d, float(points[-1].y_star), qhat[: model.unknowns])
            continue
        try:
            # Scanning for other zeros of S_E costs little where evaluations are fast and y* is
            # moderate; otherwise it is done at the far end.
            moderate = not points or float(points[-1].y_star) < 100
            scan = moderate if model.fast else not points
            points.append(ystar(chain, d, tol=model.curve_tol, tracker=tracker, check_zeros=scan))
        except RMError as problem:
            if isinstance(problem, InvalidInputError) or not points:
                raise
            raise CurveStoppedError(str(problem), as_dataset(chain, points)) from problem
        if on_solved is not None:
            on_solved(points[-1])
        if progress is not None:
            progress(len(points))
    return as_dataset(chain, points)


def as_dataset(chain: Chain, points: Sequence[YStar]) -> xr.Dataset:
    """Collect solved points into a data set, ascending in d."""
    points = sorted(points, key=lambda point: point.d)
    data: dict[str, tuple[tuple[str, ...], np.ndarray, dict[str, str]]] = {}

    def store(name: str, meaning: str, estimates: Sequence[Estimate]) -> None:
        values = np.array([float(e.value) for e in estimates])
        errors = np.array([float(e.error) for e in estimates])
        data[name] = (("d",), values, {"long_name": meaning})
        data[f"{name}_error"] = (("d",), errors, {"long_name": f"error of {name}"})

    store("y_star", "largest y with S_E >= 0", [p.y_star for p in points])
    store("internal", "internal entropy S_I* per neuron (nat)", [p.internal for p in points])
    store("slope", "dS_I*/dd per neuron", [p.slope for p in points])
    bound = np.array([p.y_star_is_bound for p in points])
    if bound.any():
        meaning = "whether y_star is a lower bound, whose error is infinite: S_E > 0 there"
        data["y_star_is_bound"] = (("d",), bound, {"long_name": meaning})
        data["y_star_error"][1][bound] = np.inf
    q0 = [p.q0_stability for p in points]
    if any(stability is not None for stability in q0):  # one layer or two
        # Not computed where y* is out of reach.
        columns = [(np.nan, np.nan) if e is None else (float(e.value), float(e.error)) for e in q0]
        values, errors = np.array(columns).T
        meaning = "M0 (least eigenvalue), positive where q0 = 0 is stable"
        data["q0_stability"] = (("d",), values, {"long_name": meaning})
        data["q0_stability_error"] = (("d",), errors, {"long_name": "error of q0_stability"})
    for k, name in ((0, "value"), (1, "error")):
        qhat = [[float((e.value, e.error)[k]) for e in point.qhat] for point in points]
        label = "qhat" if name == "value" else "qhat_error"
        data[label] = (("d", "layer"), np.array(qhat), {"long_name": f"conjugate overlap, {name}"})
    residual = np.array([point.residual for point in points])
    data["residual"] = (("d",), residual, {"long_name": "largest residual of the equations"})
    if functional(chain).gas_known:
        gas = np.array([_limit(chain, point.d) for point in points])
        data["gas_internal"] = (("d",), gas[:, 0], {"long_name": "S_I*, d -> 0"})
        data["gas_slope"] = (("d",), gas[:, 1], {"long_name": "slope, d -> 0"})
    coordinates = {
        "d": np.array([point.d for point in points]),
        # All layers of the infinite chain are alike.
        "layer": np.arange(1, len(points[0].qhat) + 1),
    }
    return xr.Dataset(data, coords=coordinates)


def _limit(chain: Chain, d: float) -> tuple[float, float]:
    """Return S_I* and slope of the limit d -> 0, or nan where d is beyond its range."""
    try:
        limit = small_distance(chain, d)
    except (NotConvergedError, OutsideValidityError):
        return np.nan, np.nan
    return limit.internal, limit.slope


# Minima along the curve.

#: Distances scanned for a minimum when nothing is known, from above, where Newton is safe.
SCAN = (0.25, 1e-4, 22)

#: Tolerance of the scan: signs and places are wanted, not values.
SCAN_TOL = 1e-6


@dataclass(frozen=True, eq=False)
class Minimum:
    """A minimum over d: where it is, its value with an error, and the solved point there."""

    d: float
    value: float
    error: float
    #: None where integer y gave the minimum.
    point: Refined | None
    #: Second derivative of the slope in log d, where it is the slope that was minimised.
    curvature: float = 0.0

    @property
    def solved(self) -> Refined:
        """The solved point, which the ends of a bracket have."""
        assert self.point is not None
        return self.point


def least_slope(
    tracker: CurveTracker, near: float | None, tol: float, slope_tol: float = math.inf
) -> Minimum:
    """Find the least slope dS_I*/dd over d, close to `near` or by a scan."""
    widths = [0.03, 0.006] if tol < 1e-9 else [0.03]
    if near is None:
        near = _scan(tracker, lambda point: point.moments.slope, "slope")
        widths.insert(0, 0.12)
    points: dict[float, Refined] = {}

    def slope(log_d: float) -> float:
        if log_d not in points:
            points[log_d] = tracker.solve(math.exp(log_d), tol, slope_tol)
        return points[log_d].moments.slope

    middle, moved = math.log(near), math.inf
    # Parabolas of decreasing width; the last is narrow enough to place the minimum, and still wide
    # against the noise of the slope.
    for width in widths:
        for _ in range(30):
            a, b, c = (slope(middle + k * width) for k in (-1, 0, 1))
            curvature = a - 2 * b + c
            if curvature > 0 and abs(a - c) < 3 * curvature:
                break
            middle += math.copysign(width, a - c)  # downhill until the minimum is inside
        else:
            raise NotConvergedError(f"the slope has no minimum near d = {near:g}")
        moved = 0.5 * width * (a - c) / curvature
        middle += moved
    value = slope(middle)
    point = points[middle]
    # What is left of the misplacement is small against the last move, or of second order in width.
    left = max(0.1 * abs(moved), width**2)
    misplaced = 0.5 * curvature * (left / width) ** 2
    error = point.slope_error + misplaced
    return Minimum(math.exp(middle), value, error, point, curvature / width**2)


#: Integers place the least slope if they know it to this multiple of the tolerance: the ends of a
#: bracket are then solved by the integrals, eight tolerances away from its middle.
_PLACES = 3.0


def least_slope_by_integers(tracker: CurveTracker, near: float, slope_tol: float) -> Minimum | None:
    """Find the least slope close to `near` by the replicated matrix; None if too uncertain.

    It takes a few tenths of a second for a point, where the transfer operator takes several. The
    tracker starts from the point found.
    """
    middle = math.log(near)
    known: dict[float, tuple[Ladder, LadderStar]] = {}

    def slope(log_d: float) -> float | None:
        if log_d not in known:
            ladder = tracker.model.ladder(math.exp(log_d))
            if ladder is None or not ladder.in_reach:
                return None
            known[log_d] = ladder, ladder.star()
        return known[log_d][1].slope

    for width in (0.1, 0.03):
        for _ in range(12):
            a, b, c = (slope(middle + k * width) for k in (-1, 0, 1))
            if a is None or b is None or c is None:
                return None
            across, curvature = a - c, a - 2 * b + c
            if curvature > 0 and abs(across) < 3 * curvature:
                value = b - across**2 / (8 * curvature)
                break
            middle += math.copysign(width, across)  # downhill until the minimum is inside
        else:
            return None
        ladder, star = known[middle]
        middle += 0.5 * width * across / curvature
    # The parabola misses terms of third and fourth order in the width.
    error = star.slope_error + 0.05 * curvature
    if error > _PLACES * slope_tol:
        return None
    tracker.start_from(ladder.d, star.y, ladder.near(star.y)[0])
    return Minimum(math.exp(middle), value, error, None, curvature / width**2)


def least_entropy(tracker: CurveTracker, near: float | None, tol: float) -> Minimum:
    """Find the interior minimum of S_I* over d, where the slope passes 0 from below."""
    from scipy import optimize

    if near is None:
        near = _scan(tracker, lambda point: point.moments.internal, "entropy")
    points: dict[float, Refined] = {}

    def slope(log_d: float) -> float:
        points[log_d] = tracker.solve(math.exp(log_d), tol)
        return points[log_d].moments.slope

    low = high = math.log(near)
    while slope(low) > 0:
        low -= 0.1
        if low < math.log(near) - 2:
            raise NotConvergedError(f"S_I* has no minimum near d = {near:g}")
    while slope(high) < 0:
        high += 0.1
        if high > math.log(0.4):
            raise NotConvergedError(f"S_I* still falls with d at d = {math.exp(high):g}")
    root = optimize.brentq(slope, low, high, xtol=1e-6)
    slope(root)
    point = points[root]
    return Minimum(math.exp(root), point.moments.phi, point.phi_error, point)


def _scan(tracker: CurveTracker, value: Callable[[Refined], float], what: str) -> float:
    """Return the d of the lowest interior local minimum of `value` over a coarse grid."""
    distances = np.geomspace(*SCAN)
    scanned: list[tuple[float, float]] = []
    for d in distances:
        scanned.append((float(d), value(tracker.solve(float(d), SCAN_TOL))))
        if _passed([value for _, value in scanned]):
            break
    inner = [
        (scanned[k][1], scanned[k][0])
        for k in range(1, len(scanned) - 1)
        if scanned[k - 1][1] >= scanned[k][1] <= scanned[k + 1][1]
    ]
    if not inner:
        raise NotConvergedError(
            f"the {what} of {tracker.model.chain} has no minimum between d = {scanned[-1][0]:.2g} "
            f"and {scanned[0][0]:.2g}"
        )
    return min(inner)[1]


def _passed(values: list[float]) -> bool:
    """Whether a minimum lies behind: the values fell, then rose twice (towards d = 0)."""
    if len(values) < 4:
        return False
    a, b, c, d = values[-4:]
    return a > b < c < d


# Is S_I*(d) monotone?


class Verdict(StrEnum):
    """Whether S_I*(d) increases, by the sign of its slope."""

    MONOTONE = "monotone"
    NOT_MONOTONE = "not monotone"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Monotonicity:
    """The verdict on 0 < d <= d_max and the numbers behind it."""

    chain: Chain
    verdict: Verdict
    d_max: float
    #: The least slope, and where.
    least_slope: Estimate
    d_least: float
    #: Where the dilute gas of flips takes over from the numerical curve; None where a negative
    #: slope settled the verdict before the curve was followed.
    d_join: float | None = None
    #: Slope there, numerical and of the gas, and the relative difference of S_I*; None where the
    #: gas does not describe the limit, as for J_D above 0.6745, and for more than two layers.
    slope_join: float | None = None
    slope_gas: float | None = None
    difference: float | None = None

    @property
    def join(self) -> str:
        """Where the limit d -> 0 takes over, and how well it fits, in words."""
        if self.d_join is None:
            return f"not needed: the slope is negative at d = {self.d_least:.2g}"
        how = (
            "the least distance computed; the slope rises towards d = 0"
            if self.difference is None
            else f"where S_I* differs from the dilute gas by {self.difference:.2%}"
        )
        return f"d = {self.d_join:.2g}, {how}"


def monotonicity(
    chain: Chain,
    d_max: float | None = None,
    tol: float | None = None,
    tracker: CurveTracker | None = None,
    dip: Minimum | None = None,
) -> Monotonicity:
    """Decide whether S_I*(d) increases on 0 < d <= d_max.

    `d_max` is 0.45 if not given. For three layers or more the curve is scanned by the replicated
    matrix at integer y, continued in 1/y where y* is larger, and its least slope is refined by the
    transfer operator. Monotone then means that the slope is positive down to the least distance
    reached and rises there, towards d = 0: it is not compared with the dilute gas.

    `dip` is the least slope if it is known already, as at the ends of a bracket. If it is negative
    the verdict is settled; otherwise the scan has to find its deepest dip there.

    Examples
    --------
    >>> import rmtheory as rt
    >>> for jd in (0.1, 0.06):
    ...     print(rt.monotonicity(rt.Chain(1, jd)).verdict)
    monotone
    not monotone
    """
    model = functional(chain)
    d_max = model.d_max if d_max is None else d_max
    if not 0 < checks.exact_real("d_max", d_max) < 0.5:
        raise InvalidInputError("d_max", d_max, "strictly between 0 and 1/2")
    tol = model.curve_tol if tol is None else tol
    if dip is not None and dip.value < -dip.error and dip.d <= d_max:
        return Monotonicity(chain, Verdict.NOT_MONOTONE, d_max, _least(dip.value, dip.error), dip.d)
    tracker = CurveTracker(model) if tracker is None else tracker
    scan = _verdict_scan(tracker, d_max)
    slopes = [point.slope for point in scan]
    # A dip of the slope between two points of the scan would show as a local minimum.
    dips = [k for k in range(1, len(scan) - 1) if slopes[k - 1] >= slopes[k] <= slopes[k + 1]]
    deepest = min(dips, key=lambda k: slopes[k], default=None)
    if deepest is None:
        dip = None
    elif dip is None or abs(math.log(dip.d / scan[deepest].d)) > -math.log(_RATIO):
        dip = least_slope(tracker, scan[deepest].d, tol)
    end = scan[0]
    if end.point is not None and (dip is None or end.slope - end.slope_error < dip.value):
        end = _solved(tracker.solve(d_max, tol))
    value, error, d_least = end.slope, end.slope_error, d_max
    if dip is not None and dip.value < value:
        value, error, d_least = dip.value, dip.error, dip.d
    join = scan[-1]
    gas = None if join.point is None else model.gas(join.point)
    if value < -error:
        verdict = Verdict.NOT_MONOTONE
    elif value > error and model.limit_reached(scan):
        verdict = Verdict.MONOTONE
    else:
        verdict = Verdict.UNDECIDED
    return Monotonicity(
        chain,
        verdict,
        d_max,
        _least(value, error),
        d_least,
        d_join=join.d,
        slope_join=join.slope,
        slope_gas=None if gas is None else gas.slope,
        difference=None
        if gas is None or join.point is None
        else gas.difference(join.point.moments.phi),
    )


def _least(slope: float, error: float) -> Estimate:
    return Estimate(slope, error, Tier.ESTIMATED, "least envelope slope along y*(d)")


#: Ratio of neighbouring distances of a scan.
_RATIO = 0.72


def _verdict_scan(tracker: CurveTracker, d_max: float) -> list[Scanned]:
    """Points from d_max downwards, until the flips are dilute or y* too large to go on."""
    points: list[Scanned] = []
    for d in d_max * _RATIO ** np.arange(60):
        try:
            point = _scanned(tracker, float(d))
        except NotConvergedError:
            if not points:
                raise
            break  # y* has grown too large: the last point has to agree with the limit d -> 0
        points.append(point)
        if d < 0.02 and tracker.model.scan_ends(points):
            break
    return points


def _scanned(tracker: CurveTracker, d: float) -> Scanned:
    """One point of a scan: by integer y where there is a ladder, else from the averages."""
    ladder = tracker.model.ladder(d)
    if ladder is None:
        return _solved(tracker.solve(d, SCAN_TOL))
    star = ladder.star()
    return Scanned(d, star.y, star.slope, star.slope_error)


def _solved(point: Refined) -> Scanned:
    moments = point.moments
    return Scanned(moments.d, moments.y, moments.slope, point.slope_error, point)


# A curve in its file.

#: Raised when the meaning of a stored point changes.
VERSION = 1

#: File among the finished points that says what they belong to.
STAMP = "curve.json"


@dataclass(frozen=True)
class CurveRequest:
    """Geometrically spaced distances on the curve of a chain."""

    chain: Chain
    d_min: float
    d_max: float
    points: int

    def __post_init__(self) -> None:
        for name in ("d_min", "d_max"):
            distance(getattr(self, name), name)
        if self.points < 2:
            raise InvalidInputError("points", self.points, "an integer >= 2")
        if self.d_min >= self.d_max:
            raise InvalidInputError("d_min", self.d_min, f"below d_max = {self.d_max:g}")

    @property
    def distances(self) -> list[float]:
        """Distances, ascending."""
        return [float(d) for d in np.geomspace(self.d_min, self.d_max, self.points)]

    def parameters(self, complete: bool = True) -> dict[str, Any]:
        """Return what was asked for as JSON values, and whether all of it is there."""
        numbers = {"d_min": self.d_min, "d_max": self.d_max, "points": self.points}
        return {**self.chain.parameters(), **numbers, "complete": complete}

    @property
    def key(self) -> str:
        """Name of this computation; points of another one are not taken for its own."""
        return parameters_hash(self.parameters(), VERSION)


def curve_store(target: Path) -> RunStore:
    """Return the folder of the finished points."""
    return RunStore(parts_of(target), STAMP, (STAMP, "point-*.json"), target)


def stored_curve(
    request: CurveRequest,
    target: Path,
    *,
    progress: Callable[[int], None] | None = None,
    note: Callable[[str], None] | None = None,
) -> netcdf.Stored:
    """Return the curve in the netCDF file `target`, computed and stored there if need be.

    Parameters
    ----------
    request : CurveRequest
        The chain and its distances.
    target : Path
        The file; another content of it is replaced once the curve is done.
    progress : callable, optional
        Called with the number of points solved so far, first with those that are there already.
    note : callable, optional
        Called with a sentence about what is there already.

    Raises
    ------
    InvalidInputError
        If another run is at work on `target`, or the folder keeps points of another curve.
    CurveStoppedError
        If the continuation is lost; the points before are then in `target`, as ``solved``.
    """
    store = curve_store(target)

    def keep(point: YStar) -> None:
        store.save(_name(point.d), {**_to_json(point), "key": request.key})

    def compute(save: netcdf.Save) -> xr.Dataset:
        done = finished_points(request, target)
        left = request.points - len(done)
        announce(
            len(done),
            request.points,
            left * functional(request.chain).curve_seconds,
            kept_in=store.path,
            note=note,
            progress=progress,
        )
        try:
            data = curve(
                request.chain, request.distances, progress=progress, known=done, on_solved=keep
            )
        except CurveStoppedError as stopped:
            save(stopped.solved, request.parameters(complete=False))
            raise
        return save(data, request.parameters())

    def claim(_lock: Lock) -> None:
        _claim(request, store)

    return netcdf.computed_once(
        store, request.key, claim, compute, what="curve", version=VERSION, note=note
    )


def finished_points(request: CurveRequest, target: Path) -> list[YStar]:
    """Return the points that are kept beside `target`."""
    store, points = curve_store(target), []
    for d in request.distances:
        with suppress(FileNotFoundError, UnreadableDataError, *MALFORMED):
            stored = store.load(_name(d))
            if stored["key"] == request.key:
                points.append(_from_json(request.chain, stored))
    return points


def _claim(request: CurveRequest, store: RunStore) -> None:
    """Make the folder that of `request`; points of another one are refused, and not lost."""
    wanted = {**request.parameters(), "version": VERSION}
    try:
        held = store.load(STAMP)
    except (FileNotFoundError, UnreadableDataError):
        store.save(STAMP, wanted)
        return
    if held != wanted:
        raise InvalidInputError(
            "out",
            str(store.target),
            f"another file, because {store.path} keeps points of another curve, of "
            f"{'; '.join(differences(held, wanted))} (run that again to finish it, or remove the "
            "folder)",
        )


def _name(d: float) -> str:
    return f"point-{d:.12e}.json"


def _to_json(point: YStar) -> dict[str, Any]:
    """Return a point as JSON values; numbers are exact, being written with all their digits."""

    def numbers(estimate: Estimate | None) -> list[Any] | None:
        if estimate is None:
            return None
        return [float(estimate.value), float(estimate.error), str(estimate.tier), estimate.method]

    fields = {name: getattr(point, name) for name in _ESTIMATES}
    return {
        "d": point.d,
        **{name: numbers(value) for name, value in fields.items()},
        "qhat": [numbers(q) for q in point.qhat],
        "residual": point.residual,
        "y_star_is_bound": point.y_star_is_bound,
    }


_ESTIMATES = ("y_star", "internal", "slope", "q0_stability")


def _from_json(chain: Chain, stored: dict[str, Any]) -> YStar:
    def estimate(numbers: list[Any] | None) -> Estimate | None:
        if numbers is None:
            return None
        value, error, tier, method = numbers
        return Estimate(float(value), float(error), Tier(tier), str(method))

    y_star, internal, slope, q0 = (estimate(stored[name]) for name in _ESTIMATES)
    qhat = [estimate(numbers) for numbers in stored["qhat"]]
    known = [q for q in qhat if q is not None]
    if y_star is None or internal is None or slope is None or len(known) < len(qhat):
        raise ValueError("a number is missing")
    return YStar(
        chain,
        float(stored["d"]),
        y_star,
        internal,
        slope,
        tuple(known),
        float(stored["residual"]),
        q0,
        y_star_is_bound=bool(stored["y_star_is_bound"]),
    )
