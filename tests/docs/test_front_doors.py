"""The front doors: what they export, that it is typed, and what importing them does not import."""

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

import rmsim as rs
import rmtheory as rt
from rmtheory.runtime.command import run_app

ROOT = Path(__file__).resolve().parents[2]

THEORY = {
    *("Chain", "Estimate", "Tier", "entropy", "mean_count", "second_moment_ratio", "stability"),
    *("local_entropy", "ystar", "curve", "critical_coupling", "phase_diagram", "mean_field"),
    *("derive", "RMError", "InvalidInputError", "NotConvergedError", "OutsideValidityError"),
}
SIMULATOR = {
    *("Network", "draw", "relax", "find_fixed_point", "belief_propagation"),
    *("enumerate_fixed_points", "local_entropy_around", "thresholds", "run_sweep", "load_data"),
    *("train", "evaluate", "RMClassifier", "Sweep", "Grid", "Status"),
}


def _packages() -> Iterator[str]:
    """Both packages and their subpackages, the command lines aside."""
    for root in (rt, rs):
        yield root.__name__
        for result in pkgutil.iter_modules(root.__path__, root.__name__ + "."):
            if result.ispkg and not result.name.endswith(".cli"):
                yield result.name


def _submodules() -> list[str]:
    return [
        result.name
        for root in (rt, rs)
        for result in pkgutil.walk_packages(root.__path__, root.__name__ + ".")
        if not result.name.endswith("__main__")
    ]


def test_the_names_of_the_issue_are_there() -> None:
    assert set(rt.__all__) >= THEORY
    assert set(rs.__all__) >= SIMULATOR
    assert len(rt.__all__) <= 24
    assert len(rs.__all__) <= 28


@pytest.mark.parametrize("package", list(_packages()))
def test_table_imports_for_type_checkers_and_all_agree(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__file__ is not None
    (branch,) = (
        node
        for node in ast.parse(Path(module.__file__).read_text("utf-8")).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    typed = {
        (alias.name, node.module)
        for node in branch.body
        if isinstance(node, ast.ImportFrom) and node.module != package
        for alias in node.names
    }
    subpackages = {
        alias.name
        for node in branch.body
        if isinstance(node, ast.ImportFrom) and node.module == package
        for alias in node.names
    }
    (call,) = (node.value for node in branch.orelse if isinstance(node, ast.Assign))
    assert isinstance(call, ast.Call)
    table = ast.literal_eval(call.args[1])
    assert subpackages == {name for more in call.args[2:] for name in ast.literal_eval(more)}
    assert subpackages <= set(dir(module))
    for name in subpackages:
        assert isinstance(getattr(module, name), types.ModuleType)
    lazy = {
        (name, package + home if home.startswith(".") else home)
        for home, names in table.items()
        for name in names
    }
    assert lazy == typed
    assert sorted(name for name, _ in lazy) == sorted(module.__all__)
    assert set(module.__all__) <= set(dir(module))
    for name, home in lazy:
        assert getattr(module, name) is getattr(importlib.import_module(home), name)


def test_names_stay_functions_after_all_submodules_are_imported() -> None:
    for name in _submodules():
        importlib.import_module(name)
    for package in _packages():
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            assert not isinstance(value, types.ModuleType), f"{package}.{name}"


@pytest.mark.parametrize("package", list(_packages()))
def test_no_public_name_is_that_of_a_submodule(package: str) -> None:
    module = importlib.import_module(package)
    submodules = {result.name for result in pkgutil.iter_modules(module.__path__)}
    assert not submodules & set(module.__all__)


@pytest.mark.parametrize("door", [rt, rs], ids=["rmtheory", "rmsim"])
def test_every_name_has_a_docstring_with_an_example_through_the_front_door(
    door: types.ModuleType,
) -> None:
    alias = {"rmtheory": "rt", "rmsim": "rs"}[door.__name__]
    for name in door.__all__:
        value = getattr(door, name)
        text = inspect.getdoc(value) or ""
        if isinstance(value, type) and issubclass(value, Exception):
            assert text, name
            continue
        assert ">>>" in text, f"{door.__name__}.{name} has no example"
        # Types of the theory that the simulator hands on are shown with the theory.
        used = alias if value.__module__.startswith(door.__name__) else "rt"
        assert f"{used}." in text, f"the example of {door.__name__}.{name} uses other imports"


@pytest.mark.parametrize("door", [rt, rs], ids=["rmtheory", "rmsim"])
def test_every_function_is_typed(door: types.ModuleType) -> None:
    for name in door.__all__:
        value = getattr(door, name)
        if not inspect.isfunction(value):
            continue
        hints = inspect.get_annotations(value)
        assert {*inspect.signature(value).parameters, "return"} <= set(hints), name


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="module 'rmtheory' has no attribute 'entropi'"):
        rt.entropi  # noqa: B018
    with pytest.raises(ImportError):
        exec("from rmsim import relaxx")


HEAVY = ("torch", "numba", "scipy", "xarray", "matplotlib", "sympy", "sklearn", "h5py", "dask")


def _imported(code: str, names: tuple[str, ...]) -> list[str]:
    """Return which of `names` a fresh interpreter has imported after `code`."""
    after = f"\nimport sys\nprint([n for n in {names!r} if n in sys.modules], file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code + after], capture_output=True, text=True, cwd=ROOT, check=True
    )
    return list(ast.literal_eval(done.stderr.strip().splitlines()[-1]))


@pytest.mark.parametrize("package", list(_packages()))
def test_importing_a_package_imports_nothing_heavy(package: str) -> None:
    assert _imported(f"import {package}", (*HEAVY, "numpy", "mpmath")) == []


@pytest.mark.parametrize("program", ["rmtheory", "rmsim"])
def test_help_imports_nothing_heavy(program: str) -> None:
    code = f"from {program}.cli import run; run(['--help'])"
    assert _imported(code, (*HEAVY, "numpy")) == []


def test_commands_that_only_print_need_no_torch() -> None:
    commands = [[name, "--help"] for name in ("relax", "enumerate")]
    commands += [["presets"], ["presets", "mnist-sparse"], ["data", "list"]]
    code = f"from rmsim.cli import run; assert [run(c) for c in {commands!r}] == [0] * 5"
    assert _imported(code, ("torch", "numba", "scipy")) == []


def test_theory_needs_no_torch_and_entropies_need_no_optimiser() -> None:
    code = (
        "import rmtheory as rt; rt.entropy(rt.Chain(2, 0.3, 0.7)); rt.stability(rt.Chain(1, 0.3))"
    )
    assert _imported(code, ("torch", "scipy.optimize", "xarray", "sympy", "matplotlib")) == []


@pytest.mark.parametrize("arguments", ["relax --n 20 --jd .8", "train --dataset synthetic --n 20"])
def test_without_the_extra_a_command_says_what_to_install(arguments: str) -> None:
    """In a process of its own: here torch has been imported."""
    code = (
        "import sys; sys.modules['torch'] = None; from rmsim.cli import run; "
        f"sys.exit(run({arguments.split()!r}))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == 1
    install = "pip install 'representation-manifold[sim]'"
    sentence = f"this command needs torch, which is not installed: {install}"
    assert ended.stderr == f"rmsim: error: {sentence}\n"


def test_another_missing_module_is_a_defect_and_not_hidden() -> None:
    app = typer.Typer()

    @app.command()
    def work() -> None:
        raise ModuleNotFoundError("No module named 'rmsim.gone'", name="rmsim.gone")

    with pytest.raises(ModuleNotFoundError):
        run_app(app, "rm", [])
