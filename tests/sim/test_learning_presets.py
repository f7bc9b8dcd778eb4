"""Presets: the numbers of the paper's tables, typed overrides, densities that the widths fix."""

import math

import pytest

from rmsim.data import CATALOGUE
from rmsim.learning import Parameters
from rmsim.learning.baselines import core_parameters, mlp_parameters
from rmsim.learning.parameters import parse_settings
from rmsim.learning.presets import PRESETS, preset
from rmtheory.base.errors import InvalidInputError

# Widths of the binary perceptron and of the network beside it, as the tables print them.
MATCHED = {
    "mnist-sparse": (784, 10, (109, 214, 319, 422, 525, 626)),
    "fashion-mnist-sparse": (784, 10, (109, 214, 319, 422, 525, 626)),
    "entangled-mnist-sparse": (100, 10, (126, 233, 336, 438, 540, 640)),
    "tiny-imagenet-sparse": (512, 200, (300, 400, 500, 600, 700, 800)),
}


def test_presets_are_complete() -> None:
    for name, chosen in PRESETS.items():
        assert chosen.name == name
        assert chosen.dataset in CATALOGUE
        for n in chosen.widths:
            parameters = chosen.parameters(n)
            assert parameters.couplings.n == n
            assert chosen.epochs_at(n) >= 20
            assert Parameters.from_dict(parameters.to_dict()) == parameters
        assert chosen.paper.startswith("SM-")
        assert chosen.changed
    printed = {name for name in PRESETS if name.endswith("-printed")}
    assert len(printed) == 9
    assert {name.removesuffix("-printed") for name in printed} <= set(PRESETS)


@pytest.mark.parametrize("name", MATCHED)
def test_widths_of_the_tables_fix_the_densities(name: str) -> None:
    inputs, classes, hidden = MATCHED[name]
    chosen = preset(name)
    for n, h in zip(chosen.widths, hidden, strict=True):
        parameters = chosen.parameters(n)
        ours = core_parameters(n, inputs, classes, parameters.couplings.rho, parameters.w_in.rho)
        assert ours == pytest.approx(mlp_parameters(h, inputs, classes), rel=0.01)
        # Not with .01 for both, as the .99 of Tiny ImageNet would have it.
        other = core_parameters(n, inputs, classes, 0.01, 0.01)
        assert abs(other / mlp_parameters(h, inputs, classes) - 1) > 0.1


def test_numbers_that_depend_on_the_width() -> None:
    mnist = preset("mnist-sparse")
    result = [mnist.parameters(n).w_back.strength for n in mnist.widths]
    assert result == [1.62, 1.3, 1.1, 0.8, 0.8, 0.8]
    wide = preset("feature-learning-printed")
    assert (wide.epochs_at(3200), wide.epochs_at(6400)) == (200, 400)
    small, large = wide.parameters(1600), wide.parameters(6400)
    assert (small.j.eta, small.w_in.eta, small.readout.eta) == (0.005, 0.03, 0.03)
    assert (large.j.eta, large.w_in.eta, large.readout.eta) == (0.01, 0.01, 0.01)
    assert (small.j.kappa, large.j.kappa, large.w_in.kappa, large.w_back.strength) == (
        1.4,
        1.8,
        3.0,
        0.7,
    )
    assert (small.phases.clamped, small.phases.free, small.phases.inference) == (
        5,
        5,
        5,
    )  # max_iter of the table


def test_labels_follow_the_classes() -> None:
    tiny = preset("tiny-imagenet-sparse").parameters()
    assert tiny.w_back.label_true == pytest.approx(math.sqrt(199) / 2)
    assert tiny.w_back.label_other == pytest.approx(-1 / math.sqrt(199))
    assert preset("entangled-mnist-dense").parameters(100, classes=4).w_back.label_true == 1
    assert preset("mnist-sparse-printed").parameters(100, classes=4).w_back.label_true == 1


def test_overrides() -> None:
    chosen = preset("entangled-mnist-dense")
    changed = chosen.parameters(100, **parse_settings(["jd=.25", "stop=converged", "free=20"]))
    assert (changed.couplings.jd, changed.phases.stop, changed.phases.free) == (
        0.25,
        "converged",
        20,
    )
    assert changed.j.kappa == changed.w_in.kappa == 1.15  # 0.9 + J_D
    kept = chosen.parameters(100, jd=0.25, kappa_j=1.4)
    assert (kept.j.kappa, kept.w_in.kappa) == (1.4, 1.15)
    assert preset("role-of-jd-printed").parameters(100, jd=0.25).j.kappa == 1.15
    assert (
        preset("role-of-jd-printed").parameters(100, layers=3, lam_left=1).phases.warmup == 3
    )  # L sweeps


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("eta_j", "key=value"),
        ("nosuch=1", "'rmsim presets NAME' lists all"),
        ("kapa_j=1", "kappa_j"),
        ("n=100", "--n"),
        ("eta_j=fast", "eta_j must be a finite real number"),
        ("eta_j=nan", "eta_j must be a finite real number"),
        ("batch=1.5", "batch must be an integer"),
        ("rho_rates=maybe", "rho_rates must be true or false"),
    ],
)
def test_overrides_of_the_wrong_kind(typed: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        parse_settings([typed])


def test_overrides_given_twice_and_unknown_presets() -> None:
    with pytest.raises(InvalidInputError, match="given once for eta_j"):
        parse_settings(["eta_j=.1", "eta_j=.2"])
    with pytest.raises(InvalidInputError, match="one of asym, sym0"):
        preset("entangled-mnist-dense").parameters(100, **parse_settings(["symmetry=half"]))
    with pytest.raises(InvalidInputError, match="mnist-sparse"):
        preset("mnist")
