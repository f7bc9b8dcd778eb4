r"""The Bethe (TAP) free entropy, whose stationary points are the equations of message passing.

.. math:: \Phi(m, c, \omega, g) = \sum_i \log Z_i(\omega_i + b_i, V_i, c_i + f_i)
    + \sum_{il} \Big[ g (J m - \omega) - c\, m - \tfrac12 V g^2 \Big],
    \qquad V_i = \sum_j J_{ij}^2 (1 - m_j^2)

with f the field on the spins in the measure and b the external field of the dynamics. Its
derivatives by c, omega and g give m, g and omega; that by m gives c, because
:math:`\partial_V Z = \frac12 \partial^2_\omega Z`. At a solution Phi is sum log Z - c m + V g^2/2.
It estimates the logarithm of sum e^{f s} over fixed points, and S = Phi - f m their entropy. At
m = 0 it is N log 2 + sum_i log P(J_D/sqrt V_i) for one layer.
"""

from __future__ import annotations

import torch

from rmsim.messages.products import Products
from rmsim.messages.site import Bonds, factors_of, log_partition
from rmsim.messages.step import Messages, bonds_of, uncertainty


def functional(
    fields: tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor],
    jm: torch.Tensor,
    v: torch.Tensor,
    bonds: Bonds,
    field: torch.Tensor | None = None,
    external: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return Phi of every network, (samples,), differentiable.

    Parameters
    ----------
    fields : tuple of Tensor, (samples, layers, n)
        m, c, omega and g.
    jm, v : Tensor
        J m and the variances at m.
    bonds : Bonds
        Couplings within a site.
    field, external : Tensor, optional
        Field on the spins in the measure, and in the dynamics.
    """
    m, c, omega, g = fields
    pulled = c if field is None else c + field
    shifted = omega if external is None else omega + external
    log_z = log_partition(factors_of(shifted, v, bonds), pulled)
    rest = g * (jm - omega) - c * m - 0.5 * v * g * g
    return log_z.sum(-1) + rest.sum((-1, -2))


def free_entropy(
    products: Products,
    messages: Messages,
    field: torch.Tensor | None = None,
    external: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return Phi of every network at `messages`, (samples,), summed in float64."""
    double = torch.float64
    m, c, omega, g = (x.to(double) for x in (messages.m, messages.c, messages.omega, messages.g))
    jm = products.forward(m)
    v = products.spread(uncertainty(messages.h.to(double)))
    more = (None if x is None else x.to(double) for x in (field, external))
    return functional((m, c, omega, g), jm, v, bonds_of(products.couplings), *more)
