r"""The weights of a network that learns, drawn from a seed; frozen, and copied by every step.

.. math:: h = J s + J_D s + \lambda_L s^{l-1} + \lambda_R s^{l+1} + W_{in} x + W_{back} y,
    \qquad o = W_{out} s

(paper, SM-C). :class:`State` holds J, W_in, W_back and W_out; a :class:`Projection` is W_in or
W_back, dense, or compressed rows if only a few entries exist: absent entries are never touched.

Random streams under the seed: ``(0, 0)`` J, ``(0, 3)`` W_in, ``(0, 4)`` W_back, ``(0, 5)`` W_out;
``(k + 1, 2)``, ``(k + 1, 7)``, ``(k + 1, 8)`` the masks of batch k when it is learnt, inferred,
measured.

Whether protocol, weights and samples belong together is checked here, too, and whether the numbers
stay finite. Inputs and labels are checked once, then cut into batches. The compiled routes trust
shapes and never look at a field: what does not fit would be read out of bounds, and what overflows
would decide signs. Both are refused, before and after.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from rmsim.couplings.base import PlasticCouplings
from rmsim.couplings.chains import DenseChain, DilutedChain, draw
from rmsim.couplings.rows import CompressedRows, PaddedRows, compressed, rows_of_entries
from rmsim.couplings.topology import AdjacencyCouplings, draw_on
from rmsim.learning.parameters import CouplingParameters, Layers, Parameters
from rmsim.network import Network
from rmsim.tensors import checked_seed, ends_of, fill_normal_, generator, largest_of
from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError

#: Samples, and the fraction of entries that exist, from which a CPU multiplies by the whole matrix:
#: it reads a term of a sum over entries from its own place, a hundred times slower than in order.
_MANY, _FILLED = 64, 0.01


@dataclass(frozen=True, eq=False)
class State:
    """Weights after `step` batches.

    Parameters
    ----------
    couplings : PlasticCouplings
        J, J_D and lambda of one network.
    w_in, w_back : Projection
        (N, D) and (N, C), lambda_x and lambda_y absorbed.
    w_out : Tensor, (C, N)
        Readout; no rows if the parameters say ``none``.
    a_in, a_back, a_out : Tensor of bool, (N)
        Neurons that see the input, the label, and are read.
    seed, step : int
        Seed of the draw and of masked updates; batches learnt so far.
    """

    couplings: PlasticCouplings
    w_in: Projection
    w_back: Projection
    w_out: torch.Tensor
    a_in: torch.Tensor
    a_back: torch.Tensor
    a_out: torch.Tensor
    seed: int
    step: int = 0

    @property
    def inputs(self) -> int:
        """Width D of the input."""
        return self.w_in.shape[1]

    @property
    def classes(self) -> int:
        """Number of classes C, or the width of the label."""
        return self.w_back.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        """Type of the weights."""
        return self.couplings.dtype

    @property
    def device(self) -> torch.device:
        """Where the weights live."""
        return self.couplings.device

    @property
    def j(self) -> torch.Tensor:
        """Weights of J that exist: (layers, n, n), or the values of the compressed rows."""
        return self.couplings.weights_of(0)

    def copy(self) -> State:
        """Return the same weights in a memory of their own."""
        return replace(
            self,
            couplings=self.couplings.with_weights(self.j.clone()),
            w_in=self.w_in.copy(),
            w_back=self.w_back.copy(),
            w_out=self.w_out.clone(),
        )

    def dense_j(self) -> torch.Tensor:
        """Return J without its diagonal, zeros included: (blocks, rows, rows)."""
        return self.couplings.dense_blocks(0)

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return everything that a file has to hold, beside the parameters, `seed` and `step`."""
        tensors = {
            "j": self.j,
            "w_in": self.w_in.values,
            "w_back": self.w_back.values,
            "w_out": self.w_out,
            "a_in": self.a_in,
            "a_back": self.a_back,
            "a_out": self.a_out,
        }
        for name, projection in (("w_in", self.w_in), ("w_back", self.w_back)):
            tensors[f"{name}_shape"] = torch.tensor(projection.shape)
            if projection.bounds is not None and projection.columns is not None:
                tensors[f"{name}_bounds"] = projection.bounds
                tensors[f"{name}_columns"] = projection.columns
        return tensors | {f"j_{name}": part for name, part in self.couplings.pattern().items()}


