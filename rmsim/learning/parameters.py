r"""Every choice of the learning protocol, in groups (paper, Algorithm 1 and SM-C).

The field of neuron i in layer l, with input x and label code y,

.. math:: h^l_i = \sum_{j\ne i} J^l_{ij} s^l_j + J_D s^l_i + \lambda_L s^{l-1}_i
    + \lambda_R s^{l+1}_i + \sum_k W^{in}_{ik} x_k + \sum_c W^{back}_{ic} y_c,

has lambda_x and lambda_y absorbed: :math:`W^{in} \sim \lambda_x\,\mathcal N(0, 1/(\rho_{in} D))`,
:math:`W^{back} \sim \lambda_y\,\mathcal N(0, 1/C)`. Rates of the updates, summed over a batch of B:

.. math:: \text{rate} = \eta \cdot \{1/B,\ 1/\sqrt B,\ 1\} \cdot \{1/\sqrt{\text{fan-in}},\ 1\}
    \cdot \{1/\sqrt\rho,\ 1\} \cdot \{\lambda, 1\}

by `scaling`, `fan_in_rates`, `rho_rates` and `lambda_rates` of the batch. The fan-in is n for J, D
for W_in, C for W_back, and all N = L n neurons for W_out.

Every setting also has a name of its own, without its group: ``eta_in`` is ``w_in.eta``. These are
the names of the paper's tables, of ``--set`` and of files; :data:`SETTINGS` is the one table of
them.
"""

from __future__ import annotations

import difflib
import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from rmsim.network import LEAST_DENSITY, MOST_NEURONS
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError

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

#: Name of a setting -> its group and its name there, in the order of files.
SETTINGS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "n": ("couplings", "n"),
        "layers": ("couplings", "layers"),
        "jd": ("couplings", "jd"),
        "lam_left": ("couplings", "lam_left"),
        "lam_right": ("couplings", "lam_right"),
        "rho_j": ("couplings", "rho"),
        "rho_in": ("w_in", "rho"),
        "lambda_x": ("w_in", "strength"),
        "lambda_y": ("w_back", "strength"),
        "label_true": ("w_back", "label_true"),
        "label_other": ("w_back", "label_other"),
        "warmup": ("phases", "warmup"),
        "clamped": ("phases", "clamped"),
        "free": ("phases", "free"),
        "inference": ("phases", "inference"),
        "stop": ("phases", "stop"),
        "update": ("phases", "update"),
        "p": ("phases", "p"),
        "scheme": ("phases", "scheme"),
        "rule": ("rule", "kind"),
        "gamma": ("rule", "gamma"),
        "symmetry": ("couplings", "symmetry"),
        "test_jd": ("rule", "test_jd"),
        "test_input": ("rule", "test_input"),
        "test_labels": ("rule", "test_labels"),
        "test_right": ("rule", "test_right"),
        "right_in_inference": ("phases", "right_in_inference"),
        "eta_j": ("j", "eta"),
        "eta_in": ("w_in", "eta"),
        "eta_out": ("readout", "eta"),
        "eta_back": ("w_back", "eta"),
        "kappa_j": ("j", "kappa"),
        "kappa_in": ("w_in", "kappa"),
        "kappa_out": ("readout", "kappa"),
        "kappa_back": ("w_back", "kappa"),
        "batch": ("batch", "size"),
        "batch_scaling": ("batch", "scaling"),
        "fan_in_rates": ("batch", "fan_in_rates"),
        "rho_rates": ("batch", "rho_rates"),
        "lambda_rates": ("batch", "lambda_rates"),
        "decay_j": ("j", "decay"),
        "decay_in": ("w_in", "decay"),
        "decay_out": ("readout", "decay"),
        "input_kind": ("w_in", "kind"),
        "back_kind": ("w_back", "kind"),
        "input_to": ("w_in", "to"),
        "label_to": ("w_back", "to"),
        "output_from": ("readout", "layers"),
        "shared_back": ("w_back", "shared"),
        "readout": ("readout", "kind"),
    }
)
_NAMES = {place: name for name, place in SETTINGS.items()}

#: Checks the value of a setting, given its name, and returns it as its type.
_Check = Callable[[str, Any], Any]


def _not_negative(name: str, value: Any) -> float:
    number = checks.coupling(name, value)
    if number < 0:
        raise InvalidInputError(name, number, "at least 0")
    return number


