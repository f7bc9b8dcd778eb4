r"""Sparse rows times many states on the CPU: :math:`h_{ib} = J_D s_{ib} + \sum_e v_e s_{c(e)\,b}`.

The states b are the lanes of a vector register. A block of them is copied with the lanes last, and
stays in the cache while all rows pass; the sum of a row stays in registers. Numba alone would
write the sum to memory after every entry, which is four times slower, so the loop over a row is
written in LLVM's own vectors; these are split to what the machine has.

States of +1 and -1, which is what the dynamics has, are copied as bits, 32 of them in a word for
each neuron: a network of 5000 neurons then fits the first-level cache, where its floats would fill
the second. An entry adds v or -v to each lane, which is the product with +-1 bit for bit. A block
with any other state is copied as floats; nobody has to say which.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils as _cgutils
from numba.extending import intrinsic

from rmsim.compiled import compiled

cgutils: Any = _cgutils  # carries no types

#: Width of one vector.
_WIDTH = 8
#: Lanes of the kernels: states that go together, at most, and fewer for a small rest.
WIDE, _NARROW, _LEAST = 4 * _WIDTH, 2 * _WIDTH, _WIDTH
#: Rows done before their sums are copied from lane to state order: a few cache lines of each state.
_ROWS = 64
#: Side of the squares by which they are turned, in registers.
_SIDE = 8
#: Neurons copied together from state to lane order.
_CHUNK = 1024
#: Neurons beyond which 32 lanes of floats no longer fit a second-level cache of 1 MB or so.
_WIDEST = 12_000

_WORD, _HALF = ir.IntType(64), ir.IntType(32)


def _splat(builder: Any, number: Any, width: int) -> Any:
    """Return a vector whose lanes are all `number`."""
    unknown = ir.Constant(ir.VectorType(number.type, width), ir.Undefined)
    single = builder.insert_element(unknown, number, ir.Constant(_HALF, 0))
    everywhere = ir.Constant(ir.VectorType(_HALF, width), [0] * width)
    return builder.shuffle_vector(single, unknown, everywhere)


def _vector_at(builder: Any, array: Any, place: Any, vector: Any) -> Any:
    """Return a pointer to the `vector` that begins at the entry `place` of `array`."""
    return builder.bitcast(builder.gep(array, [place]), vector.as_pointer())


def _add_floats(
    builder: Any, sums: list[Any], value: Any, lanes: Any, column: Any, vector: Any, aligned: int
) -> None:
    """Add value * s to the sums; the lanes s of one neuron follow one another."""
    origin = builder.mul(column, ir.Constant(_WORD, _WIDTH * len(sums)))
    splat = _splat(builder, value, _WIDTH)
    for index, total in enumerate(sums):
        place = builder.add(origin, ir.Constant(_WORD, _WIDTH * index))
        state = builder.load(_vector_at(builder, lanes, place, vector), align=aligned)
        product = builder.fmul(splat, state, flags=("contract",))
        builder.store(builder.fadd(product, builder.load(total), ("contract",)), total)


def _add_signs(
    builder: Any, sums: list[Any], value: Any, words: Any, column: Any, bits: int
) -> None:
    """Add -value to the lanes whose bit is set in the word of the neuron, value to the others."""
    whole = ir.IntType(bits)
    word = builder.load(builder.gep(words, [column]))
    word = _splat(builder, word if bits == 32 else builder.zext(word, whole), _WIDTH)
    plus, minus = (_splat(builder, x, _WIDTH) for x in (value, builder.fneg(value)))
    for index, total in enumerate(sums):
        # The bit of each lane moves to where the sign of an integer is.
        shifts = [bits - 1 - _WIDTH * index - lane for lane in range(_WIDTH)]
        moved = builder.shl(word, ir.Constant(word.type, shifts))
        down = builder.icmp_signed("<", moved, ir.Constant(word.type, [0] * _WIDTH))
        term = builder.select(down, minus, plus)
        builder.store(builder.fadd(builder.load(total), term), total)


def _row_product(width: int) -> Any:
    """Return the compiled loop over the entries of one row, for `width` lanes."""

    @intrinsic
    def row_product(
        typing_context: Any,
        values: Any,
        columns: Any,
        lanes: Any,
        total: Any,
        entries: Any,
        jd: Any,
        row: Any,
    ) -> Any:
        """Sum the `entries` (first, last) and J_D s of neuron `row`; integer lanes are signs."""
        signature = types.void(values, columns, lanes, total, entries, jd, row)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            value_at, column_at, lane_at, total_at = (
                context.make_array(kind)(context, builder, argument).data
                for kind, argument in zip(signature.args[:4], arguments[:4], strict=True)
            )
            bits = signature.args[3].dtype.bitwidth
            number = context.get_value_type(signature.args[3].dtype)
            vector = ir.VectorType(number, _WIDTH)
            sums = [cgutils.alloca_once(builder, vector) for _ in range(width // _WIDTH)]
            for one in sums:
                builder.store(ir.Constant(vector, [0.0] * _WIDTH), one)

            def add(value: Any, column: Any) -> None:
                if isinstance(signature.args[2].dtype, types.Integer):
                    _add_signs(builder, sums, value, lane_at, column, bits)
                else:
                    _add_floats(builder, sums, value, lane_at, column, vector, bits // 8)

            first, last = cgutils.unpack_tuple(builder, arguments[4])
            step = ir.Constant(_WORD, 1)
            with cgutils.for_range_slice(builder, first, last, step, intp=_WORD) as (entry, _):
                value = builder.load(builder.gep(value_at, [entry]))
                if signature.args[0].dtype.bitwidth < bits:
                    value = builder.fpext(value, number)
                add(value, builder.zext(builder.load(builder.gep(column_at, [entry])), _WORD))
            add(arguments[5], arguments[6])
            for index, one in enumerate(sums):
                place = ir.Constant(_WORD, _WIDTH * index)
                pointer = _vector_at(builder, total_at, place, vector)
                builder.store(builder.load(one), pointer, align=bits // 8)
            return context.get_dummy_value()

        return signature, generate

    return row_product


_wide_row, _narrow_row, _least_row = (_row_product(x) for x in (WIDE, _NARROW, _LEAST))


@intrinsic
def _turn(
    typing_context: Any, source: Any, first: Any, width: Any, target: Any, start: Any, height: Any
) -> Any:
    """Transpose 8 x 8 numbers from `source`, rows of `width`, to `target`, rows of `height`.

    Swap the two off-diagonal quarters, then those of each quarter, and so on to single numbers.
    """
    signature = types.void(source, first, width, target, start, height)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = ir.VectorType(context.get_value_type(signature.args[0].dtype), _SIDE)
        aligned = signature.args[0].dtype.bitwidth // 8

        def pointers(index: int) -> list[Any]:
            """Return where the eight lines of argument `index` begin."""
            kind, (array, place, stride) = signature.args[index], arguments[index : index + 3]
            data = context.make_array(kind)(context, builder, array).data
            steps = (builder.mul(stride, ir.Constant(_WORD, line)) for line in range(_SIDE))
            places = (builder.add(place, step) for step in steps)
            return [_vector_at(builder, data, place, vector) for place in places]

        lines = [builder.load(pointer, align=aligned) for pointer in pointers(0)]
        for far in (4, 2, 1):
            upper = [x + _SIDE - far if x & far else x for x in range(_SIDE)]
            lower = [x + _SIDE if x & far else x + far for x in range(_SIDE)]
            masks = [ir.Constant(ir.VectorType(_HALF, _SIDE), x) for x in (upper, lower)]
            for line in (x for x in range(_SIDE) if not x & far):
                pair = lines[line], lines[line + far]
                lines[line], lines[line + far] = (
                    builder.shuffle_vector(*pair, mask) for mask in masks
                )
        for numbers, pointer in zip(lines, pointers(3), strict=True):
            builder.store(numbers, pointer, align=aligned)
        return context.get_dummy_value()

    return signature, generate


_turn_square: Any = _turn  # numba itself passes the first argument


@compiled
def _pack_floats(s: Any, first: int, last: int, lanes: Any) -> None:
    """Copy states `first` to `last` of `s`, (starts, m), into `lanes`, (m, width)."""
    size = s.shape[1]
    for start in range(0, size, _ROWS):
        for state in range(first, last):
            for neuron in range(start, min(size, start + _ROWS)):
                lanes[neuron, state - first] = s[state, neuron]


@compiled
def _pack_signs(s: Any, first: int, last: int, words: Any) -> bool:
    """Set bit b of ``words[i]`` where state ``first + b`` of neuron i is -1.

    Returns
    -------
    bool
        Whether all states are +1 or -1; if not, `words` is of no use.
    """
    size, zero, one = s.shape[1], s.dtype.type(0), s.dtype.type(1)
    for start in range(0, size, _CHUNK):
        end = min(size, start + _CHUNK)
        part = words[start:end]
        part[:] = 0
        other = False
        for state in range(first, last):
            bit, line = np.uint32(1 << (state - first)), s[state, start:end]
            for neuron in range(end - start):
                part[neuron] |= bit if line[neuron] < zero else np.uint32(0)
                other |= abs(line[neuron]) != one
        if other:
            return False
    return True


@compiled
def _multiply_rows(
    bounds: Any, columns: Any, values: Any, jd: Any, lanes: Any, width: int, out: Any, rows: Any
) -> None:
    """Write the product of `rows` with `lanes` into `out`, (states of the lanes, rows)."""
    totals = np.empty((_ROWS, width), out.dtype)
    turned = np.empty((width, _ROWS), out.dtype)
    for start in range(rows[0], rows[1], _ROWS):
        end = min(rows[1], start + _ROWS)
        for row in range(start, end):
            total, entries = totals[row - start], (bounds[row], bounds[row + 1])
            if width == WIDE:
                _wide_row(values, columns, lanes, total, entries, jd, row)
            elif width == _NARROW:
                _narrow_row(values, columns, lanes, total, entries, jd, row)
            else:
                _least_row(values, columns, lanes, total, entries, jd, row)
        for row in range(0, end - start, _SIDE):
            for lane in range(0, width, _SIDE):
                _turn_square(totals, row * width + lane, width, turned, lane * _ROWS + row, _ROWS)
        for state in range(out.shape[0]):
            out[state, start - rows[2] : end - rows[2]] = turned[state, : end - start]


@compiled
def product_tasks(
    bounds: Any,
    columns: Any,
    values: Any,
    jd: Any,
    places: Any,
    s: Any,
    out: Any,
    part: Any,
    rows: Any,
) -> None:
    """Do a part of the rows of all tasks: task = (network, group, block of 32 states).

    Parameters
    ----------
    bounds : (rows of all patterns + 1), int64
        Where each row begins in `columns`.
    columns, values : arrays
        The entries; ``values`` may be longer, if networks share one pattern.
    jd : number of the type of `s`
        Self-coupling.
    places : (networks, 2), int64
        First row of each network in `bounds`, and shift from its entries to its values.
    s : (networks, starts, groups, m)
        States.
    out : (networks, starts, groups done, rows done)
        Products.
    part : (2)
        Range of rows to do, counted through all tasks.
    rows : (3)
        Range of rows within a group that `out` has, first group.
    """
    starts, groups, size, height = s.shape[1], out.shape[2], s.shape[3], rows[1] - rows[0]
    blocks = (starts + WIDE - 1) // WIDE
    words = np.empty(size, np.uint32)
    most = WIDE if starts > _NARROW and size <= _WIDEST else _NARROW
    lanes = np.zeros((0, most), s.dtype)
    for task in range(part[0] // height, (part[1] + height - 1) // height):
        network, rest = task // (groups * blocks), task % (groups * blocks)
        group, first = rest // blocks, rest % blocks * WIDE
        last = min(starts, first + WIDE)
        origin = places[network, 0] + (rows[2] + group) * size
        inside, own = bounds[origin : origin + size + 1], values[places[network, 1] :]
        here, there = s[network, :, rows[2] + group], out[network, :, group]
        low = rows[0] + max(part[0] - task * height, 0)
        high = rows[0] + min(part[1] - task * height, height)
        span = (low, high, rows[0])
        if _pack_signs(here, first, last, words):
            count = last - first
            width = WIDE if count > _NARROW else _NARROW if count > _LEAST else _LEAST
            _multiply_rows(inside, columns, own, jd, words, width, there[first:last], span)
            continue
        if len(lanes) == 0:
            lanes = np.zeros((size, most), s.dtype)
        for start in range(first, last, most):
            end = min(last, start + most)
            _pack_floats(here, start, end, lanes)
            _multiply_rows(inside, columns, own, jd, lanes, most, there[start:end], span)
