"""What a search for fixed points by message passing answers, for every network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from rmsim.messages.outcome import Outcome

_TENSORS = ("status", "iterations", "attempts", "min_margin", "magnetisation", "state")


@dataclass(frozen=True, eq=False)
class Search:
    """How the searches ended; all tensors are on the CPU.

    Parameters
    ----------
    status : Tensor of int8, (samples,)
        An :class:`Outcome`: SOLVED, or how the last attempt failed.
    iterations : Tensor of int64, (samples,)
        Iterations, all attempts together.
    attempts : Tensor of int64, (samples,)
        Starts that were tried.
    min_margin : Tensor, (samples,), float64
        Least s_i h_i of the final state, positive if and only if it is a fixed point.
    magnetisation : Tensor, (samples,), float64
        Mean of m^2 at the end: 0 for a paramagnet, 1 if every spin is certain.
    state : Tensor of int8, (samples, layers, n)
        Signs of the last magnetisations.
    seed : int
        Seed of the starts.
    device : str
        Where it was computed.
    """

    status: torch.Tensor
    iterations: torch.Tensor
    attempts: torch.Tensor
    min_margin: torch.Tensor
    magnetisation: torch.Tensor
    state: torch.Tensor
    seed: int
    device: str

    @property
    def solved(self) -> torch.Tensor:
        """Tell which networks have a verified fixed point."""
        return self.status == Outcome.SOLVED


def join_searches(parts: Sequence[Search]) -> Search:
    """Return the results of several sets of samples as one."""
    first = parts[0]
    tensors = {name: torch.cat([getattr(part, name) for part in parts]) for name in _TENSORS}
    return Search(**tensors, seed=first.seed, device=first.device)
