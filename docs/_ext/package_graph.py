"""The packages and what imports what, read from the sources and drawn.

``python docs/_ext/package_graph.py`` writes ``docs/_static/packages.svg``. The order of the layers
is the block in ``docs/architecture.md`` that begins with ``layers``; everything else is read from
the sources.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DISTRIBUTIONS = ("rmtheory", "rmsim", "figures")
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "_static" / "packages.svg"


@dataclass(frozen=True)
class Import:
    """One import of a module of ours by another, and the line where it stands.

    A name that a package exports is counted for the module that defines it; `door` is the package
    then.
    """

    importer: str
    imported: str
    line: int
    door: str = ""


@cache
def modules() -> dict[str, Path]:
    """Return all modules of ours by name."""
    named = {}
    for distribution in DISTRIBUTIONS:
        for path in sorted((ROOT / distribution).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return named


@cache
def imports() -> tuple[Import, ...]:
    """Return every import between modules of ours, also those inside functions.

    Imports that only a type checker sees are not counted: they make no dependency at run time.
    """
    return tuple(one for name in modules() for one in _imports_of(name))


def _imports_of(name: str) -> Iterator[Import]:
    known = modules()
    for node in _executed(ast.parse(known[name].read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole in known:
                    yield Import(name, whole, node.lineno)
                elif node.module in known:
                    home = _home(node.module, alias.name)
                    yield Import(
                        name, home, node.lineno, node.module if home != node.module else ""
                    )
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in known:
                    yield Import(name, alias.name, node.lineno)


def _home(module: str, name: str) -> str:
    """Return the module that defines `name`, which `module` may export, lazily or not."""
    while name in exports(module):
        module = exports(module)[name]
    return module


@cache
def exports(module: str) -> dict[str, str]:
    """Return the names that the package `module` gets from modules of ours, and from which.

    Packages that import lazily list the same imports for type checkers: these are read.
    """
    known = modules()
    if known[module].name != "__init__.py":
        return {}
    return {
        alias.asname or alias.name: node.module
        for node in ast.walk(ast.parse(known[module].read_bytes()))
        if isinstance(node, ast.ImportFrom) and node.module in known
        for alias in node.names
        if f"{node.module}.{alias.name}" not in known
    }


def _executed(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from _executed(node)


def package(module: str) -> str:
    """Return the node of the picture that a module belongs to.

    It is the folder or the single file just below rmtheory, rmsim or figures; the front door
    (``__init__``) and ``__main__`` are the distribution itself.
    """
    parts = module.split(".")
    if len(parts) == 1 or parts[1] == "__main__":
        return parts[0]
    return ".".join(parts[:2])


def layers() -> list[list[str]]:
    """Return the layers, lowest first, from the block ``layers`` of the page."""
    block = re.search(r"^```text\nlayers.*?\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    if block is None:
        raise ValueError(f"{PAGE} has no block of layers")
    return [line.split() for line in block[1].splitlines() if line.strip()]


def below() -> dict[str, set[str]]:
    """Return the packages that each package imports from."""
    graph: dict[str, set[str]] = {name: set() for row in layers() for name in row}
    for one in imports():
        importer, imported = package(one.importer), package(one.imported)
        if importer != imported and importer in graph and imported in graph:
            graph[importer].add(imported)
    return graph


def reduced(graph: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Return the pairs that no longer path implies (the transitive reduction of `graph`)."""

    @cache
    def reached(name: str) -> frozenset[str]:
        return frozenset().union(*({other} | reached(other) for other in graph[name]))

    return [
        (name, other)
        for name in sorted(graph)
        for other in sorted(graph[name])
        if not any(other in reached(third) for third in graph[name] - {other})
    ]


_WIDTH, _HEIGHT, _GAP, _ROW = 118, 30, 12, 64
_COLOURS = {"rmtheory": "#dbe9f6", "rmsim": "#e5f3dc", "figures": "#fbe9d0"}


def places() -> dict[str, tuple[float, float]]:
    """Return the left upper corner of each box: the theory on the left, all else on the right."""
    rows = [
        [
            [name for name in row if name.startswith("rmtheory.") == theory]
            for theory in (True, False)
        ]
        for row in layers()
    ]
    # The two lowest rows have no right side, and are in the middle.
    left, right = (max(len(row[side]) for row in rows) for side in (0, 1))
    place: dict[str, tuple[float, float]] = {}
    for level, row in enumerate(reversed(rows)):
        for names, first, columns in zip(row, (0, left), (left, right), strict=True):
            start, room = (0, left + right) if len(rows) - level <= 2 else (first, columns)
            for k, name in enumerate(names):
                column = start + (room - len(names)) / 2 + k
                place[name] = (_GAP + column * (_WIDTH + _GAP), _GAP + level * _ROW)
    return place


def svg() -> str:
    """Draw the layers as rows, the lowest at the bottom.

    A line stands for an import that no other lines imply; the title of a box has all of them.
    """
    graph, place = below(), places()
    width = max(x for x, _ in place.values()) + _WIDTH + _GAP
    height = max(y for _, y in place.values()) + _HEIGHT + _GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="14">',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
    ]
    for k, (name, colour) in enumerate(_COLOURS.items()):
        lines.append(
            f'<rect x="{_GAP}" y="{_GAP + 22 * k}" width="16" height="14" fill="{colour}" '
            f'stroke="#333" stroke-width="0.8"/><text x="36" y="{_GAP + 22 * k + 12}">{name}</text>'
        )
    for importer, imported in reduced(graph):
        (x1, y1), (x2, y2) = place[importer], place[imported]
        x1, y1, x2 = x1 + _WIDTH / 2, y1 + _HEIGHT, x2 + _WIDTH / 2
        bend = (_ROW - _HEIGHT) * 0.9
        lines.append(
            f'<path d="M{x1:.0f} {y1:.0f} C{x1:.0f} {y1 + bend:.0f} {x2:.0f} {y2 - bend:.0f} '
            f'{x2:.0f} {y2:.0f}" fill="none" stroke="#555" stroke-width="1.2"/>'
        )
    for name, (x, y) in place.items():
        distribution, _, short = name.partition(".")
        listed = ", ".join(sorted(graph[name])) or "nothing"
        lines.append(
            f'<g><title>{name} imports {listed}</title><rect x="{x:.0f}" y="{y:.0f}" '
            f'width="{_WIDTH}" height="{_HEIGHT}" rx="5" fill="{_COLOURS[distribution]}" '
            f'stroke="#333" stroke-width="0.8"/><text x="{x + _WIDTH / 2:.0f}" y="{y + 20:.0f}" '
            f'text-anchor="middle">{short}</text></g>'
        )
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(svg(), encoding="utf-8")
