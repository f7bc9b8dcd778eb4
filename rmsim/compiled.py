"""Compilation to machine code: one decorator for every hot loop that is not a tensor product.

The loops hold no Python object, so they release the interpreter lock: threads run them side by
side. Machine code is kept on disk beside the source, and built at the first call only.

A compiled function may call compiled functions of its own file only: it contains their code, and
is not built again when another file changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` by numba; rounding stays that of IEEE 754 (no fast-math)."""
    return cast(Callable[P, R], numba.njit(cache=True, nogil=True)(function))
