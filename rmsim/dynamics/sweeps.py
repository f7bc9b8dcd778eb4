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

**Flips.** After the first sweeps few neurons flip. On a CPU the field is therefore corrected by the
columns of J whose neurons flipped (:func:`follow_flips`): most relaxations cost as much as two or
three products, however many sweeps they take.

**Margins.** A state is a fixed point if every :math:`s_i h_i > 0`, strictly, in float64. The
couplings are taken as the exact numbers they are stored as, and converted to float64 a few rows at
a time. A state that is stable in float32 may fail here; it is then not a fixed point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch

from rmsim.compiled_loops import compiled, run_parts, shares, thread_count
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
                wanted = field[i] >= 0
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


def _threshold(p: float) -> int:
    """Return the number of 32 bits below which the hash of an updated neuron is."""
    return min(2**32 - 1, max(1, round(p * 2**32)))


def fill_mask(keys: torch.Tensor, sweep: int, p: float, out: torch.Tensor) -> None:
    """Write the mask of sweep number `sweep` into `out`, (samples, starts, layers, n)."""
    threshold = _threshold(p)
    if out.device.type == "cpu":
        flat = out.view(keys.shape[0] * keys.shape[1], -1)
        _fill(keys.numpy().reshape(-1, 2), sweep, threshold, flat.numpy())
    else:
        fill_mask_torch(keys, sweep, threshold, out)


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


def _mix_torch(x: torch.Tensor) -> torch.Tensor:
    for shift, factor in ((16, _FIRST), (15, _SECOND)):
        x = (x ^ (x >> shift & 2 ** (32 - shift) - 1)) * _wrapped(factor)
    return x ^ (x >> 16 & 2**16 - 1)


def _narrow(words: torch.Tensor) -> torch.Tensor:
    return ((words + 2**31) % 2**32 - 2**31).to(torch.int32)


def _wrapped(word: int) -> int:
    """Return the signed 32-bit integer with the bits of `word`."""
    return (word + 2**31) % 2**32 - 2**31


# Sweeps by flips.

#: Sweeps after which fields are computed anew, and the interpreter has its turn (Ctrl-C).
_FRESH = 256
#: Neurons looked at together for one that stands against its field.
_TOGETHER = 64
#: Rounding unit of float64.
_UNIT = 2.0**-53
#: Additions worth a thread of their own.
_ADDITIONS = 2**20

#: What the counters of :class:`Followed` are.
LAST, PERIOD, CLOSED, ENDED = range(4)


@dataclass(frozen=True, eq=False)
class Followed:
    """States that follow their flips, and how each ended; on the CPU, changed in place.

    Parameters
    ----------
    up : Tensor of bool, (samples, starts, layers, n)
        Which spins are +1.
    anchor : Tensor of bool
        The state remembered to detect cycles; without spins if the dynamics is random.
    counters : Tensor of int64, (samples, starts, 4)
        Last sweep in which a neuron stood against its field; period, 0 if none is known; sweep at
        which the state came back; whether it has ended.
    margin, unsatisfied : Tensor, (samples, starts)
        Least s_i h_i and how many are not positive, in float64.
    """

    up: torch.Tensor
    anchor: torch.Tensor
    counters: torch.Tensor
    margin: torch.Tensor
    unsatisfied: torch.Tensor

    def of(self, sample: int) -> tuple[Any, ...]:
        """Return the arrays of one network."""
        tensors = (self.up, self.anchor, self.counters, self.margin, self.unsatisfied)
        return tuple(tensor[sample].numpy() for tensor in tensors)