def _positive(name: str, value: Any) -> float:
    number = checks.coupling(name, value)
    if number <= 0:
        raise InvalidInputError(name, number, "above 0")
    return number


def _density(name: str, value: Any) -> float:
    number = checks.coupling(name, value)
    if not LEAST_DENSITY <= number <= 1:
        raise InvalidInputError(name, number, f"a density from {LEAST_DENSITY:g} to 1")
    return number


def _probability(name: str, value: Any) -> float:
    number = checks.coupling(name, value)
    if not 0 < number <= 1:
        raise InvalidInputError(name, number, "a probability above 0 and at most 1")
    return number


def _at_least(least: int) -> _Check:
    return lambda name, value: checks.integer(name, value, least)


# Numbers, each with its check; words and truth values are checked by their own types.
Number = Annotated[float, checks.coupling]
NotNegative = Annotated[float, _not_negative]
Positive = Annotated[float, _positive]
Density = Annotated[float, _density]
Probability = Annotated[float, _probability]
SweepCount = Annotated[int, _at_least(0)]
Count = Annotated[int, _at_least(1)]
Neurons = Annotated[int, lambda name, value: checks.integer(name, value, 2, MOST_NEURONS)]


@dataclass(frozen=True)
class _Group:
    """Settings that are checked one by one; messages name them as :data:`SETTINGS` does."""

    group: ClassVar[str]

    def __post_init__(self) -> None:
        for own, check in _checks_of(self.group).items():
            value = check(_NAMES[self.group, own], getattr(self, own))
            object.__setattr__(self, own, value)


@functools.cache
def _checks_of(group: str) -> Mapping[str, _Check]:
    """Return the check of every setting of a group, from its type."""
    kind = _GROUPS[group]
    hints = get_type_hints(kind, include_extras=True)
    return {one.name: _check_of(hints[one.name]) for one in fields(kind)}


def _check_of(hint: Any) -> _Check:
    if hint is bool:
        return _flag
    if get_origin(hint) is Literal:
        return functools.partial(_word, get_args(hint))
    check: _Check = hint.__metadata__[0]
    return check


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInputError(name, value, "true or false")
    return value


def _word(words: tuple[str, ...], name: str, value: Any) -> str:
    if value not in words:
        raise InvalidInputError(name, value, f"one of {', '.join(words)}")
    return str(value)


