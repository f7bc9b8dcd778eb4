r"""Any topology: over layers by random blocks, over neurons by an adjacency matrix.

Over layers, random blocks and homologous couplings between any two of them:

.. math:: h^a_i = J_D s^a_i + \sum_b \Big(\sum_j J^{ab}_{ij} s^b_j + \Lambda_{ab} s^b_i\Big),
    \qquad J^{ab}_{ij} \sim \mathcal N(0, R_{ab}^2/N), \quad J^{aa}_{ii} = 0

R is `random`, Lambda is `identity`. The paper's chain has R = 1 on the diagonal and Lambda on the
two diagonals beside it; its 'fully connected' chain has R on all three.

Over neurons, by an adjacency matrix A (paper, eq. general-topology-update):

.. math:: h_i = \sum_j A_{ij} J_{ij} s_j + J_D s_i, \qquad A_{ij} \in \{0, 1\}, \quad A_{ii} = 0

The paper leaves the variance of J open; ours is 1/(rho N), N neurons in all and rho the density of
A off its diagonal, so that a full A is the core module.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from rmsim.couplings.chains import MatrixCouplings, fill_random, multiply
from rmsim.couplings.rows import CompressedRows, SparseCouplings, compressed
from rmsim.tensors import fill_normal_, generator
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError

Matrix = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Topology:
    """Which layers act on which.

    Parameters
    ----------
    random : square matrix
        random[a][b] is the scale of the random block from layer b on layer a; 0 means none.
    identity : square matrix
        identity[a][b] couples homologous neurons; its diagonal is 0, since J_D is given apart.

    Examples
    --------
    >>> Topology.chain(3, 0.5, 0.25).identity
    ((0.0, 0.25, 0.0), (0.5, 0.0, 0.25), (0.0, 0.5, 0.0))
    >>> Topology.fully_connected_chain(2, 0.1).random
    ((1.0, 0.1), (0.1, 1.0))
    """

    random: Matrix
    identity: Matrix

    def __post_init__(self) -> None:
        for name in ("random", "identity"):
            object.__setattr__(self, name, _square(name, getattr(self, name)))
        if len(self.random) != len(self.identity):
            size = f"of {len(self.random)} rows, as many as random"
            raise InvalidInputError("identity", f"{len(self.identity)} rows", size)
        for index, row in enumerate(self.random):
            for value in row:
                if value < 0:
                    raise InvalidInputError("random", value, "scales >= 0")
            if self.identity[index][index] != 0:
                allowed = "zero on its diagonal, where jd acts"
                raise InvalidInputError("identity", self.identity[index][index], allowed)

    @property
    def layers(self) -> int:
        """Number of layers L."""
        return len(self.random)

    @property
    def places(self) -> list[tuple[int, int]]:
        """(a, b) of the random blocks, from layer b on layer a, row by row."""
        count = range(self.layers)
        return [(a, b) for a in count for b in count if self.random[a][b] > 0]

    @classmethod
    def chain(cls, layers: int, lam_left: float, lam_right: float) -> Topology:
        """Return the paper's chain."""
        count = range(checks.integer("layers", layers, 1))
        beside = {-1: float(lam_left), 1: float(lam_right)}
        return cls(
            [[float(a == b) for b in count] for a in count],
            [[beside.get(b - a, 0.0) for b in count] for a in count],
        )

    @classmethod
    def fully_connected_chain(cls, layers: int, between: float) -> Topology:
        """Return the block-tridiagonal chain: random blocks of scale `between` join neighbours."""
        count = range(checks.integer("layers", layers, 1))
        scales = {0: 1.0, -1: float(between), 1: float(between)}
        return cls(
            [[scales.get(b - a, 0.0) for b in count] for a in count],
            [[0.0 for _ in count] for _ in count],
        )

    def with_skip(
        self, source: int, target: int, *, random: float = 0.0, identity: float = 0.0
    ) -> Topology:
        """Return this topology with couplings from layer `source` on layer `target` set as given.

        Layers count from 0.
        """
        rows = {"random": random, "identity": identity}
        changed = {name: [list(row) for row in getattr(self, name)] for name in rows}
        for name, value in rows.items():
            for argument, layer in (("source", source), ("target", target)):
                checks.integer(argument, layer, 0, self.layers - 1)
            changed[name][target][source] = value
        return Topology(**changed)


def _square(name: str, given: Matrix) -> tuple[tuple[float, ...], ...]:
    matrix = tuple(tuple(checks.coupling(name, x) for x in row) for row in given)
    if not matrix or any(len(row) != len(matrix) for row in matrix):
        raise InvalidInputError(name, f"{len(matrix)} rows", "a square matrix over the layers")
    return matrix


@dataclass(frozen=True, eq=False)
class BlockCouplings(MatrixCouplings):
    """Couplings of `samples` networks of one topology.

    Parameters
    ----------
    topology : Topology
        Which layers act on which.
    matrices : Tensor, (samples, blocks, n, n)
        The random blocks, in the order of `topology.places`.
    jd : float
        Self-coupling.
    """

    topology: Topology
    matrices: torch.Tensor
    jd: float

    @property
    def layers(self) -> int:
        """Number of layers L."""
        return self.topology.layers

    @property
    def blocks(self) -> dict[tuple[int, int], torch.Tensor]:
        """(a, b) -> J of shape (samples, n, n), from layer b on layer a."""
        places = enumerate(self.topology.places)
        return {place: self.matrices[:, index] for index, place in places}

    def _multiply(
        self, s: torch.Tensor, out: torch.Tensor, active: Sequence[int] | None, layer: int | None
    ) -> None:
        out.zero_()
        for (a, b), block in self.blocks.items():
            if layer in (None, a):
                target = out[:, :, a] if layer is None else out
                multiply(block, s[:, :, b], target, active, accumulate=True)
        self._add_self(out, s, layer)

    def _add_other_layers(self, out: torch.Tensor, s: torch.Tensor, layer: int | None) -> None:
        for a in range(self.layers) if layer is None else (layer,):
            target = out[:, :, a] if layer is None else out
            for b, value in enumerate(self.topology.identity[a]):
                if value != 0:
                    target.add_(s[:, :, b], alpha=value)


def draw_blocks(
    topology: Topology,
    n: int,
    jd: float,
    seed: int,
    samples: range,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> BlockCouplings:
    """Draw the couplings of the disorder `samples`; network k depends on (seed, k) only.

    The plain chain gives the very numbers of :func:`rmsim.couplings.chains.draw_dense`.
    """
    size, jd = checks.integer("n", n, 2), checks.coupling("jd", jd)
    places = topology.places
    shape = (len(samples), len(places), size, size)
    matrices = torch.empty(shape, dtype=dtype, device=device)
    for index, sample in enumerate(samples):
        stream = generator(seed, sample, 0, device=device)
        for (a, b), matrix in zip(places, matrices[index], strict=True):
            fill_random(matrix, topology.random[a][b], stream)
            if a == b:
                matrix.fill_diagonal_(0)
    return BlockCouplings(topology, matrices, jd)


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
    return AdjacencyCouplings(rows, checks.coupling("jd", jd), layers)
