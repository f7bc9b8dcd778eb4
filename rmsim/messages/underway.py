"""Networks under way: those that end are frozen, then written down and left out of the products.

Freezing is done on the device; who has ended is asked only now and then, since every question
stalls a GPU.
"""

from __future__ import annotations

import torch

from rmsim.device import cheap_to_ask
from rmsim.messages.step import Messages


class Underway:
    """Messages of the networks that still run, and the last ones of those that have left.

    Parameters
    ----------
    messages : Messages
        Of all networks, at the start.
    rows : Tensor of int64, optional
        The networks that run, increasing; all by default.

    Attributes
    ----------
    here, final : Messages
        Of the networks that run, and of all that have left.
    rows, ended : Tensor
        Their numbers, and which of them are frozen.
    names : list of int, optional
        Their numbers for the products; None for all networks.
    """

    def __init__(self, messages: Messages, rows: torch.Tensor | None = None) -> None:
        self.here = self.final = messages
        everyone = torch.arange(len(messages.h), device=messages.h.device)
        self._go_on(messages if rows is None else messages.pick(rows), everyone, rows)

    def of(self, whole: torch.Tensor) -> torch.Tensor:
        """Return the entries of a tensor over all networks that belong to those that run."""
        return whole if self.names is None else whole[self.rows]

    def take(self, new: Messages) -> torch.Tensor:
        """Take over `new` where it is finite and not frozen; return where it is finite."""
        fine = new.finite()
        move = fine & ~self.ended
        if cheap_to_ask(move.device) and bool(move.all()):
            self.here = new
            return fine
        where = move[:, None, None]
        both = zip(new.tensors(), self.here.tensors(), strict=True)
        self.here = Messages(*(torch.where(where, a, b) for a, b in both))
        return fine

    def write(self, whole: torch.Tensor, mask: torch.Tensor, value: torch.Tensor | int) -> None:
        """Set entries of a tensor over all networks: those that run and are in `mask`."""
        whole[self.rows] = torch.where(mask, value, whole[self.rows]).to(whole.dtype)

    def leave(self) -> torch.Tensor:
        """Write down the frozen networks, and go on without them; return which stay."""
        rows, stay = self.rows[self.ended], ~self.ended
        done = self.here.pick(self.ended)
        both = zip(self.final.tensors(), done.tensors(), strict=True)
        self.final = Messages(*(old.index_copy(0, rows, new) for old, new in both))
        self._go_on(self.here.pick(stay), self.rows, stay)
        return stay

    def _go_on(self, here: Messages, rows: torch.Tensor, chosen: torch.Tensor | None) -> None:
        self.here, self.rows = here, rows if chosen is None else rows[chosen]
        self.ended = torch.zeros(len(self.rows), dtype=torch.bool, device=self.rows.device)
        everyone = len(self.rows) == len(self.final.h)
        self.names = None if everyone else self.rows.tolist()
