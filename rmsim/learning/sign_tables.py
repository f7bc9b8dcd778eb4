r"""Learning of dense networks on the CPU by tables of signed sums, in machine code.

States are +-1. Four columns of J have eight signed sums up to the sign of the first of them,

.. math:: \sum_{j=1}^4 J_{ij} s_j = s_1 \left(J_{i1} \pm J_{i2} \pm J_{i3} \pm J_{i4}\right),

so that a product of J with the states of a batch is twelve additions for the table and one for
each sample, instead of four for each. The update adds to a column j the vectors
:math:`\sum_b g^b_i s^b_j`: the signed sums of four samples are one table for all columns, and a
batch of 16 costs four additions instead of 16. Sums of the perceptron rule are integers, without
rounding. Between the products only what flips is added up, as in :mod:`rmsim.learning.phases`.

Results are those of the general route (:mod:`rmsim.learning.protocol`) up to the rounding of sums
that are taken in another order. The route serves dense couplings in float32, and others of which
so many exist that the zeros between them cost less than their places (:func:`has_tables`).
Inputs that are not +-1 and labels take ordinary products, as do J of the rules sym1 and sym2,
batches of one to four, and those after which a neuron is still 0: with p < 1 it may never have been
updated, and 0 is no sign. Masks are those of the general route, bit for bit.

Rows are stored in panels of 32, ``panel[column, row]``: the rows of a panel are one vector
(:mod:`rmsim.compiled_vectors`). The loops are in :mod:`rmsim.learning.sign_table_loops`.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from rmsim.compiled_loops import compiled, compiled_part, run_parts, shares, thread_count
from rmsim.compiled_vectors import GROUP, ROWS, real, set_byte, store, store_bytes, whole
from rmsim.couplings.rows import rows_of_entries
from rmsim.dynamics.sweeps import mask_keys, mask_threshold
from rmsim.learning.parameters import Parameters
from rmsim.learning.phases import INFERENCE, LEARNING, label_code
from rmsim.learning.plasticity import label_signs, ordered_batches
from rmsim.learning.sign_table_loops import (
    CHAIN,
    CODES,
    GROUPS,
    LEAST,
    all_signs,
    enter,
    flag,
    judge,
    learn_and_multiply_j,
    learn_inputs,
    learn_readout,
    learn_reals,
    leave_out,
    meet,
    multiply_reals,
    place_of,
    set_patterns_of_inputs,
    spins,
    sweep_on,
    take,
)
from rmsim.learning.state import Projection, State

#: Samples of a batch are filled up to multiples of this.
_LANES = 16

#: Samples whose states are read together: one table serves all of them.
_READ = 64

#: Bytes of inputs in float32 at a time.
_SPACE = 2**24

#: Batches by which one thread is timed; seconds for which several are, since a new one shares the
#: processor of the first for some hundredth of a second; and seconds until both are timed again.
_TRIED, _TIMED, _AGAIN = 8, 0.1, 10.0

#: Couplings worth a thread of their own: below, threads wait longer than they work.
_GRAIN = 2**18


#: Share of the couplings that exist from which tables of all are faster than rows of these: .08 at
#: n = 600, .1 at 2000.
_DENSE = 0.12


def has_tables(parameters: Parameters, state: State) -> bool:
    """Return whether this route can train this network, and is the fastest of a CPU.

    Couplings of which some do not exist take it if they are given layer by layer: those stay 0.
    """
    if state.device.type != "cpu" or state.dtype != torch.float32:
        return False
    rows = state.couplings.compressed()
    if rows is None:
        return True
    layers, n = parameters.couplings.shape
    return (rows.groups, rows.size) == (layers, n) and rows.values.numel() > _DENSE * layers * n * n


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
        self.j = to_panels(state.dense_j().numpy())
        self.feed = self._projected(state.w_in)
        self.back = self._projected(state.w_back)
        read = np.zeros((len(state.w_out), layers, self.panels * ROWS), np.float32)
        read[:, :, :n] = state.w_out.numpy().reshape(-1, layers, n)
        self.out = to_panels(read.reshape(1, len(read), layers * self.panels * ROWS))
        self._memory: dict[tuple[int, int], _Memory] = {}
        self._step = state.step
        self._pace: dict[int, float] = {}
        self._tried = 0.0

    def learn(self, x: torch.Tensor, y: torch.Tensor, order: torch.Tensor) -> None:
        """Learn the samples `order` of `x` and `y` in batches; a last one may be smaller."""
        size = self.parameters.batch.size
        for inputs, labels, batch in ordered_batches(x, y, order, size, self.state.dtype):
            most, done = min(thread_count(self.j.size, _GRAIN), self.panels, batch), 0
            while done < len(inputs):
                threads, timed = self._threads(most)
                if batch < size or len(inputs) - done <= batch:
                    timed = 0
                some = slice(done, done + timed * batch if timed else len(inputs))
                if timed:
                    self._pace[threads] = self._timed(inputs[some], labels[some], batch, threads)
                else:
                    self._learn_batches(inputs[some], labels[some], batch, threads)
                done = min(some.stop, len(inputs))

    def _timed(self, x: torch.Tensor, y: torch.Tensor, batch: int, threads: int) -> float:
        """Learn two batches or more, and return the seconds of one; the first, cold, is not timed.

        Memory is allocated and machine code loaded at the first.
        """
        self._learn_batches(x[:batch], y[:batch], batch, threads)
        start = time.perf_counter()
        self._learn_batches(x[batch:], y[batch:], batch, threads)
        return (time.perf_counter() - start) / (len(x) // batch - 1)

    def _threads(self, most: int) -> tuple[int, int]:
        """Return how many threads learn next, and how many batches to be timed; 0 for the rest.

        Threads that meet twenty times a batch are slower than one where other processes have the
        processors. The weights do not depend on it.
        """
        if most == 1:
            return 1, 0
        if 1 not in self._pace or time.perf_counter() - self._tried > _AGAIN:
            self._pace, self._tried = {}, time.perf_counter()
            return 1, _TRIED
        if most not in self._pace:
            return most, max(_TRIED, int(_TIMED / self._pace[1]))
        return min(self._pace, key=self._pace.__getitem__), 0

    def last_states(self) -> torch.Tensor:
        """Return s* of the last batch, (samples, layers, n)."""
        layers, n = self.parameters.couplings.shape
        s, batch = self._last
        by_layer = s.reshape(layers, self.panels, -1, ROWS)[:, :, :batch].transpose(2, 0, 1, 3)
        return torch.from_numpy(by_layer.reshape(batch, layers, -1)[:, :, :n].copy())

    def finish(self) -> State:
        """Write the weights back and return their state."""
        state, (layers, n) = self.state, self.parameters.couplings.shape
        rows = state.couplings.compressed()
        couplings = np.empty((layers, n, n), np.float32)
        from_panels(self.j, couplings)
        if rows is None:
            state.j.copy_(torch.from_numpy(couplings))
        else:
            there = rows_of_entries(rows.bounds), rows.columns.long()
            state.j.copy_(torch.from_numpy(couplings).view(layers * n, n)[there])
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

    def _learn_batches(self, x: torch.Tensor, y: torch.Tensor, batch: int, threads: int) -> None:
        """Learn samples as they come, a multiple of `batch`."""
        state = self.state
        signals = (x, label_code(self.parameters, state, y), label_signs(state, y))
        samples = [np.ascontiguousarray(signal.numpy(), np.float32) for signal in signals]
        keys = self._keys(len(x) // batch, batch)
        if (batch, threads) not in self._memory:  # threads have tables of their own
            self._memory[batch, threads] = self._allocated(batch, threads)
        memory = self._memory[batch, threads]
        memory.meetings[:] = 0
        self._last = (memory.s, batch)
        panels, rows = shares(self.panels, threads), shares(batch, threads)
        shapes = (len(x), *(array.shape[1] for array in samples), batch, address(keys), 0)
        batches = Batches(*(address(array) for array in samples), *shapes)
        given: tuple[Any, ...] = (batches, memory.network, memory.protocol, memory.work)
        parts = [
            (*given, Part(thread, threads, *panels[thread], *rows[thread]))
            for thread in range(threads)
        ]
        # Threads of their own: those of a pool may all be taken by loops that wait for each other.
        others = [threading.Thread(target=learn_batches, args=part) for part in parts[1:]]
        for other in others:
            other.start()
        learn_batches(*parts[0])
        for other in others:
            other.join()

    def _keys(self, batches: int, batch: int) -> Any:
        """Return the keys of the masks of the next batches, (samples, 2)."""
        numbers = range(self._step + 1, self._step + 1 + batches)
        self._step += batches
        if self.parameters.phases.p == 1:
            return np.zeros((1, 2), np.int64)
        return mask_keys(self.state.seed, numbers, batch, LEARNING).view(-1, 2).numpy()

    def _allocated(self, batch: int, threads: int) -> _Memory:
        """Return what the compiled loops need for batches of this size."""
        layers, inputs = self.parameters.couplings.layers, self.feed.shape[2]
        lanes = -(-batch // _LANES) * _LANES
        panels, columns = layers * self.panels, -(-inputs // ROWS)
        outputs = self.out.shape[1]
        quads = lanes // GROUP
        tables = ROWS * (8 * GROUPS + 16 * quads)
        size, tile = panels * lanes, lanes * ROWS
        arrays = {
            **{name: aligned((panels * tile,)) for name in ("s", "product", "field", "label")},
            "g": aligned((3 * panels * tile,)),
            "words": np.zeros(size, np.uint32),
            "wanted": np.zeros(size, np.uint32),
            "there": np.zeros(size, np.uint32),
            "codes": np.zeros(size * CODES, np.uint8),
            "patterns": np.zeros(panels * quads * ROWS, np.uint8),
            "inputs": aligned((columns * tile,)),
            "input_codes": np.zeros(columns * lanes * CODES, np.uint8),
            "input_patterns": np.zeros(columns * quads * ROWS, np.uint8),
            "labels": aligned((lanes * self.back.shape[2],)),
            "outputs": aligned((outputs * tile,)),
            "gates": aligned((outputs * tile,)),
            "tables": aligned((threads * tables,)),
            "flips": np.zeros(panels * tile, np.int64),
            "changes": aligned((panels * tile,)),
            "counts": np.zeros(lanes * layers, np.int64),
            "moved": np.zeros(2 * lanes, np.int64),
            "meetings": np.zeros(1, np.int64),
        }
        addresses = {name: address(array) for name, array in arrays.items()}
        work = Work(lanes=lanes, quads=quads, size=4 * tables, **addresses)
        network, weights = self._network(batch)
        protocol, numbers = self._protocol()
        kept = [*arrays.values(), *weights, *numbers]
        return _Memory(network, protocol, work, arrays["s"], arrays["meetings"], kept)

    def _network(self, batch: int) -> tuple[Network, list[Any]]:
        """Return the weights with their rates for batches of this size, and the arrays of these."""
        parameters, state = self.parameters, self.state
        layers, n = parameters.couplings.shape
        fans = (state.couplings.fan_in, state.inputs, state.classes, parameters.neurons)
        rates = (
            parameters.rate("j", fans[0], batch),
            parameters.rate("in", fans[1], batch),
            parameters.rate("back", fans[2], batch),
            parameters.rate("out", fans[3], batch),
        )
        read = np.zeros((layers, self.panels * ROWS), np.float32)
        read[:, :n] = state.a_out.numpy().reshape(layers, n)
        columns: tuple[Any, ...] = (np.ones(n), np.ones(fans[1]), np.ones(fans[2]), read.flatten())
        panels = (self.j, self.feed, self.back, self.out)
        there = None
        if state.couplings.compressed() is not None:
            ones = state.couplings.with_weights(torch.ones_like(state.j)).dense_blocks(0)
            there = to_panels(ones.numpy())
        present = (there, self._present(state.w_in), self._present(state.w_back), None)
        weights, arrays = [], []
        for matrix, entries, rate, learning in zip(panels, present, rates, columns, strict=True):
            own = (rate * learning).astype(np.float32)
            there = 0 if entries is None else address(entries)
            weights.append(Weights(address(matrix), there, address(own), matrix.shape[2], len(own)))
            arrays += [own, entries]
        return Network(*weights), arrays

    def _present(self, projection: Projection) -> Any:
        """Return 1 for the entries that exist and 0 for others, in panels; None if all do."""
        if projection.bounds is None:
            return None
        ones = replace(projection, values=torch.ones_like(projection.values))
        return self._projected(ones)

    def _protocol(self) -> tuple[TableProtocol, list[Any]]:
        """Return the protocol as the loops take it, and the arrays of its numbers."""
        parameters, state = self.parameters, self.state
        layers, n = parameters.couplings.shape
        phases, rule, couplings = parameters.phases, parameters.rule, parameters.couplings
        learning = (parameters.j, parameters.w_in, parameters.w_back, parameters.readout)
        seeing = np.zeros((2, layers, self.panels * ROWS), np.float32)
        for neurons, mask in zip(seeing, (state.a_in, state.a_back), strict=True):
            neurons[:, :n] = mask.numpy().reshape(layers, n)
        numbers = (
            *couplings.chain,
            couplings.jd * rule.test_jd,
            couplings.lam_left,
            couplings.lam_right * rule.test_right,
            *(float(rule.test_input), float(rule.test_labels)),
            *(group.kappa for group in learning),
            parameters.decay("j", state.couplings.fan_in),
            parameters.decay("in", state.inputs),
            1.0,
            parameters.decay("out", parameters.neurons),
            rule.gamma,
        )
        learns_out = len(state.w_out) > 0 and parameters.readout.eta > 0
        arrays = [
            np.array(numbers, np.float32),
            np.array([*(group.eta > 0 for group in learning[:3]), learns_out], np.int64),
            seeing,
        ]
        protocol = TableProtocol(
            *(n, layers, self.panels),
            *(phases.warmup, phases.clamped),
            phases.warmup + phases.clamped + phases.free_sweeps,
            int(phases.update == "sequential"),
            int(rule.kind == "perceptron"),
            ("asym", "sym0", "sym1", "sym2").index(couplings.symmetry) - 1,
            mask_threshold(phases.p) if phases.p < 1 else 0,
            *(address(array) for array in arrays),
        )
        return protocol, arrays


def infer_by_tables(
    parameters: Parameters, state: State, x: torch.Tensor, together: int
) -> torch.Tensor:
    """Return the states at inference, int8, (samples, layers, n).

    Masks are those of samples that are relaxed `together`, as the general route does.
    """
    reader = _TableReader(parameters, state)
    layers, n = parameters.couplings.shape
    out = torch.empty((len(x), layers, n), dtype=torch.int8)
    step = together * max(1, _SPACE // (4 * together * max(1, x.shape[1])))
    for first in range(0, len(x), step):
        some = x[first : first + step].to(device="cpu", dtype=torch.float32).contiguous()
        keys = [torch.zeros((1, 2), dtype=torch.int64)]
        if parameters.phases.p < 1:
            keys = []
            for start in range(0, len(some), together):
                number, samples = (first + start) // together + 1, min(together, len(some) - start)
                own = mask_keys(state.seed, range(number, number + 1), samples, INFERENCE)
                keys.append(own.view(-1, 2))
        reader.read(some.numpy(), torch.cat(keys).numpy(), out[first : first + step].numpy())
    return out


class _TableReader(TableLearner):
    """A network that learns nothing: its states under the input alone, samples in threads."""

    def read(self, x: Any, keys: Any, out: Any) -> None:
        """Write the states of inputs (samples, D) into `out`, (samples, layers, n)."""
        blocks, rest = divmod(len(x), _READ)
        parts = [
            (_READ * first, _READ * last, _READ)
            for first, last in shares(blocks, thread_count(blocks, 1))
        ]
        parts.append((len(x) - rest, len(x), rest))
        tasks, kept = [], []
        for first, last, batch in parts:
            if first < last:
                memory = self._allocated(batch, 1)
                kept.append(memory)
                start = address(keys) + 16 * first * (self.parameters.phases.p < 1)
                shapes = (last - first, x.shape[1], 0, 0, batch)
                batches = Batches(address(x[first:]), 0, 0, *shapes, start, address(out[first:]))
                given: tuple[Any, ...] = (batches, memory.network, memory.protocol, memory.work)
                tasks.append((*given, Part(0, 1, 0, self.panels, 0, batch)))
        run_parts(learn_batches, tasks)

    def _protocol(self) -> tuple[TableProtocol, list[Any]]:
        phases = self.parameters.phases
        protocol, arrays = super()._protocol()
        numbers, learns, _ = arrays
        learns[:] = 0
        if not phases.right_in_inference:
            numbers[CHAIN + 2] = 0
        sweeps = phases.inference
        return protocol._replace(warmup=sweeps, clamped=0, sweeps=sweeps), arrays


@compiled_part
def _write_states(batches: Any, start: int, protocol: Any, work: Any, part: Any) -> None:
    """Write the states of this thread's samples."""
    layers, panels, n = protocol.layers, protocol.panels, protocol.n
    for b in range(part.first_sample, part.last_sample):
        for p in range(layers * panels):
            layer, first = p // panels, ROWS * (p % panels)
            place, here = place_of(work.lanes, p, b), n * (layers * (start + b) + layer) + first
            s = spins(protocol, work, p, b)
            if first + ROWS <= n:
                store_bytes(batches.states, here, s)
            else:  # a panel with rows that are no neurons, number by number
                store(work.s, place, s)
                for i in range(n - first):
                    set_byte(batches.states, here + i, np.int64(real(work.s, place + i)))


