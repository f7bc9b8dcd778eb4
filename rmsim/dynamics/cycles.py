r"""Cycles of deterministic dynamics: :math:`s(t) = s(t - T)`, T found whatever its length.

Brent's algorithm on the whole batch: remember the state at sweeps 1, 2, 4, 8, ... and compare
every state with the one remembered, bit for bit. The first to agree gives the period itself, not a
multiple of it, and there are no false cycles as hashes would give. A cycle of period T entered
after m sweeps is found by sweep max(T, 2m) + 2T at the latest.
"""

from __future__ import annotations

import torch

from rmsim.couplings.protocol import Couplings
from rmsim.dynamics import loops
from rmsim.dynamics.step import Update, sequential, synchronous


class Anchor:
    """The state remembered for every member of a batch, and the periods found so far.

    Parameters
    ----------
    up : Tensor of bool, (samples, starts, layers, n)
        The states at sweep 0.

    Attributes
    ----------
    period : Tensor, (samples, starts)
        Period found, 0 if none yet; 1 is a fixed point.
    closed : Tensor, (samples, starts)
        Sweep at which the state came back.
    """

    def __init__(self, up: torch.Tensor) -> None:
        self.state = up.clone()
        self.at = 0
        self.period = torch.zeros(up.shape[:2], dtype=torch.int64, device=up.device)
        self.closed = torch.zeros_like(self.period)

    def compare(self, sweep: int, up: torch.Tensor) -> None:
        """Take note of the states `up` at `sweep`."""
        if up.device.type == "cpu":
            away = loops.differ(up, self.state)
        else:
            away = (up ^ self.state).flatten(2).any(-1)
        back = ~away & (self.period == 0)
        self.period.masked_fill_(back, sweep - self.at)
        self.closed.masked_fill_(back, sweep)
        if sweep & (sweep - 1) == 0:
            self.state.copy_(up)
            self.at = sweep

    def keep(self, rows: torch.Tensor, columns: torch.Tensor) -> None:
        """Keep the members (rows, columns) only."""
        self.state = self.state[rows, columns]
        self.period = self.period[rows, columns]
        self.closed = self.closed[rows, columns]


def returns_after(
    couplings: Couplings,
    s: torch.Tensor,
    period: int,
    *,
    update: Update = "synchronous",
    external: torch.Tensor | None = None,
) -> torch.Tensor:
    """Step every state `period` times; return which came back then, and not before."""
    step = synchronous if update == "synchronous" else sequential
    early = torch.zeros(s.shape[:2], dtype=torch.bool, device=s.device)
    back, new = early, s
    for _ in range(period):
        early = early | back
        new = step(couplings, new, external)
        back = (new == s).flatten(2).all(-1)
    return back & ~early
