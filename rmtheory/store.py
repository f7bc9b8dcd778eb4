"""Save and load labelled arrays as netCDF files, which any tool can read; nothing is pickled."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Literal

import numpy as np
import xarray as xr

# By its other name too: who reads data files looks for it here.
from rmtheory.errors import UnreadableDataError as UnreadableDataError
from rmtheory.files import replacing

_ENGINE: Literal["h5netcdf"] = "h5netcdf"
_CHECKSUM = "data_sha256"


def save(dataset: xr.Dataset, path: str | os.PathLike[str], argument: str = "out") -> None:
    """Write `dataset` to `path` at once or not at all, with a checksum of its numbers."""
    stamped = dataset.assign_attrs({_CHECKSUM: checksum(dataset)})
    with replacing(path, argument) as temporary:
        stamped.to_netcdf(temporary, engine=_ENGINE)


def load(path: str | os.PathLike[str]) -> xr.Dataset:
    """Read a dataset into memory and check that its numbers are those that were written.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    UnreadableDataError
        If the file is damaged, naming it.
    """
    if not Path(path).exists():
        raise FileNotFoundError(path)
    try:
        with xr.open_dataset(path, engine=_ENGINE) as file:
            dataset = file.load()
    except Exception as problem:  # HDF5 raises a dozen kinds; all mean the same here
        reason = " ".join(str(problem).split()) or type(problem).__name__
        raise UnreadableDataError(f"{path} cannot be read: {reason}") from problem
    if dataset.attrs.get(_CHECKSUM) != checksum(dataset):
        raise UnreadableDataError(f"{path} was altered: its checksum does not match its numbers")
    return dataset


def checksum(dataset: xr.Dataset) -> str:
    """Return a hash of names, dimensions and numbers of all variables, coordinates included."""
    digest = hashlib.sha256()
    for name in sorted(str(key) for key in dataset.variables):
        values = np.ascontiguousarray(dataset[name].values)
        text = values.dtype.kind in "OSUT"
        kind = "text" if text else values.dtype.str  # a text may come back as another type
        digest.update(f"{name} {dataset[name].dims} {kind} {values.shape}\n".encode())
        digest.update("\n".join(map(str, values.flat)).encode() if text else values.tobytes())
    return digest.hexdigest()