@compiled
def learn_batches(batches: Any, network: Any, protocol: Any, work: Any, part: Any) -> None:
    """Learn all samples in batches, this thread its part of each; or write their states.

    Parameters
    ----------
    batches, network, protocol, work, part
        A whole number of batches, the weights, which are replaced, the sweeps and the rule, memory
        that the threads share, and what this thread does.
    """
    # Numbers that numba knows would make it build code of its own for each: so none is a constant.
    meeting, batch, no, yes = flag(0), batches.batch, flag(0), flag(1)
    tables = flag(batch >= LEAST)
    learns_j, learns_in = whole(protocol.learns, 0), whole(protocol.learns, 1)
    later_j = learns_j & tables & flag(protocol.symmetry <= 0)
    waiting_j, waiting_in = no, no
    for start in range(0, batches.samples, batch):
        meeting = meet(work.meetings, part.threads, meeting)  # all have learnt the batch before
        spins = take(batches, start, work, part)
        meeting = meet(work.meetings, part.threads, meeting)
        keys = batches.keys + 16 * start
        enter(network, protocol, work, part, batch, spins & tables, waiting_in, keys)
        meeting = meet(work.meetings, part.threads, meeting)
        learn_and_multiply_j(network, protocol, work, part, batch, waiting_j, tables)
        if tables == 0:
            for panel in range(part.first, part.last):
                for layer in range(protocol.layers):
                    first = layer * protocol.panels
                    p = first + panel
                    multiply_reals(network.j, p, work, work.s, first, batch, work.product)
        if protocol.limit:
            meeting = leave_out(network, protocol, work, part, batch, meeting, keys)
        meeting = sweep_on(network, protocol, work, part, batch, meeting, keys)
        if batches.states != 0:
            _write_states(batches, start, protocol, work, part)
            continue
        signs = tables & all_signs(protocol, work, batch)
        judge(protocol, work, part, batch)
        waiting_j, waiting_in = later_j & signs, learns_in & spins & tables
        if waiting_in:
            set_patterns_of_inputs(batches, work, part)
        meeting = meet(work.meetings, part.threads, meeting)
        at_once_j, at_once_in = learns_j & (yes - waiting_j), learns_in & (yes - waiting_in)
        learn_reals(network, protocol, work, part, batch, at_once_j, at_once_in)
        if part.thread == 0 and whole(protocol.learns, 3) != 0:
            learn_readout(batches, start, network, protocol, work, part, signs)
    if waiting_j:
        learn_and_multiply_j(network, protocol, work, part, batch, yes, no)
    if waiting_in:
        for panel in range(part.first, part.last):
            for layer in range(protocol.layers):
                p = layer * protocol.panels + panel
                learn_inputs(network, protocol, work, part, p, batch, yes, no)


