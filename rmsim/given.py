r"""Couplings of the user's own, wherever drawn ones go: :meth:`rmsim.network.Network.from_array`.

One check at the entry, the same for the dynamics, message passing, enumeration and neighbours: J is
real, finite and square, and its diagonal is zero, since the self-coupling J_D is an argument of its
own. Message passing refuses symmetric J besides.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse

from rmsim.tensors import Numbers, by_address, tensor_of
from rmtheory.base.checks import MOST_COUPLING
from rmtheory.base.errors import InvalidInputError, UnreadableDataError
from rmtheory.runtime.untrusted import MALFORMED, read_bytes, read_npy, read_npz

_SHAPES = "a square matrix (n, n), or (layers, n, n) for a chain"


class GivenRows(NamedTuple):
    """J of a sparse network: the entries of each row, rows of all layers one after another."""

    bounds: torch.Tensor
    columns: torch.Tensor
    values: torch.Tensor


@dataclass(frozen=True)
class Given:
    """J of one network, dense or as compressed rows; equal if the numbers are.

    Parameters
    ----------
    weights : Tensor, (layers, n, n), or GivenRows
        J[l, i, j] acts from neuron j on neuron i of layer l.
    layers, n : int
        Size.
    rho : float
        1 if J is dense, otherwise the share of entries off the diagonal.
    symmetric : bool
        Whether J_ij = J_ji in all layers.
    digest : str
        SHA-256 of the numbers, by which runs are distinguished.
    """

    weights: torch.Tensor | GivenRows = field(repr=False, compare=False)
    layers: int
    n: int
    rho: float
    symmetric: bool
    digest: str

    def check_samples(self, samples: Sequence[int]) -> None:
        """Refuse other disorder samples than number 0."""
        if list(samples) != [0]:
            allowed = "1: couplings that are given are one network"
            got = len(samples) if list(samples) == list(range(len(samples))) else list(samples)
            raise InvalidInputError("samples", got, allowed)


def given_couplings(J: Numbers | sparse.sparray | Sequence[Any]) -> Given:
    """Return J after the check at the entry.

    Parameters
    ----------
    J : array_like or Tensor, (n, n) or (layers, n, n); scipy sparse matrix, or one per layer; file
        J[l, i, j] acts from neuron j on neuron i of layer l; zero diagonal. Files as for
        :func:`couplings_of_file`.
    """
    if isinstance(J, (str, os.PathLike)):
        J = couplings_of_file(J)
    parts = J if isinstance(J, (list, tuple)) and any(map(sparse.issparse, J)) else [J]
    if any(map(sparse.issparse, parts)):
        return _given_rows(parts)
    matrices = checked_matrices("J", tensor_of("J", J), MOST_COUPLING)  # type: ignore[arg-type]
    # A copy: what becomes of the user's array later is not this network.
    matrices = matrices.clone() if matrices.is_floating_point() else matrices.double()
    layers, n, _ = matrices.shape
    symmetric = all(torch.equal(matrix, matrix.T) for matrix in matrices) and bool(matrices.any())
    exact = matrices.cpu().double()
    digest = hashlib.sha256(repr(tuple(exact.shape)).encode())
    for matrix in exact:
        digest.update(np.ascontiguousarray(matrix.numpy()).data)
    return Given(matrices, layers, n, 1.0, symmetric, digest.hexdigest())


#: Arrays of scipy's format for sparse matrices, save_npz.
_SPARSE = ("format", "shape", "data", "indices", "indptr")


def couplings_of_file(path: str | os.PathLike[str]) -> Any:
    """Return J of a file, without any check of its numbers.

    Parameters
    ----------
    path : path
        .npy; .npz with one array, or an array J among others, or a sparse matrix by scipy's
        save_npz; .mtx (Matrix Market), full or sparse.

    Raises
    ------
    UnreadableDataError
        If it is none of these, or damaged.
    """
    ending = Path(path).suffix.lower()
    if ending == ".mtx":
        return _matrix_market(path)
    if ending != ".npz":
        return read_npy(path)
    arrays = read_npz(path)
    if set(_SPARSE) <= set(arrays):
        return _saved_sparse(path, arrays)
    if "J" in arrays or len(arrays) == 1:
        return arrays.get("J", next(iter(arrays.values())))
    names = ", ".join(sorted(arrays)) or "nothing"
    raise UnreadableDataError(f"{path} must hold one array, or one called J: it has {names}")


def _saved_sparse(path: str | os.PathLike[str], arrays: dict[str, Any]) -> sparse.csr_array:
    """Return the matrix that scipy's save_npz wrote, its indices checked."""
    kind = arrays["format"].item()
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
    if kind not in ("csr", "csc"):
        raise UnreadableDataError(f"{path} has a sparse matrix in format {kind}: save it as csr")
    made = sparse.csr_array if kind == "csr" else sparse.csc_array
    try:
        rows, columns = (int(size) for size in arrays["shape"])
        matrix = made(tuple(arrays[name] for name in _SPARSE[2:]), shape=(rows, columns))
        matrix.check_format(full_check=True)
        return sparse.csr_array(matrix)
    except MALFORMED as problem:
        raise UnreadableDataError(f"{path} cannot be read: {problem}") from None


