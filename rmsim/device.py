"""Where tensors live and with which precision; one choice, made once, passed down."""

from __future__ import annotations

import os

import torch

from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError

__all__ = ["choose_device", "choose_dtype"]

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


def gpu_environments(name: str | torch.device) -> list[dict[str, str]]:
    """Return the environments of worker processes such that each has one GPU; none on the CPU.

    With ``auto`` and ``cuda`` all GPUs of this machine are dealt out, by the variable
    CUDA_VISIBLE_DEVICES: a process sees its own one alone, as ``cuda``. A GPU with a number,
    ``cuda:1``, is the only one, for one process.

    Examples
    --------
    >>> gpu_environments("cpu")
    []
    """
    device = choose_device(name)
    if device.type != "cuda":
        return []
    if device.index is not None:
        return [{}]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names = [each.strip() for each in visible.split(",") if each.strip()]
    count = torch.cuda.device_count()
    return [{"CUDA_VISIBLE_DEVICES": names[k] if k < len(names) else str(k)} for k in range(count)]


def memory_of(device: torch.device | str) -> int | None:
    """Return the bytes of memory that `device` has; None if that is not known."""
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
    dtype = _DTYPES.get(str(name).removeprefix("torch."))
    if dtype is None:
        raise InvalidInputError("dtype", str(name), f"one of {', '.join(_DTYPES)}")
    return dtype


def cheap_to_read(device: torch.device) -> bool:
    """Return whether Python may read a tensor; a GPU would have to finish all it does first."""
    return device.type == "cpu"


def checked_sync_interval(device: torch.device, sync_interval: int | None = None) -> int:
    """Return after how many iterations a loop reads its device, which makes a GPU wait.

    Examples
    --------
    >>> checked_sync_interval(torch.device("cpu")), checked_sync_interval(torch.device("cuda"))
    (1, 16)
    """
    if sync_interval is None:
        return 1 if cheap_to_read(device) else 16
    return checks.integer("sync_interval", sync_interval, 1)
