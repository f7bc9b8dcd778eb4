r"""The explorer: interpolation on its grids, how they are computed, the page that holds them.

**Interpolation** is polynomial, on a product of axes, as the page does it.

With nodes :math:`x_i` and barycentric weights :math:`w_i = 1/\prod_{k\ne i}(x_i - x_k)`

.. math:: f(x) = \sum_i \ell_i(x) f_i, \qquad
    \ell_i(x) = \frac{w_i/(x - x_i)}{\sum_k w_k/(x - x_k)} .

Functions are smooth in the variables of the axes (log J_D, log d; lambda, of which they are even),
so the error falls geometrically with the number of nodes, if these are denser towards the ends. The
errors of the nodes propagate with :math:`|\ell_i|`; what the interpolation adds is measured at
random points off the grid.

**Grids**: what is computed in advance, kept in parts, checked and put together.

A part is a row of a grid (one J_D, one lambda; all distances or sweeps) or a check, the same
quantities at a random point off the grid. Every part is a file of its own in the folder, so that a
run that was killed resumes; several runs may share the folder. :func:`gather` puts the parts
together. The error of the interpolation is twice the largest deviation seen in the checks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

import numpy as np
from numpy.typing import NDArray

from rmtheory.base.chain import Chain
from rmtheory.base.errors import (
    InvalidInputError,
    NotConvergedError,
    OutsideValidityError,
    UnreadableDataError,
)
from rmtheory.runtime import provenance
from rmtheory.runtime.files import write_text
from rmtheory.runtime.processes import in_order
from rmtheory.runtime.run_store import RunStore
from rmtheory.runtime.untrusted import MALFORMED, read_json

Floats = NDArray[np.float64]

#: The variable of an axis: x, log x, x of an even function; or only the nodes themselves.
Kind = Literal["linear", "log", "even", "given"]


@dataclass(frozen=True)
class Axis:
    """The nodes of one axis.

    Parameters
    ----------
    name : str
        jd, lam, d or t.
    nodes : tuple of float
        Ascending. Those of an even axis begin at 0 and are continued to negative x.
    kind : str
        ``linear`` in x, ``log`` in its logarithm, ``even`` in x with f(-x) = f(x);
        between the nodes of an axis of kind ``given`` there is nothing.

    Examples
    --------
    >>> [round(x, 3) for x in chebyshev("lam", 0.0, 0.8, 3, "even").nodes]
    [0.0, 0.566, 0.8]
    """

    name: str
    nodes: tuple[float, ...]
    kind: Kind = "linear"

    @property
    def low(self) -> float:
        """The first node."""
        return self.nodes[0]

    @property
    def high(self) -> float:
        """The last node."""
        return self.nodes[-1]

    def _variable(self, x: float) -> float:
        return math.log(x) if self.kind == "log" else x

    def basis(self, x: float) -> Floats:
        """Return l_i(x) of all nodes.

        Raises
        ------
        OutsideValidityError
            If `x` is beyond the ends: nothing is extrapolated.
        """
        inside = abs(x) if self.kind == "even" else x
        if not self.low <= inside <= self.high:
            raise OutsideValidityError(
                f"{self.name} = {x:g} is outside the grid, {self.low:g} to {self.high:g}"
            )
        if self.kind == "given":
            return np.array([float(x == node) for node in self.nodes])
        nodes = np.array([self._variable(node) for node in self.nodes])
        if self.kind == "even":
            nodes = np.concatenate((-nodes[:0:-1], nodes))
        full = _lagrange(nodes, self._variable(x))
        if self.kind != "even":
            return full
        middle = len(self.nodes) - 1
        folded = full[middle:].copy()
        folded[1:] += full[:middle][::-1]
        return folded


def _lagrange(nodes: Floats, x: float) -> Floats:
    difference = x - nodes
    nearest = int(np.argmin(np.abs(difference)))
    if abs(difference[nearest]) < 1e-13:
        return np.asarray(np.arange(len(nodes)) == nearest, dtype=np.float64)
    apart = nodes[:, None] - nodes[None, :] + np.eye(len(nodes))
    terms = 1 / (apart.prod(axis=1) * difference)
    result: Floats = terms / terms.sum()
    return result


def chebyshev(name: str, low: float, high: float, count: int, kind: Kind = "linear") -> Axis:
    """Return an axis with `count` nodes, which divide the circle over the variable evenly.

    Examples
    --------
    >>> axis = chebyshev("jd", 0.1, 1.0, 7, "log")
    >>> roots = np.sqrt(axis.nodes)
    >>> bool(abs(axis.basis(0.3) @ roots - 0.3**0.5) < 1e-4)
    True
    """
    if kind == "even":
        circle = (1 - np.cos(np.pi * np.arange(count, 2 * count - 1) / (2 * count - 2))) / 2
        return Axis(name, (0.0, *(float(x) for x in 2 * high * circle - high)), kind)
    ends = (math.log(low), math.log(high)) if kind == "log" else (low, high)
    circle = (1 - np.cos(np.pi * np.arange(count) / (count - 1))) / 2
    inner = ends[0] + (ends[1] - ends[0]) * circle[1:-1]
    nodes = np.exp(inner) if kind == "log" else inner
    return Axis(name, (low, *(float(x) for x in nodes), high), kind)


def value_and_error(
    values: Floats, errors: Floats, axes: Sequence[Axis], at: Mapping[str, float]
) -> tuple[float, float]:
    """Return the interpolated value and what the errors of the nodes contribute to its error.

    Examples
    --------
    >>> axis = chebyshev("jd", 0.0, 1.0, 5)
    >>> cubes = np.array(axis.nodes) ** 3
    >>> value, error = value_and_error(cubes, 0 * cubes + 1e-3, [axis], {"jd": 0.3})
    >>> round(value, 9), 1e-3 <= error < 2e-3
    (0.027, True)
    """
    value, error = values, errors
    for axis in axes:
        basis = axis.basis(at[axis.name])
        value, error = np.tensordot(basis, value, 1), np.tensordot(np.abs(basis), error, 1)
    return float(value), float(error)


def axis_of(stored: Mapping[str, Any]) -> Axis:
    """Return the axis that a file describes."""
    return Axis(stored["name"], tuple(stored["nodes"]), stored["kind"])


#: To be raised when what a part means changes.
VERSION = 1

#: The file that ships with the package.
SHIPPED = Path(__file__).with_name("grids.json")

#: What is not on a grid: lines of the phase diagram and measured thresholds.
TABLES = ("boundary", "freezing", "threshold")

#: Copies of the effective process, and their seed.
TRAJECTORIES, SEED = 50_000, 0

#: The error of the interpolation is this times the largest deviation at the random points.
SAFETY = 2.0


@dataclass(frozen=True)
class Grid:
    """Quantities of one depth over J_D, lambda and a last axis (distance, sweep or none).

    Parameters
    ----------
    name : str
        ``local`` (S_I* and log y*), ``flips`` (f) or ``annealed`` (S_a).
    layers : int or str
        Depth, or inf.
    axes : tuple of Axis
        jd, lam (one layer: without) and d or t (annealed: without).
    checks : int
        Number of random points.
    """

    name: str
    layers: int | str
    axes: tuple[Axis, ...]
    checks: int

    @property
    def key(self) -> str:
        """Name in files."""
        return f"{self.name}-{self.layers}"

    @property
    def quantities(self) -> tuple[str, ...]:
        """What is interpolated."""
        return {
            "local": ("internal", "log_y_star"),
            "flips": ("flip_rate",),
            "annealed": ("entropy",),
        }[self.name]

    @property
    def rows(self) -> list[dict[str, float]]:
        """Couplings of all rows, in the order of the arrays."""
        jd, lam = self.axis("jd"), self.axis("lam")
        return [{"jd": x, "lam": y} for x in jd.nodes for y in lam.nodes]

    def axis(self, name: str) -> Axis:
        """Return an axis by its name; one layer has lambda = 0 alone."""
        none = Axis("lam", (0.0,), "given")
        return next((axis for axis in self.axes if axis.name == name), none)

    @property
    def last(self) -> Axis | None:
        """The axis along a row."""
        return next((axis for axis in self.axes if axis.name in ("d", "t")), None)

    def random_points(self) -> list[dict[str, float]]:
        """Return the points of the checks: uniform in J_D and lambda, or in their logarithms."""
        generator = np.random.default_rng([SEED, *self.key.encode()])
        points = []
        for _ in range(self.checks):
            point = {"lam": 0.0}
            for axis in self.axes:
                if axis.kind == "log":
                    x = np.exp(generator.uniform(np.log(axis.low), np.log(axis.high)))
                elif axis.kind == "given":
                    x = axis.nodes[generator.integers(len(axis.nodes))]
                else:
                    x = generator.uniform(axis.low, axis.high)
                # Short numbers, which a command line can repeat.
                point[axis.name] = float(f"{x:.3g}")
            points.append(point)
        return points


def _local(layers: int | str, jd: Axis, lam: Axis | None, d: Axis, checks: int) -> Grid:
    return Grid("local", layers, (jd, *(() if lam is None else (lam,)), d), checks)


_NINE = chebyshev("jd", 0.02, 0.6, 9, "log").nodes
#: Seven of nine nodes: 0.21 and 0.53 took longest. By the grid of two layers their absence costs a
#: factor of six of the interpolation.
_DEEP_JD = Axis("jd", (*_NINE[:5], _NINE[6], _NINE[8]), "log")
_SWEEPS = Axis("t", tuple(float(t) for t in range(1, 41)), "given")
_FLIPS_JD, _FLIPS_LAM = chebyshev("jd", 0.0, 1.2, 9), chebyshev("lam", 0.0, 1.2, 5, "even")
_ANNEALED = (chebyshev("jd", 0.0, 1.2, 12), chebyshev("lam", 0.0, 1.2, 12, "even"))

#: All grids, the quick ones first.
GRIDS: tuple[Grid, ...] = (
    *(Grid("annealed", layers, _ANNEALED, 40) for layers in (2, 3, "inf")),
    Grid("annealed", 1, _ANNEALED[:1], 40),
    _local(
        1, chebyshev("jd", 0.02, 1.0, 19, "log"), None, chebyshev("d", 0.01, 0.45, 17, "log"), 40
    ),
    Grid("flips", 1, (chebyshev("jd", 0.0, 1.2, 13), _SWEEPS), 12),
    Grid("flips", 2, (_FLIPS_JD, _FLIPS_LAM, _SWEEPS), 12),
    _local(
        2,
        chebyshev("jd", 0.02, 0.6, 11, "log"),
        chebyshev("lam", 0.0, 0.6, 5, "even"),
        chebyshev("d", 0.01, 0.4, 12, "log"),
        40,
    ),
    # Below d = 0.04 and beyond 0.25 y* is known too badly at large J_D.
    _local(
        3,
        _DEEP_JD,
        chebyshev("lam", 0.0, 0.6, 4, "even"),
        chebyshev("d", 0.04, 0.25, 5, "log"),
        16,
    ),
    Grid("flips", 3, (_FLIPS_JD, _FLIPS_LAM, _SWEEPS), 8),
)


def _chain(grid: Grid, couplings: Mapping[str, float]) -> Chain:
    # Layers without a coupling are core modules.
    if grid.layers == 1 or couplings["lam"] == 0:
        return Chain(1, couplings["jd"])
    return Chain(grid.layers, couplings["jd"], couplings["lam"])


def _computed(
    grid: Grid, couplings: Mapping[str, float], last: list[float]
) -> dict[str, list[list[float]]]:
    """Return quantity -> values and errors, for one pair of couplings along `last`."""
    chain = _chain(grid, couplings)
    if grid.name == "local":
        return _local_entropies(chain, last)
    if grid.name == "flips":
        from rmtheory.dynamics.averages import mean_field

        sweeps = int(max(last))
        series = mean_field(chain, sweeps, trajectories=TRAJECTORIES, seed=SEED).flip_rate
        places = [int(t) - 1 for t in last]
        return {"flip_rate": [series.value[places].tolist(), series.error[places].tolist()]}
    from rmtheory.annealed.mean_number import entropy

    estimate = entropy(chain)
    return {"entropy": [[float(estimate.value)], [float(estimate.error)]]}


def _local_entropies(chain: Chain, distances: list[float]) -> dict[str, list[list[float]]]:
    """Return S_I* and log y* with their errors along `distances`."""
    import xarray as xr

    from rmtheory.local_entropies.curves import curve

    if chain.layers in (1, 2):
        data = curve(chain, distances)
    else:  # alone a point is cheaper: integer y, where a curve would follow the operator
        data = xr.concat([curve(chain, [d]) for d in distances], "d", join="outer")
    if "y_star_is_bound" in data and bool(data.y_star_is_bound.any()):
        raise NotConvergedError(f"y* of {chain} is only bounded on the grid: make it smaller")
    y, y_error = data.y_star.values, data.y_star_error.values
    return {
        "internal": [data.internal.values.tolist(), data.internal_error.values.tolist()],
        "log_y_star": [np.log(y).tolist(), (y_error / y).tolist()],
    }


def _part(grid: Grid, name: str, couplings: Mapping[str, float], folder: Path) -> None:
    """Compute a part and store it."""
    about = _identity(grid, couplings)
    RunStore(folder).save(name, {**about, **_computed(grid, couplings, about["along"])})


def _identity(grid: Grid, couplings: Mapping[str, float]) -> dict[str, Any]:
    """Return what a part is of: one place along the last axis if `couplings` has it, or all."""
    along: list[float] = []
    if grid.last is not None:
        here = couplings.get(grid.last.name)
        along = list(grid.last.nodes) if here is None else [here]
    return {"version": VERSION, "at": dict(couplings), "along": along}


def parts(grid: Grid) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the file and the couplings of every part of a grid."""
    for number, couplings in enumerate(grid.rows):
        yield f"{grid.key}-row-{number}.json", couplings
    for number, point in enumerate(grid.random_points()):
        yield f"{grid.key}-check-{number}.json", point


