"""Whether protocol, weights and samples belong together, and whether the numbers stay finite.

Inputs and labels are checked once, then cut into batches. The compiled routes trust shapes and
never look at a field: what does not fit would be read out of bounds, and what overflows would
decide signs. Both are refused here, before and after.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import torch

from rmsim.learning.parameters import Parameters
from rmsim.learning.state import State
from rmtheory.base.errors import InvalidInputError, NotConvergedError

#: What is accepted as inputs and labels.
Array = torch.Tensor | np.ndarray[Any, Any]

#: Each part of a field (J, J_D, lambda, W_in, W_back) may have this share of the numbers' range.
_PARTS = 8


def checked_inputs(state: State, inputs: Array) -> torch.Tensor:
    """Return the inputs as a tensor, (samples, D), of their own type; refuse what does not fit."""
    x = as_tensor("inputs", inputs)
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
    y = as_tensor("labels", labels)
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
    demand_finite(state)
    most = torch.finfo(state.dtype).max / _PARTS
    given = [("inputs", largest(x), state.inputs * largest(state.w_in.values))]
    if y is not None:
        weight = state.classes * largest(state.w_back.values)
        if y.dim() == 2:
            given.append(("labels", largest(y), weight))
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
    most = torch.finfo(state.dtype).max / _PARTS
    for name, values, width in (
        ("J", state.j, state.couplings.n * state.couplings.layers),
        ("W_in", state.w_in.values, 1),
        ("W_back", state.w_back.values, 1),
        ("W_out", state.w_out, state.w_out.shape[1]),
    ):
        if not largest(values) * width <= most:  # NaN is not smaller either
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
    try:
        demand_fields(parameters, state, x, y)
    except InvalidInputError as problem:
        raise NotConvergedError(
            f"the field of {problem.argument} is no longer finite: lower the rates"
        ) from None


def largest(values: torch.Tensor) -> float:
    """Return the largest size of a number in `values`; nan if one is nan, 0 if there is none.

    Examples
    --------
    >>> largest(torch.tensor([1.0, -3.0])), largest(torch.tensor([]))
    (3.0, 0.0)
    """
    if not values.numel():
        return 0.0
    if values.dtype == torch.bool:
        return 1.0
    # Both ends in one copy: a GPU has to finish its work for each.
    low, high = map(float, torch.stack(torch.aminmax(values)).tolist())
    return math.nan if math.isnan(low) else max(abs(low), abs(high))


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
    demand_fit(parameters, state)
    x = checked_inputs(state, inputs)
    y = checked_labels(state, labels, len(x))
    if len(x) < least:
        raise InvalidInputError("inputs", "no sample", "at least one sample")
    demand_fields(parameters, state, x, y)
    return x, y