@dataclass(frozen=True, eq=False)
class Wiring:
    """A topology of its own (paper, SM-C), instead of the chain of the parameters.

    Parameters
    ----------
    adjacency : Tensor, (N, N), optional
        A_ij = 1 lets neuron j act on neuron i; zero on the diagonal, where J_D acts. There are no
        couplings lambda between layers then.
    a_in, a_back, a_out : Tensor, (N), optional
        Neurons that see the input, that see the label, and that the readout reads.
    """

    adjacency: torch.Tensor | None = None
    a_in: torch.Tensor | None = None
    a_back: torch.Tensor | None = None
    a_out: torch.Tensor | None = None


def initialise(
    parameters: Parameters,
    inputs: int,
    classes: int,
    seed: int,
    *,
    wiring: Wiring | None = None,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> State:
    """Draw the weights.

    Parameters
    ----------
    parameters : Parameters
        The protocol.
    inputs, classes : int
        Width D of the input, number C of classes (or width of the label).
    seed : int
        Seed of all weights.
    wiring : Wiring, optional
        A topology of its own.
    dtype, device : optional
        Of the weights; the numbers are the same in float32 and float64.
    """
    seed = checked_seed(seed)
    inputs = checks.integer("inputs", inputs, 1)
    classes = checks.integer("classes", classes, 2)
    wiring = Wiring() if wiring is None else wiring
    neurons = parameters.neurons
    if neurons < classes:
        allowed = f"such that {classes} classes fit, N >= C"
        raise InvalidInputError("n", parameters.couplings.n, allowed)
    parameters.check_rates(inputs, classes, None if wiring.adjacency is None else neurons)
    a_in, a_back, a_out = (
        _neurons(name, given, layers, parameters, device)
        for name, given, layers in (
            ("a_in", wiring.a_in, parameters.w_in.to),
            ("a_back", wiring.a_back, parameters.w_back.to),
            ("a_out", wiring.a_out, parameters.readout.layers),
        )
    )
    couplings = _draw_couplings(parameters.couplings, wiring.adjacency, seed, dtype, device)
    w_in = _draw_w_in(parameters, a_in, inputs, seed, dtype)
    w_back = _draw_w_back(parameters, a_back, classes, seed, dtype)
    rows = classes if parameters.readout.kind == "perceptron" else 0
    w_out = torch.empty((rows, neurons), dtype=dtype, device=device)
    stream = generator(seed, 0, 5, device=device)
    fill_normal_(w_out, 1 / math.sqrt(neurons), stream)
    w_out *= a_out
    return State(couplings, w_in, w_back, w_out, a_in, a_back, a_out, seed)


def state_of(
    parameters: Parameters, tensors: Mapping[str, torch.Tensor], seed: int, step: int
) -> State:
    """Return the state that :meth:`State.tensors` came from."""
    chosen = parameters.couplings
    couplings: PlasticCouplings
    if "j_bounds" in tensors:
        groups = int(tensors["j_groups"])
        size = parameters.neurons // groups
        bounds, columns = tensors["j_bounds"], tensors["j_columns"]
        adjacent = bool(tensors["j_adjacency"])
        rows = CompressedRows(bounds, columns, tensors["j"], 1, groups, size, shared=adjacent)
        if adjacent:
            couplings = AdjacencyCouplings(rows, chosen.jd, chosen.layers)
        else:
            couplings = DilutedChain(rows, *chosen.chain)
    else:
        couplings = DenseChain(tensors["j"].unsqueeze(0), *chosen.chain)
    w_in, w_back = (
        Projection(
            tensors[name],
            (int(tensors[f"{name}_shape"][0]), int(tensors[f"{name}_shape"][1])),
            tensors.get(f"{name}_bounds"),
            tensors.get(f"{name}_columns"),
        )
        for name in ("w_in", "w_back")
    )
    a_in, a_back, a_out = (tensors[name] for name in ("a_in", "a_back", "a_out"))
    w_out = tensors["w_out"]
    return State(couplings, w_in, w_back, w_out, a_in, a_back, a_out, seed, step)


def state_of_matrices(
    parameters: Parameters,
    j: torch.Tensor,
    w_in: torch.Tensor,
    w_back: torch.Tensor,
    w_out: torch.Tensor,
    *,
    present_j: torch.Tensor | None = None,
    present_in: torch.Tensor | None = None,
    seed: int = 0,
) -> State:
    """Return the state with these weights, lambda_x and lambda_y absorbed.

    Parameters
    ----------
    parameters : Parameters
        The protocol; J_D and lambda come from here.
    j : Tensor, (layers, n, n)
        j[l, i, j] acts from neuron j on neuron i; the diagonal is not read.
    w_in, w_back, w_out : Tensor, (N, D), (N, C), (C, N)
        The projections.
    present_j, present_in : Tensor of bool, optional
        Couplings that exist, as compressed rows; all of them, dense, by default.
    seed : int
        Seed of masked updates.

    Examples
    --------
    Hopfield's couplings of two patterns, which the input recalls:

    >>> from rmsim.learning import infer
    >>> patterns = torch.tensor([[1.0, 1, 1, -1, -1, -1], [1, -1, 1, -1, 1, -1]])
    >>> parameters = Parameters.of(n=6, jd=0.0)
    >>> w = torch.eye(6)
    >>> j = (patterns.T @ patterns / 6).unsqueeze(0)
    >>> state = state_of_matrices(parameters, j, 0.1 * w, torch.zeros(6, 2), torch.zeros(2, 6))
    >>> noisy = patterns * torch.tensor([1.0, 1, 1, 1, 1, 0])
    >>> bool((infer(parameters, state, noisy)[:, 0] == patterns).all())
    True
    """
    layers, n, neurons = parameters.couplings.layers, parameters.couplings.n, parameters.neurons
    for name, matrix, shape in (
        ("j", j, (layers, n, n)),
        ("w_in", w_in, (neurons, w_in.shape[-1])),
        ("w_back", w_back, (neurons, w_back.shape[-1])),
        ("w_out", w_out, (len(w_out), neurons)),
    ):
        if tuple(matrix.shape) != shape or not matrix.is_floating_point():
            allowed = f"a floating point tensor of shape {shape}"
            raise InvalidInputError(name, str(tuple(matrix.shape)), allowed)
    chain = (parameters.couplings.jd, parameters.couplings.lam_left, parameters.couplings.lam_right)
    couplings: DenseChain | DilutedChain
    diagonal = torch.eye(n, dtype=torch.bool, device=j.device)
    if present_j is None:
        couplings = DenseChain(_own(j).masked_fill_(diagonal, 0).unsqueeze(0), *chain)
    else:
        present = present_j & ~diagonal
        bounds, columns = compressed(present.flatten(0, 1))
        rows = CompressedRows(bounds, columns, j[present], 1, layers, n)
        couplings = DilutedChain(rows, *chain)
    projection = Projection(_own(w_in), (neurons, w_in.shape[1]))
    if present_in is not None:
        places = compressed(present_in)
        projection = Projection(w_in[present_in], (neurons, w_in.shape[1]), *places)
    a_in, a_back, a_out = (
        neurons_of(layers, parameters, j.device)
        for layers in (parameters.w_in.to, parameters.w_back.to, parameters.readout.layers)
    )
    back = Projection(_own(w_back), (neurons, w_back.shape[1]))
    return State(couplings, projection, back, _own(w_out), a_in, a_back, a_out, seed)


def _own(matrix: torch.Tensor) -> torch.Tensor:
    """Return a copy, row after row, also of a transposed matrix."""
    return matrix.clone(memory_format=torch.contiguous_format)


def _neurons(
    name: str,
    given: torch.Tensor | None,
    layers: Layers,
    parameters: Parameters,
    device: torch.device | str,
) -> torch.Tensor:
    """Return which neurons are meant, from a mask of their own or from a choice of layers."""
    if given is not None:
        if tuple(given.shape) != (parameters.neurons,) or not bool(
            ((given == 0) | (given == 1)).all()
        ):
            allowed = f"{parameters.neurons} zeros and ones"
            raise InvalidInputError(name, str(tuple(given.shape)), allowed)
        return given.to(device=device, dtype=torch.bool)
    return neurons_of(layers, parameters, device)


def neurons_of(layers: Layers, parameters: Parameters, device: torch.device | str) -> torch.Tensor:
    """Return which neurons belong to the `layers`, (N)."""
    chosen = torch.zeros(parameters.couplings.shape, dtype=torch.bool, device=device)
    chosen[{"first": slice(0, 1), "last": slice(-1, None), "all": slice(None)}[layers]] = True
    return chosen.flatten()


def _draw_couplings(
    chosen: CouplingParameters,
    adjacency: torch.Tensor | None,
    seed: int,
    dtype: torch.dtype,
    device: torch.device | str,
) -> PlasticCouplings:
    if adjacency is None:
        chain = Chain(
            chosen.layers, jd=chosen.jd, lam_left=chosen.lam_left, lam_right=chosen.lam_right
        )
        network = Network(chosen.n, chain, chosen.rho, chosen.symmetry != "asym")
        return draw(network, seed, range(1), dtype=dtype, device=device)
    neurons = chosen.n * chosen.layers
    if tuple(adjacency.shape) != (neurons, neurons):
        allowed = f"of shape ({neurons}, {neurons})"
        raise InvalidInputError("adjacency", str(tuple(adjacency.shape)), allowed)
    if chosen.symmetry != "asym":
        raise InvalidInputError("symmetry", chosen.symmetry, "asym with an adjacency matrix")
    if chosen.lam_left or chosen.lam_right or chosen.rho != 1:
        allowed = "absent: lam_left = lam_right = 0 and rho_j = 1 with an adjacency matrix"
        raise InvalidInputError("couplings of the chain", "given", allowed)
    layers = chosen.layers
    return draw_on(adjacency, chosen.jd, seed, range(1), layers=layers, dtype=dtype, device=device)


def _draw_w_in(
    parameters: Parameters, rows: torch.Tensor, columns: int, seed: int, dtype: torch.dtype
) -> Projection:
    chosen = parameters.w_in
    if chosen.kind == "identity":
        _demand_width("inputs", columns, "input_kind", parameters)
        layers = parameters.couplings.layers
        return identity_projection(rows, layers, chosen.strength, dtype=dtype)
    stream = generator(seed, 0, 3, device=rows.device)
    return draw_projection(rows, columns, chosen.strength, chosen.rho, stream, dtype=dtype)


def _draw_w_back(
    parameters: Parameters, rows: torch.Tensor, columns: int, seed: int, dtype: torch.dtype
) -> Projection:
    chosen, (layers, n) = parameters.w_back, parameters.couplings.shape
    if chosen.kind == "identity":
        _demand_width("classes", columns, "back_kind", parameters)
        return identity_projection(rows, layers, chosen.strength, dtype=dtype)
    stream = generator(seed, 0, 4, device=rows.device)
    if chosen.shared:
        one = rows.new_ones(n)
        block = draw_projection(one, columns, chosen.strength, 1.0, stream, dtype=dtype).values
        values = block.repeat(layers, 1) * rows.unsqueeze(1)
        return Projection(values, (len(rows), columns))
    return draw_projection(rows, columns, chosen.strength, 1.0, stream, dtype=dtype)


def _demand_width(name: str, width: int, kind: str, parameters: Parameters) -> None:
    n = parameters.couplings.n
    if width != n:
        raise InvalidInputError(name, width, f"n = {n} if {kind} is identity")


# Projections of the input and of the label.


@dataclass(frozen=True, eq=False)
class Projection:
    """A matrix of `shape` (neurons, inputs).

    Parameters
    ----------
    values : Tensor
        The matrix, or the values of its entries if there are `bounds` and `columns`.
    shape : (int, int)
        Rows and columns.
    bounds, columns : Tensor, optional
        Beginning of each row among the entries, and the end, int64; column of each, int32.
    """

    values: torch.Tensor
    shape: tuple[int, int]
    bounds: torch.Tensor | None = None
    columns: torch.Tensor | None = None

    @property
    def nbytes(self) -> int:
        """Memory of the weights and of their places."""
        parts = (self.values, self.bounds, self.columns)
        return sum(part.nbytes for part in parts if part is not None)

    @cached_property
    def padded(self) -> PaddedRows:
        """Places of the entries that exist in rows of one length."""
        assert self.bounds is not None
        assert self.columns is not None
        return PaddedRows.of(self.bounds, self.columns)

    def field(self, x: torch.Tensor) -> torch.Tensor:
        """Return W x for each sample of `x`, (samples, columns)."""
        if self.bounds is None:
            return x @ self.values.T
        if not len(self.values):
            return x.new_zeros((len(x), self.shape[0]))
        filled = len(self.values) / math.prod(self.shape)
        if x.device.type == "cpu" and len(x) >= _MANY and filled >= _FILLED:
            return x @ self.to_dense().T
        lanes = x.T.contiguous()
        return self.padded.multiply(self.padded.spread(self.values), lanes).T.contiguous()

    def reinforce_(self, post: torch.Tensor, pre: torch.Tensor, rate: float) -> None:
        """Add ``rate * sum over samples of post_i pre_k`` to the entries that exist.

        Parameters
        ----------
        post, pre : Tensor, (samples, rows), (samples, columns)
            Signals of the neurons and of what they see.
        rate : float
            Factor of the sum.
        """
        if self.bounds is None:
            self.values.addmm_(post.T, pre, alpha=rate)
        else:
            product = self.padded.correlate(post.T.contiguous(), pre.T.contiguous())
            self.values.add_(self.padded.entries(product), alpha=rate)

    def copy(self) -> Projection:
        """Return the same weights in a memory of their own."""
        return self.with_values(self.values.clone())

    def with_values(self, values: torch.Tensor) -> Projection:
        """Return the same places with other values."""
        other = replace(self, values=values)
        if "padded" in self.__dict__:  # the same, and a GPU would wait for it
            other.__dict__["padded"] = self.padded
        return other

    def to_dense(self) -> torch.Tensor:
        """Return the matrix, zeros included."""
        if self.bounds is None or self.columns is None:
            return self.values
        row = rows_of_entries(self.bounds, len(self.columns))
        flat = self.values.new_zeros(self.shape[0] * self.shape[1])
        return flat.index_copy_(0, row * self.shape[1] + self.columns, self.values).view(self.shape)


def draw_projection(
    rows: torch.Tensor,
    columns: int,
    strength: float,
    density: float,
    stream: torch.Generator,
    *,
    dtype: torch.dtype,
) -> Projection:
    """Draw W ~ strength N(0, 1/(rho columns)) with probability rho, on the `rows` chosen."""
    shape = (len(rows), columns)
    deviation = strength / math.sqrt(density * columns)
    device = rows.device
    if density == 1:
        values = torch.zeros(shape, dtype=dtype, device=device)
        drawn = torch.empty((int(rows.sum()), columns), dtype=dtype, device=device)
        fill_normal_(drawn, deviation, stream)
        values[rows] = drawn
        return Projection(values, shape)
    present = torch.rand(shape, generator=stream, device=device) < density
    present &= rows.unsqueeze(1)
    values = torch.empty(int(present.sum()), dtype=dtype, device=device)
    fill_normal_(values, deviation, stream)
    return Projection(values, shape, *compressed(present))


def identity_projection(
    rows: torch.Tensor, layers: int, strength: float, *, dtype: torch.dtype
) -> Projection:
    """Return the projection by which neuron i of a layer sees ``strength * x_i``."""
    n = len(rows) // layers
    columns = torch.arange(n, dtype=torch.int32, device=rows.device).repeat(layers)[rows]
    values = torch.full((len(columns),), strength, dtype=dtype, device=rows.device)
    bounds = torch.cat((rows.new_zeros(1, dtype=torch.int64), rows.cumsum(0)))
    return Projection(values, (len(rows), n), bounds, columns)


#: What is accepted as inputs and labels.
Array = torch.Tensor | np.ndarray[Any, Any]

#: Each part of a field (J, J_D, lambda, W_in, W_back) may have this share of the numbers' range.
_PARTS = 8


def checked_inputs(state: State, inputs: Array) -> torch.Tensor:
    """Return the inputs as a tensor, (samples, D), of their own type; refuse what does not fit."""
    x = _shaped_inputs(state, inputs)
    (size,) = largest_of([x])
    _demand_finite_inputs(size)
    return x


def _shaped_inputs(state: State, inputs: Array) -> torch.Tensor:
    x = as_tensor("inputs", inputs)
    if x.dim() != 2 or x.shape[1] != state.inputs:
        allowed = f"of shape (samples, {state.inputs}), the inputs of this network"
        raise InvalidInputError("inputs", str(tuple(x.shape)), allowed)
    if x.is_complex():
        raise InvalidInputError("inputs", str(x.dtype), "real")
    return x


def _demand_finite_inputs(size: float) -> None:
    if not math.isfinite(size):
        raise InvalidInputError("inputs", "a number that is not finite", "finite")


def checked_labels(state: State, labels: Array, samples: int) -> torch.Tensor:
    """Return class numbers (samples), or label codes (samples, C) as they are.

    Codes are for tasks other than classification, such as hetero-association.
    """
    y = _shaped_labels(state, labels, samples)
    (ends,) = ends_of([y])
    _demand_labels(state, y, ends)
    return y


def _shaped_labels(state: State, labels: Array, samples: int) -> torch.Tensor:
    y = as_tensor("labels", labels)
    if y.dim() == 2 and y.is_floating_point():
        if tuple(y.shape) != (samples, state.classes):
            allowed = f"of shape ({samples}, {state.classes})"
            raise InvalidInputError("labels", str(tuple(y.shape)), allowed)
        return y
    if tuple(y.shape) != (samples,):
        raise InvalidInputError("labels", str(tuple(y.shape)), f"{samples} class numbers")
    if y.is_floating_point() or y.is_complex() or y.dtype == torch.bool:
        raise InvalidInputError("labels", str(y.dtype), "integers")
    return y.to(torch.int64)


def _demand_labels(state: State, y: torch.Tensor, ends: tuple[float, float]) -> None:
    """Refuse labels by the least and the largest of them."""
    if y.dim() == 2:
        if not all(map(math.isfinite, ends)):
            raise InvalidInputError("labels", "a number that is not finite", "finite")
        return
    for wrong in ends:
        if len(y) and not 0 <= wrong < state.classes:
            allowed = f"class numbers from 0 to {state.classes - 1}"
            raise InvalidInputError("labels", int(wrong), allowed)


def as_tensor(name: str, values: Array) -> torch.Tensor:
    """Return `values` as a tensor, without a copy if torch can; nothing here writes into it."""
    if isinstance(values, np.ndarray):
        if not (np.issubdtype(values.dtype, np.number) or values.dtype == np.bool_):
            raise InvalidInputError(name, f"an array of {values.dtype}", "numbers")
        if not values.dtype.isnative or any(stride < 0 for stride in values.strides):
            values = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        try:
            tensor = torch.as_tensor(values).detach()  # nothing here has a gradient
        except (TypeError, ValueError, RuntimeError):  # long doubles, and what is not an array
            kind = getattr(values, "dtype", type(values).__name__)
            allowed = "an array of a type that torch has, such as float64"
            raise InvalidInputError(name, str(kind), allowed) from None
    # torch stores these types, but knows neither their least nor their largest number
    few = (torch.uint16, torch.uint32, torch.uint64)
    return tensor.to(torch.int64) if tensor.dtype in few else tensor


def demand_fit(parameters: Parameters, state: State) -> None:
    """Refuse weights that were drawn for another protocol.

    Raises
    ------
    InvalidInputError
        Naming what differs: neurons, layers, J_D, lambda or the readout.
    """
    couplings = state.couplings
    held: dict[str, object] = {"n": couplings.n, "layers": couplings.layers, "jd": couplings.jd}
    names = {-1: "lam_left", 1: "lam_right"}
    held |= {names[step]: value for step, value in couplings.homologous.items()}
    held["readout"] = "perceptron" if len(state.w_out) else "none"
    wanted = parameters.to_dict()
    for name, value in held.items():
        if value != wanted[name]:
            allowed = f"that of the parameters, {name} = {wanted[name]}"
            raise InvalidInputError("state", f"one with {name} = {value}", allowed)
    neurons, classes = parameters.neurons, len(state.w_out)
    shapes: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
        "w_in": (state.w_in.shape, (neurons, state.inputs)),
        "w_back": (state.w_back.shape, (neurons, state.classes)),
        "w_out": (tuple(state.w_out.shape), (state.classes if classes else 0, neurons)),
    }
    for name in ("a_in", "a_back", "a_out"):
        shapes[name] = (tuple(getattr(state, name).shape), (neurons,))
    for name, (present, shape) in shapes.items():
        if present != shape:
            raise InvalidInputError(name, f"of shape {present}", f"of shape {shape}")


