r"""A batch of many networks by tensor operations: the route of a GPU.

.. math:: s \leftarrow \mathrm{sgn}(J s + W_{in} x + W_{back} y), \qquad
    \Delta J = \text{rate}\; g\,s^T, \qquad g = s^*\, w(s^* h)

as in :mod:`rmsim.learning.phases` and :mod:`rmsim.learning.plasticity`, for networks of one
structure (the same sizes, phases and kind of rule; their seeds, couplings, strengths, margins,
rates and decays differ) that learn side by side. States have shape (networks x blocks, n, samples):
the samples are last, so that a gather reads them together.

Small networks on a GPU are limited by the number of operations that the host launches, and by every
number that it waits for. So J_D is on the diagonal of J while it learns, and J_D and lambda of
sparse networks are two or three more entries of each row; external fields are added by the product;
and a sign is one operation, :func:`torch.copysign`: sums that begin with an external field without
-0 are never -0. Samples, their order, label codes and the keys of masks are sent to the device once
per call of :meth:`TensorLearner.learn`, and masks are made for many batches at once; nothing is
read back within a batch, unless phases stop at convergence, which is tested every 16 sweeps (every
sweep on a CPU).

With `compile` a batch is one graph of :func:`torch.compile`; if phases stop at convergence, a sweep
is one graph and the update another.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import torch

from rmsim.couplings.base import PlasticCouplings
from rmsim.couplings.rows import PaddedRows
from rmsim.dynamics.sweeps import mask_keys, mask_threshold, masks_torch
from rmsim.learning.parameters import Parameters
from rmsim.learning.phases import LEARNING, label_code
from rmsim.learning.plasticity import label_signs, weight
from rmsim.learning.state import Projection, State
from rmsim.tensors import checked_sync_interval, traced

#: Bytes of inputs, and of pairs of inputs and labels, that are put into the order of an epoch at a
#: time.
_SPACE = 2**28

#: Masks, of one neuron in one sweep of one sample, that are made at a time, 20 bytes each.
_MASKS = 2**22

#: Multiplications up to which a product of a graph is a sum. Estimated: a GPU that does 5e11 in a
#: second, without its units for products, takes 8 microseconds, as long as a launch.
_FUSED = 2**22


def structure(parameters: Parameters, state: State) -> tuple[object, ...]:
    """Return what networks have in common that :class:`TensorLearner` takes together."""
    rows = state.couplings.compressed()
    sparse = tuple(one.bounds is not None for one in (state.w_in, state.w_back))
    learning = (parameters.j, parameters.w_in, parameters.w_back, parameters.readout)
    decays = (parameters.j.decay, parameters.w_in.decay, parameters.readout.decay)
    return (
        *(parameters.couplings.shape, None if rows is None else rows.groups, sparse),
        *(state.inputs, state.classes, len(state.w_out), state.dtype, state.device),
        *(parameters.phases, parameters.rule, parameters.couplings.symmetry, parameters.batch.size),
        *(tuple(one.eta > 0 for one in learning), tuple(decay > 0 for decay in decays)),
        parameters.j.kappa == parameters.w_in.kappa,
    )


#: Inputs, label codes and signs of the labels of a batch, (networks or 1, width, samples); and what
#: :meth:`_External.pairs` gives for it.
_Signals = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]

#: A number of every network: one float if all have the same, else a tensor (networks, 1, 1).
_Numbers = float | torch.Tensor


class _Matrix(Protocol):
    """Weights of all networks, (networks or blocks, rows, columns)."""

    @property
    def values(self) -> torch.Tensor:
        """Those that exist, as the kind stores them."""

    def field(self, s: torch.Tensor, external: torch.Tensor) -> torch.Tensor:
        """Return the external field plus W s, (networks or blocks, rows, samples)."""

    def add_(self, post: torch.Tensor, pre: torch.Tensor, rate: _Numbers, half: bool) -> None:
        """Add rate * sum over samples of post_i pre_j; with `half`, of (i, j) and (j, i), / 2."""

    def shrink_(self, factor: _Numbers) -> None:
        """Multiply those of each network."""

    def split(self, sizes: Sequence[int]) -> Iterable[torch.Tensor]:
        """Return the weights of each network, of which `sizes` exist, as projections store them."""


def _product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product of the matrices of each network.

    A small one is a sum while a graph is traced: the compiler fuses that with what stands around
    it, which it cannot do with a product of a library, so that a sweep is launched at once.
    """
    if torch.compiler.is_compiling() and a.numel() * b.shape[-1] <= _FUSED:
        return (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2)
    return torch.bmm(a, b)


