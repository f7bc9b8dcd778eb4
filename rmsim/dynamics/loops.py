"""Loops over neurons on the CPU: one pass where tensor operations would make ten.

A sweep of a small network is then no longer the price of calling torch, and one of a large network
stays that of its matrix product.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from rmsim.compiled import compiled
from rmsim.threads import run_parts, shares, thread_count

#: Neurons worth a thread of their own.
_GRAIN = 2**18


@compiled
def _follow(
    h: Any, s: Any, up: Any, mask: Any, masked: bool, layers: Any, unstable: Any, part: Any
) -> None:
    starts = up.shape[1]
    one = s.dtype.type(1)
    for state in range(part[0], part[1]):
        k, a = state // starts, state % starts
        against = False
        for layer in range(layers[0], layers[1]):
            field, spins, ups = h[k, a, layer - layers[0]], s[k, a, layer], up[k, a, layer]
            allowed = mask[k, a, layer]
            for i in range(up.shape[3]):
                wanted = field[i] >= 0
                against |= wanted != ups[i]
                new = wanted if not masked or allowed[i] else ups[i]
                ups[i] = new
                spins[i] = one if new else -one
        unstable[k, a] |= against


@compiled
def _differ(one: Any, two: Any, found: Any, part: Any) -> None:
    for state in range(part[0], part[1]):
        different = False
        for i in range(one.shape[1]):
            if one[state, i] != two[state, i]:
                different = True
                break
        found[state] = different


def follow(
    h: torch.Tensor,
    s: torch.Tensor,
    up: torch.Tensor,
    mask: torch.Tensor | None,
    layers: tuple[int, int],
    unstable: torch.Tensor,
) -> None:
    """Let the neurons of some layers follow their field; add to `unstable` who disagreed.

    Parameters
    ----------
    h : Tensor, (samples, starts, layers done, n)
        Field.
    s, up, mask : Tensor, (samples, starts, layers, n)
        States, replaced; ``s > 0``, replaced; which neurons may change.
    layers : (int, int)
        The layers to do.
    unstable : Tensor of bool, (samples, starts)
        Whether some neuron, masked or not, disagreed with its field.
    """
    ups = up.numpy()
    arrays = (
        h.numpy(),
        s.numpy(),
        ups,
        ups if mask is None else mask.numpy(),
        mask is not None,
        np.array(layers),
        unstable.numpy(),
    )
    states = up.shape[0] * up.shape[1]
    parts = shares(states, min(states, thread_count(h.numel(), _GRAIN)))
    run_parts(_follow, [(*arrays, np.array(part)) for part in parts])


def differ(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
    """Return which states, (samples, starts), of two tensors of booleans differ."""
    found = torch.empty(one.shape[:2], dtype=torch.bool)
    states = found.numel()
    arrays = (one.numpy().reshape(states, -1), two.numpy().reshape(states, -1))
    _differ(*arrays, found.view(-1).numpy(), np.array((0, states)))
    return found
