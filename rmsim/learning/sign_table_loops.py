r"""The compiled loops of :mod:`rmsim.learning.sign_tables`.

Arrays are given by their addresses (:mod:`rmsim.compiled_vectors`). Neurons are counted in panels
of 32, layer after layer, and what a batch has for each neuron is stored by panel and sample: number
i of sample b in panel p is element ``32 (lanes p + b) + i``, where `lanes` is the number of
samples, filled up to a multiple of four. A panel of 16 samples is 2 kB.

**One pass over J for each batch.** The change of J by one batch waits until the next batch has its
first states; then each piece of 32 columns of a panel learns the first and is multiplied with the
second while it is in the cache. So does W_in.

**Sweeps** go through all samples of the batch together: signs of all panels, then the list of
flips of each sample, then the columns of these flips for one panel after the other, which stays in
the cache for all samples.

**Masked sweeps** (p < 1) leave neurons that were not yet updated at 0. The first product is that of
all signs, and the columns of these neurons are taken off again; which neurons have a sign is a word
for each panel and sample. Where some have none at the end, J and W_out learn by ordinary products.

Threads have panels of their own; where a list is made, samples of their own. A sum is that of one
thread, so that results do not depend on their number.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rmsim.compiled_loops import compiled_part
from rmsim.compiled_vectors import (
    GROUP,
    ROWS,
    add,
    add_bytes,
    add_times,
    arrive,
    arrived,
    byte,
    chosen,
    give_way,
    load,
    load_bytes,
    lowest_bit,
    multiply,
    prefetch,
    real,
    reals_of,
    set_byte,
    set_real,
    set_whole,
    set_word,
    signs_of,
    spins_of,
    store,
    store_firsts,
    tabulate,
    tabulate_samples,
    tabulate_small,
    times,
    ups,
    where_at_most,
    whole,
    word,
    zeros,
)

#: Groups of a panel: these columns learn and are multiplied while they are in the first cache.
GROUPS = ROWS // GROUP

#: Bytes that a product takes of a panel and a sample: the codes of its groups, and the sign of the
#: first of each in float32. They are next to each other and small, since each panel of a matrix
#: goes through those of all columns.
CODES = 5 * GROUPS

#: Numbers of a cache line.
LINE = 16

#: Columns beyond which a matrix comes from far enough that asking for the next piece pays: nearer
#: ones come in time by themselves, and asking takes 3 to 4 % of a batch.
FAR = 1024

#: Samples per batch from which tables are worth it.
LEAST = 5

#: Places of the numbers of the protocol: factors of s, of the layers before and after in the field
#: of a sweep; these and those of input and label in the field that the rule tests; kappa and decay
#: of J, W_in, W_back, W_out; gamma of the smooth rule.
CHAIN, TEST, KAPPA, DECAY, GAMMA, NUMBERS = 0, 3, 8, 12, 16, 17

_ONE, _HALF = np.float32(1), np.float32(0.5)

#: All bits of a word.
_ALL = 0xFFFFFFFF


@compiled_part
def flag(condition: Any) -> Any:
    """Return 1 or 0, as a number that may change."""
    return np.int64(condition)


@compiled_part
def meet(meetings: int, threads: int, meeting: int) -> int:
    """Wait until all threads have come here; return the number of the next meeting."""
    if threads > 1:
        arrive(meetings)
        waited = 0
        while arrived(meetings) < threads * (meeting + 1):
            waited += 1
            if waited > 2000:  # the other may wait for this processor
                give_way()
    return meeting + 1


@compiled_part
def learn_and_multiply_j(
    network: Any, protocol: Any, work: Any, part: Any, batch: int, learning: int, multiplied: int
) -> None:
    """Let this thread's panels of J learn the batch before, and set their products J s."""
    decay, n = real(protocol.numbers, DECAY), protocol.n
    for panel in range(part.first, part.last):
        for layer in range(protocol.layers):
            first = layer * protocol.panels
            p = first + panel
            clear(work.lanes, work.product, p, batch)
            learn_and_multiply(
                Pass(p, first, learning, multiplied, panel, n, batch, protocol.perceptron),
                network.j,
                work,
                part,
                Post(work.g, work.patterns),
                decay,
                Pre(work.codes, work.product),
            )


