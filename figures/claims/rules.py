"""Training schemes, symmetric couplings and symmetric rules (main text, SM-C, SM-E, SM-F)."""

from __future__ import annotations

from figures.claims.accuracy import OURS_NOTE, above, accuracy, drastic
from figures.claims.claim import Claim, Relation
from figures.claims.read import At, Minus, at

_SM_C = "SM-C, approximate training scheme"
_SM_E = "main text, role of the RM; SM-E, figure of the symmetric rules"

#: What the symmetric rules are run with: the paper gives neither.
_OURS = {"n": 1600, "epochs": 50}
_SIZE = "N = 1600, 50 epochs"


def _narrow(part: str) -> Claim:
    return Claim(
        f"approximate scheme, narrow, {part}",
        f"{part} accuracy of the approximate minus the full scheme, N = 400, J_D = 0.5",
        "preserves overall performance",
        _SM_C,
        "0",
        "self_coupling",
        Minus(accuracy(part, "approximate", 400, 0.5), accuracy(part, "full", 400, 0.5)),
        relation=Relation.SIMILAR,
        tolerance=0.02,
    )


def _wide(part: str, n: int) -> Claim:
    return above(
        f"approximate scheme, {n}, {part}",
        f"{part} accuracy of the full minus the approximate scheme, N = {n}, J_D = 0.5",
        "measurable reduction",
        _SM_C,
        Minus(accuracy(part, "full", n, 0.5), accuracy(part, "approximate", n, 0.5)),
        note="" if n == 3200 else "The text says N ~ 3200, the figure shows 1600.",
    )


SCHEMES = (
    *(_narrow(part) for part in ("training", "test")),
    *(_wide(part, n) for n in (3200, 1600) for part in ("training", "test")),
    above(
        "approximate scheme learns",
        "test accuracy of the approximate scheme, N = 400, J_D = 0.1, against guessing",
        "enables the network to learn at J_D ~ 0.1",
        _SM_C,
        accuracy("test", "approximate", 400, 0.1),
        number="0.1",
    ),
    above(
        "approximate scheme, weak self-coupling",
        "test accuracy of the approximate minus the full scheme, N = 400, J_D = 0.1",
        "unstable or chaotic in the full model",
        _SM_C,
        Minus(accuracy("test", "approximate", 400, 0.1), accuracy("test", "full", 400, 0.1)),
    ),
)


def _rule(rule: str, scheme: str, jd: float) -> At:
    return at("test_accuracy", rule=rule, jd=jd, scheme=scheme, **_OURS)


def _no_effect(rule: str, scheme: str, jd: float) -> Claim:
    return Claim(
        f"symmetry {rule} {scheme} {jd:g}",
        f"test accuracy of {rule} minus asym at J_D = {jd:g}, {scheme} scheme, {_SIZE}",
        "little-to-no impact",
        _SM_E,
        "0",
        "symmetric_rules",
        Minus(_rule(rule, scheme, jd), _rule("asym", scheme, jd)),
        relation=Relation.SIMILAR,
        tolerance=0.02,
        note=OURS_NOTE,
    )


def _boost(rule: str, scheme: str) -> Claim:
    return drastic(
        f"boost {rule} {scheme}",
        f"test accuracy of {rule} at J_D = 0.5 minus J_D = 0, {scheme} scheme, {_SIZE}",
        "drastic improvement",
        *(_SM_E, "symmetric_rules", Minus(_rule(rule, scheme, 0.5), _rule(rule, scheme, 0.0))),
    )


def _level(rule: str, name: str, printed: str, value: str, tolerance: float) -> Claim:
    return Claim(
        f"symmetry of {name}",
        f"symmetry level of J at initialisation, {rule}",
        printed,
        "SM-F",
        value,
        "symmetric_rules",
        At("symmetry", {"rule": rule, "jd": 0.5, "scheme": "full", "epoch": 0}, ("n",)),
        tolerance=tolerance,
    )


SYMMETRY = (
    *(
        _no_effect(rule, scheme, jd)
        for jd in (0.5, 0.0)
        for scheme in ("full", "approximate")
        for rule in ("sym0", "sym1", "sym2")
    ),
    *(
        _boost(rule, scheme)
        for scheme in ("full", "approximate")
        for rule in ("asym", "sym0", "sym1", "sym2")
    ),
    Claim(
        "symmetric couplings converge",
        "share of samples whose free phase finds no fixed point at J_D = 0, symmetric couplings "
        "before training",
        "descends a Lyapunov function and is convergent",
        "main text, role of the RM",
        "0",
        "symmetric_rules",
        At("unstable_free", {"rule": "sym0", "jd": 0.0, "scheme": "full", "epoch": 0}, ("n",)),
        tolerance=0.01,
        why=(
            "Erratum 23: that holds for one neuron at a time; updated all at once, symmetric "
            "networks descend a function of two successive states, which allows cycles of two."
        ),
    ),
    _level("asym", "a random matrix", "close to 0", "0", 0.01),
    _level("sym0", "a symmetric matrix", "1", "1", 1e-6),
)

RULES = (*SCHEMES, *SYMMETRY)