def demand_fields(
    parameters: Parameters, state: State, x: torch.Tensor, y: torch.Tensor | None = None
) -> None:
    """Refuse inputs and labels so large that a field would not be finite under these weights.

    Parameters
    ----------
    parameters, state
        The protocol and the weights.
    x, y : Tensor
        Inputs and labels, as :func:`checked_inputs` and :func:`checked_labels` return them;
        no labels at inference.
    """
    labels = [] if y is None else [y]
    sizes = largest_of([x, *labels, *weights_of(state)])
    _demand_fields(parameters, state, sizes[0], y, sizes[1:][: len(labels)], sizes[-4:])


def weights_of(state: State) -> list[torch.Tensor]:
    """Return J, W_in, W_back and W_out."""
    return [state.j, state.w_in.values, state.w_back.values, state.w_out]


def _demand_fields(
    parameters: Parameters,
    state: State,
    x_size: float,
    y: torch.Tensor | None,
    y_size: Sequence[float],
    sizes: Sequence[float],
) -> None:
    """Do it, given the largest input, label (if there are labels) and weights."""
    _demand_finite(state, sizes)
    most = torch.finfo(state.dtype).max / _PARTS
    given = [("inputs", x_size, state.inputs * sizes[1])]
    if y is not None:
        weight = state.classes * sizes[2]
        if y.dim() == 2:
            given.append(("labels", y_size[0], weight))
        else:
            for name in ("label_true", "label_other"):
                given.append((name, abs(getattr(parameters.w_back, name)), weight))
    for name, size, weight in given:
        if size * max(1.0, weight) > most:
            allowed = f"at most {most / max(1.0, weight):.2g} in size, so that fields are finite"
            raise InvalidInputError(name, size, allowed)


