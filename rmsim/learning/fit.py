"""Whether protocol, weights and samples belong together, and whether the numbers stay finite.

The compiled routes trust shapes and never look at a field: what does not fit would be read out of
bounds, and what overflows would decide signs. Both are refused here, before and after.
"""

from __future__ import annotations

import math

import torch

from rmsim.couplings import AdjacencyCouplings
from rmsim.learning.parameters import Parameters
from rmsim.learning.state import State
from rmtheory.errors import InvalidInputError, NotConvergedError

#: Each part of a field (J, J_D, lambda, W_in, W_back) may have this share of the numbers' range.
_PARTS = 8


def demand_fit(parameters: Parameters, state: State) -> None:
    """Refuse weights that were drawn for another protocol.

    Raises
    ------
    InvalidInputError
        Naming what differs: neurons, layers, J_D, lambda or the readout.
    """
    couplings = state.couplings
    held: dict[str, object] = {"n": couplings.n, "layers": couplings.layers, "jd": couplings.jd}
    if not isinstance(couplings, AdjacencyCouplings) and couplings.layers > 1:
        held |= {"lam_left": couplings.lam_left, "lam_right": couplings.lam_right}
    held["readout"] = "perceptron" if len(state.w_out) else "none"
    for name, value in held.items():
        wanted = getattr(parameters, name)
        if value != wanted:
            allowed = f"that of the parameters, {name} = {wanted}"
            raise InvalidInputError("state", f"one with {name} = {value}", allowed)
    neurons, classes = parameters.neurons, len(state.w_out)
    shapes: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
        "w_in": (state.w_in.shape, (neurons, state.inputs)),
        "w_back": (state.w_back.shape, (neurons, state.classes)),
        "w_out": (tuple(state.w_out.shape), (state.classes if classes else 0, neurons)),
    }
    for name in ("a_in", "a_back", "a_out"):
        shapes[name] = (tuple(getattr(state, name).shape), (neurons,))
    for name, (found, shape) in shapes.items():
        if found != shape:
            raise InvalidInputError(name, f"of shape {found}", f"of shape {shape}")


def demand_fields(
    parameters: Parameters, state: State, x: torch.Tensor, y: torch.Tensor | None = None
) -> None:
    """Refuse inputs and labels so large that a field would not be finite under these weights.

    Parameters
    ----------
    parameters, state
        The protocol and the weights.
    x, y : Tensor
        Inputs and labels, as :mod:`rmsim.learning.data` checks them; no labels at inference.
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
                given.append((name, abs(getattr(parameters, name)), weight))
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
        if not largest(values) * width <= most:  # not a number is no smaller either
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
    low, high = (float(end) for end in torch.aminmax(values))
    return math.nan if math.isnan(low) else max(abs(low), abs(high))
