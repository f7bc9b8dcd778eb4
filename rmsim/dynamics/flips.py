r"""Fields corrected by what flips.

.. math:: h_i \leftarrow h_i + \sum_{j\ \text{flipped}} J_{ij}\,(s^{new}_j - s^{old}_j)

After the first sweeps few neurons flip, and on a CPU the columns of J whose neurons flipped cost
less than a product: most relaxations cost as much as two or three products, however many sweeps
they take. :func:`add_columns` is this sum, for every part of the simulator that follows flips: the
dynamics (:func:`follow_flips`), learning (:mod:`rmsim.learning.phases`) and the capacity
(:mod:`rmsim.studies.capacity`). Learning by tables of signs has J in panels, and its own order of
the same sum (:mod:`rmsim.learning.sign_tables`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from rmsim.compiled_loops import compiled, compiled_part, run_parts, shares, thread_count
from rmsim.compiled_vectors import GOLDEN
from rmsim.couplings.base import Columns, Couplings
from rmsim.dynamics.sweeps import Update, mask_threshold, mix
from rmsim.tensors import is_up
from rmtheory.base.checks import MOST_COUPLING
from rmtheory.base.errors import InvalidInputError


@compiled_part
def add_columns(columns: Any, first: int, chosen: Any, changes: Any, count: int, h: Any) -> None:
    """Add the change of the first `count` of the `chosen` neurons j times column j to `h`.

    Parameters
    ----------
    columns : (numbers)
        Columns of the length of `h`, one after the other.
    first : int
        Number of the column of neuron 0.
    chosen, changes : (neurons)
        Which neurons, and s_new - s_old of each.
    count : int
        How many of them.
    h : (n)
        Field, or product.
    """
    n, k = len(h), 0
    while k + 4 <= count:  # four columns for one reading and writing of the field
        x0, x1, x2, x3 = changes[k], changes[k + 1], changes[k + 2], changes[k + 3]
        c0, c1 = columns[(first + chosen[k]) * n :], columns[(first + chosen[k + 1]) * n :]
        c2, c3 = columns[(first + chosen[k + 2]) * n :], columns[(first + chosen[k + 3]) * n :]
        for i in range(n):
            h[i] += (x0 * c0[i] + x1 * c1[i]) + (x2 * c2[i] + x3 * c3[i])
        k += 4
    while k < count:
        x, column = changes[k], columns[(first + chosen[k]) * n :]
        for i in range(n):
            h[i] += x * column[i]
        k += 1


# The dynamics by flips.

#: Sweeps after which fields are recomputed, and the interpreter has its turn (Ctrl-C).
_FRESH = 256
#: Neurons tested together for one that stands against its field.
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

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The same memory as arrays, in the order above."""
        tensors = (self.up, self.anchor, self.counters, self.margin, self.unsatisfied)
        return tuple(tensor.numpy() for tensor in tensors)


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

    Fields are in float64, whatever the type of the couplings, and recomputed after some hundred
    sweeps. A field within their rounding bound, :math:`2^{-53}` times the number of additions times
    the largest sum there can be, is summed again in twice the digits. The sign is therefore that of
    the exact field of the couplings as stored, on every machine; products in float32 give another
    one where rounding decides.

    Couplings that :meth:`~rmsim.couplings.base.Couplings.check` would refuse are, one network after
    the other: where all of them come from far memory, a look at them beforehand is an eighth of
    the time.

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
    rule = (mask_threshold(p), update == "sequential")
    arrays = states.arrays
    no_field, no_keys = np.zeros((1, 0, 0)), np.zeros((0, 2), np.int64)

    def follow(places: tuple[int, int], threads: int) -> None:
        columns = None
        for here in range(*places):
            columns = couplings.columns_of(chosen[here], columns)
            largest = _largest_size(columns[0])
            if not largest <= MOST_COUPLING or _has_diagonal(columns, couplings.n):
                couplings.check()
                if not math.isfinite(largest):  # of a kind that has no check of its own
                    allowed = f"finite, and at most {MOST_COUPLING:g} in size"
                    raise InvalidInputError("couplings", f"{largest:g} in size", allowed)
            field, words = no_field, no_keys
            if external is not None:
                field = (
                    external.expand(states.up.shape)[here].to(torch.float64).contiguous().numpy()
                )
            if keys is not None:
                words = keys[here].contiguous().numpy()
            up, anchor, counters, margin, unsatisfied = (array[here] for array in arrays)
            bound = _rounding(largest, couplings.n, exact, field)
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


def _has_diagonal(columns: Columns, n: int) -> bool:
    """Return whether an entry of dense couplings is on a diagonal, where none may be."""
    values, bounds = columns[:2]
    return not len(bounds) and bool(values.reshape(-1, n * n)[:, :: n + 1].any())


def _rounding(most: float, n: int, chain: Sequence[float], field: Any) -> float:
    """Return the error of one addition to a field, in float64, at most."""
    largest = n * most + sum(abs(x) for x in chain)
    if field.size:
        largest += float(np.abs(field).max())
    return float(4 * _UNIT * largest)  # flips double an entry, several are added together


