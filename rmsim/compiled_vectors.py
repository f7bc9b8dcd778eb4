"""Vectors of the machine in compiled loops, and arrays given by their addresses.

Numba puts a sum over entries back into memory after each of them, and counts references of arrays.
Loops that must not are written in LLVM's own vectors, which it cuts to the registers of the
machine. Everything here is called from functions compiled by :mod:`rmsim.compiled_loops` alone.

- **32 numbers by address** (learning by tables of signs): an array is the address of its first
  element, an int64, and an index counts elements. One signature then serves arrays of every shape,
  and a loop of hundreds of lines is built in a second or two. Nothing is checked: whoever calls
  keeps the arrays alive.
- **16 lanes of an array** (learning of sparse networks): rows of arrays (rows, 16).
- **Blocks of 8 x 8** of matrices, which are transposed.

The sign of the dynamics is +1 at 0, as in :func:`rmsim.tensors.is_up`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils as _cgutils
from numba.extending import intrinsic, models, register_model

#: Numbers of a vector that is given by its address, and of a row of lanes.
ROWS, LANES = 32, 16

#: Columns, or samples, of a group whose signed sums are tabulated.
GROUP = 4

#: Rows and columns of a block of a matrix that is transposed in registers.
BLOCK = 8

#: Masks from a counter. Weyl increment: 2^32 over the golden ratio, odd; multipliers of a 32-bit
#: mixer of low bias (xor-shift by 16, 15, 16 between them).
GOLDEN, MIX_FIRST, MIX_SECOND = 0x9E3779B9, 0x7FEB352D, 0x846CA68B

cgutils: Any = _cgutils  # carries no types

_WORD, _INDEX, _BIT = ir.IntType(64), ir.IntType(32), ir.IntType(1)
_FLOAT, _BYTE = ir.FloatType(), ir.IntType(8)


def splat(builder: Any, number: Any, width: int) -> Any:
    """Return a vector whose elements are all `number`."""
    unknown = ir.Constant(ir.VectorType(number.type, width), ir.Undefined)
    single = builder.insert_element(unknown, number, ir.Constant(_INDEX, 0))
    everywhere = ir.Constant(ir.VectorType(_INDEX, width), [0] * width)
    return builder.shuffle_vector(single, unknown, everywhere)


def vector_at(builder: Any, array: Any, place: Any, vector: Any) -> Any:
    """Return a pointer to the `vector` that begins at the entry `place` of the data `array`."""
    return builder.bitcast(builder.gep(array, [place]), vector.as_pointer())


def at_least_zero(builder: Any, numbers: Any) -> Any:
    """Return where numbers are 0 or more: the sign of the dynamics, for a vector."""
    width = numbers.type.count
    return builder.fcmp_ordered(">=", numbers, ir.Constant(numbers.type, [0.0] * width))


# Vectors of 32 numbers in float32, by address.

_VECTOR = ir.VectorType(ir.FloatType(), ROWS)


class VectorType(types.Type):
    """32 numbers in float32."""

    def __init__(self) -> None:
        super().__init__(name="Vector32")


@register_model(VectorType)
class VectorModel(models.PrimitiveModel):
    """They are one value of LLVM."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)  # type: ignore[no-untyped-call]


_vector = VectorType()

_BYTES = ir.VectorType(_BYTE, ROWS)


class BytesType(types.Type):
    """32 integers from -128 to 127."""

    def __init__(self) -> None:
        super().__init__(name="Bytes32")


