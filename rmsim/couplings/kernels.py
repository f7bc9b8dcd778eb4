r"""Sparse rows times many states on the CPU: :math:`h_{ib} = \sum_e v_e s_{c(e)\,b}` over row i.

The states b are the lanes of a vector register. A block of them is copied with the lanes last, and
stays in the cache while all rows pass; the sum of a row stays in registers. Numba alone would
write the sum to memory after every entry, which is four times slower, so the loop over a row is
written in LLVM's own vectors; these are split to what the machine has.
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
_WIDTH = 16
#: Neurons copied together from state to lane order and back: a few cache lines of each state.
_ROWS = 64

#: Lanes of the two kernels; small batches, and very wide networks, take the narrow one.
NARROW, WIDE = _WIDTH, 2 * _WIDTH


def _row_product(vectors: int) -> Any:
    """Return the compiled loop over the entries of one row, for ``16 * vectors`` lanes."""

    @intrinsic
    def row_product(
        typing_context: Any,
        values: Any,
        columns: Any,
        lanes: Any,
        total: Any,
        first: Any,
        last: Any,
    ) -> Any:
        signature = types.void(values, columns, lanes, total, first, last)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            arrays = [
                context.make_array(kind)(context, builder, argument).data
                for kind, argument in zip(signature.args[:4], arguments[:4], strict=True)
            ]
            value_at, column_at, lane_at, total_at = arrays
            number = context.get_value_type(signature.args[2].dtype)
            aligned = signature.args[2].dtype.bitwidth // 8
            narrow = signature.args[0].dtype.bitwidth < signature.args[2].dtype.bitwidth
            vector = ir.VectorType(number, _WIDTH)
            word, half = ir.IntType(64), ir.IntType(32)
            unknown = ir.Constant(vector, ir.Undefined)
            everywhere = ir.Constant(ir.VectorType(half, _WIDTH), [0] * _WIDTH)
            sums = [cgutils.alloca_once(builder, vector) for _ in range(vectors)]
            for one in sums:
                builder.store(ir.Constant(vector, [0.0] * _WIDTH), one)
            step = ir.Constant(word, 1)
            loop = cgutils.for_range_slice(builder, *arguments[4:], step, intp=word)
            with loop as (entry, _):
                value = builder.load(builder.gep(value_at, [entry]))
                if narrow:
                    value = builder.fpext(value, number)
                single = builder.insert_element(unknown, value, ir.Constant(half, 0))
                splat = builder.shuffle_vector(single, unknown, everywhere)
                column = builder.zext(builder.load(builder.gep(column_at, [entry])), word)
                origin = builder.mul(column, ir.Constant(word, _WIDTH * vectors))
                for index, one in enumerate(sums):
                    place = builder.add(origin, ir.Constant(word, _WIDTH * index))
                    pointer = builder.bitcast(builder.gep(lane_at, [place]), vector.as_pointer())
                    state = builder.load(pointer, align=aligned)
                    product = builder.fmul(splat, state, flags=("contract",))
                    builder.store(builder.fadd(product, builder.load(one), ("contract",)), one)
            for index, one in enumerate(sums):
                place = builder.gep(total_at, [ir.Constant(word, _WIDTH * index)])
                pointer = builder.bitcast(place, vector.as_pointer())
                builder.store(builder.load(one), pointer, align=aligned)
            return context.get_dummy_value()

        return signature, generate

    return row_product


_narrow_row, _wide_row = _row_product(1), _row_product(2)


@compiled
def pack(s: Any, first: int, last: int, lanes: Any) -> None:
    """Copy states `first` to `last` of `s`, (starts, m), into `lanes`, (m, width)."""
    size = s.shape[1]
    for start in range(0, size, _ROWS):
        for state in range(first, last):
            for neuron in range(start, min(size, start + _ROWS)):
                lanes[neuron, state - first] = s[state, neuron]


@compiled
def product_block(
    bounds: Any, columns: Any, values: Any, s: Any, out: Any, first: int, rows: Any, lanes: Any
) -> None:
    """Write the product of `rows` with the states from `first` on into `out`, (starts, rows)."""
    width = lanes.shape[1]
    last = min(s.shape[0], first + width)
    pack(s, first, last, lanes)
    totals = np.empty((_ROWS, width), lanes.dtype)
    for start in range(rows[0], rows[1], _ROWS):
        end = min(rows[1], start + _ROWS)
        for row in range(start, end):
            total = totals[row - start]
            if width == WIDE:
                _wide_row(values, columns, lanes, total, bounds[row], bounds[row + 1])
            else:
                _narrow_row(values, columns, lanes, total, bounds[row], bounds[row + 1])
        for state in range(first, last):
            for row in range(start, end):
                out[state, row - rows[2]] = totals[row - start, state - first]


@compiled
def product_tasks(
    bounds: Any,
    columns: Any,
    values: Any,
    places: Any,
    s: Any,
    out: Any,
    tasks: Any,
    rows: Any,
    wide: bool,
) -> None:
    """Do the tasks from ``tasks[0]`` to ``tasks[1]``: task = (network, group, block of states).

    Parameters
    ----------
    bounds : (rows of all patterns + 1), int64
        Where each row begins in `columns`.
    columns, values : arrays
        The entries; ``values`` may be longer, if networks share one pattern.
    places : (networks, 2), int64
        First row of each network in `bounds`, and shift from its entries to its values.
    s : (networks, starts, groups, m)
        States.
    out : (networks, starts, groups done, rows done)
        Products.
    tasks : (2)
        Range of tasks.
    rows : (4)
        Rows to do within a group, row that is the first of `out`, first group.
    wide : bool
        Take 32 lanes instead of 16.
    """
    groups, size = out.shape[2], s.shape[3]
    width = WIDE if wide else NARROW
    blocks = (s.shape[1] + width - 1) // width
    lanes = np.zeros((size, width), s.dtype)
    for task in range(tasks[0], tasks[1]):
        network, rest = task // (groups * blocks), task % (groups * blocks)
        group, block = rest // blocks, rest % blocks
        origin = places[network, 0] + (rows[3] + group) * size
        own = values[places[network, 1] :]
        here, there = s[network, :, rows[3] + group], out[network, :, group]
        inside = bounds[origin : origin + size + 1]
        product_block(inside, columns, own, here, there, block * width, rows, lanes)
