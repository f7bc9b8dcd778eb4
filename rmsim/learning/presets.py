"""Presets by name: every table of hyper-parameters of the paper, as it reproduces and as printed.

A preset is data: a recipe, the numbers of a table, the data set and the epochs. Those of dense
networks on Entangled MNIST come first (SM-D to SM-H: feature learning, J_D, landscape, overlaps),
then those of the sparse benchmarks (SM-D, four tables).

Dense networks follow the dense recipe, which the paper's numbers need and its tables do not print:
updates divided by sqrt(fan-in) and, over a batch of 16, by sqrt(16); labels sqrt(C)/2 and -1/2;
five sweeps per phase. The presets ``...-printed`` are the tables read literally.

The densities rho_J = .01 and rho_in = .1 of the sparse benchmarks are those of the main text. The
table of Tiny ImageNet prints .99 for both, which is a sparsity if anything: only .01 and .1 give
the numbers of parameters that the widths of the perceptrons match,

    0.1 D N + 0.01 N^2 + C N = D H + H^2 + C H    to 1 % in all 24 columns.

>>> parameters = preset("mnist-sparse").parameters(2000)
>>> parameters.w_back.strength, parameters.couplings.jd
(1.3, 0.95)
>>> preset("entangled-mnist-dense").parameters(400, jd=0.3).j.kappa  # 0.9 + J_D
1.2

A recipe is a protocol by name; each takes any parameter by name instead of its own:

* :func:`dense_recipe`: Entangled MNIST, feature learning, role of J_D, landscape, overlaps.
* :func:`sparse_recipe`: the benchmarks on MNIST, Fashion-MNIST, Entangled MNIST, Tiny ImageNet.
* :func:`literal_recipe`: Algorithm 1 and SM-D as printed.
* :func:`overlap_recipe`: the dense recipe as the table of q_dyn needs it.

Hetero-association by a chain has a protocol of its own, :mod:`rmsim.studies.capacity`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from rmsim.learning.parameters import Parameters
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError

#: Name of the epochs at which a network is measured, in a point of a sweep; stored sweeps have it.
MEASURED_AT = "looks"

# Recipes.


def dense_recipe(n: int, *, jd: float = 0.5, classes: int = 10, **others: Any) -> Parameters:
    """Return the dense recipe: kappa = 0.9 + J_D for J and W_in, label sqrt(C)/2 and -1/2.

    Examples
    --------
    >>> round(dense_recipe(1600).w_back.label_true, 2)
    1.58
    """
    kappa = 0.9 + checks.coupling("jd", jd)
    values: dict[str, Any] = {
        "jd": jd,
        "label_true": math.sqrt(classes) / 2,
        "label_other": -0.5,
        "kappa_j": kappa,
        "kappa_in": kappa,
        "kappa_back": kappa,
    }
    return Parameters.from_dict({"n": n, **values, **others})


def sparse_recipe(n: int, *, classes: int = 10, **others: Any) -> Parameters:
    """Return the sparse recipe, with the paper's numbers for Entangled MNIST at N = 1000.

    Examples
    --------
    >>> sparse_recipe(1000).w_back.label_true
    1.5
    """
    spread = math.sqrt(classes - 1)
    values: dict[str, Any] = {
        "jd": 0.9,
        "rho_j": 0.01,
        "rho_in": 0.1,
        "lambda_x": 5.0,
        "lambda_y": 3.5,
        "label_true": spread / 2,
        "label_other": -1 / spread,
        "warmup": 1,
        "clamped": 5,
        "free": 5,
        "inference": 6,
        "eta_j": 0.02,
        "eta_in": 0.3,
        "eta_out": 0.005,
        "kappa_j": 1.4,
        "kappa_in": 1.6,
        "kappa_out": 7.0,
        "rho_rates": True,
        "lambda_rates": False,
    }
    return Parameters.from_dict({"n": n, **values, **others})


def literal_recipe(n: int, *, jd: float = 0.5, layers: int = 1, **others: Any) -> Parameters:
    """Return the paper as printed: L warm-up sweeps, labels +-1, until convergence, batch mean.

    Examples
    --------
    >>> literal_recipe(100, jd=0.25).j.kappa  # 0.9 + J_D
    1.15
    """
    values: dict[str, Any] = {
        "jd": jd,
        "layers": layers,
        "warmup": layers,
        "clamped": 100,
        "free": 100,
        "inference": 100,
        "stop": "converged",
        "eta_out": 0.03,
        "kappa_j": 0.9 + checks.coupling("jd", jd),
        "kappa_in": 3.0,
        "kappa_out": 3.0,
        "batch_scaling": "mean",
        "fan_in_rates": False,
    }
    return Parameters.from_dict({"n": n, **values, **others})


def overlap_recipe(n: int, *, jd: float = 0.5, classes: int = 10, **others: Any) -> Parameters:
    """Return the dense recipe with labels rescaled twice, run until convergence.

    Examples
    --------
    >>> labels = overlap_recipe(1600).w_back
    >>> round(labels.label_true, 2), round(labels.label_other, 2)
    (2.5, -0.79)
    """
    scale = math.sqrt(classes) / 2
    values: dict[str, Any] = {
        "label_true": scale**2,
        "label_other": -scale / 2,
        "warmup": 1,
        "clamped": 100,
        "free": 100,
        "stop": "converged",
    }
    return dense_recipe(n, jd=jd, classes=classes, **{**values, **others})


# Presets.

Recipe = Literal["dense", "overlap", "sparse", "literal"]

#: On MNIST a probe of 3 epochs is worse by half a percent than one of 10.
LEAST_PROBE = 10

_RECIPES: Mapping[str, Callable[..., Parameters]] = {
    "dense": dense_recipe,
    "overlap": overlap_recipe,
    "sparse": sparse_recipe,
    "literal": literal_recipe,
}


@dataclass(frozen=True)
class ByWidth:
    """A number that the paper tunes to the width: that of the nearest width in its table.

    Parameters
    ----------
    columns : mapping
        Width N -> the number there.

    Examples
    --------
    >>> tuned = ByWidth({1000: 1.62, 2000: 1.3})
    >>> tuned.at(1000), tuned.at(1501), tuned.at(10000)
    (1.62, 1.3, 1.3)
    """

    columns: Mapping[int, float]

    def at(self, n: int) -> float:
        """Return the number for N = `n`; halfway between two widths, that of the smaller."""
        return self.columns[min(self.columns, key=lambda width: (abs(width - n), width))]


@dataclass(frozen=True)
class Preset:
    """Everything that a run needs but its width, its seed and its length.

    Parameters
    ----------
    name : str
        As on the command line.
    dataset : str
        Name of the data set.
    recipe : str
        The protocol: dense, overlap, sparse or literal.
    table : mapping
        Setting -> number of the paper's table, or its numbers by width.
    widths : tuple of int
        The widths of the paper; the first one is the default.
    epochs : int or ByWidth
        Epochs of the paper.
    paper : str
        What the paper prints, and where.
    changed : str
        What is different here, and why.
    probe : bool
        Whether a softmax probe is trained afterwards.
    classes : int
        Classes of the data set.
    """

    name: str
    dataset: str
    recipe: Recipe
    table: Mapping[str, Any]
    widths: tuple[int, ...]
    epochs: int | ByWidth
    paper: str
    changed: str
    probe: bool = False
    classes: int = 10

    def parameters(
        self, n: int | None = None, *, classes: int | None = None, **others: Any
    ) -> Parameters:
        """Return the parameters at width `n`, with `others` by name instead of the table's.

        Parameters
        ----------
        n : int, optional
            Neurons per layer; the first width of the paper by default.
        classes : int, optional
            Number of classes, on which the label code depends; that of the data set by default.
        **others
            Any setting; unknown ones are errors.
        """
        width = self.width(n)
        values = {name: _at(value, width) for name, value in self.table.items()}
        if self.recipe != "literal":  # whose labels are +-1 whatever the classes
            values["classes"] = self.classes if classes is None else classes
        parameters = _RECIPES[self.recipe](width, **{**values, **others})
        _demand_path(parameters, {**values, **others})
        return parameters

    def width(self, n: object = None) -> int:
        """Return `n`, checked, or the default width."""
        return self.widths[0] if n is None else checks.integer("n", n, 2)

    def epochs_at(self, n: int) -> int:
        """Return the epochs of the paper at width `n`."""
        return int(_at(self.epochs, n))

    def probe_epochs(self, epochs: int) -> int:
        """Return the epochs of the probe after `epochs` of training; 0 if there is none.

        As many again (paper, SM-D), but not fewer than a readout needs to be trained at all.
        """
        return max(epochs, LEAST_PROBE) if self.probe else 0

    def printed(self, table: Mapping[str, Any], changed: str) -> Preset:
        """Return the literal twin of this preset: the table as printed."""
        name = f"{self.name}-printed"
        return replace(self, name=name, recipe="literal", table=table, changed=changed)

    def to_dict(self) -> dict[str, Any]:
        """Return what a list shows, as JSON values."""
        return {
            "name": self.name,
            "dataset": self.dataset,
            "recipe": self.recipe,
            "widths": list(self.widths),
            "epochs": self.epochs_at(self.widths[0]),
            "probe": self.probe,
            "paper": self.paper,
            "changed": self.changed,
        }


def preset(name: str) -> Preset:
    """Return the preset called `name`."""
    if name not in PRESETS:
        raise InvalidInputError("preset", name, f"one of {', '.join(PRESETS)}")
    return PRESETS[name]


def _demand_path(parameters: Parameters, given: Mapping[str, Any]) -> None:
    """Refuse layers without a coupling, if the readout could then not see the input."""
    ends = (parameters.w_in.to, parameters.readout.layers)
    name = {("first", "last"): "lam_left", ("last", "first"): "lam_right"}.get(ends)
    layers = parameters.couplings.layers
    if layers > 1 and name is not None and name not in given:
        allowed = f"given for {layers} layers: the input has to reach the readout"
        raise InvalidInputError(name, "nothing", allowed)


def _at(value: Any, n: int) -> Any:
    return value.at(n) if isinstance(value, ByWidth) else value


# Dense networks on Entangled MNIST.

_DENSE_WIDTHS = (100, 200, 400, 800, 1600, 3200)

_DENSE_CHANGED = (
    "eta_out = .1, kappa_in = kappa_j = 0.9 + J_D (the printed kappa_in = 3 wrecks learning; 3 "
    "belongs to the readout), labels sqrt(C)/2 and -1/2, five sweeps per phase, updates over "
    "sqrt(B) sqrt(fan-in) with B = 16: the paper is silent on these, and they give its accuracies"
)
_DENSE_PRINTED = (
    "nothing: labels +-1, phases until convergence (at most 100 sweeps), mean over a batch of 16 "
    "(the paper gives no size), no factor of the fan-in"
)

#: Table of feature learning (SM-D); its column of N = 6400 differs from the one for 100 to 3200.
_FEATURES: Mapping[str, Any] = {
    "jd": 0.5,
    "eta_j": ByWidth({3200: 0.005, 6400: 0.01}),
    "eta_in": ByWidth({3200: 0.03, 6400: 0.01}),
    "lambda_x": 5.0,
    "lambda_y": ByWidth({3200: 0.9, 6400: 0.7}),
}
_FEATURES_KAPPA_J = ByWidth({3200: 1.4, 6400: 1.8})
_FEATURES_ETA_OUT = ByWidth({3200: 0.03, 6400: 0.01})
_FEATURES_TABLE = "SM-D, table of feature learning: "

#: Table of the role of J_D (SM-G), and what the landscape and the overlaps share with it.
_ROLE: Mapping[str, Any] = {"lambda_x": 5.0, "lambda_y": 0.9, "eta_j": 0.005}
_ROLE_RATES = {"eta_in": 0.03, "eta_out": 0.1}
_ROLE_RATES_PRINTED = {"eta_in": 0.01, "eta_out": 0.01}

#: Columns of frozen networks in the table of feature learning.
_FROZEN: Mapping[str, Any] = {
    "eta_j": 0.0,
    "eta_in": 0.0,
    "eta_out": 0.03,
    "lambda_x": 5.0,
    "lambda_y": 0.0,
    "clamped": 0,
    "free": 0,
}

_ENTANGLED_DENSE = Preset(
    name="entangled-mnist-dense",
    dataset="entangled-mnist",
    recipe="dense",
    table={
        "jd": 0.5,
        "lambda_x": 5.0,
        "lambda_y": 0.9,
        "eta_j": 0.005,
        "eta_in": 0.03,
        "eta_out": 0.1,
    },
    widths=(1600, 100, 200, 400, 800, 3200),
    epochs=20,
    paper="SM-H, first row of the table of overlaps: J_D = .5, lambda_x = 5, lambda_y = .9, "
    "20 epochs",
    changed=f"rates of the table of feature learning; {_DENSE_CHANGED}",
)

_FEATURE_LEARNING = Preset(
    name="feature-learning",
    dataset="entangled-mnist",
    recipe="dense",
    table={
        **_FEATURES,
        "kappa_j": _FEATURES_KAPPA_J,
        "kappa_in": _FEATURES_KAPPA_J,
        "eta_out": 0.1,
    },
    widths=(*_DENSE_WIDTHS, 6400),
    epochs=ByWidth({3200: 200, 6400: 400}),
    paper=f"{_FEATURES_TABLE}J_D = .5, eta_J = .005 (.01 at N = 6400), eta_in = .03 (.01), "
    "eta_out = .03 (.01), kappa_J = 1.4 (1.8), kappa_in = kappa_out = 3, lambda_x = 5, "
    "lambda_y = .9 (.7), 200 epochs (400), at most 5 iterations",
    changed=f"{_DENSE_CHANGED}; here kappa is the table's, whatever J_D",
)

_RANDOM_FEATURES = Preset(
    name="random-features",
    dataset="entangled-mnist",
    recipe="dense",
    table={**_FROZEN, "jd": 0.0, "warmup": 1, "inference": 1},
    widths=(*_DENSE_WIDTHS, 6400),
    epochs=200,
    paper=f"{_FEATURES_TABLE}eta_J = eta_in = lambda_y = 0, eta_out = .03, kappa_out = 3, "
    "lambda_x = 5, 200 epochs, one iteration",
    changed="updates of the readout over sqrt(B) sqrt(N)",
)

_RESERVOIR = Preset(
    name="reservoir",
    dataset="entangled-mnist",
    recipe="dense",
    table={**_FROZEN, "jd": 0.5, "warmup": 5, "inference": 5},
    widths=(*_DENSE_WIDTHS, 6400),
    epochs=200,
    paper=f"{_FEATURES_TABLE}as random features, with J_D = .5 and five iterations (the equation "
    "of the text has no J_D)",
    changed="updates of the readout over sqrt(B) sqrt(N)",
)

_ROLE_OF_JD = Preset(
    name="role-of-jd",
    dataset="entangled-mnist",
    recipe="dense",
    table={**_ROLE, **_ROLE_RATES},
    widths=_DENSE_WIDTHS,
    epochs=100,
    paper="SM-G, table beside the figure: eta_J = .005, eta_in = eta_out = .01, kappa_J = 0.9 + "
    "J_D, kappa_in = kappa_out = 3, lambda_x = 5, lambda_y = .9, 100 epochs; J_D from .05 to .9",
    changed=f"eta_in = .03 as in feature learning; {_DENSE_CHANGED}",
)

_LANDSCAPE = Preset(
    name="landscape",
    dataset="entangled-mnist",
    recipe="dense",
    table={"jd": 0.5, **_ROLE, **_ROLE_RATES},
    widths=(1600,),
    epochs=30,
    paper="SM-G, table of the landscape: N = 1600, J_D = .5, eta_J = .005, eta_in = eta_out = .01, "
    "kappa_J = 0.9 + J_D, kappa_in = kappa_out = 3, lambda_x = 2, lambda_y = .9, 30 epochs",
    changed="lambda_x = 5, which gives the printed curvature 1.367 at initialisation; lambda_x = 2 "
    f"gives 1.40. eta_in = .03; {_DENSE_CHANGED}",
)

_OVERLAPS = Preset(
    name="overlaps",
    dataset="entangled-mnist",
    recipe="overlap",
    table={"jd": 0.5, **_ROLE, **_ROLE_RATES},
    widths=(1600,),
    epochs=20,
    paper="SM-H, table of overlaps: J_D = .5 or 0, lambda_x = 5 or 2, lambda_y = .9 or .5, at "
    "initialisation, after 1 and after 20 epochs",
    changed="labels rescaled twice (2.5 and -.79), one warm-up sweep, phases until convergence: "
    f"this gives the column of the initialisation, and brackets that are quartiles. "
    f"{_DENSE_CHANGED}",
)

_DENSE = (
    _ENTANGLED_DENSE,
    _ENTANGLED_DENSE.printed(
        {**_FEATURES, "kappa_j": _FEATURES_KAPPA_J, "eta_out": _FEATURES_ETA_OUT}, _DENSE_PRINTED
    ),
    _FEATURE_LEARNING,
    _FEATURE_LEARNING.printed(
        {
            **_FEATURES,
            "clamped": 5,
            "free": 5,
            "inference": 5,
            "kappa_j": _FEATURES_KAPPA_J,
            "eta_out": _FEATURES_ETA_OUT,
        },
        _DENSE_PRINTED.replace("100 sweeps", "the table's 5 sweeps"),
    ),
    _RANDOM_FEATURES,
    _RESERVOIR,
    _ROLE_OF_JD,
    _ROLE_OF_JD.printed({**_ROLE, **_ROLE_RATES_PRINTED}, _DENSE_PRINTED),
    _LANDSCAPE,
    _LANDSCAPE.printed(
        {**_ROLE, "lambda_x": 2.0, **_ROLE_RATES_PRINTED, "jd": 0.5}, _DENSE_PRINTED
    ),
    _OVERLAPS,
    _OVERLAPS.printed({"jd": 0.5, **_ROLE, "eta_in": 0.03, "eta_out": 0.03}, _DENSE_PRINTED),
)


# Sparse benchmarks against a binary perceptron with two hidden layers.

_SPARSE_CHANGED = (
    "labels sqrt(C-1)/2 and -1/sqrt(C-1), 1 + 5 + 5 sweeps, updates over sqrt(B) sqrt(fan-in) with "
    "B = 16 and rates over sqrt(rho), as in the authors' code; the softmax probe of the second "
    "stage by Adam (rate .001, batches of 256); until then W_out learns by the perceptron rule "
    "with kappa_out = 7"
)
_SPARSE_PRINTED = (
    "nothing: labels +-1, phases until convergence (at most 100 sweeps), mean over a batch of 16 "
    "(the paper gives no size), no factor of the fan-in or the density"
)

#: Densities of the main text.
_RHO = {"rho_j": 0.01, "rho_in": 0.1}

_MNIST: Mapping[str, Any] = {
    "eta_j": 0.058,
    "eta_in": 0.159,
    "eta_out": 0.005,
    "kappa_j": 1.78,
    "kappa_in": 1.78,
    "jd": 0.95,
    "decay_in": 0.01,
    "lambda_x": 5.0,
    "lambda_y": ByWidth({1000: 1.62, 2000: 1.3, 3000: 1.1, 4000: 0.8, 5000: 0.8, 6000: 0.8}),
}
_FASHION_MNIST: Mapping[str, Any] = {
    "eta_j": 0.118,
    "eta_in": 0.17,
    "eta_out": 0.0015,
    "kappa_j": 1.74,
    "kappa_in": 1.74,
    "jd": 0.98,
    "decay_j": 0.0001,
    "decay_in": 0.0002,
    "lambda_x": 4.91,
    "lambda_y": ByWidth({1000: 1.8, 2000: 1.8, 3000: 1.3, 4000: 1.0, 5000: 1.0, 6000: 1.0}),
}
_ENTANGLED_MNIST: Mapping[str, Any] = {
    "eta_j": 0.02,
    "eta_in": 0.3,
    "eta_out": 0.005,
    "kappa_j": 1.4,
    "kappa_in": 1.6,
    "jd": 0.9,
    "lambda_x": 5.0,
    "lambda_y": ByWidth({1000: 3.5, 2000: 2.5, 3000: 1.75, 4000: 2.0, 5000: 1.75, 6000: 1.25}),
}
_TINY_IMAGENET: Mapping[str, Any] = {
    "eta_j": 0.02,
    "eta_in": 0.3,
    "eta_out": 0.005,
    "kappa_j": 1.4,
    "kappa_in": 1.6,
    "jd": 0.9,
    "decay_j": 0.01,
    "lambda_x": 5.0,
    "lambda_y": ByWidth({1155: 3.1, 1660: 2.5, 2216: 2.5, 2817: 2.25, 3458: 2.25, 4134: 2.25}),
}


def _benchmark(
    name: str, dataset: str, table: Mapping[str, Any], title: str, *, classes: int = 10
) -> Preset:
    """Return the preset that follows the authors' code, with the widths of its lambda_y."""
    numbers = ", ".join(f"{setting} = {_shown(value)}" for setting, value in table.items())
    return Preset(
        name=name,
        dataset=dataset,
        recipe="sparse",
        table={**_RHO, **table},
        widths=tuple(table["lambda_y"].columns),
        epochs=20,
        paper=f"SM-D, table of {title}: {numbers}; 20 epochs of W_in and J, 20 of the readout",
        changed=_SPARSE_CHANGED,
        probe=True,
        classes=classes,
    )


