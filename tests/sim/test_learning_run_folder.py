"""The log of a run: what was edited, taken away, doubled or moved is seen."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rmsim.learning.run_folder import Folder, append_record, keep_records, read_log
from rmtheory.base.errors import StorageError, UnreadableDataError
from tests.training_runs import trained

Lines = list[str]


def record(epoch: int, **others: Any) -> dict[str, Any]:
    quantiles = dict.fromkeys(("median", "q05", "q25", "q75", "q95"), 0.5)
    return {
        "epoch": epoch,
        "step": 4 * epoch,
        "train_accuracy": 0.9,
        "test_accuracy": 0.8,
        "q_dyn": quantiles,
        "margin": quantiles,
        "unstable_clamped": 0.0,
        "unstable_free": 0.0,
        "below_kappa": 0.1,
        "seconds": 1.5,
        "note": "λ",
    } | others


def written(path: Path, epochs: int = 4, sealed: bool = True) -> Lines:
    """Write a log, as version 0.1 did if not `sealed`, and return its lines."""
    for epoch in range(epochs):
        if sealed:
            append_record(path, record(epoch))
        else:
            with path.open("a") as file:
                file.write(json.dumps(record(epoch)) + "\n")
    return path.read_text().splitlines(keepends=True)


@pytest.mark.parametrize("sealed", [True, False])
def test_what_was_written_comes_back(sealed: bool, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    assert read_log(path) == []
    written(path, sealed=sealed)
    assert read_log(path) == [record(epoch) for epoch in range(4)]
    with path.open("ab") as file:
        file.write('{"epoch": 4, "note": "λ'.encode()[:-1])  # killed in the middle of a character
    assert len(read_log(path)) == 4
    keep_records(path, 2)
    assert read_log(path) == [record(epoch) for epoch in range(3)]
    append_record(path, record(3))
    assert path.read_text().count("sha256") == (4 if sealed else 1)
    assert read_log(path) == [record(epoch) for epoch in range(4)]


ALTERED: dict[str, Callable[[Lines], Lines]] = {
    "edited": lambda a: [a[0], a[1].replace("0.8", "0.9"), *a[2:]],
    "spaced": lambda a: [a[0], a[1].replace("0.8", "0.80"), *a[2:]],
    "missing": lambda a: [a[0], *a[2:]],
    "beheaded": lambda a: a[1:],
    "doubled": lambda a: [a[0], a[1], a[1], *a[2:]],
    "swapped": lambda a: [a[0], a[2], a[1], a[3]],
    "unsealed": lambda a: [*a[:3], json.dumps(record(3)) + "\n"],
    "of another": lambda a: [*a[:3], a[3].replace('"sha256": "', '"sha256": "0')[:-4] + '"}\n'],
}


@pytest.mark.parametrize("damage", ALTERED)
def test_the_chain_of_checksums_sees_every_change(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(ALTERED[damage](written(path))))
    with pytest.raises(UnreadableDataError, match=r"line \d of .*log\.jsonl was altered \(.*copy"):
        read_log(path)


CONTENTS: dict[str, Any] = {
    "alone": {"epoch": 2},
    "list": [2],
    "number": 2,
    "accuracy": record(2, test_accuracy=1.5),
    "text": record(2, test_accuracy="0.9"),
    "truth": record(2, unstable_free=True),
    "median": record(2, q_dyn={"median": 0.5}),
    "negative": record(-2),
    "gap": record(3),
    "twice": record(1),
    "float": record(2) | {"epoch": 2.0},
    "nan": record(2, seconds=float("nan")),
    "infinite": record(2, seconds=float("inf")),
    "step": record(2, step=-1),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_old_logs_are_judged_by_their_content(name: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    written(path, 2, sealed=False)
    with path.open("a") as file:
        file.write(json.dumps(CONTENTS[name]) + "\n")
    with pytest.raises(UnreadableDataError, match=r"line 3 of .*log\.jsonl was altered \("):
        read_log(path)


def test_lines_that_follow_an_old_log_include_it(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    lines = written(path, 2, sealed=False)
    append_record(path, record(2))
    assert [result["epoch"] for result in read_log(path)] == [0, 1, 2]
    text = path.read_text()
    path.write_text(text.replace(lines[1], lines[1].replace("0.8", "0.9")))
    with pytest.raises(UnreadableDataError, match=r"line 3 of .* does not match"):
        read_log(path)


def test_nothing_that_is_no_number_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        append_record(tmp_path / "log.jsonl", record(0, seconds=float("nan")))
    assert not (tmp_path / "log.jsonl").exists()


def test_a_log_that_is_no_file(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("")
    (tmp_path / "link").symlink_to(precious)
    with pytest.raises(StorageError, match="link is a symbolic link and is not written to"):
        append_record(tmp_path / "link", record(0))
    assert precious.read_text() == ""
    lines = written(precious)
    with pytest.raises(StorageError, match="link is a symbolic link and is not written to"):
        keep_records(tmp_path / "link", 1)
    assert precious.read_text() == "".join(lines)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnreadableDataError, match="pipe cannot be read: it is a pipe"):
        append_record(tmp_path / "pipe", record(0))
    with pytest.raises(UnreadableDataError, match="pipe cannot be read: it is a pipe"):
        read_log(tmp_path / "pipe")


def test_an_edited_accuracy_is_not_printed_and_lost_epochs_are_told(tmp_path: Path) -> None:
    trained(tmp_path, 3)
    path = tmp_path / "log.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    value = json.loads(lines[-1])["test_accuracy"]
    path.write_text("".join(lines).replace(f'"test_accuracy": {value}', '"test_accuracy": 0.999'))
    with pytest.raises(UnreadableDataError, match=r"of .*log\.jsonl was altered"):
        trained(tmp_path, 3)
    path.write_text("".join(lines[:2]))
    with pytest.raises(UnreadableDataError, match=r"log\.jsonl ends with epoch 1, and .* epoch 3"):
        trained(tmp_path, 3)
    path.unlink()  # as it says
    assert [result["epoch"] for result in trained(tmp_path, 4).records] == [3, 4]


def _folder(tmp_path: Path) -> Folder:
    trained(tmp_path / "run", 2)
    return Folder(tmp_path / "run")


def test_a_log_without_its_first_lines_is_refused(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    assert [record["epoch"] for record in folder.records()] == [0, 1, 2]
    bare = [re.sub(r', "sha256": "\w+"', "", line) for line in folder.log.read_text().splitlines()]
    folder.log.write_text("\n".join(bare[1:]) + "\n")
    with pytest.raises(UnreadableDataError, match="begins at epoch 1, where no session"):
        folder.records()


def test_a_log_that_lost_all_its_checksums_is_refused(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    text = folder.log.read_text()
    folder.log.write_text(re.sub(r', "sha256": "\w+"', "", text))
    with pytest.raises(UnreadableDataError, match="epoch 2 has lost its checksum"):
        folder.records()
    folder.log.write_text(re.sub(r'"sha256": "\w+"', '"sha256": "X"', text))
    with pytest.raises(UnreadableDataError, match=r"line 1 .* was altered"):
        folder.records()
