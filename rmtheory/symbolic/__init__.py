"""Derivations by sympy, from the definition of the count to the formulas the package computes.

Importing this package imports sympy; nothing else in rmtheory does.
"""

from rmtheory.symbolic.derivation import Check, Derivation, Formula, Step
from rmtheory.symbolic.exact import identical
from rmtheory.symbolic.registry import TOPICS, derive
from rmtheory.symbolic.show import FORMATS, render

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
