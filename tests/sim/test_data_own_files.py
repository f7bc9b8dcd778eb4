"""Data of the user's own: three kinds of files, the same data; bad input in one sentence."""

from pathlib import Path

import numpy as np
import pytest

from rmsim.cli import run
from rmsim.data.own_files import Encoding, own_dataset, read_table
from rmtheory.base.errors import InvalidInputError, UnreadableDataError

X = np.array([[1.0, 2.0, 5.0], [3.0, -1.0, 5.0], [0.5, 0.25, 5.0], [2.0, 2.0, 5.0]])
Y = ["b", "a", "b", "a"]


def _files(folder: Path) -> list[Path]:
    np.savez(folder / "d.npz", X=X, y=np.array(Y))
    lines = ["first,second,y,third"]
    lines += [f"{a},{b},{y},{c}" for (a, b, c), y in zip(X.tolist(), Y, strict=True)]
    (folder / "d.csv").write_text("\n".join(lines) + "\n")
    pa = pytest.importorskip("pyarrow", reason="the extra 'parquet' is not installed")
    pq = pytest.importorskip("pyarrow.parquet")
    names = ("first", "second", "third")
    columns = {name: X[:, k] for k, name in enumerate(names)}
    pq.write_table(pa.table(columns | {"y": Y}), folder / "d.parquet")
    return [folder / f"d.{kind}" for kind in ("npz", "csv", "parquet")]


def test_three_kinds_of_files_are_one_data_set(tmp_path: Path) -> None:
    expected = (X - X.mean(0)) / np.where(X.std(0) > 0, X.std(0), np.inf)
    for file in _files(tmp_path):
        data, encoding = own_dataset(str(file), str(file))
        assert data.train.inputs == pytest.approx(expected, abs=1e-6)
        assert data.train.labels.tolist() == [1, 0, 1, 0]
        assert encoding.labels == ("a", "b")
        assert encoding.names == (None if file.suffix == ".npz" else ("first", "second", "third"))
        encoding.save(tmp_path / "labels.json")
        again = Encoding.load(tmp_path / "labels.json")
        assert again.inputs(read_table(file), file) == pytest.approx(expected, abs=1e-6)
        assert (again.labels, again.names, again.files) == (
            encoding.labels,
            encoding.names,
            encoding.files,
        )


