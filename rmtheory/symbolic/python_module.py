"""Print the formulas of a derivation as a Python module that needs only the standard library."""

from __future__ import annotations

import math
import textwrap

import sympy as sp

from rmtheory.symbolic.definitions import Expr, Matrix, P, n
from rmtheory.symbolic.derivation import Derivation, Formula

_HELPERS = '''
def P(x):
    """Normal cumulative distribution, the H(-x) of the paper."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))
'''

_DENSITY = '''
def n(x):
    """Normal density."""
    return math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
'''


def python_module(derivation: Derivation) -> str:
    """Return the source of a self-contained module with one function a formula.

    Examples
    --------
    >>> from rmtheory.symbolic import derive
    >>> namespace = {}
    >>> exec(python_module(derive("annealed", 1)), namespace)
    >>> round(namespace["annealed_entropy"](0.5), 12)
    0.324200765271
    """
    layers = "inf" if math.isinf(derivation.layers) else str(derivation.layers)
    command = f"rmtheory derive {derivation.name} --layers {layers} --format python"
    has_density = any(f.expression.has(n) for f in derivation.formulas)
    modules = ["itertools"] if "itertools." in derivation.code else []
    parts = [
        f'"""Derived by sympy from the definition of the count.\n\nWritten by: {command}\n"""\n',
        "".join(f"import {name}\n" for name in (*modules, "math")),
        _HELPERS,
        _DENSITY if has_density else "",
        *("\n" + function(formula) for formula in derivation.formulas),
        derivation.code,
    ]
    # Two blank lines between definitions, as the style guide of Python asks.
    return "\n".join(part for part in parts if part).replace("\n\n\n\n", "\n\n\n")


def function(formula: Formula) -> str:
    """Return the source of one function; common subexpressions become local names."""
    names: dict[Expr, Expr] = {}
    unpacked: list[str] = []
    for name, symbols in formula.arguments:
        if isinstance(symbols, tuple):
            locals_ = [sp.Symbol(f"{name}_{k}") for k in range(1, len(symbols) + 1)]
            unpacked.append(f"({', '.join(map(str, locals_))},) = {name}")
            names |= dict(zip(symbols, locals_, strict=True))
        else:
            names[symbols] = sp.Symbol(name)
    first_default = len(formula.arguments) - formula.defaults
    signature = ", ".join(
        name if k < first_default else f"{name}=0.0"
        for k, (name, _) in enumerate(formula.arguments)
    )
    expression = formula.expression.subs(names, simultaneous=True)
    common, (reduced,) = sp.cse([expression], symbols=sp.numbered_symbols("x"))
    body = [
        f'"""{formula.doc}"""',
        *unpacked,
        *(f"{symbol} = {_code(value)}" for symbol, value in common),
        f"return {_value(reduced)}",
    ]
    return f"def {formula.name}({signature}):\n" + textwrap.indent("\n".join(body), "    ") + "\n"


def _value(expression: Expr | Matrix) -> str:
    if isinstance(expression, sp.MatrixBase):
        rows = (", ".join(_code(x) for x in row) for row in expression.tolist())
        return "(" + ", ".join(f"({row},)" for row in rows) + ",)"
    return _code(expression)


def _code(expression: Expr) -> str:
    known = {kind.__name__: kind.__name__ for kind in (P, n)}
    return str(sp.pycode(expression, user_functions=known, fully_qualified_modules=True))
