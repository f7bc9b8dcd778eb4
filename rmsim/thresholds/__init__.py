"""Convergence thresholds: where, in the couplings, an algorithm begins to find fixed points.

A :class:`Design` says what is measured; its sweep (:func:`sweep_of`) is run by :mod:`rmsim.sweep`,
:func:`gather` takes its samples together, and :func:`analyse` makes success probabilities and 50 %
points of them.
"""

from rmsim.thresholds.algorithms import ALGORITHMS, Ending, Outcomes
from rmsim.thresholds.analysis import analyse, trend_attributes, trends_of
from rmsim.thresholds.crossing import Crossing, CrossingStatus, crossing
from rmsim.thresholds.design import Control, Design, sweep_of
from rmsim.thresholds.intervals import fraction, interval
from rmsim.thresholds.summary import gather, summarise
from rmsim.thresholds.trend import Limit, Trend, fit_trends, limit_of

__all__ = [
    "ALGORITHMS",
    "Control",
    "Crossing",
    "CrossingStatus",
    "Design",
    "Ending",
    "Limit",
    "Outcomes",
    "Trend",
    "analyse",
    "crossing",
    "fit_trends",
    "fraction",
    "gather",
    "interval",
    "limit_of",
    "summarise",
    "sweep_of",
    "trend_attributes",
    "trends_of",
]
