"""Searches for fixed points: the dynamics, belief propagation, and the methods built on it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmsim.search.amp import Beliefs, belief_propagation, random_fields
    from rmsim.search.dense_bp import dense_belief_propagation
    from rmsim.search.focusing import FocusedPoint, focus
    from rmsim.search.likelihood import Rate, log_likelihood, optimise
    from rmsim.search.methods import METHODS, Method, find_fixed_point
    from rmsim.search.neighbours import Neighbours, count_neighbours, neighbours_at
    from rmsim.search.paths import FlipPath, Walk, count_joined, flip_path, walk_towards
    from rmsim.search.planted import Planted, pair_flips, plant, single_flips
    from rmsim.search.reinforced import Schedule, reinforce
    from rmsim.search.sign_search import SearchOptions
    from rmsim.search.tap_entropy import (
        SOURCES,
        LocalEntropy,
        local_entropy_around,
        reference_point,
    )
else:
    from rmtheory.base.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".amp": ["Beliefs", "belief_propagation", "random_fields"],
            ".dense_bp": ["dense_belief_propagation"],
            ".focusing": ["FocusedPoint", "focus"],
            ".likelihood": ["Rate", "log_likelihood", "optimise"],
            ".tap_entropy": [
                "LocalEntropy",
                "SOURCES",
                "local_entropy_around",
                "reference_point",
            ],
            ".methods": ["METHODS", "Method", "find_fixed_point"],
            ".neighbours": ["Neighbours", "count_neighbours", "neighbours_at"],
            ".paths": ["FlipPath", "Walk", "count_joined", "flip_path", "walk_towards"],
            ".planted": ["Planted", "pair_flips", "plant", "single_flips"],
            ".reinforced": ["Schedule", "reinforce"],
            ".sign_search": ["SearchOptions"],
        },
    )

__all__ = [
    "METHODS",
    "SOURCES",
    "Beliefs",
    "FlipPath",
    "FocusedPoint",
    "LocalEntropy",
    "Method",
    "Neighbours",
    "Planted",
    "Rate",
    "Schedule",
    "SearchOptions",
    "Walk",
    "belief_propagation",
    "count_joined",
    "count_neighbours",
    "dense_belief_propagation",
    "find_fixed_point",
    "flip_path",
    "focus",
    "local_entropy_around",
    "log_likelihood",
    "neighbours_at",
    "optimise",
    "pair_flips",
    "plant",
    "random_fields",
    "reference_point",
    "reinforce",
    "single_flips",
    "walk_towards",
]
