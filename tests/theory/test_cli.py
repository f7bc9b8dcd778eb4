"""The command line: its JSON contract, its tables, and what it says to bad input."""

import errno
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import mpmath
import pytest
import typer

from rmtheory.cli import run
from rmtheory.runtime.command import run_app


def answer(arguments: str, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert run([*arguments.split(), "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    document = json.loads(captured.out)
    assert isinstance(document, dict)
    return document


def check_quantity(quantity: object) -> None:
    assert isinstance(quantity, dict)
    assert set(quantity) == {"value", "error", "tier", "method"}
    assert all(isinstance(text, str) for text in quantity.values())
    assert mpmath.isfinite(mpmath.mpf(quantity["value"]))
    assert mpmath.mpf(quantity["error"]) >= 0
    assert quantity["tier"] in ("certified", "verified", "estimated")


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ("annealed --layers 5 --jd .2 --lam-left .9 --lam-right .3 --digits 40", ["entropy"]),
        ("annealed --layers inf --jd .2 --lam .5", ["entropy"]),
        ("annealed --jd .4 --n 20", ["entropy", "mean_count", "log_mean_count"]),
        ("second-moment --layers 2 --jd .1 --lam .5 --n 12", ["ratio_limit", "ratio"]),
        ("second-moment --jd .1", ["ratio_limit"]),
        ("stability --root", ["root"]),
        ("stability --layers 2 --jd .1 --lam .5", ["coefficient"]),
        (
            "convergence-bound --n 1000 --failure .01",
            ["jd", "exceedance_probability", "jd_for_failure"],
        ),
    ],
)
def test_json_contract(
    arguments: str, names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    document = answer(arguments, capsys)
    assert isinstance(document["parameters"], dict)
    for name in names:
        check_quantity(document[name])


def test_the_digits_asked_for_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "annealed --layers 5 --jd .2 --lam-left .9 --lam-right .3 --digits 40"
    entropy = answer(arguments, capsys)["entropy"]
    assert isinstance(entropy, dict)
    assert entropy["value"] == "0.1704550542153743432802386356395062400973"


def test_stability_lists_eigenvalues(capsys: pytest.CaptureFixture[str]) -> None:
    document = answer("stability --layers 4 --jd .1 --lam .5", capsys)
    assert document["stable"] is True
    assert "coefficient" not in document
    eigenvalues = document["eigenvalues"]
    assert isinstance(eigenvalues, list)
    assert len(eigenvalues) == 4
    for eigenvalue in eigenvalues:
        check_quantity(eigenvalue)


def test_no_limit_is_null_beside_the_exact_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    document = answer("second-moment --jd -.1 --n 10", capsys)
    assert document["ratio_limit"] is None
    check_quantity(document["ratio"])
    assert run(["second-moment", "--jd", "-.1"]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("annealed --layers 0 --jd 1", "layers must be an integer >= 1 or inf, got 0"),
        ("annealed --layers 2.5 --jd 1", "layers must be an integer >= 1 or inf, got 2.5"),
        ("annealed --layers nan --jd 1", "layers must be an integer >= 1 or inf, got nan"),
        ("annealed --jd nan", "jd must be a finite real number, got nan"),
        ("annealed --jd inf", "jd must be a finite real number, got inf"),
        ("annealed --layers 2 --jd .1", "lam must be given for two layers or more, got nothing"),
        ("annealed --jd .1 --lam .5", "lam must be absent for one layer, it needs --layers >= 2"),
        ("stability --jd .1 --lam-right .5", "lam_right must be absent for one layer"),
        ("annealed --jd .1 --digits 0", "digits must be an integer from 1 to 4000, got 0"),
        ("annealed --jd .1 --digits 400000", "digits must be an integer from 1 to 4000"),
        ("annealed --jd .1 --digits x", "digits must be an integer from 1 to 4000, got x"),
        ("annealed", "jd must be given (--jd NUMBER), got nothing"),
        ("annealed --jd .1 --n 1", "n must be an integer >= 2, got 1"),
        ("annealed --jd .1 --out /nonexistent/x", "out must be a file that can be written"),
        ("derive annealed --format xml", "format must be one of latex, text, python, got xml"),
        ("derive magic", "topic must be one of"),
        ("derive stability --layers 3", "layers must be"),
        ("stability --layers inf --jd .1 --lam .1", "layers must be finite"),
        ("convergence-bound --n 10 --failure 2", "failure must be a probability"),
        ("nothing", "No such command"),
        ("annealed --what", "No such option"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("rmtheory: error: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_out_writes_the_json_and_nothing_half(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "answer.json"
    assert run(["annealed", "--jd", ".5", "--out", str(target)]) == 0
    assert json.loads(target.read_text())["entropy"]["tier"] == "certified"
    assert [path.name for path in tmp_path.iterdir()] == ["answer.json"]
    target.write_text("old")
    assert run(["annealed", "--jd", "nan", "--out", str(target)]) == 2
    assert target.read_text() == "old"
    assert run(["annealed", "--jd", ".5", "--out", str(tmp_path)]) == 2
    assert "not a folder" in capsys.readouterr().err


def test_help_has_an_example_for_each_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    overview = capsys.readouterr().out
    for command in ("annealed", "second-moment", "stability", "convergence-bound", "derive"):
        assert command in overview
        assert run([command, "--help"]) == 0
        assert f"Example: rmtheory {command}" in capsys.readouterr().out


def test_out_spares_pipes_and_follows_links(tmp_path: Path) -> None:
    pipe, link, target = tmp_path / "pipe", tmp_path / "link", tmp_path / "target"
    os.mkfifo(pipe)
    assert run(["annealed", "--jd", ".5", "--out", str(pipe)]) == 2
    assert pipe.is_fifo()
    target.write_text("{}")
    link.symlink_to(target)
    assert run(["annealed", "--jd", ".5", "--out", str(link)]) == 0
    assert link.is_symlink()
    assert json.loads(target.read_text())["entropy"]["tier"] == "certified"


def test_parameters_are_printed_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    jd = "0.12345678901234567890123456789012345678"
    parameters = answer(
        f"annealed --layers 100000000000000000000001 --jd {jd} --lam 1e-30", capsys
    )["parameters"]
    assert parameters == {
        "layers": 100000000000000000000001,
        "jd": jd,
        "lam_left": "1e-30",
        "lam_right": "1e-30",
    }


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("annealed --jd ' '", "jd must be a finite real number, got ' '"),
        (
            "stability --jd -1e200",
            "jd must be of size at most 1e+150 for this quantity, got -1e200",
        ),
        ("stability --root --jd .1", "jd must be absent with --root, which solves for J_D, got .1"),
        ("stability --root --layers 2", "layers must be 1 with --root, got 2"),
        ("local-entropy --jd .1 --d .1 --y 2 --q0 --method foo", "method must be integral or rep"),
        ("local-entropy --jd .1 --d .1 --y 2 --q0 --method replicated", "integral with --q0, got"),
        (
            "local-entropy --layers 2 --jd .1 --lam 1e200 --d .1 --y 3",
            "lam_left must be of size at",
        ),
        ("second-moment --jd .1 --n 100000", "the sum over 1 layer would have 1.0e+05 terms"),
    ],
)
def test_what_would_be_ignored_or_overflow_is_refused(
    line: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(shlex.split(line)) == 2
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_terminal_without_the_characters(more: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rmtheory", "annealed", "--jd", ".1", *more],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert "0.0766421704449190" in done.stdout
    if more:
        assert json.loads(done.stdout)["entropy"]["tier"]


@pytest.mark.parametrize("out", ["none/x.json", "folder", "/dev/null", "file/x.json"])
@pytest.mark.parametrize("command", ["critical --layers 2 --jd 0", "derive annealed --layers 2"])
def test_a_target_that_cannot_be_written_is_refused_before_the_work(
    command: str,
    out: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def work(*_: object, **__: object) -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr("rmtheory.local_entropies.thresholds.critical_coupling", work)
    monkeypatch.setattr("rmtheory.symbolic.derive", work)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    assert run([*command.split(), "--out", str(tmp_path / out)]) == 2
    assert "out must be a" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (OSError(errno.ENOSPC, "No space left", "a.nc"), "cannot write a.nc: No space left"),
        (FileNotFoundError(errno.ENOENT, "No such file", "x/y"), "cannot read x/y: No such file"),
        (PermissionError(errno.EACCES, "Permission denied", "/"), "cannot write /: Permission"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_the_file_that_the_system_refuses_is_named(
    problem: OSError, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    app = typer.Typer()

    @app.command()
    def fails() -> None:
        raise problem

    assert run_app(app, "rmtheory", []) == 1
    assert capsys.readouterr().err.startswith(f"rmtheory: error: {words}")


@pytest.mark.parametrize("columns", [40, 80])
def test_help_fits_the_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for command in ("annealed", "mean-field", "phase-diagram"):
        assert run([command, "--help"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= columns
        # Not a word a line.
        assert len(lines) < (60 if columns == 80 else 110)


def test_a_result_replaces_results_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine, result = tmp_path / "J.npy", tmp_path / "result"
    mine.write_bytes(b"\x93NUMPY and more")
    assert run(["annealed", "--jd", ".1", "--out", str(mine)]) == 2
    assert "out must be a new file, or one with an earlier result" in capsys.readouterr().err
    assert mine.read_bytes() == b"\x93NUMPY and more"
    for jd in (".1", ".2"):
        assert run(["annealed", "--jd", jd, "--out", str(result)]) == 0
    assert json.loads(result.read_text())["parameters"]["jd"] == "0.2"


def test_a_curve_is_named_after_its_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["curve", "--jd", ".5", "--d", ".2:.4:2"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["curve_L1_jd0.5.nc"]


@pytest.mark.parametrize("command", ["curve --layers 1 --jd .1", "phase-diagram --layers 2"])
def test_a_file_of_somebody_is_kept(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.npz"
    mine.write_bytes(b"mine")
    assert run([*command.split(), "--out", str(mine)]) == 2
    assert "out must be a file ending in .nc, got" in capsys.readouterr().err
    other = tmp_path / "other.nc"
    other.write_bytes(b"CDF\x01 of another program")
    assert run([*command.split(), "--out", str(other)]) == 2
    assert "out must be a new file, or an earlier result of ours" in capsys.readouterr().err
    assert mine.read_bytes() == b"mine"
    assert other.read_bytes() == b"CDF\x01 of another program"
