"""Derivations by sympy, from the definition of the count to the formulas the package computes.

Its modules import sympy; nothing else in rmtheory does.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmtheory.symbolic.definitions import identical
    from rmtheory.symbolic.derivation import FORMATS, Check, Derivation, Formula, Step, render
    from rmtheory.symbolic.topics import TOPICS, derive
else:
    from rmtheory.base.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".definitions": ["identical"],
            ".derivation": ["Check", "Derivation", "FORMATS", "Formula", "Step", "render"],
            ".topics": ["TOPICS", "derive"],
        },
    )

__all__ = [
    "FORMATS",
    "TOPICS",
    "Check",
    "Derivation",
    "Formula",
    "Step",
    "derive",
    "identical",
    "render",
]
