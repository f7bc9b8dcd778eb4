"""All figures, in the order in which ``all`` makes them."""

from __future__ import annotations

from collections.abc import Iterable

from figures.annealed import FIGURE as ANNEALED
from figures.bethe_vs_exact import FIGURE as BETHE_VS_EXACT
from figures.broken_symmetry import FIGURE as BROKEN_SYMMETRY
from figures.capacity import FIGURE as CAPACITY
from figures.counts import FIGURE as COUNTS
from figures.deep_chains import FIGURE as DEEP_CHAINS
from figures.deep_convergence import FIGURE as DEEP_CONVERGENCE
from figures.dynamics_threshold import FIGURE as DYNAMICS_THRESHOLD
from figures.feature_learning import FIGURE as FEATURE_LEARNING
from figures.figure import Figure, Scale
from figures.jd_lambda_duality import FIGURE as JD_LAMBDA_DUALITY
from figures.landscape import FIGURE as LANDSCAPE
from figures.local_entropies import FIGURE as LOCAL_ENTROPIES
from figures.models import FIGURE as MODELS
from figures.performance_benchmarks import FIGURE as PERFORMANCE_BENCHMARKS
from figures.phase_diagram import FIGURE as PHASE_DIAGRAM
from figures.qdyn_table import FIGURE as QDYN_TABLE
from figures.representations import FIGURE as REPRESENTATIONS
from figures.self_coupling import ROLE_OF_JD, SINGLE_DOUBLE
from figures.single_sample_rm import FIGURE as SINGLE_SAMPLE_RM
from figures.stability import FIGURE as STABILITY
from figures.symmetric_rules import SYMMETRIC_RULES, SYMMETRY_EVOLUTION
from figures.thresholds import FIGURE as THRESHOLDS
from figures.ystar import FIGURE as YSTAR
from rmtheory.errors import InvalidInputError

FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        MODELS,
        ANNEALED,
        STABILITY,
        LOCAL_ENTROPIES,
        YSTAR,
        BROKEN_SYMMETRY,
        PHASE_DIAGRAM,
        DEEP_CHAINS,
        DEEP_CONVERGENCE,
        COUNTS,
        DYNAMICS_THRESHOLD,
        THRESHOLDS,
        SINGLE_SAMPLE_RM,
        BETHE_VS_EXACT,
        CAPACITY,
        QDYN_TABLE,
        ROLE_OF_JD,
        SINGLE_DOUBLE,
        LANDSCAPE,
        REPRESENTATIONS,
        FEATURE_LEARNING,
        SYMMETRIC_RULES,
        SYMMETRY_EVOLUTION,
        JD_LAMBDA_DUALITY,
        PERFORMANCE_BENCHMARKS,
    )
}


def select(names: Iterable[str]) -> list[Figure]:
    """Return the figures called `names`, each once; ``all`` means all of them."""
    chosen: dict[str, Figure] = {}
    for name in names:
        if name == "all":
            chosen.update(FIGURES)
        elif name in FIGURES:
            chosen[name] = FIGURES[name]
        else:
            raise InvalidInputError("figure", name, f"all or one of {', '.join(FIGURES)}")
    return list(chosen.values())


def parse_scale(text: str) -> Scale:
    """Return the scale called `text`."""
    try:
        return Scale(text)
    except ValueError:
        raise InvalidInputError("scale", text, f"one of {', '.join(Scale)}") from None
