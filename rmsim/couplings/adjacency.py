r"""Any topology over neurons, by an adjacency matrix A (paper, eq. general-topology-update).

.. math:: h_i = \sum_j A_{ij} J_{ij} s_j + J_D s_i, \qquad A_{ij} \in \{0, 1\}, \quad A_{ii} = 0

The paper leaves the variance of J open; ours is 1/(rho N), N neurons in all and rho the density of
A off its diagonal, so that a full A is the core module.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from rmsim.couplings.base import checked_coupling
from rmsim.couplings.rows import CompressedRows, SparseCouplings, compressed
from rmsim.randomness import fill_normal_, generator
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class AdjacencyCouplings(SparseCouplings):
    """Couplings of `samples` networks with one adjacency matrix.

    Parameters
    ----------
    rows : CompressedRows
        Entries where A = 1, in one group of layers * n neurons.
    jd : float
        Self-coupling.
    layers : int
        Layers into which the neurons are divided, for layer-sequential updates.
    """

    rows: CompressedRows
    jd: float
    layers: int = 1

    def __post_init__(self) -> None:
        layers = checks.integer("layers", self.layers, 1)
        if self.rows.groups != 1 or self.rows.size % layers:
            allowed = f"a divisor of the {self.rows.size} neurons"
            raise InvalidInputError("layers", self.layers, allowed)

    @property
    def n(self) -> int:
        """Neurons per layer."""
        return self.rows.size // self.layers

    def _multiply(
        self, s: torch.Tensor, out: torch.Tensor, active: Sequence[int] | None, layer: int | None
    ) -> None:
        flat = s.contiguous().flatten(2).unsqueeze(2)
        rows = None if layer is None else (layer * self.n, (layer + 1) * self.n)
        self.rows.multiply(flat, out.flatten(2).unsqueeze(2), active, rows=rows, jd=self.jd)

    def to_dense(self) -> torch.Tensor:
        """Return the matrices over all neurons, (samples, N, N)."""
        return torch.stack([self.dense_blocks(k)[0] for k in range(self.samples)])


def couplings_on(
    adjacency: torch.Tensor, values: torch.Tensor, jd: float, *, layers: int = 1
) -> AdjacencyCouplings:
    """Return given couplings on an adjacency matrix.

    Parameters
    ----------
    adjacency : Tensor, (N, N)
        A, of zeros and ones, with a zero diagonal; A[i, j] = 1 lets neuron j act on neuron i.
    values : Tensor, (samples, N, N)
        J; read where A = 1 only.
    jd : float
        Self-coupling.
    layers : int
        Layers into which the neurons are divided.
    """
    pattern = checked_adjacency(adjacency)
    if values.dim() != 3 or values.shape[1:] != pattern.shape or not values.is_floating_point():
        allowed = f"a floating point tensor of shape (samples, {len(pattern)}, {len(pattern)})"
        raise InvalidInputError("values", str(tuple(values.shape)), allowed)
    chosen = values[:, pattern.to(values.device)]
    if not bool(chosen.isfinite().all()):
        raise InvalidInputError("values", "a number that is not finite", "finite")
    return _build(pattern, chosen, jd, layers)


def draw_on(
    adjacency: torch.Tensor,
    jd: float,
    seed: int,
    samples: range,
    *,
    layers: int = 1,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> AdjacencyCouplings:
    """Draw couplings where `adjacency` is 1; network k depends on (seed, k) only."""
    pattern = checked_adjacency(adjacency)
    neurons, count = len(pattern), int(pattern.sum())
    rho = count / (neurons * (neurons - 1))
    deviation = 1 / math.sqrt(rho * neurons) if count else 0.0
    values = torch.empty((len(samples), count), dtype=dtype, device=device)
    for index, sample in enumerate(samples):
        fill_normal_(values[index], deviation, generator(seed, sample, 0, device=device))
    return _build(pattern, values, jd, layers)


def checked_adjacency(adjacency: torch.Tensor) -> torch.Tensor:
    """Return A as booleans; refuse what is not a square matrix of zeros and ones."""
    shape = tuple(adjacency.shape)
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 2:
        raise InvalidInputError("adjacency", str(shape), "a square matrix over the neurons")
    pattern = adjacency != 0
    if not bool(((adjacency == 1) | ~pattern).all()):
        raise InvalidInputError("adjacency", "other entries", "of zeros and ones")
    if bool(pattern.diagonal().any()):
        allowed = "zero on its diagonal, where jd acts"
        raise InvalidInputError("adjacency", "a diagonal entry of 1", allowed)
    return pattern


def _build(
    pattern: torch.Tensor, values: torch.Tensor, jd: float, layers: int
) -> AdjacencyCouplings:
    bounds, columns = (x.to(values.device) for x in compressed(pattern))
    rows = CompressedRows(
        bounds, columns, values.contiguous().flatten(), len(values), 1, len(pattern), shared=True
    )
    return AdjacencyCouplings(rows, checked_coupling("jd", jd), layers)
