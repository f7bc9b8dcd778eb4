r"""Sweeps over any parameters: which are typed, what a point measures, the table and the picture.

A :class:`Kind` says what is done at each point: ``train`` a network, ``relax`` networks by the
dynamics, or ``solve`` them by another method. Parameters with several values are the axes; a point
is repeated with several seeds, numbered by the axis ``replica``, and averaged as

.. math:: \bar x = \frac1R \sum_r x_r, \qquad
    \sigma^2 = \frac{1}{R(R-1)} \sum_r (x_r - \bar x)^2 + \overline{\epsilon}^2,

:math:`\epsilon` the error of the measurement of one.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsim.dynamics.relaxation import relax, relaxation_summary
from rmsim.learning.presets import MEASURED_AT, preset
from rmsim.network import Network
from rmsim.search.methods import find_fixed_point, method_named
from rmsim.studies.convergence import search_seconds
from rmsim.studies.trained_networks import over_replicas, plan_of, trained_of_many
from rmsim.sweep.definition import Grid, Sweep
from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError
from rmtheory.base.statistics import standard_error, wilson_half_width
from rmtheory.runtime.files import SEAL, replacing

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

#: Endings of tables that are written.
TABLES = (".csv", ".parquet", ".nc")

#: By which a table that we wrote is recognised: a column that no other has, the seal of netCDF.
MARKS = (b"point_seed", SEAL)

_MOST_POINTS = 100_000


@dataclass(frozen=True)
class Kind:
    """What is computed at each point.

    Parameters
    ----------
    name : str
        As on the command line.
    compute : str
        The function, ``module:function``.
    measured : mapping
        What it returns, each with NAME_error, and what that means; the first is drawn.
    check : callable
        Refuses a point that cannot be computed.
    seconds : callable
        About how many CPU-seconds a point takes.
    options : mapping
        Parameters of all points besides those of the network, with what they are by default.
    complete : callable
        Adds what follows from the options.
    """

    name: str
    compute: str
    measured: Mapping[str, str]
    check: Callable[[dict[str, Any]], object]
    seconds: Callable[[dict[str, Any]], float]
    options: Mapping[str, Any]
    complete: Callable[[dict[str, Any]], dict[str, Any]] = dict


def _demand(point: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if point.get(name) is None:
            raise InvalidInputError(name, "nothing", "given")


# What a point measures; workers import these functions by name.


def train_point(point: dict[str, Any], seed: int, device: str = "cpu") -> dict[str, Any]:
    """Train the network of a point; see :func:`rmsim.studies.trained_networks.plan_of`."""
    (values,) = train_point_of_many([point], [seed], device)
    return values


def train_point_of_many(
    points: Sequence[dict[str, Any]],
    seeds: Sequence[int],
    device: str = "cpu",
    threads: int | None = None,
) -> list[dict[str, Any]]:
    """Do what :func:`train_point` does for several points, whose networks learn side by side."""
    given = [
        {name: value for name, value in point.items() if name != "epochs"}
        | {MEASURED_AT: [point["epochs"]]}
        for point in points
    ]
    return [_last_seen(seen) for seen in trained_of_many(given, seeds, device, threads)]


def _last_seen(seen: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a sweep tells of a network that was measured once."""
    names = {"test_accuracy": "test_accuracy", "train_accuracy": "training_accuracy"}
    names |= {"q_dyn": "qdyn_median", "symmetry": "symmetry_level"}
    values = {
        f"{ours}{end}": seen[f"{theirs}{end}"][0]
        for ours, theirs in names.items()
        for end in ("", "_error")
    }
    return {name: np.nan if x is None else x for name, x in values.items()} | {
        "device": seen["device"]
    }


def network_of_point(point: Mapping[str, Any]) -> Network:
    """Return the network of a point: ``n``, ``jd``, ``layers``, lambdas, ``rho``, ``symmetric``."""
    _demand(point, "n", "jd")
    lambdas = {name: point.get(name) for name in ("lam", "lam_left", "lam_right")}
    chain = Chain(point.get("layers", 1), point["jd"], **lambdas)
    return Network(point["n"], chain, point.get("rho", 1.0), point.get("symmetric", False))


_OF_NETWORK = ("n", "jd", "layers", "lam", "lam_left", "lam_right", "rho", "symmetric")


def _rest(point: Mapping[str, Any], *others: str) -> dict[str, Any]:
    known = (*_OF_NETWORK, "replica", "samples", *others)
    return {name: value for name, value in point.items() if name not in known}


