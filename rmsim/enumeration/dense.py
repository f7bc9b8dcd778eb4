r"""All fixed points by one product after another: K times blocks of states, on any device.

.. math:: m_t = J_D + s_t (K s)_t \quad\text{for the } 2^{M-1} \text{ states with } s_{M} = +1.

It visits every state: on one core branch and bound was faster at every size measured. It
suits a GPU. Products in float32 only sort out states with a margin clearly below zero; the rest
are judged in float64 by :func:`kernels.fixed_point`, and the count is exact.
"""

from __future__ import annotations

import numpy as np
import torch

from rmsim.enumeration.branch_and_bound import TooManyStatesError
from rmsim.enumeration.kernels import judge, tolerances
from rmsim.enumeration.spins import Array, Packed

#: Largest number of spins whose states are indices of a tensor.
MOST_SPINS_DENSE = 62

#: Logarithm of the states of a block: the cache of a core, or enough work for a GPU, which waits
#: for the survivors once a block.
_BLOCK_BITS = {"cpu": 15, "cuda": 21}


def search_dense(
    K: Array,
    jd: float,
    device: torch.device,
    keep: bool,
    most_states: int,
    first: int = 0,
    last: int | None = None,
) -> tuple[int, Packed | None, int, int]:
    """Find all fixed points of the network K by visiting all states.

    Parameters
    ----------
    K, jd, keep, most_states
        As for :func:`branch_and_bound.search`.
    device : torch.device
        Where the products run.
    first, last : int
        Visit only the states of these numbers (their bits; the last spin is +1), by default all
        2^(M-1): a share of the work for one device of several, or for a measurement.

    Returns
    -------
    count, states, nodes, near_ties
        As for :func:`branch_and_bound.search`; nodes are the states visited.
    """
    spins = K.shape[0]
    last = 1 << (spins - 1) if last is None else last
    dtype = screening_dtype()
    rounding = 2.0 * (spins + 2) * torch.finfo(dtype).eps
    size = np.abs(K).sum(axis=1) + abs(jd)
    # A state goes on unless a margin lies below zero by more than the rounding.
    threshold = -jd - rounding * float(size.max())
    couplings = torch.as_tensor(K, dtype=dtype, device=device)
    low = min(_BLOCK_BITS.get(device.type, _BLOCK_BITS["cuda"]), spins - 1)
    block = 1 << low
    # One state a column. The lower spins run through all states, the same in every block.
    states = _signs(torch.arange(block, device=device), low, dtype)
    states = torch.cat([states, torch.ones((spins - low, block), dtype=dtype, device=device)])
    fields = torch.empty_like(states)
    tolerance = tolerances(K, jd)
    top = 1 << (spins - 1)
    kept: list[Packed] = []
    count = near_ties = 0
    for start in range(first - first % block, last, block):
        upper = torch.tensor([(start | top) >> low], device=device)
        states[low:] = _signs(upper, spins - low, dtype)
        torch.mm(couplings, states, out=fields)
        alive = fields.mul_(states).amin(dim=0) > threshold
        numbers = torch.nonzero(alive)[:, 0].cpu().numpy() + start
        numbers = numbers[(numbers >= first) & (numbers < last)]
        words = numbers.astype(np.uint64) | np.uint64(top)
        good, close = judge(K, jd, words, tolerance)
        near_ties += int(close)
        count += int(good.sum())
        if keep:
            kept.append(words[good])
            if 2 * count > most_states:
                raise TooManyStatesError(
                    f"more than {most_states} fixed points; count them without keeping them, "
                    f"or raise most_states"
                )
    packed = None
    if keep:
        half = np.concatenate([np.empty(0, dtype=np.uint64), *kept])
        packed = np.concatenate([half, half ^ np.uint64((1 << spins) - 1)])
    return 2 * count, packed, last - first, near_ties


def screening_dtype() -> torch.dtype:
    """float32, unless torch was told to multiply it with fewer digits than it has."""
    exact = torch.get_float32_matmul_precision() == "highest"
    return torch.float32 if exact else torch.float64


def _signs(numbers: torch.Tensor, bits: int, dtype: torch.dtype) -> torch.Tensor:
    """The lowest `bits` of every number as spins, one number a column."""
    shifts = torch.arange(bits, device=numbers.device)
    return ((numbers >> shifts[:, None]) & 1).to(dtype).mul_(2).sub_(1)
