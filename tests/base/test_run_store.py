"""The folder of one computation: who may work in it, what is refused, what killed runs leave."""

import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from figures.cli import run as run_figures
from rmsim.sweep import Serial, run_sweep
from rmtheory.base.errors import InvalidInputError, StorageError, UnreadableDataError
from rmtheory.cli import run
from rmtheory.local_entropies import diagram as diagrams
from rmtheory.local_entropies.diagram import Request, compute_phase_diagram
from rmtheory.runtime import netcdf, run_store
from rmtheory.runtime.run_store import LOCK, Lock, RunStore
from tests.forked import FORK
from tests.sweep_points import sweep
from tests.theory.test_local_entropy_diagram import Instant
from tests.training_runs import same, trained
from tests.waiting import until, until_ended


def test_one_alone_or_several_that_share(tmp_path: Path) -> None:
    folder = RunStore(tmp_path / "new" / "folder")
    with folder.at_work() as lock:
        assert lock.alone
        with (
            pytest.raises(InvalidInputError, match=r"in which no other run is at work, got .*new"),
            folder.at_work(),
        ):
            pass
    with folder.at_work(shared=True) as lock, folder.at_work(shared=True) as other:
        assert (lock.alone, other.alone) == (True, False)
        with pytest.raises(InvalidInputError, match="no other run"), folder.at_work():
            pass
    with folder.at_work() as lock:
        assert lock.alone


def test_sharing_waits_for_one_that_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunStore(tmp_path)
    monkeypatch.setattr(run_store, "_PATIENCE", 0.1)
    with (
        folder.at_work(),
        pytest.raises(InvalidInputError, match="no other run is at work"),
        folder.at_work(shared=True),
    ):
        pass
    monkeypatch.setattr(run_store, "_PATIENCE", 60.0)

    def claim(_lock: Lock) -> None:
        (tmp_path / "claiming").touch()
        time.sleep(0.5)
        (tmp_path / "manifest").touch()

    def first() -> None:
        with folder.at_work(claim, shared=True):
            until((tmp_path / "second").exists)

    child = FORK.Process(target=first)
    child.start()
    until((tmp_path / "claiming").exists)
    with folder.at_work(shared=True) as lock:
        assert not lock.alone
        assert (tmp_path / "manifest").exists()
        (tmp_path / "second").touch()
    child.join()
    assert child.exitcode == 0


def test_the_system_forgets_a_killed_run(tmp_path: Path) -> None:
    folder = RunStore(tmp_path, files=("point.json",))
    left = tmp_path / ".point.json.abcd_123.json"

    def work() -> None:
        with folder.at_work():
            left.write_text("half")
            until_ended()

    child = FORK.Process(target=work)
    child.start()
    until(left.exists)
    with pytest.raises(InvalidInputError, match="no other run"), folder.at_work():
        pass
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    with folder.at_work() as lock:
        assert lock.alone
        assert not left.exists()


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "folder"])
def test_a_lock_that_is_no_file_is_refused_and_left_alone(kind: str, tmp_path: Path) -> None:
    precious, lock = tmp_path / "precious", tmp_path / "run" / LOCK
    lock.parent.mkdir()
    precious.write_text("results of a year")
    if kind == "pipe":
        os.mkfifo(lock)
    elif kind == "folder":
        lock.mkdir()
    else:
        lock.symlink_to(precious if kind == "link" else tmp_path / "nothing")
    with pytest.raises(StorageError, match=r"\.lock (is a|of .* could not be written)"):
        trained(tmp_path / "run", 0)
    assert precious.read_text() == "results of a year"
    assert not (tmp_path / "nothing").exists()
    assert [path.name for path in lock.parent.iterdir()] == [LOCK]


