r"""The products of message passing: J m, J^T g, and those with the squares of the couplings.

.. math:: V_i = \sum_j J_{ij}^2 (1 - m_j^2), \qquad \sum_i J_{ij}^2 g'_i .

The squares are taken either exactly, by two more products an iteration and twice the memory, or as
the matrix of rank one that has their row and column sums,
:math:`J_{ij}^2 \approx R_i C_j / \sum_{kl} J_{kl}^2`, in O(N): exact at m = 0, and off by
O(1/sqrt N) elsewhere. Both are the derivatives of one function of m, so that the free entropy is
stationary in either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import torch

from rmsim.couplings.dense import DenseChain
from rmsim.couplings.products import multiply, runs
from rmtheory.errors import InvalidInputError

#: How the squares of the couplings are taken.
Variances = Literal["rank-one", "exact"]


class Products:
    """Products with the couplings of some networks; `active` tells which networks they are.

    Parameters
    ----------
    couplings : DenseChain
        Dense couplings, independent of each other: J_ij and J_ji must not be equal.
    variances : str
        ``rank-one`` or ``exact``.
    """

    def __init__(self, couplings: DenseChain, variances: str = "rank-one") -> None:
        if not isinstance(couplings, DenseChain):
            raise InvalidInputError("couplings", type(couplings).__name__, "dense (rho = 1)")
        if variances not in get_args(Variances):
            allowed = f"one of {', '.join(get_args(Variances))}"
            raise InvalidInputError("variances", variances, allowed)
        self.couplings = couplings
        matrices = couplings.matrices
        self._squares = matrices.square() if variances == "exact" else None
        if self._squares is None:
            rows, columns = (
                torch.linalg.vector_norm(matrices, dim=axis).square_() for axis in (-1, -2)
            )
            scale = rows.sum(-1, keepdim=True).clamp(min=torch.finfo(rows.dtype).tiny).rsqrt()
            self._rows, self._columns = rows * scale, columns * scale

    def forward(self, m: torch.Tensor, active: Sequence[int] | None = None) -> torch.Tensor:
        """Return J m, of shape (samples, layers, n) as m."""
        return _product(self.couplings.matrices, m, active, transposed=False)

    def backward(self, g: torch.Tensor, active: Sequence[int] | None = None) -> torch.Tensor:
        """Return J^T g."""
        return _product(self.couplings.matrices, g, active, transposed=True)

    def spread(self, x: torch.Tensor, active: Sequence[int] | None = None) -> torch.Tensor:
        """Return the sums of J_ij^2 x_j over j."""
        if self._squares is not None:
            return _product(self._squares, x, active, transposed=False)
        rows, columns = self._sides(active)
        return rows * (columns * x).sum(-1, keepdim=True)

    def spread_back(self, y: torch.Tensor, active: Sequence[int] | None = None) -> torch.Tensor:
        """Return the sums of J_ij^2 y_i over i."""
        if self._squares is not None:
            return _product(self._squares, y, active, transposed=True)
        rows, columns = self._sides(active)
        return columns * (rows * y).sum(-1, keepdim=True)

    def _sides(self, active: Sequence[int] | None) -> tuple[torch.Tensor, torch.Tensor]:
        if active is None:
            return self._rows, self._columns
        # By slices: a list of numbers would have to be sent to the device first.
        parts = [there for _, there in runs(active, len(self._rows))]
        rows, columns = (
            torch.cat([x[part] for part in parts]) for x in (self._rows, self._columns)
        )
        return rows, columns


def _product(
    matrices: torch.Tensor, x: torch.Tensor, active: Sequence[int] | None, *, transposed: bool
) -> torch.Tensor:
    """Multiply all layers of consecutive networks at once: single rows use one thread each."""
    out, n = torch.empty_like(x), x.shape[-1]
    for here, there in runs(active, len(matrices)):
        blocks = matrices[there].flatten(0, 1)
        if transposed:
            blocks = blocks.transpose(1, 2)
        multiply(blocks, x[here].reshape(-1, 1, n), out[here].view(-1, 1, n), None)
    return out
