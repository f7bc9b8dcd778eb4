"""Frozen features with their labels, checked once, in batches of a new order every epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from rmsim.randomness import generator
from rmtheory import checks
from rmtheory.errors import InvalidInputError

#: What is accepted as features and labels.
Array = torch.Tensor | np.ndarray[Any, Any]

#: Of the streams of random numbers under a seed, that of the orders.
_ORDERS = 7

#: Samples converted to floats at a time where all are looked at.
_TOGETHER = 4096


@dataclass(frozen=True, eq=False)
class Features:
    """Features (samples, N), of int8 or float, and labels (samples) from 0 to C - 1.

    Parameters
    ----------
    values : Tensor, (samples, N)
        States of neurons as int8, or any real numbers as float32.
    labels : Tensor of int64, (samples)
        Class numbers.
    classes : int
        Number C of classes.
    """

    values: torch.Tensor
    labels: torch.Tensor
    classes: int

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def width(self) -> int:
        """Number N of features."""
        return int(self.values.shape[1])

    @property
    def device(self) -> torch.device:
        """Where the numbers are."""
        return self.values.device

    def parts(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Give all samples in order, as floats, some thousands at a time."""
        for first in range(0, len(self), _TOGETHER):
            part = slice(first, first + _TOGETHER)
            yield self.values[part].float(), self.labels[part]

    def batches(
        self, size: int, seed: int, epoch: int
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Give all samples in the order of an epoch, `size` at a time; the last may be fewer."""
        order = torch.randperm(len(self), generator=generator(seed, _ORDERS, epoch))
        order = order.to(self.device)
        values, labels = self.values[order], self.labels[order]
        for first in range(0, len(self), size):
            part = slice(first, first + size)
            yield values[part].float(), labels[part]


def checked_features(
    values: Array, labels: Array, classes: int, device: torch.device | str | None = None
) -> Features:
    """Return features and labels that fit together, on `device` (where they are by default)."""
    x, y = _tensor(values), _tensor(labels)
    classes = checks.integer("classes", classes, 2)
    if x.dim() != 2 or 0 in x.shape:
        raise InvalidInputError("features", f"shape {tuple(x.shape)}", "of shape (samples, width)")
    if x.is_complex():
        raise InvalidInputError("features", str(x.dtype), "real")
    if x.dtype != torch.int8:
        x = x.float()
        if not bool(x.isfinite().all()):
            raise InvalidInputError("features", "NaN or infinity", "finite numbers")
    if tuple(y.shape) != (len(x),):
        allowed = f"one class number for each of {len(x)} samples"
        raise InvalidInputError("labels", f"shape {tuple(y.shape)}", allowed)
    if y.is_floating_point() or y.is_complex() or y.dtype == torch.bool:
        raise InvalidInputError("labels", str(y.dtype), "integers")
    least, most = int(y.min()), int(y.max())
    if least < 0 or most >= classes:
        wrong = least if least < 0 else most
        raise InvalidInputError("labels", wrong, f"class numbers from 0 to {classes - 1}")
    place = x.device if device is None else device
    return Features(x.to(place), y.to(device=place, dtype=torch.int64), classes)


def _tensor(values: Array) -> torch.Tensor:
    if isinstance(values, np.ndarray) and not values.flags.writeable:
        return torch.tensor(values)  # torch shares no read-only memory
    return torch.as_tensor(values)
