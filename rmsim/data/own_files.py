r"""Data of the user's own: inputs and labels from an .npz, .csv or .parquet file.

Labels may be integers or words; class c of a network is the c-th of them in order. Inputs that are
spins +-1 stay as they are. Others are standardised by mean and deviation of the training inputs,

.. math:: x_k \leftarrow (x_k - \mu_k)/\sigma_k, \qquad \sigma_k = 0: x_k \leftarrow 0,

and an :class:`Encoding` keeps both, so that new inputs are treated alike.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rmsim.data.dataset import Dataset, Samples
from rmtheory.base.errors import InvalidInputError, UnreadableDataError
from rmtheory.runtime.files import write_text
from rmtheory.runtime.untrusted import MALFORMED, read_bytes, read_json, read_npz

Label = int | str

#: Endings of files that are read.
ENDINGS = (".npz", ".csv", ".parquet")

#: Before the name of the file, in the name of such a data set.
OWN = "own:"

#: Share of the samples that is held out if no file of test samples is given.
HELD_OUT = 0.2


@dataclass(frozen=True, eq=False)
class Table:
    """Inputs of a file, with labels if it has them.

    Parameters
    ----------
    inputs : ndarray, (samples, width)
        Numbers, finite.
    labels : list of int or str, optional
        One for each sample.
    names : tuple of str, optional
        Names of the columns of the inputs.
    """

    inputs: npt.NDArray[Any]
    labels: list[Label] | None
    names: tuple[str, ...] | None


def read_table(path: str | os.PathLike[str], label: str = "y") -> Table:
    """Return the inputs and labels of a file.

    Parameters
    ----------
    path : path
        .npz with arrays ``X`` (samples, width) and ``y``; .csv with a line of headings, or
        .parquet: the column `label` has the labels, all others are inputs.
    label : str
        Name of the labels.

    Raises
    ------
    InvalidInputError
        If the numbers are not finite or the shapes do not fit.
    UnreadableDataError
        If the file is missing, damaged, or of another form.
    """
    ending = Path(path).suffix.lower()
    if ending == ".npz":
        return _from_npz(path, label)
    if ending == ".csv":
        return _from_columns(path, _csv_columns(path), label)
    if ending == ".parquet":
        return _from_columns(path, _parquet_columns(path), label)
    raise InvalidInputError("data", str(path), f"a file ending in {', '.join(ENDINGS)}")


def _from_npz(path: str | os.PathLike[str], label: str) -> Table:
    arrays = read_npz(path)
    if "X" not in arrays:
        held = ", ".join(sorted(arrays)) or "nothing"
        raise UnreadableDataError(f"{path} must have an array X of inputs: it has {held}")
    return Table(*_checked(path, arrays["X"], arrays.get(label)), None)


def _csv_columns(path: str | os.PathLike[str]) -> dict[str, list[str]]:
    try:
        rows = list(csv.reader(io.StringIO(read_bytes(path).decode("utf-8-sig")), strict=True))
    except FileNotFoundError as problem:
        raise UnreadableDataError(f"{path} cannot be read: {problem.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as problem:
        raise UnreadableDataError(f"{path} is not a table of text: {problem}") from None
    rows = [row for row in rows if row]
    if len(rows) < 2:
        raise UnreadableDataError(f"{path} must have a line of headings and samples below")
    names = [name.strip() for name in rows[0]]
    if len(set(names)) < len(names):
        raise UnreadableDataError(f"{path} has two columns of one name")
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(names):
            counted = f"{len(row)} fields in line {number}, {len(names)} headings"
            raise UnreadableDataError(f"{path} is not a table: {counted}")
    return {name: [row[k] for row in rows[1:]] for k, name in enumerate(names)}


def _parquet_columns(path: str | os.PathLike[str]) -> dict[str, Any]:
    import pyarrow
    import pyarrow.parquet as parquet

    try:
        table = parquet.read_table(io.BytesIO(read_bytes(path)))
        return {name: table.column(name).to_pylist() for name in table.column_names}
    except FileNotFoundError as problem:
        raise UnreadableDataError(f"{path} cannot be read: {problem.strerror}") from None
    except (pyarrow.ArrowException, *MALFORMED) as problem:
        reason = " ".join(str(problem).split())[:200]
        raise UnreadableDataError(f"{path} is not a parquet file: {reason}") from None


def _from_columns(path: str | os.PathLike[str], columns: dict[str, Any], label: str) -> Table:
    labels = columns.pop(label, None)
    if not columns:
        raise UnreadableDataError(f"{path} has no column of inputs")
    values = []
    for name, column in columns.items():
        try:
            values.append(np.array(column, dtype=np.float64))
        except (TypeError, ValueError):
            wrong = next((x for x in column if not _is_number(x)), "nothing")
            raise InvalidInputError(f"column {name} of {path}", wrong, "numbers") from None
    inputs = np.stack(values, axis=1)
    classes = None if labels is None else np.array(labels, dtype=object)
    return Table(*_checked(path, inputs, classes), tuple(columns))


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


def _checked(
    path: str | os.PathLike[str], inputs: npt.NDArray[Any], labels: npt.NDArray[Any] | None
) -> tuple[npt.NDArray[Any], list[Label] | None]:
    """Return inputs and labels; refuse wrong shapes and types by the name of the file."""
    if inputs.dtype.kind not in "biuf":
        raise InvalidInputError(f"X of {path}", f"an array of {inputs.dtype}", "numbers")
    if inputs.ndim != 2 or 0 in inputs.shape:
        allowed = "an array (samples, width)"
        raise InvalidInputError(f"X of {path}", f"of shape {inputs.shape}", allowed)
    if not np.isfinite(inputs).all():
        row = int(np.flatnonzero(~np.isfinite(inputs).all(axis=1))[0])
        raise InvalidInputError(f"X of {path}", f"NaN or infinity in sample {row}", "finite")
    if labels is None:
        return inputs, None
    if labels.shape != (len(inputs),):
        allowed = f"one label per sample, of shape ({len(inputs)},)"
        raise InvalidInputError(f"labels of {path}", f"of shape {labels.shape}", allowed)
    return inputs, _as_labels(path, labels.tolist())


def _as_labels(path: str | os.PathLike[str], values: Sequence[Any]) -> list[Label]:
    """Return labels as integers if all are, otherwise as words."""
    labels: list[Label] = []
    for value in values:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, (bytes, bool)) or not isinstance(value, (int, str)) or value == "":
            allowed = "integers or words"
            raise InvalidInputError(f"labels of {path}", repr(value), allowed)
        labels.append(value.strip() if isinstance(value, str) else value)
    if all(isinstance(label, str) and label.lstrip("-").isdecimal() for label in labels):
        return [int(label) for label in labels]
    if len({type(label) for label in labels}) > 1:
        return [str(label) for label in labels]
    return labels


@dataclass(frozen=True, eq=False)
class Encoding:
    """How inputs are scaled and which label each class stands for.

    Parameters
    ----------
    labels : tuple of int or str
        Label of each class.
    names : tuple of str, optional
        Names of the inputs, where the file has them.
    mean, deviation : ndarray, optional
        Of the training inputs; None if these are spins and stay as they are.
    files : tuple of str
        Files of training and of test samples (the same one, if samples were held out), and the name
        of the labels.
    """

    labels: tuple[Label, ...]
    names: tuple[str, ...] | None
    mean: npt.NDArray[np.float64] | None
    deviation: npt.NDArray[np.float64] | None
    files: tuple[str, str, str]

    @property
    def scaling(self) -> str:
        """What is done to inputs, in words."""
        if self.mean is None:
            return "none: the inputs are spins"
        return "standardised by mean and deviation of the training inputs"

    def ordered(self, table: Table, path: str | os.PathLike[str]) -> npt.NDArray[Any]:
        """Return the inputs of a table in the order trained on, not scaled; refuse others."""
        if self.names is not None and table.names is not None and table.names != self.names:
            if sorted(self.names) != sorted(table.names):
                missing = sorted(set(self.names) ^ set(table.names))
                allowed = "the columns that the network was trained on"
                raise InvalidInputError(f"columns of {path}", ", ".join(missing[:5]), allowed)
            order = [table.names.index(name) for name in self.names]
            table = Table(table.inputs[:, order], table.labels, self.names)
        if self.mean is None:
            values = table.inputs
            if not bool((np.abs(values) == 1).all()):
                allowed = "spins +1 and -1, as the training inputs"
                raise InvalidInputError(f"X of {path}", "other numbers", allowed)
            return values.astype(np.int8)
        if table.inputs.shape[1] != len(self.mean):
            allowed = f"{len(self.mean)} inputs, as those that the network was trained on"
            raise InvalidInputError(f"X of {path}", f"{table.inputs.shape[1]} inputs", allowed)
        return table.inputs

    def inputs(self, table: Table, path: str | os.PathLike[str]) -> npt.NDArray[Any]:
        """Return the inputs of a table as the network gets them; refuse another width or order."""
        values = self.ordered(table, path)
        if self.mean is None or self.deviation is None:
            return values
        scale = np.where(self.deviation > 0, self.deviation, np.inf)
        scaled: npt.NDArray[Any] = ((values - self.mean) / scale).astype(np.float32)
        return scaled

    def classes(self, table: Table, path: str | os.PathLike[str]) -> npt.NDArray[np.int64]:
        """Return the class numbers of the labels of a table."""
        if table.labels is None:
            allowed = f"given ({self.files[2]}, one label per sample)"
            raise InvalidInputError(f"labels of {path}", "nothing", allowed)
        number = {label: index for index, label in enumerate(self.labels)}
        for label in table.labels:
            if label not in number:
                known = ", ".join(map(str, self.labels[:10]))
                allowed = f"one of the labels trained on: {known}"
                raise InvalidInputError(f"labels of {path}", label, allowed)
        return np.array([number[label] for label in table.labels], dtype=np.int64)

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        document = {
            "labels": list(self.labels),
            "names": None if self.names is None else list(self.names),
            "mean": None if self.mean is None else self.mean.tolist(),
            "deviation": None if self.deviation is None else self.deviation.tolist(),
            "files": list(self.files),
        }
        write_text(path, json.dumps(document, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> Encoding:
        """Read what :meth:`save` wrote."""
        document = read_json(path, most=1 << 30)
        try:
            names, mean, spread = (document[x] for x in ("names", "mean", "deviation"))
            train, test, label = map(str, document["files"])
            return cls(
                tuple(document["labels"]),
                None if names is None else tuple(map(str, names)),
                None if mean is None else np.array(mean, dtype=np.float64),
                None if spread is None else np.array(spread, dtype=np.float64),
                (train, test, label),
            )
        except MALFORMED as problem:
            raise UnreadableDataError(f"{path} is not a file of labels: {problem}") from None


def own_dataset(
    train: str | os.PathLike[str], test: str | os.PathLike[str] | None = None, label: str = "y"
) -> tuple[Dataset, Encoding]:
    """Return a data set from files of your own, and how it was encoded.

    Parameters
    ----------
    train, test : path
        As for :func:`read_table`, with labels. Without `test` the last fifth of the samples is held
        out.
    label : str
        Name of the labels.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name, "train.npz")
    >>> np.savez(file, X=np.arange(20.0).reshape(10, 2), y=np.array(["cat", "dog"] * 5))
    >>> data, encoding = own_dataset(file)
    >>> len(data.train), len(data.test), data.classes, encoding.labels
    (8, 2, 2, ('cat', 'dog'))
    >>> encoding.scaling
    'standardised by mean and deviation of the training inputs'
    >>> folder.cleanup()
    """
    table = read_table(train, label)
    if table.labels is None:
        allowed = f"given: an array or a column {label}, one label per sample"
        raise InvalidInputError(f"labels of {train}", "nothing", allowed)
    other = table
    if test is None:
        kept = len(table.labels) - int(HELD_OUT * len(table.labels))
        if kept == len(table.labels):
            allowed = "5 or more if none are given to test on"
            raise InvalidInputError("samples", len(table.labels), allowed)
        other = Table(table.inputs[kept:], table.labels[kept:], table.names)
        table = Table(table.inputs[:kept], table.labels[:kept], table.names)
    else:
        other = read_table(test, label)
    assert table.labels is not None
    labels = tuple(sorted(set(table.labels)))
    if len(labels) < 2:
        raise InvalidInputError(f"labels of {train}", f"the one label {labels[0]}", "2 or more")
    spins = bool((np.abs(table.inputs) == 1).all())
    values = table.inputs.astype(np.float64)
    files = (str(Path(train).resolve()), str(Path(test or train).resolve()), label)
    encoding = Encoding(
        labels,
        table.names,
        None if spins else values.mean(0),
        None if spins else values.std(0),
        files,
    )
    first, second = (
        Samples(encoding.inputs(part, path), encoding.classes(part, path))
        for part, path in ((table, train), (other, test or train))
    )
    name = f"{OWN}{Path(train).name}"
    return Dataset(name, first, second, len(labels), files[0], "that of the file"), encoding