def _plus_product(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return x plus the product, in one operation; in a graph x is added by what comes next."""
    if torch.compiler.is_compiling():
        return x + _product(a, b)
    return torch.baddbmm(x, a, b)


class _Dense:
    """Whole matrices."""

    def __init__(self, values: torch.Tensor) -> None:
        self.values = values

    def field(self, s: torch.Tensor, external: torch.Tensor) -> torch.Tensor:
        """Return the external field plus W s."""
        return _plus_product(external, self.values, s)

    def add_(self, post: torch.Tensor, pre: torch.Tensor, rate: _Numbers, half: bool) -> None:
        """Add the products of a batch."""
        post, factor = _scaled(post, rate)
        if half:
            product = _product(post, pre.mT)
            self.values.add_(product + product.mT, alpha=factor / 2)  # symmetric to the last bit
        elif torch.compiler.is_compiling():
            self.values.add_(_product(post, pre.mT), alpha=factor)
        else:
            self.values.baddbmm_(post, pre.mT, alpha=factor)

    def shrink_(self, factor: _Numbers) -> None:
        """Multiply the matrix of each network."""
        self.values.mul_(factor)

    def split(self, sizes: Sequence[int]) -> Iterable[torch.Tensor]:
        """Return the matrix of each network."""
        return self.values.unbind()


class _Rows:
    """Padded rows; those entries change where `learns` is 1."""

    def __init__(
        self, rows: PaddedRows, values: torch.Tensor, learns: torch.Tensor, networks: int
    ) -> None:
        self.rows, self.values, self.learns, self.networks = rows, values, learns, networks

    def field(self, s: torch.Tensor, external: torch.Tensor) -> torch.Tensor:
        """Return the external field plus W s."""
        samples = s.shape[-1]
        external = external.expand(self.networks, len(self.values) // self.networks, samples)
        flat = s.reshape(-1, samples), external.reshape(-1, samples)
        return self.rows.multiply(self.values, *flat).view(self.networks, -1, samples)

    def add_(self, post: torch.Tensor, pre: torch.Tensor, rate: _Numbers, half: bool) -> None:
        """Add the products of a batch."""
        post, factor = _scaled(post, rate)
        one, two = post.reshape(-1, post.shape[-1]), pre.reshape(-1, pre.shape[-1])
        product = self.rows.correlate(one, two)
        if half:
            product, factor = product + self.rows.correlate(two, one), factor / 2
        self.values.addcmul_(product, self.learns, value=factor)

    def shrink_(self, factor: _Numbers) -> None:
        """Multiply the entries of each network."""
        self.values.view(self.networks, -1, 1).mul_(factor)

    def split(self, sizes: Sequence[int]) -> Iterable[torch.Tensor]:
        """Return the entries of each network."""
        return torch.split_with_sizes(self.rows.entries(self.values), list(sizes))


def _scaled(x: torch.Tensor, factor: _Numbers) -> tuple[torch.Tensor, float]:
    """Return x and a factor of it, multiplied already if networks have different ones."""
    if isinstance(factor, float):
        return x, factor
    return (x.view(len(factor), -1, x.shape[-1]) * factor).view(x.shape), 1.0


def _spread_rows(parts: Sequence[tuple[PaddedRows, torch.Tensor]], width: int) -> _Rows:
    """Return the sparse weights of several networks, each with `width` columns."""
    rows = PaddedRows.stacked([part for part, _ in parts], width)
    values = rows.spread(torch.cat([own for _, own in parts]))
    learns = rows.spread(torch.ones_like(torch.cat([own for _, own in parts])))
    return _Rows(rows, values, learns, len(parts))


class _External:
    r"""W_in and W_back of all networks, `feed` and `back`, and the fields that they give.

    Whole matrices lie side by side, so that one product gives both fields,

    .. math:: [W_{in}\; W_{back}] \begin{pmatrix} x & x \\ 0 & y \end{pmatrix}.
    """

    feed: _Dense | _Rows
    back: _Dense | _Rows

    def __init__(self, states: Sequence[State]) -> None:
        self.feed = _projection([each.w_in for each in states])
        self.back = _projection([each.w_back for each in states])
        self.networks = len(states)
        self.whole: _Dense | None = None  # the two side by side, if none is sparse
        if isinstance(self.feed, _Dense) and isinstance(self.back, _Dense):
            self.whole = _Dense(torch.cat([self.feed.values, self.back.values], -1))
            parts = torch.split_with_sizes(
                self.whole.values, [states[0].inputs, states[0].classes], -1
            )
            self.feed, self.back = map(_Dense, parts)

    def pairs(
        self, inputs: torch.Tensor, codes: torch.Tensor, size: int
    ) -> Iterator[torch.Tensor | None]:
        """Give for each batch of samples (networks or 1, samples, width) the matrix of x and y.

        None if W_in or W_back is sparse.
        """
        if self.whole is None:
            while True:
                yield None
        samples, width = inputs.shape[1:]
        last = samples // size * size
        for first, end, count in ((0, last, size), (last, samples, samples - last)):
            if first == end:
                continue
            networks = max(len(inputs), len(codes))  # codes may be those of each network
            shape = (networks, (end - first) // count, 2, count, width + codes.shape[2])
            pair = inputs.new_zeros(shape)
            pair[..., :width] = inputs[:, first:end].view(len(inputs), -1, 1, count, width)
            own = codes[:, first:end].view(len(codes), -1, count, codes.shape[2])
            pair[:, :, 1, :, width:] = own
            for one in pair.flatten(2, 3).unbind(1):
                yield one.mT

    def fields(
        self, x: torch.Tensor, code: torch.Tensor, pair: torch.Tensor | None, zero: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the field of the inputs of a batch, and with that of its labels; never -0."""
        if self.whole is None or pair is None:
            field = self.feed.field(x.expand(self.networks, -1, -1), zero)
            return field, self.back.field(code.expand(self.networks, -1, -1), field)
        h = self.whole.field(pair.expand(self.networks, -1, -1), zero)
        return h[..., : x.shape[-1]], h[..., x.shape[-1] :]


class _Chain(ABC):
    """J, J_D and lambda of networks that learn; states have the shape (networks L, n, samples)."""

    matrix: _Matrix

    def __init__(self, parameters: Sequence[Parameters], states: Sequence[State]) -> None:
        self.states, self.parameters = states, parameters
        self.layers, self.n = parameters[0].couplings.shape
        networks, state = len(states), states[0]
        self.shape = (networks, self.layers, self.n, -1)
        self.jd, self.left, self.right = (
            torch.tensor(values, dtype=state.dtype).to(state.device).view(-1, 1, 1, 1)
            for values in zip(*(each.couplings.chain for each in parameters), strict=True)
        )
        self._not_tested = self.jd * (not parameters[0].rule.test_jd)
        self._tests_right = self.layers == 1 or parameters[0].rule.test_right

    @staticmethod
    def of(parameters: Sequence[Parameters], states: Sequence[State]) -> _Chain:
        """Return the chain of networks of the same kind of couplings."""
        dense = states[0].couplings.compressed() is None
        return (_DenseChain if dense else _SparseChain)(parameters, states)

    @abstractmethod
    def field(self, s: torch.Tensor, external: torch.Tensor) -> torch.Tensor:
        """Return h of all layers."""

    @abstractmethod
    def layer_field(
        self, layer: int, parts: Sequence[torch.Tensor], external: torch.Tensor
    ) -> torch.Tensor:
        """Return h of one layer, (networks, n, samples), from the states of all layers."""

    @abstractmethod
    def shrink_(self, factor: _Numbers) -> None:
        """Multiply the entries that learn."""

    def restore(self) -> None:  # noqa: B027  # sparse entries of J_D do not learn
        """Write J_D to its place again after J has learnt."""

    @abstractmethod
    def weights(self) -> Iterable[torch.Tensor]:
        """Return J of each network as its couplings store it."""

    def split(self) -> list[PlasticCouplings]:
        """Return the couplings of each network."""
        return [
            each.couplings.with_weights(own.clone())
            for each, own in zip(self.states, self.weights(), strict=True)
        ]

    def by_layer(self, s: torch.Tensor) -> list[torch.Tensor]:
        """Return the states of each layer, (networks, n, samples)."""
        return [part.contiguous() for part in s.view(self.shape).unbind(1)]

    def together(self, parts: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return what :meth:`by_layer` was given."""
        return torch.stack(list(parts), 1).flatten(0, 1)

    def against(self, s: torch.Tensor, external: torch.Tensor) -> torch.Tensor:
        """Return minus the margin s h of the field that the rule tests.

        Without J_D it is J_D - s h of the whole field, for s = +-1: rounded as s (h - J_D s) is.
        """
        inside, states = self.tested(s, external).view(self.shape), s.view(self.shape)
        return torch.addcmul(self._not_tested, states, inside, value=-1)

    def tested(self, s: torch.Tensor, external: torch.Tensor) -> torch.Tensor:
        """Return h without the layers on the right, if the rule does not test them."""
        h = self.field(s, external)
        if not self._tests_right:
            inside, states = h.view(self.shape), s.view(self.shape)
            inside[:, :-1].addcmul_(states[:, 1:], self.right, value=-1)
        return h


class _SparseChain(_Chain):
    """Rows of J with J_D and lambda as their last entries."""

    matrix: _Rows

    def __init__(self, parameters: Sequence[Parameters], states: Sequence[State]) -> None:
        super().__init__(parameters, states)
        self.matrix = self._with_fixed_entries()

    def _with_fixed_entries(self) -> _Rows:
        """Return sparse J with J_D and lambda as the last entries of every row."""
        neurons = self.layers * self.n
        parts = []
        for state in self.states:
            held = state.couplings.compressed()
            assert held is not None
            parts.append((held.padded, state.j))
        stacked = _spread_rows(parts, neurons)
        index = torch.arange(len(stacked.values), device=stacked.values.device)
        layer = (index // self.n % self.layers).view(-1, self.layers, self.n, 1)
        columns, values = [stacked.rows.columns], [stacked.values]
        steps = [(0, self.jd)]
        if self.parameters[0].couplings.layers > 1:
            steps += [(-1, self.left), (1, self.right)]
        for step, coupling in steps:
            there = (layer + step >= 0) & (layer + step < self.layers)
            columns.append((index.view(layer.shape) + step * self.n * there).view(-1, 1))
            values.append((coupling * there).view(-1, 1))
        width = stacked.values.shape[1] + len(steps)
        row = stacked.rows.places // stacked.values.shape[1]
        places = stacked.rows.places + row * len(steps)
        rows = PaddedRows(torch.cat(columns, 1), places)
        learns = torch.nn.functional.pad(stacked.learns, (0, len(steps)))
        assert rows.columns.shape[1] == width
        return _Rows(rows, torch.cat(values, 1), learns, len(self.states) * self.layers)

    def field(self, s: torch.Tensor, external: torch.Tensor) -> torch.Tensor:
        """Return h of all layers."""
        return self.matrix.field(s, external)

    def layer_field(
        self, layer: int, parts: Sequence[torch.Tensor], external: torch.Tensor
    ) -> torch.Tensor:
        """Return h of one layer."""
        s = self.together(parts).flatten(0, 1)
        some = slice(layer * self.n, (layer + 1) * self.n)
        networks, width = len(self.states), self.matrix.values.shape[1]
        columns, values = (
            x.view(networks, -1, width)[:, some].reshape(-1, width)
            for x in (self.matrix.rows.columns, self.matrix.values)
        )
        rows = PaddedRows(columns, self.matrix.rows.places)
        return rows.multiply(values, s, external.flatten(0, 1)).view(external.shape)

    def shrink_(self, factor: _Numbers) -> None:
        """Multiply the entries that learn."""
        values = self.matrix.values
        shape = (len(self.states), -1, values.shape[1])
        learns = self.matrix.learns.view(shape)
        values.copy_((values.view(shape) * (1 + (factor - 1) * learns)).view(values.shape))

    def weights(self) -> Iterable[torch.Tensor]:
        """Return the entries of J of each network."""
        return self.matrix.split([len(each.j) for each in self.states])


class _DenseChain(_Chain):
    """Whole matrices J with J_D on their diagonals; lambda by one product over the layers."""

    matrix: _Dense

    def __init__(self, parameters: Sequence[Parameters], states: Sequence[State]) -> None:
        super().__init__(parameters, states)
        self.matrix = _Dense(torch.cat([each.j for each in states]))
        self._diagonal = self.jd.expand(-1, self.layers, 1, self.n).reshape(-1, self.n)
        self._mixing = self._of_layers(right=True)
        self._tested = self._mixing if self._tests_right else self._of_layers(right=False)
        self.restore()

    def _of_layers(self, right: bool) -> torch.Tensor:
        """Return what a layer gets from each, (networks, L, L): lambda next to the diagonal."""
        both = torch.stack([self.left.flatten(), self.right.flatten() * right])
        beside = [torch.diag(both.new_ones(self.layers - 1), step) for step in (-1, 1)]
        return torch.einsum("kn,kij->nij", both, torch.stack(beside))

    def field(self, s: torch.Tensor, external: torch.Tensor) -> torch.Tensor:
        """Return h of all layers."""
        return self._mixed(s, external, self._mixing)

    def tested(self, s: torch.Tensor, external: torch.Tensor) -> torch.Tensor:
        """Return h without the layers on the right, if the rule does not test them."""
        return self._mixed(s, external, self._tested)

    def _mixed(self, s: torch.Tensor, external: torch.Tensor, mixing: torch.Tensor) -> torch.Tensor:
        h = self.matrix.field(s, external)
        if self.layers > 1:
            shape = (*self.shape[:2], -1)
            h = _plus_product(h.view(shape), mixing, s.view(shape)).view(h.shape)
        return h

    def layer_field(
        self, layer: int, parts: Sequence[torch.Tensor], external: torch.Tensor
    ) -> torch.Tensor:
        """Return h of one layer."""
        own = self.matrix.values.view(len(self.states), self.layers, self.n, self.n)[:, layer]
        h = _plus_product(external, own, parts[layer])
        if layer > 0:
            h = torch.addcmul(h, parts[layer - 1], self.left[:, 0])
        if layer < self.layers - 1:
            h = torch.addcmul(h, parts[layer + 1], self.right[:, 0])
        return h

    def shrink_(self, factor: _Numbers) -> None:
        """Multiply the entries that learn."""
        self.matrix.values.view(len(self.states), -1, self.n).mul_(factor)

    def restore(self) -> None:
        """Write J_D to the diagonals again."""
        self.matrix.values.diagonal(dim1=-2, dim2=-1).copy_(self._diagonal)

    def weights(self) -> Iterable[torch.Tensor]:
        """Return the matrices of each network, without J_D."""
        values = self.matrix.values.clone()
        values.diagonal(dim1=-2, dim2=-1).zero_()
        return values.view(len(self.states), self.layers, self.n, self.n).unbind()


class TensorLearner:
    """Networks of one :func:`structure` that learn side by side.

    Parameters
    ----------
    parameters, states : sequence
        The protocol and the weights of each, which stay as they are.
    compile : bool
        Compile the step of a whole batch by :func:`torch.compile`.
    """

    def __init__(
        self, parameters: Sequence[Parameters], states: Sequence[State], *, compile: bool = False
    ) -> None:
        self.parameters, self.states = tuple(parameters), tuple(states)
        one, state = self.parameters[0], self.states[0]
        self.shape = one.couplings.shape
        self._one = one
        self._chain = _Chain.of(self.parameters, self.states)
        self._external = _External(self.states)
        self._out = _Dense(torch.stack([each.w_out for each in states]))
        self._unit, self._zero = (
            torch.full((1, 1, 1), x, dtype=state.dtype, device=state.device) for x in (1.0, 0.0)
        )
        self._seen_by: dict[str, torch.Tensor | None] = {}
        masks = {name: [getattr(each, name) for each in states] for name in _NEURONS}
        whole = torch.stack([torch.stack(own).all() for own in masks.values()]).tolist()
        for (name, own), everywhere in zip(masks.items(), whole, strict=True):
            self._seen_by[name] = None if everywhere else torch.stack(own).unsqueeze(-1)
        self._kappa = {
            name: self._numbers([group(each).kappa for each in parameters])
            for name, group in _GROUPS.items()
        }
        #: Minus margins above these learn by the perceptron rule: margins up to kappa do.
        self._limits = {
            name: self._numbers([_below(-group(each).kappa, state.dtype) for each in parameters])
            for name, group in _GROUPS.items()
        }
        self._decay = {
            "j": self._numbers([p.decay("j", state.couplings.fan_in) for p in parameters]),
            "in": self._numbers([p.decay("in", state.inputs) for p in parameters]),
            "out": self._numbers([p.decay("out", p.neurons) for p in parameters]),
        }
        levels = {(p.w_back.label_true, p.w_back.label_other) for p in parameters}
        self._one_code = len(levels) == 1
        self._every = checked_sync_interval(state.device)
        self._rates: dict[int, dict[str, _Numbers]] = {}
        self._batch: Callable[..., None] = TensorLearner._learn_batch
        self._one_sweep: Callable[..., torch.Tensor] = TensorLearner._sweep
        self._change: Callable[..., None] = TensorLearner._update
        if compile:
            kind = (self.parameters, structure(one, state))
            if one.phases.stop == "fixed":
                self._batch = traced(self._batch, kind)
            else:
                self._one_sweep = traced(self._one_sweep, kind)
                self._change = traced(self._change, kind)

    def _numbers(self, values: Sequence[float]) -> _Numbers:
        if len({*values}) == 1:
            return float(values[0])
        state = self.states[0]
        return torch.tensor(values, dtype=state.dtype, device=state.device).view(-1, 1, 1)

    # Samples.

    def learn(self, x: torch.Tensor, y: torch.Tensor, orders: Sequence[torch.Tensor]) -> None:
        """Learn samples in batches; a last one may be smaller.

        Parameters
        ----------
        x, y : Tensor
            All samples, on any device.
        orders : sequence of Tensor
            For each network, which to take; if all are the same tensor, samples are shared.
        """
        state, size = self.states[0], self._one.batch.size
        shared = all(order is orders[0] for order in orders)
        chosen = orders[:1] if shared else orders
        width = state.dtype.itemsize * x.shape[1] * len(chosen)
        if self._external.whole is not None:  # pairs are there as well
            pairs_of = len(chosen) if self._one_code else len(self.parameters)
            width += 2 * state.dtype.itemsize * (x.shape[1] + state.classes) * pairs_of
        together = size * max(1, _SPACE // (size * max(1, width)))
        for first in range(0, len(orders[0]), together):
            part = torch.stack([order[first : first + together] for order in chosen])
            x_part, y_part = self._taken(x, part), self._taken(y, part)
            inputs = x_part.to(dtype=state.dtype, device=state.device)
            codes, signs = self._codes(y_part.to(state.device))
            masks = self._masks_of_batches(part.shape[1])
            pairs = self._external.pairs(inputs, codes, size)
            for start in range(0, part.shape[1], size):
                batch = slice(start, start + size)
                columns = inputs[:, batch].mT, codes[:, batch].mT, signs[:, batch].mT
                self._learn((*columns, next(pairs)), next(masks))

    def _taken(self, samples: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
        return samples[order.to(samples.device)]

    def _codes(self, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return y of the field and y of the readout, (networks or 1, samples, C)."""
        state = self.states[0]
        shape = (*labels.shape[:2], state.classes)
        flat = labels.flatten(0, 1)
        signs = label_signs(state, flat).view(shape)
        if labels.dim() == 3 or self._one_code:
            return label_code(self._one, state, flat).view(shape), signs
        own = labels.expand(len(self.parameters), -1)
        codes = [label_code(p, state, y) for p, y in zip(self.parameters, own, strict=True)]
        return torch.stack(codes), signs

    def _mask_keys(self, samples: int) -> torch.Tensor | None:
        """Return the keys of the masks of the next batches, (batches, networks, B, 2)."""
        if self._one.phases.p == 1:
            return None
        size, batches = self._one.batch.size, -(-samples // self._one.batch.size)
        last = samples - (batches - 1) * size
        keys = torch.zeros((batches, len(self.states), size, 2), dtype=torch.int64)
        for index, state in enumerate(self.states):
            numbers = range(state.step + 1, state.step + batches)
            keys[:-1, index] = mask_keys(state.seed, numbers, size, LEARNING)
            number = state.step + batches  # its keys depend on how many samples there are
            (keys[-1, index, :last],) = mask_keys(
                state.seed, range(number, number + 1), last, LEARNING
            )
        return keys.to(self.states[0].device)

    def _masks_of_batches(self, samples: int) -> Iterator[list[torch.Tensor] | None]:
        """Give for each of the next batches which neurons each sweep updates.

        These are (networks x L, n, samples), and made for many batches at once.
        """
        keys, size = self._mask_keys(samples), self._one.batch.size
        if keys is None:
            while True:
                yield None
        phases, neurons = self._one.phases, self._one.neurons
        sweeps = phases.warmup + phases.clamped + phases.free_sweeps
        threshold = mask_threshold(phases.p)
        of_batch = sweeps * neurons * keys.shape[1] * size
        whole, step = samples // size, max(1, _MASKS // of_batch)
        blocks = [(first, min(first + step, whole), size) for first in range(0, whole, step)]
        if samples % size:
            blocks.append((whole, whole + 1, samples % size))
        for first, last, count in blocks:
            own = keys[first:last, :, :count].flatten(0, 1)
            shape = (last - first, keys.shape[1] * self.shape[0], self.shape[1], count)
            masks = [one.view(shape) for one in masks_torch(own, sweeps, threshold, neurons)]
            for batch in range(last - first):
                yield [one[batch] for one in masks]

    def _learn(self, columns: _Signals, masks: list[torch.Tensor] | None) -> None:
        samples = columns[0].shape[-1]
        if samples not in self._rates:
            self._rates[samples] = self._rates_of(samples)
        # A last batch is smaller: not worth a graph of its own.
        whole = samples == self._one.batch.size
        step = self._batch if whole else TensorLearner._learn_batch
        step(self, *columns, self._rates[samples], masks)
        self.states = tuple(replace(each, step=each.step + 1) for each in self.states)

    def _rates_of(self, samples: int) -> dict[str, _Numbers]:
        state, parameters = self.states[0], self.parameters
        return {
            "j": self._numbers([p.rate("j", state.couplings.fan_in, samples) for p in parameters]),
            "in": self._numbers([p.rate("in", state.inputs, samples) for p in parameters]),
            "back": self._numbers([p.rate("back", state.classes, samples) for p in parameters]),
            "out": self._numbers([p.rate("out", p.neurons, samples) for p in parameters]),
        }

    def finish(self) -> list[State]:
        """Return the weights of every network."""
        couplings = self._chain.split()
        w_in = _separate(self._external.feed, [each.w_in for each in self.states])
        w_back = _separate(self._external.back, [each.w_back for each in self.states])
        parts = zip(self.states, couplings, w_in, w_back, self._out.values.unbind(), strict=True)
        return [
            replace(each, couplings=j, w_in=feed, w_back=back, w_out=out.clone())
            for each, j, feed, back, out in parts
        ]

    # A batch.

    def _learn_batch(
        self,
        x: torch.Tensor,
        code: torch.Tensor,
        signs: torch.Tensor,
        pair: torch.Tensor | None,
        rates: dict[str, _Numbers],
        masks: list[torch.Tensor] | None,
    ) -> None:
        networks = len(self.parameters)
        shape = (networks * self.shape[0], self.shape[1], x.shape[-1])
        fields = self._external.fields(x, code, pair, self._zero)
        field, both = (one.view(shape) for one in fields)
        s = self._present(field, both, masks)
        self._change(self, s, field, both, x, code, signs, rates)

    def _present(
        self, field: torch.Tensor, both: torch.Tensor, masks: list[torch.Tensor] | None
    ) -> torch.Tensor:
        """Return s* of a batch."""
        phases = self._one.phases
        until = phases.stop == "converged"
        s: torch.Tensor | None = None
        done = 0
        for count, external, ask in (
            (phases.warmup, field, False),
            (phases.clamped, both, until),
            (phases.free_sweeps, field, until),
        ):
            for sweep in range(count):
                mask = None if masks is None else masks[done + sweep]
                old, s = s, self._one_sweep(self, s, external, mask)
                if (
                    ask
                    and (sweep + 1) % self._every == 0
                    and self._is_fixed(old, s, external, mask)
                ):
                    break
            done += count
        assert s is not None
        return s

    def _is_fixed(
        self,
        old: torch.Tensor | None,
        s: torch.Tensor,
        external: torch.Tensor,
        mask: torch.Tensor | None,
    ) -> bool:
        """Return whether all states are fixed points: the host waits."""
        if mask is not None:
            old = self._one_sweep(self, s, external, None)
        return old is not None and torch.equal(old, s)

    def _sweep(
        self, s: torch.Tensor | None, external: torch.Tensor, mask: torch.Tensor | None
    ) -> torch.Tensor:
        """Return the states after one sweep; None stands for s = 0."""
        layers = self.shape[0]
        if self._one.phases.update == "synchronous" or layers == 1:
            h = external if s is None else self._chain.field(s, external)
            return self._signs(h, mask, s)
        parts = self._chain.by_layer(torch.zeros_like(external) if s is None else s)
        fields = self._chain.by_layer(external)
        masks = None if mask is None else self._chain.by_layer(mask)
        for layer in range(layers):
            h = self._chain.layer_field(layer, parts, fields[layer])
            own = None if masks is None else masks[layer]
            parts[layer] = self._signs(h, own, parts[layer])
        return self._chain.together(parts)

    def _signs(
        self, h: torch.Tensor, mask: torch.Tensor | None, old: torch.Tensor | None
    ) -> torch.Tensor:
        """Return sgn(h), sgn(0) = +1; where the mask is False the old state, 0 if there is none."""
        new = torch.copysign(self._unit, h)
        if mask is None:
            return new
        return torch.where(mask, new, self._zero if old is None else old)

    def _update(
        self,
        s: torch.Tensor,
        field: torch.Tensor,
        both: torch.Tensor,
        x: torch.Tensor,
        code: torch.Tensor,
        signs: torch.Tensor,
        rates: dict[str, _Numbers],
    ) -> None:
        """Change J, W_in, W_back and W_out by one batch, then let them decay."""
        one, networks = self._one, len(self.parameters)
        rule = one.rule
        if rule.test_input:
            external = both if rule.test_labels else field
        else:
            external = both - field if rule.test_labels else torch.zeros_like(field)
        against = self._chain.against(s, external).view(networks, -1, s.shape[-1])
        flat = s.view(against.shape)
        gates: dict[str, torch.Tensor] = {}
        for name, group in _GROUPS.items():
            if name == "out" or not group(one).eta > 0:
                continue
            if name == "in" and "j" in gates and one.j.kappa == one.w_in.kappa:
                gates[name] = gates["j"]
            else:
                gates[name] = self._gated(flat, against, name)
        if "j" in gates:
            g = gates["j"].view(s.shape)
            pre = g if one.couplings.symmetry == "sym1" else s
            half = one.couplings.symmetry in ("sym1", "sym2")
            self._chain.matrix.add_(g, pre, rates["j"], half)
        if one.j.decay > 0:
            self._chain.shrink_(self._decay["j"])
        if "j" in gates or one.j.decay > 0:
            self._chain.restore()
        for name, matrix, pre, seen in (
            ("in", self._external.feed, x, "a_in"),
            ("back", self._external.back, code, "a_back"),
        ):
            if name in gates:
                mask = self._seen_by[seen]
                g = gates[name] if mask is None else gates[name] * mask
                matrix.add_(g, pre.expand(networks, -1, -1), rates[name], False)
        if one.w_in.decay > 0:
            self._external.feed.shrink_(self._decay["in"])
        if one.readout.eta > 0 and self._out.values.shape[1]:
            mask = self._seen_by["a_out"]
            read = flat if mask is None else flat * mask
            wrong = torch.addcmul(self._zero, signs, _product(self._out.values, read), value=-1)
            weak = _where_above(signs, wrong, self._limits["out"])
            self._out.add_(weak, read, rates["out"], False)
            if one.readout.decay > 0:
                self._out.values.mul_(self._decay["out"])

    def _gated(self, s: torch.Tensor, against: torch.Tensor, name: str) -> torch.Tensor:
        """Return g = s w(margin), given minus the margin."""
        if self._one.rule.kind == "perceptron":
            return _where_above(s, against, self._limits[name])
        return s * weight(self._one, -against, self._kappa[name])


def _where_above(s: torch.Tensor, x: torch.Tensor, limit: _Numbers) -> torch.Tensor:
    """Return s where x > limit, and 0 elsewhere: one operation if all networks have one limit."""
    if isinstance(limit, float):
        chosen: torch.Tensor = torch.ops.aten.threshold_backward(s.expand(x.shape), x, limit)
        return chosen
    return s * (x > limit)


def _below(number: float, dtype: torch.dtype) -> float:
    """Return the largest number of this type below `number`."""
    given = torch.tensor([number, -math.inf], dtype=dtype)
    return float(torch.nextafter(given[0], given[1]))


#: The weights that learn, by the names of their rates, and their settings.
_GROUPS: dict[str, Callable[[Parameters], Any]] = {
    "j": lambda parameters: parameters.j,
    "in": lambda parameters: parameters.w_in,
    "back": lambda parameters: parameters.w_back,
    "out": lambda parameters: parameters.readout,
}

_NEURONS = ("a_in", "a_back", "a_out")


def _separate(matrix: _Matrix, old: Sequence[Projection]) -> list[Projection]:
    """Return the projections of every network with the weights that `matrix` has now."""
    parts = matrix.split([len(one.values) for one in old])
    return [one.with_values(own.clone()) for one, own in zip(old, parts, strict=True)]


def _projection(projections: Sequence[Projection]) -> _Dense | _Rows:
    """Return W_in or W_back of all networks."""
    if projections[0].bounds is None:
        return _Dense(torch.stack([each.values for each in projections]))
    parts = [(each.padded, each.values) for each in projections]
    return _spread_rows(parts, projections[0].shape[1])
