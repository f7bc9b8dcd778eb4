r"""One iteration of approximate message passing (AMP), two products a layer.

Dense BP sends one message along every edge; for independent couplings they differ little, and each
site (see :mod:`rmsim.messages.site`) needs only their sums,

.. math::
    V_i &= \sum_j J_{ij}^2 (1 - m_j^2), & \omega &= J m - V g_\text{old}, \\
    g &= \partial_\omega \log Z(\omega, V, c_\text{old} + b_\text{old}), &
    c_j &= (J^T g)_j - m_j \sum_i J_{ij}^2\, \partial^2_{\omega_i} \log Z_i, \\
    \tanh h &= m = \partial_c \log Z(\omega, V, c + b). &&

The terms - V g and - m sum J^2 g' (Onsager) take back what a site has itself sent out. The
pull b on the spins is an external field in the measure, reinforcement, or the other replicas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from rmsim.couplings.dense import DenseChain
from rmsim.messages.products import Products
from rmsim.messages.site import Bonds, factors_of, log_odds, responses
from rmsim.randomness import generator

#: Fields are clipped here, where tanh is 1 in float64 and 1 - tanh^2 is not yet 0 in float32.
MOST_FIELD = 40.0


@dataclass(frozen=True, eq=False)
class Messages:
    """The state of message passing; all tensors have the shape (samples, layers, n).

    Parameters
    ----------
    h : Tensor
        Half the log odds of the spins, m = tanh h.
    c : Tensor
        Field on the spins from the other sites.
    g : Tensor
        d log Z/d omega.
    omega, v : Tensor
        Means and variances of the Gaussian fields.
    pull : Tensor
        Field on the spins from outside, as it was when `h` was computed.
    """

    h: torch.Tensor
    c: torch.Tensor
    g: torch.Tensor
    omega: torch.Tensor
    v: torch.Tensor
    pull: torch.Tensor

    @property
    def m(self) -> torch.Tensor:
        """Magnetisations."""
        return self.h.tanh()

    @property
    def state(self) -> torch.Tensor:
        """Signs of the magnetisations; +1 for 0."""
        return torch.where(self.h >= 0, 1.0, -1.0).to(self.h.dtype)

    def scaled(self, factor: torch.Tensor) -> Messages:
        """Return the messages times a factor of each network; the variances stay."""
        scale = factor[:, None, None]
        h, c, g, omega, v, pull = self.tensors()
        return Messages(h * scale, c * scale, g * scale, omega * scale, v, pull * scale)

    def pick(self, rows: torch.Tensor) -> Messages:
        """Return the messages of some networks."""
        return Messages(*(tensor[rows] for tensor in self.tensors()))

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """All tensors, in the order of the fields."""
        return self.h, self.c, self.g, self.omega, self.v, self.pull

    def finite(self) -> torch.Tensor:
        """Tell for every network whether all its numbers are finite."""
        flat = torch.stack([tensor.flatten(1).sum(1) for tensor in self.tensors()])
        return flat.isfinite().all(0)


def first_messages(h: torch.Tensor) -> Messages:
    """Return messages that say h and nothing else."""
    zero = torch.zeros_like(h)
    return Messages(h, h, zero, zero, torch.ones_like(h), zero)


def random_fields(
    seed: int,
    samples: range,
    layers: int,
    n: int,
    *,
    scale: float = 0.5,
    attempt: int = 0,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> torch.Tensor:
    """Return independent normal fields h of deviation `scale`; those of sample k from k only.

    Parameters
    ----------
    seed : int
        Sample k draws from ``generator(seed, k, 1)``, its restart r from
        ``generator(seed, k, 1, r)``.
    samples : range
        Disorder samples.
    layers, n : int
        Size of the networks.
    scale : float
        Deviation; below some tenths reinforcement may not get off the ground.
    attempt : int
        Number of the restart, 0 for the first run.
    dtype, device
        Precision and place.
    """
    fields = torch.empty((len(samples), layers, n), dtype=dtype, device=device)
    for index, sample in enumerate(samples):
        address = (sample, 1, attempt) if attempt else (sample, 1)
        stream = generator(seed, *address, device=device)
        drawn = torch.randn((layers, n), generator=stream, device=device)
        fields[index] = scale * drawn
    return fields


def bonds_of(couplings: DenseChain) -> Bonds:
    """Return J_D and the lambdas of a chain."""
    return Bonds(couplings.jd, couplings.lam_left, couplings.lam_right)


def step(
    products: Products,
    messages: Messages,
    pull: torch.Tensor,
    external: torch.Tensor | None = None,
    *,
    active: Sequence[int] | None = None,
) -> Messages:
    """Return the messages one iteration later.

    Parameters
    ----------
    products : Products
        The couplings.
    messages : Messages
        Of the `active` networks.
    pull : Tensor, (samples, layers, n) or broadcastable
        Field on the spins in the measure, e^{pull s}.
    external : Tensor, optional
        External field of the dynamics: it moves the constraints, s (h + external) > 0.
    active : sequence of int, optional
        The networks of `messages`, increasing; all by default.
    """
    m = messages.m
    v = products.spread(uncertainty(messages.h), active)
    omega = products.forward(m, active).addcmul_(v, messages.g, value=-1)
    shifted = omega if external is None else omega + external
    factors = factors_of(shifted, v, bonds_of(products.couplings))
    g, dg = responses(factors, messages.c + messages.pull)
    c = products.backward(g, active).addcmul_(m, products.spread_back(dg, active), value=-1)
    h = log_odds(factors, c + pull).clamp_(-MOST_FIELD, MOST_FIELD)
    return Messages(h, c, g, omega, v, pull.expand(h.shape))


def uncertainty(h: torch.Tensor) -> torch.Tensor:
    """Return 1 - tanh(h)^2, which does not round to 0 for large fields."""
    decay = (-2 * h.abs()).exp()
    return 4 * decay / (1 + decay).square()
