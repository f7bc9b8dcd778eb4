r"""Weights from input or label to neurons, :math:`f_{bi} = \sum_k W_{ik} x_{bk}`.

Dense, or compressed rows if only a few entries exist; absent entries are never touched.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from rmsim.randomness import fill_normal_

#: Products formed at a time when the entries of compressed rows learn.
_PRODUCTS = 2**22


@dataclass(frozen=True, eq=False)
class Projection:
    """A matrix of `shape` (neurons, inputs).

    Parameters
    ----------
    values : Tensor
        The matrix, or the values of its entries if there are `bounds` and `columns`.
    shape : (int, int)
        Rows and columns.
    bounds, columns : Tensor, optional
        Beginning of each row among the entries, and the end, int64; column of each, int32.
    """

    values: torch.Tensor
    shape: tuple[int, int]
    bounds: torch.Tensor | None = None
    columns: torch.Tensor | None = None

    @property
    def nbytes(self) -> int:
        """Memory of the weights and of their places."""
        parts = (self.values, self.bounds, self.columns)
        return sum(part.nbytes for part in parts if part is not None)

    @cached_property
    def _sparse(self) -> torch.Tensor:
        """The entries as a sparse tensor of torch, which shares the values."""
        assert self.bounds is not None
        assert self.columns is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # 'beta state'; our rows are sorted
            return torch.sparse_csr_tensor(
                self.bounds.to(torch.int32),
                self.columns,
                self.values,
                self.shape,
                check_invariants=False,
            )

    @cached_property
    def _row_of_entry(self) -> torch.Tensor:
        assert self.bounds is not None
        return rows_of_entries(self.bounds)

    def field(self, x: torch.Tensor) -> torch.Tensor:
        """Return W x for each sample of `x`, (samples, columns)."""
        if self.bounds is None:
            return x @ self.values.T
        if not len(self.values):
            return x.new_zeros((len(x), self.shape[0]))
        return (self._sparse @ x.T).T.contiguous()

    def reinforce_(self, post: torch.Tensor, pre: torch.Tensor, rate: float) -> None:
        """Add ``rate * sum over samples of post_i pre_k`` to the entries that exist.

        Parameters
        ----------
        post, pre : Tensor, (samples, rows), (samples, columns)
            Signals of the neurons and of what they see.
        rate : float
            Factor of the sum.
        """
        if self.bounds is None:
            self.values.addmm_(post.T, pre, alpha=rate)
        else:
            assert self.columns is not None
            product = entry_products(self._row_of_entry, self.columns, post, pre)
            self.values.add_(product, alpha=rate)

    def copy(self) -> Projection:
        """Return the same weights in a memory of their own."""
        return replace(self, values=self.values.clone())

    def to_dense(self) -> torch.Tensor:
        """Return the matrix, zeros included."""
        return self.values if self.bounds is None else self._sparse.to_dense()


def rows_of_entries(bounds: torch.Tensor) -> torch.Tensor:
    """Return the row of each entry of compressed rows.

    Examples
    --------
    >>> rows_of_entries(torch.tensor([0, 2, 2, 3])).tolist()
    [0, 0, 2]
    """
    rows = torch.arange(len(bounds) - 1, device=bounds.device)
    return rows.repeat_interleave(bounds.diff())


def entry_products(
    rows: torch.Tensor, columns: torch.Tensor, post: torch.Tensor, pre: torch.Tensor
) -> torch.Tensor:
    """Return the sum over samples of ``post[:, row] * pre[:, column]`` for each entry."""
    post, pre = post.T.contiguous(), pre.T.contiguous()
    step = max(1, _PRODUCTS // max(1, post.shape[1]))
    found = post.new_empty(len(rows))
    for first in range(0, len(rows), step):
        part = slice(first, first + step)
        found[part] = (post[rows[part]] * pre[columns[part]]).sum(1)
    return found


def draw_projection(
    rows: torch.Tensor,
    columns: int,
    strength: float,
    density: float,
    stream: torch.Generator,
    *,
    dtype: torch.dtype,
) -> Projection:
    """Draw W ~ strength N(0, 1/(rho columns)) with probability rho, on the `rows` chosen."""
    shape = (len(rows), columns)
    deviation = strength / math.sqrt(density * columns)
    device = rows.device
    if density == 1:
        values = torch.zeros(shape, dtype=dtype, device=device)
        drawn = torch.empty((int(rows.sum()), columns), dtype=dtype, device=device)
        fill_normal_(drawn, deviation, stream)
        values[rows] = drawn
        return Projection(values, shape)
    present = torch.rand(shape, generator=stream, device=device) < density
    present &= rows.unsqueeze(1)
    values = torch.empty(int(present.sum()), dtype=dtype, device=device)
    fill_normal_(values, deviation, stream)
    return Projection(values, shape, *compressed(present))


def identity_projection(
    rows: torch.Tensor, layers: int, strength: float, *, dtype: torch.dtype
) -> Projection:
    """Return the projection by which neuron i of a layer sees ``strength * x_i``."""
    n = len(rows) // layers
    columns = torch.arange(n, dtype=torch.int32, device=rows.device).repeat(layers)[rows]
    values = torch.full((len(columns),), strength, dtype=dtype, device=rows.device)
    bounds = torch.cat((rows.new_zeros(1, dtype=torch.int64), rows.cumsum(0)))
    return Projection(values, (len(rows), n), bounds, columns)


def compressed(present: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return bounds and columns of the entries of a matrix that are True.

    Examples
    --------
    >>> bounds, columns = compressed(torch.tensor([[True, False], [True, True]]))
    >>> bounds.tolist(), columns.tolist()
    ([0, 1, 3], [0, 0, 1])
    """
    counts = present.sum(1)
    bounds = torch.cat((counts.new_zeros(1), counts.cumsum(0)))
    return bounds, present.nonzero()[:, 1].to(torch.int32)
