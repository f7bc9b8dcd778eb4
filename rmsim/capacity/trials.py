"""Train chains of one shape on random pairs, several trials at once, each with its own P."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from rmsim.capacity.dynamics import local_field, neutral, overlaps, relax
from rmsim.capacity.protocol import Protocol
from rmsim.randomness import fill_normal_, generator
from rmtheory import checks
from rmtheory.errors import InvalidInputError

#: The share of the patterns that need not be recalled.
LEVEL = 0.05

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Trials:
    """What each trial came to, at the check with the best 5th percentile.

    Parameters
    ----------
    patterns : array (trials)
        P, the number of pairs.
    o5 : array (trials)
        5th percentile over patterns of the overlap of the last layer with the target.
    epochs : array (trials)
        Epochs trained until then.
    median, low, high : array (trials, layers)
        Overlap with the target by layer: median, 5th and 95th percentile over patterns.
    """

    patterns: NDArray[np.int64]
    o5: Array
    epochs: NDArray[np.int64]
    median: Array
    low: Array
    high: Array


@dataclass
class _Chains:
    """Trials that are still learning: couplings, pairs and streams of random numbers."""

    numbers: torch.Tensor
    j: torch.Tensor
    x: torch.Tensor
    y: torch.Tensor
    sizes: list[int]
    streams: list[torch.Generator]

    def without(self, done: Sequence[int]) -> _Chains:
        left = [k for k in range(len(self.sizes)) if k not in done]
        most = max((self.sizes[k] for k in left), default=0)
        return _Chains(
            self.numbers[left],
            self.j[left],
            self.x[left, :most],
            self.y[left, :most],
            [self.sizes[k] for k in left],
            [self.streams[k] for k in left],
        )


def run_trials(
    protocol: Protocol,
    layers: int,
    n: int,
    trials: Iterable[int],
    seed: int,
    *,
    loads: tuple[float, float] = (0.5, 1.0),
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Trials:
    """Train the trials with the numbers `trials`, P uniform between the `loads` times N.

    Trial k draws everything from its own stream: it is the same whatever it is computed with. Where
    neurons are masked (p < 1) the trials therefore run one after the other.
    """
    checks.integer("layers", layers, 1)
    checks.integer("n", n, 2)
    low, high = loads
    if not 0 < low <= high:
        raise InvalidInputError("loads", loads, "two positive numbers in ascending order")
    chosen = list(trials)
    if not chosen:
        raise InvalidInputError("trials", "none", "at least one")
    if protocol.p < 1 and len(chosen) > 1:
        one_by_one = [
            run_trials(protocol, layers, n, [k], seed, loads=loads, device=device, dtype=dtype)
            for k in chosen
        ]
        return _together(one_by_one)
    streams = [generator(seed, k) for k in chosen]
    least, most = max(1, math.ceil(low * n)), max(1, math.floor(high * n))
    sizes = [int(torch.randint(least, max(least, most) + 1, (1,), generator=g)) for g in streams]
    top = max(sizes)
    j = torch.empty(len(chosen), layers, n, n, dtype=dtype)
    pairs = torch.zeros(len(chosen), 2, top, n, dtype=dtype)
    for k, (stream, size) in enumerate(zip(streams, sizes, strict=True)):
        fill_normal_(j[k], 1 / math.sqrt(n), stream)
        drawn = torch.randint(2, (2, size, n), generator=stream)
        pairs[k, :, :size] = 2.0 * drawn - 1.0
    _self_couple(j, protocol.jd)
    pairs = pairs.to(device)
    chains = _Chains(
        torch.arange(len(chosen)), j.to(device), pairs[:, 0], pairs[:, 1], sizes, streams
    )
    return _learn(protocol, chains, layers)


def _together(parts: Sequence[Trials]) -> Trials:
    return Trials(
        *(
            np.concatenate([getattr(part, field.name) for part in parts])
            for field in dataclasses.fields(Trials)
        )
    )


def _learn(protocol: Protocol, chains: _Chains, layers: int) -> Trials:
    count = len(chains.sizes)
    found = Trials(
        np.array(chains.sizes),
        np.full(count, -np.inf),
        np.zeros(count, dtype=np.int64),
        *(np.full((count, layers), np.nan) for _ in range(3)),
    )
    _look(protocol, chains, found, 0)
    for epoch in range(1, protocol.max_epochs + 1):
        _epoch(protocol, chains)
        if epoch % protocol.check_every and epoch < protocol.max_epochs:
            continue
        done = _look(protocol, chains, found, epoch)
        chains = chains.without(done)
        if not chains.sizes:
            break
    return found


def _epoch(protocol: Protocol, chains: _Chains) -> None:
    """Learn all pairs once, each trial in an order of its own."""
    size = protocol.batch
    batches = math.ceil(max(chains.sizes) / size)
    order = torch.zeros(len(chains.sizes), batches * size, dtype=torch.long)
    there = torch.zeros(order.shape, dtype=chains.j.dtype)
    for k, (count, stream) in enumerate(zip(chains.sizes, chains.streams, strict=True)):
        order[k, :count] = torch.randperm(count, generator=stream)
        there[k, :count] = 1.0  # trials with fewer pairs have nothing to learn in the last batches
    rows = torch.arange(len(chains.sizes))[:, None]
    for first in range(0, batches * size, size):
        chosen = order[:, first : first + size]
        learn_batch(
            protocol,
            chains.j,
            chains.x[rows, chosen],
            chains.y[rows, chosen],
            there[:, first : first + size].to(chains.j.device),
            chains.streams[0],
        )


def learn_batch(
    protocol: Protocol,
    j: torch.Tensor,
    x: torch.Tensor,
    y: torch.Tensor,
    weight: torch.Tensor,
    draw: torch.Generator,
) -> None:
    """Show the pairs (trials, patterns, n), relax, and change `j` in place by the rule.

    `weight` (trials, patterns) is 0 for pairs that only fill the batch.
    """
    layers, n = j.shape[1], j.shape[-1]
    s = relax(protocol, j, neutral(j, x), x, layers, draw=draw)
    s = relax(protocol, j, s, x, protocol.clamped_sweeps, y=y, draw=draw)
    if protocol.free_sweeps:
        s = relax(protocol, j, s, x, protocol.free_sweeps, draw=draw)
    h = local_field(protocol, j, s, x, right=protocol.right_in_rule)
    weak = s * (s * h <= protocol.kappa) * weight[:, None, :, None]
    j += protocol.eta / math.sqrt(n * protocol.batch) * (weak.transpose(-1, -2) @ s)
    _self_couple(j, protocol.jd)


def _self_couple(j: torch.Tensor, jd: float) -> None:
    j.diagonal(dim1=-2, dim2=-1).fill_(jd)


def _look(protocol: Protocol, chains: _Chains, found: Trials, epoch: int) -> list[int]:
    """Measure the overlaps without target; return the trials that have learnt enough."""
    layers, n = chains.j.shape[1], chains.j.shape[-1]
    s = torch.zeros(
        len(chains.sizes),
        layers,
        chains.x.shape[1],
        n,
        dtype=chains.j.dtype,
        device=chains.j.device,
    )
    s = relax(
        protocol,
        chains.j,
        neutral(chains.j, chains.x),
        chains.x,
        protocol.inference_sweeps + layers,
        right=protocol.right_at_inference,
        draw=chains.streams[0],
    )
    by_layer = overlaps(s, chains.y).double().cpu().numpy()
    done = []
    for k, size in enumerate(chains.sizes):
        trial = int(chains.numbers[k])
        low, median, high = np.quantile(by_layer[k, :, :size], [LEVEL, 0.5, 1 - LEVEL], axis=1)
        if low[-1] > found.o5[trial]:
            found.o5[trial], found.epochs[trial] = low[-1], epoch
            found.median[trial], found.low[trial], found.high[trial] = median, low, high
        if low[-1] >= protocol.enough:
            done.append(k)
    return done