def _load(folder: Path, name: str, grid: Grid, couplings: Mapping[str, float]) -> Any:
    """Return a finished part; None if it is missing, damaged or of another grid."""
    try:
        part = RunStore(folder).load(name)
    except (FileNotFoundError, UnreadableDataError):
        return None
    wanted = _identity(grid, couplings)
    return part if all(part.get(key) == value for key, value in wanted.items()) else None


def missing(folder: Path) -> list[tuple[Grid, str, dict[str, float]]]:
    """Return the parts that are still to be computed."""
    return [
        (grid, name, couplings)
        for grid in GRIDS
        for name, couplings in parts(grid)
        if _load(folder, name, grid, couplings) is None
    ]


def total_parts() -> int:
    """Return the number of all parts."""
    return sum(1 for grid in GRIDS for _ in parts(grid))


def compute(folder: Path, *, jobs: int = 1, on_part: Callable[[int], None] | None = None) -> None:
    """Compute the parts that are missing in `folder`; it may be killed and run again."""
    store = RunStore(folder, files=("*.json",))
    with store.at_work(shared=True):
        work, total = missing(folder), total_parts()
        done = total - len(work)
        report = on_part or (lambda _count: None)
        report(done)
        in_order(
            _part,
            [(*one, folder) for one in work],
            jobs=jobs,
            progress=lambda count: report(done + count),
        )


