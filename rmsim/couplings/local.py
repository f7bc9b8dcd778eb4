r"""The terms of the field that need no matrix: neurons see themselves and their homologues.

.. math:: h^l_i \mathrel{+}= J_D s^l_i + \lambda_L s^{l-1}_i + \lambda_R s^{l+1}_i + b^l_i,
    \qquad s^0 = s^{L+1} = 0
"""

from __future__ import annotations

import torch

from rmsim.couplings.protocol import aligned_external
from rmtheory import checks
from rmtheory.errors import InvalidInputError

#: Largest coupling: its sums stay within float32.
MOST_COUPLING = 1e30


def checked_coupling(name: str, value: object) -> float:
    """Return J_D or a lambda as a float; refuse what would overflow in float32."""
    number = float(checks.exact_real(name, value))
    if abs(number) > MOST_COUPLING:
        raise InvalidInputError(name, value, f"at most {MOST_COUPLING:g} in size")
    return number


def add_chain_terms(
    out: torch.Tensor,
    s: torch.Tensor,
    jd: float,
    lam_left: float,
    lam_right: float,
    layer: int | None,
) -> None:
    """Add J_D, lambda_L and lambda_R to `out`, for one layer or for all."""
    out.add_(s if layer is None else s[:, :, layer], alpha=jd)
    add_neighbours(out, s, lam_left, lam_right, layer)


def add_neighbours(
    out: torch.Tensor, s: torch.Tensor, lam_left: float, lam_right: float, layer: int | None
) -> None:
    """Add lambda_L and lambda_R to `out`, for one layer or for all."""
    if layer is None:
        out[:, :, 1:].add_(s[:, :, :-1], alpha=lam_left)
        out[:, :, :-1].add_(s[:, :, 1:], alpha=lam_right)
        return
    if layer > 0:
        out.add_(s[:, :, layer - 1], alpha=lam_left)
    if layer < s.shape[2] - 1:
        out.add_(s[:, :, layer + 1], alpha=lam_right)


def add_external(
    out: torch.Tensor, s: torch.Tensor, external: torch.Tensor | None, layer: int | None
) -> None:
    """Add the external field to `out`, for one layer or for all."""
    if external is None:
        return
    aligned = aligned_external(external, s.shape).to(dtype=s.dtype, device=s.device)
    if layer is not None:
        aligned = aligned[:, :, layer if aligned.shape[2] > 1 else 0]
    out.add_(aligned)