def test_the_content_of_a_lock_stays(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text("a file of mine")
    with RunStore(tmp_path).at_work():
        pass
    assert (tmp_path / LOCK).read_text() == "a file of mine"


def test_a_folder_removed_at_the_end_keeps_nobody_out_and_lets_no_two_in(tmp_path: Path) -> None:
    folder = RunStore(tmp_path / "parts", "request.json")

    def finish(lock: Lock) -> None:
        (folder.path / "point").touch()
        assert folder.remove(lock)
        assert not folder.path.exists()

    for _ in range(2):
        with folder.at_work() as lock:
            finish(lock)
    # The lock of a removed folder is nobody's: who waited for it takes the new one.
    with folder.at_work() as lock:
        folder.remove(lock)
        with folder.at_work(), pytest.raises(InvalidInputError), folder.at_work():
            pass
    with folder.at_work(shared=True) as lock, folder.at_work(shared=True) as other:
        assert not folder.remove(lock)
        assert folder.path.exists()
        lock.release()
        assert folder.remove(other)


def test_without_locks_nothing_is_refused_and_old_files_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunStore(tmp_path, files=("a.json",))
    young, old = (tmp_path / f".a.json.abcd_12{k}.json" for k in range(2))

    def unsupported(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    for name, value in (("fcntl.flock", unsupported), ("fcntl", None)):
        monkeypatch.setattr(f"rmtheory.runtime.files.{name}", value)
        for file in (young, old):
            file.touch()
        long_ago = time.time() - 2 * run_store.STRAY_AGE
        os.utime(old, (long_ago, long_ago))
        with folder.at_work(), folder.at_work():
            assert young.exists()
            assert not old.exists()


def test_folders_of_other_kinds(tmp_path: Path) -> None:
    for name, kind in run_store.MANIFESTS.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).write_text("{}")
        works: dict[str, Callable[[], object]] = {
            "run.json": lambda folder=folder: trained(folder, 0),  # type: ignore[misc]
            "sweep.json": lambda folder=folder: run_sweep(sweep(), folder, Serial()),  # type: ignore[misc]
            "request.json": lambda folder=folder: compute_phase_diagram(Request(3, 1e-2), folder),  # type: ignore[misc]
        }
        for other, work in works.items():
            if other != name:
                with pytest.raises(InvalidInputError, match=rf"which holds {kind} \({name}\)"):
                    work()
        assert [path.name for path in folder.iterdir()] == [name]


def test_documents_are_sealed(tmp_path: Path) -> None:
    folder = RunStore(tmp_path)
    folder.save("a.json", {"values": [1.5, float("nan")], "name": "J_D"})
    text = (tmp_path / "a.json").read_text()
    assert folder.load("a.json")["name"] == "J_D"
    for damage in (text[:-20], text.replace("1.5", "1.6"), "[]", '{"content": 3}', "[" * 10**5, ""):
        (tmp_path / "a.json").write_text(damage)
        with pytest.raises(UnreadableDataError, match=r"a\.json "):
            folder.load("a.json")
    with pytest.raises(FileNotFoundError):
        folder.load("b.json")


# Eight runs at once, and what a killed one leaves.


def _slow(done: Path) -> Callable[..., diagrams.BoundaryPoint]:
    """Return a computation of points that waits, until the others have been refused."""
    work = Instant()

    def point(*arguments: object) -> diagrams.BoundaryPoint:
        until(done.exists, patience=120.0)
        return work(*arguments)  # type: ignore[arg-type]

    return point


def test_eight_phase_diagrams_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, gate = tmp_path / "out", tmp_path / "gate"
    out.mkdir()
    monkeypatch.setattr(diagrams, "boundary_point", _slow(gate))

    def command(number: int) -> None:
        with (tmp_path / f"said{number}").open("w") as said, redirect_stderr(said):
            code = run(["phase-diagram", "--points", "4", "--out", str(out / "pd.nc")])
        (tmp_path / f"code{number}").write_text(str(code))
        os._exit(0)

    children = [FORK.Process(target=command, args=(number,)) for number in range(8)]
    for child in children:
        child.start()
    until(lambda: len(list(tmp_path.glob("code*"))) == 7, patience=120.0)
    gate.touch()
    for child in children:
        child.join()
    codes = [(tmp_path / f"code{number}").read_text() for number in range(8)]
    assert sorted(codes) == ["0", *["2"] * 7]
    why = f"because another run is at work on it (in {out}/pd.nc.parts)"
    sentence = f"out must be another file, {why}"
    for number, code in enumerate(codes):
        said = (tmp_path / f"said{number}").read_text()
        if code == "0":
            assert said.startswith("rmtheory: 8 points to compute, about ")
            assert said.count("\n") == 1
        else:
            assert said == f"rmtheory: error: {sentence}, got {out / 'pd.nc'}\n"
    assert [path.name for path in out.iterdir()] == ["pd.nc"]
    assert netcdf.load(out / "pd.nc").attrs["parameters_hash"] == Request(4, 1e-4).key


def test_runs_of_the_library_share_the_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, gate = tmp_path / "parts", tmp_path / "gate"
    monkeypatch.setattr(diagrams, "boundary_point", _slow(gate))
    child = FORK.Process(target=compute_phase_diagram, args=(Request(3, 1e-2), parts))
    child.start()
    until((parts / "request.json").exists)
    gate.touch()
    data = compute_phase_diagram(Request(3, 1e-2), parts)
    child.join()
    assert child.exitcode == 0
    assert not data["jd"].isnull().any()
    assert not list(parts.glob(".*.*"))


def test_nothing_of_a_killed_phase_diagram_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target, parts = tmp_path / "pd.nc", tmp_path / "pd.nc.parts"
    monkeypatch.setattr(diagrams, "boundary_point", Instant(most=3))
    command = ["phase-diagram", "--points", "5", "--out", str(target)]
    assert run(command) == 130
    (parts / ".rm-0.000000000.json.abcd_123.json").write_text("{")
    (tmp_path / ".pd.nc.abcd_123.nc").write_text("half")
    monkeypatch.setattr(diagrams, "boundary_point", Instant())
    assert run(command) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["pd.nc"]
    # Killed after the file was written: the points are not needed any more.
    with pytest.raises(KeyboardInterrupt):
        _interrupted(Request(5, 1e-4), parts, monkeypatch)
    assert run(command) == 0
    assert "holds this diagram already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["pd.nc"]
    # Unfinished points of another diagram are not lost.
    with pytest.raises(KeyboardInterrupt):
        _interrupted(Request(5, 1e-3), parts, monkeypatch)
    assert run(command) == 0
    assert len(list(parts.glob("rm-*.json"))) == 2


def _interrupted(request: Request, parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagrams, "boundary_point", Instant(most=2))
    compute_phase_diagram(request, parts)


@pytest.mark.parametrize("epochs", [1, 2])
def test_nothing_of_a_killed_training_stays(epochs: int, tmp_path: Path) -> None:
    """Whether the next run has something to train or not."""
    before = trained(tmp_path, 1)
    left = [tmp_path / f".{name}.abcd_123{Path(name).suffix}" for name in ("run.json", "probe.npz")]
    left += [tmp_path / ".checkpoint.npz.0a1b2c3d.npz", tmp_path / ".log.jsonl.0a1b2c3d.jsonl"]
    for file in left:
        file.write_text("half")
    after = trained(tmp_path, epochs)
    assert not any(file.exists() for file in left)
    assert same(after.state, before.state) == (epochs == 1)
    assert json.loads((tmp_path / "run.json").read_text())["data"]


@pytest.mark.parametrize(
    ("points_to", "obstacle"),
    [
        ("out", "a link to itself has its name"),
        ("absent", "a link to what does not exist has its name"),
        ("file", "a link to a file has its name"),
    ],
)
def test_links_in_place_of_a_folder_are_called_what_they_are(
    points_to: str, obstacle: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also the folder of the figures; 'File exists', as the system says, helps nobody."""
    out = tmp_path / "out"
    (tmp_path / "file").write_text("of mine")
    out.symlink_to(tmp_path / points_to)
    sentence = f"out must be a folder that can be written ({obstacle}), got {out}"
    with pytest.raises(InvalidInputError) as caught:
        run_sweep(sweep(), out, Serial())
    assert str(caught.value) == sentence
    assert run_figures(["annealed", "--scale", "tiny", "--out", str(out)]) == 2
    assert capsys.readouterr().err == f"figures: error: {sentence}\n"
    assert out.is_symlink()
    assert not (tmp_path / "absent").exists()
    assert (tmp_path / "file").read_text() == "of mine"
