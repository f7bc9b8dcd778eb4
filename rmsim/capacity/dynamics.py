"""The dynamics of many chains at once: states (trials, layers, patterns, n), couplings likewise."""

from __future__ import annotations

import torch

from rmsim.capacity.protocol import Protocol


def local_field(
    protocol: Protocol, j: torch.Tensor, s: torch.Tensor, x: torch.Tensor, *, right: bool
) -> torch.Tensor:
    """Return J s with J_D on the diagonal, the field from the left, and that from the right.

    Parameters
    ----------
    j, s, x : Tensor
        Couplings (trials, layers, n, n), states (trials, layers, patterns, n) and inputs (trials,
        patterns, n).
    right : bool
        Whether the next layer acts back.
    """
    h = s @ j.transpose(-1, -2)
    h[:, 0] += protocol.lam_x * x
    h[:, 1:] += protocol.lam * s[:, :-1]
    if right:
        h[:, :-1] += protocol.lam * s[:, 1:]
    return h


def neutral(j: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return the state s = 0 of all layers for the inputs `x`."""
    trials, layers, n = j.shape[:3]
    return torch.zeros(trials, layers, x.shape[1], n, dtype=j.dtype, device=j.device)


def relax(
    protocol: Protocol,
    j: torch.Tensor,
    s: torch.Tensor,
    x: torch.Tensor,
    sweeps: int,
    *,
    right: bool = True,
    y: torch.Tensor | None = None,
    draw: torch.Generator | None = None,
) -> torch.Tensor:
    """Return the states after at most `sweeps` sweeps, fewer where no state changes any more.

    A neuron without any field stays at 0, so that a layer is neutral until the input reaches it: if
    it went to +1 instead, the inner layers of a deep chain would hold each other there, and chains
    of more than three layers would learn nothing.

    With p < 1 each neuron is updated with that probability, drawn from `draw`; a sweep in which
    nothing moves is then no fixed point, and all sweeps are made.
    """
    masked = protocol.p < 1 and draw is not None
    for _ in range(sweeps):
        h = local_field(protocol, j, s, x, right=right)
        if y is not None:
            h[:, -1] += protocol.lam_y * y
        new = torch.sign(h)
        if masked:
            kept = torch.rand(s.shape, generator=draw, device=s.device) >= protocol.p
            new = torch.where(kept & (s != 0), s, new)
        elif torch.equal(new, s):
            break
        s = new
    return s


def overlaps(s: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the overlap with the target of every layer and pattern: (trials, layers, patterns)."""
    return (s * y[:, None]).mean(dim=-1)