def follow_flips(
    couplings: Couplings,
    states: Followed,
    update: Update,
    *,
    sweeps: tuple[int, int],
    networks: Sequence[int] | None = None,
    external: torch.Tensor | None = None,
    keys: torch.Tensor | None = None,
    p: float = 1.0,
) -> None:
    r"""Sweep every state until it has ended, correcting its field by what flips.

    .. math:: h_i \leftarrow h_i + \sum_{j\ \text{flipped}} J_{ij}\,(s^{new}_j - s^{old}_j)

    Fields are in float64, whatever the type of the couplings, and computed anew after some hundred
    sweeps. A field within their rounding bound, :math:`2^{-53}` times the number of additions times
    the largest sum there can be, is summed again in twice the digits. The sign is therefore that of
    the exact field of the couplings as stored, on every machine; products in float32 give another
    one where rounding decides.

    Parameters
    ----------
    couplings : Couplings
        Networks that have :meth:`~rmsim.couplings.base.Couplings.columns_of`.
    states : Followed
        The states; those that have ended are left alone, but for their margins.
    update : str
        Order of the updates.
    sweeps : (int, int)
        Sweeps that the states have made already, and at most.
    networks : sequence of int, optional
        The networks of the states; all by default.
    external : Tensor, optional
        External field of four dimensions, each 1 or that of the states.
    keys : Tensor, (samples, starts, 2), optional
        Keys of the masks; without them every neuron is updated.
    p : float
        Probability that a neuron is updated.
    """
    chosen = range(couplings.samples) if networks is None else networks
    samples, starts = states.up.shape[:2]
    exact = (couplings.jd, *(couplings.homologous.get(step, 0.0) for step in (-1, 1)))
    stored = tuple(torch.tensor(exact, dtype=couplings.dtype).tolist())  # as products have them
    rule = (_threshold(p), update == "sequential")
    no_field, no_keys = np.zeros((1, 0, 0)), np.zeros((0, 2), np.int64)

    def follow(places: tuple[int, int], threads: int) -> None:
        columns = None
        for here in range(*places):
            columns = couplings.columns_of(chosen[here], columns)
            field, words = no_field, no_keys
            if external is not None:
                field = (
                    external.expand(states.up.shape)[here].to(torch.float64).contiguous().numpy()
                )
            if keys is not None:
                words = keys[here].contiguous().numpy()
            up, anchor, counters, margin, unsatisfied = states.of(here)
            bound = _rounding(columns[0], couplings.n, exact, field)
            parts = shares(starts, min(threads, starts))
            for first in range(sweeps[0], sweeps[1], _FRESH):
                span = (first, min(sweeps[1], first + _FRESH))
                given = (columns, stored, field, up, anchor, counters, words, rule, bound, span)
                run_parts(_follow_flips, [(*given, part) for part in parts])
                if counters[:, ENDED].all():
                    break
            ends = (columns, exact, field, up, margin, unsatisfied, bound)
            run_parts(_margins_by_columns, [(*ends, part) for part in parts])

    threads = thread_count(states.up.numel() * couplings.n, _ADDITIONS)
    if samples >= threads:
        run_parts(follow, [(part, 1) for part in shares(samples, threads)])
    else:  # few networks: their states are shared out
        follow((0, samples), threads)


def _rounding(values: Any, n: int, chain: Sequence[float], field: Any) -> float:
    """Return the error of one addition to a field, in float64, at most."""
    ends = torch.aminmax(torch.from_numpy(values)) if len(values) else (0.0, 0.0)
    largest = n * max(abs(float(x)) for x in ends) + sum(abs(x) for x in chain)
    if field.size:
        largest += float(np.abs(field).max())
    return 4 * _UNIT * largest  # flips double an entry, several are added together


