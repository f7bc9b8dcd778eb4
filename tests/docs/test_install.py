"""Wheel and source archive: built, their metadata valid, installed in an empty environment."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

packaging = pytest.importorskip("packaging.metadata")
pytest.importorskip("hatchling", reason="the backend that 'python -m build' calls")

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the source archive."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


def test_metadata_are_valid_and_everything_is_inside(built: tuple[Path, Path]) -> None:
    wheel, source = built
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        described = packaging.Metadata.from_email(archive.read(metadata), validate=True)
    assert str(described.version) == PROJECT["version"] == "0.2.0"
    assert described.description_content_type == "text/markdown"
    assert described.description == (ROOT / "README.md").read_text("utf-8")
    assert set(described.provides_extra) >= {"sim", "rigor", "cluster", "parquet", "sklearn"}
    assert {"rmsim/data/entangled_mnist.npz", "rmtheory/py.typed", "rmsim/py.typed"} <= set(names)
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {
        "rmtheory",
        "rmsim",
    }
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "Makefile", "CITATION.cff"} <= inside
    assert "tests/docs/test_install.py" in inside
    cited = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {PROJECT['version']}\n" in cited


_COMMANDS = """
import importlib.abc, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "numba"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
sys.path.append(sys.argv[1])
import rmsim
from rmsim.cli import run
print(rmsim.__file__)
for line in sys.argv[2:]:
    print(line, "->", run(line.split()), flush=True)
"""


def test_an_empty_environment_without_torch(built: tuple[Path, Path], tmp_path: Path) -> None:
    """Lists need no torch; what does ends in one sentence that says what to install."""
    venv.create(tmp_path / "empty", with_pip=False)
    python = tmp_path / "empty" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps"]
    pip += ["--no-index", "--no-compile", "-q", str(built[0])]  # most modules are not needed
    subprocess.run(pip, check=True, capture_output=True, timeout=120)
    lines = ["--version", "--help", "train --help", "presets", "presets mnist-sparse", "data list"]
    torch = ["relax --n 20 --jd .5", "solve --n 20 --jd .5", "bp --n 20 --jd .5", "data check"]
    torch += ["train --preset mnist-sparse --out run", "evaluate run", "predict run --data x.npz"]
    torch += ["enumerate --n 10 --jd .5", "local-entropy --n 20 --jd .5", "sweep train --out run"]
    torch += ["thresholds --n 20 --jd .1:.9:3 --out run", "capacity --n 20 --out run"]
    told = subprocess.run(
        [str(python), "-c", _COMMANDS, sysconfig.get_path("purelib"), *lines, *torch],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert str(tmp_path / "empty") in told.stdout.splitlines()[0]
    codes = dict(line.split(" -> ") for line in told.stdout.splitlines() if " -> " in line)
    assert [codes[line] for line in lines] == ["0"] * len(lines)
    assert "rmsim 0.2.0" in told.stdout
    assert all(codes[line] in ("1", "2") for line in torch)
    sentences = told.stderr.splitlines()
    assert len(sentences) == len(torch)
    install = "pip install 'representation-manifold[sim]'"
    without = [sentence for sentence in sentences if install not in sentence]
    # Two are refused for what was typed before torch is missed.
    assert all("must be given" in sentence for sentence in without)
    assert len(without) <= 2
