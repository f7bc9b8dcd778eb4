"""The tasks of a new user, each on one page: its commands run as printed, in one folder."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from rmsim.cli import options
from rmsim.cli import run as run_rmsim
from rmsim.studies import grid_sweeps
from rmsim.sweep import Serial
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
    assert "Your data train.npz with N = 100 after 2 epochs" in told.out
    assert "Your data train.npz after 2 epochs, runs/mine" in told.out
    assert "scaling: standardised by mean and deviation of the training inputs" in told.err
    lines = Path("labels.csv").read_text("utf-8").splitlines()
    assert lines[0] == "label"
    assert len(lines) == 51
    assert set(lines[1:]) == {"ash", "beech", "oak"}


def test_sweep_interrupted_and_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command of the page, with fewer values and seeds; Ctrl-C after the second point."""
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "sweeps.md").read_text("utf-8")
    (block,) = (body for language, body in _BLOCK.findall(text) if language == "sh")
    words = shlex.split(block.replace("\\\n", " "))[1:]
    assert (words[words.index("--set") + 1], words[words.index("--seeds") + 1]) == (
        "jd=.1:.9:9",
        "5",
    )
    words[words.index("--set") + 1] = "jd=.1,.5"
    words[words.index("--seeds") + 1] = "2"
    del words[words.index("--jobs") : words.index("--jobs") + 2]
    calls = []

    def serial(jobs: object = None, dask: object = None) -> Serial:
        return Serial()

    def interrupted(point: dict[str, Any], seed: int, device: str = "cpu") -> dict[str, Any]:
        calls.append(point)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return train_point(point, seed, device)

    train_point = grid_sweeps.train_point
    monkeypatch.setattr(options, "choose_backend", serial)
    monkeypatch.setattr(grid_sweeps, "train_point", interrupted)
    assert run_rmsim(words) == 130
    told = capsys.readouterr().err
    assert "rmsim: interrupted: 2 of 4 points" in told
    assert "Traceback" not in told
    assert not Path("jd.csv").exists()
    assert run_rmsim(words) == 0
    assert "4 points in runs/jd: 2 kept, 2 computed" in capsys.readouterr().err
    rows = Path("jd.csv").read_text("utf-8").splitlines()
    assert len(rows) == 5
    assert {"jd", "replica", "test_accuracy", "test_accuracy_error", "point_seed"} <= set(
        rows[0].split(",")
    )
    assert Path("jd.png").stat().st_size > 1000
    assert len(calls) == 5  # that which was interrupted is called again


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("sweep fly --out d", "kind must be one of train, relax, solve, got fly"),
        ("sweep relax --n 20 --set jd=.1", "out must be given"),
        ("sweep relax --n 20 --set jd --out d", "set must be KEY=VALUES"),
        ("sweep relax --n 20 --set jd=.1:.2 --out d", "jd must be values a,b,c or a range"),
        ("sweep relax --n 20 --set jd=.1 --set jd=.2 --out d", "set must be each parameter once"),
        ("sweep relax --n 20 --set jd=.1 --set lam=2 --out d", "lam must be absent or 0 for one"),
        ("sweep relax --n 20 --set jd=.1 --set who=2 --out d", "set must be one of n, jd"),
        ("sweep relax --n 20 --out d", "jd must be given, got nothing"),
        ("sweep relax --n 20 --set jd=.1 --preset overlaps --out d", "preset must be absent"),
        ("sweep solve --n 20 --set jd=.1 --algorithm no --out d", "algorithm must be"),
        ("sweep train --n 20 --set jd=.1 --out d", "preset must be given (--preset NAME)"),
        ("sweep relax --n 20 --set jd=.1 --seeds 0 --out d", "seeds must be an integer >= 1"),
        ("sweep relax --n 20 --set jd=.1 --out d --table t.txt", "table must be a file ending"),
        ("sweep train --preset overlaps --n 20 --set jd=a --out d", "jd must be"),
    ],
)
def test_sweeps_refuse_in_one_sentence(
    line: str,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_rmsim(line.split()) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1
    assert not Path("d").exists()