def _shown(value: object) -> str:
    if isinstance(value, ByWidth):
        return "{" + ", ".join(f"{number:g}" for number in value.columns.values()) + "} by width"
    return f"{value:g}"


def _pair(benchmark: Preset) -> tuple[Preset, Preset]:
    return benchmark, benchmark.printed(benchmark.table, _SPARSE_PRINTED)


_TINY = _benchmark(
    "tiny-imagenet-sparse",
    "tiny-imagenet-features",
    _TINY_IMAGENET,
    "Tiny ImageNet features",
    classes=200,
)
_TINY = replace(
    _TINY,
    paper=f"{_TINY.paper}, rho_J = rho_in = .99",
    changed=f"{_SPARSE_CHANGED}; rho_J = .01 and rho_in = .1, which alone match the printed widths",
)

_SPARSE = (
    *_pair(_benchmark("mnist-sparse", "mnist", _MNIST, "MNIST")),
    *_pair(_benchmark("fashion-mnist-sparse", "fashion-mnist", _FASHION_MNIST, "Fashion-MNIST")),
    *_pair(
        _benchmark("entangled-mnist-sparse", "entangled-mnist", _ENTANGLED_MNIST, "Entangled MNIST")
    ),
    *(_TINY, _TINY.printed(_TINY.table, f"{_SPARSE_PRINTED}; the densities as matched")),
)

#: Name -> preset, in the order of a list for users.
PRESETS: Mapping[str, Preset] = MappingProxyType({p.name: p for p in (*_DENSE, *_SPARSE)})
