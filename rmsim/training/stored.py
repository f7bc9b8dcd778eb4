"""Whether the arrays of a file are those of one network.

The compiled sweeps trust columns and bounds: a file that is not what it says must not reach them.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from rmsim.device import choose_dtype
from rmsim.training.plan import Plan


def demand_consistent(plan: Plan, tensors: Mapping[str, torch.Tensor]) -> None:
    """Refuse arrays of wrong shape or type, numbers that are not finite, places out of range.

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
    rows = classes if parameters.readout == "perceptron" else 0
    for name in ("a_in", "a_back", "a_out"):
        _demand(name, tensors[name], (neurons,), torch.bool)
    dtype = choose_dtype(plan.dtype)
    _demand("w_out", tensors["w_out"], (rows, neurons), dtype)
    for name, width in (("w_in", inputs), ("w_back", classes)):
        if tensors[f"{name}_shape"].tolist() != [neurons, width]:
            raise ValueError(f"{name} has {int(tensors[f'{name}_shape'][0])} rows, not {neurons}")
        _demand_matrix(name, tensors, (neurons, width), neurons, width, dtype)
    groups = int(tensors["j_groups"]) if "j_bounds" in tensors else parameters.layers
    if groups not in (1, parameters.layers):
        raise ValueError(f"j has {groups} blocks, not {parameters.layers}")
    shape = (parameters.layers, parameters.n, parameters.n)
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


def _demand(name: str, found: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    if tuple(found.shape) != shape or found.dtype != dtype:
        what = f"{found.dtype} of shape {tuple(found.shape)}"
        raise ValueError(f"{name} is {what}, not {dtype} of shape {shape}")
    if dtype.is_floating_point and not bool(found.isfinite().all()):
        raise ValueError(f"{name} holds a number that is not finite")
