"""Machine code on disk: built again when anything in it changes, by one process at a time."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from numba.core import config

from rmsim.compiled_loops import MachineCode, sources_of

fcntl = pytest.importorskip("fcntl")

INNER = """
from rmsim.compiled_loops import compiled_part
FACTOR = {factor}
@compiled_part
def inner(x):
    return FACTOR * x{more}
"""
OUTER = """
from rmsim.compiled_loops import compiled, compiled_part
from rmsim.tensors import is_up
from {inner} import inner
@compiled_part
def middle(x):
    return inner(x)
@compiled
def outer(x):
    return middle(x) if is_up(x) else x
"""


def _module(folder: Path, name: str, text: str) -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _outer(
    folder: Path, monkeypatch: pytest.MonkeyPatch, factor: int, more: str = ""
) -> Callable[..., Any]:
    folder.mkdir()
    inner = _module(folder, "inner_part", INNER.format(factor=factor, more=more))
    monkeypatch.setitem(sys.modules, "inner_part", inner)
    function: Callable[..., Any] = _module(
        folder, "outer_loop", OUTER.format(inner="inner_part")
    ).outer.py_func
    return function


def test_code_is_built_again_if_what_it_calls_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = [(2, ""), (2, ""), (3, ""), (2, " + 1")]
    keys = [
        sources_of(_outer(tmp_path / str(k), monkeypatch, *values))
        for k, values in enumerate(given)
    ]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


def test_one_process_builds_while_others_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    code = MachineCode(_outer(tmp_path / "sources", monkeypatch, 2))
    code._acquire()
    (path,) = (tmp_path / "cache").rglob("*.lock")
    with path.open("wb") as other:
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        monkeypatch.setattr("rmsim.compiled_loops._PATIENCE", 0.1)
        second = MachineCode(code._py_func)
        second._acquire()  # gives up, and builds it, too
        second._release()
        code._release()
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


PARTS = """
from rmsim.compiled_loops import compiled, compiled_part
@compiled_part
def third(x):
    if x == 0:
        raise ValueError("no third of 0")
    return x // 3
@compiled_part
def ninth(x):
    return third(third(x)) + third(x)
@compiled
def both(x):
    return third(x) + ninth(x)
"""


def test_parts_have_code_in_their_callers_alone_built_or_from_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    first = _module(tmp_path, "loops_in_parts", PARTS)
    again = _module(tmp_path, "loops_in_parts", PARTS)
    for module, loads in ((first, 0), (again, 1)):
        assert module.both(27) == 9 + 3 + 9
        assert sum(module.both.stats.cache_hits.values()) == loads
        with pytest.raises(ValueError, match="no third of 0"):
            module.both(3 * 0)
        with pytest.raises(ValueError, match="no third of 0"):
            module.both(2)  # two calls down
    (part,) = first.ninth.overloads.values()
    assert part.library.get_pointer_to_function(part.fndesc.mangled_name) == 0