@dataclass(frozen=True)
class CouplingParameters(_Group):
    """The network without its inputs: L layers of n neurons.

    Parameters
    ----------
    n, layers : int
        Neurons per layer and layers; N = L n.
    jd, lam_left, lam_right : float
        J_D, and the couplings to the previous and the next layer. Never updated, never decayed.
    rho : float
        Density of J, 0 < rho <= 1; below 1 the weights are compressed rows.
    symmetry : str
        ``asym``; ``sym0``: J starts symmetric; ``sym1``, ``sym2``: and the rule keeps it so.
    """

    group: ClassVar[str] = "couplings"

    n: Neurons
    layers: Count = 1
    jd: Number = 0.5
    lam_left: Number = 0.0
    lam_right: Number = 0.0
    rho: Density = 1.0
    symmetry: Symmetry = "asym"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer("layers", self.layers, 1, MOST_NEURONS // self.n)

    @property
    def shape(self) -> tuple[int, int]:
        """Layers and neurons per layer, as of the states of one sample."""
        return self.layers, self.n

    @property
    def chain(self) -> tuple[float, float, float]:
        """The couplings that never change: J_D, lambda_L, lambda_R."""
        return self.jd, self.lam_left, self.lam_right


@dataclass(frozen=True)
class PhaseParameters(_Group):
    """How states relax when a sample is presented.

    Parameters
    ----------
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
    right_in_inference : bool
        Whether lambda_R acts at inference.
    """

    group: ClassVar[str] = "phases"

    warmup: SweepCount = 2
    clamped: SweepCount = 3
    free: SweepCount = 5
    inference: Count = 5
    stop: Stop = "fixed"
    update: Order = "synchronous"
    p: Probability = 1.0
    scheme: Scheme = "full"
    right_in_inference: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scheme == "full" and self.warmup + self.clamped + self.free == 0:
            raise InvalidInputError("free", 0, "at least 1 if there is no other sweep")
        if self.scheme == "approximate" and self.warmup + self.clamped == 0:
            raise InvalidInputError("clamped", 0, "at least 1 if there is no other sweep")

    @property
    def free_sweeps(self) -> int:
        """Sweeps of the free phase; none in the approximate scheme."""
        return self.free if self.scheme == "full" else 0


@dataclass(frozen=True)
class RuleParameters(_Group):
    """Which neurons learn, by the margin s h of their field.

    Parameters
    ----------
    kind : str
        ``perceptron``: weight 1[s h <= kappa]; ``tanh``: [1 - tanh(gamma (s h - kappa))]/2.
    gamma : float
        Steepness of the smooth rule.
    test_jd, test_input, test_labels, test_right : bool
        Whether J_D, input, labels and lambda_R belong to the field h of the rule.
    """

    group: ClassVar[str] = "rule"

    kind: Rule = "perceptron"
    gamma: Positive = 1.0
    test_jd: bool = True
    test_input: bool = True
    test_labels: bool = False
    test_right: bool = True


@dataclass(frozen=True)
class InternalPlasticity(_Group):
    """How J learns.

    Parameters
    ----------
    eta : float
        Rate; 0 freezes.
    kappa : float
        Required margin.
    decay : float
        w of the weight decay after each batch, W <- W (1 - w eta / sqrt(fan-in) sqrt(0.1/rho)),
        with the two factors as for the rates.
    """

    group: ClassVar[str] = "j"

    eta: NotNegative = 0.005
    kappa: Number = 1.4
    decay: NotNegative = 0.0


@dataclass(frozen=True)
class InputParameters(_Group):
    """W_in: how the network sees the input, and how that is learnt.

    Parameters
    ----------
    strength : float
        lambda_x.
    rho : float
        Density of W_in, 0 < rho <= 1; below 1 the weights are compressed rows.
    kind : str
        ``random``, or ``identity``: neuron i of the layer sees lambda_x x_i (D = n).
    to : str
        Layers that see the input: first, last or all.
    eta, kappa, decay : float
        As of :class:`InternalPlasticity`.
    """

    group: ClassVar[str] = "w_in"

    strength: NotNegative = 5.0
    rho: Density = 1.0
    kind: Kind = "random"
    to: Layers = "first"
    eta: NotNegative = 0.03
    kappa: Number = 1.4
    decay: NotNegative = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _demand_weights(self.group, self.kind, self.eta)


@dataclass(frozen=True)
class LabelParameters(_Group):
    """W_back: how the network sees the label while it is clamped, and how that is learnt.

    Parameters
    ----------
    strength : float
        lambda_y.
    label_true, label_other : float
        Label code of the true class and of the others.
    kind : str
        ``random``, or ``identity``: neuron i of the layer sees lambda_y y_i (C = n).
    to : str
        Layers that see the label: first, last or all.
    shared : bool
        Whether all layers have the same W_back, which is then frozen.
    eta, kappa : float
        As of :class:`InternalPlasticity`.
    """

    group: ClassVar[str] = "w_back"

    strength: NotNegative = 0.9
    label_true: Number = 1.0
    label_other: Number = -1.0
    kind: Kind = "random"
    to: Layers = "last"
    shared: bool = False
    eta: NotNegative = 0.0
    kappa: Number = 1.4

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shared and self.eta > 0:
            raise InvalidInputError("eta_back", self.eta, "0 if W_back is shared by layers")
        _demand_weights(self.group, self.kind, self.eta)


def _demand_weights(group: str, kind: Kind, eta: float) -> None:
    """Refuse a rate of the identity."""
    if kind == "identity" and eta > 0:
        allowed = f"0 if {_NAMES[group, 'kind']} is identity, which is not learnt"
        raise InvalidInputError(_NAMES[group, "eta"], eta, allowed)


@dataclass(frozen=True)
class ReadoutParameters(_Group):
    """W_out, which learns by the perceptron rule and acts on nothing.

    Parameters
    ----------
    kind : str
        ``perceptron``; ``none``: there is no W_out.
    layers : str
        Layers that are read: first, last or all.
    eta, kappa, decay : float
        As of :class:`InternalPlasticity`, of the outputs.
    """

    group: ClassVar[str] = "readout"

    kind: Readout = "perceptron"
    layers: Layers = "last"
    eta: NotNegative = 0.1
    kappa: Number = 3.0
    decay: NotNegative = 0.0


@dataclass(frozen=True)
class BatchParameters(_Group):
    """How updates are summed, and what scales their rates.

    Parameters
    ----------
    size : int
        Samples per batch.
    scaling : str
        Divide the sum over the batch by B (``mean``), sqrt(B) (``root``) or 1 (``sum``).
    fan_in_rates, rho_rates, lambda_rates : bool
        Divide rates by sqrt(fan-in), by sqrt(rho); multiply those of W_in and W_back by lambda,
        as needed if the paper's W without lambda is learnt.
    """

    group: ClassVar[str] = "batch"

    size: Count = 16
    scaling: BatchScaling = "root"
    fan_in_rates: bool = True
    rho_rates: bool = False
    lambda_rates: bool = True


@dataclass(frozen=True)
class Parameters:
    r"""The protocol. Defaults are those of the dense recipe, without its numbers of N and C.

    Parameters
    ----------
    couplings : CouplingParameters
        Neurons, layers, J_D, lambda, density and symmetry of J.
    phases : PhaseParameters
        Sweeps of a presentation and of inference.
    rule : RuleParameters
        Which neurons learn.
    j, w_in, w_back : InternalPlasticity, InputParameters, LabelParameters
        The weights that learn by this rule.
    readout : ReadoutParameters
        W_out.
    batch : BatchParameters
        Sums over samples.

    Examples
    --------
    >>> parameters = Parameters(CouplingParameters(n=100, jd=0.5), w_in=InputParameters(eta=0.1))
    >>> parameters.j.kappa, parameters.w_in.eta
    (1.4, 0.1)
    >>> parameters == Parameters.of(n=100, jd=0.5, eta_in=0.1)
    True
    """

    couplings: CouplingParameters
    phases: PhaseParameters = field(default_factory=PhaseParameters)
    rule: RuleParameters = field(default_factory=RuleParameters)
    j: InternalPlasticity = field(default_factory=InternalPlasticity)
    w_in: InputParameters = field(default_factory=InputParameters)
    w_back: LabelParameters = field(default_factory=LabelParameters)
    readout: ReadoutParameters = field(default_factory=ReadoutParameters)
    batch: BatchParameters = field(default_factory=BatchParameters)

    @classmethod
    def of(cls, **settings: Any) -> Parameters:
        """Return the parameters with these settings, by their names without groups."""
        return cls.from_dict(settings)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Parameters:
        """Return the parameters named in `values`; an unknown name is an error."""
        grouped: dict[str, dict[str, Any]] = {name: {} for name in _GROUPS}
        for name, value in dict(values).items():
            if name not in SETTINGS:
                raise InvalidInputError(
                    "parameter", str(name), f"a parameter that exists{_nearest(str(name))}"
                )
            group, own = SETTINGS[name]
            grouped[group][own] = value
        return cls(**{name: kind(**grouped[name]) for name, kind in _GROUPS.items()})

    def to_dict(self) -> dict[str, Any]:
        """Return all settings by their names without groups, as JSON values."""
        return {name: getattr(getattr(self, group), own) for name, (group, own) in SETTINGS.items()}

    def with_settings(self, **settings: Any) -> Parameters:
        """Return the same parameters but for these settings, by their names without groups.

        Examples
        --------
        >>> Parameters.of(n=100).with_settings(jd=0.3).couplings.jd
        0.3
        """
        return self.from_dict({**self.to_dict(), **settings})

    @property
    def neurons(self) -> int:
        """All neurons, N = L n."""
        return self.couplings.n * self.couplings.layers

    def rate(self, name: Weights, fan_in: int, samples: int) -> float:
        """Return the factor of the sum over `samples` of a batch, for J or one of the W.

        Examples
        --------
        >>> round(Parameters.of(n=1600).rate("j", 1600, 16), 9)  # 0.005 / sqrt(16 * 1600)
        3.125e-05
        """
        per_batch = {"mean": 1 / samples, "root": 1 / math.sqrt(samples), "sum": 1.0}
        strength = {"in": self.w_in.strength, "back": self.w_back.strength}.get(name, 1.0)
        rate = self._bare_rate(name, fan_in) * per_batch[self.batch.scaling]
        if self.batch.rho_rates:
            rate /= math.sqrt(self._density(name))
        if self.batch.lambda_rates:
            rate *= strength
        if rate > checks.MOST_COUPLING:
            allowed = f"such that the rate of the updates, here {rate:g}, is at most"
            raise InvalidInputError(
                f"eta_{name}", self._eta(name), f"{allowed} {checks.MOST_COUPLING:g}"
            )
        return rate

    def decay(self, name: Literal["j", "in", "out"], fan_in: int) -> float:
        """Return the factor by which J, W_in or W_out shrinks after a batch."""
        rate = self._bare_rate(name, fan_in)
        density = self._density(name)
        if self.batch.rho_rates and name != "out":
            rate *= math.sqrt(DECAY_DENSITY / density)
        decays = {"j": self.j.decay, "in": self.w_in.decay, "out": self.readout.decay}
        decay = decays[name]
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
        rows = self.couplings.n if fan_in is None else fan_in
        fans: dict[Weights, int] = {"j": rows, "in": inputs, "out": self.neurons, "back": classes}
        for name, width in fans.items():
            self.rate(name, width, 1)  # a batch of one has the largest
            if name != "back":
                self.decay(name, width)

    def _eta(self, name: Weights) -> float:
        etas: dict[Weights, float] = {
            "j": self.j.eta,
            "in": self.w_in.eta,
            "out": self.readout.eta,
            "back": self.w_back.eta,
        }
        return etas[name]

    def _bare_rate(self, name: Weights, fan_in: int) -> float:
        eta = self._eta(name)
        return eta / math.sqrt(fan_in) if self.batch.fan_in_rates else eta

    def _density(self, name: Weights) -> float:
        return {"j": self.couplings.rho, "in": self.w_in.rho}.get(name, 1.0)


_GROUPS: Mapping[str, Any] = {
    kind.group: kind
    for kind in (
        *(CouplingParameters, PhaseParameters, RuleParameters, InternalPlasticity),
        *(InputParameters, LabelParameters, ReadoutParameters, BatchParameters),
    )
}

_TRUTH = {"true": True, "yes": True, "false": False, "no": False}


def parse_settings(typed: Iterable[str]) -> dict[str, Any]:
    """Return the settings named in ``key=value`` texts, as on the command line, each with its type.

    The width n is not among them: it has an option of its own, since tables depend on it.

    Raises
    ------
    InvalidInputError
        If a key is unknown, given twice, or its value has the wrong type.

    Examples
    --------
    >>> parse_settings(["eta_j=.01", "batch=32", "rho_rates=true", "symmetry=sym1"])
    {'eta_j': 0.01, 'batch': 32, 'rho_rates': True, 'symmetry': 'sym1'}
    """
    parsed: dict[str, Any] = {}
    for text in typed:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise InvalidInputError("set", text, "key=value, such as eta_j=.01")
        if key == "n":
            raise InvalidInputError("set", text, "another parameter: the width is given by --n")
        if key not in SETTINGS:
            raise InvalidInputError("set", key, f"a parameter that exists{_nearest(key)}")
        if key in parsed:
            raise InvalidInputError("set", text, f"given once for {key}")
        parsed[key] = _typed(key, value)
    return parsed


def _nearest(key: str) -> str:
    """Say which parameters `key` may have been meant for, and where they all are.

    Examples
    --------
    >>> _nearest("warm-up")
    ", such as warmup ('rmsim presets NAME' lists all)"
    >>> _nearest("lam")
    ", such as lam_left or lam_right or lambda_x ('rmsim presets NAME' lists all)"
    """
    known = [name for name in SETTINGS if name != "n"]
    # lam is meant for lam_left, not for clamped, which happens to share more letters with it.
    near = [name for name in known if name.startswith(key.lower())][:3] if key else []
    near = near or difflib.get_close_matches(key.lower(), known, n=3, cutoff=0.7)
    such = f", such as {' or '.join(near)}" if near else ""
    return f"{such} ('rmsim presets NAME' lists all)"


def _typed(key: str, value: str) -> Any:
    group, own = SETTINGS[key]
    kind = get_type_hints(_GROUPS[group])[own]
    if kind is bool:
        if value.lower() not in _TRUTH:
            raise InvalidInputError(key, value, "true or false")
        return _TRUTH[value.lower()]
    if kind is int:
        return checks.integer(key, value, 0)
    if kind is float:
        return float(checks.exact_real(key, value))
    return value  # a word, which its group checks