def demand_finite(state: State) -> None:
    """Refuse weights that are not finite, or whose sums over neurons are not.

    Raises
    ------
    NotConvergedError
        Naming the weights.
    """
    _demand_finite(state, largest_of(weights_of(state)))


def _demand_finite(state: State, sizes: Sequence[float]) -> None:
    """Do it, given the largest of each of the weights."""
    most = torch.finfo(state.dtype).max / _PARTS
    widths = {
        "J": state.couplings.n * state.couplings.layers,
        "W_in": 1,
        "W_back": 1,
        "W_out": state.w_out.shape[1],
    }
    for (name, width), size in zip(widths.items(), sizes, strict=True):
        if not size * width <= most:  # NaN is not smaller either
            raise NotConvergedError(f"{name} or its field is no longer finite: lower the rates")


def demand_learnt(
    parameters: Parameters, state: State, x: torch.Tensor, y: torch.Tensor | None
) -> None:
    """Refuse weights that learning has made so large that the fields of its samples overflow.

    Raises
    ------
    NotConvergedError
        Naming the weights, or what they are multiplied with.
    """
    demand_learnt_by_many([parameters], [state], x, y)


def demand_learnt_by_many(
    parameters: Sequence[Parameters],
    states: Sequence[State],
    x: torch.Tensor,
    y: torch.Tensor | None,
) -> None:
    """Do it for several networks that learnt the same samples, with one reading of a GPU.

    Raises
    ------
    NotConvergedError
        With the number of the network as well, if there are several.
    """
    labels = [] if y is None else [y]
    sizes = largest_of([x, *labels, *(w for state in states for w in weights_of(state))])
    weights = sizes[1 + len(labels) :]
    for k, (one, state) in enumerate(zip(parameters, states, strict=True)):
        which = f"network {k}: " if len(states) > 1 else ""
        own = weights[4 * k : 4 * k + 4]
        try:
            _demand_fields(one, state, sizes[0], y, sizes[1 : 1 + len(labels)], own)
        except InvalidInputError as problem:
            field = f"the field of {problem.argument}"
            raise NotConvergedError(
                f"{which}{field} is no longer finite: lower the rates"
            ) from None
        except NotConvergedError as problem:
            raise NotConvergedError(f"{which}{problem}") from None


