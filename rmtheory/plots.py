"""Quick pictures of computed data sets; the figures of the paper are made by ``figures``."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

from rmtheory.base.chain import Chain
from rmtheory.base.errors import RMError
from rmtheory.dynamics.averages import MeanField
from rmtheory.local_entropies.dilute_gas import small_distance
from rmtheory.runtime.files import replacing

__all__ = ["plot_curve", "plot_flip_rate", "plot_phase_diagram"]

Floats = NDArray[np.float64]

#: One column of a paper, 8.6 cm.
_COLUMN = 8.6 / 2.54

#: Beyond this distance the limit d -> 0 says nothing.
_DILUTE = 0.003


def plot_curve(data: xr.Dataset, chain: Chain, path: Path) -> None:
    """Draw S_I* and y* of a curve against d, with the limit d -> 0 of one layer and two.

    Where the saddle q0 = 0 is unstable, and hence very likely the wrong one, points are hollow.
    """
    figure = Figure(figsize=(7.0, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    figure.suptitle(_name(chain), fontsize="medium")
    left.axhline(0, color="0.6", lw=0.8)
    left.plot(data.d, data.internal, "o-", ms=3, label=r"$S_I^*$")
    limit = _limit(chain, float(data.d.min()))
    if limit is not None:
        left.plot(*limit, "k--", lw=1.2, zorder=3, label=r"limit $d \to 0$")
    left.set(xscale="log", xlabel="$d$", ylabel=r"$S_I^*$ (nat per neuron)")
    bound = (
        data.y_star_is_bound.values if "y_star_is_bound" in data else np.zeros(data.d.size, bool)
    )
    known = data.isel(d=~bound)
    right.loglog(known.d, known.y_star, "o-", ms=3)
    if bound.any():  # y* is anywhere above
        above = data.isel(d=bound)
        right.plot(above.d, above.y_star, "^", ms=4, color="C2", label="$y^*$ is larger")
        right.legend()
    right.set(xlabel="$d$", ylabel="$y^*$")
    # Where M0 was not computed it says neither.
    unstable = data.isel(d=data.q0_stability.values <= 0) if "q0_stability" in data else None
    unknown = data.isel(d=np.isnan(data.q0_stability.values)) if "q0_stability" in data else None
    if unknown is not None and unknown.sizes["d"]:
        left.plot(unknown.d, unknown.internal, "x", ms=4, color="C0", label="$M_0$ not computed")
    if unstable is not None and unstable.sizes["d"]:
        for axes, values in ((left, unstable.internal), (right, unstable.y_star)):
            axes.plot(
                unstable.d,
                values,
                "o",
                ms=3,
                mfc="w",
                color="C0",
                zorder=4,
                label="$q_0=0$ unstable",
            )
    if len(left.get_legend_handles_labels()[1]) > 1:
        left.legend()
    for axis in (left.xaxis, right.xaxis, right.yaxis):
        _label_logarithmic(axis)
    _save(figure, path)


def _limit(chain: Chain, least: float) -> tuple[np.ndarray, list[float]] | None:
    """Return d and S_I* of the limit d -> 0, over half a decade or more so that it is seen."""
    if chain.layers > 2 or least >= _DILUTE:
        return None
    d = np.geomspace(min(least, _DILUTE / 3), _DILUTE, 50)
    try:
        return d, [small_distance(chain, float(x)).internal for x in d]
    except RMError:  # the coupling is beyond where the limit is known
        return None


def plot_phase_diagram(data: xr.Dataset, layers: int | float, path: str | Path) -> None:
    """Draw the two boundaries in the plane (J_D, lambda) and name what they separate.

    Between the computed points, which are marked, a line is a monotone interpolation of J_D in
    lambda^2: by symmetry J_D is a smooth function of lambda^2 next to the axis of J_D.
    """
    figure = Figure(figsize=(_COLUMN, 3.3), layout="constrained")
    axes = figure.subplots()
    rm, gap = (_boundary(data.sel(kind=kind)) for kind in ("rm", "gap"))
    regions = (
        ("representation manifold: $S_I^*(d)$ increases", None, "#DCEBF5"),
        ("$S_I^*(d)$ positive, not monotone", rm, "#FBEBD3"),
        ("gap: $S_I^* < 0$ at some distances", gap, "#F3D5D0"),
    )
    for name, below, colour in regions:
        if below is None:
            axes.axhspan(0, 1, color=colour, lw=0, label=name, transform=axes.transAxes)
        else:
            axes.fill_between(*below, color=colour, lw=0, label=name)
    for kind, line, colour in (("rm", rm, "C0"), ("gap", gap, "C1")):
        axes.plot(*line, color=colour)
        points = data.sel(kind=kind)
        axes.errorbar(
            points.jd,
            points.lam,
            xerr=points.jd_error,
            yerr=points.lam_error,
            fmt="o",
            ms=2.5,
            color=colour,
            clip_on=False,
        )
    right, top = 1.15 * float(data.jd.max()), 1.15 * float(data.lam.max())
    axes.set(xlabel="$J_D$", ylabel=r"$\lambda$", xlim=(0, right), ylim=(0, top))
    axes.set_title(f"${_depth(layers)}$", fontsize="medium")
    # Below the axes it covers nothing, wherever the boundaries of other depths are.
    figure.legend(loc="outside lower center", fontsize="small", frameon=False)
    _save(figure, path)


def _boundary(points: xr.Dataset) -> tuple[Floats, Floats]:
    """Return J_D, ascending, and lambda along a boundary, between its computed points too."""
    ordered = points.dropna("ray", subset=["jd", "lam"]).sortby("lam")
    jd, lam = ordered.jd.values, ordered.lam.values
    fine = np.linspace(lam[0], lam[-1], 200)
    return PchipInterpolator(lam**2, jd)(fine**2)[::-1], fine[::-1]


def plot_flip_rate(result: MeanField, path: Path) -> None:
    """Draw the flip rate f(t) with its error."""
    figure = Figure(figsize=(_COLUMN, 2.6), layout="constrained")
    axes = figure.subplots()
    axes.set_title(_name(result.chain), fontsize="medium")
    sweeps = np.arange(1, result.sweeps + 1)
    value, error = result.flip_rate.value, result.flip_rate.error
    axes.fill_between(
        sweeps, np.maximum(value - error, 0), value + error, color="C0", alpha=0.3, lw=0
    )
    axes.plot(sweeps, value, color="C0", lw=1.2)
    axes.set(xlabel="sweep $t$", ylabel="flip rate $f(t)$")
    if result.sweeps > 1 and value.min() > 0:
        axes.set(xscale="log", yscale="log")
        for axis in (axes.xaxis, axes.yaxis):
            _label_logarithmic(axis)
    _save(figure, path)


def _depth(layers: int | float) -> str:
    return r"L = \infty" if layers == math.inf else f"L = {layers}"


def _name(chain: Chain) -> str:
    """Return the couplings of a chain as a formula."""
    parts = [_depth(chain.layers), f"J_D = {chain.jd:g}"]
    if chain.layers > 1:
        if chain.lam_left == chain.lam_right:
            parts.append(rf"\lambda = {chain.lam_left:g}")
        else:
            parts.append(rf"\lambda_\ell = {chain.lam_left:g}")
            parts.append(rf"\lambda_r = {chain.lam_right:g}")
    return ", ".join(f"${part}$" for part in parts)


def _label_logarithmic(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers, as many as its range needs.

    Matplotlib labels powers of ten only, or over less than a decade every tick as a product.
    """
    low, high = axis.get_view_interval()
    decades = math.log10(high / low)
    if decades > 4:
        return
    plain = FuncFormatter(lambda x, _position: f"{x:g}")
    if decades < 0.7:
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        axis.set_minor_locator(NullLocator())
    else:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2 else (1.0,)))
    axis.set_major_formatter(plain)
    axis.set_minor_formatter(NullFormatter())


def _save(figure: Figure, path: str | Path) -> None:
    with replacing(Path(path), "plot") as temporary:
        figure.savefig(temporary, dpi=200)
