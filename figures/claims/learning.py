"""Accuracies and comparisons of trained networks (main text, SM-C to SM-F)."""

from __future__ import annotations

from figures.claims.claim import Claim, Relation
from figures.claims.read import At, Minus, at

#: Data set -> widths of ours, widths of the perceptron (SM-D, tables of hyperparameters).
_WIDTHS = {
    "mnist": ((1000, 2000, 3000, 4000, 5000, 6000), (109, 214, 319, 422, 525, 626)),
    "fashion_mnist": ((1000, 2000, 3000, 4000, 5000, 6000), (109, 214, 319, 422, 525, 626)),
    "entangled_mnist": ((1000, 2000, 3000, 4000, 5000, 6000), (126, 233, 336, 438, 540, 640)),
    "tiny_imagenet": ((1155, 1660, 2216, 2817, 3458, 4134), (300, 400, 500, 600, 700, 800)),
}

_COMPARABLE = (
    "The straight-through perceptron stays ahead in our hands; the paper prints no accuracies to "
    "compare with."
)


def _widths() -> tuple[Claim, ...]:
    return tuple(
        Claim(
            f"width {name} {n}",
            f"width of the perceptron with as many parameters as ours, {name}, N = {n}",
            str(width),
            "SM-D, tables of hyperparameters",
            str(width),
            "performance_benchmarks",
            at("mlp_width", dataset=name, n=n),
            # The paper rounds now up, now down.
            tolerance=1.0,
        )
        for name, (ours, perceptron) in _WIDTHS.items()
        for n, width in zip(ours, perceptron, strict=True)
    )


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
            tolerance=0.01,
            note="'Comparable' is taken as within 1 %.",
            why=_COMPARABLE,
            headline=n == ours[0] and name != "tiny_imagenet",
        )
        for name, (ours, _) in _WIDTHS.items()
        for n in ours
    )


BENCHMARKS = (
    *_widths(),
    *_comparable(),
    Claim(
        "backbone",
        "test accuracy of the convolutional network behind the Tiny ImageNet features",
        "0.765",
        "SM-D, Tiny ImageNet features",
        "0.765",
        "performance_benchmarks",
        at("backbone_accuracy", dataset="tiny_imagenet"),
        note="The features are taken as the authors give them; the network is not trained again.",
    ),
)


def _positive(
    key: str, quantity: str, printed: str, where: str, data: str, first: At, second: At
) -> Claim:
    """A difference that the paper says is positive."""
    return Claim(
        key,
        quantity,
        printed,
        where,
        "0",
        data,
        Minus(first, second),
        relation=Relation.ABOVE,
    )


def _no_effect(rule: str, scheme: str) -> Claim:
    return Claim(
        f"symmetry {rule} {scheme}",
        f"test accuracy of {rule} minus asym at J_D = 0.5, {scheme} scheme",
        "little-to-no impact",
        "SM-E, figure of the symmetric rules",
        "0",
        "symmetric_rules",
        Minus(
            at("test_accuracy", rule=rule, jd=0.5, scheme=scheme),
            at("test_accuracy", rule="asym", jd=0.5, scheme=scheme),
        ),
        relation=Relation.SIMILAR,
        tolerance=0.02,
    )


def _boost(rule: str) -> Claim:
    return _positive(
        f"boost {rule}",
        f"test accuracy of {rule} at J_D = 0.5 minus J_D = 0, full scheme",
        "drastic improvement",
        "SM-E, figure of the symmetric rules",
        "symmetric_rules",
        at("test_accuracy", rule=rule, jd=0.5, scheme="full"),
        at("test_accuracy", rule=rule, jd=0.0, scheme="full"),
    )


def _outperforms(baseline: str, n: int) -> Claim:
    return _positive(
        f"features {baseline} {n}",
        f"test accuracy of ours minus {baseline.replace('_', ' ')}, N = {n}, 200 epochs",
        "consistently outperform",
        "main text; SM-D, figure of the feature learning",
        "feature_learning",
        at("test_accuracy", model="ours", n=n, epochs=200),
        at("test_accuracy", model=baseline, n=n, epochs=200),
    )


