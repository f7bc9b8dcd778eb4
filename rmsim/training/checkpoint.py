"""The weights of a run in a file: npz without pickle, whole or not at all.

Beside the arrays of :meth:`rmsim.learning.State.tensors` there is ``header``, a JSON text: the
plan, the sha256 of the data, the epoch and the number of batches.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rmsim.data.npz import read_npz
from rmsim.learning import State, state_of
from rmsim.training.plan import Plan, differences
from rmsim.training.stored import demand_consistent
from rmtheory.errors import InvalidInputError, UnreadableDataError
from rmtheory.files import replacing

_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A moment between two epochs.

    Parameters
    ----------
    plan : Plan
        What is trained.
    data : str
        sha256 of the data.
    epoch : int
        Epochs done.
    state : State
        The weights.
    """

    plan: Plan
    data: str
    epoch: int
    state: State


def save_checkpoint(path: Path, moment: Checkpoint) -> None:
    """Write the checkpoint beside `path`, down to the disk, and rename it."""
    header = {
        "format": _FORMAT,
        "plan": moment.plan.to_dict(),
        "data": moment.data,
        "epoch": moment.epoch,
        "step": moment.state.step,
    }
    tensors = moment.state.tensors()
    save_arrays(path, header, {name: value.cpu().numpy() for name, value in tensors.items()})


def load_checkpoint(path: Path, device: torch.device | str = "cpu") -> Checkpoint:
    """Read a checkpoint.

    Raises
    ------
    UnreadableDataError
        If it is missing, damaged or no checkpoint, naming the file.
    """
    again = "remove it, and 'rmsim train' starts the run from its first epoch"
    if not path.exists():
        raise UnreadableDataError(f"{path} is not there: 'rmsim train' makes it")
    try:
        header, arrays = load_arrays(path)
    except UnreadableDataError as problem:
        raise UnreadableDataError(f"{problem}: {again}") from None
    try:
        plan = Plan.from_dict(header["plan"])
        tensors = {name: torch.tensor(value, device=device) for name, value in arrays.items()}
        demand_consistent(plan, tensors)
        state = state_of(plan.parameters, tensors, plan.seed, int(header["step"]))
        return Checkpoint(plan, str(header["data"]), int(header["epoch"]), state)
    except (LookupError, TypeError, ValueError, RuntimeError, UnreadableDataError) as problem:
        reason = f"{path} is no checkpoint of a run: {problem}"
        raise UnreadableDataError(f"{reason}: {again}") from None


def demand_same(path: Path, moment: Checkpoint, plan: Plan, data: str) -> None:
    """Refuse a checkpoint of another run, naming what differs."""
    others = differences(
        moment.plan.to_dict() | {"data": moment.data}, plan.to_dict() | {"data": data}
    )
    if others:
        where = f"{path} of another run: {'; '.join(others)}"
        raise InvalidInputError("checkpoint", where, "one of the same run")


def save_arrays(path: Path, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write arrays and a JSON header to an npz file, atomically and down to the disk."""
    text = np.array(json.dumps(header, ensure_ascii=False))
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, header=text, **arrays)
        file.flush()
        os.fsync(file.fileno())


def load_arrays(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what :func:`save_arrays` wrote: the header and the arrays."""
    arrays = read_npz(path)
    try:
        header = json.loads(str(arrays.pop("header")))
        if header["format"] != _FORMAT:
            raise UnreadableDataError(
                f"{path} has format {header['format']}; this version reads {_FORMAT}"
            )
    except (KeyError, TypeError, ValueError):
        raise UnreadableDataError(f"{path} is no file of a run: it has no header") from None
    return header, arrays
