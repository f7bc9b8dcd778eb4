r"""States of +1 and -1: the sign of a field with its tie rule, and one check of given states.

Two rules decide :math:`s_i = \mathrm{sgn}(h_i)` where the field vanishes, and the caller chooses:

- :func:`sign`, sgn(0) = +1: the dynamics, message passing and learning. Every state is +-1.
- :func:`sign_or_neutral`, sgn(0) = 0: a neuron without any field stays neutral. The capacity of
  hetero-association needs it: a layer is neutral until the input reaches it, since inner layers
  of a deep chain that all began at +1 would hold each other there.

Compiled loops cannot call these; they compare ``h >= 0`` themselves, and the tests hold them to
the first rule.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike

from rmtheory.base.errors import InvalidInputError
from rmtheory.runtime.untrusted import read_npy

__all__ = ["Numbers", "checked_states", "sign", "sign_or_neutral", "tensor_of"]

#: Numbers of the user's own: an array, a tensor, or the path of an .npy file.
Numbers: TypeAlias = ArrayLike | torch.Tensor | os.PathLike[str]


def is_up(h: torch.Tensor) -> torch.Tensor:
    """Return where sgn(h) = +1, with sgn(0) = +1."""
    return h >= 0


def sign(h: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Return +1 where h >= 0 and -1 elsewhere, in the type of h unless another is given.

    Examples
    --------
    >>> sign(torch.tensor([0.5, 0.0, -0.0, -2.0])).tolist()
    [1.0, 1.0, 1.0, -1.0]
    """
    return is_up(h).to(h.dtype if dtype is None else dtype).mul_(2).sub_(1)


def sign_or_neutral(h: torch.Tensor) -> torch.Tensor:
    """Return the sign of h, and 0 where h = 0.

    Examples
    --------
    >>> sign_or_neutral(torch.tensor([0.5, 0.0, -2.0])).tolist()
    [1.0, 0.0, -1.0]
    """
    return torch.sign(h)


def checked_states(
    name: str, given: Numbers, shape: Sequence[int | str] | None = None
) -> torch.Tensor:
    """Return states of the user's own as a tensor, in their type; refuse other values than +-1.

    The values are compared as the numbers they are: no type wraps around, and -1 that was stored
    as an unsigned 255 is refused.

    Parameters
    ----------
    name : str
        The argument, for the message.
    given : array_like, Tensor, or path of an .npy file
        States.
    shape : sequence, optional
        Sizes; a word, such as ``starts``, stands for any size from 1 on.

    Examples
    --------
    >>> checked_states("start", [[1, -1]], (1, "neurons")).tolist()
    [[1, -1]]
    >>> checked_states("start", np.array([1, 255], dtype=np.uint8))
    Traceback (most recent call last):
    rmtheory.base.errors.InvalidInputError: start must be +1 or -1 everywhere, got 255
    """
    states = tensor_of(name, given)
    sizes = tuple(states.shape)
    if shape is not None and (
        len(sizes) != len(shape)
        or any(a < 1 if isinstance(b, str) else a != b for a, b in zip(sizes, shape, strict=True))
    ):
        raise InvalidInputError(name, str(sizes), f"of shape ({', '.join(map(str, shape))})")
    for part in states.unbind(0) if states.dim() else (states,):  # in parts, to need little memory
        # Types without a sign would take the -1 of a comparison for their largest number.
        exact = part if part.dtype.is_signed else part.to(torch.float32)
        spins = (exact == 1) | (exact == -1)
        if not bool(spins.all()):
            value = part[~spins][0].item() if part.dim() else part.item()
            raise InvalidInputError(name, value, "+1 or -1 everywhere")
    return states


def tensor_of(name: str, given: Numbers) -> torch.Tensor:
    """Return real numbers as a tensor, without a copy if there is one already; refuse others.

    Arrays in another order of bytes, with negative strides, read-only or in extended precision are
    copied into what torch has. Text and paths name an .npy file.

    Examples
    --------
    >>> tensor_of("J", np.arange(4.0)[::-1]).tolist()
    [3.0, 2.0, 1.0, 0.0]
    """
    if isinstance(given, (str, os.PathLike)):
        given = read_npy(given)
    if isinstance(given, torch.Tensor):
        tensor = given.detach()
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_meta:
            kind = "a quantised" if tensor.is_quantized else f"a {tensor.layout}"
            kind = "a tensor without numbers (meta)" if tensor.is_meta else f"{kind} tensor"
            raise InvalidInputError(name, kind, "an array or a dense tensor of real numbers")
    else:
        try:
            array = np.asarray(given)
            if array.dtype == np.longdouble:
                array = array.astype(np.float64)
            native = array.astype(array.dtype.newbyteorder("="), copy=False)
            usable = native.flags.writeable and all(stride >= 0 for stride in native.strides)
            tensor = torch.from_numpy(native if usable else native.copy())
        except (TypeError, ValueError, RuntimeError):  # words, ragged rows, gradients in a list
            kind = type(given).__name__
            raise InvalidInputError(name, f"a {kind} of another kind", "real numbers") from None
    if tensor.is_complex():
        raise InvalidInputError(name, str(tensor.dtype), "real numbers")
    return tensor
