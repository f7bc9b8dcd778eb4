"""Experiments of the paper with networks that learn: a function for each kind of point of a sweep.

A point holds everything that defines its numbers, so that any process can compute it and a sweep
keeps it: see :func:`rmsim.experiments.training.trained`.
"""

from rmsim.experiments.attractors import attractors_of
from rmsim.experiments.averages import over_replicas
from rmsim.experiments.landscape import Survey, landscape, survey
from rmsim.experiments.training import epochs_of, plan_of, trained

__all__ = [
    "Survey",
    "attractors_of",
    "epochs_of",
    "landscape",
    "over_replicas",
    "plan_of",
    "survey",
    "trained",
]