def test_columns_in_another_order_are_put_in_order(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("u,v,y\n1,2,0\n3,5,1\n")
    (tmp_path / "b.csv").write_text("v,u\n2,1\n5,3\n")
    _, encoding = own_dataset(tmp_path / "a.csv", tmp_path / "a.csv")
    scaled = encoding.inputs(read_table(tmp_path / "b.csv"), "b.csv")
    assert scaled.tolist() == [[-1, -1], [1, 1]]
    (tmp_path / "c.csv").write_text("v,w\n2,1\n")
    with pytest.raises(InvalidInputError, match=r"^columns of c.csv must be the columns .* u, w"):
        encoding.inputs(read_table(tmp_path / "c.csv"), "c.csv")


def test_spins_are_not_scaled_and_numbers_in_text_are_integers(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("a,b,y\n1,-1,7\n-1,1,3\n1,1,7\n-1,-1,3\n1,1,7\n")
    data, encoding = own_dataset(tmp_path / "s.csv")
    assert data.train.inputs.dtype == np.int8
    assert encoding.scaling == "none: the inputs are spins"
    assert encoding.labels == (3, 7)
    assert (len(data.train), len(data.test)) == (4, 1)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"X": np.ones((3, 2)), "y": np.arange(2)}, "must be one label per sample"),
        ({"X": np.ones(3), "y": np.arange(3)}, r"must be an array \(samples, width\)"),
        ({"X": np.full((6, 2), np.nan), "y": np.arange(6)}, "must be finite, got NaN or infinity"),
        ({"X": np.full((6, 2), "a"), "y": np.arange(6)}, "must be numbers"),
        ({"X": np.ones((6, 2)), "y": np.full(6, 0.5)}, "must be integers or words, got 0.5"),
        ({"X": np.ones((6, 2)), "y": np.zeros(6)}, "must be 2 or more, got the one label 0"),
        ({"X": np.ones((6, 2))}, "must be given: an array or a column y"),
        ({"x": np.ones((6, 2))}, "must have an array X of inputs: it has x"),
        ({"X": np.array([[{}]], dtype=object), "y": np.arange(1)}, "d.npz"),
    ],
)
def test_bad_arrays(content: dict[str, np.ndarray], sentence: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", **content)
    with pytest.raises((InvalidInputError, UnreadableDataError), match=sentence):
        own_dataset(tmp_path / "d.npz")


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("d.csv", "a,y\n1\n", "is not a table: 1 fields in line 2, 2 headings"),
        ("d.csv", "a,y\n", "must have a line of headings and samples below"),
        ("d.csv", "a,a\n1,2\n", "has two columns of one name"),
        ("d.csv", "a,y\nred,2\n", "must be numbers, got red"),
        ("d.csv", "a,y\n,2\n", "must be numbers"),
        ("d.csv", "y\n2\n", "has no column of inputs"),
        ("d.npz", "no archive", "d.npz"),
        ("d.parquet", "no table", "is not a parquet file"),
        ("d.txt", "1 2 3", "must be a file ending in .npz, .csv, .parquet"),
    ],
)
def test_bad_files(name: str, text: str, sentence: str, tmp_path: Path) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="the extra 'parquet' is not installed")
    (tmp_path / name).write_text(text)
    with pytest.raises((InvalidInputError, UnreadableDataError), match=sentence):
        own_dataset(tmp_path / name)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("train --data no.csv --out run", "no.csv"),
        ("train --data d.csv --dataset mnist --out run", "dataset must be absent with --data FILE"),
        ("train --data d.csv", "out must be given"),
        ("predict run --out labels.csv", "data must be given"),
        ("predict run --data d.csv", "out must be given"),
        ("predict run --data d.csv --out labels.txt", "out must be a file ending in .csv"),
        ("predict run --data d.csv --out d.csv", "out must be another file than that of --data"),
        ("train --data J.npy --out run", "data must be a file ending in .npz, .csv, .parquet, or"),
        ("relax --couplings J.npy --jd 1 --states J.npy", "another file than that of --couplings"),
        ("bp --couplings J.npy --jd 1 --magnetisations J.npy", "than that of --couplings"),
        ("relax --couplings text.npy --jd 1", "it is not an array in numpy's format"),
        (
            "relax --couplings J.npy --jd 1 --states mine.npy",
            "--overwrite replaces it, got mine.npy",
        ),
        ("bp --couplings J.npy --jd 1 --magnetisations mine.npy", "it exists, and --overwrite"),
        ("predict nowhere --data d.csv --out mine.csv", "it exists, and --overwrite replaces it"),
        (
            "sweep relax --n 20 --set jd=.5,.6 --out runs --table mine.csv",
            "table must be a new file, or an earlier table of ours",
        ),
        ("predict nowhere --data d.csv --out labels.csv", "nowhere/checkpoint.npz is not there"),
    ],
)
def test_commands_refuse_in_one_sentence(
    arguments: str,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.csv").write_text("a,y\n1,0\n2,1\n")
    np.save("J.npy", np.zeros((3, 3)))
    Path("text.npy").write_text("no array")
    np.save("mine.npy", np.ones((1, 1, 3), np.int8))
    Path("mine.csv").write_text("label\n1\n")
    files = [Path(name) for name in ("J.npy", "d.csv", "mine.npy", "mine.csv")]
    before = [file.read_bytes() for file in files]
    assert run(arguments.split()) in (1, 2)
    assert [file.read_bytes() for file in files] == before
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1


def test_overwrite_and_earlier_tables_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("J.npy", np.zeros((3, 3)))
    Path("s.npy").write_bytes(b"mine")
    arguments = "relax --couplings J.npy --jd 1 --no-theory --states s.npy --overwrite"
    assert run(arguments.split()) == 0
    assert np.load("s.npy").shape == (1, 1, 3)
    sweep = "sweep relax --n 20 --samples 2 --seeds 2 --jobs 1 --set jd=2 --out runs --table"
    for table in ("t.csv", "t.parquet", "t.nc"):
        for _ in range(2):
            assert run([*sweep.split(), table]) == 0
