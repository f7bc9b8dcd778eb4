"""The weights of a network that learns, drawn from a seed; frozen, and copied by every step.

Random streams under the seed: ``(0, 0)`` J, ``(0, 3)`` W_in, ``(0, 4)`` W_back, ``(0, 5)`` W_out;
``(k + 1, 2)``, ``(k + 1, 7)``, ``(k + 1, 8)`` the masks of batch k when it is learnt, inferred,
measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from rmsim.couplings import AdjacencyCouplings, DenseChain, DilutedChain, draw, draw_on
from rmsim.couplings.rows import CompressedRows
from rmsim.learning.parameters import Layers, Parameters
from rmsim.learning.projection import Projection, draw_projection, identity_projection
from rmsim.network import Network
from rmsim.randomness import checked_seed, fill_normal_, generator
from rmtheory import checks
from rmtheory.chain import Chain
from rmtheory.errors import InvalidInputError

Internal = DenseChain | DilutedChain | AdjacencyCouplings


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


@dataclass(frozen=True, eq=False)
class State:
    """Weights after `step` batches.

    Parameters
    ----------
    couplings : DenseChain, DilutedChain or AdjacencyCouplings
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

    couplings: Internal
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
        if isinstance(self.couplings, DenseChain):
            return self.couplings.matrices[0]
        return self.couplings.rows.values

    def copy(self) -> State:
        """Return the same weights in a memory of their own."""
        return replace(
            self,
            couplings=with_weights(self.couplings, self.j.clone()),
            w_in=self.w_in.copy(),
            w_back=self.w_back.copy(),
            w_out=self.w_out.clone(),
        )

    def dense_j(self) -> torch.Tensor:
        """Return J without its diagonal, zeros included: (blocks, rows, rows)."""
        if isinstance(self.couplings, AdjacencyCouplings):
            return self.couplings.to_dense()
        if isinstance(self.couplings, DilutedChain):
            return self.couplings.to_dense()[0]
        return self.couplings.matrices[0]

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return everything that a file has to hold, beside the parameters, `seed` and `step`."""
        found = {
            "j": self.j,
            "w_in": self.w_in.values,
            "w_back": self.w_back.values,
            "w_out": self.w_out,
            "a_in": self.a_in,
            "a_back": self.a_back,
            "a_out": self.a_out,
        }
        for name, projection in (("w_in", self.w_in), ("w_back", self.w_back)):
            found[f"{name}_shape"] = torch.tensor(projection.shape)
            if projection.bounds is not None and projection.columns is not None:
                found[f"{name}_bounds"] = projection.bounds
                found[f"{name}_columns"] = projection.columns
        if not isinstance(self.couplings, DenseChain):
            rows = self.couplings.rows
            found["j_bounds"], found["j_columns"] = rows.bounds, rows.columns
            found["j_groups"] = torch.tensor(rows.groups)
            found["j_adjacency"] = torch.tensor(isinstance(self.couplings, AdjacencyCouplings))
        return found


def with_weights(couplings: Internal, weights: torch.Tensor) -> Internal:
    """Return the same network with other weights J."""
    if isinstance(couplings, DenseChain):
        return replace(couplings, matrices=weights.unsqueeze(0))
    return replace(couplings, rows=replace(couplings.rows, values=weights))


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
        raise InvalidInputError("n", parameters.n, f"such that {classes} classes fit, N >= C")
    parameters.check_rates(inputs, classes, None if wiring.adjacency is None else neurons)
    a_in, a_back, a_out = (
        _neurons(name, given, layers, parameters, device)
        for name, given, layers in (
            ("a_in", wiring.a_in, parameters.input_to),
            ("a_back", wiring.a_back, parameters.label_to),
            ("a_out", wiring.a_out, parameters.output_from),
        )
    )
    couplings = _draw_couplings(parameters, wiring.adjacency, seed, dtype, device)
    w_in = _draw_w(parameters, "input_kind", a_in, inputs, seed, dtype)
    w_back = _draw_w(parameters, "back_kind", a_back, classes, seed, dtype)
    rows = classes if parameters.readout == "perceptron" else 0
    w_out = torch.empty((rows, neurons), dtype=dtype, device=device)
    stream = generator(seed, 0, 5, device=device)
    fill_normal_(w_out, 1 / math.sqrt(neurons), stream)
    w_out *= a_out
    return State(couplings, w_in, w_back, w_out, a_in, a_back, a_out, seed)


def state_of(
    parameters: Parameters, tensors: Mapping[str, torch.Tensor], seed: int, step: int
) -> State:
    """Return the state that :meth:`State.tensors` came from."""
    chain = (parameters.jd, parameters.lam_left, parameters.lam_right)
    couplings: Internal
    if "j_bounds" in tensors:
        groups = int(tensors["j_groups"])
        size = parameters.neurons // groups
        bounds, columns = tensors["j_bounds"], tensors["j_columns"]
        adjacent = bool(tensors["j_adjacency"])
        rows = CompressedRows(bounds, columns, tensors["j"], 1, groups, size, shared=adjacent)
        if adjacent:
            couplings = AdjacencyCouplings(rows, parameters.jd, parameters.layers)
        else:
            couplings = DilutedChain(rows, *chain)
    else:
        couplings = DenseChain(tensors["j"].unsqueeze(0), *chain)
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
    chosen = torch.zeros((parameters.layers, parameters.n), dtype=torch.bool, device=device)
    chosen[{"first": slice(0, 1), "last": slice(-1, None), "all": slice(None)}[layers]] = True
    return chosen.flatten()


def _draw_couplings(
    parameters: Parameters,
    adjacency: torch.Tensor | None,
    seed: int,
    dtype: torch.dtype,
    device: torch.device | str,
) -> Internal:
    if adjacency is None:
        chain = Chain(
            parameters.layers,
            jd=parameters.jd,
            lam_left=parameters.lam_left,
            lam_right=parameters.lam_right,
        )
        symmetric = parameters.symmetry != "asym"
        network = Network(parameters.n, chain, parameters.rho_j, symmetric)
        return draw(network, seed, range(1), dtype=dtype, device=device)
    if tuple(adjacency.shape) != (parameters.neurons, parameters.neurons):
        allowed = f"of shape ({parameters.neurons}, {parameters.neurons})"
        raise InvalidInputError("adjacency", str(tuple(adjacency.shape)), allowed)
    if parameters.symmetry != "asym":
        raise InvalidInputError("symmetry", parameters.symmetry, "asym with an adjacency matrix")
    if parameters.lam_left or parameters.lam_right or parameters.rho_j != 1:
        allowed = "absent: lam_left = lam_right = 0 and rho_j = 1 with an adjacency matrix"
        raise InvalidInputError("couplings of the chain", "given", allowed)
    return draw_on(
        adjacency,
        parameters.jd,
        seed,
        range(1),
        layers=parameters.layers,
        dtype=dtype,
        device=device,
    )


def _draw_w(
    parameters: Parameters,
    name: str,
    rows: torch.Tensor,
    columns: int,
    seed: int,
    dtype: torch.dtype,
) -> Projection:
    kind = getattr(parameters, name)
    back = name == "back_kind"
    strength = parameters.lambda_y if back else parameters.lambda_x
    if kind == "identity":
        if columns != parameters.n:
            width = "classes" if back else "inputs"
            raise InvalidInputError(width, columns, f"n = {parameters.n} if {name} is identity")
        return identity_projection(rows, parameters.layers, strength, dtype=dtype)
    stream = generator(seed, 0, 4 if back else 3, device=rows.device)
    density = 1.0 if back else parameters.rho_in
    if back and parameters.shared_back:
        one = rows.new_ones(parameters.n)
        block = draw_projection(one, columns, strength, 1.0, stream, dtype=dtype).values
        values = block.repeat(parameters.layers, 1) * rows.unsqueeze(1)
        return Projection(values, (len(rows), columns))
    return draw_projection(rows, columns, strength, density, stream, dtype=dtype)
