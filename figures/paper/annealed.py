r"""Annealed entropy S_a of the fixed points (paper, fig. annealed_entropy, and deeper chains).

The first two panels are the paper's, for L = 2 and lambda_L = lambda_R = lambda. The third shows
how the depth matters, with the limits of strong coupling:

.. math:: \tfrac12\log 2,\quad \tfrac13\log 2,\quad
    \log\Big[\tfrac12 + \sqrt{\tfrac14 + P(J_D)^2}\Big]\quad (L = 2, 3, \infty).
"""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from figures.engine.figure import Context, Figure, Parameters, Scale, grid
from figures.engine.plotting import curves, label_axes, panels, shades
from rmtheory.annealed.mean_number import large_lam_entropy
from rmtheory.annealed.vectorised import entropy_array

_ENTROPY = {"long_name": "annealed entropy S_a per neuron", "units": "nat"}


def _parameters(points: int) -> Parameters:
    return {
        "points": points,
        "jd_range": [0.0, 3.0],
        "lam_range": [0.0, 3.0],
        "lam_curves": [0.0, 0.5, 1.0, 1.5],
        "jd_curves": [0.0, 0.125, 0.25],
        "deep_jd": 0.4,
        "deep_lam_range": [0.0, 4.0],
        "deep_layers": [1, 2, 3, 5, 10, "inf"],
        # J_D = lambda, so strong that the limit is reached to all digits.
        "strong": 40.0,
    }


def compute(parameters: Parameters, context: Context) -> xr.Dataset:
    """Evaluate S_a on the three grids in float64."""
    points = int(parameters["points"])
    jd, lam, deep_lam = (
        grid(parameters[name], points) for name in ("jd_range", "lam_range", "deep_lam_range")
    )
    lam_curves, jd_curves = np.array(parameters["lam_curves"]), np.array(parameters["jd_curves"])
    layers = [float(L) for L in parameters["deep_layers"]]
    context.progress(0, 3)
    by_jd = entropy_array(2, jd[None, :], lam_curves[:, None])
    context.progress(1, 3)
    by_lam = entropy_array(2, jd_curves[:, None], lam[None, :])
    context.progress(2, 3)
    by_depth = [entropy_array(L, parameters["deep_jd"], deep_lam) for L in layers]
    context.progress(3, 3)

    data = xr.Dataset(
        coords={
            "jd": ("jd", jd, {"long_name": "self-coupling J_D"}),
            "lam": ("lam", lam, {"long_name": "coupling between layers"}),
            "deep_lam": ("deep_lam", deep_lam, {"long_name": "coupling between layers"}),
            "lam_curve": lam_curves,
            "jd_curve": jd_curves,
            "layers": layers,
        }
    )
    for name, dims, (value, error) in (
        ("entropy_by_jd", ("lam_curve", "jd"), by_jd),
        ("entropy_by_lam", ("jd_curve", "lam"), by_lam),
        ("entropy_by_depth", ("layers", "deep_lam"), np.stack(by_depth, axis=1)),
    ):
        data[name] = (dims, value, _ENTROPY)
        data[f"{name}_error"] = (dims, error, {"long_name": "bound on the absolute error"})
    # A single layer knows no lambda: it has no such limit.
    limits = [large_lam_entropy(L, parameters["deep_jd"]) if L > 1 else None for L in layers]
    data["entropy_limit"] = (
        "layers",
        [math.nan if limit is None else float(limit.value) for limit in limits],
        _ENTROPY | {"comment": "lambda -> infinity"},
    )
    data["entropy_limit_error"] = (
        "layers",
        [math.nan if limit is None else float(limit.error) for limit in limits],
        {"long_name": "bound on the absolute error"},
    )
    strong, error = entropy_array(2, parameters["strong"], np.array([parameters["strong"]]))
    data["entropy_diagonal"] = (
        (),
        float(strong[0]),
        _ENTROPY | {"comment": "two layers, J_D = lambda -> infinity"},
    )
    data["entropy_diagonal_error"] = ((), float(error[0]))
    return data


def plot(data: xr.Dataset) -> Picture:
    """Draw the three panels."""
    picture, (left, middle, right) = panels(3)
    entropy, lam, jd = r"$S_a$ (nat per neuron)", r"$\lambda$", r"$J_D$"

    curves(left, data, "entropy_by_jd", "lam_curve")
    _level(left, math.log(2), r"$\log 2$")
    left.legend(title=r"$L=2,\ \lambda=$", loc="lower right")
    label_axes(left, jd, entropy)

    curves(middle, data, "entropy_by_lam", "jd_curve")
    _level(middle, math.log(2) / 2, r"$\frac{1}{2}\log 2$")
    middle.legend(title=r"$L=2,\ J_D=$", loc="lower right")
    label_axes(middle, lam, entropy)

    colours = shades("viridis", data.sizes["layers"])
    end = float(data["deep_lam"][-1])
    curves(right, data, "entropy_by_depth", "layers", colours)
    for limit, colour in zip(data["entropy_limit"].values, colours, strict=True):
        right.plot([end * 1.045], [limit], marker="<", color=colour, linestyle="none")
    right.set_xlim(0, end * 1.07)
    right.legend(
        title=r"$J_D=0.4,\ L=$",
        loc="center",
        bbox_to_anchor=(0.68, 0.62),
        ncols=2,
        columnspacing=1.0,
    )
    label_axes(right, lam, entropy)
    return picture


def _level(axis: Axes, value: float, text: str) -> None:
    """Draw a limit as a dotted line with its name below."""
    axis.axhline(value, color="0.45", linewidth=0.8, linestyle=":")
    axis.annotate(
        text,
        (0.03, value),
        (0, -2),
        textcoords="offset points",
        va="top",
        color="0.35",
        fontsize=7,
    )


FIGURE = Figure(
    name="annealed",
    title="Annealed entropy of the fixed points",
    caption=(
        "Annealed entropy per neuron. (a) Two layers against the self-coupling for four couplings "
        "between the layers. (b) Two layers against the coupling between them. (c) Chains of "
        "increasing depth at J_D = 0.4; the arrow heads mark the limits of strong coupling, which "
        "chains of three layers and more approach from above."
    ),
    parameters={
        Scale.TINY: _parameters(31),
        Scale.QUICK: _parameters(301),
        Scale.PAPER: _parameters(1201),
    },
    compute=compute,
    plot=plot,
    earlier=("1-6acd286afaaf",),
)
