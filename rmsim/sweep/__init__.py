"""Sweeps: many points of a grid, each computed once, on one machine or on a cluster.

A sweep is a function, a grid and a seed. Every point has a key (the hash of its parameters) and a
seed of its own, and is kept in a small file as soon as it is finished. Running the same sweep again
computes what is missing; a sweep with more values along its axes adds to the same directory.
"""

from rmsim.sweep.cluster import ClusterLostError, Dask
from rmsim.sweep.collect import collect
from rmsim.sweep.definition import Sweep
from rmsim.sweep.grid import Grid
from rmsim.sweep.local import Backend, Local, Serial
from rmsim.sweep.run import PointFailure, Progress, Report, run_sweep

__all__ = [
    "Backend",
    "ClusterLostError",
    "Dask",
    "Grid",
    "Local",
    "PointFailure",
    "Progress",
    "Report",
    "Serial",
    "Sweep",
    "collect",
    "run_sweep",
]
