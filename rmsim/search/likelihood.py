r"""Likelihood optimisation: the product measure under which the constraints hold most likely.

Spins are independent with magnetisations m = tanh h, so that the Gaussian fields of a site have
the mean omega = J m and the variance V = (J o J)(1 - m^2), without Onsager terms:

.. math:: \mathcal L(m) = \sum_i \log \sum_s \prod_l \frac{1 + s_l m_{il}}{2} P(a_{il}(s))
    = \sum_i \log Z_i(\omega_i, V_i, h_i) - \sum_{il} \log 2 \cosh h_{il}

with Z the site of :mod:`rmsim.search.chain_site`. Its gradient, with x = e^{-2u} the odds that the
constraints themselves give to the spin being down (x = P_-/P_+ for one layer), is

.. math:: \partial_m \mathcal L = \frac{1 - x}{(1 + m) + (1 - m)\,x}
    + J^T g - m \circ (J \circ J)^T \frac{\partial^2_\omega Z}{Z} .

The fields climb along it, h += eta dL/dm, and the search stops when the signs of m are a fixed
point, every margin positive in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, Unpack

import torch

from rmsim.couplings.chains import DenseChain
from rmsim.dynamics.active import ActiveSet, PerNetwork
from rmsim.dynamics.status import SearchResult, Status
from rmsim.search.amp import (
    MOST_FIELD,
    Products,
    bonds_of,
    uncertainty,
)
from rmsim.search.chain_site import (
    LEAST_VARIANCE,
    Bonds,
    factors_of,
    log_partition,
    sum_site,
)
from rmsim.search.sign_search import SearchOptions, SignSearch
from rmsim.tensors import sign
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError

#: Largest change of m in an iteration that counts as none.
_AT_REST = 1e-7

#: Deviation of the first fields. m = 0 is unstable: the climb finds the best direction itself, and
#: solves 27 networks of 30 at N = 200, J_D = 0.5; from fields of 0.5 it is 15.
START = 0.01

#: An iteration, or those of several networks.
Number = TypeVar("Number", float, torch.Tensor)

#: The usual cap; most searches that succeed do so within some hundreds of iterations.
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

    def at(self, iteration: Number) -> Number:
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
    site = sum_site(h, jm, v, bonds_of(products.couplings))
    curved = site.dg + site.g.square()  # the second derivative of Z, over Z
    own = _pull(h, site.h - h)
    through_mean = products.backward(site.g, active)
    return own + through_mean - h.tanh() * products.spread_back(curved, active)


def _pull(h: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Return (1 - x)/((1 + m) + (1 - m) x), x = e^{-2u}, without cancellation or overflow."""
    side = sign(u)
    x = (-2 * u.abs()).exp()
    likely, unlikely = torch.sigmoid(2 * side * h), torch.sigmoid(-2 * side * h)
    # The floor keeps the quotient of an impossible spin within float32.
    return side * 0.5 * (1 - x) / (likely + unlikely * x).clamp(min=1e-30)


def optimise(
    couplings: DenseChain,
    rate: Rate | None = None,
    **options: Unpack[SearchOptions],
) -> SearchResult:
    """Search a fixed point in every network.

    Parameters
    ----------
    couplings : DenseChain
        The networks.
    rate : Rate, optional
        Size of the steps; ``Rate()`` by default.
    **options
        `restarts`, `max_iterations` (1000 by default), `variances`, `sync_interval`, `seed`,
        `first_sample`, `callback`: see :class:`rmsim.search.SearchOptions`. Starts have the
        ``scale=START``.
    """
    plan = Rate() if rate is None else rate
    products = Products(couplings, options.get("variances", "rank-one"))
    settings = {"eta": plan.eta, "decay": plan.decay}
    return _Climb(products, plan).search(options, MAX_ITERATIONS, settings)


@dataclass(frozen=True, eq=False)
class _Measure(PerNetwork):
    """The product measure: fields h, and J m at m = tanh h; both (samples, layers, n)."""

    h: torch.Tensor
    jm: torch.Tensor


class _Climb(SignSearch[_Measure]):
    """Likelihood optimisation in all networks."""

    method = "likelihood"
    collapses = (Status.CAP, Status.CONVERGED, Status.POLARISED)
    scale = START

    def __init__(self, products: Products, rate: Rate) -> None:
        super().__init__(products)
        self.rate = rate

    def begin(self, start: torch.Tensor, rows: torch.Tensor) -> None:
        """Start from the fields, unless their signs are a fixed point already."""
        self.active = ActiveSet(_Measure(start, torch.zeros_like(start)), rows)
        self._measure(start[rows])
        here = self.active.here
        self.test_signs(here.h, here.jm, ~self.active.ended, sync=True)
        stay = self.active.drop()
        if stay is not None:
            self.keep(stay)

    def fields(self, state: _Measure) -> torch.Tensor:
        """Return h."""
        return state.h

    def _measure(self, h: torch.Tensor) -> None:
        """Go to the fields h."""
        jm = self.products.forward(h.tanh(), self.active.networks)
        self.active.here = _Measure(h, jm)

    def advance(self, iteration: int, sync: bool) -> None:
        """Step along the gradient; what is at rest, certain or lost stays where it is."""
        h, jm = self.active.here.tensors()
        networks = self.active.networks
        v = self.products.spread(uncertainty(h), networks)
        eta = self.scheduled(self.rate.at, iteration)
        moved = h + eta * gradient(self.products, h, jm, v, networks)
        fine = moved.flatten(1).sum(1).isfinite()
        new = moved.clamp(-MOST_FIELD, MOST_FIELD)
        still = (new.tanh() - h.tanh()).flatten(1).abs().amax(1) < _AT_REST
        self.end(~fine, Status.DIVERGED)
        self.end(v.flatten(1).amax(1) < LEAST_VARIANCE, Status.POLARISED)
        self.end(still, Status.CONVERGED)
        frozen = self.frozen()
        self.counted(~frozen)
        self._measure(torch.where(frozen[:, None, None], h, new))
        here = self.active.here
        self.test_signs(here.h, here.jm, ~frozen, sync)
