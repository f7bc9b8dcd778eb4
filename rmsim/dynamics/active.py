"""The one loop of all searches: iterate the networks that have not ended, drop those that have.

Every search (dynamics, belief propagation, reinforcement, likelihood, focusing) is a
:class:`Search`: it says what one iteration does and which networks have ended. The loop holds the
active set, iterates it, reads every `sync_interval` iterations which networks have ended, records
them and leaves them out of all further products.

Reading a tensor from Python makes it wait for a GPU: between two such readings nothing is read, and
networks that end are frozen on the device. No result depends on the interval.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

import torch

from rmsim.tensors import cheap_to_read

#: (iteration, members that are still active), called when the host and the device are in step.
Callback = Callable[[int, int], None]

#: What picks members: numbers, a slice, or row and column numbers.
Index = torch.Tensor | slice | tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True, eq=False)
class PerNetwork:
    """Tensors whose first axes number the members: networks, or states of networks."""

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """All tensors, in the order of the fields."""
        return tuple(vars(self).values())

    def pick(self, index: Index) -> Self:
        """Return the tensors of some members."""
        return type(self)(*(tensor[index] for tensor in self.tensors()))

    def finite(self) -> torch.Tensor:
        """Return for every network whether all its numbers are finite."""
        flat = torch.stack([tensor.flatten(1).sum(1) for tensor in self.tensors()])
        return flat.isfinite().all(0)


S = TypeVar("S", bound=PerNetwork)


class ActiveSet(Generic[S]):
    """The members that are still iterated, and the last tensors of those that have ended.

    Parameters
    ----------
    start : PerNetwork
        Of all members, at the start.
    rows : Tensor of int64, optional
        The networks to iterate, increasing; all by default.

    Attributes
    ----------
    here : PerNetwork
        Of the active members.
    final : PerNetwork
        Of all members, on one axis: those that have ended are written here.
    members : Tensor of int64
        Numbers of the active members in `final`.
    ended : Tensor of bool
        Which of them have ended since the last reading.
    networks : list of int, optional
        Networks of the first axis of `here`, for the products; None for all.
    left : int
        Members that had not ended at the last reading.
    """

    def __init__(self, start: S, rows: torch.Tensor | None = None) -> None:
        first = start.tensors()[0]
        self.here: S = start
        self.final: S = type(start)(*(tensor.clone() for tensor in start.tensors()))
        self.members = torch.arange(len(first), device=first.device)
        self.ended = torch.zeros(len(first), dtype=torch.bool, device=first.device)
        self.networks: list[int] | None = None
        self.left = len(first)
        if rows is not None and len(rows) < len(first):
            self._keep(rows)

    def of(self, whole: torch.Tensor) -> torch.Tensor:
        """Return the entries of a tensor over all members that belong to the active ones."""
        return whole if self.networks is None else whole[self.members]

    def take(self, new: S, frozen: torch.Tensor) -> torch.Tensor:
        """Take over `new` where it is finite and not `frozen`; return where it is finite."""
        fine = new.finite()
        move = fine & ~frozen
        if cheap_to_read(move.device) and bool(move.all()):
            self.here = new
            return fine
        mixed = []
        for a, b in zip(new.tensors(), self.here.tensors(), strict=True):
            mixed.append(torch.where(move.view(-1, *(1,) * (a.dim() - 1)), a, b))
        self.here = type(new)(*mixed)
        return fine

    def write(self, whole: torch.Tensor, mask: torch.Tensor, value: torch.Tensor | int) -> None:
        """Set entries of a tensor over all members: those of the active ones in `mask`."""
        whole[self.members] = torch.where(mask, value, whole[self.members]).to(whole.dtype)

    def drop(self) -> Index | None:
        """Record the members that have ended, drop them, and return which stay, if fewer.

        This reading makes a GPU wait.
        """
        done = self.ended.nonzero()[:, 0]
        if not len(done):
            return None
        self._record(done)
        stay = (~self.ended).nonzero()[:, 0]
        self._keep(stay)
        return stay

    def end(self, status: torch.Tensor, mask: torch.Tensor, name: int) -> None:
        """End the active members in `mask`: set their entries of the `status` of all to `name`."""
        if cheap_to_read(mask.device) and not bool(mask.any()):
            return
        self.write(status, mask, name)
        self.ended = self.ended | mask

    def _record(self, done: Index) -> None:
        """Write the last tensors of some active members to `final`."""
        numbers = self.members[done]
        for whole, tensor in zip(self.final.tensors(), self.here.tensors(), strict=True):
            whole.index_copy_(0, numbers, tensor[done])

    def _keep(self, stay: torch.Tensor) -> None:
        self.here, self.members = self.here.pick(stay), self.members[stay]
        self.ended = torch.zeros(len(self.members), dtype=torch.bool, device=self.members.device)
        self.networks, self.left = self.members.tolist(), len(self.members)


class ActiveRectangle(ActiveSet[S]):
    """Several states of each network: the active ones are kept as a rectangle networks x states.

    One batched product then does all of them. The rectangle shrinks to the networks that have
    active states, times the most that any of them has, once that saves an eighth; gaps are filled
    with states that have ended, which are iterated on and ignored.

    Parameters
    ----------
    start : PerNetwork
        Tensors with the first axes (samples, starts).
    """

    def __init__(self, start: S) -> None:
        flat = type(start)(*(tensor.flatten(0, 1) for tensor in start.tensors()))
        super().__init__(flat)
        self.here = start
        shape = start.tensors()[0].shape[:2]
        self.members, self.ended = self.members.view(shape), self.ended.view(shape)
        self._recorded = self.ended.clone()

    def drop(self) -> Index | None:
        """Record the states that have ended; return the rectangle that stays, if it shrinks."""
        done = (self.ended & ~self._recorded).nonzero(as_tuple=True)
        if not len(done[0]):
            return None
        self._record((done[0], done[1]))
        self._recorded = self.ended.clone()
        active = ~self.ended
        self.left = int(active.sum())
        if not self.left:
            return None
        counts = active.sum(1)
        rows, width = counts.nonzero()[:, 0], int(counts.max())
        if 8 * len(rows) * width > 7 * active.numel():
            return None
        columns = (~active[rows]).to(torch.int8).argsort(dim=1, stable=True)[:, :width]
        index = (rows[:, None], columns)
        self.here, self.members = self.here.pick(index), self.members[index]
        self.ended = self.ended[index]
        self._recorded = self.ended.clone()
        names = rows.tolist()
        self.networks = names if self.networks is None else [self.networks[k] for k in names]
        return index


class Search(ABC, Generic[S]):
    """An iteration of many networks, each until it ends.

    A subclass sets :attr:`active` and defines :meth:`advance`.
    """

    active: ActiveSet[S]

    @abstractmethod
    def advance(self, iteration: int, sync: bool) -> None:
        """Do one iteration of the active members and mark in ``active.ended`` those that end.

        Parameters
        ----------
        iteration : int
            Its number, from 1.
        sync : bool
            Whether tensors may be read: only then may the device be made to wait.
        """

    def expired(self, cap: int) -> torch.Tensor:
        """Return which active members have used up their iterations, after `cap` of the loop."""
        return torch.ones_like(self.active.ended)

    def keep(self, stay: Index) -> None:
        """Reduce what the search holds beside the active set to the members that stay."""

    def run(self, cap: int, sync_interval: int, callback: Callback | None = None) -> None:
        """Iterate until every member has ended, each after `cap` iterations at the latest."""
        active, iteration = self.active, 0
        while active.left:
            iteration += 1
            sync = iteration % sync_interval == 0 or iteration >= cap
            self.advance(iteration, sync)
            if iteration >= cap:
                active.ended = active.ended | self.expired(cap)
            if not sync:
                continue
            stay = active.drop()
            if stay is not None and active.left:
                self.keep(stay)
            if callback is not None:
                callback(iteration, active.left)
