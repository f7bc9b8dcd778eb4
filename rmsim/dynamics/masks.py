r"""Which neurons a masked sweep updates: each with probability p, from a counter, not a stream.

The mask of neuron i in sweep t is a hash of (key of the state, t, i), below :math:`p\,2^{32}` or
not. So it does not depend on the device, on the batch, or on which other states have finished, and
nothing has to be stored. The keys of sample k come from ``generator(seed, k, 2)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from rmsim.compiled import compiled
from rmsim.randomness import generator

#: Address of the masks under a sample.
STREAM = 2

#: Weyl increment: 2^32 over the golden ratio, odd.
_GOLDEN = 0x9E3779B9
#: Multipliers of a 32-bit mixer of low bias (xor-shift by 16, 15, 16 between them).
_FIRST, _SECOND = 0x7FEB352D, 0x846CA68B


def mask_keys(seed: int, samples: range, starts: int, stream: int = STREAM) -> torch.Tensor:
    """Return two 32-bit words for each state, (samples, starts, 2).

    Another `stream` gives independent masks to the same samples.
    """
    keys = torch.empty((len(samples), starts, 2), dtype=torch.int64)
    for index, sample in enumerate(samples):
        keys[index].random_(0, 2**32, generator=generator(seed, sample, stream))
    return keys


def fill_mask(keys: torch.Tensor, sweep: int, p: float, out: torch.Tensor) -> None:
    """Write the mask of sweep number `sweep` into `out`, (samples, starts, layers, n)."""
    threshold = min(2**32 - 1, max(1, round(p * 2**32)))
    if out.device.type == "cpu":
        flat = out.view(keys.shape[0] * keys.shape[1], -1)
        _fill(keys.numpy().reshape(-1, 2), sweep, threshold, flat.numpy())
    else:
        fill_mask_torch(keys, sweep, threshold, out)


def fill_mask_torch(keys: torch.Tensor, sweep: int, threshold: int, out: torch.Tensor) -> None:
    """Do it by tensor operations, the route of a GPU; bit for bit the same."""
    word = _wrapped(sweep * _GOLDEN)
    first, second = (_narrow(keys[..., index]) for index in (0, 1))
    count = out[0, 0].numel()
    index = torch.arange(count, dtype=torch.int32, device=out.device)
    x = index * _wrapped(_GOLDEN) + _mix_torch(first + word).unsqueeze(-1)
    x = _mix_torch(_mix_torch(x) ^ second.unsqueeze(-1))
    # Unsigned comparison with signed numbers: move both by half the range.
    torch.lt(x ^ _wrapped(2**31), _wrapped(threshold ^ 2**31), out=out.view(x.shape))


def _wrapped(word: int) -> int:
    """Return the signed 32-bit integer with the bits of `word`."""
    return (word + 2**31) % 2**32 - 2**31


def _narrow(words: torch.Tensor) -> torch.Tensor:
    return ((words + 2**31) % 2**32 - 2**31).to(torch.int32)


def _mix_torch(x: torch.Tensor) -> torch.Tensor:
    for shift, factor in ((16, _FIRST), (15, _SECOND)):
        x = (x ^ (x >> shift & 2 ** (32 - shift) - 1)) * _wrapped(factor)
    return x ^ (x >> 16 & 2**16 - 1)


@compiled
def _mix(x: Any) -> Any:
    x = np.uint32(x ^ (x >> np.uint32(16)))
    x = np.uint32(x * np.uint32(_FIRST))
    x = np.uint32(x ^ (x >> np.uint32(15)))
    x = np.uint32(x * np.uint32(_SECOND))
    return np.uint32(x ^ (x >> np.uint32(16)))


@compiled
def _fill(keys: Any, sweep: int, threshold: int, out: Any) -> None:
    limit = np.uint32(threshold)
    for state in range(out.shape[0]):
        origin = _mix(np.uint32(keys[state, 0] + sweep * _GOLDEN))
        second = np.uint32(keys[state, 1])
        for neuron in range(out.shape[1]):
            x = np.uint32(np.uint32(neuron) * np.uint32(_GOLDEN) + origin)
            out[state, neuron] = _mix(np.uint32(_mix(x) ^ second)) < limit
