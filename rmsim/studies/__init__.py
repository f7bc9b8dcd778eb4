"""What is swept, fitted, compared and drawn: thresholds, capacity, landscape, trained networks."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmsim.studies import compare as compare
    from rmsim.studies import plots as plots
    from rmsim.studies.capacity import Protocol, Trials, run_trials
    from rmsim.studies.capacity_sweep import Capacity, CapacityStatus, p_max
    from rmsim.studies.convergence import Thresholds, thresholds
    from rmsim.studies.device_theory import mean_field
    from rmsim.studies.grid_sweeps import sweep_of, tidy
    from rmsim.studies.landscape_survey import (
        Curvature,
        Displacement,
        Survey,
        curvature,
        displacement,
        landscape,
        path,
        survey,
        trajectory_distances,
    )
    from rmsim.studies.neighbourhood import (
        CheckedStates,
        Neighbourhood,
        check_fixed_points,
        survey_neighbourhood,
    )
    from rmsim.studies.success_curves import (
        Crossing,
        CrossingStatus,
        Limit,
        Trend,
        crossing,
        fit_trends,
        limit_of,
    )
    from rmsim.studies.threshold_design import Design, Ensemble, SearchSettings, Work
    from rmsim.studies.trained_networks import benchmark, trained
else:
    from rmtheory.base.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".landscape_survey": [
                "Survey",
                "landscape",
                "survey",
                "Curvature",
                "Displacement",
                "curvature",
                "displacement",
                "path",
                "trajectory_distances",
            ],
            ".capacity": ["Protocol", "Trials", "run_trials"],
            ".capacity_sweep": ["Capacity", "CapacityStatus", "p_max"],
            ".convergence": ["Thresholds", "thresholds"],
            ".device_theory": ["mean_field"],
            ".grid_sweeps": ["sweep_of", "tidy"],
            ".neighbourhood": [
                "CheckedStates",
                "Neighbourhood",
                "check_fixed_points",
                "survey_neighbourhood",
            ],
            ".success_curves": [
                "Crossing",
                "CrossingStatus",
                "Limit",
                "Trend",
                "crossing",
                "fit_trends",
                "limit_of",
            ],
            ".threshold_design": ["Design", "Ensemble", "SearchSettings", "Work"],
            ".trained_networks": ["benchmark", "trained"],
        },
        ("compare", "plots"),
    )

__all__ = [
    "Capacity",
    "CapacityStatus",
    "CheckedStates",
    "Crossing",
    "CrossingStatus",
    "Curvature",
    "Design",
    "Displacement",
    "Ensemble",
    "Limit",
    "Neighbourhood",
    "Protocol",
    "SearchSettings",
    "Survey",
    "Thresholds",
    "Trend",
    "Trials",
    "Work",
    "benchmark",
    "check_fixed_points",
    "crossing",
    "curvature",
    "displacement",
    "fit_trends",
    "landscape",
    "limit_of",
    "mean_field",
    "p_max",
    "path",
    "run_trials",
    "survey",
    "survey_neighbourhood",
    "sweep_of",
    "thresholds",
    "tidy",
    "trained",
    "trajectory_distances",
]
