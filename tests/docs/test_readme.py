"""What README and docs show is what happens: Python blocks and command lines are run."""

import contextlib
import doctest
import importlib
import io
import itertools
import os
import re
import shlex
import subprocess
import sys
import types
from pathlib import Path

import pytest

from figures.cli import run as run_figures
from rmsim.cli import run as run_rmsim
from rmtheory.cli import run as run_rmtheory

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in _BLOCK.findall(page.read_text("utf-8")) if kind == language]


def _commands(page: Path) -> list[tuple[str, str]]:
    """Each command line of the console blocks with the output shown below it."""
    result = []
    for block in _blocks(page, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            result.append((command, output))
    return result


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


ALL_COMMANDS = [
    pytest.param(command, output, id=f"{page.name}: {command}")
    for page in PAGES
    for command, output in _commands(page)
]


@pytest.mark.parametrize(("command", "shown"), ALL_COMMANDS)
def test_command_lines_print_what_is_shown(
    command: str, shown: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = shlex.split(command)
    if words[:3] == ["python", "-m", "figures"]:
        run_figures(words[3:])
    else:
        {"rmtheory": run_rmtheory, "rmsim": run_rmsim}[words[0]](words[1:])
    captured = capsys.readouterr()
    assert _lines(captured.out + captured.err) == _lines(shown)


def test_readme_python_prints_what_is_shown() -> None:
    page = ROOT / "README.md"
    (code,), (shown,) = _blocks(page, "python"), _blocks(page, "text")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(page), "exec"), {})
    assert _lines(printed.getvalue()) == _lines(shown)
    assert len(code.strip().splitlines()) <= 10


def test_readme_has_three_commands_and_its_picture_and_links() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(_commands(ROOT / "README.md")) == 3
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert (ROOT / target).exists(), target


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.name)
def test_python_sessions_of_the_docs(page: Path) -> None:
    session = "\n\n".join(_blocks(page, "pycon"))
    test = doctest.DocTestParser().get_doctest(session, {}, page.name, str(page), 0)
    result = doctest.DocTestRunner().run(test)
    assert result.failed == 0


#: What may differ between commands that share a folder: a sweep grows in size, and answers anew.
_GROWTH = {"--n", "--jobs", "--dask", "--algorithm"}
_ANSWERS = {"--json", "--plot"}


def _folders() -> list[tuple[str, list[str]]]:
    """Each folder or file that a command of the simulator on a page makes, and its other words."""
    result = []
    for page in PAGES:
        for block in _blocks(page, "sh"):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words[:1] == ["rmsim"] and "--out" in words:
                    place = words.index("--out")
                    out = words.pop(place + 1)
                    words.pop(place)
                    result.append((out, words))
    return result


def _identity(words: list[str]) -> list[str]:
    rest = iter(words)
    kept = []
    for word in rest:
        if word in _GROWTH:
            next(rest)
        elif word not in _ANSWERS:
            kept.append(word)
    return kept


def test_pages_give_every_run_a_folder_of_its_own() -> None:
    """Who follows the pages in one directory must not be refused, nor go on with another run."""
    runs = _folders()
    assert len(runs) > 15
    for (out, words), (other, others) in itertools.combinations(runs, 2):
        if out == other:
            assert _identity(words) == _identity(others), out
            if words[1] == "train":
                assert words == others, out


def test_errata_name_tests_that_exist() -> None:
    named = re.findall(r"`(test_[a-z0-9_A-Z]+)`", (ROOT / "docs" / "errata.md").read_text("utf-8"))
    files = (ROOT / "tests").rglob("test_*.py")
    source = "".join(file.read_text("utf-8") for file in files)
    assert len(named) >= 12
    for name in named:
        assert f"def {name}(" in source, name


def test_pages_do_not_speak_of_somebodys_machine() -> None:
    for page in PAGES:
        text = page.read_text("utf-8")
        assert "/work/" not in text, page.name
        assert "../shared" not in text, page.name


def test_pages_import_the_front_doors_only_and_use_public_names() -> None:
    """That is rt and rs, and what their packages have in ``__all__``."""
    imports = re.compile(
        r"^(?:>>> |\.\.\. )?\s*((?:from|import) rm(?:theory|sim)\b.*)$", re.MULTILINE
    )
    used = re.compile(r"\b(rt|rs)((?:\.[a-z_]+)*)\.(\w+)\(")
    doors = {"rt": "rmtheory", "rs": "rmsim"}
    names = 0
    # The page for developers shows how files inside import each other.
    for page in (page for page in PAGES if page.name != "architecture.md"):
        code = "\n".join((*_blocks(page, "pycon"), *_blocks(page, "python")))
        for line in imports.findall(code):
            assert line in ("import rmtheory as rt", "import rmsim as rs"), f"{page.name}: {line}"
        for door, packages, name in used.findall(code):
            value: object = importlib.import_module(doors[door])
            for one in (part for part in packages.split(".") if part):
                if isinstance(value, types.ModuleType) and one not in value.__all__:
                    value = importlib.import_module(f"{value.__name__}.{one}")
                else:
                    value = getattr(value, one)
            if isinstance(value, types.ModuleType):
                assert name in value.__all__, f"{page.name}: {value.__name__}.{name}"
                names += 1
    assert names > 60


def test_the_sweep_of_the_cluster_page_runs_as_a_script(tmp_path: Path) -> None:
    files = {
        block.split()[1]: block
        for block in _blocks(ROOT / "docs" / "cluster.md", "python")
        if block.startswith("# ")
    }
    for name, code in files.items():
        (tmp_path / name).write_text(code, "utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(tmp_path)))}
    ended = subprocess.run(
        [sys.executable, "sweep.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    assert "0.8" in ended.stdout
    assert len(list((tmp_path / "results/mine/points").iterdir())) == 6
