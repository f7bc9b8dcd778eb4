r"""Sparse couplings as compressed rows, for many networks at once.

.. math:: h_{ib} = J_D s_{ib} + \sum_{e \in \mathrm{row}\ i} v_e\, s_{c(e)\,b}

for the states b of a network, with the value v_e and the column c(e) of entry e. A network has
`groups` blocks of `size` rows, one per layer, whose columns count within the block; couplings
between layers make one group of all neurons. Memory is 8 bytes per entry (float32), never n^2.

On the CPU the product is compiled. The states b are the lanes of a vector register: a block of them
is copied with the lanes last and stays in the cache while all rows pass, and the sum of a row stays
in registers. Numba alone would write the sum to memory after every entry, which is four times
slower, so the loop over a row is written in LLVM's own vectors; these are split to what the machine
has.

States of +1 and -1, which is what the dynamics has, are copied as bits, 32 of them in a word for
each neuron: a network of 5000 neurons then fits the first-level cache, where its floats would fill
the second. An entry adds v or -v to each lane, which is the product with +-1 bit for bit. A block
with any other state is recognised and copied as floats.

Elsewhere the rows are padded to the length of the longest (:class:`PaddedRows`): a product is a
gather, a product and a sum over all rows of all networks, which :func:`torch.compile` can trace and
whose sums have a fixed order. The sparse products of torch can do neither, and take one network
after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from rmsim.compiled_loops import compiled, run_parts, shares, thread_count
from rmsim.compiled_vectors import cgutils, splat, vector_at
from rmsim.couplings.base import Columns, PlasticCouplings, runs
from rmsim.given import check_size

#: Multiplications worth a thread of their own; handing over a task costs some 50 microseconds.
_GRAIN = 2**21

#: Terms of sums over padded rows that are formed at a time, where nothing fuses them.
_TERMS = 2**24


class Part(NamedTuple):
    """Which networks, groups (from the first on) and rows of each group a product is made of."""

    networks: Sequence[int]
    first_group: int
    rows: tuple[int, int]


@dataclass(frozen=True, eq=False)
class CompressedRows:
    """Entries of the matrices of `samples` networks.

    Parameters
    ----------
    bounds : Tensor, int64
        Beginning of each row among the entries, over samples, groups and rows, and the end.
    columns : Tensor, int32
        Column of each entry.
    values : Tensor
        Value of each entry, over samples first if the pattern is `shared`.
    samples, groups, size : int
        Networks, blocks per network, rows per block.
    shared : bool
        Whether all networks have the pattern of the first, so that it is stored once.
    """

    bounds: torch.Tensor
    columns: torch.Tensor
    values: torch.Tensor
    samples: int
    groups: int
    size: int
    shared: bool = False

    @property
    def nbytes(self) -> int:
        """Memory of all three."""
        return self.bounds.nbytes + self.columns.nbytes + self.values.nbytes

    @cached_property
    def block_ends(self) -> list[int]:
        """Where each block begins among the entries, on the host: read from the device once."""
        ends: list[int] = self.bounds[:: self.size].tolist()
        return ends

    @cached_property
    def padded(self) -> PaddedRows:
        """All rows of all patterns, with columns counted through the groups of their network."""
        rows = PaddedRows.of(self.bounds, self.columns)
        origin = torch.arange(len(rows.columns), device=rows.columns.device) // self.size
        origin = origin % self.groups * self.size
        return replace(rows, columns=rows.columns + origin.unsqueeze(1))

    def with_values(self, values: torch.Tensor) -> CompressedRows:
        """Return the same places with other values."""
        other = replace(self, values=values)
        for name in ("padded", "block_ends"):  # the same, and a GPU would wait for them
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        return other

    def entries(self, sample: int, group: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return (bounds from 0, columns, values) of one block, as torch's compressed rows."""
        network = 0 if self.shared else sample
        origin = (network * self.groups + group) * self.size
        bounds = self.bounds[origin : origin + self.size + 1]
        block = network * self.groups + group
        first, last = self.block_ends[block], self.block_ends[block + 1]
        shift = sample * len(self.columns) if self.shared else 0
        values = self.values[first + shift : last + shift]
        return (bounds - first).to(torch.int32), self.columns[first:last], values

    def columns_of(self, sample: int) -> Columns:
        """Return the entries of one network by columns and by rows; on the CPU only."""
        network = 0 if self.shared else sample
        height = self.groups * self.size
        bounds = self.bounds[network * height : (network + 1) * height + 1].numpy()
        first, last = int(bounds[0]), int(bounds[-1])
        shift = sample * len(self.columns) if self.shared else 0
        columns, values = self.columns[first:last], self.values[first + shift : last + shift]
        inside, by_row = bounds - first, (columns.numpy(), values.numpy())
        starts = np.zeros(height + 1, np.int64)
        rows, turned = np.empty_like(by_row[0]), np.empty_like(by_row[1])
        _turn_entries(inside, *by_row, self.size, starts, rows, turned)
        return turned, starts, rows, inside, *by_row

    def multiply(
        self,
        s: torch.Tensor,
        out: torch.Tensor,
        active: Sequence[int] | None,
        group: int | None = None,
        rows: tuple[int, int] | None = None,
        jd: float = 0.0,
    ) -> None:
        """Write the products into `out`.

        Parameters
        ----------
        s : Tensor, (active samples, starts, groups, size)
            States.
        out : Tensor, (active samples, starts, groups done, rows done)
            Products; both tensors are contiguous.
        active : sequence of int, optional
            The networks of `s`; all by default.
        group : int, optional
            Do this group only.
        rows : (int, int), optional
            Do these rows of each group only.
        jd : float
            Diagonal entry of every row, beyond those stored.
        """
        chosen = range(self.samples) if active is None else active
        route = self._multiply_compiled if s.device.type == "cpu" else self.multiply_torch
        route(s, out, Part(chosen, group or 0, rows or (0, self.size)), jd)

    def multiply_torch(self, s: torch.Tensor, out: torch.Tensor, part: Part, jd: float) -> None:
        """Multiply by padded rows, the route of a GPU; slower than ours on a CPU."""
        chosen, first_group, rows = part
        groups = slice(first_group, first_group + out.shape[2])
        starts, inside = s.shape[1], self.groups * self.size
        padded = self.padded
        networks = 1 if self.shared else self.samples
        shape = (networks, self.groups, self.size, -1)
        columns = padded.columns.view(shape)[:, groups, slice(*rows)].flatten(1, 2)
        values = padded.spread(self.values.view(self.samples // networks, -1))
        values = values.view(self.samples, *shape[1:])[:, groups, slice(*rows)].flatten(1, 2)
        lanes = s.permute(0, 2, 3, 1).reshape(len(chosen), inside, starts)
        most = max(1, _TERMS // max(1, values[0].numel() * starts))
        for here, there in runs(chosen, self.samples, most):
            count, _, width = values[there].shape
            own = columns.expand(count, -1, -1) if self.shared else columns[there]
            first = torch.arange(count, device=s.device).view(-1, 1, 1) * inside
            part_rows = PaddedRows((own + first).view(-1, width), padded.places)
            product = part_rows.multiply(
                values[there].reshape(-1, width), lanes[here].reshape(-1, starts)
            )
            product = product.view(count, out.shape[2], out.shape[3], starts)
            out[here].copy_(product.permute(0, 3, 1, 2))
        out.add_(s[:, :, groups, slice(*rows)], alpha=jd)

    def _multiply_compiled(self, s: torch.Tensor, out: torch.Tensor, part: Part, jd: float) -> None:
        chosen, first_group, rows = part
        places = np.zeros((len(chosen), 2), np.int64)
        if self.shared:
            places[:, 1] = np.asarray(chosen) * len(self.columns)
        else:
            places[:, 0] = np.asarray(chosen) * (self.groups * self.size)
        if not out.numel():
            return
        blocks = -(-out.shape[1] // WIDE)
        height = rows[1] - rows[0]
        total = len(chosen) * out.shape[2] * blocks * height
        entries = len(self.columns) / (len(self.bounds) - 1)
        threads = thread_count(total * entries * out.shape[1] / blocks, _GRAIN)
        arrays = (
            self.bounds.numpy(),
            self.columns.numpy().view(np.uint32),
            self.values.numpy(),
            s.numpy().dtype.type(jd),
            places,
            s.numpy(),
            out.numpy(),
        )
        place = np.array([*rows, first_group])
        parts = [(*arrays, np.array(share), place) for share in shares(total, threads)]
        run_parts(product_tasks, parts)


@dataclass(frozen=True, eq=False)
class PaddedRows:
    r"""Places of sparse entries in rows of one length: entries first, then absent ones.

    .. math:: h_{ib} = b_{ib} + \sum_k v_{ik}\, s_{c(ik)\,b}, \qquad
        \Delta v_{ik} \propto \sum_b g_{ib}\, s_{c(ik)\,b}

    The values v, (rows, longest row), are 0 where there is no entry; they are given to each product
    and not held here, since learning changes them.

    Parameters
    ----------
    columns : Tensor of int64, (rows, longest row)
        Column of each entry; any where there is none.
    places : Tensor of int64, (entries)
        Where the entries are in the flattened rows, in their order.

    Examples
    --------
    >>> rows = PaddedRows.of(torch.tensor([0, 2, 3]), torch.tensor([0, 2, 1]))
    >>> values = rows.spread(torch.tensor([1.0, 2.0, 3.0]))
    >>> values.tolist()
    [[1.0, 2.0], [3.0, 0.0]]
    >>> rows.multiply(values, torch.tensor([[1.0], [10.0], [100.0]])).tolist()
    [[201.0], [30.0]]
    """

    columns: torch.Tensor
    places: torch.Tensor

    @classmethod
    def of(cls, bounds: torch.Tensor, columns: torch.Tensor) -> PaddedRows:
        """Return the places of compressed rows; the length of the longest is read."""
        height = len(bounds) - 1
        width = max(1, int(bounds.diff().max())) if len(columns) else 1
        row = rows_of_entries(bounds, len(columns))
        places = torch.arange(len(columns), device=bounds.device) - bounds[row] + row * width
        index = columns.new_zeros(height * width, dtype=torch.int64)
        index.index_copy_(0, places, columns.to(torch.int64))
        return cls(index.view(height, width), places)

    @classmethod
    def stacked(cls, parts: Sequence[PaddedRows], width: int) -> PaddedRows:
        """Return the rows of several networks, each of which has `width` columns of its own."""
        longest = max(part.columns.shape[1] for part in parts)
        columns, places, height = [], [], 0
        for number, part in enumerate(parts):
            length = part.columns.shape[1]
            more = torch.nn.functional.pad(part.columns, (0, longest - length))
            columns.append(more + number * width)
            row = part.places // length
            places.append(part.places + row * (longest - length) + height * longest)
            height += len(part.columns)
        return cls(torch.cat(columns), torch.cat(places))

    def spread(self, values: torch.Tensor) -> torch.Tensor:
        """Return values of the entries, (..., entries), as padded ones, (..., rows, longest)."""
        shape = (*values.shape[:-1], *self.columns.shape)
        padded = values.new_zeros((*values.shape[:-1], self.columns.numel()))
        return padded.index_copy_(-1, self.places, values).view(shape)

    def entries(self, padded: torch.Tensor) -> torch.Tensor:
        """Return the values of the entries, in their order."""
        return padded.reshape(-1).index_select(0, self.places)

    def multiply(
        self, values: torch.Tensor, lanes: torch.Tensor, external: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return the sums over entries of `lanes`, (columns, states), as (rows, states).

        An `external` field is added.
        """
        states = lanes.shape[1]
        step = self._step(states)
        if step >= states:
            values, gathered = values.to(lanes.dtype), self._gathered(lanes)
            if torch.compiler.is_compiling():  # which fuses: no term is ever stored
                sums = (values.unsqueeze(-1) * gathered).sum(1)
                return sums if external is None else external + sums
            if external is None:
                return torch.bmm(values.unsqueeze(1), gathered).squeeze(1)
            return torch.baddbmm(external.unsqueeze(1), values.unsqueeze(1), gathered).squeeze(1)
        out = lanes.new_empty((len(values), states))
        for first in range(0, states, step):
            part = slice(first, first + step)
            some = None if external is None else external[:, part]
            out[:, part] = self.multiply(values, lanes[:, part], some)
        return out

    def correlate(self, post: torch.Tensor, pre: torch.Tensor) -> torch.Tensor:
        """Return the sums over states of ``post[row] * pre[column]``, (rows, longest row)."""
        states = pre.shape[1]
        step = self._step(states)
        if step >= states:
            gathered = self._gathered(pre)
            if torch.compiler.is_compiling():
                return (post.unsqueeze(1) * gathered).sum(-1)
            return torch.bmm(gathered, post.unsqueeze(-1)).squeeze(-1)
        sums = pre.new_zeros(self.columns.shape)
        for first in range(0, states, step):
            part = slice(first, first + step)
            sums += self.correlate(post[:, part], pre[:, part])
        return sums

    def _step(self, states: int) -> int:
        """Return how many states to take together."""
        if torch.compiler.is_compiling():
            return states
        return max(1, _TERMS // max(1, self.columns.numel()))

    def _gathered(self, lanes: torch.Tensor) -> torch.Tensor:
        """Return the states that each entry sees, (rows, longest row, states)."""
        index = self.columns.view(-1)
        return lanes.index_select(0, index).view(*self.columns.shape, lanes.shape[1])


class SparseCouplings(PlasticCouplings):
    """Couplings whose J are compressed rows."""

    rows: CompressedRows

    @property
    def weights(self) -> torch.Tensor:
        """Values of the entries."""
        return self.rows.values

    @property
    def samples(self) -> int:
        """Number of networks."""
        return self.rows.samples

    @property
    def nbytes(self) -> int:
        """Memory of the entries and of their places."""
        return self.rows.nbytes

    @property
    def fan_in(self) -> int:
        """Neurons that a row of J ranges over."""
        return self.rows.size

    def check(self) -> None:
        """Refuse entries that are not finite."""
        check_size("rows", self.rows.values)

    def weights_of(self, sample: int) -> torch.Tensor:
        """Return the values of the entries of one network."""
        rows = self.rows
        if rows.shared:
            first, last = (len(rows.columns) * k for k in (sample, sample + 1))
        else:
            first, last = (rows.block_ends[k * rows.groups] for k in (sample, sample + 1))
        return rows.values[first:last]

    def with_weights(self, weights: torch.Tensor) -> Self:
        """Return the same pattern of one network with other values."""
        kept: Any = self
        return replace(kept, rows=self.rows.with_values(weights))  # type: ignore[no-any-return]

    def dense_blocks(self, sample: int) -> torch.Tensor:
        """Return J of one network, zeros included: (groups, rows, rows)."""
        rows = self.rows
        blocks = self.weights.new_zeros((rows.groups, rows.size * rows.size))
        for group, block in enumerate(blocks):
            bounds, columns, values = rows.entries(sample, group)
            places = rows_of_entries(bounds, len(columns)) * rows.size + columns
            block.index_copy_(0, places, values)
        return blocks.view(rows.groups, rows.size, rows.size)

    def squares(self, sample: int) -> tuple[float, float]:
        """Return the sums of J_ij^2 and of J_ij J_ji, from the entries that exist alone."""
        sums = [0.0, 0.0]
        for group in range(self.rows.groups):
            for index, part in enumerate(_squares_of_entries(self.rows, sample, group)):
                sums[index] += part
        return sums[0], sums[1]

    def reinforce_(
        self, post: torch.Tensor, pre: torch.Tensor, rate: float, *, symmetric: bool = False
    ) -> None:
        """Add rate * sum of g_i s_j; see :class:`rmsim.couplings.base.PlasticCouplings`."""
        rows, same = self.rows, post is pre
        lanes = post.flatten(1).T.contiguous(), pre.flatten(1).T.contiguous()
        product = rows.padded.correlate(*lanes)
        if symmetric and not same:
            product, rate = product + rows.padded.correlate(*reversed(lanes)), rate / 2
        rows.values.add_(rows.padded.entries(product), alpha=rate)

    def compressed(self) -> CompressedRows:
        """Return the rows."""
        return self.rows

    def pattern(self) -> dict[str, torch.Tensor]:
        """Return which entries exist, and whether they may couple all neurons."""
        return {
            "bounds": self.rows.bounds,
            "columns": self.rows.columns,
            "groups": torch.tensor(self.rows.groups),
            "adjacency": torch.tensor(self.rows.shared),
        }


def rows_of_entries(bounds: torch.Tensor, entries: int | None = None) -> torch.Tensor:
    """Return the row of each entry of compressed rows; if their number is given, without waiting.

    Examples
    --------
    >>> rows_of_entries(torch.tensor([0, 2, 2, 3])).tolist()
    [0, 0, 2]
    """
    rows = torch.arange(len(bounds) - 1, device=bounds.device)
    return rows.repeat_interleave(bounds.diff(), output_size=entries)


def compressed(present: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return bounds and columns of the entries of a matrix that are True.

    Examples
    --------
    >>> bounds, columns = compressed(torch.tensor([[True, False], [True, True]]))
    >>> bounds.tolist(), columns.tolist()
    ([0, 1, 3], [0, 0, 1])
    """
    counts = present.sum(1)
    bounds = torch.cat((counts.new_zeros(1), counts.cumsum(0)))
    return bounds, present.nonzero()[:, 1].to(torch.int32)


def _squares_of_entries(rows: CompressedRows, sample: int, group: int) -> tuple[float, float]:
    """Return sum J_ij^2 and sum J_ij J_ji of one block, from the entries that exist alone."""
    bounds, columns, values = rows.entries(sample, group)
    row, column, double = rows_of_entries(bounds), columns.to(torch.int64), values.double()
    places, order = (row * rows.size + column).sort()
    if not len(places):
        return 0.0, 0.0
    mirrored = column * rows.size + row
    nearest = torch.searchsorted(places, mirrored).clamp_(max=len(places) - 1)
    there = places[nearest] == mirrored
    crossed = (double * double[order[nearest]])[there].sum()
    return float((double * double).sum()), float(crossed)


@compiled
def _turn_entries(
    bounds: Any, columns: Any, values: Any, size: int, starts: Any, rows: Any, turned: Any
) -> None:
    """Sort the entries of compressed rows by columns, within blocks of `size` rows."""
    height = len(bounds) - 1
    for row in range(height):
        origin = row // size * size + 1
        for entry in range(bounds[row], bounds[row + 1]):
            starts[origin + columns[entry]] += 1
    for column in range(height):
        starts[column + 1] += starts[column]
    following = starts[:-1].copy()
    for row in range(height):
        origin = row // size * size
        for entry in range(bounds[row], bounds[row + 1]):
            place = following[origin + columns[entry]]
            following[origin + columns[entry]] += 1
            rows[place], turned[place] = row - origin, values[entry]


# The compiled product.


#: Lanes of the kernels: states that go together, at most, and fewer for a small rest.
WIDE, _NARROW, _LEAST = 32, 16, 8
#: Numbers of one sum, at most: a register of AVX-512, or two of AVX2.
_WIDTH = 16
#: Rows done before their sums are copied from lane to state order: a few cache lines of each state.
_ROWS = 64
#: Side of the squares by which they are turned, in registers.
_SIDE = 8
#: Neurons copied together from state to lane order.
_CHUNK = 1024
#: Neurons beyond which 32 lanes of floats no longer fit a second-level cache of 1 MB or so.
_WIDEST = 12_000

_WORD, _HALF = ir.IntType(64), ir.IntType(32)


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
        here, there = (network, rows[2] + group), (network, group, first)
        low = rows[0] + max(part[0] - task * height, 0)
        high = rows[0] + min(part[1] - task * height, height)
        span = (low, high, rows[0])
        count = last - first
        if _pack_signs(s, here, first, last, words):
            width = WIDE if count > _NARROW else _NARROW if count > _LEAST else _LEAST
            _multiply_rows(inside, columns, own, jd, words, width, out, there, count, span)
            continue
        if len(lanes) == 0:
            lanes = np.zeros((size, most), s.dtype)
        for start in range(first, last, most):
            end = min(last, start + most)
            _pack_floats(s, here, start, end, lanes)
            there = (network, group, start)
            _multiply_rows(inside, columns, own, jd, lanes, most, out, there, end - start, span)


@compiled
def _multiply_rows(
    bounds: Any,
    columns: Any,
    values: Any,
    jd: Any,
    lanes: Any,
    width: int,
    out: Any,
    there: Any,
    count: int,
    rows: Any,
) -> None:
    """Write the product of `rows` with the lanes of `count` states into `out`.

    `there` are network, group and first state. All of `out` is given, and not the part that is
    written: numba knows then that its rows are contiguous.
    """
    network, group, first = there
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
        for state in range(count):
            line = out[network, first + state, group, start - rows[2] : end - rows[2]]
            for row in range(end - start):
                line[row] = turned[state, row]


@compiled
def _pack_floats(s: Any, here: Any, first: int, last: int, lanes: Any) -> None:
    """Copy states `first` to `last` of a network and group into `lanes`, (m, width)."""
    size = s.shape[3]
    for start in range(0, size, _ROWS):
        for state in range(first, last):
            line = s[here[0], state, here[1]]
            for neuron in range(start, min(size, start + _ROWS)):
                lanes[neuron, state - first] = line[neuron]


@compiled
def _pack_signs(s: Any, here: Any, first: int, last: int, words: Any) -> bool:
    """Set bit b of ``words[i]`` where state ``first + b`` of a network and group is -1.

    Returns
    -------
    bool
        Whether all states are +1 or -1; if not, `words` is of no use.
    """
    size, zero, one = s.shape[3], s.dtype.type(0), s.dtype.type(1)
    for start in range(0, size, _CHUNK):
        end = min(size, start + _CHUNK)
        part = words[start:end]
        part[:] = 0
        other = False
        for state in range(first, last):
            bit, line = np.uint32(1 << (state - first)), s[here[0], state, here[1], start:end]
            for neuron in range(end - start):
                part[neuron] |= bit if line[neuron] < zero else np.uint32(0)
                other |= abs(line[neuron]) != one
        if other:
            return False
    return True


def _add_floats(
    builder: Any, sums: list[Any], value: Any, lanes: Any, column: Any, vector: Any, aligned: int
) -> None:
    """Add value * s to the sums; the lanes s of one neuron follow one another."""
    width = vector.count
    origin = builder.mul(column, ir.Constant(_WORD, width * len(sums)))
    same = splat(builder, value, width)
    for index, total in enumerate(sums):
        place = builder.add(origin, ir.Constant(_WORD, width * index))
        state = builder.load(vector_at(builder, lanes, place, vector), align=aligned)
        product = builder.fmul(same, state, flags=("contract",))
        builder.store(builder.fadd(product, builder.load(total), ("contract",)), total)


def _add_signs(
    builder: Any, sums: list[Any], value: Any, words: Any, column: Any, vector: Any, bits: int
) -> None:
    """Add -value to the lanes whose bit is set in the word of the neuron, value to the others."""
    whole, width = ir.IntType(bits), vector.count
    word = builder.load(builder.gep(words, [column]))
    word = splat(builder, word if bits == 32 else builder.zext(word, whole), width)
    plus, minus = (splat(builder, x, width) for x in (value, builder.fneg(value)))
    for index, total in enumerate(sums):
        # The bit of each lane moves to where the sign of an integer is.
        shifts = [bits - 1 - width * index - lane for lane in range(width)]
        moved = builder.shl(word, ir.Constant(word.type, shifts))
        down = builder.icmp_signed("<", moved, ir.Constant(word.type, [0] * width))
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
            vector = ir.VectorType(number, min(width, _WIDTH))
            sums = [cgutils.alloca_once(builder, vector) for _ in range(width // vector.count)]
            for one in sums:
                builder.store(ir.Constant(vector, [0.0] * vector.count), one)

            def add(value: Any, column: Any) -> None:
                if isinstance(signature.args[2].dtype, types.Integer):
                    _add_signs(builder, sums, value, lane_at, column, vector, bits)
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
                place = ir.Constant(_WORD, vector.count * index)
                pointer = vector_at(builder, total_at, place, vector)
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
            return [vector_at(builder, data, place, vector) for place in places]

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
