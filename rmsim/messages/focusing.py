r"""Focusing belief propagation: y replicas of BP tied to a common centre, one layer.

.. math:: F(y, \gamma) = \log \sum_{\tilde s} \Big( \sum_{s\ \text{fixed}}
    e^{\gamma \tilde s \cdot s} \Big)^y

favours centres with many fixed points close by. Replicas are alike, so that one is followed; the
others act on its spins through the centre (Baldassi et al. 2016) by the field

.. math:: b = A\big((y - 1)\,A(h - b_\text{old})\big), \qquad
    A(x) = \operatorname{atanh}(\tanh\gamma \tanh x)

in the iteration of :mod:`rmsim.messages.step`. With :math:`\zeta_i(\tilde s) = Z_i(\omega_i, V_i,
c_i + \gamma \tilde s)` and averages over the centre with weights :math:`\zeta^y`,

.. math::
    F &= \sum_i \Big[ \log \sum_{\tilde s} \zeta_i^y + y (\tfrac12 V g^2 - c\,m)_i \Big], \qquad
    \tilde q = \frac1N \sum_i \langle \tilde s\, m_i(\tilde s) \rangle, \qquad
    d = \frac{1 - \tilde q}{2}, \\
    S_I &= \partial_y F/N - \gamma \tilde q, \qquad S_E = (F - y\,\partial_y F)/N :

distance from the centre, entropy of the fixed points there, and entropy of the centres. For
:math:`\gamma \to \infty` it is reinforcement that stays at r = 1 - 1/y. The equations are damped
and gamma is raised in small steps; at small y and large gamma they still do not converge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from rmsim.couplings.dense import DenseChain
from rmsim.dynamics.verify import least_margins
from rmsim.messages.outcome import Outcome
from rmsim.messages.products import Products
from rmsim.messages.site import factors_of, log_odds, log_partition
from rmsim.messages.step import Messages, bonds_of, first_messages, random_fields, step
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
    seed: int = 0,
    sample: int = 0,
) -> Focusing:
    """Run focusing BP in one network of one layer.

    Parameters
    ----------
    couplings : DenseChain
        The network, a single sample; float64 is worth its time.
    y : float
        Number of replicas, from 1 to 1000, need not be an integer.
    gamma : float
        Coupling to the centre, above 0 and at most 20.
    max_iterations : int
        The cap at the last gamma.
    variances : str
        ``rank-one`` or ``exact``, see :mod:`rmsim.messages.products`.
    seed, sample : int
        The start is ``random_fields(seed, range(sample, sample + 1))``.
    """
    if couplings.samples != 1 or couplings.layers != 1:
        shape = f"{couplings.samples} samples, {couplings.layers} layers"
        raise InvalidInputError("couplings", shape, "a single sample of one layer")
    replicas, field = checked_y("y", y), checked_gamma("gamma", gamma)
    cap = checks.integer("max_iterations", max_iterations, 1)
    start = random_fields(
        checked_seed(seed),
        range(sample, sample + 1),
        1,
        couplings.n,
        dtype=couplings.dtype,
        device=couplings.device,
    )
    products = Products(couplings, variances)
    messages, iterations, status = _iterate(products, first_messages(start), replicas, field, cap)
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
    products: Products, messages: Messages, y: float, gamma: float, cap: int
) -> tuple[Messages, int, Outcome]:
    """Raise gamma to its value and iterate there; return messages, iterations, outcome."""
    limit = _TOLERANCE[products.couplings.dtype]
    stages = max(0, math.ceil((gamma - _FIRST) / _STEP - 1e-9))
    iterations = 0
    for stage in range(stages + 1):
        last = stage == stages
        here = gamma if last else _FIRST + _STEP * stage
        for _ in range(cap if last else _STAGE):
            pull = pull_of_replicas(messages.h - messages.pull, y, here)
            new = step(products, messages, pull)
            iterations += 1
            if not bool(new.finite().all()):
                return messages, iterations, Outcome.DIVERGED
            change = float((new.m - messages.m).abs().max())
            both = zip(new.tensors(), messages.tensors(), strict=True)
            messages = Messages(*(torch.lerp(a, b, _DAMPING) for a, b in both))
            if change < limit:
                break
    if float(messages.m.square().mean()) < _PARAMAGNET:
        return messages, iterations, Outcome.PARAMAGNET
    return messages, iterations, Outcome.CONVERGED if change < limit else Outcome.UNCONVERGED


def pull_of_replicas(cavity: torch.Tensor, y: float, gamma: float) -> torch.Tensor:
    """Return the field of the y - 1 other replicas on a spin, whose own cavity field is given."""
    return _through((y - 1) * _through(cavity, gamma), gamma)


def _through(x: torch.Tensor, gamma: float) -> torch.Tensor:
    """Return atanh(tanh(gamma) tanh(x)) = log(cosh(gamma + x)/cosh(gamma - x))/2, stably."""
    up, down = x + gamma, x - gamma
    return 0.5 * (torch.logaddexp(up, -up) - torch.logaddexp(down, -down))


def entropies(products: Products, messages: Messages, y: float, gamma: float) -> FocusedPoint:
    """Return d, S_I and S_E at messages that solve the equations, summed in float64."""
    exact = Messages(*(tensor.double() for tensor in messages.tensors()))
    factors = factors_of(exact.omega, exact.v, bonds_of(products.couplings))
    log_zeta, signed = [], []
    for centre in (1.0, -1.0):
        field = exact.c + centre * gamma
        log_zeta.append(log_partition(factors, field))
        signed.append(centre * log_odds(factors, field)[:, 0].tanh())
    log_weights = y * torch.stack(log_zeta)
    weights = log_weights.softmax(0)
    rest = (0.5 * exact.v * exact.g.square() - exact.c * exact.m)[:, 0]
    overlap = float((weights * torch.stack(signed)).sum(0).mean())
    by_y = float(((weights * torch.stack(log_zeta)).sum(0) + rest).mean())
    free = float((log_weights.logsumexp(0) + y * rest).mean())
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
