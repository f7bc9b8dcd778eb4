r"""Hetero-association (paper, SM-D): how many random pairs x -> y a chain can learn.

A :class:`Protocol` says how a chain learns, :func:`run_trials` trains chains of one shape on random
pairs, :func:`p_max` reads the capacity off many trials, :func:`slope` how it grows with N. A
:class:`Design` puts trials of many shapes into one sweep, and :func:`analyse` takes them together.
"""

from rmsim.capacity.analysis import analyse, gather, overlaps_by_layer
from rmsim.capacity.crossing import Capacity, CapacityStatus, Slope, p_max, slope
from rmsim.capacity.design import Design, sweep_of
from rmsim.capacity.protocol import PROTOCOLS, Protocol, protocol_named
from rmsim.capacity.trials import Trials, run_trials

__all__ = [
    "PROTOCOLS",
    "Capacity",
    "CapacityStatus",
    "Design",
    "Protocol",
    "Slope",
    "Trials",
    "analyse",
    "gather",
    "overlaps_by_layer",
    "p_max",
    "protocol_named",
    "run_trials",
    "slope",
    "sweep_of",
]
