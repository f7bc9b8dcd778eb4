r"""One sweep of the dynamics, its masks, and the margins of a state.

.. math:: s_i \leftarrow \mathrm{sgn}(h_i), \qquad \mathrm{sgn}(0) = +1

(:func:`rmsim.tensors.sign`). Neurons are updated all at once (synchronous), or layer after layer,
each seeing the new state of those before it (sequential). Under a mask, a neuron whose mask is
False keeps its state. On the CPU one compiled pass over the neurons replaces ten tensor operations:
a sweep of a small network does not cost the calls of torch, one of a large network costs its matrix
product.

**Masks.** Each neuron is updated with probability p. The mask of neuron i in sweep t is a hash of
(key of the state, t, i), compared with :math:`p\,2^{32}`. It does not depend on the device, on the
batch, or on which other states have finished, and nothing has to be stored. The keys of sample k
come from ``generator(seed, k, 2)``.

**Margins.** A state is a fixed point if every :math:`s_i h_i > 0`, strictly, in float64. The
couplings are taken as the exact numbers they are stored as, and converted to float64 a few rows at
a time. A state that is stable in float32 may fail here; it is then not a fixed point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch

from rmsim.compiled_loops import compiled, compiled_part, run_parts, shares, thread_count
from rmsim.compiled_vectors import GOLDEN, MIX_FIRST, MIX_SECOND
from rmsim.couplings.base import Couplings
from rmsim.tensors import generator, is_up, sign
from rmtheory.base.errors import InvalidInputError

Update = Literal["synchronous", "sequential"]


def checked_update(update: str) -> Update:
    """Return the order of updates called `update`."""
    for known in get_args(Update):
        if update == known:
            return known  # type: ignore[no-any-return]
    raise InvalidInputError("update", update, f"one of {', '.join(get_args(Update))}")


def synchronous(
    couplings: Couplings, s: torch.Tensor, external: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the state after all neurons were updated at once."""
    return sign(couplings.field(s, external))