# Weights, protocol and memory as the compiled loops take them.


class Weights(NamedTuple):
    """A matrix in panels, (blocks, panels, columns, 32), and how it learns.

    Parameters
    ----------
    panels, present, rates : int
        Addresses: of the numbers; of 1 for entries that exist and 0 for others, 0 if all do; of the
        rates of the columns.
    columns, learning : int
        Columns, filled up to groups of four, and how many of them have a rate.
    """

    panels: int
    present: int
    rates: int
    columns: int
    learning: int


class Network(NamedTuple):
    """J, W_in, W_back and W_out."""

    j: Weights
    feed: Weights
    back: Weights
    out: Weights


class TableProtocol(NamedTuple):
    """The protocol.

    Parameters
    ----------
    n, layers, panels : int
        Neurons per layer, layers, panels per layer.
    warmup, clamped, sweeps : int
        Sweeps of the first two phases, and of all.
    sequential, perceptron : int
        Whether layers are updated one after the other; the rule, otherwise the smooth one.
    symmetry : int
        1 for sym1, 2 for sym2, smaller otherwise.
    limit : int
        Hashes below it are those of neurons that a masked sweep updates; 0 if each updates all.
    numbers, learns, seeing : int
        Addresses: of the numbers; of whether J, W_in, W_back, W_out learn, int64; of which neurons
        see the input, and of which see the label.
    """

    n: int
    layers: int
    panels: int
    warmup: int
    clamped: int
    sweeps: int
    sequential: int
    perceptron: int
    symmetry: int
    limit: int
    numbers: int
    learns: int
    seeing: int


