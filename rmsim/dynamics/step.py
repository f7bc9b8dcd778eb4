r"""One sweep of the dynamics, :math:`s_i \leftarrow \mathrm{sgn}(h_i)`.

Tie rule, here and nowhere else: sgn(0) = +1. Neurons are updated all at once (synchronous), or
layer after layer, each seeing the new state of those before it (sequential). Under a mask, a
neuron whose mask is False keeps its state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import torch

from rmsim.couplings.protocol import Couplings
from rmsim.dynamics import loops
from rmtheory.errors import InvalidInputError

Update = Literal["synchronous", "sequential"]


def checked_update(update: str) -> Update:
    """Return the order of updates called `update`."""
    for known in get_args(Update):
        if update == known:
            return known  # type: ignore[no-any-return]
    raise InvalidInputError("update", update, f"one of {', '.join(get_args(Update))}")


def sign(h: torch.Tensor) -> torch.Tensor:
    """Return +1 where h >= 0 and -1 elsewhere.

    Examples
    --------
    >>> sign(torch.tensor([0.5, 0.0, -0.0, -2.0])).tolist()
    [1.0, 1.0, 1.0, -1.0]
    """
    return (h >= 0).to(h.dtype).mul_(2).sub_(1)


def synchronous(
    couplings: Couplings, s: torch.Tensor, external: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the state after all neurons were updated at once."""
    return sign(couplings.field(s, external))


def sequential(
    couplings: Couplings, s: torch.Tensor, external: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the state after layer 1, then 2, ... were updated."""
    s = s.clone()
    for layer in range(couplings.layers):
        s[:, :, layer] = sign(couplings.field(s, external, layer=layer))
    return s


def masked(
    couplings: Couplings,
    s: torch.Tensor,
    mask: torch.Tensor,
    external: torch.Tensor | None = None,
    update: Update = "synchronous",
) -> torch.Tensor:
    """Return the state after the neurons where `mask` is True were updated."""
    if update == "synchronous":
        return torch.where(mask, synchronous(couplings, s, external), s)
    s = s.clone()
    for layer in range(couplings.layers):
        new = sign(couplings.field(s, external, layer=layer))
        s[:, :, layer] = torch.where(mask[:, :, layer], new, s[:, :, layer])
    return s


def sweep_(
    couplings: Couplings,
    s: torch.Tensor,
    up: torch.Tensor,
    h: torch.Tensor,
    update: Update,
    *,
    mask: torch.Tensor | None = None,
    external: torch.Tensor | None = None,
    active: Sequence[int] | None = None,
) -> torch.Tensor:
    """Do the same in place, and tell which states were not fixed points.

    Parameters
    ----------
    couplings : Couplings
        The networks.
    s : Tensor, (samples, starts, layers, n)
        States, +-1; replaced.
    up : Tensor of bool
        ``s > 0``; replaced.
    h : Tensor
        Work space for the field: like `s`, or like one layer of it if the update is sequential.
    update : str
        Order of the updates.
    mask, external, active : optional
        As for the step functions and for the field.

    Returns
    -------
    Tensor of bool, (samples, starts)
        Whether some neuron, masked or not, disagreed with its field. A sweep without one changed
        nothing, and began at a fixed point.
    """
    unstable = torch.zeros(s.shape[:2], dtype=torch.bool, device=s.device)
    follow = loops.follow if s.device.type == "cpu" else follow_torch
    if update == "synchronous":
        couplings.field(s, external, active=active, out=h)
        follow(h, s, up, mask, (0, couplings.layers), unstable)
        return unstable
    for layer in range(couplings.layers):
        couplings.field(s, external, active=active, layer=layer, out=h)
        follow(h.unsqueeze(2), s, up, mask, (layer, layer + 1), unstable)
    return unstable


def follow_torch(
    h: torch.Tensor,
    s: torch.Tensor,
    up: torch.Tensor,
    mask: torch.Tensor | None,
    layers: tuple[int, int],
    unstable: torch.Tensor,
) -> None:
    """Do what :func:`rmsim.dynamics.loops.follow` does by tensor operations, as a GPU needs."""
    some = slice(*layers)
    ups = up[:, :, some]
    change = (h >= 0).bitwise_xor_(ups)
    unstable |= change.flatten(2).any(-1)
    if mask is not None:
        change &= mask[:, :, some]
    ups ^= change
    s[:, :, some].copy_(ups).mul_(2).sub_(1)
