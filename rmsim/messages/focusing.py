r"""Focusing belief propagation: y replicas of BP tied to a common centre, in every layer.

.. math:: F(y, \gamma) = \log \sum_{\tilde s} \Big( \sum_{s\ \text{fixed}}
    e^{\gamma \tilde s \cdot s} \Big)^y

favours centres with many fixed points close by (Baldassi et al. 2016). Replicas are alike, so that
one is followed; the others act on its column of spins through the L centre spins of the site. With
:math:`\zeta_i(\tilde s) = Z_i(\omega_i, V_i, c_i + \gamma \tilde s)`, the site of
:mod:`rmsim.messages.site`, and averages over the :math:`2^L` states of the centre with the weights
:math:`\zeta^y`, the iteration of :mod:`rmsim.messages.step` has

.. math:: m = \langle m(\tilde s) \rangle, \qquad g = \langle g(\tilde s) \rangle, \qquad
    g' = \langle g'(\tilde s) + g(\tilde s)^2 \rangle - g^2,

derivatives by the fields of a single replica, and makes stationary

.. math::
    F &= \sum_i \log \sum_{\tilde s} \zeta_i^y + y \sum_{il} (\tfrac12 V g^2 - c\,m)_{il}, \qquad
    \tilde q = \frac1{NL} \sum_{il} \langle \tilde s\, m_{il}(\tilde s) \rangle, \qquad
    d = \frac{1 - \tilde q}{2}, \\
    S_I &= \partial_y F/(NL) - \gamma \tilde q, \qquad S_E = (F - y\,\partial_y F)/(NL) :

distance from the centre, entropy of the fixed points there, and entropy of the centres. For
:math:`\gamma \to \infty` it is reinforcement that stays at r = 1 - 1/y. Without magnetisation the
replicas do not see each other. Magnetised solutions describe one region each, and are many: which
one is found depends on the start and on how gamma is raised, and with it d, S_I and S_E by some
ten per cent. The correlation of the fields of two replicas through a centre that fluctuates is left
out, as in the original. The equations are damped and gamma is raised in small steps; at small y and
large gamma they still do not converge.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache

import torch

from rmsim.couplings.dense import DenseChain
from rmsim.device import question_interval
from rmsim.dynamics.verify import least_margins
from rmsim.messages.outcome import Outcome
from rmsim.messages.products import Products
from rmsim.messages.site import Factors, factors_of, log_odds, log_partition, responses
from rmsim.messages.step import (
    MOST_FIELD,
    Messages,
    bonds_of,
    first_messages,
    random_fields,
    uncertainty,
)
from rmsim.randomness import checked_seed
from rmtheory import checks
from rmtheory.errors import InvalidInputError

#: Part of the old messages that is kept in an iteration.
_DAMPING = 0.3

#: gamma starts here and grows by these steps, with so many iterations each.
_FIRST, _STEP, _STAGE = 0.5, 0.05, 60

#: Largest change of m that counts as convergence.
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-7}

#: Mean of m^2 below which there is no magnetisation.
_PARAMAGNET = 1e-4

#: Layers, the centre of a site having two to this power states.
MOST_LAYERS = 8

#: Variance of the fields below which every spin is certain.
_CERTAIN = 1e-3


@dataclass(frozen=True)
class FocusedPoint:
    """What focusing BP says of the fixed points around a centre, per neuron.

    Parameters
    ----------
    d : float
        Distance of the fixed points from the centre.
    internal, external : float
        S_I, entropy of the fixed points at d, and S_E, entropy of the centres.
    free_entropy : float
        F/N = S_E + y (S_I + gamma (1 - 2d)).
    """

    d: float
    internal: float
    external: float
    free_entropy: float


@dataclass(frozen=True, eq=False)
class Focusing:
    """How focusing BP ended in one network.

    Parameters
    ----------
    status : Outcome
        SOLVED (converged, and the signs are a fixed point), CONVERGED, PARAMAGNET, POLARISED,
        UNCONVERGED or DIVERGED.
    iterations : int
        Iterations, those on the way to gamma included.
    point : FocusedPoint, optional
        None unless SOLVED or CONVERGED: numbers without convergence mean nothing, and at m = 0
        the replicas do not see each other.
    min_margin : float
        Least s h of the signs of m, positive if they are a fixed point.
    state : Tensor of int8, (layers, n)
        The signs of m.
    """

    status: Outcome
    iterations: int
    point: FocusedPoint | None
    min_margin: float
    state: torch.Tensor


def focus(
    couplings: DenseChain,
    y: float,
    gamma: float,
    *,
    max_iterations: int = 1000,
    variances: str = "rank-one",
    check_every: int | None = None,
    seed: int = 0,
    sample: int = 0,
) -> Focusing:
    """Run focusing BP in one network.

    Parameters
    ----------
    couplings : DenseChain
        The network, a single sample of at most 8 layers; float64 is worth its time.
    y : float
        Number of replicas, from 1 to 1000, need not be an integer.
    gamma : float
        Coupling to the centre, above 0 and at most 20.
    max_iterations : int
        The cap at the last gamma.
    variances : str
        ``rank-one`` or ``exact``, see :mod:`rmsim.messages.products`.
    check_every : int, optional
        Iterations between two looks whether it converged; 1 on a CPU, 16 on a GPU. The result
        does not depend on it.
    seed, sample : int
        The start is ``random_fields(seed, range(sample, sample + 1))``.
    """
    if couplings.samples != 1 or couplings.layers > MOST_LAYERS:
        shape = f"{couplings.samples} samples, {couplings.layers} layers"
        allowed = f"a single sample of at most {MOST_LAYERS} layers"
        raise InvalidInputError("couplings", shape, allowed)
    replicas, field = checked_y("y", y), checked_gamma("gamma", gamma)
    cap = checks.integer("max_iterations", max_iterations, 1)
    start = random_fields(
        checked_seed(seed),
        range(sample, sample + 1),
        couplings.layers,
        couplings.n,
        dtype=couplings.dtype,
        device=couplings.device,
    )
    products = Products(couplings, variances)
    every = question_interval(couplings.device, check_every)
    messages, iterations, status = _iterate(
        products, first_messages(start), replicas, field, cap, every
    )
    state = messages.state
    margin = float(least_margins(couplings, state.unsqueeze(1)))
    point = None
    if status == Outcome.CONVERGED and margin <= 0 and float(messages.v.amax()) < _CERTAIN:
        status = Outcome.POLARISED  # all spins certain, constraints violated: no entropy there
    if status == Outcome.CONVERGED:
        point = entropies(products, messages, replicas, field)
        status = Outcome.SOLVED if margin > 0 else status
    return Focusing(status, iterations, point, margin, state[0].to(torch.int8).cpu())


def _iterate(
    products: Products, messages: Messages, y: float, gamma: float, cap: int, every: int
) -> tuple[Messages, int, Outcome]:
    """Raise gamma to its value and iterate there; return messages, iterations, outcome.

    The device is asked whether that is over `every` iterations.
    """
    limit = _TOLERANCE[products.couplings.dtype]
    stages = max(0, math.ceil((gamma - _FIRST) / _STEP - 1e-9))
    count = torch.zeros((), dtype=torch.int64, device=messages.h.device)
    for stage in range(stages + 1):
        last = stage == stages
        here = gamma if last else _FIRST + _STEP * stage
        steps = cap if last else _STAGE
        runs = torch.ones_like(count, dtype=torch.bool)
        fine = runs
        for iteration in range(1, steps + 1):
            new = focused_step(products, messages, y, here)
            count += runs
            fine = torch.where(runs, new.finite().all(), fine)
            still = (new.m - messages.m).abs().max() < limit
            both = zip(new.tensors(), messages.tensors(), strict=True)
            # Once at rest, or lost, the messages are frozen until the next look.
            messages = Messages(
                *(torch.where(runs & fine, torch.lerp(a, b, _DAMPING), b) for a, b in both)
            )
            runs = runs & fine & ~still
            if (iteration % every == 0 or iteration == steps) and not bool(runs):
                break
        if not bool(fine):
            return messages, int(count), Outcome.DIVERGED
    if float(messages.m.square().mean()) < _PARAMAGNET:
        return messages, int(count), Outcome.PARAMAGNET
    return messages, int(count), Outcome.UNCONVERGED if bool(runs) else Outcome.CONVERGED


def focused_step(products: Products, messages: Messages, y: float, gamma: float) -> Messages:
    """Return the messages one iteration later, those of the other replicas being the same."""
    m = messages.m
    v = products.spread(uncertainty(messages.h))
    omega = products.forward(m).addcmul_(v, messages.g, value=-1)
    factors = factors_of(omega, v, bonds_of(products.couplings))
    centres = Centres(factors, messages.c, y, gamma)
    g, dg = centres.responses()
    c = products.backward(g).addcmul_(m, products.spread_back(dg), value=-1)
    h = Centres(factors, c, y, gamma).log_odds().clamp_(-MOST_FIELD, MOST_FIELD)
    return Messages(h, c, g, omega, v, torch.zeros_like(h))


class Centres:
    """The sites for all states of their centre, with the weights zeta^y.

    Parameters
    ----------
    factors : Factors
        The constraints of a replica.
    c : Tensor, (samples, layers, n)
        Fields from the other sites.
    y, gamma : float
        Number of replicas, coupling to the centre.
    """

    def __init__(self, factors: Factors, c: torch.Tensor, y: float, gamma: float) -> None:
        self._factors, self._y = factors, y
        self.spins = _centre_states(c.shape[-2], c.dtype, c.device)
        self._fields = [c + gamma * spins for spins in self.spins]
        self.log_zeta = torch.stack([log_partition(factors, field) for field in self._fields])

    @property
    def weights(self) -> torch.Tensor:
        """Probabilities of the states of the centre, (states, samples, n)."""
        return (self._y * self.log_zeta).softmax(0)

    def responses(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return g and dg of one replica."""
        found = [responses(self._factors, field) for field in self._fields]
        g, dg = (torch.stack(tensors) for tensors in zip(*found, strict=True))
        weight = self.weights.unsqueeze(-2)
        mean = (weight * g).sum(0)
        return mean, (weight * (dg + (g - mean).square())).sum(0)

    def log_odds(self) -> torch.Tensor:
        """Return h of one replica, the centre summed over."""
        odds = 2 * self.odds_by_centre()
        log_weight = (self._y * self.log_zeta).log_softmax(0).unsqueeze(-2)
        logsigmoid = torch.nn.functional.logsigmoid
        up, down = ((log_weight + logsigmoid(s * odds)).logsumexp(0) for s in (1, -1))
        return 0.5 * (up - down)

    def odds_by_centre(self) -> torch.Tensor:
        """Return h of one replica for each state of the centre, (states, samples, layers, n)."""
        return torch.stack([log_odds(self._factors, field) for field in self._fields])


