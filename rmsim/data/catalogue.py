"""All data sets by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from rmsim.data import entangled, features, mnist
from rmsim.data.dataset import Dataset
from rmsim.data.download import Progress
from rmsim.data.places import Folder
from rmsim.data.prototypes import NAME as SYNTHETIC
from rmsim.data.prototypes import synthetic
from rmtheory.errors import InvalidInputError


class _Load(Protocol):
    def __call__(self, folder: Folder, download: bool, progress: Progress) -> Dataset: ...


class _Locate(Protocol):
    def __call__(self, folder: Folder) -> Path | None: ...


@dataclass(frozen=True)
class Entry:
    """A data set that can be asked for.

    Parameters
    ----------
    name : str
        As on the command line.
    what : str
        What is in it.
    origin : str
        Where it comes from: the package, a download, or files of the user.
    licence : str
        Who made it, and what is allowed.
    locate : callable
        Where it is on this machine, None if nowhere; nothing is read.
    load : callable
        Read it, downloading if allowed.
    """

    name: str
    what: str
    origin: str
    licence: str
    locate: _Locate
    load: _Load


def _images(images: mnist.ImageSet, what: str) -> Entry:
    def place(folder: Folder) -> Path | None:
        return mnist.locate(images, folder)

    def load(folder: Folder, download: bool, progress: Progress) -> Dataset:
        return mnist.load_images(images.name, folder, download=download, progress=progress)

    return Entry(images.name, what, "download or own files", images.licence, place, load)


_ENTRIES = (
    Entry(
        entangled.NAME,
        "MNIST in 100 random signs, 10 classes",
        "this package",
        entangled.LICENCE,
        lambda folder: entangled.PATH,
        lambda folder, download, progress: entangled.entangled_mnist(),
    ),
    _images(mnist.MNIST, "digits, 28 x 28 pixels, 10 classes"),
    _images(mnist.FASHION, "clothes, 28 x 28 pixels, 10 classes"),
    Entry(
        features.NAME,
        "512 features of ResNet18, 200 classes",
        "own files",
        features.LICENCE,
        features.locate_features,
        lambda folder, download, progress: features.load_features(folder),
    ),
    Entry(
        SYNTHETIC,
        "noisy copies of 10 random patterns of 100 spins",
        "this package",
        "none needed",
        lambda folder: Path(__file__).parent,
        lambda folder, download, progress: synthetic(),
    ),
)

#: Name -> entry, in the order of a list for users.
CATALOGUE: Mapping[str, Entry] = MappingProxyType({entry.name: entry for entry in _ENTRIES})


def entry(name: str) -> Entry:
    """Return the entry of the data set `name`."""
    if name not in CATALOGUE:
        raise InvalidInputError("dataset", name, f"one of {', '.join(CATALOGUE)}")
    return CATALOGUE[name]


def load(
    name: str,
    folder: Folder = None,
    *,
    download: bool = True,
    progress: Progress = lambda share: None,
) -> Dataset:
    """Return the data set `name`.

    Parameters
    ----------
    name : str
        entangled-mnist, mnist, fashion-mnist, tiny-imagenet-features or synthetic.
    folder : path
        Where its files are, instead of the variable RMSIM_DATA, the system and the cache.
    download : bool
        Whether the network may be used (MNIST and Fashion-MNIST).
    progress : callable
        Told the share of a download that is done.

    Examples
    --------
    >>> load("entangled-mnist").width
    100
    """
    return entry(name).load(folder, download, progress)