class Work(NamedTuple):
    """Memory of a batch, by addresses.

    Of each neuron and sample: `s`, written before the sweeps and after them; the `product` J s; the
    fields of input and `label`; the gates `g` of J, W_in and W_back, one after the other. Bit i of
    a word is set where s = +1: `words` of the state, `wanted` of its field; in `there`, where s is
    not 0, if sweeps are masked. The `codes` of a sample have three bits for each four neurons, set
    where the others differ from the first, and the first one itself; the `patterns` of a neuron
    have one bit for each of four samples, set where s = +1. `inputs` are by panels of 32 inputs,
    `labels` by sample.

    `flips` and `changes` are lists of columns and of 2 s for each sample and layer, `counts` their
    lengths, `moved` the flips of each sample in this sweep and in the one before. `tables` are of
    columns and of samples, for each thread, and `size` is what a thread has of them.
    """

    lanes: int
    quads: int
    s: int
    product: int
    field: int
    label: int
    g: int
    words: int
    wanted: int
    there: int
    codes: int
    patterns: int
    inputs: int
    input_codes: int
    input_patterns: int
    labels: int
    outputs: int
    gates: int
    tables: int
    size: int
    flips: int
    changes: int
    counts: int
    moved: int
    meetings: int


class Batches(NamedTuple):
    """Samples in batches: addresses of inputs, label codes, signs; how many there are.

    Then those of the keys of masks, and of the states to write; if that is not 0, nothing learns.
    """

    x: int
    code: int
    signs: int
    samples: int
    inputs: int
    classes: int
    outputs: int
    batch: int
    keys: int
    states: int


