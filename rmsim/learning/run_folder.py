r"""What a run trains, and the folder that keeps it.

A :class:`Plan` is the parameters, the data and the seed: two equal plans give the same numbers. The
:class:`Folder` of a run holds

    run.json          the plan, the data, and where every session of the run took place
    log.jsonl         one line of measurements per epoch, readable while the run continues
    checkpoint.npz    the weights after the last whole epoch
    probe.npz         the softmax probe, if one was trained

All but the log are replaced as a whole; the log only grows, each line on the disk as soon as it is
made. One run at a time works in the folder. Every line of the log ends with a checksum of itself
and of all lines before it,

.. math:: c_k = \mathrm{sha256}(c_{k-1}\, l_k), \qquad c_0 = \text{the empty text},

with the line l_k as it is without its checksum: a line that was edited, removed, doubled or moved
is detected. Only lines removed at the end are not; the epoch of the weights shows them. Lines of
version 0.1 have no checksum. They are judged by their content, and those that follow them include
them in theirs.

A run that is killed may leave half a line at the end, or a line of an epoch whose weights were not
saved any more: readers leave out the first, and a run that is resumed drops both.

A checkpoint is an npz file without pickle. Beside the arrays of
:meth:`rmsim.learning.State.tensors` there is ``header``, a JSON text with the plan, the sha256 of
the data, the epoch and the number of batches.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from rmsim.data.dataset import Dataset
from rmsim.learning.parameters import Parameters
from rmsim.learning.presets import preset as preset_named
from rmsim.learning.state import State, Wiring, initialise, state_of
from rmsim.tensors import checked_seed, choose_dtype
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError, UnreadableDataError
from rmtheory.runtime.files import replacing, write_text
from rmtheory.runtime.run_store import Lock, RunStore, differences
from rmtheory.runtime.untrusted import (
    MALFORMED,
    MOST_JSON_BYTES,
    opened,
    opened_to_append,
    parse_json,
    read_bytes,
    read_json,
    read_npz,
    write_all,
)


@dataclass(frozen=True)
class Plan:
    """A run, without its length.

    Parameters
    ----------
    parameters : Parameters
        The protocol.
    dataset : str
        Name of the data set.
    seed : int
        Seed of the weights, of the order of the samples and of masked updates.
    preset : str
        The preset of the parameters; ``none`` if there is none.
    train_samples, test_samples : int, optional
        Take only the first ones of the data set.
    dtype : str
        float32 or float64.

    Examples
    --------
    >>> import rmsim as rs
    >>> rs.Plan.of_preset("entangled-mnist-dense", 200, seed=3, eta_j=0.01).parameters.j.eta
    0.01
    """

    parameters: Parameters
    dataset: str
    seed: int = 0
    preset: str = "none"
    train_samples: int | None = None
    test_samples: int | None = None
    dtype: str = "float32"

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", checked_seed(self.seed))
        object.__setattr__(self, "dtype", str(choose_dtype(self.dtype)).removeprefix("torch."))
        for name in ("train_samples", "test_samples"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, checks.integer(name, getattr(self, name), 1))

    @classmethod
    def of_preset(
        cls,
        name: str,
        n: int | None = None,
        *,
        seed: int = 0,
        dataset: str | None = None,
        classes: int | None = None,
        train_samples: int | None = None,
        test_samples: int | None = None,
        dtype: str = "float32",
        **others: Any,
    ) -> Plan:
        """Return the plan of the preset `name` at width `n`, with other parameters by name.

        With another data set come its `classes`, on which the label code depends.
        """
        chosen = preset_named(name)
        parameters = chosen.parameters(n, classes=classes, **others)
        data = chosen.dataset if dataset is None else dataset
        return cls(parameters, data, seed, name, train_samples, test_samples, dtype)

    def data(self, dataset: Dataset) -> Dataset:
        """Return the part of `dataset` that is used; refuse another data set."""
        if dataset.name != self.dataset:
            raise InvalidInputError("dataset", dataset.name, f"{self.dataset}, as planned")
        if self.parameters.neurons < dataset.classes:  # before a folder is made
            allowed = f"such that {dataset.classes} classes fit, N >= C"
            raise InvalidInputError("n", self.parameters.couplings.n, allowed)
        self.parameters.check_rates(dataset.width, dataset.classes)
        train = len(dataset.train) if self.train_samples is None else self.train_samples
        test = len(dataset.test) if self.test_samples is None else self.test_samples
        checks.integer("train_samples", train, 1, len(dataset.train))
        checks.integer("test_samples", test, 1, len(dataset.test))
        if (train, test) == (len(dataset.train), len(dataset.test)):
            return dataset
        return dataset.first(train, test)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return values | {"parameters": self.parameters.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Plan:
        """Return the plan that :meth:`to_dict` wrote."""
        known = {field.name for field in fields(cls)}
        try:
            if set(values) != known:
                raise ValueError("names")
            rest = {name: values[name] for name in known - {"parameters"}}
            for name in ("dataset", "preset"):
                if not isinstance(rest[name], str):
                    raise TypeError(f"{name} is {rest[name]}")
            return cls(Parameters.from_dict(values["parameters"]), **rest)
        except (TypeError, ValueError) as problem:
            raise UnreadableDataError(f"not the plan of a run: {problem}") from None


def initial_state(
    plan: Plan,
    data: Dataset,
    device: torch.device | str = "cpu",
    *,
    wiring: Wiring | None = None,
) -> State:
    """Return the weights before training: those of the seed of `plan`, for the part `data`."""
    return initialise(
        plan.parameters,
        data.width,
        data.classes,
        plan.seed,
        wiring=wiring,
        dtype=choose_dtype(plan.dtype),
        device=device,
    )


_FILES = ("run.json", "log.jsonl", "checkpoint.npz", "probe.npz", "labels.json")


@dataclass(frozen=True)
class Folder:
    """Reads and writes the files of a run."""

    path: Path

    @property
    def store(self) -> RunStore:
        """The folder as that of one computation."""
        return RunStore(self.path, "run.json", _FILES)

    @property
    def manifest(self) -> Path:
        """What the run is."""
        return self.path / "run.json"

    @property
    def log(self) -> Path:
        """Measurements."""
        return self.path / "log.jsonl"

    @property
    def checkpoint(self) -> Path:
        """Weights."""
        return self.path / "checkpoint.npz"

    @property
    def probe(self) -> Path:
        """Weights of the probe."""
        return self.path / "probe.npz"

    @property
    def labels(self) -> Path:
        """Labels and scaling of data of the user's own (:class:`rmsim.data.Encoding`)."""
        return self.path / "labels.json"

    def records(self) -> list[dict[str, Any]]:
        """Return the measurements so far, if the sessions in run.json can have made them.

        A log begins at epoch 0, or where a session resumed without one; lines of sessions that
        write checksums have them.

        Raises
        ------
        UnreadableDataError
            If lines at the beginning, or all checksums, were taken away.
        """
        log = _read(self.log)
        if not log.records or not self.manifest.exists():
            return log.records
        sessions = [one for one in self.identity()["sessions"] if isinstance(one, dict)]
        first = log.records[0]["epoch"]
        if first and str(first) not in {str(one.get("from_epoch")) for one in sessions}:
            raise UnreadableDataError(
                f"{self.log} was altered: it begins at epoch {first}, where no session of the run "
                "began: put back a copy, or remove it, and the last epoch is measured again"
            )
        # run.json may be altered too: a session without a number of its own says nothing here.
        begun = [
            int(text)
            for one in sessions
            if one.get("log") == _WITH_CHECKSUMS
            and (text := str(one.get("from_epoch"))).isdecimal()
        ]
        bare = log.records[: log.without_checksum]
        if begun and bare and bare[-1]["epoch"] > min(begun):
            raise UnreadableDataError(
                f"{self.log} was altered: the line of epoch {bare[-1]['epoch']} has lost its "
                "checksum: put back a copy, or remove it, and the last epoch is measured again"
            )
        return log.records

    def claimed(self, plan: Plan, data: str) -> AbstractContextManager[Lock]:
        """Claim the folder for the run `plan`, or confirm that it is its own; keep other runs out.

        Raises
        ------
        InvalidInputError
            If it holds another run, naming what differs, or cannot be written, or another run is
            at work in it.
        """
        return self.store.at_work(lambda lock: self._claim(plan, data))

    def locked(self) -> AbstractContextManager[Lock]:
        """Keep other runs out of the folder, as far as the system can; killed ones do not count."""
        return self.store.at_work()

    def writing(self, what: str) -> AbstractContextManager[None]:
        """Turn the failure to write `what` into a sentence that says what to do."""
        return self.store.writing(what, "everything up to the last whole epoch")

    def add_session(self, plan: Plan, data: str, session: dict[str, Any]) -> None:
        """Record where and with what the run starts or is resumed."""
        sessions = self.identity()["sessions"] if self.manifest.exists() else []
        entry = {**session, "log": _WITH_CHECKSUMS}
        document = {"plan": plan.to_dict(), "data": data, "sessions": [*sessions, entry]}
        with self.writing("run.json"):
            write_text(self.manifest, json.dumps(document, indent=2, ensure_ascii=False) + "\n")

    def identity(self) -> dict[str, Any]:
        """Return what run.json says: plan, data, sessions.

        Raises
        ------
        InvalidInputError
            If it is not the folder of a run.
        UnreadableDataError
            If run.json is damaged.
        """
        again = "put back a copy, or train in another folder"
        try:
            document = read_json(self.manifest)
        except FileNotFoundError:
            allowed = "the folder of a run (with run.json), as 'rmsim train' makes it"
            raise InvalidInputError("folder", str(self.path), allowed) from None
        except UnreadableDataError as problem:
            raise UnreadableDataError(f"{problem}: {again}") from None
        try:
            kinds = {"plan": dict, "data": str, "sessions": list}
            for name, kind in kinds.items():
                if not isinstance(document[name], kind):
                    raise TypeError(f"{name} is {document[name]}")
            Plan.from_dict(document["plan"])
        except (
            ArithmeticError,
            LookupError,
            TypeError,
            ValueError,
            UnreadableDataError,
        ) as problem:
            raise UnreadableDataError(
                f"{self.manifest} was altered or is cut off ({problem}): {again}"
            ) from None
        return dict(document)

    def _claim(self, plan: Plan, data: str) -> None:
        if not self.manifest.exists():
            there = [file.name for file in (self.log, self.checkpoint) if file.exists()]
            if there:
                where = f"{self.path}, which holds {there[0]} without run.json"
                raise InvalidInputError("out", where, "a new folder or that of the same run")
            return
        identity = self.identity()
        held = Plan.from_dict(identity["plan"]).to_dict() | {"data": identity["data"]}
        self.store.demand_same(held, plan.to_dict() | {"data": data}, "another run")


