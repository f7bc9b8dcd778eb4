r"""Hetero-association by tables of signed sums and by flips, in machine code, on the CPU.

.. math::
    h^l = J^l s^l + J_D s^l + \lambda s^{l-1} + \lambda s^{l+1}, \qquad
    J^l_{ij} \mathrel{+}= \eta \sum_\mu s_i s_j\, 1[s_i \tilde h_i \le \kappa]

This is the route of :mod:`rmsim.studies.capacity` in float32 where every sweep updates all neurons.

**First states.** From s = 0 the input reaches one layer a sweep, and a layer that it reaches has no
other field yet: :math:`s^l = \mathrm{sgn}(\lambda s^{l-1}) = x` in all of them, one after the
other. All products :math:`J^l x` of a batch therefore come from one pass over J, in which J learns
the batch before (:mod:`rmsim.learning.sign_table_loops`): four columns have eight signed sums up to
a sign, which are tabulated, and so have four samples of the update.

**Sweeps** add the columns of what flips. In training a neuron flips about once from x to the end,
over all sweeps; so a batch costs two products instead of one for each sweep.

**Deep chains** swing: with lambda on both sides, layers that disagree exchange their states, and
many neurons are what they were two sweeps before. There products follow every other state, one
those of even sweeps, one those of odd: of what flips, a quarter to a half is left, and of the
columns that have to come from memory as much. Such a product is rounded in another order; where a
field is so near to its threshold that this could decide, the product is made once more as it
follows every sweep. So results are to the bit those of a product that follows all of them, as long
as fields differ by less than that distance (:data:`_NEAR`), which is no bound for all couplings.

Results are those of :class:`rmsim.studies.capacity.Motion` up to the rounding of sums that are
taken in another order; a neuron whose field rounds to 0 is +1 here, and 0 there.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from rmsim.compiled_loops import compiled, compiled_part, shares, thread_count
from rmsim.compiled_vectors import (
    GROUP,
    ROWS,
    add,
    add_times,
    load,
    lowest_bit,
    multiply,
    near,
    prefetch_second,
    real,
    set_real,
    set_whole,
    set_word,
    signs_of,
    store,
    subtract,
    times,
    ups,
    where_at_most,
    whole,
    word,
    zeros,
)
from rmsim.learning.sign_table_loops import (
    CODES,
    GROUPS,
    Pass,
    Post,
    Pre,
    clear,
    flag,
    learn_and_multiply,
    meet,
    place_of,
    set_codes,
    set_patterns,
    unused_rows,
)
from rmsim.learning.sign_tables import Part, Weights, address, aligned, to_panels

if TYPE_CHECKING:
    from rmsim.studies.capacity import Protocol

#: Samples that learn, and that are recalled, go in multiples of this.
_LANES = 16

#: Samples recalled together: a panel of J in the cache, and its tables, serve all of them.
_RECALLED = 64

#: Couplings worth a thread of their own.
_GRAIN = 2**20

#: Places of the numbers of the protocol.
LAM, LAM_X, LAM_Y, JD, KAPPA, NEAR = range(6)

#: Layers from which products follow every other state: of two, they would have more to follow.
_DEEP = 4

#: Distance to a threshold, over the larger of 1 and kappa, within which rounding could decide. The
#: largest difference between fields of both kinds that was seen at N = 2000 is 30 times smaller.
_NEAR = 2.0**-13

_ZERO, _ONE, _TWO = np.float32(0), np.float32(1), np.float32(2)


def has_tables(protocol: Protocol, j: torch.Tensor) -> bool:
    """Return whether this route serves `protocol` with couplings such as `j`.

    With p < 1 a state may be 0, which is no sign; and the first states are x if both lambdas are
    positive.
    """
    couplings = protocol.couplings
    return (
        j.device.type == "cpu"
        and j.dtype == torch.float32
        and protocol.phases.p == 1
        and min(couplings.lam, couplings.lam_x) > 0
    )


class PairTables:
    """What learns and recalls pairs by tables, in chains of one shape, one after the other.

    Parameters
    ----------
    protocol : Protocol
        How they learn.
    layers, n : int
        Depth and neurons per layer.
    """

    def __init__(self, protocol: Protocol, layers: int, n: int) -> None:
        self.protocol, self.layers, self.n = protocol, layers, n
        self.panels = -(-n // ROWS)
        rate = protocol.rule.eta / np.sqrt(n * protocol.rule.batch)
        couplings = protocol.couplings
        numbers = (couplings.lam, couplings.lam_x, couplings.lam_y, couplings.jd)
        self._rates = np.full(n, rate, np.float32)
        kappa = protocol.rule.kappa
        self._numbers = np.array([*numbers, kappa, _NEAR * max(1.0, abs(kappa))], np.float32)
        self._memory: dict[tuple[int, int], tuple[_Work, list[Any]]] = {}

    def panelled(self, j: torch.Tensor) -> torch.Tensor:
        """Return couplings (trials, layers, n, n) in panels, without their diagonal."""
        bare = j.clone()
        bare.diagonal(dim1=-2, dim2=-1).fill_(0)
        panels = to_panels(bare.flatten(0, 1).numpy())
        return torch.from_numpy(panels.reshape(*j.shape[:2], *panels.shape[1:]))

    def learn(
        self, panels: torch.Tensor, x: torch.Tensor, y: torch.Tensor, order: torch.Tensor
    ) -> None:
        """Let one trial learn its pairs (patterns, n) in this `order`, once; change its panels."""
        phases = self.protocol.phases
        sweeps = self.layers + phases.clamped_sweeps + phases.free_sweeps
        right_in_rule = int(self.protocol.rule.right_in_rule)
        chain = self._chain(sweeps, phases.clamped_sweeps, 1, right_in_rule, learning=1)
        self._follow(panels, (x, y), order, chain, self.protocol.rule.batch, None)

    def recall(self, panels: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Return the states (layers, patterns, n) of one trial that the inputs alone lead to."""
        phases = self.protocol.phases
        sweeps = phases.inference_sweeps + self.layers
        chain = self._chain(sweeps, 0, int(phases.right_at_inference), 0, learning=0)
        states = torch.empty(self.layers, len(x), self.n)
        batch = min(_RECALLED, -(-len(x) // _LANES) * _LANES)
        self._follow(panels, (x, x), torch.arange(len(x)), chain, batch, states)
        return states

    def _chain(
        self, sweeps: int, clamped: int, right: int, right_in_rule: int, *, learning: int
    ) -> _Chain:
        shape = (self.n, self.layers, self.panels)
        numbers = address(self._numbers)
        steps = (sweeps, 2 if right and self.layers >= _DEEP else 1, clamped)
        return _Chain(*shape, *steps, right, right_in_rule, learning, numbers)

    def _follow(
        self,
        panels: torch.Tensor,
        pairs: tuple[torch.Tensor, torch.Tensor],
        order: torch.Tensor,
        chain: _Chain,
        batch: int,
        states: torch.Tensor | None,
    ) -> None:
        """Run the compiled loop, in threads."""
        x, y = (one.contiguous().numpy() for one in pairs)
        j, numbers = panels.numpy(), order.contiguous().numpy()
        threads = min(thread_count(j.size, _GRAIN), self.panels, batch)
        if (batch, threads) not in self._memory:  # threads have tables of their own
            self._memory[batch, threads] = self._allocated(batch, threads)
        work, arrays = self._memory[batch, threads]
        arrays[-1][:] = 0  # meetings
        weights = Weights(address(j), 0, address(self._rates), j.shape[-2], self.n)
        out = 0 if states is None else address(states.numpy())
        given = (address(x), address(y), address(numbers), out, len(numbers), batch, len(x))
        shared: tuple[Any, ...] = (_Pairs(*given), weights, chain, work)
        rows, samples = shares(self.panels, threads), shares(batch, threads)
        parts = [
            (*shared, Part(thread, threads, *rows[thread], *samples[thread]))
            for thread in range(threads)
        ]
        # Threads of their own: those of a pool may all be taken by loops that wait for each other.
        others = [threading.Thread(target=follow_pairs, args=part) for part in parts[1:]]
        for other in others:
            other.start()
        follow_pairs(*parts[0])
        for other in others:
            other.join()

    def _allocated(self, batch: int, threads: int) -> tuple[_Work, list[Any]]:
        """Return memory of the loop for batches of this size, and its arrays."""
        phases, lanes = self.protocol.phases, -(-batch // _LANES) * _LANES
        shown = phases.clamped_sweeps + phases.free_sweeps
        steps = 1 + self.layers + max(shown, phases.inference_sweeps)
        quads, panels = lanes // GROUP, self.layers * self.panels
        tile, tables = lanes * ROWS, ROWS * (8 * GROUPS + 16 * quads)
        arrays = {
            **{name: aligned((panels * tile,)) for name in ("start", "g")},
            "product": aligned((2 * panels * tile,)),
            "codes": np.zeros(self.panels * lanes * CODES, np.uint8),
            **{name: np.zeros(self.panels * lanes, np.uint32) for name in ("inputs", "targets")},
            "words": np.zeros(steps * panels * lanes, np.uint32),
            **{name: np.zeros(panels * lanes, np.uint32) for name in ("wanted", "changed")},
            "patterns": np.zeros(panels * quads * ROWS, np.uint8),
            "tables": aligned((threads * tables,)),
            "flips": np.zeros(panels * tile, np.uint32),
            **{
                name: np.zeros(threads * self.panels * ROWS, np.uint32)
                for name in ("columns", "own_flips")
            },
            "counts": np.zeros(2 * lanes * self.layers, np.int64),
            "own_counts": np.zeros(2 * threads, np.int64),
            "moved": np.zeros(lanes * self.layers, np.int64),
            "meetings": np.zeros(1, np.int64),
        }
        addresses = {name: address(array) for name, array in arrays.items()}
        return _Work(lanes, quads, 4 * tables, **addresses), list(arrays.values())


# What the compiled loop takes.


class _Pairs(NamedTuple):
    """Addresses of inputs and targets, of the order of the samples and of the states to write.

    `samples` of the `patterns` go in batches of `batch`.
    """

    x: int
    y: int
    order: int
    states: int
    samples: int
    batch: int
    patterns: int


class _Chain(NamedTuple):
    """Shape and protocol; the first `layers` sweeps are without target, then `clamped` with it.

    Products follow states that are `apart` by this many sweeps. `right` and `right_in_rule` are 1
    if the field from the right acts in a sweep, and in the rule; `numbers` is the address of
    lambda, lambda_x, lambda_y, J_D, kappa, and of the distance within which rounding could decide.
    """

    n: int
    layers: int
    panels: int
    sweeps: int
    apart: int
    clamped: int
    right: int
    right_in_rule: int
    learning: int
    numbers: int


class _Work(NamedTuple):
    """Memory of a batch, by addresses, in the order of :mod:`rmsim.learning.sign_table_loops`.

    Of each neuron and sample: J s at the `start`, the `product` J s, one or two of them, and the
    gate `g`. Bit i of a word is set where a sign is +: `words` of the states, one after the other,
    `wanted` of the field, `inputs` and `targets`; in `changed`, where a neuron is not as its
    product has it. `codes` of x are what tables take, `patterns` are those of the
    states. `flips` lists for each sample and layer where the columns begin that flip, `counts` has
    how many go up and down, `moved` is 1 if any did in this sweep. `columns` are those of all
    samples, for each thread; `own_flips` and `own_counts` are those of one sample and sweep.
    """

    lanes: int
    quads: int
    size: int
    start: int
    product: int
    g: int
    codes: int
    inputs: int
    targets: int
    words: int
    wanted: int
    changed: int
    patterns: int
    tables: int
    flips: int
    columns: int
    own_flips: int
    counts: int
    own_counts: int
    moved: int
    meetings: int


@compiled
def follow_pairs(pairs: Any, weights: Any, chain: Any, work: Any, part: Any) -> None:
    """Follow all samples batch by batch, this thread its part; let J learn or write the states."""
    meeting, waiting, yes, no = flag(0), flag(0), flag(1), flag(0)
    for start in range(0, pairs.samples, pairs.batch):
        batch = min(pairs.batch, pairs.samples - start)
        meeting = meet(work.meetings, part.threads, meeting)  # all have judged the batch before
        _take(pairs, start, batch, chain, work, part)
        meeting = meet(work.meetings, part.threads, meeting)
        _learn_and_start(weights, chain, work, part, batch, waiting, yes)
        meeting = meet(work.meetings, part.threads, meeting)  # all panels have their first states
        meeting, last = _sweep(weights, chain, work, part, batch, meeting)
        if chain.learning:
            _judge(weights, chain, work, part, batch, last)
            waiting = yes
        else:
            _write(pairs, start, batch, chain, work, part, _states(chain, work, last))
    meeting = meet(work.meetings, part.threads, meeting)
    if waiting:
        _learn_and_start(weights, chain, work, part, no, yes, no)


@compiled_part
def _take(pairs: Any, start: int, batch: int, chain: Any, work: Any, part: Any) -> None:
    """Copy inputs and targets of this thread's samples, and set the codes of the inputs."""
    n = chain.n
    for b in range(part.first_sample, min(part.last_sample, batch)):
        row = n * whole(pairs.order, start + b)
        for panel in range(chain.panels):
            up, target = unused_rows(panel, n), flag(0)
            for k in range(min(ROWS, n - ROWS * panel)):
                up |= flag(real(pairs.x, row + ROWS * panel + k) >= 0) << k
                target |= flag(real(pairs.y, row + ROWS * panel + k) > 0) << k
            set_codes(work.lanes, work.codes, panel, b, up)
            set_word(work.inputs, work.lanes * panel + b, up)
            set_word(work.targets, work.lanes * panel + b, target)


@compiled_part
def _learn_and_start(
    weights: Any, chain: Any, work: Any, part: Any, batch: int, learning: int, started: int
) -> None:
    """Let this thread's panels of J learn the batch before; set s = x and the products J x."""
    for layer in range(chain.layers):
        first = layer * chain.panels
        # All layers are multiplied with the same x: their codes begin `first` panels earlier.
        codes = work.codes - CODES * work.lanes * first
        for panel in range(part.first, part.last):
            p = first + panel
            clear(work.lanes, work.start, p, batch)
            learn_and_multiply(
                Pass(p, first, learning, started, panel, chain.n, batch, flag(1)),
                weights,
                work,
                part,
                Post(work.g, work.patterns),
                _ONE,
                Pre(codes, work.start),
            )
            for b in range(batch):
                up = word(work.inputs, work.lanes * panel + b) | unused_rows(panel, chain.n)
                set_word(work.words, work.lanes * p + b, up)
                set_word(work.wanted, work.lanes * p + b, up)
                place = place_of(work.lanes, p, b)
                for step in range(chain.apart):
                    store(_products(chain, work, step), place, load(work.start, place))


# Sweeps.


@compiled_part
def _states(chain: Any, work: Any, step: int) -> Any:
    """Return where the words of the states after `step` sweeps are; those of the first are x."""
    return work.words + 4 * work.lanes * chain.layers * chain.panels * max(step, 0)


@compiled_part
def _products(chain: Any, work: Any, step: int) -> Any:
    """Return where the products are that follow the states of this step."""
    size = 4 * ROWS * work.lanes * chain.layers * chain.panels
    return work.product + size * (step % chain.apart)


@compiled_part
def _sweep(weights: Any, chain: Any, work: Any, part: Any, batch: int, meeting: int) -> Any:
    """Make the sweeps after the first; return the number of the next meeting, and of steps.

    A sweep lets neurons flip that disagree with their fields, sample by sample, then corrects the
    products panel by panel, and has there the fields of the next sweep.
    """
    layers, clamped = chain.layers, chain.layers + chain.clamped
    sweep, step = flag(0), flag(0)
    while sweep < chain.sweeps:
        for b in range(part.first_sample, min(part.last_sample, batch)):
            for layer in range(layers):  # those that the input has not reached want to stay x
                _flip(chain, work, layer, b, step)
        meeting = meet(work.meetings, part.threads, meeting)
        if sweep >= layers:
            total = flag(0)
            for k in range(batch * layers):
                total += whole(work.moved, k)
            if total == 0:  # fixed points, until another phase begins
                if sweep >= clamped or clamped >= chain.sweeps:
                    break
                sweep = clamped - 1
        sweep += 1
        changed = sweep <= layers or sweep == clamped
        active = min(sweep, layers)
        for k in range(active):
            layer = k if sweep % 2 else active - 1 - k  # those that the cache still has come first
            kind = _Kind(
                layer,
                flag(chain.right != 0 and layer + 1 < active),
                flag(layers <= sweep < clamped and layer == layers - 1),
                step,
                _states(chain, work, step),
            )
            columns = _list_columns(chain, work, part, layer, batch)
            for panel in range(part.first, part.last):
                _correct(weights, chain, work, part, kind, panel, batch, columns, changed)
        meeting = meet(work.meetings, part.threads, meeting)
        step += 1
    return meeting, max(step - 1, 0)


class _Kind(NamedTuple):
    """A layer, and whether it has a field from the right and from the target.

    Then the number of sweeps made, and where the states after them are.
    """

    layer: int
    right: int
    target: int
    step: int
    states: int


@compiled_part
def _flip(chain: Any, work: Any, layer: int, b: int, step: int) -> None:
    """Set the states of a layer to the signs of its fields, and list what its product needs."""
    now, before = _states(chain, work, step), _states(chain, work, step - 1)
    base, moved = _states(chain, work, step - chain.apart), flag(0)
    for panel in range(chain.panels):
        here = work.lanes * (layer * chain.panels + panel) + b
        wanted = word(work.wanted, here)
        moved |= flag(wanted != word(before, here))
        set_word(now, here, wanted)
        set_word(work.changed, here, wanted ^ word(base, here))
    count = b * chain.layers + layer
    set_whole(work.moved, count, moved)
    listed = work.flips + 4 * ROWS * chain.panels * count
    _list(chain, work, layer, b, base, now, listed, work.counts + 16 * count)


@compiled_part
def _list(
    chain: Any, work: Any, layer: int, b: int, before: int, after: int, flips: int, counts: int
) -> None:
    """List the columns of a layer that differ between two states, and count them.

    Those that go up come first; those that go down are listed from the end.
    """
    panels = chain.panels
    up, down = flag(0), flag(ROWS * panels)
    for panel in range(panels):
        here = work.lanes * (layer * panels + panel) + b
        now = word(after, here)
        change = now ^ word(before, here)
        rise, fall = change & now, change & ~now
        while rise != 0:
            set_word(flips, up, ROWS * (ROWS * panel + lowest_bit(rise)))
            rise &= rise - 1
            up += 1
        while fall != 0:
            down -= 1
            set_word(flips, down, ROWS * (ROWS * panel + lowest_bit(fall)))
            fall &= fall - 1
    set_whole(counts, 0, up)
    set_whole(counts, 1, ROWS * panels - down)


@compiled_part
def _list_columns(chain: Any, work: Any, part: Any, layer: int, batch: int) -> Any:
    """List the columns of a layer that flip in any sample; return how many."""
    count, origin = flag(0), ROWS * chain.panels * part.thread
    for panel in range(chain.panels):
        here, some = work.lanes * (layer * chain.panels + panel), flag(0)
        for b in range(batch):
            some |= word(work.changed, here + b)
        while some != 0:
            set_word(work.columns, origin + count, ROWS * (ROWS * panel + lowest_bit(some)))
            some &= some - 1
            count += 1
    return count


@compiled_part
def _correct(
    weights: Any,
    chain: Any,
    work: Any,
    part: Any,
    kind: Any,
    panel: int,
    batch: int,
    columns: int,
    changed: bool,
) -> None:
    """Add to a panel the columns of what flipped, and set the signs of its fields."""
    layers, layer = chain.layers, kind.layer
    p, unused = layer * chain.panels + panel, unused_rows(panel, chain.n)
    matrix = weights.panels + 4 * ROWS * weights.columns * p
    product = _products(chain, work, kind.step)
    following = matrix + 4 * ROWS * weights.columns  # the next panel is fetched meanwhile
    listed = work.columns + 4 * ROWS * chain.panels * part.thread
    if panel + 1 == part.last:
        columns = flag(0)
    for b in range(batch):
        for k in range(columns * b // batch, columns * (b + 1) // batch):
            column = word(listed, k)
            prefetch_second(following, column)
            prefetch_second(following, column + ROWS // 2)
        place, count = place_of(work.lanes, p, b), b * layers + layer
        counts = work.counts + 16 * count
        if whole(counts, 0) + whole(counts, 1) != 0:
            flips = work.flips + 4 * ROWS * chain.panels * count
            h = _moved(matrix, flips, counts, chain)
            store(product, place, add(load(product, place), h))
        if not changed:
            moved = whole(work.moved, count)
            if layer > 0:
                moved |= whole(work.moved, count - 1)
            if layer + 1 < layers:
                moved |= whole(work.moved, count + 1)
            if moved == 0:
                continue
        h = _field(chain, work, kind, panel, b, load(product, place))
        up = ups(h)
        if chain.apart > 1 and near(h, _ZERO, real(chain.numbers, NEAR)) & ~unused:
            own = _product_of_all_flips(matrix, chain, work, part, kind, panel, b)
            up = ups(_field(chain, work, kind, panel, b, own))
        set_word(work.wanted, work.lanes * p + b, up | unused)


@compiled_part
def _moved(matrix: int, flips: int, counts: int, chain: Any) -> Any:
    """Return twice the columns that rise minus those that fall."""
    one, two, three, four = zeros(), zeros(), zeros(), zeros()
    rises, falls = whole(counts, 0), whole(counts, 1)
    for k in range(0, rises - 1, 2):
        one = add(one, load(matrix, word(flips, k)))
        two = add(two, load(matrix, word(flips, k + 1)))
    if rises % 2:
        one = add(one, load(matrix, word(flips, rises - 1)))
    flips += 4 * (ROWS * chain.panels - falls)
    for k in range(0, falls - 1, 2):
        three = add(three, load(matrix, word(flips, k)))
        four = add(four, load(matrix, word(flips, k + 1)))
    if falls % 2:
        three = add(three, load(matrix, word(flips, falls - 1)))
    return times(subtract(add(one, two), add(three, four)), _TWO)


@compiled_part
def _product_of_all_flips(
    matrix: int, chain: Any, work: Any, part: Any, kind: Any, panel: int, b: int
) -> Any:
    """Return the product of a panel that follows every sweep, from x on, and not every other."""
    total = load(work.start, place_of(work.lanes, kind.layer * chain.panels + panel, b))
    flips = work.own_flips + 4 * ROWS * chain.panels * part.thread
    counts = work.own_counts + 16 * part.thread
    for step in range(1, kind.step + 1):
        before, after = _states(chain, work, step - 1), _states(chain, work, step)
        _list(chain, work, kind.layer, b, before, after, flips, counts)
        if whole(counts, 0) + whole(counts, 1) != 0:
            total = add(total, _moved(matrix, flips, counts, chain))
    return total


@compiled_part
def _field(chain: Any, work: Any, kind: Any, panel: int, b: int, product: Any) -> Any:
    """Return the field of a panel of a sample."""
    p, numbers, lanes = kind.layer * chain.panels + panel, chain.numbers, work.lanes
    s = signs_of(word(kind.states, lanes * p + b))
    h = add_times(product, s, real(numbers, JD))
    if kind.layer > 0:
        left = signs_of(word(kind.states, lanes * (p - chain.panels) + b))
        h = add_times(h, left, real(numbers, LAM))
    else:
        h = add_times(h, signs_of(word(work.inputs, lanes * panel + b)), real(numbers, LAM_X))
    if kind.right:
        right = signs_of(word(kind.states, lanes * (p + chain.panels) + b))
        h = add_times(h, right, real(numbers, LAM))
    if kind.target:
        h = add_times(h, signs_of(word(work.targets, lanes * panel + b)), real(numbers, LAM_Y))
    return h


# Ends of a batch.


@compiled_part
def _judge(weights: Any, chain: Any, work: Any, part: Any, batch: int, last: int) -> None:
    """Set the gates of this thread's panels, and the patterns of their states."""
    kappa, no, states = real(chain.numbers, KAPPA), flag(0), _states(chain, work, last)
    product = _products(chain, work, last)
    for layer in range(chain.layers):
        right = flag(chain.right_in_rule != 0 and layer + 1 < chain.layers)
        kind = _Kind(layer, right, no, last, states)
        for panel in range(part.first, part.last):
            p, unused = layer * chain.panels + panel, unused_rows(panel, chain.n)
            matrix = weights.panels + 4 * ROWS * weights.columns * p
            for b in range(work.lanes):
                gate = zeros()
                if b < batch:
                    s = signs_of(word(states, work.lanes * p + b))
                    own = load(product, place_of(work.lanes, p, b))
                    margin = multiply(_field(chain, work, kind, panel, b, own), s)
                    if chain.apart > 1 and near(margin, kappa, real(chain.numbers, NEAR)) & ~unused:
                        own = _product_of_all_flips(matrix, chain, work, part, kind, panel, b)
                        margin = multiply(_field(chain, work, kind, panel, b, own), s)
                    gate = where_at_most(margin, kappa, s)
                store(work.g, place_of(work.lanes, p, b), gate)
            set_patterns(work.quads, states, work.patterns, p, work.lanes * p)


@compiled_part
def _write(
    pairs: Any, start: int, batch: int, chain: Any, work: Any, part: Any, states: int
) -> None:
    """Write the states of this thread's panels, (layers, patterns, n)."""
    n = chain.n
    for layer in range(chain.layers):
        for b in range(batch):
            row = n * (layer * pairs.patterns + whole(pairs.order, start + b))
            for panel in range(part.first, part.last):
                up = word(states, work.lanes * (layer * chain.panels + panel) + b)
                for k in range(min(ROWS, n - ROWS * panel)):
                    s = _ONE if up >> k & 1 else -_ONE
                    set_real(pairs.states, row + ROWS * panel + k, s)