def gather(folder: Path, tables: Mapping[str, Any]) -> dict[str, Any]:
    """Put the parts of `folder` together, and measure the errors of the interpolation.

    Parameters
    ----------
    folder : Path
        Where :func:`compute` kept the parts.
    tables : mapping
        Rows ``boundary``, ``freezing`` and ``threshold`` with their ``provenance``.

    Raises
    ------
    NotConvergedError
        If parts are missing.
    """
    left = missing(folder)
    if left:
        raise NotConvergedError(f"{len(left)} of {total_parts()} parts are missing in {folder}")
    return {
        "version": VERSION,
        "grids": {grid.key: _gathered(grid, folder) for grid in GRIDS},
        "tables": dict(tables),
        "made": provenance.attributes({"trajectories": TRAJECTORIES, "seed": SEED}),
    }


def _gathered(grid: Grid, folder: Path) -> dict[str, Any]:
    names = list(parts(grid))
    loaded = [_load(folder, name, grid, at) for name, at in names]
    rows, checks = loaded[: len(grid.rows)], loaded[len(grid.rows) :]
    shape = tuple(len(axis.nodes) for axis in grid.axes)
    stored: dict[str, Any] = {
        "layers": grid.layers,
        "axes": [asdict(axis) for axis in grid.axes],
        "quantities": {},
    }
    for quantity in grid.quantities:
        value, error = (np.array([row[quantity][k] for row in rows]).reshape(shape) for k in (0, 1))
        deviations = []
        for check in checks:
            at = check["at"]
            exact, exact_error = (check[quantity][k][0] for k in (0, 1))
            interpolated, inherited = value_and_error(value, error, grid.axes, at)
            # What the errors of both sides explain is not the interpolation's.
            deviations.append(max(abs(interpolated - exact) - inherited - exact_error, 0.0))
        stored["quantities"][quantity] = {
            "value": _digits(value, 9),
            "error": _digits(error, 2),
            "interpolation_error": float(f"{SAFETY * max(deviations) + 1e-8:.2g}"),
            "checks": len(checks),
        }
    return stored


