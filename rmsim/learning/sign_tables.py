r"""Learning of dense networks on the CPU by tables of signed sums, in machine code.

States are +-1. Four columns of J have eight signed sums up to the sign of the first of them,

.. math:: \sum_{j=1}^4 J_{ij} s_j = s_1 \left(J_{i1} \pm J_{i2} \pm J_{i3} \pm J_{i4}\right),

so that a product of J with the states of a batch is twelve additions for the table and one for
each sample, instead of four for each. The update adds to a column j the vectors
:math:`\sum_b g^b_i s^b_j`: the signed sums of four samples are one table for all columns, and a
batch of 16 costs four additions instead of 16. Sums of the perceptron rule are integers, without
rounding. Between the products only what flips is added up, as in :mod:`rmsim.learning.phases`.

Results are those of the general route (:mod:`rmsim.learning.protocol`) up to the rounding of sums
that are taken in another order. The route serves dense couplings in float32 if every sweep updates
all neurons (:func:`has_tables`): with p < 1 a state may be 0, which is no sign. Inputs that are not
+-1 and labels take ordinary products, as do J of the rules sym1 and sym2, and batches of one to
four.

Rows are stored in panels of 32, ``panel[column, row]``: the rows of a panel are one vector.
Threads have panels of their own when weights are read or learnt, and samples of their own when
states relax, so that results do not depend on their number.
"""

from __future__ import annotations

import inspect
import math
import os
import threading
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.core import cgutils as _cgutils
from numba.extending import intrinsic, models, register_model

from rmsim.compiled_loops import compiled, compiled_part, shares, thread_count
from rmsim.couplings import DenseChain
from rmsim.couplings.rows import rows_of_entries
from rmsim.learning.parameters import Parameters
from rmsim.learning.phases import label_code
from rmsim.learning.plasticity import label_signs, ordered_batches
from rmsim.learning.state import Projection, State

#: Rows of a panel.
ROWS = 32

#: Columns of a group, whose signed sums are tabulated.
_GROUP = 4

#: Groups whose tables stay in the first cache together.
_TOGETHER = 8

#: Samples per batch from which tables are worth it.
_LEAST = 5

_ONE, _HALF = np.float32(1), np.float32(0.5)

#: Couplings worth a thread of their own: below, threads wait longer than they work.
_GRAIN = 2**20


def has_tables(parameters: Parameters, state: State) -> bool:
    """Return whether this route can train this network by this protocol."""
    return (
        isinstance(state.couplings, DenseChain)
        and state.device.type == "cpu"
        and state.dtype == torch.float32
        and parameters.phases.p == 1
    )