@compiled
def _follow_flips(
    columns: Any,
    chain: Any,
    external: Any,
    up: Any,
    anchor: Any,
    counters: Any,
    keys: Any,
    rule: Any,
    bound: float,
    span: Any,
    part: Any,
) -> None:
    """Sweep a part of the states of one network from sweep span[0] + 1 to span[1]."""
    layers, n = up.shape[1], up.shape[2]
    threshold, layer_by_layer = np.uint32(rule[0]), rule[1]
    masked, watched = len(keys) > 0, anchor.shape[2] > 0
    s, field = np.empty((layers, n)), np.empty((layers, n))
    chosen, ends = np.empty(layers * n, np.int64), np.zeros(layers + 1, np.int64)
    origin = second = np.uint32(0)
    for a in range(part[0], part[1]):
        if counters[a, ENDED]:
            continue
        _fresh_fields(columns, chain, external, up[a], a, s, field)
        anchored, away, additions = 0, 0, n + 8
        while 2 * anchored <= span[0] and anchored < span[0]:
            anchored = max(1, 2 * anchored)
        if watched:
            away = np.sum(up[a] != anchor[a])
        for sweep in range(span[0] + 1, span[1] + 1):
            if masked:
                origin = _mix(np.uint32(keys[a, 0] + sweep * _GOLDEN))
                second = np.uint32(keys[a, 1])
            against = 0
            for group in range(layers if layer_by_layer else 1):
                first = group if layer_by_layer else 0
                last = group + 1 if layer_by_layer else layers
                count = 0
                for layer in range(first, last):
                    ends[layer] = count
                    here, spins = field[layer], s[layer]
                    for block in range(0, n, _TOGETHER):
                        end = min(n, block + _TOGETHER)
                        some = False
                        for i in range(block, end):
                            some |= spins[i] * here[i] <= additions * bound
                        if not some:
                            continue
                        for i in range(block, end):
                            if spins[i] * here[i] > additions * bound:
                                continue
                            h = here[i]
                            if abs(h) <= additions * bound:
                                h = _exact_field(columns, chain, external, s, a, layer, i)
                            if (h >= 0) == (spins[i] > 0):
                                continue
                            against += 1
                            if masked:
                                neuron = np.uint32(layer * n + i)
                                x = np.uint32(neuron * np.uint32(_GOLDEN) + origin)
                                if _mix(np.uint32(_mix(x) ^ second)) >= threshold:
                                    continue
                            chosen[count] = i
                            count += 1
                    ends[layer + 1] = count
                for layer in range(first, last):
                    flipped = chosen[ends[layer] : ends[layer + 1]]
                    for j in flipped:
                        s[layer, j] = -s[layer, j]
                        if watched:
                            away += 1 if (s[layer, j] > 0) != anchor[a, layer, j] else -1
                    _add_columns(columns, layer * n, flipped, s[layer], field[layer], 2.0)
                    _add_chain(chain, layer, flipped, s[layer], field, 2.0)
                    additions += len(flipped)
            if against == 0:
                counters[a, ENDED] = 1
                break
            counters[a, LAST] = sweep
            if watched:
                if away == 0:
                    counters[a, PERIOD] = sweep - anchored
                    counters[a, CLOSED] = sweep
                    counters[a, ENDED] = 1
                    break
                if sweep & (sweep - 1) == 0:
                    anchor[a] = s > 0
                    anchored, away = sweep, 0
        up[a] = s > 0


@compiled
def _margins_by_columns(
    columns: Any,
    chain: Any,
    external: Any,
    up: Any,
    margin: Any,
    unsatisfied: Any,
    bound: float,
    part: Any,
) -> None:
    """Write the least s_i h_i of a part of the states of one network, and how many are not > 0."""
    layers, n = up.shape[1], up.shape[2]
    s, field = np.empty((layers, n)), np.empty((layers, n))
    for a in range(part[0], part[1]):
        _fresh_fields(columns, chain, external, up[a], a, s, field)
        least, count = np.inf, 0
        for layer in range(layers):
            for i in range(n):
                h = field[layer, i]
                if abs(h) <= (n + 8) * bound:
                    h = _exact_field(columns, chain, external, s, a, layer, i)
                least = min(least, s[layer, i] * h)
                count += s[layer, i] * h <= 0
        margin[a], unsatisfied[a] = least, count