def checked_samples(
    parameters: Parameters, state: State, inputs: Array, labels: Array, *, least: int = 1
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs and labels after all checks: of the weights, of the samples, of their fields.

    Parameters
    ----------
    parameters, state, inputs, labels
        As for :func:`rmsim.learning.batch_step`.
    least : int
        Least number of samples, 0 or 1.
    """
    x, y = checked_samples_of_many([parameters], [state], inputs, labels)
    if len(x) < least:
        raise InvalidInputError("inputs", "no sample", "at least one sample")
    return x, y


def checked_samples_of_many(
    parameters: Sequence[Parameters], states: Sequence[State], inputs: Array, labels: Array
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs and labels after all checks for several networks, with one reading of a GPU."""
    for one, state in zip(parameters, states, strict=True):
        demand_fit(one, state)
        x = _shaped_inputs(state, inputs)
        y = _shaped_labels(state, labels, len(x))
    ends = ends_of([x, y, *(w for state in states for w in weights_of(state))])
    sizes = [math.nan if math.isnan(low) else max(abs(low), abs(high)) for low, high in ends]
    _demand_finite_inputs(sizes[0])
    for k, (one, state) in enumerate(zip(parameters, states, strict=True)):
        _demand_labels(state, y, ends[1])
        _demand_fields(one, state, sizes[0], y, sizes[1:2], sizes[4 * k + 2 : 4 * k + 6])
    return x, y
