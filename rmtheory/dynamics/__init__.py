"""Theory of the dynamics as N -> infinity: when the network freezes, and what it reaches."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmtheory.dynamics.averages import MeanField, Series, mean_field
    from rmtheory.dynamics.exact_steps import (
        ConvergenceBound,
        FirstSteps,
        convergence_bound,
        first_steps,
        jd_for_failure,
    )
    from rmtheory.dynamics.finite_size import (
        StoppingLaw,
        counted_flips,
        half_point,
        stopping_law,
        stored_theory,
    )
    from rmtheory.dynamics.freezing import (
        FlipRateCurve,
        FreezingPoint,
        fitted_curve,
        flip_rate_curve,
        freezing_point,
        stationary_rate,
    )
    from rmtheory.dynamics.stationary_state import Stationary, overshoot, stationary
    from rmtheory.dynamics.two_copies import (
        Displacement,
        Presentation,
        displacement,
        overlap_of_phases,
        overlaps_of_batches,
    )
else:
    from rmtheory.base.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".averages": ["MeanField", "Series", "mean_field"],
            ".exact_steps": [
                "ConvergenceBound",
                "FirstSteps",
                "convergence_bound",
                "first_steps",
                "jd_for_failure",
            ],
            ".finite_size": [
                "StoppingLaw",
                "counted_flips",
                "half_point",
                "stopping_law",
                "stored_theory",
            ],
            ".freezing": [
                "FlipRateCurve",
                "FreezingPoint",
                "fitted_curve",
                "flip_rate_curve",
                "freezing_point",
                "stationary_rate",
            ],
            ".stationary_state": ["Stationary", "overshoot", "stationary"],
            ".two_copies": [
                "Displacement",
                "Presentation",
                "displacement",
                "overlap_of_phases",
                "overlaps_of_batches",
            ],
        },
    )

__all__ = [
    "ConvergenceBound",
    "Displacement",
    "FirstSteps",
    "FlipRateCurve",
    "FreezingPoint",
    "MeanField",
    "Presentation",
    "Series",
    "Stationary",
    "StoppingLaw",
    "convergence_bound",
    "counted_flips",
    "displacement",
    "first_steps",
    "fitted_curve",
    "flip_rate_curve",
    "freezing_point",
    "half_point",
    "jd_for_failure",
    "mean_field",
    "overlap_of_phases",
    "overlaps_of_batches",
    "overshoot",
    "stationary",
    "stationary_rate",
    "stopping_law",
    "stored_theory",
]