def relax_point(point: dict[str, Any], seed: int, device: str = "cpu") -> dict[str, Any]:
    """Run the dynamics in ``samples`` networks from random starts."""
    network = network_of_point(point)
    settings = _rest(point)
    result = relax(network, samples=point["samples"], seed=seed % 2**31, device=device, **settings)
    summary = relaxation_summary(result)
    values = {"fixed_point_fraction": summary["fixed_point_fraction"]}
    values["fixed_point_fraction_error"] = summary["fixed_point_fraction_error"]
    sweeps = result.iterations[result.solved].double().numpy()
    values["sweeps"], values["sweeps_error"] = _mean(sweeps)
    return {**values, "device": result.device}


def _mean(values: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Return mean and standard error; no number without its error, which one value has not."""
    if values.size < 2:
        return np.nan, np.nan
    return float(values.mean()), float(standard_error(values))


def solve_point(point: dict[str, Any], seed: int, device: str = "cpu") -> dict[str, Any]:
    """Search for a fixed point of ``samples`` networks by the method ``algorithm``."""
    settings = _rest(point, "algorithm")
    result = find_fixed_point(
        network_of_point(point),
        point["algorithm"],
        samples=point["samples"],
        seed=seed % 2**31,
        device=device,
        **settings,
    )
    solved = int(result.solved.sum())
    count = int(result.solved.numel())
    iterations, error = _mean(result.iterations[result.solved].double().numpy())
    return {
        "solved_fraction": solved / count,
        "solved_fraction_error": wilson_half_width(solved, count),
        "iterations": iterations,
        "iterations_error": error,
        "device": result.device,
    }


def _check_train(point: dict[str, Any]) -> None:
    _demand(point, "preset", "n", "epochs")
    checks.integer("epochs", point["epochs"], 0)
    rest = {name: value for name, value in point.items() if name != "epochs"}
    plan_of(rest, 0)


#: Training samples on which phases of a sweep are measured.
_WATCHED = 200


def _complete_train(fixed: dict[str, Any]) -> dict[str, Any]:
    """Add the samples on which phases are measured, and the epochs of the preset."""
    if fixed["preset"] is None:
        raise InvalidInputError("preset", "nothing", "given (--preset NAME)")
    chosen = preset(fixed["preset"])
    epochs = fixed["epochs"]
    if epochs is None:
        epochs = chosen.epochs_at(chosen.width(None))
    return {**fixed, "watched": _WATCHED, "epochs": epochs}


def _check_relax(point: dict[str, Any]) -> None:
    from rmsim.dynamics.relaxation import checked_p
    from rmsim.dynamics.sweeps import checked_update

    network_of_point(point)
    checks.integer("samples", point["samples"], 1)
    allowed: dict[str, Callable[[Any], object]] = {
        "p": checked_p,
        "update": checked_update,
        "max_sweeps": lambda value: checks.integer("max_sweeps", value, 1),
        "starts": lambda value: checks.integer("starts", value, 1),
    }
    for name, value in _rest(point).items():
        if name not in allowed:
            known = ", ".join((*_OF_NETWORK, "samples", *allowed))
            raise InvalidInputError("set", name, f"one of {known}")
        allowed[name](value)


def _check_solve(point: dict[str, Any]) -> None:
    network_of_point(point)
    checks.integer("samples", point["samples"], 1)
    method_named(point["algorithm"], "algorithm").checked(
        point["algorithm"], _rest(point, "algorithm")
    )


#: Nanoseconds per coupling and sample, of one layer and of a chain; microseconds per sample.
_LEARN, _LEARN_CHAIN, _SAMPLE = 0.15, 1.7, 5.0

#: Samples of a data set of which no number is given: those of MNIST.
_ALL_SAMPLES = 60_000


def train_seconds(point: Mapping[str, Any]) -> float:
    """Return about how many CPU-seconds it takes to train the network of a point.

    Right within a factor of some three for compiled batches; sparse networks are counted as dense.

    Examples
    --------
    >>> 5 < train_seconds({"n": 1000, "epochs": 1}) < 20
    True
    """
    samples = float(point["epochs"]) * float(point.get("train_samples") or _ALL_SAMPLES)
    layers = float(point.get("layers", 1))
    each = _LEARN if layers == 1 else _LEARN_CHAIN
    return samples * (1e-9 * each * layers * float(point["n"]) ** 2 + 1e-6 * _SAMPLE)


_HERE = "rmsim.studies.grid_sweeps"

KINDS = {
    "train": Kind(
        "train",
        f"{_HERE}:train_point",
        {
            "test_accuracy": "test accuracy of the perceptrons",
            "train_accuracy": "the same on samples trained on",
            "q_dyn": "median overlap of s' and s*",
            "symmetry": "symmetry level of J",
        },
        _check_train,
        train_seconds,
        dict.fromkeys(("preset", "epochs", "dataset", "train_samples", "test_samples")),
        _complete_train,
    ),
    "relax": Kind(
        "relax",
        f"{_HERE}:relax_point",
        {
            "fixed_point_fraction": "share of starts that reach a fixed point",
            "sweeps": "sweeps to it, on average",
        },
        _check_relax,
        search_seconds,
        {"samples": 100},
    ),
    "solve": Kind(
        "solve",
        f"{_HERE}:solve_point",
        {
            "solved_fraction": "share of networks in which a fixed point is reached",
            "iterations": "iterations until then, on average",
        },
        _check_solve,
        search_seconds,
        {"samples": 100, "algorithm": "rbp"},
    ),
}


def fixed_of(kind: str, given: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the parameters of all points of a sweep; refuse options of other kinds.

    Examples
    --------
    >>> fixed_of("solve", {"samples": "7"})
    {'samples': 7, 'algorithm': 'rbp'}
    """
    if kind not in KINDS:
        raise InvalidInputError("kind", kind, f"one of {', '.join(KINDS)}")
    chosen = KINDS[kind]
    for name, text in given.items():
        if text is not None and name not in chosen.options:
            raise InvalidInputError(name.removesuffix("_samples"), text, f"absent for {kind}")
    fixed: dict[str, Any] = {}
    for name, usual in chosen.options.items():
        text = given.get(name)
        if text is None:
            fixed[name] = usual
        elif name in ("preset", "dataset", "algorithm"):
            fixed[name] = text
        else:
            fixed[name] = checks.integer(name, text, 0 if name == "epochs" else 1)
    return chosen.complete(fixed)


# What was typed.


def axis_values(argument: str, text: str) -> list[Any]:
    """Return the values that ``a,b,c`` or ``start:stop:count`` lists: numbers, or words.

    Examples
    --------
    >>> axis_values("jd", ".1:.5:3"), axis_values("symmetry", "asym,sym0")
    ([0.1, 0.3, 0.5], ['asym', 'sym0'])
    """
    values: list[Any] = []
    for part in text.split(","):
        pieces = part.strip().split(":")
        if len(pieces) == 3:
            start, stop = (checks.exact_real(argument, piece) for piece in pieces[:2])
            count = checks.integer(argument, pieces[2], 2, 10_000)
            steps = [start + (stop - start) * Fraction(k, count - 1) for k in range(count)]
            values += [_number(value) for value in steps]
            continue
        if len(pieces) != 1 or not pieces[0]:
            allowed = "values a,b,c or a range start:stop:count"
            raise InvalidInputError(argument, text, allowed)
        try:
            values.append(_number(checks.exact_real(argument, pieces[0])))
        except InvalidInputError:
            word = pieces[0]
            values.append({"true": True, "false": False}.get(word.lower(), word))
    return list(dict.fromkeys(values))


def _number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def sweep_of(
    kind: str,
    settings: Mapping[str, Any] | Iterable[str],
    fixed: Mapping[str, Any],
    *,
    seeds: int = 1,
    seed: int = 0,
) -> Sweep:
    """Return the sweep over all combinations of some parameters.

    Parameters
    ----------
    kind : str
        train, relax or solve.
    settings : mapping, or iterable of str
        Parameter -> value or values; or texts ``KEY=VALUES`` as for :func:`axis_values`.
    fixed : mapping
        Parameters of all points, such as preset, n and epochs; None where they are not given.
    seeds : int
        Repetitions with seeds of their own.
    seed : int
        From which those of all points derive.

    Examples
    --------
    >>> sweep = sweep_of("relax", ["jd=.2:.8:3"], {"n": 50, "samples": 10}, seeds=2)
    >>> len(sweep.grid), sweep.grid.axes
    (6, ('jd', 'replica'))
    """
    if kind not in KINDS:
        raise InvalidInputError("kind", kind, f"one of {', '.join(KINDS)}")
    chosen = KINDS[kind]
    given: dict[str, list[Any]] = {}
    pairs = settings.items() if isinstance(settings, Mapping) else map(_pair, settings)
    for name, value in pairs:
        if name in given or fixed.get(name) is not None:
            raise InvalidInputError("set", name, "each parameter once")
        if isinstance(value, str):
            given[name] = axis_values(name, value)
        else:
            given[name] = list(value) if isinstance(value, Iterable) else [value]
        if not given[name]:
            raise InvalidInputError("set", name, "with one value or more")
    everywhere = {name: value for name, value in fixed.items() if value is not None}
    everywhere |= {name: values[0] for name, values in given.items() if len(values) == 1}
    axes = {name: values for name, values in given.items() if len(values) > 1}
    axes["replica"] = list(range(checks.integer("seeds", seeds, 1)))
    if np.prod([len(values) for values in axes.values()]) > _MOST_POINTS:
        raise InvalidInputError("set", "more points", f"at most {_MOST_POINTS} points in all")
    grid = Grid.product(axes, everywhere)
    for point in grid.points():
        if point["replica"] == 0:
            chosen.check(point)
    return Sweep(f"sweep {kind}", 1, chosen.compute, grid, seed, cost=chosen.seconds, unit=1.0)


def _pair(text: str) -> tuple[str, str]:
    name, separator, values = text.partition("=")
    if not separator or not name.strip() or not values.strip():
        raise InvalidInputError("set", text, "KEY=VALUES, such as jd=.1:.9:9")
    return name.strip(), values.strip()


# The answer.


def averages(kind: str, points: xr.Dataset) -> xr.Dataset:
    """Return the means over the seeds of what a sweep measured, with errors."""
    return over_replicas(points, KINDS[kind].measured)


def tidy(kind: str, points: xr.Dataset) -> Any:
    """Return a DataFrame with one row a finished point: parameters, what was measured, errors."""
    names = [f"{name}{end}" for name in KINDS[kind].measured for end in ("", "_error")]
    kept = [name for name in (*names, "finished", "point_seed") if name in points]
    table = points[kept].to_dataframe().reset_index()
    return table[table["finished"].astype(bool)].drop(columns="finished").reset_index(drop=True)


def write_table(kind: str, points: xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Write the points as .csv or .parquet, one row each, or as they are to a netCDF file."""
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in TABLES:
        raise InvalidInputError("table", str(path), f"a file ending in {', '.join(TABLES)}")
    if ending == ".nc":
        from rmtheory.runtime import netcdf

        netcdf.save(points, target)
        return
    table = tidy(kind, points)
    with replacing(target, "table") as temporary:
        if ending == ".csv":
            table.to_csv(temporary, index=False)
        else:
            table.to_parquet(temporary, index=False)


def plot_sweep(kind: str, means: xr.Dataset, title: str) -> Figure:
    """Draw the first quantity against the first axis, a line for each value of the others."""
    from matplotlib.figure import Figure as Picture

    picture = Picture(figsize=(3.6, 2.8), layout="constrained")
    axis = picture.subplots()
    name, meaning = next(iter(KINDS[kind].measured.items()))
    values, errors = means[name], means[f"{name}_error"]
    if not values.dims:
        raise InvalidInputError("plot", "one point", "given with several values of a parameter")
    first, *others = values.dims
    stack = {"line": others} if others else {}
    lines = values.stack(stack) if others else values.expand_dims("line", -1)
    bars = errors.stack(stack) if others else errors.expand_dims("line", -1)
    x = lines[first].values
    numeric = np.issubdtype(np.asarray(x).dtype, np.number)
    for k in range(lines.sizes["line"]):
        label = None
        if others:
            coordinates = np.atleast_1d(lines["line"].values[k]).tolist()
            at = coordinates if isinstance(coordinates, list) else [coordinates]
            at = list(at[0]) if at and isinstance(at[0], tuple) else at
            label = ", ".join(
                f"{o} = {v:g}" if isinstance(v, float) else f"{o} = {v}"
                for o, v in zip(others, at, strict=True)
            )
        axis.errorbar(
            x if numeric else [str(value) for value in x],
            lines.isel(line=k).values,
            bars.isel(line=k).values,
            fmt=".-",
            ms=4,
            lw=1,
            capsize=2,
            label=label,
        )
    axis.set(xlabel={"jd": "$J_D$", "lam": r"$\lambda$", "n": "$N$"}.get(str(first), str(first)))
    axis.set_ylabel(meaning)
    axis.set_title(title, fontsize=6)
    if others:
        axis.legend(fontsize=6)
    return picture


def rows_of(kind: str, means: xr.Dataset) -> list[dict[str, Any]]:
    """Return one row for each combination of parameters, means and errors as JSON values."""
    frame = (
        means.to_dataframe().reset_index()
        if means.dims
        else means.expand_dims("point").to_dataframe().reset_index(drop=True)
    )
    wanted = {f"{name}{end}" for name in KINDS[kind].measured for end in ("", "_error")}
    columns = [c for c in frame.columns if c in wanted or c in means.dims]
    return [
        {
            str(name): None if isinstance(value, float) and math.isnan(value) else value
            for name, value in record.items()
        }
        for record in frame[columns].to_dict("records")
    ]