RULES = (
    *(
        _outperforms(baseline, n)
        for baseline in ("random_features", "reservoir")
        for n in (100, 400, 1600)
    ),
    _positive(
        "duality in jd",
        "test accuracy of two layers at λ = 0, J_D = 0.5 minus J_D = 0",
        "suddenly and drastically improves",
        "main text, figure of the duality",
        "jd_lambda_duality",
        at("test_accuracy_jd", jd=0.5),
        at("test_accuracy_jd", jd=0.0),
    ),
    _positive(
        "duality in lambda",
        "test accuracy of two layers at J_D = 0, λ = 5 minus λ = 0",
        "suddenly and drastically improves",
        "main text, figure of the duality",
        "jd_lambda_duality",
        at("test_accuracy_lam", lam=5.0),
        at("test_accuracy_lam", lam=0.0),
    ),
    Claim(
        "approximate scheme, narrow",
        "test accuracy of the approximate minus the full scheme, N = 400, J_D = 0.5",
        "preserves overall performance",
        "SM-C, approximate training scheme",
        "0",
        "self_coupling",
        Minus(
            at("test_accuracy", scheme="approximate", n=400, jd=0.5, epochs=100),
            at("test_accuracy", scheme="full", n=400, jd=0.5, epochs=100),
        ),
        relation=Relation.SIMILAR,
        tolerance=0.02,
    ),
    _positive(
        "approximate scheme, wide",
        "test accuracy of the full minus the approximate scheme, N = 1600, J_D = 0.5",
        "measurable reduction",
        "SM-C, approximate training scheme",
        "self_coupling",
        at("test_accuracy", scheme="full", n=1600, jd=0.5, epochs=100),
        at("test_accuracy", scheme="approximate", n=1600, jd=0.5, epochs=100),
    ),
    _positive(
        "approximate scheme, weak self-coupling",
        "test accuracy of the approximate minus the full scheme, N = 400, J_D = 0.1",
        "learns at J_D ~ 0.1",
        "SM-C, approximate training scheme",
        "self_coupling",
        at("test_accuracy", scheme="approximate", n=400, jd=0.1, epochs=100),
        at("test_accuracy", scheme="full", n=400, jd=0.1, epochs=100),
    ),
    *(
        _no_effect(rule, scheme)
        for scheme in ("full", "approximate")
        for rule in ("sym0", "sym1", "sym2")
    ),
    *(_boost(rule) for rule in ("asym", "sym0", "sym1", "sym2")),
    Claim(
        "symmetry of a random matrix",
        "symmetry level of J at initialisation, asymmetric",
        "close to 0",
        "SM-F",
        "0",
        "symmetric_rules",
        at("symmetry", rule="asym", jd=0.5, scheme="full", epoch=0),
        tolerance=0.01,
    ),
    Claim(
        "symmetry of a symmetric matrix",
        "symmetry level of J at initialisation, symmetric",
        "1",
        "SM-F",
        "1",
        "symmetric_rules",
        at("symmetry", rule="sym0", jd=0.5, scheme="full", epoch=0),
        tolerance=1e-6,
    ),
    Claim(
        "guessing without self-coupling",
        "test accuracy at J_D = 0.05, N = 1600, 100 epochs",
        "random guessing",
        "SM-G, role of J_D",
        "0.1",
        "self_coupling",
        at("test_accuracy", scheme="full", n=1600, jd=0.05, epochs=100),
        tolerance=0.05,
        why="Accuracy falls during training; how far depends on the epochs.",
    ),
    _positive(
        "optimum in jd",
        "test accuracy at J_D = 0.5 minus J_D = 0.9, N = 1600",
        "optimal at intermediate J_D",
        "SM-G, role of J_D",
        "self_coupling",
        at("test_accuracy", scheme="full", n=1600, jd=0.5, epochs=100),
        at("test_accuracy", scheme="full", n=1600, jd=0.9, epochs=100),
    ),
    _positive(
        "width helps",
        "training accuracy at N = 3200 minus N = 100, J_D = 0.5",
        "increasing N enhances trainability",
        "SM-G, role of J_D",
        "self_coupling",
        at("training_accuracy", scheme="full", n=3200, jd=0.5, epochs=100),
        at("training_accuracy", scheme="full", n=100, jd=0.5, epochs=100),
    ),
)
