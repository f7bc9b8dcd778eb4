"""The working set of a relaxation: states that still move, compacted as others finish.

It is a rectangle of networks times states, so that one batched product does a sweep. When states
finish, the rectangle shrinks to the networks that have some left, times the most that any of them
has; a member that fills a gap is a finished one, stepped on and ignored.
"""

from __future__ import annotations

import torch

from rmsim.couplings.protocol import Couplings
from rmsim.dynamics.cycles import Anchor
from rmsim.dynamics.masks import fill_mask
from rmsim.dynamics.step import Update, sweep_


class Batch:
    """States under way.

    Parameters
    ----------
    couplings : Couplings
        The networks.
    start : Tensor, (samples, starts, layers, n)
        States at sweep 0, +-1 in any type.
    external : Tensor, optional
        External field of four dimensions.
    keys : Tensor, optional
        Keys of the masks, (samples, starts, 2); without them every neuron is updated.
    p : float
        Probability that a neuron is updated.
    update : str
        Order of the updates.
    """

    def __init__(
        self,
        couplings: Couplings,
        start: torch.Tensor,
        external: torch.Tensor | None,
        keys: torch.Tensor | None,
        p: float,
        update: Update,
    ) -> None:
        self.couplings, self.external = couplings, external
        self.keys = None if keys is None else keys.to(couplings.device)
        self.p, self.update = p, update
        self.sweep = 0
        self.networks: list[int] | None = None
        samples, starts = start.shape[:2]
        self.width = starts
        self.members = torch.arange(samples * starts).view(samples, starts)
        self.live = torch.ones((samples, starts), dtype=torch.bool)
        self.s = start.to(dtype=couplings.dtype, device=couplings.device, copy=True).contiguous()
        self.up = self.s > 0
        self.anchor = Anchor(self.up) if keys is None else None
        self.last_unstable = torch.zeros(
            (samples, starts), dtype=torch.int64, device=couplings.device
        )
        self._make_space()

    def _make_space(self) -> None:
        self.mask = None if self.keys is None else torch.empty_like(self.up)
        shape = list(self.s.shape)
        if self.update == "sequential":
            del shape[2]
        self.h = torch.empty(shape, dtype=self.s.dtype, device=self.s.device)

    def advance(self) -> None:
        """Do one sweep; nothing here waits for the device."""
        self.sweep += 1
        if self.keys is not None and self.mask is not None:
            fill_mask(self.keys, self.sweep, self.p, self.mask)
        unstable = sweep_(
            self.couplings,
            self.s,
            self.up,
            self.h,
            self.update,
            mask=self.mask,
            external=self.external,
            active=self.networks,
        )
        self.last_unstable.masked_fill_(unstable, self.sweep)
        if self.anchor is not None:
            self.anchor.compare(self.sweep, self.up)

    def progress(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return (last sweep that found an unstable neuron, period, sweep it closed) on the CPU."""
        if self.anchor is None:
            last = self.last_unstable.cpu()
            return last, torch.zeros_like(last), torch.zeros_like(last)
        found = (self.last_unstable, self.anchor.period, self.anchor.closed)
        last, period, closed = torch.stack(found).cpu().unbind(0)
        return last, period, closed

    def pick(self, chosen: torch.Tensor) -> tuple[list[int], torch.Tensor, torch.Tensor]:
        """Return the rectangle that holds the members marked in `chosen`.

        Returns
        -------
        rows : list of int
            Rows of the batch that have some.
        columns : Tensor, (len(rows), most in a row)
            Columns of the chosen ones, gaps filled with others of the same row.
        real : Tensor of bool
            Which entries of `columns` were chosen.
        """
        counts = chosen.sum(1)
        rows = counts.nonzero()[:, 0]
        width = int(counts.max())
        order = (~chosen[rows]).to(torch.int8).argsort(dim=1, stable=True)[:, :width]
        real = torch.arange(width) < counts[rows, None]
        return rows.tolist(), order, real

    def external_of(self, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor | None:
        """Return the external field of some members; the same one if it does not depend on them."""
        field = self.external
        if field is None or field.shape[:2] == (1, 1):
            return field
        full = field.expand(*self.members.shape, *field.shape[2:])
        return full[rows, columns]

    def names(self, rows: list[int]) -> list[int]:
        """Return which networks the rows of the batch are."""
        return rows if self.networks is None else [self.networks[row] for row in rows]

    def compact(self) -> None:
        """Drop the members that have finished, if the rectangle shrinks by an eighth or more."""
        chosen, columns, real = self.pick(self.live)
        if 8 * columns.numel() > 7 * self.live.numel():
            return
        self.networks = self.names(chosen)
        rows = torch.tensor(chosen)[:, None]
        del self.h, self.mask  # before the copies, so that memory does not peak
        there = self.s.device
        rows_there, columns_there = rows.to(there), columns.to(there)
        self.external = self.external_of(rows_there, columns_there)
        self.live, self.members = real, self.members[rows, columns]
        self.s = self.s[rows_there, columns_there]
        self.up = self.up[rows_there, columns_there]
        self.last_unstable = self.last_unstable[rows_there, columns_there]
        if self.anchor is not None:
            self.anchor.keep(rows_there, columns_there)
        if self.keys is not None:
            self.keys = self.keys[rows_there, columns_there]
        self._make_space()
