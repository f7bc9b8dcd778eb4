"""Sparse networks on the CPU: the compiled route of :mod:`rmsim.learning.kernels`.

It does what the general route does, up to the rounding of sums that are taken in another order, for
the protocols that the benchmarks use: fixed numbers of synchronous sweeps of all neurons, the
perceptron rule, W_back frozen, float32. :func:`has_kernel` tells which.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from rmsim.couplings import AdjacencyCouplings, DenseChain
from rmsim.learning import kernels
from rmsim.learning.parameters import Parameters
from rmsim.learning.plasticity import fan_in
from rmsim.learning.state import State
from rmsim.threads import run_parts, shares, thread_count

#: Samples worth a thread of their own at inference.
_GRAIN = 64


def has_kernel(parameters: Parameters, state: State) -> bool:
    """Return whether the compiled route can train this network by this protocol."""
    return (
        _has_rows(parameters, state)
        and parameters.rule == "perceptron"
        and parameters.symmetry in ("asym", "sym0")
        and (parameters.test_jd and parameters.test_input and parameters.test_right)
        and not parameters.test_labels
        and parameters.eta_back == 0
        and state.w_back.bounds is None
    )


def has_inference_kernel(parameters: Parameters, state: State) -> bool:
    """Return whether the compiled route can relax this network under its input."""
    return _has_rows(parameters, state) and parameters.right_in_inference


def _has_rows(parameters: Parameters, state: State) -> bool:
    return (
        state.device.type == "cpu"
        and state.dtype == torch.float32
        and not isinstance(state.couplings, DenseChain)
        and parameters.stop == "fixed"
        and parameters.p == 1
        and (parameters.update == "synchronous" or parameters.layers == 1)
    )


def learn_compiled_(
    parameters: Parameters, state: State, x: torch.Tensor, y: torch.Tensor, order: torch.Tensor
) -> None:
    """Learn the samples `order` in place; a last batch may be smaller."""
    recurrent, places = recurrent_rows(state)
    feed, readout = input_rows(state), readout_rows(state)
    arrays = (x.to(state.dtype).contiguous().numpy(), y.contiguous().numpy())
    samples, whole = order.numpy(), len(order) - len(order) % parameters.batch
    for part, batch in ((samples[:whole], parameters.batch), (samples[whole:], len(order) - whole)):
        if len(part):
            kernels.learn_batches(
                *arrays,
                part,
                batch,
                recurrent,
                feed,
                state.w_back.values.numpy(),
                readout,
                _protocol(parameters, state, batch),
            )
    state.j.copy_(torch.from_numpy(recurrent.values[places]))
    state.w_in.values.copy_(torch.from_numpy(feed.values).view(state.w_in.values.shape))
    read = state.a_out
    state.w_out[:, read] = torch.from_numpy(readout.values).view(len(state.w_out), int(read.sum()))


def infer_compiled(parameters: Parameters, state: State, x: torch.Tensor) -> torch.Tensor:
    """Return the states at inference, int8, (samples, layers, n)."""
    recurrent, _ = recurrent_rows(state)
    feed = input_rows(state)
    out = np.empty((len(x), parameters.neurons), np.int8)
    inputs = x.to(state.dtype).contiguous().numpy()
    threads = thread_count(len(x), _GRAIN)
    parts = [
        (inputs, recurrent, feed, parameters.inference, out, np.array(part))
        for part in shares(len(x), threads)
    ]
    run_parts(kernels.infer_samples, parts)
    return torch.from_numpy(out).view(len(x), parameters.layers, parameters.n)


def recurrent_rows(state: State) -> tuple[kernels.Rows, Any]:
    """Return J with J_D and lambda at the end of each row, and where the weights of J are in it."""
    couplings = state.couplings
    assert not isinstance(couplings, DenseChain)
    rows, layers = couplings.rows, couplings.layers
    neurons, n = rows.groups * rows.size, couplings.n
    old = rows.bounds.numpy()
    counts = np.diff(old)
    index = np.arange(neurons)
    group = np.repeat(index // rows.size, counts)
    fixed = [(couplings.jd, index, np.ones(neurons, bool))]
    if not isinstance(couplings, AdjacencyCouplings) and layers > 1:
        fixed.append((couplings.lam_left, index - n, index >= n))
        fixed.append((couplings.lam_right, index + n, index < neurons - n))
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
    return kernels.Rows(bounds, ends, columns, values), places


def input_rows(state: State) -> kernels.Rows:
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
    return kernels.Rows(bounds, ends, columns, values)


def readout_rows(state: State) -> kernels.Rows:
    """Return W_out as rows over the neurons that are read."""
    read = state.a_out.nonzero()[:, 0].numpy().astype(np.uint32)
    classes = len(state.w_out)
    bounds = np.arange(classes + 1) * len(read)
    values = state.w_out[:, state.a_out].numpy().flatten()
    return kernels.Rows(bounds, bounds[1:].copy(), np.tile(read, classes), values)


def _protocol(parameters: Parameters, state: State, batch: int) -> kernels.Protocol:
    kind = state.w_back.values.numpy().dtype.type
    rows, neurons = fan_in(state), parameters.neurons
    numbers = (
        *(parameters.label_true, parameters.label_other),
        *(parameters.kappa_j, parameters.kappa_in, parameters.kappa_out),
        parameters.rate("j", rows, batch),
        parameters.rate("in", state.inputs, batch),
        parameters.rate("out", neurons, batch),
        parameters.decay("j", rows),
        parameters.decay("in", state.inputs),
        parameters.decay("out", neurons),
    )
    sweeps = (parameters.warmup, parameters.clamped, parameters.free_sweeps)
    return kernels.Protocol(*sweeps, *(kind(x) for x in numbers))
