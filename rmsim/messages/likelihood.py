r"""Likelihood optimisation: the product measure under which the constraints hold most likely.

Spins are independent with magnetisations m = tanh h, so that the Gaussian fields of a site have
the mean omega = J m and the variance V = (J o J)(1 - m^2), without Onsager terms:

.. math:: \mathcal L(m) = \sum_i \log \sum_s \prod_l \frac{1 + s_l m_{il}}{2} P(a_{il}(s))
    = \sum_i \log Z_i(\omega_i, V_i, h_i) - \sum_{il} \log 2 \cosh h_{il}

with Z the site of :mod:`rmsim.messages.site`. Its gradient, with x = e^{-2u} the odds that the
constraints themselves give to the spin being down (x = P_-/P_+ for one layer), is

.. math:: \partial_m \mathcal L = \frac{1 - x}{(1 + m) + (1 - m)\,x}
    + J^T g - m \circ (J \circ J)^T \frac{\partial^2_\omega Z}{Z} .

The fields climb along it, h += eta dL/dm, and the search stops when the signs of m are a fixed
point, every margin positive in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from rmsim.couplings.dense import DenseChain
from rmsim.device import question_interval
from rmsim.messages.outcome import Outcome
from rmsim.messages.products import Products
from rmsim.messages.search import Search
from rmsim.messages.signs import (
    PARAMAGNET,
    are_fixed_point,
    magnetisation,
    search_result,
    seem_fixed_point,
)
from rmsim.messages.site import LEAST_VARIANCE, Bonds, factors_of, log_partition, site
from rmsim.messages.step import MOST_FIELD, bonds_of, random_fields, uncertainty
from rmsim.randomness import checked_seed
from rmtheory import checks
from rmtheory.errors import InvalidInputError

#: Largest change of m in an iteration that counts as none.
_AT_REST = 1e-7

#: Deviation of the first fields. m = 0 is unstable: the climb finds the best direction itself, and
#: solves 27 networks of 30 at N = 200, J_D = 0.5; from fields of 0.5 it is 15.
START = 0.01

#: The usual cap; most that is found at all is found in some hundreds.
MAX_ITERATIONS = 1000


@dataclass(frozen=True)
class Rate:
    """Size of the steps: eta_t = eta/(1 + decay t).

    Parameters
    ----------
    eta : float
        First step, above 0 and at most 10; 0.1 to 0.3 is usual.
    decay : float
        How fast it shrinks, at least 0: not at all by default.

    Examples
    --------
    >>> Rate(0.2, 0.01).at(100)
    0.1
    """

    eta: float = 0.3
    decay: float = 0.0

    def __post_init__(self) -> None:
        eta, decay = (float(checks.exact_real(x, getattr(self, x))) for x in ("eta", "decay"))
        if not 0 < eta <= 10:
            raise InvalidInputError("eta", self.eta, "above 0 and at most 10")
        if not 0 <= decay <= 1:
            raise InvalidInputError("decay", self.decay, "from 0 to 1")
        object.__setattr__(self, "eta", eta)
        object.__setattr__(self, "decay", decay)

    def at(self, iteration: int) -> float:
        """Return eta in an iteration, counted from 0."""
        return self.eta / (1 + self.decay * iteration)


def log_likelihood(
    h: torch.Tensor, jm: torch.Tensor, v: torch.Tensor, bonds: Bonds
) -> torch.Tensor:
    """Return L of every network, (samples,), differentiable.

    Parameters
    ----------
    h : Tensor, (samples, layers, n)
        Fields, m = tanh h.
    jm, v : Tensor
        J m and the variances at m.
    bonds : Bonds
        Couplings within a site.
    """
    log_z = log_partition(factors_of(jm, v, bonds), h)
    size = h.abs()
    return log_z.sum(-1) - (size + torch.log1p((-2 * size).exp())).sum((-1, -2))


def gradient(
    products: Products,
    h: torch.Tensor,
    jm: torch.Tensor,
    v: torch.Tensor,
    active: list[int] | None = None,
) -> torch.Tensor:
    """Return dL/dm at m = tanh h, given J m and the variances there; arguments as above."""
    found = site(h, jm, v, bonds_of(products.couplings))
    curved = found.dg + found.g.square()  # the second derivative of Z, over Z
    own = _pull(h, found.h - h)
    through_mean = products.backward(found.g, active)
    return own + through_mean - h.tanh() * products.spread_back(curved, active)


def _pull(h: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Return (1 - x)/((1 + m) + (1 - m) x), x = e^{-2u}, without cancellation or overflow."""
    sign = torch.where(u >= 0, 1.0, -1.0).to(u.dtype)
    x = (-2 * u.abs()).exp()
    likely, unlikely = torch.sigmoid(2 * sign * h), torch.sigmoid(-2 * sign * h)
    # The floor keeps the quotient of an impossible spin within float32.
    return sign * 0.5 * (1 - x) / (likely + unlikely * x).clamp(min=1e-30)


