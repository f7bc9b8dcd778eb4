"""Sweeps: many points of a grid, each computed once, on one machine or on a cluster.

A sweep is a function, a grid and a seed. Every point has a key (the hash of its parameters) and a
seed of its own, and is kept in a small file as soon as it is finished. Running the same sweep again
computes what is missing; a sweep with more values along its axes adds to the same directory.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmsim.sweep.definition import Grid, Sweep
    from rmsim.sweep.directory import collect
    from rmsim.sweep.running import (
        Backend,
        ClusterLostError,
        Dask,
        Local,
        PointFailure,
        Serial,
        SweepProgress,
        SweepReport,
        run_sweep,
    )
else:
    from rmtheory.base.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".definition": ["Grid", "Sweep"],
            ".directory": ["collect"],
            ".running": [
                "Backend",
                "ClusterLostError",
                "Dask",
                "Local",
                "PointFailure",
                "SweepProgress",
                "SweepReport",
                "Serial",
                "run_sweep",
            ],
        },
    )

__all__ = [
    "Backend",
    "ClusterLostError",
    "Dask",
    "Grid",
    "Local",
    "PointFailure",
    "Serial",
    "Sweep",
    "SweepProgress",
    "SweepReport",
    "collect",
    "run_sweep",
]
