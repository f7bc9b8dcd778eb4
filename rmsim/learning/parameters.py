r"""Every choice of the learning protocol, by name (paper, Algorithm 1 and SM-C).

The field of neuron i in layer l, with input x and label code y,

.. math:: h^l_i = \sum_{j\ne i} J^l_{ij} s^l_j + J_D s^l_i + \lambda_L s^{l-1}_i
    + \lambda_R s^{l+1}_i + \sum_k W^{in}_{ik} x_k + \sum_c W^{back}_{ic} y_c,

has lambda_x and lambda_y absorbed: :math:`W^{in} \sim \lambda_x\,\mathcal N(0, 1/(\rho_{in} D))`,
:math:`W^{back} \sim \lambda_y\,\mathcal N(0, 1/C)`. Rates of the updates, summed over a batch of B:

.. math:: \text{rate} = \eta \cdot \{1/B,\ 1/\sqrt B,\ 1\} \cdot \{1/\sqrt{\text{fan-in}},\ 1\}
    \cdot \{1/\sqrt\rho,\ 1\} \cdot \{\lambda, 1\}

by `batch_scaling`, `fan_in_rates`, `rho_rates` and `lambda_rates`. The fan-in is n for J, D for
W_in, C for W_back, and all N = L n neurons for W_out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from rmsim.couplings.local import MOST_COUPLING, checked_coupling
from rmsim.network import LEAST_DENSITY, MOST_NEURONS
from rmtheory import checks
from rmtheory.errors import InvalidInputError

Order = Literal["synchronous", "sequential"]
Stop = Literal["fixed", "converged"]
Rule = Literal["perceptron", "tanh"]
Symmetry = Literal["asym", "sym0", "sym1", "sym2"]
Scheme = Literal["full", "approximate"]
BatchScaling = Literal["mean", "root", "sum"]
Kind = Literal["random", "identity"]
Readout = Literal["perceptron", "none"]
Layers = Literal["first", "last", "all"]
Weights = Literal["j", "in", "out", "back"]

#: Density at which weight decay has its printed strength, if rates depend on the density.
DECAY_DENSITY = 0.1

_WORDS: dict[str, Any] = {
    "update": Order,
    "stop": Stop,
    "rule": Rule,
    "symmetry": Symmetry,
    "scheme": Scheme,
    "batch_scaling": BatchScaling,
    "input_kind": Kind,
    "back_kind": Kind,
    "readout": Readout,
    "input_to": Layers,
    "label_to": Layers,
    "output_from": Layers,
}
_COUNTS = {"warmup": 0, "clamped": 0, "free": 0, "inference": 1, "batch": 1}
_NOT_NEGATIVE = (
    *("lambda_x", "lambda_y", "eta_j", "eta_in", "eta_out", "eta_back"),
    *("decay_j", "decay_in", "decay_out"),
)
_REALS = (
    *("jd", "lam_left", "lam_right", "label_true", "label_other"),
    *("kappa_j", "kappa_in", "kappa_out", "kappa_back"),
)
_FLAGS = (
    *("fan_in_rates", "rho_rates", "lambda_rates", "shared_back"),
    *("test_jd", "test_input", "test_labels", "test_right", "right_in_inference"),
)


@dataclass(frozen=True)
class Parameters:
    r"""The protocol. Defaults are those of the dense recipe, without its numbers of N and C.

    Parameters
    ----------
    n, layers : int
        Neurons a layer and layers; N = L n.
    jd, lam_left, lam_right : float
        J_D, and the couplings to the previous and the next layer. Never updated, never decayed.
    rho_j, rho_in : float
        Densities of J and W_in, 0 < rho <= 1; below 1 the weights are compressed rows.
    lambda_x, lambda_y : float
        Strengths of input and label.
    label_true, label_other : float
        Label code of the true class and of the others.
    warmup, clamped, free, inference : int
        Sweeps without label, with it, after it; and from s = 0 without label at inference.
    stop : str
        ``fixed`` does that many sweeps; ``converged`` stops at a fixed point, and the numbers are
        the most sweeps (warm-up is always a number).
    update : str
        ``synchronous``, or ``sequential``: layer after layer.
    p : float
        Probability that a neuron is updated in a sweep.
    scheme : str
        ``full``, or ``approximate``: no free phase, s* = s'.
    rule : str
        ``perceptron``: weight 1[s h <= kappa]; ``tanh``: [1 - tanh(gamma (s h - kappa))]/2.
    gamma : float
        Steepness of the smooth rule.
    symmetry : str
        ``asym``; ``sym0``: J starts symmetric; ``sym1``, ``sym2``: and stays so.
    test_jd, test_input, test_labels, test_right : bool
        Whether J_D, input, labels and lambda_R belong to the field h of the rule.
    right_in_inference : bool
        Whether lambda_R acts at inference.
    eta_j, eta_in, eta_out, eta_back : float
        Rates; 0 freezes.
    kappa_j, kappa_in, kappa_out, kappa_back : float
        Margins asked for.
    batch : int
        Samples a batch.
    batch_scaling : str
        Divide the sum over the batch by B (``mean``), sqrt(B) (``root``) or 1 (``sum``).
    fan_in_rates, rho_rates, lambda_rates : bool
        Divide rates by sqrt(fan-in), by sqrt(rho); multiply those of W_in and W_back by lambda,
        as needed if the paper's W without lambda is learnt.
    decay_j, decay_in, decay_out : float
        w of the weight decay after each batch, W <- W (1 - w eta / sqrt(fan-in) sqrt(0.1/rho)),
        with the two factors as for the rates.
    input_kind, back_kind : str
        ``random``, or ``identity``: neuron i of the layer sees lambda_x x_i (D = n), or
        lambda_y y_i (C = n).
    input_to, label_to, output_from : str
        Layers that see the input and the label, and that the readout reads: first, last or all.
    shared_back : bool
        Whether all layers have the same W_back, which is then frozen.
    readout : str
        ``perceptron``: W_out learns by the perceptron rule; ``none``: there is no W_out.

    Examples
    --------
    >>> Parameters(n=100, jd=0.5).kappa_j
    1.4
    """

    n: int
    layers: int = 1
    jd: float = 0.5
    lam_left: float = 0.0
    lam_right: float = 0.0
    rho_j: float = 1.0
    rho_in: float = 1.0
    lambda_x: float = 5.0
    lambda_y: float = 0.9
    label_true: float = 1.0
    label_other: float = -1.0
    warmup: int = 2
    clamped: int = 3
    free: int = 5
    inference: int = 5
    stop: Stop = "fixed"
    update: Order = "synchronous"
    p: float = 1.0
    scheme: Scheme = "full"
    rule: Rule = "perceptron"
    gamma: float = 1.0
    symmetry: Symmetry = "asym"
    test_jd: bool = True
    test_input: bool = True
    test_labels: bool = False
    test_right: bool = True
    right_in_inference: bool = True
    eta_j: float = 0.005
    eta_in: float = 0.03
    eta_out: float = 0.1
    eta_back: float = 0.0
    kappa_j: float = 1.4
    kappa_in: float = 1.4
    kappa_out: float = 3.0
    kappa_back: float = 1.4
    batch: int = 16
    batch_scaling: BatchScaling = "root"
    fan_in_rates: bool = True
    rho_rates: bool = False
    lambda_rates: bool = True
    decay_j: float = 0.0
    decay_in: float = 0.0
    decay_out: float = 0.0
    input_kind: Kind = "random"
    back_kind: Kind = "random"
    input_to: Layers = "first"
    label_to: Layers = "last"
    output_from: Layers = "last"
    shared_back: bool = False
    readout: Readout = "perceptron"

    def __post_init__(self) -> None:
        self._set("n", checks.integer("n", self.n, 2, MOST_NEURONS))
        self._set("layers", checks.integer("layers", self.layers, 1, MOST_NEURONS // self.n))
        for name, least in _COUNTS.items():
            self._set(name, checks.integer(name, getattr(self, name), least))
        for name in (*_REALS, *_NOT_NEGATIVE, "gamma", "p", "rho_j", "rho_in"):
            self._set(name, checked_coupling(name, getattr(self, name)))
        for name in _NOT_NEGATIVE:
            if getattr(self, name) < 0:
                raise InvalidInputError(name, getattr(self, name), "at least 0")
        for name in ("rho_j", "rho_in"):
            if not LEAST_DENSITY <= getattr(self, name) <= 1:
                allowed = f"a density from {LEAST_DENSITY:g} to 1"
                raise InvalidInputError(name, getattr(self, name), allowed)
        if not 0 < self.p <= 1:
            raise InvalidInputError("p", self.p, "a probability above 0 and at most 1")
        if self.gamma <= 0:
            raise InvalidInputError("gamma", self.gamma, "above 0")
        for name, words in _WORDS.items():
            if getattr(self, name) not in get_args(words):
                allowed = f"one of {', '.join(get_args(words))}"
                raise InvalidInputError(name, getattr(self, name), allowed)
        for name in _FLAGS:
            if not isinstance(getattr(self, name), bool):
                raise InvalidInputError(name, getattr(self, name), "true or false")
        self._check_together()

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_together(self) -> None:
        if self.scheme == "full" and self.warmup + self.clamped + self.free == 0:
            raise InvalidInputError("free", 0, "at least 1 if there is no other sweep")
        if self.scheme == "approximate" and self.warmup + self.clamped == 0:
            raise InvalidInputError("clamped", 0, "at least 1 if there is no other sweep")
        if self.shared_back and self.eta_back > 0:
            raise InvalidInputError("eta_back", self.eta_back, "0 if W_back is shared by layers")
        for eta, kind in (("eta_in", "input_kind"), ("eta_back", "back_kind")):
            if getattr(self, kind) == "identity" and getattr(self, eta) > 0:
                allowed = f"0 if {kind} is identity, which is no weight to learn"
                raise InvalidInputError(eta, getattr(self, eta), allowed)

    @property
    def neurons(self) -> int:
        """All neurons, N = L n."""
        return self.n * self.layers

    @property
    def free_sweeps(self) -> int:
        """Sweeps of the free phase; none in the approximate scheme."""
        return self.free if self.scheme == "full" else 0

    def rate(self, name: Weights, fan_in: int, samples: int) -> float:
        """Return the factor of the sum over `samples` of a batch, for J or one of the W.

        Examples
        --------
        >>> round(Parameters(n=1600).rate("j", 1600, 16), 9)  # 0.005 / sqrt(16 * 1600)
        3.125e-05
        """
        per_batch = {"mean": 1 / samples, "root": 1 / math.sqrt(samples), "sum": 1.0}
        strength = {"in": self.lambda_x, "back": self.lambda_y}.get(name, 1.0)
        rate = self._bare_rate(name, fan_in) * per_batch[self.batch_scaling]
        if self.rho_rates:
            rate /= math.sqrt(self._density(name))
        if self.lambda_rates:
            rate *= strength
        if rate > MOST_COUPLING:
            allowed = f"such that the rate of the updates, here {rate:g}, is at most"
            eta = f"eta_{name}"
            raise InvalidInputError(eta, getattr(self, eta), f"{allowed} {MOST_COUPLING:g}")
        return rate

    def decay(self, name: Weights, fan_in: int) -> float:
        """Return the factor by which J or one of the W shrinks after a batch."""
        rate = self._bare_rate(name, fan_in)
        density = self._density(name)
        if self.rho_rates and name != "out":
            rate *= math.sqrt(DECAY_DENSITY / density)
        decay = float(getattr(self, f"decay_{name}"))
        if decay * rate > 1:  # the weights would change sign, and soon be infinite
            allowed = f"at most {1 / rate:g} at this rate, so that weights do not change sign"
            raise InvalidInputError(f"decay_{name}", decay, allowed)
        return 1 - decay * rate

    def check_rates(self, inputs: int, classes: int, fan_in: int | None = None) -> None:
        """Refuse rates and decays out of range, for this width of inputs and labels.

        Parameters
        ----------
        inputs, classes : int
            D and C.
        fan_in : int, optional
            Neurons that a row of J ranges over; n by default.
        """
        rows = self.n if fan_in is None else fan_in
        fans: dict[Weights, int] = {"j": rows, "in": inputs, "out": self.neurons, "back": classes}
        for name, width in fans.items():
            self.rate(name, width, 1)  # a batch of one has the largest
            if name != "back":
                self.decay(name, width)

    def _bare_rate(self, name: str, fan_in: int) -> float:
        eta = float(getattr(self, f"eta_{name}"))
        return eta / math.sqrt(fan_in) if self.fan_in_rates else eta

    def _density(self, name: str) -> float:
        return {"j": self.rho_j, "in": self.rho_in}.get(name, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Parameters:
        """Return the parameters named in `values`; an unknown name is an error."""
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise InvalidInputError(
                    "parameter", str(name), f"one of {', '.join(sorted(known))}"
                )
        return cls(**values)
