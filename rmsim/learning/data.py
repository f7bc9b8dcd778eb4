"""Inputs and labels as the steps need them: checked once, then cut into batches."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch

from rmsim.learning.parameters import Parameters
from rmsim.learning.state import State
from rmtheory.errors import InvalidInputError

#: What is accepted as inputs and labels.
Array = torch.Tensor | np.ndarray[Any, Any]


def checked_inputs(state: State, inputs: Array) -> torch.Tensor:
    """Return the inputs as a tensor, (samples, D), of their own type; refuse what does not fit."""
    x = _tensor("inputs", inputs)
    if x.dim() != 2 or x.shape[1] != state.inputs:
        allowed = f"of shape (samples, {state.inputs}), the inputs of this network"
        raise InvalidInputError("inputs", str(tuple(x.shape)), allowed)
    if x.is_complex():
        raise InvalidInputError("inputs", str(x.dtype), "real")
    if x.is_floating_point() and not bool(x.isfinite().all()):
        raise InvalidInputError("inputs", "a number that is not finite", "finite")
    return x


def checked_labels(state: State, labels: Array, samples: int) -> torch.Tensor:
    """Return class numbers (samples), or label codes (samples, C) as they are.

    Codes are for tasks that are no classification, such as hetero-association.
    """
    y = _tensor("labels", labels)
    if y.dim() == 2 and y.is_floating_point():
        if tuple(y.shape) != (samples, state.classes):
            allowed = f"of shape ({samples}, {state.classes})"
            raise InvalidInputError("labels", str(tuple(y.shape)), allowed)
        if not bool(y.isfinite().all()):
            raise InvalidInputError("labels", "a number that is not finite", "finite")
        return y
    if tuple(y.shape) != (samples,):
        raise InvalidInputError("labels", str(tuple(y.shape)), f"{samples} class numbers")
    if y.is_floating_point() or y.is_complex() or y.dtype == torch.bool:
        raise InvalidInputError("labels", str(y.dtype), "integers")
    if samples and (int(y.min()) < 0 or int(y.max()) >= state.classes):
        wrong = int(y.min()) if int(y.min()) < 0 else int(y.max())
        raise InvalidInputError("labels", wrong, f"class numbers from 0 to {state.classes - 1}")
    return y.to(torch.int64)


def _tensor(name: str, values: Array) -> torch.Tensor:
    """Return `values` as a tensor, without a copy if torch can; nothing here writes into it."""
    if isinstance(values, np.ndarray):
        if not (np.issubdtype(values.dtype, np.number) or values.dtype == np.bool_):
            raise InvalidInputError(name, f"an array of {values.dtype}", "numbers")
        if not values.dtype.isnative or any(stride < 0 for stride in values.strides):
            values = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        try:
            found = torch.as_tensor(values)
        except (TypeError, ValueError, RuntimeError):  # long doubles, and what is no array
            kind = getattr(values, "dtype", type(values).__name__)
            allowed = "an array of a type that torch has, such as float64"
            raise InvalidInputError(name, str(kind), allowed) from None
    # torch stores these types, but knows neither their least nor their largest number
    few = (torch.uint16, torch.uint32, torch.uint64)
    return found.to(torch.int64) if found.dtype in few else found


def label_code(parameters: Parameters, state: State, labels: torch.Tensor) -> torch.Tensor:
    """Return y of the field, (samples, C): `label_true` for the class, `label_other` else."""
    if labels.dim() == 2:
        return labels.to(dtype=state.dtype, device=state.device)
    labels = labels.to(state.device)
    code = torch.full(
        (len(labels), state.classes),
        parameters.label_other,
        dtype=state.dtype,
        device=state.device,
    )
    return code.scatter_(1, labels.unsqueeze(1), parameters.label_true)


def label_signs(state: State, labels: torch.Tensor) -> torch.Tensor:
    """Return y of the readout, (samples, C): +1 for the class and -1 for the others."""
    if labels.dim() == 2:
        return labels.to(dtype=state.dtype, device=state.device).sign()
    signs = torch.full((len(labels), state.classes), -1.0, dtype=state.dtype, device=state.device)
    return signs.scatter_(1, labels.to(state.device).unsqueeze(1), 1.0)
