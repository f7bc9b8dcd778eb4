"""Every kind of stored file, damaged in every way: one of our errors, soon, in bounded memory.

The damage is drawn from a seeded generator. What is not refused must be what was stored, wherever
a checksum can tell.
"""

import gzip
import json
import os
import resource
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import xarray as xr

from figures.engine.figure import (
    FAILURES,
    Failure,
    failures,
    store_failure,
)
from figures.report.collecting import Results
from figures.report.publishing import RESULTS
from rmsim.data import mnist
from rmsim.learning.run_folder import Folder, append_record, load_checkpoint, read_log
from rmsim.learning.training import load_probe
from rmsim.sweep import Serial, collect, run_sweep
from rmsim.sweep.directory import Directory
from rmtheory.base.errors import RMError, UnreadableDataError
from rmtheory.runtime import netcdf
from rmtheory.runtime.run_store import digest
from rmtheory.runtime.untrusted import read_npz, read_text
from tests.idx_files import idx_bytes
from tests.sim.test_learning_run_folder import record
from tests.sweep_points import sweep

RUNS = Path(__file__).parents[1] / "runs_0_1"

#: Seconds of the processor and kB of memory that one reading may take.
SECONDS = 5.0
MEMORY = 300_000

#: Damages of each kind of file.
TIMES = 60


@dataclass(frozen=True)
class Kind:
    """A kind of stored file: how it is made below a folder, and how it is read.

    `sealed`: whether what is not refused must be what was stored. `end`: bytes at the end that stay
    as they are.
    """

    make: Callable[[Path], Path]
    read: Callable[[Path], Any]
    sealed: bool = True
    end: int = 0


def _netcdf(folder: Path) -> Path:
    data = xr.Dataset({"a": ("x", np.arange(5.0))}, attrs={"title": "entropy"})
    netcdf.save(data, folder / "a.nc")
    return folder / "a.nc"


def _log(folder: Path) -> Path:
    for epoch in range(5):
        append_record(folder / "log.jsonl", record(epoch))
    return folder / "log.jsonl"


