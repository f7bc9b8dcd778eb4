"""The page of the explorer: the template with the grids in it, one file that needs no network."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from rmtheory.base.errors import InvalidInputError
from rmtheory.explorer.grids import load_grids
from rmtheory.runtime.files import write_text

_TEMPLATE = Path(__file__).with_name("page.html")

#: Depths that the page knows.
DEPTHS = ("1", "2", "3", "inf")


def page_text(grids: Mapping[str, Any] | None = None) -> str:
    """Return the page as text, with `grids` or with those of the package.

    Examples
    --------
    >>> import rmtheory as rt
    >>> text = rt.explorer.page_text()
    >>> "http://" in text.replace("http://www.w3.org/2000/svg", ""), "https://" in text
    (False, False)
    """
    document = json.dumps(grids or load_grids(), ensure_ascii=False, separators=(",", ":"))
    # Inside a script element only this could end it.
    document = document.replace("</", "<\\/")
    return _TEMPLATE.read_text("utf-8").replace("@GRIDS@", document)


def write_page(target: Path, grids: Mapping[str, Any] | None = None) -> None:
    """Write the page to a file.

    Examples
    --------
    >>> import tempfile
    >>> import rmtheory as rt
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rt.explorer.write_page(Path(folder, "explorer.html"))
    ...     Path(folder, "explorer.html").stat().st_size < 500_000
    True
    """
    write_text(target, page_text(grids))


def address(
    target: Path,
    *,
    jd: float | None = None,
    lam: float | None = None,
    layers: int | float | None = None,
    d: float | None = None,
) -> str:
    """Return the address of the page in the file `target`, opened at a point.

    Raises
    ------
    InvalidInputError
        If the page does not have this depth.

    Examples
    --------
    >>> address(Path("/tmp/explorer.html"), jd=0.3, layers=2)
    'file:///tmp/explorer.html?jd=0.3&layers=2'
    """
    depth = None if layers is None else "inf" if layers == math.inf else str(layers)
    if depth is not None and depth not in DEPTHS:
        raise InvalidInputError("layers", depth, f"one of {', '.join(DEPTHS)} in the explorer")
    chosen = {"jd": jd, "lam": lam, "layers": depth, "d": d}
    query = urlencode({name: value for name, value in chosen.items() if value is not None})
    return target.resolve().as_uri() + (f"?{query}" if query else "")