def optimise(
    couplings: DenseChain,
    rate: Rate | None = None,
    *,
    restarts: int = 0,
    max_iterations: int = MAX_ITERATIONS,
    variances: str = "rank-one",
    check_every: int | None = None,
    seed: int = 0,
    first_sample: int = 0,
) -> Search:
    """Search a fixed point in every network.

    Parameters
    ----------
    couplings : DenseChain
        The networks.
    rate : Rate, optional
        Size of the steps; ``Rate()`` by default.
    restarts : int
        New random starts for networks in which the search has failed.
    max_iterations : int
        The cap of an attempt.
    variances : str
        ``rank-one`` or ``exact``, see :mod:`rmsim.messages.products`.
    check_every : int, optional
        Iterations between two looks at which networks have ended; 1 on a CPU, 16 on a GPU. The
        result does not depend on it: what seems to be a fixed point waits, frozen.
    seed, first_sample : int
        Starts are ``random_fields(seed, range(first_sample, ...), scale=START)``.
    """
    plan = Rate() if rate is None else rate
    cap = checks.integer("max_iterations", max_iterations, 1)
    more = checks.integer("restarts", restarts, 0)
    every = question_interval(couplings.device, check_every)
    run = _Run(Products(couplings, variances), plan, every)
    samples = range(first_sample, first_sample + couplings.samples)
    for attempt in range(more + 1):
        rows = (run.status != Outcome.SOLVED).nonzero()[:, 0]
        if len(rows):
            start = random_fields(
                checked_seed(seed),
                samples,
                couplings.layers,
                couplings.n,
                scale=START,
                attempt=attempt,
                dtype=couplings.dtype,
                device=couplings.device,
            )
            run.attempt(rows, start[rows], cap)
    return search_result(couplings, run.status, run.iterations, run.attempts, run.h, seed)


class _Run:
    """Searches under way, and how they ended."""

    def __init__(self, products: Products, rate: Rate, every: int) -> None:
        self.products, self.couplings, self.rate = products, products.couplings, rate
        self.every = every
        samples, device = self.couplings.samples, self.couplings.device
        unknown = int(Outcome.UNCONVERGED)
        self.status = torch.full((samples,), unknown, dtype=torch.int8, device=device)
        self.iterations, self.attempts = torch.zeros(
            (2, samples), dtype=torch.int64, device=device
        ).unbind(0)
        shape = (samples, self.couplings.layers, self.couplings.n)
        self.h = torch.zeros(shape, dtype=self.couplings.dtype, device=device)

    def attempt(self, rows: torch.Tensor, h: torch.Tensor, cap: int) -> None:
        """Climb in the networks `rows` from the fields h."""
        self.attempts[rows] += 1
        names = rows.tolist()
        reason = torch.full_like(self.status[rows], int(Outcome.UNCONVERGED))
        ended = waits = torch.zeros_like(reason, dtype=torch.bool)
        for iteration in range(cap + 1):
            jm = self.products.forward(h.tanh(), names)
            if iteration == cap or iteration % self.every == 0:
                solved = are_fixed_point(self.couplings, h, jm, names)
                closed = solved | ended | (iteration == cap)
                if bool(closed.any()):
                    self._close(rows[closed], h[closed], solved[closed], reason[closed])
                    rows, h, jm, reason = (x[~closed] for x in (rows, h, jm, reason))
                    names, ended = rows.tolist(), ended[~closed]
                if not names:
                    return
                waits = torch.zeros_like(ended)
            else:
                waits = waits | (seem_fixed_point(self.couplings, h, jm, names) & ~ended)
            v = self.products.spread(uncertainty(h), names)
            moved = h + self.rate.at(iteration) * gradient(self.products, h, jm, v, names)
            fine = moved.flatten(1).sum(1).isfinite()
            new = moved.clamp(-MOST_FIELD, MOST_FIELD)
            still = (new.tanh() - h.tanh()).flatten(1).abs().amax(1) < _AT_REST
            certain = v.flatten(1).amax(1) < LEAST_VARIANCE
            for mask, outcome in (
                (still, Outcome.CONVERGED),
                (certain, Outcome.POLARISED),
                (~fine, Outcome.DIVERGED),
            ):
                reason = reason.masked_fill(mask & ~(ended | waits), int(outcome))
            ended = ended | ((still | certain | ~fine) & ~waits)
            frozen = ended | waits  # until the next look
            h = torch.where(frozen[:, None, None], h, new)
            self.iterations[rows] += ~frozen

    def _close(
        self, rows: torch.Tensor, h: torch.Tensor, solved: torch.Tensor, reason: torch.Tensor
    ) -> None:
        """Write down how the networks `rows` ended: solved, or for which reason not."""
        quiet = (magnetisation(h) < PARAMAGNET) & (reason != int(Outcome.DIVERGED))
        reason = reason.masked_fill(quiet, int(Outcome.PARAMAGNET))
        self.status[rows] = reason.masked_fill(solved, int(Outcome.SOLVED))
        self.h[rows] = h