@compiled_part
def place_of(lanes: int, panel: int, b: int) -> Any:
    """Return where the numbers of sample b in a panel begin."""
    return ROWS * (lanes * panel + b)


@compiled_part
def clear(lanes: int, out: int, panel: int, batch: int) -> None:
    """Set what a panel has of the samples to 0."""
    for b in range((batch + 3) // 4 * 4):  # samples go by fours
        store(out, place_of(lanes, panel, b), zeros())


# Inputs and first states.


@compiled_part
def take(batches: Any, start: int, work: Any, part: Any) -> Any:
    """Copy the inputs of the batch, this thread its samples; return 1 if all are +-1, or 0."""
    width, batch = batches.inputs, batches.batch
    x, code = batches.x + 4 * start * width, batches.code + 4 * start * batches.classes
    other = 0
    for k in range(batch * width):
        other += abs(real(x, k)) != _ONE
    panels = (width + ROWS - 1) // ROWS
    for b in range(part.first_sample, part.last_sample):
        for c in range(batches.classes):
            set_real(work.labels, b * batches.classes + c, real(code, b * batches.classes + c))
        for panel in range(panels):
            place = place_of(work.lanes, panel, b)
            end = min(ROWS, width - ROWS * panel)
            for k in range(end):
                set_real(work.inputs, place + k, real(x, b * width + ROWS * panel + k))
            if other == 0:
                set_codes(work.lanes, work.input_codes, panel, b, ups(load(work.inputs, place)))
    return flag(other == 0)


@compiled_part
def set_codes(lanes: int, codes: int, panel: int, b: int, up: int) -> None:
    """Write the codes of 32 signs, which are given by their bits, and the first of each group."""
    first = up & 0x11111111
    up ^= first * 15
    place = codes + CODES * (lanes * panel + b)
    for group in range(GROUPS):
        set_byte(place, group, up >> (GROUP * group + 1) & 7)
    store_firsts(place + GROUPS, first)


@compiled_part
def enter(
    network: Any,
    protocol: Any,
    work: Any,
    part: Any,
    batch: int,
    by_tables: int,
    waiting: int,
    keys: int,
) -> None:
    """Set the fields of input and label and the first states; let W_in learn the last batch."""
    with_label = protocol.warmup == 0 and protocol.clamped > 0
    chain = protocol.numbers
    for panel in range(part.first, part.last):
        unused = unused_rows(panel, protocol.n)
        for layer in range(protocol.layers):
            p = layer * protocol.panels + panel
            clear(work.lanes, work.field, p, batch)
            clear(work.lanes, work.label, p, batch)
            if waiting | by_tables:
                learn_inputs(network, protocol, work, part, p, batch, waiting, by_tables)
            if by_tables == 0:
                none = flag(0)
                multiply_reals(network.feed, p, work, work.inputs, none, batch, work.field)
            if protocol.clamped > 0 or real(chain, TEST + 4) != 0:
                _multiply_labels(network.back, p, work, batch)
            for b in range(batch):
                place = place_of(work.lanes, p, b)
                h = load(work.field, place)
                if with_label:
                    h = add(h, load(work.label, place))
                if protocol.sequential and layer > 0:
                    up = word(work.words, work.lanes * (p - protocol.panels) + b)
                    before = signs_of(up)
                    if protocol.limit:
                        there = _updated(protocol, keys, flag(0), layer - 1, panel, b)
                        before = spins_of(up, there)
                    h = add_times(h, before, real(chain, CHAIN + 1))
                up = ups(h) | unused
                set_word(work.words, work.lanes * p + b, up)
                store(work.s, place, signs_of(up))
                set_codes(work.lanes, work.codes, p, b, up)


@compiled_part
def unused_rows(panel: int, n: int) -> int:
    """Return a word with a bit for each row of the panel that is not a neuron."""
    return -1 << min(ROWS, n - panel * ROWS) & 0xFFFFFFFF


@compiled_part
def learn_inputs(
    network: Any,
    protocol: Any,
    work: Any,
    part: Any,
    p: int,
    batch: int,
    learning: int,
    multiplied: int,
) -> None:
    """Let a panel of W_in learn the batch before, and add its product with the inputs."""
    size = 4 * ROWS * work.lanes * protocol.layers * protocol.panels
    none = flag(0)
    learn_and_multiply(
        Pass(p, none, learning, multiplied, none - 1, none, batch, protocol.perceptron),
        network.feed,
        work,
        part,
        Post(work.g + size, work.input_patterns),
        real(protocol.numbers, DECAY + 1),
        Pre(work.input_codes, work.field),
    )


# Tables.


class Pass(NamedTuple):
    """A pass over panel `p` of a matrix; its columns begin at panel `first`.

    Whether it learns and is multiplied; the panel on its diagonal, whose entries stay 0, -1 for
    none, and the rows n of the matrix; whether gates are -1, 0 or 1, so that their sums are small
    integers, which take a quarter of the memory.
    """

    p: int
    first: int
    learning: int
    multiplied: int
    diagonal: int
    n: int
    batch: int
    small: int


class Post(NamedTuple):
    """What is learnt: gates of the rows, patterns of the columns."""

    g: int
    patterns: int


class Pre(NamedTuple):
    """What is multiplied: codes of the columns; and where products are added."""

    codes: int
    out: int


@compiled_part
def learn_and_multiply(
    task: Any, weights: Any, work: Any, part: Any, learnt: Any, decay: Any, signs: Any
) -> None:
    """Let a panel learn, then add its product with signs, 32 columns at a time."""
    p, batch, out = task.p, task.batch, signs.out
    matrix = weights.panels + 4 * ROWS * weights.columns * p
    table = work.tables + work.size * part.thread
    quads, lanes = work.quads, work.lanes
    samples = table + 4 * ROWS * 8 * GROUPS
    if task.learning:
        for quad in range(quads):
            place = place_of(work.lanes, p, GROUP * quad)
            if task.small:
                tabulate_small(learnt.g, place, samples, 16 * ROWS * quad)
            else:
                tabulate_samples(learnt.g, place, samples, 16 * ROWS * quad)
    for start in range(0, weights.columns, ROWS):
        panel = task.first + start // ROWS
        if task.learning:
            stop = min(weights.learning, start + ROWS)
            for quad in range(0, quads, 4):
                t0 = samples + 4 * ROWS * 16 * quad
                t1, t2, t3 = t0 + 64 * ROWS, t0 + 128 * ROWS, t0 + 192 * ROWS
                p0 = learnt.patterns + ROWS * (quads * panel + quad)
                p1, p2, p3 = p0 + ROWS, p0 + 2 * ROWS, p0 + 3 * ROWS
                shrink = decay if quad + 4 >= quads else _ONE
                if task.small:
                    t0 = samples + 16 * ROWS * quad
                    t1, t2, t3 = t0 + 16 * ROWS, t0 + 32 * ROWS, t0 + 48 * ROWS
                    for j in range(start, stop):
                        i = j - start
                        one = load_bytes(t0, ROWS * byte(p0, i))
                        two = load_bytes(t1, ROWS * byte(p1, i))
                        three = load_bytes(t2, ROWS * byte(p2, i))
                        four = load_bytes(t3, ROWS * byte(p3, i))
                        total = add_bytes(add_bytes(one, two), add_bytes(three, four))
                        now = load(matrix, ROWS * j)
                        now = add_times(now, reals_of(total), real(weights.rates, j))
                        store(matrix, ROWS * j, times(now, shrink))
                    continue
                for j in range(start, stop):
                    i = j - start
                    low = add(load(t0, ROWS * byte(p0, i)), load(t1, ROWS * byte(p1, i)))
                    high = add(load(t2, ROWS * byte(p2, i)), load(t3, ROWS * byte(p3, i)))
                    now = load(matrix, ROWS * j)
                    now = add_times(now, add(low, high), real(weights.rates, j))
                    store(matrix, ROWS * j, times(now, shrink))
            if start == ROWS * task.diagonal:
                for i in range(min(ROWS, task.n - start)):
                    set_real(matrix, ROWS * (start + i) + i, np.float32(0))  # J_D is kept apart
            if weights.present != 0:
                present = weights.present + 4 * ROWS * weights.columns * p
                for j in range(start, stop):
                    kept = multiply(load(matrix, ROWS * j), load(present, ROWS * j))
                    store(matrix, ROWS * j, kept)
        if task.multiplied:
            groups = min(GROUPS, (weights.columns - start) // GROUP)
            for group in range(groups):
                tabulate(matrix, ROWS * (start + GROUP * group), table, 8 * ROWS * group)
                if weights.columns > FAR:
                    for k in range(0, GROUP * ROWS, LINE):  # while this piece is multiplied
                        prefetch(matrix, ROWS * (start + ROWS + GROUP * group) + k)
            for b in range(0, batch, 2):  # two at a time: their sums fit into 16 registers
                place = place_of(work.lanes, p, b)
                one, two = load(out, place), load(out, place + ROWS)
                code = signs.codes + CODES * (lanes * panel + b)
                after = code + CODES
                for k in range(groups):
                    entry = table + 4 * ROWS * 8 * k
                    x, y = ROWS * byte(code, k), ROWS * byte(after, k)
                    one = add_times(one, load(entry, x), real(code + GROUPS, k))
                    two = add_times(two, load(entry, y), real(after + GROUPS, k))
                store(out, place, one)
                store(out, place + ROWS, two)


@compiled_part
def set_patterns(quads: int, words: int, patterns: int, panel: int, place: int) -> None:
    """Set the patterns of the 32 neurons of a panel from their words."""
    for quad in range(quads):
        here = place + GROUP * quad
        a, b = word(words, here), word(words, here + 1)
        c, d = word(words, here + 2), word(words, here + 3)
        for i in range(ROWS):
            bits = (a >> i & 1) | (b >> i & 1) << 1 | (c >> i & 1) << 2 | (d >> i & 1) << 3
            set_byte(patterns, ROWS * (quads * panel + quad) + i, bits)


@compiled_part
def set_patterns_of_inputs(batches: Any, work: Any, part: Any) -> None:
    """Set the patterns of the inputs, this thread its panels of them."""
    panels = (batches.inputs + ROWS - 1) // ROWS
    for panel in range(part.thread, panels, part.threads):
        for quad in range(work.quads):
            for i in range(ROWS):
                bits = 0
                for k in range(GROUP):
                    x = real(work.inputs, place_of(work.lanes, panel, GROUP * quad + k) + i)
                    bits |= (1 if x > 0 else 0) << k
                set_byte(work.input_patterns, ROWS * (work.quads * panel + quad) + i, bits)


# Products with any numbers.


@compiled_part
def multiply_reals(
    weights: Any, p: int, work: Any, x: int, first: int, batch: int, out: int
) -> None:
    """Add the product of a panel with the numbers x, from panel `first` of them on."""
    matrix = weights.panels + 4 * ROWS * weights.columns * p
    for b in range(batch):
        place = place_of(work.lanes, p, b)
        total = load(out, place)
        for k in range(weights.learning):
            number = real(x, place_of(work.lanes, first + k // ROWS, b) + k % ROWS)
            total = add_times(total, load(matrix, ROWS * k), number)
        store(out, place, total)


@compiled_part
def _multiply_labels(weights: Any, p: int, work: Any, batch: int) -> None:
    """Add the product of a panel of W_back with the label codes."""
    matrix, classes = weights.panels + 4 * ROWS * weights.columns * p, weights.learning
    for b in range(0, batch, 2):
        place = place_of(work.lanes, p, b)
        one, two = load(work.label, place), load(work.label, place + ROWS)
        for k in range(classes):
            column = load(matrix, ROWS * k)
            one = add_times(one, column, real(work.labels, b * classes + k))
            two = add_times(two, column, real(work.labels, (b + 1) * classes + k))
        store(work.label, place, one)
        store(work.label, place + ROWS, two)


@compiled_part
def learn_reals(
    network: Any, protocol: Any, work: Any, part: Any, batch: int, learn_j: int, learn_in: int
) -> None:
    """Let this thread's panels of J, W_in and W_back learn at once, for any numbers."""
    numbers = protocol.numbers
    size = 4 * ROWS * work.lanes * protocol.layers * protocol.panels
    learn_back = whole(protocol.learns, 2)
    if learn_j | learn_in | learn_back == 0:
        return
    for panel in range(part.first, part.last):
        for layer in range(protocol.layers):
            p, first = layer * protocol.panels + panel, layer * protocol.panels
            if learn_j:
                weights = network.j
                matrix = weights.panels + 4 * ROWS * weights.columns * p
                pre = work.g if protocol.symmetry == 1 else work.s
                for j in range(weights.learning):
                    here = place_of(work.lanes, first + j // ROWS, flag(0)) + j % ROWS
                    total = _sum_over_samples(work.lanes, work.g, p, pre, here, batch)
                    if protocol.symmetry == 2:  # symmetric to the last bit
                        other = _sum_over_samples(work.lanes, work.s, p, work.g, here, batch)
                        total = times(add(total, other), _HALF)
                    now = add_times(load(matrix, ROWS * j), total, real(weights.rates, j))
                    now = times(now, real(numbers, DECAY))
                    if weights.present != 0:
                        present = weights.present + 4 * ROWS * weights.columns * p
                        now = multiply(now, load(present, ROWS * j))
                    store(matrix, ROWS * j, now)
                for i in range(min(ROWS, protocol.n - panel * ROWS)):
                    set_real(matrix, ROWS * (panel * ROWS + i) + i, np.float32(0))
            for kind in range(1, 3):
                if (learn_in if kind == 1 else learn_back) == 0:
                    continue
                weights, x, g = network.feed, work.inputs, work.g + kind * size
                if kind == 2:
                    weights, x = network.back, work.labels
                matrix = weights.panels + 4 * ROWS * weights.columns * p
                for j in range(weights.learning):
                    total = zeros()
                    for b in range(batch):
                        here = b * weights.learning + j
                        if kind == 1:
                            here = place_of(work.lanes, j // ROWS, b) + j % ROWS
                        total = add_times(total, load(g, place_of(work.lanes, p, b)), real(x, here))
                    now = add_times(load(matrix, ROWS * j), total, real(weights.rates, j))
                    now = times(now, real(numbers, DECAY + kind))
                    if weights.present != 0:
                        present = weights.present + 4 * ROWS * weights.columns * p
                        now = multiply(now, load(present, ROWS * j))
                    store(matrix, ROWS * j, now)


@compiled_part
def _sum_over_samples(lanes: int, post: int, p: int, pre: int, here: int, batch: int) -> Any:
    """Return the sum over samples of the panel `post` times the number of one neuron."""
    total = zeros()
    for b in range(batch):
        total = add_times(total, load(post, place_of(lanes, p, b)), real(pre, here + ROWS * b))
    return total


# Sweeps.


@compiled_part
def _updated(protocol: Any, keys: int, sweep: int, layer: int, panel: int, b: int) -> Any:
    """Return which neurons of a panel of a sample a masked sweep updates."""
    first = layer * protocol.n + ROWS * panel
    return chosen(whole(keys, 2 * b), whole(keys, 2 * b + 1), sweep, first, protocol.limit)


@compiled_part
def leave_out(
    network: Any, protocol: Any, work: Any, part: Any, batch: int, meeting: int, keys: int
) -> int:
    """Set neurons that the first sweep leaves out to 0, after the product of all."""
    layers, panels = protocol.layers, protocol.panels
    meeting = meet(work.meetings, part.threads, meeting)
    for b in range(part.first_sample, part.last_sample):
        for layer in range(layers):
            count, origin = flag(0), ROWS * panels * (b * layers + layer)
            for panel in range(panels):
                here = work.lanes * (layer * panels + panel) + b
                there = _updated(protocol, keys, flag(0), layer, panel, b)
                there |= unused_rows(panel, protocol.n)
                set_word(work.there, here, there)
                left = there ^ _ALL
                while left != 0:
                    i = lowest_bit(left)
                    left &= left - 1
                    set_whole(work.flips, origin + count, ROWS * panel + i)
                    up = word(work.words, here) >> i & 1
                    set_real(work.changes, origin + count, -_ONE if up else _ONE)
                    count += 1
            set_whole(work.counts, b * layers + layer, count)
    meeting = meet(work.meetings, part.threads, meeting)
    for layer in range(layers):
        for panel in range(part.first, part.last):
            for b in range(batch):
                _add_flips(network.j, protocol, work, layer, panel, b)
    return meeting


@compiled_part
def all_signs(protocol: Any, work: Any, batch: int) -> Any:
    """Return 1 if no neuron of the batch is 0, or 0."""
    there = flag(_ALL)
    if protocol.limit:
        for p in range(protocol.layers * protocol.panels):
            for b in range(batch):
                there &= word(work.there, work.lanes * p + b)
    return flag(there == _ALL)


@compiled_part
def sweep_on(
    network: Any, protocol: Any, work: Any, part: Any, batch: int, meeting: int, keys: int
) -> int:
    """Go through the phases after the first sweep; return the number of the next meeting."""
    layers, groups = protocol.layers, protocol.layers if protocol.sequential else 1
    for sweep in range(1, protocol.sweeps):
        with_label = protocol.warmup <= sweep < protocol.warmup + protocol.clamped
        before = protocol.warmup <= sweep - 1 < protocol.warmup + protocol.clamped
        now, last = work.moved + 8 * work.lanes * (sweep % 2), work.moved
        last += 8 * work.lanes * ((sweep + 1) % 2)
        changed = sweep == 1 or with_label != before
        moving = changed
        for b in range(batch):
            moving |= whole(last, b) != 0
        if not moving:  # fixed points
            for b in range(part.first_sample, part.last_sample):
                set_whole(now, b, 0)
            meeting = meet(work.meetings, part.threads, meeting)
            continue
        for group in range(groups):
            start, stop = (group, group + 1) if groups > 1 else (0, layers)
            for layer in range(start, stop):
                for panel in range(part.first, part.last):
                    _want(protocol, work, layer, panel, batch, with_label, changed, last)
            meeting = meet(work.meetings, part.threads, meeting)
            for b in range(part.first_sample, part.last_sample):
                total = flag(0) if group == 0 else whole(now, b)
                skipped = not changed and whole(last, b) == 0
                for layer in range(start, stop):
                    if skipped:
                        set_whole(work.counts, b * layers + layer, flag(0))
                    else:
                        total += _list_flips(protocol, work, layer, b, keys, sweep)
                set_whole(now, b, total)
            meeting = meet(work.meetings, part.threads, meeting)
            for layer in range(start, stop):
                for panel in range(part.first, part.last):
                    for b in range(batch):
                        if whole(work.counts, b * layers + layer) != 0:
                            _add_flips(network.j, protocol, work, layer, panel, b)
    return meeting


@compiled_part
def spins(protocol: Any, work: Any, p: int, b: int) -> Any:
    """Return the states of a panel of a sample.

    They are read off their bits: a thread that lists the flips of a sample changes little memory
    of panels that are another's.
    """
    here = work.lanes * p + b
    if protocol.limit:
        return spins_of(word(work.words, here), word(work.there, here))
    return signs_of(word(work.words, here))


@compiled_part
def _chain_field(protocol: Any, work: Any, layer: int, panel: int, b: int, numbers: int) -> Any:
    """Return J s + J_D s and the fields of the layers on both sides, of a panel of a sample.

    `numbers` is the place of J_D and of the two lambdas among the numbers of the protocol.
    """
    panels = protocol.panels
    p, chain = layer * panels + panel, protocol.numbers
    place = place_of(work.lanes, p, b)
    h = add_times(load(work.product, place), spins(protocol, work, p, b), real(chain, numbers))
    if layer > 0:
        left = spins(protocol, work, p - panels, b)
        h = add_times(h, left, real(chain, numbers + 1))
    if layer < protocol.layers - 1:
        right = spins(protocol, work, p + panels, b)
        h = add_times(h, right, real(chain, numbers + 2))
    return h


@compiled_part
def _want(
    protocol: Any,
    work: Any,
    layer: int,
    panel: int,
    batch: int,
    with_label: bool,
    changed: bool,
    last: int,
) -> None:
    """Set the signs of the fields of a panel, but of samples that are fixed points."""
    p = layer * protocol.panels + panel
    unused = unused_rows(panel, protocol.n)
    for b in range(batch):
        if not changed and whole(last, b) == 0:
            continue
        place = place_of(work.lanes, p, b)
        h = _chain_field(protocol, work, layer, panel, b, CHAIN)
        external = load(work.field, place)
        if with_label:
            external = add(external, load(work.label, place))
        set_word(work.wanted, work.lanes * p + b, ups(add(h, external)) | unused)


@compiled_part
def _list_flips(protocol: Any, work: Any, layer: int, b: int, keys: int, sweep: int) -> Any:
    """Let the neurons of a layer that disagree with their field flip, if the mask has them.

    Returns in how many panels neurons disagree, mask or no mask.
    """
    count, against, panels = flag(0), flag(0), protocol.panels
    origin = ROWS * panels * (b * protocol.layers + layer)
    for panel in range(panels):
        here = work.lanes * (layer * panels + panel) + b
        wanted, before = word(work.wanted, here), word(work.words, here)
        change, there = wanted ^ before, flag(_ALL)
        if protocol.limit:
            there = word(work.there, here)
            change |= there ^ _ALL
        if change != 0:
            against += 1
            after = there
            if protocol.limit:
                change &= _updated(protocol, keys, sweep, layer, panel, b)
                wanted = before ^ (wanted ^ before) & change
                after = there | change
                set_word(work.there, here, after)
            set_word(work.words, here, wanted)
            while change != 0:
                i = lowest_bit(change)
                change &= change - 1
                set_whole(work.flips, origin + count, ROWS * panel + i)
                now = _ONE if wanted >> i & 1 else -_ONE
                set_real(work.changes, origin + count, now + now if there >> i & 1 else now)
                count += 1
    set_whole(work.counts, b * protocol.layers + layer, count)
    return against


@compiled_part
def _add_flips(weights: Any, protocol: Any, work: Any, layer: int, panel: int, b: int) -> None:
    """Correct the product of a panel by the flips of a sample."""
    p = layer * protocol.panels + panel
    matrix, place = weights.panels + 4 * ROWS * weights.columns * p, place_of(work.lanes, p, b)
    count = whole(work.counts, b * protocol.layers + layer)
    origin = ROWS * protocol.panels * (b * protocol.layers + layer)
    flips, changes = work.flips + 8 * origin, work.changes + 4 * origin
    one, two = load(work.product, place), zeros()
    for k in range(0, count - 1, 2):
        one = add_times(one, load(matrix, ROWS * whole(flips, k)), real(changes, k))
        two = add_times(two, load(matrix, ROWS * whole(flips, k + 1)), real(changes, k + 1))
    if count % 2:
        k = count - 1
        one = add_times(one, load(matrix, ROWS * whole(flips, k)), real(changes, k))
    store(work.product, place, add(one, two))


# Gates and the readout.


@compiled_part
def judge(protocol: Any, work: Any, part: Any, batch: int) -> None:
    """Set the gates g = s w(margin) of this thread's panels, and codes and patterns of s*."""
    size = 4 * ROWS * work.lanes * protocol.layers * protocol.panels
    numbers, panels = protocol.numbers, protocol.panels
    for panel in range(part.first, part.last):
        for layer in range(protocol.layers):
            p = layer * panels + panel
            for b in range(batch):
                place = place_of(work.lanes, p, b)
                s = spins(protocol, work, p, b)
                store(work.s, place, s)
                h = _chain_field(protocol, work, layer, panel, b, TEST)
                h = add_times(h, load(work.field, place), real(numbers, TEST + 3))
                h = add_times(h, load(work.label, place), real(numbers, TEST + 4))
                margin = multiply(h, s)
                for kind in range(3):
                    if whole(protocol.learns, kind) == 0:
                        continue
                    out, kappa = work.g + kind * size, real(numbers, KAPPA + kind)
                    if protocol.perceptron:
                        store(out, place, where_at_most(margin, kappa, s))
                    else:
                        store(out, place, margin)
                        for i in range(ROWS):
                            x = real(numbers, GAMMA) * (real(out, place + i) - kappa)
                            w = (_ONE - np.tanh(x)) * _HALF
                            set_real(out, place + i, real(work.s, place + i) * w)
                    if kind > 0:
                        here = ROWS * (p + (kind - 1) * panels * protocol.layers)
                        seen = load(protocol.seeing, here)
                        store(out, place, multiply(load(out, place), seen))
                set_codes(work.lanes, work.codes, p, b, word(work.words, work.lanes * p + b))
            set_patterns(work.quads, work.words, work.patterns, p, work.lanes * p)


@compiled_part
def learn_readout(
    batches: Any, start: int, network: Any, protocol: Any, work: Any, part: Any, by_tables: int
) -> None:
    """Let W_out learn: outputs y_c o_c <= kappa_out; by tables if all states are signs."""
    batch, weights, no, yes = batches.batch, network.out, flag(0), flag(1)
    kappa, decay = real(protocol.numbers, KAPPA + 3), real(protocol.numbers, DECAY + 3)
    learnt, signs = Post(work.gates, work.patterns), Pre(work.codes, work.outputs)
    for p in range((batches.outputs + ROWS - 1) // ROWS):
        clear(work.lanes, work.outputs, p, batch)
        if by_tables:
            task = Pass(p, no, no, yes, no - 1, no, batch, no)
            learn_and_multiply(task, weights, work, part, learnt, decay, signs)
        else:
            multiply_reals(weights, p, work, work.s, no, batch, work.outputs)
        for b in range(batch):
            place = place_of(work.lanes, p, b)
            for i in range(min(ROWS, batches.outputs - ROWS * p)):
                y = real(batches.signs, (start + b) * batches.outputs + ROWS * p + i)
                weak = y * real(work.outputs, place + i) <= kappa
                set_real(work.gates, place + i, y if weak else np.float32(0))
        if by_tables:
            task = Pass(p, no, yes, no, no - 1, no, batch, no)
            learn_and_multiply(task, weights, work, part, learnt, decay, signs)
        else:
            matrix = weights.panels + 4 * ROWS * weights.columns * p
            for j in range(weights.learning):
                here = place_of(work.lanes, j // ROWS, no) + j % ROWS
                total = _sum_over_samples(work.lanes, work.gates, p, work.s, here, batch)
                now = add_times(load(matrix, ROWS * j), total, real(weights.rates, j))
                store(matrix, ROWS * j, times(now, decay))