def sequential(
    couplings: Couplings, s: torch.Tensor, external: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the state after layer 1, then 2, ... were updated."""
    s = s.clone()
    for layer in range(couplings.layers):
        s[:, :, layer] = sign(couplings.field(s, external, layer=layer))
    return s


def masked(
    couplings: Couplings,
    s: torch.Tensor,
    mask: torch.Tensor,
    external: torch.Tensor | None = None,
    update: Update = "synchronous",
) -> torch.Tensor:
    """Return the state after the neurons where `mask` is True were updated."""
    if update == "synchronous":
        return torch.where(mask, synchronous(couplings, s, external), s)
    s = s.clone()
    for layer in range(couplings.layers):
        new = sign(couplings.field(s, external, layer=layer))
        s[:, :, layer] = torch.where(mask[:, :, layer], new, s[:, :, layer])
    return s


def sweep_(
    couplings: Couplings,
    s: torch.Tensor,
    up: torch.Tensor,
    h: torch.Tensor,
    update: Update,
    *,
    mask: torch.Tensor | None = None,
    external: torch.Tensor | None = None,
    active: Sequence[int] | None = None,
) -> torch.Tensor:
    """Do one sweep in place, and return which states were not fixed points.

    Parameters
    ----------
    couplings : Couplings
        The networks.
    s : Tensor, (samples, starts, layers, n)
        States, +-1; replaced.
    up : Tensor of bool
        ``s > 0``; replaced.
    h : Tensor
        Work space for the field: like `s`, or like one layer of it if the update is sequential.
    update : str
        Order of the updates.
    mask, external, active : optional
        As for the step functions and for the field.

    Returns
    -------
    Tensor of bool, (samples, starts)
        Whether some neuron, masked or not, disagreed with its field. A sweep without one changed
        nothing, and began at a fixed point.
    """
    unstable = torch.zeros(s.shape[:2], dtype=torch.bool, device=s.device)
    advance = follow if s.device.type == "cpu" else follow_torch
    if update == "synchronous":
        couplings.field(s, external, active=active, out=h)
        advance(h, s, up, mask, (0, couplings.layers), unstable)
        return unstable
    for layer in range(couplings.layers):
        couplings.field(s, external, active=active, layer=layer, out=h)
        advance(h.unsqueeze(2), s, up, mask, (layer, layer + 1), unstable)
    return unstable


# The update of all neurons, compiled and by tensor operations.

#: Neurons worth a thread of their own.
_GRAIN = 2**18


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
                wanted = is_up(field[i])
                against |= wanted != ups[i]
                new = wanted if not masked or allowed[i] else ups[i]
                ups[i] = new
                spins[i] = one if new else -one
        unstable[k, a] |= against


def follow_torch(
    h: torch.Tensor,
    s: torch.Tensor,
    up: torch.Tensor,
    mask: torch.Tensor | None,
    layers: tuple[int, int],
    unstable: torch.Tensor,
) -> None:
    """Do what :func:`follow` does by tensor operations, as a GPU needs."""
    some = slice(*layers)
    ups = up[:, :, some]
    change = is_up(h).bitwise_xor_(ups)
    unstable |= change.flatten(2).any(-1)
    if mask is not None:
        change &= mask[:, :, some]
    ups ^= change
    s[:, :, some].copy_(ups).mul_(2).sub_(1)


def differ(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
    """Return which states, (samples, starts), of two tensors of booleans differ."""
    different = torch.empty(one.shape[:2], dtype=torch.bool)
    states = different.numel()
    arrays = (one.numpy().reshape(states, -1), two.numpy().reshape(states, -1))
    _differ(*arrays, different.view(-1).numpy(), np.array((0, states)))
    return different


@compiled
def _differ(one: Any, two: Any, out: Any, part: Any) -> None:
    for state in range(part[0], part[1]):
        different = False
        for i in range(one.shape[1]):
            if one[state, i] != two[state, i]:
                different = True
                break
        out[state] = different


# Masks from a counter.

#: Address of the masks under a sample.
STREAM = 2


def mask_keys(seed: int, samples: range, starts: int, stream: int = STREAM) -> torch.Tensor:
    """Return two 32-bit words for each state, (samples, starts, 2).

    Another `stream` gives independent masks to the same samples.
    """
    keys = torch.empty((len(samples), starts, 2), dtype=torch.int64)
    for index, sample in enumerate(samples):
        keys[index].random_(0, 2**32, generator=generator(seed, sample, stream))
    return keys


def mask_threshold(p: float) -> int:
    """Return the number of 32 bits below which the hash of an updated neuron is."""
    return min(2**32 - 1, max(1, round(p * 2**32)))


def fill_mask(keys: torch.Tensor, sweep: int, p: float, out: torch.Tensor) -> None:
    """Write the mask of sweep number `sweep` into `out`, (samples, starts, layers, n)."""
    threshold = mask_threshold(p)
    if out.device.type == "cpu":
        flat = out.view(keys.shape[0] * keys.shape[1], -1)
        _fill(keys.numpy().reshape(-1, 2), sweep, threshold, flat.numpy())
    else:
        fill_mask_torch(keys, sweep, threshold, out)


@compiled_part
def mix(x: Any) -> Any:
    """Mix the bits of a 32-bit word."""
    x = np.uint32(x ^ (x >> np.uint32(16)))
    x = np.uint32(x * np.uint32(MIX_FIRST))
    x = np.uint32(x ^ (x >> np.uint32(15)))
    x = np.uint32(x * np.uint32(MIX_SECOND))
    return np.uint32(x ^ (x >> np.uint32(16)))


@compiled
def _fill(keys: Any, sweep: int, threshold: int, out: Any) -> None:
    limit = np.uint32(threshold)
    for state in range(out.shape[0]):
        origin = mix(np.uint32(keys[state, 0] + sweep * GOLDEN))
        second = np.uint32(keys[state, 1])
        for neuron in range(out.shape[1]):
            x = np.uint32(np.uint32(neuron) * np.uint32(GOLDEN) + origin)
            out[state, neuron] = mix(np.uint32(mix(x) ^ second)) < limit


def fill_mask_torch(keys: torch.Tensor, sweep: int, threshold: int, out: torch.Tensor) -> None:
    """Do it by tensor operations, the route of a GPU; bit for bit the same."""
    word = _wrapped(sweep * GOLDEN)
    first, second = (_narrow(keys[..., index]) for index in (0, 1))
    count = out[0, 0].numel()
    index = torch.arange(count, dtype=torch.int32, device=out.device)
    x = index * _wrapped(GOLDEN) + _mix_torch(first + word).unsqueeze(-1)
    x = _mix_torch(_mix_torch(x) ^ second.unsqueeze(-1))
    # Unsigned comparison with signed numbers: move both by half the range.
    torch.lt(x ^ _wrapped(2**31), _wrapped(threshold ^ 2**31), out=out.view(x.shape))


def masks_torch(
    keys: torch.Tensor, sweeps: int, threshold: int, neurons: int
) -> Iterator[torch.Tensor]:
    """Give the masks of the first `sweeps` sweeps, (samples, neurons, starts), made at once.

    Bit for bit those of :func:`fill_mask`, with the states last.
    """
    first, second = (_narrow(keys[..., index]) for index in (0, 1))
    count = torch.arange(sweeps, dtype=torch.int32, device=keys.device).view(-1, 1, 1)
    origin = _mix_torch(first + count * _wrapped(GOLDEN)).unsqueeze(-2)
    index = torch.arange(neurons, dtype=torch.int32, device=keys.device).unsqueeze(-1)
    x = _mix_torch(_mix_torch(index * _wrapped(GOLDEN) + origin) ^ second.unsqueeze(-2))
    yield from ((x ^ _wrapped(2**31)) < _wrapped(threshold ^ 2**31)).unbind()


def _mix_torch(x: torch.Tensor) -> torch.Tensor:
    for shift, factor in ((16, MIX_FIRST), (15, MIX_SECOND)):
        x = (x ^ (x >> shift & 2 ** (32 - shift) - 1)) * _wrapped(factor)
    return x ^ (x >> 16 & 2**16 - 1)


def _narrow(words: torch.Tensor) -> torch.Tensor:
    return ((words + 2**31) % 2**32 - 2**31).to(torch.int32)


def _wrapped(word: int) -> int:
    """Return the signed 32-bit integer with the bits of `word`."""
    return (word + 2**31) % 2**32 - 2**31


# Margins in float64.

#: Bytes of states in float64 at a time, at least; large couplings may have a 32nd of theirs.
_SPACE = {"cpu": 2**20, "cuda": 2**26}


def check_margins(
    couplings: Couplings,
    s: torch.Tensor,
    external: torch.Tensor | None = None,
    *,
    active: Sequence[int] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the least s_i h_i of every state and how many are not positive, in bounded memory.

    Parameters
    ----------
    couplings : Couplings
        The networks.
    s : Tensor, (samples, starts, layers, n)
        States of any type, or booleans, True for the neurons that are up.
    external : Tensor, optional
        External field, of four dimensions, each 1 or that of `s`.
    active : sequence of int, optional
        The networks of `s`; all by default.

    Returns
    -------
    min_margin, unsatisfied : Tensor, (samples, starts)
        In float64 and int64.
    """
    samples, starts = s.shape[:2]
    chosen = range(samples) if active is None else active
    least = torch.empty((samples, starts), dtype=torch.float64, device=s.device)
    unsatisfied = torch.empty((samples, starts), dtype=torch.int64, device=s.device)
    size = couplings.layers * couplings.n * 8
    space = max(_SPACE.get(s.device.type, 2**26), couplings.nbytes // 32)
    width = max(1, min(starts, space // size))
    height = max(1, space // (size * width))
    for top in range(0, samples, height):
        rows = slice(top, top + height)
        for left in range(0, starts, width):
            columns = slice(left, left + width)
            part = s[rows, columns]
            if part.dtype == torch.bool:
                part = part.to(torch.float64).mul_(2).sub_(1)
            field = external
            if field is not None:
                field = field[rows if field.shape[0] > 1 else slice(None)]
                field = field[:, columns if field.shape[1] > 1 else slice(None)]
            values = margins(couplings, part, field, active=chosen[rows]).flatten(2)
            least[rows, columns] = values.amin(-1)
            unsatisfied[rows, columns] = (values <= 0).sum(-1)
    return least, unsatisfied


def least_margins(
    couplings: Couplings,
    s: torch.Tensor,
    external: torch.Tensor | None = None,
    *,
    active: Sequence[int] | None = None,
) -> torch.Tensor:
    """Return the least s_i h_i of every state, (samples, starts); see :func:`check_margins`."""
    return check_margins(couplings, s, external, active=active)[0]


def margins(
    couplings: Couplings,
    s: torch.Tensor,
    external: torch.Tensor | None = None,
    *,
    active: Sequence[int] | None = None,
) -> torch.Tensor:
    """Return s_i h_i in float64, in the shape of `s`."""
    exact = s.to(torch.float64)
    return couplings.field(exact, external, active=active).mul_(exact)
