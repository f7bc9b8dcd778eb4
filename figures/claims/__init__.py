"""The numbers and claims that the paper prints as results, and how ours are read from the data.

The sections below are the source of the report, of the page 'how to reproduce' and of the table in
the README. Hyperparameters are inputs and are not listed: they are presets of the simulator.

A statement is a sentence of the paper, or a few that say one thing, and the claims that it stands
or falls with. Its verdict follows from theirs alone: it differs if one of them does, agrees if all
are decided and none differs, and is open otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from figures.claims.algorithms import ALGORITHMS
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
    indicative,
    judge,
)
from figures.claims.landscape import LANDSCAPE, QDYN
from figures.claims.performance import BENCHMARKS, CAPACITY, FEATURES
from figures.claims.role_of_couplings import ROLES, RULES
from figures.claims.theory import DYNAMICS, ENTROPY, GEOMETRY
from rmtheory.base.errors import InvalidInputError

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

_BY_ID = {claim.id: claim for claim in CLAIMS}


def claim_named(name: str) -> Claim:
    """Return the claim with the id `name`."""
    if name not in _BY_ID:
        from difflib import get_close_matches

        near = get_close_matches(name, _BY_ID, 3, 0.3)
        such = f", such as {', '.join(near)}" if near else ""
        raise InvalidInputError("id", name, f"an id that 'python -m figures claims' lists{such}")
    return _BY_ID[name]


# The statements of the paper, in its order: each line of the first page of the report.

#: Verdicts of a claim that is settled.
DECIDED = (Verdict.AGREES, Verdict.DIFFERS, Verdict.RECONSTRUCTED)


@dataclass(frozen=True)
class Statement:
    """One thing that the paper says.

    Parameters
    ----------
    text : str
        What, in a line.
    where : str
        Place in the paper.
    keys : tuple of str
        Patterns of the keys of its claims; a claim belongs to the first statement that has it.
    """

    text: str
    where: str
    keys: tuple[str, ...]

    def has(self, claim: Claim) -> bool:
        """Return whether a pattern fits the key of `claim`."""
        return any(fnmatchcase(claim.key, pattern) for pattern in self.keys)


def verdict_of(judged: Sequence[Judged]) -> str:
    """Return the verdict of a statement from those of its claims, in words.

    Examples
    --------
    >>> claim = Claim("k", "q", "7", "here", "7", "data", lambda data: None)
    >>> verdict_of([Judged(claim, None)])
    'open: none of 1 decided'
    """
    verdicts = [one.verdict for one in judged]
    total, differ = len(verdicts), verdicts.count(Verdict.DIFFERS)
    decided = sum(verdict in DECIDED for verdict in verdicts)
    edge = verdicts.count(Verdict.EDGE)
    at_edge = f" ({edge} of them at the edge)" if edge else ""
    rest = "" if decided == total else f", {total - decided} open{at_edge}"
    if differ:
        return f"differs: {differ} of {total}{rest}"
    if decided < total:
        others = f", {edge} of the others at the edge" if edge else ""
        return f"open: {decided or 'none'} of {total} decided{others}"
    reconstructed = verdicts.count(Verdict.RECONSTRUCTED)
    if reconstructed == total:
        return f"reconstructed: {total}"
    return f"agrees: {total}" + (f", {reconstructed} reconstructed" if reconstructed else "")


def grouped(claims: Sequence[Claim]) -> list[tuple[Statement, list[Claim]]]:
    """Return every statement with its claims; what belongs to none comes last, as one."""
    groups: dict[int, list[Claim]] = {}
    for claim in claims:
        place = next((k for k, one in enumerate(STATEMENTS) if one.has(claim)), len(STATEMENTS))
        groups.setdefault(place, []).append(claim)
    every = (*STATEMENTS, _OTHER)
    return [(every[place], groups[place]) for place in sorted(groups)]


_OTHER = Statement("Other claims", "", ())

_TEXT, _END = "main text", "End Matter"

STATEMENTS = (
    Statement(
        "The number of fixed points grows exponentially with N for J_D > 0",
        f"{_TEXT}, geometry of fixed points; SM-A",
        ("entropy at zero coupling", "entropy grows with jd", "entropy at infinite couplings"),
    ),
    Statement(
        "Couplings λ between layers raise that number",
        f"{_TEXT}; SM-A",
        ("entropy grows with lambda",),
    ),
    Statement(
        "At J_D = 0 there are no fixed points", f"{_TEXT}", ("fixed points without self-coupling",)
    ),
    Statement(
        "The annealed average is exact: mean number, second moment, tightness",
        "SM-A",
        ("mean number", "tight *", "relative second moment"),
    ),
    Statement(
        "The replica-symmetric saddle is stable, for one layer and for two",
        "SM-A",
        (
            "loss of stability",
            "other saddles",
            "stability of two layers",
            "order in lambda",
            "no coupling is one layer",
        ),
    ),
    Statement("Typical fixed points are isolated", f"{_TEXT}, geometry", ("typical fixed points",)),
    Statement(
        "Those that the dynamics finds lie in a dense, connected, branching cluster",
        f"{_TEXT}, geometry",
        ("accessible fixed points", "connected cluster", "branching cluster"),
    ),
    Statement(
        "Fixed points are out of reach of the dynamics at small J_D",
        f"{_TEXT}, core module",
        ("unreachable*",),
    ),
    Statement(
        "Internal and external entropy are monotone in y, and y* exists beyond 1",
        _END,
        (
            "internal entropy grows with y",
            "external entropy falls with y",
            "y where the external entropy vanishes",
            "y exceeds one",
        ),
    ),
    Statement(
        "Below the transition S_I*(d) has a maximum, at extremely small d",
        _END,
        ("distance of the maximum", "monotone 1 0.05 0", "monotone 2 0.05 0.2", "monotone 2 0 0.4"),
    ),
    Statement(
        "The dense cluster emerges at J_Dc ≃ 0.07",
        _END,
        ("critical self-coupling", "monotone 1 *"),
    ),
    Statement(
        "In two layers it emerges at λ ⪅ 0.45",
        _END,
        ("critical coupling of two layers", "monotone 2 *"),
    ),
    Statement(
        "S_I*(d) vanishes at d = 0 and saturates at the entropy of typical fixed points",
        _END,
        ("entropy at half", "plateau", "no entropy at distance zero"),
    ),
    Statement(
        "Larger J_D or λ drives the transition: order of the nine curves",
        f"{_END}, figure of the local entropies",
        ("transition *", "order of curves *"),
    ),
    Statement(
        "Reinforced BP finds fixed points down to J_D = 0.35, in few iterations",
        f"{_TEXT}, geometry",
        ("rbp *", "threshold of rbp", "iterations of rbp"),
    ),
    Statement(
        "Likelihood optimisation finds them from J_D ⪆ 0.5 on",
        f"{_TEXT}, geometry",
        ("threshold of the likelihood",),
    ),
    Statement(
        "The dynamics converges from J_D ⪆ 0.8 on, and below √(2 ln N)",
        f"{_TEXT}, geometry; SM-A",
        ("threshold of the dynamics*", "success at 0.8", "bound of the dynamics", "freezing*"),
    ),
    Statement(
        "Synchronous chains cycle; random masks cure it",
        "SM-C",
        ("cycles of chains*", "masks against cycles"),
    ),
    Statement(
        "Phases need no more than 5 to 10 sweeps", f"{_TEXT}, Learning", ("iterations of the *",)
    ),
    Statement(
        "A readout learnt offline is equivalent; other topologies learn, too",
        "SM-C",
        ("offline readout", "other topologies", "skip connections"),
    ),
    Statement(
        "Accuracy on MNIST is comparable to backpropagation with as many parameters, at the rates "
        "of the tables",
        f"{_TEXT}, Performance",
        ("comparable mnist *",),
    ),
    Statement(
        "The same for Fashion-MNIST: comparable to backpropagation",
        f"{_TEXT}, Performance",
        ("comparable fashion_mnist *",),
    ),
    Statement(
        "The same for Entangled MNIST: comparable to backpropagation",
        f"{_TEXT}, Performance",
        ("comparable entangled_mnist *",),
    ),
    Statement(
        "The same for features of Tiny ImageNet: comparable to backpropagation",
        f"{_TEXT}, Performance",
        ("comparable tiny_imagenet", "backbone"),
    ),
    Statement("The numbers of parameters match exactly", "SM-D, tables", ("matching widths",)),
    Statement("Data sets are equally split among classes", "SM-D", ("classes of *",)),
    Statement("Entangled MNIST is hard for linear classifiers", "SM-D", ("linear classifier",)),
    Statement(
        "Hyper-parameters stay optimal across widths; W_back must not learn",
        "SM-D",
        ("optimal across widths", "feedback that learns"),
    ),
    Statement(
        "Learnt features beat random ones and a reservoir, most when they are few",
        f"{_TEXT}, Performance; SM-D",
        ("features *", "narrow features *"),
    ),
    Statement(
        "λ_x from 2 to 6 does as well; λ_x = 5 is the most robust",
        "SM-D",
        ("range of lambda_x", "robust lambda_x"),
    ),
    Statement(
        "Hetero-association: capacity grows with depth and linearly with width",
        f"{_TEXT}, Performance; SM-D",
        ("capacity *",),
    ),
    Statement(
        "In the chain the overlap with the target grows layer by layer",
        "SM-D, figure of the overlaps",
        ("overlap *", "alignment *"),
    ),
    Statement(
        "Two layers cannot learn without J_D or λ, and suddenly can with either",
        f"{_TEXT}, role of the RM",
        ("duality *", "sudden *"),
    ),
    Statement(
        "Symmetry of J has no effect on performance",
        f"{_TEXT}, role of the RM; SM-E",
        ("symmetry sym*",),
    ),
    Statement(
        "All variants gain drastically by J_D, by the rule of the main text",
        f"{_TEXT}, role of the RM; SM-E",
        ("boost * full",),
    ),
    Statement(
        "The same by the approximate scheme, which also learns at weak J_D",
        "SM-E, figure of the symmetric rules",
        ("boost * approximate",),
    ),
    Statement(
        "With symmetric couplings the dynamics converges",
        f"{_TEXT}, role of the RM",
        ("symmetric couplings converge",),
    ),
    Statement(
        "Symmetric rules preserve symmetry; the level tells symmetric from random",
        "SM-E, SM-F",
        ("symmetry preserved *", "symmetry of *"),
    ),
    Statement(
        "The approximate scheme preserves performance in narrow networks, not in wide ones",
        "SM-C",
        ("approximate scheme*",),
    ),
    Statement(
        "Performance is best at intermediate J_D; too small is guessing, too large random features",
        "SM-G",
        ("guessing *", "optimum in jd *", "strong self-coupling", "optimal jd *"),
    ),
    Statement(
        "Width helps trainability, and larger models gain more by J_D",
        "SM-G",
        ("larger models *", "width *"),
    ),
    Statement(
        "Landscape: curvature, displacement and accuracies of the printed network",
        "SM-G",
        (
            "landscape *",
            "curvature before*",
            "curvature after*",
            "curvature spread *",
            "displacement of *",
            "displacement before *",
        ),
    ),
    Statement(
        "Training straightens and shortens paths, and clusters representations by label",
        "SM-G, SM-H",
        (
            "curvature shrinks *",
            "trajectories *",
            "displacement shrinks *",
            "similarity grows *",
            "labels cluster *",
        ),
    ),
    Statement(
        "Overlap of the two phases: the printed table, and its theory",
        "SM-H, table",
        ("qdyn *", "5-95 *"),
    ),
    Statement(
        "Stability improves in the first epoch; J_D = 0.5, λ_x = 5, λ_y = 0.9 is optimal",
        "SM-H",
        ("stabler *", "optimal t*", "accuracy t* 0.5 *"),
    ),
    Statement("Without J_D nothing is learnt", "SM-H", ("accuracy t* without self-coupling",)),
)

__all__ = [
    "CLAIMS",
    "DECIDED",
    "POWER",
    "SECTIONS",
    "SIGNIFICANCE",
    "STATEMENTS",
    "Claim",
    "Grant",
    "Judged",
    "Kind",
    "Ours",
    "Relation",
    "Statement",
    "Verdict",
    "claim_named",
    "grouped",
    "indicative",
    "judge",
    "verdict_of",
]