# The log.

#: Where the checksum of a line begins and ends.
_SEAL = re.compile(rb', "sha256": "([0-9a-f]{64})"\}\Z')

#: What run.json says of the sessions that write checksums into the log.
_WITH_CHECKSUMS = "every line has a checksum"

#: Bytes at the end of a log that hold its last line; one line has about a thousand.
_TAIL = 1 << 16

#: What a line must hold: fractions (None if nothing is read out), quantiles, other numbers.
_FRACTIONS = ("train_accuracy", "test_accuracy")
_QUANTILES = ("q_dyn", "margin")
_LEVELS = ("median", "q05", "q25", "q75", "q95")
_NUMBERS = ("unstable_clamped", "unstable_free", "below_kappa", "seconds")


def read_log(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return all whole records without their checksums, in their order; none without a file.

    Raises
    ------
    UnreadableDataError
        If a line other than the last is not a record or was altered; it is named.
    """
    return _read(path).records


def append_record(path: Path, record: Mapping[str, Any]) -> None:
    """Add a record, down to the disk; a failure leaves the file as it was."""
    line = _sealed(record, _last_checksum(path))[0]
    with opened_to_append(path) as file:
        before = file.seek(0, os.SEEK_END)
        try:
            write_all(file, line)
            os.fsync(file.fileno())
        except BaseException:
            file.truncate(before)
            raise


def keep_records(path: Path, last: int) -> None:
    """Drop what a killed run left behind: records after the epoch `last`, and half a line."""
    kept = sum(record["epoch"] <= last for record in read_log(path))  # epochs only grow
    try:
        content = read_bytes(path, MOST_JSON_BYTES)
    except FileNotFoundError:
        return
    length = sum(len(line) + 1 for line in content.split(b"\n")[:kept])
    if length < len(content):
        with opened_to_append(path) as file:
            file.truncate(length)
            os.fsync(file.fileno())


def _sealed(record: Mapping[str, Any], before: str) -> tuple[bytes, str]:
    """Return the line of a record that follows the checksum `before`, and its own checksum."""
    body = json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
    checksum = _checksum(before, body)
    return body[:-1] + f', "sha256": "{checksum}"}}\n'.encode(), checksum


def _checksum(before: str, body: bytes) -> str:
    return hashlib.sha256(before.encode() + body).hexdigest()


def _last_checksum(path: Path) -> str:
    """Return the checksum that the next line includes, from the end of the file if it is there."""
    try:
        with opened(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            tail = file.read(_TAIL)
    except FileNotFoundError:
        return ""
    seal = _SEAL.search(tail.removesuffix(b"\n")) if tail.endswith(b"\n") else None
    return _read(path).checksum if seal is None else seal[1].decode()


class _Log(NamedTuple):
    """All whole records, the checksum of the last one, and how many have none: those of 0.1."""

    records: list[dict[str, Any]]
    checksum: str
    without_checksum: int


def _read(path: str | os.PathLike[str]) -> _Log:
    try:
        lines = read_bytes(path, MOST_JSON_BYTES).split(b"\n")
    except FileNotFoundError:
        return _Log([], "", 0)
    records: list[dict[str, Any]] = []
    checksum, sealed, without = "", False, 0
    for number, line in enumerate(lines[:-1], 1):  # what follows the last newline is not whole
        seal = _SEAL.search(line)
        try:
            body = line if seal is None else line[: seal.start()] + b"}"
            checksum = _checksum(checksum, body)
            if seal is None and sealed:
                raise ValueError("it has no checksum, and those before it have one")
            if seal is not None and seal[1].decode() != checksum:
                raise ValueError("its checksum does not match it and the lines before it")
            records.append(_record(parse_json(body.decode()), records))
        except ValueError as problem:  # also bytes that are not UTF-8
            raise UnreadableDataError(
                f"line {number} of {path} was altered ({problem}): put back a copy, or remove it, "
                "and the last epoch is measured again"
            ) from None
        sealed = seal is not None
        without += not sealed
    return _Log(records, checksum, without)


def _record(record: Any, before: list[dict[str, Any]]) -> dict[str, Any]:
    """Return `record` if it is one of an epoch that follows those `before`."""
    if not isinstance(record, dict):
        raise ValueError("it is not a record of an epoch")
    if "sha256" in record:
        raise ValueError("its checksum is malformed")
    for name in ("epoch", "step"):
        value = record.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ValueError(f"its {name} is {value}, not an integer >= 0")
    expected = before[-1]["epoch"] + 1 if before else record["epoch"]
    if record["epoch"] != expected:
        raise ValueError(f"it is of epoch {record['epoch']}, not {expected}")
    for name in _FRACTIONS:
        value = record.get(name, -1)
        if value is not None and not (_is_number(value) and 0 <= value <= 1):
            raise ValueError(f"it lacks {name}, or it is not a fraction")
    for name in _NUMBERS:
        if not _is_number(record.get(name)):
            raise ValueError(f"it lacks the number {name}")
    for name in _QUANTILES:
        levels = record.get(name)
        if not isinstance(levels, dict) or not all(_is_number(levels.get(q)) for q in _LEVELS):
            raise ValueError(f"it lacks the quantiles of {name}")
    return record


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A run between two epochs.

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


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write the checkpoint beside `path`, down to the disk, and rename it."""
    header = {
        "format": _FORMAT,
        "plan": checkpoint.plan.to_dict(),
        "data": checkpoint.data,
        "epoch": checkpoint.epoch,
        "step": checkpoint.state.step,
    }
    tensors = checkpoint.state.tensors()
    save_arrays(path, header, {name: value.cpu().numpy() for name, value in tensors.items()})


def load_checkpoint(path: Path, device: torch.device | str = "cpu") -> Checkpoint:
    """Read a checkpoint.

    Raises
    ------
    UnreadableDataError
        If it is missing, damaged or not a checkpoint, naming the file.
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
        demand_consistent(plan.parameters, choose_dtype(plan.dtype), tensors)
        state = state_of(plan.parameters, tensors, plan.seed, _count(header, "step"))
        return Checkpoint(plan, str(header["data"]), _count(header, "epoch"), state)
    except (
        ArithmeticError,
        LookupError,
        TypeError,
        ValueError,
        RuntimeError,
        UnreadableDataError,
    ) as problem:
        reason = f"{path} is not a checkpoint of a run: {problem}"
        raise UnreadableDataError(f"{reason}: {again}") from None


def _count(header: Mapping[str, Any], name: str) -> int:
    value = header[name]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise ValueError(f"{name} must be an integer >= 0, got {value!r}")
    return value


def demand_same(path: Path, checkpoint: Checkpoint, plan: Plan, data: str) -> None:
    """Refuse a checkpoint of another run, naming what differs."""
    others = differences(
        checkpoint.plan.to_dict() | {"data": checkpoint.data}, plan.to_dict() | {"data": data}
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
        header = parse_json(str(arrays.pop("header")))
        if header["format"] != _FORMAT:
            raise UnreadableDataError(
                f"{path} has format {header['format']}; this version reads {_FORMAT}"
            )
    except KeyError:
        raise UnreadableDataError(f"{path} is not a file of a run: it has no header") from None
    except MALFORMED as problem:
        reason = f"its header cannot be read ({problem})"
        raise UnreadableDataError(f"{path} is not a file of a run: {reason}") from None
    return header, arrays


def demand_consistent(
    parameters: Parameters, dtype: torch.dtype, tensors: Mapping[str, torch.Tensor]
) -> None:
    """Refuse arrays of wrong shape or type, numbers that are not finite, places out of range.

    The compiled sweeps trust columns and bounds: a file that is not what it says must not reach
    them.

    Raises
    ------
    ValueError
        Naming the array.
    KeyError
        If one is missing.
    """
    neurons = parameters.neurons
    classes = int(tensors["w_back_shape"][1])
    inputs = int(tensors["w_in_shape"][1])
    rows = classes if parameters.readout.kind == "perceptron" else 0
    for name in ("a_in", "a_back", "a_out"):
        _demand(name, tensors[name], (neurons,), torch.bool)
    _demand("w_out", tensors["w_out"], (rows, neurons), dtype)
    for name, width in (("w_in", inputs), ("w_back", classes)):
        if tensors[f"{name}_shape"].tolist() != [neurons, width]:
            raise ValueError(f"{name} has {int(tensors[f'{name}_shape'][0])} rows, not {neurons}")
        _demand_matrix(name, tensors, (neurons, width), neurons, width, dtype)
    groups = int(tensors["j_groups"]) if "j_bounds" in tensors else parameters.couplings.layers
    if groups not in (1, parameters.couplings.layers):
        raise ValueError(f"j has {groups} blocks, not {parameters.couplings.layers}")
    shape = (parameters.couplings.layers, parameters.couplings.n, parameters.couplings.n)
    _demand_matrix("j", tensors, shape, neurons, neurons // groups, dtype)
    if "j_bounds" not in tensors and bool(tensors["j"].diagonal(dim1=1, dim2=2).any()):
        raise ValueError("j is not 0 on the diagonal, where J_D acts")


def _demand_matrix(
    name: str,
    tensors: Mapping[str, torch.Tensor],
    shape: tuple[int, ...],
    rows: int,
    width: int,
    dtype: torch.dtype,
) -> None:
    """Check a dense matrix, or the values, bounds and columns of compressed rows."""
    values = tensors[name]
    if f"{name}_bounds" not in tensors:
        _demand(name, values, shape, dtype)
        return
    bounds, columns = tensors[f"{name}_bounds"], tensors[f"{name}_columns"]
    entries = values.numel()
    _demand(name, values.flatten(), (entries,), dtype)
    _demand(f"{name}_bounds", bounds, (rows + 1,), torch.int64)
    _demand(f"{name}_columns", columns, (entries,), torch.int32)
    if int(bounds[0]) != 0 or int(bounds[-1]) != entries or bool((bounds.diff() < 0).any()):
        raise ValueError(f"{name}_bounds do not divide {entries} entries into rows")
    if entries and not 0 <= int(columns.min()) <= int(columns.max()) < width:
        raise ValueError(f"{name}_columns are not from 0 to {width - 1}")


def _demand(name: str, tensor: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    if tuple(tensor.shape) != shape or tensor.dtype != dtype:
        what = f"{tensor.dtype} of shape {tuple(tensor.shape)}"
        raise ValueError(f"{name} is {what}, not {dtype} of shape {shape}")
    if dtype.is_floating_point and not bool(tensor.isfinite().all()):
        raise ValueError(f"{name} holds a number that is not finite")
