"""A state from given matrices, such as those of another implementation."""

from __future__ import annotations

import torch

from rmsim.couplings import DenseChain, DilutedChain
from rmsim.couplings.rows import CompressedRows
from rmsim.learning.parameters import Parameters
from rmsim.learning.projection import Projection, compressed
from rmsim.learning.state import State, neurons_of
from rmtheory.errors import InvalidInputError


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
    """
    layers, n, neurons = parameters.layers, parameters.n, parameters.neurons
    for name, matrix, shape in (
        ("j", j, (layers, n, n)),
        ("w_in", w_in, (neurons, w_in.shape[-1])),
        ("w_back", w_back, (neurons, w_back.shape[-1])),
        ("w_out", w_out, (len(w_out), neurons)),
    ):
        if tuple(matrix.shape) != shape or not matrix.is_floating_point():
            allowed = f"a floating point tensor of shape {shape}"
            raise InvalidInputError(name, str(tuple(matrix.shape)), allowed)
    chain = (parameters.jd, parameters.lam_left, parameters.lam_right)
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
        for layers in (parameters.input_to, parameters.label_to, parameters.output_from)
    )
    back = Projection(_own(w_back), (neurons, w_back.shape[1]))
    return State(couplings, projection, back, _own(w_out), a_in, a_back, a_out, seed)


def _own(matrix: torch.Tensor) -> torch.Tensor:
    """Return a copy, row after row, also of a transposed matrix."""
    return matrix.clone(memory_format=torch.contiguous_format)