@lru_cache(maxsize=32)
def _centre_states(layers: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Return all states of a centre, (states, 1, layers, 1); kept, since sending stalls a GPU."""
    states = list(itertools.product((1.0, -1.0), repeat=layers))
    with torch.inference_mode(False):
        return torch.tensor(states, dtype=dtype, device=device)[:, None, :, None]


def entropies(products: Products, messages: Messages, y: float, gamma: float) -> FocusedPoint:
    """Return d, S_I and S_E at messages that solve the equations, summed in float64."""
    exact = Messages(*(tensor.double() for tensor in messages.tensors()))
    factors = factors_of(exact.omega, exact.v, bonds_of(products.couplings))
    centres = Centres(factors, exact.c, y, gamma)
    weights, log_zeta, layers = centres.weights, centres.log_zeta, products.couplings.layers
    signed = centres.spins * centres.odds_by_centre().tanh()
    overlap = float((weights.unsqueeze(-2) * signed).sum(0).mean())
    rest = float((0.5 * exact.v * exact.g.square() - exact.c * exact.m).mean())
    by_y = float((weights * log_zeta).sum(0).mean()) / layers + rest
    free = float((y * log_zeta).logsumexp(0).mean()) / layers + y * rest
    return FocusedPoint((1 - overlap) / 2, by_y - gamma * overlap, free - y * by_y, free)


def checked_y(argument: str, value: object) -> float:
    """Return the number of replicas."""
    y = float(checks.exact_real(argument, value))
    if not 1 <= y <= 1000:
        raise InvalidInputError(argument, value, "from 1 to 1000")
    return y


def checked_gamma(argument: str, value: object) -> float:
    """Return the coupling to the centre."""
    gamma = float(checks.exact_real(argument, value))
    if not 0 < gamma <= 20:
        raise InvalidInputError(argument, value, "above 0 and at most 20")
    return gamma
