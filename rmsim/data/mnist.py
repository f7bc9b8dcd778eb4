"""MNIST and Fashion-MNIST: 60,000 + 10,000 grey images of 28 x 28 pixels in ten classes.

They are read from IDX files with their published names, plain or with .gz at the end, and compared
with the published ones by the sha256 of the uncompressed content. Inputs are pixels/255.

An IDX file begins with the magic number 00 00 08 d for unsigned bytes in d dimensions; d sizes as
big-endian 32-bit integers follow, then exactly as many bytes as the sizes say.

Entangled MNIST is made from MNIST by ``python -m rmsim.data.mnist DIR``, with the IDX files in DIR.
"""

from __future__ import annotations

import hashlib
import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rmsim.data.dataset import (
    ENTANGLED_PATH,
    ENTANGLED_SEED,
    Dataset,
    Samples,
    entangled_from,
    write_packed,
)
from rmsim.data.download import (
    VARIABLE,
    DownloadError,
    Folder,
    ShareProgress,
    cache_folder,
    fetch,
    looked_in,
    roots,
)
from rmtheory.base.errors import InvalidInputError, RMError, UnreadableDataError
from rmtheory.runtime.command import fail
from rmtheory.runtime.untrusted import at_most, opened_unpacked

CLASSES = 10


@dataclass(frozen=True)
class ImageSet:
    """A set of images of the kind of MNIST.

    Parameters
    ----------
    name : str
        As on the command line, and of the folder beneath RMSIM_DATA and the cache.
    licence : str
        Who made it, and what is allowed.
    sha256 : mapping
        File name -> checksum of the uncompressed content.
    mirrors : tuple of str
        Addresses of folders that hold the files with .gz at the end, best first.
    alias : str
        Folder beneath which torchvision keeps the set.
    system : tuple of Path
        Folders where packages of the operating system put the files.
    package : str
        Name of such a package, of Debian.
    """

    name: str
    licence: str
    sha256: Mapping[str, str]
    mirrors: tuple[str, ...]
    alias: str
    system: tuple[Path, ...] = ()
    package: str = ""


