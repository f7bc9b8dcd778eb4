"""All data sets by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from rmsim.data import features, mnist
from rmsim.data.dataset import (
    ENTANGLED,
    ENTANGLED_LICENCE,
    ENTANGLED_PATH,
    SYNTHETIC,
    Dataset,
    Samples,
    entangled_mnist,
    synthetic,
)
from rmsim.data.download import Folder, ShareProgress
from rmtheory.base.errors import InvalidInputError, UnreadableDataError
from rmtheory.runtime.untrusted import read_npz


class _Load(Protocol):
    def __call__(self, folder: Folder, download: bool, progress: ShareProgress) -> Dataset: ...


class _Locate(Protocol):
    def __call__(self, folder: Folder) -> Path | None: ...


@dataclass(frozen=True)
class Entry:
    """A data set of the catalogue.

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

    def load(folder: Folder, download: bool, progress: ShareProgress) -> Dataset:
        return mnist.load_images(images.name, folder, download=download, progress=progress)

    return Entry(images.name, what, "download or own files", images.licence, place, load)


_ENTRIES = (
    Entry(
        ENTANGLED,
        "MNIST in 100 random signs, 10 classes",
        "this package",
        ENTANGLED_LICENCE,
        lambda folder: ENTANGLED_PATH,
        lambda folder, download, progress: entangled_mnist(),
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
    progress: ShareProgress = lambda share: None,
) -> Dataset:
    """Return the data set `name`.

    Parameters
    ----------
    name : str
        entangled-mnist, mnist, fashion-mnist, tiny-imagenet-features or synthetic.
    folder, download, progress
        As for :func:`load_data`.

    Examples
    --------
    >>> load("entangled-mnist").width
    100
    """
    return entry(name).load(folder, download, progress)


#: Arrays of a file with data of the user's own.
_ARRAYS = ("train_inputs", "train_labels", "test_inputs", "test_labels")


def load_data(
    source: str | os.PathLike[str],
    folder: Folder = None,
    *,
    download: bool = True,
    progress: ShareProgress = lambda share: None,
) -> Dataset:
    """Return a data set by its name, or from a file of your own.

    Parameters
    ----------
    source : str or path
        entangled-mnist, mnist, fashion-mnist, tiny-imagenet-features or synthetic; or the path of
        an .npz file with the arrays ``train_inputs`` (samples, width), ``train_labels`` (class
        numbers from 0 on), ``test_inputs`` and ``test_labels``.
    folder : path
        Where the files of a named data set are, instead of the variable RMSIM_DATA, the system and
        the cache.
    download : bool
        Whether the network may be used (MNIST and Fashion-MNIST).
    progress : callable
        Called with the share of a download that is done.

    Raises
    ------
    UnreadableDataError
        If a file is missing, damaged or not of this form.

    Examples
    --------
    >>> import rmsim as rs
    >>> data = rs.load_data("entangled-mnist")
    >>> data.width, data.classes, len(data.train)
    (100, 10, 60000)
    """
    name = os.fspath(source)
    if isinstance(source, str) and name in CATALOGUE:
        return load(name, folder, download=download, progress=progress)
    path = Path(name)
    if path.suffix != ".npz":
        allowed = f"one of {', '.join(CATALOGUE)}, or the path of an .npz file"
        raise InvalidInputError("source", name, allowed)
    if folder is not None:
        raise InvalidInputError("folder", str(folder), "left out, as the file is named")
    arrays = read_npz(path, _ARRAYS)
    try:
        train, test = (
            Samples(arrays[f"{part}_inputs"], arrays[f"{part}_labels"])
            for part in ("train", "test")
        )
        most = max(int(part.labels.max()) for part in (train, test))
        return Dataset(path.name, train, test, most + 1, str(path), "that of the file")
    except InvalidInputError as problem:
        raise UnreadableDataError(f"{path}: {problem}") from None
