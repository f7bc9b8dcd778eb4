"""A data set: inputs and labels to learn from and to test on, their source and their licence.

:func:`synthetic` makes one: noisy copies of one random pattern for each class.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from rmsim.randomness import checked_seed, generator
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class Samples:
    """Inputs with their labels; the arrays are read-only, so that no user changes another's data.

    Parameters
    ----------
    inputs : array of shape (P, D)
        int8 for spins +-1, float32 otherwise; finite.
    labels : array of shape (P,)
        int64, from 0 to the number of classes less one.

    Examples
    --------
    >>> import rmsim as rs
    >>> samples = rs.Samples([[1.0, -1.0], [0.5, 2.0]], [0, 1])
    >>> len(samples), samples.width
    (2, 2)
    """

    inputs: npt.NDArray[Any]
    labels: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        inputs, labels = np.asarray(self.inputs), np.asarray(self.labels)
        if inputs.ndim != 2 or 0 in inputs.shape:
            raise InvalidInputError("inputs", f"shape {inputs.shape}", "an array (samples, width)")
        if labels.shape != inputs.shape[:1]:
            allowed = f"one label per sample, shape ({inputs.shape[0]},)"
            raise InvalidInputError("labels", f"shape {labels.shape}", allowed)
        object.__setattr__(self, "inputs", _sealed(_numbers(inputs)))
        object.__setattr__(self, "labels", _sealed(_integers(labels)))

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def width(self) -> int:
        """Number D of numbers in an input."""
        return int(self.inputs.shape[1])

    def tensors(
        self, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu"
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return copies of the inputs as `dtype` and of the labels as int64, on `device`."""
        inputs, labels = torch.tensor(self.inputs), torch.tensor(self.labels)
        return inputs.to(device=device, dtype=dtype), labels.to(device)

    def first(self, count: int) -> Samples:
        """Return the first `count` samples."""
        kept = checks.integer("count", count, 1, len(self))
        return Samples(self.inputs[:kept], self.labels[:kept])


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples to train on and to test on.

    Parameters
    ----------
    name : str
        As on the command line.
    train, test : Samples
        Of the same width.
    classes : int
        Number C of classes, at least 2.
    source : str
        Where it was read from.
    licence : str
        Who made it, and what is allowed.

    Examples
    --------
    >>> import rmsim as rs
    >>> samples = rs.Samples([[1.0, -1.0], [0.5, 2.0]], [0, 1])
    >>> data = rs.Dataset("mine", samples, samples, classes=2, source="typed in", licence="mine")
    >>> data.width, data.classes
    (2, 2)
    """

    name: str
    train: Samples
    test: Samples
    classes: int
    source: str
    licence: str

    def __post_init__(self) -> None:
        classes = checks.integer("classes", self.classes, 2)
        if self.train.width != self.test.width:
            allowed = f"of the width {self.train.width} of the training inputs"
            raise InvalidInputError("test inputs", self.test.width, allowed)
        for part, samples in (("train", self.train), ("test", self.test)):
            least, most = int(samples.labels.min()), int(samples.labels.max())
            if least < 0 or most >= classes:
                outlier = least if least < 0 else most
                raise InvalidInputError(f"{part} labels", outlier, f"from 0 to {classes - 1}")

    @property
    def width(self) -> int:
        """Number D of numbers in an input."""
        return self.train.width

    @cached_property
    def checksum(self) -> str:
        """sha256 of all inputs and labels; equal for equal numbers, whatever file they are from."""
        digest = hashlib.sha256()
        for samples in (self.train, self.test):
            for values in (samples.inputs, samples.labels):
                little = values.astype(values.dtype.newbyteorder("<"), order="C", copy=False)
                digest.update(f"{little.dtype.str} {little.shape}\n".encode())
                digest.update(little.data)
        return digest.hexdigest()

    def first(self, train: object = None, test: object = None) -> Dataset:
        """Return the first `train` and `test` samples of the two parts; None for all of one."""
        parts: dict[str, Samples] = {}
        for name, part, count in (("train", self.train, train), ("test", self.test, test)):
            if count is not None:
                parts[name] = part.first(checks.integer(name, count, 1, len(part)))
        return replace(self, **parts) if parts else self  # type: ignore[arg-type]

    def summary(self) -> dict[str, object]:
        """What is in it, as JSON values."""
        return {
            "name": self.name,
            "train": len(self.train),
            "test": len(self.test),
            "width": self.width,
            "classes": self.classes,
            "source": self.source,
            "licence": self.licence,
            "sha256": self.checksum,
        }


def _numbers(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return spins as int8, everything else as float32, and refuse what is not a number."""
    if values.dtype == np.int8:
        return values
    if values.dtype.kind not in "biuf":
        raise InvalidInputError("inputs", f"an array of {values.dtype}", "numbers")
    with np.errstate(over="ignore"):  # what overflows is refused below
        single = values.astype(np.float32, copy=False)
    if not np.isfinite(single).all():
        row = int(np.flatnonzero(~np.isfinite(single).all(axis=1))[0])
        raise InvalidInputError("inputs", f"NaN or infinity in sample {row}", "finite numbers")
    return single


def _integers(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    if values.dtype.kind not in "iu":
        raise InvalidInputError("labels", f"an array of {values.dtype}", "integers")
    return values.astype(np.int64, copy=False)


def _sealed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a read-only view; the array of the caller stays as it is."""
    view = values.view()
    view.flags.writeable = False
    return view


SYNTHETIC = "synthetic"


def synthetic(
    classes: int = 10,
    width: int = 100,
    train: int = 2000,
    test: int = 500,
    flips: float = 0.2,
    seed: int = 0,
) -> Dataset:
    """Return spins x_k = sign(g_k) e_k, g Gaussian for each class, e_k = -1 with chance `flips`.

    Classes take turns, so that each has its share of the samples.

    Examples
    --------
    >>> data = synthetic(classes=3, width=5, train=6, test=3, flips=0)
    >>> data.train.labels.tolist()
    [0, 1, 2, 0, 1, 2]
    >>> bool((data.train.inputs[:3] == data.train.inputs[3:]).all())
    True
    """
    seed = checked_seed(seed)
    classes = checks.integer("classes", classes, 2)
    width = checks.integer("width", width, 1)
    chance = float(checks.exact_real("flips", flips))
    if not 0 <= chance <= 0.5:
        raise InvalidInputError("flips", flips, "a probability from 0 to 0.5")
    prototypes = torch.randn((classes, width), generator=generator(seed, 0)).sign()

    def part(count: int, stream: torch.Generator) -> Samples:
        labels = torch.arange(count) % classes
        flipped = torch.rand((count, width), generator=stream) < chance
        spins = torch.where(flipped, -1, 1) * prototypes[labels]
        return Samples(spins.numpy().astype(np.int8), labels.numpy())

    return Dataset(
        SYNTHETIC,
        part(checks.integer("train", train, 1), generator(seed, 1)),
        part(checks.integer("test", test, 1), generator(seed, 2)),
        classes,
        f"made with seed {seed}",
        "none needed",
    )
