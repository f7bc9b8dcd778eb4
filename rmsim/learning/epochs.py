"""The one loop over epochs: all samples are learnt once, then whoever iterates measures and writes.

A network that learns by its protocol, a readout and a perceptron by gradients differ in what they
do with the samples of an epoch; experiments, runs in a folder and the classifier differ in what
they do between two epochs. The first is a function, :data:`Learn`, the second the body of a loop
over :func:`run_epochs`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from rmsim.learning.parameters import Parameters
from rmsim.learning.protocol import epoch_order, train_epoch
from rmsim.learning.state import State
from rmsim.learning.validation import Array, as_tensor

S = TypeVar("S")

#: State and number of the epoch (from 0) -> states on the way with the samples learnt so far; the
#: last one is the state after the epoch.
Learn = Callable[[S, int], Iterator[tuple[S, int]]]


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
    follow: Callable[[int, int], None] = lambda epoch, samples: None,
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
    follow : callable
        Called with the epochs done and the samples learnt since.

    Examples
    --------
    >>> def add_one(total, epoch):
    ...     yield total + 1, 1
    >>> [(epoch.number, epoch.state) for epoch in run_epochs(add_one, 10, 0, 3)]
    [(1, 11), (2, 12), (3, 13)]
    """
    for done in range(first, last):
        started = time.perf_counter()
        for reached, samples in learn(state, done):
            state = reached
            follow(done, samples)
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
        How often the weights on the way are given; they do not depend on it.
    """
    x, y = as_tensor("inputs", inputs), as_tensor("labels", labels)
    batches = -(-len(x) // parameters.batch.size)
    stride = max(1, batches // parts) * parameters.batch.size  # whole batches: the same numbers

    def learn(state: State, epoch: int) -> Iterator[tuple[State, int]]:
        order = epoch_order(seed, epoch, len(x))
        if stride >= len(order):  # no copy of all samples
            yield train_epoch(parameters, state, x, y, order), len(order)
            return
        for first in range(0, len(order), stride):
            chosen = order[first : first + stride]
            state = train_epoch(parameters, state, x[chosen], y[chosen])
            yield state, first + len(chosen)

    return learn
