"""Features of Tiny ImageNet (paper, SM-D): the last layer of a ResNet18, 512 numbers per image.

The authors publish them as https://huggingface.co/datasets/willinki/tinyimagenet-features, with the
columns x (512 float32) and y (label from 0 to 199) and the parts train (100,000) and validation
(10,000, the test set). Each part is read from parquet files ``PART*.parquet`` (as downloaded, also
in a folder ``data``), or from ``PART.npz`` with the arrays x and y.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rmsim.data.dataset import Dataset, Samples
from rmsim.data.download import (
    VARIABLE,
    Folder,
    looked_in,
    roots,
)
from rmtheory.base.errors import InvalidInputError, UnreadableDataError
from rmtheory.runtime.untrusted import (
    MALFORMED,
    MOST_BYTES,
    opened,
    read_npz,
)

NAME = "tiny-imagenet-features"
WIDTH = 512
CLASSES = 200
LICENCE = "D. Badalotti et al., from Tiny ImageNet (ImageNet terms: research, not for profit)"

_ADDRESS = "https://huggingface.co/datasets/willinki/tinyimagenet-features"
_COLUMNS = ("x", "y")
_PARTS = ("train", "validation")
_FOLDERS = (NAME, "tinyimagenet-features", ".")


def locate_features(folder: Folder = None) -> Path | None:
    """Return the folder with all parts, or None if there is none on this machine."""
    for root in roots(folder):
        for name in _FOLDERS:
            if all(_files(root / name, part) for part in _PARTS):
                return root / name
    return None


def load_features(folder: Folder = None, width: int = WIDTH, classes: int = CLASSES) -> Dataset:
    """Return the features in `folder`, or in that of RMSIM_DATA or the cache if it is None.

    Raises
    ------
    UnreadableDataError
        If there are none, saying what to do, or if a file is not of the published schema.
    """
    place = locate_features(folder)
    if place is None:
        raise UnreadableDataError(
            f"{NAME} is nowhere ({looked_in(folder)}): download the parquet files of {_ADDRESS} "
            f"into DIR/{NAME} and name it by --data DIR or {VARIABLE}=DIR; or put the arrays x "
            f"and y of each part into train.npz and validation.npz there"
        )
    train, test = (_part(_files(place, part), width, classes) for part in _PARTS)
    return Dataset(NAME, train, test, classes, str(place), LICENCE)


def _files(folder: Path, part: str) -> list[Path]:
    """Return the npz file of `part`, or its parquet files in order; none if there are none."""
    archive = folder / f"{part}.npz"
    if archive.is_file():
        return [archive]
    for place in (folder, folder / "data"):
        if shards := sorted(place.glob(f"{part}*.parquet")):
            return shards
    return []


def _part(paths: Sequence[Path], width: int, classes: int) -> Samples:
    read = [_checked(path, *_columns(path), width, classes) for path in paths]
    return Samples(
        np.concatenate([samples.inputs for samples in read]),
        np.concatenate([samples.labels for samples in read]),
    )


def _checked(
    path: Path, x: npt.NDArray[Any], y: npt.NDArray[Any], width: int, classes: int
) -> Samples:
    if x.ndim != 2 or x.shape[1] != width:
        raise UnreadableDataError(f"{path}: x must be rows of {width} numbers, got {x.shape}")
    try:
        samples = Samples(x, y)
    except InvalidInputError as problem:
        raise UnreadableDataError(f"{path}: {problem}") from None
    least, most = samples.labels.min(), samples.labels.max()
    if least < 0 or most >= classes:
        raise UnreadableDataError(
            f"{path}: labels y must be from 0 to {classes - 1}, got {least} to {most}"
        )
    return samples


def _columns(path: Path) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    if path.suffix == ".npz":
        arrays = read_npz(path, _COLUMNS)
        return arrays["x"], arrays["y"]
    return _parquet(path)


def _parquet(path: Path) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UnreadableDataError(
            f"{path} needs pyarrow: install representation-manifold[parquet]"
        ) from None
    try:
        with opened(path) as file:
            packed = pq.ParquetFile(file)
            groups = range(packed.metadata.num_row_groups)
            size = sum(packed.metadata.row_group(group).total_byte_size for group in groups)
            if size > MOST_BYTES:
                raise UnreadableDataError(f"{path} unpacks to {size} bytes, more than {MOST_BYTES}")
            table = packed.read()
    except (pa.ArrowException, OSError, *MALFORMED) as problem:
        reason = " ".join(str(problem).split())
        raise UnreadableDataError(f"{path} cannot be read: {reason}") from None
    if not set(_COLUMNS) <= set(table.column_names):
        there = ", ".join(table.column_names) or "none"
        raise UnreadableDataError(f"{path} must have the columns x, y; it has {there}")
    x, y = (table.column(name).combine_chunks() for name in _COLUMNS)
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(kind(x.type) for kind in lists):
        raise UnreadableDataError(f"{path}: x must be lists of numbers, got {x.type}")
    values = x.flatten()
    if x.null_count or y.null_count or values.null_count:
        raise UnreadableDataError(f"{path} has missing values (null)")
    lengths = np.unique(x.value_lengths().to_numpy(zero_copy_only=False))
    if len(lengths) != 1:
        raise UnreadableDataError(f"{path}: rows of x have different lengths, {lengths.tolist()}")
    flat = values.to_numpy(zero_copy_only=False)
    return flat.reshape(len(x), int(lengths[0])), y.to_numpy(zero_copy_only=False)
