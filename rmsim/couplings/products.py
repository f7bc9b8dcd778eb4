r"""Batched products with dense blocks, :math:`h_{ki} = \sum_j J_{kij} s_{kj}` for every network k.

One batched GEMM for each run of consecutive networks: finished networks are left out without a
copy of the couplings of the others. Written as s J^T it beats J s and a loop of GEMVs at every
size, also for a single start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

#: Entries of a block of rows that is turned to float64 at a time, half a megabyte.
_BLOCK = 2**16


def runs(active: Sequence[int] | None, samples: int) -> Iterator[tuple[slice, slice]]:
    """Give each run of consecutive networks as (slice of the states, slice of the couplings).

    Examples
    --------
    >>> list(runs([0, 1, 4], 5))
    [(slice(0, 2, None), slice(0, 2, None)), (slice(2, 3, None), slice(4, 5, None))]
    """
    if active is None:
        yield slice(0, samples), slice(0, samples)
        return
    start = 0
    for end in range(1, len(active) + 1):
        if end == len(active) or active[end] != active[end - 1] + 1:
            first = active[start]
            yield slice(start, end), slice(first, first + end - start)
            start = end


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
    """Do the same in the type of `s`, without ever holding the couplings in that type."""
    n = matrices.shape[1]
    step = max(1, _BLOCK // n)
    for here, sample in enumerate(range(len(matrices)) if active is None else active):
        for first in range(0, n, step):
            block = matrices[sample, first : first + step].to(s.dtype)
            target = out[here, :, first : first + step]
            if accumulate:
                target.addmm_(s[here], block.T)
            else:
                torch.mm(s[here], block.T, out=target)
