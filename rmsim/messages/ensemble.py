"""Search in many random networks, some at a time, so that memory stays bounded.

Sample k is the same network, with the same starts, however many go together; it is also sample k of
the dynamics.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from rmsim.couplings import DenseChain, draw_dense
from rmsim.device import choose_device, choose_dtype
from rmsim.messages.reinforced import Schedule, reinforce
from rmsim.messages.search import Search, join_searches
from rmsim.network import Network
from rmsim.randomness import checked_seed
from rmtheory import checks
from rmtheory.errors import InvalidInputError

#: Bytes of couplings at a time. On a CPU they should stay in the cache from one to the next.
_SPACE = {"cpu": 2**25, "cuda": 2**31}


def reinforce_samples(
    network: Network,
    samples: int | range,
    seed: int = 0,
    *,
    schedule: Schedule | None = None,
    restarts: int = 0,
    max_iterations: int | None = None,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device = "auto",
    space: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Search:
    """Search a fixed point by reinforced BP in each of the disorder `samples` of `network`.

    Parameters
    ----------
    network : Network
        What is searched: dense couplings, not symmetric.
    samples : int or range
        How many disorder samples, or which ones.
    seed : int
        Seed of couplings and starts.
    schedule, restarts, max_iterations
        As for :func:`rmsim.messages.reinforced.reinforce`.
    dtype, device
        Precision and place.
    space : int, optional
        Bytes of couplings held at a time (one sample at least).
    progress : callable, optional
        Told how many samples are done.
    """

    def search(couplings: DenseChain, number: int, first: int) -> Search:
        return reinforce(
            couplings,
            schedule,
            restarts=restarts,
            max_iterations=max_iterations,
            seed=number,
            first_sample=first,
        )

    return search_samples(
        search, network, samples, seed, dtype=dtype, device=device, space=space, progress=progress
    )


def search_samples(
    search: Callable[[DenseChain, int, int], Search],
    network: Network,
    samples: int | range,
    seed: int = 0,
    *,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device = "auto",
    space: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Search:
    """Run any search in each of the disorder `samples`, as many together as there is room for.

    Parameters
    ----------
    search : callable
        (couplings, seed, number of their first sample) -> how it ended.
    network, samples, seed, dtype, device, space, progress
        As for :func:`reinforce_samples`.
    """
    check_independent(network)
    chosen = samples if isinstance(samples, range) else range(checks.integer("samples", samples, 1))
    if len(chosen) == 0 or chosen.step != 1 or chosen.start < 0:
        raise InvalidInputError("samples", str(chosen), "a range of samples, step 1, from 0 on")
    number, where, kind = checked_seed(seed), choose_device(device), choose_dtype(dtype)
    room = _SPACE.get(where.type, 2**31) if space is None else checks.integer("space", space, 1)
    count = max(1, room // (network.layers * network.n**2 * kind.itemsize))
    parts: list[Search] = []
    for first in range(chosen.start, chosen.stop, count):
        some = range(first, min(chosen.stop, first + count))
        couplings = draw_dense(network, number, some, dtype=kind, device=where)
        parts.append(search(couplings, number, first))
        if progress is not None:
            progress(some.stop - chosen.start)
    return join_searches(parts)


def check_independent(network: Network) -> None:
    """Refuse networks whose couplings the equations do not hold for."""
    if network.symmetric:
        raise InvalidInputError("symmetric", True, "False for message passing (J_ij != J_ji)")
    if network.rho != 1:
        raise InvalidInputError("rho", network.rho, "1 for message passing")
