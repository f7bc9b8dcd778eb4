"""Randomness from one seed: every stream of numbers has an address under it."""

from __future__ import annotations

import numpy as np
import torch

from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError

__all__ = ["checked_seed", "fill_normal_", "generator"]

#: Seeds are stored as signed 64-bit integers by netCDF.
_MOST_SEED = 2**63 - 1


def checked_seed(seed: object) -> int:
    """Return `seed` as an integer from 0 to 2^63 - 1."""
    return checks.integer("seed", seed, 0, _MOST_SEED)


def generator(seed: int, *address: int, device: torch.device | str = "cpu") -> torch.Generator:
    """Return the generator of the stream `address` under `seed`.

    Disorder sample k draws from ``generator(seed, k)``: it is the same network however many
    samples are drawn together, in whichever order and process.

    Examples
    --------
    >>> a = torch.rand(2, generator=generator(0, 3))
    >>> b = torch.rand(2, generator=generator(0, 3))
    >>> c = torch.rand(2, generator=generator(0, 4))
    >>> bool((a == b).all()), bool((a == c).any())
    (True, False)
    """
    if any(number < 0 for number in address):
        # By the name that callers give to the first number of an address.
        name, value = ("samples", address[0]) if address[0] < 0 else ("address", address)
        raise InvalidInputError(name, value, "numbers from 0 on")
    sequence = np.random.SeedSequence(checked_seed(seed), spawn_key=address)
    word = int(sequence.generate_state(1, np.uint64)[0])
    return torch.Generator(device=device).manual_seed(word & _MOST_SEED)


def fill_normal_(values: torch.Tensor, deviation: float, stream: torch.Generator) -> None:
    """Fill `values` with independent normal numbers, the same ones in float32 and float64.

    They are drawn in float32 and widened, so that a network is the same in either precision. On
    another instruction set torch evaluates the logarithm and cosine behind them by another route:
    the numbers differ there by some 1e-7 of the deviation. What depends on that, such as the end of
    a chaotic trajectory or which of many solutions a search finds, is another sample of the same
    ensemble, not an error.

    Examples
    --------
    >>> single, double = torch.empty(3), torch.empty(3, dtype=torch.float64)
    >>> for values in (single, double):
    ...     fill_normal_(values, 0.1, generator(0))
    >>> bool((single == double).all())
    True
    """
    if values.dtype == torch.float32:
        values.normal_(0.0, deviation, generator=stream)
    else:
        drawn = torch.empty(values.shape, dtype=torch.float32, device=values.device)
        values.copy_(drawn.normal_(0.0, deviation, generator=stream))
