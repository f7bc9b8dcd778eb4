"""Packages that import a name when it is first used: the front doors and the subpackages.

A package lists its public names three times, for three readers: ``__all__`` for people, the
imports under ``TYPE_CHECKING`` for type checkers and editors, and the table of this module for the
interpreter. A test compares them. The front doors also give their subpackages, so that after
``import rmsim as rs`` one may write ``rs.learning.preset``. No public name may be that of a
submodule, which would take its place once it is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_exports(
    package: str, exports: Mapping[str, Sequence[str]], subpackages: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the functions ``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package : str
        ``__name__`` of the package.
    exports : mapping
        Module, relative to the package if it begins with a dot -> public names that it defines.
    subpackages : sequence of str
        Subpackages that are imported when they are first used.

    Examples
    --------
    >>> get, names = lazy_exports("rmtheory", {".base.chain": ["Chain"]})
    >>> get("Chain")
    <class 'rmtheory.base.chain.Chain'>
    >>> lazy_exports("rmtheory", {}, ["replica"])[0]("replica").__name__
    'rmtheory.replica'
    >>> get("chain")
    Traceback (most recent call last):
    AttributeError: module 'rmtheory' has no attribute 'chain'
    """
    home = {name: module for module, names in exports.items() for name in names}

    def get(name: str) -> Any:
        if name in subpackages:
            return import_module(f"{package}.{name}")
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home[name], package), name)
        setattr(sys.modules[package], name, value)  # resolved without this function from now on
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home, *subpackages})

    return get, names
