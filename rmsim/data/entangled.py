r"""Entangled MNIST (paper, SM-D): MNIST seen through 100 random binary measurements.

.. math:: x_k = \mathrm{sign}\Big(\sum_{j=1}^{784} W_{kj}\, p_j/255\Big), \qquad
    W_{kj} \sim \mathcal N(0, 1/784), \qquad k = 1, \dots, 100,

with pixels p_j from 0 to 255, not centred, and sign(0) = -1. The 70,000 inputs ship with the
package, a bit for each spin; :mod:`rmsim.data.make_entangled` makes the file again from MNIST.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rmsim.data.dataset import Dataset, Samples
from rmtheory.base.errors import UnreadableDataError
from rmtheory.runtime.files import replacing
from rmtheory.runtime.untrusted import read_npz

NAME = "entangled-mnist"
WIDTH = 100
CLASSES = 10

#: Seed of the projection W.
SEED = 0

LICENCE = (
    "made from MNIST (Y. LeCun, C. Cortes, C. J. C. Burges), CC BY-SA 3.0; "
    "this adaptation is under CC BY-SA 3.0 too"
)

#: Checksum of the data set as it ships (`Dataset.checksum`).
SHA256 = "f669f91521dc380111c8a7a2183bd5cb76c2675dd13b7daf94928c1325b6aba2"

#: The file that ships, beside this one.
PATH = Path(__file__).with_name("entangled_mnist.npz")


def projection(inputs: int = 784, width: int = WIDTH, seed: int = SEED) -> npt.NDArray[np.float64]:
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
    fields = (pixels / 255.0) @ weights.T
    bound = 4 * np.finfo(float).eps * pixels.shape[1]
    unclear = (np.abs(fields) < bound) & pixels.any(axis=1, keepdims=True)
    if unclear.any():
        row, column = (int(index[0]) for index in np.nonzero(unclear))
        raise UnreadableDataError(f"the sign of field {column} of input {row} is lost in rounding")
    return np.where(fields > 0, 1, -1).astype(np.int8)


def entangled_from(mnist: Dataset) -> Dataset:
    """Make Entangled MNIST from MNIST, whose inputs are pixels/255."""
    weights = projection(mnist.width)

    def part(samples: Samples) -> Samples:
        pixels = np.rint(samples.inputs * 255).astype(np.uint8)
        return Samples(entangle(pixels, weights), samples.labels)

    source = f"made from {mnist.source} with seed {SEED}"
    return Dataset(NAME, part(mnist.train), part(mnist.test), CLASSES, source, LICENCE)


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
    data = read_packed(PATH)
    if data.checksum != SHA256:
        raise UnreadableDataError(
            f"{PATH} was altered: its checksum is {data.checksum}, "
            f"not {SHA256}; install the package again"
        )
    return data


def read_packed(path: str | os.PathLike[str]) -> Dataset:
    """Read a file written by `write_packed`."""
    arrays = read_npz(path, ("train_bits", "train_labels", "test_bits", "test_labels"))

    def part(name: str) -> Samples:
        bits, labels = arrays[f"{name}_bits"], arrays[f"{name}_labels"]
        size = (len(labels) * WIDTH + 7) // 8
        if bits.dtype != np.uint8 or bits.shape != (size,):
            raise UnreadableDataError(
                f"{path} is damaged: {name}_bits must be {size} bytes for {len(labels)} labels"
            )
        flat = np.unpackbits(bits, count=len(labels) * WIDTH)
        return Samples((2 * flat.astype(np.int8) - 1).reshape(-1, WIDTH), labels)

    source = f"rmsim, from MNIST with seed {SEED}"
    return Dataset(NAME, part("train"), part("test"), CLASSES, source, LICENCE)


def write_packed(data: Dataset, path: str | os.PathLike[str]) -> None:
    """Write spins +-1 with their labels, a bit and a byte each, without pickle."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, samples in (("train", data.train), ("test", data.test)):
        arrays[f"{name}_bits"] = np.packbits(samples.inputs > 0)
        arrays[f"{name}_labels"] = samples.labels.astype(np.uint8)
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