@register_model(BytesType)
class BytesModel(models.PrimitiveModel):
    """They are one value of LLVM, a quarter of :class:`VectorType`."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _BYTES)  # type: ignore[no-untyped-call]


_bytes = BytesType()


def _operation(result: Any, kinds: tuple[Any, ...], generate: Any) -> Any:
    """Return an operation of the compiled loops: ``generate(builder, *values)`` writes its code."""

    def operation(typing_context: Any, *given: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            value = generate(builder, *arguments)
            return context.get_dummy_value() if value is None else value

        return result(*kinds), code

    names = ("typing_context", *(f"argument_{k}" for k in range(len(kinds))))
    arguments = [inspect.Parameter(x, inspect.Parameter.POSITIONAL_OR_KEYWORD) for x in names]
    vars(operation)["__signature__"] = inspect.Signature(arguments)  # numba counts them
    return intrinsic(operation)


def _constant(value: float) -> Any:
    return ir.Constant(_VECTOR, [value] * ROWS)


def _pointer(builder: Any, address: Any, index: Any, kind: Any) -> Any:
    return builder.gep(builder.inttoptr(address, kind.as_pointer()), [index])


def _load(builder: Any, address: Any, index: Any) -> Any:
    place = _pointer(builder, address, index, ir.FloatType())
    return builder.load(builder.bitcast(place, _VECTOR.as_pointer()), align=4)


def _store(builder: Any, address: Any, index: Any, numbers: Any) -> None:
    place = _pointer(builder, address, index, ir.FloatType())
    builder.store(numbers, builder.bitcast(place, _VECTOR.as_pointer()), align=4)


def _load_bytes(builder: Any, address: Any, index: Any) -> Any:
    place = _pointer(builder, address, index, _BYTE)
    return builder.load(builder.bitcast(place, _BYTES.as_pointer()), align=1)


def _store_bytes(builder: Any, address: Any, index: Any, numbers: Any) -> None:
    place = _pointer(builder, address, index, _BYTE)
    builder.store(
        builder.fptosi(numbers, _BYTES), builder.bitcast(place, _BYTES.as_pointer()), align=1
    )


def _tabulate(builder: Any, matrix: Any, column: Any, table: Any, entry: Any) -> None:
    """Write the table of four columns, 16 rows at a time: these stay in 16 registers of 8 numbers.

    Of all 32 rows at once, sums would wait in memory for their turn.
    """
    for first in range(0, ROWS, 16):
        a, b, c, d = (_sixteen(builder, matrix, column, ROWS * k + first) for k in range(4))
        even, odd = builder.fadd(c, d), builder.fsub(c, d)
        for low, x in enumerate((builder.fadd(a, b), builder.fsub(a, b))):
            sums = (builder.fadd, even), (builder.fsub, odd), (builder.fadd, odd)
            for high, (sign, y) in enumerate((*sums, (builder.fsub, even))):
                place = ROWS * (low + 2 * high) + first
                builder.store(sign(x, y), _place_of_sixteen(builder, table, entry, place), align=4)


def _place_of_sixteen(builder: Any, address: Any, index: Any, offset: int) -> Any:
    place = builder.add(index, ir.Constant(_WORD, offset))
    kind = ir.VectorType(_FLOAT, 16).as_pointer()
    return builder.bitcast(_pointer(builder, address, place, _FLOAT), kind)


def _sixteen(builder: Any, address: Any, index: Any, offset: int) -> Any:
    return builder.load(_place_of_sixteen(builder, address, index, offset), align=4)


def _tabulate_samples(small: bool) -> Any:
    """Return the code of the table of four samples: of numbers, or of integers in bytes."""

    def tabulated(builder: Any, g: Any, place: Any, table: Any, entry: Any) -> None:
        kind, number = (_BYTES, _BYTE) if small else (_VECTOR, _FLOAT)
        add, subtract = (builder.add, builder.sub) if small else (builder.fadd, builder.fsub)

        def sample(k: int) -> Any:
            numbers = _load(builder, g, builder.add(place, ir.Constant(_WORD, ROWS * k)))
            return builder.fptosi(numbers, kind) if small else numbers

        def put(k: int, numbers: Any) -> None:
            at = builder.add(entry, ir.Constant(_WORD, ROWS * k))
            to = builder.bitcast(_pointer(builder, table, at, number), kind.as_pointer())
            builder.store(numbers, to, align=1 if small else 4)

        a, b, c, d = map(sample, range(4))
        even, odd, u, v = add(a, b), subtract(a, b), add(c, d), subtract(c, d)
        none = ir.Constant(kind, [0 if small else 0.0] * ROWS)
        for low, x in enumerate((subtract(none, even), odd, subtract(none, odd), even)):
            for high, (sign, y) in enumerate(((subtract, u), (add, v), (subtract, v), (add, u))):
                put(low + 4 * high, sign(x, y))

    return tabulated


def _read(kind: Any, extend: bool = False) -> Any:
    def read(builder: Any, address: Any, index: Any) -> Any:
        value = builder.load(_pointer(builder, address, index, kind))
        return builder.zext(value, _WORD) if extend else value

    return read


def _write(kind: Any, narrow: bool = False) -> Any:
    def write(builder: Any, address: Any, index: Any, value: Any) -> None:
        value = builder.trunc(value, kind) if narrow else value
        builder.store(value, _pointer(builder, address, index, kind))

    return write


def _add_times(builder: Any, total: Any, one: Any, number: Any) -> Any:
    """Return total + one * number, fused where the machine can."""
    product = builder.fmul(one, splat(builder, number, ROWS), flags=("contract",))
    return builder.fadd(total, product, flags=("contract",))


def _ups(builder: Any, numbers: Any) -> Any:
    return builder.zext(builder.bitcast(at_least_zero(builder, numbers), _INDEX), _WORD)


def _signs_of(builder: Any, word: Any) -> Any:
    up = builder.bitcast(builder.trunc(word, _INDEX), ir.VectorType(_BIT, ROWS))
    return builder.select(up, _constant(1.0), _constant(-1.0))


def _store_firsts(builder: Any, address: Any, word: Any) -> None:
    bits = builder.bitcast(builder.trunc(word, _INDEX), ir.VectorType(_BIT, ROWS))
    firsts = list(range(0, ROWS, GROUP))
    some = ir.Constant(ir.VectorType(_INDEX, len(firsts)), firsts)
    up = builder.shuffle_vector(bits, bits, some)
    kind = ir.VectorType(_FLOAT, len(firsts))
    one, minus = (ir.Constant(kind, [x] * len(firsts)) for x in (1.0, -1.0))
    builder.store(
        builder.select(up, one, minus), builder.inttoptr(address, kind.as_pointer()), align=4
    )


def _mix(builder: Any, x: Any) -> Any:
    """Mix the bits of 32-bit words, as :func:`rmsim.dynamics.sweeps.mix` does."""
    width = x.type.count if isinstance(x.type, ir.VectorType) else 0

    def constant(value: int) -> Any:
        return ir.Constant(x.type, [value] * width if width else value)

    for shift, factor in ((16, MIX_FIRST), (15, MIX_SECOND)):
        x = builder.mul(builder.xor(x, builder.lshr(x, constant(shift))), constant(factor))
    return builder.xor(x, builder.lshr(x, constant(16)))


def _chosen(builder: Any, key: Any, second: Any, sweep: Any, first: Any, limit: Any) -> Any:
    golden = ir.Constant(_INDEX, GOLDEN)
    key, second, sweep, first, limit = (
        builder.trunc(x, _INDEX) for x in (key, second, sweep, first, limit)
    )
    origin = _mix(builder, builder.add(key, builder.mul(sweep, golden)))
    origin = builder.add(origin, builder.mul(first, golden))
    steps = [k * GOLDEN % 2**32 for k in range(ROWS)]
    x = builder.add(splat(builder, origin, ROWS), ir.Constant(ir.VectorType(_INDEX, ROWS), steps))
    x = _mix(builder, builder.xor(_mix(builder, x), splat(builder, second, ROWS)))
    below = builder.icmp_unsigned("<", x, splat(builder, limit, ROWS))
    return builder.zext(builder.bitcast(below, _INDEX), _WORD)


def _spins_of(builder: Any, word: Any, there: Any) -> Any:
    some = builder.bitcast(builder.trunc(there, _INDEX), ir.VectorType(_BIT, ROWS))
    return builder.select(some, _signs_of(builder, word), _constant(0.0))


def _where_at_most(builder: Any, margin: Any, kappa: Any, s: Any) -> Any:
    below = builder.fcmp_ordered("<=", margin, splat(builder, kappa, ROWS))
    return builder.select(below, s, _constant(0.0))


def _near(builder: Any, numbers: Any, centre: Any, width: Any) -> Any:
    distance = builder.fsub(numbers, splat(builder, centre, ROWS))
    far = splat(builder, width, ROWS)
    low = builder.fcmp_ordered(">=", distance, builder.fneg(far))
    within = builder.and_(low, builder.fcmp_ordered("<=", distance, far))
    return builder.zext(builder.bitcast(within, _INDEX), _WORD)


def _prefetch(locality: int) -> Any:
    def prefetched(builder: Any, address: Any, index: Any) -> None:
        line, bytes_of = _pointer(builder, address, index, _FLOAT), _BYTE.as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [bytes_of, _INDEX, _INDEX, _INDEX])
        name = "llvm.prefetch.p0i8"
        how = [ir.Constant(_INDEX, x) for x in (0, locality, 1)]  # to read, where to, data
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        builder.call(function, [builder.bitcast(line, bytes_of), *how])

    return prefetched


def _arrive(builder: Any, address: Any) -> None:
    place = builder.inttoptr(address, _WORD.as_pointer())
    builder.atomic_rmw("add", place, ir.Constant(_WORD, 1), "seq_cst")


def _arrived(builder: Any, address: Any) -> Any:
    return builder.load_atomic(builder.inttoptr(address, _WORD.as_pointer()), "seq_cst", 8)


def _give_way(builder: Any) -> None:
    if os.name == "posix":
        kind = ir.FunctionType(_INDEX, [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])


_INT, _REAL = types.int64, types.float32
_PLACE = (_INT, _INT)

#: ``load(array, i)`` is ``array[i : i + 32]``; ``store(array, i, vector)`` writes it.
load = _operation(_vector, _PLACE, _load)
store = _operation(types.void, (*_PLACE, _vector), _store)
#: ``load_bytes(array, i)`` is ``array[i : i + 32]`` of int8; ``store_bytes(array, i, vector)``
#: writes a vector of small integers there; their sums, and the vector that has such numbers.
load_bytes = _operation(_bytes, _PLACE, _load_bytes)
store_bytes = _operation(types.void, (*_PLACE, _vector), _store_bytes)
add_bytes = _operation(_bytes, (_bytes, _bytes), lambda builder, x, y: builder.add(x, y))
reals_of = _operation(_vector, (_bytes,), lambda builder, x: builder.sitofp(x, _VECTOR))
#: ``tabulate(matrix, column, table, i)`` writes the eight sums a +- b +- c +- d of the columns from
#: there on as vectors from element i on; bits 0, 1, 2 of an entry are set where b, c, d have a
#: minus. ``tabulate_samples(g, place, table, i)`` writes the sixteen +- g^1 +- g^2 +- g^3 +- g^4,
#: the bits of an entry set where the sign is +; the other one as bytes, of small integers.
tabulate = _operation(types.void, _PLACE * 2, _tabulate)
tabulate_samples = _operation(types.void, _PLACE * 2, _tabulate_samples(small=False))
tabulate_small = _operation(types.void, _PLACE * 2, _tabulate_samples(small=True))
#: ``prefetch(array, i)`` loads the cache line of element i; the other one not into the first cache.
prefetch = _operation(types.void, _PLACE, _prefetch(3))
prefetch_second = _operation(types.void, _PLACE, _prefetch(2))
#: Element i of arrays of float32, uint8, uint32 and int64; integers are int64 outside of memory.
real = _operation(_REAL, _PLACE, _read(_FLOAT))
byte = _operation(_INT, _PLACE, _read(_BYTE, extend=True))
word = _operation(_INT, _PLACE, _read(_INDEX, extend=True))
whole = _operation(_INT, _PLACE, _read(_WORD))
#: ``set_real(array, i, value)`` and the like write one.
set_real = _operation(types.void, (*_PLACE, _REAL), _write(_FLOAT))
set_byte = _operation(types.void, (*_PLACE, _INT), _write(_BYTE, narrow=True))
set_word = _operation(types.void, (*_PLACE, _INT), _write(_INDEX, narrow=True))
set_whole = _operation(types.void, (*_PLACE, _INT), _write(_WORD))
#: 0 everywhere; sums, differences and products of two vectors.
zeros = _operation(_vector, (), lambda builder: _constant(0.0))
add = _operation(_vector, (_vector, _vector), lambda builder, x, y: builder.fadd(x, y))
subtract = _operation(_vector, (_vector, _vector), lambda builder, x, y: builder.fsub(x, y))
multiply = _operation(_vector, (_vector, _vector), lambda builder, x, y: builder.fmul(x, y))
#: ``times(vector, number)``; ``add_times(total, vector, number)`` is ``total + number * vector``.
times = _operation(
    _vector, (_vector, _REAL), lambda builder, x, y: builder.fmul(x, splat(builder, y, ROWS))
)
add_times = _operation(_vector, (_vector, _vector, _REAL), _add_times)
#: ``ups(vector)`` has bit i set where element i is 0 or more; ``signs_of(word)`` is +1 where a bit
#: is set, -1 elsewhere.
ups = _operation(_INT, (_vector,), _ups)
signs_of = _operation(_vector, (_INT,), _signs_of)
#: ``spins_of(word, there)`` is the same, and 0 where the bit of the second word is not set.
spins_of = _operation(_vector, (_INT, _INT), _spins_of)
#: ``store_firsts(array, word)`` writes the signs of the first bits of the groups, 0, 4, 8, ...:
#: eight numbers.
store_firsts = _operation(types.void, (_INT, _INT), _store_firsts)
#: ``chosen(key, second, sweep, first, limit)`` has the bits of the neurons from `first` on that the
#: mask of a sweep updates: that of :func:`rmsim.dynamics.sweeps.fill_mask`.
chosen = _operation(_INT, (_INT,) * 5, _chosen)
#: ``where_at_most(margin, kappa, s)`` is s where the margin is at most kappa, and 0 elsewhere.
where_at_most = _operation(_vector, (_vector, _REAL, _vector), _where_at_most)
#: ``near(vector, centre, width)`` has bit i set where element i is within `width` of `centre`.
near = _operation(_INT, (_vector, _REAL, _REAL), _near)
#: Number of the lowest bit that is set, of a word that is not 0.
lowest_bit = _operation(_INT, (_INT,), lambda builder, x: builder.cttz(x, ir.Constant(_BIT, 1)))
#: ``arrive(count)`` adds 1 to ``count[0]``, seen by all threads; ``arrived(count)`` reads it.
arrive = _operation(types.void, (_INT,), _arrive)
arrived = _operation(_INT, (_INT,), _arrived)
give_way = _operation(types.void, (), _give_way)


# Rows of 16 lanes of an array.


def _lanes_of(context: Any, array: Any) -> tuple[Any, int]:
    """Return the type of 16 numbers of `array`, and how they are aligned."""
    number = context.get_value_type(array.dtype)
    return ir.VectorType(number, LANES), array.dtype.bitwidth // 8


def _row_pointer(context: Any, builder: Any, kind: Any, array: Any, row: Any, vector: Any) -> Any:
    """Return a pointer to row `row`, 16 numbers, of `array`."""
    data = context.make_array(kind)(context, builder, array).data
    return vector_at(builder, data, builder.mul(row, ir.Constant(_WORD, LANES)), vector)


def _row(signs: bool) -> Any:
    """Return the code of a row times the lanes of numbers, or of signs that are given by bits."""

    def row_product(
        typing_context: Any,
        values: Any,
        columns: Any,
        first: Any,
        last: Any,
        lanes: Any,
        out: Any,
        row: Any,
    ) -> Any:
        signature = types.void(values, columns, first, last, lanes, out, row)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kinds = signature.args
            value_at, column_at, lanes_at = (
                context.make_array(kinds[k])(context, builder, arguments[k]).data for k in (0, 1, 4)
            )
            vector, aligned = _lanes_of(context, kinds[5])
            total = cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * LANES))
            first, last = arguments[2], arguments[3]
            step = ir.Constant(_WORD, 1)
            with cgutils.for_range_slice(builder, first, last, step, intp=_WORD) as (entry, _):
                value = splat(builder, builder.load(builder.gep(value_at, [entry])), LANES)
                column = builder.zext(builder.load(builder.gep(column_at, [entry])), _WORD)
                if signs:
                    bits = builder.load(builder.gep(lanes_at, [column]))
                    down = builder.bitcast(bits, ir.VectorType(_BIT, LANES))
                    product = builder.select(down, builder.fneg(value), value)
                else:
                    place = _row_pointer(context, builder, kinds[4], arguments[4], column, vector)
                    state = builder.load(place, align=aligned)
                    product = builder.fmul(value, state, flags=("contract",))
                builder.store(builder.fadd(product, builder.load(total), ("contract",)), total)
            place = _row_pointer(context, builder, kinds[5], arguments[5], arguments[6], vector)
            builder.store(builder.load(total), place, align=aligned)
            return context.get_dummy_value()

        return signature, generate

    return intrinsic(row_product)


#: ``row_product(values, columns, first, last, lanes, out, row)`` writes the
#: ``sum of values[e] * lanes[columns[e]]`` into ``out[row]``.
row_product = _row(signs=False)
#: The same for lanes +1 and -1, which are given by words of 16 bits, set where a lane is -1. The
#: words of 16 numbers are a thirty-second of their size: they stay next to the processor.
row_spins = _row(signs=True)


def _product(context: Any, builder: Any, kinds: Any, arguments: Any, column: Any) -> Any:
    """Return row ``arguments[1]`` of array 0 times row `column` of array 2, lane by lane."""
    vector, aligned = _lanes_of(context, kinds[0])
    one = _row_pointer(context, builder, kinds[0], arguments[0], arguments[1], vector)
    two = _row_pointer(context, builder, kinds[2], arguments[2], column, vector)
    return builder.fmul(builder.load(one, align=aligned), builder.load(two, align=aligned))


def _lane_dot(typing_context: Any, one: Any, row: Any, two: Any, column: Any) -> Any:
    """Return the sum over lanes of ``one[row] * two[column]``."""
    signature = one.dtype(one, row, two, column)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        total = _product(context, builder, signature.args, arguments, arguments[3])
        width = LANES
        while width > 1:  # upper half onto the lower half
            width //= 2
            parts = [list(range(width)), list(range(width, 2 * width))]
            masks = [ir.Constant(ir.VectorType(_INDEX, width), part) for part in parts]
            total = builder.fadd(*(builder.shuffle_vector(total, total, x) for x in masks))
        return builder.extract_element(total, ir.Constant(_INDEX, 0))

    return signature, generate


def _lane_bits(typing_context: Any, one: Any, row: Any, two: Any, limit: Any) -> Any:
    """Return a word with bit b set where lane b of ``one[row] * two[row]`` is <= `limit`."""
    signature = types.uint32(one, row, two, limit)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        product = _product(context, builder, signature.args, arguments, arguments[1])
        below = builder.fcmp_ordered("<=", product, splat(builder, arguments[3], LANES))
        return builder.zext(builder.bitcast(below, ir.IntType(LANES)), _INDEX)

    return signature, generate


def _row_flip(typing_context: Any, product: Any, field: Any, words: Any, row: Any) -> Any:
    """Write which lanes of ``product[row] + field[row]`` are down; return which of them flip."""
    signature = types.uint16(product, field, words, row)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds, row = signature.args, arguments[3]
        vector, aligned = _lanes_of(context, kinds[0])
        total, external = (
            _row_pointer(context, builder, kinds[k], arguments[k], row, vector) for k in range(2)
        )
        h = builder.fadd(builder.load(total, align=aligned), builder.load(external, align=aligned))
        up = builder.bitcast(at_least_zero(builder, h), ir.IntType(LANES))
        new = builder.not_(up)
        words_at = context.make_array(kinds[2])(context, builder, arguments[2]).data
        place = builder.gep(words_at, [row])
        flipped = builder.xor(new, builder.load(place))
        builder.store(new, place)
        return flipped

    return signature, generate


def _popcount(typing_context: Any, word: Any) -> Any:
    """Return the number of bits that are set."""
    signature = types.int64(types.uint32)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.zext(builder.ctpop(arguments[0]), _WORD)

    return signature, generate


# Blocks of matrices.


def _block_at(context: Any, builder: Any, kind: Any, matrix: Any, i: Any, j: Any) -> list[Any]:
    """Return pointers to the rows of the block of a matrix that begins at entry (i, j)."""
    array = context.make_array(kind)(context, builder, matrix)
    width = cgutils.unpack_tuple(builder, array.shape, 2)[1]
    vector = ir.VectorType(context.get_value_type(kind.dtype), BLOCK)
    rows = [builder.add(i, ir.Constant(_WORD, k)) for k in range(BLOCK)]
    places = [builder.add(builder.mul(row, width), j) for row in rows]
    return [vector_at(builder, array.data, place, vector) for place in places]


def _loaded(builder: Any, kind: Any, rows: Sequence[Any]) -> list[Any]:
    return [builder.load(row, align=kind.dtype.bitwidth // 8) for row in rows]


def _stored(builder: Any, kind: Any, rows: Sequence[Any], vectors: Sequence[Any]) -> None:
    for row, vector in zip(rows, vectors, strict=True):
        builder.store(vector, row, align=kind.dtype.bitwidth // 8)


def _transposed(builder: Any, block: Sequence[Any]) -> list[Any]:
    """Return the columns of a block: pairs of rows exchange single entries, then twos, fours."""
    rows, step = list(block), 1
    while step < BLOCK:
        upper = [k if not k & step else BLOCK + k - step for k in range(BLOCK)]
        lower = [k + step if not k & step else BLOCK + k for k in range(BLOCK)]
        masks = [ir.Constant(ir.VectorType(_INDEX, BLOCK), one) for one in (upper, lower)]
        for k in range(BLOCK):
            if not k & step:
                pair = rows[k], rows[k + step]
                rows[k], rows[k + step] = (builder.shuffle_vector(*pair, x) for x in masks)
        step *= 2
    return rows


def _copy_block_transposed(
    typing_context: Any, matrix: Any, i: Any, j: Any, out: Any, k: Any, m: Any
) -> Any:
    """Write the block of `matrix` at (i, j), transposed, into that of `out` at (k, m)."""
    signature = types.void(matrix, types.int64, types.int64, out, types.int64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, target = signature.args[0], signature.args[3]
        there = _block_at(context, builder, target, *arguments[3:])
        rows = _loaded(builder, source, _block_at(context, builder, source, *arguments[:3]))
        _stored(builder, target, there, _transposed(builder, rows))
        return context.get_dummy_value()

    return signature, generate


def _swap_blocks_transposed(typing_context: Any, matrix: Any, i: Any, j: Any) -> Any:
    """Exchange the blocks of a matrix at (i, j) and (j, i), each transposed; or transpose one."""
    signature = types.void(matrix, types.int64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, (values, i, j) = signature.args[0], arguments
        one, two = (_block_at(context, builder, kind, values, *at) for at in ((i, j), (j, i)))
        first, second = _loaded(builder, kind, one), _loaded(builder, kind, two)
        _stored(builder, kind, one, _transposed(builder, second))
        _stored(builder, kind, two, _transposed(builder, first))
        return context.get_dummy_value()

    return signature, generate


#: Of matrices (rows, columns), whose rows are contiguous: blocks of 8 x 8, all of them inside.
#: ``copy_block_transposed(matrix, i, j, out, k, m)`` writes the block at (i, j) into that of `out`
#: at (k, m); ``swap_blocks_transposed(matrix, i, j)`` exchanges those at (i, j) and (j, i).
copy_block_transposed: Any = intrinsic(_copy_block_transposed)
swap_blocks_transposed: Any = intrinsic(_swap_blocks_transposed)

lane_dot: Any = intrinsic(_lane_dot)
lane_bits: Any = intrinsic(_lane_bits)
row_flip: Any = intrinsic(_row_flip)
popcount: Any = intrinsic(_popcount)
