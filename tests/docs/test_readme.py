"""What README and docs show is what happens: Python blocks and command lines are run."""

import contextlib
import doctest
import importlib
import io
import itertools
import re
import shlex
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


#: Modules that are public as such; everything else is public through a package's ``__all__``.
_MODULES = {"rmtheory.base.statistics", "rmsim.tensors", "rmsim.studies.compare"}


def test_pages_import_public_names_only() -> None:
    pattern = re.compile(r"^(?:>>> )?from (rm(?:theory|sim)[\w.]*) import (.*)$", re.MULTILINE)
    seen = 0
    # The page for developers shows how files inside import each other.
    for page in (page for page in PAGES if page.name != "architecture.md"):
        for module, names in pattern.findall(page.read_text("utf-8")):
            package = importlib.import_module(module)
            assert hasattr(package, "__path__") or module in _MODULES, f"{page.name}: {module}"
            for name in names.split(", "):
                assert name in package.__all__, f"{page.name}: {module}.{name}"
                seen += 1
    assert seen > 10
