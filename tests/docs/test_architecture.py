"""The layers of docs/architecture.md hold in the sources; nothing here lists modules by name."""

import ast
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import package_graph as graph  # beside the page it checks
import pytest
from files_run import common, counts, files_run, listed, own

ROOT = Path(__file__).resolve().parents[2]

LEVEL = {name: level for level, row in enumerate(graph.layers()) for name in row}


def test_every_package_has_its_layer() -> None:
    packages = {graph.package(module) for module in graph.modules()} - set(graph.DISTRIBUTIONS)
    assert packages == set(LEVEL)


def test_imports_point_downwards() -> None:
    upwards = [
        f"{one.importer}, line {one.line}: {one.imported}"
        for one in graph.imports()
        if (here := graph.package(one.importer)) not in graph.DISTRIBUTIONS
        and (there := graph.package(one.imported)) != here
        # the front door is for users: inside, a name is imported from where it is defined
        and (there in graph.DISTRIBUTIONS or LEVEL[there] >= LEVEL[here])
    ]
    assert upwards == []


def test_the_simulator_uses_the_physics_of_the_theory_only_to_compare() -> None:
    users = {
        graph.package(one.importer)
        for one in graph.imports()
        if one.importer.startswith("rmsim.")
        and one.imported.startswith("rmtheory")
        and graph.package(one.imported) not in ("rmtheory.base", "rmtheory.runtime")
    }
    assert users <= {"rmsim.studies"}


@pytest.mark.parametrize(
    ("distribution", "others"),
    [("rmtheory", {"rmsim", "figures", "torch", "numba"}), ("rmsim", {"figures"})],
)
def test_what_a_distribution_never_imports(distribution: str, others: set[str]) -> None:
    for name, path in graph.modules().items():
        if name.split(".")[0] == distribution:
            tree = ast.walk(ast.parse(path.read_bytes()))
            assert not {root for node in tree for root in _roots(node)} & others, path


