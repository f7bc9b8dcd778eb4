r"""The theory of the dynamics sampled on a device of torch, a GPU above all.

:func:`rmtheory.mean_field` carries M copies of the effective process forward,

.. math:: \phi(t) = \sum_{k \le t} A_{tk} z_k, \qquad
    C(t,t') = \frac1M \sum_{m=1}^M s_m(t) s_m(t'),

with the Cholesky factor A of C: work of order :math:`T^2 M`, in products of a row with all normal
numbers so far. The recursion is rmtheory's; here is where its copies are kept
(:class:`rmtheory.dynamics.process.Arrays`). Random numbers are those of torch, so that a seed gives
other samples than numpy's, of the same law. States are kept as bytes, and C by sums of products of
them, exact: torch counts no bits. The host reads results once per batch, not in every sweep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rmsim.tensors import choose_device, fill_normal_, generator
from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.dynamics.averages import LEAST_TRAJECTORIES, MOST_SWEEPS, MeanField
from rmtheory.dynamics.averages import mean_field as sampled
from rmtheory.dynamics.process import Arrays, Memory

__all__ = ["mean_field"]


class _Bytes(Memory):
    """States as bytes +-1."""

    def __init__(self, sweeps: int, copies: int, device: torch.device) -> None:
        self._states = torch.zeros((sweeps, copies), dtype=torch.int8, device=device)

    def correlation(self, t: int, s: torch.Tensor) -> torch.Tensor:
        """Sums of products, in whole numbers."""
        self._states[t] = s
        products = self._states[: t + 1] * s
        return products.sum(1, dtype=torch.int64).double() / self._states.shape[1]


class TensorArrays(Arrays):
    """Tensors on one device, with the random numbers of one child of a seed."""

    def __init__(self, sequence: np.random.SeedSequence, device: torch.device) -> None:
        seed, address = sequence.entropy, sequence.spawn_key
        self._device = device
        self._stream = generator(int(seed), *address, device=device)  # type: ignore[arg-type]

    def spins(self, shape: tuple[int, int]) -> torch.Tensor:
        """Return independent states."""
        drawn = torch.randint(2, shape, generator=self._stream, device=self._device)
        return (2 * drawn - 1).to(torch.int8)

    def normal_(self, out: torch.Tensor) -> None:
        """Fill in single precision."""
        fill_normal_(out, 1.0, self._stream)

    def uniform(self, shape: tuple[int, int]) -> torch.Tensor:
        """Return numbers from 0 to 1."""
        return torch.rand(shape, generator=self._stream, device=self._device)

    def zeros(self, shape: tuple[int, ...], *, double: bool = False) -> torch.Tensor:
        """Return zeros."""
        dtype = torch.float64 if double else torch.float32
        return torch.zeros(shape, dtype=dtype, device=self._device)

    def single(self, values: torch.Tensor) -> torch.Tensor:
        """Return `values` in single precision."""
        return values.to(torch.float32)

    def stack(self, rows: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the rows as one tensor."""
        return torch.stack(list(rows))

    def where(self, chosen: torch.Tensor, yes: Any, no: Any) -> torch.Tensor:
        """Return `yes` or `no`."""
        return torch.where(chosen, yes, no)

    def mean(self, values: torch.Tensor) -> torch.Tensor:
        """Return the mean, still on the device."""
        return values.mean(dtype=torch.float64)

    def solve(self, lower: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """Solve on the device."""
        solved: torch.Tensor = torch.linalg.solve_triangular(lower, right[:, None], upper=False)
        return solved[:, 0]

    def memory(self, sweeps: int, copies: int) -> Memory:
        """Return room for bytes."""
        return _Bytes(sweeps, copies, self._device)

    def read(self, values: torch.Tensor) -> NDArray[Any]:
        """Wait for the device."""
        return np.asarray(values.cpu().numpy())


def mean_field(
    chain: Chain,
    sweeps: int = 300,
    *,
    p: float = 1.0,
    trajectories: int = 100_000,
    seed: int = 0,
    correlation: bool = False,
    device: str | torch.device = "auto",
) -> MeanField:
    """Return the averages of the dynamics for N -> infinity, sampled on a device.

    Parameters
    ----------
    chain, sweeps, p, trajectories, seed, correlation
        As :func:`rmtheory.mean_field` has them, and so is what is returned.
    device : str or torch.device
        auto, cpu, cuda, ...; ``auto`` is the GPU if there is one and the copies are enough for it.

    Examples
    --------
    >>> import rmsim as rs
    >>> chain = rs.Chain(1, jd=0.5)
    >>> result = rs.studies.mean_field(chain, sweeps=3, trajectories=20_000, device="cpu")
    >>> abs(result.overlap_with_start[0].value - 0.3829) < 0.02  # 2 P(1/2) - 1
    True
    """
    count = checks.integer("sweeps", sweeps, 1, MOST_SWEEPS)
    copies = checks.integer("trajectories", trajectories, LEAST_TRAJECTORIES)
    # Half of the sweeps, on average, times the copies of one of eight batches.
    place = choose_device(device, count / 2 * copies / 8)
    return sampled(
        chain,
        count,
        p=p,
        trajectories=copies,
        seed=seed,
        correlation=correlation,
        arrays=lambda sequence: TensorArrays(sequence, place),
    )
