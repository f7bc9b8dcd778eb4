"""Where a result comes from: parameters, seed, versions, commit, date and time spent.

Everything is a string, so that it can be an attribute of a netCDF file and be read by any tool.
"""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

#: Packages whose version can change a number or a file.
PACKAGES = (
    "representation-manifold",
    "numpy",
    "scipy",
    "mpmath",
    "python-flint",
    "sympy",
    "xarray",
    "h5netcdf",
    "matplotlib",
    "torch",
    "numba",
    "dask",
    "distributed",
)


def canonical_json(parameters: Mapping[str, Any]) -> str:
    """Return the one JSON text of `parameters`: keys sorted, floats as they print.

    Examples
    --------
    >>> canonical_json({"lam": (0.5, 1.0), "jd": 0.1})
    '{"jd": 0.1, "lam": [0.5, 1.0]}'
    """
    return json.dumps(parameters, sort_keys=True, ensure_ascii=False)


def parameters_hash(parameters: Mapping[str, Any], version: int | str = 1) -> str:
    """Return the key of a computation: its parameters and the `version` of what computes it.

    Examples
    --------
    >>> parameters_hash({"a": 1, "b": 2}) == parameters_hash({"b": 2, "a": 1})
    True
    >>> parameters_hash({"a": 1}, version=2) == parameters_hash({"a": 1})
    False
    """
    text = f"{version}\n{canonical_json(parameters)}"
    return hashlib.sha256(text.encode()).hexdigest()


def attributes(
    parameters: Mapping[str, Any],
    *,
    version: int | str = 1,
    seed: int | None = None,
    wall_time: float | None = None,
    **more: str,
) -> dict[str, str]:
    """Return the provenance of a result as attributes of a data file.

    Parameters
    ----------
    parameters : mapping
        All that defines the result, as JSON values.
    version : int or str
        Version of the code that computes it; goes into the hash with the parameters.
    seed : int, optional
        Seed of the one generator, ``none`` if nothing was drawn.
    wall_time : float, optional
        Seconds spent.
    **more : str
        Further attributes, such as a title.
    """
    commit, dirty = git_state()
    stamped = {
        "parameters": canonical_json(parameters),
        "parameters_hash": parameters_hash(parameters, version),
        "source_version": str(version),
        "seed": "none" if seed is None else str(seed),
        "versions": canonical_json(package_versions()),
        "python": platform.python_version(),
        "git_commit": commit,
        "git_dirty": dirty,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if wall_time is not None:
        stamped["wall_time_seconds"] = f"{wall_time:.3f}"
    return stamped | more


def package_versions() -> dict[str, str]:
    """Return the installed versions of :data:`PACKAGES`."""
    return {name: _installed_version(name) for name in PACKAGES}


@cache  # reads and parses a file, 5 ms: a short training would notice
def _installed_version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


#: Folders of the repository in which runs store their results, relative to its top.
RESULTS = ("figures/data/trained",)


def git_state() -> tuple[str, str]:
    """Return the commit of the source tree and whether tracked files differ from it.

    Results that are stored in the tree do not count: what computes is not changed by them. Both are
    ``unknown`` where the package does not run from its own repository; a virtual environment inside
    somebody else's repository does not count.
    """
    root = Path(__file__).resolve().parents[2]
    top = _git(root, "rev-parse", "--show-toplevel")
    if not top or Path(top).resolve() != root:
        return "unknown", "unknown"
    commit = _git(root, "rev-parse", "HEAD")
    results = (f":(exclude){folder}" for folder in RESULTS)
    changes = _git(root, "status", "--porcelain", "--untracked-files=no", "--", ".", *results)
    if not commit or changes is None:
        return "unknown", "unknown"
    return commit, "yes" if changes else "no"


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        answer = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None