def _digits(values: Floats, digits: int) -> Any:
    """Return nested lists of numbers with so many digits: the file stays small."""
    return json.loads(
        json.dumps(values.tolist()), parse_float=lambda x: float(f"{float(x):.{digits}g}")
    )


def read_tables(path: Path | None = None) -> dict[str, Any]:
    """Read boundaries, freezing points and thresholds; what `path` lacks is that of the package.

    Raises
    ------
    InvalidInputError
        If the file does not have these tables.
    """
    own: dict[str, Any] = load_grids()["tables"]
    if path is None:
        return own
    try:
        stored = read_json(path)
        given = [table for table in TABLES if table in stored]
        if not given:
            raise ValueError("it has none of them")
        for table in given:
            for row in stored[table]:
                {name: row[name] for name in ("layers", "jd", "jd_error", "lam", "lam_error")}
        said = {**own["provenance"], **stored["provenance"]}
        return {**own, **{table: stored[table] for table in given}, "provenance": said}
    except (FileNotFoundError, UnreadableDataError, *MALFORMED) as problem:
        allowed = f"a JSON file with tables among {', '.join(TABLES)} and provenance"
        raise InvalidInputError("tables", str(path), f"{allowed} ({problem})") from None


def write_grids(document: Mapping[str, Any], target: Path) -> None:
    """Write the grids into one file."""
    write_text(target, json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")


def load_grids(path: Path = SHIPPED) -> dict[str, Any]:
    """Read the grids, by default those of the package."""
    stored = read_json(path)
    if not isinstance(stored, dict) or stored.get("version") != VERSION:
        raise UnreadableDataError(f"{path} is not a file of grids of this version")
    return stored


def at_point(
    document: Mapping[str, Any], key: str, quantity: str, **at: float
) -> tuple[float, float]:
    """Return a quantity at a point off the grid, and its error, as the page shows them.

    Examples
    --------
    >>> value, error = at_point(load_grids(), "annealed-1", "entropy", jd=0.5)
    >>> abs(value - 0.3240) < 1e-3 and error < 1e-5
    True
    """
    grid = document["grids"][key]
    one = grid["quantities"][quantity]
    axes = [axis_of(axis) for axis in grid["axes"]]
    value, inherited = value_and_error(np.array(one["value"]), np.array(one["error"]), axes, at)
    return value, inherited + float(one["interpolation_error"])


# The page: the template with the grids in it, one file that needs no network.

_TEMPLATE = Path(__file__).with_name("page.html")

#: Depths that the page knows.
DEPTHS = ("1", "2", "3", "inf")


def page_text(grids: Mapping[str, Any] | None = None) -> str:
    """Return the page as text, with `grids` or with those of the package.

    Examples
    --------
    >>> import rmtheory as rt
    >>> text = rt.explorer.page_text()
    >>> "http://" in text.replace("http://www.w3.org/2000/svg", ""), "https://" in text
    (False, False)
    """
    document = json.dumps(grids or load_grids(), ensure_ascii=False, separators=(",", ":"))
    # Inside a script element only this could end it.
    document = document.replace("</", "<\\/")
    return _TEMPLATE.read_text("utf-8").replace("@GRIDS@", document)


def write_page(target: Path, grids: Mapping[str, Any] | None = None) -> None:
    """Write the page to a file.

    Examples
    --------
    >>> import tempfile
    >>> import rmtheory as rt
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rt.explorer.write_page(Path(folder, "explorer.html"))
    ...     Path(folder, "explorer.html").stat().st_size < 500_000
    True
    """
    write_text(target, page_text(grids))


def address(
    target: Path,
    *,
    jd: float | None = None,
    lam: float | None = None,
    layers: int | float | None = None,
    d: float | None = None,
) -> str:
    """Return the address of the page in the file `target`, opened at a point.

    Raises
    ------
    InvalidInputError
        If the page does not have this depth.

    Examples
    --------
    >>> address(Path("/tmp/explorer.html"), jd=0.3, layers=2)
    'file:///tmp/explorer.html?jd=0.3&layers=2'
    """
    depth = None if layers is None else "inf" if layers == math.inf else str(layers)
    if depth is not None and depth not in DEPTHS:
        raise InvalidInputError("layers", depth, f"one of {', '.join(DEPTHS)} in the explorer")
    chosen = {"jd": jd, "lam": lam, "layers": depth, "d": d}
    query = urlencode({name: value for name, value in chosen.items() if value is not None})
    return target.resolve().as_uri() + (f"?{query}" if query else "")
