r"""How wide the perceptron with two hidden layers must be to have the parameters of the network.

The core module with Bernoulli masks learns J, W_in and W_out, a layer of width H three matrices
without biases:

.. math:: P_{core} = \rho_J N (N-1) + \rho_{in} N D + N C, \qquad P_{MLP}(H) = H D + H^2 + H C .

This is the paper's count: with rho_J = .01 and rho_in = .1 all six pairs of its table for Tiny
ImageNet are :math:`N = \lfloor P_{core}^{-1}(P_{MLP}(H)) \rfloor`. Its widths for the other sets
are within one of ours, as if masks had been drawn and counted: a mask has
:math:`\sqrt{\rho(1-\rho)}` times the root of its size more or fewer couplings, up to half a width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rmtheory import checks
from rmtheory.errors import InvalidInputError


def core_parameters(
    n: int, inputs: int, classes: int, rho_j: float = 0.01, rho_in: float = 0.1
) -> float:
    """Return the mean number of parameters that a core module of `n` neurons learns.

    Examples
    --------
    >>> round(core_parameters(1000, 784, 10))
    98390
    """
    n, inputs, classes = _sizes(n=n, inputs=inputs, classes=classes)
    for name, rho in (("rho_j", rho_j), ("rho_in", rho_in)):
        if not 0 < rho <= 1:
            raise InvalidInputError(name, rho, "a density above 0 and at most 1")
    return rho_j * n * (n - 1) + rho_in * n * inputs + n * classes


def mlp_parameters(width: int, inputs: int, classes: int) -> int:
    """Return the number of parameters of the perceptron with two hidden layers of `width`.

    Examples
    --------
    >>> mlp_parameters(109, 784, 10)
    98427
    """
    width, inputs, classes = _sizes(width=width, inputs=inputs, classes=classes)
    return width * (inputs + width + classes)


@dataclass(frozen=True)
class Matched:
    """A width, its number of parameters, and by which part that differs from the one wanted."""

    width: int
    parameters: int
    mismatch: float


def matched_width(parameters: float, inputs: int, classes: int) -> Matched:
    """Return the width H whose number of parameters is nearest to `parameters`.

    Examples
    --------
    >>> matched_width(core_parameters(1000, 784, 10), 784, 10).width
    109
    """
    if not parameters >= 1:
        raise InvalidInputError("parameters", parameters, "at least 1")
    half = (inputs + classes) / 2
    low = max(1, math.floor(math.sqrt(half * half + parameters) - half))
    width = min((low, low + 1), key=lambda h: abs(mlp_parameters(h, inputs, classes) - parameters))
    found = mlp_parameters(width, inputs, classes)
    return Matched(width, found, found / parameters - 1)


def _sizes(**sizes: int) -> tuple[int, int, int]:
    first, second, third = (checks.integer(name, value, 1) for name, value in sizes.items())
    return first, second, third
