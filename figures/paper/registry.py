"""All figures, in the order in which ``all`` makes them."""

from __future__ import annotations

from collections.abc import Iterable

from figures.engine.figure import Figure, Scale
from figures.paper.annealed import FIGURE as ANNEALED
from figures.paper.bethe_vs_exact import FIGURE as BETHE_VS_EXACT
from figures.paper.broken_symmetry import FIGURE as BROKEN_SYMMETRY
from figures.paper.capacity import FIGURE as CAPACITY
from figures.paper.counts import FIGURE as COUNTS
from figures.paper.deep_chains import FIGURE as DEEP_CHAINS
from figures.paper.deep_convergence import FIGURE as DEEP_CONVERGENCE
from figures.paper.dynamics_threshold import FIGURE as DYNAMICS_THRESHOLD
from figures.paper.feature_learning import FIGURE as FEATURE_LEARNING
from figures.paper.jd_lambda_duality import FIGURE as JD_LAMBDA_DUALITY
from figures.paper.landscape import LANDSCAPE, REPRESENTATIONS
from figures.paper.local_entropies import LOCAL_ENTROPIES, YSTAR
from figures.paper.mean_field import FIGURE as MEAN_FIELD
from figures.paper.models import FIGURE as MODELS
from figures.paper.performance_benchmarks import FIGURE as PERFORMANCE_BENCHMARKS
from figures.paper.phase_diagram import FIGURE as PHASE_DIAGRAM
from figures.paper.phase_diagram_complete import FIGURE as PHASE_DIAGRAM_COMPLETE
from figures.paper.qdyn_table import FIGURE as QDYN_TABLE
from figures.paper.self_coupling import ROLE_OF_JD, SINGLE_DOUBLE
from figures.paper.single_sample_rm import FIGURE as SINGLE_SAMPLE_RM
from figures.paper.stability import FIGURE as STABILITY
from figures.paper.symmetric_rules import SYMMETRIC_RULES, SYMMETRY_EVOLUTION
from figures.paper.thresholds import FIGURE as THRESHOLDS
from rmtheory.base.errors import InvalidInputError

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
        MEAN_FIELD,
        PHASE_DIAGRAM_COMPLETE,
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


def current_keys() -> set[str]:
    """Return the keys of what the figures of today compute, at every scale."""
    return {key for figure in FIGURES.values() for scale in Scale for key in figure.keys(scale)}
