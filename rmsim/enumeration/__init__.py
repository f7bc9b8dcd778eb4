"""Exhaustive enumeration of the fixed points of one sample, and of their overlaps."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmsim.enumeration.branch_and_bound import TooManyStatesError
    from rmsim.enumeration.exhaustive import (
        SampleCounts,
        draw_couplings,
        enumerate_fixed_points,
        enumerate_samples,
        expected_seconds,
        forecast,
    )
    from rmsim.enumeration.overlaps import (
        FixedPoints,
        distance_histogram,
        distances_from,
        layer_histograms,
        overlap_moments,
        pack,
        unpack,
    )
else:
    from rmtheory.base.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".branch_and_bound": ["TooManyStatesError"],
            ".exhaustive": [
                "SampleCounts",
                "draw_couplings",
                "enumerate_fixed_points",
                "enumerate_samples",
                "expected_seconds",
                "forecast",
            ],
            ".overlaps": [
                "FixedPoints",
                "distance_histogram",
                "distances_from",
                "layer_histograms",
                "overlap_moments",
                "pack",
                "unpack",
            ],
        },
    )

__all__ = [
    "FixedPoints",
    "SampleCounts",
    "TooManyStatesError",
    "distance_histogram",
    "distances_from",
    "draw_couplings",
    "enumerate_fixed_points",
    "enumerate_samples",
    "expected_seconds",
    "forecast",
    "layer_histograms",
    "overlap_moments",
    "pack",
    "unpack",
]
