"""Relax random starts in random networks, some networks at a time, so that memory stays bounded.

Sample k is the same network, with the same starts and masks, however many go together.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from rmsim.couplings import draw
from rmsim.device import choose_device, choose_dtype, memory_of
from rmsim.dynamics.relax import checked_p, relax
from rmsim.dynamics.result import Relaxation, join
from rmsim.dynamics.step import checked_update
from rmsim.network import Network
from rmsim.randomness import checked_seed, generator
from rmtheory import checks
from rmtheory.errors import InvalidInputError
from rmtheory.wording import counted

#: Bytes of couplings at a time. On a CPU they should stay in the cache from sweep to sweep.
_SPACE = {"cpu": 2**25, "cuda": 2**31}


def random_starts(
    seed: int,
    samples: range,
    starts: int,
    layers: int,
    n: int,
    device: torch.device | str = "cpu",
) -> torch.Tensor:
    """Return uniform states, int8 of shape (samples, starts, layers, n); those of k from k only."""
    states = torch.empty((len(samples), starts, layers, n), dtype=torch.int8, device=device)
    for index, sample in enumerate(samples):
        states[index].random_(0, 2, generator=generator(seed, sample, 1, device=device))
    return states.mul_(2).sub_(1)


def relax_samples(
    network: Network,
    samples: int | range,
    seed: int = 0,
    *,
    starts: int = 1,
    update: str = "synchronous",
    p: float = 1.0,
    max_sweeps: int = 1000,
    check_every: int | None = None,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device = "auto",
    space: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Relaxation:
    """Relax `starts` random states in each of the disorder `samples` of `network`.

    Parameters
    ----------
    network : Network
        What is simulated.
    samples : int or range
        How many disorder samples, or which ones.
    seed : int
        Seed of couplings, starts and masks.
    starts : int
        Random states a sample.
    update, p, max_sweeps, check_every
        As for :func:`rmsim.dynamics.relax.relax`.
    dtype, device
        Precision and place.
    space : int, optional
        Bytes of couplings held at a time (one sample at least).
    progress : callable, optional
        Told how many samples are done.
    """
    chosen = samples if isinstance(samples, range) else range(checks.integer("samples", samples, 1))
    if len(chosen) == 0 or chosen.step != 1 or chosen.start < 0:
        raise InvalidInputError("samples", str(chosen), "a range of samples, step 1, from 0 on")
    seed, starts = checked_seed(seed), checks.integer("starts", starts, 1)
    where, kind = choose_device(device), choose_dtype(dtype)
    probability, order = checked_p(p), checked_update(update)
    room = _SPACE.get(where.type, 2**31) if space is None else checks.integer("space", space, 1)
    size = network.layers * network.n**2 * network.rho * (kind.itemsize + 4 * (network.rho < 1))
    _check_memory(network, starts, size, where)
    count = max(1, int(room / max(size, 1.0)))
    parts: list[Relaxation] = []
    for first in range(chosen.start, chosen.stop, count):
        some = range(first, min(chosen.stop, first + count))
        parts.append(
            relax(
                draw(network, seed, some, dtype=kind, device=where),
                random_starts(seed, some, starts, network.layers, network.n, where),
                update=order,
                p=probability,
                max_sweeps=max_sweeps,
                check_every=check_every,
                seed=seed,
                first_sample=first,
            )
        )
        if progress is not None:
            progress(some.stop - chosen.start)
    return join(parts)


def _check_memory(network: Network, starts: int, couplings: float, device: torch.device) -> None:
    """Refuse one network, with its states, that this machine has no room for."""
    there = memory_of(device)
    if device.type != "cpu" or there is None:
        return  # the allocator of the device knows better
    neurons = network.layers * network.n
    needed = couplings + 8 * neurons + 12 * starts * neurons
    if needed > there:
        allowed = (
            f"small enough: one network with {counted(starts, 'start')} needs "
            f"{needed / 1e9:.3g} GB, and this machine has {there / 1e9:.3g}"
        )
        raise InvalidInputError("n", network.n, allowed)