def _roots(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.module:
        return {node.module.split(".")[0]}
    return set()


def test_names_are_imported_from_where_they_are_defined() -> None:
    through = [
        f"{one.importer}, line {one.line}: from {one.door}, where {one.imported} defines it"
        for one in graph.imports()
        if one.door and one.door != one.importer
    ]
    assert through == []


def test_no_cycles_between_modules() -> None:
    below: dict[str, set[str]] = {name: set() for name in graph.modules()}
    for one in graph.imports():
        if one.importer != one.imported:
            below[one.importer].add(one.imported)
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join((*path[path.index(name) :], name))
        if name not in done:
            for other in sorted(below[name]):
                visit(other, (*path, name))
            done.add(name)

    for name in sorted(below):
        visit(name, ())


def test_a_module_and_what_it_defines_never_share_a_name() -> None:
    shared = [
        name
        for name, path in graph.modules().items()
        for node in ast.parse(path.read_bytes()).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name.rpartition(".")[2]
    ]
    assert shared == []


def test_no_fragments() -> None:
    importers: dict[str, set[str]] = {}
    for one in graph.imports():
        importers.setdefault(one.imported, set()).add(one.importer)
    fragments = {
        name: length
        for name, path in graph.modules().items()
        if path.name not in ("__init__.py", "__main__.py")
        and (length := len(path.read_text("utf-8").splitlines())) < 40
        and len(importers.get(name, set()) - {name.rpartition(".")[0]}) == 1
    }
    assert fragments == {}
    assert len(graph.modules()) <= 220


def test_the_picture_shows_the_tree_as_it_is() -> None:
    assert graph.PICTURE.read_text("utf-8") == graph.svg()


@pytest.mark.parametrize("heading", ["rmtheory critical", "rmsim train", "python -m figures"])
def test_the_files_that_the_page_lists_exist(heading: str) -> None:
    assert listed(heading)
    assert all((ROOT / name).is_file() for name in listed(heading))


def _assert_listed(heading: str, files: list[str], most: int) -> None:
    """Compare the files that a command ran with both lists and both counts of the page."""
    assert set(own(files)) == listed(heading)
    assert len(own(files)) <= most
    # Names that were resolved earlier in this process do without rmtheory.base.lazy.
    assert set(files) - set(own(files)) <= common(heading)


def test_the_counts_of_the_page_are_those_of_its_lists() -> None:
    for command, (most, (to_follow, every)) in zip(
        ("rmtheory critical", "rmsim train", "python -m figures"),
        zip((12, 20, 20), counts().values(), strict=True),
        strict=True,
    ):
        assert len(listed(command)) == to_follow <= most
        assert len(listed(command)) + len(common(command)) == every


def test_the_way_of_critical_is_as_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    from rmtheory.cli import run

    codes: list[int] = []
    files = files_run(lambda: codes.append(run(["critical", "--layers", "1", "--json"])))
    capsys.readouterr()
    assert codes == [0]
    _assert_listed("rmtheory critical", files, 12)


def test_the_way_of_train_is_as_the_page_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from rmsim.cli import run

    sizes = ["--n", "20", "--epochs", "1", "--train", "60", "--test", "30", "--metrics", "10"]
    command = ["train", "--preset", "entangled-mnist-dense", *sizes, "--device", "cpu", "--out"]
    codes = [run([*command, str(tmp_path / "compiled")])]  # a profiler slows numba down tenfold
    files = files_run(lambda: codes.append(run([*command, str(tmp_path / "run")])))
    capsys.readouterr()
    assert codes == [0, 0]
    _assert_listed("rmsim train", files, 20)


def _example(heading: str, folder: Path) -> Any:
    """Return the code that the page has below a heading as a module, from a file in `folder`."""
    section = graph.PAGE.read_text("utf-8").split(f"### {heading}\n")[1].split("\n### ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.S)
    path = folder / f"{heading.replace(' ', '_').lower()}.py"
    path.write_text(code, "utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_data_set_is_added_as_the_page_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from rmsim.cli import run
    from rmsim.data import catalogue

    entry = _example("A data set", tmp_path).ENTRY
    monkeypatch.setattr(catalogue, "CATALOGUE", {**catalogue.CATALOGUE, entry.name: entry})
    assert run(["data", "check", "parity", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["status"] == "ok"
    data = catalogue.load_data("parity")
    assert (data.width, data.classes, len(data.test)) == (20, 2, 300)
    product = data.test.inputs.astype(int).prod(1)
    assert ((product > 0) == data.test.labels).all()


def test_an_algorithm_is_added_as_the_page_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import rmsim as rs
    from rmsim.cli import run
    from rmsim.search import methods

    method = _example("An algorithm", tmp_path).METHOD
    monkeypatch.setattr(methods, "METHODS", {**methods.METHODS, "flip_worst": method})
    command = ["solve", "--algorithm", "flip_worst", "--n", "14", "--jd", "2", "--json"]
    assert run([*command, "--device", "cpu"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["solved"] is True
    network = rs.Network(14, rs.Chain(1, jd=1.0))
    result = rs.find_fixed_point(network, "flip_worst", samples=3, device="cpu", dtype="float64")
    known = [rs.enumerate_fixed_points(network, sample=k, keep_states=True) for k in range(3)]
    for k, solved in enumerate(result.solved.tolist()):
        among = (known[k].states.reshape(-1, 14) == result.state[k].numpy()).all(1).any()
        assert among == solved
    assert result.solved.any()


def test_a_figure_and_a_claim_are_added_as_the_page_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import xarray as xr

    from figures.claims.claim import Verdict, judge
    from figures.cli import run
    from figures.paper.registry import FIGURES

    figure = _example("A figure", tmp_path).FIGURE
    monkeypatch.setitem(FIGURES, figure.name, figure)
    folder = tmp_path / "out"
    assert run([figure.name, "--scale", "tiny", "--out", str(folder)]) == 0
    capsys.readouterr()
    data = xr.load_dataset(folder / figure.data_file)
    claim = _example("A claim", tmp_path).CLAIM
    assert judge(claim, data).verdict is Verdict.AGREES
