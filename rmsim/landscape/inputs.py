r"""Inputs between two inputs, at a given fraction of their Hamming distance.

.. math:: x_\tau:\quad d(x_\tau, x^\mu) = \tau\, d(x^\mu, x^\nu).

The paper draws from all x at that distance from :math:`x^\mu`. Taken literally these include points
off every path, and at :math:`\tau=1` almost never :math:`x^\nu` itself; here only sites at which
the two inputs differ are flipped, so that :math:`x_\tau` lies on a shortest path between them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from rmtheory.errors import InvalidInputError

#: Inputs (..., D) -> the states (..., N) that they lead to.
Relax = Callable[[torch.Tensor], torch.Tensor]

#: States (..., N) to start from and inputs (..., D) -> the states reached.
Evolve = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def hamming(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the share of sites, along the last dimension, at which two spin tensors differ.

    Examples
    --------
    >>> hamming(torch.tensor([1.0, 1, 1, -1]), torch.tensor([1.0, -1, 1, 1])).item()
    0.5
    """
    return (a != b).double().mean(dim=-1)


def intermediate(
    start: torch.Tensor, end: torch.Tensor, tau: float, draw: torch.Generator
) -> torch.Tensor:
    """Return inputs at the fraction `tau` of the way from `start` to `end`, drawn uniformly.

    Parameters
    ----------
    start, end : Tensor (..., D)
        Pairs of inputs of spins.
    tau : float
        From 0, which gives `start`, to 1, which gives `end`; the number of flips is rounded.
    draw : torch.Generator
        Where the choice of sites comes from.

    Examples
    --------
    >>> a, b = torch.ones(10), torch.cat([torch.ones(4), -torch.ones(6)])
    >>> x = intermediate(a, b, 0.5, torch.Generator().manual_seed(0))
    >>> int((x != a).sum()), int((x != b).sum())
    (3, 3)
    """
    return path(start, end, [tau], draw).squeeze(0)


def path(
    start: torch.Tensor, end: torch.Tensor, taus: list[float], draw: torch.Generator
) -> torch.Tensor:
    """Return one random shortest path for every pair: inputs (taus, ..., D)."""
    _check(start, end, taus)
    differ = start != end
    # A random rank among the sites that differ; those that agree come last, and are never flipped.
    order = torch.rand(start.shape, generator=draw).to(start.device)
    order = torch.where(differ, order, torch.full_like(order, 2.0))
    rank = order.argsort(dim=-1).argsort(dim=-1)
    count = differ.sum(dim=-1, keepdim=True)
    fractions = torch.tensor(taus, dtype=torch.float64, device=start.device)
    flips = (fractions.reshape(-1, *(1 for _ in start.shape)) * count).round()
    return torch.where(rank < flips, end, start)


def _check(start: torch.Tensor, end: torch.Tensor, taus: list[float]) -> None:
    if start.shape != end.shape:
        raise InvalidInputError("end", tuple(end.shape), f"of the shape {tuple(start.shape)}")
    for name, spins in (("start", start), ("end", end)):
        if not bool((spins.abs() == 1).all()):
            raise InvalidInputError(name, "other numbers", "spins, +1 or -1")
    if not taus:
        raise InvalidInputError("taus", taus, "at least one number")
    for tau in taus:
        if not 0 <= tau <= 1:
            raise InvalidInputError("tau", tau, "a number from 0 to 1")