def _run(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        shutil.copytree(RUNS / "sparse", folder, dirs_exist_ok=True)
        return folder / name

    return make


def _probe(path: Path) -> Any:
    folder = Folder(path.parent)
    result = load_probe(folder, load_checkpoint(folder.checkpoint))
    return None if result is None else result.accuracies


def _npz(folder: Path) -> Path:
    np.savez_compressed(folder / "a.npz", x=np.arange(100.0), y=np.arange(7))
    return folder / "a.npz"


def _gzip(folder: Path) -> Path:
    (folder / "labels.gz").write_bytes(gzip.compress(idx_bytes(np.arange(200)), mtime=0))
    return folder / "labels.gz"


def _sweep(pattern: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        run_sweep(sweep((0, 1)), folder, Serial())
        return sorted(folder.glob(pattern))[0]

    return make


def _point(path: Path) -> Any:
    directory = Directory(path.parents[1])
    identity = directory.identity()
    collect(path.parents[1])
    return directory.load(path.stem, identity)


def _published(folder: Path) -> Path:
    shutil.copy(RESULTS, folder / "results.json")
    return folder / "results.json"


def _failures(folder: Path) -> Path:
    store_failure(folder, "annealed", Failure("quick", "no answer"))
    return folder / FAILURES


KINDS = {
    "netcdf": Kind(_netcdf, lambda path: netcdf.load(path).to_dict(), end=82),
    "log": Kind(_log, read_log),
    "run.json": Kind(_run("run.json"), lambda path: Folder(path.parent).identity(), sealed=False),
    "checkpoint": Kind(_run("checkpoint.npz"), lambda path: load_checkpoint(path).epoch),
    "probe": Kind(_run("probe.npz"), _probe, sealed=False),
    "npz": Kind(_npz, lambda path: {name: a.tolist() for name, a in read_npz(path).items()}),
    "gzip": Kind(_gzip, lambda path: mnist.read_idx(path, 1).tolist()),
    "sweep.json": Kind(_sweep("sweep.json"), lambda path: collect(path.parent).to_dict()),
    "point": Kind(_sweep("points/*.json"), _point),
    "asked": Kind(_sweep("asked/*.json"), lambda path: collect(path.parents[1]), sealed=False),
    "published": Kind(_published, lambda path: Results.from_json(read_text(path)), sealed=False),
    "failures": Kind(_failures, lambda path: failures(path.parent), sealed=False),
}


@contextmanager
def _bounded() -> Iterator[None]:
    """Fail if the block hangs, or takes too much time or memory."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError("reading does not end")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(60)
    memory, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert time.process_time() - start < SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < MEMORY


def _outcome(kind: Kind, path: Path) -> tuple[str, Any]:
    """Return what was read, or the sentence of one of our errors."""
    with _bounded():
        try:
            return "read", kind.read(path)
        except (RMError, FileNotFoundError) as problem:
            return "refused", str(problem)


def _damaged(content: bytes, generator: np.random.Generator) -> bytes:
    """Return `content` with one damage of a random kind."""
    size = len(content)
    one, two = sorted(int(place) for place in generator.integers(0, size, 2))
    drawn = generator.bytes(int(generator.integers(1, 9)))
    hostile = (b"NaN", b"1e999", b"-5", b"[" * 5000, b"9" * 5000, b'"\\ud800"', b"null", b"{}")
    replacement = hostile[int(generator.integers(len(hostile)))]
    digit = next((i for i in range(one, size) if content[i : i + 1].isdigit()), one)
    choices = (
        lambda: content[:one],
        lambda: (
            content[:one]
            + bytes([content[one] ^ 1 << int(generator.integers(8))])
            + content[one + 1 :]
        ),
        lambda: content[:one] + drawn + content[one + len(drawn) :],
        lambda: content[:one] + drawn + content[one:],
        lambda: content[:one] + content[two:],
        lambda: content[:two] + content[one:],
        lambda: content[:one] + bytes(two - one) + content[two:],
        lambda: content[two:] + content[one:two] + content[:one],
        lambda: content[:digit] + replacement + content[digit + 1 :],
        lambda: replacement + content,
    )
    return choices[int(generator.integers(len(choices)))]()


@pytest.mark.parametrize("name", KINDS)
def test_damaged_files_are_refused_or_what_they_were(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    path = kind.make(tmp_path)
    content, stored = path.read_bytes(), kind.read(path)
    generator = np.random.default_rng(14)
    body, end = content[: len(content) - kind.end], content[len(content) - kind.end :]
    for number in range(TIMES):
        damaged = _damaged(body, generator) + end
        path.write_bytes(damaged)
        how, result = _outcome(kind, path)
        if how == "read" and kind.sealed and name != "log":
            assert result == stored, number
        if how == "read" and name == "log":  # what is missing at its end, the checkpoint tells
            assert result == stored[: len(result)], number


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("what", ["pipe", "folder", "device", "loop", "link"])
def test_what_is_put_in_the_place_of_a_file(what: str, name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    path = kind.make(tmp_path)
    precious = tmp_path.with_name(f"{tmp_path.name}-precious")
    precious.write_text("kept\n")
    path.unlink()
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    else:
        path.symlink_to({"device": Path("/dev/zero"), "loop": path, "link": precious}[what])
    how, result = _outcome(kind, path)
    harmless = name in ("asked", "failures") or (name, what) == ("probe", "loop")  # as if missing
    assert how == "refused" or harmless, result
    assert precious.read_text() == "kept\n"


# A checksum that somebody else made

RESEALED: dict[str, dict[str, Any]] = {
    "values a list": {"values": [1]},
    "values of nothing": {"values": {"total": None}},
    "a list": {"values": {"total": [1, 2]}},
    "no type": {"values": {"draws": {"dtype": "x", "shape": [1], "base64": ""}}},
    "objects": {"values": {"draws": {"dtype": "|O", "shape": [1], "base64": "AAAAAAAAAAA="}}},
    "huge type": {"values": {"draws": {"dtype": "V2000000000", "shape": [], "base64": ""}}},
    "huge shape": {"values": {"draws": {"dtype": "<f8", "shape": [1 << 62], "base64": ""}}},
    "negative shape": {"values": {"draws": {"dtype": "<f8", "shape": [-1], "base64": ""}}},
    "no base64": {"values": {"draws": {"dtype": "<f8", "shape": [0], "base64": 7}}},
    "no text": {"values": {"label": {"dtype": "str", "text": [1, 2]}}},
    "a name that is taken": {"values": {"wall_time": 1}},
    "seed": {"seed": 1 << 80},
    "seed of text": {"seed": "5"},
    "parameters": {"parameters": None},
    "provenance": {"provenance": {}},
    "no provenance": {"provenance": None},
    "wall time": {"provenance": {"wall_time": "x", "cpu_time": 1}},
}


def _reseal(file: Path, change: dict[str, Any]) -> None:
    content = json.loads(file.read_text())["content"] | change
    file.write_text(json.dumps({"sha256": digest(content), "content": content}))


@pytest.mark.parametrize("name", RESEALED)
def test_points_that_no_computation_returned(name: str, tmp_path: Path) -> None:
    run_sweep(sweep((0, 1)), tmp_path, Serial())
    whole = collect(tmp_path)
    file = sorted((tmp_path / "points").iterdir())[0]
    _reseal(file, RESEALED[name])
    directory = Directory(tmp_path)
    with pytest.raises(UnreadableDataError, match=rf"{file.name} was altered: "):
        directory.load(file.stem, directory.identity())
    assert collect(tmp_path).attrs["damaged"] == file.name
    report = run_sweep(sweep((0, 1)), tmp_path, Serial())
    assert (report.kept, report.computed) == (3, 1)
    assert collect(tmp_path)["total"].identical(whole["total"])


def test_a_value_that_is_text_at_one_point(tmp_path: Path) -> None:
    run_sweep(sweep((0, 1)), tmp_path, Serial())
    file = sorted((tmp_path / "points").iterdir())[0]
    values = json.loads(file.read_text())["content"]["values"]
    _reseal(file, {"values": values | {"draws": {"dtype": "str", "text": ["a", "b", "c"]}}})
    with pytest.raises(RMError, match="draws is text at some points and a number at others"):
        collect(tmp_path)


@pytest.mark.parametrize("change", [{"axes": 7}, {"axes": []}, {"fixed": {"x": 1}}, {"seed": "x"}])
def test_a_sweep_that_is_none(change: dict[str, Any], tmp_path: Path) -> None:
    run_sweep(sweep((0, 1)), tmp_path, Serial())
    _reseal(tmp_path / "sweep.json", change)
    with pytest.raises(UnreadableDataError, match=r"sweep\.json was altered: "):
        collect(tmp_path)
    run_sweep(sweep((0, 1)), tmp_path, Serial())  # the points know which sweep it is
    assert collect(tmp_path).attrs["complete"] == "yes"


@pytest.mark.parametrize("value", ["Infinity", "-5", "NaN", "1e3", '"3"', "true", "null", "[1]"])
@pytest.mark.parametrize("name", ["epoch", "step"])
def test_counts_of_a_checkpoint(name: str, value: str, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    with np.load(RUNS / "dense" / "checkpoint.npz") as held:
        arrays = dict(held)
    header = json.loads(str(arrays["header"]))
    text = json.dumps(header | {name: "HERE"}).replace('"HERE"', value)
    np.savez(path, **{**arrays, "header": np.array(text)})
    with pytest.raises(UnreadableDataError, match=r"checkpoint\.npz is not a .* remove it, and"):
        load_checkpoint(path)


def test_hdf5_does_not_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On this file HDF5 2.0.0 goes on for ever, deaf to SIGTERM; other versions may refuse it."""
    path = tmp_path / "a.nc"
    packed = Path(__file__).parents[1].joinpath("hdf5_hangs.nc.gz").read_bytes()
    path.write_bytes(gzip.decompress(packed))
    monkeypatch.setattr(netcdf, "_PATIENCE", 4)
    with _bounded(), pytest.raises(UnreadableDataError, match=r"a\.nc "):
        netcdf.load(path)
