"""The tasks of a new user, each on one page: its commands run as printed, in one folder."""

import re
import shlex
from pathlib import Path

import pytest

from rmsim.cli import run as run_rmsim
from rmtheory.cli import run as run_rmtheory

DOCS = Path(__file__).resolve().parents[2] / "docs"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page(name: str, section: str) -> list[str]:
    """Run the Python blocks and the command lines below a heading; return the command lines."""
    text = (DOCS / name).read_text("utf-8")
    part = text[text.index(f"\n## {section}\n") + 1 :]
    part = part[: part.find("\n## ", 1)] if "\n## " in part[1:] else part
    lines = []
    for language, block in _BLOCK.findall(part):
        if language == "python":
            exec(compile(block, name, "exec"), {"__name__": "page"})
        elif language == "sh":
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words:
                    run = {"rmsim": run_rmsim, "rmtheory": run_rmtheory}[words[0]]
                    assert run(words[1:]) == 0, line
                    lines.append(line)
    return lines


def test_own_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(run_page("own-network.md", "A file with 500 neurons")) == 4
    told = capsys.readouterr().out
    assert re.search(r"at_distance_1\s+│ \d+ ", told)
    assert re.search(r"at_distance_10\s+│ \S+ ± \S+", told)
    assert Path("m.npy").is_file()


def test_theory_against_simulation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = "theory-against-simulation.md"
    assert len(run_page(page, "Regions around one fixed point")) == 1
    assert re.search(r"theory_densest\s+│ [\d.]+( ± \S+)?, ", capsys.readouterr().out)
    assert Path("rbp.png").is_file()


def test_own_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(run_page("own-data.md", "Train, evaluate, predict")) == 3
    told = capsys.readouterr()
    assert "scaling: standardised by mean and deviation of the training inputs" in told.err
    lines = Path("labels.csv").read_text("utf-8").splitlines()
    assert lines[0] == "label"
    assert len(lines) == 51
    assert set(lines[1:]) == {"ash", "beech", "oak"}
