"""Exhaustive enumeration of the fixed points of one sample, and of their overlaps."""

from rmsim.enumeration.api import enumerate_fixed_points, forecast
from rmsim.enumeration.branch_and_bound import TooManyStatesError
from rmsim.enumeration.disorder import SampleCounts, draw_couplings, enumerate_samples
from rmsim.enumeration.overlaps import (
    distance_histogram,
    distances_from,
    layer_histograms,
    overlap_moments,
)
from rmsim.enumeration.results import FixedPoints
from rmsim.enumeration.spins import pack, unpack

__all__ = [
    "FixedPoints",
    "SampleCounts",
    "TooManyStatesError",
    "distance_histogram",
    "distances_from",
    "draw_couplings",
    "enumerate_fixed_points",
    "enumerate_samples",
    "forecast",
    "layer_histograms",
    "overlap_moments",
    "pack",
    "unpack",
]
