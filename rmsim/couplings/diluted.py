r"""Diluted couplings of a chain, as compressed rows.

.. math:: J^l_{ij} = \begin{cases} \mathcal N(0, 1/(\rho N)) & \text{with probability } \rho\\
    0 & \text{otherwise,}\end{cases} \qquad i \ne j

The gap from one entry to the next is geometric, so the entries are drawn one after another and the
dense matrix never exists. In the symmetric variant the entries above the diagonal are mirrored;
density and variance are then the same, and rho = 1 gives (J + J^T)/sqrt(2) in law.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from rmsim.couplings.base import ChainCouplings
from rmsim.couplings.rows import CompressedRows, SparseCouplings, compressed
from rmsim.given import Given
from rmsim.network import Network
from rmsim.randomness import fill_normal_, generator

#: Entries drawn at a time, a few megabytes of work space.
_ENTRIES = 2**16


@dataclass(frozen=True, eq=False)
class DilutedChain(SparseCouplings, ChainCouplings):
    """Couplings of `samples` diluted chains.

    Parameters
    ----------
    rows : CompressedRows
        Entries off the diagonal; one group per layer.
    jd, lam_left, lam_right : float
        Self-coupling, coupling to the previous and to the next layer.
    """

    rows: CompressedRows
    jd: float
    lam_left: float = 0.0
    lam_right: float = 0.0

    @property
    def layers(self) -> int:
        """Number of layers L."""
        return self.rows.groups

    @property
    def n(self) -> int:
        """Neurons per layer."""
        return self.rows.size

    def _multiply(
        self, s: torch.Tensor, out: torch.Tensor, active: Sequence[int] | None, layer: int | None
    ) -> None:
        target = out if layer is None else out.unsqueeze(2)
        self.rows.multiply(s.contiguous(), target, active, layer, jd=self.jd)


def draw_diluted(
    network: Network,
    seed: int,
    samples: range,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> DilutedChain:
    """Draw the couplings of the disorder `samples`; network k depends on (seed, k) only."""
    if network.given is not None:
        network.given.check_samples(samples)
        rows = _given_rows(network.given, dtype, device)
        return DilutedChain(rows, network.jd, network.lam_left, network.lam_right)
    blocks = len(samples) * network.layers
    bounds = torch.zeros(blocks * network.n + 1, dtype=torch.int64, device=device)
    mean = blocks * network.n * (network.n - 1) * network.rho
    room = int(mean + 6 * math.sqrt(mean)) + 64  # six standard deviations: seldom too small
    columns = torch.empty(room, dtype=torch.int32, device=device)
    values = torch.empty(room, dtype=dtype, device=device)
    done = block = 0
    for sample in samples:
        stream = generator(seed, sample, 0, device=device)
        for _ in range(network.layers):
            for first, counts, column, value in _entries(network, dtype, stream):
                end = done + len(column)
                if end > len(columns):
                    columns, values = (torch.cat((x, x[: end // 4])) for x in (columns, values))
                columns[done:end], values[done:end] = column, value
                origin = block * network.n + first + 1
                bounds[origin : origin + len(counts)] = done + counts.cumsum(0)
                done = end
            block += 1
    rows = CompressedRows(
        bounds, columns[:done], values[:done], len(samples), network.layers, network.n
    )
    return DilutedChain(rows, network.jd, network.lam_left, network.lam_right)


def _given_rows(given: Given, dtype: torch.dtype, device: torch.device | str) -> CompressedRows:
    if isinstance(given.weights, torch.Tensor):
        present = given.weights != 0
        bounds, columns = compressed(present.flatten(0, 1))
        values = given.weights[present]
    else:
        bounds, columns, values = given.weights
    values = values.to(dtype=dtype, device=device, copy=True)
    moved = (bounds.to(device), columns.to(device), values)
    return CompressedRows(*moved, 1, given.layers, given.n)


_Block = tuple[int, torch.Tensor, torch.Tensor, torch.Tensor]


def _entries(network: Network, dtype: torch.dtype, stream: torch.Generator) -> Iterator[_Block]:
    """Give the entries of one matrix by blocks of rows: (first row, counts, columns, values)."""
    n, rho = network.n, network.rho
    deviation = 1 / math.sqrt(rho * n)
    height = max(1, min(n, int(_ENTRIES / (rho * n))))
    if network.symmetric:
        yield _mirrored(network, dtype, stream, deviation)
        return
    for first in range(0, n, height):
        rows = min(height, n - first)
        row, column = _places(rows, n, first, rho, stream)
        value = torch.empty(len(row), dtype=dtype, device=stream.device)
        fill_normal_(value, deviation, stream)
        yield first, torch.bincount(row, minlength=rows), column, value


def _mirrored(
    network: Network, dtype: torch.dtype, stream: torch.Generator, deviation: float
) -> _Block:
    """Draw the whole matrix, keep what lies above the diagonal and reflect it."""
    n = network.n
    row, column = _places(n, n, 0, network.rho, stream)
    above = column > row
    row, column = row[above], column[above]
    value = torch.empty(len(row), dtype=dtype, device=stream.device)
    fill_normal_(value, deviation, stream)
    both_rows, both_columns = torch.cat((row, column)), torch.cat((column, row))
    order = (both_rows * n + both_columns).argsort()
    counts = torch.bincount(both_rows, minlength=n)
    return 0, counts, both_columns[order], torch.cat((value, value))[order]


def _places(
    rows: int, n: int, first: int, rho: float, stream: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Choose each place off the diagonal with probability rho in `rows` rows from `first` on."""
    flat = _bernoulli_places(rows * (n - 1), rho, stream)
    row, column = flat // (n - 1), flat % (n - 1)
    return row, column + (column >= row + first)


def _bernoulli_places(total: int, rho: float, stream: torch.Generator) -> torch.Tensor:
    """Return the successes among `total` trials of probability `rho`, in increasing order."""
    if rho == 1:
        return torch.arange(total, device=stream.device)
    mean = total * rho
    count = int(mean + 4 * math.sqrt(mean)) + 16
    parts, last = [], -1
    while last < total:
        uniform = torch.rand(count, dtype=torch.float64, device=stream.device, generator=stream)
        gaps = uniform.neg_().log1p_().div_(math.log1p(-rho)).floor_().add_(1).clamp_(max=total + 1)
        parts.append(last + gaps.to(torch.int64).cumsum(0))
        last = int(parts[-1][-1])
    places = torch.cat(parts)
    return places[places < total]
