"""A whole curve y*(d), S_I*(d) as a data set."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr

from rmtheory.chain import Chain
from rmtheory.errors import InvalidInputError, NotConvergedError, RMError
from rmtheory.estimate import Estimate
from rmtheory.local_entropy.asymptotics import small_distance
from rmtheory.local_entropy.continuation import CurveTracker
from rmtheory.local_entropy.model import LocalModel
from rmtheory.local_entropy.results import YStar, distance, ystar
from rmtheory.local_entropy.verdict import default_tol


class CurveStoppedError(NotConvergedError):
    """The continuation was lost; `found` holds the points solved before."""

    def __init__(self, message: str, found: xr.Dataset) -> None:
        super().__init__(message)
        self.found = found


def curve(
    chain: Chain,
    distances: Sequence[float],
    *,
    on_point: Callable[[int], None] | None = None,
) -> xr.Dataset:
    """Follow y*(d) through all `distances`.

    Parameters
    ----------
    chain : Chain
        Any number of layers, J_D >= 0.
    distances : sequence of float
        Distances in (0, 1/2), in any order.
    on_point : callable, optional
        Called with the number of points solved so far.

    Returns
    -------
    xarray.Dataset
        Over the coordinate d, ascending: ``y_star``, ``internal``, ``slope``, ``qhat`` (by layer)
        and, for one layer and two, ``q0_stability``, each with NAME_error; for these also
        ``gas_internal``, ``gas_slope``, the limit d -> 0 (nan where d is beyond its range).

    Raises
    ------
    CurveStoppedError
        If the branch is lost; its attribute ``found`` keeps what was solved.
    """
    for d in distances:
        distance(d)
    if not len(distances):
        raise InvalidInputError("distances", "nothing", "at least one distance")
    model = LocalModel(chain)
    tracker, tol = CurveTracker(model), default_tol(model)
    points: list[YStar] = []
    # From the far end to d = 0: the continuation starts where Newton is safe.
    for d in sorted(map(float, distances), reverse=True):
        try:
            # Scanning for other zeros of S_E costs little for one layer while y* is moderate;
            # for more layers it is done at the far end.
            moderate = not points or float(points[-1].y_star) < 100
            scan = moderate if chain.layers == 1 else not points
            points.append(ystar(chain, d, tol=tol, tracker=tracker, check_zeros=scan))
        except RMError as problem:
            if isinstance(problem, InvalidInputError) or not points:
                raise
            raise CurveStoppedError(str(problem), as_dataset(chain, points)) from problem
        if on_point is not None:
            on_point(len(points))
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
    q0 = [p.q0_stability for p in points if p.q0_stability is not None]
    if q0:  # one layer or two
        store("q0_stability", "M0 (least eigenvalue), positive where q0 = 0 is stable", q0)
    for k, name in ((0, "value"), (1, "error")):
        qhat = [[float((e.value, e.error)[k]) for e in point.qhat] for point in points]
        label = "qhat" if name == "value" else "qhat_error"
        data[label] = (("d", "layer"), np.array(qhat), {"long_name": f"conjugate overlap, {name}"})
    residual = np.array([point.residual for point in points])
    data["residual"] = (("d",), residual, {"long_name": "largest residual of the equations"})
    if chain.layers <= 2:  # the dilute gas is not worked out for more
        gas = np.array([_gas(chain, point.d) for point in points])
        data["gas_internal"] = (("d",), gas[:, 0], {"long_name": "S_I*, d -> 0"})
        data["gas_slope"] = (("d",), gas[:, 1], {"long_name": "slope, d -> 0"})
    coordinates = {
        "d": np.array([point.d for point in points]),
        # All layers of the infinite chain are alike.
        "layer": np.arange(1, len(points[0].qhat) + 1),
    }
    return xr.Dataset(data, coords=coordinates)


def _gas(chain: Chain, d: float) -> tuple[float, float]:
    """Return the dilute gas of flips, or nan where d is beyond it: the file has to say so."""
    try:
        limit = small_distance(chain, d)
    except RMError:
        return float("nan"), float("nan")
    return limit.internal, limit.slope
