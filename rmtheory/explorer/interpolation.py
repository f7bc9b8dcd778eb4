r"""Polynomial interpolation on a product of axes, as the page of the explorer does it.

With nodes :math:`x_i` and barycentric weights :math:`w_i = 1/\prod_{k\ne i}(x_i - x_k)`

.. math:: f(x) = \sum_i \ell_i(x) f_i, \qquad
    \ell_i(x) = \frac{w_i/(x - x_i)}{\sum_k w_k/(x - x_k)} .

Functions are smooth in the variables of the axes (log J_D, log d; lambda, of which they are even),
so the error falls geometrically with the number of nodes, if these are denser towards the ends. The
errors of the nodes propagate with :math:`|\ell_i|`; what the interpolation adds is measured at
random points off the grid (:mod:`rmtheory.explorer.grids`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rmtheory.base.errors import OutsideValidityError

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
