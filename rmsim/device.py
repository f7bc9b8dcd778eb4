"""Where tensors live and with which precision; one choice, made once, passed down."""

from __future__ import annotations

import os

import torch

from rmtheory import checks
from rmtheory.errors import InvalidInputError

_DTYPES = {"float32": torch.float32, "float64": torch.float64}


def choose_device(name: str | torch.device = "auto") -> torch.device:
    """Return the device called `name`; ``auto`` is the GPU if there is one, otherwise the CPU.

    Raises
    ------
    InvalidInputError
        If there is no such device on this machine.

    Examples
    --------
    >>> choose_device("cpu")
    device(type='cpu')
    """
    if str(name) == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    present = ["cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    if len(present) > 1:
        present.append("cuda")
    allowed = f"auto or one of {', '.join(present)} on this machine"
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise InvalidInputError("device", name, allowed) from None
    if str(device) not in present:
        raise InvalidInputError("device", str(name), allowed)
    return device


def memory_of(device: torch.device | str) -> int | None:
    """Return the bytes of memory that `device` has; None if it does not tell."""
    place = torch.device(device)
    if place.type == "cuda":
        return int(torch.cuda.get_device_properties(place).total_memory)
    if place.type != "cpu" or not hasattr(os, "sysconf"):
        return None
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def choose_dtype(name: str | torch.dtype = "float32") -> torch.dtype:
    """Return the type called `name`: float32, or float64 on request.

    Examples
    --------
    >>> choose_dtype("float64")
    torch.float64
    """
    found = _DTYPES.get(str(name).removeprefix("torch."))
    if found is None:
        raise InvalidInputError("dtype", str(name), f"one of {', '.join(_DTYPES)}")
    return found


def cheap_to_ask(device: torch.device) -> bool:
    """Tell whether Python may look at a tensor; a GPU would have to finish all it does first."""
    return device.type == "cpu"


def question_interval(device: torch.device, check_every: int | None = None) -> int:
    """Return after how many steps a loop asks its device for news; every question stalls a GPU.

    Examples
    --------
    >>> question_interval(torch.device("cpu")), question_interval(torch.device("cuda"))
    (1, 16)
    """
    if check_every is None:
        return 1 if cheap_to_ask(device) else 16
    return checks.integer("check_every", check_every, 1)
