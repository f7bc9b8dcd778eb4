r"""Focusing belief propagation: y replicas of BP tied to a common centre, in every layer.

.. math:: F(y, \gamma) = \log \sum_{\tilde s} \Big( \sum_{s\ \text{fixed}}
    e^{\gamma \tilde s \cdot s} \Big)^y

favours centres with many fixed points close by (Baldassi et al. 2016). Replicas are alike, so that
one is followed; the others act on its column of spins through the L centre spins of the site. With
:math:`\zeta_i(\tilde s) = Z_i(\omega_i, V_i, c_i + \gamma \tilde s)`, the site of
:mod:`rmsim.search.chain_site`, and averages over the :math:`2^L` states of the centre with the
weights :math:`\zeta^y`, the iteration of :mod:`rmsim.search.amp` has

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
one is reached depends on the start and on how gamma is raised, and with it d, S_I and S_E by some
ten per cent. The correlation of the fields of two replicas through a centre that fluctuates is left
out, as in the original. The equations are damped and gamma is raised in small steps; at small y and
large gamma they still do not converge.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch

from rmsim.couplings.chains import DenseChain
from rmsim.dynamics.active import ActiveSet, Callback, Search
from rmsim.dynamics.status import SearchResult, Status
from rmsim.dynamics.sweeps import check_margins
from rmsim.search.amp import (
    MOST_FIELD,
    Messages,
    Products,
    bonds_of,
    first_messages,
    random_fields,
    uncertainty,
)
from rmsim.search.chain_site import (
    Factors,
    factors_of,
    log_odds,
    log_partition,
    responses,
)
from rmsim.tensors import checked_seed, checked_sync_interval
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError

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


#: Where the equations have no solution.
_NOTHING = FocusedPoint(math.nan, math.nan, math.nan, math.nan)


def focus(
    couplings: DenseChain,
    y: float,
    gamma: float,
    *,
    max_iterations: int = 1000,
    variances: str = "rank-one",
    sync_interval: int | None = None,
    seed: int = 0,
    first_sample: int = 0,
    callback: Callback | None = None,
) -> SearchResult:
    """Run focusing BP in every network.

    Parameters
    ----------
    couplings : DenseChain
        The networks, of at most 8 layers; float64 is worth its time.
    y : float
        Number of replicas, from 1 to 1000, need not be an integer.
    gamma : float
        Coupling to the centre, above 0 and at most 20.
    max_iterations : int
        The cap at the last gamma.
    variances : str
        ``rank-one`` or ``exact``, see :class:`rmsim.search.amp.Products`.
    sync_interval : int, optional
        Iterations between two readings of which networks have converged; 1 on a CPU, 16 on a GPU.
        The result does not depend on it.
    seed, first_sample : int
        Starts are ``random_fields(seed, range(first_sample, ...))``.
    callback : callable, optional
        Called at every reading with the number of iterations at this gamma and of networks still
        active.

    Returns
    -------
    SearchResult
        FIXED_POINT (converged, and the signs of m are a fixed point), CONVERGED, PARAMAGNET,
        POLARISED, CAP or DIVERGED. Iterations on the way to gamma are included. The quantities
        `distance`, `internal_entropy`, `external_entropy` and `free_entropy` are those of
        :class:`FocusedPoint`, NaN unless converged: at m = 0 the replicas do not see each other.
    """
    if couplings.layers > MOST_LAYERS:
        raise InvalidInputError(
            "layers", couplings.layers, f"at most {MOST_LAYERS} for the algorithm fbp"
        )
    replicas, field = checked_y("y", y), checked_gamma("gamma", gamma)
    cap = checks.integer("max_iterations", max_iterations, 1)
    every = checked_sync_interval(couplings.device, sync_interval)
    number, samples = checked_seed(seed), couplings.samples
    start = random_fields(
        number,
        range(first_sample, first_sample + samples),
        couplings.layers,
        couplings.n,
        dtype=couplings.dtype,
        device=couplings.device,
    )
    products, messages = Products(couplings, variances), first_messages(start)
    iterations = torch.zeros(samples, dtype=torch.int64, device=couplings.device)
    lost = torch.zeros(samples, dtype=torch.bool, device=couplings.device)
    stages = max(0, math.ceil((field - _FIRST) / _STEP - 1e-9))
    for stage in range(stages + 1):
        last = stage == stages
        rows = (~lost).nonzero()[:, 0]
        run = _Focusing(
            products, messages, rows, replicas, field if last else _FIRST + _STEP * stage
        )
        run.run(cap if last else _STAGE, every, callback)
        messages = run.active.final
        iterations, lost = iterations + run.iterations, lost | run.lost
    quiet = messages.m.square().mean((-1, -2)) < _PARAMAGNET
    status = torch.full((samples,), int(Status.CAP), dtype=torch.int8, device=couplings.device)
    for mask, name in (
        (run.still, Status.CONVERGED),
        (quiet, Status.PARAMAGNET),
        (lost, Status.DIVERGED),
    ):
        status.masked_fill_(mask, int(name))
    state = messages.state
    margin, unsatisfied = (x[:, 0] for x in check_margins(couplings, state.unsqueeze(1)))
    converged = status == Status.CONVERGED
    # All spins certain and constraints violated: there is no entropy.
    certain = converged & (margin <= 0) & (messages.v.flatten(1).amax(1) < _CERTAIN)
    status.masked_fill_(certain, int(Status.POLARISED))
    points = [
        entropies(products, messages.pick(slice(k, k + 1)), replicas, field) if good else _NOTHING
        for k, good in enumerate((converged & ~certain).tolist())
    ]
    status.masked_fill_(converged & ~certain & (margin > 0), int(Status.FIXED_POINT))
    columns = torch.tensor(
        [(p.d, p.internal, p.external, p.free_entropy) for p in points], dtype=torch.float64
    )
    names = ("distance", "internal_entropy", "external_entropy", "free_entropy")
    status = status.cpu()
    return SearchResult(
        method="fbp",
        settings={"y": replicas, "gamma": field, "max_iterations": cap},
        status=status,
        iterations=iterations.cpu(),
        period=(status == Status.FIXED_POINT).to(torch.int64),
        attempts=torch.ones(samples, dtype=torch.int64),
        min_margin=margin.cpu(),
        unsatisfied=unsatisfied.cpu(),
        state=state.to(torch.int8).cpu(),
        seed=number,
        device=str(couplings.device),
        quantities=dict(zip(names, columns.unbind(1), strict=True)),
    )


class _Focusing(Search[Messages]):
    """Damped iterations of the networks `rows` at one gamma."""

    def __init__(
        self, products: Products, messages: Messages, rows: torch.Tensor, y: float, gamma: float
    ) -> None:
        self.products, self.y, self.gamma = products, y, gamma
        self.active: ActiveSet[Messages] = ActiveSet(messages, rows)
        self.limit = _TOLERANCE[products.couplings.dtype]
        samples, device = len(messages.h), messages.h.device
        self.iterations = torch.zeros(samples, dtype=torch.int64, device=device)
        self.still, self.lost = torch.zeros((2, samples), dtype=torch.bool, device=device).unbind(0)

    def advance(self, iteration: int, sync: bool) -> None:
        """Iterate once; networks at rest, or lost, are frozen."""
        active, running = self.active, ~self.active.ended
        old = active.here
        new = focused_step(self.products, old, self.y, self.gamma, active=active.networks)
        still = (new.m - old.m).flatten(1).abs().amax(1) < self.limit
        both = zip(new.tensors(), old.tensors(), strict=True)
        damped = Messages(*(torch.lerp(a, b, _DAMPING) for a, b in both))
        fine = active.take(damped, active.ended)
        active.write(self.iterations, running, iteration)
        active.write(self.still, running & fine & still, 1)
        active.write(self.lost, running & ~fine, 1)
        active.ended = active.ended | ~fine | still


def focused_step(
    products: Products,
    messages: Messages,
    y: float,
    gamma: float,
    *,
    active: Sequence[int] | None = None,
) -> Messages:
    """Return the messages one iteration later, those of the other replicas being the same."""
    m = messages.m
    v = products.spread(uncertainty(messages.h), active)
    omega = products.forward(m, active).addcmul_(v, messages.g, value=-1)
    factors = factors_of(omega, v, bonds_of(products.couplings))
    centres = Centres(factors, messages.c, y, gamma)
    g, dg = centres.responses()
    c = products.backward(g, active).addcmul_(m, products.spread_back(dg, active), value=-1)
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
        by_centre = [responses(self._factors, field) for field in self._fields]
        g, dg = (torch.stack(tensors) for tensors in zip(*by_centre, strict=True))
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
