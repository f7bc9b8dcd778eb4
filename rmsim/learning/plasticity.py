r"""The plasticity rule and the readout (paper, eqs. plasticity_rule-general, -win and -wout).

.. math:: \Delta J_{ij} = \text{rate}\sum_b g^b_i\,s^b_j, \qquad
    \Delta W^{in}_{ik} = \text{rate}\sum_b g^b_i\,x^b_k, \qquad
    g_i = s^*_i\,w(s^*_i h_i)

with w(m) = 1[m <= kappa] (perceptron) or [1 - tanh(gamma (m - kappa))]/2 (smooth; the paper prints
the opposite sign, which would lower the margins). J_D, lambda and absent couplings stay as they
are.
The symmetric rules replace the product of J by g_i g_j (sym1) or (g_i s_j + s_i g_j)/2 (sym2).

Sparse networks on the CPU learn and infer in machine code, whole batches at a time
(:class:`RowLearner`, :func:`infer_compiled`), for the protocols that the benchmarks use: fixed
numbers of synchronous sweeps of all neurons, the perceptron rule, W_back frozen, float32
(:func:`has_kernel`). The results are those of the general route up to the rounding of sums that are
taken in another order. 16 samples of a batch are the lanes of a vector, ``lanes[k]`` holding them
for neuron (or input) k. The products ``sum of values[e] * lanes[columns[e]]`` are kept from sweep
to sweep: only rows that read a neuron which flipped in the sweep before, in any lane, are summed
again (:class:`Moving`), with the same result to the bit. In a network that has learnt a little
these are 2 or 3 passes over the rows instead of 11. The update counts bits: of the lanes where
neuron i learns, those where i and j agree give +1, the others -1, so that a coupling costs a few
instructions and rows that learn nothing cost none. The loops over lanes are vectors of the machine
(:mod:`rmsim.compiled_vectors`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from rmsim.compiled_loops import compiled, compiled_part, run_parts, shares, thread_count
from rmsim.compiled_vectors import (
    LANES,
    lane_bits,
    lane_dot,
    popcount,
    row_flip,
    row_product,
    row_spins,
)
from rmsim.learning.parameters import Parameters
from rmsim.learning.phases import Phases
from rmsim.learning.state import State


def update_field(parameters: Parameters, state: State, ends: Phases) -> torch.Tensor:
    """Return the field h of s* that the rule tests."""
    rule = parameters.rule
    couplings = state.couplings.without(jd=not rule.test_jd, right=not rule.test_right)
    external = torch.zeros_like(ends.input_field)
    if rule.test_input:
        external += ends.input_field
    if rule.test_labels:
        external += ends.label_field
    s, external = ends.s_star.unsqueeze(0), external.unsqueeze(0)
    if ends.product is None:
        return couplings.field(s, external)[0]
    return couplings.field_of_product(ends.product.unsqueeze(0), s, external)[0]


def weight(
    parameters: Parameters, margin: torch.Tensor, kappa: float | torch.Tensor
) -> torch.Tensor:
    """Return w, how much a neuron (or output) with this margin learns.

    Examples
    --------
    >>> weight(Parameters.of(n=2), torch.tensor([-1.0, 1.4, 1.5]), 1.4).tolist()
    [1.0, 1.0, 0.0]
    """
    if parameters.rule.kind == "perceptron":
        return (margin <= kappa).to(margin.dtype)
    return (1 - torch.tanh(parameters.rule.gamma * (margin - kappa))) / 2


def learn_(
    parameters: Parameters, state: State, ends: Phases, x: torch.Tensor, code: torch.Tensor
) -> None:
    """Update J, W_in and W_back of `state` in place by one batch, then let J and W_in decay."""
    s = ends.s_star
    samples = len(s)
    margin = s * update_field(parameters, state, ends)
    if parameters.j.eta > 0:
        g = s * weight(parameters, margin, parameters.j.kappa)
        rate = parameters.rate("j", state.couplings.fan_in, samples)
        pre = g if parameters.couplings.symmetry == "sym1" else s
        symmetric = parameters.couplings.symmetry in ("sym1", "sym2")
        state.couplings.reinforce_(g, pre, rate, symmetric=symmetric)
    if parameters.w_in.eta > 0:
        g = (s * weight(parameters, margin, parameters.w_in.kappa)).flatten(1)
        rate = parameters.rate("in", state.inputs, samples)
        state.w_in.reinforce_(g * state.a_in, x, rate)
    if parameters.w_back.eta > 0:
        g = (s * weight(parameters, margin, parameters.w_back.kappa)).flatten(1)
        rate = parameters.rate("back", state.classes, samples)
        state.w_back.reinforce_(g * state.a_back, code, rate)
    decay_(parameters, state)


def learn_readout_(
    parameters: Parameters, state: State, s: torch.Tensor, signs: torch.Tensor
) -> None:
    """Update W_out of `state` in place: outputs y_c o_c <= kappa_out learn."""
    seen = s.flatten(1) * state.a_out
    margin = signs * (seen @ state.w_out.T)
    g = signs * (margin <= parameters.readout.kappa)
    neurons = seen.shape[1]
    state.w_out.addmm_(g.T, seen, alpha=parameters.rate("out", neurons, len(s)))
    if parameters.readout.decay > 0:
        state.w_out.mul_(parameters.decay("out", neurons))


def label_signs(state: State, labels: torch.Tensor) -> torch.Tensor:
    """Return y of the readout, (samples, C): +1 for the class and -1 for the others."""
    if labels.dim() == 2:
        return labels.to(dtype=state.dtype, device=state.device).sign()
    signs = torch.full((len(labels), state.classes), -1.0, dtype=state.dtype, device=state.device)
    return signs.scatter_(1, labels.to(state.device).unsqueeze(1), 1.0)


def decay_(parameters: Parameters, state: State) -> None:
    """Shrink J off the diagonal and W_in."""
    if parameters.j.decay > 0:
        state.j.mul_(parameters.decay("j", state.couplings.fan_in))
    if parameters.w_in.decay > 0:
        state.w_in.values.mul_(parameters.decay("in", state.inputs))


#: Samples worth a thread of their own at inference.
_GRAIN = 64

#: Neurons that flipped and that a row reads, on average, from which on all rows are summed again.
_NEARLY_ALL = 3


def has_kernel(parameters: Parameters, state: State) -> bool:
    """Return whether the compiled route can train this network by this protocol."""
    rule = parameters.rule
    return (
        _has_rows(parameters, state)
        and rule.kind == "perceptron"
        and parameters.couplings.symmetry in ("asym", "sym0")
        and (rule.test_jd and rule.test_input and rule.test_right)
        and not rule.test_labels
        and parameters.w_back.eta == 0
        and state.w_back.bounds is None
    )


def has_inference_kernel(parameters: Parameters, state: State) -> bool:
    """Return whether the compiled route can relax this network under its input."""
    return _has_rows(parameters, state) and parameters.phases.right_in_inference


def _has_rows(parameters: Parameters, state: State) -> bool:
    return (
        state.device.type == "cpu"
        and state.dtype == torch.float32
        and state.couplings.compressed() is not None
        and parameters.phases.stop == "fixed"
        and parameters.phases.p == 1
        and (parameters.phases.update == "synchronous" or parameters.couplings.layers == 1)
    )


#: Bytes of inputs that are copied in the order of an epoch at a time.
_SPACE = 2**24


def ordered_batches(
    x: torch.Tensor, y: torch.Tensor, order: torch.Tensor, size: int, dtype: torch.dtype
) -> Iterator[tuple[torch.Tensor, torch.Tensor, int]]:
    """Give inputs as `dtype` and labels in this order, on the CPU, whole batches at a time.

    Yields
    ------
    Tensor, Tensor, int
        Inputs, labels, and the size of their batches: `size`, or that of a smaller last one.
    """
    together = size * max(1, _SPACE // (dtype.itemsize * size * max(1, x.shape[1])))
    for first in range(0, len(order), together):
        part = order[first : first + together]
        whole = len(part) - len(part) % size
        for chosen, batch in ((part[:whole], size), (part[whole:], len(part) - whole)):
            if len(chosen):
                inputs = x[chosen].to(device="cpu", dtype=dtype).contiguous()
                yield inputs, y[chosen].to("cpu").contiguous(), batch


class RowLearner:
    """A sparse network that learns in machine code; its weights are rows of arrays meanwhile.

    Parameters
    ----------
    parameters : Parameters
        The protocol.
    state : State
        The weights, which :meth:`finish` replaces.
    """

    def __init__(self, parameters: Parameters, state: State) -> None:
        self.parameters, self.state = parameters, state
        self._recurrent, self._places = recurrent_rows(state)
        self._readers = readers_of(self._recurrent)
        self._feed, self._readout = input_rows(state), readout_rows(state)

    def learn(self, x: torch.Tensor, y: torch.Tensor, order: torch.Tensor) -> None:
        """Learn the samples `order`; a last batch may be smaller."""
        size, state = self.parameters.batch.size, self.state
        for inputs, labels, batch in ordered_batches(x, y, order, size, state.dtype):
            learn_batches(
                inputs.numpy(),
                labels.numpy(),
                batch,
                self._recurrent,
                self._readers,
                self._feed,
                state.w_back.values.numpy(),
                self._readout,
                _protocol(self.parameters, state, batch),
            )

    def finish(self) -> State:
        """Write the weights back, and return their state."""
        state, feed = self.state, self._feed
        state.j.copy_(torch.from_numpy(self._recurrent.values[self._places]))
        state.w_in.values.copy_(torch.from_numpy(feed.values).view(state.w_in.values.shape))
        read, values = state.a_out, torch.from_numpy(self._readout.values)
        state.w_out[:, read] = values.view(len(state.w_out), int(read.sum()))
        return state


def infer_compiled(parameters: Parameters, state: State, x: torch.Tensor) -> torch.Tensor:
    """Return the states at inference, int8, (samples, layers, n)."""
    recurrent, _ = recurrent_rows(state)
    readers, feed = readers_of(recurrent), input_rows(state)
    out = np.empty((len(x), parameters.neurons), np.int8)
    inputs = x.to(device=state.device, dtype=state.dtype).contiguous().numpy()
    threads = thread_count(len(x), _GRAIN)
    parts = [
        (inputs, recurrent, readers, feed, parameters.phases.inference, out, np.array(part))
        for part in shares(len(x), threads)
    ]
    run_parts(infer_samples, parts)
    return torch.from_numpy(out).view(len(x), *parameters.couplings.shape)


# Weights and protocol as the compiled loops take them.


class Rows(NamedTuple):
    """Weights as compressed rows: entries ``bounds[i]`` to ``ends[i]`` of row i learn.

    Entries from ``ends[i]`` to ``bounds[i + 1]`` are fixed: J_D and lambda, last in their row, so
    that they are added in the order of the general route.
    """

    bounds: Any
    ends: Any
    columns: Any
    values: Any


class Readers(NamedTuple):
    """Which rows read neuron j: ``rows[starts[j]]`` to ``rows[starts[j + 1] - 1]``."""

    starts: Any
    rows: Any


class Moving(NamedTuple):
    """The states of 16 samples and the products of the rows with them.

    Parameters
    ----------
    down : (N), uint16
        Bits of the samples in which a neuron is -1.
    product : (N, 16)
        Sums over the entries of each row, J_D and lambda included.
    stale : (N), uint8
        Which products are of earlier states.
    flipped : (N), int64
        Space for the neurons that flip in a sweep.
    """

    down: Any
    product: Any
    stale: Any
    flipped: Any


class Protocol(NamedTuple):
    """The numbers of the protocol, for batches of one size; floats have the type of the weights."""

    warmup: int
    clamped: int
    free: int
    label_true: Any
    label_other: Any
    kappa_j: Any
    kappa_in: Any
    kappa_out: Any
    rate_j: Any
    rate_in: Any
    rate_out: Any
    decay_j: Any
    decay_in: Any
    decay_out: Any


def recurrent_rows(state: State) -> tuple[Rows, Any]:
    """Return J with J_D and lambda at the end of each row, and where the weights of J are in it."""
    couplings = state.couplings
    rows = couplings.compressed()
    assert rows is not None
    neurons, n = rows.groups * rows.size, couplings.n
    old = rows.bounds.numpy()
    counts = np.diff(old)
    index = np.arange(neurons)
    group = np.repeat(index // rows.size, counts)
    fixed = [(couplings.jd, index, np.ones(neurons, bool))]
    for step, coupling in couplings.homologous.items():
        there = index + step * n
        fixed.append((coupling, there, (there >= 0) & (there < neurons)))
    tails = np.sum([present for _, _, present in fixed], axis=0)
    bounds = np.concatenate(([0], np.cumsum(counts + tails)))
    ends = bounds[:-1] + counts
    places = np.arange(len(rows.columns)) + np.repeat(np.cumsum(tails) - tails, counts)
    columns = np.empty(bounds[-1], np.uint32)
    values = np.empty(bounds[-1], rows.values.numpy().dtype)
    columns[places] = rows.columns.numpy() + group * rows.size
    values[places] = rows.values.numpy()
    place = ends.copy()
    for coupling, neighbour, present in fixed:
        columns[place[present]], values[place[present]] = neighbour[present], coupling
        place += present
    return Rows(bounds, ends, columns, values), places


def readers_of(rows: Rows) -> Readers:
    """Return which of the `rows` of a square matrix have an entry in a column.

    Examples
    --------
    >>> readers = readers_of(Rows(np.array([0, 1, 3]), None, np.array([1, 0, 1]), None))
    >>> readers.starts.tolist(), readers.rows.tolist()
    ([0, 1, 3], [1, 0, 1])
    """
    neurons = len(rows.bounds) - 1
    starts = np.concatenate(([0], np.cumsum(np.bincount(rows.columns, minlength=neurons))))
    owners = np.repeat(np.arange(neurons, dtype=np.uint32), np.diff(rows.bounds))
    return Readers(starts, owners[np.argsort(rows.columns, kind="stable")])


def input_rows(state: State) -> Rows:
    """Return W_in as compressed rows with values of their own, full rows if it is dense.

    Rows of neurons that do not see the input are there, but no entry of them learns.
    """
    projection = state.w_in
    if projection.bounds is None or projection.columns is None:
        height, width = projection.shape
        bounds = np.arange(height + 1) * width
        columns = np.tile(np.arange(width, dtype=np.uint32), height)
    else:
        bounds = projection.bounds.numpy()
        columns = projection.columns.numpy().view(np.uint32)
    values = projection.values.numpy().flatten()
    ends = np.where(state.a_in.numpy(), bounds[1:], bounds[:-1])
    return Rows(bounds, ends, columns, values)


def readout_rows(state: State) -> Rows:
    """Return W_out as rows over the neurons that are read."""
    read = state.a_out.nonzero()[:, 0].numpy().astype(np.uint32)
    classes = len(state.w_out)
    bounds = np.arange(classes + 1) * len(read)
    values = state.w_out[:, state.a_out].numpy().flatten()
    return Rows(bounds, bounds[1:].copy(), np.tile(read, classes), values)


def _protocol(parameters: Parameters, state: State, batch: int) -> Protocol:
    kind = state.w_back.values.numpy().dtype.type
    rows, neurons = state.couplings.fan_in, parameters.neurons
    numbers = (
        *(parameters.w_back.label_true, parameters.w_back.label_other),
        *(parameters.j.kappa, parameters.w_in.kappa, parameters.readout.kappa),
        parameters.rate("j", rows, batch),
        parameters.rate("in", state.inputs, batch),
        parameters.rate("out", neurons, batch),
        parameters.decay("j", rows),
        parameters.decay("in", state.inputs),
        parameters.decay("out", neurons),
    )
    sweeps = (parameters.phases.warmup, parameters.phases.clamped, parameters.phases.free_sweeps)
    return Protocol(*sweeps, *(kind(x) for x in numbers))


# The compiled loops.


@compiled
def learn_batches(
    x: Any,
    labels: Any,
    batch: int,
    recurrent: Any,
    readers: Any,
    feed: Any,
    back: Any,
    readout: Any,
    protocol: Any,
) -> None:
    """Learn the samples in batches; their number is a multiple of `batch`.

    Parameters
    ----------
    x, labels : arrays, (samples, D), (samples)
        Inputs of the type of the weights, class numbers.
    batch : int
        Samples per batch.
    recurrent, feed, readout : Rows
        J with its fixed entries, W_in, W_out; replaced.
    readers : Readers
        Of the rows of J.
    back : (N, C)
        W_back.
    protocol : Protocol
        Sweeps, margins, rates.
    """
    kind = back.dtype
    neurons, classes = back.shape
    blocks = (batch + LANES - 1) // LANES
    inputs = np.empty((blocks, x.shape[1], LANES), kind)
    states = np.empty((blocks, neurons, LANES), kind)
    words = np.empty((blocks, neurons), np.uint32)
    input_words = np.empty((blocks, x.shape[1]), np.uint32)
    learn_j, learn_in = np.empty_like(words), np.empty_like(words)
    y, learn_out = np.empty((blocks, classes, LANES), kind), np.empty((blocks, classes), np.uint32)
    field, o = np.empty((neurons, LANES), kind), np.empty((classes, LANES), kind)
    both, h, label_words = np.empty_like(field), np.empty_like(field), np.empty_like(learn_out)
    moving = _moving(neurons, field)
    ones = np.ones((max(neurons, x.shape[1], classes), LANES), kind)
    for start in range(0, len(x), batch):
        spins = True
        for block in range(blocks):
            first = start + LANES * block
            last = min(start + batch, first + LANES)
            valid = np.uint32((1 << (last - first)) - 1)
            spins &= _fill_inputs(x, first, last, inputs[block])
            _multiply(feed, inputs[block], field)
            _add_label_fields(back, labels, first, last, protocol, field, both)
            _present(recurrent, readers, field, both, protocol, moving)
            s = states[block]
            for i in range(neurons):
                words[block, i] = moving.down[i]
                for lane in range(LANES):
                    s[i, lane] = ones[i, lane] - 2 * (moving.down[i] >> lane & 1)
                    h[i, lane] = moving.product[i, lane] + field[i, lane]
            for i in range(neurons):
                learn_j[block, i] = lane_bits(s, i, h, protocol.kappa_j) & valid
                learn_in[block, i] = lane_bits(s, i, h, protocol.kappa_in) & valid
            _multiply(readout, s, o)
            for lane in range(LANES):
                for c in range(classes):
                    y[block, c, lane] = -1
                if first + lane < last:
                    y[block, labels[first + lane], lane] = 1
            _signs(y[block], ones, label_words[block])
            for c in range(len(readout.ends)):
                learn_out[block, c] = lane_bits(y[block], c, o, protocol.kappa_out) & valid
        for block in range(blocks):
            pre = words[block]
            _reinforce(recurrent, learn_j[block], pre, pre, protocol.rate_j)
            _reinforce(readout, learn_out[block], label_words[block], pre, protocol.rate_out)
            if spins:
                _signs(inputs[block], ones, input_words[block])
                _reinforce(feed, learn_in[block], pre, input_words[block], protocol.rate_in)
            else:
                gates, post = learn_in[block], states[block]
                _reinforce_reals(feed, gates, post, inputs[block], protocol.rate_in)
        _shrink(recurrent, protocol.decay_j)
        _shrink(feed, protocol.decay_in)
        _shrink(readout, protocol.decay_out)


@compiled
def infer_samples(
    x: Any, recurrent: Any, readers: Any, feed: Any, sweeps: int, out: Any, part: Any
) -> None:
    """Write the states of samples ``part[0]`` to ``part[1]`` under their input into `out`."""
    kind, neurons = recurrent.values.dtype, out.shape[1]
    field, inputs = np.empty((neurons, LANES), kind), np.empty((x.shape[1], LANES), kind)
    moving = _moving(neurons, field)
    for first in range(part[0], part[1], LANES):
        last = min(part[1], first + LANES)
        _fill_inputs(x, first, last, inputs)
        _multiply(feed, inputs, field)
        _first_sweep(field, moving)
        _sweeps(recurrent, readers, field, sweeps - 1, moving)
        for lane in range(last - first):
            for i in range(neurons):
                out[first + lane, i] = 1 - 2 * (moving.down[i] >> lane & 1)


@compiled_part
def _moving(neurons: int, like: Any) -> Any:
    """Return space for states and products of the type of `like`."""
    down, stale = np.zeros(neurons, np.uint16), np.zeros(neurons, np.uint8)
    return Moving(down, np.zeros_like(like), stale, np.empty(neurons, np.int64))


@compiled_part
def _present(
    recurrent: Any, readers: Any, field: Any, both: Any, protocol: Any, moving: Any
) -> None:
    """Go through the three phases from s = 0 to s* and its products."""
    started = False
    for phase in range(3):
        count = (protocol.warmup, protocol.clamped, protocol.free)[phase]
        external = both if phase == 1 else field
        if count > 0 and not started:
            _first_sweep(external, moving)
            started, count = True, count - 1
        _sweeps(recurrent, readers, external, count, moving)
    _renew(recurrent, moving)


@compiled_part
def _renew(rows: Any, moving: Any) -> None:
    """Sum the products of earlier states again."""
    for i in range(len(moving.stale)):
        if moving.stale[i]:
            first, last = rows.bounds[i], rows.bounds[i + 1]
            row_spins(rows.values, rows.columns, first, last, moving.down, moving.product, i)


@compiled_part
def _sweeps(rows: Any, readers: Any, field: Any, count: int, moving: Any) -> None:
    """Do `count` synchronous sweeps under `field`; at a fixed point nothing is left to do.

    In the first sweep any neuron may flip, since the field may be another one than before; later
    only those whose product is new.
    """
    stale, flipped, neurons = moving.stale, moving.flipped, len(field)
    for sweep in range(count):
        _renew(rows, moving)
        flips = 0
        for i in range(neurons):
            if (stale[i] or sweep == 0) and row_flip(moving.product, field, moving.down, i) != 0:
                flipped[flips] = i
                flips += 1
        # From some number of flips on nearly every row reads one of them.
        many = flips * len(readers.rows) > _NEARLY_ALL * neurons * neurons
        for i in range(neurons):
            stale[i] = many
        if flips == 0:
            break
        if not many:
            for k in range(flips):
                for e in range(readers.starts[flipped[k]], readers.starts[flipped[k] + 1]):
                    stale[readers.rows[e]] = 1


@compiled_part
def _first_sweep(field: Any, moving: Any) -> None:
    """The sweep from s = 0."""
    for i in range(len(field)):
        for lane in range(LANES):
            moving.product[i, lane] = 0
        row_flip(moving.product, field, moving.down, i)
        moving.stale[i] = 1


@compiled_part
def _fill_inputs(x: Any, first: int, last: int, lanes: Any) -> bool:
    """Copy samples `first` to `last` of `x` into the lanes; return whether all are +1 or -1."""
    spins = True
    for k in range(len(lanes)):
        for lane in range(last - first, LANES):
            lanes[k, lane] = 0
    for lane in range(last - first):
        sample = x[first + lane]
        for k in range(len(sample)):
            lanes[k, lane] = sample[k]
            spins &= abs(sample[k]) == 1
    return spins


@compiled_part
def _multiply(rows: Any, lanes: Any, out: Any) -> None:
    """Write W lanes into `out`, for all rows there are."""
    for i in range(len(rows.ends)):
        first, last = rows.bounds[i], rows.bounds[i + 1]
        row_product(rows.values, rows.columns, first, last, lanes, out, i)


@compiled_part
def _add_label_fields(
    back: Any, labels: Any, first: int, last: int, protocol: Any, field: Any, out: Any
) -> None:
    """Write field + W_back y: the field of 'no class' for all, and what the class of each adds."""
    difference = protocol.label_true - protocol.label_other
    for i in range(len(out)):
        total = out.dtype.type(0)
        for c in range(back.shape[1]):
            total += back[i, c]
        total *= protocol.label_other
        for lane in range(LANES):
            out[i, lane] = field[i, lane]
        for lane in range(last - first):
            out[i, lane] += total + difference * back[i, labels[first + lane]]


@compiled_part
def _signs(s: Any, ones: Any, words: Any) -> None:
    """Set bit b of each word where lane b is not above zero."""
    for i in range(len(words)):
        words[i] = lane_bits(s, i, ones, s.dtype.type(0))


@compiled_part
def _reinforce(rows: Any, gates: Any, post: Any, pre: Any, rate: Any) -> None:
    """Add rate * sum over lanes of g_i s_k, for states and inputs +-1 as bits.

    Of the lanes where neuron i learns, those where i and k agree count 1, the others -1.
    """
    for i in range(len(rows.ends)):  # no rows, no gates: a network without readout
        if gates[i] != 0:
            learning = popcount(gates[i])
            for e in range(rows.bounds[i], rows.ends[i]):
                against = popcount(gates[i] & (post[i] ^ pre[rows.columns[e]]))
                rows.values[e] += rate * rows.values.dtype.type(learning - 2 * against)


@compiled_part
def _reinforce_reals(rows: Any, gates: Any, s: Any, x: Any, rate: Any) -> None:
    """Do it for inputs that are any numbers."""
    g = np.empty((1, LANES), s.dtype)
    for i in range(len(rows.ends)):
        if gates[i] != 0:
            for lane in range(LANES):
                g[0, lane] = s[i, lane] if gates[i] >> lane & 1 else s.dtype.type(0)
            for e in range(rows.bounds[i], rows.ends[i]):
                rows.values[e] += rate * lane_dot(g, 0, x, np.int64(rows.columns[e]))


@compiled_part
def _shrink(rows: Any, factor: Any) -> None:
    """Multiply the entries that learn."""
    if factor != 1:
        for i in range(len(rows.ends)):
            for e in range(rows.bounds[i], rows.ends[i]):
                rows.values[e] *= factor