class Part(NamedTuple):
    """What a thread does: which panels of each layer, which samples."""

    thread: int
    threads: int
    first: int
    last: int
    first_sample: int
    last_sample: int


class _Memory(NamedTuple):
    """What the compiled loops take for batches of one size; `kept` are the arrays of addresses."""

    network: Network
    protocol: TableProtocol
    work: Work
    s: Any
    meetings: Any
    kept: list[Any]


def address(array: Any) -> int:
    """Return where the numbers of a contiguous array begin; they live as long as the array."""
    assert array.flags.c_contiguous
    return int(array.ctypes.data)


def aligned(shape: tuple[int, ...]) -> Any:
    """Return zeros in float32 that begin at a cache line, as vectors should."""
    size = math.prod(shape)
    memory = np.empty(size + 16, np.float32)  # numpy takes huge pages here, but not for zeros
    memory[:] = 0
    first = -(memory.ctypes.data // 4) % 16
    return memory[first : first + size].reshape(shape)


def to_panels(matrices: Any) -> Any:
    """Return matrices (blocks, rows, columns) as (blocks, panels, columns, 32), filled up with 0.

    Columns are filled up to groups of four.
    """
    blocks, rows, columns = matrices.shape
    panels = aligned((blocks, -(-rows // ROWS), -(-columns // GROUP) * GROUP, ROWS))
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
