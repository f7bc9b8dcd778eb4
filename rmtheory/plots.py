"""Quick pictures of computed data sets; the figures of the paper are made by ``figures``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from rmtheory.files import replacing


def plot_curve(data: xr.Dataset, title: str, path: Path) -> None:
    """Draw S_I* and y* of a curve against d, with the limit d -> 0 of one layer and two."""
    figure = Figure(figsize=(7.0, 2.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(data.d, data.internal, "o-", ms=3, label=r"$S_I^*$")
    if "gas_internal" in data:
        dilute = np.asarray(data.d) < 0.003  # beyond, the limit says nothing
        left.plot(data.d[dilute], data.gas_internal[dilute], "k--", lw=1, label=r"limit $d \to 0$")
    left.axhline(0, color="0.6", lw=0.8)
    left.set(xscale="log", xlabel="$d$", ylabel=r"$S_I^*$ (nat per neuron)", title=title)
    left.legend()
    right.loglog(data.d, data.y_star, "o-", ms=3)
    right.set(xlabel="$d$", ylabel="$y^*$")
    _save(figure, path)


def plot_phase_diagram(data: xr.Dataset, path: Path) -> None:
    """Draw the two boundaries in the plane (J_D, lambda)."""
    figure = Figure(figsize=(3.6, 3.0), layout="constrained")
    axes = figure.subplots()
    names = {"rm": "representation manifold", "gap": "gap"}
    for kind, name in names.items():
        line = data.sel(kind=kind)
        axes.plot(line.jd, line.lam, "o-", ms=3, label=name)
    axes.set(xlabel="$J_D$", ylabel=r"$\lambda$", xlim=(0, None), ylim=(0, None))
    axes.legend(title="boundary of the", loc="upper right", framealpha=1)
    _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    with replacing(path, "plot") as temporary:
        figure.savefig(temporary, dpi=200)
