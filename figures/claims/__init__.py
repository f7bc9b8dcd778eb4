"""The numbers and claims that the paper prints as results, and how ours are read from the data.

The sections below are the source of the report, of the page 'how to reproduce' and of the table in
the README. Hyperparameters are inputs and are not listed: they are presets of the simulator.
"""

from figures.claims.algorithms import ALGORITHMS
from figures.claims.capacity import CAPACITY
from figures.claims.claim import (
    POWER,
    SIGNIFICANCE,
    Claim,
    Grant,
    Judged,
    Kind,
    Ours,
    Relation,
    Verdict,
    judge,
)
from figures.claims.landscape import LANDSCAPE, QDYN
from figures.claims.learning import BENCHMARKS, FEATURES, ROLES, RULES
from figures.claims.theory import DYNAMICS, ENTROPY, GEOMETRY

#: Title -> claims, in the order of the paper.
SECTIONS: dict[str, tuple[Claim, ...]] = {
    "Number of fixed points": ENTROPY,
    "Arrangement of fixed points": GEOMETRY,
    "Algorithms that find them": ALGORITHMS,
    "Theory of the dynamics": DYNAMICS,
    "Benchmarks": BENCHMARKS,
    "Features that are learnt": FEATURES,
    "Role of the couplings": ROLES,
    "Learning rules and symmetry": RULES,
    "Hetero-association": CAPACITY,
    "Landscape and representations": LANDSCAPE,
    "Overlap of the two phases": QDYN,
}

CLAIMS: tuple[Claim, ...] = tuple(claim for claims in SECTIONS.values() for claim in claims)

__all__ = [
    "CLAIMS",
    "POWER",
    "SECTIONS",
    "SIGNIFICANCE",
    "Claim",
    "Grant",
    "Judged",
    "Kind",
    "Ours",
    "Relation",
    "Verdict",
    "judge",
]
