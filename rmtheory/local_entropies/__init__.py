"""Local entropy of the fixed points: y*(d), S_I, S_E, critical couplings (paper, SM-B)."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmtheory.local_entropies.broken_branch import (
        BrokenPoint,
        broken_entropy,
        broken_ystar,
        q0_loss,
        ystar_divergence,
    )
    from rmtheory.local_entropies.curves import (
        CurveStoppedError,
        Minimum,
        Monotonicity,
        Verdict,
        curve,
        least_entropy,
        least_slope,
        monotonicity,
    )
    from rmtheory.local_entropies.diagram import (
        BoundaryPoint,
        Request,
        boundary_point,
        compute_phase_diagram,
        phase_diagram,
        stored_phase_diagram,
    )
    from rmtheory.local_entropies.dilute_gas import (
        SmallDistance,
        SmearedGas,
        small_distance,
        smeared_gas,
    )
    from rmtheory.local_entropies.points import LocalEntropy, YStar, local_entropy, ystar
    from rmtheory.local_entropies.precise import (
        PrecisePoint,
        PreciseYStar,
        precise_point,
        precise_ystar,
    )
    from rmtheory.local_entropies.replicated import Replicated, replicated_entropy
    from rmtheory.local_entropies.sampling import Sampled, sample
    from rmtheory.local_entropies.solve import CurveTracker
    from rmtheory.local_entropies.thresholds import Critical, critical_coupling
    from rmtheory.local_entropies.typical import TypicalNeighbourhood, typical_neighbourhood
else:
    from rmtheory.base.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".broken_branch": [
                "BrokenPoint",
                "broken_entropy",
                "broken_ystar",
                "q0_loss",
                "ystar_divergence",
            ],
            ".curves": [
                "CurveStoppedError",
                "Minimum",
                "Monotonicity",
                "Verdict",
                "curve",
                "least_entropy",
                "least_slope",
                "monotonicity",
            ],
            ".diagram": [
                "BoundaryPoint",
                "Request",
                "boundary_point",
                "compute_phase_diagram",
                "phase_diagram",
                "stored_phase_diagram",
            ],
            ".dilute_gas": ["SmallDistance", "SmearedGas", "small_distance", "smeared_gas"],
            ".points": ["LocalEntropy", "YStar", "local_entropy", "ystar"],
            ".precise": ["PrecisePoint", "PreciseYStar", "precise_point", "precise_ystar"],
            ".replicated": ["Replicated", "replicated_entropy"],
            ".sampling": ["Sampled", "sample"],
            ".solve": ["CurveTracker"],
            ".thresholds": ["Critical", "critical_coupling"],
            ".typical": ["TypicalNeighbourhood", "typical_neighbourhood"],
        },
    )

__all__ = [
    "BoundaryPoint",
    "BrokenPoint",
    "Critical",
    "CurveStoppedError",
    "CurveTracker",
    "LocalEntropy",
    "Minimum",
    "Monotonicity",
    "PrecisePoint",
    "PreciseYStar",
    "Replicated",
    "Request",
    "Sampled",
    "SmallDistance",
    "SmearedGas",
    "TypicalNeighbourhood",
    "Verdict",
    "YStar",
    "boundary_point",
    "broken_entropy",
    "broken_ystar",
    "compute_phase_diagram",
    "critical_coupling",
    "curve",
    "least_entropy",
    "least_slope",
    "local_entropy",
    "monotonicity",
    "phase_diagram",
    "precise_point",
    "precise_ystar",
    "q0_loss",
    "replicated_entropy",
    "sample",
    "small_distance",
    "smeared_gas",
    "stored_phase_diagram",
    "typical_neighbourhood",
    "ystar",
    "ystar_divergence",
]
