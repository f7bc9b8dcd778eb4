"""How the transfer operator converges, and how long chains tend to the infinite one."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure as Picture
from matplotlib.ticker import MaxNLocator
from scipy.interpolate import BarycentricInterpolator

from figures.engine.figure import Context, Figure, Parameters, Scale
from figures.engine.plotting import label_axes, panels, shades
from rmtheory.annealed.mean_number import entropy
from rmtheory.base.chain import Chain
from rmtheory.local_entropies.replicated import Replicated, replicated_entropy
from rmtheory.local_entropies.solve import functional

#: Integers beyond y through which the exact values are interpolated. Fewer leave more open at small
#: y (at y = 1.5 nine 2e-7 in phi), more amplify the rounding of the values (eighteen 3e-7).
_REACH = 12
#: Error of the interpolation in units of what one integer more or less changes.
_MARGIN = 3


def _parameters(ys: list[float], levels: int, depths: list[int]) -> Parameters:
    return {
        "jd": 0.05,
        "lam": 0.3,
        "d": 0.05,
        "y": ys,
        "levels": levels,
        "depths": depths,
        "depth_y": 5,
        "depth_lam": 0.5,
        "depth_d": 0.1,
    }


def compute(parameters: Parameters, context: Context) -> xr.Dataset:
    """Compare the operator with exact values at integer y, interpolated in log y."""
    chain = Chain("inf", parameters["jd"], parameters["lam"])
    d, ys, levels = parameters["d"], parameters["y"], range(parameters["levels"])
    total = len(ys) + len(parameters["depths"])
    shape = (len(ys), len(levels))
    data: dict[str, Any] = {name: np.empty(shape) for name in ("size", "phi", "internal")}
    data |= {f"{name}_error": np.empty(shape) for name in ("phi", "internal")}
    for i, y in enumerate(ys):
        context.progress(i, total)
        phi, internal, qhat = exact_values(chain, d, y)
        others = [exact_values(chain, d, y, reach) for reach in (_REACH - 1, _REACH + 1)]
        data["phi_error"][i] = _MARGIN * max(abs(phi - other[0]) for other in others) + 1e-14
        data["internal_error"][i] = _MARGIN * max(abs(internal - o[1]) for o in others) + 1e-13
        for level in levels:
            moments = functional(chain).moments(d, y, np.array([qhat]), level)
            data["size"][i, level] = moments.size
            data["phi"][i, level] = moments.phi - phi
            data["internal"][i, level] = moments.internal - internal
    dims = ("y", "level")
    convergence = xr.Dataset(
        {
            "phi_deviation": (dims, data["phi"], {"long_name": "phi, operator - exact"}),
            "phi_deviation_error": (dims, data["phi_error"]),
            "internal_deviation": (dims, data["internal"], {"long_name": "S_I, operator - exact"}),
            "internal_deviation_error": (dims, data["internal_error"]),
        },
        coords={
            "y": ys,
            "level": list(levels),
            "size": (dims, data["size"], {"long_name": "basis functions"}),
        },
    )
    return convergence.merge(_depths(parameters, context, len(ys), total))


@lru_cache(maxsize=64)
def _replicated(chain: Chain, d: float, y: int) -> Replicated:
    """Keep the exact values: the interpolations share them."""
    return replicated_entropy(chain, d, y)


def exact_values(
    chain: Chain, d: float, y: float, reach: int = _REACH
) -> tuple[float, float, float]:
    """(phi, S_I, qhat) at real y by the replicated matrix at integers; S_I = phi + dphi/dlog y."""
    integers = np.arange(2, math.floor(y) + reach + 1)
    points = [_replicated(chain, d, int(k)) for k in integers]
    logs = np.log(integers)
    phis = [float(entropy(chain).value), *(float(p.phi.value) for p in points)]
    fit = BarycentricInterpolator(np.append(0.0, logs), phis)
    qhat = BarycentricInterpolator(logs, [math.log(float(p.qhat[0].value)) for p in points])
    x = math.log(y)
    phi = float(fit(x))
    return phi, phi + float(fit.derivative(x)), math.exp(float(qhat(x)))


def _depths(parameters: Parameters, context: Context, done: int, total: int) -> xr.Dataset:
    y, lam, d = parameters["depth_y"], parameters["depth_lam"], parameters["depth_d"]
    infinite = replicated_entropy(Chain("inf", 0, lam), d, y).phi
    values, errors = [], []
    for k, layers in enumerate(parameters["depths"]):
        context.progress(done + k, total)
        phi = replicated_entropy(Chain.at_depth(layers, 0, lam), d, y).phi
        values.append(layers * (float(infinite.value) - float(phi.value)))
        errors.append(layers * (float(infinite.error) + float(phi.error)))
    return xr.Dataset(
        {
            "correction": ("layers", values, {"long_name": "L (phi_inf - phi_L)"}),
            "correction_error": ("layers", errors, {"long_name": "error of correction"}),
        },
        coords={"layers": parameters["depths"]},
    )


def plot(data: xr.Dataset) -> Picture:
    """Draw errors against the size of the grid, and the correction of finite chains."""
    picture, (left, right) = panels(2, width=7.0, height=2.6)
    for colour, y in zip(shades("viridis", data.sizes["y"]), data["y"].values, strict=True):
        one = data.sel(y=y)
        for name, style in (("phi", "o-"), ("internal", "s--")):
            label = f"$y={y:g}$" if name == "phi" else None
            deviation = np.abs(one[f"{name}_deviation"])
            error = one[f"{name}_deviation_error"]
            # Below its error a deviation says nothing: an open marker.
            known = deviation > error
            left.loglog(one["size"], deviation, style, ms=3.5, lw=1, color=colour, label=label)
            left.loglog(
                one["size"][~known], deviation[~known], style[0], ms=3.5, color=colour, mfc="w"
            )
            left.errorbar(
                one["size"], deviation, yerr=error, fmt="none", ecolor=colour, elinewidth=0.8
            )
    left.plot([], [], "ko-", ms=3.5, lw=1, label=r"$\phi$")
    left.plot([], [], "ks--", ms=3.5, lw=1, label="$S_I$")
    label_axes(left, "basis functions", "deviation from exact (nat)")
    left.legend(fontsize=6.5, ncols=2, loc="lower left")
    right.errorbar(
        data["layers"],
        data["correction"],
        yerr=data["correction_error"],
        fmt="o-",
        ms=3.5,
        lw=1,
        label="replicated matrix",
    )
    right.legend(fontsize=6.5, loc="lower right")
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    label_axes(right, "layers $L$", r"$L\,(\phi_\infty-\phi_L)$ (nat)")
    return picture


FIGURE = Figure(
    name="deep_convergence",
    title="Convergence of the transfer operator, and of long chains",
    caption=(
        "(a) Transfer operator of the infinite chain at J_D = 0.05, λ = 0.3, d = 0.05 against "
        "the replicated matrix, whose exact values at integer y are interpolated in log y, for "
        "growing grids; bars are the error of that interpolation, and open markers deviations "
        "below it. (b) Correction of a chain of L layers to the infinite one at J_D = 0, "
        "λ = 0.5, d = 0.1, y = 5: proportional to 1/L up to exponentially small terms."
    ),
    parameters={
        Scale.TINY: _parameters([2.5], 2, [1, 2, 3]),
        Scale.QUICK: _parameters([1.5, 2.5, 4.5, 8.5], 5, [1, 2, 3, 4, 5, 6, 8, 10, 12]),
        Scale.PAPER: _parameters([1.5, 2.5, 4.5, 8.5, 12.5], 6, list(range(1, 21))),
    },
    compute=compute,
    plot=plot,
    version=2,
    earlier=("2-aa54eff08841", "2-ad183aef6b2e", "2-5997f3fc5bac"),
)