MNIST = ImageSet(
    "mnist",
    "Y. LeCun, C. Cortes, C. J. C. Burges; CC BY-SA 3.0",
    {
        "train-images-idx3-ubyte": (
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"
        ),
        "train-labels-idx1-ubyte": (
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"
        ),
        "t10k-images-idx3-ubyte": (
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"
        ),
        "t10k-labels-idx1-ubyte": (
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"
        ),
    },
    (
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    "MNIST/raw",
)

FASHION = ImageSet(
    "fashion-mnist",
    "Copyright 2017 Zalando SE; MIT licence",
    {
        "train-images-idx3-ubyte": (
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"
        ),
        "train-labels-idx1-ubyte": (
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"
        ),
        "t10k-images-idx3-ubyte": (
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"
        ),
        "t10k-labels-idx1-ubyte": (
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"
        ),
    },
    (
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
    ),
    "FashionMNIST/raw",
    (Path("/usr/share/datasets/fashion-mnist"),),
    "dataset-fashion-mnist",
)

IMAGE_SETS = {images.name: images for images in (MNIST, FASHION)}


def load_images(
    name: str,
    folder: Folder = None,
    *,
    download: bool = True,
    progress: ShareProgress = lambda share: None,
    schemes: tuple[str, ...] = ("https",),
) -> Dataset:
    """Return MNIST or Fashion-MNIST, from the first place that has it.

    The places are `folder`, and only it, if given; else the folder that RMSIM_DATA names, the
    folders of the operating system, the cache, and at last the network.

    Parameters
    ----------
    name : str
        mnist or fashion-mnist.
    folder : path
        Holds the IDX files, or a folder `name` (or that of torchvision) that does.
    download : bool
        Whether the network may be used.
    progress : callable
        Called with the share of the download that is done.

    Raises
    ------
    UnreadableDataError
        If no place has it, saying what to do; or if a file is damaged, naming it.
    """
    images = image_set(name)
    place = locate(images, folder)
    if place is None:
        if folder is not None or not download:
            raise UnreadableDataError(_nowhere(images, folder, ""))
        place = _fetched(images, progress, schemes)
    return _load_from(images, place)


def image_set(name: str) -> ImageSet:
    """Return the set called `name`."""
    if name not in IMAGE_SETS:
        raise InvalidInputError("name", name, " or ".join(IMAGE_SETS))
    return IMAGE_SETS[name]


def locate(images: ImageSet, folder: Folder = None) -> Path | None:
    """Return the folder with all files of `images`, or None if there is none on this machine."""
    for root in roots(folder, images.system):
        # The own folder first: beneath one root the files of all sets have the same names.
        for place in (root / images.name, root / images.alias, root):
            if all(_file(place, name) for name in images.sha256):
                return place
    return None


def _file(folder: Path, name: str) -> Path | None:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    return None


def _load_from(images: ImageSet, folder: Path) -> Dataset:
    def array(name: str, dimensions: int) -> npt.NDArray[np.uint8]:
        path = _file(folder, name)
        if path is None:
            raise UnreadableDataError(f"{folder / name} was there and is gone")
        return read_idx(path, dimensions, images.sha256[name])

    def part(name: str) -> Samples:
        pixels, labels = (
            array(f"{name}-images-idx3-ubyte", 3),
            array(f"{name}-labels-idx1-ubyte", 1),
        )
        return Samples(pixels.reshape(len(pixels), -1) / np.float32(255), labels.astype(np.int64))

    return Dataset(images.name, part("train"), part("t10k"), CLASSES, str(folder), images.licence)


def _fetched(images: ImageSet, progress: ShareProgress, schemes: tuple[str, ...]) -> Path:
    """Download the files of `images` into the cache and return their folder there."""
    folder = cache_folder() / images.name
    for position, name in enumerate(images.sha256):

        def check(path: Path, name: str = name) -> None:
            dimensions = 3 if "idx3" in name else 1
            demand_checksum(read_idx_bytes(path, dimensions), path, images.sha256[name])

        def report(share: float, position: int = position) -> None:
            progress((position + share) / len(images.sha256))

        reasons = []
        for mirror in images.mirrors:
            try:
                fetch(f"{mirror}{name}.gz", folder / f"{name}.gz", check, report, schemes)
                break
            except (DownloadError, UnreadableDataError) as problem:
                reasons.append(str(problem))
        else:
            raise UnreadableDataError(_nowhere(images, None, "; ".join(reasons)))
    return folder


def _nowhere(images: ImageSet, folder: Folder, reason: str) -> str:
    """Say where `images` was searched for, why there was no download, and what to do."""
    names = ", ".join(images.sha256)
    looked = looked_in(folder, images.system)
    failure = f"; the download failed: {reason}" if reason else ""
    package = f"install Debian's package {images.package}, or " if images.package else ""
    return (
        f"{images.name} is nowhere ({looked}{failure}): {package}put {names} (plain or .gz) into "
        f"a folder DIR/{images.name} and name it by --data DIR or {VARIABLE}=DIR, or run 'rmsim "
        f"data fetch {images.name}' where there is a network; they are at {images.mirrors[0]}"
    )


# IDX files.

_UNSIGNED_BYTE = 0x08

#: Bytes a file may unpack to, twenty times the largest of MNIST: a gzip bomb stops here.
_MOST_BYTES = 1_000_000_000


def read_idx(
    path: str | os.PathLike[str], dimensions: int, sha256: str | None = None
) -> npt.NDArray[np.uint8]:
    """Read the file at `path`, whose uncompressed content has the checksum `sha256`, if given.

    Raises
    ------
    UnreadableDataError
        If the file is missing, truncated, too long, altered or of another kind; it is named.
    """
    content = read_idx_bytes(path, dimensions)
    values = parse_idx(content, path, dimensions)
    if sha256 is not None:
        demand_checksum(content, path, sha256)
    return values


def read_idx_bytes(path: str | os.PathLike[str], dimensions: int) -> bytes:
    """Return the content of a plain or gzip file, no further than its header announces.

    One byte more is read if there is one, so that :func:`parse_idx` sees it; of a file of another
    kind only the beginning is.
    """
    with opened_unpacked(path) as file:
        header = at_most(path, file, 4 + 4 * dimensions)
        if len(header) < 4 + 4 * dimensions or header[:4] != _magic(dimensions):
            return header
        announced = math.prod(_shape(header, dimensions))
        if announced > _MOST_BYTES:
            raise UnreadableDataError(
                f"{path} announces {announced} bytes, more than the {_MOST_BYTES} allowed"
            )
        return header + at_most(path, file, announced + 1)


def parse_idx(
    content: bytes, path: str | os.PathLike[str], dimensions: int
) -> npt.NDArray[np.uint8]:
    """Return the array in `content`; `path` is its name in errors.

    Examples
    --------
    >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 2, 5, 7]), "labels", 1)
    array([5, 7], dtype=uint8)
    """
    header = 4 + 4 * dimensions
    magic = _magic(dimensions)
    if content[:4] != magic:
        raise UnreadableDataError(
            f"{path} is not an IDX file of bytes in {dimensions} dimensions: it begins with "
            f"{content[:4].hex(' ') or 'nothing'} instead of {magic.hex(' ')}"
        )
    if len(content) < header:
        raise UnreadableDataError(f"{path} is truncated: its header has {len(content)} bytes")
    shape = _shape(content, dimensions)
    expected, present = math.prod(shape), len(content) - header
    if present != expected:
        sizes = " x ".join(map(str, shape))
        what = (
            f"is truncated: {present}"
            if present < expected
            else f"has trailing bytes: {present} or more"
        )
        raise UnreadableDataError(
            f"{path} {what} bytes for {sizes} = {expected} announced by its header"
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def demand_checksum(content: bytes, path: str | os.PathLike[str], sha256: str) -> None:
    """Raise unless the uncompressed `content` has the checksum `sha256`."""
    checksum = hashlib.sha256(content).hexdigest()
    if checksum != sha256:
        raise UnreadableDataError(
            f"{path} is not the published file: sha256 of its content is {checksum}, not {sha256}"
        )


def _magic(dimensions: int) -> bytes:
    return bytes((0, 0, _UNSIGNED_BYTE, dimensions))


def _shape(content: bytes, dimensions: int) -> list[int]:
    return [int(size) for size in np.frombuffer(content, ">u4", dimensions, offset=4)]


def make_entangled(arguments: list[str]) -> int:
    """Write the file of Entangled MNIST into the package and print the checksum for the source."""
    if len(arguments) != 1:
        return fail("make_entangled", "DIR with the IDX files of MNIST must be given", 2)
    try:
        data = entangled_from(load_images("mnist", arguments[0]))
        write_packed(data, ENTANGLED_PATH)
    except RMError as problem:
        return fail("make_entangled", str(problem), 1)
    print(f"{ENTANGLED_PATH}: seed {ENTANGLED_SEED}, checksum {data.checksum}")
    return 0


if __name__ == "__main__":
    sys.exit(make_entangled(sys.argv[1:]))
