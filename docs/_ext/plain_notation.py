r"""Let docstrings write \|h\| and mu_- as a physicist types them.

To reStructuredText a word that ends in an underscore is a link and bars enclose a substitution.
Both are escaped here, outside mathematics, literals and doctests, so that ``help()`` stays
readable and the pages come out right. Comments of attributes are kept from napoleon, which takes
what stands before a colon for a type.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_LITERAL = re.compile(r"(``.+?``|:[\w:]+:`.+?`)")
_SPECIAL = re.compile(r"(?<!\\)(\||(?<=[\w}])_(?=[^\w`]|$))")


def escape(lines: list[str]) -> list[str]:
    """Return the docstring with both notations escaped."""
    result = []
    block: int | None = None  # indentation of a directive or literal whose body is left alone
    doctest = False  # up to the next empty line, for the output shown
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if block is not None and line.strip() and indent <= block:
            block = None
        text = line.strip()
        doctest = text.startswith(">>>") or (doctest and bool(text))
        if block is None and not doctest:
            if text.startswith(".. ") or text.endswith("::"):
                block = indent
            else:
                parts = _LITERAL.split(line)
                parts[::2] = [_SPECIAL.sub(r"\\\1", part) for part in parts[::2]]
                line = "".join(parts)
        result.append(line)
    return result


_comments: dict[str, list[str]] = {}


def _keep(_app: Sphinx, what: str, name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
    if what in ("attribute", "data"):
        _comments[name] = list(lines)


def _process(_app: Sphinx, _what: str, name: str, _obj: Any, _opt: Any, lines: list[str]) -> None:
    lines[:] = escape(_comments.pop(name, lines))


def setup(app: Sphinx) -> dict[str, bool]:
    """Run before and after napoleon, which turns sections into fields at priority 500."""
    app.connect("autodoc-process-docstring", _keep, priority=100)
    app.connect("autodoc-process-docstring", _process, priority=900)
    return {"parallel_read_safe": True}
