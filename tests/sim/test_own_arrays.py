"""Couplings and states of the user's own go wherever drawn ones do, through the front door."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import io, sparse

import rmsim as rs
import rmtheory as rt
from rmsim.cli import run
from rmtheory.runtime import read_npy

N, JD = 14, 0.8


@pytest.fixture
def matrix() -> np.ndarray[Any, Any]:
    J = np.random.default_rng(1).normal(size=(N, N)) / np.sqrt(N)
    np.fill_diagonal(J, 0)
    return J


Form = Callable[[np.ndarray[Any, Any], Path], Any]


def _saved(array: np.ndarray[Any, Any], folder: Path) -> Path:
    path = folder / f"{array.ndim}-{array.shape[0]}.npy"
    np.save(path, array)
    return path


FORMS: dict[str, Form] = {
    "array": lambda array, folder: array,
    "tensor": lambda array, folder: torch.as_tensor(array),
    "path": _saved,
    "text": lambda array, folder: str(_saved(array, folder)),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_search_takes_them(form: str, matrix: np.ndarray[Any, Any], tmp_path: Path) -> None:
    made = FORMS[form]
    network = rs.Network.from_array(made(matrix, tmp_path), jd=JD)
    assert network == rs.Network.from_array(matrix, jd=JD)
    points = rs.enumerate_fixed_points(network, keep_states=True)
    assert points.count == rs.enumerate_fixed_points(made(matrix, tmp_path), jd=JD).count > 0
    states = {tuple(row) for row in points.states.reshape(-1, N).tolist()}

    result = rs.relax(network, starts=20)
    assert bool(result.solved.any())
    reached = {tuple(row) for row in result.state[result.solved].flatten(1).tolist()}
    assert reached <= states

    first = points.states[0]  # (layers, n): leading dimensions are left out
    stays = rs.relax(network, made(first.astype(np.float64), tmp_path))
    assert bool(stays.solved.all())
    assert torch.equal(stays.state[0, 0], torch.as_tensor(first))

    outcome = rs.find_fixed_point(network, restarts=20)
    assert tuple(outcome.state.flatten().tolist()) in states
    assert rs.belief_propagation(network).entropy.shape == (1,)
    around = rs.local_entropy_around(network, made(first, tmp_path), [0.0, 3.0])
    assert around.entropy.size


def test_relax_of_a_network_is_that_of_its_couplings() -> None:
    network = rs.Network(30, rs.Chain(2, jd=0.3, lam=0.6))
    field = 0.1 * torch.arange(3.0).reshape(3, 1, 1, 1)
    together = rs.relax(network, samples=3, starts=2, p=0.7, external=field)
    couplings = rs.draw(network, seed=0, samples=3)
    assert torch.equal(together.state, rs.relax(couplings, starts=2, p=0.7, external=field).state)
    apart = rs.relax(network, samples=3, starts=2, p=0.7, external=field, space=1)
    assert torch.equal(together.state, apart.state)


def test_what_a_network_has_is_not_given_again(matrix: np.ndarray[Any, Any]) -> None:
    network = rs.Network.from_array(matrix, jd=JD)
    with pytest.raises(rt.InvalidInputError, match="jd must be left out"):
        rs.enumerate_fixed_points(network, jd=0.5)
    with pytest.raises(rt.InvalidInputError, match="jd must be given"):
        rs.enumerate_fixed_points(matrix)
    with pytest.raises(rt.InvalidInputError, match="samples must be left out"):
        rs.relax(rs.draw(network), samples=2)


def test_damaged_arrays_are_refused(tmp_path: Path, matrix: np.ndarray[Any, Any]) -> None:
    path = _saved(matrix, tmp_path)
    assert np.array_equal(read_npy(path), matrix)
    whole = path.read_bytes()
    for content in (whole[:-8], whole + b"x", whole[:20], b"", b"\x00" * 200):
        path.write_bytes(content)
        with pytest.raises(rt.UnreadableDataError, match="cannot be read"):
            rs.Network.from_array(path)
    objects = tmp_path / "objects.npy"
    np.save(objects, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(rt.UnreadableDataError, match="pickle"):
        rs.Network.from_array(objects)
    with pytest.raises(rt.UnreadableDataError, match="No such file"):
        rs.Network.from_array(tmp_path / "nowhere.npy")


def test_data_of_a_file(tmp_path: Path) -> None:
    x, y = np.eye(3), np.arange(3)
    path = tmp_path / "mine.npz"
    np.savez(path, train_inputs=x, train_labels=y, test_inputs=x, test_labels=y)
    data = rs.load_data(path)
    assert (data.name, data.classes, data.width) == ("mine.npz", 3, 3)
    assert rs.load_data(str(path)).checksum == data.checksum
    np.savez(path, train_inputs=x, train_labels=y)
    with pytest.raises(rt.UnreadableDataError, match="test_inputs"):
        rs.load_data(path)
    np.savez(path, train_inputs=x, train_labels=y - 1, test_inputs=x, test_labels=y)
    with pytest.raises(rt.UnreadableDataError, match="labels"):
        rs.load_data(path)
    with pytest.raises(rt.InvalidInputError, match=r"source must be one of .*, or the path of an"):
        rs.load_data("mnits")


def test_thresholds_in_one_call_resume(tmp_path: Path) -> None:
    call = {"jd": [0.0, 0.3, 0.6], "samples": 10, "backend": rs.Serial()}
    kept = rs.thresholds([10, 20], out=tmp_path / "run", **call)
    plain = rs.thresholds([10, 20], **call)
    assert np.array_equal(kept.data.success, plain.data.success)
    assert (tmp_path / "run" / "thresholds.nc").exists()
    more = rs.thresholds([10, 20, 30], out=tmp_path / "run", **call)
    assert np.array_equal(more.data.success.sel(n=[10, 20]), kept.data.success)
    with pytest.raises(rt.InvalidInputError, match="lam must be one value if jd has several"):
        rs.thresholds(10, jd=[0.1, 0.2], lam=[0.1, 0.2], layers=2)


def test_couplings_of_files(matrix: np.ndarray[Any, Any], tmp_path: Path) -> None:
    """Full and sparse matrices, written by numpy and scipy."""
    few = sparse.csr_array(np.where(np.abs(matrix) > 0.3, matrix, 0.0))
    files = {
        name: tmp_path / name for name in ("a.npz", "b.npz", "c.npz", "d.npz", "e.mtx", "f.mtx")
    }
    np.savez(files["a.npz"], matrix)
    np.savez(files["b.npz"], J=matrix, other=np.ones(3))
    sparse.save_npz(files["c.npz"], few)
    sparse.save_npz(files["d.npz"], few.tocsc())
    io.mmwrite(files["e.mtx"], matrix, precision=17)
    io.mmwrite(files["f.mtx"], few, precision=17)
    whole, part = (rs.Network.from_array(J, jd=JD) for J in (matrix, few))
    networks = {name: rs.Network.from_array(path, jd=JD) for name, path in files.items()}
    assert networks["a.npz"] == networks["b.npz"] == networks["e.mtx"] == whole
    assert networks["c.npz"] == networks["d.npz"] == networks["f.mtx"] == part


_BANNER = b"%%MatrixMarket matrix "


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no matrix",
        _BANNER + b"array real general\n999999999 999999999\n1\n",
        _BANNER + b"coordinate real general\n20 20 99999999999\n1 2 3\n",
        _BANNER + b"coordinate real general\n20 20 1\n1 99 3\n",
        _BANNER + b"coordinate real general\n20 20 2\n1 2 3\n",
    ],
)
def test_damaged_matrix_market_files_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "J.mtx"
    path.write_bytes(content)
    with pytest.raises(rt.UnreadableDataError, match="cannot be read"):
        rs.Network.from_array(path)


def test_archives_without_a_matrix_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "J.npz"
    np.savez(path, a=np.ones(2), b=np.ones(2))
    with pytest.raises(rt.UnreadableDataError, match="one called J: it has a, b"):
        rs.Network.from_array(path)
    kept = sparse.csr_array(np.eye(4)[::-1])
    for changes, words in (
        ({"indices": np.array([3, 2, 1, 9])}, "cannot be read"),
        ({"indptr": np.array([0, 1, 2, 3, 400])}, "cannot be read"),
        ({"format": np.array(b"coo")}, "save it as csr"),
    ):
        arrays = {name: getattr(kept, name) for name in ("data", "indices", "indptr")}
        arrays |= {"format": np.array(b"csr"), "shape": np.array(kept.shape)}
        np.savez(path, **(arrays | changes))
        with pytest.raises(rt.UnreadableDataError, match=words):
            rs.Network.from_array(path)


def test_commands_take_a_file_and_write_the_fixed_points(
    matrix: np.ndarray[Any, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    J = str(_saved(matrix, tmp_path))
    states = tmp_path / "states.npy"
    common = ["--couplings", J, "--jd", str(JD), "--states", str(states), "--json", "--overwrite"]
    assert run(["enumerate", *common]) == 0
    every = read_npy(states)
    assert every.shape[1:] == (1, N)
    assert len(every) == rs.enumerate_fixed_points(matrix, jd=JD).count
    known = {tuple(row) for row in every.reshape(-1, N).tolist()}
    for command in (
        ["relax", "--starts", "10"],
        ["solve", "--algorithm", "rbp", "--restarts", "20"],
        ["local-entropy", "--gamma", "0,1"],  # around a point of the dynamics
    ):
        assert run([*command, *common]) == 0
        reached = read_npy(states)
        assert len(reached) > 0
        assert {tuple(row) for row in reached.reshape(-1, N).tolist()} <= known
    # The theory of random couplings has nothing to say of these.
    assert "the couplings are given, and the theory" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("relax --couplings {wrong}", "couplings must be a square matrix"),
        ("relax --couplings {J} --n 14", "n must be absent with --couplings"),
        ("solve --couplings {J} --layers 3", "layers must be 1, that of"),
        ("relax --couplings {J} --samples 2", "samples must be 1 with --couplings"),
        ("relax --couplings {J} --rho .5", "rho must be absent with --couplings"),
        ("enumerate --couplings {J} --histogram", "histogram must be absent"),
        ("enumerate --n 8 --states {folder}/s.npy", "states must be absent without --couplings"),
        ("local-entropy --reference planted --couplings {J}", "reference must be dynamics, rbp"),
        ("relax --couplings {J} --states {folder}/s.txt", "states must be a file ending in .npy"),
        ("relax --couplings {J} --states {J} --out {J}", "out must be a new file"),
    ],
)
def test_commands_refuse_what_a_file_cannot_be(
    arguments: str,
    words: str,
    matrix: np.ndarray[Any, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    wrong = _saved(matrix[:, :3], tmp_path)
    wrong = wrong.rename(tmp_path / "wrong.npy")
    J = _saved(matrix, tmp_path)
    typed = arguments.format(J=J, wrong=wrong, folder=tmp_path).split()
    assert run([*typed, "--jd", "0.8"]) == 2
    assert words in capsys.readouterr().err
