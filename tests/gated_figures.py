"""Figures that wait for files, so that a test decides how far a run of the whole command comes.

``small`` takes no time, ``gated`` waits for the file ``go``, the last points of the sweep ``demo``
for ``gate``.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure as Picture

from figures.cli import run
from figures.engine.figure import Context, Figure, Scale, swept
from figures.paper import registry
from rmsim.sweep import collect
from tests.sweep_points import sweep
from tests.waiting import until


def _small(_parameters: Mapping[str, Any], _context: Context) -> xr.Dataset:
    return xr.Dataset({"total": ("x", np.arange(4.0)), "total_error": ("x", np.full(4, 1e-16))})


def _gated(parameters: Mapping[str, Any], context: Context) -> xr.Dataset:
    folder = Path(parameters["folder"])
    (folder / "waiting").touch()
    until((folder / "go").exists)
    return _small(parameters, context)


def _demo(parameters: Mapping[str, Any], context: Context) -> xr.Dataset:
    points = sweep(range(5), **parameters)
    with swept({"demo": points}, context) as folders:
        total = collect(folders["demo"], points)["total"]
    return xr.Dataset({"total": total, "total_error": xr.zeros_like(total)})


def _plot(data: xr.Dataset) -> Picture:
    picture = Picture()
    picture.subplots().plot(data["total"])
    return picture


def gated_figures(folder: Path) -> dict[str, Figure]:
    """Return the three figures; the files they wait for, and the log of `demo`, are in `folder`."""
    given = {"log": str(folder / "log"), "gate": str(folder / "gate")}
    return {
        name: Figure(name, "t", "c", dict.fromkeys(Scale, parameters), compute, _plot)
        for name, parameters, compute in (
            ("small", {}, _small),
            ("gated", {"folder": str(folder)}, _gated),
            ("demo", given, _demo),
        )
    }


def main() -> None:
    """Run the command line of the figures on these: folder of the gates, then its arguments."""
    registry.FIGURES = gated_figures(Path(sys.argv[1]))
    sys.exit(run(sys.argv[2:]))