@compiled
def _fresh_fields(
    columns: Any, chain: Any, external: Any, up: Any, a: int, s: Any, field: Any
) -> None:
    """Write a state as numbers into `s`, and its field, (layers, n)."""
    layers, n = up.shape
    every = np.arange(n)
    for layer in range(layers):
        for i in range(n):
            s[layer, i] = 1.0 if up[layer, i] else -1.0
            field[layer, i] = external[a, layer, i] if external.shape[2] else 0.0
    for layer in range(layers):
        _add_columns(columns, layer * n, every, s[layer], field[layer], 1.0)
        _add_chain(chain, layer, every, s[layer], field, 1.0)


@compiled
def _add_columns(columns: Any, first: int, chosen: Any, s: Any, field: Any, factor: float) -> None:
    """Add factor J_ij s_j to the field of a layer for the `chosen` j; `first` is its column 0."""
    values, bounds, rows = columns[0], columns[1], columns[2]
    n, count, k = len(field), len(chosen), 0
    if len(bounds):
        for j in chosen:
            x = factor * s[j]
            for entry in range(bounds[first + j], bounds[first + j + 1]):
                field[rows[entry]] += x * values[entry]
        return
    while k + 4 <= count:  # four columns for one reading and writing of the field
        j0, j1, j2, j3 = chosen[k], chosen[k + 1], chosen[k + 2], chosen[k + 3]
        x0, x1, x2, x3 = factor * s[j0], factor * s[j1], factor * s[j2], factor * s[j3]
        c0, c1 = values[(first + j0) * n :][:n], values[(first + j1) * n :][:n]
        c2, c3 = values[(first + j2) * n :][:n], values[(first + j3) * n :][:n]
        for i in range(n):
            field[i] += (x0 * c0[i] + x1 * c1[i]) + (x2 * c2[i] + x3 * c3[i])
        k += 4
    for j in chosen[k:]:
        x, column = factor * s[j], values[(first + j) * n :][:n]
        for i in range(n):
            field[i] += x * column[i]


@compiled
def _add_chain(chain: Any, layer: int, chosen: Any, s: Any, field: Any, factor: float) -> None:
    """Add what the `chosen` neurons of a layer give to themselves and to other layers."""
    jd, left, right = chain
    for j in chosen:
        x = factor * s[j]
        field[layer, j] += jd * x
        if layer + 1 < len(field):
            field[layer + 1, j] += left * x
        if layer > 0:
            field[layer - 1, j] += right * x


@compiled
def _exact_field(
    columns: Any, chain: Any, external: Any, s: Any, a: int, layer: int, i: int
) -> Any:
    """Return the field of neuron i, summed in twice the digits of float64."""
    layers, n = s.shape
    jd, left, right = chain
    high, low = jd * s[layer, i], 0.0
    if layer > 0:
        high, low = _accurate_sum(high, low, left * s[layer - 1, i])
    if layer + 1 < layers:
        high, low = _accurate_sum(high, low, right * s[layer + 1, i])
    if external.shape[2]:
        high, low = _accurate_sum(high, low, external[a, layer, i])
    if len(columns[1]):
        bounds, places, values, row = columns[3], columns[4], columns[5], layer * n + i
        for entry in range(bounds[row], bounds[row + 1]):
            high, low = _accurate_sum(high, low, values[entry] * s[layer, places[entry]])
    else:
        values = columns[0]
        for j in range(n):
            high, low = _accurate_sum(high, low, values[(layer * n + j) * n + i] * s[layer, j])
    return high + low


@compiled
def _accurate_sum(high: float, low: float, x: float) -> Any:
    """Return high + low + x as a sum of two numbers; the error of high + x goes to the second."""
    total = high + x
    part = total - high
    return total, low + ((high - (total - part)) + (x - part))


# Margins in float64.

#: Bytes of states in float64 at a time, at least; large couplings may have a 32nd of theirs.
_SPACE = 2**20


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
    space = max(_SPACE, couplings.nbytes // 32)
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