def _matrix_market(path: str | os.PathLike[str]) -> Any:
    """Return the matrix of a Matrix Market file."""
    from scipy.io import mminfo, mmread

    content = read_bytes(path)
    try:
        rows, columns, entries, layout, *_ = mminfo(io.BytesIO(content))
        # A number takes two characters or more, and a symmetric matrix is stored by half.
        if (rows * columns if layout == "array" else entries) > 2 * len(content):
            raise ValueError("it announces more numbers than it holds")
        return mmread(io.BytesIO(content))
    except (*MALFORMED, OSError) as problem:
        reason = " ".join(str(problem).split())
        raise UnreadableDataError(f"{path} cannot be read: {reason}") from None


def checked_matrices(name: str, J: torch.Tensor, most: float) -> torch.Tensor:
    """Return J as (layers, n, n); refuse what is not square, finite and zero on its diagonal."""
    shape = tuple(J.shape)
    if len(shape) not in (2, 3) or shape[-1] != shape[-2] or 0 in shape:
        raise InvalidInputError(name, f"of shape {shape}", _SHAPES)
    check_entries(name, J, most)
    return J if len(shape) == 3 else J.unsqueeze(0)


def check_entries(name: str, J: torch.Tensor, most: float = MOST_COUPLING) -> None:
    """Refuse matrices (..., n, n) that are not finite, or not zero on their diagonals."""
    check_size(name, J, most)
    diagonal = J.diagonal(dim1=-2, dim2=-1)
    if bool(diagonal.any()):
        *_, row = diagonal.nonzero()[0].tolist()
        value = diagonal[diagonal != 0][0].item()
        raise InvalidInputError(name, f"{value:g} at [{row}, {row}]", _DIAGONAL)


_DIAGONAL = "zero on its diagonal: the self-coupling J_D is an argument of its own, jd"


def check_size(name: str, values: torch.Tensor, most: float = MOST_COUPLING) -> None:
    """Refuse numbers that are not finite, or larger than `most`."""
    if not values.numel():
        return
    low, high = torch.aminmax(by_address(values))
    limit = most * (1 + 2.0**-24)  # in float32 it may be rounded up
    if not bool((low.double() >= -limit) & (high.double() <= limit)):  # false for nan; read once
        first = (~(values.double().abs() <= limit)).nonzero()[0].tolist()
        value = values[tuple(first)].item()
        where = f" at {first}" if len(first) > 1 else ""  # entries of sparse rows have no place
        allowed = f"finite, and at most {most:g} in size"
        raise InvalidInputError(name, f"{value:g}{where}", allowed)


def _given_rows(parts: Sequence[Any]) -> Given:
    """Return the compressed rows of scipy's sparse matrices, one for each layer."""
    if not all(map(sparse.issparse, parts)):
        raise InvalidInputError("J", "sparse and dense layers", "one or the other in all layers")
    layers = [sparse.csr_array(part, copy=True) for part in parts]
    shapes = {layer.shape for layer in layers}
    n = int(layers[0].shape[0])
    if shapes != {(n, n)} or n < 1:
        raise InvalidInputError("J", f"of shapes {sorted(shapes)}", _SHAPES)
    for layer in layers:
        layer.sum_duplicates()
        layer.eliminate_zeros()
        check_size("J", tensor_of("J", layer.data))
        if (diagonal := layer.diagonal()).any():
            row = int(diagonal.nonzero()[0][0])
            raise InvalidInputError("J", f"{diagonal[row]:g} at [{row}, {row}]", _DIAGONAL)
    count = sum(layer.nnz for layer in layers)
    if not count:
        raise InvalidInputError("J", "no entry", "a matrix with entries, if it is sparse")
    values = np.concatenate([layer.data for layer in layers])
    if values.dtype.kind != "f":
        values = values.astype(np.float64)
    symmetric = all(abs(layer - layer.T).max() == 0 for layer in layers)
    if count == len(layers) * n * (n - 1):  # every entry is there: no reason for compressed rows
        return given_couplings(np.stack([layer.toarray() for layer in layers]))
    starts = np.cumsum([0, *(layer.nnz for layer in layers)])
    bounds = np.concatenate(
        [[0], *(layer.indptr[1:] + first for layer, first in zip(layers, starts, strict=False))]
    )
    indices = np.concatenate([layer.indices for layer in layers])
    arrays = (bounds.astype(np.int64), indices.astype(np.int32), values)
    digest = hashlib.sha256(repr((len(layers), n)).encode())
    for array in (*arrays[:2], values.astype(np.float64)):
        digest.update(np.ascontiguousarray(array).data)
    rows = GivenRows(*map(torch.from_numpy, arrays))
    rho = count / (len(layers) * n * (n - 1))
    return Given(rows, len(layers), n, rho, symmetric, digest.hexdigest())