@compiled
def _largest_size(values: Any) -> Any:
    """Return the largest size of a number, 0 if there is none, NaN if one is not finite.

    Groups of numbers go side by side.
    """
    whole = len(values) // _TOGETHER * _TOGETHER
    most, none = np.zeros(_TOGETHER), np.zeros(_TOGETHER)
    for first in range(0, whole, _TOGETHER):
        group = values[first : first + _TOGETHER]
        for k in range(_TOGETHER):
            size = abs(group[k])
            most[k] = size if size > most[k] else most[k]
            none[k] += size * 0  # not 0 if that is infinite or no number
    for k in range(whole, len(values)):
        most[0] = max(most[0], abs(values[k]))
        none[0] += values[k] * 0
    return most.max() + none.sum()


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
    chosen, changes = np.empty(layers * n, np.int64), np.empty(layers * n)
    ends = np.zeros(layers + 1, np.int64)
    origin = second = np.uint32(0)
    for a in range(part[0], part[1]):
        if counters[a, ENDED]:
            continue
        _fresh_fields(columns, chain, external, up, a, chosen, s, field)
        anchored, away, additions = 0, 0, n + 8
        while 2 * anchored <= span[0] and anchored < span[0]:
            anchored = max(1, 2 * anchored)
        if watched:
            for layer in range(layers):
                for i in range(n):
                    away += up[a, layer, i] != anchor[a, layer, i]
        for sweep in range(span[0] + 1, span[1] + 1):
            if masked:
                origin = mix(np.uint32(keys[a, 0] + sweep * GOLDEN))
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
                            if is_up(h) == (spins[i] > 0):
                                continue
                            against += 1
                            if masked:
                                neuron = np.uint32(layer * n + i)
                                x = np.uint32(neuron * np.uint32(GOLDEN) + origin)
                                if mix(np.uint32(mix(x) ^ second)) >= threshold:
                                    continue
                            chosen[count] = i
                            count += 1
                    ends[layer + 1] = count
                for layer in range(first, last):
                    flipped = chosen[ends[layer] : ends[layer + 1]]
                    for k in range(len(flipped)):
                        j = flipped[k]
                        s[layer, j] = -s[layer, j]
                        changes[k] = 2 * s[layer, j]
                        if watched:
                            away += 1 if (s[layer, j] > 0) != anchor[a, layer, j] else -1
                    _add_changes(columns, chain, layer, flipped, changes, field)
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
                    _write_ups(s, anchor, a)
                    anchored, away = sweep, 0
        _write_ups(s, up, a)


@compiled_part
def _write_ups(s: Any, up: Any, a: int) -> None:
    """Write which spins are +1 into ``up[a]``."""
    for layer in range(s.shape[0]):
        for i in range(s.shape[1]):
            up[a, layer, i] = s[layer, i] > 0


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
    every = np.empty(n, np.int64)
    for a in range(part[0], part[1]):
        _fresh_fields(columns, chain, external, up, a, every, s, field)
        least, count = np.inf, 0
        for layer in range(layers):
            for i in range(n):
                h = field[layer, i]
                if abs(h) <= (n + 8) * bound:
                    h = _exact_field(columns, chain, external, s, a, layer, i)
                least = min(least, s[layer, i] * h)
                count += s[layer, i] * h <= 0
        margin[a], unsatisfied[a] = least, count


@compiled_part
def _fresh_fields(
    columns: Any, chain: Any, external: Any, up: Any, a: int, every: Any, s: Any, field: Any
) -> None:
    """Write state `a` as numbers into `s`, and its field, (layers, n)."""
    layers, n = s.shape
    for layer in range(layers):
        for i in range(n):
            every[i] = i
            s[layer, i] = 1.0 if up[a, layer, i] else -1.0
            field[layer, i] = external[a, layer, i] if external.shape[2] else 0.0
    for layer in range(layers):
        _add_changes(columns, chain, layer, every[:n], s[layer], field)


@compiled_part
def _add_changes(
    columns: Any, chain: Any, layer: int, chosen: Any, changes: Any, field: Any
) -> None:
    """Add what the changes of the `chosen` neurons of a layer give to the fields of all layers."""
    values, bounds, rows = columns[0], columns[1], columns[2]
    jd, left, right = chain
    first = layer * field.shape[1]
    if len(bounds):
        for k in range(len(chosen)):
            for entry in range(bounds[first + chosen[k]], bounds[first + chosen[k] + 1]):
                field[layer, rows[entry]] += changes[k] * values[entry]
    else:
        add_columns(values, first, chosen, changes, len(chosen), field[layer])
    for k in range(len(chosen)):
        j, x = chosen[k], changes[k]
        field[layer, j] += jd * x
        if layer + 1 < len(field):
            field[layer + 1, j] += left * x
        if layer > 0:
            field[layer - 1, j] += right * x


@compiled_part
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


@compiled_part
def _accurate_sum(high: float, low: float, x: float) -> Any:
    """Return high + low + x as a sum of two numbers; the error of high + x goes to the second."""
    total = high + x
    part = total - high
    return total, low + ((high - (total - part)) + (x - part))
