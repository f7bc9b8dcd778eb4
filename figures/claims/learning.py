"""Sparse networks against the perceptron, learnt features against frozen ones (main text, SM-D).

Claims on accuracies of trained networks: what the paper calls drastic, and gains.

What the couplings J_D and lambda do for learning (main text, role of the RM; SM-G).

Training schemes, symmetric couplings and symmetric rules (main text, SM-C, SM-E, SM-F).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from figures.claims import grants
from figures.claims.claim import (
    At,
    Claim,
    Grant,
    Least,
    Minus,
    Ours,
    Reading,
    Relation,
    at,
    difference,
    not_run,
    ours,
    select,
)

#: Data set -> inputs, classes, widths of ours, widths of the perceptron (SM-D, tables).
_SETS = {
    "mnist": (784, 10, (1000, 2000, 3000, 4000, 5000, 6000), (109, 214, 319, 422, 525, 626)),
    "fashion_mnist": (
        *(784, 10),
        *((1000, 2000, 3000, 4000, 5000, 6000), (109, 214, 319, 422, 525, 626)),
    ),
    "entangled_mnist": (
        *(100, 10),
        *((1000, 2000, 3000, 4000, 5000, 6000), (126, 233, 336, 438, 540, 640)),
    ),
    "tiny_imagenet": (
        *(512, 200),
        *((1155, 1660, 2216, 2817, 3458, 4134), (300, 400, 500, 600, 700, 800)),
    ),
}


#: Data set -> why it is not at hand.
_ABSENT = {"tiny_imagenet": "The features of Tiny ImageNet are not ours to distribute."}


def largest_mismatch(data: xr.Dataset) -> Ours | None:
    """Return the largest |P_MLP − P| of the printed widths, in units of its least possible value.

    P_MLP(H) = H (D + H + C), and H is an integer: half a unit of H changes P_MLP by
    (D + 2H + C)/2, which is the unit.
    """
    mismatches = []
    for name, (inputs, classes, sizes, widths) in _SETS.items():
        for n, width in zip(sizes, widths, strict=True):
            one = select(data, {"dataset": name, "n": n})
            if one is None:
                return None
            perceptron = width * (inputs + width + classes)
            unit = (inputs + 2 * width + classes) / 2
            mismatches.append(abs(perceptron - float(one["parameters"])) / unit)
    return Ours(max(mismatches), 0.0)


def _comparable() -> tuple[Claim, ...]:
    return tuple(
        Claim(
            f"comparable {name} {n}",
            f"test accuracy of ours minus the perceptron, {name}, N = {n}, 20 epochs",
            "comparable",
            "main text, figure of the benchmarks",
            "0",
            "performance_benchmarks",
            Minus(
                at("accuracy", dataset=name, n=n, epochs=20),
                at("mlp_accuracy", dataset=name, n=n, epochs=20),
            ),
            # More accurate than the perceptron is no less than comparable.
            relation=Relation.ABOVE,
            grant=grants.COMPARABLE,
            absent=_ABSENT.get(name, ""),
            note=(
                "Ours learns for 20 epochs and its probe for 20 more, the perceptron for 20; the "
                "paper may mean 10 and 10."
            ),
            why="The paper prints no accuracies to compare with.",
            headline=n == sizes[0] and name != "tiny_imagenet",
        )
        for name, (_, _, sizes, _) in _SETS.items()
        for n in sizes
    )


BENCHMARKS = (
    Claim(
        "matching widths",
        "largest mismatch of the parameters over the 24 printed pairs of widths, in units of what "
        "half a unit of width changes",
        "exactly match",
        "main text, Performance; SM-D, tables of hyperparameters",
        "1",
        "performance_benchmarks",
        largest_mismatch,
        relation=Relation.BELOW,
        note="Widths are integers; the parameters of ours are the mean over masks.",
        why="Some widths are not the integer nearest to the parameters of ours.",
    ),
    *_comparable(),
    not_run(
        "feedback that learns",
        "test accuracy with W_back learnt minus frozen",
        "severely degraded performance",
        "SM-D, recurrent model and perceptron",
        "0",
        "The preset and the setting eta_back exist; no figure of ours runs them.",
    ),
    Claim(
        "linear classifier",
        "test accuracy on Entangled MNIST of the perceptron beside N = 1000 minus that of a "
        "softmax classifier on the inputs themselves",
        "poor performance of linear classifiers",
        "SM-D, Entangled MNIST",
        "0.1",
        "performance_benchmarks",
        Minus(
            At("mlp_accuracy", {"dataset": "entangled_mnist", "n": 1000, "epochs": 20}),
            at("linear_accuracy"),
        ),
        relation=Relation.ABOVE,
        note="'Poor' is taken as 0.1 below the perceptron.",
    ),
    not_run(
        "backbone",
        "test accuracy of the convolutional network behind the Tiny ImageNet features",
        "0.765",
        "SM-D, Tiny ImageNet features",
        "0.765",
        "The features are taken as the authors give them; the network is not trained again.",
    ),
)

_WIDTHS = (100, 200, 400, 800, 1600, 3200)

_RATES = (
    "The readout of ours learns at a rate of 0.1, that of the baselines at the printed 0.03, which "
    "the paper gives for all."
)


def _gain(part: str, baseline: str, n: int) -> Minus:
    """Accuracy of ours minus that of a baseline."""
    return Minus(
        at(f"{part}_accuracy", model="ours", n=n, epochs=200),
        at(f"{part}_accuracy", model=baseline, n=n, epochs=200),
    )


def _outperforms(part: str, baseline: str) -> tuple[Claim, Claim]:
    name = baseline.replace("_", " ")
    always = Claim(
        f"features {part} {baseline}",
        f"{part} accuracy of ours minus {name}, least over N = 100 to 3200, 200 epochs",
        "consistently outperform",
        "main text, Performance; SM-D, figure of the feature learning",
        "0",
        "feature_learning",
        Least(tuple(_gain(part, baseline, n) for n in _WIDTHS)),
        relation=Relation.ABOVE,
        note=_RATES,
    )
    narrow = Claim(
        f"narrow features {part} {baseline}",
        f"gain in {part} accuracy over {name}, N = 100 minus N = 3200, 200 epochs",
        "especially pronounced gains when using low-dimensional features",
        "main text, Performance",
        "0",
        "feature_learning",
        Minus(_gain(part, baseline, _WIDTHS[0]), _gain(part, baseline, _WIDTHS[-1])),
        relation=Relation.ABOVE,
        note=_RATES,
    )
    return always, narrow


FEATURES = (
    *(
        claim
        for baseline in ("random_features", "reservoir")
        for part in ("training", "test")
        for claim in _outperforms(part, baseline)
    ),
    not_run(
        "features at 6400",
        "test accuracy of ours minus the baselines, N = 6400, 400 epochs",
        "consistently outperform",
        "SM-D, table of feature learning",
        "0",
        "The figure ends at N = 3200; the preset feature-learning has the settings of 6400.",
    ),
    not_run(
        "range of lambda_x",
        "accuracy over λ_x from 2 to 6 with J_D and λ_y adjusted",
        "comparable performance for λ_x in [2.0, 6.0]",
        "SM-D, feature learning",
        "0",
        "No figure of ours searches J_D and λ_y again at each λ_x.",
    ),
)


#: Accuracies gained by something that the paper calls drastic; it gives no number.
_DRASTIC = "0.1"
_DRASTIC_NOTE = "'Drastic' is taken as more than 0.1."

#: Of runs whose size the paper does not give.
OURS_NOTE = "The paper gives neither N nor epochs; these are ours."


def accuracy(part: str, scheme: str, n: int, jd: float) -> At:
    """Return the reader of the accuracy (`part` training or test) after 100 epochs, one layer."""
    return at(f"{part}_accuracy", scheme=scheme, n=n, jd=jd, epochs=100)


def drastic(key: str, quantity: str, printed: str, where: str, figure: str, read: Reading) -> Claim:
    """Return the claim of an improvement that is large, in runs of a size that is ours."""
    return Claim(
        *(key, quantity, printed, where, _DRASTIC, figure, read),
        relation=Relation.ABOVE,
        note=f"{_DRASTIC_NOTE} {OURS_NOTE}",
    )


def above(
    key: str,
    quantity: str,
    printed: str,
    where: str,
    read: Reading,
    number: str = "0",
    note: str = "",
) -> Claim:
    """Return the claim that something of the figure ``self_coupling`` exceeds a number."""
    return Claim(
        *(key, quantity, printed, where, number, "self_coupling", read),
        relation=Relation.ABOVE,
        note=note,
    )


_DUALITY = "main text, figure of the duality"
_ROLE = "SM-G, role of J_D"

#: What the two-layer chain is run with: the paper gives neither.
_OURS = {"n": 800, "epochs": 20}
_SIZE = "2 x 800 neurons, 20 epochs"


def _unable(name: str, symbol: str) -> Claim:
    return Claim(
        f"duality without {name}",
        f"test accuracy of two layers at J_D = λ = 0, {_SIZE} (curve of {symbol})",
        "unable to learn",
        _DUALITY,
        "0.1",
        "jd_lambda_duality",
        at(f"test_accuracy_{name}", **{name: 0.0}, **_OURS),
        grant=grants.GUESSING,
        note=f"Guessing is right in one of ten. {OURS_NOTE}",
    )


def _sudden(name: str, quantity: str, most: float) -> Claim:
    with_it, without = (
        at(f"test_accuracy_{name}", **{name: value}, **_OURS) for value in (most, 0.0)
    )
    return drastic(
        f"duality in {name}",
        f"test accuracy of two layers at {quantity}, {_SIZE}",
        "suddenly and drastically improves",
        *(_DUALITY, "jd_lambda_duality", Minus(with_it, without)),
    )


def _accuracy(part: str, n: int, jd: float) -> At:
    return accuracy(part, "full", n, jd)


@dataclass(frozen=True)
class _Spread:
    """Largest minus least training accuracy over J_D from 0.2 on, one N."""

    n: int

    def __call__(self, data: xr.Dataset) -> Ours | None:
        one = select(data, {"scheme": "full", "n": self.n, "epochs": 100})
        if one is None:
            return None
        part = one.isel(jd=np.flatnonzero(one["jd"].values >= 0.2 - 1e-9))
        name = "training_accuracy"
        values = part[name].values
        ends = [part.isel(jd=int(place)) for place in (np.argmax(values), np.argmin(values))]
        return difference(*(ours(end[name], end[f"{name}_error"]) for end in ends))


def _positive(key: str, quantity: str, printed: str, read: Reading, note: str = "") -> Claim:
    """Something of trained networks that the paper says is positive."""
    return above(key, quantity, printed, _ROLE, read, note=note)


def _gain_of_coupling(part: str) -> Minus:
    """What width gains in accuracy."""
    return Minus(_accuracy(part, 3200, 0.5), _accuracy(part, 100, 0.5))


def _benefit(n: int) -> Minus:
    """What self-coupling gains in test accuracy."""
    return Minus(_accuracy("test", n, 0.5), _accuracy("test", n, 0.05))


ROLES = (
    _unable("jd", "J_D"),
    _unable("lam", "λ"),
    _sudden("jd", "λ = 0, J_D = 0.5 minus J_D = 0", 0.5),
    _sudden("lam", "J_D = 0, λ = 5 minus λ = 0", 5.0),
    Claim(
        "guessing without self-coupling",
        "test accuracy at J_D = 0.05, N = 1600, 100 epochs",
        "random guessing",
        _ROLE,
        "0.1",
        "self_coupling",
        _accuracy("test", 1600, 0.05),
        grant=grants.GUESSING,
    ),
    _positive(
        "optimum in jd from above",
        "test accuracy at J_D = 0.5 minus J_D = 0.9, N = 1600, 100 epochs",
        "optimal at intermediate J_D",
        Minus(_accuracy("test", 1600, 0.5), _accuracy("test", 1600, 0.9)),
    ),
    _positive(
        "optimum in jd from below",
        "test accuracy at J_D = 0.5 minus J_D = 0.05, N = 1600, 100 epochs",
        "optimal at intermediate J_D",
        _benefit(1600),
    ),
    _positive(
        "larger models benefit more",
        "gain in test accuracy from J_D = 0.05 to 0.5, N = 3200 minus N = 100, 100 epochs",
        "larger models benefit more from self-coupling",
        Minus(_benefit(3200), _benefit(100)),
    ),
    _positive(
        "width helps",
        "training accuracy at N = 3200 minus N = 100, J_D = 0.5, 100 epochs",
        "increasing N enhances trainability",
        _gain_of_coupling("training"),
    ),
    _positive(
        "width helps training more",
        "gain from N = 100 to 3200, training minus test accuracy, J_D = 0.5, 100 epochs",
        "gains more pronounced with training patterns",
        Minus(_gain_of_coupling("training"), _gain_of_coupling("test")),
    ),
    _positive(
        "width broadens the range",
        "largest minus least training accuracy over J_D = 0.2 to 0.9, N = 100 minus N = 3200",
        "stabilizes training accuracy across a broader range of J_D",
        Minus(_Spread(100), _Spread(3200)),
        "The paper does not say how the range is measured; this is our choice.",
    ),
    not_run(
        "strong self-coupling",
        "accuracy as J_D → ∞ minus that of random features",
        "effectively behaves as a random feature model",
        _ROLE,
        "0",
        "The largest J_D of the figure is 0.9, as in the paper.",
    ),
)


_SM_C = "SM-C, approximate training scheme"
_SM_E = "main text, role of the RM; SM-E, figure of the symmetric rules"

#: What the symmetric rules are run with: the paper gives neither.
_OURS_RULES = {"n": 1600, "epochs": 50}
_SIZE_RULES = "N = 1600, 50 epochs"


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
        grant=grants.LITTLE,
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
    return at("test_accuracy", rule=rule, jd=jd, scheme=scheme, **_OURS_RULES)


def _no_effect(rule: str, scheme: str, jd: float) -> Claim:
    return Claim(
        f"symmetry {rule} {scheme} {jd:g}",
        f"test accuracy of {rule} minus asym at J_D = {jd:g}, {scheme} scheme, {_SIZE_RULES}",
        "little-to-no impact",
        _SM_E,
        "0",
        "symmetric_rules",
        Minus(_rule(rule, scheme, jd), _rule("asym", scheme, jd)),
        relation=Relation.SIMILAR,
        grant=grants.LITTLE,
        note=OURS_NOTE,
    )


def _boost(rule: str, scheme: str) -> Claim:
    return drastic(
        f"boost {rule} {scheme}",
        f"test accuracy of {rule} at J_D = 0.5 minus J_D = 0, {scheme} scheme, {_SIZE_RULES}",
        "drastic improvement",
        *(_SM_E, "symmetric_rules", Minus(_rule(rule, scheme, 0.5), _rule(rule, scheme, 0.0))),
    )


def _level(rule: str, name: str, printed: str, value: str, grant: Grant) -> Claim:
    return Claim(
        f"symmetry of {name}",
        f"symmetry level of J at initialisation, {rule}",
        printed,
        "SM-F",
        value,
        "symmetric_rules",
        At("symmetry", {"rule": rule, "jd": 0.5, "scheme": "full", "epoch": 0}, ("n",)),
        grant=grant,
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
        grant=grants.CYCLES,
        why=(
            "Erratum 23: that holds for one neuron at a time; updated all at once, symmetric "
            "networks descend a function of two successive states, which allows cycles of two."
        ),
    ),
    _level("asym", "a random matrix", "close to 0", "0", grants.RANDOM_SYMMETRY),
    _level("sym0", "a symmetric matrix", "1", "1", grants.EXACT_SYMMETRY),
)

RULES = (*SCHEMES, *SYMMETRY)
