r"""Couplings of a chain of core modules, dense or diluted (paper, eqs. core-module and chain).

.. math:: h^l_i = \sum_{j\ne i} J^l_{ij} s^l_j + J_D s^l_i + \lambda_L s^{l-1}_i
    + \lambda_R s^{l+1}_i, \qquad
    J^l_{ij} = \begin{cases} \mathcal N(0, 1/(\rho N)) & \text{with probability } \rho\\
    0 & \text{otherwise,}\end{cases} \qquad i \ne j

:func:`draw` draws either kind. The products :math:`\sum_j J_{kij} s_{kj}` of all dense networks k
are one batched GEMM for each run of consecutive networks: finished networks are left out without a
copy of the couplings of the others. Written as s J^T it is faster than J s and than a loop of GEMVs
at every size, also for a single start.

Diluted couplings are compressed rows. The gap from one entry to the next is geometric, so the
entries are drawn one after another and the dense matrix never exists. In the symmetric variant the
entries above the diagonal are mirrored; density and variance are then the same, and rho = 1 gives
(J + J^T)/sqrt(2) in law.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch

from rmsim.compiled_loops import compiled, run_parts, shares, thread_count
from rmsim.compiled_vectors import BLOCK, copy_block_transposed, swap_blocks_transposed
from rmsim.couplings.base import ChainCouplings, Columns, Couplings, runs
from rmsim.couplings.rows import CompressedRows, SparseCouplings, compressed
from rmsim.given import Given, check_entries
from rmsim.network import Network
from rmsim.tensors import (
    checked_seed,
    choose_device,
    choose_dtype,
    fill_normal_,
    generator,
    memory_of,
)
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError

#: Entries of a block of rows that is turned to float64 at a time, half a megabyte.
_BLOCK = 2**16
#: The same on a GPU, which takes whole networks: 256 megabytes.
_GPU_BLOCK = 2**25

#: Side of the square blocks by which a matrix is made symmetric in place.
_SYMMETRISED = 256

#: Side of the squares by which a matrix is transposed in place: two of them fit a cache.
_TRANSPOSED = 8 * BLOCK

#: Entries whose transposition is worth a thread of its own.
_GRAIN = 2**18

_ASYMMETRIC = "asymmetric: message passing takes J_ij and J_ji for independent"


class MatrixCouplings(Couplings):
    """Couplings whose J are `matrices`, a tensor of shape (samples, blocks, n, n)."""

    matrices: torch.Tensor

    @property
    def weights(self) -> torch.Tensor:
        """The matrices."""
        return self.matrices

    @property
    def samples(self) -> int:
        """Number of networks."""
        return self.matrices.shape[0]

    @property
    def n(self) -> int:
        """Neurons per layer."""
        return self.matrices.shape[2]


@dataclass(frozen=True, eq=False)
class DenseChain(MatrixCouplings, ChainCouplings):
    """Couplings of `samples` chains.

    Parameters
    ----------
    matrices : Tensor, (samples, layers, n, n)
        J[k, l, i, j] acts from neuron j on neuron i; its diagonal is zero, J_D is kept apart.
    jd, lam_left, lam_right : float
        Self-coupling, coupling to the previous and to the next layer.
    """

    matrices: torch.Tensor
    jd: float
    lam_left: float = 0.0
    lam_right: float = 0.0

    def __post_init__(self) -> None:
        shape = tuple(self.matrices.shape)
        if len(shape) != 4 or shape[2] != shape[3] or not self.matrices.is_floating_point():
            allowed = "a floating point tensor of shape (samples, layers, n, n)"
            raise InvalidInputError("matrices", str(shape), allowed)
        super().__post_init__()

    def check(self) -> None:
        """Refuse matrices that are not finite or not zero on their diagonals."""
        check_entries("matrices", self.matrices)

    def check_independent(self, method: str) -> None:
        """Check the matrices, as :meth:`check` does: they are dense."""
        self.check()

    @property
    def layers(self) -> int:
        """Number of layers L."""
        return self.matrices.shape[1]

    @property
    def columns(self) -> torch.Tensor | None:
        """J^T of the first network, if its columns are contiguous on the CPU and its rows not."""
        transposed = self.matrices.transpose(-1, -2)
        if self.device.type != "cpu" or self.matrices.is_contiguous():
            return None
        return transposed[0] if transposed.is_contiguous() else None

    has_columns = True

    def columns_of(self, sample: int, last: Columns | None = None) -> Columns:
        """Return J^T of one network; a copy, in the memory of `last`, unless it is contiguous."""
        matrices = self.matrices[sample]
        if matrices.transpose(-1, -2).is_contiguous():
            values = matrices.transpose(-1, -2).view(-1).numpy()
        else:
            rows = matrices.contiguous().numpy()
            values = np.empty(rows.size, rows.dtype) if last is None else last[0]
            _copy_transposed(rows, values.reshape(rows.shape))
        places, entries = np.empty(0, np.int64), np.empty(0, np.int32)
        return values, places, entries, places, entries, values[:0]

    def _multiply(
        self, s: torch.Tensor, out: torch.Tensor, active: Sequence[int] | None, layer: int | None
    ) -> None:
        for index in range(self.layers) if layer is None else (layer,):
            target = out[:, :, index] if layer is None else out
            multiply(self.matrices[:, index], s[:, :, index], target, active)
        self._add_self(out, s, layer)

    def weights_of(self, sample: int) -> torch.Tensor:
        """Return J of one network, (layers, n, n)."""
        return self.matrices[sample]

    def with_weights(self, weights: torch.Tensor) -> Self:
        """Return the chain of one network with another J, (layers, n, n)."""
        return replace(self, matrices=weights.unsqueeze(0))

    def dense_blocks(self, sample: int) -> torch.Tensor:
        """Return J of one network, (layers, n, n)."""
        return self.matrices[sample]

    def squares(self, sample: int) -> tuple[float, float]:
        """Return the sums of J_ij^2 and of J_ij J_ji of one network, in float64."""
        sums = [0.0, 0.0]
        for matrix in self.matrices[sample]:
            double = matrix.double()
            sums[0] += float((double * double).sum())
            sums[1] += float((double * double.T).sum())
        return sums[0], sums[1]

    def reinforce_(
        self, post: torch.Tensor, pre: torch.Tensor, rate: float, *, symmetric: bool = False
    ) -> None:
        """Add rate * sum of g_i s_j; see :class:`rmsim.couplings.base.PlasticCouplings`."""
        for layer, matrix in enumerate(self.matrices[0]):
            if symmetric:
                product = post[:, layer].T @ pre[:, layer]
                matrix.add_(product + product.T, alpha=rate / 2)  # symmetric to the last bit
            else:
                matrix.addmm_(post[:, layer].T, pre[:, layer], alpha=rate)
            matrix.diagonal().zero_()  # J_D is kept apart

    def asymmetric_matrices(self) -> torch.Tensor:
        """Return the matrices; refuse J = J^T and J = -J^T, where J_ij determines J_ji."""
        # A row and a column of the matrices suffice to see that almost all are neither.
        row, column = self.matrices[..., 0, :], self.matrices[..., :, 0]
        alike = torch.stack([(row == column).all(-1), (row == -column).all(-1)])
        for kind, *place in alike.nonzero().tolist():
            matrix = self.matrices[tuple(place)]
            if torch.equal(matrix, matrix.T if kind == 0 else -matrix.T) and bool(matrix.any()):
                name = ("symmetric", "antisymmetric")[kind]
                raise InvalidInputError("couplings", f"{name} matrices", _ASYMMETRIC)
        return self.matrices

    def by_columns(self) -> Self:
        """Return the same chain with contiguous columns; on the CPU only."""
        if self.device.type != "cpu":
            return self
        columns = self.matrices.transpose(-1, -2).contiguous().transpose(-1, -2)
        return replace(self, matrices=columns)

    def by_rows(self) -> Self:
        """Return the same chain with contiguous rows."""
        return replace(self, matrices=self.matrices.contiguous())

    def turned(self) -> Self:
        """Return the same chain, its matrices transposed in place: columns are contiguous."""
        if self.device.type != "cpu" or not self.matrices.is_contiguous():
            return self
        matrices = self.matrices.view(-1, self.n, self.n).numpy()
        parts = shares(len(matrices), min(len(matrices), thread_count(matrices.size, _GRAIN)))
        run_parts(_transpose_all, [(matrices[first:last],) for first, last in parts])
        return replace(self, matrices=self.matrices.transpose(-1, -2))


def draw_dense(
    network: Network,
    seed: int,
    samples: Sequence[int],
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> DenseChain:
    """Draw the couplings of the disorder `samples`; network k depends on (seed, k) only.

    The networks are the same in float32 and float64. A GPU has its own generator, and so its own
    networks of the same ensemble.
    """
    if network.rho != 1:
        raise InvalidInputError("rho", network.rho, "1 for dense couplings")
    if network.given is not None:
        network.given.check_samples(samples)
        J = network.given.weights
        assert isinstance(J, torch.Tensor)  # rho = 1
        copied = J.to(dtype=dtype, device=device, copy=True).unsqueeze(0)
        return DenseChain(copied, network.jd, network.lam_left, network.lam_right)
    n = network.n
    shape = (len(samples), network.layers, n, n)
    size, there = math.prod(shape) * dtype.itemsize, memory_of(device)
    try:
        if there is not None and size > there:  # a system that promises more kills us later
            raise RuntimeError
        matrices = torch.empty(shape, dtype=dtype, device=device)
    except RuntimeError:
        most = "smaller" if there is None else f"at most {math.isqrt(there * n * n // size)}"
        allowed = f"{most}: there is no room for {size / 1e9:.3g} GB of couplings on {device}"
        raise InvalidInputError("n", n, allowed) from None
    for index, sample in enumerate(samples):
        stream = generator(seed, sample, 0, device=device)
        for matrix in matrices[index]:
            fill_random(matrix, 1.0, stream)
            matrix.fill_diagonal_(0)
            if network.symmetric:
                symmetrise_(matrix)
    return DenseChain(matrices, network.jd, network.lam_left, network.lam_right)


def fill_random(matrix: torch.Tensor, scale: float, stream: torch.Generator) -> None:
    """Fill the n x n `matrix` with independent normal numbers of variance scale^2/n."""
    fill_normal_(matrix, scale / math.sqrt(matrix.shape[1]), stream)


def symmetrise_(matrix: torch.Tensor) -> None:
    """Replace a square matrix J by (J + J^T)/sqrt(2), in blocks: a whole J^T would double it."""
    factor = math.sqrt(0.5)
    for first in range(0, len(matrix), _SYMMETRISED):
        last = first + _SYMMETRISED
        corner = matrix[first:last, first:last]
        corner.copy_((corner + corner.T) * factor)
        for start in range(last, len(matrix), _SYMMETRISED):
            upper = matrix[first:last, start : start + _SYMMETRISED]
            lower = matrix[start : start + _SYMMETRISED, first:last]
            upper.add_(lower.T).mul_(factor)
            lower.copy_(upper.T)


@compiled
def _transpose_all(matrices: Any) -> None:
    for matrix in matrices:
        _transpose(matrix)


@compiled
def _transpose(matrix: Any) -> None:
    """Transpose a square matrix in place, block by block."""
    n = matrix.shape[0]
    whole = n // BLOCK * BLOCK
    for first in range(0, whole, _TRANSPOSED):
        last = min(whole, first + _TRANSPOSED)
        for start in range(first, whole, _TRANSPOSED):
            end = min(whole, start + _TRANSPOSED)
            for i in range(first, last, BLOCK):
                for j in range(max(i, start), end, BLOCK):
                    swap_blocks_transposed(matrix, i, j)
    for i in range(whole, n):
        for j in range(i):
            matrix[i, j], matrix[j, i] = matrix[j, i], matrix[i, j]


@compiled
def _copy_transposed(matrices: Any, out: Any) -> None:
    """Write the transposed matrices, (layers, n, n), into `out`."""
    n = matrices.shape[1]
    whole = n // BLOCK * BLOCK
    for layer in range(matrices.shape[0]):
        source, target = matrices[layer], out[layer]
        for first in range(0, whole, BLOCK):  # rows come from memory in their order
            for j in range(0, whole, BLOCK):
                copy_block_transposed(source, first, j, target, j, first)
        for i in range(whole, n):
            for j in range(n):
                target[j, i] = source[i, j]
        for i in range(whole):
            for j in range(whole, n):
                target[j, i] = source[i, j]


# Batched products.


def multiply(
    matrices: torch.Tensor,
    s: torch.Tensor,
    out: torch.Tensor,
    active: Sequence[int] | None,
    *,
    accumulate: bool = False,
) -> None:
    """Write J s into `out`, or add it.

    Parameters
    ----------
    matrices : Tensor, (samples, n, n)
        J of every network.
    s, out : Tensor, (active samples, starts, n)
        States and fields.
    active : sequence of int, optional
        The networks of `s`, increasing; all by default.
    accumulate : bool
        Add to `out` instead of replacing it.
    """
    if matrices.dtype != s.dtype:
        _multiply_promoted(matrices, s, out, active, accumulate)
        return
    for here, there in runs(active, len(matrices)):
        transposed = matrices[there].transpose(1, 2)
        if accumulate:
            out[here].baddbmm_(s[here], transposed)
        else:
            torch.bmm(s[here], transposed, out=out[here])


def _multiply_promoted(
    matrices: torch.Tensor,
    s: torch.Tensor,
    out: torch.Tensor,
    active: Sequence[int] | None,
    accumulate: bool,
) -> None:
    """Do the same in the type of `s`, without ever holding the couplings in that type.

    A CPU takes some rows at a time, which stay in its cache; a GPU as many networks as a block has,
    so that its operations are few.
    """
    n, device = matrices.shape[1], matrices.device.type
    most = _BLOCK if device == "cpu" else _GPU_BLOCK
    if device != "cpu" and n * n <= most:
        for here, there in runs(active, len(matrices), most // (n * n)):
            blocks = matrices[there].to(s.dtype).mT
            if accumulate:
                out[here].baddbmm_(s[here], blocks)
            else:
                torch.bmm(s[here], blocks, out=out[here])
        return
    step = max(1, most // n)
    for place, sample in enumerate(range(len(matrices)) if active is None else active):
        for first in range(0, n, step):
            block = matrices[sample, first : first + step].to(s.dtype)
            target = out[place, :, first : first + step]
            if accumulate:
                target.addmm_(s[place], block.T)
            else:
                torch.mm(s[place], block.T, out=target)


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

    has_columns = True

    def columns_of(self, sample: int, last: Columns | None = None) -> Columns:
        """Return the entries of one network by columns."""
        return self.rows.columns_of(sample)

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


def draw(
    network: Network,
    seed: int = 0,
    samples: int | range = 1,
    *,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device = "cpu",
) -> DenseChain | DilutedChain:
    """Draw the couplings of disorder samples: dense ones, or compressed rows if rho < 1.

    Sample k depends on the seed and on k only, and is the same in float32 and float64. A network
    with couplings of your own has these as its only sample.

    Parameters
    ----------
    network : Network
        The ensemble, or couplings of your own (:meth:`Network.from_array`).
    seed : int
        Seed of the disorder.
    samples : int or range
        How many disorder samples, or which ones.
    dtype, device
        Precision and place. A GPU has its own generator, and so its own samples.

    Examples
    --------
    >>> import rmsim as rs
    >>> couplings = rs.draw(rs.Network(100, rs.Chain(2, jd=0.1, lam=0.5)), seed=0, samples=3)
    >>> couplings.samples, couplings.layers, couplings.n
    (3, 2, 100)
    >>> tuple(couplings.matrices.shape)
    (3, 2, 100, 100)
    """
    number, chosen = checked_seed(seed), sample_numbers(samples)
    kind, place = choose_dtype(dtype), choose_device(device)
    if network.rho == 1:
        return draw_dense(network, number, chosen, dtype=kind, device=place)
    return draw_diluted(network, number, chosen, dtype=kind, device=place)


def sample_numbers(samples: int | range) -> range:
    """Return the numbers of the disorder samples: the first `samples`, or a range of them.

    Examples
    --------
    >>> sample_numbers(3), sample_numbers(range(5, 7))
    (range(0, 3), range(5, 7))
    """
    chosen = samples if isinstance(samples, range) else range(checks.integer("samples", samples, 1))
    if len(chosen) == 0 or chosen.step != 1 or chosen.start < 0:
        raise InvalidInputError("samples", str(chosen), "a range of samples, step 1, from 0 on")
    return chosen
