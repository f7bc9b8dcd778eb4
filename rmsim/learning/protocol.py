r"""Learning, inference and measurement: pure functions of the protocol, the weights and samples.

:func:`batch_step` copies the weights and learns one batch; :func:`train_epoch` copies them once and
learns many, which is how to train. Inference gives the state under the input alone, and its class
:math:`\arg\max_c (W^{out} s)_c`.

:func:`run_epochs` is the one loop over epochs. A network that learns by its protocol, a readout and
a perceptron by gradients differ in what they do with the samples of an epoch; experiments, runs in
a folder and the classifier differ in what they do between two epochs. The first is a function,
:data:`Learn`, the second the body of a loop over :func:`run_epochs`.

:func:`measure` presents samples without learning:

.. math:: q_{dyn} = \frac1N\sum_i s'_i s^*_i, \qquad
    \rho = \frac{\lVert S\rVert - \lVert A\rVert}{\lVert S\rVert + \lVert A\rVert},
    \quad J = S + A \text{ off the diagonal}

(paper, SM-F and SM-H). The paper's brackets of q_dyn are the quartiles.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import torch

from rmsim.compiled_loops import shares, side_by_side
from rmsim.learning.parameters import Parameters
from rmsim.learning.phases import (
    MEASUREMENT,
    Phases,
    by_columns,
    by_rows,
    infer_batch,
    is_fixed,
    label_code,
    present,
)
from rmsim.learning.plasticity import (
    RowLearner,
    has_inference_kernel,
    has_kernel,
    infer_compiled,
    label_signs,
    learn_,
    learn_readout_,
    update_field,
)
from rmsim.learning.sign_tables import TableLearner, has_tables, infer_by_tables
from rmsim.learning.state import (
    Array,
    State,
    as_tensor,
    checked_inputs,
    checked_labels,
    checked_samples,
    checked_samples_of_many,
    demand_fields,
    demand_fit,
    demand_learnt,
    demand_learnt_by_many,
)
from rmsim.learning.tensor_step import TensorLearner, structure
from rmsim.tensors import generator
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError
from rmtheory.base.statistics import QuantileErrors, Quantiles, standard_error

S = TypeVar("S")

#: Samples relaxed together; the result does not depend on it unless neurons are masked.
_TOGETHER = 512


def epoch_order(seed: int, epoch: int, samples: int) -> torch.Tensor:
    """Return the order of the samples in an epoch, from the stream ``(0, 6, epoch)``.

    Examples
    --------
    >>> sorted(epoch_order(0, 1, 4).tolist())
    [0, 1, 2, 3]
    """
    epoch = checks.integer("epoch", epoch, 0)
    return torch.randperm(samples, generator=generator(seed, 0, 6, epoch))


def checked_order(order: torch.Tensor, samples: int) -> torch.Tensor:
    """Return the order as int64 on the CPU; refuse samples that do not exist."""
    order = torch.as_tensor(order)
    if order.is_floating_point() or order.is_complex() or order.dtype == torch.bool:
        raise InvalidInputError("order", str(order.dtype), "integers, the numbers of samples")
    order = order.to(device="cpu", dtype=torch.int64).contiguous()
    if order.dim() != 1 or (len(order) and not 0 <= int(order.min()) <= int(order.max()) < samples):
        raise InvalidInputError("order", "other numbers", f"samples from 0 to {samples - 1}")
    return order


def batch_step(
    parameters: Parameters, state: State, inputs: Array, labels: Array
) -> tuple[State, Phases]:
    """Learn one batch.

    Parameters
    ----------
    parameters, state
        The protocol and the weights, which stay as they are.
    inputs : array, (samples, D)
        Inputs; all samples make one batch, whatever its size.
    labels : array
        Class numbers (samples), or label codes (samples, C).

    Returns
    -------
    State, Phases
        The new weights, and the states s' and s* that they were learnt from.

    Raises
    ------
    NotConvergedError
        If the weights or their fields are no longer finite.
    """
    x, y = checked_samples(parameters, state, inputs, labels)
    state = state.copy()
    ends = _learn_batch_(parameters, state, x, y)
    demand_learnt(parameters, state, x, y)
    return replace(state, step=state.step + 1), ends


def train_epoch(
    parameters: Parameters,
    state: State,
    inputs: Array,
    labels: Array,
    order: torch.Tensor | None = None,
    *,
    compiled: bool = True,
    compile: bool = False,
) -> State:
    """Learn all samples once, in batches of ``parameters.batch.size``; the last may be smaller.

    Parameters
    ----------
    parameters, state, inputs, labels
        As for :func:`batch_step`.
    order : Tensor of int, optional
        Samples to take, in this order; as they come by default. See :func:`epoch_order`.
    compiled : bool
        Take the compiled routes of a CPU (sparse rows: :mod:`rmsim.learning.plasticity`; dense
        ones: :mod:`rmsim.learning.sign_tables`; flips: :mod:`rmsim.learning.phases`) where they
        apply; False takes the route of a GPU everywhere, :mod:`rmsim.learning.tensor_step`.
    compile : bool
        Let :func:`torch.compile` fuse the operations of that route: half a minute at the first
        batch, for long runs on a GPU. Without effect where a compiled route of a CPU applies.

    Raises
    ------
    NotConvergedError
        If the weights or their fields are no longer finite.
    """
    steps = train_in_parts(
        parameters, state, inputs, labels, order, compiled=compiled, compile=compile
    )
    return _last(steps)


def train_in_parts(
    parameters: Parameters,
    state: State,
    inputs: Array,
    labels: Array,
    order: torch.Tensor | None = None,
    *,
    parts: int = 1,
    compiled: bool = True,
    compile: bool = False,
) -> Generator[int, None, State]:
    """Do what :func:`train_epoch` does, and yield the samples learnt so far on the way.

    Weights are copied, checked and put into the order of the route once, not in every part.

    Parameters
    ----------
    parameters, state, inputs, labels, order, compiled, compile
        As for :func:`train_epoch`.
    parts : int
        How often it yields, about; the weights do not depend on it.
    """
    if order is not None:
        inputs, labels, order = _chosen(inputs, labels, order)
    many = train_many_in_parts(
        *([parameters], [state], inputs, labels, None if order is None else [order]),
        parts=parts,
        compiled=compiled,
        compile=compile,
    )
    (learnt,) = yield from many
    return learnt


def _chosen(inputs: Array, labels: Array, order: torch.Tensor) -> tuple[Array, Array, torch.Tensor]:
    """Return the samples of a short `order`, and the order of these: no others are read."""
    x, y = as_tensor("inputs", inputs), as_tensor("labels", labels)
    order = checked_order(order, len(x) if x.dim() else 0)
    if not x.dim() or not y.dim() or len(y) != len(x) or 2 * len(order) > len(x):
        return x, y, order
    return x[order.to(x.device)], y[order.to(y.device)], torch.arange(len(order))


def train_epoch_of_many(
    parameters: Sequence[Parameters],
    states: Sequence[State],
    inputs: Array,
    labels: Array,
    orders: Sequence[torch.Tensor] | None = None,
    *,
    threads: int | None = None,
    compiled: bool = True,
    compile: bool = False,
) -> list[State]:
    """Learn all samples once, in many networks side by side: see :func:`train_epoch`.

    On a CPU every network has a thread of its own, `threads` at a time. On a GPU networks of one
    structure (:func:`rmsim.learning.tensor_step.structure`) learn in the same operations. Either
    way each gets the weights that it would get alone: to the bit on a CPU.

    Parameters
    ----------
    parameters, states : sequence
        The protocol and the weights of each network.
    inputs, labels : array
        Samples of all.
    orders : sequence of Tensor of int, optional
        For each network the samples to take; as they come by default.
    threads : int, optional
        Networks that learn at a time on a CPU; as many as torch has threads by default.
    compiled, compile : bool
        As for :func:`train_epoch`.

    Raises
    ------
    NotConvergedError
        If the weights of a network are no longer finite, with its number.

    Examples
    --------
    >>> from rmsim.learning import initialise
    >>> settings = [Parameters.of(n=20, jd=jd) for jd in (0.3, 0.6)]
    >>> states = [initialise(one, 5, 2, seed=0) for one in settings]
    >>> x, y = torch.ones(4, 5), torch.tensor([0, 1, 0, 1])
    >>> learnt = train_epoch_of_many(settings, states, x, y)
    >>> alone = train_epoch(settings[1], states[1], x, y)
    >>> bool((learnt[1].j == alone.j).all())
    True
    """
    options: dict[str, Any] = {"threads": threads, "compiled": compiled, "compile": compile}
    return _last(train_many_in_parts(parameters, states, inputs, labels, orders, **options))


def work_of(parameters: Sequence[Parameters]) -> float:
    """Return the multiplications of one sweep of a batch in all networks.

    Examples
    --------
    >>> work_of([Parameters.of(n=100)] * 2)  # 16 samples
    320000.0
    """
    return sum(
        float(one.batch.size * one.couplings.layers * one.couplings.n**2 * one.couplings.rho)
        for one in parameters
    )


def train_many_in_parts(
    parameters: Sequence[Parameters],
    states: Sequence[State],
    inputs: Array,
    labels: Array,
    orders: Sequence[torch.Tensor] | None = None,
    *,
    parts: int = 1,
    threads: int | None = None,
    compiled: bool = True,
    compile: bool = False,
) -> Generator[int, None, list[State]]:
    """Do what :func:`train_epoch_of_many` does, and yield the samples that each has learnt."""
    sizes = {len(parameters), len(states), len(parameters if orders is None else orders)}
    if len(sizes) != 1 or not parameters:
        raise InvalidInputError("states", len(states), "one for each of the parameters and orders")
    x, y = checked_samples_of_many(parameters, states, inputs, labels)
    if orders is None:
        orders = [torch.arange(len(x))] * len(states)
    else:
        checked = {id(order): checked_order(order, len(x)) for order in orders}
        orders = [checked[id(order)] for order in orders]
    if len({len(order) for order in orders}) != 1:
        raise InvalidInputError("orders", "of several lengths", "as long as each other")
    length = len(orders[0])
    groups = _learners(parameters, states, y.dim() == 1, compiled, compile)
    batches = [-(-length // one.batch.size) for one in parameters]
    count = min(parts, *batches)
    cuts = [
        [min(length, last * one.batch.size) for _, last in shares(own, max(1, count))]
        for one, own in zip(parameters, batches, strict=True)
    ]
    before = [0] * len(states)
    with side_by_side(len(groups), threads) as run:
        for part in range(count):
            after = [own[part] for own in cuts]
            work = []
            for members, learner in groups:
                some = _cut(orders, before, after, members)
                work.append((learner, x, y, some))
            run(_learn_part, work)
            before = after
            yield sum(after) // len(after)
        learnt: dict[int, State] = {}
        for members, learner in groups:
            learnt |= dict(zip(members, learner.finish(), strict=True))
    made = [replace(learnt[k], step=state.step + batches[k]) for k, state in enumerate(states)]
    demand_learnt_by_many(parameters, made, x, y)
    return made


def _cut(
    orders: Sequence[torch.Tensor], before: list[int], after: list[int], members: Sequence[int]
) -> list[torch.Tensor]:
    """Return the samples that some networks learn next; the same tensor for the same order."""
    cut: dict[int, torch.Tensor] = {}
    for k in members:
        cut.setdefault(id(orders[k]), orders[k][before[k] : after[k]])
    return [cut[id(orders[k])] for k in members]


def _learn_part(
    learner: _Learners, x: torch.Tensor, y: torch.Tensor, orders: list[torch.Tensor]
) -> None:
    learner.learn(x, y, orders)


def _last(steps: Generator[int, None, S], progress: Callable[[int], None] = lambda done: None) -> S:
    """Go on to the end and return its result; `progress` is called with what is yielded."""
    while True:
        try:
            done = next(steps)
        except StopIteration as end:
            result: S = end.value
            return result
        progress(done)


class _Learner(Protocol):
    """A network in the order of memory of its route."""

    def learn(self, x: torch.Tensor, y: torch.Tensor, order: torch.Tensor) -> None:
        """Learn the samples `order` of `x` and `y` in batches; a last one may be smaller."""

    def finish(self) -> State:
        """Return the weights in their usual order; `step` may be that of the beginning."""


class _Learners(Protocol):
    """Networks that learn together, each the samples of its own order."""

    def learn(self, x: torch.Tensor, y: torch.Tensor, orders: Sequence[torch.Tensor]) -> None:
        """Learn the samples of the orders, as :class:`_Learner` does."""

    def finish(self) -> list[State]:
        """Return the weights of each."""


@dataclass(frozen=True, eq=False)
class _Alone:
    """One network."""

    learner: _Learner

    def learn(self, x: torch.Tensor, y: torch.Tensor, orders: Sequence[torch.Tensor]) -> None:
        (order,) = orders
        self.learner.learn(x, y, order)

    def finish(self) -> list[State]:
        return [self.learner.finish()]


class _FlipLearner:
    """Learns batch after batch on the CPU, by the flips of dense networks."""

    def __init__(self, parameters: Parameters, state: State) -> None:
        self.parameters, self.state = parameters, by_columns(state)

    def learn(self, x: torch.Tensor, y: torch.Tensor, order: torch.Tensor) -> None:
        size = self.parameters.batch.size
        for first in range(0, len(order), size):
            chosen = order[first : first + size]
            _learn_batch_(self.parameters, self.state, x[chosen], y[chosen])
            self.state = replace(self.state, step=self.state.step + 1)

    def finish(self) -> State:
        return by_rows(self.state)


def _learners(
    parameters: Sequence[Parameters],
    states: Sequence[State],
    classes: bool,
    compiled: bool,
    compile: bool,
) -> list[tuple[list[int], _Learners]]:
    """Return the fastest route of each network, with the numbers of those that share it."""
    alone: list[tuple[list[int], _Learners]] = []
    together: dict[tuple[object, ...], list[int]] = {}
    for k, (one, state) in enumerate(zip(parameters, states, strict=True)):
        learner = _compiled_learner(one, state, classes) if compiled else None
        if learner is None:
            together.setdefault(structure(one, state), []).append(k)
        else:
            alone.append(([k], _Alone(learner)))
    for members in together.values():
        own = [parameters[k] for k in members], [states[k] for k in members]
        alone.append((members, TensorLearner(*own, compile=compile)))
    return alone


def _compiled_learner(parameters: Parameters, state: State, classes: bool) -> _Learner | None:
    """Return a compiled route of the CPU, if one applies; labels may be `classes`, or codes."""
    if state.device.type != "cpu":
        return None
    if has_tables(parameters, state):
        return TableLearner(parameters, state.copy())
    if classes and has_kernel(parameters, state):
        return RowLearner(parameters, state.copy())
    return _FlipLearner(parameters, state.copy())


def _learn_batch_(parameters: Parameters, state: State, x: torch.Tensor, y: torch.Tensor) -> Phases:
    """Learn one batch in place."""
    x = x.to(dtype=state.dtype, device=state.device)
    code = label_code(parameters, state, y)
    ends = present(parameters, state, x, code, state.step)
    learn_(parameters, state, ends, x, code)
    if len(state.w_out) and parameters.readout.eta > 0:
        learn_readout_(parameters, state, ends.s_star, label_signs(state, y))
    return ends


def infer(
    parameters: Parameters,
    state: State,
    inputs: Array,
    *,
    together: int = _TOGETHER,
    compiled: bool = True,
) -> torch.Tensor:
    """Return the states at inference as int8, (samples, layers, n), on the device of the weights.

    Parameters
    ----------
    parameters, state
        The protocol and the weights.
    inputs : array, (samples, D)
        Inputs.
    together : int
        Samples relaxed together.
    compiled : bool
        Take the compiled routes of a CPU where they apply.
    """
    demand_fit(parameters, state)
    x = checked_inputs(state, inputs)
    demand_fields(parameters, state, x)
    if compiled and has_tables(parameters, state):
        return infer_by_tables(parameters, state, x, together)
    if compiled and has_inference_kernel(parameters, state):
        return infer_compiled(parameters, state, x)
    if compiled:
        state = by_columns(state)
    shape = (len(x), *parameters.couplings.shape)
    states = torch.empty(shape, dtype=torch.int8, device=state.device)
    for number, first in enumerate(range(0, len(x), together)):
        part = slice(first, first + together)
        batch = x[part].to(dtype=state.dtype, device=state.device)
        states[part] = infer_batch(parameters, state, batch, number).s.to(torch.int8)
    return states


def outputs(state: State, s: torch.Tensor) -> torch.Tensor:
    """Return W_out s of the neurons that are read, (samples, C)."""
    if not len(state.w_out):
        raise InvalidInputError("readout", "none", "perceptron, to predict classes")
    return (s.flatten(1).to(state.dtype) * state.a_out) @ state.w_out.T


def outputs_of(state: State, s: torch.Tensor) -> torch.Tensor:
    """Return :func:`outputs` of any number of states, in products of one size."""
    parts = [outputs(state, s[first : first + _TOGETHER]) for first in range(0, len(s), _TOGETHER)]
    return torch.cat(parts) if parts else outputs(state, s)


def predict(parameters: Parameters, state: State, inputs: Array) -> torch.Tensor:
    """Return the predicted class numbers."""
    return outputs_of(state, infer(parameters, state, inputs)).argmax(1)


def accuracy(parameters: Parameters, state: State, inputs: Array, labels: Array) -> float:
    """Return the fraction of samples whose class is predicted."""
    predicted = predict(parameters, state, inputs)
    y = checked_labels(state, labels, len(predicted)).to(predicted.device)
    if y.dim() == 2:
        raise InvalidInputError("labels", "label codes", "class numbers, to compare with")
    if not len(y):
        raise InvalidInputError("inputs", "no sample", "at least one sample")
    return float((predicted == y).double().mean())


#: State and number of the epoch (from 0) -> the samples learnt so far, again and again; what is
#: returned at the end is the state after the epoch.
Learn = Callable[[S, int], Generator[int, None, S]]


@dataclass(frozen=True, eq=False)
class Epoch(Generic[S]):
    """What an epoch ends with.

    Parameters
    ----------
    number : int
        Epochs done.
    state : object
        What learns, after them.
    seconds : float
        Time that the last of them took.
    """

    number: int
    state: S
    seconds: float


def run_epochs(
    learn: Learn[S],
    state: S,
    first: int,
    last: int,
    progress: Callable[[int, int], None] = lambda epoch, samples: None,
) -> Iterator[Epoch[S]]:
    """Learn epoch after epoch, and give the state after each.

    Parameters
    ----------
    learn : callable
        Learns all samples once.
    state : object
        What learns, after `first` epochs.
    first, last : int
        Epochs done before, and those done at the end.
    progress : callable
        Called with the epochs done and the samples learnt since.

    Examples
    --------
    >>> def add_one(total, epoch):
    ...     yield 1
    ...     return total + 1
    >>> [(epoch.number, epoch.state) for epoch in run_epochs(add_one, 10, 0, 3)]
    [(1, 11), (2, 12), (3, 13)]
    """
    for done in range(first, last):
        started = time.perf_counter()
        state = _last(learn(state, done), partial(progress, done))
        yield Epoch(done + 1, state, time.perf_counter() - started)


def learning_of(
    parameters: Parameters, inputs: Array, labels: Array, seed: int, parts: int = 1
) -> Learn[State]:
    """Return how a network learns these samples, in the order ``epoch_order(seed, epoch, P)``.

    Parameters
    ----------
    parameters : Parameters
        The protocol.
    inputs, labels : array
        As for :func:`rmsim.learning.train_epoch`.
    seed : int
        Of the orders.
    parts : int
        How often it reports how many samples are learnt; the weights do not depend on it.
    """
    learn_many = learning_of_many([parameters], inputs, labels, [seed], parts)

    def learn(state: State, epoch: int) -> Generator[int, None, State]:
        (learnt,) = yield from learn_many([state], epoch)
        return learnt

    return learn


def learning_of_many(
    parameters: Sequence[Parameters],
    inputs: Array,
    labels: Array,
    seeds: Sequence[int],
    parts: int = 1,
    *,
    threads: int | None = None,
    compile: bool = False,
) -> Learn[list[State]]:
    """Return how networks learn these samples side by side, each in the order of its seed.

    Parameters
    ----------
    parameters, inputs, labels, threads, compile
        As for :func:`train_epoch_of_many`.
    seeds : sequence of int
        Of the orders; networks with the same seed take the samples in the same order.
    parts : int
        As for :func:`learning_of`.
    """
    x, y = as_tensor("inputs", inputs), as_tensor("labels", labels)

    def learn(states: list[State], epoch: int) -> Generator[int, None, list[State]]:
        once = {seed: epoch_order(seed, epoch, len(x)) for seed in {*seeds}}
        orders = [once[seed] for seed in seeds]
        options: dict[str, Any] = {"parts": parts, "threads": threads, "compile": compile}
        return train_many_in_parts(parameters, states, x, y, orders, **options)

    return learn


def _sweeps_error(values: torch.Tensor, until_convergence: bool) -> float | None:
    """Return the standard error of a mean number of sweeps; None if one sample has no spread.

    Samples that all took equally many do not prove that every sample does: one more sweep of one of
    them would move the mean by 1/P, and the error is not below that. A fixed number has no error.
    """
    count = values.numel()
    if not until_convergence:
        return 0.0
    if count < 2:
        return None
    return max(float(standard_error(values.cpu())), 1 / count)


@dataclass(frozen=True)
class Measurement:
    """What is measured of a network, over some samples.

    Parameters
    ----------
    samples : int
        Samples measured.
    q_dyn : Quantiles
        Overlap of s' and s* of each sample.
    q_dyn_error : QuantileErrors
        Errors of these quantiles, not below half a step of the overlap, 1/N (None: one sample).
    margin : Quantiles
        Least s_i h_i of each sample at s*, with the field that the rule tests.
    unstable_clamped, unstable_free : float
        Fraction of samples whose s' (s*) is not a fixed point of its phase.
    sweeps_clamped, sweeps_free : float
        Mean number of sweeps that changed the state, if the protocol runs until convergence; else
        those it does.
    sweeps_clamped_error, sweeps_free_error : float
        Standard errors of these means (None: one sample).
    below_kappa : float
        Fraction of neurons with s_i h_i <= kappa_j, which the next step would update.
    symmetry : float
        Symmetry level of J off the diagonal; 1 symmetric, -1 antisymmetric, 0 independent. None
        if J has no entry but 0.
    """

    samples: int
    q_dyn: Quantiles
    q_dyn_error: QuantileErrors | None
    margin: Quantiles
    unstable_clamped: float
    unstable_free: float
    sweeps_clamped: float
    sweeps_free: float
    sweeps_clamped_error: float | None
    sweeps_free_error: float | None
    below_kappa: float
    symmetry: float | None

    def to_dict(self) -> dict[str, object]:
        """Return the numbers as JSON values."""
        return asdict(self)


def measure(
    parameters: Parameters, state: State, inputs: Array, labels: Array, *, together: int = 512
) -> Measurement:
    """Present the samples without learning, and measure.

    Parameters
    ----------
    parameters, state, inputs, labels
        As for :func:`rmsim.learning.batch_step`.
    together : int
        Samples relaxed together.
    """
    x, y = checked_samples(parameters, state, inputs, labels)
    state = by_columns(state)
    parts: dict[str, list[torch.Tensor]] = {}
    for number, first in enumerate(range(0, len(x), together)):
        part = slice(first, first + together)
        batch = x[part].to(dtype=state.dtype, device=state.device)
        code = label_code(parameters, state, y[part])
        ends = present(parameters, state, batch, code, number, stream=MEASUREMENT)
        margin = ends.s_star * update_field(parameters, state, ends)
        both = ends.input_field + ends.label_field
        final_field = both if parameters.phases.scheme == "approximate" else ends.input_field
        row = {
            "q_dyn": (ends.s_prime * ends.s_star).flatten(1).mean(1),
            "margin": margin.flatten(1).amin(1),
            "below": (margin <= parameters.j.kappa).flatten(1).double().mean(1),
            "clamped": ~is_fixed(state.couplings, ends.s_prime, both),
            "free": ~is_fixed(state.couplings, ends.s_star, final_field),
            "sweeps_clamped": ends.clamped.sweeps,
            "sweeps_free": ends.free.sweeps,
        }
        for name, values in row.items():
            parts.setdefault(name, []).append(values)
    # Quantiles and means are taken on the CPU, so that a GPU is waited for once for each.
    all_of = {name: torch.cat(values).cpu() for name, values in parts.items()}
    until_convergence = parameters.phases.stop == "converged"
    step = 2 / parameters.neurons  # of the overlap, if one spin differs
    mean = {name: float(values.double().mean()) for name, values in all_of.items()}
    return Measurement(
        samples=len(x),
        q_dyn=Quantiles.of(all_of["q_dyn"]),
        q_dyn_error=QuantileErrors.of(all_of["q_dyn"], step / 2) if len(x) > 1 else None,
        margin=Quantiles.of(all_of["margin"]),
        unstable_clamped=mean["clamped"],
        unstable_free=mean["free"],
        sweeps_clamped=mean["sweeps_clamped"],
        sweeps_free=mean["sweeps_free"],
        sweeps_clamped_error=_sweeps_error(all_of["sweeps_clamped"], until_convergence),
        sweeps_free_error=_sweeps_error(all_of["sweeps_free"], until_convergence),
        below_kappa=mean["below"],
        symmetry=symmetry_level(state),
    )


def symmetry_level(state: State) -> float | None:
    """Return (|S| - |A|) / (|S| + |A|) of J off the diagonal, over all layers; None if J = 0.

    With a = sum J_ij^2 and b = sum J_ij J_ji, |S|^2 = (a + b)/2 and |A|^2 = (a - b)/2.
    """
    square, crossed = state.couplings.squares(0)
    symmetric, other = (math.sqrt(max(0.0, square + sign * crossed)) for sign in (1, -1))
    if symmetric + other == 0:
        return None
    return (symmetric - other) / (symmetric + other)
