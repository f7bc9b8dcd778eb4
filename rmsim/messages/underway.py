"""Networks under way: those that end are written down and left out of the next product."""

from __future__ import annotations

import torch

from rmsim.messages.step import Messages


class Underway:
    """Messages of the networks that still run, and the last ones of those that have ended.

    Parameters
    ----------
    messages : Messages
        Of all networks, at the start.
    rows : Tensor of int64, optional
        The networks that run, increasing; all by default.
    """

    def __init__(self, messages: Messages, rows: torch.Tensor | None = None) -> None:
        self.here = self.final = messages
        self.rows = torch.arange(len(messages.h), device=messages.h.device)
        if rows is not None:
            self.here, self.rows = messages.pick(rows), rows

    @property
    def names(self) -> list[int] | None:
        """The networks that run, or None for all of them."""
        return None if len(self.rows) == len(self.final.h) else self.rows.tolist()

    def of(self, whole: torch.Tensor) -> torch.Tensor:
        """Return the entries of a tensor over all networks that belong to those that run."""
        return whole if len(self.rows) == len(whole) else whole[self.rows]

    def keep_finite(self, new: Messages) -> torch.Tensor:
        """Take over `new` where all of it is finite; return where it is."""
        fine = new.finite()
        if bool(fine.all()):
            self.here = new
        else:
            where = fine[:, None, None]
            both = zip(new.tensors(), self.here.tensors(), strict=True)
            self.here = Messages(*(torch.where(where, a, b) for a, b in both))
        return fine

    def leave(self, ended: torch.Tensor) -> None:
        """Write down the networks marked in `ended`, and go on without them."""
        rows = self.rows[ended]
        done = self.here.pick(ended)
        both = zip(self.final.tensors(), done.tensors(), strict=True)
        self.final = Messages(*(old.index_copy(0, rows, new) for old, new in both))
        self.here, self.rows = self.here.pick(~ended), self.rows[~ended]
