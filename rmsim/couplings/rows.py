r"""Sparse couplings as compressed rows, for many networks at once.

Row i of network k holds the entries e of a range of `columns` and `values`:
:math:`h_i = \sum_e v_e s_{c(e)}`. A network has `groups` blocks of `size` rows, one a layer, whose
columns count within the block; couplings between layers make one group of all neurons. Memory is
8 bytes an entry (float32), never n^2.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from rmsim.couplings import kernels
from rmsim.threads import run_parts, shares, thread_count

#: Multiplications worth a thread of their own; handing over a task costs some 50 microseconds.
_GRAIN = 2**21


@dataclass(frozen=True, eq=False)
class CompressedRows:
    """Entries of the matrices of `samples` networks.

    Parameters
    ----------
    bounds : Tensor, int64
        Beginning of each row among the entries, over samples, groups and rows, and the end.
    columns : Tensor, int32
        Column of each entry.
    values : Tensor
        Value of each entry, over samples first if the pattern is `shared`.
    samples, groups, size : int
        Networks, blocks a network, rows a block.
    shared : bool
        Whether all networks have the pattern of the first, so that it is stored once.
    """

    bounds: torch.Tensor
    columns: torch.Tensor
    values: torch.Tensor
    samples: int
    groups: int
    size: int
    shared: bool = False

    @property
    def nbytes(self) -> int:
        """Memory of all three."""
        return self.bounds.nbytes + self.columns.nbytes + self.values.nbytes

    @cached_property
    def _block_ends(self) -> list[int]:
        """Where each block begins among the entries, on the host: asked of the device once."""
        found: list[int] = self.bounds[:: self.size].tolist()
        return found

    @cached_property
    def _blocks(self) -> dict[tuple[int, int], torch.Tensor]:
        """Blocks as sparse tensors, made once; they share columns and values with the rows."""
        places = [(k, group) for k in range(self.samples) for group in range(self.groups)]
        return {place: self.sparse(*place) for place in places}

    def entries(self, sample: int, group: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return (bounds from 0, columns, values) of one block, as torch's compressed rows."""
        network = 0 if self.shared else sample
        origin = (network * self.groups + group) * self.size
        bounds = self.bounds[origin : origin + self.size + 1]
        block = network * self.groups + group
        first, last = self._block_ends[block], self._block_ends[block + 1]
        shift = sample * len(self.columns) if self.shared else 0
        values = self.values[first + shift : last + shift]
        return (bounds - first).to(torch.int32), self.columns[first:last], values

    def sparse(self, sample: int, group: int) -> torch.Tensor:
        """Return one block as a sparse tensor of torch."""
        bounds, columns, values = self.entries(sample, group)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # 'beta state'; our rows are sorted
            return torch.sparse_csr_tensor(
                bounds, columns, values, (self.size, self.size), check_invariants=False
            )

    def multiply(
        self,
        s: torch.Tensor,
        out: torch.Tensor,
        active: Sequence[int] | None,
        group: int | None = None,
        rows: tuple[int, int] | None = None,
        jd: float = 0.0,
    ) -> None:
        """Write the products into `out`.

        Parameters
        ----------
        s : Tensor, (active samples, starts, groups, size)
            States.
        out : Tensor, (active samples, starts, groups done, rows done)
            Products; both tensors are contiguous.
        active : sequence of int, optional
            The networks of `s`; all by default.
        group : int, optional
            Do this group only.
        rows : (int, int), optional
            Do these rows of each group only.
        jd : float
            Diagonal entry of every row, beyond those stored.
        """
        chosen = range(self.samples) if active is None else active
        route = self._multiply_compiled if s.device.type == "cpu" else self.multiply_torch
        route(s, out, chosen, group or 0, rows or (0, self.size), jd)

    def multiply_torch(
        self,
        s: torch.Tensor,
        out: torch.Tensor,
        chosen: Sequence[int],
        first_group: int,
        rows: tuple[int, int],
        jd: float = 0.0,
    ) -> None:
        """Do it by torch's sparse product, the route of a GPU; slower than ours on a CPU."""
        for here, sample in enumerate(chosen):
            for index in range(out.shape[2]):
                group = first_group + index
                block = self._blocks[sample, group]
                if block.dtype != s.dtype:  # margins in float64, not in the loop over sweeps
                    block = block.to(s.dtype)
                product = block @ s[here, :, group].T
                out[here, :, index].copy_(product[rows[0] : rows[1]].T)
        done = slice(first_group, first_group + out.shape[2])
        out.add_(s[:, :, done, slice(*rows)], alpha=jd)

    def _multiply_compiled(
        self,
        s: torch.Tensor,
        out: torch.Tensor,
        chosen: Sequence[int],
        first_group: int,
        rows: tuple[int, int],
        jd: float = 0.0,
    ) -> None:
        places = np.zeros((len(chosen), 2), np.int64)
        if self.shared:
            places[:, 1] = np.asarray(chosen) * len(self.columns)
        else:
            places[:, 0] = np.asarray(chosen) * (self.groups * self.size)
        if not out.numel():
            return
        blocks = -(-out.shape[1] // kernels.WIDE)
        height = rows[1] - rows[0]
        total = len(chosen) * out.shape[2] * blocks * height
        entries = len(self.columns) / (len(self.bounds) - 1)
        threads = thread_count(total * entries * out.shape[1] / blocks, _GRAIN)
        arrays = (
            self.bounds.numpy(),
            self.columns.numpy().view(np.uint32),
            self.values.numpy(),
            s.numpy().dtype.type(jd),
            places,
            s.numpy(),
            out.numpy(),
        )
        place = np.array([*rows, first_group])
        parts = [(*arrays, np.array(part), place) for part in shares(total, threads)]
        run_parts(kernels.product_tasks, parts)