class TableLearner:
    """A network that learns by tables; its weights are in panels meanwhile.

    Parameters
    ----------
    parameters : Parameters
        The protocol.
    state : State
        The weights, which are replaced by :meth:`finish`.
    """

    def __init__(self, parameters: Parameters, state: State) -> None:
        self.parameters, self.state = parameters, state
        layers, n = parameters.couplings.shape
        self.panels = -(-n // ROWS)
        self.j = to_panels(state.j.numpy())
        self.feed = self._projected(state.w_in)
        self.back = self._projected(state.w_back)
        read = np.zeros((len(state.w_out), layers, self.panels * ROWS), np.float32)
        read[:, :, :n] = state.w_out.numpy().reshape(-1, layers, n)
        self.out = to_panels(read.reshape(1, len(read), layers * self.panels * ROWS))
        self._calls: dict[int, tuple[Network, TableProtocol, Work]] = {}

    def learn(self, x: torch.Tensor, y: torch.Tensor, order: torch.Tensor) -> None:
        """Learn the samples `order` of `x` and `y` in batches; a last one may be smaller."""
        size = self.parameters.batch.size
        for inputs, labels, batch in ordered_batches(x, y, order, size, self.state.dtype):
            self._learn_batches(inputs, labels, batch)

    def last_states(self) -> torch.Tensor:
        """Return s* of the last batch, (samples, layers, n)."""
        layers, n = self.parameters.couplings.shape
        s, batch = self._last
        return torch.from_numpy(s[:batch].copy()).view(batch, layers, -1)[:, :, :n]

    def finish(self) -> State:
        """Write the weights back and return their state."""
        state, (layers, n) = self.state, self.parameters.couplings.shape
        from_panels(self.j, state.j.numpy())
        for panels, projection in ((self.feed, state.w_in), (self.back, state.w_back)):
            matrix = np.empty((layers, n, projection.shape[1]), np.float32)
            from_panels(panels, matrix)
            dense = torch.from_numpy(matrix).view(projection.shape)
            if projection.bounds is not None:
                assert projection.columns is not None
                dense = dense[rows_of_entries(projection.bounds), projection.columns.long()]
            projection.values.copy_(dense)
        read = np.empty((1, len(state.w_out), layers * self.panels * ROWS), np.float32)
        from_panels(self.out, read)
        state.w_out.copy_(
            torch.from_numpy(read).view(-1, layers, self.panels * ROWS)[:, :, :n].flatten(1)
        )
        return state

    def _projected(self, projection: Projection) -> Any:
        layers, n = self.parameters.couplings.shape
        return to_panels(projection.to_dense().numpy().reshape(layers, n, -1))

    def _learn_batches(self, x: torch.Tensor, y: torch.Tensor, batch: int) -> None:
        """Learn samples as they come, a multiple of `batch`."""
        state = self.state
        signals = (x, label_code(self.parameters, state, y), label_signs(state, y))
        samples = [signal.numpy() for signal in signals]
        if batch not in self._calls:
            self._calls[batch] = (self._network(batch), self._protocol(), self._work(batch))
        network, protocol, work = self._calls[batch]
        work.meetings[:] = 0
        self._last = (work.s, batch)
        threads = min(thread_count(self.j.size, _GRAIN), self.panels, len(work.patterns))
        panels, quads = shares(self.panels, threads), shares(len(work.patterns), threads)
        given: tuple[Any, ...] = (*samples, batch, network, protocol, work)
        parts = [
            np.array([thread, threads, *panels[thread], *quads[thread]])
            for thread in range(threads)
        ]
        # Threads of their own: those of a pool may all be taken by loops that wait for each other.
        others = [threading.Thread(target=learn_batches, args=(*given, part)) for part in parts[1:]]
        for other in others:
            other.start()
        first: Any = (*given, parts[0])
        learn_batches(*first)
        for other in others:
            other.join()

    def _network(self, batch: int) -> Network:
        """Return the weights with their rates for batches of this size."""
        parameters, state = self.parameters, self.state
        layers, n = parameters.couplings.shape
        fans = (state.couplings.fan_in, state.inputs, state.classes, parameters.neurons)
        rates = (
            parameters.rate("j", fans[0], batch),
            parameters.rate("in", fans[1], batch),
            parameters.rate("back", fans[2], batch),
            parameters.rate("out", fans[3], batch),
        )
        decays = (
            parameters.decay("j", fans[0]),
            parameters.decay("in", fans[1]),
            1.0,
            parameters.decay("out", fans[3]),
        )
        read = np.zeros((layers, self.panels * ROWS), np.float32)
        read[:, :n] = state.a_out.numpy().reshape(layers, n)
        kept: tuple[tuple[Any, Any, Any], ...] = (
            (self.j, _ALL, np.ones(n)),
            (self.feed, self._present(state.w_in), np.ones(fans[1])),
            (self.back, self._present(state.w_back), np.ones(fans[2])),
            (self.out, _ALL, read.flatten()),
        )
        return Network(
            *(
                Weights(panels, present, (rate * columns).astype(np.float32), np.float32(decay))
                for (panels, present, columns), rate, decay in zip(kept, rates, decays, strict=True)
            )
        )

    def _present(self, projection: Projection) -> Any:
        """Return 1 for the entries that exist and 0 for others, in panels; nothing if all do."""
        if projection.bounds is None:
            return _ALL
        ones = replace(projection, values=torch.ones_like(projection.values))
        return self._projected(ones)

    def _protocol(self) -> TableProtocol:
        parameters, state = self.parameters, self.state
        layers, n = parameters.couplings.shape
        phases, rule, couplings = parameters.phases, parameters.rule, parameters.couplings
        learning = (parameters.j, parameters.w_in, parameters.w_back, parameters.readout)
        seeing = np.zeros((2, layers, self.panels * ROWS), np.float32)
        for neurons, mask in zip(seeing, (state.a_in, state.a_back), strict=True):
            neurons[:, :n] = mask.numpy().reshape(layers, n)
        test = (
            couplings.jd * rule.test_jd,
            couplings.lam_left,
            couplings.lam_right * rule.test_right,
            *(float(rule.test_input), float(rule.test_labels)),
        )
        learns_out = len(state.w_out) > 0 and parameters.readout.eta > 0
        return TableProtocol(
            n,
            np.array([phases.warmup, phases.clamped, phases.free_sweeps]),
            phases.update == "sequential",
            np.array([*couplings.chain, 1.0, 0.0], np.float32),
            np.array(test, np.float32),
            rule.kind == "perceptron",
            np.float32(rule.gamma),
            np.array([group.kappa for group in learning], np.float32),
            np.array([*(group.eta > 0 for group in learning[:3]), learns_out]),
            ("asym", "sym0", "sym1", "sym2").index(couplings.symmetry) - 1,
            seeing.reshape(2, -1),
        )

    def _work(self, batch: int) -> Work:
        layers = self.parameters.couplings.layers
        width = layers * self.panels * ROWS
        quads = -(-batch // _GROUP)
        lanes = quads * _GROUP
        inputs = self.feed.shape[2]
        threads = torch.get_num_threads()
        pages = self.out.shape[1] * ROWS
        rows = [aligned((lanes, width)) for _ in range(6)]
        rest: tuple[Any, ...] = (
            np.zeros((lanes, width // ROWS), np.uint32),
            np.zeros((lanes, width // _GROUP), np.uint8),
            np.zeros((quads, width), np.uint8),
            aligned((lanes, inputs)),
            np.zeros((lanes, inputs // _GROUP), np.uint8),
            np.zeros((quads, inputs), np.uint8),
            aligned((lanes, self.back.shape[2])),
            aligned((lanes, pages)),
            aligned((threads, _TOGETHER * 8 * ROWS)),
            aligned((threads, 2, lanes, ROWS)),
            np.zeros((threads, width), np.int64),
            aligned((threads, width)),
            np.zeros(1, np.int64),
        )
        return Work(*rows, *rest)


def aligned(shape: tuple[int, ...]) -> Any:
    """Return zeros in float32 that begin at a cache line, as vectors should."""
    size = math.prod(shape)
    memory = np.empty(size + 16, np.float32)  # numpy asks for huge pages here, not for zeros
    memory[:] = 0
    first = -(memory.ctypes.data // 4) % 16
    return memory[first : first + size].reshape(shape)


def to_panels(matrices: Any) -> Any:
    """Return matrices (blocks, rows, columns) as (blocks, panels, columns, 32), filled up with 0.

    Columns are filled up to groups of four.
    """
    blocks, rows, columns = matrices.shape
    panels = aligned((blocks, -(-rows // ROWS), -(-columns // _GROUP) * _GROUP, ROWS))
    for block in range(blocks):
        for first in range(0, rows, ROWS):
            part = matrices[block, first : first + ROWS].T
            panels[block, first // ROWS, :columns, : part.shape[1]] = part
    return panels


def from_panels(panels: Any, matrices: Any) -> None:
    """Write panels back into the matrices that they come from."""
    blocks, rows, columns = matrices.shape
    for block in range(blocks):
        for first in range(0, rows, ROWS):
            part = matrices[block, first : first + ROWS]
            part[:] = panels[block, first // ROWS, :columns, : len(part)].T


#: The entries of a matrix that exist, if all do.
_ALL = np.zeros((0, 0, 0, ROWS), np.float32)


# Weights, protocol and memory as the compiled loops take them.


class Weights(NamedTuple):
    """A matrix in panels, (blocks, panels, columns, 32), and how it learns.

    `present` is 1 for entries that exist, and empty if all do. The columns that have `rates` learn,
    then they decay.
    """

    panels: Any
    present: Any
    rates: Any
    decay: Any


class Network(NamedTuple):
    """J, W_in, W_back and W_out."""

    j: Weights
    feed: Weights
    back: Weights
    out: Weights


class TableProtocol(NamedTuple):
    """The numbers of the protocol.

    Parameters
    ----------
    n : int
        Neurons per layer.
    sweeps : (3)
        Of the phases.
    sequential : bool
        Layer after layer.
    chain, test : (5)
        Factors of s, of the layers before and after, of input and label, in the field of a sweep
        and in that which the rule tests.
    perceptron : bool
        The rule, otherwise the smooth one with `gamma`.
    kappas, learns : (4)
        Of J, W_in, W_back, W_out.
    symmetry : int
        1 for sym1, 2 for sym2, smaller otherwise.
    seeing : (2, neurons)
        1 for neurons that see the input, the label.
    """

    n: int
    sweeps: Any
    sequential: bool
    chain: Any
    test: Any
    perceptron: bool
    gamma: Any
    kappas: Any
    learns: Any
    symmetry: int
    seeing: Any


class Work(NamedTuple):
    """Memory of a batch; a multiple of four samples, neurons in panels.

    Bit i of a word is set where s = +1. The `codes` of a sample have three bits for each four
    neurons, set where the others differ from the first; the `patterns` of a neuron have one bit
    for each of four samples, set where s = +1.
    """

    s: Any
    product: Any
    field: Any
    label: Any
    margin: Any
    g: Any
    words: Any
    codes: Any
    patterns: Any
    inputs: Any
    input_codes: Any
    input_patterns: Any
    labels: Any
    outputs: Any
    tables: Any
    tiles: Any
    flips: Any
    changes: Any
    meetings: Any


# The compiled loops. `part` is (thread, threads, panels from, to, samples from, to, in fours).


@compiled
def learn_batches(
    x: Any, code: Any, signs: Any, batch: int, network: Any, protocol: Any, work: Any, part: Any
) -> None:
    """Learn all samples in batches, this thread its part of each.

    Parameters
    ----------
    x, code, signs : (samples, D), (samples, C), (samples, C)
        Inputs, label codes, and the signs that the readout learns; a multiple of `batch`.
    batch : int
        Samples per batch.
    network : Network
        Weights; replaced.
    protocol : TableProtocol
        Sweeps, margins, rule.
    work : Work
        Memory, shared by the threads.
    part : array
        What this thread does.
    """
    meeting = _zero()
    for start in range(0, len(x), batch):
        meeting = _meet(work, part, meeting)  # all have learnt the batch before
        spins = _take(x, code, start, batch, work, part)
        meeting = _meet(work, part, meeting)
        for panel in range(part[2], part[3]):
            _enter(panel, batch, spins, network, protocol, work, part)
        meeting = _meet(work, part, meeting)
        for panel in range(part[2], part[3]):
            _multiply_states(panel, batch, network, work, part)
        meeting = _meet(work, part, meeting)
        for quad in range(part[4], part[5]):
            for b in range(_GROUP * quad, min(batch, _GROUP * quad + _GROUP)):
                _present(b, network, protocol, work, part[0])
            _set_patterns(quad, work)
        meeting = _meet(work, part, meeting)
        for panel in range(part[2], part[3]):
            _learn(panel, batch, spins, network, protocol, work, part)
        if part[0] == 0 and protocol.learns[3]:
            _learn_readout(signs, start, batch, network, protocol, work)


@compiled_part
def _zero() -> Any:
    """Return 0 as a number that may change: numba builds code of its own for every constant."""
    return np.int64(0)


@compiled_part
def _meet(work: Any, part: Any, meeting: int) -> int:
    """Wait until all threads have come here; return the number of the next meeting."""
    if part[1] > 1:
        arrive(work.meetings)
        waited = 0
        while arrived(work.meetings) < part[1] * (meeting + 1):
            waited += 1
            if waited > 2000:  # the other may wait for this processor
                give_way()
    return meeting + 1


@compiled_part
def _take(x: Any, code: Any, start: int, batch: int, work: Any, part: Any) -> bool:
    """Copy the inputs of the batch, four of all samples at a time; return whether all are +-1."""
    spins = True
    width = x.shape[1]
    for b in range(batch):
        sample = x[start + b]
        for k in range(width):
            spins &= abs(sample[k]) == _ONE
    for quad in range(part[4], part[5]):
        for b in range(_GROUP * quad, min(batch, _GROUP * quad + _GROUP)):
            here, there = x[start + b], work.inputs[b]
            for k in range(width):
                there[k] = here[k]
            work.labels[b, : code.shape[1]] = code[start + b]
            if spins:
                for k in range(width, len(there)):
                    there[k] = _ONE
                for group in range(len(there) // _GROUP):
                    k = _GROUP * group
                    word = (there[k] != there[k + 1]) | (there[k] != there[k + 2]) << 1
                    word |= (there[k] != there[k + 3]) << 2
                    work.input_codes[b, group] = np.uint8(word)
        if spins:
            patterns, four = work.input_patterns[quad], work.inputs[_GROUP * quad :]
            for k in range(len(patterns)):
                word = (four[0, k] > 0) | (four[1, k] > 0) << 1
                patterns[k] = np.uint8(word | (four[2, k] > 0) << 2 | (four[3, k] > 0) << 3)
    return spins


@compiled_part
def _enter(
    panel: int, batch: int, spins: bool, network: Any, protocol: Any, work: Any, part: Any
) -> None:
    """Set the fields of input and label of a panel in all layers, and the first states."""
    layers, panels = network.j.panels.shape[:2]
    table, width, none = work.tables[part[0]], panels * ROWS, _zero()
    feed, back, chain = network.feed.panels, network.back.panels, protocol.chain
    field, label, s, words, codes = work.field, work.label, work.s, work.words, work.codes
    inputs, input_codes, labels = work.inputs, work.input_codes, work.labels
    with_label = protocol.sweeps[0] == 0 and protocol.sweeps[1] > 0
    sequential, unused = protocol.sequential, np.uint32(~_valid(panel, protocol.n))
    for layer in range(layers):
        row = layer * width + panel * ROWS
        _clear(field, row, batch)
        _clear(label, row, batch)
        if spins and batch >= _LEAST:
            _multiply(feed[layer, panel], input_codes, inputs, none, batch, field, row, table)
        else:
            _multiply_reals(feed[layer, panel], inputs, none, batch, field, row)
        _multiply_reals(back[layer, panel], labels, none, batch, label, row)
        for b in range(batch):
            h = load(field, b, row)
            if with_label:
                h = add(h, load(label, b, row))
            if sequential and layer > 0:
                h = add_times(h, load(s, b, row - width), chain, 1)
            word = np.uint32(not_negative(h) | unused)
            words[b, row // ROWS] = word
            store(s, b, row, signs_of(word))
            _set_codes(codes, b, row, word)


@compiled_part
def _valid(panel: int, n: int) -> Any:
    """Return a word with a bit for each row of the panel that is a neuron."""
    rows = min(ROWS, n - panel * ROWS)
    return np.uint32((1 << rows) - 1)


@compiled_part
def _set_codes(codes: Any, b: int, row: int, word: Any) -> None:
    """Write the codes of 32 states, which are given by their bits."""
    first = np.uint32(word & np.uint32(0x11111111))
    word = np.uint32(word ^ np.uint32(first * np.uint32(15)))
    for group in range(ROWS // _GROUP):
        code = np.uint8(word >> np.uint32(4 * group + 1) & np.uint32(7))
        codes[b, row // _GROUP + group] = code


@compiled_part
def _multiply_states(panel: int, batch: int, network: Any, work: Any, part: Any) -> None:
    """Set J s of a panel in all layers."""
    j, codes, s, product = network.j.panels, work.codes, work.s, work.product
    table = work.tables[part[0]]
    layers, panels = j.shape[:2]
    for layer in range(layers):
        first = layer * panels * ROWS
        row = first + panel * ROWS
        _clear(product, row, batch)
        if batch >= _LEAST:
            _multiply(j[layer, panel], codes, s, first, batch, product, row, table)
        else:
            _multiply_reals(j[layer, panel], s, first, batch, product, row)


@compiled_part
def _clear(out: Any, row: int, batch: int) -> None:
    for b in range(batch):
        store(out, b, row, zeros())


@compiled_part
def _multiply(
    matrix: Any, codes: Any, s: Any, first: int, batch: int, out: Any, row: int, table: Any
) -> None:
    """Add the product of a panel with the signs ``s[:, first:]`` to ``out[:, row : row + 32]``."""
    groups = len(matrix) // _GROUP
    offset = first // _GROUP
    for start in range(0, groups, _TOGETHER):
        stop = min(groups, start + _TOGETHER)
        for group in range(start, stop):
            _tabulate(matrix, _GROUP * group, table, 8 * (group - start))
        for b in range(0, batch, 2):  # two at a time: additions wait for the one before
            one, two = load(out, b, row), load(out, b + 1, row)
            for group in range(start, stop):
                entry, code, place = 8 * (group - start), offset + group, first + _GROUP * group
                one = add_entry(one, table, entry, codes, b, code, s, place)
                two = add_entry(two, table, entry, codes, b + 1, code, s, place)
            store(out, b, row, one)
            store(out, b + 1, row, two)


@compiled_part
def _tabulate(matrix: Any, column: int, table: Any, entry: int) -> None:
    """Write a +- b +- c +- d; bits 0, 1, 2 of an entry are set where b, c, d have a minus."""
    a, b = row_of(matrix, column), row_of(matrix, column + 1)
    c, d = row_of(matrix, column + 2), row_of(matrix, column + 3)
    even, odd = add(c, d), subtract(c, d)
    for low in range(2):
        x = add(a, b) if low == 0 else subtract(a, b)
        set_row(table, entry + low, add(x, even))
        set_row(table, entry + low + 2, subtract(x, odd))
        set_row(table, entry + low + 4, add(x, odd))
        set_row(table, entry + low + 6, subtract(x, even))


@compiled_part
def _multiply_reals(matrix: Any, x: Any, first: int, batch: int, out: Any, row: int) -> None:
    """Do it for any numbers x."""
    for b in range(0, batch, 2):
        one, two = load(out, b, row), load(out, b + 1, row)
        for k in range(len(matrix)):
            column = row_of(matrix, k)
            one = add_times_at(one, column, x, b, first + k)
            two = add_times_at(two, column, x, b + 1, first + k)
        store(out, b, row, one)
        store(out, b + 1, row, two)


@compiled_part
def _present(b: int, network: Any, protocol: Any, work: Any, thread: int) -> None:
    """Go through the phases of one sample after its first sweep, and set its margins."""
    # Arrays are taken out of the tuples once: numba counts every reference to them.
    j, chain, test, sequential = (
        network.j.panels,
        protocol.chain,
        protocol.test,
        protocol.sequential,
    )
    s, product, field, label, codes = work.s, work.product, work.field, work.label, work.codes
    words, flips, changes, margin = (
        work.words,
        work.flips[thread],
        work.changes[thread],
        work.margin,
    )
    layers, panels = j.shape[:2]
    width, sweeps, n = panels * ROWS, protocol.sweeps, protocol.n
    started = False
    for phase in range(3):
        count = sweeps[phase]
        if count > 0 and not started:
            started, count = True, count - 1
        for _ in range(count):
            total = _zero()
            for layer in range(layers):
                first = total
                for panel in range(panels):
                    row = layer * width + panel * ROWS
                    h = add_times(load(product, b, row), load(s, b, row), chain, 0)
                    if layer > 0:
                        h = add_times(h, load(s, b, row - width), chain, 1)
                    if layer < layers - 1:
                        h = add_times(h, load(s, b, row + width), chain, 2)
                    external = load(field, b, row)
                    if phase == 1:
                        external = add(external, load(label, b, row))
                    word = np.uint32(not_negative(add(h, external)) | ~_valid(panel, n))
                    change = np.uint64(word ^ words[b, row // ROWS])
                    words[b, row // ROWS] = word
                    while change != 0:
                        flips[total] = row + trailing_zeros(change)
                        total += 1
                        change &= change - np.uint64(1)
                if sequential:
                    _flip(j, layer, b, first, total, flips, changes, s, product)
            if total == 0:
                break  # a fixed point
            if not sequential:
                first = _zero()
                for layer in range(layers):
                    last = first
                    while last < total and flips[last] < (layer + 1) * width:
                        last += 1
                    _flip(j, layer, b, first, last, flips, changes, s, product)
                    first = last
    for layer in range(layers):
        for row in range(layer * width, (layer + 1) * width, ROWS):
            here = load(s, b, row)
            h = add_times(load(product, b, row), here, test, 0)
            if layer > 0:
                h = add_times(h, load(s, b, row - width), test, 1)
            if layer < layers - 1:
                h = add_times(h, load(s, b, row + width), test, 2)
            h = add_times(h, load(field, b, row), test, 3)
            h = add_times(h, load(label, b, row), test, 4)
            store(margin, b, row, multiply(h, here))
            _set_codes(codes, b, row, words[b, row // ROWS])
    if protocol.symmetry > 0:
        g, kappas, smooth = work.g, protocol.kappas, not protocol.perceptron
        for row in range(0, layers * width, ROWS):
            kept = _gate(load(margin, b, row), load(s, b, row), kappas, 0, smooth, protocol.gamma)
            store(g, b, row, kept)


@compiled_part
def _flip(
    j: Any,
    layer: int,
    b: int,
    first: int,
    last: int,
    flips: Any,
    changes: Any,
    s: Any,
    product: Any,
) -> None:
    """Let neurons ``flips[first:last]`` of a layer flip, and correct the product."""
    if first == last:
        return
    panels = j.shape[1]
    start = layer * panels * ROWS
    for k in range(first, last):
        now = -s[b, flips[k]]
        s[b, flips[k]] = now
        changes[k] = now + now
        flips[k] -= start
    for panel in range(panels):
        matrix, row = j[layer, panel], start + panel * ROWS
        total = load(product, b, row)
        for k in range(first, last):
            total = add_times(total, row_of(matrix, flips[k]), changes, k)
        store(product, b, row, total)


@compiled_part
def _set_patterns(quad: int, work: Any) -> None:
    """Set the patterns of four samples."""
    patterns, words = work.patterns[quad], work.words[_GROUP * quad : _GROUP * quad + _GROUP]
    for k in range(words.shape[1]):
        a, b, c, d = words[0, k], words[1, k], words[2, k], words[3, k]
        for i in range(ROWS):
            shift = np.uint32(i)
            low = (a >> shift & np.uint32(1)) | (b >> shift & np.uint32(1)) << np.uint32(1)
            high = (c >> shift & np.uint32(1)) | (d >> shift & np.uint32(1)) << np.uint32(1)
            patterns[ROWS * k + i] = np.uint8(low | high << np.uint32(2))


@compiled_part
def _gate(margin: Any, s: Any, kappas: Any, index: int, smooth: bool, gamma: Any) -> Any:
    """Return g = s w(margin) of 32 neurons."""
    if not smooth:
        return where_at_most(margin, kappas, index, s)
    g, kappa = zeros(), kappas[index]
    for i in range(ROWS):
        weight = (_ONE - np.tanh(gamma * (item(margin, i) - kappa))) * _HALF
        g = with_item(g, i, item(s, i) * weight)
    return g


@compiled_part
def _learn(
    panel: int, batch: int, spins: bool, network: Any, protocol: Any, work: Any, part: Any
) -> None:
    """Let the rows of a panel of J, W_in and W_back learn, in all layers."""
    j, patterns, input_patterns = network.j.panels, work.patterns, work.input_patterns
    table, tile, states = work.tables[part[0]], work.tiles[part[0], 0], work.tiles[part[0], 1]
    s, g, margin, seeing = work.s, work.g, work.margin, protocol.seeing
    kappas, smooth, gamma = protocol.kappas, not protocol.perceptron, protocol.gamma
    layers, panels = j.shape[:2]
    width, none = panels * ROWS, _zero()
    for layer in range(layers):
        first = layer * width
        row = first + panel * ROWS
        for kind in range(3):
            if not protocol.learns[kind]:
                continue
            for b in range(batch):
                here = load(s, b, row)
                gate = _gate(load(margin, b, row), here, kappas, kind, smooth, gamma)
                if kind > 0:
                    gate = multiply(gate, load(seeing, kind - 1, row))
                set_row(tile, b, gate)
                set_row(states, b, here)
            if kind == 0:
                matrix, weights = j[layer, panel], network.j
                if protocol.symmetry == 2:
                    _learn_pairs(weights, matrix, tile, states, s, g, first, batch)
                elif protocol.symmetry == 1:
                    _learn_reals(weights, matrix, tile, g, first, batch)
                elif batch >= _LEAST:
                    _learn_signs(weights, matrix, tile, patterns, first, table)
                else:
                    _learn_reals(weights, matrix, tile, s, first, batch)
                for i in range(min(ROWS, protocol.n - panel * ROWS)):
                    matrix[panel * ROWS + i, i] = 0  # J_D is kept apart
            else:
                weights, x = network.feed, work.inputs
                if kind == 2:
                    weights, x = network.back, work.labels
                matrix = weights.panels[layer, panel]
                if kind == 1 and spins and batch >= _LEAST:
                    _learn_signs(weights, matrix, tile, input_patterns, none, table)
                else:
                    _learn_reals(weights, matrix, tile, x, none, batch)
                if weights.present.size > 0:
                    present = weights.present[layer, panel]
                    for k in range(len(matrix)):
                        set_row(matrix, k, multiply(row_of(matrix, k), row_of(present, k)))


@compiled_part
def _learn_readout(
    signs: Any, start: int, batch: int, network: Any, protocol: Any, work: Any
) -> None:
    """Let W_out learn: outputs y_c o_c <= kappa_out."""
    classes = signs.shape[1]
    table, tile, none = work.tables[0], work.tiles[0, 0], _zero()
    outputs, codes, s, patterns = work.outputs, work.codes, work.s, work.patterns
    kappa = protocol.kappas[3]
    for panel in range(network.out.panels.shape[1]):
        row, matrix = panel * ROWS, network.out.panels[0, panel]
        _clear(outputs, row, batch)
        if batch >= _LEAST:
            _multiply(matrix, codes, s, none, batch, outputs, row, table)
        else:
            _multiply_reals(matrix, s, none, batch, outputs, row)
        for b in range(batch):
            for i in range(ROWS):
                tile[b, i] = 0
                c = row + i
                if c < classes:
                    y = signs[start + b, c]
                    if y * outputs[b, c] <= kappa:
                        tile[b, i] = y
        if batch >= _LEAST:
            _learn_signs(network.out, matrix, tile, patterns, none, table)
        else:
            _learn_reals(network.out, matrix, tile, s, none, batch)


@compiled_part
def _learn_signs(
    weights: Any, matrix: Any, tile: Any, patterns: Any, first: int, table: Any
) -> None:
    """Add rate * sum over samples of g s_j to the columns of a panel; 16 samples at a time."""
    quads = len(patterns)
    rates = weights.rates
    for start in range(0, quads, 4):
        for k in range(4):
            quad = start + k
            if quad < quads:
                _tabulate_samples(tile, _GROUP * quad, table, 16 * k)
            else:
                for entry in range(16):
                    set_row(table, 16 * k + entry, zeros())
        last = quads - 1  # what is tabulated as 0 may have any pattern
        p, q, r = min(last, start + 1), min(last, start + 2), min(last, start + 3)
        decay = weights.decay if start + 4 >= quads else _ONE
        for j in range(len(weights.rates)):
            low = add(
                entry_of(table, 0, patterns, start, first + j),
                entry_of(table, 16, patterns, p, first + j),
            )
            high = add(
                entry_of(table, 32, patterns, q, first + j),
                entry_of(table, 48, patterns, r, first + j),
            )
            set_row(matrix, j, times(add_times(row_of(matrix, j), add(low, high), rates, j), decay))


@compiled_part
def _tabulate_samples(tile: Any, b: int, table: Any, entry: int) -> None:
    """Write +- g^1 +- g^2 +- g^3 +- g^4; the bits of an entry are set where the sign is +."""
    even, odd = (
        add(row_of(tile, b), row_of(tile, b + 1)),
        subtract(row_of(tile, b), row_of(tile, b + 1)),
    )
    c, d = row_of(tile, b + 2), row_of(tile, b + 3)
    u, v = add(c, d), subtract(c, d)
    for low in range(4):
        x = even
        if low == 0:
            x = subtract(zeros(), even)
        elif low == 1:
            x = odd
        elif low == 2:
            x = subtract(zeros(), odd)
        set_row(table, entry + low, subtract(x, u))
        set_row(table, entry + low + 4, add(x, v))
        set_row(table, entry + low + 8, subtract(x, v))
        set_row(table, entry + low + 12, add(x, u))


@compiled_part
def _learn_reals(weights: Any, matrix: Any, tile: Any, x: Any, first: int, batch: int) -> None:
    """Add rate * sum over samples of g x_k to the columns of a panel, for any numbers x."""
    rates, decay = weights.rates, weights.decay
    for k in range(len(weights.rates)):
        total = zeros()
        for b in range(batch):
            total = add_times_at(total, row_of(tile, b), x, b, first + k)
        set_row(matrix, k, times(add_times(row_of(matrix, k), total, rates, k), decay))


@compiled_part
def _learn_pairs(
    weights: Any, matrix: Any, tile: Any, states: Any, s: Any, g: Any, first: int, batch: int
) -> None:
    """Add rate * sum over samples of (g_i s_j + s_i g_j)/2, symmetric to the last bit."""
    rates, decay = weights.rates, weights.decay
    for j in range(len(weights.rates)):
        one, two = zeros(), zeros()
        for b in range(batch):
            one = add_times_at(one, row_of(tile, b), s, b, first + j)
            two = add_times_at(two, row_of(states, b), g, b, first + j)
        total = times(add(one, two), _HALF)
        set_row(matrix, j, times(add_times(row_of(matrix, j), total, rates, j), decay))


# Vectors of 32 numbers, a type of their own: numba would put a sum back into memory each time.

cgutils: Any = _cgutils  # carries no types

_WORD, _INDEX, _BIT = ir.IntType(64), ir.IntType(32), ir.IntType(1)
_VECTOR = ir.VectorType(ir.FloatType(), ROWS)


class VectorType(types.Type):
    """32 numbers in float32."""

    def __init__(self) -> None:
        super().__init__(name="Vector32")


@register_model(VectorType)
class VectorModel(models.PrimitiveModel):
    """They are one value of LLVM, which cuts it to the registers of the machine."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)  # type: ignore[no-untyped-call]


vector = VectorType()


def _constant(value: float) -> Any:
    return ir.Constant(_VECTOR, [value] * ROWS)


def _splat(builder: Any, number: Any) -> Any:
    unknown = ir.Constant(_VECTOR, ir.Undefined)
    single = builder.insert_element(unknown, number, ir.Constant(_INDEX, 0))
    everywhere = ir.Constant(ir.VectorType(_INDEX, ROWS), [0] * ROWS)
    return builder.shuffle_vector(single, unknown, everywhere)


def _place(context: Any, builder: Any, kind: Any, array: Any, *index: Any) -> Any:
    """Return a pointer to ``array[index]``; it is not checked, and no index is negative."""
    made = context.make_array(kind)(context, builder, array)
    if len(index) == 1:
        return builder.gep(made.data, [index[0]])
    width = builder.extract_value(made.shape, 1)
    return builder.gep(made.data, [builder.add(builder.mul(index[0], width), index[1])])


def _vector_at(context: Any, builder: Any, kind: Any, array: Any, *index: Any) -> Any:
    place = _place(context, builder, kind, array, *index)
    return builder.bitcast(place, _VECTOR.as_pointer())


def _row_at(context: Any, builder: Any, kind: Any, array: Any, row: Any) -> Any:
    """Return a pointer to row `row` of an array whose rows are 32 numbers."""
    data = context.make_array(kind)(context, builder, array).data
    place = builder.gep(data, [builder.mul(row, ir.Constant(_WORD, ROWS))])
    return builder.bitcast(place, _VECTOR.as_pointer())


def _sum(builder: Any, total: Any, one: Any, number: Any) -> Any:
    """Return total + one * number, fused where the machine can."""
    product = builder.fmul(one, _splat(builder, number), flags=("contract",))
    return builder.fadd(total, product, flags=("contract",))


def _operation(result: Any, kinds: tuple[Any, ...], generate: Any) -> Any:
    """Return an operation of the compiled loops; a kind None is that of the argument."""

    def operation(typing_context: Any, *given: Any) -> Any:
        own = (kind if asked is None else asked for kind, asked in zip(given, kinds, strict=True))

        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            value = generate(context, builder, signature.args, arguments)
            return context.get_dummy_value() if value is None else value

        return result(*own), code

    names = ("typing_context", *(f"argument_{k}" for k in range(len(kinds))))
    arguments = [inspect.Parameter(x, inspect.Parameter.POSITIONAL_OR_KEYWORD) for x in names]
    vars(operation)["__signature__"] = inspect.Signature(arguments)  # numba counts them
    return intrinsic(operation)


def _load(context: Any, builder: Any, kinds: Any, given: Any) -> Any:
    return builder.load(_vector_at(context, builder, kinds[0], *given), align=4)


def _store(context: Any, builder: Any, kinds: Any, given: Any) -> None:
    builder.store(given[3], _vector_at(context, builder, kinds[0], *given[:3]), align=4)


def _row_of(context: Any, builder: Any, kinds: Any, given: Any) -> Any:
    return builder.load(_row_at(context, builder, kinds[0], *given), align=4)


def _set_row(context: Any, builder: Any, kinds: Any, given: Any) -> None:
    builder.store(given[2], _row_at(context, builder, kinds[0], *given[:2]), align=4)


def _entry_of(context: Any, builder: Any, kinds: Any, given: Any) -> Any:
    table, entry, codes, row, column = given
    code = builder.load(_place(context, builder, kinds[2], codes, row, column))
    entry = builder.add(entry, builder.zext(code, _WORD))
    return builder.load(_row_at(context, builder, kinds[0], table, entry), align=4)


def _add_entry(context: Any, builder: Any, kinds: Any, given: Any) -> Any:
    total, table, entry, codes, row, column, s, place = given
    found = _entry_of(context, builder, kinds[1:], (table, entry, codes, row, column))
    sign = builder.load(_place(context, builder, kinds[6], s, row, place))
    return _sum(builder, total, found, sign)


def _add_times(context: Any, builder: Any, kinds: Any, given: Any) -> Any:
    number = builder.load(_place(context, builder, kinds[2], *given[2:]))
    return _sum(builder, given[0], given[1], number)


def _not_negative(context: Any, builder: Any, kinds: Any, given: Any) -> Any:
    return builder.bitcast(builder.fcmp_ordered(">=", given[0], _constant(0.0)), _INDEX)


def _signs_of(context: Any, builder: Any, kinds: Any, given: Any) -> Any:
    up = builder.bitcast(given[0], ir.VectorType(_BIT, ROWS))
    return builder.select(up, _constant(1.0), _constant(-1.0))


def _where_at_most(context: Any, builder: Any, kinds: Any, given: Any) -> Any:
    margin, kappas, index, s = given
    kappa = builder.load(_place(context, builder, kinds[1], kappas, index))
    below = builder.fcmp_ordered("<=", margin, _splat(builder, kappa))
    return builder.select(below, s, _constant(0.0))


def _item(context: Any, builder: Any, kinds: Any, given: Any) -> Any:
    return builder.extract_element(given[0], builder.trunc(given[1], _INDEX))


def _with_item(context: Any, builder: Any, kinds: Any, given: Any) -> Any:
    return builder.insert_element(given[0], given[2], builder.trunc(given[1], _INDEX))


def _trailing_zeros(context: Any, builder: Any, kinds: Any, given: Any) -> Any:
    return builder.cttz(given[0], ir.Constant(_BIT, 1))


def _arrive(context: Any, builder: Any, kinds: Any, given: Any) -> None:
    place = _place(context, builder, kinds[0], given[0], ir.Constant(_WORD, 0))
    builder.atomic_rmw("add", place, ir.Constant(_WORD, 1), "seq_cst")


def _arrived(context: Any, builder: Any, kinds: Any, given: Any) -> Any:
    place = _place(context, builder, kinds[0], given[0], ir.Constant(_WORD, 0))
    return builder.load_atomic(place, "seq_cst", 8)


def _give_way(context: Any, builder: Any, kinds: Any, given: Any) -> None:
    if os.name == "posix":
        kind = ir.FunctionType(_INDEX, [])
        function = cgutils.get_or_insert_function(builder.module, kind, "sched_yield")
        builder.call(function, [])


_INT, _REAL = types.int64, types.float32
#: ``load(array, i, j)`` is ``array[i, j : j + 32]``; ``store(array, i, j, vector)`` writes it.
load = _operation(vector, (None, _INT, _INT), _load)
store = _operation(types.void, (None, _INT, _INT, vector), _store)
#: ``row_of(array, i)`` is ``array[i]`` of rows of 32; ``set_row(array, i, vector)`` writes it.
row_of = _operation(vector, (None, _INT), _row_of)
set_row = _operation(types.void, (None, _INT, vector), _set_row)
zeros = _operation(vector, (), lambda context, builder, kinds, given: _constant(0.0))
add = _operation(
    vector, (vector, vector), lambda context, builder, kinds, given: builder.fadd(*given)
)
subtract = _operation(
    vector, (vector, vector), lambda context, builder, kinds, given: builder.fsub(*given)
)
multiply = _operation(
    vector, (vector, vector), lambda context, builder, kinds, given: builder.fmul(*given)
)
#: ``times(vector, number)``.
times = _operation(
    vector,
    (vector, _REAL),
    lambda context, builder, kinds, given: builder.fmul(given[0], _splat(builder, given[1])),
)
#: ``add_times(total, vector, numbers, i)`` is ``total + numbers[i] * vector``.
add_times = _operation(vector, (vector, vector, None, _INT), _add_times)
#: ``add_times_at(total, vector, numbers, i, j)`` is ``total + numbers[i, j] * vector``.
add_times_at = _operation(vector, (vector, vector, None, _INT, _INT), _add_times)
#: ``entry_of(table, entry, codes, i, j)`` is ``table[entry + codes[i, j]]``.
entry_of = _operation(vector, (None, _INT, None, _INT, _INT), _entry_of)
#: ``add_entry(total, table, entry, codes, i, j, s, k)`` adds ``s[i, k]`` times that.
add_entry = _operation(vector, (vector, None, _INT, None, _INT, _INT, None, _INT), _add_entry)
#: ``not_negative(vector)`` has bit i set where element i is 0 or more; ``signs_of(word)`` is +1
#: where a bit is set, -1 elsewhere.
not_negative = _operation(types.uint32, (vector,), _not_negative)
signs_of = _operation(vector, (types.uint32,), _signs_of)
#: ``where_at_most(margin, kappas, i, s)`` is s where the margin is at most ``kappas[i]``, or 0.
where_at_most = _operation(vector, (vector, None, _INT, vector), _where_at_most)
#: ``item(vector, i)``, and ``with_item(vector, i, number)`` with another one there.
item = _operation(_REAL, (vector, _INT), _item)
with_item = _operation(vector, (vector, _INT, _REAL), _with_item)
trailing_zeros = _operation(types.uint64, (types.uint64,), _trailing_zeros)
#: ``arrive(count)`` adds 1 to ``count[0]``, seen by all threads; ``arrived(count)`` reads it.
arrive = _operation(types.void, (None,), _arrive)
arrived = _operation(_INT, (None,), _arrived)
give_way = _operation(types.void, (), _give_way)
