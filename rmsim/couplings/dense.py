r"""Dense couplings of a chain of core modules (paper, eqs. core-module and chain).

.. math:: h^l_i = \sum_{j\ne i} J^l_{ij} s^l_j + J_D s^l_i + \lambda_L s^{l-1}_i
    + \lambda_R s^{l+1}_i, \qquad J^l_{ij} \sim \mathcal N(0, 1/N)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from rmsim.couplings.local import add_chain_terms, add_external, checked_coupling
from rmsim.couplings.products import multiply
from rmsim.couplings.protocol import field_out
from rmsim.device import memory_of
from rmsim.network import Network
from rmsim.randomness import fill_normal_, generator
from rmtheory.errors import InvalidInputError

#: Side of the square blocks by which a matrix is made symmetric in place.
_SIDE = 256


@dataclass(frozen=True, eq=False)
class DenseChain:
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
        for name in ("jd", "lam_left", "lam_right"):
            object.__setattr__(self, name, checked_coupling(name, getattr(self, name)))

    @property
    def samples(self) -> int:
        """Number of networks."""
        return self.matrices.shape[0]

    @property
    def layers(self) -> int:
        """Number of layers L."""
        return self.matrices.shape[1]

    @property
    def n(self) -> int:
        """Neurons a layer."""
        return self.matrices.shape[2]

    @property
    def dtype(self) -> torch.dtype:
        """Type of the couplings."""
        return self.matrices.dtype

    @property
    def device(self) -> torch.device:
        """Where the couplings live."""
        return self.matrices.device

    @property
    def nbytes(self) -> int:
        """Memory of the couplings."""
        return self.matrices.nbytes

    def field(
        self,
        s: torch.Tensor,
        external: torch.Tensor | None = None,
        *,
        active: Sequence[int] | None = None,
        layer: int | None = None,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return h; see :meth:`rmsim.couplings.protocol.Couplings.field`."""
        out = field_out(self, s, active, layer, out)
        for index in range(self.layers) if layer is None else (layer,):
            target = out[:, :, index] if layer is None else out
            multiply(self.matrices[:, index], s[:, :, index], target, active)
        add_chain_terms(out, s, self.jd, self.lam_left, self.lam_right, layer)
        add_external(out, s, external, layer)
        return out


def draw_dense(
    network: Network,
    seed: int,
    samples: range,
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
    for first in range(0, len(matrix), _SIDE):
        last = first + _SIDE
        corner = matrix[first:last, first:last]
        corner.copy_((corner + corner.T) * factor)
        for start in range(last, len(matrix), _SIDE):
            upper = matrix[first:last, start : start + _SIDE]
            lower = matrix[start : start + _SIDE, first:last]
            upper.add_(lower.T).mul_(factor)
            lower.copy_(upper.T)
