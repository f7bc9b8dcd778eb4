"""The script that runs the numerical tests as other processors round."""

import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = next(p for p in Path(__file__).resolve().parents if (p / "constraints.txt").exists())


@pytest.fixture(scope="module")
def script() -> ModuleType:
    loader = SourceFileLoader("machines", str(ROOT / ".ci" / "machines"))
    spec = spec_from_file_location("machines", loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_a_machine_has_only_what_its_processor_can_run(script: ModuleType) -> None:
    old = script.flags("processor\t: 0\nflags\t\t: fpu sse4_2\n")
    assert old == {"fpu", "sse4_2"}
    assert {m["ATEN_CPU_CAPABILITY"] for m in script.machines("all", old)} == {"default"}
    zen = old | {"avx2", "fma", "sse4a"}
    assert {m["OPENBLAS_CORETYPE"] for m in script.machines("all", zen)} == {
        "Nehalem",
        "Haswell",
        "Zen",
    }
    server = old | {"avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl"}
    result = script.machines("all", server)
    assert {m["ATEN_CPU_CAPABILITY"] for m in result} == {"default", "avx2", "avx512"}
    assert {m["OMP_NUM_THREADS"] for m in result} == {"1", "2"}
    # Where nothing is known of the processor (no /proc, ARM) the kernels stay its own.
    assert script.machines("other", set()) == [{"OMP_NUM_THREADS": "1"}]


def test_the_other_machine_is_not_the_own_one(script: ModuleType) -> None:
    (other,) = script.machines("other", {"sse4_2", "avx2", "fma", "sse4a"})
    assert other["ATEN_CPU_CAPABILITY"] == "default"
    assert other["MKL_CBWR"] == "COMPATIBLE"


def test_usage(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main([]) == script.main(["some"]) == 2
    assert "all|other" in capsys.readouterr().err


@pytest.mark.parametrize(("order", "shuffled"), [([], False), (["-p", "randomly"], True)])
def test_order_is_fixed_unless_it_is_to_be_random(
    order: list[str], shuffled: bool, tmp_path: Path
) -> None:
    """With the options of this repository, in a folder of its own."""
    pytest.importorskip("pytest_randomly")
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    tests = "".join(f"def test_{k:02}():\n    pass\n\n\n" for k in range(30))
    (tmp_path / "test_many.py").write_text(tests)
    seed = ["--randomly-seed=1"] if shuffled else []
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-n", "0", *order, *seed, "test_many.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    names = [
        line.split()[0]
        for line in done.stdout.splitlines()
        if line.startswith("test_many.py::") and "PASSED" in line
    ]
    assert len(names) == 30
    assert (names != sorted(names)) is shuffled
