"""What a relaxation ends in, for every state: fixed point, cycle, cap, or a margin too thin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import torch


class Status(IntEnum):
    """How the relaxation of a state ended; the comment says what to do about it."""

    FIXED_POINT = 0  # every margin is positive in float64
    CYCLE = 1  # the states repeat for ever; masked updates (p < 1) often escape
    CAP = 2  # neither seen within max_sweeps; raise it
    MARGINAL = 3  # stable as simulated, but some margin is <= 0 in float64; use dtype float64


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Where states went; all tensors are on the CPU.

    Parameters
    ----------
    status : Tensor, (samples, starts)
        A :class:`Status` each.
    period : Tensor, (samples, starts)
        Sweeps after which the state returns: 1 for a fixed point, 0 if unknown.
    sweeps : Tensor, (samples, starts)
        Sweeps until the fixed point was reached (0 if it was the start), until the cycle was
        closed, or the cap.
    min_margin : Tensor, (samples, starts), float64
        Least s_i h_i of the final state, negative where it is not stable.
    state : Tensor of int8, (samples, starts, layers, n)
        Final state; a quarter of the memory of float32.
    seed : int
        Seed of starts and masks.
    device : str
        Where it was computed.
    """

    status: torch.Tensor
    period: torch.Tensor
    sweeps: torch.Tensor
    min_margin: torch.Tensor
    state: torch.Tensor
    seed: int
    device: str

    def ended(self, status: Status) -> torch.Tensor:
        """Return which states ended in `status`."""
        return self.status == int(status)


_TENSORS = ("status", "period", "sweeps", "min_margin", "state")


def empty_result(
    samples: int, starts: int, layers: int, n: int, seed: int, device: str
) -> Relaxation:
    """Return a result that is to be filled in."""
    shape = (samples, starts)
    return Relaxation(
        status=torch.full(shape, int(Status.CAP), dtype=torch.int8),
        period=torch.zeros(shape, dtype=torch.int64),
        sweeps=torch.zeros(shape, dtype=torch.int64),
        min_margin=torch.zeros(shape, dtype=torch.float64),
        state=torch.zeros((*shape, layers, n), dtype=torch.int8),
        seed=seed,
        device=device,
    )


def join(parts: Sequence[Relaxation]) -> Relaxation:
    """Return the results of several sets of samples as one."""
    first = parts[0]
    if len(parts) == 1:
        return first
    tensors = {name: torch.cat([getattr(part, name) for part in parts]) for name in _TENSORS}
    return Relaxation(**tensors, seed=first.seed, device=first.device)
