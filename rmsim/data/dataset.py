r"""A data set: inputs and labels to learn from and to test on, their source and their licence.

Two data sets are part of the package. :func:`synthetic` makes noisy copies of one random pattern
for each class. Entangled MNIST (paper, SM-D) is MNIST seen through 100 random binary measurements,

.. math:: x_k = \mathrm{sign}\Big(\sum_{j=1}^{784} W_{kj}\, p_j/255\Big), \qquad
    W_{kj} \sim \mathcal N(0, 1/784), \qquad k = 1, \dots, 100,

with pixels p_j from 0 to 255, not centred, and sign(0) = -1. The 70,000 inputs are a file of the
package, one bit per spin; :mod:`rmsim.data.mnist` makes it again from MNIST.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError, UnreadableDataError
from rmtheory.runtime.files import replacing
from rmtheory.runtime.untrusted import read_npz

if TYPE_CHECKING:  # the catalogue lists data sets without torch
    import torch


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
        self, dtype: torch.dtype | None = None, device: torch.device | str = "cpu"
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return copies of the inputs as `dtype` (float32) and of the labels, on `device`."""
        import torch

        dtype = torch.float32 if dtype is None else dtype
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
    >>> import rmsim as rs
    >>> data = rs.synthetic(classes=3, width=5, train=6, test=3, flips=0)
    >>> data.train.labels.tolist()
    [0, 1, 2, 0, 1, 2]
    >>> bool((data.train.inputs[:3] == data.train.inputs[3:]).all())
    True
    """
    import torch

    from rmsim.tensors import checked_seed, generator

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


ENTANGLED = "entangled-mnist"
ENTANGLED_WIDTH = 100
ENTANGLED_CLASSES = 10

#: Seed of the projection W.
ENTANGLED_SEED = 0

ENTANGLED_LICENCE = (
    "made from MNIST (Y. LeCun, C. Cortes, C. J. C. Burges), CC BY-SA 3.0; "
    "this adaptation is under CC BY-SA 3.0 too"
)

#: Checksum of the data set as it ships (`Dataset.checksum`).
ENTANGLED_SHA256 = "f669f91521dc380111c8a7a2183bd5cb76c2675dd13b7daf94928c1325b6aba2"

#: The file that ships, beside this one.
ENTANGLED_PATH = Path(__file__).with_name("entangled_mnist.npz")


def projection(
    inputs: int = 784, width: int = ENTANGLED_WIDTH, seed: int = ENTANGLED_SEED
) -> npt.NDArray[np.float64]:
    """Return W, Gaussian of variance 1/inputs, shape (width, inputs).

    It is drawn by numpy's RandomState, the only generator whose numbers are promised never to
    change.
    """
    drawn = np.random.RandomState(seed).standard_normal((width, inputs))
    scaled: npt.NDArray[np.float64] = drawn / np.sqrt(inputs)
    return scaled


def entangle(
    pixels: npt.NDArray[np.uint8], weights: npt.NDArray[np.float64]
) -> npt.NDArray[np.int8]:
    """Return sign(W p/255) with sign(0) = -1, as +-1, one row for each row of `pixels`.

    Raises
    ------
    UnreadableDataError
        If a field is so small that the order of the sum decides on its sign: the result would
        depend on the machine. An input of zeros is different: its fields are exactly zero.
    """
    import torch

    from rmsim.tensors import sign_below

    fields = (pixels / 255.0) @ weights.T
    bound = 4 * np.finfo(float).eps * pixels.shape[1]
    unclear = (np.abs(fields) < bound) & pixels.any(axis=1, keepdims=True)
    if unclear.any():
        row, column = (int(index[0]) for index in np.nonzero(unclear))
        raise UnreadableDataError(f"the sign of field {column} of input {row} is lost in rounding")
    return np.asarray(sign_below(torch.from_numpy(fields), torch.int8).numpy())


def entangled_from(mnist: Dataset) -> Dataset:
    """Make Entangled MNIST from MNIST, whose inputs are pixels/255."""
    weights = projection(mnist.width)

    def part(samples: Samples) -> Samples:
        pixels = np.rint(samples.inputs * 255).astype(np.uint8)
        return Samples(entangle(pixels, weights), samples.labels)

    source = f"made from {mnist.source} with seed {ENTANGLED_SEED}"
    return Dataset(
        ENTANGLED, part(mnist.train), part(mnist.test), ENTANGLED_CLASSES, source, ENTANGLED_LICENCE
    )


@cache
def entangled_mnist() -> Dataset:
    """Return Entangled MNIST as it ships: 60,000 and 10,000 inputs of 100 spins +-1, 10 classes.

    Examples
    --------
    >>> data = entangled_mnist()
    >>> data.train.inputs.shape, data.test.inputs.shape, data.classes
    ((60000, 100), (10000, 100), 10)
    >>> data.train.labels[:5].tolist()
    [5, 0, 4, 1, 9]
    """
    data = read_packed(ENTANGLED_PATH)
    if data.checksum != ENTANGLED_SHA256:
        raise UnreadableDataError(
            f"{ENTANGLED_PATH} was altered: its checksum is {data.checksum}, "
            f"not {ENTANGLED_SHA256}; install the package again"
        )
    return data


def read_packed(path: str | os.PathLike[str]) -> Dataset:
    """Read a file written by `write_packed`."""
    arrays = read_npz(path, ("train_bits", "train_labels", "test_bits", "test_labels"))

    def part(name: str) -> Samples:
        bits, labels = arrays[f"{name}_bits"], arrays[f"{name}_labels"]
        size = (len(labels) * ENTANGLED_WIDTH + 7) // 8
        if bits.dtype != np.uint8 or bits.shape != (size,):
            raise UnreadableDataError(
                f"{path} is damaged: {name}_bits must be {size} bytes for {len(labels)} labels"
            )
        flat = np.unpackbits(bits, count=len(labels) * ENTANGLED_WIDTH)
        return Samples((2 * flat.astype(np.int8) - 1).reshape(-1, ENTANGLED_WIDTH), labels)

    source = f"rmsim, from MNIST with seed {ENTANGLED_SEED}"
    return Dataset(
        ENTANGLED, part("train"), part("test"), ENTANGLED_CLASSES, source, ENTANGLED_LICENCE
    )


def write_packed(data: Dataset, path: str | os.PathLike[str]) -> None:
    """Write spins +-1 with their labels, a bit and a byte each, without pickle."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, samples in (("train", data.train), ("test", data.test)):
        arrays[f"{name}_bits"] = np.packbits(samples.inputs > 0)
        arrays[f"{name}_labels"] = samples.labels.astype(np.uint8)
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
