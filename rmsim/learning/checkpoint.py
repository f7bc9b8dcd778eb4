"""The weights of a run in a file: npz without pickle, whole or not at all.

Beside the arrays of :meth:`rmsim.learning.State.tensors` there is ``header``, a JSON text: the
plan, the sha256 of the data, the epoch and the number of batches.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rmsim.device import choose_dtype
from rmsim.learning import State, state_of
from rmsim.learning.run_folder import Plan
from rmtheory.base.errors import InvalidInputError, UnreadableDataError
from rmtheory.runtime.files import replacing
from rmtheory.runtime.run_store import differences
from rmtheory.runtime.untrusted import MALFORMED, parse_json, read_npz

_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A run between two epochs.

    Parameters
    ----------
    plan : Plan
        What is trained.
    data : str
        sha256 of the data.
    epoch : int
        Epochs done.
    state : State
        The weights.
    """

    plan: Plan
    data: str
    epoch: int
    state: State


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write the checkpoint beside `path`, down to the disk, and rename it."""
    header = {
        "format": _FORMAT,
        "plan": checkpoint.plan.to_dict(),
        "data": checkpoint.data,
        "epoch": checkpoint.epoch,
        "step": checkpoint.state.step,
    }
    tensors = checkpoint.state.tensors()
    save_arrays(path, header, {name: value.cpu().numpy() for name, value in tensors.items()})


def load_checkpoint(path: Path, device: torch.device | str = "cpu") -> Checkpoint:
    """Read a checkpoint.

    Raises
    ------
    UnreadableDataError
        If it is missing, damaged or not a checkpoint, naming the file.
    """
    again = "remove it, and 'rmsim train' starts the run from its first epoch"
    if not path.exists():
        raise UnreadableDataError(f"{path} is not there: 'rmsim train' makes it")
    try:
        header, arrays = load_arrays(path)
    except UnreadableDataError as problem:
        raise UnreadableDataError(f"{problem}: {again}") from None
    try:
        plan = Plan.from_dict(header["plan"])
        tensors = {name: torch.tensor(value, device=device) for name, value in arrays.items()}
        demand_consistent(plan, tensors)
        state = state_of(plan.parameters, tensors, plan.seed, _count(header, "step"))
        return Checkpoint(plan, str(header["data"]), _count(header, "epoch"), state)
    except (
        ArithmeticError,
        LookupError,
        TypeError,
        ValueError,
        RuntimeError,
        UnreadableDataError,
    ) as problem:
        reason = f"{path} is not a checkpoint of a run: {problem}"
        raise UnreadableDataError(f"{reason}: {again}") from None


def _count(header: Mapping[str, Any], name: str) -> int:
    value = header[name]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise ValueError(f"{name} must be an integer >= 0, got {value!r}")
    return value


def demand_same(path: Path, checkpoint: Checkpoint, plan: Plan, data: str) -> None:
    """Refuse a checkpoint of another run, naming what differs."""
    others = differences(
        checkpoint.plan.to_dict() | {"data": checkpoint.data}, plan.to_dict() | {"data": data}
    )
    if others:
        where = f"{path} of another run: {'; '.join(others)}"
        raise InvalidInputError("checkpoint", where, "one of the same run")


def save_arrays(path: Path, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write arrays and a JSON header to an npz file, atomically and down to the disk."""
    text = np.array(json.dumps(header, ensure_ascii=False))
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, header=text, **arrays)
        file.flush()
        os.fsync(file.fileno())


def load_arrays(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what :func:`save_arrays` wrote: the header and the arrays."""
    arrays = read_npz(path)
    try:
        header = parse_json(str(arrays.pop("header")))
        if header["format"] != _FORMAT:
            raise UnreadableDataError(
                f"{path} has format {header['format']}; this version reads {_FORMAT}"
            )
    except KeyError:
        raise UnreadableDataError(f"{path} is not a file of a run: it has no header") from None
    except MALFORMED as problem:
        reason = f"its header cannot be read ({problem})"
        raise UnreadableDataError(f"{path} is not a file of a run: {reason}") from None
    return header, arrays


def demand_consistent(plan: Plan, tensors: Mapping[str, torch.Tensor]) -> None:
    """Refuse arrays of wrong shape or type, numbers that are not finite, places out of range.

    The compiled sweeps trust columns and bounds: a file that is not what it says must not reach
    them.

    Raises
    ------
    ValueError
        Naming the array.
    KeyError
        If one is missing.
    """
    parameters = plan.parameters
    neurons = parameters.neurons
    classes = int(tensors["w_back_shape"][1])
    inputs = int(tensors["w_in_shape"][1])
    rows = classes if parameters.readout.kind == "perceptron" else 0
    for name in ("a_in", "a_back", "a_out"):
        _demand(name, tensors[name], (neurons,), torch.bool)
    dtype = choose_dtype(plan.dtype)
    _demand("w_out", tensors["w_out"], (rows, neurons), dtype)
    for name, width in (("w_in", inputs), ("w_back", classes)):
        if tensors[f"{name}_shape"].tolist() != [neurons, width]:
            raise ValueError(f"{name} has {int(tensors[f'{name}_shape'][0])} rows, not {neurons}")
        _demand_matrix(name, tensors, (neurons, width), neurons, width, dtype)
    groups = int(tensors["j_groups"]) if "j_bounds" in tensors else parameters.couplings.layers
    if groups not in (1, parameters.couplings.layers):
        raise ValueError(f"j has {groups} blocks, not {parameters.couplings.layers}")
    shape = (parameters.couplings.layers, parameters.couplings.n, parameters.couplings.n)
    _demand_matrix("j", tensors, shape, neurons, neurons // groups, dtype)
    if "j_bounds" not in tensors and bool(tensors["j"].diagonal(dim1=1, dim2=2).any()):
        raise ValueError("j is not 0 on the diagonal, where J_D acts")


def _demand_matrix(
    name: str,
    tensors: Mapping[str, torch.Tensor],
    shape: tuple[int, ...],
    rows: int,
    width: int,
    dtype: torch.dtype,
) -> None:
    """Check a dense matrix, or the values, bounds and columns of compressed rows."""
    values = tensors[name]
    if f"{name}_bounds" not in tensors:
        _demand(name, values, shape, dtype)
        return
    bounds, columns = tensors[f"{name}_bounds"], tensors[f"{name}_columns"]
    entries = values.numel()
    _demand(name, values.flatten(), (entries,), dtype)
    _demand(f"{name}_bounds", bounds, (rows + 1,), torch.int64)
    _demand(f"{name}_columns", columns, (entries,), torch.int32)
    if int(bounds[0]) != 0 or int(bounds[-1]) != entries or bool((bounds.diff() < 0).any()):
        raise ValueError(f"{name}_bounds do not divide {entries} entries into rows")
    if entries and not 0 <= int(columns.min()) <= int(columns.max()) < width:
        raise ValueError(f"{name}_columns are not from 0 to {width - 1}")


def _demand(name: str, tensor: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    if tuple(tensor.shape) != shape or tensor.dtype != dtype:
        what = f"{tensor.dtype} of shape {tuple(tensor.shape)}"
        raise ValueError(f"{name} is {what}, not {dtype} of shape {shape}")
    if dtype.is_floating_point and not bool(tensor.isfinite().all()):
        raise ValueError(f"{name} holds a number that is not finite")
