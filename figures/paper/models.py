"""The model: a chain of core modules between input and output (paper, fig. models).

The couplings drawn inside the modules are those of a small chain, sampled with density rho as in
the paper: J_ij is an arrow from neuron j to neuron i, its width the strength, its colour the sign.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from figures.engine.figure import Context, Figure, Parameters, Scale
from figures.engine.plotting import DOUBLE

_SEED = 4

_EXCITE, _INHIBIT, _SELF, _CHAIN = "C0", "C1", "0.25", "C2"

#: Positions: distance between modules, radius of the ring of neurons, radius of a neuron.
_STEP, _RING, _NEURON = 3.4, 0.95, 0.13


def _parameters(layers: int, n: int, rho: float) -> Parameters:
    return {"layers": layers, "n": n, "rho": rho, "seed": _SEED}


def compute(parameters: Parameters, context: Context) -> xr.Dataset:
    """Sample the couplings of a small diluted chain."""
    layers, n, rho = parameters["layers"], parameters["n"], parameters["rho"]
    generator = np.random.default_rng(parameters["seed"])
    values = generator.normal(0.0, 1 / math.sqrt(rho * n), (layers, n, n))
    values *= generator.random((layers, n, n)) < rho
    values[:, np.arange(n), np.arange(n)] = 0.0  # the diagonal is J_D, drawn as loops
    context.progress(1, 1)
    dims = ("layer", "to", "from")
    return xr.Dataset(
        {
            "coupling": (dims, values, {"long_name": "coupling J_ij inside a module"}),
            "coupling_error": (dims, np.zeros_like(values), {"long_name": "exact: they are drawn"}),
        }
    )


def plot(data: xr.Dataset) -> Picture:
    """Draw input, modules, output, and the couplings between them."""
    layers, n = data.sizes["layer"], data.sizes["to"]
    picture = Picture(figsize=(DOUBLE, 2.35), layout="constrained")
    axis = picture.subplots()
    axis.set_aspect("equal")
    axis.axis("off")
    angles = np.pi / 2 - 2 * np.pi * (np.arange(n) + 0.5) / n
    ring = _RING * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    centres = [np.array([_STEP * layer, 0.0]) for layer in range(layers)]
    strongest = float(abs(data["coupling"]).max())
    for layer, centre in enumerate(centres):
        _module(axis, centre + ring, data["coupling"].values[layer] / strongest, layer, layers)
    for left, right in pairwise(centres[:-1]):
        _homologous(axis, left + ring, right + ring)
    _interrupted(axis, centres[-2] + ring, centres[-1] + ring)
    _ends(axis, centres[0], centres[-1])
    between = (centres[-2] + centres[-1]) / 2
    axis.text(between[0], 0.0, r"$\cdots$", ha="center", va="center", fontsize=13)
    axis.set_xlim(-3.6, _STEP * (layers - 1) + 3.7)
    axis.set_ylim(-1.6, 1.9)
    _legend(axis)
    return picture


def _module(axis: Axes, places: Any, couplings: Any, layer: int, layers: int) -> None:
    centre = places.mean(axis=0)
    axis.add_patch(Circle(centre, _RING + 0.38, facecolor="0.96", edgecolor="none", zorder=0))
    name = rf"$s^{{({layer + 1})}}$" if layer + 1 < layers else r"$s^{(L)}$"
    axis.text(centre[0], 1.5, name, ha="center", va="bottom", fontsize=9)
    for to, source in zip(*np.nonzero(couplings), strict=True):
        strength = couplings[to, source]
        _arrow(
            axis,
            places[source],
            places[to],
            color=_EXCITE if strength > 0 else _INHIBIT,
            linewidth=0.3 + 1.3 * abs(strength),
            connectionstyle="arc3,rad=0.18",
            alpha=0.75,
        )
    for place in places:
        outward = (place - centre) / np.linalg.norm(place - centre)
        axis.add_patch(
            Circle(
                place + 0.15 * outward, 0.14, fill=False, edgecolor=_SELF, linewidth=0.8, zorder=2
            )
        )
        axis.add_patch(
            Circle(place, _NEURON, facecolor="white", edgecolor="black", linewidth=0.8, zorder=4)
        )


def _homologous(axis: Axes, left: Any, right: Any) -> None:
    """Couple neuron i of one module to neuron i of the next, both ways."""
    for a, b in zip(left, right, strict=True):
        _arrow(
            axis,
            a,
            b,
            color=_CHAIN,
            linewidth=0.6,
            arrowstyle="<|-|>",
            connectionstyle="arc3,rad=-0.12",
            alpha=0.8,
            zorder=1,
        )


def _interrupted(axis: Axes, left: Any, right: Any) -> None:
    """Let the couplings to the modules that are not drawn end at the dots between them."""
    middle = (left.mean(axis=0)[0] + right.mean(axis=0)[0]) / 2
    for side, direction in ((left, -1), (right, 1)):
        for place in side:
            end = np.array([middle + 0.3 * direction, place[1]])
            _arrow(
                axis,
                end,
                place,
                color=_CHAIN,
                linewidth=0.6,
                connectionstyle=f"arc3,rad={0.08 * -direction}",
                alpha=0.8,
                zorder=1,
            )


def _ends(axis: Axes, first: Any, last: Any) -> None:
    """Input with W_in on the left, output with W_out and W_back on the right."""
    for centre, name in (
        (first - _vector(2.9, 0), "input\n$x$"),
        (last + _vector(3.0, 0), "output\n$y$"),
    ):
        axis.add_patch(
            FancyBboxPatch(
                centre - _vector(0.42, 0.62),
                0.84,
                1.24,
                boxstyle="round,pad=0.06",
                facecolor="0.95",
                edgecolor="0.35",
                linewidth=0.8,
            )
        )
        axis.text(centre[0], centre[1], name, ha="center", va="center", fontsize=8)
    edge = _RING + 0.42
    arrows = (
        (first, (-2.4, 0.0), (-edge, 0.0), "-", (-1.9, 0.14), r"$\lambda_x W^{in}$", "bottom"),
        (last, (edge, 0.22), (2.5, 0.22), "-", (1.95, 0.34), r"$W^{out}$", "bottom"),
        (last, (2.5, -0.22), (edge, -0.22), "--", (1.95, -0.36), r"$\lambda_y W^{back}$", "top"),
    )
    for origin, start, end, dash, place, name, side in arrows:
        _arrow(
            axis,
            origin + _vector(*start),
            origin + _vector(*end),
            mutation=9,
            color="0.35",
            linewidth=1.4,
            linestyle=dash,
        )
        x, y = origin + _vector(*place)
        axis.text(x, y, name, ha="center", va=side)


def _vector(x: float, y: float) -> Any:
    return np.array([x, y])


def _arrow(axis: Axes, start: Any, end: Any, mutation: float = 5.0, **style: Any) -> None:
    base: dict[str, Any] = {
        "arrowstyle": "-|>",
        "mutation_scale": mutation,
        "shrinkA": 3.2,
        "shrinkB": 3.2,
        "zorder": 3,
    }
    axis.add_patch(FancyArrowPatch(tuple(start), tuple(end), **(base | style)))


def _legend(axis: Axes) -> None:
    handles = [
        Line2D([], [], color=_EXCITE, linewidth=1.2, label=r"$J_{ij}>0$"),
        Line2D([], [], color=_INHIBIT, linewidth=1.2, label=r"$J_{ij}<0$"),
        Line2D(
            [],
            [],
            color=_SELF,
            marker="o",
            markerfacecolor="none",
            linestyle="none",
            label=r"self-coupling $J_D$",
        ),
        Line2D([], [], color=_CHAIN, linewidth=1.2, label=r"$\lambda$, same neuron of neighbours"),
        Line2D([], [], color="0.35", linewidth=1.2, linestyle="--", label="only while learning"),
    ]
    axis.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=5)


FIGURE = Figure(
    name="models",
    title="The chain of core modules with input, output and couplings",
    caption=(
        "A chain of L core modules. Inside a module every neuron receives asymmetric random "
        "couplings J_ij (arrows; colour is the sign, width the strength; a sample of a diluted "
        "module is drawn) and excites itself by J_D. The excitatory coupling λ joins each neuron "
        "with the same neuron of the neighbouring modules. The input enters the first module, the "
        "output is read off the last, which the label reaches only while learning."
    ),
    parameters={
        Scale.TINY: _parameters(2, 6, 0.3),
        Scale.QUICK: _parameters(3, 8, 0.25),
        Scale.PAPER: _parameters(3, 8, 0.25),
    },
    compute=compute,
    plot=plot,
    seed=_SEED,
    earlier=("1-cf20c6e49406",),
)
